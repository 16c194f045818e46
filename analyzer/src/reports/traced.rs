//! The critical path of a thread: who is asked about, what was done in the parts of the path, and what these are put down to.

pub(crate) mod cause;
pub(crate) mod held;
pub(crate) mod request;
pub(crate) mod retime;
pub(crate) mod subject;

use rustc_hash::FxHashMap;
use systape_format::model::{Call, Extent, Family};
use systape_format::reader::Tape;

use self::cause::{Cause, TimedOutCalls};
use self::subject::{Subject, subject};
use super::{Context, scheduling};
use crate::asked::config::Config;
use systape_answers::derive::critical::doing::{Doings, Span, Spent};
use systape_answers::derive::critical::log::{Log, Logged};
use systape_answers::derive::critical::walk::{self, Kind, Part, Path};
use systape_answers::derive::critical::{Id, behind};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{self, Place, Words};
use systape_answers::derive::runs::names::Names;
use systape_answers::derive::runs::{State, feed};
use systape_events::families::in_session;

/// The critical path of the subject.
pub(crate) struct Way {
    /// Thread of the subject.
    pub id: Id,
    /// Time of the subject.
    pub span: (u64, u64),
    /// Critical path.
    pub path: Path,
    /// Parts of the path, with who had the CPU that was waited for.
    pub parts: Vec<(Part, Option<Id>)>,
    /// Whether it has an end, so that it can be earlier.
    pub ends: bool,
}

/// Who is asked about: a thread, or nobody in particular.
pub(crate) fn of_whom(
    config: &Config,
    context: &Context<'_>,
    threads: &[Logged],
    (from, to): (u64, u64),
) -> Option<(Subject, Way)> {
    let tape = context.question.tape;
    let session = tape.session();
    let command = is_of_command(&session.target);
    let asked = !config.filters.pids.is_empty() || !config.filters.tids.is_empty();
    let everybody = session.extent != Extent::Some && !command;
    if !asked && (everybody || context.question.scope.by_task()) {
        return None;
    }
    if config.filters.pids.len() + config.filters.tids.len() > 1 {
        return None;
    }
    let of = subject(config, tape, threads)?;
    Some((of, Way::of(of, threads, (from, to), command && !asked)?))
}

impl Way {
    /// The path of a subject within `from` and `to`; `is_command`: that of a command, which ends. None: it has no time there.
    pub(crate) fn of(of: Subject, threads: &[Logged], (from, to): (u64, u64), is_command: bool) -> Option<Self> {
        let (path, parts) = path(threads, of.id, (of.from.max(from), to));
        let span = (path.parts.first()?.from, path.parts.last()?.to);
        let last = threads[of.id as usize].stretches.last();
        let dead = last.is_some_and(|last| last.to < to || matches!(last.state, State::Sleeping(b'Z' | b'X')));
        Some(Self { id: of.id, span, path, parts, ends: dead || is_command })
    }
}

/// Whether a command was recorded.
pub(crate) fn is_of_command(target: &str) -> bool {
    target.starts_with("command ") || target.starts_with("system-wide during ")
}

/// The path of `id` within `from` and `to`, as far as it was there, with who had the CPUs that were waited for.
pub(crate) fn path(threads: &[Logged], id: Id, (from, to): (u64, u64)) -> (Path, Vec<(Part, Option<Id>)>) {
    let first = threads[id as usize].stretches.first().map_or(from, |first| first.from).max(from);
    path_before_birth(threads, id, (first, to))
}

/// The path of `id`, and of whoever made it before it was there.
pub(crate) fn path_before_birth(threads: &[Logged], id: Id, (from, to): (u64, u64)) -> (Path, Vec<(Part, Option<Id>)>) {
    let last = threads[id as usize].stretches.last().map_or(from, |last| last.to).clamp(from, to.max(from));
    let path = walk::walk(threads, id, (from, last));
    let parts = behind::split(threads, &path);
    (path, parts)
}

/// What is to be found out of parts, and behind these of the waits that they stand in for.
pub(crate) fn spans(path: &Path, parts: &[(Part, Option<Id>)]) -> Vec<Span> {
    let of_parts = parts.iter().map(|(part, _)| (part.thread, part.from, part.to));
    let of_waits = path.handovers.iter().map(|wait| (wait.thread, wait.from, wait.to));
    let numbered = (0..).zip(of_parts.chain(of_waits));
    numbered.map(|(number, (thread, from, to))| Span { thread, from, to, number }).collect()
}

/// A part of the path, and all that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The part.
    pub part: Part,
    /// Who had the CPU.
    pub behind: Option<Id>,
    /// What it is put down to.
    pub cause: Cause,
    /// What its thread did.
    pub spent: Spent,
    /// The block I/O that it waited for; None: none, or not known.
    pub io: Option<request::TracedIo>,
    /// The I/O limit of a cgroup that held that back; None: none, or not known.
    pub limit: Option<String>,
}

impl Found {
    /// Length of the time, ns.
    pub(crate) fn ns(&self) -> u64 {
        self.part.to - self.part.from
    }

    /// Who had the CPU that was waited for, or who woke the thread and is not followed; None: nobody, or not known.
    pub(crate) fn other(&self) -> Option<Id> {
        match self.part.kind {
            Kind::Unseen { by } | Kind::TooDeep { by } => Some(by),
            _ => self.behind,
        }
    }
}

/// What parts, with what was done in each, are put down to.
pub(crate) fn causes(
    parts: Vec<(Part, Option<Id>)>,
    spent: Vec<Spent>,
    tape: &Tape,
    words: &Words<'_>,
) -> impl Iterator<Item = Found> {
    let slept = parts.iter().zip(&spent).filter(|((part, _), _)| part.kind == Kind::Interrupt);
    let ends = TimedOutCalls::of(tape, words.book, slept.filter_map(|(_, spent)| spent.most()?.call));
    let found = parts.into_iter().zip(spent);
    found.map(move |((part, behind), spent)| {
        let cause = Cause::of(&part, &spent, &ends, words);
        Found { part, behind, cause, spent, io: None, limit: None }
    })
}

/// The subject's critical path, and what was done in its parts.
pub(crate) struct Traced {
    /// Parts of the path, and what they are put down to.
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
    /// Too much of the subject's time is not known.
    pub rough: bool,
}

/// Walks the path: one pass over the tape.
pub(crate) fn walked(context: &mut Context<'_>, log: &Log, way: Option<&Way>, span: (u64, u64)) -> Traced {
    let (path, parts) = way.map_or_else(Default::default, |way| (way.path.clone(), way.parts.clone()));
    let question = &context.question;
    let (tape, session) = (question.tape, question.tape.session());
    let calls = in_session(session, Family::Syscall);
    let (mut spent, mut wakes, mut names) = (Vec::new(), Vec::new(), Names::default());
    let mut touched = None;
    if way.is_some() {
        let doings = |spans| Doings::new(spans, log.ids.clone(), keys::all_calls(session));
        let both = (doings(spans(&path, &parts)), doings(at_wakes(&path)));
        let needs = Needs { calls, files: calls, futexes: calls, ..Needs::default() };
        let told = feed::feed(question, needs, span.1, both);
        let (in_parts, in_wakes) = told.tracker.sink;
        (spent, wakes, names) = (in_parts.spent, in_wakes.spent, told.names);
        touched = Some((told.coverage, told.unsure_until));
    }
    spent.resize_with(parts.len() + path.handovers.len(), Spent::default);
    wakes.resize_with(path.handovers.len(), Spent::default);
    // of all files of the tape those of the parts are few
    names = names.only(spent.iter_mut().chain(&mut wakes).flat_map(Spent::files_mut));
    let waits = spent.split_off(parts.len());
    let words = Words { session, book: &question.book, names: &names };
    let found: Vec<Found> = causes(parts, spent, tape, &words).collect();
    let total = found.iter().fold(0, |sum, found| sum + found.ns());
    let unknown = found.iter().filter(|found| matches!(found.part.kind, Kind::Unknown | Kind::Unsaid));
    let rough = unknown.fold(0, |sum, found| sum + found.ns()) > total / 10;
    let spent = found.iter().map(|found| &found.spent).chain(&waits).chain(&wakes);
    let places = spent.flat_map(|spent| &spent.calls);
    let calls = places.filter_map(|of| if let Place::Call(call) = of.place { Some(call) } else { None });
    let calls = calls.map(|call| (call, question.book.get(call).name.clone())).collect();
    if let Some((coverage, unsure)) = touched {
        scheduling::touched(coverage, unsure, context);
    }
    Traced { found, path, waits, wakes, names, calls, rough }
}

/// The moments at which waits of `path` ended, in who ended them.
fn at_wakes(path: &Path) -> Vec<Span> {
    let wakes = (0..).zip(&path.handovers).filter(|(_, wait)| !wait.made);
    wakes.map(|(number, wait)| Span { thread: wait.by, from: wait.to, to: wait.to + 1, number }).collect()
}
