//! The signals of `analyze kills`: a moment at the sender, and one at the target when it came there.

use anyhow::Result;
use systape_abi::signal_name;
use systape_answers::derive::processes::Processes;
use systape_answers::derive::signals::{SignalChoice, SignalLine, Tracker};
use systape_events::families;
use systape_events::values::words::escaped;
use systape_format::model::{Family, Task};

use super::gathered::GatheredProfile;
use super::markers::{MarkerKind, MarkerRow, NOTHING};
use crate::reports::{Context, kills};

/// Most signals; more end or stop processes on no tape that somebody looks at.
const MOST: usize = 10_000;

/// Adds them; the number of those that are left out.
///
/// # Errors
/// Those of the report.
pub(super) fn read(context: &mut Context<'_>, processes: &Processes, profile: &mut GatheredProfile) -> Result<usize> {
    if families::recorded(context.question.tape, Family::Signal) == Some(false) {
        return Ok(0);
    }
    let mut findings = Vec::new();
    let choice = SignalChoice::default();
    let tracker = Tracker::new(processes, &choice, kills::passes(context));
    let records = kills::records(context, tracker, &mut findings)?;
    context.question.loss.findings.extend(findings);
    records.iter().take(MOST).for_each(|record| add(record, profile));
    Ok(records.len().saturating_sub(MOST))
}

fn add(record: &SignalLine, profile: &mut GatheredProfile) {
    let (event, target) = (&record.sent.event, &record.sent.target);
    let name = signal_name(event.sig);
    let taken = record.taken_at().or(record.outcome.end.map(|end| end.ts));
    let sender = record.sender().filter(|_| record.unseen.is_none());
    let whom = |task: &Task| format!("{}/{}", escaped(&task.comm), task.tid);
    let outcome = record.outcome.end.map(|end| match (end.status(), end.signal()) {
        (Some(status), _) => format!("exited with {status}"),
        (None, signal) => format!("killed by {}", signal_name(signal.unwrap_or(0))),
    });
    let fields = [
        sender.map_or(NOTHING, |sender| profile.text(&whom(sender))),
        profile.text(&whom(target)),
        outcome.map_or(NOTHING, |outcome| profile.text(&outcome)),
        NOTHING,
    ];
    let at = |start, name| MarkerRow { start, end: None, name, kind: MarkerKind::Signal, fields, stack: NOTHING };
    let row = at(taken.unwrap_or(event.ts).max(event.ts), profile.text(&name));
    let number = profile.threads.number(target);
    profile.threads.all[number as usize].markers.push(row);
    // when it was sent is not known of an imported log
    if let Some(sender) = sender.filter(|_| !record.sent.only_taken()) {
        let row = at(event.ts, profile.text(&format!("sends {name}")));
        let number = profile.threads.number(sender);
        profile.threads.all[number as usize].markers.push(row);
    }
}
