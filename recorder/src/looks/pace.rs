//! How often looks are: as often as asked for, unless the recorder would cost more than a part of a CPU.

/// The part of one CPU's time that all of the recorder may cost, in millionths: a hundredth, and a little less, as what the rest costs is known
/// afterwards. And what looks have at least, whatever the rest costs.
const PART: u64 = 9_500;
const LEAST: u64 = 5_000;
const MILLION: u64 = 1_000_000;
/// Looks are at least so often, of the intervals asked for.
const SLOWEST: u64 = 200;
/// Weight of the last look in the mean cost: 1 / n.
const WEIGHT: u64 = 16;
/// It is looked more often again when that would cost less than this part of what it may, as n / 8: no going to and fro.
const EASE: u64 = 6;

/// The interval between looks, by what they cost.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The interval that was asked for, ns.
    base: u64,
    /// How many of them an interval has.
    times: u64,
    /// Mean cost of a look, ns; None = there was none.
    cost: Option<u64>,
    /// What the rest of the recorder costs, in millionths of a CPU.
    rest: u64,
}

impl Pace {
    /// Begins with the interval `base`.
    pub(crate) fn new(base: u64) -> Self {
        Self { base: base.max(1), times: 1, cost: None, rest: 0 }
    }

    /// The interval now.
    pub(crate) fn interval(&self) -> u64 {
        self.base * self.times
    }

    /// A look cost so much CPU time.
    pub(crate) fn spent(&mut self, cost: u64) {
        let mean = self.cost.map_or(cost, |mean| mean - mean / WEIGHT + cost / WEIGHT);
        self.cost = Some(mean);
        let part = PART.saturating_sub(self.rest).max(LEAST);
        let needs = |mean: u64| {
            let cost = u128::from(mean) * u128::from(MILLION);
            let needs = cost.div_ceil(u128::from(self.base) * u128::from(part));
            u64::try_from(needs).map_or(SLOWEST, |needs| needs.clamp(1, SLOWEST))
        };
        let (now, eased) = (needs(mean), needs(mean.saturating_mul(8) / EASE));
        if now > self.times {
            self.times = now;
        } else if eased < self.times {
            self.times = eased;
        }
    }
}

impl Pace {
    /// The rest of the recorder took `cpu` ns of the last `span`.
    pub(crate) fn others(&mut self, cpu: u64, span: u64) {
        let part = (u128::from(cpu) * u128::from(MILLION) / u128::from(span.max(1))).min(u128::from(MILLION)) as u64;
        self.rest = self.rest - self.rest / WEIGHT + part / WEIGHT;
    }
}

/// Times of looks: one in each interval, at any moment of it. With equal distances a program whose period is a multiple of the
/// interval would always be found in the same place.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Where the current interval begins, and how long it is.
    begin: u64,
    interval: u64,
    due: u64,
    /// Time from the end of the last look's interval to the end of this one's.
    span: u64,
    random: u64,
}

impl Slots {
    /// The first interval begins at `now`.
    pub(crate) fn new(now: u64, interval: u64) -> Self {
        let mut slots = Self { begin: now, interval, due: now, span: interval, random: now | 1 };
        slots.due = now + slots.draw();
        slots
    }

    /// When to look next.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Length of the interval of the look that is due.
    pub(crate) fn interval(&self) -> u64 {
        self.interval
    }

    /// Time that the look that is due is alone for: its interval, and what was skipped before.
    pub(crate) fn span(&self) -> u64 {
        self.span
    }

    /// The look was made; the next interval, which begins behind this one, is so long. Returns how many were skipped, as it is `now`.
    pub(crate) fn next(&mut self, now: u64, interval: u64) -> u64 {
        let end = self.begin + self.interval;
        // an interval that is over cannot be looked into
        let skipped = now.saturating_sub(end) / interval;
        self.begin = end + skipped * interval;
        self.interval = interval;
        self.span = interval * (1 + skipped);
        self.due = self.begin + self.draw();
        skipped
    }

    /// A moment of the interval (xorshift: no secret, only no period).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % self.interval.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn looks_cost_at_most_a_hundredth_of_a_cpu() {
        let mut pace = Pace::new(50 * MS);
        pace.spent(MS / 10);
        assert_eq!(pace.interval(), 50 * MS, "as asked for");
        // 2 ms each: 211 ms
        (0..200).for_each(|_| pace.spent(2 * MS));
        assert_eq!(pace.interval(), 250 * MS);
        // a little less is no reason to change
        (0..200).for_each(|_| pace.spent(2 * MS - MS / 10));
        assert_eq!(pace.interval(), 250 * MS);
        (0..200).for_each(|_| pace.spent(MS));
        assert!(pace.interval() * 8 >= 100 * MS * 8 && pace.interval() < 200 * MS);
        (0..400).for_each(|_| pace.spent(MS / 10));
        assert_eq!(pace.interval(), 50 * MS);
        pace.spent(u64::MAX / 4);
        assert_eq!(pace.interval(), 50 * MS * SLOWEST);
    }

    #[test]
    fn what_the_rest_costs_is_not_there_for_looks() {
        let mut pace = Pace::new(50 * MS);
        (0..200).for_each(|_| pace.spent(MS / 4 + MS / 8));
        assert_eq!(pace.interval(), 50 * MS);
        // half a hundredth is left: 75 ms are needed
        (0..200).for_each(|_| pace.others(5 * MS, 1000 * MS));
        (0..200).for_each(|_| pace.spent(MS / 4 + MS / 8));
        assert_eq!(pace.interval(), 100 * MS);
        // however much it is, looks have half
        (0..200).for_each(|_| pace.others(900 * MS, 1000 * MS));
        (0..200).for_each(|_| pace.spent(MS / 2 + MS / 8));
        assert_eq!(pace.interval(), 150 * MS);
        pace.others(u64::MAX, 0);
    }

    #[test]
    fn one_expensive_look_does_not_change_the_rate_for_long() {
        let mut pace = Pace::new(50 * MS);
        (0..50).for_each(|_| pace.spent(MS / 5));
        pace.spent(5 * MS);
        assert!(pace.interval() <= 100 * MS, "{}", pace.interval());
        (0..50).for_each(|_| pace.spent(MS / 5));
        assert_eq!(pace.interval(), 50 * MS);
    }

    #[test]
    fn each_interval_has_a_look_at_any_moment_of_it() {
        let mut slots = Slots::new(0, 50);
        let mut eighths = [0; 8];
        for at in 0..4000_u64 {
            let due = slots.due();
            assert!((at * 50..(at + 1) * 50).contains(&due));
            eighths[((due - at * 50) * 8 / 50) as usize] += 1;
            assert_eq!(slots.next(due, 50), 0);
        }
        assert!(eighths.iter().all(|n| (380..620).contains(n)), "{eighths:?}");
    }

    #[test]
    fn intervals_without_a_look_are_counted() {
        let mut slots = Slots::new(1000, 50);
        // the look of 1000 to 1050 was over at 1160: 1050 to 1150 had none
        assert_eq!(slots.next(1160, 50), 2);
        assert_eq!((slots.begin, slots.span()), (1150, 150));
        assert_eq!(slots.next(1190, 100), 0);
        assert_eq!((slots.begin, slots.interval()), (1200, 100));
        assert!((1200..1300).contains(&slots.due()));
    }
}
