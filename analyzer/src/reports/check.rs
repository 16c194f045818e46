//! `analyze check`: reads every byte of a tape and says whether it is sound.
//!
//! Three grades: good (exit 0), usable with holes that are listed, and not a tape, which is told on opening (exit 1 both).

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _, stderr};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use systape_format::reader::{Finding, Tape};

use crate::args::Format;
use crate::config::Config;
use crate::loss::{self, finding_text};
use crate::output::{self, line};
use crate::render::csv;
use crate::run::Verdict;

/// Checks the tape and prints what it found.
pub fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let bar = progress(tape.len_bytes());
    let found = tape.verify(&|done| bar.set_position(done));
    bar.finish_and_clear();
    let name = config.file.display().to_string();
    let good = found.is_empty() && tape.end().is_some();
    let mut out = output::stdout()?;
    match config.format {
        Format::Text => text(&mut out, &name, tape, &found, good)?,
        Format::Json => {
            let grade = if good { "good" } else { "usable" };
            let found: Vec<_> = found.iter().map(|f| json!({"offset": f.offset.to_string(), "text": f.text})).collect();
            let end = tape.complete_until().wrapping_sub(tape.session().window_open) as i64;
            let object = json!({
                "file": name, "grade": grade, "clean_end": tape.end().is_some(), "complete_until_ns": end,
                "segments": tape.segments().len(), "bytes": tape.len_bytes().to_string(), "findings": found,
            });
            line(&mut out, &object.to_string())?;
        }
        Format::Csv => {
            line(&mut out, "offset,text")?;
            for finding in &found {
                let mut fields = format!("{},", finding.offset).into_bytes();
                csv::field(&mut fields, finding.text.as_bytes());
                fields.push(b'\n');
                out.write_all(&fields)?;
            }
        }
    }
    out.flush()?;
    Ok(Verdict { lost: !good, bad: !good })
}

fn text(out: &mut BufWriter<File>, name: &str, tape: &Tape, found: &[Finding], good: bool) -> Result<()> {
    let size = format!("{} segments, {} bytes", tape.segments().len(), tape.len_bytes());
    if good {
        line(out, &format!("{name}: good: {size}; every hash, index and order holds"))?;
        return Ok(());
    }
    let holes = match found.len() {
        0 => "usable".to_owned(),
        1 => "usable with this hole".to_owned(),
        count => format!("usable with these {count} holes"),
    };
    line(out, &format!("{name}: {holes}: {size}"))?;
    for finding in found {
        line(out, &format!("  {}", finding_text(finding)))?;
    }
    if tape.end().is_none() {
        let until = loss::seconds(tape.complete_until(), tape.session());
        line(out, &format!("  the recording ended abnormally; it is complete until {until} s"))?;
    }
    line(
        out,
        "What is whole can be analyzed: reports read around the holes and say \"at least\" where one touches them.",
    )?;
    line(out, "If the tape was copied, compare it with the original; 'analyze info' shows which times it covers.")?;
    Ok(())
}

/// A bar on a terminal; nothing elsewhere.
fn progress(len: u64) -> ProgressBar {
    let target =
        if stderr().is_terminal() { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(len), target);
    if let Ok(style) = ProgressStyle::with_template("checking {bar:40} {bytes}/{total_bytes}") {
        bar.set_style(style);
    }
    bar
}
