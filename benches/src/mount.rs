//! A file system of our own for a workload: ext4 in a file, on a loop device.

use std::ffi::CStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use anyhow::{Context, Result};

use crate::process::run_quietly;

/// Leaves the machine's mount namespace. What is mounted here goes with the last process of the new one, and mount's own
/// loop devices go with their mounts: so not even kill -9 leaves any behind. Without the right to do it, [`Mounted`] cleans up.
pub(crate) fn keep_to_ourselves() {
    const ROOT: &CStr = c"/";
    // SAFETY: unshare touches no memory; mount reads the path only, its other pointers may be null for these flags.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS) == 0 {
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            libc::mount(ptr::null(), ROOT.as_ptr(), ptr::null(), flags, ptr::null());
        }
    }
}

/// Leaves the machine's network: the ports of loopback are ours alone, and so is a name server on it.
///
/// # Errors
/// The loopback interface of the new network cannot be switched on. Without the right to leave, nothing changes.
pub(crate) fn own_network() -> Result<()> {
    // SAFETY: unshare touches no memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Ok(());
    }
    // SAFETY: zeroed bytes are an ifreq; the ioctl reads its name and flags only, and the socket is closed here.
    let done = unsafe {
        let mut lo: libc::ifreq = std::mem::zeroed();
        lo.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
        lo.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let done = libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const lo);
        libc::close(socket);
        done
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()).context("the loopback interface") }
}

/// A mounted file system; unmounted, its loop device freed and its file removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Mounted {
    at: PathBuf,
    image: PathBuf,
}

impl Mounted {
    /// A new ext4 of `bytes`, in a file beside `at`.
    pub(crate) fn ext4(at: &Path, bytes: u64) -> Result<Self> {
        std::fs::create_dir_all(at)?;
        let image = at.with_extension("img");
        File::create(&image).and_then(|f| f.set_len(bytes)).context("cannot make the image")?;
        run_quietly(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))?;
        run_quietly(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(at))?;
        Ok(Self { at: at.to_owned(), image })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(e) = run_quietly(Command::new("umount").arg(&self.at)) {
            eprintln!("bench: {e:#}");
        }
        std::fs::remove_file(&self.image).ok();
    }
}
