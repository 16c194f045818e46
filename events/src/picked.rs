//! Calls chosen by the files that they are on (`-P`): the patterns, and which rows of which segments pass. It is found out before
//! anything is answered ([`crate::derive::paths::pick`]), because a path may be relative to a directory that only the order of calls tells.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::sockets::split;

use crate::values::glob;

/// Whether something is one of the files asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Is {
    /// Not one of them.
    Not,
    /// Whether it is one is not known.
    Maybe,
    /// One of them.
    One,
}

/// Whether `path`, which is whole, is one of those that `patterns` name. A pattern that does not begin with `/` names whatever ends
/// with it, from a `/` on.
pub fn names(patterns: &[String], path: &[u8]) -> bool {
    patterns.iter().any(|pattern| {
        let pattern = plain(pattern);
        let from_root = glob::matches(pattern, path) || is_socket(pattern, path);
        from_root || (!pattern.starts_with(b"/") && glob::matches(&[b"*/", pattern].concat(), path))
    })
}

/// `socket:` stands for any kind: `socket:*` are all of them.
fn is_socket(pattern: &[u8], path: &[u8]) -> bool {
    let Some(inside) = pattern.strip_prefix(b"socket:") else { return false };
    split(path).is_some_and(|(word, _)| glob::matches(inside, &path[word.len() + 1..]))
}

/// Whether something is asked for, of a `name` in a directory that is not known.
pub fn may_name(patterns: &[String], name: &[u8]) -> Is {
    let name = plain_bytes(name);
    let one = |pattern: &String| {
        let pattern = plain(pattern);
        if !pattern.starts_with(b"/") && names(&[String::from_utf8_lossy(pattern).into_owned()], name) {
            return Is::One;
        }
        // whatever the directory is, the path ends with the name
        let literal = !pattern.iter().any(|byte| matches!(byte, b'*' | b'?'));
        let ends = |longer: &[u8], end: &[u8]| longer.strip_suffix(end).is_some_and(|rest| rest.ends_with(b"/"));
        let possible = !literal || name == b"." || ends(pattern, name) || ends(&[b"/", pattern].concat(), name);
        if possible { Is::Maybe } else { Is::Not }
    };
    patterns.iter().map(one).max().unwrap_or(Is::Not)
}

fn plain(pattern: &str) -> &[u8] {
    plain_bytes(pattern.as_bytes())
}

/// Without `./` before it, which a path that was put together has not either.
fn plain_bytes(name: &[u8]) -> &[u8] {
    let mut name = name;
    while let Some(rest) = name.strip_prefix(b"./").filter(|rest| !rest.is_empty()) {
        name = rest;
        while let Some(rest) = name.strip_prefix(b"/") {
            name = rest;
        }
    }
    name
}

/// The rows that pass, or all others.
#[derive(Debug, Default)]
pub struct Picked {
    /// Whether those that are here are all that do not pass.
    pub all_but: bool,
    /// By number of the segment, ascending once they are [`Self::settle`]d.
    rows: FxHashMap<u32, Vec<u32>>,
    /// Segments of which something could not be read: they are looked at again, so that each answer says so in its way.
    damaged: FxHashSet<u32>,
}

impl Picked {
    /// Adds rows of a segment.
    #[inline]
    pub fn add(&mut self, segment: u32, rows: impl IntoIterator<Item = u32>) {
        self.rows.entry(segment).or_default().extend(rows);
    }

    /// All are there; these segments could not be read.
    #[inline]
    pub fn settle(&mut self, damaged: impl IntoIterator<Item = u32>) {
        self.damaged.extend(damaged);
        self.rows.retain(|_, rows| !rows.is_empty());
        self.rows.values_mut().for_each(|rows| rows.sort_unstable());
    }

    /// The rows of a segment that pass, or do not, ascending.
    #[inline]
    pub fn of(&self, segment: u32) -> &[u32] {
        self.rows.get(&segment).map_or(&[], Vec::as_slice)
    }

    /// Whether a segment is worth reading.
    #[inline]
    pub fn may_match(&self, segment: u32) -> bool {
        self.all_but || self.rows.contains_key(&segment) || self.damaged.contains(&segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    #[test]
    fn a_pattern_names_paths() {
        for (pattern, path, expected) in [
            ("/etc/passwd", "/etc/passwd", true),
            ("/etc/passwd", "/etc/passwd2", false),
            ("/etc", "/etc/passwd", false),
            ("/etc/*", "/etc/a/b", true),
            ("passwd", "/etc/passwd", true),
            ("passwd", "/etc/notpasswd", false),
            ("etc/passwd", "/srv/etc/passwd", true),
            ("./passwd", "/etc/passwd", true),
            ("*.so", "/lib/x.so", true),
            ("x*", "/lib/x.so", true),
            ("socket:*", "socket:[17]", true),
            ("socket:*", "UNIX:[17,\"/run/x\"]", true),
            ("socket:*", "pipe:[17]", false),
            ("socket:[17]", "TCP:[17]", true),
            ("TCP:*:443]", "TCP:[10.0.0.1:40002->10.0.0.2:443]", true),
            ("TCP:*:443]", "TCP:[10.0.0.1:443->10.0.0.2:40002]", false),
            ("TCP:[10.0.0.1:80]", "TCP:[10.0.0.1:80]", true),
            ("TCP*:443]", "TCPv6:[[::1]:40002->[::1]:443]", true),
            ("socket:*:443]", "TCPv6:[[::1]:40002->[::1]:443]", true),
            ("", "/a", false),
        ] {
            assert_eq!(names(&asked(&[pattern]), path.as_bytes()), expected, "{pattern} {path}");
        }
        assert!(names(&asked(&["/a", "/b"]), b"/b"), "several add up");
    }

    #[test]
    fn a_name_in_an_unknown_directory_is_ruled_out_by_its_end() {
        let may = |pattern: &str, name: &str| may_name(&asked(&[pattern]), name.as_bytes());
        assert_eq!((may("/etc/passwd", "passwd"), may("/etc/passwd", "./passwd")), (Is::Maybe, Is::Maybe));
        assert_eq!((may("/etc/passwd", "group"), may("/etc/passwd", "x/etc/passwd")), (Is::Not, Is::Not));
        assert_eq!((may("passwd", "passwd"), may("passwd", "etc/passwd")), (Is::One, Is::One));
        assert_eq!((may("etc/passwd", "passwd"), may("etc/passwd", "group")), (Is::Maybe, Is::Not));
        assert_eq!((may("/etc/*", "x"), may("/etc", ".")), (Is::Maybe, Is::Maybe));
        assert_eq!(may_name(&asked(&["/etc/passwd", "group"]), b"group"), Is::One);
    }

    #[test]
    fn segments_without_a_row_are_left_out() {
        let mut picked = Picked::default();
        picked.add(1, [7, 3]);
        picked.add(2, []);
        picked.settle([5]);
        assert_eq!((picked.of(1), picked.of(2)), (&[3, 7][..], &[][..]));
        assert_eq!([1, 2, 5, 6].map(|segment| picked.may_match(segment)), [true, false, true, false]);
    }
}
