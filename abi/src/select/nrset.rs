//! Sets of syscall numbers, asked once per event and so kept as bits.

use crate::{Abi, names};

/// Numbers per ABI that have a bit of their own; every table ends far below it.
const BITS: usize = 1024;

/// A set of calls, by ABI and number.
#[derive(Clone, Debug, Default)]
pub(super) struct NrSet {
    /// One row per entry of [`Abi::KNOWN`].
    known: [[u64; BITS / 64]; 4],
    /// Numbers that are members in every ABI, named or not.
    numbers: Vec<u32>,
    /// ABIs of which everything is a member, also what has no name. Index as in `known`, the last is [`Abi::Unknown`].
    whole: [bool; 5],
}

fn row(abi: Abi) -> Option<usize> {
    Abi::KNOWN.iter().position(|known| *known == abi)
}

impl NrSet {
    pub(super) fn contains(&self, abi: Abi, nr: u32) -> bool {
        let row = row(abi);
        if self.whole[row.unwrap_or(4)] {
            return true;
        }
        let index = names::index(abi, nr);
        let known = row.is_some_and(|row| index < BITS && self.known[row][index / 64] & (1 << (index % 64)) != 0);
        known || self.numbers.iter().any(|&number| names::index(abi, number) == index)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.iter().flatten().all(|&word| word == 0) && self.numbers.is_empty() && self.whole == [false; 5]
    }

    /// Adds the calls `names` in those of `abis` that have them.
    pub(super) fn insert_names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, abis: &[Abi]) {
        for name in names {
            for &abi in abis {
                if let (Some(row), Some(nr)) = (row(abi), names::number(abi, name)) {
                    let index = names::index(abi, nr);
                    self.known[row][index / 64] |= 1 << (index % 64);
                }
            }
        }
    }

    /// Adds number `nr` of every ABI.
    pub(super) fn insert_number(&mut self, nr: u32) {
        self.numbers.push(nr);
    }

    /// Adds everything of `abis`; if they are all known ones, calls of unknown ABIs too.
    pub(super) fn insert_all(&mut self, abis: &[Abi]) {
        for &abi in abis {
            if let Some(row) = row(abi) {
                self.whole[row] = true;
            }
        }
        self.whole[4] |= abis.len() == Abi::KNOWN.len();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.known.iter_mut().flatten().zip(other.known.iter().flatten()) {
            *mine |= theirs;
        }
        self.numbers.extend(&other.numbers);
        for (mine, theirs) in self.whole.iter_mut().zip(other.whole) {
            *mine |= theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_every_table_has_a_bit() {
        for abi in Abi::KNOWN {
            assert!(names::all(abi).all(|(nr, _)| names::index(abi, nr) < BITS), "{abi}");
        }
    }
}
