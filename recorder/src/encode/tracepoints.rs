//! Events of tracepoints that were asked for: rows of the tables that they define.

use std::sync::Arc;

use systape_bpf::wire;
use systape_format::model::{Family, StackOf};

use super::rows::Rows;
use super::world::World;
use crate::tracepoints::{Tracepoint, packet};

/// The tracepoints whose events become rows.
#[derive(Debug)]
pub(super) struct TracepointRows {
    /// In the order of their own numbers.
    tracepoints: Vec<Arc<Tracepoint>>,
}

impl TracepointRows {
    /// Makes one of tracepoints in the order of their records' numbers, from 1 on.
    pub(super) fn new(tracepoints: Vec<Arc<Tracepoint>>) -> Self {
        Self { tracepoints }
    }

    /// Stores an event of a tracepoint; `socket`: that of its packet.
    pub(super) fn record(
        &self,
        r: &wire::Row,
        (socket, data): (Option<&wire::Socket>, &[u8]),
        world: &mut World,
        rows: &mut Rows,
    ) {
        let number = usize::from(r.hdr.flags).checked_sub(1);
        let Some(tracepoint) = number.and_then(|number| self.tracepoints.get(number)) else {
            return rows.bad_records(1, r.ts, r.ts);
        };
        if !tracepoint.is_asked_for(data) || rows.sheds(Family::Tracepoint, r.ts) {
            return;
        }
        let task = rows.who(&mut world.tasks, &r.who);
        let mut values = tracepoint.values(data);
        if tracepoint.packet.is_some() {
            let socket = socket.filter(|socket| socket.family != 0);
            let owner = socket.and_then(|socket| world.owner(socket.inode));
            let owner = owner.map(|owner| &world.tasks.get(owner).task);
            values.extend(packet::values(socket, owner.map(|owner| (owner.pid, &*owner.comm))));
        }
        let fields = tracepoint.row(task, r.hdr.cpu, &values);
        let Ok(row) = rows.builder.push_table_row(&tracepoint.def, r.ts, &fields) else {
            return rows.bad_records(1, r.ts, r.ts);
        };
        rows.stored(Family::Tracepoint, r.ts);
        if tracepoint.def.stack_column().is_some() {
            rows.attach_who(&mut world.tasks, (StackOf::Row, row), &r.who, r.ts, true);
        }
    }
}
