//! What `analyze path` says of a program that takes long for known reasons, and says itself which thread is to blame, from when to when, and
//! how long it was on a CPU.

use std::fs;

use serde_json::Value;
use systape_e2e::disk::skipped;
use systape_e2e::lab::run;
use systape_e2e::more::mono;
use systape_e2e::{Background, Lab};

/// What the program says of one case.
#[derive(Debug)]
struct Said {
    case: String,
    tid: i64,
    culprit: i64,
    from: i64,
    to: i64,
    cpu: i64,
}

fn said(text: &str) -> Vec<Said> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().unwrap_or_else(|_| panic!("{line}"));
        let [tid, culprit, from, to, cpu] = [1, 2, 3, 4, 5].map(number);
        Said { case: words[0].to_owned(), tid, culprit, from, to, cpu }
    };
    text.lines().map(parse).collect()
}

/// The path of a case: its parts, which tile the time.
fn path(lab: &Lab, said: &Said) -> Vec<Value> {
    let (tid, time) = (said.tid.to_string(), format!("{},{}", mono(said.from), mono(said.to)));
    let asked = ["path", "t.tape", "-t", &tid, "--time", &time, "--format", "json"];
    let parts = lab.analyze(&asked).expect(0).json();
    let number = |part: &Value, name: &str| part[name].as_i64().unwrap_or_else(|| panic!("{name}: {part}"));
    let mut at = None;
    for part in &parts {
        assert!(number(part, "dur_ns") > 0, "{part}");
        assert!(at.is_none_or(|at| at == number(part, "ts_ns")), "a hole or an overlap before {part}");
        at = Some(number(part, "ts_ns") + number(part, "dur_ns"));
    }
    let sum: i64 = parts.iter().map(|part| number(part, "dur_ns")).sum();
    assert_eq!(sum, said.to - said.from, "{said:?}");
    // the sums are of the same time
    let sums = lab.analyze(&[&asked[..], &["--sums"]].concat()).expect(0).json();
    assert_eq!(sums.iter().map(|row| number(row, "total_ns")).sum::<i64>(), sum, "{said:?}");
    parts
}

/// Time of the parts that `is` holds of.
fn time(parts: &[Value], is: impl Fn(&Value) -> bool) -> i64 {
    parts.iter().filter(|part| is(part)).filter_map(|part| part["dur_ns"].as_i64()).sum()
}

#[test]
fn the_culprit_is_the_one_that_the_program_names() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("path", &["-pthread"]);
    // whatever else runs here has its calls on the tape too
    let told = lab.record("t.tape", &["-a", "--with-self", "-m", "64M"], &[&program, "150"]).expect(0).text();
    lab.assert_whole("t.tape");
    let all = said(&told);
    assert_eq!(all.len(), 9, "{told}");
    for said in &all {
        let parts = path(&lab, said);
        let whole = said.to - said.from;
        // on a busy machine those who only hand on may wait long for a CPU
        let handed =
            time(&parts, |part| part["tid"] != said.culprit && part["tid"] != said.tid && part["cause"] == "runqueue");
        let late = time(&parts, |part| part["tid"] == said.tid && part["cause"] == "runqueue");
        let besides = if said.case == "crowded" { 0 } else { handed + if said.tid == said.culprit { 0 } else { late } };
        let enough = |ns: i64, what: &str| {
            assert!(ns * 100 >= (whole - besides) * 95, "{}: {ns} of {whole} ns {what}: {parts:#?}", said.case);
        };
        let cause = |part: &Value, causes: &[&str]| causes.iter().any(|cause| part["cause"] == *cause);
        let unknown = time(&parts, |part| cause(part, &["unknown", "not-recorded", "too-deep"]));
        // where events contradict each other a state counts as not known: at most a slice on a busy machine
        assert!(
            unknown * 50 < whole || unknown < 5_000_000,
            "{}: {unknown} of {whole} ns not known: {parts:#?}",
            said.case
        );
        // on a busy machine whoever computes also waits for a CPU: that is its time all the same
        let own = ["cpu", "runqueue"];
        let of = |causes: &'static [&'static str]| {
            time(&parts, move |part| part["tid"] == said.culprit && causes.iter().any(|cause| part["cause"] == *cause))
        };
        match said.case.as_str() {
            "chain" | "futex-burn" | "served" | "waited" => enough(of(&["cpu", "runqueue"]), "are of whom computes"),
            "futex-sleep" | "slept" => enough(of(&["sleep", "runqueue", "cpu"]), "are of whom sleeps"),
            "timed-out" => enough(of(&["timeout", "runqueue", "cpu"]), "are of the time that was up"),
            "crowded" => {
                enough(
                    time(&parts, |part| cause(part, &own) && part["tid"] == said.tid),
                    "are on a CPU or wait for one",
                );
                let waits = time(&parts, |part| cause(part, &["runqueue"]));
                let other = time(&parts, |part| cause(part, &["runqueue"]) && !part["other_tid"].is_null());
                assert!(other * 100 >= waits * 90, "{other} of {waits} ns behind somebody: {parts:#?}");
                assert!(parts.iter().any(|part| part["other_tid"] == said.culprit), "{parts:#?}");
                let cpu = time(&parts, |part| cause(part, &["cpu"]));
                // the program's clock leaves out interrupts and what is stolen; a switch takes time too
                let off = (cpu - said.cpu).abs();
                assert!(off * 100 <= whole * 5, "{cpu} ns on a CPU, {} by its own clock: {parts:#?}", said.cpu);
            }
            "tiers" => {
                // of the server, all of whose threads have its number: computing, its own sleep, and that of who has the lock
                let of = |mine: bool, causes: &'static [&'static str]| {
                    time(&parts, move |part| {
                        let own = part["tid"] == said.culprit;
                        part["pid"] == said.culprit && own == mine && causes.iter().any(|cause| part["cause"] == *cause)
                    })
                };
                let thirds = [of(true, &["cpu", "runqueue"]), of(true, &["sleep"]), of(false, &["sleep"])];
                enough(thirds.iter().sum::<i64>() + of(false, &["cpu", "runqueue"]), "are of the server's three");
                for third in thirds {
                    assert!(third >= 150_000_000 * 9 / 10, "{thirds:?} of {whole}: {parts:#?}");
                }
            }
            other => panic!("{other}"),
        }
        if said.case == "futex-sleep" {
            let sleeps = time(&parts, |part| part["tid"] == said.culprit && part["cause"] == "sleep");
            assert!(sleeps * 2 > whole && parts.iter().any(|part| part["for_syscall"] == "futex"), "{parts:#?}");
        }
        if said.case == "served" {
            assert!(
                parts.iter().any(|part| part["net_softirq"] == true && part["for_syscall"] == "read"),
                "{parts:#?}"
            );
        }
    }
    // who is asked for by process is its main thread, and says so
    let waited = all.iter().find(|said| said.case == "waited").expect("that case");
    let text = lab.analyze(&["path", "t.tape", "-p", &waited.tid.to_string()]).expect(0).text();
    assert!(text.contains("the main thread of the process") && text.contains("until path["), "{text}");
}

#[test]
fn the_command_is_found_on_a_tape_of_the_whole_machine() {
    let Some(lab) = Lab::with_bpf() else { return };
    lab.record("t.tape", &["-a"], &["sleep", "0.1"]).expect(0);
    let text = lab.analyze(&["path", "t.tape"]).expect(0).text();
    let is_head = |line: &str| line.contains(" of sleep[") && line.contains("the command that was recorded");
    assert!(text.lines().any(is_head), "{text}");
}

#[test]
fn a_slow_file_system_is_its_daemon() {
    let Some(lab) = Lab::with_bpf() else { return };
    let slowfs = lab.cc("slowfs", &["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"]);
    let dir = lab.path("slow");
    fs::create_dir(&dir).expect("a directory");
    let daemon = Background::start(lab.command(slowfs).arg(&dir));
    lab.until("the file system", || dir.join("big_file").exists());
    let from = format!("if={}", dir.join("big_file").display());
    lab.record("t.tape", &["-a"], &["dd", &from, "of=/dev/null", "bs=4k", "count=4"]).expect(0);
    let pid = i64::from(daemon.pid());
    let unmounted = std::process::Command::new("fusermount3").args(["-u", "-z"]).arg(&dir).status();
    drop(daemon);
    assert!(unmounted.is_ok_and(|status| status.success()));
    let parts = lab.analyze(&["path", "t.tape", "--format", "json"]).expect(0).json();
    // the first four reads sleep for 20, 350, 35 and 120 ms, or longer on a busy machine: then the reads are as much longer
    let asleep = time(&parts, |part| part["pid"] == pid && part["cause"] == "sleep");
    let calls = lab.analyze(&["trace", "t.tape", "--comm", "dd", "-e", "read", "--format", "json"]).expect(0).json();
    let reads =
        time(&calls, |call| call["args"]["fd"]["path"].as_str().is_some_and(|path| path.ends_with("/big_file")));
    assert!((525_000_000..=reads).contains(&asleep), "{asleep} of {reads}: {parts:#?}");
    assert!(parts.iter().any(|part| part["pid"] == pid && part["for_syscall"] == "read"), "{parts:#?}");
}

#[test]
fn a_wait_for_a_disk_names_the_io_that_ended_it() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::write(lab.path("data"), vec![7; 8 << 20]).expect("data");
    run(lab.command("sync").arg("data")).expect(0);
    let dd = ["dd", "if=data", "of=/dev/null", "bs=256k", "iflag=direct"];
    // not every file system has direct I/O, nor a disk below it
    if run(lab.command(dd[0]).args(&dd[1..])).code() != 0 {
        return skipped("no direct I/O here");
    }
    lab.record("t.tape", &[], &dd).expect(0);
    let ios = lab.analyze(&["block", "t.tape", "--format", "json"]).expect(0).json();
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap_or_else(|| panic!("{key}: {row}"));
    if ios.iter().all(|io| io["owner"]["comm"] != "dd") {
        return skipped("direct I/O that is none of a disk");
    }
    let parts = lab.analyze(&["path", "t.tape", "--format", "json"]).expect(0).json();
    let waits: Vec<&Value> = parts.iter().filter(|part| part["cause"] == "disk" && part["syscall"] == "read").collect();
    let named: Vec<&&Value> = waits.iter().filter(|part| !part["disk"].is_null()).collect();
    assert!(!waits.is_empty() && named.len() * 10 >= waits.len() * 9, "{} of {}: {parts:#?}", named.len(), waits.len());
    for part in named {
        let (from, to) = (number(part, "ts_ns"), number(part, "ts_ns") + number(part, "dur_ns"));
        let is = |io: &&Value| {
            ["disk", "sector"].iter().all(|key| io[*key] == part[*key])
                && io["bytes"] == part["io_bytes"]
                && (from..=to).contains(&number(io, "ts_ns"))
        };
        assert!(ios.iter().any(|io| is(&io)), "{part}: {ios:#?}");
    }
    assert!(lab.analyze(&["path", "t.tape"]).expect(0).text().contains(" [its last I/O: read of "));
}
