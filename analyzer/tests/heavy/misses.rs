//! One damaged byte in any block: every report gives the answer of the sound tape, or says that something is missing and fails with
//! `--fail-on-loss`. Which blocks a report reads is its own affair: no list of them is kept here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Output, Place};
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

/// The name of every tape that is asked about, sound or not: reports print it.
const NAME: &str = "asked.tape";

/// What `report` answers in `format` about the tape of `place`.
fn answer(place: &Place, (report, format): (&str, &str)) -> Output {
    let tapes = if report.starts_with("diff") { format!("{NAME} {NAME}") } else { NAME.to_owned() };
    place.ask(&format!("{report} --format {format} --fail-on-loss {tapes}"))
}

/// How often what was printed tells of damage.
fn marks(output: &Output) -> usize {
    let count = |text: &str| MARKS.iter().map(|mark| text.matches(mark).count()).sum::<usize>();
    count(&output.out) + count(&output.err)
}

/// What is wrong with an answer from the damaged tape, beside that of the sound one.
fn wrong(sound: &Output, damaged: &Output) -> Option<String> {
    let marked = marks(damaged) > marks(sound);
    match damaged.status {
        0 | 3 if sound.out == damaged.out && sound.status == damaged.status => None,
        3 if marked => None,
        // a question that cannot be answered at all is refused, and says why
        1 if !damaged.err.is_empty() && damaged.out.is_empty() && marked => None,
        status => Some(format!("status {status}, stderr {:?}", damaged.err)),
    }
}

#[test]
fn one_damaged_byte_is_never_silent() {
    let tapes: Vec<(PathBuf, Vec<u8>)> =
        tapes().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let mut jobs = Vec::new();
    for (nth, (path, _)) in tapes.iter().enumerate() {
        for block in Tape::open(path).unwrap().blocks() {
            let at = block.offset as usize + HEADER_LEN + block.stored_len as usize / 2;
            jobs.push((nth, block, at));
        }
    }
    assert!(jobs.len() > 100, "{} blocks", jobs.len());
    let questions: Vec<(&str, &str)> =
        REPORTS.iter().flat_map(|report| ["text", "json", "csv"].map(|format| (*report, format))).collect();
    let place = Place::new();
    let sound: Vec<Vec<Output>> = tapes
        .iter()
        .map(|(_, bytes)| {
            fs::write(place.path(NAME), bytes).unwrap();
            questions.iter().map(|question| answer(&place, *question)).collect()
        })
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let differed = AtomicUsize::new(0);
    let work = || {
        let place = Place::new();
        while let Some((nth, block, at)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (path, bytes) = &tapes[*nth];
            let mut bytes = bytes.clone();
            bytes[*at] ^= 0x10;
            fs::write(place.path(NAME), &bytes).unwrap();
            for (question, expected) in questions.iter().zip(&sound[*nth]) {
                // else the tape has nothing of what is asked for
                if matches!(expected.status, 0 | 3) {
                    let got = answer(&place, *question);
                    differed.fetch_add(usize::from(got.out != expected.out), Ordering::Relaxed);
                    if let Some(wrong) = wrong(expected, &got) {
                        let name = path.file_name().unwrap().to_string_lossy();
                        let (report, format) = question;
                        let what =
                            format!("{name}, {} of segment {:?}: {report} {format}", block.kind.name(), block.segment);
                        found.lock().unwrap().push(format!("{what}: {wrong}"));
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap();
    let differed = differed.into_inner();
    assert!(found.is_empty(), "{} answers:\n{}", found.len(), found.join("\n"));
    // damage that touches nothing would prove nothing
    assert!(differed > 1000, "{differed} answers differ");
}
