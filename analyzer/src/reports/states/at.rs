//! `states --at TIME`: every thread at one instant, who has been off the CPU for longest first; with `--call-graph` by stack.

use std::io::Write;

use anyhow::{Context as _, Result};
use rustc_hash::FxHashMap;
use serde_json::Value;
use systape_format::model::{CPU_NONE, GapCause};

use super::super::{Context, clock, scheduling};
use super::stacks::{self, Left};
use crate::args::Format;
use crate::clock::Clock;
use crate::filter;
use crate::load::{Base, Loaded, OpenCalls};
use crate::output;
use crate::render::table::{Fields, Table, millis};
use crate::render::text::{self, Look};
use crate::render::value::Scratch;
use crate::run::Verdict;
use crate::runs::decode::Needs;
use crate::runs::keys::{self, Place, is_kernel, task_fields};
use crate::runs::{Doing, InCall, Slot, State, Thread, feed};
use crate::timespec::Edge;

/// Characters of a call's arguments.
const SHORT: usize = 60;

/// Prints the picture at `edge`.
pub fn run(mut context: Context<'_>, edge: Edge) -> Result<Verdict> {
    let (tape, session) = (context.tape, context.tape.session());
    let clock = if matches!(edge, Edge::Real(_)) { clock(tape) } else { Clock::default() };
    let at = filter::place(edge, session, feed::end(tape), &clock).context("--at")?.min(feed::end(tape));
    // what was lost before or after does not matter when it is not unknown now
    let needs = Needs { calls: true, ..Needs::default() };
    let fed = feed::feed(&context, needs, at, Left::default());
    let all_calls = keys::all_calls(session);
    let mut now: Vec<Now<'_>> = fed
        .tracker
        .threads()
        .iter()
        .enumerate()
        .filter(|(_, thread)| thread.followed && !thread.dead && thread.since <= at && context.scope.task(&thread.task))
        .map(|(slot, thread)| Now::of((slot, thread), at, session.window_open, all_calls))
        .collect();
    now.sort_by_key(|now| (std::cmp::Reverse(now.off), now.thread.last_in, now.thread.task.tid));
    let ts = at.wrapping_sub(session.window_open) as i64;
    let (holes, findings) = (fed.holes.clone(), fed.findings.clone());
    // `fed` ended at that instant: what was lost matters if a thread was unknown then because of it
    if fed.tracker.unsure_until() < at {
        // what was damaged before a repair is looked at for every instant, as damage itself is
        context.loss.gaps.retain(|gap| matches!(gap.cause, GapCause::Damaged | GapCause::DetailDamaged));
    }
    context.loss.holes.extend(holes);
    context.loss.findings.extend(findings);
    if context.config.stacks.listed {
        return with_stacks(&context, &fed.tracker.sink, &now, ts);
    }
    now.truncate(usize::try_from(context.config.max_events).unwrap_or(usize::MAX));
    let arguments = arguments(&context, &now);
    let mut out = output::stdout()?;
    if context.config.format == Format::Text {
        let mut table = Table::default().number("off ms").number("came ms").word("[ST]").number("PID").number("TID");
        table = table.number("CPU").word("COMMAND").number("call ms").word("CALL");
        for (now, arguments) in now.iter().zip(&arguments) {
            table.row(now.cells(&context, arguments.as_deref()));
        }
        scheduling::head(&context, &mut out)?;
        table.print(&mut out)?;
    } else {
        let rows = now.iter().zip(&arguments).map(|(now, arguments)| now.fields(&context, ts, arguments.as_deref()));
        scheduling::rows(context.config.format, &mut out, rows)?;
    }
    out.flush()?;
    Ok(scheduling::verdict(&context, context.config.format == Format::Text))
}

/// Prints threads by their stacks.
fn with_stacks(context: &Context<'_>, left: &Left, now: &[Now<'_>], ts: i64) -> Result<Verdict> {
    let groups = stacks::groups(context, left, now)?;
    let (format, max) = (context.config.format, context.config.stacks.limits.max);
    let mut out = output::stdout()?;
    if format == Format::Text {
        scheduling::head(context, &mut out)?;
        for group in &groups {
            group.print(max, &mut out)?;
        }
    } else {
        scheduling::rows(format, &mut out, groups.iter().map(|group| group.fields(ts, format, max)))?;
    }
    out.flush()?;
    Ok(scheduling::verdict(context, format == Format::Text))
}

/// A thread at that instant.
#[derive(Debug)]
pub(super) struct Now<'a> {
    /// Its position in the tracker.
    pub(super) slot: Slot,
    pub(super) thread: &'a Thread,
    /// For how long it has been on no CPU, ns; None: it is on one, or that is not known.
    pub(super) off: Option<u64>,
    /// `off` is a lower bound.
    pub(super) off_before: bool,
    /// How long ago it last came on a CPU, ns; None: not known.
    pub(super) came: Option<u64>,
    place: Place,
    call: Option<InCall>,
    /// For how long it has been in that call, ns.
    call_ns: u64,
}

impl<'a> Now<'a> {
    fn of((slot, thread): (Slot, &'a Thread), at: u64, open: u64, all_calls: bool) -> Self {
        let known = thread.last_out > 0;
        let off = match thread.state {
            State::Running | State::Unknown => None,
            _ if known => Some(at.saturating_sub(thread.last_out)),
            _ => Some(at.saturating_sub(thread.task.start_ns.max(open))),
        };
        let call = match thread.doing {
            Doing::Call(call) => Some(call),
            Doing::User | Doing::Unknown => None,
        };
        Self {
            slot,
            thread,
            off,
            off_before: !known && thread.task.start_ns <= open,
            came: (thread.last_in > 0).then(|| at.saturating_sub(thread.last_in)),
            place: keys::place(&thread.doing, thread.state, is_kernel(&thread.task), all_calls),
            call,
            call_ns: call.map_or(0, |call| at.saturating_sub(call.start)),
        }
    }

    fn cells(&self, context: &Context<'_>, arguments: Option<&str>) -> Vec<String> {
        let task = &self.thread.task;
        let optional = |ns: Option<u64>, lead| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, lead));
        let mut comm = String::new();
        systape_abi::escape(&task.comm, &mut comm);
        let (call, time) = match &self.call {
            Some(call) => {
                let name = &context.book.get(call.call).long_name;
                let lead = if call.began_before { "≥" } else { "" };
                (format!("{name}({})", arguments.unwrap_or("?")), millis(self.call_ns, lead))
            }
            None => (place_name(self.place).to_owned(), "-".to_owned()),
        };
        vec![
            optional(self.off, if self.off_before { "≥" } else { "" }),
            optional(self.came, ""),
            format!("[{}]", self.thread.state.name()),
            task.pid.to_string(),
            task.tid.to_string(),
            if self.thread.cpu == CPU_NONE { "?".into() } else { self.thread.cpu.to_string() },
            comm,
            time,
            call,
        ]
    }

    fn fields(&self, context: &Context<'_>, ts: i64, arguments: Option<&str>) -> Fields {
        let optional = |ns: Option<u64>| ns.map_or(Value::Null, Value::from);
        let mut fields: Fields = vec![("ts_ns", ts.into())];
        fields.extend(task_fields(Some(&self.thread.task), true));
        let name = self.call.map(|call| context.book.get(call.call).long_name.clone());
        let in_call = |value: Value| if self.call.is_some() { value } else { Value::Null };
        fields.extend([
            ("state", self.thread.state.name().into()),
            ("cpu", if self.thread.cpu == CPU_NONE { Value::Null } else { self.thread.cpu.into() }),
            ("off_cpu_ns", optional(self.off)),
            ("off_cpu_at_least", (self.off.is_some() && self.off_before).into()),
            ("came_on_cpu_ns", optional(self.came)),
            ("syscall", Value::from(name.unwrap_or_else(|| place_name(self.place).to_owned()))),
            ("args_text", arguments.map_or(Value::Null, |text| text.into())),
            ("call_ns", in_call(self.call_ns.into())),
            ("call_at_least", in_call(self.call.is_some_and(|call| call.began_before).into())),
        ]);
        fields
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::User => "[user]",
        Place::Kernel => "[kernel]",
        Place::Any | Place::Unknown | Place::Call(_) => "?",
    }
}

/// The arguments of each thread's call, short; None when they are not on the tape.
fn arguments(context: &Context<'_>, now: &[Now<'_>]) -> Vec<Option<String>> {
    let mut texts: Vec<Option<String>> = vec![None; now.len()];
    let mut by_segment: FxHashMap<u32, Vec<(usize, u32)>> = FxHashMap::default();
    let mut others = Vec::new();
    for (at, now) in now.iter().enumerate() {
        match now.call.map(|call| call.row) {
            Some(Some((segment, row))) => by_segment.entry(segment).or_default().push((at, row)),
            Some(None) => others.push(at),
            None => {}
        }
    }
    for (segment, rows) in by_segment {
        let mut holes = Vec::new();
        let base = Base::read(context.tape, segment as usize, &mut holes, |_, _| true);
        let Some(loaded) = base.map(|base| base.load(&context.book, &mut holes)) else { continue };
        for (at, row) in rows {
            texts[at] = Some(short(&loaded, row as usize));
        }
    }
    if others.is_empty() {
        return texts;
    }
    // known from a checkpoint only
    let last = context.tape.checkpoints().saturating_sub(1);
    let checkpoints: Vec<_> = [0, last].into_iter().filter_map(|at| context.tape.checkpoint(at).ok()).collect();
    for at in others {
        let (task, call) = (&now[at].thread.task, now[at].call);
        let open = checkpoints
            .iter()
            .flat_map(|checkpoint| &checkpoint.in_flight)
            .find(|open| open.utid == task.utid && call.is_some_and(|call| call.call == open.call));
        if let Some(open) = open {
            texts[at] = Some(short(&OpenCalls::of(task, open).load(&context.book), 0));
        }
    }
    texts
}

fn short(loaded: &Loaded, row: usize) -> String {
    let mut bytes = Vec::new();
    text::arguments(&mut bytes, &mut Scratch::default(), loaded, row, Look::default());
    let text = String::from_utf8_lossy(&bytes);
    match text.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into_owned(),
    }
}
