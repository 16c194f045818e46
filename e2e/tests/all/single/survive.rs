//! What was written can be read. After `kill -9` of the recorder, at a trickle and at full speed, and after SIGABRT and
//! SIGSEGV, the tape opens, says that it ended abnormally and until when it is complete, has every call until then, and
//! reaches to within two seconds of the kill; signals that ask for the end get a clean one. A disk that is full ends the
//! recording, not the command. Cut anywhere, also with zeros behind the cut, a tape still gives every segment that is
//! whole, and nothing panics.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use systape_e2e::blocks::{Block, HEADER, blocks, rows_within};
use systape_e2e::damage::{assert_no_hole, complete_until, seeks, start_numbered};
use systape_e2e::more::{FREESTANDING, Mounted, count, monotonic, numbered};
use systape_e2e::{Background, Call, Lab, lab};

/// How far behind the kill a tape may end.
const BEHIND: i64 = 2_000_000_000;

/// Records a running program and ends the recorder by `signal` after `ms`; gives when that was.
fn kill_recorder(lab: &Lab, program: &Background, signal: i32, ms: u64) -> i64 {
    let recorder = lab.attach("t.tape", &["-p", &program.pid_text()]);
    std::thread::sleep(Duration::from_millis(ms));
    let killed = monotonic();
    // Rust's handler takes the first SIGSEGV for a guard page, and returns
    if signal == libc::SIGSEGV {
        recorder.signal(signal);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(lab::killed_by(&recorder.stop(signal)), Some(signal));
    killed
}

#[test]
fn killed_at_fifty_calls_a_second() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = start_numbered(&lab, 40_000); // a call and a sleep
    let killed = kill_recorder(&lab, &program, libc::SIGKILL, 3300);
    std::thread::sleep(Duration::from_millis(100)); // truth goes on a little
    let until = complete_until(&lab);
    // at this rate all of a segment is in the last 50 ms or before
    let calls = seeks(&lab, &[]);
    assert!(calls.len() > 30, "{} calls", calls.len());
    assert!(calls.windows(2).all(|two| two[1].num("offset") == two[0].num("offset") + 1), "a hole in the listing");
    let last = calls[calls.len() - 1].ts();
    assert!(last > until - 1_100_000_000, "the last call is at {last} of {until}");
    let truth = numbered(&lab, "truth");
    let last = assert_no_hole(&lab, &truth, last.max(until - 1_100_000_000));
    assert!(killed - last < BEHIND, "the last call is {} ms before the kill", (killed - last) / 1_000_000);
    drop(program);
}

#[test]
fn killed_at_full_speed() {
    let Some(lab) = Lab::with_bpf() else { return };
    let mut program = start_numbered(&lab, 0);
    let killed = kill_recorder(&lab, &program, libc::SIGKILL, 700);
    std::thread::sleep(Duration::from_millis(20));
    assert!(program.ended().is_none(), "the program did not outlive the recorder");
    let truth = numbered(&lab, "truth");
    let last = assert_no_hole(&lab, &truth, complete_until(&lab));
    assert!(killed - last < BEHIND, "the last call is {} ms before the kill", (killed - last) / 1_000_000);
    drop(program);
    // nothing of it is in the way of the next
    lab.record("u.tape", &[], &[&lab.file("target"), "spin", "997"]).expect(0);
    lab.assert_whole("u.tape");
    assert_eq!(count(&lab.calls("u.tape", &["-e", "getppid"]), "getppid"), 997);
}

#[test]
fn crashed() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = start_numbered(&lab, 500);
    for signal in [libc::SIGABRT, libc::SIGSEGV] {
        let killed = kill_recorder(&lab, &program, signal, 1400);
        let last = assert_no_hole(&lab, &numbered(&lab, "truth"), complete_until(&lab));
        assert!(killed - last < BEHIND, "{signal}: the last call is {} ms before it", (killed - last) / 1_000_000);
    }
}

#[test]
fn asked_to_end() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = start_numbered(&lab, 500);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let recorder = lab.attach("t.tape", &["-p", &program.pid_text()]);
        std::thread::sleep(Duration::from_millis(150));
        let asked = monotonic();
        recorder.stop(signal).expect(0);
        lab.assert_whole("t.tape");
        let info = lab.info("t.tape");
        assert_eq!(info["end_reason"], "interrupted", "{info}");
        // everything until it was asked is there
        let last = assert_no_hole(&lab, &numbered(&lab, "truth"), info["duration_ns"].as_i64().expect("duration"));
        assert!(asked - last < 50_000_000, "the last call is {} ms before it was asked", (asked - last) / 1_000_000);
    }
    // a command goes on, and its status counts
    let script = "echo $$ > started; sleep 0.4; touch done; exit 7";
    let recorder = Background::start(lab.record_command("t.tape", &[], &["sh", "-c", script]));
    lab.until_file("started");
    let run = recorder.stop(libc::SIGTERM).expect(7);
    assert!(lab.path("done").exists(), "{}", run.stderr);
    lab.assert_whole("t.tape");
    assert_eq!(lab.info("t.tape")["end_reason"], "interrupted");
}

/// Shells start what runs in the background of a script with SIGINT ignored.
#[test]
fn asked_to_end_in_the_background_of_a_script() {
    let Some(lab) = Lab::with_bpf() else { return };
    let record = lab::binary("record");
    // HUP stays ignored, as under nohup; what is recorded has the dispositions it would have
    let script = "trap '' HUP; $RECORD -o t.tape -- sh -c 'grep SigIgn /proc/$$/status > started; exec sleep 1000' &
        until test -s started; do sleep 0.05; done
        kill -HUP $!; sleep 0.3; kill -0 $! && kill -$SIGNAL $!; wait $!";
    let ignored = |lab: &Lab| fs::read_to_string(lab.path("started")).expect("started");
    lab::run(lab.command("sh").args(["-c", "trap '' HUP; grep SigIgn /proc/self/status > started & wait"])).expect(0);
    let bare = ignored(&lab);
    let mask = bare.split_whitespace().nth(1).and_then(|hex| u64::from_str_radix(hex, 16).ok()).expect("a mask");
    assert!(mask & 1 << (libc::SIGINT - 1) != 0, "this shell does not ignore SIGINT in the background: {bare}");
    for signal in ["INT", "TERM"] {
        fs::remove_file(lab.path("started")).expect("rm");
        let mut shell = lab.command("sh");
        shell.args(["-c", &script.replace(" -- sh", " --kill -- sh")]).env("RECORD", &record).env("SIGNAL", signal);
        // the command is ended by --kill, SIGTERM
        lab::run(shell).expect(128 + libc::SIGTERM);
        assert_eq!(ignored(&lab), bare, "{signal}");
        lab.assert_whole("t.tape");
        assert_eq!(lab.info("t.tape")["end_reason"], "interrupted", "{signal}");
    }
}

#[test]
fn the_tape_is_removed_meanwhile() {
    let Some(lab) = Lab::with_bpf() else { return };
    let why = "the tape was removed while it was written";
    // the file, or all of its directory
    for remove in ["rm gone/t.tape", "rm -r gone"] {
        fs::create_dir_all(lab.path("gone")).expect("mkdir");
        lab.record("gone/t.tape", &[], &["sh", "-c", remove]).says(125, &["gone/t.tape", why]);
    }
    fs::create_dir_all(lab.path("gone")).expect("mkdir");
    let program = start_numbered(&lab, 500);
    let recorder = lab.attach("gone/t.tape", &["-p", &program.pid_text()]);
    fs::remove_file(lab.path("gone/t.tape")).expect("rm");
    // without a command it is an error as any other
    recorder.stop(libc::SIGINT).says(1, &["gone/t.tape", why]);
    drop(program);
    // a new name is a name
    lab.record("a.tape", &[], &["mv", "a.tape", "b.tape"]).expect(0);
    lab.assert_whole("b.tape");
    // standard output is whoever opened it to look after
    let script = format!("exec {} -o - -- rm c.tape > c.tape", lab::binary("record").display());
    lab::run(lab.command("sh").args(["-c", &script])).expect(0);
    assert!(!lab.path("c.tape").exists());
}

/// What a process can make as long as it likes is not read whole.
#[test]
fn endless_arguments() {
    const MIB: u64 = 1024;
    let Some(lab) = Lab::with_bpf() else { return };
    let longargs = lab.cc("longargs", &[]);
    let script = format!("exec {longargs} {MIB} > started");
    let program = Background::start(lab.command("sh").args(["-c", &script]));
    lab.until_file("started");
    lab.record("t.tape", &["-p", &program.pid_text(), "--for", "300ms"], &[]).expect(0);
    drop(program);
    lab.assert_whole("t.tape");
    let peak = lab.info("t.tape")["recorder_peak_rss"].as_u64().expect("peak");
    assert!((1 << 20..MIB << 19).contains(&peak), "peak memory of {} MiB", peak >> 20);
    // its beginning is known, and that there is more
    let tree = lab.analyze(&["exec", "t.tape", "--tree"]).expect(0).text();
    assert!(tree.contains(&"A".repeat(50)), "{tree}");
}

#[test]
fn disk_full() {
    let Some(lab) = Lab::with_bpf() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let _disk = Mounted::tmpfs(&lab, "disk", "200k");
    let script = format!("{flood} 1 1500007; echo went on > done; exit 7");
    let run = lab.record("disk/t.tape", &[], &["sh", "-c", &script]);
    let said = run.stderr.clone();
    run.says(125, &["disk/t.tape", "No space left on device"]);
    // the command was not disturbed, and was waited for
    assert_eq!(fs::read_to_string(lab.path("done")).ok().as_deref(), Some("went on\n"), "{said}");
    assert_eq!(fs::metadata(lab.path("disk/t.tape")).expect("tape").len(), 200 << 10);
    fs::copy(lab.path("disk/t.tape"), lab.path("t.tape")).expect("copy");
    complete_until(&lab);
    let rows = lab.analyze(&["t.tape", "-s", "-e", "getppid", "--comm=flood", "--format", "json"]).expect(0).json();
    let calls = rows[0]["calls"].as_u64().expect("calls");
    assert!((65_536..1_500_007).contains(&calls), "{calls} calls in 200 KiB");
    // the last segment may have lost the columns that a listing needs: then that is said
    let text = lab.analyze(&["t.tape", "-e", "getppid", "--comm=flood"]).expect(0).text();
    let (lost, listed): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("LOST up to "));
    let most = |line: &&str| line.split(' ').nth(3).and_then(|n| n.parse::<u64>().ok()).expect("a number");
    let (lost, listed) = (lost.iter().map(most).sum::<u64>(), listed.len() as u64);
    assert!((listed..=listed + lost).contains(&calls), "{calls} calls, {listed} listed, up to {lost} lost");

    // without a command the status is 1
    let program = start_numbered(&lab, 0);
    let recorder = lab.attach("disk/t.tape", &["-p", &program.pid_text()]);
    recorder.wait().says(1, &["No space left on device"]);
}

/// A tape of many segments of many kinds, of processes that have all ended.
fn tape_to_cut(lab: &Lab) -> Vec<u8> {
    let target = lab.cc("target", &[]);
    let script =
        format!("{target} numbered truth 300 500; {target} polite 97; {target} spin 20011; ls /etc >/dev/null");
    lab.record("whole.tape", &["--flush", "10ms"], &["sh", "-c", &script]).expect(0);
    lab.assert_whole("whole.tape");
    fs::read(lab.path("whole.tape")).expect("tape")
}

/// Reads the first `len` bytes of the tape and `zeros` behind them by every report, and checks what they say.
fn read_cut(lab: &Lab, tape: &[u8], all: &[Block], (len, zeros): (usize, usize)) {
    let cut = [&tape[..len], &vec![0; zeros]].concat();
    let (name, what) = (format!("{len}-{zeros}.tape"), format!("{len} bytes and {zeros} zeros"));
    fs::write(lab.path(&name), cut).expect("write");
    // Run::code fails on a signal; 101 and 134 are panics
    let list = lab.analyze(&[&name, "--clone-child", "--format", "json"]);
    let reports = [
        &["info", &name, "--format", "json"][..],
        &["check", &name, "--format", "json"],
        &[&name, "-s", "--format", "json"],
    ];
    let [info, check, summary] = reports.map(|report| lab.analyze(report));
    fs::remove_file(lab.path(&name)).expect("remove");
    let (codes, said) = [&list, &info, &check, &summary]
        .map(|run| (run.code(), run.stderr.clone()))
        .into_iter()
        .unzip::<_, _, Vec<_>, Vec<_>>();
    if len < all[0].end {
        // not a whole header: no tape; a header: a tape of which nothing is known
        assert!(codes.iter().all(|code| [0, 1].contains(code)), "{what}: {codes:?} {said:?}");
        if len < HEADER {
            [list, info, summary].into_iter().for_each(|run| drop(run.says(1, &[&name])));
            // what it is, is what check was asked
            assert_eq!(check.expect(1).json()[0]["grade"], "not a tape", "{what}");
        }
        return;
    }
    assert!(said.iter().all(|said| !said.contains("until -")), "{what}: {said:?}");
    // the end mark is a block, the footer behind it only a short cut to it
    let ended = len >= all[all.len() - 1].end;
    let info = info.expect(0).json().remove(0);
    assert_eq!(info["clean_end"], ended, "{what}: {info}");
    let sound = if ended && len < tape.len() { codes[2] } else { i32::from(len < tape.len()) };
    assert_eq!(check.expect(sound).json()[0]["clean_end"], ended, "{what}");
    let (whole, present) = rows_within(all, len);
    let kept = |n: u64, by: &str| {
        assert!(
            (whole..=present).contains(&n),
            "{what}: {n} calls by {by}, {whole} in whole segments, {present} in all"
        );
    };
    let stored = |line: &Value| line.get("lost").is_none() && line["incomplete"] != "in-flight";
    let lines = list.expect(0).json();
    kept(lines.iter().filter(|line| stored(line)).count() as u64, "the listing");
    assert!(lines.iter().all(|line| line["comm"] != "record"), "{what}: record's own: {lines:?}");
    let children = lines.iter().filter(|line| line["incomplete"] == "clone-child").count() as u64;
    let calls: u64 = summary.expect(0).json().iter().map(|row| row["calls"].as_u64().expect("calls")).sum();
    kept(calls + children, "the summary");
    // a path is right or unknown
    let polite = |call: &Call| call.name() == "lseek" && !call.0["args"].is_null() && call.num("fd") != -1;
    for call in lines.into_iter().filter(stored).map(Call).filter(polite) {
        let truth = lab.file(&format!("made-by-polite/file-{}", call.num("offset")));
        assert!(call.fd_path("fd").is_none_or(|path| path == truth), "{what}: {call:?}");
    }
}

/// Reads all cuts, on two threads.
fn read_cuts(lab: &Lab, tape: &[u8], all: &[Block], cuts: &[(usize, usize)]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&cut) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    read_cut(lab, tape, all, cut);
                }
            });
        }
    });
}

#[test]
fn cut_at_every_block() {
    let Some(lab) = Lab::with_bpf() else { return };
    let tape = tape_to_cut(&lab);
    let all = blocks(&tape[..tape.len() - 64]); // a footer ends it
    assert!(all.len() > 50, "only {} blocks", all.len());
    // every fifth with a page of zeros behind it, as after a power cut
    let at: Vec<usize> = all.iter().map(|block| block.start).chain([all[all.len() - 1].end, tape.len()]).collect();
    let cuts = at.iter().enumerate().map(|(i, &len)| (len, if i % 5 == 4 && len < tape.len() { 4096 } else { 0 }));
    read_cuts(&lab, &tape, &all, &cuts.collect::<Vec<_>>());
    // what was compared with is what there was
    let rows = rows_within(&all, tape.len());
    assert_eq!(rows, (rows.0, rows.0));
    assert_eq!(lab.calls("whole.tape", &["--clone-child"]).len() as u64, rows.0);
}

#[test]
fn cut_anywhere() {
    let Some(lab) = Lab::with_bpf() else { return };
    let tape = tape_to_cut(&lab);
    let all = blocks(&tape[..tape.len() - 64]);
    // splitmix64 from a fixed seed
    let mut state = 23_u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize
    };
    let cuts: Vec<_> =
        (0..200).map(|i| (random() % tape.len(), if i % 4 == 3 { random() % 8192 } else { 0 })).collect();
    read_cuts(&lab, &tape, &all, &cuts);
}
