//! The one place from which files of users are read: ELF, debug information, perf maps.
//!
//! Nothing of them is parsed or opened here. A process that is nobody and may open nothing parses (systape-symbols), and
//! one that has rights opens ([`crate::commands::opening`]): an open, a read or a close of such a file may never end. This says how
//! they are started and how long they may take. No other module names a parser (recorder/tests/foreign.rs).

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use systape_symbols::{
    Carrier, Deadline, Executed, FileReader, Limits, Resolver, ResolverLimits, RuleReader, open_regular,
};

pub(crate) mod interpreter;

/// The first argument that makes `record` that process.
pub const CHILD: &str = "--look-up-names";
/// The first argument that makes `record` the process that opens files.
pub const OPENER: &str = "--open-files";
/// Directories of debug files that are not beside their program.
const DEBUG_DIR: &str = "/usr/lib/debug";
/// Longest time for a question about a file of this machine that the user of `record` named.
const OWN_PATIENCE: Duration = Duration::from_secs(10);
/// The same of a file that only a process has; and of all of these together.
const STRANGE_PATIENCE: Duration = Duration::from_secs(1);
const STRANGE_TIME: Duration = Duration::from_secs(2);

/// How this program is started as such a process: its word, and of this module's tests the one that is it.
fn command(word: &str, test: &str) -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("cannot find this program")?.into_os_string();
    if cfg!(test) {
        let this = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
        return Ok([program].into_iter().chain(this.map(OsString::from)).collect());
    }
    Ok(vec![program, OsString::from(word)])
}

fn reader() -> Result<Vec<OsString>> {
    command(CHILD, "foreign::tests::child")
}

/// What files are opened for: the first byte of a request to the process that opens them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wanted {
    /// One that is mapped in a process.
    Mapped = 1,
    /// A library that is mapped in a process, and which it is.
    Library,
    /// A program at a path.
    Program,
    /// A separate debug file at a path.
    DebugFile,
    /// A copy of a process's perf map.
    PerfMap,
    /// A program that could not be executed.
    Executed,
}

impl Wanted {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Mapped, Self::Library, Self::Program, Self::DebugFile, Self::PerfMap, Self::Executed];

    /// A request; `what` is for who opens it.
    pub(crate) fn request(self, what: &[u8]) -> Vec<u8> {
        [&[self as u8], what].concat()
    }
}

/// Who opens files.
///
/// # Errors
/// When this program's own file cannot be found.
pub(crate) fn carrier() -> Result<Carrier> {
    Ok(Carrier::new(command(OPENER, "foreign::tests::opener")?))
}

/// Names of places in code; `carrier` opens files.
///
/// # Errors
/// When this program's own file cannot be found.
pub(crate) fn resolver(limits: ResolverLimits, carrier: Carrier) -> Result<Resolver> {
    let opens = carrier.clone();
    let debug_file = move |path: &Path| {
        opens.open(&Wanted::DebugFile.request(path.as_os_str().as_bytes())).ok().map(|(_, file)| file)
    };
    let resolver = Resolver::with_limits(reader()?, vec![PathBuf::from(DEBUG_DIR)], limits);
    Ok(resolver.opening_by(debug_file).carried_by(carrier))
}

/// What unwinding needs of files: their rules, and which they are.
///
/// # Errors
/// When this program's own file cannot be found.
pub(crate) fn rules() -> Result<RuleReader> {
    Ok(RuleReader::new(reader()?, carrier()?))
}

/// The build id of an image in this process's memory that the kernel made.
pub(crate) fn build_id_of_own(image: &[u8]) -> Vec<u8> {
    systape_symbols::image_build_id(image)
}

/// What its owner does not show to everybody is not for a process that may be in the hands of somebody else.
pub(crate) fn open_for_all(path: &Path) -> Option<File> {
    let file = open_regular(path).ok().flatten()?;
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
pub(crate) struct FactReader {
    reader: FileReader,
    carrier: Carrier,
    ours: Deadline,
    /// None = there was no strange file yet.
    strange: Option<Deadline>,
}

impl FactReader {
    /// Starts nothing before the first question.
    pub(crate) fn new() -> Self {
        // without a program there is no answer, and every file says so
        let carrier = carrier().unwrap_or_else(|_| Carrier::new(Vec::new()));
        let reader = FileReader::new(reader().unwrap_or_default(), carrier.clone());
        Self { reader, carrier, ours: Deadline::default(), strange: None }
    }

    /// Has a file opened, so that it can be asked about.
    ///
    /// # Errors
    /// Why it is not, in words.
    pub(crate) fn open(&self, wanted: Wanted, what: &[u8]) -> Result<(Vec<u8>, File), String> {
        self.carrier.open(&wanted.request(what)).map_err(|unread| unread.why)
    }

    /// What a file is for exec; None: it is not known.
    pub(crate) fn executed(&mut self, file: &File) -> Option<Executed> {
        // of each its own: a recording may last
        self.reader.executed(file, Limits { patience: STRANGE_PATIENCE, deadline: &Deadline::default() })
    }

    /// Asks about a file.
    pub(crate) fn ask<T>(&mut self, whose: Whose, ask: impl FnOnce(&mut FileReader, Limits<'_>) -> T) -> T {
        let Self { reader, ours, strange, .. } = self;
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
    #[ignore = "the process that opens files for the other tests"]
    fn opener() {
        let _ = crate::commands::opening::run();
        std::process::exit(0);
    }

    #[test]
    fn files_are_asked_about() {
        let mut facts = FactReader::new();
        let own = File::open("/proc/self/exe").unwrap();
        let ours = Whose::Ours;
        let found = facts.ask(ours, |reader, limits| reader.function(&own, "main", limits)).unwrap();
        assert!(found.offset > 0 && !found.code.is_empty());
        let names = ["main", "no_such_symbol"];
        let found = facts.ask(ours, |reader, limits| reader.symbol_addresses(&own, &names, limits)).unwrap();
        assert!(found.len() == 1 && found["main"] > 0);
        // strange files have a second: a large one, as this program is, may take that on a busy machine
        let small = File::open("/bin/sh").unwrap();
        for (whose, file) in [(ours, &own), (Whose::Strange, &small)] {
            assert_eq!(facts.ask(whose, |reader, limits| reader.soname(file, limits)), Ok(None));
            assert!(!facts.ask(whose, |reader, limits| reader.is_static(file, limits)));
            let none = facts.ask(whose, |reader, limits| reader.static_probes(file, limits)).unwrap_err();
            assert!(none.contains("no static probes"), "{none}");
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
            assert_eq!(open_for_all(&path).is_some(), shown, "{mode:o}");
        }
        assert!(open_for_all(dir.path()).is_none());
    }
}
