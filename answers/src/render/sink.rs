//! The only writers of rows as JSON and CSV. They use only a table's declaration.

use systape_format::table::TableDef;

use super::cell::Cell;
use super::form::Form;
use super::form::Format;
use super::label::TapeLabel;
use super::row::Row;

/// The JSON around a column's value.
#[derive(Clone, Debug)]
struct Key {
    /// `,"owner":` where an object begins.
    opens: Option<Vec<u8>>,
    /// `,"pid":`.
    name: Vec<u8>,
    /// `,"dur_ns_at_least":` of a column that missing rows can change.
    short: Option<Vec<u8>>,
    /// The object ends after it.
    closes: bool,
}

/// Prints rows of one table.
#[derive(Clone, Debug)]
pub struct Sink {
    form: Form,
    /// Name of the table.
    table: String,
    keys: Vec<Key>,
    /// Names of the columns in CSV.
    names: Vec<String>,
    /// What stands before the columns of each row: those that tell tapes from each other.
    lead: Vec<u8>,
}

impl Sink {
    /// Prints rows of `table` as `form`, behind the columns of `label`.
    pub fn new(form: Form, table: &TableDef, label: &TapeLabel) -> Self {
        let (keys, lead) = (keys(table, false), label.lead(form.into()));
        Self { form, table: table.name.to_string(), keys, names: label.names().chain(names(table)).collect(), lead }
    }

    /// Has rows with the columns of `more` behind their own, which [`Sink::row_and`] is given.
    pub fn wider(mut self, more: &TableDef) -> Self {
        self.names.extend(names(more));
        self
    }

    /// The head: in CSV the names of the columns, else empty.
    pub fn head(&self) -> Vec<u8> {
        match self.form {
            Form::Json => Vec::new(),
            Form::Csv => format!("{}\n", self.names.join(",")).into_bytes(),
        }
    }

    /// Appends a row with its newline.
    pub fn row(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        self.row_and(out, row, &[]);
    }

    /// Appends a row with its newline, and with the columns `more` behind its own.
    pub fn row_and(&self, out: &mut Vec<u8>, row: &Row<'_>, more: &[u8]) {
        debug_assert_eq!(row.table().name, self.table);
        row.is_whole();
        if self.form == Form::Json {
            out.push(b'{');
        }
        out.extend_from_slice(&self.lead);
        match self.form {
            Form::Json => json(&self.keys, out, row),
            Form::Csv => csv(out, row),
        }
        out.extend_from_slice(more);
        out.extend_from_slice(self.form.end());
    }
}

/// The JSON around the values of `table`; `behind`: other columns stand before them.
fn keys(table: &TableDef, behind: bool) -> Vec<Key> {
    let columns = &table.columns;
    let key = |at: usize| {
        let column = &columns[at];
        let same = |other: usize| columns.get(other).is_some_and(|other| other.group == column.group);
        let grouped = !column.group.is_empty();
        let begins = at == 0 || !same(at - 1);
        let comma = |first: bool| if first { "" } else { "," };
        let first = at == 0 && !behind;
        let opens = (grouped && begins).then(|| format!("{}\"{}\":", comma(first), column.group).into_bytes());
        Key {
            name: format!("{}\"{}\":", comma(first || opens.is_some()), column.name).into_bytes(),
            short: column.short.suffix().map(|suffix| format!(",\"{}{suffix}\":", column.name).into_bytes()),
            closes: grouped && !same(at + 1),
            opens,
        }
    };
    (0..columns.len()).map(key).collect()
}

fn json(keys: &[Key], out: &mut Vec<u8>, row: &Row<'_>) {
    let mut absent = false;
    for (key, (column, cell, known)) in keys.iter().zip(row.cells()) {
        if let Some(opens) = &key.opens {
            absent = *cell == Cell::Absent;
            out.extend_from_slice(opens);
            out.extend_from_slice(if absent { b"null" } else { b"{" });
        }
        if !absent {
            out.extend_from_slice(&key.name);
            cell.json(column.ty, out);
            if let Some(short) = &key.short {
                out.extend_from_slice(short);
                Cell::from(known.flag()).json(column.ty, out);
            }
        }
        if key.closes {
            if !absent {
                out.push(b'}');
            }
            absent = false;
        }
    }
}

fn csv(out: &mut Vec<u8>, row: &Row<'_>) {
    for (at, (column, cell, known)) in row.cells().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        cell.csv(column.ty, out);
        if column.short.suffix().is_some() {
            out.push(b',');
            Cell::from(known.flag()).csv(column.ty, out);
        }
    }
}

/// The columns of CSV: objects are spread, and a value that missing rows can change has a column for that beside it.
pub fn names(table: &TableDef) -> Vec<String> {
    let names = |column: &systape_format::table::ColumnDef| {
        let name = column.full_name();
        let short = column.short.suffix().map(|suffix| format!("{name}{suffix}"));
        std::iter::once(name).chain(short)
    };
    table.columns.iter().flat_map(names).collect()
}

/// The columns of `row` as they stand behind those of another table's row.
pub fn behind(form: Form, row: &Row<'_>) -> Vec<u8> {
    row.is_whole();
    let mut out = Vec::new();
    match form {
        Form::Json => json(&keys(row.table(), true), &mut out, row),
        Form::Csv => {
            out.push(b',');
            csv(&mut out, row);
        }
    }
    out
}

/// One row with many columns as CSV: its head, and a line `name,value` for each, with `null` for an unknown value; behind the
/// columns of `label`.
pub(super) fn facts(row: &Row<'_>, label: &TapeLabel) -> (Vec<u8>, Vec<u8>) {
    row.is_whole();
    let own = ["name", "value"].map(str::to_owned);
    let head = format!("{}\n", label.names().chain(own).collect::<Vec<_>>().join(","));
    let (lead, mut out) = (label.lead(Format::Csv), Vec::new());
    for (column, cell, known) in row.cells() {
        let name = column.full_name();
        let mut line = |name: &str, cell: &Cell<'_>| {
            out.extend_from_slice(&lead);
            out.extend_from_slice(format!("{name},").as_bytes());
            match cell.is_null() {
                true => out.extend_from_slice(b"null"),
                false => cell.csv(column.ty, &mut out),
            }
            out.push(b'\n');
        };
        line(&name, cell);
        if let Some(suffix) = column.short.suffix() {
            line(&format!("{name}{suffix}"), &known.flag().into());
        }
    }
    (head.into_bytes(), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    systape_format::tables! {
        /// One row a file.
        FILES = "files" {
            owner.pid: Int "who"
            owner.comm: Str "its name"
            file: Str "its path"
            opens ? AtLeast: Count "how often"
            size.least ? AtMost: Wide "of its reads"
            other.pid: Int "who else"
        }
    }

    fn rows() -> Vec<Row<'static>> {
        let mut first = Row::new(&FILES);
        first.set("owner_pid", 7).set("owner_comm", &b"a,\xff"[..]).set("file", Cell::Null).bound("opens", 3, true);
        first.bound("size_least", 9, false).absent("other");
        let mut second = Row::new(&FILES);
        second
            .absent("owner")
            .set("file", "/x")
            .set("opens", Cell::Null)
            .bound("size_least", 1, false)
            .set("other_pid", 8);
        vec![first, second]
    }

    fn text(form: Form) -> String {
        let sink = Sink::new(form, &FILES, &TapeLabel::default());
        let mut out = sink.head();
        rows().iter().for_each(|row| sink.row(&mut out, row));
        String::from_utf8(out).unwrap()
    }

    /// That of a tape of the machine `a,b`.
    fn label() -> TapeLabel {
        TapeLabel { cells: vec![(&FILES.columns[2], Cell::from("a,b"))], text: Vec::new() }
    }

    #[test]
    fn json_has_objects_and_what_is_known() {
        assert_eq!(
            text(Form::Json),
            "{\"owner\":{\"pid\":7,\"comm\":{\"hex\":\"612cff\",\"text\":\"a,\\\\xff\"}},\"file\":null,\"opens\":3,\
             \"opens_at_least\":true,\"size\":{\"least\":\"9\",\"least_at_most\":false},\"other\":null}\n\
             {\"owner\":null,\"file\":\"/x\",\"opens\":null,\"opens_at_least\":null,\
             \"size\":{\"least\":\"1\",\"least_at_most\":false},\"other\":{\"pid\":8}}\n"
        );
    }

    #[test]
    fn csv_has_the_same_in_columns() {
        assert_eq!(
            text(Form::Csv),
            "owner_pid,owner_comm,file,opens,opens_at_least,size_least,size_least_at_most,other_pid\n\
             7,\"a,\\xff\",,3,true,9,false,\n,,/x,,,1,false,8\n"
        );
    }

    #[test]
    fn rows_may_have_columns_before_and_behind_their_own() {
        for (form, begin, end) in [
            (Form::Json, "{\"file\":\"a,b\",\"owner\":{\"pid\":7", "\"other\":null,\"owner\":null,\"file\":\"/x\""),
            (Form::Csv, "\"a,b\",7,\"a,", "9,false,,,,/x,,,1,false,8\n"),
        ] {
            let sink = Sink::new(form, &FILES, &label()).wider(&FILES);
            let mut out = Vec::new();
            sink.row_and(&mut out, &rows()[0], &behind(form, &rows()[1]));
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with(begin) && text.contains(end) && text.lines().count() == 1, "{text}");
            let head = String::from_utf8(sink.head()).unwrap();
            let columns = if form == Form::Csv { 2 * names(&FILES).len() + 1 } else { 1 };
            assert_eq!(head.split(',').count(), columns, "{head}");
        }
    }

    #[test]
    fn one_row_is_names_and_values() {
        let text = |label: &TapeLabel| {
            let (head, lines) = facts(&rows()[0], label);
            String::from_utf8([head, lines].concat()).unwrap()
        };
        let one = text(&TapeLabel::default());
        assert!(
            one.starts_with(
                "name,value\nowner_pid,7\nowner_comm,\"a,\\xff\"\nfile,null\nopens,3\nopens_at_least,true\n"
            )
        );
        assert!(text(&label()).starts_with("file,name,value\n\"a,b\",owner_pid,7\n"));
    }
}
