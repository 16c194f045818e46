//! Files that a report writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use systape_format::header::MAGIC;

#[cfg(not(unix))]
use self::elsewhere as system;
#[cfg(unix)]
use self::unix as system;

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

pub use self::system::permissions_like;

/// A file made for a report, and removed if the report fails.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl NewFile {
    /// A new file readable only by its owner. O_EXCL: it changes neither an existing file nor the target of a link.
    ///
    /// # Errors
    /// It exists, or cannot be made.
    pub fn private(path: &Path) -> io::Result<Self> {
        Self::open(path, system::readable(&mut OpenOptions::new(), 0o600))
    }

    /// A new file with these permissions at most ([`permissions_like`]), or the existing regular file, which stays even if
    /// the report fails, and which nobody may read then who may not read the tape.
    ///
    /// # Errors
    /// It is a link, a device, a pipe or a directory, a tape, somebody else's who may not read the tape, or cannot be opened.
    pub fn replacing(path: &Path, permissions: u32) -> io::Result<Self> {
        match Self::open(path, system::readable(&mut OpenOptions::new(), permissions)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
        if is_tape(path) {
            return Err(io::Error::other("it is a tape, and no tape is overwritten: name another file"));
        }
        let file = system::open(path, OpenOptions::new().write(true))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        system::narrow(&file, permissions)?;
        Ok(Self { path: path.to_owned(), file, kept: true })
    }

    /// Replaces the file's contents by `bytes`, and keeps the file.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(bytes)?;
        self.kept = true;
        Ok(())
    }

    fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let file = options.write(true).create_new(true).open(path)?;
        Ok(Self { path: path.to_owned(), file, kept: false })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Directory of the file.
    pub fn dir(&self) -> &Path {
        self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Contents of the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Keeps the file.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

/// Whether a regular file begins like a tape. One that cannot be read is none.
fn is_tape(path: &Path) -> bool {
    let open = system::open(path, OpenOptions::new().read(true));
    let mut head = [0; MAGIC.len()];
    open.is_ok_and(|mut file| {
        file.metadata().is_ok_and(|metadata| metadata.is_file()) && file.read_exact(&mut head).is_ok()
    }) && head == MAGIC
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // What was begun is ours and of no use; left behind, it does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_is_not_replaced() {
        let dir = std::env::temp_dir().join(format!("systape-output-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (tape, page) = (dir.join("t.tape"), dir.join("p.html"));
        std::fs::write(&tape, [&MAGIC[..], b"rest"].concat()).unwrap();
        std::fs::write(&page, b"<html>").unwrap();
        let error = NewFile::replacing(&tape, 0o600).unwrap_err().to_string();
        assert!(error.contains("no tape is overwritten"), "{error}");
        assert_eq!(std::fs::read(&tape).unwrap().len(), 12);
        NewFile::replacing(&page, 0o600).unwrap().replace(b"new").unwrap();
        assert_eq!(std::fs::read(&page).unwrap(), b"new");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
