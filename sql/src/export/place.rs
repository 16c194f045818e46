//! Where files are: `DIR/TABLE/host=H/date=D/TAPE-NN.ENDING`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::below;

/// The word of the partitions for what is not known.
const UNKNOWN: &str = "__HIVE_DEFAULT_PARTITION__";

/// The files of one table of one tape.
#[derive(Debug)]
pub(crate) struct Place {
    table: PathBuf,
    dir: PathBuf,
    tape: String,
    ending: &'static str,
    made: usize,
    permissions: u32,
}

impl Place {
    /// Makes the place of `table` in `dir`.
    pub(crate) fn new(
        dir: &Path,
        table: &str,
        host: Option<&str>,
        date: Option<&str>,
        tape: &str,
        ending: &'static str,
    ) -> Self {
        let part =
            |key: &str, value: Option<&str>| format!("{key}={}", value.map_or_else(|| UNKNOWN.to_owned(), encoded));
        let parts = [table.to_owned(), part("host", host), part("date", date)];
        let (table, dir) = (dir.join(table), below(dir, &parts));
        Self { table, dir, tape: tape.to_owned(), ending, made: 0, permissions: 0o600 }
    }

    /// Makes it one whose files have `permissions`; without it they are for their owner alone.
    pub(crate) fn readable_by(self, permissions: u32) -> Self {
        Self { permissions, ..self }
    }

    /// A new file, the next of the tape, that has its name when it is whole.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn next(&mut self) -> Result<PartialFile> {
        fs::create_dir_all(&self.dir).with_context(|| format!("cannot make {}", self.dir.display()))?;
        let name = format!("{}-{:02}.{}", self.tape, self.made, self.ending);
        self.made += 1;
        PartialFile::new(&self.dir, &name, self.permissions)
    }

    /// Removes files of the tape that are none of those made now.
    ///
    /// # Errors
    /// One cannot be removed.
    pub(crate) fn tidy(&self) -> Result<()> {
        let begins = format!("{}-", self.tape);
        let ends = format!(".{}", self.ending);
        let mut dirs = vec![self.table.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type()?.is_dir() {
                    // tables are three deep
                    if dir.components().count() < self.dir.components().count() {
                        dirs.push(entry.path());
                    }
                    continue;
                }
                let number = name.strip_prefix(&begins).and_then(|rest| rest.strip_suffix(&ends));
                let old = number.is_some_and(|number| {
                    dir != self.dir || number.parse().is_ok_and(|number: usize| number >= self.made)
                });
                if old {
                    fs::remove_file(entry.path()).with_context(|| entry.path().display().to_string())?;
                }
            }
        }
        Ok(())
    }
}

/// A file that is being written; removed if it does not become whole.
#[derive(Debug)]
pub(crate) struct PartialFile {
    /// Its contents.
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    whole: bool,
}

impl PartialFile {
    fn new(dir: &Path, name: &str, permissions: u32) -> Result<Self> {
        // readers take names that begin with a dot for none of theirs
        let (temporary, path) = (dir.join(format!(".{name}.part")), dir.join(name));
        let made = || {
            // one of a run that was killed
            match fs::remove_file(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            File::options().write(true).create_new(true).mode(permissions).open(&temporary)
        };
        let file = made().with_context(|| format!("cannot write {}", temporary.display()))?;
        Ok(Self { file, temporary, path, whole: false })
    }

    /// A descriptor to write with.
    ///
    /// # Errors
    /// There are no more.
    pub(crate) fn file(&self) -> Result<File> {
        Ok(self.file.try_clone()?)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub(crate) fn end(mut self) -> Result<()> {
        fs::rename(&self.temporary, &self.path).with_context(|| self.path.display().to_string())?;
        self.whole = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.whole {
            // what was begun is of no use; left behind, nobody reads it
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes `bytes` to file `name` of `dir`, with `permissions`, in place of what was there.
///
/// # Errors
/// It cannot be written.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8], permissions: u32) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let begun = PartialFile::new(dir, name, permissions)?;
    begun.file()?.write_all(bytes).with_context(|| format!("cannot write {name}"))?;
    begun.end()
}

/// `text` as a part of a path: what is neither letter, digit, dot, dash nor underscore is %XX.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let text = text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    text.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_leaves_its_directory() {
        assert_eq!(encoded("web-1.example_org"), "web-1.example_org");
        assert_eq!(encoded("../a b/ü"), "..%2Fa%20b%2F%C3%BC");
        let place = Place::new(Path::new("d"), "sched", Some("/etc"), None, "00ff", "parquet");
        assert_eq!(place.dir, Path::new("d/sched/host=%2Fetc/date=__HIVE_DEFAULT_PARTITION__"));
    }
}
