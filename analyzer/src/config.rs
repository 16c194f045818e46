//! The command line resolved: which report, which tape, which calls, which form. Anything wrong here is bad usage (exit 2).

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Result, bail};
use systape_abi::{FlagStyle, Selection};
use systape_format::redact::Level;

use crate::args::{Args, RedactLevel, Sort};
use crate::block;
use crate::events::kind::Wanted;
use crate::filter::Filters;
use crate::group::by::By;
use crate::lines::text::Look;
use crate::open::DEFAULT_TAPE;
use crate::options::sched::Options;
use crate::options::stacks;
use crate::render::form::Format;
use crate::report::Report;
use crate::signals::Choice;
use crate::summary::mode::SummaryMode;
use crate::timespec;
use crate::views::{self, View};

/// Settled values.
#[derive(Debug)]
pub struct Config {
    /// What is asked.
    pub report: Report,
    /// The tape.
    pub file: PathBuf,
    /// What redact takes out.
    pub level: Level,
    /// diff: the tape it is compared with; repair and redact: the file to write.
    pub second: Option<PathBuf>,
    /// Which calls.
    pub filters: Filters,
    /// Whether there is a listing.
    pub listing: bool,
    /// Whether calls are in it: not when `-e` names other events only.
    pub calls: bool,
    /// The other events that are.
    pub events: Wanted,
    /// Whether they are summed up.
    pub summary: bool,
    /// Whether the summary counts each errno.
    pub errnos: bool,
    /// What the summary groups by.
    pub mode: SummaryMode,
    /// Order of the listing.
    pub sort: Sort,
    /// Lines to print at most.
    pub max_events: u64,
    /// How lines look.
    pub look: Look,
    /// Whether the child's side of clone is listed.
    pub clone_child: bool,
    /// block: histograms.
    pub hist: bool,
    /// block: sums.
    pub top: bool,
    /// net: each change of state.
    pub changes: bool,
    /// What a report adds up by, as typed.
    pub by: Vec<String>,
    /// Text, JSON or CSV.
    pub format: Format,
    /// Exit with 3 when something is missing.
    pub fail_on_loss: bool,
    /// Options of kills and exec.
    pub life: Life,
    /// Options of the scheduler reports.
    pub sched: Options,
    /// Options about stacks.
    pub stacks: stacks::Options,
    /// Whether the summary says how much of a call was on a CPU.
    pub cpu_time: bool,
}

/// What kills and exec are asked beside the filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Which signals.
    pub signals: Choice,
    /// Everything about each signal.
    pub verbose: bool,
    /// The tree of processes.
    pub tree: bool,
    /// Kernel threads in the tree too.
    pub kernel_threads: bool,
}

impl Life {
    fn resolve(args: &Args) -> Result<Self> {
        if args.all && !args.signal.is_empty() {
            bail!("--all and --signal: give one of them");
        }
        let number = |name: &String| match systape_abi::signal_number(name) {
            Some(number) => Ok(number),
            None => bail!("--signal {name}: there is no such signal"),
        };
        let numbers = args.signal.iter().map(number).collect::<Result<Vec<u32>>>()?;
        let signals = match numbers {
            _ if args.all => Choice::All,
            numbers if numbers.is_empty() => Choice::Fatal,
            numbers => Choice::These(numbers),
        };
        Ok(Self { signals, verbose: args.verbose, tree: args.tree, kernel_threads: args.all })
    }
}

impl Config {
    /// Settles what was typed.
    pub fn resolve(args: &Args) -> Result<Self> {
        let (view, file, second) = view_and_files(args)?;
        let report = view.report;
        let summary = report == Report::Calls && !view.name.is_empty();
        let listing = report == Report::Calls && view.name != "summary";
        if args.summary && args.with_summary {
            bail!("-s is the summary alone, -S is listing and summary: give one of them");
        }
        if listing && summary && args.format == Format::Csv {
            bail!("-S mixes two tables, which CSV cannot hold: run once with -s and once without");
        }
        check_block(report, args)?;
        let filters = filters(args)?;
        let events = Wanted::new(filters.selection.other_events());
        let calls = filters.selection.selects_calls();
        if report == Report::Diff && !calls {
            bail!("'analyze diff' compares sums of calls, and -e names none");
        }
        if summary && !calls {
            check_events(args, &events)?;
        }
        if summary && calls && events.tables() && args.format == Format::Csv {
            bail!(
                "-s prints a table of calls and one of events, and CSV holds one: ask for calls and for events on their own"
            );
        }
        let color = args.format == Format::Text
            && std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Ok(Self {
            report,
            file,
            second,
            level: level(args),
            filters,
            listing,
            calls,
            events,
            summary,
            errnos: args.errno_summary,
            mode: args.summary_mode,
            sort: args.sort,
            max_events: args.max_events.unwrap_or(u64::MAX),
            look: Look {
                absolute: args.absolute,
                no_comm: args.no_comm,
                show_zeros: args.show_zeros,
                style: FlagStyle { prefix: args.show_prefix },
                color,
            },
            clone_child: args.clone_child,
            hist: args.hist,
            top: args.top,
            changes: args.changes,
            by: args.by.clone(),
            format: args.format,
            fail_on_loss: args.fail_on_loss,
            life: Life::resolve(args)?,
            sched: Options::resolve(args, view)?,
            stacks: stacks::Options::resolve(args, report)?,
            cpu_time: cpu_time(args, summary)?,
        })
    }
}

/// What a summary of events alone cannot be asked.
fn check_events(args: &Args, events: &Wanted) -> Result<()> {
    if !events.tables() {
        bail!("-s sums up calls, and -e names none: add the calls to sum up, or leave out -s");
    }
    let of_calls = [
        (args.duration.is_some(), "--duration"),
        (args.failure, "--failure"),
        (args.errno_summary, "--errno-summary"),
        (!args.by.is_empty(), "--by"),
        (args.summary_mode != SummaryMode::default(), "--summary-mode"),
        (args.cpu.as_deref().is_some_and(str::is_empty), "--cpu"),
    ];
    match of_calls.iter().find(|(given, _)| *given) {
        Some((_, option)) => bail!("{option} is about calls, and -e names none: leave it out, or add calls"),
        None => Ok(()),
    }
}

/// What cannot be asked together.
fn check_block(report: Report, args: &Args) -> Result<()> {
    if report != Report::Block {
        return Ok(());
    }
    if args.hist && args.top {
        bail!("--hist and --top are two answers: give one of them");
    }
    if !args.by.is_empty() && !args.hist && !args.top {
        bail!("--by needs --top or --hist");
    }
    By::parse(&args.by, &block::by::KNOWN, "'analyze block'").map(drop)
}

/// What is taken out.
fn level(args: &Args) -> Level {
    match args.level.unwrap_or_default() {
        RedactLevel::Paths => Level::Paths,
        RedactLevel::Strings => Level::Strings,
        RedactLevel::All => Level::All,
    }
}

/// Bare `--cpu` adds columns to the summary.
fn cpu_time(args: &Args, summary: bool) -> Result<bool> {
    let bare = args.cpu.as_deref().is_some_and(str::is_empty);
    if bare && !summary {
        bail!("--cpu adds columns to the summary: it needs -s (the filter is -C CPUS or --cpu=CPUS)");
    }
    Ok(bare)
}

/// The first word is a view if it is the name of one; what is left is the tape, of diff two.
fn view_and_files(args: &Args) -> Result<(&'static View, PathBuf, Option<PathBuf>)> {
    let named = views::named(args.words.iter().map_while(|word| word.to_str()));
    let view = views::chosen(args);
    let (report, files) = (view.report, &args.words[named.map_or(0, |(_, words)| words)..]);
    if report == Report::Diff {
        return match (&args.input, files) {
            (None, [before, after]) => Ok((view, before.clone(), Some(after.clone()))),
            _ => bail!("'analyze diff BEFORE AFTER' compares two tapes: name both"),
        };
    }
    if report.makes_a_copy() {
        return match (&args.input, files) {
            (None, [from, to]) => Ok((view, from.clone(), Some(to.clone()))),
            (Some(from), [to]) => Ok((view, from.clone(), Some(to.clone()))),
            _ if report == Report::Redact => {
                bail!("'analyze redact IN OUT' copies a tape without what --level takes out: name both files")
            }
            _ => bail!("'analyze repair IN OUT' copies what is whole of a tape: name both files"),
        };
    }
    match (&args.input, files) {
        (None, []) => Ok((view, PathBuf::from(DEFAULT_TAPE), None)),
        (None, [file]) | (Some(file), []) => Ok((view, file.clone(), None)),
        (Some(input), [file, ..]) => bail!("two tapes: '{}' and -i '{}'; give one", file.display(), input.display()),
        (None, [first, second, ..]) => {
            if named.is_some() || first.exists() {
                bail!("two tapes: '{}' and '{}'; this report reads one", first.display(), second.display());
            }
            let known: Vec<_> = views::names().collect();
            let near = views::nearest(first).map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
            bail!("'{}' is no report (there are: {}){near}", first.display(), known.join(", "))
        }
    }
}

fn filters(args: &Args) -> Result<Filters> {
    let selection = if args.events.is_empty() { Selection::all() } else { Selection::parse(&args.events)? };
    let comms = args.comm.iter().flat_map(|names| names.split(',')).filter(|name| !name.is_empty());
    Ok(Filters {
        longer_than: match &args.duration {
            Some(text) => Some(timespec::duration(text, 1_000_000).map_err(|e| e.context("--duration"))?),
            None => None,
        },
        selection,
        selects: !args.events.is_empty(),
        failure: args.failure,
        pids: args.pids.clone(),
        tids: args.tids.clone(),
        users: args.users.clone(),
        comms: comms.map(str::to_owned).collect(),
        cpus: match (&args.cpus, args.cpu.as_deref().filter(|cpus| !cpus.is_empty())) {
            (Some(_), Some(_)) => bail!("-C and --cpu=CPUS are the same: give one of them"),
            (cpus, other) => cpus.as_deref().or(other).map(timespec::cpu_list).transpose()?,
        },
        cgroups: args.cgroups.clone(),
        time: args.time.as_deref().map(timespec::range).transpose()?.unwrap_or((None, None)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn resolve(words: &str) -> Result<Config> {
        Config::resolve(&Args::try_parse_from(words.split(' '))?)
    }

    #[test]
    fn the_first_word_is_a_report_or_the_tape() {
        let settled = |words| resolve(words).map(|c| (c.report, c.file)).unwrap();
        assert_eq!(settled("analyze"), (Report::Calls, PathBuf::from("trace.tape")));
        assert_eq!(settled("analyze info"), (Report::Info, PathBuf::from("trace.tape")));
        assert_eq!(settled("analyze ./info"), (Report::Calls, PathBuf::from("./info")));
        assert_eq!(settled("analyze check x"), (Report::Check, PathBuf::from("x")));
        assert_eq!(settled("analyze -s -i y"), (Report::Calls, PathBuf::from("y")));
        assert!(resolve("analyze inof x").unwrap_err().to_string().contains("'info'"));
    }

    #[test]
    fn comm_is_a_filter_only_with_a_value() {
        assert_eq!(resolve("analyze --comm x.tape").unwrap().file, PathBuf::from("x.tape"));
        let config = resolve("analyze --comm=ls,git* x.tape").unwrap();
        assert_eq!(config.filters.comms, ["ls", "git*"]);
    }

    #[test]
    fn summaries() {
        let which = |words| resolve(words).map(|c| (c.listing, c.summary)).unwrap();
        assert_eq!(which("analyze"), (true, false));
        assert_eq!(which("analyze -s"), (false, true));
        assert_eq!(which("analyze --errno-summary"), (false, true));
        assert_eq!(which("analyze -S --errno-summary"), (true, true));
        assert!(resolve("analyze -sS").is_err());
    }

    #[test]
    fn sched_takes_a_second_word_and_cpu_has_two_meanings() {
        let sched = |words| resolve(words).map(|c| (c.sched.latency, c.file)).unwrap();
        assert_eq!(sched("analyze sched"), (false, PathBuf::from("trace.tape")));
        assert_eq!(sched("analyze sched latency x"), (true, PathBuf::from("x")));
        assert_eq!(sched("analyze sched timehist"), (false, PathBuf::from("trace.tape")));
        assert_eq!(sched("analyze sched ./latency"), (false, PathBuf::from("./latency")));
        let cpu = |words| resolve(words).map(|c| (c.cpu_time, c.filters.cpus)).unwrap();
        assert_eq!(cpu("analyze -s --cpu x"), (true, None));
        assert_eq!(cpu("analyze -s --cpu=0-1 x"), (false, Some(vec![0, 1])));
        assert_eq!(cpu("analyze --cpus 3 x"), (false, Some(vec![3])));
        assert!(resolve("analyze --cpu").is_err());
        assert!(resolve("analyze -C 1 --cpu=2").is_err());
        assert!(resolve("analyze runqlat --by file").is_err());
    }
}
