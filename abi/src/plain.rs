//! Words of others on their way to a terminal, a journal or a line of JSON: the one place that makes them harmless.
//!
//! [`plain`] is for a whole message, whose own signs stay as they are; [`escape`](crate::escape) is for one word that
//! must be read back unambiguously. Both take [`is_unsafe`] for the rule.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::value::{hex_bytes, is_unsafe};

/// Text on one line that a terminal shows and does not obey: ends of lines, control characters and invisible ones become
/// `\n`, `\t`, `\r` or a `\xNN` for each byte; all else stays, also a backslash. What it returns it leaves alone.
///
/// ```
/// assert_eq!(systape_abi::plain("a\x1b[31m\n\"\\"), r#"a\x1b[31m\n"\"#);
/// assert_eq!(systape_abi::plain("日本"), "日本");
/// ```
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_unsafe(c) => hex_bytes(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// JSON of the same value that a terminal shows and does not obey: what JSON lets stand in strings and a terminal obeys
/// or hides (DEL, C1, bidirectional marks) becomes `\uNNNN`. Only for JSON without line ends between its values.
///
/// ```
/// assert_eq!(systape_abi::plain_json("[\"\u{202e}\u{7f}\"]"), r#"["\u202e\u007f"]"#);
/// ```
pub fn plain_json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // writing to a String never fails
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_message_has_nothing_that_acts(text: String) {
            let shown = plain(&text);
            proptest::prop_assert!(!shown.contains(is_unsafe));
            proptest::prop_assert_eq!(plain(&shown), shown.as_ref());
        }
    }

    #[test]
    fn what_acts_is_shown() {
        assert_eq!(plain("a\0b\r\u{202e}\u{9b}"), r"a\x00b\r\xe2\x80\xae\xc2\x9b");
        assert!(matches!(plain("--usdt 'a\\b'"), Cow::Borrowed(_)));
        assert_eq!(plain_json("\"\u{e0041}\u{9b}x\""), r#""\udb40\udc41\u009bx""#);
    }
}
