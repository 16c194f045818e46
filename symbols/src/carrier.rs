//! A process that opens files and closes them: either may never end, when a file system does not answer.
//!
//! The calling process gets descriptors that only name a file (O_PATH), whose end asks no file system. To have a file read,
//! it passes that descriptor on to this process, which opens it and sends it to the one that reads.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use crate::deadline::Deadline;
use crate::process::{AnswerFailure, Carry, RunningChild, Within};
use crate::socket::{self, for_ever};
use crate::wire::{self, MessageOut};

/// Longest wait for an open file; it is halved with each that did not come, so often.
const PATIENCE: Duration = Duration::from_millis(500);
const HALVED: u32 = 3;
/// Most closes at a time, in the process: with more it ends, and another takes its place.
const MOST_CLOSES: usize = 64;
/// Bytes of the stack of a thread that closes a file.
const STACK: usize = 64 << 10;

/// Asks the process. Who has the same one shares it.
#[derive(Clone, Debug)]
pub struct Carrier(Arc<Mutex<CarrierState>>);

#[derive(Debug)]
struct CarrierState {
    command: Vec<OsString>,
    running: Option<RunningChild>,
    hangs: u32,
}

/// Why a file is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Reason in words.
    pub why: String,
    /// Whether it would not be there the next time either.
    pub hangs: bool,
}

impl From<AnswerFailure> for Unread {
    fn from(failure: AnswerFailure) -> Self {
        let hangs = matches!(failure, AnswerFailure::TooLong | AnswerFailure::NotOpened | AnswerFailure::Over);
        let why = match failure {
            AnswerFailure::Said(why) => why,
            AnswerFailure::Broken(why) => format!("the process that reads it {why}"),
            AnswerFailure::NotOpened => "its file system takes too long to open it".into(),
            AnswerFailure::TooLong | AnswerFailure::Over => "its file system takes too long to read it".into(),
        };
        Self { why, hangs }
    }
}

impl Carrier {
    /// `command` starts the process: a program and arguments whose main calls [`run_carrier`].
    pub fn new(command: Vec<OsString>) -> Self {
        Self(Arc::new(Mutex::new(CarrierState { command, running: None, hangs: 0 })))
    }

    /// Starts it now, as a child of this thread, with which it ends; otherwise the first file does.
    pub fn begin(&self) {
        let _ = self.inner().start();
    }

    /// Has something opened: what it is, the function of [`run_carrier`] knows. What comes with the file is that function's.
    ///
    /// # Errors
    /// See [`Unread`].
    pub fn open(&self, what: &[u8]) -> Result<(Vec<u8>, File), Unread> {
        let mut request = MessageOut::new(wire::OPENS);
        request.raw(what);
        let (answer, file) = self.inner().ask(&request, &[]).map_err(|failure| match failure {
            AnswerFailure::TooLong => AnswerFailure::NotOpened.into(),
            failure => Unread::from(failure),
        })?;
        file.map(|file| (answer, file.into())).ok_or_else(|| AnswerFailure::nonsense("no file").into())
    }

    fn inner(&self) -> MutexGuard<'_, CarrierState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carry for Carrier {
    fn carry(&self, to: &UnixStream, message: &MessageOut, file: BorrowedFd<'_>) -> Result<(), AnswerFailure> {
        let mut request = MessageOut::new(wire::CARRY);
        request.raw(&message.0);
        self.inner().ask(&request, &[file, to.as_fd()]).map(drop).map_err(|failure| match failure {
            AnswerFailure::TooLong => AnswerFailure::NotOpened,
            AnswerFailure::Broken(why) => AnswerFailure::Said(format!("the process that opens it {why}")),
            failure => failure,
        })
    }
}

impl CarrierState {
    fn start(&mut self) -> Result<&mut RunningChild, AnswerFailure> {
        if !self.running.as_mut().is_some_and(RunningChild::is_alive) {
            self.running = Some(RunningChild::spawn(&self.command, false)?);
        }
        self.running.as_mut().ok_or_else(|| AnswerFailure::Broken("is not there".into()))
    }

    fn ask(
        &mut self,
        request: &MessageOut,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Vec<u8>, Option<OwnedFd>), AnswerFailure> {
        let patience = PATIENCE / (1 << self.hangs.min(HALVED));
        let running = self.start()?;
        let answer = running.opened(request, fds, Within { patience, deadline: &Deadline::default() });
        if let Err(failure) = &answer {
            self.hangs += u32::from(*failure == AnswerFailure::TooLong);
            if !matches!(failure, AnswerFailure::Said(_)) {
                self.running = None;
            }
        }
        answer
    }
}

/// Opens what it is asked for; the bytes go with the file.
pub type OpenByName = fn(&[u8]) -> Result<(Vec<u8>, File), String>;

/// The process: answers requests from its standard input, a socket, until that ends.
pub fn run_carrier(open: OpenByName) -> ExitCode {
    if crate::child::stand_alone().is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else { return ExitCode::FAILURE };
    while let Ok(Some((message, fds))) = socket::receive(&socket, wire::LONGEST_REQUEST, &for_ever) {
        let answer = match message.split_first() {
            Some((&wire::OPENS, what)) => named(open, what),
            Some((&wire::CARRY, message)) => carry(message, &fds).map(|()| (Vec::new(), None)),
            _ => return ExitCode::FAILURE,
        };
        let sent = match &answer {
            Ok((bytes, file)) => {
                let mut out = MessageOut::new(wire::OK);
                out.raw(bytes);
                let file: Option<BorrowedFd<'_>> = file.as_ref().map(AsFd::as_fd);
                socket::send(&socket, &out.0, file.as_slice(), &for_ever)
            }
            Err(why) => {
                let mut out = MessageOut::new(wire::FAILED);
                out.raw(&why.as_bytes()[..why.len().min(wire::LONGEST_REASON)]);
                socket::send(&socket, &out.0, &[], &for_ever)
            }
        };
        if sent.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The path of an open file.
fn path_of(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens, and gives the name of what is open. It is closed before the answer: who asked is told here if that never ends.
fn named(open: OpenByName, what: &[u8]) -> Result<(Vec<u8>, Option<File>), String> {
    let (bytes, file) = open(what)?;
    let name = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path_of(&file));
    drop(file);
    name.map(|name| (bytes, Some(name))).map_err(|error| format!("it cannot be kept: {error}"))
}

fn carry(message: &[u8], fds: &[OwnedFd]) -> Result<(), String> {
    let [file, socket] = fds else { return Err("no file and no socket".into()) };
    let file = File::open(path_of(file)).map_err(|error| format!("it cannot be opened: {error}"))?;
    let socket = socket.try_clone().map(UnixStream::from).map_err(|error| error.to_string())?;
    let sent = socket::send(&socket, message, &[file.as_fd()], &for_ever).map_err(|error| error.to_string());
    close(file);
    sent
}

/// Closes a file while others are opened.
fn close(file: File) {
    static CLOSES: AtomicUsize = AtomicUsize::new(0);
    if CLOSES.fetch_add(1, Ordering::Relaxed) >= MOST_CLOSES {
        std::process::exit(1);
    }
    let run = move || {
        drop(file);
        CLOSES.fetch_sub(1, Ordering::Relaxed);
    };
    // without a thread it is closed here, where the closure is dropped
    if thread::Builder::new().stack_size(STACK).spawn(run).is_err() {
        CLOSES.fetch_sub(1, Ordering::Relaxed);
    }
}
