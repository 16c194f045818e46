//! `analyze export firefox`: a tape as a profile that the Firefox Profiler (profiler.firefox.com) opens.
//!
//! Calls, block I/Os and signals are markers, CPU samples and times off the CPU samples with stacks ([`read`], [`waits`], [`signals`]). All
//! is gathered in memory, of which limits keep it small ([`gathered`]), and written column by column ([`mod@write`]).

mod categories;
mod gathered;
mod json;
mod longest;
mod lost;
mod markers;
mod read;
mod signals;
mod stacks;
mod threads;
mod waits;
mod write;

use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use systape_format::model::Family;
use systape_format::reader::Tape;

use self::gathered::GatheredProfile;
use self::longest::{KeptEvents, OPEN};
use self::read::SegmentReader;
use self::write::ProfileWriter;
use super::{made, named_file, not_text};
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, CALLS, Own, PATHS, Reads, TASKS, View};
use crate::asked::options::stacks::SymbolPlaces;
use crate::reports::{Context, losses};
use systape_answers::derive::processes;
use systape_answers::derive::stacks::debug_files;
use systape_answers::render::out::Out;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::say::Verdict;
use systape_events::load::OpenCalls;
use systape_events::loss::ListedLoss;
use systape_events::scan::Scan;
use systape_events::values::devices::Devices;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "export firefox",
    about: "A profile for profiler.firefox.com: calls as markers, CPU samples and times off the CPU with their stacks",
    options: &[TASKS, CALLS, PATHS, &["time", "max_events"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze export firefox t.tape -o t.json.gz", "open the file in profiler.firefox.com"),
        ("analyze export firefox -o t.json.gz --time 12,14 -e '!futex'", "two seconds, without one kind of call"),
    ],
    check: |config| {
        not_text(config)?;
        if config.is_of_many() {
            bail!("a profile is of one tape: export one at a time");
        }
        named_file(config.own::<Options>()?.output).map(drop)
    },
    reads: |config| -> Result<Reads> { config.own::<Options>()?.names.reads() },
    run: AnswerFn::Writes { make: |config| made(config, config.own::<Options>()?.output), run, tells_damage: false },
    ..View::PLAIN
};

#[derive(Debug, Default, clap::Args)]
struct Options {
    /// Write to FILE
    #[arg(short = 'o', long = "output", value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    names: SymbolPlaces,
}

/// The families that are in a profile.
const FAMILIES: [Family; 7] =
    [Family::Syscall, Family::Process, Family::Sched, Family::Block, Family::Signal, Family::Sample, Family::Stack];

/// Most calls and block I/Os: the profiler takes a few seconds to open as many.
const MOST: u64 = 1_000_000;

fn run(config: &Config, tape: &Tape, file: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let file = named_file(file)?;
    let mut context = Context::about(config, tape, &FAMILIES)?;
    config.shown.rows(0);
    let mut profile = GatheredProfile::default();
    segments(&mut context, &mut profile);
    let left_waits = waits::read(&mut context, &mut profile)?;
    config.shown.rows(profile.waits.len());
    let mut findings = Vec::new();
    let processes = processes::read::read(tape, &mut findings);
    let left_signals = signals::read(&mut context, &processes, &mut profile)?;
    let names = debug_files::find(tape, || profile.stacked.forest.places(), &own.names.debug_dirs, &mut findings)?;
    context.question.loss.findings.extend(findings);
    let left = lost::left_out(&profile, left_waits, left_signals);
    lost::mark(&mut profile, &context.question.loss, tape.session(), tape.complete_until());
    let mut notes = losses::lines(&context, ListedLoss::Nothing);
    notes.extend(losses::filtered(&context));
    notes.extend(left.iter().cloned());
    let path = file.path().to_owned();
    let cannot = || format!("cannot write {}", path.display());
    file.file().set_len(0).with_context(cannot)?;
    let mut written = BufWriter::with_capacity(1 << 16, GzEncoder::new(file.file(), Compression::default()));
    let writer = ProfileWriter::new(tape, &profile, (&processes, &names));
    writer.write(&mut written, &notes).with_context(cannot)?;
    written.into_inner().map_err(|error| error.into_error()).and_then(GzEncoder::finish).with_context(cannot)?;
    file.keep();
    losses::tell_filtered(&context, out);
    left.iter().for_each(|line| out.say(line));
    losses::end(&context, out, false, ListedLoss::Nothing)
}

/// Reads all segments.
fn segments(context: &mut Context<'_>, profile: &mut GatheredProfile) {
    let (question, shown) = (&context.question, &context.config.shown);
    let most = usize::try_from(context.config.max_events.min(MOST)).unwrap_or(usize::MAX);
    let reader = SegmentReader {
        question,
        kept: KeptEvents::of(question, most),
        devices: Devices::new(question.tape.session()),
    };
    let coverage = Scan::candidates(question).parts(
        |at, segment, coverage| reader.part(at as u32, segment, coverage),
        |part| shown.rows(profile.take(part)),
    );
    if let Some(open) = OpenCalls::read(question.tape) {
        shown.rows(profile.take(reader.open(open, OPEN)));
    }
    coverage.tell(&mut context.question.loss);
}
