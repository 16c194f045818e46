//! One tape of `analyze diff`: its calls by what means the same in the other.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustc_hash::FxHashMap;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::derive::chance::{Sample, is_by_chance};
use crate::derive::summary::collect;
use crate::derive::summary::column::Column;
use crate::derive::summary::counted::Quantile;
use crate::derive::summary::plan::Plan;
use crate::derive::summary::stats::Stats;
use crate::derive::summary::table;
use crate::reports::Context;
use crate::reports::keys::{Keys, Words};
use crate::reports::losses::LOSS_LINES;
use crate::reports::named::{Identity, Named, identify};
use crate::table::families;
use crate::table::group::by::By;
use crate::table::group::value::Value;
use crate::table::question::Question;
use crate::values::say::complain;

/// The calls of one key of one tape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub calls: u64,
    pub errors: u64,
    pub total: u64,
    /// Median and 99th percentile.
    pub quantiles: [Option<Quantile>; 2],
    /// What is judged of it.
    pub sample: Sample,
    /// Some lasted longer than known.
    pub open: bool,
    /// There may be more calls than these.
    pub short: bool,
    /// Calls that were counted and not stored.
    pub counted: u64,
}

/// The same while it is added up: pipes of several numbers are one.
struct Adding<'a> {
    stats: Cow<'a, Stats>,
    /// Calls and errors whose number is chance.
    by_chance: (u64, u64),
    short: bool,
}

impl Adding<'_> {
    fn add(&mut self, other: &Adding<'_>) {
        self.stats.to_mut().merge(&other.stats);
        self.by_chance.0 = self.by_chance.0.saturating_add(other.by_chance.0);
        self.by_chance.1 = self.by_chance.1.saturating_add(other.by_chance.1);
        self.short |= other.short;
    }

    fn sum(&self) -> Sum {
        let stats = &self.stats;
        let total = u64::try_from(stats.total()).unwrap_or(u64::MAX);
        Sum {
            calls: stats.calls,
            errors: stats.errors,
            total,
            quantiles: [stats.quantile(500), stats.quantile(990)],
            sample: Sample {
                calls: stats.calls.saturating_sub(self.by_chance.0),
                errors: stats.errors.saturating_sub(self.by_chance.1),
                time: total,
                // of calls that did not end only their number is known
                squares: stats.squares as f64 + (stats.open_sum as f64).powi(2) / (stats.open.max(1) as f64),
            },
            open: stats.open > 0,
            short: self.short,
            counted: stats.ledger_calls(),
        }
    }
}

/// Calls and errors whose number is chance, by the values of the keys.
fn by_chance(tape: &Tape, question: &Question<'_>, by: &[By]) -> FxHashMap<Vec<Value>, (u64, u64)> {
    let mut sums: FxHashMap<Vec<Value>, (u64, u64)> = FxHashMap::default();
    let keys: Vec<By> = by.iter().copied().filter(|key| *key != By::Syscall).collect();
    let plan = Plan::by(&[&keys[..], &[By::Syscall]].concat()).naming(tape.session());
    let (found, knowledge, _) = collect::collect(tape, &question.scope, &question.book, &plan);
    for row in table::rows(&found, &knowledge, &question.book, &plan, Column::default()) {
        if row.call.as_ref().is_some_and(|call| is_by_chance(&call.name)) {
            let sum = sums.entry(row.key[..keys.len()].to_vec()).or_default();
            *sum = (sum.0.saturating_add(row.stats.calls), sum.1.saturating_add(row.stats.errors));
        }
    }
    sums
}

/// One tape.
pub(super) struct Side {
    pub name: String,
    /// In the order of the keys.
    pub sums: BTreeMap<Identity, (Named, Sum)>,
    /// Calls were counted of which not each key is known: they may be of a key that none of the others has.
    pub vague: bool,
    /// Its length, or that of the time asked about, ns.
    pub length: u64,
    /// It is of a command, from its begin to its end.
    pub of_command: bool,
    pub complete: bool,
    /// A loss could change it.
    pub lost: bool,
    pub loss: Vec<String>,
    /// The counted calls that were not stored.
    pub counted: Vec<String>,
}

impl Side {
    pub(super) fn read(config: &Config, by: &[By], tape: &Tape, path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        families::require(tape, Family::Syscall, "syscalls").with_context(|| name.clone())?;
        let mut context = Context::new(config, tape).with_context(|| name.clone())?;
        let session = tape.session();
        let plan = Plan::by(by).naming(session);
        let question = &context.question;
        let (found, knowledge, coverage) = collect::collect(tape, &question.scope, &question.book, &plan);
        let of_all = if by.contains(&By::Syscall) { FxHashMap::default() } else { by_chance(tape, question, by) };
        let mut sums: BTreeMap<Identity, (Named, Adding<'_>)> = BTreeMap::new();
        let mut vague = false;
        for row in table::rows(&found, &knowledge, &question.book, &plan, Column::default()) {
            let words = Words { session, book: &question.book, plan: &plan };
            let (identity, named) = identify(by, &Keys { words, values: row.key, task: row.task });
            let by_chance = match &row.call {
                Some(call) if is_by_chance(&call.name) => (row.stats.calls, row.stats.errors),
                Some(_) => (0, 0),
                None => of_all.get(row.key).copied().unwrap_or_default(),
            };
            let adding = Adding { stats: Cow::Borrowed(row.stats), by_chance, short: row.short };
            match sums.entry(identity) {
                Entry::Occupied(mut of) => of.get_mut().1.add(&adding),
                Entry::Vacant(of) => drop(of.insert((named, adding))),
            }
            vague |= row.stats.ledger_calls() > 0 && row.key.contains(&Value::Unknown);
        }
        let sums = sums.into_iter().map(|(identity, (named, adding))| (identity, (named, adding.sum()))).collect();
        let scope = &question.scope;
        let from = scope.from.max(session.window_open);
        let to = scope.to.min(tape.complete_until());
        coverage.tell(&mut context.question.loss);
        let of_sums = context.question.loss.of_sums();
        let mut loss = of_sums.lines(session, LOSS_LINES);
        loss.extend(knowledge.doubts());
        Ok(Self {
            name,
            sums,
            vague,
            length: to.saturating_sub(from),
            of_command: ["command ", "system-wide during "].iter().any(|with| session.target.starts_with(with)),
            complete: of_sums.complete() && !knowledge.missing(),
            lost: !of_sums.complete() || knowledge.lost(),
            loss,
            counted: knowledge.counted(session),
        })
    }

    /// Of some calls it is not known of which key they are.
    pub(super) fn is_vague(&self) -> bool {
        self.vague || self.sums.values().any(|(_, sum)| sum.short)
    }

    pub(super) fn tell(&self) {
        self.loss.iter().for_each(|text| complain(&format!("{}: {text}", self.name)));
    }
}
