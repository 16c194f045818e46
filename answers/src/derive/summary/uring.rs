//! io_uring operations by process: I/O without syscalls. They are counted so that readers do not take the table of
//! calls for all of a process's I/O.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use systape_abi::iouring_op_name;
use systape_format::model::Task;

use systape_events::question::Question;
use systape_events::scan::{Coverage, Scan};
use systape_events::values::order::InOrder as _;
use systape_events::values::words::escaped;

/// Operations so far.
#[derive(Debug, Default)]
pub struct Rings {
    /// By (upid, pid).
    processes: FxHashMap<(u32, u32), ProcessOperations>,
}

/// Operations of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOperations {
    /// A task of it: its leader, or the first one found.
    pub task: Task,
    /// Operation → its number.
    pub ops: BTreeMap<u8, u64>,
}

impl Rings {
    /// Counts the operations of a tape that pass the filters on tasks and times, unless other filters select calls.
    pub fn collect(&mut self, question: &Question<'_>) -> Coverage {
        let (scope, f) = (&question.scope, question.scope.filters());
        // they have no duration, result or CPU, and -e names calls
        let none = f.selects || f.failure || f.longer_than.is_some() || f.cpus.is_some();
        let scan = if none { Scan::of(question.tape, Vec::new()) } else { Scan::candidates(question) };
        scan.walk(
            "io_uring operations",
            |s, dict| s.urings(dict),
            |_, dict, ops| {
                for op in ops.iter().filter(|op| scope.at(op.ts)) {
                    if let Some(task) = dict.tasks.get(op.task as usize).filter(|task| scope.task(task)) {
                        self.add(task, op.op);
                    }
                }
            },
        )
    }

    fn add(&mut self, task: &Task, op: u8) {
        let ring = self.processes.entry((task.upid, task.pid)).or_default();
        if ring.ops.is_empty() || (task.tid == task.pid && ring.task.comm != task.comm) {
            ring.task = task.clone();
        }
        *ring.ops.entry(op).or_default() += 1;
    }

    /// Processes with operations, the busiest last.
    pub fn processes(self) -> Vec<ProcessOperations> {
        let mut all: Vec<ProcessOperations> = self.processes.into_values().collect();
        all.order_by_key(|ring| (ring.total(), ring.task.pid, ring.task.upid));
        all
    }
}

impl ProcessOperations {
    fn total(&self) -> u64 {
        self.ops.values().sum()
    }

    /// `io_uring: fio (123) 4096 operations (READ 4000, WRITE 96) that are no syscalls`; a lower bound unless none is
    /// missing.
    pub fn text(&self, complete: bool) -> String {
        let mut ops: Vec<_> = self.ops.iter().collect();
        ops.order_by_key(|(op, count)| (std::cmp::Reverse(**count), **op));
        let ops: Vec<_> = ops.into_iter().map(|(op, count)| format!("{} {count}", iouring_op_name(*op))).collect();
        let (comm, total) = (escaped(&self.task.comm), self.total());
        let (ending, what) = if total == 1 { ("", "is no syscall") } else { ("s", "are no syscalls") };
        let bound = if complete { "" } else { "at least " };
        format!(
            "io_uring: {comm} ({}) {bound}{total} operation{ending} ({}) that {what}",
            self.task.pid,
            ops.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_process_and_operation() {
        let mut rings = Rings::default();
        let task = |pid, tid, comm: &str| Task { pid, tid, comm: comm.into(), ..Task::default() };
        rings.add(&task(9, 10, "iou-sqp-9"), 22);
        rings.add(&task(9, 9, "fio"), 22);
        rings.add(&task(9, 9, "fio"), 3);
        rings.add(&task(5, 5, "one"), 99);
        let text: Vec<_> = rings.processes().iter().map(|ring| ring.text(true)).collect();
        assert_eq!(
            text,
            [
                "io_uring: one (5) 1 operation (op99 1) that is no syscall",
                "io_uring: fio (9) 3 operations (READ 2, FSYNC 1) that are no syscalls"
            ]
        );
    }
}
