//! Files with symbols from servers of debuginfod, by build id.
//!
//! Another process of this program fetches them (`fetcher.rs`). It begins before rights are given up, gets
//! build ids through a pipe and answers each with a path in the cache, so that whoever reads a tape has neither network nor
//! files to write.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

use crate::values::bad_usage::BadUsage;

/// The hidden first argument with which `analyze` starts itself to fetch files.
pub const FETCHER: &str = "__fetch-debug-files";

/// Most bytes of a line, in either direction.
pub(super) const LONGEST: u64 = 16 << 10;

/// Where files come from and where they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebuginfodSources {
    /// Servers, in the order in which they are asked.
    pub urls: Vec<String>,
    /// The directory that other programs with debuginfod use too.
    pub cache: PathBuf,
}

impl DebuginfodSources {
    /// The servers of `typed`, or of DEBUGINFOD_URLS if that is empty.
    ///
    /// # Errors
    /// There are none, or there is no place for a cache.
    pub fn of(typed: &str) -> Result<Self> {
        let set = std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
        let words = if typed.is_empty() { &set } else { typed };
        // what signatures a server must give is for clients that check them
        let urls: Vec<String> =
            words.split_whitespace().filter(|word| !word.starts_with("ima:")).map(str::to_owned).collect();
        if urls.is_empty() {
            return refused(
                "DEBUGINFOD_URLS is empty: set it, or name a server, --debuginfod=https://debuginfod.elfutils.org",
            );
        }
        if let Some(url) = urls.iter().find(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return refused(&format!("'{url}' is no server: its name begins with https:// or http://"));
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("DEBUGINFOD_CACHE_PATH").or_else(|| {
            set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).map(|dir| dir.join("debuginfod_client"))
        });
        match cache {
            Some(cache) if cache.is_absolute() && !cache.as_os_str().as_encoded_bytes().contains(&b'\n') => {
                Ok(Self { urls, cache })
            }
            Some(cache) => refused(&format!("the cache {} is no absolute path", cache.display())),
            None => refused("there is no place to keep files: set DEBUGINFOD_CACHE_PATH to a directory"),
        }
    }
}

/// Bad usage.
fn refused<T>(why: &str) -> Result<T> {
    Err(BadUsage(format!("--debuginfod: {why}")).into())
}

/// The process that fetches.
#[derive(Debug)]
struct Fetching {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// It, if there is one.
static FETCHING: Mutex<Option<Fetching>> = Mutex::new(None);

/// Begins to fetch from `sources`.
///
/// # Errors
/// The cache or the process cannot be made.
pub fn begin(sources: &DebuginfodSources) -> Result<()> {
    make(&sources.cache).with_context(|| format!("--debuginfod: cannot make {}", sources.cache.display()))?;
    // not current_exe: the file may have been replaced since
    let words = [OsString::from(FETCHER), sources.cache.clone().into()].into_iter();
    let mut child = Command::new("/proc/self/exe")
        .args(words.chain(sources.urls.iter().map(OsString::from)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("--debuginfod: cannot begin a process that fetches")?;
    if let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) {
        let fetching = Fetching { child, ask, answers: BufReader::new(answers) };
        *FETCHING.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetching);
    }
    Ok(())
}

/// Makes `dir`, readable by its owner alone.
pub(super) fn make(dir: &Path) -> std::io::Result<()> {
    let mut new = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut new, 0o700);
    new.recursive(true).create(dir)
}

/// Whether files are fetched.
pub fn is_on() -> bool {
    FETCHING.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// The file with that build id; None: no server has one.
///
/// # Errors
/// Why that is not known, in words.
pub fn file(build_id: &[u8]) -> Result<Option<PathBuf>, String> {
    let mut fetching = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Fetching { ask, answers, .. }) = &mut *fetching else { return Ok(None) };
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut line = Vec::new();
    let asked = ask.write_all(format!("{hex}\n").as_bytes()).and_then(|()| ask.flush());
    let answered = asked.and_then(|()| answers.take(LONGEST).read_until(b'\n', &mut line));
    let answer = line.strip_suffix(b"\n").and_then(|line| line.split_first());
    match (answered, answer) {
        (Ok(_), Some((b'f', path))) => {
            #[cfg(unix)]
            use std::os::unix::ffi::OsStrExt as _;
            #[cfg(target_os = "wasi")]
            use std::os::wasi::ffi::OsStrExt as _;
            Ok(Some(std::ffi::OsStr::from_bytes(path).into()))
        }
        (Ok(_), Some((b'n', _))) => Ok(None),
        (Ok(_), Some((b'e', why))) => Err(String::from_utf8_lossy(why).into_owned()),
        _ => {
            // without it there is nobody to ask
            *fetching = None;
            Err("the process that fetches has ended".to_owned())
        }
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        // it ends when nobody asks; one that waits for a server ends with this program's group, or by its time-out
        let _ = self.child.try_wait();
    }
}
