//! The listing: every passing call, one a line, in order of start (or of end), and between them other events that `-e`
//! names.
//!
//! Segments are decoded and rendered in parallel, a bounded batch at a time, while the batch before is written. Memory
//! holds two batches of rendered lines, and the carry rows that wait for their place.

use std::io;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use systape_abi::FlagStyle;
use systape_format::model::{CallState, Family, StackOf};

use super::Context;
use crate::asked::config::{Config, refuse};
use crate::asked::options::stacks::Below;
use crate::asked::sort::{ListingOrder, Sort};
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::identities;
use systape_answers::derive::paths::cwds::{self, Cwds, Moves};
use systape_answers::derive::paths::history::History;
use systape_answers::derive::stacks::debug_files;
use systape_answers::derive::stacks::lines::StackLines;
use systape_answers::derive::stacks::names::Names;
use systape_answers::derive::stacks::recorded;
use systape_answers::lines::LineFormat;
use systape_answers::lines::csv::Csv;
use systape_answers::lines::events::lines::EventLines;
use systape_answers::lines::json::Json;
use systape_answers::lines::text::{Look, PerfTraceText};
use systape_answers::render::columns::Layout;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_events::families;
use systape_events::load::{Base, Loaded, OpenCalls};
use systape_events::loss::Hole;
use systape_events::question::clock;
use systape_events::scan::Scan;
use systape_events::scan::carry::{CarryPlan, carry_start, frontier};
use systape_events::stream::TimedLines;
use systape_events::stream::{Loose, Merger, Part, merged};
use systape_events::values::clock::Clock;
use systape_events::values::parallel;

/// Most segments rendered together: 64 Ki lines of 130 bytes and their columns are about 16 MB each.
const BATCH: usize = 6;
/// Lines of the first segment that are rendered and written before its others, because a whole segment takes 20 ms.
const FIRST_LINES: usize = 1024;

/// Options of the listing.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Leave out thread names
    #[arg(long, help_heading = "Listing")]
    no_comm: bool,

    /// Print arguments that are 0 too
    #[arg(long, help_heading = "Listing")]
    show_zeros: bool,

    /// Print constants with their prefix: O_RDONLY, not RDONLY
    #[arg(long, help_heading = "Listing")]
    show_prefix: bool,

    /// Show the current directory where a call names it: CWD</home/me>. The files of descriptors are always shown
    #[arg(short = 'y', long = "show-cwd", overrides_with = "show_cwd", help_heading = "Listing")]
    pub show_cwd: bool,

    /// Also list the child's side of fork and clone, which no one called
    #[arg(long, help_heading = "Listing")]
    clone_child: bool,

    /// Stacks below its lines.
    #[command(flatten)]
    pub stacks: Below,
}

impl Options {
    /// Options that are not set, but these `stacks`.
    pub(super) fn with(stacks: Below) -> Self {
        Self { stacks, ..Self::default() }
    }

    /// Options without effect.
    ///
    /// # Errors
    /// An option would have no effect.
    pub(crate) fn check(&self, config: &Config) -> Result<()> {
        let look = self.look(config.look);
        let of_text =
            [(look.no_comm, "--no-comm"), (look.show_zeros, "--show-zeros"), (self.show_prefix, "--show-prefix")];
        if config.format != Format::Text {
            refuse(&of_text, "JSON and CSV have all names, arguments and numbers of flags")?;
        }
        if !config.calls {
            let filters = &config.filters;
            let of_calls = [
                (filters.longer_than.is_some(), "--duration"),
                (filters.failure, "--failure"),
                (filters.by_path(), "-P"),
                (config.sort == Some(Sort::Listing(ListingOrder::End)), "--sort end"),
                (self.clone_child, "--clone-child"),
                (self.show_cwd, "--show-cwd"),
                of_text[1],
                of_text[2],
            ];
            refuse(&of_calls, "it is about calls, and -e names none")?;
        }
        if config.follow {
            let of_whole = [(self.stacks.asked(), "--call-graph"), (self.show_cwd, "--show-cwd")];
            refuse(
                &of_whole,
                "with --follow calls are listed as they end; names of functions and directories come later",
            )?;
        }
        self.stacks.cut.names.check(self.stacks.asked())
    }

    /// Form of the lines.
    fn look(&self, common: Look) -> Look {
        let style = FlagStyle { prefix: self.show_prefix };
        Look { no_comm: self.no_comm, show_zeros: self.show_zeros, style, ..common }
    }
}

/// Lines of text other than perf trace's: of calls by what the function makes, of events in the columns of a tool.
pub(super) enum Lines {
    Calls(for<'t> fn(&Context<'t>) -> Box<dyn LineFormat + 't>),
    Events(&'static Layout),
}

/// Prints the listing to `out`; holes are added to the context's losses.
///
/// # Errors
/// It cannot be written, or the tape not be asked so.
pub fn run(context: &mut Context<'_>, out: &mut Out) -> Result<()> {
    let own: Options = context.config.own()?;
    run_with(context, &own, None, out)
}

/// Answers with these options, text with those `lines` if they are given.
pub(super) fn run_with(context: &mut Context<'_>, own: &Options, lines: Option<&Lines>, out: &mut Out) -> Result<()> {
    run_part(context, own, lines, out).map(drop)
}

/// Answers a part, below the heading if that is not printed; returns how many lines more may be printed.
pub(super) fn run_part(context: &mut Context<'_>, own: &Options, lines: Option<&Lines>, out: &mut Out) -> Result<u64> {
    let (session, look) = (context.question.tape.session(), own.look(context.config.look));
    let form: Box<dyn LineFormat + '_> = match out.format() {
        Format::Text => match lines {
            Some(Lines::Calls(make)) => make(context),
            _ => Box::new(PerfTraceText::new(session, look, context.stamps(), out.label())),
        },
        Format::Json => Box::new(Json::new(session, clock(context.question.tape), out.label())),
        Format::Csv => Box::new(Csv::new(session, clock(context.question.tape), own.stacks.asked(), out.label())),
    };
    let sort = order(context, out);
    let tool = match lines {
        Some(Lines::Events(layout)) => Some(context.stamped(layout)),
        _ => None,
    };
    let mut holes = Vec::new();
    let config = context.config;
    let mut unnamed = Vec::new();
    let names = names(context, &own.stacks, &mut unnamed)?;
    let stacks = names.as_ref().map(|names| (names, own.stacks.limits()));
    let of_tool = tool.is_some();
    let (looks, times) = ((look, context.stamps()), clock_for(context));
    let mut events = EventLines::new(config.events.clone(), out, tool, looks, session, times, stacks);
    out.head(&if of_tool { events.head() } else { form.header() })?;
    events.devices = devices(context.question.tape);
    if config.events.tables() {
        let (files, damaged) = identities::FileNames::read(context.question.tape);
        damaged.tell(&mut context.question.loss);
        events.files = files;
    }
    let calls = config.calls && families::recorded(context.question.tape, Family::Syscall) != Some(false);
    let listing = Listing {
        context,
        form: &*form,
        calls,
        sort,
        children: own.clone_child,
        directories: own.show_cwd,
        events,
        spare: Mutex::default(),
        findings: Mutex::default(),
    };
    let left = listing.run(out, &mut holes)?;
    let findings = listing.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let loss = &mut context.question.loss;
    // what chose the calls may have met them before
    holes.retain(|hole| !loss.holes.contains(hole));
    loss.holes.extend(holes);
    // a place without its name is a part of the answer that is missing
    context.question.loss.findings.extend(unnamed.into_iter().chain(findings));
    Ok(left)
}

/// The names for stacks, if requested; why some are missing is added to `findings`.
fn names(context: &Context<'_>, below: &Below, findings: &mut Vec<String>) -> Result<Option<Names>> {
    if !below.asked() {
        return Ok(None);
    }
    let tape = context.question.tape;
    let kinds = recorded::require(tape)?;
    if context.config.events.is_empty() && !kinds.contains(&StackOf::Syscall) {
        bail!("this tape has stacks, but none of syscalls: 'analyze callgraph' adds up those it has");
    }
    Ok(Some(debug_files::find(tape, || recorded::places(tape), &below.cut.names.debug_dirs, findings)?))
}

/// The clock of events: none for text, and none without events.
fn clock_for(context: &Context<'_>) -> Clock {
    let needed = context.config.format != Format::Text && !context.config.events.is_empty();
    if needed { clock(context.question.tape) } else { Clock::default() }
}

/// The requested order, if the tape allows it: without the index of carry rows, only end order can be streamed.
fn order(context: &Context<'_>, out: &mut Out) -> ListingOrder {
    let sort = match context.config.sort {
        _ if context.config.follow => ListingOrder::End,
        Some(Sort::Listing(order)) => order,
        _ => ListingOrder::default(),
    };
    let unknown =
        context.question.tape.segments().iter().any(|info| info.carry_rows > 0 && carry_start(info).is_none());
    if sort == ListingOrder::Start && context.config.calls && unknown {
        let why = match context.question.tape.is_being_written() {
            true => "it is still being written",
            false => "the recording ended abnormally",
        };
        out.say(&format!("the tape has no index ({why}): calls are listed by end, not by start"));
        return ListingOrder::End;
    }
    sort
}

/// The rows of a segment to render.
#[derive(Clone, Copy, Debug)]
struct Job {
    at: usize,
    /// Rows that began in the segment's window.
    own: bool,
    /// Rows that began before it.
    carry: bool,
}

/// A segment's lines.
#[derive(Debug, Default)]
struct Rendered {
    own: Part,
    carry: Vec<Loose>,
    holes: Vec<Hole>,
    rest: Option<SegmentRest>,
}

/// The rest of a segment whose first lines are rendered.
#[derive(Debug)]
struct SegmentRest {
    at: usize,
    segment: Loaded,
    keyed: Vec<(u64, u32)>,
}

/// One batch, ready to be written.
#[derive(Debug, Default)]
struct Batch {
    rendered: Vec<Rendered>,
    /// No line of a later batch has a lesser key.
    frontier: u64,
}

impl Batch {
    /// Lines of segments in it.
    fn lines(&self) -> u64 {
        self.rendered.iter().map(|rendered| rendered.own.marks.len() as u64).sum()
    }
}

struct Listing<'a, 'b> {
    context: &'a Context<'b>,
    form: &'a dyn LineFormat,
    /// Calls are selected, and were recorded.
    calls: bool,
    sort: ListingOrder,
    /// The child's return from clone is selected.
    children: bool,
    /// Whether current directories are shown.
    directories: bool,
    /// Lines of other events.
    events: EventLines<'a>,
    /// Damage found while reading events and stacks.
    findings: Mutex<Vec<String>>,
    /// Buffers of written parts, for reuse: fresh ones would cost a page fault every 4 KiB.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Listing<'_, '_> {
    /// Prints all lines; returns how many more may be printed.
    fn run(&self, out: &mut Out, holes: &mut Vec<Hole>) -> Result<u64> {
        let segments = self.segments();
        let carries = if self.calls && self.sort == ListingOrder::Start { &segments[..] } else { &[] };
        let mut plan = CarryPlan::of(self.context.question.tape, carries);
        let mut merger = Merger::new(out, self.context.config.max_events);
        self.context.config.shown.rows(0);
        self.gaps(&mut merger);
        if self.calls {
            self.open_calls(&mut merger);
        }
        let mut next = 0;
        // one segment first: somebody waits for the first line, and few lines may be all that is wanted
        let mut size = 1;
        let mut ready = Batch::default();
        let mut rest = None;
        let moves = if self.calls && self.directories { Moves::of(&self.context.question) } else { None };
        let mut cwds = moves.as_ref().map(Cwds::new);
        // where the lines of the next batch begin
        let mut begin = 0;
        if let Some(at) = segments.first() {
            let (jobs, frontier) = self.jobs(&[*at], segments.get(1), &mut plan);
            let history = self.directories(&mut cwds, begin, &[*at]);
            let mut rendered = self.render(&jobs, FIRST_LINES, history);
            begin = frontier;
            rest = rendered.iter_mut().find_map(|rendered| rendered.rest.take());
            // what comes next is the first of the rest, or of the segment after it
            let then =
                rest.as_ref().and_then(|rest: &SegmentRest| rest.keyed.first()).map_or(frontier, |(key, _)| *key);
            let first = Batch { rendered, frontier: then.min(frontier) };
            self.write(&mut merger, first, holes)?;
            merger.flush()?;
            next = 1;
        }
        while merger.left() > 0 && (rest.is_some() || next < segments.len()) {
            let before = std::mem::take(&mut ready);
            if before.lines() >= merger.left() {
                // enough: what is next would be rendered for nothing
                self.write(&mut merger, before, holes)?;
                continue;
            }
            let enough = rest.as_ref().is_some_and(|rest| rest.keyed.len() as u64 >= merger.left());
            let until = if enough { next } else { (next + size).min(segments.len()) };
            let jobs = self.jobs(&segments[next..until], segments.get(until), &mut plan);
            let history = self.directories(&mut cwds, begin, &segments[next..until]);
            begin = jobs.1;
            let begun = rest.take();
            let render = || {
                parallel::both(
                    || begun.as_ref().map(|rest| self.render_rest(rest)),
                    || self.render(&jobs.0, usize::MAX, history),
                )
            };
            let (written, (begun, rendered)) = parallel::both(|| self.write(&mut merger, before, holes), render);
            written?;
            ready = Batch { rendered: begun.into_iter().chain(rendered).collect(), frontier: jobs.1 };
            next = until;
            size = (size * 2).min(batch_size());
        }
        if merger.left() > 0 {
            self.write(&mut merger, ready, holes)?;
            merger.finish()?;
        }
        Ok(merger.left())
    }

    /// The segments that may hold a line.
    fn segments(&self) -> Vec<usize> {
        let events = !self.context.config.events.is_empty();
        let question = &self.context.question;
        let scan = if events { Scan::candidates(question) } else { Scan::calls(question) };
        scan.segments().to_vec()
    }

    /// Lines about gaps wait for their places from the beginning, because gaps are few.
    fn gaps<W: TimedLines>(&self, merger: &mut Merger<W>) {
        for gap in &self.context.question.loss.gaps {
            let line = self.form.gap(gap);
            if !line.is_empty() {
                merger.push(Loose { key: gap.first, tie: None, line });
            }
        }
    }

    /// Calls that were open when a recording ended abnormally come from its last checkpoint, not from a segment.
    fn open_calls<W: TimedLines>(&self, merger: &mut Merger<W>) {
        let context = self.context;
        let Some(open) = OpenCalls::read(context.question.tape) else { return };
        let filter = context.question.scope.segment(&open.dict, u32::MAX);
        let passes = |row: &usize| filter.core(&open.core, *row) && filter.time(&open.time, *row);
        let rows: Vec<usize> = (0..open.core.call.len()).filter(passes).collect();
        let segment = open.load(&context.question.book);
        let mut lines = self.form.segment(&segment);
        let mut stacks = self.events.stacks.map(|(names, limits)| StackLines::none(names, limits));
        context.config.shown.rows(rows.len());
        for row in rows {
            if stacks.as_mut().is_some_and(|stacks| !stacks.passes(StackOf::Syscall, row as u32)) {
                continue;
            }
            let dur = if self.sort == ListingOrder::End { segment.core.dur[row] } else { 0 };
            let mut line = Vec::new();
            lines.row(&mut line, row, &self.more(stacks.as_mut(), row as u32));
            merger.push(Loose {
                key: segment.time.start[row].saturating_add(dur),
                tie: Some((segment.number, row as u32)),
                line,
            });
        }
    }

    /// The rows to render for a batch, and its frontier: the segments themselves, and carry rows of later ones that
    /// belong before it.
    fn jobs(&self, batch: &[usize], after: Option<&usize>, plan: &mut CarryPlan) -> (Vec<Job>, u64) {
        let frontier = frontier(self.context.question.tape, after.copied());
        let due = plan.due(frontier);
        let mut jobs: Vec<Job> = batch
            .iter()
            .map(|at| Job { at: *at, own: true, carry: self.sort == ListingOrder::End || due.contains(at) })
            .collect();
        jobs.extend(due.iter().filter(|at| !batch.contains(at)).map(|at| Job { at: *at, own: false, carry: true }));
        (jobs, frontier)
    }

    /// Where processes are while the segments `batch` last, of which the first begins at `begin`.
    fn directories<'c>(&self, cwds: &'c mut Option<Cwds<'_, '_>>, begin: u64, batch: &[usize]) -> Option<&'c History> {
        let infos = self.context.question.tape.segments();
        let cwds = cwds.as_mut()?;
        cwds.advance(begin, batch.iter().map(|at| infos[*at].end_max).max()?);
        cwds.history()
    }

    /// At most `most` of each segment's own rows; the others are its rest.
    fn render(&self, jobs: &[Job], most: usize, history: Option<&History>) -> Vec<Rendered> {
        parallel::map(jobs, |job| self.render_one(*job, most, history))
    }

    fn write<W: TimedLines>(&self, merger: &mut Merger<W>, mut batch: Batch, holes: &mut Vec<Hole>) -> io::Result<()> {
        for rendered in &mut batch.rendered {
            self.context.config.shown.rows(rendered.own.marks.len() + rendered.carry.len());
            for loose in rendered.carry.drain(..) {
                merger.push(loose);
            }
            for hole in rendered.holes.drain(..) {
                // a segment whose carry rows were read early is met twice
                if !holes.contains(&hole) {
                    self.tell(merger, &hole);
                    holes.push(hole);
                }
            }
        }
        for rendered in batch.rendered {
            merger.part(&rendered.own)?;
            if rendered.own.bytes.capacity() > 0 {
                self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(rendered.own.bytes);
            }
        }
        merger.flush_below(batch.frontier)
    }

    fn tell<W: TimedLines>(&self, merger: &mut Merger<W>, hole: &Hole) {
        let line = self.form.hole(hole);
        // without a detail its calls are listed all the same
        if hole.rows > 0 && !line.is_empty() {
            merger.push(Loose { key: hole.first, tie: None, line });
        }
    }

    fn render_one(&self, job: Job, most: usize, history: Option<&History>) -> Rendered {
        let mut rendered = if self.calls { self.render_calls(job, most, history) } else { Rendered::default() };
        if job.own && !self.context.config.events.is_empty() {
            self.add_events(job.at, &mut rendered);
        }
        rendered
    }

    /// Inserts the lines of events between those of calls. A late record belongs into an earlier segment's window.
    fn add_events(&self, at: usize, rendered: &mut Rendered) {
        let segment = self.context.question.tape.segment(at);
        let mut findings = Vec::new();
        let (mut part, window) = self.events.segment(&segment, &self.context.question.scope, &mut findings);
        self.found(findings);
        let late = part.marks.partition_point(|(key, _)| *key < window);
        let mut begin = 0;
        for (row, (key, end)) in part.marks.drain(..late).enumerate() {
            let line = part.bytes[begin..end].to_vec();
            rendered.carry.push(Loose { key, tie: Some((segment.info().segment, row as u32)), line });
            begin = end;
        }
        part.bytes.drain(..begin);
        part.marks.iter_mut().for_each(|(_, end)| *end -= begin);
        rendered.own = merged(std::mem::take(&mut rendered.own), part);
    }

    fn render_calls(&self, job: Job, most: usize, history: Option<&History>) -> Rendered {
        let mut rendered = Rendered::default();
        let context = self.context;
        let mut picked = Vec::new();
        let number = context.question.tape.segments()[job.at].segment;
        let wanted = |dict: &_, core: &_| {
            let filter = context.question.scope.segment(dict, number);
            picked = self.rows(core, job).filter(|row| filter.core(core, *row)).collect();
            !picked.is_empty()
        };
        let Some(base) = Base::read(context.question.tape.segment(job.at), &mut rendered.holes, wanted) else {
            return rendered;
        };
        let filter = context.question.scope.segment(&base.dict, number);
        let mut keyed: Vec<(u64, u32)> = picked
            .into_iter()
            .filter(|row| filter.time(&base.time, *row))
            .map(|row| (self.key(&base, row), row as u32))
            .collect();
        if keyed.is_empty() {
            return rendered;
        }
        // rows are in order of end: nearly sorted, which the stable sort is quick at
        keyed.sort_by_key(|(key, _)| *key);
        let rows = keyed.iter().map(|(_, row)| *row);
        let mut segment = base.load_rows(rows, &context.question.book, &mut rendered.holes);
        if let Some(history) = history {
            cwds::fill(history, &mut segment, keyed.iter().map(|(_, row)| *row as usize));
        }
        // lines of events go between those of calls when all are there; stacks are read for a segment at a time
        let whole = !context.config.events.is_empty() || self.events.stacks.is_some();
        let rest = if job.own && !whole { keyed.split_off(keyed.len().min(most)) } else { Vec::new() };
        self.lines(job.at, &segment, &keyed, &mut rendered);
        rendered.rest = (!rest.is_empty()).then_some(SegmentRest { at: job.at, segment, keyed: rest });
        rendered
    }

    fn render_rest(&self, rest: &SegmentRest) -> Rendered {
        let mut rendered = Rendered::default();
        self.lines(rest.at, &rest.segment, &rest.keyed, &mut rendered);
        rendered
    }

    /// Keeps the damage found; calls and events of a segment may both report its stacks.
    fn found(&self, findings: Vec<String>) {
        let mut all = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in findings {
            if !all.contains(&finding) {
                all.push(finding);
            }
        }
    }

    /// The rows of `job` in its segment, apart from filters.
    fn rows<'c>(&self, core: &'c systape_format::model::Core, job: Job) -> impl Iterator<Item = usize> + use<'c> {
        let from = if job.carry { 0 } else { core.carry_rows };
        let to = if job.own { core.call.len() } else { core.carry_rows };
        let children = self.children;
        (from..to).filter(move |row| children || core.state[*row] != CallState::CloneChild)
    }

    fn key(&self, base: &Base<'_>, row: usize) -> u64 {
        match self.sort {
            ListingOrder::Start => base.time.start[row],
            ListingOrder::End => base.time.start[row].saturating_add(base.core.dur[row]),
        }
    }

    /// What stands with the line of a call for its stack.
    fn more(&self, stacks: Option<&mut StackLines<'_>>, row: u32) -> Vec<u8> {
        stacks.map_or_else(Vec::new, |stacks| self.events.stack(stacks, StackOf::Syscall, row))
    }

    fn lines(&self, at: usize, segment: &Loaded, keyed: &[(u64, u32)], rendered: &mut Rendered) {
        let mut lines = self.form.segment(segment);
        let mut findings = Vec::new();
        let mut stacks = self.events.stacks.map(|(names, limits)| {
            StackLines::read(&self.context.question.tape.segment(at), names, limits, &mut findings)
        });
        self.found(findings);
        if let Some(mut buffer) = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            buffer.clear();
            rendered.own.bytes = buffer;
        }
        rendered.own.bytes.reserve(keyed.len() * 128);
        rendered.own.marks.reserve(keyed.len());
        let mut left = self.context.config.max_events;
        for (key, row) in keyed {
            if stacks.as_mut().is_some_and(|stacks| !stacks.passes(StackOf::Syscall, *row)) {
                continue;
            }
            let more = self.more(stacks.as_mut(), *row);
            if self.sort == ListingOrder::Start && (*row as usize) < segment.core.carry_rows {
                let mut line = Vec::with_capacity(160);
                lines.row(&mut line, *row as usize, &more);
                rendered.carry.push(Loose { key: *key, tie: Some((segment.number, *row)), line });
            } else if left > 0 {
                lines.row(&mut rendered.own.bytes, *row as usize, &more);
                rendered.own.end_line(*key);
                left -= 1;
            }
        }
    }
}

fn batch_size() -> usize {
    rayon::current_num_threads().clamp(1, BATCH)
}
