//! Puts a program on a function of the kernel, by perf's event of kprobes: it goes with its descriptor, whatever becomes of the recorder.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, IntoRawFd};

use anyhow::{Context, Result, bail};
use libbpf_rs::{Link, PerfEventOpts, ProgramMut};
use perf_event_open_sys::bindings::perf_event_attr;

use crate::kernel::perf_event;
use crate::probes::KPROBE_TYPE;

/// The bit of `attr.config` that asks for the return (/sys/bus/event_source/devices/kprobe/format/retprobe).
const RETURN: u64 = 1;

/// Attaches `program` to the entry of a function of the kernel, or to its `returns`.
///
/// # Errors
/// A sentence: the kernel has no such probes, or refuses this one.
pub(crate) fn attach(program: &ProgramMut<'_>, function: &str, returns: bool, cookie: u64) -> Result<Link> {
    let kind = fs::read_to_string(KPROBE_TYPE).with_context(|| format!("{KPROBE_TYPE} cannot be read"))?;
    let kind = kind.trim().parse().with_context(|| format!("{KPROBE_TYPE} is no number"))?;
    let name = CString::new(function).context("its name")?;
    let mut attr = perf_event_attr { type_: kind, config: if returns { RETURN } else { 0 }, ..Default::default() };
    attr.__bindgen_anon_3.config1 = name.as_ptr() as u64;
    // the program runs on all CPUs
    let event = match perf_event::open(attr, 0) {
        Ok(event) => event,
        Err(error) => bail!("the kernel refuses a probe on {function}: {error}{}", meaning(error.raw_os_error())),
    };
    let opts = PerfEventOpts { cookie, ..PerfEventOpts::default() };
    let link = program.attach_perf_event_with_opts(event.as_raw_fd(), opts);
    let link = link.with_context(|| format!("cannot attach the program of {function}"))?;
    // the link owns the descriptor from here on
    let _ = event.into_raw_fd();
    Ok(link)
}

/// What an error of perf_event_open(2) means here (kernel/trace/trace_kprobe.c, kernel/kprobes.c).
fn meaning(error: Option<i32>) -> &'static str {
    match error {
        Some(libc::EACCES | libc::EPERM) => {
            "; it takes CAP_SYS_ADMIN, or CAP_PERFMON with CAP_BPF, and a kernel that is not locked down (/sys/kernel/security/lockdown)"
        }
        Some(libc::ENOENT) => "; it has no such function now: its module is not loaded",
        Some(libc::EADDRNOTAVAIL) => "; several functions have this name",
        Some(libc::EINVAL) => {
            "; it is on the kernel's list of functions without probes (/sys/kernel/debug/kprobes/blacklist) or notrace"
        }
        _ => "",
    }
}
