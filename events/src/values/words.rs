//! Small pieces of text that reports share: escaped bytes, command lines, spans of time, amounts of memory.

use systape_abi::errno_name;
use systape_format::model::{ERRNO_ANY, Session, UID_UNKNOWN};
use systape_format::redact::PLACEHOLDER;

/// The cause of a wake-up or of a socket's change that a network softirq did at the end of a task's own send.
pub const NET_SOFTIRQ: &str = "net-softirq";
/// Words for a softirq after the name of that task.
pub const VIA_SOFTIRQ: &str = " via net softirq";

/// A comm, escaped; `?` = not known.
pub fn named(comm: &[u8]) -> String {
    if comm.is_empty() { "?".into() } else { escaped(comm) }
}

/// Name of a user, else its number; `?`: not known.
pub fn user(session: &Session, uid: u32) -> String {
    match session.users.iter().find(|(known, _)| *known == uid) {
        _ if uid == UID_UNKNOWN => "?".into(),
        Some((_, name)) => escaped(name),
        None => uid.to_string(),
    }
}

/// Name of an error, `ENOENT`; the number of an error without a name; `unknown` for calls that are only known to have failed.
pub fn errno_text(errno: u16) -> String {
    match errno_name(errno) {
        _ if errno == ERRNO_ANY => "unknown".to_owned(),
        Some(name) => name.to_owned(),
        None => errno.to_string(),
    }
}

/// Path of a cgroup, else its number.
pub fn cgroup(session: &Session, id: u64) -> String {
    session.cgroup_path(id).map_or_else(|| format!("cgroup {id}"), escaped)
}

/// `bytes` escaped for a terminal.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    systape_abi::escape(bytes, &mut text);
    text
}

/// NUL-separated arguments as a user would type them, quoted if needed; `...` when they are incomplete.
pub fn command(argv: &[u8], whole: bool) -> String {
    if argv == PLACEHOLDER {
        return escaped(argv);
    }
    let words: Vec<String> = argv.split(|byte| *byte == 0).map(word).collect();
    let mut text = words.join(" ");
    if !whole {
        text.push_str("...");
    }
    text
}

fn word(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%^~[]{}".contains(byte) || *byte >= 0x80;
    if !bytes.is_empty() && bytes.iter().all(plain) { escaped(bytes) } else { format!("\"{}\"", escaped(bytes)) }
}

/// Arguments in the syntax of a shell: more than letters, digits and plain signs are in single quotes, and bytes that a
/// terminal must not get are escaped in `$'...'`.
pub fn shell(words: &[Vec<u8>]) -> String {
    let word = |bytes: &Vec<u8>| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%^".contains(byte);
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
        match text {
            Some(text) if !text.is_empty() && bytes.iter().all(plain) => text.to_owned(),
            Some(text) if text.is_ascii() => format!("'{}'", text.replace('\'', "'\\''")),
            // a shell undoes \xff, \n, \\ and \" there
            _ => format!("$'{}'", escaped(bytes).replace('\'', "\\'")),
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A span of time in a unit that suits it: `0.412 ms`, `15.3 ms`, `3.20 s`, `25.0 min`, `7.5 h`.
pub fn span(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ns {
        0..10_000_000 => format!("{ms:.3} ms"),
        10_000_000..1_000_000_000 => format!("{ms:.1} ms"),
        1_000_000_000..600_000_000_000 => format!("{:.2} s", ms / 1e3),
        600_000_000_000..36_000_000_000_000 => format!("{:.1} min", ms / 60e3),
        _ => format!("{:.1} h", ms / 3600e3),
    }
}

/// Time on CPUs in a period: `20 % of a CPU`, `2.5 CPUs`.
pub fn share_of_cpus(time: u64, period: u64) -> String {
    let cpus = time as f64 / period.max(1) as f64;
    if cpus < 1.0 { format!("{:.0} % of a CPU", cpus * 100.0) } else { format!("{cpus:.1} CPUs") }
}

/// Bytes in a binary unit that suits them: `512 B`, `98.2 MiB`.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < 5 {
        value /= 1024.0;
        unit += 1;
    }
    let name = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit];
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_command_back() {
        let awkward: [&[u8]; 9] = [
            b"record",
            b"sh",
            b"-c",
            b"sleep 60 & kill $!; echo 'a' \"b\" `c` \\n",
            b"",
            b"a\x1b[m\n\xff'",
            "l\u{f6}ng $x".as_bytes(),
            b"!x",
            b"*",
        ];
        let words: Vec<Vec<u8>> = awkward.iter().map(|word| word.to_vec()).collect();
        let text = shell(&words);
        assert!(text.starts_with("record sh -c 'sleep 60 & kill $!; ") && !text.contains('\x1b'), "{text}");
        let bash = std::process::Command::new("bash").args(["-c", &format!("printf '%s\\0' {text}")]).output().unwrap();
        let back: Vec<&[u8]> = bash.stdout.split(|byte| *byte == 0).take(words.len()).collect();
        assert_eq!(back, awkward, "{text}");
    }

    #[test]
    fn texts() {
        assert_eq!(command(b"sh\0-c\0echo \"a\"\0", true), r#"sh -c "echo \"a\"" """#);
        assert_eq!(command(b"a\x1b[m", false), "\"a\\x1b[m\"...");
        assert_eq!(command("ls\0/tmp/ä".as_bytes(), true), "ls /tmp/ä");
        assert_eq!([span(412_345), span(15_320_000), span(3_200_000_000)], ["0.412 ms", "15.3 ms", "3.20 s"]);
        assert_eq!([span(1_500_000_000_000), span(90_000_000_000_000)], ["25.0 min", "25.0 h"]);
        assert_eq!([bytes(512), bytes(102_961_152)], ["512 B", "98.2 MiB"]);
    }
}
