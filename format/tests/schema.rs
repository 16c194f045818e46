//! What the schema says of fields, against the list of kinds of blocks and the manual.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use systape_format::BlockKind;
use systape_format::model::Family;

const CLASSES: [&str; 8] = ["path", "string", "comm", "address", "host", "user", "command", "none"];

fn schemas() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas")
}

/// Redaction works by class: a field without one would slip through.
#[test]
fn every_text_and_bytes_field_has_a_class() {
    let schema = std::fs::read_to_string(schemas().join("trace.capnp")).unwrap();
    let mut fields = 0;
    for line in schema.lines() {
        let code = line.split('#').next().unwrap_or_default();
        for field in code.split_inclusive(';') {
            let Some((_, ty)) = field.split_once(" :") else { continue };
            let ty = ty.trim_end_matches(';').trim();
            let is_text = ["Text", "Data", "List(Text)", "List(Data)"].iter().any(|t| ty.split(' ').next() == Some(t));
            if !is_text || code.starts_with("annotation") {
                continue;
            }
            fields += 1;
            let class = ty.split_once("$class(\"").and_then(|(_, rest)| rest.split_once("\")"));
            let class = class.map_or("", |(class, _)| class);
            assert!(CLASSES.contains(&class), "field without a class, or with an unknown one: {}", line.trim());
        }
    }
    assert!(fields >= 38, "only {fields} fields found: does this test still read the schema?");
}

/// The struct of the schema behind each kind of block.
const ROOTS: [(BlockKind, &str); 25] = [
    (BlockKind::Tables, "Tables"),
    (BlockKind::TableDefs, "TableDefs"),
    (BlockKind::Session, "Session"),
    (BlockKind::Dict, "Dict"),
    (BlockKind::SyscallsCore, "SyscallsCore"),
    (BlockKind::SyscallsTime, "SyscallsTime"),
    (BlockKind::SyscallsArgs, "SyscallsArgs"),
    (BlockKind::SyscallsBytes, "SyscallsBytes"),
    (BlockKind::SyscallsFds, "SyscallsFds"),
    (BlockKind::Processes, "Processes"),
    (BlockKind::Gaps, "Gaps"),
    (BlockKind::Sched, "Sched"),
    (BlockKind::Wakeups, "Wakeups"),
    (BlockKind::Blocks, "Blocks"),
    (BlockKind::Signals, "Signals"),
    (BlockKind::Net, "Net"),
    (BlockKind::Uring, "UringOps"),
    (BlockKind::Samples, "Samples"),
    (BlockKind::Stacks, "Stacks"),
    (BlockKind::Ledger, "Ledger"),
    (BlockKind::Sleepers, "Sleepers"),
    (BlockKind::Checkpoint, "Checkpoint"),
    (BlockKind::Symbols, "Symbols"),
    (BlockKind::Index, "Index"),
    (BlockKind::End, "End"),
];

/// The schema's text of each struct, without comments.
fn structs() -> BTreeMap<String, String> {
    let schema = std::fs::read_to_string(schemas().join("trace.capnp")).unwrap();
    let code: Vec<&str> = schema.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let name = |part: &str| part.split([' ', '{']).next().unwrap_or_default().to_owned();
    // structs stand one after the other, and end before the next struct or enum
    let parts = code.split("\nstruct ").skip(1);
    parts.map(|part| (name(part), part.split("\nenum ").next().unwrap_or_default().to_owned())).collect()
}

/// Whether a struct, or one that it holds, is as `is` says of its text.
fn any(structs: &BTreeMap<String, String>, name: &str, seen: &mut Vec<String>, is: fn(&str) -> bool) -> bool {
    let Some(text) = structs.get(name).filter(|_| !seen.iter().any(|known| known == name)) else { return false };
    seen.push(name.to_owned());
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect::<BTreeSet<String>>();
    is(text) || words.iter().filter(|word| structs.contains_key(*word)).any(|word| any(structs, word, seen, is))
}

/// Whether a field tells of somebody.
fn has_class(text: &str) -> bool {
    text.split("$class(\"").skip(1).any(|rest| !rest.starts_with("none\""))
}

/// Whether a field is a column.
fn has_column(text: &str) -> bool {
    text.contains(":Column;") || text.contains(":List(Column);")
}

/// What the list of kinds says of each against the schema: a block of numbers is copied by a redaction as it is, one with columns has the
/// bit of their encodings.
#[test]
fn blocks_of_numbers_have_no_class() {
    let structs = structs();
    assert_eq!(ROOTS.len(), BlockKind::ALL.len(), "a kind without a root");
    for (kind, root) in ROOTS {
        assert!(structs.contains_key(root), "{root} is not in the schema");
        assert_eq!(kind.is_numbers(), !any(&structs, root, &mut Vec::new(), has_class), "{}: {root}", kind.name());
        assert_eq!(kind.has_columns(), any(&structs, root, &mut Vec::new(), has_column), "{}: {root}", kind.name());
    }
}

#[test]
fn the_manual_has_every_kind() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/tape-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    for kind in BlockKind::ALL {
        let line = page.lines().find(|line| {
            line.trim_start().split([' ', '┐']).any(|word| word == kind.name())
                && line.contains(&format!("kind {}", kind.raw()))
        });
        assert!(
            line.is_some(),
            "{} of kind {} is not in the picture of docs/reference/tape-format.md",
            kind.name(),
            kind.raw()
        );
    }
}

#[test]
fn the_manual_has_every_family() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/tape-format.md");
    let all: Vec<String> = Family::ALL.iter().map(|family| format!("{} {}", *family as u16, family.name())).collect();
    let page = std::fs::read_to_string(page).unwrap().replace('\n', " ");
    assert!(page.contains(&format!("as a number: `{}`.", all.join(", "))));
}

#[test]
fn the_version_is_stated_once_and_is_that_of_the_code() {
    let version = format!("1.{}", systape_format::header::MINOR);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let page = read("docs/reference/tape-format.md");
    assert!(page.starts_with(&format!("# The tape format, version {version}\n")), "the title of the page");
    let minor = page.lines().find(|line| line.starts_with("| 10 | 2 | minor |")).expect("the row of the minor version");
    assert!(minor.contains(&format!(": {} for the one on this page", systape_format::header::MINOR)), "{minor}");
    let newest = read("schemas/CHANGES.md").lines().find_map(|line| line.strip_prefix("## ").map(str::to_owned));
    assert_eq!(newest, Some(version), "the newest entry of schemas/CHANGES.md");
    // implemented kinds are none that is reserved
    assert!(!page.contains("is reserved for the ledger"));
}
