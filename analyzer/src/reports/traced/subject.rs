//! The thread that a path ends in, and the beginning of its time.

use systape_format::model::Extent;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::log::{Logged, RECORDER};
use systape_answers::derive::processes::{self, Image, Processes};
use systape_answers::derive::runs::State;
use systape_answers::derive::runs::keys::task_text;

/// The thread that the path ends in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// The thread.
    pub id: Id,
    /// Why this one, where it was not said; empty: it was.
    pub why: &'static str,
    /// When its time begins: of a command when it was executed, because before it is `record` that prepares it; 0: with its first event.
    pub from: u64,
    /// Whether it is the one that was asked for or recorded, not one that was taken for it.
    pub sure: bool,
}

impl Subject {
    /// `sh[17] (the command that was recorded)`, by the name that it had longest in `span`.
    pub(crate) fn words(&self, threads: &[Logged], span: (u64, u64)) -> String {
        let task = threads.get(self.id as usize).and_then(|thread| thread.mostly(span));
        let name = task.map_or_else(|| "?".to_owned(), |task| task_text(task));
        if self.why.is_empty() { name } else { format!("{name} ({})", self.why) }
    }
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
        return found.map(|(id, _)| Subject { id, why: "", from: 0, sure: true });
    }
    if let [pid] = config.filters.pids[..] {
        let of_it = || there().filter(|(_, thread)| newest(thread).0 == pid);
        let main = of_it().filter(|(_, thread)| newest(thread).1 == pid).max_by_key(|(_, thread)| end(thread));
        let main = main.map(|(id, _)| Subject {
            id,
            why: "the main thread of the process; -t for another one",
            from: 0,
            sure: true,
        });
        return main.or_else(|| {
            let last = of_it().max_by_key(|(_, thread)| last_ran(thread));
            last.map(|(id, _)| Subject {
                id,
                why: "the thread of the process that ran last; -t for another one",
                from: 0,
                sure: false,
            })
        });
    }
    const RECORDED: &str = "the command that was recorded; -t or -p for another one";
    let session = tape.session();
    let target = &session.target;
    if let Some(command) = target.strip_prefix("system-wide during ").or_else(|| target.strip_prefix("command ")) {
        let executed = executed(&processes::read::read(tape, &mut Vec::new()), command);
        let main = |pid| there().filter(move |(_, thread)| newest(thread) == (pid, pid));
        let found = executed.and_then(|(pid, since)| {
            let thread = main(pid).find(|(_, thread)| end(thread) > since);
            thread.map(|(id, _)| Subject { id, why: RECORDED, from: since, sure: true })
        });
        if found.is_some() {
            return found;
        }
        // what it executed is not on the tape: of the whole machine it is known by its name
        let all = session.extent != Extent::Some;
        let first = there().filter(|(_, thread)| newest(thread).0 == newest(thread).1);
        let first = first.filter(|(_, thread)| !all || ran_for_record(thread, command));
        if let Some((id, thread)) = first.min_by_key(|(_, thread)| (begin(thread), newest(thread).1)) {
            return Some(Subject { id, why: RECORDED, from: begin(thread), sure: false });
        }
    }
    let busiest = there().max_by_key(|(id, thread)| (ran(thread), std::cmp::Reverse(*id)));
    busiest.map(|(id, _)| Subject {
        id,
        why: "the thread that was longest on a CPU; -t or -p for another one",
        from: 0,
        sure: false,
    })
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

/// The process that was recorded as `command`, its arguments with spaces in between, and when it executed that. A script's arguments stand behind
/// those of its interpreter.
fn executed(processes: &Processes, command: &str) -> Option<(u32, u64)> {
    let is = |image: &&Image| {
        let words: Vec<_> = image.command.argv.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let line = words.join(" ");
        match image.command.whole {
            true => line == command || line.strip_suffix(command).is_some_and(|before| before.ends_with(' ')),
            false => !line.is_empty() && command.starts_with(&line),
        }
    };
    let found = processes.all.iter().filter_map(|process| {
        let image = process.images.iter().filter(|image| image.exec).find(is)?;
        Some((process.task.pid, image.since))
    });
    found.min_by_key(|(_, since)| *since)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use systape_answers::derive::processes::{Command, Process};

    #[test]
    fn a_command_is_found_by_its_arguments() {
        let process = |pid, argv: &[u8], since| {
            let mut process = Process::default();
            (process.task.pid, process.task.tid) = (pid, pid);
            process.images.push(Image {
                since,
                exec: true,
                command: Arc::new(Command { argv: argv.to_vec(), whole: true }),
                ..Image::default()
            });
            process
        };
        let mut all = Processes::new(0);
        all.all =
            vec![process(7, b"sh\0other", 5), process(8, b"/bin/sh\0./run.sh\0on", 9), process(9, b"./run.sh\0on", 20)];
        assert_eq!(executed(&all, "./run.sh on"), Some((8, 9)), "behind its interpreter, and the first");
        assert_eq!((executed(&all, "run.sh on"), executed(&all, "sh other")), (None, Some((7, 5))));
    }
}
