//! Lines of text and how they look, for which a closed pipe is no error; and what the terminal is that they are for, if they are for one.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::fit;

/// Whether `error` means that the reader of our output has closed it (`| head`).
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Begins the colour of a number that is not exact, and ends any.
pub(crate) const INEXACT: &str = "\x1b[36m";
/// End of what [`INEXACT`] begins.
pub const PLAIN: &str = "\x1b[m";

/// Least width that lines are made for: on a narrower terminal they are broken by it.
const NARROWEST: usize = 40;

/// See [`begin_text`].
static COLORED: AtomicBool = AtomicBool::new(false);
/// The same.
static PLAIN_ASCII: AtomicBool = AtomicBool::new(false);
/// Cells of a line on the terminal; 0: there is none, or nothing is known of it.
static CELLS: AtomicUsize = AtomicUsize::new(0);
/// Lines of the terminal; 0: the same.
static ROWS: AtomicUsize = AtomicUsize::new(0);
/// Headings of columns that the terminal had no room for, each once.
static LEFT_OUT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Begins lines of text: in colours if they are `wanted`, or, if nothing is said, where standard output is a terminal, not
/// a dumb one, and NO_COLOR is not set, which is given back; in ASCII where the locale has no other characters; and in the width of the
/// terminal, unless they are to be `wide`. It asks for what is given up before a tape is read.
pub fn begin_text(wanted: Option<bool>, wide: bool) -> bool {
    if let Some((cells, rows)) = size_of(&io::stdout()).filter(|_| !wide) {
        set_size(cells, rows);
    }
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = wanted.unwrap_or_else(|| systape_cli::takes_escapes(&io::stdout()) && !no_color);
    COLORED.store(colored, Ordering::Relaxed);
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    PLAIN_ASCII.store(
        locale.and_then(|locale| locale.into_string().ok()).is_some_and(|name| is_ascii(&name)),
        Ordering::Relaxed,
    );
    colored
}

/// Cells and lines of the terminal behind `stream`; None: it is none, or does not say, and COLUMNS does not either.
#[cfg(unix)]
pub(crate) fn size_of<S: io::IsTerminal + std::os::fd::AsFd>(stream: &S) -> Option<(usize, usize)> {
    if !stream.is_terminal() {
        return None;
    }
    let said = terminal_size::terminal_size_of(stream).map(|(width, height)| (width.0.into(), height.0.into()));
    let variable = |name| std::env::var(name).ok()?.parse().ok();
    said.or_else(|| Some((variable("COLUMNS").filter(|cells| *cells > 0)?, variable("LINES").unwrap_or(0))))
}

/// Cells and lines of a terminal: not known, as only unix has them asked.
#[cfg(not(unix))]
pub(crate) fn size_of<S>(_: &S) -> Option<(usize, usize)> {
    None
}

/// Has lines made for a terminal of that size; 0: it is not known.
#[doc(hidden)]
pub fn set_size(cells: usize, rows: usize) {
    CELLS.store(if cells == 0 { 0 } else { cells.max(NARROWEST) }, Ordering::Relaxed);
    ROWS.store(rows, Ordering::Relaxed);
}

/// Cells of a line; None: lines are as long as they are, for a pipe, a file, or somebody who asked for that.
pub fn room() -> Option<usize> {
    Some(CELLS.load(Ordering::Relaxed)).filter(|cells| *cells > 0)
}

/// Lines of the terminal; None: there is none, or it does not say.
pub fn screen() -> Option<usize> {
    room().and(Some(ROWS.load(Ordering::Relaxed)).filter(|rows| *rows > 0))
}

/// What stands for a part of a value that there is no room for.
pub fn cut_mark() -> &'static str {
    if PLAIN_ASCII.load(Ordering::Relaxed) { "..." } else { "…" }
}

/// `text`, a command to copy, so that a terminal gets it whole on a line of its own.
pub fn command(text: &str) -> Cow<'_, str> {
    match room() {
        Some(_) => Cow::Owned(format!("{}{text}{}", fit::COMMAND, fit::COMMAND_END)),
        None => Cow::Borrowed(text),
    }
}

/// `text`, which is no number, in what is left of a line behind `used` cells.
pub fn within(text: &str, used: usize) -> Cow<'_, str> {
    /// A name of which less is left says nothing.
    const LEAST: usize = 16;
    match room() {
        Some(room) => fit::middle(text, room.saturating_sub(used).max(LEAST), cut_mark()),
        None => Cow::Borrowed(text),
    }
}

/// A rule of `width` dashes behind a blank, no wider than the terminal.
pub fn rule(width: usize) -> String {
    format!(" {}", "-".repeat(room().map_or(width, |room| width.min(room - 1))))
}

/// Stands in a line where the lines begin that it is broken into.
pub fn hang() -> &'static str {
    if room().is_some() { "\u{1}" } else { "" }
}

/// Remembers that the column with this heading was left out for want of room.
pub(crate) fn leave_out(heading: &str) {
    let mut all = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if !heading.is_empty() && !all.iter().any(|there| there == heading) {
        all.push(heading.to_owned());
    }
}

/// The line that says which columns were left out since it was last asked for; None: none were.
pub(crate) fn left_out() -> Option<String> {
    let all = std::mem::take(&mut *LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner));
    let columns = if all.len() == 1 { "column" } else { "columns" };
    let names: Vec<&str> = all.iter().map(|name| name.trim_matches([' ', '|'])).collect();
    (!all.is_empty()).then(|| format!("{} {columns} left out: {} (--wide shows all)", all.len(), names.join(", ")))
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
