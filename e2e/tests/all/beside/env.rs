//! `record --env` and `--label`: variables of each process's environment, from before the recording and since, in each
//! target; names of containers from the files of their runtimes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use systape_e2e::lab::run;
use systape_e2e::{Background, Lab};

/// Values of `env` of the calls of each thread name of `tape`.
fn envs(lab: &Lab, tape: &str, more: &[&str]) -> BTreeMap<String, Vec<String>> {
    let args = [&[tape, "-s", "--by", "comm,env", "--format", "json"], more].concat();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in lab.analyze(&args).expect(0).json() {
        let text = |name: &str| row[name].as_str().map_or_else(|| "?".to_owned(), str::to_owned);
        all.entry(text("comm")).or_default().push(text("env"));
    }
    all.values_mut().for_each(|envs| {
        envs.sort();
        envs.dedup();
    });
    all
}

/// A program that runs on with this environment alone.
fn runs(lab: &Lab, name: &str, env: &[(&str, &str)]) -> Background {
    let program = lab.path(name);
    fs::copy("/bin/sh", &program).expect("copy");
    let mut command = lab.command(&program);
    command.env_clear().envs(env.iter().copied());
    let ready = format!("{name}.ready");
    command.args(["-c", &format!(": >{ready}; while :; do sleep 0.05; done")]);
    let program = Background::start(command);
    lab.until("the program runs", || lab.path(&ready).exists());
    program
}

#[test]
fn each_program_has_the_variables_it_was_started_with() {
    let Some(lab) = Lab::beside() else { return };
    // STAGE= sets it to nothing
    let script = "mkdir a; JOB=18 STAGE=two mkdir b; env -i mkdir c; STAGE= touch d; exec env -u JOB rmdir a b c";
    let mut record = lab.record_command("t.tape", &["--env", "JOB,STAGE"], &["sh", "-c", script]);
    run(record.env("JOB", "17").env_remove("STAGE")).expect(0);
    lab.assert_whole("t.tape");
    let envs = envs(&lab, "t.tape", &[]);
    let of = |comm: &str| envs.get(comm).map(|envs| envs.join("|")).unwrap_or_default();
    assert_eq!(of("mkdir"), "|JOB=17|JOB=18 STAGE=two", "{envs:?}");
    assert_eq!(of("touch"), "JOB=17 STAGE=", "{envs:?}");
    assert_eq!(of("rmdir"), "", "{envs:?}");
    assert_eq!(of("sh"), "JOB=17", "{envs:?}");
    // the same in other views, and as text
    let by = ["t.tape", "--by", "env,comm"];
    for view in [&["top"][..], &["files"], &["offcpu"], &["states"]] {
        let text = lab.analyze(&[view, &by].concat()).expect(0).text();
        assert!(text.contains("JOB=17"), "{view:?}: {text}");
    }
    // one row a variable of each program that was started
    let rows = lab.analyze(&["env", "t.tape", "--format", "json"]).expect(0).json();
    let set = |comm: &str| {
        let of = rows.iter().filter(|row| row["comm"] == comm && !row["ts_ns"].is_null());
        let one =
            |row: &Value| format!("{}={}", row["name"].as_str().expect("name"), row["value"].as_str().expect("value"));
        let mut all: Vec<String> = of.map(one).collect();
        all.sort();
        all.join("|")
    };
    assert_eq!(set("mkdir"), "JOB=17|JOB=18|STAGE=two", "{rows:?}");
    assert_eq!((set("touch"), set("rmdir")), ("JOB=17|STAGE=".to_owned(), String::new()), "{rows:?}");
    let stages = lab.analyze(&["env", "t.tape", "--var", "S*", "--comm=mkdir"]).expect(0).text();
    assert!(stages.contains("STAGE=two") && !stages.contains("JOB"), "{stages}");
    // copies have it too, or leave it out
    for (level, kept) in [("paths", true), ("strings", false), ("all", false)] {
        lab.analyze(&["redact", "--level", level, "t.tape", "less.tape"]).expect(0);
        let all = format!("{:?}", self::envs(&lab, "less.tape", &[]));
        assert_eq!(all.contains("JOB=17"), kept, "{level}: {all}");
        let rows = lab.analyze(&["env", "less.tape"]).expect(0).text();
        assert_eq!((rows.contains("JOB=17"), rows.contains("<redacted")), (kept, !kept), "{level}: {rows}");
        fs::remove_file(lab.path("less.tape")).expect("remove");
    }
    lab.analyze(&["repair", "t.tape", "copy.tape"]).expect(0);
    assert_eq!(self::envs(&lab, "copy.tape", &[]), envs);
}

#[test]
fn long_environments_and_those_that_are_too_long() {
    let Some(lab) = Lab::beside() else { return };
    for (kib, env) in [(10, "JOB=17"), (16, "JOB=17"), (60, "JOB=17"), (300, "JOB=?")] {
        let mut record = lab.record_command("t.tape", &["--env", "JOB"], &["mkdir", "x"]);
        record.env_clear().env("PATH", "/usr/bin:/bin");
        // the environment is in the order of its names
        (0..kib).for_each(|n| _ = record.env(format!("A{n:03}"), "x".repeat(1018)));
        run(record.env("JOB", "17")).expect(0);
        let envs = envs(&lab, "t.tape", &["--comm=mkdir"]);
        assert_eq!(envs["mkdir"], [env], "{kib} KiB: {envs:?}");
        fs::remove_dir(lab.path("x")).expect("rmdir");
        fs::remove_file(lab.path("t.tape")).expect("remove");
    }
}

#[test]
fn programs_from_before_in_each_target() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = runs(&lab, "envprog", &[("JOB", "41"), ("OTHER", "x")]);
    let pid = program.pid_text();
    for target in [&["-p", &pid][..], &["-t", &pid], &["--comm", "envprog"], &["-a"], &["-u", "root"]] {
        let options = [target, &["--env", "JOB,STAGE", "--for", "1s"]].concat();
        lab.record("t.tape", &options, &[]).expect(0);
        let envs = envs(&lab, "t.tape", &["--comm=envprog"]);
        assert_eq!(envs.get("envprog").map(|envs| envs.join("|")), Some("JOB=41".to_owned()), "{target:?}: {envs:?}");
        fs::remove_file(lab.path("t.tape")).expect("remove");
    }
    program.stop(libc::SIGKILL);
}

#[test]
fn labels_are_in_the_tape() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &["--label", "host=web3", "--label", "run=7 b=c"], &["true"]).expect(0);
    let info = lab.info("t.tape");
    assert_eq!(info["labels"], serde_json::json!(["host=web3", "run=7 b=c"]));
    assert_eq!(info["env_keys"], serde_json::json!([]));
    assert!(lab.analyze(&["info", "t.tape"]).expect(0).text().contains("host=web3 run=7 b=c"));
    let rows = lab.analyze(&["t.tape", "-s", "--by", "label", "--format", "json"]).expect(0).json();
    assert_eq!(rows.iter().map(|row| &row["label"]).collect::<Vec<_>>(), ["host=web3 run=7 b=c"]);
    // without --env nothing is known of it
    let rows = lab.analyze(&["t.tape", "-s", "--by", "env", "--format", "json"]).expect(0).json();
    assert_eq!(rows.iter().map(|row| &row["env"]).collect::<Vec<_>>(), [&Value::Null]);
}

/// A directory that is removed at the end, with those above it that are empty.
struct Made(PathBuf, PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.1).ok();
        let mut dir = self.1.parent();
        while let Some(above) = dir.filter(|above| *above != self.0 && fs::remove_dir(above).is_ok()) {
            dir = above.parent();
        }
    }
}

#[test]
fn containers_have_the_names_in_their_bundles() {
    let Some(lab) = Lab::beside() else { return };
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("a cgroup2 mount");
    let mount = Path::new(mount.split(' ').nth(1).expect("a mount"));
    let own = std::process::id();
    let id = format!("{own:08x}").repeat(8);
    let pod = "8dbc5577-d0e2-4706-8787-57d52c03ddf2";
    // as kubelet and containerd make them, before the container's cgroup
    let bundle =
        Made("/run".into(), format!("/run/containerd/io.containerd.runtime.v2.task/systape-{own}/{id}").into());
    let made = |names: &str| {
        fs::create_dir_all(&bundle.1).expect("mkdir");
        fs::write(bundle.1.join("config.json"), format!("{{\"annotations\": {{{names}}}}}")).expect("write");
    };
    let names = "\"io.kubernetes.cri.container-name\": \"web\", \"io.kubernetes.cri.image-name\": \"nginx:1\",
        \"io.kubernetes.cri.sandbox-name\": \"web-7\", \"io.kubernetes.cri.sandbox-namespace\": \"prod\"";
    for before in [false, true] {
        let cgroup = Made(mount.to_path_buf(), mount.join(format!("systape-env-{own}/pod{pod}/{id}")));
        let dir = cgroup.1.to_str().expect("UTF-8").to_owned();
        made(names);
        if before {
            fs::create_dir_all(&cgroup.1).expect("mkdir");
        }
        let script = format!("mkdir -p {dir} && echo 0 >{dir}/cgroup.procs && exec sleep 1");
        lab.record("t.tape", &[], &["sh", "-c", &script]).expect(0);
        let by = ["t.tape", "-s", "--comm=sleep", "--by", "container,pod"];
        let rows = lab.analyze(&[&by[..], &["--format", "json"]].concat()).expect(0).json();
        let row = serde_json::json!({"container": id, "container_name": "web", "image": "nginx:1", "pod": pod,
            "pod_name": "web-7", "namespace": "prod"});
        assert_eq!(rows.len(), 1, "{rows:?}");
        for (name, value) in row.as_object().expect("an object") {
            assert_eq!(&rows[0][name], value, "before: {before}, {rows:?}");
        }
        let text = lab.analyze(&by).expect(0).text();
        assert!(text.contains(&format!("web ({})", &id[..12])) && text.contains("prod/web-7"), "{text}");
        let text = lab.analyze(&["offcpu", "t.tape", "--comm=sleep", "--by", "container,pod"]).expect(0).text();
        assert!(text.contains(&format!("web ({})", &id[..12])) && text.contains("prod/web-7"), "{text}");
        lab.analyze(&["redact", "--level", "paths", "t.tape", "less.tape"]).expect(0);
        let bytes = lab.analyze(&["less.tape", "-s", "--by", "container,pod", "--format", "json"]).expect(0).text();
        assert!(!bytes.contains("web") && !bytes.contains(&id), "{bytes}");
        ["t.tape", "less.tape"].iter().for_each(|tape| fs::remove_file(lab.path(tape)).expect("remove"));
        fs::remove_dir(&cgroup.1).expect("rmdir");
    }
}
