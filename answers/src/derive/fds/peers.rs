//! Who holds the other end of a pipe or UNIX socket.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::Task;
use systape_format::sockets;

use super::file::File;
use crate::derive::processes::track::key;
use systape_events::values::order::InOrder as _;

/// An end, by which its holders are found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum End {
    /// Either end of a pipe or FIFO of that inode.
    Pipe(Box<[u8]>),
    /// A UNIX socket of that inode.
    Unix(Box<[u8]>),
}

/// What a file of that name is an end of, and what its other end is; None: it is no such file, or not connected.
fn ends(name: &[u8]) -> Option<(End, Option<End>)> {
    if let Some(inode) = name.strip_prefix(b"pipe:[").and_then(|rest| rest.strip_suffix(b"]")) {
        let pipe = End::Pipe(inode.into());
        return Some((pipe.clone(), Some(pipe)));
    }
    let (word, inside) = sockets::split(name)?;
    let (own, other) = sockets::ends(inside);
    word.starts_with(b"UNIX").then(|| (End::Unix(own.into()), other.map(|other| End::Unix(other.into()))))
}

/// Who held what at the moment.
#[derive(Debug, Default)]
pub struct Holders {
    by_end: FxHashMap<End, Vec<Arc<Task>>>,
}

impl Holders {
    /// Holders of the files of all tables.
    pub(super) fn of<'a>(all: impl Iterator<Item = (&'a Arc<Task>, &'a Arc<File>)>) -> Self {
        let mut holders = Self::default();
        for (task, file) in all {
            if let Some((own, _)) = file.name().as_deref().and_then(ends) {
                holders.by_end.entry(own).or_default().push(Arc::clone(task));
            }
        }
        for tasks in holders.by_end.values_mut() {
            tasks.order_by_key(|task| (task.pid, key(task)));
            tasks.dedup_by_key(|task| key(task));
        }
        holders
    }

    /// The processes that hold the other end of a file of `task`, in order of their pids; of a pipe others that have it open, at whichever
    /// end. None: it has no other end, or that is not known.
    pub fn others(&self, task: &Task, file: &File) -> Option<Vec<Arc<Task>>> {
        let (own, other) = ends(&file.name()?)?;
        let other = other?;
        let holders = self.by_end.get(&other).map(Vec::as_slice).unwrap_or_default();
        let is_other = |holder: &&Arc<Task>| own != other || key(holder) != key(task);
        Some(holders.iter().filter(is_other).map(Arc::clone).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ends_are_found_by_inode() {
        let task = |pid: u32| Arc::new(Task { pid, tid: pid, upid: pid, ..Task::default() });
        let file = |name: &str| File::named(0, &name.as_bytes().into());
        let (server, client) = (file("UNIX-STREAM:[17->18,\"/run/x\"]"), file("UNIX-STREAM:[18->17]"));
        let (pipe, other) = (file("pipe:[7]"), file("pipe:[7]"));
        let (listens, inode) = (file("UNIX-STREAM:[9,\"/run/x\"]"), file("/proc/17"));
        let (shell, cat, wc) = (task(1), task(2), task(3));
        let all = [
            (&shell, &server),
            (&cat, &client),
            // a copy of a descriptor
            (&cat, &client),
            (&cat, &pipe),
            (&wc, &other),
            (&wc, &listens),
            (&shell, &inode),
        ];
        let holders = Holders::of(all.into_iter());
        let of = |pid: u32, file: &Arc<File>| {
            holders.others(&task(pid), file).map(|all| all.iter().map(|task| task.pid).collect::<Vec<_>>())
        };
        assert_eq!((of(1, &server), of(2, &client)), (Some(vec![2]), Some(vec![1])));
        // at which end nobody says
        assert_eq!((of(2, &pipe), of(3, &other)), (Some(vec![3]), Some(vec![2])));
        assert_eq!((of(3, &listens), of(1, &inode)), (None, None));
        assert_eq!(of(1, &file("UNIX-STREAM:[30->31]")), Some(vec![]), "who has it is not on the tape");
        assert_eq!(of(1, &file("socket:[17]")), None);
    }
}
