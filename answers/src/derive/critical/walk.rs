//! The walk backwards through the stretches of threads.
//!
//! At each moment the path is in one thread. Where that thread slept and another one woke it, the path is in the waker from then back to
//! the beginning of the sleep. A thread that began meanwhile continues as the one that made it. Waits for the ends of several threads or
//! processes that follow each other at once are one wait, for the last of them.

use super::log::Logged;
use super::{Ended, Id, Stretch};
use crate::derive::runs::{State, Why};

/// Most hand-overs within each other.
const DEEPEST: usize = 64;

/// A thread that after it woke another runs no longer than this, and does not sleep, woke it by ending, ns.
const ENDING: u64 = 2_000_000;

/// What a thread may do between two waits that are one, ns.
const BETWEEN: u64 = 1_000_000;

/// Most series in one walk that are taken apart again; what is between is walked twice.
const MOST_PARTED: u32 = 1000;

/// What a part of the path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The thread is on a CPU.
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
    /// The thread had ended, and nobody had waited for it yet.
    Ended,
    /// The state is not known: something was lost, or it is not recorded at that time.
    Unknown,
}

/// A part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The thread.
    pub thread: Id,
    /// The time when it begins.
    pub from: u64,
    /// The time when it ends.
    pub to: u64,
    /// What it is.
    pub kind: Kind,
    /// The state, as recorded.
    pub state: State,
    /// Which of the thread's entries says who it is; 0 where it is not known what it did.
    pub task: u32,
    /// Index of the wait that it stands in for; None: the thread that was asked for.
    pub handover: Option<u32>,
}

/// A sleep that is replaced by what its waker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Who slept, or (`made`) did not exist before `to`.
    pub thread: Id,
    /// The time when it begins.
    pub from: u64,
    /// The time when it ends.
    pub to: u64,
    /// Who woke it.
    pub by: Id,
    /// The network softirq at the end of the own send of `by` did it.
    pub softirq: bool,
    /// The thread was made by `by`.
    pub made: bool,
    /// The wait stands for several waits for ends, of which this was the last.
    pub series: bool,
    /// The wait that this one is within.
    pub within: Option<u32>,
    /// Hand-overs around it.
    pub depth: u32,
}

/// The path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Parts of the path in order of time, without holes or overlaps.
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
    /// The wait of the thread below stands for several.
    series: Option<MergedWaits>,
}

/// A series of waits, and the path before it was walked.
#[derive(Clone, Copy, Debug)]
struct MergedWaits {
    /// When the last of the waits began.
    last: u64,
    /// When it ended.
    end: u64,
    softirq: bool,
    /// Parts and waits on the path, and when the last part begins.
    before: (usize, usize, Option<u64>),
}

/// The path of `thread` in the time from `from` to `to`.
pub fn walk(threads: &[Logged], thread: Id, (from, to): (u64, u64)) -> Path {
    let mut path = Path::default();
    let mut frames = vec![Frame { thread, from, to, handover: None, series: None }];
    let mut parted = 0;
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
            let by = born.map(|by| By { by, made: true, softirq: false, series: None });
            hand_over(&mut path, &mut frames, (at, (State::Unknown, 0)), (at.from, end), by, Kind::Unknown);
            continue;
        };
        if stretch.to < end {
            frame.to = stretch.to;
            path.push(&at, (stretch.to, end), Kind::Unknown, (State::Unknown, stretch.task));
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
            State::Sleeping(b'F') => {
                if let Ended::Woken { by, .. } = stretch.ended
                    && stretch.to <= end
                {
                    // no part of the path is within: what who thawed it did is not why
                    let by = By { by, softirq: false, made: false, series: None };
                    path.handovers.push(handover(&path, &at, (begin, end), &by));
                }
                Kind::Stopped
            }
            State::Sleeping(_) if stretch.to > end => Kind::GoesOn,
            State::Sleeping(_) => match stretch.ended {
                Ended::Interrupt => Kind::Interrupt,
                Ended::GoesOn => Kind::GoesOn,
                Ended::Changed => Kind::Unsaid,
                Ended::Woken { by, softirq } => {
                    let (last, begin) = (begin, series(threads, &at, stretch, by).unwrap_or(begin));
                    frame.to = begin;
                    let unseen = threads.get(by as usize).is_none_or(|by| by.stretches.is_empty());
                    let (waker, otherwise) = match unseen {
                        true => (None, Kind::Unseen { by }),
                        false => (
                            Some(By { by, softirq, series: (begin < last).then_some(last), made: false }),
                            Kind::TooDeep { by },
                        ),
                    };
                    let state = (stretch.state, stretch.task);
                    // who is waited for was woken by who waits, between two of its waits: these are not one
                    if !unseen && parted < MOST_PARTED && part(&mut path, &mut frames, by) {
                        parted += 1;
                        continue;
                    }
                    hand_over(&mut path, &mut frames, (at, state), (begin, end), waker, otherwise);
                    continue;
                }
            },
        };
        path.push(&at, (begin, end), kind, (stretch.state, stretch.task));
    }
    path.parts.reverse();
    path
}

/// Who ended a wait, or made the thread.
struct By {
    by: Id,
    softirq: bool,
    made: bool,
    /// When the last of several waits began; None: it is one.
    series: Option<u64>,
}

/// A wait of the thread of `at`, and who ended it.
fn handover(path: &Path, at: &Frame, (from, to): (u64, u64), &By { by, softirq, made, series }: &By) -> Handover {
    let depth = at.handover.map_or(0, |at| path.handovers[at as usize].depth + 1);
    Handover { thread: at.thread, from, to, by, softirq, made, series: series.is_some(), within: at.handover, depth }
}

/// Goes on in the waker, if there is one that can be followed; otherwise the time is a part of its own, `otherwise`.
fn hand_over(
    path: &mut Path,
    frames: &mut Vec<Frame>,
    (at, state): (Frame, (State, u32)),
    span: (u64, u64),
    by: Option<By>,
    otherwise: Kind,
) {
    let goes_round = |by: Id| frames.iter().any(|frame| frame.thread == by);
    match by {
        Some(by) if frames.len() <= DEEPEST && !goes_round(by.by) => {
            let before = (path.parts.len(), path.handovers.len(), path.parts.last().map(|last| last.from));
            let merged = by.series.map(|last| MergedWaits { last, end: span.1, softirq: by.softirq, before });
            enter(path, frames, &at, span, &by, merged);
        }
        _ => path.push(&at, span, otherwise, state),
    }
}

/// Goes on in the waker of a wait of the thread of `at`.
fn enter(
    path: &mut Path,
    frames: &mut Vec<Frame>,
    at: &Frame,
    (from, to): (u64, u64),
    by: &By,
    series: Option<MergedWaits>,
) {
    path.handovers.push(handover(path, at, (from, to), by));
    let handover = Some((path.handovers.len() - 1) as u32);
    frames.push(Frame { thread: by.by, from, to, handover, series });
}

/// Takes the series of waits of the thread `of` apart: the last is one of its own, and what was walked in the series is
/// walked again. False: it is in none.
fn part(path: &mut Path, frames: &mut Vec<Frame>, of: Id) -> bool {
    let Some(below) = frames.iter().position(|frame| frame.thread == of) else { return false };
    let Some((waker, merged)) = frames.get(below + 1).and_then(|above| Some((above.thread, above.series?))) else {
        return false;
    };
    frames.truncate(below + 1);
    let (parts, handovers, from) = merged.before;
    path.parts.truncate(parts);
    path.handovers.truncate(handovers);
    if let (Some(last), Some(from)) = (path.parts.last_mut(), from) {
        last.from = from;
    }
    frames[below].to = merged.last;
    let at = frames[below];
    let by = By { by: waker, softirq: merged.softirq, made: false, series: None };
    enter(path, frames, &at, (merged.last, merged.end), &by, None);
    true
}

/// When the series of waits for ends began of which `last`, ended by `by`, is the last; None: it is no such wait.
fn series(threads: &[Logged], at: &Frame, last: &Stretch, by: Id) -> Option<u64> {
    if !ends_at(threads, by, last.to) {
        return None;
    }
    let born = first(threads, by)?.from;
    let stretches = &threads[at.thread as usize].stretches;
    let before = &stretches[..stretches.partition_point(|stretch| stretch.from < last.from)];
    let (mut begin, mut others) = (last.from, 0);
    for stretch in before.iter().rev().take_while(|stretch| stretch.to > at.from) {
        match (stretch.state, stretch.ended) {
            (State::Waiting(_) | State::Throttled, _) => {}
            // who began after it was not waited for in it
            (State::Sleeping(_), Ended::Woken { by: other, .. })
                if born <= stretch.from && ends_at(threads, other, stretch.to) =>
            {
                (begin, others) = (stretch.from, 0);
            }
            _ => others += stretch.to - stretch.from,
        }
        if others > BETWEEN {
            break;
        }
    }
    Some(begin.max(at.from))
}

/// Whether a thread ended when it woke another at `ts`.
fn ends_at(threads: &[Logged], thread: Id, ts: u64) -> bool {
    let Some(thread) = threads.get(thread as usize) else { return false };
    let after = &thread.stretches[thread.stretches.partition_point(|stretch| stretch.to <= ts)..];
    let mut runs = 0;
    for stretch in after {
        match stretch.state {
            State::Sleeping(b'Z' | b'X') => return true,
            State::Running => runs += stretch.to - stretch.from.max(ts),
            State::Waiting(_) | State::Throttled => {}
            State::Sleeping(_) | State::Unknown => return false,
        }
        if runs > ENDING || stretch.ended == Ended::GoesOn {
            return false;
        }
    }
    !thread.stretches.is_empty()
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
    fn push(&mut self, at: &Frame, (from, to): (u64, u64), kind: Kind, (state, task): (State, u32)) {
        if let Some(last) = self.parts.last_mut()
            && (last.thread, last.kind, last.handover, last.task) == (at.thread, kind, at.handover, task)
            && last.from == to
        {
            last.from = from;
            return;
        }
        self.parts.push(Part { thread: at.thread, from, to, kind, state, task, handover: at.handover });
    }

    /// How many hand-overs are around a part.
    pub fn depth(&self, part: &Part) -> u32 {
        part.handover.map_or(0, |at| self.handovers[at as usize].depth + 1)
    }
}

#[cfg(test)]
mod tests;
