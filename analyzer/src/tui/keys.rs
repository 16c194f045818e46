//! Keys of a terminal: from the bytes that it sends to what was pressed. Plain values, so that tests need no terminal.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermKey {
    /// A character.
    Char(char),
    /// Ctrl and this letter.
    Ctrl(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    F1,
}

/// The key at the beginning of `bytes`, and how many of them it takes; no key: bytes that mean nothing here. None: they may be the
/// beginning of a longer one. `last`: no more bytes came in time, so that an escape is the key Escape.
pub(super) fn key(bytes: &[u8], last: bool) -> Option<(Option<TermKey>, usize)> {
    let one = |key| Some((Some(key), 1));
    match *bytes.first()? {
        b'\r' | b'\n' => one(TermKey::Enter),
        b'\t' => one(TermKey::Tab),
        0x7f | 8 => one(TermKey::Backspace),
        0x1b => escape(bytes, last),
        byte @ 1..=26 => one(TermKey::Ctrl(char::from(byte - 1 + b'a'))),
        byte if byte < b' ' => Some((None, 1)),
        byte => letter(byte, bytes, last),
    }
}

fn escape(bytes: &[u8], last: bool) -> Option<(Option<TermKey>, usize)> {
    match bytes.get(1) {
        None if last => Some((Some(TermKey::Esc), 1)),
        None => None,
        Some(b'[') if bytes.get(2) == Some(&b'[') => match bytes.get(3) {
            // the console's F1 to F5
            Some(byte) => Some(((*byte == b'A').then_some(TermKey::F1), 4)),
            None => last.then_some((None, 3)),
        },
        Some(b'[') => {
            let Some(at) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
                return (last || bytes.len() > 16).then_some((None, bytes.len()));
            };
            Some((sequence(&bytes[2..2 + at], bytes[2 + at]), at + 3))
        }
        Some(b'O') => match bytes.get(2) {
            Some(b'P') => Some((Some(TermKey::F1), 3)),
            Some(byte) => Some((sequence(b"", *byte), 3)),
            None => last.then_some((None, 2)),
        },
        Some(0x1b) => Some((Some(TermKey::Esc), 1)),
        // Alt and a key
        Some(_) => Some((None, 2)),
    }
}

/// The key of a control sequence.
fn sequence(parameters: &[u8], end: u8) -> Option<TermKey> {
    Some(match (parameters.split(|byte| *byte == b';').next().unwrap_or_default(), end) {
        (_, b'A') => TermKey::Up,
        (_, b'B') => TermKey::Down,
        (_, b'C') => TermKey::Right,
        (_, b'D') => TermKey::Left,
        (_, b'H') | (b"1" | b"7", b'~') => TermKey::Home,
        (_, b'F') | (b"4" | b"8", b'~') => TermKey::End,
        (_, b'Z') => TermKey::BackTab,
        (b"5", b'~') => TermKey::PageUp,
        (b"6", b'~') => TermKey::PageDown,
        (b"11", b'~') => TermKey::F1,
        _ => return None,
    })
}

fn letter(first: u8, bytes: &[u8], last: bool) -> Option<(Option<TermKey>, usize)> {
    let length = match first {
        ..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => return Some((None, 1)),
    };
    let Some(whole) = bytes.get(..length) else { return last.then_some((None, bytes.len())) };
    Some((std::str::from_utf8(whole).ok().and_then(|text| text.chars().next()).map(TermKey::Char), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys() {
        for (bytes, wanted) in [
            (&b"\x1b[A"[..], TermKey::Up),
            (b"\x1bOB", TermKey::Down),
            (b"\x1b[5~", TermKey::PageUp),
            (b"\x1b[1;5C", TermKey::Right),
            (b"\x1bOP", TermKey::F1),
            (b"\x1b[[A", TermKey::F1),
            (b"\x1b[1~", TermKey::Home),
            (b"\x1b[Z", TermKey::BackTab),
            ("ü".as_bytes(), TermKey::Char('ü')),
            (b"\x03", TermKey::Ctrl('c')),
            (b"\r", TermKey::Enter),
        ] {
            assert_eq!(key(bytes, false), Some((Some(wanted), bytes.len())), "{bytes:?}");
            // it may come in two pieces
            for cut in 1..bytes.len() {
                assert_eq!(key(&bytes[..cut], false), None, "{bytes:?} {cut}");
            }
        }
        assert_eq!(key(b"\x1b", false), None);
        assert_eq!(key(b"\x1b", true), Some((Some(TermKey::Esc), 1)));
        assert_eq!(key(b"\x1bx", false), Some((None, 2)));
    }

    #[test]
    fn every_byte_is_taken_at_last() {
        for first in 0..=255_u8 {
            for rest in [&b""[..], b"[", b"[[", b"O", b"[1;"] {
                let bytes = [&[first], rest].concat();
                let (_, taken) = key(&bytes, true).unwrap();
                assert!(taken >= 1 && taken <= bytes.len(), "{bytes:?}");
            }
        }
    }
}
