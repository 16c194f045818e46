//! Keys of the reports' sums: a [`Key`] of small numbers, and their text and JSON.

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{CPU_NONE, Call, Session, Task};
use systape_format::table::ColumnDef;

use super::names::Names;
use super::{Doing, Interval, Slot, State, Thread};
use crate::render::by;
use crate::render::cell::Cell;
use crate::render::row::{Row, user};
use systape_events::call_files::NO_FILE;
use systape_events::calls::CallBook;
use systape_events::filter::Scope;
use systape_events::group::by::GroupKey;
use systape_events::group::env;
use systape_events::group::of_cgroup::OfCgroup;
use systape_events::group::value::Value;

/// The call of a thread, as a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Not asked.
    #[default]
    Any,
    /// Code in no call.
    User,
    /// A kernel thread.
    Kernel,
    /// Not known: calls were lost, or not all were recorded.
    Unknown,
    /// This call.
    Call(Call),
}

/// A key; parts that are not requested are equal for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Number of the name.
    pub comm: u32,
    /// utid, or tid without one.
    pub task: u32,
    /// upid, or pid without one.
    pub process: u32,
    /// Name of the state, as [`State::name`] has it.
    pub state: &'static str,
    /// The call.
    pub place: Place,
    /// Number of the file.
    pub file: u32,
    /// cgroup v2 id.
    pub cgroup: u64,
    /// Real uid.
    pub uid: u32,
    /// CPU of the interval.
    pub cpu: u32,
    /// Number of the variables of the environment, see [`Names::of`].
    pub env: u32,
    /// Numbers of the values of [`GroupKey::OF_CGROUP`], see [`Names::of`].
    pub of_cgroup: [u32; GroupKey::OF_CGROUP.len()],
}

/// The parts of a key that are the same for all intervals of a thread until its name changes.
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
    by: Vec<GroupKey>,
    scope: &'a Scope<'a>,
    all_calls: bool,
    slots: Vec<Known>,
    comms: Names,
    of_cgroup: OfCgroup,
    tasks: FxHashMap<u32, Arc<Task>>,
    processes: FxHashMap<u32, Arc<Task>>,
}

/// Whether `task` is the kernel's.
pub fn is_kernel(task: &Task) -> bool {
    // kthreadd is 2 and parent of all others
    task.exe.is_empty() && (task.pid == 2 || task.ppid == 2)
}

impl<'a> Keys<'a> {
    /// The order of two keys of equal sums: by what they name, because numbers of names depend on what came before.
    pub fn order(&self, files: &Names, a: &Key, b: &Key) -> Ordering {
        let named = |key: &Key| (self.comms.name(key.comm), key.state, key.place, files.name(key.file));
        named(a).cmp(&named(b)).then_with(|| a.cmp(b))
    }

    /// Keys of `by`, of the tasks of `session` that pass `scope`. `all_calls`: every call was recorded, so a thread in none
    /// is in its own code.
    pub fn new(by: &[GroupKey], scope: &'a Scope<'a>, session: &Session, all_calls: bool) -> Self {
        Self {
            by: by.to_vec(),
            scope,
            all_calls,
            slots: Vec::new(),
            comms: Names::default(),
            of_cgroup: OfCgroup::of(session, by),
            tasks: FxHashMap::default(),
            processes: FxHashMap::default(),
        }
    }

    /// Whether it is requested.
    pub fn has(&self, by: GroupKey) -> bool {
        self.by.contains(&by)
    }

    /// The requested keys.
    pub fn by(&self) -> &[GroupKey] {
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
                GroupKey::Comm => key.comm = self.comms.number(&task.comm),
                GroupKey::Tid => {
                    key.task = if task.utid == 0 { task.tid } else { task.utid };
                    self.tasks.insert(key.task, Arc::clone(task));
                }
                GroupKey::Pid => {
                    key.process = if task.upid == 0 { task.pid } else { task.upid };
                    // a process is called what its leader is
                    if task.tid == task.pid || !self.processes.contains_key(&key.process) {
                        self.processes.insert(key.process, Arc::clone(task));
                    }
                }
                GroupKey::Cgroup => key.cgroup = task.cgroup_id,
                GroupKey::Uid => key.uid = task.uid,
                GroupKey::Env => key.env = self.comms.of(&env::value(task)),
                by => {
                    if let Some(at) = GroupKey::OF_CGROUP.iter().position(|known| known == by) {
                        let value = self.of_cgroup.value(*by, &Value::Number(task.cgroup_id));
                        key.of_cgroup[at] = self.comms.of(&value);
                    }
                }
            }
        }
        Known { task: Arc::clone(task), passes, key, kernel: is_kernel(task) }
    }

    /// Whether keys differ, for [`super::IntervalSink::parts`].
    pub fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        let differs = |by: &GroupKey| match by {
            GroupKey::Comm => after.is_none_or(|after| after.comm != before.comm),
            GroupKey::Cgroup | GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job => {
                after.is_none_or(|after| after.cgroup_id != before.cgroup_id)
            }
            GroupKey::Uid => after.is_none_or(|after| after.uid != before.uid),
            GroupKey::Env => after.is_none_or(|after| after.env != before.env),
            _ => false,
        };
        let filtered = match after {
            Some(after) => self.scope.task(after) != self.scope.task(before),
            None => self.scope.by_state(),
        };
        filtered || self.by.iter().any(differs)
    }

    /// Whether the thread passes the filters.
    pub fn passes(&mut self, threads: &[Thread], slot: Slot) -> bool {
        self.known(threads, slot).passes
    }

    /// The key of `interval`; None when its thread does not pass.
    pub fn key(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) -> Option<Key> {
        let (state, syscall, file) = (self.has(GroupKey::State), self.has(GroupKey::Syscall), self.has(GroupKey::File));
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

    /// What the cgroup of `key` belongs to, or its environment; empty: nothing; None: not known.
    fn named(&self, by: GroupKey, key: &Key) -> Option<&[u8]> {
        let number = match GroupKey::OF_CGROUP.iter().position(|known| *known == by) {
            Some(at) => key.of_cgroup[at],
            None => key.env,
        };
        self.comms.name(number)
    }

    /// A thread by its key.
    pub fn task(&self, key: &Key) -> Option<&Task> {
        self.tasks.get(&key.task).or_else(|| self.processes.get(&key.process)).map(|task| &**task)
    }

    /// The parts of `key` as text, in the order of [`Self::by`].
    pub fn texts(&self, key: &Key, words: &Words<'_>) -> Vec<String> {
        self.by.iter().map(|by| self.text(*by, key, words)).collect()
    }

    fn text(&self, by: GroupKey, key: &Key, words: &Words<'_>) -> String {
        match by {
            GroupKey::Comm => words.escaped(self.comm(key.comm)),
            GroupKey::Tid => match self.tasks.get(&key.task) {
                Some(task) => task_text(task),
                None => "?".into(),
            },
            GroupKey::Pid => match self.processes.get(&key.process) {
                Some(task) => format!("{}[{}]", words.escaped(&task.comm), task.pid),
                None => "?".into(),
            },
            GroupKey::State => key.state.to_owned(),
            GroupKey::Syscall => words.place(key.place),
            GroupKey::File if key.file == NO_FILE => "-".into(),
            GroupKey::File => words.names.name(key.file).map_or_else(|| "?".into(), |name| words.escaped(name)),
            GroupKey::Cgroup => match words.session.cgroup_path(key.cgroup) {
                Some(path) => words.escaped(path),
                None if key.cgroup == 0 => "?".into(),
                None => format!("cgroup {}", key.cgroup),
            },
            GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job | GroupKey::Env => {
                match self.named(by, key) {
                    Some([]) => "-".into(),
                    name => name.map_or_else(|| "?".into(), |name| self.of_cgroup.text(by, name)),
                }
            }
            GroupKey::Uid => systape_events::values::words::user(words.session, key.uid),
            GroupKey::Cpu if key.cpu != CPU_NONE => key.cpu.to_string(),
            // no keys of intervals
            _ => "?".into(),
        }
    }

    /// The columns of the keys, in their order.
    pub fn columns(&self) -> Vec<ColumnDef> {
        by::columns(&self.by)
    }

    /// Sets the columns of [`Self::columns`].
    pub fn fill(&self, row: &mut Row<'_>, key: &Key, words: &Words<'_>) {
        by::fill(row, &self.by, |by, name| self.cell(by, name, key, words));
    }

    fn cell(&self, by: GroupKey, name: &str, key: &Key, words: &Words<'_>) -> Cell<'static> {
        let owned = |bytes: Option<&[u8]>| Cell::from(bytes.map(<[u8]>::to_vec));
        let task = match by {
            GroupKey::Tid => self.tasks.get(&key.task),
            GroupKey::Pid => self.processes.get(&key.process),
            _ => None,
        };
        match (by, name) {
            (GroupKey::Tid | GroupKey::Pid, "pid") => task.map(|t| t.pid).into(),
            (GroupKey::Tid | GroupKey::Pid, "tid") => task.map(|t| t.tid).into(),
            (GroupKey::Tid | GroupKey::Pid, "upid") => task.map(|t| t.upid).into(),
            (GroupKey::Tid | GroupKey::Pid, "utid") => task.map(|t| t.utid).into(),
            (GroupKey::Tid | GroupKey::Pid, _) => task.map(|t| t.comm.clone()).into(),
            (GroupKey::Comm, _) => self.comm(key.comm).to_vec().into(),
            (GroupKey::State, _) => key.state.into(),
            (GroupKey::Syscall, "abi") => match key.place {
                Place::Call(call) => words.book.get(call).abi.as_str().into(),
                _ => Cell::Null,
            },
            (GroupKey::Syscall, _) => words.place(key.place).into(),
            // no path is empty
            (GroupKey::File, _) if key.file == NO_FILE => "".into(),
            (GroupKey::File, _) => owned(words.names.name(key.file)),
            (GroupKey::Cgroup, "cgroup") => owned(words.session.cgroup_path(key.cgroup)),
            (GroupKey::Cgroup, _) => Some(key.cgroup).filter(|id| *id != 0).into(),
            (GroupKey::Container | GroupKey::Pod, name) if !by::is_value(by, name) => {
                owned(self.named(by, key).and_then(|id| self.of_cgroup.fact((by, name), id)))
            }
            (GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job | GroupKey::Env, _) => {
                owned(self.named(by, key))
            }
            (GroupKey::Uid, _) => user(key.uid).into(),
            (GroupKey::Cpu, _) => Some(key.cpu).filter(|cpu| *cpu != CPU_NONE).into(),
            _ => Cell::Null,
        }
    }
}

/// Sets `pid tid upid utid comm` of a thread.
pub fn set_thread<'a>(row: &mut Row<'a>, task: &'a Task) {
    row.set("pid", task.pid).set("tid", task.tid).set("upid", task.upid).set("utid", task.utid);
    row.set("comm", &task.comm);
}

/// `app[101/100]`, `app[100]`: thread and process as perf sched writes them.
pub fn task_text(task: &Task) -> String {
    let mut comm = String::new();
    systape_abi::escape(&task.comm, &mut comm);
    if task.tid == task.pid { format!("{comm}[{}]", task.tid) } else { format!("{comm}[{}/{}]", task.tid, task.pid) }
}

/// The call of a thread in `state`.
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

/// Resolves numbers to words.
#[derive(Debug)]
pub struct Words<'a> {
    /// The tape.
    pub session: &'a Session,
    /// Names of calls.
    pub book: &'a CallBook<'a>,
    /// Names of files.
    pub names: &'a Names,
}

impl Words<'_> {
    /// Text for a terminal.
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
        && systape_events::families::in_session(session, systape_format::model::Family::Syscall)
}

/// Whether an interval counts as off the CPU for `offcpu`: asleep or stopped; `waiting`: also waiting for a CPU, or for the quota of a
/// cgroup.
pub fn off_cpu(state: State, waiting: bool) -> bool {
    match state {
        State::Sleeping(letter) => !matches!(letter, b'Z' | b'X'),
        State::Waiting(_) | State::Throttled => waiting,
        State::Running | State::Unknown => false,
    }
}
