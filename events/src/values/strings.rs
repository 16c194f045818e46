//! Byte strings that are stored once, and have a number each.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Strings one behind the other, numbered from 0 in the order in which they came. Beside its bytes one takes about 15.
#[derive(Clone, Debug, Default)]
pub struct NumberedStrings {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// Their numbers by their hashes.
    numbers: HashTable<u32>,
}

impl NumberedStrings {
    /// The number of `bytes`, and whether it was given now.
    #[inline]
    pub fn number(&mut self, bytes: &[u8]) -> (u32, bool) {
        self.number_of(|all| all.extend_from_slice(bytes))
    }

    /// Number of the bytes that `append` appends.
    pub fn number_of(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> (u32, bool) {
        let Self { bytes, ends, numbers } = self;
        let begin = bytes.len();
        append(bytes);
        let (known, new) = bytes.split_at(begin);
        let hash = FxBuildHasher.hash_one(new);
        if let Some(number) = numbers.find(hash, |number| slice(known, ends, *number) == Some(new)) {
            bytes.truncate(begin);
            return (*number, false);
        }
        let number = ends.len() as u32;
        ends.push(bytes.len());
        numbers
            .insert_unique(hash, number, |number| FxBuildHasher.hash_one(slice(bytes, ends, *number).unwrap_or(&[])));
        (number, true)
    }

    /// The string of that number; None: it was never given.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        slice(&self.bytes, &self.ends, number)
    }

    /// All, by number.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|at| self.get(at as u32))
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of memory that are used.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>() + self.numbers.allocation_size()
    }

    /// Forgets all, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.numbers.clear();
    }
}

/// The string `number` of `bytes`, each of which ends where `ends` says.
fn slice<'b>(bytes: &'b [u8], ends: &[usize], number: u32) -> Option<&'b [u8]> {
    let at = number as usize;
    let end = *ends.get(at)?;
    let begin = at.checked_sub(1).map_or(0, |before| ends[before]);
    bytes.get(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_string_has_one_number(words in prop::collection::vec("[ab]{0,4}", 0..200)) {
            let (mut strings, mut expected) = (NumberedStrings::default(), Vec::<&str>::new());
            for word in &words {
                let known = expected.iter().position(|known| known == word);
                let number = strings.number(word.as_bytes());
                prop_assert_eq!(number, (known.unwrap_or(expected.len()) as u32, known.is_none()));
                expected.extend(known.is_none().then_some(&**word));
            }
            prop_assert!(strings.iter().eq(expected.iter().map(|word| word.as_bytes())));
            prop_assert_eq!([expected.len() as u32, u32::MAX].map(|number| strings.get(number)), [None; 2]);
        }
    }

    #[test]
    fn a_string_takes_little_beside_its_bytes() {
        const MANY: usize = 100_000;
        let mut strings = NumberedStrings::default();
        for number in 0..MANY {
            strings.number(format!("/srv/data/project/objects/{number:08x}.o").as_bytes());
        }
        let beside = strings.ends.len() * size_of::<usize>() + strings.numbers.allocation_size();
        assert_eq!(strings.bytes.len(), MANY * "/srv/data/project/objects/00000000.o".len());
        assert!(beside <= 20 * MANY, "{beside}");
    }

    #[test]
    fn none_is_there_after_all_were_forgotten() {
        let mut strings = NumberedStrings::default();
        strings.number(b"/a");
        strings.clear();
        assert_eq!(strings.get(0), None);
        assert_eq!(strings.number(b"/b"), (0, true));
    }
}
