//! Any bytes as a file that is asked for functions, its soname, static probes and addresses.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| systape_symbols::exercise_file(bytes));
