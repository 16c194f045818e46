//! Keeps short-lived executables open: a program may delete itself and end within a millisecond.
//!
//! fanotify's FAN_OPEN_EXEC queues a reference to every executed file (the program, its interpreter). Reading the event
//! gives an open descriptor, even if the file and its process are gone. It does not report libraries opened with
//! dlopen, or memfds.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustc_hash::FxHashSet;

use super::Mapped;
use crate::machine::bounded;
use crate::own::clock;

/// Most executables kept open.
const KEPT_MAX: usize = 256;
/// How long, ns: the side-band has their mappings by the next pass.
const KEPT_NS: u64 = 5_000_000_000;
/// Most events read in a pass.
const EVENTS_MAX: usize = 4096;

const MOUNTINFO: &str = "/proc/self/mountinfo";
/// Time between two searches for newly mounted file systems, ns.
const MARK_NS: u64 = 500_000_000;

/// Watched types of file systems: those with files of this machine. Opening a file of a network or FUSE file system may
/// never return.
const FILE_SYSTEMS: [&str; 15] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "overlay", "squashfs", "tmpfs",
    "vfat", "xfs", "zfs",
];

#[derive(Debug)]
struct Kept {
    dev: u64,
    inode: u64,
    time: u64,
    file: File,
}

/// The executables of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct ExecWatch {
    events: Option<File>,
    /// /proc/self/mountinfo, whose poll(2) reports changes.
    mounts: Option<File>,
    marked: u64,
    /// Oldest first.
    kept: Vec<Kept>,
    overflows: u64,
}

impl ExecWatch {
    /// One that watches nothing.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Watches the file systems that are mounted now.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn open() -> Result<Self, String> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
        let file_flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE | libc::O_NONBLOCK | libc::O_NOATIME;
        // SAFETY: plain numbers go in, a descriptor or an error comes out.
        let fd = unsafe { libc::fanotify_init(flags, file_flags as u32) };
        if fd < 0 {
            let e = io::Error::last_os_error();
            return Err(match e.raw_os_error() {
                Some(libc::EPERM) => format!("fanotify is refused ({e}): it takes CAP_SYS_ADMIN"),
                Some(libc::ENOSYS) => "this kernel has no fanotify (CONFIG_FANOTIFY)".into(),
                _ => format!("fanotify_init failed: {e}"),
            });
        }
        // SAFETY: the call has just made this descriptor and nobody else has it.
        let events = unsafe { OwnedFd::from_raw_fd(fd) };
        let mounts = File::open(MOUNTINFO).map_err(|e| format!("cannot open {MOUNTINFO}: {e}"))?;
        let mut this = Self { events: Some(events.into()), mounts: Some(mounts), ..Self::default() };
        match this.mark_all() {
            (0, Some(e)) => Err(format!("fanotify refuses every file system: {e}")),
            _ => Ok(this),
        }
    }

    /// Marks every file system; marked ones stay so. Returns their number, and an error of the others.
    fn mark_all(&mut self) -> (usize, Option<io::Error>) {
        self.marked = clock::monotonic();
        let (mut count, mut last) = (0, None);
        let Some(events) = &self.events else { return (count, last) };
        for mount in mount_points(&bounded::head(MOUNTINFO, bounded::MOUNTS).unwrap_or_default().bytes) {
            match mark(events, &mount) {
                Ok(()) => count += 1,
                Err(e) => last = Some(e),
            }
        }
        (count, last)
    }

    /// New containers bring file systems with them.
    fn mark_new(&mut self) {
        let Some(mounts) = &self.mounts else { return };
        if clock::monotonic().saturating_sub(self.marked) < MARK_NS {
            return;
        }
        let mut poll = libc::pollfd { fd: mounts.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
        // SAFETY: poll is one valid pollfd; no waiting.
        let changed = unsafe { libc::poll(&raw mut poll, 1, 0) } > 0;
        if changed {
            self.mark_all();
        } else {
            self.marked = clock::monotonic();
        }
    }

    /// Takes the files executed since the last time, without waiting.
    pub(crate) fn read(&mut self) {
        self.mark_new();
        let Some(mut events) = self.events.take() else { return };
        let now = clock::monotonic();
        let expired = self.kept.iter().take_while(|kept| kept.time.saturating_add(KEPT_NS) < now).count();
        self.kept.drain(..expired);
        // fanotify tells ids of the reader's pid namespace
        let own = std::process::id() as i32;
        let mut buf = [0; 4096];
        let mut count = 0;
        while count < EVENTS_MAX
            && let Ok(length) = events.read(&mut buf)
            && length > 0
        {
            let mut rest = &buf[..length];
            while let Some((event, after)) = split_event(rest) {
                rest = after;
                count += 1;
                if event.mask & libc::FAN_Q_OVERFLOW != 0 {
                    self.overflows += 1;
                }
                if event.fd < 0 {
                    continue;
                }
                // SAFETY: reading the event has made this descriptor, and nobody else has it.
                let file = unsafe { File::from_raw_fd(event.fd) };
                if event.pid != own {
                    self.keep(file, now);
                }
            }
        }
        self.events = Some(events);
    }

    fn keep(&mut self, file: File, now: u64) {
        let Ok(meta) = file.metadata() else { return };
        let (dev, inode) = (meta.dev(), meta.ino());
        // most programs are executed again and again
        self.kept.retain(|kept| (kept.dev, kept.inode) != (dev, inode));
        if self.kept.len() >= KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push(Kept { dev, inode, time: now, file });
    }

    /// The executables that a mapping may be of, the newest first.
    pub(crate) fn candidates(&self, mapped: &Mapped) -> impl Iterator<Item = File> {
        // the device is compared when it is accepted: not every file system shows the one it has
        let kept = self.kept.iter().rev().filter(|kept| kept.inode == mapped.inode);
        kept.filter_map(|kept| kept.file.try_clone().ok())
    }

    /// How often events were lost because they were read too late.
    pub(crate) fn overflows(&self) -> u64 {
        self.overflows
    }
}

/// struct fanotify_event_metadata, the parts used.
struct Event {
    mask: u64,
    fd: i32,
    pid: i32,
}

fn split_event(bytes: &[u8]) -> Option<(Event, &[u8])> {
    use std::mem::offset_of;
    type Metadata = libc::fanotify_event_metadata;
    let word = |at: usize| Some(*bytes.get(at..)?.first_chunk::<4>()?);
    let length = u32::from_ne_bytes(word(offset_of!(Metadata, event_len))?) as usize;
    let mask = u64::from_ne_bytes(*bytes.get(offset_of!(Metadata, mask)..)?.first_chunk()?);
    let event = Event {
        mask,
        fd: i32::from_ne_bytes(word(offset_of!(Metadata, fd))?),
        pid: i32::from_ne_bytes(word(offset_of!(Metadata, pid))?),
    };
    if length < size_of::<Metadata>() {
        return None;
    }
    Some((event, bytes.get(length..)?))
}

fn mark(events: &File, mount: &CStr) -> io::Result<()> {
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    // SAFETY: events is an open descriptor, mount a string that ends with zero.
    let result =
        unsafe { libc::fanotify_mark(events.as_raw_fd(), flags, libc::FAN_OPEN_EXEC, libc::AT_FDCWD, mount.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One mount point of each file system worth watching. A line is `id parent major:minor root mountpoint options … - type source options`.
fn mount_points(mountinfo: &[u8]) -> Vec<CString> {
    let mut seen = FxHashSet::default();
    let mut points = Vec::new();
    for line in mountinfo.split(|b| *b == b'\n') {
        let mut fields = line.split(|b| *b == b' ');
        let (Some(dev), Some(point)) = (fields.nth(2), fields.nth(1)) else { continue };
        let Some(kind) = fields.skip_while(|field| *field != b"-").nth(1) else { continue };
        if FILE_SYSTEMS.iter().any(|name| name.as_bytes() == kind)
            && let Ok(point) = CString::new(unescape(point))
            && seen.insert(dev)
        {
            points.push(point);
        }
    }
    points
}

/// mountinfo writes blanks and the like as a backslash and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        if let Some(digits) = octal {
            out.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
            rest = &after[3..];
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

    #[test]
    fn each_real_file_system_once() {
        let text = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            23 22 0:5 / /proc rw - proc proc rw\n\
            24 22 254:0 /home /home rw - ext4 /dev/vda rw\n\
            25 22 0:30 / /mnt/a\\040b rw shared:2 master:3 - tmpfs none rw\n\
            26 22 0:40 / /mnt/remote rw - nfs4 host:/ rw\n\
            nonsense\n";
        let points = mount_points(text);
        assert_eq!(points, [c"/".to_owned(), c"/mnt/a b".to_owned()]);
    }

    #[test]
    fn events_that_are_cut_end_the_list() {
        let mut bytes = vec![0; size_of::<libc::fanotify_event_metadata>()];
        bytes[0] = bytes.len() as u8;
        assert!(split_event(&bytes).is_some());
        for length in 0..bytes.len() {
            assert!(split_event(&bytes[..length]).is_none());
        }
        bytes[0] = 0;
        assert!(split_event(&bytes).is_none());
    }
}
