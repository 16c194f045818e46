//! A log-linear histogram of durations, 16 buckets per power of two (like HdrHistogram), so a quantile is off by at
//! most 1/32 (3.1 %).
//!
//! Values below 16 have a bucket each. Most keys have few values: the bucket of each is kept, two bytes a value. With more
//! there is a counter for each bucket of the range in use. Histograms can be added up in any order.

use std::borrow::Cow;

use smallvec::SmallVec;

use systape_events::values::spill::{Stored, put_number, take_u64};

/// log2 of the buckets per power of two.
const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;

/// So many counters are allocated at a time, as most values of a key lie near each other.
const ROOM: usize = 8;
/// Most values that are kept one by one.
const FEW: usize = 64;
/// So many of them need no memory of their own.
const INLINE: usize = 16;

/// The largest relative error of [`Histogram::quantile`]: half a bucket.
pub const QUANTILE_ERROR: f64 = 1.0 / (2 * SUB) as f64;

/// Counts of values by size.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The bucket of each value, in any order; empty if there are counters.
    few: SmallVec<[u16; INLINE]>,
    /// Bucket of `counts[0]`.
    first: usize,
    counts: Counters,
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.spread(), other.spread());
        one.values().eq(other.values())
    }
}

impl Eq for Histogram {}

impl Histogram {
    /// Counts `value` once.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        let at = bucket.wrapping_sub(self.first);
        if let Counters::Narrow(counts) = &mut self.counts
            && let Some(count) = counts.get_mut(at)
            && let Some(more) = count.checked_add(1)
        {
            *count = more;
        } else {
            self.add_new(bucket);
        }
    }

    /// Counts a value of a bucket without counter, or with one that may not be narrow.
    #[cold]
    fn add_new(&mut self, bucket: usize) {
        if self.has_room(1) {
            self.few.push(bucket as u16);
        } else {
            self.add_times(bucket, 1);
        }
    }

    /// Counts each of `values`, which are within `min..=max`.
    pub(super) fn add_all(&mut self, values: &[u32], (min, max): (u64, u64)) {
        let buckets = values.iter().map(|value| bucket((*value).into()));
        if self.has_room(values.len()) {
            self.few.extend(buckets.map(|bucket| bucket as u16));
            return;
        }
        self.cover(bucket(min), bucket(max) + 1);
        let (first, mut full) = (self.first, 0);
        if let Counters::Narrow(counts) = &mut self.counts {
            for bucket in buckets.clone() {
                match counts[bucket - first].checked_add(1) {
                    Some(count) => counts[bucket - first] = count,
                    None => break,
                }
                full += 1;
            }
        }
        buckets.skip(full).for_each(|bucket| self.counts.add(bucket - first, 1));
    }

    /// How many values are in the bucket of `value`, if there are counters.
    pub(super) fn peek(&self, value: u64) -> u64 {
        self.count(bucket(value))
    }

    /// Counts `value` `times` times.
    pub(crate) fn add_many(&mut self, value: u64, times: u64) {
        if times > 0 {
            self.add_times(bucket(value), times);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() && self.has_room(other.few.len()) {
            self.few.extend_from_slice(&other.few);
        } else if other.counts.is_empty() {
            let (least, most) = (other.few.iter().min(), other.few.iter().max());
            self.cover(least.map_or(0, |at| (*at).into()), most.map_or(0, |at| usize::from(*at) + 1));
            for bucket in &other.few {
                self.counts.add(usize::from(*bucket) - self.first, 1);
            }
        } else {
            let from = self.cover(other.first, other.first + other.counts.len());
            for (at, count) in other.counts.iter().enumerate().filter(|(_, count)| *count > 0) {
                self.counts.add(from + at, count);
            }
        }
    }

    /// The least value of each bucket in use, and how many values are in it.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let this = self.spread();
        let full = this.counts.iter().enumerate().filter(|(_, count)| *count > 0);
        full.map(|(at, count)| (edges(this.first + at).0, count)).collect::<Vec<_>>().into_iter()
    }

    /// Whether `more` values can be kept one by one.
    fn has_room(&self, more: usize) -> bool {
        self.counts.is_empty() && self.few.len() + more <= FEW
    }

    /// Counts `bucket` so often, with counters.
    fn add_times(&mut self, bucket: usize, times: u64) {
        let at = self.cover(bucket, bucket + 1);
        self.counts.add(at, times);
    }

    /// The same with counters.
    fn spread(&self) -> Cow<'_, Self> {
        if self.few.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut spread = self.clone();
        let bucket = self.few[0].into();
        spread.cover(bucket, bucket + 1);
        Cow::Owned(spread)
    }

    /// Makes counters of the buckets `from` to before `to`, and of those in use; returns the index of the first.
    fn cover(&mut self, from: usize, to: usize) -> usize {
        if from >= self.first && to <= self.first + self.counts.len() {
            return from - self.first;
        }
        let few = std::mem::take(&mut self.few);
        let (least, most) = (few.iter().min(), few.iter().max());
        self.widen(least.map_or(from, |at| from.min((*at).into())), most.map_or(to, |at| to.max(usize::from(*at) + 1)));
        for bucket in few {
            self.counts.add(usize::from(bucket) - self.first, 1);
        }
        from - self.first
    }

    fn widen(&mut self, from: usize, to: usize) {
        // whole rooms: the same values have the same counters, whatever their order
        let (low, high) = (from / ROOM * ROOM, to.next_multiple_of(ROOM));
        if self.counts.is_empty() {
            self.first = low;
        }
        let high = high.max(self.first + self.counts.len());
        self.counts.widen(self.first.saturating_sub(low), high - low.min(self.first));
        self.first = low.min(self.first);
    }

    /// The value below which `permille` of 1000 values lie (nearest rank), as the middle of its bucket; None without
    /// values.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        if self.counts.is_empty() {
            return self.quantile_of_few(permille);
        }
        let rank = (self.total() * u128::from(permille)).div_ceil(1000).max(1);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += u128::from(count);
            seen >= rank
        });
        at.map(|at| middle(self.first + at))
    }

    fn quantile_of_few(&self, permille: u64) -> Option<u64> {
        let mut buckets = [0; FEW];
        let buckets = buckets.get_mut(..self.few.len()).filter(|buckets| !buckets.is_empty())?;
        buckets.copy_from_slice(&self.few);
        let rank = (buckets.len() as u64 * permille).div_ceil(1000).max(1) as usize - 1;
        let (_, bucket, _) = buckets.select_nth_unstable(rank.min(self.few.len() - 1));
        Some(middle((*bucket).into()))
    }

    fn total(&self) -> u128 {
        self.counts.iter().map(u128::from).sum()
    }

    fn count(&self, bucket: usize) -> u64 {
        bucket.checked_sub(self.first).map_or(0, |at| self.counts.get(at))
    }
}

impl Stored for Histogram {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.few.len() as u128, out);
        self.few.iter().for_each(|bucket| put_number((*bucket).into(), out));
        put_number(self.first as u128, out);
        put_number(self.counts.len() as u128, out);
        self.counts.iter().for_each(|count| put_number(count.into(), out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let few = (0..take_u64(from)?).map(|_| take_u64(from)?.try_into().ok()).collect::<Option<_>>()?;
        let first = take_u64(from)?.try_into().ok()?;
        let counts: Vec<u64> = (0..take_u64(from)?).map(|_| take_u64(from)).collect::<Option<_>>()?;
        let narrow = counts.iter().map(|count| u32::try_from(*count).ok()).collect::<Option<Vec<_>>>();
        let counts = narrow.map_or_else(|| Counters::Wide(counts), Counters::Narrow);
        Some(Self { few, first, counts })
    }

    fn heap(&self) -> usize {
        let few = if self.few.spilled() { self.few.capacity() * size_of::<u16>() } else { 0 };
        few + match &self.counts {
            Counters::Narrow(counts) => counts.capacity() * size_of::<u32>(),
            Counters::Wide(counts) => counts.capacity() * size_of::<u64>(),
        }
    }
}

/// Counters of buckets that follow each other. They are narrow until one of them overflows, because most are of few calls.
#[derive(Clone, Debug)]
enum Counters {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for Counters {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl Counters {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(counts) => counts.len(),
            Self::Wide(counts) => counts.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// 0 if there is none at that index.
    fn get(&self, at: usize) -> u64 {
        match self {
            Self::Narrow(counts) => counts.get(at).copied().unwrap_or(0).into(),
            Self::Wide(counts) => counts.get(at).copied().unwrap_or(0),
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Adds to the counter at that index.
    #[inline]
    fn add(&mut self, at: usize, times: u64) {
        if let Self::Narrow(counts) = self {
            match u32::try_from(u64::from(counts[at]).saturating_add(times)) {
                Ok(count) => return counts[at] = count,
                Err(_) => *self = Self::Wide(counts.iter().map(|count| u64::from(*count)).collect()),
            }
        }
        if let Self::Wide(counts) = self {
            counts[at] = counts[at].saturating_add(times);
        }
    }

    /// Puts so many counters of 0 before those there are, and others behind, until there are `len`.
    fn widen(&mut self, before: usize, len: usize) {
        fn widen<T: Clone + Default>(counts: &mut Vec<T>, before: usize, len: usize) {
            counts.reserve_exact(len - counts.len());
            counts.splice(0..0, std::iter::repeat_n(T::default(), before));
            counts.resize(len, T::default());
        }
        match self {
            Self::Narrow(counts) => widen(counts, before, len),
            Self::Wide(counts) => widen(counts, before, len),
        }
    }
}

/// The least and the greatest value of the bucket with this quantile of all values of `parts`; None without values.
pub(crate) fn quantile_bounds(parts: &[&Histogram], permille: u64) -> Option<(u64, u64)> {
    let spread: Vec<Cow<'_, Histogram>> = parts.iter().map(|part| part.spread()).collect();
    quantile_bucket(&spread.iter().map(|part| &**part).collect::<Vec<_>>(), permille).map(edges)
}

/// The bucket with the value below which `permille` of 1000 values of `parts`, which have counters, lie (nearest rank).
fn quantile_bucket(parts: &[&Histogram], permille: u64) -> Option<usize> {
    let total: u128 = parts.iter().map(|part| part.total()).sum();
    let rank = (total * u128::from(permille)).div_ceil(1000).max(1);
    let used = || parts.iter().filter(|part| !part.counts.is_empty());
    let from = used().map(|part| part.first).min()?;
    let to = used().map(|part| part.first + part.counts.len()).max()?;
    let mut seen = 0;
    (from..to).find(|bucket| {
        seen += parts.iter().map(|part| u128::from(part.count(*bucket))).sum::<u128>();
        seen >= rank
    })
}

/// The bucket of `value`; 0 to 975.
#[inline]
fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - SUB_BITS;
    (u64::from(octave) * SUB + (value >> octave)) as usize
}

/// The middle of bucket `index`.
fn middle(index: usize) -> u64 {
    let (low, high) = edges(index);
    low + (high - low).div_ceil(2)
}

/// The least and the greatest value of bucket `index`.
fn edges(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < SUB {
        return (index, index);
    }
    let octave = index / SUB - 1;
    let low = (index % SUB + SUB) << octave;
    (low, low + ((1 << octave) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_narrow_and_order_is_kept(a: u64, shift in 0_u32..64) {
            let value = a >> shift;
            let back = middle(bucket(value));
            prop_assert!(back.abs_diff(value) as f64 <= value as f64 * QUANTILE_ERROR + 0.5, "{} {}", value, back);
            prop_assert!(bucket(value) <= bucket(value.saturating_add(1)));
        }

        #[test]
        fn quantiles_agree_with_sorting_and_merging_is_adding(mut values in prop::collection::vec(0_u64..5_000_000, 1..300), cut in 0_usize..300) {
            let (mut whole, mut left, mut right) = (Histogram::default(), Histogram::default(), Histogram::default());
            for (i, v) in values.iter().enumerate() {
                whole.add(*v);
                if i < cut { left.add(*v) } else { right.add(*v) }
            }
            right.merge(&left);
            values.sort_unstable();
            for permille in [500, 990] {
                let exact = values[((values.len() as u64 * permille).div_ceil(1000) - 1) as usize];
                let got = whole.quantile(permille).unwrap();
                prop_assert!(got.abs_diff(exact) as f64 <= exact as f64 * QUANTILE_ERROR + 0.5);
                prop_assert_eq!(right.quantile(permille), Some(got));
            }
        }
    }

    #[test]
    fn extremes() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(500), None);
        h.add(u64::MAX);
        h.add(0);
        assert_eq!(h.quantile(500), Some(0));
        assert!(h.quantile(990).unwrap() > u64::MAX / 32 * 31);
    }
}
