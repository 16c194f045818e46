//! The list of views: what each answers, which options and filters it takes. The command line, its help, man pages and completions go by it.
//!
//! A view that is not in the list of an option refuses it: no option is taken without an effect (tests/options.rs tries all of them).

use std::path::Path;

use crate::args::Args;
use crate::report::Report;

/// What stands behind the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// A tape; `trace.tape` without one.
    Tape,
    /// Two tapes, the one of before first.
    TwoTapes,
    /// A tape, and the file to write.
    TapeAndCopy,
}

/// One view: a question that can be asked.
#[derive(Debug)]
pub struct View {
    /// The words that choose it; "" for the listing.
    pub name: &'static str,
    /// What it answers, in one line.
    pub about: &'static str,
    /// The report that answers.
    pub report: Report,
    /// What stands behind the options.
    pub operands: Operands,
    /// The options it takes beside those that all take: names of the fields of [`crate::args::Args`].
    pub options: &'static [&'static [&'static str]],
    /// Two command lines, and what they print.
    pub examples: [(&'static str, &'static str); 2],
}

/// Options of every view.
pub const COMMON: &[&str] = &["words", "input", "format", "fail_on_loss", "no_sandbox", "generate", "help"];

/// Filters on whose events count.
const TASKS: &[&str] = &["pids", "tids", "users", "comm", "cgroups"];
/// Filters on calls.
const CALLS: &[&str] = &["duration", "events", "failure"];
/// The CPUs whose events count.
const CPUS: &[&str] = &["cpus", "cpu"];
/// How lines of calls look.
const LOOK: &[&str] = &["absolute", "no_comm", "show_zeros", "show_prefix"];
/// Stacks below lines.
const STACKS: &[&str] = &["call_graph", "max_stack", "min_stack", "debug_dirs"];
/// What a summary is asked.
const SUMS: &[&str] = &["errno_summary", "summary_mode"];

/// Every view, those that are asked most first.
pub static VIEWS: [View; 18] = [
    View {
        name: "",
        about: "Lists calls in order of their start, and other events that -e names",
        report: Report::Calls,
        operands: Operands::Tape,
        options: &[TASKS, CALLS, CPUS, &["time", "max_events", "sort", "clone_child"], LOOK, STACKS],
        examples: [
            ("analyze --duration 10 -e '!futex' t.tape", "calls longer than 10 ms, futex left out"),
            ("analyze -e file,network --failure", "failed calls on files and sockets"),
        ],
    },
    View {
        name: "summary",
        about: "Adds up calls: number, errors and times by thread and syscall (also: analyze -s)",
        report: Report::Calls,
        operands: Operands::Tape,
        options: &[TASKS, CALLS, CPUS, &["time", "summary", "by"], SUMS],
        examples: [
            ("analyze -s --cpu", "calls, errors and times per thread and syscall, and the time on a CPU"),
            ("analyze --errno-summary --summary-mode total", "how often each error was returned"),
        ],
    },
    View {
        name: "with-summary",
        about: "The listing, then the summary (analyze -S)",
        report: Report::Calls,
        operands: Operands::Tape,
        options: &[
            TASKS,
            CALLS,
            CPUS,
            &["time", "max_events", "sort", "clone_child", "summary", "with_summary"],
            LOOK,
            STACKS,
            SUMS,
        ],
        examples: [
            ("analyze -S -p 2214", "the calls of a process, then their sums"),
            ("analyze -S --time 1.5,2", "half a second"),
        ],
    },
    View {
        name: "kills",
        about: "Who sent which signal to whom, and what came of it",
        report: Report::Kills,
        operands: Operands::Tape,
        options: &[TASKS, &["time", "max_events", "absolute", "signal", "all", "verbose", "debug_dirs"]],
        examples: [
            ("analyze kills -v", "both command lines, chains of parents, siginfo"),
            ("analyze kills --signal KILL,TERM --comm=nginx", "only these signals to or from nginx"),
        ],
    },
    View {
        name: "exec",
        about: "Programs that were started, with arguments, failures and ends; or the tree of processes",
        report: Report::Exec,
        operands: Operands::Tape,
        options: &[TASKS, &["time", "max_events", "absolute", "failure", "tree", "all"]],
        examples: [
            ("analyze exec --failure", "programs that could not be started"),
            ("analyze exec --tree --comm=watch", "who started what, how it ended, below watch"),
        ],
    },
    View {
        name: "block",
        about: "Block I/Os: one a line, histograms of latencies, or sums by who caused them",
        report: Report::Block,
        operands: Operands::Tape,
        options: &[TASKS, &["time", "duration", "failure", "max_events", "absolute", "hist", "top", "by"]],
        examples: [
            ("analyze block --top --by cgroup", "who caused the I/O, by cgroup"),
            ("analyze block --hist", "histograms of latencies by disk and operation"),
        ],
    },
    View {
        name: "net",
        about: "Connections: both ends, who, how long; or each change of a socket's state",
        report: Report::Net,
        operands: Operands::Tape,
        options: &[TASKS, &["time", "duration", "failure", "max_events", "absolute", "changes"]],
        examples: [
            ("analyze net --failure", "connections that could not be made"),
            ("analyze net --events", "each change of a socket's state"),
        ],
    },
    View {
        name: "sched timehist",
        about: "Each run of a thread: how long it waited before, how long it ran (perf sched timehist)",
        report: Report::Sched,
        operands: Operands::Tape,
        options: &[TASKS, CPUS, &["time", "max_events", "absolute"]],
        examples: [
            ("analyze sched timehist -p 2214", "the runs of one process"),
            ("analyze sched timehist -C 0 --max-events 100", "the first hundred on CPU 0"),
        ],
    },
    View {
        name: "sched latency",
        about: "Who waited for a CPU how long (perf sched latency)",
        report: Report::Sched,
        operands: Operands::Tape,
        options: &[TASKS, CPUS, &["time", "max_events", "absolute", "by"]],
        examples: [
            ("analyze sched latency", "by name of the thread, longest wait first"),
            ("analyze sched latency --by process", "by process"),
        ],
    },
    View {
        name: "runqlat",
        about: "Histograms of how long runnable threads waited for a CPU",
        report: Report::Runqlat,
        operands: Operands::Tape,
        options: &[TASKS, CPUS, &["time", "by"]],
        examples: [("analyze runqlat", "one histogram"), ("analyze runqlat --by cpu", "one a CPU")],
    },
    View {
        name: "offcpu",
        about: "Time off CPU by task, state, call and file; or who woke whom",
        report: Report::Offcpu,
        operands: Operands::Tape,
        options: &[TASKS, CPUS, &["time", "duration", "events", "max_events", "by", "wakers"]],
        examples: [
            ("analyze offcpu -p 2214", "what a process waited for"),
            ("analyze offcpu --wakers 2214", "who woke its threads"),
        ],
    },
    View {
        name: "states",
        about: "What every thread was doing: time by state, call and file; or the picture of one instant",
        report: Report::States,
        operands: Operands::Tape,
        options: &[TASKS, CPUS, &["time", "events", "max_events", "by", "at"], STACKS],
        examples: [
            ("analyze states --by state,syscall", "what all threads were doing"),
            ("analyze states --at 1.5", "at one instant, longest stuck first"),
        ],
    },
    View {
        name: "callgraph",
        about: "Stacks added up: who called what, by count, time or bytes; also as a flame graph",
        report: Report::Callgraph,
        operands: Operands::Tape,
        options: &[
            TASKS,
            CALLS,
            CPUS,
            &["time", "max_events", "debug_dirs"],
            &["of", "metric", "callee", "min_percent", "max_depth", "folded", "svg", "diff"],
        ],
        examples: [
            ("analyze callgraph --of offcpu", "where threads left the CPU, by time"),
            ("analyze callgraph --svg flame.svg", "a flame graph"),
        ],
    },
    View {
        name: "diff",
        about: "Two summaries side by side, by syscall",
        report: Report::Diff,
        operands: Operands::TwoTapes,
        options: &[TASKS, CALLS, CPUS, &["time", "max_events"]],
        examples: [
            ("analyze diff before.tape after.tape", "what changed, by time"),
            ("analyze diff before.tape after.tape -e file", "calls on files only"),
        ],
    },
    View {
        name: "info",
        about: "What is in the tape, and what is missing",
        report: Report::Info,
        operands: Operands::Tape,
        options: &[],
        examples: [("analyze info t.tape", "in words"), ("analyze info --format json t.tape", "one object")],
    },
    View {
        name: "check",
        about: "Whether every byte of the tape is sound",
        report: Report::Check,
        operands: Operands::Tape,
        options: &[],
        examples: [
            ("analyze check t.tape", "good, usable or not a tape"),
            ("analyze check --format json", "one object"),
        ],
    },
    View {
        name: "repair",
        about: "Copies what is whole of a damaged tape",
        report: Report::Repair,
        operands: Operands::TapeAndCopy,
        options: &[],
        examples: [
            ("analyze repair torn.tape clean.tape", "a tape that reads without complaint"),
            ("analyze repair --format json torn.tape clean.tape", "what was missing, as an object"),
        ],
    },
    View {
        name: "redact",
        about: "Copies a tape without paths, strings and names",
        report: Report::Redact,
        operands: Operands::TapeAndCopy,
        options: &[&["level"]],
        examples: [
            ("analyze redact in.tape out.tape", "without all that tells of people and machines"),
            ("analyze redact --level paths in.tape out.tape", "without paths"),
        ],
    },
];

impl View {
    /// Whether it takes the option with that name.
    pub fn takes(&self, option: &str) -> bool {
        COMMON.contains(&option) || self.options.iter().any(|list| list.contains(&option))
    }

    /// How messages call it: `analyze kills`, `the listing`.
    pub fn title(&self) -> String {
        if self.name.is_empty() { "the listing".to_owned() } else { format!("'analyze {}'", self.name) }
    }
}

/// The view that the first of `words` choose, and how many of them; None: they name no view. `sched` alone is its first view.
pub fn named<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<(&'static View, usize)> {
    let first = words.clone().next()?;
    let two = words.take(2).collect::<Vec<_>>().join(" ");
    let exact = |name: &str| VIEWS.iter().find(|view| !view.name.is_empty() && view.name == name);
    if let Some(view) = exact(&two) {
        return Some((view, view.name.split(' ').count()));
    }
    let begins = |view: &&View| view.name.split_once(' ').is_some_and(|(word, _)| word == first);
    exact(first).or_else(|| VIEWS.iter().find(begins)).map(|view| (view, 1))
}

/// The view that `args` choose: by their first word, or by what a summary is asked for with.
pub fn chosen(args: &Args) -> &'static View {
    let words = args.words.iter().map_while(|word| word.to_str());
    if let Some((view, _)) = named(words) {
        return view;
    }
    let of = |name: &str| VIEWS.iter().find(|view| view.name == name);
    let name = match (args.with_summary, args.summary || args.errno_summary) {
        (true, _) => "with-summary",
        (false, true) => "summary",
        (false, false) => "",
    };
    of(name).unwrap_or(&VIEWS[0])
}

/// The first words of all views but the listing, each once.
pub fn names() -> impl Iterator<Item = &'static str> {
    let first = |at: &usize| VIEWS[*at].name.split(' ').next().unwrap_or_default();
    let new = move |at: &usize| !first(at).is_empty() && (0..*at).all(|before| first(&before) != first(at));
    (0..VIEWS.len()).filter(new).map(move |at| first(&at))
}

/// The report whose name `path` resembles, for a message: a word without `/` or `.` at most two edits away.
pub fn nearest(path: &Path) -> Option<&'static str> {
    let word = path.to_str().filter(|word| word.len() < 20 && !word.contains(['/', '.']))?;
    let near = names().map(|name| (systape_abi::distance(word.as_bytes(), name.as_bytes()), name)).min()?;
    (near.0 <= 2).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_resembles_a_report() {
        assert_eq!(nearest(Path::new("chek")), Some("check"));
        assert_eq!(nearest(Path::new("my.tape")), None);
    }
}
