//! The resolved command line: report, tape, calls, form. Any error here is bad usage (exit 2).

pub(crate) mod view;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ArgMatches;
use systape_abi::Selection;

use self::view::{Operands, Several, View};
use crate::asked::args::Args;
use crate::asked::sort::Sort;
use systape_answers::lines::events::kind::Wanted;
use systape_answers::lines::text::Look;
use systape_answers::render::form::Format;
use systape_answers::render::rank::{Few, Rank};
use systape_answers::render::stamp::TimeBase;
use systape_answers::values::say::Shown;
use systape_answers::values::tapes::found;
use systape_answers::values::{new_file, output};
use systape_events::filter::Filters;
use systape_events::in_cgroup::InCgroup;
use systape_events::values::timespec;

/// The operands, as [`Config`] has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The tape.
    pub file: PathBuf,
    /// The second file.
    pub second: Option<PathBuf>,
    /// Any number of them.
    pub more: Vec<PathBuf>,
}

/// Resolved values common to all reports; [`Config::own`] has those of one report.
#[derive(Clone, Debug)]
pub struct Config {
    /// The view.
    pub view: &'static View,
    /// The arguments as typed, with the view's own options.
    matches: ArgMatches,
    /// See [`Self::bare_cpu`].
    bare_cpu: bool,
    /// The tape; tables: empty without one.
    pub file: PathBuf,
    /// What is named beside it, of views of several tapes.
    pub more: Vec<PathBuf>,
    /// diff: the tape it is compared with; repair and redact: the file to write; tables: the name of a table.
    pub second: Option<PathBuf>,
    /// diff: what the second tape is called in the answer, if that is not its path.
    pub second_name: Option<PathBuf>,
    /// The filters.
    pub filters: Filters,
    /// Whether calls are requested: not when `-e` names only other events.
    pub calls: bool,
    /// The requested other events.
    pub events: Wanted,
    /// Most lines to print.
    pub max_events: u64,
    /// `-T` was given.
    absolute: bool,
    /// `--clock`.
    clock: Option<TimeBase>,
    /// Times of day have their dates: several tapes are of more than one day.
    pub dated: bool,
    /// Form of the lines; the listing has more options of its own.
    pub look: Look,
    /// Order of the listing, or of the summary.
    pub sort: Option<Sort>,
    /// The keys of `--by`, as typed.
    pub by: Vec<String>,
    /// Text, JSON or CSV.
    pub format: Format,
    /// `--wide` was given.
    pub wide: bool,
    /// Exit with 3 if a loss could change the answer.
    pub fail_on_loss: bool,
    /// Bytes of memory for sums.
    pub memory: u64,
    /// `--tree` was given.
    pub tree: bool,
    /// `--follow` was given.
    pub follow: bool,
    /// Number of rows of the answer.
    pub shown: Shown,
}

/// Keys that a tape has as a whole: of views of several tapes.
pub(crate) const OF_TAPES: [&str; 2] = ["host", "tape"];

impl Config {
    /// Whether it is about several tapes: those that are named, those of a directory, or one by what tells it from others.
    pub fn is_of_many(&self) -> bool {
        match self.view.operands {
            Operands::Tapes => true,
            Operands::Tape => !self.more.is_empty() || self.file.is_dir() || self.is_by_tape(),
            Operands::TwoTapes | Operands::TapeAndCopy | Operands::TapeAndFile | Operands::Table | Operands::Logs => {
                false
            }
        }
    }

    /// Whether `--by` names what a tape has as a whole.
    pub fn is_by_tape(&self) -> bool {
        self.by.iter().any(|word| OF_TAPES.contains(&word.as_str()))
    }

    /// Permissions of a file that is made of what is asked about, and of the tapes `also`.
    ///
    /// # Errors
    /// A directory of tapes cannot be read.
    pub fn permissions(&self, also: Option<&Path>) -> Result<u32> {
        let second = self.second.as_ref().filter(|_| self.view.operands == Operands::TwoTapes);
        let tapes = found([&self.file].into_iter().chain(&self.more).chain(second))?;
        Ok(new_file::permissions_like(tapes.iter().map(PathBuf::as_path).chain(also)))
    }

    /// Asks the same question of the tape `file` alone.
    pub fn of(&self, file: &Path) -> Self {
        let (file, more) = (file.to_owned(), Vec::new());
        Self { file, more, shown: Shown::default(), ..self.clone() }
    }

    /// Asks as [`Self::of`] does, for lines that are put in order by time of day; `dated`: see there.
    pub fn of_time(&self, file: &Path, dated: bool) -> Self {
        let clock = self.clock.or((self.format == Format::Text).then_some(TimeBase::Wall));
        Self { clock, dated, ..self.of(file) }
    }

    /// Resolves the command line: `args`, and the other `matches`, of `view` and its files.
    ///
    /// # Errors
    /// The options contradict each other.
    pub fn resolve(
        view: &'static View,
        args: &Args,
        matches: ArgMatches,
        Files { file, second, more }: Files,
    ) -> Result<Self> {
        if args.summary && args.with_summary {
            bail!("-s is the summary alone, -S is listing and summary: give one of them");
        }
        let filters = filters(view, args)?;
        let color = args.format == Format::Text && output::begin_text(args.color.wanted(), args.wide);
        let config = Self {
            view,
            matches,
            bare_cpu: args.cpu.as_deref().is_some_and(str::is_empty),
            file,
            more,
            second,
            second_name: None,
            events: Wanted::new(filters.selection.other_events()),
            calls: filters.selection.selects_calls(),
            filters,
            max_events: args.max_events.unwrap_or(u64::MAX),
            absolute: args.absolute,
            clock: args.clock,
            dated: false,
            look: Look { color, ..Look::default() },
            sort: args.sort,
            by: args.by.clone(),
            format: args.format,
            wide: args.wide,
            fail_on_loss: args.fail_on_loss,
            memory: args.memory,
            tree: args.tree,
            follow: args.follow,
            shown: Shown::default(),
        };
        if args.tree && args.pids.is_empty() && view.name != "exec" {
            bail!(
                "--tree goes with -p PID and takes the processes below it too; 'analyze exec --tree' shows all of them"
            );
        }
        if config.format != Format::Text {
            let why = "times in JSON and CSV are since the start of the tape (ts_ns) and of day (time)";
            refuse(&config.clock_options(), why)?;
        }
        if args.absolute && args.clock.is_some() {
            bail!("-T is --clock mono: give one of them");
        }
        let other = config.base().is_some_and(|base| base != TimeBase::Wall);
        if matches!(view.several, Several::Merged) && config.is_of_many() && other {
            bail!(
                "the lines of several tapes are in order by time of day, --clock wall: other clocks are of one machine"
            );
        }
        if config.follow {
            config.check_follow()?;
        }
        (view.check)(&config)?;
        if config.bare_cpu() && !view.takes("summary_mode") {
            bail!("--cpu adds columns to the summary: it needs -s (the filter is -C CPUS or --cpu=CPUS)");
        }
        Ok(config)
    }

    /// Refuses what needs more of a tape than what came last.
    fn check_follow(&self) -> Result<()> {
        if self.is_of_many() {
            bail!("--follow goes with one tape that is being written");
        }
        let whole =
            [(self.filters.time != (None, None), "--time"), (self.filters.by_path(), "-P"), (self.tree, "--tree")];
        refuse(&whole, "with --follow rows are printed as they come, and it needs what came long before")?;
        refuse(&[(self.sort.is_some(), "--sort")], "with --follow calls are listed as they end")
    }

    /// Whether `--cpu` was given without CPUs: it is no filter then.
    pub fn bare_cpu(&self) -> bool {
        self.bare_cpu
    }

    /// `--time` as it was typed.
    pub(crate) fn time_word(&self) -> Option<String> {
        self.matches.try_get_one::<String>("time").ok().flatten().cloned()
    }

    /// Most lines or rows, by `--max-events`.
    pub fn most(&self) -> usize {
        usize::try_from(self.max_events).unwrap_or(usize::MAX)
    }

    /// Most rows of a ranking with the option `rank`.
    pub fn limit(&self, rank: Rank) -> usize {
        rank.limit(self.format, self.max_events)
    }

    /// Most rows of a ranking with the option `few`.
    pub fn few(&self, few: Few) -> usize {
        few.limit(self.format)
    }

    /// What times in text count from, if that was said.
    pub fn base(&self) -> Option<TimeBase> {
        self.clock.or(self.absolute.then_some(TimeBase::Mono))
    }

    /// The options that say it, with whether they were given: to [`refuse`] where text has no times.
    pub fn clock_options(&self) -> [(bool, &'static str); 2] {
        [(self.absolute, "-T"), (self.clock.is_some(), "--clock")]
    }

    /// The view's own options.
    ///
    /// # Errors
    /// They belong to another view.
    pub fn own<T: clap::Args>(&self) -> Result<T> {
        view::own(&self.matches)
    }
}

/// Refuses the first of `options` that was given, because it would have no effect. `why` describes the answer.
///
/// # Errors
/// One of them was given.
pub(crate) fn refuse(options: &[(bool, &str)], why: &str) -> Result<()> {
    match options.iter().find(|(given, _)| *given) {
        Some((_, option)) => bail!("{option} has no effect here: {why}"),
        None => Ok(()),
    }
}

fn filters(view: &View, args: &Args) -> Result<Filters> {
    let terms: Vec<String> = view.events.iter().map(|term| (*term).to_owned()).chain(args.events.clone()).collect();
    let selection = if terms.is_empty() { Selection::all() } else { Selection::parse(&terms)? };
    let (comms, not_comms) = comms(&args.comm)?;
    let (mut paths, mut not_paths) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let (not, path) = negated("-P ", path)?;
        (if not { &mut not_paths } else { &mut paths }).push(path.to_owned());
    }
    Ok(Filters {
        longer_than: match &args.duration {
            Some(text) => Some(timespec::duration(text, 1_000_000).context("--duration")?),
            None => None,
        },
        selection,
        selects: !args.events.is_empty(),
        failure: args.failure,
        pids: args.pids.clone(),
        tree: args.tree && !args.pids.is_empty(),
        tids: args.tids.clone(),
        users: args.users.clone(),
        comms,
        not_comms,
        cpus: match (&args.cpus, args.cpu.as_deref().filter(|cpus| !cpus.is_empty())) {
            (Some(_), Some(_)) => bail!("-C and --cpu=CPUS are the same: give one of them"),
            (cpus, other) => cpus.as_deref().or(other).map(timespec::cpu_list).transpose()?,
        },
        cgroups: cgroups(args),
        paths,
        not_paths,
        time: args.time.as_deref().map(timespec::range).transpose()?.unwrap_or((None, None)),
    })
}

/// The cgroups that are chosen.
fn cgroups(args: &Args) -> Vec<InCgroup> {
    let of = |names: &[String], kind: fn(String) -> InCgroup| names.iter().cloned().map(kind).collect::<Vec<_>>();
    [
        of(&args.cgroups, InCgroup::Path),
        of(&args.units, InCgroup::Unit),
        of(&args.containers, InCgroup::Container),
        of(&args.pods, InCgroup::Pod),
    ]
    .concat()
}

/// The names that `--comm` selects, and those it leaves out. As in `-e`, a `!` at the beginning negates the whole list,
/// one before a name only that name. A backslash precedes a name that begins with `!`.
fn comms(lists: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let (mut asked, mut left_out) = (Vec::new(), Vec::new());
    // without a value it asks for nothing
    for list in lists.iter().filter(|list| !list.is_empty()) {
        let all = list.starts_with('!');
        for name in list.split(',').filter(|name| !name.is_empty()) {
            let (not, name) = negated("--comm=", name)?;
            let names = if not || all { &mut left_out } else { &mut asked };
            names.push(name.to_owned());
        }
    }
    Ok((asked, left_out))
}

/// Whether a value of `option` has a `!` before it, and what stands behind that or behind the backslash before one.
fn negated<'a>(option: &str, name: &'a str) -> Result<(bool, &'a str)> {
    let (not, name) = name.strip_prefix('!').map_or((false, name), |name| (true, name));
    if not && name.is_empty() {
        bail!("{option}!: there is no name behind '!' (a name that begins with it: '\\!name')");
    }
    Ok((not, if name.starts_with("\\!") { &name[1..] } else { name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(words: &str) -> Result<Config> {
        let asked =
            crate::cli::parse::parse(words.split(' ').map(Into::into)).map_err(|stop| anyhow::anyhow!("{stop:?}"))?;
        asked.config()
    }

    #[test]
    fn comm_is_a_filter_only_with_a_value() {
        assert_eq!(resolve("analyze --comm x.tape").unwrap().file, PathBuf::from("x.tape"));
        let config = resolve("analyze --comm=ls,git* x.tape").unwrap();
        assert_eq!(config.filters.comms, ["ls", "git*"]);
    }

    #[test]
    fn names_are_left_out_as_calls_are() {
        let comms = |words| {
            let filters = resolve(&format!("analyze {words}")).unwrap().filters;
            (filters.comms, filters.not_comms)
        };
        let names = |asked: &[&str], left_out: &[&str]| {
            [asked, left_out].map(|names| names.iter().map(|name| name.to_string()).collect::<Vec<_>>()).into()
        };
        assert_eq!(comms("--comm=!x"), names(&[], &["x"]));
        assert_eq!(comms("--comm=!a,b --comm=c"), names(&["c"], &["a", "b"]));
        assert_eq!(comms("--comm=a*,!ab"), names(&["a*"], &["ab"]));
        assert_eq!(comms("--comm=\\!x,!\\!y"), names(&["!x"], &["!y"]));
        assert!(resolve("analyze --comm=!").unwrap_err().to_string().contains("no name behind '!'"));
        let paths = |words| {
            let filters = resolve(&format!("analyze {words}")).unwrap().filters;
            (filters.paths, filters.not_paths)
        };
        assert_eq!(paths("-P !/a,b -P \\!c"), names(&["!c"], &["/a,b"]));
        assert!(resolve("analyze -P !").unwrap_err().to_string().contains("-P !: there is no name behind '!'"));
    }

    #[test]
    fn summaries() {
        let which = |words| resolve(words).map(|c| c.view.name).unwrap();
        assert_eq!(which("analyze"), "");
        assert_eq!(which("analyze -s"), "summary");
        assert_eq!(which("analyze --errno-summary"), "summary");
        assert_eq!(which("analyze -S --errno-summary"), "with-summary");
        assert!(resolve("analyze -sS").is_err());
    }

    #[test]
    fn cpu_has_two_meanings() {
        let cpu = |words| resolve(words).map(|c| (c.bare_cpu(), c.filters.cpus)).unwrap();
        assert_eq!(cpu("analyze -s --cpu x"), (true, None));
        assert_eq!(cpu("analyze -s --cpu=0-1 x"), (false, Some(vec![0, 1])));
        assert_eq!(cpu("analyze --cpus 3 x"), (false, Some(vec![3])));
        assert!(resolve("analyze --cpu").is_err());
        assert!(resolve("analyze -C 1 --cpu=2").is_err());
        assert!(resolve("analyze runqlat --by file").is_err());
    }
}
