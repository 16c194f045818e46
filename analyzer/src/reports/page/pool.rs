//! Texts that many rows have: kept once, and numbered.

use rustc_hash::FxHashMap;

use super::text::visible;

/// Texts, each once.
#[derive(Debug, Default)]
pub(super) struct Pool {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Pool {
    /// The number of `text`.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let text = visible(text);
        if let Some(number) = self.numbers.get(&text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    /// All of them, by number.
    pub(super) fn texts(self) -> Vec<String> {
        self.texts
    }
}
