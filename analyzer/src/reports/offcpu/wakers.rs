//! `offcpu --wakers PID`: who woke the threads of a process, and how long these had slept by then.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::Task;

use super::super::{Context, scheduling};
use crate::output::{self, line};
use crate::render::form::Format;
use crate::render::table::{Fields, Table, millis};
use crate::runs::decode::Needs;
use crate::runs::keys::{task_fields, task_text};
use crate::runs::{End, Interval, Sink, Slot, State, Thread, feed};
use crate::say::Verdict;
use crate::words::VIA_SOFTIRQ;

/// Prints the report.
pub fn run(mut context: Context<'_>, pid: u32) -> Result<Verdict> {
    let sink = Wakers { context: &context, pid, seen: false, sums: FxHashMap::default() };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let unsure = fed.tracker.unsure_until();
    let Wakers { sums, seen, .. } = fed.tracker.sink;
    let mut sums: Vec<((u32, bool, u32), Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(ids, sum)| (std::cmp::Reverse((sum.slept, sum.count)), *ids));
    sums.truncate(usize::try_from(context.config.max_events).unwrap_or(usize::MAX));
    let format = context.config.format;
    context.question.loss.findings.extend(fed.findings);
    scheduling::touched(&mut context, unsure);
    let mut out = output::stdout()?;
    if format == Format::Text {
        scheduling::head(&context, &mut out)?;
        let mut table = Table::default()
            .number("slept ms")
            .number("count")
            .number("avg ms")
            .number("max ms")
            .word("waker")
            .word("wakee");
        for (_, sum) in &sums {
            table.row(sum.cells());
        }
        if sums.is_empty() {
            let what = if seen { "was never woken" } else { "is not in this part of the tape" };
            line(&mut out, &format!("process {pid} {what}"))?;
        } else {
            table.print(&mut out)?;
        }
    } else {
        let complete = context.question.loss.complete();
        scheduling::rows(format, &mut out, sums.iter().map(|(_, sum)| sum.fields(complete)))?;
    }
    out.flush()?;
    Ok(scheduling::verdict(&context, format == Format::Text))
}

/// Wake-ups of one thread by one other.
#[derive(Debug)]
struct Sum {
    waker: Option<Arc<Task>>,
    /// Network softirqs did it, at the end of the waker's sends.
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
        let lead = if self.open { "≥" } else { "" };
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

    fn fields(&self, complete: bool) -> Fields {
        let mut fields: Fields = Vec::new();
        let names = ["waker_pid", "waker_tid", "waker_upid", "waker_utid", "waker_comm"];
        let waker = task_fields(self.waker.as_ref(), true);
        fields.extend(names.into_iter().zip(waker).map(|(name, (_, value))| (name, value)));
        fields.push(("interrupt", self.waker.is_none().into()));
        fields.push(("net_softirq", self.softirq.into()));
        fields.extend(task_fields(Some(&self.wakee), true));
        fields.extend([
            ("count", self.count.into()),
            ("slept_ns", self.slept.into()),
            ("max_ns", self.max.into()),
            ("at_least", self.open.into()),
            ("complete", complete.into()),
        ]);
        fields
    }
}

struct Wakers<'a> {
    context: &'a Context<'a>,
    pid: u32,
    /// The process is there at all.
    seen: bool,
    /// By waker, whether it did it through a softirq, and wakee.
    sums: FxHashMap<(u32, bool, u32), Sum>,
}

impl Sink for Wakers<'_> {
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
