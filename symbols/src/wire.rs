//! Messages between the calling process and the child that reads symbols.
//!
//! A message is a length (u32) and that many bytes; numbers are in the machine's order, a string is its length (u32) and its bytes.
//!
//! | request | | answer |
//! |---|---|---|
//! | SETUP | memory u64, CPU seconds u32, directories: n u32, strings | OK, MAGIC |
//! | OPEN, with a descriptor | build id, path: strings | OK, or FAILED and why: string |
//! | MAP, with a descriptor | - | OK, or FAILED and why: a perf map takes the place of the file, its offsets are addresses |
//! | NAMES | offsets: n u32, u64 each | OK, k u32, then k times: functions n u32, each name, file: strings, line u32; or FAILED and why |
//! | CLOSE | | OK |
//! | FUNCTION, with a descriptor | name: string | OK, offset u64, unwinds u8, code: string, returns: n u32, u64 each; or FAILED and why |
//! | SONAME, with a descriptor | | OK, is there one u8, name: string |
//! | IS_STATIC, with a descriptor | | OK, u8 |
//! | PROBES, with a descriptor | first u32 | OK, all u32, n u32, n static probes from the first on; or FAILED and why |
//! | ADDRESSES, with a descriptor | names: n u32, strings | OK, for each: is there one u8, address u64; or FAILED and why |
//! | IDENT, with a descriptor | | OK, is it ELF u8, build id: string |
//! | EXECUTED, with a descriptor | | OK, what it is u8: 0 script, 1 ELF, 2 ELF without a loader, 3 ELF of another machine, 4 other, name: string; or FAILED: it is not known |
//! | UNWIND, with a descriptor | number u32, most bytes u64 | OK, has it rules u8, memory u64, segments: string; or FAILED and why: the file has that number from here on |
//! | FACTS | number u32, address u64, budget u64 | OK, budget u64, is there an answer u8, facts, first u64 and end u64 of the row (0 = not known) |
//! | STEP | number u32, address u64, budget u64, registers, stack: base, entry, absent pages u64, cut, in a call u8, string | OK, budget u64, the step |
//! | FORGET | | OK: no file has a number any more |
//!
//! Any request may be answered by WANT and a path first: the child opens no file itself. The calling process sends OK with a descriptor,
//! or FAILED if the file is not for the child, and then waits for the answer again.
//!
//! NAMES may be answered for the first k offsets only (k ≥ 1), when the answer would be too long; the rest is asked again.
//! The calling process checks every number: the child may be in the hands of a file it read.

use systape_format::model::Function;

use crate::static_probes::StaticProbe;

pub(crate) const SETUP: u8 = 1;
pub(crate) const OPEN: u8 = 2;
pub(crate) const NAMES: u8 = 3;
pub(crate) const CLOSE: u8 = 4;
pub(crate) const MAP: u8 = 5;

pub(crate) const FUNCTION: u8 = 6;
pub(crate) const SONAME: u8 = 7;
pub(crate) const IS_STATIC: u8 = 8;
pub(crate) const PROBES: u8 = 9;
pub(crate) const ADDRESSES: u8 = 10;

pub(crate) const IDENT: u8 = 11;
pub(crate) const UNWIND: u8 = 12;
pub(crate) const FACTS: u8 = 13;
pub(crate) const STEP: u8 = 14;
pub(crate) const FORGET: u8 = 15;

/// A message to a process that opens files ([`Carrier`](crate::Carrier)): what to open; OK, bytes and a descriptor, or FAILED and why.
pub(crate) const OPENS: u8 = 16;
/// A message to that process, with a file that cannot be read through its descriptor (O_PATH) and a socket: it opens it for reading, and sends what follows with it
/// into the socket. OK, or FAILED and why.
pub(crate) const CARRY: u8 = 17;

pub(crate) const EXECUTED: u8 = 18;

pub(crate) const OK: u8 = 0;
pub(crate) const FAILED: u8 = 1;
pub(crate) const WANT: u8 = 2;

/// Identifies our child, and its version.
pub(crate) const MAGIC: u32 = 0x5379_6d03;

/// Variable in the child's environment: others may have the CPU first.
pub(crate) const GIVE_WAY: &str = "SYSTAPE_GIVE_WAY";

/// Longest request.
pub(crate) const LONGEST_REQUEST: usize = 1 << 20;
/// Longest answer.
pub(crate) const LONGEST_ANSWER: usize = 4 << 20;
/// Most offsets in a request.
pub(crate) const MOST_OFFSETS: usize = 4096;
/// Most files that the child may want for one request.
pub(crate) const MOST_WANTED: usize = 256;
/// Most bytes of a function's code that are told.
pub(crate) const MOST_CODE: usize = 16;
/// Longest build id.
pub(crate) const LONGEST_ID: usize = 64;
/// Most bytes of a file's segments.
pub(crate) const MOST_SEGMENTS: usize = 64 << 10;
/// Most bytes of a stack.
pub(crate) const MOST_STACK: usize = 512 << 10;
/// Most symbols whose addresses are asked for at once.
pub(crate) const MOST_NAMES: usize = 256;
/// Most functions at an offset. One that has more keeps the innermost and the outermost.
pub(crate) const MOST_FUNCTIONS: usize = 64;
/// Longest name, and longest path of a source file.
pub(crate) const LONGEST_STRING: usize = crate::demangle::LONGEST;
/// Longest reason for a failure.
pub(crate) const LONGEST_REASON: usize = 512;

/// A message being written.
#[derive(Debug, Default)]
pub(crate) struct MessageOut(pub Vec<u8>);

impl MessageOut {
    pub(crate) fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    /// `bytes` must be shorter than 4 GiB; all are bounded by the constants above.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    /// What both sides know the length of.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Strings that are too long lose their end; none of a real probe is.
    pub(crate) fn static_probe(&mut self, probe: &StaticProbe) {
        for text in [&probe.provider, &probe.name, &probe.arguments] {
            self.bytes(&text.as_bytes()[..text.len().min(LONGEST_STRING)]);
        }
        self.u64(probe.offset);
        self.u64(probe.address);
        self.u8(probe.semaphore.is_some().into());
        probe.semaphore.iter().for_each(|semaphore| self.u64(*semaphore));
    }

    pub(crate) fn functions(&mut self, functions: &[Function]) {
        self.u32(functions.len() as u32);
        for function in functions {
            self.bytes(&function.name);
            self.bytes(&function.file);
            self.u32(function.line);
        }
    }
}

/// A message being read. None = it is too short, or a length is out of bounds.
#[derive(Debug)]
pub(crate) struct MessageIn<'a>(pub &'a [u8]);

impl<'a> MessageIn<'a> {
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*word))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }

    pub(crate) fn count(&mut self, most: usize) -> Option<usize> {
        self.u32().map(|n| n as usize).filter(|n| *n <= most)
    }

    pub(crate) fn bytes(&mut self, longest: usize) -> Option<&'a [u8]> {
        let len = self.count(longest)?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn raw<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn static_probe(&mut self) -> Option<StaticProbe> {
        let mut text = || self.bytes(LONGEST_STRING).map(|text| String::from_utf8_lossy(text).into_owned());
        let (provider, name, arguments) = (text()?, text()?, text()?);
        let (offset, address) = (self.u64()?, self.u64()?);
        let semaphore = if self.u8()? == 0 { None } else { Some(self.u64()?) };
        Some(StaticProbe { provider, name, offset, address, semaphore, arguments })
    }

    pub(crate) fn functions(&mut self) -> Option<Vec<Function>> {
        let n = self.count(MOST_FUNCTIONS)?;
        let mut functions = Vec::with_capacity(n);
        for _ in 0..n {
            let name = self.bytes(LONGEST_STRING).filter(|name| !name.is_empty())?.to_vec();
            let file = self.bytes(LONGEST_STRING)?.to_vec();
            functions.push(Function { name, file, line: self.u32()? });
        }
        Some(functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_survive_and_any_cut_is_noticed() {
        let functions = vec![
            Function { name: b"inner".to_vec(), file: b"/src/a.c".to_vec(), line: 7 },
            Function { name: b"outer".to_vec(), file: Vec::new(), line: 0 },
        ];
        let mut out = MessageOut::default();
        out.functions(&functions);
        assert_eq!(MessageIn(&out.0).functions(), Some(functions));
        for cut in 0..out.0.len() {
            assert_eq!(MessageIn(&out.0[..cut]).functions(), None, "cut at {cut}");
        }
    }

    #[test]
    fn numbers_out_of_bounds_are_refused() {
        let mut many = MessageOut::default();
        many.u32(MOST_FUNCTIONS as u32 + 1);
        assert_eq!(MessageIn(&many.0).functions(), None);
        let mut long = MessageOut::default();
        long.bytes(&[b'x'; LONGEST_STRING + 1]);
        assert_eq!(MessageIn(&long.0).bytes(LONGEST_STRING), None);
        let mut unnamed = MessageOut::default();
        unnamed.functions(&[Function::default()]);
        assert_eq!(MessageIn(&unnamed.0).functions(), None);
    }
}
