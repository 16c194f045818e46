//! The part of a sum that was counted, not stored. Durations are known by powers of two, so quantiles are known between
//! two bounds.

use systape_format::model::LedgerRow;

use crate::render::loghist::LogHist;
use systape_events::values::spill::{Stored, put_number, take_u64};

use super::hist::{Histogram, quantile_bounds};

/// Calls of one key from the ledger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// All calls.
    pub calls: u64,
    /// Number of calls with an exact duration.
    pub timed: u64,
    /// Calls among these whose squares are not known.
    pub spread: u64,
    /// The timed calls, each with its least possible duration.
    low: Histogram,
    /// The same with the greatest possible durations.
    high: Histogram,
}

/// A quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Time in ns.
    pub value: u64,
    /// Largest error, relative to the true one.
    pub error: f64,
}

impl Counted {
    /// Adds the durations of `row`, of calls with exact durations. Returns the sum of their squares if it is known.
    pub(crate) fn add_sizes(&mut self, row: &LedgerRow) -> Option<u128> {
        self.timed = self.timed.saturating_add(row.count);
        // one of them took `min` and one `max`: of up to two calls everything is known
        let wide = row.count.saturating_sub(2);
        let buckets = if row.sizes.is_empty() { &[(u8::MAX, row.count)][..] } else { &row.sizes };
        let last = buckets.len() - 1;
        for (at, (bucket, count)) in buckets.iter().enumerate() {
            let (low, high) = edges(*bucket);
            let (low, high) = (low.clamp(row.min, row.max), high.clamp(row.min, row.max));
            let of_max = u64::from(at == last);
            let of_min = u64::from(at == 0);
            self.low.add_many(low, count.saturating_sub(of_max));
            self.low.add_many(row.max, of_max);
            self.high.add_many(high, count.saturating_sub(of_min));
            self.high.add_many(row.min, of_min);
        }
        let (min, max) = (u128::from(row.min), u128::from(row.max));
        if min == max {
            return Some((min * min).saturating_mul(row.count.into()));
        }
        if wide == 0 {
            return Some((min * min).saturating_add(max * max));
        }
        self.spread = self.spread.saturating_add(row.count);
        None
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.timed = self.timed.saturating_add(other.timed);
        self.spread = self.spread.saturating_add(other.spread);
        self.low.merge(&other.low);
        self.high.merge(&other.high);
    }

    /// The timed calls by the power of two that their durations are in, as far as that is sure; and whether it is of all.
    pub fn sizes(&self) -> (LogHist, bool) {
        let of = |hist: &Histogram| {
            let mut sizes = LogHist::default();
            hist.values().for_each(|(value, count)| sizes.add_many(value, count));
            sizes
        };
        let (low, high) = (of(&self.low), of(&self.high));
        let sure = low.common(&high);
        (sure, low == high)
    }

    /// A quantile of these and the `stored` durations, all of which lie in `range`; None when it could be off by more
    /// than a factor of two.
    pub fn quantile(&self, stored: &Histogram, permille: u64, (min, max): (u64, u64)) -> Option<Quantile> {
        // whatever each call took, the value at this rank is not below that of the least, nor above that of the greatest durations
        let low = quantile_bounds(&[stored, &self.low], permille)?.0.clamp(min, max);
        let high = quantile_bounds(&[stored, &self.high], permille)?.1.clamp(min, max);
        // sizes of a tape of somebody else's may contradict its least and greatest
        let (low, high) = (low.min(high), high.max(low));
        if low == high {
            return Some(Quantile { value: low, error: 0.0 });
        }
        let middle = (low as f64 * high as f64).sqrt() as u64;
        let value = middle.clamp(low, high);
        let error = f64::max(high as f64 / value as f64, value as f64 / low as f64) - 1.0;
        (error <= 1.0).then_some(Quantile { value, error })
    }
}

/// The least and the greatest duration of a bucket of the ledger; all durations if there is no such bucket.
fn edges(bucket: u8) -> (u64, u64) {
    match bucket {
        0 => (0, 1),
        1..64 => (1 << bucket, (1 << bucket) + ((1 << bucket) - 1)),
        _ => (0, u64::MAX),
    }
}

impl Stored for Counted {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { calls, timed, spread, low, high } = self;
        [calls, timed, spread].into_iter().for_each(|number| put_number((*number).into(), out));
        [low, high].into_iter().for_each(|hist| hist.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (calls, timed, spread) = (take_u64(from)?, take_u64(from)?, take_u64(from)?);
        Some(Self { calls, timed, spread, low: Histogram::take(from)?, high: Histogram::take(from)? })
    }

    fn heap(&self) -> usize {
        self.low.heap() + self.high.heap()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use systape_format::model::size_bucket;

    use super::*;

    /// The row a recorder makes of these durations.
    fn row(durs: &[u64], sized: bool) -> LedgerRow {
        let mut sizes = std::collections::BTreeMap::new();
        durs.iter().for_each(|dur| *sizes.entry(size_bucket(*dur)).or_insert(0) += 1);
        LedgerRow {
            count: durs.len() as u64,
            sum: durs.iter().sum(),
            min: durs.iter().copied().min().unwrap_or(0),
            max: durs.iter().copied().max().unwrap_or(0),
            sizes: if sized { sizes.into_iter().collect() } else { Vec::new() },
            ..LedgerRow::default()
        }
    }

    /// Durations of calls: many alike, some far off.
    fn durations(most: usize) -> impl Strategy<Value = Vec<u64>> {
        let one = prop_oneof![4 => 200_u64..900, 2 => 1_000_u64..40_000, 1 => 0_u64..5_000_000_000];
        prop::collection::vec(one, 0..most)
    }

    #[test]
    fn sizes_that_contradict_the_least_and_the_greatest_are_survived() {
        for (min, max) in [(5000, 9000), (0, 7), (4096, 4096), (0, u64::MAX)] {
            for bucket in [0, 11, 12, 63, 64, 255] {
                let mut counted = Counted::default();
                let row = LedgerRow { count: 3, min, max, sizes: vec![(bucket, 1), (12, 2)], ..LedgerRow::default() };
                counted.add_sizes(&row);
                for range in [(0, u64::MAX), (4095, 4095), (min, max)] {
                    let quantile = counted.quantile(&Histogram::default(), 500, range);
                    assert!(quantile.is_none_or(|q| (range.0..=range.1).contains(&q.value)), "{row:?} {range:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_its_stated_error(
            stored in durations(120),
            rows in prop::collection::vec((durations(60), any::<bool>()), 1..6),
            permille in prop_oneof![Just(500_u64), Just(990), 1_u64..1000],
        ) {
            let (mut counted, mut hist, mut squares, mut known) = (Counted::default(), Histogram::default(), 0_u128, true);
            let mut all = stored.clone();
            stored.iter().for_each(|dur| hist.add(*dur));
            for (durs, sized) in rows.iter().filter(|(durs, _)| !durs.is_empty()) {
                let mut part = Counted::default();
                match part.add_sizes(&row(durs, *sized)) {
                    Some(sum) => squares += sum,
                    None => known = false,
                }
                counted.merge(&part);
                all.extend(durs);
            }
            prop_assume!(!all.is_empty());
            all.sort_unstable();
            let exact = all[((all.len() as u64 * permille).div_ceil(1000) - 1) as usize];
            let got = counted.quantile(&hist, permille, (all[0], all[all.len() - 1]));
            if let Some(Quantile { value, error }) = got {
                prop_assert!(error <= 1.0);
                prop_assert!(value.abs_diff(exact) as f64 <= exact as f64 * error + 1e-6, "{value} for {exact}, error {error}");
            }
            if known {
                let of_ledger: u128 = rows.iter().flat_map(|(durs, _)| durs).map(|d| u128::from(*d).pow(2)).sum();
                prop_assert_eq!(squares, of_ledger);
            }
        }
    }

    #[test]
    fn what_is_known_of_few_calls_is_exact() {
        let whole = (0, u64::MAX);
        for durs in [&[700][..], &[600, 1_000], &[512, 512, 512]] {
            let mut counted = Counted::default();
            assert!(counted.add_sizes(&row(durs, true)).is_some(), "{durs:?}");
            let got = counted.quantile(&Histogram::default(), 500, whole).expect("a median");
            assert!(got.value.abs_diff(durs[0]) * 16 <= durs[0] && got.error < 0.07, "{got:?} of {durs:?}");
        }
        let mut counted = Counted::default();
        assert_eq!(counted.add_sizes(&row(&[600, 700, 1_000], true)), None);
        assert_eq!(counted.spread, 3);
    }

    #[test]
    fn without_sizes_it_is_not_known() {
        let mut counted = Counted::default();
        counted.add_sizes(&row(&[10, 400, 900, 100_000], false));
        assert_eq!(counted.quantile(&Histogram::default(), 500, (10, 100_000)), None);
        // a thousand stored calls of one size decide, whatever these took
        let mut hist = Histogram::default();
        (0..1_000).for_each(|_| hist.add(1_000));
        let got = counted.quantile(&hist, 500, (10, 100_000)).expect("a median");
        assert!(got.error < 0.07 && got.value.abs_diff(1_000) < 65, "{got:?}");
    }

    #[test]
    fn rows_that_lie_are_survived() {
        let mut counted = Counted::default();
        let lie = LedgerRow {
            count: u64::MAX,
            min: 5,
            max: u64::MAX,
            sizes: vec![(63, u64::MAX - 1), (0, 1)],
            ..LedgerRow::default()
        };
        counted.add_sizes(&lie);
        counted.add_sizes(&lie);
        assert_eq!(counted.timed, u64::MAX);
        counted.quantile(&Histogram::default(), 990, (5, u64::MAX));
    }
}
