//! Text of tapes: made visible as everywhere, cut, and escaped for data in a script element.

use std::fmt::Write as _;

use serde_json::Value;
use systape_abi::plain;

/// Most characters of a text on the page; the rest is only counted.
pub(super) const LONGEST: usize = 400;

/// `text` with what is not seen as `\x1b`, cut after [`LONGEST`] characters.
pub(super) fn visible(text: &str) -> String {
    cut(text, LONGEST)
}

/// Text that is cut after `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return plain(text).into_owned() };
    format!("{}… ({} more characters)", plain(&text[..end]), text[end..].chars().count())
}

/// `value` as it can stand in a script element: no text in it ends the element, begins a comment or is a line's end.
pub(super) fn json(value: &Value) -> String {
    let text = value.to_string();
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // none of them stands outside of strings
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(safe, "\\u{:04x}", u32::from(c)),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_shown() {
        assert_eq!(visible("a\x1b[m\u{202e}b\u{200b}\n"), r"a\x1b[m\xe2\x80\xaeb\xe2\x80\x8b\n");
        assert_eq!(visible("ä → \u{1f600}"), "ä → \u{1f600}");
        assert_eq!(cut("abcdef", 2), "ab… (4 more characters)");
        assert_eq!(cut("ab", 2), "ab");
    }

    #[test]
    fn data_does_not_end_its_element() {
        let value = Value::from("</script><!--\u{2028}&\"\\");
        let safe = json(&value);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), value);
    }
}
