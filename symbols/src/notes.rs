//! Build ids in ELF notes of the kernel and its modules.

use std::fs::File;
use std::io::Read;

/// No notes file is longer.
const MOST: u64 = 64 << 10;

/// The description of the first note of type NT_GNU_BUILD_ID by "GNU". Notes are a name's length, a description's length and a type, each
/// 32 bits in the machine's order, then name and description, each padded to 4 bytes.
pub(crate) fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let name_len = word(0) as usize;
        let desc_len = word(4) as usize;
        let name = rest.get(..name_len)?;
        let rest = rest.get(name_len.next_multiple_of(4)..)?;
        let desc = rest.get(..desc_len)?;
        if word(8) == NT_GNU_BUILD_ID && name == b"GNU\0" && !desc.is_empty() {
            return Some(desc.to_vec());
        }
        notes = rest.get(desc_len.next_multiple_of(4)..)?;
    }
}

fn read(path: &str) -> Option<Vec<u8>> {
    let mut notes = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut notes).ok()?;
    build_id(&notes)
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
        assert_eq!(build_id(&notes), Some(vec![7; 20]));
        for cut in 0..notes.len() {
            assert_eq!(build_id(&notes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn lengths_out_of_range_end_the_search() {
        let mut notes = note(b"GNU\0", 3, &[7; 20]);
        notes[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(build_id(&notes), None);
    }

    #[test]
    fn a_module_name_is_not_a_path() {
        assert_eq!(module_build_id("../../etc"), None);
        assert_eq!(module_build_id(""), None);
    }
}
