//! Places of sums, looked up by numbers: a segment has a row for every call, and few tasks and calls.

use rustc_hash::FxHashMap;
use systape_format::model::{Call, Dict};

use super::plan::Plan;
use super::stats::Stats;
use crate::table::filter::SegmentFilter;
use crate::table::group::Groups;
use crate::table::group::by::By;
use crate::table::group::value::Key;

/// A place that was not looked up yet.
const NOT_YET: u32 = u32::MAX;
/// Calls that do not pass.
const LEFT_OUT: u32 = u32::MAX - 1;
/// Tables of (task, call) larger than this are not made; every row is looked up in a hash instead.
const TABLE_LIMIT: usize = 1 << 20;

/// Places of the sums of each (task, call) of a segment, each looked up once.
pub(super) struct Places<'a> {
    filter: &'a SegmentFilter<'a>,
    calls: usize,
    table: Vec<u32>,
    /// Of each task, whether a call passes.
    pub(super) seen: Vec<bool>,
    /// Rows are tested one by one, so that a call of a task that passes may not: [`Self::saw`] says which do.
    checked: bool,
}

impl<'a> Places<'a> {
    pub(super) fn new(dict: &Dict, filter: &'a SegmentFilter<'a>, checked: bool) -> Self {
        let size = dict.tasks.len().saturating_mul(dict.calls.len());
        Self {
            filter,
            calls: dict.calls.len(),
            table: vec![NOT_YET; if size <= TABLE_LIMIT { size } else { 0 }],
            seen: vec![false; dict.tasks.len()],
            checked,
        }
    }

    /// A call of task `t` passes all tests.
    #[inline]
    pub(super) fn saw(&mut self, t: usize) {
        if let Some(seen) = self.seen.get_mut(t) {
            *seen = true;
        }
    }

    /// The place for task `t` and call `c`, which `find` looks up; None: their calls do not pass.
    #[inline]
    pub(super) fn of(&mut self, t: usize, c: usize, find: impl FnOnce() -> u32) -> Option<u32> {
        let at = t * self.calls + c;
        let known = self.table.get(at).copied();
        let place = match known {
            Some(place) if place != NOT_YET => place,
            _ => {
                let passes = self.filter.tasks[t] && self.filter.calls[c];
                let place = if passes { find() } else { LEFT_OUT };
                self.seen[t] |= passes && !self.checked;
                if known.is_some() {
                    self.table[at] = place;
                }
                place
            }
        };
        (place != LEFT_OUT).then_some(place)
    }
}

/// Places in the sums of one thread, by numbers: with many tasks, most of a segment's were met in one before, and no key
/// is made and compared for them.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// A number of each key that tasks have but for the call.
    tasks: FxHashMap<Key, u32>,
    places: FxHashMap<(u32, Call), u32>,
}

impl Known {
    /// Forgets all; the sums are others now.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.places.clear();
    }

    pub(super) fn segment<'a>(&'a mut self, dict: &'a Dict, plan: &'a Plan) -> KnownHere<'a> {
        KnownHere { known: self, numbers: vec![NOT_YET; dict.tasks.len()], dict, plan, by_call: plan.has(By::Syscall) }
    }
}

/// [`Known`] for a segment.
pub(super) struct KnownHere<'a> {
    known: &'a mut Known,
    /// Of each task of the segment.
    numbers: Vec<u32>,
    dict: &'a Dict,
    plan: &'a Plan,
    by_call: bool,
}

impl KnownHere<'_> {
    /// The place in `sums` for task `t` and call `c`.
    #[cold]
    pub(super) fn place(&mut self, t: usize, c: usize, sums: &mut Groups<Stats>) -> u32 {
        let task = &self.dict.tasks[t];
        let Known { tasks, places } = &mut *self.known;
        if self.numbers[t] == NOT_YET {
            let next = tasks.len() as u32;
            self.numbers[t] = *tasks.entry(self.plan.key(task, Call::default())).or_insert(next);
        }
        let call = if self.by_call { self.dict.calls[c] } else { Call::default() };
        *places.entry((self.numbers[t], call)).or_insert_with(|| sums.place(&self.plan.key(task, call)))
    }
}
