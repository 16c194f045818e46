//! Directories with separate debug files, searched by build id.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::elf::ElfHeaders;
use crate::regular::open_regular;

/// Most files whose build id is read.
const MOST_FILES: usize = 65_536;

/// Directories with files by build id.
///
/// A result may be a program or a separate debug file of one; both can be passed to
/// [`Resolver::look_up`](crate::Resolver::look_up) with offsets of the program. Debug files made by elfutils have the
/// program's offsets. Those made by objcopy do not; they are computed from how linkers lay out segments. A file whose
/// layout was changed after linking may then fail, with a reason.
#[derive(Debug)]
pub struct DebugDirs {
    dirs: Vec<PathBuf>,
    /// Files in the directories, by build id; None = not read yet.
    index: Option<HashMap<Vec<u8>, PathBuf>>,
}

impl DebugDirs {
    /// Searches each of `dirs`, in this order: `.build-id/xx/yyyy.debug`, the same under `usr/lib/debug`, then any ELF
    /// file in it or in a directory in it.
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        Self { dirs, index: None }
    }

    /// A file with this build id.
    pub fn find(&mut self, build_id: &[u8]) -> Option<PathBuf> {
        if build_id.is_empty() {
            return None;
        }
        for dir in &self.dirs {
            for dir in [dir.clone(), dir.join("usr/lib/debug")] {
                let path = by_build_id(&dir, build_id)?;
                if read(&path).is_some_and(|elf| elf.build_id == build_id) {
                    return Some(path);
                }
            }
        }
        self.index.get_or_insert_with(|| index(&self.dirs)).get(build_id).cloned()
    }
}

/// `.build-id/xx/yyyy.debug` in `dir`; None when the build id is too short or empty.
pub(crate) fn by_build_id(dir: &Path, build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(dir.join(".build-id").join(format!("{first:02x}")).join(rest + ".debug"))
}

/// Whether `file` is an ELF file with this build id, by its headers and notes.
#[must_use]
pub fn has_build_id(file: &File, build_id: &[u8]) -> bool {
    !build_id.is_empty() && ElfHeaders::read(file).is_ok_and(|elf| elf.build_id == build_id)
}

fn read(path: &Path) -> Option<ElfHeaders> {
    ElfHeaders::read(&open_regular(path).ok()??).ok()
}

/// One with debug information is preferred, else the first.
fn index(dirs: &[PathBuf]) -> HashMap<Vec<u8>, PathBuf> {
    let mut found: HashMap<Vec<u8>, (bool, PathBuf)> = HashMap::new();
    let mut left = MOST_FILES;
    for dir in dirs {
        let mut below = Vec::new();
        add_files(dir, &mut found, &mut left, Some(&mut below));
        for dir in below {
            add_files(&dir, &mut found, &mut left, None);
        }
    }
    found.into_iter().map(|(build_id, (_, path))| (build_id, path)).collect()
}

fn add_files(
    dir: &Path,
    found: &mut HashMap<Vec<u8>, (bool, PathBuf)>,
    left: &mut usize,
    mut below: Option<&mut Vec<PathBuf>>,
) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    // The order of a directory is not one: sorted, the same file is found every time.
    let mut paths: Vec<PathBuf> = entries.take(*left).filter_map(|entry| Some(entry.ok()?.path())).collect();
    *left -= paths.len();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if let Some(below) = &mut below {
                below.push(path);
            }
            continue;
        }
        let Some(elf) = read(&path) else { continue };
        if elf.build_id.is_empty() {
            continue;
        }
        let entry = found.entry(elf.build_id).or_insert_with(|| (elf.has_dwarf, path.clone()));
        if elf.has_dwarf && !entry.0 {
            *entry = (true, path);
        }
    }
}
