//! Command lines that show a finding.

use super::super::calls::Object;
use super::super::finding::Who;
use super::super::rank::On;
use crate::values::words::shell;

/// These words, quoted for a shell.
pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> String {
    shell(&words.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
}

/// `-p 17`, or `--comm=app` of several processes.
pub(super) fn task(who: &Who) -> String {
    match who.pid {
        Some(pid) => format!("-p {pid}"),
        None => comm(&who.comm),
    }
}

/// `--comm=app`: a comma and a leading `!` mean something there, and a `?` stands for any character.
pub(super) fn comm(comm: &[u8]) -> String {
    let safe: Vec<u8> = comm.iter().map(|byte| if matches!(byte, b',' | b'!') { b'?' } else { *byte }).collect();
    words([[b"--comm=".as_slice(), &safe].concat().as_slice()])
}

/// `-P /etc/passwd`, for all calls on it; empty: of none or unknown ones.
pub(super) fn path(on: &On) -> String {
    let pattern = match on {
        On::One(Object::Named(name)) => name.to_vec(),
        On::In(dir) if dir == b"/" => b"/*".to_vec(),
        On::In(dir) => [dir, &b"/*"[..]].concat(),
        On::Peer(end) => [b"*->", &end[..], b"]"].concat(),
        _ => return String::new(),
    };
    format!("-P {} ", words([pattern.as_slice()]))
}

/// `-s --by comm,syscall -e openat -P /etc/passwd -p 17`.
pub(super) fn summary(who: &Who, call: &str, on: &On, more: &str) -> String {
    // the other end of a connection is no path of a call
    let path = if call == "connect" { String::new() } else { path(on) };
    format!("-s --by comm,syscall -e {call} {path}{more}{}", task(who))
}

#[cfg(test)]
mod tests {
    use super::super::super::rank::named;
    use super::*;

    #[test]
    fn commands_are_what_a_shell_takes() {
        let who = Who { comm: b"a b".to_vec(), pid: None };
        assert_eq!(
            summary(&who, "openat", &On::In(b"/x".to_vec()), ""),
            "-s --by comm,syscall -e openat -P '/x/*' '--comm=a b'"
        );
        let who = Who { comm: b"sh".to_vec(), pid: Some(7) };
        assert_eq!(
            summary(&who, "read", &On::One(named("/a")), "--failure "),
            "-s --by comm,syscall -e read -P /a --failure -p 7"
        );
        assert_eq!(comm(b"!a,b"), "'--comm=?a?b'");
    }
}
