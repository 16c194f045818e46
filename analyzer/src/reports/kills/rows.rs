//! The report as rows of JSON and CSV.

use std::io;

use serde_json::Value;
use systape_format::model::SignalInfo;

use super::KillsInput;
use super::party::Party;
use crate::reports::losses;
use systape_answers::derive::signals::outcome::{blocked, explains, result_name};
use systape_answers::derive::signals::via::{self, code_name, fault_address};
use systape_answers::derive::signals::{Disposition, EndedTarget, SignalLine, Via, stops};
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::cell::Cell;
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row, ShownTimes};

systape_format::tables! {
    /// One row a signal, in order of time; a death of which no signal was seen is one too.
    pub KILLS = "kills" {
        ts_ns: Time key "when it was sent; of a death without a signal, when the process ended; of a signal in an imported log, when it was taken"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        act: Int "number of the act (one kill of a group, one write to cgroup.kill) that sent it: its signals share it"
        signal: Int key "number of the signal"
        signal_name: Word "its name"
        info: Word "what the kernel knew of the origin: `siginfo`, `noinfo` (on behalf of the task that ran), `priv` (the kernel itself); null: not known"
        code: Int "si_code; null: no siginfo"
        code_name: Word "its name; null: no siginfo"
        result: Word "`delivered` (queued), `ignored`, `already-pending`, `overflow` (not sent), `info-lost` (queued without its siginfo); null: a death without a signal, or the signal is of an imported log"
        via: Word "how it was sent: [signals](../reading/kills.md) lists the ways"
        disposition: Word "`default`, `handler`, `ignore`: what the target did about that signal then; null: likewise"
        blocked: Flag "the thread it was sent to blocked it; null: likewise"
        address: Hex "of a fault; null: none, or the processor gave none (code `SI_KERNEL`: a non-canonical address, `int3`)"
        ip: Hex "of a fault: the instruction; null: none, or an imported log does not say"
        call: Word "the call that the sender was in; null: in none, or not known"
        call_args: Nested "its first four arguments, an array of strings in hex"
        call_path: Str [Path] "the file behind the descriptor of the call; null: none, or not known"
        oom.victim_pid: Int "the process that the OOM killer chose; `oom` null: it was not at work"
        oom.total_vm: Wide "its address space, bytes"
        oom.anon: Wide "its anonymous memory, bytes"
        oom.file: Wide "its memory of files, bytes"
        oom.shmem: Wide "its shared memory, bytes"
        sender.pid: Int "who sent it: process; `sender` null: nobody (a timer, the kernel by itself), or not known"
        sender.tid: Int "thread"
        sender.ns_pid: Int "the process in its own pid namespace; null: not known"
        sender.ns_tid: Int "the thread in its own pid namespace; null: not known"
        sender.upid: Int "the process, unique in the tape; null: not known"
        sender.utid: Int "the thread, unique in the tape; null: not known"
        sender.comm: Str [Comm] "name of the thread; null: not known"
        sender.uid: Int "real user; null: not known"
        sender.exe: Str [Path] "path of its program; null: not known"
        sender.cgroup: Str [Path] "path of its cgroup; null: not known"
        sender.cmdline: Nested [Command] "its arguments, an array of strings; null: not known; CSV: as text"
        sender.cmdline_whole: Flag "these are all of them; null: none are known"
        sender.ancestors: Nested [Comm] "`[{pid, comm, upid}]`, the parent first; CSV: as text"
        sender_stack: Nested [Path] "where in its program the sender was, as `stack` of the listing; null: no sender, or no such stacks in the tape"
        sender_stack_status: Word "as `stack_status` of the listing; null: likewise"
        target.pid: Int key "to whom it was sent: process; `target` null: never"
        target.tid: Int "thread"
        target.ns_pid: Int "the process in its own pid namespace; null: not known"
        target.ns_tid: Int "the thread in its own pid namespace; null: not known"
        target.upid: Int "the process, unique in the tape; null: not known"
        target.utid: Int "the thread, unique in the tape; null: not known"
        target.comm: Str [Comm] "name of the thread; null: not known"
        target.uid: Int "real user; null: not known"
        target.exe: Str [Path] "path of its program; null: not known"
        target.cgroup: Str [Path] "path of its cgroup; null: not known"
        target.cmdline: Nested [Command] "its arguments, an array of strings; null: not known; CSV: as text"
        target.cmdline_whole: Flag "these are all of them; null: none are known"
        target.ancestors: Nested [Comm] "`[{pid, comm, upid}]`, the parent first; CSV: as text"
        outcome.exited: Flag "its process ended in the recording; null: not known"
        outcome.exit_signal: Int "the signal that ended it; null: none did"
        outcome.exit_code: Int "its exit status; null: it has none"
        outcome.latency_ns: Duration "from the signal to that end; null: it had ended before, or no end is known"
        outcome.core_dumped: Flag "it left a core dump; null: no end is known"
        outcome.stopped: Flag "the signal stopped it; null: an imported log does not say"
        outcome.cause: Flag "this signal is what ended it; null: not known (see `maybe_cause`), or a death without a signal"
        outcome.taken_ns ? AtMost: Duration "from the signal to when the target took it; null: not seen, or when it was sent is not known"
        outcome.handler: Hex "address of the handler that took it; null: none did"
        outcome.maybe_cause: Flag "as far as was seen it is the cause, but signals were lost between it and the end; null: a death without a signal"
    }
}

/// Prints the selected records, behind the losses where these have rows; returns how many.
pub(super) fn print(story: &KillsInput<'_>, out: &mut Out) -> io::Result<usize> {
    let context = story.context;
    out.rows_beside(&LOSSES, Judgement::Each, losses::rows(context, &context.question.loss))?;
    let times = context.times();
    out.rows(&KILLS, Judgement::Each, shown(story).map(|record| row(story, record, &times)))?;
    Ok(shown(story).count())
}

/// The records that are printed.
fn shown<'a>(story: &'a KillsInput<'_>) -> impl Iterator<Item = &'a SignalLine> {
    story.records.iter().take(story.context.config.most())
}

fn row<'a>(story: &'a KillsInput<'_>, record: &'a SignalLine, times: &ShownTimes<'_>) -> Row<'a> {
    let session = story.context.question.tape.session();
    let mut row = Row::new(&KILLS);
    common(&mut row, record, times);
    match Party::sender(record, story.processes, &story.unseen) {
        Some(party) => party.fill(&mut row, "sender", session),
        None => {
            row.absent("sender");
        }
    }
    let (stack, status) =
        story.stacks.as_ref().map_or((Value::Null, Value::Null), |stacks| stacks.borrow_mut().json(record));
    row.set("sender_stack", stack).set("sender_stack_status", status.as_str().map(str::to_owned));
    Party::target(record, story.processes, &story.unseen).fill(&mut row, "target", session);
    outcome(&mut row, story, record);
    row
}

/// Sets the columns that belong to neither side.
fn common<'a>(row: &mut Row<'a>, record: &'a SignalLine, times: &ShownTimes<'_>) {
    let (sent, event, seen) = (&record.sent, &record.sent.event, record.unseen.is_none());
    let coded = event.info == SignalInfo::Siginfo;
    let fault = matches!(record.via, Via::Fault | Via::Seccomp | Via::UserDispatch | Via::MemoryError) && coded;
    let call = sent.call.as_ref().filter(|_| sent.user().is_some());
    let hex = |(_, value): (_, u64)| format!("{value:#x}");
    row.set("ts_ns", times.since(event.ts)).time("time", Some(event.ts), times).set("act", record.act);
    row.set("signal", event.sig).set("signal_name", via::name(event.sig));
    row.set(
        "info",
        match event.info {
            SignalInfo::Unknown => None,
            SignalInfo::Siginfo => Some("siginfo"),
            SignalInfo::NoInfo => Some("noinfo"),
            SignalInfo::Priv => Some("priv"),
        },
    );
    row.set("code", coded.then_some(event.code)).set("code_name", coded.then(|| code_name(event.sig, event.code)));
    // of an imported log only the taking is known
    let seen = seen && !sent.only_taken();
    row.set("result", seen.then(|| result_name(event.result))).set("via", record.via.name());
    row.set("disposition", seen.then(|| Disposition::of(event).name())).set("blocked", seen.then(|| blocked(event)));
    row.set("address", fault_address(event, record.via)).set("ip", (fault && !sent.only_taken()).then_some(event.ip));
    row.set("call", call.map(|call| call.name.as_str()));
    let args = call.map(|call| call.args.iter().zip(event.call_args).map(hex).collect::<Vec<_>>());
    row.set("call_args", args.map(Value::from));
    row.set("call_path", Some(&event.call_path).filter(|path| !path.is_empty()));
    match &record.mark {
        None => {
            row.absent("oom");
        }
        Some(mark) => {
            let memory = &mark.memory;
            row.set("oom_victim_pid", mark.victim.pid).set("oom_total_vm", memory.total_vm);
            row.set("oom_anon", memory.anon).set("oom_file", memory.file).set("oom_shmem", memory.shmem);
        }
    }
}

/// Sets the outcome: `exited` of a process that did not end is false only if nothing is missing.
fn outcome(row: &mut Row<'_>, story: &KillsInput<'_>, record: &SignalLine) {
    let (outcome, ts) = (&record.outcome, record.sent.event.ts);
    let (end, taken) = (outcome.end, outcome.taken);
    let harmless = explains(&record.sent.event).is_none();
    let exited = if end.is_some() { Some(true) } else { story.certain(record).then_some(false) };
    row.set("outcome_exited", exited).set("outcome_exit_signal", end.and_then(|end| end.signal()));
    row.set("outcome_exit_code", end.and_then(|end| end.status()));
    let latency = end.filter(|_| record.unseen.is_none()).and_then(|end| end.ts.checked_sub(ts));
    row.set("outcome_latency_ns", latency).set("outcome_core_dumped", end.map(|end| end.core_dumped()));
    // of those a handler may have been called
    let unknown = record.sent.only_taken() && stops(record.sent.event.sig) && !outcome.stopped;
    row.set("outcome_stopped", (!unknown).then_some(outcome.stopped));
    row.set(
        "outcome_cause",
        match outcome.cause {
            EndedTarget::Yes => Cell::Flag(true),
            // of how its target ended nothing may be known
            EndedTarget::No if record.unseen.is_none() && (end.is_some() || harmless || story.certain(record)) => {
                Cell::Flag(false)
            }
            _ => Cell::Null,
        },
    );
    let since = taken.map(|taken| taken.ts.saturating_sub(ts));
    row.bound("outcome_taken_ns", since, taken.is_some_and(|taken| taken.at_most));
    row.set("outcome_handler", taken.filter(|taken| taken.handler > 1).map(|taken| taken.handler));
    let maybe = record.unseen.is_none().then_some(matches!(outcome.cause, EndedTarget::Maybe(_)));
    row.set("outcome_maybe_cause", maybe);
}
