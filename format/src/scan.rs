//! Walks a tape's headers from the front, to read a tape without index, or to check one with it.
//!
//! Only headers are read, and every byte at most twice: once as a header, once in the search for the next header after
//! damage. Memory is one [`Header`] per block plus a window of 64 KiB.

use crate::error::Result;
use crate::footer::{FOOTER_LEN, Footer};
use crate::header::{HEADER_LEN, Header, HeaderError, MAGIC};
use crate::source::Source;

/// Bytes searched together for a header.
const WINDOW: usize = 64 << 10;
/// A fault in a tape that does not prevent reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TapeFault {
    /// Offset from the file's first byte.
    pub offset: u64,
    /// The fault in words, with the values that disagree.
    pub text: String,
}

/// Findings kept; after that they are counted.
const MAX_FINDINGS: usize = 1000;

/// Findings, bounded in number.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<TapeFault>,
    more: u64,
}

impl Findings {
    pub(crate) fn push(&mut self, offset: u64, text: impl Into<String>) {
        if self.list.len() < MAX_FINDINGS {
            self.list.push(TapeFault { offset, text: text.into() });
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn contains(&self, finding: &TapeFault) -> bool {
        self.list.contains(finding)
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for f in other.list {
            self.push(f.offset, f.text);
        }
        self.more += other.more;
    }

    pub(crate) fn into_vec(mut self) -> Vec<TapeFault> {
        if self.more > 0 {
            let offset = self.list.last().map_or(0, |f| f.offset);
            self.list.push(TapeFault { offset, text: format!("{} more findings are not listed", self.more) });
        }
        self.list
    }
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    /// Whole blocks of this tape with their offsets, ascending.
    pub(crate) blocks: Vec<(u64, Header)>,
    pub(crate) findings: Findings,
    /// The footer, when the walk reached it.
    pub(crate) footer: Option<Footer>,
    /// First byte after the tape: end of the file, or of the tape inside it.
    pub(crate) end: u64,
}

/// What stands where a block should begin.
enum At {
    Block(Header),
    Footer(Footer),
    OtherTape,
    Bad(String),
}

/// Walks `len` bytes of `source` from `start` on, following tape `tape_id`.
pub(crate) fn scan(source: &Source, len: u64, start: u64, tape_id: &[u8; 16]) -> Result<ScanResult> {
    let mut out = ScanResult::default();
    let mut pos = start;
    // Payload of the last header that was whole: after damage the search begins there, since a torn block may be
    // shorter than its header says. It only grows, so the search ends.
    let mut floor = start;
    let mut last_seq = None;
    while pos < len {
        match look(source, pos, len, tape_id)? {
            At::Footer(footer) => {
                out.footer = Some(footer);
                pos += FOOTER_LEN as u64;
                if pos < len {
                    out.findings.push(pos, format!("{} bytes follow the end of the tape and are not read", len - pos));
                }
                out.end = pos;
                return Ok(out);
            }
            At::OtherTape => {
                out.findings.push(pos, format!("another tape begins here; its {} bytes are not read", len - pos));
                out.end = pos;
                return Ok(out);
            }
            At::Block(header) => {
                let end = pos + HEADER_LEN as u64 + u64::from(header.stored_len);
                floor = pos + HEADER_LEN as u64;
                if end <= len {
                    out.blocks.push((pos, header));
                    last_seq = Some(header.seq);
                    pos += header.span();
                    continue;
                }
                let text = format!(
                    "{} block {} is torn: it needs {} bytes, the file has {}",
                    header.kind.name(),
                    header.seq,
                    end - pos,
                    len - pos
                );
                out.findings.push(pos, text);
                last_seq = Some(header.seq);
                pos = len;
            }
            At::Bad(why) => out.findings.push(pos, format!("no block where one should begin: {why}")),
        }
        match resync(source, floor, len, tape_id, pos, last_seq)? {
            Some(hit) => {
                out.findings.push(hit, "found the next block of the tape here".to_owned());
                pos = hit;
            }
            None => break,
        }
    }
    out.end = len;
    Ok(out)
}

fn look(source: &Source, pos: u64, len: u64, tape_id: &[u8; 16]) -> Result<At> {
    let mut bytes = [0u8; HEADER_LEN];
    let n = source.read_at(&mut bytes, pos)?;
    if let Some(footer) = bytes.first_chunk::<FOOTER_LEN>().and_then(|b| Footer::parse(b, pos))
        && n >= FOOTER_LEN
        && footer.tape_id == *tape_id
    {
        return Ok(At::Footer(footer));
    }
    let left = len - pos;
    if n < HEADER_LEN {
        return Ok(At::Bad(format!("{left} bytes are left, a header has {HEADER_LEN}")));
    }
    Ok(match Header::parse(&bytes) {
        Ok(header) if header.tape_id == *tape_id => At::Block(header),
        Ok(_) => At::OtherTape,
        Err(HeaderError::Magic) if bytes.iter().all(|&b| b == 0) => {
            At::Bad(format!("zeros, as a power cut leaves them ({left} bytes to the end of the file)"))
        }
        Err(e) => At::Bad(format!("{e} ({left} bytes to the end of the file)")),
    })
}

/// The next header of `tape_id` at `from` or later. Before `claimed` (inside what the last header called its payload) it
/// must also have a later number than `last_seq`: captured bytes may hold old headers.
fn resync(
    source: &Source,
    from: u64,
    len: u64,
    tape_id: &[u8; 16],
    claimed: u64,
    last_seq: Option<u64>,
) -> Result<Option<u64>> {
    find_header(source, from, len, |at, header| {
        header.tape_id == *tape_id && (at >= claimed || last_seq.is_none_or(|last| header.seq > last))
    })
}

/// First offset in `from..to` of a whole header that `accept` takes.
pub(crate) fn find_header(
    source: &Source,
    from: u64,
    to: u64,
    accept: impl Fn(u64, &Header) -> bool,
) -> Result<Option<u64>> {
    let mut window = vec![0u8; WINDOW + HEADER_LEN];
    let mut base = from;
    while let Some(data) = source.data_from(base).filter(|data| *data < to) {
        base = data;
        let n = source.read_at(&mut window, base)?;
        let bytes = window.get(..n).unwrap_or_default();
        // Every position of the first WINDOW bytes is followed by a whole header, except at the end of the file.
        for at in candidates(bytes) {
            let header = bytes.get(at..).and_then(|b| b.first_chunk::<HEADER_LEN>()).map(Header::parse);
            let offset = base + at as u64;
            if let Some(Ok(header)) = header
                && offset < to
                && accept(offset, &header)
            {
                return Ok(Some(offset));
            }
        }
        if n < window.len() {
            break;
        }
        base += WINDOW as u64;
    }
    Ok(None)
}

/// Positions of the magic in the current part of a window.
fn candidates(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let last = bytes.len().min(WINDOW);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < last {
            let step = bytes.get(at..last)?.iter().position(|&b| b == MAGIC[0])?;
            at += step + 1;
            if bytes.get(at - 1..).is_some_and(|b| b.starts_with(&MAGIC)) {
                return Some(at - 1);
            }
        }
        None
    })
}
