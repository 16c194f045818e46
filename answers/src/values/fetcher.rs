//! The process that fetches files for [`super::debuginfod`]: reads build ids, one a line, and answers each by a line. It
//! reads no tape; `curl` speaks with servers, with bounds of size and time, and only to http and https.
//!
//! The variables of debuginfod's own client hold: DEBUGINFOD_TIMEOUT (seconds in which 100 KiB must come),
//! DEBUGINFOD_MAXTIME (seconds for a file), DEBUGINFOD_MAXSIZE (bytes of a file). So does its layout: CACHE/HEX/debuginfo.

use std::fs::File;
use std::io::{self, BufRead as _, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use systape_symbols::{has_build_id, open_regular_no_follow};

use super::debuginfod::{LONGEST, make};

/// Longest build id in bytes.
const LONGEST_ID: usize = 64;
/// Kinds of files, the better one first.
const KINDS: [&str; 2] = ["debuginfo", "executable"];
/// Most bytes of all files of a run.
const MOST_BYTES: u64 = 8 << 30;
/// Bytes that must come in [`Limits::patience`].
const PROGRESS: u64 = 100 << 10;
/// curl's exit statuses of servers that are not asked again: not found, refused, too slow, no TLS.
const GIVES_UP: [i32; 5] = [5, 6, 7, 28, 35];

/// Limits of one file.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Seconds.
    patience: u64,
    /// Seconds.
    longest: u64,
    /// Bytes.
    largest: u64,
}

impl Limits {
    fn of_environment() -> Self {
        let set = |name: &str, default: u64| {
            std::env::var(name)
                .ok()
                .and_then(|value| value.trim().parse().ok())
                .filter(|value| *value > 0)
                .unwrap_or(default)
        };
        Self {
            patience: set("DEBUGINFOD_TIMEOUT", 90),
            longest: set("DEBUGINFOD_MAXTIME", 600),
            largest: set("DEBUGINFOD_MAXSIZE", 2 << 30),
        }
    }
}

/// A server.
#[derive(Debug)]
struct Server {
    url: String,
    /// Why it is not asked any more.
    gone: Option<String>,
}

/// Why a file did not come.
enum FetchFailure {
    /// The server does not have it.
    Absent,
    /// Something else.
    Why(String),
}

/// Fetches until nobody asks; the cache and the servers are the arguments behind the first.
pub fn run_fetcher() -> ExitCode {
    let mut words = std::env::args_os().skip(2);
    let Some(cache) = words.next().map(PathBuf::from) else { return ExitCode::FAILURE };
    let servers = words.filter_map(|word| word.into_string().ok()).map(|url| Server { url, gone: None });
    let mut fetcher = Fetcher { cache, servers: servers.collect(), limits: Limits::of_environment(), left: MOST_BYTES };
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = String::new();
    while input.by_ref().take(LONGEST).read_line(&mut line).is_ok_and(|read| read > 0) {
        let answer = fetcher.answer(line.trim_end());
        if output.write_all(&answer).and_then(|()| output.flush()).is_err() {
            break;
        }
        line.clear();
    }
    ExitCode::SUCCESS
}

/// What it knows from one question to the next.
#[derive(Debug)]
struct Fetcher {
    cache: PathBuf,
    servers: Vec<Server>,
    limits: Limits,
    /// Bytes that may still be fetched.
    left: u64,
}

impl Fetcher {
    /// `fPATH`, `n` (no server has it) or `eWHY`, with a newline.
    fn answer(&mut self, hex: &str) -> Vec<u8> {
        let mut line = match id_of(hex)
            .ok_or_else(|| FetchFailure::Why("no build id".to_owned()))
            .and_then(|id| self.file(hex, &id))
        {
            Ok(path) => [b"f", path.as_os_str().as_bytes()].concat(),
            Err(FetchFailure::Absent) => b"n".to_vec(),
            Err(FetchFailure::Why(why)) => format!("e{}", why.replace('\n', " ")).into_bytes(),
        };
        line.truncate(LONGEST as usize - 1);
        line.push(b'\n');
        line
    }

    /// The file with this build id, from the cache or a server.
    fn file(&mut self, hex: &str, id: &[u8]) -> Result<PathBuf, FetchFailure> {
        let dir = self.cache.join(hex);
        let kept = KINDS.map(|kind| dir.join(kind)).into_iter().find(|path| is_it(path, id));
        if let Some(path) = kept {
            return Ok(path);
        }
        make(&dir).map_err(|error| FetchFailure::Why(format!("cannot make {}: {error}", dir.display())))?;
        let mut why = None;
        for kind in KINDS {
            for at in 0..self.servers.len() {
                match self.fetch(at, &dir, hex, kind, id) {
                    Ok(path) => return Ok(path),
                    Err(FetchFailure::Absent) => {}
                    Err(FetchFailure::Why(text)) => why = Some(text),
                }
            }
        }
        // one that is not empty stays
        let _ = std::fs::remove_dir(&dir);
        Err(why.map_or(FetchFailure::Absent, FetchFailure::Why))
    }

    /// Fetches one file from server `at`.
    fn fetch(&mut self, at: usize, dir: &Path, hex: &str, kind: &str, id: &[u8]) -> Result<PathBuf, FetchFailure> {
        let Server { url, gone } = &mut self.servers[at];
        if let Some(why) = gone {
            return Err(FetchFailure::Why(why.clone()));
        }
        let url = url.trim_end_matches('/').to_owned();
        let Limits { patience, longest, largest } = self.limits;
        let largest = largest.min(self.left);
        if largest == 0 {
            return Err(FetchFailure::Why("8 GiB were fetched, which is enough for a run".to_owned()));
        }
        let fail = |error: io::Error| FetchFailure::Why(format!("cannot keep it in {}: {error}", dir.display()));
        let mut file = tempfile::Builder::new().prefix(".systape-").tempfile_in(dir).map_err(fail)?;
        let secure = if url.starts_with("https://") { "=https" } else { "=http,https" };
        let mut curl = Command::new("curl")
            // without the user's file of options
            .args(["-q", "--silent", "--show-error", "--fail", "--location", "--max-redirs", "5", "--globoff"])
            .args(["--proto", "=http,https", "--proto-redir", secure, "--write-out", "%{stderr} %{http_code}"])
            .args(["--connect-timeout", &patience.min(15).to_string(), "--max-time", &longest.to_string()])
            .args(["--speed-time", &patience.to_string(), "--speed-limit", &(PROGRESS / patience).max(1).to_string()])
            .args(["--max-filesize", &largest.to_string(), "--", &format!("{url}/buildid/{hex}/{kind}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| FetchFailure::Why(format!("it needs the program curl: {error}")))?;
        let copied = match &mut curl.stdout {
            Some(body) => io::copy(&mut body.take(largest.saturating_add(1)), file.as_file_mut()),
            None => Ok(0),
        };
        let too_long = copied.as_ref().is_ok_and(|bytes| *bytes > largest);
        if too_long || copied.is_err() {
            // it has ended already, or ends now
            let _ = curl.kill();
        }
        let mut told = Vec::new();
        if let Some(stderr) = curl.stderr.take() {
            let _ = stderr.take(4096).read_to_end(&mut told);
        }
        let status = curl.wait().map_err(|error| FetchFailure::Why(error.to_string()))?;
        self.left -= copied.map_err(fail)?.min(self.left);
        if too_long {
            return Err(FetchFailure::Why(format!("{url} sent more than {largest} bytes (DEBUGINFOD_MAXSIZE)")));
        }
        let told = String::from_utf8_lossy(&told).trim().to_owned();
        if !status.success() {
            if told.ends_with(" 404") {
                return Err(FetchFailure::Absent);
            }
            let why = format!("{url}: {}", told.rsplit_once(' ').map_or(&*told, |(text, _)| text.trim()));
            if status.code().is_some_and(|code| GIVES_UP.contains(&code)) {
                self.servers[at].gone = Some(why.clone());
            }
            return Err(FetchFailure::Why(why));
        }
        if !has_build_id(file.as_file(), id) {
            return Err(FetchFailure::Why(format!("what {url} sent is no ELF file with this build id")));
        }
        let path = dir.join(kind);
        file.persist(&path).map_err(|error| fail(error.error))?;
        Ok(path)
    }
}

/// Whether `path` is a file with this build id; debuginfod's client keeps empty ones for what no server has.
fn is_it(path: &Path, id: &[u8]) -> bool {
    open_regular_no_follow(path).is_ok_and(|file: Option<File>| file.is_some_and(|file| has_build_id(&file, id)))
}

/// The bytes of a build id.
fn id_of(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.len().is_multiple_of(2) && hex.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let length = (2..=LONGEST_ID).contains(&(hex.len() / 2));
    (digits && length).then(|| {
        let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16));
        bytes.filter_map(Result::ok).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_build_ids_are_asked_for() {
        assert_eq!(id_of("00ff10"), Some(vec![0, 255, 16]));
        let long = "00".repeat(LONGEST_ID + 1);
        for wrong in ["", "ab", "abc", "../..", "AB00", "zz00", "ab00/", &long] {
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
    }
}
