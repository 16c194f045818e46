//! Values of one column.

use std::sync::Arc;

use super::fields::Kind;

/// An argument of a call: its name, and its text if it has one.
pub type Argument = (Arc<str>, Option<String>);

/// The code of a text that is NULL.
pub const NONE: u32 = u32::MAX;

/// The values of one column in a batch of rows. None is NULL.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers, and instants in µs.
    Int(Vec<Option<i64>>),
    /// Numbers of up to 64 bits, with a sign or without.
    Wide(Vec<Option<i128>>),
    /// Numbers with fractions.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
    /// Texts of any bytes: for each row the index of its text, or [`NONE`].
    Text(Vec<u32>, Vec<Vec<u8>>),
    /// Arguments of calls.
    Map(Vec<Option<Vec<Argument>>>),
}

impl Values {
    /// NULL in all `rows`.
    pub(crate) fn nulls(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Int | Kind::Instant => Self::Int(vec![None; rows]),
            Kind::Wide => Self::Wide(vec![None; rows]),
            Kind::Real => Self::Real(vec![None; rows]),
            Kind::Flag => Self::Flag(vec![None; rows]),
            Kind::Text => Self::Text(vec![NONE; rows], Vec::new()),
            Kind::Map => Self::Map(vec![None; rows]),
        }
    }

    /// Texts, one for each row.
    pub(crate) fn texts(texts: impl IntoIterator<Item = Option<Vec<u8>>>) -> Self {
        let mut names = Vec::new();
        let code = |text: Option<Vec<u8>>| match text {
            Some(text) => {
                names.push(text);
                names.len() as u32 - 1
            }
            None => NONE,
        };
        let codes = texts.into_iter().map(code).collect();
        Self::Text(codes, names)
    }

    /// Words, of which there are few: each is kept once.
    pub(crate) fn words<'a>(words: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let code = |word: Option<&str>| match word {
            Some(word) => match names.iter().position(|name| name == word.as_bytes()) {
                Some(at) => at as u32,
                None => {
                    names.push(word.as_bytes().to_vec());
                    names.len() as u32 - 1
                }
            },
            None => NONE,
        };
        let codes = words.into_iter().map(code).collect();
        Self::Text(codes, names)
    }

    /// Makes a column with one text in all `rows`.
    pub(crate) fn constant(text: Option<&[u8]>, rows: usize) -> Self {
        match text {
            Some(text) => Self::Text(vec![0; rows], vec![text.to_vec()]),
            None => Self::Text(vec![NONE; rows], Vec::new()),
        }
    }

    /// Leaves out the rows that are not `kept`.
    pub(crate) fn keep(&mut self, kept: &[bool]) {
        match self {
            Self::Int(values) => retain(values, kept),
            Self::Wide(values) => retain(values, kept),
            Self::Real(values) => retain(values, kept),
            Self::Flag(values) => retain(values, kept),
            Self::Text(codes, _) => retain(codes, kept),
            Self::Map(values) => retain(values, kept),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Wide(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Text(codes, _) => codes.len(),
            Self::Map(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Leaves out the values that are not `kept`.
fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next() == Some(&true));
}
