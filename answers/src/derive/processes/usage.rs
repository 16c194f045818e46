//! CPU time of processes that ended: rows of the table `process:usage`.

use rustc_hash::FxHashMap;
use systape_format::families::PROCESS_USAGE;
use systape_format::model::{Dict, Task};
use systape_format::reader::Tape;
use systape_format::tables::TableRows;

use super::track::key;
use systape_events::scan::{Coverage, Scan};

/// CPU time of all threads of a process, in all its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Time in its own code, ns.
    pub user: u64,
    /// Time in the kernel, ns.
    pub system: u64,
    /// Threads are missing in it.
    pub short: bool,
}

/// Usage by process.
#[derive(Debug, Default)]
pub struct Usages(FxHashMap<u64, Used>);

impl Usages {
    /// Reads the usages of `tape`.
    pub fn read(tape: &Tape) -> (Self, Coverage) {
        let mut usages = Self::default();
        let wanted = ("CPU times of processes", &[&PROCESS_USAGE][..]);
        let coverage = Scan::tables(tape, wanted, |_, dict, table| usages.add(table, dict));
        (usages, coverage)
    }

    fn add(&mut self, table: &TableRows, dict: &Dict) {
        let columns = (table.column("task"), table.column("user_ns"), table.column("system_ns"));
        let (Some(tasks), Some(user), Some(system)) = columns else { return };
        let uncounted = table.column("uncounted");
        for (row, ((task, user), system)) in tasks.iter().zip(user).zip(system).enumerate() {
            let Some(task) = dict.task_of(*task) else { continue };
            let short = uncounted.and_then(|all| all.get(row)).is_some_and(|threads| *threads > 0);
            self.0.insert(key(task), Used { user: *user, system: *system, short });
        }
    }

    /// What the process of `task` used; None: no row has it.
    pub fn of(&self, task: &Task) -> Option<Used> {
        self.0.get(&key(task)).copied()
    }
}
