//! Rows of unwind rules in 24 bytes, and the cache of them.

use gimli::{CfaRule, RegisterRule};

use crate::cfi::{Missing, Rules};
use crate::registers::{CALLEE_SAVED, IP};

/// The rules of an address in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The way to the caller.
    Rule(Rule),
    /// There is no caller: the return address is undefined.
    Top,
    /// No unwind information.
    NoFde,
    /// It is invalid.
    Bad,
}

/// The most frequent rules: registers saved at fixed distances from the CFA, and the CFA at a fixed distance from a
/// register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) cfa_offset: i32,
    pub(crate) cfa_register: u8,
    /// The CFA is the word at that place (functions that realign their stack).
    pub(crate) cfa_is_loaded: bool,
    /// A signal handler returns to this function.
    pub(crate) signal: bool,
    /// Place of the return address, from the CFA.
    pub(crate) return_address: i16,
    /// Places of the callee-saved registers, from the CFA; [`SAME`] = unchanged.
    pub(crate) saved: [i16; CALLEE_SAVED.len()],
}

/// In [`Rule::saved`]: the register has its caller's value.
pub(crate) const SAME: i16 = i16::MIN;

impl Known {
    /// None = it needs a full evaluation.
    pub(crate) fn of(rules: &Rules<'_>) -> Option<Self> {
        if usize::from(rules.return_address.0) != IP {
            return None;
        }
        let (cfa_register, cfa_offset, cfa_is_loaded) = match rules.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => (u8::try_from(register.0).ok()?, *offset, false),
            CfaRule::Expression(e) => {
                let (register, offset) = loaded(rules.section.get(e.offset..e.offset.checked_add(e.length)?)?)?;
                (register, offset, true)
            }
        };
        if usize::from(cfa_register) > IP {
            return None;
        }
        let mut saved = [SAME; CALLEE_SAVED.len()];
        let mut return_address = None;
        for (register, rule) in rules.row.registers() {
            let register = usize::from(register.0);
            let slot = CALLEE_SAVED.iter().position(|r| *r == register);
            match (rule, slot) {
                // Vector registers and the like.
                _ if register > IP => {}
                (RegisterRule::Undefined, _) if register == IP => return Some(Self::Top),
                (RegisterRule::Offset(offset), _) if register == IP => {
                    return_address = Some(i16::try_from(*offset).ok()?)
                }
                (RegisterRule::Offset(offset), Some(slot)) => {
                    saved[slot] = i16::try_from(*offset).ok().filter(|o| *o != SAME)?;
                }
                (RegisterRule::SameValue | RegisterRule::Undefined, _) if register != IP => {}
                _ => return None,
            }
        }
        Some(Self::Rule(Rule {
            cfa_offset: i32::try_from(cfa_offset).ok()?,
            cfa_register,
            cfa_is_loaded,
            signal: rules.signal,
            return_address: return_address?,
            saved,
        }))
    }

    /// The entry for an address without rules.
    pub(crate) fn of_missing(missing: &Missing) -> Option<Self> {
        match missing {
            Missing::NoFde => Some(Self::NoFde),
            Missing::Bad => Some(Self::Bad),
            Missing::Budget => None,
        }
    }
}

/// DW_OP_breg0 to 15 with an offset, then DW_OP_deref.
fn loaded(expression: &[u8]) -> Option<(u8, i64)> {
    let (operation @ 0x70..=0x7f, [offset @ .., 0x06]) = expression.split_first()? else { return None };
    let offset = match offset {
        [one] if one & 0x80 == 0 => i64::from(*one) << 57 >> 57,
        [low, high] if low & 0x80 != 0 && high & 0x80 == 0 => {
            (i64::from(low & 0x7f) | i64::from(*high) << 7) << 50 >> 50
        }
        _ => return None,
    };
    Some((operation - 0x70, offset))
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    address: u64,
    id: u32,
    known: Option<Known>,
}

const EMPTY: Slot = Slot { address: 0, id: 0, known: None };
/// Slots an address may be in.
const WAYS: usize = 4;
/// Most slots; 160 MiB.
const MAX_SLOTS: usize = 1 << 22;

/// A cache of the rules of addresses, of all files. Its size is fixed; a new entry replaces one of four.
#[derive(Debug)]
pub(crate) struct Cache {
    slots: Vec<Slot>,
    random: u32,
}

impl Cache {
    pub(crate) fn new(rules: usize) -> Self {
        let rules = rules.clamp(WAYS, MAX_SLOTS);
        // The largest power of two that is not more than was asked for.
        let slots = 1 << rules.ilog2();
        Self { slots: vec![EMPTY; slots], random: 0x9e37_79b9 }
    }

    /// The entry of an address.
    #[inline]
    pub(crate) fn get(&self, id: u32, address: u64) -> Option<Known> {
        let first = self.first(id, address);
        let set = self.slots.get(first..first + WAYS)?;
        set.iter().find(|s| s.address == address && s.id == id && s.known.is_some()).and_then(|s| s.known)
    }

    /// Adds an entry that [`Self::get`] did not find.
    pub(crate) fn insert(&mut self, id: u32, address: u64, known: Known) {
        let first = self.first(id, address);
        let set = &mut self.slots[first..first + WAYS];
        let way = set.iter().position(|s| s.known.is_none()).unwrap_or_else(|| {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 17;
            self.random ^= self.random << 5;
            self.random as usize % WAYS
        });
        set[way] = Slot { address, id, known: Some(known) };
    }

    pub(crate) fn forget(&mut self, id: u32) {
        for slot in self.slots.iter_mut().filter(|s| s.id == id) {
            *slot = EMPTY;
        }
    }

    #[inline]
    fn first(&self, id: u32, address: u64) -> usize {
        let hash = (address ^ u64::from(id) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.slots.len() - 1) & !(WAYS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_recognised() {
        assert_eq!(loaded(&[0x76, 0x78, 0x06]), Some((6, -8)));
        assert_eq!(loaded(&[0x77, 0x08, 0x06]), Some((7, 8)));
        assert_eq!(loaded(&[0x76, 0x80, 0x7f, 0x06]), Some((6, -128)));
        assert_eq!(loaded(&[0x76, 0xf8, 0x00, 0x06]), Some((6, 120)));
        for not in [&[][..], &[0x06], &[0x76, 0x06], &[0x76, 0x80, 0x06], &[0x76, 0x08], &[0x90, 0x06, 0x08, 0x06]] {
            assert_eq!(loaded(not), None, "{not:x?}");
        }
    }

    #[test]
    fn the_cache_remembers_forgets_and_stays_small() {
        let mut cache = Cache::new(1000);
        assert_eq!(cache.slots.len(), 512);
        for i in 0..10_000 {
            cache.insert(i % 3, u64::from(i), Known::Top);
            assert_eq!(cache.get(i % 3, u64::from(i)), Some(Known::Top));
        }
        assert_eq!(cache.slots.len(), 512);
        assert_eq!(cache.get(7, 1), None);
        cache.forget(0);
        assert!(cache.slots.iter().all(|s| s.known.is_none() || s.id != 0));
        assert!(cache.slots.iter().any(|s| s.known.is_some()));
    }

    #[test]
    fn any_size_works() {
        for rules in [0, 1, 3, 4, 5, 4096] {
            let mut cache = Cache::new(rules);
            cache.insert(1, 2, Known::NoFde);
            assert_eq!(cache.get(1, 2), Some(Known::NoFde));
        }
    }
}
