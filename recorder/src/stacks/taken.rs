//! Stacks as frames, on their way from the unwinding stage to the encoder.

use std::sync::Arc;

use systape_bpf::wire::Who;
use systape_format::model::{Mapping, StackOf, StackStatus};

/// Which event a stack belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Kind of event.
    pub of: StackOf,
    /// The thread whose stack it is.
    pub tid: u32,
    /// Start of a call, queueing of an I/O, else when the event happened.
    pub time: u64,
}

/// What code a frame is in.
#[derive(Clone, Debug)]
pub enum Code {
    /// Something every process may have mapped.
    Shared(Arc<Mapping>),
    /// Code made at run time, known by the process alone.
    Jit,
    /// Nothing known.
    Unknown,
}

/// A frame; see [`systape_format::model::Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenFrame {
    /// Index into [`Taken::codes`] of the batch.
    pub code: u32,
    /// Offset.
    pub offset: u64,
    /// FRAME_ bits.
    pub flags: u8,
}

/// One stack.
#[derive(Clone, Copy, Debug)]
pub struct TakenStack {
    /// Its event.
    pub key: Key,
    /// When it was taken.
    pub ts: u64,
    /// Where.
    pub cpu: u32,
    /// Whose it is.
    pub who: Who,
    /// Of a sample: it ran in the kernel.
    pub in_kernel: bool,
    /// How far the user part reaches.
    pub status: StackStatus,
    /// Frames of the user part, the innermost first: range of [`Taken::frames`].
    pub user: (u32, u32),
    /// The same of the kernel's part.
    pub kernel: (u32, u32),
}

/// A batch of stacks.
#[derive(Debug, Default)]
pub struct Taken {
    /// The stacks, by time as far as they were read in order.
    pub stacks: Vec<TakenStack>,
    /// Frames of all of them.
    pub frames: Vec<TakenFrame>,
    /// New codes: number 0 of the first batch is code 0, and they count on from batch to batch.
    pub codes: Vec<Code>,
    /// Between these times mappings were missed: places of any stack since then may be wrong or unknown.
    pub mappings_lost: Option<(u64, u64)>,
    /// No stack of a time before this is still to come.
    pub watermark: u64,
}

impl Taken {
    /// The frames of a range.
    pub fn range(&self, (from, to): (u32, u32)) -> &[TakenFrame] {
        self.frames.get(from as usize..to as usize).unwrap_or_default()
    }
}
