//! Symbols in .gnu_debugdata: an ELF file with nothing but a symbol table, compressed, in a program without one.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use liblzma::read::XzDecoder;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use systape_format::model::Function;

use crate::elf::ElfHeaders;

/// Most bytes of the section.
const PACKED: u64 = 32 << 20;
/// Most bytes of the file in it.
const UNPACKED: u64 = 256 << 20;

/// Functions by address.
pub(super) struct PackedSymbols {
    /// Address, size (0: not known) and name, in order of the addresses.
    symbols: Vec<(u64, u64, Vec<u8>)>,
}

impl PackedSymbols {
    /// Reads them; None: there are none, or they are damaged.
    pub(super) fn read(file: &File, elf: &ElfHeaders) -> Option<Self> {
        let Range { start, end } = elf.packed_symbols.clone().filter(|_| !elf.has_symtab)?;
        let mut packed = vec![0; usize::try_from(end.checked_sub(start).filter(|size| *size <= PACKED)?).ok()?];
        file.read_exact_at(&mut packed, start).ok()?;
        let mut unpacked = Vec::new();
        XzDecoder::new(&packed[..]).take(UNPACKED).read_to_end(&mut unpacked).ok()?;
        Self::of(&unpacked)
    }

    fn of(unpacked: &[u8]) -> Option<Self> {
        let file = object::File::parse(unpacked).ok()?;
        let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let mut symbols: Vec<_> = functions
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name_bytes().ok()?.to_vec())))
            .filter(|(.., name)| !name.is_empty())
            .collect();
        symbols.sort();
        Some(Self { symbols })
    }

    /// The function at `address` of the program whose headers are `elf`, its name as in the file.
    pub(super) fn look_up(&self, address: u64, elf: &ElfHeaders) -> Option<Function> {
        let behind = self.symbols.partition_point(|(start, ..)| *start <= address);
        let first = self.symbols[..behind].last()?.0;
        let mut same = self.symbols[..behind].iter().rev().take_while(|(start, ..)| *start == first);
        // one without a size reaches to the next one, or the end of its section
        let holds = |size: u64| match size {
            0 => elf.code_at(address).is_some_and(|section| section.contains(&first)),
            size => address - first < size,
        };
        let (.., name) = same.find(|(_, size, _)| holds(*size))?;
        Some(Function { name: name.clone(), ..Function::default() })
    }
}
