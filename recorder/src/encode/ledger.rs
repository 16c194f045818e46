//! Calls that were counted instead of sent.

use systape_bpf::wire::{self, Ident, Syscall};
use systape_format::model::{CPU_NONE, Call, CallState, Family, Gap, GapCause, LedgerReason, LedgerRow, Task};

use super::Encoder;
use super::calls::split_ret;
use crate::ledger::{Key, Sum, Window};

impl Encoder {
    /// Stores what was counted until a time up to which every record is encoded.
    pub fn counted(&mut self, window: Window) {
        self.counted_until = self.counted_until.max(window.until);
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
                self.shed_calls(sum.count, (sum.first.saturating_sub(sum.max), sum.last));
            }
            self.store_counted(&key, sum);
        }
        if let Some(gap) = filtered {
            self.filtered += gap.count;
            self.gap(gap);
        }
    }

    fn store_counted(&mut self, key: &Key, sum: Sum) {
        let task = key.process.map(|(pid, start)| {
            let task = self.process_at(pid, start, sum.first);
            let task = if task.uid == key.uid { task } else { Task { uid: key.uid, ..task } };
            self.builder.intern_task(&task)
        });
        let (abi, nr) = key.call;
        let call = self.builder.intern_call(Call { abi, nr });
        self.first_row.get_or_insert(sum.last);
        self.builder.push_ledger(LedgerRow {
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
        if self.builder.is_full() {
            self.close_segment(self.latest.saturating_add(1));
        }
    }

    /// The leader of a process as it was at `ts`.
    fn process_at(&mut self, pid: u32, start: u64, ts: u64) -> Task {
        let id = self.tasks.find_or_add(&Ident { tid: pid, pid, start, leader_start: start });
        match self.tasks.before_exec((pid, start), ts) {
            Some(task) => task.clone(),
            None => self.tasks.on_tape(id).into_owned(),
        }
    }

    /// Counts a call here: because of what is known now, or for want of room.
    pub(super) fn count_here(&mut self, s: &Syscall, state: CallState, uid: u32, reason: LedgerReason) {
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

    /// Stores what was counted here.
    pub fn counted_here(&mut self) {
        let rows = self.counts.take();
        self.counted(Window { until: self.counted_until, rows });
    }

    /// The same of one process, which is about to become another program.
    pub(super) fn counted_of(&mut self, process: (u32, u64)) {
        let rows = self.counts.take_of(process);
        self.counted(Window { until: self.counted_until, rows });
    }

    /// Calls that were counted because record was asked to.
    pub fn filtered(&self) -> u64 {
        self.filtered
    }
}

/// Whether a record is of a call that is in the ledger, or is to be.
pub(super) fn in_ledger(s: &Syscall) -> bool {
    s.hdr.flags & (wire::IN_LEDGER | wire::FILTERED) != 0
}
