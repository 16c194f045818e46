//! Where file systems are mounted, for this process: a file's name in its file system becomes a path.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;

/// Most bytes read of the list of mounts.
const MOST: u64 = 4 << 20;

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The kernel's dev_t of its file system: major << 20 | minor.
    dev: u32,
    /// The directory of the file system that is shown.
    root: Vec<u8>,
    /// Where.
    at: Vec<u8>,
}

/// The mounts, read again when the kernel says that they changed.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    list: Option<File>,
    mounts: Vec<Mount>,
}

impl Mounts {
    /// The path of a name in the file system `dev`. Where that is mounted nowhere, its numbers are in front:
    /// `8:16:/a`.
    pub(crate) fn path(&mut self, dev: u32, name: &[u8]) -> Vec<u8> {
        self.refresh();
        path(&self.mounts, dev, name)
    }

    /// Reads the list if it was not read, or has changed since.
    fn refresh(&mut self) {
        let first = self.list.is_none();
        if first {
            self.list = File::open("/proc/self/mountinfo").ok();
        }
        let Some(list) = &mut self.list else { return };
        let mut poll = libc::pollfd { fd: list.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
        // SAFETY: one pollfd, which lives during the call; it returns at once.
        let changed = unsafe { libc::poll(&raw mut poll, 1, 0) } > 0;
        if !first && !changed {
            return;
        }
        let mut text = Vec::new();
        let read = list.seek(SeekFrom::Start(0)).and_then(|_| list.take(MOST).read_to_end(&mut text));
        if read.is_ok() {
            self.mounts = parse(&text);
        }
    }
}

/// proc_pid_mountinfo(5): the numbers of the file system, its directory and the place are fields 3 to 5.
fn parse(text: &[u8]) -> Vec<Mount> {
    let mount = |line: &[u8]| {
        let mut fields = line.split(|&byte| byte == b' ').skip(2);
        let dev = std::str::from_utf8(fields.next()?).ok()?;
        let (major, minor) = dev.split_once(':')?;
        let dev = major.parse::<u32>().ok()?.checked_shl(20)? | minor.parse::<u32>().ok()?;
        Some(Mount { dev, root: unescaped(fields.next()?), at: unescaped(fields.next()?) })
    };
    text.split(|&byte| byte == b'\n').filter_map(mount).collect()
}

/// `\040` is a space there.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match digits {
            Some(digits) => {
                out.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &after[3..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

fn path(mounts: &[Mount], dev: u32, name: &[u8]) -> Vec<u8> {
    let below = |mount: &&Mount| {
        let rest = name.strip_prefix(mount.root.strip_suffix(b"/").unwrap_or(&mount.root));
        mount.dev == dev && rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    // the whole file system rather than a part of it that is shown elsewhere too
    let Some(mount) = mounts.iter().filter(below).min_by_key(|mount| mount.root.len()) else {
        return [format!("{}:{}:", dev >> 20, dev & 0xf_ffff).as_bytes(), name].concat();
    };
    let rest = &name[mount.root.strip_suffix(b"/").unwrap_or(&mount.root).len()..];
    [mount.at.strip_suffix(b"/").unwrap_or(&mount.at), rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
        23 22 0:5 / /dev rw - devtmpfs none rw\n\
        30 22 8:16 /sub/vol /mnt/my\\040disk rw shared:1 - ext4 /dev/sdb rw\n\
        31 22 8:1 /var/lib /mnt/again rw - ext4 /dev/sda1 rw\n\
        32 22 8:x / /broken rw - ext4 /dev/sdb rw\nshort\n";

    fn found(dev: u32, name: &str) -> String {
        String::from_utf8(path(&parse(LIST), dev, name.as_bytes())).expect("text")
    }

    #[test]
    fn a_name_is_below_its_mount() {
        let [sda1, sdb, dev] = [8 << 20 | 1, 8 << 20 | 16, 5];
        assert_eq!(found(sda1, "/var/lib/x"), "/var/lib/x", "not where a part of it is mounted");
        assert_eq!(found(dev, "/null"), "/dev/null");
        assert_eq!(found(sdb, "/sub/vol/a b"), "/mnt/my disk/a b");
        assert_eq!(found(sdb, "/sub/volume"), "8:16:/sub/volume", "another directory");
        assert_eq!(found(7 << 20, "/a"), "7:0:/a");
    }

    #[test]
    fn the_own_mounts_are_read() {
        let mut mounts = Mounts::default();
        mounts.path(0, b"/x");
        assert!(mounts.mounts.iter().any(|mount| mount.at == b"/proc"), "{mounts:?}");
    }
}
