//! Histograms of powers of two with bars, as bcc's tools print them.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::values::output::{line, room};

/// Stars of the fullest bucket.
const BAR: usize = 40;
/// The same as bpftrace has it.
const WIDE: usize = 52;

/// Counts of values by the number of their bits. Bucket 0 has 0 and 1, bucket n > 0 the values 2^n to 2^(n+1)-1.
///
/// ```
/// # use systape_answers::render::loghist::LogHist;
/// let mut hist = LogHist::default();
/// hist.add(5);
/// assert_eq!(hist.buckets(), [(0, 1, 0), (2, 3, 0), (4, 7, 1)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHist {
    counts: Vec<u64>,
}

impl LogHist {
    /// Counts `value` once.
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Counts `value` `times` times.
    pub(crate) fn add_many(&mut self, value: u64, times: u64) {
        let bucket = value.checked_ilog2().unwrap_or(0) as usize;
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(times);
    }

    /// The smaller count of both in each bucket.
    pub fn common(&self, other: &Self) -> Self {
        Self { counts: self.counts.iter().zip(&other.counts).map(|(one, other)| *one.min(other)).collect() }
    }

    /// Counts by bucket.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// One with these.
    pub fn of(counts: Vec<u64>) -> Self {
        Self { counts }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// (least value, greatest value, count) of each bucket up to the last non-empty one.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let bounds = |bucket: usize| match bucket {
            0 => (0, 1),
            bucket => (1 << bucket, (1_u64 << bucket).wrapping_shl(1).wrapping_sub(1)),
        };
        let with_bounds = |(bucket, count): (usize, &u64)| {
            let (low, high) = bounds(bucket);
            (low, high, *count)
        };
        self.counts.iter().enumerate().map(with_bounds).collect()
    }

    /// Prints a header with `unit` (`usecs`), then a line with a bar for each bucket. Nothing without values.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, out: &mut impl Write, unit: &str) -> io::Result<()> {
        if self.counts.is_empty() {
            return Ok(());
        }
        // bcc makes room for larger numbers by halving the bars
        let wide = self.counts.len() > 32;
        let (width, bar_width) = if wide { (20, BAR / 2) } else { (10, BAR) };
        let (indent, label) = if wide { (15, 29) } else { (5, 19) };
        let bar_width = bar_in(bar_width, 2 * width + 18);
        line(out, &format!("{:indent$}{unit:<label$} : count     distribution", ""))?;
        let most = self.counts.iter().copied().max().unwrap_or(0);
        for (low, high, count) in self.buckets() {
            let bar = bar(count, most, bar_width);
            line(out, &format!("{low:>width$} -> {high:<width$} : {count:<8} |{bar:<bar_width$}|"))?;
        }
        Ok(())
    }

    /// Prints a line for each bucket from the first non-empty one on, as bpftrace does: `[1K, 2K)  17 |@@@  |`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print_powers(&self, out: &mut impl Write) -> io::Result<()> {
        let most = self.counts.iter().copied().max().unwrap_or(0);
        let full = bar_in(WIDE, 30);
        for (low, high, count) in self.buckets().into_iter().skip_while(|(_, _, count)| *count == 0) {
            let range = match high.checked_add(1) {
                Some(end) => format!("[{}, {})", short(low), short(end)),
                None => format!("[{}, ...)", short(low)),
            };
            let stars = u128::from(count) * full as u128 / u128::from(most.max(1));
            let bar = "@".repeat(usize::try_from(stars).unwrap_or(full).min(full));
            line(out, &format!("{range:<16} {count:>10} |{bar:<full$}|"))?;
        }
        Ok(())
    }

    /// `1024-2047=17 ...` of the non-empty buckets.
    pub fn words(&self) -> String {
        let full = self.buckets().into_iter().filter(|(_, _, count)| *count > 0);
        full.map(|(low, high, count)| format!("{low}-{high}={count}")).collect::<Vec<_>>().join(" ")
    }

    /// The non-empty buckets as `[{"from": 2, "to": 3, "count": 17}, …]`; `to` is the greatest value, inclusive.
    pub fn json(&self) -> Value {
        let full = self.buckets().into_iter().filter(|(_, _, count)| *count > 0);
        full.map(|(low, high, count)| json!({"from": low, "to": high, "count": count})).collect()
    }
}

/// A power of two as bpftrace writes it: `4K`, `1M`.
pub fn short(value: u64) -> String {
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let unit = (value.checked_ilog2().unwrap_or(0) / 10) as usize;
    format!("{}{}", value >> (10 * unit), units[unit])
}

/// How long the longest bar is: `full`, or what a terminal has room for beside `others` cells.
fn bar_in(full: usize, others: usize) -> usize {
    const LEAST: usize = 8;
    room().map_or(full, |room| full.min(room.saturating_sub(others).max(LEAST)))
}

/// `full` stars for `most`, fewer in proportion.
fn bar(count: u64, most: u64, full: usize) -> String {
    let stars = u128::from(count) * full as u128 / u128::from(most.max(1));
    "*".repeat(usize::try_from(stars).unwrap_or(full).min(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(values: &[u64]) -> String {
        let mut hist = LogHist::default();
        values.iter().for_each(|value| hist.add(*value));
        let mut out = Vec::new();
        hist.print(&mut out, "usecs").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_bcc_prints_it() {
        let expected = "     usecs               : count     distribution
         0 -> 1          : 2        |********************                    |
         2 -> 3          : 0        |                                        |
         4 -> 7          : 4        |****************************************|
";
        assert_eq!(text(&[0, 1, 4, 5, 6, 7]), expected);
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn bounds_and_merging() {
        let (mut a, mut b) = (LogHist::default(), LogHist::default());
        a.add(3);
        b.add(u64::MAX);
        b.add(2);
        a.merge(&b);
        assert_eq!((a.total(), a.buckets()[1]), (3, (2, 3, 2)));
        assert_eq!(a.buckets().last(), Some(&(1 << 63, u64::MAX, 1)));
        assert_eq!(a.json()[0]["to"], 3);
        assert!(text(&[u64::MAX]).lines().all(|line| line.len() < 110));
    }
}
