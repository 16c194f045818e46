//! What /proc knows of processes that were there before the recording: executable, directory, open files.
//!
//! Identities, names and calls in progress come from the BPF task iterator ([`crate::load::Walker`]), which sees all
//! tasks at one go; /proc is read only for what the iterator cannot say.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;

use crate::clock;
use crate::tasks::Argv;

/// One process as /proc showed it.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its id on the machine.
    pub pid: u32,
    /// When reading began and ended: what changed in between is not known.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Executable; empty when not readable.
    pub exe: Vec<u8>,
    /// Arguments; None when not readable or a kernel thread.
    pub argv: Option<Arc<Argv>>,
    /// Current directory; None when not readable.
    pub cwd: Option<Vec<u8>>,
    /// Open files: number, name, closed by exec. None when not readable.
    pub fds: Option<Vec<(i32, Vec<u8>, bool)>>,
}

fn link(path: &Path) -> Option<Vec<u8>> {
    fs::read_link(path).ok().map(|p| p.into_os_string().into_vec())
}

/// Executable of a process, by its id in this pid namespace (0: it is not in there); empty when it has none or it is not readable.
pub fn exe(here: u32) -> Vec<u8> {
    link(Path::new(&format!("/proc/{here}/exe"))).unwrap_or_default()
}

/// Arguments of a process, cut where they are long; None when it has none or they are not readable.
pub fn argv(here: u32) -> Option<Arc<Argv>> {
    let bytes = fs::read(format!("/proc/{here}/cmdline")).ok()?;
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    (!bytes.is_empty()).then(|| Argv::cut(bytes, bytes.len() as u64))
}

/// Reads one process: `pid` on the machine, `here` in this pid namespace. There is no /proc/0: of a process that is not in there nothing is known.
pub fn process(pid: u32, here: u32) -> Process {
    let dir = format!("/proc/{here}");
    let from = clock::monotonic();
    let cwd = link(Path::new(&format!("{dir}/cwd")));
    let exe = exe(here);
    let fds = open_files(&dir);
    Process { pid, from, to: clock::monotonic(), exe, argv: argv(here), cwd, fds }
}

fn open_files(dir: &str) -> Option<Vec<(i32, Vec<u8>, bool)>> {
    let list = fs::read_dir(format!("{dir}/fd")).ok()?;
    let numbers = list.flatten().filter_map(|e| e.file_name().to_str().and_then(|n| n.parse::<i32>().ok()));
    let mut fds = Vec::new();
    for fd in numbers {
        // closed since it was listed: not open
        let Some(name) = link(Path::new(&format!("{dir}/fd/{fd}"))) else { continue };
        fds.push((fd, name, is_cloexec(dir, fd)));
    }
    Some(fds)
}

/// /proc/PID/fdinfo/FD has the open flags, the one for exec among them; without it the fd is taken to be closed by exec,
/// which makes it unknown afterwards rather than wrong.
fn is_cloexec(dir: &str, fd: i32) -> bool {
    let Ok(text) = fs::read_to_string(format!("{dir}/fdinfo/{fd}")) else { return true };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|hex| u32::from_str_radix(hex.trim(), 8).ok());
    flags.is_none_or(|f| f & (libc::O_CLOEXEC as u32) != 0)
}

/// Every path of the cgroup v2 hierarchy with its id, up to a bound.
pub fn cgroups(mount: &Path) -> Vec<(u64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    const MOST: usize = 65536;
    let mut found = Vec::new();
    let mut todo = vec![mount.to_path_buf()];
    while let Some(dir) = todo.pop() {
        if found.len() >= MOST {
            break;
        }
        let Ok(meta) = fs::metadata(&dir) else { continue };
        let relative = dir.strip_prefix(mount).map(|p| Path::new("/").join(p)).unwrap_or_default();
        found.push((meta.ino(), relative.into_os_string().into_vec()));
        let Ok(list) = fs::read_dir(&dir) else { continue };
        todo.extend(list.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_readable() {
        let file = fs::File::open("/etc/passwd").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let me = process(7, std::process::id());
        let found = me.fds.unwrap();
        let (_, name, cloexec) = found.iter().find(|(n, ..)| *n == fd).unwrap();
        assert_eq!((name.as_slice(), *cloexec), (b"/etc/passwd".as_slice(), true));
        assert!(!me.exe.is_empty() && me.from <= me.to);
        assert_eq!(me.pid, 7);
        for nobody in [0, u32::MAX] {
            let none = process(std::process::id(), nobody);
            assert!(none.fds.is_none() && none.argv.is_none() && none.cwd.is_none() && none.exe.is_empty());
        }
    }
}
