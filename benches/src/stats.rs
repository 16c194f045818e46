//! Medians, and the table they are printed in.

use std::fmt;

/// Numbers of several rounds.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The middle one, or the mean of the two in the middle; NaN when there are none.
    pub fn median(&self) -> f64 {
        let n = self.0.len();
        match n {
            0 => f64::NAN,
            _ if n % 2 == 1 => self.0[n / 2],
            _ => (self.0[n / 2 - 1] + self.0[n / 2]) / 2.0,
        }
    }

    fn range(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }
}

/// `0.812 (0.801-0.855)`
impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        match self.range() {
            Some((low, high)) => write!(f, "{:.digits$} ({low:.digits$}-{high:.digits$})", self.median()),
            None => write!(f, "-"),
        }
    }
}

/// Prints a Markdown table.
pub fn table(head: &[&str], rows: &[Vec<String>]) {
    let width =
        |i: usize| rows.iter().filter_map(|r| r.get(i)).map(String::len).chain([head[i].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(c, w)| format!("{c:w$}"));
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    line(&head.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
    line(&widths.iter().map(|w| "-".repeat(*w)).collect::<Vec<_>>());
    for row in rows {
        line(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spread() {
        let mut s = Samples::default();
        assert_eq!(format!("{s}"), "-");
        for v in [3.0, 1.0, 2.0] {
            s.push(v);
        }
        assert_eq!(format!("{s:.1}"), "2.0 (1.0-3.0)");
        s.push(4.0);
        assert_eq!(s.median(), 2.5);
    }
}
