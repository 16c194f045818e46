//! The ledger in `info`: the number of calls counted instead of stored, and the reasons.

use systape_format::header::BlockKind;
use systape_format::model::{CallState, LedgerReason};
use systape_format::reader::Tape;

use systape_answers::render::row::Row;

/// Calls by the reason of not being stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// Rows, including those that only check the ledger.
    rows: u64,
    /// No room.
    lost: u64,
    /// Counted only, by an option of `record`.
    filtered: u64,
    /// Their process had filled its share of the ring.
    over_share: u64,
    /// The recorder was behind and its memory full.
    behind: u64,
    /// Of all these, those of an unknown process.
    unattributed: u64,
}

impl Ledger {
    /// Adds up the ledger of all segments; unreadable parts are added to `unreadable`.
    pub(super) fn read(tape: &Tape, unreadable: &mut Vec<String>) -> Self {
        let mut all = Self::default();
        for at in (0..tape.segments().len()).filter(|at| tape.segment(*at).has(BlockKind::Ledger)) {
            let segment = tape.segment(at);
            match segment.dict().and_then(|dict| segment.ledger(&dict)) {
                Ok(rows) => {
                    rows.iter().for_each(|row| all.add(row.reason, row.state, row.count, row.task.is_none()));
                }
                Err(error) => unreadable.push(format!("what was counted is not known: {error}")),
            }
        }
        all
    }

    fn add(&mut self, reason: LedgerReason, state: CallState, count: u64, nobody: bool) {
        self.rows = self.rows.saturating_add(1);
        let sum = match reason {
            // nobody called the child's side of a clone
            _ if state == CallState::CloneChild => return,
            LedgerReason::Lost => &mut self.lost,
            LedgerReason::Filtered => &mut self.filtered,
            LedgerReason::OverShare => &mut self.over_share,
            LedgerReason::Behind => &mut self.behind,
            LedgerReason::Checked => return,
        };
        *sum = sum.saturating_add(count);
        if nobody {
            self.unattributed = self.unattributed.saturating_add(count);
        }
    }

    /// Calls that should have been stored.
    pub(super) fn lost(&self) -> u64 {
        self.lost.saturating_add(self.over_share).saturating_add(self.behind)
    }

    fn calls(&self) -> u64 {
        self.lost().saturating_add(self.filtered)
    }

    /// Sets the columns of the object `ledger`.
    pub(super) fn fill(&self, row: &mut Row<'_>) {
        row.set("ledger_rows", self.rows).set("ledger_calls", self.calls()).set("ledger_lost_calls", self.lost);
        row.set("ledger_filtered_calls", self.filtered).set("ledger_over_share_calls", self.over_share);
        row.set("ledger_behind_calls", self.behind).set("ledger_unattributed_calls", self.unattributed);
    }

    /// `60 calls in 4 rows: 47 lost, 13 filtered out by record`; empty without a ledger.
    pub(super) fn text(&self) -> String {
        if self.rows == 0 {
            return String::new();
        }
        let parts = [
            (self.lost, "for which there was no room"),
            (self.over_share, "over a process's share"),
            (self.behind, "while record was behind"),
            (self.filtered, "filtered out by record"),
            (self.unattributed, "of processes that are not known"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let parts = parts.collect::<Vec<_>>().join(", ");
        let of = if parts.is_empty() { String::new() } else { format!(": {parts}") };
        format!("{} calls in {} row{}{of}", self.calls(), self.rows, if self.rows == 1 { "" } else { "s" })
    }
}
