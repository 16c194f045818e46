//! Files as unix has them: with owners, permissions, and links that are not followed.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::values::spool::STDIN;

/// A new file of `options` has these permissions at most.
pub(super) fn readable(options: &mut OpenOptions, permissions: u32) -> &mut OpenOptions {
    options.mode(permissions)
}

/// Opens an existing file that is no link, without waiting for anybody.
///
/// # Errors
/// It is a link, or cannot be opened.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let open = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    open.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link: name the file it points to"),
        _ => error,
    })
}

/// Takes from an existing file readers that are more than `permissions` has.
///
/// # Errors
/// It is somebody else's.
pub(super) fn narrow(file: &File, permissions: u32) -> io::Result<()> {
    let metadata = file.metadata()?;
    // SAFETY: asks for a number.
    if permissions & 0o004 == 0 && metadata.uid() != unsafe { libc::geteuid() } {
        let whose = metadata.uid();
        return Err(io::Error::other(format!("it is uid {whose}'s, who may not read the tape: name another file")));
    }
    let more = metadata.mode() & 0o044 & !permissions;
    if more != 0 {
        file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777 & !more))?;
    }
    Ok(())
}

/// Permissions of a file that is made from `tapes`: who may read all of them may read it. None: its owner.
pub fn permissions_like<'a>(tapes: impl IntoIterator<Item = &'a Path>) -> u32 {
    let of = |tape: &Path| {
        let metadata = if tape == Path::new(STDIN) { stdin() } else { std::fs::metadata(tape) };
        // nothing is known of the readers of a pipe
        metadata.ok().filter(Metadata::is_file).map_or(0o600, |metadata| 0o600 | metadata.mode() & 0o666)
    };
    tapes.into_iter().map(of).reduce(|all, one| all & one).unwrap_or(0o600)
}

fn stdin() -> io::Result<Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
}
