//! Bounded reads of files of unknown length.
//!
//! /proc files of a process are as long as that process wants: `cmdline` alone can be terabytes (prctl(2),
//! PR_SET_MM_MAP). Only the reader limits it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Enough for files of /proc with a few lines: stat, status, fdinfo. Those that can have long last lines (groups in
/// status, watches in fdinfo) begin with the lines used here.
pub(crate) const LINES: usize = 4 << 10;
/// Enough for every table of mounts: 100,000 lines (sysctl fs.mount-max) of usual length.
pub(crate) const MOUNTS: usize = 16 << 20;

/// The beginning of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FileHead {
    /// Bytes of the file, at most as many as requested.
    pub bytes: Vec<u8>,
    /// The file has more.
    pub cut: bool,
}

/// Reads at most `most` bytes of a file from its start, and one more to find out whether that is all.
///
/// # Errors
/// Those of open(2) and read(2).
pub(crate) fn head(path: impl AsRef<Path>, most: usize) -> io::Result<FileHead> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    let cut = bytes.len() > most;
    bytes.truncate(most);
    Ok(FileHead { bytes, cut })
}

/// Reads the beginning of a file as text, whole lines only: a cut line is left out. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// As [`head`].
pub(crate) fn lines(path: impl AsRef<Path>, most: usize) -> io::Result<String> {
    let FileHead { mut bytes, cut } = head(path, most)?;
    if cut {
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let of = |most| head(&path, most).map(|head| (head.bytes.len(), head.cut)).unwrap();
        assert_eq!((of(13), of(14), of(15), of(0)), ((13, true), (14, false), (14, false), (0, true)));
        let text = |most| lines(&path, most).unwrap();
        assert_eq!(
            (text(14), text(13), text(8), text(7), text(2)),
            ("one\ntwo\nthree\n".into(), "one\ntwo\n".into(), "one\ntwo\n".into(), "one\n".into(), String::new())
        );
        // a file without an end
        assert_eq!(head("/dev/zero", 100_000).unwrap(), FileHead { bytes: vec![0; 100_000], cut: true });
        assert!(head(dir.path().join("none"), 1).is_err());
    }
}
