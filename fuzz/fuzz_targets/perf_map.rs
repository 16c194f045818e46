//! Any text as a /tmp/perf-PID.map.
#![no_main]

use systape_symbols::PerfMap;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let map = PerfMap::parse(text);
    for address in (0..64).map(|bit| 1u64 << bit).chain([0, u64::MAX]) {
        if let Some((_, offset)) = map.lookup(address) {
            assert!(offset <= address, "a function that begins behind its code");
        }
    }
});
