//! Where a series of numbers changes its level: the split into levels that costs least, where a level costs how far its numbers are from
//! its median, and each further level what noise could earn by one.
//!
//! Medians make a few outliers cheap, so one slow second is no change. The noise is measured from neighbours: a step is one large
//! difference, noise is many.

/// Fewer numbers make no level.
const LEAST: usize = 2;
/// Most numbers of a series that is split: the work grows with the square.
pub const MOST: usize = 240;

/// A level ends and another begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first number of the new level.
    pub at: usize,
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
}

/// Median of `values`; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = sorted.len() / 2;
    match (sorted.get(at), sorted.len() % 2) {
        (Some(value), 1) => *value,
        (Some(value), _) => (sorted[at - 1] + value) / 2.0,
        (None, _) => 0.0,
    }
}

/// Standard deviation of the noise of `values`, at least `floor`.
fn noise(values: &[f64], floor: f64) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // of numbers that are distributed normally; two of them differ by the root of two more
    (1.4826 * median(&steps) / 2.0_f64.sqrt()).max(floor)
}

/// The changes of `values`, of which noise has at least the deviation `floor`; none of more than [`MOST`].
pub fn changes(values: &[f64], floor: f64) -> Vec<Change> {
    let count = values.len();
    if !(2 * LEAST..=MOST).contains(&count) || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let penalty = 3.0 * noise(values, floor) * (count as f64).ln();
    // of the first `end` numbers: the least cost, and where their last level begins
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0); count + 1];
    for end in 1..=count {
        let starts = (0..=end.saturating_sub(LEAST)).filter(|start| *start == 0 || *start >= LEAST);
        let cost = |start: usize| {
            let level = median(&values[start..end]);
            let far: f64 = values[start..end].iter().map(|value| (value - level).abs()).sum();
            best[start].0 + far + if start > 0 { penalty } else { 0.0 }
        };
        let least = starts.map(|start| (cost(start), start)).min_by(|a, b| a.0.total_cmp(&b.0));
        best[end] = least.unwrap_or((f64::INFINITY, 0));
    }
    let mut starts = Vec::new();
    let mut end = count;
    while end > 0 {
        end = best[end].1;
        starts.push(end);
    }
    starts.reverse();
    let level = |nth: usize| {
        let to = starts.get(nth + 1).copied().unwrap_or(count);
        median(&values[starts[nth]..to])
    };
    (1..starts.len()).map(|nth| Change { at: starts[nth], before: level(nth - 1), after: level(nth) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` numbers around `level`, up to 5 % off, the same each time.
    fn around(level: f64, count: usize) -> Vec<f64> {
        (0..count).map(|at| level * (1.0 + 0.01 * ((at * 7 + 3) % 11) as f64 - 0.05)).collect()
    }

    fn places(values: &[f64], floor: f64) -> Vec<usize> {
        changes(values, floor).iter().map(|change| change.at).collect()
    }

    #[test]
    fn a_step_is_where_it_is() {
        let values = [around(10.0, 30), around(20.0, 20)].concat();
        let found = changes(&values, 0.1);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].at, 30);
        assert!((found[0].before - 10.0).abs() < 0.5 && (found[0].after - 20.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn what_begins_and_ends_changes_twice() {
        let values = [around(0.0, 20), around(30.0, 5), around(0.0, 20)].concat();
        assert_eq!(places(&values, 0.5), [20, 25]);
    }

    #[test]
    fn noise_and_outliers_are_no_change() {
        assert_eq!(places(&around(10.0, 60), 0.1), [0; 0]);
        let mut values = around(10.0, 60);
        values[31] = 25.0;
        assert_eq!(places(&values, 1.0), [0; 0], "one is no level");
        assert_eq!(places(&[5.0; 60], 0.1), [0; 0]);
    }

    #[test]
    fn what_cannot_be_split_has_no_changes() {
        assert_eq!(places(&[], 1.0), [0; 0]);
        assert_eq!(places(&[1.0, 900.0, 1.0], 1.0), [0; 0]);
        assert_eq!(places(&[f64::NAN; 10], 1.0), [0; 0]);
        assert_eq!(places(&vec![1.0; MOST + 1], 1.0), [0; 0]);
    }
}
