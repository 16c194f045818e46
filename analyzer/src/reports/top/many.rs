//! `analyze top` of several tapes: the sums of all of them together, or by host and tape.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::Result;

use super::{Options, SHARE, Shares};
use crate::asked::config::Config;
use crate::reports::added;
use crate::reports::measured::{SUMMARY, measures};
use crate::reports::named::TAPES;
use systape_answers::derive::summary::table::Row;
use systape_answers::render::by;
use systape_answers::render::keys::{columns, with_keys, with_parts};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{self as record, Judgement};
use systape_answers::render::table::Table;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;

/// Prints the answer of `tapes`.
pub(super) fn answer(
    config: &Config,
    tapes: &[PathBuf],
    own: &Options,
    by: &[GroupKey],
    out: &mut Out,
) -> Result<Verdict> {
    let words = added::words(config);
    let Some(found) = added::find(config, tapes, &words, by, out) else {
        return Ok(Verdict { lost: false, bad: true });
    };
    let groups = found.sorted(own.metric);
    let shares = Shares::new(
        own.metric,
        groups.iter().map(|group| (Cow::Borrowed(&group.stats), group.short)),
        found.incomplete,
    );
    let keys = columns(&TAPES, words.iter().copied()).into_iter().chain(by::columns(by));
    let table = with_keys(keys, &with_parts(&SUMMARY, [&SHARE]));
    let headings = words.iter().copied().chain(by.iter().map(|by| by.heading()));
    found.head(out)?;
    out.ranking(
        TopRows {
            table: &table,
            judged: Judgement::Touched(found.incomplete),
            headings: headings.fold(shares.headings(), Table::word),
            all: groups.len(),
            limit: config.few(own.rank),
        },
        groups.iter(),
        |group| {
            let mut row = record::Row::short_if(group.short, &table);
            group.set_keys(&mut row, &words, by);
            measures(&mut row, &group.stats);
            shares.set(&mut row, &group.stats);
            row
        },
        |group| {
            let mut cells = shares.cells(&Row::of_all(&group.stats, group.short), found.incomplete);
            cells.extend(group.texts());
            cells
        },
    )?;
    found.end(out)
}
