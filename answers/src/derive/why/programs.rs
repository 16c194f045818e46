//! Programs that were started, by path, and processes that a signal ended.

use std::collections::BTreeMap;

use systape_format::model::Task;

use super::cpu::wider;
use crate::derive::processes::Processes;
use systape_events::values::order::InOrder as _;

/// A process that is made to run a program executes it so soon after its fork, ns.
const SOON: u64 = 100_000_000;

/// Runs of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Path of the program as given to exec, else its name.
    pub path: Vec<u8>,
    /// The name of its processes.
    pub comm: Vec<u8>,
    /// How often it was started.
    pub starts: u64,
    /// How long its processes lived, ns, and the longest; those that did not end are in none.
    pub lived: u64,
    /// Longest of the lives, ns.
    pub max: u64,
    /// Span from the first start to the last start.
    pub starts_span: Option<(u64, u64)>,
    /// Span from the first start to the last end.
    pub span: Option<(u64, u64)>,
    /// Who made processes to run them: name, pid, how many; the busiest first.
    pub parents: Vec<(Vec<u8>, u32, u64)>,
}

/// All programs that processes which pass `asked` started between `from` and `to`.
pub fn programs(processes: &Processes, asked: impl Fn(&Task) -> bool, (from, to): (u64, u64)) -> Vec<ProgramRuns> {
    let mut found: BTreeMap<&[u8], ProgramRuns> = BTreeMap::new();
    let mut parents: BTreeMap<(&[u8], &[u8], u32), u64> = BTreeMap::new();
    for process in &processes.all {
        for image in process.images.iter().filter(|image| image.exec && image.since >= from && image.since < to) {
            let name: &[u8] = if image.path.is_empty() { &image.task.comm } else { &image.path };
            if !asked(&image.task) {
                continue;
            }
            let program = found.entry(name).or_default();
            program.comm.clone_from(&image.task.comm);
            program.starts += 1;
            // who was made to run it began with its fork; a shell that becomes its last command was made for something else
            let is_made = process.start >= from && image.since.saturating_sub(process.start) < SOON;
            let began = if is_made { process.start } else { image.since };
            program.starts_span = wider(program.starts_span, began, image.since);
            let ended = process.end().map(|end| end.ts).filter(|end| *end < to);
            program.span = wider(program.span, began, ended.unwrap_or(image.since));
            if let Some(lived) = ended.and_then(|end| end.checked_sub(began)) {
                program.lived = program.lived.saturating_add(lived);
                program.max = program.max.max(lived);
            }
            if let Some(parent) = process.parent.filter(|_| is_made).map(|parent| &processes.all[parent].task) {
                // it may have become another program since
                let comm = if process.forked_by.is_empty() { &parent.comm } else { &process.forked_by };
                *parents.entry((name, comm, parent.pid)).or_default() += 1;
            }
        }
    }
    for ((name, comm, pid), starts) in parents {
        if let Some(program) = found.get_mut(name) {
            program.parents.push((comm.to_vec(), pid, starts));
        }
    }
    let mut all: Vec<ProgramRuns> =
        found.into_iter().map(|(path, program)| ProgramRuns { path: path.to_vec(), ..program }).collect();
    all.iter_mut().for_each(|program| program.parents.order_by_key(|(.., starts)| std::cmp::Reverse(*starts)));
    all
}

#[cfg(test)]
mod tests {
    use systape_format::model::{ProcessEvent, ProcessKind};

    use super::*;

    #[test]
    fn who_started_a_program_has_the_name_of_that_time() {
        let task = |pid: u32, comm: &str| {
            let (comm, start) = (comm.as_bytes().to_vec(), u64::from(pid));
            Task {
                tid: pid,
                pid,
                upid: pid,
                utid: pid,
                start_ns: start,
                leader_start_ns: start,
                comm,
                ..Task::default()
            }
        };
        let tasks = [task(10, "bash"), task(11, "bash"), task(11, "date"), task(10, "sleep"), task(11, "sleep")];
        let event = |ts, kind, task, parent| ProcessEvent { parent, ..ProcessEvent::new(ts, kind, task) };
        let mut all = Processes::new(1_000);
        all.event(&event(1_100, ProcessKind::Fork, 1, 0), &tasks);
        all.event(&event(1_110, ProcessKind::Exec, 2, 2), &tasks);
        all.event(&event(1_100 + SOON, ProcessKind::Exec, 4, 4), &tasks);
        all.event(&event(1_200 + SOON, ProcessKind::Exec, 3, 3), &tasks);
        let found = programs(&all.finish(), |_| true, (0, u64::MAX));
        let date = found.iter().find(|program| program.comm == b"date").expect("it was started");
        assert_eq!(date.parents, [(b"bash".to_vec(), 10, 1)]);
        let sleep = found.iter().find(|program| program.comm == b"sleep").expect("it was started");
        assert_eq!((sleep.starts, sleep.parents.len()), (2, 0), "both became it by themselves");
    }
}
