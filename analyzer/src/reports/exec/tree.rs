//! The tree of processes: who made whom, what each ran, from when to when, and how it ended.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use systape_format::model::UID_UNKNOWN;

use super::Story;
use crate::clock;
use crate::output::line;
use crate::processes::{Image, Process};
use crate::render::csv;
use crate::render::form::Format;
use crate::render::json::{bytes, known};
use crate::words::{command, escaped, named, span};

/// The kernel's own threads are children of this one.
const KTHREADD: (u32, &[u8]) = (2, b"kthreadd");
/// Steps of indentation that are drawn: a deeper process says how deep it is.
const DEEPEST: usize = 40;

/// A process and how far below the first it is.
struct Node<'a> {
    process: &'a Process,
    depth: usize,
}

/// Prints the tree.
pub fn print(story: &Story<'_>, out: &mut impl Write) -> io::Result<()> {
    let nodes = order(story, &shown(story));
    let limit = usize::try_from(story.context.config.max_events).unwrap_or(usize::MAX);
    let listed = nodes.iter().take(limit);
    match story.context.config.format {
        Format::Text => {
            line(out, &columns(["START(s)", "LIVED", "EXIT", "PID"], "COMMAND"))?;
            listed.into_iter().try_for_each(|node| line(out, &text(story, node)))?;
            if limit < nodes.len() {
                return Ok(());
            }
            let count = |f: &dyn Fn(&Process) -> bool| nodes.iter().filter(|node| f(node.process)).count();
            let at_least = if story.whole { "" } else { "at least " };
            let (started, ended) = (count(&|p| !p.before && p.start != 0), count(&|p| p.end().is_some()));
            line(
                out,
                &format!("{at_least}{} processes, {at_least}{started} started, {at_least}{ended} ended", nodes.len()),
            )
        }
        Format::Json => {
            listed.into_iter().try_for_each(|node| line(out, &Value::Object(object(story, node)).to_string()))
        }
        Format::Csv => {
            line(out, &FIELDS.join(","))?;
            for node in listed {
                out.write_all(&cells(story, node))?;
            }
            Ok(())
        }
    }
}

/// Which of all processes are shown: those that pass, everything below them, and for their place in the tree what is above.
fn shown(story: &Story<'_>) -> Vec<bool> {
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
        if !story.context.config.life.kernel_threads && (kernel(process) || above().any(kernel)) {
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
fn order<'a>(story: &'a Story<'_>, show: &[bool]) -> Vec<Node<'a>> {
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
        list.sort_by_key(|at| std::cmp::Reverse((all[*at].start, all[*at].task.pid)));
    };
    stack.sort_by_key(|(at, _)| std::cmp::Reverse((all[*at].start, all[*at].task.pid)));
    let mut nodes = Vec::new();
    while let Some((at, depth)) = stack.pop() {
        nodes.push(Node { process: &all[at], depth });
        let mut below = std::mem::take(&mut children[at]);
        later_first(&mut below);
        stack.extend(below.into_iter().map(|child| (child, depth + 1)));
    }
    nodes
}

fn columns(cells: [&str; 4], last: &str) -> String {
    let [start, lived, exit, pid] = cells;
    format!("{start:>9} {lived:>10}  {exit:<12} {pid:>7}  {last}")
}

fn text(story: &Story<'_>, node: &Node<'_>) -> String {
    let process = node.process;
    let base = if story.context.config.look.absolute { 0 } else { story.context.question.tape.session().window_open };
    let start = match process {
        process if process.before => "before".to_owned(),
        process if process.start == 0 => "?".to_owned(),
        process => format!("{:.3}", (i128::from(process.start) - i128::from(base)) as f64 / 1e9),
    };
    let end = process.end();
    let lived = match process.lived(story.until) {
        Some(ns) if end.is_some() => span(ns),
        Some(ns) if certain(story, process) => format!("≥{}", span(ns)),
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
    columns([&start, &lived, &exit, &pid], &format!("{indent}{deep}{}", cut(programs(story, process))))
}

/// Whether its end would be known if it had ended.
fn certain(story: &Story<'_>, process: &Process) -> bool {
    process.followed || crate::question::everyone(story.context.question.tape)
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

/// What it ran, one program after the other.
fn programs(story: &Story<'_>, process: &Process) -> String {
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

/// Whether it was this only because its parent is: it had been forked when the recording began, and its exec came later.
fn is_its_parents(story: &Story<'_>, process: &Process, image: &Image) -> bool {
    let same = |of: &Image| !of.command.argv.is_empty() && of.command.argv == image.command.argv;
    !image.exec && process.parent.is_some_and(|at| story.processes.all[at].images.iter().any(same))
}

const FIELDS: [&str; 20] = [
    "ts_ns",
    "time",
    "depth",
    "pid",
    "ns_pid",
    "ppid",
    "upid",
    "parent_upid",
    "comm",
    "uid",
    "cgroup",
    "started_before",
    "end_ns",
    "dur_ns",
    "dur_is",
    "ended",
    "exit_code",
    "exit_signal",
    "core_dumped",
    "programs",
];

fn object(story: &Story<'_>, node: &Node<'_>) -> Map<String, Value> {
    let session = story.context.question.tape.session();
    let process = node.process;
    let task = &process.task;
    let some = |number: u32| if number == 0 { Value::Null } else { number.into() };
    let since = |ts: u64| ts.wrapping_sub(session.window_open) as i64;
    let start = Some(process.start).filter(|start| *start != 0);
    let end = process.end();
    let program = |image: &Image| {
        let words = image.command.argv.split(|b| *b == 0).map(bytes).collect::<Vec<_>>();
        json!({
            "ts_ns": if image.since == 0 { Value::Null } else { since(image.since).into() },
            "exec": image.exec,
            "path": known(&image.path),
            "args": if image.command.argv.is_empty() { Value::Null } else { words.into() },
            "args_whole": image.command.whole,
        })
    };
    let lived = process.lived(story.until).filter(|_| end.is_some() || certain(story, process));
    let parent = process.parent.map(|at| story.processes.all[at].task.upid);
    let cgroup = session.cgroup_path(task.cgroup_id);
    let fields = json!({
        "ts_ns": start.map(since),
        "time": start.and_then(|ts| story.clock.real(ts)).map(clock::rfc3339),
        "depth": node.depth,
        "pid": task.pid,
        "ns_pid": some(task.ns_pid),
        "ppid": some(process.ppid),
        "upid": some(task.upid),
        "parent_upid": some(parent.unwrap_or(0)),
        "comm": bytes(&task.comm),
        "uid": if task.uid == UID_UNKNOWN { Value::Null } else { task.uid.into() },
        "cgroup": cgroup.map_or(Value::Null, bytes),
        "started_before": process.before,
        "end_ns": end.map(|end| since(end.ts)),
        "dur_ns": lived,
        "dur_is": lived.map(|_| if end.is_some() { "exact" } else { "at-least" }),
        "ended": if end.is_some() { Some(true) } else { (story.ends && certain(story, process)).then_some(false) },
        "exit_code": end.and_then(|end| end.status()),
        "exit_signal": end.and_then(|end| end.signal()),
        "core_dumped": end.map(|end| end.core_dumped()),
        "programs": process.images.iter().map(program).collect::<Vec<_>>(),
    });
    clock::with_uncertainty(fields, start.and_then(|ts| story.clock.real(ts)))
}

fn cells(story: &Story<'_>, node: &Node<'_>) -> Vec<u8> {
    let object = object(story, node);
    let cell = |name: &&str| match (*name, object.get(*name)) {
        ("programs", _) => programs(story, node.process).into(),
        (_, Some(value @ (Value::String(_) | Value::Object(_)))) => csv::text(value).into(),
        (_, value) => value.cloned().unwrap_or_default(),
    };
    csv::row(&FIELDS.iter().map(cell).collect::<Vec<_>>())
}
