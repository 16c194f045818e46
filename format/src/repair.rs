//! The holes of a damaged tape, and a clean copy of the rest.
//!
//! [`holes`] lists everything that cannot be read: its segments, its time, and the totals that are "at least" because
//! of it. [`repair`] copies every whole block, renumbers it and writes index and end mark. Holes become gap records, so
//! a report on the copy says "at least" wherever a report on the original does.
//!
//! Blocks are copied as stored, one segment at a time. Made anew are only: gaps (holes are added), stacks whose events
//! are gone, a session that is lost, index and end mark. Blocks of no segment and of a kind unknown to this version are
//! left out. Memory holds the header facts of all segments, as for any open tape.

use std::io::Write;

use crate::encode::{EncodedCheckpoint, EncodedSegment, EncodedSymbols, Encoder};
use crate::error::{Error, Result};
use crate::header::{BlockKind, COMPAT_MADE, Header, INCOMPAT_CUT, NO_SEGMENT};
use crate::info::{add_content, from_headers, listed_calls, listed_pids};
use crate::model::{CPU_NONE, Core, Dict, End, Family, Gap, GapCause, Stacks};
use crate::payload::{Block, Place, read_raw};
use crate::reader::{Segment, Tape, header_at, kind_of};
use crate::redact::{self, Redactor};
use crate::segment::SegmentBuilder;
use crate::writer::{Writer, session_block};

/// Holes kept; after that they are counted.
const MAX_HOLES: usize = 1000;
/// Characters of the old end mark's reason quoted by the new one, so that repeated repairs do not lengthen it.
const MAX_REASON: usize = 200;
/// zstd's level for rewritten blocks.
const LEVEL: i32 = 3;

/// What a hole lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The session.
    Session,
    /// All blocks of some segments.
    Segments,
    /// A hole of these groups of one segment. With its dict or syscalls.core, the groups that refer to them are lost too.
    Groups(Vec<BlockKind>),
    /// The state at the start of a chunk.
    Checkpoint,
    /// Names of places in code.
    Symbols,
    /// The end of the recording.
    End,
    /// Damage outside segments: foreign bytes, missing numbers, a wrong index.
    Elsewhere,
}

/// A missing part of a tape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TapeHole {
    /// What is missing.
    pub lost: Lost,
    /// The first and the last segment, by number.
    pub segments: Option<(u32, u32)>,
    /// Time it may concern; None = not known.
    pub span: Option<(u64, u64)>,
    /// The family whose totals are "at least" because of it; [`Family::Unknown`] = all.
    pub families: Vec<Family>,
}

/// All holes of a tape, bounded in number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holes {
    /// The first ones, in order of the tape.
    pub list: Vec<TapeHole>,
    /// How many more there are.
    pub more: u64,
}

impl Holes {
    fn push(&mut self, hole: TapeHole) {
        if self.list.len() < MAX_HOLES {
            self.list.push(hole);
        } else {
            self.more += 1;
        }
    }

    /// Number of holes.
    pub fn count(&self) -> u64 {
        self.list.len() as u64 + self.more
    }
}

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The holes of the copy.
    pub holes: Holes,
    /// Segments of the copy.
    pub segments: u32,
    /// Reason in the copy's end mark.
    pub reason: String,
}

/// Reads all of `tape` to find its holes; `progress` is called now and then with the bytes done.
pub fn holes(tape: &Tape, progress: &dyn Fn(u64)) -> Holes {
    // Nothing that is handed out is written, so nothing can fail.
    RepairWalk::new(tape).run(progress, |_| Ok(())).unwrap_or_default()
}

/// Copies the whole blocks of `tape` to `out`, as the tape `tape_id`, which must be random; returns the output, not
/// flushed. `progress` as in [`holes`].
///
/// # Errors
/// `tape` cannot be read, or `out` not be written.
pub fn repair<W: Write>(tape: &Tape, out: W, tape_id: [u8; 16], progress: &dyn Fn(u64)) -> Result<(W, Repaired)> {
    copy(tape, out, tape_id, None, progress)
}

/// Copies the whole blocks of `tape` to `out` like [`repair`], without what `redactor` takes out.
///
/// # Errors
/// Besides a repair's errors: the tape is of a newer version, and may have fields that this one would not redact.
pub fn redact<W: Write>(
    tape: &Tape,
    out: W,
    tape_id: [u8; 16],
    redactor: &Redactor,
    progress: &dyn Fn(u64),
) -> Result<(W, Repaired)> {
    copy(tape, out, tape_id, Some(redactor), progress)
}

/// [`repair`] without what `redactor` takes out.
fn copy<W: Write>(
    tape: &Tape,
    out: W,
    tape_id: [u8; 16],
    redactor: Option<&Redactor>,
    progress: &dyn Fn(u64),
) -> Result<(W, Repaired)> {
    let mut copy = Copy {
        writer: Writer::begin(out, tape_id, session(tape, redactor)?)?,
        encoder: Encoder::new(LEVEL),
        tape,
        redactor,
        events: Vec::new(),
    };
    let mut defs: Vec<_> = tape.table_defs().values().cloned().collect();
    defs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    copy.writer.define_always(defs);
    let mut appeared = tape.appeared.clone();
    if let Some(redactor) = redactor {
        redactor.appeared(&mut appeared);
    }
    copy.writer.define(&[], &appeared)?;
    let holes = RepairWalk::new(tape).run(progress, |piece| copy.piece(piece))?;
    let end = copy.end(&holes);
    let reason = end.reason.clone();
    let incompat = if tape.end().is_some() { 0 } else { INCOMPAT_CUT };
    let segments = copy.writer.segments();
    let out = copy.writer.finish_with(&end, incompat)?;
    Ok((out, Repaired { holes, segments, reason }))
}

/// The session's block as stored; if it is lost, one with the facts known from elsewhere.
fn session(tape: &Tape, redactor: Option<&Redactor>) -> Result<Block> {
    let raw = header_at(&tape.source, tape.first)
        .ok()
        .filter(|h| h.kind == BlockKind::Session)
        .and_then(|header| read_raw(&tape.source, &Place::of(tape.first, &header), &tape.tape_id, header.segment).ok());
    let Some(redactor) = redactor else {
        if let Some(block) = raw.filter(|_| !tape.session_lost) {
            return Ok(block);
        }
        let mut block = session_block(&tape.session)?;
        block.header.features_compat = COMPAT_MADE;
        return Ok(block);
    };
    if let Some(raw) = &raw {
        redact::known(raw)?;
    }
    let mut session = tape.session.clone();
    redactor.session(&mut session);
    let mut block = session_block(&session)?;
    block.header.features_compat =
        if tape.session_lost { COMPAT_MADE } else { raw.map_or(0, |raw| raw.header.features_compat) };
    Ok(block)
}

/// A part of the tape in the order in which it is copied.
pub(crate) enum Piece {
    /// Checkpoint `.0`, whole.
    Checkpoint(usize),
    /// A lost segment, of which only its gaps are copied.
    Gaps { window: (u64, u64), gaps: Vec<Gap> },
    /// Segment `.0` with its whole blocks.
    Segment(usize, Box<Part>),
    /// Block of names `.0`, whole.
    Symbols(usize),
}

/// The whole blocks of a segment.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) dict: Dict,
    pub(crate) core: Core,
    /// Blocks to copy as stored.
    pub(crate) kept: Vec<BlockKind>,
    /// Stacks to rewrite.
    pub(crate) stacks: Option<Stacks>,
    /// Gaps to rewrite when there are `more`, or when their block was lost.
    pub(crate) gaps: Vec<Gap>,
    /// The lost groups.
    pub(crate) more: Vec<Gap>,
}

/// Goes through a tape and separates whole blocks from lost ones.
pub(crate) struct RepairWalk<'a> {
    tape: &'a Tape,
    /// Windows by the headers of the dicts.
    windows: Vec<Option<(u64, u64)>>,
    /// Start of the next known window.
    next: Vec<u64>,
    /// End of the last window.
    end: u64,
    holes: Holes,
    /// Gaps that wait for a segment to be in.
    pending: Vec<Gap>,
}

impl<'a> RepairWalk<'a> {
    pub(crate) fn new(tape: &'a Tape) -> Self {
        let window = |i: usize| {
            let place = tape.blocks[i].places.iter().find(|p| p.kind == BlockKind::Dict)?;
            let header = header(tape, place, tape.segments[i].segment)?;
            Some((header.end_min, header.end_max))
        };
        let windows: Vec<_> = (0..tape.segments.len()).map(window).collect();
        let mut begin = tape.complete_until();
        let mut next: Vec<u64> = windows
            .iter()
            .rev()
            .map(|window| {
                begin = window.map_or(begin, |(start, _)| start);
                begin
            })
            .collect();
        next.reverse();
        let end = tape.session.window_open.min(next.first().copied().unwrap_or(u64::MAX));
        Self { tape, windows, next, end, holes: Holes::default(), pending: Vec::new() }
    }

    pub(crate) fn run(mut self, progress: &dyn Fn(u64), mut sink: impl FnMut(Piece) -> Result<()>) -> Result<Holes> {
        let tape = self.tape;
        if tape.session_lost {
            self.holes.push(TapeHole { lost: Lost::Session, segments: None, span: None, families: Vec::new() });
        }
        let (mut checkpoint, mut number) = (0, 0);
        for (i, info) in tape.segments.iter().enumerate() {
            while tape.checkpoint_chunk(checkpoint).is_some_and(|chunk| chunk <= info.chunk) {
                self.checkpoint(checkpoint, &mut sink)?;
                checkpoint += 1;
            }
            if info.segment > number {
                let span = (self.end, self.next[i].max(self.end));
                let lost = gap(Family::Unknown, 0, span);
                self.hole(Lost::Segments, Some((number, info.segment - 1)), Some(span), &[lost]);
                self.end = span.1;
                sink(Piece::Gaps { window: span, gaps: vec![lost] })?;
            }
            number = info.segment.saturating_add(1);
            self.segment(i, &mut sink)?;
            progress(tape.blocks[i].places.first().map_or(0, |p| p.offset));
        }
        while checkpoint < tape.checkpoints.len() {
            self.checkpoint(checkpoint, &mut sink)?;
            checkpoint += 1;
        }
        for i in 0..tape.symbols.len() {
            let raw = read_raw(&tape.source, &tape.symbols[i], &tape.tape_id, NO_SEGMENT);
            if raw.is_ok() && tape.symbols(i).is_ok() {
                sink(Piece::Symbols(i))?;
            } else {
                self.hole(Lost::Symbols, None, None, &[]);
            }
        }
        if tape.end().is_none() {
            let families = vec![Family::Unknown];
            let span = Some((tape.complete_until(), u64::MAX));
            self.holes.push(TapeHole { lost: Lost::End, segments: None, span, families });
        }
        if !tape.findings.is_empty() {
            // Where is not known, so it may touch anything: as reports on the damaged tape say.
            let lost = gap(Family::Unknown, 0, (0, 0));
            self.hole(Lost::Elsewhere, None, None, &[lost]);
            self.pending.push(lost);
        }
        if !self.pending.is_empty() {
            let window = (self.end, self.end.max(tape.complete_until()));
            sink(Piece::Gaps { window, gaps: std::mem::take(&mut self.pending) })?;
        }
        progress(tape.len);
        Ok(self.holes)
    }

    fn hole(&mut self, lost: Lost, segments: Option<(u32, u32)>, span: Option<(u64, u64)>, gaps: &[Gap]) {
        let losses = gaps.iter().filter(|gap| gap.cause == GapCause::Damaged);
        let mut families: Vec<Family> = losses.map(|gap| gap.family).collect();
        families.sort_unstable();
        families.dedup();
        self.holes.push(TapeHole { lost, segments, span, families });
    }

    fn checkpoint(&mut self, i: usize, sink: &mut impl FnMut(Piece) -> Result<()>) -> Result<()> {
        if self.tape.checkpoint(i).is_ok() {
            return sink(Piece::Checkpoint(i));
        }
        let place = self.tape.checkpoints[i].1.first();
        let ts = place.and_then(|p| header(self.tape, p, NO_SEGMENT)).map_or(0, |h| h.end_max);
        // What was there at its time is known from nowhere else; events are all there.
        let lost = gap(Family::Process, 0, (ts, ts));
        self.hole(Lost::Checkpoint, None, (ts > 0).then_some((ts, ts)), &[lost]);
        self.pending.push(lost);
        Ok(())
    }

    fn segment(&mut self, i: usize, sink: &mut impl FnMut(Piece) -> Result<()>) -> Result<()> {
        let segment = self.tape.segment(i);
        let number = segment.info().segment;
        let window = self.windows[i].unwrap_or((self.end, self.next[i].max(self.end)));
        let (part, whole, lost) = part(self.tape, i, window);
        let mut part = part;
        if !lost.is_empty() {
            let info = segment.info();
            let span =
                if info.end_max > 0 { (info.start_min.min(window.0), info.end_max.max(window.1)) } else { window };
            self.hole(Lost::Groups(lost), Some((number, number)), Some(span), &part.more);
        }
        part.more.append(&mut self.pending);
        if whole {
            self.end = self.end.max(part.dict.window_end);
            return sink(Piece::Segment(i, Box::new(part)));
        }
        // A window of its own, that does not reach into its neighbours'.
        let start = window.0.max(self.end);
        let limit = self.next.get(i + 1).copied().unwrap_or(u64::MAX).max(start);
        let window = (start, window.1.clamp(start, limit));
        self.end = window.1;
        let gaps = [part.gaps, part.more].concat();
        if gaps.is_empty() { Ok(()) } else { sink(Piece::Gaps { window, gaps }) }
    }
}

/// The header at `place`, if it is whole and the right one.
fn header(tape: &Tape, place: &Place, segment: u32) -> Option<Header> {
    let header = header_at(&tape.source, place.offset).ok()?;
    place.mismatch(&header, &tape.tape_id, segment).is_none().then_some(header)
}

fn gap(family: Family, count: u64, (first, last): (u64, u64)) -> Gap {
    Gap { cause: GapCause::Damaged, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false }
}

/// The whole blocks of segment `i`; whether its dict is whole, without which only gaps can be kept; and the lost
/// groups.
fn part(tape: &Tape, i: usize, window: (u64, u64)) -> (Part, bool, Vec<BlockKind>) {
    let segment = tape.segment(i);
    let places = &tape.blocks[i].places;
    let (mut part, mut lost) = (Part::default(), Vec::new());
    let dict = raw(tape, &segment, places, BlockKind::Dict).and_then(|()| segment.dict().ok());
    let whole = dict.is_some();
    part.dict = dict.unwrap_or_default();
    let core = (whole && segment.has(BlockKind::SyscallsCore)).then(|| segment.core(&part.dict).ok()).flatten();
    let has_core = core.is_some();
    part.core = core.unwrap_or_default();
    for kind in BlockKind::of_segment().filter(|kind| segment.has(*kind)) {
        if whole_group(&segment, kind, (whole, &part.dict), (has_core, &part.core)) {
            part.kept.push(kind);
        } else {
            lost.push(kind);
        }
    }
    // A kind of a later version cannot be looked into, but copied.
    let other = |p: &&Place| matches!(p.kind, BlockKind::Other(_));
    part.kept.extend(places.iter().filter(other).map(|p| p.kind).filter(|_| whole));
    if whole && part.kept.contains(&BlockKind::Gaps) {
        part.gaps = segment.gaps().unwrap_or_default();
    } else if let Ok(gaps) = segment.gaps() {
        part.gaps = gaps;
    }
    if part.kept.contains(&BlockKind::Stacks)
        && let Ok(mut stacks) = segment.stacks()
    {
        let all = stacks.attached.len();
        stacks.attached.retain(|a| part.kept.contains(&kind_of(a.of)));
        if stacks.attached.len() < all {
            part.stacks = Some(stacks);
        }
    }
    for &kind in &lost {
        part.more.extend(loss(tape, &segment, places, kind, window));
    }
    (part, whole, lost)
}

/// Whether the block of `kind` is present with the right hash.
fn raw(tape: &Tape, segment: &Segment<'_>, places: &[Place], kind: BlockKind) -> Option<()> {
    let place = places.iter().find(|p| p.kind == kind)?;
    read_raw(&tape.source, place, &tape.tape_id, segment.info().segment).ok().map(drop)
}

/// Whether a group can be read, together with those it refers to.
fn whole_group(segment: &Segment<'_>, kind: BlockKind, dict: (bool, &Dict), core: (bool, &Core)) -> bool {
    let ((dict_whole, dict), (core_whole, core)) = (dict, core);
    match kind {
        BlockKind::Gaps => segment.gaps().is_ok(),
        _ if !dict_whole => false,
        BlockKind::Dict => true,
        BlockKind::SyscallsCore => core_whole,
        BlockKind::SyscallsTime => core_whole && segment.time(dict, core).is_ok(),
        BlockKind::SyscallsArgs => core_whole && segment.args(core).is_ok(),
        BlockKind::SyscallsFds => core_whole && segment.fds(core).is_ok(),
        BlockKind::SyscallsBytes => core_whole && segment.captured(core).is_ok(),
        BlockKind::Processes => segment.processes(dict).is_ok(),
        BlockKind::Sched => segment.switches(dict).is_ok(),
        BlockKind::Wakeups => segment.wakeups(dict).is_ok(),
        BlockKind::Blocks => segment.blocks(dict).is_ok(),
        BlockKind::Signals => segment.signals(dict).is_ok(),
        BlockKind::Net => segment.nets(dict).is_ok(),
        BlockKind::Uring => segment.urings(dict).is_ok(),
        BlockKind::Samples => segment.samples(dict).is_ok(),
        BlockKind::Sleepers => segment.sleepers(dict).is_ok(),
        BlockKind::Stacks => segment.stacks().is_ok(),
        BlockKind::Ledger => segment.ledger(dict).is_ok(),
        BlockKind::Tables => segment.tables(dict).is_ok(),
        _ => false,
    }
}

/// The gap for a lost group: its number of events and their time by its header, if that is left.
fn loss(tape: &Tape, segment: &Segment<'_>, places: &[Place], kind: BlockKind, window: (u64, u64)) -> Option<Gap> {
    let info = segment.info();
    let header = places.iter().find(|p| p.kind == kind).and_then(|p| header(tape, p, info.segment));
    let span = header.filter(|h| h.end_max > 0).map(|h| (h.start_min.min(h.end_min), h.end_max));
    let rows = header.map_or(0, |h| u64::from(h.rows));
    match (kind, kind.family()) {
        (BlockKind::Dict, _) => None,
        // How many gaps there were says nothing of the events that were missing.
        (BlockKind::Gaps, _) => Some(gap(Family::Unknown, 0, span.unwrap_or((0, 0)))),
        // Rows are no calls.
        (BlockKind::Ledger, _) => Some(gap(Family::Syscall, 0, span.unwrap_or(window))),
        (BlockKind::SyscallsCore, _) => {
            let span = if info.end_max > 0 { (info.start_min, info.end_max) } else { window };
            Some(gap(Family::Syscall, u64::from(info.rows), span))
        }
        // which table's rows they were nobody knows
        (BlockKind::Tables, _) => Some(gap(Family::Unknown, rows, span.unwrap_or(window))),
        (_, Some(family)) => Some(gap(family, rows, span.unwrap_or(window))),
        (_, None) => Some(Gap { cause: GapCause::DetailDamaged, ..gap(Family::Syscall, rows, span.unwrap_or(window)) }),
    }
}

/// The writing half of [`repair`].
struct Copy<'a, W: Write> {
    writer: Writer<W>,
    encoder: Encoder,
    tape: &'a Tape,
    redactor: Option<&'a Redactor>,
    /// Events written, by family.
    events: Vec<(Family, u64)>,
}

impl<W: Write> Copy<'_, W> {
    fn piece(&mut self, piece: Piece) -> Result<()> {
        let tape = self.tape;
        match piece {
            Piece::Checkpoint(i) => {
                let (chunk, parts) = tape.checkpoints.get(i).ok_or(missing(BlockKind::Checkpoint))?;
                let read = |place| read_raw(&tape.source, place, &tape.tape_id, NO_SEGMENT);
                let blocks: Vec<Block> = parts.iter().map(read).collect::<Result<_>>()?;
                let encoded = match self.redactor {
                    Some(redactor) => {
                        blocks.iter().try_for_each(redact::known)?;
                        let mut checkpoint = tape.checkpoint(i)?;
                        redactor.checkpoint(&mut checkpoint);
                        self.encoder.checkpoint(&checkpoint)?
                    }
                    None => EncodedCheckpoint { blocks },
                };
                self.writer.in_chunk(*chunk);
                self.writer.checkpoint(encoded)
            }
            Piece::Gaps { window, gaps } => {
                let mut builder = SegmentBuilder::new(window.0);
                gaps.into_iter().for_each(|gap| builder.push_gap(gap));
                let segment = self.encoder.segment(builder.finish(window.1))?;
                self.writer.segment(segment)
            }
            Piece::Segment(i, part) => self.segment(i, *part),
            Piece::Symbols(i) => {
                let place = tape.symbols.get(i).ok_or(missing(BlockKind::Symbols))?;
                let block = read_raw(&tape.source, place, &tape.tape_id, NO_SEGMENT)?;
                let encoded = match self.redactor {
                    Some(redactor) => {
                        redact::known(&block)?;
                        let mut symbols = tape.symbols(i)?;
                        redactor.symbols(&mut symbols);
                        self.encoder.symbols(&symbols)?
                    }
                    None => EncodedSymbols { blocks: vec![block] },
                };
                self.writer.symbols(encoded)
            }
        }
    }

    fn segment(&mut self, i: usize, part: Part) -> Result<()> {
        let tape = self.tape;
        let Part { dict, core, kept, stacks, mut gaps, mut more } = part;
        let rewrite = !more.is_empty();
        // they may name stacks that nothing else has
        let has_rows = kept.contains(&BlockKind::Tables);
        gaps.append(&mut more);
        let number = tape.segments[i].segment;
        let mut blocks = Vec::with_capacity(kept.len() + 1);
        for kind in kept {
            match (kind, &stacks) {
                (BlockKind::Gaps, _) if rewrite => {}
                (BlockKind::Stacks, Some(stacks)) if stacks.attached.is_empty() && !has_rows => {}
                (BlockKind::Stacks, Some(stacks)) => {
                    let mut stacks = stacks.clone();
                    if let Some(redactor) = self.redactor {
                        stacks.mappings.iter_mut().for_each(|mapping| redactor.mapping(mapping));
                    }
                    blocks.push(self.encoder.read_stacks(&stacks)?);
                }
                _ => {
                    let place = tape.blocks[i].places.iter().find(|p| p.kind == kind).ok_or(missing(kind))?;
                    match (read_raw(&tape.source, place, &tape.tape_id, number), kind) {
                        // Nothing is known of it that could be told.
                        (Err(_), BlockKind::Other(_)) => {}
                        (block, _) => match self.redactor {
                            Some(redactor) => {
                                let segment = tape.segment(i);
                                let encoder = &mut self.encoder;
                                blocks.extend(redact::block(redactor, encoder, &segment, block?, &dict, &core)?);
                            }
                            None => blocks.push(block?),
                        },
                    }
                }
            }
        }
        if rewrite {
            blocks.push(self.encoder.gaps(&gaps)?);
        }
        let groups = blocks.iter().fold(0, |bits, b| bits | b.header.kind.group_bit());
        for block in &mut blocks {
            block.header.groups = groups;
            self.count(&block.header);
        }
        let mut info = from_headers(blocks.iter().map(|b| &b.header));
        let calls = listed_calls(&dict.calls);
        let ledger = groups & BlockKind::Ledger.group_bit() != 0;
        let pids = listed_pids(&dict.tasks, &gaps);
        add_content(&mut info, (&core.dur, &core.errno, ledger), calls, pids);
        self.writer.in_chunk(tape.segments[i].chunk);
        let tables = groups & BlockKind::Tables.group_bit() != 0;
        let tables = if tables { tape.segment(i).tables(&dict)? } else { Vec::new() };
        let defs = tables.into_iter().map(|table| table.def).collect();
        self.writer.segment(EncodedSegment { blocks, info, defs, appeared: Box::default() })
    }

    fn count(&mut self, header: &Header) {
        let Some(family) = header.kind.family() else { return };
        match self.events.iter_mut().find(|(known, _)| *known == family) {
            Some((_, count)) => *count += u64::from(header.rows),
            None => self.events.push((family, u64::from(header.rows))),
        }
    }

    /// The old end mark, or one with the known facts, whose reason names the original tape.
    fn end(&mut self, holes: &Holes) -> End {
        let tape = self.tape;
        let id: String = tape.tape_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut end = tape.known_end();
        if holes.count() > 0 || end.events.is_empty() {
            self.events.sort_unstable();
            end.events = std::mem::take(&mut self.events);
        }
        let old: String = end.reason.chars().take(MAX_REASON).collect();
        let (count, s) = (holes.count(), if holes.count() == 1 { "" } else { "s" });
        let done = if self.redactor.is_some() { "redacted" } else { "repaired" };
        end.reason = format!("{old}; {done} from tape {id}, which had {count} hole{s}");
        end
    }
}

fn missing(kind: BlockKind) -> Error {
    Error::Missing { what: kind.name(), segment: NO_SEGMENT }
}
