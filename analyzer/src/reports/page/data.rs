//! The data of the page's charts, and the places that its scripts fill.

use anyhow::Result;
use serde_json::{Value, json};
use systape_format::model::{Family, Gap};

use super::answers::{Answer, Asker, Row};
use super::html::Html;
use super::stacks::Span;
use super::text::visible;
use super::{SLICES, call_rows, calls_over_time, disks, figure, stacks, threads, tree};
use crate::reports::{Context, idle};
use systape_answers::derive::summary::plan::Slices;
use systape_events::families;
use systape_events::loss::{cause_text, family_name};

/// Most marks of one kind on the time line.
pub(super) const MARKS: usize = 2000;

/// Everything that scripts show; `kills`: the answer of that view.
pub(super) fn charts(context: &Context<'_>, asker: &Asker<'_>, slices: Slices, kills: &Answer) -> Result<Value> {
    let tape = context.question.tape;
    let session = tape.session();
    let to = context.question.scope.to.min(tape.complete_until());
    let folds = idle::of_machine(tape);
    let count = usize::from(SLICES);
    let has = |family| families::recorded(tape, family) == Some(true);
    let calls = has(Family::Syscall).then(|| calls_over_time::calls(context, slices, SLICES.into())).transpose()?;
    let threads = has(Family::Sched).then(|| threads::threads(context, slices, count, to)).transpose()?;
    let disks = if has(Family::Block) { disks::disks(context, slices, count)? } else { Value::Null };
    let span = Span {
        slices: since(slices, session.window_open),
        count: SLICES.into(),
        to: context.question.scope.timed().then(|| to.saturating_sub(session.window_open)),
    };
    Ok(json!({
        "from": slices.from.wrapping_sub(session.window_open).cast_signed(),
        "width": slices.width,
        "slices": SLICES,
        "to": to.wrapping_sub(session.window_open).cast_signed(),
        "cpus": session.cpus,
        "rows": has(Family::Syscall).then(|| call_rows::calls(context, asker, folds)).transpose()?,
        "calls": calls,
        "threads": threads,
        "disks": disks,
        "marks": {"kills": signals(kills), "losses": losses(context)},
        "graphs": stacks::graphs(asker, span, folds),
        "path": tree::path(asker, &session.target, since(slices, session.window_open)),
        "processes": tree::processes(asker),
    }))
}

/// The same slices by time since the start of the recording.
fn since(slices: Slices, open: u64) -> Slices {
    Slices { from: slices.from.wrapping_sub(open), ..slices }
}

/// Signals and deaths.
fn signals(answer: &Answer) -> Value {
    let mark = |row: &Row| {
        let party = |name: &str| figure::party(row, name).unwrap_or_else(|| "?".to_owned());
        let signal = row.word("signal_name").unwrap_or_else(|| "death".to_owned());
        let text = format!("{signal} {} → {}", party("sender"), party("target"));
        json!({"at": row.json("ts_ns"), "text": visible(&text), "signal": row.ns("signal")})
    };
    answer.rows.iter().map(mark).collect()
}

/// Stretches of time in which events are missing.
fn losses(context: &Context<'_>) -> Value {
    let open = context.question.tape.session().window_open;
    let since = |ts: u64| ts.wrapping_sub(open).cast_signed();
    let mark = |gap: &Gap| {
        let count = if gap.count == 0 { String::new() } else { format!("{} ", gap.count) };
        let what = if gap.ledger { "only counted" } else { "lost" };
        let text = format!("{count}{} events {what}: {}", family_name(gap.family), cause_text(gap.cause));
        json!({"from": since(gap.first), "to": since(gap.last.max(gap.first)), "text": text})
    };
    context.question.loss.gaps.iter().take(MARKS).map(mark).collect()
}

/// Appends the places of the charts: empty without scripts, and then not shown.
pub(super) fn places(html: &mut Html) {
    html.raw(PLACES);
}

const PLACES: &str = r#"
<section id="time" class="scripted" hidden><h2>Time line</h2>
<p class="hint">Drag over any chart to choose a stretch of time: everything below follows. Double-click or Esc shows all.</p>
<div id="charts"></div></section>
<section id="path" class="scripted" hidden><h2>Critical path</h2><div id="path-view"></div></section>
<section id="flames" class="scripted" hidden><h2>Flame graphs</h2><div id="flame-view"></div></section>
<section id="processes" class="scripted" hidden><h2>Processes</h2><div id="tree-view"></div></section>
<section id="calls" class="scripted" hidden><h2>Single calls</h2><div id="call-view"></div></section>
<noscript><p class="note">The time line, flame graphs and single calls need scripts; they load nothing from anywhere.</p></noscript>
"#;
