//! Rows of the table `socket:name`: the inode of a socket whose name is its addresses, by which descriptors, names and
//! changes of connections are joined. Other names of sockets have the inode in them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_bpf::wire;
use systape_format::families::SOCKET_NAME;
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::net;
use super::rows::Rows;
use super::world::{Renamed, World};
use crate::descriptors::sockets::{SocketParts, parts};
use crate::tasks::TaskId;

/// Most rows of sockets from before the recording: a segment's.
pub(super) const MOST_AT_START: usize = 65_536;

/// Sockets whose inodes the tape has beside their names.
#[derive(Debug)]
pub(super) struct Names {
    def: Arc<TableDef>,
    /// The last facts of each socket, by inode; None = nobody asks for them again.
    kept: Option<FxHashMap<u64, wire::Socket>>,
}

impl Default for Names {
    fn default() -> Self {
        Self { def: Arc::new(SOCKET_NAME.clone()), kept: None }
    }
}

impl Names {
    /// [`Self::again`] will be called.
    pub(super) fn keep(&mut self) {
        self.kept = Some(FxHashMap::default());
    }

    /// Stores the names of all sockets that descriptors stand for, as at the start of a recording; false = there are none.
    pub(super) fn again(&mut self, ts: u64, numbers: &net::TrackedSockets, world: &mut World, rows: &mut Rows) -> bool {
        let Some(kept) = &mut self.kept else { return false };
        kept.retain(|inode, _| world.sockets.find(*inode).is_some());
        for socket in kept.values().take(MOST_AT_START) {
            store(&self.def, (ts, None, socket), numbers, world, rows);
        }
        !kept.is_empty()
    }

    /// Stores what sockets of targets were named since the last time.
    pub(super) fn record(&mut self, numbers: &mut net::TrackedSockets, world: &mut World, rows: &mut Rows) {
        for Renamed { ts, task, socket } in std::mem::take(&mut world.renamed) {
            numbers.named(socket.address, socket.inode);
            if task.is_some_and(|task| !world.tasks.is_target(task)) || rows.shedding.is_all() {
                continue;
            }
            if let Some(kept) = &mut self.kept {
                kept.insert(socket.inode, socket);
            }
            store(&self.def, (ts, task, &socket), numbers, world, rows);
        }
    }
}

fn store(
    def: &Arc<TableDef>,
    (ts, task, socket): (u64, Option<TaskId>, &wire::Socket),
    numbers: &net::TrackedSockets,
    world: &mut World,
    rows: &mut Rows,
) {
    let SocketParts { protocol, local, remote, .. } = parts(socket);
    if local.is_empty() {
        return;
    }
    let remote = if remote.is_empty() { Field::Unknown } else { Field::Bytes(remote.as_bytes()) };
    let fields = [
        task.map_or(Field::Unknown, |task| Field::Task(rows.task(&mut world.tasks, task))),
        Field::Number(socket.inode),
        Field::Number(numbers.find(socket.address)),
        Field::Bytes(protocol.as_bytes()),
        Field::Bytes(local.as_bytes()),
        remote,
        Field::Number(socket.namespace.into()),
    ];
    rows.beside(def, ts, &fields);
}
