//! What fingers type that know strace, perf and the bcc tools: options that are not `record`'s, with what to type instead.

use clap::CommandFactory;

use crate::args::Args;

/// Options, and what does here what they do there.
const HABITS: &systape_cli::Habits = &[
    (&["-c", "-S", "--summary", "--summary-only", "--with-summary"], "sums are made from the tape: 'analyze -s'"),
    (&["-w", "--summary-wall-clock"], "sums are made from the tape, by the time calls took: 'analyze -s'"),
    (&["-k", "--stack-trace", "--stack-traces"], "stacks are recorded with -g, or --call-graph dwarf"),
    (
        &["-r", "--relative-timestamps", "--timestamps", "--absolute-timestamps"],
        "times are always recorded: 'analyze' prints them since the start, 'analyze --clock wall' as times of day",
    ),
    (&["-T", "--syscall-times"], "how long calls took is always recorded; analyze prints it"),
    (&["-z", "--successful-only"], "all calls are recorded; --failure stores only those that fail"),
    (&["-Z"], "it is --failure here"),
    (
        &["-xx", "-X", "-N", "-i", "--no-abbrev", "--instruction-pointer"],
        "it says how lines look; see 'analyze --help'",
    ),
    (&["-x"], "failed calls alone: --failure (as -x of opensnoop); how lines look: 'analyze --help'"),
    (&["-n"], "threads by name: --comm NAME (as -n of opensnoop); 'analyze --format json' has the numbers of calls"),
    (&["-d"], "it is --for TIME here (as -d of opensnoop)"),
    (&["-U", "--print-uid"], "users are always recorded; 'analyze -s --by uid' has them"),
    (&["-R", "--raw-samples", "-W", "--timestamp", "--sample-cpu", "--no-buffering", "-B"], "it is always so here"),
    (
        &["--overwrite", "--switch-output", "--last"],
        "the last minutes alone cannot be kept yet; --duration MS keeps a long recording small",
    ),
    (&["-P", "--trace-path"], "all paths are recorded; 'analyze -P PATH' lists the calls on one"),
    (&["-E", "--env"], "set it in front of the command: env NAME=VALUE record ..."),
    (&["-b", "--detach-on", "-I", "--interruptible", "--debug", "--kill-on-exit"], "strace alone has it"),
    (&["-A", "--output-append-mode"], "a tape is written anew; an existing one is kept as FILE.old"),
    (
        &["-L", "--syscall-limit", "--max-events"],
        "--max-size SIZE or --for TIME end a recording; 'analyze --max-events' ends a listing",
    ),
    (&["--no-syscalls"], "choose what is recorded: --families sched,block,signal,net,process"),
    (&["--pf", "--page-faults"], "page faults are recorded with --families fault"),
    (&["--with-hits"], "see 'analyze info' for what was recorded"),
    (&["--filter-pids", "--exclude-pid"], "others cannot be left out while recording; 'analyze -p' chooses"),
    (&["--sort", "--by", "--top", "--stdio", "--format", "--json"], "it is an option of analyze"),
    (&["--bpf-summary", "--libtraceevent", "--kernel-syscall-graph"], "perf alone has it"),
    (&["--max-stack", "--min-stack"], "whole stacks are recorded; 'analyze' has the option"),
    (&["--inject", "--fault"], "nothing is changed in what is recorded; strace -e inject= does that"),
    (&["--count"], "--freq HZ samples by time"),
    (&["-j", "--branch-any", "--weight"], "perf alone has it"),
    (&["--switch-events"], "switches are recorded by default (--families sched)"),
    (&["--cgroups", "--cgroupmap"], "it is -G CGROUP here"),
    (&["--ppid"], "-p records children too"),
    (&["--name"], "threads by name: --comm NAME"),
    (&["--timeout", "--time", "--duration-of-trace"], "it is --for TIME here"),
];

/// What is wrong with `word`, an option that is none of `record`'s: what to type instead, as far as that is known.
pub(crate) fn unknown(word: &str) -> String {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    systape_cli::unknown(word, &Args::command(), systape_cli::instead_of(HABITS, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hint_is_about_an_option_there_is() {
        let command = Args::command();
        let known = |name: &str| {
            command.get_arguments().any(|arg| {
                let short = arg.get_short().is_some_and(|short| name == format!("-{short}"));
                short
                    || arg
                        .get_long_and_visible_aliases()
                        .is_some_and(|longs| longs.iter().any(|long| name == format!("--{long}")))
            })
        };
        for name in HABITS.iter().flat_map(|(names, _)| *names) {
            assert!(!known(name), "{name} is an option");
        }
    }
}
