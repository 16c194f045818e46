//! The contents of an event, independent of its printed form: time, CPU, task, named values.

use systape_format::model::{
    BlockIo, Dict, FORK_THREAD, NetState, ProcessEvent, ProcessKind, SIGNAL_GROUP, Sample, Session, SignalEvent,
    SignalKind, Switch, Task, UID_UNKNOWN, UringOp, Wakeup,
};

use super::kind::Kind;
use crate::derive::block::files::Files;
use crate::derive::block::flags::letters;
use crate::derive::block::io::Io;
use crate::derive::identities::{FileNames, NUMBERS};
use crate::derive::net::words::{address, protocol_name};
use systape_abi::{iouring_op_name, tcp};
use systape_events::values::devices::{Devices, numbers};
use systape_events::values::words::NET_SOFTIRQ;
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::{CPU, TableRows};

/// A value of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(i64),
    /// A number that may exceed 53 bits.
    Wide(u64),
    /// A pattern or address.
    Hex(u64),
    /// Bytes of any kind.
    Bytes(&'a [u8]),
    /// A word of systape.
    Word(String),
    /// A thread; with its name in text.
    Thread(&'a Task),
    /// Not known.
    Unknown,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// A kind known to this program.
    Kind(Kind),
    /// A row of a table that the tape defines.
    Table(&'a TableDef),
}

impl<'a> Which<'a> {
    /// Name of the event, `family:event`.
    pub fn name(self) -> &'a str {
        match self {
            Self::Kind(kind) => kind.name(),
            Self::Table(def) => &def.name,
        }
    }
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// Kind of the event.
    pub which: Which<'a>,
    /// When, ns of CLOCK_MONOTONIC.
    pub ts: u64,
    /// CPU of the event; None = not recorded.
    pub cpu: Option<u32>,
    /// The task of its line; None = no task, or not known.
    pub task: Option<&'a Task>,
    /// The other task it is about.
    pub other: Option<&'a Task>,
    /// Values of the event.
    pub fields: Vec<(&'a str, Value<'a>)>,
}

/// Makes events of one segment into [`Event`]s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Describer<'a> {
    /// The tape.
    pub session: &'a Session,
    /// Devices of the tape.
    pub devices: &'a Devices,
    /// Files of the tape.
    pub files: &'a FileNames,
    /// The segment's tasks.
    pub dict: &'a Dict,
}

fn thread<'a>(task: Option<&'a Task>) -> Value<'a> {
    task.map_or(Value::Unknown, Value::Thread)
}

fn comm<'a>(task: Option<&'a Task>) -> Value<'a> {
    task.map_or(Value::Unknown, |task| Value::Bytes(&task.comm))
}

fn number(value: impl Into<i64>) -> Value<'static> {
    Value::Number(value.into())
}

impl<'a> Describer<'a> {
    fn task(&self, index: u32) -> Option<&'a Task> {
        self.dict.tasks.get(index as usize)
    }

    /// A switch: the line of the task that ran.
    pub(crate) fn switch(&self, e: &Switch) -> Event<'a> {
        let (prev, next) = (self.task(e.prev), self.task(e.next));
        // perf's `R+`: preempted
        let state = format!("{}{}", char::from(e.prev_letter()), if e.preempted { "+" } else { "" });
        let mut fields = vec![
            ("prev_comm", comm(prev)),
            ("prev_pid", thread(prev)),
            ("prev_state", Value::Word(state)),
            ("next_comm", comm(next)),
            ("next_pid", thread(next)),
        ];
        if let Some(came) = e.came {
            let at_most = if came.at_most { "<=" } else { "" };
            fields.push(("prev_came", Value::Word(format!("unseen {at_most}{} ns before", came.ns))));
        }
        Event { which: Which::Kind(Kind::Switch), ts: e.ts, cpu: Some(e.cpu), task: prev, other: next, fields }
    }

    /// A wake-up: the line of the waker, without a task if that was an interrupt.
    pub(crate) fn wakeup(&self, e: &Wakeup) -> Event<'a> {
        let wakee = self.task(e.wakee);
        let kind = if e.new { Kind::WakeupNew } else { Kind::Waking };
        let mut fields = vec![("comm", comm(wakee)), ("pid", thread(wakee)), ("target_cpu", number(e.target_cpu))];
        if e.softirq {
            fields.push(("via", Value::Word(NET_SOFTIRQ.into())));
        }
        let waker = e.waker.and_then(|waker| self.task(waker));
        Event { which: Which::Kind(kind), ts: e.ts, cpu: Some(e.cpu), task: waker, other: wakee, fields }
    }

    /// A CPU sample: the line of the task that ran.
    pub(crate) fn sample(&self, e: &Sample) -> Event<'a> {
        let mode = if e.kernel { "kernel" } else { "user" };
        let fields = vec![("mode", Value::Word(mode.to_owned()))];
        let task = self.task(e.task);
        Event { which: Which::Kind(Kind::Sample), ts: e.ts, cpu: Some(e.cpu), task, other: None, fields }
    }

    /// An event of process life; a fork is the line of the parent.
    pub(crate) fn process(&self, e: &'a ProcessEvent) -> Event<'a> {
        let (task, parent) = (self.task(e.task), self.task(e.parent));
        let whose = if e.kind == ProcessKind::Fork { parent } else { task };
        let mut fields = vec![];
        match e.kind {
            ProcessKind::Fork => fields.extend([
                ("comm", comm(parent)),
                ("pid", thread(parent)),
                ("child_comm", comm(task)),
                ("child_pid", thread(task)),
                ("thread", number(e.flags & FORK_THREAD)),
            ]),
            ProcessKind::Exec => fields.extend([
                ("filename", Value::Bytes(&e.path)),
                ("pid", thread(task)),
                ("old_pid", if e.old_tid == 0 { thread(task) } else { number(e.old_tid) }),
            ]),
            ProcessKind::Exit => fields.extend([
                ("comm", comm(task)),
                ("pid", thread(task)),
                ("exit_code", number(e.exit_code)),
                ("group_dead", number(u32::from(e.group_dead))),
            ]),
            ProcessKind::Rename => fields.extend([
                ("pid", thread(task)),
                ("oldcomm", comm(task).not(&e.comm)),
                ("newcomm", Value::Bytes(&e.comm)),
            ]),
            ProcessKind::Cred => {
                let uid = task.map(|task| task.uid).filter(|uid| *uid != UID_UNKNOWN);
                fields.extend([("pid", thread(task)), ("uid", uid.map_or(Value::Unknown, number))]);
            }
            ProcessKind::Cgroup => {
                let path = task.and_then(|task| self.session.cgroup_path(task.cgroup_id));
                fields.extend([("dst_path", path.map_or(Value::Unknown, Value::Bytes)), ("pid", thread(task))]);
            }
            ProcessKind::Target => {
                let target = task.is_some_and(|task| task.recorded.anything());
                fields.extend([("comm", comm(task)), ("pid", thread(task)), ("target", number(u32::from(target)))]);
            }
        }
        Event { which: Which::Kind(Kind::of_process(e.kind)), ts: e.ts, cpu: None, task: whose, other: task, fields }
    }

    /// A signal: sent, the line of the running task; taken, of the target.
    pub(crate) fn signal(&self, e: &SignalEvent) -> Event<'a> {
        let (target, sender) = (self.task(e.target), e.sender.and_then(|sender| self.task(sender)));
        let name = systape_abi::signal_name(e.sig).into_owned();
        let mut fields = vec![];
        match e.kind {
            SignalKind::Generate => fields.extend([
                ("sig", Value::Word(name)),
                ("errno", number(e.errno)),
                ("code", number(e.code)),
                ("comm", comm(target)),
                ("pid", thread(target)),
                ("group", number(u32::from(e.flags & SIGNAL_GROUP != 0))),
                ("result", number(e.result)),
            ]),
            SignalKind::Deliver => fields.extend([
                ("sig", Value::Word(name)),
                ("errno", number(e.errno)),
                ("code", number(e.code)),
                ("sa_handler", Value::Hex(e.ip)),
            ]),
            SignalKind::OomVictim => fields.extend([
                ("comm", comm(target)),
                ("pid", thread(target)),
                ("total_vm", Value::Wide(e.oom.total_vm)),
                ("anon_rss", Value::Wide(e.oom.anon)),
                ("file_rss", Value::Wide(e.oom.file)),
                ("shmem_rss", Value::Wide(e.oom.shmem)),
            ]),
        }
        let task = if e.kind == SignalKind::Deliver { target } else { sender };
        Event { which: Which::Kind(Kind::of_signal(e.kind)), ts: e.ts, cpu: None, task, other: target, fields }
    }

    /// A block I/O, with what tables say of those of its segment: the line of its owner.
    pub(crate) fn block<'b>(&self, e: &'b BlockIo, files: &'b Files) -> Event<'b>
    where
        'a: 'b,
    {
        let io = Io::new(e, self.dict).with(files);
        let errno = systape_abi::errno_name(e.errno).filter(|_| e.errno != 0);
        let fields = vec![
            ("dev", Value::Word(self.devices.name(e.dev))),
            ("sector", Value::Wide(e.sector)),
            ("nr_sector", number(e.bytes / 512)),
            ("rwbs", Value::Word(letters(e.flags))),
            ("error", errno.map_or_else(|| number(e.errno), |name| Value::Word(name.to_owned()))),
        ];
        let (kind, ts) = (Kind::of_block(e), e.complete);
        Event { which: Which::Kind(kind), ts, cpu: None, task: io.owner, other: io.origin, fields }
    }

    /// A change of a socket's state.
    pub(crate) fn net(&self, e: &NetState) -> Event<'a> {
        let text = |bytes: &[u8]| address(bytes).map_or(Value::Unknown, Value::Word);
        // 0 is no port of a connection or a listener: it has none yet, or it was taken out
        let local = |port: u16| if port == 0 { Value::Unknown } else { number(port) };
        let mut fields = vec![
            ("socket", Value::Wide(e.socket)),
            ("oldstate", Value::Word(tcp::state_name(e.old_state))),
            ("newstate", Value::Word(tcp::state_name(e.new_state))),
            ("sport", local(e.sport)),
            ("dport", number(e.dport)),
            ("protocol", Value::Word(protocol_name(e.protocol))),
            ("saddr", text(&e.saddr)),
            ("daddr", text(&e.daddr)),
        ];
        if e.sender.is_some() {
            fields.push(("via", Value::Word(NET_SOFTIRQ.into())));
        }
        let task = e.task.or(e.sender).and_then(|task| self.task(task));
        Event { which: Which::Kind(Kind::SockState), ts: e.ts, cpu: None, task, other: None, fields }
    }

    /// A row of a table that the tape defines: the line of the task in its first column of tasks.
    pub(crate) fn row(&self, table: &'a TableRows, at: usize) -> Event<'a> {
        let columns = || table.def.columns.iter().skip(1).zip(&table.columns);
        let of = |code: u64| u32::try_from(code).ok()?.checked_sub(1).and_then(|index| self.task(index));
        let value = |(number, (column, values)): (usize, (&'a ColumnDef, &'a Vec<u64>))| {
            let raw = values.get(at).copied().unwrap_or(0);
            let value = match column.ty {
                ty if ty.is_number() && table.is_unread(at, number + 1) => Value::Unknown,
                Type::Str => table.string(raw).map_or(Value::Unknown, Value::Bytes),
                Type::Task => thread(of(raw)),
                // what its kind of column promises in JSON: a number
                Type::Int | Type::Duration | Type::Count | Type::Bytes => Value::Number(raw.cast_signed()),
                Type::Hex => Value::Hex(raw),
                Type::Flag => Value::Number(i64::from(raw != 0)),
                _ => Value::Wide(raw),
            };
            (&*column.name, value)
        };
        let ts = table.ts.get(at).copied().unwrap_or(0);
        let inode = NUMBERS.map(|name| table.column(name).and_then(|values| values.get(at)).copied());
        let file = if let [Some(device), Some(inode)] = inode {
            let name = self.files.at(device, inode, ts).map(Value::Bytes);
            let (major, minor) = numbers(device as u32);
            Some(("file", name.unwrap_or_else(|| Value::Word(format!("{major}:{minor}:{inode}")))))
        } else {
            None
        };
        let mut tasks = columns().filter(|(column, _)| column.ty == Type::Task);
        let first = tasks.next().map(|(column, values)| (&column.name, of(values.get(at).copied().unwrap_or(0))));
        let whose = first.as_ref().map(|(name, _)| *name);
        let other = tasks.next().and_then(|(_, values)| of(values.get(at).copied().unwrap_or(0)));
        Event {
            which: Which::Table(&table.def),
            ts,
            cpu: table.column(CPU).and_then(|cpus| u32::try_from(*cpus.get(at)?).ok()),
            task: first.and_then(|(_, task)| task),
            other,
            // the line says whose it is and where, its stack stands below it
            fields: columns()
                .enumerate()
                .filter(|(_, (column, _))| {
                    Some(&column.name) != whose
                        && column.name != CPU
                        && !matches!(column.ty, Type::Stack | Type::Unread)
                })
                .map(value)
                .chain(file)
                .collect(),
        }
    }

    /// An io_uring operation.
    pub(crate) fn uring(&self, e: &UringOp) -> Event<'a> {
        let fields = vec![("opcode", Value::Word(iouring_op_name(e.op)))];
        Event { which: Which::Kind(Kind::Uring), ts: e.ts, cpu: None, task: self.task(e.task), other: None, fields }
    }
}

impl<'a> Value<'a> {
    /// Unknown for `bytes`: the tape has only one name then.
    fn not(self, bytes: &[u8]) -> Self {
        if self == Value::Bytes(bytes) { Value::Unknown } else { self }
    }
}
