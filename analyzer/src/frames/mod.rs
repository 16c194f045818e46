//! Tables of a tape as typed columns, for programs that query them: `analyze-sql` makes SQL and Parquet of them.
//!
//! A table is a kind of event ([`systape_answers::catalogue`]), calls or what is known beside them ([`defs`]), one that the tape
//! defines ([`stored`]), or the rows of a report ([`views`]). Each has one declaration, of which names, kinds, units and sentences of the columns are made ([`fields`]).
//! Rows come in batches of plain vectors ([`Values`]), only those columns that are wanted. What is lost is asked apart
//! ([`Source::losses`]).

mod answers;
pub mod arrow;
mod calls;
mod defs;
mod events;
pub(crate) mod export;
mod fields;
mod list;
mod make;
mod nullable;
mod picks;
mod read;
mod stored;
mod tasks;
mod values;
mod views;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use systape_format::header::BlockKind;
use systape_format::model::{CallState, Family, LedgerRow};
use systape_format::reader::{Segment, Tape};

pub use self::answers::{ReportAnswer, ReportTable};
pub use self::fields::{FrameField, Kind};
use self::list::Rows;
pub use self::list::{Table, names};
use self::make::CommonValues;
pub use self::make::utf8;
pub use self::nullable::Nullable;
pub use self::picks::RowPicks;
pub use self::read::{PASSED, TableReading, TakePicks};
pub use self::values::{Argument, NONE, Values};
use crate::cli::sandbox::{self, RemainingRights};
use crate::reports::losses::LOSS_LINES;
use systape_answers::derive::stacks::names::Names;
use systape_answers::values::memory;
use systape_answers::values::new_file;
use systape_answers::values::open::open;
use systape_answers::values::tapes::found;
use systape_events::families;
use systape_events::filter::{Filters, Scope};
use systape_events::loss::{Hole, damage_text};
use systape_events::question::{self, Question};
use systape_events::scan::carry;
use systape_events::values::clock::{Clock, rfc3339};
use systape_events::values::timespec::Edge;
pub use systape_events::values::words::escaped;

/// Rows of a report, or of tasks, roughly.
const ABOUT_REPORT: usize = 10_000;
/// Stored bytes of an event that is no call, roughly.
const BYTES_OF_EVENT: u64 = 4;

/// Rows of a table: the wanted columns, in the order in which they were asked for.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Number of rows.
    pub rows: usize,
    /// Columns of the rows.
    pub columns: Vec<Values>,
}

/// What rows a query can be about. Segments that certainly have none of them are not read; others of their rows are
/// passed as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Least and greatest time, ns since the tape's start.
    pub rel: (Option<i64>, Option<i64>),
    /// Least and greatest time, ns since 1970.
    pub epoch: (Option<i64>, Option<i64>),
    /// Processes, of tables with a column `pid`; None = any.
    pub pids: Option<Vec<u32>>,
    /// Names of calls, of tables of calls; None = any.
    pub calls: Option<Vec<String>>,
    /// Least duration, ns, of tables of calls; None = any.
    pub least_ns: Option<i64>,
}

/// A part of a table that is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    segment: Option<usize>,
    rows: Option<carry::Rows>,
}

/// A step of reading a table in order of time.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is read.
    pub parts: Vec<Part>,
    /// Rows of later steps are not before this, ns since the tape's start; None: nothing is known of them.
    pub frontier: Option<i64>,
}

/// How much of a tape a query reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryCost {
    /// Segments read.
    pub segments: usize,
    /// Segments that the tape has.
    pub of_segments: usize,
    /// Stored bytes of the blocks read.
    pub bytes: u64,
    /// Stored bytes of the tape.
    pub of_bytes: u64,
}

/// An open tape and its tables.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    tape: Tape,
    /// What reports could not read.
    missed: Mutex<BTreeSet<String>>,
    common: CommonValues,
    filters: Filters,
    tables: Vec<Table>,
}

/// A tape bound to what is asked of it.
pub(crate) struct Frame<'a> {
    tape: &'a Tape,
    question: Question<'a>,
    common: &'a CommonValues,
    wanted: &'a [&'a FrameField],
    within: &'a Bounds,
}

/// The tapes that `named` stands for: files, and those in directories.
///
/// # Errors
/// There are none, or too many.
pub fn tapes(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    found(named.iter())
}

/// Permissions of a file that is made of the tape at `path`: who may read that may read it.
pub fn permissions_like(path: &Path) -> u32 {
    new_file::permissions_like([path])
}

/// `text` on one line that acts on no terminal.
pub fn plain(text: &str) -> Cow<'_, str> {
    systape_abi::plain(text)
}

/// One value of JSON that acts on no terminal; it has no line ends.
pub fn plain_json(json: &str) -> Cow<'_, str> {
    systape_abi::plain_json(json)
}

/// Gives up all rights but to read the files `read` and to make files below the directories `make`. For this thread and
/// those made later, so it comes before the first of them. Memory that is freed from now on is kept.
pub fn confine(read: &[PathBuf], make: &[PathBuf]) {
    memory::keep_freed();
    sandbox::enter(&RemainingRights { read: read.to_vec(), make: make.to_vec(), ..RemainingRights::default() });
}

/// The tape at `path`.
///
/// # Errors
/// It is none, or cannot be read.
pub fn source(path: &Path) -> Result<Source> {
    let tape = open(path)?;
    let session = tape.session();
    let clock: Clock = question::clock(&tape);
    let date =
        clock.real(session.window_open).map(|real| rfc3339(systape_events::values::clock::Real::known(real.first)));
    let common = CommonValues {
        host: Some(session.hostname.clone()).filter(|host| !host.is_empty()),
        date: date.and_then(|text| text.get(..10).map(str::to_owned)),
        tape: tape.tape_id().iter().map(|byte| format!("{byte:02x}")).collect(),
        clock,
        open: session.window_open,
    };
    let tables = list::tables(Some(&tape));
    Ok(Source { path: path.to_owned(), tape, missed: Mutex::default(), common, filters: Filters::none(), tables })
}

impl Source {
    /// Leaves out the rows that `filters` do not choose.
    ///
    /// # Errors
    /// They name an unknown time, user or cgroup.
    pub(crate) fn narrowed(self, filters: Filters) -> Result<Self> {
        Question::new(&filters, &self.tape, &[])?;
        Ok(Self { filters, ..self })
    }

    /// Tables of the tape, in the order in which they are listed.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Name of the recorded machine; None = not known.
    pub fn host(&self) -> Option<&[u8]> {
        self.common.host.as_deref()
    }

    /// Day on which it begins, UTC: `2026-11-22`; None = not known.
    pub fn date(&self) -> Option<&str> {
        self.common.date.as_deref()
    }

    /// Id of the tape, 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.common.tape
    }

    /// Number of segments of the tape.
    pub fn segments(&self) -> usize {
        self.tape.segments().len()
    }

    /// Refuses a table whose events were not recorded: an empty answer would look like "nothing happened".
    ///
    /// # Errors
    /// They were not.
    pub fn require(&self, table: &Table) -> Result<()> {
        if let Some(family) = table.needs {
            families::require(&self.tape, family, &format!("table {}: its events", table.name))?;
        }
        Ok(())
    }

    fn wants(&self, table: &Table, at: usize, bounds: &Bounds) -> bool {
        let info = &self.tape.segments()[at];
        if !table.kinds.iter().any(|kind| self.tape.segment(at).has(*kind)) {
            return false;
        }
        if table.prunes {
            let (from, to) = self.span(bounds);
            if !info.touches(from, to) {
                return false;
            }
        }
        if let (Rows::Calls, Some(calls), Some(there)) = (&table.rows, &bounds.calls, &info.calls) {
            let book = systape_events::calls::CallBook::new(self.tape.session());
            if !there.iter().any(|call| calls.contains(&book.get(*call).name)) {
                return false;
            }
        }
        if let (Rows::Calls, Some(least)) = (&table.rows, bounds.least_ns)
            && u64::try_from(least).is_ok_and(|least| info.max_dur < least)
        {
            return false;
        }
        match (&table.rows, &bounds.pids) {
            (Rows::Calls, Some(pids)) => pids.iter().any(|pid| info.may_contain_pid(*pid)),
            _ => true,
        }
    }

    /// The time from which and before which rows matter, CLOCK_MONOTONIC.
    fn span(&self, bounds: &Bounds) -> (u64, u64) {
        let rel = |ns: i64| self.common.open.saturating_add_signed(ns);
        let mono = |ns: i64| self.common.clock.monotonic(ns);
        let from = [bounds.rel.0.map(rel), bounds.epoch.0.and_then(mono).map(|(first, _)| first)];
        let to = [
            bounds.rel.1.map(|ns| rel(ns.saturating_add(1))),
            bounds.epoch.1.and_then(|ns| mono(ns.saturating_add(1))).map(|(_, last)| last),
        ];
        (from.into_iter().flatten().max().unwrap_or(0), to.into_iter().flatten().min().unwrap_or(u64::MAX))
    }

    /// The parts of `table` that may have rows within `bounds`, in any order.
    pub fn parts(&self, table: &Table, bounds: &Bounds) -> Vec<Part> {
        let whole = Part { segment: None, rows: None };
        match table.rows {
            Rows::Threads | Rows::Processes | Rows::Report(_) => vec![whole],
            _ => {
                // filters that name what is not there were refused
                let question = Question::new(&self.filters, &self.tape, &[]).ok();
                let may_match = |at: &usize| match (&table.rows, &question) {
                    (Rows::Calls, Some(question)) => question.scope.may_match(&self.tape.segments()[*at]),
                    _ => true,
                };
                let segments =
                    (0..self.tape.segments().len()).filter(|at| self.wants(table, *at, bounds) && may_match(at));
                let open = matches!(table.rows, Rows::Gaps)
                    || (matches!(table.rows, Rows::Calls) && self.tape.end().is_none());
                segments.map(|at| Part { segment: Some(at), rows: None }).chain(open.then_some(whole)).collect()
            }
        }
    }

    /// All parts of `table` in order of time.
    pub fn steps(&self, table: &Table) -> Vec<Step> {
        self.steps_within(table, &Bounds::default())
    }

    /// The parts of `table` that may have rows within `bounds`, in order of time.
    pub fn steps_within(&self, table: &Table, bounds: &Bounds) -> Vec<Step> {
        let parts = self.parts(table, bounds);
        let segments: Vec<usize> = parts.iter().filter_map(|part| part.segment).collect();
        let rel = |ts: u64| Some(ts.wrapping_sub(self.common.open).cast_signed());
        let unknown = |at: &usize| {
            let info = &self.tape.segments()[*at];
            info.carry_rows > 0 && carry::carry_start(info).is_none()
        };
        let ordered = !segments.iter().any(unknown);
        let mut plan =
            carry::CarryPlan::of(&self.tape, if matches!(table.rows, Rows::Calls) { &segments } else { &[] });
        // calls that a checkpoint has open began before anything else
        let mut steps: Vec<Step> = parts
            .iter()
            .filter(|part| part.segment.is_none())
            .map(|part| Step { parts: vec![*part], frontier: Some(i64::MIN) })
            .collect();
        for (place, at) in segments.iter().enumerate() {
            let part = |at: usize, rows| Part { segment: Some(at), rows };
            let next = segments.get(place + 1).copied();
            let frontier = carry::frontier(&self.tape, next);
            let step = match (&table.rows, ordered) {
                (Rows::Calls, true) => {
                    let due = plan.due(frontier).into_iter().map(|at| part(at, Some(carry::Rows::Carry)));
                    Step { parts: due.chain([part(*at, Some(carry::Rows::Own))]).collect(), frontier: rel(frontier) }
                }
                (Rows::Calls, false) => Step { parts: vec![part(*at, None)], frontier: None },
                _ => Step { parts: vec![part(*at, None)], frontier: rel(frontier) },
            };
            let frontier = step.frontier.filter(|_| next.is_some());
            steps.push(Step { frontier: frontier.or(next.is_none().then_some(i64::MAX)), ..step });
        }
        steps
    }

    /// The blocks that are read of a segment for the columns `wanted` of `table`.
    fn blocks(&self, table: &Table, wanted: &[&FrameField]) -> Vec<BlockKind> {
        let mut kinds = vec![BlockKind::Dict];
        kinds.extend(match table.rows {
            Rows::Calls => calls::blocks(wanted),
            _ => table.kinds.to_vec(),
        });
        kinds
    }

    /// What reading `parts` of `table` costs.
    pub fn cost(&self, table: &Table, wanted: &[&FrameField], parts: &[Part]) -> QueryCost {
        let kinds = self.blocks(table, wanted);
        let of_bytes = self.tape.len_bytes();
        let of_segments = self.tape.segments().len();
        if !matches!(parts.first(), Some(Part { segment: Some(_), .. })) && !parts.is_empty() {
            // reports and tables of tasks read what they need
            return QueryCost { segments: of_segments, of_segments, bytes: of_bytes, of_bytes };
        }
        let segments = parts.iter().filter_map(|part| part.segment);
        let stored = |at: usize| -> u64 {
            let segment = self.tape.segment(at);
            kinds.iter().map(|kind| segment.stored_len(*kind)).sum()
        };
        let bytes = segments.clone().map(stored).sum();
        QueryCost { segments: segments.count(), of_segments, bytes, of_bytes }
    }

    /// How many rows `parts` of a table have, roughly: it tells large tables from small ones.
    pub fn about(&self, table: &Table, parts: &[Part]) -> usize {
        let segments = || parts.iter().filter_map(|part| part.segment);
        if segments().next().is_none() {
            // tasks, and rows of reports
            return ABOUT_REPORT;
        }
        let rows = |at: usize| {
            let segment = self.tape.segment(at);
            match table.rows {
                Rows::Calls => u64::from(segment.info().rows),
                _ => table.kinds.iter().map(|kind| segment.stored_len(*kind)).sum::<u64>() / BYTES_OF_EVENT,
            }
        };
        usize::try_from(segments().map(rows).sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Passes the columns `wanted` of the rows of `part` to `each`, until it breaks off. What cannot be read is among
    /// [`Source::losses`] from then on.
    ///
    /// # Errors
    /// A report has no answer.
    pub fn read(
        &self,
        table: &Table,
        part: Part,
        wanted: &[&FrameField],
        each: &mut (dyn FnMut(Batch) -> ControlFlow<()> + Send),
    ) -> Result<()> {
        self.read_within(table, part, wanted, &Bounds::default(), each)
    }

    /// The table as [`Source::read`] reads it; of calls only the rows within `bounds` are passed.
    ///
    /// # Errors
    /// A report has no answer.
    pub fn read_within(
        &self,
        table: &Table,
        part: Part,
        wanted: &[&FrameField],
        bounds: &Bounds,
        each: &mut (dyn FnMut(Batch) -> ControlFlow<()> + Send),
    ) -> Result<()> {
        if let Rows::Report(report) = &table.rows {
            // a report says of damage what nobody has said before, so its tape is one that nobody has read
            let tape = open(&self.path)?;
            let answered = report.rows(&table.def, &tape, &self.common, wanted, each);
            let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
            missed.extend(tape.misses().all().iter().map(damage_text));
            return answered;
        }
        let question = Question::new(&self.filters, &self.tape, &[])?;
        let frame = Frame { tape: &self.tape, question, common: &self.common, wanted, within: bounds };
        match (&table.rows, part.segment) {
            (Rows::Threads, _) => _ = each(frame.threads()),
            (Rows::Processes, _) => _ = each(frame.processes()),
            (Rows::Calls, None) => frame.open_calls().into_iter().for_each(|batch| _ = each(batch)),
            (Rows::Gaps, None) => _ = each(frame.doubts()),
            (_, Some(at)) => {
                for batch in frame.segment(table, &self.tape.segment(at), part.rows) {
                    if each(batch).is_break() {
                        break;
                    }
                }
            }
            (_, None) => bail!("table {}: a part without a segment", table.name),
        }
        Ok(())
    }

    /// The names behind the stacks of the tape, read once.
    pub(crate) fn names(tape: &Tape) -> Names {
        // what is unreadable is among the tape's misses
        Names::read(tape, &mut Vec::new())
    }

    /// Of a cut, the calls that were only counted and may have begun in its window or not.
    fn crossing(&self, scope: &Scope<'_>) -> u64 {
        if self.tape.session().cut.is_none() {
            return 0;
        }
        let segments = (0..self.tape.segments().len()).map(|at| self.tape.segment(at));
        let rows = segments.filter(|segment| segment.has(BlockKind::Ledger)).filter_map(|segment| {
            let dict = segment.dict().ok()?;
            // what cannot be read is among the tape's misses
            segment.ledger(&dict).ok()
        });
        let counts = |row: &LedgerRow| row.state != CallState::CloneChild && scope.began(row).is_none();
        rows.flatten().filter(counts).fold(0, |sum, row| sum.saturating_add(row.count))
    }

    /// Whether nothing is lost of these `tables` within `bounds`, and a sentence for each loss.
    ///
    /// # Errors
    /// There is no such time.
    pub fn losses(&self, tables: &[&Table], bounds: &Bounds) -> Result<(bool, Vec<String>)> {
        let mut families: Vec<Family> = tables.iter().flat_map(|table| table.families.iter().copied()).collect();
        families.sort_unstable();
        families.dedup();
        let (from, to) = self.span(bounds);
        let mut filters = self.filters.clone();
        if bounds.rel != (None, None) || bounds.epoch != (None, None) {
            filters.time = ((from > 0).then_some(Edge::Mono(from)), (to < u64::MAX).then_some(Edge::Mono(to)));
        }
        let question = Question::new(&filters, &self.tape, &families)?;
        let sums = tables.iter().all(|table| table.counts_ledger);
        let loss = if sums && !tables.is_empty() { question.loss.of_sums() } else { question.loss };
        let mut lines = loss.lines(self.tape.session(), LOSS_LINES);
        let missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let reports = tables.iter().any(|table| table.is_report());
        let new: Vec<String> = missed.iter().filter(|line| reports && !lines.contains(line)).cloned().collect();
        let crossing = if sums && !tables.is_empty() { self.crossing(&question.scope) } else { 0 };
        let complete = loss.complete() && new.is_empty() && crossing == 0;
        lines.extend(new);
        if crossing > 0 {
            lines.push(format!(
                "{crossing} calls were only counted, over a time that reaches beyond the cut: they are left out, sums are lower bounds"
            ));
        }
        Ok((complete, lines))
    }
}

impl Frame<'_> {
    fn segment(&self, table: &Table, segment: &Segment<'_>, rows: Option<carry::Rows>) -> Vec<Batch> {
        let one = |read: Result<Batch, systape_format::Error>| read.into_iter().collect::<Vec<_>>();
        // what cannot be read is among the tape's misses
        let Ok(dict) = segment.dict() else { return Vec::new() };
        match &table.rows {
            Rows::Calls => self.calls(*segment, rows, &mut Vec::<Hole>::new()).into_iter().collect(),
            Rows::Catalogued(table) => one(self.events(*table, segment, &dict)),
            Rows::Ledger => one(self.ledger(segment, &dict)),
            Rows::Gaps => one(self.gaps(segment)),
            Rows::Stacks => {
                let names = table.symbols.get_or_init(|| Arc::new(Source::names(self.tape)));
                one(self.stacks(segment, names))
            }
            Rows::Stored(name) => self.stored((name, &table.def), segment, &dict).unwrap_or_default(),
            Rows::Threads | Rows::Processes | Rows::Report(_) => Vec::new(),
        }
    }
}
