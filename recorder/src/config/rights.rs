//! Capabilities: which there are, what a tape lacks without them, and which of them a running recording still needs.
//! The others are given up before anything of other processes is read, by every thread and for good.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use caps::{CapSet, Capability, CapsHashSet};

use systape_format::model::Family;

use crate::config::RecordConfig;
use crate::kernel::native;
use crate::machine::addresses;
use crate::own::clock;
use crate::own::say::quoted;

/// Required for any recording; [`notes`] has what the others add.
const CORE: [Capability; 2] = [Capability::CAP_BPF, Capability::CAP_PERFMON];

/// With these too, a recording without stacks lacks nothing. docs/reference/requirements.md says what each is for.
const MORE: [Capability; 3] = [Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH, Capability::CAP_SYSLOG];

/// This thread's current capabilities; all when they cannot be read.
fn effective() -> CapsHashSet {
    caps::read(None, CapSet::Effective).unwrap_or_else(|_| caps::all())
}

/// Missing capabilities that are required.
pub(crate) fn missing() -> Vec<Capability> {
    let set = effective();
    if set.contains(&Capability::CAP_SYS_ADMIN) {
        return Vec::new();
    }
    CORE.into_iter().filter(|cap| !set.contains(cap)).collect()
}

/// The missing capabilities for loading BPF programs, and the command that grants them; None when the cause is another
/// one.
pub(crate) fn how_to_get() -> Option<String> {
    let missing = missing();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("record"));
        return Some(format!(
            "recording takes {}; run it as root (sudo record ...), or once: sudo setcap {}+ep {}",
            names.join(" and "),
            every(),
            program.display()
        ));
    }
    if in_user_namespace() {
        return Some(
            "this is a user namespace, whose root has no rights over the kernel: run record outside of it, as root"
                .into(),
        );
    }
    None
}

/// What a recording can use, as setcap takes it.
fn every() -> String {
    CORE.iter().chain(&MORE).map(|cap| cap.to_string().to_lowercase()).collect::<Vec<_>>().join(",")
}

/// Whether user ids here differ from the machine's: then capabilities are valid only in this namespace.
fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    !whole && !map.is_empty()
}

/// Whether this is known to be the machine's first pid namespace.
pub(crate) fn in_first_pid_namespace() -> bool {
    // PROC_PID_INIT_INO, include/linux/proc_ns.h
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

/// Fails where this program has its file's user or group instead of its caller's (set-uid, set-gid): a command that it
/// starts would have them too, and the files that it makes would be theirs. Capabilities of the file go to no command.
///
/// # Errors
/// See above; it says how to give the rights to those who may have them.
pub fn refuse_borrowed() -> Result<()> {
    // SAFETY: they ask for numbers.
    let ids = unsafe { [(libc::getuid(), libc::geteuid()), (libc::getgid(), libc::getegid())] };
    borrowed(ids).map_or(Ok(()), |why| Err(anyhow::anyhow!("{why}")))
}

fn borrowed([(uid, euid), (gid, egid)]: [(u32, u32); 2]) -> Option<String> {
    let (bit, whose) = match (uid == euid, gid == egid) {
        (true, true) => return None,
        (false, _) => ("u-s", format!("uid {uid} would run the command and make files as uid {euid}")),
        (true, false) => ("g-s", format!("gid {gid} would run the command and make files as gid {egid}")),
    };
    let program = std::env::current_exe().map_or_else(|_| "/path/of/record".to_owned(), quoted);
    Some(format!(
        "a set-uid or set-gid record records nothing: {whose}. Give capabilities, to one group: chmod {bit} {program}; \
         chgrp GROUP {program}; chmod 0750 {program}; setcap {}+ep {program}",
        every()
    ))
}

/// Checks that /proc has the ids that this process knows, and what its clocks differ by from the machine's. A /proc of another pid namespace (unshare --pid without
/// --mount-proc) has others: its entry of an id is another process.
///
/// It does not; the message says what to do.
pub(crate) fn check_proc() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    anyhow::ensure!(
        ids_are_ours(&status),
        "/proc is not of this pid namespace: mount one that is (unshare --mount-proc, or mount -t proc proc /proc)"
    );
    anyhow::ensure!(
        clock::is_known(),
        "the time namespace for children is not that of record itself, so its clocks are not known: start record in a child (unshare --fork -T)"
    );
    Ok(())
}

/// NSpid has an id for each namespace from that of /proc to that of the process. Kernels without pid namespaces lack
/// the line.
fn ids_are_ours(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    !status.is_empty() && ids.is_none_or(|ids| ids.split_whitespace().count() == 1)
}

/// What the tape lacks because of missing capabilities, one line each.
pub(crate) fn notes(config: &RecordConfig) -> Vec<String> {
    let set = effective();
    let mut notes = Vec::new();
    let has = |cap: Capability| set.contains(&cap);
    if !has(Capability::CAP_SYS_PTRACE) {
        notes.push("without CAP_SYS_PTRACE: executables, directories and open files of other users' processes are unknown until they open them".into());
        if config.probes.iter().any(|probe| !probe.places.is_empty()) || !config.usdt.probes.is_empty() {
            notes.push("without CAP_SYS_PTRACE: libraries that only other users' processes have are not probed".into());
        }
    } else if !has(Capability::CAP_DAC_READ_SEARCH) {
        notes.push(
            "without CAP_DAC_READ_SEARCH: open files of other users' processes are unknown until they open them".into(),
        );
    }
    let deleted = [Capability::CAP_CHECKPOINT_RESTORE, Capability::CAP_SYS_ADMIN];
    if !config.stacks.on.is_empty() && !deleted.into_iter().any(has) {
        notes.push("without CAP_CHECKPOINT_RESTORE: stacks through files that were deleted or replaced while in use end there, and have no names".into());
    }
    if !in_first_pid_namespace() {
        notes.push("this pid namespace has its own ids: pid and tid on the tape are the machine's, ns_pid and ns_tid those of the process's own namespace".into());
        if !config.marks_tasks() {
            notes.push("processes outside this pid namespace: only what they do from now on is known, not their executables and open files, nor those that do nothing".into());
        }
    }
    if clock::in_time_namespace() {
        notes.push(
            "this time namespace has its own clocks: monotonic and boot times on the tape are the machine's".into(),
        );
    }
    if native::KNOWS_ENTRIES && crate::machine::entries::of_interrupts().is_none() {
        notes.push(format!(
            "{}: an interrupt of user code counts as the task it interrupted, as sender of a signal or waker",
            addresses::hidden()
        ));
    }
    notes
}

/// The capabilities that a recording needs after its programs are attached and its events open.
fn needed(config: &RecordConfig) -> CapsHashSet {
    // /proc/PID of others: open files after a lost record, executables of senders of signals
    let mut needed = CapsHashSet::from([Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH]);
    if !config.stacks.on.is_empty() {
        // /proc/PID/map_files, and fanotify on file systems that are mounted later (containers)
        needed.extend([Capability::CAP_CHECKPOINT_RESTORE, Capability::CAP_SYS_ADMIN]);
        // the processes that read files become nobody, and are ended when they take too long
        needed.extend([Capability::CAP_SETUID, Capability::CAP_SETGID, Capability::CAP_KILL]);
    }
    if config.families.has(Family::Look) {
        // a look that waits for a CPU is late, and finds others that wait as well
        needed.insert(Capability::CAP_SYS_NICE);
    }
    if config.kill && !config.command.is_empty() {
        // the command may have become another user's
        needed.insert(Capability::CAP_KILL);
    }
    needed
}

/// Gives up every other right: of this thread, and so of all threads that it makes and programs that these execute, for
/// good. `works` tests whether the loaded programs can still be used; before 5.19 the kernel requires CAP_BPF for that
/// if kernel.unprivileged_bpf_disabled is set.
///
/// # Errors
/// When the kernel refuses, which should never happen.
pub(crate) fn give_up(config: &RecordConfig, works: impl Fn() -> bool) -> Result<()> {
    let permitted = caps::read(None, CapSet::Permitted).context("cannot read capabilities")?;
    let mut keep: CapsHashSet = needed(config).intersection(&permitted).copied().collect();
    caps::set(None, CapSet::Effective, &keep).context("cannot give capabilities up")?;
    if !works() {
        let stands_for_it = [Capability::CAP_BPF, Capability::CAP_SYS_ADMIN];
        keep.extend(stands_for_it.into_iter().find(|cap| permitted.contains(cap)));
    }
    confine(&keep)
}

/// The capabilities of the process that opens files: no others than those.
///
/// # Errors
/// When the kernel refuses, which should never happen.
pub(crate) fn keep_for_opening() -> Result<()> {
    let permitted = caps::read(None, CapSet::Permitted).context("cannot read capabilities")?;
    let opening = [
        Capability::CAP_SYS_PTRACE,
        Capability::CAP_DAC_READ_SEARCH,
        Capability::CAP_CHECKPOINT_RESTORE,
        Capability::CAP_SYS_ADMIN,
    ];
    confine(&CapsHashSet::from(opening).intersection(&permitted).copied().collect())
}

fn confine(keep: &CapsHashSet) -> Result<()> {
    // root gets everything back by executing a program, and `setcap` may have been asked to do that for this one
    // SAFETY: numbers only; it changes this thread and those that it makes.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot set no_new_privs");
    }
    caps::clear(None, CapSet::Inheritable).context("cannot give capabilities up")?;
    caps::set(None, CapSet::Effective, keep).context("cannot give capabilities up")?;
    caps::set(None, CapSet::Permitted, keep).context("cannot give capabilities up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_ids_are_refused() {
        assert_eq!(borrowed([(0, 0), (0, 0)]), None);
        assert_eq!(borrowed([(1000, 1000), (100, 100)]), None);
        let why = borrowed([(65534, 0), (65534, 65534)]).unwrap();
        assert!(why.contains("uid 65534 would") && why.contains("as uid 0") && why.contains("chmod u-s"), "{why}");
        assert!(why.contains("setcap cap_bpf,cap_perfmon"), "{why}");
        assert!(borrowed([(1, 1), (65534, 0)]).unwrap().contains("chmod g-s"));
        assert!(borrowed([(0, 1000), (0, 0)]).is_some(), "also the other way round");
    }

    #[test]
    fn proc_of_another_pid_namespace_is_told() {
        assert!(check_proc().is_ok());
        assert!(ids_are_ours("Pid:\t7\nNSpid:\t7\n") && ids_are_ours("Pid:\t7\n"));
        // ours, seen from outside; one in which this process is not
        assert!(!ids_are_ours("Pid:\t700\nNSpid:\t700\t7\n") && !ids_are_ours(""));
    }
}
