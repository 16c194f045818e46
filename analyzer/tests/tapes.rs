//! Recorded tapes that every later `analyze` must read the same: testdata/tapes/NAME.tape, and beside each what the
//! listing, the summary and `info` print. `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test tapes` writes the texts
//! anew; the tapes themselves are never made again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REPORTS: [(&str, &[&str]); 4] =
    [("listing", &[]), ("summary", &["--summary"]), ("info", &["info"]), ("check", &["check"])];

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
        for (report, words) in REPORTS {
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
