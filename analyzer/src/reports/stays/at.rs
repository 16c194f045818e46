//! `states --at TIME` of a tape of looks: threads at one instant, those first that had been so for longest.

use anyhow::Result;
use systape_answers::derive::looks::instant::{self, ThreadAt};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

use super::super::{Context, losses};
use super::full;

systape_format::tables! {
    /// One row a thread that looks around the instant of `--at` found in something, those first that had been so for longest; those that wait for work are the last.
    pub THREADS_AT = "states_at_looks" {
        ts_ns: Time key "the instant"
        pid: Int "process; null: not known"
        tid: Int key "thread"
        upid: Int "the process, unique in the tape"
        utid: Int key "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        state: Word "D, S, RQ (it waits for a CPU), or RUN"
        is: Word "`certain`: looks before and behind it found the same stay, or it says since when it was so; `before`: the look before it, or a sample of the CPU; `behind`: the look behind it, and since when is not known"
        cpu: Int "of a sample; null: it waits"
        lasted_ns ? AtLeast: Duration "how long it is known to have been so then; null: it runs"
        syscall: Word "the call, `[user]` or `[kernel]` of one that runs; null: in none"
        file: Str [Path] "what the call is on: a file, a path, or `[lock ADDRESS of PID]`; null: nothing, or not known"
        rest: Flag "the thread waits for work"
        owner_tid: Int "thread that holds the lock, as its own pid namespace has it; null: not known"
    }
}

/// Prints the threads at the time `at`, those that wait for work last.
pub(in crate::reports) fn run(mut context: Context<'_>, at: u64, limit: usize, out: &mut Out) -> Result<Verdict> {
    let session = context.question.tape.session();
    let (found, covered, coverage) = instant::threads(&context.question, at);
    coverage.tell(&mut context.question.loss);
    context.config.shown.rows(found.len());
    losses::head(&context, losses::AT_LEAST, out)?;
    out.text([format!("by looks around it: {}", covered.line())])?;
    out.notes(full::notes(&context))?;
    let ts = at.wrapping_sub(session.window_open) as i64;
    let headings = Table::default().number("ms").word("is").word("state").number("pid").number("tid").word("command");
    let headings = headings.word("call").word("on").word("held by");
    out.ranking(
        TopRows {
            table: &THREADS_AT,
            judged: context.judged(),
            headings: headings.leaving(&["held by", "pid", "is"]),
            all: found.len(),
            limit,
        },
        found.iter(),
        |thread| row(thread, ts),
        cells,
    )?;
    out.text(covered.counted(!context.question.scope.by_task()))?;
    losses::end_of_sums(&context, out)
}

fn row(thread: &ThreadAt, ts: i64) -> Row<'_> {
    let task = thread.task.as_ref();
    let some = |number: u32| (number != 0).then_some(number);
    let mut row = Row::new(&THREADS_AT);
    row.set("ts_ns", ts).set("pid", task.map(|task| task.pid)).set("tid", task.map(|task| task.tid));
    row.set("upid", task.and_then(|task| some(task.upid))).set("utid", task.and_then(|task| some(task.utid)));
    row.set("comm", task.map(|task| task.comm.clone())).set("state", thread.state);
    row.set("is", thread.certainty.word()).set("cpu", thread.cpu);
    row.bound("lasted_ns", thread.lasted, true);
    row.set("syscall", thread.call.as_ref().map(|name| escaped(name))).set("file", thread.on.clone());
    row.set("rest", thread.rests).set("owner_tid", thread.owner);
    row
}

fn cells(thread: &ThreadAt) -> Vec<String> {
    let task = thread.task.as_ref();
    let number = |number: Option<u32>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let text = |name: Option<&Vec<u8>>| name.map_or_else(|| "-".to_owned(), |name| escaped(name));
    vec![
        thread.lasted.map_or_else(|| "-".to_owned(), |ns| millis(ns, ">=")),
        thread.certainty.word().to_owned(),
        format!("[{}]{}", thread.state, if thread.rests { " (rest)" } else { "" }),
        number(task.map(|task| task.pid)),
        number(task.map(|task| task.tid)),
        task.map_or_else(|| "?".to_owned(), |task| escaped(&task.comm)),
        text(thread.call.as_ref()),
        text(thread.on.as_ref()),
        thread.owner.map_or_else(|| "-".to_owned(), |owner| owner.to_string()),
    ]
}
