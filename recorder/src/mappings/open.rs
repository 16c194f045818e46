//! Opens the file behind a mapping, whatever its name and place.
//!
//! It is opened by the kernel's link to the mapping (/proc/PID/map_files), then by its path as the process sees it,
//! then by its path as we see it, then as the process's executable. The opened file must be the mapped one: device,
//! inode and generation are compared. Paths belong to the traced programs: only a regular file is ever opened for
//! reading. A file system that hangs (NFS without its server, FUSE) blocks the process that
//! opens for [`RemoteOpener`], not its caller.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use systape_symbols::{Carrier, Ident, Unread, open_regular};

use super::Mapped;
use crate::foreign::Wanted;

/// Facts that distinguish an opened file from others, and from itself after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stat {
    dev: u64,
    inode: u64,
    size: u64,
    mtime: (i64, u32),
}

/// The part of statx(2) that is used.
struct Attributes {
    stat: Stat,
    regular: bool,
    links: u32,
    owner: u32,
}

impl Stat {
    /// Reads it from the kernel's cache, without a request to a server.
    ///
    /// # Errors
    /// Those of statx(2).
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        attributes(file).map(|attributes| attributes.stat)
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

fn attributes(file: &File) -> io::Result<Attributes> {
    let mut raw = MaybeUninit::<libc::statx>::zeroed();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: file is open, the path an empty string that ends with zero, raw has room for a statx.
    let result =
        unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_BASIC_STATS, raw.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed is a valid statx, and the kernel has written to it.
    let raw = unsafe { raw.assume_init() };
    let stat = Stat {
        dev: libc::makedev(raw.stx_dev_major, raw.stx_dev_minor),
        inode: raw.stx_ino,
        size: raw.stx_size,
        mtime: (raw.stx_mtime.tv_sec, raw.stx_mtime.tv_nsec),
    };
    let regular = u32::from(raw.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    Ok(Attributes { stat, regular, links: raw.stx_nlink, owner: raw.stx_uid })
}

fn is_trusted(owner: u32) -> bool {
    // SAFETY: it only returns a number.
    owner == 0 || owner == unsafe { libc::geteuid() }
}

/// An opened file that is the mapped one.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    /// File that is open for reading, or only a name of it (O_PATH).
    pub file: File,
    /// State of the file when it was opened.
    pub stat: Stat,
    /// Identity in its contents; None = nobody has read it yet.
    pub ident: Option<Ident>,
    /// No directory has it any more: it cannot be opened again by a path.
    pub unlinked: bool,
    /// Whether it belongs to root or to who records: nobody else could write it.
    pub trusted: bool,
}

/// Why a file was not opened.
#[derive(Debug)]
pub(crate) struct NotOpened {
    /// Reason in words.
    pub reason: String,
    /// Not to be tried again, because it would hang again.
    pub hangs: bool,
}

/// Has files opened by another process.
#[derive(Debug)]
pub(crate) struct RemoteOpener(Carrier);

impl RemoteOpener {
    /// Makes one that asks this carrier.
    pub(crate) fn new(carrier: Carrier) -> Self {
        Self(carrier)
    }

    /// Opens the file of a process's mapping. It has a name only (O_PATH).
    ///
    /// # Errors
    /// See [`NotOpened`].
    pub(crate) fn open(&self, pid: u32, mapped: &Mapped) -> Result<OpenedFile, NotOpened> {
        let opened = self.0.open(&Wanted::Mapped.request(&mapped.to_bytes(pid)));
        let (_, file) = opened.map_err(|Unread { why, hangs }| NotOpened { reason: why, hangs })?;
        let failed = |error: io::Error| NotOpened { reason: error.to_string(), hangs: false };
        let Attributes { stat, links, owner, .. } = attributes(&file).map_err(failed)?;
        Ok(OpenedFile { file, stat, ident: None, unlinked: links == 0, trusted: is_trusted(owner) })
    }
}

/// What [`RemoteOpener::open`] asks for, in the process that opens.
///
/// # Errors
/// See [`NotOpened`].
pub(crate) fn open_asked(request: &[u8]) -> Result<File, String> {
    let (pid, mapped) = Mapped::from_bytes(request).ok_or("no mapping is asked for")?;
    open_mapped(pid, &mapped).map(|opened| opened.file).map_err(|refused| refused.reason)
}

/// A path without the kernel's " (deleted)", and whether it had it.
pub(crate) fn without_deleted(path: &[u8]) -> (&[u8], bool) {
    match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    }
}

/// Opens the file behind a mapping, in the caller's thread: it may hang.
///
/// # Errors
/// See [`NotOpened`].
pub(crate) fn open_mapped(pid: u32, mapped: &Mapped) -> Result<OpenedFile, NotOpened> {
    let mut failure = OpenFailures::default();
    let exact = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapped.start, mapped.end));
    if let Some(opened) = failure.note(open_checked(&exact, mapped), false) {
        return Ok(opened);
    }
    let (path, deleted) = without_deleted(&mapped.path);
    // "//toolong" is no path, and neither is one without a slash
    if path.starts_with(b"/") && !path.starts_with(b"//") {
        let root = [format!("/proc/{pid}/root").as_bytes(), path].concat();
        for (path, ours) in [(&root[..], false), (path, true)] {
            if let Some(opened) = failure.note(open_checked(Path::new(OsStr::from_bytes(path)), mapped), ours) {
                return Ok(opened);
            }
        }
    }
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    if let Some(opened) = failure.note(open_checked(&exe, mapped), false) {
        return Ok(opened);
    }
    Err(NotOpened { reason: failure.words(deleted), hangs: false })
}

/// Why a file was not opened: the failures on the way.
#[derive(Debug, Default)]
struct OpenFailures {
    replaced: bool,
    irregular: bool,
    denied: bool,
    last: Option<io::Error>,
}

/// Why one try failed.
#[derive(Debug)]
enum OpenRefusal {
    /// Not the mapped file.
    Other,
    /// A directory, device, fifo, …
    Irregular,
    Io(io::Error),
}

impl From<io::Error> for OpenRefusal {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl OpenFailures {
    /// Notes a failed try; `ours` = by a path as we see it, whose error is the most useful.
    fn note(&mut self, result: Result<OpenedFile, OpenRefusal>, ours: bool) -> Option<OpenedFile> {
        match result {
            Ok(opened) => return Some(opened),
            // /proc/PID/exe and a path in our own root are guesses
            Err(OpenRefusal::Other) => self.replaced |= ours,
            Err(OpenRefusal::Irregular) => self.irregular |= ours,
            Err(OpenRefusal::Io(e)) => {
                self.denied |= matches!(e.kind(), io::ErrorKind::PermissionDenied);
                if ours || self.last.is_none() {
                    self.last = Some(e);
                }
            }
        }
        None
    }

    fn words(self, deleted: bool) -> String {
        if self.replaced {
            "replaced by another file".into()
        } else if self.irregular {
            "not a regular file any more".into()
        } else if self.denied {
            "it may not be read (CAP_SYS_ADMIN, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH allow it)".into()
        } else {
            match self.last {
                Some(e) if e.kind() != io::ErrorKind::NotFound => e.to_string(),
                _ if deleted => "deleted, and its process had ended before it could be opened".into(),
                _ => "not there, and its process had ended before it could be opened".into(),
            }
        }
    }
}

fn open_checked(path: &Path, mapped: &Mapped) -> Result<OpenedFile, OpenRefusal> {
    check(open_regular(path)?.ok_or(OpenRefusal::Irregular)?, mapped)
}

fn check(file: File, mapped: &Mapped) -> Result<OpenedFile, OpenRefusal> {
    let Attributes { stat, regular, links, owner } = attributes(&file)?;
    if !regular {
        return Err(OpenRefusal::Irregular);
    }
    if !same_inode(mapped, &stat) || !same_generation(mapped, &file) {
        return Err(OpenRefusal::Other);
    }
    Ok(OpenedFile { file, stat, ident: None, unlinked: links == 0, trusted: is_trusted(owner) })
}

/// Takes a file opened elsewhere, if it is the mapped one.
pub(crate) fn accept(file: File, mapped: &Mapped) -> Option<OpenedFile> {
    check(file, mapped).ok()
}

/// Whether a file may be the mapped one. overlayfs and btrfs show stat(2) another device than the kernel's own, one
/// without a block device (major 0).
pub(crate) fn same_inode(mapped: &Mapped, stat: &Stat) -> bool {
    let differs = mapped.dev != stat.dev && libc::major(mapped.dev) != 0 && libc::major(stat.dev) != 0;
    mapped.inode == stat.inode && !differs
}

/// File systems reuse the number of a deleted inode for the next file.
fn same_generation(mapped: &Mapped, file: &File) -> bool {
    /// _IOR('v', 1, long); the kernel writes an int.
    const FS_IOC_GETVERSION: libc::Ioctl = 0x8008_7601u32 as libc::Ioctl;
    let mut generation = 0i64;
    // SAFETY: generation has room for a long; file systems that do not know the request fail.
    let mut result = || unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION, &raw mut generation) };
    mapped.generation == 0 || result() != 0 || generation as u32 == mapped.generation as u32
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// No process has this number.
    const NOBODY: u32 = u32::MAX;

    fn by_path(path: &Path) -> Mapped {
        let path = path.as_os_str().as_bytes().to_vec();
        Mapped { start: 0x1000, end: 0x2000, path, ..Mapped::default() }
    }

    fn reason(mapped: &Mapped) -> String {
        open_mapped(NOBODY, mapped).unwrap_err().reason
    }

    #[test]
    fn a_file_is_told_by_its_inode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "contents").unwrap();
        let stat = Stat::of(&File::open(&path).unwrap()).unwrap();
        let mapped = Mapped { dev: stat.dev, inode: stat.inode, ..by_path(&path) };
        assert_eq!(open_mapped(NOBODY, &mapped).unwrap().stat, stat);
        // a name that was deleted, and exists again
        let deleted = Mapped { path: [&mapped.path[..], b" (deleted)"].concat(), ..mapped.clone() };
        assert!(open_mapped(NOBODY, &deleted).is_ok());
        let other = Mapped { inode: stat.inode + 1, ..mapped.clone() };
        assert_eq!(reason(&other), "replaced by another file");
        // a file system without a device, such as tmpfs, may be part of an overlay
        if libc::major(stat.dev) != 0 {
            let other = Mapped { dev: libc::makedev(200, 1), ..mapped.clone() };
            assert_eq!(reason(&other), "replaced by another file");
        }
        // what overlayfs shows
        let overlay = Mapped { dev: libc::makedev(0, 99), ..mapped.clone() };
        assert!(open_mapped(NOBODY, &overlay).is_ok());
        fs::remove_file(&path).unwrap();
        assert_eq!(reason(&mapped), "not there, and its process had ended before it could be opened");
        assert_eq!(reason(&deleted), "deleted, and its process had ended before it could be opened");
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        // opening it for reading would wait for a writer
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [&fifo, Path::new("/dev/null"), dir.path()] {
            assert_eq!(reason(&Mapped { inode: 1, ..by_path(path) }), "not a regular file any more");
        }
        for path in ["//toolong", "relative", "", "[heap]"] {
            assert!(reason(&Mapped { inode: 1, ..by_path(Path::new(path)) }).contains("not there"), "{path}");
        }
    }
}
