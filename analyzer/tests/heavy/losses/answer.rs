//! Answers in JSON as rows of declared columns, and what one that lacks something may say beside the whole one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value};
use systape_analyzer::exercise::{Part, Rows};
use systape_format::table::{ColumnDef, Short, TableDef};

/// Columns that number the rows of an answer, and so have no meaning beside another answer.
const NUMBERS: [&str; 4] = ["id", "depth", "act", "rank"];

/// Columns that tell how the others are known.
const KNOWING: [&str; 6] = ["ledger_calls", "quantile_error", "outcome_maybe_cause", "open", "complete", "unseen"];

/// Columns that may be another one when something is lost: a time of day follows from the samples of clocks that are there, and what a
/// thread is called is the last that was heard.
const AS_HEARD: [&str; 3] = ["time", "time_uncertain_ns", "comm"];

/// Columns that say how well another is known, the best first: what lacks something says a later word, or none.
const WEAKER: [(&str, &[&str]); 1] = [("cost_is", &["saved", "rough", "at_most"])];

/// Columns whose sentences say in words what the others of their row say with marks.
const IN_WORDS: [(&str, &str); 1] = [("why", "text")];

/// What is said of a descriptor as it was last seen, if it says itself that it may be another one by now.
const AS_SEEN: [&str; 7] = ["kind", "name", "given", "mode", "cloexec", "since_ns", "by"];

/// What stands for a stack or a way that is not known.
const NOT_KNOWN: [&str; 4] = ["?", "unknown", "unreadable", "not-stored"];

/// Quantiles that are known to a relative error beside them.
const QUANTILES: [&str; 6] = ["p50_ns", "p99_ns", "p50_ns_before", "p99_ns_before", "p50_ns_after", "p99_ns_after"];

/// A value, how it may be off, and whether the answer says that it is; None: of null it says nothing.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub value: Value,
    pub short: Short,
    pub flag: Option<bool>,
}

/// A row by full names of its columns.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub table: String,
    pub key: String,
    /// A part of the key is not known: what is in it may belong to others.
    pub vague: bool,
    pub values: BTreeMap<String, Told>,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub rows: Vec<Row>,
    /// It says that something is lost.
    pub lost: bool,
}

/// Which part of `rows` the columns of a line can be of: their names and declarations; keys come first.
fn declared<'a>(rows: &'a Rows, line: &Map<String, Value>) -> Option<(&'a TableDef, Vec<(&'a ColumnDef, bool)>)> {
    let mut columns = Vec::new();
    let mut main = None;
    for part in rows.parts.iter().filter(|part| !matches!(part, Part::Fields(_))) {
        let name =
            |column: &ColumnDef| if column.group.is_empty() { column.name.clone() } else { column.group.clone() };
        let there = |column: &&ColumnDef| line.contains_key(&*name(column));
        let table = part.table();
        let found: Vec<&ColumnDef> = table.columns.iter().filter(there).collect();
        if matches!(part, Part::All(_)) {
            main = main.or(Some(table));
            if found.len() < table.columns.len() {
                return None;
            }
        }
        let is_by = matches!(part, Part::Keys(_));
        columns.extend(found.into_iter().map(|column| (column, is_by)));
    }
    let known = |name: &str| {
        columns.iter().any(|(column, _)| {
            let short = column.short.suffix().and_then(|suffix| name.strip_suffix(suffix));
            name == column.name || name == column.group || short == Some(&*column.name)
        })
    };
    line.keys().all(|name| known(name)).then_some((main?, columns))
}

fn row(all: &[Rows], line: Map<String, Value>) -> Option<Row> {
    let (table, columns) = all.iter().find_map(|rows| declared(rows, &line))?;
    let mut values = BTreeMap::new();
    let (mut key, mut vague) = (Vec::new(), false);
    // a task is called what was heard of it last: its number says which it is
    let by_task = columns.iter().any(|(column, is_by)| *is_by && ["pid", "tid"].contains(&&*column.name));
    assert!(columns.iter().any(|(column, _)| column.key), "which columns of '{}' say which row is which?", table.name);
    for (column, is_by) in columns {
        let is_key = column.key && !(is_by && by_task && column.name == "comm");
        let of = if column.group.is_empty() { Some(&line) } else { line[&*column.group].as_object() };
        let value = of.map_or(Value::Null, |of| of[&*column.name].clone());
        let flag = column.short.suffix().and_then(|suffix| of?.get(&format!("{}{suffix}", column.name))?.as_bool());
        let name = column.full_name();
        // time of a budget is split by them
        let splits = name == "by_comm" && line.get("kind").is_some_and(|kind| kind == "budget");
        if is_key || splits {
            key.push(format!("{name}={value}"));
            vague |= value.is_null() || value == "?";
        }
        if !is_key && !NUMBERS.contains(&name.as_str()) {
            values.insert(name, Told { value, short: column.short, flag });
        }
    }
    Some(Row { table: table.name.to_string(), key: format!("{} {}", table.name, key.join(" ")), vague, values })
}

/// A number for a text: the same for the same text.
fn number_of(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The rows that `text` has; lines of losses are none.
pub(crate) fn rows(all: &[Rows], text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut paths: BTreeMap<i64, String> = BTreeMap::new();
    for line in text.lines() {
        let Ok(Value::Object(mut line)) = serde_json::from_str::<Value>(line) else { panic!("not an object: {line}") };
        if line.contains_key("lost") && line.contains_key("cause") {
            continue;
        }
        // of a call graph a row's place is the way to it; each way is quoted in the next: a number of it stays short
        let graph = line.contains_key("self_count");
        let id = line.get("id").and_then(Value::as_i64);
        if let (true, Some(parent)) = (graph, line.get("parent").and_then(Value::as_i64)) {
            line.insert("parent".into(), paths[&parent].clone().into());
        }
        let found = row(all, line.clone()).unwrap_or_else(|| panic!("a row of no table: {line:?}"));
        if let (true, Some(id)) = (graph, id) {
            paths.insert(id, number_of(&found.key));
        }
        rows.push(found);
    }
    rows
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lie {
    /// Table and column, or what happened to a row.
    pub what: String,
    /// The row, and both values.
    pub example: String,
}

/// What `got` says that cannot be so when `whole` is, and how many values were looked at.
pub(crate) fn compare(whole: &Answer, got: &Answer) -> (Vec<Lie>, u64) {
    let mut lies = Vec::new();
    let mut looked = 0;
    let mut left: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    whole.rows.iter().rev().for_each(|row| left.entry(&row.key).or_default().push(row));
    // the ledger does not know of each call which thread made it, or on which file
    let says = got.lost || got.rows.iter().any(is_counted);
    for row in &got.rows {
        let Some(same) = left.get_mut(row.key.as_str()).filter(|same| !same.is_empty()) else {
            if !got.lost && !is_counted(row) {
                lies.push(Lie { what: format!("{}: a row is new", row.table), example: row.key.clone() });
            }
            continue;
        };
        // of several that are alike the one that fits
        let wrong: Vec<Vec<Lie>> = same.iter().map(|is| differences(is, row, says)).collect();
        let at = wrong.iter().rposition(Vec::is_empty).unwrap_or(same.len() - 1);
        lies.extend(wrong[at].iter().cloned());
        same.remove(at);
        looked += row.values.len() as u64;
    }
    let missing = left.into_values().flatten().filter(|_| !says);
    lies.extend(missing.map(|row| Lie { what: format!("{}: a row is missing", row.table), example: row.key.clone() }));
    (lies, looked)
}

fn differences(is: &Row, says: &Row, lost: bool) -> Vec<Lie> {
    let mut lies = Vec::new();
    for (name, told) in &says.values {
        let Some(truth) = is.values.get(name) else {
            lies.push(Lie { what: format!("{}.{name}: it is new", says.table), example: says.key.clone() });
            continue;
        };
        let counted = ledger_calls(says) > 0.0;
        let heard = AS_HEARD.contains(&name.as_str()) && (lost || counted || near_in_time(&truth.value, &told.value));
        let in_words = lost && IN_WORDS.contains(&(says.table.as_str(), name));
        let unsure = says.table == "fds" && lost && says.values["open"].value == Value::Bool(false);
        if in_words || (unsure && AS_SEEN.contains(&name.as_str())) {
            continue;
        }
        if lost && is_weaker(name, &truth.value, &told.value) {
            continue;
        }
        if heard || KNOWING.contains(&name.as_str()) || (QUANTILES.contains(&name.as_str()) && is_near(is, says, name))
        {
            continue;
        }
        // what is not known to be of another row is in the row of what is not known
        let more_is_fine = says.vague && ((lost && told.flag == Some(true)) || counted);
        // nor does a count say how often, when and on which CPU: the answer says that it counts
        let lost = lost || counted;
        if let Some(why) = wrong(truth, told, lost).filter(|_| !more_is_fine) {
            let what = format!("{}.{name}: {why}", says.table);
            let flag = told.flag.map_or("", |flag| if flag { " (short)" } else { " (exact)" });
            lies.push(Lie { what, example: format!("{}: is {}, says {}{flag}", says.key, truth.value, told.value) });
        }
    }
    lies
}

/// Whether `told` says of another column that it is known less well than `truth` does.
fn is_weaker(name: &str, truth: &Value, told: &Value) -> bool {
    let Some((_, words)) = WEAKER.iter().find(|(column, _)| *column == name) else { return false };
    let place = |value: &Value| words.iter().position(|word| value == word).unwrap_or(words.len());
    place(truth) <= place(told)
}

/// Whether a quantile is the same as far as its error lets it be told.
fn is_near(is: &Row, says: &Row, name: &str) -> bool {
    let of = |row: &Row, name: &str| number(&row.values.get(name)?.value);
    let error = of(is, "quantile_error").unwrap_or(0.0) + of(says, "quantile_error").unwrap_or(0.0);
    let (Some(truth), Some(told)) = (of(is, name), of(says, name)) else { return says.values[name].value.is_null() };
    (truth - told).abs() <= 1.0 + error * truth.max(told)
}

/// Whether two times of day, as RFC 3339, are at most a millisecond apart, or one is by how much they may be off.
fn near_in_time(one: &Value, other: &Value) -> bool {
    let ns = |value: &Value| {
        let (_, time) = value.as_str()?.trim_end_matches('Z').split_once('T')?;
        time.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
    };
    match (ns(one), ns(other)) {
        (Some(one), Some(other)) => (one - other).abs() < 1e-3,
        _ => one.is_number() && other.is_number(),
    }
}

/// Calls of a row that the ledger counts.
fn ledger_calls(row: &Row) -> f64 {
    row.values.get("ledger_calls").and_then(|told| number(&told.value)).unwrap_or(0.0)
}

/// Whether a row holds calls of the ledger of which not each key is known: it stands for them in other rows too.
fn is_counted(row: &Row) -> bool {
    row.vague && ledger_calls(row) > 0.0
}

/// Why what an answer says of a value cannot be.
fn wrong(truth: &Told, told: &Told, lost: bool) -> Option<&'static str> {
    let unknown = told.value.is_null() || told.value.as_str().is_some_and(|word| NOT_KNOWN.contains(&word));
    // what the whole answer does not know may not be so either
    if lost && truth.value == "?" {
        return None;
    }
    if truth.value == told.value && (told.flag != Some(false) || truth.flag != Some(true)) {
        return None;
    }
    match (told.short, told.flag) {
        _ if unknown => (!lost).then_some("it is not known, and nothing says that something is lost"),
        (Short::Never, _) => (!lost || !part_of(&told.value, &truth.value)).then_some("it is another one"),
        (_, Some(false)) => Some("it says to be exact"),
        (Short::AtLeast, _) => (!at_most(&told.value, &truth.value)).then_some("it is more than it can be"),
        (Short::AtMost, _) => (!at_most(&truth.value, &told.value)).then_some("it is less than it can be"),
        (Short::OfKnown, _) => None,
    }
}

/// Whether `part` is `whole` but for what is not known of it: of a string the pointer is left, of a descriptor the number.
fn part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Null, _) => true,
        (Value::String(part), _) if part.starts_with("0x") || part == "0" => true,
        // a device without its name
        (Value::String(part), Value::String(_)) if part.split(':').all(|n| n.parse::<u32>().is_ok()) => true,
        // a socket without its peer
        (Value::String(part), Value::String(whole)) if part.starts_with("UNIX") && part.ends_with(']') => {
            part == whole || whole.strip_prefix(&part[..part.len() - 1]).is_some_and(|rest| rest.starts_with("->"))
        }
        (Value::String(part), Value::String(whole)) if part.contains(": ") => {
            let named = |text: &str| -> Vec<(String, String)> {
                let pair = |part: &str| part.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
                text.split(", ").filter_map(pair).collect()
            };
            let (part, whole) = (named(part), named(whole));
            let is = |((name, value), (of, is)): (&(String, String), &(String, String))| {
                name == of && (is.starts_with(value.as_str()) || value.starts_with("0x"))
            };
            part.len() == whole.len() && part.iter().zip(&whole).all(is)
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|is| part_of(value, is)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            let mut rest = whole.iter();
            part.iter().all(|value| rest.any(|is| part_of(value, is)))
        }
        (part, whole) => part == whole,
    }
}

/// Whether a number, or each number of a table of numbers, is not above `most`.
fn at_most(value: &Value, most: &Value) -> bool {
    match (value, most) {
        (Value::Object(value), Value::Object(most)) => {
            // what has no name any more is counted as `unknown`
            let named = value.iter().filter(|(name, _)| *name != "unknown");
            let all = |of: &Map<String, Value>| of.values().filter_map(number).fold(0.0, |sum, n| sum + n);
            named.into_iter().all(|(name, n)| most.get(name).is_some_and(|most| at_most(n, most)))
                && all(value) <= all(most)
        }
        (Value::Array(value), Value::Array(most)) => value.iter().all(|bucket| {
            let same = most.iter().find(|is| (&is["from"], &is["to"]) == (&bucket["from"], &bucket["to"]));
            same.is_some_and(|is| at_most(&bucket["count"], &is["count"]))
        }),
        (value, most) => match (number(value), number(most)) {
            (Some(value), Some(most)) => value <= most,
            // the whole answer does not know either
            (Some(_), None) => most.is_null(),
            _ => false,
        },
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// `answer` as a report would give it that does not care what is lost.
pub(crate) fn careless(answer: &Answer) -> Answer {
    let mut forged = Answer { lost: false, ..answer.clone() };
    let values = forged.rows.iter_mut().flat_map(|row| row.values.values_mut());
    values.filter(|told| told.flag.is_some()).for_each(|told| told.flag = Some(false));
    forged
}

/// The tables that rows of `answers` are of.
pub(crate) fn tables<'a>(answers: impl Iterator<Item = &'a Answer>) -> BTreeSet<String> {
    answers.flat_map(|answer| answer.rows.iter().map(|row| row.table.clone())).collect()
}
