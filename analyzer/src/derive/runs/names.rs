//! Paths and other byte strings as small numbers, so that keys are cheap to compare.

use crate::table::group::value::Value;
use crate::values::strings::Strings;

/// The least number of a known string.
const FIRST: u32 = 2;

/// The strings so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Strings);

impl Names {
    /// The number of `name`.
    pub(crate) fn number(&mut self, name: &[u8]) -> u32 {
        self.numbered(name).0
    }

    /// The number of `name`, and whether it was given now.
    pub(crate) fn numbered(&mut self, name: &[u8]) -> (u32, bool) {
        let (number, new) = self.0.number(name);
        (FIRST + number, new)
    }

    /// The number of a key's value: of nothing that of the empty name, 0 if it is not known.
    pub(crate) fn of(&mut self, value: &Value) -> u32 {
        match value {
            Value::Text(name) => self.number(name),
            Value::None => self.number(b""),
            _ => 0,
        }
    }

    /// The name of `number`; None for `NO_FILE`, `UNKNOWN_FILE` and numbers never given.
    pub(crate) fn name(&self, number: u32) -> Option<&[u8]> {
        self.0.get(number.checked_sub(FIRST)?)
    }
}
