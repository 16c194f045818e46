//! Names in one file, from the best source of each.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf as ElfSource, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use systape_format::model::Function;

use super::{bytes_to_path, separate};
use crate::demangle::demangle;
use crate::elf::Elf;
use crate::wire::{LONGEST_STRING, MOST_FUNCTIONS};

/// Stands for a function whose name is not known but which functions with names were inlined into, or which was inlined.
const UNNAMED: &str = "[unknown]";

/// A file being looked up in, and the files with its debug information.
pub(super) struct Reader {
    elf: Elf,
    /// Headers of the debug file.
    debug: Option<Elf>,
    /// Best first; the flag: it is the debug file.
    sources: Vec<(Source<'static>, bool)>,
    symbolizer: Symbolizer,
    /// Kept open: the sources name them by number.
    _files: Vec<File>,
}

impl Reader {
    pub fn open(file: File, build_id: &[u8], path: &[u8], debug_dirs: &[PathBuf]) -> Result<Self, String> {
        let elf = Elf::read(&file)?;
        if !build_id.is_empty() && elf.build_id != build_id {
            return Err(format!("it is another file: its build id is {}, not {}", hex(&elf.build_id), hex(build_id)));
        }
        let path: &Path = &bytes_to_path(path);
        let debug = if elf.has_dwarf { None } else { separate::find(&file, &elf, path, debug_dirs) };
        let mut sources = Vec::new();
        if elf.has_dwarf {
            sources.push((source(&file, true), false));
        }
        if let Some((file, elf)) = &debug {
            sources.push((source(file, elf.has_dwarf), true));
            if elf.has_dwarf {
                sources.push((source(file, false), true));
            }
        }
        sources.push((source(&file, false), false));
        let symbolizer = Symbolizer::builder()
            .enable_demangling(false)
            .enable_auto_reload(false)
            // for files that share their debug information with others (dwz)
            .set_debug_dirs(Some(debug_dirs))
            .build();
        let mut files = vec![file];
        let debug = debug.map(|(file, elf)| {
            files.push(file);
            elf
        });
        Ok(Self { elf, debug, sources, symbolizer, _files: files })
    }

    /// The functions at each offset.
    pub fn names(&self, offsets: &[u64]) -> Result<Vec<Vec<Function>>, String> {
        let mut names = vec![Vec::new(); offsets.len()];
        let mut open: Vec<(usize, u64)> = Vec::with_capacity(offsets.len());
        for (i, offset) in offsets.iter().enumerate() {
            let address = self.elf.address(*offset);
            if self.elf.is_debug_file && address.and_then(|address| self.elf.code_at(address)).is_none() {
                return Err(format!(
                    "the debug file has no code at offset {offset:#x} of the program; the program itself is needed"
                ));
            }
            open.extend(address.map(|address| (i, address)));
        }
        let mut error = None;
        let mut worked = false;
        for (source, is_debug) in &self.sources {
            if open.is_empty() {
                break;
            }
            let addresses: Vec<u64> = open.iter().map(|(_, address)| *address).collect();
            match self.symbolizer.symbolize(source, Input::VirtOffset(&addresses)) {
                Ok(symbols) => {
                    worked = true;
                    let elf = self.debug.as_ref().filter(|_| *is_debug).unwrap_or(&self.elf);
                    for ((i, address), symbol) in open.iter().zip(&symbols) {
                        if let Symbolized::Sym(symbol) = symbol {
                            improve(&mut names[*i], functions(symbol, *address, elf));
                        }
                    }
                    open.retain(|(i, _)| names[*i].last().is_none_or(|outermost| outermost.name.is_empty()));
                }
                Err(why) => {
                    error.get_or_insert(why);
                }
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
}

fn source(file: &File, dwarf: bool) -> Source<'static> {
    let mut elf = ElfSource::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    elf.debug_syms = dwarf;
    Source::Elf(elf)
}

/// What a further source says, where an earlier one said nothing or did not know the name.
fn improve(have: &mut Vec<Function>, new: Vec<Function>) {
    match (have.last_mut(), new.last()) {
        (Some(outermost), Some(named)) => outermost.name.clone_from(&named.name),
        _ => have.extend(new),
    }
}

fn finish(functions: &mut Vec<Function>) {
    if functions.len() == 1 && functions[0].name.is_empty() {
        functions.clear();
    }
    for function in functions.iter_mut().filter(|function| function.name.is_empty()) {
        function.name = UNNAMED.into();
    }
    if functions.len() > MOST_FUNCTIONS {
        functions.drain(MOST_FUNCTIONS - 1..functions.len() - 1);
    }
}

/// Innermost first. blazesym's order is outermost first, and each one's line is the place inside that function already.
fn functions(symbol: &Sym<'_>, address: u64, elf: &Elf) -> Vec<Function> {
    // A symbol without a size reaches to the next one, even over the end of its section: .plt would be `_init`.
    if symbol.size.is_none()
        && symbol.addr != address
        && !elf.code_at(address).is_some_and(|r| r.contains(&symbol.addr))
    {
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
    let name = if name.is_empty() { String::new() } else { demangle(name) };
    let mut function = Function { name: name.into_bytes(), ..Function::default() };
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
