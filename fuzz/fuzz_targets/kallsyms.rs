//! Any text as /proc/kallsyms.
#![no_main]

use systape_symbols::Kallsyms;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let Ok(names) = Kallsyms::parse(text) else { return };
    for address in [0, 1, 0xffff_ffff_8100_0000, u64::MAX].into_iter().chain(names.text_base()) {
        names.lookup(address);
    }
});
