//! Time of threads off the CPU, and their wakers.

pub(super) mod wakers;

use std::collections::hash_map::Entry;

use anyhow::{Result, bail};
use rustc_hash::FxHashMap;
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::idle::{self, Folded};
use super::{Context, losses, scheduling};
use crate::asked::config::view::{AnswerFn, CPUS, Own, Part, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::asked::options::idle::Idle;
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{self, Key, Keys, Words};
use systape_answers::derive::runs::queued::CallsInTurn;
use systape_answers::derive::runs::rest::Rests;
use systape_answers::derive::runs::{Doing, End, Interval, IntervalSink, Slot, State, Thread, feed};
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::Rank;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis, share};
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;
use systape_events::values::order::InOrder as _;
use systape_events::values::spill::Kept;

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns.
    pub OFFCPU = "offcpu" {
        total_ns ? OfKnown: Duration "time off the CPU; where calls are missing, `[user]` and `?` hold time that was spent in these"
        count ? OfKnown: Count "times a CPU was left, or was not had at the start"
        avg_ns ? OfKnown: Duration "mean of `total_ns` by `count`"
        max_ns ? OfKnown: Duration "the longest time"
        share ? OfKnown: Real "part of the time of all rows, 0 to 1"
    }
}

/// The default keys.
const DEFAULT: [GroupKey; 3] = [GroupKey::Comm, GroupKey::State, GroupKey::Syscall];

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "offcpu",
    about: "Time off CPU by task, state, call and file; or who woke whom",
    options: &[TASKS, CPUS, &["time", "duration", "events", "max_events", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze offcpu -p 2214", "what a process waited for"),
        ("analyze offcpu --wakers 2214", "who woke its threads"),
    ],
    tables: &[
        Rows::of("offcpu", &[Part::Keys(&systape_answers::render::by::BY), Part::All(&OFFCPU)]),
        Rows::of("offcpu --wakers", &[Part::All(&wakers::WAKERS)]),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Who woke the threads of this process
    #[arg(long, value_name = "PID")]
    wakers: Option<u32>,

    #[command(flatten)]
    rank: Rank,

    #[command(flatten)]
    idle: Idle,
}

/// The keys that `offcpu` and `states` can have.
pub(super) fn keys_of(config: &Config) -> Result<Vec<GroupKey>> {
    use GroupKey::{Cgroup, Comm, Container, Env, File, Job, Pid, Pod, State, Syscall, Tid, Uid, Unit};
    let known = [Comm, Tid, Pid, State, Syscall, File, Cgroup, Container, Unit, Pod, Job, Env, Uid];
    Ok(GroupKey::parse(&config.by, &known, &config.view.title())?)
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let (by, filters) = (keys_of(config)?, &config.filters);
    let own: Options = config.own()?;
    own.idle.check(config, &[(own.wakers.is_some(), "--wakers")])?;
    if own.wakers.is_none() {
        return Ok(());
    }
    if !by.is_empty() {
        bail!("--wakers has columns of its own: leave out --by");
    }
    let of_stretches =
        [(filters.selects, "-e"), (filters.longer_than.is_some(), "--duration"), (filters.cpus.is_some(), "-C")];
    refuse(&of_stretches, "--wakers counts who woke whom, whatever it waited in")
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let limit = config.limit(own.rank);
    if let Some(pid) = own.wakers {
        return wakers::run(scheduling::context(config, tape, false, out)?, pid, limit, out);
    }
    let by = match keys_of(config)? {
        by if by.is_empty() => DEFAULT.to_vec(),
        by => by,
    };
    let calls = by.iter().any(|by| matches!(by, GroupKey::Syscall | GroupKey::File)) || config.filters.selects;
    let mut context = scheduling::context(config, tape, calls, out)?;
    let scope = &context.question.scope;
    let folds = calls && !own.rank.all() && idle::folds(own.idle, config, tape, scope);
    let needs = Needs { calls, files: folds || by.contains(&GroupKey::File), ..Needs::default() };
    let span = (scope.from.max(tape.session().window_open), scope.to.min(tape.complete_until()));
    let sink = OffCpu {
        keys: Keys::new(&by, &context.question.scope, tape.session(), keys::all_calls(tape.session())),
        context: &context,
        sums: FxHashMap::default(),
        kept: Kept::new(1),
        rests: folds.then(|| Rests::new(span)),
    };
    let fed = feed::feed(&context.question, needs, context.question.scope.to, sink);
    let feed::FedRuns { tracker, names, unsure_until, coverage } = fed;
    let OffCpu { keys, sums, kept, .. } = tracker.sink;
    kept.check()?;
    let mut sums: Vec<(Key, Sum)> = sums.into_iter().collect();
    sums.order_by(|(a, x), (b, y)| y.total.cmp(&x.total).then_with(|| keys.order(&names, a, b)));
    config.shown.rows(sums.len());
    let total = sums.iter().fold(0_u64, |total, (_, sum)| total.saturating_add(sum.total));
    let mut folded = Folded::default();
    sums.retain(|(_, sum)| {
        if !sum.busy {
            folded.add(sum.total, sum.open);
        }
        sum.busy
    });
    let words = Words { session: tape.session(), book: &context.question.book, names: &names };
    let declared = with_keys(keys.columns(), &OFFCPU);
    let headings = ["total ms", "count", "avg ms", "max ms", "share"].into_iter().fold(Table::default(), Table::number);
    // rows are made when they are printed, and their keys hold the filters
    let (scope, families) = (&context.question.scope, &context.question.families);
    scheduling::touch(coverage, unsure_until, (tape, scope, families), &mut context.question.loss);
    scheduling::head(&context, out)?;
    out.ranking(
        TopRows {
            table: &declared,
            judged: context.judged(),
            headings: by
                .iter()
                .fold(headings, |table, by| table.word(by.heading()))
                .leaving(&["avg ms", "max ms", "share"]),
            all: sums.len(),
            limit,
        },
        sums.iter(),
        |(key, sum): &(Key, Sum)| {
            let mut row = Row::new(&declared);
            keys.fill(&mut row, key, &words);
            sum.fill(&mut row, total);
            row
        },
        |(key, sum): &(Key, Sum)| sum.cells(total).into_iter().chain(keys.texts(key, &words)).collect(),
    )?;
    out.text(folded.line(total))?;
    scheduling::foot(&context, out)?;
    losses::end_of_sums(&context, out)
}

/// Time off the CPU of one key.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// ns.
    total: u64,
    /// Number of times a CPU was left (or was not held at the start).
    count: u64,
    /// The longest, ns.
    max: u64,
    /// Some began before the recording or continued after it (or into a loss).
    open: bool,
    /// The longest is one of them.
    max_open: bool,
    /// Some of it is no idle wait.
    busy: bool,
}

impl Sum {
    fn add(&mut self, ns: u64, open: bool, counts: bool) {
        self.total = self.total.saturating_add(ns);
        self.count += u64::from(counts);
        self.open |= open;
        if ns > self.max || (ns == self.max && open) {
            (self.max, self.max_open) = (ns, open);
        }
    }

    fn avg(&self) -> u64 {
        self.total / self.count.max(1)
    }

    fn cells(&self, all: u64) -> Vec<String> {
        let lead = mark::at_least(self.open);
        vec![
            millis(self.total, lead),
            self.count.to_string(),
            millis(self.avg(), lead),
            millis(self.max, mark::at_least(self.max_open)),
            share(self.total, all),
        ]
    }

    fn fill(&self, row: &mut Row<'_>, all: u64) {
        row.bound("total_ns", self.total, self.open).set("count", self.count).bound("avg_ns", self.avg(), self.open);
        row.bound("max_ns", self.max, self.max_open).set("share", self.total as f64 / all.max(1) as f64);
    }
}

/// Bytes of a sum, in a table of hashes that is full to seven eighths or to half of that, and of a name of its own.
const SUM: usize = size_of::<(Key, Sum)>() * 3 / 2 + 96;

struct OffCpu<'a, 'k> {
    context: &'a Context<'a>,
    keys: Keys<'k>,
    sums: FxHashMap<Key, Sum>,
    /// What these take.
    kept: Kept,
    /// Which sleeps are idle, if rows of these are one line.
    rests: Option<Rests>,
}

impl IntervalSink for OffCpu<'_, '_> {
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

    // a thread in calls in turn is on a CPU, or it is not known where
    fn calls(&mut self, _threads: &[Thread], _slot: Slot, _calls: &CallsInTurn<'_>) {}

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        // without the state as a key, waiting for a CPU would look like waiting for something
        if !keys::off_cpu(interval.state, self.keys.has(GroupKey::State)) || !selected(self.context, interval) {
            return;
        }
        let scope = &self.context.question.scope;
        let from = interval.from.max(scope.from);
        let ns = interval.to.saturating_sub(from);
        let filters = scope.filters();
        if (interval.to < scope.from || interval.is_empty())
            || filters.longer_than.is_some_and(|least| interval.len() <= least)
            || filters.cpus.as_ref().is_some_and(|cpus| cpus.binary_search(&interval.cpu).is_err())
        {
            return;
        }
        let Some(mut key) = self.keys.key(threads, slot, interval) else { return };
        if matches!(interval.state, State::Waiting(_)) && self.keys.has(GroupKey::State) {
            key.state = "R";
        }
        let open = interval.open() || from > interval.from || interval.end == End::Step;
        let sum = match self.sums.entry(key) {
            Entry::Occupied(sum) => sum.into_mut(),
            // there is no answer without it
            Entry::Vacant(_) if !self.kept.add(SUM) => return,
            Entry::Vacant(room) => room.insert(Sum::default()),
        };
        sum.add(ns, open, !interval.continued);
        let rests = self.rests.as_mut().filter(|_| !sum.busy);
        sum.busy = !rests.is_some_and(|rests| rests.is(&self.context.question.book, &threads[slot].task, interval));
    }
}

/// Whether the call of an interval passes `-e`.
pub(super) fn selected(context: &Context<'_>, interval: &Interval) -> bool {
    let filters = context.question.scope.filters();
    if !filters.selects {
        return true;
    }
    let Doing::Call(call) = interval.doing else { return false };
    context.question.scope.call(&call.call)
}
