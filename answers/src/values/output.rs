//! Lines of text and how they look, for which a closed pipe is no error; and files that a report writes.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use systape_format::header::MAGIC;

use crate::values::spool::STDIN;

/// Whether `error` means that the reader of our output has closed it (`| head`).
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Begins the colour of a number that is not exact, and ends any.
pub const INEXACT: &str = "\x1b[36m";
/// End of what [`INEXACT`] begins.
pub const PLAIN: &str = "\x1b[m";

/// See [`begin_text`].
static COLORED: AtomicBool = AtomicBool::new(false);
/// The same.
static PLAIN_ASCII: AtomicBool = AtomicBool::new(false);

/// Begins lines of text: in colours if they are `wanted`, or, if nothing is said, where standard output is a terminal, not
/// a dumb one, and NO_COLOR is not set, which is given back; in ASCII where the locale has no other characters.
/// It asks for what is given up before a tape is read.
pub fn begin_text(wanted: Option<bool>) -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = wanted.unwrap_or_else(|| io::stdout().is_terminal() && !dumb && !no_color);
    COLORED.store(colored, Ordering::Relaxed);
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    PLAIN_ASCII.store(
        locale.and_then(|locale| locale.into_string().ok()).is_some_and(|name| is_ascii(&name)),
        Ordering::Relaxed,
    );
    colored
}

/// Whether a locale of that name has ASCII alone.
fn is_ascii(locale: &str) -> bool {
    ["C", "POSIX"].contains(&locale)
}

/// `text` without the characters beyond ASCII that reports draw with; names of others stay as they are.
fn in_ascii(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '–' | '—' | '−' => all.push('-'),
            '→' => all.push_str("->"),
            '…' => all.push_str("..."),
            'µ' | 'μ' => all.push('u'),
            '×' => all.push('x'),
            '≥' => all.push_str(">="),
            '≤' => all.push_str("<="),
            '▁' | '▂' => all.push('.'),
            '▃' | '▄' => all.push(':'),
            '▅' | '▆' => all.push('+'),
            '▇' | '█' => all.push('#'),
            other => all.push(other),
        }
    }
    all
}

/// Whether text is written to a terminal that takes colours.
pub fn colored() -> bool {
    COLORED.load(Ordering::Relaxed)
}

/// Writes one line of text and its newline.
///
/// # Errors
/// It cannot be written.
pub fn line(out: &mut impl Write, text: &str) -> io::Result<()> {
    lines(out, text)?;
    out.write_all(b"\n")
}

/// Writes lines of text; on a terminal numbers that are not exact stand out.
///
/// # Errors
/// They cannot be written.
pub fn lines(out: &mut impl Write, text: &str) -> io::Result<()> {
    let ascii = (PLAIN_ASCII.load(Ordering::Relaxed) && !text.is_ascii()).then(|| in_ascii(text));
    let text = ascii.as_deref().unwrap_or(text);
    if colored() { out.write_all(painted(text).as_bytes()) } else { out.write_all(text.as_bytes()) }
}

/// `text` with colour around numbers that have a mark of [`crate::render::mark`] before them.
fn painted(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for word in text.split_inclusive([' ', '\n', '\t', '(', ',', ';']) {
        let number = word.trim_start_matches(['>', '<', '=', '~']);
        let mark = &word[..word.len() - number.len()];
        let digits = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        if [">=", "<=", "~"].contains(&mark) && digits > 0 {
            let (bound, rest) = word.split_at(mark.len() + digits);
            all.extend([INEXACT, bound, PLAIN, rest]);
        } else {
            all.push_str(word);
        }
    }
    all
}

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
        Self::open(path, OpenOptions::new().mode(0o600))
    }

    /// A new file with these permissions at most ([`permissions_like`]), or the existing regular file, which stays even if
    /// the report fails, and which nobody may read then who may not read the tape.
    ///
    /// # Errors
    /// It is a link, a device, a pipe or a directory, a tape, somebody else's who may not read the tape, or cannot be opened.
    pub fn replacing(path: &Path, permissions: u32) -> io::Result<Self> {
        match Self::open(path, OpenOptions::new().mode(permissions)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
        if is_tape(path) {
            return Err(io::Error::other("it is a tape, and no tape is overwritten: name another file"));
        }
        let open = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        let file = open.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => io::Error::other("it is a symbolic link: name the file it points to"),
            _ => error,
        })?;
        narrow(&file, permissions)?;
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
    let open =
        OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let mut head = [0; MAGIC.len()];
    open.is_ok_and(|mut file| {
        file.metadata().is_ok_and(|metadata| metadata.is_file()) && file.read_exact(&mut head).is_ok()
    }) && head == MAGIC
}

/// Takes from an existing file readers that are more than `permissions` has.
fn narrow(file: &File, permissions: u32) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // SAFETY: asks for a number.
    if permissions & 0o004 == 0 && metadata.uid() != unsafe { libc::geteuid() } {
        let whose = metadata.uid();
        return Err(io::Error::other(format!("it is uid {whose}'s, who may not read the tape: name another file")));
    }
    let more = metadata.mode() & 0o044 & !permissions;
    if more != 0 {
        file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777 & !more))?;
    }
    Ok(())
}

/// Permissions of a file that is made from `tapes`: who may read all of them may read it. None: its owner.
pub fn permissions_like<'a>(tapes: impl IntoIterator<Item = &'a Path>) -> u32 {
    let of = |tape: &Path| {
        let metadata = if tape == Path::new(STDIN) { stdin() } else { std::fs::metadata(tape) };
        // nothing is known of the readers of a pipe
        metadata.ok().filter(std::fs::Metadata::is_file).map_or(0o600, |metadata| 0o600 | metadata.mode() & 0o666)
    };
    tapes.into_iter().map(of).reduce(|all, one| all & one).unwrap_or(0o600)
}

fn stdin() -> io::Result<std::fs::Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
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
    fn a_locale_without_characters_gets_ascii() {
        assert_eq!(in_ascii("1–2 s ▁█▄ a → b …"), "1-2 s .#: a -> b ...");
        assert_eq!(in_ascii("/tmp/ü"), "/tmp/ü");
        assert_eq!(
            (is_ascii("C"), is_ascii("POSIX"), is_ascii("C.UTF-8"), is_ascii("de_DE.UTF-8")),
            (true, true, false, false)
        );
    }

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

    #[test]
    fn numbers_that_are_not_exact_stand_out() {
        assert_eq!(painted("  >=12.5%  a"), "  \x1b[36m>=12.5\x1b[m%  a");
        assert_eq!(painted("(<=3 ms), ~7"), "(\x1b[36m<=3\x1b[m ms), \x1b[36m~7\x1b[m");
        for plain in ["12.5 ms", "operator>=(x) ~/x >= 5", "=>5 >>=6", "", "\n"] {
            assert_eq!(painted(plain), plain);
        }
    }
}
