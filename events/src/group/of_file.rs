//! Keys that the name of a call's file tells: the directory it is in, its extension, the other end of a socket.

use systape_format::sockets;

use super::by::GroupKey;
use super::value::Value;

/// Longer ones are no extensions.
const LONGEST_EXTENSION: usize = 16;

/// The value of `by`, one of [`GroupKey::OF_FILE`], for a call whose file is `file`.
pub fn value(by: GroupKey, file: &Value) -> Value {
    let Value::Text(name) = file else { return file.clone() };
    // redacted names are known to differ, no more
    if name.starts_with(b"<redacted") {
        return Value::Unknown;
    }
    let text = |part: Option<&[u8]>| part.map_or(Value::None, |part| Value::Text(part.into()));
    let peer = || sockets::ends(sockets::split(name)?.1).1.filter(|peer| !peer.is_empty());
    match by {
        GroupKey::Dir | GroupKey::Ext if is_object(name) => Value::None,
        GroupKey::Dir => text(Some(directory(name))),
        GroupKey::Ext => text(extension(name)),
        GroupKey::Peer => text(peer()),
        GroupKey::Port => peer().and_then(sockets::port).map_or(Value::None, |port| Value::Number(port.into())),
        _ => Value::Unknown,
    }
}

/// Whether it is `TCP:[…]`, `pipe:[…]` and the like, and not the name of a file.
fn is_object(name: &[u8]) -> bool {
    !name.starts_with(b"/") && name.ends_with(b"]") && name.windows(2).any(|two| two == b":[")
}

fn directory(name: &[u8]) -> &[u8] {
    let name = trimmed(name);
    match name.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(at) => &name[..at],
        None => b".",
    }
}

fn extension(name: &[u8]) -> Option<&[u8]> {
    let name = trimmed(name);
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let last = name.rsplit(|byte| *byte == b'/').next()?;
    let at = last.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0)?;
    let extension = &last[at + 1..];
    (1..=LONGEST_EXTENSION).contains(&extension.len()).then_some(extension)
}

/// Without slashes at its end.
fn trimmed(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| *byte != b'/').map_or(name.len().min(1), |at| at + 1);
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> [String; 4] {
        GroupKey::OF_FILE.map(|by| match value(by, &Value::Text(name.as_bytes().into())) {
            Value::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            Value::Number(number) => number.to_string(),
            Value::None => "-".to_owned(),
            _ => "?".to_owned(),
        })
    }

    #[test]
    fn a_path_has_a_directory_and_may_have_an_extension() {
        assert_eq!(told("/var/log/a.tar.gz"), ["/var/log", "gz", "-", "-"]);
        assert_eq!(told("/etc/"), ["/", "-", "-", "-"]);
        assert_eq!(told("/"), ["/", "-", "-", "-"]);
        assert_eq!(told("x.c"), [".", "c", "-", "-"]);
        assert_eq!(told("lib/x.so (deleted)"), ["lib", "so", "-", "-"]);
        assert_eq!(told("/home/me/.profile"), ["/home/me", "-", "-", "-"]);
        assert_eq!(told("/a.d/b"), ["/a.d", "-", "-", "-"]);
        assert_eq!(told("/proc/[kworker]:[1]"), ["/proc", "-", "-", "-"]);
    }

    #[test]
    fn a_socket_may_have_another_end() {
        assert_eq!(told("TCP:[10.0.0.1:40002->10.0.0.2:443]"), ["-", "-", "10.0.0.2:443", "443"]);
        assert_eq!(told("TCPv6:[[::1]:8080->[::1]:5]"), ["-", "-", "[::1]:5", "5"]);
        assert_eq!(told("UNIX-STREAM:[17->18,\"/run/a->b:9\"]"), ["-", "-", "18", "-"]);
        assert_eq!(told("UNIX-DGRAM:[17,\"/run/a->b:9\"]"), ["-", "-", "-", "-"]);
        assert_eq!(told("TCP:[0.0.0.0:80]"), ["-", "-", "-", "-"]);
        assert_eq!(told("pipe:[77]"), ["-", "-", "-", "-"]);
    }

    #[test]
    fn what_is_not_known_stays_so() {
        assert_eq!(told("<redacted path 5>"), ["?"; 4]);
        let unknown = GroupKey::OF_FILE.map(|by| value(by, &Value::Unknown));
        assert_eq!(unknown, [const { Value::Unknown }; 4]);
        assert_eq!(GroupKey::OF_FILE.map(|by| value(by, &Value::None)), [const { Value::None }; 4]);
    }
}
