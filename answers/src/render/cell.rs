//! One value, independent of its printed form.

use std::borrow::Cow;

use serde_json::Value;
use systape_format::table::Type;

use super::{csv, json};
use systape_events::values::num;
use systape_events::values::words::escaped;

/// One value of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell<'a> {
    /// Not known, or none.
    #[default]
    Null,
    /// Part of an object that is null as a whole.
    Absent,
    /// Yes or no.
    Flag(bool),
    /// A whole number; the column's type decides how it is written.
    Int(i128),
    /// A fraction; NaN and infinity are null.
    Real(f64),
    /// Text, of any bytes.
    Text(Cow<'a, [u8]>),
    /// An array or an object; CSV has its JSON in one cell.
    Nested(Value),
    /// An array or an object as JSON that acts on no terminal, for values of which there are very many.
    Written(Vec<u8>),
    /// A value with a more readable text for CSV.
    Spelled(Value, String),
}

/// Whether a value is exact. Only columns that missing rows can change ([`systape_format::table::Short`]) distinguish
/// the first two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// An exact value.
    #[default]
    Exact,
    /// A bound, or possibly one, in the way its column says.
    Short,
    /// Not known: the value is null.
    Unknown,
}

impl Known {
    /// Short if `short`, else exact.
    pub fn short_if(short: bool) -> Self {
        if short { Self::Short } else { Self::Exact }
    }

    /// Whether it is a bound; None: it is not known.
    pub fn flag(self) -> Option<bool> {
        match self {
            Self::Exact => Some(false),
            Self::Short => Some(true),
            Self::Unknown => None,
        }
    }
}

impl Cell<'_> {
    /// Makes it a cell that needs nothing else to live.
    pub fn into_owned(self) -> Cell<'static> {
        match self {
            Self::Null => Cell::Null,
            Self::Absent => Cell::Absent,
            Self::Flag(flag) => Cell::Flag(flag),
            Self::Int(value) => Cell::Int(value),
            Self::Real(value) => Cell::Real(value),
            Self::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Self::Nested(value) => Cell::Nested(value),
            Self::Written(json) => Cell::Written(json),
            Self::Spelled(value, text) => Cell::Spelled(value, text),
        }
    }

    /// Value of a whole number of 63 bits; None: it is none.
    pub fn int(&self) -> Option<i64> {
        if let Self::Int(value) = self { i64::try_from(*value).ok() } else { None }
    }

    /// Value of an array or an object; None: it is neither.
    pub fn nested(&self) -> Option<Cow<'_, Value>> {
        match self {
            Self::Nested(value) | Self::Spelled(value, _) => Some(Cow::Borrowed(value)),
            // what we wrote ourselves
            Self::Written(json) => serde_json::from_slice(json).ok().map(Cow::Owned),
            _ => None,
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Absent)
    }

    /// Whether a column of type `ty` may hold it.
    pub fn fits(&self, ty: Type) -> bool {
        match self {
            Self::Null | Self::Absent => true,
            Self::Flag(_) => ty == Type::Flag,
            Self::Real(_) => ty == Type::Real,
            Self::Text(_) => matches!(ty, Type::Str | Type::Word),
            Self::Nested(_) | Self::Written(_) | Self::Spelled(..) => ty == Type::Nested,
            Self::Int(_) => !matches!(ty, Type::Flag | Type::Real | Type::Str | Type::Word | Type::Task | Type::Nested),
        }
    }

    /// Appends it as JSON.
    pub fn json(&self, ty: Type, out: &mut Vec<u8>) {
        match self {
            Self::Null | Self::Absent => out.extend_from_slice(b"null"),
            Self::Flag(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
            Self::Int(value) => match ty {
                Type::Wide | Type::Hex => {
                    out.push(b'"');
                    integer(*value, ty, out);
                    out.push(b'"');
                }
                _ => integer(*value, ty, out),
            },
            Self::Real(value) => real(*value, "null", out),
            Self::Text(text) => json::string(out, text),
            // writing to a Vec never fails
            Self::Nested(value) | Self::Spelled(value, _) => out.extend_from_slice(json::printable(value).as_bytes()),
            Self::Written(json) => out.extend_from_slice(json),
        }
    }

    /// Appends it as a cell of CSV; text is escaped for a terminal, null is empty.
    pub fn csv(&self, ty: Type, out: &mut Vec<u8>) {
        match self {
            Self::Null | Self::Absent => {}
            Self::Flag(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
            Self::Int(value) => integer(*value, ty, out),
            Self::Real(value) => real(*value, "", out),
            Self::Text(text) => csv::field(out, escaped(text).as_bytes()),
            Self::Nested(value) => csv::field(out, json::printable(value).as_bytes()),
            Self::Written(json) => csv::field(out, json),
            Self::Spelled(_, text) => csv::field(out, text.as_bytes()),
        }
    }
}

fn integer(value: i128, ty: Type, out: &mut Vec<u8>) {
    match (u64::try_from(value), i64::try_from(value)) {
        (Ok(0), _) if ty == Type::Hex => out.extend_from_slice(b"0x0"),
        (Ok(value), _) if ty == Type::Hex => num::hex(out, value),
        (Ok(value), _) => num::unsigned(out, value),
        (_, Ok(value)) => num::signed(out, value),
        _ => out.extend_from_slice(value.to_string().as_bytes()),
    }
}

fn real(value: f64, otherwise: &str, out: &mut Vec<u8>) {
    match serde_json::Number::from_f64(value) {
        Some(number) => out.extend_from_slice(number.to_string().as_bytes()),
        None => out.extend_from_slice(otherwise.as_bytes()),
    }
}

macro_rules! from_integers {
    ($($ty:ty),*) => { $(impl From<$ty> for Cell<'_> {
        fn from(value: $ty) -> Self {
            Self::Int(value.into())
        }
    })* };
}

from_integers!(u8, u16, u32, u64, i32, i64, i128);

impl From<usize> for Cell<'_> {
    fn from(value: usize) -> Self {
        Self::Int(value as i128)
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text.into_bytes()))
    }
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<Vec<u8>> for Cell<'_> {
    fn from(text: Vec<u8>) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a Vec<u8>> for Cell<'a> {
    fn from(text: &'a Vec<u8>) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<Value> for Cell<'_> {
    fn from(value: Value) -> Self {
        if value.is_null() { Self::Null } else { Self::Nested(value) }
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_says_how_a_number_is_written() {
        let both = |cell: Cell<'_>, ty| {
            let (mut json, mut csv) = (Vec::new(), Vec::new());
            cell.json(ty, &mut json);
            cell.csv(ty, &mut csv);
            (String::from_utf8(json).unwrap(), String::from_utf8(csv).unwrap())
        };
        let pair = |json: &str, csv: &str| (json.to_owned(), csv.to_owned());
        assert_eq!(both((-5).into(), Type::Time), pair("-5", "-5"));
        assert_eq!(both(u64::MAX.into(), Type::Wide), pair("\"18446744073709551615\"", "18446744073709551615"));
        assert_eq!(both(0_u64.into(), Type::Hex), pair("\"0x0\"", "0x0"));
        assert_eq!(both(0.5.into(), Type::Real), pair("0.5", "0.5"));
        assert_eq!(both(f64::NAN.into(), Type::Real), pair("null", ""));
        assert_eq!(both(None::<u64>.into(), Type::Count), pair("null", ""));
        assert_eq!(both(b"a\x1b,\xff"[..].into(), Type::Str).1, "\"a\\x1b,\\xff\"");
        assert_eq!(both(serde_json::json!(["a,"]).into(), Type::Nested), pair("[\"a,\"]", "\"[\"\"a,\"\"]\""));
        assert!(!Cell::from(1).fits(Type::Str) && Cell::from("1").fits(Type::Word) && Cell::Null.fits(Type::Flag));
    }
}
