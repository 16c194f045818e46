//! What a view is: one question that can be asked. Each is declared in its report's own file; [`crate::views`] lists them.

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Command};
use systape_format::reader::Tape;
use systape_format::table::TableDef;

use super::Config;
use crate::output::NewFile;
use crate::say::Verdict;

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

/// One view.
#[derive(Debug)]
pub struct View {
    /// The words that choose it; "" for the listing.
    pub name: &'static str,
    /// What it answers, in one line.
    pub about: &'static str,
    /// What stands behind the options.
    pub operands: Operands,
    /// The options it takes of those that several share: names of the fields of [`crate::args::Args`], beside [`COMMON`].
    pub options: &'static [&'static [&'static str]],
    /// Its own options.
    pub own: Own,
    /// Two command lines, and what they print.
    pub examples: [(&'static str, &'static str); 2],
    /// Options that choose it without its name.
    pub switches: &'static [&'static str],
    /// What it prints as JSON and CSV.
    pub tables: &'static [Rows],
    /// What cannot be asked together: bad usage.
    pub check: fn(&Config) -> Result<()>,
    /// What it reads beside the tape.
    pub reads: fn(&Config) -> Result<Reads>,
    /// What answers.
    pub run: Run,
}

/// What answers a question.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Prints the answer. What it could not read is told for it.
    Prints(fn(&Config, &Tape) -> Result<Verdict>),
    /// The same, and may write a file.
    Writes {
        /// Makes the file, while that can be done: before rights are given up.
        make: fn(&Config) -> Result<Option<NewFile>>,
        /// Answers.
        run: fn(&Config, &Tape, Option<&mut NewFile>) -> Result<Verdict>,
        /// It is about what cannot be read, and says all of it.
        tells_damage: bool,
    },
    /// Says whether a file is a tape, and sound; it tells of all damage.
    Judges {
        /// Of one that is a tape.
        run: fn(&Config, &Tape) -> Result<Verdict>,
        /// Of one that is none: why.
        not_a_tape: fn(&Config, &str) -> Result<Verdict>,
    },
}

/// What a view reads beside the files that stand behind the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Files.
    pub files: Vec<PathBuf>,
    /// Directories with all that is in them, in which files with better symbols are looked for.
    pub search: Vec<PathBuf>,
}

/// Options of one view alone: a struct of clap's in the view's file.
#[derive(Clone, Copy, Debug)]
pub struct Own(fn(Command) -> Command);

impl Own {
    /// None.
    pub const NONE: Self = Self(|command| command);

    /// Those of `T`; [`Config::own`] gives their values.
    pub const fn of<T: clap::Args>() -> Self {
        Self(T::augment_args)
    }

    /// `command` with these options.
    pub fn add_to(self, command: Command) -> Command {
        (self.0)(command)
    }

    /// Themselves.
    pub fn args(self) -> Vec<clap::Arg> {
        self.add_to(Command::new("")).get_arguments().cloned().collect()
    }
}

/// Columns of a row.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All of them, always.
    All(&'static TableDef),
    /// Those that were asked for, in any order.
    Keys(&'static TableDef),
    /// All of them or none: an option decides.
    Maybe(&'static TableDef),
}

impl Part {
    /// The declaration.
    pub fn table(self) -> &'static TableDef {
        let (Self::All(table) | Self::Keys(table) | Self::Maybe(table)) = self;
        table
    }
}

/// Rows of one kind that a view prints.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The view as typed, with the option that makes it print them; "" = the listing.
    pub report: &'static str,
    /// What their columns are, one part after the other.
    pub parts: &'static [Part],
    /// They are in JSON only: CSV has the first rows of a view.
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
pub const COMMON: &[&str] = &["words", "input", "format", "fail_on_loss", "no_sandbox", "generate", "help"];

/// Filters on whose events count.
pub const TASKS: &[&str] = &["pids", "tids", "users", "comm", "cgroups"];
/// Filters on calls.
pub const CALLS: &[&str] = &["duration", "events", "failure"];
/// Filters on the files that calls are on: reports that take it make their question by [`crate::paths::pick`].
pub const PATHS: &[&str] = &["paths"];
/// The CPUs whose events count.
pub const CPUS: &[&str] = &["cpus", "cpu"];

impl View {
    /// What a view has that says nothing else: reads a tape, has no options, prints nothing.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        operands: Operands::Tape,
        options: &[],
        own: Own::NONE,
        examples: [("", ""); 2],
        switches: &[],
        tables: &[],
        check: |_| Ok(()),
        reads: |_| Ok(Reads::default()),
        run: Run::Prints(|_, _| Ok(Verdict { lost: false, bad: false })),
    };

    /// Whether it takes the option with that name.
    pub fn takes(&self, option: &str) -> bool {
        COMMON.contains(&option)
            || self.options.iter().any(|list| list.contains(&option))
            || self.own.args().iter().any(|arg| arg.get_id() == option)
    }

    /// How messages call it: `analyze kills`, `the listing`.
    pub fn title(&self) -> String {
        if self.name.is_empty() { "the listing".to_owned() } else { format!("'analyze {}'", self.name) }
    }

    /// Whether it writes a tape, the second file.
    pub fn makes_a_copy(&self) -> bool {
        self.operands == Operands::TapeAndCopy
    }
}

/// The values of own options among `matches`.
pub(super) fn own<T: clap::Args>(matches: &ArgMatches) -> Result<T> {
    Ok(T::from_arg_matches(matches)?)
}
