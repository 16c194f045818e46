//! `sched latency`: how long tasks ran and how long they waited for a CPU, in perf's columns.

use std::io::Write;

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Task;

use super::super::{Context, losses, scheduling};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{Key, Keys, Words};
use systape_answers::derive::runs::{End, Interval, IntervalSink, Slot, State, Thread, Why, feed};
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::keys::with_keys;
use systape_answers::render::out::Out;
use systape_answers::render::rank::{Rank, more};
use systape_answers::render::row as record;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::values::output::{self, line};
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;
use systape_events::values::order::InOrder as _;

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns.
    pub LATENCY = "sched_latency" {
        threads ? AtLeast: Count "threads that ran or came on a CPU"
        run_ns ? AtLeast: Duration "time on a CPU"
        switches ? AtLeast: Count "how often they came on a CPU"
        delays ? AtLeast: Count "part of `switches` before which the whole wait for the CPU is known; the columns below are of these"
        avg_delay_ns ? OfKnown: Duration "mean wait; null: `delays` is 0"
        max_delay_ns ? AtLeast: Duration "longest wait; null: `delays` is 0"
        max_delay_start_ns ? OfKnown: Time "when the longest wait began; null: `delays` is 0"
        max_delay_end_ns ? OfKnown: Time "when it ended; null: `delays` is 0"
    }
}

/// When the longest wait began and ended.
const AT: Column = Column { name: "", width: 12, places: 6, right: true };

/// Prints the report.
pub(crate) fn run(mut context: Context<'_>, by: GroupKey, out: &mut Out) -> Result<Verdict> {
    let sink = Latency {
        keys: Keys::new(&[by], &context.question.scope, context.question.tape.session(), false),
        context: &context,
        rows: FxHashMap::default(),
    };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let Latency { keys, rows, .. } = fed.tracker.sink;
    let mut rows: Vec<(Key, Row)> = rows.into_iter().filter(|(_, row)| row.switches > 0 || row.run > 0).collect();
    // perf's default order: avg, max, switch, runtime
    rows.order_by_key(|(key, row)| (std::cmp::Reverse((row.avg(), row.max, row.switches, row.run)), *key));
    let words = Words { session: context.question.tape.session(), book: &context.question.book, names: &fed.names };
    context.config.shown.rows(rows.len());
    let total = rows.iter().fold((0_u64, 0_u64), |sum, (_, row)| (sum.0 + row.run, sum.1 + row.switches));
    let open = context.question.tape.session().window_open;
    let limit = context.config.limit(context.config.own::<Rank>()?);
    let stamps = context.stamps();
    let declared = with_keys(keys.columns(), &LATENCY);
    // the keys hold the filters
    let of = (context.question.tape, &context.question.scope, &context.question.families[..]);
    scheduling::touch(fed.coverage, fed.unsure_until, of, &mut context.question.loss);
    scheduling::head(&context, out)?;
    let printed = rows.iter().take(limit);
    if out.is_text() {
        let lines: Vec<String> = printed.map(|(key, row)| text(&keys, key, row, &words, &stamps)).collect();
        table(out, &lines, more(rows.len(), limit), total)?;
    } else {
        let line = |(key, row): &(Key, Row)| {
            let mut line = record::Row::new(&declared);
            keys.fill(&mut line, key, &words);
            fill(&mut line, row, open);
            line
        };
        out.rows(&declared, context.judged(), printed.map(line))?;
    }
    scheduling::foot(&context, out)?;
    losses::end_of_sums(&context, out)
}

/// Sums of a task, or of all with its name.
#[derive(Debug, Default)]
struct Row {
    /// Threads in it, by utid.
    threads: FxHashSet<u32>,
    /// A thread of it.
    tid: u32,
    /// Time on a CPU, ns.
    run: u64,
    /// Number of times it got a CPU.
    switches: u64,
    /// Those of them with a fully known wait before.
    delays: u64,
    /// Sum of these waits.
    sum: u64,
    /// The longest.
    max: u64,
    /// Its start and end.
    max_at: (u64, u64),
}

impl Row {
    fn avg(&self) -> u64 {
        self.sum.checked_div(self.delays).unwrap_or(0)
    }
}

struct Latency<'a, 'k> {
    context: &'a Context<'a>,
    keys: Keys<'k>,
    rows: FxHashMap<Key, Row>,
}

impl IntervalSink for Latency<'_, '_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        self.keys.parts(before, after)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let scope = &self.context.question.scope;
        if interval.to < scope.from {
            return;
        }
        let cpu = match interval.end {
            End::In(cpu) => cpu,
            _ => interval.cpu,
        };
        if scope.filters().cpus.as_ref().is_some_and(|cpus| cpus.binary_search(&cpu).is_err()) {
            return;
        }
        let Some(key) = self.keys.key(threads, slot, interval) else { return };
        let task = &threads[slot].task;
        let row = self.rows.entry(key).or_default();
        if interval.state == State::Running {
            row.run = row.run.saturating_add(interval.to - interval.from.max(scope.from));
            row.threads.insert(task.utid);
            row.tid = task.tid;
        }
        if !matches!(interval.end, End::In(_)) {
            return;
        }
        row.switches += 1;
        row.threads.insert(task.utid);
        row.tid = task.tid;
        if matches!(interval.state, State::Waiting(why) if why != Why::Made) && !interval.began_before {
            row.delays += 1;
            row.sum += interval.len();
            if interval.len() > row.max || row.max_at == (0, 0) {
                (row.max, row.max_at) = (interval.len(), (interval.from, interval.to));
            }
        }
    }
}

fn name(keys: &Keys<'_>, key: &Key, row: &Row, words: &Words<'_>) -> String {
    let comm = match keys.task(key) {
        Some(task) => words.escaped(&task.comm),
        None => words.escaped(keys.comm(key.comm)),
    };
    match row.threads.len() {
        0 | 1 => format!("{comm}:{}", row.tid),
        _ if keys.has(GroupKey::Pid) => format!("{comm}:{}", keys.task(key).map_or(row.tid, |task| task.pid)),
        many => format!("{comm}:({many})"),
    }
}

fn millis(ns: u64, width: usize) -> String {
    let mut text = Vec::new();
    systape_events::values::num::millis(&mut text, ns, width, "");
    String::from_utf8_lossy(&text).into_owned()
}

fn text(keys: &Keys<'_>, key: &Key, row: &Row, words: &Words<'_>, stamps: &Stamps) -> String {
    let at = |ts: u64| if row.delays == 0 { stamps.word(AT, "-") } else { stamps.text(AT, ts) } + stamps.unit();
    TextColumns::new(FIELDS, "|").line(&[
        format!("  {:<22}", name(keys, key, row, words)),
        format!("{} ms ", millis(row.run, 11)),
        format!("{:9} ", row.switches),
        format!(" avg:{} ms ", millis(row.avg(), 8)),
        format!(" max:{} ms ", millis(row.max, 8)),
        format!(" max start: {} ", at(row.max_at.0)),
        format!(" max end: {}", at(row.max_at.1)),
    ])
}

/// perf's columns.
const FIELDS: [TextColumn; 7] = [
    TextColumn::left("  Task                  ", 24).shortens(),
    TextColumn::left("   Runtime ms  ", 15).leaves(4),
    TextColumn::left(" Switches ", 10),
    TextColumn::left(" Avg delay ms    ", 17).leaves(3),
    TextColumn::left(" Max delay ms    ", 17),
    TextColumn::left(" Max delay start           ", 27).leaves(2),
    TextColumn::left(" Max delay end          |", 25).leaves(1),
];

fn fill(line: &mut record::Row<'_>, row: &Row, open: u64) {
    let at = |ts: u64| (row.delays > 0).then_some(ts.wrapping_sub(open) as i64);
    let known = |ns: u64| (row.delays > 0).then_some(ns);
    line.set("threads", row.threads.len()).set("run_ns", row.run).set("switches", row.switches);
    line.set("delays", row.delays).set("avg_delay_ns", known(row.avg())).set("max_delay_ns", known(row.max));
    line.set("max_delay_start_ns", at(row.max_at.0)).set("max_delay_end_ns", at(row.max_at.1));
}

fn table(out: &mut impl Write, lines: &[String], more: Option<String>, total: (u64, u64)) -> std::io::Result<()> {
    line(out, "")?;
    line(out, &output::rule(139))?;
    line(out, &TextColumns::new(FIELDS, "|").head())?;
    line(out, &output::rule(139))?;
    for text in lines {
        line(out, text)?;
    }
    more.iter().try_for_each(|text| line(out, &format!("  {text}")))?;
    line(out, &output::rule(113))?;
    let total =
        ["  TOTAL:                ".to_owned(), format!("{} ms ", millis(total.0, 11)), format!("{:9}", total.1)];
    line(out, &format!("{} |", TextColumns::new(FIELDS, "|").raw(&total)))?;
    line(out, &output::rule(51))?;
    line(out, "")
}
