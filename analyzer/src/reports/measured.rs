//! What a row of sums of calls says, as columns and as text: common to the summary and to rankings.

use systape_answers::derive::summary::hist::QUANTILE_ERROR;
use systape_answers::derive::summary::stats::Stats;
use systape_answers::derive::summary::table::Row;
use systape_answers::render::mark;
use systape_answers::render::row as record;
use systape_answers::render::table::millis;

systape_format::tables! {
    /// One row for each value of the keys.
    pub SUMMARY = "summary" {
        calls ? AtLeast: Count "calls, those that were counted instead of stored too"
        errors ? AtLeast: Count "calls that returned an error"
        total_ns ? AtLeast: Duration "time in all of them, as far as it is known of `incomplete_calls`"
        min_ns ? AtMost: Duration "shortest call whose whole duration is known; null: there is none"
        avg_ns ? OfKnown: Duration "mean of these; null: there are none"
        max_ns ? AtLeast: Duration "longest call, as far as it is known of `incomplete_calls`; null: none is known"
        stddev_percent ? OfKnown: Real "relative standard deviation of the same calls as `avg_ns`, as perf has it; null: too few, or some were counted instead of stored"
        p50_ns ? OfKnown: Duration "their median; null: none, or it could be off by more than a factor of two"
        p99_ns ? OfKnown: Duration "their 99th percentile; null: likewise"
        incomplete_calls ? AtLeast: Count "calls of which only a lower bound is known"
        ledger_calls ? AtLeast: Count "part of `calls` known by count only ([counted calls](../reading/losses.md#stored-counted-lost))"
        quantile_error: Real "largest relative error of `p50_ns` and `p99_ns`; null: both are null"
    }
}

/// A quantile with a larger possible error is marked: twice the error of stored calls, which is the width of a bucket.
pub(crate) const ROUGH: f64 = 2.0 * QUANTILE_ERROR;

/// The text of a row; `short`: it may be too low.
pub(crate) fn measured(row: &Row<'_>, short: bool) -> Vec<String> {
    let stats = &*row.stats;
    let count = |count: u64| format!("{}{count}", mark::at_least(short));
    let lead = mark::at_least;
    let total = u64::try_from(stats.total()).unwrap_or(u64::MAX);
    let [p50, p99] = row.quantiles().map(|quantile| match quantile {
        Some(quantile) => millis(quantile.value, mark::about(short || quantile.error > ROUGH)),
        None => "-".to_owned(),
    });
    vec![
        count(stats.calls),
        count(stats.errors),
        millis(total, lead(short || stats.open > 0)),
        (stats.timed > 0).then_some(stats.min).map_or_else(|| "-".to_owned(), |min| millis(min, mark::at_most(short))),
        stats.avg().map_or_else(|| "-".to_owned(), |avg| millis(avg, mark::about(short))),
        stats.longest().map_or_else(|| "-".to_owned(), |max| millis(max, lead(short || stats.open > 0))),
        stats.stddev_percent().map_or_else(|| "-".to_owned(), |percent| format!("{}{percent:.2}", mark::about(short))),
        p50,
        p99,
    ]
}

/// Sets the sums of a call: times are those of finished calls; `total_ns` and `max_ns` include the others' lower bounds.
pub(crate) fn measures(line: &mut record::Row<'_>, stats: &Stats) {
    let timed = |value: u64| (stats.timed > 0).then_some(value);
    let open = stats.open > 0;
    let quantiles = [stats.quantile(500), stats.quantile(990)];
    let [p50, p99] = quantiles.map(|quantile| quantile.map(|quantile| quantile.value));
    let error = quantiles.into_iter().flatten().map(|quantile| quantile.error).reduce(f64::max);
    line.set("calls", stats.calls).set("errors", stats.errors);
    line.bound("total_ns", u64::try_from(stats.total()).unwrap_or(u64::MAX), open);
    // an open call may become longer than every finished one
    line.set("min_ns", timed(stats.min)).set("avg_ns", stats.avg()).bound("max_ns", stats.longest(), open);
    line.set("stddev_percent", stats.stddev_percent()).set("p50_ns", p50).set("p99_ns", p99);
    line.set("incomplete_calls", stats.open).set("ledger_calls", stats.ledger_calls()).set("quantile_error", error);
}
