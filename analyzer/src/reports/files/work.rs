//! Work of calls on files: number, time, bytes.

use systape_abi::Io;
use systape_format::model::{CallState, LedgerRow};

use crate::lines::row::{Duration, duration};
use crate::table::calls::CallInfo;
use crate::table::filter::failed;
use crate::table::group::Add;
use crate::table::load::Loaded;
use crate::table::moved::Moved;

/// Time and bytes of calls on one object.
#[derive(Clone, Debug, Default)]
pub(in crate::reports) struct Work {
    pub calls: u64,
    pub opens: u64,
    pub reads: u64,
    pub writes: u64,
    pub errors: u64,
    pub read: u64,
    pub written: u64,
    pub ns: u64,
    pub max: u64,
    /// When the first began (a counted one: ended) and when the last ended, ns; None = not known.
    pub first: Option<u64>,
    pub last: Option<u64>,
    /// Part of `calls`: those counted and not stored.
    pub ledger: u64,
    /// Bytes or time may be too low.
    pub read_short: bool,
    pub written_short: bool,
    pub ns_short: bool,
}

impl Add for Work {
    fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.opens, other.opens),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.errors, other.errors),
            (&mut self.read, other.read),
            (&mut self.written, other.written),
            (&mut self.ns, other.ns),
            (&mut self.ledger, other.ledger),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.max = self.max.max(other.max);
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self.read_short |= other.read_short;
        self.written_short |= other.written_short;
        self.ns_short |= other.ns_short;
    }
}

impl Work {
    /// The work of the call of `row` through these of its arguments.
    pub(super) fn of(segment: &Loaded, row: usize, args: &[usize]) -> Self {
        let (info, state, errno) = (segment.call(row), segment.core.state[row], segment.core.errno[row]);
        let mut work = Self { calls: 1, errors: failed(state, errno).into(), ..Self::default() };
        match duration(segment, row) {
            Duration::Exact(ns) => (work.ns, work.max) = (ns, ns),
            Duration::AtLeast(ns) => (work.ns, work.max, work.ns_short) = (ns, ns, true),
            Duration::Unknown => work.ns_short = !info.is_exit,
        }
        work.first = segment.time.start.get(row).copied();
        work.last = work.first.map(|start| start.saturating_add(segment.core.dur[row]));
        work.opens = u64::from(info.io == Io::Open);
        let moved = Moved::by(segment, row);
        let through = |arg: Option<usize>| arg.is_some_and(|arg| args.contains(&arg));
        if through(info.io.reads()) {
            (work.reads, work.read, work.read_short) = (1, moved.least(), moved.is_short());
        }
        if through(info.io.writes()) {
            (work.writes, work.written, work.written_short) = (1, moved.least(), moved.is_short());
        }
        work
    }

    /// The work of counted calls.
    pub(super) fn counted(info: &CallInfo, row: &LedgerRow) -> Self {
        let io = |does: bool| if does { row.count } else { 0 };
        let moves = row.errno == 0 && row.state.returned();
        // of rows without a process the error is any
        let any = row.errno == u16::MAX;
        let timed = row.state == CallState::Complete;
        Self {
            calls: row.count,
            opens: io(info.io == Io::Open),
            reads: io(info.io.reads().is_some()),
            writes: io(info.io.writes().is_some()),
            errors: io(any || failed(row.state, row.errno)),
            read_short: moves && info.io.reads().is_some(),
            written_short: moves && info.io.writes().is_some(),
            ns: row.sum,
            max: row.max,
            first: Some(row.first),
            last: Some(row.last),
            ledger: row.count,
            ns_short: !timed,
            ..Self::default()
        }
    }
}
