//! What a terminal can do.

use std::io::IsTerminal;

/// Whether text on `stream` may be moved over and coloured: it is a terminal, and not one that TERM calls dumb.
pub fn takes_escapes(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
