//! The only writers of rows as JSON and CSV. They use only a table's declaration.

use systape_format::table::TableDef;

use super::cell::Cell;
use super::form::Form;
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
pub struct Sink<'t> {
    form: Form,
    table: &'t TableDef,
    keys: Vec<Key>,
}

impl<'t> Sink<'t> {
    /// Prints rows of `table` as `form`.
    pub fn new(form: Form, table: &'t TableDef) -> Self {
        let columns = &table.columns;
        let key = |at: usize| {
            let column = &columns[at];
            let same = |other: usize| columns.get(other).is_some_and(|other| other.group == column.group);
            let grouped = !column.group.is_empty();
            let begins = at == 0 || !same(at - 1);
            let comma = |first: bool| if first { "" } else { "," };
            let opens = (grouped && begins).then(|| format!("{}\"{}\":", comma(at == 0), column.group).into_bytes());
            Key {
                name: format!("{}\"{}\":", comma(at == 0 || opens.is_some()), column.name).into_bytes(),
                short: column.short.suffix().map(|suffix| format!(",\"{}{suffix}\":", column.name).into_bytes()),
                closes: grouped && !same(at + 1),
                opens,
            }
        };
        Self { form, table, keys: (0..columns.len()).map(key).collect() }
    }

    /// Appends the head: in CSV the names of the columns.
    pub fn head(&self, out: &mut Vec<u8>) {
        if self.form == Form::Csv {
            out.extend_from_slice(names(self.table).join(",").as_bytes());
            out.push(b'\n');
        }
    }

    /// Appends a row with its newline.
    pub fn row(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        debug_assert_eq!(row.table().name, self.table.name);
        row.is_whole();
        match self.form {
            Form::Json => self.json(out, row),
            Form::Csv => csv(out, row),
        }
    }

    fn json(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        out.push(b'{');
        let mut absent = false;
        for (key, (column, cell, known)) in self.keys.iter().zip(row.cells()) {
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
        out.extend_from_slice(b"}\n");
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
    out.push(b'\n');
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

/// Adds the columns of `row` to the row of another table that `out` ends with.
pub fn append(form: Form, row: &Row<'_>, out: &mut Vec<u8>) {
    let mut more = Vec::new();
    Sink::new(form, row.table()).row(&mut more, row);
    let (begin, end): (usize, &[u8]) = match form {
        Form::Json => (1, b"}\n"),
        Form::Csv => (0, b"\n"),
    };
    if out.ends_with(end) {
        out.truncate(out.len() - end.len());
        out.push(b',');
        out.extend_from_slice(&more[begin..]);
    }
}

/// Appends one row with many columns as CSV: a line `name,value` for each, and `null` for an unknown value.
#[cfg(unix)]
pub(super) fn facts(row: &Row<'_>, out: &mut Vec<u8>) {
    row.is_whole();
    out.extend_from_slice(b"name,value\n");
    for (column, cell, known) in row.cells() {
        let name = column.full_name();
        let mut line = |name: &str, cell: &Cell<'_>| {
            out.extend_from_slice(format!("{name},").as_bytes());
            match cell.is_null() {
                true => out.extend_from_slice(b"null"),
                false => cell.csv(column.ty, out),
            }
            out.push(b'\n');
        };
        line(&name, cell);
        if let Some(suffix) = column.short.suffix() {
            line(&format!("{name}{suffix}"), &known.flag().into());
        }
    }
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
        let (sink, mut out) = (Sink::new(form, &FILES), Vec::new());
        sink.head(&mut out);
        rows().iter().for_each(|row| sink.row(&mut out, row));
        String::from_utf8(out).unwrap()
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
    fn columns_are_added_to_a_row() {
        for (form, row, expected) in
            [(Form::Json, "{\"a\":1}\n", "{\"a\":1,\"owner\":{\"pid\":7"), (Form::Csv, "1\n", "1,7,\"a,")]
        {
            let mut out = row.as_bytes().to_vec();
            append(form, &rows()[0], &mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with(expected) && text.ends_with('\n') && text.lines().count() == 1, "{text}");
        }
    }

    #[test]
    fn one_row_is_names_and_values() {
        let mut out = Vec::new();
        facts(&rows()[0], &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with(
                "name,value\nowner_pid,7\nowner_comm,\"a,\\xff\"\nfile,null\nopens,3\nopens_at_least,true\n"
            )
        );
    }
}
