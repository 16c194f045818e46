//! `analyze top` of several tapes: the sums of all of them together, or by host and tape.

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use super::{Options, SHARE, Shares};
use crate::asked::config::Config;
use crate::reports::added::{self, AddedCalls, Found};
use crate::reports::measured::{SUMMARY, measures};
use crate::reports::named::TAPES;
use systape_answers::derive::summary::table::Row;
use systape_answers::render::by;
use systape_answers::render::keys::{columns, with_keys, with_parts};
use systape_answers::render::out::Out;
use systape_answers::render::rank;
use systape_answers::render::row::{self as record, Judgement};
use systape_answers::values::output::line;
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
    config.shown.rows(groups.len());
    let shares = Shares::new(
        own.metric,
        groups.iter().map(|group| (Cow::Borrowed(&group.stats), group.short)),
        found.incomplete,
    );
    let limit = config.few(own.rank);
    let shown = Shown { words: &words, by, shares, found: &found };
    if out.is_text() {
        shown.text(&groups, limit, out)?;
    } else {
        shown.rows(&groups[..groups.len().min(limit)], out)?;
        found.say(out);
    }
    out.flush()?;
    Ok(Verdict { lost: found.lost, bad: found.bad })
}

struct Shown<'a> {
    words: &'a [&'static str],
    by: &'a [GroupKey],
    shares: Shares,
    found: &'a Found,
}

impl Shown<'_> {
    fn text(&self, groups: &[&AddedCalls], limit: usize, out: &mut Out) -> Result<()> {
        self.found.head(out)?;
        let mut table = self.shares.headings();
        table = self.words.iter().fold(table, |table, word| table.word(word));
        table = self.by.iter().fold(table, |table, by| table.word(by.heading()));
        for group in groups.iter().take(limit) {
            let row = Row::of_all(&group.stats, group.short);
            let mut cells = self.shares.cells(&row, self.found.incomplete);
            cells.extend(group.texts());
            table.row(cells);
        }
        table.print(out)?;
        rank::more(groups.len(), limit).iter().try_for_each(|text| line(out, text))?;
        Ok(())
    }

    fn rows(&self, groups: &[&AddedCalls], out: &mut Out) -> Result<()> {
        let keys = columns(&TAPES, self.words.iter().copied()).into_iter().chain(by::columns(self.by));
        let table = with_keys(keys, &with_parts(&SUMMARY, [&SHARE]));
        let records = groups.iter().map(|group| {
            let mut row = record::Row::short_if(group.short, &table);
            group.set_keys(&mut row, self.words, self.by);
            measures(&mut row, &group.stats);
            self.shares.set(&mut row, &group.stats);
            row
        });
        out.rows(&table, Judgement::Touched(self.found.incomplete), records)?;
        Ok(())
    }
}
