//! Names of places in code. A block is complete in itself, so many names are several blocks.

use std::collections::HashMap;

use super::rows::{Rows, nexts, rows_as_header, rows_of};
use super::stacks::{mapping_bytes, read_mappings, write_mappings};
use super::text;
use crate::column::put;
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::{Function, Mapping, Symbol, Symbols};
use crate::payload::{Message, list_len, new_message};
use crate::segment::{MAX_PATH, cut_mapping};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const SYMBOLS: &str = "symbols";

/// Bytes kept of a function's name. The longest of C++ templates are about that.
const MAX_NAME: usize = 16 << 10;
/// Functions kept of a place, the innermost first.
const MAX_FUNCTIONS: usize = 256;
/// Estimated bytes at which the next block begins: half of what a block may have. One place more fits always, as it has
/// at most 256 * (16 + 4) KiB.
const PART_BYTES: usize = 4 << 20;
/// Bytes of names and files, each counted as often as it is used, at which the next block begins.
const PART_SPREAD: usize = 32 << 20;
/// The same for a reader, which makes strings of them: a small block must not become gigabytes.
const MAX_SPREAD: usize = 64 << 20;
/// Bytes of a place in a message, from above, its functions not counted.
const SYMBOL_BYTES: usize = 16;
/// The same of a function.
const FUNCTION_BYTES: usize = 12;

/// Distinct strings, in order of first use.
#[derive(Default)]
struct Strings {
    ids: HashMap<Vec<u8>, u32>,
    lens: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    fn intern(&mut self, s: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(s) {
            return id;
        }
        let id = self.lens.len() as u32;
        self.ids.insert(s.to_vec(), id);
        self.lens.push(s.len() as u32);
        self.bytes.extend_from_slice(s);
        id
    }

    /// Bytes in a message, from above.
    fn bytes(&self) -> usize {
        self.lens.len() * 4 + self.bytes.len() + 8
    }
}

/// What goes into one block.
#[derive(Default)]
pub(crate) struct SymbolPart {
    mappings: Vec<Mapping>,
    mapping: Vec<u32>,
    /// Minus that of the place before.
    offset: Vec<u64>,
    functions: Vec<u32>,
    name: Vec<u32>,
    file: Vec<u32>,
    line: Vec<u32>,
    names: Strings,
    files: Strings,
    failures: Vec<(u32, String)>,
    /// Of `mappings` and `failures`.
    list_bytes: usize,
    spread: usize,
}

impl SymbolPart {
    /// Places in it.
    pub(crate) fn rows(&self) -> usize {
        self.offset.len()
    }

    /// Bytes of its message, from above.
    fn bytes(&self) -> usize {
        let columns = self.offset.len() * SYMBOL_BYTES + self.line.len() * FUNCTION_BYTES;
        self.list_bytes + columns + self.names.bytes() + self.files.bytes()
    }

    fn is_full(&self) -> bool {
        self.bytes() >= PART_BYTES || self.spread >= PART_SPREAD
    }

    fn push_mapping(&mut self, mapping: Mapping) {
        self.list_bytes += mapping_bytes(&mapping);
        self.mappings.push(mapping);
    }

    /// Adds a place in the last mapping; `before` is the offset of the place before it there, or 0.
    fn push_symbol(&mut self, symbol: &Symbol, before: u64) {
        let functions = symbol.functions.get(..MAX_FUNCTIONS).unwrap_or(&symbol.functions);
        self.mapping.push(self.mappings.len() as u32 - 1);
        self.offset.push(symbol.offset.wrapping_sub(before));
        self.functions.push(functions.len() as u32);
        for Function { name, file, line } in functions {
            let name = name.get(..MAX_NAME).unwrap_or(name);
            let file = file.get(..MAX_PATH).unwrap_or(file);
            self.name.push(self.names.intern(name));
            self.file.push(self.files.intern(file));
            self.line.push(*line);
            self.spread += name.len() + file.len();
        }
    }

    fn push_failure(&mut self, why: &str) {
        let mut end = why.len().min(MAX_PATH);
        while !why.is_char_boundary(end) {
            end -= 1;
        }
        let why = &why[..end];
        self.list_bytes += 32 + why.len();
        self.failures.push((self.mappings.len() as u32 - 1, why.to_owned()));
    }
}

/// Divides names into parts that fit blocks; none when there are none. Of two symbols of a place the last one is kept.
pub(crate) fn split_symbols(symbols: &Symbols) -> Result<Vec<SymbolPart>> {
    let len = symbols.mappings.len();
    let of_symbols = symbols.symbols.iter().map(|s| s.mapping);
    if let Some(bad) = of_symbols.chain(symbols.failures.iter().map(|f| f.0)).find(|&m| m as usize >= len) {
        return Err(Error::invalid(SYMBOLS, format!("mapping {bad} where there are {len}")));
    }
    let mut places: Vec<&Symbol> = symbols.symbols.iter().collect();
    places.sort_by_key(|s| (s.mapping, s.offset));
    let mut failures: Vec<&(u32, String)> = symbols.failures.iter().collect();
    failures.sort_by_key(|f| f.0);
    let (mut places, mut failures) = (places.into_iter().peekable(), failures.into_iter().peekable());

    let (mut parts, mut part) = (Vec::new(), SymbolPart::default());
    for (i, mapping) in symbols.mappings.iter().enumerate() {
        let mapping = cut_mapping(mapping);
        let i = i as u32;
        // The next part begins with the mapping when it was cut.
        let room = |part: &mut SymbolPart, parts: &mut Vec<SymbolPart>, again: bool| {
            let full = part.is_full();
            if full {
                parts.push(std::mem::take(part));
            }
            if full || !again {
                part.push_mapping(mapping.clone());
            }
            full
        };
        room(&mut part, &mut parts, false);
        let mut before = 0;
        while let Some(place) = places.next_if(|s| s.mapping == i) {
            if places.peek().is_some_and(|next| (next.mapping, next.offset) == (i, place.offset)) {
                continue;
            }
            if room(&mut part, &mut parts, true) {
                before = 0;
            }
            part.push_symbol(place, before);
            before = place.offset;
        }
        while let Some((_, why)) = failures.next_if(|f| f.0 == i) {
            room(&mut part, &mut parts, true);
            part.push_failure(why);
        }
    }
    if !part.mappings.is_empty() {
        parts.push(part);
    }
    Ok(parts)
}

/// The symbols message.
pub(crate) fn write_symbols(part: &SymbolPart) -> Builder<HeapAllocator> {
    let mut message = new_message(part.bytes() + 1024);
    let mut b = message.init_root::<schema::symbols::Builder<'_>>();
    write_mappings(b.reborrow().init_mappings(part.mappings.len() as u32), &part.mappings);
    b.set_rows(part.offset.len() as u32);
    put(b.reborrow().init_mapping(), &part.mapping);
    put(b.reborrow().init_offset(), &part.offset);
    put(b.reborrow().init_functions(), &part.functions);
    b.set_function_rows(part.line.len() as u32);
    put(b.reborrow().init_name(), &nexts(part.name.iter().copied()));
    put(b.reborrow().init_file(), &nexts(part.file.iter().copied()));
    put(b.reborrow().init_line(), &part.line);
    b.set_names(part.names.lens.len() as u32);
    put(b.reborrow().init_name_len(), &part.names.lens);
    b.set_name_bytes(&part.names.bytes);
    b.set_files(part.files.lens.len() as u32);
    put(b.reborrow().init_file_len(), &part.files.lens);
    b.set_file_bytes(&part.files.bytes);
    let mut list = b.init_failures(part.failures.len() as u32);
    for (i, (mapping, why)) in part.failures.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_mapping(*mapping);
        b.set_text(why);
    }
    message
}

/// Divides `bytes` into strings of `lens`; each must be at most `most` long, and nothing may be left.
fn slices<'a>(what: &str, lens: &[u32], bytes: &'a [u8], most: usize) -> Result<Vec<&'a [u8]>> {
    let mut rest = bytes;
    let mut out = Vec::with_capacity(lens.len());
    for &len in lens {
        let len = len as usize;
        let split = if len <= most { rest.split_at_checked(len) } else { None };
        let Some((head, tail)) = split else {
            let why = format!("a {what} of {len} bytes > limit {most}, or more than the {} that are left", rest.len());
            return Err(Error::invalid(SYMBOLS, why));
        };
        out.push(head);
        rest = tail;
    }
    if !rest.is_empty() {
        return Err(Error::invalid(SYMBOLS, format!("{} bytes of {what}s are left over", rest.len())));
    }
    Ok(out)
}

/// The functions of a symbols block, all places' one after the other.
fn read_functions(r: &schema::symbols::Reader<'_>) -> Result<Vec<Function>> {
    let err = capnp_err(SYMBOLS);
    let lens = |n: u32| Ok::<_, Error>(Rows { block: SYMBOLS, n: rows_of(SYMBOLS, n)? });
    let len: Vec<u32> = lens(r.get_names())?.column("nameLen", r.get_name_len())?;
    let names = slices("name", &len, r.get_name_bytes().map_err(&err)?, MAX_NAME)?;
    let len: Vec<u32> = lens(r.get_files())?.column("fileLen", r.get_file_len())?;
    let files = slices("file", &len, r.get_file_bytes().map_err(&err)?, MAX_PATH)?;

    let rows = lens(r.get_function_rows())?;
    let name = rows.nexts("name", r.get_name(), names.len())?;
    let file = rows.nexts("file", r.get_file(), files.len())?;
    let line: Vec<u32> = rows.column("line", r.get_line())?;
    let each = || name.iter().zip(&file).map(|(&name, &file)| (names[name as usize], files[file as usize]));
    let spread: usize = each().map(|(name, file)| name.len() + file.len()).sum();
    if spread > MAX_SPREAD {
        let what = format!("{SYMBOLS} block: names");
        return Err(Error::TooLarge { what, len: spread as u64, limit: MAX_SPREAD as u64 });
    }
    let function =
        |((name, file), line): ((&[u8], &[u8]), u32)| Function { name: name.to_vec(), file: file.to_vec(), line };
    Ok(each().zip(line).map(function).collect())
}

/// The names of a symbols block.
pub(crate) fn read_symbols(header: &Header, message: &Message<'_>) -> Result<Symbols> {
    let err = capnp_err(SYMBOLS);
    let bad = |why: String| Error::invalid(SYMBOLS, why);
    let r = message.get_root::<schema::symbols::Reader<'_>>().map_err(&err)?;
    let mappings = read_mappings(SYMBOLS, header, r.get_mappings())?;
    let rows = Rows { block: SYMBOLS, n: rows_as_header(SYMBOLS, r.get_rows(), header)? };
    let mapping: Vec<u32> = rows.column("mapping", r.get_mapping())?;
    let offset: Vec<u64> = rows.column("offset", r.get_offset())?;
    let functions: Vec<u16> = rows.column("functions", r.get_functions())?;
    let sum: usize = functions.iter().map(|&n| usize::from(n)).sum();
    if sum != r.get_function_rows() as usize {
        return Err(bad(format!("{sum} functions of places, {} in all", r.get_function_rows())));
    }
    let mut function = read_functions(&r)?.into_iter();

    let mut symbols: Vec<Symbol> = Vec::with_capacity(rows.n);
    for (i, &mapping) in mapping.iter().enumerate() {
        let before = symbols.last().map(|s| (s.mapping, s.offset)).filter(|before| before.0 >= mapping);
        let offset = match before {
            _ if mapping as usize >= mappings.len() => {
                return Err(bad(format!("row {i}: mapping {mapping} where there are {}", mappings.len())));
            }
            Some((before, _)) if before > mapping => {
                return Err(bad(format!("row {i}: mapping {mapping} after {before}: not sorted")));
            }
            Some((_, before)) if offset[i] > 0 => {
                before.checked_add(offset[i]).ok_or_else(|| bad(format!("row {i}: an offset passes 2^64 - 1")))?
            }
            Some((_, before)) => return Err(bad(format!("row {i}: offset {before:#x} a second time"))),
            None => offset[i],
        };
        let n = usize::from(functions[i]);
        if n > MAX_FUNCTIONS {
            return Err(bad(format!("row {i}: {n} functions > limit {MAX_FUNCTIONS}")));
        }
        symbols.push(Symbol { mapping, offset, functions: function.by_ref().take(n).collect() });
    }

    let list = r.get_failures().map_err(&err)?;
    list_len::<schema::symbol_failure::Builder<'_>>(SYMBOLS, "failures", list.len(), header)?;
    let mut failures = Vec::new();
    for r in list {
        let mapping = r.get_mapping();
        if mapping as usize >= mappings.len() {
            return Err(bad(format!("failure of mapping {mapping} where there are {}", mappings.len())));
        }
        failures.push((mapping, text(SYMBOLS, r.get_text())?));
    }
    Ok(Symbols { mappings, symbols, failures })
}
