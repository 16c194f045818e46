//! The flight recorder: when something happens, a tape has what was before it, is good, and says who and why. It is the same
//! as the part of a tape that the same recorder wrote all along. Limits, requests and ends of the recorder at any moment are
//! what docs/internals/reliability.md says. What needs a quiet machine is in `single/went_wrong.rs`.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use serde_json::Value;
use systape_e2e::disk::Loop;
use systape_e2e::more::{FREESTANDING, Frozen, Mounted};
use systape_e2e::{Background, Lab, lab};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Starts `record OPTIONS --dir tapes`, and returns once it records.
#[track_caller]
pub(crate) fn start(lab: &Lab, options: &[&str]) -> Background {
    start_with(lab, lab::binary("record").to_str().expect("UTF-8"), &[], options)
}

/// The same through another program.
#[track_caller]
pub(crate) fn start_with(lab: &Lab, program: &str, before: &[&str], options: &[&str]) -> Background {
    fs::create_dir_all(lab.path("tapes")).expect("mkdir");
    fs::remove_file(lab.path("log")).ok();
    let mut command = lab.command("sh");
    // the announcement is the last line before the recording begins
    command.args(["-c", "exec \"$@\" 2> log", "sh", program]).args(before);
    command.args(["--dir", "tapes"]);
    if !options.contains(&"--keep-free") {
        // however full the machine's disk is
        command.args(["--keep-free", "0"]);
    }
    command.args(options);
    let mut recorder = Background::start(command);
    lab.until("the recorder begins", || {
        if let Some(run) = recorder.ended() {
            panic!("record ended early: {run:?} {}", log(lab));
        }
        log(lab).contains("tapes -> ") && status(lab).is_some_and(|status| status["held_ns"].as_u64() > Some(0))
    });
    recorder
}

pub(crate) fn log(lab: &Lab) -> String {
    fs::read_to_string(lab.path("log")).unwrap_or_default()
}

pub(crate) fn status(lab: &Lab) -> Option<Value> {
    let run = lab::run(lab.command(lab::binary("record")).args(["status", "--dir", "tapes", "--format", "json"]));
    run.status.success().then(|| run.json().pop()).flatten()
}

/// Whole tapes, in order of their names: of time.
pub(crate) fn tapes(lab: &Lab) -> Vec<String> {
    names(lab).into_iter().filter(|name| name.ends_with(".tape")).collect()
}

pub(crate) fn names(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.path("tapes")).expect("tapes");
    let mut names: Vec<String> =
        entries.map(|e| format!("tapes/{}", e.expect("entry").file_name().display())).collect();
    names.sort();
    names
}

/// Waits for a new tape with `word` in its name.
#[track_caller]
pub(crate) fn wait_for(lab: &Lab, word: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(40);
    loop {
        if let Some(tape) = tapes(lab).into_iter().find(|name| name.contains(word)) {
            return tape;
        }
        assert!(Instant::now() < deadline, "no tape of {word}: {:?}\n{}", names(lab), log(lab));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn request(lab: &Lab, name: &str) -> String {
    let run = lab::run(lab.command(lab::binary("record")).args(["trigger", name, "--dir", "tapes"])).expect(0);
    run.text().trim_end().to_owned()
}

/// The trigger that began the tape, and `info`.
#[track_caller]
pub(crate) fn began(lab: &Lab, tape: &str) -> (Value, Value) {
    let info = lab.info(tape);
    let fired = info["fired"].as_array().unwrap_or_else(|| panic!("{tape}: {info}")).clone();
    let first = fired.first().unwrap_or_else(|| panic!("{tape}: nothing fired")).clone();
    assert_eq!(first["began"], true, "{tape}: {fired:?}");
    (first, info)
}

#[track_caller]
pub(crate) fn assert_good(lab: &Lab, tape: &str) {
    let check = lab.analyze(&["check", tape, "--format", "json"]).expect(0).json();
    assert_eq!(
        (&check[0]["grade"], &check[0]["findings"]),
        (&"good".into(), &serde_json::json!([])),
        "{tape}: {check:?}"
    );
}

/// Calls of getppid by flood.
fn flood_calls(lab: &Lab, tape: &str) -> u64 {
    let rows = lab.analyze(&[tape, "-s", "-e", "getppid", "--comm=flood", "--format", "json"]).expect(0).json();
    rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum()
}

/// Runs `record OPTIONS -- COMMAND` with a ring and with full.tape beside it, to the command's end; returns the tape of the ring that
/// was asked for by a name after so many seconds.
#[track_caller]
fn beside(lab: &Lab, (seconds, name): (u64, &str), options: &[&str], command: &[&str]) -> String {
    fs::create_dir_all(lab.path("tapes")).expect("mkdir");
    let mut record = lab.command(lab::binary("record"));
    record.args(["--dir", "tapes", "--keep-free", "0", "-o", "full.tape"]).args(options).arg("--").args(command);
    let mut recorder = Background::start(&mut record);
    lab.until("chunks are gone", || {
        status(lab).is_some_and(|status| status["recording_ns"].as_u64() > Some(seconds * SECOND))
    });
    let ring = request(lab, name);
    fs::write(lab.path("enough"), "").expect("write");
    while recorder.ended().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    for tape in [&ring, "full.tape"] {
        assert_good(lab, tape);
    }
    ring
}

/// A part of a tape for --time, in ns since its start.
fn span(from: u64, to: u64) -> String {
    format!("{}.{:09},{}.{:09}", from / SECOND, from % SECOND, to / SECOND, to % SECOND)
}

/// Every view of a window is the same on the tape of the ring and on the one that the same recorder wrote all along.
#[test]
fn the_ring_has_what_a_whole_tape_has() {
    let Some(lab) = Lab::beside() else { return };
    let steady = lab.cc("steady", &["-fno-omit-frame-pointer"]);
    let options = ["--last", "6s", "--after", "2s", "-g", "-F", "99"];
    let ring = beside(&lab, (10, "compare"), &options, &[&steady, "14"]);
    let (first, info) = began(&lab, &ring);
    assert_eq!((&first["name"], &first["trigger"]), (&"compare".into(), &"request".into()));
    assert!(info["kept"]["before_ns"].as_u64() >= Some(6 * SECOND), "{info}");
    assert!(lab.info("full.tape")["fired"].is_null() && lab.info("full.tape")["kept"].is_null());
    // how much later than the whole tape the ring begins
    let offset = offset(&lab, &ring, "steady");
    let length = info["duration_ns"].as_u64().expect("duration");
    // the ends of I/Os that no program saw are known a second later
    for chunks in [1, 2, 5] {
        let window = |open: u64| span(open + chunks * SECOND, open + length - 3 * SECOND / 2);
        same(&lab, [(&ring, &window(0)), ("full.tape", &window(offset))]);
        if chunks == 2 {
            // a cut of it says the same, and what the tape was begun for
            lab.analyze(&["cut", &ring, "cut.tape", "--time", &window(0)]).expect(0);
            assert_good(&lab, "cut.tape");
            same(&lab, [(&ring, &window(0)), ("cut.tape", "0%,100%")]);
            assert_eq!(began(&lab, "cut.tape").0, first);
        }
    }
    let names = lab.analyze(&["callgraph", &ring]).expect(0).text();
    assert!(names.contains("compute"), "{names}");
}

/// Views print the same of two tapes, each of a time.
#[track_caller]
fn same(lab: &Lab, tapes: [(&str, &str); 2]) {
    for view in [
        &["--clock", "mono"][..],
        &["--clock", "mono", "--call-graph"],
        &["-s"],
        &["kills", "--clock", "mono"],
        &["sched", "--clock", "mono"],
        &["sched", "latency", "--clock", "mono"],
        &["offcpu"],
        &["block", "--clock", "mono"],
        &["states"],
        &["net", "--clock", "mono"],
        &["exec", "--clock", "mono"],
        &["files"],
        &["callgraph"],
    ] {
        let [one, other] = tapes.map(|(tape, window)| {
            let run = lab.analyze(&[view, &[tape, "--time", window]].concat()).expect(0);
            let text = run.text();
            // the recorder's own time until then is another
            let lines = text.lines().filter(|line| !line.starts_with("without record itself"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        });
        assert!(!other.is_empty(), "{view:?}: nothing to compare");
        let differ = one.iter().zip(&other).find(|(one, other)| one != other);
        let lengths = (one.len(), other.len());
        assert!(differ.is_none() && lengths.0 == lengths.1, "{view:?} {tapes:?}: {lengths:?} {differ:#?}");
    }
}

/// Time from the start of full.tape to that of `ring`, by a call of a program that both have.
fn offset(lab: &Lab, ring: &str, comm: &str) -> u64 {
    let call = |tape: &str, is_it: &dyn Fn(&Value) -> bool| {
        let comm = format!("--comm={comm}");
        let calls = lab.analyze(&[tape, "-e", "openat", &comm, "--format", "json"]).expect(0).json();
        calls.into_iter().find(is_it).expect("the call")
    };
    let ours = call(ring, &|call| call["ts_ns"].as_i64() > Some(0));
    // each tape has its own reading of the real time, which may differ by some ns
    let ms = |call: &Value| call["time"].as_str().and_then(|time| time.get(..23)).map(str::to_owned).expect("time");
    let same = call("full.tape", &|call| {
        ms(call) == ms(&ours) && ["tid", "dur_ns", "args"].iter().all(|key| call[key] == ours[key])
    });
    let ts = |call: &Value| call["ts_ns"].as_i64().expect("ts");
    u64::try_from(ts(&same) - ts(&ours)).expect("the ring begins later")
}

/// Ten thousand events are one tape, which says how many there were.
#[test]
fn many_events_are_one_tape() {
    // alone: it takes every program of that name
    let Some(lab) = Lab::with_bpf() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let recorder = start(&lab, &["-a", "--last", "5s", "--after", "3s", "--on", "slow:getppid>0s:flood"]);
    lab::run(lab.command(&flood).args(["1", "10000"]));
    let tape = wait_for(&lab, "-slow-getppid");
    let run = lab::run(lab.command(&flood).args(["1", "7"]));
    drop(run);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(tapes(&lab), std::slice::from_ref(&tape), "one tape");
    let second = request(&lab, "later");
    recorder.stop(libc::SIGINT).expect(0);
    let (_, info) = began(&lab, &tape);
    let events = info["fired"].as_array().expect("fired").iter().map(|row| row["events"].as_u64().expect("events"));
    let calls = flood_calls(&lab, &tape);
    assert!(calls >= 10_000, "{calls} calls");
    // calls that were counted instead of stored, on a busy machine, fire as one
    let (events, counted) = (events.sum::<u64>(), info["ledger"]["calls"].as_u64().expect("calls"));
    assert!(events <= calls && events + counted >= calls, "{events} events of {calls} calls: {}", info["fired"]);
    let more = format!("; {} more", events - 1);
    let text = lab.analyze(&["info", &tape]).expect(0).text();
    assert!(text.replace("\n            ", " ").contains(&more), "{text}");
    let (_, info) = began(&lab, &second);
    let suppressed =
        info["fired"].as_array().expect("fired").iter().map(|row| row["suppressed"].as_u64().expect("number"));
    assert!(suppressed.sum::<u64>() >= 1, "those of the cooldown: {}", info["fired"]);
}

/// A full disk costs that tape, not what is in memory.
#[test]
fn a_full_disk_costs_one_tape() {
    // alone: it takes every program of that name
    let Some(lab) = Lab::with_bpf() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let _disk = Mounted::tmpfs(&lab, "tapes", "3m");
    let recorder = start(&lab, &["--comm", "flood", "--last", "20s", "--after", "100ms"]);
    lab::run(lab.command(&flood).args(["1", "300007"]));
    // others fill it
    fs::write(lab.path("tapes/others"), vec![1; (3 << 20) - (64 << 10)]).expect("write");
    let full = lab::run(lab.command(lab::binary("record")).args(["trigger", "full", "--dir", "tapes"]));
    full.says(1, &["No space left on device"]);
    fs::remove_file(lab.path("tapes/others")).expect("rm");
    let tape = request(&lab, "again");
    recorder.stop(libc::SIGINT).expect(0);
    assert_good(&lab, &tape);
    // beside load flood fills its share of the ring: some are only counted
    assert_eq!(flood_calls(&lab, &tape), 300_007, "{}", lab.info(&tape));
}

/// Tapes take no more room than they may, and the oldest go.
#[test]
fn old_tapes_make_room() {
    let Some(lab) = Lab::beside() else { return };
    let _disk = Mounted::tmpfs(&lab, "tapes", "100m");
    let options = ["--comm", "nobody", "--last", "2s", "--after", "50ms", "--disk", "64M", "--max-tapes", "3"];
    let recorder = start(&lab, &[&options[..], &["--keep-free", "5%"]].concat());
    let written: Vec<String> = (0..5).map(|n| request(&lab, &format!("n{n}"))).collect();
    assert_eq!(tapes(&lab), written[2..], "the newest three");
    // nothing would stay free
    fs::write(lab.path("tapes/others"), vec![1; 96 << 20]).expect("write");
    let run = lab::run(lab.command(lab::binary("record")).args(["trigger", "none", "--dir", "tapes"]));
    run.says(1, &["--keep-free"]);
    recorder.stop(libc::SIGINT).expect(0);
}

/// A recorder that is killed while it writes a tape leaves a readable part; one that is asked to end leaves a whole one.
#[test]
fn the_recorder_ends_while_it_writes() {
    let Some(lab) = Lab::beside() else { return };
    for (signal, suffix) in [(libc::SIGKILL, ".part"), (libc::SIGTERM, ".tape")] {
        let recorder = start(&lab, &["-a", "--last", "5s", "--after", "60s"]);
        std::thread::sleep(Duration::from_millis(1500));
        recorder.signal(libc::SIGUSR2);
        let size = |name: &String| fs::metadata(lab.path(name)).map_or(0, |meta| meta.len());
        lab.until("a part", || names(&lab).iter().any(|name| name.ends_with(".part") && size(name) > 4096));
        std::thread::sleep(Duration::from_millis(1500));
        let run = recorder.stop(signal);
        assert_eq!(lab::killed_by(&run).is_some(), signal == libc::SIGKILL, "{run:?}");
        let left: Vec<String> = names(&lab).into_iter().filter(|name| !name.ends_with(".sock")).collect();
        assert!(left.len() == 1 && left[0].ends_with(suffix), "{left:?}");
        let (first, info) = began(&lab, &left[0]);
        assert_eq!(first["what"], "asked for");
        assert_eq!(info["clean_end"], signal == libc::SIGTERM);
        assert!(info["duration_ns"].as_u64() >= Some(SECOND), "{info}");
        fs::remove_file(lab.path(&left[0])).expect("rm");
    }
}

/// A rotation is one recording in several tapes: each call is on one of them.
#[test]
fn a_rotation_has_every_call_once() {
    // alone: it takes every program of that name
    let Some(lab) = Lab::with_bpf() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let recorder = start(&lab, &["-a", "--rotate", "1s", "--keep", "50"]);
    let script = format!("for i in 1 2 3 4 5 6 7 8; do {flood} 1 1009; sleep 0.45; done");
    lab::run(lab.command("sh").args(["-c", &script]));
    recorder.stop(libc::SIGINT).expect(0);
    let tapes = tapes(&lab);
    assert!(tapes.len() >= 3, "{tapes:?}");
    let calls = |tape: &String| {
        assert_good(&lab, tape);
        flood_calls(&lab, tape)
    };
    let counts: Vec<u64> = tapes.iter().map(calls).collect();
    assert_eq!(counts.iter().sum::<u64>(), 8 * 1009, "{counts:?}");
}

/// A service manager is told when the recorder records, that it still does, and that it ends.
#[test]
fn a_service_manager_is_told() {
    let Some(lab) = Lab::beside() else { return };
    let socket = UnixDatagram::bind(lab.path("notify")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let told = || {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).expect("a message in time");
        String::from_utf8_lossy(&text[..length]).trim_end().to_owned()
    };
    let to = format!("NOTIFY_SOCKET={}", lab.path("notify").display());
    let record = lab::binary("record");
    let before = [&*to, "WATCHDOG_USEC=400000", record.to_str().expect("UTF-8")];
    let since = Instant::now();
    let recorder = start_with(&lab, "env", &before, &["-a", "--last", "2s"]);
    assert_eq!(told(), "READY=1");
    (0..12).for_each(|_| assert_eq!(told(), "WATCHDOG=1"));
    recorder.stop(libc::SIGTERM).expect(0);
    let (mut fed, mut rest) = (12, told());
    while rest == "WATCHDOG=1" {
        fed += 1;
        rest = told();
    }
    assert_eq!(rest, "STOPPING=1");
    // it is fed every 200 ms: no more often than there was time for, however long that was
    let most = 2 + since.elapsed().as_millis() / 200;
    assert!(fed <= most, "{fed} times, {most} at most");
}

/// The disk takes nothing while a tape is being written: the watchdog is not fed. What the service manager sends then ends the
/// recorder, and the part says what was before.
#[test]
fn a_disk_that_hangs_lets_the_watchdog_bite() {
    let Some(lab) = Lab::beside() else { return };
    let Some(disk) = Loop::new(&lab, "image", 64 << 20) else { return };
    lab::run(lab.command("mkfs.ext4").args(["-q", &disk.path])).expect(0);
    let _mounted = Mounted::disk(&lab, "tapes", &disk.path);
    let socket = UnixDatagram::bind(lab.path("notify")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a time-out");
    let to = format!("NOTIFY_SOCKET={}", lab.path("notify").display());
    let record = lab::binary("record");
    let before = [&*to, "WATCHDOG_USEC=400000", record.to_str().expect("UTF-8")];
    let recorder = start_with(&lab, "env", &before, &["-a", "--last", "5s", "--after", "60s"]);
    std::thread::sleep(Duration::from_millis(1500));
    recorder.signal(libc::SIGUSR2);
    let size = |name: &String| fs::metadata(lab.path(name)).map_or(0, |meta| meta.len());
    lab.until("a part", || names(&lab).iter().any(|name| name.ends_with(".part") && size(name) > 4096));
    let mut text = [0; 256];
    let frozen = Frozen::new(&lab, "tapes");
    let mut fed = 0;
    // silent for five times as long as it may be
    while socket.recv(&mut text).is_ok() {
        fed += 1;
        assert!(fed < 150, "fed {fed} times while nothing can be written");
    }
    recorder.signal(libc::SIGABRT);
    drop(frozen);
    let run = recorder.wait();
    assert_eq!(lab::killed_by(&run), Some(libc::SIGABRT), "{run:?}");
    let left: Vec<String> = names(&lab).into_iter().filter(|name| name.ends_with(".part")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let (first, info) = began(&lab, &left[0]);
    assert_eq!((&first["what"], &info["clean_end"]), (&"asked for".into(), &false.into()));
    assert!(info["duration_ns"].as_u64() >= Some(SECOND), "{info}");
}

/// Programs that are gone, with their files, when their stacks are written: the ring knows the names of the functions that a
/// whole tape of the same recorder has.
#[test]
fn stacks_of_what_is_gone_have_their_names() {
    let Some(lab) = Lab::beside() else { return };
    let busy = lab.cc("busy", &["-pthread"]);
    // short: where others run beside it the ring has two of them as well
    let script =
        format!("for i in $(seq 40); do [ -e enough ] && break; cp {busy} hot$i; ./hot$i hot 700; rm hot$i; done");
    let options = ["--last", "5s", "--after", "1s", "-F", "99", "--call-graph", "dwarf"];
    let ring = beside(&lab, (11, "gone"), &options, &["sh", "-c", &script]);
    // ns of each program's samples: in the function that has all of its time, and all
    let samples = |tape: &str, options: &[&str]| {
        let mut of = std::collections::BTreeMap::<String, [u64; 2]>::new();
        for run in 1..=40 {
            let comm = format!("hot{run}");
            let only = format!("--comm={comm}");
            let view = lab.analyze(&[&["callgraph", tape, "--of", "cpu", "--folded", &only], options].concat());
            assert!(matches!(view.code(), 0 | 3), "{view:?}");
            let text = view.text();
            let counts = text.lines().filter_map(|line| {
                let (stack, count) = line.rsplit_once(' ')?;
                Some((stack.contains("hot_loop"), count.parse::<u64>().ok()?))
            });
            let (named, other): (Vec<_>, Vec<_>) = counts.partition(|(named, _)| *named);
            let sum = |of: &[(bool, u64)]| of.iter().map(|(_, count)| count).sum::<u64>();
            of.insert(comm, [sum(&named), sum(&named) + sum(&other)]);
        }
        of
    };
    let of_ring = samples(&ring, &[]);
    let there = of_ring.values().filter(|[named, _]| *named >= 100_000_000);
    assert!(there.count() >= 2, "{of_ring:?}");
    let [named, all] = of_ring.values().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    // the rest is what starts a program
    assert!(named * 10 >= all * 9, "{of_ring:?}");
    let (base, length) = (offset(&lab, &ring, "cp"), lab.info(&ring)["duration_ns"].as_u64().expect("duration"));
    let window = |open: u64| span(open + SECOND, open + length - SECOND / 2);
    assert_eq!(samples(&ring, &["--time", &window(0)]), samples("full.tape", &["--time", &window(base)]));
}

/// Two recorders do not share a directory; triggers that cannot fire are refused.
#[test]
fn what_cannot_be_is_refused() {
    let Some(lab) = Lab::beside() else { return };
    let recorder = start(&lab, &["-a", "--last", "2s"]);
    let record = |options: &[&str]| lab::run(lab.command(lab::binary("record")).args(options));
    record(&["-a", "--last", "2s", "--dir", "tapes"]).says(1, &["another record uses it"]);
    record(&["-a", "--last", "2s", "--dir", "none/none"]).says(1, &["--dir none/none"]);
    record(&["-a", "--last", "2s", "--on", "runq>1s", "--families", "syscall"]).says(2, &["family sched"]);
    record(&["-a", "--last", "2s", "--on", "slow:fsync>1s", "-e", "read"]).says(2, &["fsync is not recorded"]);
    record(&["-a", "--last", "2s", "--on", "slov:fsync>1s"]).says(2, &["no such trigger"]);
    record(&["status", "--dir", "none"]).says(1, &["no record with --last"]);
    recorder.stop(libc::SIGINT).expect(0);
    assert!(!lab.path("tapes/record.sock").exists());
}
