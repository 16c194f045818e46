//! `analyze probes`: how long functions that were probed, waits for locks of the kernel and page faults took: sums, or histograms as
//! funclatency prints them.

use std::cmp::Reverse;
use std::sync::Arc;

use anyhow::{Result, bail};
use rustc_hash::FxHashMap;
use systape_format::model::{CPU_NONE, Call, Dict, Family};
use systape_format::reader::Tape;
use systape_format::table::TableDef;
use systape_format::tables::TableRows;

use super::events::{file_names, name};
use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{AnswerFn, CPUS, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use systape_answers::derive::identities::FileNames;
use systape_answers::derive::numbers::Numbers;
use systape_answers::derive::stacks::of::duration;
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::plan::{Plan, RowPart};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::lines::events::picked::PickedEvents;
use systape_answers::render::by::{self, BY};
use systape_answers::render::cell::Cell;
use systape_answers::render::form::Format;
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::{Few, more};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;
use systape_events::group::value::{Key, Value};
use systape_events::group::{Add as _, Groups};
use systape_events::scan::Scan;
use systape_events::values::order::InOrder as _;

systape_format::tables! {
    /// One row for each table of the tape whose events have a duration (`uprobe:…`, `dns:…`, `lock:contention`), and for each value of the keys of `--by`, which
    /// stand before these columns; the one with most time first.
    pub PROBES = "probes" {
        event: Word key "its name: `dns:getaddrinfo`"
        count ? AtLeast: Count "its rows: calls that returned, waits that ended, faults"
        total_ns ? AtLeast: Duration "time in all of them"
        avg_ns ? OfKnown: Duration "mean of those whose duration is known; null: it is of none"
        max_ns ? AtLeast: Duration "the longest; null: likewise"
        untimed ? AtLeast: Count "those whose duration is not known: they are in none of the times"
        durations ? AtLeast: Nested "how many took how long, by the power of two that their duration in ns is in, `[{\"from\": 1024, \"to\": 2047, \"count\": 17}]`"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "probes",
    about: "How long probed functions, waits for locks of the kernel and page faults took: sums or histograms",
    options: &[TASKS, CPUS, &["time", "events", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze probes --hist -e 'uprobe:*'", "a histogram for each function, as funclatency"),
        ("analyze probes --by comm", "which programs called them, and for how long"),
    ],
    tables: &[Rows::of("probes", &[KeysPart(&BY), All(&PROBES)])],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// A histogram for each row
    #[arg(long)]
    hist: bool,

    #[command(flatten)]
    rank: Few,
}

/// The keys that rows can have.
const KNOWN: [GroupKey; 12] = GroupKey::of_task_and(&[GroupKey::Cpu]);

fn check(config: &Config) -> Result<()> {
    if config.filters.selects && config.calls {
        bail!("-e names tables here, such as 'uprobe:*'; how long syscalls took says 'analyze top --hist'");
    }
    let hist = config.own::<Options>()?.hist && config.format != Format::Text;
    refuse(&[(hist, "--hist")], "JSON and CSV have the histogram of each row")?;
    keys(config).map(drop)
}

fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    Ok(GroupKey::parse(&config.by, &KNOWN, "'analyze probes'")?)
}

/// The sums so far: by the keys of the plan, and the name of the table.
#[derive(Debug, Default)]
struct Sums {
    groups: Groups<Numbers>,
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
        let Some(at) = duration(&table.def) else { return };
        let Some(durations) = table.column(&table.def.columns[at].name) else { return };
        let picked = PickedEvents::new(table, &context.question.scope, dict);
        let event = Value::Text(Arc::from(table.def.name.as_bytes()));
        let mut times: FxHashMap<(Option<usize>, u32), Numbers> = FxHashMap::default();
        for row in picked.selected(&context.config.events, files, context.question.tape.session()) {
            let known = !table.is_unread(row, at);
            let cpu = if plan.has(GroupKey::Cpu) { picked.cpu(row).unwrap_or(CPU_NONE) } else { CPU_NONE };
            times.entry((picked.task(row), cpu)).or_default().add_one(Some(durations[row]).filter(|_| known));
        }
        for ((at, cpu), times) in times {
            let task = at.and_then(|at| Some((at, dict.tasks.get(at)?)));
            let unknown = || plan.keys().iter().map(|_| Value::Unknown).collect();
            let mut key: Key = task.map_or_else(unknown, |(_, task)| plan.key(task, Call::default()));
            plan.row(&mut key, RowPart { cpu, ..RowPart::default() }, |_| Value::Unknown);
            if let Some((at, task)) = task {
                self.labels.add(plan.whose_is(task), task, plan, (segment as u32, at as u32));
            }
            key.push(event.clone());
            self.groups.of(&key).add(&times);
        }
    }
}

/// Whether `def` is asked for.
fn asked(config: &Config, def: &TableDef) -> bool {
    duration(def).is_some() && (!config.filters.selects || config.events.has_table(&def.name))
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let by = keys(config)?;
    let own: Options = config.own()?;
    let mut families: Vec<Family> = Vec::new();
    for def in tape.table_defs().values().filter(|def| asked(config, def)) {
        let family = Family::of_table(&def.name);
        families.extend((!families.contains(&family)).then_some(family));
    }
    if families.is_empty() {
        bail!(
            "no functions were probed: record --probe dns, --uprobe FILE:FUNCTION->TYPE, --kprobe, --usdt, or --families lock, fault"
        );
    }
    let plan = Plan::by(&by).naming(tape.session());
    let mut context = Context::about(config, tape, &families)?;
    let mut sums = Sums::default();
    let files = file_names(&mut context)?;
    let coverage = Scan::candidates(&context.question).walk(
        "tables",
        |segment, dict| segment.tables(dict),
        |at, dict, tables| {
            let asked = tables.iter().filter(|table| asked(config, &table.def));
            asked.for_each(|table| sums.add(table, (&context, &files), (at, dict), &plan));
        },
    );
    coverage.tell(&mut context.question.loss);
    let words = KeyWords { session: tape.session(), book: &context.question.book, plan: &plan };
    let summed: Vec<(Key, &Numbers)> = sums.groups.iter().map(|(key, times)| (key.key(), times)).collect();
    let rows = summed.iter().filter_map(|(key, times)| {
        let (event, values) = key.split_last()?;
        Some((RowKeys { words, values, task: sums.labels.get(values, &plan) }, event, *times))
    });
    let mut rows: Vec<ProbeRow<'_>> = rows.collect();
    rows.order_by_key(|(keys, event, times)| (Reverse((times.total, times.count)), *event, keys.values));
    config.shown.rows(rows.len());
    let (limit, lost) = (config.few(own.rank), !context.question.loss.complete());
    losses::head(&context, losses::AT_LEAST, out)?;
    if own.hist && out.is_text() {
        histograms(&rows[..rows.len().min(limit)], &by, lost, out)?;
        out.text(more(rows.len(), limit))?;
    } else {
        let declared = with_keys(by::columns(&by), &PROBES);
        let headings = ["total ms", "count", "avg ms", "max ms"].into_iter().fold(Table::default(), Table::number);
        out.ranking(
            TopRows {
                table: &declared,
                judged: context.judged(),
                headings: by
                    .iter()
                    .fold(headings.word("event"), |table, by| table.word(by.heading()))
                    .leaving(&["avg ms", "max ms"]),
                all: rows.len(),
                limit,
            },
            rows.iter(),
            |(keys, event, times): &ProbeRow<'_>| {
                let mut row = Row::new(&declared);
                by::fill(&mut row, &by, |by, name| keys.cell(by, name).into_owned());
                let short = times.unknown() > 0;
                row.set("event", name(event)).set("count", times.count).bound("total_ns", times.total, short);
                row.bound("avg_ns", mean(times), short);
                row.bound("max_ns", times.max(), short).set("untimed", times.unknown());
                row.bound("durations", Cell::Spelled(times.hist.json(), times.hist.words()), short);
                row
            },
            |row: &ProbeRow<'_>| cells(row, &by, lost),
        )?;
    }
    out.text(without_duration(tape).filter(|_| rows.is_empty()))?;
    losses::end_of_sums(&context, out)
}

/// The keys of a row, the name of its events, and what they took.
type ProbeRow<'a> = (RowKeys<'a>, &'a Value, &'a Numbers);

/// What is said when no row has a duration, but the tape has events of these families that have none.
fn without_duration(tape: &Tape) -> Option<String> {
    let of_probes = |def: &&Arc<TableDef>| matches!(Family::of_table(&def.name), Family::Fault | Family::Lock);
    let mut names: Vec<&str> = tape
        .table_defs()
        .values()
        .filter(of_probes)
        .filter(|def| duration(def).is_none())
        .map(|def| &*def.name)
        .collect();
    names.sort_unstable();
    let first = names.first()?;
    Some(format!("no event with a duration; {} has none: analyze top -e {first}", names.join(", ")))
}

/// Of the known durations, whole ns.
fn mean(times: &Numbers) -> Option<u64> {
    times.total.checked_div(times.known)
}

fn cells((keys, event, times): &ProbeRow<'_>, by: &[GroupKey], lost: bool) -> Vec<String> {
    let (lead, short) = (mark::at_least(lost), lost || times.unknown() > 0);
    let text = |ns: Option<u64>, lead: &str| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, lead));
    let mut cells = vec![millis(times.total, mark::at_least(short)), format!("{lead}{}", times.count)];
    cells.extend([text(mean(times), mark::about(short)), text(times.max(), mark::at_least(short)), name(event)]);
    cells.extend(by.iter().map(|by| keys.text(*by)));
    cells
}

/// As funclatency prints them.
fn histograms(rows: &[ProbeRow<'_>], by: &[GroupKey], lost: bool, out: &mut Out) -> Result<()> {
    for (keys, event, times) in rows {
        let named = by.iter().map(|by| format!(", {} = {}", by.heading(), keys.text(*by)));
        line(out, &format!("{}{}", name(event), named.collect::<String>()))?;
        times.hist.print(out, "nsecs")?;
        let lead = mark::at_least(lost);
        let avg = mean(times).map_or_else(|| "?".to_owned(), |avg| format!("{}{avg}", mark::about(lost)));
        let unknown =
            if times.unknown() > 0 { format!(", {} of unknown duration", times.unknown()) } else { String::new() };
        let text =
            format!("avg = {avg} nsecs, total: {lead}{} nsecs, count: {lead}{}{unknown}\n", times.total, times.count);
        line(out, &text)?;
    }
    Ok(())
}
