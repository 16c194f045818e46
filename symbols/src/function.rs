//! Where a function begins in a file, by its name. Of the child's side: names are slices of the mapped file.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::read::{Object, ObjectSegment, ObjectSymbol};
use object::{Architecture, SymbolFlags, SymbolKind, elf};

/// The machine whose functions are probed.
pub(crate) const NATIVE: Architecture =
    if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };
/// Longest function whose returns are looked for.
const LONGEST: u64 = 4 << 20;

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionStart {
    /// Offset of its first byte from the file's beginning.
    pub offset: u64,
    /// The beginning of its code, 16 bytes at most; empty when its length is not known.
    pub code: Vec<u8>,
    /// Places of its return instructions, from the file's beginning. A jump to another function's beginning is none.
    pub returns: Vec<u64>,
    /// The file's code is unwound by exceptions (C++) or panics (Rust).
    pub unwinds: bool,
}

/// The function `name` of a 64-bit ELF file, exported or not.
///
/// # Errors
/// A sentence: what the file is instead, or that it has no such function.
pub(crate) fn find_function(file: &[u8], name: &[u8]) -> Result<FunctionStart, String> {
    let parsed = parse(file)?;
    if parsed.architecture() != NATIVE {
        return Err("it is of another architecture".into());
    }
    if parsed.section_by_name(".gopclntab").is_some() {
        return Err("it is a Go program, whose functions take their arguments otherwise and whose stacks move".into());
    }
    let mut chosen_at_run_time = false;
    for symbol in parsed.dynamic_symbols().chain(parsed.symbols()) {
        // exported names may have a version behind an @
        let is_it = symbol.name_bytes().is_ok_and(|its| is_named(its, name));
        if !is_it || symbol.is_undefined() || symbol.kind() != SymbolKind::Text {
            continue;
        }
        if matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info & 0xf == elf::STT_GNU_IFUNC) {
            chosen_at_run_time = true;
            continue;
        }
        let address = symbol.address();
        for segment in parsed.segments() {
            let (offset, size) = segment.file_range();
            let into = address.wrapping_sub(segment.address());
            if into < size {
                let len = symbol.size().min(LONGEST).min(size - into);
                let code = segment.data_range(address, len).ok().flatten().unwrap_or_default().to_vec();
                // a segment may claim to be where no file ends
                let Some(offset) = offset.checked_add(into) else { continue };
                let unwinds = unwinds(&parsed);
                return Ok(FunctionStart {
                    returns: returns(parsed.architecture(), &code, offset),
                    offset,
                    code,
                    unwinds,
                });
            }
        }
    }
    let name = String::from_utf8_lossy(name);
    if chosen_at_run_time {
        return Err(format!("which function '{name}' is, is chosen at run time: name that one"));
    }
    Err(format!("it has no function '{name}'"))
}

/// Whether it is a 64-bit program that asks for no loader of libraries; false too if it cannot be read.
pub(crate) fn is_static(file: &[u8]) -> bool {
    let Ok(parsed) = parse(file) else { return false };
    let headers = parsed.elf_program_headers();
    // the loader itself, run by name, asks for none either, but has functions for others
    let exports = parsed.dynamic_symbols().any(|symbol| !symbol.is_undefined());
    !exports && !headers.is_empty() && !headers.iter().any(|header| header.p_type(parsed.endian()) == elf::PT_INTERP)
}

/// The name by which a 64-bit library is asked for (DT_SONAME); None = it has none, or cannot be read.
pub(crate) fn soname(file: &[u8]) -> Option<&[u8]> {
    let parsed = parse(file).ok()?;
    let endian = parsed.endian();
    let sections = parsed.elf_section_table();
    let (entries, strings) = sections.dynamic(endian, parsed.data()).ok()??;
    let strings = sections.strings(endian, parsed.data(), strings).ok()?;
    let entry = entries.iter().find(|entry| entry.d_tag.get(endian) == u64::from(elf::DT_SONAME))?;
    let at = u32::try_from(entry.d_val.get(endian)).ok()?;
    strings.get(at).ok()
}

/// A 64-bit ELF file.
pub(crate) type Elf<'d> = ElfFile64<'d, object::Endianness, &'d [u8]>;

/// The file with these bytes.
///
/// # Errors
/// A sentence: what it is instead.
pub(crate) fn parse(file: &[u8]) -> Result<Elf<'_>, String> {
    ElfFile64::parse(file).map_err(|error| format!("it is no 64-bit ELF file, or damaged: {error}"))
}

/// Whether a symbol is called that, with or without a version behind an @.
fn is_named(symbol: &[u8], name: &[u8]) -> bool {
    symbol.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"@"))
}

/// Where the byte of an address is in the file; None = it is not in it.
pub(crate) fn offset_of(parsed: &Elf<'_>, address: u64) -> Option<u64> {
    parsed.segments().find_map(|segment| {
        let (offset, size) = segment.file_range();
        let into = address.wrapping_sub(segment.address());
        (into < size).then(|| offset.checked_add(into)).flatten()
    })
}

/// Whether a file has or uses functions that begin or handle exceptions.
fn unwinds<'d>(file: &impl Object<'d>) -> bool {
    const SIGNS: [&[u8]; 4] =
        [b"__cxa_throw", b"__gxx_personality_v0", b"rust_eh_personality", b"_Unwind_RaiseException"];
    let is_sign = |name: &[u8]| SIGNS.iter().any(|sign| is_named(name, sign));
    file.dynamic_symbols().chain(file.symbols()).any(|symbol| symbol.name_bytes().is_ok_and(is_sign))
}

/// Places of return instructions in `code`, which begins at `from`.
fn returns(machine: Architecture, code: &[u8], from: u64) -> Vec<u64> {
    if machine == Architecture::Aarch64 {
        // ret, retaa, retab
        let is_return = |word: u32| word & 0xffff_fc1f == 0xd65f_0000 || matches!(word, 0xd65f_0bff | 0xd65f_0fff);
        let words = code.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        return (from..).step_by(4).zip(words).filter(|(_, word)| is_return(*word)).map(|(at, _)| at).collect();
    }
    let decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
    let returns = decoder.into_iter().filter(|one| one.mnemonic() == Mnemonic::Ret);
    returns.map(|one| one.ip()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_functions_are_found() {
        let own = std::fs::read("/proc/self/exe").expect("self");
        let found = find_function(&own, b"main").expect("main");
        assert!(found.offset > 0 && found.unwinds && found.code.len() > 8, "{found:?}");
        let last = found.offset + found.code.len() as u64;
        assert!(found.returns.iter().all(|at| (found.offset..last).contains(at)), "{found:?}");
        let error = find_function(&own, b"no_such_function").expect_err("none");
        assert_eq!(error, "it has no function 'no_such_function'");
        assert!(!is_static(&own));
        assert_eq!(soname(&own), None, "a program");
        assert!(find_function(b"7f0000-7f1000 r-xp", b"main").is_err());
        assert!(is_named(b"f@@V_1", b"f") && is_named(b"f", b"f") && !is_named(b"ff", b"f") && !is_named(b"", b"f"));
    }

    /// Found by the fuzz target `symbol_file`.
    #[test]
    fn a_segment_that_no_file_has_is_none() {
        let own = std::fs::read("/proc/self/exe").expect("self");
        let word = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes")) as usize;
        let half = |at: usize| usize::from(u16::from_le_bytes([own[at], own[at + 1]]));
        let (mut away, headers) = (own.clone(), word(&own, 32));
        for header in (0..half(56)).map(|number| headers + number * half(54)) {
            away[header + 8..header + 16].copy_from_slice(&(u64::MAX - 8).to_le_bytes());
        }
        assert_eq!(find_function(&away, b"main").expect_err("none"), "it has no function 'main'");
    }

    #[test]
    fn returns_are_instructions() {
        // mov $0xc3,%eax; je +1; ret; ret $8; jmp *%rax
        let code = [0xb8, 0xc3, 0, 0, 0, 0x74, 1, 0xc3, 0xc2, 8, 0, 0xff, 0xe0];
        assert_eq!(returns(Architecture::X86_64, &code, 100), [107, 108]);
        // mov w0, #1; ret; br x30; ret x1; retaa; b 0
        let words = [0x5280_0020, 0xd65f_03c0, 0xd61f_03c0, 0xd65f_0020, 0xd65f_0bff, 0x1400_0000_u32];
        let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(returns(Architecture::Aarch64, &code, 100), [104, 112, 116]);
    }
}
