//! Files made to break the reader: it may die, names of other files are found all the same.

mod common;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{build_c, instructions, look_up, names, offsets, resolver, run};
use systape_symbols::{Deadline, File, GivenUp, Resolver, ResolverLimits};

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    common::be_the_child();
}

struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// Where sections with names like these are in the file.
fn sections(path: &Path, of: &[&str]) -> Vec<std::ops::Range<usize>> {
    let text = String::from_utf8(run("readelf", &["-SW", path.to_str().unwrap()], Path::new("/")).stdout).unwrap();
    let hex = |field: &str| usize::from_str_radix(field, 16).unwrap();
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_once(']')?.1.split_whitespace().collect();
            let wanted = fields.len() > 4 && of.iter().any(|name| fields[0].starts_with(name));
            wanted.then(|| hex(fields[3])..hex(fields[3]) + hex(fields[4]))
        })
        .collect()
}

fn resident(pid: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn damaged_files_cost_their_own_names_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let addresses = instructions(&path, &["<outer>", "<h>"]);
    let offsets = offsets(&path, &addresses);
    let good = fs::read(&path).unwrap();
    // ELF and program headers stand first.
    let first = 0..64 + 13 * 56;
    let targets = [
        sections(&path, &[".debug_"]),
        sections(&path, &[".symtab", ".strtab", ".dynsym", ".note"]),
        Vec::from([first]),
    ];
    let headers = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    let mut resolver = resolver(Vec::new());
    let expected = look_up(&mut resolver, &path, &offsets).unwrap();
    let bad = dir.path().join("bad");
    let mut random = Random(41);
    let mut before = 0;
    let (mut failed, mut died) = (0, 0);
    for round in 0..360 {
        let mut bytes = good.clone();
        match round % 6 {
            0 => bytes.truncate(random.below(good.len())),
            // section headers
            1 => {
                for _ in 0..=random.below(8) {
                    let at = headers + random.below(good.len() - headers);
                    bytes[at] = random.below(256) as u8;
                }
            }
            kind => {
                for _ in 0..=random.below(40) {
                    let ranges = &targets[kind % 3];
                    let range = ranges[random.below(ranges.len())].clone();
                    let at = range.start + random.below(range.len());
                    bytes[at] ^= 1 << random.below(8);
                }
            }
        }
        fs::write(&bad, bytes).unwrap();
        if let Err(why) = look_up(&mut resolver, &bad, &offsets) {
            assert!(!why.contains("nonsense") && !why.contains("too long"), "round {round}: {why}");
            failed += 1;
            died += usize::from(why.contains("died"));
        }
        if round % 20 == 19 {
            assert_eq!(look_up(&mut resolver, &path, &offsets).as_ref(), Ok(&expected), "after round {round}");
        }
        if round == 60 {
            before = resident("self");
        }
    }
    assert!(failed > 20, "the damage does no damage: {failed}");
    eprintln!("{failed} failed, at {died} the child died");
    let grown = resident("self").saturating_sub(before);
    // other tests run beside it in this process
    assert!(grown < 32 << 10, "{grown} KiB more");
}

#[test]
fn a_file_cut_while_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let addresses = instructions(&path, &["<outer>"]);
    let offsets = offsets(&path, &addresses);
    let good = fs::read(&path).unwrap();
    let cut = dir.path().join("cut");
    fs::write(&cut, &good).unwrap();
    let file = Arc::new(fs::File::options().read(true).write(true).open(&cut).unwrap());
    let done = Arc::new(AtomicBool::new(false));
    // Goes back and forth between cut and whole for as long as names are looked up.
    let cutter = std::thread::spawn({
        let (file, done, good) = (Arc::clone(&file), Arc::clone(&done), good.clone());
        move || {
            while !done.load(Ordering::Relaxed) {
                file.set_len(100).unwrap();
                file.write_all_at(&good, 0).unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    });
    let mut resolver = resolver(Vec::new());
    let expected = look_up(&mut resolver, &path, &offsets).unwrap();
    let mut died = false;
    for round in 0..2000 {
        let request = File { fd: file.as_fd(), path: &cut, build_id: &[] };
        if let Err(why) = resolver.look_up(&request, &offsets.repeat(40)) {
            died |= why.contains("SIGBUS");
        }
        if round % 10 == 9 {
            assert_eq!(look_up(&mut resolver, &path, &offsets).as_ref(), Ok(&expected));
            if died {
                break;
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    cutter.join().unwrap();
    assert!(died, "no lookup met the cut file in 2,000");
}

#[test]
fn time_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let limits = ResolverLimits { time: Duration::from_millis(400), ..ResolverLimits::default() };
    // Takes the socket for its input and says nothing.
    let sleeper = vec!["/bin/sleep".into(), "1000".into()];
    let why = look_up(&mut Resolver::with_limits(sleeper, Vec::new(), limits), &path, &[0x1000]).unwrap_err();
    assert_eq!(why, "the symbol reader took too long: no answer for 0.4 s of its time");
}

#[test]
fn all_look_ups_end_with_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let sleeper = || -> Vec<std::ffi::OsString> { vec!["/bin/sleep".into(), "1000".into()] };
    let deadline = Deadline::default();
    let mut resolver = Resolver::new(sleeper(), Vec::new());
    let file = fs::File::open(&path).unwrap();
    let request = File { fd: file.as_fd(), path: &path, build_id: &[] };
    // of one file
    let over = resolver
        .look_up_each(&request, &[0x1000], &deadline.sooner(Duration::from_millis(100)), |_| panic!("an answer"));
    assert_eq!(over, Err(GivenUp::Over));
    // of all, set while one waits
    let ender = std::thread::spawn({
        let deadline = deadline.clone();
        move || {
            std::thread::sleep(Duration::from_millis(100));
            deadline.end_now();
        }
    });
    for _ in 0..1000 {
        let over = resolver.look_up_each(&request, &[0x1000], &deadline, |_| panic!("an answer"));
        assert_eq!(over, Err(GivenUp::Over));
    }
    ender.join().unwrap();
}

#[test]
fn files_that_kill_the_reader_cost_no_other_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let offsets = offsets(&path, &instructions(&path, &["<outer>"]));
    let mut resolver = resolver(Vec::new());
    let expected = look_up(&mut resolver, &path, &offsets).unwrap();
    let me = fs::read_link("/proc/thread-self").unwrap();
    for _ in 0..40 {
        let children = fs::read_to_string(format!("/proc/{}/children", me.display())).unwrap();
        for pid in children.split_whitespace() {
            // SAFETY: a number; it is a child of this very thread and is waited for by nobody else.
            unsafe { libc::kill(pid.parse().unwrap(), libc::SIGSTOP) };
        }
        let file = fs::File::open(&path).unwrap();
        let request = File { fd: file.as_fd(), path: &path, build_id: &[] };
        let time = Deadline::default().sooner(Duration::from_millis(20));
        assert_eq!(resolver.look_up_each(&request, &offsets, &time, |_| panic!("an answer")), Err(GivenUp::Over));
        assert_eq!(look_up(&mut resolver, &path, &offsets).as_ref(), Ok(&expected));
    }
}

#[test]
fn a_child_that_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    for (command, expected) in [
        (vec!["/nonexistent".into()], "cannot be started"),
        (vec![], "cannot be started"),
        (vec!["/bin/true".into()], "ended with status 0"),
        // gives back what it got, which is a length out of bounds or an unknown answer
        (vec!["/bin/sh".into(), "-c".into(), "exec cat <&0 >&0".into()], "nonsense"),
        (vec!["/bin/sh".into(), "-c".into(), "kill -SEGV $$".into()], "signal 11 (SIGSEGV)"),
        (vec!["/bin/sh".into(), "-c".into(), r"printf '\377\377\377\377' >&0; exec sleep 9".into()], "nonsense"),
        (
            vec!["/bin/sh".into(), "-c".into(), r"printf '\005\000\000\000\000abcd' >&0; exec sleep 9".into()],
            "another program",
        ),
    ] {
        let mut resolver = Resolver::new(command, Vec::new());
        for _ in 0..16 {
            let why = look_up(&mut resolver, &path, &[0x1000]).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let why = look_up(&mut resolver, &path, &[0x1000]).unwrap_err();
        assert!(why.contains("16 times in a row") && why.contains(expected), "{why}");
    }
}

#[test]
fn what_is_no_elf_file_is_said() {
    let mut resolver = resolver(Vec::new());
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in [("empty", &b""[..]), ("text", b"#!/bin/sh\n"), ("half", b"\x7fELF\x02\x01\x01")] {
        let path = dir.path().join(name);
        fs::write(&path, contents).unwrap();
        let why = look_up(&mut resolver, &path, &[0]).unwrap_err();
        assert!(why.contains("ELF"), "{name}: {why}");
    }
    assert!(look_up(&mut resolver, Path::new("/proc"), &[0]).is_err());
}

#[test]
fn many_offsets_and_those_outside() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let addresses = instructions(&path, &["<outer>"]);
    let inside = offsets(&path, &addresses);
    let mut resolver = resolver(Vec::new());
    let expected = look_up(&mut resolver, &path, &inside).unwrap();
    let many: Vec<u64> = inside.iter().copied().cycle().take(50_000).collect();
    let found = look_up(&mut resolver, &path, &many).unwrap();
    assert_eq!(found.len(), many.len());
    for (i, found) in found.iter().enumerate() {
        assert_eq!(found, &expected[i % expected.len()]);
    }
    assert_eq!(look_up(&mut resolver, &path, &[u64::MAX, 1 << 40, 0]).unwrap(), [vec![], vec![], vec![]]);
    assert_eq!(look_up(&mut resolver, &path, &[]).unwrap(), Vec::<Vec<_>>::new());
}

#[test]
fn code_without_a_symbol_is_not_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let plt = sections(&path, &[".plt"]);
    let offsets: Vec<u64> = plt.iter().map(|range| range.start as u64 + 4).collect();
    assert!(!offsets.is_empty());
    let found = look_up(&mut resolver(Vec::new()), &path, &offsets).unwrap();
    assert!(names(&found).iter().all(Vec::is_empty), "{found:?}");
}

#[test]
fn the_child_keeps_nothing_open_and_is_confined() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let leak = fs::File::open(&path).unwrap();
    // SAFETY: takes a descriptor's number and sets a flag of it.
    assert_eq!(unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&leak), libc::F_SETFD, 0) }, 0);
    let mut resolver = resolver(Vec::new());
    look_up(&mut resolver, &path, &[0x1000]).unwrap();
    let me = std::process::id().to_string();
    // The only child of this test's thread: other tests have their own.
    let tid = fs::read_link("/proc/thread-self").unwrap();
    let children = fs::read_to_string(format!("/proc/{}/children", tid.display())).unwrap_or_default();
    let pid = children.split_whitespace().next().unwrap_or_else(|| panic!("{me} has no children")).to_owned();
    let open: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap().display().to_string())
        .collect();
    assert!(!open.iter().any(|open| open.starts_with(dir.path().to_str().unwrap())), "{open:?}");
    // The test harness has more threads than the one that reads symbols.
    let mut threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
    let confined =
        |task: std::path::PathBuf| fs::read_to_string(task.join("status")).unwrap().contains("NoNewPrivs:\t1");
    assert!(threads.any(confined));
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    for (name, limit) in [("Max core file size", "0"), ("Max data size", "2147483648")] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line[name.len()..].split_whitespace().next(), Some(limit), "{line}");
    }
    drop(resolver);
    assert!(!Path::new(&format!("/proc/{pid}/fd/0")).exists(), "the child lives on");
}

#[test]
fn memory_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    let path = build_c(dir.path(), &[]);
    let addresses = instructions(&path, &["<outer>"]);
    let offsets = offsets(&path, &addresses);
    let limits = ResolverLimits { memory: 64 << 20, ..ResolverLimits::default() };
    let mut resolver = Resolver::with_limits(common::command(), Vec::new(), limits);
    let expected = look_up(&mut resolver, &path, &offsets).unwrap();
    // Unpacks to 200 MiB.
    run("sh", &["-c", "head -c 200M /dev/zero | xz -0 > zeros.xz"], dir.path());
    fs::copy(&path, dir.path().join("bomb")).unwrap();
    run("strip", &["-s", "bomb"], dir.path());
    run("objcopy", &["--add-section", ".gnu_debugdata=zeros.xz", "bomb"], dir.path());
    let found = look_up(&mut resolver, &dir.path().join("bomb"), &offsets);
    assert!(found.as_ref().map_or(true, |found| found.iter().all(Vec::is_empty)), "{found:?}");
    eprintln!("{:?}", found.map(|found| found.len()));
    assert_eq!(look_up(&mut resolver, &path, &offsets).unwrap(), expected);
}
