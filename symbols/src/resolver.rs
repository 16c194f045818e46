//! The child process that parses ELF files, and its requests.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use systape_format::model::Function;

use crate::socket;
use crate::wire::{self, In, Out};

/// Where distributions put debug files; searched last.
const DEFAULT_DEBUG_DIR: &str = "/usr/lib/debug";
/// After this many files in a row that killed the child, the cause is another one.
const MOST_DEATHS: u32 = 16;
/// Most bytes of names of a file for each requested offset ...
const BYTES_PER_OFFSET: usize = 2048;
/// ... and so many more.
const BYTES_PER_FILE: usize = 16 << 20;

/// A file with names.
#[derive(Debug)]
pub struct File<'a> {
    /// The file, open for reading.
    pub fd: BorrowedFd<'a>,
    /// Its path, for messages and for `.gnu_debuglink`.
    pub path: &'a Path,
    /// Its build id; empty = none.
    pub build_id: &'a [u8],
}

/// Limits for a file.
#[derive(Clone, Copy, Debug)]
pub struct ResolverLimits {
    /// Most memory of the child, bytes; files it maps are not counted.
    pub memory: u64,
    /// Most time for a file, including all its offsets; as much CPU time.
    pub time: Duration,
}

impl Default for ResolverLimits {
    /// 2 GiB, 30 s.
    fn default() -> Self {
        Self { memory: 2 << 30, time: Duration::from_secs(30) }
    }
}

/// Asks a child process for names.
#[derive(Debug)]
pub struct Resolver {
    command: Vec<OsString>,
    debug_dirs: Vec<PathBuf>,
    limits: ResolverLimits,
    child: Option<Running>,
    /// In a row.
    deaths: u32,
    last_death: String,
}

#[derive(Debug)]
struct Running {
    process: Child,
    socket: UnixStream,
}

/// Why there are no names.
enum Failure {
    /// The child said so and continues.
    Said(String),
    /// It is gone, or no longer trusted.
    Broken(String),
}

impl Resolver {
    /// `command` starts the child: a program and arguments whose main calls [`run_child`](crate::run_child). `debug_dirs` are searched for
    /// separate debug files, `.build-id/xx/yyyy.debug` and `.gnu_debuglink`; `/usr/lib/debug` is searched after them.
    ///
    /// The child starts with the first file. It lives in a process group of its own, so that Ctrl-C does not reach it.
    pub fn new(command: Vec<OsString>, debug_dirs: Vec<PathBuf>) -> Self {
        Self::with_limits(command, debug_dirs, ResolverLimits::default())
    }

    /// As [`new`](Self::new), with other limits.
    pub fn with_limits(command: Vec<OsString>, mut debug_dirs: Vec<PathBuf>, limits: ResolverLimits) -> Self {
        if !debug_dirs.iter().any(|dir| dir == Path::new(DEFAULT_DEBUG_DIR)) {
            debug_dirs.push(DEFAULT_DEBUG_DIR.into());
        }
        Self { command, debug_dirs, limits, child: None, deaths: 0, last_death: String::new() }
    }

    /// The functions at each of `offsets` (of the file), the innermost inlined one first; an empty list = there is no name.
    ///
    /// The line of each is the current place in it: the place itself in the innermost function, the call in the others.
    /// A file's build id must be the given one, if there is one. A separate debug file can replace its program: see
    /// [`DebugDirs`](crate::DebugDirs).
    ///
    /// # Errors
    /// Why the file gives no names at all, in words.
    pub fn look_up(&mut self, file: &File<'_>, offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        let mut open = Out::new(wire::OPEN);
        open.bytes(file.build_id);
        let path = file.path.as_os_str().as_bytes();
        open.bytes(if path.len() <= wire::LONGEST_STRING { path } else { b"" });
        self.look_up_in(&open, file.fd, offsets)
    }

    /// The functions at each of `addresses`, by a perf map ([`PerfMap`](crate::PerfMap)); an empty list = there is no name.
    ///
    /// # Errors
    /// Why the map gives no names at all, in words.
    pub fn look_up_map(&mut self, map: BorrowedFd<'_>, addresses: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        self.look_up_in(&Out::new(wire::MAP), map, addresses)
    }

    /// `open` is the request that goes with the file.
    fn look_up_in(&mut self, open: &Out, fd: BorrowedFd<'_>, offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        if offsets.is_empty() {
            return Ok(Vec::new());
        }
        if self.deaths >= MOST_DEATHS {
            return Err(format!(
                "the symbol reader failed {MOST_DEATHS} times in a row and is not started again; the last time {}",
                self.last_death
            ));
        }
        let until = Instant::now() + self.limits.time;
        match self.ask(open, fd, offsets, until) {
            Ok(names) => {
                self.deaths = 0;
                Ok(names)
            }
            Err(Failure::Said(why)) => {
                self.deaths = 0;
                Err(why)
            }
            Err(Failure::Broken(why)) => {
                self.deaths += 1;
                self.child = None;
                self.last_death.clone_from(&why);
                Err(format!("the symbol reader {why}"))
            }
        }
    }

    fn ask(
        &mut self,
        open: &Out,
        fd: BorrowedFd<'_>,
        offsets: &[u64],
        until: Instant,
    ) -> Result<Vec<Vec<Function>>, Failure> {
        // One that ended between files did not fail at this one.
        if self.child.as_mut().is_some_and(|child| !matches!(child.process.try_wait(), Ok(None))) {
            self.child = None;
        }
        if self.child.is_none() {
            self.child = Some(self.start(until)?);
        }
        let child = self.child.as_mut().expect("just started");
        child.request(open, Some(fd), until)?;
        let names = child.names(offsets, until);
        // A child that dies of closing a file gave good names before.
        if !matches!(names, Err(Failure::Broken(_))) && child.request(&Out::new(wire::CLOSE), None, until).is_err() {
            self.child = None;
        }
        names
    }

    fn start(&self, until: Instant) -> Result<Running, Failure> {
        let cannot = |error: io::Error| Failure::Broken(format!("cannot be started: {error}"));
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| cannot(io::ErrorKind::InvalidInput.into()))?;
        let (ours, theirs) = UnixStream::pair().map_err(cannot)?;
        let process = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let mut child = Running { process, socket: ours };
        let mut setup = Out::new(wire::SETUP);
        setup.u64(self.limits.memory);
        setup.u32(self.limits.time.as_secs().try_into().unwrap_or(u32::MAX));
        let dirs: Vec<&[u8]> = self.debug_dirs.iter().map(|dir| dir.as_os_str().as_bytes()).collect();
        let dirs: Vec<&[u8]> = dirs.into_iter().filter(|d| d.len() <= wire::LONGEST_STRING).take(64).collect();
        setup.u32(dirs.len() as u32);
        dirs.iter().for_each(|dir| setup.bytes(dir));
        let answer = child.request(&setup, None, until)?;
        if In(&answer).u32() != Some(wire::MAGIC) {
            return Err(nonsense("another program answered"));
        }
        Ok(child)
    }
}

fn nonsense(what: &str) -> Failure {
    Failure::Broken(format!("answered nonsense: {what}"))
}

impl Running {
    fn names(&mut self, offsets: &[u64], until: Instant) -> Result<Vec<Vec<Function>>, Failure> {
        let mut names = Vec::with_capacity(offsets.len());
        let mut bytes_left = BYTES_PER_FILE.saturating_add(BYTES_PER_OFFSET.saturating_mul(offsets.len()));
        while names.len() < offsets.len() {
            let batch = &offsets[names.len()..];
            let batch = &batch[..batch.len().min(wire::MOST_OFFSETS)];
            let mut request = Out::new(wire::NAMES);
            request.u32(batch.len() as u32);
            batch.iter().for_each(|offset| request.u64(*offset));
            let answer = self.request(&request, None, until)?;
            bytes_left = bytes_left
                .checked_sub(answer.len())
                .ok_or_else(|| Failure::Said("its names are too long, all together".into()))?;
            let mut input = In(&answer);
            let answered =
                input.count(batch.len()).filter(|n| *n > 0).ok_or_else(|| nonsense("a wrong number of names"))?;
            for _ in 0..answered {
                names.push(input.functions().ok_or_else(|| nonsense("damaged names"))?);
            }
            if !input.0.is_empty() {
                return Err(nonsense("more than was asked for"));
            }
        }
        Ok(names)
    }

    /// The answer behind its OK.
    fn request(&mut self, message: &Out, fd: Option<BorrowedFd<'_>>, until: Instant) -> Result<Vec<u8>, Failure> {
        let answer = socket::send(&self.socket, &message.0, fd, Some(until))
            .and_then(|()| socket::receive(&self.socket, wire::LONGEST_ANSWER, Some(until)));
        let (mut answer, _) = match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => return Err(Failure::Broken(self.death())),
            Err(error) => return Err(Failure::Broken(self.break_of(&error))),
        };
        match answer.first() {
            Some(&wire::OK) => Ok(answer.split_off(1)),
            Some(&wire::FAILED) => {
                let why = In(&answer[1..]).bytes(wire::LONGEST_REASON).ok_or_else(|| nonsense("a damaged reason"))?;
                Err(Failure::Said(String::from_utf8_lossy(why).replace(char::is_control, "?")))
            }
            _ => Err(nonsense("an unknown answer")),
        }
    }

    fn break_of(&mut self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::TimedOut => "took too long".into(),
            io::ErrorKind::InvalidData => format!("answered nonsense: {error}"),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => self.death(),
            _ => format!("cannot be talked to: {error}"),
        }
    }

    /// How the process ended that closed its end of the socket; kills it if it still runs.
    fn death(&mut self) -> String {
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return describe(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                _ => return "closed its connection".into(),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Errors: it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("died: signal {signal} ({})", signal_name(signal)),
        // std's exit status for a panic
        (_, Some(101)) => "died: it panicked".into(),
        (_, code) => format!("ended with status {}", code.unwrap_or(-1)),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGXCPU => "SIGXCPU",
        _ => "another one",
    }
}
