//! The beginning of the page, readable without scripts: what was recorded, what was lost, what was found, who was killed.

use anyhow::{Result, bail};

use super::answers::{Answer, Asker, Row};
use super::figure::{Column, Kind, list, thousands};
use super::html::Html;
use super::{tables, tape_name};
use crate::reports::{Context, losses as of_reports};
use systape_events::families::is_of_looks;
use systape_events::fired;
use systape_events::values::words::{bytes, span};

/// Most findings.
const FINDINGS: usize = 40;
/// Most lines of where the time went.
const LINES: usize = 8;
/// Most rows of `why` of both kinds, and of what belongs to them.
const MOST_ROWS: usize = 1000;
/// Most kills.
const KILLS: usize = 200;

/// Appends what was recorded; its title.
///
/// # Errors
/// The tape says nothing about itself.
pub(super) fn head(context: &Context<'_>, asker: &Asker<'_>, html: &mut Html) -> Result<String> {
    let mut answer = asker.rows("info", 1);
    let Some(info) = answer.rows.pop() else { bail!("{}", answer.none.unwrap_or_default()) };
    let target = info.word("target").unwrap_or_else(|| "a tape".to_owned());
    let host = info.word("hostname").unwrap_or_else(|| "unknown host".to_owned());
    html.raw("<header id=\"top\"><p class=\"kicker\">systape report</p><h1>")
        .text(&target)
        .raw("</h1><p class=\"sub\">");
    html.text(&host).raw(" · ").text(&info.word("kernel").unwrap_or_default());
    if let Some(cpus) = info.ns("cpus") {
        html.raw(" · ").text(&format!("{cpus} CPUs"));
    }
    if let Some(start) = info.word("start_time") {
        html.raw(" · ").text(&start);
    }
    html.raw("</p><dl class=\"tiles\">");
    let session = context.question.tape.session();
    tile("Recorded", &span(info.ns("duration_ns").unwrap_or(0)), html);
    let events = || info.nested("events").as_object().into_iter().flatten();
    for (kind, count) in events().filter(|(kind, _)| !kind.contains(':')) {
        tile(title(kind), &thousands(count.as_f64().unwrap_or(0.0)), html);
    }
    tile("Tape", &bytes(info.ns("file_bytes").unwrap_or(0)), html);
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
    let lists = |name: &str| Some(list(info.nested(name)));
    fact("Command", lists("command"));
    fact("State", info.word("end_reason"));
    fact("Families", lists("families"));
    let rows = info.nested("events").as_object().into_iter().flatten();
    let rows = rows.filter(|(kind, _)| kind.contains(':')).map(|(kind, count)| format!("{count} {kind}"));
    fact("Rows of tables", Some(rows.collect::<Vec<_>>().join(", ")));
    fact("Labels", lists("labels"));
    fact("Only these calls", lists("selection"));
    fact("Calls counted, not stored", lists("call_filters"));
    fact("Taken out of the tape", lists("redacted"));
    fact("Notes", lists("notes"));
    fact("Kernel", info.word("kernel_version"));
    fact("Machine", info.word("machine"));
    fact("Boot", info.word("boot_id"));
    fact("Ended", info.word("end_time"));
    fact("Recorder", info.word("recorder"));
    fact("Format", info.word("format"));
    fact("Tape id", info.word("tape_id"));
    html.raw("</dl></details>");
}

/// Appends what was lost, and what that means.
pub(super) fn losses(context: &Context<'_>, html: &mut Html) {
    let loss = &context.question.loss;
    html.raw("<section id=\"losses\"><h2>Losses</h2>");
    if loss.complete() && is_of_looks(context.question.tape.session()) {
        html.raw("<p class=\"good\">Nothing was lost. Figures are estimates by looks: in 95 of 100 cases the truth lies between the ");
        html.raw("bounds beside them, and what no look fell into is not there.</p>");
    } else if loss.complete() {
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

/// The findings of `why`.
pub(super) fn findings(context: &Context<'_>, asker: &Asker<'_>) -> Html {
    let mut html = Html::default();
    let answer = asker.rows("why", MOST_ROWS);
    let is = |row: &&Row, kind: &str| row.word("kind").as_deref() == Some(kind);
    let tape = tape_name(context.config);
    budget(answer.rows.iter().filter(|row| is(row, "budget")), &tape, &mut html);
    html.raw("<section id=\"findings\"><h2>Findings</h2>");
    let found: Vec<&Row> = answer.rows.iter().filter(|row| is(row, "finding")).take(FINDINGS).collect();
    if let Some(why) = &answer.none {
        html.raw("<p class=\"note\">").text(why).raw("</p>");
    } else if found.is_empty() {
        html.raw("<p>Nothing slow or broken was found.</p>");
    }
    html.raw("<ol class=\"findings\">");
    for row in found {
        let class = row.word("class").unwrap_or_default();
        html.raw("<li").attr("class", &class).raw("><span class=\"cost\">");
        match (class.as_str(), row.ns("cost_ns")) {
            ("time", Some(_)) if row.ns("cost_lo_ns").is_some() => {
                let [low, high] = ["cost_lo_ns", "cost_hi_ns"].map(|name| span(row.ns(name).unwrap_or(0)));
                html.text(&format!("{low}–{high}"))
            }
            ("time", Some(cost)) => html.text(&format!("{}{}", row.bound("cost_ns"), span(cost))),
            _ => html.text(&class),
        };
        html.raw("</span><div><p>").text(&row.word("text").unwrap_or_default());
        if let (Some(first), Some(last)) = (row.ns("first_ns"), row.ns("last_ns")) {
            html.raw(" <button type=\"button\" class=\"when\"");
            html.attr("data-from", &first.to_string()).attr("data-to", &last.to_string()).raw(">");
            html.text(&format!("{:.3}–{:.3} s", first as f64 / 1e9, last as f64 / 1e9)).raw("</button>");
        }
        html.raw("</p><code>analyze ").text(&row.word("command").unwrap_or_default());
        html.raw(" ").text(&tape).raw("</code></div></li>");
    }
    html.raw("</ol>");
    // losses stand above
    let lost = context.question.loss.lines(context.question.tape.session(), of_reports::LOSS_LINES);
    let rest: Vec<String> = answer.told.into_iter().filter(|line| !lost.contains(line)).collect();
    told(&rest, &mut html);
    html.raw("</section>");
    html
}

/// Where the time of the subject went, in lines of the first level.
fn budget<'r>(rows: impl Iterator<Item = &'r Row>, tape: &str, html: &mut Html) {
    let mut rows = rows.filter(|row| row.ns("level") == Some(1)).take(LINES).peekable();
    if rows.peek().is_none() {
        return;
    }
    html.raw("<section id=\"budget\"><h2>Where the time went</h2><ol class=\"findings\">");
    for row in rows {
        html.raw("<li><span class=\"cost\">");
        html.text(&format!("{}{}", row.bound("cost_ns"), span(row.ns("cost_ns").unwrap_or(0))));
        html.raw("</span><div><p>").text(&row.word("text").unwrap_or_default()).raw("</p></div></li>");
    }
    html.raw("</ol><code>analyze path --sums ").text(tape).raw("</code></section>");
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
    Column { name: "sender", heading: "From", kind: Kind::Party },
    Column { name: "via", heading: "By", kind: Kind::Text },
    Column { name: "target", heading: "To", kind: Kind::Party },
    Column { name: "outcome", heading: "What came of it", kind: Kind::Outcome },
];

/// Appends who was killed, of the answer of `kills`.
pub(super) fn kills(mut answer: Answer, html: &mut Html) {
    answer.more += answer.rows.len().saturating_sub(KILLS) as u64;
    answer.rows.truncate(KILLS);
    html.raw("<section id=\"kills\"><h2>Signals and deaths</h2>");
    if let Some(why) = &answer.none {
        html.raw("<p class=\"note\">").text(why).raw("</p>");
    } else if answer.rows.is_empty() {
        html.raw("<p>No signal ended or stopped a process.</p>");
    }
    tables::notes(&answer, html);
    if !answer.rows.is_empty() {
        tables::table(COLUMNS, &answer.rows, html);
        tables::foot(&answer, html);
    }
    html.raw("</section>");
}
