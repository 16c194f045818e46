//! Any bytes between `record` and the child that reads symbols, in both directions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| systape_symbols::exercise(bytes));
