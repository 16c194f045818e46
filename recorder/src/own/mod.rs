//! This process: its messages, its signals, priority and memory, and the CPU time of its threads. It knows nothing of what is
//! recorded.

pub mod clock;
pub(crate) mod cpu_time;
pub(crate) mod forced;
pub mod memory;
pub(crate) mod priority;
pub mod say;
pub(crate) mod signals;
