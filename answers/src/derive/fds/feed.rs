//! Follows the tables of a tape to the moment that is asked for, and on until what was open then has names.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::families::IO_URING_DESCRIPTOR;
use systape_format::model::{
    Checkpoint, Dict, FORK_SHARES_FILES, FORK_THREAD, Family, Fd, FdTable, ProcessEvent, ProcessKind, Task,
};
use systape_format::reader::Segment;
use systape_format::tables::TableRows;

use super::super::lost_calls::{self, Selects};
use super::calls::{self, Change, matters};
use super::file::File;
use super::peers::Holders;
use super::tables::{Listed, Table, Tables};
use crate::derive::sharers::Member;
use systape_events::families::in_session;
use systape_events::load::{Base, OpenCalls};
use systape_events::loss::loses;
use systape_events::question::Question;
use systape_events::scan::carry::Rows;
use systape_events::scan::later::{HasTime, Later};
use systape_events::scan::lost::{MissingKind, gaps};
use systape_events::scan::stream::{self, Machine, Piece, Source};
use systape_events::scan::{Coverage, Scan};
use systape_events::values::order::InOrder as _;

fn listed(fds: &[Fd]) -> Vec<Listed> {
    let known = |fd: &Fd| (!fd.path.is_empty()).then(|| (fd.path.as_slice().into(), fd.cloexec));
    let mut fds: Vec<Listed> = fds.iter().map(|fd| (fd.fd, known(fd))).collect();
    fds.order_by_key(|(fd, ..)| *fd);
    fds
}

/// The table of a process, or of a thread with its own, at the moment.
#[derive(Debug)]
pub struct Held {
    /// The process by its first thread, or that thread, as it was then.
    pub task: Arc<Task>,
    /// The table is of this thread alone.
    pub own: bool,
    /// Descriptors of the thread.
    pub table: Table,
}

/// The answer.
#[derive(Debug)]
pub struct Fed {
    /// Tables in order of pid and tid.
    pub held: Vec<Held>,
    /// Who of all held what, wanted or not.
    pub holders: Holders,
    /// All tables of all were known: nobody else held anything.
    pub all_known: bool,
    /// Calls that change descriptors were not all recorded.
    pub unrecorded: bool,
    /// Parts that could not be read.
    pub coverage: Coverage,
}

/// The tables of the tasks that `wanted` picks at `at`.
pub fn feed(question: &Question<'_>, at: u64, wanted: impl Fn(&Task) -> bool + Send) -> Fed {
    let tape = question.tape;
    let unrecorded = !in_session(tape.session(), Family::Syscall) || lost_calls::unrecorded(tape.session(), matters);
    let follows_rings = tape.table_defs().values().any(|def| def.name == IO_URING_DESCRIPTOR.name);
    let mut tables = Tables::new(at, unrecorded);
    tables.follows_rings = follows_rings;
    let mut feeder = Feeder {
        tables,
        at,
        leaders: FxHashMap::default(),
        threads: FxHashMap::default(),
        waiting: FxHashSet::default(),
        wanted,
        held: None,
        everyone: Vec::new(),
        all_known: true,
    };
    let of_rings = gaps(tape, |_, gap| follows_rings && loses(gap, &[Family::IoUring]));
    let of_calls = lost_calls::all(tape, &question.book, matters);
    let lost = of_calls.into_iter().chain(of_rings).map(|lost| (MissingKind::Calls, lost));
    let coverage = Scan::all(tape).stream(&Changes { question, follows_rings }, lost, &mut feeder);
    feeder.freeze();
    let holders = Holders::of(feeder.everyone.iter().map(|(task, file)| (task, file)));
    Fed { held: feeder.held.unwrap_or_default(), holders, all_known: feeder.all_known, unrecorded, coverage }
}

/// Something that happens.
#[derive(Debug)]
enum Event {
    Call(Member, Change),
    Fork {
        parent: Member,
        child: Arc<Task>,
        thread: bool,
        shares: bool,
    },
    Exec(Arc<Task>),
    /// A task's name, user or cgroup changed.
    Is(Arc<Task>),
    /// From now on its calls are recorded, or no longer; `begins`: it may have done nothing before.
    Forget {
        task: Arc<Task>,
        begins: bool,
    },
    Exit {
        who: Member,
        last: bool,
    },
    Seen(Box<Checkpoint>),
}

/// When.
#[derive(Debug)]
struct At {
    ts: u64,
    event: Event,
}

impl HasTime for At {
    fn key(&self) -> (u64, u8) {
        // what ends before what begins
        let order = match &self.event {
            Event::Call(_, Change::Uses { .. }) => 6,
            Event::Call(_, Change::Closes { .. }) => 7,
            Event::Call(..) => 0,
            Event::Fork { .. } => 1,
            Event::Is(_) | Event::Forget { .. } => 2,
            Event::Exec(_) => 3,
            Event::Exit { .. } => 4,
            Event::Seen(_) => 5,
        };
        (self.ts, order)
    }
}

struct Changes<'a> {
    question: &'a Question<'a>,
    /// What operations of io_uring do to descriptors is on the tape.
    follows_rings: bool,
}

impl Source for Changes<'_> {
    type Row = At;
    type Part = Vec<Arc<Task>>;
    type Waiting = At;

    fn read(&self, segment: Segment<'_>, dict: Dict, rows: Rows, piece: &mut Piece<Self>) {
        if rows == Rows::Own {
            let selects = Selects::of(self.question.tape.session());
            let tasks: Vec<Arc<Task>> = dict.tasks.iter().cloned().map(Arc::new).collect();
            match segment.processes(&dict) {
                Ok(events) => piece.rows.extend(events.iter().filter_map(|event| life(&tasks, event, selects))),
                Err(_) => piece.lacks_events = true,
            }
            match self.follows_rings.then(|| segment.tables(&dict)) {
                Some(Ok(tables)) => {
                    let tables = tables.iter().filter(|table| table.def.name == IO_URING_DESCRIPTOR.name);
                    tables.for_each(|table| piece.rows.extend(of_rings(&tasks, table)));
                }
                Some(Err(_)) => piece.lacks_events = true,
                None => {}
            }
            piece.part = tasks;
        }
        if segment.info().rows == 0 {
            return;
        }
        let mut holes = Vec::new();
        if let Some(base) = Base::of(segment, Ok(dict), &mut holes, |_, _| true) {
            let loaded = base.load(&self.question.book, &mut holes);
            let range = rows.of(&loaded.core);
            calls::changes(&loaded, range, |ts, who, change| {
                piece.rows.push(At { ts, event: Event::Call(who, change) })
            });
        }
        piece.lacks_calls = !holes.is_empty();
        piece.coverage.holes(holes);
    }

    fn open(&self, open: OpenCalls, piece: &mut Piece<Self>) {
        let open = open.load(&self.question.book);
        calls::changes(&open, 0..open.rows(), |ts, who, change| {
            piece.rows.push(At { ts, event: Event::Call(who, change) });
        });
    }
}

/// What happened to a task, if it matters here.
fn life(tasks: &[Arc<Task>], event: &ProcessEvent, selects: Selects) -> Option<At> {
    let task = Arc::clone(tasks.get(event.task as usize)?);
    let what = match event.kind {
        ProcessKind::Fork => {
            let parent = Member::of(tasks.get(event.parent as usize)?);
            let (thread, shares) = (event.flags & FORK_THREAD != 0, event.flags & FORK_SHARES_FILES != 0);
            Event::Fork { parent, child: task, thread, shares }
        }
        ProcessKind::Exec => Event::Exec(task),
        ProcessKind::Exit => Event::Exit { who: Member::of(&task), last: event.group_dead },
        ProcessKind::Target => Event::Forget { task, begins: true },
        kind if selects.by(kind) => Event::Forget { task, begins: false },
        ProcessKind::Rename | ProcessKind::Cred | ProcessKind::Cgroup => Event::Is(task),
    };
    Some(At { ts: event.ts, event: what })
}

/// What operations of io_uring did to descriptors.
fn of_rings<'a>(tasks: &'a [Arc<Task>], table: &'a TableRows) -> impl Iterator<Item = At> + 'a {
    let columns = ["task", "fd", "op", "open", "file", "cloexec"].map(|name| table.column(name).unwrap_or_default());
    table.ts.iter().enumerate().filter_map(move |(row, &ts)| {
        let [task, fd, op, open, file, cloexec] = columns.map(|column| column.get(row).copied());
        let task = tasks.get(usize::try_from(task?.checked_sub(1)?).ok()?)?;
        let (fd, name) = (u32::try_from(fd?).ok()?, table.string(file?).map(Arc::<[u8]>::from));
        let change = match (open? != 0, table.string(op?)) {
            (false, _) => Change::Closes { first: fd, last: fd },
            (true, None) => Change::Uses { fd: fd.cast_signed(), name },
            (true, Some(_)) => {
                let file = name.map_or_else(Arc::default, |name| File::named(ts, &name));
                Change::Opens { fd: fd.cast_signed(), cloexec: cloexec? != 0, file }
            }
        };
        Some(At { ts, event: Event::Call(Member::of(task), change) })
    })
}

struct Feeder<W> {
    tables: Tables,
    /// The moment.
    at: u64,
    /// The first thread of each process as it is now, and other threads.
    leaders: FxHashMap<u32, Arc<Task>>,
    threads: FxHashMap<u32, Arc<Task>>,
    /// Processes that did nothing until their calls were recorded: the command that `record` started.
    waiting: FxHashSet<u32>,
    wanted: W,
    /// What was open at the moment; None: that is still to come.
    held: Option<Vec<Held>>,
    /// Then all that was surely open in all tables, whose names may become known later; and whether there was nothing else.
    everyone: Vec<(Arc<Task>, Arc<File>)>,
    all_known: bool,
}

impl<W: Fn(&Task) -> bool + Send> Machine<Changes<'_>> for Feeder<W> {
    fn push(&mut self, event: stream::Event<'_, Changes<'_>>, later: &mut Later<At>) -> ControlFlow<()> {
        match event {
            stream::Event::Row(_, what) | stream::Event::Due(what) => self.happens(what),
            stream::Event::Early(_, what) => later.push(what),
            stream::Event::Part(tasks) => {
                tasks.iter().for_each(|task| self.meets(task));
            }
            stream::Event::Start(checkpoint) => {
                // who is its process's leader, or another thread
                checkpoint
                    .tasks
                    .iter()
                    .filter(|task| task.tid != task.pid)
                    .for_each(|task| self.tables.thread(task.upid));
                let listed: FxHashSet<u32> = checkpoint.tasks.iter().map(|task| task.upid).collect();
                let tables = checkpoint.fd_tables.iter().filter(|table| table.complete);
                self.waiting = tables.map(|table| table.upid).filter(|upid| !listed.contains(upid)).collect();
                self.seen(checkpoint);
                self.apart(checkpoint);
            }
            stream::Event::Checkpoint(checkpoint) => {
                later.push(At { ts: checkpoint.ts, event: Event::Seen(Box::new(checkpoint.clone())) });
            }
            stream::Event::Lost(_, lost) => {
                self.reach(lost.first);
                self.tables.lose(lost.last, lost.pid);
            }
            stream::Event::End => return self.named(),
        }
        ControlFlow::Continue(())
    }
}

impl<W: Fn(&Task) -> bool> Feeder<W> {
    /// All events before `ts` were told.
    fn reach(&mut self, ts: u64) {
        if ts > self.at {
            self.freeze();
        }
    }

    /// Nothing more is needed once all that was open at the moment has a name.
    fn named(&self) -> ControlFlow<()> {
        let unnamed = |held: &Held| held.table.fds.values().any(|open| open.file.name().is_none());
        match &self.held {
            Some(held) if !held.iter().any(unnamed) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn happens(&mut self, At { ts, event }: At) {
        self.reach(ts);
        match event {
            Event::Call(who, change) => self.changes(ts, who, change),
            Event::Fork { parent, child, thread, shares } => {
                self.tables.fork(parent, Member::of(&child), thread, shares);
                self.is(child);
            }
            Event::Exec(task) => {
                self.tables.exec(Member::of(&task), ts);
                self.is(task);
            }
            Event::Is(task) => self.is(task),
            Event::Forget { task, begins } => {
                if !self.waiting.remove(&task.upid) || !begins {
                    self.tables.forget(Member::of(&task));
                }
                self.is(task);
            }
            Event::Exit { who, last } => {
                self.tables.exit(who, last);
                self.threads.remove(&who.thread);
                if last {
                    self.leaders.remove(&who.process);
                }
            }
            Event::Seen(checkpoint) => self.seen(&checkpoint),
        }
    }

    fn changes(&mut self, ts: u64, who: Member, change: Change) {
        let tables = &mut self.tables;
        match change {
            Change::Opens { fd, cloexec, file } => tables.opens(ts, who, (fd, cloexec), file),
            Change::Copies { from, to, cloexec } => tables.copies(ts, who, from, (to, cloexec)),
            Change::Marks { first, last, cloexec } => tables.marks(who, first, last, cloexec),
            Change::Unshares => tables.unshare(who),
            Change::Rings => tables.rings(who),
            Change::Receives => tables.receives(who),
            Change::Injects => tables.lose(ts, 0),
            Change::Forgets => tables.forget(who),
            Change::Uses { fd, name } => tables.uses(ts, who, fd, name.as_ref()),
            Change::Closes { first, last } => tables.closes_range(who, first, last),
        }
    }

    /// A task is so from now on.
    fn is(&mut self, task: Arc<Task>) {
        let (place, key) = self.place(&task);
        place.insert(key, task);
    }

    /// A list has this task, which may be older than what is known.
    fn meets(&mut self, task: &Arc<Task>) {
        let (place, key) = self.place(task);
        place.entry(key).or_insert_with(|| Arc::clone(task));
    }

    fn place(&mut self, task: &Task) -> (&mut FxHashMap<u32, Arc<Task>>, u32) {
        if task.tid == task.pid { (&mut self.leaders, task.upid) } else { (&mut self.threads, task.utid) }
    }

    fn seen(&mut self, checkpoint: &Checkpoint) {
        checkpoint.tasks.iter().for_each(|task| self.meets(&Arc::new(task.clone())));
        let pids: FxHashMap<_, _> = checkpoint.tasks.iter().map(|task| (task.upid, task.pid)).collect();
        for table in checkpoint.fd_tables.iter().filter(|table| table.upid != 0) {
            let pid = pids.get(&table.upid).copied().unwrap_or(0);
            let who = Member { thread: 0, process: table.upid, pid };
            self.tables.seen(checkpoint.ts, who, listed(&table.fds), table.complete);
        }
    }

    /// Threads that had open files of their own when the recording began.
    fn apart(&mut self, checkpoint: &Checkpoint) {
        for (task, table) in checkpoint.apart(FdTable::OWN_FDS) {
            self.tables.apart(checkpoint.ts, Member::of(task), listed(&table.fds), table.complete);
        }
    }

    /// The moment is here.
    fn freeze(&mut self) {
        if self.held.is_some() {
            return;
        }
        let mut first: FxHashMap<u32, &Arc<Task>> = FxHashMap::default();
        let mut picked: FxHashSet<u32> = FxHashSet::default();
        for task in self.leaders.values().chain(self.threads.values()) {
            first.entry(task.upid).or_insert(task);
            if (self.wanted)(task) {
                picked.insert(task.upid);
            }
        }
        let mut held: Vec<Held> = Vec::new();
        for (process, thread, table) in self.tables.each() {
            let task = if thread == 0 { first.get(&process).copied() } else { self.threads.get(&thread) };
            self.all_known &= table.complete && !table.unseen && task.is_some();
            if let Some(task) = task {
                let open = table.fds.values().filter(|open| open.is_open);
                self.everyone.extend(open.map(|open| (Arc::clone(task), Arc::clone(&open.file))));
            }
            if let Some(task) = task.filter(|task| picked.contains(&task.upid)) {
                held.push(Held { task: Arc::clone(task), own: thread != 0, table: table.clone() });
            }
        }
        held.order_by_key(|held| (held.task.pid, held.own, held.task.tid, held.task.upid));
        self.held = Some(held);
    }
}
