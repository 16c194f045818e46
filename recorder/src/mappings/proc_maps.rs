//! Executable mappings from /proc/PID/maps: those from before the side-band was opened, or all without it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};

use super::Mapped;

/// Most bytes read of one process's maps: some 100 for each of the kernel's default of 65,530 mappings, and a margin.
const BYTES_MAX: u64 = 64 << 20;
/// Longest line: what comes before a path is under 100 bytes, a path has at most 4096, each of which may be escaped.
const LINE_MAX: u64 = 32 << 10;

/// The executable mappings of a process; none for a kernel thread.
///
/// # Errors
/// The process is gone, or other processes' maps may not be read (CAP_SYS_PTRACE).
pub fn read(pid: u32) -> io::Result<Vec<Mapped>> {
    let mut lines = BufReader::with_capacity(64 << 10, File::open(format!("/proc/{pid}/maps"))?.take(BYTES_MAX));
    let mut line = Vec::new();
    let mut all = Vec::new();
    loop {
        line.clear();
        if lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(all);
        }
        all.extend(parse(line.strip_suffix(b"\n").unwrap_or(&line)));
    }
}

/// All processes, including kernel threads.
pub fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// One line: `start-end perms offset major:minor inode   path`. None when it is not executable, or invalid.
fn parse(line: &[u8]) -> Option<Mapped> {
    let mut rest = line;
    let (start, end) = split(field(&mut rest)?, b'-')?;
    if field(&mut rest)?.get(2) != Some(&b'x') {
        return None;
    }
    let pgoff = field(&mut rest)?;
    let (major, minor) = split(field(&mut rest)?, b':')?;
    let inode = std::str::from_utf8(field(&mut rest)?).ok()?;
    let (major, minor) = (u32::try_from(hex(major)?).ok()?, u32::try_from(hex(minor)?).ok()?);
    let (start, end) = (hex(start)?, hex(end)?);
    (start < end).then_some(Mapped {
        start,
        end,
        pgoff: hex(pgoff)?,
        dev: libc::makedev(major, minor),
        inode: inode.parse().ok()?,
        generation: 0,
        path: unescape(rest.trim_ascii_start()),
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let from = rest.iter().position(|b| *b != b' ')?;
    let text = &rest[from..];
    let (first, after) = text.split_at(text.iter().position(|b| *b == b' ').unwrap_or(text.len()));
    *rest = after;
    Some(first)
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let (first, second) = text.split_at(text.iter().position(|b| *b == at)?);
    Some((first, &second[1..]))
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// The kernel escapes a newline as \012, and nothing else.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            out.push(b'\n');
            rest = after;
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(line: &str) -> Option<String> {
        parse(line.as_bytes()).map(|m| String::from_utf8(m.path).unwrap())
    }

    #[test]
    fn lines_of_every_kind() {
        let line = "55d0a0d26000-55d0a0d2a000 r-xp 00002000 fd:01 1310734                    /usr/bin/cat";
        let expect = Mapped {
            start: 0x55d0_a0d2_6000,
            end: 0x55d0_a0d2_a000,
            pgoff: 0x2000,
            dev: libc::makedev(0xfd, 1),
            inode: 1_310_734,
            path: b"/usr/bin/cat".to_vec(),
            ..Mapped::default()
        };
        assert_eq!(parse(line.as_bytes()), Some(expect));
        let with = |path: &str| path_of(&format!("7f0000000000-7f0000001000 r-xp 00000000 00:01 7   {path}"));
        for path in ["/tmp/a b  c", "/lib/x.so (deleted)", "[vdso]", "[vsyscall]", "/memfd:jit (deleted)", "[anon:x y]"]
        {
            assert_eq!(with(path).as_deref(), Some(path));
        }
        assert_eq!(with("/tmp/two\\012lines").as_deref(), Some("/tmp/two\nlines"));
        assert_eq!(with("/tmp/back\\slash").as_deref(), Some("/tmp/back\\slash"));
        // no name, with and without the blank behind the inode
        assert_eq!(path_of("7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ").as_deref(), Some(""));
        assert_eq!(path_of("7f0000000000-7f0000001000 --xp 00000000 00:00 0").as_deref(), Some(""));
    }

    #[test]
    fn data_and_nonsense_are_left_out() {
        for line in [
            "",
            "7f0000000000-7f0000001000 rw-p 00000000 00:00 0",
            "7f0000001000-7f0000000000 r-xp 00000000 00:00 0",
            "7f0000000000 r-xp 00000000 00:00 0",
            "7f0000000000-7f0000001000 r-xp",
            "x-y r-xp 00000000 00:00 0",
            "7f0000000000-7f0000001000 r-xp 00000000 0000 0",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn this_test_is_mapped() {
        let here = this_test_is_mapped as *const () as u64;
        let maps = read(std::process::id()).unwrap();
        let found = maps.iter().find(|m| (m.start..m.end).contains(&here)).unwrap();
        let exe = fs::read_link("/proc/self/exe").unwrap();
        assert_eq!(found.path, exe.as_os_str().as_encoded_bytes());
        assert!(maps.iter().any(|m| m.path == b"[vdso]"));
        assert!(pids().contains(&std::process::id()));
    }
}
