//! What is known of an address in a file: its row of unwind rules in 24 bytes, on arm64 in 32. And the cache of that.

use gimli::{CfaRule, RegisterRule};

use crate::bytes::{i32_at, u16_at};
use crate::cfi::{NoRules, Rules};
use crate::numbers::{CALLEE_SAVED, IP, LAST_BREG, LINK, RETURN_ADDRESS};
use crate::registers::Registers;
use crate::stack::{StackCopy, UnwindEnd};

/// Source of the rules of a file: a [`Module`](crate::Module), or who asks another process that has one.
pub trait RuleSource: std::fmt::Debug {
    /// Whether there is any unwind information.
    fn has_rules(&self) -> bool;

    /// What is known of an address of the file; None = finding it out costs more than `budget`, from which its cost is
    /// subtracted.
    fn facts(&self, address: u64, budget: &mut u64) -> Option<Facts>;

    /// The way to the caller by rules that [`Facts`] cannot say; `registers` are at `address`.
    fn step(&self, address: u64, registers: &Registers, stack: &StackCopy<'_>, budget: &mut u64) -> Stepped;
}

/// What is known of an address of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub(crate) known: Known,
    /// A function begins there.
    pub(crate) begins: bool,
    /// Whether it is in a function with rules.
    pub(crate) covers: bool,
}

/// The way to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// The caller's registers; Ok(None) = there is no caller.
    pub caller: Result<Option<Registers>, UnwindEnd>,
    /// A signal handler returned to this function.
    pub signal: bool,
}

impl Stepped {
    /// Writes it as bytes, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.signal.into()];
        match &self.caller {
            Ok(Some(registers)) => {
                bytes.push(0);
                bytes.extend(registers.to_bytes());
            }
            Ok(None) => bytes.push(1),
            Err(end) => bytes.extend([2, end.number()]),
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote; None = another process has made them up.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (signal @ (0 | 1), [kind, rest @ ..]) = bytes.split_first()? else { return None };
        let caller = match (kind, rest) {
            (0, registers) => Ok(Some(Registers::from_bytes(registers.try_into().ok()?))),
            (1, []) => Ok(None),
            (2, [end]) => Err(UnwindEnd::of_number(*end)?),
            _ => return None,
        };
        Some(Self { caller, signal: *signal == 1 })
    }
}

impl Facts {
    /// Facts of another address of the row, where no function begins.
    #[must_use]
    pub fn within(self) -> Self {
        Self { begins: false, covers: true, ..self }
    }

    /// Length of [`Self::to_bytes`].
    pub const BYTES: usize = 10 + 2 * CALLEE_SAVED.len();

    /// Writes it as bytes, for another process.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let kind = match self.known {
            Known::Rule(rule) => {
                bytes[1] = u8::from(rule.signal) << 2 | u8::from(rule.cfa_is_loaded) << 3;
                bytes[2] = rule.cfa_register;
                bytes[4..8].copy_from_slice(&rule.cfa_offset.to_le_bytes());
                for (at, place) in [rule.return_address].into_iter().chain(rule.saved).enumerate() {
                    bytes[8 + 2 * at..10 + 2 * at].copy_from_slice(&place.to_le_bytes());
                }
                0
            }
            Known::Top => 1,
            Known::NoFde => 2,
            Known::Bad => 3,
            Known::Evaluate => 4,
        };
        bytes[0] = kind;
        bytes[1] |= u8::from(self.begins) | u8::from(self.covers) << 1;
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote; None = another process has made them up.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let flag = |bit: u8| bytes[1] & 1 << bit != 0;
        let known = match bytes[0] {
            0 => {
                let place = |at: u64| u16_at(bytes, 8 + 2 * at).map(u16::cast_signed);
                let mut saved = [SAME; CALLEE_SAVED.len()];
                for (at, slot) in saved.iter_mut().enumerate() {
                    *slot = place(1 + at as u64)?;
                }
                Known::Rule(Rule {
                    cfa_offset: i32_at(bytes, 4)?,
                    cfa_register: Some(bytes[2]).filter(|register| usize::from(*register) <= IP)?,
                    cfa_is_loaded: flag(3),
                    signal: flag(2),
                    return_address: place(0)?,
                    saved,
                })
            }
            1 => Known::Top,
            2 => Known::NoFde,
            3 => Known::Bad,
            4 => Known::Evaluate,
            _ => return None,
        };
        Some(Self { known, begins: flag(0), covers: flag(1) })
    }
}

/// The rules of an address in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The way to the caller.
    Rule(Rule),
    /// There is no caller: the return address is undefined.
    Top,
    /// No unwind information.
    NoFde,
    /// Invalid rules.
    Bad,
    /// Rules that need a full evaluation, by [`RuleSource::step`].
    Evaluate,
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
    /// Place of the return address, from the CFA; [`SAME`] = it is in its register still.
    pub(crate) return_address: i16,
    /// Places of the callee-saved registers, from the CFA; [`SAME`] = unchanged.
    pub(crate) saved: [i16; CALLEE_SAVED.len()],
}

/// Mark in [`Rule::saved`] that the register has its caller's value, and of a return address that its register has it.
pub(crate) const SAME: i16 = i16::MIN;

impl Known {
    /// Makes the rule of a row.
    pub(crate) fn of(rules: &Rules<'_>) -> Self {
        Self::simple(rules).unwrap_or(Self::Evaluate)
    }

    fn simple(rules: &Rules<'_>) -> Option<Self> {
        if usize::from(rules.return_address.0) != RETURN_ADDRESS {
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
        let mut return_address = LINK.map(|_| SAME);
        for (register, rule) in rules.row.registers() {
            let register = usize::from(register.0);
            let slot = CALLEE_SAVED.iter().position(|r| *r == register);
            match (rule, slot) {
                // Vector registers and the like.
                _ if register > IP => {}
                (RegisterRule::Undefined, _) if register == RETURN_ADDRESS => return Some(Self::Top),
                (RegisterRule::Offset(offset), _) if register == RETURN_ADDRESS => {
                    return_address = Some(i16::try_from(*offset).ok().filter(|o| *o != SAME)?);
                }
                (RegisterRule::SameValue, _) if register == RETURN_ADDRESS && LINK.is_some() => {}
                (RegisterRule::Offset(offset), Some(slot)) => {
                    saved[slot] = i16::try_from(*offset).ok().filter(|o| *o != SAME)?;
                }
                (RegisterRule::SameValue | RegisterRule::Undefined, _) if register != RETURN_ADDRESS => {}
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
    pub(crate) fn of_missing(missing: &NoRules) -> Option<Self> {
        match missing {
            NoRules::NoFde => Some(Self::NoFde),
            NoRules::Bad => Some(Self::Bad),
            NoRules::Budget => None,
        }
    }
}

/// DW_OP_breg0 and on with an offset, then DW_OP_deref.
fn loaded(expression: &[u8]) -> Option<(u8, i64)> {
    let (operation @ 0x70..=LAST_BREG, [offset @ .., 0x06]) = expression.split_first()? else { return None };
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
struct CacheSlot {
    address: u64,
    id: u32,
    facts: Option<Facts>,
}

const EMPTY: CacheSlot = CacheSlot { address: 0, id: 0, facts: None };
/// Slots an address may be in.
const WAYS: usize = 4;
/// Most slots; 160 MiB.
const MAX_SLOTS: usize = 1 << 22;

/// A cache of what is known of addresses, of all files. Its size is fixed; a new entry replaces one of four.
#[derive(Debug)]
pub(crate) struct Cache {
    slots: Vec<CacheSlot>,
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
    pub(crate) fn get(&self, id: u32, address: u64) -> Option<Facts> {
        let first = self.first(id, address);
        let set = self.slots.get(first..first + WAYS)?;
        set.iter().find(|s| s.address == address && s.id == id && s.facts.is_some()).and_then(|s| s.facts)
    }

    /// Adds an entry that [`Self::get`] did not find.
    pub(crate) fn insert(&mut self, id: u32, address: u64, facts: Facts) {
        let first = self.first(id, address);
        let set = &mut self.slots[first..first + WAYS];
        let way = set.iter().position(|s| s.facts.is_none()).unwrap_or_else(|| {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 17;
            self.random ^= self.random << 5;
            self.random as usize % WAYS
        });
        set[way] = CacheSlot { address, id, facts: Some(facts) };
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

    const TOP: Facts = Facts { known: Known::Top, begins: false, covers: true };

    #[test]
    fn facts_survive_and_any_bytes_are_facts_or_none() {
        let rule = Rule {
            cfa_offset: -70_000,
            cfa_register: 16,
            cfa_is_loaded: true,
            signal: true,
            return_address: -8,
            saved: std::array::from_fn(|i| [SAME, -16, 24, 1000, -32_767, SAME][i % 6]),
        };
        for known in [Known::Rule(rule), Known::Top, Known::NoFde, Known::Bad, Known::Evaluate] {
            for (begins, covers) in [(false, false), (true, false), (false, true), (true, true)] {
                let facts = Facts { known, begins, covers };
                assert_eq!(Facts::from_bytes(&facts.to_bytes()), Some(facts));
            }
        }
        let mut bytes = Facts { known: Known::Rule(rule), ..TOP }.to_bytes();
        bytes[2] = IP as u8 + 1;
        assert_eq!(Facts::from_bytes(&bytes), None, "no such register");
        bytes[0] = 5;
        assert_eq!(Facts::from_bytes(&bytes), None);
    }

    #[test]
    fn steps_survive() {
        let registers = Registers(std::array::from_fn(|i| u64::MAX - i as u64));
        let ends = (0..=u8::MAX).filter_map(UnwindEnd::of_number).map(Err);
        for caller in [Ok(Some(registers)), Ok(None)].into_iter().chain(ends) {
            for signal in [false, true] {
                let bytes = Stepped { caller, signal }.to_bytes();
                assert_eq!(Stepped::from_bytes(&bytes), Some(Stepped { caller, signal }));
                assert_eq!(Stepped::from_bytes(&bytes[1..]), None);
                assert_eq!(Stepped::from_bytes(&[&bytes[..], &[0]].concat()), None);
            }
        }
    }

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
            cache.insert(i % 3, u64::from(i), TOP);
            assert_eq!(cache.get(i % 3, u64::from(i)), Some(TOP));
        }
        assert_eq!(cache.slots.len(), 512);
        assert_eq!(cache.get(7, 1), None);
        cache.forget(0);
        assert!(cache.slots.iter().all(|s| s.facts.is_none() || s.id != 0));
        assert!(cache.slots.iter().any(|s| s.facts.is_some()));
    }

    #[test]
    fn any_size_works() {
        for rules in [0, 1, 3, 4, 5, 4096] {
            let mut cache = Cache::new(rules);
            cache.insert(1, 2, TOP);
            assert_eq!(cache.get(1, 2), Some(TOP));
        }
    }
}
