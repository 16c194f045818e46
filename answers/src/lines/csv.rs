//! The listing as CSV (RFC 4180): a header line, then the fields of the JSON form; `args` is the text of the listing with full names.

use systape_abi::FlagStyle;
use systape_format::model::{Gap, Session, UID_UNKNOWN};

use super::row::{self, CallOutcome, Duration};
use super::tables::CALLS;
use super::text::{self as line, Look};
use super::value::ValueScratch;
use super::{LineFormat, SegmentLines};
use crate::derive::stacks::lines::STACK;
use crate::render::csv::field;
use crate::render::form::{Form, Format};
use crate::render::label::TapeLabel;
use crate::render::sink::Sink;
use systape_events::load::Loaded;
use systape_events::loss::Hole;
use systape_events::values::clock::{self, Clock};
use systape_events::values::num;

/// Arguments as CSV shows them: all of them, with full names.
const LOOK: Look = Look { no_comm: false, show_zeros: true, style: FlagStyle::FULL, color: false };

/// CSV listing. Gaps have no column: they are reported on stderr.
#[derive(Debug)]
pub struct Csv<'a> {
    session: &'a Session,
    clock: Clock,
    head: Vec<u8>,
    /// The fields before those of a call.
    lead: Vec<u8>,
}

impl<'a> Csv<'a> {
    /// Lines of the tape of `session` behind the columns of `label`; `stacks`: each line gets its stack.
    pub fn new(session: &'a Session, clock: Clock, stacks: bool, label: &TapeLabel) -> Self {
        let sink = Sink::new(Form::Csv, &CALLS, label);
        let head = if stacks { sink.wider(&STACK) } else { sink }.head();
        Self { session, clock, head, lead: label.lead(Format::Csv) }
    }
}

impl LineFormat for Csv<'_> {
    fn header(&self) -> Vec<u8> {
        self.head.clone()
    }

    fn segment<'a>(&'a self, segment: &'a Loaded) -> Box<dyn SegmentLines + 'a> {
        Box::new(CsvLines { form: self, segment, scratch: ValueScratch::default(), args: Vec::new() })
    }

    fn gap(&self, _: &Gap) -> Vec<u8> {
        Vec::new()
    }

    fn hole(&self, _: &Hole) -> Vec<u8> {
        Vec::new()
    }
}

struct CsvLines<'a> {
    form: &'a Csv<'a>,
    segment: &'a Loaded,
    scratch: ValueScratch,
    args: Vec<u8>,
}

impl SegmentLines for CsvLines<'_> {
    fn row(&mut self, out: &mut Vec<u8>, row: usize, more: &[u8]) {
        let (segment, session) = (self.segment, self.form.session);
        out.extend_from_slice(&self.form.lead);
        let (start, task, call) = (segment.time.start[row], segment.task(row), segment.call(row));
        num::signed(out, start.wrapping_sub(session.window_open) as i64);
        out.push(b',');
        let real = self.form.clock.real(start);
        if let Some(real) = real {
            clock::write_real(out, real);
        }
        out.push(b',');
        if let Some(ns) = real.and_then(clock::Real::uncertain) {
            num::unsigned(out, ns);
        }
        out.push(b',');
        match row::duration(segment, row) {
            Duration::Exact(ns) => {
                num::unsigned(out, ns);
                out.extend_from_slice(b",false,");
            }
            Duration::AtLeast(ns) => {
                num::unsigned(out, ns);
                out.extend_from_slice(b",true,");
            }
            Duration::Unknown => out.extend_from_slice(b",,"),
        }
        if let Some(cpu) = segment.time.cpu.get(row) {
            num::unsigned(out, u64::from(*cpu));
        }
        for id in [task.pid, task.tid, task.upid, task.utid] {
            out.push(b',');
            num::unsigned(out, u64::from(id));
        }
        out.push(b',');
        self.escaped_field(out, &task.comm);
        out.push(b',');
        if task.uid != UID_UNKNOWN {
            num::unsigned(out, u64::from(task.uid));
        }
        out.push(b',');
        if let Some(path) = session.cgroup_path(task.cgroup_id) {
            self.escaped_field(out, path);
        }
        out.push(b',');
        out.extend_from_slice(call.abi.as_str().as_bytes());
        out.push(b',');
        self.escaped_field(out, &session.hostname);
        out.push(b',');
        out.extend_from_slice(call.name.as_bytes());
        out.push(b',');
        self.args.clear();
        line::arguments(&mut self.args, &mut self.scratch, segment, row, LOOK);
        field(out, &self.args);
        out.push(b',');
        self.result(out, row);
        out.extend_from_slice(more);
        out.push(b'\n');
    }
}

impl CsvLines<'_> {
    /// Bytes of any kind as one line of text.
    fn escaped_field(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        self.args.clear();
        self.scratch.escaped(&mut self.args, bytes);
        field(out, &self.args);
    }

    fn result(&self, out: &mut Vec<u8>, row: usize) {
        let outcome = row::outcome(self.segment, row);
        match outcome {
            CallOutcome::Ret(ret)
                if row::wide_ret(self.segment.call(row))
                    && ret >= 0
                    && !self.segment.call(row).name.ends_with("seek") =>
            {
                num::hex(out, ret as u64);
            }
            CallOutcome::Ret(ret) => num::signed(out, ret),
            CallOutcome::Errno(_) => out.extend_from_slice(b"-1"),
            _ => {}
        }
        out.push(b',');
        if let CallOutcome::Errno(errno) | CallOutcome::Restart(errno) = outcome {
            out.extend_from_slice(systape_abi::errno_name(errno).unwrap_or("").as_bytes());
            out.push(b',');
            num::unsigned(out, u64::from(errno));
        } else {
            out.push(b',');
        }
        out.push(b',');
        out.extend_from_slice(row::incomplete(self.segment.core.state[row]).unwrap_or("").as_bytes());
    }
}
