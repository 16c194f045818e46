//! The report as text: a line a signal, or a paragraph with `-v`.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use systape_format::model::{SignalInfo, Task, UID_UNKNOWN};

use super::party::{Party, inside, short};
use super::{KillsInput, missing, sentence};
use crate::reports::losses::LOSS_LINES;
use systape_answers::derive::signals::outcome::{blocked, result_name};
use systape_answers::derive::signals::via::{self, code_name, fault_address};
use systape_answers::derive::signals::{Disposition, EndedTarget, SignalChoice, SignalLine, Via};
use systape_answers::lines::value::{self, ValueScratch};
use systape_answers::render::stamp::Column;
use systape_answers::values::output::{self, line};
use systape_events::values::words::{escaped, span};

/// Column of times.
const TIME: Column = Column { name: "", width: 9, places: 3, right: true };
/// Most names of processes in a line about several.
const NAMED: usize = 3;

/// Prints the losses, the signals, and their number.
pub(super) fn print(story: &KillsInput<'_>, out: &mut impl Write) -> io::Result<()> {
    losses(story, out)?;
    if let Some(missing) = missing(story.context.question.tape.session(), story.choice, (story.signals, story.life)) {
        line(out, &format!("NOT RECORDED: {missing}"))?;
    }
    let printed = acts(story, out)?;
    if printed < together_or_alone(story).len() {
        return Ok(());
    }
    line(out, &totals(story))
}

/// Prints the losses.
pub(super) fn losses(story: &KillsInput<'_>, out: &mut impl Write) -> io::Result<()> {
    let question = &story.context.question;
    question.loss.lines(question.tape.session(), LOSS_LINES).iter().try_for_each(|lost| line(out, lost))
}

/// Prints a line for each act, with `-v` a paragraph for each signal; returns how many.
pub(super) fn acts(story: &KillsInput<'_>, out: &mut impl Write) -> io::Result<usize> {
    let limit = story.context.config.most();
    let mut acts = together_or_alone(story);
    acts.truncate(limit);
    for act in &acts {
        line(out, &one_line(story, act))?;
        if story.verbose {
            paragraph(story, act[0], out)?;
        }
    }
    Ok(acts.len())
}

/// The signals of each act, in order of the first; with `-v` each alone.
fn together_or_alone<'a>(story: &KillsInput<'a>) -> Vec<Vec<&'a SignalLine>> {
    let mut acts: Vec<Vec<&SignalLine>> = Vec::new();
    let mut places = FxHashMap::default();
    for record in story.records {
        let place = if story.verbose { acts.len() } else { *places.entry(record.act).or_insert(acts.len()) };
        match acts.get_mut(place) {
            Some(act) => act.push(record),
            None => acts.push(vec![record]),
        }
    }
    acts
}

fn one_line(story: &KillsInput<'_>, act: &[&SignalLine]) -> String {
    let first = act[0];
    let time = story.stamps.text(TIME, first.sent.event.ts);
    let what = if act.len() == 1 { alone(story, first) } else { together(act) };
    format!("{time}  {:<7}  {}{what}", via::name(first.sent.event.sig), output::hang())
}

fn alone(story: &KillsInput<'_>, record: &SignalLine) -> String {
    let target = short(&record.sent.target);
    if record.unseen.is_some() {
        let how = match (record.via, story.signals && story.whole) {
            (Via::Seccomp, _) => "via seccomp",
            (_, true) => "the signal itself was not recorded",
            (_, false) => "its signal is not in the tape",
        };
        let core = sentence::outcome(record, false);
        let comma = match how {
            _ if how.starts_with("its") => ": ",
            _ if how.starts_with("the") => "; ",
            _ => " ",
        };
        return format!("{target} died{comma}{how}{}{core}", if core.is_empty() { "" } else { "; " });
    }
    let outcome = sentence::outcome(record, story.certain(record));
    format!("{target} {} {}; {outcome}", sentence::verb(record), sentence::by(record))
}

/// `3 processes (nginx 4711, nginx 4712, sleep 4713) killed by bash (4700, uid 0) via kill(-4711); 3 died`.
fn together(act: &[&SignalLine]) -> String {
    let first = act[0];
    let mut names: Vec<String> = act
        .iter()
        .take(NAMED)
        .map(|record| format!("{} {}", escaped(&record.sent.target.comm), record.sent.target.pid))
        .collect();
    if act.len() > NAMED {
        names.push(format!("{} more", act.len() - NAMED));
    }
    let all = |sure: bool| {
        act.iter().all(|r| r.outcome.cause == EndedTarget::Yes || (!sure && r.outcome.cause != EndedTarget::No))
    };
    let verb = match () {
        () if all(true) => "killed",
        () if all(false) => "maybe killed",
        () => "signalled",
    };
    let died = act.iter().filter(|record| record.outcome.cause != EndedTarget::No).count();
    let mut outcome = format!("{died} died");
    if let Some(last) =
        act.iter().filter(|r| r.outcome.cause != EndedTarget::No).filter_map(|r| r.outcome.end).map(|end| end.ts).max()
    {
        outcome.push_str(&format!(", the last after {}", span(last.saturating_sub(first.sent.event.ts))));
    }
    let counts = [
        (
            "maybe by a signal that was lost",
            act.iter().filter(|r| matches!(r.outcome.cause, EndedTarget::Maybe(_))).count(),
        ),
        ("handled it", act.iter().filter(|r| r.outcome.taken.is_some_and(|taken| taken.handler > 1)).count()),
        (
            "ignored it",
            act.iter().filter(|r| r.sent.event.result == systape_answers::derive::signals::outcome::IGNORED).count(),
        ),
        ("stopped", act.iter().filter(|r| r.outcome.stopped).count()),
    ];
    for (what, count) in counts.iter().filter(|(_, count)| *count > 0) {
        outcome.push_str(&format!(", {count} {what}"));
    }
    let by = {
        let own = first.sent.to_own_process();
        // the sender may be one of those it reaches
        match first.sender().filter(|_| own) {
            Some(sender) => {
                format!("by {} via {}", short(sender), sentence::by(first).rsplit("via ").next().unwrap_or(""))
            }
            None => sentence::by(first),
        }
    };
    format!("{} processes ({}) {verb} {by}; {outcome}", act.len(), names.join(", "))
}

/// Column of the second half of a paragraph's lines.
const KEY: usize = 10;

fn paragraph(story: &KillsInput<'_>, record: &SignalLine, out: &mut impl Write) -> io::Result<()> {
    let mut say = |key: &str, text: &str| line(out, &format!("           {key:<KEY$}{text}"));
    let event = &record.sent.event;
    match Party::sender(record, story.processes, &story.unseen) {
        Some(party) => side(story, &party, "sender", &mut say)?,
        None => say("sender", nobody(record))?,
    }
    if let Some(stacks) = &story.stacks {
        for (nth, function) in stacks.borrow_mut().list(record).iter().enumerate() {
            say(if nth == 0 { "  stack" } else { "" }, function)?;
        }
    }
    side(story, &Party::target(record, story.processes, &story.unseen), "target", &mut say)?;
    if let Some(call) = record.sent.call.as_ref().filter(|_| record.sent.user().is_some()) {
        let mut args = Vec::new();
        let mut values = [0; 6];
        values[..event.call_args.len()].copy_from_slice(&event.call_args);
        for (at, arg) in call.args.iter().enumerate().take(event.call_args.len()) {
            if at > 0 {
                args.extend_from_slice(b", ");
            }
            args.extend_from_slice(arg.label.as_bytes());
            value::scalar(&mut args, &mut ValueScratch::default(), call, at, &values, story.context.config.look.style);
        }
        let args = String::from_utf8_lossy(&args);
        let path = if event.call_path.is_empty() { String::new() } else { format!(" <{}>", escaped(&event.call_path)) };
        say("call", &format!("{}({args}){path}", call.name))?;
    }
    if record.unseen.is_none() {
        say("siginfo", &siginfo(record))?;
    }
    if record.unseen.is_none() && !record.sent.only_taken() {
        let blocked = if blocked(event) { ", blocked by the thread it was sent to" } else { "" };
        say(
            "state",
            &format!("{}, disposition {}{blocked}", result_name(event.result), Disposition::of(event).name()),
        )?;
    }
    if let Some(end) = record.outcome.end {
        let after = match end.ts.checked_sub(event.ts) {
            _ if record.unseen.is_some() => String::new(),
            Some(ns) if record.sent.only_taken() => format!(", {} after it took the signal", span(ns)),
            Some(ns) => format!(", {} later", span(ns)),
            None => ", before the signal".to_owned(),
        };
        // what scripts and containers show of it
        let status = end.signal().map_or_else(String::new, |sig| format!(" (exit code {} to a shell)", 128 + sig));
        say("end", &format!("{} {}{after}{status}", sentence::ending(&end), story.stamps.at(end.ts)))?;
    }
    line(out, "")
}

fn nobody(record: &SignalLine) -> &'static str {
    match record.via {
        Via::Unknown => "not known",
        Via::Seccomp => "the kernel, for a call that it may not make",
        _ => "the kernel by itself",
    }
}

fn side(
    story: &KillsInput<'_>,
    party: &Party<'_>,
    key: &str,
    say: &mut impl FnMut(&str, &str) -> io::Result<()>,
) -> io::Result<()> {
    let session = story.context.question.tape.session();
    let task = party.task;
    let mut text = format!("{} pid {}", escaped(&task.comm), pid(task));
    if task.tid != task.pid {
        text.push_str(&format!(", thread {}", task.tid));
    }
    if task.uid != UID_UNKNOWN {
        let name =
            session.users.iter().find(|(uid, _)| *uid == task.uid).map(|(_, name)| format!(" ({})", escaped(name)));
        text.push_str(&format!(", uid {}{}", task.uid, name.unwrap_or_default()));
    }
    say(key, &text)?;
    if !task.exe.is_empty() {
        say("  exe", &escaped(&task.exe))?;
    }
    say("  command", &party.command().unwrap_or_else(|| "not known".to_owned()))?;
    if let Some(path) = session.cgroup_path(task.cgroup_id) {
        say("  cgroup", &escaped(path))?;
    }
    if let Some(chain) = party.chain() {
        say("  parents", &chain)?;
    }
    Ok(())
}

/// `4711 (7 inside)`.
fn pid(task: &Task) -> String {
    if inside(task) { format!("{} ({} inside)", task.pid, task.ns_pid) } else { task.pid.to_string() }
}

fn siginfo(record: &SignalLine) -> String {
    let event = &record.sent.event;
    let mut text = match event.info {
        SignalInfo::Unknown => "not known".to_owned(),
        SignalInfo::NoInfo => "none, sent by the kernel on behalf of the task that ran".to_owned(),
        SignalInfo::Priv => "none, sent by the kernel itself".to_owned(),
        SignalInfo::Siginfo => format!("code {} ({})", code_name(event.sig, event.code), event.code),
    };
    if event.si_pid != 0 {
        text.push_str(&format!(", pid {}, uid {}", event.si_pid, event.si_uid));
    }
    if record.via == Via::Fault || fault_address(event, record.via).is_some() {
        text.push_str(&format!(", {}", sentence::fault(event, record.via)));
    }
    if event.errno != 0 {
        text.push_str(&format!(", errno {}", event.errno));
    }
    text
}

/// Their number: never less than the possible minimum.
fn totals(story: &KillsInput<'_>) -> String {
    let deaths = story.records.iter().filter(|r| r.outcome.cause != EndedTarget::No || r.unseen.is_some()).count();
    let seen = story.records.iter().filter(|record| record.unseen.is_none()).count();
    let at_least = if story.whole { "" } else { "at least " };
    let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let which = match story.choice {
        SignalChoice::These(_) => " of those asked for",
        _ => "",
    };
    let ended = plural(deaths, "process died of one", "processes died of one");
    match (story.records.is_empty(), story.whole) {
        (true, true) if story.signals => match story.choice {
            SignalChoice::All => "No signal was sent.".to_owned(),
            SignalChoice::These(_) => "None of these signals was sent.".to_owned(),
            _ => "No signal ended or stopped a process (--all lists every signal).".to_owned(),
        },
        (true, _) => "Nothing found; events are missing.".to_owned(),
        (false, _) if story.signals => {
            format!("{at_least}{}{which}; {at_least}{ended}", plural(seen, "signal", "signals"))
        }
        (false, _) => format!("{at_least}{ended}"),
    }
}
