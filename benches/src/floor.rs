//! The floor: a command under two empty programs on sys_enter and sys_exit.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};
use libbpf_rs::ObjectBuilder;

/// Runs the command while the programs are attached, and ends as it ended.
pub(crate) fn hold(command: &[OsString]) -> Result<()> {
    let [name, args @ ..] = command else { bail!("floor: no command") };
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/floor.bpf.o"));
    let object = ObjectBuilder::default().open_memory(bytes).context("floor.bpf.o")?;
    let object = object.load().context("the kernel refused the empty programs")?;
    let links = object.progs_mut().map(|p| p.attach()).collect::<Result<Vec<_>, _>>().context("cannot attach")?;
    if links.len() != 2 {
        bail!("floor.bpf.o has {} programs, not 2", links.len());
    }
    let status = Command::new(name).args(args).status().with_context(|| format!("cannot run {}", name.display()))?;
    drop(links);
    if status.success() { Ok(()) } else { bail!("the command failed: {status}") }
}
