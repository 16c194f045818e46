//! Passes the rows of looks of a time, each once, and says what looks that time has.

use std::collections::BTreeMap;

use systape_events::question::Question;
use systape_events::scan::{Coverage, Scan};
use systape_events::values::words::escaped;
use systape_format::families::{LOOK_IDLE, LOOK_SECOND, LOOK_STAY};
use systape_format::header::BlockKind;
use systape_format::model::{Sample, SegmentInfo, StackOf, Task};
use systape_format::reader::Tape;
use systape_format::table::TableDef;
use systape_format::tables::TableRows;

use super::presence::SeenStay;
use super::stored::{LookColumn, StoredStay, rows};

/// A row of a stay comes this long after its looks, at most: it is about 320 s, and stored at the next look.
const LATE: u64 = 640_000_000_000;
/// The tables that looks are stored in.
const TABLES: [&TableDef; 3] = [&LOOK_STAY, &LOOK_SECOND, &LOOK_IDLE];

/// A sample of a CPU: it stands for its period.
#[derive(Clone, Copy, Debug)]
pub struct RunSample<'a> {
    /// Entry of the thread in its segment, and the thread.
    pub task: (usize, &'a Task),
    /// When it was.
    pub ts: u64,
    /// The CPU that was sampled.
    pub cpu: u32,
    /// The kernel ran, for the thread or for an interrupt.
    pub kernel: bool,
    /// The weight of the sample, as that of a stay.
    pub seen: SeenStay,
}

/// Something that rows of looks are passed to; `segment` tells entries of threads apart.
pub trait TakesLooks {
    /// Takes a row of a stay.
    fn stay(&mut self, row: &StoredStay<'_>, segment: usize);

    /// Takes a sample of what runs; most questions are about waits.
    fn sample(&mut self, sample: &RunSample<'_>, segment: usize) {
        let _ = (sample, segment);
    }
}

/// The looks that the time asked for has.
#[derive(Debug, Default)]
pub struct Covered {
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

/// The time that `question` asks for, as far as it was recorded.
pub fn asked(question: &Question<'_>) -> (u64, u64) {
    let tape = question.tape;
    (question.scope.from.max(tape.session().window_open), question.scope.to.min(tape.complete_until()))
}

/// The parts of `span` that are in none of `without`, which are in order.
pub fn parts((from, to): (u64, u64), without: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut parts, mut begin) = (Vec::new(), from);
    for (first, last) in without.iter().filter(|(first, last)| *last >= from && *first <= to) {
        if *first > begin {
            parts.push((begin, first - 1));
        }
        begin = begin.max(last.saturating_add(1));
    }
    if begin <= to {
        parts.push((begin, to));
    }
    parts
}

/// Passes the rows that `question` asks for, and that lie in `span`, to `sink`.
pub fn walk(question: &Question<'_>, span: (u64, u64), sink: &mut impl TakesLooks) -> (Covered, Coverage) {
    let mut covered = Covered::default();
    let coverage = walk_part(question, span, sink, &mut covered);
    (covered, coverage)
}

/// Does the same for one of several parts of the time.
pub(super) fn walk_part(
    question: &Question<'_>,
    span: (u64, u64),
    sink: &mut impl TakesLooks,
    covered: &mut Covered,
) -> Coverage {
    let (tape, scope) = (question.tape, &question.scope);
    let period = period(tape);
    let selects = scope.filters().selects;
    segments(tape, span).walk(
        "looks",
        |segment, dict| {
            let samples = if segment.has(BlockKind::Samples) { segment.samples(dict)? } else { Vec::new() };
            let tables = if segment.has(BlockKind::Tables) { segment.tables(dict)? } else { Vec::new() };
            let is_wanted = |table: &TableRows| TABLES.iter().any(|def| def.name == table.def.name);
            Ok((tables.into_iter().filter(is_wanted).collect::<Vec<_>>(), samples))
        },
        |at, dict, (tables, samples): (Vec<TableRows>, Vec<Sample>)| {
            let passes: Vec<bool> = dict.tasks.iter().map(|task| scope.task(task)).collect();
            let unknown = scope.blamed(None, 0);
            let call = |row: &StoredStay<'_>| !selects || row.number().is_some_and(|call| scope.call(&call));
            for table in &tables {
                match &*table.def.name {
                    name if name == LOOK_STAY.name => rows(table, dict, span)
                        .filter(|row| row.task.map_or(unknown, |(task, _)| passes[task]) && call(row))
                        .for_each(|row| sink.stay(&row, at)),
                    name if name == LOOK_SECOND.name => covered.add_looks(table, span),
                    _ => covered.add_idle(table, span),
                }
            }
            // what runs is in no call that is known
            let inside = |sample: &&Sample| (span.0..=span.1).contains(&sample.ts) && period > 0 && !selects;
            for sample in samples.iter().filter(inside) {
                let task = sample.task as usize;
                let Some(of) = dict.tasks.get(task).filter(|_| passes[task]) else { continue };
                let look = sample.ts.saturating_sub(tape.session().window_open) / period;
                let seen = SeenStay { look, looks: 1, interval: period, seen: 0, first: true, lasted: 0 };
                let Sample { ts, cpu, kernel, .. } = *sample;
                sink.sample(&RunSample { task: (task, of), ts, cpu, kernel, seen }, at);
            }
        },
    )
}

/// Time between two samples of a CPU, ns; 0: there are none.
pub(super) fn period(tape: &Tape) -> u64 {
    1_000_000_000_u64.checked_div(u64::from(tape.session().stacks.frequency)).unwrap_or(0)
}

/// What the looks of a tape were, in words; None: it has none.
pub fn looks_of(tape: &Tape) -> Option<String> {
    let mut covered = Covered::default();
    let span = (tape.session().window_open, tape.complete_until());
    let coverage = Scan::tables(tape, ("looks", &[&LOOK_SECOND]), |_, _, table| covered.add_looks(table, span));
    // what cannot be read is said where it is counted
    drop(coverage);
    covered.intervals.is_some().then(|| covered.line())
}

/// The segments that may have rows about `span`.
fn segments(tape: &Tape, (from, to): (u64, u64)) -> Scan<'_> {
    let wanted = |(_, info): &(usize, &SegmentInfo)| info.touches(from, to.saturating_add(LATE));
    Scan::of(tape, tape.segments().iter().enumerate().filter(wanted).map(|(at, _)| at).collect())
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
            let inside = (*ts).min(to).saturating_sub(begin.max(from));
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

    /// Time that the looks stand for, ns.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Threads on average, of a time of all together.
    pub fn threads(&self, time: f64) -> f64 {
        if self.time > 0.0 { time / self.time } else { 0.0 }
    }

    /// What the looks were.
    pub fn line(&self) -> String {
        let Some((low, high)) = self.intervals else { return "no look fell into this time".to_owned() };
        let ms = |ns: u64| format!("{}", ns as f64 / 1e6);
        let interval = if low == high { ms(low) } else { format!("{} to {}", ms(low), ms(high)) };
        let part = 100.0 * self.cost as f64 / self.span.max(1) as f64;
        format!("{} looks, one in each {interval} ms, at a cost of {part:.1} % of a CPU", self.looks)
    }

    /// What the looks lack.
    pub fn notes(&self, tape: &Tape) -> Vec<String> {
        let mut notes = Vec::new();
        let mut more = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        more(self.skipped, "intervals without a look: record had no CPU in time");
        more(self.uncopied, "stays ended before it was read what they wait for: their files and locks are not known");
        if !tape.session().stacks.on.contains(&StackOf::Sample) {
            notes.push("what ran on CPUs was not sampled".to_owned());
        }
        notes
    }

    /// Threads in calls that wait for work, which have no rows; `all`: of all threads, not some.
    pub fn counted(&self, all: bool) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_parts_the_time() {
        assert_eq!(parts((10, 100), &[]), [(10, 100)]);
        assert_eq!(parts((10, 100), &[(20, 30), (50, 60)]), [(10, 19), (31, 49), (61, 100)]);
        assert_eq!(parts((10, 100), &[(0, 15), (15, 20), (90, 200)]), [(21, 89)]);
        assert_eq!(parts((10, 100), &[(0, 200)]), []);
        assert_eq!(parts((10, 100), &[(200, 300)]), [(10, 100)]);
    }
}
