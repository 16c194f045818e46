//! `bench`: what recording costs and how fast a tape is read, beside the floor and other tracers. Run by `make bench-peers`.
//!
//! One program in two roles. Outside it starts a tracer (`systems`) that starts a workload, looks at the tracer while it
//! runs (`process`) and at what it left (`outcome`), round after round (`rounds`), and makes tables of it (`peers`, `verdict`).
//! Inside the tracer it is started again as the workload's parent (`inner`) and measures the workload alone: neither the
//! start nor the end of a tracer is in the workload's time. Beside that, `bench tape` makes tapes up and `bench scale` reads them (`scale`);
//! `bench pair` compares two builds of `analyze` (`pair`); `bench why` measures the answers of `analyze why` (`why`).

mod args;
mod digest;
mod floor;
mod inner;
mod machine;
mod measure;
mod mount;
mod outcome;
mod page;
mod pair;
mod peers;
mod process;
mod reading;
mod rounds;
mod scale;
mod section;
mod stacks;
mod stats;
mod systems;
mod table;
mod tools;
mod verdict;
mod why;
mod workloads;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;

use crate::args::{Args, InnerRole, Plan};
use crate::section::Section;
use crate::tools::Tools;

fn main() -> ExitCode {
    // a closed pipe (| head) ends it, as it ends any other program
    // SAFETY: no handler is installed, only the default restored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let args = Args::parse();
    let done = match args.inside {
        Some(InnerRole::Inner(run)) => inner::run(&run),
        Some(InnerRole::Floor { floor, command }) => floor::hold(floor, &command),
        Some(InnerRole::Tape(plan)) => scale::make(&plan),
        Some(InnerRole::Scale(plan)) => scale::run(&plan),
        Some(InnerRole::Pair(plan)) => pair::run(&plan),
        Some(InnerRole::Why(plan)) => why::run(&plan),
        None => bench(&args.plan),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(plan: &Plan) -> Result<()> {
    // SAFETY: geteuid takes nothing and touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        bail!("recording needs root: run `make bench-peers` as root or with sudo");
    }
    process::catch_interrupts()?;
    mount::keep_to_ourselves();
    let tools = Tools::find()?;
    // traces go to disk, the workloads' files into memory where there is such a place: a disk's mood is not what is measured
    let files = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let show = |section: &Section| println!("{}", section.plain());
    let machine = machine::describe(&tools, plan);
    show(&machine);
    // what the page has beside the sums over all workloads
    let mut kept = Vec::new();
    let mut goals = Vec::new();
    let starts = peers::starts(&tools, plan, files.path())?;
    if plan.workloads().next().is_some() {
        kept.push(starts.section());
        show(&starts.section());
    }
    let mut measured = Vec::new();
    for workload in plan.workloads() {
        let (section, found) = peers::run(&tools, plan, &starts, workload, files.path())?;
        show(&section);
        let Some(found) = found else { continue };
        if workload.read {
            let (section, goal) = reading::run(&tools, workload, plan.rounds())?;
            goals.extend(goal);
            show(&section);
            kept.push(section);
        }
        rounds::remove_traces(&tools);
        measured.push(found);
    }
    if plan.large {
        let (section, goal) = reading::large(&tools, plan, files.path())?;
        goals.extend(goal);
        show(&section);
        kept.push(section);
        rounds::remove_traces(&tools);
    }
    if plan.stacks() {
        let sections = stacks::run(&tools, files.path(), plan)?;
        sections.iter().for_each(show);
        // the page has the first program's costs
        kept.extend(sections.into_iter().next().map(Section::up_to_a_table));
    }
    let started = starts.record().map(|(wall, cpu)| verdict::start(wall, cpu));
    goals.splice(0..0, started.into_iter().flatten().chain(verdict::all(&measured)));
    if !goals.is_empty() {
        show(&verdict::section(&goals));
        kept.push(digest::goals(&goals));
    }
    let Some(file) = &plan.markdown else { return Ok(()) };
    let page: Vec<_> = std::iter::once(machine).chain(digest::sections(&measured)).chain(kept).collect();
    page::fill(file, &page::PEERS, &page)
}
