//! Declarations of tables: columns with type, unit, class and description.
//!
//! One [`TableDef`] declares a table, whether it has events of a tape or sums of a report. All code that prints,
//! checks, redacts or documents a table uses its declaration and needs no other list of its fields.

use std::borrow::Cow;

use crate::class::Class;

/// A name or a sentence: a constant, or read from a tape.
pub type Name = Cow<'static, str>;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A point in time, ns: CLOCK_MONOTONIC in tapes, since the tape's start (negative before it) in answers.
    Time,
    /// A span of time, ns.
    Duration,
    /// A number of things.
    Count,
    /// An amount of memory or data that fits 53 bits, bytes.
    Bytes,
    /// A number without a unit that fits 53 bits: a pid, a CPU, a number of the kernel's.
    Int,
    /// A number of up to 64 bits without a unit: an id, an offset, a sum of bytes.
    Wide,
    /// A pattern or an address of up to 64 bits.
    Hex,
    /// A fraction of 1, a percentage, an average.
    Real,
    /// Yes or no.
    Flag,
    /// Bytes that need not be UTF-8: names, paths.
    Str,
    /// A word or a sentence of systape, or other text known to be UTF-8.
    Word,
    /// A task: the one the row belongs to.
    Task,
    /// A stack of the segment: the functions in which the event happened.
    Stack,
    /// Bits for the numbers of the row that are not known: bit n is set if the number in column n + 1 is none. In tapes only.
    Unread,
    /// An array or an object, described by the column's sentence.
    Nested,
}

impl Type {
    /// Name of the type in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Int => "int",
            Self::Wide => "wide",
            Self::Hex => "hex",
            Self::Real => "real",
            Self::Flag => "flag",
            Self::Str => "str",
            Self::Word => "word",
            Self::Task => "task",
            Self::Stack => "stack",
            Self::Unread => "unread",
            Self::Nested => "nested",
        }
    }

    /// Whether its values are numbers in tapes, none of which stands for an unknown one.
    pub fn is_number(self) -> bool {
        !matches!(self, Self::Str | Self::Word | Self::Task | Self::Stack | Self::Unread | Self::Nested)
    }

    /// The unit of its values; "" without one.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time | Self::Duration => "ns",
            Self::Bytes => "bytes",
            _ => "",
        }
    }

    /// Type of a value in JSON; null stands for an unknown value.
    pub fn json(self) -> &'static str {
        match self {
            Self::Time | Self::Duration | Self::Count | Self::Bytes | Self::Int | Self::Real => "number",
            Self::Wide | Self::Unread => "string, decimal",
            Self::Hex => "string, hex",
            Self::Flag => "boolean",
            Self::Str | Self::Word => "string",
            Self::Task => "object",
            Self::Stack => "array",
            Self::Nested => "array or object",
        }
    }
}

/// How missing rows change a column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Not at all: a key, a value of a single event.
    Never,
    /// Missing rows make it too low: counts, sums, maxima.
    AtLeast,
    /// Missing rows make it too high: minima.
    AtMost,
    /// Missing rows may change it either way: averages, quantiles, shares, rates.
    OfKnown,
}

impl Short {
    /// Suffix of the column that says whether a value is such a bound; None if there is none.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Never => None,
            Self::AtLeast => Some("_at_least"),
            Self::AtMost => Some("_at_most"),
            Self::OfKnown => Some("_of_known"),
        }
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDef {
    /// The object it is part of, such as `owner`; "" = none. Columns of an object are adjacent.
    pub group: Name,
    /// Name of the column, unique in its table and group.
    pub name: Name,
    /// Type of its values.
    pub ty: Type,
    /// Whether it is part of the table's key: the columns that say which row is which, the same however much is missing.
    pub key: bool,
    /// How missing rows change them.
    pub short: Short,
    /// What they reveal of people and machines; None = nothing.
    pub class: Option<Class>,
    /// One sentence: its meaning, and the meaning of an unknown value.
    pub doc: Name,
}

impl ColumnDef {
    /// A column of a table that a tape defines: outside any object, and as exact as its event.
    pub fn stored(name: impl Into<Name>, ty: Type, class: Option<Class>, doc: impl Into<Name>) -> Self {
        Self { group: "".into(), name: name.into(), ty, key: false, short: Short::Never, class, doc: doc.into() }
    }

    /// `owner_pid`: unique in its table.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.name.clone().into_owned() } else { format!("{}_{}", self.group, self.name) }
    }
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Name of the table, unique among all tables.
    pub name: Name,
    /// One sentence: the meaning of a row.
    pub doc: Name,
    /// Columns in their order.
    pub columns: Cow<'static, [ColumnDef]>,
}

impl TableDef {
    /// Index of the column with the stacks of its rows: the first, if there are several; None = rows have no stacks.
    pub fn stack_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.ty == Type::Stack)
    }

    /// Index of the column that says which numbers of a row are not known; None = all are.
    pub fn unread_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.ty == Type::Unread)
    }
}

/// Declares tables as constants.
///
/// A line is `name: Type "sentence"`. `?` and a word after the name say how missing rows change the value, a class in
/// brackets what it reveals; `key` after the type makes a column part of the key, `group.name` puts it into an object.
///
/// ```
/// systape_format::tables! {
///     /// One row a file.
///     pub FILES = "files" {
///         file: Str key [Path] "path; null: not known"
///         opens ? AtLeast: Count "how often it was opened"
///         owner.pid: Int "the process that opened it first"
///     }
/// }
/// assert_eq!(FILES.columns[2].full_name(), "owner_pid");
/// assert!(FILES.columns[0].key);
/// ```
#[macro_export]
macro_rules! tables {
    ($($(#[doc = $doc:literal])+ $vis:vis $table:ident = $name:literal {
        $($first:ident $(. $second:ident)? $(? $short:ident)?: $ty:ident $($key:ident)? $([$class:ident])? $column:literal)*
    })*) => { $(
        $(#[doc = $doc])+
        $vis static $table: $crate::table::TableDef = $crate::table::TableDef {
            name: ::std::borrow::Cow::Borrowed($name),
            doc: ::std::borrow::Cow::Borrowed(concat!($($doc),+)),
            columns: ::std::borrow::Cow::Borrowed(&[$($crate::table::ColumnDef {
                group: ::std::borrow::Cow::Borrowed($crate::tables!(@group $first $($second)?)),
                name: ::std::borrow::Cow::Borrowed($crate::tables!(@name $first $($second)?)),
                ty: $crate::table::Type::$ty,
                key: $crate::tables!(@key $($key)?),
                short: $crate::tables!(@short $($short)?),
                class: $crate::tables!(@class $($class)?),
                doc: ::std::borrow::Cow::Borrowed($column),
            }),*]),
        };
    )* };
    (@group $first:ident) => { "" };
    (@group $first:ident $second:ident) => { stringify!($first) };
    (@name $first:ident) => { stringify!($first) };
    (@name $first:ident $second:ident) => { stringify!($second) };
    (@key) => { false };
    (@key key) => { true };
    (@short) => { $crate::table::Short::Never };
    (@short $short:ident) => { $crate::table::Short::$short };
    (@class) => { None };
    (@class $class:ident) => { Some($crate::class::Class::$class) };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::tables! {
        /// One row a file.
        FILES = "files" {
            file: Str key [Path] "path; null: not known"
            opens ? AtLeast: Count "how often it was opened"
            owner.pid: Int "the process that opened it first"
            owner.comm: Str [Comm] "its name"
        }
    }

    #[test]
    fn a_declaration_is_what_was_written() {
        let names: Vec<String> = FILES.columns.iter().map(ColumnDef::full_name).collect();
        assert_eq!(names, ["file", "opens", "owner_pid", "owner_comm"]);
        let [file, opens, pid, _] = &*FILES.columns else { panic!("{FILES:?}") };
        assert_eq!((file.class, file.short, file.ty), (Some(Class::Path), Short::Never, Type::Str));
        assert_eq!((opens.class, opens.short.suffix(), opens.ty.json()), (None, Some("_at_least"), "number"));
        assert_eq!((&*pid.group, &*pid.name, &*pid.doc), ("owner", "pid", "the process that opened it first"));
        assert_eq!(FILES.columns.iter().map(|column| column.key).collect::<Vec<_>>(), [true, false, false, false]);
        assert_eq!(FILES.doc.trim(), "One row a file.");
    }
}
