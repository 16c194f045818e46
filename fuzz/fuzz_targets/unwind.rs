//! Any bytes as an ELF file and as registers with a stack. The first two bytes say how long the stack is; the file is the rest.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((len, rest)) = input.split_first_chunk::<2>() else { return };
    let (stack, elf) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
    systape_unwind::exercise(elf, stack);
});
