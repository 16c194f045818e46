//! I/O of block devices: the line of its owner.

use systape_format::model::{BlockIo, BlockLayer, StackOf};

use super::{Observed, catalogue};
use crate::derive::block::files::{Files, holds_name};
use crate::derive::block::flags::{self, Op};
use crate::derive::block::io::{Io, cause_name, layer_name};
use crate::render::row::TaskColumn;
use systape_events::values::clock::{Real, rfc3339};
use systape_events::values::devices::numbers;

catalogue! {
    /// One row an I/O, in order of completion.
    pub BLOCK = "block" of BlockIo {
        ts_ns: Time key "when it completed" = |o| o.since(o.e.complete);
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample" = |o| o.real(o.e.complete).map(rfc3339);
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known" = |o| o.real(o.e.complete).and_then(Real::uncertain);
        queued_ns: Time "when it entered the block layer; null: not known" = |o| o.at.times.since_known(o.e.queued);
        issued_ns: Time "when it last went to the device; null: not known" = |o| o.at.times.since_known(o.e.issued);
        dur_ns: Duration "how long the device took; null: not known" = |o| io(o).latency();
        queue_ns: Duration "how long it waited before; null: not known" = |o| io(o).queue();
        disk: Word key "the whole disk" = |o| o.at.devices.name(o.e.dev);
        partition: Word "the last partition that begins at or before `sector`; null: none" = |o| sector(o.e).and_then(|sector| o.at.devices.partition(o.e.dev, sector));
        major: Int "the disk's number, first part" = |o| numbers(o.e.dev).0;
        minor: Int "second part" = |o| numbers(o.e.dev).1;
        op: Word key "`read write flush discard secure_erase write_zeroes drv_in drv_out`, or `op17` for what has no stable number" = |o| Op::of_io(o.e).name();
        flags.value: Int "flags of the kernel" = |o| o.e.flags;
        flags.text: Word "the same in words: `WRITE|SYNC`; bits without a stable name are a number" = |o| flags::text(o.e.flags);
        rwbs: Word "operation and flags in the kernel's letters: `WS`" = |o| flags::letters(o.e.flags);
        sector: Wide key "first sector of 512 bytes on the disk; null: none (a flush of the cache)" = |o| sector(o.e);
        bytes: Bytes "size; 0 for a flush" = |o| o.e.bytes;
        errno: Word "name of the error; null: none" = |o| error(o.e);
        errno_code: Int "its number; null: none" = |o| Some(o.e.errno).filter(|errno| *errno != 0);
        requeues: Count "how often it went back to the queue" = |o| o.e.requeues;
        merged: Count "further bios that were merged into it" = |o| o.e.merged;
        layer: Word "`request`, or `bio`: the device has no requests" = |o| layer_name(o.e.layer);
        cause: Word "how it is known whom to blame: `direct dirtier cgroup kthread flush unknown`" = |o| cause_name(o.e.cause);
        owner: Task "whom it is blamed on: process; `owner` null: nobody known" = |o| io(o).owner;
        owner.uid: Int "real user; null: not known" = |o| TaskColumn::Uid.cell(io(o).owner);
        origin: Task "who ran when it entered the block layer: process; `origin` null: not known, or an interrupt" = |o| io(o).origin;
        origin.uid: Int "real user; null: not known" = |o| TaskColumn::Uid.cell(io(o).origin);
        cgroup: Str [Path] "path of the cgroup it is charged to; null: not known" = |o| o.at.times.session.cgroup_path(o.e.cgroup_id);
        holds: Word "what it reads or writes: `file metadata journal device swap several unknown`; `several`: I/Os of more than one were merged" = |o| holds_name(o.e.holds);
        file: Str [Path] "path of the file; null: none, or not known" = |o| io(o).file.and_then(|file| file.path.as_deref());
        links: Count "names that the file has: with more than one, a program may have used another; null: not known" = |o| io(o).file.map(|file| file.links).filter(|links| *links > 0);
        inode: Wide "inode of the file; null: not known" = |o| Some(o.e.inode).filter(|inode| *inode != 0);
        file_system.major: Int "the number of its file system, first part; null: not known" = |o| io(o).file.map(|file| numbers(file.dev).0);
        file_system.minor: Int "second part" = |o| io(o).file.map(|file| numbers(file.dev).1);
    }
    family Block, blocks [Blocks], stacks Some(StackOf::Block);
    read |segment, dict| segment.blocks(dict);
    files |segment, dict, ios| Files::read(segment, dict, ios);
    when |e| (e.complete, None);
    whose |o| [io(o).owner, io(o).origin];
    kind |e| e.layer as u32;
    BlockLayer::Request as u32 => "block:block_rq_complete" []:
        dev = disk, sector |o| Some(o.e.sector.to_string()), nr_sector |o| Some((o.e.bytes / 512).to_string()), rwbs,
        error = errno |o| Some(error(o.e).map_or_else(|| o.e.errno.to_string(), str::to_owned));
    BlockLayer::Bio as u32 => "block:block_bio_complete" []:
        dev = disk, sector |o| Some(o.e.sector.to_string()), nr_sector |o| Some((o.e.bytes / 512).to_string()), rwbs,
        error = errno |o| Some(error(o.e).map_or_else(|| o.e.errno.to_string(), str::to_owned));
}

/// It with its tasks and its file.
fn io<'a>(o: Observed<'a, BlockIo>) -> Io<'a> {
    let io = Io::new(o.e, o.at.dict);
    o.at.files.map_or(io, |files| io.with(files))
}

/// The sector; None: none (the kernel's -1: a flush of the device's cache).
pub fn sector(io: &BlockIo) -> Option<u64> {
    (io.sector != u64::MAX).then_some(io.sector)
}

/// Name of the error; None: there is none.
fn error(io: &BlockIo) -> Option<&'static str> {
    systape_abi::errno_name(io.errno).filter(|_| io.errno != 0)
}
