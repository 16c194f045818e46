//! The listing as JSON, one object a line; [`super::tables`] has its fields.
//!
//! Parts common to all rows of a thread or a call are written once per segment and copied. Values that may exceed the
//! 53 bits of a JSON number (addresses, offsets, lengths) are always strings, so a field has one type.

use std::fmt::Write as _;

use systape_abi::{ArgKind, FlagStyle};
use systape_format::model::{CPU_NONE, Captured, Gap, GapCause, SECOND_VALUE, Session, Task, UID_UNKNOWN};

use super::row::{self, Duration, Outcome};
use super::tables::LOSSES;
use super::value::{self, Scratch};
use super::{LineFormat, SegmentLines};
use crate::render::cell::Cell;
use crate::render::form::Form;
use crate::render::json::{lossy_string, string};
use crate::render::row::{Row, some};
use crate::render::sink::Sink;
use crate::table::calls::{ArgInfo, CallInfo};
use crate::table::load::{FdPath, Loaded};
use crate::table::loss::{self, Hole};
use crate::values::clock::{self, Clock};
use crate::values::num;

/// JSON listing.
#[derive(Debug)]
pub(crate) struct Json<'a> {
    session: &'a Session,
    clock: Clock,
}

impl<'a> Json<'a> {
    /// Lines of the tape of `session`.
    pub(crate) fn new(session: &'a Session, clock: Clock) -> Self {
        Self { session, clock }
    }
}

fn optional(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        Some(text) => string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

impl LineFormat for Json<'_> {
    fn segment<'a>(&'a self, segment: &'a Loaded) -> Box<dyn SegmentLines + 'a> {
        let host = Some(&*self.session.hostname).filter(|host| !host.is_empty());
        let call = |info: &std::sync::Arc<CallInfo>| {
            let mut part = format!(",\"abi\":\"{}\",\"host\":", info.abi).into_bytes();
            optional(&mut part, host);
            part.extend_from_slice(b",\"syscall\":");
            string(&mut part, info.name.as_bytes());
            part.extend_from_slice(b",\"args\":");
            CallPart { part, keys: argument_keys(info) }
        };
        let tasks = segment.dict.tasks.iter().map(|task| task_part(task, self.session)).collect();
        let calls = segment.calls.iter().map(call).collect();
        Box::new(JsonLines { form: self, segment, tasks, calls, scratch: Scratch::default(), text: Vec::new() })
    }

    fn gap(&self, gap: &Gap) -> Vec<u8> {
        let since = |ts: u64| (gap.last != 0).then_some(ts.wrapping_sub(self.session.window_open) as i64);
        let count = match gap.count {
            // the calls are there
            _ if gap.cause == GapCause::DetailDamaged => Some(0),
            0 => None,
            count => Some(count),
        };
        let mut row = Row::new(&LOSSES);
        row.set("lost", count).set("family", loss::family_name(gap.family)).set("cause", loss::cause_name(gap.cause));
        row.set("cpu", Some(gap.cpu).filter(|cpu| *cpu != CPU_NONE)).set("pid", some(gap.pid));
        row.set("segment", Cell::Null).set("why", Cell::Null);
        row.set("ts_ns", since(gap.first)).set("until_ns", since(gap.last)).set("ledger", gap.ledger);
        line(&row)
    }

    fn hole(&self, hole: &Hole) -> Vec<u8> {
        let since = |ts: u64| ts.wrapping_sub(self.session.window_open) as i64;
        let mut row = Row::new(&LOSSES);
        row.set("lost", Some(hole.rows).filter(|rows| *rows != u32::MAX)).set("family", "syscall");
        row.set("cause", "unreadable").set("cpu", Cell::Null).set("pid", Cell::Null);
        row.set("segment", hole.segment).set("why", &*hole.why);
        row.set("ts_ns", since(hole.first)).set("until_ns", since(hole.last)).set("ledger", false);
        line(&row)
    }
}

fn line(row: &Row<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Sink::new(Form::Json, row.table()).row(&mut out, row);
    out
}

/// `,"pid":…,…,"cgroup":…` of a thread.
fn task_part(task: &Task, session: &Session) -> Vec<u8> {
    let mut part =
        format!(",\"pid\":{},\"tid\":{},\"upid\":{},\"utid\":{},\"comm\":", task.pid, task.tid, task.upid, task.utid)
            .into_bytes();
    string(&mut part, &task.comm);
    part.extend_from_slice(b",\"uid\":");
    if task.uid == UID_UNKNOWN {
        part.extend_from_slice(b"null");
    } else {
        num::unsigned(&mut part, u64::from(task.uid));
    }
    part.extend_from_slice(b",\"cgroup\":");
    optional(&mut part, session.cgroup_path(task.cgroup_id));
    part
}

/// The parts common to all rows of a call.
struct CallPart {
    /// `,"abi":…,"args":`.
    part: Vec<u8>,
    /// `{"fd":`, `,"count":` of each argument; empty: it is half of the one before.
    keys: Vec<Vec<u8>>,
}

fn argument_keys(call: &CallInfo) -> Vec<Vec<u8>> {
    let mut before = '{';
    let key = |arg: &ArgInfo| {
        if matches!(arg.kind, ArgKind::HighHalf) {
            return Vec::new();
        }
        format!("{}\"{}\":", std::mem::replace(&mut before, ','), arg.name).into_bytes()
    };
    call.args.iter().map(key).collect()
}

struct JsonLines<'a> {
    form: &'a Json<'a>,
    segment: &'a Loaded,
    tasks: Vec<Vec<u8>>,
    calls: Vec<CallPart>,
    scratch: Scratch,
    text: Vec<u8>,
}

impl SegmentLines for JsonLines<'_> {
    fn row(&mut self, out: &mut Vec<u8>, row: usize) {
        let segment = self.segment;
        let start = segment.time.start[row];
        out.extend_from_slice(b"{\"ts_ns\":");
        num::signed(out, start.wrapping_sub(self.form.session.window_open) as i64);
        match self.form.clock.real(start) {
            Some(real) => {
                out.extend_from_slice(b",\"time\":\"");
                clock::write_real(out, real);
                match real.uncertain() {
                    Some(ns) => {
                        out.extend_from_slice(b"\",\"time_uncertain_ns\":");
                        num::unsigned(out, ns);
                        out.extend_from_slice(b",\"dur_ns\":");
                    }
                    None => out.extend_from_slice(b"\",\"time_uncertain_ns\":null,\"dur_ns\":"),
                }
            }
            None => out.extend_from_slice(b",\"time\":null,\"time_uncertain_ns\":null,\"dur_ns\":"),
        }
        match row::duration(segment, row) {
            Duration::Exact(ns) => {
                num::unsigned(out, ns);
                out.extend_from_slice(b",\"dur_ns_at_least\":false,\"cpu\":");
            }
            Duration::AtLeast(ns) => {
                num::unsigned(out, ns);
                out.extend_from_slice(b",\"dur_ns_at_least\":true,\"cpu\":");
            }
            Duration::Unknown => out.extend_from_slice(b"null,\"dur_ns_at_least\":null,\"cpu\":"),
        }
        match segment.time.cpu.get(row) {
            Some(cpu) => num::unsigned(out, u64::from(*cpu)),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(&self.tasks[segment.core.task[row] as usize]);
        out.extend_from_slice(&self.calls[segment.core.call[row] as usize].part);
        self.arguments(out, row);
        self.result(out, row);
        out.extend_from_slice(b"}\n");
    }
}

impl JsonLines<'_> {
    fn arguments(&mut self, out: &mut Vec<u8>, row: usize) {
        let segment = self.segment;
        let call = segment.call(row);
        let Some(args) = segment.args.args.get(row) else {
            return out.extend_from_slice(b"null");
        };
        let captured = segment.captured(row);
        let begin = out.len();
        let code = segment.core.call[row] as usize;
        for at in 0..call.args.len() {
            let key = &self.calls[code].keys[at];
            if key.is_empty() {
                continue;
            }
            out.extend_from_slice(key);
            let value = |arg: usize| captured.iter().find(|c| usize::from(c.arg) == arg);
            let after = value(at | usize::from(SECOND_VALUE));
            match (value(at), call.args[at].kind) {
                (before, ArgKind::InOut(_)) if before.or(after).is_some() => {
                    self.before_and_after(out, row, at, (before, after), args);
                }
                (Some(value), _) => self.captured(out, row, at, value, args[at]),
                (None, kind) if value::is_empty_array(segment, row, kind) => out.extend_from_slice(b"\"[]\""),
                (None, _) => self.scalar(out, call, at, args, row),
            }
        }
        if out.len() == begin {
            out.push(b'{');
        }
        out.push(b'}');
    }

    /// A value without captured bytes.
    fn scalar(&mut self, out: &mut Vec<u8>, call: &CallInfo, at: usize, args: &[u64; 6], row: usize) {
        let kind = call.args[at].kind;
        let raw = value::narrow(kind, args[at]);
        if matches!(kind, ArgKind::Fd | ArgKind::DirFd) {
            return self.fd(out, call, at, raw as i64, row);
        }
        if raw == 0 && matches!(kind, ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::Argv | ArgKind::Envp)
        {
            return out.extend_from_slice(b"null");
        }
        let set = value::flag_set(call, at, args);
        if set.is_some() || matches!(kind, ArgKind::Mode | ArgKind::Signal | ArgKind::Dev | ArgKind::SockOpt { .. }) {
            out.extend_from_slice(b"{\"value\":");
            if set.is_some_and(|set| set.wide) {
                let _ = write!(Text(out), "\"{raw}\"");
            } else {
                num::unsigned(out, raw & 0xffff_ffff);
            }
            out.extend_from_slice(b",\"text\":\"");
            value::scalar(out, &mut self.scratch, call, at, args, FlagStyle::FULL);
            return out.extend_from_slice(b"\"}");
        }
        let number = matches!(
            kind,
            ArgKind::Int | ArgKind::UInt | ArgKind::Pid | ArgKind::Uid | ArgKind::Gid | ArgKind::TimeoutMs
        );
        if !number {
            out.push(b'"');
        }
        value::scalar(out, &mut self.scratch, call, at, args, FlagStyle::FULL);
        if !number {
            out.push(b'"');
        }
    }

    fn fd(&mut self, out: &mut Vec<u8>, call: &CallInfo, at: usize, fd: i64, row: usize) {
        out.extend_from_slice(b"{\"fd\":");
        num::signed(out, fd);
        out.extend_from_slice(b",\"path\":");
        let path = match self.segment.fd_path(row, at) {
            FdPath::Known(path) => Some(path),
            _ => None,
        };
        optional(out, path);
        if fd == i64::from(value::AT_FDCWD) && matches!(call.args[at].kind, ArgKind::DirFd) {
            out.extend_from_slice(b",\"text\":\"AT_FDCWD\"");
        }
        out.push(b'}');
    }

    /// A captured value: plain when it is whole and UTF-8, else an object that says what is missing.
    fn captured(&mut self, out: &mut Vec<u8>, row: usize, at: usize, value: &Captured, addr: u64) {
        let kind = self.segment.call(row).args[at].kind;
        let whole = value.status.is_whole();
        if let (ArgKind::FdPair, true, Some([a, b])) = (kind, whole, value::two_fds(&value.bytes)) {
            let _ = write!(Text(out), "[{a},{b}]");
            return;
        }
        let plain = whole && std::str::from_utf8(&value.bytes).is_ok();
        match kind {
            ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. } if whole => {
                return string(out, systape_abi::sockaddr_text(&value.bytes).as_bytes());
            }
            ArgKind::Argv | ArgKind::Envp if plain => return words(out, &value.bytes),
            ArgKind::Path | ArgKind::FileName | ArgKind::Str if plain => return string(out, &value.bytes),
            ArgKind::BufIn { .. } | ArgKind::BufOut if plain => return string(out, &value.bytes),
            kind if whole && kind.structure().is_some() => {
                self.text.clear();
                value::captured(&mut self.text, &mut self.scratch, self.segment, (row, at), value, FlagStyle::FULL);
                return string(out, &self.text);
            }
            _ => {}
        }
        self.partial(out, row, at, value, addr);
    }

    /// A structure that the kernel overwrites: `{"before":…,"after":…}`, the latter null when it did not.
    fn before_and_after(
        &mut self,
        out: &mut Vec<u8>,
        row: usize,
        at: usize,
        (before, after): (Option<&Captured>, Option<&Captured>),
        args: &[u64; 6],
    ) {
        out.extend_from_slice(b"{\"before\":");
        match before {
            Some(before) => self.captured(out, row, at, before, args[at]),
            None => self.scalar(out, self.segment.call(row), at, args, row),
        }
        out.extend_from_slice(b",\"after\":");
        match after {
            Some(after) => self.captured(out, row, at, after, args[at]),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }

    fn partial(&mut self, out: &mut Vec<u8>, row: usize, at: usize, value: &Captured, addr: u64) {
        let kind = self.segment.call(row).args[at].kind;
        if value.status.has_bytes() {
            self.text.clear();
            match kind {
                ArgKind::Path | ArgKind::FileName | ArgKind::Str | ArgKind::BufIn { .. } | ArgKind::BufOut => {
                    self.text.extend_from_slice(&value.bytes)
                }
                _ => {
                    value::captured(&mut self.text, &mut self.scratch, self.segment, (row, at), value, FlagStyle::FULL);
                }
            }
            out.extend_from_slice(b"{\"text\":");
            lossy_string(out, &self.text);
            out.extend_from_slice(b",\"hex\":\"");
            for byte in &value.bytes {
                let _ = write!(Text(out), "{byte:02x}");
            }
            out.push(b'"');
        } else {
            out.extend_from_slice(b"{\"text\":null,\"hex\":null");
        }
        out.extend_from_slice(b",\"len\":");
        match value.full {
            0 => out.extend_from_slice(b"null"),
            full => num::unsigned(out, full),
        }
        out.extend_from_slice(b",\"missing\":");
        optional(out, value::missing(value.status).map(str::as_bytes));
        let _ = write!(Text(out), ",\"addr\":\"{addr:#x}\"}}");
    }

    fn result(&self, out: &mut Vec<u8>, row: usize) {
        let call = self.segment.call(row);
        let outcome = row::outcome(self.segment, row);
        out.extend_from_slice(b",\"ret\":");
        match outcome {
            Outcome::Ret(ret) if call.name.ends_with("seek") => {
                let _ = write!(Text(out), "\"{ret}\"");
            }
            Outcome::Ret(ret) if row::wide_ret(call) => {
                let _ = write!(Text(out), "\"{ret:#x}\"");
            }
            Outcome::Ret(ret) => num::signed(out, ret),
            Outcome::Errno(_) => out.extend_from_slice(b"-1"),
            _ => out.extend_from_slice(b"null"),
        }
        let incomplete = row::incomplete(self.segment.core.state[row]);
        if matches!((&outcome, incomplete), (Outcome::Ret(_), None)) {
            return out.extend_from_slice(b",\"errno\":null,\"errno_code\":null,\"incomplete\":null");
        }
        out.extend_from_slice(b",\"errno\":");
        if let Outcome::Errno(errno) | Outcome::Restart(errno) = outcome {
            optional(out, systape_abi::errno_name(errno).map(str::as_bytes));
            out.extend_from_slice(b",\"errno_code\":");
            num::unsigned(out, u64::from(errno));
        } else {
            out.extend_from_slice(b"null,\"errno_code\":null");
        }
        out.extend_from_slice(b",\"incomplete\":");
        optional(out, incomplete.map(str::as_bytes));
    }
}

/// `["ls","-l"]`.
fn words(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'[');
    for (at, word) in bytes.split(|b| *b == 0).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, word);
    }
    out.push(b']');
}

/// Lets `write!` append to a byte buffer; it never fails.
struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
