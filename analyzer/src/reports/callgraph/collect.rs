//! Events with their stacks, segment by segment. Each segment is first added up by the nodes of its own tree, so names
//! and the trees of other segments are looked up once per distinct stack, not per event.

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::Error;
use systape_format::model::{Args, CallState, Dict, SignalKind, StackOf, StackStatus, Stacks, Task};
use systape_format::reader::Segment;

use super::super::Context;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::io::Io;
use systape_answers::derive::runs::rest::rests;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Graft, NONE};
use systape_answers::derive::stacks::graph::{Key, Stacked};
use systape_answers::derive::stacks::interner::Interner;
use systape_answers::derive::stacks::of::{self, Of};
use systape_answers::derive::stacks::weight::Weight;
use systape_answers::lines::events::picked::PickedEvents;
use systape_events::load::OpenCalls;
use systape_events::moved::moved;
use systape_events::scan::{Coverage, Scan};

/// Adds up the passing events of all segments; `bytes`: also the bytes that calls moved; `folds`: idle waits are one stack. Losses are added
/// to the context's.
pub(super) fn collect(context: &mut Context<'_>, of: &Of, bytes: bool, folds: bool) -> Result<Stacked> {
    let mut all = Stacked::default();
    let scan = match of {
        Of::Syscall => Scan::calls(&context.question),
        _ => Scan::candidates(&context.question),
    };
    let reader = Reader { context, of, bytes, folds, min_dur: context.question.tape.session().stacks.min_dur };
    let coverage = scan.parts(
        |_, segment, coverage| reader.segment(segment, coverage),
        |part| {
            part.merge(&mut all);
        },
    );
    if *of == Of::Syscall
        && let Some(open) = OpenCalls::read(context.question.tape)
    {
        let mut part = Part::default();
        reader.rows(&mut part, u32::MAX, &open.dict, &open.core, &open.time, &Args::default());
        part.merge(&mut all);
    }
    coverage.tell(&mut context.question.loss);
    Ok(all)
}

/// A stack in a segment: node of the innermost user and kernel frame, its end, its thread's name.
type Local = (Option<u32>, Option<u32>, StackEnding, u32);

/// The sums of one segment.
#[derive(Debug, Default)]
struct Part {
    stacks: Stacks,
    unreadable: bool,
    comms: Interner<Vec<u8>>,
    sums: FxHashMap<Local, Weight>,
    /// Of idle waits, if these are folded.
    idle: Weight,
}

impl Part {
    /// Adds the event at `row`, of a task with that name; `missing`: the reason if it has no stack.
    fn add(&mut self, of: StackOf, row: usize, comm: u32, weight: Weight, missing: StackEnding) {
        let missing = if self.unreadable { StackEnding::Unreadable } else { missing };
        let key = match self.stacks.of(of, row as u32) {
            Some(stack) => (stack.user, stack.kernel, StackEnding::Status(stack.status), comm),
            None => (None, None, missing, comm),
        };
        *self.sums.entry(key).or_default() += weight;
    }

    /// Adds a row of a table whose stack column has `code`, of a task with that name.
    fn add_row(&mut self, code: u64, comm: u32, weight: Weight) {
        let key = match self.stacks.of_code(code) {
            Some(stack) => (stack.user, stack.kernel, StackEnding::Status(stack.status), comm),
            None => (None, None, if self.unreadable { StackEnding::Unreadable } else { StackEnding::NotStored }, comm),
        };
        *self.sums.entry(key).or_default() += weight;
    }

    fn comm(&mut self, task: Option<&Task>) -> u32 {
        // an empty name prints as not known
        self.comms.id(&task.map(|task| task.comm.clone()).unwrap_or_default())
    }

    /// Numbers of the names of the segment's tasks.
    fn comms(&mut self, dict: &Dict) -> Vec<u32> {
        dict.tasks.iter().map(|task| self.comm(Some(task))).collect()
    }

    fn merge(&self, all: &mut Stacked) {
        if self.idle.count > 0 {
            all.add_idle(self.idle);
        }
        let comms: Vec<u32> = self.comms.values().iter().map(|comm| all.comms.id(comm)).collect();
        let mut graft = Graft::new(&self.stacks);
        let leaves = self.sums.keys().flat_map(|(user, kernel, ..)| [*user, *kernel]);
        graft.all(&self.stacks, &mut all.forest, leaves.flatten());
        for ((user, kernel, ending, comm), weight) in &self.sums {
            let user = graft.node(&self.stacks, &mut all.forest, *user);
            let kernel = graft.node(&self.stacks, &mut all.forest, *kernel);
            // a status that promises frames without any is damage
            let lying = user == NONE && kernel == NONE && *ending == StackEnding::Status(StackStatus::Complete);
            let ending = if lying { StackEnding::NotStored } else { *ending };
            all.add(Key { user, kernel, ending, comm: comms[*comm as usize] }, *weight);
        }
    }
}

struct Reader<'a> {
    context: &'a Context<'a>,
    of: &'a Of,
    /// The arguments and return values of calls are needed.
    bytes: bool,
    /// Idle waits are one stack.
    folds: bool,
    min_dur: u64,
}

impl Reader<'_> {
    fn segment(&self, segment: &Segment<'_>, coverage: &mut Coverage) -> Part {
        let mut part = Part::default();
        match segment.stacks() {
            Ok(stacks) => part.stacks = stacks,
            Err(error) => {
                part.unreadable = true;
                coverage.finding(segment, "stacks", &error);
            }
        }
        if let Err(error) = self.events(segment, &mut part) {
            match self.of {
                Of::Syscall => coverage.hole(segment, segment.info().rows, &error),
                of => coverage.finding(segment, of.words(), &error),
            }
        }
        part
    }

    fn events(&self, segment: &Segment<'_>, part: &mut Part) -> Result<(), Error> {
        let dict = segment.dict()?;
        match self.of {
            Of::Syscall => self.calls(segment, &dict, part),
            Of::Cpu => self.samples(segment, &dict, part),
            Of::Block => self.blocks(segment, &dict, part),
            Of::Signal => self.signals(segment, &dict, part),
            Of::Table(_) | Of::Timed(_) => self.tables(segment, &dict, part),
            // times off the CPU span segments: they have a way of their own
            Of::Wakeup | Of::OffCpu => self.wakeups(segment, &dict, part),
        }
    }

    fn calls(&self, segment: &Segment<'_>, dict: &Dict, part: &mut Part) -> Result<(), Error> {
        let core = segment.core(dict)?;
        let time = segment.time(dict, &core)?;
        let args = if self.bytes { segment.args(&core)? } else { Default::default() };
        self.rows(part, segment.info().segment, dict, &core, &time, &args);
        Ok(())
    }

    /// Calls of the segment with that number, or those that are still open; `args` may be empty.
    fn rows(
        &self,
        part: &mut Part,
        number: u32,
        dict: &Dict,
        core: &systape_format::model::Core,
        time: &systape_format::model::Time,
        args: &Args,
    ) {
        let filter = self.context.question.scope.segment(dict, number);
        let comms = part.comms(dict);
        let calls: Vec<_> = dict.calls.iter().map(|call| self.context.question.book.get(*call)).collect();
        for row in 0..core.call.len() {
            let state = core.state[row];
            // no one called the child's side of a clone
            if state == CallState::CloneChild || !filter.core(core, row) || !filter.time(time, row) {
                continue;
            }
            let info = &calls[core.call[row] as usize];
            let dur = core.dur[row];
            let mut weight = Weight { count: 1, ..Weight::default() };
            match state {
                CallState::Complete => weight.time = dur,
                CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore
                    if !info.is_exit =>
                {
                    (weight.time, weight.open) = (dur, 1);
                }
                _ => weight.untimed = 1,
            }
            if self.bytes {
                let moved = moved(info, state, core.errno[row], args.ret.get(row).copied(), args.of(row));
                (weight.bytes, weight.short) = (moved.least(), moved.is_short().into());
            }
            if self.folds && rests(info, None) {
                part.idle += weight;
                continue;
            }
            let short = state == CallState::Complete && dur < self.min_dur;
            let missing = if short { StackEnding::Short } else { StackEnding::NotStored };
            part.add(StackOf::Syscall, row, comms[core.task[row] as usize], weight, missing);
        }
    }

    fn samples(&self, segment: &Segment<'_>, dict: &Dict, part: &mut Part) -> Result<(), Error> {
        let frequency = u64::from(self.context.question.tape.session().stacks.frequency);
        let period = 1_000_000_000_u64.checked_div(frequency);
        let samples = segment.samples(dict)?;
        let comms = part.comms(dict);
        let passing = self.passing(dict);
        for (row, sample) in samples.iter().enumerate() {
            let task = sample.task as usize;
            if passing.get(task) != Some(&true) || !self.context.question.scope.at(sample.ts) || !self.on(sample.cpu) {
                continue;
            }
            let untimed = u64::from(period.is_none());
            let weight = Weight { count: 1, time: period.unwrap_or(0), untimed, ..Weight::default() };
            part.add(StackOf::Sample, row, comms[task], weight, StackEnding::NotStored);
        }
        Ok(())
    }

    fn blocks(&self, segment: &Segment<'_>, dict: &Dict, part: &mut Part) -> Result<(), Error> {
        let ios = segment.blocks(dict)?;
        let files = Files::read(segment, dict, &ios)?;
        for (row, event) in ios.iter().enumerate() {
            let io = Io::new(event, dict).with(&files);
            if !io.passes(&self.context.question.scope) {
                continue;
            }
            let latency = io.latency();
            let weight = Weight {
                count: 1,
                time: latency.unwrap_or(0),
                bytes: u64::from(event.bytes),
                untimed: u64::from(latency.is_none()),
                ..Weight::default()
            };
            // the stack is of who queued it, whoever it is blamed on
            let comm = part.comm(io.origin);
            part.add(StackOf::Block, row, comm, weight, StackEnding::NotStored);
        }
        Ok(())
    }

    fn signals(&self, segment: &Segment<'_>, dict: &Dict, part: &mut Part) -> Result<(), Error> {
        let passing = self.passing(dict);
        for (row, event) in segment.signals(dict)?.iter().enumerate() {
            let either = [event.sender, Some(event.target)].into_iter().flatten();
            let passes = either.into_iter().any(|task| passing.get(task as usize) == Some(&true));
            if event.kind != SignalKind::Generate || !passes || !self.context.question.scope.at(event.ts) {
                continue;
            }
            let comm = part.comm(event.sender.and_then(|task| dict.tasks.get(task as usize)));
            part.add(StackOf::Signal, row, comm, Weight { count: 1, ..Weight::default() }, StackEnding::NotStored);
        }
        Ok(())
    }

    fn wakeups(&self, segment: &Segment<'_>, dict: &Dict, part: &mut Part) -> Result<(), Error> {
        let passing = self.passing(dict);
        for (row, event) in segment.wakeups(dict)?.iter().enumerate() {
            let either = [event.waker, Some(event.wakee)].into_iter().flatten();
            let passes = either.into_iter().any(|task| passing.get(task as usize) == Some(&true));
            if !passes || !self.context.question.scope.at(event.ts) || !self.on(event.cpu) {
                continue;
            }
            let comm = part.comm(event.waker.and_then(|task| dict.tasks.get(task as usize)));
            part.add(StackOf::Wakeup, row, comm, Weight { count: 1, ..Weight::default() }, StackEnding::NotStored);
        }
        Ok(())
    }

    fn tables(&self, segment: &Segment<'_>, dict: &Dict, part: &mut Part) -> Result<(), Error> {
        let comms = part.comms(dict);
        let nobody = part.comm(None);
        for table in segment.tables(dict)?.iter().filter(|table| self.of.names(&table.def)) {
            let picked = PickedEvents::new(table, &self.context.question.scope, dict);
            let Some(codes) = table.stacks() else { continue };
            let at = of::duration(&table.def);
            let durations = at.and_then(|at| table.column(&table.def.columns[at].name));
            let is_unread = |row: usize| at.is_some_and(|at| table.is_unread(row, at));
            let looks = table.column("looks").zip(table.column("interval")).filter(|_| of::is_of_looks(&table.def));
            for row in picked.rows() {
                let comm = picked.task(row).and_then(|task| comms.get(task)).copied().unwrap_or(nobody);
                let (count, time, untimed) = match looks {
                    Some((looks, interval)) => (looks[row], looks[row].saturating_mul(interval[row]), false),
                    None if is_unread(row) => (1, 0, true),
                    None => (1, durations.map_or(0, |durations| durations[row]), false),
                };
                part.add_row(codes[row], comm, Weight { count, time, untimed: untimed.into(), ..Weight::default() });
            }
        }
        Ok(())
    }

    /// The tasks of a segment that pass.
    fn passing(&self, dict: &Dict) -> Vec<bool> {
        dict.tasks.iter().map(|task| self.context.question.scope.task(task)).collect()
    }

    fn on(&self, cpu: u32) -> bool {
        self.context.question.scope.filters().cpus.as_ref().is_none_or(|cpus| cpus.binary_search(&cpu).is_ok())
    }
}
