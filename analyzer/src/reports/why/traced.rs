//! The subject's critical path: who is asked about, and what was done in the parts of its path.

use rustc_hash::FxHashMap;
use systape_format::model::{Call, Extent, Family};

use super::budget::Budget;
use crate::asked::config::Config;
use crate::derive::critical::Id;
use crate::derive::critical::doing::{Doings, Span, Spent};
use crate::derive::critical::log::{Log, Logged};
use crate::derive::critical::walk::{Kind, Part, Path};
use crate::derive::runs::decode::Needs;
use crate::derive::runs::keys::{self, Place, Words};
use crate::derive::runs::names::Names;
use crate::derive::runs::{State, feed};
use crate::reports::path::subject::{Subject, subject};
use crate::reports::path::{self, Found};
use crate::reports::{Context, scheduling};
use crate::table::families::in_session;

/// The critical path of the subject.
pub(super) struct Way {
    /// Its thread.
    pub id: Id,
    /// Its time.
    pub span: (u64, u64),
    path: Path,
    parts: Vec<(Part, Option<Id>)>,
    /// It has an end, so that it can be earlier.
    pub ends: bool,
}

/// Who is asked about: a thread, or nobody in particular.
pub(super) fn of_whom(
    config: &Config,
    context: &Context<'_>,
    threads: &[Logged],
    (from, to): (u64, u64),
) -> Option<(Subject, Way)> {
    let tape = context.question.tape;
    let session = tape.session();
    let command = session.target.starts_with("command ") || session.target.starts_with("system-wide during ");
    let asked = !config.filters.pids.is_empty() || !config.filters.tids.is_empty();
    let everybody = session.extent != Extent::Some && !command;
    if !asked && (everybody || context.question.scope.by_task()) {
        return None;
    }
    if config.filters.pids.len() + config.filters.tids.len() > 1 {
        return None;
    }
    let of = subject(config, tape, threads)?;
    let begin = of.from.max(from);
    let (path, parts) = path::path(threads, of.id, (begin, to));
    let span = (path.parts.first()?.from, path.parts.last()?.to);
    let last = threads[of.id as usize].stretches.last();
    let dead = last.is_some_and(|last| last.to < to || matches!(last.state, State::Sleeping(b'Z' | b'X')));
    Some((of, Way { id: of.id, span, path, parts, ends: dead || (command && !asked) }))
}

/// The subject's critical path, and what was done in its parts.
pub(super) struct Traced {
    /// Its parts, and what they are put down to.
    pub found: Vec<Found>,
    /// The waits that others' parts stand in for.
    pub path: Path,
    /// What was waited in.
    pub waits: Vec<Spent>,
    /// What who ended the wait was in at that moment.
    pub wakes: Vec<Spent>,
    /// Names of files.
    pub names: Names,
    /// Names of calls, by call.
    pub calls: FxHashMap<Call, String>,
    /// What the time went to.
    pub budget: Budget,
    /// Too much of the subject's time is not known.
    pub rough: bool,
}

/// Walks the path: one pass over the tape.
pub(super) fn walked(context: &mut Context<'_>, log: &Log, way: Option<&Way>, span: (u64, u64)) -> Traced {
    let (path, parts) = way.map_or_else(Default::default, |way| (way.path.clone(), way.parts.clone()));
    let question = &context.question;
    let (tape, session) = (question.tape, question.tape.session());
    let calls = in_session(session, Family::Syscall);
    let (mut spent, mut wakes, mut names) = (Vec::new(), Vec::new(), Names::default());
    let mut touched = None;
    if way.is_some() {
        let doings = |spans| Doings::new(spans, log.ids.clone(), keys::all_calls(session));
        let both = (doings(path::spans(&path, &parts)), doings(at_wakes(&path)));
        let needs = Needs { calls, files: calls, futexes: calls, ..Needs::default() };
        let told = feed::feed(question, needs, span.1, both);
        let (in_parts, in_wakes) = told.tracker.sink;
        (spent, wakes, names) = (in_parts.spent, in_wakes.spent, told.names);
        touched = Some((told.coverage, told.unsure_until));
    }
    spent.resize_with(parts.len() + path.handovers.len(), Spent::default);
    wakes.resize_with(path.handovers.len(), Spent::default);
    let waits = spent.split_off(parts.len());
    let words = Words { session, book: &question.book, names: &names };
    let found: Vec<Found> = path::causes(parts, spent, tape, &words).collect();
    let budget = Budget::of(&found, &log.threads, &words);
    let unknown = found.iter().filter(|found| matches!(found.part.kind, Kind::Unknown | Kind::Unsaid));
    let rough = unknown.fold(0, |sum, found| sum + found.ns()) > budget.total / 10;
    let spent = found.iter().map(|found| &found.spent).chain(&waits).chain(&wakes);
    let places = spent.flat_map(|spent| &spent.calls);
    let calls = places.filter_map(|of| if let Place::Call(call) = of.place { Some(call) } else { None });
    let calls = calls.map(|call| (call, question.book.get(call).name.clone())).collect();
    if let Some((coverage, unsure)) = touched {
        scheduling::touched(coverage, unsure, context);
    }
    Traced { found, path, waits, wakes, names, calls, budget, rough }
}

/// The moments at which waits of `path` ended, in who ended them.
fn at_wakes(path: &Path) -> Vec<Span> {
    let wakes = (0..).zip(&path.handovers).filter(|(_, wait)| !wait.made);
    wakes.map(|(number, wait)| Span { thread: wait.by, from: wait.to, to: wait.to + 1, number }).collect()
}
