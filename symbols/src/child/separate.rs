//! Debug information kept apart from the program: by build id, or by the name and checksum in .gnu_debuglink.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::opened;
use crate::debug_dirs::by_build_id;
use crate::elf::ElfHeaders;

/// The debug file of a program: one with DWARF, or, when the program has no symbols of its own, one with symbols.
pub(super) fn find(file: &File, elf: &ElfHeaders, path: &Path, debug_dirs: &[PathBuf]) -> Option<(File, ElfHeaders)> {
    let own = file.metadata().ok().map(|m| (m.dev(), m.ino()));
    let mut with_symbols = None;
    for candidate in candidates(elf, path, debug_dirs) {
        let Some(other) = opened::open(&candidate) else { continue };
        if other.metadata().ok().map(|m| (m.dev(), m.ino())) == own {
            continue;
        }
        let Ok(other_elf) = ElfHeaders::read(&other) else { continue };
        if !(other_elf.has_dwarf || other_elf.has_symtab) || !belongs(elf, &other, &other_elf) {
            continue;
        }
        if other_elf.has_dwarf {
            return Some((other, other_elf));
        }
        if !elf.has_symtab {
            with_symbols.get_or_insert((other, other_elf));
        }
    }
    with_symbols
}

fn candidates(elf: &ElfHeaders, path: &Path, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = debug_dirs.iter().filter_map(|dir| by_build_id(dir, &elf.build_id)).collect();
    let name = elf.debug_link.as_ref().map(|(name, _)| Path::new(OsStr::from_bytes(name)));
    // A name with directories in it would reach anywhere.
    let name = name.filter(|name| matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]));
    if let (Some(name), Some(dir)) = (name, path.parent().filter(|dir| dir.is_absolute())) {
        found.push(dir.join(name));
        found.push(dir.join(".debug").join(name));
        let below: PathBuf = dir.components().filter(|c| matches!(c, Component::Normal(_))).collect();
        found.extend(debug_dirs.iter().map(|debug_dir| debug_dir.join(&below).join(name)));
    }
    found
}

/// By build id; by checksum when the program has none.
fn belongs(elf: &ElfHeaders, other: &File, other_elf: &ElfHeaders) -> bool {
    if !elf.build_id.is_empty() {
        return elf.build_id == other_elf.build_id;
    }
    elf.debug_link.as_ref().is_some_and(|(_, crc)| checksum(other) == Some(*crc))
}

fn checksum(mut file: &File) -> Option<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buf = vec![0; 1 << 16];
    loop {
        match file.read(&mut buf).ok()? {
            0 => return Some(hasher.finalize()),
            n => hasher.update(&buf[..n]),
        }
    }
}
