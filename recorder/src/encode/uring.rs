//! io_uring operations.

use systape_bpf::wire;
use systape_format::model::{Family, UringOp};

use super::rows::Rows;
use super::world::World;

/// An operation was submitted.
pub(super) fn record(u: &wire::Uring, world: &mut World, rows: &mut Rows) {
    if rows.sheds(Family::IoUring, u.ts) {
        return;
    }
    let task = rows.who(&mut world.tasks, &u.who);
    rows.stored(Family::IoUring, u.ts);
    rows.builder.push_uring(UringOp { ts: u.ts, task, op: u.hdr.flags as u8 });
}
