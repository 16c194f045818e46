//! Loss is said wherever a call is missing, and counted exactly: two processes flood rings of one page with calls whose
//! number is known, and every summary gives that number, no more and no less. Paths of a
//! process beside the flood stay right, since calls that change descriptors have a ring of their own. Without loss
//! nothing says "at least".

use serde_json::Value;
use systape_e2e::more::{FREESTANDING, count, lost_calls};
use systape_e2e::{Call, Lab};

/// getppid calls of each of two children: a prime.
const FLOOD: u64 = 600_011;
/// What `flood 2 N` does: execve, fork and wait4 twice, exit_group; in each child N calls and exit_group.
const TRUTH: u64 = 6 + 2 * (FLOOD + 1);
const POLITE: i64 = 97;

/// Losses among the lines of a listing, and calls.
fn losses(lines: Vec<Value>) -> (Vec<Value>, Vec<Call>) {
    let (lost, calls): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.get("lost").is_some());
    (lost, calls.into_iter().map(Call).collect())
}

/// Calls a summary in JSON counts, and whether each of its lines says it is complete.
fn summed(lab: &Lab, options: &[&str]) -> (u64, Vec<bool>) {
    let rows = lab.analyze(&[&["t.tape", "-s", "--format", "json"], options].concat()).expect(0).json();
    let calls = rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum();
    (calls, rows.iter().map(|row| row["calls_at_least"] == false).collect())
}

#[test]
fn what_is_lost_is_counted_and_said_everywhere() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    // nothing but calls can be lost
    let run = lab.record("t.tape", &["-m", "1", "--families", "syscall"], &[&flood, "2", &FLOOD.to_string()]).expect(0);

    let info = lab.info("t.tape");
    let lost = lost_calls(&info);
    assert!(lost > 1000, "nothing to test: only {lost} lost");
    // record's last line
    let said = run.stderr.split(" as totals only").next().unwrap_or("");
    assert!(said.contains(" 0 lost, "), "{}", run.stderr);
    let digits: String = said.chars().filter(|c| *c != ',').collect();
    assert_eq!(digits.rsplit(' ').next(), Some(&*lost.to_string()), "{}", run.stderr);
    // info: nothing is missing from sums, and the gaps say what listings lack, when, where and why
    assert_eq!((&info["complete"], &info["clean_end"]), (&true.into(), &true.into()), "{info}");
    assert_eq!(info["lost"], serde_json::json!({}), "{info}");
    let of_gaps = info["gaps"].as_array().expect("gaps").iter().filter(|gap| gap["ledger"] == true);
    assert_eq!(of_gaps.filter_map(|gap| gap["count"].as_u64()).sum::<u64>(), lost, "{info}");
    let text = lab.analyze(&["info", "t.tape"]).expect(0).text();
    assert!(text.contains("complete in sums") && text.contains("ring buffer"), "{text}");

    // the listing has a line per gap
    let (gaps, calls) = losses(lab.analyze(&["t.tape", "--format", "json", "--clone-child"]).expect(0).json());
    let sum: u64 = gaps.iter().map(|gap| gap["lost"].as_u64().expect("known number")).sum();
    assert_eq!(sum, lost);
    for gap in &gaps {
        assert_eq!(gap["family"], "syscall", "{gap}");
        assert!(["ring-full", "over-share"].contains(&gap["cause"].as_str().unwrap_or("")), "{gap}");
        let (from, to) = (gap["ts_ns"].as_i64().expect("from"), gap["until_ns"].as_i64().expect("until"));
        assert!(0 <= from && from <= to && to <= info["duration_ns"].as_i64().expect("duration"), "{gap}");
        assert!(gap["cpu"].is_u64(), "{gap}");
    }
    // a child's side of fork is no call: when it finds no room nothing is missing
    let made = calls.iter().filter(|c| c.incomplete() != Some("clone-child")).count() as u64;
    assert_eq!(made + lost, TRUTH);
    assert!(count(&calls, "getppid") < 2 * FLOOD);
    let text = lab.analyze(&["t.tape"]).expect(0).text();
    assert_eq!(text.lines().filter(|line| line.starts_with("TOTALS ONLY ")).count(), gaps.len());

    // the summary is exact whatever it goes by, and says what of it is known by count
    for mode in ["thread", "process", "total", "cgroup"] {
        let (counted, complete) = summed(&lab, &["--summary-mode", mode]);
        assert_eq!(counted, TRUTH, "{mode}");
        // which thread made a lost call is not known
        assert_eq!(complete.iter().all(|c| *c), mode != "thread", "{mode}: {complete:?}");
        let text = lab.analyze(&["t.tape", "-s", "--summary-mode", mode]).expect(0).text();
        assert!(text.contains(&format!("{lost} calls were not stored and are counted here")), "{mode}: {text}");
    }
    let (forks, complete) = summed(&lab, &["--summary-mode", "process", "-e", "fork"]);
    assert!(forks == 2 && complete.iter().all(|c| *c), "{forks} {complete:?}");
    // of a thread only what is stored is known
    let threads: std::collections::BTreeSet<i64> = calls.iter().map(Call::tid).collect();
    let parent = threads.first().expect("a thread").to_string();
    lab.analyze(&["t.tape", "-s", "-p", &parent, "--fail-on-loss"]).expect(0);

    // the status is for scripts
    lab.analyze(&["t.tape", "--fail-on-loss"]).expect(3);
    lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--fail-on-loss"]).expect(0);
    lab.analyze(&["t.tape", "-s", "--fail-on-loss"]).expect(3);
    lab.analyze(&["info", "t.tape", "--fail-on-loss"]).expect(0);
    // a time in which nothing was lost is complete
    let first = gaps.iter().filter_map(|gap| gap["ts_ns"].as_i64()).min().expect("a gap");
    // a gap begins when a loss is noticed, which is after the end of the call; and the longest may be the first that is lost
    let sums = lab.analyze(&["t.tape", "-s", "-e", "getppid", "--format", "json"]).expect(0).json();
    let longest = sums.iter().map(|row| row["max_ns"].as_i64().expect("max_ns")).max().expect("a row");
    let until = (first - longest) / 1000 - 100;
    if calls.iter().any(|call| call.ts() / 1000 < until) {
        let before = format!("0,{until}us");
        let (some, complete) = summed(&lab, &["--time", &before]);
        assert!(some > 0 && complete.iter().all(|c| *c), "{before}: {some} {complete:?}");
        lab.analyze(&["t.tape", "--time", &before, "--fail-on-loss"]).expect(0);
    } else {
        println!(
            "a call of {longest} ns was lost, and may have begun before all others: no time is known to be complete"
        );
    }
    // a tape with losses is a sound tape
    assert_eq!(lab.analyze(&["check", "t.tape", "--format", "json"]).expect(0).json()[0]["grade"], "good");
}

#[test]
fn paths_beside_a_flood_stay_right() {
    let Some(lab) = Lab::beside() else { return };
    let (flood, target) = (lab.cc("flood", &FREESTANDING), lab.cc("target", &[]));
    let script = format!("{flood} 2 {FLOOD} & {target} polite {POLITE}; wait");
    lab.record("t.tape", &["-m", "1"], &["sh", "-c", &script]).expect(0);
    assert!(lost_calls(&lab.info("t.tape")) > 1000, "nothing to test: nothing lost");
    let (_, calls) = losses(lab.analyze(&["t.tape", "--format", "json", "--comm=target"]).expect(0).json());

    let of = |name: &'static str| calls.iter().filter(move |c| c.name() == name);
    let file = |i: i64| format!("made-by-polite/file-{i}");
    // opens and closes are all there, in order, and say which file
    let opened: Vec<_> =
        of("openat").map(|c| c.text("filename").to_owned()).filter(|f| f.starts_with("made-by")).collect();
    assert_eq!(opened, (0..POLITE).map(file).collect::<Vec<_>>());
    let closed: Vec<_> =
        of("close").filter_map(|c| c.fd_path("fd")).filter(|path| path.contains("/made-by-polite/")).collect();
    let paths: Vec<_> = (0..POLITE).map(|i| lab.file(&file(i))).collect();
    assert_eq!(closed, paths);
    // seeks may be lost; those that are there say to which file number they belong
    // (opens and closes have a ring of their own)
    let mut seen = 0;
    for call in of("lseek").filter(|c| c.arg("whence")["text"] == "SEEK_SET") {
        let path = &paths[usize::try_from(call.num("offset")).expect("offset")];
        assert_eq!(call.fd_path("fd"), Some(path.as_str()), "{call:?}");
        seen += 1;
    }
    assert!(seen <= 3 * POLITE, "{seen} seeks");
}

#[test]
fn without_loss_nothing_says_at_least() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let run = lab.record("t.tape", &[], &[&flood, "2", "1009"]).expect(0);
    assert!(run.stderr.contains(" 0 lost "), "{}", run.stderr);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &[]);
    assert_eq!((count(&calls, "getppid"), calls.len()), (2 * 1009, 6 + 2 * 1010));
    let (counted, complete) = summed(&lab, &[]);
    assert!(counted == calls.len() as u64 && complete.iter().all(|c| *c), "{complete:?}");
    let reports: [&[&str]; 4] = [&["info", "t.tape"], &["t.tape", "-s"], &["t.tape"], &["check", "t.tape"]];
    for report in reports {
        let run = lab.analyze(&[report, &["--fail-on-loss"]].concat()).expect(0);
        let text = run.text() + &run.stderr;
        assert!(
            !text.contains("at least") && !text.contains("LOST") && !text.contains("COUNTED"),
            "{report:?}: {text}"
        );
    }
}

/// A child's side of fork and the enter of a call that changes descriptors find no room either, and are no calls: what the gaps say is
/// counted, the ledger counts, and `record`, `info` and the listing give the same two figures.
#[test]
fn what_gaps_call_counted_is_in_the_ledger() {
    let Some(lab) = Lab::beside() else { return };
    let forks = "i=0; while [ $i -lt 300 ]; do (true) & (true) & (true) & wait; i=$((i+1)); done";
    for options in [&["-m", "1"][..], &["-m", "1", "--force", "state-ring=4k"]] {
        let options = [options, &["--families", "syscall"]].concat();
        let run = lab.record("t.tape", &options, &["sh", "-c", forks]).expect(0);
        let info = lab.info("t.tape");
        let counted = lost_calls(&info);
        assert!(counted > 100, "nothing to test: {info}");
        assert_eq!((&info["lost"], &info["counted_only"]), (&serde_json::json!({}), &counted.into()), "{info}");
        let of_ledger = info["gaps"].as_array().expect("gaps").iter().filter(|gap| gap["ledger"] == true);
        assert_eq!(of_ledger.filter_map(|gap| gap["count"].as_u64()).sum::<u64>(), counted, "{info}");
        let said = run.stderr.replace(',', "");
        assert!(said.contains(&format!(" 0 lost {counted} as totals only ")), "{counted}: {}", run.stderr);
        let (_, complete) = summed(&lab, &["--summary-mode", "total"]);
        assert!(complete.iter().all(|complete| *complete));
    }
}
