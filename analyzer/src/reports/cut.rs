//! `analyze cut IN OUT --time FROM,TO`: a tape of a stretch of time, of which reports print what they print of the whole
//! one with `--time`; also of single processes, cgroups or families.
//!
//! The same words on the same tape give the same bytes. OUT is never an existing file.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use anyhow::{Context as _, Result, bail};
use systape_abi::Effect;
use systape_abi::descriptors::is_accept;
use systape_format::cut::{Choice, cut};
use systape_format::model::{Call, Family, Task, Window};
use systape_format::reader::Tape;
use systape_format::repair::Repaired;

use super::check;
use super::repair::{Copied, create, fill, sync};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Own, Rows, View};
use systape_answers::derive::{fds, paths};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::seconds;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::calls::CallBook;
use systape_events::families;
use systape_events::filter::Scope;
use systape_events::{kin, question};

systape_format::tables! {
    /// One row: the cut, and what the tape lacks.
    pub CUT = "cut" {
        file: Str [Path] "the tape"
        cut: Str [Path] "the new tape; the columns below are of it"
        from_ns: Time "beginning of the time that it is about, since the start of the tape"
        to_ns: Time "its end, which is not in it; null: the end of the recording"
        grade: Word "`good` or `usable`"
        segments: Count "segments"
        bytes: Wide "size"
        holes: Nested "what the tape lacks, as `check` lists it"
        more_holes: Count "how many more there are"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "cut",
    about: "Copies a stretch of time, single processes or families into a tape of its own",
    operands: Operands::TapeAndCopy,
    options: &[&["pids", "tree", "cgroups", "units", "containers", "pods", "time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze cut in.tape out.tape --time 20,30", "ten seconds; reports on them as with --time 20,30"),
        ("analyze cut in.tape out.tape -p 4711 --families syscall,signal", "one process's calls and signals"),
    ],
    tables: &[Rows::of("cut", &[All(&CUT)])],
    check: |config| families(config).map(drop),
    run: AnswerFn::Writes { make, run, tells_damage: true },
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Only these families of events: syscall, sched, block, signal, ...; process life is always there
    #[arg(long, value_name = "FAMILY,...", value_delimiter = ',')]
    families: Vec<String>,
}

/// The families that are asked for; None: all.
///
/// # Errors
/// There is no such family.
fn families(config: &Config) -> Result<Option<Vec<Family>>> {
    let words = config.own::<Options>()?.families;
    // no events of their own
    let own = |family: &Family| !matches!(family, Family::Unknown | Family::State | Family::Stack);
    let all = || Family::ALL.iter().copied().filter(own);
    let one = |word: &String| match all().find(|family| family.name() == word) {
        Some(family) => Ok(family),
        None => {
            let names: Vec<_> = all().map(Family::name).collect();
            bail!("--families {word}: there is no such family (there are {})", names.join(", "))
        }
    };
    let families = words.iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok((!families.is_empty()).then_some(families))
}

/// Makes the second file of `config`.
fn make(config: &Config) -> Result<Option<NewFile>> {
    let filters = &config.filters;
    let timed = filters.time != (None, None);
    if !timed && filters.pids.is_empty() && filters.cgroups.is_empty() && families(config)?.is_none() {
        let text = "cut: say what to keep: --time FROM,TO, -p, -G or --families";
        return Err(BadUsage(text.to_owned()).into());
    }
    create(config)
}

/// Fills `copy`, the second file of `config`, from `tape`, checks it and reports what it has.
fn run(config: &Config, tape: &Tape, copy: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    let new = copy.context("no file to write to")?;
    let to = new.path().display().to_string();
    let families = families(config)?;
    if let Some(families) = &families {
        families
            .iter()
            .try_for_each(|family| families::require(tape, *family, &format!("events of {}", family.name())))?;
    }
    let mut scope = Scope::new(&config.filters, tape.session(), tape.complete_until(), || question::clock(tape))?;
    if config.filters.tree {
        scope.add_pids(kin::below(tape, &config.filters.pids));
    }
    let window = Window { from: scope.from, to: scope.to };
    if window.from >= window.to || window.from > tape.complete_until() || window.to <= tape.session().window_open {
        let end = seconds(tape.complete_until(), tape.session().window_open);
        bail!("--time: nothing of that time is on the tape, which is from 0 to {end} s");
    }
    let Copied { repaired, copy, good } = fill(new, |file| write(config, tape, file, &scope, families.as_deref()))?;
    if out.is_text() {
        text(out, config, &to, tape, &copy, &repaired, good)?;
    } else {
        let open = tape.session().window_open;
        let cut = copy.session().cut;
        let mut row = Row::new(&CUT);
        row.set("file", config.file.display().to_string()).set("cut", to.clone());
        row.set("from_ns", cut.map(|cut| cut.from.wrapping_sub(open) as i64));
        row.set("to_ns", cut.filter(|cut| cut.to < u64::MAX).map(|cut| cut.to.wrapping_sub(open) as i64));
        row.set("grade", check::grade(good)).set("segments", repaired.segments).set("bytes", copy.len_bytes());
        row.set("holes", check::holes_json(tape, &repaired.holes)).set("more_holes", repaired.holes.more);
        out.rows(&CUT, Judgement::Each, [row])?;
    }
    out.flush()?;
    Ok(Verdict { lost: repaired.holes.count() > 0, bad: !good })
}

fn write(
    config: &Config,
    tape: &Tape,
    file: &File,
    scope: &Scope<'_>,
    families: Option<&[Family]>,
) -> Result<Repaired> {
    let book = CallBook::new(tape.session());
    let accepts = |call: Call| is_accept(&book.get(call).name);
    // where a process is, and what it has open
    let outlasts = |effect: Effect| paths::feed::moves(effect) || fds::calls::matters(effect);
    let tasks = |task: &Task| scope.task(task);
    let choice = Choice {
        window: Window { from: scope.from, to: scope.to },
        tasks: if scope.by_task() { Some(&tasks) } else { None },
        cgroup: &|id| scope.blamed(None, id),
        families,
        outlasts: &|call| outlasts(book.get(call).effect) || accepts(call),
        words: &words(config, families),
    };
    let bar = check::progress("cutting", tape.len_bytes());
    let (out, repaired) = cut(tape, BufWriter::new(file), &choice, &|done| bar.set_position(done))?;
    bar.finish_and_clear();
    sync(out)?;
    Ok(repaired)
}

/// What was asked beside the time.
fn words(config: &Config, families: Option<&[Family]>) -> String {
    let filters = &config.filters;
    let pids: Vec<String> = filters.pids.iter().map(u32::to_string).collect();
    let names: Vec<&str> = families.unwrap_or_default().iter().map(|family| family.name()).collect();
    let mut words = Vec::new();
    if !pids.is_empty() {
        words.push(format!("-p {}{}", pids.join(","), if filters.tree { " --tree" } else { "" }));
    }
    words.extend(filters.cgroups.iter().map(ToString::to_string));
    if !names.is_empty() {
        words.push(format!("--families {}", names.join(",")));
    }
    words.join(" ")
}

fn text(
    out: &mut Out,
    config: &Config,
    to: &str,
    tape: &Tape,
    copy: &Tape,
    repaired: &Repaired,
    good: bool,
) -> Result<()> {
    let from = config.file.display();
    line(out, &format!("{to}: {}: {} segments, {} bytes", check::grade(good), repaired.segments, copy.len_bytes()))?;
    if let Some(cut) = copy.session().cut {
        let open = copy.session().window_open;
        let end = cut.to.min(tape.complete_until());
        let (first, last) = (seconds(cut.from, open), seconds(end, open));
        line(out, &format!("It is about {first} to {last} s of {from}; times in reports are those of {from}."))?;
    }
    if !good {
        line(out, "Something in it is against the rules of the format and was so before: 'analyze check' says what.")?;
    }
    if repaired.holes.count() > 0 {
        line(out, &format!("What {from} has lost stays lost, and reports on the cut say so:"))?;
        check::holes_text(out, tape, &repaired.holes)?;
    }
    Ok(())
}
