//! The lines of one or several logs, in order of time: each with the thread that the file's name or the line says.
//!
//! Of several files (`strace -ff -o LOG` writes one a thread) only those are open that time has come to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, Seek as _};

use anyhow::{Context as _, Result, bail};

use super::days::{DAY, DayCount, LAST_DAY, first_days};
use super::file::LogFile;
use super::lead::{LineTime, shown, split};
use super::lines::{LineEnd, LogLines};

/// Most files that are open at once.
const MOST_OPEN: usize = 512;

/// A line with its thread and time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogLine {
    /// The thread; None: the log does not say.
    pub tid: Option<u32>,
    /// Name of the thread, if the line says it.
    pub comm: Option<Vec<u8>>,
    /// Time of the line, or of the one before if it has none.
    pub ts: u64,
    /// Whether the line has a time of its own.
    pub timed: bool,
    /// Whether the line was cut: by the end of its file, or for its length.
    pub cut: bool,
    /// What is behind thread and time.
    pub body: Vec<u8>,
}

/// How the lines of logs are dated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogClock {
    /// Midnight of the first day, ns since 1970; None: not known.
    pub midnight: Option<u64>,
    /// How many days after that each file begins.
    days: Vec<u64>,
}

impl LogClock {
    /// The clock of `files`, whose first day begins at `midnight`, if that is known.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn new(files: &[LogFile], midnight: Option<u64>) -> Result<Self> {
        Ok(Self { midnight, days: first_days(files)? })
    }

    /// The time of tapes that midnight of the first day of the file is.
    fn first_day(&self, file: usize) -> u64 {
        // not 0, which stands for what is not known
        (self.midnight.unwrap_or(DAY) + self.days.get(file).map_or(0, |day| day * DAY)).min(LAST_DAY * DAY)
    }
}

/// What the times of a log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// Seconds since 1970.
    Epoch,
    /// Times of day.
    Day,
}

/// The lines of logs.
#[derive(Debug)]
pub(super) struct Logs<'a> {
    files: &'a [LogFile],
    clock: &'a LogClock,
    readers: Vec<Option<OneLog>>,
    /// (time of the next line, file).
    turn: BinaryHeap<Reverse<(u64, usize)>>,
    open: usize,
    /// What its times are, as far as lines were read.
    pub form: Option<TimeForm>,
    /// Some times have no fraction.
    pub whole_seconds: bool,
}

/// One file that is being read.
#[derive(Debug)]
struct OneLog {
    lines: LogLines<BufReader<File>>,
    next: Option<LogLine>,
    last: u64,
    days: DayCount,
}

impl<'a> Logs<'a> {
    /// The lines of `files`, from the first.
    ///
    /// # Errors
    /// A file cannot be read, or its lines cannot be dated.
    pub(super) fn open(files: &'a [LogFile], clock: &'a LogClock) -> Result<Self> {
        let mut logs = Self {
            files,
            clock,
            readers: files.iter().map(|_| None).collect(),
            turn: BinaryHeap::new(),
            open: 0,
            form: None,
            whole_seconds: false,
        };
        for at in 0..files.len() {
            logs.begin(at)?;
            if let Some(reader) = &logs.readers[at]
                && let Some(line) = &reader.next
            {
                logs.turn.push(Reverse((line.ts, at)));
            }
            // it is opened again when its time has come
            if files.len() > 1 {
                logs.close(at);
            }
        }
        Ok(logs)
    }

    /// The next line, in order of time.
    ///
    /// # Errors
    /// A file cannot be read, or too many overlap in time.
    pub(super) fn next(&mut self) -> Result<Option<LogLine>> {
        let Some(Reverse((_, at))) = self.turn.pop() else { return Ok(None) };
        if self.readers[at].is_none() {
            if self.open >= MOST_OPEN {
                bail!(
                    "more than {MOST_OPEN} of the logs overlap in time: put them together first (strace-log-merge LOG > ALL)"
                );
            }
            self.begin(at)?;
        }
        let Some(line) = self.readers[at].as_mut().and_then(|reader| reader.next.take()) else { return Ok(None) };
        self.advance(at)?;
        match self.readers[at].as_ref().and_then(|reader| reader.next.as_ref()) {
            Some(next) => self.turn.push(Reverse((next.ts, at))),
            None => self.close(at),
        }
        Ok(Some(line))
    }

    fn close(&mut self, at: usize) {
        if self.readers[at].take().is_some() {
            self.open -= 1;
        }
    }

    /// Opens a file and reads its first line.
    fn begin(&mut self, at: usize) -> Result<()> {
        let LogFile { path, file, .. } = &self.files[at];
        let why = || path.display().to_string();
        let opened = match file {
            Some(file) => {
                let mut again = file.try_clone().with_context(why)?;
                again.rewind().with_context(why)?;
                again
            }
            None => File::open(path).with_context(why)?,
        };
        let lines = LogLines::new(BufReader::with_capacity(64 << 10, opened));
        self.readers[at] = Some(OneLog { lines, next: None, last: 0, days: DayCount::new(self.clock.first_day(at)) });
        self.open += 1;
        self.advance(at)
    }

    /// Reads the next line of a file.
    fn advance(&mut self, at: usize) -> Result<()> {
        let file = &self.files[at];
        let Some(reader) = self.readers.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let why = || file.path.display().to_string();
        let Some((bytes, end)) = reader.lines.next().with_context(why)? else {
            reader.next = None;
            return Ok(());
        };
        let (lead, rest) = split(bytes);
        let (ts, form) = match lead.time {
            Some(LineTime::Epoch(ns)) => (Some(ns), Some(TimeForm::Epoch)),
            Some(LineTime::Day { ns, whole }) => {
                self.whole_seconds |= whole;
                (Some(reader.days.next(ns)), Some(TimeForm::Day))
            }
            Some(LineTime::Relative(_)) => {
                bail!("its times count from the line before (strace -r), so that nothing is dated: {WANTED}")
            }
            None => (None, None),
        };
        match (self.form, form) {
            (Some(before), Some(now)) if before != now => {
                bail!("some lines have seconds since 1970 and some have times of day ('{}'): {WANTED}", shown(bytes))
            }
            (None, Some(_)) => self.form = form,
            _ => {}
        }
        reader.last = ts.unwrap_or(reader.last);
        let line = LogLine {
            tid: lead.tid.or(file.tid),
            comm: lead.comm,
            ts: reader.last,
            timed: ts.is_some(),
            cut: end != LineEnd::Newline,
            body: rest.to_vec(),
        };
        reader.next = Some(line);
        Ok(())
    }
}

/// What to do for a log that can be imported.
pub(crate) const WANTED: &str = "strace -f -ttt -T -y -o LOG COMMAND writes a log that can be imported";
