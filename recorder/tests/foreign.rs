//! Files of users are parsed in one place only: no module of `record` but `foreign` names a parser of them. And what of /proc may
//! never be answered is read where it is waited for with a limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates that parse such files.
const PARSERS: [&str; 8] = [
    "object::",
    "gimli::",
    "addr2line::",
    "blazesym::",
    "goblin::",
    "elf::parse",
    "Module::open",
    "Module::from_bytes",
];
/// What `systape_symbols` has of them; the rest of it is opening files, times and text of the kernel.
const READERS: [&str; 6] = ["Resolver::", "FileReader::new", "RuleReader::new", "run_child", "PerfMap::", "DebugDirs"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The lines of code with one of `words`.
fn with<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().filter(is_code).filter(|line| words.iter().any(|word| line.contains(word))).collect()
}

#[test]
fn no_other_module_names_a_parser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 100, "{}", files.len());
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("source");
        let name = file.strip_prefix(&root).expect("below").to_str().expect("UTF-8");
        // the text of /proc/kallsyms is the kernel's
        if !["machine/kallsyms.rs", "machine/lock_names.rs"].contains(&name) {
            found.extend(with(&text, &PARSERS).into_iter().map(|line| format!("{name}: {line}")));
        }
        // main is that process
        if !["foreign/mod.rs", "main.rs"].contains(&name) {
            found.extend(with(&text, &READERS).into_iter().map(|line| format!("{name}: {line}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // the parsers are no dependencies either
    let manifest = fs::read_to_string(root.with_file_name("Cargo.toml")).expect("Cargo.toml");
    for parser in ["object", "gimli", "addr2line", "blazesym"] {
        assert!(!manifest.lines().any(|line| line.starts_with(parser)), "{parser}");
    }
}

/// Files of /proc for which a process's memory is locked, or read, which may never end.
const HANG: [&str; 6] = ["}/maps", "}/cmdline", "}/environ", "}/mem\"", "}/map_files", "}/root"];
/// Who reads them, always in a thread or a process that may hang alone.
const READ: [&str; 7] = [
    "tasks/snapshot.rs",
    "calls/memory.rs",
    "mappings/proc_maps.rs",
    // the process that opens files
    "mappings/open.rs",
    "stacks/jit_maps.rs",
    "stacks/code.rs",
    "foreign/interpreter.rs",
];
/// Their functions, and who may call them: those with patience, and of the own process.
const CALLS: [(&str, &[&str]); 4] = [
    ("snapshot::argv(", &["run/start.rs", "encode/lookups.rs"]),
    ("snapshot::environ(", &["run/start.rs", "encode/lookups.rs"]),
    ("snapshot::process(", &["run/start.rs", "encode/lookups.rs"]),
    ("proc_maps::read", &["probes/files.rs", "mappings/tracker.rs", "mappings/vdso.rs"]),
];

#[test]
fn what_may_hang_in_proc_is_read_with_patience() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("source");
        let name = file.strip_prefix(&root).expect("below").to_str().expect("UTF-8");
        let callers = CALLS.iter().filter(|(_, may)| !may.contains(&name)).map(|(call, _)| *call);
        let read = HANG.into_iter().filter(|_| !READ.contains(&name));
        let words: Vec<&str> = callers.chain(read).collect();
        found.extend(with(&text, &words).into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    for name in ["run/start.rs", "encode/lookups.rs", "calls/memory.rs", "mappings/tracker.rs", "stacks/code.rs"] {
        let text = fs::read_to_string(root.join(name)).expect("source");
        assert!(text.contains("use crate::machine::patient::"), "{name}");
    }
}

#[test]
fn words_of_others_are_shown_in_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for part in ["recorder", "cli", "symbols", "unwind", "analyzer", "answers", "events", "format", "sql"] {
        sources(&root.join(part).join("src"), &mut files);
    }
    assert!(files.len() > 500, "{}", files.len());
    // `\u{1b}` here and `\x1b` there: systape_abi's plain and escape are the ways
    let others = [".escape_debug()", ".escape_default()", ".escape_unicode()", ".escape_ascii()", "\\\\u{{{"];
    let text = |file: &PathBuf| fs::read_to_string(file).expect("source");
    let found: Vec<_> = files
        .iter()
        .flat_map(|file| {
            with(&text(file), &others).into_iter().map(|line| format!("{}: {line}", file.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
