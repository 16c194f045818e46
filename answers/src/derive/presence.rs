//! How long threads were in a state, estimated from looks (`record --sample`), and how far that may be from the truth.
//!
//! A look stands for the time of its interval, in which it fell at any moment. So the number of looks times the interval estimates
//! the time without bias, short and long stays alike. How far it may be off has three parts:
//!
//! - A stay that several looks found went on from the first of them to the last: that is certain, and no error comes from it. So
//!   more looks at the same stay make no bar shorter. Its two ends lie somewhere in their intervals: a variance of half an
//!   interval's square for each stay.
//! - A stay of one look may stand for many that no look fell into, or be shorter than its interval. Looks are independent, but
//!   threads in one look are not: 50 threads that wait for one disk are found together or not at all. So the variance is taken
//!   between groups of looks, not between stays.
//! - What no look found may have happened: as often as chance lets it go unseen in 39 of 40 cases.

/// Groups of looks, by the number of the look.
const GROUPS: usize = 64;
/// With fewer looks a group than this the variance between groups says too little.
const LEAST: u64 = 4;
/// Of 95 %.
const Z: f64 = 1.96;

/// How many looks each group has.
#[derive(Clone, Debug)]
pub struct LookGroups {
    looks: [u64; GROUPS],
}

impl Default for LookGroups {
    fn default() -> Self {
        Self { looks: [0; GROUPS] }
    }
}

impl LookGroups {
    /// Adds looks by the number of the first of them.
    pub fn add(&mut self, first: u64, count: u64) {
        let (whole, rest) = (count / GROUPS as u64, count % GROUPS as u64);
        self.looks.iter_mut().for_each(|looks| *looks = looks.saturating_add(whole));
        for number in 0..rest {
            self.looks[group(first.wrapping_add(number))] += 1;
        }
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        self.looks.iter().fold(0, |sum, looks| sum.saturating_add(*looks))
    }
}

fn group(number: u64) -> usize {
    (number % GROUPS as u64) as usize
}

/// What looks found of a group of threads: times are ns.
#[derive(Clone, Debug)]
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
    /// Of stays of one look, intervals by the group of the look; of stays of several, the same of the first one.
    single: [f64; GROUPS],
    several: [f64; GROUPS],
    /// Sums of squares of these.
    single_squares: f64,
    several_squares: f64,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            looks: 0,
            stays: 0,
            longest: 0,
            time: 0.0,
            certain: 0.0,
            interval: 0.0,
            single: [0.0; GROUPS],
            several: [0.0; GROUPS],
            single_squares: 0.0,
            several_squares: 0.0,
        }
    }
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
        if !row.first {
            return;
        }
        let (of, squares) = match row.looks {
            1 => (&mut self.single, &mut self.single_squares),
            _ => (&mut self.several, &mut self.several_squares),
        };
        of[group(row.look)] += interval;
        *squares += interval * interval;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.looks = self.looks.saturating_add(other.looks);
        self.stays += other.stays;
        self.longest = self.longest.max(other.longest);
        self.time += other.time;
        self.certain += other.certain;
        self.interval = self.interval.max(other.interval);
        let groups = |mine: &mut [f64; GROUPS], theirs: &[f64; GROUPS]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        };
        groups(&mut self.single, &other.single);
        groups(&mut self.several, &other.several);
        self.single_squares += other.single_squares;
        self.several_squares += other.several_squares;
    }

    /// The estimated time of all threads together, ns.
    pub fn nanos(&self) -> u64 {
        self.time.max(0.0) as u64
    }

    /// The estimate, with bounds by how the looks of `groups` differ.
    pub fn estimate(&self, groups: &LookGroups) -> Estimate {
        let few = groups.sum() < LEAST * GROUPS as u64;
        let (mut short, ends) = (variance(&self.single, groups), variance(&self.several, groups));
        if few {
            short = short.max(self.single_squares);
        }
        // the ends of stays that begin together are one
        let ends = ends.max(self.several_squares) / 2.0;
        // threads that one look finds together
        let together = if self.single_squares > 0.0 { (short / self.single_squares).max(1.0) } else { 1.0 };
        let unit = self.interval.max(1.0) * together;
        let half = |variance: f64| Z * Z / 2.0 * unit + Z * (variance + Z * Z / 4.0 * unit * unit).sqrt();
        let high = half(short + ends);
        // of chance alone: a few looks say little of how they differ
        let chance = short.max(self.single_squares) + ends;
        let low = (Z * (chance + Z * Z / 4.0 * unit * unit).sqrt() - Z * Z / 2.0 * unit).min(high);
        Estimate { time: self.time, low: (self.time - low).max(self.certain), high: self.time + high }
    }
}

/// Variance of the sum of `parts`, by how the groups differ from what their looks would have each.
fn variance(parts: &[f64; GROUPS], groups: &LookGroups) -> f64 {
    let (sum, looks) = (parts.iter().sum::<f64>(), groups.sum());
    if looks == 0 {
        return 0.0;
    }
    let each = sum / looks as f64;
    let squares = parts.iter().zip(groups.looks).map(|(part, looks)| (part - each * looks as f64).powi(2));
    squares.sum::<f64>() * GROUPS as f64 / (GROUPS - 1) as f64
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
    fn found(looks: &[f64], stays: &[(f64, f64, u64)]) -> (Presence, LookGroups) {
        let (mut presence, mut groups) = (Presence::default(), LookGroups::default());
        groups.add(0, looks.len() as u64);
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
        (presence, groups)
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
            let (presence, groups) = found(&looks, &stays);
            let estimate = presence.estimate(&groups);
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
            let (mut presence, mut groups) = (Presence::default(), LookGroups::default());
            groups.add(0, 1000);
            let seen = (looks - 1) * UNIT;
            presence.add(&SeenStay { look: 3, looks, interval: UNIT, seen, first: true, lasted: seen });
            let estimate = presence.estimate(&groups);
            estimate.high - estimate.low
        };
        assert!((width(10) - width(900)).abs() < 1.0, "{} {}", width(10), width(900));
        // ten stays of as many looks have a wider one
        let many = {
            let (mut presence, mut groups) = (Presence::default(), LookGroups::default());
            groups.add(0, 1000);
            for at in 0..10 {
                let seen = 89 * UNIT;
                presence.add(&SeenStay { look: at * 100, looks: 90, interval: UNIT, seen, first: true, lasted: seen });
            }
            let estimate = presence.estimate(&groups);
            estimate.high - estimate.low
        };
        assert!(many > 1.3 * width(900), "{many} {}", width(900));
    }

    #[test]
    fn who_is_always_there_has_a_short_bar() {
        let (mut presence, mut groups) = (Presence::default(), LookGroups::default());
        groups.add(0, 1000);
        for look in 0..1000 {
            presence.add(&SeenStay { look, looks: 1, interval: UNIT, first: true, ..SeenStay::default() });
        }
        let estimate = presence.estimate(&groups);
        let whole = 1000.0 * UNIT as f64;
        assert!((estimate.time - whole).abs() < 1.0);
        assert!(estimate.low > 0.99 * whole && estimate.high < 1.01 * whole, "{estimate:?}");
    }

    #[test]
    fn one_look_says_little_and_none_says_something() {
        let mut groups = LookGroups::default();
        groups.add(5, 1000);
        let mut presence = Presence::default();
        presence.add(&SeenStay { look: 7, looks: 1, interval: UNIT, first: true, ..SeenStay::default() });
        let unit = UNIT as f64;
        let one = presence.estimate(&groups);
        assert!(one.low > 0.0 && one.low < 0.3 * unit && one.high > 5.0 * unit && one.high < 7.0 * unit, "{one:?}");
        let none = Presence { interval: unit, ..Presence::default() }.estimate(&groups);
        assert!(none.low == 0.0 && none.high > 3.0 * unit && none.high < 5.0 * unit, "{none:?}");
    }

    #[test]
    fn parts_of_a_stay_and_sums_add_up() {
        let mut groups = LookGroups::default();
        groups.add(0, 100);
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
        assert_eq!(one.estimate(&groups), parts.estimate(&groups));
    }

    #[test]
    fn groups_count_all_looks() {
        let mut groups = LookGroups::default();
        groups.add(60, 200);
        assert_eq!((groups.sum(), groups.looks[59], groups.looks[60], groups.looks[3]), (200, 3, 4, 4));
        groups.add(u64::MAX, 2);
        assert_eq!(groups.sum(), 202);
        groups.add(0, u64::MAX);
        groups.add(0, u64::MAX);
        assert_eq!(groups.sum(), u64::MAX, "a tape may say anything");
    }
}
