//! Gives calls that name something in the current directory the directory, in order of time.
//!
//! Most rows need no order: what a [`Reader`] makes of them is told as it comes. Those that do wait for their end, because they are told in
//! that order and the directory may change until then; so each is a plain value of its own. Every checkpoint is read: it says where
//! processes are.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_abi::{ArgKind, Effect};
use systape_format::model::{CallState, Checkpoint, Dict, FORK_SHARES_FS, FORK_THREAD, Family, FdTable, ProcessKind};
use systape_format::reader::Segment;

use super::super::lost_calls::{self, Selects};
use super::dirs::{CallDirectory, ChdirTarget, Dirs};
use crate::derive::sharers::Member;
use systape_events::calls::CallInfo;
use systape_events::load::{Base, FdPath, Loaded, OpenCalls};
use systape_events::question::Question;
use systape_events::scan::carry::Rows;
use systape_events::scan::later::{HasTime, Later};
use systape_events::scan::lost::MissingKind;
use systape_events::scan::stream::{self, Machine, Piece, Source};
use systape_events::scan::{Coverage, Scan};

/// `unshare`: the current directory, the mounts (CLONE_NEWNS), users (CLONE_NEWUSER).
const UNSHARES: u64 = 0x200 | 0x2_0000 | 0x1000_0000;

/// Whether a call with this effect may change where its process is.
pub fn moves(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::Chdir | Effect::Fchdir | Effect::Chroot | Effect::PivotRoot | Effect::Unshare | Effect::Setns
    )
}

/// What is made of rows.
pub trait Reader: Sync {
    /// What is made of those of a segment that need no order.
    type Sum: Send;
    /// A row that waits for its end.
    type Row: Send;

    /// Whether calls of a segment are worth reading.
    fn wants(&self, segment: usize) -> bool;

    /// Whether calls of this kind are read wherever they are.
    fn needs(&self, _: &CallInfo) -> bool {
        false
    }

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

/// Something that happens.
#[derive(Debug)]
enum Event<T> {
    Fork {
        parent: Member,
        child: Member,
        thread: bool,
        shares: bool,
    },
    Exit {
        who: Member,
        last: bool,
    },
    Forget(Member),
    Leaves(Member),
    Moves {
        who: Member,
        to: ChdirTarget,
        end: u64,
    },
    Moved(Member),
    Begins {
        who: Member,
        what: T,
        end: u64,
    },
    Ends {
        begun: CallDirectory,
        what: T,
    },
    /// (process, its number of the kernel's, directory).
    Seen(Vec<(u32, u32, Vec<u8>)>, Vec<(Member, Vec<u8>)>),
}

impl<T> Event<T> {
    fn at(self, ts: u64) -> At<T> {
        At { ts, event: self }
    }
}

/// Something with its time.
#[derive(Debug)]
pub(super) struct At<T> {
    ts: u64,
    event: Event<T>,
}

impl<T> HasTime for At<T> {
    fn key(&self) -> (u64, u8) {
        // what ends before what begins
        let order = match self.event {
            Event::Ends { .. } => 0,
            Event::Moved(_) => 1,
            Event::Fork { .. } => 2,
            Event::Forget(_) | Event::Leaves(_) => 3,
            Event::Exit { .. } => 4,
            Event::Seen(..) => 5,
            Event::Moves { .. } | Event::Begins { .. } => 6,
        };
        (self.ts, order)
    }
}

/// Reads what `reader` makes of the tape and tells `each`, until that says to stop. What could not be read is given back.
///
/// # Errors
/// Those of `each`.
pub fn feed<R: Reader>(
    question: &Question<'_>,
    reader: &R,
    each: impl FnMut(Told<R::Sum, R::Row>) -> Result<ControlFlow<()>> + Send,
) -> Result<Coverage> {
    let tape = question.tape;
    let dirs = Dirs::new(lost_calls::unrecorded(tape.session(), moves));
    let (source, until) = (DirectoryChanges { question, reader }, question.scope.to);
    let mut feeder = PathFeeder::new(dirs, until, each);
    let lost = lost_calls::all(tape, &question.book, moves).into_iter().map(|lost| (MissingKind::Calls, lost));
    let coverage = Scan::all(tape).stream(&source, lost, &mut feeder);
    feeder.over.map(|_| coverage)
}

/// Reads what changes directories, and what the reader wants.
pub(super) struct DirectoryChanges<'a, R> {
    /// The tape.
    pub question: &'a Question<'a>,
    /// Who else reads.
    pub reader: &'a R,
}

impl<R: Reader> Source for DirectoryChanges<'_, R> {
    type Row = At<R::Row>;
    type Part = Option<R::Sum>;
    type Waiting = At<R::Row>;

    fn read(&self, segment: Segment<'_>, dict: Dict, rows: Rows, piece: &mut Piece<Self>) {
        if rows == Rows::Own {
            let selects = Selects::of(self.question.tape.session());
            match segment.processes(&dict) {
                Ok(events) => piece.rows.extend(events.iter().filter_map(|event| life(&dict, event, selects))),
                Err(_) => piece.lacks_events = true,
            }
        }
        let calls = || dict.calls.iter().map(|call| self.question.book.get(*call));
        let moving = calls().any(|call| moves(call.effect));
        let wanted = self.reader.wants(piece.at) || calls().any(|call| self.reader.needs(&call));
        if segment.info().rows == 0 || !(moving || wanted) {
            return;
        }
        let mut holes = Vec::new();
        if let Some(base) = Base::of(segment, Ok(dict), &mut holes, |_, _| true) {
            let loaded = base.load(&self.question.book, &mut holes);
            self.add(&loaded, rows.of(&loaded.core), wanted, piece);
        }
        piece.lacks_calls = !holes.is_empty();
        piece.coverage.holes(holes);
    }

    fn open(&self, open: OpenCalls, piece: &mut Piece<Self>) {
        let open = open.load(&self.question.book);
        self.add(&open, 0..open.rows(), true, piece);
    }
}

impl<R: Reader> DirectoryChanges<'_, R> {
    /// Adds the rows `range` of `loaded`; `wanted`: the reader's too.
    fn add(&self, loaded: &Loaded, range: Range<usize>, wanted: bool, piece: &mut Piece<Self>) {
        for row in range.clone().filter(|row| moves(loaded.call(*row).effect)) {
            piece.rows.extend(change(loaded, row).map(|event| event.at(loaded.time.start[row])));
        }
        if !wanted {
            return;
        }
        let mut waiting = Vec::new();
        piece.part = Some(self.reader.read(loaded, range, &mut waiting));
        piece.rows.extend(waiting.into_iter().map(|Waiting { row, what }| {
            let (start, end) = times(loaded, row);
            Event::Begins { who: Member::of(loaded.task(row)), what, end }.at(start)
        }));
    }
}

/// When the call of `row` began and ended.
fn times(loaded: &Loaded, row: usize) -> (u64, u64) {
    let start = loaded.time.start[row];
    (start, start.saturating_add(loaded.core.dur[row]))
}

/// What happened to a task, if it matters here.
fn life<T>(dict: &Dict, event: &systape_format::model::ProcessEvent, selects: Selects) -> Option<At<T>> {
    let task = dict.tasks.get(event.task as usize)?;
    let what = match event.kind {
        ProcessKind::Fork => {
            let parent = dict.tasks.get(event.parent as usize)?;
            let (thread, shares) = (event.flags & FORK_THREAD != 0, event.flags & FORK_SHARES_FS != 0);
            Event::Fork { parent: Member::of(parent), child: Member::of(task), thread, shares }
        }
        ProcessKind::Exit => Event::Exit { who: Member::of(task), last: event.group_dead },
        // where it goes from now on is not recorded; of who was not recorded before nothing is known anyway
        ProcessKind::Target if task.recorded.has(Family::Syscall) != Some(true) => Event::Forget(Member::of(task)),
        ProcessKind::Target => return None,
        kind if selects.by(kind) => Event::Forget(Member::of(task)),
        ProcessKind::Exec | ProcessKind::Rename | ProcessKind::Cred | ProcessKind::Cgroup => return None,
    };
    Some(what.at(event.ts))
}

/// What the call of `row` changes; None: nothing.
fn change<T>(loaded: &Loaded, row: usize) -> Option<Event<T>> {
    let (state, task) = (loaded.core.state[row], Member::of(loaded.task(row)));
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
        Effect::Chdir | Effect::Fchdir if may => Event::Moves { who: task, to: ChdirTarget::Unknown, end },
        Effect::Chdir => {
            let at = info.args.iter().position(|arg| matches!(arg.kind, ArgKind::Path));
            let value = loaded.captured(row).iter().find(|value| Some(usize::from(value.arg)) == at);
            let path = value.filter(|value| value.status.is_whole() && !value.bytes.is_empty());
            Event::Moves {
                who: task,
                to: path.map_or(ChdirTarget::Unknown, |path| ChdirTarget::Path(path.bytes.clone())),
                end,
            }
        }
        Effect::Fchdir => {
            let to = match loaded.fd_path(row, 0) {
                FdPath::Known(name) if name.starts_with(b"/") => ChdirTarget::Path(name.to_vec()),
                _ => ChdirTarget::Unknown,
            };
            Event::Moves { who: task, to, end }
        }
        Effect::Unshare => {
            let flags = loaded.args.of(row).map_or(UNSHARES, |args| args[0]);
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

/// Follows the directories, and tells of rows.
pub(super) struct PathFeeder<F> {
    /// The directories.
    pub dirs: Dirs,
    each: F,
    /// What begins later is not asked for, and what began before is read early.
    until: u64,
    /// Time of the latest that was told.
    now: u64,
    /// What `each` said last.
    over: Result<ControlFlow<()>>,
}

impl<'a, R, F> Machine<DirectoryChanges<'a, R>> for PathFeeder<F>
where
    R: Reader,
    F: FnMut(Told<R::Sum, R::Row>) -> Result<ControlFlow<()>> + Send,
{
    fn push(
        &mut self,
        event: stream::Event<'_, DirectoryChanges<'a, R>>,
        later: &mut Later<At<R::Row>>,
    ) -> ControlFlow<()> {
        match event {
            stream::Event::Row(_, what) | stream::Event::Due(what) => self.happens(what, later),
            stream::Event::Early(_, what) => later.push(what),
            stream::Event::Part(part) => {
                if let Some(sum) = part.take() {
                    self.tell(Told::Sum(sum));
                }
            }
            stream::Event::Start(checkpoint) => {
                later.push(Event::Seen(known(checkpoint), apart(checkpoint)).at(checkpoint.ts));
            }
            stream::Event::Checkpoint(checkpoint) => {
                later.push(Event::Seen(known(checkpoint), Vec::new()).at(checkpoint.ts));
            }
            stream::Event::Lost(_, lost) => {
                self.dirs.at(lost.first);
                self.dirs.lose(lost.last, lost.pid);
            }
            stream::Event::End => {}
        }
        self.flow()
    }

    fn reads_until(&self) -> u64 {
        self.until
    }
}

/// Where the processes of a checkpoint were: (process, pid, directory).
fn known(checkpoint: &Checkpoint) -> Vec<(u32, u32, Vec<u8>)> {
    let tables = checkpoint.fd_tables.iter().filter(|table| !table.cwd.is_empty() && table.upid != 0);
    let pids: FxHashMap<_, _> = checkpoint.tasks.iter().map(|task| (task.upid, task.pid)).collect();
    let pid = |upid| pids.get(&upid).copied().unwrap_or(0);
    tables.map(|table| (table.upid, pid(table.upid), table.cwd.clone())).collect()
}

/// Threads with a directory of their own, empty if it is not known.
fn apart(checkpoint: &Checkpoint) -> Vec<(Member, Vec<u8>)> {
    checkpoint.apart(FdTable::OWN_CWD).map(|(task, table)| (Member::of(task), table.cwd.clone())).collect()
}

impl<F> PathFeeder<F> {
    /// Tells `each` of what begins before `until`.
    pub(super) fn new(dirs: Dirs, until: u64, each: F) -> Self {
        Self { dirs, each, until, now: 0, over: Ok(ControlFlow::Continue(())) }
    }

    fn flow(&self) -> ControlFlow<()> {
        *self.over.as_ref().unwrap_or(&ControlFlow::Break(()))
    }

    fn tell<S, T>(&mut self, told: Told<S, T>)
    where
        F: FnMut(Told<S, T>) -> Result<ControlFlow<()>>,
    {
        if self.flow().is_continue() {
            self.over = (self.each)(told);
        }
    }

    fn happens<S, T>(&mut self, At { ts: now, event }: At<T>, later: &mut Later<At<T>>)
    where
        F: FnMut(Told<S, T>) -> Result<ControlFlow<()>>,
    {
        let late = now < self.now;
        self.now = self.now.max(now);
        self.dirs.at(now);
        match event {
            Event::Fork { parent, child, thread, shares } => self.dirs.fork(parent, child, thread, shares),
            Event::Exit { who, last } => self.dirs.exit(who, last),
            Event::Forget(who) => self.dirs.forget(who),
            Event::Leaves(who) => self.dirs.leaves(who),
            Event::Moves { who, to, end } => {
                self.dirs.moves(who, &to);
                later.push(Event::Moved(who).at(end));
            }
            Event::Moved(who) => self.dirs.moved(now, who),
            Event::Begins { who, what, end } => {
                let begun = self.dirs.begin(who);
                later.push(Event::Ends { begun, what }.at(end));
            }
            Event::Ends { begun, what } => {
                let cwd = self.dirs.end(begun);
                self.tell(Told::Row(what, cwd));
            }
            // what it says may hold no more
            Event::Seen(..) if late => {}
            Event::Seen(tables, apart) => {
                tables.iter().for_each(|(process, pid, cwd)| self.dirs.seen(now, *process, *pid, cwd));
                apart.iter().for_each(|(who, cwd)| self.dirs.apart(*who, cwd));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_matter_have_their_effect() {
        for name in ["chdir", "fchdir", "chroot", "pivot_root", "unshare", "setns"] {
            assert!(systape_abi::describe_name(name).is_some_and(|call| moves(call.effect)), "{name}");
        }
        assert!(![Effect::NewFd, Effect::Clone, Effect::Exec, Effect::None].into_iter().any(moves));
    }
}
