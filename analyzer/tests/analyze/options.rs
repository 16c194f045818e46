//! No option is taken without an effect: every view is asked with every option. Each either changes the answer about some tape, or is
//! refused with status 2 and a sentence that names the views that take it.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::hints::WORDS;
use crate::common::{self, Place};
use systape_analyzer::exercise::VIEWS;
use systape_analyzer::exercise::union;
use systape_analyzer::exercise::{COMMON, Operands, View};

/// Answers of a view that are of another kind: what asks for them.
#[rustfmt::skip]
const MODES: &[(&str, &str)] = &[
    ("", "-e sched:*"),
    ("summary", "--by file"),
    ("summary", "-e exceptions:*"),
    ("top", "--hist"),
    ("top", "-e sched:* --value target_cpu"),
    ("kills", "-v"),
    ("kills", "--all"),
    ("exec", "--tree"),
    ("block", "--hist"),
    ("block", "--sizes"),
    ("block", "--top"),
    ("files", "--opens"),
    ("files", "--slower 0.0001"),
    ("net", "--events"),
    ("net", "--udp"),
    ("probes", "--hist"),
    ("net", "--by comm,peer"),
    ("offcpu", "--wakers 100"),
    ("path", "--sums"),
    ("stays", "--longest"),
    ("requests", "--slowest 20"),
    ("requests", "--client"),
    ("states", "--at 50%"),
    ("states", "--at 50% --call-graph"),
    ("callgraph", "--of cpu"),
    ("callgraph", "--of syscall"),
    ("callgraph", "--of offcpu"),
    ("callgraph", "--of block"),
    ("callgraph", "--of signal"),
    ("callgraph", "--of wakeup"),
    ("callgraph", "--folded"),
    ("callgraph", "--svg out.svg"),
];

/// What of a mode cannot be seen on the tapes here: all its rows are of one thread or cgroup, or its stacks of two frames. Without the mode it can.
const UNSEEN: &[(&str, &[&str])] = &[
    // events have no end to be listed by
    ("-e sched:*", &["follow"]),
    ("--of syscall", &["metric"]),
    ("--of block", &["cgroups", "max_events", "metric", "min_percent"]),
    ("--of signal", &["cgroups", "max_events", "metric", "min_percent"]),
    ("--of wakeup", &["cgroups", "metric", "max_depth"]),
    ("--wakers 100", &["cgroups"]),
];

/// What cannot be seen on the tapes here, and where it is tested.
const ELSEWHERE: [&str; 9] = [
    // needs files with the build ids of the tape: tests/analyze/stacks.rs
    "debug_dirs",
    // and a server that has them: tests/analyze/debuginfod.rs
    "debuginfod",
    // of what writes a tape: tests/heavy/cut.rs
    "families",
    // needs segments whose times overlap, which these tapes have not
    "unordered",
    // needs a finding about several files: tests/analyze/why.rs
    "expand",
    // other names for cgroups: events/src/in_cgroup.rs
    "units",
    "containers",
    "pods",
    // what takes it needs it: every question here has it
    "output",
];

/// Options whose letter means what it means to the tool of the view's name.
const THEIRS: [(&str, &str); 16] = [
    ("files", "rank"),
    ("filetop", "by_most"),
    ("files", "sort"),
    ("filetop", "sort"),
    ("locks", "sort"),
    ("cut", "output"),
    ("redact", "output"),
    ("repair", "output"),
    ("syscount", "paths"),
    ("syscount", "absolute"),
    ("cpudist", "paths"),
    ("runqlat", "paths"),
    ("filetop", "summary"),
    ("killsnoop", "summary"),
    ("export strace", "absolute"),
    ("export strace", "show_cwd"),
];

/// Options that are the word for a view of their own: they choose it.
const CHOOSE: [&str; 2] = ["summary", "with_summary"];

const TAPES: [&str; 19] = [
    "held.tape",
    "sample.tape",
    "events.tape",
    "life.tape",
    "stacks.tape",
    "more.tape",
    "ledger.tape",
    "sched.tape",
    "mix.tape",
    "sh.tape",
    "asleep.tape",
    "udp.tape",
    "locks.tape",
    "looks.tape",
    "requests.tape",
    "served.tape",
    "stats.tape",
    "tools.tape",
    "db.tape",
];

fn place() -> Place {
    let place = Place::with_tapes();
    common::asleep::write(&place.path("asleep.tape"));
    fs::write(place.path("expect.txt"), "it: top => rows > 0\n").unwrap();
    let recorded = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    fs::copy(recorded.join("kernel-6.1-mix.tape"), place.path("mix.tape")).unwrap();
    fs::copy(recorded.join("kernel-6.12-sh.tape"), place.path("sh.tape")).unwrap();
    place
}

/// What `view` answers about `tape` with `words`: its output, and what it wrote; the status when it refuses.
fn answer(place: &Place, view: &View, words: &str, tape: &str) -> Result<String, i32> {
    answer_by(Place::ask, place, view, words, tape)
}

/// The same, asked by `ask`.
fn answer_by(ask: Ask, place: &Place, view: &View, words: &str, tape: &str) -> Result<String, i32> {
    let copy = place.path("copy.tape");
    let written = ["out.svg", "out.html", "report.html"].map(|name| place.path(name));
    let operands = match view.operands {
        Operands::Tapes if view.name == "across" => format!("web.tape {tape}"),
        Operands::Tape | Operands::Tapes => tape.to_owned(),
        Operands::TwoTapes => format!("{tape} more.tape"),
        Operands::TapeAndCopy => format!("{tape} copy.tape"),
        Operands::TapeAndFile => format!("{tape} expect.txt"),
        Operands::Table => format!("-i {tape}"),
        Operands::Logs => "x.log".to_owned(),
    };
    let output = if view.takes("output") { "-o out.svg" } else { "" };
    let got = ask(place, &format!("{} {words} {output} {operands}", view.name));
    let copied = if view.takes("level") { ask(place, "copy.tape").out } else { String::new() };
    // each at its place: what is written elsewhere differs
    let read = |file: &PathBuf| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let files = written.each_ref().map(read).join("\n");
    for file in written.into_iter().chain([copy]) {
        let _ = fs::remove_file(file);
    }
    if got.status == 0 { Ok(format!("{}{copied}{files}", got.out)) } else { Err(got.status) }
}

/// [`Place::ask`], or [`Place::analyze`].
type Ask = fn(&Place, &str) -> common::Output;

/// What a view answered, by its name, words and tape.
type Answers = HashMap<(&'static str, String, &'static str), Result<String, i32>>;

/// Whether `option` changes what `view` answers about one of the tapes when asked with `mode`, or is always refused as bad usage.
fn changes(place: &Place, answers: &mut Answers, view: &'static View, mode: &str, option: &str) -> bool {
    let mut refused = true;
    for (_, without, with) in WORDS.iter().filter(|(id, ..)| *id == option) {
        // of two options that cannot stand together the second one replaces the first
        let words = if option == "level" { format!("{mode} {with}") } else { format!("{mode} {without} {with}") };
        let plain = format!("{mode} {without}");
        for tape in TAPES {
            answers.entry((view.name, plain.clone(), tape)).or_insert_with(|| answer(place, view, &plain, tape));
        }
        let before = |tape: &'static str| answers.get(&(view.name, plain.clone(), tape))?.as_ref().ok();
        let mut asked: Vec<_> = TAPES.into_iter().filter_map(|tape| Some((tape, before(tape)?))).collect();
        // where most is answered most can change
        asked.sort_by_key(|(_, before)| std::cmp::Reverse(before.len()));
        for (tape, before) in asked {
            match answer(place, view, &words, tape) {
                Ok(after) if after != *before => return true,
                Err(2) => {}
                // a picture of nothing is not drawn
                Err(1) if mode.contains("--svg") => return true,
                _ => refused = false,
            }
        }
    }
    // what nothing was asked with was not refused either
    refused && !mode.is_empty()
}

/// The options that `view` takes.
fn taken(view: &View) -> Vec<String> {
    let own = view.own.args();
    let own = own.iter().map(|arg| arg.get_id().to_string());
    view.options.iter().copied().flatten().map(|id| (*id).to_owned()).chain(own).collect()
}

#[test]
fn every_option_of_every_view_has_an_effect() {
    // what they write is compared in tests/heavy/cut.rs and tests/analyze/import.rs; what a client is told in tests/analyze/mcp.rs, what a
    // browser gets in open.rs
    let views =
        || VIEWS.iter().filter(|view| !["cut", "merge", "import strace", "mcp", "open", "tui"].contains(&view.name));
    let plain = views().map(|view| (*view, String::new()));
    let forms = views().flat_map(|view| ["json", "csv"].map(|form| (*view, format!("--format {form}"))));
    let view = |name: &str| *VIEWS.iter().find(|view| view.name == name).expect("a view");
    let modes = MODES.iter().map(|(name, words)| (view(name), (*words).to_owned()));
    let asked: Vec<(&'static View, String)> = plain.chain(forms).chain(modes).collect();
    let (next, tried, idle) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let (place, mut answers) = (place(), Answers::new());
        while let Some((view, mode)) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
            let options = taken(view);
            let options = options.iter().map(String::as_str);
            let unseen = UNSEEN.iter().find(|(words, _)| words == mode).map_or(&[][..], |(_, options)| options);
            let skipped = [&ELSEWHERE[..], &CHOOSE, unseen].concat();
            for option in options.filter(|option| !skipped.contains(option)) {
                tried.fetch_add(1, Ordering::Relaxed);
                if !changes(&place, &mut answers, view, mode, option) {
                    idle.lock().unwrap().push(format!("'{} {mode}': {option}", view.name));
                }
            }
            // a process of its own says the same as the one that is asked everything
            let longest = TAPES.into_iter().max_by_key(|tape| answer(&place, view, mode, tape).map_or(0, |a| a.len()));
            let tape = longest.expect("a tape");
            let [alone, among] =
                [Place::analyze as Ask, Place::ask].map(|ask| answer_by(ask, &place, view, mode, tape));
            assert!(alone == among, "'{} {mode}' {tape}: {alone:?}\n{among:?}", view.name);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let idle = idle.into_inner().unwrap();
    assert!(idle.is_empty(), "options that change nothing:\n{}", idle.join("\n"));
    assert!(tried.into_inner() > 500);
}

#[test]
fn every_other_option_is_refused() {
    let place = place();
    let union = union(VIEWS[0]);
    let ids: Vec<&str> = union.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    let mut tried = 0;
    for view in VIEWS.iter().filter(|view| !["", "with-summary"].contains(&view.name)) {
        for id in ids.iter().filter(|id| !view.takes(id) && !COMMON.contains(id)) {
            // who asks for more words than there are gets all there are
            if THEIRS.contains(&(view.name, *id)) || *id == "verbose" {
                continue;
            }
            let words = match (*id, WORDS.iter().find(|(option, ..)| option == id)) {
                ("summary", _) => "-s",
                ("with_summary", _) => "-S",
                ("debug_dirs", _) => "--debug-dir .",
                (_, Some((_, _, words))) => words,
                (_, None) => panic!("how is {id} typed?"),
            };
            let got = place.ask(&format!("{} {words} sample.tape", view.name));
            let taker = VIEWS.iter().find(|view| view.takes(id)).expect("a view");
            // what it is in this report, or what other programs mean by it, comes first
            let other = [format!("is not for {}: ", view.title()), "is no option of analyze: ".to_owned()];
            let habit = other.iter().any(|text| got.err.contains(text))
                || (*id == "output" && got.err.contains("goes to standard output"));
            let names = habit || got.err.contains(&taker.title()) || got.err.contains("sums up calls");
            assert!(got.status == 2 && got.out.is_empty() && names, "'{}' {words}: {got:?}", view.name);
            assert_eq!(got.err.lines().count(), 1, "{}", got.err);
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

/// What docs/reference/analyze.md says of each view, made from the list.
fn page() -> String {
    let mut page = "| report | answers | options |\n|---|---|---|\n".to_owned();
    for view in VIEWS {
        let union = union(view);
        let name = if view.name.is_empty() { "(none)".to_owned() } else { format!("`{}`", view.name) };
        let own = union.get_arguments().filter(|arg| {
            let id = arg.get_id().as_str();
            // --cpu=CPUS is another word for -C
            view.takes(id)
                && !COMMON.contains(&id)
                && !CHOOSE.contains(&id)
                && (id != "cpu" || view.takes("summary_mode"))
        });
        let flag = |arg: &clap::Arg| match arg.get_short() {
            Some(short) => format!("`-{short}`"),
            None => format!("`--{}`", arg.get_long().unwrap_or_default()),
        };
        let flags: Vec<String> = own.map(flag).collect();
        page += &format!("| {name} | {} | {} |\n", view.about, flags.join(" "));
    }
    page
}

#[test]
fn the_manual_lists_the_views() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/analyze.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once("--test analyze options:: -->\n").expect("the mark");
    let (is, after) = rest.split_once("<!-- end of views -->").expect("the other mark");
    let page = page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, format!("{before}--test analyze options:: -->\n{page}<!-- end of views -->{after}")).unwrap();
    } else {
        assert_eq!(is, page, "docs/reference/analyze.md is of another list: UPDATE_GOLDEN=1");
    }
}
