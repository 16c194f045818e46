//! Drops rights before an untrusted tape is parsed: a fault in a decoder can then at most read the files named on the
//! command line, write the named output files, and print.
//!
//! Linux only, as far as the kernel supports it: *no new privileges*, Landlock (files, execution, TCP, abstract sockets
//! and signals), seccomp ([`calls`]: only the calls that reports make), no capabilities ([`rights`]). If a kernel lacks
//! or refuses a part, the report runs without it and does not fail. `--no-sandbox` leaves all of it out.
//!
//! [`enter`] confines the calling thread and the threads it makes later, so it comes before the first of them.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod rights;

use std::path::PathBuf;

use anyhow::Result;

use crate::asked::config::Config;
use crate::asked::config::view::Operands;
use crate::reports::repair::RANDOM;
use systape_answers::values::new_file::NewFile;

/// The remaining rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemainingRights {
    /// Files to read.
    pub read: Vec<PathBuf>,
    /// Existing files, to write and to read again.
    pub write: Vec<PathBuf>,
    /// Directories in which files may be removed: those of output files that a failed report removes.
    pub clear: Vec<PathBuf>,
    /// Directories below which directories and files may be made, replaced and removed.
    pub make: Vec<PathBuf>,
    /// Directories to read recursively, by a second process of this program: `--debug-dir`. Empty = no other process.
    pub search: Vec<PathBuf>,
    /// A terminal whose settings may be changed, and whose keys are waited for.
    pub terminal: bool,
}

/// Where distributions put debug files; the reader of symbols searches there too.
const DEBUG_FILES: &str = "/usr/lib/debug";

impl RemainingRights {
    /// The needs of a run with `config`, which made the files `new`.
    ///
    /// # Errors
    /// The options are not the view's own.
    pub fn of<'a>(config: &Config, new: impl Iterator<Item = &'a NewFile>) -> Result<Self> {
        let copies = config.view.makes_a_copy();
        let new: Vec<&NewFile> = new.collect();
        let second = |of| config.second.clone().filter(|_| config.view.operands == of);
        let (before, to) = (second(Operands::TwoTapes), second(Operands::TapeAndCopy));
        let reads = (config.view.reads)(config)?;
        let debug = (!reads.search.is_empty()).then(|| PathBuf::from(DEBUG_FILES));
        // a copy has a random id
        let random = copies.then(|| PathBuf::from(RANDOM));
        Ok(Self {
            read: [Some(config.file.clone()), before, random].into_iter().flatten().chain(reads.files).collect(),
            // a new tape is read again, to check it
            write: to.into_iter().chain(new.iter().map(|file| file.path().to_owned())).collect(),
            clear: new.iter().map(|file| file.dir().to_owned()).collect(),
            make: Vec::new(),
            search: reads.search.into_iter().chain(debug).collect(),
            terminal: false,
        })
    }

    /// The needs of a run that makes the tape `new` of `logs`.
    pub fn of_import(logs: impl Iterator<Item = PathBuf>, new: &NewFile) -> Self {
        Self {
            // a tape has a random id
            read: logs.chain([PathBuf::from(RANDOM)]).collect(),
            write: vec![new.path().to_owned()],
            clear: vec![new.dir().to_owned()],
            ..Self::default()
        }
    }
}

/// Confines this thread and those it makes from now on to `needs`.
#[cfg(target_os = "linux")]
pub fn enter(needs: &RemainingRights) {
    linux::enter(needs);
}

/// Does nothing: there is only Linux's sandbox.
#[cfg(not(target_os = "linux"))]
pub fn enter(_needs: &RemainingRights) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};
    use std::thread::available_parallelism;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
        RulesetError, Scope, path_beneath_rules,
    };

    use super::{RemainingRights, calls, rights};

    /// The newest rules that were tested; an older kernel takes those it knows.
    const RULES: ABI = ABI::V7;
    /// Most mapped files: more are not libraries.
    const MOST_LIBRARIES: usize = 256;

    pub(super) fn enter(needs: &RemainingRights) {
        let threads = available_parallelism();
        // Each by itself: a kernel without one of them may have the other. Errors: see the module.
        // Capabilities first: the rules hide the files that are looked at to know which are needed.
        let _ = rights::give_up(needs);
        let _ = files_and_tcp(needs);
        let _ = calls::confine(needs);
        // Behind the rules a cgroup's limit of CPU time cannot be read: threads would be made for all CPUs.
        let set = std::env::var_os("RAYON_NUM_THREADS").is_some();
        if let (Ok(before), Ok(now), false) = (threads, available_parallelism(), set)
            && before != now
        {
            // Fails when there is a pool, which then has its size.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(before.get()).build_global();
        }
    }

    /// Landlock, and no new privileges.
    fn files_and_tcp(needs: &RemainingRights) -> Result<(), RulesetError> {
        let read = BitFlags::from(AccessFs::ReadFile);
        let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::ReadFile;
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(RULES))?
            .handle_access(AccessNet::from_all(RULES))?
            .scope(Scope::from_all(RULES))?
            .create()?;
        allow(&mut rules, &needs.read, read);
        allow(&mut rules, &needs.write, write);
        allow(&mut rules, &needs.clear, AccessFs::RemoveFile.into());
        let make = AccessFs::MakeDir | AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::ReadDir;
        allow(&mut rules, &needs.make, write | make);
        if !needs.search.is_empty() {
            allow(&mut rules, &needs.search, read | AccessFs::ReadDir);
            // this program again, with its libraries; std gives it /dev/null
            allow(&mut rules, ["/proc/self/exe"], read | AccessFs::Execute);
            allow(&mut rules, libraries(), read | AccessFs::Execute);
            allow(&mut rules, ["/etc/ld.so.cache"], read);
            allow(&mut rules, ["/dev/null"], read | AccessFs::WriteFile);
        }
        rules.restrict_self().map(drop)
    }

    /// Adds a rule for each of `paths` that exists; a missing one becomes an error later, where the file is opened.
    fn allow<P: AsRef<Path>>(
        rules: &mut RulesetCreated,
        paths: impl IntoIterator<Item = P>,
        access: BitFlags<AccessFs>,
    ) {
        for rule in path_beneath_rules(paths, access).flatten() {
            // Pipes and their like take no rule and need none.
            let _ = rules.add_rule(rule);
        }
    }

    /// The files mapped by this process: a second one needs them too.
    fn libraries() -> Vec<PathBuf> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mut paths: Vec<PathBuf> =
            maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..]))).collect();
        paths.dedup();
        paths.truncate(MOST_LIBRARIES);
        paths
    }
}
