//! Files that are something else than a tape, known by their first bytes.

/// Bytes of a file's beginning that tell what it is.
pub(crate) const HEAD: usize = 512;

/// What a file is instead of a tape, and what to do with it: `FILE` stands for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// `compressed with gzip`, `a recording of perf`.
    pub what: &'static str,
    /// What to do instead; empty: nothing helps.
    pub instead: &'static str,
}

const fn known(what: &'static str, instead: &'static str) -> Other {
    Other { what, instead }
}

/// Where bytes stand, the bytes, and what they mean. Sources: RFC 1952, RFC 8878, the formats' own specifications, perf's perf.data-file-format.txt.
const MAGICS: [(usize, &[u8], Other); 15] = [
    (0, b"\x1f\x8b", known("compressed with gzip", "gzip -dc FILE | analyze -")),
    (0, b"\x28\xb5\x2f\xfd", known("compressed with zstd", "zstd -dc FILE | analyze -")),
    (0, b"\xfd7zXZ\0", known("compressed with xz", "xz -dc FILE | analyze -")),
    (0, b"BZh", known("compressed with bzip2", "bzip2 -dc FILE | analyze -")),
    (0, b"\x04\x22\x4d\x18", known("compressed with lz4", "lz4 -dc FILE | analyze -")),
    (0, b"PK\x03\x04", known("an archive of zip", "unzip -p FILE | analyze -, if it holds one tape")),
    (0, b"7z\xbc\xaf\x27\x1c", known("an archive of 7-Zip", "7z e -so FILE | analyze -, if it holds one tape")),
    (257, b"ustar", known("an archive of tar", "tar -xOf FILE | analyze -, if it holds one tape")),
    (0, b"PERFILE2", known("a recording of perf", "perf script -i FILE; record makes tapes")),
    (0, b"\x7fELF", known("a program or library (ELF)", "record -- FILE runs it and makes a tape")),
    (0, b"\x0a\x0d\x0d\x0a", known("a capture of packets (pcapng), or of sysdig", "")),
    (0, b"\xd4\xc3\xb2\xa1", known("a capture of packets (pcap)", "")),
    (0, b"\x4d\x3c\xb2\xa1", known("a capture of packets (pcap)", "")),
    (0, b"SQLite format 3\0", known("a database of SQLite", "")),
    (0, b"PAR1", known("a table of Parquet", "")),
];

/// What a file that begins with `head` is; None: perhaps a tape, or not known.
pub(crate) fn of(head: &[u8]) -> Option<Other> {
    let is = |(at, magic, _): &&(usize, &[u8], Other)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    let known = MAGICS.iter().find(is).map(|(_, _, other)| *other);
    known.or_else(|| text(head))
}

/// Text: damage does not make that of a block's header.
fn text(head: &[u8]) -> Option<Other> {
    const LEAST: usize = 24;
    let start = head.get(..LEAST.min(head.len()))?;
    let plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    if start.is_empty() || !start.iter().all(plain) {
        return None;
    }
    Some(match start.trim_ascii_start().first() {
        Some(b'{' | b'[') => known("JSON", ""),
        Some(b'#') if start.starts_with(b"#!") => known("a script", "record -- FILE runs it and makes a tape"),
        _ if head.windows(4).any(|four| four == b") = ") => {
            known("text that looks like strace's", "a tape answers the same questions: record -- COMMAND")
        }
        _ => known("text", ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::MAGIC;

    #[test]
    fn what_a_file_is_follows_from_its_beginning() {
        let what = |head: &[u8]| of(head).map(|other| other.what);
        assert_eq!(what(b"\x1f\x8b\x08\0"), Some("compressed with gzip"));
        assert_eq!(what(b"\x28\xb5\x2f\xfd\x04"), Some("compressed with zstd"));
        let mut tar = [0_u8; HEAD];
        tar[..6].copy_from_slice(b"t.tape");
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(what(&tar), Some("an archive of tar"));
        assert_eq!(what(b"{\"ts_ns\": 5, \"syscall\": \"read\"}"), Some("JSON"));
        assert_eq!(what(b"execve(\"/bin/true\", [\"true\"], 0x7ffe) = 0\n"), Some("text that looks like strace's"));
        assert_eq!(what(b"hello, this is nothing of that kind\n"), Some("text"));
        assert_eq!((what(&MAGIC), what(b""), what(&[0; HEAD])), (None, None, None));
    }
}
