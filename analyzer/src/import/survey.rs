//! The first reading of a log: who made whom, which the lines of a child do not say, and what the log has at all.

use std::collections::{HashMap, HashSet, VecDeque};

use anyhow::{Result, bail};
use systape_abi::{Abi, describe_name};
use systape_format::model::ByteStatus;

use super::body::CallResult;
use super::file::LogFile;
use super::logs::{LogClock, Logs, TimeForm, WANTED};
use super::stitch::{LogEvent, NOT_SAID, StitchedCall, Stitcher};
use super::text::with_file;
use super::values;

/// Most threads whose beginnings are remembered.
const MOST: usize = 1 << 20;
/// `CLONE_VM | CLONE_VFORK`: what vfork does.
const VFORK: u64 = 0x4100;

/// A call that made a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Birth {
    /// Number of the line with the beginning of the call.
    pub line: u64,
    /// When the call returned.
    pub done: u64,
    /// The thread that made it.
    pub parent: u32,
    /// The flags of clone.
    pub flags: u64,
}

/// What a log has.
#[derive(Debug, Default)]
pub(super) struct LogSurvey {
    /// Calls that made threads, by the number of the new one, in order of their lines.
    pub births: HashMap<u32, VecDeque<Birth>>,
    /// Number of all births.
    births_in_all: usize,
    /// Time of the first line; None: no line has one.
    pub first: Option<u64>,
    /// The thread of lines that name none, if the log or somebody says it.
    pub sole: Option<u32>,
    /// Threads of the log that no call of it made.
    pub unborn: Vec<u32>,
    /// The directories of those, as far as lines said them before they changed.
    pub cwds: HashMap<u32, Vec<u8>>,
    /// Calls of the log.
    pub calls: u64,
    /// Some calls say how long they took.
    pub durations: bool,
    /// Some descriptors have the names of their files.
    pub files: bool,
    /// What its times are.
    pub form: Option<TimeForm>,
    /// Whether times are whole seconds.
    pub whole_seconds: bool,
    /// The first call of the log executes a program.
    pub begins_with_exec: bool,
}

impl LogSurvey {
    /// Reads the `logs` once. `sole`: the thread of lines that name none, if that is known.
    ///
    /// # Errors
    /// A file cannot be read, its lines cannot be dated, or do not say whose they are.
    pub(super) fn read(files: &[LogFile], clock: &LogClock, sole: Option<u32>) -> Result<Self> {
        let mut survey = Self::default();
        let mut logs = Logs::open(files, clock)?;
        let mut stitcher = Stitcher::new(sole);
        let mut collected = SurveyNotes::default();
        let mut last = 0;
        while let Some(line) = logs.next()? {
            if line.timed {
                survey.first.get_or_insert(line.ts);
                last = line.ts;
            }
            let dated = logs.form.is_some();
            stitcher.line(&line, dated, |tid, _, event| survey.event(&mut collected, tid, &event));
            // the program's C library asks for the number at once
            if let (None, Some(tid)) = (stitcher.sole, collected.number.take()) {
                stitcher.is_named(tid);
            }
        }
        let (sole, nameless) = (stitcher.sole, stitcher.nameless);
        let attached: HashSet<u32> = collected.seen.iter().copied().filter(|tid| stitcher.was_attached(*tid)).collect();
        stitcher.finish(last, |tid, _, event| survey.event(&mut collected, tid, &event));
        (survey.form, survey.whole_seconds) = (logs.form, logs.whole_seconds);
        if survey.calls == 0 {
            bail!("no line is a call of strace's: {WANTED}");
        }
        if survey.first.is_none() {
            bail!("its lines have no times, so that nothing is dated: {WANTED}");
        }
        let unborn = |tid: &&u32| **tid != NOT_SAID && !survey.births.contains_key(*tid);
        let mut order: Vec<u32> = collected.order.iter().filter(unborn).copied().collect();
        survey.sole = sole.or_else(|| order.iter().find(|tid| !attached.contains(*tid)).copied());
        if nameless && survey.sole.is_none() {
            bail!("its lines do not say of which process they are: name its number with --of-pid");
        }
        if let (true, Some(sole)) = (nameless, survey.sole) {
            survey.is_named(sole);
            if !survey.births.contains_key(&sole) && !order.contains(&sole) {
                order.insert(0, sole);
            }
        }
        survey.cwds.retain(|tid, _| order.contains(tid) && order.len() < 1000);
        survey.unborn = order;
        Ok(survey)
    }

    /// What was of the thread without a number is of `sole`.
    fn is_named(&mut self, sole: u32) {
        for birth in self.births.values_mut().flatten().filter(|birth| birth.parent == NOT_SAID) {
            birth.parent = sole;
        }
        if let Some(cwd) = self.cwds.remove(&NOT_SAID) {
            self.cwds.insert(sole, cwd);
        }
    }

    fn event(&mut self, collected: &mut SurveyNotes, tid: u32, event: &LogEvent<'_>) {
        if matches!(event, LogEvent::Call(_) | LogEvent::Open(_) | LogEvent::LostBegin { .. } | LogEvent::Ended(_))
            && collected.order.len() < MOST
            && collected.seen.insert(tid)
        {
            collected.order.push(tid);
        }
        match event {
            LogEvent::Call(call) => self.call(collected, tid, call),
            LogEvent::LostBegin { name, ts, result } => {
                self.calls += 1;
                // on which line it began is not known
                self.made(name, &[], result, (tid, 0, *ts));
            }
            _ => {}
        }
    }

    fn call(&mut self, collected: &mut SurveyNotes, tid: u32, call: &StitchedCall<'_>) {
        if self.calls == 0 {
            self.begins_with_exec = call.name == b"execve";
        }
        self.calls += 1;
        self.durations |= call.result.dur.is_some();
        self.files |= call.args.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'A')
            && with_file(call.args.split(|byte| *byte == b',').next().unwrap_or_default()).1.is_some();
        match call.name {
            b"clone" | b"clone3" | b"fork" | b"vfork" => {
                let end = call.begin.saturating_add(call.result.dur.unwrap_or(0));
                self.made(call.name, call.args, &call.result, (tid, call.line, call.end.unwrap_or(end)));
            }
            b"set_tid_address" | b"gettid" if tid == NOT_SAID => {
                collected.number = call.result.ret.and_then(|ret| u32::try_from(ret).ok()).filter(|tid| *tid > 0);
            }
            b"chdir" | b"fchdir" => _ = collected.moved.insert(tid),
            _ if call.args.starts_with(b"AT_FDCWD<") && self.cwds.len() < 1000 && !collected.moved.contains(&tid) => {
                let first = super::body::split_list(call.args).first().copied().unwrap_or_default();
                if let (_, Some(cwd)) = with_file(first) {
                    self.cwds.entry(tid).or_insert(cwd);
                }
            }
            _ => {}
        }
    }

    /// A call that may have made a thread.
    fn made(&mut self, name: &[u8], args: &[u8], result: &CallResult<'_>, (parent, line, done): (u32, u64, u64)) {
        if !matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork") || self.births_in_all >= MOST {
            return;
        }
        let ret = result.ret.and_then(|ret| u32::try_from(ret).ok());
        let Some(child) = result.outer.or(ret).filter(|child| *child > 0) else { return };
        let flags = clone_flags(name, args, result);
        let births = self.births.entry(child).or_default();
        let birth = Birth { line, done, parent, flags };
        let at = births.partition_point(|other| other.line <= line);
        // a number is used again after thousands of others
        if births.len() < 1000 && self.births_in_all < MOST {
            self.births_in_all += 1;
            births.insert(at, birth);
        }
    }
}

/// The flags of a call that made a thread.
fn clone_flags(name: &[u8], args: &[u8], result: &CallResult<'_>) -> u64 {
    match name {
        b"fork" => 0,
        b"vfork" => VFORK,
        _ => {
            let desc = std::str::from_utf8(name).ok().and_then(describe_name);
            let read = values::read(desc, Abi::X86_64, args, result, false);
            let given = read.captured.iter().find(|(at, status, ..)| *at == 0 && *status == ByteStatus::Whole);
            let captured =
                given.and_then(|(.., bytes)| bytes.first_chunk::<8>()).map(|flags| u64::from_le_bytes(*flags));
            captured.unwrap_or(if name == b"clone" { read.args[0] } else { 0 })
        }
    }
}

/// What is remembered while a log is read.
#[derive(Debug, Default)]
struct SurveyNotes {
    /// Threads in order of their first lines.
    order: Vec<u32>,
    seen: HashSet<u32>,
    /// Threads whose directory changed.
    moved: HashSet<u32>,
    /// What the thread without a number said its number is.
    number: Option<u32>,
}
