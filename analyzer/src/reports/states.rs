//! State of every thread: time by state, call and file; or the states at one instant.

mod at;
pub(super) mod now;
pub(super) mod stacks;

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::idle::{self, Folded};
use super::offcpu::{keys_of, selected};
use super::scheduling;
use super::stays::{self, at::THREADS_AT, sums::STAYS};
use crate::asked::config::view::{AnswerFn, CPUS, Own, Part, Reads, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::asked::options::idle::Idle;
use crate::asked::options::stacks::Below;
use crate::reports::{Context, instant, losses};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{self, Key, Keys, Words};
use systape_answers::derive::runs::names::Names;
use systape_answers::derive::runs::rest::Rests;
use systape_answers::derive::runs::{Interval, IntervalSink, Slot, Thread, feed};
use systape_answers::render::keys::with_keys;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::Rank;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis, share};
use systape_answers::values::say::Verdict;
use systape_events::call_files::UNKNOWN_FILE;
use systape_events::group::Add;
use systape_events::group::by::GroupKey;
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Ordered, Parts, Spilling};
use systape_events::group::value::Value;
use systape_events::values::spill::{self, MergedRuns, SpilledSum, Store, Stored, put_number, take_u64};
use systape_events::values::timespec::{self, Edge};

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns.
    pub STATES = "states" {
        time_ns ? OfKnown: Duration "time of all threads in it; where calls are missing, `[user]` and `?` hold time that was spent in these"
        share ? OfKnown: Real "part of the time of all rows, 0 to 1"
        avg_threads ? OfKnown: Real "how many threads were in it on average"
    }
}

/// The default keys.
const DEFAULT: [GroupKey; 3] = [GroupKey::State, GroupKey::Syscall, GroupKey::File];

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "states",
    about: "What every thread was doing: time by state, call and file; or the picture of one instant",
    options: &[TASKS, CPUS, &["time", "events", "max_events", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze states --by state,syscall", "what all threads were doing"),
        ("analyze states --at 1.5", "at one instant, longest stuck first"),
    ],
    tables: &[
        Rows::of("states", &[Part::Keys(&systape_answers::render::by::BY), Part::All(&STATES)]),
        Rows::of("states --at", &[Part::All(&now::NOW)]),
        Rows::of("states --at --call-graph", &[Part::All(&stacks::STACKS)]),
        Rows::of("states of looks", &[Part::Keys(&systape_answers::render::by::BY), Part::All(&STAYS)]),
        Rows::of("states --at of looks", &[Part::All(&THREADS_AT)]),
    ],
    check,
    reads: |config| {
        let reads = config.own::<Options>()?.stacks.cut.names.reads()?;
        Ok(Reads { files: [reads.files, stays::full::files(config)].concat(), ..reads })
    },
    run: AnswerFn::Prints(run),
    of_looks: Some(of_looks),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// What every thread was doing at this time (as an end of --time)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,

    #[command(flatten)]
    rank: Rank,

    #[command(flatten)]
    idle: Idle,

    #[command(flatten)]
    stacks: Below,
}

impl Options {
    fn at(&self) -> Result<Option<Edge>> {
        self.at.as_deref().map(timespec::edge).transpose().context("--at")
    }
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    let instant = own.at()?.is_some();
    own.idle.check(config, &[(instant, "--at")])?;
    if own.stacks.asked() && !instant {
        bail!("--call-graph shows the stacks of one instant: it needs --at TIME");
    }
    if !keys_of(config)?.is_empty() && instant {
        bail!("--at has columns of its own: leave out --by");
    }
    if instant {
        let filters = &config.filters;
        let timed = filters.time != (None, None);
        refuse(
            &[(filters.selects, "-e"), (filters.cpus.is_some(), "-C"), (timed, "--time")],
            "--at shows every thread at one instant",
        )?;
    }
    own.stacks.cut.names.check(own.stacks.asked())
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    if let Some(edge) = own.at()? {
        let limit = config.limit(own.rank);
        return at::run(scheduling::context(config, tape, true, out)?, edge, &own.stacks, limit, out);
    }
    let by = match keys_of(config)? {
        by if by.is_empty() => DEFAULT.to_vec(),
        by => by,
    };
    let calls = by.iter().any(|by| matches!(by, GroupKey::Syscall | GroupKey::File)) || config.filters.selects;
    let mut context = scheduling::context(config, tape, calls, out)?;
    let folds = calls && !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    let needs = Needs { calls, files: folds || by.contains(&GroupKey::File), ..Needs::default() };
    let from = context.question.scope.from.max(tape.session().window_open);
    let to = context.question.scope.to.min(tape.complete_until());
    let sink = States {
        rests: folds.then(|| Rests::new((from, to))),
        keys: Keys::new(&by, &context.question.scope, tape.session(), keys::all_calls(tape.session())),
        context: &context,
        whats: IndexSet::default(),
        sums: FxHashMap::default(),
        runs: Vec::new(),
    };
    let mut fed = feed::feed(&context.question, needs, context.question.scope.to, sink);
    fed.tracker.sink.end(&mut fed.names);
    let feed::FedRuns { tracker, names, unsure_until, coverage } = fed;
    let States { keys, whats, sums, runs, .. } = tracker.sink;
    let parts = in_file(&runs, &names);
    let (mut total, mut all, mut folded) = (0_u64, 0, Folded::default());
    // whether a sum has a row
    let mut shows = |sum: &Sum| {
        all += 1;
        total = total.saturating_add(sum.ns);
        if sum.idle() {
            folded.add(sum.ns, false);
        }
        !sum.idle()
    };
    let key = |(what, file): (u32, u32)| Key { file, ..whats[what as usize] };
    let mut sums: Vec<((u32, u32), Sum)> = sums.into_iter().filter(|(_, sum)| shows(sum)).collect();
    // no two have the same key
    sums.sort_unstable_by(|(a, x), (b, y)| y.ns.cmp(&x.ns).then_with(|| keys.order(&names, &key(*a), &key(*b))));
    let stored = Ordered::new(
        &parts,
        |_, sum| shows(sum).then_some(sum.ns),
        |(one, _), (other, _)| {
            let mut names = Names::default();
            let [one, other] = [one, other].map(|packed| named(packed, &whats, &mut names));
            keys.order(&names, &one, &other)
        },
    );
    config.shown.rows(all);
    let span = to.saturating_sub(from);
    let limit = config.limit(own.rank);
    let declared = with_keys(keys.columns(), &STATES);
    let headings = Table::default().number("time ms").number("share").number("threads");
    let headings = by.iter().fold(headings, |table, by| table.word(by.heading())).leaving(&["threads"]);
    let in_memory = sums.iter().map(|(at, sum)| (key(*at), sum.ns, Cow::Borrowed(&names)));
    // one of them is empty
    let shown = in_memory.chain(stored.iter().map(|entry| {
        let mut names = Names::default();
        (named(entry.key(), &whats, &mut names), entry.sum.ns, Cow::Owned(names))
    }));
    let (session, book) = (tape.session(), &context.question.book);
    let threads = |ns: u64| ns as f64 / span.max(1) as f64;
    // rows are made when they are printed, and their keys hold the filters
    let (scope, families) = (&context.question.scope, &context.question.families);
    scheduling::touch(coverage, unsure_until, (tape, scope, families), &mut context.question.loss);
    scheduling::head(&context, out)?;
    out.ranking(
        TopRows { table: &declared, judged: context.judged(), headings, all: sums.len() + stored.len(), limit },
        shown,
        |(key, ns, names): (Key, u64, Cow<'_, Names>)| {
            let mut row = Row::new(&declared);
            keys.fill(&mut row, &key, &Words { session, book, names: &names });
            row.set("time_ns", ns).set("share", ns as f64 / total.max(1) as f64).set("avg_threads", threads(ns));
            row
        },
        |(key, ns, names): (Key, u64, Cow<'_, Names>)| {
            let cells = [millis(ns, ""), share(ns, total), format!("{:.2}", threads(ns))];
            cells.into_iter().chain(keys.texts(&key, &Words { session, book, names: &names })).collect()
        },
    )?;
    out.text(folded.line(total))?;
    scheduling::foot(&context, out)?;
    losses::end_of_sums(&context, out)
}

/// Prints what looks say.
fn of_looks(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    stays::refuse(
        &[(config.filters.cpus.is_some(), "-C"), (own.stacks.asked(), "--call-graph")],
        "a thread that waits is on no CPU, and 'analyze callgraph --of look' has the stacks",
    )?;
    let (mut context, limit) = (stays::context(config, tape)?, config.limit(own.rank));
    let full = stays::full::beside(&context);
    if let Some(edge) = own.at()? {
        let at = instant::instant(tape, edge, out)?;
        let Some(full) = full.iter().find(|full| (full.span.0..=full.span.1).contains(&at)) else {
            return stays::at::run(context, at, limit, out);
        };
        // everything was recorded then
        let exactly = |config: &Config, tape: &Tape, out: &mut Out| {
            let edge = timespec::edge(&format!("{}ns", at - full.span.0)).context("--at")?;
            at::run(scheduling::context(config, tape, true, out)?, edge, &own.stacks, limit, out)
        };
        return full.print(&context, exactly, out);
    }
    let by = match keys_of(config)? {
        by if by.is_empty() => DEFAULT.to_vec(),
        by => by,
    };
    let folds = !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    let verdict = stays::sums::print(&mut context, &by, (folds, limit), &stays::full::spans(&full), out)?;
    full.iter().try_fold(verdict, |verdict, full| Ok(verdict.and(full.print(&context, run, out)?)))
}

/// The sums of `runs`, whose keys are numbers of files and of [`States::whats`], by these and the names of the files.
fn in_file(runs: &[spill::Run], names: &Names) -> Parts<Sum> {
    let mut sums: Spilling<Sum> = Spilling::new(Store::of_process(), 1);
    let Some(store) = Store::of_process().filter(|_| !runs.is_empty()) else { return Parts::default() };
    let by_key = |one: &SpilledSum<Sum>, other: &SpilledSum<Sum>| one.key.cmp(&other.key);
    let runs = store.narrowed(runs.to_vec(), &by_key);
    let mut names = names.in_file();
    let mut file: Option<(u32, Value)> = None;
    for SpilledSum { key, sum } in MergedRuns::new(&runs, by_key) {
        let part = |at: usize| key.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let (Some(number), Some(what)) = (part(0), part(4)) else { continue };
        if file.as_ref().is_none_or(|(known, _)| *known != number) {
            let name = Some(number).filter(|number| Names::is_name(*number));
            let name = name.and_then(|number| names.find(|(named, _)| *named == number));
            file = Some((number, name.map_or(Value::Number(number.into()), |(_, name)| Value::Text(name.into()))));
        }
        if let Some((_, file)) = &file {
            sums.groups.of(&[Value::Number(what.into()), file.clone()]).add(&sum);
            sums.relieve(1, 0);
        }
    }
    Parts::of(vec![sums])
}

/// The key of a sum of [`in_file`], with the number that its file has in `names`.
fn named(packed: Packed<'_>, whats: &IndexSet<Key, FxBuildHasher>, names: &mut Names) -> Key {
    let (mut key, file) = match &packed.key()[..] {
        [Value::Number(what), file] => (whats.get_index(*what as usize).copied().unwrap_or_default(), file.clone()),
        _ => (Key::default(), Value::Unknown),
    };
    key.file = match file {
        Value::Text(name) => names.number(&name),
        Value::Number(number) => number as u32,
        _ => UNKNOWN_FILE,
    };
    key
}

struct States<'a, 'k> {
    context: &'a Context<'a>,
    keys: Keys<'k>,
    /// Keys without their files: there are few of them, and may be very many files.
    whats: IndexSet<Key, FxBuildHasher>,
    /// By the number of such a key, and by file.
    sums: FxHashMap<(u32, u32), Sum>,
    /// Those for which there was no memory, by file first.
    runs: Vec<spill::Run>,
    /// Which sleeps are idle, if rows of these are one line.
    rests: Option<Rests>,
}

/// Time of one row.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// ns.
    ns: u64,
    /// Some of it is no idle wait.
    busy: bool,
}

impl Add for Sum {
    fn add(&mut self, other: &Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.busy |= other.busy;
    }
}

impl Stored for Sum {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.ns.into(), out);
        out.push(self.busy.into());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self { ns: take_u64(from)?, busy: *from.split_off_first()? != 0 })
    }

    fn heap(&self) -> usize {
        0
    }
}

impl Sum {
    /// Whether it is of idle waits alone.
    fn idle(&self) -> bool {
        !self.busy
    }
}

impl States<'_, '_> {
    /// If sums were put into the file, puts the others there, and the last of `names`.
    fn end(&mut self, names: &mut Names) {
        if let Some(store) = Store::of_process().filter(|_| !self.runs.is_empty()) {
            self.spill(&store);
            names.spill(&store);
        }
    }
}

impl IntervalSink for States<'_, '_> {
    fn bytes(&self) -> Option<usize> {
        // a table of hashes is full to seven eighths
        Some(self.sums.capacity() * (size_of::<((u32, u32), Sum)>() + 1) / 7 * 8)
    }

    fn spill(&mut self, store: &Store) {
        let mut sums: Vec<((u32, u32), Sum)> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_unstable_by_key(|((what, file), _)| (*file, *what));
        let mut writer = store.writer();
        for ((what, file), sum) in sums {
            writer.put(&[file.to_be_bytes(), what.to_be_bytes()].concat(), &sum);
        }
        self.runs.push(writer.finish());
    }

    fn file(&mut self, number: u32, name: &[u8]) {
        if let Some(rests) = &mut self.rests {
            rests.file(number, name);
        }
    }

    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        self.keys.parts(before, after)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let scope = &self.context.question.scope;
        let from = interval.from.max(scope.from);
        let cpus = scope.filters().cpus.as_ref();
        if interval.to <= from
            || cpus.is_some_and(|cpus| cpus.binary_search(&interval.cpu).is_err())
            || !selected(self.context, interval)
        {
            return;
        }
        if let Some(key) = self.keys.key(threads, slot, interval) {
            let (what, file) = (self.whats.insert_full(Key { file: 0, ..key }).0 as u32, key.file);
            let sum = self.sums.entry((what, file)).or_default();
            sum.ns = sum.ns.saturating_add(interval.to - from);
            let rests = self.rests.as_mut().filter(|_| !sum.busy);
            sum.busy = !rests.is_some_and(|rests| rests.is(&self.context.question.book, &threads[slot].task, interval));
        }
    }
}
