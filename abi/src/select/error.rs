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
        let near = if meant.is_empty() { nearest(name) } else { meant.to_vec() };
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
    }
}
