//! What a file is that was to be executed, by its first bytes: a script or an ELF file, and the interpreter that it asks for.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;

/// Bytes read of a file. The kernel reads a first line of 256; an ELF file has the name of its interpreter behind its headers.
const HEAD: u64 = 4096;
/// Longest first line.
const LINE: usize = 256;

/// What a file is for exec: the kind of its first bytes, and whom it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// A script that begins with `#!` and this name.
    Script(Vec<u8>),
    /// A program of this architecture, with its loader; None: it needs none.
    Elf(Option<Vec<u8>>),
    /// An ELF file of another one.
    OtherElf,
    /// Any other file.
    Other,
}

impl Executed {
    /// Word for the file in the table `exec:interpreter`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Script(_) => "script",
            Self::Elf(_) => "elf",
            Self::OtherElf => "other-elf",
            Self::Other => "other",
        }
    }

    /// What `file` is; None: too much of it would have to be read for that, or it is damaged.
    pub(crate) fn read(file: &File) -> Option<Self> {
        let mut head = Vec::new();
        file.take(HEAD).read_to_end(&mut head).ok()?;
        Self::of(&head)
    }

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

fn elf(bytes: &[u8]) -> Option<Executed> {
    let number = |at: usize, len: usize| {
        let bytes = bytes.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    let (class, order) = (*bytes.get(4)?, *bytes.get(5)?);
    let layout = if class == 2 { ELF64 } else { ELF32 };
    let little = 1;
    if order != little || !MACHINES.contains(&(class, number(18, 2)?)) {
        return Some(Executed::OtherElf);
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
        return Some(Executed::Elf(Some(CStr::from_bytes_until_nul(name).ok()?.to_bytes().to_vec())));
    }
    Some(Executed::Elf(None))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::*;

    fn named(text: &[u8]) -> Option<Vec<u8>> {
        match Executed::of(text)? {
            Executed::Script(name) | Executed::Elf(Some(name)) => Some(name),
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
            assert_eq!(Executed::of(other.as_bytes()), Some(Executed::Other), "{other:?}");
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
        assert_eq!(Executed::of(&other), Some(Executed::OtherElf));
        // cut or damaged anywhere it is no other name
        for at in 0..head.len().min(1024) {
            let cut = named(&head[..at]);
            assert!(cut.is_none() || cut.as_ref() == Some(&name), "{at}: {cut:?}");
            let mut damaged = head.to_vec();
            damaged[at] ^= 0xff;
            let _ = Executed::of(&damaged);
        }
    }
}
