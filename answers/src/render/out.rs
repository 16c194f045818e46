//! Where an answer goes: to standard output, to the thread that merges those of several tapes, or, as values, to a part of
//! this program.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::sync::mpsc::SyncSender;

use systape_format::table::TableDef;

use super::form::{Form, Format};
use super::label::{LabelledLines, Lines};
use super::row::{Judgement, Row};
use super::sink::{self, Sink};
use crate::values::progress;
use crate::values::say::complain;
use systape_events::stream::TimedLines;

/// Bytes collected before a write.
const BUFFER: usize = 1 << 18;
/// Bytes of rows collected before they are among those.
const ROWS: usize = 1 << 16;

/// Takes the rows of an answer as values, in the order in which JSON has them.
pub trait TakesRows: Send {
    /// Takes `row`, which is whole and judged. Break: no more are wanted.
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()>;

    /// Takes what is said beside the rows: losses, and what the answer does not hold.
    fn note(&mut self, _text: &str) {}
}

/// What a report is given to write its answer to.
pub struct Out<'r> {
    /// The form of rows.
    form: Form,
    /// Name of the tape that the answer is of, if there are several; else empty.
    name: String,
    to: To<'r>,
}

/// Where bytes or rows go.
enum To<'r> {
    /// Bytes to standard output.
    Stdout(Stdout),
    /// Bytes to standard output, with a label before each line; `begun`: a line whose end has not come.
    Labelled { out: Stdout, labels: LabelledLines, begun: Vec<u8> },
    /// Lines to a thread that merges.
    Merged(SyncSender<Lines>),
    /// Values to who takes them.
    Values(&'r mut dyn TakesRows),
}

/// Standard output without std's line buffer, which searches every write for its last newline.
struct Stdout {
    file: BufWriter<File>,
    /// Something was written: the line of progress stays as long as nothing is.
    begun: bool,
}

impl Stdout {
    fn new() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), begun: false })
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.begun {
            progress::end();
            self.begun = true;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<'r> Out<'r> {
    /// Standard output.
    ///
    /// # Errors
    /// It is closed.
    pub fn stdout(format: Format) -> io::Result<Self> {
        Ok(Self::new(format, To::Stdout(Stdout::new()?)))
    }

    /// Makes one to standard output with `labels` before lines.
    ///
    /// # Errors
    /// It is closed.
    pub fn labelled(format: Format, labels: LabelledLines) -> io::Result<Self> {
        Ok(Self::new(format, To::Labelled { out: Stdout::new()?, labels, begun: Vec::new() }))
    }

    /// A thread that puts the lines of several tapes in order.
    pub fn merged(format: Format, lines: SyncSender<Lines>) -> Self {
        Self::new(format, To::Merged(lines))
    }

    /// Whom takes the rows of JSON as values; other lines fail.
    pub fn values(rows: &'r mut dyn TakesRows) -> Self {
        Self::new(Format::Json, To::Values(rows))
    }

    fn new(format: Format, to: To<'r>) -> Self {
        Self { form: format.rows().unwrap_or(Form::Json), name: String::new(), to }
    }

    /// Makes one for the answer of one of several tapes, the one called `name`.
    pub fn of(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
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
            To::Values(rows) => Some(*rows),
            _ => None,
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
        let sink = Sink::new(self.form, table);
        let mut buffer = Vec::new();
        sink.head(&mut buffer);
        for row in rows {
            sink.row(&mut buffer, &row);
            if buffer.len() >= ROWS {
                self.write_all(&buffer)?;
                buffer.clear();
            }
        }
        self.write_all(&buffer)
    }

    /// Hands over one row with many columns; CSV has a line `name,value` for each, and `null` for an unknown value.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn facts(&mut self, row: Row<'_>) -> io::Result<()> {
        if self.form == Form::Json {
            return self.rows(row.table(), Judgement::Each, [row]);
        }
        let mut buffer = Vec::new();
        sink::facts(&row, &mut buffer);
        self.write_all(&buffer)
    }
}

impl From<BufWriter<File>> for Out<'_> {
    fn from(file: BufWriter<File>) -> Self {
        Self::new(Format::Text, To::Stdout(Stdout { file, begun: true }))
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Stdout(out) => out.write(bytes),
            To::Labelled { out, labels, begun } => {
                let mut labelled = Vec::with_capacity(bytes.len());
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    begun.extend_from_slice(line);
                    if line.ends_with(b"\n") {
                        labels.line(begun, &mut labelled)?;
                        begun.clear();
                    }
                }
                out.write_all(&labelled).map(|()| bytes.len())
            }
            To::Merged(_) => self.lines(bytes, &[], 0).map(|()| bytes.len()),
            To::Values(_) if bytes.is_empty() => Ok(0),
            To::Values(_) => Err(io::Error::other("this answer has lines that are no rows")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stdout(out) | To::Labelled { out, .. } => out.flush(),
            To::Merged(_) | To::Values(_) => Ok(()),
        }
    }
}

impl TimedLines for Out<'_> {
    fn lines(&mut self, bytes: &[u8], marks: &[(u64, usize)], from: usize) -> io::Result<()> {
        let To::Merged(lines) = &self.to else { return self.write_all(bytes) };
        let marks = marks.iter().map(|(time, end)| (*time, end - from)).collect();
        let sent = lines.send(Lines { bytes: bytes.to_vec(), marks });
        // whoever reads them has enough
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
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
}
