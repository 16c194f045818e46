//! `analyze biosnoop`: the block I/Os of `analyze block` in biosnoop's columns.

use super::text_only;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::reports::block::answer_list;
use systape_answers::catalogue::block::BLOCK;
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::columns::{Column, Layout, Line, millis, plain};
use systape_answers::render::stamp;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "biosnoop",
    about: "Block I/Os in the columns of bcc's biosnoop",
    options: &[TASKS, &["time", "duration", "failure", "max_events", "clock", "absolute"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze biosnoop -Q", "how long each waited in the queue too"),
        ("analyze biosnoop --duration 10", "those that took the device longer than 10 ms"),
    ],
    tables: &[Rows::of("biosnoop", &[All(&BLOCK)]), Rows::json("biosnoop", &[All(&LOSSES)])],
    check: |config| text_only(config, config.own::<Options>()?.queued, "-Q"),
    run: AnswerFn::Prints(|config, tape, out| {
        let Options { queued } = config.own()?;
        answer_list(config, tape, Some(if queued { &QUEUED } else { &PLAIN }), out)
    }),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Also how long each waited before it went to the device
    #[arg(short = 'Q', long)]
    queued: bool,
}

const TIME: stamp::Column = stamp::Column { name: "TIME", width: 11, places: 6, right: false };

const LAYOUT: Layout = Layout { time: Some(("ts_ns", TIME)), always_timed: true, ..Layout::PLAIN };

static PLAIN: Layout = Layout { columns: &[COMM, PID, DISK, OP, SECTOR, BYTES, LATENCY], ..LAYOUT };
static QUEUED: Layout = Layout { columns: &[COMM, PID, DISK, OP, SECTOR, BYTES, QUEUE, LATENCY], ..LAYOUT };

const COMM: Column = Column::left("COMM", 14, |line| line.word("owner_comm")).shortens();
const PID: Column = Column::left("PID", 7, |line| line.word("owner_pid")).leaves(2);
const DISK: Column = Column::left("DISK", 9, |line| line.word("disk"));
const OP: Column = Column::left("T", 1, direction).leaves(3);
const SECTOR: Column = Column::left("SECTOR", 10, |line| line.counted("sector", plain)).leaves(1);
const BYTES: Column = Column::left("BYTES", 7, |line| line.word("bytes"));
const QUEUE: Column = Column::right("QUE(ms)", 7, |line| line.counted("queue_ns", millis));
const LATENCY: Column = Column::right("LAT(ms)", 7, |line| line.counted("dur_ns", millis));

/// R and W, as the tool has them, and F, D for what is neither.
fn direction(line: &Line<'_>) -> String {
    let op = line.text("op").unwrap_or_default();
    match op.as_str() {
        "read" | "drv_in" => "R",
        "flush" => "F",
        "discard" | "secure_erase" => "D",
        _ => "W",
    }
    .to_owned()
}
