//! Stacks: from what the BPF side sends to frames and names.
//!
//! The stack ring is read by the drain like the others, but its records go another way ([`feed`]): [`unwinding`] turns them into
//! frames in a thread of its own, off the way of the events, and hands them to the encoder, which ties them to their events.
//! [`names`] looks up what the frames are called.

use crossbeam_channel::{Receiver, Sender};

use names::{Message, Names};
use unwinding::Unwinding;

pub mod feed;
pub mod kernel;
pub mod names;
pub mod options;
pub mod places;
pub mod taken;
pub mod unwinding;

/// What works on stacks beside the other stages.
#[derive(Debug)]
pub struct Workers {
    /// Makes frames.
    pub unwinding: Unwinding,
    /// Looks up their names; None = not asked for.
    pub names: Option<NameWorker>,
}

/// The thread that looks names up, and its queue.
#[derive(Debug)]
pub struct NameWorker {
    /// The work.
    pub names: Names,
    /// How it is told. The queue has no bound of its own: every place is told once, and how many are is bounded where they are told.
    pub tell: Sender<Message>,
    /// What it was told.
    pub told: Receiver<Message>,
}
