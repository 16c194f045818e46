//! Where a tape's bytes come from: a file read by pread, or a buffer in memory (tests, fuzzing).
//!
//! No mmap: a file that someone truncates while it is read gives an error here, where a mapping would give SIGBUS.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Bytes of a tape.
#[derive(Debug)]
pub(crate) enum Source {
    File(File),
    Bytes(Vec<u8>),
}

impl Source {
    /// Opens a file; also returns its length now. Later growth or truncation does not change that length.
    pub(crate) fn open(path: &Path) -> Result<(Self, u64)> {
        let what = || format!("open {}", path.display());
        Self::file(File::open(path).map_err(|e| Error::io(what(), e))?, &what)
    }

    /// Reads an open file; errors call it `what`.
    pub(crate) fn file(file: File, what: &dyn Fn() -> String) -> Result<(Self, u64)> {
        let meta = file.metadata().map_err(|e| Error::io(what(), e))?;
        if !meta.is_file() {
            let e = io::Error::new(io::ErrorKind::InvalidInput, "a tape must be a regular file (save it first)");
            return Err(Error::io(what(), e));
        }
        Ok((Self::File(file), meta.len()))
    }

    /// Fills `buf` from `offset` on as far as there are bytes; returns their number.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        match self {
            Self::File(file) => {
                let mut done = 0;
                while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
                    match read_at(file, rest, offset.saturating_add(done as u64)) {
                        Ok(0) => break,
                        Ok(n) => done += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(Error::io(format!("read {} bytes at offset {offset:#x}", buf.len()), e)),
                    }
                }
                Ok(done)
            }
            Self::Bytes(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or(&[]);
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
        }
    }

    /// The first byte at `offset` or later that takes room on the disk; None = there is none. What is between is zeros: a
    /// file of terabytes may hold nothing else.
    pub(crate) fn data_from(&self, offset: u64) -> Option<u64> {
        let Self::File(file) = self else { return Some(offset) };
        data_from(file, offset)
    }

    /// Fills all of `buf`, or fails because the tape ends too early for `what`.
    pub(crate) fn read_exact_at(&self, buf: &mut [u8], offset: u64, what: &str) -> Result<()> {
        let n = self.read_at(buf, offset)?;
        if n < buf.len() {
            return Err(Error::Truncated {
                what: what.to_owned(),
                offset,
                wanted: buf.len() as u64,
                available: n as u64,
            });
        }
        Ok(())
    }
}

#[cfg(unix)]
fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

/// Elsewhere a file has one position, which readers take in turn.
#[cfg(not(unix))]
fn read_at(mut file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Read as _, Seek as _};
    static POSITION: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = POSITION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    file.seek(io::SeekFrom::Start(offset))?;
    file.read(buf)
}

#[cfg(unix)]
fn data_from(file: &File, offset: u64) -> Option<u64> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => Some(data.max(offset)),
        Err(rustix::io::Errno::NXIO) => None,
        // a file system that does not know
        Err(_) => Some(offset),
    }
}

/// Elsewhere holes are not known: their zeros are read.
#[cfg(not(unix))]
fn data_from(_file: &File, offset: u64) -> Option<u64> {
    Some(offset)
}
