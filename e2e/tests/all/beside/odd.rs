//! Calls that do not simply begin and return: open during the whole recording, open at its start, killed inside, never
//! called for (the child's side of a fork); callers of another ABI; names and arguments that are long, or no UTF-8. Each
//! is what the kernel did, marked as what it is. And a reader that goes away is no error.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use systape_e2e::more::{FREESTANDING, count};
use systape_e2e::{Background, Call, Lab, lab};

/// Line of the text listing with `word`; there must be one.
#[track_caller]
fn line(lab: &Lab, options: &[&str], word: &str) -> String {
    let text = lab.analyze(&[&["t.tape"], options].concat()).expect(0).text();
    let lines: Vec<_> = text.lines().filter(|line| line.contains(word)).collect();
    assert_eq!(lines.len(), 1, "lines with {word}: {text}");
    lines[0].to_owned()
}

/// Starts two threads that wait in read of a pipe until SIGUSR1.
fn start_waiting(lab: &Lab) -> (Background, Vec<i64>) {
    let target = lab.cc("target", &[]);
    let text = format!("exec {target} threads usr1 1009 1013 > out");
    let program = Background::start(lab.command("sh").args(["-c", &text]));
    let tids = || -> Vec<i64> {
        let text = fs::read_to_string(lab.path("out")).unwrap_or_default();
        text.lines().map(|line| line.split_once(' ').expect("two numbers").0.parse().expect("tid")).collect()
    };
    lab.until("threads", || tids().len() == 2);
    // until both sleep in read (nr 0)
    let reads =
        |tid: &i64| fs::read_to_string(format!("/proc/{tid}/syscall")).is_ok_and(|text| text.starts_with("0 0x"));
    lab.until("reads", || tids().iter().all(reads));
    (program, tids())
}

#[test]
fn open_during_the_whole_recording() {
    let Some(lab) = Lab::beside() else { return };
    let (program, tids) = start_waiting(&lab);
    let pipe = fs::read_link(format!("/proc/{}/fd/3", program.pid())).expect("pipe").display().to_string();
    lab.attach("t.tape", &["-p", &program.pid_text(), "--for", "300ms"]).wait().expect(0);
    lab.assert_whole("t.tape");
    let duration = lab.info("t.tape")["duration_ns"].as_i64().expect("duration");
    let calls = lab.calls("t.tape", &[]);
    // the main thread waits for the signal, the others for a byte
    assert_eq!(calls.len(), 3, "{calls:?}");
    for call in &calls {
        let name = if tids.contains(&call.tid()) { "read" } else { "rt_sigtimedwait" };
        assert_eq!((call.name(), call.incomplete(), call.ret(), call.errno()), (name, Some("in-flight"), None, None));
        assert!(call.dur().is_some_and(|dur| (duration - 5_000_000..=duration).contains(&dur)), "{call:?}");
    }
    for call in calls.iter().filter(|c| c.name() == "read") {
        assert_eq!((call.num("fd"), call.fd_path("fd"), call.num("count")), (3, Some(&*pipe), 1), "{call:?}");
    }
    let text = line(&lab, &["-t", &tids[0].to_string()], "read(");
    assert!(
        text.contains("(>=") && text.contains(&format!("fd: 3<{pipe}>")) && text.ends_with("= ? in flight"),
        "{text}"
    );
    // in a summary it counts, and is at least that long
    let row = &lab.analyze(&["t.tape", "-s", "-e", "read", "--format", "json"]).expect(0).json()[0];
    assert_eq!(
        (&row["calls"], &row["incomplete_calls"], &row["max_ns_at_least"], &row["avg_ns"]),
        (&1.into(), &1.into(), &true.into(), &serde_json::Value::Null)
    );
    let longest = row["max_ns"].as_i64().expect("a bound");
    assert!((duration - 5_000_000..=duration).contains(&longest), "{row}");
    drop(program);
}

#[test]
fn open_before_and_ended_within() {
    let Some(lab) = Lab::beside() else { return };
    let (program, tids) = start_waiting(&lab);
    let recorder = lab.attach("t.tape", &["-p", &program.pid_text()]);
    std::thread::sleep(Duration::from_millis(200));
    program.signal(libc::SIGUSR1);
    program.wait().expect(0);
    recorder.wait().expect(0);
    lab.assert_whole("t.tape");
    let reads: Vec<Call> = lab.calls("t.tape", &["-e", "read"]);
    assert_eq!(reads.len(), 2);
    for call in &reads {
        assert!(
            tids.contains(&call.tid()) && call.fd_path("fd").is_some_and(|path| path.starts_with("pipe:")),
            "{call:?}"
        );
        assert_eq!((call.incomplete(), call.ret()), (Some("began-before"), Some(1)), "{call:?}");
        assert!(call.dur().is_some_and(|dur| dur >= 200_000_000) && call.ts() == 0, "{call:?}");
    }
    let text = line(&lab, &["-t", &tids[1].to_string()], "read(");
    assert!(text.contains(" ? (>=") && text.ends_with("= 1"), "{text}");
}

/// The kernel puts the number back into the register of the result: only a handler of SIGSYS lets the program see that.
#[test]
fn killed_by_seccomp() {
    let Some(lab) = Lab::beside() else { return };
    let filtered = lab.cc("filtered", &[]);
    let seen = lab.record("t.tape", &[], &[&filtered]).expect(0).text();
    lab.assert_whole("t.tape");
    let seen: i64 = seen.trim().parse().expect("one result, of the one that lived");
    let calls = lab.calls("t.tape", &["-e", "getpgid"]);
    let ended: Vec<_> = calls.iter().map(|call| (call.incomplete(), call.errno(), call.ret())).collect();
    let killed = (Some("killed"), None, None);
    assert_eq!(ended, [killed, killed, killed, (None, None, Some(seen))], "{calls:?}");
    let sums = lab.analyze(&["top", "--by", "errno", "-e", "getpgid", "--format", "json", "t.tape"]).expect(0).json();
    let mut sums: Vec<_> = sums.iter().map(|row| (row["errno"].as_str(), row["calls"].as_u64())).collect();
    sums.sort_unstable();
    assert_eq!(sums, [(None, Some(3)), (Some("0"), Some(1))]);
}

#[test]
fn killed_inside() {
    let Some(lab) = Lab::beside() else { return };
    let text = "sleep 30 & echo $! > pid; sleep 0.3; kill -9 $!; wait";
    lab.record("t.tape", &[], &["sh", "-c", text]).expect(0);
    lab.assert_whole("t.tape");
    let pid = lab.until_file("pid");
    let pid = pid.trim();
    let calls = lab.calls("t.tape", &["-p", pid, "-e", "clock_nanosleep"]);
    assert_eq!(calls.len(), 1, "once");
    let call = &calls[0];
    assert_eq!((call.incomplete(), call.errno(), call.ret()), (Some("killed"), None, None), "{call:?}");
    assert!(call.dur().is_some_and(|dur| (200_000_000..2_000_000_000).contains(&dur)), "{call:?}");
    let text = line(&lab, &["-p", pid], "clock_nanosleep(");
    assert!(text.contains("(>=") && text.ends_with("= ? (killed)"), "{text}");
    // it made no other call after it, not even an exit, and it failed in nothing
    let all = lab.calls("t.tape", &["-p", pid]);
    assert_eq!(all.last().map(Call::name), Some("clock_nanosleep"));
    assert!(!lab.calls("t.tape", &["-p", pid, "--failure"]).iter().any(|c| c.name() == "clock_nanosleep"));
    let row =
        &lab.analyze(&["t.tape", "-s", "-p", pid, "-e", "clock_nanosleep", "--format", "json"]).expect(0).json()[0];
    assert_eq!((&row["calls"], &row["errors"], &row["incomplete_calls"]), (&1.into(), &0.into(), &1.into()), "{row}");
}

/// A tracer that kills what it holds at the enter of a call: getsid by its number, 13 times.
const KILLED_AT_ENTER: &str = r#"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 13; i++) {
		struct user_regs_struct regs;
		int how;
		pid_t child = fork();

		if (!child) {
			ptrace(PTRACE_TRACEME, 0, 0, 0);
			raise(SIGSTOP);
			syscall(SYS_getsid, 0);
			_exit(0);
		}
		waitpid(child, &how, 0);
		do {
			ptrace(PTRACE_SYSCALL, child, 0, 0);
			waitpid(child, &how, 0);
			ptrace(PTRACE_GETREGS, child, 0, &regs);
		} while (WIFSTOPPED(how) && regs.orig_rax != SYS_getsid);
		kill(child, SIGKILL);
		waitpid(child, &how, 0);
		if (!WIFSIGNALED(how))
			return 1;
	}
	return 0;
}
"#;

#[test]
fn killed_by_its_tracer_before_the_call() {
    let Some(lab) = Lab::beside() else { return };
    fs::write(lab.path("tracer.c"), KILLED_AT_ENTER).expect("tracer.c");
    lab::run(lab.command("cc").args(["-o", "tracer", "tracer.c"])).expect(0);
    lab.record("t.tape", &[], &["./tracer"]).expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &["-e", "getsid"]);
    assert_eq!(calls.len(), 13, "{calls:?}");
    for call in &calls {
        // strace: = ?
        assert_eq!((call.incomplete(), call.errno(), call.ret()), (Some("killed"), None, None), "{call:?}");
    }
    assert!(lab.calls("t.tape", &["--failure", "-e", "getsid"]).is_empty());
    let summary = ["t.tape", "-s", "--summary-mode", "total", "-e", "getsid", "--format", "json"];
    let row = &lab.analyze(&summary).expect(0).json()[0];
    assert_eq!((&row["calls"], &row["errors"]), (&13.into(), &0.into()), "{row}");
}

#[test]
fn the_childs_side_of_fork() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    lab.record("t.tape", &[], &[&flood, "11", "13"]).expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &[]);
    let forks: Vec<_> = calls.iter().filter(|c| c.name() == "fork").collect();
    assert_eq!((forks.len(), calls.len()), (11, 2 + 2 * 11 + 11 * (13 + 1)));
    assert!(forks.iter().all(|c| c.ret().is_some_and(|ret| ret > 0)), "{forks:?}");
    let rows = lab.analyze(&["t.tape", "-s", "-e", "fork", "--format", "json"]).expect(0).json();
    assert!(rows.len() == 1 && rows[0]["calls"] == 11, "{rows:?}");
    // on request: one a child, from nobody's call
    let all = lab.calls("t.tape", &["--clone-child"]);
    let mut children: Vec<_> = all.iter().filter(|c| c.incomplete() == Some("clone-child")).map(Call::tid).collect();
    let mut made: Vec<_> = forks.iter().filter_map(|c| c.ret()).collect();
    children.sort_unstable();
    made.sort_unstable();
    assert_eq!((&children, all.len()), (&made, calls.len() + 11));
}

#[test]
fn calls_of_32_bit_code() {
    let Some(lab) = Lab::beside() else { return };
    let i386 = lab.cc("i386", &[&FREESTANDING[..], &["-m32", "-fno-pic", "-no-pie"]].concat());
    lab.record("t.tape", &[], &[&i386]).expect(3);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &[]);
    // made by record's child, in 64 bits
    assert_eq!((calls[0].name(), &calls[0].0["abi"]), ("execve", &"x86_64".into()));
    let calls = &calls[1..];
    assert!(calls.iter().all(|c| c.0["abi"] == "i386"), "{calls:?}");
    assert_eq!((count(calls, "getppid"), calls.len()), (1009, 1012));
    let [open, write, exit] = &calls[1009..] else { panic!("{calls:?}") };
    assert_eq!((open.name(), open.text("filename"), open.text("flags")), ("openat", "/dev/null", "O_WRONLY|O_CLOEXEC"));
    assert_eq!((write.name(), write.ret(), write.num("count")), ("write", Some(5), 5));
    assert_eq!(write.fd_path("fd"), Some("/dev/null"));
    assert_eq!((exit.name(), exit.incomplete(), exit.num("error_code")), ("exit_group", Some("no-return"), 3));

    // a 64-bit program may call that way too: 64 is getppid there, semget here
    let target = lab.cc("target", &[]);
    lab.record("t.tape", &[], &[&target, "int80", "1013"]).expect(0);
    let calls = lab.calls("t.tape", &["-e", "getppid,semget"]);
    assert!(calls.len() == 1013 && calls.iter().all(|c| c.name() == "getppid" && c.0["abi"] == "i386"), "{calls:?}");
}

#[test]
fn long_arguments_and_bytes_that_are_no_text() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let comm = b"n\xe9\x1bm \"x\"";
    let (program, path) = ([b"./", &comm[..]].concat(), b"no\xff\n\x1b[31m/\xc3\xa9\"\\".to_vec());
    fs::copy(target, lab.dir().join(OsStr::from_bytes(comm))).expect("copy");
    let argv = [
        program.clone(),
        b"open".to_vec(),
        path.clone(),
        vec![b'x'; 3000],
        b"\xfe".to_vec(),
        Vec::new(),
        b"\n".to_vec(),
    ];
    let mut record = lab.command(lab::binary("record"));
    record.args(["-o", "t.tape", "--"]).args(argv.iter().map(|word| OsStr::from_bytes(word)));
    lab::run(record).expect(0);
    lab.assert_whole("t.tape");

    let calls = lab.calls("t.tape", &["-e", "execve,openat"]);
    assert_eq!(calls[0].bytes("filename"), Some(program));
    let whole: Vec<u8> = argv.iter().flat_map(|word| [&word[..], b"\0"].concat()).collect();
    let recorded = calls[0].bytes("argv").expect("hex of argv");
    assert_eq!(recorded.strip_suffix(b"\0").unwrap_or(&recorded), &whole[..whole.len() - 1]);
    assert_eq!(calls[0].arg("argv")["missing"], serde_json::Value::Null);
    let open = calls.last().expect("openat");
    assert_eq!((open.bytes("filename"), open.errno()), (Some(path.clone()), Some("ENOENT")));
    assert_eq!(open.arg("filename")["len"], path.len());

    // on a terminal: nothing it would act on, one line a call, and still exact
    let run = lab.analyze(&["t.tape", "-e", "execve,openat"]).expect(0);
    let text = String::from_utf8(run.stdout).expect("UTF-8");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert_eq!(text.lines().count(), calls.len());
    assert!(text.contains(r#""no\xff\n\x1b[31m/é\"\\""#), "{text}");
    assert!(text.contains(&"x".repeat(3000)) && text.contains(r#""\xfe", "", "\n"]"#), "{text}");
    assert!(text.lines().all(|line| line.contains(r"n\xe9\x1bm ")), "{text}");
    for report in
        [&["t.tape", "-s"][..], &["info", "t.tape"], &["t.tape", "--format", "csv"], &["t.tape", "--format", "json"]]
    {
        let text = String::from_utf8(lab.analyze(report).expect(0).stdout).expect("UTF-8");
        assert!(!text.contains('\x1b'), "{report:?}: {text:?}");
    }
}

/// A file whose name is no UTF-8 beside one that is really called as JSON used to print the first.
#[test]
fn names_that_are_no_text_are_told_from_those_that_look_like_them() {
    let Some(lab) = Lab::beside() else { return };
    let names: [&[u8]; 2] = [b"amb_\xff", br"amb_\xff"];
    let script = "import os, sys\nfor name in os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]):\n    \
                  fd = os.open(name, os.O_CREAT | os.O_WRONLY)\n    os.write(fd, b'x')\n    os.close(fd)\n";
    fs::write(lab.path("make.py"), script).expect("script");
    let mut record = lab.command(lab::binary("record"));
    record.args(["-o", "t.tape", "--", "python3", "make.py"]).args(names.map(OsStr::from_bytes));
    lab::run(record).expect(0);
    let paths: Vec<serde_json::Value> = lab
        .calls("t.tape", &["-e", "write"])
        .iter()
        .map(|call| call.arg("fd")["path"].clone())
        .filter(|path| path.to_string().contains("amb_"))
        .collect();
    let [raw, plain] = &paths[..] else { panic!("{paths:?}") };
    let hex: String = names[0].iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(raw["hex"].as_str().is_some_and(|text| text.ends_with(&hex)), "{raw}");
    assert!(plain.as_str().is_some_and(|text| text.ends_with(r"/amb_\xff")), "{plain}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    lab.record("t.tape", &[], &[&target, "spin", "60013"]).expect(0);
    let analyze = lab::binary("analyze").display().to_string();
    let reports = ["", "-s", "--format json", "--format csv", "--sort end", "-S"];
    for report in reports {
        let text = format!("{analyze} t.tape {report} | head -n 1; echo ${{PIPESTATUS[0]}} >&2");
        for ignore in ["", "trap '' PIPE; "] {
            let run = lab::run(lab.command("bash").args(["-c", &format!("{ignore}{text}")])).expect(0);
            assert_eq!((run.stderr.as_str(), run.text().lines().count()), ("0\n", 1), "{report} {ignore}");
        }
    }
    // nobody reads at all
    let text = format!("{analyze} t.tape | true; echo ${{PIPESTATUS[0]}} >&2");
    assert_eq!(lab::run(lab.command("bash").args(["-c", &text])).expect(0).stderr, "0\n");
}
