//! `analyze opensnoop`: the opens of `analyze files --opens` in opensnoop's columns.

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::timed;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{CALLS, CPUS, PATHS, Rows, Run, TASKS, View};
use crate::lines::tables::LOSSES;
use crate::render::stamp::{Column, Stamps};
use crate::reports::Context;
use crate::reports::files::FILE_CALLS;
use crate::reports::files::lines::{Layout, List, Listed, answer};
use crate::table::families;
use crate::values::output;
use crate::values::say::Verdict;
use crate::values::words::escaped;

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
    let list = List { opens: true, slower: None, sockets: false, stamps, layout: LAYOUT };
    answer(&mut context, &list, &mut out)
}

fn columns(time: &str, [pid, comm, fd, errno, path]: [&str; 5]) -> Vec<u8> {
    let cells = format!("{pid:<6} {comm:<16} {fd:>4} {errno:>3} {path}\n");
    timed(time, &cells).into_bytes()
}

fn head(stamps: &Stamps) -> Vec<u8> {
    columns(&stamps.heading(TIME), ["PID", "COMM", "FD", "ERR", "PATH"])
}

fn line(call: Listed, cwd: Option<&[u8]>, stamps: &Stamps) -> Vec<u8> {
    // what did not return has neither
    let (fd, errno) = match (call.fd, call.errno) {
        (Some(fd), _) => (fd.to_string(), "0".to_owned()),
        (None, Some(errno)) => ("-1".to_owned(), errno.to_string()),
        (None, None) => ("?".to_owned(), "?".to_owned()),
    };
    let [file, _] = call.files;
    let path = match (call.given, file.and_then(|place| place.path(cwd))) {
        (Some(given), _) => format!("{}{}", escaped(&given), if call.cut { "..." } else { "" }),
        // a handle was given
        (None, Some(file)) => escaped(&file),
        (None, None) => "?".to_owned(),
    };
    let (pid, comm) = (call.task.pid.to_string(), escaped(&call.task.comm));
    columns(&stamps.text(TIME, call.start), [&pid, &comm, &fd, &errno, &path])
}
