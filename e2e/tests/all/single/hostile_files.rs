//! What users without rights can do to root's `record`: files that are slow to parse, that are large once parsed, that
//! kill their parser. They cost their own names and places, never the recording, its start, its end or its memory; and what
//! parses them is nobody.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::lab::run;
use systape_e2e::more::{FREESTANDING, NOBODY, comms};
use systape_e2e::{Background, Lab};

/// Most memory that `record` itself may take at any time, bytes.
const MOST_MEMORY: u64 = 256 << 20;

/// A program of nobody's.
fn of_nobody(lab: &Lab, command: &[&str]) -> Background {
    let words = [&NOBODY[..], command].concat();
    Background::start(lab.command(words[0]).args(&words[1..]))
}

/// Programs whose debug information takes minutes to read.
fn slow_names(lab: &Lab, count: usize) -> Vec<Background> {
    let start = |salt: usize| {
        let salt_flag = format!("-DSALT={salt}");
        let flags =
            [&FREESTANDING[..], &["-g0", "-Wl,--build-id", "-DFUNCTIONS=300000", "-DRANGES=500000", &salt_flag]]
                .concat();
        let program = lab.cc("slow_names", &flags);
        let own = format!("{program}{salt}");
        fs::rename(&program, &own).expect("rename");
        of_nobody(lab, &[&own])
    };
    (1..=count).map(start).collect()
}

/// Names that a tape lacks: places and why, by module.
fn unnamed(info: &Value) -> BTreeMap<String, (u64, String)> {
    let all = info["symbols"]["unnamed"].as_array().expect("list").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|one| (text(&one["module"]), (one["places"].as_u64().expect("number"), text(&one["why"])))).collect()
}

/// The peak memory of the recorder, bytes, as the tape has it.
fn peak(info: &Value) -> u64 {
    let own = info["recorder_peak_rss"].as_u64().or_else(|| info["recorder"]["peak_rss"].as_u64());
    own.unwrap_or_else(|| panic!("{info}"))
}

const CALLS: [&str; 7] = ["-a", "-g", "-e", "=getppid", "--families", "syscall", "--quiet"];

#[test]
fn slow_debug_information_costs_its_own_names() {
    let Some(lab) = Lab::with_bpf() else { return };
    let slow = slow_names(&lab, 4);
    lab.record("t.tape", &[&CALLS[..], &["--for", "500ms"]].concat(), &[]).expect(0);
    lab.assert_whole("t.tape");
    let info = lab.info("t.tape");
    let lacking = unnamed(&info);
    let why: Vec<_> = lacking.iter().filter(|(module, _)| module.contains("slow_names")).collect();
    assert_eq!(why.len(), slow.len(), "{lacking:?}");
    assert!(why.iter().all(|(_, (places, why))| *places > 0 && why.starts_with("given up: ")), "{why:?}");
    assert!(peak(&info) < MOST_MEMORY, "{}", peak(&info));
    assert!(info["symbols"]["named"].as_u64().is_some_and(|named| named > 0), "others have theirs: {info}");
    drop(slow);
}

#[test]
fn a_second_signal_ends_the_look_up_of_names() {
    let Some(lab) = Lab::with_bpf() else { return };
    let slow = slow_names(&lab, 1);
    // nobody would wait that long: the test ends only if the signal is heard
    let recorder = lab.attach("t.tape", &[&CALLS[..], &["--names-for", "20m"]].concat());
    std::thread::sleep(Duration::from_millis(500));
    recorder.signal(libc::SIGINT);
    let children = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", recorder.pid())).into_iter().flatten().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()).collect::<String>()
    };
    lab.until("names are looked up", || !children().trim().is_empty());
    recorder.stop(libc::SIGTERM).expect(0);
    lab.assert_whole("t.tape");
    let lacking = unnamed(&lab.info("t.tape"));
    let why = lacking.iter().find(|(module, _)| module.contains("slow_names")).map(|(_, (_, why))| why.as_str());
    assert_eq!(why, Some("given up: a signal ended the look-up of names"), "{lacking:?}");
    drop(slow);
}

/// Uid, Gid, CapEff, CapPrm, NoNewPrivs and Seccomp of a task.
fn confinement(status: &str) -> Option<BTreeMap<String, String>> {
    const WORDS: [&str; 6] = ["Uid", "Gid", "CapEff", "CapPrm", "NoNewPrivs", "Seccomp"];
    let text = fs::read_to_string(status).ok()?;
    let fields = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| WORDS.contains(name));
    Some(
        fields.map(|(name, value)| (name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" "))).collect(),
    )
}

/// Processes of `record` that read files.
fn readers() -> Vec<String> {
    of_record("--look-up-names")
}

/// Every thread of those that read hostile files is nobody, without rights, behind a list of calls.
#[track_caller]
fn assert_confined(pid: &str) -> bool {
    let mut threads = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let Some(found) = confinement(task.path().join("status").to_str().expect("UTF-8")) else { continue };
        if found["Seccomp"] == "0" {
            // it has just begun, and was told of no file yet
            return false;
        }
        let (nobody, none) = ("65534 65534 65534 65534", "0000000000000000");
        let expected = [
            ("Uid", nobody),
            ("Gid", nobody),
            ("CapEff", none),
            ("CapPrm", none),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
        ];
        for (name, value) in expected {
            assert_eq!(found[name], value, "{name} of {pid}: {found:?}");
        }
        threads += 1;
    }
    threads > 0
}

/// Processes that are `record`, by the words behind its name.
fn of_record(first: &str) -> Vec<String> {
    let pids = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_one = |pid: &String| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|b| *b == 0).nth(1) == Some(first.as_bytes()))
    };
    pids.filter(|name| name.parse::<u32>().is_ok()).filter(is_one).collect()
}

/// Descriptors of a process by which it could read a file of this name.
fn readable(pid: &str, name: &str) -> Vec<String> {
    const O_PATH: u32 = 0o10_000_000;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let of_name = descriptors.filter_map(|entry| {
        let path = fs::read_link(entry.path()).ok()?.display().to_string();
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_str()?)).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim().to_owned();
        let flags = u32::from_str_radix(&flags, 8).ok()?;
        (path.contains(name) && flags & O_PATH == 0).then_some(path)
    });
    of_name.collect()
}

/// Whether time, memory and descriptors of a process have limits.
fn is_limited(pid: &str) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let soft = |name: &str| limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next();
    ["Max cpu time", "Max data size", "Max address space", "Max open files"]
        .iter()
        .all(|name| soft(name).is_some_and(|soft| soft != "unlimited"))
}

#[test]
fn who_reads_hostile_files_is_nobody() {
    let Some(lab) = Lab::with_bpf() else { return };
    let slow = slow_names(&lab, 1);
    let recorder = lab.attach("t.tape", &[&CALLS[..], &["--names-for", "20m"]].concat());
    std::thread::sleep(Duration::from_millis(500));
    recorder.signal(libc::SIGINT);
    lab.until("a file is read by nobody", || readers().iter().any(|pid| assert_confined(pid)));
    // it opens nothing: what it has are the socket, nothing, and the files it was sent
    for pid in readers() {
        // others of its user do not get at its memory or its descriptors
        for place in ["mem", "maps", "environ", "fd/0"] {
            let looks =
                run(lab.command(NOBODY[0]).args(&NOBODY[1..]).args(["head", "-c1", &format!("/proc/{pid}/{place}")]));
            // it may have ended, and another have come
            let gone = !std::path::Path::new(&format!("/proc/{pid}")).exists();
            let refused = looks.code() != 0 && looks.stderr.contains("Permission denied");
            assert!(refused || gone, "{place}: {}", looks.stderr);
        }
        let opened = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let opened: Vec<String> =
            opened.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.display().to_string())).collect();
        // whatever else runs on the machine has names too
        let programs = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path().join("exe"));
        let programs: Vec<String> =
            programs.filter_map(|exe| Some(fs::read_link(exe).ok()?.display().to_string())).collect();
        let known = |path: &String| {
            ["socket:", "/dev/null", "/memfd:"].iter().any(|start| path.starts_with(start))
                || path.contains(".so")
                || path.contains("slow_names")
                || programs.contains(path)
        };
        assert!(opened.iter().all(known), "{opened:?}");
    }
    // who opens has no right but for that, and neither it nor the recorder keeps a file of users that it could read
    const SETS_IDS_OR_KILLS: u64 = 1 << 5 | 1 << 6 | 1 << 7;
    let openers = of_record("--open-files");
    assert!(!openers.is_empty());
    for pid in &openers {
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Some(found) = confinement(task.path().join("status").to_str().expect("UTF-8")) else { continue };
            let rights = u64::from_str_radix(&found["CapPrm"], 16).expect("hex");
            assert_eq!((rights & SETS_IDS_OR_KILLS, found["NoNewPrivs"].as_str()), (0, "1"), "{pid}: {found:?}");
        }
    }
    let held = |pid: &str| readable(pid, "slow_names");
    let own = recorder.pid().to_string();
    assert_eq!(held(&own), [""; 0]);
    for pid in &openers {
        lab.until("it is closed again", || held(pid).is_empty());
    }
    // the one of CPU time comes with the first file
    lab.until("all is limited", || readers().iter().any(|pid| is_limited(pid)));
    recorder.stop(libc::SIGTERM).expect(0);
    drop(slow);
}

/// Two programs that run from an overlay over a file system of a user. Once there is a file `hang`, one cannot be read, and
/// no descriptor of the other can be closed.
fn on_hanging_files(lab: &Lab) -> Background {
    let flags = ["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"];
    lab.cc("hangfs", &flags);
    let script = "mount -t tmpfs tmpfs mnt && mkdir mnt/fuse mnt/up mnt/ov
        ./hangfs mnt/fuse /bin/sleep \"$PWD/hang\" &
        until test -x mnt/fuse/flush; do sleep 0.02; done
        mount -t overlay overlay -o lowerdir=mnt/fuse:mnt/up mnt/ov
        mnt/ov/read 1000 & mnt/ov/flush 1000 & touch begun; wait";
    fs::create_dir(lab.path("mnt")).expect("mkdir");
    let mut unshare = lab.command("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]);
    let programs = Background::start(unshare);
    lab.until("they run", || lab.path("begun").exists());
    std::thread::sleep(Duration::from_millis(100));
    fs::write(lab.path("hang"), "").expect("hang");
    programs
}

#[test]
fn files_that_nobody_answers_for_hold_no_recording_up() {
    let Some(lab) = Lab::with_bpf() else { return };
    let programs = on_hanging_files(&lab);
    // it is waited for until each thread of it has ended
    let run = lab.record("t.tape", &[&CALLS[..], &["--call-graph", "dwarf", "--for", "300ms"]].concat(), &[]).expect(0);
    lab.assert_whole("t.tape");
    let waiting = of_record("--open-files");
    assert!(!waiting.is_empty(), "nothing hung: {}", run.stderr);
    drop(programs);
    lab.until("what was left behind ends with the file system", || {
        of_record("--open-files").iter().all(|pid| !waiting.contains(pid))
    });
}

/// A process of nobody's with its own `libc.so.6` mapped, made by the workload from these words.
fn with_own_libc(lab: &Lab, words: &[&str]) -> Background {
    lab.cc("many_names", &[]);
    fs::create_dir(lab.path("evil")).expect("mkdir");
    fs::set_permissions(lab.path("evil"), fs::Permissions::from_mode(0o777)).expect("chmod");
    let evil = lab.file("evil/libc.so.6");
    let program = of_nobody(lab, &[&["./many_names", evil.as_str()][..], words].concat());
    lab.until("it is mapped", || {
        fs::read_to_string(format!("/proc/{}/maps", program.pid())).is_ok_and(|maps| maps.contains("evil/libc.so.6"))
    });
    program
}

/// Rows of look-ups of names by the machine's own library.
fn look_ups(lab: &Lab, tape: &str) -> usize {
    ["dns:getaddrinfo", "dns:gethostbyname2"].iter().map(|table| lab.rows(tape, table).len()).sum()
}

#[test]
fn a_library_of_many_long_names_takes_no_memory() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = with_own_libc(&lab, &["4000000"]);
    let run = lab.record("t.tape", &["-a", "--probe", "dns"], &["getent", "ahosts", "localhost"]);
    assert!([0, 2].contains(&run.code()), "{}", run.stderr);
    // it has none of the functions, or took too long: it is named either way, and the machine's own is probed
    assert!(run.stderr.contains("evil/libc.so.6 of process"), "{}", run.stderr);
    assert!(peak(&lab.info("t.tape")) < MOST_MEMORY, "{}", peak(&lab.info("t.tape")));
    assert!(look_ups(&lab, "t.tape") > 0, "{}", run.stderr);
    drop(program);
}

/// Threads of one process; fewer than `pid_max` of a small machine allows.
const THREADS: usize = 20_000;

#[test]
fn very_many_threads_and_huge_arguments_cost_their_own() {
    let Some(lab) = Lab::with_bpf() else { return };
    lab.cc("redteam", &[]);
    let threads = of_nobody(&lab, &["./redteam", "threads", &THREADS.to_string()]);
    let has = |least: usize| {
        let status = fs::read_to_string(format!("/proc/{}/status", threads.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
        line.and_then(|line| line.trim().parse::<usize>().ok()).is_some_and(|all| all > least)
    };
    // fewer where the machine allows fewer
    lab.until("there are many threads", || has(THREADS / 2));
    // its kind of the crowd's: programs with 1.8 MB of arguments and environment, one after the other
    let words = of_nobody(&lab, &["./redteam", "4", ".", "14"]);
    lab.until("they are executed", || comms().iter().any(|comm| comm == "exe"));
    let families = ["-a", "-g", "--families", "syscall,process,sched"];
    lab.record("t.tape", &families, &["./redteam", "polite", "100"]).expect(0);
    lab.analyze(&["check", "t.tape"]).expect(0);
    let info = lab.info("t.tape");
    assert!(peak(&info) < MOST_MEMORY, "{}", peak(&info));
    let rows =
        lab.analyze(&["-s", "t.tape", "--comm", "polite", "-e", "=getppid", "--format", "json"]).expect(0).json();
    let calls: u64 = rows.iter().filter_map(|row| row["calls"].as_u64()).sum();
    assert!(
        calls == 100 || calls < 100 && rows.iter().any(|row| row["calls_at_least"] == true),
        "{rows:?} {}",
        info["lost"]
    );
    drop((threads, words));
}

#[test]
fn a_file_that_cannot_be_probed_is_left_out_alone() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = with_own_libc(&lab, &["1", "getaddrinfo"]);
    let run = lab.record("t.tape", &["-a", "--probe", "dns"], &["getent", "ahosts", "localhost"]);
    assert!([0, 2].contains(&run.code()), "{}", run.stderr);
    let words = format!("evil/libc.so.6 of process {} is not probed: ", program.pid());
    let said = run.stderr.lines().find(|line| line.contains("dns:getaddrinfo of ") && line.contains(&words));
    assert!(said.is_some_and(|line| line.ends_with(')')), "with the kernel's reason: {}", run.stderr);
    assert!(look_ups(&lab, "t.tape") > 0, "{}", run.stderr);
    let notes = lab.info("t.tape")["notes"].to_string();
    assert!(notes.contains(&words), "{notes}");
    drop(program);
}
