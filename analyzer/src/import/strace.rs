//! `strace`'s logs as tapes.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use systape_abi::{Abi, ArgKind, Effect, SyscallDesc, describe, number};
use systape_format::model::{
    ByteStatus, Call, CallState, Checkpoint, ClockSample, End, Extent, Family, FdTable, ProcessEvent, ProcessKind,
    Session, SyscallRow, Task,
};

use super::body::CallResult;
use super::file::LogFile;
use super::logs::{LogClock, Logs, TimeForm};
use super::signals::LogSignal;
use super::stitch::{LogEvent, OpenCall, StitchedCall, Stitcher};
use super::survey::LogSurvey;
use super::tape::{LogCall, LogCounts, LogLife, LogTape, TakenSignal, of_size};
use super::threads::{FAMILIES, LogThread, LogThreads, comm_of_program};
use super::values::{ReadArgs, ReadFile, read};

/// Most threads that a tape begins with.
const MOST_FIRST: usize = 1 << 16;
/// Most names of calls that are told because nobody knows them.
const MOST_NAMES: usize = 5;
/// Most threads that took another's number and have not executed yet.
const MOST_TOOK: usize = 4096;
/// `PR_SET_NAME` (include/uapi/linux/prctl.h).
const PR_SET_NAME: u64 = 15;

/// What somebody says of a log who knows more than it has.
#[derive(Clone, Debug)]
pub(crate) struct LogFacts {
    /// The process of lines that name none.
    pub pid: Option<u32>,
    /// Midnight of the first day, ns since 1970.
    pub midnight: Option<u64>,
    /// ABI of its calls, and the machine's name as uname -m has it.
    pub native: (Abi, &'static str),
    /// The version of this program.
    pub version: String,
    /// What was imported, in words.
    pub target: String,
}

/// What became of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImportedLog {
    /// What was written.
    pub counts: LogCounts,
    /// Lines that are not strace's.
    pub foreign: u64,
    /// Names of calls that this version does not know, with their number.
    pub unknown: BTreeMap<String, u64>,
    /// Segments of the tape.
    pub segments: u32,
    /// What the log does not say, in words.
    pub notes: Vec<String>,
}

/// Writes the tape with a random `id` of `files` to `out`.
///
/// # Errors
/// A file cannot be read or is no log of strace's that can be dated, or the tape cannot be written.
pub(crate) fn import<W: Write>(files: &[LogFile], facts: &LogFacts, out: W, id: [u8; 16]) -> Result<(W, ImportedLog)> {
    let clock = LogClock::new(files, facts.midnight)?;
    let mut survey = LogSurvey::read(files, &clock, facts.pid)?;
    let mut threads = LogThreads::new(facts.native.0);
    // a call without a duration is told from one of before the tape by its beginning
    let first = survey.first.unwrap_or(0).saturating_sub(u64::from(!survey.durations));
    let notes = notes(&survey, facts);
    let session = session(&survey, facts, &notes, first);
    let checkpoint = checkpoint(&survey, &mut threads, session.clock);
    let tape = LogTape::begin(out, id, &session, &checkpoint)?;
    let root = survey.unborn.first().copied().filter(|_| survey.begins_with_exec);
    let (logs, sole) = (Logs::open(files, &clock)?, survey.sole);
    let imported = ImportedLog { notes, ..ImportedLog::default() };
    let failed = None;
    let mut import = Import {
        survey: &mut survey,
        threads,
        tape,
        imported,
        left: None,
        root,
        root_status: None,
        took: HashMap::new(),
        without_result: HashMap::new(),
        failed,
        line: 0,
    };
    let last = import.lines(logs, Stitcher::new(sole), first)?;
    import.finish(session.clock, last)
}

/// What the log does not say.
fn notes(survey: &LogSurvey, facts: &LogFacts) -> Vec<String> {
    let mut notes = Vec::new();
    let mut add = |is: bool, text: &str| notes.extend(is.then(|| text.to_owned()));
    add(
        !survey.durations,
        "strace ran without -T: how long a call took is known only where another's line came between its beginning and its end",
    );
    add(!survey.files, "strace ran without -y: files of descriptors are not known");
    add(survey.whole_seconds, "strace ran with -t: times are whole seconds");
    add(
        survey.form == Some(TimeForm::Day) && facts.midnight.is_none(),
        "strace ran with -t or -tt: the day is not known ('analyze import strace --day' says it), so no time of day is shown",
    );
    notes
}

fn session(survey: &LogSurvey, facts: &LogFacts, notes: &[String], first: u64) -> Session {
    let dated = survey.form == Some(TimeForm::Epoch) || facts.midnight.is_some();
    // the log has no other clock: its own stands for CLOCK_MONOTONIC
    let clock = ClockSample { monotonic: first, boottime: 0, realtime: if dated { first } else { 0 }, width: 0 };
    Session {
        clock,
        machine: facts.native.1.to_owned(),
        tool_version: facts.version.clone(),
        target: facts.target.clone(),
        window_open: first,
        families: FAMILIES.to_vec(),
        notes: notes.iter().map(|note| note.as_bytes().to_vec()).collect(),
        extent: Extent::Some,
        imported: "strace".to_owned(),
        ..Session::default()
    }
}

/// Who is there when the log begins.
fn checkpoint(survey: &LogSurvey, threads: &mut LogThreads, clock: ClockSample) -> Checkpoint {
    let tasks: Vec<Arc<Task>> = survey.unborn.iter().take(MOST_FIRST).map(|tid| threads.unborn(*tid)).collect();
    let table = |task: &Arc<Task>| {
        let cwd = survey.cwds.get(&task.tid)?.clone();
        Some(FdTable { upid: task.upid, cwd, ..FdTable::default() })
    };
    Checkpoint {
        ts: clock.monotonic,
        clock,
        fd_tables: tasks.iter().filter_map(table).collect(),
        tasks: tasks.iter().map(|task| (**task).clone()).collect(),
        source: "imported".to_owned(),
        ..Checkpoint::default()
    }
}

/// A log that is being written to a tape.
struct Import<'a, W: Write> {
    survey: &'a mut LogSurvey,
    threads: LogThreads,
    tape: LogTape<W>,
    imported: ImportedLog,
    /// A call that was open when its thread ended, or the log.
    left: Option<(u32, OpenCall)>,
    /// The process that strace started.
    root: Option<u32>,
    /// How that ended: its wait status.
    root_status: Option<i32>,
    /// Threads whose number another took that executed a program, and its number before.
    took: HashMap<u32, u32>,
    /// Calls that came back without a result: how their thread goes on says why.
    without_result: HashMap<u32, LogCall>,
    failed: Option<anyhow::Error>,
    /// Number of the line.
    line: u64,
}

impl<W: Write> Import<'_, W> {
    /// Reads all lines; the time of the last.
    fn lines(&mut self, mut logs: Logs<'_>, mut stitcher: Stitcher, first: u64) -> Result<u64> {
        let dated = self.survey.form.is_some();
        let mut last = first;
        while let Some(mut line) = logs.next()? {
            // before the first time: what strace said when it began
            line.ts = line.ts.max(first);
            last = last.max(line.ts);
            self.line = stitcher.lines + 1;
            stitcher.line(&line, dated, |tid, ts, event| self.take(tid, ts, event));
            self.settle_open(line.ts, None)?;
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            self.tape.reach(line.ts)?;
        }
        let rest: Vec<u32> = self.without_result.keys().copied().collect();
        rest.into_iter().try_for_each(|tid| self.settle(tid, CallState::NoReturn))?;
        // what waits may be later than the last line
        self.tape.drain()?;
        last = last.max(self.tape.latest());
        let mut open = Vec::new();
        stitcher.finish(last, |tid, _, event| {
            if let LogEvent::Open(call) = event {
                open.push((tid, call));
            }
        });
        for (tid, call) in open {
            self.open_call(tid, &call, last, CallState::InFlight)?;
        }
        Ok(last)
    }

    fn finish(self, first: ClockSample, last: u64) -> Result<(W, ImportedLog)> {
        let realtime = if first.realtime == 0 { 0 } else { last };
        let end = End {
            clock: ClockSample { monotonic: last, realtime, ..first },
            window_close: last,
            reason: "end of the log".to_owned(),
            command_exit: self.root_status.unwrap_or(-1),
            ..End::default()
        };
        let strangers = self.threads.strangers;
        let (out, segments, counts) = self.tape.finish(end)?;
        let mut imported = ImportedLog { counts, segments, ..self.imported };
        if strangers > 0 {
            imported
                .notes
                .push(format!("of {strangers} threads the log does not say who made them: each is shown as a process"));
        }
        Ok((out, imported))
    }

    /// Takes an event; an error is kept, because it comes out of a callback.
    fn take(&mut self, tid: u32, ts: u64, event: LogEvent<'_>) {
        if let Err(error) = self.event(tid, ts, event) {
            self.failed.get_or_insert(error);
        }
    }

    fn event(&mut self, tid: u32, ts: u64, event: LogEvent<'_>) -> Result<()> {
        match event {
            LogEvent::Call(call) => self.call(tid, ts, &call),
            LogEvent::Open(open) => {
                self.left = Some((tid, open));
                Ok(())
            }
            LogEvent::LostBegin { name, ts, result } => self.lost_begin(tid, name, ts, &result),
            LogEvent::Ended(code) => {
                self.settle_open(ts, Some(code))?;
                self.ended(tid, ts, code)
            }
            LogEvent::TookOver(by) => {
                self.settle_open(ts, Some(0))?;
                self.took_over(tid, by)
            }
            LogEvent::Bits(bits) => {
                if self.thread(tid, ts)?.is_some() {
                    self.threads.bits(tid, bits);
                }
                Ok(())
            }
            LogEvent::Named(comm) => {
                if self.thread(tid, ts)?.is_some() {
                    self.threads.named(tid, &comm);
                }
                Ok(())
            }
            LogEvent::NotUnderstood => self.strange(tid, ts, Family::Syscall),
            LogEvent::StrangeSignal => self.strange(tid, ts, Family::Signal),
            LogEvent::Foreign => {
                self.imported.foreign += 1;
                Ok(())
            }
            LogEvent::Signal(signal) => self.signal(tid, ts, signal),
            LogEvent::Other => Ok(()),
        }
    }

    /// The thread `tid`, with the event of its beginning if it is new. None: there is no such thread, or there are too many.
    fn thread(&mut self, tid: u32, ts: u64) -> Result<Option<LogThread>> {
        if tid == super::stitch::NOT_SAID {
            return Ok(None);
        }
        let Some((thread, made)) = self.threads.of(self.survey, tid, ts, self.line) else { return Ok(None) };
        if let Some(made) = made {
            let event = ProcessEvent { flags: made.flags, ..ProcessEvent::new(made.ts, ProcessKind::Fork, 0) };
            self.tape.life(LogLife { task: made.child, parent: made.parent, event })?;
        }
        Ok(Some(thread))
    }

    /// A line that is not understood: perhaps an event of `family`.
    fn strange(&mut self, tid: u32, ts: u64, family: Family) -> Result<()> {
        let pid = self.thread(tid, ts)?.map_or(0, |thread| thread.task.pid);
        self.tape.lost(ts, pid, family);
        Ok(())
    }

    /// The thread took a signal.
    fn signal(&mut self, tid: u32, ts: u64, signal: LogSignal) -> Result<()> {
        let Some(thread) = self.thread(tid, ts)? else {
            self.tape.lost(ts, 0, Family::Signal);
            return Ok(());
        };
        let sender = match signal.is_fault() {
            true => Some(Arc::clone(&thread.task)),
            false => signal.sender().and_then(|pid| self.threads.leader(pid)),
        };
        self.tape.signal(TakenSignal { task: thread.task, sender, event: signal.event(ts) })
    }

    /// The number and description of the call `name` of a thread with `abi`.
    fn named(&mut self, name: &[u8], abi: Abi) -> Option<(Call, Option<&'static SyscallDesc>)> {
        let text = std::str::from_utf8(name).ok()?;
        let by_number = || u32::from_str_radix(text.strip_prefix("syscall_0x")?, 16).ok();
        match number(abi, text).or_else(by_number) {
            Some(nr) => Some((Call { abi: abi as u8, nr }, describe(abi, nr))),
            None => {
                let known = self.imported.unknown.len() < 1000 || self.imported.unknown.contains_key(text);
                if known {
                    *self.imported.unknown.entry(text.to_owned()).or_default() += 1;
                }
                None
            }
        }
    }

    fn call(&mut self, tid: u32, ts: u64, call: &StitchedCall<'_>) -> Result<()> {
        let Some(thread) = self.thread(tid, call.begin)? else {
            self.tape.lost(ts, 0, Family::Syscall);
            return Ok(());
        };
        let Some((number, desc)) = self.named(call.name, thread.abi) else {
            self.tape.lost(ts, thread.task.pid, Family::Syscall);
            return Ok(());
        };
        let effect = desc.map_or(Effect::None, |desc| desc.effect);
        let result = &call.result;
        let mut read = read(desc, thread.abi, call.args, result, call.torn);
        sized(&mut read, desc);
        let dur = result.dur.or_else(|| call.end.map(|end| end.saturating_sub(call.begin)));
        let state = match (result.ret, result.errno, dur) {
            (None, 0, _) => CallState::NoReturn,
            // its end is not known, but a lower bound
            (_, _, None) => CallState::BeganBefore,
            _ => CallState::Complete,
        };
        let dur = dur.unwrap_or(0);
        let end = call.begin.saturating_add(dur);
        let failed = result.errno != 0;
        let ret = result.ret.filter(|_| !failed).unwrap_or(0);
        let opened = opened(desc, result);
        if effect == Effect::Clone && ret > 0 {
            let child = result.outer.or_else(|| u32::try_from(ret).ok());
            child.into_iter().for_each(|child| self.threads.is_made(child, call.line));
        }
        let success = result.ret.is_some() && !failed;
        let executed = (success && effect == Effect::Exec).then(|| executed(&read, end));
        let renamed = (success && call.name == b"prctl" && read.args[0] == PR_SET_NAME)
            .then(|| read.captured.iter().find(|(at, ..)| *at == 1).map(|(.., bytes)| bytes.clone()))
            .flatten();
        let row = SyscallRow { end, dur, ret, errno: result.errno, state, ..SyscallRow::default() };
        self.settle(tid, CallState::NoReturn)?;
        let written = LogCall { task: thread.task, call: number, row, read, opened };
        if state == CallState::NoReturn && effect != Effect::Exit {
            self.without_result.insert(tid, written);
            return Ok(());
        }
        self.tape.call(written)?;
        if let Some(event) = executed {
            self.executed(tid, event)?;
        }
        if let Some(comm) = renamed
            && let Some(task) = self.threads.named(tid, &comm)
        {
            let event = ProcessEvent { comm: task.comm.clone(), ..ProcessEvent::new(end, ProcessKind::Rename, 0) };
            self.tape.life(LogLife { parent: Arc::clone(&task), task, event })?;
        }
        Ok(())
    }

    /// Writes the call of `tid` that came back without a result.
    fn settle(&mut self, tid: u32, state: CallState) -> Result<()> {
        let Some(mut call) = self.without_result.remove(&tid) else { return Ok(()) };
        call.row.state = state;
        self.tape.call(call)
    }

    /// The thread executes another program.
    fn executed(&mut self, tid: u32, mut event: ProcessEvent) -> Result<()> {
        event.old_tid = self.took.remove(&tid).unwrap_or(0);
        if !event.path.is_empty() {
            self.threads.named(tid, comm_of_program(&event.path));
        }
        let Some(thread) = self.thread(tid, event.ts)? else { return Ok(()) };
        self.tape.life(LogLife { parent: Arc::clone(&thread.task), task: thread.task, event })
    }

    /// The end of a call whose beginning is missing: neither its arguments nor how long it took are known.
    fn lost_begin(&mut self, tid: u32, name: &[u8], ts: u64, result: &CallResult<'_>) -> Result<()> {
        let Some(thread) = self.thread(tid, ts)? else {
            self.tape.lost(ts, 0, Family::Syscall);
            return Ok(());
        };
        let Some((number, desc)) = self.named(name, thread.abi) else {
            self.tape.lost(ts, thread.task.pid, Family::Syscall);
            return Ok(());
        };
        let state = if result.ret.is_none() && result.errno == 0 { CallState::NoReturn } else { CallState::LostEnter };
        let ret = result.ret.filter(|_| result.errno == 0).unwrap_or(0);
        let row = SyscallRow { end: ts, ret, errno: result.errno, state, ..SyscallRow::default() };
        let (read, opened) = (ReadArgs::nothing(desc), opened(desc, result));
        self.tape.call(LogCall { task: thread.task, call: number, row, read, opened })
    }

    /// Writes the call that was open when its thread ended with `code`, or was taken over.
    fn settle_open(&mut self, ts: u64, code: Option<u32>) -> Result<()> {
        let Some((tid, open)) = self.left.take() else { return Ok(()) };
        let killed = code.is_some_and(|code| code & 0x7f != 0);
        self.open_call(tid, &open, ts, if killed { CallState::Killed } else { CallState::NoReturn })
    }

    fn open_call(&mut self, tid: u32, open: &OpenCall, ts: u64, state: CallState) -> Result<()> {
        let Some(thread) = self.thread(tid, open.begin)? else {
            self.tape.lost(ts, 0, Family::Syscall);
            return Ok(());
        };
        let Some((number, desc)) = self.named(&open.name, thread.abi) else {
            self.tape.lost(ts, thread.task.pid, Family::Syscall);
            return Ok(());
        };
        // what the call had not printed yet is not known
        let mut read = read(desc, thread.abi, &open.args, &CallResult::default(), open.torn);
        let printed = super::body::split_list(&open.args).len();
        let count = desc.map_or(6, |desc| desc.args.len().min(6));
        for at in printed.min(count)..count {
            read.unknown |= 1 << at;
            read.args[at] = 0;
        }
        let row = SyscallRow { end: ts, dur: ts.saturating_sub(open.begin), state, ..SyscallRow::default() };
        self.tape.call(LogCall { task: thread.task, call: number, row, read, opened: ReadFile::None })
    }

    fn ended(&mut self, tid: u32, ts: u64, code: u32) -> Result<()> {
        if self.thread(tid, ts)?.is_none() {
            return Ok(());
        }
        self.settle(tid, if code & 0x7f != 0 { CallState::Killed } else { CallState::NoReturn })?;
        if self.root == Some(tid) {
            self.root_status = i32::try_from(code).ok();
        }
        let Some((task, last)) = self.threads.ended(tid) else { return Ok(()) };
        let event = ProcessEvent { exit_code: code, group_dead: last, ..ProcessEvent::new(ts, ProcessKind::Exit, 0) };
        self.tape.life(LogLife { parent: Arc::clone(&task), task, event })
    }

    /// Thread `by` executed a program and goes on under the number `tid`, whose thread is gone.
    fn took_over(&mut self, tid: u32, by: u32) -> Result<()> {
        self.threads.took_over(tid, by);
        if self.took.len() < MOST_TOOK {
            self.took.insert(tid, by);
        }
        Ok(())
    }
}

/// The event of a program that was executed.
fn executed(read: &ReadArgs, ts: u64) -> ProcessEvent {
    let of = |arg: u8| read.captured.iter().find(|(at, ..)| *at == arg);
    // execveat has a descriptor in front
    let shift = u8::from(of(0).is_none());
    let mut event =
        ProcessEvent { argv_status: ByteStatus::NotResident, ..ProcessEvent::new(ts, ProcessKind::Exec, 0) };
    if let Some((.., path)) = of(shift) {
        event.path.clone_from(path);
    }
    if let Some((_, status, full, argv)) = of(shift + 1) {
        (event.argv, event.argv_status, event.argv_full) = (argv.clone(), *status, *full);
    }
    event
}

/// The file that a call opened, as `-y` writes it behind the result.
fn opened(desc: Option<&SyscallDesc>, result: &CallResult<'_>) -> ReadFile {
    let opens =
        desc.is_some_and(|desc| matches!(desc.name, "open" | "openat" | "openat2" | "creat" | "open_by_handle_at"));
    match super::text::with_file(result.value) {
        (_, Some(name)) if opens && result.errno == 0 => ReadFile::Named(name),
        _ => ReadFile::None,
    }
}

/// Gives what was written, and cut in the log, its full length.
fn sized(read: &mut ReadArgs, desc: Option<&SyscallDesc>) {
    let Some(desc) = desc else { return };
    for (at, status, full, bytes) in &mut read.captured {
        if let Some(ArgKind::BufIn { len_arg }) = desc.args.get(usize::from(*at)).map(|arg| arg.kind) {
            let known = read.unknown >> len_arg & 1 == 0;
            let size = read.args.get(usize::from(len_arg)).copied().filter(|_| known).unwrap_or(0);
            (*status, *full) = of_size(*status, size, bytes.len());
        }
    }
}

/// The names of calls that are not known, for a message; empty: there are none.
pub(crate) fn unknown_names(imported: &ImportedLog) -> String {
    let mut names: Vec<&str> = imported.unknown.keys().take(MOST_NAMES).map(String::as_str).collect();
    if imported.unknown.len() > MOST_NAMES {
        names.push("...");
    }
    names.join(", ")
}
