//! The slowest exchanges, and those of median length.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use systape_answers::derive::exchanges::ends::EndKey;
use systape_answers::derive::exchanges::{CutShort, Exchange};
use systape_answers::derive::runs::keys::task_text;
use systape_answers::derive::summary::hist::Histogram;
use systape_answers::render::mark;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::millis;

/// Column of times.
pub(super) const TIME: Column = Column { name: "time", width: 12, places: 6, right: true };

/// One of the slowest.
pub(super) struct Slow {
    /// How long it took, ns.
    pub ns: u64,
    /// The exchange was under way at the end.
    pub goes_on: bool,
    /// The exchange.
    pub exchange: Exchange,
    /// The exchange of the other end.
    pub other: Option<Exchange>,
    /// Several namespaces have one that may be it.
    pub others: bool,
    /// Segments are missing: it may have taken longer.
    pub unseen: bool,
}

impl Slow {
    /// One that took `ns`.
    fn new(ns: u64, goes_on: bool, exchange: Exchange) -> Self {
        Self { ns, goes_on, exchange, other: None, others: false, unseen: false }
    }

    /// Whether it took at least that long.
    pub(super) fn is_short(&self) -> bool {
        self.goes_on || self.unseen
    }

    /// Takes an exchange that may be that of the other end: of one end the one that took longest, before those of other namespaces that of
    /// the own one. Of several others none is it.
    pub(super) fn meets(&mut self, other: &Exchange) {
        let near = |one: &Exchange| one.end.namespace == self.exchange.end.namespace;
        let span = |one: &Exchange| one.last().saturating_sub(one.begin);
        let takes = match &self.other {
            None => !self.others || near(other),
            Some(known) if known.end.namespace == other.end.namespace => span(known) < span(other),
            Some(known) if near(known) => false,
            Some(_) if near(other) => true,
            Some(_) => {
                (self.other, self.others) = (None, true);
                false
            }
        };
        if takes {
            self.other = Some(other.clone());
        }
    }

    /// What makes the order: the slowest, then the first.
    fn rank(&self) -> (u64, Reverse<u64>, Reverse<EndKey>) {
        (self.ns, Reverse(self.exchange.since()), Reverse(self.exchange.end.key()))
    }
}

impl PartialEq for Slow {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Slow {}

impl PartialOrd for Slow {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slow {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The slowest exchanges, the slowest first.
#[derive(Default)]
pub(super) struct Slowest {
    /// The slowest ones.
    pub heap: BinaryHeap<Reverse<Slow>>,
    /// How many of those asked for there are.
    pub all: u64,
    /// How long those with times took.
    pub spread: Histogram,
    /// Number of those with times.
    pub timed: u64,
}

impl Slowest {
    /// Adds one, of which no more than `most` are kept; the tape has calls until `until`.
    pub(super) fn add(&mut self, exchange: Exchange, most: usize, until: u64) {
        self.all += 1;
        let goes_on = exchange.cut == Some(CutShort::End);
        let ns = match exchange.phases() {
            Some(phases) => {
                self.timed += 1;
                self.spread.add(phases.whole());
                phases.whole()
            }
            None if goes_on => until.saturating_sub(exchange.since()),
            None => return,
        };
        if self.heap.len() >= most && self.heap.peek().is_some_and(|Reverse(least)| least.ns > ns) {
            return;
        }
        self.heap.push(Reverse(Slow::new(ns, goes_on, exchange)));
        if self.heap.len() > most {
            self.heap.pop();
        }
    }
}

/// How one of the slowest is called.
pub(super) struct SlowText<'a> {
    /// Clocks of times.
    pub stamps: &'a Stamps,
}

impl SlowText<'_> {
    /// Head of its budget: `0.351827: 13.786 ms of python3[12913]`.
    pub(super) fn head(&self, slow: &Slow) -> String {
        let time = self.stamps.text(TIME, slow.exchange.since());
        let ms = millis(slow.ns, mark::at_least(slow.is_short()));
        format!("{}: {ms} ms of {}", time.trim(), task_text(&slow.exchange.actor().task))
    }
}

/// Exchanges whose length is nearest to the median.
pub(super) struct Medians {
    /// The median, ns.
    pub middle: u64,
    /// How many are kept.
    pub most: usize,
    /// Exchanges that are kept, by how far they are from it.
    pub heap: BinaryHeap<(u64, Slow)>,
}

impl Medians {
    /// Adds one.
    pub(super) fn add(&mut self, exchange: &Exchange) {
        let Some(ns) = exchange.phases().map(|phases| phases.whole()) else { return };
        let far = ns.abs_diff(self.middle);
        if self.heap.len() >= self.most && self.heap.peek().is_some_and(|(most, _)| *most <= far) {
            return;
        }
        self.heap.push((far, Slow::new(ns, false, exchange.clone())));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }
}
