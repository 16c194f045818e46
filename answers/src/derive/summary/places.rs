//! Numbers of the sums of a segment, looked up by task and call: it has a row for every call, and few tasks and calls.

use systape_format::model::Dict;

use systape_events::filter::SegmentFilter;

/// A number that was not looked up yet.
const NOT_YET: u32 = u32::MAX;
/// Calls that do not pass.
const LEFT_OUT: u32 = u32::MAX - 1;
/// Tables of (task, call) larger than this are not made; every row is looked up in hashes instead.
const TABLE_LIMIT: usize = 1 << 20;

/// Numbers of the sums of each (task, call) of a segment, each looked up once.
pub(super) struct Places<'a> {
    filter: &'a SegmentFilter<'a>,
    calls: usize,
    table: &'a mut Vec<u32>,
    /// Whether, for each task, a call passes.
    pub(super) seen: Vec<bool>,
    /// Rows are tested one by one, so that a call of a task that passes may not: [`Self::saw`] says which do.
    checked: bool,
}

impl<'a> Places<'a> {
    /// `table` is only memory to use.
    pub(super) fn new(dict: &Dict, filter: &'a SegmentFilter<'a>, checked: bool, table: &'a mut Vec<u32>) -> Self {
        let size = dict.tasks.len().saturating_mul(dict.calls.len());
        table.clear();
        table.resize(if size <= TABLE_LIMIT { size } else { 0 }, NOT_YET);
        Self { filter, calls: dict.calls.len(), table, seen: vec![false; dict.tasks.len()], checked }
    }

    /// A call of task `t` passes all tests.
    #[inline]
    pub(super) fn saw(&mut self, t: usize) {
        if let Some(seen) = self.seen.get_mut(t) {
            *seen = true;
        }
    }

    /// The number for task `t` and call `c`, which `find` looks up; None: their calls do not pass.
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
