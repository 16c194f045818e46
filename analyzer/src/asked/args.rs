//! The command line as typed: what several reports have in common. Options of one report stand in its file, those about stacks in
//! [`crate::asked::options`]. [`crate::asked::config`] turns it into settled values.
//!
//! Letters and words are perf trace's where it has them; strace's long names are accepted where they are free.

use std::path::PathBuf;

use clap::Parser;
use systape_cli::Generate;

use crate::asked::sort::Sort;
use systape_answers::render::form::{Color, Format};
use systape_answers::render::stamp::TimeBase;

/// What was typed.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "analyze",
    version = systape_cli::version(),
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

    /// With -p: the processes below them too; of 'analyze exec' the tree of processes with their lifetimes
    #[arg(long, help_heading = "Filters")]
    pub tree: bool,

    /// Only these threads
    #[arg(short = 't', long = "tid", value_name = "TID,...", value_delimiter = ',', help_heading = "Filters")]
    pub tids: Vec<u32>,

    /// Only these users, by number or name
    #[arg(short = 'u', long = "uid", value_name = "USER,...", value_delimiter = ',', help_heading = "Filters")]
    pub users: Vec<String>,

    /// With =NAME,...: only threads of that name (globs allowed, `!` leaves out); without a value: show names (the default)
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Filters")]
    pub comm: Vec<String>,

    /// Only calls that ended (threads that ran) on these CPUs, e.g. 0-3,7
    #[arg(short = 'C', long = "cpus", value_name = "CPUS", help_heading = "Filters")]
    pub cpus: Option<String>,

    /// Only threads in this cgroup or below it, by path; globs allowed
    #[arg(short = 'G', long = "cgroup", value_name = "PATH", help_heading = "Filters")]
    pub cgroups: Vec<String>,

    /// Only threads of this unit of systemd and below it: nginx or nginx.service; globs allowed
    #[arg(long = "unit", value_name = "NAME", help_heading = "Filters")]
    pub units: Vec<String>,

    /// Only threads in this container, by name or by the beginning of its id
    #[arg(long = "container", value_name = "NAME", help_heading = "Filters")]
    pub containers: Vec<String>,

    /// Only threads in this pod: NAME, NAMESPACE/NAME or the beginning of its uid
    #[arg(long = "pod", value_name = "NAME", help_heading = "Filters")]
    pub pods: Vec<String>,

    /// Only calls on this file: through a path that they name, or a descriptor of it; globs allowed, `!` leaves out, several -P add up
    #[arg(short = 'P', long = "path", alias = "trace-path", value_name = "PATH", help_heading = "Filters")]
    pub paths: Vec<String>,

    /// Only calls that began in FROM,TO: s since the tape's start, 300ms, 05:48:19 (UTC), RFC 3339,
    /// mono:SECONDS (CLOCK_MONOTONIC), or N%; either may be left out
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true, help_heading = "Filters")]
    pub time: Option<String>,

    /// Stop after N lines
    #[arg(long, value_name = "N", help_heading = "Filters")]
    pub max_events: Option<u64>,

    /// Print rows as they happen, of a tape that record still writes: record -o - | analyze --follow -
    #[arg(long, help_heading = "Listing")]
    pub follow: bool,

    /// Only the summary: calls, errors and times per thread and syscall
    #[arg(short = 's', long, alias = "summary-only", help_heading = "Summary")]
    pub summary: bool,

    /// The listing, then the summary
    #[arg(short = 'S', long, help_heading = "Summary")]
    pub with_summary: bool,

    /// Add the time calls spent on and off a CPU; with =CPUS the same as -C
    #[arg(long, value_name = "CPUS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Summary")]
    pub cpu: Option<String>,

    /// Times in text since the tape's start, of CLOCK_MONOTONIC, or of day (UTC)
    /// [default: start; kills and exec: start, and wall beside it]
    #[arg(long, value_enum, value_name = "CLOCK", hide_possible_values = true, help_heading = "Times")]
    pub clock: Option<TimeBase>,

    /// The same as --clock mono
    #[arg(short = 'T', long = "absolute-time", help_heading = "Times")]
    pub absolute: bool,

    /// Order of the listing: start, or end as perf trace has it; of the summary: the column with the largest value first [default: start, total]
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Listing")]
    pub sort: Option<Sort>,

    /// What a report adds up by, e.g. comm,state,syscall; docs/reference/filters.md has the keys
    #[arg(long, value_name = "KEY,...", value_delimiter = ',', help_heading = "Reports")]
    pub by: Vec<String>,

    /// Form of the output
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub format: Format,

    /// Colours in text: on a terminal (auto), always (less -R), or never
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, hide_possible_values = true)]
    pub color: Color,

    /// Lines as long as they are on a terminal too: all columns, whole paths
    #[arg(long)]
    pub wide: bool,

    /// Exit with 3 if lost events could change the answer
    #[arg(long)]
    pub fail_on_loss: bool,

    /// Memory for sums; those above it go to a temporary file in TMPDIR [/var/tmp]
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = memory)]
    pub memory: u64,

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

/// Least memory for sums.
const LEAST_MEMORY: u64 = 1 << 20;

fn memory(text: &str) -> Result<u64, String> {
    let size = systape_cli::size(text)?;
    if size < LEAST_MEMORY { Err("at least 1M".to_owned()) } else { Ok(size) }
}
