//! Cgroups that are made during a recording have names: in v2, in v1, nested ones as systemd and docker make them, in a copy too.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use systape_e2e::Lab;

/// The mount point of a hierarchy; None = there is none.
fn mount(kind: &str, option: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    let found = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|fields| fields[2] == kind && (option.is_empty() || fields[3].split(',').any(|have| have == option)));
    found.map(|fields| PathBuf::from(fields[1]))
}

/// A cgroup and those above it that are removed at the end; nobody is in them by then.
struct Made(PathBuf, PathBuf);

impl Made {
    fn of(mount: &Path, path: &str) -> Self {
        Self(mount.to_path_buf(), mount.join(path.trim_start_matches('/')))
    }

    fn dir(&self) -> &str {
        self.1.to_str().expect("UTF-8")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let mut dir = self.1.as_path();
        while dir != self.0 && fs::remove_dir(dir).is_ok() {
            dir = dir.parent().expect("below the mount");
        }
    }
}

/// Paths of the cgroups of the calls of `comm`, each once.
fn cgroups_of(lab: &Lab, tape: &str, comm: &str) -> Vec<String> {
    let calls = lab.analyze(&[tape, &format!("--comm={comm}"), "--format", "json"]).expect(0).json();
    let mut paths: Vec<String> = calls.iter().map(|call| call["cgroup"].as_str().unwrap_or("?").to_owned()).collect();
    paths.dedup();
    paths
}

/// A process that makes a cgroup, goes there and becomes `sleep`.
fn enter(dir: &str) -> String {
    format!("mkdir -p {dir} && echo 0 >{dir}/cgroup.procs && exec sleep 0.05")
}

fn has_names(lab: &Lab, mount: &Path) {
    let own = format!("/systape-cgroups-{}", std::process::id());
    for path in [
        own.clone(),
        format!("{own}.slice/one.service"),
        format!("{own}/docker/4d2c0e3bd3c9ba2bd2f8e6ad1d6b7e8a2d8e1e0a86a1a4a4d6f5a2d1b3c4e5f6"),
        // made before
        format!("{own}-old"),
    ] {
        let made = Made::of(mount, &path);
        if path.ends_with("-old") {
            fs::create_dir(&made.1).expect("mkdir");
        }
        lab.record("t.tape", &["-e", "process,desc"], &["sh", "-c", &enter(made.dir())]).expect(0);
        lab.assert_whole("t.tape");
        assert_eq!(cgroups_of(lab, "t.tape", "sleep"), [path.as_str()]);
        let filtered = lab.analyze(&["t.tape", "-G", &path, "--format", "json"]).expect(0).json();
        assert!(!filtered.is_empty(), "-G {path}");
        // what it belongs to
        let sums = lab
            .analyze(&["t.tape", "-s", "--comm=sleep", "--by", "unit,container", "--format", "json"])
            .expect(0)
            .json();
        let unit = if path.ends_with(".service") { "one.service" } else { "" };
        let container = path.rsplit('/').next().filter(|id| id.len() == 64).unwrap_or_default();
        let owners: Vec<_> = sums.iter().map(|sum| [&sum["systemd_unit"], &sum["container"]]).collect();
        assert_eq!(owners, [[unit, container]], "{sums:?}");
        // a program that was preempted until its sleep was over did not sleep: it was off the CPU runnable, which needs the state
        for (view, by) in [("offcpu", "unit,container,state"), ("states", "unit,container"), ("runqlat", "unit")] {
            let args = [view, "t.tape", "--comm=sleep", "--by", by, "--format", "json"];
            let rows = lab.analyze(&args).expect(0).json();
            let here =
                |row: &Value| row["systemd_unit"] == unit && (view == "runqlat" || row["container"] == container);
            assert!(!rows.is_empty() && rows.iter().any(here), "{view}: {rows:?}");
        }
        // copies have it too, or leave it out
        for (level, expected) in [("strings", "<redacted "), ("paths", "<redacted ")] {
            lab.analyze(&["redact", "--level", level, "t.tape", "less.tape"]).expect(0);
            let cgroup = cgroups_of(lab, "less.tape", "sleep").remove(0);
            assert!(cgroup.starts_with(expected), "{level}: {cgroup}");
            let bytes = fs::read(lab.path("less.tape")).expect("tape");
            let name = path.trim_start_matches('/').as_bytes();
            assert!(!bytes.windows(name.len()).any(|part| part == name), "{level}: {path} is in the copy");
            fs::remove_file(lab.path("less.tape")).expect("remove");
        }
        lab.analyze(&["repair", "t.tape", "copy.tape"]).expect(0);
        assert_eq!(cgroups_of(lab, "copy.tape", "sleep"), [path.as_str()], "a copy");
        fs::remove_file(lab.path("copy.tape")).expect("remove");
        // never in the file
        lab.record("r.tape", &["-e", "process", "--redact", "paths"], &["sh", "-c", &enter(made.dir())]).expect(0);
        assert!(cgroups_of(lab, "r.tape", "sleep").iter().all(|cgroup| cgroup.starts_with("<redacted ")));
    }
}

#[test]
fn cgroups_of_v2_have_names() {
    let Some(lab) = Lab::beside() else { return };
    has_names(&lab, &mount("cgroup2", "").expect("a cgroup2 mount"));
}

#[test]
fn cgroups_of_v1_have_names() {
    let Some(lab) = Lab::beside() else { return };
    // the hierarchy that is followed, as docs/guides/containers.md says
    match ["memory", "pids", "cpu"].into_iter().find_map(|controller| mount("cgroup", controller)) {
        Some(mount) => has_names(&lab, &mount),
        None => eprintln!("no hierarchy of v1 is mounted"),
    }
}

#[test]
fn a_task_of_both_is_shown_in_that_of_v2() {
    let Some(lab) = Lab::beside() else { return };
    let Some(v1) = mount("cgroup", "memory") else { return };
    let v2 = mount("cgroup2", "").expect("a cgroup2 mount");
    let name = format!("systape-both-{}", std::process::id());
    let both = [Made::of(&v1, &format!("{name}-one")), Made::of(&v2, &format!("{name}-two"))];
    let script = format!(
        "mkdir {0} {1} && echo 0 >{0}/cgroup.procs && echo 0 >{1}/cgroup.procs && exec sleep 0.05",
        both[0].dir(),
        both[1].dir()
    );
    lab.record("t.tape", &["-e", "process"], &["sh", "-c", &script]).expect(0);
    assert_eq!(cgroups_of(&lab, "t.tape", "sleep"), [format!("/{name}-two")]);
    let moves = lab.analyze(&["t.tape", "-e", "process:cgroup", "--format", "json"]).expect(0).json();
    assert_eq!(moves.len(), 2, "{moves:?}");
    assert_eq!(moves[0]["cgroup"], format!("/{name}-one"));
}

#[test]
fn a_cgroup_without_processes_is_said() {
    let Some(lab) = Lab::beside() else { return };
    let Some(mount) = mount("cgroup2", "") else { return };
    let made = Made::of(&mount, &format!("/systape-empty-{}.service", std::process::id()));
    fs::create_dir(&made.1).expect("mkdir");
    let record =
        |command: &[&str]| lab.record("t.tape", &["-G", made.dir(), "--for", "100ms"], command).expect(0).stderr;
    let said = record(&[]);
    assert!(said.contains(".service now: what enters it is recorded"), "{said}");
    let within =
        systape_e2e::Background::start(lab.command("sh").args(["-c", &enter(made.dir()).replace("0.05", "30")]));
    lab.until("it is there", || fs::read_to_string(made.1.join("cgroup.procs")).is_ok_and(|text| !text.is_empty()));
    let said = record(&[]);
    assert!(!said.contains("what enters it is recorded"), "{said}");
    within.stop(libc::SIGKILL);
}
