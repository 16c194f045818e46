//! The rows of an answer that fit what a model is given, how many more there are, and what is lost.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Map, Value};
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::cell::{Cell, Known};
use systape_answers::render::form::Form;
use systape_answers::render::json::printable;
use systape_answers::render::label::TapeLabel;
use systape_answers::render::out::TakesRows;
use systape_answers::render::row::Row;
use systape_answers::render::sink::Sink;

/// Most rows of an answer.
pub(super) const MOST_ROWS: usize = 200;
/// Most bytes of an answer.
pub(super) const MOST_BYTES: usize = 16 << 10;
/// Rows behind those of an answer that are counted: to make more of them to no other end would take long.
pub(super) const COUNTED: u64 = 10_000;
/// Most losses of an answer, and most notes.
const MOST_TOLD: usize = 16;
/// Most bytes of one of them, and of all of a kind.
const LONGEST_TOLD: usize = 600;
const ROOM_TOLD: usize = 3 << 10;
/// Most bytes of a row: one that is longer is shortened, or left out.
const LONGEST_ROW: usize = MOST_BYTES / 4 * 3;
/// Most bytes of a line that has not ended yet.
const LONGEST_LINE: usize = 1 << 20;
/// Elements of a list in a row that is shortened, and bytes of a text.
const SHORT_LIST: usize = 8;
const SHORT_TEXT: usize = 256;

/// An answer while it is made.
#[derive(Debug)]
pub(super) struct GatheredAnswer {
    limit: usize,
    /// Rows as JSON.
    rows: Vec<String>,
    bytes: usize,
    /// Rows that are left out.
    more: u64,
    /// How many of them are too long.
    too_long: u64,
    /// A row had no place: all behind it are left out.
    closed: bool,
    /// Rows are not counted any further.
    uncounted: bool,
    losses: FirstTexts,
    notes: FirstTexts,
    /// The line that has not ended.
    line: Vec<u8>,
    /// That line is too long to be kept.
    skips: bool,
    cancelled: Arc<AtomicBool>,
}

/// The first of some texts, and how many more there are.
#[derive(Debug, Default)]
struct FirstTexts {
    kept: Vec<String>,
    bytes: usize,
    more: u64,
}

impl FirstTexts {
    fn add(&mut self, text: String) {
        if self.kept.len() < MOST_TOLD && text.len() <= LONGEST_TOLD && self.bytes + text.len() <= ROOM_TOLD {
            self.bytes += text.len();
            self.kept.push(text);
        } else {
            self.more += 1;
        }
    }
}

/// What stands around the rows of an answer.
#[derive(Debug, Default)]
pub(super) struct AnswerFrame {
    /// Name of the tape; None: it is about no single one.
    pub tape: Option<String>,
    /// Command line of the same question; None: none can be typed.
    pub command: Option<String>,
    /// Whether nothing is lost that could change it; None: that is not known.
    pub complete: Option<bool>,
    /// What makes the answer smaller, in words.
    pub narrow: String,
}

impl GatheredAnswer {
    /// One of at most `limit` rows; it takes no more of them once it is `cancelled`.
    pub(super) fn new(limit: usize, cancelled: Arc<AtomicBool>) -> Self {
        Self {
            limit: limit.min(MOST_ROWS),
            rows: Vec::new(),
            bytes: 0,
            more: 0,
            too_long: 0,
            closed: false,
            uncounted: false,
            losses: FirstTexts::default(),
            notes: FirstTexts::default(),
            line: Vec::new(),
            skips: false,
            cancelled,
        }
    }

    /// Takes `more` rows that are made elsewhere; `uncounted`: there are others.
    pub(super) fn leave_out(&mut self, more: u64, uncounted: bool) {
        self.more = self.more.saturating_add(more);
        self.uncounted |= uncounted;
    }

    /// Takes a row as JSON; None: one that is too long to be kept. Behind the first that has no place there are no others, so that what
    /// is left out is the end, and rows that are too long.
    pub(super) fn json(&mut self, row: Option<&[u8]>) -> ControlFlow<()> {
        self.closed |= self.rows.len() >= self.limit;
        let row = row.filter(|row| row.len() <= LONGEST_ROW).and_then(|row| std::str::from_utf8(row).ok());
        match row {
            Some(row) if !self.closed && self.bytes + row.len() < MOST_BYTES => {
                self.bytes += row.len() + 1;
                self.rows.push(row.to_owned());
            }
            row => {
                self.too_long += u64::from(row.is_none());
                self.closed |= row.is_some();
                self.more = self.more.saturating_add(1);
            }
        }
        if self.more >= COUNTED || self.cancelled.load(Relaxed) {
            self.uncounted = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Takes a line of a listing.
    fn listed(&mut self, line: Option<&[u8]>) -> ControlFlow<()> {
        // a loss stands where it happened; its first member tells it from calls and events
        let first = format!("{{\"{}\":", LOSSES.columns[0].name);
        match line {
            Some(line) if line.starts_with(first.as_bytes()) => {
                self.losses.add(String::from_utf8_lossy(line).into_owned());
                ControlFlow::Continue(())
            }
            line => self.json(line),
        }
    }

    /// The answer as JSON, of at most [`MOST_BYTES`] bytes.
    pub(super) fn finish(mut self, frame: &AnswerFrame) -> String {
        loop {
            let text = self.text(frame);
            if text.len() <= MOST_BYTES || self.rows.pop().is_none() {
                return text;
            }
            self.more = self.more.saturating_add(1);
        }
    }

    fn text(&self, frame: &AnswerFrame) -> String {
        let mut members = Vec::new();
        let mut put = |name: &str, json: String| members.push(format!("\"{name}\":{json}"));
        let word = |text: &String| printable(&Value::from(text.as_str()));
        frame.tape.iter().for_each(|tape| put("tape", word(tape)));
        frame.command.iter().for_each(|command| put("command", word(command)));
        put("complete", printable(&frame.complete.into()));
        put("rows", format!("[{}]", self.rows.join(",")));
        put("more", self.more.to_string());
        if self.uncounted {
            put("more_at_least", "true".to_owned());
        }
        if self.more > 0 {
            let least = if self.uncounted { "at least " } else { "" };
            let rows = if self.more == 1 { "row" } else { "rows" };
            put("narrow_by", word(&format!("{least}{} more {rows}: {}", self.more, frame.narrow)));
        }
        if self.too_long > 0 {
            put("too_long", self.too_long.to_string());
        }
        put("losses", format!("[{}]", self.losses.kept.join(",")));
        if self.losses.more > 0 {
            put("more_losses", self.losses.more.to_string());
        }
        let notes: Vec<String> = self.notes.kept.iter().map(word).collect();
        put("notes", format!("[{}]", notes.join(",")));
        if self.notes.more > 0 {
            put("more_notes", self.notes.more.to_string());
        }
        format!("{{{}}}", members.join(","))
    }
}

impl TakesRows for GatheredAnswer {
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let table = row.table();
        let of_losses = table.name == LOSSES.name;
        if !of_losses && (self.closed || self.rows.len() >= self.limit) {
            // it need not be made
            return self.json(Some(b"{}"));
        }
        let mut json = json_of(&row);
        if of_losses {
            self.losses.add(String::from_utf8_lossy(&json).into_owned());
            return ControlFlow::Continue(());
        }
        if json.len() > LONGEST_ROW {
            let (short, columns) = shortened(&row);
            json = json_of(&short);
            self.note(&format!("a row is shortened, of columns {} the beginning is shown", columns.join(", ")));
        }
        self.json(Some(&json))
    }

    fn lines(&mut self, json: &[u8]) -> io::Result<()> {
        for part in json.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > LONGEST_LINE {
                self.skips = true;
            }
            if !self.skips {
                self.line.extend_from_slice(part);
            }
            if part.last() != Some(&b'\n') {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let skips = std::mem::take(&mut self.skips);
            let _ = self.listed((!skips).then(|| line.trim_ascii_end()));
        }
        if self.cancelled.load(Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        let mark = if text.len() > LONGEST_TOLD { " ..." } else { "" };
        self.notes.add(format!("{}{mark}", begin_of(text, LONGEST_TOLD - mark.len())));
    }
}

fn json_of(row: &Row<'_>) -> Vec<u8> {
    let mut json = Vec::new();
    Sink::new(Form::Json, row.table(), &TapeLabel::default()).row(&mut json, row);
    json.truncate(json.trim_ascii_end().len());
    json
}

/// The first `most` bytes of `text`, or less.
fn begin_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// `row` with the beginnings of its lists and texts, and the columns of which more is known.
fn shortened<'r>(row: &'r Row<'_>) -> (Row<'r>, Vec<String>) {
    let (mut short, mut columns) = (Row::new(row.table()), Vec::new());
    for (column, cell, known) in row.cells() {
        let name = column.full_name();
        let begin = begin_of_cell(cell);
        if begin.is_some() {
            columns.push(name.clone());
        }
        let cell = begin.unwrap_or_else(|| cell.clone());
        match column.short.suffix() {
            Some(_) => short.bound(&name, cell, known == Known::Short),
            None => short.set(&name, cell),
        };
    }
    (short, columns)
}

/// The beginning of a long list or text; None: it is neither.
fn begin_of_cell(cell: &Cell<'_>) -> Option<Cell<'static>> {
    match cell {
        Cell::Text(text) if text.len() > SHORT_TEXT => Some(text[..SHORT_TEXT].to_vec().into()),
        Cell::Nested(_) | Cell::Spelled(..) | Cell::Written(_) => match cell.nested()?.into_owned() {
            Value::Array(mut list) if list.len() > SHORT_LIST => {
                list.truncate(SHORT_LIST);
                Some(Cell::Nested(list.into()))
            }
            Value::Object(object) if object.len() > SHORT_LIST => {
                Some(Cell::Nested(object.into_iter().take(SHORT_LIST).collect::<Map<_, _>>().into()))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    systape_format::tables! {
        /// One row a file.
        FILES = "files" {
            file: Str "its path"
            opens ? AtLeast: Count "how often"
        }
    }

    fn gathered(limit: usize) -> GatheredAnswer {
        GatheredAnswer::new(limit, Arc::default())
    }

    fn answer(gathered: GatheredAnswer) -> Value {
        let text = gathered.finish(&AnswerFrame { narrow: "narrow by time".into(), ..AnswerFrame::default() });
        assert!(text.len() <= MOST_BYTES, "{}", text.len());
        serde_json::from_str(&text).unwrap()
    }

    fn row(name: &[u8]) -> Row<'_> {
        let mut row = Row::new(&FILES);
        row.set("file", name).bound("opens", 3, true);
        row
    }

    #[test]
    fn rows_are_what_json_has_and_the_rest_is_counted() {
        let mut two = gathered(2);
        for name in [&b"a\x1b"[..], b"b\xff", b"c", b"d"] {
            assert!(two.row(row(name)).is_continue());
        }
        two.note("something is lost");
        let answer = answer(two);
        assert_eq!(answer["rows"][0], serde_json::json!({"file": "a\x1b", "opens": 3, "opens_at_least": true}));
        assert_eq!(answer["rows"][1]["file"]["hex"], "62ff");
        assert_eq!((&answer["more"], &answer["notes"][0]), (&2.into(), &"something is lost".into()));
        assert_eq!(answer["narrow_by"], "2 more rows: narrow by time");
        assert_eq!(answer.get("more_at_least"), None);
    }

    #[test]
    fn an_answer_is_small_however_much_comes() {
        let mut all = gathered(usize::MAX);
        for _ in 0..300 {
            let _ = all.row(row(&[b'x'; 200]));
            all.note(&"é".repeat(5000));
            all.lines(format!("{{\"lost\":\"{}\"}}\n", "y".repeat(100)).as_bytes()).unwrap();
        }
        let all = answer(all);
        let rows = all["rows"].as_array().unwrap().len();
        assert!(rows > 20 && rows as u64 + all["more"].as_u64().unwrap() == 300, "{rows}");
        assert_eq!(all["losses"].as_array().unwrap().len(), MOST_TOLD);
        assert_eq!(all["more_losses"], 300 - MOST_TOLD);
        assert_eq!(all["notes"].as_array().unwrap().len() as u64 + all["more_notes"].as_u64().unwrap(), 300);
    }

    #[test]
    fn what_is_too_long_is_shortened_or_left_out() {
        let mut long = gathered(10);
        let _ = long.row(row(&[b'x'; MOST_BYTES]));
        long.lines(format!("{{\"ts_ns\":\"{}\"}}\n", "y".repeat(LONGEST_ROW)).as_bytes()).unwrap();
        let _ = long.row(row(b"short"));
        let long = answer(long);
        assert_eq!(long["rows"].as_array().unwrap().len(), 2, "{long}");
        assert_eq!(
            (&long["rows"][0]["file"], &long["rows"][0]["opens_at_least"]),
            (&"x".repeat(256).into(), &true.into())
        );
        assert_eq!(
            (&long["rows"][1]["file"], &long["more"], &long["too_long"]),
            (&"short".into(), &1.into(), &1.into())
        );
        assert_eq!(long["notes"], serde_json::json!(["a row is shortened, of columns file the beginning is shown"]));
        let list = |length: i32| Cell::Nested((0..length).collect());
        assert_eq!((begin_of_cell(&list(100)), begin_of_cell(&list(8))), (Some(list(8)), None));
        assert_eq!(
            begin_of_cell(&Cell::Written(b"[1,2,3,4,5,6,7,8,9]".to_vec())),
            Some(Cell::Nested((1..9).collect()))
        );
    }

    #[test]
    fn counting_ends() {
        let mut all = gathered(1);
        let taken = (0..2 * COUNTED).take_while(|_| all.row(row(b"x")).is_continue()).count() as u64;
        assert_eq!(taken, COUNTED);
        let all = answer(all);
        assert_eq!((&all["more"], &all["more_at_least"]), (&COUNTED.into(), &true.into()));
        assert!(all["narrow_by"].as_str().unwrap().starts_with("at least 10000 more rows: "));
    }

    #[test]
    fn lines_come_in_pieces() {
        let mut all = gathered(10);
        for piece in ["{\"ts_ns\":1}\n{\"ts", "_ns\":2}", "\n", "{\"lost\":4}\n"] {
            all.lines(piece.as_bytes()).unwrap();
        }
        for piece in ["{\"ts_ns\":\"", &"x".repeat(LONGEST_LINE), "\"}\n", "{\"ts_ns\":4}\n"] {
            all.lines(piece.as_bytes()).unwrap();
        }
        let all = answer(all);
        assert_eq!(all["rows"], serde_json::json!([{"ts_ns": 1}, {"ts_ns": 2}, {"ts_ns": 4}]));
        assert_eq!((&all["losses"][0]["lost"], &all["more"], &all["too_long"]), (&4.into(), &1.into(), &1.into()));
    }

    #[test]
    fn a_cancelled_answer_takes_nothing() {
        let cancelled = Arc::new(AtomicBool::new(true));
        let mut gathered = GatheredAnswer::new(9, cancelled);
        assert!(gathered.row(row(b"x")).is_break());
        assert!(gathered.lines(b"{}\n").is_err());
    }
}
