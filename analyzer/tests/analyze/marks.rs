//! Marks stand at the figures that may be wrong, not at others: what is not known of one call is said once.

use crate::common::{self, OPEN, Place, Row, Tape, US, call, session, task};
use serde_json::Value;
use systape_format::SegmentBuilder;
use systape_format::model::{CallState, FD_NONE, FD_UNKNOWN, SyscallRow};

/// A call of thread `tid` on a descriptor of which the tape has no name.
fn nameless(builder: &mut SegmentBuilder, (tid, name, at): (u32, &str, u64), ret: i64, errno: u16) {
    let (task, call) = (builder.intern_task(&task(tid)), builder.intern_call(call(name)));
    builder.push_syscall(SyscallRow {
        end: OPEN + at * US,
        dur: 5 * US,
        cpu: 1,
        task,
        call,
        ret,
        errno,
        state: CallState::Complete,
        args: [9, 0x7f00, 100, 0, 0, 0],
        fd: FD_UNKNOWN,
        fd2: FD_NONE,
        ..SyscallRow::default()
    });
}

/// Process 100 reads a file, twice it asks for a descriptor that is not open; a stranger writes 249 bytes somewhere.
fn files() -> Place {
    let place = Place::new();
    let mut tape = Tape::create_with(&place.path("files.tape"), &session());
    let read = |start| Row {
        tid: 100,
        name: "read",
        start,
        dur: 10,
        args: [3, 0x7f00, 4096, 0, 0, 0],
        ret: 4096,
        path: Some("/srv/data"),
        ..Row::default()
    };
    tape.segment_with(2_000, &[read(10), read(30), read(50)], &[], |builder| {
        nameless(builder, (100, "fcntl", 100), -9, 9);
        nameless(builder, (100, "close", 120), -9, 9);
        nameless(builder, (102, "write", 140), 200, 0);
        nameless(builder, (102, "write", 150), 49, 0);
    });
    tape.finish();
    place
}

fn row<'a>(rows: &'a [Value], key: &str, value: &Value) -> &'a Value {
    rows.iter().find(|row| &row[key] == value).unwrap_or_else(|| panic!("{key} {value}: {rows:?}"))
}

#[test]
fn a_file_is_exact_beside_a_descriptor_that_nobody_knows() {
    let place = files();
    let rows = place.analyze("files --format json files.tape").json();
    let data = row(&rows, "file", &"/srv/data".into());
    for name in ["calls", "reads", "opens", "writes", "read_bytes", "total_ns"] {
        assert_eq!(data[format!("{name}_at_least")], false, "{name}: {data}");
    }
    assert_eq!((&data["calls"], &data["read_bytes"]), (&3.into(), &"12288".into()));
    // what is not open is no file, and what the stranger wrote to has a row
    let unknown = row(&rows, "file", &Value::Null);
    assert_eq!((&unknown["calls"], &unknown["write_bytes"]), (&2.into(), &"249".into()));
    assert_eq!(rows.len(), 2, "{rows:?}");
    let text = place.analyze("files files.tape --fail-on-loss");
    assert!(!text.out.contains(">="), "{}", text.out);
    let foot = "?: 2 calls, 249 bytes on files that are not known: other rows may lack them\n";
    assert!(text.out.ends_with(foot), "{}", text.out);
    assert_eq!(text.status, 0, "nothing is lost");
    let top = place.analyze("filetop --all-files files.tape");
    assert!(!top.out.contains(">=") && top.out.ends_with(foot), "{}", top.out);
}

#[test]
fn a_descriptor_that_is_not_open_is_on_no_file() {
    let place = files();
    let of = |words: &str| place.analyze(&format!("{words} --format json -p 100 files.tape")).json();
    let top = of("top --by file,syscall");
    assert_eq!(row(&top, "syscall", &"fcntl".into())["file"], "", "{top:?}");
    let sums = of("files --by comm");
    assert_eq!((&sums[0]["calls"], &sums[0]["calls_at_least"]), (&3.into(), &false.into()), "{sums:?}");
    // whether they are on a file that is asked for is known: they are not
    let picked = place.analyze("files -P /srv/data -p 100 --fail-on-loss files.tape");
    assert_eq!((picked.status, picked.out.contains(">=")), (0, false), "{}", picked.out);
}

#[test]
fn an_answer_ends_as_its_marks_say() {
    let place = Place::new();
    common::ledger::write(&place.path("ledger.tape"), &[]);
    for words in [
        "top --by comm,syscall",
        "top",
        "rate",
        "files",
        "filetop",
        "-s",
        "-s --summary-mode total",
        "top --by syscall",
    ] {
        let rows = place.analyze(&format!("{words} --format json --fail-on-loss ledger.tape"));
        let marked =
            |row: &Value| row.as_object().unwrap().iter().any(|(name, is)| name == "calls_at_least" && *is == true);
        let any = rows.json().iter().any(marked);
        assert_eq!(rows.status == 3, any, "{words}: {}", rows.out);
        let text = place.analyze(&format!("{words} --fail-on-loss ledger.tape"));
        assert_eq!(text.status, rows.status, "{words}: {}", text.out);
    }
}
