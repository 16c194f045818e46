//! Cuts a stretch of time out of a tape, so that reports on the cut print what they print of the whole one with
//! `--time`.
//!
//! A cut keeps its original's clocks and start, and says in its session which [`Window`] it is about. Rows outside stay
//! where answers about the window depend on them: calls that are open at its beginning, the last switches of each thread
//! before it, the lives of its processes, connections and signals that reach into it ([`survey`]). Segments that lie
//! inside are copied as stored, the others are made anew; those before and after are put together.
//!
//! Damage stays visible as in a repaired tape: the walk over the whole blocks is that of [`crate::repair`].

mod lives;
mod names;
mod picks;
mod survey;

use std::io::Write;

use xxhash_rust::xxh3::xxh3_128;

use self::picks::SegmentCut;
use self::survey::Survey;
use crate::encode::{EncodedSegment, Encoder};
use crate::error::Result;
use crate::header::{BlockKind, COMPAT_MADE, INCOMPAT_CUT};
use crate::info::{add_content, from_headers, listed_calls, listed_pids};
use crate::model::{Call, End, Extent, Family, RecordedFamilies, Session, Task, Window};
use crate::payload::read_raw;
use crate::reader::Tape;
use crate::repair::{Part, Piece, RepairWalk, Repaired};
use crate::rows::{Places, Rows, add_places};
use crate::segment::{FULL_ROWS, SegmentBuilder};
use crate::writer::{Writer, session_block};

/// zstd's level.
const LEVEL: i32 = 3;
/// Bytes of a block at which a segment that is put together ends: half of what a recorder's may have, because a whole
/// one may follow.
const FULL_BYTES: usize = 2 << 20;
/// Most characters that are quoted of the original's last words.
const MAX_REASON: usize = 200;

/// What stays.
pub struct Choice<'a> {
    /// The time that reports are about.
    pub window: Window,
    /// Whose events; None: everyone's.
    pub tasks: Option<&'a dyn Fn(&Task) -> bool>,
    /// Whether events of this cgroup whose task is not known stay, beside `tasks`.
    pub cgroup: &'a dyn Fn(u64) -> bool,
    /// Which families; None: all. Process life is always among them.
    pub families: Option<&'a [Family]>,
    /// Whether what a call did outlasts it, so that it matters for later ones: chdir, accept.
    pub outlasts: &'a dyn Fn(Call) -> bool,
    /// What was asked, in words: it is a part of the cut's number, and among its notes.
    pub words: &'a str,
}

impl std::fmt::Debug for Choice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Choice").field("window", &self.window).field("words", &self.words).finish_non_exhaustive()
    }
}

/// A [`Choice`] for one tape.
struct Plan<'a> {
    choice: &'a Choice<'a>,
    window: Window,
    /// The families that the cut has of what was recorded.
    recorded: Vec<Family>,
}

impl Plan<'_> {
    fn all_tasks(&self) -> bool {
        self.choice.tasks.is_none()
    }

    /// Whether segments of the window can stay as they are.
    fn is_time_alone(&self) -> bool {
        self.all_tasks() && self.choice.families.is_none()
    }

    fn has(&self, task: &Task) -> bool {
        self.choice.tasks.is_none_or(|tasks| tasks(task))
    }

    fn family(&self, family: Family) -> bool {
        let always = matches!(family, Family::Unknown | Family::Process | Family::State | Family::Stack);
        always || self.choice.families.is_none_or(|families| families.contains(&family))
    }

    /// A task as the cut has it: what is recorded of it is what stays.
    fn task(&self, task: &Task) -> Task {
        let mut task = task.clone();
        let known = task.recorded != RecordedFamilies::NOT_SAID;
        if !self.has(&task) {
            task.recorded = RecordedFamilies::NOTHING;
        } else if known && self.choice.families.is_some() {
            let kept = |family: &Family| task.recorded.has(*family) == Some(true) && self.family(*family);
            task.recorded = RecordedFamilies::of(&Family::ALL.iter().copied().filter(kept).collect::<Vec<_>>());
        } else if !known && !self.all_tasks() {
            task.recorded = RecordedFamilies::of(&self.recorded);
        }
        task
    }
}

/// Copies what stays of `tape` to `out`. The cut's number is made from the tape's and the choice, so the same cut is the
/// same bytes. Returns the output, not flushed, and what the tape lacks. `progress` as in [`crate::repair::holes`].
///
/// # Errors
/// `out` cannot be written, or the session does not fit a block.
pub fn cut<W: Write>(tape: &Tape, out: W, choice: &Choice<'_>, progress: &dyn Fn(u64)) -> Result<(W, Repaired)> {
    let mut plan = Plan { choice, window: within(tape, choice.window), recorded: Vec::new() };
    let said = tape.session.families.is_empty();
    let all = if said { &[Family::Syscall, Family::Process][..] } else { &tape.session.families };
    plan.recorded = all.iter().copied().filter(|family| plan.family(*family)).collect();
    let survey = Survey::of(tape, &plan, progress);
    let mut block = session_block(&session(tape, &plan, &survey))?;
    block.header.features_compat = if tape.session_whole { 0 } else { COMPAT_MADE };
    let mut cutter = Cutter {
        writer: Writer::begin(out, number(tape, &plan), block)?,
        encoder: Encoder::new(LEVEL),
        tape,
        plan: &plan,
        survey: &survey,
        pending: None,
        places: Places::new(),
        end: 0,
        events: Vec::new(),
    };
    let mut defs: Vec<_> =
        tape.table_defs().values().filter(|def| plan.family(Family::of_table(&def.name))).cloned().collect();
    defs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    cutter.writer.define_always(defs);
    let mut appeared = tape.appeared.clone();
    names::appeared(&mut appeared, &survey.lives);
    cutter.writer.define(&[], &appeared)?;
    let half = tape.len / 2;
    let holes = RepairWalk::new(tape).run(&|done| progress(half + done / 2), |piece| cutter.piece(piece))?;
    cutter.leaders()?;
    cutter.flush()?;
    let end = cutter.end();
    let (segments, reason) = (cutter.writer.segments(), end.reason.clone());
    let incompat = if tape.end().is_some() { 0 } else { INCOMPAT_CUT };
    let out = cutter.writer.finish_with(&end, incompat)?;
    Ok((out, Repaired { holes, segments, reason }))
}

/// The reason of an end mark without what a cut adds to it.
pub(crate) fn before_cut(reason: &str) -> &str {
    let words = reason.split_once("; cut from tape ").map_or(reason, |(before, _)| before);
    words.split_once("; put together from ").map_or(words, |(before, _)| before)
}

/// The part of `window` that a tape is about: a cut of a cut is no longer than that.
fn within(tape: &Tape, window: Window) -> Window {
    let whole = tape.session.cut.unwrap_or(Window { from: tape.session.window_open, to: u64::MAX });
    let from = window.from.max(whole.from);
    // never 0, which stands for no cut
    Window { from, to: window.to.min(whole.to).max(from).max(1) }
}

/// The cut's number.
fn number(tape: &Tape, plan: &Plan<'_>) -> [u8; 16] {
    let Window { from, to } = plan.window;
    let bytes = [&tape.tape_id[..], &from.to_le_bytes(), &to.to_le_bytes(), plan.choice.words.as_bytes()].concat();
    xxh3_128(&bytes).to_le_bytes()
}

fn session(tape: &Tape, plan: &Plan<'_>, survey: &Survey) -> Session {
    let mut session = tape.session.clone();
    // they are written again as what appeared
    let appeared = &tape.appeared;
    session.cgroups.retain(|cgroup| !appeared.cgroups.contains(cgroup));
    session.containers.retain(|container| !appeared.containers.contains(container));
    names::session(&mut session, &survey.lives);
    session.cut = Some(plan.window);
    if session.recording.is_empty() {
        session.recording = tape.tape_id.to_vec();
    }
    if plan.choice.families.is_some() {
        session.families.clone_from(&plan.recorded);
    }
    if !plan.all_tasks() {
        session.extent = Extent::Some;
        session.cut_tasks = true;
    }
    if !plan.choice.words.is_empty() {
        session.notes.push(format!("cut to {}", plan.choice.words).into_bytes());
    }
    session
}

/// Rows that wait for more of their chunk, and the end of their window.
type Pending = Option<(SegmentBuilder, u64)>;

/// What is written next, with the window from `start` to `end` in it.
fn waiting(pending: &mut Pending, (start, end): (u64, u64)) -> &mut SegmentBuilder {
    let (builder, until) = pending.get_or_insert_with(|| (SegmentBuilder::new(start), end));
    *until = end.max(*until);
    builder
}

/// The writing half of [`cut`].
struct Cutter<'a, W: Write> {
    writer: Writer<W>,
    encoder: Encoder,
    tape: &'a Tape,
    plan: &'a Plan<'a>,
    survey: &'a Survey,
    pending: Pending,
    places: Places,
    /// End of the last window.
    end: u64,
    /// Events written, by family.
    events: Vec<(Family, u64)>,
}

impl<W: Write> Cutter<'_, W> {
    fn piece(&mut self, piece: Piece) -> Result<()> {
        match piece {
            Piece::Checkpoint(at) => self.checkpoint(at),
            Piece::Gaps { window, gaps } => {
                let plan = self.plan;
                let builder = waiting(&mut self.pending, window);
                gaps.into_iter().filter(|gap| plan.family(gap.family)).for_each(|gap| builder.push_gap(gap));
                self.flush_full()
            }
            Piece::Segment(at, part) => self.segment(at, &part),
            Piece::Symbols(at) => {
                let mut symbols = self.tape.symbols(at)?;
                if names::symbols(&mut symbols, &self.places) {
                    let encoded = self.encoder.symbols(&symbols)?;
                    self.writer.symbols(encoded)?;
                }
                Ok(())
            }
        }
    }

    fn checkpoint(&mut self, at: usize) -> Result<()> {
        self.flush()?;
        let mut checkpoint = self.tape.checkpoint(at)?;
        names::checkpoint(&mut checkpoint, &self.survey.lives);
        checkpoint.tasks.iter_mut().for_each(|task| *task = self.plan.task(task));
        let encoded = self.encoder.checkpoint(&checkpoint)?;
        self.writer.in_chunk(self.tape.checkpoints[at].0);
        self.writer.checkpoint(encoded)
    }

    fn segment(&mut self, at: usize, part: &Part) -> Result<()> {
        let (tape, window) = (self.tape, self.plan.window);
        let info = &tape.segments[at];
        self.writer.in_chunk(info.chunk);
        let (start, end) = (part.dict.window_start, part.dict.window_end);
        // its calls have times
        let timed = part.core.dur.is_empty() || part.kept.contains(&BlockKind::SyscallsTime);
        let inside = start >= window.from && info.end_max < window.to && info.table_end_max < window.to && timed;
        if inside && self.plan.is_time_alone() && part.stacks.is_none() && part.more.is_empty() {
            self.flush()?;
            self.end = self.end.max(end);
            return self.whole(at, part);
        }
        // one with calls of the window stays by itself: its table of tasks tells names of that time
        let late = start >= window.to && info.carry_rows > 0 && info.carry_start_min < window.to;
        let reaches = late || (end > window.from && start < window.to);
        if reaches {
            self.flush()?;
        }
        let builder = waiting(&mut self.pending, (start, end));
        let picks = SegmentCut { plan: self.plan, survey: self.survey, early: self.survey.early(at), reaches };
        Rows::new(picks, tape.segment(at), part, builder, &mut self.places).copy()?;
        if reaches { self.flush() } else { self.flush_full() }
    }

    /// Copies a segment as stored.
    fn whole(&mut self, at: usize, part: &Part) -> Result<()> {
        let (tape, dict) = (self.tape, &part.dict);
        let segment = tape.segment(at);
        let mut blocks = Vec::with_capacity(part.kept.len());
        for place in tape.blocks[at].places.iter().filter(|place| part.kept.contains(&place.kind)) {
            match read_raw(&tape.source, place, &tape.tape_id, tape.segments[at].segment) {
                // nothing is known of it that could be told
                Err(_) if matches!(place.kind, BlockKind::Other(_)) => {}
                block => blocks.push(block?),
            }
        }
        if part.kept.contains(&BlockKind::Stacks) {
            add_places(&mut self.places, &segment.stacks()?);
        }
        let groups = blocks.iter().fold(0, |bits, block| bits | block.header.kind.group_bit());
        blocks.iter_mut().for_each(|block| block.header.groups = groups);
        let mut info = from_headers(blocks.iter().map(|block| &block.header));
        let ledger = groups & BlockKind::Ledger.group_bit() != 0;
        let content = (&part.core.dur[..], &part.core.errno[..], ledger);
        add_content(&mut info, content, listed_calls(&dict.calls), listed_pids(&dict.tasks, &part.gaps));
        let tables = if part.kept.contains(&BlockKind::Tables) { segment.tables(dict)? } else { Vec::new() };
        let defs = tables.into_iter().map(|table| table.def).collect();
        self.write(EncodedSegment { blocks, info, defs, appeared: Box::default() })
    }

    /// The last entry of each process's leader that is before or behind what stays: a process is called by it.
    fn leaders(&mut self) -> Result<()> {
        let tape = self.tape;
        let mut leaders = self.survey.lives.leaders().into_iter().peekable();
        let end = self.end.max(tape.complete_until());
        let (mut builder, until) = match self.pending.take() {
            Some(pending) => pending,
            None => (SegmentBuilder::new(end), end),
        };
        while let Some((at, _)) = leaders.peek().copied() {
            let dict = tape.segment(at).dict().unwrap_or_default();
            while let Some((_, entry)) = leaders.next_if(|(segment, _)| *segment == at) {
                if let Some(task) = dict.tasks.get(entry as usize) {
                    builder.intern_task(&self.plan.task(task));
                }
            }
        }
        self.pending = Some((builder, until));
        Ok(())
    }

    fn write(&mut self, segment: EncodedSegment) -> Result<()> {
        for header in segment.blocks.iter().map(|block| &block.header) {
            let Some(family) = header.kind.family() else { continue };
            match self.events.iter_mut().find(|(known, _)| *known == family) {
                Some((_, count)) => *count += u64::from(header.rows),
                None => self.events.push((family, u64::from(header.rows))),
            }
        }
        self.writer.segment(segment)
    }

    fn flush_full(&mut self) -> Result<()> {
        match &self.pending {
            Some((builder, _)) if builder.raw_bytes() > FULL_BYTES || builder.rows() > FULL_ROWS / 2 => self.flush(),
            _ => Ok(()),
        }
    }

    /// Writes what waits; without rows too, because windows follow each other without a hole.
    fn flush(&mut self) -> Result<()> {
        let Some((builder, end)) = self.pending.take() else { return Ok(()) };
        self.end = self.end.max(end);
        let segment = self.encoder.segment(builder.finish(end))?;
        self.write(segment)
    }

    /// The old end mark, or one with the known facts; it names the original.
    fn end(&mut self) -> End {
        let tape = self.tape;
        let mut end = tape.known_end();
        self.events.sort_unstable();
        end.events = std::mem::take(&mut self.events);
        end.lost.retain(|(family, _)| self.plan.family(*family));
        let old: String = before_cut(&end.reason).chars().take(MAX_REASON).collect();
        let id: String = tape.tape_id.iter().map(|byte| format!("{byte:02x}")).collect();
        end.reason = format!("{old}; cut from tape {id}");
        end
    }
}
