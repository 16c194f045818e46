//! From segments to [`Stats`] per group and call. Each thread adds up the segments it takes; the sums are merged, in any order, at the
//! end and whenever a thread has many. Memory grows with the number of (group, call) pairs, neither with events nor with that number for
//! each CPU.

use std::sync::{Mutex, PoisonError};

use systape_format::header::BlockKind;
use systape_format::model::{CallState, Core, Dict, SegmentInfo, Time};
use systape_format::reader::{Segment, Tape};

use super::group::{GroupKey, Sums, group_key};
use super::ledger::{self, Counted, Judge, Knowledge};
use crate::calls::CallBook;
use crate::filter::{Scope, SegmentFilter};
use crate::load::OpenCalls;
use crate::scan::{Coverage, Scan};
use crate::summary::mode::SummaryMode;

/// Where the sum of a (task, call) of a segment is, as far as it was looked up.
const NOT_YET: u32 = u32::MAX;
/// Calls that do not pass.
const LEFT_OUT: u32 = u32::MAX - 1;
/// Tables of (task, call) larger than this are not made; a hash is asked for every row instead.
const TABLE_LIMIT: usize = 1 << 20;

/// Sums that threads keep to themselves, all together; about 1 KiB each with their histograms.
const OWN: usize = 32 << 10;
/// The least that each keeps: about what a segment of a busy machine has.
const OWN_LEAST: usize = 4 << 10;

/// The segments that may hold or count a call that passes, in order.
pub fn candidates(tape: &Tape, scope: &Scope<'_>) -> Vec<usize> {
    let counts = |at: usize, info| tape.segment(at).has(BlockKind::Ledger) && scope.may_count(info);
    let segments = tape.segments().iter().enumerate();
    segments.filter(|(at, info)| scope.may_match(info) || counts(*at, info)).map(|(at, _)| at).collect()
}

/// Adds up the calls that `scope` lets through, those of the ledger too.
pub fn collect(tape: &Tape, scope: &Scope<'_>, book: &CallBook<'_>, mode: SummaryMode) -> (Sums, Knowledge, Coverage) {
    let threads = ledger::threads(tape, scope, mode);
    let judge = Judge { scope, book, mode, threads: threads.as_ref() };
    let shared = Mutex::new(Sums::default());
    let own = (OWN / rayon::current_num_threads().max(1)).max(OWN_LEAST);
    let share = |sums: Sums| shared.lock().unwrap_or_else(PoisonError::into_inner).merge(sums);
    let (parts, coverage) = Scan::of(tape, candidates(tape, scope)).fold(Part::default, |part, segment, coverage| {
        part.segment(segment, judge, coverage);
        if part.sums.stats.len() > own {
            share(std::mem::take(&mut part.sums));
        }
    });
    let mut all = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut counted = Counted::default();
    if let Some(open) = OpenCalls::read(tape) {
        all.add(u32::MAX, &open.dict, &open.core, Some(&open.time), judge);
    }
    for part in parts {
        all.merge(part.sums);
        counted.merge(part.counted);
    }
    let (sums, knowledge) = counted.knowledge();
    all.merge(sums);
    (all, knowledge, coverage)
}

/// What one thread adds up.
#[derive(Debug, Default)]
struct Part {
    sums: Sums,
    counted: Counted,
    /// Each segment is decoded into the memory of the one before.
    core: Core,
}

impl Part {
    /// Adds what a segment and its ledger hold.
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
            Ok(if needs_time(scope, info) { Some(segment.time(&dict, core)?) } else { None })
        };
        match read() {
            Ok(time) => self.sums.add(info.segment, &dict, core, time.as_ref(), judge),
            Err(error) => coverage.hole(segment, info.rows, &error),
        }
    }
}

impl Sums {
    /// Adds the rows of one segment.
    fn add(&mut self, number: u32, dict: &Dict, core: &Core, time: Option<&Time>, judge: Judge<'_>) {
        let Judge { scope, book, mode, .. } = judge;
        let filter = scope.segment(dict);
        let groups: Vec<GroupKey> = dict.tasks.iter().map(|task| group_key(task, mode)).collect();
        let rows = Rows { dict, core, time, filter: &filter, groups: &groups, valued: scope.valued() };
        let mut seen = vec![false; dict.tasks.len()];
        self.rows(&rows, book, &mut seen);
        for (entry, task) in dict.tasks.iter().enumerate().filter(|(entry, _)| seen[*entry]) {
            self.label(groups[entry], task, mode, (number, entry as u32));
        }
    }

    fn rows(&mut self, rows: &Rows<'_>, book: &CallBook<'_>, seen: &mut [bool]) {
        let calls = rows.dict.calls.len();
        let size = rows.dict.tasks.len().saturating_mul(calls);
        let mut table = vec![NOT_YET; if size <= TABLE_LIMIT { size } else { 0 }];
        let exits: Vec<bool> = rows.dict.calls.iter().map(|call| book.get(*call).is_exit).collect();
        let Core { call, task, dur, errno, state, unselected, .. } = rows.core;
        let (kept, checked) = (!unselected.is_empty(), rows.checked());
        let columns = task.iter().zip(call).zip(dur).zip(errno).zip(state);
        for (row, ((((&t, &c), &dur), &errno), &state)) in columns.enumerate() {
            let (t, c) = (t as usize, c as usize);
            let slot = match table.get(t * calls + c) {
                Some(slot) if *slot != NOT_YET => *slot,
                known => {
                    let place = known.is_some();
                    let slot = self.slot(rows, t, c, seen);
                    if place {
                        table[t * calls + c] = slot;
                    }
                    slot
                }
            };
            if slot == LEFT_OUT || (kept && rows.drops(row)) || (checked && !rows.passes(row)) {
                continue;
            }
            let stats = &mut self.stats[slot as usize].1;
            if state == CallState::Complete && errno == 0 {
                stats.add_ok(dur);
            } else if state != CallState::CloneChild {
                stats.add(state, dur, errno, exits[c]);
            }
        }
    }

    /// The place of the sum of task `t` and call `c` of a segment.
    fn slot(&mut self, rows: &Rows<'_>, t: usize, c: usize, seen: &mut [bool]) -> u32 {
        if !rows.filter.tasks[t] || !rows.filter.calls[c] {
            return LEFT_OUT;
        }
        seen[t] = true;
        self.place((rows.groups[t], rows.dict.calls[c]))
    }
}

/// Whether some rows of the segment may lie outside `--time`, or CPUs matter: only then are times read.
fn needs_time(scope: &Scope<'_>, info: &SegmentInfo) -> bool {
    let inside = scope.from <= info.start_min && info.end_max < scope.to;
    scope.filters().cpus.is_some() || (scope.timed() && !inside)
}

/// A segment's columns and what is asked of them.
struct Rows<'a> {
    dict: &'a Dict,
    core: &'a Core,
    time: Option<&'a Time>,
    filter: &'a SegmentFilter<'a>,
    groups: &'a [GroupKey],
    /// `--duration` or `--failure` look at each row.
    valued: bool,
}

impl Rows<'_> {
    fn checked(&self) -> bool {
        self.valued || self.time.is_some()
    }

    fn passes(&self, row: usize) -> bool {
        self.filter.value(self.core, row) && self.time.is_none_or(|time| self.filter.time(time, row))
    }

    /// Rows that were kept for fd tracking only do not count.
    fn drops(&self, row: usize) -> bool {
        self.core.unselected.get(row).copied().unwrap_or(false)
    }
}
