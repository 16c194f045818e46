//! Times off the CPU, as `analyze callgraph --of offcpu` adds them up, one by one.

use std::cmp::Reverse;

use anyhow::Result;
use systape_answers::derive::stacks::recorded;
use systape_events::families;
use systape_format::model::{Family, StackOf};

use super::gathered::{GatheredProfile, MOST_SAMPLES};
use super::longest::FirstValues;
use super::stacks::ForestStack;
use super::threads::OffCpuWait;
use crate::reports::Context;
use crate::reports::callgraph::offcpu;

/// What is left out of times off the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftWaits {
    /// Number of times.
    pub count: u64,
    /// Sum of the times, ns.
    pub ns: u64,
}

/// Adds the times off the CPU of threads that pass, if the tape has their stacks; of too many the longest. What is missing is added to
/// the losses of `context`.
///
/// # Errors
/// The tape has no scheduler events after all.
pub(super) fn read(context: &mut Context<'_>, profile: &mut GatheredProfile) -> Result<LeftWaits> {
    let tape = context.question.tape;
    let kinds = recorded::kinds(tape);
    let has_stacks = kinds.contains(&StackOf::Switch) || kinds.contains(&StackOf::Asleep);
    if !has_stacks || families::recorded(tape, Family::Sched) != Some(true) {
        return Ok(LeftWaits::default());
    }
    let (threads, stacks) = (&mut profile.threads, &mut profile.stacks);
    let mut first = FirstValues::of(MOST_SAMPLES);
    let mut all = 0_u64;
    let before = std::mem::take(&mut profile.stacked);
    profile.stacked = offcpu::walk(context, false, before, |_, away| {
        let (key, ns) = (away.key, away.weight.time);
        let stack = ForestStack { user: key.user, kernel: key.kernel, ending: key.ending, in_kernel: true };
        all = all.saturating_add(ns);
        first.add((Reverse(ns), away.from, threads.number(away.task), stacks.id(&stack)));
    })?;
    let (kept, count) = first.finish();
    let wait = |(Reverse(ns), ts, thread, stack)| OffCpuWait { thread, ts, ns, stack };
    profile.waits = kept.into_iter().map(wait).collect();
    let ns = profile.waits.iter().fold(all, |left, wait| left.saturating_sub(wait.ns));
    Ok(LeftWaits { count, ns: if count == 0 { 0 } else { ns } })
}
