//! The tapes that can be asked, by their names: those of the command line, and no other file. With `--redact` a tape is copied without what
//! its level takes out when it is first asked, to a file without a name, and the copy is asked.

use std::fs::{File, Metadata};
use std::io::{self, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use systape_answers::render::json::lossless;
use systape_answers::values::open::open;
use systape_events::values::spill;
use systape_format::reader::Tape;
use systape_format::redact::Redactor;

use crate::reports::repair::{RANDOM, RedactLevel, redact_to, redactor};

/// Redacted copies that are kept; one question is about two tapes at most.
const COPIES: usize = 4;
/// Most names that a sentence has.
const LISTED: usize = 5;

/// Tapes, each with its name.
#[derive(Debug)]
pub(super) struct Shelf {
    tapes: Vec<ShelvedTape>,
    /// What takes out facts about people and machines; None: they stay.
    redactor: Option<Redactor>,
    copies: Vec<RedactedCopy>,
    /// Number of times that a copy was asked for.
    asked: u64,
}

#[derive(Debug)]
struct ShelvedTape {
    path: PathBuf,
    name: String,
}

/// A file for copies of tapes, one after the other.
#[derive(Debug)]
struct RedactedCopy {
    file: File,
    /// Number of the tape that is in it, and what the tape's file was like.
    of: Option<(usize, FileStamp)>,
    /// When it was asked for, as [`Shelf::asked`] counts.
    used: u64,
}

/// What changes when a file is written: inode, size and time of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp(u64, u64, i64, i64);

impl From<Metadata> for FileStamp {
    fn from(metadata: Metadata) -> Self {
        Self(metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
    }
}

impl Shelf {
    /// The tapes in the files `paths`; `level`: what of them is taken out. Makes files, if something is.
    ///
    /// # Errors
    /// No file can be made.
    pub(super) fn new(paths: &[PathBuf], level: Option<RedactLevel>) -> Result<Self> {
        let mut tapes: Vec<ShelvedTape> = Vec::new();
        for path in paths {
            if tapes.iter().any(|tape| tape.path == *path) {
                continue;
            }
            // a path may say who it is about
            let mut name = match level {
                None => lossless(path.as_os_str().as_bytes()).into_owned(),
                Some(_) => format!("tape-{}", tapes.len() + 1),
            };
            while tapes.iter().any(|tape| tape.name == name) {
                name.push('+');
            }
            tapes.push(ShelvedTape { path: path.clone(), name });
        }
        let copies = (0..level.map_or(0, |_| COPIES.min(tapes.len()))).map(|_| RedactedCopy::new());
        let copies = copies.collect::<io::Result<_>>().context("--redact: no temporary file can be made")?;
        Ok(Self { tapes, redactor: level.map(redactor), copies, asked: 0 })
    }

    /// Files that are read to answer.
    pub(super) fn reads(&self) -> Vec<PathBuf> {
        let random = self.redactor.is_some().then(|| PathBuf::from(RANDOM));
        let tapes = self.tapes.iter().map(|tape| tape.path.clone());
        tapes.chain(self.copies.iter().map(RedactedCopy::path)).chain(random).collect()
    }

    /// Files that are asked, in the order of the numbers of [`Self::file`].
    pub(super) fn files(&self) -> Vec<PathBuf> {
        match self.redactor {
            None => self.tapes.iter().map(|tape| tape.path.clone()).collect(),
            Some(_) => self.copies.iter().map(RedactedCopy::path).collect(),
        }
    }

    /// What takes out facts about people and machines, if something does.
    pub(super) fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// The files and names of all tapes.
    pub(super) fn named(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.tapes.iter().map(|tape| (&*tape.path, Path::new(&tape.name)))
    }

    /// Name of a tape.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.tapes[at].name
    }

    /// The tape called `name`, or the only one if none is named.
    ///
    /// # Errors
    /// There is none of that name, or several are there to choose from.
    pub(super) fn find(&self, name: Option<&str>) -> Result<usize> {
        let Some(name) = name else {
            if self.tapes.len() > 1 {
                let first: Vec<&str> = self.tapes.iter().take(LISTED).map(|tape| &*tape.name).collect();
                let more = self.tapes.len() - first.len();
                let more = if more > 0 { format!(" and {more} more, which 'list' has") } else { String::new() };
                bail!("say which tape: {}{more}", first.join(", "));
            }
            return Ok(0);
        };
        self.tapes.iter().position(|tape| tape.name == name).ok_or_else(|| {
            let near = systape_abi::nearest(name, self.tapes.iter().map(|tape| &*tape.name));
            let near = near.first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            anyhow!("there is no tape of that name here: 'list' has their names{near}")
        })
    }

    /// Opens a tape, or its copy.
    ///
    /// # Errors
    /// The file is no tape, or cannot be read.
    pub(super) fn open(&mut self, at: usize) -> Result<Tape> {
        if self.redactor.is_none() {
            return open(&self.tapes[at].path);
        }
        let copy = self.copied(at)?;
        let file = self.copies[copy].file.try_clone()?;
        Tape::from_file(file).with_context(|| self.tapes[at].name.clone())
    }

    /// Number and path of the file that is asked about a tape.
    ///
    /// # Errors
    /// It would be a copy, and none can be made.
    pub(super) fn file(&mut self, at: usize) -> Result<(usize, PathBuf)> {
        if self.redactor.is_none() {
            return Ok((at, self.tapes[at].path.clone()));
        }
        let copy = self.copied(at)?;
        Ok((copy, self.copies[copy].path()))
    }

    /// The place of a redacted copy of the tape as it is now.
    fn copied(&mut self, at: usize) -> Result<usize> {
        let ShelvedTape { path, name } = &self.tapes[at];
        let metadata = std::fs::metadata(path).with_context(|| name.clone())?;
        if !metadata.is_file() {
            bail!("{name} is not a regular file");
        }
        let state = FileStamp::from(metadata);
        self.asked += 1;
        let there = self.copies.iter().position(|copy| copy.of == Some((at, state)));
        let oldest = || (0..self.copies.len()).min_by_key(|place| self.copies[*place].used);
        let place = there.or_else(oldest).context("no copy can be made")?;
        let copy = &mut self.copies[place];
        copy.used = self.asked;
        if there.is_none() {
            let Some(redactor) = &self.redactor else { bail!("nothing is to be taken out") };
            copy.fill(path, name, redactor)?;
            copy.of = Some((at, state));
        }
        Ok(place)
    }
}

impl RedactedCopy {
    fn new() -> io::Result<Self> {
        let file = spill::made()?;
        // analyze-sql opens it by its number
        // SAFETY: a flag of a descriptor that is open.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file, of: None, used: 0 })
    }

    /// Its path, in this process and those that it starts.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Copies the tape at `path`, which is called `name`.
    fn fill(&mut self, path: &Path, name: &str, redactor: &Redactor) -> Result<()> {
        self.of = None;
        self.file.set_len(0)?;
        self.file.rewind()?;
        // not by the function that opens tapes: its errors have the path, which may say who it is about
        let tape = File::open(path).context("cannot open it").and_then(|file| Ok(Tape::from_file(file)?));
        tape.and_then(|tape| redact_to(&tape, redactor, &self.file)).with_context(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(paths: &[&str], level: Option<RedactLevel>) -> Shelf {
        Shelf::new(&paths.iter().map(PathBuf::from).collect::<Vec<_>>(), level).unwrap()
    }

    #[test]
    fn only_names_are_found() {
        let all = shelf(&["a/x.tape", "b/x.tape", "a/x.tape"], None);
        assert_eq!((all.find(Some("b/x.tape")).unwrap(), all.files().len()), (1, 2));
        for other in ["", ".", "/etc/passwd", "x.tape", "./a/x.tape", "a/../a/x.tape", "a/x.tape/", "a/x.tape\0"] {
            assert!(all.find(Some(other)).is_err(), "{other}");
        }
        assert!(all.find(Some("a/y.tape")).unwrap_err().to_string().contains("did you mean 'a/x.tape'?"));
        assert_eq!(all.find(None).unwrap_err().to_string(), "say which tape: a/x.tape, b/x.tape");
        assert_eq!(shelf(&["a.tape"], None).find(None).unwrap(), 0);
    }

    #[test]
    fn no_two_have_one_name() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = PathBuf::from(std::ffi::OsString::from_vec(b"a\xff".to_vec()));
        let all = Shelf::new(&[odd, PathBuf::from("a\\xff")], None).unwrap();
        assert_eq!((all.name(0), all.name(1)), ("a\\xff", "a\\xff+"));
    }

    #[test]
    fn redacted_tapes_are_numbered_and_their_paths_are_said_nowhere() {
        let mut all = shelf(&["/home/eva/a.tape", "/home/eva/b.tape"], Some(RedactLevel::Paths));
        assert_eq!((all.find(Some("tape-2")).unwrap(), all.copies.len()), (1, 2));
        assert!(all.find(Some("/home/eva/a.tape")).is_err());
        let error = all.open(1).unwrap_err().to_string();
        assert!(error.contains("tape-2") && !error.contains("eva"), "{error}");
    }

    #[test]
    fn a_copy_is_made_again_when_the_tape_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let tape = |name: &str| {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes").join(name);
            std::fs::copy(from, dir.path().join("t.tape")).unwrap();
        };
        tape("mix-1.1.tape");
        let mut all = Shelf::new(&[dir.path().join("t.tape")], Some(RedactLevel::All)).unwrap();
        let first = all.open(0).unwrap().len_bytes();
        assert_eq!((all.open(0).unwrap().len_bytes(), all.file(0).unwrap().0), (first, 0));
        tape("stacks-1.2.tape");
        let second = all.open(0).unwrap();
        assert!(second.len_bytes() != first && !second.session().redacted.is_empty());
    }
}
