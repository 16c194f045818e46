//! Medians, and how numbers are printed.

use std::fmt;

/// Numbers of several rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Adds one.
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// All, the lowest first.
    pub(crate) fn all(&self) -> &[f64] {
        &self.0
    }

    /// The middle one, or the mean of the two in the middle; NaN when there are none.
    pub(crate) fn median(&self) -> f64 {
        let n = self.0.len();
        match n {
            0 => f64::NAN,
            _ if n % 2 == 1 => self.0[n / 2],
            _ => (self.0[n / 2 - 1] + self.0[n / 2]) / 2.0,
        }
    }

    /// The highest; NaN when there are none.
    pub(crate) fn highest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The median of those there are.
    pub(crate) fn known(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.median())
    }

    /// How far apart the quartiles are, as a share of the median; NaN when there are none. Of five numbers these are the second
    /// and the fourth: one odd run does not count.
    pub(crate) fn spread(&self) -> f64 {
        let quartile = |q: usize| {
            let at = (self.0.len().saturating_sub(1) * q) as f64 / 4.0;
            let [low, high] = [at.floor(), at.ceil()].map(|i| self.0.get(i as usize).copied().unwrap_or(f64::NAN));
            low + (high - low) * at.fract()
        };
        (quartile(3) - quartile(1)) / self.median()
    }

    /// Lowest and highest.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
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

/// How much slower than `bare` (a rate): the ratio of the medians, and those of the slowest and fastest round.
/// `3.28x (3.10-3.91)`, `421x (402-460)`.
pub(crate) fn slowdown(bare: f64, rates: &Samples) -> String {
    let Some((low, high)) = rates.range() else { return "-".into() };
    let middle = bare / rates.median();
    let digits = digits(middle);
    format!("{middle:.digits$}x ({:.digits$}-{:.digits$})", bare / high, bare / low)
}

/// A ratio with three digits that count, at most two of them after the point.
pub(crate) fn times(ratio: f64) -> String {
    let digits = digits(ratio);
    format!("{ratio:.digits$}x")
}

/// Two places after the point; never `-0.00`.
pub(crate) fn two_places(number: f64) -> String {
    let text = format!("{number:.2}");
    if text == "-0.00" { "0.00".into() } else { text }
}

fn digits(number: f64) -> usize {
    match number.abs() {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        _ => 2,
    }
}

/// A large number in four places: `512`, `92.6k`, `2.35M`.
pub(crate) fn short(number: f64) -> String {
    let (number, suffix) = match number.abs() {
        n if n >= 1e6 => (number / 1e6, "M"),
        n if n >= 1e3 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let digits = if suffix.is_empty() && number >= 100.0 { 0 } else { digits(number) };
    format!("{number:.digits$}{suffix}")
}

/// Seconds in the unit that suits them.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds.abs() {
        s if s < 1e-6 => format!("{:.0} ns", seconds * 1e9),
        s if s < 1e-3 => format!("{:.2} µs", seconds * 1e6),
        s if s < 1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|v| samples.push(*v));
        samples
    }

    #[test]
    fn medians_and_spread() {
        assert_eq!((format!("{}", samples(&[])), samples(&[]).known()), ("-".into(), None));
        assert_eq!(format!("{:.1}", samples(&[3.0, 1.0, 2.0])), "2.0 (1.0-3.0)");
        assert_eq!(samples(&[3.0, 1.0, 2.0, 4.0]).known(), Some(2.5));
    }

    #[test]
    fn one_odd_run_is_no_spread() {
        assert_eq!(samples(&[2.0, 1.5, 2.5, 9.0, 1.0]).spread(), 0.5);
        assert_eq!((samples(&[2.0]).spread(), samples(&[]).spread().is_nan()), (0.0, true));
    }

    #[test]
    fn the_slowest_round_is_the_largest_slowdown() {
        assert_eq!(slowdown(100.0, &samples(&[50.0, 40.0, 80.0])), "2.00x (1.25-2.50)");
        assert_eq!(slowdown(1000.0, &samples(&[2.0])), "500x (500-500)");
        assert_eq!(slowdown(1000.0, &samples(&[])), "-");
    }

    #[test]
    fn numbers_with_three_digits() {
        let short_ones = [0.5, 42.0, 512.4, 92_592.6, 2_345_678.0].map(short);
        assert_eq!(short_ones, ["0.50", "42.0", "512", "92.6k", "2.35M"]);
        assert_eq!([2.444, 17.26, 699.8].map(times), ["2.44x", "17.3x", "700x"]);
        assert_eq!([0.254, -0.001, -0.05].map(two_places), ["0.25", "0.00", "-0.05"]);
        assert_eq!([177e-9, 4.2e-6, 0.0123, 1.5].map(duration), ["177 ns", "4.20 µs", "12.30 ms", "1.50 s"]);
    }
}
