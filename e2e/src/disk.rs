//! Disks of a test's own, the kernel's counters of them, and what is needed to look at them.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::Lab;
use crate::lab::run;

/// A block device over a file of the test's directory, detached when the test is over.
pub struct Loop {
    /// `loop3`.
    pub name: String,
    /// `/dev/loop3`.
    pub path: String,
}

impl Loop {
    /// Over a new file `NAME` of `len` zeros, all of them allocated. `None`: there are no such devices here, and said
    /// so.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn new(lab: &Lab, name: &str, len: usize) -> Option<Self> {
        fs::write(lab.path(name), vec![0; len]).expect("image");
        // what it writes itself is not to be seen later
        run(lab.command("sync").arg(lab.path(name))).expect(0);
        Self::over(lab, &lab.path(name))
    }

    /// Over a file that exists.
    #[must_use]
    pub fn over(lab: &Lab, file: &Path) -> Option<Self> {
        if !has("losetup") {
            return None;
        }
        let shown = run(lab.command("losetup").args(["--find", "--show"]).arg(file));
        let Some(name) = shown.text().trim().strip_prefix("/dev/").map(str::to_owned) else {
            skipped(&format!("no loop devices: {}", shown.stderr.trim()));
            return None;
        };
        Some(Self { path: format!("/dev/{name}"), name })
    }

    /// Its number, as tracepoints have it.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn dev(&self) -> u64 {
        let text = fs::read_to_string(format!("/sys/block/{}/dev", self.name)).expect("dev");
        let (major, minor) = text.trim().split_once(':').expect("MAJOR:MINOR");
        major.parse::<u64>().expect("major") << 20 | minor.parse::<u64>().expect("minor")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        std::process::Command::new("losetup").args(["--detach", &self.path]).status().ok();
    }
}

/// What the kernel counted of a disk since it exists: Documentation/block/stat.rst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads that completed.
    pub reads: u64,
    /// Bytes they read.
    pub read_bytes: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
    /// Further bios in reads and writes.
    pub merges: u64,
    /// Flushes of the device's cache.
    pub flushes: u64,
}

impl Counts {
    /// Of a disk, by name.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn of(disk: &str) -> Self {
        Self::parse(&fs::read_to_string(format!("/sys/block/{disk}/stat")).expect("stat"))
    }

    /// Of the text of a disk's `stat`.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let n: Vec<u64> = text.split_whitespace().map(|n| n.parse().expect("number")).collect();
        Self {
            reads: n[0],
            read_bytes: n[2] * 512,
            writes: n[4],
            written_bytes: n[6] * 512,
            merges: n[1] + n[5],
            flushes: n.get(15).copied().unwrap_or(0),
        }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_bytes: self.read_bytes - earlier.read_bytes,
            writes: self.writes - earlier.writes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            merges: self.merges - earlier.merges,
            flushes: self.flushes - earlier.flushes,
        }
    }
}

/// Says that a part of a test was left out and why; the harness hides what passing tests print with eprintln.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    writeln!(std::io::stderr(), "SKIPPED: {why}: {name}").ok();
}

/// Whether a program is installed; says so when it is not.
#[must_use]
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if !found {
        skipped(&format!("{program} is not installed (scripts/setup.sh test)"));
    }
    found
}

/// The disk the test's directory is on: `None` when it is on none (tmpfs).
#[must_use]
pub fn under(lab: &Lab) -> Option<String> {
    let dev = std::os::unix::fs::MetadataExt::dev(&fs::metadata(lab.dir()).ok()?);
    let link = fs::canonicalize(format!("/sys/dev/block/{}:{}", libc::major(dev), libc::minor(dev))).ok()?;
    // a partition's directory is in its disk's
    let disk = if link.join("partition").exists() { link.parent()?.to_owned() } else { link };
    disk.file_name()?.to_str().map(str::to_owned)
}
