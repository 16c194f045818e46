//! The programs that are needed, and where the traces go.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// A program from elsewhere, and Debian's package of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Any of these will do.
    pub programs: &'static [&'static str],
    /// For apt-get.
    pub package: &'static str,
}

impl Need {
    /// One program.
    pub(crate) const fn new(programs: &'static [&'static str], package: &'static str) -> Self {
        Self { programs, package }
    }

    /// What to say when it is missing.
    pub(crate) fn missing(&self) -> Option<String> {
        let there = self.programs.iter().any(|p| in_path(p).is_some());
        (!there).then(|| format!("{} is not installed (apt-get install {})", self.programs[0], self.package))
    }
}

/// Where a program is. The system's own directories are searched too: losetup and mkfs are there.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// systape's own programs, and a directory.
#[derive(Debug)]
pub(crate) struct Tools {
    /// systape's recorder.
    pub record: PathBuf,
    /// systape's analyzer.
    pub analyze: PathBuf,
    /// Where traces are written and tracers run: on disk. A link to this program is in it (`./bench`).
    pub dir: TempDir,
}

impl Tools {
    /// `record` and `analyze` stand beside this program.
    pub(crate) fn find() -> Result<Self> {
        let bench = env::current_exe().context("cannot tell where this program is")?;
        let beside = |name: &str| {
            let path = bench.with_file_name(name);
            if path.exists() { Ok(path) } else { bail!("{} is missing: cargo build --release", path.display()) }
        };
        let (record, analyze) = (beside("record")?, beside("analyze")?);
        let dir = tempfile::tempdir()?;
        symlink(&bench, dir.path().join("bench"))?;
        // bpftrace wants to create its output itself; nobody else is let in
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700))?;
        Ok(Self { record, analyze, dir })
    }

    /// A file of this run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// What a program prints, trimmed; empty when it cannot be run.
pub(crate) fn output(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> String {
    let out = Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output();
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// Bytes of a file; 0 when it is not there.
pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(Need::new(&["sh"], "dash").missing(), None);
        assert_eq!(Need::new(&["no-such-program", "sh"], "dash").missing(), None);
        let text = Need::new(&["no-such-program"], "some-package").missing().expect("it is missing");
        assert_eq!(text, "no-such-program is not installed (apt-get install some-package)");
    }
}
