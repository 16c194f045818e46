//! The scheduler as perf sched shows it: timehist and latency.

pub(super) mod latency;
pub(super) mod timehist;

use anyhow::Result;
use systape_format::reader::Tape;

use super::scheduling;
use crate::config::Config;
use crate::say::Verdict;

/// Prints what `config` asks for.
pub fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let context = scheduling::context(config, tape, false)?;
    if config.sched.latency { latency::run(context) } else { timehist::run(context) }
}

/// `ns` as seconds with six decimals, as perf prints times.
fn seconds(ns: i64) -> String {
    let us = ns.unsigned_abs() / 1000;
    format!("{}{}.{:06}", if ns < 0 { "-" } else { "" }, us / 1_000_000, us % 1_000_000)
}
