//! Finds the tapes of directories.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// How the names of tapes in a directory end.
const ENDING: &str = "tape";

/// Most tapes of one answer: each is a rule of the sandbox, and a row in memory.
const MOST: usize = 10_000;

/// The tapes that `named` stands for: a file for itself, a directory for the regular files in it, not below it, whose
/// names end in `.tape`. Those of a directory are in order of their names.
///
/// # Errors
/// A directory cannot be read, there are none, or too many.
pub fn found<'a>(named: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<PathBuf>> {
    let (mut found, mut empty) = (Vec::new(), Vec::new());
    for path in named {
        let before = found.len();
        if path.is_dir() {
            in_directory(path, &mut found)?;
            found[before..].sort();
        } else {
            found.push(path.clone());
        }
        if found.len() == before {
            empty.push(path.display().to_string());
        }
    }
    if found.is_empty() {
        bail!("there is no tape (*.{ENDING}) in {}", empty.join(", "));
    }
    Ok(found)
}

fn in_directory(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let why = || format!("cannot list {}", directory.display());
    for entry in std::fs::read_dir(directory).with_context(why)? {
        let path = entry.with_context(why)?.path();
        // a link is followed, as when it is named
        if path.extension() == Some(OsStr::new(ENDING)) && path.is_file() {
            if found.len() == MOST {
                bail!("more than {MOST} tapes: name fewer");
            }
            // of the current directory, as one would type it
            found.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_stand_for_their_tapes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["b.tape", "a.tape", "notes", "tape"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir_all(at("below.tape")).unwrap();
        std::fs::write(at("below.tape/c.tape"), "").unwrap();
        let found = |named: &[PathBuf]| found(named.iter());
        let both = [at("a.tape"), at("b.tape")];
        assert_eq!(found(&[dir.path().to_owned()]).unwrap(), both);
        assert_eq!(found(&[at("below.tape"), at("notes")]).unwrap(), [at("below.tape/c.tape"), at("notes")]);
        // whoever names it hears what is wrong with it
        assert_eq!(found(&[at("gone")]).unwrap(), [at("gone")]);
        std::fs::create_dir(at("none")).unwrap();
        assert!(found(&[at("none")]).unwrap_err().to_string().contains("there is no tape (*.tape) in"));
        for name in 0..=MOST {
            std::fs::write(at("none").join(format!("{name}.tape")), "").unwrap();
        }
        assert_eq!(found(&[at("none")]).unwrap_err().to_string(), "more than 10000 tapes: name fewer");
    }
}
