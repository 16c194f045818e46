//! The groups whose sums may be too low.
//!
//! Calls that were counted and not stored may have unknown keys. They are in the group with
//! [`Value::Unknown`](super::value::Value::Unknown) for these keys, but belong to one of the groups that agree with
//! their known keys: each of these is "at least". If it is not known whether they pass the filters, they are in no
//! group, and their own group is "at least" too.

use rustc_hash::FxHashMap;

use super::value::{Key, Value};

/// Facts about such calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OpenCallTimes {
    /// They are in no group.
    missing: bool,
    /// They are in a group of their own.
    apart: bool,
    /// Some of them were lost; false: `record` was asked to leave them out.
    lost: bool,
}

impl OpenCallTimes {
    fn merge(&mut self, other: Self) {
        self.missing |= other.missing;
        self.apart |= other.apart;
        self.lost |= other.lost;
    }
}

/// Keys of calls with unknown keys, or that might not pass.
#[derive(Clone, Debug, Default)]
pub struct Open {
    keys: FxHashMap<Key, OpenCallTimes>,
}

impl Open {
    /// Calls with `key` were counted; `missing`: they are in no group; `lost`: not by request.
    pub fn add(&mut self, key: &[Value], missing: bool, lost: bool) {
        let apart = key.iter().any(|value| !value.is_known());
        if missing || apart {
            let how = OpenCallTimes { missing, apart: apart && !missing, lost };
            self.keys.entry(key.into()).or_default().merge(how);
        }
    }

    /// Adds those of `other`.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        for (key, how) in other.keys {
            self.keys.entry(key).or_default().merge(how);
        }
    }

    /// Makes a judge of single groups; `without`: the key at that index is ignored.
    pub fn judge(&self, without: Option<usize>) -> Judge {
        let mut judge = Judge::default();
        for (key, how) in &self.keys {
            let known = |at: &usize| key[*at].is_known() && Some(*at) != without;
            let places: Vec<usize> = (0..key.len()).filter(known).collect();
            let open = (0..key.len()).filter(|at| !key[*at].is_known() && Some(*at) != without).collect();
            let part: Key = places.iter().map(|at| key[*at].clone()).collect();
            judge.by_places.entry((places, open)).or_default().entry(part).or_default().merge(*how);
        }
        judge
    }
}

/// Indices of known and of unknown keys.
type Places = (Vec<usize>, Vec<usize>);

/// Answers for single groups whether they may have more.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    by_places: FxHashMap<Places, FxHashMap<Key, OpenCallTimes>>,
}

impl Judge {
    /// Whether any group may have more.
    #[inline]
    pub fn any(&self) -> bool {
        !self.by_places.is_empty()
    }

    /// Whether the group of `key` may have more than its sum says.
    #[inline]
    pub fn short(&self, key: &[Value]) -> bool {
        self.touching(key).next().is_some()
    }

    /// Whether a group may have more because of calls that were lost, not of such that `record` was asked to leave out.
    #[inline]
    pub fn lost(&self, key: &[Value]) -> bool {
        self.touching(key).any(|how| how.lost)
    }

    /// What is known of the calls that may belong to the group of `key`.
    fn touching<'a>(&'a self, key: &'a [Value]) -> impl Iterator<Item = OpenCallTimes> + 'a {
        self.by_places.iter().filter_map(move |((places, open), keys)| {
            let part: Key = places.iter().map(|at| key[*at].clone()).collect();
            // the group where they stand has all of them
            let own = open.iter().all(|at| !key[*at].is_known());
            keys.get(&part).copied().filter(|how| how.missing || (how.apart && !own))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: [u64; 2]) -> Key {
        parts.into_iter().map(|part| if part == 0 { Value::Unknown } else { Value::Number(part) }).collect()
    }

    fn short(open: &[([u64; 2], bool)], group: [u64; 2]) -> bool {
        let mut all = Open::default();
        open.iter().for_each(|(parts, missing)| all.add(&key(*parts), *missing, true));
        all.judge(None).short(&key(group))
    }

    #[test]
    fn calls_that_leave_a_key_open_touch_all_that_agree() {
        assert!(short(&[([7, 0], false)], [7, 1]), "of the same first key");
        assert!(!short(&[([7, 0], false)], [8, 1]), "of another");
        assert!(!short(&[([7, 0], false)], [7, 0]), "their own group has them");
        assert!(!short(&[([7, 0], false)], [0, 0]), "they are not of nobody");
        assert!(short(&[([0, 0], false)], [7, 0]), "nobody's may be of a process whose thread is not known");
        assert!(!short(&[([7, 1], false)], [7, 1]), "all is known");
    }

    #[test]
    fn calls_that_may_not_pass_touch_their_own_group_too() {
        assert!(short(&[([7, 1], true)], [7, 1]));
        assert!(!short(&[([7, 1], true)], [7, 2]));
        assert!(short(&[([7, 0], true)], [7, 0]));
        assert!(short(&[([7, 0], true), ([7, 0], false)], [7, 0]));
    }

    #[test]
    fn what_was_left_out_by_request_is_not_lost() {
        let mut open = Open::default();
        open.add(&key([7, 0]), false, false);
        open.add(&key([8, 0]), false, true);
        let judge = open.judge(None);
        assert_eq!([7, 8].map(|first| judge.short(&key([first, 1]))), [true, true]);
        assert_eq!([7, 8].map(|first| judge.lost(&key([first, 1]))), [false, true]);
    }

    #[test]
    fn a_key_may_be_left_out() {
        let mut open = Open::default();
        open.add(&key([7, 1]), true, true);
        assert!(open.judge(Some(1)).short(&key([7, 2])) && !open.judge(None).short(&key([7, 2])));
    }
}
