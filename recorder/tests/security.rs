//! SECURITY.md names tests that there are.

use std::fs;
use std::path::Path;

/// The text of a test's file: `stem` of a folder of `e2e/tests/all` or of `analyzer/tests`, or a path.
fn source(root: &Path, file: &str) -> Option<String> {
    let folders = ["e2e/tests/all/beside", "e2e/tests/all/single", "analyzer/tests/analyze", "analyzer/tests/heavy"];
    let places = folders.map(|folder| format!("{folder}/{file}.rs"));
    std::iter::once(file)
        .chain(places.iter().map(String::as_str))
        .find_map(|place| fs::read_to_string(root.join(place)).ok())
}

/// Pieces of a text between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn has(text: &str, test: &str) -> bool {
    ["fn", "def"].iter().any(|word| text.contains(&format!("{word} {test}(")))
}

#[test]
fn the_tests_that_hold_it_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("SECURITY.md")).expect("SECURITY.md");
    let rows = text.lines().filter(|line| line.starts_with('|') && !line.starts_with("|-"));
    let (mut tests, mut missing) = (0, Vec::new());
    for row in rows {
        let Some(last) = row.trim_end_matches(['|', ' ']).rsplit(" | ").next() else { continue };
        if ["test", "limits"].iter().any(|head| last.ends_with(head)) {
            continue;
        }
        // a name alone is one of the file named before
        let (mut file, mut is_fuzz) = (String::new(), false);
        for piece in last.split([',', ';']) {
            is_fuzz |= piece.contains("fuzz");
            for words in quoted(piece) {
                let (named, test) = words.split_once(": ").map_or((words, None), |(file, test)| (file, Some(test)));
                tests += 1;
                let is_there = if is_fuzz {
                    root.join(format!("fuzz/fuzz_targets/{named}.rs")).exists()
                } else if let Some(text) = source(&root, named) {
                    file = named.to_owned();
                    test.is_none_or(|test| has(&text, test))
                } else {
                    source(&root, &file).is_some_and(|text| has(&text, named))
                };
                if !is_there {
                    missing.push(words.to_owned());
                }
            }
        }
    }
    assert!(tests > 30, "{tests}");
    assert!(missing.is_empty(), "{missing:#?}");
}
