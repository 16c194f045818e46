//! The tapes of testdata, and what `analyze` says of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// All of them, in order of their names.
pub fn tapes() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut tapes: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "tape")).collect();
    tapes.sort();
    tapes
}

/// Rows of JSON of `tape`; `words` are the report and its options.
pub fn rows(words: &str, tape: &Path) -> Vec<Value> {
    let words = words.split(' ').filter(|word| !word.is_empty());
    let run =
        Command::new(env!("CARGO_BIN_EXE_analyze")).args(words).args(["--format", "json"]).arg(tape).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let lines = std::str::from_utf8(&run.stdout).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}
