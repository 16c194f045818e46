//! Names of places in code. A block is complete in itself, so many names take several blocks.

use std::collections::HashMap;

use super::rows::{Rows, nexts, rows_as_header, rows_of};
use super::stacks::{mapping_bytes, read_mappings, write_mappings};
use super::text;
use crate::column::put;
use crate::error::{Error, Result, capnp_err};
use crate::header::Header;
use crate::model::{Function, MAX_PATH, Mapping, Symbol, Symbols, cut_mapping};
use crate::payload::{Message, list_len, new_message};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const SYMBOLS: &str = "symbols";

/// Bytes kept of a function's name, about as long as the longest of C++ templates.
const MAX_NAME: usize = 16 << 10;
/// Functions kept of a place, the innermost first.
const MAX_FUNCTIONS: usize = 256;
/// Estimated bytes at which the next block begins: half of a block's limit. One more place always fits: it has at most
/// 256 * (16 + 4) KiB.
const PART_BYTES: usize = 4 << 20;
/// Bytes of names and files, counted once per use, at which the next block begins.
const PART_SPREAD: usize = 32 << 20;
/// The same limit for a reader, which makes strings of them: a small block must not become gigabytes.
const MAX_SPREAD: usize = 64 << 20;
/// Most bytes of a place in a message without its functions.
const SYMBOL_BYTES: usize = 16;
/// The same for a function.
const FUNCTION_BYTES: usize = 12;

/// Distinct strings, in order of first use.
#[derive(Default)]
struct DistinctStrings {
    ids: HashMap<Vec<u8>, u32>,
    lens: Vec<u32>,
    bytes: Vec<u8>,
}

impl DistinctStrings {
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

    /// Most bytes in a message.
    fn bytes(&self) -> usize {
        self.lens.len() * 4 + self.bytes.len() + 8
    }
}

/// Contents of one block.
#[derive(Default)]
pub(crate) struct SymbolPart {
    mappings: Vec<Mapping>,
    mapping: Vec<u32>,
    /// Offset minus that of the place before.
    offset: Vec<u64>,
    functions: Vec<u32>,
    name: Vec<u32>,
    file: Vec<u32>,
    line: Vec<u32>,
    names: DistinctStrings,
    files: DistinctStrings,
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

    /// Most bytes of its message.
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

/// Divides names into parts that fit blocks; no parts without names. Of two symbols for one place the last is kept.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;

    fn function(name: &str, file: &str, line: u32) -> Function {
        Function { name: name.into(), file: file.into(), line }
    }

    fn sample() -> Symbols {
        let symbol =
            |mapping, offset, functions: &[Function]| Symbol { mapping, offset, functions: functions.to_vec() };
        Symbols {
            mappings: vec![Mapping { path: b"a".to_vec(), ..Mapping::default() }, Mapping::default()],
            symbols: vec![
                symbol(0, 5, &[function("f", "x.c", 7), function("g", "x.c", 9)]),
                symbol(0, 8, &[]),
                symbol(1, 2, &[function("f", "", 0)]),
            ],
            failures: vec![(1, "why".to_owned())],
        }
    }

    /// All parts of `symbols`, read again, and the sizes of their messages.
    fn round(symbols: &Symbols) -> (Vec<Symbols>, usize) {
        let parts = split_symbols(symbols).expect("mappings in range");
        let mut largest = 0;
        let read = |part: &SymbolPart| {
            let message = write_symbols(part);
            let bytes = capnp::serialize::compute_serialized_size_in_words(&message) * 8;
            assert!(bytes <= part.bytes() + 1024, "{bytes} bytes, estimated {}", part.bytes());
            largest = largest.max(bytes);
            reread(&message, part.rows() as u32, read_symbols).expect("own message")
        };
        (parts.iter().map(read).collect(), largest)
    }

    type Root<'a> = schema::symbols::Builder<'a>;

    #[test]
    fn symbols_that_break_a_must_are_refused() {
        let forged = |forge: &dyn Fn(Root<'_>)| {
            let mut message = write_symbols(&split_symbols(&sample()).expect("sound")[0]);
            forge(message.get_root().expect("the root"));
            reread(&message, 3, read_symbols).map_err(|e| e.to_string())
        };
        assert_eq!(forged(&|_| ()), Ok(sample()));
        let says = |what: &str, forge: &dyn Fn(Root<'_>)| {
            let e = forged(forge).expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says("mapping 0 has unknown kind 9", &|b| b.get_mappings().expect("mappings").get(0).set_kind(9));
        says("row 2: mapping 2 where there are 2", &|b| put(b.init_mapping(), &[0u32, 0, 2]));
        says("row 2: mapping 0 after 1: not sorted", &|b| put(b.init_mapping(), &[0u32, 1, 0]));
        says("row 1: offset 0x5 a second time", &|b| put(b.init_offset(), &[5u32, 0, 2]));
        says("row 1: an offset passes 2^64 - 1", &|b| put(b.init_offset(), &[5, u64::MAX, 2]));
        says("4 functions of places, 3 in all", &|b| put(b.init_functions(), &[2u32, 1, 1]));
        says("row 0: 257 functions > limit 256", &|mut b| {
            b.set_function_rows(258);
            put(b.reborrow().init_line(), &[0u32; 258]);
            put(b.reborrow().init_name(), &[1u32; 258]);
            put(b.reborrow().init_file(), &[1u32; 258]);
            put(b.init_functions(), &[257u32, 0, 1]);
        });
        says("name 2 where there are 2", &|b| put(b.init_name(), &[0u32, 0, 3]));
        says("file 2 where there are 2", &|b| put(b.init_file(), &[0u32, 3, 0]));
        says("a name of 2 bytes > limit 16384, or more than the 1 that are left", &|b| {
            put(b.init_name_len(), &[1u32, 2])
        });
        says("1 bytes of names are left over", &|b| put(b.init_name_len(), &[1u32, 0]));
        says("a file of 4 bytes", &|b| put(b.init_file_len(), &[4u32, 0]));
        says("failure of mapping 2 where there are 2", &|b| b.get_failures().expect("failures").get(0).set_mapping(2));
        says("4 rows, its header says 3", &|mut b| b.set_rows(4));
        says("> limit 1048576", &|mut b| b.set_names(1 << 21));
        says("> limit 1048576", &|mut b| b.set_files(u32::MAX));
        says("absent", &|b| _ = b.init_offset());
    }

    #[test]
    fn a_small_block_does_not_become_gigabytes() {
        let mut message = write_symbols(&split_symbols(&sample()).expect("sound")[0]);
        let mut b: Root<'_> = message.get_root().expect("the root");
        // A million functions with the longest name, which all stand there once.
        let n = 1 << 20;
        b.set_rows(4096);
        put(b.reborrow().init_mapping(), &[0u32; 4096]);
        put(b.reborrow().init_offset(), &[1u32; 4096]);
        put(b.reborrow().init_functions(), &[256u32; 4096]);
        b.set_function_rows(n);
        put(b.reborrow().init_name(), &vec![1u32; n as usize]);
        put(b.reborrow().init_file(), &vec![1u32; n as usize]);
        put(b.reborrow().init_line(), &vec![1u32; n as usize]);
        b.set_names(1);
        put(b.reborrow().init_name_len(), &[MAX_NAME as u32]);
        b.set_name_bytes(&[b'x'; MAX_NAME]);
        let e = reread(&message, 4096, read_symbols).expect_err("16 GiB of names");
        assert!(matches!(e, Error::TooLarge { limit: 67_108_864, .. }), "{e}");
    }

    #[test]
    fn many_symbols_are_several_blocks() {
        let mut symbols = Symbols {
            mappings: (0..3).map(|upid| Mapping { upid, ..Mapping::default() }).collect(),
            ..Symbols::default()
        };
        for i in 0..200_000u64 {
            let functions =
                vec![function(&format!("namespace::of::a::function_{i}"), "src/lib.rs", i as u32); 1 + i as usize % 3];
            // Not in order.
            symbols.symbols.push(Symbol { mapping: 2 - (i % 3) as u32, offset: (i * 7919) % 1_000_003, functions });
        }
        symbols.failures = vec![(0, "first".to_owned()), (2, "last".to_owned()), (2, "very last".to_owned())];
        let (parts, largest) = round(&symbols);
        assert!(parts.len() > 2 && largest < 5 << 20, "{} parts, {largest} bytes", parts.len());
        let mut all = Vec::new();
        let mut failures = Vec::new();
        for part in parts {
            let upid = |mapping: u32| part.mappings[mapping as usize].upid;
            all.extend(part.symbols.iter().map(|s| Symbol { mapping: upid(s.mapping), ..s.clone() }));
            failures.extend(part.failures.iter().map(|(mapping, why)| (upid(*mapping), why.clone())));
        }
        symbols.symbols.sort_by_key(|s| (s.mapping, s.offset));
        assert!(all == symbols.symbols);
        assert_eq!(failures, symbols.failures);
    }

    #[test]
    fn names_that_are_used_often_close_a_block_too() {
        let functions = vec![function(&"x".repeat(10_000), "y", 1); 100];
        let symbols = (0..100).map(|offset| Symbol { mapping: 0, offset, functions: functions.clone() }).collect();
        let all = Symbols { mappings: vec![Mapping::default()], symbols, failures: vec![] };
        let (parts, _) = round(&all);
        assert!(parts.len() > 2, "{}", parts.len());
        assert_eq!(parts.iter().map(|p| p.symbols.len()).sum::<usize>(), 100);
    }

    #[test]
    fn what_is_huge_is_cut() {
        let long = |c: u8, n: usize| vec![c; n];
        let chain = (0..300u32).map(|i| {
            let name = [&i.to_le_bytes()[..], &long(b'n', 20_000)].concat();
            Function { file: [&i.to_le_bytes()[..], &long(b'f', 5000)].concat(), name, line: i }
        });
        let chain: Vec<Function> = chain.collect();
        let mapping = Mapping { path: long(b'p', 10_000), build_id: long(1, 10_000), ..Mapping::default() };
        let symbol = |offset| Symbol { mapping: 0, offset, functions: chain.clone() };
        let why = "\u{e9}".repeat(5000);
        let all = Symbols { mappings: vec![mapping], symbols: vec![symbol(1), symbol(2)], failures: vec![(0, why)] };
        let (parts, largest) = round(&all);
        assert!(parts.len() >= 2 && largest < 6 << 20, "{} parts, {largest} bytes", parts.len());
        assert_eq!(parts[0].mappings[0].path.len(), MAX_PATH);
        let kept = &parts[1].symbols[0];
        assert_eq!((kept.offset, kept.functions.len()), (2, MAX_FUNCTIONS));
        assert!(
            kept.functions.iter().zip(&chain).all(|(kept, f)| kept.line == f.line && f.name.starts_with(&kept.name))
        );
        assert_eq!((kept.functions[0].name.len(), kept.functions[0].file.len()), (MAX_NAME, MAX_PATH));
        let failures: Vec<_> = parts.iter().flat_map(|p| &p.failures).collect();
        assert_eq!(failures, [&(0, "\u{e9}".repeat(MAX_PATH / 2))]);
    }

    #[test]
    fn one_name_is_kept_of_a_place() {
        let symbol = |line| Symbol { mapping: 0, offset: 4, functions: vec![function("f", "", line)] };
        let all = Symbols { mappings: vec![Mapping::default()], symbols: vec![symbol(1), symbol(2)], failures: vec![] };
        assert_eq!(round(&all).0[0].symbols, [symbol(2)]);
        assert!(split_symbols(&Symbols::default()).expect("nothing").is_empty());
        let e = split_symbols(&Symbols { mappings: vec![], ..all }).err().expect("no mapping");
        assert!(e.to_string().contains("mapping 0 where there are 0"), "{e}");
    }
}
