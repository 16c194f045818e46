//! Keys for sums of I/Os.

use systape_format::model::{Session, Task, UID_UNKNOWN};

use super::files::Held;
use super::flags::Op;
use super::io::{Io, cause_name};
use crate::render::by::is_value;
use crate::render::cell::Cell;
use crate::render::row::some;
use crate::table::group::by::By;
use crate::table::group::env;
use crate::table::group::of_cgroup::OfCgroup;
use crate::table::group::value::Value;
use crate::values::devices::{Dev, Devices, numbers};
use crate::values::words::{escaped, user};

/// The keys that block I/Os have.
pub(crate) const KNOWN: [By; 14] = [
    By::Pid,
    By::Tid,
    By::Comm,
    By::Uid,
    By::Cgroup,
    By::Container,
    By::Unit,
    By::Pod,
    By::Job,
    By::Env,
    By::Disk,
    By::File,
    By::Cause,
    By::Op,
];

/// The value of a key of one I/O; "not known" is a value too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Part {
    /// (unique in the tape or 0, pid or tid).
    Task(Option<(u32, u32)>),
    /// Name of a thread.
    Comm(Option<Vec<u8>>),
    /// User.
    Uid(Option<u32>),
    /// cgroup id; 0 = not known.
    Cgroup(u64),
    /// What the cgroup belongs to, or variables of the environment.
    Named(Value),
    /// Disk.
    Disk(Dev),
    /// The file, or what else it reads or writes.
    File(Held),
    /// How the owner is known.
    Cause(&'static str),
    /// Operation.
    Op(Op),
}

/// Names for the values of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    /// Of users and cgroups.
    pub session: &'a Session,
    /// Of disks.
    pub devices: &'a Devices,
    /// Of containers and pods.
    pub of_cgroup: &'a OfCgroup,
}

/// The value of `key`, one of [`KNOWN`], of `io`; `of_cgroup` knows what cgroups belong to if a key needs it.
pub(crate) fn part(key: By, io: &Io<'_>, of_cgroup: &OfCgroup) -> Part {
    match key {
        By::Pid => Part::Task(io.owner.map(|task| (task.upid, task.pid))),
        By::Tid => Part::Task(io.owner.map(|task| (task.utid, task.tid))),
        By::Comm => Part::Comm(io.owner.map(|task| task.comm.clone())),
        By::Uid => Part::Uid(io.owner.map(|task| task.uid).filter(|uid| *uid != UID_UNKNOWN)),
        By::Cgroup => Part::Cgroup(io.io.cgroup_id),
        By::Container | By::Unit | By::Pod | By::Job => {
            Part::Named(of_cgroup.value(key, &Value::Number(io.io.cgroup_id)))
        }
        By::Env => Part::Named(io.owner.map_or(Value::Unknown, env::value)),
        By::Disk => Part::Disk(io.io.dev),
        By::Op => Part::Op(Op::of_io(io.io)),
        By::File => Part::File(io.held()),
        _ => Part::Cause(cause_name(io.io.cause)),
    }
}

/// Heading and width of the column of `key`; keys of tasks are preceded by the name.
pub(crate) fn column(key: By) -> (&'static str, usize) {
    match key {
        By::Pid => ("COMM            PID", 23),
        By::Tid => ("COMM            TID", 23),
        By::Comm => ("COMM", 15),
        By::Uid => ("USER", 12),
        By::Cgroup => ("CGROUP", 24),
        By::Container => ("CONTAINER", 24),
        By::Unit => ("UNIT", 24),
        By::Pod => ("POD", 36),
        By::Job => ("JOB", 16),
        By::Env => ("ENV", 24),
        By::Disk => ("DISK", 9),
        By::Op => ("OP", 12),
        By::File => ("FILE", 40),
        _ => ("CAUSE", 8),
    }
}

/// A value as text; `comm` is the name of a task.
pub(crate) fn text((by, part): (By, &Part), comm: &[u8], names: &Names<'_>) -> String {
    let Names { session, devices, of_cgroup } = names;
    match part {
        Part::Task(Some((_, id))) => format!("{:<15} {id}", escaped(comm)),
        Part::Task(None) => format!("{:<15} ?", "?"),
        Part::Comm(comm) => comm.as_deref().map_or_else(|| "?".to_owned(), escaped),
        Part::Uid(uid) => user(session, uid.unwrap_or(UID_UNKNOWN)),
        Part::Cgroup(0) => "?".to_owned(),
        Part::Cgroup(id) => session.cgroup_path(*id).map_or_else(|| id.to_string(), escaped),
        Part::Named(Value::Text(name)) => of_cgroup.text(by, name),
        Part::Named(Value::None) => "-".to_owned(),
        Part::Named(_) => "?".to_owned(),
        Part::Disk(dev) => devices.name(*dev),
        Part::File(held) => held.text(),
        Part::Cause(cause) => (*cause).to_owned(),
        Part::Op(op) => op.name(),
    }
}

/// A column of `by` with value `part`; `owner` is a task of it.
pub(crate) fn cell<'a>((by, name): (By, &str), part: &'a Part, owner: Option<&'a Task>, names: &Names<'a>) -> Cell<'a> {
    let Names { session, devices, of_cgroup } = *names;
    match part {
        Part::Task(None) => Cell::Null,
        Part::Task(Some((unique, id))) => match (by, name) {
            (By::Pid, "pid") | (By::Tid, "tid") => (*id).into(),
            (By::Pid, "upid") | (By::Tid, "utid") => some(*unique).into(),
            (_, "pid") => owner.map(|task| task.pid).into(),
            (_, "upid") => owner.and_then(|task| some(task.upid)).into(),
            _ => owner.map(|task| &task.comm).into(),
        },
        Part::Comm(comm) => comm.as_deref().into(),
        Part::Uid(uid) => (*uid).into(),
        Part::Cgroup(id) if name == "cgroup" => session.cgroup_path(*id).into(),
        Part::Cgroup(id) => Some(*id).filter(|id| *id != 0).into(),
        Part::Named(Value::Text(text)) if is_value(by, name) => (&**text).into(),
        Part::Named(Value::Text(text)) => of_cgroup.fact((by, name), text).into(),
        Part::Named(Value::None) if is_value(by, name) => "".into(),
        Part::Named(_) => Cell::Null,
        Part::Disk(dev) => match name {
            "major" => numbers(*dev).0.into(),
            "minor" => numbers(*dev).1.into(),
            _ => devices.name(*dev).into(),
        },
        Part::File(Held::Path(path, _)) => path.into(),
        Part::File(held) => held.text().into(),
        Part::Cause(cause) => (*cause).into(),
        Part::Op(op) => op.name().into(),
    }
}
