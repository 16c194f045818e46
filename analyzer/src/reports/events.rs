//! Events of tables by task, or by other keys: the part of a summary for `-e FAMILY:EVENT`.

use std::sync::Arc;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::class::Class;
use systape_format::model::{CPU_NONE, Call, Dict};
use systape_format::reader::Tape;
use systape_format::table::Type;
use systape_format::tables::TableRows;

use super::{Context, losses};
use crate::asked::config::Config;
use systape_answers::derive::identities::FileNames;
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::plan::{Plan, RowPart};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::lines::events::picked::PickedEvents;
use systape_answers::render::by;
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::Table;
use systape_events::group::Add;
use systape_events::group::by::GroupKey;
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Ordered, Parts, Spilling};
use systape_events::group::value::{Key, Value};
use systape_events::scan::{Coverage, Scan};
use systape_events::values::spill::{Store, Stored, put_number, take_u64};

systape_format::tables! {
    /// With `-e FAMILY:EVENT` that names a table of the tape: one row for each table and value of the keys, which stand before these columns
    /// (`pid tid upid utid comm` without `--by`), the most events first. They stand behind the rows of calls, if calls are asked for too.
    pub EVENTS = "summary_events" {
        event: Word key "its name: `exceptions:page_fault_user`"
        count ? AtLeast: Count "events"
    }
}

/// The keys that events can have. The file is that of the table's first column with a path.
const KNOWN: [GroupKey; 15] = GroupKey::of_task_and(&[GroupKey::Cpu, GroupKey::File, GroupKey::Dir, GroupKey::Ext]);

/// The keys in `config`.
///
/// # Errors
/// Events do not have such a key.
pub(crate) fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    let by = GroupKey::parse(&config.by, &KNOWN, "a summary of events of tables")?;
    Ok(if by.is_empty() { vec![GroupKey::Tid] } else { by })
}

/// Events of one table and key.
#[derive(Clone, Debug, Default)]
struct Count(u64);

impl Add for Count {
    fn add(&mut self, other: &Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Stored for Count {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.0.into(), out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        take_u64(from).map(Self)
    }

    fn heap(&self) -> usize {
        0
    }
}

/// Names of the files that filters on fields may be about.
pub(super) fn file_names(context: &mut Context<'_>) -> Result<FileNames> {
    if !context.config.events.has_filters() {
        return Ok(FileNames::default());
    }
    let (files, coverage) = FileNames::read(context.question.tape);
    coverage.tell(&mut context.question.loss);
    Ok(files)
}

/// The sums so far.
#[derive(Debug)]
struct Sums {
    /// By the keys of the plan, and the name of the event.
    groups: Spilling<Count>,
    labels: Labels,
}

impl Sums {
    /// Adds the passing rows of a segment's table.
    fn add(
        &mut self,
        table: &TableRows,
        (context, files): (&Context<'_>, &FileNames),
        (segment, dict): (usize, &Dict),
        plan: &Plan,
    ) {
        let picked = PickedEvents::new(table, &context.question.scope, dict);
        let mut counts: FxHashMap<(Option<usize>, u32, u64), u64> = FxHashMap::default();
        let paths = plan.by_file().then(|| paths(table)).flatten();
        for row in picked.selected(&context.config.events, files, context.question.tape.session()) {
            let cpu = if plan.has(GroupKey::Cpu) { picked.cpu(row).unwrap_or(CPU_NONE) } else { CPU_NONE };
            let path = paths.and_then(|paths| paths.get(row)).copied().unwrap_or(0);
            *counts.entry((picked.task(row), cpu, path)).or_default() += 1;
        }
        let event = Value::Text(Arc::from(table.def.name.as_bytes()));
        for ((at, cpu, path), count) in counts {
            let task = at.and_then(|at| dict.tasks.get(at));
            let unknown = || plan.keys().iter().map(|_| Value::Unknown).collect();
            let mut key: Key = task.map_or_else(unknown, |task| plan.key(task, Call::default()));
            let file = |_| match (paths, table.string(path)) {
                (None, _) => Value::None,
                (Some(_), Some(path)) => Value::Text(path.into()),
                (Some(_), None) => Value::Unknown,
            };
            plan.row(&mut key, RowPart { cpu, ..RowPart::default() }, file);
            if let (Some(task), Some(at)) = (task, at) {
                self.labels.add(plan.whose_is(task), task, plan, (segment as u32, at as u32));
            }
            let key: Key = key.into_iter().chain([event.clone()]).collect();
            self.groups.groups.of(&key).add(&Count(count));
            self.groups.relieve(1, 0);
        }
    }
}

/// The first column of a table that has paths; None = it has none.
fn paths(table: &TableRows) -> Option<&[u64]> {
    let columns = table.def.columns.iter().skip(1);
    let mut paths = columns.filter(|column| column.ty == Type::Str && column.class == Some(Class::Path));
    table.column(&paths.next()?.name)
}

/// Counts the rows of the selected tables.
fn collect(context: &Context<'_>, files: &FileNames, plan: &Plan) -> Result<(Sums, Coverage)> {
    let question = &context.question;
    let mut sums = Sums { groups: Spilling::new(Store::of_process(), 1), labels: Labels::default() };
    let coverage = Scan::candidates(question).walk(
        "tables",
        |segment, dict| segment.tables(dict),
        |at, dict, tables| {
            let asked = tables.iter().filter(|table| context.config.events.has_table(&table.def.name));
            asked.for_each(|table| sums.add(table, (context, files), (at, dict), plan));
        },
    );
    Ok((sums, coverage))
}

/// Prints them; returns whether some are missing.
pub(crate) fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<bool> {
    let by = keys(config)?;
    let plan = Plan::by(&by).naming(tape.session());
    // what calls lack does not touch them
    let mut context = Context::about(config, tape, &config.events.families())?;
    let files = file_names(&mut context)?;
    let (sums, coverage) = collect(&context, &files, &plan)?;
    coverage.tell(&mut context.question.loss);
    let words = KeyWords { session: tape.session(), book: &context.question.book, plan: &plan };
    let Sums { groups, labels } = sums;
    let parts = Parts::of(vec![groups]);
    let mut total = 0_u64;
    let rank = |_: Packed<'_>, count: &Count| {
        total = total.saturating_add(count.0);
        Some(count.0)
    };
    let rows = Ordered::new(&parts, rank, |(one, _), (other, _)| {
        let (one, other) = (one.key(), other.key());
        one.last().cmp(&other.last()).then_with(|| one.cmp(&other))
    });
    config.shown.rows(rows.len());
    let lost = !context.question.loss.complete();
    losses::head(&context, "Events are missing: counts are lower bounds.", out)?;
    let least = mark::at_least(lost);
    out.text([format!("Events: {least}{total}")])?;
    if rows.len() == 0 && out.is_text() {
        return Ok(lost);
    }
    let declared = with_keys(by::columns(&by), &EVENTS);
    let headings = Table::default().number("events").word("event");
    out.ranking(
        TopRows {
            table: &declared,
            judged: context.judged(),
            headings: by.iter().fold(headings, |table, by| table.word(by.heading())),
            all: rows.len(),
            limit: usize::MAX,
        },
        rows.iter().map(|entry| (entry.key().key(), entry.sum.0)),
        |(key, count): (Key, u64)| {
            let (event, values) = key.split_last().unwrap_or((&Value::Unknown, &[]));
            let keys = RowKeys { words, values, task: labels.get(values, &plan) };
            let mut row = Row::new(&declared);
            by::fill(&mut row, &by, |by, name| keys.cell(by, name).into_owned());
            row.set("event", name(event)).set("count", count);
            row
        },
        |(key, count): (Key, u64)| {
            let (event, values) = key.split_last().unwrap_or((&Value::Unknown, &[]));
            let keys = RowKeys { words, values, task: labels.get(values, &plan) };
            [format!("{least}{count}"), name(event)].into_iter().chain(by.iter().map(|by| keys.text(*by))).collect()
        },
    )?;
    Ok(lost)
}

/// The name of a table, the last of the values of a group.
pub(super) fn name(event: &Value) -> String {
    match event {
        Value::Text(name) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    }
}
