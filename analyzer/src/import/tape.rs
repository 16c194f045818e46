//! Writes the calls and events of a log to a tape. A call is written when time has reached its end, because segments are in order of ends.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use systape_format::model::{
    ByteStatus, CPU_NONE, Call, Checkpoint, End, FD_NONE, FD_UNKNOWN, Family, Gap, GapCause, ProcessEvent, Session,
    SignalEvent, SyscallRow, Task,
};
use systape_format::{Encoder, SegmentBuilder, Writer};

use super::values::{ReadArgs, ReadFile};

/// Most calls and events that wait, and most bytes of them.
const MOST_WAITING: usize = 1 << 16;
const MOST_BYTES: usize = 64 << 20;

/// A call with its thread and names.
#[derive(Debug)]
pub(super) struct LogCall {
    /// The thread.
    pub task: Arc<Task>,
    /// The call.
    pub call: Call,
    /// Row without what the fields around it say.
    pub row: SyscallRow,
    /// Arguments of the call.
    pub read: ReadArgs,
    /// File that it opened.
    pub opened: ReadFile,
}

/// An event of a process.
#[derive(Debug)]
pub(super) struct LogLife {
    /// The thread.
    pub task: Arc<Task>,
    /// The thread that made it; else the same.
    pub parent: Arc<Task>,
    /// The event; its tasks are those above.
    pub event: ProcessEvent,
}

/// A signal that a thread took.
#[derive(Debug)]
pub(super) struct TakenSignal {
    /// The thread.
    pub task: Arc<Task>,
    /// Who sent it; None: the log does not say.
    pub sender: Option<Arc<Task>>,
    /// The event; its tasks are those above.
    pub event: SignalEvent,
}

#[derive(Debug)]
enum LogItem {
    Call(Box<LogCall>),
    Life(Box<LogLife>),
    Signal(Box<TakenSignal>),
}

#[derive(Debug)]
struct DueItem {
    ts: u64,
    /// Order of arrival.
    number: u64,
    what: LogItem,
}

impl PartialEq for DueItem {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for DueItem {}

impl PartialOrd for DueItem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DueItem {
    /// The earliest is the greatest, which a heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.ts, other.number).cmp(&(self.ts, self.number))
    }
}

/// Numbers of what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogCounts {
    /// Number of calls.
    pub calls: u64,
    /// Events of processes.
    pub life: u64,
    /// Signals that threads took.
    pub signals: u64,
    /// Lines that were not understood.
    pub lost: u64,
    /// Number of lost lines that are about signals.
    pub lost_signals: u64,
}

/// Lines that were not understood since the last segment.
#[derive(Clone, Copy, Debug)]
struct LostLines {
    count: u64,
    first: u64,
    last: u64,
    /// The process of all of them; 0: there are several.
    pid: u32,
}

/// Families that lines which are not understood may be of.
const MAY_BE_LOST: [Family; 2] = [Family::Syscall, Family::Signal];

/// Writes a tape.
pub(super) struct LogTape<W: Write> {
    writer: Writer<W>,
    encoder: Encoder,
    builder: SegmentBuilder,
    waiting: BinaryHeap<DueItem>,
    bytes: usize,
    arrived: u64,
    /// The latest end or time that was written.
    latest: u64,
    /// By [`MAY_BE_LOST`].
    lost: [Option<LostLines>; 2],
    /// What was written.
    pub counts: LogCounts,
}

impl<W: Write> LogTape<W> {
    /// Begins a tape with a random `id`, of which this is known at its beginning.
    ///
    /// # Errors
    /// The tape cannot be written.
    pub(super) fn begin(out: W, id: [u8; 16], session: &Session, checkpoint: &Checkpoint) -> Result<Self> {
        let mut encoder = Encoder::new(3);
        let mut writer = Writer::create(out, id, session)?;
        writer.checkpoint(encoder.checkpoint(checkpoint)?)?;
        Ok(Self {
            writer,
            encoder,
            builder: SegmentBuilder::new(session.window_open),
            waiting: BinaryHeap::new(),
            bytes: 0,
            arrived: 0,
            latest: session.window_open,
            lost: [None; 2],
            counts: LogCounts::default(),
        })
    }

    /// Adds a call that ended at the end of its row.
    pub(super) fn call(&mut self, call: LogCall) -> Result<()> {
        self.bytes += call.read.captured.iter().map(|(.., bytes)| bytes.len()).sum::<usize>();
        let ts = call.row.end;
        self.wait(ts, LogItem::Call(Box::new(call)))
    }

    /// Adds an event of a process.
    pub(super) fn life(&mut self, life: LogLife) -> Result<()> {
        self.bytes += life.event.argv.len() + life.event.path.len();
        let ts = life.event.ts;
        self.wait(ts, LogItem::Life(Box::new(life)))
    }

    /// Adds a signal.
    pub(super) fn signal(&mut self, signal: TakenSignal) -> Result<()> {
        let ts = signal.event.ts;
        self.wait(ts, LogItem::Signal(Box::new(signal)))
    }

    fn wait(&mut self, ts: u64, what: LogItem) -> Result<()> {
        self.arrived += 1;
        self.waiting.push(DueItem { ts, number: self.arrived, what });
        while self.waiting.len() > MOST_WAITING || self.bytes > MOST_BYTES {
            self.one()?;
        }
        Ok(())
    }

    /// A line of process `pid` (0: not known) at `ts` was not understood: perhaps an event of `family`.
    pub(super) fn lost(&mut self, ts: u64, pid: u32, family: Family) {
        self.counts.lost += 1;
        let at = usize::from(family == MAY_BE_LOST[1]);
        self.counts.lost_signals += at as u64;
        let lost = self.lost[at].get_or_insert(LostLines { count: 0, first: ts, last: ts, pid });
        lost.count += 1;
        (lost.first, lost.last) = (lost.first.min(ts), lost.last.max(ts));
        if lost.pid != pid {
            lost.pid = 0;
        }
    }

    /// Time has come to `ts`.
    pub(super) fn reach(&mut self, ts: u64) -> Result<()> {
        while self.waiting.peek().is_some_and(|due| due.ts <= ts) {
            self.one()?;
        }
        Ok(())
    }

    /// Writes the earliest that waits.
    fn one(&mut self) -> Result<()> {
        let Some(DueItem { ts, what, .. }) = self.waiting.pop() else { return Ok(()) };
        if self.builder.is_full() {
            self.segment(ts.max(self.latest.saturating_add(1)))?;
        }
        self.latest = self.latest.max(ts);
        match what {
            LogItem::Call(call) => {
                self.bytes -= call.read.captured.iter().map(|(.., bytes)| bytes.len()).sum::<usize>();
                self.write_call(*call);
            }
            LogItem::Life(life) => {
                self.bytes -= life.event.argv.len() + life.event.path.len();
                let (task, parent) = (self.builder.intern_task(&life.task), self.builder.intern_task(&life.parent));
                self.builder.push_process(ProcessEvent { task, parent, ..life.event });
                self.counts.life += 1;
            }
            LogItem::Signal(signal) => {
                let target = self.builder.intern_task(&signal.task);
                let sender = signal.sender.as_ref().map(|sender| self.builder.intern_task(sender));
                self.builder.push_signal(SignalEvent { target, sender, ..signal.event });
                self.counts.signals += 1;
            }
        }
        Ok(())
    }

    fn write_call(&mut self, call: LogCall) {
        let LogCall { task, call, row, read, opened } = call;
        let [first, second] =
            [&read.files[0], if opened == ReadFile::None { &read.files[1] } else { &opened }].map(|file| match file {
                ReadFile::None => FD_NONE,
                ReadFile::Unknown => FD_UNKNOWN,
                ReadFile::Named(name) => self.builder.intern_fd_name(name),
            });
        let row = SyscallRow {
            cpu: CPU_NONE,
            task: self.builder.intern_task(&task),
            call: self.builder.intern_call(call),
            args: read.args,
            unknown: read.unknown,
            fd: first,
            fd2: second,
            ..row
        };
        let id = self.builder.push_syscall(row);
        for (arg, status, full, bytes) in &read.captured {
            self.builder.push_captured(id, *arg, *status, *full, bytes);
        }
        self.counts.calls += 1;
    }

    /// Closes the segment: the next one begins at `until`.
    fn segment(&mut self, until: u64) -> Result<()> {
        for (lost, family) in self.lost.iter_mut().zip(MAY_BE_LOST) {
            let Some(LostLines { count, first, last, pid }) = lost.take() else { continue };
            let (cause, cpu, ledger) = (GapCause::NotUnderstood, CPU_NONE, false);
            self.builder.push_gap(Gap { cause, family, cpu, count, first, last, pid, ledger });
        }
        let next = SegmentBuilder::after(&self.builder, until);
        let data = std::mem::replace(&mut self.builder, next).finish(until);
        self.writer.segment(self.encoder.segment(data)?)?;
        Ok(())
    }

    /// The latest time that was written.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// Writes all that waits.
    pub(super) fn drain(&mut self) -> Result<()> {
        while !self.waiting.is_empty() {
            self.one()?;
        }
        Ok(())
    }

    /// Ends the tape; its output, the number of segments, and what was written.
    ///
    /// # Errors
    /// The tape cannot be written.
    pub(super) fn finish(mut self, end: End) -> Result<(W, u32, LogCounts)> {
        self.drain()?;
        if !self.builder.is_empty() || self.lost.iter().any(Option::is_some) {
            self.segment(self.latest.saturating_add(1).max(end.window_close))?;
        }
        let LogCounts { calls, life, signals, lost, lost_signals } = self.counts;
        let lost = MAY_BE_LOST.into_iter().zip([lost - lost_signals, lost_signals]);
        let end = End {
            events: vec![(Family::Syscall, calls), (Family::Process, life), (Family::Signal, signals)],
            lost: lost.filter(|(_, count)| *count > 0).collect(),
            ..end
        };
        let segments = self.writer.segments();
        Ok((self.writer.finish(&end)?, segments, self.counts))
    }
}

/// Status and full length of what an argument of `size` bytes was given, of which a log has `bytes`.
pub(super) fn of_size(status: ByteStatus, size: u64, bytes: usize) -> (ByteStatus, u64) {
    match status {
        ByteStatus::Truncated if size >= bytes as u64 => (status, size),
        _ => (status, if status == ByteStatus::Whole { bytes as u64 } else { 0 }),
    }
}
