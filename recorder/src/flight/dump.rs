//! Writes one tape in a thread of its own: what was kept, what follows, names, index and end mark.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail};
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustc_hash::FxHashSet;
use systape_format::encode::{EncodedSegment, Encoder};
use systape_format::model::{End, Session};
use systape_format::table::TableDef;
use systape_format::writer::Writer;

use super::dir::{self, Dir, Part};
use super::names::NameStore;
use super::piece::Piece;
use super::status::{Status, Written};
use super::step::{Closing, Opening, Reply, Sums, SumsDelta};
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::own::memory::peak_rss;
use crate::own::say::say;
use crate::tape::sink::OutputState;
use crate::tape::sync::Policy;

/// Level for names, as elsewhere.
const LEVEL: i32 = 6;
/// Room is checked again after so many bytes.
const CHECK_BYTES: u64 = 4 << 20;
/// Estimated bytes of index, end mark and names beside the pieces.
const BESIDE: u64 = 1 << 20;

/// What all tapes of a recording share.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where they go.
    pub dir: Arc<Dir>,
    /// Session of the tapes, redacted; each has another beginning.
    pub session: Session,
    /// Tables that each defines.
    pub tables: Vec<Arc<TableDef>>,
    /// Names of places on stacks; None = there are none.
    pub names: Option<NameStore>,
    /// When they are synced.
    pub sync: Policy,
    /// Where results go.
    pub status: Arc<Status>,
    /// Shows when a write does not end.
    pub flow: Arc<OutputState>,
}

/// The beginning of a tape.
#[derive(Debug)]
pub(crate) struct Begin {
    /// Session of the tape.
    pub session: Session,
    /// Goes behind the first checkpoint.
    pub prologue: Option<Arc<EncodedSegment>>,
    /// What was kept.
    pub pieces: Vec<Arc<Piece>>,
    /// Sums until its beginning.
    pub sums: Sums,
}

enum DumpMessage {
    Piece(Arc<Piece>),
    Close(Box<Closing>, EncodedSegment),
}

/// A tape that is being written.
#[derive(Debug)]
pub(crate) struct Dump {
    out: Option<Sender<DumpMessage>>,
    /// Bytes that wait for the disk.
    waiting: Arc<AtomicU64>,
    most: u64,
    thread: JoinHandle<()>,
}

impl Dump {
    /// Begins a tape with what is kept and `rows` of its own. At most `most` bytes wait for the disk beside those.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(
        plan: Arc<Plan>,
        begin: Begin,
        opening: Opening,
        rows: EncodedSegment,
        most: u64,
    ) -> Result<Self> {
        let (out, pieces) = unbounded();
        let waiting = Arc::new(AtomicU64::new(0));
        let left = Arc::clone(&waiting);
        let work = move || run(&plan, begin, &opening, rows, &pieces, &left);
        let thread = thread::Builder::new()
            .name("dump".into())
            .spawn(counted("dump", work))
            .context("cannot start the thread that writes it")?;
        Ok(Self { out: Some(out), waiting, most, thread })
    }

    /// Passes a piece on.
    pub(crate) fn add(&mut self, piece: &Arc<Piece>) {
        let Some(out) = &self.out else { return };
        let bytes = piece.bytes();
        if self.waiting.fetch_add(bytes, Ordering::Relaxed) > self.most {
            // without its sender it ends as one that was cut off
            self.out = None;
        } else {
            out.send(DumpMessage::Piece(Arc::clone(piece))).ok();
        }
    }

    /// The tape is complete but for its end.
    pub(crate) fn close(mut self, closing: Box<Closing>, rows: EncodedSegment) -> Self {
        match self.out.take() {
            Some(out) => drop(out.send(DumpMessage::Close(closing, rows))),
            None => answer(&closing.replies, &Err("the disk did not take it".into())),
        }
        self
    }

    /// Whether it is done.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for it.
    pub(crate) fn finish(mut self) {
        self.out = None;
        self.thread.join().ok();
    }
}

fn answer(replies: &[Reply], result: &Result<String, String>) {
    for reply in replies {
        // who asked may be gone
        reply.send(result.clone()).ok();
    }
}

/// Writes the tape; whatever happens, everybody who waits for it gets an answer.
fn run(
    plan: &Plan,
    begin: Begin,
    opening: &Opening,
    rows: EncodedSegment,
    pieces: &Receiver<DumpMessage>,
    waiting: &AtomicU64,
) {
    let realtime = clock::sample().realtime;
    let mut closing = None;
    let written = write(plan, (begin, realtime), opening, rows, (pieces, waiting), &mut closing);
    let result = written.map_err(|e| format!("{e:#}"));
    match &result {
        Ok(name) => say(format_args!("{}: {} -> {}", opening.slug, opening.what, plan.dir.path().join(name).display())),
        Err(why) => say(format_args!("{}: {}: no whole tape: {why}", opening.slug, opening.what)),
    }
    plan.status.written(Written {
        at: dir::stamp(realtime),
        realtime,
        what: opening.what.clone(),
        tape: result.clone(),
    });
    if closing.is_none() {
        // pieces that nobody writes leave the memory as they come
        closing = pieces.iter().find_map(|message| match message {
            DumpMessage::Piece(piece) => {
                waiting.fetch_sub(piece.bytes(), Ordering::Relaxed);
                None
            }
            DumpMessage::Close(closing, _) => Some(closing),
        });
    }
    if let Some(closing) = closing {
        answer(&closing.replies, &result);
    }
}

fn write(
    plan: &Plan,
    (begin, realtime): (Begin, u64),
    opening: &Opening,
    rows: EncodedSegment,
    (messages, waiting): (&Receiver<DumpMessage>, &AtomicU64),
    closed: &mut Option<Box<Closing>>,
) -> Result<String> {
    let Begin { session, prologue, pieces, sums } = begin;
    let kept: u64 = pieces.iter().map(|piece| piece.bytes()).sum();
    plan.dir.make_room(kept + BESIDE)?;
    let flow = &plan.flow;
    let Part { file, name } = flow.wait(|| plan.dir.create(realtime, &opening.slug))?;
    let left = || format!("{name}.part has what was written");
    let begun = DumpTape::begin(plan, Counting { file, bytes: 0, flow: Arc::clone(flow) }, &session);
    if begun.is_err() {
        plan.dir.discard_empty(&name);
    }
    let mut tape = begun.with_context(left)?;
    let mut prologue = prologue.map(|segment| EncodedSegment::clone(&segment));
    for piece in pieces {
        // it belongs behind the first checkpoint
        let behind = prologue.take_if(|_| matches!(*piece, Piece::Checkpoint(_)));
        tape.add(&piece, behind).with_context(left)?;
    }
    tape.writer.segment(rows).with_context(left)?;
    loop {
        match messages.recv() {
            Ok(DumpMessage::Piece(piece)) => {
                let added = tape.add(&piece, None);
                waiting.fetch_sub(piece.bytes(), Ordering::Relaxed);
                added.with_context(left)?;
            }
            Ok(DumpMessage::Close(closing, rows)) => {
                let end = end(&closing, &sums);
                *closed = Some(closing);
                tape.writer.segment(rows).with_context(left)?;
                let file = tape.finish(&end).with_context(left)?;
                if plan.sync != Policy::No {
                    flow.wait(|| file.sync_data()).context("cannot sync the tape").with_context(left)?;
                }
                flow.wait(|| plan.dir.keep(&name))?;
                if plan.sync != Policy::No {
                    flow.wait(|| plan.dir.sync());
                }
                return Ok(name);
            }
            Err(_) => bail!("the disk did not take it in time; {}", left()),
        }
    }
}

fn end(closing: &Closing, begin: &Sums) -> End {
    let SumsDelta { events, lost, own_calls } = closing.sums.since(begin);
    End {
        clock: clock::sample(),
        window_close: closing.window_close,
        reason: closing.reason.clone(),
        events,
        lost,
        command_exit: closing.command_exit,
        self_cpu_ns: clock::self_cpu(),
        self_peak_rss: peak_rss(),
        own_calls,
    }
}

/// A file whose length is known.
#[derive(Debug)]
struct Counting {
    file: std::fs::File,
    bytes: u64,
    flow: Arc<OutputState>,
}

impl Write for Counting {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let Self { file, bytes, flow } = self;
        let n = flow.wait(|| file.write(buf))?;
        *bytes += n as u64;
        flow.accepted.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

struct DumpTape<'a> {
    plan: &'a Plan,
    writer: Writer<Counting>,
    /// Places on its stacks.
    places: FxHashSet<u64>,
    checked: u64,
}

impl<'a> DumpTape<'a> {
    fn begin(plan: &'a Plan, file: Counting, session: &Session) -> Result<Self> {
        let id = plan.dir.tape_id(session.window_open);
        let mut writer = Writer::create(file, id, session).context("cannot write the tape")?;
        writer.define_always(plan.tables.clone());
        Ok(Self { plan, writer, places: FxHashSet::default(), checked: 0 })
    }

    fn add(&mut self, piece: &Piece, behind: Option<EncodedSegment>) -> Result<()> {
        match piece {
            Piece::Checkpoint(checkpoint) => self.writer.checkpoint(checkpoint.clone())?,
            Piece::Segment(segment, places) => {
                self.places.extend(places);
                self.writer.segment(segment.clone())?;
            }
        }
        if let Some(segment) = behind {
            self.writer.segment(segment)?;
        }
        if self.writer.bytes() - self.checked >= CHECK_BYTES {
            self.checked = self.writer.bytes();
            self.plan.dir.still_fits()?;
        }
        Ok(())
    }

    fn finish(mut self, end: &End) -> Result<std::fs::File> {
        if let Some(names) = &self.plan.names {
            names.settle();
            let mut encoder = Encoder::new(LEVEL);
            for symbols in names.of(&self.places) {
                self.writer.symbols(encoder.symbols(&symbols).context("names")?)?;
            }
        }
        Ok(self.writer.finish(end).context("cannot write the end of the tape")?.file)
    }
}
