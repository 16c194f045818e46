//! `analyze schema`: what a line of JSON may be, as JSON Schema, from the declarations that print it.

use std::io::Write as _;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use systape_format::reader::Tape;
use systape_format::table::{ColumnDef, TableDef, Type};

use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, Operands, Part, Rows, View};
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::say::Verdict;
use systape_events::values::words::escaped;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "schema",
    about: "What a line of a report's JSON may be, as JSON Schema",
    operands: Operands::Table,
    examples: [
        ("analyze schema why", "a schema of the lines of 'analyze why --format json'"),
        ("analyze schema", "the reports that have one"),
    ],
    check,
    run: AnswerFn::Lists(run),
    ..View::PLAIN
};

/// The language of schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

fn check(config: &Config) -> Result<()> {
    if config.format != Format::Text {
        bail!("a schema is JSON already: leave out --format");
    }
    Ok(())
}

/// Prints the schema of the report that `config` names, or the names of all.
fn run(config: &Config, views: &'static [&'static View], _tape: Option<&Tape>, out: &mut Out) -> Result<Verdict> {
    let Some(name) = config.second.as_ref().map(|name| name.to_string_lossy()) else {
        out.text(reports(views).map(|(name, _)| name))?;
        return Ok(out.flush().map(|()| Verdict::default())?);
    };
    let (name, rows) = of_report(views, &name)?;
    let text = serde_json::to_string_pretty(&schema(name, &rows))?;
    out.text([text])?;
    Ok(out.flush().map(|()| Verdict::default())?)
}

/// The names of reports that have rows, and the rows.
pub(crate) fn reports(views: &'static [&'static View]) -> impl Iterator<Item = (&'static str, Vec<&'static Rows>)> {
    views.iter().filter_map(|view| {
        let rows: Vec<&Rows> = view.tables.iter().collect();
        let name = if view.name.is_empty() { "listing" } else { view.name };
        (!rows.is_empty()).then_some((name, rows))
    })
}

/// The report called `name`, and its rows.
///
/// # Errors
/// There is none of that name that has rows.
pub(crate) fn of_report(views: &'static [&'static View], name: &str) -> Result<(&'static str, Vec<&'static Rows>)> {
    // a report of two words is one argument or has a line between them
    let is = |of: &str| of == name || of.replace(' ', "-") == name;
    reports(views).find(|(of, _)| is(of)).ok_or_else(|| {
        let near = systape_abi::nearest(name, reports(views).map(|(name, _)| name));
        let near = near.first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        BadUsage(format!("no report '{}' has rows{near}", escaped(name.as_bytes()))).into()
    })
}

/// The schema of one line of `report`.
fn schema(report: &str, rows: &[&Rows]) -> Value {
    let lines: Vec<Value> = rows.iter().map(|rows| line(rows)).collect();
    let words = if report == "listing" { String::new() } else { format!("{report} ") };
    json!({
        "$schema": DIALECT,
        "title": format!("A line of analyze {words}--format json"),
        "description": "A number that a loss can change has a boolean beside it (x_at_least, x_at_most, x_of_known) that says whether it did. \
                        null: not known.",
        "anyOf": lines,
    })
}

/// The schema of a line that is a row of `rows`.
pub(crate) fn line(rows: &Rows) -> Value {
    // who asks for several tapes has these in front
    let mut properties =
        Map::from_iter(["host", "tape"].map(|name| (name.to_owned(), json!({"type": ["string", "null"]}))));
    let mut required = Vec::new();
    let mut about = Vec::new();
    for part in rows.parts {
        let table = part.table();
        // fields stand in an object that its own column has
        if matches!(part, Part::Fields(_)) {
            continue;
        }
        about.push(table.doc.trim());
        for (name, property) in members(table) {
            if matches!(part, Part::All(_)) {
                required.push(name.clone());
            }
            properties.insert(name, property);
        }
    }
    json!({
        "type": "object",
        "title": rows.report,
        "description": about.join(" "),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The members of an object that has the columns of `table`: columns of a group are one object.
fn members(table: &TableDef) -> Vec<(String, Value)> {
    let mut members: Vec<(String, Value)> = Vec::new();
    for column in table.columns.iter() {
        let of_column = with_mark(column);
        if column.group.is_empty() {
            members.extend(of_column);
            continue;
        }
        let place = members.iter().position(|(name, _)| **name == *column.group);
        let at = place.unwrap_or_else(|| {
            let object =
                json!({"type": ["object", "null"], "properties": {}, "required": [], "additionalProperties": false});
            members.push((column.group.to_string(), object));
            members.len() - 1
        });
        for (name, property) in of_column {
            members[at].1["required"].as_array_mut().into_iter().for_each(|names| names.push(name.clone().into()));
            members[at].1["properties"][name] = property;
        }
    }
    members
}

/// A column, and the boolean beside it.
fn with_mark(column: &ColumnDef) -> Vec<(String, Value)> {
    let mut property = typed(column);
    property["description"] = column.doc.to_string().into();
    if !column.ty.unit().is_empty() {
        property["unit"] = column.ty.unit().into();
    }
    let mark = column.short.suffix().map(|suffix| {
        let about = format!("whether {} is such a bound; null: it is null", column.name);
        (format!("{}{suffix}", column.name), json!({"type": ["boolean", "null"], "description": about}))
    });
    [(column.name.to_string(), property)].into_iter().chain(mark).collect()
}

/// What a value of `column` may be.
fn typed(column: &ColumnDef) -> Value {
    match column.ty {
        // addresses and offsets are text
        Type::Int if column.name == "ret" => json!({"type": ["integer", "string", "null"]}),
        Type::Time | Type::Duration | Type::Count | Type::Bytes | Type::Int => json!({"type": ["integer", "null"]}),
        Type::Real => json!({"type": ["number", "null"]}),
        Type::Wide | Type::Unread => json!({"type": ["string", "null"], "pattern": "^-?[0-9]+$"}),
        Type::Hex => json!({"type": ["string", "null"], "pattern": "^0x"}),
        Type::Flag => json!({"type": ["boolean", "null"]}),
        // bytes that are no UTF-8 come as both
        Type::Str => json!({
            "anyOf": [
                {"type": ["string", "null"]},
                {
                    "type": "object",
                    "properties": {"text": {"type": "string"}, "hex": {"type": "string"}},
                    "required": ["text", "hex"],
                },
            ],
        }),
        Type::Word => json!({"type": ["string", "null"]}),
        Type::Task => json!({"type": ["object", "null"]}),
        Type::Stack => json!({"type": ["array", "null"]}),
        Type::Nested => json!({"type": ["array", "object", "null"]}),
    }
}
