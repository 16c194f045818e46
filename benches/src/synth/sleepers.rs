//! Processes that wait most of the time. Their calls are the long ones; each is known from its number alone, so a window can be
//! made without those before it.

use super::rng::SplitMix;

/// Calls that wait: epoll_wait, futex, clock_nanosleep, poll.
const WAITS: [u32; 4] = [232, 202, 230, 7];

/// One of them: call `n` ends at `phase + n * period`.
#[derive(Clone, Debug)]
pub(super) struct SynthSleeper {
    /// Its process.
    pub process: u32,
    /// Number of the call it waits in.
    pub nr: u32,
    period: u64,
    phase: u64,
}

/// A call of a sleeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// When it was entered.
    pub start: u64,
    /// When it returns.
    pub end: u64,
}

impl SynthSleeper {
    /// The sleeper with that process. Half of them have periods below 4 s.
    pub(super) fn new(seed: u64, process: u32, open: u64) -> Self {
        let mut rng = SplitMix::of(seed ^ 0x51ee, process.into());
        let period = (rng.log_normal(4e9, 1.2) as u64).clamp(20_000_000, 600_000_000_000);
        Self { process, nr: WAITS[process as usize % WAITS.len()], period, phase: open + rng.below(period) }
    }

    fn wait(&self, n: u64) -> Wait {
        let end = self.phase + n * self.period;
        // never longer than the period: a thread is in one call at a time
        let dur = self.period / 1000 * (700 + SplitMix::of(self.phase, n).below(290));
        Wait { start: end - dur, end }
    }

    /// Calls that end in `[from, to)` and began at `open` or later.
    pub(super) fn ending(&self, from: u64, to: u64, open: u64) -> impl Iterator<Item = Wait> {
        let first = from.saturating_sub(self.phase).div_ceil(self.period);
        let waits = (first..).map(|n| self.wait(n)).take_while(move |wait| wait.end < to);
        waits.filter(move |wait| wait.start >= open)
    }

    /// The call it is in at `ts`, begun at `open` or later.
    pub(super) fn at(&self, ts: u64, open: u64) -> Option<Wait> {
        let next = self.wait((ts + 1).saturating_sub(self.phase).div_ceil(self.period));
        (next.start <= ts && next.start >= open).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_each_wait_once() {
        let open = 1_000_000_000_000;
        let sleeper = SynthSleeper::new(1, 20, open);
        let whole: Vec<_> = sleeper.ending(open, open + 100 * sleeper.period, open).collect();
        assert!(whole.len() >= 98, "{whole:?}");
        assert!(whole.windows(2).all(|pair| pair[0].end < pair[1].start), "one call at a time");
        let step = sleeper.period / 3;
        let parts: Vec<_> =
            (0..300).flat_map(|i| sleeper.ending(open + i * step, open + (i + 1) * step, open)).collect();
        assert_eq!(parts, whole[..parts.len()]);
        let wait = whole[5];
        assert_eq!(sleeper.at(wait.start, open), Some(wait));
        assert_eq!(sleeper.at(wait.end - 1, open), Some(wait));
        assert_eq!(sleeper.at(wait.end, open), None, "it works before it waits again");
    }
}
