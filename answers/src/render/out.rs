//! Where an answer goes: to standard output, to the thread that merges those of several tapes, or, as values, to a part of
//! this program.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
#[cfg(unix)]
use std::os::fd::AsFd as _;
use std::sync::mpsc::SyncSender;

use systape_format::table::TableDef;

use super::columns::{Layout, Lines};
use super::form::{Form, Format};
use super::label::TapeLabel;
use super::rank;
use super::row::{Judgement, Row};
use super::sink::{self, Sink};
use super::stamp::Stamps;
use super::table::Table;
use crate::values::fit::LineRoom;
use crate::values::output::{self, line};
use crate::values::progress;
use crate::values::say::{Shown, complain};
use systape_events::stream::{Part, TimedLines};

/// Bytes collected before a write.
const BUFFER: usize = 1 << 18;
/// Bytes of rows collected before they are among those.
const ROWS: usize = 1 << 16;

/// Begins what is dim.
const DIM: &str = "\x1b[2m";

/// How lines are made to fit the terminal; None: they are not.
fn fitting() -> Option<LineRoom<'static>> {
    let dim = if output::colored() { (DIM, output::PLAIN) } else { ("", "") };
    output::room().map(|cells| LineRoom { cells, mark: output::cut_mark(), dim })
}

/// Takes the rows of an answer as values, in the order in which JSON has them.
pub trait TakesRows: Send {
    /// Takes `row`, which is whole and judged. Break: no more are wanted.
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()>;

    /// Takes bytes of a listing, lines of JSON as they are printed, which need not end where the bytes do: there are so many of them
    /// that they are no values.
    ///
    /// # Errors
    /// Rows alone are wanted.
    fn lines(&mut self, _json: &[u8]) -> io::Result<()> {
        Err(io::Error::other("this answer has lines that are no rows"))
    }

    /// Takes lines of text that begin at the end `from` in what was written before, with the time and the end of each.
    ///
    /// # Errors
    /// As those of [`Self::lines`].
    fn timed(&mut self, bytes: &[u8], _marks: &[(u64, usize)], _from: usize) -> io::Result<()> {
        self.lines(bytes)
    }

    /// Takes what is said beside the rows: losses, and what the answer does not hold.
    fn note(&mut self, _text: &str) {}
}

/// What a report is given to write its answer to.
pub struct Out<'r> {
    format: Format,
    /// Name of the tape that the answer is of, if there are several; else empty.
    name: String,
    /// What tells its rows from those of the other tapes.
    label: TapeLabel,
    /// The head of rows; None: it is not printed yet.
    head: Option<Vec<u8>>,
    /// Number of rows of rankings.
    shown: Shown,
    to: To<'r>,
}

/// What all rows of a ranking have in common, of which the first are shown: a table of text with the number of the others, or rows.
#[derive(Debug)]
pub struct TopRows<'a> {
    /// The declaration of rows.
    pub table: &'a TableDef,
    /// Effect of the answer's losses on all rows.
    pub judged: Judgement,
    /// The headings of text.
    pub headings: Table,
    /// How many rows there are.
    pub all: usize,
    /// How many are shown at most.
    pub limit: usize,
}

/// Where bytes or rows go.
enum To<'r> {
    /// Bytes to standard output.
    Stdout(Stdout),
    /// Lines to a thread that merges.
    Merged(SyncSender<ListingPiece>),
    /// Values to who takes them.
    Values(&'r mut dyn TakesRows),
}

/// A piece of one tape's listing, for the thread that merges those of several.
#[derive(Debug)]
pub enum ListingPiece {
    /// The head of its rows, before all others.
    Head(Vec<u8>),
    /// Lines, by their times on the tape's clock.
    Lines(Part),
}

/// Standard output without std's line buffer, which searches every write for its last newline.
struct Stdout {
    #[cfg(unix)]
    file: BufWriter<File>,
    /// Its descriptor cannot be had twice there, and std's own is used.
    #[cfg(not(unix))]
    file: BufWriter<io::Stdout>,
    /// Something was written: the line of progress stays as long as nothing is.
    begun: bool,
    /// The width of a terminal that lines are made to fit; None: they are as they are.
    room: Option<LineRoom<'static>>,
    /// The line that has not ended yet.
    line: Vec<u8>,
}

impl Stdout {
    fn new() -> io::Result<Self> {
        #[cfg(unix)]
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        #[cfg(not(unix))]
        let file = io::stdout();
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), begun: false, room: None, line: Vec::new() })
    }

    /// Writes whole lines in the width of the terminal; the rest waits for its end.
    fn fit(&mut self, room: LineRoom<'_>, bytes: &[u8]) -> io::Result<()> {
        let mut fit = String::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if let Some(line) = self.line.strip_suffix(b"\n") {
                room.fit(&String::from_utf8_lossy(line), &mut fit);
                self.line.clear();
            }
        }
        self.file.write_all(fit.as_bytes())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.begun {
            progress::end();
            self.begun = true;
        }
        match self.room {
            Some(room) => self.fit(room, bytes).map(|()| bytes.len()),
            None => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.line);
        self.file.write_all(&rest)?;
        self.file.flush()
    }
}

impl<'r> Out<'r> {
    /// Standard output.
    ///
    /// # Errors
    /// It is closed.
    pub fn stdout(format: Format) -> io::Result<Self> {
        let room = if format == Format::Text { fitting() } else { None };
        Ok(Self::new(format, To::Stdout(Stdout { room, ..Stdout::new()? })))
    }

    /// Standard output for lines that another program reads: they are not made to fit a terminal.
    ///
    /// # Errors
    /// It is closed.
    pub fn exact(format: Format) -> io::Result<Self> {
        Ok(Self::new(format, To::Stdout(Stdout::new()?)))
    }

    /// Stops fitting lines to the terminal: another program reads those that follow.
    pub fn unfitted(&mut self) {
        if let To::Stdout(out) = &mut self.to {
            out.room = None;
        }
    }

    /// A thread that puts the lines of several tapes in order.
    pub fn merged(format: Format, pieces: SyncSender<ListingPiece>) -> Self {
        Self::new(format, To::Merged(pieces))
    }

    /// Whom takes the rows of JSON as values; other lines fail.
    pub fn values(rows: &'r mut dyn TakesRows) -> Self {
        Self::new(Format::Json, To::Values(rows))
    }

    /// Who takes the lines of text as they are printed; rows of the same answer are never handed over.
    pub fn lines_to(rows: &'r mut dyn TakesRows) -> Self {
        Self::new(Format::Text, To::Values(rows))
    }

    fn new(format: Format, to: To<'r>) -> Self {
        Self { format, name: String::new(), label: TapeLabel::default(), head: None, shown: Shown::default(), to }
    }

    /// Begins the answer of the one of several tapes that is called `name`; `label` stands before its rows.
    pub fn begin(&mut self, name: &str, label: TapeLabel) {
        (self.name, self.label) = (name.to_owned(), label);
    }

    /// Counts rows of rankings in `shown` from here on.
    pub fn count_in(&mut self, shown: &Shown) {
        self.shown = shown.clone();
    }

    /// The form of the answer.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is text for people; else rows are wanted.
    pub fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// Prints `lines` of text, for which rows have no place.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn text(&mut self, lines: impl IntoIterator<Item = impl AsRef<str>>) -> io::Result<()> {
        if !self.is_text() {
            return Ok(());
        }
        lines.into_iter().try_for_each(|text| line(self, text.as_ref()))
    }

    /// Prints `notes` as lines of text, or says them beside rows.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn notes(&mut self, notes: impl IntoIterator<Item = impl AsRef<str>>) -> io::Result<()> {
        notes.into_iter().try_for_each(|note| match self.is_text() {
            true => line(self, note.as_ref()),
            false => {
                self.say(note.as_ref());
                Ok(())
            }
        })
    }

    /// Prints the first of `rows` as a table of text, of which `cells` makes the texts, or as rows that `row` makes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn ranking<'t, I: Iterator + Clone>(
        &mut self,
        ranking: TopRows<'_>,
        rows: I,
        row: impl FnMut(I::Item) -> Row<'t>,
        cells: impl FnMut(I::Item) -> Vec<String> + Clone,
    ) -> io::Result<()> {
        let TopRows { table, judged, headings, all, limit } = ranking;
        self.shown.rows(all);
        let rows = rows.take(limit);
        if !self.is_text() {
            return self.rows(table, judged, rows.map(row));
        }
        headings.print_rows(rows.map(cells), self)?;
        self.text(rank::more(all, limit))
    }

    /// Ends the answer: says which columns a terminal had no room for.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self) -> io::Result<()> {
        if matches!(self.to, To::Stdout(_)) {
            self.text(output::left_out())?;
        }
        self.flush()
    }

    /// What stands before rows and lines of the tape.
    pub fn label(&self) -> &TapeLabel {
        &self.label
    }

    /// Says what is not part of the answer: on standard error, after the name of the tape if there are several.
    pub fn say(&mut self, text: &str) {
        match &mut self.to {
            To::Values(rows) => rows.note(text),
            _ if self.name.is_empty() || text.starts_with(&self.name) => complain(text),
            _ => complain(&format!("{}: {text}", self.name)),
        }
    }

    /// Who takes values, if it goes there.
    pub fn taker(&mut self) -> Option<&mut dyn TakesRows> {
        match &mut self.to {
            To::Values(rows) if self.format != Format::Text => Some(*rows),
            _ => None,
        }
    }

    /// Prints `head`, which stands before all rows: once for several tapes, and for an answer that goes on.
    ///
    /// # Errors
    /// It cannot be written, or is another than that of the rows before.
    pub fn head(&mut self, head: &[u8]) -> io::Result<()> {
        match &self.head {
            // that of text says what its own lines have
            _ if self.format == Format::Text || head.is_empty() => return self.write_all(head),
            Some(before) if before == head => return Ok(()),
            Some(_) => return Err(io::Error::other("its rows have other columns than those of the tapes before")),
            None => self.head = Some(head.to_vec()),
        }
        match &self.to {
            To::Merged(pieces) => send(pieces, ListingPiece::Head(head.to_vec())),
            _ => self.write_all(head),
        }
    }

    /// What writes rows of `table` one a line; text is the report's own, or in the columns of a `layout` by clocks.
    pub fn writer(&self, table: &TableDef, layout: Option<(&'static Layout, Stamps)>) -> Lines {
        match (self.format.rows(), layout) {
            (Some(form), _) => Lines::Rows(Sink::new(form, table, &self.label)),
            (None, Some((layout, stamps))) => Lines::Tool(layout, stamps),
            (None, None) => Lines::Own,
        }
    }

    /// Hands over `rows` of `table`, after the names of its columns in CSV; `judged`: the effect of the answer's losses on all of them.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn rows<'t>(
        &mut self,
        table: &TableDef,
        judged: Judgement,
        rows: impl IntoIterator<Item = Row<'t>>,
    ) -> io::Result<()> {
        let mut rows = rows.into_iter().map(|row| row.judged(judged));
        if let Some(taker) = self.taker() {
            let _ = rows.try_for_each(|row| {
                row.is_whole();
                taker.row(row)
            });
            return Ok(());
        }
        let sink = Sink::new(self.form(), table, &self.label);
        self.head(&sink.head())?;
        let mut buffer = Vec::new();
        for row in rows {
            sink.row(&mut buffer, &row);
            if buffer.len() >= ROWS {
                self.write_all(&buffer)?;
                buffer.clear();
            }
        }
        self.write_all(&buffer)
    }

    /// Hands over `rows` of `table` beside those of another table; CSV, which has one, leaves them out.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn rows_beside<'t>(
        &mut self,
        table: &TableDef,
        judged: Judgement,
        rows: impl IntoIterator<Item = Row<'t>>,
    ) -> io::Result<()> {
        if self.format == Format::Csv { Ok(()) } else { self.rows(table, judged, rows) }
    }

    /// Hands over one row with many columns; CSV has a line `name,value` for each, and `null` for an unknown value.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn facts(&mut self, row: Row<'_>) -> io::Result<()> {
        if self.form() == Form::Json {
            return self.rows(row.table(), Judgement::Each, [row]);
        }
        let (head, lines) = sink::facts(&row, &self.label);
        self.head(&head)?;
        self.write_all(&lines)
    }

    /// The form of rows.
    fn form(&self) -> Form {
        self.format.rows().unwrap_or(Form::Json)
    }
}

fn send(pieces: &SyncSender<ListingPiece>, piece: ListingPiece) -> io::Result<()> {
    // whoever reads them has enough
    pieces.send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
}

#[cfg(unix)]
impl From<BufWriter<File>> for Out<'_> {
    fn from(file: BufWriter<File>) -> Self {
        let room = fitting();
        Self::new(Format::Text, To::Stdout(Stdout { file, begun: true, room, line: Vec::new() }))
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Stdout(out) => out.write(bytes),
            To::Merged(_) | To::Values(_) if bytes.is_empty() => Ok(0),
            To::Merged(_) => Err(io::Error::other("this answer has lines without a time")),
            To::Values(rows) => rows.lines(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stdout(out) => out.flush(),
            To::Merged(_) | To::Values(_) => Ok(()),
        }
    }
}

impl TimedLines for Out<'_> {
    fn lines(&mut self, bytes: &[u8], marks: &[(u64, usize)], from: usize) -> io::Result<()> {
        let pieces = match &mut self.to {
            To::Merged(pieces) => pieces,
            To::Values(rows) if self.format == Format::Text => return rows.timed(bytes, marks, from),
            _ => return self.write_all(bytes),
        };
        let marks = marks.iter().map(|(time, end)| (*time, end - from)).collect();
        send(pieces, ListingPiece::Lines(Part { bytes: bytes.to_vec(), marks }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::cell::{Cell, Known};

    systape_format::tables! {
        /// One row a file.
        FILES = "files" {
            file: Str key "its path"
            opens ? AtLeast: Count "how often"
        }
    }

    /// Takes two rows, and what is said.
    #[derive(Default)]
    struct Two(Vec<Vec<(Cell<'static>, Known)>>, Vec<String>);

    impl TakesRows for Two {
        fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
            self.0.push(row.into_cells().collect());
            if self.0.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }

        fn note(&mut self, text: &str) {
            self.1.push(text.to_owned());
        }
    }

    #[test]
    fn values_are_judged_and_no_more_than_wanted() {
        let (mut two, mut made) = (Two::default(), 0);
        let rows = std::iter::from_fn(|| {
            made += 1;
            let mut row = Row::new(&FILES);
            row.set("file", &b"a\xff"[..]).set("opens", made);
            Some(row)
        });
        let mut out = Out::values(&mut two);
        out.rows(&FILES, Judgement::Touched(true), rows).unwrap();
        out.say("something is lost");
        out.write_all(b"").unwrap();
        assert!(out.write_all(b"{}\n").is_err(), "lines that are no rows are not left out in silence");
        let row = |opens: i32| vec![(Cell::from(b"a\xff".to_vec()), Known::Exact), (Cell::from(opens), Known::Short)];
        assert_eq!((two.0, two.1), (vec![row(1), row(2)], vec!["something is lost".to_owned()]));
        assert_eq!(made, 2);
    }

    #[test]
    fn rows_have_no_lines_of_text_and_no_more_than_the_limit() {
        let (mut two, shown) = (Two::default(), Shown::default());
        let row = |opens: i32| {
            let mut row = Row::new(&FILES);
            row.set("file", "/x").bound("opens", opens, false);
            row
        };
        let mut out = Out::values(&mut two);
        out.count_in(&shown);
        out.text(["above"]).unwrap();
        out.notes(["some are missing"]).unwrap();
        let top = |all| TopRows {
            table: &FILES,
            judged: Judgement::Touched(true),
            headings: Table::default().word("file"),
            all,
            limit: 1,
        };
        out.ranking(top(0), [].into_iter(), row, |_| Vec::new()).unwrap();
        assert!(shown.nothing());
        out.ranking(top(2), [1, 2].into_iter(), row, |opens| vec![opens.to_string()]).unwrap();
        assert!(!shown.nothing());
        let one = vec![(Cell::from(b"/x".to_vec()), Known::Exact), (Cell::from(1), Known::Short)];
        assert_eq!((two.0, two.1), (vec![one], vec!["some are missing".to_owned()]));
    }

    #[test]
    fn tapes_that_are_merged_have_a_head_and_lines_with_times() {
        let (sender, pieces) = std::sync::mpsc::sync_channel(4);
        let mut out = Out::merged(Format::Csv, sender);
        out.begin("a", TapeLabel { cells: vec![(&FILES.columns[0], Cell::from("a"))], text: Vec::new() });
        let lines = out.writer(&FILES, None);
        for _ in 0..2 {
            out.head(&lines.head(Vec::new)).unwrap();
        }
        assert!(out.head(b"file\n").is_err(), "rows of other columns are not mixed with them");
        TimedLines::lines(&mut out, b"x\ny\n", &[(7, 12), (8, 14)], 10).unwrap();
        assert!(out.write_all(b"z\n").is_err(), "a line without a time has no place");
        drop(out);
        let pieces: Vec<ListingPiece> = pieces.iter().collect();
        let [ListingPiece::Head(head), ListingPiece::Lines(part)] = &pieces[..] else { panic!("{pieces:?}") };
        assert_eq!(head, b"file,file,opens,opens_at_least\n");
        assert_eq!((&part.bytes[..], &part.marks[..]), (&b"x\ny\n"[..], &[(7, 2), (8, 4)][..]));
    }
}
