//! JSON as it is written, member by member: a profile is never in memory as text.

use std::io::{Result, Write};

use serde_json::Value;

/// An object that is being written.
#[derive(Debug)]
pub(super) struct JsonObject<'w, W: Write> {
    out: &'w mut W,
    first: bool,
}

impl<'w, W: Write> JsonObject<'w, W> {
    /// Begins one.
    pub(super) fn begin(out: &'w mut W) -> Result<Self> {
        out.write_all(b"{")?;
        Ok(Self { out, first: true })
    }

    /// Begins a member: its value is what is written next.
    fn member(&mut self, key: &str) -> Result<&mut W> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",")?;
        }
        write!(self.out, "\"{key}\":")?;
        Ok(self.out)
    }

    /// A member with a value.
    pub(super) fn value(&mut self, key: &str, value: &Value) -> Result<()> {
        Ok(serde_json::to_writer(self.member(key)?, value)?)
    }

    /// A member that is an object.
    pub(super) fn object(&mut self, key: &str) -> Result<JsonObject<'_, W>> {
        JsonObject::begin(self.member(key)?)
    }

    /// A member that is a list, of which `write` writes each value.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut W, T) -> Result<()>,
    ) -> Result<()> {
        let out = self.member(key)?;
        out.write_all(b"[")?;
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            write(out, value)?;
        }
        out.write_all(b"]")
    }

    /// A member that is a list of numbers; None: null.
    pub(super) fn numbers(&mut self, key: &str, numbers: impl IntoIterator<Item = Option<u32>>) -> Result<()> {
        self.list(key, numbers, |out, number| match number {
            Some(number) => write!(out, "{number}"),
            None => out.write_all(b"null"),
        })
    }

    /// A member that is a list of the same value, `length` times.
    pub(super) fn same(&mut self, key: &str, value: &str, length: usize) -> Result<()> {
        self.list(key, 0..length, |out, _| out.write_all(value.as_bytes()))
    }

    /// Ends it.
    pub(super) fn end(self) -> Result<()> {
        self.out.write_all(b"}")
    }
}

/// Writes text.
pub(super) fn text(out: &mut impl Write, text: &[u8]) -> Result<()> {
    Ok(serde_json::to_writer(out, &String::from_utf8_lossy(text))?)
}

/// Writes `ns` in milliseconds, exactly.
pub(super) fn millis(out: &mut impl Write, ns: u64) -> Result<()> {
    let (whole, mut rest, mut digits) = (ns / 1_000_000, ns % 1_000_000, 6);
    if rest == 0 {
        return write!(out, "{whole}");
    }
    while rest.is_multiple_of(10) {
        rest /= 10;
        digits -= 1;
    }
    write!(out, "{whole}.{rest:0digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_json() {
        let mut out = Vec::new();
        let mut object = JsonObject::begin(&mut out).unwrap();
        object.value("a", &serde_json::json!({"b": "\u{1b}\""})).unwrap();
        let mut inner = object.object("table").unwrap();
        inner.numbers("frame", [Some(1), None]).unwrap();
        inner.same("line", "null", 2).unwrap();
        inner.end().unwrap();
        object.list("texts", [b"x\xff".as_slice(), b""], text).unwrap();
        object.end().unwrap();
        let read: Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "a": {"b": "\u{1b}\""}, "table": {"frame": [1, null], "line": [null, null]}, "texts": ["x\u{fffd}", ""]
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn milliseconds_are_exact() {
        let of = |ns| {
            let mut out = Vec::new();
            millis(&mut out, ns).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!([0, 1, 1_000_000, 1_200_000, 12_000_345].map(of), ["0", "0.000001", "1", "1.2", "12.000345"]);
        assert_eq!(of(u64::MAX), "18446744073709.551615");
    }
}
