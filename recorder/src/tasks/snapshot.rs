//! Data from /proc about processes that existed before the recording: executable, directory, open files.
//!
//! Identities, names and calls in progress come from the BPF task iterator ([`crate::load::Walker`]), which walks all
//! tasks at once; /proc is read only for the rest.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::machine::environ::{self, EnvironKeys};
use crate::machine::patient::JobProgress;
use crate::machine::{bounded, system};
use crate::own::clock;
use crate::tasks::Argv;

/// Most bytes read of a process's arguments; longer ones have an unknown length.
pub(crate) const ARGV_MOST: usize = 64 << 10;
/// Most bytes of names of open files of one process: a million sockets.
pub(crate) const FILES_MOST: usize = 32 << 20;
/// Most bytes of names of open files of all processes that wait to be encoded.
pub(crate) const ALL_FILES_MOST: usize = 128 << 20;
/// Bytes of an open file beside its name.
const FILE_COST: usize = 8;

/// Bytes left for names of open files, shared by all readers.
#[derive(Clone, Debug)]
pub(crate) struct NameBudget(Arc<AtomicUsize>);

impl Default for NameBudget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(ALL_FILES_MOST)))
    }
}

impl NameBudget {
    fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Concurrent readers may use a little more than is left.
    fn take(&self, bytes: usize) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
    }

    /// The bytes of a process are free again.
    pub(crate) fn give_back(&self, process: &ProcessReading) {
        self.0.fetch_add(process.cost(), Ordering::Relaxed);
    }
}

/// One process from /proc.
#[derive(Clone, Debug)]
pub(crate) struct ProcessReading {
    /// Id of the process on the machine.
    pub pid: u32,
    /// When reading ended.
    pub to: u64,
    /// Path of the executable; empty when not readable.
    pub exe: Vec<u8>,
    /// Arguments, read by [`argv`]; None when not readable or a kernel thread.
    pub argv: Option<Arc<Argv>>,
    /// Environment variables that are kept, read by [`environ`]; empty when not readable.
    pub env: Vec<u8>,
    /// Current directory; None when not readable.
    pub cwd: Option<Vec<u8>>,
    /// Open files: number, name, closed by exec. None when not readable.
    pub fds: Option<Vec<(i32, Vec<u8>, bool)>>,
    /// Whether it has more open files than `fds`.
    pub cut: bool,
    /// Whose open files and directory they are, if not its own alone or not all threads'.
    pub of: Of,
}

/// Whose open files and directory a [`ProcessReading`] has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Of {
    /// Threads, by their ids on the machine, that do not share what `files` and `dir` say with the others; empty = the process's.
    pub threads: Vec<u32>,
    /// The open files: of these threads, or of a process shared with another one, which may change them unseen.
    pub files: bool,
    /// The directory, of the same.
    pub dir: bool,
}

fn link(path: &Path) -> Option<Vec<u8>> {
    fs::read_link(path).ok().map(|p| p.into_os_string().into_vec())
}

/// Executable of a process, by its id in this pid namespace (0: it is not visible there); empty when it has none or it
/// is not readable.
pub(crate) fn exe(here: u32) -> Vec<u8> {
    link(Path::new(&format!("/proc/{}/exe", system::speaker(here)))).unwrap_or_default()
}

/// Arguments of a process, cut where they are long; None when it has none or they are not readable. Of more than
/// [`ARGV_MOST`] bytes the length is a lower bound.
pub(crate) fn argv(here: u32) -> Option<Arc<Argv>> {
    let path = format!("/proc/{}/cmdline", system::speaker(here));
    let bounded::FileHead { bytes, cut } = bounded::head(path, ARGV_MOST).ok()?;
    let full = bytes.len() as u64 + u64::from(cut);
    // the last NUL, if this is the end
    let bytes = bytes.strip_suffix(&[0]).filter(|_| !cut).map_or((&bytes[..], full), |bytes| (bytes, full - 1));
    let (bytes, full) = bytes;
    (!bytes.is_empty()).then(|| Argv::cut(bytes, full))
}

/// The variables `keys` of the environment with which a process began; empty when none are asked for or they are not
/// readable.
pub(crate) fn environ(here: u32, keys: &EnvironKeys) -> Vec<u8> {
    if keys.is_empty() {
        return Vec::new();
    }
    match bounded::head(format!("/proc/{}/environ", system::speaker(here)), environ::MOST_BYTES) {
        Ok(bounded::FileHead { bytes, cut }) => keys.kept(&bytes, !cut),
        Err(_) => Vec::new(),
    }
}

/// Reads one process except for its arguments: `pid` on the machine, `here` in this pid namespace. There is no /proc/0:
/// of a process that is not visible nothing is known. Names of open files may use the rest of `room`.
///
/// Its arguments are read apart, because only they wait for changes of the process's mappings.
pub(crate) fn process(pid: u32, here: u32, room: &NameBudget, moved: &JobProgress) -> ProcessReading {
    let here = system::speaker(here);
    let dir = format!("/proc/{here}");
    let cwd = link(Path::new(&format!("{dir}/cwd")));
    let exe = exe(here);
    let most = room.left().min(FILES_MOST);
    let (fds, cut) = open_files(&dir, most, moved).map_or((None, false), |(fds, cut)| (Some(fds), cut));
    let process = ProcessReading {
        pid,
        to: clock::monotonic(),
        exe,
        argv: None,
        env: Vec::new(),
        cwd,
        fds,
        cut,
        of: Of::default(),
    };
    room.take(process.cost());
    process
}

impl ProcessReading {
    /// One that could not be read until `now`.
    pub(crate) fn unknown(pid: u32, now: u64) -> Self {
        let (exe, env, of) = (Vec::new(), Vec::new(), Of::default());
        Self { pid, to: now, exe, argv: None, env, cwd: None, fds: None, cut: false, of }
    }

    /// Bytes that its open files took of `room`.
    pub(crate) fn cost(&self) -> usize {
        self.fds.iter().flatten().map(|(_, name, _)| name.len() + FILE_COST).sum()
    }
}

/// Number, name, closed by exec of each open file, and whether there were more than fit.
type OpenFiles = (Vec<(i32, Vec<u8>, bool)>, bool);

fn open_files(dir: &str, mut room: usize, moved: &JobProgress) -> Option<OpenFiles> {
    let list = fs::read_dir(format!("{dir}/fd")).ok()?;
    let numbers = list.flatten().filter_map(|e| e.file_name().to_str().and_then(|n| n.parse::<i32>().ok()));
    let mut fds = Vec::new();
    for fd in numbers {
        moved.step();
        // closed since it was listed: not open
        let Some(name) = link(Path::new(&format!("{dir}/fd/{fd}"))) else { continue };
        let Some(left) = room.checked_sub(name.len() + FILE_COST) else { return Some((fds, true)) };
        room = left;
        fds.push((fd, name, is_cloexec(dir, fd)));
    }
    Some((fds, false))
}

/// /proc/PID/fdinfo/FD has the open flags, including the one for exec. Without it the fd counts as closed by exec,
/// which makes it unknown afterwards rather than wrong.
fn is_cloexec(dir: &str, fd: i32) -> bool {
    let Ok(text) = bounded::lines(format!("{dir}/fdinfo/{fd}"), bounded::LINES) else { return true };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|hex| u32::from_str_radix(hex.trim(), 8).ok());
    flags.is_none_or(|f| f & (libc::O_CLOEXEC as u32) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_readable() {
        let file = fs::File::open("/etc/passwd").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let read = |pid, here, room: &NameBudget| process(pid, here, room, &JobProgress::default());
        let room = NameBudget::default();
        let me = read(7, std::process::id(), &room);
        assert_eq!(room.left() + me.cost(), ALL_FILES_MOST);
        room.give_back(&me);
        assert_eq!(room.left(), ALL_FILES_MOST);
        assert!(argv(std::process::id()).is_some());
        let found = me.fds.unwrap();
        let (_, name, cloexec) = found.iter().find(|(n, ..)| *n == fd).unwrap();
        assert_eq!((name.as_slice(), *cloexec), (b"/etc/passwd".as_slice(), true));
        assert!(!me.exe.is_empty());
        assert_eq!((me.pid, me.cut), (7, false));
        let most = found.iter().map(|(_, name, _)| name.len() + FILE_COST).max().unwrap();
        room.take(ALL_FILES_MOST - most);
        let few = read(7, std::process::id(), &room);
        assert!(few.cut && few.cost() <= most && few.fds.unwrap().len() < found.len());
        for nobody in [0, u32::MAX] {
            let none = read(std::process::id(), nobody, &room);
            assert!(none.fds.is_none() && argv(nobody).is_none() && none.cwd.is_none() && none.exe.is_empty());
        }
    }
}
