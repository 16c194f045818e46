//! The thread that a path ends in, and the beginning of its time.

use systape_format::model::Extent;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::derive::critical::Id;
use crate::derive::critical::log::{Logged, RECORDER};
use crate::derive::runs::State;

/// The thread that the path ends in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// The thread.
    pub id: Id,
    /// Why this one, where it was not said; empty: it was.
    pub why: &'static str,
}

/// The thread that `config` asks for; None: it has no time on this part of the tape.
pub(crate) fn subject(config: &Config, tape: &Tape, threads: &[Logged]) -> Option<Subject> {
    let there = || (0..).zip(threads).filter(|(_, thread)| !thread.stretches.is_empty());
    let newest = |thread: &Logged| thread.tasks.last().map_or((0, 0), |task| (task.pid, task.tid));
    let end = |thread: &Logged| thread.stretches.last().map_or(0, |stretch| stretch.to);
    let begin = |thread: &Logged| thread.stretches.first().map_or(u64::MAX, |stretch| stretch.from);
    let ran = |thread: &Logged| {
        let on = thread.stretches.iter().filter(|stretch| stretch.state == State::Running);
        on.fold(0_u64, |sum, stretch| sum.saturating_add(stretch.to - stretch.from))
    };
    let last_ran = |thread: &Logged| {
        let on = thread.stretches.iter().rev().find(|stretch| stretch.state == State::Running);
        on.map_or(0, |stretch| stretch.to)
    };
    if let [tid] = config.filters.tids[..] {
        // of several with that number the last
        let found = there().filter(|(_, thread)| newest(thread).1 == tid).max_by_key(|(_, thread)| end(thread));
        return found.map(|(id, _)| Subject { id, why: "" });
    }
    if let [pid] = config.filters.pids[..] {
        let of_it = || there().filter(|(_, thread)| newest(thread).0 == pid);
        let main = of_it().filter(|(_, thread)| newest(thread).1 == pid).max_by_key(|(_, thread)| end(thread));
        let main = main.map(|(id, _)| Subject { id, why: "the main thread of the process; -t for another one" });
        return main.or_else(|| {
            let last = of_it().max_by_key(|(_, thread)| last_ran(thread));
            last.map(|(id, _)| Subject { id, why: "the thread of the process that ran last; -t for another one" })
        });
    }
    let session = tape.session();
    if let Some(command) = session.target.strip_prefix("system-wide during ") {
        let first = there().filter(|(_, thread)| ran_for_record(thread, command));
        if let Some((id, _)) = first.min_by_key(|(_, thread)| (begin(thread), newest(thread).1)) {
            return Some(Subject { id, why: "the command that was recorded; -t or -p for another one" });
        }
    }
    if session.extent == Extent::Some && session.target.starts_with("command ") {
        let first = there().filter(|(_, thread)| newest(thread).0 == newest(thread).1);
        let first = first.min_by_key(|(_, thread)| (begin(thread), newest(thread).1));
        return first.map(|(id, _)| Subject { id, why: "the command that was recorded; -t or -p for another one" });
    }
    let busiest = there().max_by_key(|(id, thread)| (ran(thread), std::cmp::Reverse(*id)));
    busiest.map(|(id, _)| Subject { id, why: "the thread that was longest on a CPU; -t or -p for another one" })
}

/// Whether the thread was made by `record` to become `command`: it had the name of the one first, and the program's
/// then. Of a recording of the whole machine nothing else tells.
fn ran_for_record(thread: &Logged, command: &str) -> bool {
    let program = command.split(' ').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().as_bytes();
    // as the kernel cuts it
    let name = &name[..name.len().min(15)];
    let mut names = thread.tasks.iter().filter(|task| task.tid == task.pid).map(|task| task.comm.as_slice());
    !name.is_empty() && names.next() == Some(RECORDER) && names.any(|comm| comm == name)
}

impl Subject {
    /// When its time begins: of a command that was recorded when it was executed, because before it is `record` that prepares it; else with
    /// its first event.
    pub(crate) fn from(&self, tape: &Tape, threads: &[Logged]) -> u64 {
        let thread = &threads[self.id as usize];
        let first = thread.stretches.first().map_or(0, |first| first.from);
        let target = &tape.session().target;
        let command = target.strip_prefix("system-wide during ").or_else(|| target.strip_prefix("command "));
        if !command.is_some_and(|command| ran_for_record(thread, command)) {
            return first;
        }
        let own = thread.stretches.iter().find(|stretch| thread.task(stretch).comm != RECORDER);
        own.map_or(first, |own| own.from)
    }
}
