//! Command lines that show a finding.

use super::super::calls::Object;
use super::super::finding::Who;
use super::super::rank::On;
use systape_events::values::words::shell;

/// Words of a command, quoted for a shell.
pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> String {
    shell(&words.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
}

/// `-p 17`, or `--comm=app` of several processes.
pub fn task(who: &Who) -> String {
    match who.pid {
        Some(pid) => format!("-p {pid}"),
        None => comm(&who.comm),
    }
}

/// `--comm=app`: a comma, a leading `!` and a backslash mean something there, bytes that are no text are refused, and a `?` stands for any
/// byte. An empty name cannot be typed: it is what is left without all others.
pub(super) fn comm(comm: &[u8]) -> String {
    let safe = if comm.is_empty() { b"!?*".to_vec() } else { pattern(comm, b",!\\") };
    words([[b"--comm=".as_slice(), &safe].concat().as_slice()])
}

/// A pattern that `name` matches and an option takes: `?` for each byte that is no text, and for each of `special`.
fn pattern(name: &[u8], special: &[u8]) -> Vec<u8> {
    let mut safe = Vec::with_capacity(name.len());
    for part in name.utf8_chunks() {
        let byte = |byte: u8| if byte == 0 || special.contains(&byte) { b'?' } else { byte };
        safe.extend(part.valid().bytes().map(byte));
        safe.extend(part.invalid().iter().map(|_| b'?'));
    }
    safe
}

/// `-P /etc/passwd`, for all calls on it; empty: of none or unknown ones.
pub(super) fn path(on: &On) -> String {
    let asked = match on {
        On::One(Object::Named(name)) => name.to_vec(),
        On::In(dir) if dir == b"/" => b"/*".to_vec(),
        On::In(dir) => [dir, &b"/*"[..]].concat(),
        On::Peer(end) => [b"*->", &end[..], b"]"].concat(),
        _ => return String::new(),
    };
    format!("{} ", file(&asked))
}

/// `-P /etc/passwd`, for all calls on files of that name.
pub fn file(name: &[u8]) -> String {
    format!("-P {}", words([pattern(name, b"").as_slice()]))
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

    #[test]
    fn a_name_may_be_anything() {
        assert_eq!(comm(b""), "'--comm=!?*'", "all that have a name are left out");
        assert_eq!(comm(b"\\!x"), "'--comm=??x'");
        assert_eq!(comm(b"a\xffb"), "'--comm=a?b'");
        assert_eq!(comm("é\n".as_bytes()), "$'--comm=é\\n'");
        assert_eq!(comm(b"it's"), "'--comm=it'\\''s'");
        assert_eq!(path(&On::In(b"/a\xff,".to_vec())), "-P '/a?,/*' ");
    }
}
