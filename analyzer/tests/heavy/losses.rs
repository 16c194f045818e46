//! What is lost makes no number wrong: every report is asked about tapes that lack something in every way, and about the same tapes when
//! they were whole. What it says to be exact is the same, "at least" is not more, "at most" not less; a row is missing or new only if the
//! answer says that something is lost.
//!
//! A child process a tape asks in the same process, because there are many thousand questions; its standard output is a file.
//! `SYSTAPE_LOSSES=name` asks about the tapes with that in their names only, `SYSTAPE_LOSSES_REPORT=report` only that report.

mod answer;
mod copy;
mod damage;
mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common;
use answer::{Answer, Lie, careless, compare, rows};
use damage::Damaged;
use questions::{Question, questions};
use systape_analyzer::exercise::Rows;
use systape_analyzer::exercise::tables as all_tables;
use systape_analyzer::run;
use systape_format::SegmentBuilder;
use systape_format::model::{CallState, FD_NONE, Family, GapCause, SyscallRow};

/// The tape that a child is to ask about, and where its findings go.
const TASK: &str = "SYSTAPE_LOSSES_TASK";

/// Standard output of this process, which is a file.
struct Printed(File);

impl Printed {
    fn new() -> Self {
        Self(File::from(std::io::stdout().as_fd().try_clone_to_owned().unwrap()))
    }

    /// What was printed since the last time.
    fn take(&mut self) -> String {
        let mut text = String::new();
        self.0.rewind().unwrap();
        self.0.read_to_string(&mut text).unwrap();
        self.0.set_len(0).unwrap();
        self.0.rewind().unwrap();
        text
    }
}

/// What `words` are answered; None: they are refused, or there is no answer.
fn ask(printed: &mut Printed, all: &[Rows], words: &str) -> Option<Answer> {
    let words = ["analyze"].into_iter().chain(words.split(' ').filter(|word| !word.is_empty()));
    let status = run(words.chain(["--format", "json", "--fail-on-loss"]).map(Into::into));
    let text = printed.take();
    let lost = status == ExitCode::from(3);
    (lost || status == ExitCode::SUCCESS).then(|| Answer { rows: rows(all, &text), lost })
}

/// What a child has to say.
#[derive(Debug, Default)]
struct Found {
    /// By what is wrong and the question: the first example, and how many.
    lies: BTreeMap<(String, String), (String, u64)>,
    answers: u64,
    values: u64,
    /// Answers that are wrong if nobody cares what is lost, and that were seen to be.
    caught: u64,
    /// The reports that they are of.
    reports: BTreeSet<&'static str>,
    /// Tables that had rows beside which others could be looked at.
    tables: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, question: &Question, damaged: &Damaged, whole: &Answer, got: &Answer) {
        let (lies, values) = compare(whole, got);
        self.answers += 1;
        self.values += values;
        if !compare(whole, &careless(got)).0.is_empty() {
            self.caught += 1;
            self.reports.insert(question.report);
        }
        for Lie { what, example } in lies {
            let entry = self.lies.entry((what, question.words.clone()));
            entry.or_insert_with(|| (format!("{}: {example}", damaged.what), 0)).1 += 1;
        }
    }
}

impl Found {
    /// Asks what is wrong with the file: damage is found, and what the tape says that it lacks is told.
    fn of_file(&mut self, printed: &mut Printed, damaged: &Damaged, path: &Path, whole: &Path) {
        let asked = |view: &str, path: &Path| {
            let words = format!("analyze {view} --fail-on-loss {}", path.display());
            run(words.split(' ').map(Into::into))
        };
        let status = |view: &str| asked(view, path);
        let (good, lost) = (ExitCode::SUCCESS, ExitCode::from(3));
        let check = status("check");
        let expected = if damaged.torn { ExitCode::from(1) } else { good };
        let info = status("info");
        // what is inside of blocks 'info' does not look at: 'check' does
        let told = if damaged.counted { asked("info", whole) } else { lost };
        printed.take();
        let inside = damaged.what.starts_with("block ");
        for (view, is, should) in [("check", check, expected), ("info", info, told)] {
            if is != should && !(inside && view == "info") {
                let what = format!("{view}: it ends with {is:?}, not {should:?}");
                self.lies.entry((what, view.to_owned())).or_insert_with(|| (damaged.what.clone(), 0)).1 += 1;
            }
        }
    }
}

/// Tapes of other tests on which threads run that no switch brought on a CPU: what is known of them there, calls alone say.
const WITHOUT_SWITCHES: [&str; 2] = ["events", "stacks"];

/// The report without what it is of: a tape of looks has other rows of it.
fn plain(report: &str) -> &str {
    report.strip_suffix(" of looks").unwrap_or(report)
}

/// Asks everything about the tape at `path` and about it when it lacks something.
fn asked(path: &Path, dir: &Path) -> Found {
    let all: Vec<Rows> = all_tables().copied().collect();
    let mut printed = Printed::new();
    printed.take();
    let bytes = fs::read(path).unwrap();
    let lacking = dir.join("lacking.tape");
    // the copy that lacks nothing: what differs from it is missing, not written otherwise
    let tape = systape_format::Tape::from_bytes(bytes).unwrap();
    let bytes = copy::copy(&tape, |_| copy::Fate::Stored);
    let whole_path = dir.join("whole.tape");
    fs::write(&whole_path, &bytes).unwrap();
    let damages = damage::all(&bytes);
    let mut found = Found::default();
    let name = path.file_stem().unwrap().to_string_lossy();
    let switches = !WITHOUT_SWITCHES.contains(&&*name);
    let only = std::env::var("SYSTAPE_LOSSES_REPORT").ok();
    let length = tape.end().unwrap().window_close - tape.session().window_open;
    let asked: Vec<(Question, Vec<Rows>, Answer)> = questions()
        .into_iter()
        .map(|question| question.of_length(length))
        .filter(|question| !question.of_scheduler || switches)
        // which looks an instant is known by, and what they saw, is what a loss changes: each row says in `is` by which it is
        .filter(|question| name != "looks" || question.report != "states --at")
        .filter(|question| only.as_ref().is_none_or(|only| only == question.report))
        .filter_map(|question| {
            let rows: Vec<Rows> =
                all.iter().filter(|rows| plain(rows.report) == plain(question.report)).cloned().collect();
            assert!(!rows.is_empty(), "{} is not in the registry", question.report);
            let whole = ask(&mut printed, &rows, &question.about(&whole_path, &whole_path))?;
            Some((question, rows, whole))
        })
        .collect();
    found.tables = answer::tables(asked.iter().map(|(_, _, whole)| whole));
    for (nth, damaged) in damages.iter().enumerate() {
        fs::write(&lacking, &damaged.bytes).unwrap();
        found.of_file(&mut printed, damaged, &lacking, &whole_path);
        for (at, (question, rows, whole)) in asked.iter().enumerate() {
            if question.seldom && (nth + at) % 4 != 0 {
                continue;
            }
            if let Some(got) = ask(&mut printed, rows, &question.about(&lacking, &whole_path)) {
                found.add(question, damaged, whole, &got);
            }
        }
    }
    found
}

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let (tape, dir) = task.split_once('\n').unwrap();
    let found = asked(Path::new(tape), Path::new(dir));
    let mut text = format!("{} {} {}\n", found.answers, found.values, found.caught);
    text += &format!("{}\n", found.tables.into_iter().collect::<Vec<_>>().join(" "));
    text += &format!("{}\n", found.reports.into_iter().collect::<Vec<_>>().join("\t"));
    for ((what, words), (example, count)) in found.lies {
        text += &format!("{what} [{words}] {count} times, such as {}\n", example.replace('\n', " "));
    }
    fs::write(Path::new(dir).join("found"), text).unwrap();
}

/// Has a child ask about `tape`; what it found.
fn run_child(tape: &Path) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let output = File::options().read(true).write(true).create(true).truncate(true).open(path("out")).unwrap();
    let said = File::create(path("said")).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "losses::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(TASK, format!("{}\n{}", tape.display(), dir.path().display()))
        .env("RAYON_NUM_THREADS", "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(said)
        .status()
        .unwrap();
    let said = fs::read_to_string(path("said")).unwrap_or_default();
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("internal error")).take(5).collect();
    if !status.success() || !complaints.is_empty() {
        let end: Vec<&str> = said.lines().rev().take(12).collect();
        return Err(format!(
            "{} ({status}): {complaints:?} {}",
            tape.display(),
            end.into_iter().rev().collect::<Vec<_>>().join("\n")
        ));
    }
    fs::read_to_string(path("found")).map_err(|e| e.to_string())
}

/// The call in which thread 300 was at the start of that tape, and is at its end.
fn in_flight(builder: &mut SegmentBuilder) {
    let (task, call) = (builder.intern_task(&common::sched::task(300)), builder.intern_call(common::call("futex")));
    let dur = common::sched::LENGTH * common::US;
    builder.push_syscall(SyscallRow {
        end: common::OPEN + dur,
        dur,
        cpu: 1,
        task,
        call,
        state: CallState::InFlight,
        args: [0x7f34, 128, 2, 0, 0, 0],
        fd: FD_NONE,
        fd2: FD_NONE,
        ..SyscallRow::default()
    });
}

/// Tapes with events of every family.
fn tapes(dir: &Path) -> Vec<PathBuf> {
    let path = |name: &str| dir.join(format!("{name}.tape"));
    common::sample(&path("sample"));
    common::events::write(&path("events"), false);
    common::life::write(&path("life"), &[]);
    common::stacks::write(&path("stacks"), 1);
    common::ledger::write(&path("ledger"), &[]);
    common::asleep::write_and(&path("asleep"), in_flight);
    common::sched::tape_and(&path("sched"), &[], in_flight);
    common::tables::write(&path("tables"));
    common::udp::write(&path("udp"), &[]);
    common::locks::write(&path("locks"), &[]);
    common::held::write(&path("held"), &[]);
    common::tools::write(&path("tools"), &[]);
    common::exchanges::write(&path("exchanges"), &[]);
    common::exchanges::write_served(&path("served"));
    common::looks::write(&path("looks"), &[]);
    let names = [
        "sample",
        "events",
        "life",
        "stacks",
        "ledger",
        "asleep",
        "sched",
        "tables",
        "udp",
        "locks",
        "held",
        "tools",
        "exchanges",
        "served",
        "looks",
    ];
    let mut tapes: Vec<PathBuf> = names.into_iter().map(path).collect();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let files = fs::read_dir(recorded).unwrap().map(|entry| entry.unwrap().path());
    let asked = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(".tape")
    };
    tapes.extend(files.filter(asked));
    if let Ok(name) = std::env::var("SYSTAPE_LOSSES") {
        tapes.retain(|tape| tape.file_name().unwrap().to_string_lossy().contains(&name));
    }
    tapes
}

#[test]
fn what_is_lost_makes_no_number_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let tapes = tapes(dir.path());
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(String, Result<String, String>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(tape) = tapes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = tape.file_stem().unwrap().to_string_lossy().into_owned();
                    let result = run_child(tape);
                    found.lock().unwrap().push((name, result));
                }
            });
        }
    });
    let (mut sums, mut wrong) = ([0_u64; 3], Vec::new());
    let (mut tables, mut reports) = (BTreeSet::new(), BTreeSet::new());
    for (name, result) in found.into_inner().unwrap() {
        let text = result.unwrap_or_else(|why| panic!("{why}"));
        let mut lines = text.lines();
        let numbers = lines.next().unwrap().split(' ').map(|n| n.parse::<u64>().unwrap());
        sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
        tables.extend(lines.next().unwrap().split(' ').map(str::to_owned));
        reports.extend(lines.next().unwrap().split('\t').map(str::to_owned));
        wrong.extend(lines.map(|line| format!("{name}: {line}")));
    }
    let [answers, values, caught] = sums;
    println!("{answers} answers, {values} values; {caught} would be wrong if nobody cared what is lost");
    wrong.sort();
    assert!(wrong.is_empty(), "{} kinds of wrong answers:\n{}", wrong.len(), wrong.join("\n"));
    if ["SYSTAPE_LOSSES", "SYSTAPE_LOSSES_REPORT"].iter().all(|name| std::env::var_os(name).is_none()) {
        assert!(caught > answers / 10, "{caught} of {answers}");
        let asked: BTreeSet<String> = questions().into_iter().map(|question| question.report.to_owned()).collect();
        assert_eq!(reports, asked, "reports of which an answer that hides what is lost would be seen");
        assert!(tables.len() > 18, "{tables:?}");
    }
}

/// What a row of a small answer says of its number.
fn says(value: serde_json::Value, flag: Option<bool>) -> Answer {
    let told = answer::Told { value, short: systape_format::table::Short::AtLeast, flag };
    let values = BTreeMap::from([("calls".to_owned(), told)]);
    let row = answer::Row { table: "summary".into(), key: "read".into(), vague: false, values };
    Answer { rows: vec![row], lost: flag == Some(true) }
}

#[test]
fn answers_that_lie_are_seen() {
    let whole = says(7.into(), Some(false));
    let lies = |got: &Answer| compare(&whole, got).0.into_iter().map(|lie| lie.what).collect::<Vec<_>>();
    assert_eq!(lies(&whole), [""; 0]);
    assert_eq!(lies(&says(5.into(), Some(true))), [""; 0]);
    assert_eq!(lies(&careless(&says(5.into(), Some(true)))), ["summary.calls: it says to be exact"]);
    assert_eq!(lies(&says(8.into(), Some(true))), ["summary.calls: it is more than it can be"]);
    assert_eq!(lies(&says(serde_json::Value::Null, None)).len(), 1, "nothing says why it is not known");
    let none = Answer::default();
    assert_eq!(lies(&none), ["summary: a row is missing"]);
    assert_eq!(lies(&Answer { lost: true, ..none.clone() }), [""; 0]);
    assert_eq!(compare(&none, &whole).0[0].what, "summary: a row is new");
}

#[test]
fn what_is_lost_outside_of_the_filters_is_not_told() {
    let place = common::Place::with_sample();
    let tape = systape_format::Tape::open(&place.path("sample.tape")).unwrap();
    // calls of process 102, which ended between 0.95 and 7.1 ms
    let lost = |event: &copy::Event| match (event.family, event.pid) {
        (Family::Syscall, 102) => copy::Fate::Lost(GapCause::OverShare),
        _ => copy::Fate::Stored,
    };
    fs::write(place.path("lossy.tape"), copy::copy(&tape, lost)).unwrap();
    for (words, status) in [
        ("", 3),
        ("-p 102", 3),
        ("-p 100", 0),
        ("--time 8ms,", 0),
        // they may have begun then
        ("--time ,100us", 3),
        ("--time ,100us -p 100", 0),
        ("-e process:*", 0),
    ] {
        for view in ["", "-s", "-s --summary-mode total"].iter().filter(|view| view.is_empty() || !words.contains(':'))
        {
            let got = place.analyze(&format!("{view} {words} --format json --fail-on-loss lossy.tape"));
            assert_eq!(got.status, status, "{view} {words}: {got:?}");
            if status == 0 {
                let whole = place.analyze(&format!("{view} {words} --format json sample.tape"));
                assert_eq!(got.out, whole.out, "{view} {words}");
            }
        }
    }
}
