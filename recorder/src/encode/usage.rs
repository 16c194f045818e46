//! Rows of the tables `process:usage` and `process:thread`, what a process and a thread used until their ends, and
//! `process:memory`, what a process has at a checkpoint.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use systape_bpf::values::usage_flags;
use systape_bpf::wire::{self, Snap};
use systape_format::families::{PROCESS_MEMORY, PROCESS_THREAD, PROCESS_USAGE};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;

/// Columns of a kernel that counts what read and write pass on, and of one that counts what storage does.
const OF_CALLS: [&str; 4] = ["rchar", "wchar", "read_calls", "write_calls"];
const OF_STORAGE: [&str; 5] = ["read_bytes", "write_bytes", "cancelled_bytes", "in_blocks", "out_blocks"];

/// Two threads that end together may both find that they are the last.
const ENDED: usize = 64;

/// What processes and threads used, as rows.
#[derive(Debug)]
pub(super) struct Usage {
    /// Of processes and of threads: with the columns that the kernel fills, and the flags by which they were chosen.
    ends: [Option<(u16, Arc<TableDef>)>; 2],
    memory: Arc<TableDef>,
    /// Processes that ended last.
    ended: VecDeque<(u32, u64)>,
}

impl Default for Usage {
    fn default() -> Self {
        Self { ends: [None, None], memory: Arc::new(PROCESS_MEMORY.clone()), ended: VecDeque::new() }
    }
}

/// The table without what the kernel does not count.
fn table(flags: u16) -> TableDef {
    let mut def = if flags & usage_flags::THREAD == 0 { PROCESS_USAGE.clone() } else { PROCESS_THREAD.clone() };
    let lacks = |flag, names: &[&str], name: &str| flags & flag != 0 && names.contains(&name);
    def.columns.to_mut().retain(|column| {
        !lacks(usage_flags::NO_CALLS, &OF_CALLS, &column.name)
            && !lacks(usage_flags::NO_STORAGE, &OF_STORAGE, &column.name)
    });
    def
}

/// User and system time: the measured run time, divided as the ticks found it (as cputime_adjust in
/// kernel/sched/cputime.c does for wait4).
fn times(u: &wire::Usage) -> (u64, u64) {
    let ticks = u128::from(u.utime) + u128::from(u.stime);
    let system = match (u.stime, u.utime) {
        (0, _) => 0,
        (_, 0) => u.runtime,
        (stime, _) => (u128::from(stime) * u128::from(u.runtime) / ticks) as u64,
    };
    (u.runtime - system, system)
}

impl Usage {
    /// Stores what a process or a thread used.
    pub(super) fn record(&mut self, u: &wire::Usage, world: &mut World, rows: &mut Rows) {
        let id = world.tasks.find_or_add(&u.id);
        let process = (u.id.pid, u.id.leader_start);
        let flags = u.hdr.flags;
        let whole = flags & usage_flags::THREAD == 0;
        if !world.tasks.is_target(id) || rows.shedding.is_all() || (whole && self.ended.contains(&process)) {
            return;
        }
        if whole {
            self.ended.truncate(ENDED - 1);
            self.ended.push_front(process);
        }
        let of_flags = &mut self.ends[usize::from(!whole)];
        if of_flags.as_ref().is_none_or(|(of, _)| *of != flags) {
            *of_flags = Some((flags, Arc::new(table(flags))));
        }
        let Some((_, def)) = of_flags else { return };
        let task = Field::Task(rows.task(&mut world.tasks, id));
        let (user, system) = times(u);
        let value = |name: &str| match name {
            "maxrss" => u.maxrss,
            "minor_faults" => u.min_flt,
            "major_faults" => u.maj_flt,
            "user_ns" => user,
            "system_ns" => system,
            "voluntary_switches" => u.nvcsw,
            "involuntary_switches" => u.nivcsw,
            "rchar" => u.rchar,
            "wchar" => u.wchar,
            "read_calls" => u.syscr,
            "write_calls" => u.syscw,
            "read_bytes" => u.read_bytes,
            "write_bytes" => u.write_bytes,
            "cancelled_bytes" => u.cancelled_write_bytes,
            "in_blocks" => u.inblock,
            "out_blocks" => u.oublock,
            _ => u.uncounted,
        };
        let columns = def.columns.iter().skip(1);
        let fields: Vec<_> = columns
            .map(|column| if column.name == "task" { task } else { Field::Number(value(&column.name)) })
            .collect();
        rows.beside(def, u.ts, &fields);
    }

    /// Stores what each process has in memory: when its state was read, or at `at_most`.
    pub(super) fn memory(&self, snaps: &[Snap], at_most: u64, world: &mut World, rows: &mut Rows) {
        let mut told = HashSet::new();
        for snap in snaps.iter().filter(|snap| snap.has_rss != 0) {
            let Some(id) = world.tasks.find(&snap.task.id).filter(|id| world.tasks.is_target(*id)) else { continue };
            if !world.tasks.is_alive(id) || !told.insert((snap.task.id.pid, snap.task.id.leader_start)) {
                continue;
            }
            let task = Field::Task(rows.task(&mut world.tasks, id));
            let [file, anonymous, swapped, shared] = snap.rss;
            let rss = file + anonymous + shared;
            let numbers = [rss, anonymous, file, shared, swapped].map(Field::Number);
            let fields: Vec<_> = std::iter::once(task).chain(numbers).collect();
            rows.beside(&self.memory, snap.task.ts.min(at_most), &fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_time_is_divided_as_wait4_does() {
        let of = |utime, stime, runtime| times(&wire::Usage { utime, stime, runtime, ..wire::Usage::default() });
        assert_eq!(of(0, 0, 700), (700, 0), "no tick came");
        assert_eq!(of(8, 0, 700), (700, 0));
        assert_eq!(of(0, 4, 700), (0, 700));
        assert_eq!(of(12, 4, 800), (600, 200));
        let long = u64::MAX / 4;
        assert_eq!(of(long, long, long).1, long / 2, "no overflow");
    }

    #[test]
    fn what_the_kernel_does_not_count_has_no_column() {
        let names = |flags| table(flags).columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>();
        let all = names(0);
        assert!(OF_CALLS.iter().chain(&OF_STORAGE).all(|name| all.iter().any(|known| known == name)), "{all:?}");
        assert_eq!(names(usage_flags::NO_CALLS).len(), all.len() - 4);
        assert_eq!(names(usage_flags::NO_CALLS | usage_flags::NO_STORAGE).len(), all.len() - 9);
        let of_thread = names(usage_flags::THREAD);
        assert!(of_thread.iter().all(|name| all.contains(name)) && of_thread.len() < all.len(), "{of_thread:?}");
        assert_eq!(names(usage_flags::THREAD | usage_flags::NO_CALLS).len(), of_thread.len() - 4);
    }
}
