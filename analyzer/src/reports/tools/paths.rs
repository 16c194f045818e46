//! The tools that list calls on paths in the same columns: opensnoop and statsnoop.

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::config::view::{CALLS, CPUS, PATHS, TASKS, View};
use crate::reports::Context;
use crate::reports::files::lines::{self, Layout, List, ListedAction, ListedCall};
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::out::Out;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::values::words::escaped;

/// What both take.
pub(super) const TOOL: View =
    View { options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events", "clock", "absolute"]], ..View::PLAIN };

const TIME: Column = Column { name: "TIME", width: 15, places: 9, right: false };

/// The whole answer of a tool whose first column is `WIDTH` wide.
pub(super) fn answer<const WIDTH: usize>(
    config: &Config,
    tape: &Tape,
    doing: ListedAction,
    out: &mut Out,
) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let mut context = Context::about(config, tape, &[Family::Syscall, Family::Process])?;
    // it has times only when asked for
    let stamps = Stamps::new(config.base().as_slice(), tape);
    let layout = Layout { head: head::<WIDTH>, line: line::<WIDTH> };
    lines::answer(&mut context, &List { doing, slower: None, sockets: false, stamps, layout }, out)
}

/// The columns behind the time.
const fn fields<const WIDTH: usize>() -> [TextColumn; 5] {
    [
        TextColumn::left("PID", WIDTH).leaves(1),
        TextColumn::left("COMM", 16).shortens(),
        TextColumn::right("FD", 4).leaves(2),
        TextColumn::right("ERR", 3),
        TextColumn::left("PATH", 0).shortens(),
    ]
}

fn head<const WIDTH: usize>(stamps: &Stamps) -> Vec<u8> {
    format!("{}\n", TextColumns::timed(stamps.heading(TIME), fields::<WIDTH>()).head()).into_bytes()
}

fn line<const WIDTH: usize>(call: &ListedCall, cwd: Option<&[u8]>, stamps: &Stamps) -> Vec<u8> {
    // what did not return has neither
    let (fd, errno) = match (call.ret, call.errno) {
        (Some(ret), _) => (ret.to_string(), "0".to_owned()),
        (None, Some(errno)) => ("-1".to_owned(), errno.to_string()),
        (None, None) => ("?".to_owned(), "?".to_owned()),
    };
    let [file, _] = &call.files;
    // an empty path is about the descriptor, unless it was refused
    let given = call.given.as_ref().filter(|given| !given.is_empty() || call.errno.is_some());
    let path = match (given, file.as_ref().and_then(|place| place.path(cwd))) {
        (Some(given), _) => format!("{}{}", escaped(given), if call.cut { "..." } else { "" }),
        // a handle was given
        (None, Some(file)) => escaped(&file),
        (None, None) => "?".to_owned(),
    };
    let (pid, comm) = (call.task.pid.to_string(), escaped(&call.task.comm));
    let fields = TextColumns::timed(stamps.text(TIME, call.start), fields::<WIDTH>());
    format!("{}\n", fields.line(&[&pid, &comm, &fd, &errno, &path])).into_bytes()
}
