//! Opens the directory of a flight recorder's tapes: only one in which nobody else can remove or exchange them.
//!
//! Safe is a directory of root or of this user in which nobody else may write, or a sticky one (/tmp), where others may
//! add files and not touch ours. A missing one is made, for its owner alone. All checks are of the opened directory: a
//! path may be another a moment later.

use std::ffi::CString;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::peer;
use crate::own::say::{quoted, say};

/// Opens `path`; a missing last part of it is made with mode 0700.
///
/// # Errors
/// It is no directory, or one in which others could remove or exchange tapes.
pub(super) fn open(path: &Path) -> Result<OwnedFd> {
    let context = || format!("--dir {}", path.display());
    // one that somebody else put there, where the kernel follows such
    let link = std::fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
    if let Some(whose) = link.map(|link| link.uid()).filter(|uid| !peer::is_trusted(*uid)) {
        bail!("{}: it is a symbolic link of uid {whose}: name the directory", context());
    }
    let opened = match open_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => made(path),
        opened => opened,
    };
    let file = File::from(opened.with_context(|| format!("{}: cannot open the directory", context()))?);
    let meta = file.metadata().with_context(context)?;
    if let Some(why) = unsafe_for(meta.uid(), meta.mode(), peer::own_uid()) {
        bail!("{}: {why}; name one of your own, such as /var/lib/systape (a missing one is made)", context());
    }
    Ok(file.into())
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: name is a NUL-terminated string; a new descriptor comes back, or -1.
    let fd = unsafe { libc::open(name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this descriptor to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn made(path: &Path) -> io::Result<OwnedFd> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => say(format_args!("--dir {}: made, for its owner alone", quoted(path))),
        // somebody was faster: what is there is looked at like any other
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    open_directory(path)
}

/// Why tapes of user `own` are not safe in a directory of `owner` with this mode; None = they are.
fn unsafe_for(owner: u32, mode: u32, own: u32) -> Option<String> {
    let sticky = mode & libc::S_ISVTX != 0;
    let octal = mode & 0o7777;
    if owner != own && owner != 0 {
        return Some(format!("the directory is uid {owner}'s, who can remove or exchange what is in it"));
    }
    // an access control list that lets others write shows in the group's bits
    match (mode & 0o002 != 0, mode & 0o020 != 0) {
        _ if sticky => None,
        (true, _) => Some(format!("everybody may write in the directory (mode {octal:04o}) and remove tapes")),
        (_, true) => Some(format!("others may write in the directory (mode {octal:04o}) and remove tapes: chmod g-w")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    #[test]
    fn only_where_nobody_else_can_remove_tapes() {
        for (owner, mode, own, safe) in [
            (0, 0o40755, 0, true),
            (0, 0o41777, 0, true),
            (0, 0o41777, 1000, true),
            (1000, 0o40700, 1000, true),
            (0, 0o40755, 1000, true),
            (0, 0o40777, 0, false),
            (0, 0o40775, 0, false),
            (0, 0o42770, 0, false),
            (1000, 0o40700, 0, false),
            (65534, 0o41777, 0, false),
            (1001, 0o40755, 1000, false),
        ] {
            let why = unsafe_for(owner, mode, own);
            assert_eq!(why.is_none(), safe, "{owner} {mode:o} {own}: {why:?}");
        }
    }

    #[test]
    fn a_missing_directory_is_made_for_its_owner() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        open(&at("new")).unwrap();
        assert_eq!(fs::metadata(at("new")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(open(&at("none/new")).is_err(), "only the last part");
        fs::set_permissions(at("new"), fs::Permissions::from_mode(0o777)).unwrap();
        let why = format!("{:#}", open(&at("new")).unwrap_err());
        assert!(why.contains("everybody may write") && why.contains("/var/lib/systape"), "{why}");
        fs::set_permissions(at("new"), fs::Permissions::from_mode(0o1777)).unwrap();
        open(&at("new")).unwrap();
        // what a link leads to is what counts, and a link that leads nowhere makes nothing
        symlink("/etc/passwd", at("file")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        assert!(open(&at("file")).is_err() && open(&at("dangling")).is_err());
        assert!(!at("nowhere").exists());
        symlink(temp.path(), at("others")).unwrap();
        open(&at("others")).unwrap();
        if lchown(at("others"), Some(65534), None).is_ok() {
            let why = format!("{:#}", open(&at("others")).unwrap_err());
            assert!(why.contains("link of uid 65534") || why.contains("Permission denied"), "{why}");
        }
    }
}
