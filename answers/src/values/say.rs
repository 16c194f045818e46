//! Messages to the user, and results of a report besides its output.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use systape_abi::plain;

use super::fit::{COMMAND, COMMAND_END, LineRoom};
use super::output;

/// Number of rows of an answer, to explain an empty one.
#[derive(Clone, Debug, Default)]
pub struct Shown(Arc<AtomicU64>);

impl Shown {
    /// The answer has `more` rows; 0 only marks that rows are counted.
    pub fn rows(&self, more: usize) {
        // one more than there are, so that 0 is: not counted
        let more = |rows: u64| Some(rows.max(1).saturating_add(more as u64));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// The answer says itself why it has no rows.
    pub fn explained(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether rows were counted, and there were none.
    pub fn nothing(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 1
    }
}

/// Results of a report besides its output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// A loss could change the answer.
    pub lost: bool,
    /// The report's own answer is negative: a tape that is not sound.
    pub bad: bool,
}

impl Verdict {
    /// Adds a doubt; `doubts`: something of the answer is not known because of what may be missing elsewhere.
    pub fn doubted(self, doubts: bool) -> Self {
        Self { lost: self.lost || doubts, ..self }
    }

    /// That of two answers together.
    pub fn and(self, other: Self) -> Self {
        Self { lost: self.lost || other.lost, bad: self.bad || other.bad }
    }
}

/// Prints a message that is not part of an answer; a closed stderr is no error.
pub fn complain(text: &str) {
    crate::values::progress::end();
    // paths, names and what a tape says are others' words
    let text = format!("analyze: {}\n", plain(text));
    let _ = std::io::stderr().write_all(fitting(&text).as_bytes());
}

/// `text` for the terminal on standard error, if it is one: broken at words; names are whole, so that they can be copied.
fn fitting(text: &str) -> Cow<'_, str> {
    let Some((cells, _)) = output::size_of(&std::io::stderr()) else { return Cow::Borrowed(text) };
    let mut fit = String::new();
    for line in text.lines() {
        // what is to be typed next is whole
        let line = match line.rsplit_once(": analyze ") {
            Some((before, typed)) => &format!("{before}:   {COMMAND}analyze {typed}{COMMAND_END}"),
            None => line,
        };
        LineRoom { cells, mark: "", dim: ("", "") }.fit(line, &mut fit);
    }
    Cow::Owned(fit)
}
