//! The stages behind the rings: drain → encode → compress → write, each a thread, each channel bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, Sender, bounded};
use systape_format::encode::{EncodedCheckpoint, EncodedSegment, EncodedSymbols, Encoder as Compressor};
use systape_format::model::{End, Session};
use systape_format::writer::Writer;

use crate::drain::{self, Checked, Control};
use crate::encode::{Piece, Settings, Start};
use crate::ledger;
use crate::load::Programs;
use crate::stacks::{self, NameWorker, feed};
use crate::stage::{Encoded, Stage};

/// Batches that may wait for the encoder (256 KiB each).
const BATCHES: usize = 256;
/// Windows of counted calls that may wait for the encoder.
const WINDOWS: usize = 2;
/// Pieces that may wait to be compressed.
const PIECES: usize = 4;
const ZSTD_LEVEL: i32 = 3;
/// Under pressure compression gives way before events do.
const ZSTD_LEVEL_PRESSED: i32 = 1;

/// Where the tape goes.
pub enum Sink {
    /// A file, given back to be synced.
    File(File),
    /// A pipe or socket.
    Stream(Box<dyn Write + Send>),
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(f) => f.write(buf),
            Self::Stream(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(f) => f.flush(),
            Self::Stream(s) => s.flush(),
        }
    }
}

/// Numbers anybody may look at while the recording runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Events encoded.
    pub events: AtomicU64,
    /// Bytes of the tape.
    pub bytes: AtomicU64,
    /// Set when the tape can no longer be written.
    pub failed: AtomicBool,
}

enum Compressed {
    Checkpoint(EncodedCheckpoint),
    Segment(EncodedSegment),
    Symbols(EncodedSymbols),
}

/// The running stages.
pub struct Pipeline {
    /// Tells the drain to stop.
    pub control: Arc<Control>,
    /// Looks at the rest.
    pub progress: Arc<Progress>,
    drain: JoinHandle<Result<Option<Checked>>>,
    ledger: JoinHandle<Result<()>>,
    encode: JoinHandle<Encoded>,
    compress: Vec<JoinHandle<Result<()>>>,
    write: JoinHandle<Result<Writer<Sink>>>,
    unwind: Option<JoinHandle<()>>,
    names: Option<JoinHandle<Result<()>>>,
    start: Sender<Start>,
}

impl Pipeline {
    /// Starts all stages on a tape that begins with `session`.
    ///
    /// # Errors
    /// When the tape cannot be written or a thread cannot be made.
    pub fn start(
        programs: Programs,
        sink: Sink,
        tape_id: [u8; 16],
        session: &Session,
        settings: Settings,
        stacks: Option<stacks::Workers>,
    ) -> Result<Self> {
        let control = Arc::new(Control::default());
        let progress = Arc::new(Progress::default());
        let writer = Writer::create(sink, tape_id, session).context("cannot write the tape")?;
        let walker = programs.walker()?;
        let (batch_tx, batch_rx) = bounded(BATCHES);
        let (piece_tx, piece_rx) = bounded::<(u64, Piece)>(PIECES);
        let (done_tx, done_rx) = bounded(PIECES);
        let (start_tx, start_rx) = bounded(1);

        let (mut raw_tx, mut taken_rx, mut unwind, mut names, mut tell) = (None, None, None, None, None);
        if let Some(workers) = stacks {
            let (tx, rx) = bounded(feed::BATCHES);
            let (out, taken) = bounded(feed::BATCHES);
            unwind = Some(spawn("unwind", move || workers.unwinding.run(&rx, &out))?);
            (raw_tx, taken_rx) = (Some(tx), Some(taken));
            if let Some(NameWorker { names: worker, tell: tx, told }) = workers.names {
                let done = done_tx.clone();
                // who takes them is gone only when writing failed, which the main thread sees
                let write = move |symbols| drop(done.send((0, Compressed::Symbols(symbols))));
                names = Some(spawn("names", move || worker.run(&told, write))?);
                tell = Some(tx);
            }
        }
        let (counted_tx, counted_rx) = bounded(WINDOWS);
        let drained = Arc::new(AtomicBool::new(false));
        let ledger = {
            let (tables, drained, always) = (programs.ledger()?, Arc::clone(&drained), programs.checks_ledger());
            spawn("ledger", move || ledger::run(tables, always, &drained, &counted_tx))?
        };
        let drain = {
            let control = Arc::clone(&control);
            spawn("drain", move || {
                let result = drain::run(programs, &control, &batch_tx, raw_tx);
                // no call is counted after the window was closed
                drained.store(true, Ordering::Release);
                result
            })?
        };
        let encode = {
            let progress = Arc::clone(&progress);
            spawn("encode", move || {
                Stage::new(settings, walker, piece_tx, progress, tell).run(&start_rx, &batch_rx, taken_rx, &counted_rx)
            })?
        };
        let workers = thread::available_parallelism().map_or(1, |n| n.get().clamp(1, 4));
        let compress = (0..workers)
            .map(|_| {
                let (rx, tx) = (piece_rx.clone(), done_tx.clone());
                spawn("compress", move || compress(&rx, &tx))
            })
            .collect::<Result<Vec<_>>>()?;
        let write = {
            let progress = Arc::clone(&progress);
            spawn("write", move || write(writer, &done_rx, &progress))?
        };
        Ok(Self { control, progress, drain, ledger, encode, compress, write, unwind, names, start: start_tx })
    }

    /// Hands over the state at the start; encoding begins with it.
    pub fn begin(&self, start: Start) {
        self.start.send(start).ok();
    }

    /// Stops, waits for everything to be written, and ends the tape.
    ///
    /// # Errors
    /// The first thing that went wrong in any stage. What was written before it is readable.
    pub fn finish(self, end: impl FnOnce(&Encoded) -> End) -> Result<(Encoded, u64, Sink)> {
        self.control.stop.store(true, Ordering::Release);
        let drained = join(self.drain)?;
        let mut encoded = join(self.encode)?;
        let counted = join(self.ledger)?;
        // it may hang in a file system that does not answer; the encoder has waited long enough
        self.unwind.filter(JoinHandle::is_finished).map(join).transpose()?;
        if let Err(e) = self.names.map(join).transpose().and_then(|done| done.transpose()) {
            // names can be looked up later, events cannot be recorded later
            eprintln!("record: names of functions are missing: {e:#}");
        }
        let compressed: Vec<Result<()>> = self.compress.into_iter().map(join).collect::<Result<_>>()?;
        let writer = join(self.write)??;
        encoded.checked = drained?;
        counted?;
        compressed.into_iter().collect::<Result<()>>()?;
        // the two blocks that finish() appends are not counted by the writer that is gone then
        let sink = writer.finish(&end(&encoded)).context("cannot write the end of the tape")?;
        Ok((encoded, self.progress.bytes.load(Ordering::Relaxed), sink))
    }
}

fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    thread::Builder::new().name(name.into()).spawn(run).with_context(|| format!("cannot start the {name} thread"))
}

fn join<T>(handle: JoinHandle<T>) -> Result<T> {
    let name = handle.thread().name().unwrap_or("").to_owned();
    handle.join().map_err(|_| anyhow!("the {name} thread died; what was written before is readable"))
}

/// Compresses pieces as they come; the writer puts them back in order.
fn compress(pieces: &Receiver<(u64, Piece)>, done: &Sender<(u64, Compressed)>) -> Result<()> {
    let mut compressor = Compressor::new(ZSTD_LEVEL);
    for (seq, piece) in pieces {
        compressor.set_level(if pieces.is_full() { ZSTD_LEVEL_PRESSED } else { ZSTD_LEVEL });
        let compressed = match piece {
            Piece::Checkpoint(cp) => Compressed::Checkpoint(compressor.checkpoint(&cp).context("checkpoint")?),
            Piece::Segment(data) => Compressed::Segment(compressor.segment(*data).context("segment")?),
        };
        if done.send((seq, compressed)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Writes pieces in their order. A piece is written at once and whole: what is written survives this process.
fn write(mut writer: Writer<Sink>, done: &Receiver<(u64, Compressed)>, progress: &Progress) -> Result<Writer<Sink>> {
    // at most as many as there are compressors and places in the channels before them
    let mut early = BTreeMap::new();
    let mut next = 0;
    progress.bytes.store(writer.bytes(), Ordering::Relaxed);
    let failed = |e| {
        progress.failed.store(true, Ordering::Release);
        Err(e).context("what was written before is readable")
    };
    for (seq, piece) in done {
        if let Compressed::Symbols(symbols) = piece {
            if let Err(e) = writer.symbols(symbols) {
                return failed(e);
            }
            progress.bytes.store(writer.bytes(), Ordering::Relaxed);
            continue;
        }
        early.insert(seq, piece);
        while let Some(piece) = early.remove(&next) {
            let written = match piece {
                Compressed::Checkpoint(cp) => writer.checkpoint(cp),
                Compressed::Segment(segment) => writer.segment(segment),
                Compressed::Symbols(symbols) => writer.symbols(symbols),
            };
            if let Err(e) = written {
                return failed(e);
            }
            next += 1;
            progress.bytes.store(writer.bytes(), Ordering::Relaxed);
        }
    }
    Ok(writer)
}
