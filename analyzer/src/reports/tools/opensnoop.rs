//! `analyze opensnoop`: the opens of `analyze files --opens` in opensnoop's columns.

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::{HEAD_OF_PATHS, cells_of_path, columns_of_paths};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{CALLS, CPUS, PATHS, Rows, Run, TASKS, View};
use crate::lines::tables::LOSSES;
use crate::render::stamp::{Column, Stamps};
use crate::reports::Context;
use crate::reports::files::FILE_CALLS;
use crate::reports::files::lines::{Doing, Layout, List, Listed, answer};
use crate::table::families;
use crate::values::output;
use crate::values::say::Verdict;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "opensnoop",
    about: "Opens of files in the columns of bcc's opensnoop, paths as the programs gave them",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events", "clock", "absolute"]],
    examples: [
        ("analyze opensnoop -x", "opens that failed"),
        ("analyze opensnoop -n nginx --clock start", "those of threads named nginx, with times"),
    ],
    tables: &[Rows::of("opensnoop", &[All(&FILE_CALLS)]), Rows::json("opensnoop", &[All(&LOSSES)])],
    run: Run::Prints(run),
    ..View::PLAIN
};

const TIME: Column = Column { name: "TIME", width: 15, places: 9, right: false };

const LAYOUT: Layout = Layout { head, line };

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let mut context = Context::about(config, tape, &[Family::Syscall, Family::Process])?;
    let mut out = output::stdout()?;
    // it has times only when asked for
    let stamps = Stamps::new(config.base().as_slice(), tape);
    let list = List { doing: Doing::Open, slower: None, sockets: false, stamps, layout: LAYOUT };
    answer(&mut context, &list, &mut out)
}

fn columns(time: &str, cells: [&str; 5]) -> Vec<u8> {
    columns_of_paths(time, 6, cells)
}

fn head(stamps: &Stamps) -> Vec<u8> {
    columns(&stamps.heading(TIME), HEAD_OF_PATHS)
}

fn line(call: Listed, cwd: Option<&[u8]>, stamps: &Stamps) -> Vec<u8> {
    let time = stamps.text(TIME, call.start);
    let fd = call.fd;
    let [pid, comm, fd, errno, path] = cells_of_path(call, fd, cwd);
    columns(&time, [&pid, &comm, &fd, &errno, &path])
}
