//! From segments to [`Stats`] by the keys of a [`Plan`]. Each thread adds up the segments it takes. The sums are
//! merged, in any order, at the end and whenever a thread has many. Memory grows with the number of keys, neither with
//! events nor with CPUs.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, CallState, Core, Dict, FD_FIRST, SegmentInfo, Time};
use systape_format::reader::{Segment, Tape};

use super::batch::{Batch, FEW};
use super::group::Sums;
use super::ledger::{self, Counted, Judge, Knowledge};
use super::places::{Known, Places};
use super::plan::{Plan, RowPart};
use super::stats::Stats;
use crate::table::call_files::{self, NO_FILE, UNKNOWN_FILE, unseen};
use crate::table::calls::{CallBook, CallInfo};
use crate::table::filter::{Scope, SegmentFilter};
use crate::table::group::by::By;
use crate::table::group::value::{Key, Value};
use crate::table::load::OpenCalls;
use crate::table::scan::{Coverage, Scan};

/// Most sums that all threads keep; about 1 KiB each with their histograms.
const OWN: usize = 128 << 10;
/// The least that each thread keeps: about the number for a segment of a busy machine.
const OWN_LEAST: usize = 4 << 10;

/// The segments that may store or count a call that passes, in order.
pub(crate) fn candidates(tape: &Tape, scope: &Scope<'_>) -> Vec<usize> {
    let segments = tape.segments().iter().enumerate();
    let wanted = segments.filter(|(at, info)| scope.may_match(info) || ledger::counts(tape, scope, *at));
    wanted.map(|(at, _)| at).collect()
}

/// Adds up the calls that pass `scope`, also those of the ledger.
pub fn collect(tape: &Tape, scope: &Scope<'_>, book: &CallBook<'_>, plan: &Plan) -> (Sums, Knowledge, Coverage) {
    let threads = ledger::threads(tape, scope, plan);
    let judge = Judge { scope, book, plan, threads: threads.as_ref() };
    let shared = Mutex::new(Sums::default());
    let own = (OWN / rayon::current_num_threads().max(1)).max(OWN_LEAST);
    let share = |sums: &mut Sums| shared.lock().unwrap_or_else(PoisonError::into_inner).merge(sums);
    let (parts, coverage) = Scan::of(tape, candidates(tape, scope)).fold(Part::default, |part, segment, coverage| {
        part.segment(segment, judge, coverage);
        if part.sums.groups.len() > own {
            share(&mut part.sums);
            part.known.clear();
            part.batch.forget();
        }
    });
    let mut all = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut counted = Counted::default();
    if let Some(open) = OpenCalls::read(tape) {
        let (filter, valued) = (scope.segment(&open.dict, u32::MAX), scope.valued());
        let (dict, core, time) = (&open.dict, &open.core, Some(&open.time));
        let rows = Rows { segment: None, dict, core, time, filter: &filter, valued };
        all.add(u32::MAX, &rows, judge, (&mut Known::default(), &mut Batch::default()));
    }
    for mut part in parts {
        all.merge(&mut part.sums);
        counted.merge(part.counted);
    }
    let (mut sums, knowledge) = counted.knowledge(plan);
    all.merge(&mut sums);
    (all, knowledge, coverage)
}

/// The state of one thread.
#[derive(Debug, Default)]
struct Part {
    sums: Sums,
    /// Of `sums`.
    known: Known,
    counted: Counted,
    /// Each segment is decoded into the buffers of the one before.
    core: Core,
    /// Empty between segments.
    batch: Batch,
}

impl Part {
    /// Adds the rows of a segment and of its ledger.
    fn segment(&mut self, segment: &Segment<'_>, judge: Judge<'_>, coverage: &mut Coverage) {
        let (scope, info) = (judge.scope, segment.info());
        let has_ledger = segment.has(BlockKind::Ledger);
        // rows of a ledger are sums: nobody knows of how many calls
        let missing = |rows| if has_ledger { u32::MAX } else { rows };
        let dict = match segment.dict() {
            Ok(dict) => dict,
            Err(error) => return coverage.hole(segment, missing(info.rows), &error),
        };
        if has_ledger && let Err(error) = self.counted.segment(segment, &dict, judge) {
            coverage.hole(segment, missing(0), &error);
        }
        if !scope.may_match(info) {
            return;
        }
        let core = &mut self.core;
        let mut read = || -> Result<_, systape_format::Error> {
            segment.core_into(&dict, core)?;
            Ok(if needs_time(judge, info) { Some(segment.time(&dict, core)?) } else { None })
        };
        match read() {
            Ok(time) => {
                let (filter, valued) = (scope.segment(&dict, info.segment), scope.valued());
                let (segment, time) = (Some(segment), time.as_ref());
                let rows = Rows { segment, dict: &dict, core, time, filter: &filter, valued };
                self.sums.add(info.segment, &rows, judge, (&mut self.known, &mut self.batch));
            }
            Err(error) => coverage.hole(segment, info.rows, &error),
        }
    }
}

impl Sums {
    /// Adds the rows of one segment.
    fn add(&mut self, number: u32, rows: &Rows<'_>, judge: Judge<'_>, (known, batch): (&mut Known, &mut Batch)) {
        let by_row = judge.plan.by_row();
        let seen = if by_row { self.by_row(rows, judge) } else { self.by_task(rows, judge, (known, batch)) };
        for (entry, _) in seen.into_iter().enumerate().filter(|(_, seen)| *seen) {
            let task = &rows.dict.tasks[entry];
            self.labels.add(judge.plan.whose_is(task), task, judge.plan, (number, entry as u32));
        }
    }

    /// Adds rows whose key depends on task and call alone. Returns which tasks have one.
    fn by_task(&mut self, rows: &Rows<'_>, judge: Judge<'_>, (known, batch): (&mut Known, &mut Batch)) -> Vec<bool> {
        let checked = rows.checked();
        let mut places = Places::new(rows.dict, rows.filter, checked);
        let mut known = known.segment(rows.dict, judge.plan);
        let exits = rows.exits(judge);
        let Core { call, task, dur, errno, state, .. } = rows.core;
        // every call goes through here: columns side by side need no bounds
        let columns = task.iter().zip(call).zip(dur).zip(errno).zip(state);
        for (row, ((((&t, &c), &dur), &errno), &state)) in columns.enumerate() {
            let c = c as usize;
            let Some(place) = places.of(t as usize, c, || known.place(t as usize, c, &mut self.groups)) else {
                continue;
            };
            if checked {
                if !rows.counts(row) {
                    continue;
                }
                places.saw(t as usize);
            }
            match state == CallState::Complete && errno == 0 {
                true if self.groups.len() < FEW => self.groups.at(place).add_ok(dur),
                true => batch.add(place, dur),
                false => add(self.groups.at(place), (state, dur, errno), exits[c]),
            }
        }
        batch.give(&mut self.groups);
        places.seen
    }

    /// Adds rows one by one by their key.
    fn by_row(&mut self, rows: &Rows<'_>, judge: Judge<'_>) -> Vec<bool> {
        let plan = judge.plan;
        let infos: Vec<Arc<CallInfo>> = rows.dict.calls.iter().map(|call| judge.book.get(*call)).collect();
        let mut names = Vec::new();
        let files = match rows.segment.filter(|_| plan.by_file()) {
            Some(segment) => call_files::of_rows(segment, rows.core, &infos, &mut names),
            // of calls that a checkpoint has open it is not known
            None => rows.core.call.iter().map(|call| unseen(&infos[*call as usize])).collect(),
        };
        let file = |number: u32| match number {
            NO_FILE => Value::None,
            UNKNOWN_FILE => Value::Unknown,
            number => {
                names.get((number - FD_FIRST) as usize).map_or(Value::Unknown, |name| Value::Text((**name).into()))
            }
        };
        let (mut bases, mut parts) = (Vec::<Key>::new(), FxHashMap::<(u32, RowPart), u32>::default());
        let mut places = Places::new(rows.dict, rows.filter, true);
        rows.each(|row, t, c| {
            let base = places.of(t, c, || {
                bases.push(plan.key(&rows.dict.tasks[t], rows.dict.calls[c]));
                bases.len() as u32 - 1
            });
            let Some(base) = base.filter(|_| rows.counts(row)) else { return };
            places.saw(t);
            let cpu = rows.time.and_then(|time| time.cpu.get(row)).copied().unwrap_or(CPU_NONE);
            let state = rows.core.state[row];
            let second = rows.time.and_then(|time| plan.second(state, *time.start.get(row)?));
            let part = plan.part((state, rows.core.errno[row]), files[row], cpu, second);
            let place = *parts.entry((base, part)).or_insert_with(|| {
                let mut key = bases[base as usize].clone();
                plan.row(&mut key, part, file);
                self.groups.place(&key)
            });
            let core = rows.core;
            add(self.groups.at(place), (core.state[row], core.dur[row], core.errno[row]), infos[c].is_exit);
        });
        places.seen
    }
}

/// Adds a call, except the child's return from a clone.
fn add(stats: &mut Stats, (state, dur, errno): (CallState, u64, u16), is_exit: bool) {
    if state != CallState::CloneChild {
        stats.add(state, dur, errno, is_exit);
    }
}

/// Whether some rows of the segment may lie outside `--time`, or CPUs matter: only then are times read.
fn needs_time(judge: Judge<'_>, info: &SegmentInfo) -> bool {
    let scope = judge.scope;
    let inside = scope.from <= info.start_min && info.end_max < scope.to;
    scope.filters().cpus.is_some() || judge.plan.has(By::Cpu) || judge.plan.by_time() || (scope.timed() && !inside)
}

/// A segment's columns and their filters.
struct Rows<'a> {
    /// None: not a segment, but calls that a checkpoint has open.
    segment: Option<&'a Segment<'a>>,
    dict: &'a Dict,
    core: &'a Core,
    time: Option<&'a Time>,
    filter: &'a SegmentFilter<'a>,
    /// There is `--duration` or `--failure`, which test each row.
    valued: bool,
}

impl Rows<'_> {
    /// Calls `each` with every row, its task and its call.
    #[inline]
    fn each(&self, mut each: impl FnMut(usize, usize, usize)) {
        for (row, (t, c)) in self.core.task.iter().zip(&self.core.call).enumerate() {
            each(row, *t as usize, *c as usize);
        }
    }

    fn exits(&self, judge: Judge<'_>) -> Vec<bool> {
        self.dict.calls.iter().map(|call| judge.book.get(*call).is_exit).collect()
    }

    /// Whether rows are tested one by one.
    fn checked(&self) -> bool {
        !self.core.unselected.is_empty() || self.valued || self.time.is_some()
    }

    /// Whether a row passes, given that its task and call do.
    #[inline]
    fn counts(&self, row: usize) -> bool {
        // rows that were kept for fd tracking only do not
        let kept = !self.core.unselected.is_empty() && self.core.unselected.get(row).copied().unwrap_or(false);
        !kept && ((!self.valued && self.time.is_none()) || self.passes(row))
    }

    fn passes(&self, row: usize) -> bool {
        self.filter.value(self.core, row) && self.time.is_none_or(|time| self.filter.time(time, row))
    }
}
