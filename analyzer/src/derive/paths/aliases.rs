//! What else a file was called before: names change when it, or a directory above it, is renamed, and a link is one more.

use std::sync::Arc;

use systape_format::model::CallState;

use crate::table::load::Loaded;

/// Most changes that are kept; of older ones it is not known what they did.
const KEPT: usize = 1 << 20;

/// What a call does to names of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// `unlink`, `rmdir`: the name is gone.
    Removes,
    /// `rename`: what the first path named has the second.
    Moves,
    /// `renameat2` with RENAME_EXCHANGE: each has the other's.
    Swaps,
    /// `link`: the first has the second too.
    Links,
}

impl Change {
    /// Whether calls of this name change names.
    pub(crate) fn of_name(call: &str) -> Option<Self> {
        Some(match call {
            "unlink" | "unlinkat" | "rmdir" => Self::Removes,
            "rename" | "renameat" | "renameat2" => Self::Moves,
            "link" | "linkat" => Self::Links,
            _ => return None,
        })
    }

    /// What the call of `row` is for.
    pub(crate) fn of(segment: &Loaded, row: usize) -> Option<Self> {
        const RENAME_EXCHANGE: u64 = 2;
        let name = segment.call(row).name.as_str();
        let flags = segment.args.args.get(row).and_then(|args| args.get(4).copied()).unwrap_or(0);
        match Self::of_name(name)? {
            Self::Moves if name == "renameat2" && flags & RENAME_EXCHANGE != 0 => Some(Self::Swaps),
            change => Some(change),
        }
    }

    /// Whether the call of `row` did it.
    pub(crate) fn is_done(segment: &Loaded, row: usize) -> bool {
        let ended = matches!(
            segment.core.state[row],
            CallState::Complete | CallState::BeganBefore | CallState::LostEnter | CallState::Killed
        );
        ended && segment.core.errno[row] == 0 && segment.core.state[row] != CallState::Killed
    }
}

/// A change of names; without a second name of `first` alone.
#[derive(Debug)]
struct Changed {
    change: Change,
    first: Arc<[u8]>,
    second: Arc<[u8]>,
}

/// What calls did to names so far, in order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    changes: Vec<Changed>,
    /// A name was given: before that what is removed was called nothing else.
    gave: bool,
}

impl Aliases {
    /// A call did this; its paths, as far as they are known.
    pub(crate) fn changed(&mut self, change: Change, first: &[u8], second: Option<&[u8]>) {
        self.gave |= change != Change::Removes;
        if !self.gave {
            return;
        }
        if self.changes.len() == KEPT {
            self.changes.clear();
        }
        self.changes.push(Changed { change, first: first.into(), second: second.unwrap_or_default().into() });
    }

    /// Passes every name to `found` that what `path` names now had before.
    pub(crate) fn before(&self, path: &[u8], mut found: impl FnMut(&[u8])) {
        let mut path = path.to_vec();
        for Changed { change, first, second } in self.changes.iter().rev() {
            let moved = |from: &[u8], to: &[u8]| below(&path, to).map(|rest| [from, rest].concat());
            let earlier = match change {
                // what is there now came later
                Change::Removes if below(&path, first).is_some() => return,
                Change::Removes => None,
                Change::Links => moved(first, second).filter(|_| path.len() == second.len()),
                Change::Swaps => moved(first, second).or_else(|| moved(second, first)),
                Change::Moves => match moved(first, second) {
                    None if below(&path, first).is_some() => return,
                    earlier => earlier,
                },
            };
            if let Some(earlier) = earlier {
                found(&earlier);
                path = earlier;
            }
        }
    }
}

/// What is behind `dir` in the path of it, or of something in it.
fn below<'a>(path: &'a [u8], dir: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(dir).filter(|rest| !dir.is_empty() && (rest.is_empty() || rest[0] == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(changes: &[(Change, &str, &str)], path: &str) -> Vec<String> {
        let mut all = Aliases::default();
        for (change, first, second) in changes {
            all.changed(*change, first.as_bytes(), Some(second.as_bytes()));
        }
        let mut found = Vec::new();
        all.before(path.as_bytes(), |name| found.push(String::from_utf8_lossy(name).into_owned()));
        found
    }

    #[test]
    fn names_are_followed_back() {
        use Change::{Links, Moves, Removes, Swaps};
        assert_eq!(before(&[(Moves, "/d", "/e")], "/e/precious"), ["/d/precious"]);
        assert_eq!(before(&[(Moves, "/d", "/e"), (Moves, "/e/p", "/q")], "/q"), ["/e/p", "/d/p"]);
        assert_eq!(before(&[(Moves, "/d", "/e")], "/ee/p"), [""; 0]);
        assert_eq!(before(&[(Links, "/a", "/b")], "/b"), ["/a"]);
        assert_eq!(before(&[(Swaps, "/a", "/b")], "/b"), ["/a"]);
        assert_eq!(before(&[(Swaps, "/a", "/b")], "/a"), ["/b"]);
        // another file has the name by then
        assert_eq!(before(&[(Moves, "/d", "/e"), (Removes, "/e/p", "")], "/e/p"), [""; 0]);
        assert_eq!(before(&[(Moves, "/a", "/b"), (Moves, "/b", "/c")], "/b"), [""; 0]);
        assert_eq!(before(&[(Removes, "/b", ""), (Moves, "/a", "/b")], "/b"), ["/a"]);
    }
}
