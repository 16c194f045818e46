//! Tapes changed at random and tapes that lie: every report reads every one, within memory and time, and prints nothing that a terminal obeys.
//!
//! A child process does the work under a limit of memory; its parent watches the time. `SYSTAPE_MUTATIONS=10000 cargo test --release -p
//! systape-analyzer --test heavy mutated:: -- --nocapture` is the long run; `SYSTAPE_MUTATIONS_FROM` skips to a seed. docs/internals/reliability.md has the
//! figures. `UPDATE_FUZZ_SEEDS=1` writes testdata/fuzz/tapes anew.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common;
use systape_analyzer::run;
use systape_format::exercise::bombs::bombs;
use systape_format::exercise::forge::{ForgedBlock, seal, unseal};
use systape_format::exercise::mutate::{Rng, SampleTape, mutate};

/// Every report, in every form. TAPE is the tape, PAGE the file to write; SOUND one that is not damaged.
const REPORTS: &[&str] = &[
    "TAPE",
    "-y TAPE",
    "--sort end --show-zeros --show-prefix --clone-child -T TAPE",
    "--format json TAPE",
    "--format csv TAPE",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph TAPE",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph --format json TAPE",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --format csv TAPE",
    "--failure --time 0.0005,90% TAPE",
    "-s --cpu --errno-summary TAPE",
    "-s --cpu --errno-summary --summary-mode process --format json TAPE",
    "-s --summary-mode cgroup --format csv TAPE",
    "-s --summary-mode total TAPE",
    "-S TAPE",
    "top --by comm,file,dir,peer,port --top 0 TAPE",
    "top --hist --by ext,syscall --format json TAPE",
    "top --by host,syscall TAPE SOUND",
    "top --by args.fd,args.filename,args.flags,ret --value ret TAPE",
    "top -e sched:*,signal:*,block:*,lock:* --by comm,second --hist TAPE",
    "export strace TAPE",
    "export strace -y --clock start TAPE",
    "export perfetto TAPE SOUND -o OUT",
    "export pprof --of syscall TAPE -o OUT",
    "export firefox TAPE -o OUT",
    "info TAPE",
    "info --format json TAPE",
    "list TAPE",
    "list --format json TAPE",
    "check TAPE",
    "check --format json TAPE",
    "block TAPE",
    "block --format json TAPE",
    "block --hist --by disk TAPE",
    "block --top --by cgroup,op,cause,disk --format csv TAPE",
    "opensnoop TAPE",
    "rate --by peer,errno TAPE",
    "opensnoop --clock mono TAPE",
    "statsnoop TAPE",
    "execsnoop TAPE",
    "cpudist --by comm TAPE",
    "probes --hist --by tid TAPE",
    "samples TAPE",
    "biosnoop -Q TAPE",
    "biolatency TAPE",
    "block --sizes TAPE",
    "tcplife -w TAPE",
    "syscount -P TAPE",
    "filetop TAPE",
    "killsnoop TAPE",
    "gethostlatency TAPE",
    "offcputime TAPE",
    "net TAPE",
    "net --events --format json TAPE",
    "net --format csv TAPE",
    "locks TAPE",
    "locks --metric max --top 0 --format json TAPE",
    "net --udp TAPE",
    "net --by pid,peer TAPE",
    "net --udp --format json TAPE",
    "why TAPE",
    "why --floor 0 TAPE",
    "why --floor 0 --format json TAPE",
    "report -o PAGE TAPE",
    "kills -v --all TAPE",
    "kills -v --all --format json TAPE",
    "kills --format csv TAPE",
    "exec TAPE",
    "exec --format json TAPE",
    "exec --tree --all TAPE",
    "exec --tree --all --format json TAPE",
    "sched timehist TAPE",
    "sched timehist --format csv TAPE",
    "sched latency --by task TAPE",
    "runqlat --by cpu TAPE",
    "runqlat --by task --format json TAPE",
    "offcpu --by task,state,syscall,file TAPE",
    "offcpu --format json TAPE",
    "offcpu --wakers 100 TAPE",
    "states --by comm,state,syscall,user,cgroup TAPE",
    "states --at 0.0012 TAPE",
    "fds --at 0.0012 TAPE",
    "fds --format json TAPE",
    "env TAPE",
    "states --at 100% --format json TAPE",
    "path TAPE",
    "path --top 0 --format json TAPE",
    "path -p 100 --sums --format csv TAPE",
    "callgraph --of syscall TAPE",
    "callgraph --of syscall --callee --metric time --format json TAPE",
    "callgraph --of offcpu --min-percent 0 --format csv TAPE",
    "callgraph --of wakeup --folded TAPE",
    "callgraph --of syscall --folded --diff SOUND TAPE",
    "diff SOUND TAPE",
    "diff TAPE SOUND --format json",
    "diff --by comm,peer,cgroup TAPE SOUND",
];

/// Memory of its own the child may have; what it maps and never writes is not counted.
const MEMORY: u64 = 512 << 20;
/// A tape must be done with, all reports of it, in this time each.
const TIME: Duration = Duration::from_secs(10);
/// The child makes what it needs before the first one in this time: a debug build on a busy machine takes long.
const START: Duration = Duration::from_secs(90);

const TASK: &str = "SYSTAPE_MUTATED_TASK";

/// Sound tapes of all kinds of events, by name.
fn sound() -> BTreeMap<String, PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let mut tapes = BTreeMap::new();
    for dir in [data.join("fuzz/tapes"), data.join("tapes")] {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "tape") {
                tapes.insert(path.file_name().unwrap().to_string_lossy().into_owned(), path);
            }
        }
    }
    tapes
}

/// The tapes of the other tests, which have every kind of block among them.
fn build(dir: &Path) {
    common::sample(&dir.join("sample.tape"));
    common::sched::tape(&dir.join("sched.tape"), true);
    common::events::write(&dir.join("events.tape"), false);
    common::life::write(&dir.join("life.tape"), &[]);
    common::stacks::write(&dir.join("stacks.tape"), 1);
    common::ledger::write(&dir.join("ledger.tape"), &[common::gap()]);
    common::udp::write(&dir.join("udp.tape"), &[]);
    common::locks::write(&dir.join("locks.tape"), &[]);
    common::held::write(&dir.join("held.tape"), &[]);
}

/// Standard output of this process, which is a file.
struct Printed(File);

impl Printed {
    fn new() -> Self {
        let out = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
        Self(File::from(out))
    }

    /// What was printed since the last time.
    fn take(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.rewind().unwrap();
        self.0.read_to_end(&mut bytes).unwrap();
        self.0.set_len(0).unwrap();
        self.0.rewind().unwrap();
        bytes
    }
}

/// The first character a terminal could obey, with what is before it.
fn control(report: &str, printed: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(printed) {
        Ok(text) => text,
        Err(error) => return Some(format!("no UTF-8 at {}", error.valid_up_to())),
    };
    // tabs indent the errnos of a summary
    text.split('\n').map(|line| line.trim_start_matches('\t')).find_map(|line| {
        // JSON is for programs: there DEL and what is above it stand as they are
        let at = line.find(|c: char| c.is_control() && (c < ' ' || !report.contains("json")))?;
        Some(format!("{:?} behind {:?}", line[at..].chars().next(), &line[..at]))
    })
}

/// Runs every report on `tape`; its trouble, if there is any.
fn all_reports(tape: &Path, sound: &Path, printed: &mut Printed) -> Option<String> {
    let exported = tape.with_extension("exported");
    let page = tape.with_extension("html");
    for report in REPORTS {
        let words = report.split(' ').map(|word| match word {
            "TAPE" => tape.as_os_str(),
            "SOUND" => sound.as_os_str(),
            "OUT" => exported.as_os_str(),
            "PAGE" => page.as_os_str(),
            word => word.as_ref(),
        });
        run([std::ffi::OsStr::new("analyze")].into_iter().chain(words).map(Into::into));
        let mut text = printed.take();
        if report.contains("PAGE") {
            // refused tapes have no page
            text.extend(fs::read(&page).unwrap_or_default());
            let _ = fs::remove_file(&page);
        }
        if let Some(what) = control(report, &text) {
            return Some(format!("{report}: {what}"));
        }
        if text.windows(3).any(|bytes| bytes == &EVIL[..3]) {
            return Some(format!("{report}: a line out of captured text"));
        }
    }
    None
}

/// What a terminal obeys, or shows as what it is not; in front a line break, which would make a line of its own.
const EVIL: &[u8] = b"\nZZ\x1b[2J\x1b]0;t\x07\r\x08\x7f\x9b1m\xc2\x9b2m\xe2\x80\xae\xe2\x80\xa8";

/// Puts that into every piece of text of a tape: whatever looks like a word in a message.
fn with_evil_words(blocks: &mut [ForgedBlock]) {
    let mut nth = 0;
    for block in blocks {
        let is_word = |byte: &u8| byte.is_ascii_alphabetic() || b"/_.-<>[]".contains(byte);
        let mut rest = &mut block.raw[..];
        while let Some(at) = rest.iter().position(is_word) {
            let len = rest[at..].iter().take_while(|byte| is_word(byte)).count();
            let (word, behind) = rest[at..].split_at_mut(len);
            if len >= 3 {
                let from = if nth % 2 == 0 { 0 } else { nth % EVIL.len() };
                word.iter_mut().zip(EVIL.iter().cycle().skip(from)).for_each(|(byte, evil)| *byte = *evil);
                nth += 1;
            }
            rest = behind;
        }
    }
    assert!(nth > 20, "no words in the tape");
}

/// Moves every time of a tape by the same amount, over the end of time too.
fn moved_in_time(blocks: &mut [ForgedBlock], by: u64) {
    let moved = |time: u64| {
        let inside = (common::OPEN..common::OPEN + 1_000_000_000).contains(&time);
        if inside { time.wrapping_add(by) } else { time }
    };
    for block in blocks {
        for word in block.raw.chunks_exact_mut(8) {
            let time = u64::from_le_bytes(word.try_into().unwrap());
            word.copy_from_slice(&moved(time).to_le_bytes());
        }
        let header = &mut block.header;
        for time in [&mut header.start_min, &mut header.end_min, &mut header.end_max] {
            *time = moved(*time);
        }
    }
}

/// Tapes made on purpose: bombs in every block, words for the terminal, times at both ends of time.
fn hostile(tapes: &BTreeMap<String, PathBuf>) -> Vec<(String, Vec<u8>)> {
    let mut made = Vec::new();
    for (name, path) in tapes {
        let blocks = unseal(&fs::read(path).unwrap()).unwrap();
        let mut evil = blocks.clone();
        with_evil_words(&mut evil);
        made.push((format!("words in {name}"), seal(&evil)));
        let last = u64::MAX - common::OPEN;
        for by in [last, last - 1_000, last - 500_000, last - 1_500_000, last + 2, (1 << 63) - common::OPEN - 700_000] {
            let mut moved = blocks.clone();
            moved_in_time(&mut moved, by);
            made.push((format!("times in {name}"), seal(&moved)));
        }
    }
    let blocks = unseal(&fs::read(&tapes["stacks.tape"]).unwrap()).unwrap();
    for at in 0..blocks.len() {
        for (bomb, raw) in bombs() {
            let mut forged = blocks.clone();
            forged[at].set_raw(&raw);
            made.push((format!("bomb: {bomb}"), seal(&forged)));
        }
    }
    made
}

/// Limits writable memory, and this process's alone.
fn limit_memory() {
    let limit = libc::rlimit { rlim_cur: MEMORY, rlim_max: MEMORY };
    // SAFETY: the kernel reads one rlimit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) }, 0);
}

/// A field of /proc/self/status in KiB.
fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
}

/// Tells the parent, by the one way that is not read as a report.
fn tell(text: &str) {
    eprintln!("\n@ {text}");
}

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let words: Vec<&str> = task.split(' ').collect();
    let (from, to, dir) = (words[0].parse::<u64>().unwrap(), words[1].parse::<u64>().unwrap(), Path::new(words[2]));
    limit_memory();
    let mut printed = Printed::new();
    printed.take();
    let tapes = sound();
    let samples: Vec<SampleTape> =
        tapes.values().map(|path| SampleTape::new(fs::read(path).unwrap()).unwrap()).collect();
    let tape = dir.join("mutated.tape");
    let made: Vec<(String, Vec<u8>)> = if from == to { hostile(&tapes) } else { Vec::new() };
    let many = made.len() as u64;
    for seed in from..to + many {
        let (change, bytes) = match made.get((seed - from) as usize) {
            Some((name, bytes)) => (name.clone(), bytes.clone()),
            None => {
                let (change, bytes) = mutate(&mut Rng::new(seed), &samples);
                (format!("{change:?}"), bytes)
            }
        };
        fs::write(&tape, bytes).unwrap();
        tell(&format!("begin {seed} {change}"));
        if let Some(trouble) = all_reports(&tape, &tapes["sample.tape"], &mut printed) {
            tell(&format!("trouble {trouble}"));
        }
    }
    tell(&format!("end {}", status("VmHWM")));
}

/// What a child did.
#[derive(Debug, Default)]
struct Outcome {
    /// Time of the slowest tape and its seed.
    slowest: (Duration, u64),
    peak_kib: u64,
    changes: BTreeMap<String, u64>,
}

/// Kills a child that is left behind when a test fails.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has a child read the tapes of seeds `from..to`; of none, those made on purpose.
fn run_child(from: u64, to: u64) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let out = File::options().read(true).write(true).create(true).truncate(true).open(dir.path().join("out")).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mutated::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(TASK, format!("{from} {to} {}", dir.path().display()))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Reaped(child);
    let said = BufReader::new(child.0.stderr.take().unwrap());
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in said.split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    let mut outcome = Outcome::default();
    let mut now: Option<(u64, Instant)> = None;
    // What the reports complain of, kept for when the child dies.
    let mut last = Vec::new();
    loop {
        let left = now.map_or(START, |(_, begun)| TIME.saturating_sub(begun.elapsed()));
        let line = match receive.recv_timeout(left) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("seed {now:?}: not done in time; {last:#?}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("seed {now:?}: the child died; it said {last:#?}"),
        };
        let Some(told) = line.strip_prefix("@ ") else {
            if line.contains("panicked") || line.contains("memory allocation") {
                last.clear();
            }
            if last.len() < 20 && !line.is_empty() {
                last.push(line);
            }
            continue;
        };
        let mut done = || {
            if let Some((seed, begun)) = now.take() {
                outcome.slowest = outcome.slowest.max((begun.elapsed(), seed));
            }
        };
        match told.split_once(' ').unwrap() {
            ("begin", rest) => {
                done();
                let (seed, change) = rest.split_once(' ').unwrap();
                *outcome.changes.entry(change.to_owned()).or_default() += 1;
                now = Some((seed.parse().unwrap(), Instant::now()));
                last.clear();
            }
            ("end", peak) => {
                done();
                outcome.peak_kib = peak.parse().unwrap();
                break;
            }
            (_, trouble) => panic!("seed {now:?}: {trouble}"),
        }
    }
    assert!(child.0.wait().unwrap().success());
    outcome
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn changed_tapes_are_read_within_bounds() {
    let from = number("SYSTAPE_MUTATIONS_FROM").unwrap_or(0);
    let count = number("SYSTAPE_MUTATIONS").unwrap_or(150);
    let begun = Instant::now();
    let outcome = run_child(from, from + count);
    println!("{count} tapes, {} reports each, {:.1?}: {outcome:?}", REPORTS.len(), begun.elapsed());
    assert_eq!(outcome.changes.values().sum::<u64>(), count);
    assert!(outcome.changes.len() >= 6 || count < 100, "{:?}", outcome.changes);
    assert!(outcome.peak_kib << 10 <= MEMORY);
}

#[test]
fn tapes_made_on_purpose_are_read_within_bounds() {
    let outcome = run_child(0, 0);
    println!("made on purpose: {outcome:?}");
    for kind in ["words in stacks.tape", "times in sched.tape", "bomb: structs of no size"] {
        assert!(outcome.changes.contains_key(kind), "{kind}");
    }
    assert!(outcome.peak_kib << 10 <= MEMORY);
}

/// Names for the terminal are printed, and printed so that they can be read.
#[test]
fn words_for_the_terminal_are_shown_not_obeyed() {
    let place = common::Place::new();
    for name in ["sample.tape", "events.tape", "life.tape", "stacks.tape"] {
        let mut blocks = unseal(&fs::read(&sound()[name]).unwrap()).unwrap();
        with_evil_words(&mut blocks);
        fs::write(place.path(name), seal(&blocks)).unwrap();
    }
    for words in [
        "sample.tape",
        "-s stacks.tape",
        "kills -v life.tape",
        "exec life.tape",
        "exec --tree life.tape",
        "info stacks.tape",
    ]
    .into_iter()
    .chain(["callgraph stacks.tape", "block events.tape", "--format csv sample.tape"])
    {
        let got = place.analyze(words);
        assert_eq!(got.status, 0, "{words}: {}", got.err);
        assert!(got.out.contains(r"\nZZ"), "{words}: {}", got.out);
        assert!(!got.out.contains('\x1b') && !got.err.contains('\x1b'), "{words}: {got:?}");
    }
}

#[test]
fn the_seeds_are_the_tapes_of_the_other_tests() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/fuzz/tapes");
    if std::env::var_os("UPDATE_FUZZ_SEEDS").is_some() {
        fs::create_dir_all(&seeds).unwrap();
        build(&seeds);
    }
    let mut kinds = std::collections::BTreeSet::new();
    for path in sound().values().filter(|path| path.starts_with(&seeds)) {
        let tape = systape_format::Tape::open(path).unwrap();
        assert!(tape.has_index() && tape.findings().is_empty(), "{}", path.display());
        kinds.extend(tape.blocks().iter().map(|block| block.kind.name()));
    }
    // session, 17 of segments, checkpoint, symbols, index, end
    assert_eq!(kinds.len(), 22, "{kinds:?}");
}
