//! perf's software event of major page faults on each CPU: it runs the program at the end of each of them.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use libbpf_rs::{Link, ProgramMut};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_TYPE_SOFTWARE, perf_event_attr};

use crate::kernel::perf_event;

/// Attaches `program` on each of `cpus`; None = all that are online.
///
/// # Errors
/// When the kernel refuses the event (kernel.perf_event_paranoid) or the program.
pub(crate) fn attach(program: &ProgramMut<'_>, cpus: Option<&[u32]>) -> Result<Vec<Link>> {
    perf_event::attach(program, cpus, open)
}

fn open(cpu: u32) -> Result<OwnedFd> {
    let config = u64::from(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
    let mut attr = perf_event_attr { type_: PERF_TYPE_SOFTWARE, config, ..Default::default() };
    // every one of them; with a period of 1 the kernel does not throttle software events
    attr.__bindgen_anon_1.sample_period = 1;
    perf_event::open(attr, cpu)
        .with_context(|| format!("the kernel refuses the event of major page faults on CPU {cpu}"))
}
