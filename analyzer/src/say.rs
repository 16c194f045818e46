//! Messages to the user, and what a report says beyond what it prints.

use std::io::Write;

/// What a report has to say beyond what it printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Something that touches the answer is missing.
    pub lost: bool,
    /// The report's own answer is no: a tape that does not check.
    pub bad: bool,
}

/// The question was wrong, as only the tape could tell: exit status 2.
#[derive(Debug)]
pub struct BadUsage(pub String);

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUsage {}

/// Tells the user something that is not part of the answer; that stderr is closed is no reason to fail.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "analyze: {text}");
}
