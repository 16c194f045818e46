//! The walk backwards through the stretches of threads.
//!
//! At each moment the path is in one thread. Where that thread slept and another one woke it, the path is in the waker from then back to
//! the beginning of the sleep. A thread that began meanwhile continues as the one that made it.

use super::log::Logged;
use super::{Ended, Id, Stretch};
use crate::derive::runs::{State, Why};

/// Most hand-overs within each other.
const DEEPEST: usize = 64;

/// What a part of the path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// On a CPU.
    Runs,
    /// Waiting for a CPU: this one, or CPU_NONE.
    Waits {
        /// See there.
        cpu: u32,
    },
    /// Runnable, while a cgroup of it was out of CPU time.
    Throttled,
    /// Asleep, and an interrupt ended that: a timer, a device, or a sender that is not known.
    Interrupt,
    /// Asleep, and what woke it came after the part that is looked at, or never.
    GoesOn,
    /// Asleep, and this thread woke it, whose own time is not on the tape.
    Unseen {
        /// See there.
        by: Id,
    },
    /// Asleep, and this thread woke it, but the hand-overs are too deep or go round.
    TooDeep {
        /// See there.
        by: Id,
    },
    /// Asleep until something that the tape does not say.
    Unsaid,
    /// Stopped, by a signal or a tracer.
    Stopped,
    /// It had ended, and nobody had waited for it yet.
    Ended,
    /// Its state is not known: something was lost, or it is not recorded at that time.
    Unknown,
}

/// A part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The thread.
    pub thread: Id,
    /// Start.
    pub from: u64,
    /// End.
    pub to: u64,
    /// What it is.
    pub kind: Kind,
    /// The state, as recorded.
    pub state: State,
    /// Index of the wait that it stands in for; None: the thread that was asked for.
    pub handover: Option<u32>,
}

/// A sleep that is replaced by what its waker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    /// Who slept, or (`made`) did not exist before `to`.
    pub thread: Id,
    /// Start.
    pub from: u64,
    /// End.
    pub to: u64,
    /// Who woke it.
    pub by: Id,
    /// By the network softirq at the end of its own send.
    pub softirq: bool,
    /// `by` made the thread.
    pub made: bool,
    /// The wait that this one is within.
    pub within: Option<u32>,
    /// Hand-overs around it.
    pub depth: u32,
}

/// The path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    /// Its parts in order of time, without holes or overlaps.
    pub parts: Vec<Part>,
    /// The waits that other threads' parts stand in for; those within another come after it.
    pub handovers: Vec<Handover>,
}

/// Where the walk is in one thread: from `to` it goes back to `from`.
#[derive(Clone, Copy, Debug)]
struct Frame {
    thread: Id,
    from: u64,
    to: u64,
    handover: Option<u32>,
}

/// The path of `thread` in the time from `from` to `to`.
pub(crate) fn walk(threads: &[Logged], thread: Id, (from, to): (u64, u64)) -> Path {
    let mut path = Path::default();
    let mut frames = vec![Frame { thread, from, to, handover: None }];
    while let Some(frame) = frames.last_mut() {
        if frame.to <= frame.from {
            frames.pop();
            continue;
        }
        let (at, end) = (*frame, frame.to);
        let found = last_before(threads, at.thread, end);
        let Some(stretch) = found.filter(|stretch| stretch.to > at.from) else {
            // nothing before: it began here, or its time is not on the tape
            frame.to = frame.from;
            let born = first(threads, at.thread).filter(|first| end <= first.from).and_then(maker);
            let by = born.map(|by| (by, false, true));
            hand_over(&mut path, &mut frames, (at, State::Unknown), (at.from, end), by, Kind::Unknown);
            continue;
        };
        if stretch.to < end {
            frame.to = stretch.to;
            path.push(&at, (stretch.to, end), Kind::Unknown, State::Unknown);
            continue;
        }
        let begin = stretch.from.max(at.from);
        frame.to = begin;
        let kind = match stretch.state {
            State::Running => Kind::Runs,
            State::Waiting(_) => Kind::Waits { cpu: stretch.cpu },
            State::Throttled => Kind::Throttled,
            State::Unknown => Kind::Unknown,
            State::Sleeping(b'T' | b't') => Kind::Stopped,
            State::Sleeping(b'Z' | b'X') => Kind::Ended,
            State::Sleeping(_) if stretch.to > end => Kind::GoesOn,
            State::Sleeping(_) => match stretch.ended {
                Ended::Interrupt => Kind::Interrupt,
                Ended::GoesOn => Kind::GoesOn,
                Ended::Changed => Kind::Unsaid,
                Ended::Woken { by, softirq } => {
                    let unseen = threads.get(by as usize).is_none_or(|by| by.stretches.is_empty());
                    let (waker, otherwise) = match unseen {
                        true => (None, Kind::Unseen { by }),
                        false => (Some((by, softirq, false)), Kind::TooDeep { by }),
                    };
                    hand_over(&mut path, &mut frames, (at, stretch.state), (begin, end), waker, otherwise);
                    continue;
                }
            },
        };
        path.push(&at, (begin, end), kind, stretch.state);
    }
    path.parts.reverse();
    path
}

/// A waker: who, whether by a softirq, whether it made the thread.
type By = (Id, bool, bool);

/// Goes on in the waker, if there is one that can be followed; otherwise the time is a part of its own, `otherwise`.
fn hand_over(
    path: &mut Path,
    frames: &mut Vec<Frame>,
    (at, state): (Frame, State),
    span: (u64, u64),
    by: Option<By>,
    otherwise: Kind,
) {
    let goes_round = |by: Id| frames.iter().any(|frame| frame.thread == by);
    match by {
        Some((by, softirq, made)) if frames.len() <= DEEPEST && !goes_round(by) => {
            let depth = at.handover.map_or(0, |at| path.handovers[at as usize].depth + 1);
            let (from, to) = span;
            let within = at.handover;
            path.handovers.push(Handover { thread: at.thread, from, to, by, softirq, made, within, depth });
            let handover = Some((path.handovers.len() - 1) as u32);
            frames.push(Frame { thread: by, from, to, handover });
        }
        _ => path.push(&at, span, otherwise, state),
    }
}

/// The last stretch of a thread that begins before `ts`.
fn last_before(threads: &[Logged], thread: Id, ts: u64) -> Option<&Stretch> {
    let stretches = &threads.get(thread as usize)?.stretches;
    stretches[..stretches.partition_point(|stretch| stretch.from < ts)].last()
}

fn first(threads: &[Logged], thread: Id) -> Option<&Stretch> {
    threads.get(thread as usize)?.stretches.first()
}

/// Who made the thread whose first stretch this is.
fn maker(first: &Stretch) -> Option<Id> {
    match (first.state, first.ended) {
        (State::Waiting(Why::Made), Ended::Woken { by, .. }) => Some(by),
        _ => None,
    }
}

impl Path {
    /// Adds a part, the one in front of those so far.
    fn push(&mut self, at: &Frame, (from, to): (u64, u64), kind: Kind, state: State) {
        if let Some(last) = self.parts.last_mut()
            && (last.thread, last.kind, last.handover) == (at.thread, kind, at.handover)
            && last.from == to
        {
            last.from = from;
            return;
        }
        self.parts.push(Part { thread: at.thread, from, to, kind, state, handover: at.handover });
    }

    /// How many hand-overs are around a part.
    pub(crate) fn depth(&self, part: &Part) -> u32 {
        part.handover.map_or(0, |at| self.handovers[at as usize].depth + 1)
    }
}

#[cfg(test)]
mod tests;
