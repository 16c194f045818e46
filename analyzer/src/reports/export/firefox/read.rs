//! What a profile has of a segment: calls, block I/Os, CPU samples, ends of threads. Segments are read side by side, each with texts and
//! stacks of its own.

use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::flags::letters;
use systape_answers::derive::block::io::Io;
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::lines::row::{self, CallOutcome};
use systape_answers::lines::text::{self, Look};
use systape_answers::lines::value::ValueScratch;
use systape_events::load::{Base, Loaded};
use systape_events::question::Question;
use systape_events::scan::Coverage;
use systape_events::values::devices::Devices;
use systape_events::values::strings::NumberedStrings;
use systape_events::values::words::errno_text;
use systape_format::model::{Dict, ProcessKind, StackOf, Stacks, Task};
use systape_format::reader::Segment;

use super::longest::{EventRank, KeptEvents, passing};
use super::markers::{FIELDS, MarkerKind, MarkerRow, NOTHING};

/// A stack of a segment: its innermost user and kernel frame, how it ends, and whether the thread was in the kernel.
pub(super) type LocalStack = (Option<u32>, Option<u32>, StackEnding, bool);

/// A marker of a segment, with the segment's numbers of texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalMarker {
    /// Index of its task; None: nobody knows whose it is.
    pub task: Option<u32>,
    /// The marker, without a stack.
    pub row: MarkerRow,
    /// Stack of the event.
    pub stack: Option<LocalStack>,
}

/// A CPU sample of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalSample {
    /// Index of its task.
    pub task: u32,
    /// Time of the sample.
    pub ts: u64,
    /// Stack of what ran.
    pub stack: LocalStack,
}

/// What is left out because there is more than a profile may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SkippedEvents {
    /// Number of calls.
    pub calls: u64,
    /// Number of block I/Os.
    pub blocks: u64,
    /// ns of the longest of them.
    pub longest: u64,
}

impl SkippedEvents {
    /// Adds one event.
    fn add(&mut self, rank: &EventRank, count: fn(&mut Self) -> &mut u64) {
        *count(self) += 1;
        self.longest = self.longest.max(rank.length());
    }

    /// Adds those of another part.
    pub(super) fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.blocks += other.blocks;
        self.longest = self.longest.max(other.longest);
    }
}

/// What a profile has of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentPart {
    /// Tasks of the segment.
    pub tasks: Vec<Task>,
    /// Stacks of the segment.
    pub stacks: Stacks,
    /// Texts of its markers.
    pub texts: NumberedStrings,
    /// Calls and block I/Os.
    pub markers: Vec<LocalMarker>,
    /// CPU samples.
    pub samples: Vec<LocalSample>,
    /// Ends of threads: index of the task, and when.
    pub ends: Vec<(u32, u64)>,
    /// What is left out.
    pub left: SkippedEvents,
}

/// Reads segments.
#[derive(Debug)]
pub(super) struct SegmentReader<'a> {
    /// The tape and the filters.
    pub question: &'a Question<'a>,
    /// What is kept of calls and block I/Os.
    pub kept: KeptEvents,
    /// Names of disks.
    pub devices: Devices,
}

impl SegmentReader<'_> {
    /// Reads `segment`, the tape's number `at`.
    pub(super) fn part(&self, at: u32, segment: &Segment<'_>, coverage: &mut Coverage) -> SegmentPart {
        let mut part = SegmentPart::default();
        let dict = match segment.dict() {
            Ok(dict) => dict,
            Err(error) => {
                coverage.hole(segment, segment.info().rows, &error);
                return part;
            }
        };
        match segment.stacks() {
            Ok(stacks) => part.stacks = stacks,
            Err(error) => coverage.finding(segment, "stacks", &error),
        }
        self.ends(segment, &dict, &mut part, coverage);
        self.blocks((at, segment), &dict, &mut part, coverage);
        self.samples(segment, &dict, &mut part, coverage);
        part.tasks.clone_from(&dict.tasks);
        if segment.info().rows == 0 {
            return part;
        }
        let mut holes = Vec::new();
        if let Some(base) = Base::of(*segment, Ok(dict), &mut holes, |_, _| true) {
            let number = segment.info().segment;
            let rows = self.rows((at, number), &base.dict, &base.core, &base.time, &mut part.left);
            let loaded = base.load_rows(rows.iter().copied(), &self.question.book, &mut holes);
            self.calls(&loaded, &rows, &mut part);
        }
        coverage.holes(holes);
        part
    }

    /// The calls that were open when the recording ended abnormally.
    pub(super) fn open(&self, open: systape_events::load::OpenCalls, at: u32) -> SegmentPart {
        let mut part = SegmentPart { tasks: open.dict.tasks.clone(), ..SegmentPart::default() };
        let rows = self.rows((at, at), &open.dict, &open.core, &open.time, &mut part.left);
        self.calls(&open.load(&self.question.book), &rows, &mut part);
        part
    }

    /// The rows of calls that are kept.
    fn rows(
        &self,
        (at, number): (u32, u32),
        dict: &Dict,
        core: &systape_format::model::Core,
        time: &systape_format::model::Time,
        left: &mut SkippedEvents,
    ) -> Vec<u32> {
        let mut rows = Vec::new();
        passing(self.question, number, dict, core, time, |row| {
            let rank = EventRank::call(core.dur[row], at, row as u32);
            if self.kept.has(&rank) {
                rows.push(row as u32);
            } else {
                left.add(&rank, |left| &mut left.calls);
            }
        });
        rows
    }

    fn calls(&self, loaded: &Loaded, rows: &[u32], part: &mut SegmentPart) {
        let mut scratch = ValueScratch::default();
        let mut bytes = Vec::new();
        part.markers.reserve(rows.len());
        for row in rows.iter().map(|row| *row as usize) {
            let start = loaded.time.start[row].max(self.question.tape.session().window_open);
            let known = row::duration(loaded, row).known();
            let end = known.map(|(ns, _)| loaded.time.start[row].saturating_add(ns).max(start));
            let mut fields = [NOTHING; FIELDS];
            bytes.clear();
            text::arguments(&mut bytes, &mut scratch, loaded, row, Look::default());
            fields[0] = part.texts.number(&bytes).0;
            bytes.clear();
            text::result(&mut bytes, &mut scratch, loaded, row);
            fields[1] = part.texts.number(&bytes).0;
            if let CallOutcome::Errno(errno) | CallOutcome::Restart(errno) = row::outcome(loaded, row) {
                fields[2] = part.texts.number(errno_text(errno).as_bytes()).0;
            }
            if let Some(why) = row::incomplete(loaded.core.state[row]) {
                fields[3] = part.texts.number(why.as_bytes()).0;
            }
            let name = part.texts.number(loaded.call(row).long_name.as_bytes()).0;
            let found = part.stacks.of(StackOf::Syscall, row as u32);
            let stack = found.map(|found| (found.user, found.kernel, StackEnding::Status(found.status), true));
            part.markers.push(LocalMarker {
                task: Some(loaded.core.task[row]),
                row: MarkerRow { start, end, name, kind: MarkerKind::Call, fields, stack: NOTHING },
                stack,
            });
        }
    }

    fn blocks(&self, (at, segment): (u32, &Segment<'_>), dict: &Dict, part: &mut SegmentPart, coverage: &mut Coverage) {
        let ios = segment.blocks(dict).unwrap_or_else(|error| {
            coverage.finding(segment, "block I/Os", &error);
            Vec::new()
        });
        let files = Files::read(segment, dict, &ios).unwrap_or_else(|error| {
            coverage.finding(segment, "names of files", &error);
            Files::default()
        });
        for (row, event) in ios.iter().enumerate() {
            let io = Io::new(event, dict).with(&files);
            if !io.passes(&self.question.scope) {
                continue;
            }
            let rank = EventRank::block(&io, at, row as u32);
            if !self.kept.has(&rank) {
                part.left.add(&rank, |left| &mut left.blocks);
                continue;
            }
            let end = (rank.length() > 0).then_some(event.complete);
            let start = event.complete.saturating_sub(rank.length());
            let mut text = |text: &str| part.texts.number(text.as_bytes()).0;
            let fields = [
                text(&self.devices.name(event.dev)),
                text(&letters(event.flags)),
                event.bytes.min(NOTHING - 1),
                text(&io.held().text()),
            ];
            let (name, found) = (text("block I/O"), part.stacks.of(StackOf::Block, row as u32));
            let stack = found.map(|found| (found.user, found.kernel, StackEnding::Status(found.status), true));
            part.markers.push(LocalMarker {
                task: event.owner.or(event.origin),
                row: MarkerRow { start, end, name, kind: MarkerKind::Block, fields, stack: NOTHING },
                stack,
            });
        }
    }

    fn samples(&self, segment: &Segment<'_>, dict: &Dict, part: &mut SegmentPart, coverage: &mut Coverage) {
        let samples = segment.samples(dict).unwrap_or_else(|error| {
            coverage.finding(segment, "CPU samples", &error);
            Vec::new()
        });
        let scope = &self.question.scope;
        for (row, sample) in samples.iter().enumerate() {
            let passes = dict.tasks.get(sample.task as usize).is_some_and(|task| scope.task(task));
            if !passes || !scope.at(sample.ts) {
                continue;
            }
            let stack = match part.stacks.of(StackOf::Sample, row as u32) {
                Some(stack) => (stack.user, stack.kernel, StackEnding::Status(stack.status), sample.kernel),
                None => (None, None, StackEnding::NotStored, sample.kernel),
            };
            part.samples.push(LocalSample { task: sample.task, ts: sample.ts, stack });
        }
    }

    fn ends(&self, segment: &Segment<'_>, dict: &Dict, part: &mut SegmentPart, coverage: &mut Coverage) {
        match segment.processes(dict) {
            Ok(life) => {
                let ends = life.iter().filter(|event| event.kind == ProcessKind::Exit);
                part.ends = ends.map(|event| (event.task, event.ts)).collect();
            }
            Err(error) => coverage.finding(segment, "events of process life", &error),
        }
    }
}
