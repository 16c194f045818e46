//! One line of `analyze --format json`.

use serde_json::Value;

/// A recorded call, as JSON.
#[derive(Clone, Debug)]
pub struct Call(pub Value);

impl Call {
    /// Name of the syscall.
    pub fn name(&self) -> &str {
        self.0["syscall"].as_str().expect("syscall")
    }

    /// Process id.
    pub fn pid(&self) -> i64 {
        self.0["pid"].as_i64().expect("pid")
    }

    /// Thread id.
    pub fn tid(&self) -> i64 {
        self.0["tid"].as_i64().expect("tid")
    }

    /// Name of the thread.
    pub fn comm(&self) -> &str {
        self.0["comm"].as_str().expect("comm")
    }

    /// Start, ns since the tape's start.
    pub fn ts(&self) -> i64 {
        self.0["ts_ns"].as_i64().expect("ts_ns")
    }

    /// Duration, when there is one.
    pub fn dur(&self) -> Option<i64> {
        self.0["dur_ns"].as_i64()
    }

    /// Return value as a number, whatever its form; `None` without one.
    pub fn ret(&self) -> Option<i64> {
        match &self.0["ret"] {
            Value::Null => None,
            Value::String(text) => Some(number(text)),
            ret => Some(ret.as_i64().expect("ret")),
        }
    }

    /// Name of the error.
    pub fn errno(&self) -> Option<&str> {
        self.0["errno"].as_str()
    }

    /// Why the call is incomplete.
    pub fn incomplete(&self) -> Option<&str> {
        self.0["incomplete"].as_str()
    }

    /// An argument; fails when there is none of that name.
    #[track_caller]
    pub fn arg(&self, name: &str) -> &Value {
        self.0["args"].get(name).unwrap_or_else(|| panic!("no argument {name}: {}", self.0))
    }

    /// An argument as a number: of plain numbers, addresses, descriptors and flags.
    #[track_caller]
    pub fn num(&self, name: &str) -> i64 {
        let arg = self.arg(name);
        let plain = arg.get("value").or_else(|| arg.get("fd")).unwrap_or(arg);
        match plain {
            Value::String(text) => number(text),
            other => other.as_i64().unwrap_or_else(|| panic!("{name} is no number: {}", self.0)),
        }
    }

    /// An argument as text: of strings, flags and partial strings.
    #[track_caller]
    pub fn text(&self, name: &str) -> &str {
        let arg = self.arg(name);
        let text = arg.get("text").unwrap_or(arg);
        text.as_str().unwrap_or_else(|| panic!("{name} is no text: {}", self.0))
    }

    /// Path of a descriptor argument, `None` when unknown; fails when the argument is no descriptor.
    #[track_caller]
    pub fn fd_path(&self, name: &str) -> Option<&str> {
        let arg = self.arg(name);
        assert!(arg["fd"].is_i64(), "{name} is no descriptor: {}", self.0);
        arg["path"].as_str()
    }

    /// Bytes of a string argument, captured whole or not; `None`: nothing captured.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let arg = self.0["args"].get(name)?;
        match arg.get("hex").and_then(Value::as_str) {
            Some(hex) => Some(from_hex(hex)),
            None => arg.as_str().map(|s| s.as_bytes().to_vec()),
        }
    }
}

/// Bytes of pairs of hex digits.
///
/// # Panics
/// When they are none.
#[must_use]
pub fn from_hex(digits: &str) -> Vec<u8> {
    let pair = |p: &[u8]| u8::from_str_radix(str::from_utf8(p).expect("hex"), 16).expect("hex");
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// A decimal or 0x number as analyze prints it; unsigned ones above `i64::MAX` wrap.
fn number(text: &str) -> i64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).map(u64::cast_signed),
        None => text.parse().or_else(|_| text.parse::<u64>().map(u64::cast_signed)),
    };
    parsed.unwrap_or_else(|_| panic!("no number: {text}"))
}
