//! How long runnable threads waited for a CPU: bcc's runqlat histogram, in all or one per task, process, cgroup, CPU, name.

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::{Context, losses, scheduling};
use crate::asked::config::Config;
use crate::asked::config::view::{CPUS, Part, Rows, Run, TASKS, View};
use crate::derive::runs::decode::Needs;
use crate::derive::runs::keys::{Key, Keys, Words};
use crate::derive::runs::{End, Interval, Sink, Slot, State, Thread, Why, feed};
use crate::render::form::Format;
use crate::render::keys::with_keys;
use crate::render::loghist::LogHist;
use crate::render::row::Row;
use crate::render::sink;
use crate::table::group::by::By;
use crate::table::loss::Listed;
use crate::values::output::{self, line};
use crate::values::say::Verdict;

systape_format::tables! {
    /// One row a power of two of µs, for each value of the keys of `--by`, which stand before these columns.
    pub RUNQLAT = "runqlat" {
        low_ns: Duration "the shortest wait that is counted here"
        high_ns: Duration "the longest one"
        count ? AtLeast: Count "waits for a CPU that ended; those of unknown length are in none"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "runqlat",
    about: "Histograms of how long runnable threads waited for a CPU",
    options: &[TASKS, CPUS, &["time", "by"]],
    examples: [("analyze runqlat", "one histogram"), ("analyze runqlat --by cpu", "one a CPU")],
    tables: &[Rows::of("runqlat", &[Part::Keys(&crate::render::by::BY), Part::All(&RUNQLAT)])],
    check: |config| scheduling::key(config, KEYS).map(drop),
    run: Run::Prints(run),
    ..View::PLAIN
};

/// Key of one histogram.
const KEYS: &[By] =
    &[By::Tid, By::Pid, By::Cgroup, By::Container, By::Unit, By::Pod, By::Job, By::Env, By::Cpu, By::Comm];

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let by = Vec::from_iter(scheduling::key(config, KEYS)?);
    let mut context = scheduling::context(config, tape, false)?;
    let sink = Waits {
        keys: Keys::new(&by, &context.question.scope, tape.session(), false),
        context: &context,
        hists: FxHashMap::default(),
        unknown: 0,
    };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let Waits { keys, hists, unknown, .. } = fed.tracker.sink;
    let mut hists: Vec<(Key, LogHist)> = hists.into_iter().collect();
    // the busiest first; CPUs by number
    hists.sort_by_key(|(key, hist)| (key.cpu, std::cmp::Reverse(hist.total()), *key));
    config.shown.rows(hists.len());
    let words = Words { session: tape.session(), book: &context.question.book, names: &fed.names };
    let mut out = output::stdout()?;
    let mut printed = Vec::new();
    let declared = with_keys(keys.columns(), &RUNQLAT);
    let mut rows = Vec::new();
    for (key, hist) in &hists {
        let title =
            keys.by().iter().zip(keys.texts(key, &words)).map(|(by, text)| format!("{} = {text}", by.heading()));
        printed.push((title.collect::<Vec<_>>().join(", "), hist));
        for bucket in hist.buckets() {
            let mut row = Row::new(&declared);
            keys.fill(&mut row, key, &words);
            fill(&mut row, bucket);
            rows.push(row);
        }
    }
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    match config.format.rows() {
        None => {
            scheduling::head(&context, &mut out)?;
            for (title, hist) in printed {
                if !title.is_empty() {
                    line(&mut out, &format!("\n{title}"))?;
                }
                hist.print(&mut out, "usecs")?;
            }
            if hists.is_empty() {
                line(&mut out, "no thread that passes the filters waited for a CPU")?;
            }
            if unknown > 0 {
                line(&mut out, &format!("\n{unknown} waits are not counted: when they began is not known"))?;
            }
            scheduling::foot(&context, &mut out)?;
        }
        Some(form) => {
            sink::print(form, &declared, context.judged(), rows, &mut out)?;
        }
    }
    losses::end(&context, &mut out, config.format == Format::Text, Listed::Nothing)
}

struct Waits<'a> {
    context: &'a Context<'a>,
    keys: Keys<'a>,
    hists: FxHashMap<Key, LogHist>,
    /// Waits that ended, of unknown length.
    unknown: u64,
}

impl Sink for Waits<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        self.keys.parts(before, after)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let (End::In(cpu), scope) = (interval.end, &self.context.question.scope) else { return };
        let cpus = scope.filters().cpus.as_ref();
        if interval.to < scope.from || cpus.is_some_and(|cpus| cpus.binary_search(&cpu).is_err()) {
            return;
        }
        let Some(mut key) = self.keys.key(threads, slot, interval) else { return };
        let known = matches!(interval.state, State::Waiting(why) if why != Why::Made) && !interval.began_before;
        if !known {
            self.unknown += 1;
            return;
        }
        if self.keys.has(By::Cpu) {
            key.cpu = cpu;
        }
        self.hists.entry(key).or_default().add(interval.len() / 1000);
    }
}

fn fill(row: &mut Row<'_>, (low, high, count): (u64, u64, u64)) {
    row.set("low_ns", low * 1000).set("high_ns", high * 1000 + 999).set("count", count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_in_ns() {
        let mut hist = LogHist::default();
        for us in [0, 1, 1, 1, 3, 9, 9] {
            hist.add(us);
        }
        let mut row = Row::new(&RUNQLAT);
        fill(&mut row, hist.buckets()[3]);
        assert_eq!(
            row.cells().map(|(_, cell, _)| cell.clone()).collect::<Vec<_>>(),
            [8000.into(), 15_999.into(), 2.into()]
        );
    }
}
