//! Work of calls on files: number, time, bytes.

use systape_abi::ContentIo;
use systape_format::model::{CallState, LedgerRow, NEEDS};

use systape_answers::derive::operations::Operation;
use systape_answers::lines::row::{Duration, duration};
use systape_events::calls::CallInfo;
use systape_events::filter::failed;
use systape_events::group::Add;
use systape_events::load::Loaded;
use systape_events::moved::Moved;
use systape_events::values::spill::{Stored, put_number, take_number, take_u64};

/// Time and bytes of calls on one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reports) struct Work {
    pub calls: u64,
    pub opens: u64,
    pub reads: u64,
    pub writes: u64,
    pub errors: u64,
    /// Part of `reads`: those that returned bytes which were there.
    pub cached: u64,
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
    /// Whether it is not known of some reads what they needed: `cached` may be too low.
    pub cached_short: bool,
    /// Whether it was mapped into memory: what was read and written there is in no figure.
    pub mapped: bool,
}

impl Add for Work {
    fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.opens, other.opens),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.errors, other.errors),
            (&mut self.cached, other.cached),
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
        self.cached_short |= other.cached_short;
        self.mapped |= other.mapped;
    }
}

/// A flag of mmap that only loaders give (include/uapi/asm-generic/mman.h).
const MAP_DENYWRITE: u64 = 0x800;

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
        work.opens = u64::from(info.io == ContentIo::Open);
        let flags = segment.args.of(row).map_or(0, |args| args[3]);
        // the loader maps programs and libraries, which are not read by calls anyway
        let maps = matches!(&*info.name, "mmap" | "mmap2") && flags & MAP_DENYWRITE == 0;
        work.mapped = maps && state.returned() && !failed(state, errno);
        let (moved, seen) = (Moved::by(segment, row), state == CallState::Complete);
        let through = |arg: Option<usize>| arg.is_some_and(|arg| args.contains(&arg));
        if through(info.io.reads()) {
            (work.reads, work.read, work.read_short) = (1, moved.least(), moved.is_short());
            // of one that was not seen from its enter on, what it needed before is not known
            let needed = segment.captured(row).iter().any(|value| value.arg == NEEDS);
            let cached = moved.least() > 0 && !needed;
            (work.cached, work.cached_short) = ((cached && seen).into(), cached && !seen);
        }
        if through(info.io.writes()) {
            (work.writes, work.written, work.written_short) = (1, moved.least(), moved.is_short());
        }
        work
    }

    /// The work of an operation of io_uring or io_submit, whose time is that until its program was told.
    pub(super) fn of_operation(operation: &Operation<'_>) -> Self {
        let io = operation.io();
        let (bytes, short) = (operation.result.unwrap_or(0), operation.error.is_none());
        let mut work =
            Self { calls: 1, errors: operation.error.is_some_and(|error| error > 0).into(), ..Self::default() };
        match operation.dur {
            Some(ns) => (work.ns, work.max) = (ns, ns),
            None => work.ns_short = true,
        }
        work.first = operation.dur.map(|dur| operation.end.saturating_sub(dur));
        work.last = Some(operation.end).filter(|_| !short);
        match io {
            ContentIo::Open => work.opens = 1,
            ContentIo::Read(_) => (work.reads, work.read, work.read_short, work.cached_short) = (1, bytes, short, true),
            ContentIo::Write(_) => (work.writes, work.written, work.written_short) = (1, bytes, short),
            // which way they went is not known
            _ if io.moves_bytes() || operation.op.is_none() => (work.read_short, work.written_short) = (true, true),
            _ => {}
        }
        work
    }

    /// Its flags, in the order of [`bits`].
    fn flags(&self) -> [bool; 5] {
        [self.read_short, self.written_short, self.ns_short, self.cached_short, self.mapped]
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
            opens: io(info.io == ContentIo::Open),
            reads: io(info.io.reads().is_some()),
            writes: io(info.io.writes().is_some()),
            errors: io(any || failed(row.state, row.errno)),
            read_short: moves && info.io.reads().is_some(),
            cached_short: moves && info.io.reads().is_some(),
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

/// Work in little memory. Nearly all has counts that are not great.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Narrow(Narrow),
    /// Any work.
    Wide(Box<Work>),
}

/// Work of stored calls alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Narrow {
    calls: u32,
    opens: u32,
    reads: u32,
    writes: u32,
    errors: u32,
    cached: u32,
    /// Those of [`Work`], as bits.
    flags: u8,
    /// The times of the first and the last are known.
    timed: bool,
    read: u64,
    written: u64,
    ns: u64,
    max: u64,
    span: (u64, u64),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Narrow(Narrow::default())
    }
}

impl Kept {
    fn of(work: Work) -> Self {
        let narrow = || {
            let count = |count: u64| u32::try_from(count).ok();
            let span = work.first.zip(work.last);
            // both are known, or none
            let fits = work.ledger == 0 && work.first.is_some() == work.last.is_some();
            Some(Narrow {
                calls: count(work.calls).filter(|_| fits)?,
                opens: count(work.opens)?,
                reads: count(work.reads)?,
                writes: count(work.writes)?,
                errors: count(work.errors)?,
                cached: count(work.cached)?,
                flags: bits(work.flags()),
                timed: span.is_some(),
                read: work.read,
                written: work.written,
                ns: work.ns,
                max: work.max,
                span: span.unwrap_or_default(),
            })
        };
        match narrow() {
            Some(narrow) => Self::Narrow(narrow),
            None => Self::Wide(Box::new(work)),
        }
    }

    /// The work.
    pub(super) fn work(&self) -> Work {
        match self {
            Self::Wide(work) => (**work).clone(),
            Self::Narrow(narrow) => narrow.work(),
        }
    }

    /// Adds more.
    pub(super) fn add_work(&mut self, more: &Work) {
        let mut work = self.work();
        work.add(more);
        *self = Self::of(work);
    }
}

impl Add for Kept {
    fn add(&mut self, other: &Self) {
        self.add_work(&other.work());
    }
}

impl Stored for Kept {
    fn put(&self, out: &mut Vec<u8>) {
        let Work {
            calls,
            opens,
            reads,
            writes,
            errors,
            cached,
            read,
            written,
            ns,
            max,
            first,
            last,
            ledger,
            read_short,
            written_short,
            ns_short,
            cached_short,
            mapped,
        } = self.work();
        for number in [calls, opens, reads, writes, errors, cached, read, written, ns, max, ledger] {
            put_number(number.into(), out);
        }
        // of a time that is known one more
        [first, last].into_iter().for_each(|ts| put_number(ts.map_or(0, |ts| u128::from(ts) + 1), out));
        out.push(bits([read_short, written_short, ns_short, cached_short, mapped]));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut next = || take_u64(from);
        let (calls, opens, reads, writes, errors) = (next()?, next()?, next()?, next()?, next()?);
        let (cached, read, written, ns, max, ledger) = (next()?, next()?, next()?, next()?, next()?, next()?);
        let mut time = || Some(take_number(from)?.checked_sub(1).map(|ts| ts as u64));
        let (first, last) = (time()?, time()?);
        let [read_short, written_short, ns_short, cached_short, mapped] = flags(*from.split_off(..1)?.first()?);
        Some(Self::of(Work {
            calls,
            opens,
            reads,
            writes,
            errors,
            cached,
            read,
            written,
            ns,
            max,
            first,
            last,
            ledger,
            read_short,
            written_short,
            ns_short,
            cached_short,
            mapped,
        }))
    }

    fn heap(&self) -> usize {
        match self {
            Self::Narrow(_) => 0,
            Self::Wide(_) => size_of::<Work>(),
        }
    }
}

impl Narrow {
    fn work(&self) -> Work {
        let ([read_short, written_short, ns_short, cached_short, mapped], timed) = (flags(self.flags), self.timed);
        Work {
            calls: self.calls.into(),
            opens: self.opens.into(),
            reads: self.reads.into(),
            writes: self.writes.into(),
            errors: self.errors.into(),
            cached: self.cached.into(),
            read: self.read,
            written: self.written,
            ns: self.ns,
            max: self.max,
            first: timed.then_some(self.span.0),
            last: timed.then_some(self.span.1),
            ledger: 0,
            read_short,
            written_short,
            ns_short,
            cached_short,
            mapped,
        }
    }
}

/// Flags as bits, the first lowest.
fn bits(flags: [bool; 5]) -> u8 {
    flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
}

/// The flags of [`bits`].
fn flags(bits: u8) -> [bool; 5] {
    std::array::from_fn(|at| bits >> at & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn works() -> impl Strategy<Value = Work> {
        let counts = || prop::array::uniform6(prop_oneof![4 => 0_u64..9, 1 => any::<u64>()]);
        (counts(), counts(), any::<[bool; 5]>(), prop::option::of(any::<(u64, u64)>())).prop_map(
            |([calls, opens, reads, writes, errors, ledger], [read, written, ns, max, cached, _], flags, span)| Work {
                calls,
                opens,
                reads,
                writes,
                errors,
                cached,
                read,
                written,
                ns,
                max,
                first: span.map(|span| span.0),
                last: span.map(|span| span.1),
                ledger: ledger.saturating_sub(6),
                read_short: flags[0],
                written_short: flags[1],
                ns_short: flags[2],
                cached_short: flags[3],
                mapped: flags[4],
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_kept_is_the_work(works in prop::collection::vec(works(), 1..5)) {
            let (mut expected, mut kept) = (Work::default(), Kept::default());
            for work in &works {
                expected.add(work);
                kept.add_work(work);
            }
            let mut bytes = Vec::new();
            kept.put(&mut bytes);
            prop_assert_eq!(Kept::take(&mut &*bytes).map(|kept| kept.work()), Some(expected.clone()));
            prop_assert_eq!(kept.work(), expected);
        }
    }

    #[test]
    fn work_is_kept_small() {
        assert!(size_of::<Kept>() <= 80, "{}", size_of::<Kept>());
    }
}
