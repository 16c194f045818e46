//! From words to [`Args`], or to the sentence that says what is wrong with them.

use std::ffi::OsString;

use clap::{Command, CommandFactory, Parser};
use systape_cli::{Options, Stop, Takes};

use crate::commands::ask::Asked;
use crate::options::args::Args;
use crate::options::habits;

/// Reads a command line; the first word is the program's name.
///
/// # Errors
/// It cannot be followed, or asks for help.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Args, Stop> {
    let command = Args::command();
    let args = Args::try_parse_from(apart(words, &command)?).map_err(|error| Stop::new(&error, &command))?;
    match args.command.first().and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        Some(word) => Err(Stop::Usage(habits::unknown(word))),
        None => Ok(args),
    }
}

/// Reads the command line of a request; the first word is the program's name.
///
/// # Errors
/// As [`parse`].
pub fn parse_request(words: impl IntoIterator<Item = OsString>) -> Result<Asked, Stop> {
    Asked::try_parse_from(words).map_err(|error| Stop::new(&error, &Asked::command()))
}

/// The words with each value apart from the letter that it stands behind: `-F99` is `--freq=99`. clap takes a word in which a letter is no
/// option for the command, here by its 9. From the command on words stay as they are.
fn apart(words: impl IntoIterator<Item = OsString>, command: &Command) -> Result<Vec<OsString>, Stop> {
    let mut words = words.into_iter();
    let mut all: Vec<OsString> = words.by_ref().take(1).collect();
    while let Some(word) = words.next() {
        let name = word.to_str().and_then(|text| text.strip_prefix('-')).filter(|name| name.len() > 2);
        let name = name.and_then(|name| name.split('=').next());
        if let Some(name) = name.filter(|name| Options(command).long(name).is_some()) {
            return Err(Stop::Usage(format!("-{name}: an option of several letters has two hyphens: --{name}")));
        }
        let read = word.to_str().and_then(|text| option(text, command));
        let Some((option, takes_next)) = read else {
            all.push(word);
            break;
        };
        all.extend(option.into_iter().map(OsString::from));
        all.extend(takes_next.then(|| words.next()).flatten());
    }
    all.extend(words);
    Ok(all)
}

/// The words that an option, or several letters, come to, and whether the next word is their value. None: it is no option.
fn option(text: &str, command: &Command) -> Option<(Vec<String>, bool)> {
    let options = Options(command);
    if let Some(name) = text.strip_prefix("--") {
        let (_, takes) = options.long(name.split('=').next()?)?;
        return Some((vec![text.to_owned()], takes == Takes::Value && !name.contains('=')));
    }
    let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty())?;
    let mut all = Vec::new();
    for (at, letter) in letters.char_indices() {
        let (id, takes) = options.short(letter)?;
        if takes != Takes::Value {
            all.push(format!("-{letter}"));
            continue;
        }
        let value = &letters[at + letter.len_utf8()..];
        let long = command.get_arguments().find(|arg| arg.get_id() == id)?.get_long()?;
        all.push(if value.is_empty() {
            format!("--{long}")
        } else {
            format!("--{long}={}", value.strip_prefix('=').unwrap_or(value))
        });
        return Some((all, value.is_empty()));
    }
    Some((all, false))
}
