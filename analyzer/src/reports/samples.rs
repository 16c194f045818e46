//! `analyze samples`: CPU samples one by one with their stacks, as `perf script` lists them.

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::calls::answer_in;
use super::listing::Lines;
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Fields};
use crate::asked::config::view::{AnswerFn, CPUS, Own, Rows, TASKS, View};
use crate::asked::options::stacks::{Below, Cut};
use systape_answers::catalogue::sample::SAMPLES;
use systape_answers::derive::stacks::lines::STACK;
use systape_answers::lines::tables::{EVENTS, LOSSES};
use systape_answers::render::columns::{Column, Layout, Line};
use systape_answers::render::out::Out;
use systape_answers::render::stamp;
use systape_answers::values::say::Verdict;
use systape_events::families;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "samples",
    about: "CPU samples one by one, each with its stack (perf script)",
    events: &["sample:cpu-clock"],
    options: &[TASKS, CPUS, &["time", "max_events", "clock", "absolute"]],
    own: Own::of::<Cut>(),
    examples: [
        ("analyze samples -t 4711 --time 12.3,12.4", "what a thread did in a tenth of a second"),
        ("analyze samples --max-stack 1", "the innermost function of each"),
    ],
    tables: &[
        Rows::of("samples", &[All(&EVENTS), Fields(&SAMPLES), All(&STACK)]),
        Rows::json("samples", &[All(&LOSSES)]),
    ],
    reads: |config| config.own::<Cut>()?.names.reads(),
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

const TIME: stamp::Column = stamp::Column { name: "time", width: 13, places: 6, right: true };

static LAYOUT: Layout = Layout {
    time: Some(("ts_ns", TIME)),
    always_timed: true,
    columns: &[
        Column::left("comm", 15, |line| line.word("comm")),
        Column::right("pid", 7, |line| line.word("pid")),
        Column::right("tid", 7, |line| line.word("tid")),
        Column::left("cpu", 5, cpu),
        Column::left("mode", 0, mode),
    ],
    ..Layout::PLAIN
};

/// As perf writes it.
fn cpu(line: &Line<'_>) -> String {
    line.number("cpu").map_or_else(|| "?".to_owned(), |cpu| format!("[{cpu:03}]"))
}

/// Whether it ran in the kernel.
fn mode(line: &Line<'_>) -> String {
    line.member("args", "mode").and_then(|mode| Some(mode.as_str()?.to_owned())).unwrap_or_else(|| "?".to_owned())
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Sample, "CPU samples")?;
    answer_in(config, tape, &Lines::Events(&LAYOUT), Below::always(config.own()?), out)
}
