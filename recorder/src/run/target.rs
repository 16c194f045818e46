//! The command that is recorded: made while the window is closed, started once it is open.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use anyhow::{Context, Result};

use crate::config::FoundCommand;
use crate::machine::limits;
use crate::own::signals;

/// Exit status of the child when its execve fails.
const EXEC_FAILED: i32 = 126;

/// A child that waits for [`WaitingChild::go`] before it becomes the command.
#[derive(Debug)]
pub(crate) struct WaitingChild {
    pid: libc::pid_t,
    gate: Option<OwnedFd>,
    status: Option<i32>,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: fds is a valid int[2].
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: pipe2 succeeded, so both are new descriptors that nobody else owns.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

impl WaitingChild {
    /// Forks the command's process. Must be called before any thread is started: the child continues until its execve. `files` is the
    /// command's limit of open files; None = unchanged. With `spare_stdout`, because the tape goes there, the command
    /// prints to standard error.
    ///
    /// # Errors
    /// When no process or pipe can be made.
    pub(crate) fn spawn(command: &FoundCommand, files: Option<libc::rlimit>, spare_stdout: bool) -> Result<Self> {
        // everything that allocates happens before the fork
        let mut argv: Vec<*const libc::c_char> = command.argv.iter().map(|a| a.as_ptr()).collect();
        argv.push(ptr::null());
        let env: Vec<CString> = std::env::vars_os()
            .filter_map(|(k, v)| CString::new([k.as_bytes(), b"=", v.as_bytes()].concat()).ok())
            .collect();
        let mut envp: Vec<*const libc::c_char> = env.iter().map(|e| e.as_ptr()).collect();
        envp.push(ptr::null());
        let (wait, gate) = pipe().context("cannot make a pipe")?;
        // SAFETY: this process has one thread, so the child may go on; it calls only async-signal-safe functions.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error()).context("cannot fork");
        }
        if pid == 0 {
            drop(gate);
            if let Some(files) = &files {
                limits::set_files(files);
            }
            if spare_stdout {
                // SAFETY: numbers only; async-signal-safe.
                unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) };
            }
            become_command(&wait, &command.path, &argv, &envp);
        }
        Ok(Self { pid, gate: Some(gate), status: None })
    }

    /// Process id of the child.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// Lets it execute the command.
    pub(crate) fn go(&mut self) {
        let Some(gate) = self.gate.take() else { return };
        // SAFETY: one byte from a valid buffer to a descriptor that is open.
        unsafe { libc::write(gate.as_raw_fd(), b"g".as_ptr().cast(), 1) };
    }

    /// Wait status once it has ended; does not wait.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.wait(libc::WNOHANG)
    }

    /// Waits for its end.
    pub(crate) fn wait_end(&mut self) -> Option<i32> {
        self.wait(0)
    }

    fn wait(&mut self, flags: i32) -> Option<i32> {
        if self.status.is_none() {
            let mut status = 0;
            // SAFETY: status is a valid int; pid is our child and not reaped yet.
            if unsafe { libc::waitpid(self.pid, &raw mut status, flags) } == self.pid {
                self.status = Some(status);
            }
        }
        self.status
    }

    /// Sends a signal to it.
    pub(crate) fn signal(&self, signal: i32) {
        if self.status.is_none() {
            // SAFETY: pid is our child and not reaped yet, so the number is not reused.
            unsafe { libc::kill(self.pid, signal) };
        }
    }
}

/// If dropped before it was let go, the child ends by itself, because its end of the pipe reads nothing.
fn become_command(wait: &OwnedFd, path: &CString, argv: &[*const libc::c_char], envp: &[*const libc::c_char]) -> ! {
    let mut byte = 0u8;
    // SAFETY: signal(2) with numbers only; one byte into a valid buffer; execve gets NUL-terminated arrays of NUL-terminated strings that live until
    // it returns; _exit does not return.
    unsafe {
        for signal in signals::CAUGHT_HERE {
            if signals::was_ignored(signal) {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        if libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
            for signal in signals::IGNORED_HERE {
                if !signals::was_ignored(signal) {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
            libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
            let message = b"record: cannot execute the command\n";
            libc::write(2, message.as_ptr().cast(), message.len());
        }
        libc::_exit(EXEC_FAILED)
    }
}
