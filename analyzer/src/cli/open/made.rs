//! What is served and is not there yet: made by a second process of this program, in the sandbox of all reports. This one parses no tape.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::http;

/// A file without a name that `analyze WORDS` wrote of `tape`, so that nothing is left of it however this process ends; `confined`: it is
/// written in the sandbox.
///
/// # Errors
/// It cannot be written, or the program says that it has no answer.
pub(super) fn made(words: &[&str], tape: &Path, confined: bool) -> Result<File> {
    let path: PathBuf = std::env::temp_dir().join(format!("systape-{}", http::token()?));
    let this = std::env::current_exe().context("cannot find this program")?;
    let mut program = Command::new(this);
    // what it prints is no address
    program.args(words).arg("-i").arg(tape).arg("-o").arg(&path).stdout(Stdio::null());
    if !confined {
        program.arg("--no-sandbox");
    }
    let ended = program.status();
    let file = File::open(&path);
    // it is not there if it could not be made
    let _ = fs::remove_file(&path);
    let words = words.join(" ");
    if !ended.with_context(|| format!("cannot start 'analyze {words}'"))?.success() {
        bail!("'analyze {words}' wrote nothing");
    }
    file.with_context(|| format!("cannot read {}", path.display()))
}
