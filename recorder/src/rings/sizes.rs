//! Sizes of the rings, and the most that was read from them at once.

use std::sync::atomic::AtomicU64;

use crate::rings::cpu_buffers::BufferBytes;

/// The most bytes read from a ring in one pass, by kind of ring. A few may have arrived during the read.
#[derive(Debug, Default)]
pub(crate) struct Fills {
    /// Most bytes of one buffer of calls.
    pub calls: AtomicU64,
    /// Most bytes of one buffer of switches and wake-ups.
    pub sched: AtomicU64,
    /// Most bytes of one ring per CPU.
    pub bulk: AtomicU64,
    /// Most bytes of the state ring.
    pub state: AtomicU64,
    /// Most bytes of the process ring.
    pub process: AtomicU64,
    /// Most bytes of the stack ring.
    pub stacks: AtomicU64,
}

/// Bytes of a ring of each kind; 0 = there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RingSizes {
    /// Bytes of the buffers of each CPU.
    pub buffers: BufferBytes,
    /// Bytes of each ring per CPU.
    pub bulk: u64,
    /// Bytes of the state ring.
    pub state: u64,
    /// Bytes of the process ring.
    pub process: u64,
    /// Bytes of the stack ring.
    pub stacks: u64,
}
