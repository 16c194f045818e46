//! A segment as events in order of time: switches, wake-ups, process life, and the edges of its calls.

use std::sync::Arc;

use systape_format::model::{
    CPU_NONE, Call, CallState, Core, Dict, ProcessKind, Stacks, Switch, TARGET_RUNNING, Task, Time, Wakeup,
};
use systape_format::reader::{Segment, Tape};

use crate::call_files::{self, NO_FILE};
use crate::calls::{CallBook, CallInfo};
use crate::filter::Scope;
use crate::load::hole;
use crate::loss::Hole;

/// What a report wants beside the states of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Which call a thread is in.
    pub calls: bool,
    /// What that call is on.
    pub files: bool,
    /// Which calls pass the filters.
    pub counted: bool,
    /// Stacks of switches.
    pub stacks: bool,
}

/// No task: an interrupt.
pub const NOBODY: u32 = u32::MAX;

/// An event; tasks, calls and files are indices into its [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub ts: u64,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A call ended.
    Leave {
        /// Whose.
        task: u32,
        /// Where; CPU_NONE: not known.
        cpu: u32,
    },
    /// A thread was made.
    Fork {
        /// The new one.
        task: u32,
    },
    /// A thread became another program or got another name, user, cgroup, or became a target or ceased to be one: its entry says what holds
    /// from then on.
    Become {
        /// Which.
        task: u32,
        /// It did so itself, so it is on a CPU.
        running: bool,
    },
    /// A thread began to end.
    Exit {
        /// Which.
        task: u32,
    },
    /// See [`Wakeup`].
    Wakeup {
        /// Who woke; [`NOBODY`].
        waker: u32,
        /// Who was woken.
        wakee: u32,
        /// A new task's first.
        new: bool,
        /// A network softirq did it for the waker.
        softirq: bool,
    },
    /// See [`Switch`].
    Switch {
        /// Who ran.
        prev: u32,
        /// Who runs.
        next: u32,
        /// Where.
        cpu: u32,
        /// What `prev` is in.
        letter: u8,
        /// Position among the segment's switches.
        row: u32,
    },
    /// A call began.
    Enter {
        /// Whose.
        task: u32,
        /// Which.
        call: u32,
        /// On what: index + FD_FIRST, NO_FILE, UNKNOWN_FILE.
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
    /// [`Self::order`] of the beginning of a call.
    pub const ENTER_ORDER: u8 = 6;

    /// Which of several at one time comes first: a call that ends before the one that begins.
    pub fn order(&self) -> u8 {
        match self {
            Self::Leave { .. } => 0,
            Self::Fork { .. } => 1,
            Self::Become { .. } => 2,
            Self::Wakeup { .. } => 3,
            Self::Exit { .. } => 4,
            Self::Switch { .. } => 5,
            Self::Enter { .. } => Self::ENTER_ORDER,
        }
    }
}

/// Events of a segment, or of its carry rows alone.
#[derive(Debug, Default)]
pub struct Part {
    /// Position of the segment.
    pub at: usize,
    /// Its window; (0, 0): not known.
    pub window: (u64, u64),
    /// Tasks.
    pub tasks: Vec<Arc<Task>>,
    /// Calls.
    pub calls: Vec<Call>,
    /// Files.
    pub files: Vec<Vec<u8>>,
    /// In order of time.
    pub events: Vec<Event>,
    /// Calls that could not be read.
    pub holes: Vec<Hole>,
    /// Its scheduler events could not be read: why.
    pub unread: Option<String>,
    /// Stacks of its switches; None: not wanted, or they could not be read.
    pub stacks: Option<Stacks>,
    /// They could not be read: why.
    pub no_stacks: Option<String>,
}

/// Which rows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Those that began in its window, and everything that is no call.
    Own,
    /// Those that began before it.
    Carry,
}

/// Reads segments.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    /// The tape.
    pub tape: &'a Tape,
    /// Filters.
    pub scope: &'a Scope<'a>,
    /// Calls.
    pub book: &'a CallBook<'a>,
    /// What is wanted.
    pub needs: Needs,
}

impl Decoder<'_> {
    /// Reads `rows` of segment `at`.
    pub fn read(&self, at: usize, rows: Rows) -> Part {
        let segment = self.tape.segment(at);
        let mut part = Part { at, ..Part::default() };
        let dict = match segment.dict() {
            Ok(dict) => dict,
            Err(error) => {
                part.holes.push(hole(&segment, segment.info().rows, &error));
                part.unread = Some(error.to_string());
                part.window = (segment.info().end_min, segment.info().end_max);
                return part;
            }
        };
        part.window = (dict.window_start, dict.window_end);
        if rows == Rows::Own
            && let Err(error) = scheduling(&segment, &dict, &mut part.events)
        {
            part.unread = Some(error.to_string());
        }
        if rows == Rows::Own && self.needs.stacks {
            match segment.stacks() {
                Ok(stacks) => part.stacks = Some(stacks),
                Err(error) => part.no_stacks = Some(error.to_string()),
            }
        }
        if self.needs.calls
            && let Err(error) = self.calls(&segment, &dict, rows, &mut part)
        {
            part.holes.push(hole(&segment, segment.info().rows, &error));
        }
        // lists that are sorted each: the stable sort only merges them
        part.events.sort_by_key(|event| (event.ts, event.what.order()));
        part.tasks = dict.tasks.into_iter().map(Arc::new).collect();
        part.calls = dict.calls;
        part
    }

    fn calls(
        &self,
        segment: &Segment<'_>,
        dict: &Dict,
        rows: Rows,
        part: &mut Part,
    ) -> Result<(), systape_format::Error> {
        let core = segment.core(dict)?;
        let range = match rows {
            Rows::Own => core.carry_rows..core.call.len(),
            Rows::Carry => 0..core.carry_rows,
        };
        if range.is_empty() {
            return Ok(());
        }
        let time = segment.time(dict, &core)?;
        let infos: Vec<Arc<CallInfo>> = dict.calls.iter().map(|call| self.book.get(*call)).collect();
        let files =
            if self.needs.files { call_files::of_rows(segment, &core, &infos, &mut part.files) } else { Vec::new() };
        let filter = self.needs.counted.then(|| self.scope.segment(dict));
        let open = self.tape.session().window_open;
        let first = part.events.len();
        for row in range.clone() {
            let Some((leaves, before)) = edges(core.state[row]) else { continue };
            let start = time.start[row];
            if leaves && core.dur[row] == 0 {
                continue;
            }
            part.events.push(Event {
                ts: start,
                what: What::Enter {
                    task: core.task[row],
                    call: core.call[row],
                    file: files.get(row).copied().unwrap_or(NO_FILE),
                    row: row as u32,
                    before: before || start <= open,
                    counted: filter.as_ref().is_some_and(|f| f.core(&core, row) && f.time(&time, row)),
                },
            });
        }
        part.events[first..].sort_by_key(|event| event.ts);
        leaves(&core, &time, range, &mut part.events);
        Ok(())
    }
}

/// Whether a call in this state ends before its thread does, and whether it may have begun earlier than its row says. None: no
/// time in it is known.
fn edges(state: CallState) -> Option<(bool, bool)> {
    match state {
        CallState::Complete | CallState::Killed => Some((true, false)),
        CallState::BeganBefore => Some((true, true)),
        CallState::InFlight | CallState::NoReturn => Some((false, false)),
        CallState::CloneChild | CallState::Denied | CallState::LostEnter => None,
    }
}

fn leaves(core: &Core, time: &Time, range: std::ops::Range<usize>, events: &mut Vec<Event>) {
    for row in range {
        let leaves = edges(core.state[row]).is_some_and(|(leaves, _)| leaves);
        if leaves && core.dur[row] > 0 {
            let ts = time.start[row].saturating_add(core.dur[row]);
            let cpu = time.cpu.get(row).copied().unwrap_or(CPU_NONE);
            events.push(Event { ts, what: What::Leave { task: core.task[row], cpu } });
        }
    }
}

/// Adds everything that is no call.
fn scheduling(segment: &Segment<'_>, dict: &Dict, events: &mut Vec<Event>) -> Result<(), systape_format::Error> {
    for process in segment.processes(dict)? {
        let task = process.task;
        let what = match process.kind {
            ProcessKind::Fork => What::Fork { task },
            ProcessKind::Exit => What::Exit { task },
            ProcessKind::Exec | ProcessKind::Cred => What::Become { task, running: true },
            ProcessKind::Target => What::Become { task, running: process.flags & TARGET_RUNNING != 0 },
            // another may have done it to the thread
            ProcessKind::Rename | ProcessKind::Cgroup => What::Become { task, running: false },
        };
        events.push(Event { ts: process.ts, what });
    }
    events.extend(segment.wakeups(dict)?.iter().map(|w: &Wakeup| Event {
        ts: w.ts,
        what: What::Wakeup { waker: w.waker.unwrap_or(NOBODY), wakee: w.wakee, new: w.new, softirq: w.softirq },
    }));
    events.extend(segment.switches(dict)?.iter().enumerate().map(|(row, s): (usize, &Switch)| Event {
        ts: s.ts,
        what: What::Switch { prev: s.prev, next: s.next, cpu: s.cpu, letter: s.prev_letter(), row: row as u32 },
    }));
    Ok(())
}
