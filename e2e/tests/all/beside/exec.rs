//! Programs that were started: `analyze exec` and its tree against strace, which watches the very same processes while
//! they are recorded. Paths, arguments, errors, exit statuses, and who made whom.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use systape_e2e::strace::{self, Traced};
use systape_e2e::{Background, Lab};

/// Every way a start can go, and to end after one.
const SCRIPT: &str = r#"
/bin/true
/bin/false
/bin/echo one 'two words' '' 'qu"ote\' 'ä' "$(printf 'line\nline')"
./missing with arguments
./noexec
./directory
./notdir/program
./badformat
./script its argument
./loop
env -i PATH=/nowhere:/bin sh -c 'exit 9'
env -i PATH=/nowhere:/nothing nosuchprogram a b
sh -c 'exec sh -c "exec /bin/echo last"'
sh -c 'kill -9 $$'
sh -c 'kill -TERM $$; /bin/true'
./kills execveat ./program by descriptor
./kills execveat ./missing by descriptor
/bin/true $(seq 1 2000)
/bin/sleep 0 & wait
(/bin/true; (/bin/true; exit 3))
exit 7
"#;

struct Story {
    lab: Lab,
    calls: Vec<Traced>,
    /// Process → how it ended: exit code or signal.
    ends: BTreeMap<i64, (Option<i64>, Option<i64>)>,
    /// Process → the one that made it.
    parents: HashMap<i64, i64>,
}

/// Records strace, which runs the script and writes what it sees.
fn story() -> Option<Story> {
    let lab = Lab::beside()?;
    lab.cc("kills", &[]);
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(lab.path(name), text).expect(name);
        fs::set_permissions(lab.path(name), fs::Permissions::from_mode(mode)).expect(name);
    };
    write("noexec", "#!/bin/sh\n", 0o644);
    write("notdir", "", 0o644);
    write("badformat", "no program\n", 0o755);
    write("script", "#!/bin/sh -u\nexit 5\n", 0o755);
    write("loop", "#!./nointerpreter\n", 0o755);
    write("the.script", SCRIPT, 0o755);
    fs::copy("/bin/true", lab.path("program")).expect("copy");
    fs::create_dir(lab.path("directory")).expect("mkdir");
    let trace = "trace=execve,execveat,clone,clone3,fork,vfork";
    let options = ["-f", "-xx", "-s", "4096", "-e", "abbrev=none", "-e", trace, "-o", "out"];
    let script =
        [&["strace"], &options[..], &["--", "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "/bin/sh", "./the.script"]];
    lab.record("t.tape", &[], &script.concat()).expect(7);
    lab.assert_whole("t.tape");
    let text = fs::read_to_string(lab.path("out")).expect("strace's output");
    let mut ends = BTreeMap::new();
    for line in text.lines() {
        let (pid, rest) = line.split_once(' ').expect("pid");
        let end = rest.trim().strip_prefix("+++ ").and_then(|rest| rest.strip_suffix(" +++"));
        if let Some(end) = end {
            let code = end.strip_prefix("exited with ").map(|code| code.parse().expect("code"));
            let signal = end.strip_prefix("killed by ").map(|name| if name == "SIGKILL" { 9 } else { 15 });
            ends.insert(pid.parse().expect("pid"), (code, signal));
        }
    }
    let calls = strace::parse(&text);
    let is_fork = |call: &&Traced| call.name.contains("clone") || call.name.contains("fork");
    let parents = calls.iter().filter(is_fork).filter_map(|c| Some((c.ret?, c.tid))).collect();
    Some(Story { lab, calls, ends, parents })
}

/// Words of an array as strace prints it.
fn words(printed: &str) -> Vec<String> {
    let inner =
        printed.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or_else(|| panic!("{printed}"));
    let word = |text: &str| String::from_utf8(strace::string(text).expect("string")).expect("UTF-8");
    inner.split(", ").filter(|text| !text.is_empty()).map(word).collect()
}

#[test]
fn every_start_as_strace_sees_it() {
    let Some(story) = story() else { return };
    let report = story.lab.analyze(&["exec", "t.tape", "--format", "json", "--fail-on-loss"]).expect(0);
    assert_eq!(report.complaints(), "");
    let mut wrong = Vec::new();
    let mut rows: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for row in report.json() {
        rows.entry(row["pid"].as_i64().expect("pid")).or_default().push(row);
    }
    let mut truth: BTreeMap<i64, Vec<&Traced>> = BTreeMap::new();
    for call in story.calls.iter().filter(|call| call.name.starts_with("exec")) {
        truth.entry(call.tid).or_default().push(call);
    }
    assert!(truth.len() > 15 && truth.values().flatten().filter(|c| c.errno.is_some()).count() >= 9, "{truth:?}");
    for (pid, calls) in &truth {
        let rows = rows.get(pid).map_or(&[][..], Vec::as_slice);
        if rows.len() != calls.len() {
            wrong.push(format!("{pid}: {} rows, not {}: {rows:?} {calls:?}", rows.len(), calls.len()));
            continue;
        }
        for (at, (row, call)) in rows.iter().zip(calls).enumerate() {
            let at_fd = usize::from(call.name == "execveat");
            let path = String::from_utf8(call.bytes(at_fd).expect("path")).expect("UTF-8");
            let mut expected = json!({
                "ret": call.ret, "errno": call.errno, "args": words(call.split()[at_fd + 1]), "args_whole": true,
                "ppid": story.parents.get(pid), "uid": 0,
            });
            if path == "./script" {
                // the kernel starts its interpreter with it, so that is what runs
                expected["args"] = json!(["/bin/sh", "-u", "./script", "its", "argument"]);
            }
            if at_fd == 0 {
                expected["path"] = path.into();
            }
            if !story.parents.contains_key(pid) {
                // strace made it
                expected["ppid"] = row["ppid"].clone();
            }
            if call.ret == Some(0) {
                let last = calls[at + 1..].iter().all(|later| later.ret != Some(0));
                let end = *story.ends.get(pid).unwrap_or_else(|| panic!("{pid} has no end: {:?}", story.ends));
                let end = if last { end } else { (None, None) };
                expected["ended"] = if last { "exit" } else { "exec" }.into();
                (expected["exit_code"], expected["exit_signal"]) = (end.0.into(), end.1.into());
            }
            for (key, value) in expected.as_object().expect("object") {
                if row[key] != *value {
                    wrong.push(format!(
                        "{pid} {}({}): {key} {}, not {value}\n    {row}",
                        call.name, call.args, row[key]
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // only those that failed
    let failed = story.lab.analyze(&["exec", "t.tape", "--failure", "--format", "json"]).expect(0).json();
    let ours = failed.iter().filter(|row| truth.contains_key(&row["pid"].as_i64().expect("pid"))).count();
    assert_eq!(ours, truth.values().flatten().filter(|call| call.errno.is_some()).count());
    assert!(failed.iter().all(|row| row["ret"] == -1), "{failed:?}");
}

/// A program whose file is there, and whose interpreter is not, names it; strace has the error, the test made the files.
#[test]
fn a_missing_interpreter_has_a_name() {
    let Some(lab) = Lab::beside() else { return };
    let write = |name: &str, bytes: &[u8]| {
        fs::write(lab.path(name), bytes).expect(name);
        fs::set_permissions(lab.path(name), fs::Permissions::from_mode(0o755)).expect(name);
    };
    write("plain", b"#!/no/such/interp -x\n");
    write("crlf", b"#!/bin/sh\r\nexit 0\r\n");
    write("relative", b"#!./gone\n");
    write("chain", b"#!./plain\n");
    write("under", b"#!./plain/x\n");
    write("text", b"no program\n");
    write("other", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xf3\0");
    fs::create_dir(lab.path("sub")).expect("mkdir");
    write("sub/here", b"#!../gone\n");
    symlink("sub", lab.path("link")).expect("symlink");
    // the loader's name is as long as the one it replaces, so that nothing else moves
    let mut program = fs::read("/bin/true").expect("true");
    let loader = b"/lib64/ld-linux-x86-64.so.2";
    let at = program.windows(loader.len()).position(|bytes| bytes == loader);
    let elf = at.map(|at| {
        program[at..at + loader.len()].copy_from_slice(b"/nolib/ld-linux-x86-64.so.2");
        write("elf", &program);
    });
    let root = lab.path("root");
    fs::create_dir_all(root.join("bin")).expect("mkdir");
    fs::write(root.join("bin/inside"), "#!/inner\n").expect("inside");
    fs::set_permissions(root.join("bin/inside"), fs::Permissions::from_mode(0o755)).expect("inside");
    let script = "./plain a; ./crlf; ./relative; ./chain; ./under; env ./text; env ./other; link/here; \
        cd sub; ./here; cd ..; ./elf; env PATH=/nowhere:. plain; ./missing; exit 5";
    let traced = [
        "strace",
        "-f",
        "-e",
        "trace=execve",
        "-o",
        "out",
        "/usr/bin/env",
        "-i",
        "PATH=/usr/bin:/bin",
        "/bin/sh",
        "-c",
        script,
    ];
    lab.record("t.tape", &[], &traced).expect(5);
    lab.assert_whole("t.tape");
    let failed = strace::parse(&fs::read_to_string(lab.path("out")).expect("strace's output"));
    let failed = failed.iter().filter(|call| call.ret == Some(-1)).count();
    let rows = lab.analyze(&["exec", "t.tape", "--failure", "--format", "json"]).expect(0).json();
    assert_eq!(rows.len(), failed, "{rows:?}");
    let of = |path: &str| {
        let row = rows.iter().find(|row| row["path"] == path).unwrap_or_else(|| panic!("no {path}: {rows:?}"));
        let columns = ["errno", "interpreter", "interpreter_errno", "interpreter_of", "file_kind"];
        columns.map(|column| row[column].as_str().unwrap_or("").to_owned())
    };
    for (path, expected) in [
        ("./plain", ["ENOENT", "/no/such/interp", "ENOENT", "./plain", "script"]),
        ("./crlf", ["ENOENT", "/bin/sh\r", "ENOENT", "./crlf", "script"]),
        ("./relative", ["ENOENT", "./gone", "ENOENT", "./relative", "script"]),
        ("./chain", ["ENOENT", "/no/such/interp", "ENOENT", "./plain", "script"]),
        ("./under", ["ENOTDIR", "./plain/x", "ENOTDIR", "./under", "script"]),
        ("./text", ["ENOEXEC", "", "", "./text", "other"]),
        ("./other", ["ENOEXEC", "", "", "./other", "other-elf"]),
        ("link/here", ["ENOENT", "../gone", "ENOENT", "link/here", "script"]),
        ("./here", ["ENOENT", "../gone", "ENOENT", "./here", "script"]),
        ("/nowhere/plain", ["ENOENT", "", "", "", ""]),
        ("./missing", ["ENOENT", "", "", "", ""]),
    ] {
        assert_eq!(of(path), expected, "{path}: {rows:?}");
    }
    if elf.is_some() {
        assert_eq!(of("./elf"), ["ENOENT", "/nolib/ld-linux-x86-64.so.2", "ENOENT", "./elf", "elf"]);
    }
    let read = rows.iter().filter_map(|row| row["read_after_ns"].as_u64());
    assert!(read.clone().count() > 8 && read.clone().all(|ns| ns > 0 && ns < 60_000_000_000), "{rows:?}");
    let text = lab.analyze(&["exec", "t.tape", "--failure"]).expect(0).text();
    assert!(text.contains("ENOENT; its interpreter /bin/sh\\r was missing, read "), "{text}");
    assert!(text.contains("ENOENT; ./plain: interpreter /no/such/interp was missing, read "), "{text}");
    // in another root directory, whose paths can be followed while the process lives
    let exec = "import os,time\nos.chroot('root'); os.chdir('/')\ntry: os.execv('/bin/inside', ['x'])\n\
        except OSError: time.sleep(6)";
    lab.record("r.tape", &[], &["python3", "-c", exec]).expect(0);
    let rows = lab.analyze(&["exec", "r.tape", "--failure", "--format", "json"]).expect(0).json();
    let row = rows.iter().find(|row| row["path"] == "/bin/inside").expect("the exec");
    assert_eq!((&row["interpreter"], &row["errno"]), (&"/inner".into(), &"ENOENT".into()), "{row}");
}

#[test]
fn the_tree_is_that_of_the_forks() {
    let Some(story) = story() else { return };
    let report = story.lab.analyze(&["exec", "t.tape", "--tree", "--format", "json", "--fail-on-loss"]).expect(0);
    // a node's parent is the last one before it that is a step less deep
    let mut above: Vec<i64> = Vec::new();
    let mut nodes: HashMap<i64, (Option<i64>, Value)> = HashMap::new();
    for node in report.json() {
        let pid = node["pid"].as_i64().expect("pid");
        let depth = usize::try_from(node["depth"].as_u64().expect("depth")).expect("depth");
        assert!(depth <= above.len(), "{node}");
        above.truncate(depth);
        let parent = above.last().copied();
        above.push(pid);
        assert!(nodes.insert(pid, (parent, node)).is_none(), "{pid} is there twice");
    }
    for (pid, end) in &story.ends {
        let (parent, node) = nodes.get(pid).unwrap_or_else(|| panic!("{pid} is not in the tree"));
        if let Some(maker) = story.parents.get(pid) {
            assert_eq!((parent.as_ref(), node["ppid"].as_i64()), (Some(maker), Some(*maker)), "{node}");
        }
        let said = (node["exit_code"].as_i64(), node["exit_signal"].as_i64());
        assert_eq!((said, &node["ended"], &node["started_before"]), (*end, &true.into(), &false.into()), "{node}");
        let ran = node["programs"].as_array().expect("programs").iter().filter(|program| program["exec"] == true);
        let succeeded = |call: &&Traced| call.tid == *pid && call.name.starts_with("exec") && call.ret == Some(0);
        assert_eq!(ran.count(), story.calls.iter().filter(succeeded).count(), "{node}");
    }
    // as text: indented below its parent, with its command line
    let text = story.lab.analyze(&["exec", "t.tape", "--tree"]).expect(0).text();
    let indent = |word: &str| {
        let line = text.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word}: {text}"));
        line.find(word).expect("word")
    };
    assert_eq!(
        indent("/bin/echo one") - indent("/usr/bin/env -i PATH=/usr/bin:/bin /bin/sh ./the.script => "),
        2,
        "{text}"
    );
    // the command had been forked when the recording began: it never was the recorder, which is no target
    story.lab.record("short.tape", &[], &["sh", "-c", "true"]).expect(0);
    let text = story.lab.analyze(&["exec", "short.tape", "--tree"]).expect(0).text();
    let lines: Vec<&str> = text.lines().filter(|line| line.ends_with(" sh -c true")).collect();
    assert!(lines.len() == 1 && !lines[0].contains(" => ") && text.contains("[record]"), "{text}");
}

/// Zombies of before the recording, reaped while it runs or after it, are not among the living; a process whose first thread has
/// ended is.
#[test]
fn zombies_of_before_do_not_live() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("zombies", &["-pthread"]);
    let start = |out: &str| Background::start(lab.command("sh").args(["-c", &format!("exec {program} 23 > {out}")]));
    let (reaped, kept) = (start("reaped"), start("kept"));
    let numbers = |out: &str| {
        lab.until("zombies", || fs::read_to_string(lab.path(out)).is_ok_and(|text| text.contains("threaded")));
        let text = fs::read_to_string(lab.path(out)).expect(out);
        let pids = |line: &str| line.split(' ').skip(1).map(|n| n.parse().expect("pid")).collect::<Vec<i64>>();
        let lines: Vec<_> = text.lines().map(pids).collect();
        assert_eq!((lines[0].len(), lines[1].len()), (23, 1), "{text}");
        (lines[0].clone(), lines[1][0])
    };
    let ((mut zombies, first), (more, second)) = (numbers("reaped"), numbers("kept"));
    zombies.extend(more);
    let options = ["-a", "--for", "1500ms"];
    let recording = lab.attach("t.tape", &options);
    reaped.signal(libc::SIGUSR1);
    reaped.wait().expect(0);
    recording.wait().expect(0);
    lab.assert_whole("t.tape");
    let tree = lab.analyze(&["exec", "--tree", "--format", "json", "t.tape"]).expect(0).json();
    let shown: Vec<_> = tree.iter().filter(|p| zombies.contains(&p["pid"].as_i64().expect("pid"))).collect();
    assert!(shown.is_empty(), "{shown:?}");
    for (pid, ended) in [(first, true), (second, false)] {
        let process = tree.iter().find(|p| p["pid"] == pid).unwrap_or_else(|| panic!("{pid} lived"));
        assert_eq!((&process["started_before"], &process["ended"]), (&true.into(), &ended.into()), "{process}");
    }
    let states = lab.analyze(&["states", "--at", "1.0", "--format", "json", "t.tape"]).expect(0).json();
    let zombies: Vec<_> = states.iter().filter(|row| zombies.iter().any(|z| row["pid"] == *z)).collect();
    assert!(zombies.is_empty(), "{zombies:?}");
    assert!(states.iter().any(|row| row["pid"] == second), "its other thread sleeps");
    kept.signal(libc::SIGUSR1);
    kept.wait().expect(0);
}
