//! JSON values: strings of any bytes, and text that is not UTF-8.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;
use systape_abi::plain_json;

/// Appends bytes that need not be UTF-8, in the form of [`bytes`].
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    if std::str::from_utf8(text).is_ok() {
        return lossy_string(out, text);
    }
    out.extend_from_slice(printable(&bytes(text)).as_bytes());
}

/// Bytes that need not be UTF-8 (names, paths, words): a string if they are, else an object with the text, in which
/// `\xNN` stands for each other byte, and all bytes in hex. A string alone could be the name of another file.
pub fn bytes(bytes: &[u8]) -> Value {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // writing to a String never fails
        let _ = write!(hex, "{byte:02x}");
    }
    serde_json::json!({"text": lossless(bytes), "hex": hex})
}

/// A string of JSON; null for none.
pub fn known(text: &[u8]) -> Value {
    if text.is_empty() { Value::Null } else { bytes(text) }
}

/// A value as JSON that acts on no terminal.
pub fn printable(value: &Value) -> String {
    plain_json(&value.to_string()).into_owned()
}

/// Appends `text` as a JSON string, always; see [`lossless`].
pub(crate) fn lossy_string(out: &mut Vec<u8>, text: &[u8]) {
    if text.iter().all(|b| (0x20..0x7f).contains(b) && *b != b'"' && *b != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text);
        return out.push(b'"');
    }
    // a string always serializes
    let json = serde_json::to_string(&*lossless(text)).unwrap_or_default();
    out.extend_from_slice(plain_json(&json).as_bytes());
}

/// Bytes as text: those that are not UTF-8 become `\xNN`. Another name may look the same, so the bytes must stand
/// beside it.
pub fn lossless(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = std::fmt::Write::write_fmt(&mut out, format_args!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_look_the_same() {
        let text = |name: &[u8]| {
            let mut out = Vec::new();
            string(&mut out, name);
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), bytes(name));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(b"/x/amb_\xff"), r#"{"hex":"2f782f616d625fff","text":"/x/amb_\\xff"}"#);
        assert_eq!(text(br"/x/amb_\xff"), r#""/x/amb_\\xff""#);
        assert_eq!(text("a\u{e9}\n\u{fffd}".as_bytes()), "\"a\u{e9}\\n\u{fffd}\"");
        assert_eq!((known(b""), known(b"a")), (Value::Null, "a".into()));
    }
}
