//! docs/reference/schema has what `analyze schema` prints: `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze schema` writes it anew. Whether lines
//! of JSON are as the schemas say is tested by exports/check_schema.py, with a validator of others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::Place;

#[test]
fn the_schemas_in_the_documents_are_those_of_the_program() {
    let place = Place::new();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/schema");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files = BTreeSet::new();
    for report in place.ask("schema").out.lines() {
        let name = report.replace(' ', "-");
        let got = place.ask(&format!("schema {name}"));
        assert_eq!((got.status, got.err.as_str()), (0, ""), "{name}");
        let file = format!("{name}.json");
        if update {
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(&file), &got.out).unwrap();
        }
        assert_eq!(fs::read_to_string(dir.join(&file)).unwrap_or_default(), got.out, "docs/reference/schema/{file}");
        files.insert(file);
    }
    assert!(files.len() > 40, "{}", files.len());
    let there = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), files);
}

#[test]
fn a_report_without_rows_has_no_schema() {
    let got = Place::new().ask("schema whyy");
    assert_eq!((got.status, got.out.as_str()), (2, ""));
    assert!(got.err.contains("no report 'whyy' has rows; did you mean 'why'?"), "{}", got.err);
}
