//! The hottest functions of the path's own code, from the CPU samples that fell into it. Where one of these is lost, or its stack is, none
//! is named: their shares would be others.

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::{Dict, Sample, StackOf, StackStatus, Stacks};
use systape_format::reader::Tape;

use super::budget::Hottest;
use crate::reports::Context;
use crate::reports::traced::Traced;
use crate::reports::traced::cause::Cause;
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::log::Log;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Graft, NONE};
use systape_answers::derive::stacks::graph::{Graph, Key, StackRoot, Stacked};
use systape_answers::derive::stacks::names::Names;
use systape_answers::derive::stacks::recorded;
use systape_answers::derive::stacks::weight::{Metric, Weight, percent};
use systape_events::scan::Scan;
use systape_events::values::words::escaped;

/// Fewer samples name no function.
const FEWEST: u64 = 10;
/// Functions with a smaller share of a thread's samples, in percent, are left out, ...
const LEAST: f64 = 10.0;
/// ... and those behind the first few.
const MOST: usize = 2;

/// Whether the tape has CPU samples with stacks.
pub(super) fn has_samples(tape: &Tape) -> bool {
    recorded::kinds(tape).contains(&StackOf::Sample)
}

/// Functions of the path's time on a CPU; empty: the tape has no such samples, or not all of them.
pub(super) fn hottest(context: &mut Context<'_>, traced: &Traced, log: &Log) -> Result<Hottest> {
    let tape = context.question.tape;
    if !has_samples(tape) {
        return Ok(Hottest::default());
    }
    let on_cpu = OnCpu::of(traced);
    let (mut stacked, mut whole) = (Stacked::default(), true);
    let coverage = Scan::all(tape).walk(
        "CPU samples and stacks",
        |segment, dict| Ok((segment.samples(dict)?, segment.stacks()?)),
        |_, dict, (samples, stacks)| {
            whole &= add(&mut stacked, &samples, &stacks, |sample| on_cpu.name(sample, dict, log));
        },
    );
    coverage.tell(&mut context.question.loss);
    // names are written at the end of a recording
    if tape.end_mark().is_none() {
        context.question.loss.cut.get_or_insert(tape.complete_until());
    }
    // a switch that is lost changes the path
    if !whole || !context.question.loss.complete() {
        return Ok(Hottest::default());
    }
    let names = Names::read(tape, &mut Vec::new());
    let graph = Graph::new(&stacked, &names, StackRoot::Callee, Metric::Count);
    let threads = graph.nodes[0].children.iter().map(|at| &graph.nodes[*at as usize]);
    let enough = threads.filter(|thread| thread.total.count >= FEWEST);
    let functions = enough.map(|thread| {
        let share = |at: &u32| percent(graph.nodes[*at as usize].total.count, thread.total.count);
        let hot = thread.children.iter().filter(|at| share(at) >= LEAST && graph.label(**at).named).take(MOST);
        let texts = hot.map(|at| format!("{} {:.0}%", escaped(&graph.label(*at).name), share(at)));
        (graph.comms[thread.label as usize].clone(), texts.collect())
    });
    Ok(functions.collect())
}

/// When threads of the path were on a CPU.
struct OnCpu(FxHashMap<Id, Vec<(u64, u64)>>);

impl OnCpu {
    fn of(traced: &Traced) -> Self {
        let mut by_thread: FxHashMap<Id, Vec<(u64, u64)>> = FxHashMap::default();
        for found in traced.found.iter().filter(|found| found.cause == Cause::Cpu) {
            by_thread.entry(found.part.thread).or_default().push((found.part.from, found.part.to));
        }
        by_thread.values_mut().for_each(|parts| parts.sort_unstable());
        Self(by_thread)
    }

    /// The name of the sample's thread; None: it is not of the path.
    fn name<'d>(&self, sample: &Sample, dict: &'d Dict, log: &Log) -> Option<&'d [u8]> {
        let task = dict.tasks.get(sample.task as usize)?;
        let parts = self.0.get(&log.ids.known(task)?)?;
        let (from, to) = parts[..parts.partition_point(|(from, _)| *from <= sample.ts)].last()?;
        (*from..*to).contains(&sample.ts).then_some(&*task.comm)
    }
}

/// Adds the samples that `name` gives the name of a thread, and that were in no call: they have no frames of the kernel. Says whether all have
/// a stack.
fn add<'d>(
    stacked: &mut Stacked,
    samples: &[Sample],
    stacks: &Stacks,
    name: impl Fn(&Sample) -> Option<&'d [u8]>,
) -> bool {
    let (mut found, mut whole) = (Vec::new(), true);
    for (row, sample) in samples.iter().enumerate() {
        let Some(comm) = name(sample) else { continue };
        match stacks.of(StackOf::Sample, row as u32).map(|stack| (stack.user, stack.kernel)) {
            Some((Some(user), None)) => found.push((user, comm)),
            Some((_, Some(_))) => {}
            Some((None, None)) | None => whole = false,
        }
    }
    let mut graft = Graft::new(stacks);
    graft.all(stacks, &mut stacked.forest, found.iter().map(|(user, _)| *user));
    for (user, comm) in found {
        let user = graft.node(stacks, &mut stacked.forest, Some(user));
        let comm = stacked.comms.id(&comm.to_vec());
        let key = Key { user, kernel: NONE, ending: StackEnding::Status(StackStatus::Complete), comm };
        stacked.add(key, Weight { count: 1, ..Weight::default() });
    }
    whole
}
