//! Sums by keys, in any order: one implementation for every report with `--by`.

pub mod by;
pub mod env;
pub mod of_cgroup;
pub mod of_file;
pub mod open;
pub mod packed;
pub mod spilling;
pub mod value;

use self::packed::{Packed, pack};
use self::value::{Key, Value};
use crate::values::strings::NumberedStrings;

/// A sum.
pub trait Add: Default {
    /// Adds all of `other`.
    fn add(&mut self, other: &Self);
}

/// Sums by key. Memory grows with the number of keys: beside its sum one takes its bytes, and about 15 more.
#[derive(Debug)]
pub struct Groups<A> {
    keys: NumberedStrings,
    /// By the numbers of their keys.
    sums: Vec<A>,
}

impl<A> Default for Groups<A> {
    fn default() -> Self {
        Self { keys: NumberedStrings::default(), sums: Vec::new() }
    }
}

impl<A: Add> Groups<A> {
    /// Index of the sum of `key`, for [`Self::at`]; a new sum is empty.
    pub fn place(&mut self, key: &[Value]) -> u32 {
        let (place, new) = self.keys.number_of(|out| pack(key, out));
        if new {
            self.sums.push(A::default());
        }
        place
    }

    /// The sum at an index.
    #[inline]
    pub fn at(&mut self, place: u32) -> &mut A {
        &mut self.sums[place as usize]
    }

    /// The key and the sum at an index.
    #[inline]
    pub fn get(&self, place: u32) -> (Packed<'_>, &A) {
        (Packed(self.keys.get(place).unwrap_or_default()), &self.sums[place as usize])
    }

    /// The sum of `key`.
    #[inline]
    pub fn of(&mut self, key: &[Value]) -> &mut A {
        let place = self.place(key);
        self.at(place)
    }

    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Adds all of `other`, which is empty then and keeps its memory.
    pub fn merge(&mut self, other: &mut Self) {
        for (key, sum) in other.keys.iter().zip(other.sums.drain(..)) {
            let (place, new) = self.keys.number(key);
            match new {
                true => self.sums.push(sum),
                false => self.at(place).add(&sum),
            }
        }
        other.keys.clear();
    }

    /// Keys and sums, by index.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Packed<'_>, &A)> {
        self.keys.iter().map(Packed).zip(&self.sums)
    }

    /// Bytes of memory, without what sums have elsewhere.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.sums.len() * size_of::<A>()
    }

    /// Indices in the order of the keys.
    #[inline]
    pub fn by_key(&self) -> Vec<u32> {
        let mut places: Vec<u32> = (0..self.sums.len() as u32).collect();
        places.sort_unstable_by_key(|place| self.keys.get(*place));
        places
    }

    /// Forgets all, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.keys.clear();
        self.sums.clear();
    }

    /// All keys and their sums, by value.
    #[inline]
    pub fn into_sums(self) -> impl Iterator<Item = (Key, A)> {
        let Self { keys, sums } = self;
        (0..).zip(sums).filter_map(move |(number, sum)| Some((Packed(keys.get(number)?).key(), sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(u64);

    impl Add for Count {
        fn add(&mut self, other: &Self) {
            self.0 += other.0;
        }
    }

    /// Sums of 1 for each of these keys.
    fn groups(keys: std::ops::Range<u64>) -> Groups<Count> {
        let mut groups: Groups<Count> = Groups::default();
        keys.for_each(|key| groups.of(&[Value::Number(key)]).0 += 1);
        groups
    }

    #[test]
    fn groups_shared_early_are_those_shared_late() {
        let mut all: Groups<Count> = Groups::default();
        [groups(0..5), groups(3..9), groups(0..1)].into_iter().for_each(|mut part| all.merge(&mut part));
        let mut sums: Vec<_> = all.into_sums().map(|(key, count)| (key, count.0)).collect();
        sums.sort();
        assert_eq!(sums.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2, 1, 1, 2, 2, 1, 1, 1, 1]);
    }
}
