//! What else a file was called before: names change when it, or a directory above it, is renamed, and a link is one more.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::CallState;

use systape_events::load::Loaded;

/// Most changes that are kept.
const KEPT: usize = 1 << 17;

/// What a call does to names of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
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
    pub fn of_name(call: &str) -> Option<Self> {
        Some(match call {
            "unlink" | "unlinkat" | "rmdir" => Self::Removes,
            "rename" | "renameat" | "renameat2" => Self::Moves,
            "link" | "linkat" => Self::Links,
            _ => return None,
        })
    }

    /// What the call of `row` is for.
    pub fn of(segment: &Loaded, row: usize) -> Option<Self> {
        const RENAME_EXCHANGE: u64 = 2;
        let name = segment.call(row).name.as_str();
        let flags = segment.args.of(row).and_then(|args| args.get(4).copied()).unwrap_or(0);
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

/// What calls did to names so far, in order of their ends: as much of it as leads back to a name that is asked for.
#[derive(Debug, Default)]
pub struct Aliases {
    changes: Vec<Changed>,
    /// By each of their names: which changes have it, ascending.
    by_name: FxHashMap<Arc<[u8]>, Vec<usize>>,
    /// All directories above these names.
    above: FxHashSet<Arc<[u8]>>,
}

impl Aliases {
    /// A call did this; its paths, as far as they are known. `leads` says whether what is at a path, or below it, may be asked for by
    /// that name. False: there is no room for it, and names may have been others before.
    pub fn changed(
        &mut self,
        change: Change,
        first: &[u8],
        second: Option<&[u8]>,
        leads: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let second = second.unwrap_or_default();
        let given = |path: &[u8]| self.concern(path).next().is_some() || self.above.contains(path);
        let matters = match change {
            Change::Removes => given(first),
            Change::Moves | Change::Links => leads(first) || given(first) || given(second),
            Change::Swaps => leads(first) || leads(second) || given(first) || given(second),
        };
        if !matters {
            return true;
        }
        if self.changes.len() == KEPT {
            return false;
        }
        let changed = Changed { change, first: first.into(), second: second.into() };
        for name in [&changed.first, &changed.second].into_iter().filter(|name| !name.is_empty()) {
            self.by_name.entry(Arc::clone(name)).or_default().push(self.changes.len());
            for dir in up(name).skip(1) {
                // with it all above it are there
                if !self.above.insert(dir.into()) {
                    break;
                }
            }
        }
        self.changes.push(changed);
        true
    }

    /// The numbers of changes of what `path` names, or of a directory above it, in no order of all.
    fn concern(&self, path: &[u8]) -> impl Iterator<Item = &[usize]> {
        up(path).filter_map(|name| self.by_name.get(name)).map(Vec::as_slice)
    }

    /// Passes every name to `found` that what `path` names now had before.
    pub fn before(&self, path: &[u8], mut found: impl FnMut(&[u8])) {
        let (mut path, mut end) = (path.to_vec(), self.changes.len());
        loop {
            let last = |numbers: &[usize]| numbers[..numbers.partition_point(|at| *at < end)].last().copied();
            let Some(at) = self.concern(&path).filter_map(last).max() else { return };
            end = at;
            let Changed { change, first, second } = &self.changes[at];
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

/// `path`, and the directories above it, the nearest first.
fn up(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path).filter(|path| !path.is_empty()), |path| {
        let at = path.iter().rposition(|byte| *byte == b'/')?;
        Some(&path[..at]).filter(|dir| !dir.is_empty())
    })
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
            assert!(all.changed(*change, first.as_bytes(), Some(second.as_bytes()), |_| true));
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

    #[test]
    fn what_leads_to_no_name_asked_for_is_not_kept() {
        let mut all = Aliases::default();
        let leads = |path: &[u8]| path == b"/d" || path == b"/d/p";
        for n in 0..10_000 {
            let (from, to) = (format!("/other/{n}"), format!("/other/{n}.old"));
            assert!(all.changed(Change::Moves, from.as_bytes(), Some(to.as_bytes()), leads));
        }
        assert!(all.changes.is_empty());
        assert!(
            all.changed(Change::Moves, b"/d", Some(b"/e"), leads)
                && all.changed(Change::Moves, b"/e/p", Some(b"/q"), leads)
        );
        let mut found = Vec::new();
        all.before(b"/q", |name| found.push(name.to_vec()));
        assert_eq!(found, [b"/e/p".to_vec(), b"/d/p".to_vec()]);
        let full =
            (0..2 * KEPT).filter(|n| !all.changed(Change::Links, b"/d/p", Some(format!("/l{n}").as_bytes()), leads));
        assert!(full.count() > KEPT, "more than are kept are told of");
    }
}
