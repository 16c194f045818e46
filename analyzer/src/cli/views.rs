//! The list of views. Each is declared in its report's file. The command line, its help, man pages, completions and
//! documents use it.
//!
//! A view that is not in the list of an option refuses it: no option is taken without an effect (tests/analyze/options.rs tries all of them).

use std::ffi::OsStr;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::asked::args::Args;
use crate::asked::config::view::{Rows, View};
use crate::reports::{self, calls};

/// Every view, the most frequently used first.
pub static VIEWS: &[&View] = &[
    &calls::LISTING,
    &calls::SUMMARY,
    &calls::WITH_SUMMARY,
    &reports::kills::VIEW,
    &reports::exec::VIEW,
    &reports::block::VIEW,
    &reports::top::VIEW,
    // behind block: of options that several have the first form is the one of words before the report
    &reports::why::VIEW,
    &reports::page::VIEW,
    &reports::files::VIEW,
    &reports::tools::opensnoop::VIEW,
    &reports::tools::statsnoop::VIEW,
    &reports::tools::execsnoop::VIEW,
    &reports::tools::biosnoop::VIEW,
    &reports::tools::biolatency::VIEW,
    &reports::tools::tcplife::VIEW,
    &reports::tools::syscount::VIEW,
    &reports::tools::filetop::VIEW,
    &reports::tools::killsnoop::VIEW,
    &reports::tools::gethostlatency::VIEW,
    &reports::tools::offcputime::VIEW,
    &reports::rate::VIEW,
    &reports::net::VIEW,
    &reports::locks::VIEW,
    &reports::probes::VIEW,
    &reports::path::VIEW,
    &reports::requests::VIEW,
    &reports::across::VIEW,
    &reports::sched::TIMEHIST,
    &reports::sched::LATENCY,
    &reports::runqlat::VIEW,
    &reports::runqlat::CPUDIST,
    &reports::offcpu::VIEW,
    &reports::states::VIEW,
    &reports::stays::VIEW,
    &reports::fds::VIEW,
    &reports::env::VIEW,
    &reports::callgraph::VIEW,
    &reports::samples::VIEW,
    &reports::diff::VIEW,
    &reports::export::perfetto::VIEW,
    &reports::export::firefox::VIEW,
    &reports::export::strace::VIEW,
    &reports::export::pprof::VIEW,
    &reports::import::VIEW,
    &reports::export::arrow::VIEW,
    &reports::info::VIEW,
    &reports::info::list::VIEW,
    &reports::tables::VIEW,
    &reports::schema::VIEW,
    &reports::expect::VIEW,
    &reports::check::VIEW,
    &reports::repair::VIEW,
    &reports::repair::REDACT_VIEW,
    &reports::cut::VIEW,
    &reports::merge::VIEW,
    &reports::mcp::VIEW,
    &reports::open::VIEW,
    &reports::tui::VIEW,
];

/// Reports by the question that brings somebody to them, each with what it answers in a line: the order of help.
pub(crate) const QUESTIONS: &[(&str, &[(&str, &str)])] = &[
    (
        "Why was it slow?",
        &[
            ("why", "what was slow and what broke, the worst first: ask this first"),
            ("path", "where the time of a thread went, across whom it waited for"),
            ("requests", "how long servers took to answer, and the slowest answers"),
            ("across", "what one machine waited for from another, of a tape of each"),
            ("rate", "how many calls began when, as a line over time"),
            ("report", "all of it as a page for a browser, in one file"),
            ("tui", "the tape in this terminal: processes, calls, lanes of threads"),
            ("open", "the tape in a browser: every report, a time line, all calls"),
        ],
    ),
    (
        "Who did it?",
        &[
            ("kills", "who sent which signal to whom, and what came of it"),
            ("exec", "programs that were started, and their ends; --tree: processes"),
            ("locks", "locks that threads waited for, who holds them, who woke them"),
            ("fds", "which files and sockets a process held open (lsof)"),
            ("env", "environment variables with which programs were started"),
        ],
    ),
    (
        "What is it waiting for?",
        &[
            ("offcpu", "calls and files that threads slept in"),
            ("states", "what every thread was doing; --at TIME: at one instant"),
            ("stays", "what threads were in, by looks at them (record --sample)"),
            ("sched latency", "who waited how long for a CPU (perf sched latency)"),
            ("sched timehist", "each run of a thread and the wait before it (as perf has it)"),
            ("runqlat", "waits for a CPU as a histogram"),
            ("cpudist", "stays on a CPU as a histogram"),
        ],
    ),
    (
        "Which has most of it?",
        &[
            ("top", "which process, file, peer, error ... has most calls or time"),
            ("summary", "calls, errors and times of each thread and syscall (-s)"),
            ("files", "opens, reads, writes, bytes and errors of each file"),
            ("net", "connections: both ends, who, how long, bytes"),
            ("block", "disk I/Os: one by one, --hist, or --top by who caused them"),
            ("callgraph", "stacks added up: who called what; --svg: a flame graph"),
            ("probes", "how long probed functions took"),
        ],
    ),
    (
        "What happened, one by one?",
        &[
            ("trace", "every call, in order of start (also: an option, or a pipe)"),
            ("with-summary", "every call, then the summary (-S)"),
            ("samples", "CPU samples, each with its stack (perf script)"),
        ],
    ),
    (
        "What changed, and is it as it should be?",
        &[
            ("diff", "two tapes, or two stretches of one: CPU, waits, I/O, calls"),
            ("assert", "expectations of a tape, for CI"),
        ],
    ),
    (
        "What is on the tape?",
        &[
            ("info", "what was recorded, and what is missing"),
            ("list", "a line for each tape of a directory"),
            ("check", "whether every byte is sound"),
            ("tables", "tables of JSON and CSV, their columns, types and units"),
            ("schema", "a report's JSON as JSON Schema"),
        ],
    ),
    (
        "For other programs, and other tapes",
        &[
            ("sql", "any question in SQL (docs/guides/sql.md)"),
            ("mcp", "the questions of a language model (Model Context Protocol)"),
            ("export perfetto", "a time line for ui.perfetto.dev"),
            ("export firefox", "a profile for profiler.firefox.com"),
            ("export pprof", "stacks for go tool pprof"),
            ("export strace", "strace's syntax"),
            ("export arrow", "a table for polars, pandas, R and the like"),
            ("export parquet", "tables for DuckDB, Spark, pandas and the like"),
            ("export json", "the same as JSON lines"),
            ("export csv", "the same as CSV"),
            ("import strace", "a tape of a log that strace wrote"),
            ("cut", "copy a stretch of time, processes or families to a new tape"),
            ("merge", "put cuts of one recording together again"),
            ("redact", "copy a tape without paths, strings and names"),
            ("repair", "copy what is whole of a damaged tape"),
        ],
    ),
    (
        "In the columns of bcc's tools",
        &[
            ("opensnoop", "opens of files"),
            ("statsnoop", "calls of stat and its like"),
            ("execsnoop", "programs that were started"),
            ("killsnoop", "calls of kill, tkill and tgkill"),
            ("biosnoop", "disk I/Os"),
            ("biolatency", "disk I/Os as a histogram"),
            ("tcplife", "TCP connections that ended"),
            ("filetop", "reads and writes by thread and file"),
            ("syscount", "number of calls"),
            ("gethostlatency", "names that were looked up"),
            ("offcputime", "stacks with which threads left the CPU"),
        ],
    ),
];

/// Every kind of row of every view.
pub fn tables() -> impl Iterator<Item = &'static Rows> {
    VIEWS.iter().flat_map(|view| view.tables)
}

/// The view selected by the first of `words`, and the number of its words; None: they name no view. `sched` alone is
/// its first view.
pub(crate) fn named<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<(&'static View, usize)> {
    let first = words.clone().next()?;
    let two = words.take(2).collect::<Vec<_>>().join(" ");
    let exact = |name: &str| VIEWS.iter().find(|view| !view.name.is_empty() && view.name == name);
    if let Some(view) = exact(&two) {
        return Some((view, view.name.split(' ').count()));
    }
    let begins = |view: &&&View| view.name.split_once(' ').is_some_and(|(word, _)| word == first);
    exact(first).or_else(|| VIEWS.iter().find(begins)).map(|view| (*view, 1))
}

/// The view selected by `args`, and the number of its words: by the first ones, or by an option among `matches`.
pub(crate) fn chosen(args: &Args, matches: &ArgMatches) -> (&'static View, usize) {
    let words = args.words.iter().map_while(|word| word.to_str());
    let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    // options of -s go with -S too, which stands behind it
    let switched = || VIEWS.iter().rev().find(|view| view.switches.iter().any(&given));
    named(words).unwrap_or_else(|| (switched().copied().unwrap_or(VIEWS[0]), 0))
}

/// The first words of all views but the listing, each once.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let first = |at: &usize| VIEWS[*at].name.split(' ').next().unwrap_or_default();
    let new = move |at: &usize| !first(at).is_empty() && (0..*at).all(|before| first(&before) != first(at));
    (0..VIEWS.len()).filter(new).map(move |at| first(&at))
}

/// Whether `word` is the first of a report's name.
pub(crate) fn begins(word: impl AsRef<OsStr>) -> bool {
    names().any(|name| word.as_ref() == name)
}

/// The report whose name `path` resembles, for a message: a word without `/` or `.`.
pub(crate) fn nearest(path: &Path) -> Option<&'static str> {
    let word = path.to_str().filter(|word| !word.contains(['/', '.']))?;
    systape_abi::nearest(word, names()).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::beside;

    #[test]
    fn each_report_answers_one_question() {
        let mut asked: Vec<&str> = QUESTIONS.iter().flat_map(|(_, reports)| *reports).map(|(name, _)| *name).collect();
        let named = VIEWS.iter().map(|view| view.name).filter(|name| !name.is_empty());
        // `trace` is the listing
        let mut there: Vec<&str> = named.chain(beside::WORDS.iter().map(|(name, _)| *name)).chain(["trace"]).collect();
        assert_eq!(asked[0], "why");
        asked.sort_unstable();
        there.sort_unstable();
        assert_eq!(asked, there);
    }

    #[test]
    fn a_word_resembles_a_report() {
        assert_eq!(nearest(Path::new("chek")), Some("check"));
        assert_eq!(nearest(Path::new("my.tape")), None);
    }
}
