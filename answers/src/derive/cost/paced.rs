//! Threads whose sleeps end at fixed times, whatever they did before: tickers, frame loops. What is saved before such a sleep is slept.

use crate::derive::critical::log::Logged;
use crate::derive::critical::{Ended, Stretch};
use crate::derive::runs::State;

/// Fewer rounds say nothing.
const ROUNDS: usize = 6;
/// Shorter sleeps pace nobody, ns.
const SLEPT: u64 = 500_000;
/// Most rounds that are looked at.
const LOOKED_AT: usize = 4096;

/// Whether the thread is paced: the time from one wake-up by a timer to the next varies much less than the time it sleeps in between, because
/// a sleep is shorter after more work. Where both are constant nothing tells, and the answer is no.
pub fn is_paced(thread: &Logged) -> bool {
    let by_timer = |stretch: &&Stretch| {
        matches!(stretch.state, State::Sleeping(b'S'))
            && stretch.ended == Ended::Interrupt
            && stretch.to - stretch.from >= SLEPT
    };
    let sleeps: Vec<&Stretch> = thread.stretches.iter().filter(by_timer).take(LOOKED_AT).collect();
    if sleeps.len() <= ROUNDS {
        return false;
    }
    let mut periods: Vec<u64> = sleeps.windows(2).map(|pair| pair[1].to - pair[0].to).collect();
    let mut slept: Vec<u64> = sleeps.iter().map(|sleep| sleep.to - sleep.from).collect();
    let (period, spread) = middle(&mut periods);
    let (_, of_sleeps) = middle(&mut slept);
    // a timer of 50 µs is as exact as this kernel's
    spread <= period / 20 && of_sleeps > 50_000 && spread.saturating_mul(3) <= of_sleeps && differ(&mut slept)
}

/// Whether the sleeps are of many lengths: those of a loop with two sleeps of fixed lengths are of two.
fn differ(slept: &mut [u64]) -> bool {
    slept.sort_unstable();
    let lengths = 1 + slept.windows(2).filter(|pair| pair[1] - pair[0] > pair[0] / 50).count();
    lengths * 3 >= slept.len()
}

/// The median, and the median distance from it.
fn middle(values: &mut [u64]) -> (u64, u64) {
    let at = values.len() / 2;
    let median = *values.select_nth_unstable(at).1;
    let mut away: Vec<u64> = values.iter().map(|value| value.abs_diff(median)).collect();
    (median, *away.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::CPU_NONE;

    /// Rounds of `work` and sleep until `next`, in ms.
    fn thread(rounds: &[(u64, u64)]) -> Logged {
        let ms = 1_000_000;
        let mut now = 0;
        let mut stretches = Vec::new();
        let mut add = |len: u64, state, ended| {
            stretches.push(Stretch { from: now, to: now + len * ms, state, cpu: CPU_NONE, ended, task: 0 });
            now += len * ms;
        };
        for (work, sleep) in rounds {
            add(*work, State::Running, Ended::Changed);
            add(*sleep, State::Sleeping(b'S'), Ended::Interrupt);
        }
        Logged { tasks: Vec::new(), stretches }
    }

    #[test]
    fn a_ticker_is_paced_and_a_loop_that_sleeps_is_not() {
        let works = [5, 12, 7, 20, 9, 14, 3, 11, 6, 17];
        let ticker: Vec<_> = works.iter().map(|work| (*work, 50 - work)).collect();
        let sleeper: Vec<_> = works.iter().map(|work| (*work, 20)).collect();
        assert!(is_paced(&thread(&ticker)));
        assert!(!is_paced(&thread(&sleeper)));
        assert!(!is_paced(&thread(&ticker[..4])), "too few rounds");
        assert!(!is_paced(&thread(&vec![(10, 40); 20])), "nothing tells");
        let two: Vec<_> = (0..20).map(|at| if at % 2 == 0 { (0, 10) } else { (5, 5) }).collect();
        assert!(!is_paced(&thread(&two)), "two sleeps of fixed lengths, with a wait for a lock before one");
    }
}
