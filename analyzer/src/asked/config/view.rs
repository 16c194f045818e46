//! What a view is: one question that can be asked. Each is declared in its report's own file; [`crate::cli::views`] lists them.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Command};
use systape_format::reader::Tape;
use systape_format::table::TableDef;

use super::Config;
use crate::import::LogFile;
use systape_answers::render::out::{Out, TakesRows};
use systape_answers::values::debuginfod::DebuginfodSources;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::say::Verdict;
use systape_events::families;

/// The operands behind the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// A tape, `trace.tape` without one; or several, and directories of tapes.
    Tape,
    /// Two tapes, the earlier one first.
    TwoTapes,
    /// A tape, and the file to write.
    TapeAndCopy,
    /// A tape, and a file that says what is asked.
    TapeAndFile,
    /// The name of a table, or none; `-i` names a tape.
    Table,
    /// Tapes and directories of tapes; the current directory without one.
    Tapes,
    /// Logs of another program.
    Logs,
}

/// One view.
#[derive(Debug)]
pub struct View {
    /// The words that select it; "" for the listing.
    pub name: &'static str,
    /// What the view answers, in one line.
    pub about: &'static str,
    /// Operands of the view.
    pub operands: Operands,
    /// What it is about, as `-e` would say it; empty: all calls.
    pub events: &'static [&'static str],
    /// The shared options it takes: names of the fields of [`crate::asked::args::Args`], beside [`COMMON`].
    pub options: &'static [&'static [&'static str]],
    /// Options of its own.
    pub own: Own,
    /// Two command lines, and what they print.
    pub examples: [(&'static str, &'static str); 2],
    /// Options that select it without its name.
    pub switches: &'static [&'static str],
    /// Rows of the view in JSON and CSV.
    pub tables: &'static [Rows],
    /// Checks for options that exclude each other: bad usage.
    pub check: fn(&Config) -> Result<()>,
    /// What it reads besides the tape.
    pub reads: fn(&Config) -> Result<Reads>,
    /// The function that answers.
    pub run: AnswerFn,
    /// The function that answers of a tape of looks (`record --sample`), by estimates with bounds; None: the same one, which refuses a tape
    /// without the events that it needs.
    pub of_looks: Option<LookAnswer>,
    /// What it says of several tapes.
    pub several: Several,
    /// How it answers while the tape is written; None: it does not.
    pub follow: Option<BeginAnswer>,
}

/// Prints what looks say: the other function is about events, and rows of both are never added up.
pub(crate) type LookAnswer = fn(&Config, &Tape, &mut Out) -> Result<Verdict>;

/// Begins an answer that goes on.
pub(crate) type BeginAnswer = for<'c> fn(&'c Config) -> Result<Box<dyn Follows + 'c>>;

/// An answer that goes on while its tape is written.
pub trait Follows {
    /// Prints what `tape` adds to it: what came last, a segment or a checkpoint, or at last the end. It breaks off when
    /// nothing more is wanted.
    ///
    /// # Errors
    /// The answer cannot be written, or there is none.
    fn add(&mut self, tape: &Tape, out: &mut Out) -> Result<ControlFlow<Verdict, Verdict>>;
}

/// A function that answers of several tapes.
pub(crate) type OfMany = fn(&Config, &[PathBuf], &mut Out) -> Result<Verdict>;

/// What a view of one tape says of several.
#[derive(Clone, Copy, Debug)]
pub enum Several {
    /// The answer of each, one after the other.
    Each,
    /// The lines of all, in order of their times of day.
    Merged,
    /// What this function says, which opens one after the other.
    Added(OfMany),
    /// One answer if `--by` names what a tape has as a whole; else the answer of each.
    AddedBy(OfMany),
}

/// Asks a view, given as the words of its command line without the tape: its rows, and what it says beside them, are passed on.
pub(crate) type Ask<'a> = &'a (dyn Fn(&[String], &mut dyn TakesRows) -> Result<Verdict> + Sync);

/// Fills a file with the answers of other views.
pub(crate) type Composer = fn(&Config, &Tape, &mut NewFile, Ask<'_>, &mut Out) -> Result<Verdict>;

/// What is asked of the tables of tapes.
#[derive(Debug)]
pub struct TablesAsked {
    /// Name of the table.
    pub table: String,
    /// Names of its columns, in their order; empty: all.
    pub columns: Vec<String>,
    /// Whether rows are in order of time.
    pub ordered: bool,
    /// The file to write; None: standard output.
    pub file: Option<NewFile>,
}

/// Writes a table of these tapes, of the rows that pass the filters of the command line.
pub(crate) type WriteTables = fn(&Config, TablesAsked, &[PathBuf]) -> Result<Verdict>;

/// A function that answers.
#[derive(Clone, Copy, Debug)]
pub enum AnswerFn {
    /// Prints the answer. The caller reports what could not be read.
    Prints(fn(&Config, &Tape, &mut Out) -> Result<Verdict>),
    /// A view that may write a file.
    Writes {
        /// Makes the file before rights are given up.
        make: fn(&Config) -> Result<Option<NewFile>>,
        /// Answers.
        run: fn(&Config, &Tape, Option<&mut NewFile>, &mut Out) -> Result<Verdict>,
        /// It reports what cannot be read, completely.
        tells_damage: bool,
    },
    /// Writes a file about one or several tapes, which it opens itself.
    Exports {
        /// Makes the file before rights are given up.
        make: fn(&Config) -> Result<Option<NewFile>>,
        /// Writes it.
        run: fn(&Config, &[PathBuf], Option<&mut NewFile>, &mut Out) -> Result<Verdict>,
    },
    /// Writes a tape of logs.
    Imports {
        /// Finds the logs.
        find: fn(&Config) -> Result<Vec<LogFile>>,
        /// Makes the tape before rights are given up.
        make: fn(&Config) -> Result<NewFile>,
        /// Fills it.
        run: fn(&Config, &[LogFile], &mut NewFile, &mut Out) -> Result<Verdict>,
    },
    /// Writes a table of one or several tapes. Tables are made of the answers of views, so whoever starts the program writes them
    /// ([`WriteTables`]).
    Tables {
        /// Makes the file before rights are given up.
        make: fn(&Config) -> Result<Option<NewFile>>,
        /// What is asked; the file is the one that was made.
        asked: fn(&Config, Option<NewFile>) -> Result<TablesAsked>,
    },
    /// Makes a file of the answers of other views to the same tape.
    Composes {
        /// Makes the file before rights are given up.
        make: fn(&Config) -> Result<NewFile>,
        /// Fills it.
        run: Composer,
    },
    /// Answers by the answers of other views to the same tape; what is not known of it is an exit status of its own.
    Asks(fn(&Config, &Tape, Ask<'_>, &mut Out) -> Result<Verdict>),
    /// Says what answers hold: of the views there are, and of the tape if one is named.
    Lists(fn(&Config, &'static [&'static View], Option<&Tape>, &mut Out) -> Result<Verdict>),
    /// Prints the answer of several tapes, which it opens one after the other.
    Many(OfMany),
    /// Answers others for as long as they ask.
    Serves(ServedTo),
    /// Checks whether a file is a tape, and sound; it reports all damage.
    Judges {
        /// For a tape.
        run: fn(&Config, &Tape, &mut Out) -> Result<Verdict>,
        /// For a file that is no tape: the reason.
        not_a_tape: fn(&Config, &str, &mut Out) -> Result<Verdict>,
    },
}

/// Who is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedTo {
    /// The client of a language model, through standard input and output ([`crate::cli::mcp`]).
    Model,
    /// A browser on this machine ([`crate::cli::open`]).
    Browser,
    /// Somebody at this terminal (`crate::tui`).
    Terminal,
}

/// What a view reads besides its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Files that are read.
    pub files: Vec<PathBuf>,
    /// Directories, read recursively, with files of better symbols.
    pub search: Vec<PathBuf>,
    /// Servers that have such files; None: no server is asked.
    pub fetch: Option<DebuginfodSources>,
}

/// Options of one view alone: a struct of clap's in the view's file.
#[derive(Clone, Copy, Debug)]
pub struct Own(fn(Command) -> Command);

impl Own {
    /// No options.
    pub const NONE: Self = Self(|command| command);

    /// The options of `T`; [`Config::own`] returns their values.
    pub const fn of<T: clap::Args>() -> Self {
        Self(T::augment_args)
    }

    /// `command` with these options.
    pub fn add_to(self, command: Command) -> Command {
        (self.0)(command)
    }

    /// The options themselves.
    pub fn args(self) -> Vec<clap::Arg> {
        self.add_to(Command::new("")).get_arguments().cloned().collect()
    }
}

/// Columns of a row.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All columns, always.
    All(&'static TableDef),
    /// The requested columns, in any order.
    Keys(&'static TableDef),
    /// All columns or none, by an option.
    Maybe(&'static TableDef),
    /// Fields in the object `args`, by their full names, of rows of some kinds: columns that the row has are not among them.
    Fields(&'static TableDef),
}

impl Part {
    /// The declaration.
    pub fn table(self) -> &'static TableDef {
        let (Self::All(table) | Self::Keys(table) | Self::Maybe(table) | Self::Fields(table)) = self;
        table
    }
}

/// Rows of one kind that a view prints.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The view as typed, with the option that prints these rows; "" = the listing.
    pub report: &'static str,
    /// Columns of the rows, one part after the other.
    pub parts: &'static [Part],
    /// Whether they are in JSON only: CSV has the first rows of a view.
    pub json_only: bool,
}

impl Rows {
    /// Rows of JSON and CSV.
    pub const fn of(report: &'static str, parts: &'static [Part]) -> Self {
        Self { report, parts, json_only: false }
    }

    /// Rows of JSON only.
    pub const fn json(report: &'static str, parts: &'static [Part]) -> Self {
        Self { report, parts, json_only: true }
    }
}

/// Options of every view.
pub const COMMON: &[&str] =
    &["words", "input", "format", "color", "wide", "fail_on_loss", "memory", "no_sandbox", "generate", "help"];

/// Filters on tasks of events.
pub(crate) const TASKS: &[&str] = &["pids", "tree", "tids", "users", "comm", "cgroups", "units", "containers", "pods"];
/// Filters on calls.
pub(crate) const CALLS: &[&str] = &["duration", "events", "failure"];
/// Filters on the files that calls are on: reports that take it make their question by [`systape_answers::derive::paths::pick`].
pub(crate) const PATHS: &[&str] = &["paths"];
/// Filters on CPUs of events.
pub(crate) const CPUS: &[&str] = &["cpus", "cpu"];

impl View {
    /// Defaults of a view: reads a tape, has no options, prints nothing.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        operands: Operands::Tape,
        events: &[],
        options: &[],
        own: Own::NONE,
        examples: [("", ""); 2],
        switches: &[],
        tables: &[],
        check: |_| Ok(()),
        reads: |_| Ok(Reads::default()),
        run: AnswerFn::Prints(|_, _, _| Ok(Verdict { lost: false, bad: false })),
        of_looks: None,
        several: Several::Each,
        follow: None,
    };

    /// Whether it takes the option with that name.
    pub fn takes(&self, option: &str) -> bool {
        COMMON.contains(&option)
            || self.options.iter().any(|list| list.contains(&option))
            || self.own.args().iter().any(|arg| arg.get_id() == option)
    }

    /// Name of the view in messages: `analyze kills`, `the listing`.
    pub fn title(&self) -> String {
        if self.name.is_empty() { "the listing".to_owned() } else { format!("'analyze {}'", self.name) }
    }

    /// The function that answers of `tape`.
    pub(crate) fn answers(&self, tape: &Tape) -> AnswerFn {
        match self.of_looks.filter(|_| families::is_of_looks(tape.session())) {
            Some(run) => AnswerFn::Prints(run),
            None => self.run,
        }
    }

    /// Whether its second file is a tape it writes.
    pub fn makes_a_copy(&self) -> bool {
        self.operands == Operands::TapeAndCopy
    }
}

/// The values of own options among `matches`.
pub(super) fn own<T: clap::Args>(matches: &ArgMatches) -> Result<T> {
    Ok(T::from_arg_matches(matches)?)
}
