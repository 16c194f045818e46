//! The process that starts full recordings, one after the other. It keeps the rights that the recorder gives up.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{EscalationSettings, tape_name};
use crate::own::say::say;

/// The first argument that makes `record` that process. Behind it come the tape of the looks and the options of full recordings.
pub const WORD: &str = "--start-full-recordings";
/// Exit status of a full recording that nobody asked for.
pub(crate) const NOT_ASKED: u8 = 3;
/// One that ends sooner was not able to begin.
const SOON: Duration = Duration::from_secs(1);
/// So many of these in a row, and there is no other.
const MOST_FAILED: u32 = 3;
/// Size of each of its rings: it waits all the time, and holds them.
const RINGS: &str = "4M";

/// Starts that process; returns the way to full recordings. `tape` is that of the looks.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn start(settings: &EscalationSettings, tape: &Path) -> Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair().context("cannot make a socket")?;
    let program = std::env::current_exe().context("cannot find this program")?;
    Command::new(program)
        .arg(WORD)
        .arg(tape)
        .arg(format!("--for={}ms", settings.length.as_millis()))
        .args(&settings.options)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        // Ctrl-C is for the recorder, which ends these
        .process_group(0)
        .spawn()
        .context("cannot start the process for full recordings")?;
    Ok(ours)
}

/// Runs it, until the recorder has gone.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(tape) = arguments.next().map(PathBuf::from) else { return ExitCode::FAILURE };
    let options: Vec<OsString> = arguments.collect();
    let Ok(program) = std::env::current_exe() else { return ExitCode::FAILURE };
    let mut failed = 0;
    let mut number = 1;
    while failed < MOST_FAILED {
        while tape_name(&tape, number).exists() {
            number += 1;
        }
        let name = tape_name(&tape, number);
        let began = Instant::now();
        let status = Command::new(&program)
            .args(["-q", "--armed", "-m", RINGS, "-o"])
            .arg(&name)
            .args(&options)
            .stdout(Stdio::null())
            .status();
        match status.ok().and_then(|status| status.code()) {
            Some(code) if code == i32::from(NOT_ASKED) => {
                fs::remove_file(&name).ok();
                return ExitCode::SUCCESS;
            }
            _ if began.elapsed() < SOON => failed += 1,
            _ => failed = 0,
        }
    }
    say("full recordings cannot be started: what looks find is not followed by one any more");
    ExitCode::FAILURE
}
