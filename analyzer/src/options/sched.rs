//! What the scheduler reports are asked beside the filters.

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::group::by::By;
use crate::report::Report;
use crate::timespec::{self, Edge};
use crate::views::View;

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
    /// Settles what was typed for `view`.
    pub fn resolve(args: &Args, view: &View) -> Result<Self> {
        let (report, name) = (view.report, view.name);
        let latency = name == "sched latency";
        let Some(keys) = keys(report) else { return Ok(Self::default()) };
        let by = By::parse(&args.by, keys, &format!("'analyze {name}'"))?;
        let one = report == Report::Runqlat || report == Report::Sched;
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
fn keys(report: Report) -> Option<&'static [By]> {
    use By::{Cgroup, Comm, Cpu, File, Pid, State, Syscall, Tid, Uid};
    match report {
        Report::Sched => Some(&[Comm, Pid, Tid]),
        Report::Runqlat => Some(&[Tid, Pid, Cgroup, Cpu, Comm]),
        Report::Offcpu | Report::States => Some(&[Comm, Tid, Pid, State, Syscall, File, Cgroup, Uid]),
        _ => None,
    }
}
