//! Rows of the table `exec:interpreter`: which interpreter was missing when an exec failed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use systape_abi::AT_FDCWD;
use systape_bpf::wire::{self, Ident, Syscall, captures};
use systape_format::families::EXEC_INTERPRETER;
use systape_format::model::ByteStatus;
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use crate::foreign::FactReader;
use crate::foreign::interpreter::{FailedExec, Found, PathBase, find};
use crate::machine::patient::LaterJobs;
use crate::own::clock;
use crate::tasks::effects::{self, CallFacts};
use crate::tasks::{TaskId, Tasks};

/// Most files read within a second of the tape: a search along PATH fails as often.
const MOST: u32 = 1000;
const SECOND: u64 = 1_000_000_000;
/// Between two looks for the last answers.
const MOMENT: Duration = Duration::from_millis(1);
/// Most that wait for their rows.
const MOST_FOUND: usize = 1024;

/// The errors of an exec that may be about an interpreter.
const ERRORS: [u16; 3] = [libc::ENOENT as u16, libc::ENOEXEC as u16, libc::ENOTDIR as u16];

/// An exec that failed: its task, and the end of its call.
type Of = (Ident, u64);

#[derive(Debug)]
struct Job {
    of: Of,
    failed: FailedExec,
    facts: Arc<Mutex<FactReader>>,
}

#[derive(Debug)]
struct Answer {
    of: Of,
    /// The recorder's root is that of the process.
    ours: bool,
    found: Option<Found>,
    read: u64,
}

/// Execs that failed, and look-ups of the interpreters that they asked for.
#[derive(Debug)]
pub(super) struct InterpreterLookups {
    table: Arc<TableDef>,
    reader: LaterJobs<Job, Answer>,
    /// Who opens and reads files; its processes start with the first.
    facts: Arc<Mutex<FactReader>>,
    /// Answers whose time the events have not reached.
    found: Vec<Answer>,
    open: usize,
    /// Since when how many files were asked for.
    asked: (u64, u32),
}

impl Default for InterpreterLookups {
    fn default() -> Self {
        Self {
            table: Arc::new(EXEC_INTERPRETER.clone()),
            reader: LaterJobs::new("interpreter", work),
            facts: Arc::new(Mutex::new(FactReader::new())),
            found: Vec::new(),
            open: 0,
            asked: (0, 0),
        }
    }
}

fn work(Job { of, failed, facts }: Job) -> Answer {
    let found = find(&mut facts.lock().unwrap_or_else(PoisonError::into_inner), &failed);
    Answer { of, ours: matches!(failed.base, PathBase::Ours(_)), found, read: clock::monotonic() }
}

impl InterpreterLookups {
    /// An exec failed: has its file read, if the error may be about its interpreter.
    pub(super) fn failed(
        &mut self,
        tasks: &Tasks,
        task: TaskId,
        info: &CallFacts,
        (s, data): (&Syscall, &[u8]),
        errno: u16,
    ) {
        if !ERRORS.contains(&errno) || !self.may_ask(s.end) {
            return;
        }
        let Some(failed) = failed(tasks, task, info, s, data) else { return };
        let facts = Arc::clone(&self.facts);
        self.open += usize::from(self.reader.ask(Job { of: (s.id, s.end), failed, facts }));
    }

    fn may_ask(&mut self, ts: u64) -> bool {
        let (since, count) = &mut self.asked;
        if ts.saturating_sub(*since) >= SECOND {
            (*since, *count) = (ts, 0);
        }
        *count += 1;
        *count <= MOST && self.found.len() < MOST_FOUND
    }

    /// Waits for the answers, until then.
    pub(super) fn wait(&mut self, until: Instant) {
        while self.open > 0 && Instant::now() < until {
            match self.reader.wait(until) {
                Some(answer) => self.take(answer),
                // it does not wait itself while jobs queue up
                None => std::thread::sleep(MOMENT),
            }
        }
    }

    fn take(&mut self, answer: Answer) {
        self.open -= 1;
        if answer.found.is_some() {
            self.found.push(answer);
        }
    }

    /// Stores what was read before `watermark`, which the events have reached; u64::MAX: all of it. As time of the rows it is `ts`.
    pub(super) fn store(&mut self, (watermark, ts): (u64, u64), tasks: &mut Tasks, rows: &mut Rows) {
        while let Some(answer) = (self.open > 0).then(|| self.reader.take()).flatten() {
            self.take(answer);
        }
        let (ready, later) = std::mem::take(&mut self.found).into_iter().partition(|answer| answer.read < watermark);
        self.found = later;
        for Answer { of: (id, end), ours, found, read } in ready {
            let Some(task) = tasks.find(&id) else { continue };
            // by the number of one that has ended another process may have been asked
            let (Some(found), true) = (found, ours || !tasks.had_ended(task, read)) else { continue };
            let fields = [
                Field::Task(rows.task(tasks, task)),
                Field::Number(ts.saturating_sub(end)),
                Field::Number(read.saturating_sub(end)),
                Field::Bytes(found.kind.as_bytes()),
                Field::Bytes(&found.file),
                found.interpreter.as_deref().map_or(Field::Unknown, Field::Bytes),
                Field::Number(found.error.into()),
            ];
            rows.beside(&self.table, ts, &fields);
        }
    }
}

/// What was to be executed; None = its path is not known.
fn failed(tasks: &Tasks, task: TaskId, info: &CallFacts, s: &Syscall, data: &[u8]) -> Option<FailedExec> {
    let path_arg = info.argv_arg?.checked_sub(1)?;
    let path = captured(s, data, path_arg)?;
    // a path of execveat may begin at a descriptor
    let fd = (path_arg == 1).then_some(s.args[0] as i32).filter(|fd| *fd != AT_FDCWD && !path.starts_with(b"/"));
    let dir = match fd {
        Some(fd) => effects::resolve(tasks, task, info, s.start, fd, |name| name.bytes.clone()),
        None => tasks.get(task).cwd.as_ref().map(|cwd| cwd.bytes.clone()),
    };
    let here = tasks.get(task).here;
    if s.hdr.flags & wire::OUR_ROOT != 0 {
        // from its descriptor the path, but from its directory what the file asks for
        let path = match fd {
            Some(_) => [dir?.as_slice(), b"/", path].concat(),
            None => path.to_vec(),
        };
        let cwd = tasks.get(task).cwd.as_ref().map(|cwd| cwd.bytes.clone());
        return Some(FailedExec { base: PathBase::Ours(cwd), path });
    }
    (here != 0 && fd.is_none() && !path.is_empty())
        .then(|| FailedExec { base: PathBase::Of(here), path: path.to_vec() })
}

/// The bytes of an argument, all of them.
fn captured<'a>(s: &Syscall, data: &'a [u8], arg: u8) -> Option<&'a [u8]> {
    let mut at = 0;
    for capture in captures(s) {
        let bytes = data.get(at..at + usize::from(capture.len))?;
        at += usize::from(capture.len);
        if capture.arg == arg {
            return ByteStatus::from_raw(capture.status).is_some_and(ByteStatus::is_whole).then_some(bytes);
        }
    }
    None
}
