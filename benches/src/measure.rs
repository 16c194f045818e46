//! Runs a command to its end, or to its first line, and tells what that took.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// What a command took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    /// Seconds until its end, or until its first line.
    pub wall: f64,
    /// Seconds of user and system time.
    pub cpu: f64,
    /// Most resident bytes.
    pub peak: f64,
    /// Lines it printed that were read.
    pub lines: u64,
}

/// Runs it and reads what it prints: all of it, or the first line before the pipe is closed.
pub(crate) fn measure(command: &mut Command, first_line: bool) -> Result<Took> {
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().with_context(|| format!("{command:?}"))?;
    let mut out = BufReader::with_capacity(1 << 16, child.stdout.take().context("a pipe")?);
    let mut lines = 0;
    if first_line {
        lines = u64::from(out.read_line(&mut String::new())? > 0);
    } else {
        let mut buffer = [0; 1 << 16];
        loop {
            let n = out.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            lines += buffer[..n].iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }
    let first = started.elapsed().as_secs_f64();
    drop(out);
    let (status, cpu, peak) = wait(child.id())?;
    let wall = if first_line { first } else { started.elapsed().as_secs_f64() };
    // after the first line nobody reads the rest, which ends many programs
    if status != 0 && !(first_line && status == libc::SIGPIPE) {
        bail!("{command:?}: wait status {status:#x}");
    }
    Ok(Took { wall, cpu, peak, lines })
}

/// Wait status, CPU seconds and most resident bytes of a child. Its maximum begins with this program's, which is below any analyze's.
fn wait(pid: u32) -> Result<(i32, f64, f64)> {
    let mut status = 0;
    // SAFETY: zeroed bytes are a rusage; wait4 writes to the two variables it is given only.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage), usage)
    };
    if waited != pid.cast_signed() {
        bail!("wait4: {}", std::io::Error::last_os_error());
    }
    let time = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok((status, time(usage.ru_utime) + time(usage.ru_stime), usage.ru_maxrss as f64 * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_measured() {
        let sleep = |script: &str, line| measure(Command::new("sh").args(["-c", script]), line).expect("sh");
        let all = sleep("echo a; echo b", false);
        assert!(all.lines == 2 && all.peak > 100_000.0, "{all:?}");
        assert_eq!(sleep("echo a; echo b", true).lines, 1);
        assert_eq!(sleep("echo a; sleep 0.3; echo b", true).lines, 1, "killed by the closed pipe");
        assert!(measure(Command::new("sh").args(["-c", "exit 3"]), false).is_err());
    }
}
