//! Looks at all threads, some twenty times a second (`record --sample`): what each of them waits for.
//!
//! One thread walks ([`LookWalk`]): the programs of bpf/src/c/looks.bpf.h note the threads that wait, [`stays`] joins what looks in
//! a row found unchanged, and [`pace`] keeps the cost of it in bounds. Another thread ([`details`]) reads what a new stay waits
//! for: that may take long, and the walk goes on meanwhile. Rows go to the drain as wire records, like those of rings.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use systape_abi::Abi;
use systape_bpf::wire::{
    Fixed, IdleThreads, LookSums, SNAP_NO_CALL, STAY_BEGINS, STAY_BOUND, STAY_CONNECTED, STAY_HAS_STACK, STAY_IN_CALL,
    STAY_UNREAD, Stack, Stay, WireValue,
};

use crate::escalation::Escalator;
use crate::escalation::watch::OpenWait;
use crate::load::{FoundThreads, LookPrograms};
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::own::priority;
use crate::own::say::say;
use crate::rings::records::Records;
use crate::triggers;
use details::{Copying, StayDetail};
use pace::{Pace, Slots};
use stays::{Found, StayRow, Stays};

pub(crate) mod details;
pub(crate) mod pace;
pub(crate) mod stays;

/// Batches that may wait for the drain; without room a look waits for the next.
pub(crate) const BATCHES: usize = 128;
const SECOND: u64 = 1_000_000_000;
/// Time that a row of sums is about: of a day 8,640 are left.
const SUMS: u64 = 10 * SECOND;
/// The beginning of a recording costs more than the rest of it.
const SETTLES: u64 = 5 * SECOND;
/// How long the end of a recording waits for the last rows.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// A value that is not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// Rows of a look, and the stacks of stays among them.
#[derive(Debug, Default)]
pub(crate) struct LookBatch {
    /// Records for the encoder.
    pub rows: Records,
    /// Records of the form of the stack ring.
    pub stacks: Records,
}

/// The looking threads of a recording.
#[derive(Debug)]
pub(crate) struct Looks {
    stop: Sender<()>,
    walk: JoinHandle<()>,
}

impl Looks {
    /// Begins to look `frequency` times a second, and passes rows to `out`. `stacks`: with those of the kernel. `escalator`: is told
    /// what looks find.
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub(crate) fn start(
        programs: LookPrograms,
        (frequency, stacks): (u32, bool),
        escalator: Option<Escalator>,
        out: Sender<LookBatch>,
    ) -> Result<Self> {
        let (stop, stopped) = bounded(0);
        let copying = Copying::start(programs.copier()?)?;
        let walk = move || LookWalk::new(programs, (frequency, stacks), (copying, escalator), out).run(&stopped);
        let walk = thread::Builder::new().name("look".into()).spawn(counted("look", walk));
        Ok(Self { stop, walk: walk.context("cannot start a thread")? })
    }

    /// Ends it; the last rows are with the drain then.
    pub(crate) fn finish(self) {
        drop(self.stop);
        // it passes a batch on, or waits for the drain: no longer than that
        let began = std::time::Instant::now();
        while !self.walk.is_finished() && began.elapsed() < END_PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sums of the looks of some seconds.
#[derive(Debug, Default)]
struct SomeLooks {
    sums: LookSums,
    /// Threads in calls that wait for work, by number.
    idle: Vec<u64>,
}

/// The thread that walks.
struct LookWalk {
    programs: LookPrograms,
    copying: Copying,
    stays: Stays<StayDetail>,
    pace: Pace,
    slots: Slots,
    /// Looks so far.
    number: u64,
    some: SomeLooks,
    stacks: bool,
    escalator: Option<Escalator>,
    out: Sender<LookBatch>,
}

impl LookWalk {
    fn new(
        programs: LookPrograms,
        (frequency, stacks): (u32, bool),
        (copying, escalator): (Copying, Option<Escalator>),
        out: Sender<LookBatch>,
    ) -> Self {
        let pace = Pace::new(SECOND / u64::from(frequency.max(1)));
        let now = clock::monotonic();
        let slots = Slots::new(now, pace.interval());
        Self {
            programs,
            copying,
            stays: Stays::default(),
            pace,
            slots,
            number: 0,
            some: SomeLooks::default(),
            stacks,
            escalator,
            out,
        }
    }

    /// Looks until told to stop.
    fn run(mut self, stop: &Receiver<()>) {
        priority::run_when_due();
        let mut spent = clock::thread_cpu();
        // what beginning costs is over soon
        let (mut measured, mut whole, mut of_looks) = (clock::monotonic() + SETTLES, None, 0_u64);
        loop {
            let due = Duration::from_nanos(self.slots.due().saturating_sub(clock::monotonic()));
            if !matches!(stop.recv_timeout(due), Err(RecvTimeoutError::Timeout)) {
                return self.finish();
            }
            let look = match self.programs.walk() {
                Ok(look) => look,
                Err(error) => {
                    say(format_args!("no more looks: {error:#}"));
                    return self.finish();
                }
            };
            let now = clock::monotonic();
            let mut batch = LookBatch::default();
            self.take(&look, now, &mut batch);
            self.escalate(now, &mut batch);
            let cpu = clock::thread_cpu();
            let cost = cpu.saturating_sub(spent) + self.copying.take_cpu();
            spent = cpu;
            self.some.sums.cost += cost;
            self.pace.spent(cost);
            of_looks += cost;
            let span = now.saturating_sub(measured);
            if span >= SECOND {
                let cpu = clock::self_cpu();
                if let Some(before) = whole.replace(cpu) {
                    self.pace.others(cpu.saturating_sub(before).saturating_sub(of_looks), span);
                }
                (measured, of_looks) = (now, 0);
            }
            let skipped = self.slots.next(clock::monotonic(), self.pace.interval());
            self.some.sums.skipped += skipped;
            if self.some.sums.span >= SUMS || self.some.sums.interval != self.pace.interval() {
                self.end_sums(now, &mut batch);
            }
            if !batch.rows.is_empty() && self.out.send(batch).is_err() {
                return;
            }
        }
    }

    /// Joins what a look found with what looks before it did.
    fn take(&mut self, look: &FoundThreads, now: u64, batch: &mut LookBatch) {
        for (serial, copied) in self.copying.copied() {
            self.stays.set_detail(serial, copied);
        }
        let found = Found { number: self.number, ts: now, interval: self.slots.interval() };
        let ended = self.stays.look(found, &look.notes);
        for row in ended {
            self.push(&row, batch);
        }
        for (serial, note) in self.stays.take_begun() {
            if matches!(note.state, b'R' | b'T') {
                // a CPU is all that it waits for, or to be let go on
                self.stays.set_detail(serial, StayDetail { read: true, ..StayDetail::default() });
            } else if !self.copying.ask(serial, &note) {
                self.stays.set_detail(serial, StayDetail::default());
            }
        }
        self.number += 1;
        let sums = &mut self.some.sums;
        if sums.looks == 0 {
            (sums.look, sums.interval) = (found.number, found.interval);
        }
        sums.looks += 1;
        sums.span += self.slots.span();
        sums.threads += look.threads;
        sums.noted += look.notes.len() as u64;
        sums.displaced += look.displaced;
        sums.stopped += look.stopped;
        sums.over += look.over;
        self.some.idle.resize(look.idle.len().max(self.some.idle.len()), 0);
        for (sum, threads) in self.some.idle.iter_mut().zip(&look.idle) {
            *sum += u64::from(*threads);
        }
    }

    /// Has everything recorded when something is wrong.
    fn escalate(&mut self, now: u64, batch: &mut LookBatch) {
        let Some(escalator) = &mut self.escalator else { return };
        let waits: Vec<OpenWait<'_>> = self.stays.open().map(open_wait).collect();
        let Some(escalated) = escalator.look(now, &waits) else { return };
        let fired = escalated.fired;
        let late = escalated.from.saturating_sub(fired.ts);
        let what = format!("{}; everything is recorded from {} later on", fired.what, triggers::time(late));
        batch.rows.push(&fired.record(now, &what, &escalated.tape));
    }

    /// The sums of the looks since the last ones.
    fn end_sums(&mut self, now: u64, batch: &mut LookBatch) {
        let SomeLooks { mut sums, idle } = std::mem::take(&mut self.some);
        if sums.looks == 0 {
            return;
        }
        // intervals that were skipped since belong to what is told
        sums.uncopied = self.copying.take_uncopied();
        (sums.hdr.kind, sums.ts) = (LookSums::KIND, now);
        batch.rows.push(sums.bytes());
        for (nr, threads) in idle.into_iter().enumerate().filter(|(_, threads)| *threads > 0) {
            let (nr, abi) = (nr as u32, Abi::X86_64 as u8);
            let (looks, interval) = (sums.looks, sums.interval);
            let mut row = IdleThreads { ts: now, threads, looks, interval, nr, abi, ..IdleThreads::default() };
            row.hdr.kind = IdleThreads::KIND;
            batch.rows.push(row.bytes());
        }
    }

    /// The end of the recording: what is still open is stored.
    fn finish(mut self) {
        let now = clock::monotonic();
        let mut batch = LookBatch::default();
        for (serial, copied) in self.copying.copied() {
            self.stays.set_detail(serial, copied);
        }
        for row in self.stays.end(now) {
            self.push(&row, &mut batch);
        }
        self.end_sums(now, &mut batch);
        if !batch.rows.is_empty() {
            self.out.send(batch).ok();
        }
    }

    /// Adds the record of a row, and its stack.
    fn push(&mut self, row: &StayRow<StayDetail>, batch: &mut LookBatch) {
        let note = &row.note;
        // who is stopped is only counted, and looked at for --escalate
        if note.state == b'T' {
            return;
        }
        let none = StayDetail::default();
        let copied = row.detail.as_ref().unwrap_or(&none);
        if row.begins && !copied.read {
            self.copying.count_uncopied();
        }
        let mut record = Stay {
            look: row.look,
            looks: row.looks,
            interval: row.interval,
            seen: row.seen,
            ago: row.ago,
            since: rounded(row.since),
            args: note.args,
            lock: copied.lock.unwrap_or(0),
            owner: copied.owner,
            nr: note.nr,
            abi: note.abi,
            state: note.state,
            file_len: copied.file.len() as u16,
            path_len: copied.path.len() as u16,
            ..Stay::default()
        };
        record.row.hdr.kind = Stay::KIND;
        record.row.ts = row.ts;
        record.row.who = note.who;
        let with_stack = self.stacks && !copied.stack.is_empty();
        let flags = [
            (row.begins, STAY_BEGINS),
            (!copied.read, STAY_UNREAD),
            (with_stack, STAY_HAS_STACK),
            (note.nr != SNAP_NO_CALL, STAY_IN_CALL),
            (copied.connected == Some(true), STAY_CONNECTED),
            (copied.connected == Some(false), STAY_BOUND),
        ];
        record.row.hdr.flags = flags.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag);
        batch.rows.push(&[record.bytes(), &copied.file, &copied.path].concat());
        if with_stack {
            batch.stacks.push(&stack(row, copied));
        }
    }
}

/// A stay as conditions look at it.
fn open_wait(open: stays::LastingStay<'_, StayDetail>) -> OpenWait<'_> {
    OpenWait {
        serial: open.serial,
        note: open.note,
        file: open.detail.filter(|detail| detail.read).map(|detail| &detail.file[..]),
        connected: open.detail.and_then(|detail| detail.connected),
        lock: open.detail.and_then(|detail| detail.lock),
        owned: open.detail.is_some_and(|detail| detail.owner != 0),
        first: open.since,
        lasted: open.lasted,
    }
}

/// A time as exact as it is known, with eight bits: more of them are chance, and would be most of the row.
fn rounded(since: u64) -> u64 {
    const BITS: u32 = 8;
    match since {
        UNKNOWN => UNKNOWN,
        _ => {
            let low = (u64::BITS - since.leading_zeros()).saturating_sub(BITS);
            since >> low << low
        }
    }
}

/// The record of a stay's stack, as the stack ring has it.
fn stack(row: &StayRow<StayDetail>, copied: &StayDetail) -> Vec<u8> {
    let mut stack = Stack {
        ts: row.ts,
        key: row.ts,
        who: row.note.who,
        kernel_bytes: copied.stack.len() as u32,
        of: systape_format::model::StackOf::Row as u8,
        ..Stack::default()
    };
    stack.hdr.kind = systape_bpf::wire::STACK_KIND;
    [stack.bytes(), &copied.stack].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_eight_bits() {
        assert_eq!([0, 1, 255, 256, 257, 511, 1000].map(rounded), [0, 1, 255, 256, 256, 510, 1000]);
        assert_eq!(rounded(UNKNOWN), UNKNOWN);
        for since in [12_345_678, 987_654_321_012] {
            let error = (since - rounded(since)) as f64 / since as f64;
            assert!((0.0..1.0 / 128.0).contains(&error), "{since}: {error}");
        }
    }
}
