//! What the scheduler reports are asked beside the filters.

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::runs::by::By;
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
        let key = |word: &String| -> Result<By> {
            let known = keys.iter().find(|by| by.name() == word.as_str() || by.alias() == Some(word.as_str()));
            match known {
                Some(by) => Ok(*by),
                None => {
                    let names: Vec<_> = keys.iter().map(|by| by.name()).collect();
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
    use By::{Cgroup, Comm, Cpu, File, Process, State, Syscall, Task, User};
    match name {
        "sched timehist" | "sched latency" => Some(&[Comm, Process, Task]),
        "runqlat" => Some(&[Task, Process, Cgroup, Cpu, Comm]),
        "offcpu" | "states" => Some(&[Comm, Task, Process, State, Syscall, File, Cgroup, User]),
        _ => None,
    }
}
