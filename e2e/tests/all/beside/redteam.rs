//! A user without rights against root's recorder and reader: a directory that anybody may write, planted tapes, a socket
//! that is not a recorder's, a full disk, names that would act on a terminal, a set-uid copy.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use systape_e2e::lab::{binary, run};
use systape_e2e::more::{Mounted, NOBODY};
use systape_e2e::{Background, Lab, Run};

/// ESC, BEL, CR, LF, a mark that writes from right to left, a C1 control, and much.
fn hostile() -> String {
    format!("\u{1b}]0;owned\u{7}\u{1b}[31m\r\nrecord: fake\u{202e}\u{9b}{}", "y".repeat(4096))
}

/// What a terminal or a journal could take for something else than words of one line.
fn acts(c: char) -> bool {
    c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)
}

#[track_caller]
fn assert_shown(run: &Run) {
    let text = run.text();
    let lines = text.split('\n').chain(run.stderr.split('\n'));
    for line in lines {
        assert!(!line.contains(acts), "{}: {line:?}", run.what);
        assert!(!line.starts_with("record: fake"), "{}: {line:?}", run.what);
    }
}

fn record(lab: &Lab, options: &[&str]) -> Command {
    let mut command = lab.command(binary("record"));
    command.args(options);
    command
}

/// A flight recorder of `dir` that records, and what it says in `log`.
#[track_caller]
fn recorder(lab: &Lab, dir: &str, options: &[&str]) -> Background {
    let mut command = lab.command("sh");
    command.args(["-c", "exec \"$@\" 2> log", "sh", binary("record").to_str().expect("UTF-8")]);
    // little to record: what else runs here has nothing to do with it
    command
        .args(["--comm", "nobody", "--last", "3s", "--after", "100ms", "--keep-free", "0", "--dir", dir])
        .args(options);
    let mut recorder = Background::start(command);
    lab.until("the recorder begins", || {
        if let Some(run) = recorder.ended() {
            panic!("record ended early: {run:?} {}", log(lab));
        }
        run(record(lab, &["status", "--dir", dir])).status.success()
    });
    recorder
}

fn log(lab: &Lab) -> String {
    fs::read_to_string(lab.path("log")).unwrap_or_default()
}

fn mode(lab: &Lab, name: &str, mode: u32) {
    fs::set_permissions(lab.path(name), fs::Permissions::from_mode(mode)).expect("chmod");
}

/// A directory like /tmp.
fn like_tmp(lab: &Lab, name: &str) {
    fs::create_dir(lab.path(name)).expect("mkdir");
    mode(lab, name, 0o1777);
}

fn as_nobody(lab: &Lab, script: &str) {
    run(lab.command(NOBODY[0]).args(&NOBODY[1..]).args(["sh", "-c", script])).expect(0);
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("hostname");
    name.trim().chars().map(|c| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '-' }).collect()
}

/// Files that are called like tapes neither push tapes out nor are removed.
#[test]
fn planted_tapes_push_out_none() {
    let Some(lab) = Lab::beside() else { return };
    like_tmp(&lab, "tapes");
    let host = host();
    let name = |day: u32| format!("tapes/{host}-2099-01-{day:02}T000000Z-kill.tape");
    let plant = (1..=7).map(|day| format!("echo x > {}", name(day))).collect::<Vec<_>>().join("; ");
    as_nobody(&lab, &plant);
    let recorder = recorder(&lab, "tapes", &["--max-tapes", "3"]);
    assert!(log(&lab).contains("7 files are called like a tape of this recorder and not its own"), "{}", log(&lab));
    let tape = |name: &str| run(record(&lab, &["trigger", name, "--dir", "tapes"])).expect(0).text();
    let tapes: Vec<String> = ["one", "two", "three", "four"].map(tape).into();
    // a copy is nobody's to remove, whoever made it
    let kept = name(9);
    fs::copy(lab.path(tapes[3].trim()), lab.path("copy.tape")).expect("copy");
    lab.analyze(&["redact", "copy.tape", &kept]).expect(0);
    run(record(&lab, &["trigger", "five", "--dir", "tapes"])).expect(0);
    recorder.stop(libc::SIGINT).expect(0);
    let there: Vec<bool> = tapes.iter().map(|tape| lab.path(tape.trim()).exists()).collect();
    assert_eq!(there, [false, false, true, true], "the newest three, with the fifth");
    for day in 1..=7 {
        assert_eq!(fs::read(lab.path(&name(day))).expect("planted"), b"x\n");
    }
    assert!(lab.path(&kept).exists());
}

/// A recorder that begins again knows the tapes of the one before.
#[test]
fn tapes_are_known_again() {
    let Some(lab) = Lab::beside() else { return };
    for round in 0..2 {
        let recorder = recorder(&lab, "own", &["--max-tapes", "2"]);
        assert!(!log(&lab).contains("not its own"), "{}", log(&lab));
        for _ in 0..2 {
            run(record(&lab, &["trigger", &format!("r{round}"), "--dir", "own"])).expect(0);
        }
        recorder.stop(libc::SIGINT).expect(0);
    }
    assert_eq!(fs::metadata(lab.path("own")).expect("made").mode() & 0o777, 0o700);
    let names: Vec<String> = fs::read_dir(lab.path("own"))
        .expect("own")
        .map(|entry| entry.expect("entry").file_name().display().to_string())
        .collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.contains("-r1")), "{names:?}");
}

/// Where others could remove tapes there is no recorder.
#[test]
fn a_directory_of_others_is_refused() {
    let Some(lab) = Lab::with_bpf() else { return };
    let refused = |dir: &str, words: &[&str]| run(record(&lab, &["-a", "--last", "2s", "--dir", dir])).says(1, words);
    fs::create_dir(lab.path("open")).expect("mkdir");
    mode(&lab, "open", 0o777);
    refused("open", &["--dir open: everybody may write", "/var/lib/systape"]);
    mode(&lab, "open", 0o775);
    refused("open", &["others may write in the directory (mode 0775)", "chmod g-w"]);
    fs::create_dir(lab.path("nobodys")).expect("mkdir");
    chown(lab.path("nobodys"), Some(65534), Some(65534)).expect("chown");
    refused("nobodys", &["the directory is uid 65534's"]);
    mode(&lab, "nobodys", 0o1777);
    refused("nobodys", &["the directory is uid 65534's"]);
    symlink(lab.path("nobodys"), lab.path("link")).expect("symlink");
    refused("link", &["--dir link: the directory is uid 65534's"]);
    refused("none/none", &["--dir none/none", "No such file"]);
    // refused later, and its socket is gone
    fs::create_dir(lab.path("closed")).expect("mkdir");
    mode(&lab, "closed", 0o500);
    refused("closed", &["cannot make files there"]);
    assert_eq!(fs::read_dir(lab.path("closed")).expect("closed").count(), 0);
}

/// A name that somebody took is told, with what to do, and nobody talks to him.
#[test]
fn a_squatted_socket_is_told() {
    let Some(lab) = Lab::with_bpf() else { return };
    like_tmp(&lab, "tapes");
    let all = |what: &str| {
        for options in [
            &["-a", "--last", "2s", "--dir", "tapes"][..],
            &["status", "--dir", "tapes"],
            &["trigger", "x", "--dir", "tapes"],
        ] {
            let took = "somebody took its name. Remove it (rm -r tapes/record.sock)";
            run(record(&lab, options)).says(1, &["record.sock there is", what, took]);
        }
    };
    as_nobody(&lab, "ln -s /nowhere tapes/record.sock");
    all("a symbolic link of uid 65534");
    fs::remove_file(lab.path("tapes/record.sock")).expect("rm");
    as_nobody(&lab, "echo > tapes/record.sock");
    all("a file of uid 65534");
    fs::remove_file(lab.path("tapes/record.sock")).expect("rm");
    let _listener = UnixListener::bind(lab.path("tapes/record.sock")).expect("bind");
    chown(lab.path("tapes/record.sock"), Some(65534), Some(65534)).expect("chown");
    all("a socket of uid 65534");
    fs::remove_file(lab.path("tapes/record.sock")).expect("rm");
    recorder(&lab, "tapes", &[]).stop(libc::SIGINT).expect(0);
}

/// Who may reach a recorder's socket is still asked who he is.
#[test]
fn others_are_not_answered() {
    let Some(lab) = Lab::beside() else { return };
    let recorder = recorder(&lab, "own", &[]);
    mode(&lab, "own", 0o755);
    mode(&lab, "own/record.sock", 0o777);
    let ask = |line: &str| {
        let connect = "$s = IO::Socket::UNIX->new(Peer => 'own/record.sock') or die; $s->autoflush";
        format!("use IO::Socket::UNIX; {connect}; print $s {line}; print <$s>")
    };
    let told = run(lab.command(NOBODY[0]).args(&NOBODY[1..]).args(["/usr/bin/perl", "-e", &ask("\"status\\n\"")]))
        .expect(0)
        .text();
    assert!(told.contains("uid 65534 may not ask") && !told.contains("pid"), "{told}");
    // a line that is too long, and one that does not end
    for line in ["'x' x 100000", "'stat'"] {
        let _ = run(lab.command("/usr/bin/perl").args(["-e", &ask(line)]));
    }
    run(record(&lab, &["status", "--dir", "own"])).expect(0);
    recorder.stop(libc::SIGINT).expect(0);
}

/// A program that listens in place of a recorder: what it answers is bounded, timed and shown.
#[test]
fn an_answer_is_bounded_timed_and_shown() {
    let lab = Lab::plain();
    let listener = UnixListener::bind(lab.path("record.sock")).expect("bind");
    let hostile = hostile();
    let answers = [
        serde_json::json!({"tape": format!("/x{hostile}")}).to_string(),
        serde_json::json!({"tape": format!("x{hostile}.tape")}).to_string(),
        serde_json::json!({"error": hostile}).to_string(),
        hostile.clone(),
        String::new(),
        // silent until the other end has gone
        "silent".to_owned(),
        "endless".to_owned(),
        serde_json::json!({"triggers": [{"on": hostile}], "last": [{"at": hostile, "what": hostile, "error": hostile}]}).to_string(),
        serde_json::json!({"last": [{"at": hostile, "what": hostile, "error": hostile}]}).to_string(),
    ];
    let number = answers.len();
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().expect("a client");
            // what is not read would reset the connection
            client.read_exact(&mut [0; 6]).expect("a request");
            let mut rest = [0; 64];
            client.set_nonblocking(true).expect("non-blocking");
            while client.read(&mut rest).is_ok_and(|read| read > 0) {}
            client.set_nonblocking(false).expect("blocking");
            match &*answer {
                "silent" => drop(client.read_to_end(&mut Vec::new())),
                "endless" => while client.write_all(&[b'['; 65_536]).is_ok() {},
                answer => client.write_all(answer.as_bytes()).expect("write"),
            }
        }
    });
    for at in 0..number {
        let words: &[&str] = match at {
            7 => &["status"],
            8 => &["status", "--format", "json"],
            _ => &["trigger", "x"],
        };
        let begun = Instant::now();
        let run = run(record(&lab, words));
        assert_shown(&run);
        assert_eq!(run.code(), i32::from(at < 7), "{at}: {run:?}");
        assert!(begun.elapsed() < Duration::from_secs(85), "{at}: {:?}", begun.elapsed());
    }
    server.join().expect("the server");
}

/// A disk without room: each tape's failure is told, and the recording's.
#[test]
fn tapes_that_all_failed_are_a_failure() {
    let Some(lab) = Lab::beside() else { return };
    let _disk = Mounted::tmpfs(&lab, "tapes", "1m");
    let fill = || fs::write(lab.path("tapes/others"), vec![1; 2 << 20]).expect_err("full");
    for (command, status) in [(&[][..], 1), (&["--", "sleep", "30"], 125)] {
        let recorder = recorder(&lab, "tapes", command);
        fill();
        run(record(&lab, &["trigger", "x", "--dir", "tapes"])).says(1, &["No space left on device"]);
        let left: Vec<String> = fs::read_dir(lab.path("tapes"))
            .expect("tapes")
            .map(|entry| entry.expect("entry").file_name().display().to_string())
            .filter(|name| name != "others" && name != "record.sock")
            .collect();
        assert!(left.len() <= 1, "{left:?}");
        let run = recorder.stop(libc::SIGINT);
        assert_eq!(run.code(), status, "{command:?}: {}", log(&lab));
        assert!(log(&lab).contains("0 tapes (1 failed)"), "{}", log(&lab));
        fs::remove_file(lab.path("tapes/others")).expect("rm");
    }
}

/// A tape from a pipe and a full directory for temporary files: told, and nothing is left.
#[test]
fn a_full_tmp_is_told() {
    let Some(lab) = Lab::beside() else { return };
    let _disk = Mounted::tmpfs(&lab, "tmp", "64k");
    lab.record("t.tape", &[], &["true"]).expect(0);
    fs::write(lab.path("tmp/others"), vec![1; 1 << 20]).expect_err("full");
    let script = format!("cat t.tape | TMPDIR=tmp {} info -", binary("analyze").display());
    run(lab.command("sh").args(["-c", &script])).says(1, &["cannot keep standard input in tmp", "No space left"]);
    fs::remove_file(lab.path("tmp/others")).expect("rm");
    // what is no tape takes no room, and what is one has no name
    let script = format!("head -c 100000000 /dev/zero | TMPDIR=tmp {} info -", binary("analyze").display());
    assert_eq!(run(lab.command("sh").args(["-c", &script])).code(), 1);
    assert_eq!(fs::read_dir(lab.path("tmp")).expect("tmp").count(), 0);
}

/// Names of programs, arguments, directories, a host, probes and requests: in no message and no file name do they act.
#[test]
fn hostile_names_are_shown() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.path("").join(OsStr::from_bytes(b"e\x1b[31m\r\nv\xe2\x80\xae"));
    fs::copy("/bin/sh", &program).expect("copy");
    // a namespace's host name can be anything
    let record = binary("record");
    let mut command = lab.command("unshare");
    command.args(["--uts", "sh", "-c", "printf '../h\\033[2J' > /proc/sys/kernel/hostname; exec \"$@\" 2> log", "sh"]);
    command.arg(&record).args(["-a", "--last", "3s", "--after", "100ms", "--keep-free", "0", "--dir", "own"]);
    command.args(["--families", "process,signal", "--on", "kill", "--on", "exec:e*", "--cooldown", "1ms"]);
    let recorder = Background::start(command);
    let status = || run(self::record(&lab, &["status", "--dir", "own"]));
    lab.until("the recorder begins", || lab.path("own").exists() && status().status.success());
    let mut victim = Command::new(&program);
    victim.args(["-c", "read x", &hostile()[..200]]).stdin(std::process::Stdio::piped());
    let mut victim = victim.spawn().expect("spawn");
    std::thread::sleep(Duration::from_millis(300));
    victim.kill().expect("kill");
    victim.wait().expect("wait");
    lab.until("a tape", || {
        fs::read_dir(lab.path("own"))
            .is_ok_and(|dir| dir.flatten().any(|e| e.file_name().as_bytes().ends_with(b".tape")))
    });
    let name = hostile();
    for words in [
        &["trigger", &name[..150], "--dir", "own"][..],
        &["trigger", &name, "--dir", "own"],
        &["status", "--dir", "own"],
        &["status", "--dir", "own", "--format", "json"],
        &["trigger", "--dir", &name],
        &["--on", &name, "--last", "2s", "--dir", "own"],
        &["-e", &name, "true"],
        &["-o", "/nowhere/\u{1b}[m\n", "true"],
        &["--", &name],
        &["--comm", &name, "--for", "10ms", "-o", "c.tape"],
        &[&name],
    ] {
        assert_shown(&run(self::record(&lab, words)));
    }
    recorder.stop(libc::SIGINT).expect(0);
    for line in log(&lab).lines() {
        assert!(!line.contains(acts) && line.starts_with("record: "), "{line:?}");
    }
    let mut named = 0;
    for entry in fs::read_dir(lab.path("own")).expect("own") {
        let name = entry.expect("entry").file_name();
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
        assert!(name.as_bytes().iter().all(plain) && name.len() < 200, "{name:?}");
        for view in [&[][..], &["info"], &["exec"], &["kills"], &["--format", "json"], &["info", "--format", "json"]] {
            let tape = lab.path("own").join(&name);
            let run = lab.analyze(&[view, &[tape.to_str().expect("plain")]].concat());
            assert_shown(&run);
            named += usize::from(run.text().contains("\\x1b[31m"));
        }
    }
    assert!(named > 0, "the program's name is nowhere");
}

/// A user's library with probes.
#[test]
fn hostile_probes_are_shown() {
    let Some(lab) = Lab::beside() else { return };
    let evil = lab.cc("evil_usdt", &[]);
    for option in [
        format!("{evil}:*:*"),
        format!("{evil}:none:*"),
        format!("{evil}:*:*(int,int)"),
        format!("{evil}:{}:*", hostile()),
    ] {
        let run = lab.record("t.tape", &["--usdt", &option], &[&evil]);
        assert_shown(&run);
    }
    let run = lab.record("t.tape", &["--usdt", &format!("{evil}:*:*")], &[&evil]).expect(0);
    assert!(
        run.stderr.contains("--usdt prov\\x1b[31m:name\\nevil\\xe2\\x80\\xae: the argument 8@(((((("),
        "{}",
        run.stderr
    );
    for view in [&["info"][..], &["-e", "usdt:*"], &["tables"], &["info", "--format", "json"]] {
        assert_shown(&lab.analyze(&[view, &["t.tape"]].concat()));
    }
}

/// A set-uid or set-gid copy gives nobody root's rights.
#[test]
fn a_set_uid_copy_does_nothing() {
    let Some(lab) = Lab::with_bpf() else { return };
    let copy = |name: &str, of: &std::path::Path, bits: u32| {
        fs::copy(of, lab.path(name)).expect("copy");
        mode(&lab, name, bits);
    };
    copy("id", std::path::Path::new("/usr/bin/id"), 0o4755);
    let id = run(lab.command(NOBODY[0]).args(&NOBODY[1..]).args(["./id"])).expect(0).text();
    assert!(id.contains("euid=0"), "a file system without set-uid programs shows nothing: {id}");
    fs::create_dir(lab.path("out")).expect("mkdir");
    chown(lab.path("out"), Some(65534), Some(65534)).expect("chown");
    for (bits, word) in [(0o4755, "chmod u-s"), (0o2755, "chmod g-s"), (0o6755, "chmod u-s")] {
        copy("record", &binary("record"), bits);
        for words in
            [&["-o", "out/x.tape", "touch", "out/made"][..], &["status"], &["--version"], &["-a", "--for", "10ms"]]
        {
            let mut command = lab.command(NOBODY[0]);
            command.args(&NOBODY[1..]).arg("./record").args(words);
            run(command)
                .says(125, &["a set-uid or set-gid record records nothing", word, "setcap cap_bpf,cap_perfmon"]);
        }
        assert_eq!(fs::read_dir(lab.path("out")).expect("out").count(), 0);
    }
}
