//! State of every thread: time by state, call and file; or the states at one instant.

mod at;
pub(super) mod now;
pub(super) mod stacks;

use anyhow::{Context as _, Result, bail};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::idle::{self, Folded};
use super::offcpu::{keys_of, selected};
use super::scheduling;
use crate::asked::config::view::{CPUS, Own, Part, Rows, Run, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::asked::options::idle::Idle;
use crate::asked::options::stacks::Below;
use crate::derive::runs::decode::Needs;
use crate::derive::runs::keys::{self, Key, Keys, Words};
use crate::derive::runs::rest::Rests;
use crate::derive::runs::{Interval, Sink, Slot, Thread, feed};
use crate::render::keys::with_keys;
use crate::render::rank::{Rank, more};
use crate::render::row::Row;
use crate::render::sink;
use crate::render::table::{Table, millis, share};
use crate::reports::{Context, losses};
use crate::table::group::by::By;
use crate::table::loss::Listed;
use crate::values::output::{self, line};
use crate::values::say::Verdict;
use crate::values::timespec::{self, Edge};

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns.
    pub STATES = "states" {
        time_ns ? OfKnown: Duration "time of all threads in it; where calls are missing, `[user]` and `?` hold time that was spent in these"
        share ? OfKnown: Real "part of the time of all rows, 0 to 1"
        avg_threads ? OfKnown: Real "how many threads were in it on average"
    }
}

/// The default keys.
const DEFAULT: [By; 3] = [By::State, By::Syscall, By::File];

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
        Rows::of("states", &[Part::Keys(&crate::render::by::BY), Part::All(&STATES)]),
        Rows::of("states --at", &[Part::All(&now::NOW)]),
        Rows::of("states --at --call-graph", &[Part::All(&stacks::STACKS)]),
    ],
    check,
    reads: |config| Ok(config.own::<Options>()?.stacks.cut.names.reads()),
    run: Run::Prints(run),
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
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let own: Options = config.own()?;
    if let Some(edge) = own.at()? {
        let limit = own.rank.limit(config.format, config.max_events);
        return at::run(scheduling::context(config, tape, true)?, edge, &own.stacks, limit);
    }
    let by = match keys_of(config)? {
        by if by.is_empty() => DEFAULT.to_vec(),
        by => by,
    };
    let calls = by.iter().any(|by| matches!(by, By::Syscall | By::File)) || config.filters.selects;
    let context = scheduling::context(config, tape, calls)?;
    let folds = calls && !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    let needs = Needs { calls, files: folds || by.contains(&By::File), ..Needs::default() };
    let from = context.question.scope.from.max(tape.session().window_open);
    let to = context.question.scope.to.min(tape.complete_until());
    let sink = States {
        rests: folds.then(|| Rests::new((from, to))),
        keys: Keys::new(&by, &context.question.scope, tape.session(), keys::all_calls(tape.session())),
        context: &context,
        whats: IndexSet::default(),
        sums: FxHashMap::default(),
    };
    let fed = feed::feed(&context.question, needs, context.question.scope.to, sink);
    let States { keys, whats, sums, .. } = &fed.tracker.sink;
    let key = |(what, file): (u32, u32)| Key { file, ..whats[what as usize] };
    let mut sums: Vec<((u32, u32), Sum)> = sums.iter().map(|(at, sum)| (*at, *sum)).collect();
    // no two have the same key
    sums.sort_unstable_by(|(a, x), (b, y)| y.ns.cmp(&x.ns).then_with(|| keys.order(&fed.names, &key(*a), &key(*b))));
    config.shown.rows(sums.len());
    let total = sums.iter().fold(0_u64, |total, (_, sum)| total.saturating_add(sum.ns));
    let span = to.saturating_sub(from);
    let words = Words { session: tape.session(), book: &context.question.book, names: &fed.names };
    let limit = own.rank.limit(config.format, config.max_events);
    let mut folded = Folded::default();
    sums.retain(|(_, sum)| {
        let idle = sum.idle();
        if idle {
            folded.add(sum.ns, false);
        }
        !idle
    });
    let more = more(sums.len(), limit);
    let form = config.format.rows();
    let declared = with_keys(keys.columns(), &STATES);
    let table = Table::default().number("time ms").number("share").number("threads");
    let table = by.iter().fold(table, |table, by| table.word(by.heading()));
    let shown = sums.iter().take(limit).map(|(at, sum)| (key(*at), sum.ns, sum.ns as f64 / span.max(1) as f64));
    let mut out = output::stdout()?;
    // rows are made when they are printed, and their keys hold the other one
    let mut context = Context::about(config, tape, &context.question.families)?;
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    if let Some(form) = form {
        let rows = shown.map(|(key, ns, threads)| {
            let mut row = Row::new(&declared);
            keys.fill(&mut row, &key, &words);
            row.set("time_ns", ns).set("share", ns as f64 / total.max(1) as f64).set("avg_threads", threads);
            row
        });
        sink::print(form, &declared, context.judged(), rows, &mut out)?;
    } else {
        scheduling::head(&context, &mut out)?;
        let cells = |(key, ns, threads): (Key, u64, f64)| -> Vec<String> {
            let cells = [millis(ns, ""), share(ns, total), format!("{threads:.2}")];
            cells.into_iter().chain(keys.texts(&key, &words)).collect()
        };
        table.print_rows(shown.map(cells), &mut out)?;
        more.into_iter().chain(folded.line(total)).try_for_each(|text| line(&mut out, &text))?;
        scheduling::foot(&context, &mut out)?;
    }
    losses::end(&context, &mut out, form.is_none(), Listed::Nothing)
}

struct States<'a> {
    context: &'a Context<'a>,
    keys: Keys<'a>,
    /// Keys without their files: there are few of them, and may be very many files.
    whats: IndexSet<Key, FxBuildHasher>,
    /// By the number of such a key, and by file.
    sums: FxHashMap<(u32, u32), Sum>,
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

impl Sum {
    /// Whether it is of idle waits alone.
    fn idle(&self) -> bool {
        !self.busy
    }
}

impl Sink for States<'_> {
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
