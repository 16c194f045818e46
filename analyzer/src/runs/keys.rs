//! What reports add up by: a [`Key`] of small numbers, and what its parts are called in text and JSON.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{CPU_NONE, Call, Session, Task};
use systape_format::table::ColumnDef;

use super::by::By;
use super::names::Names;
use super::{Doing, Interval, Slot, State, Thread};
use crate::call_files::NO_FILE;
use crate::calls::CallBook;
use crate::filter::Scope;
use crate::render::keys::columns;
use crate::render::row::{Row, user};

systape_format::tables! {
    /// Keys of `--by` in the scheduler's reports, each where it was named.
    pub BY = "sched_by" {
        comm: Str [Comm] "name of the thread; of a process that of its leader"
        pid: Int "process"
        tid: Int "thread"
        upid: Int "the process, unique in the tape: the kernel gives pids out again"
        utid: Int "the thread, unique in the tape"
        state: Word "letter of ps(1), `R` for waiting for a CPU; in `states` also `RUN` (on a CPU), `RQ` (waiting for one) and `?`"
        syscall: Word "the call it is in, `[user]` (in none), `[kernel]` (a kernel thread) or `?`"
        file: Str [Path] "what that call is on; null: nothing, or not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        uid: Int "real user; null: not known"
        cpu: Int "CPU; null: not known"
    }
}

/// Where a thread is, as a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Not asked.
    #[default]
    Any,
    /// In no call.
    User,
    /// A kernel thread.
    Kernel,
    /// Not known: calls were lost, or not all were recorded.
    Unknown,
    /// In this call.
    Call(Call),
}

/// Parts that are not asked for are the same for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Number of the name.
    pub comm: u32,
    /// utid, or tid without one.
    pub task: u32,
    /// upid, or pid without one.
    pub process: u32,
    /// See [`State::name`].
    pub state: &'static str,
    /// The call.
    pub place: Place,
    /// Number of the file.
    pub file: u32,
    /// cgroup v2 id.
    pub cgroup: u64,
    /// Real uid.
    pub uid: u32,
    /// CPU.
    pub cpu: u32,
}

/// What is the same for all intervals of a thread until its name changes.
#[derive(Debug, Default)]
struct Known {
    task: Arc<Task>,
    passes: bool,
    key: Key,
    kernel: bool,
}

/// Makes keys. One hash look-up per change of a thread's name, none per interval.
#[derive(Debug)]
pub struct Keys<'a> {
    by: Vec<By>,
    scope: &'a Scope<'a>,
    all_calls: bool,
    slots: Vec<Known>,
    comms: Names,
    tasks: FxHashMap<u32, Arc<Task>>,
    processes: FxHashMap<u32, Arc<Task>>,
}

/// Whether `task` is the kernel's.
pub fn is_kernel(task: &Task) -> bool {
    // kthreadd is 2 and parent of all others
    task.exe.is_empty() && (task.pid == 2 || task.ppid == 2)
}

impl<'a> Keys<'a> {
    /// Keys of `by`, of tasks that pass `scope`. `all_calls`: every call was recorded, so a thread in none is in its own code.
    pub fn new(by: &[By], scope: &'a Scope<'a>, all_calls: bool) -> Self {
        Self {
            by: by.to_vec(),
            scope,
            all_calls,
            slots: Vec::new(),
            comms: Names::default(),
            tasks: FxHashMap::default(),
            processes: FxHashMap::default(),
        }
    }

    /// Whether it is asked for.
    pub fn has(&self, by: By) -> bool {
        self.by.contains(&by)
    }

    /// The keys asked for.
    pub fn by(&self) -> &[By] {
        &self.by
    }

    fn known(&mut self, threads: &[Thread], slot: Slot) -> &Known {
        if slot >= self.slots.len() {
            self.slots.resize_with(threads.len().max(slot + 1), Known::default);
        }
        let task = &threads[slot].task;
        if !Arc::ptr_eq(&self.slots[slot].task, task) {
            self.slots[slot] = self.make(task);
        }
        &self.slots[slot]
    }

    fn make(&mut self, task: &Arc<Task>) -> Known {
        let mut key = Key::default();
        let passes = self.scope.task(task);
        for by in self.by.iter().filter(|_| passes) {
            match by {
                By::Comm => key.comm = self.comms.number(&task.comm),
                By::Task => {
                    key.task = if task.utid == 0 { task.tid } else { task.utid };
                    self.tasks.insert(key.task, Arc::clone(task));
                }
                By::Process => {
                    key.process = if task.upid == 0 { task.pid } else { task.upid };
                    // a process is called what its leader is
                    if task.tid == task.pid || !self.processes.contains_key(&key.process) {
                        self.processes.insert(key.process, Arc::clone(task));
                    }
                }
                By::Cgroup => key.cgroup = task.cgroup_id,
                By::User => key.uid = task.uid,
                By::State | By::Syscall | By::File | By::Cpu => {}
            }
        }
        Known { task: Arc::clone(task), passes, key, kernel: is_kernel(task) }
    }

    /// Whether the thread passes the filters.
    pub fn passes(&mut self, threads: &[Thread], slot: Slot) -> bool {
        self.known(threads, slot).passes
    }

    /// The key of `interval`; None when its thread does not pass.
    pub fn key(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) -> Option<Key> {
        let (state, syscall, file) = (self.has(By::State), self.has(By::Syscall), self.has(By::File));
        let all_calls = self.all_calls;
        let known = self.known(threads, slot);
        if !known.passes {
            return None;
        }
        let mut key = known.key;
        if state {
            key.state = interval.state.name();
        }
        if syscall {
            key.place = place(&interval.doing, interval.state, known.kernel, all_calls);
        }
        if file && let Doing::Call(call) = interval.doing {
            key.file = call.file;
        }
        Some(key)
    }

    /// The name of comm number `number`.
    pub fn comm(&self, number: u32) -> &[u8] {
        self.comms.name(number).unwrap_or_default()
    }

    /// A thread by its key.
    pub fn task(&self, key: &Key) -> Option<&Task> {
        self.tasks.get(&key.task).or_else(|| self.processes.get(&key.process)).map(|task| &**task)
    }

    /// The parts of `key` as text, in the order of [`Self::by`].
    pub fn texts(&self, key: &Key, words: &Words<'_>) -> Vec<String> {
        self.by.iter().map(|by| self.text(*by, key, words)).collect()
    }

    fn text(&self, by: By, key: &Key, words: &Words<'_>) -> String {
        match by {
            By::Comm => words.escaped(self.comm(key.comm)),
            By::Task => match self.tasks.get(&key.task) {
                Some(task) => task_text(task),
                None => "?".into(),
            },
            By::Process => match self.processes.get(&key.process) {
                Some(task) => format!("{}[{}]", words.escaped(&task.comm), task.pid),
                None => "?".into(),
            },
            By::State => key.state.to_owned(),
            By::Syscall => words.place(key.place),
            By::File if key.file == NO_FILE => "-".into(),
            By::File => words.names.name(key.file).map_or_else(|| "?".into(), |name| words.escaped(name)),
            By::Cgroup => match words.session.cgroup_path(key.cgroup) {
                Some(path) => words.escaped(path),
                None if key.cgroup == 0 => "?".into(),
                None => format!("cgroup {}", key.cgroup),
            },
            By::User => crate::words::user(words.session, key.uid),
            By::Cpu if key.cpu == CPU_NONE => "?".into(),
            By::Cpu => key.cpu.to_string(),
        }
    }

    /// The columns of [`BY`] that are asked for, in their order.
    pub fn columns(&self) -> Vec<ColumnDef> {
        let mut names: Vec<&str> = Vec::new();
        for by in &self.by {
            match by {
                By::Comm => names.push("comm"),
                By::Task => {
                    names.extend(["pid", "tid", "upid", "utid"]);
                    names.extend(Some("comm").filter(|_| !self.has(By::Comm)));
                }
                // a thread has that of its process
                By::Process if self.has(By::Task) => {}
                By::Process => {
                    names.extend(["pid", "upid"]);
                    names.extend(Some("comm").filter(|_| !self.has(By::Comm)));
                }
                By::User => names.push("uid"),
                by => names.push(by.name()),
            }
        }
        columns(&BY, names)
    }

    /// Sets the columns of [`Self::columns`].
    pub fn fill(&self, row: &mut Row<'_>, key: &Key, words: &Words<'_>) {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        for by in &self.by {
            match by {
                By::Comm => {
                    row.set("comm", self.comm(key.comm).to_vec());
                }
                By::Task => {
                    let task = self.tasks.get(&key.task);
                    row.set("pid", task.map(|t| t.pid)).set("tid", task.map(|t| t.tid));
                    row.set("upid", task.map(|t| t.upid)).set("utid", task.map(|t| t.utid));
                    if !self.has(By::Comm) {
                        row.set("comm", task.map(|t| t.comm.clone()));
                    }
                }
                By::Process if self.has(By::Task) => {}
                By::Process => {
                    let task = self.processes.get(&key.process);
                    row.set("pid", task.map(|t| t.pid)).set("upid", task.map(|t| t.upid));
                    if !self.has(By::Comm) {
                        row.set("comm", task.map(|t| t.comm.clone()));
                    }
                }
                By::State => {
                    row.set("state", key.state);
                }
                By::Syscall => {
                    row.set("syscall", words.place(key.place));
                }
                By::File => {
                    row.set("file", owned(words.names.name(key.file)));
                }
                By::Cgroup => {
                    row.set("cgroup", owned(words.session.cgroup_path(key.cgroup)));
                }
                By::User => {
                    row.set("uid", user(key.uid));
                }
                By::Cpu => {
                    row.set("cpu", Some(key.cpu).filter(|cpu| *cpu != CPU_NONE));
                }
            }
        }
    }
}

/// Sets `pid tid upid utid comm` of a thread.
pub fn set_thread<'a>(row: &mut Row<'a>, task: &'a Task) {
    row.set("pid", task.pid).set("tid", task.tid).set("upid", task.upid).set("utid", task.utid);
    row.set("comm", &task.comm);
}

/// `app[101/100]`, `app[100]`: as perf sched writes thread and process.
pub fn task_text(task: &Task) -> String {
    let mut comm = String::new();
    systape_abi::escape(&task.comm, &mut comm);
    if task.tid == task.pid { format!("{comm}[{}]", task.tid) } else { format!("{comm}[{}/{}]", task.tid, task.pid) }
}

/// Where a thread in `state` is.
pub fn place(doing: &Doing, state: State, kernel: bool, all_calls: bool) -> Place {
    match doing {
        Doing::Call(call) => Place::Call(call.call),
        _ if kernel => Place::Kernel,
        // nobody falls asleep in his own code: it is in a call that is not on the tape
        Doing::User if state == State::Sleeping(b'S') => Place::Unknown,
        Doing::User if all_calls => Place::User,
        Doing::User | Doing::Unknown => Place::Unknown,
    }
}

/// What turns numbers into words.
#[derive(Debug)]
pub struct Words<'a> {
    /// The tape.
    pub session: &'a Session,
    /// Calls.
    pub book: &'a CallBook<'a>,
    /// Files.
    pub names: &'a Names,
}

impl Words<'_> {
    /// For a terminal.
    pub fn escaped(&self, bytes: &[u8]) -> String {
        let mut text = String::new();
        systape_abi::escape(bytes, &mut text);
        text
    }

    /// `read`, `[user]`, `[kernel]`, `?`.
    pub fn place(&self, place: Place) -> String {
        match place {
            Place::Any | Place::Unknown => "?".into(),
            Place::User => "[user]".into(),
            Place::Kernel => "[kernel]".into(),
            Place::Call(call) => self.book.get(call).long_name.clone(),
        }
    }
}

/// Whether every call of the recorded threads is on the tape.
pub fn all_calls(session: &Session) -> bool {
    session.selection.is_empty()
        && session.call_filters.is_empty()
        && crate::families::in_session(session, systape_format::model::Family::Syscall)
}

/// Whether an interval counts as off the CPU for `offcpu`: asleep or stopped; `waiting`: also waiting for a CPU.
pub fn off_cpu(state: State, waiting: bool) -> bool {
    match state {
        State::Sleeping(letter) => !matches!(letter, b'Z' | b'X'),
        State::Waiting(_) => waiting,
        State::Running | State::Unknown => false,
    }
}
