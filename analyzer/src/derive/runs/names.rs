//! Paths and other byte strings as small numbers, so that keys are cheap to compare.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::table::group::value::Value;

/// The least number of a known string.
const FIRST: usize = 2;

/// The strings so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: FxHashMap<Arc<[u8]>, u32>,
    names: Vec<Arc<[u8]>>,
}

impl Names {
    /// The number of `name`.
    pub(crate) fn number(&mut self, name: &[u8]) -> u32 {
        self.numbered(name).0
    }

    /// The number of `name`, and whether it was given now.
    pub(crate) fn numbered(&mut self, name: &[u8]) -> (u32, bool) {
        if let Some(number) = self.numbers.get(name) {
            return (*number, false);
        }
        let number = (FIRST + self.names.len()) as u32;
        let name: Arc<[u8]> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        (number, true)
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
        self.names.get((number as usize).checked_sub(FIRST)?).map(|name| &**name)
    }
}
