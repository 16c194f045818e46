//! Times a command from inside the tracer: `bench --timed FILE COMMAND...` runs it and writes its wall time and CPU time.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

/// The word that asks for it.
pub const COMMAND: &str = "--timed";

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Seconds from start to end.
    pub wall: f64,
    /// Seconds of user and system time of the command and its children.
    pub cpu: f64,
}

/// `bench --timed FILE COMMAND...`; what the command prints is thrown away.
pub fn child(args: &[OsString]) -> ExitCode {
    let [file, name, rest @ ..] = args else { return ExitCode::from(2) };
    let started = Instant::now();
    let status = Command::new(name).args(rest).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let wall = started.elapsed().as_secs_f64();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) | Err(_) => return ExitCode::FAILURE,
    }
    match fs::write(file, format!("{wall} {}", children_cpu())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What [`child`] wrote.
pub fn read(file: &Path) -> Result<Took> {
    let text = fs::read_to_string(file).context("the workload did not run")?;
    fs::remove_file(file)?;
    let (wall, cpu) = text.split_once(' ').context("the workload's times")?;
    Ok(Took { wall: wall.parse()?, cpu: cpu.parse()? })
}

/// User and system seconds of children that have ended.
pub fn children_cpu() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: usage is a valid rusage to write to, and zeroed bytes are a value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
