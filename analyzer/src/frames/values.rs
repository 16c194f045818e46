//! Values of one column.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::table::Type;

use super::fields::Kind;
use super::nullable::{Nullable, retain};
use systape_answers::render::cell::Cell;
use systape_events::values::columns;
pub use systape_events::values::columns::NONE;

/// An argument of a call: its name, and its text if it has one.
pub type Argument = (Arc<str>, Option<String>);

/// The values of one column in a batch of rows.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers, and instants in µs.
    Int(Nullable<i64>),
    /// Numbers of up to 64 bits, with a sign or without.
    Wide(Nullable<i128>),
    /// Numbers with fractions.
    Real(Nullable<f64>),
    /// Yes or no.
    Flag(Nullable<bool>),
    /// Texts of any bytes: for each row the index of its text, or [`NONE`].
    Text(Vec<u32>, Vec<Vec<u8>>),
    /// Arguments of calls; None is NULL.
    Map(Vec<Option<Vec<Argument>>>),
}

impl Values {
    /// NULL in all `rows`.
    pub fn nulls(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Int | Kind::Instant => Self::Int(Nullable::all_null(rows)),
            Kind::Wide => Self::Wide(Nullable::all_null(rows)),
            Kind::Real => Self::Real(Nullable::all_null(rows)),
            Kind::Flag => Self::Flag(Nullable::all_null(rows)),
            Kind::Text => Self::Text(vec![NONE; rows], Vec::new()),
            Kind::Map => Self::Map(vec![None; rows]),
        }
    }

    /// The values of a column of type `ty`; `open`: what its times count from. Points in time are the 64 bits of CLOCK_MONOTONIC.
    pub(crate) fn of_cells<'c, 'v: 'c>(ty: Type, open: u64, cells: impl Iterator<Item = &'c Cell<'v>>) -> Self {
        let int = |cell: &Cell<'_>| if let Cell::Int(value) = cell { Some(*value) } else { None };
        match ty {
            Type::Time => {
                let ts = |cell: &Cell<'_>| Some(open.wrapping_add_signed(cell.int()?).cast_signed());
                Self::Int(cells.map(ts).collect())
            }
            Type::Wide | Type::Unread => Self::Wide(cells.map(int).collect()),
            Type::Duration | Type::Count | Type::Bytes | Type::Int | Type::Stack => {
                Self::Int(cells.map(Cell::int).collect())
            }
            Type::Real => {
                let real = |cell: &Cell<'_>| if let Cell::Real(value) = cell { Some(*value) } else { None };
                Self::Real(cells.map(|cell| real(cell).filter(|value| value.is_finite())).collect())
            }
            Type::Flag => {
                Self::Flag(cells.map(|cell| if let Cell::Flag(flag) = cell { Some(*flag) } else { None }).collect())
            }
            Type::Str | Type::Word | Type::Hex | Type::Nested | Type::Task => {
                Self::texts(cells.map(|cell| match cell {
                    Cell::Text(text) => Some(Cow::Borrowed(&**text)),
                    Cell::Nested(value) | Cell::Spelled(value, _) => Some(Cow::Owned(value.to_string().into_bytes())),
                    Cell::Written(json) => Some(Cow::Borrowed(&**json)),
                    Cell::Int(_) => {
                        let mut text = Vec::new();
                        cell.csv(ty, &mut text);
                        Some(Cow::Owned(text))
                    }
                    _ => None,
                }))
            }
        }
    }

    /// Makes a column of texts.
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = Option<&'t [u8]>>) -> Self {
        Self::texts(texts.into_iter().map(|text| text.map(Cow::Borrowed)))
    }

    /// Texts of rows: each is kept once.
    pub(crate) fn texts<'t>(texts: impl IntoIterator<Item = Option<Cow<'t, [u8]>>>) -> Self {
        let mut names: FxHashMap<Cow<'t, [u8]>, u32> = FxHashMap::default();
        let code = |text: Option<Cow<'t, [u8]>>| match text {
            Some(text) => {
                let next = names.len() as u32;
                *names.entry(text).or_insert(next)
            }
            None => NONE,
        };
        let codes = texts.into_iter().map(code).collect();
        let mut all = vec![Vec::new(); names.len()];
        names.into_iter().for_each(|(name, code)| all[code as usize] = name.into_owned());
        Self::Text(codes, all)
    }

    /// Makes a column with one text in all `rows`.
    pub(crate) fn constant(text: Option<&[u8]>, rows: usize) -> Self {
        match text {
            Some(text) => Self::Text(vec![0; rows], vec![text.to_vec()]),
            None => Self::Text(vec![NONE; rows], Vec::new()),
        }
    }

    /// Values in the order of `rows`, each of which is named once.
    pub(super) fn in_order(self, rows: &[u32]) -> Self {
        match self {
            Self::Int(values) => Self::Int(values.at(rows)),
            Self::Wide(values) => Self::Wide(values.at(rows)),
            Self::Real(values) => Self::Real(values.at(rows)),
            Self::Flag(values) => Self::Flag(values.at(rows)),
            Self::Text(codes, names) => Self::Text(columns::in_order(&codes, rows), names),
            Self::Map(mut values) => {
                let taken = |row: &u32| values.get_mut(*row as usize).and_then(Option::take);
                Self::Map(rows.iter().map(taken).collect())
            }
        }
    }

    /// Leaves out the rows that are not `kept`.
    pub(crate) fn keep(&mut self, kept: &[bool]) {
        match self {
            Self::Int(values) => values.keep(kept),
            Self::Wide(values) => values.keep(kept),
            Self::Real(values) => values.keep(kept),
            Self::Flag(values) => values.keep(kept),
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
