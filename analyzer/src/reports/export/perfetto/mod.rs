//! `analyze export perfetto`: tapes as a trace that ui.perfetto.dev and trace_processor open.
//!
//! Switches, wake-ups, process life, signals and block I/O become the kernel's events ([`sched`], [`kernel`]), of which Perfetto makes
//! its own tracks of CPUs and thread states. Calls become slices on the tracks of their threads, because only those have names and
//! strings as arguments ([`calls`]). The tape is read once, a few segments at a time.

mod calls;
mod clocks;
mod connections;
mod ftrace;
mod kernel;
mod kills;
mod lost;
mod machine;
mod offcpu;
mod packets;
mod samples;
mod sched;
mod size;
mod slices;
mod tracks;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use systape_format::model::{BlockIo, CallState, Family, ProcessEvent, SignalEvent, StackOf, Switch, Task, Wakeup};
use systape_format::reader::{Segment, Tape};

use self::calls::Calls;
use self::clocks::Boot;
use self::connections::Connections;
use self::ftrace::Bundles;
use self::packets::Packets;
use self::sched::Sched;
use self::slices::SliceWriter;
use self::tracks::{ThreadTracks, Track};
use super::{made, named_file, not_text};
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, CALLS, Own, PATHS, Reads, TASKS, View};
use crate::asked::options::stacks::SymbolPlaces;
use crate::reports::{Context, kills as killed, losses, net, rate};
use systape_answers::derive::block::files::Files;
use systape_answers::derive::processes;
use systape_answers::derive::signals::{SignalChoice, Tracker};
use systape_answers::derive::stacks::debug_files;
use systape_answers::derive::stacks::names::Names;
use systape_answers::derive::stacks::recorded;
use systape_answers::render::out::Out;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::open::open;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::load::{Base, OpenCalls};
use systape_events::loss::{Hole, ListedLoss};
use systape_events::question::samples as clock_samples;
use systape_events::scan::{Coverage, Scan};
use systape_events::values::words::escaped;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "export perfetto",
    about: "A time line for ui.perfetto.dev: calls with arguments, CPUs, thread states, wake-ups, signals, losses",
    options: &[TASKS, CALLS, PATHS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze export perfetto t.tape -o t.pftrace", "open the file in ui.perfetto.dev"),
        ("analyze export perfetto -o t.pftrace --time 12,14 -e '!futex'", "two seconds, without one kind of call"),
    ],
    check: |config| {
        not_text(config)?;
        named_file(config.own::<Options>()?.output).map(drop)
    },
    reads: |config| -> Result<Reads> { config.own::<Options>()?.names.reads() },
    run: AnswerFn::Exports { make: |config| made(config, config.own::<Options>()?.output), run },
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

/// The families that are in a trace.
const FAMILIES: [Family; 8] = [
    Family::Syscall,
    Family::Process,
    Family::Sched,
    Family::Block,
    Family::Signal,
    Family::Net,
    Family::Sample,
    Family::Stack,
];

/// Slices of time in which calls are counted.
const COUNTED: u16 = 1000;

/// A name as text of a trace, which must be UTF-8.
fn text(bytes: &[u8]) -> String {
    escaped(bytes)
}

fn run(config: &Config, tapes: &[PathBuf], file: Option<&mut NewFile>, out: &mut Out) -> Result<Verdict> {
    let file = named_file(file)?;
    let own: Options = config.own()?;
    let path = file.path().to_owned();
    let cannot = || format!("cannot write {}", path.display());
    // a file that is there stays if one of them is no tape
    let tapes = placed(tapes)?;
    let several = tapes.len() > 1;
    file.file().set_len(0).with_context(cannot)?;
    let mut written = BufWriter::with_capacity(1 << 20, file.file());
    let mut verdict = Verdict::default();
    for (number, Placed { path, boot, machine }) in tapes.into_iter().enumerate() {
        let config = if several { config.of(&path) } else { config.clone() };
        let tape = open(&path)?;
        let one = OneTape { config: &config, tape: &tape, path: &path, boot, number: number as u32, machine };
        verdict = verdict.and(one.write(&own.names, &mut written, out).with_context(|| path.display().to_string())?);
    }
    written.flush().with_context(cannot)?;
    drop(written);
    file.keep();
    Ok(verdict)
}

/// A tape with its clock and its machine's number.
struct Placed {
    path: PathBuf,
    boot: Boot,
    machine: u32,
}

/// The tapes on one clock: that of the machine that booted first, because Perfetto has no time before that of its first machine.
fn placed(tapes: &[PathBuf]) -> Result<Vec<Placed>> {
    let mut all = Vec::new();
    for path in tapes {
        let tape = open(path)?;
        all.push((Boot::new(clock_samples(&tape)), tape.session().boot_id.clone(), path.clone()));
    }
    all.sort_by_key(|(boot, ..)| boot.booted());
    let mut machines: Vec<(String, Boot)> = Vec::new();
    let mut placed = Vec::new();
    for (boot, id, path) in all {
        let known = machines.iter().position(|(known, _)| *known == id && !id.is_empty());
        let (machine, boot) = match (known, machines.first()) {
            (Some(at), _) => (at, boot.with(&machines[at].1)),
            (None, Some((_, first))) => (machines.len(), boot.beside(first)),
            (None, None) => (0, boot),
        };
        if known.is_none() {
            machines.push((id, boot.clone()));
        }
        placed.push(Placed { path, boot, machine: machine as u32 });
    }
    Ok(placed)
}

type TraceFile<'a> = BufWriter<&'a File>;

/// Whether `tape` has times off the CPU with their stacks.
fn has_waits(tape: &Tape) -> bool {
    let kinds = recorded::kinds(tape);
    let stacks = kinds.contains(&StackOf::Switch) || kinds.contains(&StackOf::Asleep);
    stacks && families::recorded(tape, Family::Sched) == Some(true)
}

/// One tape of a trace.
struct OneTape<'a> {
    config: &'a Config,
    tape: &'a Tape,
    path: &'a Path,
    boot: Boot,
    /// Its number in the trace.
    number: u32,
    /// Its machine's; 0: the trace's own.
    machine: u32,
}

/// What is made of a segment side by side, and what must be taken in order.
#[derive(Default)]
struct Part {
    calls: Calls,
    samples: Vec<u8>,
    tasks: Vec<Task>,
    switches: Vec<Switch>,
    wakeups: Vec<Wakeup>,
    life: Vec<ProcessEvent>,
    signals: Vec<SignalEvent>,
    blocks: Vec<BlockIo>,
    files: Files,
}

impl OneTape<'_> {
    /// No packets yet.
    fn packets(&self) -> Packets {
        Packets::of(self.number, self.machine)
    }

    fn write(&self, dirs: &SymbolPlaces, file: &mut TraceFile<'_>, out: &mut Out) -> Result<Verdict> {
        let (tape, boot) = (self.tape, &self.boot);
        let mut context = Context::about(self.config, tape, &FAMILIES)?;
        let mut findings = Vec::new();
        let names = self.names(dirs, &mut findings)?;
        self.config.shown.rows(0);
        let scan = Scan::candidates(&context.question);
        size::warn(&context, scan.segments(), self.path, out);
        let mut packets = self.packets();
        boot.write(&mut packets);
        machine::system(&mut packets, tape.session());
        let (mut sched, mut threads, mut slices) = (Sched::default(), ThreadTracks::default(), SliceWriter::default());
        let switches = families::recorded(tape, Family::Sched) != Some(false);
        if let Ok(checkpoint) = tape.checkpoint(0) {
            let began = tape.session().window_open.max(context.question.scope.from);
            machine::tasks(&mut packets, &checkpoint, boot.at(began));
            // who ran when a later part begins is not known
            if switches && context.question.scope.from <= tape.session().window_open {
                sched.begin(&checkpoint, began);
            }
        }
        let mut bundles = Bundles::default();
        let reading = &context;
        let coverage = scan.try_parts(
            |at, segment, coverage| self.part(reading, (at, segment), &names, coverage),
            |part| {
                self.take(reading, part, (&mut sched, switches), &mut bundles, (&mut packets, &mut threads));
                file.write_all(&std::mem::take(&mut packets.bytes)).map(ControlFlow::Continue)
            },
        )?;
        sched.finish(boot, &mut bundles);
        bundles.write(&mut packets);
        if let Some(open) = OpenCalls::read(tape) {
            let open = open.load(&context.question.book);
            let filter = context.question.scope.segment(&open.dict, u32::MAX);
            let rows = (0..open.rows()).filter(|row| filter.core(&open.core, *row) && filter.time(&open.time, *row));
            let calls = calls::slices(&open, rows, boot, self.packets());
            self.config.shown.rows(calls.count as usize);
            calls.threads.iter().for_each(|task| threads.tell(&mut packets, task));
            packets.bytes.extend_from_slice(&calls.bytes);
        }
        coverage.tell(&mut context.question.loss);
        context.question.loss.findings.extend(findings);
        self.kills(&mut context, (&mut packets, &mut slices, &mut threads))?;
        self.connections(&mut context, (&mut packets, &mut slices))?;
        self.counts(&context, (&mut packets, &mut slices));
        if has_waits(tape) {
            offcpu::write(&mut context, &names, boot, self.packets(), file)?;
        }
        lost::write(&mut packets, &mut slices, &context.question.loss, (boot, tape.complete_until()));
        file.write_all(&packets.bytes)?;
        losses::tell_filtered(&context, out);
        let verdict = losses::end(&context, out, false, ListedLoss::Nothing)?;
        Ok(losses::damage(tape.misses(), verdict, out))
    }

    /// Names of functions on the stacks of samples and of times off the CPU.
    fn names(&self, dirs: &SymbolPlaces, findings: &mut Vec<String>) -> Result<Names> {
        if !recorded::kinds(self.tape).contains(&StackOf::Sample) && !has_waits(self.tape) {
            return Ok(Names::default());
        }
        debug_files::find(self.tape, || recorded::places(self.tape), &dirs.debug_dirs, findings)
    }

    fn part(
        &self,
        context: &Context<'_>,
        (at, segment): (usize, &Segment<'_>),
        names: &Names,
        coverage: &mut Coverage,
    ) -> Part {
        let mut part = Part::default();
        let scope = &context.question.scope;
        let dict = match segment.dict() {
            Ok(dict) => dict,
            Err(error) => {
                coverage.hole(segment, segment.info().rows, &error);
                return part;
            }
        };
        macro_rules! read {
            ($list:ident, $what:literal) => {
                match segment.$list(&dict) {
                    Ok(list) => list,
                    Err(error) => {
                        coverage.finding(segment, $what, &error);
                        Vec::new()
                    }
                }
            };
        }
        part.switches = read!(switches, "switches");
        part.wakeups = read!(wakeups, "wake-ups");
        part.life = read!(processes, "events of process life");
        part.signals = read!(signals, "signals");
        part.blocks = read!(blocks, "block I/Os");
        part.switches.retain(|event| scope.at(event.ts));
        part.wakeups.retain(|event| scope.at(event.ts));
        part.life.retain(|event| scope.at(event.ts));
        part.signals.retain(|event| scope.at(event.ts));
        part.files = Files::read(segment, &dict, &part.blocks).unwrap_or_else(|error| {
            coverage.finding(segment, "names of files", &error);
            Files::default()
        });
        part.blocks.retain(|event| scope.at(event.complete));
        let samples = read!(samples, "CPU samples");
        if !samples.is_empty() {
            let stacks = segment.stacks().unwrap_or_else(|error| {
                coverage.finding(segment, "stacks", &error);
                Default::default()
            });
            let passes = |sample: &systape_format::model::Sample| {
                scope.at(sample.ts) && dict.tasks.get(sample.task as usize).is_some_and(|task| scope.task(task))
            };
            part.samples =
                samples::packets(&samples, &dict.tasks, (&stacks, names), &self.boot, self.packets(), passes);
        }
        part.tasks = dict.tasks.clone();
        if segment.info().rows == 0 {
            return part;
        }
        let mut holes: Vec<Hole> = Vec::new();
        let number = segment.info().segment;
        if let Some(base) = Base::of(self.tape.segment(at), Ok(dict), &mut holes, |_, _| true) {
            let loaded = base.load(&context.question.book, &mut holes);
            let filter = scope.segment(&loaded.dict, number);
            let (core, time) = (&loaded.core, &loaded.time);
            let passes = |row: &usize| {
                core.state[*row] != CallState::CloneChild && filter.core(core, *row) && filter.time(time, *row)
            };
            part.calls = calls::slices(&loaded, (0..loaded.rows()).filter(passes), &self.boot, self.packets());
        }
        coverage.holes(holes);
        part
    }

    /// Takes the parts of a segment in their order.
    fn take(
        &self,
        context: &Context<'_>,
        part: Part,
        (sched, switches): (&mut Sched, bool),
        bundles: &mut Bundles,
        (packets, threads): (&mut Packets, &mut ThreadTracks),
    ) {
        let (boot, tasks) = (&self.boot, &part.tasks);
        for event in &part.life {
            kernel::life(event, tasks, boot, switches.then_some(&mut *sched), bundles);
        }
        part.signals.iter().for_each(|event| kernel::signal(event, tasks, boot, bundles));
        part.blocks.iter().for_each(|io| kernel::block(io, &part.files, tasks, boot, bundles));
        sched.events(tasks, (&part.switches, &part.wakeups), boot, bundles);
        bundles.write(packets);
        part.calls.threads.iter().for_each(|task| threads.tell(packets, task));
        packets.bytes.extend_from_slice(&part.calls.bytes);
        packets.bytes.extend_from_slice(&part.samples);
        // of what filters choose
        context.config.shown.rows(part.calls.count as usize + usize::from(!part.samples.is_empty()));
    }

    /// What `analyze kills` lists.
    fn kills(
        &self,
        context: &mut Context<'_>,
        (packets, slices, threads): (&mut Packets, &mut SliceWriter, &mut ThreadTracks),
    ) -> Result<()> {
        if families::recorded(self.tape, Family::Signal) == Some(false) {
            return Ok(());
        }
        let mut findings = Vec::new();
        let processes = processes::read::read(self.tape, &mut findings);
        let scope = &context.question.scope;
        let passes = |_: Option<&Task>, _: &Task, ts: u64| scope.at(ts);
        let choice = SignalChoice::default();
        let tracker = Tracker::new(&processes, &choice, Box::new(passes));
        let records = killed::records(context, tracker, &mut findings)?;
        kills::write(packets, slices, threads, &records, &self.boot);
        context.question.loss.findings.extend(findings);
        Ok(())
    }

    /// What `analyze net` lists.
    fn connections(
        &self,
        context: &mut Context<'_>,
        (packets, slices): (&mut Packets, &mut SliceWriter),
    ) -> Result<()> {
        if families::recorded(self.tape, Family::Net) != Some(true) {
            return Ok(());
        }
        let (mut connections, mut loss) = (Connections::default(), context.question.loss.clone());
        net::walk(context, &mut loss, |found, window| {
            for connection in &found {
                connections.write(packets, slices, connection, window, &self.boot);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        context.question.loss = loss;
        Ok(())
    }

    /// What `analyze rate` counts.
    fn counts(&self, context: &Context<'_>, (packets, slices): (&mut Packets, &mut SliceWriter)) {
        if families::recorded(self.tape, Family::Syscall) == Some(false) {
            return;
        }
        let (slots, counts) = rate::in_slices(context, COUNTED);
        let us = slots.width.div_ceil(1000);
        Track::CallsBegun.counted(packets, "Calls begun", &format!("calls in {us} us"));
        for (at, count) in counts.iter().enumerate() {
            let ts = self.boot.at(slots.start(at as u64));
            slices.count(packets, ts, Track::CallsBegun, i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }
}
