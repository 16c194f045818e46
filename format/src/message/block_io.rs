//! I/O of block devices, and io_uring operations.

use super::rows::{Rows, deltas, minus_one, plus_one, rows_as_header};
use crate::column::{put, put_signed};
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::{BlockCause, BlockHolds, BlockIo, BlockLayer, UringOp, plain_block_columns};
use crate::payload::{Message, new_message};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const BLOCKS: &str = "blocks";
const URINGS: &str = "uring";

macro_rules! plain_bytes {
    (() [$($old:ident: $ty:ty, $init:ident $get:ident;)*] [$($new:ident: $later:ty, $set:ident $read:ident;)*]) => {
        0 $(+ size_of::<$ty>())* $(+ size_of::<$later>())*
    };
}

/// Most bytes of a block I/O in a message, in any layout of its columns.
pub(crate) const BLOCK_BYTES: usize = 46 + plain_block_columns!(plain_bytes());
/// Most bytes of an io_uring operation.
pub(crate) const URING_BYTES: usize = 16;

/// Stored form of a time `t` before `from`: 0 stays 0 ("not known"), else the distance. `t == from` takes the value
/// that `t == 0` leaves unused, so every value survives, also a `t` after `from`.
fn back(t: u64, from: u64) -> u64 {
    match t {
        0 => 0,
        _ if t == from => from,
        _ => from.wrapping_sub(t),
    }
}

/// Undoes [`back`]: it is its own inverse.
fn forth(v: u64, from: u64) -> u64 {
    back(v, from)
}

macro_rules! put_plain {
    (($b:ident, $rows:ident) $([$($field:ident: $ty:ty, $init:ident $get:ident;)*])*) => {
        $($(put($b.reborrow().$init(), &$rows.iter().map(|r: &BlockIo| r.$field).collect::<Vec<_>>());)*)*
    };
}

macro_rules! take_plain {
    (($r:ident, $rows:ident, $out:ident) [$($old:ident: $ty:ty, $init:ident $get:ident;)*] [$($new:ident: $later:ty, $set:ident $read:ident;)*]) => {
        $($rows.column(stringify!($old), $r.$get())?.into_iter().zip(&mut $out).for_each(|(value, io)| io.$old = value);)*
        $($rows.column_or_zero(stringify!($new), $r.$read())?.into_iter().zip(&mut $out).for_each(|(value, io)| io.$new = value);)*
    };
}

/// The time from which `queued` counts back.
fn queued_from(issued: u64, complete: u64) -> u64 {
    if issued == 0 { complete } else { issued }
}

/// The blocks message; `rows` must be sorted by completion.
pub(crate) fn write_blocks(rows: &[BlockIo]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.len() * BLOCK_BYTES + 1024);
    let mut b = message.init_root::<schema::blocks::Builder<'_>>();
    let long = |f: fn(&BlockIo) -> u64| rows.iter().map(f).collect::<Vec<_>>();
    let word = |f: fn(&BlockIo) -> u32| rows.iter().map(f).collect::<Vec<_>>();
    let half = |f: fn(&BlockIo) -> u16| rows.iter().map(f).collect::<Vec<_>>();
    let signed = |f: fn(&BlockIo) -> u64| rows.iter().map(|r| f(r) as i64).collect::<Vec<_>>();
    let first = rows.first().map_or(0, |r| r.complete);
    b.set_rows(rows.len() as u32);
    b.set_first(first);
    put(b.reborrow().init_delta(), &deltas(&long(|r| r.complete), first));
    put_signed(b.reborrow().init_issued(), &signed(|r| back(r.issued, r.complete)));
    put_signed(b.reborrow().init_queued(), &signed(|r| back(r.queued, queued_from(r.issued, r.complete))));
    put(b.reborrow().init_layer(), &half(|r| r.layer as u16));
    put(b.reborrow().init_origin(), &word(|r| plus_one(r.origin)));
    put(b.reborrow().init_cause(), &half(|r| r.cause as u16));
    put(b.reborrow().init_owner(), &word(|r| plus_one(r.owner)));
    put(b.reborrow().init_holds(), &half(|r| r.holds as u16));
    plain_block_columns!(put_plain(b, rows));
    message
}

fn layer_of(raw: u8) -> Option<BlockLayer> {
    Some(match raw {
        1 => BlockLayer::Request,
        2 => BlockLayer::Bio,
        _ => return None,
    })
}

fn cause_of(raw: u8) -> Option<BlockCause> {
    Some(match raw {
        0 => BlockCause::Unknown,
        1 => BlockCause::Direct,
        2 => BlockCause::Dirtier,
        3 => BlockCause::CgroupOwner,
        4 => BlockCause::KernelThread,
        5 => BlockCause::Flush,
        _ => return None,
    })
}

/// The I/Os of a blocks block whose segment has `tasks` tasks.
pub(crate) fn read_blocks(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<BlockIo>> {
    let r = message.get_root::<schema::blocks::Reader<'_>>().map_err(capnp_err(BLOCKS))?;
    let n = rows_as_header(BLOCKS, r.get_rows(), header)?;
    let rows = Rows { block: BLOCKS, n };
    let complete = rows.times(r.get_first(), r.get_delta())?;
    let issued: Vec<u64> = rows.column("issued", r.get_issued())?;
    let queued: Vec<u64> = rows.column("queued", r.get_queued())?;
    let layer: Vec<u8> = rows.column("layer", r.get_layer())?;
    let origin = rows.maybe_tasks("origin", r.get_origin(), tasks)?;
    let cause: Vec<u8> = rows.column("cause", r.get_cause())?;
    let owner = rows.maybe_tasks("owner", r.get_owner(), tasks)?;
    let holds: Vec<u8> = rows.column_or_zero("holds", r.get_holds())?;
    let mut out = Vec::with_capacity(n);
    for (i, &complete) in complete.iter().enumerate() {
        let unknown = |what: &str, raw: u8| Error::invalid(BLOCKS, format!("row {i}: unknown {what} {raw}"));
        let issued = forth(issued[i], complete);
        out.push(BlockIo {
            complete,
            queued: forth(queued[i], queued_from(issued, complete)),
            issued,
            layer: layer_of(layer[i]).ok_or_else(|| unknown("layer", layer[i]))?,
            origin: minus_one(origin[i]),
            cause: cause_of(cause[i]).ok_or_else(|| unknown("cause", cause[i]))?,
            owner: minus_one(owner[i]),
            holds: BlockHolds::from_raw(holds[i]),
            ..BlockIo::default()
        });
    }
    plain_block_columns!(take_plain(r, rows, out));
    Ok(out)
}

/// The uring message; `rows` must be sorted by ts.
pub(crate) fn write_urings(rows: &[UringOp]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.len() * URING_BYTES + 512);
    let mut b = message.init_root::<schema::uring_ops::Builder<'_>>();
    let ts: Vec<u64> = rows.iter().map(|r| r.ts).collect();
    let first = ts.first().copied().unwrap_or(0);
    b.set_rows(rows.len() as u32);
    b.set_first(first);
    put(b.reborrow().init_delta(), &deltas(&ts, first));
    put(b.reborrow().init_task(), &rows.iter().map(|r| r.task).collect::<Vec<_>>());
    put(b.init_op(), &rows.iter().map(|r| r.op).collect::<Vec<_>>());
    message
}

/// The operations of a uring block whose segment has `tasks` tasks.
pub(crate) fn read_urings(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<UringOp>> {
    let r = message.get_root::<schema::uring_ops::Reader<'_>>().map_err(capnp_err(URINGS))?;
    let n = rows_as_header(URINGS, r.get_rows(), header)?;
    let rows = Rows { block: URINGS, n };
    let ts = rows.times(r.get_first(), r.get_delta())?;
    let task = rows.tasks("task", r.get_task(), tasks)?;
    let op: Vec<u8> = rows.column("op", r.get_op())?;
    Ok(ts.iter().zip(task).zip(op).map(|((&ts, task), op)| UringOp { ts, task, op }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;

    #[test]
    fn every_time_has_one_value() {
        let edges = [0, 1, 2, 99, 100, 101, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        for from in edges {
            for t in edges {
                assert_eq!(forth(back(t, from), from), t, "{t} before {from}");
            }
            assert_eq!(back(0, from), 0, "not known is 0");
        }
        assert_eq!((back(90, 100), back(100, 100), back(101, 100)), (10, 100, u64::MAX));
    }

    #[test]
    fn blocks_that_break_a_must_are_refused() {
        let rows = [BlockIo { complete: 9, issued: 8, queued: 7, origin: Some(0), ..BlockIo::default() }];
        let forged = |tasks, forge: &dyn Fn(schema::blocks::Builder<'_>)| {
            let mut message = write_blocks(&rows);
            forge(message.get_root().expect("the root"));
            reread(&message, 1, |h, m| read_blocks(h, m, tasks)).map_err(|e| e.to_string())
        };
        assert_eq!(forged(1, &|_| ()).as_deref(), Ok(&rows[..]));
        let says = |got: Result<Vec<BlockIo>, String>, what: &str| {
            let e = got.expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says(forged(0, &|_| ()), "origin 1 where the dict has 1");
        says(forged(1, &|b| put(b.init_layer(), &[0u32])), "row 0: unknown layer 0");
        says(forged(1, &|b| put(b.init_layer(), &[3u32])), "row 0: unknown layer 3");
        says(forged(1, &|b| put(b.init_cause(), &[6u32])), "row 0: unknown cause 6");
        says(forged(1, &|b| put(b.init_owner(), &[2u32])), "owner 2 where the dict has 2");
        says(forged(1, &|b| put(b.init_errno(), &[1u32 << 16])), "value 65536 > 65535");
        says(forged(1, &|b| _ = b.init_inode()), "inode: absent");
        // a tape of 1.4 has none of these, and a later one may have more values
        assert_eq!(forged(1, &|b| _ = b.init_holds()).as_deref(), Ok(&rows[..]));
        assert_eq!(forged(1, &|b| _ = b.init_file()).as_deref(), Ok(&rows[..]));
        assert_eq!(forged(1, &|b| put(b.init_holds(), &[99u32])).as_deref(), Ok(&rows[..]));
    }

    #[test]
    fn urings_that_break_a_must_are_refused() {
        let mut message = write_urings(&[UringOp { ts: 1, task: 0, op: 1 }]);
        let e = reread(&message, 1, |h, m| read_urings(h, m, 0)).expect_err("no tasks");
        assert!(e.to_string().contains("task 0 where the dict has 0"), "{e}");
        put(message.get_root::<schema::uring_ops::Builder<'_>>().expect("the root").init_op(), &[256u32]);
        let e = reread(&message, 1, |h, m| read_urings(h, m, 1)).expect_err("an op over 255");
        assert!(e.to_string().contains("value 256 > 255"), "{e}");
    }
}
