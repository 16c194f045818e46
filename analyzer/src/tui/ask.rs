//! Questions to the tape: each is a command line of `analyze`, asked in a thread of its own, of a tape that is opened for it. The answer is
//! the text that the program prints, or the rows of which that is made. What is kept of it is bounded.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use systape_answers::render::cell::{Cell, Known};
use systape_answers::render::out::{Out, TakesRows};
use systape_answers::render::row::Row;
use systape_answers::render::{mark, table};
use systape_answers::values::fit::LineRoom;
use systape_answers::values::open::open;
use systape_answers::values::output::cut_mark;
use systape_events::loss::damage_text;
use systape_events::values::timespec::time_word;
use systape_format::reader::{Misses, Tape};
use systape_format::table::{Short, Type};

use super::lanes::{self, Lanes};
use crate::asked::config::Config;
use crate::asked::config::view::AnswerFn;

/// Makes a command line of its words, for the tape of that path; text, or rows.
pub(crate) type MakeConfig = fn(&[String], &Path, bool) -> Result<Config>;

/// Most lines of text that are kept of one answer.
const MOST_LINES: usize = 20_000;
/// The first fields of a call.
const FIRST: [&str; 9] = ["time", "ts_ns", "dur_ns", "comm", "pid", "tid", "syscall", "ret", "errno"];
/// Most rows of a table.
const MOST_ROWS: usize = 20_000;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inquiry {
    /// The text of an answer, in lines of so many cells.
    Text { words: Vec<String>, cells: usize },
    /// The rows of an answer, by these columns.
    Rows { words: Vec<String>, columns: &'static [&'static str] },
    /// Lines of the listing with their times: `most`, without those before `from` and the first `skip` at that time.
    Calls { words: Vec<String>, from: Option<u64>, skip: usize, most: usize },
    /// The call in the listing of `words`, which is of one instant, at the place `at`.
    Call { words: Vec<String>, at: usize, cells: usize },
    /// What threads did between two times, in so many columns.
    Lanes { words: Vec<String>, columns: usize },
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) enum InquiryAnswer {
    Text(Vec<String>),
    Rows { rows: Vec<Vec<String>>, notes: Vec<String> },
    Calls { lines: Vec<CallLine>, more: bool, notes: Vec<String> },
    Lanes(Lanes),
}

/// A line of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallLine {
    /// ns of CLOCK_MONOTONIC.
    pub time: u64,
    pub text: String,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct TapeAsker {
    pub file: PathBuf,
    pub config: MakeConfig,
}

/// A question that is being answered.
#[derive(Debug)]
pub(super) struct RunningInquiry {
    pub number: u64,
    misses: Arc<Misses>,
    thread: JoinHandle<()>,
}

impl RunningInquiry {
    /// Gives it up: what it reads from now on fails.
    pub(super) fn give_up(&self) {
        self.misses.give_up();
    }

    /// Whether it has an answer, or will have none.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

impl TapeAsker {
    /// Answers in a thread; the answer is sent with `number`.
    pub(super) fn begin(
        &self,
        number: u64,
        inquiry: Inquiry,
        reply: Sender<(u64, Result<InquiryAnswer>)>,
    ) -> Result<RunningInquiry> {
        let tape = open(&self.file)?;
        let misses = Arc::clone(tape.misses());
        let asker = self.clone();
        let work = move || {
            let answer = asker.answer(&tape, inquiry);
            // nobody waits for it any more
            let _ = reply.send((number, answer));
        };
        let thread = thread::Builder::new().name("question".to_owned()).spawn(work).context("no thread can be made")?;
        Ok(RunningInquiry { number, misses, thread })
    }

    /// The answer to `inquiry`.
    pub(super) fn answer(&self, tape: &Tape, inquiry: Inquiry) -> Result<InquiryAnswer> {
        match inquiry {
            Inquiry::Text { words, cells } => Ok(InquiryAnswer::Text(self.text(&words, cells, tape)?)),
            Inquiry::Rows { words, columns } => {
                let mut taken = TakenRows { columns, rows: Vec::new(), notes: Vec::new() };
                self.ask(&words, tape, &mut taken, false)?;
                taken.notes.extend(damage(tape));
                Ok(InquiryAnswer::Rows { rows: taken.rows, notes: taken.notes })
            }
            Inquiry::Calls { words, from, skip, most } => {
                let mut taken = TakenLines::default();
                self.ask(&words, tape, &mut taken, true)?;
                let mut lines = taken.lines;
                lines.retain(|line| from.is_none_or(|from| line.time >= from));
                lines.drain(..skip.min(lines.len()));
                let more = lines.len() > most;
                lines.truncate(most);
                taken.notes.extend(damage(tape));
                Ok(InquiryAnswer::Calls { lines, more, notes: taken.notes })
            }
            Inquiry::Call { words, at, cells } => Ok(InquiryAnswer::Text(self.call(&words, at, cells, tape)?)),
            Inquiry::Lanes { words, columns } => {
                let config = (self.config)(&words, &self.file, true)?;
                Ok(InquiryAnswer::Lanes(lanes::lanes(&config, tape, columns)?))
            }
        }
    }

    fn ask(&self, words: &[String], tape: &Tape, rows: &mut dyn TakesRows, text: bool) -> Result<()> {
        let config = (self.config)(words, &self.file, text)?;
        let mut out = if text { Out::lines_to(rows) } else { Out::values(rows) };
        let answered = match config.view.run {
            AnswerFn::Prints(run) => run(&config, tape, &mut out),
            AnswerFn::Writes { run, .. } => run(&config, tape, None, &mut out),
            _ => bail!("'analyze {}' is no answer for a screen", words.join(" ")),
        };
        match answered {
            // as many lines as are kept
            Err(error) if systape_answers::values::output::is_closed_pipe(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// The lines that the program prints, each made to fit.
    fn text(&self, words: &[String], cells: usize, tape: &Tape) -> Result<Vec<String>> {
        let mut taken = TakenText { cells, bytes: Vec::new(), lines: Vec::new(), notes: Vec::new() };
        self.ask(words, tape, &mut taken, true)?;
        let TakenText { mut lines, notes, .. } = taken;
        for note in notes.into_iter().chain(damage(tape)) {
            fit(&note, cells, &mut lines);
        }
        Ok(lines)
    }

    /// A call: its line, its values one a line, its stack, and what its thread waited for.
    fn call(&self, words: &[String], at: usize, cells: usize, tape: &Tape) -> Result<Vec<String>> {
        let mut json = TakenText { cells: 0, bytes: Vec::new(), lines: Vec::new(), notes: Vec::new() };
        self.ask(words, tape, &mut json, false)?;
        let row = json.lines.get(at).and_then(|line| serde_json::from_str::<Value>(line).ok());
        let Some(Value::Object(row)) = row else { bail!("this line is no call: it says what is missing here") };
        let mut text = TakenLines::default();
        self.ask(words, tape, &mut text, true)?;
        let mut lines = Vec::new();
        if let Some(line) = text.lines.get(at) {
            fit(line.text.trim_start(), cells, &mut lines);
            lines.push(String::new());
        }
        let last = |name: &String| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len());
        let mut fields: Vec<(&String, &Value)> = row.iter().collect();
        fields.sort_by_key(|(name, _)| last(name));
        for (name, value) in fields {
            match value {
                Value::Object(parts) if name == "args" => {
                    lines.push("arguments".to_owned());
                    for (name, value) in parts {
                        fit(&format!("  {name:<14} \u{1}{}", text_of(value)), cells, &mut lines);
                    }
                }
                Value::Null => lines.push(format!("{name:<16} -")),
                value => fit(&format!("{name:<16} \u{1}{}", text_of(value)), cells, &mut lines),
            }
        }
        let number = |name: &str| row.get(name).and_then(Value::as_i64);
        let (Some(tid), Some(ts)) = (number("tid"), number("ts_ns")) else { return Ok(lines) };
        let end = ts.saturating_add(number("dur_ns").unwrap_or(0)).max(ts + 1);
        let around = format!("--time={},{}", time_word(ts), time_word(end));
        for (title, typed) in [
            ("its stack", format!("trace {around} --call-graph -t {tid} --max-events 1")),
            ("what its thread waited for", format!("path --sums -t {tid} {around}")),
        ] {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            fit(&format!("\n{title}: analyze {}", typed.join(" ")), cells, &mut lines);
            match self.text(&typed, cells, tape) {
                Ok(text) => lines.extend(text.into_iter().map(|line| format!("  {line}"))),
                Err(why) => fit(&format!("  {why:#}"), cells, &mut lines),
            }
        }
        Ok(lines)
    }
}

/// Text of a value of JSON for a line: what acts on a terminal is escaped.
fn text_of(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    systape_abi::plain(&text).into_owned()
}

fn damage(tape: &Tape) -> Vec<String> {
    tape.misses().all().iter().map(damage_text).collect()
}

/// Adds `line` to `lines`, broken to `cells`; 0: as it is.
pub(super) fn fit(line: &str, cells: usize, lines: &mut Vec<String>) {
    if let Some(line) = line.strip_prefix('\n') {
        lines.push(String::new());
        return fit(line, cells, lines);
    }
    if cells == 0 {
        lines.push(line.to_owned());
        return;
    }
    let mut text = String::new();
    LineRoom { cells, mark: cut_mark(), dim: ("", "") }.fit(line, &mut text);
    lines.extend(text.lines().map(|line| systape_abi::plain(line).into_owned()));
}

/// Keeps lines of text.
struct TakenText {
    cells: usize,
    /// The line that has not ended yet.
    bytes: Vec<u8>,
    lines: Vec<String>,
    notes: Vec<String>,
}

impl TakesRows for TakenText {
    fn row(&mut self, _row: Row<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn lines(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.bytes.extend_from_slice(part);
            if let Some(line) = self.bytes.strip_suffix(b"\n") {
                fit(&String::from_utf8_lossy(line), self.cells, &mut self.lines);
                self.bytes.clear();
            }
        }
        if self.lines.len() > MOST_LINES {
            self.notes.push(format!("only the first {MOST_LINES} lines are shown: the command below prints all"));
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// Keeps lines of the listing with their times.
#[derive(Default)]
struct TakenLines {
    lines: Vec<CallLine>,
    notes: Vec<String>,
}

impl TakesRows for TakenLines {
    fn row(&mut self, _row: Row<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn lines(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.notes.extend(String::from_utf8_lossy(bytes).lines().map(|line| systape_abi::plain(line).into_owned()));
        Ok(())
    }

    fn timed(&mut self, bytes: &[u8], marks: &[(u64, usize)], from: usize) -> io::Result<()> {
        let mut begin = 0;
        for (time, end) in marks {
            let end = end - from;
            let line = String::from_utf8_lossy(&bytes[begin..end]);
            self.lines
                .push(CallLine { time: *time, text: systape_abi::plain(line.trim_end_matches('\n')).into_owned() });
            begin = end;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// Keeps columns of rows as texts, as tables of text have them.
struct TakenRows {
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl TakesRows for TakenRows {
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let table = row.table();
        let defs = table.columns.clone();
        let cells: Vec<(Cell<'static>, Known)> = row.into_cells().collect();
        let text = |name: &&str| {
            let at = defs.iter().position(|column| column.full_name() == *name)?;
            Some(text_of_cell(&cells[at].0, defs[at].ty, bound(cells[at].1, defs[at].short)))
        };
        let texts: Option<Vec<String>> = self.columns.iter().map(text).collect();
        // rows of another table are losses, which are said too
        self.rows.extend(texts);
        if self.rows.len() < MOST_ROWS {
            return ControlFlow::Continue(());
        }
        self.notes.push(format!("only the first {MOST_ROWS} rows are shown"));
        ControlFlow::Break(())
    }

    fn note(&mut self, text: &str) {
        self.notes.push(systape_abi::plain(text).into_owned());
    }
}

/// The mark before a value.
fn bound(known: Known, short: Short) -> &'static str {
    match (known, short) {
        (Known::Short, Short::AtLeast) => mark::AT_LEAST,
        (Known::Short, Short::AtMost) => mark::AT_MOST,
        (Known::Short, Short::OfKnown) => mark::ABOUT,
        _ => "",
    }
}

/// A value as a table of text has it; "-": it is not known, or there is none.
fn text_of_cell(cell: &Cell<'_>, ty: Type, mark: &str) -> String {
    match (cell, ty) {
        (Cell::Int(ns), Type::Duration) => table::millis(u64::try_from(*ns).unwrap_or(0), mark),
        (Cell::Int(number), _) => format!("{mark}{number}"),
        (Cell::Real(number), _) => format!("{mark}{number:.1}"),
        (Cell::Text(text), _) => systape_events::values::words::escaped(text),
        (Cell::Flag(flag), _) => if *flag { "yes" } else { "no" }.to_owned(),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_marks_of_tables() {
        let text = |cell: Cell<'_>, ty, known, short| text_of_cell(&cell, ty, bound(known, short));
        assert_eq!(text(1_500_000_u64.into(), Type::Duration, Known::Short, Short::AtLeast), ">=1.500");
        assert_eq!(text(7_u64.into(), Type::Count, Known::Short, Short::AtLeast), ">=7");
        assert_eq!(text(7_u64.into(), Type::Count, Known::Exact, Short::AtLeast), "7");
        assert_eq!(text(12.34.into(), Type::Real, Known::Short, Short::OfKnown), "~12.3");
        assert_eq!(text(Cell::Null, Type::Count, Known::Unknown, Short::AtLeast), "-");
        assert_eq!(text(b"a\x1b[2J"[..].into(), Type::Str, Known::Exact, Short::Never), "a\\x1b[2J");
    }

    #[test]
    fn lines_fit_and_act_on_no_terminal() {
        let mut lines = Vec::new();
        fit("a b \u{1}c d e", 6, &mut lines);
        assert!(lines.iter().all(|line| line.len() <= 6), "{lines:?}");
        fit("\nx\u{1b}[2Jy", 80, &mut lines);
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:?}");
    }
}
