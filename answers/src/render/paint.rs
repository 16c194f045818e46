//! Colours of cells on a terminal: errors, slow calls, numbers that are not exact. Elsewhere cells are only filled to their width, which
//! comes first: what gives a terminal its colours has no width.

use crate::values::output::{self, INEXACT, PLAIN};

/// Of times from 0.01 ms on.
const YELLOW: &str = "\x1b[33m";
/// Colour of times from 1 ms on, of errors and losses.
pub(crate) const RED: &str = "\x1b[31m";

/// The colour of a duration of `ns`; empty: none.
pub fn of_time(ns: u64, exact: bool) -> &'static str {
    match ns {
        1_000_000.. => RED,
        10_000.. => YELLOW,
        _ if !exact => INEXACT,
        _ => "",
    }
}

/// `text` in `color` if `colored`.
fn with(color: &str, text: String, colored: bool) -> String {
    if !colored || color.is_empty() || text.trim().is_empty() { text } else { format!("{color}{text}{PLAIN}") }
}

/// The `text` of an error or a loss, filled to its width.
pub fn error(text: String) -> String {
    with(RED, text, output::colored())
}

/// The `text` of a duration of `ns`, filled before up to `width` characters; None: it is not known.
pub fn time(text: &str, width: usize, ns: Option<u64>) -> String {
    let color = ns.map_or("", |ns| of_time(ns, !text.starts_with(['>', '<', '~'])));
    with(color, format!("{text:>width$}"), output::colored())
}

/// The `text` of a number, which may have a mark before it, filled before up to `width` characters.
pub fn number(text: &str, width: usize) -> String {
    let exact = !text.starts_with(['>', '<', '~']);
    with(if exact { "" } else { INEXACT }, format!("{text:>width$}"), output::colored())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_no_width() {
        assert_eq!([9_999, 10_000, 999_999, 1_000_000].map(|ns| of_time(ns, true)), ["", YELLOW, YELLOW, RED]);
        assert_eq!((of_time(0, false), of_time(1_000_000, false)), (INEXACT, RED));
        assert_eq!(with(RED, format!("{:>4}", "x"), true), "\x1b[31m   x\x1b[m");
        assert_eq!(with(RED, "    ".into(), true), "    ", "nothing is not coloured");
        assert_eq!(
            (error("EIO  ".into()), time("1.250", 7, Some(1_250_000)), number(">=3", 4)),
            ("EIO  ".into(), "  1.250".into(), " >=3".into()),
            "no terminal"
        );
    }
}
