//! The forms of an answer.

use clap::ValueEnum;

/// When text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// Colours on a terminal that has them, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Also in a pipe or a file.
    Always,
    /// Not at all.
    Never,
}

impl Color {
    /// Whether, if it was said.
    pub fn wanted(self) -> Option<bool> {
        match self {
            Self::Auto => None,
            Self::Always => Some(true),
            Self::Never => Some(false),
        }
    }
}

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One object a line.
    Json,
    /// One record a line, after a header line.
    Csv,
}

/// Form of rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One object a line.
    Json,
    /// One row a line, after a line of names.
    Csv,
}

impl Format {
    /// Form of rows; None: as text, which each report prints in its own way.
    pub fn rows(self) -> Option<Form> {
        match self {
            Self::Text => None,
            Self::Json => Some(Form::Json),
            Self::Csv => Some(Form::Csv),
        }
    }
}

impl Form {
    /// The end of a row.
    pub fn end(self) -> &'static [u8] {
        match self {
            Self::Json => b"}\n",
            Self::Csv => b"\n",
        }
    }
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Json => Self::Json,
            Form::Csv => Self::Csv,
        }
    }
}
