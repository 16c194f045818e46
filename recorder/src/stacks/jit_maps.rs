//! Finds the `/tmp/perf-PID.map` with a JIT compiler's names, and copies it.
//!
//! Any user can write to /tmp, so a map counts only if it is owned by the process's user or root, as for perf. A thread
//! that may wait opens it, because the file system can be the process's own (FUSE). It is copied, so that no process
//! changes it or blocks its reader later. The child process parses it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use systape_symbols::open_regular_no_follow;

use crate::bounded;
use crate::patient::{PATIENCE, Patient, Unanswered};

/// Most bytes read of a map, from its end, because the newest lines count.
const MOST: u64 = 16 << 20;

/// The process whose map to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Process, as /proc has it.
    pub here: u32,
    /// Its id in its own pid namespace; 0 = not known.
    pub ns_pid: u32,
    /// Its user while it was recorded, in case it has ended.
    pub uid: u32,
}

/// A copy of a map.
#[derive(Debug)]
pub(crate) struct Map {
    /// In memory.
    pub file: File,
    /// Bytes left out at the beginning.
    pub skipped: u64,
}

/// Finds maps.
#[derive(Debug)]
pub(crate) struct JitMaps {
    patient: Patient<Owner, Result<Map, String>>,
    /// Processes whose file system hung: not read again.
    hung: HashSet<u32>,
}

impl Default for JitMaps {
    fn default() -> Self {
        Self { patient: Patient::new("perf-map", find), hung: HashSet::new() }
    }
}

impl JitMaps {
    /// The map of a process. `left`: the time there is; None = as long as any file may take.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn find(&mut self, owner: Owner, left: Option<Duration>) -> Result<Map, String> {
        let takes_long = || format!("the file system of /tmp/perf-{}.map takes too long", owner.inner());
        if self.hung.contains(&owner.here) {
            return Err(takes_long());
        }
        match self.patient.run(left.unwrap_or(PATIENCE).min(PATIENCE), owner) {
            Ok(found) => found,
            Err(Unanswered::TooLong) => {
                self.hung.insert(owner.here);
                Err(takes_long())
            }
            Err(Unanswered::TooMany) => Err("not tried: too many other files take too long".into()),
        }
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

fn find(owner: Owner) -> Result<Map, String> {
    let (here, inner, user) = (owner.here, owner.inner(), owner.user());
    let mut why = None;
    for path in [format!("/proc/{here}/root/tmp/perf-{inner}.map"), format!("/tmp/perf-{here}.map")] {
        match copy(Path::new(&path), user) {
            Ok(map) => return Ok(map),
            Err(refused) => why = why.or(refused),
        }
    }
    Err(why.map_or_else(|| format!("there is no /tmp/perf-{inner}.map"), |why| format!("/tmp/perf-{inner}.map {why}")))
}

/// None = there is nothing.
fn copy(path: &Path, user: u32) -> Result<Map, Option<String>> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => None,
        _ => Some(format!("cannot be read: {error}")),
    };
    let Some(mut file) = open_regular_no_follow(path).map_err(failed)? else {
        return Err(Some("is not a regular file".into()));
    };
    let meta = file.metadata().map_err(failed)?;
    if meta.uid() != user && meta.uid() != 0 {
        return Err(Some(format!("is ignored: it belongs to user {}, the process to user {user}", meta.uid())));
    }
    let skipped = meta.len().saturating_sub(MOST);
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

    fn text(map: &mut Map) -> Vec<u8> {
        let mut text = Vec::new();
        map.file.read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn only_the_users_own_and_roots() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        fs::write(&path, "100 10 f\n").unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        let mut own = copy(&path, owner).unwrap();
        assert_eq!((text(&mut own), own.skipped), (b"100 10 f\n".to_vec(), 0));
        // root's serves everybody
        assert_eq!(copy(&path, owner + 7).is_ok(), owner == 0);
        if owner == 0 {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(copy(&path, 65534).is_ok());
            for other in [0, 1000] {
                let why = copy(&path, other).unwrap_err().unwrap();
                assert_eq!(why, format!("is ignored: it belongs to user 65534, the process to user {other}"));
            }
        }
        assert!(copy(&dir.path().join("none"), owner).unwrap_err().is_none());
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        for odd in [&link, dir.path()] {
            assert_eq!(copy(odd, owner).unwrap_err().unwrap(), "is not a regular file");
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
        let mut map = copy(&path, fs::metadata(&path).unwrap().uid()).unwrap();
        let text = text(&mut map);
        assert_eq!((text.len() as u64, map.skipped), (MOST, (1 << 40) + 4 - MOST));
        assert!(text.ends_with(b"\0last"));
    }
}
