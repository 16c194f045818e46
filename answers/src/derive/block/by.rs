//! Keys for sums of I/Os.

use systape_format::model::{Session, Task, UID_UNKNOWN};

use super::files::IoTarget;
use super::flags::Op;
use super::io::{Io, cause_name};
use crate::render::by::is_value;
use crate::render::cell::Cell;
use crate::render::row::some;
use systape_events::group::by::GroupKey;
use systape_events::group::env;
use systape_events::group::of_cgroup::OfCgroup;
use systape_events::group::value::Value;
use systape_events::values::devices::{Dev, Devices, numbers};
use systape_events::values::words::{escaped, user};

/// The keys that block I/Os have.
pub const KNOWN: [GroupKey; 14] = [
    GroupKey::Pid,
    GroupKey::Tid,
    GroupKey::Comm,
    GroupKey::Uid,
    GroupKey::Cgroup,
    GroupKey::Container,
    GroupKey::Unit,
    GroupKey::Pod,
    GroupKey::Job,
    GroupKey::Env,
    GroupKey::Disk,
    GroupKey::File,
    GroupKey::Cause,
    GroupKey::Op,
];

/// The value of a key of one I/O; "not known" is a value too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// (unique in the tape or 0, pid or tid).
    Task(Option<(u32, u32)>),
    /// Name of a thread.
    Comm(Option<Vec<u8>>),
    /// User of the task.
    Uid(Option<u32>),
    /// cgroup id; 0 = not known.
    Cgroup(u64),
    /// What the cgroup belongs to, or variables of the environment.
    Named(Value),
    /// Disk of the I/O.
    Disk(Dev),
    /// The file, or what else it reads or writes.
    File(IoTarget),
    /// How the owner is known.
    Cause(&'static str),
    /// Operation of the I/O.
    Op(Op),
}

/// Names for the values of keys.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Session with the names of users and cgroups.
    pub session: &'a Session,
    /// Names of disks.
    pub devices: &'a Devices,
    /// Names of containers and pods.
    pub of_cgroup: &'a OfCgroup,
}

/// The value of `key`, one of [`KNOWN`], of `io`; `of_cgroup` knows what cgroups belong to if a key needs it.
pub fn part(key: GroupKey, io: &Io<'_>, of_cgroup: &OfCgroup) -> Part {
    match key {
        GroupKey::Pid => Part::Task(io.owner.map(|task| (task.upid, task.pid))),
        GroupKey::Tid => Part::Task(io.owner.map(|task| (task.utid, task.tid))),
        GroupKey::Comm => Part::Comm(io.owner.map(|task| task.comm.clone())),
        GroupKey::Uid => Part::Uid(io.owner.map(|task| task.uid).filter(|uid| *uid != UID_UNKNOWN)),
        GroupKey::Cgroup => Part::Cgroup(io.io.cgroup_id),
        GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job => {
            Part::Named(of_cgroup.value(key, &Value::Number(io.io.cgroup_id)))
        }
        GroupKey::Env => Part::Named(io.owner.map_or(Value::Unknown, env::value)),
        GroupKey::Disk => Part::Disk(io.io.dev),
        GroupKey::Op => Part::Op(Op::of_io(io.io)),
        GroupKey::File => Part::File(io.held()),
        _ => Part::Cause(cause_name(io.io.cause)),
    }
}

/// Heading of the column of `key`.
pub fn column(key: GroupKey) -> &'static str {
    match key {
        GroupKey::Pid => "process",
        GroupKey::Tid => "thread",
        GroupKey::Uid => "user",
        key => key.name(),
    }
}

/// A value as text; `comm` is the name of a task.
pub fn text((by, part): (GroupKey, &Part), comm: &[u8], names: &Names<'_>) -> String {
    let Names { session, devices, of_cgroup } = names;
    match part {
        Part::Task(Some((_, id))) => format!("{}[{id}]", escaped(comm)),
        Part::Task(None) => "?".to_owned(),
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
pub fn cell<'a>((by, name): (GroupKey, &str), part: &'a Part, owner: Option<&'a Task>, names: &Names<'a>) -> Cell<'a> {
    let Names { session, devices, of_cgroup } = *names;
    match part {
        Part::Task(None) => Cell::Null,
        Part::Task(Some((unique, id))) => match (by, name) {
            (GroupKey::Pid, "pid") | (GroupKey::Tid, "tid") => (*id).into(),
            (GroupKey::Pid, "upid") | (GroupKey::Tid, "utid") => some(*unique).into(),
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
        Part::File(IoTarget::Path(path, _)) => path.into(),
        Part::File(held) => held.text().into(),
        Part::Cause(cause) => (*cause).into(),
        Part::Op(op) => op.name().into(),
    }
}
