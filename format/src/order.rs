//! The two orders of rows in a segment.
//!
//! *Row order*: rows that began before the segment's window ("carry") first, by (start, task); then the rest by end.
//! *Column order* of arguments: by (task, call, row), so that neighbours are similar; the reader rebuilds it from the
//! core group.

use crate::model::Core;

/// Insertion ids in row order, and how many of them are carry rows.
///
/// `starts` and `ends` have one value per insertion id; so has `tasks`. Rows equal in their key keep insertion order.
pub(crate) fn row_order(starts: &[u64], ends: &[u64], tasks: &[u32], window_start: u64) -> (Vec<u32>, usize) {
    let mut carry: Vec<(u64, u32, u32)> = Vec::new();
    let mut rest: Vec<(u64, u32)> = Vec::with_capacity(ends.len());
    for (id, ((&start, &end), &task)) in starts.iter().zip(ends).zip(tasks).enumerate() {
        if start < window_start {
            carry.push((start, task, id as u32));
        } else {
            rest.push((end, id as u32));
        }
    }
    carry.sort_unstable();
    // Rings are in time order each, so there are long ascending runs: the stable sort finds them.
    rest.sort_by_key(|&(end, _)| end);
    let ids = carry.iter().map(|&(_, _, id)| id).chain(rest.iter().map(|&(_, id)| id)).collect();
    (ids, carry.len())
}

/// Rows in column order: position `i` of an argument column belongs to row `result[i]`.
pub(crate) fn column_order(task: &[u32], call: &[u32]) -> Vec<u32> {
    let n = task.len().min(call.len());
    let (task, call) = (&task[..n], &call[..n]);
    let bound = |keys: &[u32]| keys.iter().max().map_or(0, |&max| max as usize + 1);
    let (tasks, calls) = (bound(task), bound(call));
    let rows = 0..n as u32;
    // Keys are indices into short tables when they come from a tape; a caller's own may be anything.
    if tasks.max(calls) > (1 << 20) + n {
        let mut rows: Vec<u32> = rows.collect();
        rows.sort_by_key(|&row| (task[row as usize], call[row as usize]));
        return rows;
    }
    // a stable counting pass by both keys, or by the lesser one first when that would take more slots than rows
    if tasks * calls <= n {
        let both: Vec<u32> = task.iter().zip(call).map(|(&task, &call)| task * calls as u32 + call).collect();
        return counting_pass(rows, &both, tasks * calls);
    }
    let rows = counting_pass(rows, call, calls);
    counting_pass(rows.into_iter(), task, tasks)
}

/// The rows of a segment whose details are read, and where the columns in column order have them.
#[derive(Clone, Debug)]
pub struct PickedRows(Rows);

#[derive(Clone, Debug)]
enum Rows {
    /// All: the row of each position.
    All(Vec<u32>),
    Only {
        /// Of each row of the segment, whether it is one of them.
        are: Vec<bool>,
        /// Position and row of each.
        places: Vec<(u32, u32)>,
    },
}

impl PickedRows {
    /// All rows of `core`.
    pub fn all(core: &Core) -> Self {
        Self(Rows::All(column_order(&core.task, &core.call)))
    }

    /// Picks these rows of `core`; those that it does not have are left out.
    pub fn only(core: &Core, rows: impl IntoIterator<Item = u32>) -> Self {
        let order = column_order(&core.task, &core.call);
        let mut are = vec![false; order.len()];
        for row in rows {
            are.get_mut(row as usize).into_iter().for_each(|is| *is = true);
        }
        let places = (0..).zip(order).filter(|(_, row)| are[*row as usize]).collect();
        Self(Rows::Only { are, places })
    }

    /// Whether `row` is one of them.
    pub(crate) fn has(&self, row: u32) -> bool {
        match &self.0 {
            Rows::All(_) => true,
            Rows::Only { are, .. } => are.get(row as usize).copied().unwrap_or(false),
        }
    }

    /// Whether all are.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self.0, Rows::All(_))
    }

    /// Calls `each` with the rows and their values in `column`, which is in column order.
    pub(crate) fn each<T: Copy>(&self, column: &[T], mut each: impl FnMut(usize, T)) {
        match &self.0 {
            Rows::All(order) => order.iter().zip(column).for_each(|(row, value)| each(*row as usize, *value)),
            Rows::Only { places, .. } => {
                let there = places.iter().filter_map(|(at, row)| Some((row, column.get(*at as usize)?)));
                there.for_each(|(row, value)| each(*row as usize, *value));
            }
        }
    }
}

/// `rows`, a permutation, stably sorted by `keys[row]`; each key is below `bound`.
fn counting_pass(rows: impl Iterator<Item = u32>, keys: &[u32], bound: usize) -> Vec<u32> {
    if bound <= 1 {
        return rows.collect();
    }
    let mut next = vec![0u32; bound];
    for &key in keys {
        next[key as usize] += 1;
    }
    let mut sum = 0;
    for slot in &mut next {
        sum += std::mem::replace(slot, sum);
    }
    let mut out = vec![0u32; keys.len()];
    for row in rows {
        let slot = &mut next[keys[row as usize] as usize];
        out[*slot as usize] = row;
        *slot += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carry_rows_come_first_by_start() {
        let starts = [50, 5, 120, 5, 100];
        let ends = [130, 140, 125, 150, 125];
        let tasks = [0, 2, 0, 1, 0];
        let (ids, carry) = row_order(&starts, &ends, &tasks, 100);
        assert_eq!(carry, 3);
        assert_eq!(ids, [3, 1, 0, 2, 4], "equal starts by task, equal ends by insertion");
    }

    #[test]
    fn column_order_is_a_stable_sort() {
        let task = [1, 0, 1, 0, 1];
        let call = [0, 1, 0, 0, 2];
        assert_eq!(column_order(&task, &call), [3, 1, 0, 2, 4]);
        // one pass by both keys, and one by each
        for (tasks, calls) in [(1, 1), (1, 7), (5, 1), (20, 45), (60, 70), (990, 2)] {
            let task: Vec<u32> = (0..1000).map(|i| i * 577 % tasks).collect();
            let call: Vec<u32> = (0..1000).map(|i| i * 331 % 89 % calls).collect();
            let mut sorted: Vec<u32> = (0..1000).collect();
            sorted.sort_by_key(|&row| (task[row as usize], call[row as usize]));
            assert_eq!(column_order(&task, &call), sorted, "{tasks} tasks, {calls} calls");
        }
        assert_eq!(column_order(&[u32::MAX, 7], &[0, u32::MAX]), [1, 0], "keys no tape can have");
        assert_eq!(column_order(&[], &[]), [0u32; 0]);
    }
}
