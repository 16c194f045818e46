//! Sentences of the programs say what they mean to somebody who reads them for the first time: wordings that were found not to do so
//! stay out of the sources, of what the goldens hold, and of help. Each stands beside what is written instead; a new one is a line more.

use std::fs;
use std::path::Path;

use crate::common::Place;
use crate::sources;
use systape_analyzer::exercise::VIEWS;

/// Crates whose sentences somebody reads.
const CRATES: [&str; 12] =
    ["abi", "cli", "format", "events", "answers", "analyzer", "recorder", "symbols", "unwind", "bpf", "systape", "sql"];

/// (what is not written, what is).
const WORDINGS: &[(&str, &str)] = &[
    ("something is missing:", "Events are missing: ... are lower bounds"),
    ("at least, because", "Events are missing: numbers are lower bounds"),
    ("total is at least", "totals are lower bounds"),
    ("number is at least", "numbers are lower bounds"),
    ("count and time is at least", "counts and times are lower bounds"),
    ("what it touches is", "unknown states show as ?"),
    ("nothing says why", "cause unknown"),
    ("ran no BPF program", "the kernel skipped the probe"),
    ("no tracer by BPF", "known for I/O completions on this kernel"),
    ("as record was asked", "filtered out (record --duration and the like)"),
    ("counted only", "totals only"),
    ("the ledger counts", "the others as totals only"),
    ("counted in the ledger", "as totals only"),
    ("the end mark counts", "events were lost at an unknown time"),
    ("signals that end nobody", "signals that end no process"),
    ("nobody recorded runs", "who had it was not recorded"),
    ("as it asked", "on purpose"),
    ("until its time is up", "until its time-out"),
    ("not over at the end", "still waiting at the end"),
    ("nobody has waited for", "its parent has not collected it yet"),
    ("whose time is not on the tape", "which was not recorded"),
    ("what would say it", "unknown (not recorded)"),
    ("in a round", "in a circle"),
    ("that record was told", "the recorded tasks"),
    ("shorter part", "shorter stretch"),
    ("given up by", "held by"),
    ("who gave it up", "who held it"),
    ("that are lost would show", "lost events may hide findings"),
    ("on a CPU most:", "CPU was mostly used by"),
    ("no signal was seen", "the signal itself was not recorded"),
    ("ended by one", "died of one"),
    ("that belongs here", "No signal ended or stopped a process (--all lists every signal)"),
    ("on no task's behalf", "the kernel by itself"),
    ("seen to be taken", "delivery not recorded"),
    ("which is not all", "events are missing"),
    ("first came on one", "got one up to ... ago"),
    ("what they became", "the I/Os they turned into"),
    ("events that tell of", "events of"),
    ("tells of it", "context"),
    ("what is to stay", "say what to keep"),
    ("is in no figure", "are not counted"),
    ("only by name", "only if named"),
    ("touches the answer", "could change the answer"),
    ("cannot be narrowed", "takes no -e"),
    ("must all agree", "must match all"),
    ("look this often", "sample HZ times a second"),
    ("is not taken; waiting", "the disk or reader does not accept"),
    ("what the tape says of itself", "what was recorded, where and how"),
    ("nobody knows", "unknown"),
    ("is not believed", "is ignored"),
    ("are not believed", "are ignored"),
    ("is heard of", "is reported"),
    ("samples of real time", "clock samples"),
];

/// (what the manual does not write, what it does): wordings of its first pages, in a dialect of their own.
const OF_PAGES: &[(&str, &str)] = &[
    ("nobody in particular", "no root needed"),
    ("may be too low", "if events were lost, numbers they could change are printed as >=N"),
    ("elsewhere, names and all", "works offline on another machine"),
    ("each number touched", "affected numbers are marked"),
    ("loses none: it stops", "no loss (ptrace stops the program)"),
    ("what passes is stored", "calls above the threshold are stored in full, all others only as totals"),
    ("a lost tail", "a truncated file"),
    ("20 ns for each byte", "20 ns per byte"),
    ("nobody knows what", "an unknown descriptor"),
    ("that is not known and could lead there", "an unknown directory"),
    ("it is not known when, both", "if the clock was changed, both times are shown"),
    ("counts for the old value", "after a rename, earlier time stays with the old name"),
    ("upwards from its beginning", "a FlameScope heat map (one column per second)"),
    ("is given up, what is in memory", "the tape is abandoned, the memory ring is kept"),
    ("what engines answer differently", "constructs on which SQL engines disagree are rejected"),
    ("of two, chosen by a branch", "the hot path uses one map"),
    ("ids are the machine's everywhere", "pids are those of the initial namespace"),
    ("nothing that is seen in between", "state seen between the loss and the re-read is discarded"),
    ("of calls only those", "only calls selected by -e"),
    ("lost to nobody", "calls left out by request do not count as lost"),
    ("buckets an octave", "a log-linear histogram, 16 buckets per power of two"),
    ("should have come and did not", "expected but missing, cause unknown"),
    ("is told of nowhere", "is not reported"),
    ("the room of the buffers", "buffer size"),
    ("a recording of nothing", "an idle recording"),
    ("who is nobody", "a process without rights"),
    ("by turns", "interleaved"),
    ("blind", "cannot see"),
];

/// The wording that a text of the manual has; None: it has none.
pub(crate) fn in_a_page(text: &str) -> Option<&'static (&'static str, &'static str)> {
    let lower = text.to_lowercase();
    found(text).or_else(|| OF_PAGES.iter().find(|(old, _)| lower.contains(old)))
}

/// The wording that `text` has; None: it has none.
fn found(text: &str) -> Option<&'static (&'static str, &'static str)> {
    let text = text.to_lowercase();
    WORDINGS.iter().find(|(old, _)| text.contains(&old.to_lowercase()))
}

#[test]
fn no_source_writes_them() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for (file, text) in CRATES.iter().flat_map(|name| sources::source_files(name)) {
        // sentences of tests are of the tests
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            let Some((_, literal)) = code.split_once('"').filter(|_| !code.starts_with("//")) else { continue };
            looked += 1;
            if let Some((old, new)) = found(literal) {
                wrong.push(format!("{}:{}: {old:?}: write {new:?}", file.display(), number + 1));
            }
        }
    }
    assert!(looked > 5000 && wrong.is_empty(), "{looked} literals\n{}", wrong.join("\n"));
}

#[test]
fn no_answer_has_them() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for dir in ["analyzer", "terminal", "tapes"] {
        for path in fs::read_dir(data.join(dir)).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "txt") {
                looked += 1;
                let text = fs::read_to_string(&path).unwrap();
                wrong.extend(
                    text.lines().filter_map(|line| Some(format!("{}: {line}: {:?}", path.display(), found(line)?))),
                );
            }
        }
    }
    let place = Place::new();
    for view in VIEWS {
        looked += 1;
        let help = place.ask(&format!("{} --help", view.name)).out;
        wrong.extend(help.lines().filter_map(|line| Some(format!("{} --help: {line}: {:?}", view.name, found(line)?))));
    }
    assert!(looked > 200 && wrong.is_empty(), "{looked} texts\n{}", wrong.join("\n"));
}
