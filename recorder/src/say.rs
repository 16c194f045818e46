//! Messages on standard error. A closed or full one is no reason to fail: `eprintln!` would panic.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

/// Prints one line with our prefix.
pub fn say(what: impl Display) {
    writeln!(std::io::stderr(), "record: {what}").ok();
}

/// A word or a file as it can be typed into a shell.
pub fn quoted(word: impl AsRef<Path>) -> String {
    let text = word.as_ref().to_string_lossy().into_owned();
    let printable = text.replace(char::is_control, "?");
    shlex::try_quote(&printable).map_or_else(|_| printable.clone(), |quoted| quoted.into_owned())
}
