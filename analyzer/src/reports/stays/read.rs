//! Rows of looks, added up by keys, and the looks themselves, by which sums become averages.

use std::collections::BTreeMap;
use std::sync::Arc;

use systape_abi::{Abi, describe_name, rest};
use systape_answers::derive::presence::{Presence, SeenStay};
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::plan::Plan;
use systape_events::group::by::GroupKey;
use systape_events::group::value::{Key, Value};
use systape_events::group::{Add, Groups};
use systape_events::question::Question;
use systape_events::scan::{Coverage, Scan};
use systape_events::values::words::escaped;
use systape_format::header::BlockKind;
use systape_format::model::{Call, Dict, Sample, Task};
use systape_format::reader::Tape;
use systape_format::tables::TableRows;

use super::{LOOK_SECOND, LOOK_STAY, TABLES};

/// A row of a stay comes this long after its looks, at most: it is about 320 s, and stored at the next look.
const LATE: u64 = 640_000_000_000;
/// State of a thread on a CPU, and of one that waits for one.
pub(super) const RUNNING: &str = "RUN";
const QUEUED: &str = "RQ";

/// A word as a key.
pub(super) fn word(word: &str) -> Value {
    Value::Text(Arc::from(word.as_bytes()))
}

/// A sum by keys.
#[derive(Debug, Default)]
pub(super) struct StaySum(pub Presence);

impl Add for StaySum {
    fn add(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

/// The looks that the time asked for has.
#[derive(Debug, Default)]
pub(super) struct Covered {
    looks: u64,
    /// Looks times their intervals, ns.
    time: f64,
    skipped: u64,
    cost: u64,
    span: u64,
    uncopied: u64,
    /// The shortest interval and the longest.
    intervals: Option<(u64, u64)>,
    /// Threads in calls that wait for work, of all looks, by call; and the looks.
    idle: BTreeMap<Vec<u8>, u64>,
    idle_looks: u64,
}

/// Sums by keys and by whether the threads are at rest, which is the last value of each key.
#[derive(Debug, Default)]
pub(super) struct StaySums {
    pub groups: Groups<StaySum>,
    pub labels: Labels,
    pub covered: Covered,
}

/// One row of `look:stay`.
#[derive(Debug)]
pub(super) struct StoredStay<'a> {
    pub task: Option<(usize, &'a Task)>,
    pub state: &'static str,
    /// Name of the call, and its ABI; None: in none.
    pub call: Option<(&'a [u8], Abi)>,
    pub file: Option<&'a [u8]>,
    pub path: Option<&'a [u8]>,
    pub lock: Option<u64>,
    pub owner: Option<u64>,
    /// Whether file, path and owner were read: else they are not known.
    pub read: bool,
    pub seen: SeenStay,
    /// Time of its first look.
    pub from: u64,
}

/// A column of a table of looks, by its name.
struct LookColumn<'a> {
    table: &'a TableRows,
    /// Values of it; empty: the tape has no such column.
    values: &'a [u64],
    /// Place of it among the table's.
    at: usize,
}

impl<'a> LookColumn<'a> {
    fn new(table: &'a TableRows, name: &str) -> Self {
        let at = table.def.columns.iter().position(|column| column.name == name).unwrap_or(0);
        Self { table, values: table.column(name).unwrap_or_default(), at }
    }

    fn number(&self, row: usize) -> u64 {
        self.values.get(row).copied().unwrap_or(0)
    }

    fn text(&self, row: usize) -> Option<&'a [u8]> {
        self.table.string(self.number(row))
    }

    /// A number that may be unknown.
    fn known(&self, row: usize) -> Option<u64> {
        (!self.values.is_empty() && !self.table.is_unread(row, self.at)).then(|| self.number(row))
    }
}

/// The rows of stays of a segment that have looks in `(from, to)`, of these no other.
pub(super) fn rows<'a>(
    table: &'a TableRows,
    dict: &'a Dict,
    (from, to): (u64, u64),
) -> impl Iterator<Item = StoredStay<'a>> + 'a {
    let of = |name| LookColumn::new(table, name);
    let [agos, spans, counts, firsts, numbers, intervals] =
        ["ago", "seen", "looks", "first", "look", "interval"].map(of);
    let [sinces, states, calls, abis, tasks] = ["since", "state", "call", "abi", "task"].map(of);
    let [files, paths, locks, owners, reads] = ["file", "path", "lock", "owner", "read"].map(of);
    table.ts.iter().enumerate().filter_map(move |(row, ts)| {
        let last = ts.saturating_sub(agos.number(row));
        let (mut seen, begin) = (spans.number(row), last.saturating_sub(spans.number(row)));
        let (mut looks, mut first) = (counts.number(row), firsts.number(row) != 0);
        if last < from || begin > to || looks == 0 {
            return None;
        }
        let since = sinces.known(row);
        let (cut_from, cut_to) = (begin.max(from), last.min(to));
        if (cut_from, cut_to) != (begin, last) {
            // looks are spread over the row's time
            let part = (cut_to - cut_from) as f64 / seen.max(1) as f64;
            looks = ((looks as f64 * part).round() as u64).clamp(1, looks);
            seen = cut_to - cut_from;
            first &= cut_from == begin;
        }
        let state = match states.text(row) {
            Some(b"D") => "D",
            Some(b"S") => "S",
            Some(b"R") => QUEUED,
            _ => "?",
        };
        let lasted = since.unwrap_or(0).saturating_add(cut_to - begin);
        let abi = abis.text(row).and_then(abi);
        let task = usize::try_from(tasks.number(row)).ok().and_then(|task| task.checked_sub(1));
        Some(StoredStay {
            task: task.and_then(|at| Some((at, dict.tasks.get(at)?))),
            state,
            call: calls.text(row).zip(abi),
            file: files.text(row),
            path: paths.text(row),
            lock: locks.known(row),
            owner: owners.known(row),
            // a tape without the column is none of ours
            read: reads.number(row) != 0,
            seen: SeenStay { look: numbers.number(row), looks, interval: intervals.number(row), seen, first, lasted },
            from: cut_from,
        })
    })
}

fn abi(name: &[u8]) -> Option<Abi> {
    [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64].into_iter().find(|abi| abi.as_str().as_bytes() == name)
}

impl StoredStay<'_> {
    /// Whether the thread waits for work, as far as the call and its file say.
    pub(super) fn rests(&self) -> bool {
        let Some((name, _)) = self.call.filter(|_| self.state == "S") else { return false };
        let Ok(name) = std::str::from_utf8(name) else { return false };
        let takes = describe_name(name).is_some_and(|desc| rest::takes(name, desc.io()));
        // a futex with a row is a lock
        !name.starts_with("futex") && rest::at_rest(name, takes, self.file)
    }

    /// What it waits for, in words: its file, its path, or its lock.
    pub(super) fn on(&self) -> Option<Vec<u8>> {
        let lock = || {
            let pid = self.task.map_or(0, |(_, task)| task.pid);
            self.lock.map(|lock| format!("[lock {lock:#x} of {pid}]").into_bytes())
        };
        self.file.or(self.path).map(<[u8]>::to_vec).or_else(lock)
    }

    fn call_value(&self) -> Value {
        match self.call {
            Some((name, abi)) => {
                let number = std::str::from_utf8(name).ok().and_then(|name| systape_abi::number(abi, name));
                number.map_or_else(|| Value::Text(name.into()), |nr| Value::Call(Call { abi: abi as u8, nr }))
            }
            None => Value::None,
        }
    }
}

impl StaySums {
    /// Reads the looks of the time that `question` asks for.
    pub(super) fn read(question: &Question<'_>, plan: &Plan) -> (Self, Coverage) {
        let (tape, scope) = (question.tape, &question.scope);
        let mut sums = Self::default();
        let span = (scope.from.max(tape.session().window_open), scope.to.min(tape.complete_until()));
        let period = 1_000_000_000_u64.checked_div(u64::from(tape.session().stacks.frequency)).unwrap_or(0);
        let coverage = segments(question).walk(
            "looks",
            |segment, dict| {
                let samples = if segment.has(BlockKind::Samples) { segment.samples(dict)? } else { Vec::new() };
                let tables = if segment.has(BlockKind::Tables) { segment.tables(dict)? } else { Vec::new() };
                let is_wanted = |table: &TableRows| TABLES.iter().any(|def| def.name == table.def.name);
                Ok((tables.into_iter().filter(is_wanted).collect::<Vec<_>>(), samples))
            },
            |at, dict, (tables, samples): (Vec<TableRows>, Vec<Sample>)| {
                let passes: Vec<bool> = dict.tasks.iter().map(|task| scope.task(task)).collect();
                for table in &tables {
                    match &*table.def.name {
                        name if name == LOOK_STAY.name => {
                            let unknown = scope.blamed(None, 0);
                            let passing = rows(table, dict, span)
                                .filter(|row| row.task.map_or(unknown, |(task, _)| passes[task]));
                            passing.for_each(|row| sums.add_stay(&row, plan, at));
                        }
                        name if name == LOOK_SECOND.name => sums.covered.add_looks(table, span),
                        _ => sums.covered.add_idle(table, span),
                    }
                }
                let inside = |sample: &&Sample| (span.0..=span.1).contains(&sample.ts) && period > 0;
                for sample in samples.iter().filter(inside) {
                    let task = dict.tasks.get(sample.task as usize).map(|task| (sample.task as usize, task));
                    if passes.get(sample.task as usize) == Some(&true) {
                        sums.add_sample(sample, task, (slot(sample.ts, tape, period), period), (plan, at));
                    }
                }
            },
        );
        (sums, coverage)
    }

    fn add_stay(&mut self, row: &StoredStay<'_>, plan: &Plan, segment: usize) {
        let none = if row.read { Value::None } else { Value::Unknown };
        let on = || row.on().map_or(none.clone(), |on| Value::Text(on.into()));
        let value = |by: GroupKey| match by {
            GroupKey::State => Some(word(row.state)),
            GroupKey::Syscall => Some(row.call_value()),
            GroupKey::File => Some(on()),
            _ => None,
        };
        let key = self.key(plan, row.task, segment, value, row.rests());
        self.groups.of(&key).0.add(&row.seen);
    }

    fn add_sample(
        &mut self,
        sample: &Sample,
        task: Option<(usize, &Task)>,
        (slot, period): (u64, u64),
        (plan, segment): (&Plan, usize),
    ) {
        let value = |by: GroupKey| match by {
            GroupKey::State => Some(word(RUNNING)),
            GroupKey::Syscall => Some(word(if sample.kernel { "[kernel]" } else { "[user]" })),
            GroupKey::File => Some(Value::None),
            _ => None,
        };
        let key = self.key(plan, task, segment, value, false);
        let seen = SeenStay { look: slot, looks: 1, interval: period, seen: 0, first: true, lasted: 0 };
        self.groups.of(&key).0.add(&seen);
    }

    /// The key of a thread: `value` has those that are not the task's.
    fn key(
        &mut self,
        plan: &Plan,
        task: Option<(usize, &Task)>,
        segment: usize,
        value: impl Fn(GroupKey) -> Option<Value>,
        rest: bool,
    ) -> Key {
        let unknown = || plan.keys().iter().map(|_| Value::Unknown).collect();
        let mut key: Key = task.map_or_else(unknown, |(_, task)| plan.key(task, Call::default()));
        for (by, part) in plan.keys().iter().zip(&mut key) {
            if let Some(value) = value(*by) {
                *part = value;
            }
        }
        if let Some((at, task)) = task {
            self.labels.add(plan.whose_is(task), task, plan, (segment as u32, at as u32));
        }
        key.push(Value::Number(rest.into()));
        key
    }
}

/// What the looks of a tape were, in words; None: it has none.
pub(crate) fn looks_of(tape: &Tape) -> Option<String> {
    let mut covered = Covered::default();
    let span = (tape.session().window_open, tape.complete_until());
    let coverage = Scan::tables(tape, ("looks", &[&LOOK_SECOND]), |_, _, table| covered.add_looks(table, span));
    // what cannot be read is said where it is counted
    drop(coverage);
    covered.intervals.is_some().then(|| covered.line())
}

/// The segments that may have rows about the time asked for.
pub(super) fn segments<'t>(question: &Question<'t>) -> Scan<'t> {
    let (tape, scope) = (question.tape, &question.scope);
    let wanted = |(_, info): &(usize, &systape_format::model::SegmentInfo)| {
        info.touches(scope.from, scope.to.saturating_add(LATE))
    };
    Scan::of(tape, tape.segments().iter().enumerate().filter(wanted).map(|(at, _)| at).collect())
}

/// The number of the interval of a sample.
fn slot(ts: u64, tape: &Tape, period: u64) -> u64 {
    ts.saturating_sub(tape.session().window_open) / period.max(1)
}

impl Covered {
    fn add_looks(&mut self, table: &TableRows, (from, to): (u64, u64)) {
        for (row, ts) in table.ts.iter().enumerate() {
            // a row a second
            let number = |name: &str| LookColumn::new(table, name).number(row);
            let (span, looks, interval) = (number("span"), number("looks"), number("interval"));
            let begin = ts.saturating_sub(span);
            if *ts < from || begin > to || looks == 0 {
                continue;
            }
            let inside = (*ts).min(to) - begin.max(from);
            let part = if inside >= span { 1.0 } else { inside as f64 / span.max(1) as f64 };
            let of = |count: u64| (count as f64 * part).round() as u64;
            self.looks = self.looks.saturating_add(of(looks));
            self.time += looks as f64 * part * interval as f64;
            self.span = self.span.saturating_add(inside.min(span));
            for (sum, name) in
                [(&mut self.skipped, "skipped"), (&mut self.cost, "cost"), (&mut self.uncopied, "uncopied")]
            {
                *sum = sum.saturating_add(of(number(name)));
            }
            let (low, high) = self.intervals.unwrap_or((interval, interval));
            self.intervals = Some((low.min(interval), high.max(interval)));
        }
    }

    fn add_idle(&mut self, table: &TableRows, (from, to): (u64, u64)) {
        let [calls, counts, looks] = ["call", "threads", "looks"].map(|name| LookColumn::new(table, name));
        let mut last = None;
        for (row, ts) in table.ts.iter().enumerate().filter(|(_, ts)| (from..=to).contains(*ts)) {
            let Some(call) = calls.text(row) else { continue };
            let threads = self.idle.entry(call.to_vec()).or_default();
            *threads = threads.saturating_add(counts.number(row));
            if last != Some(*ts) {
                self.idle_looks = self.idle_looks.saturating_add(looks.number(row));
                last = Some(*ts);
            }
        }
    }

    /// Threads on average, of a time of all together.
    pub(super) fn threads(&self, time: f64) -> f64 {
        if self.time > 0.0 { time / self.time } else { 0.0 }
    }

    /// What the looks were.
    pub(super) fn line(&self) -> String {
        let Some((low, high)) = self.intervals else { return "no look fell into this time".to_owned() };
        let ms = |ns: u64| format!("{}", ns as f64 / 1e6);
        let interval = if low == high { ms(low) } else { format!("{} to {}", ms(low), ms(high)) };
        let part = 100.0 * self.cost as f64 / self.span.max(1) as f64;
        format!("{} looks, one in each {interval} ms, at a cost of {part:.1} % of a CPU", self.looks)
    }

    /// What the looks lack.
    pub(super) fn notes(&self, tape: &Tape) -> Vec<String> {
        let mut notes = Vec::new();
        let mut more = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        more(self.skipped, "intervals without a look: record had no CPU in time");
        more(self.uncopied, "stays ended before it was read what they wait for: their files and locks are not known");
        if !tape.session().stacks.on.contains(&systape_format::model::StackOf::Sample) {
            notes.push("what ran on CPUs was not sampled".to_owned());
        }
        notes
    }

    /// Threads in calls that wait for work, which have no rows; `all`: of all threads, not some.
    pub(super) fn counted(&self, all: bool) -> Option<String> {
        if self.idle.is_empty() || !all {
            return None;
        }
        let average = |threads: u64| threads as f64 / self.idle_looks.max(1) as f64;
        let mut calls: Vec<(&Vec<u8>, &u64)> = self.idle.iter().collect();
        calls.sort_by_key(|(call, threads)| (std::cmp::Reverse(**threads), *call));
        let each: Vec<String> = calls
            .iter()
            .take(6)
            .map(|(call, threads)| format!("{} {:.1}", escaped(call), average(**threads)))
            .collect();
        let sum = self.idle.values().fold(0_u64, |sum, threads| sum.saturating_add(*threads));
        Some(format!("totals only, as they wait for work: {:.1} threads: {}", average(sum), each.join(", ")))
    }
}
