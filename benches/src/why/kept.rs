//! Runs that were kept (`--keep`), judged again (`--again`) by another `analyze`: the same tapes, the same times.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::answer::Answer;
use super::pattern::RunFacts;
use super::run::{Runs, Told, tape};
use crate::stats::Samples;

fn notes(dir: &Path, case: &str) -> PathBuf {
    dir.join(format!("{case}.runs.json"))
}

/// Keeps what was measured beside the tapes.
pub(crate) fn write(dir: &Path, case: &str, runs: &Runs) -> Result<()> {
    let told =
        runs.told.iter().map(|told| json!({"facts": told.facts.pairs(), "wall": told.wall, "others": told.others}));
    let told: Vec<_> = told.collect();
    let walls = [&runs.on, &runs.off, &runs.bare_on, &runs.bare_off].map(Samples::all);
    let file = notes(dir, case);
    let text = json!({"walls": walls, "told": told}).to_string();
    fs::write(&file, text).with_context(|| file.display().to_string())
}

/// What was kept of a case, with the answers of this `analyze`; absent when nothing was.
///
/// # Errors
/// A file is not what [`write`] made of it, or a tape is missing.
pub(crate) fn read(dir: &Path, case: &str, analyze: &Path) -> Result<Option<Runs>> {
    let file = notes(dir, case);
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let value: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
    let runs = runs(&value, |pair| Ok(Answer::ask(analyze, &tape(dir, case, pair))?.0));
    runs.with_context(|| file.display().to_string()).map(Some)
}

fn runs(value: &Value, mut ask: impl FnMut(usize) -> Result<Answer>) -> Result<Runs> {
    let walls = |i: usize| -> Samples {
        let all = value["walls"][i].as_array().into_iter().flatten().filter_map(Value::as_f64);
        let mut samples = Samples::default();
        all.for_each(|wall| samples.push(wall));
        samples
    };
    let mut runs = Runs { on: walls(0), off: walls(1), bare_on: walls(2), bare_off: walls(3), told: Vec::new() };
    for (pair, told) in value["told"].as_array().context("no told")?.iter().enumerate() {
        let number = |key: &str| told[key].as_f64().with_context(|| format!("no {key}"));
        let facts: Vec<(String, String)> = serde_json::from_value(told["facts"].clone())?;
        let (wall, others) = (number("wall")?, number("others")?);
        runs.told.push(Told { facts: RunFacts::from(facts), wall, others, answer: ask(pair)? });
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let samples = |values: &[f64]| {
            let mut samples = Samples::default();
            values.iter().for_each(|v| samples.push(*v));
            samples
        };
        let told = Told { facts: RunFacts::of(7, "lock 0x10\n"), wall: 1.5, others: 0.25, answer: Answer::default() };
        let kept = Runs { on: samples(&[1.5, 1.0]), off: samples(&[0.5]), told: vec![told], ..Runs::default() };
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "x", &kept).expect("written");
        let text = fs::read_to_string(notes(dir.path(), "x")).expect("a file");
        let again = runs(&serde_json::from_str(&text).expect("JSON"), |_| Ok(Answer::default())).expect("runs");
        assert_eq!((again.on.all(), again.off.all(), again.bare_on.all()), (kept.on.all(), kept.off.all(), &[][..]));
        assert_eq!(again.told[0].facts.pairs(), kept.told[0].facts.pairs());
        assert_eq!((again.told[0].wall, again.told[0].others), (1.5, 0.25));
        assert!(read(dir.path(), "other", Path::new("/none")).expect("nothing").is_none());
        assert!(read(dir.path(), "x", Path::new("/none")).is_err(), "its tape is missing");
    }
}
