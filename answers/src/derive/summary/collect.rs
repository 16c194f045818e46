//! From segments to [`Stats`](super::stats::Stats) by the keys of a [`Plan`]. Each thread brings the calls of a segment together by
//! their sums, and adds them to the sums of all threads, in any order. Memory grows with the number of keys up to `--memory`, neither
//! with events nor with CPUs.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, Call, CallState, Core, Dict, FD_FIRST, SegmentInfo, Time};
use systape_format::reader::{Segment, Tape};

use super::batch::Batch;
use super::group::Sums;
use super::labels::Labels;
use super::ledger::{self, Knowledge, LedgerPart, RowJudge};
use super::places::Places;
use super::plan::{Plan, RowPart};
use super::shared::Shared;
use super::tally::One;
use systape_events::call_files::{self, NO_FILE, UNKNOWN_FILE, unseen};
use systape_events::calls::{CallBook, CallInfo};
use systape_events::filter::{Scope, SegmentFilter};
use systape_events::group::by::GroupKey;
use systape_events::group::value::{Key, Value};
use systape_events::load::OpenCalls;
use systape_events::scan::{Coverage, Scan};
use systape_events::values::spill::Store;

/// The segments that may store or count a call that passes, in order.
pub fn candidates(tape: &Tape, scope: &Scope<'_>) -> Vec<usize> {
    let segments = tape.segments().iter().enumerate();
    let wanted = segments.filter(|(at, info)| scope.may_match(info) || ledger::counts(tape, scope, *at));
    wanted.map(|(at, _)| at).collect()
}

/// Adds up the calls that pass `scope`, also those of the ledger.
pub fn collect(tape: &Tape, scope: &Scope<'_>, book: &CallBook<'_>, plan: &Plan) -> (Sums, Knowledge, Coverage) {
    one_of(1, tape, scope, book, plan)
}

/// Adds up the calls as one of `share` such sums that have the memory of this process together.
pub fn one_of(
    share: usize,
    tape: &Tape,
    scope: &Scope<'_>,
    book: &CallBook<'_>,
    plan: &Plan,
) -> (Sums, Knowledge, Coverage) {
    let threads = ledger::threads(tape, scope, plan);
    let judge = RowJudge { scope, book, plan, threads: threads.as_ref() };
    let mut shared = Shared::new(Store::of_process().as_ref(), share);
    let (mut parts, coverage) = Scan::of(tape, candidates(tape, scope))
        .fold(Part::default, |part, segment, coverage| part.segment(segment, judge, &shared, coverage));
    if let Some(open) = OpenCalls::read(tape) {
        let (filter, valued) = (scope.segment(&open.dict, u32::MAX), scope.valued());
        let (dict, core, time) = (&open.dict, &open.core, Some(&open.time));
        let rows = Rows { segment: None, dict, core, time, filter: &filter, valued };
        let mut part = Part::default();
        part.adder.add(u32::MAX, &rows, judge, &shared);
        parts.push(part);
    }
    let (mut labels, mut counted) = (Labels::default(), LedgerPart::default());
    for mut part in parts {
        labels.merge(&mut part.adder.labels);
        counted.merge(part.counted);
    }
    let (groups, mut of_counted, knowledge) = counted.knowledge(plan);
    shared.add(groups, plan);
    labels.merge(&mut of_counted);
    (Sums { groups: shared.into_parts(), labels }, knowledge, coverage)
}

/// The state of one thread.
#[derive(Debug, Default)]
struct Part {
    adder: Adder,
    counted: LedgerPart,
    /// Each segment is decoded into the buffers of the one before.
    core: Core,
}

impl Part {
    /// Adds the rows of a segment and of its ledger.
    fn segment(&mut self, segment: &Segment<'_>, judge: RowJudge<'_>, shared: &Shared, coverage: &mut Coverage) {
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
                self.adder.add(info.segment, &rows, judge, shared);
            }
            Err(error) => coverage.hole(segment, info.rows, &error),
        }
    }
}

/// Adds up the rows of segments.
#[derive(Debug, Default)]
struct Adder {
    labels: Labels,
    /// Empty between segments.
    batch: Batch,
    /// Memory for [`Places`].
    table: Vec<u32>,
}

impl Adder {
    /// Adds the rows of one segment.
    fn add(&mut self, number: u32, rows: &Rows<'_>, judge: RowJudge<'_>, shared: &Shared) {
        let plan = judge.plan;
        let seen = if plan.by_row() { self.by_row(rows, judge) } else { self.by_task(rows, judge) };
        // threads begin at different parts, so that none waits for another all the time
        self.batch.give(shared, number as usize, plan.place(GroupKey::Syscall).filter(|_| !plan.by_row()));
        for (entry, _) in seen.into_iter().enumerate().filter(|(_, seen)| *seen) {
            let task = &rows.dict.tasks[entry];
            self.labels.add(plan.whose_is(task), task, plan, (number, entry as u32));
        }
    }

    /// Takes rows whose key depends on task and call alone. Returns which tasks have one.
    fn by_task(&mut self, rows: &Rows<'_>, judge: RowJudge<'_>) -> Vec<bool> {
        let (checked, plan) = (rows.checked(), judge.plan);
        let Self { batch, table, .. } = self;
        let mut places = Places::new(rows.dict, rows.filter, checked, table);
        let mut bases = vec![None; rows.dict.tasks.len()];
        let by_call = plan.has(GroupKey::Syscall);
        // base and sum of each call when it was last looked up: often all tasks have one base
        let mut latest = vec![(u32::MAX, 0); rows.dict.calls.len()];
        let exits = rows.exits(judge);
        let Core { call, task, dur, errno, state, .. } = rows.core;
        // every call goes through here: columns side by side need no bounds
        let columns = task.iter().zip(call).zip(dur).zip(errno).zip(state);
        for (row, ((((&t, &c), &dur), &errno), &state)) in columns.enumerate() {
            let (t, c) = (t as usize, c as usize);
            let number = places.of(t, c, || {
                let base = *bases[t].get_or_insert_with(|| batch.base(plan.key(&rows.dict.tasks[t], Call::default())));
                if latest[c].0 != base {
                    latest[c] = (base, batch.sum(base, by_call.then(|| rows.dict.calls[c])));
                }
                latest[c].1
            });
            let Some(number) = number else { continue };
            if checked {
                if !rows.counts(row) {
                    continue;
                }
                places.saw(t);
            }
            match state == CallState::Complete && errno == 0 {
                true => batch.add_ok(number, dur),
                false => batch.add(number, One { state, dur, errno, timeless: exits[c] }),
            }
        }
        places.seen
    }

    /// Takes rows one by one by their key.
    fn by_row(&mut self, rows: &Rows<'_>, judge: RowJudge<'_>) -> Vec<bool> {
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
        let Self { batch, table, .. } = self;
        let mut places = Places::new(rows.dict, rows.filter, true, table);
        rows.each(|row, t, c| {
            let base = places.of(t, c, || {
                bases.push(plan.key(&rows.dict.tasks[t], rows.dict.calls[c]));
                bases.len() as u32 - 1
            });
            let Some(base) = base.filter(|_| rows.counts(row)) else { return };
            places.saw(t);
            let cpu = rows.time.and_then(|time| time.cpu.get(row)).copied().unwrap_or(CPU_NONE);
            let (state, dur, errno) = (rows.core.state[row], rows.core.dur[row], rows.core.errno[row]);
            let second = rows.time.and_then(|time| plan.second(state, *time.start.get(row)?));
            let part = plan.part((state, errno), files[row], cpu, second);
            let number = *parts.entry((base, part)).or_insert_with(|| {
                let mut key = bases[base as usize].clone();
                plan.row(&mut key, part, file);
                let base = batch.base(key);
                batch.sum(base, None)
            });
            match state == CallState::Complete && errno == 0 {
                true => batch.add_ok(number, dur),
                false => batch.add(number, One { state, dur, errno, timeless: infos[c].is_exit }),
            }
        });
        places.seen
    }
}

/// Whether some rows of the segment may lie outside `--time`, or CPUs matter: only then are times read.
fn needs_time(judge: RowJudge<'_>, info: &SegmentInfo) -> bool {
    let scope = judge.scope;
    let inside = scope.from <= info.start_min && info.end_max < scope.to;
    scope.filters().cpus.is_some()
        || judge.plan.has(GroupKey::Cpu)
        || judge.plan.by_time()
        || (scope.timed() && !inside)
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

    fn exits(&self, judge: RowJudge<'_>) -> Vec<bool> {
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
