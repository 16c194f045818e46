//! A tape of text that a page must not take for markup.

use std::path::Path;

use systape_format::model::{ByteStatus, Family, ProcessEvent, ProcessKind, Session, Task};

use super::{OPEN, Row, Tape, US, session, task};

/// Text that is markup, a script's end, a handler, from right to left, or not text at all.
pub const HOSTILE: [&str; 6] = [
    "</script><script>window.canary=1</script>",
    "<img src=x onerror=window.canary=1>",
    "\" onmouseover=\"window.canary=1",
    "a\u{202e}txt.exe\u{2028}\u{2029}\u{200b}",
    "\x1b]0;t\x07\x1b[2J\r\n\0\x7f",
    "<!--<svg onload=window.canary=1>&lt;'`${window.canary=1}",
];

/// A tape with such text wherever text can be.
pub fn write(path: &Path) {
    let session = Session {
        hostname: HOSTILE[0].into(),
        target: format!("command {}", HOSTILE.join(" ")),
        arguments: HOSTILE.iter().map(|text| text.as_bytes().to_vec()).collect(),
        kernel_release: HOSTILE[1].into(),
        kernel_version: HOSTILE[5].into(),
        machine: HOSTILE[2].into(),
        users: vec![(0, HOSTILE[0].into())],
        families: vec![Family::Syscall, Family::Process],
        ..session()
    };
    let mut tape = Tape::create_with(path, &session);
    let long = HOSTILE[0].repeat(65_536 / HOSTILE[0].len());
    let captured = |text: &'static str| vec![(1, ByteStatus::Whole, text.len() as u64, text.as_bytes())];
    let mut rows: Vec<Row<'_>> = HOSTILE
        .iter()
        .enumerate()
        .map(|(at, text)| Row {
            tid: 100,
            name: "openat",
            start: 10 + at as u64 * 40,
            dur: 7,
            errno: 2,
            ret: -2,
            captured: captured(text),
            ..Row::default()
        })
        .collect();
    let whole = vec![(1, ByteStatus::Whole, long.len() as u64, long.as_bytes())];
    rows.push(Row { tid: 101, name: "openat", start: 400, dur: 90, captured: whole, ..Row::default() });
    tape.segment_with(1_000, &rows, &[], |builder| {
        for (at, text) in HOSTILE.iter().enumerate() {
            let pid = 300 + at as u32;
            let comm = text.bytes().take(15).collect();
            let made = Task { comm, exe: text.as_bytes().to_vec(), ..task(pid) };
            let task = builder.intern_task(&made);
            let ts = |us: u64| OPEN + (us + at as u64) * US;
            builder.push_process(ProcessEvent::new(ts(500), ProcessKind::Fork, task));
            let exec = ProcessEvent::new(ts(520), ProcessKind::Exec, task);
            builder.push_process(ProcessEvent { path: text.as_bytes().to_vec(), argv: long.clone().into(), ..exec });
            let exit = ProcessEvent::new(ts(540), ProcessKind::Exit, task);
            builder.push_process(ProcessEvent { group_dead: true, ..exit });
        }
    });
    tape.finish();
}
