//! Capabilities: which there are, what is missing in a tape without them, and which of them a running recording still
//! needs. The others are given up before anything of other processes is read, by every thread and for good.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use caps::{CapSet, Capability, CapsHashSet};

use crate::addresses;
use crate::config::Config;

/// Nothing can be recorded without these; what the others add is in [`notes`].
const CORE: [Capability; 2] = [Capability::CAP_BPF, Capability::CAP_PERFMON];

/// With these besides, a recording without stacks lacks nothing. What each is for: docs/record.md.
const MORE: [Capability; 3] = [Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH, Capability::CAP_SYSLOG];

/// What this thread may do now; everything when it cannot be read.
fn effective() -> CapsHashSet {
    caps::read(None, CapSet::Effective).unwrap_or_else(|_| caps::all())
}

/// Capabilities without which nothing can be recorded.
pub(crate) fn missing() -> Vec<Capability> {
    let set = effective();
    if set.contains(&Capability::CAP_SYS_ADMIN) {
        return Vec::new();
    }
    CORE.into_iter().filter(|cap| !set.contains(cap)).collect()
}

/// What is missing for loading BPF programs, and the command that grants it; None when it is something else.
pub(crate) fn how_to_get() -> Option<String> {
    let missing = missing();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let all: Vec<String> = CORE.iter().chain(&MORE).map(|cap| cap.to_string().to_lowercase()).collect();
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("record"));
        return Some(format!(
            "recording takes {}; run it as root (sudo record ...), or once: sudo setcap {}+ep {}",
            names.join(" and "),
            all.join(","),
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

/// Whether user ids here are not the machine's: capabilities count in here only.
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

/// Whether /proc speaks of the ids that this process knows. One of another pid namespace (unshare --pid without --mount-proc) has
/// others: what it says of a number is about somebody else.
///
/// # Errors
/// It does not; says what to do.
pub(crate) fn check_proc() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    anyhow::ensure!(
        ids_are_ours(&status),
        "/proc is not of this pid namespace: mount one that is (unshare --mount-proc, or mount -t proc proc /proc)"
    );
    Ok(())
}

/// NSpid has an id for each namespace from that of /proc to that of the process. Kernels without pid namespaces have no such line.
fn ids_are_ours(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    !status.is_empty() && ids.is_none_or(|ids| ids.split_whitespace().count() == 1)
}

/// What is missing in the tape for lack of a capability, one line each.
pub(crate) fn notes(config: &Config) -> Vec<String> {
    let set = effective();
    let mut notes = Vec::new();
    let has = |cap: Capability| set.contains(&cap);
    if !has(Capability::CAP_SYS_PTRACE) {
        notes.push("without CAP_SYS_PTRACE: executables, directories and open files of other users' processes are unknown until they open them".into());
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
    if crate::entries::of_interrupts().is_none() {
        notes.push(format!(
            "{}: an interrupt of user code counts as the task it interrupted, as sender of a signal or waker",
            addresses::hidden()
        ));
    }
    notes
}

/// What a recording still needs once its programs are attached and its events open.
fn needed(config: &Config) -> CapsHashSet {
    // /proc/PID of others: open files after a lost record, executables of senders of signals
    let mut needed = CapsHashSet::from([Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH]);
    if !config.stacks.on.is_empty() {
        // /proc/PID/map_files, and fanotify on file systems that are mounted later (containers)
        needed.extend([Capability::CAP_CHECKPOINT_RESTORE, Capability::CAP_SYS_ADMIN]);
    }
    if config.kill && !config.command.is_empty() {
        // the command may have become another user's
        needed.insert(Capability::CAP_KILL);
    }
    needed
}

/// Gives up every right that is not needed from here on: of this thread, and so of all that it makes, of programs that
/// these execute, and for good. `works` is asked whether the loaded programs can still be used; before 5.19 the kernel wants CAP_BPF for
/// that where kernel.unprivileged_bpf_disabled is set.
///
/// # Errors
/// When the kernel does not let go, which it always should.
pub(crate) fn give_up(config: &Config, works: impl Fn() -> bool) -> Result<()> {
    let permitted = caps::read(None, CapSet::Permitted).context("cannot read capabilities")?;
    let mut keep: CapsHashSet = needed(config).intersection(&permitted).copied().collect();
    caps::set(None, CapSet::Effective, &keep).context("cannot give capabilities up")?;
    if !works() {
        let stands_for_it = [Capability::CAP_BPF, Capability::CAP_SYS_ADMIN];
        keep.extend(stands_for_it.into_iter().find(|cap| permitted.contains(cap)));
    }
    confine(&keep)
}

/// Gives up everything.
///
/// # Errors
/// As [`give_up`].
pub fn give_up_all() -> Result<()> {
    confine(&CapsHashSet::new())
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
    fn proc_of_another_pid_namespace_is_told() {
        assert!(check_proc().is_ok());
        assert!(ids_are_ours("Pid:\t7\nNSpid:\t7\n") && ids_are_ours("Pid:\t7\n"));
        // ours, seen from outside; one in which this process is not
        assert!(!ids_are_ours("Pid:\t700\nNSpid:\t700\t7\n") && !ids_are_ours(""));
    }
}
