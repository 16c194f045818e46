//! Who asks: starts a child process or a thread that answers, and takes its frames.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde_json::Value;
use systape_analyzer::frames::Kind;

use crate::answer::{self, KINDS};
use crate::check::{ReceivedColumn, check};
use crate::interface::{ArrowArrayStream, NamedKind, ReceivedRows, RowStream};
use crate::question::TapeQuestion;
use crate::texts::{ArrowTexts, CodedTexts};
use crate::wire::{self, AlignedBytes, FrameKind};

create_exception!(systape._native, SystapeError, PyException, "A question has no answer.");

/// Bytes that a pipe has room for: fewer turns between the two.
const PIPE: usize = 1 << 20;
/// Bytes that are read, or handed on, at once, unless they are rows: those are more, and need no copy on their way.
const BUFFER: usize = 1 << 16;
/// Buffers between two threads.
const WAITING: usize = 4;
/// How long a process that sends nothing more has to end.
const MOMENT: Duration = Duration::from_millis(10);
const MOMENTS: usize = 100;
/// What a capsule with a stream is called.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Bytes for another thread.
struct ToThread(SyncSender<Vec<u8>>);

impl Write for ToThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of another thread.
struct FromThread {
    from: Receiver<Vec<u8>>,
    now: io::Cursor<Vec<u8>>,
}

impl Read for FromThread {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.now.fill_buf()?.is_empty() {
            // none: it has ended
            self.now = io::Cursor::new(self.from.recv().unwrap_or_default());
        }
        self.now.read(bytes)
    }
}

/// An answer that is being read.
struct AnswerReader {
    from: Box<dyn Read + Send>,
    child: Option<Child>,
    columns: Vec<NamedKind>,
    ended: bool,
    /// What the last frame says.
    end: Arc<Mutex<Option<String>>>,
}

/// A frame as the other side has it.
enum Received {
    Head(String),
    Rows(ReceivedRows),
    End(String),
}

impl AnswerReader {
    fn begin(question: &str, command: Option<Vec<OsString>>) -> Result<Self, String> {
        let (from, child): (Box<dyn Read + Send>, _) = match command {
            Some(command) => {
                let mut child =
                    started(&command).map_err(|error| format!("cannot start a reading process: {error}"))?;
                let (Some(mut ask), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
                    return Err("a reading process without pipes".to_owned());
                };
                // it keeps its size where it may not have more
                // SAFETY: a call about a descriptor that is open.
                unsafe { libc::fcntl(from.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE as libc::c_int) };
                // one that has ended already is told of when it is read
                let _ = ask.write_all(question.as_bytes()).and_then(|()| ask.write_all(b"\n"));
                // short reads cost, and one of a large buffer is none
                (Box::new(BufReader::with_capacity(BUFFER, from)), Some(child))
            }
            None => {
                let question = TapeQuestion::read(question).map_err(|error| format!("{error:#}"))?;
                let (to, from) = sync_channel(WAITING);
                let answers = move || {
                    let mut out = BufWriter::with_capacity(BUFFER, ToThread(to));
                    // who asked may have heard enough
                    let _ = answer::to(&question, false, &mut out).and_then(|()| out.flush());
                };
                let named = thread::Builder::new().name("systape".to_owned());
                named.spawn(answers).map_err(|error| format!("cannot make a thread: {error}"))?;
                (Box::new(FromThread { from, now: io::Cursor::default() }), None)
            }
        };
        Ok(Self { from, child, columns: Vec::new(), ended: false, end: Arc::default() })
    }

    fn next(&mut self) -> Result<Option<Received>, String> {
        if self.ended {
            return Ok(None);
        }
        let received = self.frame();
        self.ended |= !matches!(received, Ok(Received::Head(_) | Received::Rows(_)));
        if let Ok(Received::End(text)) = &received {
            *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
        }
        received.map(Some)
    }

    fn frame(&mut self) -> Result<Received, String> {
        let (kind, bytes) = self.read()?;
        let text = |bytes: &AlignedBytes| String::from_utf8_lossy(bytes.bytes()).into_owned();
        match kind {
            FrameKind::Head => {
                let text = text(&bytes);
                self.columns = columns(&text).ok_or("a head that is none")?;
                Ok(Received::Head(text))
            }
            FrameKind::Layout => {
                let (FrameKind::Buffers, data) = self.read()? else { return Err("rows without buffers".to_owned()) };
                let kinds: Vec<Kind> = self.columns.iter().map(|(_, kind)| *kind).collect();
                let checked = check(&kinds, bytes.bytes(), &data).ok_or("rows whose buffers cannot be right")?;
                Ok(Received::Rows(ReceivedRows { checked, data: Arc::new(data) }))
            }
            FrameKind::Buffers => Err("buffers of no rows".to_owned()),
            FrameKind::End => Ok(Received::End(text(&bytes))),
            FrameKind::Error => Err(text(&bytes)),
        }
    }

    fn read(&mut self) -> Result<(FrameKind, AlignedBytes), String> {
        wire::read(&mut *self.from).map_err(|error| match self.child.take().map(ended) {
            Some(Some(status)) => format!("the process that reads the tape has ended ({status}): {error}"),
            Some(None) => format!("the process that reads the tape was ended: {error}"),
            None => format!("the thread that reads the tape has ended: {error}"),
        })
    }
}

/// How `child` ends by itself, for which it has a moment; None: it had to be ended.
fn ended(mut child: Child) -> Option<ExitStatus> {
    for _ in 0..MOMENTS {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(MOMENT);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

impl Drop for AnswerReader {
    fn drop(&mut self) {
        // one that is asked no more is ended; it holds nothing that has to be put in order
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn started(command: &[OsString]) -> io::Result<Child> {
    let Some((program, words)) = command.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// The columns that a head names.
fn columns(head: &str) -> Option<Vec<NamedKind>> {
    let head: Value = serde_json::from_str(head).ok()?;
    let one = |column: &Value| named(column.get("name")?.as_str()?, column.get("kind")?.as_str()?);
    head.get("columns")?.as_array()?.iter().map(one).collect()
}

fn named(name: &str, kind: &str) -> Option<NamedKind> {
    let kind = KINDS.iter().find(|(_, word)| *word == kind)?.0;
    Some((name.to_owned(), kind)).filter(|(name, _)| !name.contains('\0'))
}

/// The rows of an answer, of which nothing else is wanted.
struct RowsOfAnswer(AnswerReader);

impl RowStream for RowsOfAnswer {
    fn next(&mut self) -> Result<Option<ReceivedRows>, String> {
        match self.0.next()? {
            Some(Received::Rows(rows)) => Ok(Some(rows)),
            Some(Received::Head(_)) => Err("an answer with a second table".to_owned()),
            Some(Received::End(_)) | None => Ok(None),
        }
    }
}

/// Rows that are there.
struct RowsInMemory(std::vec::IntoIter<Arc<ReceivedRows>>);

impl RowStream for RowsInMemory {
    fn next(&mut self) -> Result<Option<ReceivedRows>, String> {
        Ok(self.0.next().map(|rows| rows.again()))
    }
}

impl ReceivedRows {
    /// The same rows once more.
    fn again(&self) -> Self {
        let columns = self.checked.columns.clone();
        Self { checked: crate::check::CheckedRows { rows: self.checked.rows, columns }, data: Arc::clone(&self.data) }
    }
}

fn capsule<'py>(
    py: Python<'py>,
    columns: Vec<NamedKind>,
    texts: ArrowTexts,
    rows: Box<dyn RowStream>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArrayStream::new(columns, texts, rows), STREAM)
}

fn failed(why: String) -> PyErr {
    SystapeError::new_err(why)
}

/// An answer: heads of tables, their rows, and what is lost.
#[pyclass(module = "systape._native", frozen)]
pub(crate) struct Answer {
    reader: Mutex<Option<AnswerReader>>,
    end: Arc<Mutex<Option<String>>>,
}

#[pymethods]
impl Answer {
    /// Asks `question`, a line of JSON, of a process that is started by `command`; without one it is answered in this process.
    #[new]
    #[pyo3(signature = (question, command=None))]
    fn new(py: Python<'_>, question: String, command: Option<Vec<OsString>>) -> PyResult<Self> {
        let reader = py.detach(|| AnswerReader::begin(&question, command)).map_err(failed)?;
        let end = Arc::clone(&reader.end);
        Ok(Self { reader: Mutex::new(Some(reader)), end })
    }

    /// The next part: `("head", json)`, `("rows", Rows)` or, at last, `("end", json)`; then None.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<(&'static str, Bound<'py, PyAny>)>> {
        let received = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(reader) = reader.as_mut() else { return Ok(None) };
            Ok(reader.next()?.map(|received| (received, reader.columns.clone())))
        });
        Ok(match received.map_err(failed)? {
            None => None,
            Some((Received::Head(text), _)) => Some(("head", text.into_pyobject(py)?.into_any())),
            Some((Received::End(text), _)) => Some(("end", text.into_pyobject(py)?.into_any())),
            Some((Received::Rows(rows), columns)) => Some((
                "rows",
                Bound::new(py, Rows { columns, texts: ArrowTexts::Whole, rows: Arc::new(rows) })?.into_any(),
            )),
        })
    }

    /// The rows that were not taken yet, as a stream of Arrow's C interface: of an answer with one table, whose head was taken.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| PyValueError::new_err("the rows of an answer can be taken once"))?;
        capsule(py, reader.columns.clone(), ArrowTexts::Whole, Box::new(RowsOfAnswer(reader)))
    }

    /// What the last part says, as JSON, once that was read.
    fn end(&self) -> Option<String> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it: no more rows are wanted.
    fn close(&self, py: Python<'_>) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(reader));
    }
}

/// Some rows of a table.
#[pyclass(module = "systape._native", frozen)]
pub(crate) struct Rows {
    columns: Vec<NamedKind>,
    /// What texts become for whoever takes the rows.
    texts: ArrowTexts,
    rows: Arc<ReceivedRows>,
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.rows.checked.rows
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // a consumer that wishes for other types casts them itself
        drop(requested_schema);
        let rows = RowsInMemory(vec![Arc::clone(&self.rows)].into_iter());
        capsule(py, self.columns.clone(), self.texts, Box::new(rows))
    }

    /// The same rows with texts as polars has them, which not every program knows.
    fn views(&self) -> Self {
        Self { columns: self.columns.clone(), texts: ArrowTexts::Views, rows: Arc::clone(&self.rows) }
    }

    /// These rows and those of `others`, which have the same columns, as one stream; `columns` are their names and kinds.
    #[staticmethod]
    fn stream<'py>(
        py: Python<'py>,
        columns: Vec<(String, String)>,
        rows: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let columns: Option<Vec<NamedKind>> = columns.iter().map(|(name, kind)| named(name, kind)).collect();
        let columns = columns.ok_or_else(|| PyValueError::new_err("a column of no kind"))?;
        let mut all = Vec::with_capacity(rows.len());
        for part in rows {
            let part = part.cast::<Self>()?.get();
            if part.columns != columns {
                return Err(PyValueError::new_err("rows of other columns"));
            }
            all.push(Arc::clone(&part.rows));
        }
        capsule(py, columns, ArrowTexts::Whole, Box::new(RowsInMemory(all.into_iter())))
    }

    /// The values by column: lists of int, float, bool, str, dict, or None. A time is a number of µs since 1970.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for ((name, kind), column) in self.columns.iter().zip(&self.rows.checked.columns) {
            let list = PyList::empty(py);
            for row in 0..column.rows {
                list.append(self.value(py, *kind, column, row)?)?;
            }
            dict.set_item(name, list)?;
        }
        Ok(dict)
    }
}

impl Rows {
    fn bytes<const N: usize>(&self, column: &ReceivedColumn, buffer: usize, at: usize) -> [u8; N] {
        let (from, len) = column.buffers[buffer].unwrap_or_default();
        let (items, _) = self.rows.data.bytes()[from..from + len].as_chunks::<N>();
        items.get(at).copied().unwrap_or([0; N])
    }

    fn bit(&self, column: &ReceivedColumn, buffer: usize, row: usize) -> bool {
        // without a buffer no row is NULL
        let Some((from, _)) = column.buffers[buffer] else { return true };
        self.rows.data.bytes()[from + row / 8] & 1 << (row % 8) != 0
    }

    /// A text of a part of a map.
    fn text(&self, column: &ReceivedColumn, row: usize) -> Option<String> {
        let end = |at: usize| i32::from_le_bytes(self.bytes(column, 1, at)) as usize;
        let (from, _) = column.buffers[2].unwrap_or_default();
        let text = &self.rows.data.bytes()[from + end(row)..from + end(row + 1)];
        self.bit(column, 0, row).then(|| String::from_utf8_lossy(text).into_owned())
    }

    fn value<'py>(
        &self,
        py: Python<'py>,
        kind: Kind,
        column: &ReceivedColumn,
        row: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if kind != Kind::Text && !self.bit(column, 0, row) {
            return Ok(py.None().into_bound(py));
        }
        Ok(match kind {
            Kind::Int | Kind::Instant => i64::from_le_bytes(self.bytes(column, 1, row)).into_pyobject(py)?.into_any(),
            // a number of 64 bits, with a sign or without
            Kind::Wide => match i128::from_le_bytes(self.bytes(column, 1, row)) {
                wide @ 0.. => (wide as u64).into_pyobject(py)?.into_any(),
                wide => (wide as i64).into_pyobject(py)?.into_any(),
            },
            Kind::Real => f64::from_le_bytes(self.bytes(column, 1, row)).into_pyobject(py)?.into_any(),
            Kind::Flag => self.bit(column, 1, row).into_pyobject(py)?.to_owned().into_any(),
            Kind::Text => {
                CodedTexts::new(column, &self.rows.data).text(row).map(String::from_utf8_lossy).into_pyobject(py)?
            }
            Kind::Map => {
                let dict = PyDict::new(py);
                let end = |at: usize| i32::from_le_bytes(self.bytes(column, 1, at)) as usize;
                let pairs = &column.children[0].children;
                for pair in end(row)..end(row + 1) {
                    dict.set_item(self.text(&pairs[0], pair), self.text(&pairs[1], pair))?;
                }
                dict.into_any()
            }
        })
    }
}
