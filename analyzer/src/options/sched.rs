//! What the scheduler reports are asked beside the filters.

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::report::Report;
use crate::runs::by::By;
use crate::timespec::{self, Edge};

/// Words that may follow `sched`.
const VIEWS: [&str; 2] = ["timehist", "latency"];

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

/// How many words the name of `report` takes.
pub fn words(report: Report, args: &Args) -> usize {
    1 + usize::from(view(report, args).is_some())
}

fn view(report: Report, args: &Args) -> Option<&'static str> {
    let word = args.words.get(1).filter(|_| report == Report::Sched)?;
    VIEWS.into_iter().find(|view| word.as_os_str() == *view)
}

impl Options {
    /// Settles what was typed for `report`.
    pub fn resolve(args: &Args, report: Report) -> Result<Self> {
        if args.at.is_some() && report != Report::States {
            bail!("--at belongs to 'analyze states'");
        }
        if args.wakers.is_some() && report != Report::Offcpu {
            bail!("--wakers belongs to 'analyze offcpu'");
        }
        let latency = view(report, args) == Some("latency");
        let Some((name, keys)) = keys(report, latency) else { return Ok(Self::default()) };
        if args.failure || (args.duration.is_some() && report != Report::Offcpu) {
            bail!("--duration and --failure are about calls: 'analyze {name}' cannot be narrowed by them");
        }
        if !args.events.is_empty() && !matches!(report, Report::Offcpu | Report::States) {
            bail!("-e selects calls: 'analyze {name}' is not about calls");
        }
        let key = |word: &String| -> Result<By> {
            let known = keys.iter().find(|by| by.name() == word.as_str() || by.alias() == Some(word.as_str()));
            match known {
                Some(by) => Ok(*by),
                None => {
                    let names: Vec<_> = keys.iter().map(|by| by.name()).collect();
                    if names.is_empty() {
                        bail!("--by is not for 'analyze {name}'");
                    }
                    bail!("--by {word}: 'analyze {name}' has {}", names.join(", "))
                }
            }
        };
        let mut by = Vec::new();
        for word in &args.by {
            let key = key(word)?;
            if !by.contains(&key) {
                by.push(key);
            }
        }
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

/// A report's name, and what it can add up by.
fn keys(report: Report, latency: bool) -> Option<(&'static str, &'static [By])> {
    use By::{Cgroup, Comm, Cpu, File, Process, State, Syscall, Task, User};
    Some(match report {
        Report::Sched if latency => ("sched latency", &[Comm, Process, Task]),
        Report::Sched => ("sched timehist", &[]),
        Report::Runqlat => ("runqlat", &[Task, Process, Cgroup, Cpu, Comm]),
        Report::Offcpu | Report::States => {
            let name = if report == Report::Offcpu { "offcpu" } else { "states" };
            (name, &[Comm, Task, Process, State, Syscall, File, Cgroup, User])
        }
        _ => return None,
    })
}
