//! The places in code on stacks.

use rustc_hash::FxHashSet;
use systape_format::model::{Frame, Mapping};

use super::interner::Interner;

/// Distinct places in code.
#[derive(Debug, Default)]
pub struct Places {
    mappings: Interner<Mapping>,
    offsets: Vec<FxHashSet<u64>>,
}

impl Places {
    /// Adds `frames` of `mappings`.
    pub fn add(&mut self, mappings: &[Mapping], frames: &[Frame]) {
        let ids: Vec<u32> = mappings.iter().map(|mapping| self.mappings.id(mapping)).collect();
        self.offsets.resize_with(self.mappings.values().len(), FxHashSet::default);
        for frame in frames {
            if let Some(id) = ids.get(frame.mapping as usize) {
                self.offsets[*id as usize].insert(frame.lookup());
            }
        }
    }

    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mapping, offsets) in other.iter() {
            let id = self.mappings.id(mapping);
            self.offsets.resize_with(self.mappings.values().len(), FxHashSet::default);
            self.offsets[id as usize].extend(offsets);
        }
    }

    /// Each mapping with its places, which are offsets as returned by [`Frame::lookup`].
    pub fn iter(&self) -> impl Iterator<Item = (&Mapping, &FxHashSet<u64>)> {
        self.mappings.values().iter().zip(&self.offsets)
    }
}
