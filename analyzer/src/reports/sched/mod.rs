//! The scheduler as perf sched shows it: timehist and latency.

pub(super) mod latency;
pub(super) mod timehist;

use anyhow::Result;
use systape_format::reader::Tape;

use super::scheduling;
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, CPUS, Own, Rows, TASKS, View};
use systape_answers::lines::tables as lines;
use systape_answers::render::by;
use systape_answers::render::out::Out;
use systape_answers::render::rank::Rank;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;

/// Each run of a thread.
pub(crate) static TIMEHIST: View = View {
    name: "sched timehist",
    about: "Each run of a thread: how long it waited before, how long it ran (perf sched timehist)",
    options: &[TASKS, CPUS, &["time", "max_events", "clock", "absolute"]],
    examples: [
        ("analyze sched timehist -p 2214", "the runs of one process"),
        ("analyze sched timehist -C 0 --max-events 100", "the first hundred on CPU 0"),
    ],
    tables: &[
        Rows::of("sched timehist", &[All(&timehist::TIMEHIST)]),
        Rows::json("sched timehist", &[All(&lines::LOSSES)]),
    ],
    run: AnswerFn::Prints(timehist),
    ..View::PLAIN
};

/// Waits for a CPU.
pub(crate) static LATENCY: View = View {
    name: "sched latency",
    about: "Who waited for a CPU how long (perf sched latency)",
    options: &[TASKS, CPUS, &["time", "max_events", "clock", "absolute", "by"]],
    examples: [
        ("analyze sched latency", "by name of the thread, longest wait first"),
        ("analyze sched latency --by process", "by process"),
    ],
    own: Own::of::<Rank>(),
    tables: &[Rows::of("sched latency", &[Keys(&by::BY), All(&latency::LATENCY)])],
    check: |config| scheduling::key(config, KEYS).map(drop),
    run: AnswerFn::Prints(latency),
    ..View::PLAIN
};

/// The keys of latency: one of these.
const KEYS: &[GroupKey] = &[GroupKey::Comm, GroupKey::Pid, GroupKey::Tid];

fn timehist(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    timehist::run(scheduling::context(config, tape, false, out)?, out)
}

fn latency(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let by = scheduling::key(config, KEYS)?;
    latency::run(scheduling::context(config, tape, false, out)?, by.unwrap_or(GroupKey::Comm), out)
}
