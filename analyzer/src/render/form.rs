//! The forms an answer can have.

use clap::ValueEnum;

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
    /// One record a line, after a header line.
    Csv,
}
