//! Distinct strings of bytes, numbered in the order in which they came, all in one buffer: names of descriptors are many
//! and short, and each in memory of its own took longer to make, find and free than to compress.

use std::hash::BuildHasher;

/// The strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    /// The end of each in `bytes`.
    ends: Vec<usize>,
}

impl Strings {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The string of a number that was given.
    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let from = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(from..*self.ends.get(at)?)
    }

    /// Each of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut from, end)..end])
    }

    /// Adds one, whether there is an equal one or not.
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }
}

/// Finds the number of a string.
#[derive(Debug, Default)]
pub(crate) struct StringSet {
    strings: Strings,
    /// A power of two, more than half of them free (0): the number of a string and one, and 32 bits of its hash above.
    slots: Vec<u64>,
    /// Seeded: the strings are chosen by the programs that are recorded.
    hashing: foldhash::fast::RandomState,
}

impl StringSet {
    /// The number of a string, and whether it is new.
    pub(crate) fn insert(&mut self, string: &[u8]) -> (u32, bool) {
        if 2 * (self.strings.len() + 1) > self.slots.len() {
            self.grow();
        }
        let hash = self.hashing.hash_one(string);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let number = slot as u32 - 1;
            if slot >> 32 == hash >> 32 && self.strings.get(number as usize) == Some(string) {
                return (number, false);
            }
            at = (at + 1) & mask;
        }
        let number = self.strings.len() as u32;
        self.strings.push(string);
        self.slots[at] = (hash >> 32 << 32) | (u64::from(number) + 1);
        (number, true)
    }

    fn grow(&mut self) {
        const LEAST: usize = 64;
        let room = LEAST.max(2 * self.slots.len());
        self.slots.clear();
        self.slots.resize(room, 0);
        for (number, string) in self.strings.iter().enumerate() {
            let hash = self.hashing.hash_one(string);
            let mut at = hash as usize & (room - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (room - 1);
            }
            self.slots[at] = (hash >> 32 << 32) | (number as u64 + 1);
        }
    }

    /// The strings, by number.
    pub(crate) fn into_strings(self) -> Strings {
        self.strings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_has_one_number() {
        let mut set = StringSet::default();
        let name = |n: usize| format!("/srv/{n}").into_bytes();
        for round in 0..3 {
            for n in 0..1000 {
                assert_eq!(set.insert(&name(n)), (n as u32, round == 0));
            }
        }
        assert_eq!(
            (set.insert(b""), set.insert(b"\xff"), set.insert(b"")),
            ((1000, true), (1001, true), (1000, false))
        );
        let strings = set.into_strings();
        assert_eq!(strings.len(), 1002);
        assert_eq!(strings.bytes(), (0..1000).map(|n| name(n).len()).sum::<usize>() + 1);
        for (n, string) in strings.iter().enumerate().take(1000) {
            assert_eq!((string, strings.get(n)), (name(n).as_slice(), Some(string)));
        }
        assert_eq!(
            (strings.get(1000), strings.get(1001), strings.get(1002)),
            (Some(&b""[..]), Some(&b"\xff"[..]), None)
        );
        assert_eq!(Strings::default().get(0), None);
    }
}
