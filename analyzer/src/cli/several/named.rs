//! What a tape among several is called in headings, messages and rows.

use std::path::Path;

use crate::reports::named::TAPES;
use systape_answers::render::cell::Cell;
use systape_answers::render::form::Form;
use systape_answers::render::label::TapeLabel;
use systape_events::values::words::escaped;

/// A tape among several.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// Path of the tape, as named or found, for a terminal.
    pub name: String,
    path: Vec<u8>,
    /// The machine that was recorded; empty: not known.
    pub host: Vec<u8>,
}

impl Named {
    /// The tape in the file `path`, of the machine `host`; empty: not known.
    pub(super) fn new(path: &Path, host: Vec<u8>) -> Self {
        let path = path.as_os_str().as_encoded_bytes().to_vec();
        Self { name: escaped(&path), path, host }
    }

    /// Name and machine.
    pub(super) fn heading(&self) -> String {
        let host = if self.host.is_empty() { String::new() } else { format!(" ({})", escaped(&self.host)) };
        format!("{}{host}", self.name)
    }

    /// What stands before each of its rows: the columns of [`TAPES`], without the machine if rows have it themselves.
    pub(super) fn label(&self, form: Form, has_host: bool) -> TapeLabel {
        let host = if self.host.is_empty() { Cell::Null } else { Cell::from(&*self.host) };
        let cells = TAPES.columns.iter().zip([host, Cell::from(&*self.path)]).skip(usize::from(has_host));
        let mut before = Vec::new();
        match form {
            Form::Json => {
                for (column, cell) in cells {
                    before.extend(format!("\"{}\":", column.name).into_bytes());
                    cell.json(column.ty, &mut before);
                    before.push(b',');
                }
                TapeLabel::Json(before)
            }
            Form::Csv => {
                let mut names = String::new();
                for (column, cell) in cells {
                    cell.csv(column.ty, &mut before);
                    before.push(b',');
                    names.push_str(&column.name);
                    names.push(',');
                }
                TapeLabel::Csv { fields: before, names }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_with_machine_and_file() {
        let named = Named::new(Path::new("a\n.tape"), b"web1".to_vec());
        assert_eq!(named.heading(), "a\\n.tape (web1)");
        let json = b"\"host\":\"web1\",\"tape\":\"a\\n.tape\",".to_vec();
        assert_eq!(named.label(Form::Json, false), TapeLabel::Json(json));
        let fields = b"web1,a\\n.tape,".to_vec();
        assert_eq!(named.label(Form::Csv, false), TapeLabel::Csv { fields, names: "host,tape,".to_owned() });
        let unknown = Named::new(Path::new("b"), Vec::new());
        assert_eq!(unknown.label(Form::Json, true), TapeLabel::Json(b"\"tape\":\"b\",".to_vec()));
        assert_eq!(unknown.label(Form::Json, false), TapeLabel::Json(b"\"host\":null,\"tape\":\"b\",".to_vec()));
    }
}
