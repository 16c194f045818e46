//! Stacks as frames, on their way from the unwinding stage to the encoder.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use systape_bpf::wire::Who;
use systape_format::model::{Frame, Mapping, StackOf, StackStatus};

/// Key of a stack's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Kind of event.
    pub of: StackOf,
    /// The thread whose stack it is.
    pub tid: u32,
    /// Start of a call, queueing of an I/O, else the time of the event.
    pub time: u64,
}

/// The code of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// An image that any process may have mapped.
    Shared(Arc<Mapping>),
    /// Code made at run time, known only in its process.
    Jit,
    /// Nothing known.
    Unknown,
}

/// A frame; see [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenFrame {
    /// Number of the code; see [`StackBatch::codes`].
    pub code: u32,
    /// Offset in the file.
    pub offset: u64,
    /// FRAME_ bits.
    pub flags: u8,
}

impl TakenFrame {
    /// Address to look up, as [`Frame::lookup`] has it.
    pub(crate) fn lookup(&self) -> u64 {
        Frame { mapping: self.code, offset: self.offset, flags: self.flags }.lookup()
    }
}

impl Hash for TakenFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // two words are hashed faster than three fields
        state.write_u64(u64::from(self.code) << 8 | u64::from(self.flags));
        state.write_u64(self.offset);
    }
}

/// Frames from the innermost to the outermost, shared by all equal stacks, because programs repeat themselves.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Arc<Frames>);

#[derive(Debug)]
struct Frames {
    frames: Box<[TakenFrame]>,
    of_task: bool,
    total: Arc<AtomicUsize>,
}

impl Chain {
    /// A chain that counts its frames in `total` while it exists. `of_task`: see [`Self::of_task`].
    pub(crate) fn new(frames: &[TakenFrame], of_task: bool, total: &Arc<AtomicUsize>) -> Self {
        total.fetch_add(frames.len(), Ordering::Relaxed);
        Self(Arc::new(Frames { frames: frames.into(), of_task, total: Arc::clone(total) }))
    }

    /// The frames.
    pub(crate) fn frames(&self) -> &[TakenFrame] {
        &self.0.frames
    }

    /// Some are in code known only in its process: their mappings on the tape differ from process to process.
    pub(crate) fn of_task(&self) -> bool {
        self.0.of_task
    }

    /// Address of the chain in memory: unique while the chain exists.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.total.fetch_sub(self.frames.len(), Ordering::Relaxed);
    }
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        self.frames() == other.frames()
    }
}

impl Eq for Chain {}

impl Hash for Chain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.frames().hash(state);
    }
}

impl Borrow<[TakenFrame]> for Chain {
    fn borrow(&self) -> &[TakenFrame] {
        self.frames()
    }
}

/// One stack.
#[derive(Clone, Debug)]
pub(crate) struct TakenStack {
    /// Event that the stack belongs to.
    pub key: Key,
    /// When it was taken.
    pub ts: u64,
    /// CPU that it was taken on.
    pub cpu: u32,
    /// Task that it is of.
    pub who: Who,
    /// Whether the task of a sample ran in the kernel.
    pub in_kernel: bool,
    /// State of a sleeper, a letter of ps(1).
    pub state: u8,
    /// How far the user part reaches.
    pub status: StackStatus,
    /// The user part; None = no frame.
    pub user: Option<Chain>,
    /// The kernel's part.
    pub kernel: Option<Chain>,
}

/// A batch of stacks.
#[derive(Debug, Default)]
pub(crate) struct StackBatch {
    /// The stacks, by time as far as they were read in order.
    pub stacks: Vec<TakenStack>,
    /// New codes: number 0 of the first batch is code 0, and numbers continue from batch to batch.
    pub codes: Vec<Code>,
    /// Mappings were missed in this time span: places of any stack since then may be wrong or unknown.
    pub mappings_lost: Option<(u64, u64)>,
    /// No stack with a time before this is still to come.
    pub watermark: u64,
    /// Number of stacks without frames because there was no time or memory.
    pub given_up: DroppedStacks,
    /// Guard of late stacks, held until the encoder has added them.
    pub _on_the_way: Option<Arc<()>>,
}

/// Dropped stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DroppedStacks {
    /// How many.
    pub count: u64,
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
}

impl DroppedStacks {
    /// One more, with time `ts`.
    pub(crate) fn add(&mut self, ts: u64) {
        self.first = if self.count == 0 { ts } else { self.first.min(ts) };
        self.last = self.last.max(ts);
        self.count += 1;
    }
}
