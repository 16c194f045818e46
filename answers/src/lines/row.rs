//! The contents of a row, independent of its printed form: its times, its result, the names of its states.

use std::borrow::Cow;

use systape_abi::RetKind;
use systape_format::model::CallState;

use crate::derive::paths;
use systape_events::calls::CallInfo;
use systape_events::load::{FdPath, Loaded};

/// A duration, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// Exact time, ns.
    Exact(u64),
    /// Lower bound, ns.
    AtLeast(u64),
    /// Not known, or without meaning.
    Unknown,
}

impl Duration {
    /// The time, ns, and whether it is a lower bound; None: it is not known, or has no meaning.
    pub fn known(self) -> Option<(u64, bool)> {
        match self {
            Self::Exact(ns) => Some((ns, false)),
            Self::AtLeast(ns) => Some((ns, true)),
            Self::Unknown => None,
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// Returned this.
    Ret(i64),
    /// Failed with this errno.
    Errno(u16),
    /// Call that was interrupted; the kernel repeats it or turns it into EINTR.
    Restart(u16),
    /// Still open when the recording ended.
    InFlight,
    /// Call whose thread was killed inside it.
    Killed,
    /// Call that does not return: exit, or open when its thread ended.
    NoReturn,
    /// Call that returned; the tape does not have the result.
    NotRecorded,
}

/// The duration of `row`.
#[inline]
pub fn duration(segment: &Loaded, row: usize) -> Duration {
    let dur = segment.core.dur[row];
    match segment.core.state[row] {
        CallState::Complete => Duration::Exact(dur),
        CallState::NoReturn if segment.call(row).is_exit => Duration::Unknown,
        CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore => {
            Duration::AtLeast(dur)
        }
        CallState::CloneChild | CallState::Denied | CallState::LostEnter => Duration::Unknown,
    }
}

/// The file of the descriptor that `row` returned, as the program named it: for calls that open a path not relative to
/// an unknown directory, and for copies of a descriptor with a known path. None: it returned none, or the file is not
/// known.
pub fn returned_path(segment: &Loaded, row: usize, ret: i64) -> Option<Cow<'_, [u8]>> {
    let call = segment.call(row);
    let known = |at: usize| match segment.fd_path(row, at) {
        FdPath::Known(path) => Some(path),
        FdPath::None | FdPath::Unknown => None,
    };
    if ret < 0 {
        return None;
    }
    let (dir, name) = match call.name.as_str() {
        "open" | "creat" => (None, 0),
        "openat" | "openat2" => (known(0), 1),
        "dup" | "dup2" | "dup3" => return known(0).map(Cow::Borrowed),
        _ => return None,
    };
    let named = segment.captured(row).iter().find(|value| usize::from(value.arg) == name)?;
    if !named.status.has_bytes() || !named.status.is_whole() || named.bytes.is_empty() {
        return None;
    }
    match dir {
        None if named.bytes.starts_with(b"/") => Some(Cow::Borrowed(&named.bytes)),
        None => None,
        Some(dir) => paths::join(dir, &named.bytes).map(Cow::Owned),
    }
}

/// The file that `row` removed, as the kernel named it. None: it removed none, it is not known, or it is the path that the program gave.
#[inline]
pub(crate) fn removed_path(segment: &Loaded, row: usize) -> Option<&[u8]> {
    let name = segment.opened(row).filter(|_| segment.call(row).removes)?;
    let given = segment.captured(row).iter().any(|value| value.bytes == name);
    Some(name).filter(|_| !given)
}

/// The result of `row`.
pub fn outcome(segment: &Loaded, row: usize) -> CallOutcome {
    let errno = segment.core.errno[row];
    match segment.core.state[row] {
        CallState::InFlight => CallOutcome::InFlight,
        CallState::Killed => CallOutcome::Killed,
        CallState::NoReturn => CallOutcome::NoReturn,
        _ if systape_abi::is_restart(errno) => CallOutcome::Restart(errno),
        _ if errno != 0 => CallOutcome::Errno(errno),
        _ => segment.args.ret.get(row).map_or(CallOutcome::NotRecorded, |ret| CallOutcome::Ret(*ret)),
    }
}

/// `incomplete` in JSON and CSV.
pub fn incomplete(state: CallState) -> Option<&'static str> {
    match state {
        CallState::Complete | CallState::Denied => None,
        CallState::InFlight => Some("in-flight"),
        CallState::Killed => Some("killed"),
        CallState::NoReturn => Some("no-return"),
        CallState::BeganBefore => Some("began-before"),
        CallState::CloneChild => Some("clone-child"),
        CallState::LostEnter => Some("lost-enter"),
    }
}

/// The name for the pid that `row` returned, if this segment has it: for a new child its first name, else its newest.
pub(crate) fn child_comm<'a>(segment: &'a Loaded, call: &CallInfo, row: usize, ret: i64) -> Option<&'a [u8]> {
    if !call.returns_pid || ret <= 0 {
        return None;
    }
    let tid = u32::try_from(ret).ok()?;
    let own = segment.task(row);
    // the number is one of the caller's pid namespace: of another than the machine's only the caller's own is known
    let nested = own.ns_tid != 0 && own.ns_tid != own.tid;
    if tid == if nested { own.ns_tid } else { own.tid } {
        // gettid and its like: the name the caller had then
        return Some(&own.comm);
    }
    if nested {
        return None;
    }
    segment.comm_of(tid, call.makes_task)
}

/// Whether the return value may exceed 53 bits: addresses and offsets.
#[inline]
pub fn wide_ret(call: &CallInfo) -> bool {
    matches!(call.ret, RetKind::Ptr | RetKind::Hex) || call.name.ends_with("seek")
}
