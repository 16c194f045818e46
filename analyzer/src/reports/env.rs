//! `analyze env`: variables of the environment with which programs were started, of those that `record --env` kept.

use anyhow::{Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use systape_answers::derive::environments::{StartedProgram, StartedPrograms, Variable};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{Row, some, user};
use systape_answers::render::table::{Table, seconds};
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::loss::ListedLoss;
use systape_events::scan::Scan;
use systape_events::values::glob;
use systape_events::values::order::InOrder as _;
use systape_events::values::words::{escaped, named};

systape_format::tables! {
    /// One row for each variable that a program was started with, of those that `record --env` kept, in order of time.
    pub ENV = "env" {
        ts_ns: Time key "when the program was started; null: before the tape"
        pid: Int key "process"
        upid: Int key "the process, unique in the tape; null: not known"
        comm: Str [Comm] "its name then"
        uid: Int "real user; null: not known"
        path: Str [Path] "path that was passed to exec; null: not known"
        name: Word key "name of the variable; null: it was taken out of the tape"
        value: Str [Command] "its value, which may be empty; null: whether it was set is not known"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "env",
    about: "Environment variables with which programs were started, of those that record --env kept",
    options: &[TASKS, &["time", "max_events"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze env -p 4711", "those of a process, of each program that it ran"),
        ("analyze env --var 'LD_*'", "of all programs, only these"),
    ],
    tables: &[Rows::of("env", &[All(&ENV)])],
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Only variables of these names; globs allowed
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    var: Vec<String>,
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Process, "events of process life")?;
    let session = tape.session();
    if session.env_keys.is_empty() && session.redacted.is_empty() && tape.session_is_whole() {
        bail!("this tape has no variables of environments: name those to keep with record --env NAME,...");
    }
    let own: Options = config.own()?;
    let mut context = Context::about(config, tape, &[Family::Process])?;
    let mut programs = StartedPrograms::default();
    if tape.checkpoints() > 0
        && let Ok(checkpoint) = tape.checkpoint(0)
    {
        programs.begin(&checkpoint.tasks);
    }
    let coverage = Scan::all(tape).walk(
        "events of process life",
        |segment, dict| segment.processes(dict),
        |_, dict, events| {
            programs.add(&dict.tasks, &events);
        },
    );
    coverage.tell(&mut context.question.loss);
    let scope = &context.question.scope;
    let passes = |program: &&StartedProgram| {
        let ts = program.since.unwrap_or(session.window_open);
        ts >= scope.from && ts < scope.to && scope.task(&program.task)
    };
    let mut asked: Vec<&StartedProgram> = programs.all.iter().filter(passes).collect();
    asked.order_by_key(|program| (program.since, program.task.pid));
    let unknown = asked.iter().filter(|program| !program.is_known()).count();
    let fits = |variable: &Variable<'_>| {
        let name = variable.name.unwrap_or_default();
        own.var.is_empty() || own.var.iter().any(|pattern| glob::matches(pattern.as_bytes(), name))
    };
    let rows: Vec<(&StartedProgram, Variable<'_>)> = asked
        .iter()
        .flat_map(|program| program.variables().filter(fits).map(move |variable| (*program, variable)))
        .collect();
    let note = (unknown > 0).then(|| {
        let s = if unknown == 1 { "" } else { "s" };
        format!("UNKNOWN: the environment of {unknown} other program{s} could not be read")
    });
    out.ranking(
        TopRows {
            table: &ENV,
            judged: context.judged(),
            headings: Table::default().number("time s").number("pid").word("comm").word("variable"),
            all: rows.len(),
            limit: config.most(),
        },
        rows.iter(),
        |(program, variable)| row(session.window_open, program, variable),
        |(program, variable)| cells(session.window_open, program, variable),
    )?;
    out.notes(note)?;
    losses::end(&context, out, false, ListedLoss::Nothing)
}

fn row<'r>(open: u64, program: &'r StartedProgram, variable: &Variable<'r>) -> Row<'r> {
    let task = &program.task;
    let mut row = Row::new(&ENV);
    row.set("ts_ns", program.since.map(|since| since.wrapping_sub(open) as i64));
    row.set("pid", task.pid).set("upid", some(task.upid)).set("comm", &task.comm).set("uid", user(task.uid));
    row.set("path", Some(&program.path).filter(|path| !path.is_empty()));
    row.set("name", variable.name.map(<[u8]>::to_vec)).set("value", variable.value.map(<[u8]>::to_vec));
    row
}

fn cells(open: u64, program: &StartedProgram, variable: &Variable<'_>) -> Vec<String> {
    let name = variable.name.map(|name| format!("{}=", escaped(name))).unwrap_or_default();
    vec![
        program.since.map_or_else(|| "before".to_owned(), |since| seconds(since, open)),
        program.task.pid.to_string(),
        named(&program.task.comm),
        format!("{name}{}", variable.value.map_or_else(|| "?".to_owned(), escaped)),
    ]
}
