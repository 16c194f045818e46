//! A tape with calls that ask for the attributes of a path: found and not, of a descriptor, relative, with a path that was not readable, unfinished.

use std::path::Path;

use systape_format::model::{ByteStatus, CallState};

use super::{AT_FDCWD, Row, Tape, session};

fn rows() -> Vec<Row<'static>> {
    let whole = ByteStatus::Whole;
    let row = Row { tid: 100, name: "newfstatat", dur: 4, args: [AT_FDCWD, 0x5600, 0x7000, 0, 0, 0], ..Row::default() };
    vec![
        Row { start: 100, captured: vec![(1, whole, 14, b"/etc/localtime")], ..row.clone() },
        Row { start: 200, errno: 2, captured: vec![(1, whole, 4, b"none")], ..row.clone() },
        // fstat of the C library
        Row {
            start: 300,
            args: [5, 0x5600, 0x7000, 0x1000, 0, 0],
            path: Some("/srv/data"),
            captured: vec![(1, whole, 0, b"")],
            ..row.clone()
        },
        Row { start: 400, tid: 101, errno: 13, captured: vec![(1, ByteStatus::NotResident, 0, b"")], ..row.clone() },
        Row {
            start: 500,
            tid: 102,
            name: "statfs",
            args: [0x5600, 0x7000, 0, 0, 0, 0],
            captured: vec![(0, whole, 1, b"/")],
            ..row.clone()
        },
        // no path: bcc's tool does not have it either
        Row { start: 600, name: "fstat", args: [5, 0x7000, 0, 0, 0, 0], path: Some("/srv/data"), ..row.clone() },
        Row {
            start: 700,
            dur: 300,
            tid: 102,
            state: CallState::InFlight,
            captured: vec![(1, whole, 8, b"/mnt/nfs")],
            ..row
        },
    ]
}

/// Writes the tape.
pub fn write(path: &Path) {
    let mut tape = Tape::create_with(path, &session());
    tape.segment_with(1_000, &rows(), &[], |_| {});
    tape.finish();
}
