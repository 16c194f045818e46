//! How long runnable threads waited for a CPU, or how long they kept it: the histograms of bcc's runqlat and cpudist, in all or one per task,
//! process, cgroup, CPU, name.

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::{Context, losses, scheduling};
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, CPUS, Part, Rows, TASKS, View};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{Key, Keys, Words};
use systape_answers::derive::runs::{End, Interval, IntervalSink, Slot, State, Thread, Why, feed};
use systape_answers::render::keys::with_keys;
use systape_answers::render::loghist::LogHist;
use systape_answers::render::out::Out;
use systape_answers::render::row::Row;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;
use systape_events::values::order::InOrder as _;

systape_format::tables! {
    /// One row a power of two of µs, for each value of the keys of `--by`, which stand before these columns.
    pub RUNQLAT = "runqlat" {
        low_ns: Duration key "the shortest time that is counted here"
        high_ns: Duration key "the longest one"
        count ? AtLeast: Count "waits for a CPU that ended, in `cpudist` times on one that ended; those of unknown length are in none"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "runqlat",
    about: "Histograms of how long runnable threads waited for a CPU",
    options: &[TASKS, CPUS, &["time", "by"]],
    examples: [("analyze runqlat", "one histogram"), ("analyze runqlat --by cpu", "one a CPU")],
    tables: &[Rows::of("runqlat", &[Part::Keys(&systape_answers::render::by::BY), Part::All(&RUNQLAT)])],
    check: |config| scheduling::key(config, KEYS).map(drop),
    run: AnswerFn::Prints(|config, tape, out| run(config, tape, Kind::Waits, out)),
    ..View::PLAIN
};

/// View of the times on a CPU.
pub(crate) static CPUDIST: View = View {
    name: "cpudist",
    about: "Histograms of how long threads stayed on a CPU, as bcc's cpudist",
    examples: [("analyze cpudist -p 2214", "one of a process"), ("analyze cpudist --by comm", "one a program")],
    tables: &[Rows::of("cpudist", &[Part::Keys(&systape_answers::render::by::BY), Part::All(&RUNQLAT)])],
    run: AnswerFn::Prints(|config, tape, out| run(config, tape, Kind::Runs, out)),
    ..VIEW
};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Waits,
    Runs,
}

impl Kind {
    /// The CPU, and whether all of the time is known; None: it is none of these, or has not ended.
    fn ends(self, interval: &Interval) -> Option<(u32, bool)> {
        match (self, interval.end) {
            // it had a CPU as soon as its quota let it, or on another one, where it is not known for how long it waited
            (Self::Waits, End::In(_)) if interval.state == State::Throttled => None,
            (Self::Waits, End::In(cpu)) => {
                let known = matches!(interval.state, State::Waiting(why) if why != Why::Made);
                Some((cpu, known && !interval.began_before))
            }
            (Self::Runs, End::Out(_) | End::Died) => match interval.state {
                // it left as a dead one: the event of its end is lost, and it was on the CPU for longer than until then
                State::Running if matches!(interval.end, End::Out(b'X' | b'Z')) => Some((interval.cpu, false)),
                State::Running => Some((interval.cpu, !interval.began_before)),
                // it ended, and may have begun at any time
                State::Unknown => Some((interval.cpu, false)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Several of them.
    fn words(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Runs => "times on a CPU",
        }
    }
}

/// Key of one histogram.
const KEYS: &[GroupKey] = &[
    GroupKey::Tid,
    GroupKey::Pid,
    GroupKey::Cgroup,
    GroupKey::Container,
    GroupKey::Unit,
    GroupKey::Pod,
    GroupKey::Job,
    GroupKey::Env,
    GroupKey::Cpu,
    GroupKey::Comm,
];

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, kind: Kind, out: &mut Out) -> Result<Verdict> {
    let by = Vec::from_iter(scheduling::key(config, KEYS)?);
    let mut context = scheduling::context(config, tape, false, out)?;
    let sink = RunQueueTimes {
        kind,
        keys: Keys::new(&by, &context.question.scope, tape.session(), false),
        context: &context,
        hists: FxHashMap::default(),
        begun: FxHashMap::default(),
        unknown: 0,
    };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let RunQueueTimes { keys, hists, unknown, .. } = fed.tracker.sink;
    let mut hists: Vec<(Key, LogHist)> = hists.into_iter().collect();
    // the busiest first; CPUs by number
    hists.order_by_key(|(key, hist)| (key.cpu, std::cmp::Reverse(hist.total()), *key));
    config.shown.rows(hists.len());
    let words = Words { session: tape.session(), book: &context.question.book, names: &fed.names };
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
    scheduling::head(&context, out)?;
    if out.is_text() {
        for (title, hist) in printed {
            if !title.is_empty() {
                line(out, &format!("\n{title}"))?;
            }
            hist.print(out, "usecs")?;
        }
        if hists.is_empty() {
            let did = if kind == Kind::Waits { "waited for" } else { "left" };
            line(out, &format!("no thread that passes the filters {did} a CPU"))?;
        }
        if unknown > 0 {
            line(out, &format!("\n{unknown} {} are not counted: when they began is not known", kind.words()))?;
        }
    } else {
        out.rows(&declared, context.judged(), rows)?;
    }
    scheduling::foot(&context, out)?;
    losses::end_of_sums(&context, out)
}

struct RunQueueTimes<'a> {
    kind: Kind,
    context: &'a Context<'a>,
    keys: Keys<'a>,
    hists: FxHashMap<Key, LogHist>,
    /// Threads whose state goes on: since when, and whether it had begun before.
    begun: FxHashMap<Slot, (u64, bool)>,
    /// Those that ended, of unknown length.
    unknown: u64,
}

impl IntervalSink for RunQueueTimes<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        self.keys.parts(before, after)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        // what it was in the parts before a change of its name or cgroup belongs to it
        let first = self.begun.remove(&slot).filter(|_| interval.continued);
        let (from, began_before) = first.unwrap_or((interval.from, interval.began_before));
        if interval.end == End::Step {
            self.begun.insert(slot, (from, began_before));
            return;
        }
        let interval = &Interval { from, began_before, ..*interval };
        let (Some((cpu, known)), scope) = (self.kind.ends(interval), &self.context.question.scope) else { return };
        let cpus = scope.filters().cpus.as_ref();
        if interval.to < scope.from || cpus.is_some_and(|cpus| cpus.binary_search(&cpu).is_err()) {
            return;
        }
        let Some(mut key) = self.keys.key(threads, slot, interval) else { return };
        if !known {
            self.unknown += 1;
            return;
        }
        if self.keys.has(GroupKey::Cpu) {
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
