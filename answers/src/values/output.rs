//! Lines of text and how they look, for which a closed pipe is no error.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether `error` means that the reader of our output has closed it (`| head`).
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Begins the colour of a number that is not exact, and ends any.
pub(crate) const INEXACT: &str = "\x1b[36m";
/// End of what [`INEXACT`] begins.
pub const PLAIN: &str = "\x1b[m";

/// See [`begin_text`].
static COLORED: AtomicBool = AtomicBool::new(false);
/// The same.
static PLAIN_ASCII: AtomicBool = AtomicBool::new(false);

/// Begins lines of text: in colours if they are `wanted`, or, if nothing is said, where standard output is a terminal, not
/// a dumb one, and NO_COLOR is not set, which is given back; in ASCII where the locale has no other characters.
/// It asks for what is given up before a tape is read.
pub fn begin_text(wanted: Option<bool>) -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = wanted.unwrap_or_else(|| io::stdout().is_terminal() && !dumb && !no_color);
    COLORED.store(colored, Ordering::Relaxed);
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    PLAIN_ASCII.store(
        locale.and_then(|locale| locale.into_string().ok()).is_some_and(|name| is_ascii(&name)),
        Ordering::Relaxed,
    );
    colored
}

/// Whether a locale of that name has ASCII alone.
fn is_ascii(locale: &str) -> bool {
    ["C", "POSIX"].contains(&locale)
}

/// `text` without the characters beyond ASCII that reports draw with; names of others stay as they are.
fn in_ascii(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '–' | '—' | '−' => all.push('-'),
            '→' => all.push_str("->"),
            '…' => all.push_str("..."),
            'µ' | 'μ' => all.push('u'),
            '×' => all.push('x'),
            '≥' => all.push_str(">="),
            '≤' => all.push_str("<="),
            '▁' | '▂' => all.push('.'),
            '▃' | '▄' => all.push(':'),
            '▅' | '▆' => all.push('+'),
            '▇' | '█' => all.push('#'),
            other => all.push(other),
        }
    }
    all
}

/// Whether text is written to a terminal that takes colours.
pub fn colored() -> bool {
    COLORED.load(Ordering::Relaxed)
}

/// Writes one line of text and its newline.
///
/// # Errors
/// It cannot be written.
pub fn line(out: &mut impl Write, text: &str) -> io::Result<()> {
    lines(out, text)?;
    out.write_all(b"\n")
}

/// Writes lines of text; on a terminal numbers that are not exact stand out.
///
/// # Errors
/// They cannot be written.
pub fn lines(out: &mut impl Write, text: &str) -> io::Result<()> {
    let ascii = (PLAIN_ASCII.load(Ordering::Relaxed) && !text.is_ascii()).then(|| in_ascii(text));
    let text = ascii.as_deref().unwrap_or(text);
    if colored() { out.write_all(painted(text).as_bytes()) } else { out.write_all(text.as_bytes()) }
}

/// `text` with colour around numbers that have a mark of [`crate::render::mark`] before them.
fn painted(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for word in text.split_inclusive([' ', '\n', '\t', '(', ',', ';']) {
        let number = word.trim_start_matches(['>', '<', '=', '~']);
        let mark = &word[..word.len() - number.len()];
        let digits = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        if [">=", "<=", "~"].contains(&mark) && digits > 0 {
            let (bound, rest) = word.split_at(mark.len() + digits);
            all.extend([INEXACT, bound, PLAIN, rest]);
        } else {
            all.push_str(word);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_without_characters_gets_ascii() {
        assert_eq!(in_ascii("1–2 s ▁█▄ a → b …"), "1-2 s .#: a -> b ...");
        assert_eq!(in_ascii("/tmp/ü"), "/tmp/ü");
        assert_eq!(
            (is_ascii("C"), is_ascii("POSIX"), is_ascii("C.UTF-8"), is_ascii("de_DE.UTF-8")),
            (true, true, false, false)
        );
    }

    #[test]
    fn numbers_that_are_not_exact_stand_out() {
        assert_eq!(painted("  >=12.5%  a"), "  \x1b[36m>=12.5\x1b[m%  a");
        assert_eq!(painted("(<=3 ms), ~7"), "(\x1b[36m<=3\x1b[m ms), \x1b[36m~7\x1b[m");
        for plain in ["12.5 ms", "operator>=(x) ~/x >= 5", "=>5 >>=6", "", "\n"] {
            assert_eq!(painted(plain), plain);
        }
    }
}
