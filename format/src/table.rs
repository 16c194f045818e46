//! How a table is declared: its columns with type, unit, class and a sentence each.
//!
//! One [`TableDef`] says what a table holds, wherever it comes from: the events of a tape, or what a report adds up. What prints, checks,
//! redacts or documents a table goes by its declaration and needs no other list of its fields.

use std::borrow::Cow;

use crate::class::Class;

/// A name or a sentence: a constant, or read from a tape.
pub type Name = Cow<'static, str>;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A point in time, ns: CLOCK_MONOTONIC in tapes, since the tape's start (negative before it) in answers.
    Time,
    /// A span of time, ns.
    Duration,
    /// How many.
    Count,
    /// An amount of memory or data that fits 53 bits, bytes.
    Bytes,
    /// A number without a unit that fits 53 bits: a pid, a CPU, a number of the kernel's.
    Int,
    /// A number of up to 64 bits without a unit: an id, an offset, a sum of bytes.
    Wide,
    /// A pattern or an address of up to 64 bits.
    Hex,
    /// A share of 1, a percentage, an average.
    Real,
    /// Yes or no.
    Flag,
    /// Bytes of which nobody promises that they are UTF-8: names, paths.
    Str,
    /// A word or a sentence of ours, or text that is known to be UTF-8.
    Word,
    /// Whose: a task.
    Task,
    /// The functions it happened in: a stack of the segment.
    Stack,
    /// An array or an object, described by the column's sentence.
    Nested,
}

impl Type {
    /// Its name in documents.
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
            Self::Nested => "nested",
        }
    }

    /// The unit of its values; "" without one.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time | Self::Duration => "ns",
            Self::Bytes => "bytes",
            _ => "",
        }
    }

    /// What a value is in JSON; null stands for what is not known.
    pub fn json(self) -> &'static str {
        match self {
            Self::Time | Self::Duration | Self::Count | Self::Bytes | Self::Int | Self::Real => "number",
            Self::Wide => "string, decimal",
            Self::Hex => "string, hex",
            Self::Flag => "boolean",
            Self::Str | Self::Word => "string",
            Self::Task => "object",
            Self::Stack => "array",
            Self::Nested => "array or object",
        }
    }
}

/// In which way a column's value is off when rows are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// In none: a key, a value of a single event.
    Never,
    /// It is too low: counts, sums, maxima.
    AtLeast,
    /// It is too high: minima.
    AtMost,
    /// It is of the rows that are known: averages, quantiles, shares, rates.
    OfKnown,
}

impl Short {
    /// What the name of the column has at its end where it says whether a value is so; None where it never is.
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
    /// The object it is part of, such as `owner`; "" = of none. Columns of an object stand one after the other.
    pub group: Name,
    /// Its name, unique in its table and group.
    pub name: Name,
    /// What its values are.
    pub ty: Type,
    /// In which way they may be off.
    pub short: Short,
    /// What they tell of people and machines; None = nothing.
    pub class: Option<Class>,
    /// One sentence: what it is, and what it means that it is not known.
    pub doc: Name,
}

impl ColumnDef {
    /// A column of a table that a tape defines: part of no object, and as exact as the event it belongs to.
    pub fn stored(name: impl Into<Name>, ty: Type, class: Option<Class>, doc: impl Into<Name>) -> Self {
        Self { group: "".into(), name: name.into(), ty, short: Short::Never, class, doc: doc.into() }
    }

    /// `owner_pid`: unique in its table.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.name.clone().into_owned() } else { format!("{}_{}", self.group, self.name) }
    }
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    /// Its name, unique among all tables.
    pub name: Name,
    /// One sentence: what a row is.
    pub doc: Name,
    /// Its columns in their order.
    pub columns: Cow<'static, [ColumnDef]>,
}

impl TableDef {
    /// Index of the column that has the stacks of its rows: the first, if there are several; None = rows have no stacks.
    pub fn stack_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.ty == Type::Stack)
    }
}

/// Declares tables as constants.
///
/// A line is `name: Type "sentence"`; `?` and a word behind the name say how the value may be off, a class in brackets whom it tells of;
/// `group.name` puts a column into an object.
///
/// ```
/// systape_format::tables! {
///     /// One row a file.
///     pub FILES = "files" {
///         file: Str [Path] "path; null: not known"
///         opens ? AtLeast: Count "how often it was opened"
///         owner.pid: Int "the process that opened it first"
///     }
/// }
/// assert_eq!(FILES.columns[2].full_name(), "owner_pid");
/// ```
#[macro_export]
macro_rules! tables {
    ($($(#[doc = $doc:literal])+ $vis:vis $table:ident = $name:literal {
        $($first:ident $(. $second:ident)? $(? $short:ident)?: $ty:ident $([$class:ident])? $column:literal)*
    })*) => { $(
        $(#[doc = $doc])+
        $vis static $table: $crate::table::TableDef = $crate::table::TableDef {
            name: ::std::borrow::Cow::Borrowed($name),
            doc: ::std::borrow::Cow::Borrowed(concat!($($doc),+)),
            columns: ::std::borrow::Cow::Borrowed(&[$($crate::table::ColumnDef {
                group: ::std::borrow::Cow::Borrowed($crate::tables!(@group $first $($second)?)),
                name: ::std::borrow::Cow::Borrowed($crate::tables!(@name $first $($second)?)),
                ty: $crate::table::Type::$ty,
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
            file: Str [Path] "path; null: not known"
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
        assert_eq!(FILES.doc.trim(), "One row a file.");
    }
}
