//! What `analyze` prints on a terminal of a given width.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

use super::Place;

/// A terminal.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Cells of a line; 0: the terminal does not say.
    pub cells: u16,
    /// Lines; 0: it does not say.
    pub rows: u16,
    /// TERM.
    pub term: &'static str,
    /// NO_COLOR; empty: it is not set.
    pub no_color: &'static str,
    /// LC_ALL.
    pub locale: &'static str,
    /// Standard error is that terminal too; else nobody sees it.
    pub errors: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        Self { cells: 0, rows: 500, term: "dumb", no_color: "", locale: "C.UTF-8", errors: false }
    }
}

impl Terminal {
    /// One without colours, so wide.
    pub fn of(cells: u16) -> Self {
        Self { cells, ..Self::default() }
    }

    /// The exit status, and what the terminal shows of `analyze` with `words`.
    pub fn analyze(self, place: &Place, words: &[String]) -> (i32, String) {
        let (mut ours, mut theirs) = (0, 0);
        let size = libc::winsize { ws_row: self.rows, ws_col: self.cells, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: two valid places for descriptors, and a size that lives for the call; no name and no settings.
        let made = unsafe { libc::openpty(&mut ours, &mut theirs, null_mut(), null(), &size) };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: openpty made both, and nobody else has them.
        let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("analyze"));
        command.args(words).current_dir(place.path("")).stdin(Stdio::null()).stderr(Stdio::null());
        command.env("NO_COLOR", self.no_color).env("TERM", self.term).env("LC_ALL", self.locale);
        command.env_remove("COLUMNS").env_remove("LINES");
        if self.errors {
            command.stderr(theirs.try_clone().unwrap());
        }
        let mut child = command.stdout(theirs).spawn().unwrap();
        // its side is closed with it: then reading ends with EIO
        drop(command);
        let mut text = Vec::new();
        let _ = ours.read_to_end(&mut text);
        let status = child.wait().unwrap().code().unwrap_or(-1);
        (status, String::from_utf8(text).unwrap().replace("\r\n", "\n"))
    }
}

/// The words of a command line; `'` quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (nth, part) in line.split('\'').enumerate() {
        match nth % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}
