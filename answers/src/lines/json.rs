//! The listing as JSON, one object a line; [`super::tables`] has its fields.
//!
//! Parts common to all rows of a thread or a call are written once per segment and copied. Values that may exceed the
//! 53 bits of a JSON number (addresses, offsets, lengths) are always strings, so a field has one type.

pub mod args;

use std::fmt::Write as _;

use systape_format::model::{CPU_NONE, Gap, GapCause, Session, Task, UID_UNKNOWN};

use self::args::Arguments;
use super::row::{self, CallOutcome, Duration};
use super::tables::LOSSES;
use super::{LineFormat, SegmentLines};
use crate::render::cell::Cell;
use crate::render::form::{Form, Format};
use crate::render::json::string;
use crate::render::label::TapeLabel;
use crate::render::row::{Row, some};
use crate::render::sink::Sink;
use systape_events::calls::CallInfo;
use systape_events::load::Loaded;
use systape_events::loss::{self, Hole};
use systape_events::values::clock::{self, Clock};
use systape_events::values::num;

/// JSON listing.
#[derive(Debug)]
pub struct Json<'a> {
    session: &'a Session,
    clock: Clock,
    /// `{"ts_ns":`, and between them what stands before the columns of a call.
    begin: Vec<u8>,
    losses: Sink,
}

impl<'a> Json<'a> {
    /// Lines of the tape of `session` behind the columns of `label`.
    pub fn new(session: &'a Session, clock: Clock, label: &TapeLabel) -> Self {
        let begin = [b"{", &*label.lead(Format::Json), b"\"ts_ns\":"].concat();
        Self { session, clock, begin, losses: Sink::new(Form::Json, &LOSSES, label) }
    }

    fn loss(&self, row: &Row<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.losses.row(&mut out, row);
        out
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
            part
        };
        let tasks = segment.dict.tasks.iter().map(|task| task_part(task, self.session)).collect();
        let calls = segment.calls.iter().map(call).collect();
        Box::new(JsonLines { form: self, segment, tasks, calls, args: Arguments::new(segment) })
    }

    fn gap(&self, gap: &Gap) -> Vec<u8> {
        self.loss(&gap_row(gap, self.session))
    }

    fn hole(&self, hole: &Hole) -> Vec<u8> {
        let since = |ts: u64| ts.wrapping_sub(self.session.window_open) as i64;
        let mut row = Row::new(&LOSSES);
        row.set("lost", Some(hole.rows).filter(|rows| *rows != u32::MAX)).set("family", "syscall");
        row.set("cause", "unreadable").set("cpu", Cell::Null).set("pid", Cell::Null);
        row.set("segment", hole.segment).set("why", &*hole.why);
        row.set("ts_ns", since(hole.first)).set("until_ns", since(hole.last)).set("ledger", false);
        self.loss(&row)
    }
}

/// The row of `gap` in the tape of `session`.
pub fn gap_row(gap: &Gap, session: &Session) -> Row<'static> {
    let since = |ts: u64| (gap.last != 0).then_some(ts.wrapping_sub(session.window_open) as i64);
    let count = match gap.count {
        // the calls are there
        _ if gap.cause == GapCause::DetailDamaged => Some(0),
        0 => None,
        count => Some(count),
    };
    let mut row = Row::new(&LOSSES);
    row.set("lost", count).set("family", loss::family_name(gap.family)).set("cause", gap.cause.name());
    row.set("cpu", Some(gap.cpu).filter(|cpu| *cpu != CPU_NONE)).set("pid", some(gap.pid));
    row.set("segment", Cell::Null).set("why", Cell::Null);
    row.set("ts_ns", since(gap.first)).set("until_ns", since(gap.last)).set("ledger", gap.ledger);
    row
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

struct JsonLines<'a> {
    form: &'a Json<'a>,
    segment: &'a Loaded,
    tasks: Vec<Vec<u8>>,
    /// `,"abi":…,"args":` of each call.
    calls: Vec<Vec<u8>>,
    args: Arguments<'a>,
}

impl SegmentLines for JsonLines<'_> {
    fn row(&mut self, out: &mut Vec<u8>, row: usize, more: &[u8]) {
        let segment = self.segment;
        let start = segment.time.start[row];
        out.extend_from_slice(&self.form.begin);
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
        out.extend_from_slice(&self.calls[segment.core.call[row] as usize]);
        self.args.write(out, row);
        self.result(out, row);
        out.extend_from_slice(more);
        out.extend_from_slice(b"}\n");
    }
}

impl JsonLines<'_> {
    fn result(&self, out: &mut Vec<u8>, row: usize) {
        let call = self.segment.call(row);
        let outcome = row::outcome(self.segment, row);
        out.extend_from_slice(b",\"ret\":");
        match outcome {
            CallOutcome::Ret(ret) if call.name.ends_with("seek") => {
                let _ = write!(ByteText(out), "\"{ret}\"");
            }
            CallOutcome::Ret(ret) if row::wide_ret(call) => {
                let _ = write!(ByteText(out), "\"{ret:#x}\"");
            }
            CallOutcome::Ret(ret) => num::signed(out, ret),
            CallOutcome::Errno(_) => out.extend_from_slice(b"-1"),
            _ => out.extend_from_slice(b"null"),
        }
        let incomplete = row::incomplete(self.segment.core.state[row]);
        if matches!((&outcome, incomplete), (CallOutcome::Ret(_), None)) {
            return out.extend_from_slice(b",\"errno\":null,\"errno_code\":null,\"incomplete\":null");
        }
        out.extend_from_slice(b",\"errno\":");
        if let CallOutcome::Errno(errno) | CallOutcome::Restart(errno) = outcome {
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

/// Lets `write!` append to a byte buffer; it never fails.
struct ByteText<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for ByteText<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
