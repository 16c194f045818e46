//! From the declaration of a table to the columns of a query: names, kinds, units, sentences.
//!
//! Every table begins with `host`, `date` and `tape`. A column of the declaration becomes one column or a few: a point in
//! time is given since 1970 and since the tape's start, a value that missing rows can change has its flag beside it.

use systape_format::class::Class;
use systape_format::table::{ColumnDef, TableDef, Type};

/// Kind of a column's values. None of them is unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits with a sign.
    Int,
    /// A number of up to 20 digits: one that may have 64 bits without a sign.
    Wide,
    /// A fraction.
    Real,
    /// Yes or no.
    Flag,
    /// Text in UTF-8.
    Text,
    /// µs since 1970, UTC.
    Instant,
    /// Names and texts: the arguments of a call.
    Map,
}

impl Kind {
    /// Name of the type in lists of columns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "bigint",
            Self::Wide => "decimal(20,0)",
            Self::Real => "double",
            Self::Flag => "boolean",
            Self::Text => "text",
            Self::Instant => "timestamp (µs, UTC)",
            Self::Map => "map(text, text)",
        }
    }
}

/// What a column shows of the column of the declaration that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The value.
    Value,
    /// Whether the value is a bound.
    Short,
    /// A point in time, µs since 1970.
    Instant,
    /// Time since the epoch in ns.
    SinceEpoch,
    /// Time in ns since the tape's start.
    SinceStart,
    /// How far apart the two times are that it may be.
    Uncertain,
    /// Nothing: it is the same in all rows of a tape.
    Host,
    /// Day on which the tape begins, in all rows.
    Date,
    /// Id of the tape, in all rows.
    Tape,
    /// The bytes of the names of the row that are not UTF-8.
    Raw,
}

/// One column.
#[derive(Clone, Debug)]
pub struct FrameField {
    /// Name of the column, unique in its table.
    pub name: String,
    /// Kind of its values.
    pub kind: Kind,
    /// Unit of its values; "" without one.
    pub unit: &'static str,
    /// What it reveals of people and machines; None = nothing.
    pub class: Option<Class>,
    /// What it means, and when it is NULL.
    pub doc: String,
    /// Whether it is NULL in no row.
    pub always: bool,
    /// Index of the column of the declaration.
    pub(crate) of: usize,
    /// What it shows of that.
    pub(crate) shows: Shows,
}

/// The columns of `def`, in their order.
pub(crate) fn of(def: &TableDef) -> Vec<FrameField> {
    let mut all = vec![
        constant("host", Shows::Host, Some(Class::Host), "name of the recorded machine; NULL: not known", false),
        constant(
            "date",
            Shows::Date,
            None,
            "day on which the recording began, UTC, as 2026-11-22; NULL: the tape has no clock sample",
            false,
        ),
        constant("tape", Shows::Tape, None, "id of the tape, 32 hexadecimal digits", true),
    ];
    let timed = def.columns.iter().any(|column| &*column.name == "ts_ns" && column.ty == Type::Time);
    for (at, column) in def.columns.iter().enumerate() {
        // the columns made of `ts_ns` say it
        if timed && column.group.is_empty() && ["time", "time_uncertain_ns"].contains(&&*column.name) {
            continue;
        }
        if column.ty == Type::Time {
            times(at, column, &mut all);
        } else {
            all.push(plain(at, column));
        }
        if let Some(suffix) = column.short.suffix() {
            let (name, doc) = (format!("{}{suffix}", base(column)), short_doc(suffix, &base(column)));
            all.push(FrameField {
                name,
                kind: Kind::Flag,
                unit: "",
                class: None,
                doc,
                always: false,
                of: at,
                shows: Shows::Short,
            });
        }
    }
    if def.columns.iter().any(|column| column.ty == Type::Str) {
        let doc = "the names of this row that are not UTF-8, as JSON: their bytes in hexadecimal digits by column; NULL: all are";
        all.push(constant("raw", Shows::Raw, Some(Class::String), doc, false));
    }
    all
}

fn constant(name: &str, shows: Shows, class: Option<Class>, doc: &str, always: bool) -> FrameField {
    FrameField {
        name: name.to_owned(),
        kind: Kind::Text,
        unit: "",
        class,
        doc: doc.to_owned(),
        always,
        of: usize::MAX,
        shows,
    }
}

/// The name of a column as a name in SQL.
fn base(column: &ColumnDef) -> String {
    column.full_name().replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_', "_")
}

fn short_doc(suffix: &str, of: &str) -> String {
    match suffix {
        "_at_least" => format!("`{of}` is a lower bound; NULL: it is NULL"),
        "_at_most" => format!("`{of}` is an upper bound; NULL: it is NULL"),
        _ => format!("`{of}` is of the known events alone; NULL: it is NULL"),
    }
}

fn plain(at: usize, column: &ColumnDef) -> FrameField {
    let name = base(column);
    let kind = match column.ty {
        Type::Wide | Type::Unread => Kind::Wide,
        Type::Real => Kind::Real,
        Type::Flag => Kind::Flag,
        Type::Nested if name == "args" && column.class == Some(Class::String) => Kind::Map,
        Type::Hex | Type::Str | Type::Word | Type::Nested => Kind::Text,
        _ => Kind::Int,
    };
    let doc = column.doc.replace("null", "NULL");
    FrameField {
        name,
        kind,
        unit: column.ty.unit(),
        class: column.class,
        doc,
        always: false,
        of: at,
        shows: Shows::Value,
    }
}

/// The columns of a point in time. The main one of a table is `ts_ns`; `X_ns` is another.
fn times(at: usize, column: &ColumnDef, all: &mut Vec<FrameField>) {
    let name = base(column);
    let doc = column.doc.replace("null", "NULL");
    let mut push = |name: String, kind, doc: String, shows| {
        let unit = if kind == Kind::Instant { "µs" } else { "ns" };
        all.push(FrameField { name, kind, unit, class: None, doc, always: false, of: at, shows });
    };
    if name == "ts_ns" {
        push(
            "ts".into(),
            Kind::Instant,
            format!("{doc}: in whole µs; NULL: the tape has no clock sample"),
            Shows::Instant,
        );
    }
    push(
        name.clone(),
        Kind::Int,
        format!("{doc}: ns since 1970; NULL: not known, or the tape has no clock sample"),
        Shows::SinceEpoch,
    );
    if name == "ts_ns" {
        push(
            "rel_ns".into(),
            Kind::Int,
            format!("{doc}: ns since the tape's start, negative before it"),
            Shows::SinceStart,
        );
        let doc = "how far apart the two times are that `ts_ns` may be, because the clock was set; NULL: it is known";
        push("ts_uncertain_ns".into(), Kind::Int, doc.to_owned(), Shows::Uncertain);
    } else {
        let stem = name.strip_suffix("_ns").unwrap_or(&name).to_owned();
        push(
            format!("{stem}_rel_ns"),
            Kind::Int,
            format!("{doc}: ns since the tape's start; NULL: not known"),
            Shows::SinceStart,
        );
    }
}
