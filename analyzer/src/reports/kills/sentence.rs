//! A record in words: `nginx (4711, uid 33) killed by sh (4800, uid 0) via kill; died after 0.412 ms`.

use systape_format::model::{SIGNAL_HANDLER_UNKNOWN, SignalEvent};

use super::party::short;
use systape_abi::signo::SIGABRT;
use systape_answers::derive::processes::Ending;
use systape_answers::derive::signals::missing::Lost;
use systape_answers::derive::signals::outcome::{ALREADY_PENDING, IGNORED, OVERFLOW, Taken, blocked, queued};
use systape_answers::derive::signals::via::fault_address;
use systape_answers::derive::signals::{Disposition, EndedTarget, SignalLine, Via, ends, via};
use systape_answers::render::mark;
use systape_events::values::words::{bytes, escaped, span};

/// The effect of the signal on its target.
pub(super) fn verb(record: &SignalLine) -> &'static str {
    match record.outcome {
        _ if record.unseen.is_some() => "died",
        outcome if outcome.cause == EndedTarget::Yes => "killed",
        outcome if outcome.cause != EndedTarget::No => "maybe killed",
        outcome if outcome.stopped => "stopped",
        _ => "signalled",
    }
}

/// Sender and way.
pub(super) fn by(record: &SignalLine) -> String {
    let mut text = String::new();
    let sent = &record.sent;
    // who ran out of memory has its place behind, the parent that ended too
    let named = !matches!(record.via, Via::Oom | Via::OomSharedMm);
    let named = named && !(record.via == Via::Kernel && sent.to_own_process());
    if let Some(sender) = record.sender().filter(|_| named) {
        let own = if sent.to_own_process() { "itself".to_owned() } else { short(sender) };
        let abort = if sent.to_own_process() && sent.event.sig == SIGABRT { " (abort)" } else { "" };
        text.push_str(&format!("by {own}{abort} "));
    }
    if record.sender().is_none() && sent.only_taken() && sent.event.si_pid != 0 {
        text.push_str(&format!("by process {} ", sent.event.si_pid));
    }
    // in which call the sender was is not known of an imported log
    if record.via == Via::Unknown && !text.is_empty() && sent.only_taken() {
        return text.trim_end().to_owned();
    }
    text.push_str("via ");
    text.push_str(record.via.name());
    text.push_str(&detail(record));
    text
}

/// The place of a fault: `address 0x10 at ip 0x55d0`.
pub(super) fn fault(event: &SignalEvent, via: Via) -> String {
    let address = fault_address(event, via).map_or_else(|| "not known".to_owned(), |addr| format!("{addr:#x}"));
    match event.flags & SIGNAL_HANDLER_UNKNOWN != 0 {
        true => format!("address {address}"),
        false => format!("address {address} at ip {:#x}", event.ip),
    }
}

/// Details of the way it was sent.
fn detail(record: &SignalLine) -> String {
    let (sent, event) = (&record.sent, &record.sent.event);
    match record.via {
        Via::Kill => match sent.group() {
            Some(group @ 1) => format!("(-{group}, everyone)"),
            Some(0) => "(0, its own group)".to_owned(),
            Some(group) => format!("(-{group})"),
            None => String::new(),
        },
        Via::Fault => format!(": {}", fault(event, record.via)),
        Via::Sigpipe if !event.call_path.is_empty() => format!(": writing to {}", escaped(&event.call_path)),
        Via::Oom => {
            let short = record.sender().map(|task| format!(": {} ran out of memory", short(task))).unwrap_or_default();
            format!("{short}{}", memory(record))
        }
        Via::OomSharedMm => {
            let victim = record.mark.as_ref().map(|mark| short(&mark.victim)).unwrap_or_default();
            format!(": shares memory with {victim}, which the OOM killer chose")
        }
        _ => String::new(),
    }
}

/// Memory of the OOM killer's victim.
fn memory(record: &SignalLine) -> String {
    let Some(mark) = &record.mark else { return String::new() };
    let m = mark.memory;
    if (m.anon, m.file, m.shmem, m.total_vm) == (0, 0, 0, 0) {
        return String::new();
    }
    format!("; the victim had {} anon, {} file, {} shmem", bytes(m.anon), bytes(m.file), bytes(m.shmem))
}

/// How it ended, after the signal or by itself.
pub(super) fn ending(end: &Ending) -> String {
    let core = if end.core_dumped() { ", core dumped" } else { "" };
    match (end.signal(), end.status()) {
        (Some(sig), _) => format!("died by {}{core}", via::name(sig)),
        (_, status) => format!("exited with {}", status.unwrap_or(0)),
    }
}

/// Why another signal may be the cause.
fn doubt(lost: Lost) -> String {
    match lost.events {
        Some(1) => "; a signal event was lost in between".to_owned(),
        Some(events) => format!("; up to {events} signal events were lost in between"),
        None => "; an unknown number of signal events was lost in between".to_owned(),
    }
}

/// The outcome. `certain`: no event that could show an end is missing.
pub(super) fn outcome(record: &SignalLine, certain: bool) -> String {
    let (outcome, event) = (&record.outcome, &record.sent.event);
    if let Some(end) = record.unseen {
        let core = if end.core_dumped() { "; core dumped" } else { "" };
        return core.trim_start_matches("; ").to_owned();
    }
    let after = |ts: u64| span(ts.saturating_sub(event.ts));
    let mut parts = Vec::new();
    let only_taken = record.sent.only_taken();
    if let Some(end) = outcome.end.filter(|_| outcome.cause != EndedTarget::No) {
        parts.push(match only_taken {
            true => format!("died {} after it took the signal", after(end.ts)),
            false => format!("died after {}", after(end.ts)),
        });
        if end.core_dumped() {
            parts.push("core dumped".to_owned());
        }
        let doubt = if let EndedTarget::Maybe(lost) = outcome.cause { doubt(lost) } else { String::new() };
        return parts.join(", ") + &doubt;
    }
    let taken = |taken: Taken| format!("{}{}", mark::at_most(taken.at_most), after(taken.ts));
    match (event.result, outcome.taken) {
        _ if outcome.stopped && only_taken => parts.push("stopped".to_owned()),
        _ if only_taken => parts.push("taken; when it was sent is not known".to_owned()),
        (IGNORED, _) => parts.push("ignored".to_owned()),
        (ALREADY_PENDING, _) => parts.push("already pending".to_owned()),
        (OVERFLOW, _) => parts.push("not sent, its queue was full".to_owned()),
        (_, Some(it)) if outcome.stopped => parts.push(format!("stopped after {}", taken(it))),
        (_, Some(it)) if it.handler > 1 => parts.push(format!("handled after {}", taken(it))),
        (_, Some(it)) => parts.push(format!("taken after {}", taken(it))),
        (_, None) if blocked(event) => parts.push("blocked, pending".to_owned()),
        (_, None) => parts.push("delivery not recorded".to_owned()),
    }
    // how a process ended hours after a SIGCHLD says nothing
    if ends(event.sig) {
        match outcome.end {
            Some(end) if end.ts < event.ts => parts.push("had ended before".to_owned()),
            Some(end) => parts.push(format!("{} after {}", ending(&end), after(end.ts))),
            None if Disposition::of(event) == Disposition::Default && queued(event) && certain && !only_taken => {
                parts.push("alive at the end of the recording".to_owned());
            }
            None => {}
        }
    }
    parts.join(", ")
}
