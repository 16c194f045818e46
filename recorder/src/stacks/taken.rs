//! Stacks as frames, on their way from the unwinding stage to the encoder.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use systape_bpf::wire::Who;
use systape_format::model::{Frame, Mapping, StackOf, StackStatus};

/// Which event a stack belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Kind of event.
    pub of: StackOf,
    /// The thread whose stack it is.
    pub tid: u32,
    /// Start of a call, queueing of an I/O, else when the event happened.
    pub time: u64,
}

/// What code a frame is in.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// Something every process may have mapped.
    Shared(Arc<Mapping>),
    /// Code made at run time, known by the process alone.
    Jit,
    /// Nothing known.
    Unknown,
}

/// A frame; see [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenFrame {
    /// Number of the code; see [`Taken::codes`].
    pub code: u32,
    /// Offset.
    pub offset: u64,
    /// FRAME_ bits.
    pub flags: u8,
}

impl TakenFrame {
    /// See [`Frame::lookup`].
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

/// Frames from the innermost to the outermost, shared by all stacks that have the same: programs do the same again and again.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Arc<Frames>);

#[derive(Debug)]
struct Frames {
    frames: Box<[TakenFrame]>,
    of_task: bool,
    total: Arc<AtomicUsize>,
}

impl Chain {
    /// A chain that counts its frames in `total` as long as somebody holds it. `of_task`: see [`Self::of_task`].
    pub(crate) fn new(frames: &[TakenFrame], of_task: bool, total: &Arc<AtomicUsize>) -> Self {
        total.fetch_add(frames.len(), Ordering::Relaxed);
        Self(Arc::new(Frames { frames: frames.into(), of_task, total: Arc::clone(total) }))
    }

    /// The frames.
    pub(crate) fn frames(&self) -> &[TakenFrame] {
        &self.0.frames
    }

    /// Some are in code that only the process knows: what the tape says of them differs from process to process.
    pub(crate) fn of_task(&self) -> bool {
        self.0.of_task
    }

    /// Where it is in memory: nobody else's as long as it is held.
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
    /// Of a sleeper: letter of ps(1).
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
pub(crate) struct Taken {
    /// The stacks, by time as far as they were read in order.
    pub stacks: Vec<TakenStack>,
    /// New codes: number 0 of the first batch is code 0, and they count on from batch to batch.
    pub codes: Vec<Code>,
    /// Between these times mappings were missed: places of any stack since then may be wrong or unknown.
    pub mappings_lost: Option<(u64, u64)>,
    /// No stack of a time before this is still to come.
    pub watermark: u64,
    /// Those that have no frames because there was no time or memory for it.
    pub given_up: GivenUp,
    /// Of late stacks: held until the encoder has taken them in.
    pub _on_the_way: Option<Arc<()>>,
}

/// Stacks that were given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// How many.
    pub count: u64,
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
}

impl GivenUp {
    /// One more, of time `ts`.
    pub(crate) fn add(&mut self, ts: u64) {
        self.first = if self.count == 0 { ts } else { self.first.min(ts) };
        self.last = self.last.max(ts);
        self.count += 1;
    }
}
