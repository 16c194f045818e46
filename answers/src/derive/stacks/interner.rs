//! Numbers for equal values.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Gives equal values one number.
#[derive(Debug)]
pub struct Interner<T> {
    ids: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { ids: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Hash + Eq + Clone> Interner<T> {
    /// The number of `value`.
    pub fn id(&mut self, value: &T) -> u32 {
        if let Some(id) = self.ids.get(value) {
            return *id;
        }
        // u32::MAX values would take more memory than a tape that could bring them about has bytes
        let id = self.values.len() as u32;
        self.values.push(value.clone());
        self.ids.insert(value.clone(), id);
        id
    }

    /// The number of `value` if it has one.
    pub fn get(&self, value: &T) -> Option<u32> {
        self.ids.get(value).copied()
    }

    /// All values by number.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}
