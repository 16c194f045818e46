//! What I/Os are added up by.

use anyhow::{Result, bail};
use systape_format::model::{Session, UID_UNKNOWN};
use systape_format::table::ColumnDef;

use super::flags::Op;
use super::io::{Io, cause_name};
use crate::devices::{Dev, Devices, numbers};
use crate::render::keys::columns;
use crate::render::row::{Row, some};
use crate::words::escaped;

systape_format::tables! {
    /// Keys of `--by` of block I/Os, each where it was named.
    pub BY = "block_by" {
        pid: Int "process they are blamed on; null: nobody known"
        upid: Int "the same, unique in the tape"
        tid: Int "thread they are blamed on; null: nobody known"
        utid: Int "the same, unique in the tape"
        comm: Str [Comm] "name of the thread they are blamed on; null: nobody known"
        uid: Int "its real user; null: not known"
        cgroup: Str [Path] "path of the cgroup they are charged to; null: not known"
        cgroup_id: Wide "its number; null: not known"
        disk: Word "the whole disk"
        major: Int "the disk's number, first part"
        minor: Int "second part"
        cause: Word "how it is known whom to blame: `direct dirtier cgroup kthread flush unknown`"
        op: Word "operation"
    }
}

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

/// The columns of [`BY`] of `keys`, in their order; a name that two keys have stands once.
pub fn key_columns(keys: &[Key]) -> Vec<ColumnDef> {
    let mut names: Vec<&str> = Vec::new();
    for key in keys {
        let of_key: &[&str] = match key {
            Key::Pid => &["pid", "upid", "comm"],
            Key::Tid => &["tid", "utid", "comm"],
            Key::Comm => &["comm"],
            Key::Uid => &["uid"],
            Key::Cgroup => &["cgroup", "cgroup_id"],
            Key::Disk => &["disk", "major", "minor"],
            Key::Cause => &["cause"],
            Key::Op => &["op"],
        };
        names.extend(of_key.iter().filter(|name| **name != "comm"));
        if of_key.contains(&"comm") && !names.contains(&"comm") {
            names.push("comm");
        }
    }
    columns(&BY, names)
}

/// Sets the columns of [`key_columns`]; `comm` is the name of a task.
pub fn fill<'a>(
    row: &mut Row<'a>,
    keys: &[Key],
    parts: &'a [Part],
    comm: &'a [u8],
    session: &'a Session,
    devices: &Devices,
) {
    let mut named = false;
    for (key, part) in keys.iter().zip(parts) {
        match part {
            Part::Task(task) => {
                let unique = task.and_then(|(unique, _)| some(unique));
                let (id, unique_id) = if *key == Key::Pid { ("pid", "upid") } else { ("tid", "utid") };
                row.set(id, task.map(|(_, id)| id)).set(unique_id, unique);
                if !std::mem::replace(&mut named, true) {
                    row.set("comm", task.map(|_| comm));
                }
            }
            Part::Comm(comm) => {
                if !std::mem::replace(&mut named, true) {
                    row.set("comm", comm.as_deref());
                }
            }
            Part::Uid(uid) => {
                row.set("uid", *uid);
            }
            Part::Cgroup(id) => {
                row.set("cgroup", session.cgroup_path(*id)).set("cgroup_id", Some(*id).filter(|id| *id != 0));
            }
            Part::Disk(dev) => {
                let (major, minor) = numbers(*dev);
                row.set("disk", devices.name(*dev)).set("major", major).set("minor", minor);
            }
            Part::Cause(cause) => {
                row.set("cause", *cause);
            }
            Part::Op(op) => {
                row.set("op", op.name());
            }
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
        let names: Vec<_> = key_columns(&[Key::Comm, Key::Tid, Key::Pid]).into_iter().map(|c| c.name).collect();
        assert_eq!(names, ["comm", "tid", "utid", "pid", "upid"]);
        assert!(keys(&words("state"), &[]).unwrap_err().to_string().contains("cgroup"));
    }
}
