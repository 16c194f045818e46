//! The summary of several tapes by host or tape, and by other keys: the sums of all of one key.

use std::path::PathBuf;

use anyhow::Result;

use super::{ERRNOS, NARROW, Options, errnos, errnos_text, keys};
use crate::asked::config::{Config, refuse};
use crate::asked::sort::Sort;
use crate::reports::added;
use crate::reports::measured::{SUMMARY, measured, measures};
use crate::reports::named::TAPES;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::table::Row;
use systape_answers::render::by;
use systape_answers::render::keys::{columns, with_keys, with_parts};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{self as record, Judgement};
use systape_answers::render::table::Table;
use systape_answers::values::say::Verdict;

/// Options without effect on sums of several tapes.
pub(super) fn check(config: &Config) -> Result<()> {
    let of_one = [(config.bare_cpu(), "--cpu"), (!config.events.is_empty(), "-e with other events than calls")];
    refuse(&of_one, "several tapes have one sum by host or tape")?;
    added::check(config, &keys(config, &config.own()?)?.0)
}

/// Prints the answer of `tapes`.
pub(in crate::reports) fn run(config: &Config, tapes: &[PathBuf], out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let ((by, _), words) = (keys(config, &own)?, added::words(config));
    let Some(found) = added::find(config, tapes, &words, &by, out) else {
        return Ok(Verdict { lost: false, bad: true });
    };
    let column = match config.sort {
        Some(Sort::Sums(column)) => column,
        _ => Column::default(),
    };
    let groups = found.sorted(column);
    found.head(out)?;
    let keys = columns(&TAPES, words.iter().copied()).into_iter().chain(by::columns(&by));
    let table = with_keys(keys, &with_parts(&SUMMARY, Some(&ERRNOS).filter(|_| own.errno_summary)));
    let names = ["calls", "errors", "total ms", "min ms", "avg ms", "max ms", "stddev %", "p50 ms", "p99 ms"];
    let last = own.errno_summary.then_some("errnos");
    let headings = words.iter().copied().chain(by.iter().map(|by| by.heading())).chain(last);
    out.ranking(
        TopRows {
            table: &table,
            judged: Judgement::Touched(found.incomplete),
            headings: headings
                .fold(names.into_iter().fold(Table::default(), Table::number), Table::word)
                .leaving(NARROW),
            all: groups.len(),
            limit: usize::MAX,
        },
        groups.iter(),
        |group| {
            let mut row = record::Row::short_if(group.short, &table);
            group.set_keys(&mut row, &words, &by);
            measures(&mut row, &group.stats);
            if own.errno_summary {
                row.set("errnos", errnos(&group.stats));
            }
            row
        },
        |group| {
            let row = Row::of_all(&group.stats, group.short);
            let mut cells = measured(&row, found.incomplete || group.short);
            cells.extend(group.texts());
            cells.extend(own.errno_summary.then(|| errnos_text(&group.stats)));
            cells
        },
    )?;
    found.end(out)
}
