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

/// How rows of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One object a line.
    Json,
    /// One row a line, after a line of names.
    Csv,
}

impl Format {
    /// How rows are written; None: as text, which each report does in its way.
    pub fn rows(self) -> Option<Form> {
        match self {
            Self::Text => None,
            Self::Json => Some(Form::Json),
            Self::Csv => Some(Form::Csv),
        }
    }
}
