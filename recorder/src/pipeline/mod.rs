//! The stages behind the rings: drain → encode → compress → write, each a thread. Only the last waits for a file;
//! [`crate::rings::backlog`] bounds the data that waits for it, and for the encoder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use systape_format::encode::Encoder;
use systape_format::model::{End, Session, StackOf, Symbols};
use systape_format::redact::Redactor;
use systape_format::segment::SegmentData;
use systape_format::table::TableDef;
use systape_format::writer::Writer;

use crate::calls::memory::Wanted;
use crate::encode::{Piece, Settings, Start};
use crate::escalation::Escalator;
use crate::escalation::watch::FoundWrong;
use crate::flight::PreparedFlight;
use crate::flight::dump::Plan;
use crate::flight::names::NameStore;
use crate::flight::ring::ChunkRing;
use crate::ledger;
use crate::load::Programs;
use crate::looks::{self, LookBatch, Looks};
use crate::own::cpu_time::counted;
use crate::own::forced::CheckedLedger;
use crate::own::priority::Raised;
use crate::own::say::say;
use crate::pipeline::drain::{DrainControl, Drained};
use crate::pipeline::outlet::{Compressed, Outlet};
use crate::pipeline::progress::Progress;
use crate::pipeline::stage::{EncodeStage, Encoded, Flying, StageOutput};
use crate::rings::backlog::Backlog;
use crate::rings::records::Records;
use crate::rings::sizes::RingSizes;
use crate::stacks::budget::NamesTime;
use crate::stacks::feed::UnwindInput;
use crate::stacks::forgot::Forgot;
use crate::stacks::name_queue::NameQueue;
use crate::stacks::taken::StackBatch;
use crate::stacks::{NameWorker, Workers, asleep, feed};
use crate::tape::sink::{OutputState, TapeSink};
use crate::tape::sync::{self, Syncing};

pub(crate) mod drain;
pub(crate) mod outlet;
pub(crate) mod progress;
pub(crate) mod stage;

/// Windows of counted calls that may wait for the encoder.
const WINDOWS: usize = 2;
/// Pieces that may wait to be compressed, each of megabytes. Who compresses waits for nobody but the CPU, so more of
/// them would only take memory.
const PIECES: usize = 1;
/// Level 3 takes 3 to 56 % more time for 0 to 6 % fewer bytes (decision 33).
const ZSTD_LEVEL: i32 = 1;
/// Of looks, which are few, and are stored all year.
const LOOKS_LEVEL: i32 = 9;
/// Of names, which are few.
const NAMES_LEVEL: i32 = 6;

/// Where a recording goes.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    /// The tape and its name; None = everything stays in memory.
    pub tape: Option<(TapeSink, &'a Path)>,
    /// The flight recorder; None = there is none.
    pub flight: Option<PreparedFlight>,
    /// What looks may begin; None = nothing.
    pub escalator: Option<Escalator>,
    /// What looks found wrong before this recording was begun for it; None = nobody looked.
    pub begun_for: Option<FoundWrong>,
    /// When it is synced.
    pub sync: sync::Policy,
    /// Most bytes that wait in memory.
    pub buffer: u64,
}

/// Pieces on their way to the writer, by number; names have no number of their own.
#[derive(Clone)]
struct Done {
    out: Sender<(u64, Compressed)>,
    progress: Arc<Progress>,
}

impl Done {
    /// Passes a piece on without waiting; false when the writer is gone.
    fn send(&self, seq: u64, piece: Compressed) -> bool {
        self.progress.backlog.add_piece(piece.bytes());
        self.out.send((seq, piece)).is_ok()
    }
}

/// The beginning of a tape.
pub(crate) struct About {
    /// Id of the tape.
    pub id: [u8; 16],
    /// The session.
    pub session: Session,
    /// Tables that it may have rows of, which it defines itself.
    pub tables: Vec<Arc<TableDef>>,
    /// Classes that it takes out never reach the tape.
    pub redactor: Option<Redactor>,
}

impl About {
    /// Redacts the session; returns the redactor for the rest.
    fn redact(&mut self) -> Option<Arc<Redactor>> {
        let redactor = self.redactor.take()?;
        redactor.session(&mut self.session);
        Some(Arc::new(redactor))
    }
}

/// The running stages.
pub(crate) struct Pipeline {
    /// Stops the drain.
    pub control: Arc<DrainControl>,
    /// Counters of all stages.
    pub progress: Arc<Progress>,
    /// Sizes of the rings.
    pub rings: RingSizes,
    drain: JoinHandle<Result<Option<CheckedLedger>>>,
    ledger: JoinHandle<Result<()>>,
    encode: JoinHandle<Encoded>,
    compress: Vec<JoinHandle<Result<()>>>,
    write: JoinHandle<Result<Outlet>>,
    /// Looks at all threads; None = not requested.
    looks: Option<Looks>,
    /// Disconnected when all stacks of sleepers were sent.
    asleep: Option<Receiver<()>>,
    stacks: StackThreads,
    start: Sender<Start>,
    sync: Option<Syncing>,
    opened: Receiver<()>,
    /// Ends the look-up of names; None = there is none.
    pub names_time: Option<NamesTime>,
}

impl Pipeline {
    /// Starts all stages on `tape`. The calling thread's priority was `raised` for the drain.
    ///
    /// # Errors
    /// When the tape cannot be written or a thread cannot be made.
    pub(crate) fn start(
        programs: Programs,
        raised: Raised,
        output: Output<'_>,
        mut tape: About,
        (settings, wanted): (Settings, Wanted),
        stacks: Option<Workers>,
    ) -> Result<Self> {
        let redactor = tape.redact();
        let control = Arc::new(DrainControl::default());
        let flow = output.tape.as_ref().map_or_else(Arc::<OutputState>::default, |(sink, _)| sink.flow());
        let progress = Arc::new(Progress::new(output.buffer, flow));
        let forgot = Forgot::default();
        let rings = programs.ring_sizes();
        let (walker, tables, always) = (programs.walker()?, programs.ledger()?, programs.checks_ledger());
        let (batch_tx, batches) = unbounded();
        let (piece_tx, pieces) = bounded::<(u64, StageOutput)>(PIECES);
        let (done_tx, done_rx) = unbounded();
        let done = Done { out: done_tx, progress: Arc::clone(&progress) };
        let (start, starts) = bounded(1);
        let (counted_tx, counted) = bounded(WINDOWS);
        let (raw_tx, raw_rx) = stacks.is_some().then(|| bounded(feed::BATCHES)).unzip();
        let sleepers = programs.sleepers()?;
        let (sleeper_tx, sleeper_rx) = sleepers.is_some().then(|| bounded(asleep::BATCHES)).unzip();

        let looking = programs.looks()?;
        let rare = looking.is_some();
        let (look_tx, look_rx) =
            (rare || output.begun_for.is_some()).then(|| bounded::<LookBatch>(looks::BATCHES)).unzip();
        if let (Some(begun_for), Some(out)) = (&output.begun_for, &look_tx) {
            let mut batch = LookBatch::default();
            batch.rows.push(&begun_for.record(settings.window_open, &begun_for.what, ""));
            out.send(batch).ok();
        }

        let drained = Arc::new(AtomicBool::new(false));
        let draining = Draining {
            programs,
            wanted,
            control: Arc::clone(&control),
            progress: Arc::clone(&progress),
            drained: Arc::clone(&drained),
        };
        let drain = draining.start(batch_tx, raw_tx, (sleeper_rx, look_rx))?;
        raised.lower();
        let asleep = sleepers.zip(sleeper_tx).map(|(links, out)| asleep::start(links, out)).transpose()?;
        let with_stacks = settings.stacks.on.contains(&StackOf::Row);
        let how = (settings.stacks.frequency, with_stacks);
        let look = |(programs, out)| Looks::start(programs, how, output.escalator, out);
        let level = if rare { LOOKS_LEVEL } else { ZSTD_LEVEL };
        let looks = looking.zip(look_tx).map(look).transpose()?;
        let start_sync = |(sink, path): &(TapeSink, &Path)| Syncing::start(output.sync, sink, path, &progress.failed);
        let sync = output.tape.as_ref().map(start_sync).transpose()?;
        let ends = NamesTo {
            done: output.tape.as_ref().map(|_| done.clone()),
            forgot: output.flight.as_ref().map(|_| forgot.clone()),
        };
        let mut stacks = match stacks.zip(raw_rx) {
            Some((workers, raw)) => StackThreads::start(workers, raw, ends, redactor.as_ref())?,
            None => StackThreads::default(),
        };
        let (taken, tell, names_time) = (stacks.taken.take(), stacks.tell.take(), stacks.names_time.take());
        let told = ledger::Told { stop: drained, rare, ..ledger::Told::default() };
        let count_now = Arc::clone(&told.now);
        let ledger = spawn("ledger", move || ledger::run(tables, always, &told, &counted_tx))?;
        let (flying, ring) = match output.flight {
            Some(flight) => {
                let (flying, ring) =
                    flying(flight, &tape, stacks.store.take(), output.sync, forgot, Arc::clone(&progress.kept));
                (Some(flying), Some(ring))
            }
            None => (None, None),
        };
        let about = Arc::clone(&progress);
        let encode = spawn("encode", move || {
            let _closing = ClosesBacklog(&about.backlog);
            let stage = EncodeStage::new(settings, walker, piece_tx, Arc::clone(&about), tell, flying);
            stage.run(&starts, &batches, taken, (&counted, count_now))
        })?;
        // the writer ends when all of these have
        let compress = compressors(&pieces, done, redactor.as_ref(), (ring.is_some(), level))?;
        let (open, opened) = bounded(1);
        let write = start_writer(output.tape.map(|(sink, _)| sink), ring, tape, open, done_rx, Arc::clone(&progress))?;
        Ok(Self {
            control,
            progress,
            rings,
            drain,
            ledger,
            encode,
            compress,
            write,
            looks,
            asleep,
            stacks,
            start,
            sync,
            opened,
            names_time,
        })
    }

    /// Whether the tape's beginning is written: Some(false) = it never will be, None = not in `time`.
    pub(crate) fn opened(&self, time: Duration) -> Option<bool> {
        match self.opened.recv_timeout(time) {
            Ok(()) => Some(true),
            Err(RecvTimeoutError::Disconnected) => Some(false),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Passes the state at the start on; encoding begins with it.
    pub(crate) fn begin(&self, start: Start) {
        self.start.send(start).ok();
    }

    /// Whether the writer has failed, for any reason.
    pub(crate) fn broken(&self) -> bool {
        self.progress.failed.load(Ordering::Acquire) || self.write.is_finished()
    }

    /// Stops, waits until everything is written, ends the tape, and syncs it.
    ///
    /// # Errors
    /// The first error of any stage. Everything written before it is readable.
    pub(crate) fn finish(self, end: impl FnOnce(&Encoded) -> End) -> Result<(Encoded, u64)> {
        // of a short recording too; it may hang in a process that hangs
        self.asleep.map(|done| done.recv_timeout(asleep::END_PATIENCE));
        // its last rows are to be read by the drain
        if let Some(looks) = self.looks {
            looks.finish();
        }
        self.control.stop.store(true, Ordering::Release);
        // an encoder that was not told to begin is not to wait for it
        drop(self.start);
        let drained = join(self.drain)?;
        let mut encoded = join(self.encode)?;
        // the last place was told
        self.names_time.iter().for_each(NamesTime::recording_ended);
        let counted = join(self.ledger)?;
        // it may hang in a file system that does not answer; the encoder has waited long enough
        self.stacks.unwind.filter(JoinHandle::is_finished).map(join).transpose()?;
        if let Err(e) = self.stacks.names.map(join).transpose().and_then(|done| done.transpose()) {
            // names can be looked up later, events cannot be recorded later
            say(format_args!("names of functions are missing: {e:#}"));
        }
        let compressed: Vec<Result<()>> = self.compress.into_iter().map(join).collect::<Result<_>>()?;
        let writer = join(self.write)??.finish();
        encoded.checked = drained?;
        counted?;
        compressed.into_iter().collect::<Result<()>>()?;
        let Some(writer) = writer else { return Ok((encoded, self.progress.bytes())) };
        let sink = writer.finish(&end(&encoded)).context("cannot write the end of the tape")?;
        self.progress.flow.wait(|| {
            self.sync.map(Syncing::finish).transpose()?;
            sink.check_name()?;
            sink.close().context("cannot close the tape")
        })?;
        Ok((encoded, self.progress.flow.accepted.load(Ordering::Relaxed)))
    }
}

/// The drain's inputs.
struct Draining {
    programs: Programs,
    /// What is read of calls in flight at the end.
    wanted: Wanted,
    control: Arc<DrainControl>,
    progress: Arc<Progress>,
    /// Set at the end of the recording.
    drained: Arc<AtomicBool>,
}

impl Draining {
    fn start(
        self,
        out: Sender<Drained>,
        unwinding: Option<Sender<UnwindInput>>,
        apart: (Option<Receiver<Records>>, Option<Receiver<LookBatch>>),
    ) -> Result<JoinHandle<Result<Option<CheckedLedger>>>> {
        spawn("drain", move || {
            let Self { programs, wanted, control, progress, drained } = self;
            let result = drain::run(programs, (&control, &wanted), (&out, &progress.backlog), unwinding, apart);
            // no call is counted after the window was closed
            drained.store(true, Ordering::Release);
            result
        })
    }
}

/// The threads beside the events' way; none without stacks.
#[derive(Default)]
struct StackThreads {
    unwind: Option<JoinHandle<()>>,
    names: Option<JoinHandle<Result<()>>>,
    /// Stacks that were unwound; the encoder takes it.
    taken: Option<Receiver<StackBatch>>,
    /// Takes places whose names are needed, from the encoder.
    tell: Option<NameQueue>,
    /// Names for the flight recorder.
    store: Option<NameStore>,
    /// Ends the look-up of names.
    names_time: Option<NamesTime>,
}

/// Where names go.
struct NamesTo {
    /// To the tape.
    done: Option<Done>,
    /// To the flight recorder, which may forget them.
    forgot: Option<Forgot>,
}

impl StackThreads {
    fn start(
        workers: Workers,
        raw: Receiver<UnwindInput>,
        to: NamesTo,
        redactor: Option<&Arc<Redactor>>,
    ) -> Result<Self> {
        let (out, taken) = bounded(feed::BATCHES);
        let NamesTo { done, forgot } = to;
        let mut unwinding = workers.unwinding;
        if let Some(forgot) = &forgot {
            unwinding.may_forget(forgot.clone());
        }
        let unwind = spawn("unwind", move || unwinding.run(&raw, &out))?;
        let mut threads = Self { unwind: Some(unwind), taken: Some(taken), ..Self::default() };
        if let Some(NameWorker { mut names, queue, told, time }) = workers.names {
            let redactor = redactor.cloned();
            if forgot.is_some() {
                names.are_forgotten();
            }
            let store = forgot.map(|forgot| NameStore::new(queue.clone(), forgot));
            threads.store.clone_from(&store);
            let mut compressor = Encoder::new(NAMES_LEVEL);
            let write = move |symbols: Symbols| {
                if let Some(done) = &done {
                    // who takes them is gone only when writing failed, which the main thread sees
                    done.send(0, Compressed::Symbols(compressor.symbols(&symbols).context("names")?));
                }
                if let Some(store) = &store {
                    store.add(symbols);
                }
                Ok(())
            };
            threads.names = Some(spawn("names", move || names.run(&told, redactor.as_deref(), write))?);
            threads.tell = Some(queue);
            threads.names_time = Some(time);
        }
        Ok(threads)
    }
}

/// Starts the threads that compress; pieces are done when all of them have ended.
fn compressors(
    pieces: &Receiver<(u64, StageOutput)>,
    done: Done,
    redactor: Option<&Arc<Redactor>>,
    (places, level): (bool, i32),
) -> Result<Vec<JoinHandle<Result<()>>>> {
    let count = thread::available_parallelism().map_or(1, |n| n.get().clamp(1, 4));
    let one = |_| {
        let (pieces, done, redactor) = (pieces.clone(), done.clone(), redactor.cloned());
        spawn("compress", move || compress(&pieces, &done, redactor.as_deref(), (places, level)))
    };
    (0..count).map(one).collect()
}

/// The flight recorder's part of the encoder and its memory.
fn flying(
    flight: PreparedFlight,
    tape: &About,
    names: Option<NameStore>,
    sync: sync::Policy,
    forgot: Forgot,
    flow: Arc<OutputState>,
) -> (Flying, ChunkRing) {
    let PreparedFlight { settings, dir, commands, status } = flight;
    let (session, tables) = (tape.session.clone(), tape.tables.clone());
    let plan = Plan { dir, session, tables, names, sync, status: Arc::clone(&status), flow };
    let ring = ChunkRing::new(settings.bounds, Arc::new(plan));
    (Flying { settings, commands, status, forgot }, ring)
}

/// Begins the tape in a thread of its own, and tells `open` when that is done.
fn start_writer(
    sink: Option<TapeSink>,
    ring: Option<ChunkRing>,
    tape: About,
    open: Sender<()>,
    done: Receiver<(u64, Compressed)>,
    progress: Arc<Progress>,
) -> Result<JoinHandle<Result<Outlet>>> {
    let failed = Arc::clone(&progress.failed);
    let work = move || {
        let begin = |sink| {
            let mut writer = Writer::create(sink, tape.id, &tape.session).context("cannot write the tape")?;
            writer.define_always(tape.tables);
            anyhow::Ok(writer)
        };
        let outlet = Outlet::new(sink.map(begin).transpose()?, ring);
        open.send(()).ok();
        write(outlet, &done, &progress)
    };
    spawn("write", move || {
        let written = work();
        failed.fetch_or(written.is_err(), Ordering::AcqRel);
        written
    })
}

/// A closed backlog wakes those that wait for a gone encoder.
struct ClosesBacklog<'a>(&'a Backlog);

impl Drop for ClosesBacklog<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn spawn<T: Send + 'static>(name: &'static str, run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    thread::Builder::new()
        .name(name.into())
        .spawn(counted(name, run))
        .with_context(|| format!("cannot start the {name} thread"))
}

fn join<T>(handle: JoinHandle<T>) -> Result<T> {
    let name = handle.thread().name().unwrap_or("").to_owned();
    handle.join().map_err(|_| anyhow!("the {name} thread died; what was written before is readable"))
}

/// Compresses and redacts pieces as they come; the writer restores their order. `places`: the places on stacks are kept
/// beside a segment.
fn compress(
    pieces: &Receiver<(u64, StageOutput)>,
    done: &Done,
    redactor: Option<&Redactor>,
    (places, level): (bool, i32),
) -> Result<()> {
    let mut compressor = Encoder::new(level);
    let redact = |data: &mut SegmentData| redactor.into_iter().for_each(|redactor| redactor.segment(data));
    for (seq, work) in pieces {
        let compressed = match work {
            StageOutput::Piece(Piece::Checkpoint(mut checkpoint)) => {
                redactor.into_iter().for_each(|redactor| redactor.checkpoint(&mut checkpoint));
                Compressed::Checkpoint(compressor.checkpoint(&checkpoint).context("checkpoint")?)
            }
            StageOutput::Piece(Piece::Segment(mut data)) => {
                redact(&mut data);
                let places = if places { data.place_keys() } else { Box::default() };
                Compressed::Segment(compressor.segment(*data).context("segment")?, places)
            }
            StageOutput::Step(step) => Compressed::Step(step.try_map(|mut data| {
                redact(&mut data);
                compressor.segment(*data).context("segment")
            })?),
        };
        if !done.send(seq, compressed) {
            break;
        }
    }
    Ok(())
}

/// Writes pieces in their order. A piece is written at once and whole, so that it survives this process.
fn write(mut outlet: Outlet, done: &Receiver<(u64, Compressed)>, progress: &Progress) -> Result<Outlet> {
    // at most as many as there are compressors and places in the channels before them
    let mut early = BTreeMap::new();
    let mut next = 0;
    progress.written.store(outlet.bytes(), Ordering::Relaxed);
    for (seq, piece) in done {
        if let Compressed::Symbols(_) = piece {
            write_piece(&mut outlet, piece, progress)?;
            continue;
        }
        early.insert(seq, piece);
        while let Some(piece) = early.remove(&next) {
            write_piece(&mut outlet, piece, progress)?;
            next += 1;
        }
    }
    Ok(outlet)
}

fn write_piece(outlet: &mut Outlet, piece: Compressed, progress: &Progress) -> Result<()> {
    let bytes = piece.bytes();
    let written = outlet.add(piece);
    progress.backlog.take_piece(bytes);
    progress.written.store(outlet.bytes(), Ordering::Relaxed);
    written
}
