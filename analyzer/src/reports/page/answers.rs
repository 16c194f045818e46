//! Answers of other views: their rows, and what they say beside them.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use systape_format::table::{ColumnDef, Short, TableDef};

use crate::asked::config::Config;
use crate::asked::config::view::Ask;
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::cell::{Cell, Known};
use systape_answers::render::json::lossless;
use systape_answers::render::out::TakesRows;
use systape_answers::render::{mark, row};
use systape_answers::values::say::Verdict;

/// Most notes that are kept of one answer.
const MOST_TOLD: usize = 64;

/// A row of an answer, kept.
#[derive(Clone, Debug)]
pub(super) struct Row {
    columns: Arc<AnswerColumns>,
    cells: Vec<(Cell<'static>, Known)>,
}

/// The columns of the rows of one table.
#[derive(Debug, Default)]
struct AnswerColumns {
    table: String,
    /// Full name of each, and its declaration.
    names: Vec<(String, ColumnDef)>,
}

/// What a view answered.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Command line, without `analyze` and the tape.
    pub command: String,
    /// First rows of the answer.
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
    verdict: Mutex<Verdict>,
}

impl<'a> Asker<'a> {
    /// Asks by `ask`, with the filters of `config`.
    pub(super) fn new(ask: Ask<'a>, config: &Config) -> Self {
        Self { ask, time: config.time_word(), verdict: Mutex::default() }
    }

    /// The first `most` rows of `words` (`top --by comm`).
    pub(super) fn rows(&self, words: &str, most: usize) -> Answer {
        let mut answer = Answer::default();
        let (mut rows, mut more) = (Vec::new(), 0);
        let each = &mut |row: Row| {
            if rows.len() < most { rows.push(row) } else { more += 1 }
        };
        (answer.command, answer.told, answer.none) = self.each(words, each);
        Answer { rows, more, ..answer }
    }

    /// Passes every row of `words` to `each`; the command line, what was said, and why there is no answer.
    pub(super) fn each(
        &self,
        words: &str,
        each: &mut (dyn FnMut(Row) + Send),
    ) -> (String, Vec<String>, Option<String>) {
        self.each_in(words, None, each)
    }

    /// Asks for the rows in `time`, if that is given, as `--time` has it.
    pub(super) fn each_in(
        &self,
        words: &str,
        time: Option<&str>,
        each: &mut (dyn FnMut(Row) + Send),
    ) -> (String, Vec<String>, Option<String>) {
        let typed = self.typed(words, time);
        let mut keeper = Keeper { each, columns: Arc::default(), told: Vec::new() };
        let asked = (self.ask)(&typed, &mut keeper);
        let command = typed.join(" ");
        match asked {
            Ok(verdict) => {
                self.add(verdict);
                (command, keeper.told, None)
            }
            Err(error) => (command, Vec::new(), Some(format!("{error:#}"))),
        }
    }

    /// The words of a command line, with the `time` that is asked for, or that of the page.
    pub(super) fn typed(&self, words: &str, time: Option<&str>) -> Vec<String> {
        let mut typed: Vec<String> = words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        // facts of the tape as a whole have no time
        if let Some(time) = time.or(self.time.as_deref()).filter(|_| words != "info") {
            typed.extend(["--time".to_owned(), time.to_owned()]);
        }
        typed
    }

    /// `doubts`: a loss may change what is shown.
    pub(super) fn doubt(&self, doubts: bool) {
        self.add(Verdict::default().doubted(doubts));
    }

    fn add(&self, verdict: Verdict) {
        let mut all = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        *all = all.and(verdict);
    }

    /// Verdict of all answers so far.
    pub(super) fn verdict(&self) -> Verdict {
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes rows that stay.
struct Keeper<'a> {
    each: &'a mut (dyn FnMut(Row) + Send),
    /// Those of the row before.
    columns: Arc<AnswerColumns>,
    /// The first [`MOST_TOLD`] notes.
    told: Vec<String>,
}

impl TakesRows for Keeper<'_> {
    fn row(&mut self, row: row::Row<'_>) -> ControlFlow<()> {
        let table = row.table();
        // losses have a place of their own
        if table.name != LOSSES.name {
            if self.columns.table != table.name {
                self.columns = Arc::new(AnswerColumns::of(table));
            }
            (self.each)(Row { columns: Arc::clone(&self.columns), cells: row.into_cells().collect() });
        }
        ControlFlow::Continue(())
    }

    fn note(&mut self, text: &str) {
        if self.told.len() < MOST_TOLD {
            self.told.push(text.to_owned());
        }
    }
}

impl AnswerColumns {
    fn of(table: &TableDef) -> Self {
        let names = table.columns.iter().map(|column| (column.full_name(), column.clone()));
        Self { table: table.name.to_string(), names: names.collect() }
    }
}

impl Row {
    fn place(&self, name: &str) -> Option<usize> {
        self.columns.names.iter().position(|(known, _)| known == name)
    }

    /// The value of the column with that full name; null if there is none.
    pub(super) fn cell(&self, name: &str) -> &Cell<'static> {
        self.place(name).map_or(&Cell::Null, |at| &self.cells[at].0)
    }

    /// A text, a word or a number as text; a name that is not UTF-8 as its text. None: null, or none of these.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        match self.cell(name) {
            Cell::Text(text) => Some(lossless(text).into_owned()),
            Cell::Int(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A number; None: null, or none.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.cell(name) {
            Cell::Int(number) => Some(*number as f64),
            Cell::Real(number) => Some(*number),
            _ => None,
        }
    }

    /// ns, or another whole number; None: null, or negative.
    pub(super) fn ns(&self, name: &str) -> Option<u64> {
        match self.cell(name) {
            Cell::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Whether a flag is set.
    pub(super) fn is(&self, name: &str) -> bool {
        *self.cell(name) == Cell::Flag(true)
    }

    /// An array or an object; null if there is none.
    pub(super) fn nested(&self, name: &str) -> &Value {
        match self.cell(name) {
            Cell::Nested(value) | Cell::Spelled(value, _) => value,
            _ => &Value::Null,
        }
    }

    /// A number for the data of a chart, or null.
    pub(super) fn json(&self, name: &str) -> Value {
        match self.cell(name) {
            Cell::Int(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => Value::Null,
            },
            Cell::Real(number) => Value::from(*number),
            Cell::Flag(flag) => Value::from(*flag),
            _ => Value::Null,
        }
    }

    /// The mark of the value in the column `name`; "": it is exact.
    pub(super) fn bound(&self, name: &str) -> &'static str {
        match self.place(name).map(|at| (self.cells[at].1, self.columns.names[at].1.short)) {
            Some((Known::Short, Short::AtLeast)) => mark::AT_LEAST,
            Some((Known::Short, Short::AtMost)) => mark::AT_MOST,
            Some((Known::Short, Short::OfKnown)) => mark::ABOUT,
            _ => "",
        }
    }

    /// Whether the object `group` is not null.
    pub(super) fn has(&self, group: &str) -> bool {
        let mut cells = self.columns.names.iter().zip(&self.cells);
        cells.any(|((_, column), (cell, _))| column.group == group && *cell != Cell::Absent)
    }
}

/// A text of JSON; a name that is not UTF-8 as its text. None: it is no text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => object.get("text")?.as_str().map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
impl Row {
    /// The only kind that tests need: `row` as it would be kept.
    pub(super) fn of(row: row::Row<'_>) -> Self {
        Self { columns: Arc::new(AnswerColumns::of(row.table())), cells: row.into_cells().collect() }
    }
}
