//! Numbers of answers, and what is known of them.

use std::cmp::Ordering;

use systape_answers::render::cell::{Cell, Known};
use systape_events::values::timespec;
use systape_format::table::{Short, Type};

/// A number in millionths: fractions have six places, and whole numbers of 64 bits are exact.
pub(super) type Millionths = i128;

/// One, in millionths.
const ONE: Millionths = 1_000_000;

/// What a number is not below, and not above; None: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberBounds {
    /// The least that it can be.
    pub least: Option<Millionths>,
    /// The most.
    pub most: Option<Millionths>,
}

impl NumberBounds {
    /// A number that is known.
    pub(super) fn exactly(number: Millionths) -> Self {
        Self { least: Some(number), most: Some(number) }
    }

    /// A number of things, or one that may be more.
    pub(super) fn count(number: usize, or_more: bool) -> Self {
        let number = number as Millionths * ONE;
        Self { least: Some(number), most: (!or_more).then_some(number) }
    }

    /// What a cell of a column holds. None: the column has no numbers.
    pub(super) fn of(cell: &Cell<'_>, known: Known, short: Short) -> Option<Self> {
        let number = match cell {
            Cell::Int(number) => number.saturating_mul(ONE),
            Cell::Real(number) => (number * ONE as f64).round() as Millionths,
            Cell::Flag(flag) => Millionths::from(*flag) * ONE,
            Cell::Null | Cell::Absent => return Some(Self::default()),
            Cell::Text(_) | Cell::Nested(_) | Cell::Written(_) | Cell::Spelled(..) => return None,
        };
        Some(match (known, short) {
            (Known::Exact, _) => Self::exactly(number),
            (Known::Short, Short::AtLeast) => Self { least: Some(number), most: None },
            (Known::Short, Short::AtMost) => Self { least: None, most: Some(number) },
            _ => Self::default(),
        })
    }

    /// Sum of two.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = |a: Option<Millionths>, b: Option<Millionths>| Some(a?.saturating_add(b?));
        Self { least: sum(self.least, other.least), most: sum(self.most, other.most) }
    }

    /// The larger of two.
    pub(super) fn max(self, other: Self) -> Self {
        // one that is known bounds it from below, whatever the other is
        Self { least: self.least.max(other.least), most: self.most.zip(other.most).map(|(a, b)| a.max(b)) }
    }

    /// The smaller of two.
    pub(super) fn min(self, other: Self) -> Self {
        let most = match (self.most, other.most) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Self { least: self.least.zip(other.least).map(|(a, b)| a.min(b)), most }
    }
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareOp {
    /// Less, `<`.
    Less,
    /// No more, `<=`.
    AtMost,
    /// More, `>`.
    More,
    /// No less, `>=`.
    AtLeast,
    /// Equal, `=` or `==`.
    Equal,
    /// Another number, `!=`.
    Other,
}

impl CompareOp {
    /// All of them as they are written, the longer ones first.
    pub(super) const WRITTEN: [(&'static str, Self); 7] = [
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("==", Self::Equal),
        ("!=", Self::Other),
        ("<", Self::Less),
        (">", Self::More),
        ("=", Self::Equal),
    ];

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Equal => order.is_eq(),
            Self::Other => order.is_ne(),
        }
    }

    /// Whether `number` compares so with `value`; None: it may or may not.
    pub(super) fn of(self, number: NumberBounds, value: Millionths) -> Option<bool> {
        let (least, most) = (number.least.map(|least| least.cmp(&value)), number.most.map(|most| most.cmp(&value)));
        match (least, most) {
            (Some(least), Some(most)) if least == most => Some(self.holds(least)),
            // it is on one side of the value wherever it is
            (Some(Ordering::Greater), _) => Some(self.holds(Ordering::Greater)),
            (_, Some(Ordering::Less)) => Some(self.holds(Ordering::Less)),
            (Some(Ordering::Equal), _) if self.holds(Ordering::Equal) == self.holds(Ordering::Greater) => {
                Some(self.holds(Ordering::Equal))
            }
            (_, Some(Ordering::Equal)) if self.holds(Ordering::Equal) == self.holds(Ordering::Less) => {
                Some(self.holds(Ordering::Equal))
            }
            _ => None,
        }
    }
}

/// A number as it is written for a column of type `ty`: a time has a unit, an amount of data may have one.
///
/// # Errors
/// It is none.
pub(super) fn written(text: &str, ty: Type) -> Result<Millionths, String> {
    let whole = |number: u64| Millionths::from(number) * ONE;
    match ty {
        Type::Time | Type::Duration if text.ends_with(|letter: char| letter.is_ascii_digit()) && text != "0" => {
            Err(format!("'{text}': a time has a unit: {text}ms"))
        }
        Type::Time | Type::Duration => timespec::duration(text, 1).map(whole).map_err(|error| error.to_string()),
        Type::Bytes | Type::Wide => systape_cli::size(text).map(whole),
        _ => {
            let number: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
            if number.is_finite() && number.abs() < 1e18 {
                Ok((number * ONE as f64).round() as Millionths)
            } else {
                Err(format!("'{text}' is no number"))
            }
        }
    }
}

/// A number of a column of type `ty`, as text.
pub(super) fn text(number: Millionths, ty: Type) -> String {
    let whole = u64::try_from(number / ONE).ok();
    match (ty, whole) {
        (Type::Duration | Type::Time, Some(ns @ ..1000)) => format!("{ns} ns"),
        (Type::Duration | Type::Time, Some(ns)) => systape_events::values::words::span(ns),
        (Type::Bytes, Some(bytes)) => systape_events::values::words::bytes(bytes),
        _ if number % ONE == 0 => (number / ONE).to_string(),
        _ => format!("{}", number as f64 / ONE as f64),
    }
}

/// What is known of a number, as text; None: nothing.
pub(super) fn within(number: NumberBounds, ty: Type) -> Option<String> {
    match (number.least, number.most) {
        (Some(least), Some(most)) if least == most => Some(text(least, ty)),
        (Some(least), Some(most)) => Some(format!("{} to {}", text(least, ty), text(most, ty))),
        (Some(least), None) => Some(format!(">={}", text(least, ty))),
        (None, Some(most)) => Some(format!("<={}", text(most, ty))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(least: Option<i128>, most: Option<i128>) -> NumberBounds {
        NumberBounds { least, most }
    }

    #[test]
    fn what_is_bounded_compares_where_it_can() {
        use CompareOp::{AtLeast, AtMost, Equal, Less, More, Other};
        let (least, most, exact) = (within(Some(5), None), within(None, Some(5)), within(Some(5), Some(5)));
        let of = |number, value| [Less, AtMost, More, AtLeast, Equal, Other].map(|op| op.of(number, value));
        let (yes, no, perhaps) = (Some(true), Some(false), None);
        assert_eq!(of(exact, 5), [no, yes, no, yes, yes, no]);
        assert_eq!(of(exact, 6), [yes, yes, no, no, no, yes]);
        // at least 5
        assert_eq!(of(least, 4), [no, no, yes, yes, no, yes]);
        assert_eq!(of(least, 5), [no, perhaps, perhaps, yes, perhaps, perhaps]);
        assert_eq!(of(least, 6), [perhaps; 6]);
        // at most 5
        assert_eq!(of(most, 6), [yes, yes, no, no, no, yes]);
        assert_eq!(of(most, 5), [perhaps, yes, no, perhaps, perhaps, perhaps]);
        assert_eq!(of(most, 4), [perhaps; 6]);
        assert_eq!(of(within(None, None), 0), [perhaps; 6]);
        // from 3 to 7
        assert_eq!(of(within(Some(3), Some(7)), 5), [perhaps; 6]);
    }

    #[test]
    fn sums_and_extremes_keep_what_is_known() {
        let (exact, least, none) = (NumberBounds::exactly(4), within(Some(9), None), NumberBounds::default());
        assert_eq!((exact.plus(least), exact.plus(none)), (within(Some(13), None), none));
        assert_eq!((exact.max(least), exact.max(none)), (within(Some(9), None), within(Some(4), None)));
        assert_eq!((exact.min(least), exact.min(none)), (within(Some(4), Some(4)), within(None, Some(4))));
    }

    #[test]
    fn numbers_have_the_units_of_their_columns() {
        assert_eq!(written("50ms", Type::Duration), Ok(50_000_000 * ONE));
        assert!(written("50", Type::Duration).is_err());
        assert_eq!((written("0", Type::Duration), written("2k", Type::Bytes)), (Ok(0), Ok(2048 * ONE)));
        assert_eq!((written("1.5", Type::Real), written("-3", Type::Int)), (Ok(1_500_000), Ok(-3 * ONE)));
        assert!(["x", "", "nan", "1e40"].iter().all(|text| written(text, Type::Count).is_err()));
        assert_eq!((text(1_500_000, Type::Real), text(7 * ONE, Type::Count)), ("1.5".into(), "7".into()));
    }
}
