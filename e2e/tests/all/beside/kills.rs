//! Who sent which signal to whom, how, and what came of it: `analyze kills` against what a workload that makes processes
//! die in every way says of each, from /proc and from wait. The whole system is recorded, with small rings, while other
//! processes make calls as fast as they can. Left out: broken memory, and keys that reboot the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use systape_e2e::disk::skipped;
use systape_e2e::facts::{Facts, Flood};
use systape_e2e::more::{Cgroup, lost_calls};
use systape_e2e::{Lab, lab};

/// What a recording of the workload gives.
struct Story {
    lab: Lab,
    facts: Facts,
    records: Vec<Value>,
}

/// Records the whole system while the workload does `cases`, beside a flood; `None`: not root.
#[track_caller]
fn story(cases: &[&str], environment: &[(&str, &str)]) -> Option<Story> {
    let lab = Lab::with_bpf()?;
    let kills = lab.cc("kills", &[]);
    let flood = Flood::start(&lab, 2);
    let command = [&[&*kills], cases].concat();
    let mut record = lab.record_command("t.tape", &["-a", "-m", "64k"], &command);
    record.envs(environment.iter().copied());
    let run = lab::run(record).expect(0);
    drop(flood);
    // calls were lost, so there was a flood; signals that end nobody may be lost too, but not the life of processes
    let info = lab.info("t.tape");
    let lost = &info["lost"];
    assert!(lost_calls(&info) > 0, "no flood: {info}");
    assert!(lost.get("process").is_none(), "{lost}");
    let report = lab.analyze(&["kills", "t.tape", "--all", "--format", "json"]).expect(0);
    let records = report.json().into_iter().filter(|line| line.get("lost").is_none()).collect();
    let facts = Facts::of(&run);
    assert!(!facts.is_empty());
    Some(Story { lab, facts, records })
}

/// A story that is as the workload says.
#[track_caller]
fn check(cases: &[&str]) {
    if let Some(story) = story(cases, &[]) {
        story.facts.check(&story.records);
    }
}

/// A memory cgroup of 32 MiB, of whichever version has that controller; removed when the test is over.
struct Memory {
    dir: PathBuf,
    /// Where the hierarchy was mounted for it.
    mounted: Option<PathBuf>,
}

impl Memory {
    /// `None`: there is no such controller here.
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let place = |kind: &str, fits: &dyn Fn(&Path, &str) -> bool| {
            let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let mut places =
                fields.filter(|f| f[2] == kind && fits(Path::new(f[1]), f[3])).map(|f| PathBuf::from(f[1]));
            places.next()
        };
        let name = format!("systape-e2e-memory-{}", std::process::id());
        let one = place("cgroup", &|_, options| options.split(',').any(|option| option == "memory"));
        let controlled = |dir: &Path, _: &str| {
            fs::read_to_string(dir.join("cgroup.controllers")).is_ok_and(|list| list.contains("memory"))
        };
        let mut mounted = None;
        let (dir, limit) = match (one, place("cgroup2", &controlled)) {
            (Some(mount), _) => (mount.join(name), "memory.limit_in_bytes"),
            (None, Some(mount)) => {
                fs::write(mount.join("cgroup.subtree_control"), "+memory").expect("memory controller");
                (mount.join(name), "memory.max")
            }
            (None, None) => {
                let place = std::env::temp_dir().join(&name);
                fs::create_dir(&place).expect("a place to mount at");
                let status = Command::new("mount").args(["-t", "cgroup", "-o", "memory", "none"]).arg(&place).status();
                if !status.is_ok_and(|status| status.success()) {
                    fs::remove_dir(&place).ok();
                    return None;
                }
                (mounted.insert(place).join(name), "memory.limit_in_bytes")
            }
        };
        fs::create_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        let memory = Self { dir, mounted };
        fs::write(memory.dir.join(limit), "32M").expect(limit);
        // without swap, or nobody is out of memory
        for (file, value) in [("memory.swap.max", "0"), ("memory.swappiness", "0")] {
            fs::write(memory.dir.join(file), value).ok();
        }
        Some(memory)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        fs::remove_dir(&self.dir).ok();
        if let Some(place) = &self.mounted {
            Command::new("umount").arg(place).status().ok();
            fs::remove_dir(place).ok();
        }
    }
}

#[test]
fn sent_by_every_call_that_sends() {
    check(&["kill", "tkill", "tgkill", "pidfd", "sigqueue", "tgsigqueue", "i386"]);
}

#[test]
fn sent_by_other_users_and_to_itself() {
    check(&["other-users", "itself", "abort"]);
}

#[test]
fn sent_to_many_at_once() {
    if Lab::beside().is_none() {
        return;
    }
    let cgroup = Cgroup::new(&format!("systape-e2e-kills-{}", std::process::id())).expect("cgroup v2 is mounted");
    let Some(story) = story(&["group", "own-group", "cgroup"], &[("CGROUP", cgroup.dir())]) else { return };
    story.facts.check(&story.records);
}

/// Timers send in interrupts, on top of whatever task runs. For some a kernel runs no programs
/// (docs/internals/loss.md): then the report says that it does not know, and it is done again.
#[test]
fn timers_and_limits() {
    for last in [false, false, true] {
        let Some(story) = story(&["timer", "alarm", "itimers", "xfsz", "xcpu", "rttime"], &[]) else { return };
        if last || !story.records.iter().any(|r| r["via"] == "unknown" && r["result"].is_null()) {
            return story.facts.check(&story.records);
        }
    }
}

#[test]
fn the_end_of_another() {
    check(&["pdeathsig", "clone-signal", "exitkill", "ptrace-kill"]);
}

#[test]
fn out_of_memory() {
    if Lab::beside().is_none() {
        return;
    }
    let Some(memory) = Memory::new() else { return skipped("there is no memory controller") };
    let environment = [("MEMORY", memory.dir.to_str().expect("UTF-8"))];
    // of two that share memory one is the choice, and the other goes with it; now and then it is chosen itself before
    for _ in 0..5 {
        let Some(story) = story(&["oom", "oom-other", "oom-shared"], &environment) else { return };
        story.facts.check(&story.records);
        let mut ways: BTreeMap<&str, u32> = BTreeMap::new();
        for record in story.records.iter().filter(|record| record["target"]["comm"] != "little") {
            *ways.entry(record["via"].as_str().expect("via")).or_default() += 1;
        }
        let [chosen, shared] = ["oom", "oom-shared-mm"].map(|way| ways.get(way).copied().unwrap_or(0));
        assert_eq!(chosen + shared, 4, "{ways:?}");
        if shared == 1 {
            return;
        }
    }
    panic!("nobody went with another in 5 runs");
}

#[test]
fn faults() {
    check(&["segv", "bus", "fpe", "ill", "trap", "segv-ignored", "segv-handled"]);
}

#[test]
fn a_core_is_dumped() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").expect("core_pattern");
    let Some(story) = story(&["core"], &[]) else { return };
    story.facts.check(&story.records);
    if pattern.trim() == "core" && fs::read_to_string("/proc/sys/kernel/core_uses_pid").is_ok_and(|uses| uses == "0\n")
    {
        assert!(story.lab.path("core").exists());
        let dumped = |r: &&Value| r["outcome"]["core_dumped"] == true;
        assert_eq!(story.records.iter().filter(dumped).count(), 1);
    }
}

#[test]
fn pipes_nobody_reads_and_io() {
    check(&["sigpipe", "sigio"]);
}

#[test]
fn seccomp() {
    check(&["seccomp", "seccomp-strict", "seccomp-thread"]);
}

#[test]
fn what_does_not_die_at_once() {
    check(&["stop", "ignored", "blocked", "pending", "handled"]);
}

#[test]
fn threads_and_programs_that_change() {
    check(&["threads", "thread-sends", "exec"]);
}

#[test]
fn pid_namespaces() {
    check(&["into-namespace", "inside-namespace", "everyone", "end-of-namespace"]);
}

#[test]
fn terminals() {
    check(&["keys", "hangup", "job"]);
}

#[test]
fn a_hundred_of_a_hundred() {
    let Some(story) = story(&["many"], &[("N", "100")]) else { return };
    assert_eq!(story.facts.len(), 100);
    story.facts.check(&story.records);
    // these end processes, so they are in the report without being asked for
    // and what the flood pushed out could end nobody, so nothing is missing
    let report = story.lab.analyze(&["kills", "t.tape", "--format", "json", "--fail-on-loss"]).expect(0);
    assert_eq!(report.complaints(), "");
    story.facts.check(&report.json());
}
