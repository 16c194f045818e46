//! Values of one column.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::table::Type;

use super::fields::Kind;
use systape_answers::render::cell::Cell;

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
    pub fn nulls(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Int | Kind::Instant => Self::Int(vec![None; rows]),
            Kind::Wide => Self::Wide(vec![None; rows]),
            Kind::Real => Self::Real(vec![None; rows]),
            Kind::Flag => Self::Flag(vec![None; rows]),
            Kind::Text => Self::Text(vec![NONE; rows], Vec::new()),
            Kind::Map => Self::Map(vec![None; rows]),
        }
    }

    /// The values of a column of type `ty`; `open`: what its times count from.
    pub(crate) fn of_cells<'c, 'v: 'c>(ty: Type, open: u64, cells: impl Iterator<Item = &'c Cell<'v>>) -> Self {
        let int = |cell: &Cell<'_>| if let Cell::Int(value) = cell { Some(*value) } else { None };
        match ty {
            Type::Time => {
                let ts = |cell: &Cell<'_>| Some(i128::from(open.wrapping_add_signed(cell.int()?)));
                Self::Wide(cells.map(ts).collect())
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

    /// The values of `rows`: the index of the batch whose `columns` they are among, and of the row.
    pub(super) fn picked(columns: &[&Self], rows: &[(u32, u32)]) -> Option<Self> {
        fn of<T: Clone>(lists: Option<Vec<&Vec<T>>>, rows: &[(u32, u32)]) -> Option<Vec<T>> {
            let lists = lists?;
            rows.iter().map(|(batch, row)| lists.get(*batch as usize)?.get(*row as usize).cloned()).collect()
        }
        macro_rules! lists {
            ($kind:ident) => {
                columns.iter().map(|column| if let Self::$kind(list) = column { Some(list) } else { None }).collect()
            };
        }
        Some(match columns.first()? {
            Self::Int(_) => Self::Int(of(lists!(Int), rows)?),
            Self::Wide(_) => Self::Wide(of(lists!(Wide), rows)?),
            Self::Real(_) => Self::Real(of(lists!(Real), rows)?),
            Self::Flag(_) => Self::Flag(of(lists!(Flag), rows)?),
            Self::Map(_) => Self::Map(of(lists!(Map), rows)?),
            Self::Text(..) => {
                let text = |(batch, row): &(u32, u32)| match columns.get(*batch as usize) {
                    Some(Self::Text(codes, names)) => names.get(*codes.get(*row as usize)? as usize),
                    _ => None,
                };
                Self::of_texts(rows.iter().map(|place| text(place).map(Vec::as_slice)))
            }
        })
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
