//! What the tests of targets, loss, survival and bad input share.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::lab::{Run, binary, run};
use crate::{Call, Lab};

/// Flags for programs without libc.
pub const FREESTANDING: [&str; 3] = ["-nostdlib", "-static", "-fno-stack-protector"];
/// A user and group that are nobody's.
pub const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

impl Run {
    /// Fails the test unless it printed nothing but one line on stderr, its own, with all of `words`, and exited with
    /// `code`.
    #[track_caller]
    pub fn says(self, code: i32, words: &[&str]) -> Self {
        let run = self.expect(code);
        let own = run.stderr.starts_with("record: ") || run.stderr.starts_with("analyze: ");
        assert!(own && run.stderr.ends_with('\n'), "{}\nsaid: {}", run.what, run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}\nsaid: {}", run.what, run.stderr);
        assert_eq!(run.text(), "", "{}", run.what);
        let line = run.stderr.trim_end();
        for word in words {
            assert!(line.contains(word), "{}\nsaid: {line}\nwithout: {word}", run.what);
        }
        // the same words twice are a chain of causes that repeat each other
        let causes: Vec<&str> = line.split(": ").collect();
        assert!(causes.windows(2).all(|two| two[0] != two[1]), "{}\nstutters: {line}", run.what);
        run
    }
}

/// Number of calls of that name.
#[must_use]
pub fn count(calls: &[Call], name: &str) -> u64 {
    calls.iter().filter(|c| c.name() == name).count() as u64
}

/// Calls that found no room, by `analyze info`: those that are counted at least, and those that are not.
#[must_use]
pub fn lost_calls(info: &Value) -> u64 {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let ledger = &info["ledger"];
    number(&info["lost"]["syscall"])
        + ["lost_calls", "over_share_calls", "behind_calls"].iter().map(|of| number(&ledger[of])).sum::<u64>()
}

/// CLOCK_MONOTONIC, ns.
#[must_use]
pub fn monotonic() -> i64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// A moment of that clock as `--time` takes it.
#[must_use]
pub fn mono(ns: i64) -> String {
    format!("mono:{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Nanoseconds of a clock.
///
/// # Panics
/// When there is no such clock.
#[must_use]
pub fn clock(id: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: now is a valid timespec to write to.
    assert_eq!(unsafe { libc::clock_gettime(id, &raw mut now) }, 0);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Words of the file that the workload `numbered` writes: word 0 counts its calls, word i is when call i was about to
/// begin.
///
/// # Panics
/// When there is no such file.
#[must_use]
pub fn numbered(lab: &Lab, name: &str) -> Vec<i64> {
    let bytes = fs::read(lab.path(name)).expect(name);
    bytes.chunks_exact(8).map(|w| i64::from_ne_bytes(w.try_into().expect("8 bytes"))).collect()
}

/// A directory with `analyze`, the libraries it needs, and a copy of a tape; what `ldd` said of the libraries.
///
/// # Panics
/// When something cannot be copied.
#[must_use]
pub fn bare_root(lab: &Lab, tape: &str) -> (PathBuf, String) {
    let root = lab.path("root");
    let copy_into = |file: &str| {
        let target = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(target.parent().expect("parent")).expect("mkdir");
        fs::copy(file, &target).unwrap_or_else(|e| panic!("{file}: {e}"));
    };
    let analyze = binary("analyze").canonicalize().expect("analyze");
    let libraries = run(lab.command("ldd").arg(&analyze)).expect(0).text();
    let files: Vec<_> = libraries.split_whitespace().filter(|word| word.starts_with('/')).collect();
    assert!(files.len() >= 2, "{libraries}");
    files.into_iter().for_each(copy_into);
    fs::copy(&analyze, root.join("analyze")).expect("copy");
    fs::copy(lab.path(tape), root.join(tape)).expect("copy");
    fs::set_permissions(root.join(tape), std::os::unix::fs::PermissionsExt::from_mode(0o444)).expect("chmod");
    (root, libraries)
}

/// `analyze ARGUMENTS` as nobody in a directory that [`bare_root`] made, without an environment.
#[must_use]
pub fn in_bare_root(lab: &Lab, root: &Path, arguments: &[&str]) -> Command {
    let mut command = lab.command("chroot");
    command.args(["--userspec=65534:65534", "--groups=65534"]).arg(root).arg("/analyze").args(arguments);
    // PATH is how chroot itself is found
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A frozen file system: what is written to it waits. It is thawed when the test is over.
pub struct Frozen<'a>(&'a Lab, &'static str);

impl<'a> Frozen<'a> {
    /// That at `dir`.
    ///
    /// # Panics
    /// When it cannot be frozen.
    #[must_use]
    pub fn new(lab: &'a Lab, dir: &'static str) -> Self {
        run(lab.command("fsfreeze").args(["-f", dir])).expect(0);
        Self(lab, dir)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.command("fsfreeze").args(["-u", self.1]).status().ok();
    }
}

/// A mounted file system, unmounted when the test is over.
pub struct Mounted(PathBuf);

impl Mounted {
    /// A tmpfs of `size`, as mount's option has it, in a new directory.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[must_use]
    pub fn tmpfs(lab: &Lab, name: &str, size: &str) -> Self {
        let dir = lab.path(name);
        fs::create_dir(&dir).expect("mkdir");
        run(lab.command("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none", name])).expect(0);
        Self(dir)
    }

    /// A disk, in a new directory.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[must_use]
    pub fn disk(lab: &Lab, name: &str, path: &str) -> Self {
        fs::create_dir(lab.path(name)).expect("mkdir");
        Self::with(lab, name, &[path])
    }

    /// Whatever mount's arguments say, at a directory that is there.
    ///
    /// # Panics
    /// When it cannot be mounted.
    #[must_use]
    pub fn with(lab: &Lab, name: &str, arguments: &[&str]) -> Self {
        run(lab.command("mount").args(arguments).arg(name)).expect(0);
        Self(lab.path(name))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let path = CString::new(self.0.to_str().expect("UTF-8")).expect("no NUL");
        // SAFETY: path is a NUL-terminated string. Detached: a command of a failed test may still be in it.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

/// A cgroup (v2), removed when the test is over.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes one; `None`: there is no such hierarchy here.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?;
        let dir = Path::new(mount).join(name);
        // a test that was killed left its own
        remove(&dir);
        fs::create_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        Some(Self(dir))
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// A cgroup with a quota of CPU time (v1 or v2); removed when the test is over, if nobody is in it any more.
pub struct Quota {
    dir: PathBuf,
    v2: bool,
}

impl Quota {
    /// Of so many percent of a CPU. `None`: no hierarchy here has the controller `cpu`.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(name: &str, percent: u32) -> Option<Self> {
        let name = format!("systape-e2e-{name}-{}", std::process::id());
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let (top, v2) = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let top = Path::new(fields[1]);
            match fields[2] {
                "cgroup" if fields[3].split(',').any(|option| option == "cpu") => Some((top.to_owned(), false)),
                "cgroup2" => {
                    let on = fs::read_to_string(top.join("cgroup.subtree_control")).unwrap_or_default();
                    on.split_whitespace().any(|controller| controller == "cpu").then(|| (top.to_owned(), true))
                }
                _ => None,
            }
        })?;
        let this = Self { dir: top.join(name), v2 };
        fs::create_dir(&this.dir).expect("mkdir of a cgroup");
        let write = |file: &str, text: String| fs::write(this.dir.join(file), text).expect(file);
        if v2 {
            write("cpu.max", format!("{} 100000", percent * 1000));
        } else {
            write("cpu.cfs_period_us", "100000".to_owned());
            write("cpu.cfs_quota_us", (percent * 1000).to_string());
        }
        Some(this)
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file that a process writes its number to.
    #[must_use]
    pub fn procs(&self) -> String {
        self.dir.join("cgroup.procs").display().to_string()
    }

    /// A number of `cpu.stat`.
    ///
    /// # Panics
    /// When the kernel does not say.
    #[must_use]
    pub fn stat(&self, name: &str) -> u64 {
        let stat = fs::read_to_string(self.dir.join("cpu.stat")).expect("cpu.stat");
        let line = stat.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).expect(name);
        line.trim().parse().expect(name)
    }

    /// How long its threads were throttled, ms.
    #[must_use]
    pub fn throttled_ms(&self) -> f64 {
        let (name, per_ms) = if self.v2 { ("throttled_usec", 1e3) } else { ("throttled_time", 1e6) };
        self.stat(name) as f64 / per_ms
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// Removes a cgroup and those below it, if nobody is in them.
fn remove(dir: &Path) {
    let below = fs::read_dir(dir).into_iter().flatten().flatten();
    below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).for_each(|entry| remove(&entry.path()));
    fs::remove_dir(dir).ok();
}

/// The names of all processes.
pub fn comms() -> Vec<String> {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let comm = |entry: fs::DirEntry| Some(fs::read_to_string(entry.path().join("comm")).ok()?.trim_end().to_owned());
    all.filter_map(comm).collect()
}

/// Temporary names are random: git's `tmp_obj_XXXXXX` and `.git/tXXXXXX`, gcc's `/tmp/ccXXXXXX.s`.
#[must_use]
pub fn without_random(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path).into_owned();
    // a file without a name (O_TMPFILE) is called by its inode
    if let Some((dir, number)) = text.split_once("/#")
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return format!("{dir}/#*");
    }
    for stem in ["tmp_obj_", ".git/t", "/cc"] {
        if let Some(at) = text.find(stem).map(|at| at + stem.len()) {
            let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(text.len(), |n| at + n);
            if end - at == 6 {
                return format!("{}*{}", &text[..at], &text[end..]);
            }
        }
    }
    text
}
