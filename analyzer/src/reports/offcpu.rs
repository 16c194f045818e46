//! Where threads spent the time they were on no CPU, and who woke them.

mod wakers;

use std::io::Write;

use anyhow::Result;
use rustc_hash::FxHashMap;
use serde_json::json;
use systape_format::reader::Tape;

use super::{Context, scheduling};
use crate::config::Config;
use crate::output;
use crate::render::form::Format;
use crate::render::table::{Fields, Table, millis};
use crate::runs::by::By;
use crate::runs::decode::Needs;
use crate::runs::keys::{self, Key, Keys, Words};
use crate::runs::{Doing, End, Interval, Sink, Slot, State, Thread, feed};
use crate::say::Verdict;

/// What is added up by if nothing is said.
const DEFAULT: [By; 3] = [By::Comm, By::State, By::Syscall];

/// Prints what `config` asks for.
pub fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    if let Some(pid) = config.sched.wakers {
        return wakers::run(scheduling::context(config, tape, false)?, pid);
    }
    let by = if config.sched.by.is_empty() { DEFAULT.to_vec() } else { config.sched.by.clone() };
    let calls = by.iter().any(|by| matches!(by, By::Syscall | By::File)) || config.filters.selects;
    let mut context = scheduling::context(config, tape, calls)?;
    let needs = Needs { calls, files: by.contains(&By::File), ..Needs::default() };
    let sink = OffCpu {
        keys: Keys::new(&by, &context.question.scope, keys::all_calls(tape.session())),
        context: &context,
        sums: FxHashMap::default(),
    };
    let fed = feed::feed(&context.question, needs, context.question.scope.to, sink);
    let OffCpu { keys, sums, .. } = &fed.tracker.sink;
    let mut sums: Vec<(&Key, &Sum)> = sums.iter().collect();
    sums.sort_by_key(|(key, sum)| (std::cmp::Reverse(sum.total), **key));
    let total = sums.iter().fold(0_u64, |total, (_, sum)| total.saturating_add(sum.total));
    let words = Words { session: tape.session(), book: &context.question.book, names: &fed.names };
    let limit = usize::try_from(config.max_events).unwrap_or(usize::MAX);
    let text = config.format == Format::Text;
    let mut table =
        Table::default().number("total ms").number("count").number("avg ms").number("max ms").number("share");
    table = by.iter().fold(table, |table, by| table.word(by.name()));
    let mut rows = Vec::new();
    for (key, sum) in sums.into_iter().take(limit) {
        if text {
            table.row(sum.cells(total).into_iter().chain(keys.texts(key, &words)).collect());
        } else {
            rows.push((keys.fields(key, &words), sum.fields(total)));
        }
    }
    let mut out = output::stdout()?;
    let (holes, findings) = (fed.holes.clone(), fed.findings.clone());
    let unsure = fed.tracker.unsure_until();
    context.question.loss.holes.extend(holes);
    context.question.loss.findings.extend(findings);
    scheduling::touched(&mut context, unsure);
    if text {
        scheduling::head(&context, &mut out)?;
        table.print(&mut out)?;
        scheduling::foot(&context, &mut out)?;
    } else {
        let complete = context.question.loss.complete();
        let whole = |(mut fields, sum): (Fields, Fields)| {
            fields.extend(sum);
            fields.push(("complete", complete.into()));
            fields
        };
        scheduling::rows(config.format, &mut out, rows.into_iter().map(whole))?;
    }
    out.flush()?;
    Ok(scheduling::verdict(&context, text))
}

/// Time off the CPU of one key.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// ns.
    total: u64,
    /// Times a CPU was left (or was not had at the start).
    count: u64,
    /// The longest, ns.
    max: u64,
    /// Some began before the recording or went on after it (or into a loss).
    open: bool,
    /// The longest is one of them.
    max_open: bool,
}

impl Sum {
    fn add(&mut self, ns: u64, open: bool, counts: bool) {
        self.total = self.total.saturating_add(ns);
        self.count += u64::from(counts);
        self.open |= open;
        if ns > self.max || (ns == self.max && open) {
            (self.max, self.max_open) = (ns, open);
        }
    }

    fn avg(&self) -> u64 {
        self.total / self.count.max(1)
    }

    fn cells(&self, all: u64) -> Vec<String> {
        let lead = if self.open { "≥" } else { "" };
        vec![
            millis(self.total, lead),
            self.count.to_string(),
            millis(self.avg(), lead),
            millis(self.max, if self.max_open { "≥" } else { "" }),
            share(self.total, all),
        ]
    }

    fn fields(&self, all: u64) -> Fields {
        vec![
            ("total_ns", self.total.into()),
            ("count", self.count.into()),
            ("avg_ns", self.avg().into()),
            ("max_ns", self.max.into()),
            ("share", json!(self.total as f64 / all.max(1) as f64)),
            ("at_least", self.open.into()),
            ("max_at_least", self.max_open.into()),
        ]
    }
}

/// `12.3%`.
pub(super) fn share(part: u64, all: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / all.max(1) as f64)
}

struct OffCpu<'a> {
    context: &'a Context<'a>,
    keys: Keys<'a>,
    sums: FxHashMap<Key, Sum>,
}

impl Sink for OffCpu<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        // without the state as a key, waiting for a CPU would look like waiting for something
        if !keys::off_cpu(interval.state, self.keys.has(By::State)) || !selected(self.context, interval) {
            return;
        }
        let scope = &self.context.question.scope;
        let from = interval.from.max(scope.from);
        let ns = interval.to.saturating_sub(from);
        let filters = scope.filters();
        if (interval.to < scope.from || interval.is_empty())
            || filters.longer_than.is_some_and(|least| interval.len() <= least)
            || filters.cpus.as_ref().is_some_and(|cpus| cpus.binary_search(&interval.cpu).is_err())
        {
            return;
        }
        let Some(mut key) = self.keys.key(threads, slot, interval) else { return };
        if matches!(interval.state, State::Waiting(_)) && self.keys.has(By::State) {
            key.state = "R";
        }
        let open = interval.open() || from > interval.from || interval.end == End::Step;
        self.sums.entry(key).or_default().add(ns, open, !interval.continued);
    }
}

/// Whether `-e` lets the call of an interval pass.
pub(super) fn selected(context: &Context<'_>, interval: &Interval) -> bool {
    let filters = context.question.scope.filters();
    if !filters.selects {
        return true;
    }
    let Doing::Call(call) = interval.doing else { return false };
    context.question.scope.call(&call.call)
}
