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
use crate::render::by;
use crate::render::cell::Cell;
use crate::reports::Context;
use crate::reports::keys::{Keys, Words};
use crate::reports::losses::LOSS_LINES;
use crate::table::families;
use crate::table::group::by::By;
use crate::table::group::value::Value;
use crate::table::question::Question;
use crate::values::say::complain;
use crate::values::words::escaped;

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

/// One value of the keys, as its tape has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    /// A text for each key.
    pub texts: Vec<String>,
    /// A cell for each of its columns.
    pub cells: Vec<Cell<'static>>,
}

/// What makes keys of two tapes equal: the JSON of each key's value, or its text if that is null.
pub(super) type Identity = Vec<Vec<u8>>;

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

fn identify(by: &[By], keys: &Keys<'_>) -> (Identity, Named) {
    let text = |by: &By| {
        let text = keys.text(*by);
        without_number(text.as_bytes()).map(escaped).unwrap_or(text)
    };
    let texts: Vec<String> = by.iter().map(text).collect();
    let (mut identity, mut cells) = (Identity::new(), Vec::new());
    let columns = by::columns(by);
    by::each(by, |key, name| {
        let cell = anonymous(keys.cell(key, name));
        if by::is_value(key, name) || name == "syscall" {
            let mut part = Vec::new();
            match (cell.is_null(), columns.get(cells.len())) {
                (false, Some(column)) => cell.json(column.ty, &mut part),
                // no JSON begins with it
                _ => part.extend(
                    by.iter().position(|by| *by == key).map(|at| format!("?{}", texts[at])).unwrap_or_default().bytes(),
                ),
            }
            identity.push(part);
        }
        cells.push(cell.into_owned());
    });
    (identity, Named { texts, cells })
}

/// A cell without the number of a pipe or socket.
fn anonymous(cell: Cell<'_>) -> Cell<'_> {
    match &cell {
        Cell::Text(text) => without_number(text).map(|kind| Cell::from(kind.to_vec())).unwrap_or(cell),
        _ => cell,
    }
}

/// `pipe` of `pipe:[4711]`: the kernel numbers these anew each time, so no other tape has the same. None: it is no such name.
fn without_number(name: &[u8]) -> Option<&[u8]> {
    let at = name.windows(2).position(|two| two == b":[")?;
    let (kind, rest) = name.split_at(at);
    let number = rest.strip_prefix(b":[")?.strip_suffix(b"]")?;
    let plain = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    (plain && [&b"pipe"[..], b"socket"].contains(&kind)).then_some(kind)
}

impl Named {
    /// What both tapes say of the same key.
    pub(super) fn agreed(&self, other: &Self) -> Self {
        let both = |(one, other): (&Cell<'static>, &Cell<'static>)| if one == other { one.clone() } else { Cell::Null };
        Self { texts: self.texts.clone(), cells: self.cells.iter().zip(&other.cells).map(both).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_boot_are_left_out() {
        assert_eq!(without_number(b"pipe:[4711]"), Some(&b"pipe"[..]));
        assert_eq!(without_number(b"socket:[1]"), Some(&b"socket"[..]));
        for whole in
            ["pipe:[]", "pipe:[4a]", "/tmp/pipe:[4]", "pipe:[4]x", "anon_inode:[eventpoll]", "UNIX:[/run/a]", ""]
        {
            assert_eq!(without_number(whole.as_bytes()), None, "{whole}");
        }
    }

    #[test]
    fn what_the_tapes_say_differently_of_a_key_is_null() {
        let named = |id: u32| Named { texts: vec!["/a".to_owned()], cells: vec![Cell::from("/a"), Cell::from(id)] };
        assert_eq!(named(7).agreed(&named(7)), named(7));
        assert_eq!(named(7).agreed(&named(8)).cells, [Cell::from("/a"), Cell::Null]);
    }
}
