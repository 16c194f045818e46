//! The directory of a flight recorder's tapes: their names, how they appear, and how much room they may take.
//!
//! It is opened before rights are given up ([`place`]), and everything in it is reached through that descriptor. A tape is
//! written under a temporary name for its owner alone, and renamed when it is whole. What a killed recorder leaves has the
//! temporary name and is readable. Only tapes of this recorder ([`RecorderId`]) are counted and removed, whatever their names.

use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use caps::{CapSet, Capability};
use systape_cli::held;

use super::own::RecorderId;
use super::{peer, place};
use crate::machine::system;
use crate::own::say::say;

/// Behind the name of a tape that is being written.
const PART: &str = ".part";
/// Behind the name of every tape.
const TAPE: &str = ".tape";
/// Names that are tried when one is taken.
const TRIES: u32 = 100;
/// Longest part of a name that comes from the host or from what fired.
const LONGEST: usize = 64;
/// Length of `2026-11-22T130501Z`.
const STAMP: usize = 18;

/// How much room tapes may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Most tapes.
    pub tapes: usize,
    /// Most bytes of all of them.
    pub bytes: u64,
    /// Part of the file system that stays free, 0 to 1.
    pub free: f64,
}

/// The directory of tapes.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
    host: String,
    own: RecorderId,
    limits: Limits,
}

/// A tape that was written before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Old {
    name: CString,
    bytes: u64,
    /// When it was last written, s and ns: of tapes of the same second.
    written: (i64, i64),
    /// Somebody writes it: it takes room, and stays.
    busy: bool,
}

/// A new tape under its temporary name.
#[derive(Debug)]
pub(crate) struct Part {
    /// Where to write.
    pub file: File,
    /// Name of the tape when it is whole.
    pub name: String,
}

impl Dir {
    /// Opens the directory of the machine `host`, or makes it ([`place::open`]).
    ///
    /// # Errors
    /// When it is none, or others could remove tapes there.
    pub(crate) fn open(path: &Path, host: &[u8], limits: Limits) -> Result<Self> {
        let fd = place::open(path)?;
        let own = RecorderId::new(host);
        let host = word(&String::from_utf8_lossy(host));
        let host = if host.is_empty() { "host".into() } else { host };
        Ok(Self { fd, path: path.to_path_buf(), host, own, limits })
    }

    /// An id for a new tape, by which it is known as this recorder's.
    pub(crate) fn tape_id(&self, seed: u64) -> [u8; 16] {
        self.own.mark(system::unique_id(seed))
    }

    /// Says how many files have names of tapes and are not this recorder's.
    pub(crate) fn tell_of_others(&self) {
        let Ok((_, others)) = self.tapes() else { return };
        if others > 0 {
            let (files, they) = if others == 1 { ("file is", "it is") } else { ("files are", "they are") };
            say(format_args!(
                "--dir {}: {others} {files} called like a tape of this recorder and not its own: {they} neither counted nor removed",
                self.path.display()
            ));
        }
    }

    /// Path of the directory as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if this process could not make files there with the rights that a recording keeps. It may still have more.
    ///
    /// # Errors
    /// See above.
    pub(crate) fn check(&self) -> Result<()> {
        let cap = Capability::CAP_DAC_OVERRIDE;
        let had = caps::has_cap(None, CapSet::Effective, cap).unwrap_or(false);
        if had {
            caps::drop(None, CapSet::Effective, cap).context("cannot give a capability up")?;
        }
        let checked = self.check_as_it_is();
        if had {
            caps::raise(None, CapSet::Effective, cap).context("cannot get a capability back")?;
        }
        checked
    }

    fn check_as_it_is(&self) -> Result<()> {
        // SAFETY: the descriptor is open, the string a constant.
        let able =
            unsafe { libc::faccessat(self.fd.as_raw_fd(), c".".as_ptr(), libc::W_OK | libc::X_OK, libc::AT_EACCESS) };
        if able != 0 {
            let error = io::Error::last_os_error();
            return Err(error).with_context(|| {
                format!("--dir {}: cannot make files there with the rights that a recording keeps", self.path.display())
            });
        }
        Ok(())
    }

    /// A path to `name` that needs no rights on the way to the directory.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
    }

    /// A new tape of what happened at `realtime` (ns since 1970), called by `slug`.
    ///
    /// # Errors
    /// When no file can be made.
    pub(crate) fn create(&self, realtime: u64, slug: &str) -> Result<Part> {
        let base = format!("{}-{}-{}", self.host, stamp(realtime), word(slug));
        for number in 1..=TRIES {
            let name = if number == 1 { format!("{base}{TAPE}") } else { format!("{base}-{number}{TAPE}") };
            if self.exists(&name) {
                continue;
            }
            match self.make(&format!("{name}{PART}")) {
                Ok(file) => return Ok(Part { file, name }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).with_context(|| format!("cannot make {name}{PART}")),
            }
        }
        bail!("{base}{TAPE}: there are {TRIES} of that name");
    }

    fn exists(&self, name: &str) -> bool {
        let Ok(name) = CString::new(name) else { return true };
        // SAFETY: the descriptor is open, name NUL-terminated.
        unsafe { libc::faccessat(self.fd.as_raw_fd(), name.as_ptr(), libc::F_OK, libc::AT_SYMLINK_NOFOLLOW) == 0 }
    }

    fn make(&self, name: &str) -> io::Result<File> {
        let name = CString::new(name)?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the descriptor is open, name NUL-terminated; a new descriptor comes back, or -1.
        let fd = unsafe { libc::openat(self.fd.as_raw_fd(), name.as_ptr(), flags, 0o600 as libc::c_uint) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave this descriptor to us.
        let file = unsafe { File::from_raw_fd(fd) };
        held::hold(&file);
        Ok(file)
    }

    /// Gives a whole tape its name; never in place of another file.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn keep(&self, name: &str) -> Result<()> {
        let (from, to) = (CString::new(format!("{name}{PART}"))?, CString::new(name)?);
        let dir = self.fd.as_raw_fd();
        // SAFETY: the descriptor is open, both strings NUL-terminated.
        let rename = |flags| unsafe { libc::renameat2(dir, from.as_ptr(), dir, to.as_ptr(), flags) };
        if rename(libc::RENAME_NOREPLACE) == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // a file system that cannot promise it; nobody else makes such names
        let refused = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS));
        if refused && !self.exists(name) && rename(0) == 0 {
            return Ok(());
        }
        Err(error).with_context(|| format!("cannot rename {name}{PART}"))
    }

    /// Makes the names in it safe against a power cut, where the file system can.
    pub(crate) fn sync(&self) {
        // SAFETY: the descriptor is open.
        unsafe { libc::fsync(self.fd.as_raw_fd()) };
    }

    /// Removes the oldest tapes until one more of `bytes` fits.
    ///
    /// # Errors
    /// When it cannot fit.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<()> {
        self.remove(self.limits.tapes.saturating_sub(1), bytes)?;
        Ok(())
    }

    /// A tape that is being written has grown: removes the oldest others until all fit.
    ///
    /// # Errors
    /// When they do not fit.
    pub(crate) fn still_fits(&self) -> Result<()> {
        self.remove(usize::MAX, 0)
    }

    fn remove(&self, tapes: usize, bytes: u64) -> Result<()> {
        let (mut old, _) = self.tapes()?;
        // the time in a name is in seconds
        let begun = self.host.len() + 1 + STAMP;
        let age = |old: &Old| (old.name.as_bytes().get(..begun).map(<[u8]>::to_vec), old.written);
        old.sort_by_cached_key(age);
        let mut total: u64 = old.iter().map(|old| old.bytes).sum();
        let mut left = old.len();
        for Old { name, bytes: had, .. } in old.into_iter().filter(|old| !old.busy) {
            if left <= tapes && total.saturating_add(bytes) <= self.limits.bytes && self.has_free(bytes)? {
                return Ok(());
            }
            // SAFETY: the descriptor is open, name NUL-terminated.
            if unsafe { libc::unlinkat(self.fd.as_raw_fd(), name.as_ptr(), 0) } == 0 {
                (left, total) = (left - 1, total - had);
            }
        }
        if total.saturating_add(bytes) > self.limits.bytes {
            bail!("--disk: {} MiB of tapes are too much", total.saturating_add(bytes) >> 20);
        }
        if !self.has_free(bytes)? {
            bail!("--keep-free: less than {} % of the file system would stay free", self.limits.free * 100.0);
        }
        Ok(())
    }

    /// Whether enough stays free when `bytes` more are written.
    fn has_free(&self, bytes: u64) -> Result<bool> {
        let mut stat = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: stat is a valid statvfs to write to; zeroed bytes are a value of it.
        let (done, stat) = unsafe { (libc::fstatvfs(self.fd.as_raw_fd(), stat.as_mut_ptr()), stat.assume_init()) };
        if done != 0 {
            return Err(io::Error::last_os_error()).context("cannot see how much room there is");
        }
        let (free, all) = (stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize);
        Ok(free.saturating_sub(bytes) as f64 >= self.limits.free * all as f64)
    }

    /// Tapes of this recorder, whole, being written, or left by a killed one; and the number of files that have such a
    /// name and are none.
    fn tapes(&self) -> Result<(Vec<Old>, usize)> {
        let (mut own, mut others) = (Vec::new(), 0);
        for entry in std::fs::read_dir(self.at(".")).context("cannot read the directory")?.flatten() {
            let name = entry.file_name();
            if !self.is_own_name(&name) {
                continue;
            }
            match (self.tape(&entry.path()), CString::new(name.as_bytes())) {
                (Some((meta, busy)), Ok(name)) => {
                    own.push(Old {
                        name,
                        bytes: meta.blocks() * 512,
                        written: (meta.mtime(), meta.mtime_nsec()),
                        busy,
                    });
                }
                _ => others += 1,
            }
        }
        Ok((own, others))
    }

    /// What the file system says of a tape of this recorder, and whether it is being written; None = it is none.
    fn tape(&self, path: &Path) -> Option<(Metadata, bool)> {
        // a device acts when it is opened, and a pipe may wait
        let is_ours = |meta: &Metadata| meta.is_file() && meta.uid() == peer::own_uid();
        std::fs::symlink_metadata(path).ok().filter(is_ours)?;
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let meta = file.metadata().ok().filter(is_ours)?;
        self.own.wrote(&file).then(|| (meta, held::is_held(&file)))
    }

    /// Removes a part into which nothing was written.
    pub(crate) fn discard_empty(&self, name: &str) {
        let part = format!("{name}{PART}");
        if let Ok(name) = CString::new(&*part)
            && std::fs::symlink_metadata(self.at(&part)).is_ok_and(|meta| meta.is_file() && meta.len() == 0)
        {
            // SAFETY: the descriptor is open, name NUL-terminated.
            unsafe { libc::unlinkat(self.fd.as_raw_fd(), name.as_ptr(), 0) };
        }
    }

    /// Whether it is a name that [`Self::create`] gives.
    fn is_own_name(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        let name = name.strip_suffix(PART).unwrap_or(name);
        let rest = name.strip_suffix(TAPE).and_then(|name| name.strip_prefix(self.host.as_str()));
        let Some((stamp, rest)) = rest.and_then(|rest| rest.strip_prefix('-')?.split_at_checked(STAMP)) else {
            return false;
        };
        let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
        rest.starts_with('-') && stamp.chars().map(digits).eq("0000-00-00T000000Z".chars())
    }
}

/// Letters, digits and a few signs of `text`; others are one `-`.
fn word(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars().take(LONGEST) {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => word.push(c),
            '.' if !word.is_empty() => word.push(c),
            _ if !word.is_empty() && !word.ends_with('-') => word.push('-'),
            _ => {}
        }
    }
    word.trim_end_matches(['-', '.']).to_owned()
}

/// `2026-11-22T130501Z` of a time in ns since 1970.
pub(crate) fn stamp(realtime: u64) -> String {
    let seconds = (realtime / 1_000_000_000) as libc::time_t;
    let mut utc = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid; gmtime_r fills utc or leaves it zeroed.
    let utc = unsafe {
        libc::gmtime_r(&raw const seconds, utc.as_mut_ptr());
        utc.assume_init()
    };
    let (year, month, day) = (utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
    format!("{year:04}-{month:02}-{day:02}T{:02}{:02}{:02}Z", utc.tm_hour, utc.tm_min, utc.tm_sec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use systape_format::model::{End, Session};
    use systape_format::writer::Writer;

    const DAY: u64 = 86_400_000_000_000;

    fn dir(path: &Path, tapes: usize, bytes: u64) -> Dir {
        Dir::open(path, b"web 3", Limits { tapes, bytes, free: 0.0 }).unwrap()
    }

    /// What begins like a tape of `dir`'s recorder.
    fn tape(dir: &Dir, bytes: usize) -> Vec<u8> {
        let tape = Writer::create(Vec::new(), dir.tape_id(1), &Session::default()).unwrap();
        let mut tape = tape.finish(&End::default()).unwrap();
        tape.resize(bytes.max(tape.len()), 1);
        tape
    }

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_say_where_when_and_why() {
        assert_eq!(stamp(0), "1970-01-01T000000Z");
        assert_eq!(stamp(1_795_352_701_999_999_999), "2026-11-22T130501Z");
        assert_eq!(word("slow:fsync>500ms:a/b"), "slow-fsync-500ms-a-b");
        assert_eq!(word("../x"), "x");
        assert_eq!(word(&"y".repeat(900)).len(), LONGEST);
    }

    #[test]
    fn a_tape_appears_whole_and_for_its_owner() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(temp.path(), 9, 1 << 30);
        dir.check().unwrap();
        let part = dir.create(0, "kill").unwrap();
        assert_eq!(part.name, "web-3-1970-01-01T000000Z-kill.tape");
        let meta = std::fs::metadata(temp.path().join(format!("{}.part", part.name))).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        dir.keep(&part.name).unwrap();
        assert_eq!(names(temp.path()), ["web-3-1970-01-01T000000Z-kill.tape"]);
        // the next of the same second, and one whose name is a link
        assert_eq!(dir.create(0, "kill").unwrap().name, "web-3-1970-01-01T000000Z-kill-2.tape");
        symlink("/etc/passwd", temp.path().join("web-3-1970-01-02T000000Z-kill.tape.part")).unwrap();
        assert_eq!(dir.create(DAY, "kill").unwrap().name, "web-3-1970-01-02T000000Z-kill-2.tape");
    }

    #[test]
    fn the_oldest_tapes_go_first_and_others_stay() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(temp.path(), 3, 64 << 10);
        let others = ["notes.tape", "web-3-notatime-kill.tape", "web-30-1970-01-01T000000Z-kill.tape"];
        for name in others {
            std::fs::write(temp.path().join(name), "x").unwrap();
        }
        let write = |day: u64, bytes: usize| {
            dir.make_room(bytes as u64)?;
            let mut part = dir.create(day * DAY, "kill")?;
            part.file.write_all(&tape(&dir, bytes))?;
            dir.keep(&part.name)?;
            anyhow::Ok(part)
        };
        let days = || -> Vec<String> {
            let own = names(temp.path()).into_iter().filter(|name| !others.contains(&name.as_str()));
            own.map(|name| name["web-3-1970-01-".len()..][..2].to_owned()).collect()
        };
        (0..4).for_each(|day| drop(write(day, 4096).unwrap()));
        assert_eq!(days(), ["02", "03", "04"], "three tapes");
        drop(write(4, 40 << 10).unwrap());
        assert_eq!(days(), ["03", "04", "05"]);
        let held = write(5, 21 << 10).unwrap();
        assert_eq!(days(), ["05", "06"], "64 KiB");
        // one that is being written stays
        assert!(write(6, 60 << 10).is_err());
        assert_eq!(days(), ["06"]);
        drop(held);
        drop(write(7, 60 << 10).unwrap());
        assert_eq!(days(), ["08"]);
        assert!(others.iter().all(|name| temp.path().join(name).exists()));
        let mut large = dir.create(20 * DAY, "kill").unwrap();
        large.file.write_all(&tape(&dir, 70 << 10)).unwrap();
        assert!(format!("{:#}", dir.still_fits().unwrap_err()).contains("--disk"), "it alone is too large");
        assert!(days().iter().all(|day| day == "21"), "{:?}", days());
    }

    #[test]
    fn what_is_called_like_a_tape_and_is_none_stays_and_does_not_count() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(temp.path(), 2, 1 << 30);
        let at = |day: u64, what: &str| temp.path().join(format!("web-3-2099-01-0{day}T000000Z-{what}.tape"));
        let here = tape(&dir, 4096);
        let other =
            Dir { own: RecorderId::new(b"another host"), ..Dir::open(temp.path(), b"web 3", dir.limits).unwrap() };
        std::fs::write(at(1, "short"), "x").unwrap();
        std::fs::write(at(2, "text"), vec![b'x'; 4096]).unwrap();
        std::fs::write(at(3, "other"), tape(&other, 4096)).unwrap();
        std::fs::write(
            at(4, "bent"),
            here.iter().enumerate().map(|(at, b)| b ^ u8::from(at == 20)).collect::<Vec<_>>(),
        )
        .unwrap();
        std::fs::create_dir(at(5, "dir")).unwrap();
        std::fs::write(temp.path().join("aim"), &here).unwrap();
        symlink(temp.path().join("aim"), at(6, "link")).unwrap();
        let fifo = CString::new(at(7, "fifo").as_os_str().as_bytes()).unwrap();
        // SAFETY: a NUL-terminated string.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        std::fs::write(at(8, "foreign"), &here).unwrap();
        let foreign = chown(at(8, "foreign"), Some(65534), None).is_ok();
        let before = names(temp.path());
        assert_eq!(dir.tapes().unwrap().1, 8 - usize::from(!foreign));
        for day in 0..3 {
            dir.make_room(4096).unwrap();
            let mut part = dir.create(day * DAY, "kill").unwrap();
            part.file.write_all(&tape(&dir, 4096)).unwrap();
            dir.keep(&part.name).unwrap();
        }
        let after = names(temp.path());
        assert!(before.iter().all(|name| after.contains(name)), "{after:?}");
        let own: Vec<&String> = after.iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(own, ["web-3-1970-01-02T000000Z-kill.tape", "web-3-1970-01-03T000000Z-kill.tape"]);
    }

    #[test]
    fn a_part_of_nothing_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(temp.path(), 2, 1 << 30);
        let mut part = dir.create(0, "kill").unwrap();
        part.file.write_all(b"x").unwrap();
        dir.discard_empty(&part.name);
        assert_eq!(names(temp.path()).len(), 1);
        part.file.set_len(0).unwrap();
        dir.discard_empty(&part.name);
        assert_eq!(names(temp.path()).len(), 0);
    }

    #[test]
    fn a_part_of_the_file_system_stays_free() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path(), b"h", Limits { tapes: 9, bytes: u64::MAX, free: 1.0 }).unwrap();
        assert!(format!("{:#}", dir.make_room(1).unwrap_err()).contains("--keep-free"));
    }
}
