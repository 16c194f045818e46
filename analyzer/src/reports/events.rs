//! Events of tables by task: what a summary tells of what `-e FAMILY:EVENT` asks for.

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::config::Config;
use crate::events::picked::Picked;
use crate::output::line;
use crate::render::mark;
use crate::render::row::Row;
use crate::render::sink;
use crate::render::table::Table;
use crate::scan::Scan;
use crate::words::escaped;

systape_format::tables! {
    /// With `-e FAMILY:EVENT` that names a table of the tape: one row for each table and task, the most events first. They stand behind the
    /// rows of calls, if calls are asked for too.
    pub EVENTS = "summary_events" {
        event: Word "its name: `exceptions:page_fault_user`"
        pid: Int "process of the task; null with the next five: the tape does not say whose events they are"
        tid: Int "the task"
        upid: Int "its process, unique in the tape"
        utid: Int "the task, unique in the tape"
        comm: Str [Comm] "its name"
        uid: Int "real user; null: not known"
        count ? AtLeast: Count "events"
    }
}

/// Events of one table and task.
#[derive(Debug)]
struct Sum {
    event: String,
    /// As it was known last; None = nobody known.
    task: Option<Task>,
    count: u64,
}

/// Counts the rows of the tables asked for by table and task; what cannot be read is added to the context's losses.
fn collect(context: &mut Context<'_>) -> Result<Vec<Sum>> {
    let config = context.config;
    let mut loss = std::mem::take(&mut context.question.loss);
    let question = &context.question;
    let mut sums: FxHashMap<(String, u64), Sum> = FxHashMap::default();
    let walked = Scan::candidates(question).walk(
        "tables",
        |segment, dict| segment.tables(dict),
        |_, dict, tables| {
            for table in tables.iter().filter(|table| config.events.has_table(&table.def.name)) {
                let picked = Picked::new(table, &question.scope, dict);
                // of each task of the segment; the first is nobody's
                let mut counts = vec![0_u64; dict.tasks.len() + 1];
                for row in picked.rows() {
                    counts[picked.task(row).map_or(0, |task| task + 1)] += 1;
                }
                for (at, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
                    let task = at.checked_sub(1).and_then(|at| dict.tasks.get(at));
                    // tasks that tapes have no number for are told apart by their tid
                    let who = task.map_or(0, |task| match task.utid {
                        0 => 1 << 32 | u64::from(task.tid),
                        utid => u64::from(utid),
                    });
                    let event = table.def.name.to_string();
                    let sum = sums.entry((event.clone(), who)).or_insert_with(|| Sum { event, task: None, count: 0 });
                    sum.task = task.cloned();
                    sum.count = sum.count.saturating_add(count);
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    );
    let walked = walked.map(|coverage| coverage.tell(&mut loss));
    context.question.loss = loss;
    walked?;
    let mut sums: Vec<Sum> = sums.into_values().collect();
    let who = |sum: &Sum| sum.task.as_ref().map(|task| (task.pid, task.tid, task.utid));
    sums.sort_by(|a, b| (b.count, &a.event, who(a)).cmp(&(a.count, &b.event, who(b))));
    Ok(sums)
}

/// Prints them; says whether some are missing.
pub fn run(config: &Config, tape: &Tape, out: &mut impl Write) -> Result<bool> {
    // what calls lack does not touch them
    let mut context = Context::about(config, tape, &config.events.families())?;
    let sums = collect(&mut context)?;
    let lost = !context.question.loss.complete();
    let Some(form) = config.format.rows() else {
        losses::head(&context, "Something is missing: every count is at least.", out)?;
        text(&sums, lost, out)?;
        return Ok(lost);
    };
    sink::print(form, &EVENTS, context.judged(), sums.iter().map(row), out)?;
    Ok(lost)
}

fn row(sum: &Sum) -> Row<'_> {
    let mut row = Row::new(&EVENTS);
    row.set("event", sum.event.clone()).task("", sum.task.as_ref()).set("count", sum.count);
    row
}

fn text(sums: &[Sum], lost: bool, out: &mut impl Write) -> Result<()> {
    let least = mark::at_least(lost);
    let mut table = Table::default().number("events").word("event").word("task");
    for sum in sums {
        let task =
            sum.task.as_ref().map_or_else(|| "?".to_owned(), |task| format!("{}/{}", escaped(&task.comm), task.tid));
        table.row(vec![format!("{least}{}", sum.count), sum.event.clone(), task]);
    }
    let total = sums.iter().fold(0_u64, |total, sum| total.saturating_add(sum.count));
    line(out, &format!("Events by task: {least}{total}"))?;
    if !sums.is_empty() {
        table.print(out)?;
    }
    Ok(())
}
