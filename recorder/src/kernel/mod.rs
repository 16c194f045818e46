//! Features of the running kernel, from its BTF and symbols: which families of events and which programs it supports, and the
//! perf events and iterators that recordings use.

pub(crate) mod bio_ends;
pub(crate) mod families;
pub(crate) mod iterate;
pub(crate) mod major_faults;
pub(crate) mod native;
pub(crate) mod perf_event;
pub(crate) mod perf_ring;
pub(crate) mod preemption;
pub(crate) mod programs;
pub(crate) mod registers;
pub(crate) mod same_numbers;
pub(crate) mod sampler;
pub(crate) mod skips;
pub(crate) mod softirq;
