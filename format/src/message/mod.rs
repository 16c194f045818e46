//! Between the plain values of [`crate::model`] and Cap'n Proto messages, one file per group of messages.
//!
//! Reading checks every "must" of schemas/trace.capnp that concerns one message alone. Lists are never trusted for an
//! allocation: [`crate::payload::list_len`] bounds them by the message's size first.

mod block_io;
mod checkpoint;
mod dict;
mod events;
mod index;
mod ledger;
mod rows;
mod sched;
mod session;
mod signals;
mod stacks;
mod symbols;
mod syscalls;
mod tables;

pub(crate) use block_io::{BLOCK_BYTES, URING_BYTES, read_blocks, read_urings, write_blocks, write_urings};
pub(crate) use checkpoint::{read_checkpoint_part, split_checkpoint, write_checkpoint_part};
pub(crate) use dict::{read_dict, task_bytes, write_dict};
pub(crate) use events::{read_gaps, read_processes, write_gaps, write_processes};
pub(crate) use index::{IndexEntry, MAX_CALLS, MAX_PIDS, entry_bytes, read_index, write_index};
pub(crate) use ledger::{ledger_bytes, read_ledger, write_ledger};
pub(crate) use sched::{SWITCH_BYTES, WAKEUP_BYTES, read_switches, read_wakeups, write_switches, write_wakeups};
pub(crate) use session::{read_end, read_session, write_end, write_session};
pub(crate) use signals::{MAX_ADDRESS, net_bytes, read_nets, read_signals, signal_bytes, write_nets, write_signals};
pub(crate) use stacks::{
    ATTACHED_BYTES, FRAME_BYTES, FRAME_FLAGS, NODE_BYTES, SAMPLE_BYTES, SLEEPER_BYTES, mapping_bytes, read_samples,
    read_sleepers, read_stacks, write_samples, write_sleepers, write_stacks,
};
pub(crate) use symbols::{read_symbols, split_symbols, write_symbols};
pub(crate) use syscalls::{
    CapturedValues, Columns, read_args, read_bytes, read_core, read_fds, read_time, write_args, write_bytes,
    write_core, write_fds, write_time,
};

pub(crate) use tables::{Definitions, read_table_defs, read_tables, table_id, write_table_defs, write_tables};

use crate::error::{Result, capnp_err};
use crate::model::ClockSample;
use crate::trace_capnp::clock_sample;

/// Text as a String. Ours is always UTF-8; invalid bytes of another writer's tape are replaced.
fn text(what: &'static str, r: capnp::Result<capnp::text::Reader<'_>>) -> Result<String> {
    Ok(String::from_utf8_lossy(r.map_err(capnp_err(what))?.as_bytes()).into_owned())
}

/// Data as bytes.
fn data(what: &'static str, r: capnp::Result<capnp::data::Reader<'_>>) -> Result<Vec<u8>> {
    Ok(r.map_err(capnp_err(what))?.to_vec())
}

fn write_clock(mut b: clock_sample::Builder<'_>, c: &ClockSample) {
    b.set_monotonic(c.monotonic);
    b.set_boottime(c.boottime);
    b.set_realtime(c.realtime);
    b.set_width(c.width);
}

fn read_clock(what: &'static str, r: capnp::Result<clock_sample::Reader<'_>>) -> Result<ClockSample> {
    let r = r.map_err(capnp_err(what))?;
    Ok(ClockSample {
        monotonic: r.get_monotonic(),
        boottime: r.get_boottime(),
        realtime: r.get_realtime(),
        width: r.get_width(),
    })
}

/// For tests: reads a written or forged message as a block of `rows` rows.
#[cfg(test)]
fn reread<R>(
    message: &capnp::message::Builder<capnp::message::HeapAllocator>,
    rows: u32,
    f: impl FnOnce(&crate::header::Header, &crate::payload::Message<'_>) -> R,
) -> R {
    let bytes = capnp::serialize::write_message_to_words(message);
    let mut header = crate::header::Header::new(crate::header::BlockKind::Gaps, [0; 16]);
    (header.rows, header.raw_len) = (rows, bytes.len() as u32);
    let options = capnp::message::ReaderOptions::new();
    f(&header, &capnp::serialize::read_message_from_flat_slice(&mut &bytes[..], options).expect("a message"))
}
