//! Block I/Os.

use systape_bpf::values::block_cause;
use systape_bpf::wire;
use systape_format::model::{BlockCause, BlockHolds, BlockIo, BlockLayer, Family, StackOf};

use super::disks::RecordedDisks;
use super::files::Files;
use super::rows::Rows;
use super::world::World;

/// Bits of cmd_flags that hold the operation, and that of a flush (include/linux/blk_types.h).
const OP_MASK: u32 = 0xff;
const OP_FLUSH: u32 = 2;

/// An I/O completed.
pub(super) fn record(
    b: &wire::Block,
    (files, disks): (&mut Files, &mut RecordedDisks),
    world: &mut World,
    rows: &mut Rows,
) {
    if rows.sheds(Family::Block, b.complete) {
        return;
    }
    let origin = (b.has_origin != 0).then(|| rows.who(&mut world.tasks, &b.origin));
    let owner = (b.has_owner != 0).then(|| {
        let id = world.tasks.meet(&b.owner);
        let owner = rows.task(&mut world.tasks, id);
        if b.cause == block_cause::DIRTIER {
            // what it is called when its data go to the disk says little
            files.dirtied(b, owner, &world.tasks.get(id).task.comm, rows);
        }
        owner
    });
    let file = files.number(b, rows);
    if disks.io(b.dev, b.complete, rows) {
        world.look_up_device(b.dev);
    }
    rows.stored(Family::Block, b.complete);
    let row = rows.builder.push_block(BlockIo {
        complete: b.complete,
        queued: b.queued,
        issued: b.issued,
        dev: b.dev,
        sector: b.sector,
        bytes: b.bytes,
        flags: b.op_flags,
        errno: errno(b.error),
        requeues: b.requeues,
        merged: b.merged,
        layer: if b.layer == wire::BLOCK_LAYER_BIO { BlockLayer::Bio } else { BlockLayer::Request },
        origin,
        cause: match b.cause {
            block_cause::DIRECT => BlockCause::Direct,
            block_cause::DIRTIER => BlockCause::Dirtier,
            block_cause::CGROUP => BlockCause::CgroupOwner,
            block_cause::KTHREAD => BlockCause::KernelThread,
            block_cause::FLUSH => BlockCause::Flush,
            _ => BlockCause::Unknown,
        },
        owner,
        cgroup_id: b.cgroup_id,
        inode: b.inode,
        holds: BlockHolds::from_raw(b.holds),
        file,
    });
    // of a flush: the block layer issued it for somebody, and no stack is taken
    if b.has_origin != 0 && b.op_flags & OP_MASK != OP_FLUSH {
        rows.attach_who(&mut world.tasks, (StackOf::Block, row), &b.origin, b.queued, true);
    }
}

/// The errno of a completion: kernels before 5.16 pass it (negative), later ones a blk_status_t
/// (include/linux/blk_types.h; block/blk-core.c has the errno of each).
fn errno(error: i32) -> u16 {
    let errno = match error {
        0 => 0,
        1 => libc::EOPNOTSUPP,
        2 => libc::ETIMEDOUT,
        3 => libc::ENOSPC,
        4 => libc::ENOLINK,
        5 => libc::EREMOTEIO,
        6 => libc::EBADE,
        7 => libc::ENODATA,
        8 => libc::EILSEQ,
        9 => libc::ENOMEM,
        12 => libc::EAGAIN,
        13 => libc::EBUSY,
        // numbers above mean different things in different kernels, and 10 is it
        status if status > 0 => libc::EIO,
        errno => errno.checked_neg().unwrap_or(libc::EIO),
    };
    u16::try_from(errno).unwrap_or(libc::EIO as u16)
}

#[cfg(test)]
mod tests {
    use super::errno;

    #[test]
    fn errors_of_old_and_new_kernels() {
        assert_eq!([errno(0), errno(10), errno(-5), errno(3)], [0, 5, 5, 28]);
        assert_eq!([errno(200), errno(i32::MIN)], [5, 5]);
    }
}
