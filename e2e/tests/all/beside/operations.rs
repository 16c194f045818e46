//! Operations of io_uring and io_submit, beside what the program itself was told of each.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;
use systape_e2e::Lab;

const EVENTS: &str = "io_uring:complete";
const AIO_EVENTS: &str = "aio:complete";

/// The lines of the program: operation, file, result.
fn said(text: &str) -> Vec<(String, String, i64)> {
    let line = |line: &str| {
        let [op, file, result] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (op.to_owned(), file.to_owned(), result.parse().expect("a number"))
    };
    text.lines().filter(|line| line.contains(' ')).map(line).collect()
}

/// The same from the tape.
fn recorded(lab: &Lab, mode: &str) -> Vec<(String, String, i64)> {
    let events = if mode == "aio" { AIO_EVENTS } else { EVENTS };
    let rows = lab.analyze(&["t.tape", "-e", events, "--format", "json"]).expect(0).json();
    let one = |row: &Value| {
        let args = &row["args"];
        let result = args["result"].as_str().map(|text| text.parse::<i64>().expect("a number"));
        let result = result.unwrap_or_else(|| -args["error"].as_i64().expect("it ended"));
        let text = |name: &str| args[name].as_str().unwrap_or("?").to_owned();
        assert!(args["dur"].as_u64().is_some_and(|dur| dur > 0), "{row}");
        (text("op"), text("file"), result)
    };
    rows.iter().filter(|row| row["event"] == *events).map(one).collect()
}

/// By file: reads, bytes read, writes, bytes written, of the program's own lines.
fn sums(said: &[(String, String, i64)]) -> BTreeMap<String, [u64; 4]> {
    let mut sums: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for (op, file, result) in said {
        let sum = sums.entry(file.clone()).or_default();
        let bytes = (*result).max(0).cast_unsigned();
        match op.as_str() {
            "READ" | "READV" | "PREAD" => (sum[0], sum[1]) = (sum[0] + 1, sum[1] + bytes),
            "WRITE" | "WRITEV" | "PWRITE" => (sum[2], sum[3]) = (sum[2] + 1, sum[3] + bytes),
            _ => {}
        }
    }
    sums
}

/// The rows of `files` of the two files have these sums.
fn files_agree(lab: &Lab, dir: &Path, said: &[(String, String, i64)]) {
    let pattern = format!("{}/*", dir.display());
    let rows = lab.analyze(&["files", "t.tape", "-P", &pattern, "--format", "json"]).expect(0).json();
    for (file, want) in sums(said).into_iter().filter(|(file, _)| file != "?") {
        let row = rows.iter().find(|row| row["file"] == *file).unwrap_or_else(|| panic!("{file}: {rows:#?}"));
        let number = |name: &str| row[name].as_u64().or_else(|| row[name].as_str()?.parse().ok()).expect(name);
        let got = ["reads", "read_bytes", "writes", "write_bytes"].map(number);
        assert_eq!(got, want, "{file}: {row}");
    }
}

#[test]
fn each_operation_has_its_file_and_result() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("operations", &[]);
    for mode in ["aio", "uring", "sqpoll"] {
        for scope in [&[][..], &["-a"]] {
            let dir = lab.dir().join(mode);
            fs::create_dir_all(&dir).expect("mkdir");
            let program: &[&str] = &[&program, mode, dir.to_str().expect("UTF-8")];
            let truth = said(&lab.record("t.tape", scope, program).expect(0).text());
            assert!(truth.len() >= 20, "{mode}: {truth:?}");
            let got: Vec<_> = recorded(&lab, mode)
                .into_iter()
                .filter(|(_, file, _)| file == "?" || Path::new(file).starts_with(&dir))
                .collect();
            assert_eq!(got, truth, "{mode} {scope:?}");
            files_agree(&lab, &dir, &truth);
        }
    }
}

/// Recorded with -p, the context, the ring and the files are from before the start.
#[test]
fn of_what_was_open_before() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("operations", &[]);
    for mode in ["aio", "uring", "sqpoll"] {
        let dir = lab.dir().join(mode);
        fs::create_dir_all(&dir).expect("mkdir");
        let out = lab.dir().join("out");
        let mut child = std::process::Command::new(&program)
            .args([mode, dir.to_str().expect("UTF-8"), "wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(fs::File::create(&out).expect("a file"))
            .spawn()
            .expect("it runs");
        let pid = child.id().to_string();
        while fs::read_to_string(&out).expect("its output").trim() != pid {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let recorder = lab.attach("t.tape", &["-p", &pid]);
        child.stdin.take().expect("a pipe").write_all(b"go\n").expect("written");
        assert!(child.wait().expect("ended").success());
        recorder.wait().expect(0);
        let truth = said(&fs::read_to_string(&out).expect("its output"));
        assert_eq!(recorded(&lab, mode), truth, "{mode}");
        files_agree(&lab, &dir, &truth);
    }
}

/// A tape without them says that what they did is missing.
#[test]
fn what_is_not_recorded_is_missing() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("operations", &[]);
    let dir = lab.dir().join("d");
    fs::create_dir_all(&dir).expect("mkdir");
    lab.record("t.tape", &["--families", "syscall,process"], &[&program, "aio", dir.to_str().expect("UTF-8")])
        .expect(0);
    let pattern = format!("{}/*", dir.display());
    let rows = lab.analyze(&["files", "t.tape", "-P", &pattern, "--format", "json"]).expect(0).json();
    let rows: Vec<&Value> = rows.iter().filter(|row| row["file"].is_string()).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    for name in ["reads_at_least", "writes_at_least", "read_bytes_at_least", "write_bytes_at_least"] {
        assert!(rows.iter().all(|row| row[name] == true), "{name}: {rows:?}");
    }
    let text = lab.analyze(&["files", "t.tape"]).expect(0).text();
    assert!(text.contains("what operations of io_uring or io_submit read and wrote is not on the tape"), "{text}");
}
