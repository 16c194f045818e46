//! Sums that all threads add to. They are in parts with a lock each, by their keys, so threads seldom wait for one another; and each sum is
//! there once, however many threads there are. Those for which there is no memory go to a file, a part at a time.

use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};
use systape_format::model::Call;

use super::plan::Plan;
use super::tally::Tally;
use systape_events::group::by::GroupKey;
use systape_events::group::spilling::{Parts, Spilling};
use systape_events::group::value::{Key, Value};
use systape_events::group::{Add as _, Groups};
use systape_events::values::spill::Store;

/// Number of parts.
pub(super) const PARTS: usize = 64;

/// Sums by key.
#[derive(Debug)]
pub(super) struct Shared {
    parts: Vec<Mutex<Part>>,
}

impl Shared {
    /// Makes no sums yet, in the memory of `store`, of which one of `share` such has its part.
    pub(super) fn new(store: Option<&Store>, share: usize) -> Self {
        let part = || Part { groups: Spilling::new(store.cloned(), PARTS * share), ..Part::default() };
        Self { parts: (0..PARTS).map(|_| Mutex::new(part())).collect() }
    }

    /// Part `at`, for the caller alone.
    pub(super) fn lock(&self, at: usize) -> MutexGuard<'_, Part> {
        self.parts[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds those of the ledger by the keys of `plan`.
    pub(super) fn add(&mut self, groups: Groups<Tally>, plan: &Plan) {
        let syscall = plan.place(GroupKey::Syscall).filter(|_| !plan.by_row());
        for (key, tally) in groups.into_sums() {
            let mut base = key.clone();
            if let Some(at) = syscall {
                base[at] = Value::Call(Call::default());
            }
            let part = self.parts[part_of(&base)].get_mut().unwrap_or_else(PoisonError::into_inner);
            part.groups.groups.of(&key).add(&tally);
            part.relieve(1);
        }
    }

    /// All of them: each key is in one part.
    pub(super) fn into_parts(self) -> Parts<Tally> {
        let parts = self.parts.into_iter().map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner).groups);
        // as one they would be there twice for a while
        Parts::of(parts.collect())
    }
}

/// The part of the sums whose key is `base`, but for the call.
pub(super) fn part_of(base: &[Value]) -> usize {
    (FxBuildHasher.hash_one(base) % PARTS as u64) as usize
}

/// The sums of some keys. Sums by call are looked up by numbers: most are met again in every segment, and no key is made and
/// compared for them.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// A number of each key that sums have but for the call.
    bases: FxHashMap<Key, u32>,
    /// Place of each base and call in `groups`.
    places: FxHashMap<(u32, Call), u32>,
    groups: Spilling<Tally>,
}

/// Bytes of an entry of [`Part::bases`] and of [`Part::places`], about.
const BASE: usize = size_of::<(Key, u32)>() * 2;
const PLACE: usize = size_of::<((u32, Call), u32)>() * 2;

impl Part {
    /// The place of the sum of `base`, or of `base` with this call at this index among the keys. `number` is that of `base`, once it is
    /// known.
    pub(super) fn place(&mut self, base: &Key, number: &mut Option<u32>, call: Option<(Call, usize)>) -> u32 {
        let Self { bases, places, groups: Spilling { groups, .. } } = self;
        match call {
            None => groups.place(base),
            Some((call, at)) => {
                let number = *number.get_or_insert_with(|| {
                    let next = bases.len() as u32;
                    *bases.entry(base.clone()).or_insert(next)
                });
                *places.entry((number, call)).or_insert_with(|| {
                    let mut key = base.clone();
                    key[at] = Value::Call(call);
                    groups.place(&key)
                })
            }
        }
    }

    /// The sum at a place.
    pub(super) fn at(&mut self, place: u32) -> &mut Tally {
        self.groups.groups.at(place)
    }

    /// Puts the sums into the file, after so many may have changed, if there is no memory for them.
    pub(super) fn relieve(&mut self, changes: usize) {
        if self.groups.relieve(changes, self.bases.len() * BASE + self.places.len() * PLACE) {
            self.bases.clear();
            self.places.clear();
        }
    }
}
