//! CPU quotas of cgroups, against the kernel's own sums in `cpu.stat`.

use std::fs;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::more::Quota;

/// Time in a state of the threads of a name, ms.
fn time(rows: &[Value], comm: &str, state: &str) -> f64 {
    let mine = rows.iter().filter(|row| row["comm"] == comm && row["state"] == state);
    let ns = |row: &Value| row["time_ns"].as_f64().or(row["total_ns"].as_f64()).expect("exact");
    mine.map(ns).sum::<f64>() / 1e6
}

#[test]
fn throttled_time_is_that_of_the_cgroup() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(group) = Quota::new("quota", 5) else { return eprintln!("no hierarchy has the controller cpu") };
    // two loops of one kind, each a program of its own name; only one has a quota
    let spin = lab.dir().join("spin");
    fs::write(&spin, "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done").expect("script");
    for name in ["inside", "outside"] {
        fs::copy("/bin/sh", lab.dir().join(name)).expect("a shell");
    }
    // the kernel counts a throttled period when the next one begins, 100 ms later, though nobody is in the cgroup any more: the tape's
    // number, read at the end of the recording, is that of later only if the recording outlasts it
    let script = format!("./outside spin & sh -c 'echo $$ >{}; exec ./inside spin'; sleep 0.3", group.procs());
    lab.record("t.tape", &["--families", "sched,process"], &["sh", "-c", &script]).expect(0);
    let truth = group.throttled_ms();
    assert!(truth > 50.0, "the loop was throttled for {truth} ms only");
    let rows = lab.analyze(&["states", "t.tape", "--by", "comm,state", "--format", "json"]).expect(0).json();
    let inside = time(&rows, "inside", "throttled");
    // the shell before the exec may have been throttled too
    let all = inside + time(&rows, "sh", "throttled");
    assert!((all - truth).abs() <= truth * 0.05, "{all} ms on the tape, {truth} ms in cpu.stat: {rows:#?}");
    assert_eq!(time(&rows, "outside", "throttled"), 0.0, "{rows:#?}");
    // of the same time, the wait for a CPU is no part of it
    let whole = lab.analyze(&["offcpu", "t.tape", "--by", "comm,state", "--format", "json"]).expect(0).json();
    assert_eq!(time(&whole, "inside", "throttled"), inside, "offcpu and states agree");
    limits(&lab, &group);
}

/// What the tape has of the cgroup is what the kernel says, and `why` names it. The shell came into it during the recording.
fn limits(lab: &Lab, group: &Quota) {
    let name = group.dir().file_name().expect("a name").to_str().expect("ASCII");
    let rows = lab.analyze(&["t.tape", "-e", "cgroup:limit", "--format", "json"]).expect(0).json();
    let last = |what: &str| {
        let mut of_it = rows.iter().map(|row| &row["args"]).filter(|args| args["cgroup"] == format!("/{name}"));
        let value = |args: &Value| args["value"].as_u64().or(args["value"].as_str()?.parse().ok());
        of_it.rfind(|args| args["name"] == what).and_then(value).unwrap_or_else(|| panic!("{what}: {rows:#?}"))
    };
    assert_eq!((last("quota_us"), last("period_us")), (5_000, 100_000));
    let throttled = group.stat("nr_throttled");
    assert_eq!(last("throttled_periods"), throttled);
    let why = lab.analyze(&["why", "t.tape"]).expect(0).text();
    let said = format!("as the CPU quota of /{name} (5 % of a CPU) was used up in {throttled} of ");
    assert!(why.lines().any(|line| line.contains("inside ") && line.contains(&said)), "{why}");
}

/// A limit of I/O of v1 has threads of the kernel submit what it held back: `why` names it all the same.
#[test]
fn a_limit_of_writes_is_named() {
    let Some(lab) = Lab::with_bpf() else { return };
    let top = std::path::Path::new("/sys/fs/cgroup/blkio");
    let group = top.join(format!("systape-e2e-limit-{}", std::process::id()));
    let dev = std::os::linux::fs::MetadataExt::st_dev(&fs::metadata(lab.dir()).expect("a directory"));
    let limit = format!("{}:{} 2000000", libc::major(dev), libc::minor(dev));
    if fs::create_dir(&group).is_err() || fs::write(group.join("blkio.throttle.write_bps_device"), limit).is_err() {
        fs::remove_dir(&group).ok();
        return eprintln!("no limit of I/O can be set here");
    }
    let script =
        format!("echo $$ >{}/cgroup.procs; exec dd if=/dev/zero of=slow bs=256k count=8 oflag=direct", group.display());
    // without the limit the same writes take some ms
    let run = lab.record("t.tape", &["-a"], &["sh", "-c", &script]);
    fs::remove_dir(&group).ok();
    run.expect(0);
    let why = lab.analyze(&["why", "t.tape"]).expect(0).text();
    let name = group.file_name().expect("a name").to_str().expect("ASCII");
    let said = format!("held back by the I/O limit of /{name} (1.9 MiB/s of writes)");
    assert!(why.lines().any(|line| line.contains("dd ") && line.contains(&said)), "{why}");
    // the same of the path: most of it
    let path = lab.analyze(&["path", "t.tape"]).expect(0).text();
    let said = format!("waits for a disk, {said}: write of");
    assert!(path.lines().any(|line| line.contains("dd[") && line.contains(&said)), "{path}");
    let rows = lab.analyze(&["path", "t.tape", "--sums", "--format", "json"]).expect(0).json();
    let limit = format!("the I/O limit of /{name} (1.9 MiB/s of writes)");
    let held: f64 = rows.iter().filter(|row| row["io_limit"] == *limit).filter_map(|row| row["share"].as_f64()).sum();
    assert!(held > 0.5, "{rows:#?}");
}
