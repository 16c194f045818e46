//! Names of places in files, asked of a child process that parses them.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use systape_format::model::Function;

use crate::carrier::Carrier;
use crate::deadline::Deadline;
use crate::process::{AnswerFailure, RunningChild, Terms, Within};
use crate::regular::open_regular;
use crate::wire::{self, MessageIn, MessageOut};

/// Where distributions put debug files; searched last.
const DEFAULT_DEBUG_DIR: &str = "/usr/lib/debug";
/// After this many children in a row that could not be started, no more are.
const MOST_FALSE_STARTS: u32 = 16;
/// Offsets asked for at once: each answer is progress.
const BATCH: usize = 256;
/// Most bytes of names of a file for each requested offset ...
const BYTES_PER_OFFSET: usize = 2048;
/// ... and so many more.
const BYTES_PER_FILE: usize = 16 << 20;

/// A file with names.
#[derive(Debug)]
pub struct File<'a> {
    /// The file, open for reading.
    pub fd: BorrowedFd<'a>,
    /// Path of the file, for messages and for `.gnu_debuglink`.
    pub path: &'a Path,
    /// Build id of the file; empty = none.
    pub build_id: &'a [u8],
}

/// Limits for a file.
#[derive(Clone, Copy, Debug)]
pub struct ResolverLimits {
    /// Most memory of the child, bytes; files it maps are not counted.
    pub memory: u64,
    /// Most time without any answer about a file. Time that the child waits for a CPU does not count.
    pub time: Duration,
    /// Most CPU time for a file, about; whole seconds.
    pub cpu: Duration,
}

impl Default for ResolverLimits {
    /// 2 GiB, 30 s, 30 s.
    fn default() -> Self {
        Self { memory: 2 << 30, time: Duration::from_secs(30), cpu: Duration::from_secs(30) }
    }
}

/// Why a file gives no names, or no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The file is damaged, or another one: a sentence.
    Refused(String),
    /// The child died of it, or cannot be started: a sentence.
    Broken(String),
    /// A file that gave no answer for this long.
    TooLong(Duration),
    /// The time of all look-ups was over before.
    Over,
}

impl Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Broken(why) => write!(f, "the symbol reader {why}"),
            Self::TooLong(time) => {
                write!(f, "the symbol reader took too long: no answer for {} s of its time", time.as_secs_f64())
            }
            Self::Over => f.write_str("the time for names was over"),
        }
    }
}

/// Opens a regular file for reading; None = there is none.
struct Opener(Box<OpensForReader>);

/// Opens a file that the reader wants.
type OpensForReader = dyn FnMut(&Path) -> Option<fs::File> + Send;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}

/// Asks a child process for names.
#[derive(Debug)]
pub struct Resolver {
    command: Vec<OsString>,
    debug_dirs: Vec<PathBuf>,
    limits: ResolverLimits,
    opener: Opener,
    carrier: Option<Carrier>,
    child: Option<RunningChild>,
    /// In a row.
    false_starts: u32,
    last_start: String,
}

impl Resolver {
    /// `command` starts the child: a program and arguments whose main calls [`run_child`](crate::run_child). `debug_dirs` are searched for
    /// separate debug files, `.build-id/xx/yyyy.debug` and `.gnu_debuglink`; `/usr/lib/debug` is searched after them.
    ///
    /// The child starts with the first file.
    pub fn new(command: Vec<OsString>, debug_dirs: Vec<PathBuf>) -> Self {
        Self::with_limits(command, debug_dirs, ResolverLimits::default())
    }

    /// Makes one as [`new`](Self::new) does, with other limits.
    pub fn with_limits(command: Vec<OsString>, mut debug_dirs: Vec<PathBuf>, limits: ResolverLimits) -> Self {
        if !debug_dirs.iter().any(|dir| dir == Path::new(DEFAULT_DEBUG_DIR)) {
            debug_dirs.push(DEFAULT_DEBUG_DIR.into());
        }
        let opener = Opener(Box::new(|path: &Path| open_regular(path).ok().flatten()));
        Self {
            command,
            debug_dirs,
            limits,
            opener,
            carrier: None,
            child: None,
            false_starts: 0,
            last_start: String::new(),
        }
    }

    /// Separate debug files are opened by `open`, for a caller whose own opens might hang; None = it is not for the reader.
    #[must_use]
    pub fn opening_by(self, open: impl FnMut(&Path) -> Option<fs::File> + Send + 'static) -> Self {
        Self { opener: Opener(Box::new(open)), ..self }
    }

    /// The files, and what [`Self::opening_by`] gives, only have a name so far: `carrier` opens them for the reader.
    #[must_use]
    pub fn carried_by(self, carrier: Carrier) -> Self {
        Self { carrier: Some(carrier), ..self }
    }

    /// The functions at each of `offsets` (of the file), the innermost inlined one first; an empty list = there is no name.
    ///
    /// The line of each is the current place in it: the place itself in the innermost function, the call in the others.
    /// A file's build id must be the given one, if there is one. A separate debug file can replace its program: see
    /// [`DebugDirs`](crate::DebugDirs).
    ///
    /// # Errors
    /// Why the file gives no names, or not those of all offsets, in words.
    pub fn look_up(&mut self, file: &File<'_>, offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        let mut names = Vec::with_capacity(offsets.len());
        let done = self.look_up_each(file, offsets, &Deadline::default(), |mut some| names.append(&mut some));
        done.map(|()| names).map_err(|why| why.to_string())
    }

    /// Looks up as [`look_up`](Self::look_up) does; passes the names to `take` in the order of `offsets`, some at a time, until
    /// `deadline`.
    ///
    /// # Errors
    /// Why the file gives no names, or none of the offsets after those that `take` got.
    pub fn look_up_each(
        &mut self,
        file: &File<'_>,
        offsets: &[u64],
        deadline: &Deadline,
        take: impl FnMut(Vec<Vec<Function>>),
    ) -> Result<(), GivenUp> {
        let mut open = MessageOut::new(wire::OPEN);
        open.bytes(file.build_id);
        let path = file.path.as_os_str().as_bytes();
        open.bytes(if path.len() <= wire::LONGEST_STRING { path } else { b"" });
        self.look_up_in(&open, (file.fd, Some(file.path)), offsets, deadline, take)
    }

    /// Looks up, as [`look_up_each`](Self::look_up_each) does, addresses by a perf map ([`PerfMap`](crate::PerfMap)).
    ///
    /// # Errors
    /// As [`look_up_each`](Self::look_up_each).
    pub fn look_up_map(
        &mut self,
        map: BorrowedFd<'_>,
        addresses: &[u64],
        deadline: &Deadline,
        take: impl FnMut(Vec<Vec<Function>>),
    ) -> Result<(), GivenUp> {
        self.look_up_in(&MessageOut::new(wire::MAP), (map, None), addresses, deadline, take)
    }

    /// `open` is the request that goes with the file, which has this path.
    fn look_up_in(
        &mut self,
        open: &MessageOut,
        file: (BorrowedFd<'_>, Option<&Path>),
        offsets: &[u64],
        deadline: &Deadline,
        take: impl FnMut(Vec<Vec<Function>>),
    ) -> Result<(), GivenUp> {
        if offsets.is_empty() {
            return Ok(());
        }
        if deadline.is_over() {
            return Err(GivenUp::Over);
        }
        let within = Within { patience: self.limits.time, deadline };
        let asked = self.ask(open, file, offsets, within, take);
        // A child that dies of closing a file gave good names before.
        let goes_on = matches!(asked, Ok(()) | Err(AnswerFailure::Said(_) | AnswerFailure::NotOpened));
        let closed = |child: &mut RunningChild| {
            child.request(&MessageOut::new(wire::CLOSE), None, within, &mut |_| None).is_ok()
        };
        if !(goes_on && self.child.as_mut().is_some_and(closed)) {
            self.child = None;
        }
        asked.map_err(|failure| match failure {
            AnswerFailure::Said(why) => GivenUp::Refused(why),
            AnswerFailure::NotOpened => GivenUp::Refused("its file system takes too long to open it".into()),
            AnswerFailure::Broken(why) => GivenUp::Broken(why),
            AnswerFailure::TooLong => GivenUp::TooLong(self.limits.time),
            AnswerFailure::Over => GivenUp::Over,
        })
    }

    fn ask(
        &mut self,
        open: &MessageOut,
        (fd, path): (BorrowedFd<'_>, Option<&Path>),
        offsets: &[u64],
        within: Within<'_>,
        take: impl FnMut(Vec<Vec<Function>>),
    ) -> Result<(), AnswerFailure> {
        // One that ended between files did not fail at this one.
        if !self.child.as_mut().is_some_and(RunningChild::is_alive) {
            self.child = None;
            self.start(within)?;
        }
        let Self { child, opener, debug_dirs, .. } = self;
        let Some(child) = child else { return Err(AnswerFailure::Broken("is not there".into())) };
        let mut wanted =
            |wanted: &Path| path.filter(|path| is_for(wanted, path, debug_dirs)).and_then(|_| opener.0(wanted));
        child.request(open, Some(fd), within, &mut wanted)?;
        names(child, offsets, within, &mut wanted, take)
    }

    fn start(&mut self, within: Within<'_>) -> Result<(), AnswerFailure> {
        if self.false_starts >= MOST_FALSE_STARTS {
            return Err(AnswerFailure::Broken(format!(
                "could not be started {MOST_FALSE_STARTS} times in a row and is not tried again; the last time it {}",
                self.last_start
            )));
        }
        let Self { command, debug_dirs, limits, carrier, .. } = self;
        let carrier = carrier.clone().map(|carrier| Arc::new(carrier) as _);
        let terms = Terms { command, memory: limits.memory, cpu: limits.cpu, debug_dirs, gives_way: true, carrier };
        match RunningChild::start(&terms, within) {
            Ok(child) => {
                self.child = Some(child);
                self.false_starts = 0;
                Ok(())
            }
            Err(failure) => {
                if let AnswerFailure::Broken(why) = &failure {
                    self.false_starts += 1;
                    self.last_start.clone_from(why);
                }
                Err(failure)
            }
        }
    }
}

/// Whether a file that the child wants may be the debug file of the one at `path`: it is in a directory of debug files, or where `.gnu_debuglink`
/// points to. The child may be in the hands of a file that it read, and then wants any.
fn is_for(wanted: &Path, path: &Path, debug_dirs: &[PathBuf]) -> bool {
    let plain =
        wanted.is_absolute() && wanted.components().all(|c| matches!(c, Component::Normal(_) | Component::RootDir));
    let beside = path.parent().filter(|dir| dir.is_absolute());
    let of_link = [beside.map(Path::to_path_buf), beside.map(|dir| dir.join(".debug"))];
    let in_debug_dir = || debug_dirs.iter().any(|dir| wanted.starts_with(dir));
    plain && (in_debug_dir() || of_link.iter().flatten().any(|dir| wanted.parent() == Some(dir)))
}

/// Passes the names at `offsets` of the open file to `take`, some at a time.
fn names(
    child: &mut RunningChild,
    offsets: &[u64],
    within: Within<'_>,
    wanted: &mut dyn FnMut(&Path) -> Option<fs::File>,
    mut take: impl FnMut(Vec<Vec<Function>>),
) -> Result<(), AnswerFailure> {
    let mut rest = offsets;
    let mut bytes_left = BYTES_PER_FILE.saturating_add(BYTES_PER_OFFSET.saturating_mul(offsets.len()));
    while !rest.is_empty() {
        let batch = &rest[..rest.len().min(BATCH)];
        let mut request = MessageOut::new(wire::NAMES);
        request.u32(batch.len() as u32);
        batch.iter().for_each(|offset| request.u64(*offset));
        let answer = child.request(&request, None, within, wanted)?;
        bytes_left = bytes_left
            .checked_sub(answer.len())
            .ok_or_else(|| AnswerFailure::Said("its names are too long, all together".into()))?;
        let names = parse_names(&answer, batch.len())?;
        rest = &rest[names.len()..];
        take(names);
    }
    Ok(())
}

/// Names of an answer: at least one, at most `most`.
pub(crate) fn parse_names(answer: &[u8], most: usize) -> Result<Vec<Vec<Function>>, AnswerFailure> {
    let mut input = MessageIn(answer);
    let answered = input.count(most).filter(|n| *n > 0);
    let answered = answered.ok_or_else(|| AnswerFailure::nonsense("a wrong number of names"))?;
    let mut names = Vec::with_capacity(answered);
    for _ in 0..answered {
        names.push(input.functions().ok_or_else(|| AnswerFailure::nonsense("damaged names"))?);
    }
    if !input.0.is_empty() {
        return Err(AnswerFailure::nonsense("more than was asked for"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_gets_debug_files_only() {
        let dirs = [PathBuf::from("/usr/lib/debug")];
        let is_for = |wanted: &str| is_for(Path::new(wanted), Path::new("/opt/a/program"), &dirs);
        for wanted in ["/usr/lib/debug/.build-id/ab/cd.debug", "/opt/a/program.debug", "/opt/a/.debug/program.debug"] {
            assert!(is_for(wanted), "{wanted}");
        }
        for wanted in [
            "/etc/shadow",
            "/usr/lib/debug/../../../etc/shadow",
            "/opt/a/../../etc/shadow",
            "/opt/a/b/c",
            "/opt/b",
            "program.debug",
            "../program.debug",
            "",
            "/",
        ] {
            assert!(!is_for(wanted), "{wanted}");
        }
    }
}
