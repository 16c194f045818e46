//! How long threads were in a state, estimated from looks (`record --sample`), and how far that may be from the truth.
//!
//! A look stands for the time of its interval, in which it fell at any moment. So the number of looks times the interval estimates
//! the time without bias, short and long stays alike. How far it may be off has three parts:
//!
//! - A stay that several looks found went on from the first of them to the last: that is certain, and no error comes from it. So
//!   more looks at the same stay make no bar shorter. Its two ends lie somewhere in their intervals: a variance of a third of
//!   an interval's square for each stay.
//! - A stay of one look may stand for many that no look fell into, or be shorter than its interval. Threads in one look are not
//!   independent: 50 threads that wait for one disk are found together or not at all. And looks are one in each interval, so what
//!   changes slowly is not left to chance. So the variance is half the sum of the squares by which the number of threads differs
//!   from one look to the next.
//! - What no look found may have happened: as often as chance lets it go unseen in 39 of 40 cases.
//!
//! The sum of squares is known from [`SIGNS`] sums (Alon, Matias and Szegedy's sketch): each adds the differences, with signs that
//! the number of the look gives by chance. The square of each is the sum of squares on average, whatever order rows come in, and
//! parts of a tape add up. With 64 of them a bar is right to about a tenth.

/// Sums of differences.
const SIGNS: usize = 64;
/// With fewer looks than this their differences say too little.
const LEAST: u64 = 16;
/// The variance of both ends of a stay of several looks, as a part of that of two stays of one look: each end lies anywhere in its
/// interval, which the look falls before with a chance f and behind with 1 - f; the mean of f (1 - f) is a sixth.
const ENDS: f64 = 3.0;
/// Of 95 %.
const Z: f64 = 1.96;

/// Differences between looks in the number of threads, in intervals (ns), added up with signs by chance.
#[derive(Clone, Debug)]
struct Differences([f64; SIGNS]);

impl Default for Differences {
    fn default() -> Self {
        Self([0.0; SIGNS])
    }
}

impl Differences {
    /// From the look of this number on there are `by` more.
    fn add(&mut self, look: u64, by: f64) {
        let signs = mixed(look);
        for (at, sum) in self.0.iter_mut().enumerate() {
            *sum += if signs >> at & 1 == 0 { by } else { -by };
        }
    }

    fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Variance of the sum over all looks.
    fn variance(&self) -> f64 {
        self.0.iter().map(|sum| sum * sum).sum::<f64>() / SIGNS as f64 / 2.0
    }
}

/// Bits that look like chance, the same for the same number (the finalizer of splitmix64).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// What looks found of a group of threads: times are ns.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    /// Looks, of all threads.
    pub looks: u64,
    /// Stays that began in the time asked for.
    pub stays: u64,
    /// The longest that one is known to have been.
    pub longest: u64,
    /// Looks times their intervals.
    time: f64,
    /// Time between the looks of stays.
    certain: f64,
    /// The longest interval.
    interval: f64,
    /// Of stays of one look, and of those of several.
    single: Differences,
    several: Differences,
    /// Sum of squares of the intervals of stays of one look.
    single_squares: f64,
}

/// A row of a stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeenStay {
    /// Number of its first look.
    pub look: u64,
    /// Looks of the row.
    pub looks: u64,
    /// Time that each stands for.
    pub interval: u64,
    /// Time from the first of them to the last.
    pub seen: u64,
    /// Whether the row is the first of its stay.
    pub first: bool,
    /// How long the stay is known to have been until the last look.
    pub lasted: u64,
}

/// An estimate and its bounds: in 95 of 100 cases the truth lies between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Time of all threads together, ns.
    pub time: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Presence {
    /// Adds a row.
    pub fn add(&mut self, row: &SeenStay) {
        if row.looks == 0 {
            return;
        }
        let interval = row.interval as f64;
        self.looks = self.looks.saturating_add(row.looks);
        self.stays += u64::from(row.first);
        self.longest = self.longest.max(row.lasted);
        self.time += row.looks as f64 * interval;
        self.interval = self.interval.max(interval);
        self.certain += (row.seen as f64).min(row.looks as f64 * interval);
        let of = if row.looks == 1 && row.first {
            self.single_squares += interval * interval;
            &mut self.single
        } else {
            &mut self.several
        };
        of.add(row.look, interval);
        // where a row goes on in another one, that one begins there
        of.add(row.look.wrapping_add(row.looks), -interval);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.looks = self.looks.saturating_add(other.looks);
        self.stays += other.stays;
        self.longest = self.longest.max(other.longest);
        self.time += other.time;
        self.certain += other.certain;
        self.interval = self.interval.max(other.interval);
        self.single.merge(&other.single);
        self.several.merge(&other.several);
        self.single_squares += other.single_squares;
    }

    /// The estimated time of all threads together, ns.
    pub fn nanos(&self) -> u64 {
        self.time.max(0.0) as u64
    }

    /// The estimate, with bounds by how looks differ.
    pub fn estimate(&self) -> Estimate {
        let (mut short, ends) = (self.single.variance(), self.several.variance() / ENDS);
        if self.looks < LEAST {
            short = short.max(self.single_squares);
        }
        // threads that one look finds together
        let together = if self.single_squares > 0.0 { (short / self.single_squares).max(1.0) } else { 1.0 };
        let unit = self.interval.max(1.0);
        // where stays are long, others that no look found are rare
        let square = unit * unit;
        let unit = unit * together * (short + square) / (short + ends + square);
        let half = |variance: f64| Z * Z / 2.0 * unit + Z * (variance + Z * Z / 4.0 * unit * unit).sqrt();
        let high = half(short + ends);
        let low = (Z * (short + ends + Z * Z / 4.0 * unit * unit).sqrt() - Z * Z / 2.0 * unit).min(high);
        Estimate { time: self.time, low: (self.time - low).max(self.certain), high: self.time + high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator without a period that matters (xorshift).
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, most: f64) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64 * most
        }

        fn exponential(&mut self, mean: f64) -> f64 {
            -(1.0 - self.below(1.0)).ln() * mean
        }
    }

    /// Looks in intervals of 1, each at any moment of it.
    fn looks(dice: &mut Dice, count: u64) -> Vec<f64> {
        (0..count).map(|at| at as f64 + dice.below(1.0)).collect()
    }

    const UNIT: u64 = 1_000_000;

    /// What `looks` find of stays from and to, of so many threads each.
    fn found(looks: &[f64], stays: &[(f64, f64, u64)]) -> Presence {
        let mut presence = Presence::default();
        for (from, to, threads) in stays {
            let first = looks.partition_point(|look| look < from);
            let last = looks.partition_point(|look| look < to);
            if first == last {
                continue;
            }
            let seen = ((looks[last - 1] - looks[first]) * UNIT as f64) as u64;
            let (look, looks) = (first as u64, (last - first) as u64);
            let row = SeenStay { look, looks, interval: UNIT, seen, first: true, lasted: seen };
            (0..*threads).for_each(|_| presence.add(&row));
        }
        presence
    }

    /// The part of 400 tries that have the truth within the bounds, of those in which a look finds anything: what none finds has no row.
    fn coverage(make: impl Fn(&mut Dice) -> Vec<(f64, f64, u64)>) -> f64 {
        let mut dice = Dice(0x1234_5678_9abc_def1);
        let (mut within, mut tries, mut all, mut bias) = (0, 0, 0.0, 0.0);
        for _ in 0..400 {
            let stays = make(&mut dice);
            let looks = looks(&mut dice, 600);
            let truth: f64 = stays.iter().map(|(from, to, threads)| (to.min(600.0) - from) * *threads as f64).sum();
            let truth = truth * UNIT as f64;
            let presence = found(&looks, &stays);
            let estimate = presence.estimate();
            if presence.looks > 0 {
                tries += 1;
                within += u32::from((estimate.low..=estimate.high).contains(&truth));
            }
            bias += estimate.time - truth;
            all += truth;
        }
        assert!((bias / all).abs() < 0.1, "bias {}", bias / all);
        f64::from(within) / f64::from(tries)
    }

    /// Stays of a mean length with a mean distance, of so many threads together.
    fn renewal(length: f64, distance: f64, threads: u64) -> impl Fn(&mut Dice) -> Vec<(f64, f64, u64)> {
        move |dice| {
            let (mut stays, mut at) = (Vec::new(), dice.exponential(distance));
            while at < 600.0 {
                let to = at + dice.exponential(length);
                stays.push((at, to.min(600.0), threads));
                at = to + dice.exponential(distance);
            }
            stays
        }
    }

    #[test]
    fn the_truth_lies_within_the_bounds() {
        for (length, distance, threads) in [
            (0.01, 0.1, 1),
            (0.2, 2.0, 1),
            (0.2, 2.0, 50),
            (0.05, 30.0, 20),
            (3.0, 3.0, 1),
            (3.0, 3.0, 50),
            (40.0, 40.0, 8),
        ] {
            let within = coverage(renewal(length, distance, threads));
            assert!(within >= 0.93, "{length} {distance} {threads}: {within}");
        }
    }

    #[test]
    fn bars_do_not_shrink_with_looks_at_the_same_stay() {
        let width = |looks: u64| {
            let mut presence = Presence::default();
            let seen = (looks - 1) * UNIT;
            presence.add(&SeenStay { look: 3, looks, interval: UNIT, seen, first: true, lasted: seen });
            let estimate = presence.estimate();
            estimate.high - estimate.low
        };
        // as far as 64 signs tell
        assert!((width(10) / width(900) - 1.0).abs() < 0.1, "{} {}", width(10), width(900));
        // ten stays of as many looks have a wider one
        let many = {
            let mut presence = Presence::default();
            for at in 0..10 {
                let seen = 89 * UNIT;
                presence.add(&SeenStay { look: at * 100, looks: 90, interval: UNIT, seen, first: true, lasted: seen });
            }
            let estimate = presence.estimate();
            estimate.high - estimate.low
        };
        assert!(many > 1.3 * width(900), "{many} {}", width(900));
    }

    #[test]
    fn who_is_always_there_has_a_short_bar() {
        let mut presence = Presence::default();
        for look in 0..1000 {
            presence.add(&SeenStay { look, looks: 1, interval: UNIT, first: true, ..SeenStay::default() });
        }
        let estimate = presence.estimate();
        let whole = 1000.0 * UNIT as f64;
        assert!((estimate.time - whole).abs() < 1.0);
        assert!(estimate.low > 0.99 * whole && estimate.high < 1.01 * whole, "{estimate:?}");
    }

    #[test]
    fn one_look_says_little_and_none_says_something() {
        let mut presence = Presence::default();
        presence.add(&SeenStay { look: 7, looks: 1, interval: UNIT, first: true, ..SeenStay::default() });
        let unit = UNIT as f64;
        let one = presence.estimate();
        assert!(one.low > 0.0 && one.low < 0.3 * unit && one.high > 5.0 * unit && one.high < 7.0 * unit, "{one:?}");
        let none = Presence { interval: unit, ..Presence::default() }.estimate();
        assert!(none.low == 0.0 && none.high > 3.0 * unit && none.high < 5.0 * unit, "{none:?}");
    }

    #[test]
    fn parts_of_a_stay_and_sums_add_up() {
        let row = |look, looks, first| SeenStay {
            look,
            looks,
            interval: UNIT,
            seen: (looks - 1) * UNIT,
            first,
            lasted: (look + looks) * UNIT,
        };
        let (mut parts, mut one, mut other) = (Presence::default(), Presence::default(), Presence::default());
        [row(0, 10, true), row(10, 10, false)].iter().for_each(|row| parts.add(row));
        one.add(&row(0, 10, true));
        other.add(&row(10, 10, false));
        one.merge(&other);
        assert_eq!((one.looks, one.stays, one.longest), (20, 1, 20 * UNIT));
        assert_eq!(one.estimate(), parts.estimate());
    }
}
