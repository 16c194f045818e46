//! Reads the rows of a tape and gives those that name something in the current directory the directory, in order of time.
//!
//! A segment's rows are read by a [`Reader`], on all CPUs. Most need nothing else; those that do, or are wanted in order, wait in a heap
//! for their end. Segments are decoded a batch ahead; rows that began before their segment are read when time gets to their start
//! ([`CarryPlan`]), so memory grows with the calls that are open at once, not with the tape.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anyhow::Result;
use rayon::prelude::*;
use systape_abi::{ArgKind, Effect};
use systape_format::model::{CallState, Dict, FORK_SHARES_FS, FORK_THREAD, Family, ProcessKind, Task};
use systape_format::reader::Tape;

use super::dirs::{Begun, Dirs, To, Who};
use super::lost::{self, Lost, moves};
use crate::load::{Base, FdPath, Loaded, OpenCalls};
use crate::loss::Hole;
use crate::question::Question;
use crate::stream::CarryPlan;

/// Most segments decoded at a time.
const BATCH: usize = 6;
/// `unshare`: the current directory, the mounts (CLONE_NEWNS), users (CLONE_NEWUSER).
const UNSHARES: u64 = 0x200 | 0x2_0000 | 0x1000_0000;

/// What is made of rows.
pub trait Reader: Sync {
    /// What is made of those of a segment that need no order.
    type Sum: Send;
    /// A row that waits for its end.
    type Row: Send;

    /// Whether calls of a segment are worth reading.
    fn wants(&self, segment: usize) -> bool;

    /// Makes something of the rows `range` of `segment`; those that wait go to `waiting`.
    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<Self::Row>>) -> Self::Sum;
}

/// A row that waits for its end.
#[derive(Debug)]
pub struct Waiting<T> {
    /// Which row of its segment.
    pub row: usize,
    /// What is told of it.
    pub what: T,
}

/// What is told.
#[derive(Debug)]
pub enum Told<S, T> {
    /// Rows that needed no order.
    Sum(S),
    /// A call that ended, in order of their ends, and the directory it was made in; None: not known.
    Row(T, Option<Arc<[u8]>>),
}

/// Something that happens at one time.
enum Event<T> {
    Fork { parent: Who, child: Who, thread: bool, shares: bool },
    Exit { who: Who, last: bool },
    Forget(Who),
    Leaves(Who),
    Moves { who: Who, to: To, end: u64 },
    Moved(Who),
    Begins { who: Who, what: T, end: u64 },
    Ends { begun: Begun, what: T },
    Seen(Vec<(u32, Vec<u8>)>),
}

impl<T> Event<T> {
    /// Which of several at one time comes first: what ends before what begins.
    fn order(&self) -> u8 {
        match self {
            Self::Ends { .. } => 0,
            Self::Moved(_) => 1,
            Self::Fork { .. } => 2,
            Self::Forget(_) | Self::Leaves(_) => 3,
            Self::Exit { .. } => 4,
            Self::Seen(_) => 5,
            Self::Moves { .. } | Self::Begins { .. } => 6,
        }
    }
}

struct Timed<T> {
    key: (u64, u8, u64),
    event: Event<T>,
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Timed<T> {}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// What was read of a segment.
struct Part<S, T> {
    at: usize,
    window: Option<(u64, u64)>,
    events: Vec<(u64, Event<T>)>,
    sum: Option<S>,
    holes: Vec<Hole>,
    /// Something that may have changed a directory could not be read.
    blind: bool,
}

/// Reads what `reader` makes of the tape and tells `each`, until that says to stop. What could not be read is given back.
///
/// # Errors
/// Those of `each`.
pub fn feed<R: Reader>(
    question: &Question<'_>,
    reader: &R,
    each: impl FnMut(Told<R::Sum, R::Row>) -> Result<ControlFlow<()>>,
) -> Result<Vec<Hole>> {
    let tape = question.tape;
    let source = Source { question, reader };
    let mut feeder = Feeder {
        dirs: Dirs::new(lost::unrecorded(tape.session())),
        heap: BinaryHeap::new(),
        pushed: 0,
        lost: lost::all(tape, &question.book),
        checkpoints: 0,
        each,
        now: 0,
        over: false,
    };
    feeder.catch_up(tape, 0);
    if let Some(open) = OpenCalls::read(tape) {
        let open = open.load(&question.book);
        let mut part =
            Part { at: usize::MAX, window: None, events: Vec::new(), sum: None, holes: Vec::new(), blind: false };
        source.rows(&open, 0..open.rows(), &mut part);
        feeder.take(part)?;
    }
    let holes = feeder.segments(&source)?;
    feeder.flush(u64::MAX)?;
    Ok(holes)
}

struct Source<'a, 'q, R> {
    question: &'a Question<'q>,
    reader: &'a R,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Own,
    Carry,
}

impl<R: Reader> Source<'_, '_, R> {
    fn read(&self, at: usize, rows: Rows) -> Part<R::Sum, R::Row> {
        let segment = self.question.tape.segment(at);
        let mut part = Part { at, window: None, events: Vec::new(), sum: None, holes: Vec::new(), blind: false };
        let dict = match segment.dict() {
            Ok(dict) => dict,
            Err(error) => {
                let info = segment.info();
                part.window = Some((info.start_min, info.end_max));
                part.blind = true;
                if rows == Rows::Own {
                    part.holes.push(crate::load::hole(&segment, info.rows, &error));
                }
                return part;
            }
        };
        part.window = Some((dict.window_start, dict.window_end));
        if rows == Rows::Own {
            match segment.processes(&dict) {
                Ok(events) => part.events.extend(events.iter().filter_map(|event| life(&dict, event))),
                Err(_) => part.blind = true,
            }
        }
        let info = segment.info();
        let moving = dict.calls.iter().any(|call| moves(self.question.book.get(*call).effect));
        if info.rows == 0 || !(moving || self.reader.wants(at)) {
            return part;
        }
        let mut holes = Vec::new();
        if let Some(base) = Base::read(segment, &mut holes, |_, _| true) {
            let loaded = base.load(&self.question.book, &mut holes);
            let carry = loaded.core.carry_rows;
            let range = if rows == Rows::Own { carry..loaded.rows() } else { 0..carry };
            self.rows(&loaded, range, &mut part);
        }
        part.blind |= !holes.is_empty();
        // both halves meet the same
        if rows == Rows::Own {
            part.holes = holes;
        }
        part
    }

    fn rows(&self, loaded: &Loaded, range: Range<usize>, part: &mut Part<R::Sum, R::Row>) {
        for row in range.clone().filter(|row| moves(loaded.call(*row).effect)) {
            part.events.extend(change(loaded, row).map(|event| (loaded.time.start[row], event)));
        }
        if part.at != usize::MAX && !self.reader.wants(part.at) {
            return;
        }
        let mut waiting = Vec::new();
        part.sum = Some(self.reader.read(loaded, range, &mut waiting));
        part.events.extend(waiting.into_iter().map(|Waiting { row, what }| {
            let (start, end) = times(loaded, row);
            (start, Event::Begins { who: who(loaded.task(row)), what, end })
        }));
    }
}

/// When the call of `row` began and ended.
fn times(loaded: &Loaded, row: usize) -> (u64, u64) {
    let start = loaded.time.start[row];
    (start, start.saturating_add(loaded.core.dur[row]))
}

fn who(task: &Task) -> Who {
    Who { thread: task.utid, process: task.upid, pid: task.pid }
}

/// What happened to a task, if it matters here.
fn life<T>(dict: &Dict, event: &systape_format::model::ProcessEvent) -> Option<(u64, Event<T>)> {
    let task = dict.tasks.get(event.task as usize)?;
    let what = match event.kind {
        ProcessKind::Fork => {
            let parent = dict.tasks.get(event.parent as usize)?;
            let (thread, shares) = (event.flags & FORK_THREAD != 0, event.flags & FORK_SHARES_FS != 0);
            Event::Fork { parent: who(parent), child: who(task), thread, shares }
        }
        ProcessKind::Exit => Event::Exit { who: who(task), last: event.group_dead },
        // where it goes from now on is not recorded; of who was not recorded before nothing is known anyway
        ProcessKind::Target if task.recorded.has(Family::Syscall) != Some(true) => Event::Forget(who(task)),
        ProcessKind::Target => return None,
        ProcessKind::Exec | ProcessKind::Rename | ProcessKind::Cred | ProcessKind::Cgroup => return None,
    };
    Some((event.ts, what))
}

/// What the call of `row` changes; None: nothing.
fn change<T>(loaded: &Loaded, row: usize) -> Option<Event<T>> {
    let (state, task) = (loaded.core.state[row], who(loaded.task(row)));
    let may = match state {
        CallState::CloneChild | CallState::Denied => return None,
        // it may have done it, or may do it at any time
        CallState::InFlight | CallState::Killed | CallState::NoReturn => true,
        CallState::Complete | CallState::BeganBefore | CallState::LostEnter => false,
    };
    if !may && loaded.core.errno[row] != 0 {
        return None;
    }
    let end = if state == CallState::InFlight { u64::MAX } else { times(loaded, row).1 };
    let info = loaded.call(row);
    Some(match info.effect {
        Effect::Chdir | Effect::Fchdir if may => Event::Moves { who: task, to: To::Unknown, end },
        Effect::Chdir => {
            let at = info.args.iter().position(|arg| matches!(arg.kind, ArgKind::Path));
            let value = loaded.captured(row).iter().find(|value| Some(usize::from(value.arg)) == at);
            let path = value.filter(|value| value.status.is_whole() && !value.bytes.is_empty());
            Event::Moves { who: task, to: path.map_or(To::Unknown, |path| To::Path(path.bytes.clone())), end }
        }
        Effect::Fchdir => {
            let to = match loaded.fd_path(row, 0) {
                FdPath::Known(name) if name.starts_with(b"/") => To::Path(name.to_vec()),
                _ => To::Unknown,
            };
            Event::Moves { who: task, to, end }
        }
        Effect::Unshare => {
            let flags = loaded.args.args.get(row).map_or(UNSHARES, |args| args[0]);
            if flags & UNSHARES == 0 {
                return None;
            }
            Event::Leaves(task)
        }
        // of the namespaces that can be entered those of mounts and users matter, and a pidfd may stand for any
        Effect::Setns => Event::Leaves(task),
        _ => Event::Forget(task),
    })
}

struct Feeder<T, F> {
    dirs: Dirs,
    heap: BinaryHeap<Reverse<Timed<T>>>,
    pushed: u64,
    /// The next one is last.
    lost: Vec<Lost>,
    checkpoints: usize,
    each: F,
    /// Time of the latest that was told.
    now: u64,
    over: bool,
}

impl<T: Send, F> Feeder<T, F> {
    fn segments<R: Reader<Row = T>>(&mut self, source: &Source<'_, '_, R>) -> Result<Vec<Hole>>
    where
        F: FnMut(Told<R::Sum, T>) -> Result<ControlFlow<()>>,
    {
        let tape = source.question.tape;
        let infos = tape.segments();
        let carries = infos.iter().enumerate().filter(|(_, info)| info.carry_rows > 0).map(|(at, info)| {
            let start = [info.carry_start_min, info.start_min].into_iter().find(|start| *start != 0);
            (at, start.unwrap_or(0))
        });
        let mut plan = CarryPlan::new(carries);
        let (mut holes, mut next, mut window_end, mut reached) = (Vec::new(), 0, None, 0);
        // what begins later is not asked for, and what began before has been read
        while next < infos.len() && !self.over && reached < source.question.scope.to {
            let until = (next + rayon::current_num_threads().clamp(1, BATCH)).min(infos.len());
            let frontier = match infos.get(until) {
                Some(info) => tape.segment(until).dict().map_or(info.end_min, |dict| dict.window_start),
                None => u64::MAX,
            };
            let carry = plan.due(frontier);
            let (own, carried) = rayon::join(
                || (next..until).into_par_iter().map(|at| source.read(at, Rows::Own)).collect::<Vec<_>>(),
                || carry.par_iter().map(|at| source.read(*at, Rows::Carry)).collect::<Vec<_>>(),
            );
            for part in carried {
                self.take(part)?;
            }
            for mut part in own {
                self.catch_up(tape, infos[part.at].chunk);
                let (start, end) = part.window.unwrap_or_default();
                // a segment that is missing altogether
                let from = window_end.unwrap_or(start).min(start);
                if part.blind || from < start {
                    self.loses(Lost { first: from, last: if part.blind { end } else { start }, pid: 0 });
                }
                window_end = Some(end);
                holes.append(&mut part.holes);
                self.take(part)?;
            }
            // what the next checkpoint says may be of before the segment that follows it
            if let Some(info) = infos.get(until) {
                self.catch_up(tape, info.chunk);
            }
            self.flush(frontier)?;
            (next, reached) = (until, frontier);
        }
        Ok(holes)
    }

    /// Takes in what the checkpoints up to that of `chunk` say.
    fn catch_up(&mut self, tape: &Tape, chunk: u32) {
        while tape.checkpoint_chunk(self.checkpoints).is_some_and(|of| of <= chunk) {
            if let Ok(checkpoint) = tape.checkpoint(self.checkpoints) {
                let tables = checkpoint.fd_tables.into_iter();
                let known = tables.filter(|table| !table.cwd.is_empty()).map(|table| (table.upid, table.cwd)).collect();
                self.push(checkpoint.ts, Event::Seen(known));
            }
            self.checkpoints += 1;
        }
    }

    fn loses(&mut self, lost: Lost) {
        let at = self.lost.partition_point(|other| other.first > lost.first);
        self.lost.insert(at, lost);
    }

    fn push(&mut self, ts: u64, event: Event<T>) {
        self.pushed += 1;
        let key = (ts, event.order(), self.pushed);
        self.heap.push(Reverse(Timed { key, event }));
    }

    fn take<S>(&mut self, part: Part<S, T>) -> Result<()>
    where
        F: FnMut(Told<S, T>) -> Result<ControlFlow<()>>,
    {
        for (ts, event) in part.events {
            self.push(ts, event);
        }
        if let Some(sum) = part.sum
            && !self.over
        {
            self.over = (self.each)(Told::Sum(sum))?.is_break();
        }
        Ok(())
    }

    /// Tells of what happened before `ts`.
    fn flush<S>(&mut self, ts: u64) -> Result<()>
    where
        F: FnMut(Told<S, T>) -> Result<ControlFlow<()>>,
    {
        while !self.over && self.heap.peek().is_some_and(|Reverse(next)| next.key.0 < ts || ts == u64::MAX) {
            let Some(Reverse(Timed { key: (now, ..), event })) = self.heap.pop() else { break };
            while let Some(lost) = self.lost.pop_if(|lost| lost.first <= now) {
                self.dirs.lose(lost.last, lost.pid);
            }
            let late = now < self.now;
            self.now = self.now.max(now);
            match event {
                Event::Fork { parent, child, thread, shares } => self.dirs.fork(parent, child, thread, shares),
                Event::Exit { who, last } => self.dirs.exit(who, last),
                Event::Forget(who) => self.dirs.forget(who),
                Event::Leaves(who) => self.dirs.leaves(who),
                Event::Moves { who, to, end } => {
                    self.dirs.moves(who, &to);
                    self.push(end, Event::Moved(who));
                }
                Event::Moved(who) => self.dirs.moved(now, who),
                Event::Begins { who, what, end } => {
                    let begun = self.dirs.begin(who);
                    self.push(end, Event::Ends { begun, what });
                }
                Event::Ends { begun, what } => {
                    let cwd = self.dirs.end(begun);
                    self.over = (self.each)(Told::Row(what, cwd))?.is_break();
                }
                // what it says may hold no more
                Event::Seen(_) if late => {}
                Event::Seen(tables) => tables.iter().for_each(|(process, cwd)| self.dirs.seen(now, *process, cwd)),
            }
        }
        Ok(())
    }
}
