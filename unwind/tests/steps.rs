//! Steps through programs instruction by instruction and demands the whole stack at each one.
//!
//! What is right comes from the CPU: a step that puts the address of the next instruction on the stack was a call, a step to the address that stood
//! on the stack was a return.

mod traced;

use std::path::Path;

use systape_unwind::{Found, UnwindEnd, Unwinder};
use traced::{Space, Stop, Traced, compile};

/// Return addresses, the innermost last, each with the stack pointer below it.
struct Shadow(Vec<(u64, u64)>);

impl Shadow {
    fn empty() -> Self {
        Self(Vec::new())
    }

    /// The stack as it was found at a place where other tests prove it.
    fn from(frames: &[Found]) -> Self {
        Self(frames[1..].iter().rev().map(|f| (f.address, u64::MAX)).collect())
    }

    /// From (ip, sp) to (ip, sp).
    fn follow(&mut self, traced: &Traced, from: (u64, u64), to: (u64, u64)) {
        let top = traced.word(to.1);
        let length = top.wrapping_sub(from.0);
        if to.1 == from.1 - 8 && (2..=15).contains(&length) && to.0 != top {
            self.0.push((top, to.1));
        } else if to.1 > from.1 && self.0.last().is_some_and(|(address, _)| *address == to.0) {
            self.0.pop();
        }
        // longjmp. One word above is not enough: vfork takes its return address off the stack and jumps to it later.
        while self.0.last().is_some_and(|(_, sp)| *sp != u64::MAX && sp + 8 < to.1) {
            self.0.pop();
        }
    }

    fn matches(&self, frames: &[Found]) -> bool {
        frames[1..].iter().map(|f| f.address).eq(self.0.iter().rev().map(|(a, _)| *a))
    }
}

/// Steps until `done`, or `most` steps; returns how many, and what was wrong.
fn step_through(
    traced: &Traced,
    unwinder: &mut Unwinder,
    mut shadow: Shadow,
    most: usize,
    tolerated: impl Fn(&str) -> bool,
) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let mut space = traced.space();
    let mut steps = 0;
    while steps < most {
        let before = traced.registers();
        // A syscall may have changed the mappings.
        if traced.read(before.0[16], 2) == [0x0f, 0x05] {
            if traced.step(0) == Stop::Exited {
                break;
            }
            space = traced.space();
        } else {
            match traced.step(0) {
                Stop::Signal(libc::SIGTRAP) => {}
                Stop::Signal(libc::SIGCHLD) => continue,
                _ => break,
            }
        }
        if traced.read(before.0[16], 1) == [0xcc] {
            break;
        }
        steps += 1;
        let now = traced.registers();
        shadow.follow(traced, (before.0[16], before.0[7]), (now.0[16], now.0[7]));
        let (frames, end) = traced.unwind(unwinder, &space);
        if (end != UnwindEnd::Complete || !shadow.matches(&frames)) && wrong.len() < 40 {
            let place = space.describe(now.0[16]);
            if !tolerated(&place) {
                wrong.push(message(&space, &place, &shadow, &frames, end));
            }
        }
    }
    (steps, wrong)
}

fn message(space: &Space, place: &str, shadow: &Shadow, frames: &[Found], end: UnwindEnd) -> String {
    let want: Vec<_> = shadow.0.iter().rev().map(|(a, _)| space.describe(*a)).collect();
    let got: Vec<_> = frames[1..].iter().map(|f| space.describe(f.address)).collect();
    format!("at {place}: {end:?}\n   want {}\n    got {}", want.join(" < "), got.join(" < "))
}

fn walk(compiler: &str, flags: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(compiler, "walk.c", flags, dir.path()) else { return };
    walk_program(&program);
}

fn walk_program(program: &Path) {
    let traced = Traced::start(program, &[]);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGTRAP));
    let mut unwinder = Unwinder::new(4096);
    let space = traced.space();
    let (frames, end) = traced.unwind(&mut unwinder, &space);
    let names: Vec<_> = frames.iter().map(|f| space.name(program, f.address)).collect();
    assert_eq!(end, UnwindEnd::Complete, "{names:?}");
    assert_eq!(names[0], "main");
    assert_eq!(names.last().unwrap(), "_start");
    assert!((3..=4).contains(&names.len()), "{names:?}");
    let (steps, wrong) = step_through(&traced, &mut unwinder, Shadow::from(&frames), 100_000, |_| false);
    assert!(wrong.is_empty(), "{} of {steps} steps\n{}", wrong.len(), wrong.join("\n"));
    assert!((1000..100_000).contains(&steps), "{steps} steps");
}

#[test]
fn optimized() {
    walk("cc", &["-O2", "-Wl,-z,now"]);
}

#[test]
fn lazy_binding() {
    walk("cc", &["-O2", "-Wl,-z,lazy"]);
}

#[test]
fn frame_pointers() {
    walk("cc", &["-O2", "-fno-omit-frame-pointer", "-Wl,-z,lazy"]);
}

#[test]
fn not_optimized() {
    walk("cc", &["-O0"]);
}

#[test]
fn fixed_address_without_plt_sections() {
    walk("cc", &["-O1", "-no-pie", "-fcf-protection=none", "-Wl,-z,lazy"]);
}

#[test]
fn statically_linked() {
    walk("cc", &["-O2", "-static"]);
}

#[test]
fn static_pie() {
    walk("cc", &["-O3", "-static-pie"]);
}

#[test]
fn no_search_table() {
    walk("cc", &["-O2", "-Wl,--no-eh-frame-hdr", "-static"]);
}

#[test]
fn clang() {
    walk("clang", &["-O2"]);
}

#[test]
fn process_entry_of_the_dynamic_linker() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "walk.c", &["-O2"], dir.path()).unwrap();
    let traced = Traced::start(&program, &[]);
    let mut unwinder = Unwinder::new(65536);
    // The linker puts _init and _fini together from pieces, without rules.
    let pieces = |place: &str| place.contains("(_init)") || place.contains("(_fini)");
    let (steps, wrong) = step_through(&traced, &mut unwinder, Shadow::empty(), 200_000, pieces);
    assert!(wrong.is_empty(), "{} of {steps} steps\n{}", wrong.len(), wrong.join("\n"));
    assert!(steps > 1000, "{steps} steps");
}

#[test]
fn debug_frame_only() {
    // What the program is made of; libc has its .eh_frame.
    let flags = ["-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-exceptions"];
    walk("cc", &flags);
    walk("cc", &[&flags[..], &["-gz=zlib"]].concat());
}

#[test]
fn no_section_headers() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("cc", "walk.c", &["-O2"], dir.path()).unwrap();
    let mut bytes = std::fs::read(&program).unwrap();
    // Cut at the section headers, which stand last, and cleared in the header.
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
    bytes.truncate(table as usize);
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    std::fs::write(&program, bytes).unwrap();

    let traced = Traced::start(&program, &[]);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGTRAP));
    let mut unwinder = Unwinder::new(4096);
    let (frames, end) = traced.unwind(&mut unwinder, &traced.space());
    assert_eq!((frames.len(), end), (4, UnwindEnd::Complete));
    let (steps, wrong) = step_through(&traced, &mut unwinder, Shadow::from(&frames), 100_000, |_| false);
    assert!(wrong.is_empty(), "{} of {steps} steps\n{}", wrong.len(), wrong.join("\n"));
    assert!(steps > 1000);
}

/// Steps to a signal's handler, through it, and back.
fn signal(arguments: &[&str], compiler: &str, flags: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(compiler, "signal.c", flags, dir.path()) else { return };
    let traced = Traced::start(&program, arguments);
    assert_eq!(traced.go(0), Stop::Signal(libc::SIGUSR1));
    let mut unwinder = Unwinder::new(4096);
    let space = traced.space();
    let (interrupted, end) = traced.unwind(&mut unwinder, &space);
    assert_eq!(end, UnwindEnd::Complete);
    let names: Vec<_> = interrupted.iter().map(|f| space.name(&program, f.address)).collect();
    let program_names: Vec<_> = names.iter().filter(|n| !n.starts_with('[') && !n.contains("kill")).collect();
    assert_eq!(program_names[..4], ["third", "second", "first", "main"], "{names:?}");
    let outer = traced.registers();

    assert_eq!(traced.step(libc::SIGUSR1), Stop::Signal(libc::SIGTRAP));
    let entry = traced.registers();
    let trampoline = traced.word(entry.0[7]);
    assert_eq!(space.name(&program, entry.0[16]), "handler");
    let alternate = !arguments.is_empty();

    let mut calls = Shadow::empty();
    let (mut in_trampoline, mut in_inner) = (0, 0);
    loop {
        let now = traced.registers();
        let (frames, end) = traced.unwind(&mut unwinder, &space);
        let place = space.describe(now.0[16]);
        let returned = now.0[7] > entry.0[7];
        let mut want = vec![(now.0[16], true, returned)];
        want.extend(calls.0.iter().rev().map(|(address, _)| (*address, false, false)));
        if !returned {
            want.push((trampoline, false, true));
        }
        if alternate {
            want.push((outer.0[16], true, false));
        } else {
            want.extend(interrupted.iter().map(|f| (f.address, f.exact, false)));
        }
        let got: Vec<_> = frames.iter().map(|f| (f.address, f.exact, f.signal)).collect();
        assert_eq!(got, want, "at {place}: {end:?}");
        assert_eq!(end, if alternate { UnwindEnd::OtherStack } else { UnwindEnd::Complete }, "at {place}");
        in_trampoline += usize::from(returned);
        in_inner += usize::from(calls.0.len() == 1);

        assert_eq!(traced.step(0), Stop::Signal(libc::SIGTRAP));
        let next = traced.registers();
        if next.0[7] == outer.0[7] && next.0[16] == outer.0[16] {
            break;
        }
        if next.0[7] <= entry.0[7] {
            calls.follow(&traced, (now.0[16], now.0[7]), (next.0[16], next.0[7]));
        }
    }
    assert_eq!(in_trampoline, 2, "mov and syscall");
    assert!(in_inner > 1);
    let (frames, end) = traced.unwind(&mut unwinder, &space);
    assert_eq!((frames, end), (interrupted, UnwindEnd::Complete));
}

#[test]
fn signal_handler() {
    signal(&[], "cc", &["-O2"]);
    signal(&[], "cc", &["-O2", "-static"]);
    signal(&[], "clang", &["-O1"]);
}

#[test]
fn signal_handler_on_an_alternate_stack() {
    signal(&["alternate"], "cc", &["-O2"]);
    signal(&["alternate"], "cc", &["-O0", "-static"]);
}

#[test]
fn thread_from_its_first_instruction() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [&["-O2"][..], &["-O2", "-static"]] {
        let program = compile("cc", "thread.c", flags, dir.path()).unwrap();
        let mut traced = Traced::start(&program, &[]);
        assert_eq!(traced.go(0), Stop::Event(libc::PTRACE_EVENT_CLONE));
        let mut unwinder = Unwinder::new(4096);

        // The parent, right after the syscall: glibc has ended the rules there, for the child's sake.
        let space = traced.space();
        let (frames, end) = traced.unwind(&mut unwinder, &space);
        let names: Vec<_> = frames.iter().map(|f| space.name(&program, f.address)).collect();
        assert_eq!(end, UnwindEnd::Complete, "{names:?}");
        assert!(names.contains(&"main".to_owned()), "{names:?}");
        assert!(frames[1].guessed, "{names:?}");

        traced.tid = traced.event_message() as i32;
        assert_eq!(traced.wait(), Stop::Signal(libc::SIGSTOP));
        let (frames, end) = traced.unwind(&mut unwinder, &space);
        assert_eq!((frames.len(), end), (1, UnwindEnd::Complete), "the child's first return");
        let (steps, wrong) = step_through(&traced, &mut unwinder, Shadow::empty(), 20_000, |_| false);
        assert!(wrong.is_empty(), "{} of {steps} steps\n{}", wrong.len(), wrong.join("\n"));
        let (frames, end) = traced.unwind(&mut unwinder, &space);
        let names: Vec<_> = frames.iter().map(|f| space.name(&program, f.address)).collect();
        assert_eq!(names[..3], ["third", "second", "thread"], "{names:?}");
        assert_eq!(end, UnwindEnd::Complete);
        assert!(steps > 50, "{steps} steps");
    }
}

/// Not part of every run: minutes. What is wrong is printed, with the place; judge it by hand.
#[test]
#[ignore = "takes minutes; depends on what is installed"]
fn installed_programs() {
    for (program, arguments) in [
        (
            "/usr/bin/python3",
            &["-c", "import json, re, hashlib; print(sorted(json.loads('[3,1,2]')), hashlib.sha256(b'x').hexdigest())"]
                [..],
        ),
        ("/usr/bin/git", &["--no-pager", "log", "-1"]),
        ("/usr/bin/perl", &["-e", "print sort { $a <=> $b } (3, 1, 2)"]),
        ("/bin/bash", &["-c", "for i in 1 2 3; do [[ $i =~ [0-9] ]] && echo $((i * 2)); done"]),
        ("/usr/bin/gcc", &["--version"]),
    ] {
        if !Path::new(program).exists() {
            eprintln!("SKIPPED: {program} is not installed");
            continue;
        }
        let traced = Traced::start(Path::new(program), arguments);
        let mut unwinder = Unwinder::new(65536);
        let (steps, wrong) = step_through(&traced, &mut unwinder, Shadow::empty(), 500_000, |place| {
            place.contains("(_init)") || place.contains("(_fini)")
        });
        eprintln!("{program}: {} of {steps} steps wrong\n{}", wrong.len(), wrong.join("\n"));
    }
}
