//! `analyze stays --longest`: stays one by one, the longest first.

use anyhow::Result;
use systape_answers::derive::looks::found::{FoundStay, FoundStays};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

use super::{Context, losses};

systape_format::tables! {
    /// One row a stay that looks found, the longest first.
    pub LONGEST = "stays --longest" {
        ts_ns: Time "the first look that found it, ns since the tape's start"
        pid: Int key "process"
        tid: Int key "thread"
        comm: Str [Comm] "its name"
        state: Word "D, S, or RQ: it waits for a CPU"
        syscall: Word "the call; null: in none"
        file: Str [Path] "what the call is on; null: nothing, or not known"
        path: Str [Path] "the path that the call was given"
        lock: Hex "address of the futex that it waits for; null: none"
        owner_tid: Int "thread that holds it, as its own pid namespace has it; null: not known"
        lasted_ns ? AtLeast: Duration "how long it is known to have been so: until the last look that found it"
        seen_ns ? AtLeast: Duration "the part of it between looks"
        looks ? AtLeast: Count "looks that found it"
    }
}

/// Prints the answer: `limit` rows; `folds`: without those of threads at rest.
pub(super) fn run(context: &mut Context<'_>, limit: usize, folds: bool, out: &mut Out) -> Result<Verdict> {
    let tape = context.question.tape;
    let (FoundStays { found, dropped }, _, coverage) = FoundStays::read(&context.question, folds);
    coverage.tell(&mut context.question.loss);
    context.config.shown.rows(found.len());
    losses::head(context, losses::AT_LEAST, out)?;
    if let Some(most) = dropped {
        out.notes(&[format!("only the longest {most} of the stays are here")])?;
    }
    let stamps = context.stamps();
    let window = tape.session().window_open;
    let headings = ["ms", "seen ms", "looks"].into_iter().fold(Table::default(), Table::number);
    let headings = headings.whole("since").word("thread").word("state").word("syscall").word("on").word("held by");
    let title = |stay: &FoundStay| {
        stay.task
            .as_ref()
            .map_or_else(|| "?".to_owned(), |task| format!("{}[{}/{}]", escaped(&task.comm), task.tid, task.pid))
    };
    out.ranking(
        TopRows {
            table: &LONGEST,
            judged: context.judged(),
            headings: headings.leaving(&["seen ms", "looks", "held by"]),
            all: found.len(),
            limit,
        },
        found.iter(),
        |stay| {
            let mut row = Row::new(&LONGEST);
            row.set("ts_ns", stay.from.wrapping_sub(window) as i64).set("pid", stay.task.as_ref().map(|task| task.pid));
            row.set("tid", stay.task.as_ref().map(|task| task.tid));
            row.set("comm", stay.task.as_ref().map(|task| task.comm.clone())).set("state", stay.state);
            row.set("syscall", stay.call.as_ref().map(|name| escaped(name)))
                .set("file", stay.file.clone())
                .set("path", stay.path.clone());
            row.set("lock", stay.lock).set("owner_tid", stay.owner).set("lasted_ns", stay.lasted);
            row.set("seen_ns", stay.last - stay.from).set("looks", stay.looks);
            row
        },
        |stay| {
            let lock = || stay.lock.map(|lock| format!("lock {lock:#x}"));
            let name = stay.file.as_ref().or(stay.path.as_ref()).map(|name| escaped(name)).or_else(lock);
            vec![
                millis(stay.lasted, ">="),
                millis(stay.last - stay.from, ""),
                stay.looks.to_string(),
                stamps.at(stay.from),
                title(stay),
                format!("{}{}", stay.state, if stay.rests { " (rest)" } else { "" }),
                stay.call.as_ref().map_or_else(|| "-".to_owned(), |name| escaped(name)),
                name.unwrap_or_else(|| "-".to_owned()),
                stay.owner.map_or_else(|| "-".to_owned(), |owner| owner.to_string()),
            ]
        },
    )?;
    losses::end_of_sums(context, out)
}
