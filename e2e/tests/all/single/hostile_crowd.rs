//! Everything at once that users without rights can do to root's flight recorder: 64 programs of all kinds (calls, processes,
//! programs, threads and signals without end, thousands of mappings, files and stacks, a tracer, files that a trigger waits
//! for, names that act on a terminal, a full disk, a C library in another's place), debug information that takes minutes, and
//! a library on an overlay over a file system that does not answer. The recorder begins, is triggered, writes and ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use systape_e2e::lab::{binary, run};
use systape_e2e::more::{Cgroup, FREESTANDING, Mounted, Quota, comms};
use systape_e2e::{Background, Lab};

/// Programs at once, beside those that the script begins.
const CROWD: &str = "64";
/// Most memory of the recorder's own at any time (RssAnon), whatever comes: docs/reference/requirements.md has its parts. Its rings are beside it.
const MOST_MEMORY: u64 = 256 << 20;
/// Calls of the one program that is polite.
const POLITE: u64 = 300;
/// Whatever else runs on the machine: a look-up of a library, of a name or of a process without a limit takes minutes here.
const FAR_TOO_LONG: Duration = Duration::from_secs(60);

/// Begins as root, so that it has a file system that is full and a FUSE device that users may open.
const SCRIPT: &str = r#"
mount --rbind . /mnt && cd /mnt && mount --bind crowd /tmp && mount --bind fuse /dev/fuse || exit 1
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
nobody ./many_names /tmp/libc.so.6 100000 > /dev/null &
for salt in 1 2; do nobody ./slow_names$salt & done
nobody unshare --user --map-root-user --mount sh -c '
    mount -t tmpfs tmpfs mnt && mkdir mnt/fuse mnt/up mnt/ov
    ./hangfs mnt/fuse /bin/true "$PWD/hang" &
    until test -e mnt/fuse/libc.so.6; do sleep 0.02; done
    mount -t overlay overlay -o lowerdir=mnt/fuse:mnt/up mnt/ov || exit 1
    ./redteam maps mnt/ov/libc.so.6 & echo > /tmp/mapped; wait' &
until test -e /tmp/libc.so.6 && test -e /tmp/mapped; do sleep 0.02; done
ulimit -n 4096
nobody ./redteam "$0" /tmp &
wait
"#;

/// Percent of a processor that all of them get: a tenth is enough to fill every buffer, and leaves the recorder, which may be a
/// debug build, time for what it is asked. `SYSTAPE_CROWD_PERCENT` is for measurements of a release build (docs/internals/reliability.md).
fn share() -> u32 {
    std::env::var("SYSTAPE_CROWD_PERCENT").map_or(10, |percent| percent.parse().expect("SYSTAPE_CROWD_PERCENT"))
}

/// Starts them, in a session of their own.
fn crowd(lab: &Lab, groups: &[String]) -> Background {
    for (name, flags) in [("redteam", &[][..]), ("many_names", &[]), ("hangfs", &HANGFS)] {
        lab.cc(name, flags);
    }
    for salt in 1..=2 {
        let salt_flag = format!("-DSALT={salt}");
        let slow = ["-g0", "-Wl,--build-id", "-DFUNCTIONS=300000", "-DRANGES=500000", &salt_flag];
        let program = lab.cc("slow_names", &[&FREESTANDING[..], &slow].concat());
        fs::rename(&program, format!("{program}{salt}")).expect("rename");
    }
    for dir in ["mnt", "crowd/watched"] {
        fs::create_dir(lab.path(dir)).expect("mkdir");
        fs::set_permissions(lab.path(dir), fs::Permissions::from_mode(0o777)).expect("chmod");
    }
    fs::set_permissions(lab.path("crowd"), fs::Permissions::from_mode(0o1777)).expect("chmod");
    run(lab.command("mknod").args(["-m", "666", "fuse", "c", "10", "229"])).expect(0);
    let enter = "for group in \"$@\"; do echo $$ > \"$group\" || exit 1; done
        exec setsid unshare --mount --pid --fork --kill-child --mount-proc sh -c \"$SCRIPT\" \"$CROWD\"";
    let mut begin = lab.command("sh");
    begin.args(["-c", enter, "sh"]).args(groups).env("SCRIPT", SCRIPT).env("CROWD", CROWD);
    let mut crowd = Background::start(begin);
    let there = |name: &str| comms().iter().filter(|comm| *comm == name).count();
    lab.until("all of them are there", || {
        if let Some(run) = crowd.ended() {
            panic!("ended early: {run:?}");
        }
        there("redteam") > 40 && there("slow_names1") > 0 && there("many_names") > 0
    });
    fs::write(lab.path("hang"), "").expect("hang");
    crowd
}

const HANGFS: [&str; 3] = ["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"];

/// Memory of the recorder at its most, bytes.
#[derive(Clone, Copy, Default)]
struct Memory {
    /// Its own (RssAnon).
    own: u64,
    /// Of it and its children, with their files and shared pages (VmRSS).
    all: u64,
}

/// Looks at the memory of a process and its children until it is told to stop.
struct Watched(Arc<AtomicBool>, JoinHandle<Memory>);

impl Watched {
    fn new(pid: i32) -> Self {
        let over = Arc::<AtomicBool>::default();
        let until = Arc::clone(&over);
        let watch = move || {
            let mut most = Memory::default();
            while !until.load(Ordering::Relaxed) {
                let all = children(pid).iter().map(|child| bytes_of(child, "VmRSS:")).sum::<u64>();
                let pid = pid.to_string();
                most.own = most.own.max(bytes_of(&pid, "RssAnon:"));
                most.all = most.all.max(all + bytes_of(&pid, "VmRSS:"));
                std::thread::sleep(Duration::from_millis(20));
            }
            most
        };
        Self(over, std::thread::spawn(watch))
    }

    fn most(self) -> Memory {
        self.0.store(true, Ordering::Relaxed);
        self.1.join().expect("watch")
    }
}

/// The children of all threads of a process.
fn children(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    of_task.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// A size of a process, bytes; 0 = it has ended.
fn bytes_of(pid: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[test]
fn everything_at_once_costs_only_its_own() {
    let Some(lab) = Lab::with_bpf() else { return };
    let _disk = Mounted::tmpfs(&lab, "crowd", "64m");
    let quota = Quota::new("crowd", share());
    let group = Cgroup::new(&format!("\u{1b}]0;owned\u{7}\r\u{202e}{}", "y".repeat(200)));
    let groups: Vec<String> = quota.iter().map(Quota::procs).collect();
    let groups = [groups, group.iter().map(|group| format!("{}/cgroup.procs", group.dir())).collect()].concat();
    let crowd = crowd(&lab, &groups);

    let flag = lab.file("crowd/watched/flag");
    let mut command = lab.command("sh");
    command.args(["-c", "exec \"$@\" 2> log", "sh"]).arg(binary("record")).env("TMPDIR", lab.path("crowd"));
    command.args(["-a", "-g", "--probe", "dns", "--last", "10s", "--dir", "own", "--after", "200ms"]);
    command.args(["--keep-free", "0", "--on", &format!("file:{flag}")]);
    let log = || fs::read_to_string(lab.path("log")).unwrap_or_default();
    let record = |words: &[&str]| run(lab.command(binary("record")).args(words));
    let begun = Instant::now();
    let mut recorder = Background::start(command);
    let watched = Watched::new(recorder.pid());
    lab.until("the recorder begins", || {
        if let Some(run) = recorder.ended() {
            panic!("record ended early: {run:?} {}", log());
        }
        log().contains("tapes -> ") && record(&["status", "--dir", "own"]).status.success()
    });
    let began = begun.elapsed();
    run(lab.command("./redteam").args(["polite", &POLITE.to_string()])).expect(0);
    run(lab.command("getent").args(["ahosts", "localhost"])).expect(0);
    let triggered = Instant::now();
    let tape = record(&["trigger", "x", "--dir", "own"]).expect(0).text().trim().to_owned();
    println!("triggered {:?}", triggered.elapsed());
    // one file among thousands
    fs::write(&flag, "").expect("the file that is waited for");
    let of_file = || {
        let names = fs::read_dir(lab.path("own")).expect("own").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with("flag.tape")).count()
    };
    lab.until("a tape of the file", || of_file() > 0);
    let ending = Instant::now();
    let run = recorder.stop(libc::SIGINT).expect(0);
    let ended = ending.elapsed();
    let memory = watched.most();
    println!(
        "began {began:?}, ended {ended:?}, {} MiB of its own, {} MiB with its children and what is shared\n{}",
        memory.own >> 20,
        memory.all >> 20,
        log()
    );
    drop(crowd);
    // with their share of a processor that takes a while, and their cgroups are there until then
    lab.until("they are gone", || !comms().iter().any(|comm| comm == "redteam"));
    assert!(began < FAR_TOO_LONG && ended < FAR_TOO_LONG, "{began:?} {ended:?}");
    assert!(memory.own < MOST_MEMORY, "{} MiB of {run:?}", memory.own >> 20);

    // nothing is silent: what is left out is named, and no name acts
    for line in log().lines() {
        assert!(
            line.starts_with("record: ") && !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
    }
    let said = |words: &[&str]| log().lines().any(|line| words.iter().all(|word| line.contains(word)));
    let refused = ["a user mounted its file system", "takes too long to open it"];
    assert!(refused.iter().any(|why| said(&["mnt/ov/libc.so.6 of process", "is not probed: ", why])), "{}", log());
    assert!(said(&["/tmp/libc.so.6 of process", "it has no function"]), "{}", log());
    lab.analyze(&["check", &tape, "--format", "json"]).expect(0);
    let info = lab.info(&tape);
    assert_eq!(info["clean_end"], true, "{info}");
    let missing = info["lost"].as_object().expect("lost").len() + info["gaps"].as_array().expect("gaps").len();
    let rows = lab.analyze(&["-s", &tape, "--comm", "polite", "-e", "=getppid", "--format", "json"]).expect(0).json();
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum();
    let at_least = rows.iter().any(|row| row["calls_at_least"] == true);
    assert!(calls == POLITE || calls < POLITE && at_least && missing > 0, "{calls}: {rows:?} {}", info["lost"]);
}
