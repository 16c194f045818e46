//! Nothing of what the kernel side had in its buffers before is in a tape. One process fills every buffer for strings with a
//! marker, in calls whose records fit into no ring, so that none of them is stored. Another then makes short calls, which
//! use the same buffers. In all of the tape, unpacked, there is no marker, and each short string is what it was.

use std::fs;

use systape_e2e::Lab;
use systape_e2e::blocks::{HEADER, blocks};
use systape_e2e::more::lost_calls;

/// As `workloads/stale.c` has it backwards.
const MARKER: &[u8] = b"PROMETER:/";

#[test]
fn nothing_of_another_process_is_in_a_tape() {
    const EACH: u64 = 701;
    let Some(lab) = Lab::beside() else { return };
    let stale = lab.cc("stale", &[]);
    // descriptors and process life have rings of their own, where long records would fit
    let options = ["-m", "1", "-e", "access,rename,setxattr,symlink,connect", "--families", "syscall"];
    lab.record("t.tape", &options, &[&stale, &EACH.to_string()]).expect(0);

    let info = lab.info("t.tape");
    assert!(lost_calls(&info) >= 4 * EACH, "the marked calls were stored: {info}");
    let run = lab.analyze(&["t.tape", "--comm=plain", "--format", "json"]).expect(0);
    let calls: Vec<_> = run.json().into_iter().filter(|line| line.get("lost").is_none()).collect();
    let of = |name: &str| calls.iter().filter(|call| call["syscall"] == name).count();
    assert!(of("access") > 100 && of("rename") > 50 && of("connect") > 50, "{} calls", calls.len());
    for call in &calls {
        for name in ["filename", "oldname", "newname"] {
            let Some(text) = call["args"][name].as_str().filter(|text| !text.starts_with("0x")) else { continue };
            assert!(text.bytes().all(|byte| byte == b'b'), "{call}");
        }
        if call["syscall"] == "connect" {
            let rest = call["args"]["uservaddr"].to_string();
            assert!(!rest.contains("PROM") && !rest.contains("METER"), "{call}");
        }
    }
    let paths = calls.iter().filter_map(|call| call["args"]["filename"].as_str()).filter(|text| text.starts_with('b'));
    let lengths: Vec<_> = paths.map(str::len).collect();
    assert!(lengths.len() > 50 && lengths.iter().all(|len| len % 13 == 1), "{lengths:?}");

    let tape = fs::read(lab.path("t.tape")).expect("tape");
    let (mut seen, mut texts) = (0, 0);
    for block in blocks(&tape[..tape.len() - 64]) {
        let stored = &tape[block.start + HEADER..block.end];
        let raw = zstd::stream::decode_all(stored).expect("one zstd frame");
        // any four bytes of it in a row, whichever way they are cut off
        let marked = |bytes: &[u8]| bytes.windows(6).any(|w| MARKER.windows(6).any(|m| m == w));
        assert!(!marked(&raw), "{block:?}: {:?}", String::from_utf8_lossy(&raw));
        texts += usize::from(raw.windows(6).any(|w| w == b"bbbbbb"));
        seen += 1;
    }
    assert!(seen > 5 && texts > 0, "{seen} blocks, {texts} with strings");
}

/// Buffers are filled with a pattern before the start; no record, not even its padding, has four bytes of it in a row.
#[test]
fn every_byte_of_a_record_was_written() {
    let Some(lab) = Lab::beside() else { return };
    let poison = |command: &[&str]| -> (u64, u64) {
        let options =
            ["-a", "--force", "poison", "--call-graph", "dwarf", "--stacks-on", "switch,signal", "--kernel-stacks"];
        let run = lab.record("t.tape", &options, command).expect(0);
        let line = run.stderr.lines().find_map(|line| line.strip_prefix("record: poison ")).expect(&run.stderr);
        let seen: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let number = |key: &str| seen[key].as_u64().expect("a number");
        (number("records"), number("dirty"))
    };
    // long and short strings, execs, signals with arguments, sockets, I/O; a program with a stack of its own
    let path = "x".repeat(900);
    let busy = format!(
        "for i in $(seq 40); do ls {path} /; cat /{path}/{path} & kill -USR1 $$; done; sync; sleep 0.1;
         python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); socket.create_connection(s.getsockname())'"
    );
    let script = format!("trap : USR1; {{ {busy}; }} >/dev/null 2>&1; wait");
    let (records, dirty) = poison(&["sh", "-c", &script]);
    assert!(records > 5000, "{records}");
    assert_eq!(dirty, 0, "of {records}");
    // it would be seen: a path of such bytes
    let (_, dirty) = poison(&["sh", "-c", "cat \"$(printf '\\245\\245\\245\\245')\" 2>/dev/null; true"]);
    assert!(dirty > 0);
}
