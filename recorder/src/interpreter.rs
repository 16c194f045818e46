//! Which interpreter a program asks for that could not be executed: exec fails with the same error as if the program itself were missing.
//!
//! No program of the kernel can see that name: it is gone when the call returns, and nothing is traced between. So the file is read
//! after the failure. The process that opens files ([`crate::opening`]) opens it as the one that failed would have, and hands over its
//! first bytes; they are taken apart here, with bounds. What the file says may have changed since.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use systape_symbols::{Carrier, open_regular};

use crate::foreign::Wanted;

/// Bytes read of a file. The kernel reads a first line of 256; an ELF file has the name of its interpreter behind its headers.
const HEAD: u64 = 4096;
/// Longest first line.
const LINE: usize = 256;
/// Scripts whose interpreter is a script, as often as the kernel does it.
const DEPTH: usize = 5;

/// Where the paths of the process that failed begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// At the recorder's own root; its directory, if that is known.
    Ours(Option<Vec<u8>>),
    /// At those of this process, by its id in /proc, while it lives.
    Of(u32),
}

/// An exec that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// See [`Base`].
    pub base: Base,
    /// The program's path as the call had it.
    pub path: Vec<u8>,
}

/// What a file is for exec.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Head {
    /// It begins with `#!` and this name.
    Script(Vec<u8>),
    /// A program of this architecture, with its loader; None: it needs none.
    Elf(Option<Vec<u8>>),
    /// An ELF file of another one.
    OtherElf,
    /// None of these.
    Other,
}

impl Head {
    fn kind(&self) -> &'static str {
        match self {
            Self::Script(_) => "script",
            Self::Elf(_) => "elf",
            Self::OtherElf => "other-elf",
            Self::Other => "other",
        }
    }

    /// None: too much of the file would have to be read for it, or it is damaged.
    fn of(bytes: &[u8]) -> Option<Self> {
        if let Some(line) = bytes.strip_prefix(b"#!") {
            return Some(
                script(&line[..line.len().min(LINE - 2)]).map_or(Self::Other, |name| Self::Script(name.to_vec())),
            );
        }
        if bytes.starts_with(b"\x7fELF") { elf(bytes) } else { Some(Self::Other) }
    }
}

/// The name in a first line, as load_script() in fs/binfmt_script.c finds it: between blanks, up to the end of the line.
fn script(line: &[u8]) -> Option<&[u8]> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(|&byte| byte == b'\n');
    let text = &line[..end.unwrap_or(line.len())];
    let name = &text[text.iter().position(|byte| !blank(byte))?..];
    let name_end = name.iter().position(|byte| blank(byte) || *byte == 0);
    // without its end the name may go on; that of a short file is the file's
    if end.is_none() && name_end.is_none() && line.len() == LINE - 2 {
        return None;
    }
    Some(&name[..name_end.unwrap_or(name.len())]).filter(|name| !name.is_empty())
}

/// include/uapi/linux/elf.h. Offsets of a file header: type, machine, program headers, their size and number; of a program header:
/// offset and size in the file.
struct Layout {
    wide: bool,
    phoff: usize,
    phentsize: usize,
    offset: usize,
    filesz: usize,
}

const ELF64: Layout = Layout { wide: true, phoff: 32, phentsize: 54, offset: 8, filesz: 32 };
const ELF32: Layout = Layout { wide: false, phoff: 28, phentsize: 42, offset: 4, filesz: 16 };
const PT_INTERP: u64 = 3;
/// Machines whose programs run here: class and number.
const MACHINES: &[(u8, u64)] =
    if cfg!(target_arch = "x86_64") { &[(2, 62), (1, 62), (1, 3)] } else { &[(2, 183), (1, 40)] };

fn elf(bytes: &[u8]) -> Option<Head> {
    let number = |at: usize, len: usize| {
        let bytes = bytes.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    let (class, order) = (*bytes.get(4)?, *bytes.get(5)?);
    let layout = if class == 2 { ELF64 } else { ELF32 };
    let little = 1;
    if order != little || !MACHINES.contains(&(class, number(18, 2)?)) {
        return Some(Head::OtherElf);
    }
    let word = if layout.wide { 8 } else { 4 };
    let (phoff, phentsize) = (number(layout.phoff, word)?, number(layout.phentsize, 2)?);
    for at in 0..number(layout.phentsize + 2, 2)? {
        let header = usize::try_from(phoff.checked_add(at * phentsize)?).ok()?;
        if number(header, 4)? != PT_INTERP {
            continue;
        }
        let place = |at: usize| usize::try_from(number(header.checked_add(at)?, word)?).ok();
        let (offset, len) = (place(layout.offset)?, place(layout.filesz)?);
        let name = bytes.get(offset..offset.checked_add(len)?)?;
        return Some(Head::Elf(Some(CStr::from_bytes_until_nul(name).ok()?.to_bytes().to_vec())));
    }
    Some(Head::Elf(None))
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What asks for it: script, elf, other-elf, other.
    pub kind: &'static str,
    /// The file that asks for it: the program, or the interpreter of a script.
    pub file: Vec<u8>,
    /// Its name as it stands there; None: the file asks for none.
    pub interpreter: Option<Vec<u8>>,
    /// Why it cannot be opened, an errno; 0: it can, now.
    pub error: u16,
}

/// Reads what the program asks for; None: it is not there itself, or that is not known.
pub(crate) fn find(carrier: &Carrier, failed: &Failed) -> Option<Found> {
    let open = |path: &[u8]| {
        let answer = carrier.open(&Wanted::Executed.request(&request(&failed.base, path)?));
        Some(answer.map(|(head, _)| head).map_err(|unread| unread.why.parse::<u16>().ok()))
    };
    let head = Head::of(&open(&failed.path)?.ok()?)?;
    let (mut file, mut kind) = (failed.path.clone(), head.kind());
    let (mut next, mut first) = (head, None);
    for _ in 0..DEPTH {
        let is_script = matches!(next, Head::Script(_));
        let (Head::Script(name) | Head::Elf(Some(name))) = next else { break };
        match open(&name)? {
            Err(Some(error)) if is_missing(error) => return Some(Found { kind, file, interpreter: Some(name), error }),
            Err(_) => return None,
            Ok(bytes) => {
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
                next = Head::of(&bytes)?;
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
fn request(base: &Base, path: &[u8]) -> Option<Vec<u8>> {
    let (whose, path) = match base {
        Base::Of(pid) => (*pid, path.to_vec()),
        Base::Ours(_) if path.starts_with(b"/") => (0, path.to_vec()),
        Base::Ours(dir) => (0, [dir.as_deref()?, b"/", path].concat()),
    };
    Some([&whose.to_le_bytes()[..], &path].concat())
}

/// What [`find`] asks for, in the process that opens: the first bytes of a file.
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
    let link = format!("/proc/self/fd/{}", named.as_raw_fd());
    let file = open_regular(Path::new(&link)).map_err(errno)?.ok_or("it is no regular file")?;
    let mut head = Vec::new();
    (&file).take(HEAD).read_to_end(&mut head).map_err(errno)?;
    Ok((head, file))
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

    fn named(text: &[u8]) -> Option<Vec<u8>> {
        match Head::of(text)? {
            Head::Script(name) | Head::Elf(Some(name)) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn a_first_line_as_the_kernel_reads_it() {
        for (line, name) in [
            ("#!/bin/sh\n", "/bin/sh"),
            ("#! \t/bin/sh -e x\n", "/bin/sh"),
            ("#!/bin/sh\r\nexit", "/bin/sh\r"),
            ("#!/bin/sh x", "/bin/sh"),
            ("#!/bin/sh", "/bin/sh"),
            ("#!./a\0b\n", "./a"),
        ] {
            assert_eq!(named(line.as_bytes()).as_deref(), Some(name.as_bytes()), "{line:?}");
        }
        let long = [b"#!/", "x".repeat(253).as_bytes(), b"\n"].concat();
        assert_eq!(named(&long), None, "its end is not in the first 256 bytes");
        let fits = [b"#!/", "x".repeat(252).as_bytes(), b"\n"].concat();
        assert_eq!(named(&fits).map(|name| name.len()), Some(253));
        for other in ["", "#", "#!", "#!\n", "#! \n", "text\n"] {
            assert_eq!(Head::of(other.as_bytes()), Some(Head::Other), "{other:?}");
        }
    }

    #[test]
    fn a_loader_of_a_program() {
        let own = fs::read("/proc/self/exe").unwrap();
        let head = &own[..own.len().min(HEAD as usize)];
        let name = named(head).expect("tests are linked dynamically");
        assert!(name.starts_with(b"/") && Path::new(OsStr::from_bytes(&name)).exists(), "{name:?}");
        let mut other = head.to_vec();
        other[18] = 0xff;
        assert_eq!(Head::of(&other), Some(Head::OtherElf));
        // cut or damaged anywhere it is no other name
        for at in 0..head.len().min(1024) {
            let cut = named(&head[..at]);
            assert!(cut.is_none() || cut.as_ref() == Some(&name), "{at}: {cut:?}");
            let mut damaged = head.to_vec();
            damaged[at] ^= 0xff;
            let _ = Head::of(&damaged);
        }
    }

    #[test]
    fn links_lead_to_where_they_lead_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "#!/x\n").unwrap();
        symlink("/file", path("link")).unwrap();
        let resolved = |name: &str, resolve| beneath(dir.path(), name.as_bytes(), resolve).is_ok();
        assert!(resolved("/link", libc::RESOLVE_IN_ROOT) && resolved("file", libc::RESOLVE_BENEATH));
        assert!(!resolved("link", libc::RESOLVE_BENEATH) && !resolved("../x", libc::RESOLVE_BENEATH));
        let asked = |path: &Path| open_asked(&request(&Base::Ours(None), path.as_os_str().as_bytes()).unwrap());
        assert_eq!(asked(&path("file")).unwrap().0, b"#!/x\n");
        assert_eq!(asked(&path("none")).unwrap_err(), libc::ENOENT.to_string());
        assert_eq!(asked(&path("file/x")).unwrap_err(), libc::ENOTDIR.to_string());
        assert_eq!(asked(dir.path()).unwrap_err(), "it is no regular file");
        // of a process that is gone nothing is missing
        let gone = request(&Base::Of(u32::MAX), b"/bin/sh").unwrap();
        assert_eq!(open_asked(&gone).unwrap_err(), "its process has ended");
        assert_eq!(request(&Base::Ours(None), b"relative"), None);
        assert!(open_asked(b"").is_err());
    }
}
