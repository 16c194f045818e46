//! What was recorded in full beside looks (`record --escalate`): tapes of their own, `day.full-1.tape` beside `day.tape`.
//!
//! Where such a tape lies beside, reports take its exact rows for its time, and no look of that time: rows of both are never added up.

use std::path::{Path, PathBuf};

use anyhow::Result;
use systape_answers::derive::looks::walk::asked;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::render::table::seconds;
use systape_answers::values::open::open;
use systape_answers::values::say::Verdict;
use systape_events::fired::{Fired, escalated};
use systape_events::values::words::escaped;
use systape_format::reader::Tape;

use super::super::{Context, losses};
use crate::asked::config::Config;

/// Most lines about full recordings.
const MOST: usize = 4;
/// Most tapes that are read beside one of looks.
const MOST_READ: usize = 16;
/// A full recording begins within this time after the look that found something wrong, ns.
const SOON: u64 = 5_000_000_000;

/// A full recording in the time asked for.
#[derive(Debug)]
pub(in crate::reports) struct FullRecording {
    /// The tape of it.
    pub tape: Tape,
    /// Where that is.
    path: PathBuf,
    /// The time that it is about.
    pub span: (u64, u64),
}

/// Files that may be full recordings beside the tape of `config`, by their names.
pub(in crate::reports) fn files(config: &Config) -> Vec<PathBuf> {
    let (Some(stem), Some(dir)) = (config.file.file_stem(), config.file.parent()) else { return Vec::new() };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let begin = [stem.as_encoded_bytes(), b".full-"].concat();
    let is = |path: &PathBuf| {
        path.extension() == config.file.extension()
            && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(&begin))
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is).collect();
    found.sort();
    found.truncate(MOST_READ);
    found
}

/// The full recordings beside the tape of `context` that lie in the time asked for as a whole, in order of time. CSV has rows of one kind only, so it
/// has none.
pub(in crate::reports) fn beside(context: &Context<'_>) -> Vec<FullRecording> {
    let (config, looks) = (context.config, context.question.tape);
    if config.format == Format::Csv {
        return Vec::new();
    }
    let (from, to) = asked(&context.question);
    // they lie beside it, wherever it was moved to
    let of = |fired: Fired| {
        let name = String::from_utf8_lossy(&fired.name).into_owned();
        let path = config.file.with_file_name(Path::new(&name).file_name()?);
        let tape = open(&path).ok()?;
        let session = tape.session();
        let span = (session.window_open, tape.complete_until());
        // another recording may have made a file of that name
        let is_its = session.boot_id == looks.session().boot_id && span.0.abs_diff(fired.ts) < SOON;
        (is_its && from <= span.0 && span.1 <= to).then_some(FullRecording { tape, path, span })
    };
    let mut found: Vec<FullRecording> = escalated(looks).into_iter().take(MOST_READ).filter_map(of).collect();
    found.sort_by_key(|full| full.span);
    found
}

impl FullRecording {
    /// Prints the exact rows of it, by `run`, below a heading that says whose they are.
    pub(in crate::reports) fn print(
        &self,
        context: &Context<'_>,
        run: impl Fn(&Config, &Tape, &mut Out) -> Result<Verdict>,
        out: &mut Out,
    ) -> Result<Verdict> {
        let open = context.question.tape.session().window_open;
        let name = escaped(self.path.as_os_str().as_encoded_bytes());
        let [begin, end] = [self.span.0, self.span.1].map(|ts| seconds(ts, open));
        let text = format!("exactly, of {name}: {begin} to {end} s, no look of which is counted:");
        if out.is_text() {
            out.text([String::new(), text])?
        } else {
            out.say(&text)
        }
        let mut config = context.config.clone();
        config.file.clone_from(&self.path);
        config.filters.time = (None, None);
        let verdict = run(&config, &self.tape, out)?;
        Ok(losses::damage(self.tape.misses(), verdict, out))
    }
}

/// The times of `full`.
pub(in crate::reports) fn spans(full: &[FullRecording]) -> Vec<(u64, u64)> {
    full.iter().map(|full| full.span).collect()
}

/// A line for each full recording that began in the time asked for.
pub(in crate::reports) fn notes(context: &Context<'_>) -> Vec<String> {
    let tape = context.question.tape;
    let (from, to) = asked(&context.question);
    let stamps = context.stamps();
    let all: Vec<_> = escalated(tape).into_iter().filter(|fired| (from..=to).contains(&fired.ts)).collect();
    let line = |fired: &Fired| {
        // what follows the words is how soon it began
        let what = fired.what.split(|byte| *byte == b';').next().unwrap_or_default();
        let (name, trigger) = (escaped(&fired.name), escaped(&fired.trigger));
        format!("{name} has everything, begun {} for {trigger}: {}", stamps.at(fired.ts), escaped(what))
    };
    let mut lines: Vec<String> = all.iter().take(MOST).map(line).collect();
    if all.len() > MOST {
        lines.push(format!("{} more full recordings: analyze -e record:trigger", all.len() - MOST));
    }
    lines
}
