//! One damaged byte in any block: every report gives the answer of the sound tape, or says that something is missing and fails with
//! `--fail-on-loss`. Which blocks a report reads is its own affair: no list of them is kept here.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use systape_format::Tape;
use systape_format::header::HEADER_LEN;

/// Every report but `check`, `repair` and `redact`, which are about damage; each is run as text, JSON and CSV.
const REPORTS: &[&str] = &[
    "",
    "-y",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph",
    "-s",
    "top --by dir,peer,errno --hist",
    "top -e sched:*,signal:*,block:* --by comm,cpu",
    "top --by comm,ret --value ret",
    "-s --errno-summary --summary-mode total",
    "-s --summary-mode cgroup",
    "-s --cpu --summary-mode process",
    "info",
    "list",
    "block",
    "block --hist",
    "block --top --by cgroup,op,cause,disk",
    "files",
    "files --opens",
    "files --slower 0",
    "opensnoop",
    "statsnoop",
    "execsnoop",
    "rate --by comm,dir",
    "net",
    "net --events",
    "locks",
    "net --udp",
    "net --by comm,peer",
    "kills --all -v",
    "exec",
    "exec --tree",
    "sched",
    "sched latency",
    "runqlat",
    "cpudist",
    "probes --by comm",
    "samples",
    "offcpu",
    "offcpu --by task,state,syscall,file",
    "states",
    "states --by user,cgroup,file",
    "states --at 50%",
    "states --at 100%",
    "fds --at 50%",
    "env",
    "path --top 0",
    "path --sums",
    "callgraph --of cpu",
    "callgraph --of syscall --metric bytes",
    "callgraph --of offcpu",
    "callgraph --of wakeup",
    "callgraph --of block",
    "callgraph --of signal",
    "diff",
    "diff --by dir,errno",
];

/// Words one of which an answer has, on stdout or stderr, that tells of damage.
const MARKS: [&str; 2] = ["damaged", "\"unreadable\""];

fn tapes() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let mut tapes: Vec<PathBuf> =
        fs::read_dir(data.join("fuzz/tapes")).unwrap().map(|entry| entry.unwrap().path()).collect();
    tapes.push(data.join("tapes/kernel-6.1-mix.tape"));
    tapes.sort();
    tapes
}

fn analyze(report: &str, format: &str, tape: &Path) -> Output {
    let mut command = Command::new(common::program());
    // one thread: a process that lives for a few ms gains nothing from more
    command.env("RAYON_NUM_THREADS", "1");
    command.args(report.split(' ').filter(|word| !word.is_empty())).args(["--format", format, "--fail-on-loss"]);
    if report.starts_with("diff") {
        command.arg(tape);
    }
    let mut output = command.arg(tape).output().unwrap();
    if (report, format) == ("list", "text") {
        // a column is as wide as the path
        let words = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        output.stdout = words.into_bytes();
    }
    output
}

/// How often what was printed tells of damage.
fn marks(output: &Output) -> usize {
    let count = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        MARKS.iter().map(|mark| text.matches(mark).count()).sum::<usize>()
    };
    count(&output.stdout) + count(&output.stderr)
}

/// What is wrong with an answer from the damaged tape, beside that of the sound one.
fn wrong(sound: &Output, damaged: &Output) -> Option<String> {
    let says = format!("status {:?}, stderr {:?}", damaged.status.code(), String::from_utf8_lossy(&damaged.stderr));
    let marked = marks(damaged) > marks(sound);
    match damaged.status.code() {
        Some(0 | 3) if sound.stdout == damaged.stdout && sound.status.code() == damaged.status.code() => None,
        Some(3) if marked => None,
        // a question that cannot be answered at all is refused, and says why
        Some(1) if !damaged.stderr.is_empty() && damaged.stdout.is_empty() && marked => None,
        _ => Some(says),
    }
}

#[test]
fn one_damaged_byte_is_never_silent() {
    let place = common::Place::new();
    let mut jobs = Vec::new();
    for path in tapes() {
        let sound = fs::read(&path).unwrap();
        for block in Tape::open(&path).unwrap().blocks() {
            let at = block.offset as usize + HEADER_LEN + block.stored_len as usize / 2;
            jobs.push((path.clone(), block, at, sound.clone()));
        }
    }
    assert!(jobs.len() > 100, "{} blocks", jobs.len());
    let questions: Vec<(&str, &str)> =
        REPORTS.iter().flat_map(|report| ["text", "json", "csv"].map(|format| (*report, format))).collect();
    let mut answers: BTreeMap<(PathBuf, usize), Output> = BTreeMap::new();
    let copy = place.path("sound.tape");
    for path in tapes() {
        // of the same name as the damaged one: reports print it
        fs::copy(&path, &copy).unwrap();
        for (nth, (report, format)) in questions.iter().enumerate() {
            answers.insert((path.clone(), nth), analyze(report, format, &copy));
        }
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let seen = AtomicUsize::new(0);
    let work = |worker: usize| {
        let dir = place.path(&worker.to_string());
        fs::create_dir(&dir).unwrap();
        let file = dir.join("sound.tape");
        while let Some((path, block, at, sound)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut bytes = sound.clone();
            bytes[*at] ^= 0x10;
            fs::write(&file, &bytes).unwrap();
            for (nth, (report, format)) in questions.iter().enumerate() {
                let expected = &answers[&(path.clone(), nth)];
                if !matches!(expected.status.code(), Some(0 | 3)) {
                    // the tape has nothing of what is asked for
                    continue;
                }
                let mut got = analyze(report, format, &file);
                got.stdout = String::from_utf8_lossy(&got.stdout)
                    .replace(&*file.to_string_lossy(), &copy.to_string_lossy())
                    .into_bytes();
                seen.fetch_add(usize::from(got.stdout != expected.stdout), Ordering::Relaxed);
                if let Some(wrong) = wrong(expected, &got) {
                    let name = path.file_name().unwrap().to_string_lossy();
                    let what =
                        format!("{name}, {} of segment {:?}: {report} {format}", block.kind.name(), block.segment);
                    found.lock().unwrap().push(format!("{what}: {wrong}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
    let found = found.into_inner().unwrap();
    let differed = seen.into_inner();
    assert!(found.is_empty(), "{} answers:\n{}", found.len(), found.join("\n"));
    // damage that touches nothing would prove nothing
    assert!(differed > 1000, "{differed} answers differ");
}
