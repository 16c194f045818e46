//! The beginning of the page, readable without scripts: what was recorded, what was lost, what was found, who was killed.

use anyhow::{Result, bail};
use serde_json::Value;

use super::answers::{Asker, Row, ns, text_of, word};
use super::figure::{Column, Kind, bound, list, thousands};
use super::html::Html;
use super::{tables, tape_name};
use crate::reports::{Context, losses as of_reports};
use crate::table::fired;
use crate::values::words::{bytes, span};

/// Most findings.
const FINDINGS: usize = 40;
/// Most kills.
const KILLS: usize = 200;

/// Appends what was recorded; its title.
///
/// # Errors
/// The tape says nothing about itself.
pub(super) fn head(context: &Context<'_>, asker: &Asker<'_>, html: &mut Html) -> Result<String> {
    let mut answer = asker.rows("info", 1);
    let Some(info) = answer.rows.pop() else { bail!("{}", answer.none.unwrap_or_default()) };
    let target = word(&info, "target").unwrap_or_else(|| "a tape".to_owned());
    let host = word(&info, "hostname").unwrap_or_else(|| "unknown host".to_owned());
    html.raw("<header id=\"top\"><p class=\"kicker\">systape report</p><h1>")
        .text(&target)
        .raw("</h1><p class=\"sub\">");
    html.text(&host).raw(" · ").text(&word(&info, "kernel").unwrap_or_default());
    if let Some(cpus) = ns(&info, "cpus") {
        html.raw(" · ").text(&format!("{cpus} CPUs"));
    }
    if let Some(start) = word(&info, "start_time") {
        html.raw(" · ").text(&start);
    }
    html.raw("</p><dl class=\"tiles\">");
    let session = context.question.tape.session();
    tile("Recorded", &span(ns(&info, "duration_ns").unwrap_or(0)), html);
    let events = || info.get("events").and_then(Value::as_object).into_iter().flatten();
    for (kind, count) in events().filter(|(kind, _)| !kind.contains(':')) {
        tile(title(kind), &thousands(count.as_f64().unwrap_or(0.0)), html);
    }
    tile("Tape", &bytes(ns(&info, "file_bytes").unwrap_or(0)), html);
    html.raw("</dl>");
    if let Some(text) = fired::summary(&fired::fired(context.question.tape), session.window_open) {
        html.raw("<p class=\"fired\"><strong>Triggered by</strong> ").text(&text).raw("</p>");
    }
    if context.question.scope.timed() {
        let seconds = |ts: u64| ts.saturating_sub(session.window_open) as f64 / 1e9;
        let (from, to) = (context.question.scope.from, context.question.scope.to);
        let to = to.min(context.question.tape.complete_until());
        html.raw("<p class=\"fired\"><strong>Only a part of the tape:</strong> ");
        html.text(&format!("{:.3} s to {:.3} s", seconds(from), seconds(to))).raw("</p>");
    }
    facts(&info, html);
    html.raw("</header>");
    Ok(format!("{target} · {host}"))
}

/// The heading of a kind of events.
fn title(kind: &str) -> &str {
    match kind {
        "syscall" => "Calls",
        "sched" => "Switches, wake-ups",
        "process" => "Forks, execs, exits",
        "block" => "Block I/Os",
        "signal" => "Signals",
        "net" => "Socket events",
        "sample" => "CPU samples",
        other => other,
    }
}

fn tile(name: &str, value: &str, html: &mut Html) {
    html.raw("<div>").element("dt", name).element("dd", value).raw("</div>");
}

/// What few people need.
fn facts(info: &Row, html: &mut Html) {
    html.raw("<details class=\"facts\"><summary>About the recording</summary><dl>");
    let mut fact = |name: &'static str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            html.element("dt", name).element("dd", &value);
        }
    };
    let lists = |name: &str| info.get(name).map(list);
    fact("Command", lists("command"));
    fact("State", word(info, "end_reason"));
    fact("Families", lists("families"));
    let rows = info.get("events").and_then(Value::as_object).into_iter().flatten();
    let rows = rows.filter(|(kind, _)| kind.contains(':')).map(|(kind, count)| format!("{count} {kind}"));
    fact("Rows of tables", Some(rows.collect::<Vec<_>>().join(", ")));
    fact("Labels", lists("labels"));
    fact("Only these calls", lists("selection"));
    fact("Calls counted, not stored", lists("call_filters"));
    fact("Taken out of the tape", lists("redacted"));
    fact("Notes", lists("notes"));
    fact("Kernel", word(info, "kernel_version"));
    fact("Machine", word(info, "machine"));
    fact("Boot", word(info, "boot_id"));
    fact("Ended", word(info, "end_time"));
    fact("Recorder", word(info, "recorder"));
    fact("Format", word(info, "format"));
    fact("Tape id", word(info, "tape_id"));
    html.raw("</dl></details>");
}

/// Appends what was lost, and what that means.
pub(super) fn losses(context: &Context<'_>, html: &mut Html) {
    let loss = &context.question.loss;
    html.raw("<section id=\"losses\"><h2>Losses</h2>");
    if loss.complete() {
        html.raw("<p class=\"good\">Nothing was lost: figures are exact unless they have a mark of their own.</p>");
    } else {
        html.raw("<p class=\"bad\">Events are missing. Figures with <b>&gt;=</b> are lower bounds, with <b>&lt;=</b> upper bounds; ");
        html.raw("figures with <b>~</b> cover known events only.</p><ul>");
        for line in loss.lines(context.question.tape.session(), of_reports::LOSS_LINES) {
            html.element("li", &line);
        }
        html.raw("</ul>");
    }
    html.raw("</section>");
}

/// Appends the findings of `why`.
pub(super) fn findings(context: &Context<'_>, asker: &Asker<'_>, html: &mut Html) {
    let answer = asker.rows("why", FINDINGS);
    html.raw("<section id=\"findings\"><h2>Findings</h2>");
    if let Some(why) = &answer.none {
        html.raw("<p class=\"note\">").text(why).raw("</p>");
    } else if answer.rows.is_empty() {
        html.raw("<p>Nothing slow or broken was found.</p>");
    }
    let tape = tape_name(context.config);
    html.raw("<ol class=\"findings\">");
    for row in &answer.rows {
        let class = word(row, "class").unwrap_or_default();
        html.raw("<li").attr("class", &class).raw("><span class=\"cost\">");
        match (class.as_str(), ns(row, "cost_ns")) {
            ("time", Some(cost)) => html.text(&format!("{}{}", bound(row, "cost_ns"), span(cost))),
            _ => html.text(&class),
        };
        html.raw("</span><div><p>").text(&word(row, "text").unwrap_or_default());
        if let (Some(first), Some(last)) = (ns(row, "first_ns"), ns(row, "last_ns")) {
            html.raw(" <button type=\"button\" class=\"when\"");
            html.attr("data-from", &first.to_string()).attr("data-to", &last.to_string()).raw(">");
            html.text(&format!("{:.3}–{:.3} s", first as f64 / 1e9, last as f64 / 1e9)).raw("</button>");
        }
        html.raw("</p><code>analyze ").text(&word(row, "command").unwrap_or_default());
        html.raw(" ").text(&tape).raw("</code></div></li>");
    }
    html.raw("</ol>");
    // losses stand above
    let lost = context.question.loss.lines(context.question.tape.session(), of_reports::LOSS_LINES);
    let rest: Vec<String> = answer.told.into_iter().filter(|line| !lost.contains(line)).collect();
    told(&rest, html);
    html.raw("</section>");
}

fn told(told: &[String], html: &mut Html) {
    if told.is_empty() {
        return;
    }
    html.raw("<ul class=\"muted\">");
    told.iter().for_each(|line| _ = html.element("li", line));
    html.raw("</ul>");
}

/// Columns of kills.
static COLUMNS: &[Column] = &[
    Column { name: "ts_ns", heading: "At", kind: Kind::Time },
    Column { name: "signal_name", heading: "Signal", kind: Kind::Text },
    Column { name: "sender", heading: "From", kind: Kind::Text },
    Column { name: "via", heading: "By", kind: Kind::Text },
    Column { name: "target", heading: "To", kind: Kind::Text },
    Column { name: "outcome", heading: "What came of it", kind: Kind::Text },
];

/// Appends who was killed.
pub(super) fn kills(asker: &Asker<'_>, html: &mut Html) {
    let mut answer = asker.rows("kills", KILLS);
    html.raw("<section id=\"kills\"><h2>Signals and deaths</h2>");
    if let Some(why) = &answer.none {
        html.raw("<p class=\"note\">").text(why).raw("</p>");
    } else if answer.rows.is_empty() {
        html.raw("<p>No signal ended or stopped a process.</p>");
    }
    tables::notes(&answer, html);
    for row in &mut answer.rows {
        for name in ["sender", "target"] {
            let party = row.get(name).and_then(Value::as_object).map(party);
            row.insert(name.to_owned(), party.map_or(Value::Null, Value::from));
        }
        let outcome = row.get("outcome").and_then(Value::as_object).map(outcome);
        row.insert("outcome".to_owned(), outcome.map_or(Value::Null, Value::from));
    }
    if !answer.rows.is_empty() {
        tables::table(COLUMNS, &answer.rows, html);
        tables::foot(&answer, html);
    }
    html.raw("</section>");
}

/// `sh 127`.
pub(super) fn party(party: &Row) -> String {
    let text = |name: &str| party.get(name).and_then(text_of).unwrap_or_else(|| "?".to_owned());
    format!("{} {}", text("comm"), text("pid"))
}

/// `ended by signal 15 after 2.634 ms`.
fn outcome(outcome: &Row) -> String {
    let is = |name: &str| outcome.get(name).and_then(Value::as_bool) == Some(true);
    let mut text = match (ns(outcome, "exit_signal"), ns(outcome, "exit_code")) {
        (Some(signal), _) => format!("ended by signal {signal}"),
        (None, Some(code)) => format!("exited with {code}"),
        (None, None) if is("exited") => "ended".to_owned(),
        (None, None) if is("stopped") => "stopped".to_owned(),
        (None, None) => "no end is known".to_owned(),
    };
    if let Some(latency) = ns(outcome, "latency_ns") {
        text.push_str(&format!(" after {}", span(latency)));
    }
    if is("core_dumped") {
        text.push_str(", with a core dump");
    }
    text
}
