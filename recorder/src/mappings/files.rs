//! The mapped files: each known once, and opened at its first mapping.
//!
//! A mapping names its file by device, inode and generation. The opened file gives the build id, by which copies of a
//! file that containers have at the same path are one. Anybody can write any build id into a file and have it at any path in a
//! user namespace, so files of root are never one with those of others.
//!
//! [`super::open`] opens a file and checks that it is the mapped one; a [`RuleReader`] reads it. This module keeps the
//! list of files.

use std::fs::File;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Mapping, MappingKind};
use systape_symbols::{RuleReader, Unread};

use super::Mapped;
use super::exec_watch::ExecWatch;
use super::open::{NotOpened, OpenedFile, RemoteOpener, Stat, accept, same_inode, without_deleted};
use super::space::Backing;
use crate::machine::limits;

/// Most files known in a recording.
const FILES_MAX: usize = 65_536;
/// Most keys for them; beyond that a file is compared again at each mapping.
const KEYS_MAX: usize = 4 * FILES_MAX;
/// Most attempts to open a file that failed to open, at its later mappings.
const ATTEMPTS_MAX: u32 = 16;
/// Most nameless inodes remembered as not ELF.
const JIT_INODES_MAX: usize = 4096;

/// A file of the recording: a dense number from 0, which never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileNumber(pub u32);

/// Identity of a file. The path is part of it, because the tape names files by their paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    BuildId { build_id: Vec<u8>, path: Vec<u8>, trusted: bool },
    Inode { dev: u64, inode: u64, generation: u64, path: Vec<u8> },
    Opened { stat: Stat, path: Vec<u8> },
}

#[derive(Debug)]
enum FileState {
    Open(File),
    /// Closed to make room; can be opened again.
    Closed,
    /// Never opened, or lost: the reason.
    Failed(String),
}

/// The last mapping of a file, for opening it (again).
#[derive(Clone, Debug, Default)]
struct Source {
    pid: u32,
    mapped: Mapped,
}

#[derive(Debug)]
struct FileEntry {
    mapping: Mapping,
    state: FileState,
    stat: Option<Stat>,
    unlinked: bool,
    /// See [`OpenedFile::trusted`]; None = never opened.
    trusted: Option<bool>,
    attempts: u32,
    /// Its contents were replaced: later mappings are of another file.
    spoiled: bool,
    used: u64,
    source: Source,
}

impl FileEntry {
    /// Whether the opened file is the same as at its earlier opening. A build id identifies contents, if it can be believed.
    fn is(&self, opened: &OpenedFile) -> bool {
        let same_id = !self.mapping.build_id.is_empty() && self.mapping.build_id == build_id(opened);
        same_id && self.trusted == Some(opened.trusted) || self.stat.is_none_or(|stat| stat == opened.stat)
    }
}

/// Number of files, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Number of known files.
    pub files: u64,
    /// Number of files that were not opened.
    pub failed: u64,
    /// Unknown, because there were too many.
    pub over_limit: u64,
}

/// All files of a recording.
#[derive(Debug)]
pub struct Files {
    entries: Vec<FileEntry>,
    keys: FxHashMap<Key, FileNumber>,
    /// What files are called on the tape, by build id and path, and whether these are trusted ones: there all files of one name are
    /// one.
    names: FxHashMap<(Vec<u8>, Vec<u8>), bool>,
    jit_inodes: FxHashSet<(u64, u64)>,
    open: Vec<FileNumber>,
    open_max: usize,
    clock: u64,
    over_limit: u64,
    opener: RemoteOpener,
    reader: RuleReader,
}

/// Empty = it has none.
fn build_id(opened: &OpenedFile) -> &[u8] {
    opened.ident.as_ref().map_or(&[], |ident| &ident.build_id)
}

impl Files {
    /// Keeps at most `open_max` files open.
    pub(crate) fn new(open_max: usize, reader: RuleReader) -> Self {
        Self {
            entries: Vec::new(),
            keys: FxHashMap::default(),
            names: FxHashMap::default(),
            jit_inodes: FxHashSet::default(),
            open: Vec::new(),
            open_max: open_max.max(1),
            clock: 0,
            over_limit: 0,
            opener: RemoteOpener::new(reader.carrier()),
            reader,
        }
    }

    /// Half of the files this process may open, at most 4096.
    pub(crate) fn default_open_max() -> usize {
        let files = limits::limit(libc::RLIMIT_NOFILE).map_or(0, |limit| limit.rlim_cur);
        (files / 2).clamp(16, 4096) as usize
    }

    /// The file of a process's mapping. Opens it if it is not open yet: call this as soon as the mapping is known.
    pub(crate) fn see(&mut self, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> Backing {
        let class = match classify(mapped) {
            MappingClass::Backing(backing) => return backing,
            class => class,
        };
        // numbers of inodes with names are used again
        if class == MappingClass::Nameless && self.jit_inodes.contains(&(mapped.dev, mapped.inode)) {
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

    /// Notes that a known file was mapped again. False when it has become another: it was written to, or its inode was
    /// given to a new file.
    fn seen_again(&mut self, id: FileNumber, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> bool {
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return false };
        // of the copies of a file one is kept open: it tells nothing of the others
        let this = entry.stat.is_some_and(|stat| same_inode(mapped, &stat));
        match &entry.state {
            _ if entry.spoiled => return false,
            FileState::Open(file) if Stat::of(file).ok() != entry.stat => {
                self.spoil(id);
                return false;
            }
            FileState::Open(_) if this => {}
            // nothing has kept its inode from being given to another file
            FileState::Open(_) | FileState::Closed => match self.open(pid, mapped, watch) {
                Ok(opened) if self.is(id, &opened) => self.opened(id, opened),
                Ok(_) => {
                    if this {
                        self.spoil(id);
                    }
                    return false;
                }
                // it may still be where it was last
                Err(_) => return true,
            },
            FileState::Failed(_) if entry.attempts < ATTEMPTS_MAX => {
                entry.attempts += 1;
                match self.open(pid, mapped, watch) {
                    Ok(opened) if self.is(id, &opened) && self.may_be_called(id, &opened) => self.opened(id, opened),
                    Ok(_) => return false,
                    Err(refused) => self.refused(id, refused),
                }
            }
            FileState::Failed(_) => {}
        }
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.source = Source { pid, mapped: mapped.clone() };
        }
        true
    }

    fn is(&self, id: FileNumber, opened: &OpenedFile) -> bool {
        self.entries.get(id.0 as usize).is_some_and(|entry| entry.is(opened))
    }

    fn open(&mut self, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> Result<OpenedFile, NotOpened> {
        let kept = || watch.candidates(mapped).find_map(|file| accept(file, mapped));
        let opened = self.opener.open(pid, mapped).or_else(|refused| kept().ok_or(refused))?;
        self.identified(opened)
    }

    fn identified(&self, opened: OpenedFile) -> Result<OpenedFile, NotOpened> {
        let ident =
            self.reader.ident(&opened.file).map_err(|Unread { why, hangs }| NotOpened { reason: why, hangs })?;
        Ok(OpenedFile { ident: Some(ident), ..opened })
    }

    fn refused(&mut self, id: FileNumber, refused: NotOpened) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.state = FileState::Failed(refused.reason);
            if refused.hangs {
                entry.attempts = ATTEMPTS_MAX;
            }
        }
    }

    fn seen_first(&mut self, key: Key, class: MappingClass, pid: u32, mapped: &Mapped, watch: &ExecWatch) -> Backing {
        let opened = self.open(pid, mapped, watch);
        if is_run_time_code(class, mapped, &opened) {
            if class == MappingClass::Nameless && mapped.inode != 0 {
                if self.jit_inodes.len() >= JIT_INODES_MAX {
                    self.jit_inodes.clear();
                }
                self.jit_inodes.insert((mapped.dev, mapped.inode));
            }
            return Backing::Jit;
        }
        let (path, _) = without_deleted(&mapped.path);
        // the same file may be known by another key: /proc does not tell generations, and the copies in containers have other inodes
        let canonical = match &opened {
            Ok(opened) if !build_id(opened).is_empty() => {
                let trusted = opened.trusted;
                Some(Key::BuildId { build_id: build_id(opened).to_vec(), path: path.to_vec(), trusted })
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
            None => {
                let named = opened.as_ref().map_or(Some(Vec::new()), |opened| self.name(path, opened));
                // the tape could not tell it from somebody else's
                let Some(build_id) = named else { return Backing::Unknown };
                self.add(path, build_id)
            }
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
            Err(refused) => self.refused(id, refused),
        }
        Backing::File(id)
    }

    /// The build id by which a file that is opened for the first time is on the tape: its own, or none if files of others have this
    /// path and build id there. None = they have that name too.
    fn name(&mut self, path: &[u8], opened: &OpenedFile) -> Option<Vec<u8>> {
        let free =
            |id: &Vec<u8>| *self.names.entry((id.clone(), path.to_vec())).or_insert(opened.trusted) == opened.trusted;
        [build_id(opened).to_vec(), Vec::new()].into_iter().find(free)
    }

    /// Whether the tape has a name for a file that was not opened so far.
    fn may_be_called(&mut self, id: FileNumber, opened: &OpenedFile) -> bool {
        let Some(entry) = self.entries.get(id.0 as usize).filter(|entry| entry.stat.is_none()) else { return true };
        let path = entry.mapping.path.clone();
        let named = self.name(&path, opened);
        let may = named.is_some();
        if let Some((build_id, entry)) = named.zip(self.entries.get_mut(id.0 as usize)) {
            entry.mapping.build_id = build_id;
        }
        may
    }

    fn add(&mut self, path: &[u8], build_id: Vec<u8>) -> FileNumber {
        let id = FileNumber(self.entries.len() as u32);
        let mapping = Mapping { kind: MappingKind::Elf, build_id, path: path.to_vec(), upid: 0 };
        self.entries.push(FileEntry {
            mapping,
            state: FileState::Closed,
            stat: None,
            unlinked: false,
            trusted: None,
            attempts: 1,
            spoiled: false,
            used: 0,
            source: Source::default(),
        });
        id
    }

    /// Keeps a file open, closing another when there are too many.
    fn opened(&mut self, id: FileNumber, opened: OpenedFile) {
        self.clock += 1;
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return };
        if matches!(entry.state, FileState::Open(_)) {
            return;
        }
        entry.stat = Some(opened.stat);
        entry.trusted = Some(opened.trusted);
        entry.unlinked = opened.unlinked;
        entry.spoiled = false;
        entry.used = self.clock;
        entry.state = FileState::Open(opened.file);
        self.open.push(id);
        if self.open.len() > self.open_max {
            self.close_one(id);
        }
    }

    /// Closes the least recently used file, except `keep`; one that cannot be opened again only if there is no other.
    fn close_one(&mut self, keep: FileNumber) {
        let age = |id: &FileNumber| self.entries.get(id.0 as usize).map(|entry| (entry.unlinked, entry.used));
        let oldest = self.open.iter().copied().filter(|id| *id != keep).min_by_key(age);
        if let Some(id) = oldest {
            self.close(id);
        }
    }

    /// Closes a file that is no longer needed, so that its file system can be unmounted; [`Self::get`] opens it again
    /// if it still exists.
    pub(crate) fn close(&mut self, id: FileNumber) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize)
            && matches!(entry.state, FileState::Open(_))
        {
            entry.state = FileState::Closed;
            self.open.retain(|open| *open != id);
        }
    }

    /// The tape's mapping for a file.
    pub fn mapping(&self, id: FileNumber) -> Option<&Mapping> {
        self.entries.get(id.0 as usize).map(|entry| &entry.mapping)
    }

    /// The file, opened for reading.
    ///
    /// # Errors
    /// Why it is not open, in words. A later mapping may succeed.
    pub fn get(&mut self, id: FileNumber) -> Result<&File, &str> {
        self.clock += 1;
        let at = id.0 as usize;
        if let Some(entry) = self.entries.get_mut(at) {
            entry.used = self.clock;
            match &entry.state {
                FileState::Closed => self.reopen(id),
                // the same inode may have been written to
                FileState::Open(file) if Stat::of(file).ok() != entry.stat => self.spoil(id),
                FileState::Open(_) | FileState::Failed(_) => {}
            }
        }
        match self.entries.get(at).map(|entry| &entry.state) {
            Some(FileState::Open(file)) => Ok(file),
            Some(FileState::Failed(reason)) => Err(reason),
            Some(FileState::Closed) | None => Err("not open"),
        }
    }

    /// Drops a file whose contents are no longer the mapped ones.
    fn spoil(&mut self, id: FileNumber) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            entry.state = FileState::Failed("written to while it was recorded".into());
            entry.spoiled = true;
            self.open.retain(|open| *open != id);
        }
    }

    fn reopen(&mut self, id: FileNumber) {
        let Some(entry) = self.entries.get(id.0 as usize) else { return };
        let (pid, mapped) = (entry.source.pid, entry.source.mapped.clone());
        let opened = self.opener.open(pid, &mapped).and_then(|opened| self.identified(opened));
        let Some(entry) = self.entries.get_mut(id.0 as usize) else { return };
        let reason = match opened {
            Ok(opened) if entry.is(&opened) => return self.opened(id, opened),
            Ok(_) => {
                entry.spoiled = true;
                "written to while it was closed for want of descriptors".into()
            }
            Err(refused) => format!("closed for want of descriptors, then {}", refused.reason),
        };
        entry.state = FileState::Failed(reason);
    }

    /// Number of files known; ids are below it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Why a file is not open; None = it is, or can be.
    #[cfg(test)]
    pub(crate) fn failure(&self, id: FileNumber) -> Option<&str> {
        match &self.entries.get(id.0 as usize)?.state {
            FileState::Failed(reason) => Some(reason),
            FileState::Open(_) | FileState::Closed => None,
        }
    }

    /// Counts of files so far.
    pub fn counts(&self) -> FileCounts {
        let failed = self.entries.iter().filter(|entry| matches!(entry.state, FileState::Failed(_))).count();
        FileCounts { files: self.entries.len() as u64, failed: failed as u64, over_limit: self.over_limit }
    }
}

/// The kind of a mapping, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MappingClass {
    /// Cannot be opened.
    Backing(Backing),
    /// A file with a name.
    File,
    /// A file without a name in any directory: memfd, System V shared memory.
    Nameless,
}

fn classify(mapped: &Mapped) -> MappingClass {
    let path = &mapped.path[..];
    if path == b"[vdso]" {
        // 32-bit processes have another one, below 4 GiB
        return MappingClass::Backing(if mapped.end > 1 << 32 { Backing::Vdso } else { Backing::Unknown });
    }
    if path == b"[vsyscall]" {
        return MappingClass::Backing(Backing::Unknown);
    }
    if mapped.inode == 0 || path.starts_with(b"[") || path == b"//anon" || path.starts_with(b"/dev/zero") {
        return MappingClass::Backing(Backing::Jit);
    }
    let nameless: [&[u8]; 4] = [b"/memfd:", b"/SYSV", b"/anon_hugepage", b"anon_inode:"];
    if nameless.iter().any(|start| path.starts_with(start)) { MappingClass::Nameless } else { MappingClass::File }
}

/// Memory backed by a file only for its pages: no ELF file, and no lasting name.
fn is_run_time_code(class: MappingClass, mapped: &Mapped, opened: &Result<OpenedFile, NotOpened>) -> bool {
    let gone = class == MappingClass::Nameless || without_deleted(&mapped.path).1;
    match opened {
        Ok(opened) => !opened.ident.as_ref().is_some_and(|ident| ident.elf) && (gone || opened.unlinked),
        Err(_) => class == MappingClass::Nameless,
    }
}

fn key_of(mapped: &Mapped) -> Key {
    let path = without_deleted(&mapped.path).0.to_vec();
    Key::Inode { dev: mapped.dev, inode: mapped.inode, generation: mapped.generation, path }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::*;
    use crate::foreign;

    /// No process has this number: files are opened by their paths.
    const NOBODY: u32 = u32::MAX;

    fn mapped(path: &Path) -> Mapped {
        let meta = fs::metadata(path).unwrap();
        let path = path.as_os_str().as_bytes().to_vec();
        Mapped { start: 0x1000, end: 0x2000, dev: meta.dev(), inode: meta.ino(), path, ..Mapped::default() }
    }

    fn see(files: &mut Files, mapped: &Mapped) -> FileNumber {
        match files.see(NOBODY, mapped, &ExecWatch::none()) {
            Backing::File(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn contents(files: &mut Files, id: FileNumber) -> Result<String, String> {
        let mut text = String::new();
        let mut file = File::open(format!("/proc/self/fd/{}", files.get(id)?.as_raw_fd())).unwrap();
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn a_file_is_known_once() {
        let mut files = Files::new(10, foreign::rules().unwrap());
        let exe = std::env::current_exe().unwrap();
        // /proc tells no generation, the side-band does
        let by_proc = mapped(&exe);
        let generation = generation(&exe);
        let by_sideband = Mapped { generation, ..by_proc.clone() };
        let first = see(&mut files, &by_sideband);
        assert_eq!(files.mapping(first).unwrap().build_id.len(), 20);
        assert_eq!(see(&mut files, &by_proc), first);
        assert_eq!(see(&mut files, &by_sideband), first);
        assert_eq!(files.len(), 1);
        // another path is another mapping of the tape
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        fs::copy(&exe, &copy).unwrap();
        assert_ne!(see(&mut files, &mapped(&copy)), first);
        let link = dir.path().join("link");
        fs::hard_link(&copy, &link).unwrap();
        assert_ne!(see(&mut files, &mapped(&link)), see(&mut files, &mapped(&copy)));
    }

    /// In the kernel's form; 0 if the file system has none.
    fn generation(path: &Path) -> u64 {
        let out = std::process::Command::new("lsattr").arg("-v").arg(path).output();
        let text = out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
        text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn copies_at_one_path_are_one_file_while_their_build_ids_are_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let exe = std::env::current_exe().unwrap();
        fs::copy(&exe, &path).unwrap();
        let before = mapped(&path);
        let mut files = Files::new(1, foreign::rules().unwrap());
        let first = see(&mut files, &before);
        // as in another container: the same program, another inode
        let aside = dir.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        fs::copy(&exe, &path).unwrap();
        assert_ne!(mapped(&path).inode, before.inode);
        assert_eq!(see(&mut files, &mapped(&path)), first);
        // closed, it is opened again from the copy
        let other = dir.path().join("other");
        fs::write(&other, "x").unwrap();
        see(&mut files, &mapped(&other));
        fs::remove_file(&aside).unwrap();
        assert!(files.get(first).is_ok());
        assert_eq!(files.counts(), FileCounts { files: 2, failed: 0, over_limit: 0 });
        // and a library that replaces it is another file
        fs::remove_file(&path).unwrap();
        fs::copy("/bin/true", &path).unwrap();
        assert_ne!(see(&mut files, &mapped(&path)), first);
        assert_eq!(files.len(), 3);
    }

    #[test]
    fn a_copy_of_somebody_else_is_another_file_whatever_build_id_it_has() {
        let own = std::env::current_exe().unwrap();
        // SAFETY: it only returns a number.
        let (me, they) = (unsafe { libc::geteuid() }, 65534);
        for [first, second] in [[me, they], [they, me]] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("libc.so.6");
            let mut files = Files::new(10, foreign::rules().unwrap());
            // one after the other at the same path, as each user has it in a namespace
            let mut put = |of: &Path, owner: u32| {
                fs::rename(&path, dir.path().join(files.len().to_string() + "-")).ok();
                fs::copy(of, &path).unwrap();
                std::os::unix::fs::chown(&path, Some(owner), None).ok()?;
                let backing = files.see(NOBODY, &mapped(&path), &ExecWatch::none());
                let Backing::File(id) = backing else { return Some((backing, 0)) };
                Some((backing, files.mapping(id).unwrap().build_id.len()))
            };
            let (Some(one), Some(other)) = (put(&own, first), put(&own, second)) else {
                return; // only root can give files away
            };
            assert_ne!(one.0, other.0);
            assert_eq!((one.1, other.1), (20, 0), "names of one are not found by the other's build id");
            // those of others among themselves are one, as in containers
            assert_eq!(put(&own, if first == me { 1000 } else { me }).unwrap(), other);
            // who has neither the build id nor the path to itself has no name on the tape
            let text = Path::new("/etc/passwd");
            assert_eq!(put(text, first).unwrap().0, Backing::Unknown);
            assert!(matches!(put(text, second).unwrap().0, Backing::File(_)));
        }
    }

    #[test]
    fn an_inode_number_that_is_used_again_is_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("file"), dir.path().join("other"));
        fs::write(&path, "one").unwrap();
        fs::write(&other, "x").unwrap();
        let first_mapped = mapped(&path);
        let mut files = Files::new(1, foreign::rules().unwrap());
        let first = see(&mut files, &first_mapped);
        // closed: its inode is free, and here the new file has it
        see(&mut files, &mapped(&other));
        fs::write(&path, "another").unwrap();
        let second = see(&mut files, &first_mapped);
        assert_ne!(second, first);
        assert_eq!(contents(&mut files, second).as_deref(), Ok("another"));
        assert!(files.failure(first).unwrap().starts_with("written to"));
        // it is written to between two looks at it
        fs::write(&path, "third one").unwrap();
        assert!(contents(&mut files, second).is_err());
        let third = see(&mut files, &first_mapped);
        assert_ne!(third, second);
        assert_eq!(contents(&mut files, third).as_deref(), Ok("third one"));
    }

    #[test]
    fn names_tell_what_has_no_file() {
        let mut files = Files::new(10, foreign::rules().unwrap());
        let mut backing = |path: &str, inode, end| {
            let mapped = Mapped { start: 0x1000, end, inode, path: path.into(), ..Mapped::default() };
            files.see(NOBODY, &mapped, &ExecWatch::none())
        };
        let high = 0x7fff_0000_0000;
        assert_eq!(backing("[vdso]", 0, high), Backing::Vdso);
        assert_eq!(backing("[vdso]", 0, 0xf7f0_0000), Backing::Unknown);
        for path in ["", "//anon", "[heap]", "[stack]", "[anon:jit]", "[uprobes]"] {
            assert_eq!(backing(path, 0, high), Backing::Jit, "{path}");
        }
        for path in ["/dev/zero (deleted)", "/memfd:x (deleted)", "/SYSV00000000 (deleted)", "/anon_hugepage (deleted)"]
        {
            assert_eq!(backing(path, 7, high), Backing::Jit, "{path}");
        }
        // deleted, but it may have been a library
        assert!(matches!(backing("/gone.so (deleted)", 7, high), Backing::File(_)));
        assert_eq!(files.failure(FileNumber(0)), Some("deleted, and its process had ended before it could be opened"));
        assert_eq!(files.mapping(FileNumber(0)).unwrap().path, b"/gone.so");
    }

    #[test]
    fn the_file_used_longest_ago_is_closed_and_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(2, foreign::rules().unwrap());
        let paths: Vec<_> = (0..4).map(|i| dir.path().join(i.to_string())).collect();
        let ids: Vec<FileNumber> = paths
            .iter()
            .map(|path| {
                fs::write(path, path.as_os_str().as_bytes()).unwrap();
                see(&mut files, &mapped(path))
            })
            .collect();
        assert_eq!(files.open, ids[2..]);
        for _ in 0..3 {
            for (path, id) in paths.iter().zip(&ids) {
                assert_eq!(contents(&mut files, *id).as_deref(), Ok(path.to_str().unwrap()));
                assert!(files.open.len() <= 2);
            }
        }
        assert_eq!(files.counts(), FileCounts { files: 4, failed: 0, over_limit: 0 });
        // closed, and another file by the time it is wanted
        fs::remove_file(&paths[0]).unwrap();
        assert!(
            contents(&mut files, ids[0]).unwrap_err().starts_with("closed for want of descriptors, then not there")
        );
        // one that could not be opened again stays
        fs::remove_file(&paths[3]).unwrap();
        let held = mapped(&paths[1]);
        files.entries[ids[3].0 as usize].unlinked = true;
        for i in 0..5 {
            let path = dir.path().join(format!("more{i}"));
            fs::write(&path, "x").unwrap();
            see(&mut files, &mapped(&path));
        }
        assert!(files.get(ids[3]).is_ok());
        assert_eq!(see(&mut files, &held), ids[1]);
    }

    #[test]
    fn a_file_that_is_written_to_becomes_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "one").unwrap();
        let mut files = Files::new(10, foreign::rules().unwrap());
        let first = see(&mut files, &mapped(&path));
        assert_eq!(see(&mut files, &mapped(&path)), first);
        fs::write(&path, "another").unwrap();
        let second = see(&mut files, &mapped(&path));
        assert_ne!(first, second);
        assert_eq!(contents(&mut files, first), Err("written to while it was recorded".into()));
        assert_eq!(contents(&mut files, second).as_deref(), Ok("another"));
        fs::write(&path, "and again").unwrap();
        assert_eq!(contents(&mut files, second), Err("written to while it was recorded".into()));
    }

    #[test]
    fn a_file_that_could_not_be_opened_is_tried_when_it_is_mapped_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside) = (dir.path().join("file"), dir.path().join("aside"));
        fs::write(&path, "x").unwrap();
        let mapped = mapped(&path);
        fs::rename(&path, &aside).unwrap();
        let mut files = Files::new(10, foreign::rules().unwrap());
        let id = see(&mut files, &mapped);
        assert!(files.get(id).is_err());
        fs::rename(&aside, &path).unwrap();
        assert_eq!(see(&mut files, &mapped), id);
        assert!(files.get(id).is_ok());
        files.close(id);
        assert!(files.open.is_empty());
        assert!(files.get(id).is_ok());
    }
}
