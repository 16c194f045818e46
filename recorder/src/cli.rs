//! From words to [`Args`], or to the sentence that says what is wrong with them.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};
use systape_cli::Stop;

use crate::args::Args;
use crate::habits;

/// Reads a command line; the first word is the program's name.
///
/// # Errors
/// It cannot be followed, or asks for help.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Args, Stop> {
    let args = Args::try_parse_from(words).map_err(|error| Stop::new(&error, &Args::command()))?;
    match args.command.first().and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        Some(word) => Err(Stop::Usage(habits::unknown(word))),
        None => Ok(args),
    }
}
