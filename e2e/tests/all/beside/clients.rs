//! A socket is called what `strace -yy` calls it, by every call on it. strace runs a server and its clients inside of a
//! recording, so both see the same calls: the names are compared one by one.
//!
//! strace keeps for good the first address that it saw of a socket; the tape has the one of the moment. Where they differ
//! for that reason, the kernel decides: by its answers to getsockname and getpeername, or by the other end's name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use systape_e2e::sockets::Inodes;
use systape_e2e::{Background, Call, Lab};

/// A call as strace prints it when it begins.
#[derive(Debug)]
struct Traced {
    name: String,
    /// Its first argument, and what strace calls that if it is a socket.
    socket: Option<(i64, String)>,
}

/// What strace printed of each thread, in order of the calls' beginnings.
fn traced(text: &str) -> BTreeMap<i64, Vec<Traced>> {
    let mut by_thread: BTreeMap<i64, Vec<Traced>> = BTreeMap::new();
    for line in text.lines() {
        let (tid, rest) = line.split_once(' ').expect("a thread's line");
        let Some((name, args)) = rest.trim().split_once('(').filter(|_| !rest.contains("resumed>")) else { continue };
        if name.starts_with(['+', '-']) {
            continue;
        }
        let call = Traced { name: name.to_owned(), socket: socket(args) };
        by_thread.entry(tid.parse().expect("tid")).or_default().push(call);
    }
    by_thread
}

/// Whether this is how a socket is called, rather than a pipe or a path.
fn is_socket(name: &str) -> bool {
    let kind = name.split_once(":[").map_or("", |(kind, _)| kind);
    !kind.is_empty() && kind != "pipe" && kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The descriptor that arguments begin with, and its name: `3<TCP:[17]>, ...`
fn socket(args: &str) -> Option<(i64, String)> {
    let (fd, rest) = args.split_once('<')?;
    if !is_socket(rest) {
        return None;
    }
    let (mut quoted, mut escaped) = (false, false);
    let end = rest.char_indices().find_map(|(at, c)| {
        let ends = c == ']' && !quoted && rest[at + 1..].starts_with('>');
        (quoted, escaped) = (quoted != (c == '"' && !escaped), c == '\\' && !escaped);
        ends.then_some(at + 1)
    });
    Some((fd.parse().ok()?, rest[..end?].to_owned()))
}

/// What the tape says that a descriptor among the arguments is.
fn named(call: &Call, fd: i64) -> Option<&str> {
    let args = call.0["args"].as_object().expect("args");
    args.values().find(|arg| arg["fd"].as_i64() == Some(fd)).and_then(|arg| arg["path"].as_str())
}

/// How names compare.
#[derive(Debug, Default)]
struct Compared {
    same: usize,
    /// strace's is one that the socket had before.
    older: Vec<String>,
    /// The tape has none, or none with an address: with the reason.
    unknown: BTreeMap<&'static str, Vec<String>>,
    wrong: Vec<String>,
}

/// All that both say, to judge names by.
struct Said<'a> {
    calls: &'a [Call],
    /// strace's names.
    names: BTreeSet<&'a str>,
}

impl Said<'_> {
    /// Whether `ours` is what the kernel says, and `theirs` what the socket was called before it had another end.
    fn is_newer(&self, ours: &str, theirs: &str) -> bool {
        let Some((kind, inside)) = ours.split_once(":[") else { return false };
        let inside = inside.strip_suffix(']').expect("a name");
        let Some((own, other)) = inside.split_once("->") else { return false };
        if kind.starts_with("UNIX") {
            // the other end was accepted, which strace shows on the other side
            let (peer, path) = other.split_once(',').expect("a path");
            let back = format!("{kind}:[{peer}->{own}");
            return theirs == format!("{kind}:[{own},{path}]") && self.names.iter().any(|name| name.starts_with(&back));
        }
        theirs == format!("{kind}:[{own}]")
            && self.answers("getsockname", ours, own)
            && self.answers("getpeername", ours, other)
    }

    /// Whether some call on the socket called `name` got this address from the kernel.
    fn answers(&self, call: &str, name: &str, address: &str) -> bool {
        let mut calls =
            self.calls.iter().filter(|c| c.name() == call && c.ret() == Some(0) && c.fd_path("fd") == Some(name));
        calls.any(|call| call.text("usockaddr").ends_with(&format!(", {address}}}")))
    }
}

fn compare(thread: &[Traced], calls: &[&Call], said: &Said<'_>, into: &mut Compared) {
    let theirs: Vec<_> = thread.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(theirs, calls.iter().map(|call| call.name()).collect::<Vec<_>>(), "the same calls");
    for (at, (traced, call)) in thread.iter().zip(calls).enumerate() {
        let Some((fd, theirs)) = &traced.socket else {
            // a descriptor that is not the first argument is in a structure, or the target of dup2
            let first = call.0["args"].as_object().expect("args").values().find_map(|arg| arg["path"].as_str());
            if first.is_some_and(is_socket) && call.name() != "dup2" {
                into.wrong.push(format!("{traced:?}: a socket only here: {}", call.0));
            }
            continue;
        };
        let what = format!("{} of {fd}: strace {theirs}, tape {:?}", call.name(), named(call, *fd));
        match named(call, *fd) {
            Some(ours) if ours == theirs => into.same += 1,
            // of a socket that another process handed over nobody saw where it came from
            None if thread[..at].iter().any(|call| call.name == "recvmsg") => {
                into.unknown.entry("came by SCM_RIGHTS").or_default().push(what);
            }
            Some(ours) if said.is_newer(ours, theirs) => into.older.push(what),
            _ => into.wrong.push(what),
        }
    }
}

#[test]
fn names_are_those_of_strace() {
    let Some(lab) = Lab::beside() else { return };
    let workload = lab.cc("clients", &[]);
    let out = lab.file("strace.out");
    let strace = ["strace", "-f", "-qq", "-yy", "-e", "signal=none", "-o", &out, "--", &workload];
    lab.record("t.tape", &[], &strace).expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &["--sort", "start"]);
    let threads = traced(&fs::read_to_string(&out).expect("strace's output"));
    let names = threads.values().flatten().filter_map(|call| call.socket.as_ref()).map(|(_, name)| name.as_str());
    let said = Said { calls: &calls, names: names.collect() };
    let mut compared = Compared::default();
    for (tid, thread) in &threads {
        let own: Vec<_> =
            calls.iter().filter(|call| call.tid() == *tid && call.incomplete() != Some("clone-child")).collect();
        // the first one was strace's own until it became the workload
        let from = match thread[0].name.as_str() {
            "execve" => own.iter().position(|call| call.name() == "execve" && call.ret() == Some(0)).expect("execve"),
            _ => 0,
        };
        compare(thread, &own[from..], &said, &mut compared);
    }
    let Compared { same, older, unknown, wrong } = &compared;
    let unknowns: usize = unknown.values().map(Vec::len).sum();
    println!("{same} the same, {} older ones of strace's, unknown {unknown:#?}", older.len());
    assert!(wrong.is_empty(), "{} wrong of {same}:\n{}", wrong.len(), wrong.join("\n"));
    let all = same + older.len() + unknowns;
    assert!(all > 1000 && unknowns * 100 <= all && older.len() * 20 <= all, "{compared:#?}");
    // every kind was there
    let ours: BTreeSet<&str> = calls
        .iter()
        .flat_map(|call| call.0["args"].as_object().expect("args").values())
        .filter_map(|arg| arg["path"].as_str())
        .collect();
    for part in [
        "TCP:[127.",
        "TCPv6:[[::1]:",
        "TCPv6:[[::ffff:",
        "UDP:[127.",
        "UDP:[0.0.0.0:",
        "UDPv6:[[::1]:",
        "UNIX:[",
        "UNIX-STREAM:[",
        ",\"server.socket\"]",
        ",@\"a server]>,\"]",
        "NETLINK:[ROUTE:",
        "socket:[",
    ] {
        assert!(ours.iter().any(|name| name.contains(part)), "{part} {ours:?}");
    }
}

#[test]
fn numbers_are_beside_the_names() {
    let Some(lab) = Lab::beside() else { return };
    let out = lab.file("inodes");
    // what the kernel calls its descriptors, and addresses that somebody listens on
    let program = "import os, socket
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
c = socket.create_connection(s.getsockname()); a, _ = s.accept()
u = socket.socket(socket.AF_UNIX); u.bind('\\0x'); p, q = socket.socketpair()
files = [(os.readlink(f'/proc/self/fd/{f.fileno()}'), f) for f in (s, c, a, u, p, q)]
for name, f in files: f.getsockname()
open('inodes', 'w').write(' '.join(name for name, _ in files))
os._exit(0)";
    lab.record("t.tape", &[], &["python3", "-c", program]).expect(0);
    lab.assert_whole("t.tape");
    let (calls, inodes) = (lab.calls("t.tape", &["-e", "getsockname"]), Inodes::of(&lab, "t.tape"));
    let truth = fs::read_to_string(&out).expect("inodes");
    let last: Vec<_> = calls[calls.len() - 6..].iter().map(|call| call.fd_path("fd").expect("a name")).collect();
    for (name, socket) in last.iter().zip(truth.split(' ')) {
        let inode = socket.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')).expect("socket");
        assert!(inodes.has(name, inode.parse().expect("inode")), "{name} {socket} {inodes:?}");
    }
    // and changes of the connection's state have the number by which the row knows it
    let rows = lab.analyze(&["t.tape", "-e", "socket:name", "--format", "json"]).expect(0).json();
    let row = rows.iter().find(|row| row["args"]["remote"].is_string()).expect("a connection");
    let states = lab.analyze(&["t.tape", "-e", "sock:inet_sock_set_state", "--format", "json"]).expect(0).json();
    let port = row["args"]["local"].as_str().and_then(|local| local.rsplit(':').next()?.parse().ok());
    let of: Vec<_> = states.iter().filter(|state| state["args"]["lport"].as_i64() == port).collect();
    assert!(!of.is_empty(), "{states:?}");
    assert!(of.iter().any(|state| state["args"]["socket"] == row["args"]["socket"]), "{row} {of:?}");
}

/// Sockets of every kind, the names that they should have, and calls on them once the file `go` is there.
const BEFORE: &str = r#"
import os, socket, time
def ip(s): a = s.getsockname(); return f'[{a[0]}]:{a[1]}' if s.family == socket.AF_INET6 else f'{a[0]}:{a[1]}'
def number(s): return os.readlink(f'/proc/self/fd/{s.fileno()}')[8:-1]
all = []
for family, host, v in ((socket.AF_INET, '127.0.0.1', ''), (socket.AF_INET6, '::1', 'v6')):
    s = socket.socket(family); s.bind((host, 0)); s.listen()
    c = socket.create_connection(s.getsockname()[:2]); a, _ = s.accept()
    u = socket.socket(family, socket.SOCK_DGRAM); u.bind((host, 0))
    w = socket.socket(family, socket.SOCK_DGRAM); w.connect(u.getsockname())
    all += [(s, f'TCP{v}:[{ip(s)}]'), (c, f'TCP{v}:[{ip(c)}->{ip(s)}]'), (a, f'TCP{v}:[{ip(s)}->{ip(c)}]')]
    all += [(u, f'UDP{v}:[{ip(u)}]'), (w, f'UDP{v}:[{ip(w)}->{ip(u)}]')]
n = socket.socket(); all.append((n, f'TCP:[{number(n)}]'))
l = socket.socket(socket.AF_UNIX); l.bind('before.socket'); l.listen()
k = socket.socket(socket.AF_UNIX); k.connect('before.socket'); m, _ = l.accept()
all += [(l, f'UNIX-STREAM:[{number(l)},"before.socket"]'), (k, f'UNIX-STREAM:[{number(k)}->{number(m)}]')]
all += [(m, f'UNIX-STREAM:[{number(m)}->{number(k)},"before.socket"]')]
r = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); r.bind((0, 0)); all.append((r, f'NETLINK:[ROUTE:{os.getpid()}]'))
open('ready', 'w').write('\n'.join(name for _, name in all))
while not os.path.exists('go'): time.sleep(0.01)
for s, _ in all: s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
# the recorder reads descriptors of the beginning a moment after it
time.sleep(1)
os._exit(0)
"#;

#[test]
fn sockets_from_before_have_names() {
    let Some(lab) = Lab::beside() else { return };
    let mut program = Background::start(lab.command("python3").args(["-c", BEFORE]));
    lab.until_file("ready");
    lab.until("its end", || !fs::read_to_string(lab.path("ready")).expect("ready").is_empty());
    let record = lab.attach("t.tape", &["-p", &program.pid_text()]);
    fs::write(lab.path("go"), "go").expect("go");
    lab.until("its end", || program.ended().is_some());
    record.wait().expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &["-e", "getsockopt"]);
    let names: Vec<_> = calls.iter().map(|call| call.fd_path("fd").unwrap_or("?")).collect();
    let truth = fs::read_to_string(lab.path("ready")).expect("ready");
    assert_eq!(names, truth.lines().collect::<Vec<_>>());
    assert!(Inodes::of(&lab, "t.tape").len() >= 11, "a row of each with an address");
}
