//! `list` beside `info`: of each tape of a directory it says the same, in order of time; what is damaged or no tape is told.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn tapes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes")
}

/// Exit status, rows of JSON, and stderr.
fn ask(words: &[&str], paths: &[&Path]) -> (i32, Vec<Value>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyze"));
    let run = command.args(words).args(["--format", "json"]).args(paths).output().unwrap();
    let rows = String::from_utf8(run.stdout).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (run.status.code().unwrap(), rows, String::from_utf8(run.stderr).unwrap())
}

#[test]
fn each_line_says_what_info_says() {
    let (code, rows, said) = ask(&["list"], &[&tapes()]);
    assert_eq!((code, said.as_str()), (0, ""));
    let files = std::fs::read_dir(tapes()).unwrap().map(|entry| entry.unwrap().path());
    let count = files.filter(|path| path.extension().is_some_and(|e| e == "tape")).count();
    assert!(rows.len() == count && count > 5, "{rows:?}");
    for row in &rows {
        let path = Path::new(row["tape"].as_str().unwrap());
        let info = ask(&["info"], &[path]).1.remove(0);
        for column in
            ["hostname", "start_time", "duration_ns", "file_bytes", "complete", "clean_end", "target", "counted_only"]
        {
            assert_eq!(row[column], info[column], "{column} of {}", path.display());
        }
        // those with a colon are of tables
        let of_families =
            |(name, count): (&String, &Value)| if name.contains(':') { 0 } else { count.as_u64().unwrap() };
        let events: u64 = info["events"].as_object().unwrap().iter().map(of_families).sum();
        let lost: u64 = info["lost"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!((row["events"].as_u64(), row["lost"].as_u64()), (Some(events), Some(lost)), "{row}");
        assert_eq!((row["findings"].as_u64(), &row["error"]), (Some(0), &Value::Null), "{row}");
    }
    let starts: Vec<&str> = rows.iter().map(|row| row["start_time"].as_str().unwrap()).collect();
    assert!(starts.is_sorted() && starts[0] < starts[count - 1], "{starts:?}");
}

#[test]
fn what_is_not_whole_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut bytes = std::fs::read(tapes().join("mix-1.5.tape")).unwrap();
    std::fs::write(at("a.tape"), &bytes).unwrap();
    // cut off: nothing says how it ended
    std::fs::write(at("b.tape"), &bytes[..bytes.len() - 400]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(at("c.tape"), &bytes).unwrap();
    let (code, rows, _) = ask(&["list", "--fail-on-loss"], &[dir.path()]);
    assert_eq!(code, 3);
    let of = |name: &str| rows.iter().find(|row| row["tape"].as_str().unwrap().ends_with(name)).unwrap();
    assert_eq!((&of("a.tape")["complete"], &of("a.tape")["events_at_least"]), (&true.into(), &false.into()));
    assert_eq!((&of("b.tape")["clean_end"], &of("b.tape")["lost_at_least"]), (&false.into(), &true.into()));
    assert_eq!((&of("c.tape")["complete"], &of("c.tape")["clean_end"]), (&false.into(), &true.into()));
    assert!(of("c.tape")["findings"].as_u64().unwrap() > 0, "{:?}", of("c.tape"));

    std::fs::write(at("d.tape"), "text").unwrap();
    let (code, rows, _) = ask(&["list"], &[&at("d.tape"), &at("gone"), &at("a.tape")]);
    assert_eq!((code, rows.len()), (1, 3), "the others are listed");
    let why: Vec<Option<&str>> = rows.iter().map(|row| row["error"].as_str()).collect();
    assert!(why[0].is_none() && why[1].unwrap().contains("not a tape"), "{why:?}");
    assert_eq!((why[2], &rows[2]["events"]), (Some("no such file"), &Value::Null));
    std::fs::create_dir(at("none")).unwrap();
    let (code, rows, said) = ask(&["list"], &[&at("none")]);
    assert!(code == 1 && rows.is_empty() && said.contains("there is no tape (*.tape) in "), "{said}");
}

/// The goldens are of tapes that are written anew, whose sizes change; these do not.
#[test]
fn lines_for_people() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyze"));
    command.current_dir(tapes()).args(["list", "stacks-1.2.tape", "gone.tape", "ledger-1.3.tape"]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let expected = "\
start                   length  host    events  lost      size  tape             state           recorded
2026-11-21T05:48:19Z  2.000 ms  node7        5    47   4.6 KiB  ledger-1.3.tape  events missing  system-wide
2026-11-23T02:18:31Z    3.70 s  (none)    1508     0  38.1 KiB  stacks-1.2.tape  complete        command chain
?                            ?  ?            ?     ?         ?  gone.tape        not read        no such file
";
    assert_eq!(text, expected);
}
