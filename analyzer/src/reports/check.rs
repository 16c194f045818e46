//! `analyze check`: reads every byte of a tape and reports whether it is sound.
//!
//! Three grades: good (exit 0), usable with holes that are listed, and not a tape (exit 1 both).

use std::io::{Write as _, stderr};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use systape_format::model::Family;
use systape_format::reader::{Tape, TapeFault};
use systape_format::repair::{Holes, Lost, TapeHole, holes};

use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Rows, View};
use systape_answers::render::cell::Cell;
use systape_answers::render::form::Form;
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::loss::{family_name, finding_text, seconds};
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row: what was found.
    pub CHECK = "check" {
        file: Str [Path] "the file"
        grade: Word "`good`, `usable`, or `not a tape`: then nothing but `findings` is known"
        clean_end: Flag "the recording was ended, not cut off"
        complete_until_ns: Time "until when everything is there"
        end_reason: Word "why the recording ended; null: there is no end mark"
        segments: Count "segments that can be found"
        bytes: Wide "size of the file"
        findings: Nested "`[{offset, text}]`: every byte that is against the rules"
        holes: Nested "`[{what, from_ns, to_ns, segments, at_least}]`: what is lost in words; from when to when (null: not known, or without end); the numbers of the first and the last segment (null: of none); the families whose totals are at least (`[\"unknown\"]`: all). At most 1,000"
        more_holes: Count "how many more there are"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "check",
    about: "Whether every byte of the tape is sound",
    examples: [("analyze check t.tape", "good, usable or not a tape"), ("analyze check --format json", "one object")],
    tables: &[Rows::of("check", &[All(&CHECK)])],
    run: AnswerFn::Judges { run, not_a_tape },
    ..View::PLAIN
};

/// Checks the tape and prints the result.
pub(crate) fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let bar = progress("checking", tape.len_bytes());
    let found = tape.verify(&|done| bar.set_position(done));
    let good = found.is_empty() && tape.end_mark().is_some();
    // A repaired tape has nothing that cannot be read: what it lacks is in its gaps.
    let holes = if good { Holes::default() } else { holes(tape, &|done| bar.set_position(done)) };
    bar.finish_and_clear();
    let name = config.file.display().to_string();
    if out.is_text() {
        text(out, &name, tape, &found, &holes, good)?;
    } else {
        let found: Vec<_> = found.iter().map(|f| json!({"offset": f.offset.to_string(), "text": f.text})).collect();
        let mut row = Row::new(&CHECK);
        row.set("file", name).set("grade", grade(good)).set("clean_end", tape.end().is_some());
        row.set("complete_until_ns", tape.complete_until().wrapping_sub(tape.session().window_open) as i64);
        row.set("end_reason", tape.end_mark().map(|end| end.reason.clone()));
        row.set("segments", tape.segments().len()).set("bytes", tape.len_bytes());
        row.set("findings", Value::from(found)).set("holes", holes_json(tape, &holes));
        row.set("more_holes", holes.more);
        out.rows(&CHECK, Judgement::Each, [row])?;
    }
    out.flush()?;
    Ok(Verdict { lost: !good, bad: !good })
}

/// Reports that a file is no tape, and why: as an error, or as a record.
pub(crate) fn not_a_tape(config: &Config, why: &str, out: &mut Out) -> Result<Verdict> {
    let name = config.file.display().to_string();
    if config.format.rows() != Some(Form::Json) {
        bail!("{name}: not a tape: {why}");
    }
    let mut row = Row::new(&CHECK);
    row.set("file", name).set("grade", "not a tape").set("clean_end", Cell::Null).set("complete_until_ns", Cell::Null);
    row.set("end_reason", Cell::Null).set("segments", Cell::Null).set("bytes", Cell::Null);
    row.set("findings", json!([{"offset": "0", "text": why}])).set("holes", json!([])).set("more_holes", Cell::Null);
    out.rows(&CHECK, Judgement::Each, [row])?;
    out.flush()?;
    Ok(Verdict { lost: true, bad: true })
}

/// The grade of a tape.
pub(crate) fn grade(good: bool) -> &'static str {
    if good { "good" } else { "usable" }
}

fn text(out: &mut Out, name: &str, tape: &Tape, found: &[TapeFault], holes: &Holes, good: bool) -> Result<()> {
    let size = format!("{} segments, {} bytes", tape.segments().len(), tape.len_bytes());
    if good {
        line(out, &format!("{name}: good: {size}; every hash, index and order holds"))?;
        if let Some(end) = tape.end_mark().filter(|end| tape.end().is_none() || end.reason.contains("repaired from")) {
            line(out, &format!("  {}", escaped(end.reason.as_bytes())))?;
            line(out, "  what was lost before stays lost: 'analyze info' counts it, affected totals are lower bounds")?;
        }
        return Ok(());
    }
    let count = match holes.count() {
        0 => "usable".to_owned(),
        1 => "usable with this hole".to_owned(),
        count => format!("usable with these {count} holes"),
    };
    line(out, &format!("{name}: {count}: {size}"))?;
    holes_text(out, tape, holes)?;
    if !found.is_empty() {
        line(out, "What was found, by offset:")?;
    }
    for finding in found {
        line(out, &format!("  {}", finding_text(finding)))?;
    }
    line(out, "What is whole can be analyzed: reports skip the holes and mark affected numbers with >=.")?;
    if tape.is_being_written() {
        return Ok(());
    }
    line(
        out,
        "'analyze repair IN OUT' copies it into a clean tape. If the tape was copied, compare it with the original.",
    )?;
    Ok(())
}

/// A line for each hole: its kind, its time, and the totals that are "at least".
pub(crate) fn holes_text(out: &mut Out, tape: &Tape, holes: &Holes) -> Result<()> {
    for hole in &holes.list {
        let mut text = format!("  {}", what(tape, hole));
        if let Some((from, to)) = hole.span {
            let session = tape.session();
            text += &match to {
                u64::MAX => format!(": complete until {} s", seconds(from, session)),
                to => format!(", {}–{} s", seconds(from, session), seconds(to, session)),
            };
        }
        text += match at_least(hole).as_slice() {
            [] => "; no total is touched".to_owned(),
            ["unknown"] => "; totals are lower bounds".to_owned(),
            names => format!("; totals of {} are lower bounds", names.join(", ")),
        }
        .as_str();
        line(out, &text)?;
    }
    if holes.more > 0 {
        line(out, &format!("  ... and {} more holes", holes.more))?;
    }
    Ok(())
}

/// Holes as JSON; at an unknown time `from_ns` and `to_ns` are null, and `to_ns` also without an end.
pub(crate) fn holes_json(tape: &Tape, holes: &Holes) -> Value {
    let ns = |ts: u64| ts.wrapping_sub(tape.session().window_open) as i64;
    let hole = |hole: &TapeHole| {
        json!({
            "what": what(tape, hole),
            "from_ns": hole.span.map(|(from, _)| ns(from)),
            "to_ns": hole.span.filter(|(_, to)| *to < u64::MAX).map(|(_, to)| ns(to)),
            "segments": hole.segments.map(|(first, last)| [first, last]),
            "at_least": at_least(hole),
        })
    };
    holes.list.iter().map(hole).collect()
}

/// A hole in words.
fn what(tape: &Tape, hole: &TapeHole) -> String {
    match (&hole.lost, hole.segments) {
        (Lost::Session, _) => "the session: what was recorded, where and how".to_owned(),
        (Lost::Segments, Some((first, last))) if first < last => format!("segments {first} to {last}"),
        (Lost::Segments, segments) => format!("segment {}", segments.unwrap_or_default().0),
        (Lost::Groups(kinds), segments) => {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            format!("{} of segment {}", names.join(", "), segments.unwrap_or_default().0)
        }
        (Lost::Checkpoint, _) => "a checkpoint".to_owned(),
        (Lost::Symbols, _) => "a block of names".to_owned(),
        (Lost::End, _) if tape.is_being_written() => "the end: the tape is still being written".to_owned(),
        (Lost::End, _) => "the end: the recording ended abnormally".to_owned(),
        (Lost::Elsewhere, _) => "something at an unknown place".to_owned(),
    }
}

fn at_least(hole: &TapeHole) -> Vec<&'static str> {
    // That all are touched says more than any one of them.
    match hole.families.contains(&Family::Unknown) {
        true => vec![family_name(Family::Unknown)],
        false => hole.families.iter().map(|family| family_name(*family)).collect(),
    }
}

/// A bar on a terminal; nothing elsewhere.
pub(crate) fn progress(what: &'static str, len: u64) -> ProgressBar {
    let target = if systape_cli::takes_escapes(&stderr()) {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}") {
        bar.set_style(style);
    }
    bar.with_message(what)
}
