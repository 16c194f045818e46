//! Calls by name and slice of time, as `analyze rate` counts them: how many, failures, time, and durations by power of two.

use anyhow::Result;
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use crate::reports::Context;
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::plan::{Plan, Slices};
use systape_answers::derive::summary::table;
use systape_answers::render::loghist::LogHist;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::values::order::InOrder as _;

/// Names that are kept apart, those with most calls; the others are one.
const NAMES: usize = 60;

/// The calls of one name in one slice.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    errors: u64,
    total: u128,
    max: u64,
    /// Calls that lasted longer than is known.
    open: u64,
    /// One of them is the longest.
    open_max: bool,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.errors = self.errors.saturating_add(other.errors);
        self.total = self.total.saturating_add(other.total);
        self.open_max = if other.max > self.max { other.open_max } else { self.open_max };
        self.max = self.max.max(other.max);
        self.open = self.open.saturating_add(other.open);
    }

    /// As one slice has it.
    fn json(self) -> Json {
        let ns = u64::try_from(self.total).unwrap_or(u64::MAX);
        json!({"n": self.calls, "err": self.errors, "ns": ns, "max": self.max, "open": self.open, "open_max": u64::from(self.open_max)})
    }
}

/// The calls of one name.
#[derive(Debug, Default)]
struct Name {
    all: Sum,
    /// By slice.
    slices: FxHashMap<u64, Sum>,
    /// Calls that are in no slice: counted only, or begun before the recording.
    untimed: Sum,
    short: bool,
}

/// Adds up the calls that `page` is about.
///
/// # Errors
/// There is no such time.
pub(super) fn calls(page: &Context<'_>, slices: Slices, count: u64) -> Result<Json> {
    let mut context = Context::new(page.config, page.question.tape)?;
    let question = &context.question;
    let plan = Plan::by(&[GroupKey::Syscall, GroupKey::Second]).naming(question.tape.session()).in_slices(slices);
    let (sums, knowledge, coverage) = collect::collect(question.tape, &question.scope, &question.book, &plan);
    let mut names: FxHashMap<String, Name> = FxHashMap::default();
    let mut heat: Vec<LogHist> = vec![LogHist::default(); usize::try_from(count).unwrap_or(0)];
    let mut exact = true;
    for row in table::rows(&sums, &knowledge, &question.book, &plan, Column::default()).iter() {
        let name = row.call.as_ref().map_or_else(|| "?".to_owned(), |call| call.long_name.clone());
        let sum = Sum {
            calls: row.stats.calls,
            errors: row.stats.errors,
            total: row.stats.total(),
            max: row.stats.longest().unwrap_or(0),
            open: row.stats.open,
            open_max: row.stats.open_max > row.stats.max,
        };
        let of_name = names.entry(name).or_default();
        of_name.all.add(sum);
        of_name.short |= row.short;
        let slice = plan.place(GroupKey::Second).and_then(|at| match row.key.get(at) {
            Some(Value::Number(slice)) if *slice < count => Some(*slice),
            _ => None,
        });
        match slice {
            Some(slice) => of_name.slices.entry(slice).or_default().add(sum),
            None => of_name.untimed.add(sum),
        }
        let (sizes, known) = row.stats.sizes();
        exact &= known;
        if let Some(heat) = slice.and_then(|slice| heat.get_mut(usize::try_from(slice).ok()?)) {
            heat.merge(&sizes);
        }
    }
    let mut names: Vec<(String, Name)> = names.into_iter().collect();
    names.order_by(|(a, one), (b, other)| (other.all.calls, a).cmp(&(one.all.calls, b)));
    let rest = names.split_off(names.len().min(NAMES));
    if !rest.is_empty() {
        names.push((format!("{} others", rest.len()), others(rest)));
    }
    coverage.tell(&mut context.question.loss);
    let whole = context.question.loss.of_sums().complete();
    Ok(json!({
        "names": names.iter().map(|(name, sums)| of_name(name, sums)).collect::<Json>(),
        "heat": heat_json(&heat),
        "heat_exact": exact && whole,
        "exact": whole && !knowledge.missing(),
    }))
}

fn others(rest: Vec<(String, Name)>) -> Name {
    let mut all = Name::default();
    for (_, name) in rest {
        all.all.add(name.all);
        all.untimed.add(name.untimed);
        all.short |= name.short;
        name.slices.into_iter().for_each(|(slice, sum)| all.slices.entry(slice).or_default().add(sum));
    }
    all
}

/// Columns by slice, only of slices with calls.
fn of_name(name: &str, sums: &Name) -> Json {
    let mut slices: Vec<(u64, Sum)> = sums.slices.iter().map(|(slice, sum)| (*slice, *sum)).collect();
    slices.sort_unstable_by_key(|(slice, _)| *slice);
    let column = |of: &dyn Fn(&Sum) -> u64| slices.iter().map(|(_, sum)| of(sum)).collect::<Vec<u64>>();
    json!({
        "name": name,
        "calls": sums.all.calls,
        "untimed": sums.untimed.json(),
        "short": sums.short,
        "at": slices.iter().map(|(slice, _)| slice).collect::<Vec<_>>(),
        "n": column(&|sum| sum.calls),
        "err": column(&|sum| sum.errors),
        "ns": column(&|sum| u64::try_from(sum.total).unwrap_or(u64::MAX)),
        "max": column(&|sum| sum.max),
        "open": column(&|sum| sum.open),
        "open_max": column(&|sum| u64::from(sum.open_max)),
    })
}

/// The cells of a heat map that are not empty: slice, power of two, count.
pub(super) fn heat_json(heat: &[LogHist]) -> Json {
    let (mut at, mut power, mut count) = (Vec::new(), Vec::new(), Vec::new());
    for (slice, sizes) in heat.iter().enumerate() {
        for (bucket, (_, _, values)) in sizes.buckets().into_iter().enumerate().filter(|(_, (.., values))| *values > 0)
        {
            at.push(slice);
            power.push(bucket);
            count.push(values);
        }
    }
    json!({"at": at, "power": power, "n": count})
}
