//! How much earlier a subject would end without a cause.

use rustc_hash::FxHashSet;
use systape_format::model::Family;

use super::{Traced, Way};
use crate::reports::Context;
use systape_answers::derive::cost::inclusive::Walked;
use systape_answers::derive::cost::judge::{self, Cost};
use systape_answers::derive::cost::paced::is_paced;
use systape_answers::derive::cost::pattern::CausePattern;
use systape_answers::derive::cost::saved::{Range, Saved};
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::log::Log;
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::feed;
use systape_answers::derive::why::finding::Finding;
use systape_events::families::in_session;

/// What was measured of one cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    /// The subject's time that goes away.
    pub cost: Cost,
    /// The time in which somebody was in it, ns.
    pub union: u64,
}

/// Whether a cause is a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// A cause that is no lock.
    No,
    /// A lock whose holder, who is in no wait for it, may be one of those whose ends are waited for.
    Of,
    /// A lock whose holder never waits for it, and ends when he is told to: only the path knows what it costs.
    OfOutsider,
}

impl Lock {
    /// What the cause of `finding` is.
    pub(crate) fn of(finding: &Finding) -> Self {
        match finding.rule {
            "lock" if finding.by_outsider => Self::OfOutsider,
            "lock" => Self::Of,
            _ => Self::No,
        }
    }
}

/// Measures each of `patterns`, which are `locks` or not: a second pass over the tape.
pub(crate) fn retime(
    context: &Context<'_>,
    (log, barriers): (&Log, &FxHashSet<(u32, Vec<u8>)>),
    (way, walked): (Option<&Way>, &Traced),
    (patterns, locks): (&[Vec<CausePattern>], Vec<Lock>),
    span: (u64, u64),
) -> Vec<Sum> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let question = &context.question;
    let calls = in_session(question.tape.session(), Family::Syscall);
    let name = |call| question.book.get(call).name.clone();
    let paced: FxHashSet<Id> =
        (0..).zip(&log.threads).filter(|(_, thread)| is_paced(thread)).map(|(id, _)| id).collect();
    let is_paced = walked.found.iter().any(|found| paced.contains(&found.part.thread));
    let subject = (way.map(|way| way.id), way.map_or(span, |way| way.span));
    let saved = Saved::new(patterns, &name, log.ids.clone(), (paced, barriers), subject);
    let needs = Needs { calls, files: calls, futexes: calls, children: calls, ..Needs::default() };
    let saved = feed::feed(question, needs, span.1, saved).tracker.sink;
    let with: Vec<_> = walked.found.iter().map(|found| (found.part, found.spent.clone())).collect();
    let inside = Walked {
        threads: &log.threads,
        path: &walked.path,
        parts: &with,
        waits: &walked.waits,
        book: &question.book,
        names: &walked.names,
    };
    let sums = saved.of_subject().into_iter().zip(inside.inside(patterns)).zip(&saved.unions).zip(patterns);
    let sums = sums.enumerate().map(|(at, (((range, inside), union), patterns))| {
        if locks[at] == Lock::OfOutsider {
            return Sum { cost: judge::cost(Range::of(inside.ns), inside.ns, false), union: union.ns() };
        }
        let in_series = inside.in_series > inside.ns / 2 && locks[at] == Lock::No;
        let only = is_paced || in_series || saved.limited & 1 << at != 0 || patterns.iter().any(CausePattern::loops);
        Sum { cost: judge::cost(range, inside.ns, only), union: union.ns() }
    });
    sums.collect()
}
