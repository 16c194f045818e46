//! A process that answers many questions, for tests that ask thousands: this program once more, without the start, the command line's
//! tables and the files of a new process for each answer. What it prints is what `analyze` prints; only the sandbox is left out.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::{Child, Command, ExitCode};

use systape_analyzer::run;
use systape_answers::values::output::set_size;

use super::Output;

/// Makes this program such a process.
const TASK: &str = "SYSTAPE_ASKER";

/// Such a process, and what it prints to.
pub struct Asker {
    child: Child,
    line: UnixStream,
    printed: [File; 2],
}

impl Asker {
    /// Begins one that works in `dir`.
    pub fn begin(dir: &Path) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let printed = [(); 2].map(|()| tempfile::tempfile().unwrap());
        let [out, err] = printed.each_ref().map(|file| file.try_clone().unwrap());
        let child = Command::new(std::env::current_exe().unwrap())
            // one thread: libtest tells of no test there that takes long
            .args(["--exact", "common::asker::answers", "--nocapture", "--quiet", "--test-threads=1"])
            .env(TASK, "1")
            // what is asked here is small
            .env("RAYON_NUM_THREADS", "1")
            .current_dir(dir)
            .stdin(OwnedFd::from(theirs))
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap();
        Self { child, line: ours, printed }
    }

    /// What `analyze` with `words` gives.
    pub fn ask<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> Output {
        let words = words.into_iter().collect::<Vec<_>>().join("\0");
        assert!(!words.contains('\n'), "{words}");
        let mut status = [0];
        let asked = self.line.write_all(format!("{words}\n").as_bytes());
        let answered = asked.and_then(|()| self.line.read_exact(&mut status));
        let [out, err] = self.printed.each_ref().map(text);
        answered.unwrap_or_else(|error| panic!("{words:?}: {error}\n{out}\n{err}"));
        Output { status: status[0].into(), out, err }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        // nothing more is asked: it ends
        let _ = self.line.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

/// All of `file`, whose place in it is the other process's.
fn text(file: &File) -> String {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The number of `code`, which does not give it.
fn number(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap()
}

/// Answers until nobody asks. Of a test itself it does nothing.
#[test]
fn answers() {
    if std::env::var_os(TASK).is_none() {
        return;
    }
    let line = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let printed = [std::io::stdout().as_fd(), std::io::stderr().as_fd()].map(|fd| fd.try_clone_to_owned().unwrap());
    let mut printed = printed.map(File::from);
    for words in BufReader::new(line.try_clone().unwrap()).lines() {
        let words = words.unwrap();
        for file in &mut printed {
            file.set_len(0).unwrap();
            file.rewind().unwrap();
        }
        // `@80`: as on a terminal that is so wide
        let (size, words) =
            match words.split_once('\0').and_then(|(first, rest)| Some((first.strip_prefix('@')?, rest))) {
                Some((cells, rest)) => (cells.parse().unwrap(), rest),
                None => (0, &*words),
            };
        set_size(size, 0);
        let words = std::iter::once("analyze").chain(words.split('\0').filter(|word| !word.is_empty()));
        let status = catch_unwind(|| number(run(words.map(Into::into)))).unwrap_or(101);
        (&line).write_all(&[status]).unwrap();
    }
}
