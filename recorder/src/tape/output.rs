//! Opens the tape: readable only by its owner, never through a symlink, never over anything but a plain file.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use systape_cli::held::{hold, is_held};

use crate::own::say::say;
use crate::own::signals;
use crate::tape::sink::TapeSink;

/// How often to check whether it was opened, and how long until a message.
const LOOK: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens `path` for a new tape; an existing one is renamed to PATH.old. `-` is standard output.
///
/// # Errors
/// When something other than a plain file is at either path, the directory cannot be written, or standard output is a
/// terminal or closed.
pub(crate) fn open(path: &Path) -> Result<OpenedTape> {
    if is_stdout(path) {
        if signals::stdout_was_closed() {
            bail!("-o -: standard output is closed");
        }
        let stdout = io::stdout();
        if stdout.is_terminal() {
            bail!("-o -: standard output is a terminal; redirect it into a file or a pipe");
        }
        // not through io::Stdout, which would keep the end of a tape in a buffer
        let file = stdout.as_fd().try_clone_to_owned().context("-o -")?;
        return Ok(OpenedTape { sink: TapeSink::new(File::from(file)).context("-o -")?, made: None });
    }
    let replaced = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => bail!("-o {}: is a directory", path.display()),
        Ok(meta) if !meta.is_file() => bail!("-o {}: is not a plain file and is left alone", path.display()),
        Ok(_) => {
            keep_as_old(path)?;
            true
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(e).with_context(|| format!("-o {}: cannot look at it", path.display())),
    };
    let file = create(path).with_context(|| format!("-o {}: cannot create the tape", path.display()))?;
    let made = Some(NewTapeFile { path: path.to_path_buf(), replaced });
    Ok(OpenedTape { sink: TapeSink::named(file).with_context(|| format!("-o {}", path.display()))?, made })
}

/// Opens the output in a thread of its own, so that the program can end although a file system hangs, as far as the kernel
/// supports it. `interrupted` is called now and then.
///
/// # Errors
/// As [`open`], and when it is interrupted.
pub(crate) fn open_patiently(path: &Path, mut interrupted: impl FnMut(Duration) -> bool) -> Result<OpenedTape> {
    let (done, opened) = crossbeam_channel::bounded(1);
    let own = path.to_path_buf();
    let work = move || drop(done.send(open(&own)));
    let thread = thread::Builder::new().name("open".into()).spawn(work).context("cannot start a thread")?;
    let (began, mut told) = (Instant::now(), false);
    while !thread.is_finished() {
        if interrupted(LOOK) {
            bail!("interrupted before {} was opened", path.display());
        }
        if !told && began.elapsed() > PATIENCE {
            told = true;
            say(format_args!("{}: the file system has not opened it yet; waiting", path.display()));
        }
    }
    let opened = opened.recv().with_context(|| format!("-o {}", path.display()))?;
    // nobody but this thread is left, which gives up rights later
    thread.join().ok();
    opened
}

/// A tape that is still empty. Dropped, it is removed, and the previous file gets its name back.
#[derive(Debug)]
pub(crate) struct OpenedTape {
    sink: TapeSink,
    made: Option<NewTapeFile>,
}

impl OpenedTape {
    /// Turns it into the sink that is written from now on.
    pub(crate) fn begin(self) -> TapeSink {
        let Self { sink, made } = self;
        made.into_iter().for_each(NewTapeFile::keep);
        sink
    }
}

/// A new file, removed unless kept.
#[derive(Debug)]
struct NewTapeFile {
    path: PathBuf,
    /// Another file had its name.
    replaced: bool,
}

impl NewTapeFile {
    fn keep(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for NewTapeFile {
    fn drop(&mut self) {
        // somebody else's by now, or kept
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            fs::remove_file(&self.path).ok();
            if self.replaced {
                rename_to_nothing(&old_name(&self.path), &self.path).ok();
            }
        }
    }
}

/// A new file for its owner, in place of an existing plain file; anything else is refused.
///
/// # Errors
/// When something else is there, or the directory cannot be written.
pub(crate) fn replace(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()) {
        fs::remove_file(path)?;
    }
    create(path)
}

/// Whether it means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn create(path: &Path) -> io::Result<File> {
    // create_new: what appears here between the look and the open is not ours to overwrite
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)?;
    hold(&file);
    Ok(file)
}

/// Whether a `record` is writing the plain file at `path`.
pub(crate) fn is_being_written(path: &Path) -> bool {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(path).is_ok_and(|file| is_held(&file))
}

/// Renames an existing tape. If PATH.old does not exist, a file that appears there meanwhile is not replaced; a
/// replaced one was a plain file when checked.
fn keep_as_old(path: &Path) -> Result<()> {
    let old = old_name(path);
    for busy in [path, &old] {
        if is_being_written(busy) {
            bail!("-o {}: another record is writing {}; choose another name with -o", path.display(), busy.display());
        }
    }
    let cannot = || format!("-o {}: cannot keep the existing tape as {}", path.display(), old.display());
    match rename_to_nothing(path, &old) {
        Ok(()) => return Ok(()),
        // the second: a file system that cannot promise it
        Err(e) if matches!(e.raw_os_error(), Some(libc::EEXIST | libc::EINVAL | libc::ENOSYS)) => {}
        Err(e) => return Err(e).with_context(cannot),
    }
    match fs::symlink_metadata(&old) {
        Ok(meta) if !meta.is_file() => bail!("{}, which is no plain file and is left alone", cannot()),
        _ => fs::rename(path, &old).with_context(cannot),
    }
}

fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    let [from, to] = [from, to].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (from, to) = (from?, to?);
    // SAFETY: both are NUL-terminated strings that live until the call returns.
    let done =
        unsafe { libc::renameat2(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::RENAME_NOREPLACE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The new path of an existing tape.
fn old_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    #[test]
    fn an_existing_tape_is_kept_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("t.tape");
        fs::write(&tape, "first").unwrap();
        drop(open(&tape).unwrap());
        assert_eq!(fs::read(&tape).unwrap(), b"first", "nothing was recorded");
        assert!(!dir.path().join("t.tape.old").exists());
        open(&tape).unwrap().begin();
        assert_eq!(fs::read(dir.path().join("t.tape.old")).unwrap(), b"first");
        assert_eq!(fs::metadata(&tape).unwrap().permissions().mode() & 0o777, 0o600);
        // a previous one gives way
        fs::write(&tape, "second").unwrap();
        open_patiently(&tape, |_| false).unwrap().begin();
        assert_eq!(fs::read(dir.path().join("t.tape.old")).unwrap(), b"second");
        let link = dir.path().join("l.tape");
        symlink("/etc/passwd", &link).unwrap();
        assert!(open(&link).is_err());
        assert!(open(dir.path()).is_err());
        assert!(open(Path::new("/dev/null")).is_err());
        assert!(open(&dir.path().join("no/such/dir.tape")).is_err());
        replace(&tape).unwrap();
        assert_eq!(fs::read(&tape).unwrap(), b"");
        assert!(replace(&link).is_err() && replace(dir.path()).is_err() && replace(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_tape_that_is_being_written_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let [tape, old] = ["t.tape", "t.tape.old"].map(|name| dir.path().join(name));
        let refused = |file: &Path| {
            let why = format!("{:#}", open(&tape).unwrap_err());
            assert!(why.contains("another record is writing") && why.contains(file.to_str().unwrap()), "{why}");
        };
        let first = open(&tape).unwrap().begin();
        refused(&tape);
        // neither when it was moved to where an old tape goes, which would be lost
        fs::rename(&tape, &old).unwrap();
        fs::write(&tape, "second").unwrap();
        refused(&old);
        assert_eq!(fs::read(&tape).unwrap(), b"second");
        drop(first);
        open(&tape).unwrap().begin();
        assert_eq!(fs::read(&old).unwrap(), b"second");
    }

    #[test]
    fn what_is_called_old_and_is_no_tape_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [tape, old, aim] = ["t.tape", "t.tape.old", "aim"].map(|name| dir.path().join(name));
        fs::write(&tape, "tape").unwrap();
        fs::write(&aim, "aim").unwrap();
        let refused = || {
            let why = format!("{:#}", open(&tape).unwrap_err());
            assert!(why.contains("t.tape.old"), "{why}");
            assert_eq!(fs::read(&tape).unwrap(), b"tape");
        };
        symlink(&aim, &old).unwrap();
        refused();
        assert_eq!((fs::read_link(&old).unwrap(), fs::read(&aim).unwrap()), (aim.clone(), b"aim".to_vec()));
        fs::remove_file(&old).unwrap();

        fs::create_dir(&old).unwrap();
        refused();
        fs::remove_dir(&old).unwrap();

        let name = CString::new(old.as_os_str().as_bytes()).unwrap();
        // SAFETY: name is a NUL-terminated string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        refused();
        assert!(fs::symlink_metadata(&old).unwrap().file_type().is_fifo());
    }
}
