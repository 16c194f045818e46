//! What differs between two tapes besides their calls: time on CPUs, waiting and asleep, I/Os, faults, programs, exits.

use super::rows::DiffUnit;
use super::side::Side;
use systape_answers::derive::chance::{Common, KeySample};
use systape_answers::derive::measures::{self, KINDS, Kind, Measure};
use systape_answers::render::cell::Cell;
use systape_answers::render::mark;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_events::values::words::span;

systape_format::tables! {
    /// One row for each thing that is measured of both tapes besides calls, behind the others, in JSON. Not of a question about some calls only (`-e`, `-P`,
    /// `--failure`, `--duration`). Times are of all threads together: two threads spend two seconds in one.
    pub WHOLE = "diff_measures" {
        measure: Word key "`cpu-user` on a CPU in its own code; `cpu-calls` on a CPU in calls; `cpu-other` on a CPU in what is not known, or the kernel's threads; `cpu-wait` ready, and without a CPU; `throttled` ready, and kept from a CPU by a quota (older tapes: in `cpu-wait`); `asleep-disk` in uninterruptible sleep (D); `stopped`; `asleep-futex`, `asleep-poll`, `asleep-wait`, `asleep-timer`, `asleep-calls` asleep in such calls or others; `asleep-unknown`; `disk-reads`, `disk-read-bytes`, `disk-writes`, `disk-write-bytes`; `page-faults`; `major-faults`; `programs` started; `exits` of processes"
        unit: Word "`ns`, `count` or `bytes`"
        before ? OfKnown: Count "of the first tape"
        after ? OfKnown: Count "of the second"
        diff ? OfKnown: Int "how much more the second has; null: no number of JSON holds it"
        most_before ? OfKnown: Duration "the most that one thread has of it; null: it is no time"
        most_after ? OfKnown: Duration "the same of the second"
        changed: Flag "it differs by more than chance explains; null: not known, because something is missing of a tape"
    }
}

/// One measure of both tapes.
#[derive(Debug)]
pub(super) struct Line {
    kind: &'static Kind,
    before: Measure,
    after: Measure,
    /// Whether it changed by more than chance.
    pub changed: bool,
    /// Something that it is made from is missing.
    short: bool,
}

/// Lines of what both tapes have, in the order of [`KINDS`].
pub(super) fn lines(sides: [&Side; 2], scale: f64) -> Vec<Line> {
    let [Some(before), Some(after)] = sides.map(|side| side.whole.as_ref()) else { return Vec::new() };
    // there is no other key that says how much slower one of the machines is
    let common = Common::of(&[], scale);
    let line = |at: usize| {
        let kind = &KINDS[at];
        let (before, after) = (before.0[at]?, after.0[at]?);
        let short = sides.iter().any(|side| side.is_short(kind.family));
        let changed = differs(&common, kind, [before, after]);
        Some(Line { kind, before, after, changed, short })
    };
    (0..KINDS.len()).filter_map(line).filter(|line| line.before.sum > 0 || line.after.sum > 0).collect()
}

/// Whether a measure differs by more than chance.
fn differs(common: &Common, kind: &Kind, pair: [Measure; 2]) -> bool {
    if kind.unit == measures::Unit::Count {
        let count = |measure: Measure| KeySample { calls: measure.sum, ..KeySample::default() };
        return common.changed(&pair.map(count)).calls;
    }
    // of time on a CPU the stretches are cut by chance, and their sum is not
    let computes = kind.name.starts_with("cpu-") && kind.name != "cpu-wait";
    let sample = |measure: Measure| {
        let count = if computes { measure.count.max(EVEN) } else { measure.count };
        let even = (measure.sum as f64).powi(2) / count.max(1) as f64;
        KeySample { calls: count, errors: 0, time: measure.sum, squares: if computes { even } else { measure.squares } }
    };
    let samples = pair.map(sample);
    common.changed(&samples).time
}

/// As many equal parts as time on a CPU is taken to have at least.
const EVEN: u64 = 1000;

impl Line {
    /// How much more one thread spends so in the second tape, ns, in the unit of both.
    fn weight(&self, unit: DiffUnit) -> u64 {
        unit.time(1, self.after.most).abs_diff(unit.time(0, self.before.most))
    }

    /// `waits 3.10 s more for a CPU (20.1 ms before, 3.12 s after)`.
    fn sentence(&self, unit: DiffUnit, each: &str) -> String {
        let [a, b] = [unit.time(0, self.before.sum), unit.time(1, self.after.sum)];
        let word = if b >= a { "more" } else { "less" };
        let about = mark::about(self.short);
        let Kind { verb, of, .. } = self.kind;
        let of = if of.is_empty() { String::new() } else { format!(" {of}") };
        let (more, a, b) = (span(b.abs_diff(a)), span(a), span(b));
        format!("{verb} {about}{more} {word}{each}{of} ({a} before, {b} after)")
    }

    /// Its cells in text.
    fn cells(&self, unit: DiffUnit) -> Vec<String> {
        let about = mark::about(self.short);
        let mut cells = vec![self.kind.heading.to_owned()];
        if self.kind.unit == measures::Unit::Ns {
            let [a, b] = [unit.time(0, self.before.sum), unit.time(1, self.after.sum)];
            let sign = if b > a { "+" } else { "-" };
            cells.extend([millis(a, about), millis(b, about)]);
            cells.push(if a == b { "0".to_owned() } else { millis(b.abs_diff(a), &format!("{about}{sign}")) });
        } else {
            let (a, b) = (self.before.sum, self.after.sum);
            cells.extend([unit.count(0, a), unit.count(1, b)].map(|count| format!("{about}{count}")));
            cells.push(format!("{about}{}", unit.more(a, b)));
        }
        cells
    }

    /// Row of [`WHOLE`].
    pub(super) fn record(&self) -> Row<'static> {
        let unit = match self.kind.unit {
            measures::Unit::Ns => "ns",
            measures::Unit::Count => "count",
            measures::Unit::Bytes => "bytes",
        };
        let diff = i128::from(self.after.sum) - i128::from(self.before.sum);
        let fits = i64::try_from(diff).is_ok();
        let most = |measure: &Measure| (self.kind.unit == measures::Unit::Ns).then_some(measure.most);
        let mut row = Row::new(&WHOLE);
        row.set("measure", self.kind.name).set("unit", unit);
        row.bound("before", self.before.sum, self.short).bound("after", self.after.sum, self.short);
        row.bound("diff", if fits { Cell::Int(diff) } else { Cell::Null }, self.short);
        row.bound("most_before", most(&self.before), self.short).bound("most_after", most(&self.after), self.short);
        row.set("changed", (!self.short).then_some(self.changed));
        row
    }
}

/// A measure is a lead instead of one that comes before it in [`KINDS`] only if it weighs this much more: threads that wait for
/// another one spend as long asleep as that one works.
const CLEARLY: f64 = 1.25;

/// The change that a thread feels most, in words, and how much time that is, ns; None: none is more than chance.
pub(super) fn lead(lines: &[Line], unit: DiffUnit, each: &str) -> Option<(String, u64)> {
    let times = lines.iter().filter(|line| line.changed && line.kind.unit == measures::Unit::Ns);
    let heavier = |best: Option<&'_ Line>, line: &Line| {
        best.is_none_or(|best| line.weight(unit) as f64 > best.weight(unit) as f64 * CLEARLY)
    };
    let mut best: Option<&Line> = None;
    for line in times {
        if heavier(best, line) {
            best = Some(line);
        }
    }
    let changed = |line: &Line| unit.time(1, line.after.sum).abs_diff(unit.time(0, line.before.sum));
    best.map(|line| (line.sentence(unit, each), changed(line)))
}

/// A table of what changed, or of `all`; None: there is nothing to show.
pub(super) fn table(lines: &[Line], unit: DiffUnit, all: bool) -> Option<Table> {
    let shown: Vec<&Line> = lines.iter().filter(|line| all || line.changed).collect();
    if shown.is_empty() {
        return None;
    }
    let per = unit.suffix();
    let table = Table::default().word(&format!("besides calls (ms{per}, count{per})"));
    let mut table = table.number("before").number("after").number("diff");
    shown.iter().for_each(|line| table.row(line.cells(unit)));
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn kind(name: &str) -> &'static Kind {
        KINDS.iter().find(|kind| kind.name == name).expect("a kind")
    }

    /// So many stretches of so many ms each, half of them of one thread.
    fn stretches(count: u64, each: u64) -> Measure {
        let (each, sum) = (each * MS, count * each * MS);
        Measure { sum, count, squares: count as f64 * (each as f64).powi(2), most: sum / 2 }
    }

    fn line(name: &str, before: Measure, after: Measure) -> Line {
        let kind = kind(name);
        let changed = differs(&Common::of(&[], 1.0), kind, [before, after]);
        Line { kind, before, after, changed, short: false }
    }

    #[test]
    fn waits_for_a_cpu_lead_where_they_are_the_change() {
        let lines = [
            line("cpu-user", stretches(100, 2), stretches(100, 2)),
            line("cpu-wait", stretches(10, 1), stretches(800, 40)),
            line("asleep-futex", stretches(1, 1), stretches(1, 2266)),
        ];
        assert_eq!(lines.each_ref().map(|line| line.changed), [false, true, false]);
        let (text, ns) = lead(&lines, DiffUnit::same(), "").unwrap();
        assert_eq!(ns, 31_990 * MS);
        assert_eq!(text, "waits 31.99 s more for a CPU (10.0 ms before, 32.00 s after)");
    }

    #[test]
    fn who_waits_for_the_one_that_works_is_no_lead() {
        // one thread works a second longer, and sixteen wait for it
        let one = |count, each| Measure { most: count * each * MS, ..stretches(count, each) };
        let asleep = |count, each| Measure { most: count * each * MS / 16, ..stretches(count, each) };
        let lines =
            [line("asleep-disk", one(100, 1), one(100, 11)), line("asleep-futex", asleep(1600, 1), asleep(1600, 11))];
        assert!(lines.iter().all(|line| line.changed));
        assert!(lead(&lines, DiffUnit::same(), "").unwrap().0.starts_with("sleeps 1.00 s more uninterruptibly"));
    }

    #[test]
    fn a_stretch_of_computing_is_no_chance() {
        let computes = line("cpu-user", stretches(1, 100), stretches(2, 500));
        assert!(computes.changed && !line("cpu-user", stretches(3, 100), stretches(1, 310)).changed);
        assert!(
            line("page-faults", Measure { sum: 10, ..Measure::default() }, Measure { sum: 900, ..Measure::default() })
                .changed
        );
        assert!(
            lead(
                &[line("exits", Measure { sum: 1, ..Measure::default() }, Measure { sum: 900, ..Measure::default() })],
                DiffUnit::same(),
                ""
            )
            .is_none()
        );
    }
}
