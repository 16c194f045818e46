//! The tape: writing, reading, recovering and indexing.
//!
//! A tape is a sequence of *blocks*; a *segment* is a few blocks (column groups) that hold the events of one window of
//! time; a *chunk* is a few segments behind a checkpoint. docs/reference/tape-format.md has the layout.
//!
//! This crate knows neither BPF nor tables: plain values ([`model`]) go in and come out. It needs a reader of bytes (a
//! file) and nothing of the recorded machine. On any bytes it never panics, loops or allocates without bound.
//!
//! What a tape is about, and which of its rows are calls of whom:
//!
//! ```
//! use systape_format::Tape;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
//! let tape = Tape::open("testdata/tapes/ledger-1.3.tape".as_ref())?;
//! println!("{}: {}", String::from_utf8_lossy(&tape.session().hostname), tape.session().target);
//! for at in 0..tape.segments().len() {
//!     let segment = tape.segment(at);
//!     let dict = segment.dict()?;
//!     let counted: u64 = segment.ledger(&dict)?.iter().map(|row| row.count).sum();
//!     println!("{} calls stored, {counted} counted, {} tasks", segment.info().rows, dict.tasks.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Sums that are exact, with what was lost, are made by the crate `systape-answers`.
//!
//! Writing: [`segment::SegmentBuilder`] collects, [`encode::Encoder`] sorts and compresses (on any thread),
//! [`writer::Writer`] appends. Reading: [`reader::Tape`] opens and recovers, [`reader::Segment`] decodes one column
//! group at a time. `docs/reference/tape-format.md` says what every byte means. What stays the same between versions: [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

pub mod cgroups;
pub mod class;
mod column;
pub mod cut;
pub mod encode;
pub mod error;
#[cfg(feature = "exercise")]
pub mod exercise;
pub mod families;
pub mod footer;
pub mod header;
mod info;
mod kinds;
pub mod merge;
mod message;
pub mod model;
mod order;
mod other;
mod payload;
pub mod places;
pub mod reader;
pub mod redact;
pub mod repair;
mod rows;
mod scan;
pub mod segment;
pub mod sockets;
mod source;
mod strings;
pub mod table;
pub mod tables;
mod tree;
mod verify;
pub mod writer;

pub use encode::{EncodedCheckpoint, EncodedSegment, Encoder};
pub use error::Error;
pub use header::BlockKind;
pub use model::{
    Args, ByteStatus, Call, CallState, Captured, Checkpoint, ClockSample, Core, Dict, End, Family, Fd, FdTable, Fds,
    Gap, GapCause, InFlight, ProcessEvent, ProcessKind, SegmentInfo, Session, SyscallFormat, SyscallRow, Task, Time,
};
pub use other::Other;
pub use reader::{BlockInfo, Segment, Tape, TapeFault};
pub use segment::{SegmentBuilder, SegmentData};
pub use writer::Writer;

// the generated messages, for `message` and `column`
use systape_schema::trace_capnp;
