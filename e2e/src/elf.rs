//! Breaks ELF files in known ways: 64-bit ones that this machine's compiler made, so nothing is checked.

use std::ops::Range;

/// A file to be broken.
#[derive(Clone, Debug)]
pub struct Elf(pub Vec<u8>);

impl Elf {
    /// Reads one.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn read(path: &std::path::Path) -> Self {
        Self(std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// An unsigned number of `len` bytes.
    pub fn get(&self, at: usize, len: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&self.0[at..at + len]);
        u64::from_le_bytes(bytes)
    }

    /// Writes bytes.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Where a section's header is.
    ///
    /// # Panics
    /// When there is no such section.
    pub fn header(&self, name: &str) -> usize {
        let index = |at, len| usize::try_from(self.get(at, len)).expect("a small file");
        let (table, count, names) = (index(0x28, 8), index(0x3c, 2), index(0x3e, 2));
        let strings = index(table + names * 64 + 0x18, 8);
        let is = |&header: &usize| {
            let at = strings + index(header, 4);
            self.0[at..].starts_with(name.as_bytes()) && self.0[at + name.len()] == 0
        };
        (0..count).map(|i| table + i * 64).find(is).unwrap_or_else(|| panic!("no section {name}"))
    }

    /// Where a section's bytes are.
    ///
    /// # Panics
    /// When there is no such section.
    pub fn section(&self, name: &str) -> Range<usize> {
        let header = self.header(name);
        let field = |at| usize::try_from(self.get(header + at, 8)).expect("a small file");
        field(0x18)..field(0x18) + field(0x20)
    }

    /// Fills a section with noise, the same each time; its first `keep` bytes stay.
    pub fn scramble(&mut self, name: &str, keep: usize) {
        let range = self.section(name);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for byte in &mut self.0[range.start + keep..range.end] {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
    }

    /// Where the FDEs of `.eh_frame` are: their first byte, their length included.
    pub fn fdes(&self) -> Vec<Range<usize>> {
        let section = self.section(".eh_frame");
        let (mut at, mut fdes) = (section.start, Vec::new());
        while at + 8 <= section.end {
            let len = usize::try_from(self.get(at, 4)).expect("a small file");
            if len == 0 {
                break;
            }
            if self.get(at + 4, 4) != 0 {
                fdes.push(at..at + 4 + len);
            }
            at += 4 + len;
        }
        fdes
    }

    /// Replaces the instructions of every FDE: `rules`, then no-ops. Those that are too short for them stay.
    pub fn rules(&mut self, rules: &[u8]) {
        for fde in self.fdes() {
            // length, CIE pointer, address and size (4 bytes each), length of augmentation data (0)
            let body = fde.start + 17..fde.end;
            if body.len() >= rules.len() {
                self.0[body.clone()].fill(0);
                self.put(body.start, rules);
            }
        }
    }
}
