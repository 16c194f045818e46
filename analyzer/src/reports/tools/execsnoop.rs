//! `analyze execsnoop`: the starts of programs of `analyze exec` in execsnoop's columns.

use anyhow::Result;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::reports::exec::listing::{EXEC, Layout, number, returned, words};
use crate::reports::exec::rows::Row;
use crate::reports::exec::{ExecInput, Form, answer};
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::out::Out;
use systape_answers::render::stamp::Column;
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "execsnoop",
    about: "Programs that were started, in the columns of bcc's execsnoop",
    options: &[TASKS, &["time", "max_events", "clock", "absolute", "failure"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze execsnoop -x", "those that could not be started too"),
        ("analyze execsnoop -n 'python*' --clock start", "those named python..., with times"),
    ],
    tables: &[Rows::of("execsnoop", &[All(&EXEC)])],
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Programs that could not be started too
    #[arg(long)]
    fails: bool,
}

const TIME: Column = Column { name: "TIME", width: 9, places: 3, right: false };

const LAYOUT: Layout = Layout { always_timed: false, head, line, counts: false };

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let Options { fails } = config.own()?;
    answer(config, tape, Form::List { layout: &LAYOUT, failures: fails || config.filters.failure, ends: None }, out)
}

/// The columns behind the time.
const FIELDS: [TextColumn; 5] = [
    TextColumn::left("PCOMM", 16).shortens(),
    TextColumn::left("PID", 7),
    TextColumn::left("PPID", 7).leaves(1),
    TextColumn::right("RET", 3).leaves(2),
    TextColumn::left("ARGS", 0).shortens(),
];

fn head(story: &ExecInput<'_>) -> String {
    TextColumns::timed(story.stamps.heading(TIME), FIELDS).head()
}

fn line(story: &ExecInput<'_>, row: &Row) -> String {
    let (comm, pid) = (escaped(&row.task.comm), row.task.pid.to_string());
    let args = words(row).unwrap_or_else(|| "?".to_owned());
    TextColumns::timed(story.stamps.text(TIME, row.ts), FIELDS).line(&[
        comm,
        pid,
        number(row.ppid),
        returned(row),
        args,
    ])
}
