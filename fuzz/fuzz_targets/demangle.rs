//! Any text as a mangled name.
#![no_main]

libfuzzer_sys::fuzz_target!(|name: &str| {
    systape_symbols::demangle(name);
});
