//! Records between the kernel and the encoder: the buffers that BPF programs and perf write, the order of records by time, and the
//! bound on what waits.

pub(crate) mod backlog;
pub(crate) mod cpu_buffers;
pub(crate) mod lock_buffers;
pub mod order;
pub(crate) mod records;
pub(crate) mod sizes;
pub(crate) mod spare;
