//! The command line resolved: which report, which tape, which calls, which form. Anything wrong here is bad usage (exit 2).

pub mod view;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ArgMatches;
use systape_abi::{FlagStyle, Selection};
use systape_format::redact::Level;

use self::view::View;
use crate::args::{Args, RedactLevel, Sort};
use crate::events::kind::Wanted;
use crate::filter::Filters;
use crate::lines::text::Look;
use crate::options::sched::Options;
use crate::options::stacks;
use crate::render::form::Format;
use crate::say::Shown;
use crate::signals::Choice;
use crate::summary::mode::SummaryMode;
use crate::timespec;

/// Settled values.
#[derive(Debug)]
pub struct Config {
    /// What is asked.
    pub view: &'static View,
    /// What was typed, for the view's own options.
    matches: ArgMatches,
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
    /// net: each change of state.
    pub changes: bool,
    /// What a report adds up by, as typed.
    pub by: Vec<String>,
    /// Text, JSON or CSV.
    pub format: Format,
    /// Exit with 3 when something is missing.
    pub fail_on_loss: bool,
    /// How many rows the answer has.
    pub shown: Shown,
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
    /// Settles what was typed: `args`, and what else is among `matches`, of `view` and the files it was given.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn resolve(
        view: &'static View,
        args: &Args,
        matches: ArgMatches,
        (file, second): (PathBuf, Option<PathBuf>),
    ) -> Result<Self> {
        let summary = ["summary", "with-summary"].contains(&view.name);
        let listing = ["", "with-summary"].contains(&view.name);
        if args.summary && args.with_summary {
            bail!("-s is the summary alone, -S is listing and summary: give one of them");
        }
        if listing && summary && args.format == Format::Csv {
            bail!("-S mixes two tables, which CSV cannot hold: run once with -s and once without");
        }
        let filters = filters(args)?;
        let events = Wanted::new(filters.selection.other_events());
        let calls = filters.selection.selects_calls();
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
        let config = Self {
            view,
            matches,
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
            changes: args.changes,
            by: args.by.clone(),
            format: args.format,
            fail_on_loss: args.fail_on_loss,
            shown: Shown::default(),
            life: Life::resolve(args)?,
            sched: Options::resolve(args, view.name)?,
            stacks: stacks::Options::resolve(args, view.name)?,
            cpu_time: cpu_time(args, summary)?,
        };
        (view.check)(&config)?;
        Ok(config)
    }

    /// The view's own options.
    ///
    /// # Errors
    /// They are those of another view.
    pub fn own<T: clap::Args>(&self) -> Result<T> {
        view::own(&self.matches)
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
        (args.summary_mode != SummaryMode::default(), "--summary-mode"),
        (args.cpu.as_deref().is_some_and(str::is_empty), "--cpu"),
    ];
    match of_calls.iter().find(|(given, _)| *given) {
        Some((_, option)) => bail!("{option} is about calls, and -e names none: leave it out, or add calls"),
        None => Ok(()),
    }
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

    fn resolve(words: &str) -> Result<Config> {
        let asked = crate::cli::parse(words.split(' ').map(Into::into)).map_err(|stop| anyhow::anyhow!("{stop:?}"))?;
        asked.config()
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
    fn cpu_has_two_meanings() {
        let cpu = |words| resolve(words).map(|c| (c.cpu_time, c.filters.cpus)).unwrap();
        assert_eq!(cpu("analyze -s --cpu x"), (true, None));
        assert_eq!(cpu("analyze -s --cpu=0-1 x"), (false, Some(vec![0, 1])));
        assert_eq!(cpu("analyze --cpus 3 x"), (false, Some(vec![3])));
        assert!(resolve("analyze --cpu").is_err());
        assert!(resolve("analyze -C 1 --cpu=2").is_err());
        assert!(resolve("analyze runqlat --by file").is_err());
    }
}
