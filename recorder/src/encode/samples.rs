//! CPU samples and threads that sleep: stacks that are rows of their own.

use systape_format::model::{CPU_NONE, Family, Gap, GapCause, Sample, Sleeper, StackOf};

use super::rows::Rows;
use super::stacks::{StackSegment, Waiting};
use super::world::World;
use crate::stacks::taken::{StackBatch, TakenStack};
use crate::tasks::TaskId;

/// Stacks that wait for the watermark.
#[derive(Debug, Default)]
pub(super) struct WaitingSamples(Vec<(TakenStack, Waiting)>);

impl WaitingSamples {
    /// Adds stacks; those of events wait elsewhere.
    pub(crate) fn add(&mut self, taken: StackBatch, world: &World, rows: &mut Rows) {
        if let Some((first, last)) = taken.mappings_lost {
            // of how many stacks is not known
            let (cause, family) = (GapCause::RingFull, Family::Stack);
            rows.gap(Gap { cause, family, cpu: CPU_NONE, count: 0, first, last, pid: 0, ledger: false });
        }
        let mut into = StackSegment { builder: &mut rows.builder, number: rows.segment, tasks: &world.tasks };
        rows.stacks.add_codes(&taken.codes);
        for mut stack in taken.stacks {
            let waiting = Waiting::of(&mut stack);
            match stack.key.of {
                StackOf::Sample | StackOf::Asleep => self.0.push((stack, waiting)),
                _ => rows.stacks.add(stack.ts, stack.key, waiting, &mut into),
            }
        }
    }

    /// The stacks before `watermark`.
    pub(crate) fn take(&mut self, watermark: u64) -> Vec<(TakenStack, Waiting)> {
        let (now, later) = self.0.drain(..).partition(|(sample, _)| sample.ts < watermark);
        self.0 = later;
        now
    }
}

/// A sample or a sleeper becomes a row.
pub(super) fn record(taken: &TakenStack, stack: &Waiting, world: &mut World, rows: &mut Rows) {
    rows.latest = rows.latest.max(taken.ts);
    let id = world.tasks.meet(&taken.who);
    let row = match taken.key.of {
        StackOf::Asleep => sleeper(taken, id, world, rows),
        _ if rows.sheds(Family::Sample, taken.ts) => return,
        _ => sample(taken, id, world, rows),
    };
    let mut into = StackSegment { builder: &mut rows.builder, number: rows.segment, tasks: &world.tasks };
    rows.stacks.push(taken.key.of, row, id, stack, &mut into);
}

fn sample(sample: &TakenStack, id: TaskId, world: &mut World, rows: &mut Rows) -> u32 {
    let task = rows.task(&mut world.tasks, id);
    rows.stored(Family::Sample, sample.ts);
    let (ts, cpu, kernel) = (sample.ts, sample.cpu, sample.in_kernel);
    rows.builder.push_sample(Sample { ts, cpu, task, kernel })
}

fn sleeper(sleeper: &TakenStack, id: TaskId, world: &mut World, rows: &mut Rows) -> u32 {
    let (ts, state) = (sleeper.ts, sleeper.state);
    let task = rows.task(&mut world.tasks, id);
    rows.first_row.get_or_insert(ts);
    rows.builder.push_sleeper(Sleeper { ts, task, state })
}
