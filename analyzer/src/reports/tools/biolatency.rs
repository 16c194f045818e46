//! `analyze biolatency`: the histograms of `analyze block --hist` as biolatency prints them, one of all disks or one a disk.

use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::reports::block::table::{HISTOGRAM, SUMS};
use crate::reports::block::{Shown, answer_sums};
use systape_answers::derive::block::sums::HistogramOf;
use systape_answers::render::by::BY;
use systape_events::group::by::GroupKey;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "biolatency",
    about: "Histograms of how long block I/Os took, as bcc's biolatency prints them",
    options: &[TASKS, &["time", "duration", "failure"]],
    own: Own::of::<Options>(),
    examples: [("analyze biolatency -D", "one a disk"), ("analyze biolatency -Q", "with the time in the queue")],
    tables: &[Rows::of("biolatency", &[Keys(&BY), All(&SUMS), All(&HISTOGRAM)])],
    run: AnswerFn::Prints(|config, tape, out| {
        let Options { disks, queued } = config.own()?;
        let keys = if disks { vec![GroupKey::Disk] } else { Vec::new() };
        let measure = if queued { HistogramOf::Whole } else { HistogramOf::Latency };
        answer_sums(config, tape, keys, measure, Shown::Histograms(|view, out| view.as_biolatency(out)), out)
    }),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// A histogram for each disk
    #[arg(short = 'D', long)]
    disks: bool,

    /// From the way into the queue on, not only the time that the device took
    #[arg(short = 'Q', long)]
    queued: bool,
}
