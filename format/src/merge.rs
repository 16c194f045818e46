//! Puts cuts of one recording together again: neighbours, or such that overlap.
//!
//! Each moment belongs to one of the tapes, the first that is about it, and every row to the tape of its moment: a call
//! to that of its beginning. What tapes have from outside of their windows is taken where none has the moment: before
//! all of them from the first, behind all of them from any, once.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::encode::Encoder;
use crate::error::{Error, Result};
use crate::families::{BLOCK_FILE, FILE_IDENTITY};
use crate::header::{BlockKind, INCOMPAT_CUT};
use crate::model::{Dict, End, Family, Session, Task, Window};
use crate::reader::Tape;
use crate::repair::Part;
use crate::rows::{Picks, Places, Row, Rows};
use crate::segment::SegmentBuilder;
use crate::table::TableDef;
use crate::writer::{Writer, session_block};

/// zstd's level.
const LEVEL: i32 = 3;
/// Most tapes: each is open.
pub const MAX_TAPES: usize = 1024;

/// A tape to put together with others.
struct Piece<'a> {
    tape: &'a Tape,
    /// Moments that are its own.
    own: Window,
    /// Windows of its segments.
    windows: Vec<(u64, u64)>,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// What the new tape is about; None: the whole recording.
    pub window: Option<Window>,
    /// Segments of the tape.
    pub segments: u32,
}

/// Why tapes cannot be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The tape at this position, from 0 on, for this reason.
    #[error("tape {0} of those to merge: {1}")]
    Tape(usize, String),
    /// Writing or reading failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// The number of a tape's recording.
fn recording(tape: &Tape) -> &[u8] {
    if tape.session.recording.is_empty() { &tape.tape_id } else { &tape.session.recording }
}

/// What a tape is about.
fn window(tape: &Tape) -> Window {
    tape.session.cut.unwrap_or(Window { from: tape.session.window_open, to: u64::MAX })
}

/// The tapes in the order of their windows, with what each has alone.
fn pieces<'a>(tapes: &[&'a Tape]) -> std::result::Result<Vec<Piece<'a>>, Refused> {
    let refuse = |at: usize, why: &str| Err(Refused::Tape(at, why.to_owned()));
    if tapes.is_empty() || tapes.len() > MAX_TAPES {
        return refuse(0, &format!("{} tapes; 1 to {MAX_TAPES} can be put together", tapes.len()));
    }
    let mut order: Vec<usize> = (0..tapes.len()).collect();
    order.sort_by_key(|at| (window(tapes[*at]).from, window(tapes[*at]).to));
    let first = tapes[order[0]];
    let mut pieces: Vec<Piece<'a>> = Vec::new();
    let mut until = window(first).from;
    for at in order {
        let tape = tapes[at];
        if !tape.findings.is_empty() || tape.end_mark().is_none() {
            return refuse(at, "it is damaged or has no end: 'analyze repair' makes a copy that can be put together");
        }
        if recording(tape) != recording(first) {
            let why = "it is of another recording: numbers of threads, processes and sockets mean other ones there. Only \
                       cuts of one recording can be put together; 'analyze top A B' adds up several tapes";
            return refuse(at, why);
        }
        if !alike(&tape.session, &first.session) {
            return refuse(at, "it was cut with other -p, -G or --families, or redacted otherwise, than the others");
        }
        let Window { from, to } = window(tape);
        if from > until {
            return refuse(at, "a part before it is missing: it begins after the end of the ones before it");
        }
        if to <= until && !pieces.is_empty() {
            // all of it is in those before it
            continue;
        }
        let own = Window { from: until, to };
        let windows = (0..tape.segments.len())
            .map(|at| tape.segment(at).dict().map(|dict| (dict.window_start, dict.window_end)))
            .collect::<Result<_>>()?;
        pieces.push(Piece { tape, own, windows });
        until = to;
    }
    Ok(pieces)
}

/// Whether two sessions are of the same choice of tasks and families.
fn alike(a: &Session, b: &Session) -> bool {
    a.families == b.families
        && a.extent == b.extent
        && a.notes == b.notes
        && a.cut_tasks == b.cut_tasks
        && a.redacted == b.redacted
}

/// Puts `tapes` together into `out`; the same tapes in any order give the same bytes. Returns the output, not flushed.
///
/// # Errors
/// They are not parts of one recording that follow each other, or one of them cannot be read.
pub fn merge<W: Write>(tapes: &[&Tape], out: W) -> std::result::Result<(W, Merged), Refused> {
    let pieces = pieces(tapes)?;
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return Err(Refused::Tape(0, "there is no tape".to_owned()));
    };
    let all = Window { from: first.own.from, to: last.own.to };
    let whole = all == Window { from: first.tape.session.window_open, to: u64::MAX };
    let session = session(&pieces, (!whole).then_some(all));
    let ids: Vec<u8> = pieces.iter().flat_map(|piece| piece.tape.tape_id).collect();
    let mut joiner = Joiner {
        writer: Writer::begin(out, xxh3_128(&ids).to_le_bytes(), session_block(&session)?)?,
        encoder: Encoder::new(LEVEL),
        pieces: &pieces,
        all,
        late: HashSet::new(),
        checkpoints: vec![0; pieces.len()],
        events: Vec::new(),
    };
    let mut defs: Vec<Arc<TableDef>> =
        pieces.iter().flat_map(|piece| piece.tape.table_defs().values().cloned()).collect();
    defs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    defs.dedup_by(|a, b| a.name == b.name);
    joiner.writer.define_always(defs);
    joiner.run()?;
    let end = joiner.end(last.tape);
    let incompat = if last.tape.end().is_some() { 0 } else { INCOMPAT_CUT };
    let segments = joiner.writer.segments();
    let out = joiner.writer.finish_with(&end, incompat)?;
    Ok((out, Merged { window: session.cut, segments }))
}

/// The first one's session, with the names of all.
fn session(pieces: &[Piece<'_>], cut: Option<Window>) -> Session {
    let mut session = pieces.first().map(|piece| piece.tape.session.clone()).unwrap_or_default();
    for other in pieces.iter().skip(1).map(|piece| &piece.tape.session) {
        let new = |users: &[(u32, Vec<u8>)], uid: &u32| users.iter().all(|(known, _)| known != uid);
        session
            .users
            .extend(other.users.iter().filter(|(uid, _)| new(&session.users, uid)).cloned().collect::<Vec<_>>());
        for cgroup in &other.cgroups {
            if session.cgroups.iter().all(|(id, _)| *id != cgroup.0) {
                session.cgroups.push(cgroup.clone());
            }
        }
        for container in &other.containers {
            if !session.containers.contains(container) {
                session.containers.push(container.clone());
            }
        }
    }
    session.cut = cut;
    session.recording = pieces.first().map(|piece| recording(piece.tape).to_vec()).unwrap_or_default();
    session
}

/// The writing half.
struct Joiner<'a, W: Write> {
    writer: Writer<W>,
    encoder: Encoder,
    pieces: &'a [Piece<'a>],
    /// What the new tape is about.
    all: Window,
    /// Rows behind it that were written.
    late: HashSet<u64>,
    /// Of each tape, the next checkpoint.
    checkpoints: Vec<usize>,
    /// Events written, by family.
    events: Vec<(Family, u64)>,
}

impl<W: Write> Joiner<'_, W> {
    fn run(&mut self) -> Result<()> {
        let mut places = Places::new();
        let mut start = 0;
        for (at, piece) in self.pieces.iter().enumerate() {
            for (segment, (_, end)) in piece.windows.iter().enumerate() {
                // of the last tape also what is behind its window
                let last = at + 1 == self.pieces.len();
                // a segment on the edge is whole in the next tape: so it is one again, with the files of its I/Os once
                if !last && *end > piece.own.to {
                    break;
                }
                let is_last = last && segment + 1 == piece.windows.len();
                let end = *end;
                if end <= start && !is_last {
                    continue;
                }
                self.checkpoints(piece.tape.segments[segment].chunk, end)?;
                let begin = if start == 0 { piece.windows[segment].0 } else { start };
                let until = if is_last { u64::MAX } else { end };
                let mut builder = SegmentBuilder::new(begin);
                self.window((start, until), &mut builder, &mut places)?;
                if is_last {
                    self.names(&mut builder)?;
                }
                self.write(builder, end.max(begin))?;
                start = end;
            }
        }
        self.checkpoints(u32::MAX, u64::MAX)?;
        for piece in self.pieces {
            for at in 0..piece.tape.symbol_blocks() {
                let symbols = self.encoder.symbols(&piece.tape.symbols(at)?)?;
                self.writer.symbols(symbols)?;
            }
        }
        Ok(())
    }

    /// The checkpoints of chunks up to `chunk`, each from the tape that its moment belongs to.
    fn checkpoints(&mut self, chunk: u32, until: u64) -> Result<()> {
        for (at, piece) in self.pieces.iter().enumerate() {
            let next = &mut self.checkpoints[at];
            while let Some((number, _)) = piece.tape.checkpoints.get(*next).filter(|(number, _)| *number <= chunk) {
                let checkpoint = piece.tape.checkpoint(*next)?;
                if checkpoint.ts >= until {
                    break;
                }
                *next += 1;
                if owner(self.pieces, self.all, checkpoint.ts).unwrap_or(self.pieces.len() - 1) != at {
                    continue;
                }
                self.writer.in_chunk(*number);
                let encoded = self.encoder.checkpoint(&checkpoint)?;
                self.writer.checkpoint(encoded)?;
            }
        }
        self.writer.in_chunk(chunk.min(u32::MAX - 1));
        Ok(())
    }

    /// Adds the rows that end in `window`, of all tapes; those of the first tape first, as later names of a thread come behind earlier ones.
    fn window(&mut self, window: (u64, u64), builder: &mut SegmentBuilder, places: &mut Places) -> Result<()> {
        for (at, piece) in self.pieces.iter().enumerate() {
            for (segment, (start, end)) in piece.windows.iter().enumerate() {
                if *start >= window.1 || *end < window.0 {
                    continue;
                }
                let read = piece.tape.segment(segment);
                let dict = read.dict()?;
                let core = if read.has(BlockKind::SyscallsCore) { read.core(&dict)? } else { Default::default() };
                let kept = BlockKind::of_segment().filter(|kind| read.has(*kind)).collect();
                let part = Part { gaps: read.gaps()?, dict, core, kept, ..Part::default() };
                let picks = OwnRows {
                    pieces: self.pieces,
                    all: self.all,
                    at,
                    window,
                    segment: (*start, *end),
                    late: &mut self.late,
                };
                Rows::new(picks, read, &part, builder, places).copy()?;
            }
        }
        Ok(())
    }

    /// Names of processes by which cuts call them: in their last tables.
    fn names(&self, builder: &mut SegmentBuilder) -> Result<()> {
        for piece in self.pieces {
            if let Some(last) = piece.tape.segments.len().checked_sub(1) {
                piece.tape.segment(last).dict()?.tasks.iter().for_each(|task| _ = builder.intern_task(task));
            }
        }
        Ok(())
    }

    fn write(&mut self, builder: SegmentBuilder, end: u64) -> Result<()> {
        let segment = self.encoder.segment(builder.finish(end))?;
        for header in segment.blocks.iter().map(|block| &block.header) {
            let Some(family) = header.kind.family() else { continue };
            match self.events.iter_mut().find(|(known, _)| *known == family) {
                Some((_, count)) => *count += u64::from(header.rows),
                None => self.events.push((family, u64::from(header.rows))),
            }
        }
        self.writer.segment(segment)
    }

    fn end(&mut self, last: &Tape) -> End {
        let mut end = last.known_end();
        self.events.sort_unstable();
        end.events = std::mem::take(&mut self.events);
        end.reason = format!("{}; put together from {} tapes", crate::cut::before_cut(&end.reason), self.pieces.len());
        end
    }
}

/// The tape that a moment belongs to; None: it is behind all of them.
fn owner(pieces: &[Piece<'_>], all: Window, ts: u64) -> Option<usize> {
    if ts < all.from {
        return Some(0);
    }
    pieces.iter().position(|piece| piece.own.has(ts)).or_else(|| (all.to == u64::MAX).then_some(pieces.len() - 1))
}

/// Picks the rows of one tape that end in a window.
struct OwnRows<'a> {
    pieces: &'a [Piece<'a>],
    all: Window,
    /// The tape.
    at: usize,
    window: (u64, u64),
    /// The window of the segment: what came late, or is of a later time, is put into it.
    segment: (u64, u64),
    late: &'a mut HashSet<u64>,
}

impl Picks for OwnRows<'_> {
    fn stays(&mut self, dict: &Dict, row: Row<'_>) -> bool {
        // the moment it belongs to, and the one that says in which segment it is
        let (ts, end) = match row {
            Row::Call(_, _, span) => span,
            Row::Process(event) => (event.ts, event.ts),
            Row::Switch(event, _) => (event.ts, event.ts),
            Row::Wakeup(event, _) => (event.ts, event.ts),
            Row::Signal(event) => (event.ts, event.ts),
            Row::Net(event) => (event.ts, event.ts),
            Row::Block(io) => (io.complete, io.complete),
            Row::Uring(op) => (op.ts, op.ts),
            Row::Sample(sample) => (sample.ts, sample.ts),
            Row::Sleeper(sleeper) => (sleeper.ts, sleeper.ts),
            Row::Ledger(counted, _) => (counted.last, counted.last),
            Row::Table(table, row) => table.ts.get(row).map_or((0, 0), |ts| (*ts, *ts)),
            Row::Gap(gap) => (gap.last, gap.last),
        };
        // each part of a segment has the files of its I/Os and names
        if let Row::Table(table, _) = row
            && [&BLOCK_FILE.name, &FILE_IDENTITY.name].contains(&&table.def.name)
        {
            let overlaps = self.segment.1 > self.window.0 || self.segment.0 >= self.window.0;
            return overlaps && owner(self.pieces, self.all, self.window.0).is_none_or(|owner| owner == self.at);
        }
        // what came late stays in its segment, beside the files of its I/Os
        let place = end.clamp(self.segment.0, self.segment.1.saturating_sub(1).max(self.segment.0));
        if place < self.window.0 || (place >= self.window.1 && self.window.1 < u64::MAX) {
            return false;
        }
        match owner(self.pieces, self.all, ts) {
            Some(owner) => owner == self.at,
            // in none of the tapes: those that have it have the same
            None => self.late.insert(number(dict, row)),
        }
    }

    fn names(&self, start: u64) -> bool {
        self.all.has(start)
    }

    fn task(&self, task: &Task) -> Task {
        task.clone()
    }

    fn idles(&self, _task: &Task, _ts: u64) -> bool {
        false
    }
}

/// A number of what a row says, the same in all tapes that have it.
fn number(dict: &Dict, row: Row<'_>) -> u64 {
    let task = |task: u32| dict.tasks.get(task as usize).map_or((0, 0), |task| (task.utid, task.tid));
    let some = |whose: Option<u32>| whose.map(task);
    let text = match row {
        Row::Call(core, row, span) => format!("call {:?} {span:?} {:?}", task(core.task[row]), core.state[row]),
        Row::Process(event) => format!("process {} {:?} {:?}", event.ts, event.kind, task(event.task)),
        Row::Switch(event, _) => format!("switch {} {} {:?}", event.ts, event.cpu, task(event.prev)),
        Row::Wakeup(event, _) => format!("wakeup {} {} {:?}", event.ts, event.cpu, task(event.wakee)),
        Row::Signal(event) => {
            format!(
                "signal {} {:?} {} {:?} {:?}",
                event.ts,
                event.kind,
                event.sig,
                task(event.target),
                some(event.sender)
            )
        }
        Row::Net(event) => format!("net {} {} {}", event.ts, event.socket, event.new_state),
        Row::Block(io) => format!("block {io:?}"),
        Row::Uring(op) => format!("uring {} {:?} {}", op.ts, task(op.task), op.op),
        Row::Sample(sample) => format!("sample {} {}", sample.ts, sample.cpu),
        Row::Sleeper(sleeper) => format!("sleeper {} {:?}", sleeper.ts, task(sleeper.task)),
        Row::Ledger(row, _) => format!(
            "ledger {:?} {:?} {:?} {} {:?} {} {} {} {} {}",
            some(row.task),
            dict.calls.get(row.call as usize),
            row.reason,
            row.errno,
            row.state,
            row.cpu,
            row.count,
            row.sum,
            row.first,
            row.last
        ),
        Row::Table(table, row) => {
            let values: Vec<_> = table
                .def
                .columns
                .iter()
                .skip(1)
                .zip(&table.columns)
                .map(|(column, values)| {
                    let code = values.get(row).copied().unwrap_or(0);
                    use crate::table::Type;
                    match column.ty {
                        Type::Str => format!("{:?}", table.string(code)),
                        Type::Task => {
                            format!("{:?}", u32::try_from(code).ok().and_then(|code| code.checked_sub(1)).map(task))
                        }
                        Type::Stack => String::new(),
                        _ => code.to_string(),
                    }
                })
                .collect();
            format!("row {} {:?} {values:?}", table.def.name, table.ts.get(row))
        }
        Row::Gap(gap) => format!("gap {gap:?}"),
    };
    xxh3_64(text.as_bytes())
}
