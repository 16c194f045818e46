//! What is asked: every report in every form the other tests ask for it, every key of `--by`, every mode, and filters.

use std::path::Path;

use systape_analyzer::exercise::Metric;
use systape_analyzer::exercise::Of;
use systape_analyzer::exercise::VIEWS;

use crate::common::commands::{COMMANDS, OF_FILES};

/// One question.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The report in the registry of tables.
    pub report: &'static str,
    /// As typed; TAPE is the tape, SOUND one that lacks nothing, @50 the time when half of it is over.
    pub words: String,
    /// Of many that are alike: not asked about all that can be lost.
    pub seldom: bool,
    /// It follows from what every thread was in at the start.
    pub of_scheduler: bool,
}

impl Question {
    fn new(report: &'static str, words: impl Into<String>) -> Self {
        let words = words.into();
        let views = ["sched", "runqlat", "cpudist", "offcpu", "states", "path"];
        let of_scheduler = views.iter().any(|view| report.starts_with(view)) || words.contains("--cpu");
        Self { report, words, seldom: false, of_scheduler }
    }

    /// As typed about `tape`.
    pub(crate) fn about(&self, tape: &Path, sound: &Path) -> String {
        self.words.replace("TAPE", &tape.display().to_string()).replace("SOUND", &sound.display().to_string())
    }

    /// The same with times of a tape that is `ns` long: one that lacks its end is not asked about other times.
    pub(crate) fn of_length(self, ns: u64) -> Self {
        let time = |word: &str| match word.strip_prefix('@').and_then(|share| share.parse::<u64>().ok()) {
            Some(share) => format!("{:.9}", (ns * share / 100) as f64 / 1e9),
            None => word.to_owned(),
        };
        let word = |word: &str| word.split(',').map(time).collect::<Vec<_>>().join(",");
        let words = self.words.split(' ').map(word).collect::<Vec<_>>().join(" ");
        Self { words, ..self }
    }
}

/// Keys that some view adds up by; each view takes its own.
const KEYS: [&str; 19] = [
    "pid", "tid", "comm", "uid", "cgroup", "cpu", "syscall", "file", "errno", "state", "disk", "op", "cause", "dir",
    "ext", "peer", "port", "second", "minute",
];

/// Those of them that no event but a call has.
const OF_CALLS: [&str; 11] = ["syscall", "file", "errno", "state", "disk", "op", "cause", "dir", "ext", "peer", "port"];

/// Filters, with the option that takes each.
const FILTERS: [(&str, &str); 12] = [
    ("pids", "-p 100"),
    ("tids", "-t 101"),
    ("users", "-u 1000"),
    ("comm", "--comm=app"),
    ("cgroups", "-G /user.slice"),
    ("duration", "--duration 0.01"),
    ("events", "-e read,write,openat"),
    ("failure", "--failure"),
    ("cpus", "-C 1"),
    ("time", "--time @20,@60"),
    ("paths", "-P /etc/*"),
    ("paths", "-P passwd"),
];

/// Reports that are not asked: those about files and tables, tools whose rows another report makes by the same code, and those of the tapes of
/// two machines, which tests/analyze/across.rs damages.
const OTHERS: [&str; 12] = [
    "across",
    "across --slowest",
    "a file",
    "info",
    "list",
    "tables TABLE",
    "biosnoop",
    "biolatency",
    "tcplife",
    "filetop",
    "syscount",
    "offcputime",
];

/// Every question.
pub(crate) fn questions() -> Vec<Question> {
    let mut asked: Vec<Question> = Vec::new();
    let commands = || COMMANDS.iter().filter(|(report, _)| !OTHERS.contains(report) && !report.ends_with(" of looks"));
    for (report, commands) in commands() {
        // shares of the length of a tape are other times when its end is missing
        let words = commands.iter().map(|words| words.replace("100%", "@100").replace("90%", "@90"));
        let words = words.map(|words| in_time(&words));
        asked.extend(words.map(|words| Question::new(report, words)));
    }
    asked.push(Question::new("diff", "diff TAPE SOUND"));
    asked.push(Question::new("kills", "kills TAPE"));
    asked.extend(["@10", "@50", "@70"].map(|at| Question::new("states --at", format!("states --at {at} TAPE"))));
    asked.extend(["@20", "@60"].map(|at| Question::new("fds", format!("fds --at {at} TAPE"))));
    asked.push(Question::new("offcpu --wakers", "offcpu --wakers 200 TAPE"));
    for mode in ["thread", "process", "cgroup", "total"] {
        asked.push(Question::new("--summary", format!("-s --errno-summary --summary-mode {mode} TAPE")));
        asked.push(Question::new("--summary", format!("-s --cpu --summary-mode {mode} TAPE")));
    }
    for of in Of::ALL {
        for metric in [Metric::Count, Metric::Time, Metric::Bytes].into_iter().filter(|metric| of.has(*metric)) {
            let words = format!("callgraph --of {} --metric {} TAPE", of.name(), metric.name());
            asked.push(Question::new("callgraph", words));
        }
    }
    let reports: Vec<&'static str> = commands().map(|(report, _)| *report).collect();
    for view in VIEWS.iter().filter(|view| view.takes("by")) {
        for report in reports.iter().filter(|report| report.split(" --").next() == Some(view.name)) {
            let is_alone = report.contains("--at")
                || report.contains("--wakers")
                || (report.starts_with("net") && *report != "net --by")
                || (report.starts_with("requests") && !report.ends_with("--by"))
                || *report == "block";
            for key in KEYS.iter().filter(|_| !is_alone) {
                let tapes = if *report == "diff" { "SOUND TAPE" } else { "TAPE" };
                let words = report.strip_suffix(" --by").unwrap_or(report);
                asked.push(Question::new(report, in_time(&format!("{words} --by {key} {tapes}"))));
            }
        }
    }
    for key in KEYS {
        asked.push(Question::new("--summary", format!("-s --by {key} TAPE")));
    }
    asked.push(Question::new("--summary", "-s --cpu --by comm,syscall TAPE"));
    let others = KEYS.iter().map(|key| format!("--by {key}"));
    let filters = FILTERS
        .iter()
        .filter(|(option, _)| !["events", "paths"].contains(option))
        .map(|(_, words)| (*words).to_owned());
    for words in others.chain(filters) {
        let top = format!("top -e exceptions:*,sched:*,signal:*,block:*,sock:* {words} TAPE");
        let words = format!("-s -e exceptions:*,writeback:* {words} TAPE");
        asked.push(Question::new("--summary -e FAMILY:EVENT", words));
        // keys that only calls have are none of events
        if !OF_CALLS.iter().any(|key| top.contains(&format!("--by {key} "))) {
            asked.push(Question::new("top -e EVENTS", top));
        }
    }
    asked.extend(filtered(&reports));
    asked
}

/// The same in a time that does not depend on the end of the tape: the slices of `rate` do.
fn in_time(words: &str) -> String {
    words.strip_prefix("rate ").map_or_else(|| words.to_owned(), |words| format!("rate --time @0,@100 {words}"))
}

/// The plainest form of each report with each filter that it takes.
fn filtered(reports: &[&'static str]) -> Vec<Question> {
    let mut asked = Vec::new();
    // with another -e the summary of a table would be one of calls too
    let is_asked = |report: &str| {
        !["--summary -e FAMILY:EVENT", "top -e EVENTS", "top of several tapes", "--summary of several tapes"]
            .contains(&report)
            && !OTHERS.contains(&report)
            && !OF_FILES.contains(&report)
    };
    for report in reports.iter().filter(|report| is_asked(report)) {
        let (name, words) = match *report {
            "--summary" => ("summary", "-s"),
            "states --at" => ("states", "states --at @50"),
            "states --at --call-graph" => ("states", "states --at @50 --call-graph"),
            "offcpu --wakers" => ("offcpu", "offcpu --wakers 100"),
            "diff" => ("diff", "diff SOUND"),
            "net --by" => ("net", "net --by peer"),
            "requests --by" => ("requests", "requests --by peer"),
            "requests --client --by" => ("requests", "requests --client --by peer"),
            "requests --slowest" => ("requests", "requests --slowest 9"),
            "requests --slowest --where" => ("requests", "requests --slowest 1 --where"),
            other => (other.split(" --").next().unwrap_or_default(), other),
        };
        let view = VIEWS.iter().find(|view| view.name == name).unwrap_or_else(|| panic!("{name} is no view"));
        for (_, filter) in FILTERS.iter().filter(|(option, _)| view.takes(option)) {
            let words = format!("{words} {filter} TAPE");
            // a filter of its own
            let words = if filter.starts_with("--time") { words } else { in_time(&words) };
            asked.push(Question { seldom: true, ..Question::new(report, words) });
        }
    }
    asked
}
