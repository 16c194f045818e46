//! What reports declare and what they print is the same: every line of JSON has the columns of one of the report's tables, in order;
//! CSV has exactly the columns of the first, and as many cells in every row; docs/reference/json.md has all of them.
//! `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze tables::` writes the tables of docs/reference/json.md anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::commands::{COMMANDS, MACHINES, OF_FILES};
use crate::common::{self, Place};
use serde_json::Value;
use systape_analyzer::exercise::names as column_names;
use systape_analyzer::exercise::tables as all_tables;
use systape_analyzer::exercise::{Part, Rows};
use systape_answers::catalogue::shape::is_of_line;
use systape_format::model::{Family, Gap};
use systape_format::table::{ColumnDef, Short, TableDef, Type};

/// A value of JSON that knows the order of its keys.
#[derive(Debug)]
enum Tree {
    Object(Vec<(String, Self)>),
    Other(Value),
}

impl Tree {
    fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        Self::ordered(line, value)
    }

    /// `text` is the JSON of `value`.
    fn ordered(text: &str, value: Value) -> Self {
        let Value::Object(map) = value else { return Self::Other(value) };
        let parts = parts(text.trim());
        assert_eq!(parts.len(), map.len(), "a key stands twice: {text}");
        let part = |(name, text): (String, &str)| {
            let value = map[&name].clone();
            (name, Self::ordered(text, value))
        };
        Self::Object(parts.into_iter().map(part).collect())
    }

    fn value(&self) -> Value {
        match self {
            Self::Object(parts) => parts.iter().map(|(name, tree)| (name.clone(), tree.value())).collect(),
            Self::Other(value) => value.clone(),
        }
    }
}

/// Keys of the object that `text` is, in order, with the text of their values.
fn parts(text: &str) -> Vec<(String, &str)> {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).expect("an object");
    let (mut parts, mut begin, mut colon) = (Vec::new(), 0, None);
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut add = |begin: usize, colon: Option<usize>, end: usize| {
        if let Some(colon) = colon {
            let name: String = serde_json::from_str(inside[begin..colon].trim()).expect("a key");
            parts.push((name, inside[colon + 1..end].trim()));
        }
    };
    for (at, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ':' if depth == 0 => colon = colon.or(Some(at)),
            ',' if depth == 0 => {
                add(begin, colon, at);
                (begin, colon) = (at + 1, None);
            }
            _ => {}
        }
    }
    add(begin, colon, inside.len());
    parts
}

/// Cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    assert!(!quoted, "{line}");
    cells.push(cell);
    cells
}

/// The names that a row of `table` has at its top in JSON: an object is one.
fn names_in_json(table: &TableDef) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in table.columns.iter() {
        if column.group.is_empty() {
            names.push(column.name.to_string());
            names.extend(column.short.suffix().map(|suffix| format!("{}{suffix}", column.name)));
        } else if names.last().is_none_or(|last| *last != column.group) {
            names.push(column.group.to_string());
        }
    }
    names
}

/// The columns of `rows` that `names` tell of, if they are these in that order; and which parts that may be missing are there.
fn chosen(rows: &Rows, names: &[&str], of: fn(&TableDef) -> Vec<String>) -> Option<(Vec<ColumnDef>, Vec<bool>)> {
    let (mut columns, mut there): (Vec<ColumnDef>, _) = (Vec::new(), Vec::new());
    let mut left = names;
    for part in rows.parts {
        if matches!(part, Part::Fields(_)) {
            continue;
        }
        if let Part::Keys(table) = part {
            while let Some(column) = left.first().and_then(|first| table.columns.iter().find(|c| c.name == *first)) {
                columns.push(column.clone());
                left = &left[1..];
            }
            continue;
        }
        let expected = of(part.table());
        let is = left.len() >= expected.len() && left.iter().zip(&expected).all(|(name, expected)| name == expected);
        if is {
            columns.extend(part.table().columns.iter().cloned());
            left = &left[expected.len()..];
        }
        match part {
            Part::Maybe(_) => there.push(is),
            _ if is => {}
            _ => return None,
        }
    }
    left.is_empty().then_some((columns, there))
}

/// Whether `value` is one of `column`'s.
fn fits(column: &ColumnDef, value: &Value) -> bool {
    let bytes = || value.as_object().is_some_and(|o| o.len() == 2 && o.contains_key("hex") && o.contains_key("text"));
    match column.ty {
        _ if value.is_null() => true,
        // addresses and offsets: its sentence says so
        Type::Int if column.name == "ret" => value.is_number() || value.is_string(),
        Type::Time | Type::Duration | Type::Count | Type::Bytes | Type::Int => value.is_i64() || value.is_u64(),
        Type::Real => value.is_number(),
        Type::Wide | Type::Unread => value.as_str().is_some_and(|text| text.parse::<i128>().is_ok()),
        Type::Hex => value.as_str().is_some_and(|text| text.starts_with("0x")),
        Type::Flag => value.is_boolean(),
        Type::Str => value.is_string() || bytes(),
        Type::Word => value.is_string(),
        Type::Task => value.is_object(),
        Type::Stack => value.is_array(),
        Type::Nested => value.is_array() || value.is_object(),
    }
}

/// Whether the line is a row of `rows`; which parts that may be missing it has.
fn is_row(rows: &Rows, line: &[(String, Tree)]) -> Option<Vec<bool>> {
    let names: Vec<&str> = line.iter().map(|(name, _)| name.as_str()).collect();
    let (columns, there) = chosen(rows, &names, names_in_json)?;
    let of = |name: &str| line.iter().find(|(n, _)| n == name).map(|(_, tree)| tree).expect("it is there");
    for column in &columns {
        let (value, short) = match &*column.group {
            "" => {
                let short = column.short.suffix().map(|suffix| of(&format!("{}{suffix}", column.name)).value());
                (of(&column.name).value(), short)
            }
            group => match of(group) {
                Tree::Object(parts) => {
                    let names = |c: &ColumnDef| {
                        let short = c.short.suffix().map(|suffix| format!("{}{suffix}", c.name));
                        [c.name.to_string()].into_iter().chain(short)
                    };
                    let declared = columns.iter().filter(|c| c.group == group).flat_map(names);
                    assert!(parts.iter().map(|(name, _)| name.clone()).eq(declared), "{group}: {parts:?}");
                    let of = |name: &str| parts.iter().find(|(n, _)| n == name).expect("it is there").1.value();
                    let short = column.short.suffix().map(|suffix| of(&format!("{}{suffix}", column.name)));
                    (of(&column.name), short)
                }
                tree => {
                    assert!(tree.value().is_null(), "{group}: {tree:?}");
                    (Value::Null, None)
                }
            },
        };
        assert!(fits(column, &value), "{}: {value}", column.full_name());
        if let Some(short) = short {
            assert_eq!(short.is_null(), value.is_null(), "{}: {value}, {short}", column.full_name());
            assert!(short.is_null() || short.is_boolean(), "{}: {short}", column.full_name());
        }
    }
    Some(there)
}

/// Tapes of testdata and of the other tests.
fn tapes(place: &Place) -> Vec<PathBuf> {
    common::events::write(&place.path("events.tape"), false);
    common::life::write(&place.path("life.tape"), &[]);
    common::stacks::write(&place.path("stacks.tape"), 1);
    common::ledger::write(&place.path("ledger.tape"), &[common::gap()]);
    common::events::write(&place.path("lossy.tape"), true);
    common::tables::write(&place.path("tables.tape"));
    common::udp::write(&place.path("udp.tape"), &[]);
    common::held::write(&place.path("held.tape"), &[]);
    common::looks::write(&place.path("looks.tape"), &[Gap { family: Family::Look, ..common::gap() }]);
    common::exchanges::write(&place.path("requests.tape"), &[common::gap()]);
    common::exchanges::write_served(&place.path("served.tape"));
    common::tools::write(&place.path("tools.tape"), &[Gap { family: Family::Tracepoint, ..common::gap() }]);
    let gap = Gap { family: Family::Sample, ..common::gap() };
    common::stacks::write_with(&place.path("samples.tape"), 1, &common::stacks::of_tape(), &[gap]);
    let lost = [Family::Signal, Family::Net].map(|family| Gap { family, ..common::gap() });
    common::life::write(&place.path("lost.tape"), &lost);
    let mut tapes: Vec<PathBuf> = [
        "sample",
        "sched",
        "sched-lost",
        "events",
        "life",
        "stacks",
        "ledger",
        "looks",
        "lossy",
        "lost",
        "tables",
        "udp",
        "tools",
        "samples",
        "held",
        "requests",
        "served",
    ]
    .into_iter()
    .map(|name| place.path(&format!("{name}.tape")))
    .collect();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    for dir in [data.join("tapes"), data.join("fuzz/tapes")] {
        let files = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        tapes.extend(files.filter(|path| path.extension().is_some_and(|e| e == "tape")));
    }
    assert!(tapes.len() > 10, "{tapes:?}");
    tapes.push(MACHINES[1].into());
    // a damaged one: the middle is unreadable
    let mut damaged = fs::read(place.path("sample.tape")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xaa);
    fs::write(place.path("damaged.tape"), damaged).unwrap();
    tapes.push(place.path("damaged.tape"));
    tapes
}

/// Runs `command` on `tape` in `here`, another tape being `sound`; None: it has no answer for it.
fn ask(here: &Place, sound: &Path, command: &str, format: &str, tape: &Path) -> Option<common::Output> {
    let out = here.path("out.tape");
    let _ = fs::remove_file(&out);
    let words = command
        .replace("SOUND", &sound.display().to_string())
        .replace("ASKS", MACHINES[0])
        .replace("TAPE", &tape.display().to_string())
        .replace("OUT", &out.display().to_string());
    let got = here.ask(&format!("{words} --format {format}"));
    assert!(got.status < 100 && !got.err.contains("internal error"), "{words}: {}", got.err);
    assert_ne!(got.status, 2, "{words}: {}", got.err);
    (got.status == 0 || !got.out.is_empty()).then_some(got)
}

fn tables() -> Vec<Rows> {
    all_tables().copied().collect()
}

fn rows_of(all: &[Rows], report: &str, command: &str) -> Vec<Rows> {
    let report = OF_FILES.into_iter().find(|name| command.starts_with(&format!("{name} "))).unwrap_or(report);
    // of a tape of looks a report may have other rows
    let plain = |report: &'static str| report.strip_suffix(OF_LOOKS).unwrap_or(report);
    let asked = report.strip_suffix(OF_LOOKS).unwrap_or(report);
    let rows: Vec<Rows> = all.iter().filter(|rows| plain(rows.report) == asked).cloned().collect();
    assert!(!rows.is_empty(), "{report} is not in the registry");
    rows
}

/// Behind the name of a report whose rows are of looks.
const OF_LOOKS: &str = " of looks";

/// By report and first table: the forms of its rows that were seen.
type Seen = BTreeMap<(String, String), BTreeSet<Vec<bool>>>;

/// Looks at what `command` of `report`, asked in `here`, says of the second of `tapes`; the first is the other tape.
fn look(here: &Place, all: &[Rows], (report, command): (&str, &str), [sound, tape]: [&Path; 2], seen: &mut Seen) {
    let rows = rows_of(all, report, command);
    let told = || format!("{command}: {}", tape.display());
    let Some(json) = ask(here, sound, command, "json", tape) else { return };
    for line in json.out.lines() {
        let Tree::Object(parts) = Tree::parse(line) else { panic!("{}: {line}", told()) };
        let found = rows.iter().find_map(|rows| Some((rows, is_row(rows, &parts)?)));
        let (rows, form) = found.unwrap_or_else(|| panic!("{}: a row of no table: {line}", told()));
        let names: Vec<_> = rows.parts.iter().map(|part| part.table().name.clone()).collect();
        seen.entry((rows.report.to_owned(), names.join("+"))).or_default().insert(form);
    }
    if let Some(csv) = ask(here, sound, command, "csv", tape) {
        let header = cells(csv.out.lines().next().unwrap_or_default());
        let names: Vec<&str> = header.iter().map(String::as_str).collect();
        let of_looks = |rows: &&Rows| rows.report.ends_with(OF_LOOKS) && chosen(rows, &names, column_names).is_some();
        check_csv(rows.iter().find(of_looks).unwrap_or(&rows[0]), &csv.out, &json.out, &told());
    }
}

#[test]
fn every_line_has_the_columns_of_a_declared_table() {
    let place = Place::with_sample();
    let (tapes, all) = (tapes(&place), tables());
    let commands: Vec<(&str, &str)> =
        COMMANDS.iter().flat_map(|(report, commands)| commands.iter().map(|command| (*report, *command))).collect();
    let (next, sound) = (AtomicUsize::new(0), place.path("sample.tape"));
    let work = || {
        let (here, mut seen) = (Place::new(), Seen::new());
        while let Some(asked) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
            for tape in &tapes {
                look(&here, &all, *asked, [&sound, tape], &mut seen);
            }
        }
        seen
    };
    let mut seen = Seen::new();
    std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(work));
        for worker in workers {
            let part = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            part.into_iter().for_each(|(key, forms)| seen.entry(key).or_default().extend(forms));
        }
    });
    for rows in &all {
        let names: Vec<_> = rows.parts.iter().map(|part| part.table().name.clone()).collect();
        let key = (rows.report.to_owned(), names.join("+"));
        let forms = seen.remove(&key).unwrap_or_else(|| panic!("{key:?} was never printed"));
        let maybe = rows.parts.iter().filter(|part| matches!(part, Part::Maybe(_))).count();
        for at in 0..maybe {
            let both: BTreeSet<bool> = forms.iter().map(|form| form[at]).collect();
            assert_eq!(both.len(), 2, "{key:?}: with and without");
        }
    }
    assert_eq!(seen, BTreeMap::new());
}

/// CSV has the columns of `rows`, and as many rows as JSON has of it.
fn check_csv(rows: &Rows, csv: &str, json: &str, told: &str) {
    let mut lines = csv.lines().map(cells);
    let header = lines.next().unwrap_or_else(|| panic!("{told}: no header"));
    if rows.report == "info" {
        assert_eq!(header, ["name", "value"], "{told}");
        let names: Vec<String> =
            lines.inspect(|cells| assert_eq!(cells.len(), 2)).map(|mut cells| cells.remove(0)).collect();
        return assert_eq!(names, column_names(rows.parts[0].table()), "{told}");
    }
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    assert!(chosen(rows, &names, column_names).is_some(), "{told}: {header:?}");
    let lines: Vec<Vec<String>> = lines.collect();
    lines.iter().for_each(|cells| assert_eq!(cells.len(), header.len(), "{told}: {cells:?}"));
    // in the listing's, events are rows of calls
    if rows.report.is_empty() {
        return;
    }
    let row = |line: &str| match Tree::parse(line) {
        Tree::Object(parts) => is_row(rows, &parts).map(|_| parts),
        Tree::Other(_) => None,
    };
    let same: Vec<_> = json.lines().filter_map(row).collect();
    assert_eq!(lines.len(), same.len(), "{told}: rows of CSV and JSON");
    for (cells, parts) in lines.iter().zip(&same) {
        let mut values = BTreeMap::new();
        flatten("", parts, &mut values);
        for (name, cell) in header.iter().zip(cells) {
            match values.get(name).unwrap_or(&Value::Null) {
                Value::Null => assert!(cell.is_empty(), "{told}: {name} is {cell}"),
                // serde_json reads these to the last digit but one
                Value::Number(number) if number.is_f64() => {
                    let (json, csv) = (number.as_f64().unwrap(), cell.parse::<f64>().unwrap());
                    assert!((json - csv).abs() <= 1e-12 * json.abs(), "{told}: {name}: {json} {csv}");
                }
                Value::Bool(_) | Value::Number(_) => assert_eq!(*cell, values[name].to_string(), "{told}: {name}"),
                Value::Array(_) | Value::Object(_) => {}
                // escaped where that is needed
                Value::String(text) => {
                    assert!(cell == text || !text.is_ascii() || cell.contains('\\'), "{told}: {name}: {cell}")
                }
            }
        }
    }
}

/// Fields by their full names: of an object that is a column's value, itself.
fn flatten(group: &str, parts: &[(String, Tree)], into: &mut BTreeMap<String, Value>) {
    for (name, tree) in parts {
        into.insert(format!("{group}{name}"), tree.value());
        if let Tree::Object(parts) = tree {
            flatten(&format!("{name}_"), parts, into);
        }
    }
}

#[test]
fn declarations_are_sound() {
    let all = tables();
    let reports: BTreeSet<&str> = all.iter().map(|rows| rows.report).collect();
    let asked: BTreeSet<&str> =
        COMMANDS.iter().map(|(report, _)| *report).filter(|r| *r != "a file").chain(OF_FILES).collect();
    assert_eq!(reports, asked, "every report of the registry is asked for");
    let mut by_name: BTreeMap<&str, *const TableDef> = BTreeMap::new();
    for rows in &all {
        let mut names = BTreeSet::new();
        for part in rows.parts {
            let table = part.table();
            assert!(std::ptr::eq(*by_name.entry(&table.name).or_insert(table), table), "{}: two tables", table.name);
            assert!(table.doc.trim().ends_with(['.', ':']), "{}: {}", table.name, table.doc);
            for name in column_names(table).into_iter().filter(|_| !matches!(part, Part::Fields(_))) {
                assert!(names.insert(name.clone()), "{} of {:?} stands twice", name, rows.report);
            }
            for column in table.columns.iter() {
                let name = format!("{}.{}", table.name, column.full_name());
                assert!(!column.doc.is_empty() && !column.doc.ends_with('.'), "{name}: {}", column.doc);
                // names of functions tell of the program, not of who runs it: the tape keeps them at every level of redaction
                let free = ["sym"].contains(&&*column.name);
                assert!(column.ty != Type::Str || column.class.is_some() || free, "{name} has no class");
                let texts = matches!(column.ty, Type::Str | Type::Word | Type::Nested | Type::Int);
                assert!(column.class.is_none() || texts, "{name}: a class on what is no text");
                let number = !matches!(column.ty, Type::Str | Type::Word | Type::Flag);
                assert!(column.short == Short::Never || number, "{name}: words are not more or less");
            }
        }
    }
}

/// The objects that `words` answer.
fn objects(place: &Place, words: &str) -> Vec<Value> {
    let got = place.analyze(&format!("{words} --format json"));
    assert_eq!(got.status, 0, "{words}: {got:?}");
    got.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn declarations_are_printed_without_a_tape() {
    let place = Place::with_sample();
    let names = |rows: &[Value], of: &str| -> Vec<String> {
        rows.iter().map(|row| row[of].as_str().unwrap().to_owned()).collect()
    };
    let listed = objects(&place, "tables");
    let declared: BTreeSet<String> =
        all_tables().flat_map(|rows| rows.parts).map(|part| part.table().name.to_string()).collect();
    assert_eq!(names(&listed, "table").into_iter().collect::<BTreeSet<_>>(), declared);
    assert_eq!(listed.len(), declared.len());
    assert!(listed.iter().all(|row| row["rows"].is_null() && row["of"] == "answers"), "{listed:?}");
    // what it says of a report's columns is what the report prints
    let header = place.analyze("exec --format csv sample.tape").out;
    let columns = objects(&place, "tables exec");
    let both = columns.iter().flat_map(|row| [row["column"].as_str(), row["inexact"].as_str()]).flatten();
    assert_eq!(both.collect::<Vec<_>>().join(","), header.lines().next().unwrap());
    assert_eq!(names(&objects(&place, "tables --of sched"), "table").into_iter().collect::<BTreeSet<_>>(), {
        ["by", "losses", "sched_latency", "sched_timehist"].map(str::to_owned).into()
    });
    let unknown = place.analyze("tables sched_latenci");
    assert!(unknown.status == 2 && unknown.err.contains("did you mean 'sched_latency'?"), "{unknown:?}");
    assert_eq!(place.analyze("tables --of kills kills").status, 2);
}

#[test]
fn tables_of_a_tape_have_their_rows() {
    let place = Place::new();
    common::tables::write(&place.path("t.tape"));
    let stored: Vec<Value> =
        objects(&place, "tables -i t.tape").into_iter().filter(|row| row["of"] == "tape").collect();
    assert!(!stored.is_empty());
    for row in &stored {
        let name = row["table"].as_str().unwrap();
        let listed = objects(&place, &format!("-e {name} t.tape"));
        assert_eq!(row["rows"], listed.iter().filter(|line| line["event"] == name).count(), "{row}");
        assert_eq!(row["rows_at_least"], false);
        assert_eq!(objects(&place, &format!("tables {name} -i t.tape")).len() as u64, row["columns"].as_u64().unwrap());
    }
}

/// `text` in lines of at most 118 characters.
fn folded(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() || last.len() + 1 + word.len() <= 118 {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// The table of a declaration as Markdown; `fields`: it is only that of fields in `args`.
fn markdown(table: &TableDef, fields: bool) -> String {
    let mut text = format!("{}\n\n| field | type | |\n|---|---|---|\n", folded(&table.doc));
    for column in table.columns.iter().filter(|column| !fields || !is_of_line(&column.full_name())) {
        let name = match &*column.group {
            group if !group.is_empty() && !fields => format!("{group}.{}", column.name),
            _ => column.full_name(),
        };
        let short = column.short.suffix().map(|suffix| format!(" `{name}{suffix}`")).unwrap_or_default();
        let (json, unit) = (column.ty.json(), column.ty.unit());
        let unit = if unit.is_empty() || json != "number" { String::new() } else { format!(", {unit}") };
        text.push_str(&format!("| `{name}`{short} | {json}{unit} | {} |\n", column.doc.replace('|', "\\|")));
    }
    text
}

#[test]
fn the_document_has_every_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/json.md");
    let text = fs::read_to_string(&path).unwrap();
    let all: BTreeMap<String, &TableDef> =
        all_tables().flat_map(|rows| rows.parts).map(|part| (part.table().name.to_string(), part.table())).collect();
    let printed = || all_tables().flat_map(|rows| rows.parts).filter(|part| !matches!(part, Part::Fields(_)));
    let rows: BTreeSet<&str> = printed().map(|part| &*part.table().name).collect();
    let mut missing: BTreeSet<&str> = all.keys().map(String::as_str).collect();
    let mut made = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("<!-- table ") {
        let (name, after) = after.split_once(" -->\n").expect("the end of the mark");
        let (_, after) = after.split_once("<!-- end -->").expect("the end of the table");
        assert!(missing.remove(name), "{name} stands twice, or no report has it");
        made.push_str(&format!(
            "{before}<!-- table {name} -->\n{}<!-- end -->",
            markdown(all[name], !rows.contains(name))
        ));
        rest = after;
    }
    made.push_str(rest);
    assert_eq!(missing, BTreeSet::new(), "tables that docs/reference/json.md does not have");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &made).unwrap();
    } else {
        assert!(
            made == text,
            "docs/reference/json.md is not what is declared: UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze tables::"
        );
    }
}
