//! The options there are: how each takes its value, and values that are something else by habit.

use std::ffi::OsStr;

use clap::{Arg, Command};

/// How an option takes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// Only behind `=`.
    Equals,
}

/// The options there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a>(pub(super) &'a Command);

impl Options<'_> {
    fn takes(arg: &Arg) -> Takes {
        match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
            (false, _) => Takes::Nothing,
            (true, false) => Takes::Value,
            (true, true) => Takes::Equals,
        }
    }

    pub(super) fn long(&self, name: &str) -> Option<(&str, Takes)> {
        if name == "version" {
            return Some(("version", Takes::Nothing));
        }
        let named = |arg: &&Arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        self.0.get_arguments().find(named).map(|arg| (arg.get_id().as_str(), Self::takes(arg)))
    }

    pub(super) fn short(&self, letter: char) -> Option<(&str, Takes)> {
        if letter == 'V' {
            return Some(("version", Takes::Nothing));
        }
        let named = |arg: &&Arg| arg.get_short() == Some(letter);
        self.0.get_arguments().find(named).map(|arg| (arg.get_id().as_str(), Self::takes(arg)))
    }
}

/// Options whose value is checked here, as what is typed after them by habit is something else: ids, and the sentence.
const VALUES: &[(&str, &str)] = &[
    ("pids", "-p takes numbers of processes, such as 2214; --comm=NAME chooses by name"),
    ("tids", "-t takes numbers of threads, such as 2215; --clock wall prints times of day (strace -t)"),
    ("wakers", "--wakers takes the number of a process, such as 2214"),
    ("cpus", "-C takes CPUs, such as 0-3,7; the listing with the summary is -S (strace -C)"),
];

/// Whether it is a list of numbers.
fn is_numbers(text: &str) -> bool {
    text.split(',').all(|number| number.trim().parse::<u32>().is_ok())
}

/// Whether it is a list of CPUs.
pub(super) fn is_cpus(text: &str) -> bool {
    text.split(',')
        .all(|part| part.split('-').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())))
}

/// Refuses a value that the option `id` cannot have.
pub(super) fn check(id: &str, value: &OsStr) -> Result<(), String> {
    let Some((_, sentence)) = VALUES.iter().find(|(option, _)| *option == id) else { return Ok(()) };
    let text = value.to_str().unwrap_or_default();
    let fits = if id == "cpus" { is_cpus(text) } else { is_numbers(text) };
    if fits {
        Ok(())
    } else {
        Err(format!("'{}': {sentence}", crate::values::words::escaped(value.as_encoded_bytes())))
    }
}
