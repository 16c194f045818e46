//! The events of a tape in order of time, for state machines: [`Scan::stream`].
//!
//! A [`Source`] reads segments on all CPUs, a batch ahead of the [`Machine`]. A segment's rows come in its order. A
//! call comes at its start, though it is stored where it ended: such rows are read when time reaches their start
//! ([`CarryPlan`]) and wait among the machine's other waiting events ([`Later`]). Memory grows with the calls open at
//! once, not with the tape.
//!
//! Losses are events too: known gaps, missing segments, unreadable parts. So are checkpoints.

use std::ops::ControlFlow;

use systape_format::Error;
use systape_format::model::{Checkpoint, Dict};
use systape_format::reader::{Segment, Tape};

use super::carry::{CarryPlan, Rows, carry_start, frontier};
use super::later::{HasTime, Later};
use super::lost::{Lost, MissingKind};
use super::{Coverage, Scan};
use crate::load::OpenCalls;
use crate::values::parallel;

/// Most segments decoded at a time: those of two batches are in memory.
const BATCH: usize = 6;

/// Reads segments.
pub trait Source: Sync {
    /// A row, as a plain value.
    type Row: HasTime + Send;
    /// Common parts of the rows of a segment.
    type Part: Default + Send;
    /// An event that a machine lets wait for its time.
    type Waiting: HasTime + Send;

    /// Whether calls are read.
    fn calls(&self) -> bool {
        true
    }

    /// Reads `rows` of a segment, in any order.
    fn read(&self, segment: Segment<'_>, dict: Dict, rows: Rows, piece: &mut Piece<Self>);

    /// Makes rows of the calls that were open when the recording ended abnormally.
    fn open(&self, open: OpenCalls, piece: &mut Piece<Self>);

    /// The other events than calls of `segment` cannot be read.
    fn unread(&self, _segment: &Segment<'_>, _error: &Error, _coverage: &mut Coverage) {}
}

/// The result of reading a segment.
#[derive(Debug)]
pub struct Piece<S: Source + ?Sized> {
    /// Index of the segment.
    pub at: usize,
    window: (u64, u64),
    /// Rows of the piece.
    pub rows: Vec<S::Row>,
    /// Common parts of the rows.
    pub part: S::Part,
    /// The error of an unreadable part.
    pub coverage: Coverage,
    /// Some or all other events than calls could not be read.
    pub lacks_events: bool,
    /// Calls, or required parts of them, could not be read.
    pub lacks_calls: bool,
}

/// Input of a state machine.
pub enum Event<'a, S: Source> {
    /// The first checkpoint, before everything else.
    Start(&'a Checkpoint),
    /// A later one. It comes early: its facts must wait for their time.
    Checkpoint(&'a Checkpoint),
    /// The following rows have these parts in common.
    Part(&'a mut S::Part),
    /// A row that began before its segment. It comes early: its events must wait for their time.
    Early(&'a S::Part, S::Row),
    /// A row.
    Row(&'a S::Part, S::Row),
    /// An event that waited.
    Due(S::Waiting),
    /// A loss begins.
    Lost(MissingKind, Lost),
    /// All rows of the segment were passed.
    End,
}

/// Receives events in order of time.
pub trait Machine<S: Source>: Send {
    /// Takes the next one. [`ControlFlow::Break`]: no more segments need be read; waiting events are still passed.
    fn push(&mut self, event: Event<'_, S>, later: &mut Later<S::Waiting>) -> ControlFlow<()>;

    /// Whether to read a checkpoint; `losses`: some are still to come.
    fn wants_checkpoint(&self, _losses: bool) -> bool {
        true
    }

    /// Segments that begin at this time or later need not be read.
    fn reads_until(&self) -> u64 {
        u64::MAX
    }
}

impl<S: Source, M: Machine<S>> Machine<S> for &mut M {
    fn push(&mut self, event: Event<'_, S>, later: &mut Later<S::Waiting>) -> ControlFlow<()> {
        (**self).push(event, later)
    }

    fn wants_checkpoint(&self, losses: bool) -> bool {
        (**self).wants_checkpoint(losses)
    }

    fn reads_until(&self) -> u64 {
        (**self).reads_until()
    }
}

/// Start of the tape's contents: earlier chunks may be gone.
pub fn opened(tape: &Tape) -> u64 {
    let late = tape.checkpoint_chunk(0).is_some_and(|chunk| chunk > 0);
    let first = if late { tape.checkpoint(0).map_or(0, |checkpoint| checkpoint.ts) } else { 0 };
    tape.session().window_open.max(first)
}

impl Scan<'_> {
    /// Passes to `machine`, in order of time, the events that `source` reads, and the losses: `lost`, known before, and
    /// those found on the way. A segment that the scan leaves out counts as missing.
    pub fn stream<S: Source>(
        &self,
        source: &S,
        lost: impl IntoIterator<Item = (MissingKind, Lost)>,
        machine: &mut impl Machine<S>,
    ) -> Coverage {
        let mut stream = Stream::new(self, source, lost, machine);
        while stream.step() {}
        // carry rows were read before earlier segments
        stream.coverage.holes.sort_by_key(|hole| hole.segment);
        stream.coverage
    }
}

/// Segments, and the carry rows that begin before their end.
struct Batch<S: Source> {
    early: Vec<Piece<S>>,
    own: Vec<Piece<S>>,
    /// Later batches have nothing before this.
    frontier: u64,
}

impl<S: Source> Batch<S> {
    fn none(frontier: u64) -> Self {
        Self { early: Vec::new(), own: Vec::new(), frontier }
    }
}

impl<S: Source> Piece<S> {
    fn new(at: usize) -> Self {
        let (rows, part, coverage) = (Vec::new(), S::Part::default(), Coverage::new());
        Self { at, window: (0, 0), rows, part, coverage, lacks_events: false, lacks_calls: false }
    }
}

/// What [`Scan::stream`] does, a batch at a time.
pub struct Stream<'s, 't, S: Source, M> {
    scan: &'s Scan<'t>,
    source: &'s S,
    /// Who is told.
    pub machine: M,
    /// All events before this time were passed.
    pub reached: u64,
    later: Later<S::Waiting>,
    lost: Later<(MissingKind, Lost)>,
    plan: CarryPlan,
    /// The next segment to read, and the batch to pass.
    next: usize,
    ready: Batch<S>,
    /// Number of segments passed, and of checkpoints taken.
    told: usize,
    checkpoints: usize,
    /// The time up to which segments were present.
    known_until: u64,
    coverage: Coverage,
    /// No more segments need be read.
    over: bool,
}

impl<'s, 't, S: Source, M: Machine<S>> Stream<'s, 't, S, M> {
    /// Passes what is known before the first event.
    pub fn new(
        scan: &'s Scan<'t>,
        source: &'s S,
        lost: impl IntoIterator<Item = (MissingKind, Lost)>,
        machine: M,
    ) -> Self {
        let mut stream = Self {
            scan,
            source,
            machine,
            reached: 0,
            later: Later::new([]),
            lost: Later::new(lost),
            plan: CarryPlan::of(scan.tape, if source.calls() { &scan.segments } else { &[] }),
            next: 0,
            ready: Batch::none(0),
            told: 0,
            checkpoints: 1,
            known_until: opened(scan.tape),
            coverage: Coverage::new(),
            over: false,
        };
        stream.begin();
        stream
    }

    /// Passes a batch while the next one is read; false: it was the last, and all events were passed.
    pub fn step(&mut self) -> bool {
        if self.reached == u64::MAX {
            return false;
        }
        let (scan, source, next) = (self.scan, self.source, self.next);
        let segments = &scan.segments;
        let more = next < segments.len() && !self.over && self.ready.frontier < self.machine.reads_until();
        let size = if more { rayon::current_num_threads().clamp(1, BATCH) } else { 0 };
        let until = (next + size).min(segments.len());
        let frontier = if more { frontier(scan.tape, segments.get(until).copied()) } else { u64::MAX };
        let early = if more { self.plan.due(frontier) } else { Vec::new() };
        let before = std::mem::replace(&mut self.ready, Batch::none(frontier));
        let reached = before.frontier;
        let own = segments[next..until].iter().map(|at| (*at, Rows::Own));
        let asked: Vec<(usize, Rows)> = own.chain(early.into_iter().map(|at| (at, Rows::Carry))).collect();
        let (_, mut pieces) = parallel::both(
            || self.over = self.over || self.tell(before).is_break(),
            || parallel::map(&asked, |(at, rows)| read(scan, source, *at, *rows)),
        );
        self.ready.early = pieces.split_off(until - next);
        self.ready.own = pieces;
        (self.next, self.reached) = (until, reached);
        if self.ready.own.is_empty() {
            self.last();
        }
        self.reached < u64::MAX
    }

    fn last(&mut self) {
        // segments behind the last one that is there may be missing, where damage was found that belongs to none
        if self.next == self.scan.segments.len() && !self.over && !self.scan.tape.findings().is_empty() {
            self.lose_all(Lost::any(self.known_until, u64::MAX));
        }
        let _ = self.finish();
        self.reached = u64::MAX;
    }

    /// The losses known before the first event.
    fn begin(&mut self) {
        let tape = self.scan.tape;
        if let Ok(checkpoint) = tape.checkpoint(0) {
            self.over |= self.machine.push(Event::Start(&checkpoint), &mut self.later).is_break();
        }
        let open = if self.source.calls() { OpenCalls::read(tape) } else { None };
        if let Some(open) = open {
            let mut piece = Piece::new(usize::MAX);
            self.source.open(open, &mut piece);
            self.over |= self.early(piece).is_break();
        }
    }

    fn tell(&mut self, batch: Batch<S>) -> ControlFlow<()> {
        for piece in batch.early {
            if piece.lacks_calls {
                // the calls that end in it began before it
                let first = carry_start(&self.scan.tape.segments()[piece.at]).unwrap_or(0);
                self.lost.push((MissingKind::Calls, Lost::any(first, piece.window.1)));
            }
            self.early(piece)?;
        }
        for piece in batch.own {
            self.own(piece)?;
        }
        if batch.frontier < u64::MAX {
            self.waited((batch.frontier, 0))?;
        }
        ControlFlow::Continue(())
    }

    fn early(&mut self, mut piece: Piece<S>) -> ControlFlow<()> {
        self.coverage.merge(piece.coverage);
        self.push(Event::Part(&mut piece.part))?;
        for row in piece.rows {
            self.push(Event::Early(&piece.part, row))?;
        }
        ControlFlow::Continue(())
    }

    fn own(&mut self, mut piece: Piece<S>) -> ControlFlow<()> {
        let (start, end) = piece.window;
        // a segment that is missing altogether
        if self.known_until < start {
            self.lose_all(Lost::any(self.known_until, start));
        }
        self.known_until = end;
        if piece.lacks_events {
            self.lost.push((MissingKind::Events, Lost::any(start, end)));
            self.lost.push((MissingKind::Life, Lost::any(start, end)));
        }
        if piece.lacks_calls {
            self.lost.push((MissingKind::Calls, Lost::any(start, end)));
        }
        self.coverage.merge(piece.coverage);
        self.told += 1;
        self.catch_up(Some(piece.at), false)?;
        // what the next checkpoint says may be of before the segment that follows it
        self.catch_up(self.scan.segments.get(self.told).copied(), true)?;
        self.push(Event::Part(&mut piece.part))?;
        for row in piece.rows {
            let key = row.key();
            self.waited(key)?;
            self.losses(key.0)?;
            // not by way of `push`: here it is known which event it is, and copying one would cost more than what is done with it
            self.machine.push(Event::Row(&piece.part, row), &mut self.later)?;
        }
        self.push(Event::End)
    }

    /// Reads the checkpoints up to that of the chunk of segment `at`, if the machine wants them; `ahead`: they may be
    /// later.
    fn catch_up(&mut self, at: Option<usize>, ahead: bool) -> ControlFlow<()> {
        let tape = self.scan.tape;
        let Some(info) = at.map(|at| &tape.segments()[at]) else { return ControlFlow::Continue(()) };
        while tape.checkpoint_chunk(self.checkpoints).is_some_and(|chunk| chunk <= info.chunk) {
            let wanted = self.machine.wants_checkpoint(!self.lost.is_empty());
            if !wanted && ahead {
                break;
            }
            let read = if wanted { tape.checkpoint(self.checkpoints).ok() } else { None };
            self.checkpoints += 1;
            if let Some(checkpoint) = read {
                self.push(Event::Checkpoint(&checkpoint))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn lose_all(&mut self, lost: Lost) {
        for missing in [MissingKind::Events, MissingKind::Life, MissingKind::Calls] {
            self.lost.push((missing, lost));
        }
    }

    /// Passes the waiting events with a time before `key`.
    fn waited(&mut self, key: (u64, u8)) -> ControlFlow<()> {
        while let Some(what) = self.later.next_before(key) {
            self.losses(what.key().0)?;
            self.push(Event::Due(what))?;
        }
        ControlFlow::Continue(())
    }

    /// Passes the losses that began until `ts`.
    fn losses(&mut self, ts: u64) -> ControlFlow<()> {
        while let Some((missing, lost)) = self.lost.next_before((ts, 1)) {
            self.push(Event::Lost(missing, lost))?;
        }
        ControlFlow::Continue(())
    }

    /// Passes all events that still wait.
    fn finish(&mut self) -> ControlFlow<()> {
        while let Some(what) = self.later.pop() {
            self.losses(what.key().0)?;
            self.push(Event::Due(what))?;
        }
        self.losses(u64::MAX)
    }

    #[inline(never)]
    fn push(&mut self, event: Event<'_, S>) -> ControlFlow<()> {
        self.machine.push(event, &mut self.later)
    }
}

/// Reads `rows` of the segment at `at`.
fn read<S: Source>(scan: &Scan<'_>, source: &S, at: usize, rows: Rows) -> Piece<S> {
    let segment = scan.tape.segment(at);
    let mut piece = Piece::new(at);
    match segment.dict() {
        Ok(dict) => {
            piece.window = (dict.window_start, dict.window_end);
            source.read(segment, dict, rows, &mut piece);
            // lists that are sorted each: the stable sort only merges them
            piece.rows.sort_by_key(HasTime::key);
        }
        Err(error) => {
            let info = segment.info();
            piece.window = (info.end_min, info.end_max);
            (piece.lacks_events, piece.lacks_calls) = (true, true);
            if source.calls() {
                piece.coverage.hole(&segment, info.rows, &error);
            }
            if rows == Rows::Own {
                source.unread(&segment, &error, &mut piece.coverage);
            }
        }
    }
    piece
}
