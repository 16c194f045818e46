//! A timer on each CPU that runs the sampling program: the clock of perf's `cpu-clock` event, which needs no hardware counters.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use libbpf_rs::{Link, ProgramMut};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, perf_event_attr};

use crate::kernel::perf_event;

/// Attaches `program` to a timer of `frequency` Hz on each of `cpus`; None = all that are online.
///
/// # Errors
/// When the kernel refuses the event (kernel.perf_event_paranoid) or the program.
pub(crate) fn attach(program: &ProgramMut<'_>, frequency: u32, cpus: Option<&[u32]>) -> Result<Vec<Link>> {
    perf_event::attach(program, cpus, |cpu| open(frequency, cpu))
}

fn open(frequency: u32, cpu: u32) -> Result<OwnedFd> {
    let mut attr =
        perf_event_attr { type_: PERF_TYPE_SOFTWARE, config: u64::from(PERF_COUNT_SW_CPU_CLOCK), ..Default::default() };
    attr.set_freq(1);
    attr.__bindgen_anon_1.sample_freq = u64::from(frequency);
    perf_event::open(attr, cpu).or_else(|error| {
        if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) {
            bail!(
                "-F: the kernel refuses samples ({error}); it takes CAP_SYS_ADMIN, or CAP_PERFMON and sysctl kernel.perf_event_paranoid=2"
            );
        }
        Err(error).with_context(|| format!("-F: no samples on CPU {cpu}"))
    })
}
