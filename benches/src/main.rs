//! `bench`: what recording costs and how fast a tape is read, beside the floor and perf trace. Run by `make bench`.
//!
//! Every way of running a workload is run once per round, one after the other, so that drift of the machine meets all
//! of them; printed are medians with the lowest and highest of the rounds. The workload times itself (this program is
//! its parent inside the tracer, see [`timed`]), so loading of BPF programs is not in its time.

mod floor;
mod offline;
mod stacks;
mod stats;
mod switches;
mod timed;
mod tools;
mod workload;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::tools::Tools;

/// Rounds when BENCH_ROUNDS does not say.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    // a closed pipe (| head) ends it, as it ends any other program
    // SAFETY: no handler is installed, only the default restored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let args: Vec<_> = std::env::args_os().collect();
    let done = match args.get(1).and_then(|a| a.to_str()) {
        Some(timed::COMMAND) => return timed::child(&args[2..]),
        Some("floor") => floor::hold(&args[2..]),
        None => bench(false),
        Some("stacks") => bench(true),
        Some(_) => {
            eprintln!(
                "usage: bench            (BENCH_ROUNDS={ROUNDS} rounds)\n       bench stacks     only what stacks cost\n       bench floor -- COMMAND   runs COMMAND under the two empty programs"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(only_stacks: bool) -> Result<()> {
    // SAFETY: geteuid takes nothing and touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        bail!("recording needs root: run `make bench` as root or with sudo");
    }
    let rounds = match std::env::var("BENCH_ROUNDS") {
        Ok(text) => text.parse().ok().filter(|n| *n > 0).unwrap_or(ROUNDS),
        Err(_) => ROUNDS,
    };
    let tools = Tools::find()?;
    println!("{}", tools.machine(rounds));
    let dir = tempfile::tempdir()?;
    // the workload's files in memory, where there is such a place: a disk's mood is not what is measured
    let files = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    if !only_stacks {
        for load in workload::all(files.path())? {
            let traces = workload::run(&tools, &load, dir.path(), rounds)?;
            offline::run(&tools, &traces, rounds)?;
        }
        switches::run(&tools, dir.path(), rounds)?;
    }
    stacks::run(&tools, dir.path(), files.path(), rounds)?;
    Ok(())
}
