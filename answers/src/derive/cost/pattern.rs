//! Which time is a cause's, as plain values.

use systape_format::model::{Call, Task};

use crate::derive::runs::{Doing, State};
use crate::derive::waits::is_sleep;

/// What calls of a cause are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// Anything, or nothing.
    Any,
    /// This file, socket or futex.
    Named(Vec<u8>),
    /// Files of this directory, at any depth.
    Under(Vec<u8>),
    /// Sockets whose other end has this address.
    Peer(Vec<u8>),
}

/// Which time of its threads is a cause's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternTime {
    /// All time in calls of this name, on these files.
    In {
        /// The call's name; empty: any call.
        call: String,
        /// See there.
        files: Files,
        /// Short stretches of own code between two of them are theirs too: the loop that makes them.
        loops: bool,
    },
    /// Time in which they wait for a CPU.
    Runqueue,
    /// Time in which the CPU quota of their cgroup is used up.
    Throttled,
    /// Uninterruptible sleep, in whatever call.
    Stuck,
    /// Stopped, by a signal or a tracer.
    Stopped,
    /// Time on a CPU in no call.
    OwnCode,
    /// Asleep in no call.
    Outside,
    /// All their time, from fork to end.
    All,
    /// All time without sleeps as their code asks.
    Busy,
}

/// Threads and time of a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CausePattern {
    /// Name of the threads; empty: any.
    pub comm: Vec<u8>,
    /// Process of the threads; None: any.
    pub pid: Option<u32>,
    /// The process that made theirs; None: any.
    pub parent: Option<u32>,
    /// Time of the threads.
    pub time: PatternTime,
    /// Only in this time, CLOCK_MONOTONIC ns; None: always.
    pub span: Option<(u64, u64)>,
}

/// Most causes that are measured in one pass: one bit each in a [`Causes`].
pub const MOST: usize = 64;

/// Says the name of a call.
pub(crate) type CallName<'a> = &'a (dyn Fn(Call) -> String + Sync);

/// Causes, one bit each.
pub type Causes = u64;

impl Files {
    fn hold(&self, name: Option<&[u8]>) -> bool {
        match (self, name) {
            (Self::Any, _) => true,
            (_, None) => false,
            // a program may have named the file from its directory
            (Self::Named(path), Some(name)) if name.starts_with(b"/") || name.contains(&b':') => path == name,
            (Self::Named(path), Some(name)) => {
                path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
            }
            (Self::Peer(end), Some(name)) => name
                .strip_suffix(b"]")
                .is_some_and(|name| name.strip_suffix(&end[..]).is_some_and(|before| before.ends_with(b"->"))),
            (Self::Under(dir), Some(name)) => {
                let inside = name.strip_prefix(&dir[..]);
                inside.is_some_and(|rest| rest.starts_with(b"/") || dir == b"/") || !name.starts_with(b"/")
            }
        }
    }
}

impl CausePattern {
    /// Whether the thread is meant.
    pub fn threads(&self, task: &Task) -> bool {
        (self.comm.is_empty() || self.comm == task.comm)
            && self.pid.is_none_or(|pid| pid == task.pid)
            && self.parent.is_none_or(|parent| parent == task.ppid)
    }

    /// Whether some of the time from `from` to `to` may be the cause's.
    pub fn overlaps(&self, (from, to): (u64, u64)) -> bool {
        self.span.is_none_or(|(first, last)| from <= last && to >= first)
    }

    /// Whether own code between two calls of the cause is the cause's.
    pub fn loops(&self) -> bool {
        matches!(self.time, PatternTime::In { loops: true, .. })
    }

    /// Whether a file of that name is one that the cause is about, not any.
    pub fn about(&self, file: &[u8]) -> bool {
        matches!(&self.time, PatternTime::In { files, .. } if *files != Files::Any && files.hold(Some(file)))
    }

    /// Whether time in the call `name` on `file` is the cause's.
    pub fn call(&self, name: &str, file: Option<&[u8]>) -> bool {
        match &self.time {
            PatternTime::In { call, files, .. } => (call.is_empty() || call == name) && files.hold(file),
            PatternTime::All => true,
            PatternTime::Busy => !is_sleep(name),
            PatternTime::Runqueue
            | PatternTime::Throttled
            | PatternTime::Stuck
            | PatternTime::Stopped
            | PatternTime::OwnCode
            | PatternTime::Outside => false,
        }
    }

    /// Whether time in `state` in no call is the cause's.
    pub(crate) fn own_code(&self, state: State) -> bool {
        matches!(
            (&self.time, state),
            (PatternTime::OwnCode, State::Running)
                | (PatternTime::Outside, State::Sleeping(b'S' | b'D'))
                | (PatternTime::Busy, _)
        )
    }

    /// Whether time in `state` is the cause's, whatever the call.
    pub fn state(&self, state: State) -> bool {
        matches!(
            (&self.time, state),
            (PatternTime::All, _)
                | (PatternTime::Busy, State::Running | State::Waiting(_) | State::Throttled)
                | (PatternTime::Runqueue, State::Waiting(_))
                | (PatternTime::Throttled, State::Throttled)
                | (PatternTime::Stuck, State::Sleeping(b'D'))
                | (PatternTime::Stopped, State::Sleeping(b'T' | b't' | b'F'))
        )
    }
}

/// What matches one thread: for each of its calls so far the causes that it is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matcher {
    /// Causes that mean this thread.
    of_thread: Causes,
    calls: Vec<((Call, u32), Causes)>,
    /// By state, and whether it was in no call: the causes that it is in whatever the call.
    states: Vec<((State, bool), Causes)>,
}

/// Calls of one thread that are remembered.
const REMEMBERED: usize = 64;

impl Matcher {
    /// Causes that a thread can have.
    pub(crate) fn new(patterns: &[Vec<CausePattern>], task: &Task) -> Self {
        let meant = |any: &Vec<CausePattern>| any.iter().any(|pattern| pattern.threads(task));
        Self { of_thread: bits(patterns.iter().map(meant)), calls: Vec::new(), states: Vec::new() }
    }

    /// The causes that the thread is in, in `state` and `doing`, whenever that is; `file` is the name of the call's file.
    pub(crate) fn causes<'n>(
        &mut self,
        patterns: &[Vec<CausePattern>],
        task: &Task,
        (state, doing): (State, &Doing),
        name: CallName<'_>,
        file: impl Fn(u32) -> Option<&'n [u8]>,
    ) -> Causes {
        if self.of_thread == 0 {
            return 0;
        }
        let call = match doing {
            Doing::Call(call) => Some(call),
            Doing::User | Doing::Unknown => None,
        };
        let in_call = call.map_or(0, |call| {
            let key = (call.call, call.file);
            if let Some((_, known)) = self.calls.iter().find(|(known, _)| *known == key) {
                return *known;
            }
            let (name, file) = (name(call.call), file(call.file));
            let within = |pattern: &CausePattern| pattern.threads(task) && pattern.call(&name, file);
            let causes = bits(patterns.iter().map(|any| any.iter().any(within)));
            if self.calls.len() < REMEMBERED {
                self.calls.push((key, causes));
            }
            causes
        });
        let own_code = matches!(doing, Doing::User);
        if let Some((_, known)) = self.states.iter().find(|(known, _)| *known == (state, own_code)) {
            return in_call | known;
        }
        let so = |pattern: &CausePattern| {
            pattern.threads(task) && (pattern.state(state) || (own_code && pattern.own_code(state)))
        };
        let in_state = bits(patterns.iter().map(|any| any.iter().any(so)));
        self.states.push(((state, own_code), in_state));
        in_call | in_state
    }
}

fn bits(set: impl Iterator<Item = bool>) -> Causes {
    set.take(MOST).enumerate().fold(0, |bits, (at, set)| bits | Causes::from(set) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_names_whole_or_from_a_directory() {
        let named = Files::Named(b"/srv/db/wal".to_vec());
        let holds = |files: &Files, name: &[u8]| files.hold(Some(name));
        assert!(holds(&named, b"/srv/db/wal") && holds(&named, b"wal") && holds(&named, b"db/wal"));
        assert!(!holds(&named, b"al") && !holds(&named, b"/wal") && !named.hold(None));
        let under = Files::Under(b"/srv".to_vec());
        assert!(holds(&under, b"/srv/db/wal") && !holds(&under, b"/srv2/x") && !under.hold(None));
        let socket = Files::Named(b"TCP:[10.0.0.1:4->10.0.0.2:5]".to_vec());
        assert!(!holds(&socket, b"TCP:[10.0.0.1:4->10.0.0.2:6]"));
        let peer = Files::Peer(b"10.0.0.2:5".to_vec());
        assert!(holds(&peer, b"TCP:[10.0.0.1:4->10.0.0.2:5]") && !holds(&peer, b"TCP:[10.0.0.1:4->110.0.0.2:5]"));
    }

    #[test]
    fn states_that_are_causes() {
        let of = |time| CausePattern { comm: b"db".to_vec(), pid: Some(7), parent: None, time, span: None };
        assert!(of(PatternTime::OwnCode).own_code(State::Running) && !of(PatternTime::OwnCode).state(State::Running));
        let waiting = State::Waiting(crate::derive::runs::Why::Woken);
        let stuck = State::Sleeping(b'D');
        assert!(of(PatternTime::Outside).own_code(stuck) && !of(PatternTime::Outside).own_code(State::Running));
        assert!(of(PatternTime::Runqueue).state(waiting) && !of(PatternTime::Runqueue).state(State::Running));
        assert!(of(PatternTime::Stuck).state(stuck) && !of(PatternTime::Stuck).state(State::Sleeping(b'S')));
        let (all, busy) = (of(PatternTime::All), of(PatternTime::Busy));
        assert!(all.call("nanosleep", None) && !busy.call("nanosleep", None) && busy.call("wait4", None));
        assert!(all.state(State::Sleeping(b'S')) && !busy.state(State::Sleeping(b'S')) && busy.state(waiting));
        assert!(busy.own_code(State::Sleeping(b'D')), "for a page");
    }

    #[test]
    fn threads_that_are_meant() {
        let task = |comm: &[u8], pid, ppid| Task { comm: comm.to_vec(), pid, ppid, ..Task::default() };
        let one = CausePattern { comm: b"db".to_vec(), pid: Some(7), parent: None, time: PatternTime::All, span: None };
        assert!(one.threads(&task(b"db", 7, 1)) && !one.threads(&task(b"db", 8, 1)) && !one.threads(&task(b"d", 7, 1)));
        let made = CausePattern { comm: Vec::new(), pid: None, parent: Some(7), time: PatternTime::All, span: None };
        assert!(made.threads(&task(b"x", 9, 7)) && !made.threads(&task(b"db", 7, 1)));
    }
}
