//! Which file a name stood for: rows of the table `file:identity`, and what else a file was called.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::families::FILE_IDENTITY;
use systape_format::reader::Tape;
use systape_format::table::TableDef;
use systape_format::tables::TableRows;

use systape_events::scan::{Coverage, Scan};

/// A file, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// File system, major << 20 | minor.
    pub device: u64,
    /// Inode of the file there.
    pub inode: u64,
    /// Changes when that number is used again.
    pub generation: u64,
    /// No other file ever has the same: the file system counts generations. 0 is one, of files that were made with it.
    unique: bool,
}

/// File systems of which it is known that they do.
const WITH_GENERATIONS: [&[u8]; 7] = [b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"f2fs", b"tmpfs"];

/// What holds since a time each, in order of time.
type Over<T> = Vec<(u64, T)>;

/// Adds what holds since a time, unless it did before; false = it did.
fn add<T: PartialEq>(all: &mut Over<T>, since: u64, what: T) -> bool {
    let at = all.partition_point(|(earlier, _)| *earlier <= since);
    // most rows say again what an earlier one says
    let new = at == 0 || all[at - 1].1 != what;
    if new {
        all.insert(at, (since, what));
    }
    new
}

/// What holds at `ts`.
fn at<T>(all: &Over<T>, ts: u64) -> Option<&T> {
    let after = all.partition_point(|(since, _)| *since <= ts);
    after.checked_sub(1).map(|last| &all[last].1)
}

/// Tells `found` since when which name stands for which file.
fn each(tape: &Tape, mut found: impl FnMut(u64, &[u8], FileId)) -> Coverage {
    Scan::tables(tape, ("identities of files", &[&FILE_IDENTITY]), |_, _, table| rows(table, &mut found))
}

fn rows(table: &TableRows, found: &mut impl FnMut(u64, &[u8], FileId)) {
    let columns = ["ago", "device", "inode", "generation", "path", "fstype"].map(|name| table.column(name));
    let [Some(ago), Some(device), Some(inode), Some(generation), Some(path), Some(fstype)] = columns else {
        return;
    };
    for (row, ts) in table.ts.iter().enumerate() {
        let Some(path) = table.string(path[row]) else { continue };
        let fs = table.string(fstype[row]).unwrap_or_default();
        let unique = generation[row] != 0 || WITH_GENERATIONS.contains(&fs);
        let file = FileId { device: device[row], inode: inode[row], generation: generation[row], unique };
        found(ts.saturating_sub(ago[row]), path, file);
    }
}

/// Which files names stood for, and what else these were called.
#[derive(Debug, Default)]
pub struct Identities {
    /// By name: the file.
    files: FxHashMap<Arc<[u8]>, Over<FileId>>,
    /// By file: all of its names.
    names: FxHashMap<FileId, BTreeSet<Arc<[u8]>>>,
}

impl Identities {
    /// Identities of the names of `tape` that are `asked` for, and of all others of the same files.
    pub fn read(tape: &Tape, asked: impl Fn(&[u8]) -> bool + Sync) -> (Self, Coverage) {
        let mut all = Self::default();
        let mut coverage = each(tape, |since, path, file| {
            if asked(path) {
                all.add(since, path, file);
            }
        });
        if all.names.is_empty() {
            return (all, coverage);
        }
        // once for names of these files, once for what else such names stood for; damage is the same each time
        for _ in 0..2 {
            let known = all.files.len();
            let is_asked = |(file, names): (&FileId, &BTreeSet<Arc<[u8]>>)| {
                (file.unique && names.iter().any(|name| asked(name))).then_some(*file)
            };
            let files: FxHashSet<FileId> = all.names.iter().filter_map(is_asked).collect();
            coverage = each(tape, |since, path, file| {
                if files.contains(&file) || all.files.contains_key(path) {
                    all.add(since, path, file);
                }
            });
            if all.files.len() == known {
                break;
            }
        }
        (all, coverage)
    }

    /// `path` was the file at `since`.
    fn add(&mut self, since: u64, path: &[u8], file: FileId) {
        let path: Arc<[u8]> = match self.files.get_key_value(path) {
            Some((known, _)) => Arc::clone(known),
            None => path.into(),
        };
        if add(self.files.entry(Arc::clone(&path)).or_default(), since, file) {
            self.names.entry(file).or_default().insert(path);
        }
    }

    /// The file that `path` was at `ts`; None: not known.
    pub fn at(&self, path: &[u8], ts: u64) -> Option<FileId> {
        at(self.files.get(path)?, ts).copied()
    }

    /// All names under which a file that no other can be taken for was ever seen.
    pub fn names(&self, file: FileId) -> impl Iterator<Item = &[u8]> {
        self.names.get(&file).filter(|_| file.unique).into_iter().flatten().map(|name| &**name)
    }
}

/// The columns that say which file an event is about: its file system and its inode.
pub const NUMBERS: [&str; 2] = ["s_dev", "i_ino"];

/// Names of files by their numbers.
#[derive(Debug, Default)]
pub struct FileNames(FxHashMap<(u64, u64), Over<Arc<[u8]>>>);

impl FileNames {
    /// Identities of `tape`, if it has a table with numbers of files.
    pub fn read(tape: &Tape) -> (Self, Coverage) {
        let has = |def: &TableDef, name: &str| def.columns.iter().any(|column| column.name == *name);
        if !tape.table_defs().values().any(|def| NUMBERS.iter().all(|name| has(def, name))) {
            return (Self::default(), Scan::nothing());
        }
        let (mut all, mut paths) = (Self::default(), FxHashSet::<Arc<[u8]>>::default());
        let coverage = each(tape, |since, path, file| {
            let path: Arc<[u8]> = match paths.get(path) {
                Some(known) => Arc::clone(known),
                None => path.into(),
            };
            paths.insert(Arc::clone(&path));
            all.add(since, path, file);
        });
        (all, coverage)
    }

    fn add(&mut self, since: u64, path: Arc<[u8]>, file: FileId) {
        add(self.0.entry((file.device, file.inode)).or_default(), since, path);
    }

    /// The name under which the file with this number was seen last before `ts`; None: not known.
    pub fn at(&self, device: u64, inode: u64, ts: u64) -> Option<&[u8]> {
        at(self.0.get(&(device, inode))?, ts).map(|path| &**path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FileId = FileId { device: 1, inode: 2, generation: 3, unique: true };

    #[test]
    fn a_name_is_the_file_that_it_was_last() {
        let mut all = Identities::default();
        let b = FileId { generation: 4, ..A };
        for (since, path, file) in [(10, "/a", A), (30, "/a", b), (20, "/a", A), (20, "/link", A)] {
            all.add(since, path.as_bytes(), file);
        }
        let at = |path: &str, ts| all.at(path.as_bytes(), ts);
        assert_eq!([at("/a", 9), at("/a", 10), at("/a", 29), at("/a", 30)], [None, Some(A), Some(A), Some(b)]);
        assert_eq!(at("/b", 30), None);
        let names = |file| all.names(file).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let [of_a, of_b]: [Vec<String>; 2] = [A, b].map(names);
        assert_eq!((of_a, of_b), (vec!["/a".into(), "/link".into()], vec!["/a".into()]));
    }

    #[test]
    fn without_a_generation_a_number_may_be_another_file() {
        let mut all = Identities::default();
        let file = FileId { generation: 0, unique: false, ..A };
        all.add(10, b"/a", file);
        assert_eq!((all.at(b"/a", 10), all.names(file).count()), (Some(file), 0));
    }

    #[test]
    fn a_file_is_called_as_it_was_seen_last() {
        let mut all = FileNames::default();
        for (since, path) in [(10, "/a"), (20, "/b"), (30, "/a"), (10, "/a")] {
            all.add(since, path.as_bytes().into(), A);
        }
        let named = |ts| all.at(1, 2, ts).map(|name| String::from_utf8_lossy(name).into_owned());
        let expected = [None, Some("/a".to_owned()), Some("/b".into()), Some("/a".into())];
        assert_eq!([9, 19, 20, 30].map(named), expected);
        assert_eq!(all.at(1, 3, 30), None);
    }
}
