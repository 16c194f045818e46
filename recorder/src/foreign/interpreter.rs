//! Which interpreter a program asks for that could not be executed: exec fails with the same error as if the program itself were missing.
//!
//! No program of the kernel can see that name: it is gone when the call returns, and nothing is traced between. So the file is read
//! after the failure. The process that opens files ([`crate::commands::opening`]) opens it as the one that failed would have, and the one that reads
//! them says what it asks for. What the file says may have changed since.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use systape_symbols::Executed;

use crate::foreign::{FactReader, Wanted};

/// Scripts whose interpreter is a script, as often as the kernel does it.
const DEPTH: usize = 5;

/// Where the paths of the process that failed begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathBase {
    /// The recorder's own root; its directory, if that is known.
    Ours(Option<Vec<u8>>),
    /// Root and directory of this process, by its id in /proc, while it lives.
    Of(u32),
}

/// An exec that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedExec {
    /// Where its paths begin.
    pub base: PathBase,
    /// The program's path as the call had it.
    pub path: Vec<u8>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What asks for it: script, elf, other-elf, other.
    pub kind: &'static str,
    /// The file that asks for it: the program, or the interpreter of a script.
    pub file: Vec<u8>,
    /// Name of the interpreter as it stands there; None: the file asks for none.
    pub interpreter: Option<Vec<u8>>,
    /// Why it cannot be opened, an errno; 0: it can, now.
    pub error: u16,
}

/// Reads what the program asks for; None: it is not there itself, or that is not known.
pub(crate) fn find(facts: &mut FactReader, failed: &FailedExec) -> Option<Found> {
    let open = |facts: &FactReader, path: &[u8]| {
        let answer = facts.open(Wanted::Executed, &request(&failed.base, path)?);
        Some(answer.map(|(_, file)| file).map_err(|why| why.parse::<u16>().ok()))
    };
    let program = open(facts, &failed.path)?.ok()?;
    let mut next = facts.executed(&program)?;
    let (mut file, mut kind) = (failed.path.clone(), next.kind());
    let mut first = None;
    for _ in 0..DEPTH {
        let is_script = matches!(next, Executed::Script(_));
        let (Executed::Script(name) | Executed::Elf(Some(name))) = next else { break };
        match open(facts, &name)? {
            Err(Some(error)) if is_missing(error) => return Some(Found { kind, file, interpreter: Some(name), error }),
            Err(_) => return None,
            Ok(interpreter) => {
                first.get_or_insert_with(|| Found {
                    kind,
                    file: file.clone(),
                    interpreter: Some(name.clone()),
                    error: 0,
                });
                // a loader is executed without another one
                if !is_script {
                    break;
                }
                next = facts.executed(&interpreter)?;
                (kind, file) = (next.kind(), name);
            }
        }
    }
    Some(first.unwrap_or(Found { kind, file, interpreter: None, error: 0 }))
}

/// No such file, a file in place of a directory, links without end.
fn is_missing(error: u16) -> bool {
    [libc::ENOENT, libc::ENOTDIR, libc::ELOOP].contains(&error.into())
}

/// What the process that opens files is asked: at whose root or directory (0: the recorder's), and a path from there.
fn request(base: &PathBase, path: &[u8]) -> Option<Vec<u8>> {
    let (whose, path) = match base {
        PathBase::Of(pid) => (*pid, path.to_vec()),
        PathBase::Ours(_) if path.starts_with(b"/") => (0, path.to_vec()),
        PathBase::Ours(dir) => (0, [dir.as_deref()?, b"/", path].concat()),
    };
    Some([&whose.to_le_bytes()[..], &path].concat())
}

/// What [`find`] asks for, in the process that opens: a file. Nothing comes with it.
///
/// # Errors
/// The errno, as a number; a sentence where there is none.
pub(crate) fn open_asked(asked: &[u8]) -> Result<(Vec<u8>, File), String> {
    let (whose, path) = asked.split_first_chunk().ok_or("no program is asked for")?;
    let errno = |error: io::Error| error.raw_os_error().map_or_else(|| error.to_string(), |errno| errno.to_string());
    let absolute = path.starts_with(b"/");
    let dir = match (u32::from_le_bytes(*whose), absolute) {
        (0, _) => "/".to_owned(),
        (pid, true) => format!("/proc/{pid}/root"),
        (pid, false) => format!("/proc/{pid}/cwd"),
    };
    // a symlink leads to where it would have led the process, or nowhere
    let resolve = if absolute { libc::RESOLVE_IN_ROOT } else { libc::RESOLVE_BENEATH };
    let named = beneath(Path::new(&dir), path, resolve).map_err(errno)?;
    // only its name (O_PATH): it is opened for who reads it
    if !named.metadata().map_err(errno)?.is_file() {
        return Err("it is no regular file".into());
    }
    Ok((Vec::new(), named))
}

/// A name of a file (O_PATH).
fn beneath(dir: &Path, path: &[u8], resolve: u64) -> io::Result<File> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // whose directory has gone is no answer about the file
    let gone = |_| io::Error::other("its process has ended");
    let dir = OpenOptions::new().read(true).custom_flags(flags).open(dir).map_err(gone)?;
    let path = CString::new(OsStr::from_bytes(path).as_bytes())?;
    // SAFETY: zero is a value of all its fields.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC).cast_unsigned().into();
    how.resolve = resolve;
    // SAFETY: an open directory, a string that ends with zero, and a structure of the length that is passed.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat2, dir.as_raw_fd(), path.as_ptr(), &raw const how, size_of::<libc::open_how>())
    };
    match i32::try_from(fd) {
        // SAFETY: the descriptor is new, and nobody else's.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_lead_to_where_they_lead_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "#!/x\n").unwrap();
        symlink("/file", path("link")).unwrap();
        let resolved = |name: &str, resolve| beneath(dir.path(), name.as_bytes(), resolve).is_ok();
        assert!(resolved("/link", libc::RESOLVE_IN_ROOT) && resolved("file", libc::RESOLVE_BENEATH));
        assert!(!resolved("link", libc::RESOLVE_BENEATH) && !resolved("../x", libc::RESOLVE_BENEATH));
        let asked = |path: &Path| open_asked(&request(&PathBase::Ours(None), path.as_os_str().as_bytes()).unwrap());
        let found = FactReader::new().executed(&asked(&path("file")).unwrap().1);
        assert_eq!(found, Some(Executed::Script(b"/x".to_vec())));
        assert_eq!(asked(&path("none")).unwrap_err(), libc::ENOENT.to_string());
        assert_eq!(asked(&path("file/x")).unwrap_err(), libc::ENOTDIR.to_string());
        assert_eq!(asked(dir.path()).unwrap_err(), "it is no regular file");
        // of a process that is gone nothing is missing
        let gone = request(&PathBase::Of(u32::MAX), b"/bin/sh").unwrap();
        assert_eq!(open_asked(&gone).unwrap_err(), "its process has ended");
        assert_eq!(request(&PathBase::Ours(None), b"relative"), None);
        assert!(open_asked(b"").is_err());
    }
}
