//! Segments as events that have lines: calls, signals, ends of threads.

use systape_format::Error;
use systape_format::model::{CallState, Dict, ProcessEvent, ProcessKind, SignalEvent};
use systape_format::reader::Segment;

use super::waiting::Due;
use systape_events::load::{Base, Loaded, OpenCalls};
use systape_events::question::Question;
use systape_events::scan::Coverage;
use systape_events::scan::carry::Rows;
use systape_events::scan::later::HasTime;
use systape_events::scan::stream::{Piece, Source};

/// Reads what passes the filters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events<'a> {
    /// The tape and the filters.
    pub question: &'a Question<'a>,
}

/// What the events of a segment have in common.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Calls of the part; None: they cannot be read.
    pub calls: Option<Loaded>,
    /// Signals of the part, of all processes: what was sent is known when it is taken.
    pub signals: Vec<SignalEvent>,
    /// Process events of the part, of all processes.
    pub life: Vec<ProcessEvent>,
    /// Its tasks, if it has no calls.
    tasks: Dict,
}

impl Part {
    /// The segment's tasks.
    pub(super) fn dict(&self) -> &Dict {
        self.calls.as_ref().map_or(&self.tasks, |calls| &calls.dict)
    }
}

/// An event of a segment, by its number there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// When, CLOCK_MONOTONIC.
    pub ts: u64,
    /// What happened.
    pub what: What,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// This row's call begins.
    Call(u32),
    /// One of [`Part::signals`].
    Signal(u32),
    /// One of [`Part::life`].
    Life(u32),
}

impl HasTime for Event {
    fn key(&self) -> (u64, u8) {
        let order = match self.what {
            What::Signal(_) => 1,
            What::Call(_) => 2,
            What::Life(_) => 3,
        };
        (self.ts, order)
    }
}

impl Source for Events<'_> {
    type Row = Event;
    type Part = Part;
    type Waiting = Due;

    fn read(&self, segment: Segment<'_>, dict: Dict, rows: Rows, piece: &mut Piece<Self>) {
        if rows == Rows::Own
            && let Err(error) = self.others(&segment, &dict, piece)
        {
            self.unread(&segment, &error, &mut piece.coverage);
            piece.lacks_events = true;
        }
        piece.part.tasks = dict.clone();
        if segment.info().rows == 0 {
            return;
        }
        let mut holes = Vec::new();
        if let Some(base) = Base::of(segment, Ok(dict), &mut holes, |_, _| true) {
            let calls = base.load(&self.question.book, &mut holes);
            self.calls(calls, rows, segment.info().segment, piece);
        }
        piece.coverage.holes(holes);
    }

    fn open(&self, open: OpenCalls, piece: &mut Piece<Self>) {
        let calls = open.load(&self.question.book);
        self.calls(calls, Rows::Own, u32::MAX, piece);
    }

    fn unread(&self, segment: &Segment<'_>, error: &Error, coverage: &mut Coverage) {
        coverage.finding(segment, "signals and events of process life", error);
    }
}

impl Events<'_> {
    fn others(&self, segment: &Segment<'_>, dict: &Dict, piece: &mut Piece<Self>) -> Result<(), Error> {
        piece.part.signals = segment.signals(dict)?;
        piece.part.life = segment.processes(dict)?;
        let scope = &self.question.scope;
        let mine =
            |task: u32, ts: u64| dict.tasks.get(task as usize).is_some_and(|task| scope.task(task)) && scope.at(ts);
        let part = &piece.part;
        let signals = part.signals.iter().enumerate().filter(|(_, event)| mine(event.target, event.ts));
        piece.rows.extend(signals.map(|(at, event)| Event { ts: event.ts, what: What::Signal(at as u32) }));
        let told = |kind| matches!(kind, ProcessKind::Exit | ProcessKind::Exec);
        let life = part.life.iter().enumerate().filter(|(_, event)| told(event.kind) && mine(event.task, event.ts));
        piece.rows.extend(life.map(|(at, event)| Event { ts: event.ts, what: What::Life(at as u32) }));
        Ok(())
    }

    fn calls(&self, calls: Loaded, rows: Rows, number: u32, piece: &mut Piece<Self>) {
        let filter = self.question.scope.segment(&calls.dict, number);
        let (core, time) = (&calls.core, &calls.time);
        let passes = |row: &usize| {
            core.state[*row] != CallState::CloneChild && filter.core(core, *row) && filter.time(time, *row)
        };
        let event = |row: usize| Event { ts: time.start[row], what: What::Call(row as u32) };
        piece.rows.extend(rows.of(core).filter(passes).map(event));
        piece.part.calls = Some(calls);
    }
}
