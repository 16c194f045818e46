//! Recorded tapes that every later `analyze` must read the same: testdata/tapes/NAME.tape, and beside each what the
//! listing, the summary, `info` and `check` print; of stacks-*.tape the call graph of calls, too. `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze tapes::` writes the texts
//! anew; the tapes themselves are never made again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use systape_format::Tape;
use systape_format::header::MINOR;

const REPORTS: [(&str, &[&str]); 4] =
    [("listing", &[]), ("summary", &["--summary"]), ("info", &["info"]), ("check", &["check"])];

/// Of tapes with stacks.
const STACKS: (&str, &[&str]) = ("callgraph", &["callgraph", "--of", "syscall", "--metric", "count"]);

fn tapes() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let mut tapes: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "tape"))
        .collect();
    tapes.sort();
    assert!(tapes.len() >= 2, "tapes are missing in {}", dir.display());
    tapes
}

#[test]
fn older_tapes_read_the_same() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for tape in tapes() {
        let has_stacks = tape.file_stem().unwrap().to_string_lossy().starts_with("stacks-");
        for (report, words) in REPORTS.into_iter().chain(has_stacks.then_some(STACKS)) {
            let run = Command::new(env!("CARGO_BIN_EXE_analyze"))
                .current_dir(tape.parent().unwrap())
                .args(words)
                .arg(tape.file_name().unwrap())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success() && said.is_empty(), "{} {report}: {}\n{said}", tape.display(), run.status);
            let expected = tape.with_extension(format!("{report}.txt"));
            if update {
                fs::write(&expected, &run.stdout).unwrap();
            } else if fs::read(&expected).unwrap_or_default() != run.stdout {
                wrong.push(format!("{}:\n{}", expected.display(), String::from_utf8_lossy(&run.stdout)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One tape at least of each version that was ever written.
#[test]
fn every_version_has_a_tape() {
    let minor = |tape: &PathBuf| Tape::open(tape).unwrap().version().1;
    let found: BTreeSet<u16> = tapes().iter().map(minor).collect();
    assert_eq!(found, (0..=MINOR).collect());
}
