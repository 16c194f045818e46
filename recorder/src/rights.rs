//! Which capabilities this process has, to name the one that is missing.

use std::fs;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_DAC_READ_SEARCH: u32 = 2;

/// The effective set of this process; everything when it cannot be read.
fn effective() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(u64::MAX)
}

fn has(set: u64, cap: u32) -> bool {
    set & (1 << cap) != 0
}

/// Capabilities without which nothing can be recorded.
pub fn missing() -> Vec<&'static str> {
    let set = effective();
    if has(set, CAP_SYS_ADMIN) {
        return Vec::new();
    }
    [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(c, _)| !has(set, *c))
        .map(|(_, n)| n)
        .collect()
}

/// Whether this process lives in the machine's first pid namespace. In another one its ids are not those the kernel side
/// sees: it would take other processes for its targets and record itself.
pub fn in_first_pid_namespace() -> bool {
    // PROC_PID_INIT_INO, include/linux/proc_ns.h
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").map_or(true, |link| link.as_os_str() == FIRST)
}

/// What is missing in the tape for lack of a capability, one line each.
pub fn notes() -> Vec<String> {
    let set = effective();
    let mut notes = Vec::new();
    if !has(set, CAP_SYS_PTRACE) {
        notes.push("without CAP_SYS_PTRACE: executables, directories and open files of other users' processes are unknown until they open them".into());
    } else if !has(set, CAP_DAC_READ_SEARCH) {
        notes.push("without CAP_DAC_READ_SEARCH: names of calls come from the built-in table and open files of other users' processes may be unknown".into());
    }
    notes
}
