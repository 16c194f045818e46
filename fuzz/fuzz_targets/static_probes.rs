//! Any bytes as the notes of static probes (USDT) of a file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| systape_symbols::exercise_notes(bytes));
