//! What threads did in the parts of a path: in which calls they were, on which files.

use std::sync::Arc;

use systape_format::model::Task;

use super::Id;
use super::log::Ids;
use crate::derive::runs::keys::{self, Place};
use crate::derive::runs::queued::CallsInTurn;
use crate::derive::runs::{Doing, InCall, Interval, IntervalSink, Slot, Thread};
use systape_events::call_files::NO_FILE;

/// Most calls of one span that are told apart; time in others is in [`Spent::others`].
const CALLS: usize = 24;

/// A time of a thread that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The thread.
    pub thread: Id,
    /// The time when it begins.
    pub from: u64,
    /// The time when it ends.
    pub to: u64,
    /// The number of the question.
    pub number: u32,
}

/// Time in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct In {
    /// The call.
    pub place: Place,
    /// Number of the file of the call.
    pub file: u32,
    /// Time in it, ns.
    pub ns: u64,
    /// The first such call.
    pub call: Option<InCall>,
}

/// What a thread did in a [`Span`].
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// Time by call.
    pub calls: Vec<In>,
    /// Time in calls beyond [`CALLS`] different ones, ns.
    pub others: u64,
}

impl Spent {
    fn add(&mut self, place: Place, call: Option<InCall>, ns: u64) {
        self.add_of(place, call.map_or(NO_FILE, |call| call.file), call, ns);
    }

    fn add_of(&mut self, place: Place, file: u32, call: Option<InCall>, ns: u64) {
        if let Some(same) = self.calls.iter_mut().find(|call| (call.place, call.file) == (place, file)) {
            same.ns += ns;
        } else if self.calls.len() < CALLS {
            self.calls.push(In { place, file, ns, call });
        } else {
            self.others += ns;
        }
    }

    /// The numbers of files.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut u32> {
        self.calls.iter_mut().flat_map(|of| {
            let first = of.call.as_mut().map(|call| &mut call.file);
            std::iter::once(&mut of.file).chain(first)
        })
    }

    /// Adds another span's.
    pub fn merge(&mut self, other: Self) {
        other.calls.into_iter().for_each(|of| self.add_of(of.place, of.file, of.call, of.ns));
        self.others += other.others;
    }

    /// The call with most of the time.
    pub fn most(&self) -> Option<&In> {
        self.calls.iter().max_by_key(|call| call.ns)
    }
}

/// Answers spans.
#[derive(Debug)]
pub struct Doings {
    ids: Ids,
    /// Sorted; those of one thread do not overlap.
    spans: Vec<Span>,
    /// The first span of each thread that does not end before its last interval.
    next: Vec<u32>,
    /// What was done in the time of each question, by number.
    pub spent: Vec<Spent>,
    all_calls: bool,
    /// The kernel's threads among those in slots.
    kernel: Vec<(Arc<Task>, bool)>,
}

impl Doings {
    /// `spans` of threads, which `ids` numbered in the pass before; `all_calls`: see [`keys::all_calls`].
    pub fn new(mut spans: Vec<Span>, ids: Ids, all_calls: bool) -> Self {
        spans.sort_unstable();
        let numbers = spans.iter().map(|span| span.number as usize + 1).max().unwrap_or(0);
        let threads = spans.last().map_or(0, |span| span.thread as usize + 1);
        let next = (0..threads).map(|id| spans.partition_point(|span| span.thread < id as Id) as u32).collect();
        Self { ids, spans, next, spent: vec![Spent::default(); numbers], all_calls, kernel: Vec::new() }
    }

    fn is_kernel(&mut self, threads: &[Thread], slot: Slot) -> bool {
        let task = &threads[slot].task;
        if slot >= self.kernel.len() {
            self.kernel.resize(slot + 1, (Arc::default(), false));
        }
        if !Arc::ptr_eq(&self.kernel[slot].0, task) {
            self.kernel[slot] = (Arc::clone(task), keys::is_kernel(task));
        }
        self.kernel[slot].1
    }
}

impl Doings {
    /// Index of the first span of `thread` that ends after `from`, if it begins before `to`.
    fn first(&mut self, thread: Id, from: u64, to: u64) -> Option<usize> {
        let mut at = *self.next.get(thread as usize)? as usize;
        while self.spans.get(at).is_some_and(|span| span.thread == thread && span.to <= from) {
            at += 1;
        }
        self.next[thread as usize] = at as u32;
        self.spans.get(at).is_some_and(|span| span.thread == thread && span.from < to).then_some(at)
    }

    /// Adds an interval of a thread, which is the kernel's or not.
    fn add(&mut self, thread: Id, kernel: bool, interval: &Interval) {
        let Some(mut at) = self.first(thread, interval.from, interval.to) else { return };
        let place = keys::place(&interval.doing, interval.state, kernel, self.all_calls);
        let call = match interval.doing {
            Doing::Call(call) => Some(call),
            Doing::User | Doing::Unknown => None,
        };
        while let Some(span) = self.spans.get(at).filter(|span| span.thread == thread && span.from < interval.to) {
            let (from, to) = (span.from.max(interval.from), span.to.min(interval.to));
            if from < to {
                self.spent[span.number as usize].add(place, call, to - from);
            }
            at += 1;
        }
    }
}

impl IntervalSink for Doings {
    fn calls(&mut self, threads: &[Thread], slot: Slot, calls: &CallsInTurn<'_>) {
        let thread = self.ids.of(threads, slot);
        if self.first(thread, calls.first.from, calls.end()).is_some() {
            let kernel = self.is_kernel(threads, slot);
            calls.each(|interval| self.add(thread, kernel, interval));
        }
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        if !interval.is_empty() {
            let (thread, kernel) = (self.ids.of(threads, slot), self.is_kernel(threads, slot));
            self.add(thread, kernel, interval);
        }
    }
}
