//! For fuzzers: the two ends of the socket, given any bytes.

use systape_unwind::{Facts, Segments, Stepped};

use crate::wire::{self, In};

/// Takes bytes for requests to the child, without a descriptor, and for answers of it.
pub fn exercise(bytes: &[u8]) {
    crate::child::exercise(bytes);
    let mut input = In(bytes);
    let _ = input.functions();
    let mut input = In(bytes);
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
}
