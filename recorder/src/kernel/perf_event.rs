//! perf events of a CPU: timers that sample, page faults, and the side-band of mappings.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{Link, ProgramMut};
use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};

/// Most CPUs: the text in /sys may be anything.
const CPUS_MAX: u32 = 8192;

/// Opens an event of `cpu`, for any task. The size in `attr` is filled in.
///
/// # Errors
/// Those of perf_event_open(2).
pub(crate) fn open(mut attr: perf_event_attr, cpu: u32) -> io::Result<OwnedFd> {
    attr.size = size_of::<perf_event_attr>() as u32;
    // SAFETY: attr is a valid perf_event_attr of the size it names; the call touches nothing else of ours.
    let fd = unsafe {
        perf_event_open_sys::perf_event_open(&raw mut attr, -1, cpu as i32, -1, u64::from(PERF_FLAG_FD_CLOEXEC))
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches `program` to the event that `open` opens on each of `cpus`; None = all that are online.
///
/// # Errors
/// Those of `open`, and when the kernel refuses the program.
pub(crate) fn attach(
    program: &ProgramMut<'_>,
    cpus: Option<&[u32]>,
    open: impl Fn(u32) -> Result<OwnedFd>,
) -> Result<Vec<Link>> {
    let online = online_cpus().unwrap_or_else(|_| vec![0]);
    let wanted = online.into_iter().filter(|cpu| cpus.is_none_or(|cpus| cpus.contains(cpu)));
    wanted
        .map(|cpu| {
            let event = open(cpu)?;
            let link = program.attach_perf_event(event.as_raw_fd());
            let link =
                link.with_context(|| format!("cannot attach the program {}", program.name().to_string_lossy()))?;
            // the link owns the descriptor from here on
            let _ = event.into_raw_fd();
            Ok(link)
        })
        .collect()
}

/// CPUs that are online.
///
/// When the kernel does not report them.
pub(crate) fn online_cpus() -> io::Result<Vec<u32>> {
    fs::read_to_string("/sys/devices/system/cpu/online").map(|text| cpu_list(&text))
}

/// CPUs of a list like `0-3,8`.
fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last.min(CPUS_MAX));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list("0"), [0]);
        assert_eq!(cpu_list("x,,2"), [2]);
        assert_eq!(cpu_list("0-4294967295").len(), 8193);
    }
}
