//! Runs a tracer and tells what it took: its own CPU time and memory, not those of the workload it starts.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a tracer's memory is looked at. Its peak only grows, so only what comes in the last moment is missed.
const LOOK: Duration = Duration::from_millis(20);

/// What a process took, without its children.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessCost {
    /// Which process it was.
    pub pid: u32,
    /// Seconds from its start to its end.
    pub wall: f64,
    /// Seconds of user and system time of all its threads.
    pub cpu: f64,
    /// The same with those of the processes that it started and waited for, the workload among them.
    pub all: f64,
    /// Most memory resident at once, bytes.
    pub peak: Option<u64>,
}

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on SIGINT and SIGTERM end the program the ordinary way: mounts and files are cleaned up.
pub(crate) fn catch_interrupts() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

/// Whether one of them came.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// An error once one of them came.
pub(crate) fn go_on() -> Result<()> {
    if interrupted() { bail!("interrupted") } else { Ok(()) }
}

/// Runs it to its end. What it prints is thrown away; what it complains of goes to `errors`, and into the error if it fails.
pub(crate) fn run(command: &mut Command, errors: &Path) -> Result<ProcessCost> {
    let before = cpu_of_children()?;
    let started = Instant::now();
    let stderr = File::create(errors).with_context(|| errors.display().to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).process_group(0);
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let mut peak = None;
    while !ended(child.id())? {
        // the last one that is known: before its exec the process has this program's
        peak = peak_of(child.id()).or(peak);
        if interrupted() {
            // the workload too: it may hold files of a mount
            // SAFETY: kill touches no memory; the group is the child's own, and it is not reaped yet.
            unsafe { libc::kill(-child.id().cast_signed(), libc::SIGTERM) };
            child.wait()?;
            bail!("interrupted");
        }
        std::thread::sleep(LOOK);
    }
    let wall = started.elapsed().as_secs_f64();
    // it is a zombie: its times are whole, and not yet mixed with those of its children
    let cpu = cpu_of(child.id()).context("the CPU time of a tracer")?;
    let status = child.wait()?;
    if !status.success() {
        let text = fs::read(errors).unwrap_or_default();
        bail!("{command:?}: {status}: {}", String::from_utf8_lossy(&text).trim());
    }
    Ok(ProcessCost { pid: child.id(), wall, cpu, all: cpu_of_children()? - before, peak })
}

/// Whether a child has ended; it is not reaped.
fn ended(pid: u32) -> io::Result<bool> {
    // SAFETY: zeroed bytes are a siginfo_t; waitid writes to `info` only.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        match libc::waitid(libc::P_PID, pid, &raw mut info, flags) {
            0 => Ok(info.si_pid() != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// User and system seconds of all threads of a process, those that have ended too. /proc/PID/stat has them in steps of 10 ms.
pub(crate) fn cpu_of(pid: u32) -> io::Result<f64> {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to the variable they are given only.
    let failed = unsafe {
        match libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) {
            0 => libc::clock_gettime(clock, &raw mut time) != 0,
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9) }
}

/// User and system seconds of all children of this process that were waited for, with theirs.
pub(crate) fn cpu_of_children() -> io::Result<f64> {
    // SAFETY: zeroed bytes are a rusage; the call writes to it only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        match libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) {
            0 => usage,
            _ => return Err(io::Error::last_os_error()),
        }
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// Not getrusage: its maximum is handed on over exec and from children.
fn peak_of(pid: u32) -> Option<u64> {
    vm_hwm(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn vm_hwm(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Runs a helper with its output thrown away.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let out = command.stdin(Stdio::null()).stdout(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    if !out.status.success() {
        bail!("{command:?}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_read() {
        assert_eq!(vm_hwm("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t   1964 kB\n"), Some(1964 * 1024));
        assert_eq!(vm_hwm("Name:\tzombie\nState:\tZ\n"), None);
    }

    #[test]
    fn the_time_of_children_is_not_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let errors = dir.path().join("errors");
        let loops = |n: u32| format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done");
        let run = |script: String| run(Command::new("sh").args(["-c", &script]), &errors).expect("sh");
        let own = run(loops(300_000));
        let childs = run(format!("sh -c '{}'; true", loops(300_000)));
        assert!(childs.cpu < own.cpu / 2.0, "{childs:?} {own:?}");
        assert!(childs.all > childs.cpu * 2.0 && own.all >= own.cpu / 2.0, "{childs:?} {own:?}");
        assert!(own.peak.is_some_and(|bytes| bytes > 100_000), "{own:?}");
    }

    #[test]
    fn a_failure_says_why() {
        let dir = tempfile::tempdir().expect("a directory");
        let errors = dir.path().join("errors");
        let error = run(Command::new("sh").args(["-c", "echo broken >&2; exit 3"]), &errors).expect_err("it fails");
        assert!(error.to_string().ends_with("broken"), "{error}");
    }
}
