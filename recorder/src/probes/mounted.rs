//! Who mounted the overlay that a file is in.
//!
//! A user may mount an overlay in a user namespace of their own, over a file system that they serve (FUSE). What is read of
//! such a file may never come, and the kernel reads the code that it puts a probe on with locks of the whole machine held:
//! no process can fork until it comes. What is below an overlay cannot be asked, but who mounted it can.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Most bytes read of a list of mounts.
const MOST: u64 = 4 << 20;
/// Asks for the user namespace to which a namespace belongs (ioctl_ns(2)).
const NS_GET_USERNS: libc::Ioctl = 0xb701;

/// An overlay, as a list of mounts has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Overlay {
    mount: u64,
    /// Major and minor of its file system.
    dev: String,
}

/// Whether the overlay of a process's file was mounted by somebody with rights on this machine. False too if that cannot
/// be found out, such as of a file system that nobody has mounted any more.
pub(super) fn is_by_root(pid: u32, file: &File) -> bool {
    mount_of(file).is_ok_and(|mount| {
        let own = overlays("/proc/self/mountinfo").unwrap_or_default();
        // nobody without rights mounts anything here
        if own.iter().any(|overlay| overlay.mount == mount) {
            return true;
        }
        let theirs = overlays(&format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        let Some(overlay) = theirs.into_iter().find(|overlay| overlay.mount == mount) else { return false };
        // asked last: from a namespace of its own a process does not come back
        own.iter().any(|known| known.dev == overlay.dev) || is_of_our_users(pid).unwrap_or(false)
    })
}

/// Whether the mounts of a process belong to the user namespace that this one is in.
fn is_of_our_users(pid: u32) -> io::Result<bool> {
    let mounts = File::open(format!("/proc/{pid}/ns/mnt"))?;
    // SAFETY: the descriptor is open, and the request takes nothing.
    let users = unsafe { libc::ioctl(mounts.as_raw_fd(), NS_GET_USERNS) };
    if users < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor, and nobody else has it.
    let users = File::from(unsafe { OwnedFd::from_raw_fd(users) });
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino()));
    Ok(identity(&users)? == identity(&File::open("/proc/self/ns/user")?)?)
}

/// The number of the mount by which a file was opened.
fn mount_of(file: &File) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    number.ok_or_else(|| io::Error::other("the kernel does not tell"))
}

fn overlays(list: &str) -> io::Result<Vec<Overlay>> {
    let mut text = Vec::new();
    File::open(list)?.take(MOST).read_to_end(&mut text)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// proc_pid_mountinfo(5): fields 1 and 3, and the first behind ` - `.
fn parse(text: &str) -> Vec<Overlay> {
    let overlay = |line: &str| {
        let (mount, rest) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let (mount, dev) = (fields.next()?.parse().ok()?, fields.nth(1)?.to_owned());
        (rest.split(' ').next() == Some("overlay")).then_some(Overlay { mount, dev })
    };
    text.lines().filter_map(overlay).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_are_found() {
        let text = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
            31 22 0:40 / /var/lib/docker/overlay2/x/merged rw shared:1 - overlay overlay rw,lowerdir=/a - b\n\
            32 22 0:41 / /overlay - fuse.overlay overlay rw\nshort\n";
        assert_eq!(parse(text), [Overlay { mount: 31, dev: "0:40".to_owned() }]);
    }

    #[test]
    fn this_process_is_of_its_own_users() {
        assert!(mount_of(&File::open("/proc/self/exe").unwrap()).unwrap() > 0);
        // some sandboxes of tests show no namespaces
        if let Ok(same) = is_of_our_users(std::process::id()) {
            let own = File::open("/proc/self/ns/mnt").is_ok();
            assert!(same || !own || std::env::var_os("SYSTAPE_REQUIRE_BPF").is_none(), "of others");
        }
    }
}
