//! How much of all time may be recorded in full.

/// Time for full recordings.
#[derive(Debug)]
pub(crate) struct FullTime {
    start: u64,
    length: u64,
    percent: u64,
    spent: u64,
}

impl FullTime {
    /// Begins at `start`; each takes `length`, and all of them `percent` of the time since then. The first may come at once.
    pub(crate) fn new(start: u64, length: u64, percent: u32) -> Self {
        Self { start, length, percent: percent.into(), spent: 0 }
    }

    /// Whether another one may begin at `now`.
    pub(crate) fn may(&self, now: u64) -> bool {
        let elapsed = u128::from(now.saturating_sub(self.start));
        u128::from(self.spent) * 100 <= elapsed * u128::from(self.percent)
    }

    /// One began.
    pub(crate) fn spend(&mut self) {
        self.spent = self.spent.saturating_add(self.length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_free_and_the_others_are_earned() {
        let mut budget = FullTime::new(1000, 30, 2);
        assert!(budget.may(1000));
        budget.spend();
        assert!(!budget.may(1000 + 1499) && budget.may(1000 + 1500));
        budget.spend();
        assert!(!budget.may(1000 + 2999) && budget.may(1000 + 3000));
        let mut always = FullTime::new(0, u64::MAX, 100);
        always.spend();
        always.spend();
        assert!(!always.may(5), "no overflow");
    }
}
