//! One side of a signal, in words and in columns.

use serde_json::{Value, json};
use systape_format::model::{Ancestor, Gap, Session, Task, UID_UNKNOWN};

use systape_answers::derive::processes::read::lost_between;
use systape_answers::derive::processes::{Process, Processes};
use systape_answers::derive::signals::SignalLine;
use systape_answers::render::cell::Cell;
use systape_answers::render::json::{bytes, known};
use systape_answers::render::row::{Row, some, user};
use systape_events::values::words::{command, named};

/// Times in which process life is missing, so that a process may have had another program.
#[derive(Debug)]
pub(super) struct Unseen {
    /// Losses by gaps.
    pub gaps: Vec<Gap>,
    /// Some of it is unreadable.
    pub torn: bool,
}

impl Unseen {
    /// Whether an exec or a new name of `pid` from `from` to `to` may be missing.
    fn change(&self, pid: u32, from: u64, to: u64) -> bool {
        self.torn || lost_between(&self.gaps, pid, from, to)
    }
}

/// Sender or target of a record, with its facts of that time.
pub(super) struct Party<'a> {
    pub task: &'a Task,
    /// Arguments, NUL-separated; None = not known.
    argv: Option<(&'a [u8], bool)>,
    /// (pid, name, unique id if the tape has it), parent first.
    ancestors: Vec<(u32, Vec<u8>, Option<u32>)>,
}

impl<'a> Party<'a> {
    /// The sender; None = none, or not known.
    pub(super) fn sender(record: &'a SignalLine, processes: &'a Processes, unseen: &Unseen) -> Option<Self> {
        let event = &record.sent.event;
        let task = record.sender()?;
        // read at that very moment
        let own = (event.argv_status.has_bytes() && !event.argv.is_empty())
            .then_some((event.argv.as_slice(), event.argv_status.is_whole()));
        // where it was read and is not kept, it is that of the table
        let same = event.argv_status.has_bytes() && event.argv.is_empty();
        let table = same.then_some(()).or_else(|| certain(processes, task, event.ts, unseen));
        let argv = own.or_else(|| table.and_then(|()| command_at(processes, task, event.ts)));
        Some(Self::new((task, event.ts), argv, &record.sent.sender_above, (processes, unseen)))
    }

    /// The target.
    pub(super) fn target(record: &'a SignalLine, processes: &'a Processes, unseen: &Unseen) -> Self {
        let (task, ts) = (&record.sent.target, record.sent.event.ts);
        let argv = certain(processes, task, ts, unseen).and_then(|()| command_at(processes, task, ts));
        Self::new((task, ts), argv, &record.sent.target_above, (processes, unseen))
    }

    /// Of `task` at a moment; `above`: its parents then, if the signal has them.
    fn new(
        (task, ts): (&'a Task, u64),
        argv: Option<(&'a [u8], bool)>,
        above: &[Ancestor],
        (processes, unseen): (&'a Processes, &Unseen),
    ) -> Self {
        let mut ancestors: Vec<_> = above
            .iter()
            .map(|a| (a.pid, a.comm.clone(), processes.by_start(a.pid, a.start_ns).map(|p| p.task.upid)))
            .collect();
        if ancestors.is_empty() {
            let tracked = processes.get(task).into_iter().flat_map(|process| processes.above(process));
            // what it is called later is no name of that moment
            let facts = |p: &Process| {
                let name = p.name_at(ts).filter(|(since, _)| !unseen.change(p.task.pid, *since, ts));
                (p.task.pid, name.map_or_else(Vec::new, |(_, name)| name.to_vec()), Some(p.task.upid))
            };
            ancestors = tracked.map(facts).collect();
        }
        Self { task, argv, ancestors }
    }

    /// The command line as typed; None = not known.
    pub(super) fn command(&self) -> Option<String> {
        self.argv.map(|(argv, whole)| command(argv, whole))
    }

    /// `systemd(1) > sshd(800) > bash(4700)`; None = not known, or it has none.
    pub(super) fn chain(&self) -> Option<String> {
        let (top, ..) = self.ancestors.last()?;
        let mut names: Vec<String> =
            self.ancestors.iter().rev().map(|(pid, comm, _)| format!("{}({pid})", named(comm))).collect();
        if *top > 2 {
            // the kernel's two first processes have no parent
            names.insert(0, "...".to_owned());
        }
        Some(names.join(" > "))
    }

    /// Sets the columns of the object `group`.
    pub(super) fn fill(&self, row: &mut Row<'a>, group: &str, session: &'a Session) {
        let task = self.task;
        let text = |text: &'a Vec<u8>| Some(text).filter(|text| !text.is_empty());
        let words = |argv: &[u8]| Value::from(argv.split(|b| *b == 0).map(bytes).collect::<Vec<_>>());
        let ancestor =
            |(pid, comm, upid): &(u32, Vec<u8>, Option<u32>)| json!({"pid": pid, "comm": known(comm), "upid": upid});
        let ancestors: Vec<Value> = self.ancestors.iter().map(ancestor).collect();
        let cmdline = self.argv.zip(self.command()).map(|((argv, _), text)| Cell::Spelled(words(argv), text));
        let values: [(&str, Cell<'a>); 13] = [
            ("pid", task.pid.into()),
            ("tid", task.tid.into()),
            ("ns_pid", some(task.ns_pid).into()),
            ("ns_tid", some(task.ns_tid).into()),
            ("upid", some(task.upid).into()),
            ("utid", some(task.utid).into()),
            ("comm", text(&task.comm).into()),
            ("uid", user(task.uid).into()),
            ("exe", text(&task.exe).into()),
            ("cgroup", session.cgroup_path(task.cgroup_id).into()),
            ("cmdline", cmdline.unwrap_or_default()),
            ("cmdline_whole", self.argv.map(|(_, whole)| whole).into()),
            ("ancestors", Cell::Spelled(ancestors.into(), self.chain().unwrap_or_default())),
        ];
        for (name, value) in values {
            row.part(group, name, value);
        }
    }
}

/// The command line of `task` at `ts` in the table of processes.
fn command_at<'a>(processes: &'a Processes, task: &Task, ts: u64) -> Option<(&'a [u8], bool)> {
    processes.get(task)?.command_at(ts).map(|command| (command.argv.as_slice(), command.whole))
}

/// Whether the program of `task` at `ts` in the table of processes is the right one.
fn certain(processes: &Processes, task: &Task, ts: u64, unseen: &Unseen) -> Option<()> {
    let since = processes.get(task)?.image_at(ts)?.since;
    (!unseen.change(task.pid, since, ts)).then_some(())
}

/// `nginx (4711, uid 33)`; with the pid in its namespace: `nginx (4711, 7 inside, uid 33)`.
pub(super) fn short(task: &Task) -> String {
    let uid = if task.uid == UID_UNKNOWN { String::new() } else { format!(", uid {}", task.uid) };
    let inside = if inside(task) { format!(", {} inside", task.ns_pid) } else { String::new() };
    format!("{} ({}{inside}{uid})", named(&task.comm), task.pid)
}

/// Whether it has another pid in its own namespace.
pub(super) fn inside(task: &Task) -> bool {
    task.ns_pid != 0 && task.ns_pid != task.pid
}
