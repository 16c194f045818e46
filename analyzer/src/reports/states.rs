//! What every thread was doing: time by state, call and file; or the picture of one instant.

mod at;
mod now;
mod stacks;

use std::io::Write;

use anyhow::Result;
use rustc_hash::FxHashMap;
use serde_json::json;
use systape_format::reader::Tape;

use super::offcpu::{selected, share};
use super::scheduling;
use crate::config::Config;
use crate::output;
use crate::render::form::Format;
use crate::render::table::{Fields, Table, millis};
use crate::reports::Context;
use crate::runs::by::By;
use crate::runs::decode::Needs;
use crate::runs::keys::{self, Key, Keys, Words};
use crate::runs::{Interval, Sink, Slot, Thread, feed};
use crate::say::Verdict;

/// What is added up by if nothing is said.
const DEFAULT: [By; 3] = [By::State, By::Syscall, By::File];

/// Prints what `config` asks for.
pub fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    if let Some(edge) = config.sched.at {
        return at::run(scheduling::context(config, tape, true)?, edge);
    }
    let by = if config.sched.by.is_empty() { DEFAULT.to_vec() } else { config.sched.by.clone() };
    let calls = by.iter().any(|by| matches!(by, By::Syscall | By::File)) || config.filters.selects;
    let mut context = scheduling::context(config, tape, calls)?;
    let needs = Needs { calls, files: by.contains(&By::File), ..Needs::default() };
    let sink = States {
        keys: Keys::new(&by, &context.question.scope, keys::all_calls(tape.session())),
        context: &context,
        sums: FxHashMap::default(),
    };
    let fed = feed::feed(&context.question, needs, context.question.scope.to, sink);
    let States { keys, sums, .. } = &fed.tracker.sink;
    let mut sums: Vec<(&Key, u64)> = sums.iter().map(|(key, ns)| (key, *ns)).collect();
    sums.sort_by_key(|(key, ns)| (std::cmp::Reverse(*ns), **key));
    let total = sums.iter().fold(0_u64, |total, (_, ns)| total.saturating_add(*ns));
    let from = context.question.scope.from.max(tape.session().window_open);
    let span = context.question.scope.to.min(feed::end(tape)).saturating_sub(from);
    let words = Words { session: tape.session(), book: &context.question.book, names: &fed.names };
    let limit = usize::try_from(config.max_events).unwrap_or(usize::MAX);
    let text = config.format == Format::Text;
    let mut table = Table::default().number("time ms").number("share").number("threads");
    table = by.iter().fold(table, |table, by| table.word(by.name()));
    let mut rows = Vec::new();
    for (key, ns) in sums.into_iter().take(limit) {
        let threads = ns as f64 / span.max(1) as f64;
        if text {
            let cells = [millis(ns, ""), share(ns, total), format!("{threads:.2}")];
            table.row(cells.into_iter().chain(keys.texts(key, &words)).collect());
        } else {
            let mut fields = keys.fields(key, &words);
            fields.extend([
                ("time_ns", ns.into()),
                ("share", json!(ns as f64 / total.max(1) as f64)),
                ("avg_threads", json!(threads)),
            ]);
            rows.push(fields);
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
        let whole = |mut fields: Fields| {
            fields.push(("complete", complete.into()));
            fields
        };
        scheduling::rows(config.format, &mut out, rows.into_iter().map(whole))?;
    }
    out.flush()?;
    Ok(scheduling::verdict(&context, text))
}

struct States<'a> {
    context: &'a Context<'a>,
    keys: Keys<'a>,
    sums: FxHashMap<Key, u64>,
}

impl Sink for States<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let scope = &self.context.question.scope;
        let from = interval.from.max(scope.from);
        let cpus = scope.filters().cpus.as_ref();
        if interval.to <= from
            || cpus.is_some_and(|cpus| cpus.binary_search(&interval.cpu).is_err())
            || !selected(self.context, interval)
        {
            return;
        }
        if let Some(key) = self.keys.key(threads, slot, interval) {
            let sum = self.sums.entry(key).or_default();
            *sum = sum.saturating_add(interval.to - from);
        }
    }
}
