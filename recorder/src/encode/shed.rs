//! Counting instead of storing because too much waits ([`crate::rings::backlog`]). Facts about tasks and files are tracked
//! nevertheless.

use systape_bpf::wire::Syscall;
use systape_format::model::{CPU_NONE, CallState, Family, Gap, GapCause};

use crate::rings::backlog::Shed;

/// Calls of at least this duration have priority, ns.
const SLOW_NS: u64 = 1_000_000;

/// Events of a family that were not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShedEvents {
    family: Family,
    count: u64,
    first: u64,
    last: u64,
}

/// Dropped events.
#[derive(Debug, Default)]
pub struct DroppedEvents {
    /// Events by family, since the last call that took them.
    pub lost: Vec<((GapCause, Family), u64)>,
    /// Number of calls among them that are counted in the ledger: all.
    pub counted: u64,
}

/// Decides which events are dropped while little memory is left.
#[derive(Debug, Default)]
pub(super) struct Shedding {
    level: Shed,
    /// Since the segment began.
    missing: Vec<ShedEvents>,
    given: DroppedEvents,
}

impl Shedding {
    /// Level from here on.
    pub(crate) fn set(&mut self, level: Shed) {
        self.level = level;
    }

    /// Events dropped since the last call.
    pub(crate) fn take_given_up(&mut self) -> DroppedEvents {
        std::mem::take(&mut self.given)
    }

    /// Whether everything is dropped.
    pub(crate) fn is_all(&self) -> bool {
        self.level == Shed::All
    }

    /// Whether an event of `family` at `ts` is dropped; then it is counted.
    pub(crate) fn gives_up(&mut self, family: Family, ts: u64) -> bool {
        let gives_up = self.level >= level(family);
        if gives_up {
            self.add(family, (ts, ts), 1);
        }
        gives_up
    }

    /// Whether a call is dropped; the caller counts it in the ledger.
    pub(crate) fn gives_up_call(&self, s: &Syscall, state: CallState, errno: u16) -> bool {
        let dur = s.end.saturating_sub(s.start);
        match self.level {
            Shed::Nothing => false,
            Shed::All => true,
            _ => state == CallState::Complete && errno == 0 && dur < SLOW_NS,
        }
    }

    /// Calls in the ledger were dropped.
    pub(crate) fn add_calls(&mut self, count: u64, times: (u64, u64)) {
        self.add(Family::Syscall, times, count);
        self.given.counted += count;
    }

    /// Ends the segment: its losses.
    pub(crate) fn take_missing(&mut self) -> Vec<Gap> {
        let gap = |ShedEvents { family, count, first, last }| {
            let ledger = family == Family::Syscall;
            Gap { cause: GapCause::QueueFull, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger }
        };
        std::mem::take(&mut self.missing).into_iter().map(gap).collect()
    }

    fn add(&mut self, family: Family, (first, last): (u64, u64), count: u64) {
        self.count((GapCause::QueueFull, family), count);
        match self.missing.iter_mut().find(|m| m.family == family) {
            Some(m) => {
                m.count += count;
                (m.first, m.last) = (m.first.min(first), m.last.max(last));
            }
            None => self.missing.push(ShedEvents { family, count, first, last }),
        }
    }

    /// Counts events that are missing; their gap is told by whoever knows the cause.
    pub(crate) fn count(&mut self, what: (GapCause, Family), count: u64) {
        match self.given.lost.iter_mut().find(|(of, _)| *of == what) {
            Some((_, all)) => *all += count,
            None => self.given.lost.push((what, count)),
        }
    }
}

/// The level at which events of a family are dropped.
fn level(family: Family) -> Shed {
    match family {
        Family::Sched | Family::Sample | Family::IoUring => Shed::Switches,
        family if family.is_tables() => Shed::Switches,
        _ => Shed::All,
    }
}

#[cfg(test)]
mod tests {
    use systape_bpf::wire::{Ident, Net, Operation, Wakeup};

    use systape_bpf::wire::Record;

    use super::super::Piece;
    use super::super::stacks::tests::recorded;
    use super::*;

    /// Of five calls (one fast, one slow, one that failed, one that did not return, the child's side of a clone), a wake-up, an
    /// operation of io_uring and a change of a socket, at a level: rows of calls, what the segment lacks, and what was given up.
    fn stored(level: Shed) -> (usize, Vec<(Family, u64, bool)>, DroppedEvents) {
        let mut encoder = recorded(true);
        encoder.shed(level);
        let id = Ident { tid: 5, pid: 5, start: 5, leader_start: 5 };
        let [complete, killed, child] = [CallState::Complete, CallState::NoReturn, CallState::CloneChild];
        for (ret, dur, state) in
            [(0, 10, complete), (0, SLOW_NS, complete), (-9, 10, complete), (0, 10, killed), (0, 0, child)]
        {
            let state = state as u8;
            let call = Syscall { id, start: 100, end: 100 + dur, ret, nr: 110, abi: 1, state, ..Syscall::default() };
            encoder.take(Record::Syscall(call, &[]));
        }
        let mut operation = Operation::default();
        operation.row.ts = 8;
        encoder.take(Record::Wakeup(Wakeup { ts: 7, ..Wakeup::default() }));
        encoder.take(Record::Operation(operation));
        encoder.take(Record::Net(Net { ts: 9, ..Net::default() }));
        encoder.close_segment(u64::MAX);
        let given = encoder.take_given_up();
        let Some(Piece::Segment(segment)) = encoder.take_pieces().pop() else { panic!("a segment") };
        assert!(segment.gaps().iter().all(|gap| gap.cause == GapCause::QueueFull && gap.first <= gap.last));
        let mut gaps: Vec<_> = segment.gaps().iter().map(|gap| (gap.family, gap.count, gap.ledger)).collect();
        gaps.sort_unstable();
        (segment.rows(), gaps, given)
    }

    #[test]
    fn the_least_valuable_goes_first() {
        let calls = |count| (Family::Syscall, count, true);
        let [wakeup, net, uring] = [Family::Sched, Family::Net, Family::IoUring].map(|family| (family, 1, false));
        let (rows, gaps, given) = stored(Shed::Nothing);
        assert_eq!((rows, gaps, given.lost, given.counted), (5, vec![], vec![], 0));
        let (rows, gaps, given) = stored(Shed::FastCalls);
        assert_eq!(
            (rows, gaps, given.lost, given.counted),
            (4, vec![calls(1)], vec![((GapCause::QueueFull, Family::Syscall), 1)], 1)
        );
        let (rows, gaps, _) = stored(Shed::Switches);
        assert_eq!((rows, gaps), (4, vec![calls(1), wakeup, uring]));
        let (rows, gaps, given) = stored(Shed::All);
        assert_eq!((rows, gaps), (0, vec![calls(4), wakeup, net, uring]));
        // the child's side of a clone is nobody's call
        assert_eq!((given.counted, given.lost.len()), (4, 4));
    }
}
