//! `analyze export arrow`: the frame of its messages, and what is refused. That pyarrow and polars read the rows, and which, is tested by
//! python/tests/test_export.py.

use std::fs;
use std::process::Command;

use crate::common::{self, Place};

/// What is written to standard output.
fn stream(place: &Place, words: &str) -> Vec<u8> {
    let analyze = assert_cmd::cargo::cargo_bin("analyze");
    let words = words.split(' ').filter(|word| !word.is_empty());
    let done =
        Command::new(analyze).args(["export", "arrow"]).args(words).current_dir(place.path("")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// The messages of a stream: the head of each, and the bytes behind that.
fn messages(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut found) = (0, Vec::new());
    loop {
        assert_eq!((number(at), at % 8), (u32::MAX, 0));
        let length = number(at + 4) as usize;
        if length == 0 {
            assert_eq!(at + 8, bytes.len(), "nothing stands behind the end");
            return found;
        }
        let head = &bytes[at + 8..at + 8 + length];
        let field = |number: usize| {
            let table = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
            let vtable = table - u32::from_le_bytes(head[table..table + 4].try_into().unwrap()) as usize;
            table + usize::from(u16::from_le_bytes(head[vtable + 4 + 2 * number..][..2].try_into().unwrap()))
        };
        let body = i64::from_le_bytes(head[field(3)..field(3) + 8].try_into().unwrap()) as usize;
        at += 8 + length;
        found.push((head, &bytes[at..at + body]));
        at += body;
    }
}

#[test]
fn a_stream_is_a_schema_and_batches() {
    let place = Place::with_tapes();
    let bytes = stream(&place, "sample.tape");
    let all = messages(&bytes);
    assert!(all.len() == 2 && all[0].1.is_empty() && all[1].1.len() > 1000, "{}", all.len());
    assert!(all[1].1.windows(6).any(|text| text == b"openat"));
    let few = stream(&place, "--columns pid,dur_ns sample.tape");
    assert!(messages(&few)[1].1.len() < messages(&bytes)[1].1.len() / 4);
    // a table without rows has its schema
    assert_eq!(messages(&stream(&place, "-p 999999 sample.tape")).len(), 1);
    // two tapes are one stream
    assert_eq!(messages(&stream(&place, "sample.tape sample.tape")).len(), 3);
    assert_eq!(stream(&place, "sample.tape"), bytes, "the same tape gives the same bytes");
}

#[test]
fn a_file_is_a_stream_with_a_list_of_its_batches() {
    let place = Place::with_tapes();
    let bytes = stream(&place, "sample.tape");
    assert_eq!(place.analyze("export arrow sample.tape -o out.arrow").status, 0);
    let file = fs::read(place.path("out.arrow")).unwrap();
    assert_eq!((&file[..8], &file[file.len() - 6..]), (&b"ARROW1\0\0"[..], &b"ARROW1"[..]));
    assert_eq!(file[8..8 + bytes.len()], bytes);
    let footer = i32::from_le_bytes(file[file.len() - 10..file.len() - 6].try_into().unwrap());
    assert_eq!(file.len(), 8 + bytes.len() + usize::try_from(footer).unwrap() + 10);
}

#[test]
fn losses_are_said_beside_it() {
    let place = Place::with_sample();
    common::ledger::write(&place.path("ledger.tape"), &[common::gap()]);
    let said = place.ask("export arrow ledger.tape -o out --fail-on-loss");
    assert_eq!(said.status, 3, "{}", said.err);
    assert!(said.err.contains("LOST"), "{}", said.err);
    assert!(place.path("out").exists());
    // and so is why there is nothing
    let said = place.ask("export arrow -p 99999999 sample.tape -o out");
    assert!(said.err.contains("nothing matches -p 99999999"), "{}", said.err);
}

#[test]
fn what_there_is_not_is_refused() {
    let place = Place::with_tapes();
    let said = |words: &str| {
        let said = place.ask(&format!("export arrow -o out {words}"));
        assert_eq!(said.status, 2, "{words}: {}", said.err);
        said.err
    };
    assert!(said("--table sysclls sample.tape").contains("there is no table sysclls; did you mean 'syscalls'?"));
    assert!(said("--columns pid,dur sample.tape").contains("table syscalls has no column dur"));
    assert!(said("--columns pid,pid sample.tape").contains("column pid is named twice"));
    assert!(said("--table kills -p 1 sample.tape").contains("no effect on table kills: ask the report itself"));
    assert!(said("--table gaps --time 0,1 sample.tape").contains("--time has no effect on table gaps"));
    assert!(said("--format json sample.tape").contains("an export is a form of its own"));
    assert!(!place.path("out").exists(), "a file that was begun is removed");
}
