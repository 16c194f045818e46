//! The options of a command: how each takes its value, for those who read words before clap does.

use clap::{Arg, Command};

/// How an option takes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No value.
    Nothing,
    /// The rest of the word, or the next word.
    Value,
    /// Only behind `=`.
    Equals,
}

/// The options there are.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(pub &'a Command);

impl Options<'_> {
    fn takes(arg: &Arg) -> Takes {
        match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
            (false, _) => Takes::Nothing,
            (true, false) => Takes::Value,
            (true, true) => Takes::Equals,
        }
    }

    /// Id and value of `--name`, or of the option that has this as another name; None: there is none.
    pub fn long(&self, name: &str) -> Option<(&str, Takes)> {
        if name == "version" {
            return Some(("version", Takes::Nothing));
        }
        let named = |arg: &&Arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        self.0.get_arguments().find(named).map(|arg| (arg.get_id().as_str(), Self::takes(arg)))
    }

    /// Id and value of `-letter`; None: there is none.
    pub fn short(&self, letter: char) -> Option<(&str, Takes)> {
        if letter == 'V' {
            return Some(("version", Takes::Nothing));
        }
        let named = |arg: &&Arg| arg.get_short() == Some(letter);
        self.0.get_arguments().find(named).map(|arg| (arg.get_id().as_str(), Self::takes(arg)))
    }
}
