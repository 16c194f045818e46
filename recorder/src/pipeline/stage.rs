//! The encoder's thread: passes the drain's messages to [`Assembler`], turns drop counters into gaps, begins chunks.

mod tapes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, never, select};
use systape_bpf::Drop;
use systape_bpf::wire::Snap;
use systape_format::model::{CPU_NONE, Family, Gap, GapCause};

use crate::calls::memory::CallMemory;
use crate::encode::{Assembler, DroppedEvents, Piece, Settings, Start, Totals};
use crate::flight;
use crate::flight::status::Status;
use crate::flight::step::Raw;
use crate::kernel::skips::Skipped;
use crate::ledger::LedgerWindow;
use crate::load::{DropDelta, LostState, Walker};
use crate::own::clock;
use crate::own::forced::CheckedLedger;
use crate::pipeline::drain::Drained;
use crate::pipeline::progress::Progress;
use crate::rings::backlog::Shed;
use crate::rings::order::Batch;
use crate::stacks::feed;
use crate::stacks::forgot::Forgot;
use crate::stacks::name_queue::NameQueue;
use crate::stacks::taken::{DroppedStacks, StackBatch};
use tapes::Tapes;

/// A chunk ends at this many stored bytes ...
const CHUNK_BYTES: u64 = 32 << 20;
/// ... but not before this many times its checkpoint; or after this time, which is longer for looks: of them there is so little that
/// checkpoints would be most of a tape.
const CHUNK_CHECKPOINTS: u64 = 16;
const CHUNK_NS: u64 = 60_000_000_000;
const LOOKS_CHUNK_NS: u64 = 600_000_000_000;
/// The same of a flight recorder, whose chunks are its steps in forgetting.
const FLIGHT_CHECKPOINTS: u64 = 2;

/// How long events wait for their stacks when the unwinding hangs, and most bytes of waiting events when it is behind: a quarter
/// of `--buffer`, but at least and at most these.
const STACK_PATIENCE_NS: u64 = 2_000_000_000;
const STACK_PATIENCE_BYTES: [usize; 2] = [4 << 20, 24 << 20];

/// The encoder's results at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    /// Events stored.
    pub totals: Totals,
    /// Events lost, by family.
    pub lost: Vec<(Family, u64)>,
    /// Number of lost ones that are counted in the ledger.
    pub counted: u64,
    /// Calls that were counted because of an option of record.
    pub filtered: u64,
    /// Expected sums of the ledger; only with --force ledger-check.
    pub checked: Option<CheckedLedger>,
    /// Calls of the recorder itself.
    pub own_calls: u64,
    /// End of the recording.
    pub window_close: u64,
}

/// What the stages behind this one get, in order.
#[derive(Debug)]
pub(crate) enum StageOutput {
    /// A part of the tape.
    Piece(Piece),
    /// A message to the flight recorder.
    Step(Raw),
}

/// The flight recorder's part.
pub(crate) struct Flying {
    /// What was asked for.
    pub settings: flight::FlightSettings,
    /// What other threads ask for.
    pub commands: Receiver<flight::request::FlightCommand>,
    /// Where numbers go.
    pub status: Arc<Status>,
    /// How often names were forgotten.
    pub forgot: Forgot,
}

/// The encoder's stage: from the drain's messages to encoded pieces.
pub(crate) struct EncodeStage {
    assembler: Assembler,
    walker: Walker,
    out: Sender<(u64, StageOutput)>,
    next: u64,
    progress: Arc<Progress>,
    encoded: Encoded,
    chunk_ts: u64,
    /// Longest life of a chunk.
    chunk_time: u64,
    chunk_from: u64,
    checkpoint_bytes: u64,
    /// Most bytes of events that wait for their stacks.
    patience_bytes: usize,
    /// Every event before this has arrived, and every stack before that.
    events_until: u64,
    stacks_until: u64,
    /// Counted calls that wait for the events of their time.
    windows: VecDeque<LedgerWindow>,
    /// The end of the newest window that came.
    counted_until: u64,
    /// Asks for a window now.
    count_now: Arc<AtomicBool>,
    /// The state at the start, until all events of the time of its reading have arrived.
    waiting: Option<Start>,
    /// Losses of that time.
    held: Vec<(Vec<DropDelta>, Vec<LostState>, Vec<Skipped>)>,
    /// Every task when the window was closed.
    open_calls: (Vec<Snap>, Vec<CallMemory>),
    /// The flight recorder's part; None = there is none.
    tapes: Option<Tapes>,
    /// There is a checkpoint.
    chunk_begun: bool,
}

impl EncodeStage {
    /// A stage at its beginning.
    pub(crate) fn new(
        settings: Settings,
        walker: Walker,
        out: Sender<(u64, StageOutput)>,
        progress: Arc<Progress>,
        names: Option<NameQueue>,
        flying: Option<Flying>,
    ) -> Self {
        let (window_open, chunk_time) = (settings.window_open, if settings.looks { LOOKS_CHUNK_NS } else { CHUNK_NS });
        let patience_bytes = progress.backlog.part(4, STACK_PATIENCE_BYTES);
        let mut assembler = Assembler::new(settings);
        if let Some(names) = names {
            assembler.tell_names(names);
        }
        let tapes = flying.map(|Flying { settings, commands, status, forgot }| {
            assembler.may_forget_names(forgot);
            Tapes::new(settings, commands, status)
        });
        Self {
            assembler,
            walker,
            out,
            next: 0,
            progress,
            encoded: Encoded::default(),
            chunk_ts: window_open,
            chunk_time,
            chunk_from: 0,
            checkpoint_bytes: 0,
            patience_bytes,
            events_until: 0,
            stacks_until: u64::MAX,
            windows: VecDeque::new(),
            counted_until: 0,
            count_now: Arc::default(),
            waiting: None,
            held: Vec::new(),
            open_calls: Default::default(),
            tapes,
            chunk_begun: false,
        }
    }

    /// Runs until the drain ends. Nothing is encoded before the state at the start is known, and nothing of the time of
    /// its reading before all of that time has arrived.
    pub(crate) fn run(
        mut self,
        start: &Receiver<Start>,
        drained: &Receiver<Drained>,
        stacks: Option<Receiver<StackBatch>>,
        (ledger, count_now): (&Receiver<LedgerWindow>, Arc<AtomicBool>),
    ) -> Encoded {
        self.count_now = count_now;
        let Ok(start) = start.recv() else { return self.encoded };
        self.waiting = Some(start);
        self.stacks_until = if stacks.is_some() { 0 } else { u64::MAX };
        let rest = stacks.clone();
        let mut stacks = stacks.unwrap_or_else(never);
        let mut counted = ledger.clone();
        let none = never();
        // events before stacks: whoever is behind loses stacks
        let progress = Arc::clone(&self.progress);
        let pressed = || progress.backlog.is_pressed();
        loop {
            select! {
                recv(drained) -> message => match message {
                    Ok(message) => self.drained(message),
                    Err(_) => break,
                },
                recv(counted) -> window => match window {
                    Ok(window) => {
                        self.counted_until = self.counted_until.max(window.until);
                        self.windows.push_back(window);
                    }
                    Err(_) => counted = never(),
                },
                recv(if pressed() { &none } else { &stacks }) -> taken => {
                    match taken {
                        Ok(taken) => {
                            self.stacks_until = self.stacks_until.max(taken.watermark);
                            self.stacks(taken);
                        }
                        // no more will come
                        Err(_) => (self.stacks_until, stacks) = (u64::MAX, never()),
                    }
                    if self.waiting.is_none() {
                        self.pass();
                    }
                }
            }
        }
        // the drain is done: the unwinding works off what it has and ends
        while let Some(Ok(taken)) = rest.as_ref().map(|rest| rest.recv_timeout(feed::PATIENCE)) {
            self.stacks(taken);
        }
        self.windows.extend(ledger);
        self.finish()
    }

    /// Adds records.
    fn add(&mut self, batches: Vec<Batch>) {
        for batch in batches {
            self.progress.backlog.take_records(batch.len());
            self.assembler.add(batch);
        }
    }

    /// Adds the drain's messages.
    fn drained(&mut self, message: Drained) {
        match message {
            Drained::Batches(batches) => {
                self.add(batches);
                // a pass may bring all that the rings hold: what waits for stacks makes room before its end
                if self.waiting.is_none() && self.assembler.excess(self.patience_bytes) > 0 {
                    self.pass();
                }
            }
            Drained::LateStacks(taken) => self.stacks(taken),
            Drained::Pass { batches, watermark, drops, lost_state, skipped } => {
                self.add(batches);
                self.held.push((drops, lost_state, skipped));
                self.events_until = watermark;
                if let Some(start) = self.waiting.take_if(|start| watermark > start.done) {
                    self.assembler.begin(start);
                }
                if self.waiting.is_none() {
                    self.tell_losses();
                    self.pass();
                }
            }
            Drained::Closed { ts, snaps, memory } => {
                self.assembler.closing(ts);
                self.encoded.window_close = ts;
                self.open_calls = (snaps, memory);
            }
        }
    }

    /// Encodes the rest: everything has arrived.
    fn finish(mut self) -> Encoded {
        if let Some(start) = self.waiting.take() {
            self.assembler.begin(start);
        }
        self.tell_losses();
        self.assembler.shed(self.progress.backlog.shed());
        self.assembler.advance(u64::MAX);
        while let Some(window) = self.windows.pop_front() {
            self.assembler.counted(window);
        }
        // it is the last, whatever room there is
        self.assembler.shed(Shed::Nothing);
        let (snaps, memory) = std::mem::take(&mut self.open_calls);
        self.assembler.in_flight(&snaps, memory);
        self.unexplained();
        self.assembler.close_segment(clock::monotonic());
        self.shed();
        self.send();
        self.finish_tapes();
        self.assembler.end_names();
        self.encoded.filtered = self.assembler.filtered();
        self.encoded.totals = self.assembler.totals().clone();
        self.tell_progress();
        self.encoded
    }

    /// Puts the losses so far into their places in time.
    fn tell_losses(&mut self) {
        for (drops, lost_state, skipped) in std::mem::take(&mut self.held) {
            self.losses(&drops, &lost_state, &skipped);
        }
    }

    fn pass(&mut self) {
        let patience = self.events_until.saturating_sub(STACK_PATIENCE_NS);
        let excess = self.assembler.excess(self.patience_bytes);
        let watermark = self.events_until.min(self.stacks_until.max(patience).max(excess));
        self.assembler.shed(self.progress.backlog.shed());
        let reached = self.advance_tapes(watermark);
        self.shed();
        let written = self.progress.bytes();
        let in_chunk = written.saturating_sub(self.chunk_from);
        let (bytes, checkpoints, time) =
            self.tapes.as_ref().map_or((CHUNK_BYTES, CHUNK_CHECKPOINTS, self.chunk_time), |tapes| {
                let (bytes, time) = tapes.chunk();
                (bytes, FLIGHT_CHECKPOINTS, time)
            });
        let enough = in_chunk >= bytes.max(checkpoints * self.checkpoint_bytes);
        if enough || (in_chunk > 0 && reached.saturating_sub(self.chunk_ts) >= time) {
            // a walk that fails leaves the calls in flight out of one checkpoint, nothing else
            let snaps = self.walker.open_calls().unwrap_or_default();
            self.new_chunk(reached, &snaps);
        }
        self.send();
        self.tell_status(reached);
        self.tell_progress();
    }

    /// Passes the sums so far on to whoever shows them.
    fn tell_progress(&self) {
        self.progress.events.store(self.assembler.totals().sum(), Ordering::Relaxed);
        self.progress.filtered.store(self.assembler.filtered(), Ordering::Relaxed);
    }

    /// Begins a chunk at `ts`, before which everything is encoded.
    fn new_chunk(&mut self, ts: u64, snaps: &[Snap]) {
        self.assembler.new_chunk(ts, snaps);
        self.send();
        self.prologue();
        (self.chunk_ts, self.chunk_from) = (ts, self.progress.bytes());
    }

    /// Encodes everything before `watermark`, and the calls that were counted until then.
    fn advance(&mut self, watermark: u64) {
        while self.windows.front().is_some_and(|window| window.until <= watermark) {
            let Some(window) = self.windows.pop_front() else { break };
            // the processes as they were then
            self.assembler.advance(window.until);
            self.assembler.counted(window);
        }
        self.assembler.advance(watermark);
    }

    fn send(&mut self) {
        for piece in self.assembler.take_pieces() {
            if let Piece::Checkpoint(cp) = &piece {
                // stored size is not known here; this is of its order
                let fds: usize = cp.fd_tables.iter().map(|t| t.fds.len()).sum();
                self.checkpoint_bytes = 16 * (cp.tasks.len() + fds) as u64;
                self.chunk_begun = true;
                self.mark(cp.ts, cp.clock);
            }
            self.put(StageOutput::Piece(piece));
        }
    }

    fn put(&mut self, work: StageOutput) {
        // the compressors are gone only when writing failed, which the main thread sees
        self.out.send((self.next, work)).ok();
        self.next += 1;
    }

    fn losses(&mut self, drops: &[DropDelta], lost_state: &[LostState], skipped: &[Skipped]) {
        for delta in drops {
            let count = delta.count;
            let Some((cause, family)) = meaning(delta.cause) else {
                self.encoded.own_calls += count.count;
                continue;
            };
            let (first, last) = (count.first, count.last);
            let ledger = delta.is_counted();
            let counted = if ledger { count.count } else { 0 };
            if delta.is_loss() {
                self.lost((cause, family), count.count, counted);
            }
            self.encoded.counted += counted;
            let (cpu, count) = (delta.cpu, count.count);
            self.assembler.gap(Gap { cause, family, cpu, count, first, last, pid: 0, ledger });
        }
        for &LostState { pid, first, last } in lost_state {
            self.assembler.lost_state(pid, first, last);
        }
        for s in skipped {
            self.lost((GapCause::Skipped, s.family), s.count, 0);
            self.missing(GapCause::Skipped, s.family, s.count, (s.first, s.last));
        }
    }

    /// Counts the events that the encoder dropped; it reports them itself.
    fn shed(&mut self) {
        let DroppedEvents { lost, counted } = self.assembler.take_given_up();
        for ((cause, family), count) in lost {
            self.progress.lost.fetch_add(count, Ordering::Relaxed);
            // of calls the ledger has the number
            let in_ledger = if family == Family::Syscall { counted } else { 0 };
            self.lost((cause, family), count, in_ledger);
        }
        self.progress.lost.fetch_sub(counted, Ordering::Relaxed);
        self.progress.counted.fetch_add(counted, Ordering::Relaxed);
        self.encoded.counted += counted;
    }

    /// Counts missing events, of any origin.
    fn missing(&mut self, cause: GapCause, family: Family, count: u64, (first, last): (u64, u64)) {
        self.assembler.gap(Gap { cause, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false });
    }

    fn stacks(&mut self, taken: StackBatch) {
        if taken.given_up.count > 0 {
            self.given_up(taken.given_up);
        }
        self.assembler.add_stacks(taken);
    }

    fn given_up(&mut self, stacks: DroppedStacks) {
        self.lost((GapCause::QueueFull, Family::Stack), stacks.count, 0);
        self.missing(GapCause::QueueFull, Family::Stack, stacks.count, (stacks.first, stacks.last));
    }

    /// Counts missing stacks without a reported cause.
    fn unexplained(&mut self) {
        let said = self.encoded.lost.iter().filter(|(family, _)| *family == Family::Stack).map(|(_, n)| n).sum();
        let count = self.assembler.missed_stacks().saturating_sub(said);
        if count > 0 {
            self.lost((GapCause::Unexplained, Family::Stack), count, 0);
            let now = clock::monotonic();
            self.missing(GapCause::Unexplained, Family::Stack, count, (self.chunk_ts, now));
        }
    }

    /// Counts missing events, of which the ledger has `counted`.
    fn lost(&mut self, (cause, family): (GapCause, Family), count: u64, counted: u64) {
        self.progress.losses.add((cause, family), count, counted);
        self.assembler.watch_lost(clock::monotonic(), family, count);
        match self.encoded.lost.iter_mut().find(|(f, _)| *f == family) {
            Some((_, n)) => *n += count,
            None => self.encoded.lost.push((family, count)),
        }
    }
}

/// The tape's form of a BPF counter; None for the recorder's own calls, which are only counted.
fn meaning(cause: Drop) -> Option<(GapCause, Family)> {
    macro_rules! in_a_tape {
        (Own, $family:ident) => {
            None
        };
        ($cause:ident, $family:ident) => {
            Some((GapCause::$cause, Family::$family))
        };
    }
    macro_rules! meanings {
        ($(($drop:ident, $name:ident, $cause:ident, $family:ident, $doc:literal))*) => {
            match cause {
                $(Drop::$name => in_a_tape!($cause, $family),)*
            }
        };
    }
    systape_bpf::drops!(meanings)
}
