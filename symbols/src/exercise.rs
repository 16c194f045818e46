//! For fuzzers: the two ends of the socket, given any bytes.

use systape_unwind::{Facts, Segments, Stepped};

use crate::wire::{self, MessageIn};

/// Takes bytes for requests to the child, without a descriptor, and for answers of it.
pub fn exercise(bytes: &[u8]) {
    crate::child::exercise(bytes);
    let mut input = MessageIn(bytes);
    let _ = input.functions();
    let mut input = MessageIn(bytes);
    let _ = input.static_probe();
    let _ = crate::resolver::parse_names(bytes, wire::MOST_OFFSETS);
    let _ = Segments::from_bytes(bytes);
    let _ = Stepped::from_bytes(bytes);
    let _ = bytes.first_chunk().and_then(Facts::from_bytes);
}

/// Takes bytes for a file, and asks everything about it that the child answers.
pub fn exercise_file(file: &[u8]) {
    let _ = crate::function::find_function(file, b"main");
    let _ = crate::function::is_static(file);
    let _ = crate::ident::ident(file);
    let _ = crate::function::soname(file);
    let _ = crate::static_probes::static_probes(file);
    let _ = crate::static_probes::symbol_addresses(file, &[b"main", b""]);
    if let Some(table) = crate::go::GoTable::of(file) {
        [0, 0x40_1000, u64::MAX].iter().for_each(|address| drop(table.look_up(file, *address)));
    }
}

/// Takes bytes for a file's notes of static probes, and asks for the symbols in their arguments.
pub fn exercise_notes(notes: &[u8]) {
    let file = with_notes(notes);
    let probes = crate::static_probes::static_probes(&file).unwrap_or_default();
    let words = probes.iter().flat_map(|probe| probe.arguments.split_ascii_whitespace());
    let names: Vec<&[u8]> = words.map(str::as_bytes).take(wire::MOST_NAMES).collect();
    let _ = crate::static_probes::symbol_addresses(&file, &names);
}

/// An ELF file with these notes of static probes, and a megabyte of address space with code for them to point at.
fn with_notes(notes: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.note.stapsdt\0.stapsdt.base\0.names\0";
    const HEADERS: u64 = 64 + 56 + 4 * 64;
    let (names_at, len) = (HEADERS + notes.len() as u64, notes.len() as u64);
    let end = names_at + NAMES.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    let words = |file: &mut Vec<u8>, words: &[u64]| file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    words(&mut file, &[0, 64, 64 + 56]);
    // no flags; sizes and numbers of headers
    file.extend([0u16, 0, 64, 56, 1, 64, 4, 3].iter().flat_map(|half| half.to_le_bytes()));
    // PT_LOAD, to be read and executed
    words(&mut file, &[5 << 32 | 1, 0, 0, 0, end, 1 << 20, 4096]);
    words(&mut file, &[0; 8]);
    // name and type, flags, address, place, size, link and info, alignment, size of an entry
    words(&mut file, &[7 << 32 | 1, 0, 0, HEADERS, len, 0, 4, 0]);
    words(&mut file, &[1 << 32 | 15, 2, 0, HEADERS, 1, 0, 1, 0]);
    words(&mut file, &[3 << 32 | 29, 0, 0, names_at, NAMES.len() as u64, 0, 1, 0]);
    [&file, notes, NAMES].concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn notes_are_found_in_their_file() {
        let mut note = [8u32, 24 + 9, 3].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        note.extend(b"stapsdt\0");
        [16u64, 0, 0].iter().for_each(|word| note.extend(word.to_le_bytes()));
        note.extend(b"p\0n\08@$1\0\0\0\0");
        let found = crate::static_probes::static_probes(&super::with_notes(&note)).expect("notes");
        assert_eq!((found.len(), found[0].offset, &*found[0].arguments), (1, 16, "8@$1"));
        super::exercise_notes(&note);
    }
}
