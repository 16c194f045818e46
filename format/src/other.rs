//! Files that are something else than a tape, known by their first bytes.

use std::borrow::Cow;

/// Bytes of a file's beginning that tell what it is.
pub(crate) const HEAD: usize = 512;

/// What a file is instead of a tape, and what to do with it: `FILE` stands for its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Other {
    /// `compressed with gzip`, `a recording of perf`.
    pub what: &'static str,
    /// What to do instead; empty: nothing helps.
    pub instead: Cow<'static, str>,
}

const fn known(what: &'static str, instead: &'static str) -> Other {
    Other { what, instead: Cow::Borrowed(instead) }
}

/// Where bytes stand, the bytes, and what they mean. Sources: RFC 1952, RFC 8878, the formats' own specifications, perf's perf.data-file-format.txt,
/// trace-cmd's trace-cmd.dat.5.txt, libscap's scap_savefile.h.
const MAGICS: [(usize, &[u8], Other); 17] = [
    (0, b"\x1f\x8b", known("compressed with gzip", "gzip -dc FILE | analyze -")),
    (0, b"\x28\xb5\x2f\xfd", known("compressed with zstd", "zstd -dc FILE | analyze -")),
    (0, b"\xfd7zXZ\0", known("compressed with xz", "xz -dc FILE | analyze -")),
    (0, b"BZh", known("compressed with bzip2", "bzip2 -dc FILE | analyze -")),
    (0, b"\x04\x22\x4d\x18", known("compressed with lz4", "lz4 -dc FILE | analyze -")),
    (0, b"PK\x03\x04", known("an archive of zip", "unzip -p FILE | analyze -")),
    (0, b"7z\xbc\xaf\x27\x1c", known("an archive of 7-Zip", "7z e -so FILE | analyze -")),
    (257, b"ustar", known("an archive of tar", "tar -xOf FILE | analyze -")),
    (0, b"PERFILE2", known("a recording of perf", "perf script -i FILE shows it")),
    (0, b"\x7fELF", known("a program or library (ELF)", "record -- FILE runs it and makes a tape")),
    (0, b"\x17\x08\x44tracing", known("a recording of trace-cmd", "trace-cmd report -i FILE shows it")),
    (0, b"\xc1\x1f\xfc\xc1", known("a stream of LTTng (CTF)", "babeltrace2 shows the directory that it is in")),
    (0, b"\x0a\x0d\x0d\x0a", known("a capture of packets (pcapng)", "tcpdump -r FILE shows it")),
    (0, b"\xd4\xc3\xb2\xa1", known("a capture of packets (pcap)", "tcpdump -r FILE shows it")),
    (0, b"\x4d\x3c\xb2\xa1", known("a capture of packets (pcap)", "tcpdump -r FILE shows it")),
    (0, b"SQLite format 3\0", known("a database of SQLite", "")),
    (0, b"PAR1", known("a table of Parquet", "")),
];

/// What a file that begins with `head` is; None: perhaps a tape, or not known.
pub(crate) fn of(head: &[u8]) -> Option<Other> {
    let is = |(at, magic, _): &&(usize, &[u8], Other)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    let magic = || MAGICS.iter().find(is).map(|(_, _, other)| other.clone());
    special(head).or_else(magic).or_else(|| text(head)).or_else(|| perfetto(head))
}

/// Of what begins like something more frequent.
fn special(head: &[u8]) -> Option<Other> {
    let number = |at: usize, len: usize| {
        let bytes = head.get(at..at + len)?;
        Some(bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)))
    };
    if head.starts_with(b"\x7fELF") && number(16, 2) == Some(4) {
        return Some(known("a core dump", "gdb -c FILE shows it"));
    }
    // sysdig's blocks are those of pcapng; their types are of their own
    let second = number(4, 4).and_then(|len| number(usize::try_from(len).ok()?, 4));
    let scap = head.starts_with(b"\x0a\x0d\x0d\x0a") && second.is_some_and(|kind| (0x200..0x300).contains(&kind));
    scap.then(|| known("a capture of sysdig", "sysdig -r FILE shows it"))
}

/// A trace of Perfetto: packets of protobuf, as far as `head` has them. At least two fields are looked at.
fn perfetto(head: &[u8]) -> Option<Other> {
    let mut rest = head;
    let mut fields = 0;
    while !rest.is_empty() {
        // field 1 of the trace, by its length
        let inner = rest.strip_prefix(b"\x0a")?;
        let (len, inner) = varint(inner)?;
        let len = usize::try_from(len).ok().filter(|len| (1..1 << 26).contains(len))?;
        let mut packet = inner.get(..len.min(inner.len()))?;
        while let Some((tag, value)) = varint(packet) {
            // proto's types of values; the fields of packets have small numbers
            let after = match tag & 7 {
                0 => varint(value).map(|(_, after)| after),
                1 => value.get(8..),
                2 => varint(value).and_then(|(len, after)| after.get(usize::try_from(len).ok()?..)),
                5 => value.get(4..),
                _ => return None,
            };
            if !(1..1000).contains(&(tag >> 3)) {
                return None;
            }
            fields += 1;
            match after {
                Some(after) => packet = after,
                // it goes on behind what is looked at
                None if inner.len() < len => break,
                None => return None,
            }
        }
        rest = inner.get(len..).unwrap_or_default();
    }
    (fields >= 2).then(|| known("a trace of Perfetto", "ui.perfetto.dev opens it"))
}

/// A number of protobuf and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().take(9).position(|byte| byte & 0x80 == 0)?;
    let number = bytes[..=end].iter().rev().fold(0_u64, |number, byte| number << 7 | u64::from(byte & 0x7f));
    Some((number, &bytes[end + 1..]))
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
            known("text that looks like strace's", "analyze import strace FILE makes a tape of it")
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
        let scap = [&b"\x0a\x0d\x0d\x0a\x1c\0\0\0"[..], &[0; 20], &[1, 2, 0, 0]].concat();
        let pcapng = [&b"\x0a\x0d\x0d\x0a\x1c\0\0\0"[..], &[0; 20], &[1, 0, 0, 0]].concat();
        assert_eq!([what(&scap), what(&pcapng)], [Some("a capture of sysdig"), Some("a capture of packets (pcapng)")]);
        let elf = |kind: u8| [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[kind, 0]].concat();
        assert_eq!([what(&elf(4)), what(&elf(3))], [Some("a core dump"), Some("a program or library (ELF)")]);
        let perfetto = b"\x0a\x06\x40\x05\x50\x81\x80\x01\x0a\x02\x40\x07";
        assert_eq!(what(perfetto), Some("a trace of Perfetto"));
        assert_eq!((what(b"\x0a\x06\x40\x05\x57\x81"), what(b"\x0a\x01\x00")), (None, None));
        assert_eq!((what(&MAGIC), what(b""), what(&[0; HEAD])), (None, None, None));
    }
}
