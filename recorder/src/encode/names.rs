//! Rows of the table `socket:name`: the inode of a socket whose name is its addresses, by which descriptors, names and
//! changes of connections are joined. Other names of sockets have the inode in them.

use std::sync::Arc;

use systape_format::families::SOCKET_NAME;
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::net;
use super::rows::Rows;
use super::world::{Renamed, World};
use crate::sockets::{Parts, parts};

/// Most rows of sockets from before the recording: a segment's.
pub(super) const MOST_AT_START: usize = 65_536;

/// See the module.
#[derive(Debug)]
pub(super) struct Names(Arc<TableDef>);

impl Default for Names {
    fn default() -> Self {
        Self(Arc::new(SOCKET_NAME.clone()))
    }
}

impl Names {
    /// Stores what sockets of targets were named since the last time.
    pub(super) fn record(&self, numbers: &mut net::Sockets, world: &mut World, rows: &mut Rows) {
        for Renamed { ts, task, socket } in std::mem::take(&mut world.renamed) {
            numbers.named(socket.address, socket.inode);
            if task.is_some_and(|task| !world.tasks.is_target(task)) || rows.shedding.is_all() {
                continue;
            }
            let Parts { protocol, local, remote, .. } = parts(&socket);
            if local.is_empty() {
                continue;
            }
            let remote = if remote.is_empty() { Field::Unknown } else { Field::Bytes(remote.as_bytes()) };
            let fields = [
                task.map_or(Field::Unknown, |task| Field::Task(rows.task(&mut world.tasks, task))),
                Field::Number(socket.inode),
                Field::Number(numbers.find(socket.address)),
                Field::Bytes(protocol.as_bytes()),
                Field::Bytes(local.as_bytes()),
                remote,
            ];
            rows.beside(&self.0, ts, &fields);
        }
    }
}
