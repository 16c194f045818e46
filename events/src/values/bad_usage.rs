//! The error of a question that is wrong.

/// The question was wrong, as only the tape shows: exit status 2.
#[derive(Debug)]
pub struct BadUsage(pub String);

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUsage {}
