//! Events in order of time, as lines: a call whose line another thread's interrupts is `<unfinished ...>` there and `resumed` where
//! it ends.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::Result;
use systape_format::model::{CallState, ProcessKind};

use super::read::{Event, Events, Part, What};
use super::signals::{self, Signals};
use super::waiting::{Due, Text};
use systape_answers::derive::processes::Ending;
use systape_answers::lines::strace::{Pieces, pieces};
use systape_answers::lines::value::ValueScratch;
use systape_answers::render::stamp::TimeBase;
use systape_events::calls::CallInfo;
use systape_events::scan::later::Later;
use systape_events::scan::stream::{self, Machine};
use systape_events::values::clock::{Clock, day_of, write_micros};

/// Column of `= result`, counted from the line's beginning: strace's `-a`.
const ALIGNMENT: usize = 40;

/// What lines look like.
#[derive(Debug)]
pub(super) struct StraceLook {
    /// What times count from; None: seconds since 1970, as strace -ttt. [`TimeBase::Wall`]: the time of day, as -tt.
    pub base: Option<TimeBase>,
    /// Times of day.
    pub clock: Clock,
    /// Start of the recording, CLOCK_MONOTONIC.
    pub open: u64,
    /// Whether the files of descriptors are shown.
    pub files: bool,
}

impl StraceLook {
    /// Appends the time `ts`, to the microsecond.
    fn time(&self, out: &mut Vec<u8>, ts: u64) {
        let real = self.clock.real(ts).map(|real| real.first);
        let ns = match (self.base, real) {
            (Some(TimeBase::Wall), Some(real)) => return write_micros(out, real, Some(day_of(real))),
            (Some(TimeBase::Start), _) => ts.wrapping_sub(self.open).cast_signed(),
            (None, Some(real)) => real,
            _ => ts.cast_signed(),
        };
        let us = ns.div_euclid(1000);
        let _ = write!(out, "{}.{:06}", us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    }
}

/// Writes the lines.
pub(super) struct Lines<W> {
    out: W,
    look: StraceLook,
    /// Lines that may still be begun.
    left: u64,
    written: u64,
    scratch: ValueScratch,
    signals: Signals,
    /// The thread whose line has no end yet, and its length.
    open: Option<(u32, usize)>,
    line: Vec<u8>,
    result: io::Result<()>,
}

impl<W: Write> Lines<W> {
    /// Writes at most `limit` of them to `out`.
    pub(super) fn new(out: W, look: StraceLook, limit: u64) -> Self {
        Self {
            out,
            look,
            left: limit,
            written: 0,
            scratch: ValueScratch::default(),
            signals: Signals::default(),
            open: None,
            line: Vec::new(),
            result: Ok(()),
        }
    }

    /// Ends the last line; the number of lines.
    ///
    /// # Errors
    /// One could not be written.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.interrupt();
        self.flush();
        self.result?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn flush(&mut self) {
        if self.result.is_ok() {
            self.result = self.out.write_all(&self.line);
        }
        self.line.clear();
    }

    /// Ends a line that has no end, because another begins.
    fn interrupt(&mut self) {
        if self.open.take().is_some() {
            self.line.extend_from_slice(b" <unfinished ...>\n");
        }
    }

    /// Begins a line; its length so far.
    fn lead(&mut self, ts: u64, tid: u32) -> usize {
        self.interrupt();
        self.flush();
        self.left -= 1;
        self.written += 1;
        let _ = write!(self.line, "{tid:<5} ");
        self.look.time(&mut self.line, ts);
        self.line.push(b' ');
        self.line.len()
    }

    /// A line without a call.
    fn whole(&mut self, ts: u64, tid: u32, text: &str) {
        if self.left > 0 {
            self.lead(ts, tid);
            self.line.extend_from_slice(text.as_bytes());
            self.line.push(b'\n');
        }
    }

    fn begin(&mut self, ts: u64, tid: u32, text: &[u8]) {
        if self.left > 0 {
            let length = self.lead(ts, tid);
            self.line.extend_from_slice(text);
            self.open = Some((tid, length + text.len()));
        }
    }

    fn end(&mut self, ts: u64, tid: u32, call: &CallInfo, (rest, result): (&[u8], &[u8])) {
        let length = match self.open.take() {
            Some((of, length)) if of == tid => length,
            other => {
                self.open = other;
                if self.left == 0 {
                    return;
                }
                let length = self.lead(ts, tid);
                let begun = self.line.len();
                let _ = write!(self.line, "<... {} resumed>", call.name);
                length + self.line.len() - begun
            }
        };
        self.line.extend_from_slice(rest);
        self.line.extend_from_slice(b") ");
        let width = length + rest.len() + 2;
        self.line.resize(self.line.len() + ALIGNMENT.saturating_sub(width), b' ');
        self.line.extend_from_slice(b"= ");
        self.line.extend_from_slice(result);
        self.line.push(b'\n');
    }

    /// A call, whose end waits; `early`: its beginning does too.
    fn call(&mut self, part: &Part, row: usize, early: bool, later: &mut Later<Due>) {
        let Some(calls) = &part.calls else { return };
        let Pieces { begin, rest, result } = pieces(&mut self.scratch, calls, row, self.look.files);
        let (start, tid) = (calls.time.start[row], calls.task(row).tid);
        if early {
            later.push(Due { ts: start, tid, what: Text::Begin(begin) });
        } else {
            self.begin(start, tid, &begin);
        }
        if calls.core.state[row] != CallState::InFlight {
            let call = Arc::clone(&calls.calls[calls.core.call[row] as usize]);
            let ts = start.saturating_add(calls.core.dur[row]);
            later.push(Due { ts, tid, what: Text::End { call, rest, result } });
        }
    }

    fn event(&mut self, part: &Part, event: Event, early: bool, later: &mut Later<Due>) {
        let tasks = &part.dict().tasks;
        match event.what {
            What::Call(row) => self.call(part, row as usize, early, later),
            What::Signal(at) => {
                let signal = &part.signals[at as usize];
                let Some(target) = tasks.get(signal.target as usize) else { return };
                if let Some(line) = self.signals.line(signal, target) {
                    self.whole(event.ts, target.tid, &line);
                }
            }
            What::Life(at) => {
                let life = &part.life[at as usize];
                let Some(task) = tasks.get(life.task as usize) else { return };
                match life.kind {
                    ProcessKind::Exec if life.old_tid != 0 => {
                        self.whole(
                            event.ts,
                            task.tid,
                            &format!("+++ superseded by execve in pid {} +++", life.old_tid),
                        );
                    }
                    ProcessKind::Exit => {
                        let end = Ending::new(event.ts, life.exit_code, life.flags);
                        if life.group_dead {
                            self.signals.ended(task.pid, end);
                        }
                        self.whole(event.ts, task.tid, &signals::end_line(end));
                    }
                    _ => {}
                }
            }
        }
    }
}

impl<'a, W: Write + Send> Machine<Events<'a>> for Lines<W> {
    fn push(&mut self, event: stream::Event<'_, Events<'a>>, later: &mut Later<Due>) -> ControlFlow<()> {
        match event {
            stream::Event::Row(part, event) => self.event(part, event, false, later),
            stream::Event::Early(part, event) => self.event(part, event, true, later),
            stream::Event::Due(Due { ts, tid, what: Text::Begin(text) }) => self.begin(ts, tid, &text),
            stream::Event::Due(Due { ts, tid, what: Text::End { call, rest, result } }) => {
                self.end(ts, tid, &call, (&rest, &result));
            }
            _ => {}
        }
        if self.result.is_err() || (self.left == 0 && self.open.is_none()) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn wants_checkpoint(&self, _losses: bool) -> bool {
        false
    }
}
