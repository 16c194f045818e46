//! Rows of `analyze top` by fields: of other events than calls ([`super::events`]), and of calls by their arguments ([`super::args`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::Map;
use systape_format::model::{CPU_NONE, Call, Task};

use crate::reports::{Context, losses};
use systape_answers::catalogue::shape::Shape;
use systape_answers::derive::numbers::Numbers;
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::plan::{Plan, RowPart};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::json;
use systape_answers::render::keys::{with_keys, with_parts};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank::{self, Few};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::group::Add;
use systape_events::group::by::GroupKey;
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Ordered, Parts, Spilling};
use systape_events::group::value::{Key, Value};
use systape_events::values::spill::{Store, Stored};
use systape_events::values::words::escaped;

systape_format::tables! {
    /// With `-e EVENTS`, which names other events than calls: one row for each event and value of the keys. Those of `--by` that a task
    /// or a time has stand before these columns, fields of events are in `fields`.
    pub TOP_EVENTS = "top_events" {
        event: Word key "its name: `sched:sched_switch`"
        fields: Nested key "the fields that are keys, as the listing has them in `args`, of calls as their text: `{\"prev_state\": \"S\"}`; \"\": it has no such field, or did not return; null: not known"
        count ? AtLeast: Count "events"
        value: Word "the field that is added up (`--value`); null: none"
        measured ? AtLeast: Count "events in which it is a number, not below 0; null: nothing is added up, as in the columns below"
        total ? AtLeast: Count "sum of these numbers"
        avg ? OfKnown: Real "their mean; null: there are none"
        max ? AtLeast: Count "the greatest; null: likewise"
        share_percent ? OfKnown: Real "share of the metric that all rows have; null: it does not add up, or is 0"
    }
    /// With `--hist` also:
    pub VALUES = "top_values" {
        values ? AtLeast: Nested "these numbers by the power of two that they are in, `[{\"from\": 1024, \"to\": 2047, \"count\": 17}]`"
    }
}

/// The keys that an event has beside its fields.
const KNOWN: [GroupKey; 14] = GroupKey::of_task_and(&[GroupKey::Cpu, GroupKey::Second, GroupKey::Minute]);
/// Fields that are added up without `--value`, the first that an event has.
pub(super) const DURATIONS: [&str; 2] = ["dur_ns", "dur"];
/// Words before the name of a field that is also a key of tasks.
pub(super) const ARGS: &str = "args.";

/// What rows are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopMetric {
    /// How many events.
    Count,
    /// What the value adds up to; without one as [`Self::Count`].
    Total,
    /// Mean of the field.
    Avg,
    /// The greatest.
    Max,
}

/// What is asked beside the filters.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub metric: TopMetric,
    pub hist: bool,
    /// Field that is added up.
    pub value: Option<&'a str>,
    pub rank: Few,
}

/// Keys in the order of `--by`.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Keys of tasks and times.
    pub by: Vec<GroupKey>,
    /// Names of fields.
    pub fields: Vec<String>,
    /// The order: whether the next is a field.
    is_field: Vec<bool>,
}

impl Wanted {
    pub(super) fn new(words: &[String]) -> Self {
        let mut wanted = Self { by: Vec::new(), fields: Vec::new(), is_field: Vec::new() };
        for word in words {
            let of_task =
                GroupKey::parse(std::slice::from_ref(word), &KNOWN, "").ok().and_then(|by| by.first().copied());
            let field = word.strip_prefix(ARGS).unwrap_or(word).to_owned();
            let known = match of_task {
                Some(by) => wanted.by.contains(&by),
                None => wanted.fields.contains(&field),
            };
            if !known {
                wanted.is_field.push(of_task.is_none());
                of_task.map_or_else(|| wanted.fields.push(field), |by| wanted.by.push(by));
            }
        }
        if words.is_empty() {
            wanted.by.push(GroupKey::Comm);
            wanted.is_field.push(false);
        }
        wanted
    }
}

/// Events of one key.
#[derive(Clone, Debug, Default)]
struct Sum {
    numbers: Numbers,
    /// The field that was added up, if `--value` names none.
    duration: Option<&'static str>,
}

impl Add for Sum {
    fn add(&mut self, other: &Self) {
        self.numbers.add(&other.numbers);
        self.duration = self.duration.or(other.duration);
    }
}

impl Stored for Sum {
    fn put(&self, out: &mut Vec<u8>) {
        self.numbers.put(out);
        let duration = DURATIONS.into_iter().position(|name| Some(name) == self.duration);
        out.push(duration.map_or(0, |at| 1 + at as u8));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let numbers = Numbers::take(from)?;
        let duration = usize::from(*from.split_off_first()?).checked_sub(1).and_then(|at| DURATIONS.get(at).copied());
        Some(Self { numbers, duration })
    }

    fn heap(&self) -> usize {
        self.numbers.heap()
    }
}

impl Sum {
    /// What it is ranked by; None: it has no such value.
    fn of(&self, metric: TopMetric) -> Option<f64> {
        let numbers = &self.numbers;
        match metric {
            TopMetric::Count => Some(numbers.count as f64),
            TopMetric::Total => (numbers.known > 0).then_some(numbers.total as f64),
            TopMetric::Avg => numbers.avg(),
            TopMetric::Max => numbers.max().map(|max| max as f64),
        }
    }
}

/// An event, beside its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenEvent<'a> {
    /// Name of the event.
    pub name: &'a str,
    pub task: Option<&'a Task>,
    pub cpu: Option<u32>,
    /// Second of the recording; None: not known.
    pub second: Option<u32>,
    /// Segment, and place in it.
    pub place: (u32, u32),
}

/// Sums by the keys of the plan, the fields, and the name of the event.
#[derive(Debug, Default)]
pub(super) struct Sums {
    groups: Spilling<Sum>,
    labels: Labels,
    /// Names of the fields of all events that were met.
    fields: BTreeSet<String>,
    /// Shape of the last of them.
    shape: Option<Shape>,
    /// Some of what is added up is known.
    measured: bool,
}

impl Sums {
    /// Sums of all segments, with the memory of the process.
    pub(super) fn of_all() -> Self {
        Self { groups: Spilling::new(Store::of_process(), 1), ..Self::default() }
    }

    /// Adds one: `fields` are the values of the fields that are keys, `number` what is added up, with the field's name if `--value` names none.
    pub(super) fn add(
        &mut self,
        seen: &SeenEvent<'_>,
        fields: impl Iterator<Item = Value>,
        (number, duration): (Option<u64>, Option<&'static str>),
        plan: &Plan,
    ) {
        let unknown = || plan.keys().iter().map(|_| Value::Unknown).collect();
        let mut key: Key = seen.task.map_or_else(unknown, |task| plan.key(task, Call::default()));
        let part = RowPart { cpu: seen.cpu.unwrap_or(CPU_NONE), second: seen.second, ..RowPart::default() };
        plan.row(&mut key, part, |_| Value::None);
        key.extend(fields);
        key.push(Value::Text(Arc::from(seen.name.as_bytes())));
        if let Some(task) = seen.task {
            self.labels.add(plan.whose_is(task), task, plan, seen.place);
        }
        let sum = self.groups.groups.of(&key);
        sum.numbers.add_one(number);
        sum.duration = duration.or(sum.duration);
        self.measured |= number.is_some();
    }

    /// There are events of this shape.
    pub(super) fn has_shape(&mut self, shape: &Shape) {
        if self.shape.as_ref() != Some(shape) {
            shape.fields.iter().for_each(|field| self.has_field(&field.name));
            self.shape = Some(shape.clone());
        }
    }

    /// There are events with a field of this name.
    pub(super) fn has_field(&mut self, name: &str) {
        if !self.fields.contains(name) {
            self.fields.insert(name.to_owned());
        }
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        let changes = other.groups.groups.len();
        self.groups.groups.merge(&mut other.groups.groups);
        self.groups.relieve(changes, 0);
        self.labels.merge(&mut other.labels);
        self.fields.append(&mut other.fields);
        self.measured |= other.measured;
    }
}

/// The name of a field, as `--by` takes it.
fn as_typed(field: &str) -> String {
    let taken = KNOWN.iter().any(|by| by.name() == field);
    if taken { format!("{ARGS}{field}") } else { field.to_owned() }
}

/// A key in text.
fn text_of(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => escaped(text),
        Value::None => "-".to_owned(),
        _ => "?".to_owned(),
    }
}

fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(number) => (*number).into(),
        Value::Text(text) => json::bytes(text),
        // as of other keys: there is none
        Value::None => "".into(),
        _ => serde_json::Value::Null,
    }
}

/// One row.
struct Line<'a> {
    keys: RowKeys<'a>,
    fields: &'a [Value],
    event: &'a Value,
    sum: &'a Sum,
}

/// A key and its sum.
type Kept<'a> = (Key, Cow<'a, Sum>);

/// Prints the answer of `sums`, which hold all that `context` asks for.
pub(super) fn print(
    context: &Context<'_>,
    wanted: &Wanted,
    asked: &Asked<'_>,
    (sums, plan): (Sums, &Plan),
    out: &mut Out,
) -> Result<Verdict> {
    let config = context.config;
    let Sums { groups, labels, fields, measured, .. } = sums;
    let parts = Parts::of(vec![groups]);
    // without a value to add up all are counted
    let metric = if measured { asked.metric } else { TopMetric::Count };
    let mut all = 0_u128;
    let rank = |_: Packed<'_>, sum: &Sum| {
        all += match metric {
            TopMetric::Count => sum.numbers.count.into(),
            TopMetric::Total => sum.numbers.total.into(),
            TopMetric::Avg | TopMetric::Max => 0,
        };
        // of numbers that are not below 0 the greater has the greater bits; what has none is last
        Some(sum.of(metric).map_or(0, |value| value.to_bits() + 1))
    };
    let rows = Ordered::new(&parts, rank, |(one, x), (other, y)| {
        let (one, other) = (one.key(), other.key());
        let order = y.numbers.count.cmp(&x.numbers.count);
        order.then_with(|| one.last().cmp(&other.last())).then_with(|| one.cmp(&other))
    });
    let named = wanted.fields.iter().map(|name| ("--by", name.as_str()));
    if rows.len() > 0 {
        known(&fields, named.chain(asked.value.map(|name| ("--value", name))))?;
        if matches!(asked.metric, TopMetric::Avg | TopMetric::Max) && !measured {
            bail!(BadUsage(
                "these events have no duration: --value names the field of which --metric is meant".to_owned()
            ));
        }
    }
    config.shown.rows(rows.len());
    let words = KeyWords { session: context.question.tape.session(), book: &context.question.book, plan };
    let shown = Shown { context, wanted, asked, metric, all: all as f64, words, labels: &labels };
    let few = rows.iter().map(|entry| (entry.key().key(), entry.sum)).take(shown.limit());
    if out.is_text() {
        shown.text(few, rows.len(), out)?;
    } else {
        shown.rows(few, out)?;
    }
    losses::end_of_sums(context, out)
}

/// Most names that begin with what was typed, in a message.
const NEAR: usize = 3;

/// Refuses a field that no event has, of events of which there are some.
fn known<'a>(fields: &BTreeSet<String>, named: impl Iterator<Item = (&'static str, &'a str)>) -> Result<()> {
    for (option, name) in named {
        if !fields.contains(name) {
            let there: Vec<&str> = fields.iter().map(String::as_str).collect();
            let keys: Vec<&str> = KNOWN.iter().map(|by| by.name()).collect();
            let keys = if option == "--by" { format!(", and each has {}", keys.join(", ")) } else { String::new() };
            // a listing prints a part of some names: `sig` of `signal` and `signal_name`
            let typed = name.rsplit('.').next().unwrap_or(name);
            let mut near = systape_abi::nearest(typed, there.iter().copied());
            near.extend(there.iter().filter(|there| there.starts_with(typed)).take(NEAR));
            near.dedup();
            let near = if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(", ")) };
            bail!(BadUsage(format!("{option} {name}: {near}these events have {}{keys}", there.join(", "))));
        }
    }
    Ok(())
}

struct Shown<'a> {
    context: &'a Context<'a>,
    wanted: &'a Wanted,
    asked: &'a Asked<'a>,
    metric: TopMetric,
    /// Of the metric of all rows the sum; 0: it does not add up.
    all: f64,
    words: KeyWords<'a>,
    labels: &'a Labels,
}

impl Shown<'_> {
    fn lost(&self) -> bool {
        !self.context.question.loss.complete()
    }

    /// Whether what is added up is a time in ns.
    fn is_time(&self, sum: &Sum) -> bool {
        self.asked.value.map_or(sum.duration.is_some(), |name| name.ends_with("_ns") || DURATIONS.contains(&name))
    }

    fn line<'x>(&'x self, (key, sum): &'x Kept<'_>) -> Line<'x> {
        let plan = self.words.plan;
        let (event, key) = key.split_last().unwrap_or((&Value::Unknown, &[]));
        let (values, fields) = key.split_at(plan.keys().len().min(key.len()));
        Line { keys: RowKeys { words: self.words, values, task: self.labels.get(values, plan) }, fields, event, sum }
    }

    fn limit(&self) -> usize {
        self.context.config.few(self.asked.rank)
    }

    /// Share of a row in all; None: there is none.
    fn share(&self, row: &Line<'_>) -> Option<f64> {
        let value = row.sum.of(self.metric)?;
        (self.all > 0.0).then(|| value / self.all)
    }

    /// The keys of a row as text, in the order of `--by`.
    fn keys(&self, row: &Line<'_>) -> Vec<String> {
        let (mut by, mut fields) = (self.wanted.by.iter(), row.fields.iter());
        let next = |is_field: &bool| {
            if *is_field { fields.next().map(text_of) } else { by.next().map(|by| row.keys.text(*by)) }
        };
        self.wanted.is_field.iter().filter_map(next).collect()
    }

    fn headings(&self) -> Vec<String> {
        let (mut by, mut fields) = (self.wanted.by.iter(), self.wanted.fields.iter());
        let next = |is_field: &bool| {
            if *is_field {
                fields.next().map(|name| as_typed(name))
            } else {
                by.next().map(|by| by.heading().to_owned())
            }
        };
        self.wanted.is_field.iter().filter_map(next).collect()
    }

    /// The first rows of `count`.
    fn text<'s>(&self, rows: impl Iterator<Item = Kept<'s>> + Clone, count: usize, out: &mut Out) -> Result<()> {
        losses::head(self.context, losses::AT_LEAST, out)?;
        if self.asked.hist {
            rows.clone().try_for_each(|row| self.histogram(&self.line(&row), out))?;
        } else {
            self.table(rows, out)?;
        }
        rank::more(count, self.limit()).iter().try_for_each(|text| line(out, text))?;
        Ok(())
    }

    fn table<'s>(&self, rows: impl Iterator<Item = Kept<'s>> + Clone, out: &mut Out) -> Result<()> {
        let (mut measured, mut is_time, mut highest) = (false, true, 0.0_f64);
        for (_, sum) in rows.clone() {
            measured |= sum.numbers.known > 0;
            is_time &= self.is_time(&sum) || sum.numbers.known == 0;
            highest = highest.max(sum.of(self.metric).unwrap_or(0.0));
        }
        let name = self.asked.value.unwrap_or("time");
        let unit = if is_time { "ms" } else { name };
        let mut table = Table::default();
        if self.all > 0.0 {
            table = table.number("share");
        }
        table = table.word(match self.metric {
            TopMetric::Count => "of events",
            TopMetric::Total => "of total",
            TopMetric::Avg => "avg",
            TopMetric::Max => "max",
        });
        if measured {
            table = table.number(&format!("total {unit}"));
        }
        table = table.number("events");
        if measured {
            table = table.number(&format!("avg {unit}")).number(&format!("max {unit}"));
        }
        table = table.word("event");
        table = self.headings().iter().fold(table, |table, heading| table.word(heading));
        let of = ["of events", "of total", "avg", "max"];
        let [avg, max] = [format!("avg {unit}"), format!("max {unit}")];
        table = table.leaving(&[of[0], of[1], of[2], of[3], &avg, &max, "share"]);
        let lost = self.lost();
        let value = |value: u64, lead: &str| if is_time { millis(value, lead) } else { format!("{lead}{value}") };
        let cells = |kept: Kept<'_>| -> Vec<String> {
            let row = &self.line(&kept);
            let share = self.share(row);
            let mut cells = Vec::new();
            if self.all > 0.0 {
                let percent = |part: f64| format!("{}{:.1}%", mark::about(lost), 100.0 * part);
                cells.push(share.map_or_else(|| "-".to_owned(), percent));
            }
            let of_highest = row.sum.of(self.metric).filter(|_| highest > 0.0).map_or(0.0, |value| value / highest);
            cells.push(super::bar(share.unwrap_or(of_highest)));
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let known = row.sum.numbers.known > 0;
            if measured {
                cells.push(or_none(known.then(|| value(row.sum.numbers.total, mark::at_least(lost)))));
            }
            cells.push(format!("{}{}", mark::at_least(lost), row.sum.numbers.count));
            if measured {
                cells.push(or_none(row.sum.numbers.avg().map(|avg| value(avg.round() as u64, mark::about(lost)))));
                cells.push(or_none(row.sum.numbers.max().map(|max| value(max, mark::at_least(lost)))));
            }
            cells.push(text_of(row.event));
            cells.extend(self.keys(row));
            cells
        };
        table.print_rows(rows.map(cells), out)?;
        Ok(())
    }

    /// A row and its values, as bpftrace prints a map of histograms.
    fn histogram(&self, row: &Line<'_>, out: &mut Out) -> Result<()> {
        let named = self.headings().into_iter().zip(self.keys(row));
        let named: String = named.map(|(heading, text)| format!(", {heading} {text}")).collect();
        let s = if row.sum.numbers.count == 1 { "" } else { "s" };
        let lead = mark::at_least(self.lost());
        let unit = if self.is_time(row.sum) { "times in ns" } else { self.asked.value.unwrap_or("values") };
        line(out, &format!("{}{named}: {lead}{} event{s}, {unit}", text_of(row.event), row.sum.numbers.count))?;
        if row.sum.numbers.known == 0 {
            line(out, "(none has a number to be added up: --value names a field)")?;
        }
        row.sum.numbers.hist.print_powers(out)?;
        line(out, "")?;
        Ok(())
    }

    fn rows<'s>(&self, rows: impl Iterator<Item = Kept<'s>>, out: &mut Out) -> Result<()> {
        let mut declared = with_keys(by::columns(&self.wanted.by), &TOP_EVENTS);
        if self.asked.hist {
            declared = with_parts(&declared, [&VALUES]);
        }
        let lines = rows.map(|kept| {
            let line = &self.line(&kept);
            let mut row = Row::new(&declared);
            by::fill(&mut row, &self.wanted.by, |by, name| line.keys.cell(by, name).into_owned());
            let fields: Map<String, serde_json::Value> =
                self.wanted.fields.iter().cloned().zip(line.fields.iter().map(json_of)).collect();
            let (sum, numbers) = (line.sum, &line.sum.numbers);
            let any = numbers.known > 0;
            row.set("event", text_of(line.event))
                .set("fields", serde_json::Value::Object(fields))
                .set("count", numbers.count);
            row.set("value", self.asked.value.or(sum.duration).filter(|_| any));
            row.set("measured", any.then_some(numbers.known)).set("total", any.then_some(numbers.total));
            row.set("avg", numbers.avg()).set("max", numbers.max());
            row.set("share_percent", self.share(line).map(|share| 100.0 * share));
            if self.asked.hist {
                row.set("values", Cell::Spelled(numbers.hist.json(), numbers.hist.words()));
            }
            row
        });
        out.rows(&declared, self.context.judged(), lines)?;
        Ok(())
    }
}
