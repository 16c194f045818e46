//! Histograms one below the other as a map of characters: time downwards, the size of values to the right.

use std::io::{self, Write};

use super::loghist::{LogHist, short};
use crate::values::output::{line, room};

/// From one value to the most; a place without values is blank.
const SHADES: &[u8] = b".:-=+*#%@";
/// Characters of a bucket; the longest label has four, and one is between two.
const CELL: usize = 5;
/// Empty rows that are printed before they become `...`.
const EMPTY: u64 = 3;

/// The values of one stretch of time.
#[derive(Debug)]
pub struct HeatStretch {
    /// Number of the stretch; None: that of the values is not known.
    pub at: Option<u64>,
    /// How many there are, as text.
    pub count: String,
    /// The values.
    pub sizes: LogHist,
}

/// Prints `stretches`, which are in order of time, those of an unknown time last; stretches in between that are missing are empty.
/// The columns are headed `unit` and `of`, then the least value of each bucket.
///
/// # Errors
/// They cannot be written.
pub fn print(stretches: &[HeatStretch], (unit, of): (&str, &str), out: &mut impl Write) -> io::Result<()> {
    let all: Vec<_> = stretches.iter().map(|stretch| stretch.sizes.buckets()).collect();
    let full = |buckets: &Vec<(u64, u64, u64)>| buckets.iter().position(|(_, _, count)| *count > 0);
    let first = all.iter().filter_map(full).min().unwrap_or(0);
    let end = all.iter().map(Vec::len).max().unwrap_or(0).max(first);
    let most = all.iter().flatten().map(|(_, _, count)| *count).max().unwrap_or(0);
    let wide = stretches.iter().map(|stretch| stretch.count.len()).max().unwrap_or(0).max(of.len());
    // a narrow terminal has narrower buckets, and labels of some
    let left = room().map(|room| room.saturating_sub(wide + 11) / (end - first).max(1));
    let width = left.map_or(CELL, |left| left.clamp(1, CELL));
    let labelled = CELL.div_ceil(width);
    let starts: Vec<usize> = (first..end).collect();
    let bounds: String = starts
        .chunks(labelled)
        .map(|some| {
            format!("{:>fill$}", short(low(some[0])), fill = if width == CELL { CELL } else { some.len() * width })
        })
        .collect();
    line(out, &format!("{unit:>8}  {of:>wide$} {bounds}"))?;
    let mut next = None;
    for (stretch, buckets) in stretches.iter().zip(&all) {
        if let (Some(at), Some(next)) = (stretch.at, next) {
            gap(next, at, out)?;
        }
        let name = stretch.at.map_or_else(|| "?".to_owned(), |at| at.to_string());
        let count = |bucket: usize| buckets.get(bucket).map_or(0, |(_, _, count)| *count);
        let cells: String = (first..end).map(|bucket| cell(count(bucket), most, width)).collect();
        line(out, format!("{name:>8}  {:>wide$} {cells}", stretch.count).trim_end())?;
        next = stretch.at.map(|at| at.saturating_add(1));
    }
    Ok(())
}

/// The empty rows from `next` to before `at`.
fn gap(next: u64, at: u64, out: &mut impl Write) -> io::Result<()> {
    match at.saturating_sub(next) {
        few @ 0..=EMPTY => (next..next + few).try_for_each(|empty| line(out, &format!("{empty:>8}"))),
        _ => line(out, &format!("{:>8}", "...")),
    }
}

/// Least value of a bucket of [`LogHist`].
fn low(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { 1 << bucket.min(63) }
}

/// A bucket of `width` characters; the first is a blank if there are more.
fn cell(count: u64, most: u64, width: usize) -> String {
    let shade = shade(count, most).map_or(b' ', |at| SHADES[at]);
    let shades = char::from(shade).to_string().repeat(width.saturating_sub(1).max(1));
    if width > 1 { format!(" {shades}") } else { shades }
}

/// The place in [`SHADES`], by the logarithm: a single slow call among millions is seen. None: there is nothing.
fn shade(count: u64, most: u64) -> Option<usize> {
    let last = SHADES.len() - 1;
    match (count, most) {
        (0, _) => None,
        // of equal numbers all are the most
        (_, most) if count >= most => Some(last),
        _ => Some(((count as f64).ln() / (most as f64).ln() * last as f64) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_of_the_logarithm() {
        assert_eq!([0, 1, 10, 99, 100].map(|count| shade(count, 100)), [None, Some(0), Some(4), Some(7), Some(8)]);
        assert_eq!((shade(1, 1), shade(u64::MAX, u64::MAX), shade(1, u64::MAX)), (Some(8), Some(8), Some(0)));
    }

    #[test]
    fn empty_stretches_are_rows_few_of_them() {
        let of = |at, values: &[u64]| {
            let mut sizes = LogHist::default();
            values.iter().for_each(|value| sizes.add(*value));
            HeatStretch { at, count: values.len().to_string(), sizes }
        };
        let map = [of(Some(1), &[5, 5, 6]), of(Some(3), &[20]), of(Some(9), &[5]), of(None, &[16, 17])];
        let mut out = Vec::new();
        print(&map, ("second", "calls"), &mut out).unwrap();
        let expected = "  second  calls     4    8   16
       1      3  @@@@
       2
       3      1            ....
     ...
       9      1  ....
       ?      2            ****
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn nothing_and_the_largest_numbers_print() {
        let mut out = Vec::new();
        print(&[], ("second", "calls"), &mut out).unwrap();
        let mut sizes = LogHist::default();
        sizes.add(u64::MAX);
        print(&[HeatStretch { at: Some(u64::MAX), count: "1".into(), sizes }], ("minute", "calls"), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
