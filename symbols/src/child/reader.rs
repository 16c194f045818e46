//! Names in one file, from the best source of each.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf as ElfSource, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use systape_format::model::Function;

use super::mapped::MappedFile;
use super::packed::PackedSymbols;
use super::{bytes_to_path, opened, separate};
use crate::demangle::demangle;
use crate::elf::ElfHeaders;
use crate::go::GoTable;
use crate::wire::{LONGEST_STRING, MOST_FUNCTIONS};

/// The name of an unnamed function into which named ones were inlined, or that was inlined.
const UNNAMED: &str = "[unknown]";

/// The current file, and the files with its debug information.
pub(super) struct Reader {
    elf: ElfHeaders,
    /// Headers of the debug file.
    debug: Option<ElfHeaders>,
    /// Best first.
    sources: Vec<Place>,
    symbolizer: Symbolizer,
    /// Symbols that the file has in compressed form.
    packed: Option<PackedSymbols>,
    /// The file and its table, if it is a Go program; it is looked for where all others have no name.
    go: OnceCell<Option<(MappedFile, GoTable)>>,
    /// The file, then that with its debug information. Kept open: the sources name them by number.
    files: Vec<File>,
}

/// Source of names.
struct Place {
    source: Source<'static>,
    /// In the DWARF, not in the symbol table.
    dwarf: bool,
    /// In the debug file.
    debug: bool,
}

impl Place {
    fn new(file: &File, dwarf: bool, debug: bool) -> Self {
        let mut elf = ElfSource::new(opened::path_of(file));
        elf.debug_syms = dwarf;
        Self { source: Source::Elf(elf), dwarf, debug }
    }
}

impl Reader {
    pub(crate) fn open(file: File, build_id: &[u8], path: &[u8], debug_dirs: &[PathBuf]) -> Result<Self, String> {
        let elf = ElfHeaders::read(&file)?;
        if !build_id.is_empty() && elf.build_id != build_id {
            return Err(format!("it is another file: its build id is {}, not {}", hex(&elf.build_id), hex(build_id)));
        }
        let path: &Path = &bytes_to_path(path);
        let debug = if elf.has_dwarf { None } else { separate::find(&file, &elf, path, debug_dirs) };
        let mut sources = Vec::new();
        if elf.has_dwarf {
            sources.push(Place::new(&file, true, false));
        }
        if let Some((file, elf)) = &debug {
            sources.push(Place::new(file, elf.has_dwarf, true));
            if elf.has_dwarf {
                sources.push(Place::new(file, false, true));
            }
        }
        sources.push(Place::new(&file, false, false));
        let symbolizer = Symbolizer::builder()
            .enable_demangling(false)
            .enable_auto_reload(false)
            // for files that share their debug information with others (dwz)
            .set_debug_dirs(Some(debug_dirs))
            .build();
        let packed = PackedSymbols::read(&file, &elf);
        let mut files = vec![file];
        let debug = debug.map(|(file, elf)| {
            files.push(file);
            elf
        });
        Ok(Self { elf, debug, sources, symbolizer, packed, go: OnceCell::new(), files })
    }

    /// The functions at each offset.
    pub(crate) fn names(&self, offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        let mut names = vec![Vec::new(); offsets.len()];
        let mut open: Vec<(usize, u64)> = Vec::with_capacity(offsets.len());
        for (i, offset) in offsets.iter().enumerate() {
            open.extend(self.elf.address(*offset).map(|address| (i, address)));
        }
        self.check_layout(offsets, &open)?;
        let mut error = None;
        let mut worked = false;
        if let Some(packed) = &self.packed {
            worked = true;
            for (i, address) in &open {
                names[*i].extend(packed.look_up(*address, &self.elf));
            }
        }
        for source in &self.sources {
            if open.is_empty() {
                break;
            }
            let addresses: Vec<u64> = open.iter().map(|(_, address)| *address).collect();
            match self.symbolizer.symbolize(&source.source, Input::VirtOffset(&addresses)) {
                Ok(symbols) => {
                    worked = true;
                    let elf = self.debug.as_ref().filter(|_| source.debug).unwrap_or(&self.elf);
                    for ((i, address), symbol) in open.iter().zip(&symbols) {
                        if let Symbolized::Sym(symbol) = symbol {
                            improve(&mut names[*i], functions(symbol, *address, elf));
                        }
                    }
                    open.retain(|(i, _)| {
                        let outermost = names[*i].last().map_or(&b""[..], |function| &function.name);
                        outermost.is_empty() || (source.dwarf && !is_mangled(outermost))
                    });
                }
                Err(why) => {
                    error.get_or_insert(why);
                }
            }
        }
        open.retain(|(i, _)| names[*i].is_empty());
        if !open.is_empty()
            && let Some((mapped, table)) = self.go()
        {
            worked = true;
            for (i, address) in open {
                names[i].extend(table.look_up(mapped.bytes(), address));
            }
        }
        match error {
            Some(error) if !worked => Err(format!("{error:#}")),
            _ => {
                names.iter_mut().for_each(finish);
                Ok(names)
            }
        }
    }

    fn go(&self) -> Option<&(MappedFile, GoTable)> {
        let find = || {
            let mapped = MappedFile::new(self.files.first()?).ok()?;
            let table = GoTable::of(mapped.bytes())?;
            Some((mapped, table))
        };
        self.go.get_or_init(find).as_ref()
    }

    /// A debug file whose layout had to be computed is valid for offsets in its code. Guessed frames may lie elsewhere,
    /// but not many.
    fn check_layout(&self, offsets: &[u64], addresses: &[(usize, u64)]) -> Result<(), String> {
        let in_code = addresses.iter().filter(|(_, address)| self.elf.code_at(*address).is_some()).count();
        if self.elf.is_debug_file && (offsets.len() - in_code) * 8 > offsets.len() {
            return Err(format!(
                "of {} offsets of the program {in_code} are code in the debug file; the program itself is needed",
                offsets.len()
            ));
        }
        Ok(())
    }
}

/// Merges a later source, where an earlier one had nothing, or not the whole name of the outermost function: DWARF by
/// GCC has only the last part of a name in an anonymous namespace or of a local class; the symbol table has all of it.
fn improve(have: &mut Vec<Function>, new: Vec<Function>) {
    match (have.last_mut(), new.last()) {
        (None, _) => have.extend(new),
        (Some(have), Some(new)) => {
            if have.name.is_empty() || is_whole(&new.name, &have.name) {
                have.name.clone_from(&new.name);
            }
        }
        (Some(_), None) => {}
    }
}

/// Whether a mangled name may be the whole of DWARF's partial name. DWARF writes out template arguments, and
/// `operator()` for the mangled name's `cl`: for a lambda that is all it has.
fn is_whole(mangled: &[u8], part: &[u8]) -> bool {
    let base = part.split(|byte| *byte == b'<').next().unwrap_or(part);
    is_mangled(mangled)
        && (part.starts_with(b"operator") || mangled.windows(base.len().max(1)).any(|window| window == base))
}

fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

fn finish(functions: &mut Vec<Function>) {
    if functions.len() == 1 && functions[0].name.is_empty() {
        functions.clear();
    }
    if functions.len() > MOST_FUNCTIONS {
        functions.drain(MOST_FUNCTIONS - 1..functions.len() - 1);
    }
    for function in functions {
        function.name = match std::str::from_utf8(&function.name) {
            Ok(name) if !name.is_empty() => demangle(name).into_bytes(),
            _ => UNNAMED.into(),
        };
    }
}

/// Innermost first, names as in the file. blazesym's order is outermost first, and each one's line is already the place
/// inside that function.
fn functions(symbol: &Sym<'_>, address: u64, elf: &ElfHeaders) -> Vec<Function> {
    // A symbol without a size reaches to the next one, even over the end of its section: .plt would be `_init`. Functions in several pieces
    // have no size either; their address is 0.
    let guessed = symbol.size.is_none() && symbol.addr != 0 && symbol.addr != address;
    if guessed && !elf.code_at(address).is_some_and(|section| section.contains(&symbol.addr)) {
        return Vec::new();
    }
    let outer = symbol.code_info.as_deref();
    // When the outermost call says no file, blazesym leaves the place of the innermost function with the outermost.
    let misplaced = symbol.inlined.last().is_some_and(|innermost| innermost.code_info.is_none());
    let mut functions: Vec<Function> = Vec::with_capacity(symbol.inlined.len() + 1);
    for (i, inlined) in symbol.inlined.iter().rev().enumerate() {
        let place = inlined.code_info.as_ref();
        functions.push(function(&inlined.name, if i == 0 { place.or(outer) } else { place }));
    }
    functions.push(function(&symbol.name, if misplaced { None } else { outer }));
    functions
}

fn function(name: &str, place: Option<&CodeInfo<'_>>) -> Function {
    let mut function = Function { name: name.into(), ..Function::default() };
    if let Some(place) = place {
        let path = place.to_path();
        let path = path.as_os_str().as_bytes();
        // A path cut short would be another file's.
        if path.len() <= LONGEST_STRING {
            function.file = path.to_vec();
            function.line = place.line.unwrap_or(0);
        }
    }
    function
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "absent".into();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
