//! The child process as its owner sees it: it is started, asked, and ended, and none of that waits for it longer than
//! asked. A child may hang in a file system that does not answer, and then SIGKILL does not end it either.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::socket;
use crate::wire::{self, MessageIn, MessageOut};

/// Longest wait at a time, so that an earlier end is noticed.
const STEP: Duration = Duration::from_millis(50);
/// A child that waits for a CPU gets so many steps more: ten seconds.
const STARVED_MAX: u32 = 200;
/// How long an ended child may take to vanish before nobody waits for it.
const VANISHES: Duration = Duration::from_millis(50);
/// Most children that were killed and do not end.
const MOST_LEFT: usize = 8;

/// Killed children that have not ended.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn left() -> MutexGuard<'static, Vec<Child>> {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    left
}

/// Number of children that were killed and cannot end: they wait for a file system that does not answer.
pub fn left_behind() -> usize {
    left().iter().filter(|child| waits_uninterrupted(child.id())).count()
}

/// Whether a process is in a wait that no signal ends.
fn waits_uninterrupted(pid: u32) -> bool {
    state(pid) == Some(b'D')
}

/// The state of a process. The name before it may contain anything.
fn state(pid: u32) -> Option<u8> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let at = stat.iter().rposition(|&b| b == b')')?;
    stat.get(at + 2).copied()
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFailure {
    /// The child said so and continues.
    Said(String),
    /// A child that is gone, or no longer trusted.
    Broken(String),
    /// A child that gave no answer in its time.
    TooLong,
    /// A question whose file could not be opened in its time; the child was not asked.
    NotOpened,
    /// The deadline passed.
    Over,
}

impl AnswerFailure {
    pub(crate) fn nonsense(what: &str) -> Self {
        Self::Broken(format!("answered nonsense: {what}"))
    }
}

/// Opens a file that only has a name so far, and sends it with a message into a socket.
pub(crate) trait Carry: fmt::Debug + Send + Sync {
    /// Does it.
    ///
    /// # Errors
    /// Nothing was sent.
    fn carry(&self, to: &UnixStream, message: &MessageOut, file: BorrowedFd<'_>) -> Result<(), AnswerFailure>;
}

/// What a child was told when it was started.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    /// Program and arguments whose main calls [`run_child`](crate::run_child).
    pub command: &'a [OsString],
    /// Most memory of its own, bytes.
    pub memory: u64,
    /// Most CPU time for a file, rounded up to seconds.
    pub cpu: Duration,
    /// Directories of separate debug files.
    pub debug_dirs: &'a [PathBuf],
    /// Others may have the CPU first.
    pub gives_way: bool,
    /// Opens what is sent to it; None = what is sent is open for reading.
    pub carrier: Option<Arc<dyn Carry>>,
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within<'a> {
    /// Time for an answer, without what the child waits for a CPU.
    pub patience: Duration,
    /// Time at which it ends in any case.
    pub deadline: &'a Deadline,
}

/// The wait for one answer.
#[derive(Debug)]
struct AnswerWait<'a> {
    deadline: &'a Deadline,
    until: Cell<Instant>,
    /// Of the child: its /proc entry has how long it waited for a CPU; 0 = there is none yet.
    pid: u32,
    begun: Instant,
    /// Looked at when the answer is not there at once: most are.
    starved: Cell<Option<SchedTimes>>,
    /// So often it has a step more when it is runnable and had a CPU for less than half of the time.
    again: Cell<u32>,
}

impl<'a> AnswerWait<'a> {
    fn new(within: Within<'a>, pid: u32) -> Self {
        let begun = Instant::now();
        let until = Cell::new(begun + within.patience);
        Self { deadline: within.deadline, until, pid, begun, starved: Cell::new(None), again: Cell::new(STARVED_MAX) }
    }

    /// The time until the next look at it.
    ///
    /// # Errors
    /// TimedOut: there is none.
    fn left(&self) -> io::Result<Option<Duration>> {
        /// Less is no time-out of a socket.
        const LEAST: Duration = Duration::from_micros(10);
        let mut left = self.left_now();
        if self.starved.get().is_none() && self.begun.elapsed() >= STEP {
            self.starved.set(times(self.pid));
        }
        if left < LEAST {
            let (now, before) = (times(self.pid), self.starved.get());
            let (ran, starved) = now.zip(before).map_or_else(Default::default, |(now, before)| {
                (now.ran.saturating_sub(before.ran), now.starved.saturating_sub(before.starved))
            });
            self.starved.set(now.zip(before).map(|(now, before)| SchedTimes { ran: before.ran, ..now }).or(now));
            self.deadline.move_by(starved);
            self.until.set(self.until.get() + starved);
            // what it waits for a CPU now is not counted before it has one
            if self.again.get() > 0 && ran < self.begun.elapsed() / 2 && state(self.pid) == Some(b'R') {
                self.again.set(self.again.get() - 1);
                self.until.set(self.until.get().max(Instant::now() + STEP));
            }
            left = self.left_now();
        }
        if left < LEAST { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }

    fn left_now(&self) -> Duration {
        let of_all = self.deadline.left().unwrap_or(STEP);
        self.until.get().saturating_duration_since(Instant::now()).min(of_all).min(STEP)
    }
}

/// What a process had of the CPUs so far (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug)]
struct SchedTimes {
    /// On a CPU.
    ran: Duration,
    /// Waiting for one, up to when it last got one.
    starved: Duration,
}

fn times(pid: u32) -> Option<SchedTimes> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
    Some(SchedTimes { ran: numbers.next()??, starved: numbers.next()?? })
}

/// A child that runs.
#[derive(Debug)]
pub(crate) struct RunningChild {
    /// None = it was ended.
    process: Option<Child>,
    socket: UnixStream,
    carrier: Option<Arc<dyn Carry>>,
}

impl RunningChild {
    /// Starts one.
    pub(crate) fn start(terms: &Terms<'_>, within: Within<'_>) -> Result<Self, AnswerFailure> {
        let mut child = Self::spawn(terms.command, terms.gives_way)?;
        child.carrier.clone_from(&terms.carrier);
        let mut setup = MessageOut::new(wire::SETUP);
        setup.u64(terms.memory);
        let cpu = terms.cpu.as_secs().saturating_add(u64::from(terms.cpu.subsec_nanos() > 0));
        setup.u32(cpu.try_into().unwrap_or(u32::MAX));
        let dirs = terms.debug_dirs.iter().map(|dir| dir.as_os_str().as_bytes());
        let dirs: Vec<&[u8]> = dirs.filter(|dir| dir.len() <= wire::LONGEST_STRING).take(64).collect();
        setup.u32(dirs.len() as u32);
        dirs.iter().for_each(|dir| setup.bytes(dir));
        let answer = child.request(&setup, None, within, &mut |_| None)?;
        if MessageIn(&answer).u32() != Some(wire::MAGIC) {
            return Err(AnswerFailure::nonsense("another program answered"));
        }
        Ok(child)
    }

    /// Starts a process, which is told nothing. It lives in a process group of its own, so that Ctrl-C does not reach it.
    pub(crate) fn spawn(command: &[OsString], gives_way: bool) -> Result<Self, AnswerFailure> {
        let cannot = |error: io::Error| AnswerFailure::Broken(format!("cannot be started: {error}"));
        if left().len() >= MOST_LEFT {
            return Err(AnswerFailure::Broken(format!(
                "is not started again: {MOST_LEFT} wait for file systems that do not answer"
            )));
        }
        let (program, arguments) = command.split_first().ok_or_else(|| cannot(io::ErrorKind::InvalidInput.into()))?;
        let (ours, theirs) = UnixStream::pair().map_err(cannot)?;
        let process = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(gives_way.then_some((wire::GIVE_WAY, "1")))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        Ok(Self { process: Some(process), socket: ours, carrier: None })
    }

    /// Whether it has not ended by itself.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    /// The answer behind its OK. `open` opens what the child wants, if that is for it. After any failure but [`AnswerFailure::Said`] the child is not to be asked again.
    pub(crate) fn request(
        &mut self,
        message: &MessageOut,
        fd: Option<BorrowedFd<'_>>,
        within: Within<'_>,
        open: &mut dyn FnMut(&Path) -> Option<File>,
    ) -> Result<Vec<u8>, AnswerFailure> {
        let wait = self.wait(within);
        let left = || wait.left();
        let broken = |this: &mut Self, error: io::Error| this.break_of(&error, within.deadline);
        match (&self.carrier, fd) {
            (Some(carrier), Some(fd)) => carrier.carry(&self.socket, message, fd)?,
            _ => {
                let sent = socket::send(&self.socket, &message.0, fd.as_slice(), &left);
                sent.map_err(|error| broken(self, error))?;
            }
        }
        for _ in 0..=wire::MOST_WANTED {
            let answer = socket::receive(&self.socket, wire::LONGEST_ANSWER, &left);
            let Some((mut answer, _)) = answer.map_err(|error| broken(self, error))? else {
                return Err(AnswerFailure::Broken(self.death()));
            };
            let mut rest = MessageIn(answer.get(1..).unwrap_or_default());
            match answer.first() {
                Some(&wire::OK) => return Ok(answer.split_off(1)),
                Some(&wire::FAILED) => {
                    let why =
                        rest.bytes(wire::LONGEST_REASON).ok_or_else(|| AnswerFailure::nonsense("a damaged reason"))?;
                    return Err(AnswerFailure::Said(String::from_utf8_lossy(why).replace(char::is_control, "?")));
                }
                Some(&wire::WANT) => {
                    let path =
                        rest.bytes(wire::LONGEST_STRING).ok_or_else(|| AnswerFailure::nonsense("a damaged path"))?;
                    let file = open(Path::new(OsStr::from_bytes(path)));
                    let carried = file.as_ref().zip(self.carrier.as_ref()).map(|(file, carrier)| {
                        carrier.carry(&self.socket, &MessageOut::new(wire::OK), file.as_fd()).is_ok()
                    });
                    if carried != Some(true) {
                        let file = file.as_ref().filter(|_| carried.is_none()).map(AsFd::as_fd);
                        let reply = MessageOut::new(if file.is_some() { wire::OK } else { wire::FAILED });
                        let sent = socket::send(&self.socket, &reply.0, file.as_slice(), &left);
                        sent.map_err(|error| broken(self, error))?;
                    }
                }
                _ => return Err(AnswerFailure::nonsense("an unknown answer")),
            }
        }
        Err(AnswerFailure::nonsense("it wants too many files"))
    }

    /// The answer of a process that opens files, and what it opened.
    pub(crate) fn opened(
        &mut self,
        message: &MessageOut,
        fds: &[BorrowedFd<'_>],
        within: Within<'_>,
    ) -> Result<(Vec<u8>, Option<OwnedFd>), AnswerFailure> {
        let wait = self.wait(within);
        let left = || wait.left();
        let sent = socket::send(&self.socket, &message.0, fds, &left);
        let answer = sent.and_then(|()| socket::receive(&self.socket, wire::LONGEST_REQUEST, &left));
        let Some((mut answer, fds)) = answer.map_err(|error| self.break_of(&error, within.deadline))? else {
            return Err(AnswerFailure::Broken(self.death()));
        };
        match answer.first() {
            Some(&wire::OK) => Ok((answer.split_off(1), fds.into_iter().next())),
            Some(&wire::FAILED) => Err(AnswerFailure::Said(String::from_utf8_lossy(&answer[1..]).into_owned())),
            _ => Err(AnswerFailure::nonsense("an unknown answer")),
        }
    }

    fn wait<'a>(&self, within: Within<'a>) -> AnswerWait<'a> {
        AnswerWait::new(within, self.process.as_ref().map_or(0, Child::id))
    }

    fn break_of(&mut self, error: &io::Error, deadline: &Deadline) -> AnswerFailure {
        match error.kind() {
            io::ErrorKind::TimedOut if deadline.is_over() => AnswerFailure::Over,
            io::ErrorKind::TimedOut => AnswerFailure::TooLong,
            io::ErrorKind::InvalidData => AnswerFailure::Broken(format!("answered nonsense: {error}")),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                AnswerFailure::Broken(self.death())
            }
            _ => AnswerFailure::Broken(format!("cannot be talked to: {error}")),
        }
    }

    /// How the process ended that closed its end of the socket.
    fn death(&mut self) -> String {
        let ended = self.process.as_mut().and_then(|process| ended_in(process, Duration::from_secs(1)));
        ended.map_or_else(|| "closed its connection".into(), describe)
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // an error: it is gone already
        let _ = process.kill();
        if ended_in(&mut process, VANISHES).is_none() {
            left().push(process);
        }
    }
}

/// The status of a process that ends in this time.
fn ended_in(process: &mut Child, time: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + time;
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
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
