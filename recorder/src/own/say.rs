//! Messages on standard error, a line each. A closed or full one is no reason to fail: `eprintln!` would panic.
//!
//! Names of files, programs, probes and hosts are other users' words: all goes through [`plain`], wherever it came from.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

use systape_abi::{is_unsafe, plain};

/// Prints one line with our prefix.
pub fn say(what: impl Display) {
    line_to(&mut std::io::stderr(), what);
}

fn line_to(out: &mut impl Write, what: impl Display) {
    // in one write: lines of several threads do not mix
    out.write_all(format!("record: {}\n", plain(&what.to_string())).as_bytes()).ok();
}

/// A word or a file as it can be typed into a shell.
pub fn quoted(word: impl AsRef<Path>) -> String {
    let text = word.as_ref().to_string_lossy().into_owned();
    let printable = text.replace(is_unsafe, "?");
    shlex::try_quote(&printable).map_or_else(|_| printable.clone(), |quoted| quoted.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_line_that_acts_on_no_terminal() {
        let mut out = Vec::new();
        line_to(&mut out, format_args!("--usdt prov\x1b[31m:name\nevil\r\0\u{202e}{}", "y".repeat(4096)));
        let text = String::from_utf8(out).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert!(line.starts_with("record: --usdt prov\\x1b[31m:name\\nevil\\r\\x00\\xe2\\x80\\xaeyyy"), "{line:?}");
        assert!(!line.contains(is_unsafe));
    }
}
