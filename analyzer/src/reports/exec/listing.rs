//! Starts of programs, one a line, with execsnoop's columns and their outcome.

use std::io;

use serde_json::Value;
use systape_format::model::UID_UNKNOWN;

use super::ExecInput;
use super::rows::{After, Row};
use systape_answers::derive::processes::interpreters::Asked;
use systape_answers::derive::processes::usage::Used;
use systape_answers::render::cell::Cell;
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::json::bytes;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::row::{self, Judgement, some, user};
use systape_answers::render::stamp::Column;
use systape_answers::values::output;
use systape_events::values::words::{command, escaped, span};

systape_format::tables! {
    /// One row for each attempt to start a program, those that failed too.
    pub EXEC = "exec" {
        ts_ns: Time key "when it had succeeded, or began to fail"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        pid: Int key "process"
        tid: Int key "thread"
        ns_pid: Int "the process in its own pid namespace; null: not known"
        ppid: Int "its parent; null: not known"
        upid: Int "the process, unique in the tape; null: not known"
        comm: Str [Comm] "name of the thread: after a success that of the new program"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        ret: Int "0, or -1: it failed"
        errno: Word "name of the error; null: none"
        errno_code: Int "its number; null: none"
        path: Str [Path] "path of the program; null: not known"
        args: Nested [Command] "its arguments, an array of strings; null: not known; CSV: as text"
        args_whole: Flag "these are all of them; null: none are known"
        interpreter: Str [Path] "if it failed with ENOENT, ENOEXEC or ENOTDIR, and the file was read soon after: the interpreter that the file asks for (#!, or the loader of an ELF file), or the interpreter of that; the first that is missing, if one is. null: none, or not known"
        interpreter_errno: Word "why that could not be opened when it was read; null: it could be, or is not known"
        interpreter_of: Str [Path] "the file that asks for it; null: the file was not read"
        file_kind: Word "that file: `script`, `elf`, `other-elf` (of another machine), `other`; null: it was not read"
        read_after_ns: Duration "from the failure until the file was read: it may have changed in that time; null: it was not read"
        ended: Word "`exit`, `exec` (the same process started another program), `no`; null: it failed, or not known"
        exit_code: Int "exit status; null: none"
        exit_signal: Int "signal that ended it; null: none"
        core_dumped: Flag "it left a core dump; null: no end is known"
        dur_ns ? AtLeast: Duration "from the start to that end; null: it failed, or not known"
        user_ns ? AtLeast: Duration "if its process has ended as it: CPU time of the process's own code in all its life, with programs before this one. Lacks up to a tick (1 to 10 ms); null: not known"
        system_ns ? AtLeast: Duration "CPU time of the kernel for it, likewise"
    }
}

/// What lines of text look like.
pub(in crate::reports) struct Layout {
    /// Times are printed also if none are asked for.
    pub always_timed: bool,
    /// The heading.
    pub head: fn(&ExecInput<'_>) -> String,
    /// An attempt.
    pub line: fn(&ExecInput<'_>, &Row) -> String,
    /// How many there were stands at the end.
    pub counts: bool,
}

/// That of `analyze exec`.
pub(super) const LAYOUT: Layout = Layout {
    always_timed: true,
    head: |story| TextColumns::timed(story.stamps.heading(TIME), FIELDS).head(),
    line: text,
    counts: true,
};

/// Column of times.
const TIME: Column = Column { name: "time", width: 9, places: 3, right: false };

/// Prints `rows`.
pub(super) fn print(story: &ExecInput<'_>, layout: &Layout, rows: &[Row], out: &mut Out) -> io::Result<()> {
    let limit = story.context.config.most();
    story.context.config.shown.rows(rows.len());
    let shown = rows.iter().take(limit);
    if !out.is_text() {
        return out.rows(&EXEC, Judgement::Each, shown.map(|row| record(story, row)));
    }
    out.text([(layout.head)(story)])?;
    out.text(shown.map(|row| (layout.line)(story, row)))?;
    if limit < rows.len() || !layout.counts {
        return Ok(());
    }
    let failed = rows.iter().filter(|row| row.errno != 0).count();
    let at_least = if story.whole { "" } else { "at least " };
    let started = rows.len() - failed;
    out.text([format!("{at_least}{started} started, {at_least}{failed} failed to start")])
}

/// The columns behind the time.
const FIELDS: [TextColumn; 11] = [
    TextColumn::right("uid", 5).leaves(3),
    TextColumn::left("comm", 15).shortens().leaves(6),
    TextColumn::left("pid", 7),
    TextColumn::left("ppid", 7).leaves(4),
    TextColumn::right("ret", 3).leaves(5),
    TextColumn::left("exit", 12),
    TextColumn::right("lived", 9).leaves(7),
    TextColumn::right("user cpu", 9).leaves(2),
    TextColumn::right("sys cpu", 9).leaves(1),
    TextColumn::left(" arguments", 0).commands(),
    // why it failed
    TextColumn::left("", 0),
];

/// A pid; 0 = not known.
pub(in crate::reports) fn number(number: u32) -> String {
    if number == 0 { "?".to_owned() } else { number.to_string() }
}

fn text(story: &ExecInput<'_>, row: &Row) -> String {
    let uid = if row.task.uid == UID_UNKNOWN { "?".to_owned() } else { row.task.uid.to_string() };
    let exit = match row.after {
        _ if row.errno != 0 => String::new(),
        After::End(end) => story.exit_text(Some(&end), true),
        After::Exec(_) => "exec".to_owned(),
        After::Begun => String::new(),
        After::Open => story.exit_text(None, true),
        After::Lost => "?".to_owned(),
    };
    let lived = match row.after {
        _ if row.errno != 0 => String::new(),
        After::End(end) => span(end.ts.saturating_sub(row.ts)),
        After::Exec(ts) => span(ts.saturating_sub(row.ts)),
        After::Open if story.lives => format!("{}{}", mark::AT_LEAST, span(story.until.saturating_sub(row.ts))),
        After::Begun => String::new(),
        After::Open | After::Lost => "?".to_owned(),
    };
    let used = used(story, row);
    let of_it = row.errno == 0 && !matches!(row.after, After::Exec(_) | After::Begun);
    let time = |ns: fn(Used) -> u64| match used {
        Some(used) => format!("{}{}", mark::at_least(used.short), span(ns(used))),
        None if of_it => "?".to_owned(),
        None => String::new(),
    };
    let args = words(row).unwrap_or_else(|| "?".to_owned());
    let mut why = String::new();
    if row.errno != 0 {
        let name = systape_abi::errno_name(row.errno).map_or_else(|| row.errno.to_string(), str::to_owned);
        let path = if row.path.is_empty() { String::new() } else { format!("{}: ", escaped(&row.path)) };
        let asked = row.asked.as_ref().map(|asked| asked_for(row, asked)).unwrap_or_default();
        why = format!("({path}{name}{asked})");
    }
    let at = story.stamps.text(TIME, if story.live { row.moment() } else { row.ts });
    TextColumns::timed(at, FIELDS).line(&[
        uid,
        escaped(&row.task.comm),
        row.task.pid.to_string(),
        number(row.ppid),
        if story.live && row.moment() != row.ts { String::new() } else { returned(row) },
        exit,
        lived,
        time(|used| used.user),
        time(|used| used.system),
        format!(" {}{args}", output::hang()),
        why,
    ])
}

/// What the file asked for when it was read.
fn asked_for(row: &Row, asked: &Asked) -> String {
    let whose = if asked.file == row.path {
        "its interpreter".to_owned()
    } else {
        format!("{}: interpreter", escaped(&asked.file))
    };
    let what = match &asked.interpreter {
        Some(name) if asked.error != 0 => format!("{whose} {} was missing", escaped(name)),
        Some(name) => format!("{whose} {} was there", escaped(name)),
        None if asked.kind == "other-elf" => "an ELF file of another machine".to_owned(),
        None if asked.kind == "other" => "neither #! nor ELF".to_owned(),
        None => "the file was there".to_owned(),
    };
    format!("; {what}, read {} later", span(asked.after))
}

/// What the process used, if it ended as this program.
fn used(story: &ExecInput<'_>, row: &Row) -> Option<Used> {
    matches!(row.after, After::End(_)).then(|| story.usages.of(&row.task)).flatten()
}

/// What the call returned, as execsnoop has it: 0, or minus the errno.
pub(in crate::reports) fn returned(row: &Row) -> String {
    if row.errno == 0 { "0".to_owned() } else { format!("-{}", row.errno) }
}

/// The arguments as typed, or the path alone.
pub(in crate::reports) fn words(row: &Row) -> Option<String> {
    if !row.command.argv.is_empty() {
        return Some(command(&row.command.argv, row.command.whole));
    }
    (!row.path.is_empty()).then(|| escaped(&row.path))
}

/// A row of JSON and CSV.
pub(super) fn record<'a>(story: &ExecInput<'a>, row: &'a Row) -> row::Row<'a> {
    let session = story.context.question.tape.session();
    let task = &row.task;
    let failed = row.errno != 0;
    let (end, until, ended) = match row.after {
        _ if failed => (None, None, None),
        After::End(end) => (Some(end), Some(end.ts), Some("exit")),
        After::Exec(ts) => (None, Some(ts), Some("exec")),
        After::Open if story.lives => (None, Some(story.until), story.ends.then_some("no")),
        After::Open | After::Lost | After::Begun => (None, None, None),
    };
    let argv = &row.command.argv;
    let words: Vec<Value> = argv.split(|b| *b == 0).map(bytes).collect();
    let args = (!argv.is_empty()).then(|| Cell::Spelled(words.into(), command(argv, row.command.whole)));
    let mut line = row::Row::new(&EXEC);
    line.set("ts_ns", story.times.since(row.ts)).time("time", Some(row.ts), &story.times);
    line.set("pid", task.pid).set("tid", task.tid).set("ns_pid", some(task.ns_pid)).set("ppid", some(row.ppid));
    line.set("upid", some(task.upid)).set("comm", &task.comm).set("uid", user(task.uid));
    line.set("cgroup", session.cgroup_path(task.cgroup_id).filter(|path| !path.is_empty()));
    line.set("ret", if failed { -1 } else { 0 });
    line.set("errno", systape_abi::errno_name(row.errno).filter(|_| failed))
        .set("errno_code", failed.then_some(row.errno));
    line.set("path", Some(&row.path).filter(|path| !path.is_empty()));
    line.set("args", args).set("args_whole", (!argv.is_empty()).then_some(row.command.whole));
    let asked = row.asked.as_ref();
    let missing = asked.and_then(|asked| systape_abi::errno_name(asked.error).filter(|_| asked.error != 0));
    line.set("interpreter", asked.and_then(|asked| asked.interpreter.as_ref())).set("interpreter_errno", missing);
    line.set("interpreter_of", asked.map(|asked| &asked.file)).set("file_kind", asked.map(|asked| &*asked.kind));
    line.set("read_after_ns", asked.map(|asked| asked.after)).set("ended", ended);
    line.set("exit_code", end.and_then(|end| end.status())).set("exit_signal", end.and_then(|end| end.signal()));
    line.set("core_dumped", end.map(|end| end.core_dumped()));
    line.bound("dur_ns", until.map(|until| until.saturating_sub(row.ts)), row.after == After::Open);
    let used = used(story, row);
    let short = used.is_some_and(|used| used.short);
    line.bound("user_ns", used.map(|used| used.user), short).bound("system_ns", used.map(|used| used.system), short);
    line
}
