//! Memory of processes, and page faults that read from storage: rows of the tables `process:memory` and `process:usage`.

use std::collections::BTreeMap;

use systape_format::families::{PROCESS_MEMORY, PROCESS_USAGE};
use systape_format::model::{Dict, Task};
use systape_format::tables::TableRows;

use crate::derive::processes::track::key;

/// Most processes that are told apart.
const PROCESSES: usize = 1 << 16;

/// Memory of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grew {
    /// Name of the process.
    pub comm: Vec<u8>,
    /// Pid of the process.
    pub pid: u32,
    /// When it was looked at first, and how much it had, bytes; of a process that began later its start, and 0.
    pub first: Option<(u64, u64)>,
    /// When it had most, and how much.
    pub most: Option<(u64, u64)>,
    /// Page faults that read from storage; None: not known.
    pub major_faults: Option<u64>,
    /// Page faults without I/O, and CPU time of the kernel for it, ns: all its life. None: not known.
    pub minor_faults: Option<(u64, u64)>,
    /// When it ended, if that is known.
    pub ended: Option<u64>,
}

/// Growth by process.
pub type Memory = BTreeMap<u64, Grew>;

/// Adds the rows of `table`, if it is one of these tables, of tasks that pass `asked`, between `from` and `to`.
pub fn add(memory: &mut Memory, table: &TableRows, dict: &Dict, asked: impl Fn(&Task) -> bool, (from, to): (u64, u64)) {
    let usage = table.def.name == PROCESS_USAGE.name;
    if !usage && table.def.name != PROCESS_MEMORY.name {
        return;
    }
    let Some(tasks) = table.column("task") else { return };
    let bytes = table.column(if usage { "maxrss" } else { "rss" });
    for (row, (ts, task)) in table.ts.iter().zip(tasks).enumerate().filter(|(_, (ts, _))| **ts >= from && **ts < to) {
        let Some(task) = dict.task_of(*task).filter(|task| asked(task)) else { continue };
        let key = key(task);
        if memory.len() >= PROCESSES && !memory.contains_key(&key) {
            continue;
        }
        let grew = memory.entry(key).or_default();
        (grew.comm, grew.pid) = (task.comm.clone(), task.pid);
        let bytes = bytes.and_then(|bytes| bytes.get(row)).copied();
        if let Some(bytes) = bytes {
            if !usage && grew.first.is_none() {
                grew.first = Some((*ts, bytes));
            }
            if grew.most.is_none_or(|(_, most)| bytes > most) {
                grew.most = Some((*ts, bytes));
            }
        }
        if usage {
            grew.ended = Some(*ts);
            let value = |name| table.column(name).and_then(|values| values.get(row)).copied();
            grew.minor_faults = value("minor_faults").zip(value("system_ns"));
            grew.major_faults = value("major_faults");
        }
    }
}
