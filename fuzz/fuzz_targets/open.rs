//! Any bytes as a tape: opening, recovering, reading, verifying.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| systape_format::exercise::exercise(bytes));
