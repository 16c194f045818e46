//! Static probes of a file (USDT): what notes of `stapsdt` in its section `.note.stapsdt` say, as sys/sdt.h writes them.

use std::collections::HashMap;

use object::read::elf::NoteIterator;
use object::read::{Object, ObjectSection, ObjectSymbol};
use object::{Endianness, elf};

use crate::function::{Elf, NATIVE, offset_of, parse};

/// Longest section of notes that is read.
const LONGEST: u64 = 16 << 20;
/// Most notes of a file that are looked at.
pub(crate) const MOST: usize = 65_536;
/// Type of a note that describes a probe.
const NT_STAPSDT: u32 = 3;

/// A place in code that announces something by a `nop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticProbe {
    /// Who defines it: a program, a library, a language.
    pub provider: String,
    /// Name of the probe, of which there may be several places.
    pub name: String,
    /// Offset of its instruction from the file's beginning.
    pub offset: u64,
    /// Address of its instruction in the file's own address space.
    pub address: u64,
    /// Offset of the 16-bit counter of its listeners from the file's beginning. None: it announces whether anybody listens or not.
    pub semaphore: Option<u64>,
    /// Where its arguments are: `-4@%edi 8@-16(%rbp) 4@$5`.
    pub arguments: String,
}

/// The static probes of a 64-bit ELF file of this architecture, in the order of their notes. Those whose note is damaged, or whose place is not in
/// the file, are left out.
///
/// # Errors
/// A sentence: what the file is instead, or that it has none.
pub(crate) fn static_probes(file: &[u8]) -> Result<Vec<StaticProbe>, String> {
    let parsed = parse(file)?;
    if parsed.architecture() != NATIVE {
        return Err("it is of another architecture".into());
    }
    let Some(section) = parsed.section_by_name(".note.stapsdt") else {
        return Err("it has no static probes (no section .note.stapsdt)".into());
    };
    if section.size() > LONGEST {
        return Err(format!("its section .note.stapsdt has {} bytes, too many to look into", section.size()));
    }
    let notes = section.data().map_err(|error| format!("its section .note.stapsdt is damaged: {error}"))?;
    // prelink moves code, and this section with it
    let base = parsed.section_by_name(".stapsdt.base").map(|base| base.address());
    let endian = parsed.endian();
    let notes = NoteIterator::<elf::FileHeader64<Endianness>>::new(endian, section.align(), notes);
    let notes = notes.map_err(|error| format!("its section .note.stapsdt is damaged: {error}"))?;
    let notes = notes.map_while(Result::ok).take(MOST);
    let notes = notes.filter(|note| note.name() == b"stapsdt" && note.n_type(endian) == NT_STAPSDT);
    Ok(notes.filter_map(|note| probe(&parsed, base, note.desc())).collect())
}

/// What a note says: three addresses and three strings.
fn probe(parsed: &Elf<'_>, base: Option<u64>, desc: &[u8]) -> Option<StaticProbe> {
    let word = |at: usize| desc.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (address, linked_base, semaphore) = (word(0)?, word(8)?, word(16)?);
    let moved = base.filter(|_| linked_base != 0).map_or(0, |base| base.wrapping_sub(linked_base));
    let mut strings = desc.get(24..)?.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let (provider, name, arguments) = (strings.next()?, strings.next()?, strings.next()?);
    let address = address.wrapping_add(moved);
    let semaphore = match semaphore {
        0 => None,
        // without it the place is never passed
        semaphore => Some(offset_of(parsed, semaphore.wrapping_add(moved))?),
    };
    (!provider.is_empty() && !name.is_empty()).then_some(())?;
    Some(StaticProbe { provider, name, offset: offset_of(parsed, address)?, address, semaphore, arguments })
}

/// The address of each of `names` that is a symbol of the file, in its own address space.
///
/// # Errors
/// A sentence: what the file is instead.
pub(crate) fn symbol_addresses(file: &[u8], names: &[&[u8]]) -> Result<Vec<Option<u64>>, String> {
    let parsed = parse(file)?;
    let mut found: HashMap<&[u8], Option<u64>> = HashMap::new();
    for symbol in parsed.symbols().chain(parsed.dynamic_symbols()).filter(|symbol| !symbol.is_undefined()) {
        let name = symbol.name_bytes().unwrap_or_default();
        if !names.contains(&name) {
            continue;
        }
        let address = symbol.address();
        // of two local ones nobody knows which is meant
        let known = found.entry(name).or_insert(Some(address));
        *known = known.filter(|at| *at == address);
    }
    Ok(names.iter().map(|name| found.get(name).copied().flatten()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_probes_says_so() {
        let own = std::fs::read("/proc/self/exe").expect("self");
        let error = static_probes(&own).expect_err("none");
        assert!(error.contains("no static probes"), "{error}");
        let found = symbol_addresses(&own, &[b"main", b"no_such_symbol"]).expect("addresses");
        assert!(matches!(found[..], [Some(1..), None]), "{found:?}");
    }

    #[test]
    fn a_damaged_note_is_none() {
        let own = std::fs::read("/proc/self/exe").expect("self");
        let parsed = parse(&own).expect("parsed");
        let main = symbol_addresses(&own, &[b"main"]).expect("addresses")[0].expect("main");
        let mut desc = Vec::new();
        for word in [main, 0x1000, 0] {
            desc.extend_from_slice(&word.to_le_bytes());
        }
        desc.extend_from_slice(b"mine\0passed\0-4@%edi 8@$5\0");
        let whole = probe(&parsed, Some(0x1000), &desc).expect("a probe");
        assert_eq!((&*whole.provider, &*whole.name, &*whole.arguments), ("mine", "passed", "-4@%edi 8@$5"));
        assert_eq!((whole.address, whole.semaphore), (main, None));
        assert_eq!(probe(&parsed, Some(0x1003), &desc).expect("moved").offset, whole.offset + 3);
        for cut in 0..desc.len() - 13 {
            assert_eq!(probe(&parsed, None, &desc[..cut]), None, "cut at {cut}");
        }
        desc[16] = 1; // a semaphore in the header of the file, which no segment of this address has
        desc[23] = 0xff;
        assert_eq!(probe(&parsed, None, &desc), None);
    }
}
