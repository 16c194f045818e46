//! The rows of `analyze diff`: one key in both tapes.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use systape_format::table::TableDef;

use super::side::{Side, Sum};
use crate::reports::measured::ROUGH;
use crate::reports::named::{Identity, Named};
use systape_answers::derive::chance::{ChangedKey, Common, KeySample};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::mark;
use systape_answers::render::row;
use systape_answers::render::table::millis;
use systape_events::group::by::GroupKey;
use systape_events::values::num;

systape_format::tables! {
    /// One row for each value of the keys in either tape (`--by`; without it each syscall), what differs most first. Keys are equal
    /// by name: of cgroups by path, of users by number. What else is known of a key is null where the tapes differ.
    pub DIFF = "diff" {
        calls_before ? AtLeast: Count "calls in the first tape"
        calls_after ? AtLeast: Count "calls in the second tape"
        calls_diff ? OfKnown: Int "how many more the second has; negative: fewer"
        errors_before ? AtLeast: Count "calls of the first tape that returned an error"
        errors_after ? AtLeast: Count "the same of the second"
        errors_diff ? OfKnown: Int "how many more the second has"
        total_ns_before ? AtLeast: Duration "time in the calls of the first tape"
        total_ns_after ? AtLeast: Duration "time in those of the second"
        total_ns_diff ? OfKnown: Duration "how much more the second has; null: no number of JSON holds it"
        ledger_calls ? AtLeast: Count "calls of both that were counted and not stored; which thread made each of them, and on which file, is not known"
        p50_ns_before ? OfKnown: Duration "median of the calls of the first tape; null: none, or it could be off by more than a factor of two"
        p99_ns_before ? OfKnown: Duration "their 99th percentile; null: likewise"
        p50_ns_after ? OfKnown: Duration "median of the calls of the second"
        p99_ns_after ? OfKnown: Duration "their 99th percentile"
        quantile_error: Real "largest relative error of these four; null: all are null"
        scale: Real "what sums of the first tape are multiplied by before they are compared: 1, or with `--per second` the second's length by the first's; null: not known, because something is missing of a tape, or the keys of counted calls are"
        changed: Word "what differs by more than chance, with commas: `calls`, `errors`, `time`; \"\": nothing; null: likewise"
    }
}

/// One value of the keys in both tapes.
pub(super) struct Row {
    pub named: Named,
    pub before: Sum,
    pub after: Sum,
    /// What changed by more than chance.
    pub changed: ChangedKey,
}

/// All of both tapes, what differs most first.
pub(super) struct Compared {
    pub rows: Vec<Row>,
    /// How the tapes differ as a whole.
    pub common: Common,
    /// What the first tape's sums are multiplied by before they are compared.
    pub scale: f64,
}

impl Compared {
    /// `rates`: as so much a second.
    pub(super) fn of(before: &Side, after: &Side, rates: bool) -> Self {
        let all: BTreeSet<&Identity> = before.sums.keys().chain(after.sums.keys()).collect();
        let row = |identity: &Identity| {
            let [a, b] = [before, after].map(|side| side.sums.get(identity));
            let sum = |side: &Side| match side.sums.get(identity) {
                Some((_, sum)) => *sum,
                None => Sum { short: side.vague, ..Sum::default() },
            };
            let named = match (a, b) {
                (Some((a, _)), Some((b, _))) => a.agreed(b),
                (Some((named, _)), None) | (None, Some((named, _))) => named.clone(),
                (None, None) => return None,
            };
            Some(Row { named, before: sum(before), after: sum(after), changed: ChangedKey::default() })
        };
        let mut rows: Vec<Row> = all.into_iter().filter_map(row).collect();
        let scale = if rates { after.length.max(1) as f64 / before.length.max(1) as f64 } else { 1.0 };
        let pairs: Vec<[KeySample; 2]> = rows.iter().map(Row::samples).collect();
        let common = Common::of(&pairs, scale);
        rows.iter_mut().zip(&pairs).for_each(|(row, pair)| row.changed = common.changed(pair));
        // the sort is stable: equal differences stay in the order of names
        rows.sort_by_cached_key(|row| {
            let differs =
                |a: u64, b: u64| if rates { (b as f64 - a as f64 * scale).abs() as u64 } else { a.abs_diff(b) };
            Reverse((differs(row.before.total, row.after.total), differs(row.before.calls, row.after.calls)))
        });
        Self { rows, common, scale }
    }
}

/// Numbers of both tapes: as they are, or of a second each.
#[derive(Clone, Copy)]
pub(super) struct DiffUnit(Option<[u64; 2]>);

impl DiffUnit {
    pub(super) fn of([before, after]: [&Side; 2], rates: bool) -> Self {
        Self(rates.then(|| [before.length.max(1), after.length.max(1)]))
    }

    /// Numbers as they are.
    #[cfg(test)]
    pub(super) fn same() -> Self {
        Self(None)
    }

    /// Words behind a heading.
    pub(super) fn suffix(self) -> &'static str {
        if self.0.is_some() { "/s" } else { "" }
    }

    fn rate(lengths: [u64; 2], side: usize, value: u64) -> f64 {
        value as f64 * 1e9 / lengths[side] as f64
    }

    /// A number of the first (0) or second tape.
    pub(super) fn count(self, side: usize, value: u64) -> String {
        self.0.map_or_else(|| value.to_string(), |lengths| format!("{:.1}", Self::rate(lengths, side, value)))
    }

    /// `+3`, `-3`, `0`: how many more the second has.
    pub(super) fn more(self, before: u64, after: u64) -> String {
        if let Some(lengths) = self.0 {
            let more = Self::rate(lengths, 1, after) - Self::rate(lengths, 0, before);
            return if before == after && before == 0 { "0.0".to_owned() } else { format!("{more:+.1}") };
        }
        match after.cmp(&before) {
            Ordering::Equal => "0".to_owned(),
            Ordering::Greater => format!("+{}", after - before),
            Ordering::Less => format!("-{}", before - after),
        }
    }

    /// Time in the unit, ns.
    pub(super) fn time(self, side: usize, ns: u64) -> u64 {
        self.0.map_or(ns, |lengths| Self::rate(lengths, side, ns) as u64)
    }
}

/// A quantile that differs by this factor is told in the first sentence.
const WORTH_SAYING: f64 = 1.2;
/// Of fewer calls a quantile says nothing.
const MANY: u64 = 5;

impl Row {
    fn samples(&self) -> [KeySample; 2] {
        [self.before.sample, self.after.sample]
    }

    /// How much longer the calls of the second took, ms: `+3.000`, `~-3.000`.
    pub(super) fn difference(&self, unit: DiffUnit) -> String {
        let [a, b] = [unit.time(0, self.before.total), unit.time(1, self.after.total)];
        let sign = match b.cmp(&a) {
            Ordering::Less => "-",
            Ordering::Equal => "",
            Ordering::Greater => "+",
        };
        // the difference of a lower bound is neither more nor less than anything
        let about = mark::about([&self.before, &self.after].iter().any(|sum| sum.open || sum.short));
        let mut difference = Vec::new();
        num::millis(&mut difference, b.abs_diff(a), 0, &format!("{about}{sign}"));
        String::from_utf8_lossy(&difference).into_owned()
    }

    pub(super) fn cells(&self, unit: DiffUnit) -> Vec<String> {
        let (a, b) = (&self.before, &self.after);
        let total = |side: usize, sum: &Sum| millis(unit.time(side, sum.total), mark::at_least(sum.open || sum.short));
        let count = |side, sum: &Sum, count| format!("{}{}", mark::at_least(sum.short), unit.count(side, count));
        let quantile = |sum: &Sum, which: usize| match sum.quantiles[which] {
            Some(quantile) => millis(quantile.value, mark::about(sum.short || quantile.error > ROUGH)),
            None => "-".to_owned(),
        };
        let mut cells = self.named.texts.clone();
        cells.extend([
            count(0, a, a.calls),
            count(1, b, b.calls),
            format!("{}{}", mark::about(a.short || b.short), unit.more(a.calls, b.calls)),
            count(0, a, a.errors),
            count(1, b, b.errors),
            total(0, a),
            total(1, b),
            self.difference(unit),
            quantile(a, 0),
            quantile(b, 0),
            quantile(a, 1),
            quantile(b, 1),
        ]);
        cells
    }

    /// How much the time in it differs, ns.
    pub(super) fn weight(&self, unit: DiffUnit) -> u64 {
        unit.time(1, self.after.total).abs_diff(unit.time(0, self.before.total))
    }

    /// `read, p50 0.004 → 0.068 ms, p99 0.010 → 0.090 ms, +64.310 ms, +0 calls`: what changed of it.
    pub(super) fn change(&self, unit: DiffUnit) -> String {
        let mut text = self.named.texts.join(" ");
        let many = self.before.calls.min(self.after.calls) >= MANY;
        for (which, name) in ["p50", "p99"].into_iter().enumerate().filter(|_| many) {
            let [a, b] = [&self.before, &self.after].map(|sum| (sum.short, sum.quantiles[which]));
            let ((short, Some(a)), (open, Some(b))) = (a, b) else { continue };
            let factor = b.value.max(1) as f64 / a.value.max(1) as f64;
            if factor.max(factor.recip()) >= WORTH_SAYING {
                let about = mark::about(short || open || a.error > ROUGH || b.error > ROUGH);
                text += &format!(", {name} {} → {} ms", millis(a.value, about), millis(b.value, about));
            }
        }
        let calls = unit.more(self.before.calls, self.after.calls);
        format!("{text}, {} ms{per}, {calls} calls{per}", self.difference(unit), per = unit.suffix())
    }

    /// `whole`: nothing is missing of either tape, and each call has its key.
    pub(super) fn record<'t>(&'t self, by: &[GroupKey], scale: f64, whole: bool, table: &'t TableDef) -> row::Row<'t> {
        let (a, b) = (&self.before, &self.after);
        // null: no number of JSON's holds what the sums of an invalid tape differ by
        let difference = |a: u64, b: u64| {
            let value = i128::from(b) - i128::from(a);
            if u64::try_from(value).is_ok() || i64::try_from(value).is_ok() { Cell::Int(value) } else { Cell::Null }
        };
        let mut row = row::Row::new(table);
        let mut cells = self.named.cells.iter();
        by::fill(&mut row, by, |_, _| cells.next().cloned().unwrap_or_default());
        let short = a.short || b.short;
        row.bound("calls_before", a.calls, a.short).bound("calls_after", b.calls, b.short);
        row.bound("calls_diff", difference(a.calls, b.calls), short);
        row.bound("errors_before", a.errors, a.short).bound("errors_after", b.errors, b.short);
        row.bound("errors_diff", difference(a.errors, b.errors), short);
        row.bound("total_ns_before", a.total, a.open || a.short).bound("total_ns_after", b.total, b.open || b.short);
        row.bound("total_ns_diff", difference(a.total, b.total), short || a.open || b.open);
        row.bound("ledger_calls", a.counted.saturating_add(b.counted), short);
        for (sum, [p50, p99]) in [(a, ["p50_ns_before", "p99_ns_before"]), (b, ["p50_ns_after", "p99_ns_after"])] {
            let value = |which: usize| sum.quantiles[which].map(|quantile| quantile.value);
            row.bound(p50, value(0), sum.short).bound(p99, value(1), sum.short);
        }
        let errors = [a, b].into_iter().flat_map(|sum| sum.quantiles).flatten().map(|quantile| quantile.error);
        row.set("quantile_error", errors.reduce(f64::max));
        row.set("scale", whole.then_some(scale)).set("changed", whole.then(|| self.changed.words()));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_no_number_holds_is_null() {
        let of = |before, after| {
            let sum = |total| Sum { total, ..Sum::default() };
            let named = Named { texts: Vec::new(), cells: Vec::new() };
            let row = Row { named, before: sum(before), after: sum(after), changed: ChangedKey::default() };
            let record = row.record(&[], 1.0, true, &DIFF);
            let (_, cell, _) = record.cells().find(|(column, ..)| column.name == "total_ns_diff").expect("a column");
            format!("{cell:?}")
        };
        assert_eq!(of(7, 5), "Int(-2)");
        assert_eq!(of(0, u64::MAX), format!("Int({})", u64::MAX));
        assert_eq!(of(u64::MAX, 0), "Null");
    }
}
