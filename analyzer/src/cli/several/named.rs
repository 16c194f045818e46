//! What a tape among several is called in headings, messages and rows.

use std::path::Path;

use crate::reports::named::TAPES;
use systape_answers::render::cell::Cell;
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

    /// What stands before each of its rows: the columns of [`TAPES`], without the machine if rows have it themselves. Lines of
    /// text have nothing.
    pub(super) fn label(&self, has_host: bool) -> TapeLabel {
        let host = if self.host.is_empty() { Cell::Null } else { Cell::from(self.host.clone()) };
        let cells = TAPES.columns.iter().zip([host, Cell::from(self.path.clone())]).skip(usize::from(has_host));
        TapeLabel { cells: cells.collect(), text: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_answers::render::form::Format;

    #[test]
    fn rows_begin_with_machine_and_file() {
        let named = Named::new(Path::new("a\n.tape"), b"web1".to_vec());
        assert_eq!(named.heading(), "a\\n.tape (web1)");
        let lead = |label: &TapeLabel, format| String::from_utf8(label.lead(format)).unwrap();
        let label = named.label(false);
        assert_eq!(lead(&label, Format::Json), "\"host\":\"web1\",\"tape\":\"a\\n.tape\",");
        assert_eq!(lead(&label, Format::Csv), "web1,a\\n.tape,");
        assert_eq!(label.names().collect::<Vec<_>>(), ["host", "tape"]);
        let unknown = Named::new(Path::new("b"), Vec::new());
        assert_eq!(lead(&unknown.label(true), Format::Json), "\"tape\":\"b\",");
        assert_eq!(lead(&unknown.label(false), Format::Json), "\"host\":null,\"tape\":\"b\",");
    }
}
