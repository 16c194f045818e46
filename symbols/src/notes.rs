//! Build ids in ELF notes: of files, of the kernel and of its modules.

use std::fs::File;
use std::io::Read;

use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, NoteIterator};

/// No notes file is longer.
const MOST: u64 = 64 << 10;

/// Longest build id taken; linkers make 8 to 20 bytes, and `--build-id=0x...` takes any number.
const ID_MAX: usize = 64;

/// The contents of the first note of type NT_GNU_BUILD_ID by "GNU". Damage ends the search.
pub(crate) fn first_build_id<H: FileHeader>(endian: H::Endian, notes: NoteIterator<'_, H>) -> Option<Vec<u8>> {
    let is_id =
        |kind, name: &[u8], length| kind == NT_GNU_BUILD_ID && name == ELF_NOTE_GNU && (1..=ID_MAX).contains(&length);
    notes
        .map_while(Result::ok)
        .find(|note| is_id(note.n_type(endian), note.name(), note.desc().len()))
        .map(|note| note.desc().to_vec())
}

/// The build id in the notes of an ELF file of this machine. Notes are padded to `align`, 4 or 8.
pub fn build_id(notes: &[u8], align: u64) -> Option<Vec<u8>> {
    let endian = Endianness::default();
    first_build_id(endian, NoteIterator::<FileHeader64<Endianness>>::new(endian, align, notes).ok()?)
}

fn read(path: &str) -> Option<Vec<u8>> {
    let mut notes = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut notes).ok()?;
    build_id(&notes, 4)
}

/// The running kernel's build id; None when it has none.
pub fn kernel_build_id() -> Option<Vec<u8>> {
    read("/sys/kernel/notes")
}

/// The build id of a loaded module; None when it is not loaded or has none.
pub fn module_build_id(name: &str) -> Option<Vec<u8>> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return None;
    }
    read(&format!("/sys/module/{name}/notes/.note.gnu.build-id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, desc.len() as u32, kind] {
            note.extend_from_slice(&word.to_ne_bytes());
        }
        for part in [name, desc] {
            note.extend_from_slice(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_gnu_note_is_found_behind_others() {
        let mut notes = note(b"Linux\0", 0x101, &[1, 2, 3, 4, 5]);
        notes.extend(note(b"Xen\0", 3, &[9; 20]));
        notes.extend(note(b"GNU\0", 3, &[7; 20]));
        assert_eq!(build_id(&notes, 4), Some(vec![7; 20]));
        for cut in 0..notes.len() {
            assert_eq!(build_id(&notes[..cut], 4), None, "cut at {cut}");
        }
    }

    #[test]
    fn lengths_out_of_range_end_the_search() {
        let mut notes = note(b"GNU\0", 3, &[7; 20]);
        notes[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(build_id(&notes, 4), None);
        // longer than any, and none at all: the next one is taken
        for length in [0, ID_MAX + 1] {
            let mut notes = note(b"GNU\0", 3, &vec![7; length]);
            assert_eq!(build_id(&notes, 4), None);
            notes.extend(note(b"GNU\0", 3, &[8; ID_MAX]));
            assert_eq!(build_id(&notes, 4), Some(vec![8; ID_MAX]));
        }
    }

    #[test]
    fn a_module_name_is_not_a_path() {
        assert_eq!(module_build_id("../../etc"), None);
        assert_eq!(module_build_id(""), None);
    }
}
