//! Who had the CPU that a thread waited for.

use super::Id;
use super::log::Logged;
use super::walk::{Kind, Part, Path};
use crate::derive::runs::State;
use systape_format::model::CPU_NONE;

/// Parts each wait for a CPU among those of `path` by who ran there meanwhile. What nobody is known to have run in stays as it is. Returns the
/// parts with that thread; the order stays.
pub fn split(threads: &[Logged], path: &Path) -> Vec<(Part, Option<Id>)> {
    let mut waits: Vec<(u32, u64, u64)> = Vec::new();
    for part in &path.parts {
        if let Kind::Waits { cpu } = part.kind
            && cpu != CPU_NONE
        {
            waits.push((cpu, part.from, part.to));
        }
    }
    waits.sort_unstable();
    let ran = ran(threads, &waits);
    let mut parts = Vec::with_capacity(path.parts.len());
    for part in &path.parts {
        let Kind::Waits { cpu } = part.kind else {
            parts.push((*part, None));
            continue;
        };
        let mut from = part.from;
        let first = ran.partition_point(|(on, begin, ..)| (*on, *begin) < (cpu, part.from));
        for (_, begin, end, who) in ran[first..].iter().take_while(|(on, begin, ..)| *on == cpu && *begin < part.to) {
            let (begin, end) = ((*begin).max(from), (*end).min(part.to));
            if begin >= end || *who == part.thread {
                continue;
            }
            if begin > from {
                parts.push((Part { from, to: begin, ..*part }, None));
            }
            parts.push((Part { from: begin, to: end, ..*part }, Some(*who)));
            from = end;
        }
        if from < part.to {
            parts.push((Part { from, ..*part }, None));
        }
    }
    parts
}

/// The stretches on CPUs within the `waits`, which are sorted: CPU, from, to, thread; sorted, each cut to the wait it is in.
fn ran(threads: &[Logged], waits: &[(u32, u64, u64)]) -> Vec<(u32, u64, u64, Id)> {
    let mut ran = Vec::new();
    if waits.is_empty() {
        return ran;
    }
    for (id, thread) in threads.iter().enumerate() {
        for stretch in thread.stretches.iter().filter(|stretch| stretch.state == State::Running) {
            // waits on one CPU may be of several threads of the path, at different times: they do not overlap
            let first = waits.partition_point(|(cpu, _, to)| (*cpu, *to) <= (stretch.cpu, stretch.from));
            let there = waits[first..].iter();
            for (_, from, to) in there.take_while(|(cpu, from, _)| *cpu == stretch.cpu && *from < stretch.to) {
                ran.push((stretch.cpu, stretch.from.max(*from), stretch.to.min(*to), id as Id));
            }
        }
    }
    ran.sort_unstable();
    ran
}
