//! A segment as events in order of time: switches, wake-ups, process life, starts and ends of its calls.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::Error;
use systape_format::model::{
    CGROUP_ALL_THREADS, CPU_NONE, Call, CallState, Core, Dict, FD_FIRST, ProcessKind, RunState, Stacks, Switch,
    TARGET_RUNNING, Task, Wakeup,
};
use systape_format::reader::Segment;

use super::InCall;
use super::queued::{CallSpan, ENTER_ORDER, LEAVE_ORDER, by_thread};
use systape_events::call_files::{self, NO_FILE, unseen};
use systape_events::calls::{CallBook, CallInfo};
use systape_events::filter::Scope;
use systape_events::load::OpenCalls;
use systape_events::scan::Coverage;
use systape_events::scan::carry::Rows;
use systape_events::scan::later::HasTime;
use systape_events::scan::stream::{Piece, Source};

/// What a report needs besides the states of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The call of a thread.
    pub calls: bool,
    /// The file of that call.
    pub files: bool,
    /// Whether a call passes the filters.
    pub counted: bool,
    /// Stacks of switches.
    pub stacks: bool,
    /// The address of a futex, as the name of its calls' file: `0x7f2029289e70`. Needs `files`.
    pub futexes: bool,
    /// [`ANY_CHILD`] as the name of the file of waits for any child. Needs `files`.
    pub children: bool,
}

/// What a wait for any child is on, if [`Needs::children`].
pub(crate) const ANY_CHILD: &[u8] = b"any child";

/// Unit of [`What::Switch`]'s time, ns: the recorder knows it no better, and an event stays small.
pub(crate) const UNTHROTTLED_UNIT: u64 = 1024;

/// No task: an interrupt.
pub const NOBODY: u32 = u32::MAX;

/// An event; tasks, calls and files are indices into its [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub ts: u64,
    /// The event.
    pub what: What,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A call ended.
    Leave {
        /// The thread.
        task: u32,
        /// The CPU; CPU_NONE: not known.
        cpu: u32,
    },
    /// A thread was created.
    Fork {
        /// The new one.
        task: u32,
    },
    /// A thread executed another program, got another name, user or cgroup, became a target or ceased to be one: its
    /// entry is valid from then on.
    Become {
        /// The thread.
        task: u32,
        /// By itself, so it is on a CPU.
        running: bool,
        /// All threads of its process are in its cgroup now.
        all: bool,
    },
    /// A thread began to exit.
    Exit {
        /// The thread.
        task: u32,
    },
    /// A [`Wakeup`].
    Wakeup {
        /// The waker; [`NOBODY`].
        waker: u32,
        /// The wakee.
        wakee: u32,
        /// A new task's first.
        new: bool,
        /// By a network softirq at the end of the waker's send.
        softirq: bool,
        /// See [`Wakeup::throttled`].
        throttled: bool,
    },
    /// A [`Switch`].
    Switch {
        /// The task that ran.
        prev: u32,
        /// The task that runs.
        next: u32,
        /// The CPU.
        cpu: u32,
        /// State of `prev` from then on.
        letter: u8,
        /// See [`Switch::throttled`].
        throttled: bool,
        /// See [`Switch::unthrottled_ns`]; in units of [`UNTHROTTLED_UNIT`].
        unthrottled: u32,
        /// Index among the segment's switches.
        row: u32,
    },
    /// A thread got a CPU, and no program saw it: the kernel said it later.
    Came {
        /// The thread.
        task: u32,
        /// The CPU.
        cpu: u32,
    },
    /// The first of a thread's calls in [`Part::spans`] began: these are applied when something touches the thread.
    Calls {
        /// The thread, at the end of that call.
        task: u32,
        /// Index of the first.
        first: u32,
        /// Index behind the last.
        end: u32,
    },
    /// A call began.
    Enter {
        /// The thread.
        task: u32,
        /// The call.
        call: u32,
        /// Its file: index + FD_FIRST, NO_FILE, UNKNOWN_FILE.
        file: u32,
        /// Row of the segment.
        row: u32,
        /// It began then or before.
        before: bool,
        /// It passes the filters.
        counted: bool,
    },
}

impl What {
    /// Order of events at the same time: a call that ends before the one that begins.
    pub fn order(&self) -> u8 {
        match self {
            Self::Leave { .. } => LEAVE_ORDER,
            Self::Fork { .. } => 1,
            Self::Become { .. } => 2,
            Self::Wakeup { .. } => 3,
            Self::Exit { .. } => 4,
            Self::Switch { .. } | Self::Came { .. } => 5,
            Self::Calls { .. } | Self::Enter { .. } => ENTER_ORDER,
        }
    }
}

impl HasTime for Event {
    fn key(&self) -> (u64, u8) {
        (self.ts, self.what.order())
    }
}

/// Common parts of the events of a segment, or of its carry rows.
#[derive(Debug, Default)]
pub struct Part {
    /// Index of the segment; [`OPEN`].
    pub at: usize,
    /// Tasks of the part.
    pub tasks: Vec<Arc<Task>>,
    /// Calls of the part.
    pub calls: Vec<Call>,
    /// Files of the part.
    pub files: Vec<Vec<u8>>,
    /// Stacks of its switches; None: not requested, or unreadable.
    pub stacks: Option<Stacks>,
    /// When the tasks that left a CPU may have got it unseen, with the index of their switch: those that are no [`What::Came`].
    pub came: Vec<(u32, u64)>,
    /// The [`What::Came`] of the segment: utid and time, in order.
    pub arrivals: Vec<(u32, u64)>,
    /// Complete calls, by thread.
    pub spans: Vec<CallSpan>,
}

/// How much later than a task came the kernel's times may say that it did, ns: its clock was read before the CPU looked for work.
const LATE: u64 = 1_000_000;

impl Part {
    /// When the task gets a CPU unseen, by the kernel's times, if that is so soon after `ts` that it may have it by then.
    pub(crate) fn comes_soon(&self, task: u32, ts: u64) -> Option<u64> {
        let utid = self.tasks[task as usize].utid;
        let next = self.arrivals.partition_point(|arrival| *arrival < (utid, ts));
        self.arrivals.get(next).filter(|(of, at)| *of == utid && at - ts < LATE).map(|(_, at)| *at)
    }
}

/// No segment: calls that were open when the recording ended.
pub const OPEN: usize = usize::MAX;

/// A fact about a thread whose time is not the one its row or table is sorted by.
#[derive(Debug)]
pub struct LooseFact {
    /// Time of the fact.
    pub ts: u64,
    /// The thread.
    pub task: Arc<Task>,
    /// The fact.
    pub what: LooseEdge,
}

/// What a [`LooseFact`] says.
#[derive(Debug)]
pub enum LooseEdge {
    /// A call ended, on a CPU.
    Leave(u32),
    /// A call began.
    Enter(InCall),
    /// State in a checkpoint, and the call it was in.
    Seen(RunState, Option<InCall>),
    /// A checkpoint has who it is.
    Is,
}

impl HasTime for LooseFact {
    fn key(&self) -> (u64, u8) {
        let order = match self.what {
            LooseEdge::Leave(_) => LEAVE_ORDER,
            LooseEdge::Enter(_) => ENTER_ORDER,
            // after everything else of the same time
            LooseEdge::Is | LooseEdge::Seen(..) => u8::MAX,
        };
        (self.ts, order)
    }
}

/// Reads segments for these reports.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    /// When the recording began.
    pub began: u64,
    /// Filters of the question.
    pub scope: &'a Scope<'a>,
    /// Names of calls.
    pub book: &'a CallBook<'a>,
    /// What the report needs.
    pub needs: Needs,
    /// Whether complete calls are [`What::Calls`]. Where something is lost, all that happens is passed in order.
    pub queues: bool,
}

impl Source for Decoder<'_> {
    type Row = Event;
    type Part = Part;
    type Waiting = LooseFact;

    fn calls(&self) -> bool {
        self.needs.calls
    }

    fn read(&self, segment: Segment<'_>, dict: Dict, rows: Rows, piece: &mut Piece<Self>) {
        piece.part.at = piece.at;
        if rows == Rows::Own
            && let Err(error) = scheduling(&segment, &dict, piece)
        {
            self.unread(&segment, &error, &mut piece.coverage);
            piece.lacks_events = true;
        }
        if rows == Rows::Own && self.needs.stacks {
            match segment.stacks() {
                Ok(stacks) => piece.part.stacks = Some(stacks),
                Err(error) => piece.coverage.finding(&segment, "stacks", &error),
            }
        }
        if self.needs.calls
            && let Err(error) = self.add_calls(&segment, &dict, rows, piece)
        {
            piece.coverage.hole(&segment, segment.info().rows, &error);
            piece.lacks_calls = true;
        }
        piece.part.tasks = dict.tasks.into_iter().map(Arc::new).collect();
        piece.part.calls = dict.calls;
    }

    fn open(&self, open: OpenCalls, piece: &mut Piece<Self>) {
        let filter = self.scope.segment(&open.dict, u32::MAX);
        piece.rows.extend((0..open.core.call.len()).map(|row| {
            let (task, call, ts) = (open.core.task[row], open.core.call[row], open.time.start[row]);
            let file = unseen(&self.book.get(open.dict.calls[call as usize]));
            let counted = filter.core(&open.core, row) && filter.time(&open.time, row);
            let before = ts <= self.began;
            Event { ts, what: What::Enter { task, call, file, row: row as u32, before, counted } }
        }));
        piece.part.at = piece.at;
        piece.part.tasks = open.dict.tasks.into_iter().map(Arc::new).collect();
        piece.part.calls = open.dict.calls;
    }

    fn unread(&self, segment: &Segment<'_>, error: &Error, coverage: &mut Coverage) {
        coverage.finding(segment, "scheduler events", error);
    }
}

impl Decoder<'_> {
    fn add_calls(&self, segment: &Segment<'_>, dict: &Dict, rows: Rows, piece: &mut Piece<Self>) -> Result<(), Error> {
        let core = segment.core(dict)?;
        let range = rows.of(&core);
        if range.is_empty() {
            return Ok(());
        }
        let time = segment.time(dict, &core)?;
        let infos: Vec<Arc<CallInfo>> = dict.calls.iter().map(|call| self.book.get(*call)).collect();
        let mut files = if self.needs.files {
            call_files::of_rows(segment, &core, &infos, &mut piece.part.files)
        } else {
            Vec::new()
        };
        if self.needs.futexes || self.needs.children {
            objects(self.needs, segment, &core, &infos, (&mut files, &mut piece.part.files));
        }
        let filter = self.needs.counted.then(|| self.scope.segment(dict, segment.info().segment));
        let queues = if self.queues && rows == Rows::Own { queues(&piece.part.arrivals, dict) } else { Vec::new() };
        let mut spans = Vec::new();
        let (first, mut ends) = (piece.rows.len(), Vec::new());
        for row in range {
            let Some((leaves, before)) = edges(core.state[row]) else { continue };
            let (start, task) = (time.start[row], core.task[row]);
            if leaves && core.dur[row] == 0 {
                continue;
            }
            let span = CallSpan {
                start,
                end: if leaves { start.saturating_add(core.dur[row]) } else { u64::MAX },
                task,
                call: core.call[row],
                file: files.get(row).copied().unwrap_or(NO_FILE),
                row: row as u32,
                cpu: time.cpu.get(row).copied().unwrap_or(CPU_NONE),
                before: before || start <= self.began,
                counted: filter.as_ref().is_some_and(|f| f.core(&core, row) && f.time(&time, row)),
            };
            if leaves && !span.before && queues.get(task as usize) == Some(&true) {
                spans.push(span);
                continue;
            }
            piece.rows.push(span.enters());
            ends.extend(leaves.then(|| span.leaves()));
        }
        let queued = by_thread(spans, &threads(&dict.tasks));
        for calls in queued.of_thread {
            let CallSpan { start: ts, task, .. } = queued.spans[calls.start];
            let (first, end) = (calls.start as u32, calls.end as u32);
            piece.rows.push(Event { ts, what: What::Calls { task, first, end } });
        }
        for span in queued.others {
            piece.rows.push(span.enters());
            ends.push(span.leaves());
        }
        piece.part.spans = queued.spans;
        piece.rows[first..].sort_by_key(|event| event.ts);
        piece.rows.append(&mut ends);
        Ok(())
    }
}

/// For each task the index of its thread's first entry.
fn threads(tasks: &[Task]) -> Vec<u32> {
    let mut first: FxHashMap<u64, u32> = FxHashMap::default();
    (0..).zip(tasks).map(|(at, task)| *first.entry(super::thread_key(task)).or_insert(at)).collect()
}

impl CallSpan {
    /// The beginning, as an event.
    fn enters(&self) -> Event {
        let Self { start, task, call, file, row, before, counted, .. } = *self;
        Event { ts: start, what: What::Enter { task, call, file, row, before, counted } }
    }

    /// The end, as an event.
    fn leaves(&self) -> Event {
        Event { ts: self.end, what: What::Leave { task: self.task, cpu: self.cpu } }
    }
}

/// Whether calls of each task of `dict` may be passed together: not of one that gets a CPU unseen, whose calls say when.
fn queues(arrivals: &[(u32, u64)], dict: &Dict) -> Vec<bool> {
    let arrives = |utid| arrivals.binary_search_by_key(&utid, |(utid, _)| *utid).is_ok();
    dict.tasks.iter().map(|task| task.tid != 0 && (arrivals.is_empty() || !arrives(task.utid))).collect()
}

/// Makes what calls without a file are on their files.
fn objects(
    needs: Needs,
    segment: &Segment<'_>,
    core: &Core,
    infos: &[Arc<CallInfo>],
    (files, names): (&mut [u32], &mut Vec<Vec<u8>>),
) {
    let object_of: Vec<Option<CallObject>> = infos.iter().map(|info| object_of(needs, &info.name)).collect();
    if object_of.iter().all(Option::is_none) {
        return;
    }
    let args = segment.args(core).unwrap_or_default();
    let mut numbers: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
    for (row, file) in files.iter_mut().enumerate() {
        let (Some(object), Some(args)) = (object_of[core.call[row] as usize], args.of(row)) else { continue };
        let Some(name) = object(args) else { continue };
        *file = *numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            (names.len() - 1) as u32 + FD_FIRST
        });
    }
}

/// Says by its arguments what a call is on.
type CallObject = fn(&[u64; 6]) -> Option<Vec<u8>>;

fn object_of(needs: Needs, call: &str) -> Option<CallObject> {
    match call {
        "futex" if needs.futexes => Some(|args| Some(format!("{:#x}", args[0]).into_bytes())),
        // a pid of -1
        "wait4" | "waitpid" if needs.children => Some(|args| (args[0] as i32 == -1).then(|| ANY_CHILD.to_vec())),
        // P_ALL
        "waitid" if needs.children => Some(|args| (args[0] as i32 == 0).then(|| ANY_CHILD.to_vec())),
        _ => None,
    }
}

/// Whether a call in this state ends before its thread does, and whether it may have begun before its row's start.
/// None: its times are not known.
fn edges(state: CallState) -> Option<(bool, bool)> {
    match state {
        CallState::Complete | CallState::Killed => Some((true, false)),
        CallState::BeganBefore => Some((true, true)),
        CallState::InFlight | CallState::NoReturn => Some((false, false)),
        CallState::CloneChild | CallState::Denied | CallState::LostEnter => None,
    }
}

/// Adds all events except calls.
fn scheduling(segment: &Segment<'_>, dict: &Dict, piece: &mut Piece<Decoder<'_>>) -> Result<(), Error> {
    let events = &mut piece.rows;
    for process in segment.processes(dict)? {
        let task = process.task;
        let what = match process.kind {
            ProcessKind::Fork => What::Fork { task },
            ProcessKind::Exit => What::Exit { task },
            ProcessKind::Exec | ProcessKind::Cred => What::Become { task, running: true, all: false },
            ProcessKind::Target => What::Become { task, running: process.flags & TARGET_RUNNING != 0, all: false },
            // another may have done it to the thread
            ProcessKind::Rename => What::Become { task, running: false, all: false },
            ProcessKind::Cgroup => What::Become { task, running: false, all: process.flags & CGROUP_ALL_THREADS != 0 },
        };
        events.push(Event { ts: process.ts, what });
    }
    events.extend(segment.wakeups(dict)?.iter().map(|w: &Wakeup| Event {
        ts: w.ts,
        what: What::Wakeup {
            waker: w.waker.unwrap_or(NOBODY),
            wakee: w.wakee,
            new: w.new,
            softirq: w.softirq,
            throttled: w.throttled,
        },
    }));
    let switches = segment.switches(dict)?;
    let switched = events.len();
    piece.part.came = came_unseen(&switches, events);
    let arrivals = events[switched..].iter().filter_map(|event| match event.what {
        What::Came { task, .. } => Some((dict.tasks[task as usize].utid, event.ts)),
        _ => None,
    });
    piece.part.arrivals = arrivals.collect();
    piece.part.arrivals.sort_unstable();
    events.extend(switches.iter().enumerate().map(|(row, s): (usize, &Switch)| Event {
        ts: s.ts,
        what: What::Switch {
            prev: s.prev,
            next: s.next,
            cpu: s.cpu,
            letter: s.prev_letter(),
            throttled: s.throttled,
            unthrottled: u32::try_from(s.unthrottled_ns / UNTHROTTLED_UNIT).unwrap_or(u32::MAX),
            row: row as u32,
        },
    }));
    Ok(())
}

/// Adds the switches that no program saw, which lie among the others if their time is known. Returns the others, as [`Part::came`].
fn came_unseen(switches: &[Switch], events: &mut Vec<Event>) -> Vec<(u32, u64)> {
    let first = switches.first().map_or(0, |s| s.ts);
    let mut rest = Vec::new();
    for (row, s) in switches.iter().enumerate() {
        let Some(came) = s.came else { continue };
        let ts = s.ts.saturating_sub(came.ns);
        if came.at_most || ts < first {
            rest.push((row as u32, ts));
        } else {
            events.push(Event { ts, what: What::Came { task: s.prev, cpu: s.cpu } });
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use systape_format::model::Came;

    use super::*;

    #[test]
    fn a_switch_that_was_not_seen_is_an_event_where_its_time_is_known() {
        let switch = |ts, came: Option<(u64, bool)>| {
            let came = came.map(|(ns, at_most)| Came { ns, at_most });
            Switch { ts, cpu: 1, prev: 7, came, ..Switch::default() }
        };
        let of = [
            switch(100, Some((20, false))),
            switch(200, None),
            switch(300, Some((30, false))),
            switch(400, Some((50, true))),
        ];
        let mut events = Vec::new();
        // the first came before the segment, where other events have passed
        assert_eq!(came_unseen(&of, &mut events), [(0, 80), (3, 350)]);
        assert_eq!(events, [Event { ts: 270, what: What::Came { task: 7, cpu: 1 } }]);
    }
}
