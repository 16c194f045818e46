//! The tree of processes: parents, programs, lifetimes, ends.

use std::io;

use serde_json::{Value, json};

use super::ExecInput;
use systape_answers::derive::processes::{Image, Process};
use systape_answers::render::cell::Cell;
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::json::{bytes, known};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row, some, user};
use systape_answers::render::stamp::Column;
use systape_events::values::order::InOrder as _;
use systape_events::values::words::{command, escaped, named, span};

systape_format::tables! {
    /// With `--tree` one row a process, parents before their children.
    pub TREE = "exec_tree" {
        ts_ns: Time "when it started, negative: before the recording; null: not known"
        time: Word "the same as RFC 3339, UTC; null also: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        depth: Int "how far below the first it stands"
        pid: Int key "process"
        ns_pid: Int "the same in its own pid namespace; null: not known"
        ppid: Int "its parent; null: not known"
        upid: Int key "the process, unique in the tape; null: not known"
        parent_upid: Int "its parent, unique in the tape; null: not known"
        comm: Str [Comm] "its name"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        started_before: Flag "it was there before the recording"
        end_ns: Time "when it ended; null: no end is known"
        dur_ns ? AtLeast: Duration "how long it lived; null: not known"
        ended: Flag "it ended in the recording; null: not known"
        exit_code: Int "exit status; null: none"
        exit_signal: Int "signal that ended it; null: none"
        core_dumped: Flag "it left a core dump; null: no end is known"
        programs: Nested [Command] "`[{ts_ns, exec, path, args, args_whole}]` in order; `exec` false: what it was from its fork, or when first seen; CSV: as text: `a => b`"
    }
}

/// Kernel threads are children of this one.
const KTHREADD: (u32, &[u8]) = (2, b"kthreadd");
/// Column of times.
const START: Column = Column { name: "start", width: 9, places: 3, right: true };
/// Most steps of indentation; a deeper process has its depth as a number.
const DEEPEST: usize = 40;

/// A process and its depth.
struct TreeProcess<'a> {
    process: &'a Process,
    depth: usize,
}

/// Prints the tree.
pub(super) fn print(story: &ExecInput<'_>, out: &mut Out) -> io::Result<()> {
    let nodes = order(story, &shown(story));
    let limit = story.context.config.most();
    story.context.config.shown.rows(nodes.len());
    let listed = nodes.iter().take(limit);
    if !out.is_text() {
        return out.rows(&TREE, Judgement::Each, listed.map(|node| row(story, node)));
    }
    out.text([TextColumns::timed(story.stamps.heading(START), FIELDS).head()])?;
    out.text(listed.map(|node| text(story, node)))?;
    if limit < nodes.len() {
        return Ok(());
    }
    let count = |f: &dyn Fn(&Process) -> bool| nodes.iter().filter(|node| f(node.process)).count();
    let at_least = if story.whole { "" } else { "at least " };
    let (started, ended) = (count(&|p| !p.before && p.start != 0), count(&|p| p.end().is_some()));
    out.text([format!("{at_least}{} processes, {at_least}{started} started, {at_least}{ended} ended", nodes.len())])
}

/// The shown processes: those that pass, their descendants, and their ancestors.
fn shown(story: &ExecInput<'_>) -> Vec<bool> {
    let (all, scope) = (&story.processes.all, &story.context.question.scope);
    let there = |process: &Process| {
        let gone = process.end().is_some_and(|end| end.ts < scope.from);
        !gone && process.start < scope.to
    };
    let passes = |process: &Process| {
        let was = |image: &Image| image.exec && scope.task(&image.task);
        let asked = scope.task(&process.task) || process.images.iter().any(was);
        // others than the targets are in a tape only because they had to do with one
        asked && there(process) && certain(story, process) && process.task.pid != 0
    };
    let kernel = |process: &Process| (process.task.pid, process.task.comm.as_slice()) == KTHREADD;
    let mut show = vec![false; all.len()];
    for (at, process) in all.iter().enumerate() {
        let above = || story.processes.above(process);
        if !story.kernel_threads && (kernel(process) || above().any(kernel)) {
            continue;
        }
        show[at] = passes(process) || (there(process) && above().any(passes));
    }
    for at in 0..all.len() {
        // only those that pass by themselves need what is above them: the rest is below one of those
        let mut up = all[at].parent.filter(|_| show[at]);
        while let Some(parent) = up.filter(|parent| !show[*parent]) {
            show[parent] = true;
            up = all[parent].parent;
        }
    }
    show
}

/// The shown processes, each followed by its children in order of start.
fn order<'a>(story: &'a ExecInput<'_>, show: &[bool]) -> Vec<TreeProcess<'a>> {
    let all = &story.processes.all;
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut stack = Vec::new();
    for at in (0..all.len()).filter(|at| show[*at]) {
        match all[at].parent.filter(|parent| show[*parent]) {
            Some(parent) => children[parent].push(at),
            None => stack.push((at, 0)),
        }
    }
    // the last of the stack comes first
    let later_first = |list: &mut Vec<usize>| {
        list.order_by_key(|at| std::cmp::Reverse((all[*at].start, all[*at].task.pid)));
    };
    stack.order_by_key(|(at, _)| std::cmp::Reverse((all[*at].start, all[*at].task.pid)));
    let mut nodes = Vec::new();
    while let Some((at, depth)) = stack.pop() {
        nodes.push(TreeProcess { process: &all[at], depth });
        let mut below = std::mem::take(&mut children[at]);
        later_first(&mut below);
        stack.extend(below.into_iter().map(|child| (child, depth + 1)));
    }
    nodes
}

/// The columns behind the start.
const FIELDS: [TextColumn; 4] = [
    TextColumn::right("lived", 10).leaves(1),
    TextColumn::left(" exit", 13),
    TextColumn::right("pid", 7),
    TextColumn::left(" command", 0).commands(),
];

fn text(story: &ExecInput<'_>, node: &TreeProcess<'_>) -> String {
    let process = node.process;
    let start = match process {
        process if process.before => story.stamps.word(START, "before"),
        process if process.start == 0 => story.stamps.word(START, "?"),
        process => story.stamps.text(START, process.start),
    };
    let end = process.end();
    let lived = match process.lived(story.until) {
        Some(ns) if end.is_some() => span(ns),
        Some(ns) if story.lives && certain(story, process) => format!("{}{}", mark::AT_LEAST, span(ns)),
        _ => "?".to_owned(),
    };
    let exit = story.exit_text(end.as_ref(), certain(story, process));
    let indent = "  ".repeat(node.depth.min(DEEPEST));
    let deep = if node.depth > DEEPEST { format!("({} deep) ", node.depth) } else { String::new() };
    let pid = process.task.pid;
    let pid = match process.task.ns_pid {
        0 => pid.to_string(),
        inside if inside == pid => pid.to_string(),
        inside => format!("{pid}/{inside}"),
    };
    let what = format!(" {indent}{deep}{}", cut(programs(story, process)));
    TextColumns::timed(start, FIELDS).line(&[lived, format!(" {exit}"), pid, what])
}

/// Whether a process without a known end is shown.
pub(super) fn open(story: &ExecInput<'_>) -> bool {
    let all = story.processes.all.iter().zip(shown(story));
    all.into_iter().any(|(process, shown)| shown && process.end().is_none())
}

/// Whether its end would be known if it had ended.
fn certain(story: &ExecInput<'_>, process: &Process) -> bool {
    process.followed || systape_events::question::everyone(story.context.question.tape)
}

/// Characters of a command line in the tree; JSON and CSV have all of it.
const COMMAND: usize = 200;

fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(COMMAND) {
        text.truncate(at);
        text.push_str("...");
    }
    text
}

/// Its programs, one after the other.
fn programs(story: &ExecInput<'_>, process: &Process) -> String {
    let line = |image: &Image| match image.command.argv.as_slice() {
        [] if image.path.is_empty() => format!("[{}]", named(&image.task.comm)),
        [] => escaped(&image.path),
        argv => command(argv, image.command.whole),
    };
    let mut ran: Vec<&Image> = process.images.iter().filter(|image| image.exec || process.before).collect();
    if let [first, _, ..] = ran[..]
        && is_its_parents(story, process, first)
    {
        ran.remove(0);
    }
    match process.image() {
        None => format!("[{}]", named(&process.task.comm)),
        // a child that stayed what its parent was
        Some(image) if ran.is_empty() => format!("{} (fork)", line(image)),
        Some(_) => ran.into_iter().map(line).collect::<Vec<_>>().join(" => "),
    }
}

/// Whether it had this program only from its parent: it had been forked when the recording began, and its exec came
/// later.
fn is_its_parents(story: &ExecInput<'_>, process: &Process, image: &Image) -> bool {
    let same = |of: &Image| !of.command.argv.is_empty() && of.command.argv == image.command.argv;
    !image.exec && process.parent.is_some_and(|at| story.processes.all[at].images.iter().any(same))
}

fn row<'a>(story: &ExecInput<'a>, node: &TreeProcess<'a>) -> Row<'a> {
    let session = story.context.question.tape.session();
    let process = node.process;
    let task = &process.task;
    let since = |ts: u64| story.times.since(ts);
    let start = Some(process.start).filter(|start| *start != 0);
    let end = process.end();
    let program = |image: &Image| {
        let words = image.command.argv.split(|b| *b == 0).map(bytes).collect::<Vec<_>>();
        json!({
            "ts_ns": story.times.since_known(image.since),
            "exec": image.exec,
            "path": known(&image.path),
            "args": if image.command.argv.is_empty() { Value::Null } else { words.into() },
            "args_whole": image.command.whole,
        })
    };
    let lived = process.lived(story.until).filter(|_| end.is_some() || (story.lives && certain(story, process)));
    let parent = process.parent.map_or(0, |at| story.processes.all[at].task.upid);
    let mut row = Row::new(&TREE);
    row.set("ts_ns", start.map(since)).time("time", start, &story.times).set("depth", node.depth);
    row.set("pid", task.pid).set("ns_pid", some(task.ns_pid)).set("ppid", some(process.ppid));
    row.set("upid", some(task.upid)).set("parent_upid", some(parent)).set("comm", &task.comm);
    row.set("uid", user(task.uid)).set("cgroup", session.cgroup_path(task.cgroup_id));
    row.set("started_before", process.before).set("end_ns", end.map(|end| since(end.ts)));
    row.bound("dur_ns", lived, end.is_none());
    row.set("ended", if end.is_some() { Some(true) } else { (story.ends && certain(story, process)).then_some(false) });
    row.set("exit_code", end.and_then(|end| end.status())).set("exit_signal", end.and_then(|end| end.signal()));
    row.set("core_dumped", end.map(|end| end.core_dumped()));
    let all = Value::from(process.images.iter().map(program).collect::<Vec<_>>());
    row.set("programs", Cell::Spelled(all, programs(story, process)));
    row
}
