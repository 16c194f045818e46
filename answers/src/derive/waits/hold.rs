//! In which part of the time some thread held what others waited for: from its own return from a wait to its next wake.
//!
//! A lock is held by a thread that had to wait for it; a worker at rest comes back for work, and whoever brings the work wakes.

/// Most stretches that are kept apart; the older half is joined by twos.
const STRETCHES: usize = 64;
/// Most waits that are not added up yet.
const PENDING: usize = 64;
/// The thread that wakes may return from its call later than who was woken: a wait is added up so much after its end, ns.
const LAG: u64 = 10_000_000;

/// Time in which something was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldTime {
    from: u64,
    to: u64,
    /// ns; less than the length where stretches were joined.
    held: u64,
}

impl HeldTime {
    /// The held time between `from` and `to`.
    fn within(self, from: u64, to: u64) -> u64 {
        let length = self.to - self.from;
        let inside = self.to.min(to).saturating_sub(self.from.max(from));
        if inside == 0 || length == 0 {
            return 0;
        }
        (u128::from(self.held) * u128::from(inside) / u128::from(length)) as u64
    }
}

/// The time in which one address was held, and waits for it. Times come in the order of their ends, nearly.
#[derive(Clone, Debug, Default)]
pub(super) struct Hold {
    stretches: Vec<HeldTime>,
    pending: Vec<(u64, u64)>,
    /// Of the waits' time, the part in which it was held, ns.
    ns: u64,
}

impl Hold {
    /// Somebody held it from `from` to `to`.
    pub(super) fn held(&mut self, from: u64, to: u64) {
        let mut new = HeldTime { from, to, held: to.saturating_sub(from) };
        while let Some(last) = self.stretches.last().copied().filter(|last| last.to > new.from) {
            let (before, after) = (last.within(last.from, new.from), last.within(new.to, last.to));
            let held = new.held.saturating_add(before).saturating_add(after);
            new = HeldTime { from: new.from.min(last.from), to: new.to.max(last.to), held };
            self.stretches.pop();
        }
        if new.to > new.from {
            self.stretches.push(new);
        }
        if self.stretches.len() > STRETCHES {
            let late = self.stretches.split_off(STRETCHES / 2);
            let early = std::mem::take(&mut self.stretches);
            self.stretches.extend(early.chunks(2).map(|two| {
                let (first, last) = (two[0], two[two.len() - 1]);
                HeldTime { from: first.from, to: last.to, held: two.iter().map(|one| one.held).sum() }
            }));
            self.stretches.extend(late);
        }
    }

    /// Somebody waited for it from `from` to `to`.
    pub(super) fn waited(&mut self, from: u64, to: u64) {
        self.at(to);
        if self.pending.len() >= PENDING {
            let (from, to) = self.pending.remove(0);
            self.ns = self.ns.saturating_add(self.within(from, to));
        }
        self.pending.push((from, to));
    }

    /// Sets the time to `now`.
    pub(super) fn at(&mut self, now: u64) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|(from, to)| {
            let keeps = to.saturating_add(LAG) > now;
            if !keeps {
                self.ns = self.ns.saturating_add(self.within(*from, *to));
            }
            keeps
        });
        self.pending = pending;
    }

    /// The part of the time of all waits in which it was held, ns.
    pub(super) fn ns(&self) -> u64 {
        self.pending.iter().map(|(from, to)| self.within(*from, *to)).fold(self.ns, u64::saturating_add)
    }

    fn within(&self, from: u64, to: u64) -> u64 {
        self.stretches.iter().rev().take_while(|one| one.to > from).map(|one| one.within(from, to)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_part_of_waits_in_which_it_was_held() {
        let mut hold = Hold::default();
        hold.held(10 * MS, 20 * MS);
        hold.waited(0, 20 * MS);
        assert_eq!(hold.ns(), 10 * MS);
        // who waked returns later than who was woken
        hold.waited(20 * MS, 30 * MS);
        hold.held(20 * MS, 30 * MS);
        assert_eq!(hold.ns(), 20 * MS);
        hold.at(100 * MS);
        assert_eq!((hold.ns(), hold.pending.len()), (20 * MS, 0));
    }

    #[test]
    fn several_holders_at_once_count_once() {
        let mut hold = Hold::default();
        hold.held(10, 20);
        hold.held(30, 40);
        hold.held(15, 50);
        hold.waited(0, 100);
        assert_eq!((hold.ns(), hold.stretches.len()), (40, 1));
        let mut inside = Hold::default();
        inside.held(10, 50);
        inside.held(20, 30);
        inside.waited(0, 100);
        assert_eq!(inside.ns(), 40);
    }

    #[test]
    fn long_waits_are_added_up_though_memory_is_bounded() {
        let mut hold = Hold::default();
        for at in 0..100_000 {
            hold.held(at * 10, at * 10 + 4);
        }
        hold.waited(0, 1_000_000);
        assert!(hold.stretches.len() <= STRETCHES);
        assert!(hold.ns().abs_diff(400_000) <= 4_000, "{}", hold.ns());
        (0..1000).for_each(|at| hold.waited(1_000_000 + at, 1_000_001 + at));
        assert!(hold.pending.len() <= PENDING);
    }
}
