//! Finds the `/tmp/perf-PID.map` with a JIT compiler's names, and copies it.
//!
//! Any user can write to /tmp, so a map counts only if it is owned by the process's user or root, as for perf. Another
//! process opens it, because the file system can be the process's own (FUSE). It is copied, so that no process changes it
//! or blocks its reader later. The child process parses it.
//!
//! With a container that ends its map ends too. So a map is opened when the first frame of its process is seen, and held: of a
//! process that has ended it is read through that descriptor, which names the file and asks no file system (O_PATH).

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use systape_symbols::{Carrier, Unread, open_regular_no_follow};

use crate::foreign::Wanted;
use crate::machine::{bounded, system};
use crate::mappings::open::Stat;
use crate::own::clock;

/// Most bytes read of a map, from its end, because the newest lines count.
const MOST: u64 = 16 << 20;
/// The same of one that was held: the child reads it itself.
const MOST_HELD: u64 = systape_symbols::LONGEST_PERF_MAP;
/// Most maps that are held; the oldest make way.
const HELD: usize = 64;

/// The process whose map to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Process, as /proc has it.
    pub here: u32,
    /// Id of the process in its own pid namespace; 0 = not known.
    pub ns_pid: u32,
    /// User of the process while it was recorded, in case it has ended.
    pub uid: u32,
    /// When it began, CLOCK_MONOTONIC; 0 = not known.
    pub began: u64,
}

/// How far a file's time may lag behind the clock, ns: one tick of the slowest kernels.
const TICK: u64 = 10_000_000;

/// A copy of a map.
#[derive(Debug)]
pub(crate) struct Map {
    /// Copy of the map in memory.
    pub file: File,
    /// Bytes left out at the beginning.
    pub skipped: u64,
}

/// Finds maps.
#[derive(Debug)]
pub(crate) struct JitMaps {
    carrier: Carrier,
    /// Processes whose file system hung: not read again.
    hung: HashSet<u32>,
    /// Maps of processes that may end before their names are wanted, the oldest first.
    held: VecDeque<(Owner, File)>,
}

/// Whether a map is to be copied, or only opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapUse {
    Copy,
    Hold,
}

impl JitMaps {
    /// `carrier` opens them.
    pub(crate) fn new(carrier: Carrier) -> Self {
        Self { carrier, hung: HashSet::new(), held: VecDeque::new() }
    }

    /// Opens the map of a process, if it has one by now, for the time when it has ended.
    pub(crate) fn hold(&mut self, owner: Owner) {
        if owner.here == 0 || self.held.iter().any(|(held, _)| *held == owner) {
            return;
        }
        if let Ok((_, file)) = self.open(owner, MapUse::Hold) {
            if self.held.len() >= HELD {
                self.held.pop_front();
            }
            self.held.push_back((owner, file));
        }
    }

    /// Gives back the maps of processes that have ended, but for those of which `waiting` places have no name yet.
    pub(crate) fn forget_ended(&mut self, waiting: &[Owner]) {
        self.held.retain(|(owner, _)| waiting.contains(owner) || system::is_process_alive(owner.here));
    }

    /// The map of a process.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn find(&mut self, owner: Owner) -> Result<Map, String> {
        // by its number another process may have a map by now
        if !system::is_process_alive(owner.here)
            && let Some(map) = self.held(owner)
        {
            return Ok(map);
        }
        let (skipped, file) = match self.open(owner, MapUse::Copy) {
            Ok(found) => found,
            Err(why) => return self.held(owner).ok_or(why),
        };
        let skipped = skipped.try_into().map(u64::from_le_bytes).map_err(|_| "its perf map is none".to_owned())?;
        Ok(Map { file, skipped })
    }

    fn held(&self, owner: Owner) -> Option<Map> {
        let (_, file) = self.held.iter().find(|(held, _)| *held == owner)?;
        let size = Stat::of(file).ok()?.size();
        Some(Map { file: file.try_clone().ok()?, skipped: size.saturating_sub(MOST_HELD) })
    }

    fn open(&mut self, owner: Owner, what_for: MapUse) -> Result<(Vec<u8>, File), String> {
        let takes_long = || format!("the file system of /tmp/perf-{}.map takes too long", owner.inner());
        if self.hung.contains(&owner.here) {
            return Err(takes_long());
        }
        // the other process need not know the machine's clocks
        let since = match owner.began {
            0 => 0,
            began => clock::earliest_realtime(began, &clock::sample()).saturating_sub(TICK),
        };
        let asked = Asked { owner, since, what_for };
        self.carrier.open(&Wanted::PerfMap.request(&asked.to_bytes())).map_err(|Unread { why, hangs }| match hangs {
            true => {
                self.hung.insert(owner.here);
                takes_long()
            }
            false => why,
        })
    }
}

/// What [`JitMaps::find`] asks for, in the process that opens.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn open_asked(request: &[u8]) -> Result<(Vec<u8>, File), String> {
    let asked = Asked::from_bytes(request).ok_or("no process is asked for")?;
    if asked.what_for == MapUse::Hold {
        return find(asked, open).map(|file| (Vec::new(), file));
    }
    let map = find(asked, copy)?;
    Ok((map.skipped.to_le_bytes().to_vec(), map.file))
}

/// Whose map is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    owner: Owner,
    /// A map that was not changed since is of an earlier process with this id, ns of CLOCK_REALTIME.
    since: u64,
    what_for: MapUse,
}

impl Asked {
    fn to_bytes(self) -> Vec<u8> {
        let Owner { here, ns_pid, uid, began } = self.owner;
        let hold = u64::from(self.what_for == MapUse::Hold);
        let numbers = [here.into(), ns_pid.into(), uid.into(), began, self.since, hold];
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[here, ns_pid, uid, began, since, hold] = bytes.as_chunks().0 else { return None };
        let [here, ns_pid, uid, began, since, hold] = [here, ns_pid, uid, began, since, hold].map(u64::from_le_bytes);
        let owner =
            Owner { here: here.try_into().ok()?, ns_pid: ns_pid.try_into().ok()?, uid: uid.try_into().ok()?, began };
        Some(Self { owner, since, what_for: if hold == 0 { MapUse::Copy } else { MapUse::Hold } })
    }
}

impl Owner {
    fn inner(self) -> u32 {
        if self.ns_pid == 0 { self.here } else { self.ns_pid }
    }

    /// The effective user while it lives: a set-user-ID program is not its caller's.
    fn user(self) -> u32 {
        let status = bounded::lines(format!("/proc/{}/status", self.here), bounded::LINES).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        ids.and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()).unwrap_or(self.uid)
    }
}

/// What `take` makes of a path of the map, by the user whose it may be and the time since when it must have changed; None = there is nothing.
type Take<T> = fn(&Path, u32, u64) -> Result<T, Option<String>>;

fn find<T>(Asked { owner, since, .. }: Asked, take: Take<T>) -> Result<T, String> {
    let (here, inner, user) = (owner.here, owner.inner(), owner.user());
    let mut why = None;
    for path in [format!("/proc/{here}/root/tmp/perf-{inner}.map"), format!("/tmp/perf-{here}.map")] {
        match take(Path::new(&path), user, since) {
            Ok(taken) => return Ok(taken),
            Err(refused) => why = why.or(refused),
        }
    }
    Err(why.map_or_else(|| format!("there is no /tmp/perf-{inner}.map"), |why| format!("/tmp/perf-{inner}.map {why}")))
}

fn failed(error: io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::NotFound => None,
        _ => Some(format!("cannot be read: {error}")),
    }
}

fn open(path: &Path, user: u32, since: u64) -> Result<File, Option<String>> {
    let Some(file) = open_regular_no_follow(path).map_err(failed)? else {
        return Err(Some("is not a regular file".into()));
    };
    let meta = file.metadata().map_err(failed)?;
    if meta.uid() != user && meta.uid() != 0 {
        return Err(Some(format!("is ignored: it belongs to user {}, the process to user {user}", meta.uid())));
    }
    let changed = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    if changed < since.try_into().unwrap_or(i64::MAX) {
        return Err(Some("is ignored: it is older than the process".into()));
    }
    Ok(file)
}

fn copy(path: &Path, user: u32, since: u64) -> Result<Map, Option<String>> {
    let mut file = open(path, user, since)?;
    let skipped = file.metadata().map_err(failed)?.len().saturating_sub(MOST);
    let mut to = memory().map_err(failed)?;
    file.seek(SeekFrom::Start(skipped)).map_err(failed)?;
    io::copy(&mut file.take(MOST), &mut to).map_err(failed)?;
    to.rewind().map_err(failed)?;
    Ok(Map { file: to, skipped })
}

fn memory() -> io::Result<File> {
    // SAFETY: the name is a string that ends with zero; a descriptor that is returned is new and nobody else's.
    unsafe {
        match libc::memfd_create(c"perf-map".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    fn text(map: &mut Map) -> Vec<u8> {
        let mut text = Vec::new();
        map.file.read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn one_from_before_the_process_is_another_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        fs::write(&path, "100 10 f\n").unwrap();
        let user = fs::metadata(&path).unwrap().uid();
        let now = clock::sample();
        let began = |ago: u64| clock::earliest_realtime(now.monotonic.saturating_sub(ago), &now);
        let hour = Duration::from_secs(3600);
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - hour).unwrap();
        assert_eq!(
            copy(&path, user, began(60_000_000_000)).unwrap_err().unwrap(),
            "is ignored: it is older than the process"
        );
        fs::write(&path, "100 10 g\n").unwrap();
        assert!(copy(&path, user, began(60_000_000_000)).is_ok());
        let asked = Asked { owner: Owner { here: 1, ns_pid: 2, uid: 3, began: 4 }, since: 5, what_for: MapUse::Hold };
        let read = Asked::from_bytes(&asked.to_bytes()).unwrap();
        assert_eq!((read.owner, read.since, read.what_for), (asked.owner, 5, MapUse::Hold));
    }

    #[test]
    fn only_the_users_own_and_roots() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        fs::write(&path, "100 10 f\n").unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        let mut own = copy(&path, owner, 0).unwrap();
        assert_eq!((text(&mut own), own.skipped), (b"100 10 f\n".to_vec(), 0));
        // root's serves everybody
        assert_eq!(copy(&path, owner + 7, 0).is_ok(), owner == 0);
        if owner == 0 {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(copy(&path, 65534, 0).is_ok());
            for other in [0, 1000] {
                let why = copy(&path, other, 0).unwrap_err().unwrap();
                assert_eq!(why, format!("is ignored: it belongs to user 65534, the process to user {other}"));
            }
        }
        assert!(copy(&dir.path().join("none"), owner, 0).unwrap_err().is_none());
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        for odd in [&link, dir.path()] {
            assert_eq!(copy(odd, owner, 0).unwrap_err().unwrap(), "is not a regular file");
        }
    }

    #[test]
    fn of_a_long_one_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        fs::write(&path, "first").unwrap();
        let file = File::options().append(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        io::Write::write_all(&mut &file, b"last").unwrap();
        let mut map = copy(&path, fs::metadata(&path).unwrap().uid(), 0).unwrap();
        let text = text(&mut map);
        assert_eq!((text.len() as u64, map.skipped), (MOST, (1 << 40) + 4 - MOST));
        assert!(text.ends_with(b"\0last"));
    }
}
