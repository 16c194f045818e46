//! Paths and other byte strings as small numbers, so that keys are cheap to compare.

use systape_events::group::value::Value;
use systape_events::values::spill::{Run, Store, Stored};
use systape_events::values::strings::NumberedStrings;

/// The least number of a known string.
const FIRST: u32 = 2;

/// The strings so far. Those that were put into a file have no number any more: met again they get another.
#[derive(Clone, Debug, Default)]
pub struct Names {
    strings: NumberedStrings,
    /// How many are in the file, by number.
    before: u32,
    runs: Vec<Run>,
}

/// What a name in the file has beside it.
#[derive(Clone, Copy, Debug)]
struct Nothing;

impl Stored for Nothing {
    fn put(&self, _out: &mut Vec<u8>) {}

    fn take(_from: &mut &[u8]) -> Option<Self> {
        Some(Self)
    }

    fn heap(&self) -> usize {
        0
    }
}

impl Names {
    /// The number of `name`.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        self.numbered(name).0
    }

    /// The number of `name`, and whether it was given now.
    pub fn numbered(&mut self, name: &[u8]) -> (u32, bool) {
        let (number, new) = self.strings.number(name);
        (FIRST + self.before + number, new)
    }

    /// The number of a key's value: of nothing that of the empty name, 0 if it is not known.
    pub fn of(&mut self, value: &Value) -> u32 {
        match value {
            Value::Text(name) => self.number(name),
            Value::None => self.number(b""),
            _ => 0,
        }
    }

    /// The name of `number`; None for `NO_FILE`, `UNKNOWN_FILE`, names in the file and numbers never given.
    pub fn name(&self, number: u32) -> Option<&[u8]> {
        self.strings.get(number.checked_sub(FIRST + self.before)?)
    }

    /// Names of `numbers` alone, which get other numbers.
    pub fn only<'n>(&self, numbers: impl IntoIterator<Item = &'n mut u32>) -> Self {
        let mut only = Self::default();
        for number in numbers {
            if let Some(name) = self.name(*number) {
                *number = only.number(name);
            }
        }
        only
    }

    /// Whether `number` is that of a name.
    pub fn is_name(number: u32) -> bool {
        number >= FIRST
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.strings.bytes()
    }

    /// Puts all into the file.
    pub fn spill(&mut self, store: &Store) {
        let mut writer = store.writer();
        self.strings.iter().for_each(|name| writer.put(name, &Nothing));
        self.runs.push(writer.finish());
        self.before += self.strings.len() as u32;
        self.strings.clear();
    }

    /// Names in the file, by number.
    pub fn in_file(&self) -> impl Iterator<Item = (u32, Vec<u8>)> {
        let names = self.runs.iter().flat_map(|run| {
            let mut cursor = run.cursor();
            std::iter::from_fn(move || cursor.next::<Nothing>()).map(|record| record.key)
        });
        (FIRST..).zip(names)
    }
}
