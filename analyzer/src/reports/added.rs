//! Sums of the calls of several tapes: of all of them together, or by host and tape. One tape is open at a time.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use indexmap::IndexMap;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::asked::config::{Config, OF_TAPES as KEYS};
use crate::asked::other;
use crate::reports::Context;
use crate::reports::losses::{self, LOSS_LINES};
use crate::reports::named::{Identity, Named, bytes, identify};
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::derive::summary::stats::Stats;
use systape_answers::derive::summary::table;
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::out::Out;
use systape_answers::render::row as record;
use systape_answers::values::open::open;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::values::spill::{Kept, Stored as _};
use systape_events::values::words::escaped;

/// Keys that mean something in one tape only.
const OF_ONE: [GroupKey; 4] = [GroupKey::Pid, GroupKey::Tid, GroupKey::Second, GroupKey::Minute];

/// The calls of one key in all tapes.
pub(super) struct AddedCalls {
    /// Texts of the keys of tapes.
    whose: Vec<Vec<u8>>,
    named: Named,
    /// The sums.
    pub stats: Stats,
    /// Calls may be missing from them.
    pub short: bool,
    /// The last of the tapes that it has calls of and that are [`Found::vague`], and how many there are.
    vague: (usize, usize),
}

/// What was read.
#[derive(Default)]
pub(super) struct Found {
    groups: IndexMap<(Vec<Vec<u8>>, Identity), AddedCalls>,
    tapes: usize,
    hosts: BTreeSet<Vec<u8>>,
    losses: Vec<String>,
    /// What was counted and not stored.
    counted: Vec<String>,
    /// Tapes in which calls were counted of which not each key is known: they may be of a key that has no row there.
    vague: usize,
    /// Calls are missing, or may be.
    pub incomplete: bool,
    /// Whether calls were lost.
    pub lost: bool,
    /// A tape could not be read.
    pub bad: bool,
}

/// Words of [`KEYS`] that are asked for, in their order.
pub(super) fn words(config: &Config) -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Vec::new();
    for word in &config.by {
        words.extend(KEYS.into_iter().find(|known| known == word && !words.contains(known)));
    }
    words
}

/// Keys of processes and times of several tapes are no keys, unless each tape has its own.
pub(super) fn check(config: &Config, by: &[GroupKey]) -> Result<()> {
    let one = by.iter().find(|by| OF_ONE.contains(by));
    if let (Some(by), false) = (one, words(config).contains(&"tape")) {
        bail!("--by {0}: a {0} of one tape is none of another: --by tape,{0}", by.name());
    }
    Ok(())
}

/// The sums by `by` of `tapes`, and what is missing from them; None: none could be read.
pub(super) fn find(
    config: &Config,
    tapes: &[PathBuf],
    words: &[&str],
    by: &[GroupKey],
    out: &mut Out,
) -> Option<Found> {
    let (mut found, mut kept) = (Found::default(), Kept::new(1));
    for path in tapes {
        if let Err(error) = found.add(config, path, (words, by), &mut kept) {
            found.bad = true;
            out.say(&format!("{error:#}"));
        }
        // without some of a tape's rows there is no answer
        if kept.check().is_err() {
            return None;
        }
    }
    for group in found.groups.values_mut() {
        group.short |= group.vague.1 < found.vague;
    }
    (found.tapes > 0).then_some(found)
}

impl Found {
    /// The groups with most of `column` first.
    pub(super) fn sorted(&self, column: Column) -> Vec<&AddedCalls> {
        let mut groups: Vec<&AddedCalls> = self.groups.values().collect();
        groups.sort_by_cached_key(|group| {
            let stats = &group.stats;
            let value = column.of(stats);
            (std::cmp::Reverse((value, stats.total(), stats.calls)), group.whose.clone(), group.named.texts.clone())
        });
        groups
    }

    /// Which tapes they are of, and what is missing, above a table of text.
    ///
    /// # Errors
    /// The answer cannot be written.
    pub(super) fn head(&self, out: &mut Out) -> std::io::Result<()> {
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let (tapes, hosts) = (self.tapes, self.hosts.len());
        out.text([format!("{tapes} tape{} of {hosts} host{}", s(tapes), s(hosts))])?;
        out.text(self.incomplete.then_some(losses::AT_LEAST))?;
        out.text(self.losses.iter().chain(&self.counted).map(|text| format!("  {text}")))
    }

    /// The end of an answer: says the losses beside rows, which have no place for them.
    ///
    /// # Errors
    /// The answer cannot be written.
    pub(super) fn end(&self, out: &mut Out) -> Result<Verdict> {
        if !out.is_text() {
            self.losses.iter().for_each(|text| out.say(text));
        }
        out.flush()?;
        Ok(Verdict { lost: self.lost, bad: self.bad })
    }

    fn add(
        &mut self,
        config: &Config,
        path: &Path,
        (words, by): (&[&str], &[GroupKey]),
        kept: &mut Kept,
    ) -> Result<()> {
        let tape: Tape = open(path).map_err(|error| other::exact(error, path, config))?;
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
        let rows = table::rows(&sums, &knowledge, &context.question.book, &plan, Column::default());
        let lost = rows.lost();
        let is_vague = rows.iter().any(|row| row.stats.ledger_calls() > 0 && row.key.contains(&Value::Unknown));
        self.vague += usize::from(is_vague);
        for row in rows.iter() {
            let keys = RowKeys {
                words: KeyWords { session, book: &question.book, plan: &plan },
                values: &row.key,
                task: row.task,
            };
            let (identity, named) = identify(by, &keys);
            let new = || AddedCalls {
                whose: whose.clone(),
                named: named.clone(),
                stats: Stats::default(),
                short: false,
                vague: (0, 0),
            };
            let before = self.groups.len();
            let room = bytes(&identity, &named) + size_of::<AddedCalls>() + row.stats.heap();
            let group = self.groups.entry((whose.clone(), identity)).or_insert_with(new);
            group.named = group.named.agreed(&named);
            group.stats.merge(&row.stats);
            group.short |= row.short;
            if is_vague && group.vague.0 != self.vague {
                group.vague = (self.vague, group.vague.1 + 1);
            }
            if self.groups.len() > before && !kept.add(room) {
                return Ok(kept.check()?);
            }
        }
        coverage.tell(&mut context.question.loss);
        let of_sums = context.question.loss.of_sums();
        let losses = of_sums.lines(session, LOSS_LINES).into_iter().chain(knowledge.doubts());
        let of = |text: String| format!("{}: {text}", escaped(name.as_bytes()));
        self.losses.extend(losses.map(of));
        self.counted.extend(knowledge.counted(session).into_iter().map(of));
        self.incomplete |= !of_sums.complete() || knowledge.missing();
        self.lost |= !of_sums.complete() || lost;
        self.tapes += 1;
        self.hosts.insert(session.hostname.clone());
        Ok(())
    }
}

impl AddedCalls {
    /// Texts of its keys: those of tapes, then the others.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        let whose = self.whose.iter().map(|text| if text.is_empty() { "?".to_owned() } else { escaped(text) });
        whose.chain(self.named.texts.iter().cloned())
    }

    /// Sets the columns of its keys: `words`, then `by`.
    pub(super) fn set_keys(&self, row: &mut record::Row<'_>, words: &[&'static str], by: &[GroupKey]) {
        for (word, text) in words.iter().zip(&self.whose) {
            row.set(word, Some(text.clone()).filter(|text| !text.is_empty()));
        }
        let mut cells = self.named.cells.iter();
        by::fill(row, by, |_, _| cells.next().cloned().unwrap_or_default());
    }
}
