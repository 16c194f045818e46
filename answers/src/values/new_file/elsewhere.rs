//! Files of a system that has neither owners nor permissions: the one inside a browser's page.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// A new file of `options`, which has no permissions.
pub(super) fn readable(options: &mut OpenOptions, _permissions: u32) -> &mut OpenOptions {
    options
}

/// Opens an existing file.
///
/// # Errors
/// It is a link, or cannot be opened.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a symbolic link: name the file it points to"));
    }
    options.open(path)
}

/// Takes readers from no file: there is one.
pub(super) fn narrow(_file: &File, _permissions: u32) -> io::Result<()> {
    Ok(())
}

/// Permissions of a file that is made from `tapes`: there are none.
pub fn permissions_like<'a>(_tapes: impl IntoIterator<Item = &'a Path>) -> u32 {
    0o600
}
