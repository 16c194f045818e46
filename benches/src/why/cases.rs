//! The cases: one program each.

use anyhow::Result;

use super::case::Case;

/// Names and texts of files in `cases/`.
macro_rules! programs {
    ($($file:literal,)*) => { &[$(($file, include_str!(concat!("cases/", $file)))),*] };
}

const PROGRAMS: &[(&str, &str)] = programs![
    "asyncpeer.py",
    "backlog.py",
    "bounded.py",
    "bursts.py",
    "chain.py",
    "compute.c",
    "condslow.c",
    "cpuburn.py",
    "dns.py",
    "fanout.py",
    "faults.c",
    "flock.py",
    "forkstorm.sh",
    "freezer.py",
    "fsync.py",
    "fsyncpar.py",
    "fuselookups.sh",
    "fusemap.c",
    "fusereads.py",
    "gil.py",
    "gitlog.sh",
    "idleasyncio.py",
    "idlego.go",
    "idlejava.java",
    "idlempp.py",
    "idlenode.js",
    "idlepool.c",
    "idlerust.rs",
    "idletpe.py",
    "imports.py",
    "iolimit.py",
    "joinslow.c",
    "lockfile.py",
    "lockhot.py",
    "lockpool.py",
    "makehello.sh",
    "makeslow.sh",
    "memlimit.py",
    "mixed.py",
    "mutex.c",
    "nagle.py",
    "nginx.sh",
    "ownthreads.c",
    "par.py",
    "phases.c",
    "pimutex.c",
    "pipeline.py",
    "pipeslow.py",
    "pollpeer.py",
    "poolpeer.py",
    "posixlock.py",
    "postgres.sh",
    "prefork.py",
    "ptrace.py",
    "pylock.py",
    "quota.py",
    "redis.sh",
    "refused.py",
    "rivals.py",
    "robust.c",
    "runstools.sh",
    "rwlock.c",
    "samecpu.py",
    "scriptload.sh",
    "selectunix.py",
    "semlock.c",
    "serialserver.py",
    "shellpipe.py",
    "shellsort.sh",
    "sigstop.py",
    "slack.c",
    "sleeps.py",
    "slowpeer.py",
    "slowreader.py",
    "sqlitebusy.py",
    "statstorm.py",
    "stoppedpeer.py",
    "tarball.sh",
    "threadserver.py",
    "tick.py",
    "timedpool.c",
    "timer.c",
    "tinywrites.py",
    "unevenlocks.c",
    "unixbacklog.py",
];

/// All cases, in the order of their names.
///
/// # Errors
/// What stands on top of a program is no truth.
pub(crate) fn all() -> Result<Vec<Case>> {
    PROGRAMS.iter().map(|(file, source)| Case::read(file, source)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_program_is_a_case() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/why/cases");
        let files = std::fs::read_dir(dir).expect("cases").map(|f| f.expect("a file").file_name().into_string());
        let files: BTreeSet<_> = files.map(|name| name.expect("a name")).collect();
        let listed: BTreeSet<_> = PROGRAMS.iter().map(|(file, _)| (*file).to_owned()).collect();
        assert_eq!(files, listed);
        let cases = all().expect("truths");
        let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len(), "two cases of one name");
    }

    #[test]
    fn there_are_enough() {
        let cases = all().expect("truths");
        let healthy = cases.iter().filter(|case| case.healthy).count();
        assert!(cases.len() - healthy >= 40 && healthy >= 15, "{} of which {healthy} are healthy", cases.len());
    }
}
