//! The command line as typed. [`crate::config`] turns it into settled values.
//!
//! Letters and words are perf trace's where it has them; strace's long names are accepted where they are free.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::render::form::Format;
use crate::stacks::of::Of;
use crate::stacks::weight::Metric;
use crate::summary::mode::SummaryMode;

/// What was typed.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "analyze",
    version,
    about = "Answers questions from a tape recorded by `record`, offline and without root",
    disable_help_flag = true,
    max_term_width = 100
)]
pub struct Args {
    /// Report name first (info, check, ...; none: the listing), then the tape [default: trace.tape]
    #[arg(value_name = "REPORT | FILE")]
    pub words: Vec<PathBuf>,

    /// Tape to read
    #[arg(short = 'i', long = "input", value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Only calls longer than this; a bare number is ms (10, 2.5, 300us, 1s)
    #[arg(long, value_name = "TIME", help_heading = "Filters")]
    pub duration: Option<String>,

    /// Only these calls: names, globs, groups (file, network, ...), `!` leaves out; several -e add up.
    /// Other events as family:event, such as sched:*, are listed between them
    #[arg(
        short = 'e',
        long = "event",
        alias = "expr",
        alias = "trace",
        value_name = "EXPR",
        allow_hyphen_values = true,
        help_heading = "Filters"
    )]
    pub events: Vec<String>,

    /// Only calls that failed
    #[arg(long, alias = "failed-only", alias = "failed", help_heading = "Filters")]
    pub failure: bool,

    /// Only these processes
    #[arg(short = 'p', long = "pid", value_name = "PID,...", value_delimiter = ',', help_heading = "Filters")]
    pub pids: Vec<u32>,

    /// Only these threads
    #[arg(short = 't', long = "tid", value_name = "TID,...", value_delimiter = ',', help_heading = "Filters")]
    pub tids: Vec<u32>,

    /// Only these users, by number or name
    #[arg(short = 'u', long = "uid", value_name = "USER,...", value_delimiter = ',', help_heading = "Filters")]
    pub users: Vec<String>,

    /// With =NAME,...: only threads of that name (globs allowed); without a value: show names (the default)
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Filters")]
    pub comm: Vec<String>,

    /// Only calls that ended (threads that ran) on these CPUs, e.g. 0-3,7
    #[arg(short = 'C', long = "cpus", value_name = "CPUS", help_heading = "Filters")]
    pub cpus: Option<String>,

    /// Only threads in this cgroup or below it, by path; globs allowed
    #[arg(short = 'G', long = "cgroup", value_name = "PATH", help_heading = "Filters")]
    pub cgroups: Vec<String>,

    /// Only calls that began in FROM,TO: s since the tape's start, 300ms, RFC 3339, or N%; either may be left out
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true, help_heading = "Filters")]
    pub time: Option<String>,

    /// Stop after N lines
    #[arg(long, value_name = "N", help_heading = "Filters")]
    pub max_events: Option<u64>,

    /// Only the summary: calls, errors and times per thread and syscall
    #[arg(short = 's', long, alias = "summary-only", help_heading = "Summary")]
    pub summary: bool,

    /// The listing, then the summary
    #[arg(short = 'S', long, help_heading = "Summary")]
    pub with_summary: bool,

    /// Add how often each errno was returned; implies -s
    #[arg(long, help_heading = "Summary")]
    pub errno_summary: bool,

    /// What the summary groups by
    #[arg(long, value_enum, value_name = "MODE", default_value_t, help_heading = "Summary")]
    pub summary_mode: SummaryMode,

    /// Add the time calls spent on and off a CPU; with =CPUS the same as -C
    #[arg(long, value_name = "CPUS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Summary")]
    pub cpu: Option<String>,

    /// Order of the listing: by start of each call, or by its end as perf trace does
    #[arg(long, value_enum, value_name = "ORDER", default_value_t, help_heading = "Listing")]
    pub sort: Sort,

    /// Print CLOCK_MONOTONIC times, not ms since the tape's start
    #[arg(short = 'T', long = "absolute-time", help_heading = "Listing")]
    pub absolute: bool,

    /// Leave out thread names
    #[arg(long, help_heading = "Listing")]
    pub no_comm: bool,

    /// Print arguments that are 0 too
    #[arg(long, help_heading = "Listing")]
    pub show_zeros: bool,

    /// Print constants with their prefix: O_RDONLY, not RDONLY
    #[arg(long, help_heading = "Listing")]
    pub show_prefix: bool,

    /// Also list the child's side of fork and clone, which no one called
    #[arg(long, help_heading = "Listing")]
    pub clone_child: bool,

    /// Print the stack below each call and event
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = call_graph, help_heading = "Stacks")]
    pub call_graph: Option<String>,

    /// Print at most N functions of a stack; implies --call-graph
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    pub max_stack: Option<usize>,

    /// Only calls and events whose stacks have at least N functions; implies --call-graph
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    pub min_stack: Option<usize>,

    /// callgraph: whose stacks: cpu syscall offcpu block signal wakeup, or a table that has stacks [default: the first of these the tape has]
    #[arg(long, value_parser = Of::parse, value_name = "EVENTS", help_heading = "Stacks")]
    pub of: Option<Of>,

    /// callgraph: what percentages are of
    #[arg(long, value_enum, value_name = "METRIC", help_heading = "Stacks")]
    pub metric: Option<Metric>,

    /// callgraph: innermost functions first, their callers below them
    #[arg(long, help_heading = "Stacks")]
    pub callee: bool,

    /// callgraph: leave out what is below this share of the total [default: 0.5 in text, else 0]
    #[arg(long, value_name = "PERCENT", help_heading = "Stacks")]
    pub min_percent: Option<f64>,

    /// callgraph: cut stacks after N functions
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    pub max_depth: Option<usize>,

    /// callgraph: one stack a line, functions separated by semicolons, for flame graph tools
    #[arg(long, help_heading = "Stacks")]
    pub folded: bool,

    /// callgraph: write a flame graph to FILE
    #[arg(long, value_name = "FILE", help_heading = "Stacks")]
    pub svg: Option<PathBuf>,

    /// callgraph: compare with this tape (before), with --svg or --folded
    #[arg(long, value_name = "TAPE", help_heading = "Stacks")]
    pub diff: Option<PathBuf>,

    /// Look for files with better symbols in DIR, by build id; may be repeated
    #[arg(long = "debug-dir", value_name = "DIR", help_heading = "Stacks")]
    pub debug_dirs: Vec<PathBuf>,

    /// block: histograms of latencies
    #[arg(long, help_heading = "Reports")]
    pub hist: bool,

    /// block: sums by the task an I/O is blamed on, or by --by
    #[arg(long, help_heading = "Reports")]
    pub top: bool,

    /// net: each change of a socket's state
    #[arg(long = "events", help_heading = "Reports")]
    pub changes: bool,

    /// kills: only these signals, by name or number: TERM,9,SIGUSR1
    #[arg(long, value_name = "SIGNAL,...", value_delimiter = ',', help_heading = "Kills and exec")]
    pub signal: Vec<String>,

    /// kills: every signal, not only those that end or stop a process; exec --tree: kernel threads too
    #[arg(long, help_heading = "Kills and exec")]
    pub all: bool,

    /// kills: both command lines, chains of parents, siginfo, the sender's stack
    #[arg(short = 'v', long, help_heading = "Kills and exec")]
    pub verbose: bool,

    /// exec: the tree of processes with their lifetimes
    #[arg(long, help_heading = "Kills and exec")]
    pub tree: bool,

    /// What a report adds up by, e.g. comm,state,syscall; docs/analyze.md has the keys of each report
    #[arg(long, value_name = "KEY,...", value_delimiter = ',', help_heading = "Reports")]
    pub by: Vec<String>,

    /// states: what every thread was doing at this time (as an end of --time)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Scheduler reports")]
    pub at: Option<String>,

    /// offcpu: who woke the threads of this process
    #[arg(long, value_name = "PID", help_heading = "Scheduler reports")]
    pub wakers: Option<u32>,

    /// redact: what is taken out: paths; strings (paths, captured strings, command lines); all (also names of threads and users, addresses, the host) [default: all]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Reports")]
    pub level: Option<RedactLevel>,

    /// Form of the output
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub format: Format,

    /// Exit with 3 when what was lost touches the answer
    #[arg(long)]
    pub fail_on_loss: bool,

    /// Do not give up rights before the tape is read
    #[arg(long)]
    pub no_sandbox: bool,

    /// Print a man page or shell completions: man, bash, zsh, fish
    #[arg(long, value_enum, value_name = "WHAT", hide = true)]
    pub generate: Option<Generate>,

    /// Print help; with a report's name, that report's
    #[arg(short = 'h', long)]
    pub help: bool,
}

/// perf trace's values of --call-graph choose how stacks are recorded: a tape has them already.
fn call_graph(text: &str) -> Result<String, String> {
    match text.split(',').next() {
        Some("" | "fp" | "dwarf" | "lbr") => Ok(text.to_owned()),
        _ => Err("there are fp, dwarf and lbr, and none changes what the tape has".to_owned()),
    }
}

/// Order of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By start of each call.
    #[default]
    Start,
    /// By end of each call.
    End,
}

/// What `redact` takes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RedactLevel {
    /// Paths.
    Paths,
    /// Paths, captured strings and command lines.
    Strings,
    /// All that tells of people and machines.
    #[default]
    All,
}

/// What `--generate` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generate {
    /// Man page.
    Man,
    /// Completions for bash.
    #[value(alias = "completions-bash")]
    Bash,
    /// Completions for zsh.
    #[value(alias = "completions-zsh")]
    Zsh,
    /// Completions for fish.
    #[value(alias = "completions-fish")]
    Fish,
    /// Names of the reports that have a man page of their own.
    #[value(hide = true)]
    Views,
}
