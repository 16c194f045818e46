//! Opens the tape: readable for its owner only, never through a symlink, never over something that is no plain file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::pipeline::Sink;

/// Opens `path` for a new tape; an existing one is kept as PATH.old. `-` is standard output.
///
/// # Errors
/// When something other than a plain file is there, or the directory cannot be written.
pub fn open(path: &Path) -> Result<Sink> {
    if path == Path::new("-") {
        return Ok(Sink::Stream(Box::new(io::stdout()) as Box<dyn Write + Send>));
    }
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => bail!("-o {}: is a directory", path.display()),
        Ok(meta) if !meta.is_file() => bail!("-o {}: is not a plain file and is left alone", path.display()),
        Ok(_) => {
            let old = old_name(path);
            fs::rename(path, &old).with_context(|| {
                format!("-o {}: cannot keep the existing tape as {}", path.display(), old.display())
            })?;
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e).with_context(|| format!("-o {}: cannot look at it", path.display())),
    }
    let file = create(path).with_context(|| format!("-o {}: cannot create the tape", path.display()))?;
    Ok(Sink::File(file))
}

fn create(path: &Path) -> io::Result<File> {
    // create_new: what appears here between the look and the open is not ours to overwrite
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Where an existing tape goes.
fn old_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn an_existing_tape_is_kept_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("t.tape");
        fs::write(&tape, "first").unwrap();
        open(&tape).unwrap();
        assert_eq!(fs::read(dir.path().join("t.tape.old")).unwrap(), b"first");
        assert_eq!(fs::metadata(&tape).unwrap().permissions().mode() & 0o777, 0o600);
        let link = dir.path().join("l.tape");
        symlink("/etc/passwd", &link).unwrap();
        assert!(open(&link).is_err());
        assert!(open(dir.path()).is_err());
        assert!(open(Path::new("/dev/null")).is_err());
        assert!(open(&dir.path().join("no/such/dir.tape")).is_err());
    }
}
