//! Compares the paths a tape has for descriptors with what the kernel said they were: see workloads/fds.h.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sockets::Inodes;
use crate::{Call, Lab};

/// Third argument of the calls to look at.
const PROBE: i64 = 0x5157;

/// What the kernel said of one descriptor at one point.
#[derive(Clone, Debug)]
struct Truth {
    how: String,
    fd: i64,
    path: Option<String>,
}

/// Lines of the side file by thread, in order.
fn truth(side: &str) -> BTreeMap<i64, Vec<Truth>> {
    let mut by_thread: BTreeMap<i64, Vec<Truth>> = BTreeMap::new();
    for line in side.lines() {
        let [how, tid, fd, path] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().expect("how tid fd path");
        let path = (path != "-").then(|| path.to_owned());
        let truth = Truth { how: how.into(), fd: fd.parse().expect("fd"), path };
        by_thread.entry(tid.parse().expect("tid")).or_default().push(truth);
    }
    by_thread
}

/// Whether what the tape says (`seen`) is right. A deleted file may still be named as it was. The kernel names a socket by
/// its number, which the tape has beside its name.
fn right(truth: &Truth, seen: Option<&str>, root: &Path, sockets: &Inodes) -> bool {
    let number = |path: &str| path.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    let is_socket = |path: &str| seen.zip(number(path)).is_some_and(|(seen, number)| sockets.has(seen, number));
    let is_deleted = |path: &str| path.strip_suffix(" (deleted)").is_some_and(|p| seen == Some(p));
    let same = |path: &str| seen == Some(path) || is_deleted(path) || is_socket(path);
    match (truth.how.as_str(), truth.path.as_deref()) {
        (_, None) => seen.is_none(),
        ("may", Some(path)) => seen.is_none() || same(path),
        // the workload sees its own root; a reader of the tape the machine's
        ("root", Some(path)) => seen.is_none() || same(&format!("{}{path}", root.display())),
        ("must", Some(path)) => same(path),
        (how, Some(path)) => {
            let name = how.strip_prefix("was=").unwrap_or_else(|| panic!("side file: {how}"));
            let old = Path::new(path).with_file_name(name);
            seen.is_none() || same(path) || seen == old.to_str()
        }
    }
}

/// Fails unless `tape` has every probe of the side file, `probes` of them, with the path it should have. `root` is what
/// the workload sees as / where it says so. Gives the tape's calls, by their end.
#[track_caller]
pub fn compare(lab: &Lab, tape: &str, side: &str, probes: usize, root: &Path) -> Vec<Call> {
    let calls = lab.calls(tape, &["--sort", "end"]);
    let sockets = Inodes::of(lab, tape);
    let truth = truth(&fs::read_to_string(lab.path(side)).expect("side file"));
    assert_eq!(truth.values().map(Vec::len).sum::<usize>(), probes, "{truth:?}");
    let mut wrong = Vec::new();
    for (&tid, truths) in &truth {
        let is_probe = |c: &&Call| c.tid() == tid && c.name() == "fcntl" && c.num("arg") == PROBE;
        let seen: Vec<_> = calls.iter().filter(is_probe).collect();
        assert_eq!(seen.len(), truths.len(), "probes of thread {tid}");
        for (i, (call, truth)) in seen.iter().zip(truths).enumerate() {
            assert_eq!(call.num("fd"), truth.fd, "probe {i} of thread {tid}");
            let path = call.fd_path("fd");
            if !right(truth, path, root, &sockets) {
                wrong.push(format!("thread {tid} probe {i}: {truth:?}: tape says {path:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {probes} wrong:\n{}", wrong.len(), wrong.join("\n"));
    calls
}

/// Records one scenario of a workload, `WORKLOAD SCENARIO SIDE`, in an empty directory, and compares.
#[track_caller]
pub fn scenario(workload: &str, name: &str, probes: usize) -> Option<(Lab, Vec<Call>)> {
    let lab = Lab::beside()?;
    let program = lab.cc(workload, &[]);
    let work = lab.path("work");
    fs::create_dir(&work).expect("mkdir");
    let (side, tape) = (lab.file("side"), lab.file("t.tape"));
    crate::lab::run(lab.record_command(&tape, &[], &[&program, name, &side]).current_dir(&work)).expect(0);
    lab.assert_whole("t.tape");
    let calls = compare(&lab, "t.tape", "side", probes, &work.join("root").canonicalize().unwrap_or_default());
    Some((lab, calls))
}
