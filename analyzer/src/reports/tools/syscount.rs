//! `analyze syscount`: the calls of `analyze top` by name or by process, in syscount's columns.

use anyhow::Result;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, Rows, TASKS, View};
use crate::asked::options::idle::Idle;
use crate::reports::measured::SUMMARY;
use crate::reports::top::{self, SHARE, answer};
use systape_answers::derive::summary::column::Column as Metric;
use systape_answers::render::by::BY;
use systape_answers::render::columns::{Column, Layout, micros, plain};
use systape_answers::render::out::Out;
use systape_answers::render::rank::Few;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "syscount",
    about: "How many calls of which kind, or of which process, in the columns of bcc's syscount",
    options: &[TASKS, CALLS, CPUS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze syscount -L", "by the time that they took"),
        ("analyze syscount -P -x", "the processes whose calls failed most"),
    ],
    tables: &[Rows::of("syscount", &[Keys(&BY), All(&SUMMARY), All(&SHARE)])],
    check: top::check_calls,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Also their time, by which they are ranked then
    #[arg(short = 'L', long)]
    latency: bool,

    /// By process
    #[arg(long)]
    process: bool,

    #[command(flatten)]
    rank: Few,
}

const SYSCALL: Column = Column::left("SYSCALL", 22, |line| line.word("syscall"));
const PID: Column = Column::left("PID", 6, |line| line.word("pid"));
const COMM: Column = Column::left("COMM", 15, |line| line.word("comm"));
const COUNT: Column = Column::right("COUNT", 8, |line| line.counted("calls", plain));
const TIME: Column = Column::right("TIME (us)", 16, |line| line.counted("total_ns", micros));

static CALL: Layout = Layout { columns: &[SYSCALL, COUNT], ..Layout::PLAIN };
static CALL_TIME: Layout = Layout { columns: &[SYSCALL, COUNT, TIME], ..Layout::PLAIN };
static PROCESS: Layout = Layout { columns: &[PID, COMM, COUNT], ..Layout::PLAIN };
static PROCESS_TIME: Layout = Layout { columns: &[PID, COMM, COUNT, TIME], ..Layout::PLAIN };

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let Options { latency, process, rank } = config.own()?;
    let (by, layout) = match (process, latency) {
        (false, false) => (GroupKey::Syscall, &CALL),
        (false, true) => (GroupKey::Syscall, &CALL_TIME),
        (true, false) => (GroupKey::Pid, &PROCESS),
        (true, true) => (GroupKey::Pid, &PROCESS_TIME),
    };
    let metric = if latency { Metric::Total } else { Metric::Calls };
    answer(
        config,
        tape,
        &top::Options { metric, hist: false, value: None, rank, idle: Idle::listed() },
        &[by],
        Some(layout),
        out,
    )
}
