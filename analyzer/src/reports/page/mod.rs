//! `analyze report`: one HTML file about a tape, for a browser without network.
//!
//! Figures come from the other views, asked as a user would ask them ([`answers`]), and from the sums that these make, by slices of time
//! ([`calls_over_time`], [`threads`], [`disks`]). All text of the tape is made visible ([`text`]) and escaped where it enters the page: in
//! HTML by [`html`], in the data of the charts by [`text::json`]. The page's scripts put it in as text only.

mod answers;
mod assets;
mod call_rows;
mod calls_over_time;
mod data;
mod disks;
mod figure;
mod frames;
mod html;
mod longest;
mod pool;
mod slicing;
mod stacks;
mod story;
mod tables;
mod text;
mod threads;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;

use self::answers::Asker;
use self::html::Html;
use crate::asked::config::view::{AnswerFn, Ask, Own, View};
use crate::asked::config::{Config, refuse};
use crate::reports::{Context, losses, rate};
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::say::Verdict;
use systape_answers::values::spool::STDIN;
use systape_events::families;
use systape_events::values::parallel;
use systape_events::values::words::bytes;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "report",
    about: "A page for a browser, in one file: losses, findings, kills, time line, heat maps, flame graphs, tables",
    options: &[&["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze report app.tape -o app.html", "a page to attach to a bug report"),
        ("analyze report --time 10,20 app.tape", "of ten seconds, as report.html"),
    ],
    check,
    run: AnswerFn::Composes { make, run },
    ..View::PLAIN
};

/// Slices of time of the charts.
const SLICES: u16 = 1000;

/// Every family of events, for what was lost.
const FAMILIES: [Family; 8] = [
    Family::Syscall,
    Family::Process,
    Family::Sched,
    Family::Block,
    Family::Signal,
    Family::Net,
    Family::Sample,
    Family::Look,
];

#[derive(Debug, clap::Args)]
struct Options {
    /// Write the page to FILE, replacing a file of that name
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    if config.format != Format::Text {
        bail!("'analyze report' writes a page and prints nothing: leave out --format");
    }
    if config.own::<Options>()?.output == Path::new(STDIN) {
        bail!("-o -: a page goes to a file and is replaced as a whole: name a file");
    }
    refuse(&[(config.is_of_many(), "more than one tape")], "a page is about one tape")
}

/// Makes the file of the page.
fn make(config: &Config) -> Result<NewFile> {
    let path = config.own::<Options>()?.output;
    NewFile::replacing(&path, config.permissions(None)?).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the page for `config`.
fn run(config: &Config, tape: &Tape, file: &mut NewFile, ask: Ask<'_>, out: &mut Out) -> Result<Verdict> {
    let session = tape.session();
    let recorded: Vec<Family> = FAMILIES.into_iter().filter(|family| families::in_session(session, *family)).collect();
    let context = Context::about(config, tape, &recorded)?;
    let slices = rate::slices(&context.question.scope, tape, SLICES);
    let asker = Asker::new(ask, config);
    let kills = asker.rows("kills", data::MARKS);
    // each half is about as much work, most of it passes over the tape in order of time, which keep one CPU busy
    let (charts, (findings, sums)) = parallel::both(
        || data::charts(&context, &asker, slices, &kills),
        || (story::findings(&context, &asker), tables::all(&asker, families::is_of_looks(session))),
    );
    let charts = charts?;
    let mut body = Html::default();
    // what cannot be read is known when all has been read
    let title = story::head(&context, &asker, &mut body)?;
    story::losses(&context, &mut body);
    body.append(findings);
    story::kills(kills, &mut body);
    data::places(&mut body);
    body.append(sums);
    let page = assets::page(&title, body, &text::json(&charts));
    file.replace(page.as_bytes()).with_context(|| format!("cannot write {}", file.path().display()))?;
    out.say(&format!("wrote {}, {}", file.path().display(), bytes(page.len() as u64)));
    let lines = context.question.loss.lines(session, losses::LOSS_LINES);
    lines.iter().for_each(|line| out.say(line));
    Ok(asker.verdict().doubted(!context.question.loss.complete()))
}

/// The tape's name without its directory, for command lines on the page.
fn tape_name(config: &Config) -> String {
    let name = config.file.file_name().unwrap_or(Path::new("trace.tape").as_os_str());
    systape_events::values::words::shell(&[name.as_encoded_bytes().to_vec()])
}
