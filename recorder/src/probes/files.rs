//! The files that a name stands for: a path as it is, a program in PATH, a library where the loader of this machine looks
//! and wherever a process has one of this name mapped, such as a container's.

use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use systape_abi::plain;
use systape_symbols::open_regular;

use super::mounted;
use crate::foreign::{FactReader, Wanted, Whose};
use crate::kernel::native;
use crate::machine::patient::each;
use crate::mappings::open::{open_mapped, without_deleted};
use crate::mappings::{Mapped, proc_maps};

/// Where libraries are, besides what /etc/ld.so.conf.d names.
const DIRS: [&str; 8] = [
    native::LIBRARIES[0],
    native::LIBRARIES[1],
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib",
    "/usr/lib",
];
/// Most mapped libraries of all processes that are kept, each once.
const MOST_MAPPED: usize = 1 << 16;
/// Most of one name that are opened; each container has its own number for the same file.
const MOST_OPENED: usize = 1024;
/// Most of one name that are probed: each takes the kernel some tens of ms.
const MOST_PROBED: usize = 64;
/// Largest library of a user that is looked into, bytes: tables of symbols are kept while they are searched.
const LARGEST_OF_A_USER: u64 = 256 << 20;
/// File systems that a program or another host serves (statfs(2), linux/magic.h): a read of them may never end, and the
/// kernel reads the code that it puts a probe on.
const SERVED: [i64; 7] = [
    0x6573_5546, // FUSE, and the host's of a virtual machine
    0x6969,      // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x0102_1997, // 9p
    0x00c3_6400, // Ceph
    0x5346_414f, // AFS
];
const OVERLAYFS: i64 = 0x794c_7630;

/// A program or library. It is held open, so that what is probed is what was looked into.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    /// Path of the file as its users see it.
    pub path: PathBuf,
    /// A process that has it, where this machine's loader does not look for it.
    of: Option<u32>,
    file: Arc<File>,
}

impl Binary {
    /// Who may have made it.
    pub(super) fn whose(&self) -> Whose {
        if self.of.is_some() { Whose::Strange } else { Whose::Ours }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// A path by which the kernel finds it, in whatever mount namespace it is.
    pub(crate) fn by_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Words for a sentence; other users may have chosen it.
    pub(crate) fn words(&self) -> String {
        let path = plain(&self.path.to_string_lossy()).into_owned();
        self.of.map_or_else(|| path.clone(), |pid| format!("{path} of process {pid}"))
    }

    #[cfg(test)]
    pub(crate) fn of_nothing() -> Self {
        Self { path: PathBuf::from("/f"), of: None, file: Arc::new(File::open("/dev/null").unwrap()) }
    }
}

/// Facts by which a file is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    dev: u64,
    ino: u64,
    size: u64,
    /// Of the contents and of the inode, seconds and nanoseconds.
    times: [i64; 4],
    /// Of its file system.
    magic: i64,
}

impl FileIdentity {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        Ok(Self { dev: meta.dev(), ino: meta.ino(), size: meta.size(), times, magic: magic(file)? })
    }

    fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.dev, self.ino, self.size].into_iter().map(u64::to_le_bytes);
        numbers.chain(self.times.into_iter().chain([self.magic]).map(i64::to_le_bytes)).flatten().collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[dev, ino, size, a, b, c, d, magic] = bytes.as_chunks().0 else { return None };
        let [dev, ino, size] = [dev, ino, size].map(u64::from_le_bytes);
        let times = [a, b, c, d].map(i64::from_le_bytes);
        Some(Self { dev, ino, size, times, magic: i64::from_le_bytes(magic) })
    }

    /// Whether a probe on one of them is a probe on the other. Overlays that share a layer share its inodes, under
    /// numbers of their own; the times of its files, to the nanosecond, are the layer's.
    fn is_one_with(&self, other: &Self) -> bool {
        let stamp = |one: &Self| (one.size, one.times);
        match self.magic == OVERLAYFS || other.magic == OVERLAYFS {
            true if self.dev != other.dev => stamp(self) == stamp(other),
            _ => (self.dev, self.ino) == (other.dev, other.ino),
        }
    }
}

fn magic(file: &File) -> io::Result<i64> {
    // SAFETY: zeroed is a valid statfs.
    let mut raw: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: file is open, raw has room for a statfs.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut raw) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(raw.f_type)
}

/// A library in the memory of a process.
#[derive(Clone, Debug)]
struct InMemory {
    pid: u32,
    mapped: Mapped,
}

/// Finds files by name.
#[derive(Debug)]
pub(crate) struct Files {
    /// Libraries of all processes; none before they are read.
    mapped: Vec<InMemory>,
    facts: FactReader,
    /// Those of names that were asked for before.
    known: HashMap<String, Vec<Binary>>,
    /// Which libraries of that name are not probed, and why.
    pub notes: Vec<String>,
}

impl Default for Files {
    fn default() -> Self {
        Self { mapped: Vec::new(), facts: FactReader::new(), known: HashMap::new(), notes: Vec::new() }
    }
}

/// A mapped library is asked for: opens it, in the process that opens. Which it is comes with it.
///
/// # Errors
/// Why it is not to be looked into, in words.
pub(crate) fn open_asked(request: &[u8]) -> Result<(Vec<u8>, File), String> {
    let (pid, mapped) = Mapped::from_bytes(request).ok_or("no mapping is asked for")?;
    let file = open_mapped(pid, &mapped).map_err(|refused| refused.reason)?.file;
    let identity = FileIdentity::of(&file).map_err(|error| error.to_string())?;
    if SERVED.contains(&identity.magic) {
        return Err("a program or another host serves its file system, which may never answer".to_owned());
    }
    if identity.magic == OVERLAYFS && !mounted::is_by_root(pid, &file) {
        return Err("a user mounted its file system, which may never answer".to_owned());
    }
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if meta.uid() != 0 && meta.len() > LARGEST_OF_A_USER {
        return Err(format!("it has {} bytes, too many to look into", meta.len()));
    }
    Ok((identity.to_bytes(), file))
}

impl Files {
    /// The files that `name` stands for, each once.
    ///
    /// # Errors
    /// A sentence: there is none.
    pub(crate) fn named(&mut self, name: &str) -> Result<Vec<Binary>> {
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        let found = self.find(name)?;
        self.known.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// What `look` finds in the files that `name` stands for. Why it fails in a file that only processes have is a note.
    ///
    /// # Errors
    /// A sentence: there is no such file, or `look` fails in all.
    pub(super) fn look_into<T>(
        &mut self,
        name: &str,
        look: impl Fn(&Binary, &mut FactReader) -> Result<T, String>,
    ) -> Result<Vec<T>> {
        let (mut all, mut why) = (Vec::new(), String::new());
        for binary in self.named(name)? {
            match look(&binary, &mut self.facts) {
                Ok(found) => all.push(found),
                Err(error) => {
                    let note = format!("{} is not probed: {error}", binary.words());
                    // each function asks anew
                    if binary.of.is_some() && !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                    why = format!("{}: {error}", binary.words());
                }
            }
        }
        if all.is_empty() {
            bail!("{why}");
        }
        Ok(all)
    }

    /// Whether the file of a process is asked for by this name.
    fn has_soname(&mut self, file: &File, name: &str) -> bool {
        let soname = self.facts.ask(Whose::Strange, |reader, limits| reader.soname(file, limits));
        soname.is_ok_and(|soname| soname.as_deref() == Some(name.as_bytes()))
    }

    /// Whether a program uses no libraries; false too if that cannot be found out in a short time.
    pub(super) fn is_static(&mut self, path: &Path) -> bool {
        let opened = self.facts.open(Wanted::Program, path.as_os_str().as_bytes());
        opened.is_ok_and(|(_, file)| self.facts.ask(Whose::Strange, |reader, limits| reader.is_static(&file, limits)))
    }

    fn find(&mut self, name: &str) -> Result<Vec<Binary>> {
        let opened = |path: &Path| open_regular(path)?.ok_or_else(|| io::Error::other("it is no regular file"));
        if name.contains('/') {
            let found = fs::canonicalize(name).and_then(|path| Ok((opened(&path)?, path)));
            return match found {
                Ok((file, path)) => Ok(vec![Binary { path, of: None, file: Arc::new(file) }]),
                Err(error) => bail!("{error}"),
            };
        }
        let mut found: Vec<(Binary, FileIdentity)> = Vec::new();
        for path in paths(name) {
            let Ok(file) = opened(&path) else { continue };
            let identity = FileIdentity::of(&file)?;
            if !found.iter().any(|(_, known)| known.is_one_with(&identity)) {
                found.push((Binary { path, of: None, file: Arc::new(file) }, identity));
            }
            if !is_library(name) {
                break;
            }
        }
        if is_library(name) {
            self.add_mapped(name, &mut found);
        }
        if found.is_empty() {
            let what = if is_library(name) { "library" } else { "program or library" };
            bail!("there is no {what} {name} where this machine looks for them: write its path");
        }
        Ok(found.into_iter().map(|(binary, _)| binary).collect())
    }

    /// Adds the libraries of this name that processes have and that are others than those found.
    fn add_mapped(&mut self, name: &str, found: &mut Vec<(Binary, FileIdentity)>) {
        let fitting: Vec<InMemory> =
            self.mapped.iter().filter(|one| may_be(&base(&one.mapped), name)).cloned().collect();
        let refused = |path: &Path, pid: u32, why: &str| {
            format!("{} of process {pid} is not probed: {why}", plain(&path.to_string_lossy()))
        };
        for (at, one) in fitting.into_iter().enumerate() {
            let path = PathBuf::from(OsStr::from_bytes(without_deleted(&one.mapped.path).0));
            let (pid, is_named) = (one.pid, base(&one.mapped) == name.as_bytes());
            if at >= MOST_OPENED || found.len() >= MOST_PROBED {
                let why = format!("{} others of this name are, and no more will be", found.len());
                self.notes.push(refused(&path, pid, &why));
                break;
            }
            let opened = self.facts.open(Wanted::Library, &one.mapped.to_bytes(pid)).and_then(|(bytes, file)| {
                Ok((file, FileIdentity::from_bytes(&bytes).ok_or("it is not known which it is")?))
            });
            match opened {
                Ok((file, _)) if !is_named && !self.has_soname(&file, name) => {}
                Ok((_, identity)) if found.iter().any(|(_, known)| known.is_one_with(&identity)) => {}
                Ok((file, identity)) => {
                    found.push((Binary { path, of: Some(pid), file: Arc::new(file) }, identity));
                }
                // of another name its soname is not known
                Err(why) if is_named && Path::new(&format!("/proc/{pid}")).exists() => {
                    self.notes.push(refused(&path, pid, &why));
                }
                Err(_) => {}
            }
        }
    }

    /// Reads the libraries of all processes, each once. The caller has to do so before it probes any file.
    ///
    /// # Errors
    /// A process hangs with its memory map locked. To put in a probe, the kernel locks the map of each process that has the
    /// file (uprobe_register), and such a wait cannot be ended.
    pub(crate) fn read(&mut self) -> Result<()> {
        let mut all = HashMap::new();
        let pids = proc_maps::pids();
        let hung = each(
            "libraries",
            pids.clone(),
            |pid, _| proc_maps::read(pid),
            |at, maps| {
                let pid = pids.get(at).copied().unwrap_or_default();
                for mapped in maps.unwrap_or_default() {
                    let is_one = mapped.inode != 0 && is_library(&String::from_utf8_lossy(&base(&mapped)));
                    let key = (mapped.dev, mapped.inode, base(&mapped));
                    if is_one && all.len() < MOST_MAPPED {
                        all.entry(key).or_insert(InMemory { pid, mapped });
                    }
                }
            },
        );
        if let Some(first) = hung.first().and_then(|at| pids.get(*at)) {
            let more = if hung.len() > 1 { format!(" and {} others", hung.len() - 1) } else { String::new() };
            bail!(
                "the memory map of process {first}{more} is locked, and the kernel waits for every process that may run the file of a probe: end it, or leave --uprobe, --usdt and --probe out"
            );
        }
        let mut all: Vec<InMemory> = all.into_values().collect();
        all.sort_by(|a, b| (a.pid, &a.mapped.path).cmp(&(b.pid, &b.mapped.path)));
        self.mapped = all;
        Ok(())
    }
}

/// The last part of the path.
fn base(mapped: &Mapped) -> Vec<u8> {
    let (path, _) = without_deleted(&mapped.path);
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec()
}

/// Whether a file may have the soname `name`: libc-2.31.so and libcurl.so.4.8.0 do.
fn may_be(base: &[u8], name: &str) -> bool {
    let stem = name.split(".so").next().unwrap_or(name);
    base == name.as_bytes()
        || base.strip_prefix(stem.as_bytes()).is_some_and(|rest| rest.starts_with(b".so") || rest.starts_with(b"-"))
}

fn is_library(name: &str) -> bool {
    name.contains(".so")
}

/// Where this machine looks for a file of this name.
pub(super) fn paths(name: &str) -> Vec<PathBuf> {
    let in_path = env::var_os("PATH").unwrap_or_default();
    let dirs = DIRS.iter().map(PathBuf::from).chain(configured());
    let dirs: Vec<PathBuf> =
        if is_library(name) { dirs.collect() } else { env::split_paths(&in_path).chain(dirs).collect() };
    dirs.iter().map(|dir| dir.join(name)).filter(|path| path.is_file()).collect()
}

/// Directories of /etc/ld.so.conf.d.
fn configured() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/etc/ld.so.conf.d") else { return Vec::new() };
    let texts = entries.flatten().take(256).filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::trim).map(PathBuf::from).collect::<Vec<_>>());
    lines.filter(|line| line.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_programs_are_found_once() {
        let mut files = Files::default();
        files.read().unwrap();
        // a library that the machine has, mapped by this very process
        let libc = files.named("libc.so.6").unwrap();
        let ours = libc.iter().filter(|one| one.of.is_none()).count();
        assert_eq!(ours, 1, "{libc:?}: /lib is a link to /usr/lib, or there is one of them only");
        assert_eq!(files.named("sh").unwrap().len(), 1);
        let error = files.named("libnone.so.9").unwrap_err().to_string();
        assert!(error.contains("no library libnone.so.9"), "{error}");
        assert!(files.named("./none/none").unwrap_err().to_string().contains("No such file"));
        assert!(files.named("/dev/null").unwrap_err().to_string().contains("no regular file"));
    }

    #[test]
    fn a_soname_has_files_of_other_names() {
        for base in ["libc.so.6", "libc-2.31.so", "libc.so.6.1"] {
            assert!(may_be(base.as_bytes(), "libc.so.6"), "{base}");
        }
        for base in ["libcurl.so.4", "libcap.so.2", "c.so.6", "mylibc.so.6"] {
            assert!(!may_be(base.as_bytes(), "libc.so.6"), "{base}");
        }
    }

    #[test]
    fn a_copy_is_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let (one, copy, link) = (dir.path().join("one"), dir.path().join("copy"), dir.path().join("link"));
        fs::write(&one, "text").unwrap();
        fs::copy(&one, &copy).unwrap();
        fs::hard_link(&one, &link).unwrap();
        let identity = |path: &Path| FileIdentity::of(&File::open(path).unwrap()).unwrap();
        assert!(identity(&one).is_one_with(&identity(&link)));
        assert!(!identity(&one).is_one_with(&identity(&copy)));
    }
}
