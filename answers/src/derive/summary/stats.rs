//! Sums of a summary for one key: independent of order, and exact except for the quantiles and, with calls of the
//! ledger, the deviation.

use crate::render::loghist::LogHist;
use systape_events::filter::failed;
use systape_events::values::spill::{Stored, put_number, take_number, take_u64};
use systape_format::model::{CallState, LedgerRow};

use super::counted::{Counted, Quantile};
use super::hist::{Histogram, QUANTILE_ERROR};

/// Calls of one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// All calls, including those without a known duration.
    pub calls: u64,
    /// Calls that returned an error. Restarts do not count, because they are invisible to the caller.
    pub errors: u64,
    /// Calls with an exact duration, to which `sum`, `min`, `max` and the quantiles apply.
    pub timed: u64,
    /// Calls with only a lower bound of the duration.
    pub open: u64,
    /// Sum of the lower bounds, ns.
    pub open_sum: u128,
    /// Longest lower bound, ns.
    pub open_max: u64,
    /// Sum of the exact durations, ns.
    pub sum: u128,
    /// Sum of their squares, at most the largest u128.
    pub squares: u128,
    /// Shortest, ns; meaningless while `timed` is 0.
    pub min: u64,
    /// Longest, ns.
    pub max: u64,
    /// Histogram of the stored ones.
    pub hist: Histogram,
    /// The ledger's part of these sums; None = none.
    pub counted: Option<Box<Counted>>,
    /// (errno, how often), by errno.
    pub errnos: Vec<(u16, u64)>,
}

impl Stats {
    /// Counts a call that ran from enter to return, without an error.
    #[inline]
    pub(crate) fn add_ok(&mut self, dur: u64) {
        self.calls += 1;
        self.add_time(dur);
    }

    /// Reads what adding `durs` would change; the result means nothing.
    pub(super) fn peek(&self, durs: &[u32]) -> u64 {
        let counted = durs.first().map_or(0, |dur| self.hist.peek((*dur).into()));
        self.calls ^ self.max ^ self.sum as u64 ^ counted
    }

    /// Adds as [`Self::add_ok`] does each of `durs`, at most 2^32.
    pub(super) fn add_all_ok(&mut self, durs: &[u32]) {
        let (Some(&min), Some(&max)) = (durs.iter().min(), durs.iter().max()) else { return };
        let (mut sum, mut squares) = (0, 0);
        for dur in durs.iter().map(|dur| u64::from(*dur)) {
            sum += dur;
            squares += u128::from(dur * dur);
        }
        self.min = if self.timed == 0 { min.into() } else { self.min.min(min.into()) };
        self.max = self.max.max(max.into());
        self.calls += durs.len() as u64;
        self.timed += durs.len() as u64;
        self.sum += u128::from(sum);
        self.squares = self.squares.saturating_add(squares);
        self.hist.add_all(durs, (min.into(), max.into()));
    }

    /// Counts any call. `timeless`: exit and exit_group, which never return: their duration means nothing.
    pub fn add(&mut self, state: CallState, dur: u64, errno: u16, timeless: bool) {
        self.calls += 1;
        if failed(state, errno) {
            self.errors += 1;
            self.add_errno(errno, 1);
        }
        match state {
            CallState::Complete => self.add_time(dur),
            CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore if !timeless => {
                self.open += 1;
                self.open_sum += u128::from(dur);
                self.open_max = self.open_max.max(dur);
            }
            // it took some time, and nothing is known of it
            CallState::LostEnter => self.open += 1,
            _ => {}
        }
    }

    /// Counts the calls of a row of the ledger, as [`Self::add`] does one call.
    pub(crate) fn add_counted(&mut self, row: &LedgerRow, timeless: bool) {
        let count = row.count;
        let counted = self.counted.get_or_insert_default();
        counted.calls = counted.calls.saturating_add(count);
        match row.state {
            CallState::Complete => {
                if let Some(squares) = counted.add_sizes(row) {
                    self.squares = self.squares.saturating_add(squares);
                }
                self.min = if self.timed == 0 { row.min } else { self.min.min(row.min) };
                self.max = self.max.max(row.max);
                self.timed = self.timed.saturating_add(count);
                self.sum = self.sum.saturating_add(row.sum.into());
            }
            CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore if !timeless => {
                self.open = self.open.saturating_add(count);
                self.open_sum = self.open_sum.saturating_add(row.sum.into());
                self.open_max = self.open_max.max(row.max);
            }
            CallState::LostEnter => self.open = self.open.saturating_add(count),
            _ => {}
        }
        self.calls = self.calls.saturating_add(count);
        if failed(row.state, row.errno) {
            self.errors = self.errors.saturating_add(count);
            self.add_errno(row.errno, count);
        }
    }

    /// Calls that were counted, not stored.
    pub fn ledger_calls(&self) -> u64 {
        self.counted.as_ref().map_or(0, |counted| counted.calls)
    }

    #[inline]
    fn add_time(&mut self, dur: u64) {
        self.min = if self.timed == 0 { dur } else { self.min.min(dur) };
        self.max = self.max.max(dur);
        self.timed += 1;
        self.sum += u128::from(dur);
        self.squares = self.squares.saturating_add(u128::from(dur) * u128::from(dur));
        self.hist.add(dur);
    }

    fn add_errno(&mut self, errno: u16, count: u64) {
        match self.errnos.binary_search_by_key(&errno, |(code, _)| *code) {
            Ok(at) => self.errnos[at].1 = self.errnos[at].1.saturating_add(count),
            Err(at) => self.errnos.insert(at, (errno, count)),
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.timed > 0 {
            self.min = if self.timed == 0 { other.min } else { self.min.min(other.min) };
        }
        // counts of a ledger may be anything
        self.max = self.max.max(other.max);
        self.calls = self.calls.saturating_add(other.calls);
        self.errors = self.errors.saturating_add(other.errors);
        self.timed = self.timed.saturating_add(other.timed);
        self.open = self.open.saturating_add(other.open);
        self.open_sum = self.open_sum.saturating_add(other.open_sum);
        self.open_max = self.open_max.max(other.open_max);
        self.sum = self.sum.saturating_add(other.sum);
        if let Some(counted) = &other.counted {
            self.counted.get_or_insert_default().merge(counted);
        }
        self.squares = self.squares.saturating_add(other.squares);
        self.hist.merge(&other.hist);
        for (errno, count) in &other.errnos {
            self.add_errno(*errno, *count);
        }
    }

    /// Time in all of these calls, ns: exact if `open` is 0, else a lower bound.
    pub fn total(&self) -> u128 {
        self.sum.saturating_add(self.open_sum)
    }

    /// Average of the exact durations, ns; None when there are none.
    pub fn avg(&self) -> Option<u64> {
        (self.timed > 0).then(|| u64::try_from(self.sum / u128::from(self.timed)).unwrap_or(u64::MAX))
    }

    /// The longest call, ns: one that is open may already be longer than every finished one. None: there is none.
    pub fn longest(&self) -> Option<u64> {
        (self.timed > 0 || self.open_max > 0).then(|| self.max.max(self.open_max))
    }

    /// Standard deviation of the average in percent of it, like perf's `stddev_stats` (tools/perf/util/stat.c:
    /// `variance / n`). None: not known, because no call is timed, or because the ledger has only sums.
    pub fn stddev_percent(&self) -> Option<f64> {
        if self.timed == 0 {
            return None;
        }
        if self.timed == 1 || self.sum == 0 {
            return Some(0.0);
        }
        if self.counted.as_ref().is_some_and(|counted| counted.spread > 0) {
            return None;
        }
        let n = self.timed as f64;
        let mean = self.sum as f64 / n;
        let variance = ((self.squares as f64 - mean * self.sum as f64) / (n - 1.0)).max(0.0);
        Some(100.0 * (variance / n).sqrt() / mean)
    }

    /// A quantile of the exact durations, limited to [min, max]; None without any, or when the ledger leaves it open by
    /// more than a factor of two.
    pub fn quantile(&self, permille: u64) -> Option<Quantile> {
        if let Some(counted) = self.counted.as_ref().filter(|counted| counted.timed > 0) {
            return counted.quantile(&self.hist, permille, (self.min, self.max.max(self.min)));
        }
        let value = self.hist.quantile(permille)?.clamp(self.min, self.max);
        Some(Quantile { value, error: QUANTILE_ERROR })
    }

    /// The calls with an exact duration by the power of two that it is in; false: of some it is not known in which.
    pub fn sizes(&self) -> (LogHist, bool) {
        let (mut sizes, exact) =
            self.counted.as_ref().map_or_else(|| (LogHist::default(), true), |counted| counted.sizes());
        self.hist.values().for_each(|(value, count)| sizes.add_many(value, count));
        (sizes, exact)
    }

    /// Events as perf counts them: an enter and an exit each.
    pub fn events(&self) -> u64 {
        self.calls.saturating_add(self.timed)
    }
}

impl Stored for Stats {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { calls, errors, timed, open, open_sum, open_max, sum, squares, min, max, hist, counted, errnos } =
            self;
        for number in [calls, errors, timed, open, open_max, min, max] {
            put_number((*number).into(), out);
        }
        [open_sum, sum, squares].into_iter().for_each(|number| put_number(*number, out));
        hist.put(out);
        put_number(counted.is_some().into(), out);
        counted.iter().for_each(|counted| counted.put(out));
        for (errno, count) in errnos {
            put_number((*errno).into(), out);
            put_number((*count).into(), out);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut next = || take_u64(from);
        let (calls, errors, timed, open) = (next()?, next()?, next()?, next()?);
        let (open_max, min, max) = (next()?, next()?, next()?);
        let (open_sum, sum, squares) = (take_number(from)?, take_number(from)?, take_number(from)?);
        let hist = Histogram::take(from)?;
        let counted = match take_u64(from)? {
            0 => None,
            _ => Some(Box::new(Counted::take(from)?)),
        };
        let mut errnos = Vec::new();
        // to the end of its bytes
        while !from.is_empty() {
            errnos.push((take_u64(from)?.try_into().ok()?, take_u64(from)?));
        }
        Some(Self { calls, errors, timed, open, open_sum, open_max, sum, squares, min, max, hist, counted, errnos })
    }

    fn heap(&self) -> usize {
        let counted = self.counted.as_ref().map_or(0, |counted| size_of::<Counted>() + counted.heap());
        self.hist.heap() + counted + self.errnos.capacity() * size_of::<(u16, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_apart() {
        let mut s = Stats::default();
        s.add(CallState::Complete, 10, 0, false);
        s.add(CallState::Complete, 30, 2, false);
        s.add(CallState::Complete, 20, 512, false);
        s.add(CallState::InFlight, 500, 0, false);
        s.add(CallState::Killed, 5, 4, false);
        s.add(CallState::NoReturn, 7, 0, true);
        s.add(CallState::Denied, 0, 1, false);
        assert_eq!((s.calls, s.errors, s.timed, s.open), (7, 2, 3, 2));
        assert_eq!((s.sum, s.open_sum, s.min, s.max, s.open_max), (60, 505, 10, 30, 500));
        assert_eq!(s.errnos, [(1, 1), (2, 1)]);
        assert_eq!((s.avg(), s.total()), (Some(20), 565));
    }

    #[test]
    fn deviation_as_perf_computes_it() {
        let mut s = Stats::default();
        assert_eq!(s.stddev_percent(), None, "nothing is known");
        for dur in [2, 4, 4, 4, 5, 5, 7, 9] {
            s.add_ok(dur);
        }
        // variance 32/7, of the mean 32/56, mean 5
        assert!((s.stddev_percent().unwrap() - 100.0 * (32.0_f64 / 56.0).sqrt() / 5.0).abs() < 1e-9);
    }

    #[test]
    fn merging_is_order_free() {
        let (mut a, mut b) = (Stats::default(), Stats::default());
        a.add(CallState::Complete, 100, 0, false);
        b.add(CallState::Complete, 50, 11, false);
        b.add(CallState::BeganBefore, 900, 0, false);
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b);
        ba.merge(&a);
        assert_eq!((ab.calls, ab.min, ab.max, ab.total()), (3, 50, 100, 1050));
        assert_eq!((ba.quantile(500), ba.errnos.clone()), (ab.quantile(500), ab.errnos.clone()));
    }
}
