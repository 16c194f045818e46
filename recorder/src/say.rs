//! Words for the user on standard error. One that is closed or full is no reason to fail: `eprintln!` would panic.

use std::fmt::Display;
use std::io::Write;

/// Prints one line, as ours.
pub fn say(what: impl Display) {
    writeln!(std::io::stderr(), "record: {what}").ok();
}
