//! Tables that the tape defines, as a query sees them.
//!
//! The first column is `ts_ns`, the first task is the row's `pid` to `comm`, others have their column's name before these. A
//! column with the name of one that every table has gets `field_` before it.

use std::borrow::Cow;

use systape_format::class::Class;
use systape_format::table::{ColumnDef, TableDef, Type};

/// Columns that every such table has already.
const TAKEN: [&str; 14] = [
    "host",
    "date",
    "tape",
    "ts",
    "ts_ns",
    "rel_ns",
    "ts_uncertain_ns",
    "pid",
    "tid",
    "upid",
    "utid",
    "comm",
    "uid",
    "raw",
];

/// Columns of a task.
const OF_TASK: [(&str, Type, &str); 5] = [
    ("pid", Type::Int, "process"),
    ("tid", Type::Int, "thread"),
    ("upid", Type::Int, "the process, unique in the tape; null: not known"),
    ("utid", Type::Int, "the thread, unique in the tape; null: not known"),
    ("comm", Type::Str, "name of the thread"),
];

/// A name as a name in SQL.
pub(super) fn sql_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_', "_")
}

/// The name of a column that is no task.
pub(super) fn column_name(name: &str) -> String {
    let name = sql_name(name);
    if TAKEN.contains(&&*name) { format!("field_{name}") } else { name }
}

/// What stands before the names of the task in column `name` of `def`: nothing for the first.
pub(super) fn group(def: &TableDef, name: &str) -> String {
    let first = def.columns.iter().find(|column| column.ty == Type::Task);
    if first.is_some_and(|first| first.name == name) { String::new() } else { column_name(name) }
}

/// The declaration of the table for a query.
pub(super) fn query_def(def: &TableDef) -> TableDef {
    let column = |group: String, name: String, ty, class, doc: &str| ColumnDef {
        group: group.into(),
        ..ColumnDef::stored(name, ty, class, doc.to_owned())
    };
    let mut columns = Vec::new();
    for (at, stored) in def.columns.iter().enumerate() {
        match stored.ty {
            Type::Time if at == 0 => {
                columns.push(column(String::new(), "ts_ns".to_owned(), Type::Time, None, &stored.doc))
            }
            Type::Unread => {}
            Type::Task => {
                let group = group(def, &stored.name);
                columns.extend(OF_TASK.map(|(name, ty, doc)| {
                    let class = (ty == Type::Str).then_some(Class::Comm);
                    column(group.clone(), name.to_owned(), ty, class, &format!("{doc}: {}", stored.doc))
                }));
            }
            ty => {
                let (ty, doc) = match ty {
                    Type::Stack => (Type::Int, format!("{}: its number in table stacks; null: none", stored.doc)),
                    _ => (ty, stored.doc.clone().into_owned()),
                };
                columns.push(column(String::new(), column_name(&stored.name), ty, stored.class, &doc));
            }
        }
    }
    // two names may have become one
    let mut seen = std::collections::HashSet::new();
    columns.retain(|column| seen.insert(column.full_name()));
    TableDef { name: sql_name(&def.name).into(), doc: def.doc.clone(), columns: Cow::Owned(columns) }
}
