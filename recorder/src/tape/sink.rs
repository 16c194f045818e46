//! The output: a file, or whatever standard output is.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State of the output, for other threads.
#[derive(Debug, Default)]
pub(crate) struct OutputState {
    /// Bytes taken so far.
    pub accepted: AtomicU64,
    /// A write is in progress.
    pub waiting: AtomicBool,
}

impl OutputState {
    /// Runs `work`, which may wait for the output.
    pub(crate) fn wait<T>(&self, work: impl FnOnce() -> T) -> T {
        self.waiting.store(true, Ordering::Relaxed);
        let done = work();
        self.waiting.store(false, Ordering::Relaxed);
        done
    }
}

/// An open output. Nothing is buffered here: written data survives this process.
#[derive(Debug)]
pub(crate) struct TapeSink {
    file: File,
    regular: bool,
    /// It was made by a path; standard output may have no path.
    named: bool,
    flow: Arc<OutputState>,
}

impl TapeSink {
    /// Writes to `file`, whatever it is.
    ///
    /// # Errors
    /// When the kernel cannot say what it is.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let regular = file.metadata()?.is_file();
        Ok(Self { file, regular, named: false, flow: Arc::default() })
    }

    /// Writes to a file made by a path, which must still have one at the end.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn named(file: File) -> io::Result<Self> {
        Ok(Self { named: true, ..Self::new(file)? })
    }

    /// Fails if no directory has the file any more, so that its contents are gone once it is closed. A new name is
    /// enough.
    ///
    /// # Errors
    /// When it was removed, or the kernel cannot say.
    pub(crate) fn check_name(&self) -> io::Result<()> {
        if self.named && self.regular && self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("the tape was removed while it was written"));
        }
        Ok(())
    }

    /// The state that shows a hanging write.
    pub(crate) fn flow(&self) -> Arc<OutputState> {
        Arc::clone(&self.flow)
    }

    /// A duplicate of the file, to be synced by another thread; None = it is a pipe or the like, which cannot be
    /// synced.
    ///
    /// # Errors
    /// When there are too many open files.
    pub(crate) fn to_sync(&self) -> io::Result<Option<File>> {
        self.regular.then(|| self.file.try_clone()).transpose()
    }

    /// Closes it. A network file system may report a failed write only now.
    ///
    /// # Errors
    /// The error of close(2).
    pub(crate) fn close(self) -> io::Result<()> {
        // SAFETY: the descriptor was ours alone, and nobody uses it after this.
        if unsafe { libc::close(self.file.into_raw_fd()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut poll = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: poll is one valid pollfd.
        match unsafe { libc::poll(&raw mut poll, 1, -1) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl Write for TapeSink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            let Self { file, flow, .. } = self;
            match flow.wait(|| file.write(buf)) {
                Ok(n) => {
                    flow.accepted.fetch_add(n as u64, Ordering::Relaxed);
                    return Ok(n);
                }
                // whoever made the pipe may have made it non-blocking
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.flow.wait(|| self.wait_for_room())?,
                Err(e) => return Err(e),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_that_was_removed_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let [path, other] = ["t.tape", "other.tape"].map(|name| dir.path().join(name));
        let file = File::create(&path).unwrap();
        let stdout = TapeSink::new(file.try_clone().unwrap()).unwrap();
        let sink = TapeSink::named(file).unwrap();
        sink.check_name().unwrap();
        std::fs::rename(&path, &other).unwrap();
        sink.check_name().unwrap();
        std::fs::remove_file(&other).unwrap();
        assert_eq!(sink.check_name().unwrap_err().to_string(), "the tape was removed while it was written");
        stdout.check_name().unwrap();
        let (pipe, _other_end) = UnixStream::pair().unwrap();
        TapeSink::named(File::from(OwnedFd::from(pipe))).unwrap().check_name().unwrap();
    }

    #[test]
    fn a_pipe_that_does_not_block_is_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).map(|_| all.len())
        });
        let mut sink = TapeSink::new(File::from(OwnedFd::from(ours))).unwrap();
        // more than any socket holds
        sink.write_all(&vec![7; 4 << 20]).unwrap();
        assert_eq!(sink.flow().accepted.load(Ordering::Relaxed), 4 << 20);
        assert!(sink.to_sync().unwrap().is_none());
        sink.close().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 4 << 20);
    }
}
