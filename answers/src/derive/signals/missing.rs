//! Times in which signals may be missing from the tape.
//!
//! The last recorded signal before a death explains it only if no signal was lost in between, because the lost one may
//! be the cause.

use systape_format::model::{Family, Gap, GapCause};
use systape_format::reader::Tape;

use super::everyday;
use systape_events::loss::loses;

/// Time spans with the number of events missing in each, for queries by overlap.
#[derive(Clone, Debug, Default)]
struct Spans {
    /// Start of a span → number of events of it and of all that begin earlier. By time.
    begins: Vec<(u64, Sum)>,
    /// The same by the end of a span.
    ends: Vec<(u64, Sum)>,
}

/// Of some spans.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    spans: u64,
    /// Sum over spans with a known number; wider than any of them, so that no tape can make it overflow.
    events: u128,
    /// Spans with an unknown number of events.
    unknown: u64,
}

impl Spans {
    fn new(list: &[(u64, u64, u64)]) -> Self {
        let summed = |mut list: Vec<(u64, u64)>| {
            list.sort_unstable();
            let mut sum = Sum::default();
            let add = |(ts, count): (u64, u64)| {
                sum.spans += 1;
                sum.events += u128::from(count);
                sum.unknown += u64::from(count == 0);
                (ts, sum)
            };
            list.into_iter().map(add).collect()
        };
        Self {
            begins: summed(list.iter().map(|(first, _, count)| (*first, *count)).collect()),
            ends: summed(list.iter().map(|(first, last, count)| (*last.max(first), *count)).collect()),
        }
    }

    /// The number for the spans that overlap `from`..=`to`: all that begin before its end, minus those that end before
    /// its start.
    fn between(&self, from: u64, to: u64) -> Sum {
        let up_to = |list: &[(u64, Sum)], count: usize| {
            count.checked_sub(1).and_then(|last| list.get(last)).map_or(Sum::default(), |(_, sum)| *sum)
        };
        let begun = up_to(&self.begins, self.begins.partition_point(|(first, _)| *first <= to));
        let over = up_to(&self.ends, self.ends.partition_point(|(last, _)| *last < from));
        Sum {
            spans: begun.spans.saturating_sub(over.spans),
            events: begun.events.saturating_sub(over.events),
            unknown: begun.unknown.saturating_sub(over.unknown),
        }
    }
}

/// Signal events that are missing in a time span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Most missing events; None = not known.
    pub events: Option<u64>,
}

/// Times in which signals are missing.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    /// Of any kind.
    any: Spans,
    /// Those that end no process at once ([`everyday`]), and any.
    everyday: Spans,
}

impl Missing {
    /// Times of the whole tape, regardless of filters: a death may come after the selected time. `damaged` are indices of
    /// segments with unreadable signals, ascending.
    pub fn of_tape(tape: &Tape, damaged: &[usize]) -> Self {
        let (mut gaps, mut unreadable) = (Vec::new(), Vec::new());
        let segments = tape.segments();
        let mut next = 0;
        for (at, info) in segments.iter().enumerate() {
            let segment = tape.segment(at);
            let readable = damaged.binary_search(&at).is_err();
            let told = segment.gaps().map(|list| gaps.extend(list)).is_ok();
            if info.segment != next || !readable || !told {
                let before = at.checked_sub(1).map_or(0, |before| segments[before].end_max);
                let last = if readable && told { info.end_min } else { info.end_max };
                unreadable.push((before.min(info.end_min), last));
            }
            next = info.segment.saturating_add(1);
        }
        let counted = |(family, count): &(Family, u64)| *family == Family::Signal && *count > 0;
        let located = gaps.iter().any(|gap| loses(gap, &[Family::Signal]));
        if tape.end().is_some_and(|end| end.lost.iter().any(counted)) && !located {
            unreadable.push((0, u64::MAX));
        }
        Self::new(&gaps, &unreadable)
    }

    /// Makes them of `gaps` of any family, and times in which all events are unreadable.
    pub fn new(gaps: &[Gap], unreadable: &[(u64, u64)]) -> Self {
        let of_signals = || gaps.iter().filter(|gap| loses(gap, &[Family::Signal]));
        let span = |gap: &Gap| if gap.last == 0 { (0, u64::MAX, gap.count) } else { (gap.first, gap.last, gap.count) };
        let holes = || unreadable.iter().map(|(first, last)| (*first, *last, 0));
        let any: Vec<_> = of_signals().filter(|gap| gap.cause != GapCause::Everyday).map(span).chain(holes()).collect();
        let all: Vec<_> = of_signals().map(span).chain(holes()).collect();
        Self { any: Spans::new(&any), everyday: Spans::new(&all) }
    }

    /// The missing events from `from` to `to` that may be of signal `sig`; None = none.
    pub fn between(&self, sig: u32, from: u64, to: u64) -> Option<Lost> {
        let sum = if everyday(sig) { &self.everyday } else { &self.any }.between(from, to);
        let events = u64::try_from(sum.events).unwrap_or(u64::MAX);
        (sum.spans > 0).then_some(Lost { events: (sum.unknown == 0).then_some(events) })
    }
}

#[cfg(test)]
mod tests {
    use systape_format::model::CPU_NONE;

    use super::*;

    fn gap(family: Family, cause: GapCause, count: u64, first: u64, last: u64) -> Gap {
        Gap { cause, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false }
    }

    #[test]
    fn only_what_lies_in_between_counts() {
        let full = |count, first, last| gap(Family::Signal, GapCause::RingFull, count, first, last);
        let missing = Missing::new(&[full(2, 100, 200), full(3, 150, 300), full(7, 500, 500)], &[]);
        let events = |from, to| missing.between(9, from, to).map(|lost| lost.events);
        assert_eq!(events(0, 99), None);
        assert_eq!(events(301, 499), None);
        assert_eq!(events(0, 100), Some(Some(2)));
        assert_eq!(events(160, 170), Some(Some(5)), "it lies in both");
        assert_eq!(events(201, 400), Some(Some(3)));
        assert_eq!(events(0, 1_000), Some(Some(12)));
        assert_eq!(Missing::default().between(9, 0, u64::MAX), None);
    }

    #[test]
    fn what_is_not_known_may_be_anything() {
        let at_any_time = gap(Family::Unknown, GapCause::Damaged, 0, 0, 0);
        assert_eq!(Missing::new(&[at_any_time], &[]).between(9, 5, 6), Some(Lost { events: None }));
        assert_eq!(Missing::new(&[], &[(10, 20)]).between(9, 20, 30), Some(Lost { events: None }));
        let hostile = gap(Family::Signal, GapCause::RingFull, u64::MAX, 9, 3);
        assert_eq!(Missing::new(&[hostile, hostile], &[]).between(9, 0, 10), Some(Lost { events: Some(u64::MAX) }));
    }

    #[test]
    fn signals_that_end_nobody_do_not_end_this_one() {
        let everyday = gap(Family::Signal, GapCause::Everyday, 4, 10, 20);
        let missing = Missing::new(&[everyday, gap(Family::Syscall, GapCause::RingFull, 1, 10, 20)], &[]);
        assert_eq!(missing.between(9, 0, 100), None);
        assert_eq!(missing.between(35, 0, 100), Some(Lost { events: Some(4) }), "it was blocked");
    }
}
