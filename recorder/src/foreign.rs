//! The one place from which files of users are read: ELF, debug information, perf maps.
//!
//! Nothing of them is parsed here. A process that is nobody and may open nothing does it (systape-symbols); this says how
//! it is started and how long it may take. No other module names a parser (recorder/tests/foreign.rs).

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use systape_symbols::{Deadline, FileReader, Limits, Resolver, ResolverLimits, open_regular};

use crate::patient::{PATIENCE, Patient};

/// The first argument that makes `record` that process.
pub const CHILD: &str = "--look-up-names";
/// Directories of debug files that are not beside their program.
const DEBUG_DIR: &str = "/usr/lib/debug";
/// Longest time for a question about a file of this machine that the user of `record` named.
const OWN_PATIENCE: Duration = Duration::from_secs(10);
/// The same of a file that only a process has; and of all of these together.
const STRANGE_PATIENCE: Duration = Duration::from_secs(1);
const STRANGE_TIME: Duration = Duration::from_secs(2);

/// How this program is started as that process.
fn command() -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("cannot find this program")?.into_os_string();
    if cfg!(test) {
        let this = ["--exact", "foreign::tests::child", "--ignored", "--nocapture", "--test-threads=1"];
        return Ok([program].into_iter().chain(this.map(OsString::from)).collect());
    }
    Ok(vec![program, OsString::from(CHILD)])
}

/// Names of places in code.
///
/// # Errors
/// When this program's own file cannot be found.
pub(crate) fn resolver(limits: ResolverLimits) -> Result<Resolver> {
    Ok(Resolver::with_limits(command()?, vec![PathBuf::from(DEBUG_DIR)], limits).opening_by(debug_files()))
}

/// Opens separate debug files, which users put there, maybe on a file system that does not answer.
fn debug_files() -> impl FnMut(&Path) -> Option<File> + Send {
    let mut patient = Patient::new("debug-file", open_for_all);
    move |path| patient.run(PATIENCE, path.to_path_buf()).ok().flatten()
}

/// What its owner does not show to everybody is not for a process that may be in the hands of somebody else.
fn open_for_all(path: PathBuf) -> Option<File> {
    let file = open_regular(&path).ok().flatten()?;
    file.metadata().is_ok_and(|meta| meta.mode() & 0o004 != 0).then_some(file)
}

/// Whose a file is, by which it has more or less time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This machine's, where `record` was told to look.
    Ours,
    /// A process's: anybody may have made it.
    Strange,
}

/// Reads facts of files, and how long it took so far.
#[derive(Debug)]
pub(crate) struct Facts {
    reader: FileReader,
    ours: Deadline,
    /// None = there was no strange file yet.
    strange: Option<Deadline>,
}

impl Facts {
    /// Starts nothing before the first question.
    pub(crate) fn new() -> Self {
        // without a program there is no answer, and every file says so
        Self { reader: FileReader::new(command().unwrap_or_default()), ours: Deadline::default(), strange: None }
    }

    /// Asks about a file.
    pub(crate) fn ask<T>(&mut self, whose: Whose, ask: impl FnOnce(&mut FileReader, Limits<'_>) -> T) -> T {
        let Self { reader, ours, strange } = self;
        let (patience, deadline) = match whose {
            Whose::Ours => (OWN_PATIENCE, &*ours),
            Whose::Strange => (STRANGE_PATIENCE, &*strange.get_or_insert_with(|| ours.sooner(STRANGE_TIME))),
        };
        ask(reader, Limits { patience, deadline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "the child of the other tests"]
    fn child() {
        let _ = systape_symbols::run_child();
        std::process::exit(0);
    }

    #[test]
    fn files_are_asked_about() {
        let mut facts = Facts::new();
        let own = File::open("/proc/self/exe").unwrap();
        for whose in [Whose::Ours, Whose::Strange] {
            let found = facts.ask(whose, |reader, limits| reader.function(&own, "main", limits)).unwrap();
            assert!(found.offset > 0 && !found.code.is_empty());
            assert_eq!(facts.ask(whose, |reader, limits| reader.soname(&own, limits)), Ok(None));
            assert!(!facts.ask(whose, |reader, limits| reader.is_static(&own, limits)));
            let none = facts.ask(whose, |reader, limits| reader.static_probes(&own, limits)).unwrap_err();
            assert!(none.contains("no static probes"), "{none}");
            let names = ["main", "no_such_symbol"];
            let found = facts.ask(whose, |reader, limits| reader.symbol_addresses(&own, &names, limits)).unwrap();
            assert!(found.len() == 1 && found["main"] > 0);
        }
        // strange files have a time together, and it leaves the machine's own alone
        facts.strange.as_ref().unwrap().end_now();
        let over = facts.ask(Whose::Strange, |reader, limits| reader.soname(&own, limits));
        assert_eq!(over, Err("the time to look into files is over".to_owned()));
        assert!(facts.ask(Whose::Ours, |reader, limits| reader.soname(&own, limits)).is_ok());
    }

    #[test]
    fn only_debug_files_that_all_may_read_are_shown() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.debug");
        std::fs::write(&path, "x").unwrap();
        for (mode, shown) in [(0o644, true), (0o600, false), (0o640, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(open_for_all(path.clone()).is_some(), shown, "{mode:o}");
        }
        assert!(open_for_all(dir.path().to_path_buf()).is_none());
    }
}
