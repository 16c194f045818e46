//! Whether two recordings of the same work differ by more than chance. Decision 50 (docs/decisions) has the reasons, and what was measured.

/// The calls of one key in one recording, as far as its tape knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KeySample {
    /// Calls, without those whose number is chance ([`is_by_chance`]).
    pub calls: u64,
    /// Number of calls that returned an error.
    pub errors: u64,
    /// Time in all calls, ns.
    pub time: u64,
    /// Sum of the squares of their durations.
    pub squares: f64,
}

impl KeySample {
    /// What the sum of so many durations may be off by, squared: as much as they differ, and of few as much as a part of it.
    fn variance(&self) -> f64 {
        let (time, count) = (self.time as f64, self.calls.max(1) as f64);
        (self.squares - time.powi(2) / count).max(0.0) + (time / count).powi(2)
    }
}

/// What a key differs by more than by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedKey {
    /// The number of its calls.
    pub calls: bool,
    /// How many of them fail.
    pub errors: bool,
    /// The time in them.
    pub time: bool,
}

impl ChangedKey {
    /// Whether it differs at all.
    pub fn any(self) -> bool {
        self.calls || self.errors || self.time
    }

    /// Words for the differences, `calls,time`; "": nothing.
    pub fn words(self) -> String {
        let all = [(self.calls, "calls"), (self.errors, "errors"), (self.time, "time")];
        let words: Vec<&str> = all.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        words.join(",")
    }
}

/// Calls of which a program makes as many as its threads happen to meet: glibc asks the kernel only for a lock that is taken.
pub fn is_by_chance(name: &str) -> bool {
    name.starts_with("futex") || ["sched_yield", "restart_syscall"].contains(&name)
}

/// A key with fewer calls in either recording, or less time, tells nothing of how the recordings differ as a whole.
const FEW: u64 = 10;
/// The same for fewer keys.
const FEW_KEYS: usize = 5;
/// The spread of logarithms of means that is taken at least, and without enough keys: an eighth.
const LEAST_SPREAD: f64 = 0.12;
/// And at most: with few keys it may be that of a change.
const MOST_SPREAD: f64 = 0.2;
/// Standard deviations that are more than chance.
const CHANCE: f64 = 4.0;
/// A count that differs by less is not worth a row, though it be no chance: a fifth.
const LEAST_RATIO: f64 = 0.2;
/// Counts that differ by this factor and this number are always worth one.
const SURE_RATIO: f64 = 3.0;
const SURE_NUMBER: f64 = 30.0;
/// Time that differs by less than this part of the time in all calls is not worth a row.
const LEAST_PART: f64 = 0.002;
/// And by less than this, ns.
const LEAST_TIME: f64 = 100_000.0;

/// How two recordings differ as a whole, and how much keys differ that nothing happened to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// How many calls the second has for one of the first.
    pub calls: f64,
    /// How long a call of the second takes for 1 ns of the first.
    pub time: f64,
    spread_calls: f64,
    spread_time: f64,
    /// Time in all calls of the longer of both, ns.
    all: f64,
}

impl Common {
    /// Compares the keys in both recordings; the first one's numbers are multiplied by `scale`, because the lengths differ.
    pub fn of(pairs: &[[KeySample; 2]], scale: f64) -> Self {
        let many = || pairs.iter().filter(|pair| pair.iter().all(|sample| sample.calls >= FEW));
        let calls = |[a, b]: &[KeySample; 2]| (b.calls as f64 / (a.calls as f64 * scale)).ln();
        let mean = |[a, b]: &[KeySample; 2]| {
            let mean = |sample: &KeySample| sample.time as f64 / sample.calls as f64;
            (mean(b) / mean(a)).ln()
        };
        let timed = || many().filter(|pair| pair.iter().all(|sample| sample.time as f64 >= LEAST_TIME));
        let own = |sample: &KeySample| sample.variance() / (sample.time as f64).powi(2);
        let (calls, spread_calls) = center(many().map(calls).collect(), LEAST_RATIO / 4.0);
        let (time, spread) = center(timed().map(mean).collect(), LEAST_SPREAD);
        // what the durations of each key's own calls do to its mean is counted with that key
        let own = median(&mut timed().map(|[a, b]| own(a) + own(b)).collect::<Vec<f64>>());
        let sum = |side: usize| pairs.iter().map(|pair| pair[side].time as f64).sum::<f64>();
        Self {
            calls: scale * calls.exp(),
            time: time.exp(),
            spread_calls,
            spread_time: (spread.powi(2) - own).max(0.0).sqrt().clamp(LEAST_SPREAD, MOST_SPREAD),
            all: (sum(0) * scale * (calls + time).exp()).max(sum(1)),
        }
    }

    /// What is more than chance of the difference between the samples of a key.
    pub fn changed(&self, [a, b]: &[KeySample; 2]) -> ChangedKey {
        ChangedKey {
            calls: self.count(a.calls, b.calls),
            errors: self.count(a.errors, b.errors),
            time: self.spent(a, b),
        }
    }

    /// Counts as of events that come by themselves: the root of such a count has the same deviation whatever the count.
    fn count(&self, before: u64, after: u64) -> bool {
        let (before, after) = (before as f64 * self.calls, after as f64);
        let (less, more) = (before.min(after), before.max(after));
        if more - less >= SURE_NUMBER && more >= SURE_RATIO * less {
            return true;
        }
        let root = |count: f64| (count + 0.375).sqrt();
        let deviations = 2.0 * (root(more) - root(less)) / 2.0_f64.sqrt();
        deviations >= CHANCE && less > 0.0 && (more / less).ln() >= LEAST_RATIO.max(4.0 * self.spread_calls)
    }

    /// Time as the sum of so many independent durations, in recordings that differ by a factor known up to its spread.
    fn spent(&self, a: &KeySample, b: &KeySample) -> bool {
        let factor = self.calls * self.time;
        let (before, after) = (a.time as f64 * factor, b.time as f64);
        let spread = self.spread_time.powi(2) * (before.powi(2) + after.powi(2)) / 2.0;
        // calls that are more or fewer by chance take their mean each
        let fewer = (a.calls as f64 * self.calls - b.calls as f64).abs();
        let mean = after.max(before) / a.calls.max(b.calls).max(1) as f64;
        let number = fewer * mean.powi(2);
        let deviation = (a.variance() * factor.powi(2) + b.variance() + spread + number).sqrt();
        let differs = (after - before).abs();
        differs >= LEAST_TIME.max(LEAST_PART * self.all) && differs >= CHANCE * deviation
    }
}

/// Median of `values` and their spread around it, as a standard deviation; of too few of them 0 and `unknown`.
fn center(mut values: Vec<f64>, unknown: f64) -> (f64, f64) {
    if values.len() < FEW_KEYS {
        return (0.0, unknown);
    }
    let center = median(&mut values);
    values.iter_mut().for_each(|value| *value = (*value - center).abs());
    // of values that are distributed normally
    (center, 1.4826 * median(&mut values))
}

/// 0 of none.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let (at, odd) = (values.len() / 2, values.len() % 2 == 1);
    let value = |at: usize| values.get(at).copied().unwrap_or(0.0);
    if odd { value(at) } else { (value(at.saturating_sub(1)) + value(at)) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many calls of so many ns each.
    fn of(calls: u64, each: u64) -> KeySample {
        KeySample { calls, errors: 0, time: calls * each, squares: calls as f64 * (each as f64).powi(2) }
    }

    /// Ten keys to which nothing happened, the second recording on a machine that is slower by `factor`.
    fn ordinary(factor: f64) -> Vec<[KeySample; 2]> {
        let pair = |n: u64| {
            let each = (1000.0 * n as f64 * (factor + 0.01 * (n % 3) as f64)) as u64;
            [of(100 * n, 1000 * n), of(100 * n, each)]
        };
        (1..=10).map(pair).collect()
    }

    #[test]
    fn what_is_the_same_has_not_changed() {
        for factor in [1.0, 1.7, 0.5] {
            let pairs = ordinary(factor);
            let common = Common::of(&pairs, 1.0);
            assert!((common.time / factor - 1.0).abs() < 0.05 && common.calls == 1.0, "{common:?}");
            for pair in &pairs {
                assert!(!common.changed(pair).any(), "{factor} {pair:?}");
            }
        }
    }

    #[test]
    fn counts_beyond_chance() {
        let common = Common::of(&ordinary(1.0), 1.0);
        let changed = |before, after| common.changed(&[of(before, 100), of(after, 100)]).calls;
        assert!(changed(0, 30) && changed(29_999, 0) && changed(1000, 1400) && changed(1400, 1000));
        assert!(!changed(0, 29) && !changed(1, 4) && !changed(100, 125) && !changed(10_000, 11_000));
        let failing = |errors| KeySample { errors, ..of(10_000, 100) };
        let changed = common.changed(&[failing(3), failing(900)]);
        assert_eq!((changed.words().as_str(), changed.any()), ("errors", true));
    }

    #[test]
    fn time_beyond_chance() {
        let common = Common::of(&ordinary(1.0), 1.0);
        let changed = |before: KeySample, after: KeySample| common.changed(&[before, after]).time;
        // each of many calls takes twice as long
        assert!(changed(of(500, 10_000), of(500, 20_000)));
        // one call took long
        let long = KeySample { time: 5_000_000 + 40_000_000, squares: 40e6_f64.powi(2), ..of(500, 10_000) };
        assert!(!changed(of(500, 10_000), long));
        // twice as long, and too little to matter
        assert!(!changed(of(50, 100), of(50, 200)));
    }

    #[test]
    fn rates_of_different_lengths_are_the_same() {
        let longer = |[a, b]: [KeySample; 2]| [a, KeySample { calls: 3 * b.calls, time: 3 * b.time, ..b }];
        let pairs: Vec<_> = ordinary(1.0).into_iter().map(longer).collect();
        let common = Common::of(&pairs, 3.0);
        assert!((common.calls - 3.0).abs() < 1e-9);
        assert!(pairs.iter().all(|pair| !common.changed(pair).any()));
        // too few keys to tell: the lengths say what is expected
        let common = Common::of(&pairs[..2], 3.0);
        assert!((common.calls - 3.0).abs() < 1e-9 && common.time == 1.0);
    }

    #[test]
    fn calls_that_are_made_when_threads_meet() {
        assert!(is_by_chance("futex") && is_by_chance("futex_waitv") && is_by_chance("sched_yield"));
        assert!(!is_by_chance("read") && !is_by_chance("sched_setaffinity"));
    }
}
