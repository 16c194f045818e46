//! `states --at TIME --call-graph`: the threads of one instant, grouped by stack.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anyhow::Result;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use systape_format::model::StackOf;

use super::super::Context;
use super::now::Now;
use crate::asked::options::stacks::Below;
use systape_answers::derive::runs::decode::Part;
use systape_answers::derive::runs::{Interval, IntervalSink, Slot, State, Thread, Why};
use systape_answers::derive::stacks::asleep::{self, Place, Stack};
use systape_answers::derive::stacks::debug_files;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Forest, NONE};
use systape_answers::derive::stacks::label;
use systape_answers::derive::stacks::names::Names;
use systape_answers::derive::stacks::recorded;
use systape_answers::render::cell::Cell;
use systape_answers::render::json::bytes;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::row::Row;
use systape_answers::render::table::millis;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row a stack with which threads were off the CPU, or none, at the instant of `--at`.
    pub STACKS = "states_at_stacks" {
        ts_ns: Time key "the instant"
        threads ? OfKnown: Count "threads with this stack"
        states ? OfKnown: Nested "how many of them are in each state, by its name"
        off_cpu_ns ? OfKnown: Duration "for how long the one that left its CPU first has been on none; null: none has"
        came_on_cpu_ns ? OfKnown: Duration "how long ago the first of them last came on a CPU; null: not known"
        comms: Nested [Comm] "their names, each once"
        pids: Nested "their processes, each once"
        tids: Nested "the threads"
        stack: Nested key [Path] "functions, the innermost first, as in the listing without `signal` and `guessed`; CSV: as text, the outermost first, between semicolons"
        stack_status: Word key "as in the listing; also `running` (on a CPU), `began-before` (asleep since before the recording, and no stack was fetched), `new`, `unseen`"
    }
}

/// Most threads that text lists by number.
const LISTED: usize = 8;

/// The place of the stack with which each thread last left its CPU.
#[derive(Debug, Default)]
pub(super) struct Left(FxHashMap<Slot, Place>);

impl IntervalSink for Left {
    fn interval(&mut self, _: &[Thread], _: Slot, _: &Interval) {}

    fn left(&mut self, slot: Slot, part: &Part, row: u32) {
        self.0.insert(slot, (StackOf::Switch, part.at, row));
    }
}

/// Threads with one stack.
#[derive(Debug)]
pub(super) struct SameStack<'n, 'a> {
    /// Longest off the CPU first.
    threads: Vec<&'n Now<'a>>,
    /// `main (/bin/app)`, the innermost first, with pseudo frames for missing ones.
    lines: Vec<String>,
    /// The same as objects, without pseudo frames.
    objects: Vec<Value>,
    ending: StackEnding,
}

/// The groups of `now`, which is sorted by time off the CPU; so are they. `slots`: index of each in the tracker.
pub(super) fn groups<'n, 'a>(
    context: &Context<'_>,
    below: &Below,
    left: &Left,
    now: &'n [Now<'a>],
    out: &mut Out,
) -> Result<Vec<SameStack<'n, 'a>>> {
    recorded::require(context.question.tape)?;
    let mut findings = Vec::new();
    let before = asleep::since_before(&context.question, &mut findings);
    let place = |now: &Now<'_>| match now.thread.last_out {
        // it may have left its CPU with another stack since
        _ if now.thread.missed_out => None,
        0 => before.get(&now.thread.task.utid).filter(|_| matches!(now.thread.state, State::Sleeping(_))),
        _ => left.0.get(&now.slot),
    };
    let off = now.iter().enumerate().filter(|(_, now)| now.off.is_some());
    let wanted: Vec<(usize, Place)> = off.filter_map(|(at, now)| place(now).map(|place| (at, *place))).collect();
    let mut forest = Forest::default();
    let stacks = asleep::graft(context.question.tape, wanted, &mut forest, &mut findings);
    let names =
        debug_files::find(context.question.tape, || forest.places(), &below.cut.names.debug_dirs, &mut findings)?;
    findings.iter().for_each(|finding| out.say(finding));

    // two places in one function make no difference: what is printed is what is compared
    let mut texts: FxHashMap<Stack, (Vec<String>, usize)> = FxHashMap::default();
    let mut by_lines: FxHashMap<Vec<String>, usize> = FxHashMap::default();
    let mut groups: Vec<SameStack<'n, 'a>> = Vec::new();
    for (at, now) in now.iter().enumerate() {
        let stack = stacks.get(&at).copied().unwrap_or_else(|| (NONE, NONE, missing(now)));
        let (lines, functions) = texts.entry(stack).or_insert_with(|| lines(&forest, &names, stack));
        if *functions < below.limits().min {
            continue;
        }
        let group = *by_lines.entry(lines.clone()).or_insert_with(|| {
            let objects = objects(&forest, &names, stack);
            groups.push(SameStack { threads: Vec::new(), lines: lines.clone(), objects, ending: stack.2 });
            groups.len() - 1
        });
        groups[group].threads.push(now);
    }
    Ok(groups)
}

/// Why a thread has no stack.
fn missing(now: &Now<'_>) -> StackEnding {
    match now.thread.state {
        State::Running => StackEnding::Running,
        State::Unknown => StackEnding::Unseen,
        State::Waiting(Why::Made | Why::New) => StackEnding::New,
        _ if now.thread.missed_out => StackEnding::Unseen,
        _ if now.thread.last_out > 0 => StackEnding::NotStored,
        _ => StackEnding::Before,
    }
}

/// Frames of the kernel, then of the program, the innermost first.
fn frames(forest: &Forest, (user, kernel, ending): Stack) -> (Vec<u32>, StackEnding) {
    let mut frames = Vec::new();
    let whole = [kernel, user].into_iter().all(|leaf| forest.frames_from(leaf, &mut frames));
    (frames, if whole { ending } else { StackEnding::TooLong })
}

/// The text of a stack, and its number of functions.
fn lines(forest: &Forest, names: &Names, stack: Stack) -> (Vec<String>, usize) {
    let (frames, ending) = frames(forest, stack);
    let mut lines = Vec::new();
    for at in &frames {
        let frame = &forest.frames()[*at as usize];
        let mapping = &forest.mappings().values()[frame.mapping as usize];
        let labels = label::labels(names, names.mapping(mapping), mapping, frame);
        lines.extend(labels.iter().map(|(_, label)| label.in_list()));
    }
    let functions = lines.len();
    lines.extend(ending.mark(frames.is_empty()));
    (lines, functions)
}

fn objects(forest: &Forest, names: &Names, stack: Stack) -> Vec<Value> {
    let mut objects = Vec::new();
    for at in frames(forest, stack).0 {
        let frame = &forest.frames()[at as usize];
        let mapping = &forest.mappings().values()[frame.mapping as usize];
        let labels = label::labels(names, names.mapping(mapping), mapping, frame);
        objects.extend(labels.iter().map(|(function, label)| label::object(*function, label, frame)));
    }
    objects
}

impl SameStack<'_, '_> {
    /// The longest time off the CPU, ns, and whether it is a lower bound; None: not known.
    fn longest(&self) -> Option<(u64, bool)> {
        self.threads.iter().filter_map(|now| now.off.map(|off| (off, now.off_before))).max()
    }

    /// The longest time since one of them got a CPU, ns.
    fn came(&self) -> Option<u64> {
        self.threads.iter().filter_map(|now| now.came).max()
    }

    fn states(&self) -> BTreeMap<&'static str, usize> {
        let mut states = BTreeMap::new();
        self.threads.iter().for_each(|now| *states.entry(now.thread.state.name()).or_default() += 1);
        states
    }

    /// Prints it as text.
    pub(super) fn print(&self, max: usize, out: &mut impl Write) -> io::Result<()> {
        let count = self.threads.len();
        let states: Vec<String> = self.states().iter().map(|(name, n)| format!("[{name}] {n}")).collect();
        let mut head = format!("{count} thread{}, {}", if count == 1 { "" } else { "s" }, states.join(", "));
        if let Some((off, least)) = self.longest() {
            let longest = if count == 1 { "" } else { "the longest " };
            head.push_str(&format!(", {longest}off a CPU for {} ms", millis(off, mark::at_least(least))));
        }
        if let Some(came) = self.came() {
            let most = if count == 1 { "" } else { "up to " };
            head.push_str(&format!(", came on one {most}{} ms ago", millis(came, "")));
        }
        writeln!(out, "{head}")?;
        let mut who: BTreeMap<(&[u8], u32), Vec<u32>> = BTreeMap::new();
        for now in &self.threads {
            who.entry((&now.thread.task.comm, now.thread.task.pid)).or_default().push(now.thread.task.tid);
        }
        for ((comm, pid), tids) in who.iter().take(LISTED) {
            let listed: Vec<String> = tids.iter().take(LISTED).map(u32::to_string).collect();
            let more = if tids.len() > LISTED { format!(" and {} more", tids.len() - LISTED) } else { String::new() };
            writeln!(out, "    {} PID {pid}: TID {}{more}", escaped(comm), listed.join(" "))?;
        }
        if who.len() > LISTED {
            writeln!(out, "    and threads of {} more names or processes", who.len() - LISTED)?;
        }
        for text in self.lines.iter().take(max) {
            writeln!(out, "        {text}")?;
        }
        writeln!(out)
    }

    /// Row of the stack.
    pub(super) fn row(&self, ts: i64, max: usize) -> Row<'_> {
        let distinct = |ids: BTreeSet<u32>| Value::from(ids.into_iter().collect::<Vec<_>>());
        let comms: BTreeSet<&[u8]> = self.threads.iter().map(|now| &*now.thread.task.comm).collect();
        let longest = self.longest();
        // folded, as flamegraph.pl has it
        let folded = self.lines.iter().take(max).rev().map(String::as_str).collect::<Vec<_>>().join(";");
        let mut row = Row::new(&STACKS);
        row.set("ts_ns", ts).set("threads", self.threads.len()).set("states", json!(self.states()));
        row.bound("off_cpu_ns", longest.map(|(off, _)| off), longest.is_some_and(|(_, least)| least));
        row.set("came_on_cpu_ns", self.came());
        row.set("comms", Value::from(comms.into_iter().map(bytes).collect::<Vec<_>>()));
        row.set("pids", distinct(self.threads.iter().map(|now| now.thread.task.pid).collect()));
        row.set("tids", distinct(self.threads.iter().map(|now| now.thread.task.tid).collect()));
        let objects = Value::from(self.objects.iter().take(max).cloned().collect::<Vec<_>>());
        row.set("stack", Cell::Spelled(objects, folded)).set("stack_status", self.ending.name());
        row
    }
}
