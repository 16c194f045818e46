//! Names in Go programs: the table of functions and lines that the Go runtime itself uses, which no stripping takes away
//! (`.gopclntab`; its layout: src/internal/abi/symtab.go and src/runtime/symtab.go of Go).

use std::ops::Range;

use object::elf::{R_AARCH64_RELATIVE, R_X86_64_RELATIVE};
use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object, ObjectSection, RelocationFlags, RelocationTarget};
use systape_format::model::Function;

/// Names of the section; that of programs that may be anywhere is among the data that is relocated.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// The beginning of the runtime's first function on each platform; the program begins there unless C's code is around it.
const ENTRY: &[u8] = b"_rt0_";
/// Bytes of the table's header before its numbers.
const HEADER: usize = 8;
/// Which of a function's tables has the index into the tree of what is inlined.
const INLINE_INDEX: usize = 2;
/// Longest name.
const LONGEST: usize = 4096;

/// How the table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Go 1.16 and 1.17.
    Go116,
    /// Go 1.18 and 1.19.
    Go118,
    /// Go 1.20 and later.
    Go120,
}

/// The table of a program.
#[derive(Debug)]
pub(crate) struct GoTable {
    /// Where the section is in the file.
    section: Range<usize>,
    layout: Layout,
    functions: usize,
    /// Address that the functions' are relative to; 0 of Go 1.16, which has them whole.
    text: u64,
    /// Offsets in the section: of names, of files of compilation units, of files, of tables of numbers, of functions.
    names: usize,
    units: usize,
    files: usize,
    numbers: usize,
    entries: usize,
}

/// A number at `at`; None: there is none.
fn u32_at(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*table.get(at..)?.first_chunk()?))
}

fn u64_at(table: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*table.get(at..)?.first_chunk()?))
}

/// The bytes at `at` up to a zero.
fn text_at(table: &[u8], at: usize) -> Option<&[u8]> {
    let text = table.get(at..)?;
    let len = text.iter().take(LONGEST).position(|byte| *byte == 0)?;
    Some(&text[..len])
}

impl GoTable {
    /// That of a file; None: it has none that is understood.
    pub(crate) fn of(file: &[u8]) -> Option<Self> {
        let elf: ElfFile64<'_, Endianness> = ElfFile64::parse(file).ok()?;
        let section = SECTIONS.iter().find_map(|name| elf.section_by_name(name))?;
        let (at, size) = section.file_range()?;
        let at = usize::try_from(at).ok()?;
        let range = at..at.checked_add(usize::try_from(size).ok()?)?;
        let table = file.get(range.clone())?;
        let layout = match u32_at(table, 0)? {
            0xffff_fffa => Layout::Go116,
            0xffff_fff0 => Layout::Go118,
            0xffff_fff1 => Layout::Go120,
            _ => return None,
        };
        // 8 bytes an address; steps are of an instruction's least length
        let step = if elf.architecture() == Architecture::Aarch64 { 4 } else { 1 };
        if table.get(4..HEADER)? != [0, 0, step, 8] {
            return None;
        }
        let number = |nth: usize| u64_at(table, HEADER + 8 * nth);
        let place = |nth: usize| usize::try_from(number(nth)?).ok().filter(|at| *at <= table.len());
        let text_before = usize::from(layout != Layout::Go116);
        let mut this = Self {
            section: range,
            layout,
            functions: usize::try_from(number(0)?).ok().filter(|n| *n <= table.len() / 8)?,
            text: if text_before > 0 { number(2)? } else { 0 },
            names: place(2 + text_before)?,
            units: place(3 + text_before)?,
            files: place(4 + text_before)?,
            numbers: place(5 + text_before)?,
            entries: place(6 + text_before)?,
        };
        if text_before > 0 && this.text == 0 {
            // it is filled in where the program is loaded, or since Go 1.26 known to the runtime alone
            this.text = relocated(&elf, section.address().wrapping_add(HEADER as u64 + 16)).or_else(|| {
                this.text = elf.section_by_name(".text")?.address();
                let (start, function) = this.function(table, elf.entry())?;
                (start == elf.entry() && this.name(table, function)?.starts_with(ENTRY)).then_some(this.text)
            })?;
        }
        Some(this)
    }

    /// The function at an address of `file`, which this is of; None: no Go function is there.
    pub(crate) fn look_up(&self, file: &[u8], address: u64) -> Option<Function> {
        let table = file.get(self.section.clone())?;
        let (start, function) = self.function(table, address)?;
        let name = self.name(table, function).filter(|name| !name.is_empty())?;
        let mut found = Function { name: name.to_vec(), ..Function::default() };
        if let Some((file, line)) = self.line(table, function, (start, address)) {
            (found.file, found.line) = (file.to_vec(), line);
        }
        Some(found)
    }

    /// Start of the `nth` function, and where its entry is; of the one behind the last its start is the end of all.
    fn nth(&self, table: &[u8], nth: usize) -> Option<(u64, usize)> {
        let (start, at) = if self.layout == Layout::Go116 {
            let at = self.entries + 16 * nth;
            (u64_at(table, at)?, u64_at(table, at + 8).and_then(|at| usize::try_from(at).ok()))
        } else {
            let at = self.entries + 8 * nth;
            (self.text.checked_add(u32_at(table, at)?.into())?, u32_at(table, at + 4).map(|at| at as usize))
        };
        // the end has no entry
        Some((start, self.entries.checked_add(at.unwrap_or(0))?))
    }

    /// Start of the function at an address, and where its entry is.
    fn function(&self, table: &[u8], address: u64) -> Option<(u64, usize)> {
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.nth(table, middle)?.0 <= address { low = middle + 1 } else { high = middle }
        }
        let end = self.nth(table, self.functions)?.0;
        self.nth(table, low.checked_sub(1)?).filter(|_| address < end)
    }

    /// A number of a function's entry, the `nth` behind its start.
    fn field(&self, table: &[u8], function: usize, nth: usize) -> Option<u32> {
        let start = if self.layout == Layout::Go116 { 8 } else { 4 };
        u32_at(table, function.checked_add(start + 4 * nth)?)
    }

    fn name<'t>(&self, table: &'t [u8], function: usize) -> Option<&'t [u8]> {
        text_at(table, self.names.checked_add(self.field(table, function, 0)? as usize)?)
    }

    /// File and line; None where the place is one in a function that is inlined, whose name is not in this table.
    fn line<'t>(&self, table: &'t [u8], function: usize, at: (u64, u64)) -> Option<(&'t [u8], u32)> {
        let tables = self.field(table, function, 6)? as usize;
        if tables > INLINE_INDEX {
            // behind four small numbers, and since Go 1.20 the first line
            let before = 9 + usize::from(self.layout == Layout::Go120);
            let inlined = self.field(table, function, before + INLINE_INDEX)?;
            if inlined != 0 && self.value(table, inlined, at)? >= 0 {
                return None;
            }
        }
        let file = usize::try_from(self.value(table, self.field(table, function, 4)?, at)?).ok()?;
        let line = u32::try_from(self.value(table, self.field(table, function, 5)?, at)?).ok()?;
        let unit = self.field(table, function, 7)? as usize;
        let name = u32_at(table, self.units.checked_add(unit.checked_add(file)?.checked_mul(4)?)?)?;
        let name = (name != u32::MAX).then(|| text_at(table, self.files.checked_add(name as usize)?)).flatten()?;
        Some((name, line))
    }

    /// The value that a table of numbers has at an address: pairs of how it changes, and for how many bytes it stays.
    fn value(&self, table: &[u8], numbers: u32, (start, address): (u64, u64)) -> Option<i32> {
        let mut rest = table.get(self.numbers.checked_add(numbers as usize)?..)?;
        let (mut value, mut until) = (-1_i32, start);
        loop {
            let by = varint(&mut rest)?;
            if by == 0 && until != start {
                return None;
            }
            value = value.wrapping_add((by >> 1) as i32 ^ -((by & 1) as i32));
            until = until.checked_add(varint(&mut rest)?.into())?;
            if address < until {
                return Some(value);
            }
        }
    }
}

/// Seven bits a byte, the last one below 128.
fn varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// What stands at `address` after the program was loaded at 0.
fn relocated(elf: &ElfFile64<'_, Endianness>, address: u64) -> Option<u64> {
    let (_, relocation) = elf.dynamic_relocations()?.find(|(at, _)| *at == address)?;
    let own = if elf.architecture() == Architecture::Aarch64 { R_AARCH64_RELATIVE } else { R_X86_64_RELATIVE };
    let relative = matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type == own);
    let absolute = relocation.target() == RelocationTarget::Absolute;
    (relative && absolute).then(|| u64::try_from(relocation.addend()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions at 0x1000 and 0x1010, of which the second has something inlined in its last 8 bytes.
    fn small() -> (Vec<u8>, GoTable) {
        let mut table = Vec::new();
        let (names, units) = (b"\0main.a\0main.b\0", [0_u32, 7, u32::MAX]);
        let files = b"/a.go\0\0/b.go\0";
        // values 0 for 32 bytes; 4 for 8 bytes, then 9 for 24; -1 for 8 bytes, then 0 for 8
        let numbers: [&[u8]; 4] = [&[0], &[2, 32, 0], &[10, 8, 10, 24, 0], &[0, 8, 2, 8, 0]];
        let starts: Vec<u32> =
            numbers.iter().scan(0, |at, bytes| Some(std::mem::replace(at, *at + bytes.len() as u32))).collect();
        table.extend_from_slice(names);
        let units_at = table.len();
        units.iter().for_each(|word| table.extend(word.to_le_bytes()));
        let files_at = table.len();
        table.extend_from_slice(files);
        let numbers_at = table.len();
        numbers.iter().for_each(|bytes| table.extend_from_slice(bytes));
        let entries = table.len();
        // start and place of the entry of each, and the end
        [0, 20, 0x10, 76, 0x20].iter().for_each(|word: &u32| table.extend(word.to_le_bytes()));
        let entry = |start: u32, name, unit, inlined| {
            let [_, file, line, _] = starts[..] else { unreachable!() };
            [start, name, 0, 0, 0, file, line, 3, unit, 1, 0, 0, 0, inlined]
        };
        for word in entry(0, 1, 0, 0).into_iter().chain(entry(0x10, 8, 1, starts[3])) {
            table.extend(word.to_le_bytes());
        }
        let go = GoTable {
            section: 0..table.len(),
            layout: Layout::Go120,
            functions: 2,
            text: 0x1000,
            names: 0,
            units: units_at,
            files: files_at,
            numbers: numbers_at,
            entries,
        };
        (table, go)
    }

    #[test]
    fn functions_and_lines() {
        let (table, go) = small();
        let at = |address| {
            let found = go.look_up(&table, address)?;
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            Some((text(found.name), text(found.file), found.line))
        };
        let of = |name: &str, file: &str, line| Some((name.to_owned(), file.to_owned(), line));
        assert_eq!((at(0x1000), at(0x1007)), (of("main.a", "/a.go", 4), of("main.a", "/a.go", 4)));
        assert_eq!((at(0x1008), at(0x100f)), (of("main.a", "/a.go", 9), of("main.a", "/a.go", 9)));
        assert_eq!((at(0x1010), at(0x1018)), (of("main.b", "/b.go", 4), of("main.b", "", 0)));
        assert_eq!((at(0xfff), at(0x1020), at(u64::MAX)), (None, None, None));
    }

    #[test]
    fn damaged_tables_are_read() {
        let (table, go) = small();
        let mut seed = 7_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        for _ in 0..100_000 {
            let mut damaged = table.clone();
            for _ in 0..=random() % 3 {
                let at = random() as usize % damaged.len();
                damaged[at] = random() as u8;
            }
            let layout = [Layout::Go116, Layout::Go118, Layout::Go120][random() as usize % 3];
            damaged.truncate(damaged.len() - random() as usize % 40);
            let go = GoTable { layout, section: 0..damaged.len(), ..go };
            let _ = go.look_up(&damaged, 0x1000 + random() % 64);
        }
    }
}
