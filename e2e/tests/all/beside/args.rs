//! Arguments, one by one: a workload makes one call of each of many syscalls with known arguments, and the tape has
//! them as they were: flags by name, strings whole, socket addresses, pairs of descriptors, paths behind descriptors.
//! Strings are the bytes that were there, of any length, on pages not yet touched, or a pointer when nothing could be
//! read: never "". Names of flags are those strace prints.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use systape_e2e::{Call, Lab, strace};

/// What each case of workloads/args.c does, as `name(argument=value …) = return value or error`, arguments sorted by
/// name; `&` is a pointer that is not null, strings are quoted, `3<x>` is descriptor 3 and its path,
/// `$port` what the workload said its port was.
const EXPECTED: &str = "
openat: openat(dfd=AT_FDCWD filename='made' flags=O_RDWR|O_CREAT|O_EXCL|O_APPEND|O_CLOEXEC mode=0640) = 3
enoent: openat(dfd=AT_FDCWD filename='no/such' flags=O_RDONLY|O_DIRECTORY|O_NOFOLLOW mode=*) = ENOENT
lseek: lseek(fd=3<made> offset=5000000000 whence=SEEK_SET) = 5000000000
lseek: lseek(fd=3<made> offset=-7 whence=SEEK_CUR) = 4999999993
lseek: lseek(fd=3<made> offset=3 whence=SEEK_END) = 3
pwrite: pwrite64(buf=& count=5 fd=3<made> pos=23) = 5
fcntl: fcntl(arg=* cmd=F_GETFD fd=3<made>) = 1
fcntl: fcntl(arg=& cmd=F_SETFD fd=3<made>) = 0
fcntl: fcntl(arg=& cmd=F_SETFL fd=3<made>) = 0
fcntl: fcntl(arg=& cmd=F_DUPFD_CLOEXEC fd=3<made>) = 100
access: access(filename='made' mode=R_OK|W_OK) = 0
rename: rename(newname='old name' oldname='made') = 0
rename: renameat2(flags=RENAME_NOREPLACE newdfd=AT_FDCWD newname='new name' olddfd=AT_FDCWD oldname='old name') = 0
symlink: symlink(newname='soft' oldname='the target') = 0
symlink: symlinkat(newdfd=AT_FDCWD newname='soft2' oldname='other target') = 0
link: link(newname='hard' oldname='new name') = 0
link: linkat(flags=0 newdfd=AT_FDCWD newname='hard2' olddfd=AT_FDCWD oldname='soft') = 0
mknod: mknod(dev=0:0 filename='fifo' mode=010620) = 0
mknod: mkdir(mode=0751 pathname='dir') = 0
setxattr: setxattr(flags=XATTR_CREATE name='user.systape' pathname='new name' size=5 value=&) = 0
memfd: memfd_create(flags=MFD_CLOEXEC uname='a memfd') = 4
unlink: unlink(pathname='hard') = 0
unlink: unlinkat(dfd=AT_FDCWD flag=AT_REMOVEDIR pathname='dir') = 0
umask: umask(mask=027) = 18
truncate: truncate(length=4100 path='new name') = 0
truncate: ftruncate(fd=3<made> length=11) = 0
chmod: chmod(filename='new name' mode=04755) = 0
chmod: fchmod(fd=3<made> mode=0600) = 0
mmap: mmap(addr=0 fd=-1 flags=MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE len=12288 off=0 prot=PROT_READ|PROT_WRITE) = &
mmap: mprotect(len=4096 prot=PROT_READ|PROT_EXEC start=&) = 0
mmap: madvise(behavior=MADV_DONTNEED len_in=4096 start=&) = 0
mmap: munmap(addr=& len=4096) = 0
socket: socket(family=AF_INET protocol=0 type=SOCK_STREAM|SOCK_CLOEXEC) = 6
socket: socket(family=AF_INET6 protocol=* type=SOCK_DGRAM|SOCK_NONBLOCK) = 7
listen: bind(addrlen=16 fd=6<socket> umyaddr='{AF_INET, 127.0.0.1:0}') = 0
listen: listen(backlog=17 fd=6<socket>) = 0
listen: getsockname(fd=6<socket> usockaddr='{AF_INET, 127.0.0.1:$port}' usockaddr_len=&) = 0
connect: socket(family=AF_INET protocol=0 type=SOCK_STREAM) = 8
connect: connect(addrlen=16 fd=8<socket> uservaddr='{AF_INET, 127.0.0.1:$port}') = 0
connect: getsockname(fd=8<socket> usockaddr='{AF_INET, 127.0.0.1:$client}' usockaddr_len=&) = 0
accept: accept4(fd=6<socket> flags=SOCK_CLOEXEC upeer_addrlen=& upeer_sockaddr='{AF_INET, 127.0.0.1:$client}') = 9
accept: getpeername(fd=9<socket> usockaddr='{AF_INET, 127.0.0.1:$client}' usockaddr_len=&) = 0
accept: accept4(fd=-1 flags=0 upeer_addrlen=0 upeer_sockaddr=0) = EBADF
sendto: sendto(addr=0 addr_len=0 buff=& fd=8<socket> flags=MSG_NOSIGNAL len=4) = 4
sendto: sendto(addr='{AF_INET6, [::1]:9}' addr_len=28 buff=& fd=7<socket> flags=MSG_DONTWAIT len=1) = 1
sendto: shutdown(fd=8<socket> how=SHUT_WR) = 0
unix: socket(family=AF_UNIX protocol=0 type=SOCK_STREAM) = 10
unix: bind(addrlen=110 fd=10<socket> umyaddr='{AF_UNIX, a.socket}') = 0
unix: socket(family=AF_UNIX protocol=0 type=SOCK_DGRAM) = 11
unix: bind(addrlen=19 fd=11<socket> umyaddr='{AF_UNIX, @systape-abstract}') = 0
unix: connect(addrlen=110 fd=10<socket> uservaddr='{AF_UNIX, nobody.socket}') = ENOENT
pair: socketpair(family=AF_UNIX protocol=0 type=SOCK_SEQPACKET|SOCK_CLOEXEC usockvec=[12 13]) = 0
pair: pipe2(fildes=[14 15] flags=O_NONBLOCK) = 0
futex: futex(at_uaddr=* op=FUTEX_WAIT|FUTEX_PRIVATE_FLAG uaddr=& uaddr2=* utime=0 val=6 val3=*) = EAGAIN
futex: futex(at_uaddr=* op=FUTEX_WAIT uaddr=& uaddr2=* utime='{tv_sec=0, tv_nsec=3000000}' val=5 val3=*) = ETIMEDOUT
futex: futex(op=FUTEX_WAKE|FUTEX_PRIVATE_FLAG uaddr=& uaddr2=* utime=* val=1 val3=*) = 0
kill: kill(pid=$pid sig=0) = 0
kill: rt_sigaction(act=& oact=& sig=SIGUSR2 sigsetsize=8) = 0
kill: kill(pid=$pid sig=SIGUSR2) = 0
clone: clone(child_tidptr=0 clone_flags=CLONE_VM|CLONE_VFORK|SIGCHLD newsp=0 parent_tidptr=0 tls=0) = $child
wait: wait4(options=__WALL ru=0 stat_addr='[{WIFEXITED(s) && WEXITSTATUS(s) == 23}]' upid=$child) = $child
wait: wait4(options=WNOHANG ru=0 stat_addr=0 upid=-1) = ECHILD
prctl: prctl(arg2=& arg3=0 arg4=0 arg5=0 option=PR_SET_NAME) = 0
exec: execve(argv=['no program' 'one' '' 'tres'] envp=& filename='/no/such/program') = ENOENT
end: exit_group(error_code=0) = ?
";

/// Arguments the kernel does not read for this call: whatever the register had.
const UNREAD: [(&str, &str); 7] = [
    ("openat", "mode"),
    ("fcntl", "arg"),
    ("futex", "at_uaddr"),
    ("futex", "uaddr2"),
    ("futex", "utime"),
    ("futex", "val3"),
    ("socket", "protocol"),
];

/// The recording all tests of this file look at.
struct Recorded {
    calls: Vec<Call>,
    traced: Vec<strace::Traced>,
    /// What the workload said of itself: `port 1234`, `child 17`, …
    facts: Vec<(String, String)>,
    dir: String,
}

impl Recorded {
    fn new() -> Option<(Lab, Self)> {
        // the program binds a name that only one at a time can have
        let lab = Lab::with_bpf()?;
        let workload = lab.cc("args", &[]);
        for dir in ["recorded", "traced"] {
            fs::create_dir(lab.path(dir)).expect("mkdir");
        }
        let run = lab.record("t.tape", &[], &[&workload, "recorded"]).expect(0);
        lab.assert_whole("t.tape");
        let fact = |line: &str| line.split_once(' ').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let facts: Vec<_> = run.text().lines().filter_map(fact).collect();
        let traced = strace::trace(&lab, &[], &[&workload, "traced"]);
        let main = traced[0].tid;
        let dir = format!("{}/", lab.path("recorded").canonicalize().expect("path").display());
        let pid: i64 = facts.iter().find(|(key, _)| key == "pid").expect("pid").1.parse().expect("pid");
        let calls = lab.calls("t.tape", &["-p", &pid.to_string()]);
        Some((lab, Self { calls, traced: traced.into_iter().filter(|c| c.tid == main).collect(), facts, dir }))
    }

    /// Calls of every case so named, markers and the calls of libc between them left out.
    fn case(&self, name: &str) -> Vec<&Call> {
        let mut current = "";
        let mut found = Vec::new();
        for call in &self.calls {
            if let Some(case) = call.0["args"]["filename"].as_str().and_then(|f| f.strip_prefix("/case/")) {
                current = case;
            } else if current == name && !["getpid", "write", "brk"].contains(&call.name()) {
                found.push(call);
            }
        }
        found
    }

    /// An argument as in [`EXPECTED`].
    fn plain(&self, value: &Value) -> String {
        match value {
            Value::Null => "0".into(),
            Value::Number(n) => n.to_string(),
            Value::Array(items) => format!("[{}]", items.iter().map(|v| self.plain(v)).collect::<Vec<_>>().join(" ")),
            Value::String(s) if s.starts_with("0x") => "&".into(),
            Value::String(s) if s.parse::<i64>().is_ok() => s.clone(),
            Value::String(s) => format!("'{s}'"),
            Value::Object(o) => match (o.get("text"), o.get("fd"), o.get("path").and_then(Value::as_str)) {
                (Some(text), ..) => text.as_str().map_or("&".into(), str::to_owned),
                (_, Some(fd), Some(path))
                    if ["TCP:", "UDPv6:", "UNIX:", "UNIX-STREAM:"].iter().any(|kind| path.starts_with(kind)) =>
                {
                    format!("{fd}<socket>")
                }
                (_, Some(fd), Some(path)) => format!("{fd}<{}>", path.strip_prefix(&self.dir).unwrap_or(path)),
                (_, Some(fd), None) => fd.to_string(),
                _ => panic!("an argument of no documented form: {value}"),
            },
            Value::Bool(_) => panic!("an argument of no documented form: {value}"),
        }
    }

    /// A call as in [`EXPECTED`]; arguments that are `*` there stay so.
    fn line(&self, call: &Call, expected: &str) -> String {
        let args = call.0["args"].as_object().expect("args");
        let plain = |(name, value): (&String, &Value)| {
            let any = UNREAD.contains(&(call.name(), name)) && expected.contains(&format!("{name}=*"));
            let text = if any { "*".into() } else { self.plain(value) };
            format!("{name}={text}")
        };
        let args: Vec<_> = args.iter().map(plain).collect();
        let ret = match (call.errno(), &call.0["ret"]) {
            (Some(errno), _) => errno.to_owned(),
            (None, Value::Null) => "?".into(),
            (None, ret) => self.plain(ret),
        };
        format!("{}({}) = {ret}", call.name(), args.join(" "))
    }
}

#[test]
fn arguments_are_as_made() {
    let Some((_lab, recorded)) = Recorded::new() else { return };
    let mut expected = EXPECTED.to_owned();
    for (key, value) in &recorded.facts {
        expected = expected.replace(&format!("${key}"), value);
    }
    let mut wrong = Vec::new();
    let mut at = (String::new(), 0);
    for line in expected.trim().lines() {
        let (case, want) = line.split_once(": ").expect("case: call");
        at = if at.0 == case { (at.0, at.1 + 1) } else { (case.to_owned(), 0) };
        let calls = recorded.case(case);
        let got = calls.get(at.1).map_or("nothing".into(), |call| recorded.line(call, want));
        if got != want {
            wrong.push(format!("{case}:\n  want {want}\n  got  {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // registers in full: 0xc00 = O_APPEND|O_NONBLOCK
    let fcntl = recorded.case("fcntl");
    assert_eq!([fcntl[1].num("arg"), fcntl[2].num("arg"), fcntl[3].num("arg")], [1, 0xc00, 100]);
}

#[test]
fn strings_are_whole_or_a_pointer() {
    let Some((lab, recorded)) = Recorded::new() else { return };
    let only = |case: &str| {
        let calls = recorded.case(case);
        assert!(!calls.is_empty(), "no call in case {case}");
        assert_eq!(calls[0].name(), "openat", "{case}: {:?}", calls[0]);
        calls[0].clone()
    };
    let munmap = recorded.case("mmap").last().expect("munmap").arg("addr").clone();
    // nothing there: the pointer, and that nothing was read
    let efault = only("efault");
    let filename = efault.arg("filename");
    assert_eq!(efault.errno(), Some("EFAULT"));
    assert_eq!(
        (&filename["addr"], &filename["text"], &filename["hex"]),
        (&munmap, &Value::Null, &Value::Null),
        "{filename}"
    );
    assert!(filename["missing"].is_string(), "{filename}");
    // a null pointer is neither a string nor an empty one
    let null = only("null").arg("filename").clone();
    assert!(null.is_null() || (null["addr"] == "0" && null["text"].is_null()), "null pointer: {null}");
    assert_eq!(only("zero").arg("filename"), "0");
    assert_eq!(only("empty").arg("filename"), "");
    assert_eq!(only("cold").arg("filename"), "cold/page");
    assert_eq!(only("edge").arg("filename"), "/at/edge");
    let bytes = only("bytes");
    assert_eq!(bytes.bytes("filename").expect("bytes"), b"caf\xe9\n\x1b[31m");
    // the one string of this workload that could not be read is counted
    let gaps = lab.info("t.tape")["gaps"].as_array().expect("gaps").clone();
    let [gap] = &gaps[..] else { panic!("{gaps:?}") };
    assert_eq!((&gap["cause"], &gap["count"], &gap["family"]), (&json!("string-fault"), &json!(1), &json!("syscall")));
    // text has the pointer, "" for the empty string, and no raw escape sequences
    let text = lab.analyze(&["t.tape", "-e", "=openat"]).expect(0).text();
    let pointer = format!("filename: {}", munmap.as_str().expect("address"));
    for part in [pointer.as_str(), r#"filename: "")"#, r#"filename: "caf\xe9\n\x1b[31m""#] {
        assert_eq!(text.matches(part).count(), 1, "{part} in:\n{text}");
    }
    assert!(!text.contains('\x1b'), "escape sequences in the listing");
}

#[test]
fn long_paths_are_whole_up_to_the_limit() {
    let Some((lab, recorded)) = Recorded::new() else { return };
    let long = recorded.case("long");
    let lengths: Vec<_> =
        long.iter().filter(|c| c.name() == "openat").map(|c| c.bytes("filename").map(|b| b.len())).collect();
    // the kernel reads 4096 bytes of a path, the end included, and says ENAMETOOLONG then; so many are kept by default
    assert_eq!(lengths, [255, 256, 257, 4000, 4095, 4096, 4096].map(Some));
    for (call, len) in long.iter().filter(|c| c.name() == "openat").zip([255_usize, 256, 257, 4000, 4095, 4096, 5000]) {
        let bytes = call.bytes("filename").expect("bytes");
        let want: Vec<u8> = (0..len).map(|i| if (i + (len & 1)) % 2 == 1 { b'/' } else { b'.' }).collect();
        let body = bytes.len() - 1;
        assert_eq!(bytes[..body], want[..body], "{len}");
        if bytes.len() == len {
            assert_eq!(bytes[body], b'x', "{len}");
        }
        let whole = call.arg("filename").is_string();
        assert_eq!(whole, len <= 4096, "{len} bytes: {}", call.arg("filename"));
        if !whole {
            assert_eq!(call.arg("filename")["missing"], "truncated", "{len}: {}", call.arg("filename"));
        }
    }
    // -s cuts them, and says so
    fs::remove_dir_all(lab.path("recorded")).expect("rm");
    fs::create_dir(lab.path("recorded")).expect("mkdir");
    lab.record("s.tape", &["-s", "32"], &[&lab.file("args"), "recorded"]).expect(0);
    let cut: Vec<_> = lab.calls("s.tape", &["-e", "=openat"]);
    let cut: Vec<_> = cut.iter().filter(|c| c.arg("filename")["missing"] == "truncated").collect();
    assert!(cut.len() >= 7, "{} strings are marked as truncated", cut.len());
    assert!(cut.iter().all(|c| c.bytes("filename").is_some_and(|b| b.len() == 32)), "{cut:?}");
}

/// Names only one of the two prints, and why.
const OTHER_NAMES: [(&str, &str); 10] = [
    ("S_IFIFO", "part of the octal mode in ours"),
    ("F_OK", "a mode of 0 is 0 or F_OK"),
    ("NULL", "a null pointer"),
    ("AT_FDCWD", "compared as a descriptor"),
    ("IPPROTO_IP", "protocol is a number in ours"),
    ("IPPROTO_UDP", "protocol is a number in ours"),
    ("O_RDONLY", "the argument of F_SETFL is a number in ours"),
    ("O_APPEND", "the argument of F_SETFL is a number in ours"),
    ("O_NONBLOCK", "the argument of F_SETFL is a number in ours"),
    ("FD_CLOEXEC", "the argument of F_SETFD is a number in ours"),
];

/// Words that look like constants.
fn constants(text: &str) -> BTreeSet<String> {
    let word = |w: &&str| {
        w.len() > 2 && w.contains('_') && w.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(word).map(str::to_owned).collect()
}

#[test]
fn names_of_flags_are_straces() {
    let Some((_lab, recorded)) = Recorded::new() else { return };
    let marker = |bytes: &[u8]| bytes.starts_with(b"/case/");
    let from = recorded.traced.iter().position(|c| c.bytes(0).is_some_and(|b| marker(&b))).expect("first case");
    let traced = &recorded.traced[from..];
    let from = recorded.calls.iter().position(|c| c.bytes("filename").is_some_and(|b| marker(&b))).expect("first case");
    let ours = &recorded.calls[from..];
    let names = |calls: &mut dyn Iterator<Item = &str>| calls.map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(&mut ours.iter().map(Call::name)), names(&mut traced.iter().map(|c| c.name.as_str())));
    let mut compared = 0;
    for (ours, theirs) in ours.iter().zip(traced) {
        let explained = |name: &String| {
            let file_open = ours.name() == "openat" || ours.name() == "pipe2";
            OTHER_NAMES.iter().any(|(known, _)| known == name) && !(name.starts_with("O_") && file_open)
        };
        let args = ours.0["args"].as_object().expect("args");
        let text: Vec<_> =
            args.values().filter(|v| v.get("value").is_some()).filter_map(|v| v["text"].as_str()).collect();
        let mut ours_named = constants(&text.join(" "));
        // strace joins the two: FUTEX_WAIT_PRIVATE
        if ours_named.remove("FUTEX_PRIVATE_FLAG") {
            ours_named = ours_named.iter().map(|op| format!("{op}_PRIVATE")).collect();
        }
        // and the members of what a pointer points to have names too
        let flat: Vec<_> = theirs.split().into_iter().filter(|a| !a.starts_with(['{', '[', '"'])).collect();
        let mut theirs_named = constants(&flat.join(" "));
        compared += ours_named.len();
        ours_named.retain(|n| !explained(n));
        theirs_named.retain(|n| !explained(n));
        assert_eq!(ours_named, theirs_named, "{:?}\n{theirs:?}", ours.0);
    }
    assert!(compared > 60, "only {compared} names compared");
    // results that depend on nothing but the calls
    for (ours, theirs) in ours.iter().zip(traced) {
        let same = !["mmap", "clone", "wait4", "getpid", "exit_group"].contains(&ours.name());
        let errno = theirs.errno.as_deref();
        assert!(!same || (ours.ret(), ours.errno()) == (theirs.ret, errno), "{:?}\n{theirs:?}", ours.0);
    }
}
