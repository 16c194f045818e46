//! `record -o - | analyze --follow -`: rows come while the recording goes on, and Ctrl-C ends both with all rows.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use systape_e2e::lab::binary;
use systape_e2e::{Background, Lab};

/// A recording of everything into a pipe, and who reads that.
struct Feed {
    record: Child,
    analyze: Child,
}

fn feed(lab: &Lab, report: &[&str]) -> Feed {
    let told = |name: &str| File::create(lab.path(name)).expect(name);
    let mut record = lab.command(binary("record"));
    let record =
        record.args(["-a", "-e", "execve,exit_group", "-o", "-"]).stdout(Stdio::piped()).stderr(told("record.err"));
    let mut record = record.spawn().expect("record");
    let mut analyze = lab.command(binary("analyze"));
    let analyze = analyze.args(report).args(["--follow", "--format", "json", "-"]);
    let tape = record.stdout.take().expect("a pipe");
    let analyze = analyze.stdin(tape).stdout(told("rows")).stderr(told("analyze.err")).spawn().expect("analyze");
    Feed { record, analyze }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // of a test that failed
        let _ = (self.record.kill(), self.analyze.kill());
    }
}

/// What is printed so far.
fn rows(lab: &Lab) -> Vec<Value> {
    let text = fs::read_to_string(lab.path("rows")).expect("rows");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

impl Feed {
    /// As Ctrl-C does, which reaches both.
    fn interrupt(mut self) {
        for child in [&self.record, &self.analyze] {
            let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
            assert!(sent.success());
        }
        assert_eq!(self.record.wait().expect("record").code(), Some(0));
        assert_eq!(self.analyze.wait().expect("analyze").code(), Some(0));
    }
}

/// Rows of programs with this argument; looking for it in PATH fails before.
fn with(lab: &Lab, word: &str) -> Vec<Value> {
    let has = |row: &Value| row["args"].as_array().is_some_and(|args| args.iter().any(|arg| arg == word));
    rows(lab).into_iter().filter(|row| row["ret"] == 0 && has(row)).collect()
}

#[test]
fn programs_come_as_they_are_executed_and_end() {
    let Some(lab) = Lab::beside() else { return };
    let feed = feed(&lab, &["exec"]);
    // one that is there for its row alone: the recording has begun
    lab.until("a row of a program", || {
        let mark = lab.command("true").arg("mark-of-follow").status();
        mark.is_ok() && !with(&lab, "mark-of-follow").is_empty()
    });
    let mut sh = lab.command("sh");
    let mut sleeper = sh.args(["-c", "read line; exit 23", "waits-for-us"]).stdin(Stdio::piped()).spawn().expect("sh");
    lab.until("the row of a program that runs", || !with(&lab, "waits-for-us").is_empty());
    let started = with(&lab, "waits-for-us");
    assert_eq!(started.len(), 1);
    let (pid, parent) = (&started[0]["pid"], &started[0]["ppid"]);
    assert_eq!((pid, parent), (&Value::from(sleeper.id()), &Value::from(std::process::id())));
    assert_eq!(started[0]["ended"], Value::Null);
    drop(sleeper.stdin.take());
    assert_eq!(sleeper.wait().expect("sh").code(), Some(23));
    lab.until("the row of its end", || with(&lab, "waits-for-us").len() > 1);
    let ended = &with(&lab, "waits-for-us")[1];
    assert_eq!((&ended["ended"], &ended["exit_code"]), (&"exit".into(), &23.into()));
    assert_eq!((&ended["ts_ns"], &ended["upid"]), (&started[0]["ts_ns"], &started[0]["upid"]));
    let last = lab.command("true").arg("last-of-follow").status();
    assert!(last.expect("true").success());
    feed.interrupt();
    assert_eq!(with(&lab, "last-of-follow").len(), 2, "what happened before Ctrl-C is there");
}

#[test]
fn a_signal_comes_with_its_sender_and_later_with_the_death() {
    let Some(lab) = Lab::beside() else { return };
    let feed = feed(&lab, &["kills"]);
    lab.until("a row of a signal", || {
        let mark = Background::start(lab.command("sleep").arg("1000"));
        mark.signal(libc::SIGKILL);
        mark.wait();
        !rows(&lab).is_empty()
    });
    // it blocks the signal until its standard input is closed
    let script = "import signal,sys; signal.pthread_sigmask(0, [15]); print(flush=True); sys.stdin.read(); signal.pthread_sigmask(1, [15])";
    let mut python = lab.command("python3");
    let python = python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut blocker = python.spawn().expect("python3");
    let mut ready = [0];
    std::io::Read::read_exact(blocker.stdout.as_mut().expect("a pipe"), &mut ready).expect("a line");
    let target = blocker.id();
    let of_it = |lab: &Lab| -> Vec<Value> {
        rows(lab).into_iter().filter(|row| row["target"]["pid"] == target && row["signal"] == 15).collect()
    };
    let kill = lab.command("kill").args(["-TERM", &target.to_string()]).status();
    assert!(kill.expect("kill").success());
    lab.until("the row of the signal", || !of_it(&lab).is_empty());
    let sent = of_it(&lab);
    assert_eq!((sent.len(), &sent[0]["blocked"], &sent[0]["outcome"]["cause"]), (1, &true.into(), &Value::Null));
    drop(blocker.stdin.take());
    lab.until("the row of the death", || of_it(&lab).len() > 1);
    let died = &of_it(&lab)[1];
    assert_eq!((&died["outcome"]["cause"], &died["outcome"]["exit_signal"]), (&true.into(), &15.into()));
    assert_eq!((&died["act"], &died["sender"]["pid"]), (&sent[0]["act"], &sent[0]["sender"]["pid"]));
    blocker.wait().expect("python3");
    feed.interrupt();
}
