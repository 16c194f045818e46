//! What I/Os are added up by.

use anyhow::{Result, bail};
use serde_json::Value;
use systape_format::model::{Session, UID_UNKNOWN};

use super::flags::Op;
use super::io::{Io, cause_name};
use crate::devices::{Dev, Devices, numbers};
use crate::render::record::Record;
use crate::words::escaped;

/// One of the things I/Os can be added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Process it is blamed on.
    Pid,
    /// Thread it is blamed on.
    Tid,
    /// Name of that thread.
    Comm,
    /// User of that thread.
    Uid,
    /// cgroup it is charged to.
    Cgroup,
    /// Disk.
    Disk,
    /// How it is known whom to blame.
    Cause,
    /// Operation.
    Op,
}

impl Key {
    /// Names that `--by` knows; `task` is the process.
    const NAMES: [(&'static str, Self); 9] = [
        ("task", Self::Pid),
        ("pid", Self::Pid),
        ("tid", Self::Tid),
        ("comm", Self::Comm),
        ("uid", Self::Uid),
        ("cgroup", Self::Cgroup),
        ("disk", Self::Disk),
        ("cause", Self::Cause),
        ("op", Self::Op),
    ];
}

/// The keys `--by` names, each once; `otherwise` when it names none.
pub fn keys(by: &[String], otherwise: &[Key]) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    for word in by {
        let Some((_, key)) = Key::NAMES.iter().find(|(name, _)| name == word) else {
            let known: Vec<_> = Key::NAMES.iter().map(|(name, _)| *name).collect();
            bail!("--by {word}: block I/Os are added up by {}", known.join(", "));
        };
        if !keys.contains(key) {
            keys.push(*key);
        }
    }
    Ok(if keys.is_empty() { otherwise.to_vec() } else { keys })
}

/// The value of a key of one I/O; not known is a value of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// (unique in the tape or 0, pid or tid).
    Task(Option<(u32, u32)>),
    /// Name of a thread.
    Comm(Option<Vec<u8>>),
    /// User.
    Uid(Option<u32>),
    /// cgroup id; 0 = not known.
    Cgroup(u64),
    /// Disk.
    Disk(Dev),
    /// Why it is blamed.
    Cause(&'static str),
    /// Operation.
    Op(Op),
}

/// The value of `key` of `io`.
pub fn part(key: Key, io: &Io<'_>) -> Part {
    match key {
        Key::Pid => Part::Task(io.owner.map(|task| (task.upid, task.pid))),
        Key::Tid => Part::Task(io.owner.map(|task| (task.utid, task.tid))),
        Key::Comm => Part::Comm(io.owner.map(|task| task.comm.clone())),
        Key::Uid => Part::Uid(io.owner.map(|task| task.uid).filter(|uid| *uid != UID_UNKNOWN)),
        Key::Cgroup => Part::Cgroup(io.io.cgroup_id),
        Key::Disk => Part::Disk(io.io.dev),
        Key::Cause => Part::Cause(cause_name(io.io.cause)),
        Key::Op => Part::Op(Op::of_io(io.io)),
    }
}

/// Heading and width of the column of `key`; those of tasks have the name in front.
pub fn column(key: Key) -> (&'static str, usize) {
    match key {
        Key::Pid => ("COMM            PID", 23),
        Key::Tid => ("COMM            TID", 23),
        Key::Comm => ("COMM", 15),
        Key::Uid => ("USER", 12),
        Key::Cgroup => ("CGROUP", 24),
        Key::Disk => ("DISK", 9),
        Key::Cause => ("CAUSE", 8),
        Key::Op => ("OP", 12),
    }
}

/// A value as text; `comm` is the name of a task.
pub fn text(part: &Part, comm: &[u8], session: &Session, devices: &Devices) -> String {
    match part {
        Part::Task(Some((_, id))) => format!("{:<15} {id}", escaped(comm)),
        Part::Task(None) => format!("{:<15} ?", "?"),
        Part::Comm(comm) => comm.as_deref().map_or_else(|| "?".to_owned(), escaped),
        Part::Uid(uid) => uid.map_or_else(|| "?".to_owned(), |uid| user(session, uid)),
        Part::Cgroup(0) => "?".to_owned(),
        Part::Cgroup(id) => session.cgroup_path(*id).map_or_else(|| id.to_string(), escaped),
        Part::Disk(dev) => devices.name(*dev),
        Part::Cause(cause) => (*cause).to_owned(),
        Part::Op(op) => op.name(),
    }
}

/// Name of a user, or its number.
fn user(session: &Session, uid: u32) -> String {
    session.users.iter().find(|(known, _)| *known == uid).map_or_else(|| uid.to_string(), |(_, name)| escaped(name))
}

/// Adds a value's fields to `record`.
pub fn fields(record: &mut Record, key: Key, part: &Part, comm: &[u8], session: &Session, devices: &Devices) {
    match part {
        Part::Task(task) => {
            record.set(if key == Key::Pid { "pid" } else { "tid" }, task.map(|(_, id)| id));
            let unique = task.map(|(unique, _)| unique).filter(|unique| *unique != 0);
            record.set(if key == Key::Pid { "upid" } else { "utid" }, unique);
            record.text("comm", task.map(|_| comm));
        }
        Part::Comm(comm) => {
            record.text("comm", comm.as_deref());
        }
        Part::Uid(uid) => {
            record.set("uid", *uid);
        }
        Part::Cgroup(id) => {
            record
                .text("cgroup", session.cgroup_path(*id))
                .set("cgroup_id", if *id == 0 { Value::Null } else { id.to_string().into() });
        }
        Part::Disk(dev) => {
            let (major, minor) = numbers(*dev);
            record.set("disk", devices.name(*dev)).set("major", major).set("minor", minor);
        }
        Part::Cause(cause) => {
            record.set("cause", *cause);
        }
        Part::Op(op) => {
            record.set("op", op.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by() {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(keys(&[], &[Key::Disk]).unwrap(), [Key::Disk]);
        assert_eq!(keys(&words("disk,op,disk,task,pid"), &[]).unwrap(), [Key::Disk, Key::Op, Key::Pid]);
        assert!(keys(&words("state"), &[]).unwrap_err().to_string().contains("cgroup"));
    }
}
