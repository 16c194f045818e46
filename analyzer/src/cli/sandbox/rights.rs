//! Capabilities: none is kept, except two for root that open other users' files.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};

use super::RemainingRights;

/// Takes every capability from this thread, and from the threads and programs it starts. CAP_DAC_READ_SEARCH stays if a
/// file to read needs it, CAP_DAC_OVERRIDE if a file to write or a directory with a file to remove does: root may
/// analyze any user's tape.
///
/// # Errors
/// The kernel refuses to change the sets.
pub(super) fn give_up(needs: &RemainingRights) -> Result<(), CapsError> {
    let had = caps::read(None, CapSet::Permitted)?;
    caps::clear(None, CapSet::Effective)?;
    let closed = |path: &Path, mode| is_closed(path, mode);
    let mut kept = CapsHashSet::new();
    if needs.read.iter().chain(&needs.search).any(|path| closed(path, libc::R_OK)) {
        kept.insert(Capability::CAP_DAC_READ_SEARCH);
    }
    if needs.write.iter().any(|path| closed(path, libc::R_OK | libc::W_OK))
        || needs.clear.iter().chain(&needs.make).any(|dir| closed(dir, libc::W_OK | libc::X_OK))
    {
        kept.insert(Capability::CAP_DAC_OVERRIDE);
    }
    kept.retain(|capability| had.contains(capability));
    caps::clear(None, CapSet::Inheritable)?;
    caps::set(None, CapSet::Permitted, &kept)?;
    caps::set(None, CapSet::Effective, &kept)
}

/// Whether the kernel refuses `mode` now. A kernel without an answer (before Linux 5.8) counts as one that refuses.
fn is_closed(path: &Path, mode: libc::c_int) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends with a zero and lives long enough; the kernel writes nothing.
    let ret = unsafe { libc::syscall(libc::SYS_faccessat2, libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) };
    ret != 0 && matches!(io::Error::last_os_error().raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS))
}
