//! Inside the sandbox nothing can be done but what was asked for, and every report can be had.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::common::{self, Place};
use systape_analyzer::exercise::{RemainingRights, enter};

/// Tells this program that it is the child that confines itself: where its files are, and a port that listens.
const CHILD: &str = "SYSTAPE_TEST_CONFINED";

/// The version of Landlock; 0 = the kernel has none.
fn landlock() -> i64 {
    // SAFETY: asks for the version, with no memory involved.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) }.max(0)
}

fn refused<T>(what: &str, result: std::io::Result<T>) {
    match result {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: it can be done"),
    }
}

/// What code that has taken over the process could try.
fn attempts(dir: &Path, port: u16) {
    refused("read a file", fs::read("/etc/passwd"));
    refused("list a directory", fs::read_dir("/"));
    refused("make a file", File::create("/tmp/made-in-the-sandbox"));
    refused("make a file beside the tape", File::create(dir.join("other")));
    refused("write to the tape", fs::OpenOptions::new().write(true).open(dir.join("tape")));
    refused("remove the tape", fs::remove_file(dir.join("tape")));
    refused("rename the tape", fs::rename(dir.join("tape"), dir.join("other")));
    refused("make a directory", fs::create_dir(dir.join("other")));
    refused("make a link", std::os::unix::fs::symlink("/etc/passwd", dir.join("other")));
    refused("run a program", Command::new("/bin/true").spawn());
    refused("connect", TcpStream::connect(("127.0.0.1", port)));
    refused("listen", TcpListener::bind("127.0.0.1:0"));
    refused("send", UdpSocket::bind("127.0.0.1:0"));
    refused("a local socket", UnixListener::bind(dir.join("socket")));
    assert_eq!(fs::read(dir.join("tape")).unwrap(), b"tape");
    fs::write(dir.join("out"), "written").unwrap();
}

/// Runs as a process of its own: what is given up does not come back.
fn child(place: &str) {
    let (port, dir) = place.split_once(' ').unwrap();
    let (port, dir) = (port.parse().unwrap(), Path::new(dir));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok() && fs::read("/etc/passwd").is_ok());
    enter(&RemainingRights {
        read: vec![dir.join("tape")],
        write: vec![dir.join("out")],
        ..RemainingRights::default()
    });
    attempts(dir, port);
    // threads made afterwards, as rayon's are
    std::thread::scope(|scope| scope.spawn(|| attempts(dir, port)).join()).unwrap();
    println!("confined");
}

#[test]
fn nothing_can_be_done_but_what_was_asked_for() {
    if let Ok(place) = std::env::var(CHILD) {
        return child(&place);
    }
    if landlock() < 4 {
        eprintln!("SKIPPED: this kernel's Landlock has version {}, files and TCP need 4", landlock());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tape"), "tape").unwrap();
    File::create(dir.path().join("out")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("{} {}", listener.local_addr().unwrap().port(), dir.path().display());
    assert_confined(&confined("nothing_can_be_done_but_what_was_asked_for", Path::new(&place)));
    assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"written");
}

/// The program itself, as the kernel sees it.
#[test]
fn a_run_is_confined_unless_told_otherwise() {
    if landlock() == 0 {
        eprintln!("SKIPPED: this kernel has no Landlock");
        return;
    }
    let place = Place::new();
    let status = |option: &[&str]| -> Vec<String> {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("analyze"))
            .args(option)
            .args(["--format", "json", "many.tape"])
            .current_dir(place.path(""))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // it has read of the tape, and waits: the rest does not fit the pipe
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if option.is_empty() {
            for set in ["CapEff:\t", "CapPrm:\t", "CapInh:\t"] {
                assert!(text.contains(&format!("{set}0000000000000000\n")), "{text}");
            }
        }
        let wanted = |line: &&str| line.starts_with("NoNewPrivs:") || line.starts_with("Seccomp:");
        text.lines().filter(wanted).map(|line| line.split_whitespace().last().unwrap_or("").to_owned()).collect()
    };
    many(&place.path("many.tape"));
    assert_eq!(status(&["--no-sandbox"]), ["0", "0"]);
    assert_eq!(status(&[]), ["1", "2"], "no new privileges, a filter of calls");
}

/// What the kernel says of each thread of a process, by its number.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok()).collect()
}

fn assert_all_confined(what: &str, threads: &[String]) {
    let filter = if landlock() == 0 { "" } else { "NoNewPrivs:\t1\n" };
    for thread in threads {
        for line in ["CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "Seccomp:\t2\n", filter] {
            assert!(thread.contains(line), "{what}, one of {} threads: {thread}", threads.len());
        }
    }
}

/// A thread without limits in the same memory would do what a confined one writes on its stack.
#[test]
fn every_thread_is_confined() {
    let place = Place::new();
    many(&place.path("many.tape"));
    let mut most = 0;
    for words in [
        &["many.tape"][..],
        &["--format", "json", "many.tape"],
        &["--format", "csv", "many.tape", "many.tape"],
        &["export", "strace", "many.tape"],
    ] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("analyze"))
            .args(words)
            .env("RAYON_NUM_THREADS", "3")
            .current_dir(place.path(""))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // it has read of the tape, and waits: the rest does not fit the pipe
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let threads = threads(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_all_confined(&words.join(" "), &threads);
        most = most.max(threads.len());
    }
    assert!(most > 2, "{most} threads at most: there was nothing to see");
}

/// Not a byte of a tape is read before.
#[test]
fn a_pipe_is_read_in_the_sandbox() {
    let place = Place::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("analyze"))
        .arg("-")
        .current_dir(place.path(""))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let waits = || {
        let read = fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap_or_default();
        // read, of the pipe
        read.starts_with("0 0x")
    };
    let begun = std::time::Instant::now();
    while !waits() && begun.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    let threads = threads(child.id());
    drop(input);
    child.wait().unwrap();
    assert!(!threads.is_empty());
    assert_all_confined("analyze -", &threads);
}

/// What `analyze` writes is read by nobody who may not read the tape.
#[test]
fn files_are_as_open_as_the_tape() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    common::stacks::write(&place.path("a.tape"), 1);
    common::stacks::write(&place.path("b.tape"), 1);
    let mode = |name: &str, mode| fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    let is = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    mode("b.tape", 0o644);
    let all = [
        "report -o out a.tape",
        "export perfetto -o out a.tape",
        "export perfetto -o out b.tape a.tape",
        "export pprof -o out a.tape",
        "export firefox -o out a.tape",
        "export arrow -o out a.tape",
        "callgraph --svg out a.tape",
        "callgraph --svg out b.tape --diff a.tape",
        "offcpu --stacks --svg out a.tape",
        "repair a.tape out",
        "redact a.tape out",
        "cut --time 0,1 a.tape out",
    ];
    let mut made = 0;
    for words in all {
        // unreadable to others, then readable; a new file, then one that is there
        for (tape, wanted) in [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644)] {
            mode("a.tape", tape);
            let private = ["repair", "redact", "cut"].iter().any(|word| words.starts_with(word));
            let wanted = if private { 0o600 } else { wanted };
            fs::remove_file(place.path("out")).ok();
            let got = place.analyze(words);
            if got.status == 2 {
                continue;
            }
            assert_eq!((got.status, is("out")), (0, wanted), "{words} of {tape:o}: {}", got.err);
            made += 1;
            if !private {
                mode("out", 0o644);
                assert_eq!((place.analyze(words).status, is("out")), (0, wanted), "{words}: one that is there");
            }
        }
    }
    assert!(made >= 3 * 8, "{made}");
    // who reads a pipe is not known
    fs::remove_file(place.path("out")).ok();
    let script = format!("cat a.tape | {} report -o out -", assert_cmd::cargo::cargo_bin("analyze").display());
    assert!(Command::new("sh").args(["-c", &script]).current_dir(place.path("")).status().unwrap().success());
    assert_eq!(is("out"), 0o600);
    // somebody else's file would be his
    mode("a.tape", 0o600);
    if std::os::unix::fs::chown(place.path("out"), Some(65534), None).is_ok() {
        let got = place.analyze("report -o out a.tape");
        assert!(got.status == 1 && got.err.contains("uid 65534's, who may not read the tape"), "{}", got.err);
    }
}

/// A tape whose listing does not fit a pipe.
fn many(path: &Path) {
    let mut tape = common::Tape::create(path);
    let row = |i: u64| common::Row { tid: 100, name: "read", start: i * 10, dur: 5, ..common::Row::default() };
    let rows: Vec<_> = (0..20_000).map(row).collect();
    tape.segment(common::OPEN + 1_000_000_000, &rows, &[]);
    tape.finish();
}

#[test]
fn files_named_on_the_command_line_are_written() {
    let place = Place::new();
    common::stacks::write(&place.path("a.tape"), 1);
    for option in ["", "--no-sandbox "] {
        for file in ["out.svg", "copy.tape"] {
            let _ = fs::remove_file(place.path(file));
        }
        let got = place.analyze(&format!("{option}callgraph --svg out.svg a.tape"));
        assert_eq!(got.status, 0, "{}", got.err);
        assert!(fs::read_to_string(place.path("out.svg")).unwrap().contains("</svg>"));
        // one that exists is written over
        File::options().append(true).open(place.path("out.svg")).unwrap().write_all(&[b'x'; 1 << 20]).unwrap();
        assert_eq!(place.analyze(&format!("{option}callgraph --svg out.svg --diff a.tape a.tape")).status, 0);
        assert!(fs::metadata(place.path("out.svg")).unwrap().len() < 1 << 20);
        assert_eq!(place.analyze(&format!("{option}repair a.tape copy.tape")).status, 0);
        assert_eq!(place.analyze(&format!("{option}diff a.tape copy.tape")).status, 0);
    }
}

#[test]
fn what_was_begun_for_nothing_is_removed() {
    let place = Place::new();
    fs::write(place.path("no.tape"), "no tape at all, and long enough to be looked at").unwrap();
    for words in ["callgraph --svg new.svg no.tape", "repair no.tape new.tape"] {
        let got = place.analyze(words);
        assert_eq!(got.status, 1, "{words}: {}", got.err);
        assert!(got.err.contains("not a tape"), "{words}: {}", got.err);
    }
    assert!(!place.path("new.svg").exists() && !place.path("new.tape").exists());
}

/// Runs the test `name` of this file again as a child that confines itself; its output.
fn confined(name: &str, dir: &Path) -> std::process::Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sandbox::{name}"), "--nocapture", "--test-threads=1"])
        .env(CHILD, dir)
        .output()
        .unwrap()
}

fn assert_confined(out: &std::process::Output) {
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("confined"), "{text} {}", String::from_utf8_lossy(&out.stderr));
}

/// Makes a call and returns its error, 0 for none.
fn errno(nr: i64, args: [i64; 6]) -> i32 {
    // SAFETY: the arguments are bad for every call that is let through; pointers among them are to live memory.
    let ret = unsafe { libc::syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]) };
    if ret == -1 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

/// Not tried: exit, exit_group and rt_sigreturn, which are allowed and do not return; uretprobe (335) and uprobe (336), which the kernel
/// lets through every filter (Linux 6.14) and answers with SIGILL outside of its own trampolines.
#[cfg(target_arch = "x86_64")]
const DO_NOT_RETURN: [i64; 5] = [libc::SYS_exit, libc::SYS_exit_group, libc::SYS_rt_sigreturn, 335, 336];

/// What gets through with any arguments. Written here again: the list of the sandbox is what is tested.
#[cfg(target_arch = "x86_64")]
const THROUGH: &str = "brk clock_getres clock_gettime clock_nanosleep clone close fdatasync fstat fsync ftruncate futex \
    getcwd getdents64 geteuid getpid getrandom gettid gettimeofday lseek pipe2 lstat madvise mremap munmap nanosleep newfstatat open \
    openat pread64 preadv pwrite64 read readlink readlinkat readv restart_syscall rseq rt_sigaction rt_sigprocmask \
    sched_getaffinity sched_yield set_robust_list sigaltstack stat statx write writev";

/// Every number with arguments of -1. fcntl, flock, ioctl, mmap, mprotect, prctl, prlimit64, tgkill and tkill are allowed with some
/// arguments, not with these.
#[test]
#[cfg(target_arch = "x86_64")]
fn only_listed_calls_get_through() {
    if let Ok(dir) = std::env::var(CHILD) {
        // SAFETY: a timer: a call that waits (pause) would be one that gets through.
        unsafe { libc::alarm(60) };
        enter(&RemainingRights { read: vec![dir.into()], ..RemainingRights::default() });
        let mut got = Vec::new();
        for nr in (0..1024).chain((0..1024).map(|nr| 0x4000_0000 | nr)).filter(|nr| !DO_NOT_RETURN.contains(nr)) {
            let error = errno(nr, [-1; 6]);
            if error != libc::EPERM {
                got.push((nr, error));
            }
        }
        let number = |name: &str| i64::from(systape_abi::number(systape_abi::Abi::X86_64, name).unwrap());
        let mut wanted: Vec<i64> = THROUGH.split_whitespace().map(number).chain([libc::SYS_clone3]).collect();
        wanted.sort_unstable();
        assert_eq!(got.iter().map(|(nr, _)| *nr).collect::<Vec<_>>(), wanted, "{got:?}");
        assert!(got.contains(&(libc::SYS_clone3, libc::ENOSYS)), "libc takes clone instead: {got:?}");
        return println!("confined");
    }
    assert_confined(&confined("only_listed_calls_get_through", Path::new("/")));
}

/// What an open list let through. As root each would do something; reboot has magic numbers that are none.
#[test]
#[cfg(target_arch = "x86_64")]
fn files_and_the_machine_stay_as_they_are() {
    if let Ok(dir) = std::env::var(CHILD) {
        let file = std::ffi::CString::new(format!("{dir}/file")).unwrap();
        enter(&RemainingRights::default());
        let (path, name) = (file.as_ptr() as i64, c"user.x".as_ptr() as i64);
        let (cwd, kill) = (i64::from(libc::AT_FDCWD), libc::SYS_tgkill);
        for (what, nr, args) in [
            ("chmod", libc::SYS_chmod, [path, 0o777, 0, 0, 0, 0]),
            ("fchmodat2", 452, [cwd, path, 0o777, 0, 0, 0]),
            ("chown", libc::SYS_chown, [path, 65534, 65534, 0, 0, 0]),
            ("lchown", libc::SYS_lchown, [path, 65534, 65534, 0, 0, 0]),
            ("lsetxattr", libc::SYS_lsetxattr, [path, name, name, 1, 0, 0]),
            ("sethostname", libc::SYS_sethostname, [name, 0, 0, 0, 0, 0]),
            ("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0, 0]),
            ("unlink", libc::SYS_unlink, [path, 0, 0, 0, 0, 0]),
            ("a signal to another process", kill, [1, 1, 0, 0, 0, 0]),
            ("a new process", libc::SYS_clone, [i64::from(libc::SIGCHLD), 0, 0, 0, 0, 0]),
            ("typing into a terminal", libc::SYS_ioctl, [0, libc::TIOCSTI as i64, path, 0, 0, 0]),
            ("new code", libc::SYS_mmap, [0, 4096, i64::from(libc::PROT_EXEC), 0x22, -1, 0]),
        ] {
            assert_eq!(errno(nr, args), libc::EPERM, "{what}");
        }
        return println!("confined");
    }
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::metadata(&file).unwrap();
    assert_confined(&confined("files_and_the_machine_stay_as_they_are", dir.path()));
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
}

/// abort and a panic with a backtrace work as outside: the signal and the text arrive.
#[test]
fn abort_and_panic_work() {
    use std::os::unix::process::ExitStatusExt as _;
    if let Ok(dir) = std::env::var(CHILD) {
        enter(&RemainingRights::default());
        assert!(std::thread::spawn(|| panic!("in a thread")).join().is_err());
        assert_eq!(dir, "/");
        std::process::abort();
    }
    let out = confined("abort_and_panic_work", Path::new("/"));
    assert_eq!(out.status.signal(), Some(libc::SIGABRT), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("in a thread"), "{out:?}");
}

#[test]
fn a_picture_follows_no_link() {
    let place = Place::new();
    common::stacks::write(&place.path("a.tape"), 1);
    fs::write(place.path("victim"), "as it was").unwrap();
    std::os::unix::fs::symlink("victim", place.path("link.svg")).unwrap();
    for option in ["", "--no-sandbox "] {
        let got = place.analyze(&format!("{option}callgraph --svg link.svg a.tape"));
        assert!(got.status == 1 && got.err.contains("symbolic link"), "{}", got.err);
    }
    assert_eq!(fs::read(place.path("victim")).unwrap(), b"as it was");
    // what is there stays when no picture comes of it
    fs::write(place.path("no.tape"), "no tape at all, and long enough to be looked at").unwrap();
    assert_eq!(place.analyze("callgraph --svg victim no.tape").status, 1);
    assert_eq!(fs::read(place.path("victim")).unwrap(), b"as it was");
}
