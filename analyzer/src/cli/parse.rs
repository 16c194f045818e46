//! From words to [`Args`]: which view they choose, whether it takes the options, and help.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result as Settled;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use systape_cli::Stop;

use crate::asked::args::Args;
use crate::asked::config::Config;
use crate::asked::config::view::{Operands, View};
use crate::cli::beside;
use crate::cli::habits;
use crate::cli::operands;
use crate::cli::views::{self, VIEWS};
use systape_answers::values::spool;

const EXAMPLES: &str = "\
Examples:
  analyze t.tape                            what it has, and what to ask; in a pipe every call
  analyze trace t.tape                      every call, in order of start
  analyze --duration 10 -e '!futex' t.tape  calls longer than 10 ms, futex left out
  analyze -s                                calls, errors and times per thread and syscall
  analyze --time 1.5,2 -p 2214              half a second of one process
  analyze --format json | jq .syscall       one JSON object a line (docs/reference/json.md)
  analyze --call-graph -e fsync             who called fsync: the stack below each call
  analyze why                               what was slow and what broke, the worst first
  analyze report -o app.html                a page for a browser, in one file
  analyze kills -v                          who sent which signal to whom, and what came of it
  analyze exec --tree --comm=watch          who started what, how it ended, below watch
  analyze offcpu -p 2214                    what a process waited for
  analyze states --at 1.5                   what every thread was doing at one instant
  analyze callgraph --svg flame.svg         a flame graph

A file named like a report is written ./info. The file - is standard input: a tape that comes through
a pipe (record -o - ... | analyze -) is kept in a file without a name in $TMPDIR, 4 GiB at most.
Exit status: 0 answered, 1 failed, 2 bad usage, 3 something was lost and --fail-on-loss was given.";

/// Options that choose a summary without a word; help shows them beside the listing's.
const SWITCHES: &[&str] = &["summary", "with_summary", "errno_summary", "summary_mode"];

/// A command line that was read.
#[derive(Debug)]
pub struct Asked {
    /// The view it chooses.
    pub view: &'static View,
    /// How many of its words name that.
    pub words: usize,
    /// What was typed.
    pub args: Args,
    /// The same, with the options that are the view's own.
    matches: ArgMatches,
}

impl Asked {
    /// The options that were typed, by their names, with their values.
    pub fn typed(&self) -> Vec<(String, Vec<String>)> {
        let ids = self.matches.ids().map(clap::Id::as_str);
        // groups of options have the names of their structs
        let typed = ids.filter(|id| *id != "words" && id.starts_with(|letter: char| letter.is_ascii_lowercase()));
        let typed = typed.filter(|id| self.matches.value_source(id) == Some(ValueSource::CommandLine));
        let values =
            |id: &str| self.matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
        let mut typed: Vec<_> = typed.map(|id| (id.to_owned(), values(id).collect())).collect();
        typed.sort();
        typed
    }

    /// Whether it names no tape.
    pub fn names_none(&self) -> bool {
        self.args.input.is_none() && !self.has_operands()
    }

    /// Whether words stand behind the name of the view.
    pub fn has_operands(&self) -> bool {
        self.args.words.len() > self.words
    }

    /// Settles it.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn config(&self) -> Settled<Config> {
        // where the copy goes may be said as of other programs
        let typed = self.matches.value_source("output") == Some(ValueSource::CommandLine);
        let mut args = self.args.clone();
        if self.view.operands == Operands::TapeAndCopy && typed {
            args.words.extend(self.matches.get_raw("output").into_iter().flatten().map(PathBuf::from));
        }
        let files = operands::files(&args, self.view, self.words, spool::offered)?;
        Config::resolve(self.view, &self.args, self.matches.clone(), files)
    }
}

/// Reads a command line; the first word is the program's name.
///
/// # Errors
/// It is wrong, or asks for help.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Asked, Stop> {
    let words: Vec<OsString> = words.into_iter().collect();
    let view = habits::view(&words);
    let known = union(views::named(view.split(' ')).map_or(VIEWS[0], |(view, _)| view));
    let settled = habits::settled(&words, view, &known, &|word| Path::new(word).exists()).map_err(Stop::Usage)?;
    let (mut union, asked) = choose(&settled).map_err(|stop| as_typed(stop, &words, &settled))?;
    let Asked { view, args, matches, .. } = &asked;
    let typed: Vec<&str> = args.words.iter().filter_map(|word| word.to_str()).collect();
    if let ["help", of @ ..] = &*typed {
        return help_of(of);
    }
    // 'analyze kills help'
    if let [of @ .., "help"] = &*typed
        && !view.name.is_empty()
        && !of.is_empty()
        && !Path::new("help").exists()
    {
        return help_of(of);
    }
    if args.help {
        // without a report's name it is the whole program's
        return help_of(if view.name.is_empty() { &[] } else { &typed });
    }
    check(&mut union, matches, view)?;
    if args.comm.iter().any(String::is_empty) && !view.takes("no_comm") {
        return Err(Stop::Usage("--comm=NAME: name the threads".to_owned()));
    }
    Ok(asked)
}

/// `stop`, which is about an option of `settled`, with the word that was `typed` for it.
fn as_typed(stop: Stop, typed: &[OsString], settled: &[OsString]) -> Stop {
    let Stop::Usage(text) = stop else { return stop };
    let options = |words: &[OsString]| -> Vec<String> {
        let options = words.iter().filter_map(|word| word.to_str()).filter(|word| word.starts_with("--"));
        options.map(|word| word.split('=').next().unwrap_or(word).to_owned()).collect()
    };
    let (before, after) = (options(typed), options(settled));
    let gone: Vec<&String> = before.iter().filter(|option| !after.contains(option)).collect();
    let come = after.iter().find(|option| !before.contains(option) && text.contains(&format!("'{option} ")));
    match (&*gone, come) {
        ([gone], Some(come)) => Stop::Usage(format!("{text}; {gone} is {come} here")),
        _ => Stop::Usage(text),
    }
}

/// The command whose help has the options that `words` ask with.
pub(crate) fn help_for(words: &[OsString]) -> String {
    match habits::view(words) {
        "" | "summary" | "with-summary" => "analyze --help".to_owned(),
        view => format!("analyze {view} --help"),
    }
}

/// Finds the view and reads the words as it does. The word that names it may stand behind others, and one that looks like it may be the
/// value of an option, so each that is among the words is tried.
fn choose(words: &[OsString]) -> Result<(Command, Asked), Stop> {
    let typed: Vec<&str> = words.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let named = (0..typed.len()).filter_map(|at| views::named(typed[at..].iter().copied()));
    let mut refused = None;
    for (view, _) in named {
        match read(view, words) {
            Ok((union, asked)) if std::ptr::eq(asked.view, view) => return Ok((union, asked)),
            Ok(_) => {}
            Err(stop) => refused = refused.or(Some(stop)),
        }
    }
    match (read(VIEWS[0], words), refused) {
        // a view's name was there, and what else was typed is none of its options
        (Err(_), Some(stop)) => Err(stop),
        (Ok((_, Asked { words: 1.., .. })), Some(stop)) => Err(stop),
        (other, _) => other,
    }
}

/// Reads the words with the options of `view` and, to say whose they are, of all others.
fn read(view: &'static View, words: &[OsString]) -> Result<(Command, Asked), Stop> {
    let mut union = union(view);
    let matches = union.try_get_matches_from_mut(words).map_err(|error| stopped(&error, &union, view, words))?;
    let args = Args::from_arg_matches(&matches).map_err(|error| Stop::new(&error, &union))?;
    let (view, words) = views::chosen(&args, &matches);
    Ok((union, Asked { view, words, args, matches }))
}

/// Why words are refused: of an option that `view` does not take not because of its value.
fn stopped(error: &clap::Error, union: &Command, view: &'static View, words: &[OsString]) -> Stop {
    // a summary is chosen by an option too
    let view = if view.name.is_empty() {
        views::named(habits::view(words).split(' ')).map_or(view, |(view, _)| view)
    } else {
        view
    };
    let about = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Some(ContextValue::String(shown))) => {
            union.get_arguments().find(|arg| arg.to_string() == *shown)
        }
        _ => None,
    };
    if error.kind() == ErrorKind::ArgumentConflict && view.takes("before") && error.to_string().contains("--time") {
        return Stop::Usage("two stretches of one tape are --before FROM,TO and --after FROM,TO".to_owned());
    }
    // the value may have chosen the view
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    let chose = view.name.split(' ').next() == Some(value);
    if view.name == "top"
        && about.is_some_and(|arg| arg.get_id() == "metric")
        && (["bytes", "ret"].contains(&value) || value.starts_with("arg"))
    {
        return Stop::Usage(format!("--value {value} adds up {value}, and --hist makes a histogram of it"));
    }
    match about.filter(|arg| !view.takes(arg.get_id().as_str()) && !chose) {
        Some(arg) => Stop::Usage(not_for(arg, view)),
        None => Stop::new(error, union),
    }
}

/// All options there are. Of two views' own options of one name it has that of `view`.
pub fn union(view: &View) -> Command {
    let mut command = view.own.add_to(Args::command());
    for arg in VIEWS.iter().flat_map(|other| other.own.args()) {
        let same = |there: &Arg| {
            there.get_id() == arg.get_id()
                || (there.get_long().is_some() && there.get_long() == arg.get_long())
                || (there.get_short().is_some() && there.get_short() == arg.get_short())
        };
        if !command.get_arguments().any(same) {
            // it stands behind those that are there
            command = command.arg(arg.display_order(None));
        }
    }
    command
}

/// Refuses options that `view` does not take, and says which views do.
fn check(union: &mut Command, matches: &ArgMatches, view: &View) -> Result<(), Stop> {
    for arg in union.get_arguments() {
        let id = arg.get_id().as_str();
        let names_copy = id == "output" && view.operands == Operands::TapeAndCopy;
        if view.takes(id) || names_copy || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        return Err(Stop::Usage(not_for(arg, view)));
    }
    Ok(())
}

/// Why `view` does not take the option `arg`, and what does, or what it takes instead.
fn not_for(arg: &Arg, view: &View) -> String {
    let id = arg.get_id().as_str();
    let takers: Vec<String> = VIEWS.iter().filter(|other| other.takes(id)).map(|other| other.title()).collect();
    let (option, whose) = (flag(arg), view.title());
    match id {
        "summary" | "with_summary" | "errno_summary" => {
            format!("{option} sums up calls: leave out the name of the report ({whose})")
        }
        "output" => format!(
            "{option} is for {}: the answer of {whose} goes to standard output (analyze ... > FILE)",
            list(&takers)
        ),
        _ => match other(id, view) {
            Some(other) => format!("{option} is not for {whose}: {other}"),
            None => format!("{option} is not for {whose}; it is for {}", list(&takers)),
        },
    }
}

/// What an option that a view does not take is in that view: ids of both, and the sentence; of the first that it takes. "": every view
/// takes it.
const INSTEAD: &[(&str, &str, &str)] = &[
    ("max_events", "top", "--top N prints N rows"),
    ("top", "callee", "--min-percent N leaves out what is small, --max-depth N cuts stacks"),
    ("top", "max_events", "--max-events N ends it after N lines; 'analyze top' has what took most"),
    ("after", "time", "--time FROM,TO chooses a part of the recording"),
    ("before", "time", "--time FROM,TO chooses a part of the recording"),
    ("at", "time", "--time FROM,TO chooses a part of the recording; 'analyze states --at TIME' is about an instant"),
    ("slower", "duration", "--duration TIME chooses what took longer"),
    ("duration", "slower", "--slower TIME lists what took longer"),
    ("process", "comm", "--comm=NAME chooses threads by name, -p PID a process by its number"),
    ("comm", "pids", "-p PID chooses a process; 'analyze exec --comm=NAME' has numbers"),
    (
        "sort",
        "by",
        "it has no order of its own to choose; --by KEY,... says what is added up, --format csv | sort orders it",
    ),
    ("sort", "metric", "--metric says what comes first"),
    ("sort", "rank", "--rank COLUMN says what comes first"),
    ("sort", "", "it has an order of its own; --format csv | sort has another one"),
    ("top", "summary_mode", "it is printed whole: | head -n N; 'analyze top --top N' has what took most"),
    ("call_graph", "wakers", "'analyze callgraph --of offcpu' adds up the stacks with which threads left the CPU"),
    ("families", "events", "'analyze -e \"sched:*\"' lists events of a family"),
    ("signal", "events", "'analyze kills --signal TERM' has signals, -e 'signal:*' lists their events"),
    ("all", "top", "--top 0 prints all rows"),
    ("all", "", "all is shown that options do not leave out"),
    ("per", "slices", "--slices N says into how many parts the time is divided"),
    ("paths", "udp", "'analyze net --by pid,comm,peer' has peers; | grep ADDRESS"),
    ("paths", "at", "'analyze -P PATH' lists calls on a file; | grep PATH"),
    ("tree", "events", "'analyze exec --tree' shows who started what, and whose numbers -p takes"),
    ("hist", "events", "'analyze top --hist' prints histograms of what -e chooses"),
    (
        "by",
        "callee",
        "--comm=NAME and -p PID choose whose stacks, --of EVENTS which; 'analyze top --by KEY' adds up calls",
    ),
    ("by", "events", "it lists events one by one; 'analyze top --by KEY' adds up, as does 'analyze -s --by KEY'"),
];

/// What the option `id`, which `view` does not take, is there.
fn other(id: &str, view: &View) -> Option<&'static str> {
    INSTEAD
        .iter()
        .find(|(of, needs, _)| *of == id && (needs.is_empty() || view.takes(needs)))
        .map(|(_, _, sentence)| *sentence)
}

/// Most names in a list.
const LISTED: usize = 4;

/// `a, b and c`, or `a, b, c, d and 9 more`.
fn list(names: &[String]) -> String {
    match names {
        [first @ .., _, _] if names.len() > LISTED + 1 => {
            let first = &first[..LISTED];
            format!("{} and {} more", first.join(", "), names.len() - LISTED)
        }
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// An option as typed; the short form where the long one is less known.
fn flag(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some("event" | "pid" | "tid" | "uid" | "cpus" | "cgroup"), Some(short)) | (None, Some(short)) => {
            format!("-{short}")
        }
        (Some(long), _) => format!("--{long}"),
        (None, None) => arg.get_id().to_string(),
    }
}

/// Help about the view that `words` name; without any about the program.
fn help_of<T>(words: &[&str]) -> Result<T, Stop> {
    let view = match (words, views::named(words.iter().copied())) {
        (_, Some((view, _))) => view,
        ([], None) => VIEWS[0],
        ([word, ..], None) => {
            let near = views::nearest(word.as_ref()).map(|name| format!("did you mean '{name}'?"));
            let near = habits::instead_of(word, words.get(1).copied()).or(near);
            let near = near.map(|text| format!("; {text}")).unwrap_or_default();
            return Err(Stop::Usage(format!("there is no help about '{word}'{near}")));
        }
    };
    Err(Stop::Printed(command(view).render_help().to_string()))
}

/// The command of one view: what help, its man page and completions are made from.
pub(crate) fn command(view: &View) -> Command {
    let name = if view.name.is_empty() { "analyze".to_owned() } else { format!("analyze {}", view.name) };
    let operands = match view.operands {
        Operands::Tape if view.name.is_empty() => "[REPORT] [TAPE|DIR]...",
        Operands::TwoTapes => "BEFORE AFTER",
        Operands::TapeAndCopy => "IN OUT",
        Operands::TapeAndFile => "TAPE FILE",
        Operands::Table => "[TABLE] [TAPE]",
        Operands::Logs => "LOG...",
        Operands::Tape | Operands::Tapes => "[TAPE|DIR]...",
    };
    let owned: Vec<_> = view.own.args().iter().map(|arg| arg.get_id().clone()).collect();
    let own = |arg: &Arg| {
        // --cpu=CPUS is another word for -C where there is no column of CPU time
        let alias = arg.get_id() == "cpu" && !view.takes("summary_mode") && !view.name.is_empty();
        let arg = arg.clone().hide(arg.get_id() == "words" || alias || arg.is_hide_set());
        let shared = match arg.get_help_heading() {
            Some(heading) => ["Filters", "Stacks"].contains(&heading),
            None => !owned.contains(arg.get_id()),
        };
        if shared || view.name.is_empty() { arg } else { arg.help_heading("This report") }
    };
    let args = union(view);
    let shown = |id: &str| view.takes(id) || (view.name.is_empty() && SWITCHES.contains(&id));
    let args = args.get_arguments().filter(|arg| shown(arg.get_id().as_str())).map(own);
    let command = Command::new("analyze")
        .version(env!("CARGO_PKG_VERSION"))
        .override_usage(format!("{name} [OPTIONS] {operands}"))
        .max_term_width(100)
        .disable_help_flag(true)
        .args(args);
    if view.name.is_empty() {
        let about = "Answers questions from a tape recorded by `record`, offline and without root. Without a report's name: what a tape has and what to ask, or with an option every call";
        // what can be asked comes before how
        const ORDER: &str = "{about}\n\n{usage-heading} {usage}\n\n{after-help}\n\n{all-args}";
        return command.about(about).after_help(format!("{}\n{EXAMPLES}", reports())).help_template(ORDER);
    }
    let width = view.examples.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let mut examples = "Examples:".to_owned();
    for (line, what) in view.examples {
        let _ = write!(examples, "\n  {line:width$}  {what}");
    }
    command.about(view.about).after_help(examples).disable_version_flag(true)
}

/// A line about each report, by the question that it answers.
fn reports() -> String {
    let mut text = "Reports, by what you want to know (analyze REPORT --help has their options):\n".to_owned();
    for (question, reports) in views::QUESTIONS {
        let _ = writeln!(text, "\n{question}");
        for (name, answer) in *reports {
            let _ = writeln!(text, "  {name:14}  {answer}");
        }
    }
    text
}

/// The program with a subcommand for each view: what completions are made from.
pub(crate) fn whole() -> Command {
    let views = VIEWS.iter().filter(|view| !view.name.is_empty() && !view.name.contains(' '));
    let named = |view: &&View| command(view).name(view.name).disable_help_subcommand(true);
    // those of two words
    let below = |word: &'static str, about: &'static str| {
        let own = VIEWS
            .iter()
            .filter_map(move |view| Some((view, view.name.split_once(' ').filter(|(first, _)| *first == word)?.1)));
        let beside = beside::WORDS.into_iter().filter_map(move |(name, about)| {
            Some(Command::new(name.split_once(' ').filter(|(first, _)| *first == word)?.1).about(about))
        });
        Command::new(word).about(about).subcommands(own.map(|(view, name)| command(view).name(name)).chain(beside))
    };
    let sql = beside::WORDS.into_iter().filter(|(name, _)| !name.contains(' '));
    command(VIEWS[0])
        .subcommands(views.map(named))
        .subcommand(below("sched", "Runs of threads and their waits for a CPU"))
        .subcommand(below("export", "Tapes in the form of another program"))
        .subcommands(sql.map(|(name, about)| Command::new(name).about(about)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(words: &str) -> String {
        match parse(words.split(' ').map(OsString::from)) {
            Err(Stop::Usage(text)) => text,
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn every_option_of_a_view_exists() {
        let union = union(VIEWS[0]);
        let known: Vec<&str> = union.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        for view in VIEWS {
            for id in view.options.iter().copied().flatten() {
                assert!(known.contains(id), "{}: {id}", view.name);
            }
        }
        let taken = |id: &&str| VIEWS.iter().any(|view| view.takes(id));
        assert!(known.iter().all(taken), "an option that no view takes");
    }

    #[test]
    fn an_option_that_is_not_taken_names_who_takes_it() {
        assert_eq!(
            usage("analyze kills --by comm"),
            "--by is not for 'analyze kills'; it is for 'analyze summary', 'analyze block', 'analyze top', 'analyze files' and 11 more"
        );
        assert!(usage("analyze kills -o x t.tape").contains("analyze ... > FILE"));
        assert!(usage("analyze -s --max-events 2").starts_with("--max-events is not for 'analyze summary'"));
        assert!(usage("analyze check -p 9").starts_with("-p is not for 'analyze check'"));
        assert!(usage("analyze kills -s").starts_with("--summary sums up calls"));
        assert!(usage("analyze kills --comm x.tape").contains("--comm=NAME"));
    }

    #[test]
    fn the_words_choose_the_view() {
        let name = |words: &str| parse(words.split(' ').map(OsString::from)).expect(words).view.name;
        assert_eq!(name("analyze t.tape --duration 10"), "");
        assert_eq!(name("analyze -s t.tape"), "summary");
        assert_eq!(name("analyze summary t.tape"), "summary");
        assert_eq!(name("analyze -S --errno-summary"), "with-summary");
        assert_eq!(name("analyze path -t 5 t.tape"), "path");
        assert_eq!(name("analyze sched latency"), "sched latency");
        assert_eq!(name("analyze sched t.tape"), "sched timehist");
        assert_eq!(name("analyze export strace t.tape"), "export strace");
        assert_eq!(name("analyze --max-events 3 kills t.tape"), "kills");
        // a name behind an option is the option's
        assert_eq!(name("analyze -i block t.tape --comm=net"), "");
        assert_eq!(name("analyze --hist block t.tape"), "block");
    }

    #[test]
    fn help_is_about_what_is_asked() {
        let help = |words: &str| match parse(words.split(' ').map(OsString::from)) {
            Err(Stop::Printed(text)) => text,
            other => panic!("{words}: {other:?}"),
        };
        let kills = help("analyze kills --help");
        assert!(kills.contains("--signal") && !kills.contains("--hist"), "{kills}");
        for same in ["analyze help kills", "analyze kills -h", "analyze kills t.tape --help"] {
            assert_eq!(help(same), kills, "{same}");
        }
        assert!(help("analyze --help").contains("(analyze REPORT --help has their options)"));
        assert_eq!(help("analyze help"), help("analyze --help"));
        assert!(help("analyze -s --help").contains("--errno-summary"));
        // each is in a line of an 80 columns wide terminal, and the first question stands before all options
        let all = help("analyze --help");
        let whole = all
            .split("\n\n")
            .skip_while(|part| !part.starts_with("Reports"))
            .take_while(|part| !part.starts_with("Examples"));
        let lines: Vec<&str> = whole.flat_map(str::lines).collect();
        assert!(lines.len() > 50 && lines.iter().all(|line| line.chars().count() <= 80), "{all}");
        assert!(all.find("\n  why  ") < all.find("\nOptions:"), "{all}");
        assert!(usage("analyze help kils").contains("'kills'"));
    }
}
