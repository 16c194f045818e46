//! Answers of other views: their rows, and what they say beside them.

use std::cell::Cell;

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::asked::config::Config;
use crate::asked::config::view::Ask;
use crate::values::say::Verdict;

/// A row of JSON.
pub(super) type Row = Map<String, Value>;

/// What a view answered.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Its command line, without `analyze` and the tape.
    pub command: String,
    /// Its first rows.
    pub rows: Vec<Row>,
    /// How many more there are.
    pub more: u64,
    /// What it said beside them: losses, and what the answer does not hold.
    pub told: Vec<String>,
    /// Why there is no answer: events that were not recorded.
    pub none: Option<String>,
}

/// Asks views about the part of the tape that the page is about.
pub(super) struct Asker<'a> {
    ask: Ask<'a>,
    time: Option<String>,
    verdict: Cell<Verdict>,
}

impl<'a> Asker<'a> {
    /// By `ask`, with the filters of `config`.
    pub(super) fn new(ask: Ask<'a>, config: &Config) -> Self {
        Self { ask, time: config.time_word(), verdict: Cell::default() }
    }

    /// The first `most` rows of `words` (`top --by comm`).
    pub(super) fn rows(&self, words: &str, most: usize) -> Answer {
        let mut answer = Answer::default();
        let mut rows = Vec::new();
        let mut more = 0;
        let each = &mut |row: Row| {
            if rows.len() < most { rows.push(row) } else { more += 1 }
        };
        (answer.command, answer.told, answer.none) = self.each(words, each);
        Answer { rows, more, ..answer }
    }

    /// Passes every row of `words` to `each`; the command line, what was said, and why there is no answer.
    pub(super) fn each(&self, words: &str, each: &mut dyn FnMut(Row)) -> (String, Vec<String>, Option<String>) {
        self.each_in(words, None, each)
    }

    /// The same of those in `time`, if that is given, as `--time` has it.
    pub(super) fn each_in(
        &self,
        words: &str,
        time: Option<&str>,
        each: &mut dyn FnMut(Row),
    ) -> (String, Vec<String>, Option<String>) {
        let mut typed: Vec<String> = words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        // facts of the tape as a whole have no time
        if let Some(time) = time.or(self.time.as_deref()).filter(|_| words != "info") {
            typed.extend(["--time".to_owned(), time.to_owned()]);
        }
        let asked = (self.ask)(&typed, &mut |line| {
            let row = serde_json::from_slice(line).context("a report's row")?;
            each(row);
            Ok(())
        });
        let command = typed.join(" ");
        match asked {
            Ok(answered) => {
                self.verdict.set(self.verdict.get().and(answered.verdict));
                (command, answered.told, None)
            }
            Err(error) => (command, Vec::new(), Some(format!("{error:#}"))),
        }
    }

    /// That of all answers so far.
    pub(super) fn verdict(&self) -> Verdict {
        self.verdict.get()
    }
}

/// A text among the columns of a row; a name that is not UTF-8 as its text. None: null, or no text.
pub(super) fn word(row: &Row, name: &str) -> Option<String> {
    text_of(row.get(name)?)
}

/// The same of a value.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => object.get("text")?.as_str().map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A number among the columns of a row, also one that is written as a string; None: null, or none.
pub(super) fn number(row: &Row, name: &str) -> Option<f64> {
    match row.get(name)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// ns among the columns of a row; None: null, or negative.
pub(super) fn ns(row: &Row, name: &str) -> Option<u64> {
    row.get(name)?.as_u64()
}
