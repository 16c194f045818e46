//! One tape of `analyze diff`: its calls by what means the same in the other.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustc_hash::FxHashMap;
use systape_format::model::{Extent, Family, Session};
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::reports::Context;
use crate::reports::losses::LOSS_LINES;
use crate::reports::named::{Identity, Named, bytes, identify};
use systape_answers::derive::chance::{KeySample, is_by_chance};
use systape_answers::derive::measures::{KINDS, Measures, inputs};
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::counted::Quantile;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::derive::summary::stats::Stats;
use systape_answers::derive::summary::table;
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::out::Out;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::loss::Loss;
use systape_events::question::Question;
use systape_events::values::spill::{Kept, Stored as _};

/// The calls of one key of one tape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub calls: u64,
    pub errors: u64,
    pub total: u64,
    /// Median and 99th percentile.
    pub quantiles: [Option<Quantile>; 2],
    /// What is judged of it.
    pub sample: KeySample,
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
            sample: KeySample {
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
fn by_chance(tape: &Tape, question: &Question<'_>, by: &[GroupKey]) -> FxHashMap<Vec<Value>, (u64, u64)> {
    let mut sums: FxHashMap<Vec<Value>, (u64, u64)> = FxHashMap::default();
    let keys: Vec<GroupKey> = by.iter().copied().filter(|key| *key != GroupKey::Syscall).collect();
    let plan = Plan::by(&[&keys[..], &[GroupKey::Syscall]].concat()).naming(tape.session());
    let (found, knowledge, _) = collect::collect(tape, &question.scope, &question.book, &plan);
    for row in table::rows(&found, &knowledge, &question.book, &plan, Column::default()).iter() {
        if row.call.as_ref().is_some_and(|call| is_by_chance(&call.name)) {
            let sum = sums.entry(row.key[..keys.len()].to_vec()).or_default();
            *sum = (sum.0.saturating_add(row.stats.calls), sum.1.saturating_add(row.stats.errors));
        }
    }
    sums
}

/// What is measured of a tape besides its calls, and what is lost of that; None: some calls are asked for.
fn whole(config: &Config, tape: &Tape) -> Result<(Option<Measures>, Loss)> {
    let filters = &config.filters;
    if filters.selects || filters.by_path() || filters.failure || filters.longer_than.is_some() {
        return Ok((None, Loss::default()));
    }
    let all = [Family::Sched, Family::Process, Family::Syscall, Family::Block, Family::Fault];
    let there: Vec<Family> = all.into_iter().filter(|family| families::in_session(tape.session(), *family)).collect();
    let mut context = Context::about(config, tape, &there)?;
    // what threads do follows from what was before the time asked for
    let to = context.question.scope.to;
    context.question.loss.add_earlier(tape, &there, to);
    let measures = Measures::of(&mut context.question);
    Ok((Some(measures), context.question.loss))
}

/// Whether `loss` could change measures of `family` up to `until`.
fn is_short(loss: &Loss, family: Family, until: u64) -> bool {
    loss.touches(&inputs(family), None, (0, until))
}

/// Whether it could change one of `whole`.
fn whole_is_short(whole: Option<&Measures>, loss: &Loss, until: u64) -> bool {
    let there = |whole: &Measures| {
        KINDS.iter().zip(whole.0).any(|(kind, measure)| measure.is_some() && is_short(loss, kind.family, until))
    };
    whole.is_some_and(there)
}

/// One tape.
pub(super) struct Side {
    pub name: String,
    /// Which part of the tape, as typed, behind a blank; empty: all.
    pub stretch: String,
    /// Sums in the order of the keys.
    pub sums: BTreeMap<Identity, (Named, Sum)>,
    /// Calls were counted of which not each key is known: they may be of a key that none of the others has.
    pub vague: bool,
    /// Length of the tape, or that of the time asked about, ns.
    pub length: u64,
    /// Whether it is of a command, from its begin to its end.
    pub of_command: bool,
    pub complete: bool,
    /// A loss could change it.
    pub lost: bool,
    pub loss: Vec<String>,
    /// The counted calls that were not stored.
    pub counted: Vec<String>,
    /// What else is measured; None: the question is about some calls.
    pub whole: Option<Measures>,
    /// What could change that.
    whole_loss: Loss,
    /// Up to when that was looked at, CLOCK_MONOTONIC ns.
    until: u64,
    /// What was recorded.
    pub recorded: RecordedSet,
}

/// What a tape was asked to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedSet {
    /// Everything on the machine, not some tasks.
    pub everyone: bool,
    /// Words for whom it is of.
    pub target: String,
    /// Calls that `-e` of `record` selected; none: all.
    pub selection: Vec<Vec<u8>>,
    /// Options of `record` that left out calls.
    pub filters: Vec<Vec<u8>>,
}

impl RecordedSet {
    fn of(session: &Session) -> Self {
        let everyone = match session.extent {
            Extent::Everyone => true,
            Extent::Some => false,
            Extent::NotSaid => session.target.starts_with("system-wide"),
        };
        Self {
            everyone,
            target: session.target.clone(),
            selection: session.selection.clone(),
            filters: session.call_filters.clone(),
        }
    }
}

impl Side {
    pub(super) fn read(config: &Config, by: &[GroupKey], tape: &Tape, path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        families::require(tape, Family::Syscall, "syscalls").with_context(|| name.clone())?;
        let mut context = Context::new(config, tape).with_context(|| name.clone())?;
        let session = tape.session();
        let plan = Plan::by(by).naming(session);
        let question = &context.question;
        let (found, knowledge, coverage) = collect::one_of(3, tape, &question.scope, &question.book, &plan);
        let of_all = if by.contains(&GroupKey::Syscall) { FxHashMap::default() } else { by_chance(tape, question, by) };
        let mut sums: BTreeMap<Identity, (Named, Adding<'_>)> = BTreeMap::new();
        // of two tapes, beside what is collected of one
        let mut kept = Kept::new(3);
        let mut vague = false;
        let rows = table::rows(&found, &knowledge, &context.question.book, &plan, Column::default());
        let lost = rows.lost();
        for row in rows.iter() {
            let words = KeyWords { session, book: &question.book, plan: &plan };
            let (identity, named) = identify(by, &RowKeys { words, values: &row.key, task: row.task });
            let by_chance = match &row.call {
                Some(call) if is_by_chance(&call.name) => (row.stats.calls, row.stats.errors),
                Some(_) => (0, 0),
                None => of_all.get(&*row.key).copied().unwrap_or_default(),
            };
            let adding = Adding { stats: row.stats.clone(), by_chance, short: row.short };
            match sums.entry(identity) {
                Entry::Occupied(mut of) => of.get_mut().1.add(&adding),
                Entry::Vacant(of) => {
                    // as much again for the nodes of the tree and the allocator
                    kept.add(2 * (bytes(of.key(), &named) + size_of::<(Named, Adding<'_>)>() + row.stats.heap()));
                    kept.check().with_context(|| name.clone())?;
                    of.insert((named, adding));
                }
            }
            vague |= row.stats.ledger_calls() > 0 && row.key.contains(&Value::Unknown);
        }
        let sums = sums.into_iter().map(|(identity, (named, adding))| (identity, (named, adding.sum()))).collect();
        let (whole, whole_loss) = whole(config, tape)?;
        let scope = &question.scope;
        let from = scope.from.max(session.window_open);
        // not only as far as the tape goes: what a cut tape lacks is behind that
        let asked_to = scope.to;
        let to = asked_to.min(tape.complete_until());
        coverage.tell(&mut context.question.loss);
        let of_sums = context.question.loss.of_sums();
        let mut loss = of_sums.lines(session, LOSS_LINES);
        loss.extend(knowledge.doubts());
        Ok(Self {
            name,
            stretch: String::new(),
            sums,
            vague,
            length: to.saturating_sub(from),
            of_command: ["command ", "system-wide during "].iter().any(|with| session.target.starts_with(with)),
            complete: of_sums.complete() && !knowledge.missing(),
            lost: !of_sums.complete() || lost || whole_is_short(whole.as_ref(), &whole_loss, asked_to),
            loss,
            counted: knowledge.counted(session),
            whole,
            whole_loss,
            until: asked_to,
            recorded: RecordedSet::of(session),
        })
    }

    /// Whether something is missing that measures of `family` are made from.
    pub(super) fn is_short(&self, family: Family) -> bool {
        is_short(&self.whole_loss, family, self.until)
    }

    /// Whether it is not known of some calls of which key they are.
    pub(super) fn is_vague(&self) -> bool {
        self.vague || self.sums.values().any(|(_, sum)| sum.short)
    }

    pub(super) fn tell(&self, out: &mut Out) {
        self.loss.iter().for_each(|text| out.say(&format!("{}: {text}", self.name)));
    }
}
