//! Any bytes as logs of strace: what becomes of them is a tape that follows all rules, or an error. The first byte says whether the day is
//! known, whether lines may be of no thread, and whether the rest are the logs of `strace -ff`, one behind each byte 0xff.
#![no_main]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};

use systape_analyzer::exercise::tape_of_logs;
use systape_format::reader::Tape;

/// A file in memory.
fn in_memory(bytes: &[u8]) -> File {
    // SAFETY: memfd_create gives a descriptor of our own.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"log".as_ptr(), 0);
        assert!(fd >= 0, "memfd_create");
        File::from_raw_fd(fd)
    };
    file.write_all(bytes).expect("room");
    file
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((flags, text)) = input.split_first() else { return };
    let parts = if flags & 4 == 0 { 1 } else { 8 };
    let files: Vec<File> = text.splitn(parts, |byte| *byte == 0xff).map(in_memory).collect();
    let named = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    let logs = files.iter().enumerate().map(|(at, file)| (named(file), (parts > 1).then_some(7 + at as u32)));
    let midnight = (flags & 1 != 0).then_some(1_796_083_200_000_000_000);
    let Ok(tape) = tape_of_logs(logs.collect(), midnight, (flags & 2 != 0).then_some(7)) else { return };
    let tape = Tape::from_bytes(tape).expect("a tape");
    let found = tape.verify(&|_| {});
    assert!(found.is_empty(), "{found:?}");
});
