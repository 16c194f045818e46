//! Names that were looked up: rows of the tables `dns:getaddrinfo` and the like, which `record --probe dns` makes.

use std::collections::BTreeMap;

use systape_format::model::{Dict, Task};
use systape_format::tables::TableRows;

use super::cpu::wider;
use super::finding::Who;
use crate::derive::processes::track::key;

/// Most processes that are told apart.
const PROCESSES: usize = 1 << 14;
/// Shorter ones are answered from a file or a cache, ns.
const SHORT: u64 = 1_000_000;

/// What one process looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// The process.
    pub who: Who,
    /// How many that took 1 ms.
    pub count: u64,
    /// Time of them, ns.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// The name of the longest; empty: not known.
    pub slowest: Vec<u8>,
    /// The first and the last.
    pub span: Option<(u64, u64)>,
}

/// Look-ups by process.
pub type All = BTreeMap<u64, Lookups>;

/// Adds the rows of `table`, if it is of look-ups, of tasks that pass `asked`, between `from` and `to`.
pub fn add(all: &mut All, table: &TableRows, dict: &Dict, asked: impl Fn(&Task) -> bool, (from, to): (u64, u64)) {
    let name = &table.def.name;
    if !name.starts_with("dns:") || name.ends_with(".unpaired") {
        return;
    }
    let (Some(tasks), Some(durations)) = (table.column("task"), table.column("dur_ns")) else { return };
    let hosts = table.column("host");
    for (row, ts) in table.ts.iter().enumerate().filter(|(_, ts)| **ts >= from && **ts < to) {
        let (Some(task), Some(ns)) = (tasks.get(row), durations.get(row)) else { continue };
        let Some(task) = dict.task_of(*task).filter(|task| asked(task)) else { continue };
        let key = key(task);
        if *ns < SHORT || (all.len() >= PROCESSES && !all.contains_key(&key)) {
            continue;
        }
        let one = all.entry(key).or_default();
        one.who = Who { comm: task.comm.clone(), pid: Some(task.pid) };
        (one.count, one.ns) = (one.count + 1, one.ns.saturating_add(*ns));
        if *ns > one.max {
            let host = hosts.and_then(|hosts| hosts.get(row)).and_then(|host| table.string(*host));
            (one.max, one.slowest) = (*ns, host.unwrap_or_default().to_vec());
        }
        // the row is of the return
        one.span = wider(one.span, ts.saturating_sub(*ns), *ts);
    }
}
