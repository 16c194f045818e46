//! Errors in an expression, in words that say what to write instead.

use super::{NAMES, aliases, groups};
use crate::near;

/// Why an `-e` expression was not accepted. The text of each names the term and, if there is a similar name, the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// A name no ABI has.
    #[error("unknown syscall '{name}' in -e{}", did_you_mean(near))]
    Unknown {
        /// The name as typed.
        name: String,
        /// Up to three similar names, the nearest first.
        near: Vec<&'static str>,
    },
    /// A `%group` that does not exist.
    #[error("unknown group '%{name}' in -e; groups are {}", groups::GROUPS.join(", "))]
    Group {
        /// The group as typed, without `%`.
        name: String,
    },
    /// A glob no name matches.
    #[error("no syscall matches '{glob}' in -e")]
    Nothing {
        /// The glob as typed.
        glob: String,
    },
    /// Nothing between two commas, or an expression without any term.
    #[error("empty term in -e '{expr}'")]
    Empty {
        /// The whole expression.
        expr: String,
    },
    /// A colon without a family before it or an event after it.
    #[error("'{term}' in -e is neither a syscall nor an event; write family:event, such as sched:*")]
    Event {
        /// The term as typed.
        term: String,
    },
    /// A form of strace or perf that means something else here.
    #[error("'{term}' in -e is not supported: {reason}")]
    Unsupported {
        /// The term as typed.
        term: String,
        /// What to use instead.
        reason: &'static str,
    },
}

fn did_you_mean(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

impl SelectError {
    pub(super) fn unknown(name: &str) -> Self {
        // `=recv` names no call, but it is known what the user is after
        let meant = aliases::made_by_libc(name);
        let near = if meant.is_empty() {
            of_the_kernel(name).map_or_else(|| nearest(name), |name| vec![name])
        } else {
            meant.to_vec()
        };
        Self::Unknown { name: name.to_owned(), near }
    }
}

/// Events of perf that count, or take samples by what they count.
const COUNTERS: [&str; 11] = [
    "cycles",
    "cpu-cycles",
    "instructions",
    "cpu-clock",
    "task-clock",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "bus-cycles",
    "ref-cycles",
];

/// Forms other tools accept, with what to do instead.
pub(super) fn not_supported(term: &str) -> Option<&'static str> {
    if term.starts_with('/') {
        return Some("there are no regular expressions; use a glob such as epoll*");
    }
    if COUNTERS.contains(&term.split(':').next().unwrap_or_default()) {
        return Some("counters of the CPU are not recorded; record -F 99 samples what runs");
    }
    let (qualifier, _) = term.split_once('=').filter(|(before, _)| !before.is_empty())?;
    Some(match qualifier {
        "trace" | "t" => "write trace= once, in front of the list",
        "signal" | "signals" | "s" => "signals are events; write signal:*",
        "inject" | "fault" => "nothing is changed in what is recorded; strace -e inject= does that",
        "read" | "write" | "raw" | "verbose" | "abbrev" | "quiet" | "decode-fds" | "kvm" => {
            "it says how strace prints; here the first 4096 bytes of strings, paths and descriptors are on the tape"
        }
        "status" => "use --failure for calls that fail",
        "fd" | "fds" | "trace-fd" | "trace-fds" => "analyze -P PATH chooses calls by what a descriptor stands for",
        "namespace" | "secontext" => "it says how strace prints",
        _ => "only trace= may stand before a list of syscalls",
    })
}

/// The call whose name is written as the kernel's functions and numbers have it.
fn of_the_kernel(name: &str) -> Option<&'static str> {
    let starts = ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__NR_", "SYS_", "sys_enter_", "sys_exit_", "sys_"];
    let call = starts.iter().find_map(|start| name.strip_prefix(start)).filter(|call| !call.is_empty());
    if let Some(call) = call {
        return NAMES.get(call).copied();
    }
    let number = name.parse().ok()?;
    crate::Abi::KNOWN
        .into_iter()
        .find_map(|abi| crate::names::all(abi).find(|(nr, _)| *nr == number))
        .map(|(_, name)| name)
}

/// Names of calls and groups similar to `name`.
fn nearest(name: &str) -> Vec<&'static str> {
    near::nearest(name, NAMES.iter().copied().chain(aliases::names()).chain(groups::GROUPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_are_few_and_near() {
        assert_eq!(nearest("opennat")[0], "openat");
        assert!(nearest("raed").contains(&"read"));
        assert_eq!(nearest("netwrok"), ["network"]);
        assert!(nearest("zzzzzzzzzzzz").is_empty());
        assert!(nearest(&"x".repeat(100_000)).is_empty());
        assert_eq!([of_the_kernel("__x64_sys_openat"), of_the_kernel("SYS_read")], [Some("openat"), Some("read")]);
        assert_eq!((of_the_kernel("57"), of_the_kernel("sys_"), of_the_kernel("openat")), (Some("fork"), None, None));
    }
}
