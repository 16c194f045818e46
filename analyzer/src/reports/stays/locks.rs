//! `locks` of a tape of looks: which locks threads were found waiting for, and who held them.

use anyhow::Result;
use systape_answers::derive::looks::locks::{SeenLock, SeenLocks};
use systape_answers::derive::looks::walk::Covered;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

use super::super::{Context, losses};
use super::sums::{head, set_threads, set_times, threads};

systape_format::tables! {
    /// One row for each contended lock of a process that looks found a thread waiting for, the one with most time first.
    pub SEEN_LOCKS = "locks_looks" {
        pid: Int key "process; null: not known"
        upid: Int key "the process, unique in the tape; null: likewise"
        comm: Str [Comm] "name of the thread that was found first"
        address: Hex key "address of the lock in the process"
        threads ? OfKnown: Real "threads that waited at once, on average"
        threads_low ? OfKnown: Real "lower bound: in 95 of 100 cases the truth lies between both"
        threads_high ? OfKnown: Real "upper bound, likewise"
        time_ns ? OfKnown: Duration "time of all threads together"
        time_low_ns ? OfKnown: Duration "its lower bound"
        time_high_ns ? OfKnown: Duration "its upper bound"
        waiters ? AtLeast: Count "threads that were found waiting"
        looks ? AtLeast: Count "looks that found one, a thread each"
        stays ? AtLeast: Count "waits that these fell into"
        longest_ns ? AtLeast: Duration "the longest that one of these is known to have been"
        owner_tid: Int "thread that held it in most looks, as its own pid namespace has it; null: not noted (glibc notes it, others do not)"
        owner_comm: Str [Comm] "its name; null: not known"
        owner_share ? OfKnown: Real "part of the looks that found it so, 0 to 1; null: nobody"
    }
}

/// Prints the locks.
pub(in crate::reports) fn run(context: &mut Context<'_>, limit: usize, out: &mut Out) -> Result<Verdict> {
    let (locks, covered, coverage) = SeenLocks::read(&context.question);
    coverage.tell(&mut context.question.loss);
    let ranked = locks.ranked();
    context.config.shown.rows(ranked.len());
    head(context, &covered, out)?;
    let headings = ["threads", "from", "to", "time ms", "waiters", "looks", "waits", "longest ms"];
    let headings = headings.into_iter().fold(Table::default(), Table::number);
    let shown = Shown { locks: &locks, covered: &covered };
    out.ranking(
        TopRows {
            table: &SEEN_LOCKS,
            judged: context.judged(),
            headings: headings.word("address").word("process").word("held by").leaving(&[
                "looks",
                "waits",
                "waiters",
                "time ms",
                "longest ms",
            ]),
            all: ranked.len(),
            limit,
        },
        ranked.iter(),
        |lock| shown.row(lock),
        |lock| shown.cells(lock),
    )?;
    losses::end_of_sums(context, out)
}

/// The printed form.
struct Shown<'a> {
    locks: &'a SeenLocks,
    covered: &'a Covered,
}

impl Shown<'_> {
    fn row<'r>(&self, lock: &'r SeenLock) -> Row<'r> {
        let (task, estimate) = (lock.task.as_ref(), lock.presence.estimate());
        let mut row = Row::new(&SEEN_LOCKS);
        row.set("pid", task.map(|task| task.pid));
        row.set("upid", task.and_then(|task| (task.upid != 0).then_some(task.upid)));
        row.set("comm", task.map(|task| task.comm.clone())).set("address", lock.address);
        set_threads(&mut row, estimate, self.covered);
        set_times(&mut row, estimate);
        row.set("waiters", lock.waiters.len());
        row.set("looks", lock.presence.looks).set("stays", lock.presence.stays);
        row.set("longest_ns", lock.presence.longest);
        let holder = lock.holder();
        row.set("owner_tid", holder.map(|(tid, _)| tid));
        row.set("owner_comm", holder.and_then(|(tid, _)| self.locks.name(lock, tid)).map(<[u8]>::to_vec));
        row.set("owner_share", holder.map(|(_, share)| share));
        row
    }

    fn cells(&self, lock: &SeenLock) -> Vec<String> {
        let estimate = lock.presence.estimate();
        let [threads, low, high] = threads(estimate, self.covered);
        let holder = lock.holder().map(|(tid, share)| {
            let name = self.locks.name(lock, tid).map_or_else(String::new, escaped);
            format!("{name}[{tid}] in {:.0}% of the looks", 100.0 * share)
        });
        vec![
            threads,
            low,
            high,
            millis(estimate.time as u64, ""),
            lock.waiters.len().to_string(),
            lock.presence.looks.to_string(),
            lock.presence.stays.to_string(),
            millis(lock.presence.longest, ""),
            format!("{:#x}", lock.address),
            lock.task.as_ref().map_or_else(|| "?".to_owned(), |task| format!("{}[{}]", escaped(&task.comm), task.pid)),
            holder.unwrap_or_else(|| "-".to_owned()),
        ]
    }
}
