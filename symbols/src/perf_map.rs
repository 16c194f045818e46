//! Names of code made at run time, from the process's `/tmp/perf-PID.map`.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Most bytes read of a perf map, from its end, because the newest lines count.
pub const MOST: u64 = 64 << 20;
/// Longest line.
const LONGEST_LINE: usize = 4096;

/// Range of one function's code, until other code took its place.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    /// Where the function begins, which may be before the piece.
    function: u64,
    name: (u32, u16),
}

/// The functions in a map.
#[derive(Debug, Default)]
pub struct PerfMap {
    names: Vec<u8>,
    /// Sorted, not overlapping.
    pieces: Vec<Piece>,
}

impl PerfMap {
    /// Reads a map: lines of start, size (hexadecimal) and name. The caller opens it, in the process's own mount
    /// namespace, and checks its owner. Of a file longer than 64 MiB only the end is read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(mut file: &File) -> io::Result<Self> {
        let skip = file.metadata()?.len().saturating_sub(MOST);
        if skip > 0 {
            file.seek(SeekFrom::Start(skip))?;
        }
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text)?;
        let from = if skip > 0 { text.iter().position(|b| *b == b'\n').map_or(text.len(), |at| at + 1) } else { 0 };
        Ok(Self::parse(&text[from..]))
    }

    /// Parses the text of a map. Invalid or too long lines are skipped; where lines overlap, the later one counts.
    pub fn parse(text: &[u8]) -> Self {
        let mut this = Self::default();
        let mut lines: Vec<Piece> = Vec::new();
        for line in text.split(|b| *b == b'\n') {
            let Some((start, end, name)) = parse_line(line) else { continue };
            let Ok(at) = u32::try_from(this.names.len()) else { break };
            this.names.extend_from_slice(name);
            lines.push(Piece { start, end, function: start, name: (at, name.len() as u16) });
        }
        this.pieces = cut_up(lines);
        this
    }

    /// The function at an address and the distance from its start.
    pub fn lookup(&self, address: u64) -> Option<(&[u8], u64)> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = self.pieces[..after].last().filter(|piece| address < piece.end)?;
        let (at, len) = piece.name;
        Some((self.names.get(at as usize..at as usize + usize::from(len))?, address - piece.function))
    }

    /// Whether there is no function.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    if line.len() > LONGEST_LINE {
        return None;
    }
    let mut fields = line.splitn(3, |b| *b == b' ');
    let start = hexadecimal(fields.next()?)?;
    let end = start.checked_add(hexadecimal(fields.next()?)?)?;
    let name = fields.next()?.trim_ascii();
    (end > start && !name.is_empty()).then_some((start, end, name))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// From lines in the order of the file to pieces without overlaps: at each address the last line that covers it. A
/// sweep over the starts; a heap holds the lines that reach over the current place, the last on top.
fn cut_up(lines: Vec<Piece>) -> Vec<Piece> {
    let mut by_start: Vec<u32> = (0..lines.len() as u32).collect();
    by_start.sort_by_key(|i| lines[*i as usize].start);
    let mut starts = by_start.into_iter().peekable();
    let mut over: BinaryHeap<u32> = BinaryHeap::new();
    let mut pieces: Vec<Piece> = Vec::with_capacity(lines.len());
    let mut at = 0;
    loop {
        while over.peek().is_some_and(|i| lines[*i as usize].end <= at) {
            over.pop();
        }
        let next = starts.peek().map(|i| lines[*i as usize].start);
        match (over.peek(), next) {
            (None, None) => return pieces,
            (None, Some(start)) => at = start,
            (Some(top), next) => {
                let line = lines[*top as usize];
                let end = next.map_or(line.end, |start| line.end.min(start));
                if end > at {
                    match pieces.last_mut() {
                        Some(last) if last.end == at && last.name == line.name => last.end = end,
                        _ => pieces.push(Piece { start: at, end, ..line }),
                    }
                }
                at = end;
            }
        }
        while let Some(i) = starts.next_if(|i| lines[*i as usize].start <= at) {
            over.push(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(map: &PerfMap, address: u64) -> Option<(String, u64)> {
        map.lookup(address).map(|(name, offset)| (String::from_utf8_lossy(name).into_owned(), offset))
    }

    #[test]
    fn names_with_spaces_and_prefixes() {
        let map = PerfMap::parse(b"7f00 10 LazyCompile:~f /a b.js:3\n0x8000 0x20 py::g:/x.py\n");
        assert_eq!(name(&map, 0x7f0f), Some(("LazyCompile:~f /a b.js:3".into(), 15)));
        assert_eq!(name(&map, 0x7f10), None);
        assert_eq!(name(&map, 0x8001), Some(("py::g:/x.py".into(), 1)));
    }

    #[test]
    fn what_is_no_line_is_skipped() {
        let long = format!("500 10 {}\n", "x".repeat(5000));
        let text = format!(
            "\nnothing\n100\n100 10\n100 10 \n+100 10 plus\n100 0 empty\nffffffffffffffff 2 over\n{long}200 10 good"
        );
        let map = PerfMap::parse(text.as_bytes());
        assert_eq!(name(&map, 0x205), Some(("good".into(), 5)));
        assert_eq!((map.pieces.len(), name(&map, 0x100), name(&map, 0x500)), (1, None, None));
        assert!(PerfMap::parse(&[0xff; 100]).is_empty());
    }

    #[test]
    fn the_later_line_wins() {
        let map = PerfMap::parse(b"100 100 old\n140 20 new\n1f0 20 edge\n100 100 \n");
        assert_eq!(name(&map, 0x13f), Some(("old".into(), 0x3f)));
        assert_eq!(name(&map, 0x140), Some(("new".into(), 0)));
        assert_eq!(name(&map, 0x160), Some(("old".into(), 0x60)));
        assert_eq!(name(&map, 0x1f0), Some(("edge".into(), 0)));
        let map = PerfMap::parse(b"140 20 small\n100 100 cover\n");
        assert_eq!(name(&map, 0x145), Some(("cover".into(), 0x45)));
    }

    /// Against the plain way: an array of all addresses, written line by line.
    #[test]
    fn any_overlap_is_as_if_written_in_turn() {
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..300 {
            let mut plain = vec![None; 300];
            let mut text = String::new();
            for line in 0..random(40) {
                let (start, size) = (random(200), random(60));
                text.push_str(&format!("{start:x} {size:x} f{line}\n"));
                for address in start..start + size {
                    plain[address as usize] = Some((format!("f{line}"), address - start));
                }
            }
            let map = PerfMap::parse(text.as_bytes());
            for (address, expected) in plain.iter().enumerate() {
                assert_eq!(&name(&map, address as u64), expected, "{address:x} of\n{text}");
            }
        }
    }
}
