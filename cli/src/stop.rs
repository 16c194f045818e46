//! Why there is nothing to do after a command line was read.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Why there is nothing to do after a command line was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Help or a version was asked for: this text.
    Printed(String),
    /// Words that cannot be followed: why, in one line.
    Usage(String),
}

impl Stop {
    /// What clap says of a line that it read for `command`.
    pub fn new(error: &Error, command: &Command) -> Self {
        let text = error.to_string();
        if !error.use_stderr() {
            return Self::Printed(text);
        }
        Self::Usage(match (error.kind(), error.get(ContextKind::InvalidArg)) {
            (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => unknown(word, command, None),
            _ => sentence(&text),
        })
    }
}

/// `--fro is no option of record`, with what to type `instead`, or the option of `command` that may be meant.
pub fn unknown(word: &str, command: &Command, instead: Option<&str>) -> String {
    let name = word.split('=').next().unwrap_or_default();
    let longs = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
    // of these clap knows only when it reads words
    let longs: Vec<&str> = longs.chain(["help", "version"]).collect();
    let near =
        name.strip_prefix("--").map(|name| systape_abi::nearest(name, longs.iter().copied())).unwrap_or_default();
    // the beginning of one
    let begun = longs
        .iter()
        .filter(|long| name.len() > 4 && name.strip_prefix("--").is_some_and(|name| long.starts_with(name)));
    let begun: Vec<&&str> = begun.collect();
    let near = near.first().or(if let [one] = *begun { Some(one) } else { None });
    let more = match (instead, near) {
        (Some(text), _) => format!(": {text}"),
        (None, Some(near)) => format!("; did you mean '--{near}'?"),
        (None, None) => String::new(),
    };
    let mut shown = String::new();
    systape_abi::escape(name.as_bytes(), &mut shown);
    format!("{shown} is no option of {}{more}", command.get_name())
}

/// What clap says over several lines, in one: what is wrong, and a tip or the values that an option takes.
fn sentence(text: &str) -> String {
    let text = text.replace("invalid digit found in string", "it is no number");
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let hint = |line: &str| match line.strip_prefix("tip: ") {
        Some(tip) => Some(format!("; {tip}")),
        None => line.starts_with("[possible values").then(|| format!(" {line}")),
    };
    // what is missing stands in the next line
    let missing = first.ends_with(':').then(|| lines.next().map(|line| format!(" {line}"))).flatten();
    format!("{first}{}{}", missing.unwrap_or_default(), lines.find_map(hint).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, value_parser};

    fn said(words: &[&str]) -> String {
        let number = Arg::new("count").long("count").value_parser(value_parser!(u32));
        let form = Arg::new("format").long("format").value_parser(["text", "json"]);
        let command = Command::new("record").args([number, form, Arg::new("old").long("cuont").num_args(0).hide(true)]);
        match Stop::new(&command.clone().try_get_matches_from(words).unwrap_err(), &command) {
            Stop::Usage(text) | Stop::Printed(text) => text,
        }
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        assert_eq!(said(&["record", "--coumt=3"]), "--coumt is no option of record; did you mean '--count'?");
        assert_eq!(said(&["record", "--cou=3"]), "--cou is no option of record; did you mean '--count'?");
        assert_eq!(said(&["record", "--nothing-like-it"]), "--nothing-like-it is no option of record");
        assert_eq!(said(&["record", "-\x1b"]), "-\\x1b is no option of record");
        assert_eq!(said(&["record", "--count", "x"]), "invalid value 'x' for '--count <count>': it is no number");
        let form = said(&["record", "--format", "xml"]);
        assert!(form.starts_with("invalid value 'xml'") && form.ends_with("[possible values: text, json]"), "{form}");
        assert_eq!(unknown("--coumt", &Command::new("x"), Some("type y")), "--coumt is no option of x: type y");
        let needs = Command::new("record").arg(Arg::new("pid").long("pid").required(true));
        let error = needs.clone().try_get_matches_from(["record"]).unwrap_err();
        assert_eq!(
            Stop::new(&error, &needs),
            Stop::Usage("the following required arguments were not provided: --pid <pid>".to_owned())
        );
        assert!(said(&["record", "--help"]).lines().count() > 3);
    }
}
