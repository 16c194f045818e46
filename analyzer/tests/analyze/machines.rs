//! Tapes of another machine: names, flags, arguments and structures are those of the machine that was recorded.

use systape_abi::{Abi, number};
use systape_format::model::{ByteStatus, Call, CallState, FD_NONE, Session, SyscallRow};

use crate::common::{self, MS, OPEN, Place, Tape, US};

/// A call of arm64: name, arguments, result, and what was captured of an argument.
type ArmCall<'a> = (&'a str, [u64; 6], i64, Option<(u8, &'a [u8])>);

const AT_FDCWD: u64 = common::AT_FDCWD;

/// Calls whose numbers, flags or structures are others on x86-64, and how they print.
fn calls() -> Vec<(ArmCall<'static>, &'static str)> {
    // two of 16 bytes each: not packed
    const EVENTS: &[u8] =
        &[1, 0, 0, 0, 9, 9, 9, 9, 7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9, 8, 0, 0, 0, 0, 0, 0, 0];
    // st_mode at 16, st_size at 48
    const STAT: &[u8] = &[
        1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xa4, 0x81, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc5, 4, 0, 0, 0, 0, 0, 0,
    ];
    vec![
        (
            ("openat", [AT_FDCWD, 0x1000, 0o40000 | 0o2000000, 0, 0, 0], 3, Some((1, b"/srv"))),
            r#"openat(dfd: CWD, filename: "/srv", flags: RDONLY|DIRECTORY|CLOEXEC)"#,
        ),
        (
            ("openat", [AT_FDCWD, 0x1000, 0o200000 | 1, 0, 0, 0], 4, Some((1, b"/raw"))),
            r#"openat(dfd: CWD, filename: "/raw", flags: WRONLY|DIRECT)"#,
        ),
        (
            ("mmap", [0, 4096, 4 | 1 | 0x10, 0x22, u64::MAX, 0], 0x7000, None),
            "prot: READ|EXEC|BTI, flags: PRIVATE|ANONYMOUS",
        ),
        (
            ("clone", [17, 0, 0x2000, 0x3000, 0x4000, 0], 77, None),
            "parent_tidptr: 0x2000, tls: 0x3000, child_tidptr: 0x4000",
        ),
        (("epoll_pwait", [5, 0x6000, 2, 0, 0, 0], 2, Some((1, EVENTS))), "{events=EPOLLOUT, data={u32=8, u64=8}}"),
        (
            ("newfstatat", [AT_FDCWD, 0x1000, 0x2000, 0, 0, 0], 0, Some((2, STAT))),
            "{st_mode=S_IFREG|0644, st_size=1221, ...}",
        ),
        (
            ("unlinkat", [AT_FDCWD, 0x1000, 0, 0, 0, 0], -2, Some((1, b"/gone"))),
            r#"unlinkat(dfd: CWD, pathname: "/gone")"#,
        ),
        (("exit_group", [3, 0, 0, 0, 0, 0], 0, None), "exit_group(error_code: 3)"),
    ]
}

fn write(place: &Place, name: &str) {
    let session = Session { machine: "aarch64".into(), syscalls: Vec::new(), ..common::session() };
    let mut tape = Tape::create_with(&place.path(name), &session);
    let calls = calls();
    tape.segment_with(9_000, &[], &[], |builder| {
        let task = builder.intern_task(&common::task(100));
        for (at, ((name, args, ret, captured), _)) in (1..).zip(&calls) {
            let nr = number(Abi::Aarch64, name).unwrap();
            let call = builder.intern_call(Call { abi: Abi::Aarch64 as u8, nr });
            let errno = if *ret < 0 { ret.unsigned_abs() as u16 } else { 0 };
            let state = if *name == "exit_group" { CallState::NoReturn } else { CallState::Complete };
            let id = builder.push_syscall(SyscallRow {
                end: OPEN + at * MS,
                dur: 10 * US,
                cpu: 0,
                task,
                call,
                ret: *ret,
                errno,
                state,
                unselected: false,
                args: *args,
                unknown: 0,
                fd: FD_NONE,
                fd2: FD_NONE,
            });
            if let Some((arg, bytes)) = captured {
                builder.push_captured(id, *arg, ByteStatus::Whole, bytes.len() as u64, bytes);
            }
        }
    });
    tape.finish();
}

#[test]
fn calls_of_arm64_have_its_names_flags_and_structures() {
    let place = Place::new();
    write(&place, "arm.tape");
    let listing = place.analyze("trace arm.tape --wide").out;
    for (_, text) in calls() {
        assert!(listing.contains(text), "{text}\nis not in\n{listing}");
    }
    assert!(listing.contains("ENOENT"), "{listing}");
}

/// `-e` chooses by name on any machine, and an ABI leaves out the others.
#[test]
fn calls_of_arm64_are_chosen_by_name() {
    let place = Place::new();
    write(&place, "arm.tape");
    let of = |words: &str| {
        let listing = place.analyze(&format!("trace arm.tape --format json {words}")).out;
        listing.lines().filter(|line| line.contains(r#""abi":"aarch64""#)).count()
    };
    assert_eq!(of(""), calls().len());
    assert_eq!((of("-e openat"), of("-e openat@64"), of("-e openat@aarch64")), (2, 2, 2));
    assert_eq!((of("-e openat@x86_64"), of("-e file")), (0, 4));
}
