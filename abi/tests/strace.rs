//! Compares our names of flags with strace's, which prints value and names side by side with `-X verbose`.
//!
//! Skipped, loudly, where strace is missing or may not trace.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeSet;
use std::process::Command;

use systape_abi::{ArgKind, FlagStyle, SyscallDesc, describe_name};

const CALLS: &str = "openat,mmap,mprotect,socket,fcntl,newfstatat,statx,access,lseek,clone,clone3,futex,prlimit64,\
    rt_sigprocmask,epoll_create1,epoll_ctl,pipe2,eventfd2,memfd_create,madvise,getrandom,arch_prctl,shutdown,sendto,flock";

/// Makes calls with many different flags.
const PROGRAM: &str = "
import fcntl, mmap, os, select, socket, threading
f = os.open('/tmp', os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
t = os.open('/tmp', os.O_RDWR | os.O_TMPFILE, 0o600)
fcntl.flock(t, fcntl.LOCK_EX | fcntl.LOCK_NB); os.lseek(t, 0, os.SEEK_END); os.dup(t)
os.ftruncate(t, 8192); m = mmap.mmap(t, 8192); m.madvise(mmap.MADV_DONTNEED)
e = select.epoll(); s, peer = socket.socketpair(); e.register(s, select.EPOLLIN)
s.send(b'x', socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT); s.shutdown(socket.SHUT_RDWR)
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); os.pipe(); os.memfd_create('m')
h = threading.Thread(target=print); h.start(); h.join()
if os.fork() == 0: os._exit(0)
os.wait()
";

#[test]
fn flags_have_the_names_strace_gives_them() {
    let run = Command::new("strace")
        .args(["-f", "-X", "verbose", "-e", &format!("trace={CALLS}"), "python3", "-c", PROGRAM])
        .env("LC_ALL", "C")
        .env_remove("LD_LIBRARY_PATH")
        .output();
    let output = match run {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stderr).into_owned(),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            return eprintln!("SKIPPED: strace or its program failed: {}", text.lines().last().unwrap_or_default());
        }
        Err(error) => return eprintln!("SKIPPED: cannot run strace: {error}"),
    };
    let mut compared = BTreeSet::new();
    let mut wrong = BTreeSet::new();
    for line in output.lines() {
        let line = line.strip_prefix("[pid").and_then(|rest| rest.split_once("] ")).map_or(line, |(_, call)| call);
        let Some((name, arguments)) = line.split_once('(') else {
            continue;
        };
        let Some(desc) = describe_name(name) else {
            continue;
        };
        // what follows a brace or an equals sign is inside a structure, or the result
        let arguments = arguments.split(['{', '=']).next().unwrap_or(arguments);
        // their other comments are on values we do not name: a mask, the argument of a command
        let named = if ["fcntl", "futex", "rt_sigprocmask"].contains(&name) { 1 } else { 6 };
        for (value, theirs) in pairs(arguments).take(named) {
            let texts = our_texts(desc, value);
            let theirs = if name == "futex" { split_private(theirs) } else { theirs.to_owned() };
            if !texts.iter().any(|ours| parts(ours) == parts(&theirs)) {
                wrong.insert(format!("{name}: {value:#x} is {theirs} to strace, {texts:?} to us"));
            }
            compared.insert((name.to_owned(), value));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared.len() > 20, "only {} values compared", compared.len());
}

/// strace joins an operation of futex and its most usual flag into one name: `FUTEX_WAIT_PRIVATE`.
fn split_private(names: &str) -> String {
    let split = |name: &str| match name.strip_suffix("_PRIVATE") {
        Some(operation) => format!("{operation}|FUTEX_PRIVATE_FLAG"),
        None => name.to_owned(),
    };
    names.split('|').map(split).collect::<Vec<_>>().join("|")
}

/// `0x80000 /* O_RDONLY|O_CLOEXEC */`: the number before each comment, and the comment.
fn pairs(arguments: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut rest = arguments;
    std::iter::from_fn(move || {
        let (before, after) = rest.split_once(" /* ")?;
        let (names, after) = after.split_once(" */")?;
        rest = after;
        Some((before.rsplit([' ', '(']).next()?, names))
    })
    .filter_map(|(number, names)| Some((parse(number)?, names)))
}

fn parse(number: &str) -> Option<u64> {
    if let Some(digits) = number.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = number.strip_prefix('-') {
        return Some((digits.parse::<i64>().ok()?.wrapping_neg()) as u64);
    }
    number
        .strip_prefix('0')
        .filter(|rest| !rest.is_empty())
        .map_or_else(|| number.parse().ok(), |octal| u64::from_str_radix(octal, 8).ok())
}

/// The texts `value` has as each of the arguments with names; strace does not say which it is.
fn our_texts(desc: &SyscallDesc, value: u64) -> Vec<String> {
    let text = |kind: &ArgKind| match kind {
        ArgKind::Flags(set) => Some(set.text(value, FlagStyle::FULL)),
        ArgKind::DirFd if value as i32 == systape_abi::AT_FDCWD => Some("AT_FDCWD".to_owned()),
        ArgKind::SockProto { .. } => systape_abi::protocol_flags(2).map(|set| set.text(value, FlagStyle::FULL)),
        _ => None,
    };
    desc.args.iter().filter_map(|arg| text(&arg.kind)).collect()
}

fn parts(text: &str) -> BTreeSet<&str> {
    text.split('|').collect()
}
