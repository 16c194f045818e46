//! Every bad input gets exactly one clear line on stderr that names the thing, nothing on stdout, and the documented exit
//! status: 1 failed, 2 bad usage; of `record` with a command 125 when `record` itself failed, 126 and 127 as env(1). Where
//! there is a way out, the line has it, and it works. Nothing is left behind: no tape, no renamed older tape, and the
//! command has not run.

use std::fs;
use std::os::unix::fs::{chown, symlink};

use systape_e2e::blocks::patch;
use systape_e2e::lab::{binary, run};
use systape_e2e::more::NOBODY;
use systape_e2e::{Background, Lab, Run};

/// Recording of a program, small but whole.
fn with_tape() -> Option<Lab> {
    let lab = Lab::beside()?;
    lab.record("t.tape", &[], &["true"]).expect(0);
    Some(lab)
}

#[test]
fn what_is_no_tape() {
    let lab = Lab::plain();
    fs::write(lab.path("empty"), "").expect("write");
    fs::write(lab.path("text"), "not a tape\n".repeat(100)).expect("write");
    fs::write(lab.path("short"), b"\x8fsystape").expect("write");
    fs::write(lab.path("zeros"), [0; 4096]).expect("write");
    fs::create_dir(lab.path("dir")).expect("mkdir");
    symlink("gone", lab.path("dangling")).expect("symlink");
    let cases = [
        ("empty", "empty"),
        ("text", "not a tape"),
        ("short", "not a tape"),
        ("zeros", "not a tape"),
        ("dir", "there is no tape"),
        ("dangling", "no such file"),
        ("missing", "no such file"),
        ("no/such/dir/t.tape", "no such file"),
        ("/dev/null", "regular file"),
    ];
    for (file, why) in cases {
        let ways: [&[&str]; 6] =
            [&[file], &["info", file], &["check", file], &["-s", file], &["-i", file], &[file, "--format", "json"]];
        for way in ways {
            lab.analyze(way).says(1, &[file, why]);
        }
    }
    // the default file, when it is not there
    for report in [&[][..], &["info"], &["check"], &["-s"]] {
        lab.analyze(report).says(1, &["trace.tape", "no such file", "record"]);
    }
    // a file that is missing, and nearly a report
    lab.analyze(&["inf"]).says(2, &["inf", "'info'"]);
    lab.analyze(&["chek"]).says(2, &["chek", "'check'"]);
    lab.analyze(&["./info"]).says(1, &["./info", "no such file"]);
    // a FIFO would be waited for
    run(lab.command("mkfifo").arg("fifo")).expect(0);
    run(lab.command("timeout").arg("5").arg(binary("analyze")).arg("fifo")).says(1, &["fifo", "regular file"]);
}

#[test]
fn a_tape_that_must_not_be_read() {
    let Some(lab) = with_tape() else { return };
    fs::set_permissions(lab.path("t.tape"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("chmod");
    fs::copy(binary("analyze"), lab.path("analyze")).expect("copy");
    let as_nobody = run(lab.command(NOBODY[0]).args(&NOBODY[1..]).args(["./analyze", "t.tape"]));
    as_nobody.says(1, &["t.tape", "ermission denied"]);
}

#[test]
fn a_newer_tape() {
    let Some(lab) = with_tape() else { return };
    let mut tape = fs::read(lab.path("t.tape")).expect("tape");
    let major = u16::from_le_bytes([tape[8], tape[9]]);
    patch(&mut tape, 0, 8, &(major + 1).to_le_bytes());
    fs::write(lab.path("newer.tape"), &tape).expect("write");
    for report in [&["newer.tape"][..], &["info", "newer.tape"], &["check", "newer.tape"], &["-s", "newer.tape"]] {
        lab.analyze(report).says(1, &["newer.tape", &(major + 1).to_string(), "newer"]);
    }
    // patch() makes valid headers: with the version it had the tape is good
    patch(&mut tape, 0, 8, &major.to_le_bytes());
    fs::write(lab.path("same.tape"), &tape).expect("write");
    lab.assert_whole("same.tape");
    // damage is not mistaken for another version
    tape[8] ^= 2;
    fs::write(lab.path("damaged.tape"), &tape).expect("write");
    let run = lab.analyze(&["damaged.tape"]);
    assert!([0, 1].contains(&run.code()) && !run.stderr.is_empty() && !run.stderr.contains("newer"), "{run:?}");
    // an unknown incompat bit concerns the whole tape
    patch(&mut tape, 0, 8, &major.to_le_bytes());
    patch(&mut tape, 0, 96, &(1_u64 << 63).to_le_bytes());
    fs::write(lab.path("incompat.tape"), &tape).expect("write");
    lab.analyze(&["incompat.tape"]).says(1, &["incompat.tape"]);
}

#[test]
fn options_of_analyze() {
    let Some(lab) = with_tape() else { return };
    let cases: [(&[&str], i32, &[&str]); 24] = [
        (&["-e", "opeant"], 2, &["opeant", "openat"]),
        (&["-e", "read,wriet"], 2, &["wriet", "write"]),
        (&["-e", "!clsoe"], 2, &["clsoe", "close"]),
        (&["-e", "%fiel"], 2, &["fiel", "file"]),
        (&["--duration", "ten"], 2, &["--duration", "ten"]),
        (&["--duration", "5 fortnights"], 2, &["--duration", "fortnights"]),
        (&["--duration=-1"], 2, &["--duration", "-1"]),
        (&["--time", "soon"], 2, &["--time", "soon"]),
        (&["--time", "5,1"], 2, &["--time", "5,1"]),
        (&["--time", "1,2,3"], 2, &["--time", "1,2,3"]),
        (&["--time", "2026-13-41T00:00:00Z,"], 2, &["--time", "2026-13-41"]),
        (&["-u", "no-such-user"], 1, &["no-such-user", "root"]),
        (&["-G", "/no/such"], 1, &["no/such"]),
        (&["-C", "x"], 2, &["-C", "x"]),
        (&["-C", "3-1"], 2, &["-C", "3-1"]),
        (&["-p", "twelve"], 2, &["-p", "twelve"]),
        (&["--max-events", "-3"], 2, &["-3"]),
        (&["--format", "xml"], 2, &["xml", "json"]),
        (&["-s", "--summary-mode", "uid"], 2, &["uid", "process"]),
        (&["--no-such-option"], 2, &["--no-such-option"]),
        (&["-s", "-S"], 2, &["-s", "-S"]),
        (&["-i", "gone.tape"], 1, &["gone.tape", "no such file"]),
        (&["klils"], 2, &["klils", "kills"]),
        (&["other.tape"], 2, &["other.tape"]),
    ];
    for (options, code, words) in cases {
        lab.analyze(&[options, &["t.tape"]].concat()).says(code, words);
    }
}

/// What `record OPTIONS -- COMMAND` says where a tape is already; the tape stays what it was.
#[track_caller]
fn refused(lab: &Lab, options: &[&str], command: &[&str], code: i32, words: &[&str]) {
    fs::write(lab.path("t.tape"), "older").expect("write");
    lab.record("t.tape", options, command).says(code, words);
    assert_eq!(fs::read(lab.path("t.tape")).expect("the older tape"), b"older", "{options:?}");
    assert!(!lab.path("t.tape.old").exists(), "{options:?} renames the older tape");
    assert!(!lab.path("ran").exists(), "{options:?}: the command ran");
}

#[test]
fn what_record_cannot_follow() {
    let Some(lab) = Lab::with_bpf() else { return };
    // a pid that was, and is no more
    let gone = Background::start(lab.command("true"));
    let pid = gone.pid_text();
    gone.wait();
    let own = std::process::id().to_string();
    let no_command: [(&[&str], &[&str]); 15] = [
        (&["-p", &pid], &["-p", &pid, "no such process"]),
        (&["-p", &format!("{own},{pid}")], &["-p", &pid, "no such process"]),
        (&["-t", &pid], &["-t", &pid, "no such thread"]),
        (&["-p", "me"], &["-p", "me"]),
        (&["-G", "/no/such/group"], &["/no/such/group", "cgroup"]),
        (&["-G", lab.dir().to_str().expect("UTF-8")], &["cgroup"]),
        (&["-u", "no-such-user"], &["-u", "no-such-user", "user"]),
        (&["--comm", "longer-than-any-thread"], &["--comm", "15"]),
        (&["--comm", ""], &["--comm"]),
        (&["-a", "-p", &own], &["-a"]),
        (&["-C", "1-0"], &["-C", "1-0"]),
        (&["-C", "first"], &["-C", "first"]),
        (&["-D", "later"], &["--delay", "later"]),
        (&["--no-such-option"], &["--no-such-option"]),
        (&["--flush", "often"], &["--flush", "often"]),
    ];
    for (options, words) in no_command {
        refused(&lab, options, &[], 2, words);
    }
    let with_command: [(&[&str], &[&str]); 13] = [
        (&["-e", "opeant"], &["opeant", "openat"]),
        (&["-e", "read,wriet"], &["wriet", "write"]),
        (&["-e", "!"], &["-e", "!"]),
        (&["-e", ""], &["-e"]),
        (&["-p", &own], &["command", "-p"]),
        (&["-t", &own], &["command", "-t"]),
        (&["--families", "disk"], &["--families", "disk", "block"]),
        (&["-m", "much"], &["-m", "much"]),
        (&["-m", "0"], &["-m"]),
        (&["-m", "4G"], &["-m", "1 GiB"]),
        (&["--for", "soon"], &["--for", "soon"]),
        (&["--max-size", "big"], &["--max-size", "big"]),
        (&["-s", "5000"], &["5000", "4096"]),
    ];
    for (options, words) in with_command {
        refused(&lab, options, &["touch", "ran"], 2, words);
    }
    refused(&lab, &[], &["no-such-command-here"], 127, &["no-such-command-here", "not found"]);
    refused(&lab, &[], &["./no-such-command-here"], 127, &["no-such-command-here", "not found"]);
    refused(&lab, &[], &["/etc/passwd"], 126, &["/etc/passwd"]);
    refused(&lab, &[], &["/tmp"], 126, &["/tmp"]);
    // options of other tools, in front of a command that has no "--" before it
    let bare =
        |words: &[&str]| run(lab.command(binary("record")).args(["-o", "u.tape"]).args(words).args(["touch", "ran"]));
    for (words, said) in [
        (&["-c"][..], &["-c", "analyze -s"][..]),
        (&["-k"], &["-k", "-g"]),
        (&["--fro", "10s"], &["--fro", "--for"]),
        (&["-tt"], &["times are always recorded"]),
        (&["-p", "me"], &["'me'", "pgrep"]),
        (&["-e", "shed:swich"], &["shed:swich", "no such tracepoint", "sched:"]),
        (&["-e", "inject=read:error=EIO"], &["strace"]),
    ] {
        bare(words).says(2, said);
        assert!(!lab.path("u.tape").exists() && !lab.path("ran").exists(), "{words:?}");
    }
}

#[test]
fn a_command_needs_no_dashes_before_it() {
    let Some(lab) = Lab::beside() else { return };
    let run = |words: &[&str]| run(lab.command(binary("record")).args(["-o", "u.tape"]).args(words));
    for words in [&["-f", "-yy", "touch", "-m", "ran"][..], &["--", "touch", "ran"], &["touch", "ran", "--"]] {
        let said = run(words).expect(0).stderr;
        assert!(said.contains("0 lost -> u.tape"), "{said}");
        assert!(lab.path("ran").exists(), "{words:?}");
        fs::remove_file(lab.path("ran")).expect("ran");
        let execs = lab.analyze(&["exec", "u.tape", "--format", "json"]).expect(0).json();
        assert_eq!(execs.len(), 1, "{execs:?}");
    }
    let quiet = run(&["-q", "-e", "syscalls:sys_enter_openat", "cat", "/dev/null"]).expect(0).stderr;
    assert!(quiet.lines().all(|line| line.contains("syscalls:sys_enter_openat is openat")), "{quiet}");
    let calls = lab.analyze(&["u.tape", "--format", "json"]).expect(0).json();
    assert!(!calls.is_empty() && calls.iter().all(|call| call["syscall"] == "openat"), "{calls:?}");
}

#[test]
fn where_no_tape_can_be_written() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::create_dir(lab.path("dir")).expect("mkdir");
    fs::write(lab.path("precious"), "precious").expect("write");
    symlink("precious", lab.path("link")).expect("symlink");
    symlink("nothing", lab.path("dangling")).expect("symlink");
    run(lab.command("mkfifo").arg("fifo")).expect(0);
    // root may write in a directory of mode 0555, but not on a file system mounted so
    fs::create_dir(lab.path("read-only")).expect("mkdir");
    let script = "mount -t tmpfs none read-only && mount -o remount,ro read-only && exec \"$@\"";
    let outputs = [
        "dir",
        "link",
        "dangling",
        "fifo",
        "/dev/null",
        "/dev/full",
        "no/such/t.tape",
        "/proc/t.tape",
        "read-only/t.tape",
    ];
    for output in outputs {
        for (code, target) in [(125, &["--", "touch", "ran"][..]), (1, &["-a", "--for", "10s"])] {
            let mut command = lab.command("unshare");
            command.args(["-m", "sh", "-c", script, "sh"]).arg(binary("record"));
            run(command.args(["-o", output]).args(target)).says(code, &["-o", output]);
            assert!(!lab.path("ran").exists(), "{output}: the command ran");
        }
    }
    assert_eq!(fs::read(lab.path("precious")).expect("read"), b"precious");
    assert!(!lab.path("nothing").exists() && lab.path("link").is_symlink());
    // the device is still there
    assert!(run(lab.command("test").args(["-c", "/dev/null"])).code() == 0);
}

#[test]
fn a_missing_capability_is_named() {
    let Some(lab) = Lab::with_bpf() else { return };
    // a place an unprivileged user can read and write
    fs::copy(binary("record"), lab.path("record")).expect("copy");
    fs::create_dir(lab.path("out")).expect("mkdir");
    chown(lab.path("out"), Some(65534), Some(65534)).expect("chown");
    let nobody = |capabilities: &[&str], target: &[&str]| -> Run {
        let mut setpriv = lab.command(NOBODY[0]);
        setpriv.args(&NOBODY[1..]).args(capabilities).arg("./record").args(["-o", "out/t.tape"]);
        run(setpriv.args(target))
    };
    let touch = ["--", "touch", "out/ran"];
    let said = nobody(&[], &touch).says(125, &["CAP_BPF", "CAP_PERFMON", "sudo setcap cap_bpf,cap_perfmon,"]);
    nobody(&[], &["-a", "--for", "10s"]).says(1, &["CAP_BPF", "CAP_PERFMON", "setcap"]);
    // only what is missing
    let one = nobody(&["--inh-caps=+bpf", "--ambient-caps=+bpf"], &touch).says(125, &["CAP_PERFMON", "setcap"]);
    assert!(!one.stderr.contains("CAP_BPF"), "{}", one.stderr);
    assert!(fs::read_dir(lab.path("out")).expect("out").next().is_none(), "something was written");

    // the command in the line grants it
    let words: Vec<&str> = said.stderr.split("setcap ").nth(1).expect("setcap").split_whitespace().collect();
    assert_eq!(words[1..], [lab.file("record")], "{}", said.stderr);
    run(lab.command("setcap").args(words)).expect(0);
    nobody(&[], &touch).expect(0);
    assert!(lab.path("out/ran").exists());
    lab.assert_whole("out/t.tape");
    let calls = lab.calls("out/t.tape", &["-e", "execve"]);
    assert!(calls.len() == 1 && calls[0].ret() == Some(0) && calls[0].0["uid"] == 65534, "{calls:?}");
}
