//! Sizes of the rings, and the most that was read from them at once.

use std::sync::atomic::AtomicU64;

use crate::rings::cpu_buffers::BufferBytes;

/// The most bytes read from a ring in one pass, by kind of ring. A few may have arrived during the read.
#[derive(Debug, Default)]
pub(crate) struct Fills {
    /// Of one buffer of calls.
    pub calls: AtomicU64,
    /// Of one buffer of switches and wake-ups.
    pub sched: AtomicU64,
    /// Of one ring per CPU.
    pub bulk: AtomicU64,
    /// Of the state ring.
    pub state: AtomicU64,
    /// Of the process ring.
    pub process: AtomicU64,
    /// Of the stack ring.
    pub stacks: AtomicU64,
}

/// Bytes of a ring of each kind; 0 = there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RingSizes {
    /// Of the buffers of each CPU.
    pub buffers: BufferBytes,
    /// Of each ring per CPU.
    pub bulk: u64,
    /// Of the state ring.
    pub state: u64,
    /// Of the process ring.
    pub process: u64,
    /// Of the stack ring.
    pub stacks: u64,
}
