//! The mapped files: each known once, by its build id or inode, and opened when it is first heard of.
//!
//! A file is opened by what the kernel says is mapped (/proc/PID/map_files), then by its path as the process sees it, then by its path
//! as we see it, then from what [`ExecWatch`] kept. Whatever was opened must be the file that was mapped: its build id is compared, or
//! device and inode where there is none. Paths belong to the traced programs: nothing but a regular file is ever opened for reading.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Mapping, MappingKind};

use super::exec_watch::ExecWatch;
use super::space::Backing;
use super::{Mapped, elf};

/// Most files known in a recording.
const FILES_MAX: usize = 65_536;
/// Most keys they are known by; without room a file is compared again each time it is seen.
const KEYS_MAX: usize = 4 * FILES_MAX;
/// Most times a file that could not be opened is tried again when it is mapped again.
const ATTEMPTS_MAX: u32 = 16;
/// Most inodes remembered as memory without a file.
const JIT_INODES_MAX: usize = 4096;

/// A file of the recording: a dense number from 0, which never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// What a file is known by. The path is part of it, because the tape names files by their paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    BuildId { build_id: Vec<u8>, path: Vec<u8> },
    Inode { dev: u64, inode: u64, generation: u64, path: Vec<u8> },
    Opened { stat: Stat, path: Vec<u8> },
}

/// What tells an opened file from another, and from itself after it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stat {
    dev: u64,
    inode: u64,
    size: u64,
    mtime: (i64, i64),
}

impl Stat {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let mtime = (meta.mtime(), meta.mtime_nsec());
        Ok(Self { dev: meta.dev(), inode: meta.ino(), size: meta.size(), mtime })
    }
}

/// A file that was opened and is the one that was mapped.
#[derive(Debug)]
struct Opened {
    file: File,
    stat: Stat,
    ident: elf::Ident,
    /// No directory has it any more: it cannot be opened again by a path.
    unlinked: bool,
}

#[derive(Debug)]
enum State {
    Open(File),
    /// Closed to make room; can be opened again.
    Closed,
    /// Never opened, or lost: why.
    Failed(String),
}

/// Where a file was last seen mapped, to open it (again) from there.
#[derive(Clone, Debug, Default)]
struct Source {
    pid: u32,
    mapped: Mapped,
}

#[derive(Debug)]
struct Entry {
    mapping: Mapping,
    state: State,
    stat: Option<Stat>,
    unlinked: bool,
    attempts: u32,
    used: u64,
    source: Source,
}

/// How many files were met and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Known.
    pub files: u64,
    /// Of them, not opened.
    pub failed: u64,
    /// Not known, because there were too many.
    pub over_limit: u64,
}

/// All files of a recording.
#[derive(Debug)]
pub struct Files {
    entries: Vec<Entry>,
    keys: FxHashMap<Key, FileId>,
    jit_inodes: FxHashSet<(u64, u64)>,
    open: Vec<FileId>,
    open_max: usize,
    clock: u64,
    over_limit: u64,
}

impl Files {
    /// Keeps at most `open_max` files open.
    pub fn new(open_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            keys: FxHashMap::default(),
            jit_inodes: FxHashSet::default(),
            open: Vec::new(),
            open_max: open_max.max(1),
            clock: 0,
            over_limit: 0,
        }
    }

    /// Half of the files this process may open, at most 4096.
    pub fn default_open_max() -> usize {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: limit is a valid rlimit to write to.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        (limit.rlim_cur / 2).clamp(16, 4096) as usize
    }

    /// What a mapping of a process is. A file is opened if it is not open yet: call this as soon as the mapping is known.
    pub fn see(&mut self, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> Backing {
        let class = match classify(mapped) {
            Class::Backing(backing) => return backing,
            class => class,
        };
        if !self.jit_inodes.is_empty() && self.jit_inodes.contains(&(mapped.dev, mapped.inode)) {
            return Backing::Jit;
        }
        let key = key_of(mapped);
        if let Some(id) = self.keys.get(&key).copied()
            && self.seen_again(id, pid, mapped, watch)
        {
            return Backing::File(id);
        }
        self.seen_first(key, class, pid, mapped, watch)
    }

    /// Notes that a known file was mapped again. False when it has become another by being written to.
    fn seen_again(&mut self, id: FileId, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> bool {
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return false };
        if let State::Open(file) = &entry.state
            && mapped.build_id.is_empty()
            && Stat::of(file).ok() != entry.stat
        {
            self.spoil(id);
            return false;
        }
        entry.source = Source { pid, mapped: mapped.clone() };
        if matches!(entry.state, State::Failed(_)) && entry.attempts < ATTEMPTS_MAX {
            entry.attempts += 1;
            if let Ok(opened) = open_mapped(pid, mapped, watch) {
                self.opened(id, opened);
            }
        }
        true
    }

    fn seen_first(&mut self, key: Key, class: Class, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> Backing {
        let opened = open_mapped(pid, mapped, watch);
        if is_run_time_code(class, mapped, &opened) {
            if mapped.inode != 0 {
                if self.jit_inodes.len() >= JIT_INODES_MAX {
                    self.jit_inodes.clear();
                }
                self.jit_inodes.insert((mapped.dev, mapped.inode));
            }
            return Backing::Jit;
        }
        let (path, _) = without_deleted(&mapped.path);
        // the same file may be known by another key: /proc tells inodes where the side-band tells build ids
        let canonical = match &opened {
            Ok(opened) if !opened.ident.build_id.is_empty() => {
                Some(Key::BuildId { build_id: opened.ident.build_id.clone(), path: path.to_vec() })
            }
            Ok(opened) => Some(Key::Opened { stat: opened.stat, path: path.to_vec() }),
            Err(_) => None,
        };
        let known = canonical.as_ref().and_then(|canonical| self.keys.get(canonical)).copied();
        let id = match known {
            Some(id) => id,
            None if self.entries.len() >= FILES_MAX => {
                self.over_limit += 1;
                return Backing::Unknown;
            }
            None => self.add(path, mapped),
        };
        for key in canonical.into_iter().chain([key]) {
            if self.keys.len() < KEYS_MAX {
                self.keys.insert(key, id);
            }
        }
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.source = Source { pid, mapped: mapped.clone() };
        }
        match opened {
            Ok(opened) => self.opened(id, opened),
            Err(reason) => {
                if let Some(entry) = self.entries.get_mut(id.0 as usize) {
                    entry.state = State::Failed(reason);
                }
            }
        }
        Backing::File(id)
    }

    fn add(&mut self, path: &[u8], mapped: &Mapped) -> FileId {
        let id = FileId(self.entries.len() as u32);
        let mapping =
            Mapping { kind: MappingKind::Elf, build_id: mapped.build_id.clone(), path: path.to_vec(), upid: 0 };
        self.entries.push(Entry {
            mapping,
            state: State::Closed,
            stat: None,
            unlinked: false,
            attempts: 1,
            used: 0,
            source: Source::default(),
        });
        id
    }

    /// Keeps a file open, closing another when there are too many.
    fn opened(&mut self, id: FileId, opened: Opened) {
        self.clock += 1;
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return };
        if matches!(entry.state, State::Open(_)) {
            return;
        }
        if entry.mapping.build_id.is_empty() {
            entry.mapping.build_id = opened.ident.build_id;
        }
        entry.stat = Some(opened.stat);
        entry.unlinked = opened.unlinked;
        entry.used = self.clock;
        entry.state = State::Open(opened.file);
        self.open.push(id);
        if self.open.len() > self.open_max {
            self.close_one(id);
        }
    }

    /// Closes the file that was used longest ago, but `keep`; one that could not be opened again only when there is no other.
    fn close_one(&mut self, keep: FileId) {
        let age = |id: &FileId| self.entries.get(id.0 as usize).map(|entry| (entry.unlinked, entry.used));
        let oldest = self.open.iter().copied().filter(|id| *id != keep).min_by_key(age);
        if let Some(id) = oldest {
            self.close(id);
        }
    }

    /// Closes a file that is no longer needed, so that its file system can be unmounted; [`Self::get`] opens it again if it is still there.
    pub fn close(&mut self, id: FileId) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize)
            && matches!(entry.state, State::Open(_))
        {
            entry.state = State::Closed;
            self.open.retain(|open| *open != id);
        }
    }

    /// What the tape says of a file.
    pub fn mapping(&self, id: FileId) -> Option<&Mapping> {
        self.entries.get(id.0 as usize).map(|entry| &entry.mapping)
    }

    /// The file, opened for reading.
    ///
    /// # Errors
    /// Why there is none, in words. It may be there later, when it is mapped again.
    pub fn get(&mut self, id: FileId) -> Result<&File, &str> {
        self.clock += 1;
        let at = id.0 as usize;
        if let Some(entry) = self.entries.get_mut(at) {
            entry.used = self.clock;
            match &entry.state {
                State::Closed => self.reopen(id),
                // the same inode may have been written to
                State::Open(file) if Stat::of(file).ok() != entry.stat => self.spoil(id),
                State::Open(_) | State::Failed(_) => {}
            }
        }
        match self.entries.get(at).map(|entry| &entry.state) {
            Some(State::Open(file)) => Ok(file),
            Some(State::Failed(reason)) => Err(reason),
            Some(State::Closed) | None => Err("not open"),
        }
    }

    /// Gives up a file whose contents are no longer those that were mapped.
    fn spoil(&mut self, id: FileId) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.state = State::Failed("written to while it was recorded".into());
            entry.attempts = ATTEMPTS_MAX;
            self.open.retain(|open| *open != id);
        }
    }

    fn reopen(&mut self, id: FileId) {
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return };
        let again = open_mapped(entry.source.pid, &entry.source.mapped, &ExecWatch::none());
        match again {
            Ok(opened) if Some(opened.stat) == entry.stat => self.opened(id, opened),
            Ok(_) => entry.state = State::Failed("changed while it was closed for want of descriptors".into()),
            Err(reason) => entry.state = State::Failed(format!("closed for want of descriptors, then {reason}")),
        }
    }

    /// Number of files known; ids are below it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No file is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Why a file is not open; None = it is, or can be.
    pub fn failure(&self, id: FileId) -> Option<&str> {
        match &self.entries.get(id.0 as usize)?.state {
            State::Failed(reason) => Some(reason),
            State::Open(_) | State::Closed => None,
        }
    }

    /// See [`Counts`].
    pub fn counts(&self) -> Counts {
        let failed = self.entries.iter().filter(|entry| matches!(entry.state, State::Failed(_))).count();
        Counts { files: self.entries.len() as u64, failed: failed as u64, over_limit: self.over_limit }
    }
}

/// What the name of a mapping says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Nothing that could be opened.
    Backing(Backing),
    /// A file with a name.
    File,
    /// A file without a name in any directory: memfd, System V shared memory.
    Nameless,
}

fn classify(mapped: &Mapped) -> Class {
    let path = &mapped.path[..];
    if path == b"[vdso]" {
        // 32-bit processes have another one, below 4 GiB
        return Class::Backing(if mapped.end > 1 << 32 { Backing::Vdso } else { Backing::Unknown });
    }
    if path == b"[vsyscall]" {
        return Class::Backing(Backing::Unknown);
    }
    let identity = mapped.inode != 0 || !mapped.build_id.is_empty();
    if !identity || path.starts_with(b"[") || path == b"//anon" || path.starts_with(b"/dev/zero") {
        return Class::Backing(Backing::Jit);
    }
    let nameless: [&[u8]; 4] = [b"/memfd:", b"/SYSV", b"/anon_hugepage", b"anon_inode:"];
    if nameless.iter().any(|start| path.starts_with(start)) { Class::Nameless } else { Class::File }
}

/// Memory that a file only lends its pages to: no ELF file, and no name that will be there later.
fn is_run_time_code(class: Class, mapped: &Mapped, opened: &Result<Opened, String>) -> bool {
    let gone = class == Class::Nameless || without_deleted(&mapped.path).1;
    let elf = !mapped.build_id.is_empty() || opened.as_ref().is_ok_and(|opened| opened.ident.elf);
    match opened {
        Ok(opened) => !elf && (gone || opened.unlinked),
        Err(_) => !elf && class == Class::Nameless,
    }
}

fn key_of(mapped: &Mapped) -> Key {
    let path = without_deleted(&mapped.path).0.to_vec();
    if mapped.build_id.is_empty() {
        Key::Inode { dev: mapped.dev, inode: mapped.inode, generation: mapped.generation, path }
    } else {
        Key::BuildId { build_id: mapped.build_id.clone(), path }
    }
}

/// A path without the kernel's " (deleted)", and whether it had that.
fn without_deleted(path: &[u8]) -> (&[u8], bool) {
    match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    }
}

/// Opens the file behind a mapping.
fn open_mapped(pid: u32, mapped: &Mapped, watch: &ExecWatch) -> Result<Opened, String> {
    let mut failure = Failure::default();
    let exact = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapped.start, mapped.end));
    if let Some(opened) = failure.note(open_checked(&exact, mapped), false) {
        return Ok(opened);
    }
    let (path, deleted) = without_deleted(&mapped.path);
    // "//toolong" is no path; a relative one would be ours
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
    if let Some(opened) = watch.candidates(mapped).find_map(|file| check(file, mapped).ok()) {
        return Ok(opened);
    }
    Err(failure.words(deleted))
}

/// Why a file was not opened: what was met on the way.
#[derive(Debug, Default)]
struct Failure {
    replaced: bool,
    irregular: bool,
    denied: bool,
    last: Option<io::Error>,
}

/// Why one try failed.
#[derive(Debug)]
enum Refusal {
    /// Not the file that was mapped.
    Other,
    /// A directory, device, fifo, …
    Irregular,
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl Failure {
    /// Takes a note of a failed try; `ours` = by a path as we see it, whose error says most.
    fn note(&mut self, result: Result<Opened, Refusal>, ours: bool) -> Option<Opened> {
        match result {
            Ok(opened) => return Some(opened),
            // /proc/PID/exe and a path in our own root are guesses
            Err(Refusal::Other) => self.replaced |= ours,
            Err(Refusal::Irregular) => self.irregular |= ours,
            Err(Refusal::Io(e)) => {
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

fn open_checked(path: &Path, mapped: &Mapped) -> Result<Opened, Refusal> {
    check(open_regular(path)?, mapped)
}

/// Opens a path for reading if it is a regular file. Opening a device can do things, and a fifo waits: so the path is opened
/// without touching what it names, then that very file is.
fn open_regular(path: &Path) -> Result<File, Refusal> {
    let named = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path)?;
    if !named.metadata()?.is_file() {
        return Err(Refusal::Irregular);
    }
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    Ok(OpenOptions::new().read(true).custom_flags(flags).open(format!("/proc/self/fd/{}", named.as_raw_fd()))?)
}

/// Whether an opened file is the one that was mapped.
fn check(file: File, mapped: &Mapped) -> Result<Opened, Refusal> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Refusal::Irregular);
    }
    let stat = Stat::of(&file)?;
    let ident = elf::ident(&file);
    let same = if mapped.build_id.is_empty() {
        same_inode(mapped, &stat) && same_generation(mapped, &file)
    } else {
        ident.build_id == mapped.build_id
    };
    if same { Ok(Opened { file, stat, ident, unlinked: meta.nlink() == 0 }) } else { Err(Refusal::Other) }
}

/// overlayfs and btrfs show stat(2) another device than the kernel's own, one without a block device (major 0).
fn same_inode(mapped: &Mapped, stat: &Stat) -> bool {
    let differs = mapped.dev != stat.dev && libc::major(mapped.dev) != 0 && libc::major(stat.dev) != 0;
    mapped.inode == stat.inode && !differs
}

/// File systems give the number of a deleted inode to the next file.
fn same_generation(mapped: &Mapped, file: &File) -> bool {
    /// _IOR('v', 1, long); the kernel writes an int.
    const FS_IOC_GETVERSION: libc::Ioctl = 0x8008_7601u32 as libc::Ioctl;
    let mut generation = 0i64;
    // SAFETY: generation has room for a long; file systems that do not know the request fail.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION, &raw mut generation) };
    mapped.generation == 0 || result != 0 || generation as u32 == mapped.generation as u32
}
