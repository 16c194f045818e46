//! Any bytes as a block's message, with right hashes and lengths around them: the decoders.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some(tape) = systape_fuzz::tape_with(input) {
        systape_format::exercise::exercise(&tape);
    }
});
