//! Complete calls of a segment, in a queue for each thread.
//!
//! As long as a thread is on a CPU, its calls change nothing but what itself is in. So they are not sorted among the events of all threads:
//! they are applied when something else touches the thread, or at the end of the segment. [`super::tracker`] sees to it that each is applied
//! at its time where that matters: while its thread is off the CPU, which a call contradicts, and where something is lost.

use std::ops::Range;
use std::sync::Arc;

use systape_events::call_files::NO_FILE;
use systape_format::model::{Call, FD_FIRST, Task};

use super::{Doing, InCall, Interval};

/// Order of the end of a call among events of the same time: before everything else.
pub(super) const LEAVE_ORDER: u8 = 0;
/// Order of the start of a call among events of the same time: behind everything else.
pub(super) const ENTER_ORDER: u8 = 6;

/// A call with its times; task, call and file are indices into those of their part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpan {
    /// When it began, CLOCK_MONOTONIC ns.
    pub start: u64,
    /// When it ended; u64::MAX: not before its thread did.
    pub end: u64,
    /// The thread.
    pub task: u32,
    /// The call.
    pub call: u32,
    /// File of the call: index + FD_FIRST, NO_FILE, UNKNOWN_FILE.
    pub file: u32,
    /// Row of the segment.
    pub row: u32,
    /// The CPU on which it ended; CPU_NONE: not known.
    pub cpu: u32,
    /// Whether it began then or before.
    pub before: bool,
    /// Whether it passes the filters.
    pub counted: bool,
}

/// Calls by thread.
#[derive(Debug, Default)]
pub(super) struct ByThread {
    /// Calls, those of one thread together, in order of time.
    pub spans: Vec<CallSpan>,
    /// Where those of each thread are.
    pub of_thread: Vec<Range<usize>>,
    /// Calls of threads in two at once, as only damage says: they are passed in order.
    pub others: Vec<CallSpan>,
}

/// Sorts `spans`, which are in order of their ends, by their threads; `threads`: for each task one number of its thread.
pub(super) fn by_thread(mut spans: Vec<CallSpan>, threads: &[u32]) -> ByThread {
    let thread = |span: &CallSpan| threads[span.task as usize];
    spans.sort_by_key(thread);
    let (mut of_thread, mut others, mut first) = (Vec::new(), Vec::new(), 0);
    for calls in spans.chunk_by(|a, b| thread(a) == thread(b)) {
        let all = first..first + calls.len();
        first = all.end;
        if calls.windows(2).all(|two| two[0].end <= two[1].start) {
            of_thread.push(all);
        } else {
            others.extend_from_slice(calls);
        }
    }
    others.sort_by_key(|span| span.end);
    ByThread { spans, of_thread, others }
}

/// The complete calls of a part, and what their indices stand for.
#[derive(Debug, Default)]
pub struct PartCalls {
    /// Index of the segment.
    pub at: u32,
    /// The calls, by thread.
    pub spans: Vec<CallSpan>,
    /// Entries of threads by index; a call has that of its end.
    pub tasks: Vec<Arc<Task>>,
    /// Calls by index.
    pub calls: Vec<Call>,
    /// Whether the kernel goes on with the call before by it.
    pub restarts: Vec<bool>,
    /// Numbers of files by index.
    pub files: Vec<u32>,
}

/// Beginning or end of a call.
#[derive(Clone, Debug)]
pub(super) enum CallEdge {
    /// A call begins; `restarts`: with it the one before goes on.
    Enter {
        /// The call.
        call: InCall,
        /// See there.
        restarts: bool,
    },
    /// The call ends.
    Leave {
        /// The entry of the thread.
        task: Arc<Task>,
        /// Time of the end.
        ts: u64,
        /// The CPU; CPU_NONE: not known.
        cpu: u32,
    },
}

/// Calls of one thread that are not applied yet.
#[derive(Clone, Debug, Default)]
pub(super) struct CallQueue {
    /// Indices of the calls; the first one may have begun.
    pub left: Range<u32>,
    /// The first one has begun.
    pub inside: bool,
}

impl CallQueue {
    /// Time and order of the next edge, as among events.
    pub(super) fn key(&self, spans: &[CallSpan]) -> Option<(u64, u8)> {
        let span = spans.get(self.left.clone().next()? as usize)?;
        Some(if self.inside { (span.end, LEAVE_ORDER) } else { (span.start, ENTER_ORDER) })
    }

    /// Takes the next edge.
    pub(super) fn take(&mut self, of: &PartCalls) -> Option<CallEdge> {
        let span = of.spans.get(self.left.clone().next()? as usize)?;
        if self.inside {
            (self.left.start, self.inside) = (self.left.start + 1, false);
            let task = Arc::clone(&of.tasks[span.task as usize]);
            return Some(CallEdge::Leave { task, ts: span.end, cpu: span.cpu });
        }
        self.inside = true;
        let restarts = of.restarts[span.call as usize];
        Some(CallEdge::Enter { call: of.call(span), restarts })
    }
}

/// The number of the file that an event names by `file`; `numbers`: of those of its part.
pub(super) fn numbered(numbers: &[u32], file: u32) -> u32 {
    match file.checked_sub(FD_FIRST) {
        Some(at) => numbers.get(at as usize).copied().unwrap_or(NO_FILE),
        None => file,
    }
}

/// A stretch of time in which a thread was in nothing but its own code and complete calls, and its state was the same.
#[derive(Clone, Copy, Debug)]
pub struct CallsInTurn<'a> {
    /// The interval up to the first call; empty if that begins there.
    pub first: Interval,
    pub(super) spans: &'a [CallSpan],
    pub(super) part: &'a PartCalls,
}

impl CallsInTurn<'_> {
    /// When the last call ends.
    pub fn end(&self) -> u64 {
        self.spans.last().map_or(self.first.to, |span| span.end)
    }

    /// Passes own code and calls in turn.
    pub fn each(&self, mut then: impl FnMut(&Interval)) {
        let mut next = self.first;
        for span in self.spans {
            next.to = span.start;
            if !next.is_empty() {
                then(&next);
                (next.began_before, next.continued) = (false, true);
            }
            (next.from, next.to, next.doing) = (span.start, span.end, Doing::Call(self.part.call(span)));
            then(&next);
            (next.from, next.began_before, next.continued, next.doing) = (span.end, false, true, Doing::User);
        }
    }
}

impl PartCalls {
    /// The first of the calls `left` that can be passed in turn before `key`: they end before it, under one entry of the thread.
    pub(super) fn in_turn(&self, left: Range<u32>, key: (u64, u8)) -> &[CallSpan] {
        let spans = &self.spans[left.start as usize..left.end as usize];
        let spans = &spans[..spans.partition_point(|span| (span.end, LEAVE_ORDER) < key)];
        let Some(first) = spans.first() else { return spans };
        &spans[..spans.iter().position(|span| span.task != first.task).unwrap_or(spans.len())]
    }

    /// What the last of `spans` is, for one that goes on with it.
    pub(super) fn last_of(&self, spans: &[CallSpan]) -> Option<(Call, u32)> {
        spans.last().map(|span| (self.calls[span.call as usize], numbered(&self.files, span.file)))
    }

    fn call(&self, span: &CallSpan) -> InCall {
        InCall {
            call: self.calls[span.call as usize],
            file: numbered(&self.files, span.file),
            start: span.start,
            began_before: span.before,
            counted: span.counted,
            row: Some((self.at, span.row)),
        }
    }
}
