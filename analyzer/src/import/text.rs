//! Texts as strace quotes them: strings, and the files of descriptors.

/// A string as it was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedString {
    /// Bytes of the string.
    pub bytes: Vec<u8>,
    /// Whether it is whole: no `...` follows.
    pub whole: bool,
}

/// Reads `"text"`, with `...` behind it if it was cut; None: it is none.
pub(super) fn string(token: &[u8]) -> Option<PrintedString> {
    let (token, whole) = match token.strip_suffix(b"...") {
        Some(token) => (token, false),
        None => (token, true),
    };
    let inner = token.strip_prefix(b"\"")?;
    let end = end_of_string(inner)?;
    (end + 1 == inner.len()).then(|| PrintedString { bytes: unescaped(&inner[..end]), whole })
}

/// Where the quote is that ends the string whose inside `text` begins with.
pub(super) fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The bytes that escapes of C stand for: letters, `\x41`, up to three octal digits. A lone backslash stays.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = after;
            continue;
        }
        let (value, length) = match after.first() {
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b'r') => (b'\r', 1),
            Some(b'v') => (0x0b, 1),
            Some(b'f') => (0x0c, 1),
            Some(b'a') => (7, 1),
            Some(b'b') => (8, 1),
            Some(b'e') => (0x1b, 1),
            Some(b'0'..=b'7') => {
                let digits = after.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                let octal = |value: u32, digit: &u8| value * 8 + u32::from(digit - b'0');
                // of \777 the low byte, as C takes it
                (after[..digits].iter().fold(0, octal) as u8, digits)
            }
            Some(b'x') => {
                let digits = after[1..].iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let hex = |value: u32, digit: &u8| value * 16 + char::from(*digit).to_digit(16).unwrap_or(0);
                match digits {
                    0 => (b'x', 1),
                    _ => (after[1..=digits].iter().fold(0, hex) as u8, digits + 1),
                }
            }
            Some(&other) => (other, 1),
            None => (b'\\', 0),
        };
        out.push(value);
        rest = &after[length..];
    }
    out
}

/// Splits a number and the `<file>` of `-y` behind it: `3</etc/passwd>`, `AT_FDCWD</tmp>`, `1</dev/null<char 1:3>>`.
pub(super) fn with_file(token: &[u8]) -> (&[u8], Option<Vec<u8>>) {
    let Some(open) = token.iter().position(|byte| *byte == b'<') else { return (token, None) };
    // newer ones say it behind the file
    let text = token.strip_suffix(b"(deleted)").unwrap_or(token);
    match text.strip_suffix(b">") {
        Some(inner) if open < inner.len() => (&token[..open], Some(file(&inner[open + 1..]))),
        _ => (&token[..open], None),
    }
}

/// The name of a file as a tape has it: without the device of `-yy`.
fn file(name: &[u8]) -> Vec<u8> {
    let device = |kind: &[u8]| {
        let at = name.windows(kind.len()).rposition(|part| part == kind)?;
        name.ends_with(b">").then_some(at)
    };
    let end = device(b"<char ").or_else(|| device(b"<block ")).unwrap_or(name.len());
    // a tape quotes the path in the name of a UNIX socket as strace does
    if name.starts_with(b"UNIX") {
        return name[..end].to_vec();
    }
    // letters that would end the name are written by their numbers
    unescaped(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(token: &[u8]) -> Option<(Vec<u8>, bool)> {
        string(token).map(|string| (string.bytes, string.whole))
    }

    #[test]
    fn strings_are_read_in_each_of_their_forms() {
        assert_eq!(bytes(b"\"a b\\n\""), Some((b"a b\n".to_vec(), true)));
        assert_eq!(bytes(b"\"\\177ELF\\2\\1\\0\"..."), Some((b"\x7fELF\x02\x01\0".to_vec(), false)));
        assert_eq!(bytes(b"\"\\x41\\x0a\\\"\\\\\""), Some((b"A\n\"\\".to_vec(), true)));
        assert_eq!(bytes(b"\"\\0011\""), Some((b"\x011".to_vec(), true)));
        assert_eq!(bytes(b"\"\\303\\244\""), Some(("\u{e4}".into(), true)));
        assert_eq!(bytes(b"\"\""), Some((Vec::new(), true)));
        for none in [&b"\"a"[..], b"a\"", b"NULL", b"\"a\"b", b"\"\\", b"\"a\\\""] {
            assert_eq!(bytes(none), None, "{}", String::from_utf8_lossy(none));
        }
    }

    #[test]
    fn files_of_descriptors_are_those_of_a_tape() {
        let with = |token: &str| {
            let (number, file) = with_file(token.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(number), file.map(|file| text(&file)))
        };
        let named = |number: &str, file: &str| (number.to_owned(), Some(file.to_owned()));
        assert_eq!(with("3</etc/a b>"), named("3", "/etc/a b"));
        assert_eq!(with("AT_FDCWD</tmp>"), named("AT_FDCWD", "/tmp"));
        assert_eq!(with("1</dev/null<char 1:3>>"), named("1", "/dev/null"));
        assert_eq!(with("4<TCP:[1.1.1.1:1->2.2.2.2:2]>"), named("4", "TCP:[1.1.1.1:1->2.2.2.2:2]"));
        assert_eq!(with("5<UNIX-STREAM:[7->8,\"/run/x\"]>"), named("5", "UNIX-STREAM:[7->8,\"/run/x\"]"));
        assert_eq!(with("6</a\\76b>(deleted)"), named("6", "/a>b"));
        assert_eq!(with("7<pipe:[4]>"), named("7", "pipe:[4]"));
        assert_eq!((with("8"), with("8<x")), (("8".to_owned(), None), ("8".to_owned(), None)));
    }
}
