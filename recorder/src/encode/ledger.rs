//! Calls that were counted instead of sent.

use systape_bpf::wire::{self, Ident, Syscall};
use systape_format::model::{CPU_NONE, Call, CallState, Family, Gap, GapCause, LedgerReason, LedgerRow, Task};

use super::rows::Rows;
use super::world::World;
use crate::ledger::{Key, LedgerWindow, RecorderCounts, Sum};
use crate::tasks::Tasks;
use crate::tasks::effects::split_ret;

/// The calls counted here, and the time up to which counts are stored.
pub(super) struct StoredCounts {
    counts: RecorderCounts,
    /// Counts up to this time are stored, or there were none.
    until: u64,
    filtered: u64,
}

impl StoredCounts {
    pub(crate) fn new(window_open: u64) -> Self {
        Self { counts: RecorderCounts::default(), until: window_open, filtered: 0 }
    }

    /// Counts up to this time are stored, or there were none.
    pub(crate) fn until(&self) -> u64 {
        self.until
    }

    /// Stores the counts up to a time before which every record is encoded.
    pub(crate) fn store(&mut self, window: LedgerWindow, world: &mut World, rows: &mut Rows) {
        self.until = self.until.max(window.until);
        let mut filtered: Option<Gap> = None;
        for (key, sum) in window.rows {
            if key.reason == LedgerReason::Filtered {
                let first = Gap {
                    cause: GapCause::Filtered,
                    family: Family::Syscall,
                    cpu: CPU_NONE,
                    count: 0,
                    first: sum.first,
                    last: sum.last,
                    pid: 0,
                    ledger: true,
                };
                let gap = filtered.get_or_insert(first);
                gap.count += sum.count;
                (gap.first, gap.last) = (gap.first.min(sum.first), gap.last.max(sum.last));
            }
            if key.reason == LedgerReason::Behind {
                rows.shedding.add_calls(sum.count, (sum.first.saturating_sub(sum.max), sum.last));
            }
            self.store_one(&key, sum, world, rows);
        }
        if let Some(gap) = filtered {
            self.filtered += gap.count;
            rows.gap(gap);
        }
    }

    fn store_one(&mut self, key: &Key, sum: Sum, world: &mut World, rows: &mut Rows) {
        let task = key.process.map(|(pid, start)| {
            let task = process_at(&mut world.tasks, pid, start, sum.first);
            let task = if task.uid == key.uid { task } else { Task { uid: key.uid, ..task } };
            rows.builder.intern_task(&task)
        });
        let (abi, nr) = key.call;
        let call = rows.builder.intern_call(Call { abi, nr });
        rows.first_row.get_or_insert(sum.last);
        rows.builder.push_ledger(LedgerRow {
            task,
            call,
            reason: key.reason,
            errno: key.errno,
            state: key.state,
            cpu: key.cpu,
            count: sum.count,
            sum: sum.sum,
            min: sum.min,
            max: sum.max,
            first: sum.first,
            last: sum.last,
            sizes: sum.sizes,
        });
        if rows.builder.is_full() {
            self.flush(world, rows);
            rows.close(rows.latest.saturating_add(1));
        }
    }

    /// Counts a call here, because its facts are known only now, or because there is no room.
    pub(crate) fn count(&mut self, s: &Syscall, state: CallState, uid: u32, reason: LedgerReason) {
        let key = Key {
            process: Some((s.id.pid, s.id.leader_start)),
            execs: 0,
            uid,
            cpu: s.hdr.cpu,
            call: (s.abi, s.nr),
            errno: split_ret(s.ret, state).0,
            reason,
            state,
        };
        self.counts.add(key, s.end.saturating_sub(s.start), s.end);
    }

    /// Stores the calls counted here.
    pub(crate) fn flush(&mut self, world: &mut World, rows: &mut Rows) {
        let counted = self.counts.take();
        self.store(LedgerWindow { until: self.until, rows: counted }, world, rows);
    }

    /// Stores the counts of one process, which is about to exec.
    pub(crate) fn flush_of(&mut self, process: (u32, u64), world: &mut World, rows: &mut Rows) {
        let counted = self.counts.take_of(process);
        self.store(LedgerWindow { until: self.until, rows: counted }, world, rows);
    }

    /// Calls that were counted because of an option of record.
    pub(crate) fn filtered(&self) -> u64 {
        self.filtered
    }
}

/// The leader of a process as it was at `ts`.
fn process_at(tasks: &mut Tasks, pid: u32, start: u64, ts: u64) -> Task {
    let id = tasks.find_or_add(&Ident { tid: pid, pid, start, leader_start: start });
    match tasks.before_exec((pid, start), ts) {
        Some(task) => task.clone(),
        None => tasks.on_tape(id).into_owned(),
    }
}

/// Whether a record's call is in the ledger, or will be.
pub(super) fn in_ledger(s: &Syscall) -> bool {
    s.hdr.flags & (wire::IN_LEDGER | wire::FILTERED) != 0
}
