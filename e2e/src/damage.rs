//! What the tests share that break the recorder, the disk or whoever reads the tape: a program whose calls are numbered, and
//! checks that a tape holds all of them until it says it is complete.

use std::fs;
use std::path::PathBuf;

use crate::more::numbered;
use crate::{Background, Call, Lab, Run};

/// Starts the workload that numbers its calls, and waits until it does. Its notes are in `truth`.
#[must_use]
pub fn start_numbered(lab: &Lab, us: u32) -> Background {
    let target = lab.cc("target", &[]);
    // at full speed 9,000,000 took 1.2 s where nothing records: it has to outlive the start of a recorder
    let program = Background::start(lab.command(target).args(["numbered", "truth", "200000000", &us.to_string()]));
    lab.until("calls", || fs::metadata(lab.path("truth")).is_ok_and(|m| m.len() > 8) && numbered(lab, "truth")[0] > 0);
    program
}

/// `t.tape` says it ended abnormally; gives until when it is complete.
///
/// # Panics
/// When it does not, or info and check disagree.
pub fn complete_until(lab: &Lab) -> i64 {
    let info = lab.info("t.tape");
    assert_eq!((&info["clean_end"], &info["complete"]), (&false.into(), &false.into()), "{info}");
    let text = lab.analyze(&["info", "t.tape"]).expect(0).text();
    let run = lab.analyze(&["check", "t.tape", "--format", "json"]).expect(1);
    let check = &run.json()[0];
    assert_eq!((&check["clean_end"], &check["grade"]), (&false.into(), &"usable".into()), "{check}");
    let until = check["complete_until_ns"].as_i64().expect("complete_until_ns");
    assert_eq!(info["duration_ns"], until, "{info}");
    let said = format!("ended abnormally, complete until {}.", until / 1_000_000_000);
    assert!(text.contains(&said), "{said} is not in: {text}");
    until
}

/// The numbered calls of a tape; a listing of one that ended abnormally says so.
///
/// # Panics
/// When it does not.
#[must_use]
pub fn seeks(lab: &Lab, options: &[&str]) -> Vec<Call> {
    let run = listed(lab, options);
    let clean = lab.info("t.tape")["clean_end"] == true;
    assert!(
        if clean { run.complaints().is_empty() } else { run.stderr.contains("ended abnormally") },
        "{}",
        run.stderr
    );
    numbered_calls(&run)
}

fn listed(lab: &Lab, options: &[&str]) -> Run {
    lab.analyze(&[&["t.tape", "-e", "lseek", "--format", "json"], options].concat()).expect(0)
}

fn numbered_calls(run: &Run) -> Vec<Call> {
    let open = |call: &Call| call.incomplete() == Some("in-flight");
    let calls = run.json().into_iter().filter(|line| line.get("lost").is_none()).map(Call);
    calls.filter(|call| !open(call)).collect()
}

/// The numbered calls of the tape have no hole, and no call that ended before `until` is missing behind the last; gives
/// when the last one began.
///
/// # Panics
/// When it has.
pub fn assert_no_hole(lab: &Lab, truth: &[i64], until: i64) -> i64 {
    let calls = |options: &[&str]| seeks(lab, options);
    // up to a million: the first, the last, and how many
    let tail = format!("{}us,", (until / 1000 - 50_000).max(0));
    let first = &calls(&["--max-events", "1"])[0];
    let tail = calls(&["--time", &tail]);
    let last = tail.last().expect("calls of the last 50 ms");
    let rows = lab.analyze(&["t.tape", "-s", "-e", "lseek", "--format", "json"]).expect(0).json();
    assert_eq!(rows[0]["calls"].as_i64(), Some(last.num("offset") - first.num("offset") + 1), "{rows:?}");
    let word = |i: i64| truth[usize::try_from(i).expect("index")];
    // the call behind the last one ended before the next began
    let next = last.ts() + word(last.num("offset") + 2) - word(last.num("offset"));
    assert!(next >= until, "complete until {until}, but a call that ended before {next} is missing");
    word(last.num("offset"))
}

/// The same of a tape whose last segment may be torn: until the time until which it says it is complete, which must not be
/// its beginning. What is behind may be there or not. Gives when the last call before it began.
///
/// # Panics
/// When a call is missing, or nothing says that the tape is not whole.
pub fn assert_whole_until_the_end(lab: &Lab, truth: &[i64]) -> i64 {
    let until = complete_until(lab);
    assert!(until > 0, "nothing is complete");
    let calls = |from: i64| {
        // a time that is complete is nothing to warn of
        let run = listed(lab, &["--time", &format!("{}us,{}us", from / 1000, until / 1000)]);
        assert!(!run.stderr.contains("ended abnormally"), "{}", run.stderr);
        numbered_calls(&run)
    };
    let first = seeks(lab, &["--max-events", "1"])[0].num("offset");
    let tail = calls((until - 50_000_000).max(0));
    let last = tail.last().expect("calls of the last 50 ms");
    let all =
        lab.analyze(&["t.tape", "-s", "-e", "lseek", "--time", &format!(",{}us", until / 1000), "--format", "json"]);
    let rows = all.expect(0).json();
    let counted = rows[0]["calls"].as_i64().expect("calls");
    let there = last.num("offset") - first + 1;
    // one may be open at that time
    assert!((there - 1..=there + 1).contains(&counted), "{counted} of {there}: {rows:?}");
    let word = |i: i64| truth[usize::try_from(i).expect("index")];
    let next = last.ts() + word(last.num("offset") + 2) - word(last.num("offset"));
    assert!(next >= until - 1_000, "complete until {until}, but a call that ended before {next} is missing");
    // everything: every total is said to be at least
    let rows = lab.analyze(&["t.tape", "-s", "-e", "lseek", "--format", "json"]).expect(0).json();
    assert!(rows.iter().all(|row| row["calls_at_least"] == true), "{rows:?}");
    assert!(rows[0]["calls"].as_i64().expect("calls") >= counted - 1, "{rows:?}");
    lab.analyze(&["t.tape", "-s", "--fail-on-loss"]).expect(3);
    println!("complete until {:.2} s: {counted} calls; in all of the tape {}", until as f64 / 1e9, rows[0]["calls"]);
    word(last.num("offset"))
}

/// A FUSE file system that spoils what is written: `workloads/writefs.c`.
pub struct BadDisk {
    dir: PathBuf,
    daemon: Option<Background>,
}

impl BadDisk {
    /// Mounted at `disk`; what it takes is in `t.tape`.
    #[must_use]
    pub fn mount(lab: &Lab, how: &str, n: u32) -> Self {
        let flags = ["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"];
        let program = lab.cc("writefs", &flags);
        let dir = lab.path("disk");
        fs::create_dir(&dir).ok();
        let mut command = lab.command(program);
        command.arg(&dir).arg(lab.path("t.tape")).args([how, &n.to_string()]);
        let mounted = Self { daemon: Some(Background::start(command)), dir };
        let at = format!(" {} ", mounted.dir.display());
        lab.until("the file system", || {
            fs::read_to_string("/proc/self/mounts").is_ok_and(|mounts| mounts.contains(&at))
        });
        mounted
    }
}

impl Drop for BadDisk {
    fn drop(&mut self) {
        std::process::Command::new("fusermount3").args(["-u", "-z"]).arg(&self.dir).status().ok();
        // it ends when it is unmounted
        self.daemon.take();
    }
}
