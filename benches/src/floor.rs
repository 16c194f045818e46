//! The floors: a command under two programs on sys_enter and sys_exit that do nothing, or only read the clock.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};
use libbpf_rs::ObjectBuilder;

/// What the programs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FloorWork {
    /// Nothing.
    Empty,
    /// Read the clock and keep the time: what tells durations does that at least.
    Clock,
}

impl FloorWork {
    /// Its word on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Clock => "clock",
        }
    }

    fn object(self) -> &'static [u8] {
        match self {
            Self::Empty => include_bytes!(concat!(env!("OUT_DIR"), "/floor.bpf.o")),
            Self::Clock => include_bytes!(concat!(env!("OUT_DIR"), "/clock.bpf.o")),
        }
    }
}

/// Runs the command while the programs are attached, and ends as it ended.
pub(crate) fn hold(floor: FloorWork, command: &[OsString]) -> Result<()> {
    let [name, args @ ..] = command else { bail!("floor: no command") };
    let object = ObjectBuilder::default().open_memory(floor.object()).context("the programs of a floor")?;
    let object = object.load().context("the kernel refused the programs of a floor")?;
    let links = object.progs_mut().map(|p| p.attach()).collect::<Result<Vec<_>, _>>().context("cannot attach")?;
    if links.len() != 2 {
        bail!("there are {} programs, not 2", links.len());
    }
    let status = Command::new(name).args(args).status().with_context(|| format!("cannot run {}", name.display()))?;
    drop(links);
    if status.success() { Ok(()) } else { bail!("the command failed: {status}") }
}
