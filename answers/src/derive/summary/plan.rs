//! Keys of a summary: from a call to its [`Key`].

use std::sync::Arc;

use systape_abi::Abi;
use systape_format::model::{CPU_NONE, Call, CallState, ERRNO_ANY, LedgerRow, Session, Task, UID_UNKNOWN};

use super::mode::SummaryMode;
use systape_events::call_files::{NO_FILE, unseen};
use systape_events::calls::CallInfo;
use systape_events::filter::{TapeStart, failed};
use systape_events::group::by::GroupKey;
use systape_events::group::env;
use systape_events::group::of_cgroup::OfCgroup;
use systape_events::group::of_file;
use systape_events::group::value::{Key, Value};

/// Keys, and the index of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    keys: Vec<GroupKey>,
    owners: OfCgroup,
    /// The labels of the tape.
    labels: Option<Arc<[u8]>>,
    /// When the recording began.
    began: TapeStart,
    /// What [`GroupKey::Second`] counts.
    slices: Slices,
}

/// Equal stretches of time, from 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// Start of the first, CLOCK_MONOTONIC ns.
    pub from: u64,
    /// Length of each, ns, not 0.
    pub width: u64,
}

impl Slices {
    /// Start of one, CLOCK_MONOTONIC ns.
    pub fn start(self, slice: u64) -> u64 {
        self.from.saturating_add(slice.saturating_mul(self.width))
    }
}

/// The facts of a row, beside task and call, on which keys depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowPart {
    /// Index of the file's name + FD_FIRST, or one of the other values of a file; 0 if not needed.
    pub file: u32,
    /// The error it returned, 0: none.
    pub errno: u16,
    /// CPU it ended on.
    pub cpu: u32,
    /// The second of the recording in which it began; None: not known, or not needed.
    pub second: Option<u32>,
}

impl Plan {
    /// The keys of calls.
    pub const OF_CALLS: [GroupKey; 22] = GroupKey::of_task_and(&[
        GroupKey::Cpu,
        GroupKey::Syscall,
        GroupKey::Abi,
        GroupKey::File,
        GroupKey::Errno,
        GroupKey::Dir,
        GroupKey::Ext,
        GroupKey::Peer,
        GroupKey::Port,
        GroupKey::Second,
        GroupKey::Minute,
    ]);

    /// Keys that calls on files can have too.
    pub const KNOWN: [GroupKey; 15] =
        GroupKey::of_task_and(&[GroupKey::Cpu, GroupKey::Syscall, GroupKey::File, GroupKey::Errno]);

    /// Keys of `--by`. Threads are keyed by process too, because counted calls have only that.
    pub fn by(keys: &[GroupKey]) -> Self {
        let mut all = Vec::with_capacity(keys.len() + 1);
        for key in keys {
            if *key == GroupKey::Tid && !keys.contains(&GroupKey::Pid) {
                all.push(GroupKey::Pid);
            }
            all.push(*key);
        }
        Self {
            keys: all,
            owners: OfCgroup::default(),
            labels: None,
            began: TapeStart::default(),
            slices: Slices::default(),
        }
    }

    /// Plan with the same keys; what cgroups belong to, and when the recording began, is what `session` tells.
    pub fn naming(mut self, session: &Session) -> Self {
        self.owners = OfCgroup::of(session, &self.keys);
        self.began = TapeStart::of(session);
        self.slices = Slices { from: session.window_open, width: 1_000_000_000 };
        self.labels = (!session.labels.is_empty()).then(|| session.labels.join(&b' ').into());
        self
    }

    /// Plan with the number of a slice instead of that of a second.
    pub fn in_slices(self, slices: Slices) -> Self {
        Self { slices, ..self }
    }

    /// Whether a key depends on the cgroup.
    pub fn by_cgroup(&self) -> bool {
        self.has(GroupKey::Cgroup) || GroupKey::OF_CGROUP.iter().any(|by| self.has(*by))
    }

    /// What cgroups belong to, if a key needs it.
    pub fn of_cgroup(&self) -> &OfCgroup {
        &self.owners
    }

    fn labels(&self) -> Value {
        self.labels.clone().map_or(Value::None, Value::Text)
    }

    /// Keys of `--summary-mode`, the syscall last.
    pub fn mode(mode: SummaryMode) -> Self {
        Self::by(match mode {
            SummaryMode::Thread => &[GroupKey::Tid, GroupKey::Syscall],
            SummaryMode::Process => &[GroupKey::Pid, GroupKey::Syscall],
            SummaryMode::Cgroup => &[GroupKey::Cgroup, GroupKey::Syscall],
            SummaryMode::Total => &[GroupKey::Syscall],
        })
    }

    /// The keys, in their order.
    pub fn keys(&self) -> &[GroupKey] {
        &self.keys
    }

    /// The index of `by`.
    pub fn place(&self, by: GroupKey) -> Option<usize> {
        self.keys.iter().position(|key| *key == by)
    }

    /// Whether it is a key.
    pub fn has(&self, by: GroupKey) -> bool {
        self.keys.contains(&by)
    }

    /// Whether a key depends on the file.
    pub fn by_file(&self) -> bool {
        self.has(GroupKey::File) || GroupKey::OF_FILE.iter().any(|by| self.has(*by))
    }

    /// Whether a key depends on when the call began.
    pub fn by_time(&self) -> bool {
        GroupKey::OF_TIME.iter().any(|by| self.has(*by))
    }

    /// Whether a key depends on more than task and call, or on a part of the call.
    pub fn by_row(&self) -> bool {
        self.by_file()
            || self.by_time()
            || [GroupKey::Errno, GroupKey::Cpu, GroupKey::Abi].into_iter().any(|by| self.has(by))
    }

    /// The key of the calls `call` of `task`, without the parts that depend on the row.
    pub fn key(&self, task: &Task, call: Call) -> Key {
        let value = |by: &GroupKey| match by {
            GroupKey::Pid => Value::process(task),
            GroupKey::Tid => Value::thread(task),
            GroupKey::Comm => Value::Text(task.comm.as_slice().into()),
            GroupKey::Uid if task.uid == UID_UNKNOWN => Value::Unknown,
            GroupKey::Uid => Value::Number(task.uid.into()),
            GroupKey::Cgroup => cgroup(task),
            GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job => {
                self.owners.value(*by, &cgroup(task))
            }
            GroupKey::Env => env::value(task),
            GroupKey::Label => self.labels(),
            GroupKey::Syscall => Value::Call(call),
            GroupKey::Abi => abi(call),
            _ => Value::Unknown,
        };
        self.keys.iter().map(value).collect()
    }

    /// Adds the parts that depend on the row to `key`.
    pub fn row(&self, key: &mut [Value], part: RowPart, file: impl Fn(u32) -> Value) {
        for (by, value) in self.keys.iter().zip(key) {
            match by {
                GroupKey::File => *value = file(part.file),
                GroupKey::Dir | GroupKey::Ext | GroupKey::Peer | GroupKey::Port => {
                    *value = of_file::value(*by, &file(part.file))
                }
                GroupKey::Errno => *value = errno(part.errno),
                GroupKey::Cpu => *value = cpu(part.cpu),
                GroupKey::Second => *value = part.second.map_or(Value::Unknown, |second| Value::Number(second.into())),
                GroupKey::Minute => {
                    *value = part.second.map_or(Value::Unknown, |second| Value::Number((second / 60).into()))
                }
                _ => {}
            }
        }
    }

    /// The facts of a row that decide; `second` is that of [`Self::second`].
    pub fn part(&self, (state, code): (CallState, u16), file: u32, cpu: u32, second: Option<u32>) -> RowPart {
        RowPart {
            file: if self.by_file() { file } else { 0 },
            errno: if self.has(GroupKey::Errno) { code_of(state, code) } else { 0 },
            cpu: if self.has(GroupKey::Cpu) { cpu } else { 0 },
            second,
        }
    }

    /// The second of the recording in which a call that is in `state` began at `start`; None: that is not known, or no key needs it.
    pub fn second(&self, state: CallState, start: u64) -> Option<u32> {
        if !self.by_time() || !self.began.is_known(state, start) {
            return None;
        }
        let since = start.checked_sub(self.slices.from)?;
        Some(u32::try_from(since.checked_div(self.slices.width)?).unwrap_or(u32::MAX))
    }

    /// The key of the calls of a row of the ledger: their process is known, or not even that. `cgroup` is that of all
    /// its threads in that time.
    pub fn counted(&self, row: &LedgerRow, task: Option<&Task>, info: &CallInfo, cgroup: Value) -> Key {
        let of_task = |value: fn(&Task) -> Value| task.map_or(Value::Unknown, value);
        let value = |by: &GroupKey| match by {
            GroupKey::Pid => of_task(Value::process),
            GroupKey::Uid => of_task(|task| match task.uid {
                UID_UNKNOWN => Value::Unknown,
                uid => Value::Number(uid.into()),
            }),
            GroupKey::Cgroup => cgroup.clone(),
            GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job => self.owners.value(*by, &cgroup),
            GroupKey::Env => of_task(env::value),
            GroupKey::Label => self.labels(),
            GroupKey::Cpu => cpu(row.cpu),
            GroupKey::Syscall => Value::Call(info.call),
            GroupKey::Abi => abi(info.call),
            GroupKey::File | GroupKey::Dir | GroupKey::Ext | GroupKey::Peer | GroupKey::Port
                if unseen(info) == NO_FILE =>
            {
                Value::None
            }
            GroupKey::Errno => errno(code_of(row.state, row.errno)),
            _ => Value::Unknown,
        };
        self.keys.iter().map(value).collect()
    }

    /// The part of `key` that identifies its task; None: there is none.
    pub fn whose(&self, key: &[Value]) -> Option<Key> {
        let of_task =
            |(by, value): (&GroupKey, &Value)| matches!(by, GroupKey::Pid | GroupKey::Tid).then(|| value.clone());
        let parts: Key = self.keys.iter().zip(key).filter_map(of_task).collect();
        (!parts.is_empty()).then_some(parts)
    }

    /// [`Self::whose`] of the keys of `task`.
    pub fn whose_is(&self, task: &Task) -> Option<Key> {
        let value = |by: &GroupKey| match by {
            GroupKey::Pid => Some(Value::process(task)),
            GroupKey::Tid => Some(Value::thread(task)),
            _ => None,
        };
        let parts: Key = self.keys.iter().filter_map(value).collect();
        (!parts.is_empty()).then_some(parts)
    }

    /// Whether `task` names a group rather than another task of it: a process has the name of its leader.
    pub fn leads(&self, task: &Task) -> bool {
        self.has(GroupKey::Tid) || task.tid == task.pid
    }
}

/// The ABI of `call`.
fn abi(call: Call) -> Value {
    Value::Text(Abi::from_raw(call.abi).as_str().as_bytes().into())
}

/// The cgroup of `task`; none: the tape does not have it.
pub(super) fn cgroup(task: &Task) -> Value {
    if task.cgroup_id == 0 { Value::None } else { Value::Number(task.cgroup_id) }
}

/// The error of a call, 0 = it failed with none; what did not return might have failed with any.
fn code_of(state: CallState, code: u16) -> u16 {
    match state.returned() {
        true if failed(state, code) => code,
        true => 0,
        false => ERRNO_ANY,
    }
}

fn errno(errno: u16) -> Value {
    match errno {
        0 => Value::None,
        ERRNO_ANY => Value::Unknown,
        errno => Value::Number(errno.into()),
    }
}

fn cpu(cpu: u32) -> Value {
    if cpu == CPU_NONE { Value::Unknown } else { Value::Number(cpu.into()) }
}
