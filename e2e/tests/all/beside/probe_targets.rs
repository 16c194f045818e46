//! Calls of functions and passes of static probes by target: each way to choose one, as a filter of a command and of the machine, while others pass
//! the same places. Counts are primes, so that a pass too many or too few shows.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use systape_e2e::more::{Cgroup, NOBODY};
use systape_e2e::rows::args;
use systape_e2e::{Background, Lab};

/// What records all passes of the workload, each as a call and as a static probe.
fn options(program: &str) -> Vec<String> {
    vec!["--uprobe".into(), format!("{program}:hit(i=int)->int"), "--usdt".into(), format!("{program}:passes:hit")]
}

/// How many calls and how many passes the tape has; results are checked.
fn counts(lab: &Lab) -> [usize; 2] {
    lab.assert_whole("t.tape");
    let calls = lab.rows("t.tape", "uprobe:hit");
    for row in &calls {
        assert_eq!(args(row)["ret"].as_i64(), args(row)["i"].as_i64().map(|i| i + 1), "{row}");
    }
    assert_eq!(lab.rows("t.tape", "uprobe:hit.unpaired").len(), 0);
    [calls.len(), lab.rows("t.tape", "usdt:passes:hit").len()]
}

#[test]
fn a_command_a_user_a_name_a_cpu_a_cgroup_and_all() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("passes", &[]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("chmod");
    let group = format!("systape-probe-{}", std::process::id());
    let cgroup = Cgroup::new(&group).expect("cgroup v2 is mounted");
    let home = Path::new(cgroup.dir()).parent().expect("mount").to_str().expect("UTF-8").to_owned();
    let as_nobody = NOBODY.join(" ");
    let named = format!("{program} 101 painted 103 passes 107");
    let grouped = format!(
        "{program} 211; echo 0 > {}/cgroup.procs; {program} 101; echo 0 > {home}/cgroup.procs; {program} 223",
        cgroup.dir()
    );
    let cases: [(&[&str], String, usize); 7] = [
        (&["-u", "65534"], format!("{program} 211; {as_nobody} {program} 101"), 101),
        (&["--comm", "painted"], named.clone(), 103),
        (&["--comm", "passes"], named.clone(), 101 + 107),
        (&["-C", "0"], format!("taskset -c 0 {program} 101; taskset -c 1 {program} 211"), 101),
        (&["-G", &group], grouped.clone(), 101),
        (&["-G", &group, "-u", "65534"], grouped, 0),
        (&["-a"], format!("{program} 101 & {named}; wait"), 101 + 101 + 103 + 107),
    ];
    let places = options(&program);
    for (target, text, n) in cases {
        let all: Vec<&str> = places.iter().map(String::as_str).chain(target.iter().copied()).collect();
        lab.record("t.tape", &all, &["sh", "-c", &text]).expect(0);
        assert_eq!(counts(&lab), [n, n], "{target:?} with a command");
        let recorder = lab.attach("t.tape", &all);
        Background::start(lab.command("sh").args(["-c", &text])).wait().expect(0);
        recorder.stop(libc::SIGINT).expect(0);
        assert_eq!(counts(&lab), [n, n], "{target:?} of the machine");
    }
    // the command alone, while others pass the same places
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let others = Background::start(lab.command("sh").args(["-c", &format!("while :; do {program} 10; done")]));
    let text = format!("{program} 101 & {program} 103; wait");
    lab.record("t.tape", &places, &["sh", "-c", &text]).expect(0);
    assert_eq!(counts(&lab), [101 + 103; 2]);
    lab.record("t.tape", &[&places[..], &["--no-inherit"]].concat(), &["sh", "-c", &text]).expect(0);
    assert_eq!(counts(&lab), [0; 2], "--no-inherit");
    drop(others);
}

#[test]
fn a_process_its_children_and_one_thread() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("passes", &[]);
    let places = options(&program);
    let with =
        |more: &[&str]| -> Vec<String> { places.iter().cloned().chain(more.iter().map(ToString::to_string)).collect() };
    let attach = |more: &[&str]| {
        let all = with(more);
        lab.attach("t.tape", &all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let start = |text: &str| {
        let text = format!("exec > out; {text}");
        Background::start(lab.command("sh").args(["-c", &text]))
    };
    // a process that is there, and children that it makes later
    let wait = "while [ ! -e go ]; do sleep 0.01; done";
    let family = start(&format!("{wait}; {program} 101 & {program} 103; wait"));
    let stranger = Background::start(lab.command("sh").args(["-c", &format!("{wait}; exec {program} 211")]));
    let recorder = attach(&["-p", &family.pid_text()]);
    fs::write(lab.path("go"), "").expect("write");
    family.wait().expect(0);
    stranger.wait().expect(0);
    recorder.wait().expect(0);
    assert_eq!(counts(&lab), [101 + 103; 2], "-p");
    // a process, and one of its threads, which have the file mapped since before
    for whole in [true, false] {
        fs::remove_file(lab.path("go")).expect("remove");
        fs::remove_file(lab.path("out")).expect("remove");
        let threads = start(&format!("exec {program} threads 101 103 107"));
        lab.until("threads", || fs::read_to_string(lab.path("out")).is_ok_and(|text| text.matches('\n').count() == 3));
        let said = fs::read_to_string(lab.path("out")).expect("out");
        let said: BTreeMap<&str, &str> = said.lines().filter_map(|line| line.split_once(' ')).collect();
        let (tid, n) = said.iter().nth(1).expect("a thread");
        let (option, id, expected) =
            if whole { ("-p", threads.pid_text(), 311) } else { ("-t", (*tid).to_owned(), n.parse().expect("count")) };
        let recorder = attach(&[option, &id]);
        fs::write(lab.path("go"), "").expect("write");
        threads.wait().expect(0);
        recorder.wait().expect(0);
        assert_eq!(counts(&lab), [expected; 2], "{option}");
    }
}
