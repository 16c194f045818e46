//! Names by a kernel address: those not used for long are forgotten.

use rustc_hash::FxHashMap;

/// Entries kept at least; twice as many at most. The programs send a name again after 16,384 others.
const KEPT: usize = 32_768;

/// Names by a kernel address, of which those not used for long are forgotten.
#[derive(Debug)]
pub(super) struct Recent<V> {
    known: FxHashMap<u64, V>,
    /// Those that were not needed for long.
    old: FxHashMap<u64, V>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { known: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<V> Recent<V> {
    /// What is known under `address` is this from now on.
    pub(super) fn insert(&mut self, address: u64, value: V) {
        if self.known.len() >= KEPT {
            self.old = std::mem::take(&mut self.known);
        }
        self.known.insert(address, value);
    }

    /// What is known under `address`, if `is_it` says so: something else may have been there.
    pub(super) fn get(&mut self, address: u64, is_it: impl Fn(&V) -> bool) -> Option<&mut V> {
        if !self.known.get(&address).is_some_and(&is_it) {
            let old = self.old.remove(&address).filter(is_it)?;
            self.insert(address, old);
        }
        self.known.get_mut(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_kept() {
        let mut recent = Recent::default();
        recent.insert(1, "a");
        assert_eq!(recent.get(1, |v| *v == "a"), Some(&mut "a"));
        assert_eq!(recent.get(1, |v| *v == "b"), None);
        assert_eq!(recent.get(2, |_| true), None);
        let kept = KEPT as u64;
        (0..kept).for_each(|n| recent.insert(10 + n, "other"));
        assert_eq!(recent.get(1, |_| true), Some(&mut "a"), "it moved to the new ones");
        (0..kept).for_each(|n| recent.insert(10 + kept + n, "other"));
        (0..kept).for_each(|n| recent.insert(10 + 2 * kept + n, "other"));
        assert_eq!(recent.get(1, |_| true), None);
        assert!(recent.known.len() + recent.old.len() <= 2 * KEPT);
    }
}
