//! `analyze top` of several tapes: the sums of all of them together, or by host and tape.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use indexmap::IndexMap;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::{Options, SHARE, Shares};
use crate::asked::config::{Config, OF_TAPES as KEYS};
use crate::derive::summary::collect;
use crate::derive::summary::column::Column;
use crate::derive::summary::plan::Plan;
use crate::derive::summary::stats::Stats;
use crate::derive::summary::table::{self, Row};
use crate::render::by;
use crate::render::form::Form;
use crate::render::keys::{columns, with_keys, with_parts};
use crate::render::rank;
use crate::render::row::{self as record, Judgement};
use crate::render::sink;
use crate::reports::Context;
use crate::reports::keys::{Keys, Words};
use crate::reports::losses::LOSS_LINES;
use crate::reports::measured::{SUMMARY, measures};
use crate::reports::named::{Identity, Named, TAPES, identify};
use crate::table::families;
use crate::table::group::by::By;
use crate::table::group::value::Value;
use crate::values::open::open;
use crate::values::output::{self, Out, line};
use crate::values::say::{Verdict, complain};
use crate::values::words::escaped;

/// Keys that mean something in one tape only.
const OF_ONE: [By; 4] = [By::Pid, By::Tid, By::Second, By::Minute];

/// The calls of one key in all tapes.
struct Group {
    /// Texts of the keys of tapes.
    whose: Vec<Vec<u8>>,
    named: Named,
    stats: Stats,
    short: bool,
    /// The last of the tapes that it has calls of and that are [`Found::vague`], and how many there are.
    vague: (usize, usize),
}

/// What was read.
#[derive(Default)]
struct Found {
    groups: IndexMap<(Vec<Vec<u8>>, Identity), Group>,
    tapes: usize,
    hosts: BTreeSet<Vec<u8>>,
    losses: Vec<String>,
    /// Tapes in which calls were counted of which not each key is known: they may be of a key that has no row there.
    vague: usize,
    incomplete: bool,
    lost: bool,
    bad: bool,
}

/// Those of [`KEYS`] that are asked for, in their order.
fn words(config: &Config) -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Vec::new();
    for word in &config.by {
        words.extend(KEYS.into_iter().find(|known| known == word && !words.contains(known)));
    }
    words
}

/// Keys of processes and times of several tapes are no keys, unless each tape has its own.
pub(super) fn check(config: &Config, by: &[By]) -> Result<()> {
    let one = by.iter().find(|by| OF_ONE.contains(by));
    if let (Some(by), false) = (one, words(config).contains(&"tape")) {
        bail!("--by {0}: a {0} of one tape is none of another: --by tape,{0}", by.name());
    }
    Ok(())
}

/// Prints the answer of `tapes`, of which one is open at a time.
pub(super) fn answer(config: &Config, tapes: &[PathBuf], own: &Options, by: &[By]) -> Result<Verdict> {
    let words = words(config);
    let mut found = Found::default();
    for path in tapes {
        if let Err(error) = found.add(config, path, (&words, by)) {
            found.bad = true;
            complain(&format!("{error:#}"));
        }
    }
    if found.tapes == 0 {
        return Ok(Verdict { lost: false, bad: true });
    }
    for group in found.groups.values_mut() {
        group.short |= group.vague.1 < found.vague;
    }
    let mut groups: Vec<&Group> = found.groups.values().collect();
    let value = |group: &Group| own.metric.of(&group.stats);
    groups.sort_by_cached_key(|group| {
        let stats = &group.stats;
        (std::cmp::Reverse((value(group), stats.total(), stats.calls)), group.whose.clone(), group.named.texts.clone())
    });
    config.shown.rows(groups.len());
    let shares = Shares::new(own.metric, groups.iter().map(|group| (&group.stats, group.short)), found.incomplete);
    let limit = own.rank.limit(config.format);
    let shown = Shown { words: &words, by, shares, found: &found };
    let mut out = output::stdout()?;
    match config.format.rows() {
        None => shown.text(&groups, limit, &mut out)?,
        Some(form) => {
            shown.rows(form, &groups[..groups.len().min(limit)], &mut out)?;
            found.losses.iter().for_each(|text| complain(text));
        }
    }
    out.flush()?;
    Ok(Verdict { lost: found.lost, bad: found.bad })
}

impl Found {
    fn add(&mut self, config: &Config, path: &Path, (words, by): (&[&str], &[By])) -> Result<()> {
        let tape: Tape = open(path)?;
        let name = path.display().to_string();
        families::require(&tape, Family::Syscall, "syscalls").with_context(|| name.clone())?;
        let mut context = Context::new(config, &tape).with_context(|| name.clone())?;
        let session = tape.session();
        let plan = Plan::by(by).naming(session);
        let question = &context.question;
        let (sums, knowledge, coverage) = collect::collect(&tape, &question.scope, &question.book, &plan);
        let whose: Vec<Vec<u8>> = words
            .iter()
            .map(|word| if *word == "host" { session.hostname.clone() } else { name.clone().into_bytes() })
            .collect();
        let rows = table::rows(&sums, &knowledge, &question.book, &plan, Column::default());
        let is_vague = rows.iter().any(|row| row.stats.ledger_calls() > 0 && row.key.contains(&Value::Unknown));
        self.vague += usize::from(is_vague);
        for row in rows {
            let keys =
                Keys { words: Words { session, book: &question.book, plan: &plan }, values: row.key, task: row.task };
            let (identity, named) = identify(by, &keys);
            let new = || Group {
                whose: whose.clone(),
                named: named.clone(),
                stats: Stats::default(),
                short: false,
                vague: (0, 0),
            };
            let group = self.groups.entry((whose.clone(), identity)).or_insert_with(new);
            group.named = group.named.agreed(&named);
            group.stats.merge(row.stats);
            group.short |= row.short;
            if is_vague && group.vague.0 != self.vague {
                group.vague = (self.vague, group.vague.1 + 1);
            }
        }
        coverage.tell(&mut context.question.loss);
        let of_sums = context.question.loss.of_sums();
        let losses = of_sums.lines(session, LOSS_LINES).into_iter().chain(knowledge.doubts());
        self.losses.extend(losses.map(|text| format!("{}: {text}", escaped(name.as_bytes()))));
        self.incomplete |= !of_sums.complete() || knowledge.missing();
        self.lost |= !of_sums.complete() || knowledge.lost();
        self.tapes += 1;
        self.hosts.insert(session.hostname.clone());
        Ok(())
    }
}

struct Shown<'a> {
    words: &'a [&'static str],
    by: &'a [By],
    shares: Shares,
    found: &'a Found,
}

impl Shown<'_> {
    fn text(&self, groups: &[&Group], limit: usize, out: &mut Out) -> Result<()> {
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let (tapes, hosts) = (self.found.tapes, self.found.hosts.len());
        line(out, &format!("{tapes} tape{} of {hosts} host{}", s(tapes), s(hosts)))?;
        if self.found.incomplete {
            line(out, "At least, because something is missing:")?;
        }
        self.found.losses.iter().try_for_each(|text| line(out, &format!("  {text}")))?;
        let mut table = self.shares.headings();
        table = self.words.iter().fold(table, |table, word| table.word(word));
        table = self.by.iter().fold(table, |table, by| table.word(by.heading()));
        for group in groups.iter().take(limit) {
            let row = Row { key: &[], call: None, task: None, stats: &group.stats, short: group.short };
            let mut cells = self.shares.cells(&row, self.found.incomplete);
            cells.extend(group.whose.iter().map(|text| if text.is_empty() { "?".to_owned() } else { escaped(text) }));
            cells.extend(group.named.texts.iter().cloned());
            table.row(cells);
        }
        table.print(out)?;
        rank::more(groups.len(), limit).iter().try_for_each(|text| line(out, text))?;
        Ok(())
    }

    fn rows(&self, form: Form, groups: &[&Group], out: &mut Out) -> Result<()> {
        let keys = columns(&TAPES, self.words.iter().copied()).into_iter().chain(by::columns(self.by));
        let table = with_keys(keys, &with_parts(&SUMMARY, [&SHARE]));
        let records = groups.iter().map(|group| {
            let mut row = record::Row::short_if(group.short, &table);
            for (word, text) in self.words.iter().zip(&group.whose) {
                row.set(word, Some(text.clone()).filter(|text| !text.is_empty()));
            }
            let mut cells = group.named.cells.iter();
            by::fill(&mut row, self.by, |_, _| cells.next().cloned().unwrap_or_default());
            measures(&mut row, &group.stats);
            self.shares.set(&mut row, &group.stats);
            row
        });
        sink::print(form, &table, Judgement::Touched(self.found.incomplete), records, out)?;
        Ok(())
    }
}
