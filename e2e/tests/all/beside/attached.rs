//! Real programs that run since before the recording, with a directory, descriptors and open files from before: `record -p` and
//! `strace -p` look at the same process, call for call. What is compared of each call: thread, name, result, error, strings of paths, and the
//! file behind the first descriptor.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};

use systape_e2e::strace::{self, Traced};
use systape_e2e::{Background, Call, Lab, call};

/// A program that reads its standard input, and what it is given there.
struct Program {
    name: &'static str,
    command: &'static [&'static str],
    input: &'static str,
}

const fn of(name: &'static str, command: &'static [&'static str], input: &'static str) -> Program {
    Program { name, command, input }
}

/// `7` is a file, open since before, and `here` another in the directory.
const PROGRAMS: [Program; 24] = [
    of(
        "dash",
        &["dash"],
        "read x <&7; echo $x >out; cat here; cd ..; ls >/dev/null; (exit 3); test -e nothing; wait\n",
    ),
    of("bash", &["bash"], "read x <&7; echo \"$x\" >out; mapfile -t a <here; exec 9<here; (cd /; pwd); cat <&9\n"),
    of(
        "python3",
        &["python3", "-S", "-"],
        "import os,socket,threading\nos.read(7,3); os.chdir('..'); print(open('d/here').read())\nt=threading.Thread(target=lambda: os.stat('d/here')); t.start(); t.join()\na,b=socket.socketpair(); a.send(b'x'); b.recv(9); os.dup2(a.fileno(),7); os.write(7,b'y')\n",
    ),
    of(
        "perl",
        &["perl", "-"],
        "open(F,'<','here'); print <F>; open(G,'<&=',7); read G,$x,2; rename 'here','there'; unlink 'there'; mkdir 'n'; rmdir 'n';\n",
    ),
    of(
        "awk",
        &[
            "awk",
            "{ while ((getline l < \"here\") > 0) n++; close(\"here\"); print $1, n > \"out\" } END { \"pwd\" | getline p; print p }",
        ],
        "a b\nc d\n",
    ),
    of("sed", &["sed", "-e", "s/a/b/w out", "-e", "r here"], "a\nb\n"),
    of("grep", &["grep", "-c", "a"], "a\nb\na\n"),
    of("sort", &["sort", "-o", "out", "-", "here"], "z\ny\nx\n"),
    of("uniq", &["uniq", "-c", "-", "out"], "a\na\nb\n"),
    of("tr", &["tr", "a-z", "A-Z"], "some text\n"),
    of("cut", &["cut", "-d:", "-f1", "-", "here"], "a:b\n"),
    of("tee", &["tee", "out", "out2"], "some text\n"),
    of("cat", &["cat", "here", "-", "here"], "some text\n"),
    of("dd", &["dd", "of=out", "bs=3", "conv=notrunc"], "0123456789"),
    of("gzip", &["gzip", "-c"], "some text, some text, some text\n"),
    of("tar", &["tar", "-c", "-T", "-", "-f", "out"], "here\nhere\n"),
    of("xargs", &["xargs", "-n1", "ls", "-l"], "here . nothing\n"),
    of("git", &["git", "hash-object", "--stdin-paths"], "here\nhere\n"),
    of("make", &["make", "-s", "-f", "-"], "out: here\n\tcat here >out\n\t@echo $$PWD\n"),
    of("tac", &["tac"], "a\nb\n"),
    of("od", &["od", "-c", "here", "-"], "some text\n"),
    of("sha256sum", &["sha256sum", "-", "here"], "some text\n"),
    of("paste", &["paste", "-", "here"], "a\nb\n"),
    of("split", &["split", "-b", "4", "-", "piece"], "some text\n"),
];

/// What both observers say of a call.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Seen {
    tid: i64,
    name: String,
    /// With its error; none of a call that does not return.
    ret: Option<(i64, Option<String>)>,
    /// The file of the first argument, if that is a descriptor of a file or pipe.
    file: Option<String>,
}

/// Without what strace adds to a name, and of other things nothing: sockets have other names there.
fn file(name: &str) -> Option<String> {
    let name = name.strip_suffix("(deleted)").map_or(name, str::trim_end);
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    (name.starts_with('/') || name.starts_with("pipe:")).then(|| name.to_owned())
}

fn traced(call: &Traced) -> Seen {
    let first = Some(call.split()[0]).filter(|first| first.starts_with(|c: char| c.is_ascii_digit()));
    let inside =
        first.and_then(|first| first.split_once('<')).and_then(|(_, rest)| rest.rsplit_once('>')).map(|(name, _)| name);
    let plain = |text: &str| match text.contains("\\x") {
        true => String::from_utf8(call::from_hex(&text.replace("\\x", ""))).expect("UTF-8"),
        false => text.to_owned(),
    };
    let ret = call.ret.map(|ret| (ret, call.errno.clone()));
    Seen { tid: call.tid, name: call.name.clone(), ret, file: inside.and_then(|name| file(&plain(name))) }
}

fn recorded(call: &Call) -> Seen {
    // the object of arguments has them by name: the one that strace prints first is the descriptor that has a file, if one has
    let args = call.0["args"].as_object().expect("arguments");
    let first = ["fd", "dfd", "olddfd", "oldfd", "fildes", "fdin", "fd_in", "out_fd"]
        .into_iter()
        .find_map(|name| args.get(name));
    let name = first.and_then(|arg| arg["path"].as_str());
    let ret = call.ret().map(|ret| (ret, call.errno().map(str::to_owned)));
    Seen { tid: call.tid(), name: call.name().to_owned(), ret, file: name.and_then(file) }
}

/// How a call is compared, where both are right in their own way.
fn compared(mut seen: Seen) -> Seen {
    // strace prints ? and no result; rt_sigreturn returns what the register had
    if ["exit", "exit_group", "rt_sigreturn"].contains(&seen.name.as_str()) {
        seen.ret = None;
    }
    // strace names what is there once the call is over
    if ["close", "dup2", "dup3", "mmap"].contains(&seen.name.as_str()) {
        seen.file = None;
    }
    seen
}

/// Of each thread the calls that began once both looked at it: all but the first, in which it waited.
fn by_thread(calls: impl Iterator<Item = Seen>, main: i64) -> Vec<Seen> {
    let mut calls: Vec<Seen> = calls.map(compared).collect();
    calls.sort_by_key(|call| call.tid);
    let first = calls.iter().position(|call| call.tid == main).expect("a call of the program");
    calls.remove(first);
    calls
}

fn one(lab: &Lab, program: &Program) {
    let dir = lab.dir().join(program.name).join("d");
    fs::create_dir_all(&dir).expect("mkdir");
    fs::write(dir.join("here"), "some words\nin two lines\n").expect("written");
    fs::write(dir.join("before"), "opened before\n").expect("written");
    let before = fs::File::open(dir.join("before")).expect("open");
    let mut command = Command::new(program.command[0]);
    command.args(&program.command[1..]).current_dir(&dir);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    is_seven(&mut command, before.as_raw_fd());
    let mut child = command.spawn().expect("it runs");
    let pid = child.id();
    let proc = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    lab.until(&format!("{} reads", program.name), || {
        proc("syscall").starts_with("0 0x0 ") && proc("wchan").contains("pipe")
    });
    let out = lab.file("strace.out");
    let strace = Background::start(lab.command("strace").args([
        "-f",
        "-qq",
        "-xx",
        "-y",
        "-s",
        "4096",
        "-e",
        "signal=none",
        "-o",
        &out,
        "-p",
        &pid.to_string(),
    ]));
    lab.until("strace looks at it", || !proc("status").contains("TracerPid:\t0\n"));
    // attached is not yet let go on: it is when it waits again
    lab.until("it reads again", || proc("syscall").starts_with("0 0x0 ") && proc("wchan").contains("pipe"));
    let recorder = lab.attach("t.tape", &["-p", &pid.to_string()]);
    // what a call changes before the list of descriptors was read is not known, which is not what this is about
    std::thread::sleep(std::time::Duration::from_millis(700));
    child.stdin.take().expect("a pipe").write_all(program.input.as_bytes()).expect("written");
    child.wait().expect("it ends");
    strace.wait().expect(0);
    recorder.wait().expect(0);
    lab.assert_whole("t.tape");
    let truth = strace::parse(&fs::read_to_string(&out).expect("strace's output"));
    let truth = by_thread(truth.iter().map(traced), pid.into());
    let got = by_thread(lab.calls("t.tape", &[]).iter().map(recorded), pid.into());
    let at = truth.iter().zip(&got).position(|(want, got)| want != got).unwrap_or(truth.len().min(got.len()));
    let around = |calls: &[Seen]| calls[at.saturating_sub(3).min(calls.len())..(at + 2).min(calls.len())].to_vec();
    assert_eq!(around(&got), around(&truth), "{}: the first that differs, and those around", program.name);
    assert!(got.len() > 3, "{}: {got:?}", program.name);
}

/// The program has this descriptor as its seventh.
fn is_seven(command: &mut Command, fd: i32) {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: fcntl and dup2 are safe between fork and exec.
    unsafe {
        // a descriptor that is 7 already is only kept
        command.pre_exec(move || match if fd == 7 { libc::fcntl(fd, libc::F_SETFD, 0) } else { libc::dup2(fd, 7) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    };
}

#[test]
fn programs_of_before_are_as_strace_sees_them() {
    let Some(lab) = Lab::beside() else { return };
    for program in &PROGRAMS {
        one(&lab, program);
    }
}
