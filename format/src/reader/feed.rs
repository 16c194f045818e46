//! A tape that is read from its beginning while it is written, through a pipe or from a file that grows.
//!
//! What came last is a [`Tape`] of its own: the session, and one segment or one checkpoint. So whatever reads tapes reads
//! that too, and memory holds no more of the tape. Names of places in code and the index come late and are left out.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read};
use std::sync::{Arc, OnceLock};

use super::open::{self, Layout};
use super::{MAX_PARTS, MAX_TABLES, Tape};
use crate::error::{Error, Result};
use crate::footer::{FOOTER_LEN, FOOTER_MAGIC};
use crate::header::{BlockKind, FLAG_CONTINUES, HEADER_LEN, Header, NO_SEGMENT};
use crate::kinds::Rows;
use crate::message;
use crate::model::Appeared;
use crate::other;
use crate::payload::{self, Place};
use crate::scan::Findings;
use crate::source::Source;

/// A tape that is being read.
#[derive(Debug)]
pub struct Feed<R> {
    input: R,
    /// What came last.
    tape: Tape,
    /// Bytes read so far.
    offset: u64,
    /// Number of the next block.
    seq: u64,
    /// A block that was read, of what comes next.
    ahead: Option<Arrived>,
    /// Damage since the last step.
    findings: Findings,
    /// A loss had a record that says when.
    gaps: bool,
    /// Nothing more is read.
    closed: bool,
}

/// A block with its bytes.
#[derive(Debug)]
struct Arrived {
    header: Header,
    /// Where it is in the tape.
    offset: u64,
    /// Header, payload and padding.
    bytes: Vec<u8>,
}

impl Arrived {
    /// What blocks that belong together have in common.
    fn whole(&self) -> (bool, u32) {
        let Header { kind, segment, chunk, .. } = self.header;
        (kind == BlockKind::Checkpoint, if kind == BlockKind::Checkpoint { chunk } else { segment })
    }
}

impl<R: Read> Feed<R> {
    /// Reads the session.
    ///
    /// # Errors
    /// `input` begins like no tape, or like one of a later version, or cannot be read.
    pub fn open(mut input: R) -> Result<Self> {
        let mut bytes = vec![0; HEADER_LEN];
        let read = fill(&mut input, &mut bytes)?;
        bytes.truncate(read);
        let Ok(header) = bytes.first_chunk::<HEADER_LEN>().map_or(Err(()), |head| Header::parse(head).map_err(drop))
        else {
            // what it is instead is known by more of it
            let mut more = vec![0; other::HEAD];
            let read = fill(&mut input, &mut more)?;
            bytes.extend_from_slice(more.get(..read).unwrap_or_default());
            let len = bytes.len() as u64;
            let (at, _) = open::first_block(&Source::Bytes(bytes), len, &mut Findings::default())?;
            let why = format!("the first whole one is at {at:#x}");
            return Err(Error::BadHeader { offset: 0, why });
        };
        read_payload(&mut input, &header, &mut bytes)?;
        let len = bytes.len() as u64;
        let mut tape = open::open(Source::Bytes(bytes), len)?;
        tape.followed = true;
        tape.defs = OnceLock::from(HashMap::new());
        let mut findings = Findings::default();
        for finding in std::mem::take(&mut tape.findings) {
            findings.push(finding.offset, finding.text);
        }
        let seq = header.seq.saturating_add(1);
        Ok(Self { input, tape, offset: len, seq, ahead: None, findings, gaps: false, closed: false })
    }

    /// What came last; before the first step the session alone.
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Reads the next segment or checkpoint, and waits for it if need be; the last step has nothing but the end. False:
    /// there was nothing more.
    ///
    /// # Errors
    /// The input cannot be read. Damage is among [`Tape::findings`] of the step.
    pub fn advance(&mut self) -> Result<bool> {
        if !self.tape.followed {
            return Ok(false);
        }
        self.tape.misses = Arc::default();
        self.tape.segments.clear();
        self.tape.blocks.clear();
        self.tape.checkpoints.clear();
        let mut parts: Vec<Arrived> = Vec::new();
        while let Some(next) = self.next()? {
            match next.header.kind {
                BlockKind::TableDefs => self.define(next),
                BlockKind::End => self.end(next),
                kind if kind != BlockKind::Checkpoint && matches!(kind.rows(), None | Some(Rows::Tape)) => {}
                _ if parts.first().is_some_and(|first| first.whole() != next.whole()) => {
                    self.ahead = Some(next);
                    break;
                }
                _ => {
                    self.add(next, &mut parts);
                    if is_whole(&parts) {
                        break;
                    }
                }
            }
        }
        self.tape.followed = !parts.is_empty();
        self.show(&parts);
        Ok(true)
    }

    /// Adds a block to those of the same segment or checkpoint; a segment has one of a kind.
    fn add(&mut self, next: Arrived, parts: &mut Vec<Arrived>) {
        let kind = next.header.kind;
        let again = kind != BlockKind::Checkpoint && parts.iter().any(|part| part.header.kind == kind);
        if again {
            let text = format!("segment {} has a second {} block", next.header.segment, kind.name());
            self.findings.push(next.offset, text);
        } else if parts.len() <= MAX_PARTS.max(BlockKind::ALL.len()) {
            parts.push(next);
        }
    }

    /// Makes the tape of `parts`, which are one segment or one checkpoint, or nothing.
    fn show(&mut self, parts: &[Arrived]) {
        let (mut bytes, mut blocks) = (Vec::new(), Vec::new());
        for part in parts {
            blocks.push((bytes.len() as u64, part.header));
            bytes.extend_from_slice(&part.bytes);
        }
        let tape = &mut self.tape;
        (tape.len, tape.source) = (bytes.len() as u64, Source::Bytes(bytes));
        match parts.first().map(|first| &first.header) {
            Some(header) if header.kind == BlockKind::Checkpoint => {
                let places = blocks.iter().map(|(offset, header)| Place::of(*offset, header)).collect();
                tape.checkpoints.push((header.chunk, places));
                // the newest sample of the clocks is the best for what comes
                if let Ok(checkpoint) = tape.checkpoint(0) {
                    tape.session.clock = checkpoint.clock;
                }
            }
            Some(header) => {
                let mut layout = Layout { complete_until: tape.complete_until, ..Layout::default() };
                layout.add_segment(header.segment, &blocks, &mut self.findings);
                self.gaps |= layout.blocks.iter().any(|blocks| blocks.groups & BlockKind::Gaps.group_bit() != 0);
                tape.complete_until = layout.complete_until;
                (tape.segments, tape.blocks) = (layout.segments, layout.blocks);
            }
            None => {}
        }
        tape.findings = std::mem::take(&mut self.findings).into_vec();
    }

    /// Keeps the definitions of tables and the names of what appeared.
    fn define(&mut self, Arrived { header, bytes, offset }: Arrived) {
        let tape = &mut self.tape;
        let place = Place::of(0, &header);
        match payload::read(&Source::Bytes(bytes), &place, &tape.tape_id, NO_SEGMENT, message::read_table_defs) {
            Ok(message::Definitions { tables, appeared }) => {
                if let Some(defs) = tape.defs.get_mut() {
                    for def in tables.into_iter().take(MAX_TABLES.saturating_sub(defs.len())) {
                        defs.insert(message::table_id(&def), def);
                    }
                }
                let mut known: HashSet<u64> = tape.session.cgroups.iter().map(|(id, _)| *id).collect();
                let mut all =
                    Appeared { containers: std::mem::take(&mut tape.session.containers), ..Appeared::default() };
                open::add_appeared(&mut all, appeared, &mut known);
                tape.session.cgroups.append(&mut all.cgroups);
                tape.session.containers = all.containers;
            }
            Err(error) => self.findings.push(offset, format!("definitions of tables cannot be read: {error}")),
        }
    }

    /// Keeps the end mark.
    fn end(&mut self, Arrived { header, bytes, offset }: Arrived) {
        match open::read_end(&Source::Bytes(bytes), &Place::of(0, &header), &self.tape.tape_id) {
            Ok((mut end, cut)) => {
                self.tape.complete_until = end.window_close;
                if self.gaps {
                    // they were told when they came
                    end.lost.clear();
                }
                (self.tape.end, self.tape.cut) = (Some(end), cut);
            }
            Err(error) => self.findings.push(offset, format!("the end mark is lost: {error}")),
        }
    }

    /// The next block; None: the tape is at its end, or damaged here, and is read no further.
    fn next(&mut self) -> Result<Option<Arrived>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        if self.closed {
            return Ok(None);
        }
        let (next, why) = self.block()?;
        self.closed = next.is_none();
        if let Some(why) = why {
            self.findings.push(self.offset, why);
        }
        Ok(next)
    }

    /// Reads a block, or why there is none; neither: the tape is at its end.
    fn block(&mut self) -> Result<(Option<Arrived>, Option<String>)> {
        let stop = |why: String| Ok((None, Some(format!("{why}; what follows is not read"))));
        let mut bytes = vec![0; FOOTER_LEN];
        let mut read = fill(&mut self.input, &mut bytes)?;
        if read == 0 || (read == FOOTER_LEN && bytes.starts_with(&FOOTER_MAGIC)) {
            return Ok((None, None));
        }
        bytes.resize(HEADER_LEN, 0);
        if read == FOOTER_LEN {
            read += fill(&mut self.input, bytes.get_mut(FOOTER_LEN..).unwrap_or_default())?;
        }
        let head = bytes.first_chunk::<HEADER_LEN>().filter(|_| read == HEADER_LEN);
        let Some(head) = head else { return stop(format!("{read} bytes are left, a header has {HEADER_LEN}")) };
        let header = match Header::parse(head) {
            Ok(header) if header.tape_id == self.tape.tape_id => header,
            Ok(_) => return stop("another tape begins here".to_owned()),
            Err(why) => return stop(format!("no block where one should begin: {why}")),
        };
        if !read_payload(&mut self.input, &header, &mut bytes)? {
            return stop(format!("{} block {} is torn", header.kind.name(), header.seq));
        }
        let why = (header.seq != self.seq)
            .then(|| format!("block {} follows block {}", header.seq, self.seq.wrapping_sub(1)));
        self.seq = header.seq.saturating_add(1);
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        Ok((Some(Arrived { header, offset, bytes }), why))
    }
}

/// Whether all blocks of a segment or of a checkpoint are there.
fn is_whole(parts: &[Arrived]) -> bool {
    let last = parts.last().map(|last| last.header);
    match last {
        Some(last) if last.kind == BlockKind::Checkpoint => last.flags & FLAG_CONTINUES == 0,
        _ => {
            let groups = parts.iter().fold(0, |bits, part| bits | part.header.groups);
            let there = parts.iter().fold(0, |bits, part| bits | part.header.kind.group_bit());
            groups & !there == 0
        }
    }
}

/// Reads until `bytes` are full or nothing more comes; their number.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read the tape", error)),
        }
    }
    Ok(done)
}

/// Reads what follows the header in `bytes`: payload and padding. False: it is torn.
fn read_payload(input: &mut impl Read, header: &Header, bytes: &mut Vec<u8>) -> Result<bool> {
    // a header allows 8 MiB and 64 KiB
    let span = usize::try_from(header.span()).unwrap_or(usize::MAX);
    bytes.resize(span, 0);
    let read = fill(input, bytes.get_mut(HEADER_LEN..).unwrap_or_default())?;
    Ok(HEADER_LEN + read == span)
}
