//! What the scheduler reports are asked beside the filters.

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::group::by::By;
use crate::timespec::{self, Edge};

/// Settled values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// sched: latency, not timehist.
    pub latency: bool,
    /// What is added up by; empty: the report's default.
    pub by: Vec<By>,
    /// states: of this instant.
    pub at: Option<Edge>,
    /// offcpu: who woke this process.
    pub wakers: Option<u32>,
}

impl Options {
    /// Settles what was typed for the view called `name`.
    pub fn resolve(args: &Args, name: &str) -> Result<Self> {
        let latency = name == "sched latency";
        let Some(keys) = keys(name) else { return Ok(Self::default()) };
        let by = By::parse(&args.by, keys, &format!("'analyze {name}'"))?;
        let one = ["runqlat", "sched latency"].contains(&name);
        if one && by.len() > 1 {
            bail!("--by: 'analyze {name}' takes one key");
        }
        if (args.at.is_some() || args.wakers.is_some()) && !by.is_empty() {
            bail!("--at and --wakers have columns of their own: leave out --by");
        }
        let at = args.at.as_deref().map(timespec::edge).transpose().context("--at")?;
        Ok(Self { latency, by, at, wakers: args.wakers })
    }
}

/// What a report can add up by.
fn keys(name: &str) -> Option<&'static [By]> {
    use By::{Cgroup, Comm, Cpu, File, Pid, State, Syscall, Tid, Uid};
    match name {
        "sched timehist" | "sched latency" => Some(&[Comm, Pid, Tid]),
        "runqlat" => Some(&[Tid, Pid, Cgroup, Cpu, Comm]),
        "offcpu" | "states" => Some(&[Comm, Tid, Pid, State, Syscall, File, Cgroup, Uid]),
        _ => None,
    }
}
