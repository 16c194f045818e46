//! `offcpu --wakers PID`: the wakers of a process's threads, and how long these had slept.

use std::sync::Arc;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::Task;

use super::super::{Context, losses, scheduling};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{set_thread, task_text};
use systape_answers::derive::runs::{End, Interval, IntervalSink, Slot, State, Thread, feed};
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::values::order::InOrder as _;
use systape_events::values::words::VIA_SOFTIRQ;

systape_format::tables! {
    /// One row for each pair of threads of which one woke the other.
    pub WAKERS = "offcpu_wakers" {
        waker_pid: Int "process of the thread that woke the other; null with its other columns: an interrupt did"
        waker_tid: Int key "that thread"
        waker_upid: Int "its process, unique in the tape"
        waker_utid: Int key "it, unique in the tape"
        waker_comm: Str [Comm] "its name"
        interrupt: Flag key "an interrupt woke it, not a thread"
        net_softirq: Flag key "the packet that the waker had just sent on this machine woke it"
        pid: Int "process of the thread that was woken"
        tid: Int key "that thread"
        upid: Int "its process, unique in the tape"
        utid: Int key "it, unique in the tape"
        comm: Str [Comm] "its name"
        count ? AtLeast: Count "wake-ups"
        slept_ns ? AtLeast: Duration "how long it had slept before them, in all"
        max_ns ? AtLeast: Duration "the longest of these sleeps"
    }
}

/// Prints the report.
pub(crate) fn run(mut context: Context<'_>, pid: u32, limit: usize, out: &mut Out) -> Result<Verdict> {
    let sink = Wakers { context: &context, pid, seen: false, sums: FxHashMap::default() };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let Wakers { sums, seen, .. } = fed.tracker.sink;
    let mut sums: Vec<((u32, bool, u32), Sum)> = sums.into_iter().collect();
    sums.order_by_key(|(ids, sum)| (std::cmp::Reverse((sum.slept, sum.count)), *ids));
    context.config.shown.rows(sums.len());
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    scheduling::head(&context, out)?;
    if sums.is_empty() && out.is_text() {
        let what = if seen { "was never woken" } else { "is not in this part of the tape" };
        out.text([format!("process {pid} {what}")])?;
        return losses::end_of_sums(&context, out);
    }
    let headings = ["slept ms", "count", "avg ms", "max ms"].into_iter().fold(Table::default(), Table::number);
    out.ranking(
        TopRows {
            table: &WAKERS,
            judged: context.judged(),
            headings: headings.word("waker").word("wakee").leaving(&["avg ms", "max ms"]),
            all: sums.len(),
            limit,
        },
        sums.iter().map(|(_, sum)| sum),
        Sum::row,
        Sum::cells,
    )?;
    losses::end_of_sums(&context, out)
}

/// Wake-ups of one thread by one other.
#[derive(Debug)]
struct Sum {
    waker: Option<Arc<Task>>,
    /// By network softirqs, at the end of the waker's sends.
    softirq: bool,
    wakee: Arc<Task>,
    count: u64,
    /// Time the wakee had slept, ns.
    slept: u64,
    max: u64,
    /// It slept before the recording too.
    open: bool,
}

impl Sum {
    fn cells(&self) -> Vec<String> {
        let lead = mark::at_least(self.open);
        let via = if self.softirq { VIA_SOFTIRQ } else { "" };
        let waker = self.waker.as_ref().map_or_else(|| "interrupt".into(), |task| task_text(task) + via);
        vec![
            millis(self.slept, lead),
            self.count.to_string(),
            millis(self.slept / self.count.max(1), lead),
            millis(self.max, lead),
            waker,
            task_text(&self.wakee),
        ]
    }

    fn row(&self) -> Row<'_> {
        let mut row = Row::new(&WAKERS);
        let waker = self.waker.as_deref();
        row.set("waker_pid", waker.map(|t| t.pid)).set("waker_tid", waker.map(|t| t.tid));
        row.set("waker_upid", waker.map(|t| t.upid)).set("waker_utid", waker.map(|t| t.utid));
        row.set("waker_comm", waker.map(|t| &t.comm));
        row.set("interrupt", waker.is_none()).set("net_softirq", self.softirq);
        set_thread(&mut row, &self.wakee);
        row.set("count", self.count).bound("slept_ns", self.slept, self.open).bound("max_ns", self.max, self.open);
        row
    }
}

struct Wakers<'a> {
    context: &'a Context<'a>,
    pid: u32,
    /// The process exists on the tape.
    seen: bool,
    /// Sums by waker, whether by a softirq, and wakee.
    sums: FxHashMap<(u32, bool, u32), Sum>,
}

impl IntervalSink for Wakers<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        thread.task.pid == self.pid
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let wakee = &threads[slot].task;
        if wakee.pid != self.pid || interval.to < self.context.question.scope.from {
            return;
        }
        self.seen = true;
        let (End::Woken(waker), State::Sleeping(_)) = (interval.end, interval.state) else { return };
        if !self.context.question.scope.task(wakee) {
            return;
        }
        let softirq = waker.is_some_and(|waker| waker.softirq);
        let waker = waker.map(|waker| &threads[waker.slot].task);
        let key = (waker.map_or(0, |task| task.utid), softirq, wakee.utid);
        let sum = self.sums.entry(key).or_insert_with(|| Sum {
            waker: waker.cloned(),
            softirq,
            wakee: Arc::clone(wakee),
            count: 0,
            slept: 0,
            max: 0,
            open: false,
        });
        // names may have changed since
        (sum.waker, sum.wakee) = (waker.cloned(), Arc::clone(wakee));
        sum.count += 1;
        sum.slept += interval.len();
        sum.max = sum.max.max(interval.len());
        sum.open |= interval.began_before;
    }
}
