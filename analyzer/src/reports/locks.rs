//! `analyze locks`: which locks and other futexes threads waited for, how long, who holds them, and who woke them; by process and address.

use std::cmp::Reverse;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::idle::{self, Folded};
use super::stays::{self, locks::SEEN_LOCKS};
use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::options::idle::Idle;
use systape_answers::derive::waits::{self, JudgedFutex, Kind, Named, Sum, Threads};
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::Few;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::calls::recorded;
use systape_events::families;
use systape_events::question::Question;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row for each futex of a process that a thread waited for, the one with most of the metric first.
    pub LOCKS = "locks" {
        pid: Int key "process"
        upid: Int key "the process, unique in the tape; null: not known"
        comm: Str [Comm] "name of the thread whose wait ended first"
        address: Hex key "address of the futex in the process"
        kind: Word "what the waits are for: `deadlock`: a lock whose owner waits, by way of other locks, for who waits here; `lock`: a wait names its owner, or threads hold it from their own wait to their next wake; `barrier`: the last of several threads to come; `join`: the end of a thread; `condition`: one thread waits until others wake it; `wait`: nobody ended the wait; `idle`: work, or the time to pass; null: not known"
        waits ? AtLeast: Count "waits; calls that found the value changed are none"
        total_ns ? AtLeast: Duration "time in them, of all threads together"
        avg_ns ? OfKnown: Duration "the mean"
        max_ns ? AtLeast: Duration "the longest"
        timeouts ? AtLeast: Count "of the waits, those whose time was up"
        again ? AtLeast: Count "calls that were not to wait, because the value had changed (EAGAIN)"
        threads ? AtLeast: Count "threads that waited"
        woken ? AtLeast: Count "threads that calls on it woke, or moved to another futex"
        for_tid: Int "thread that is waited for: the owner of a lock, who is to end (`join`), who woke most (`barrier`, `condition`); null: several, or not known"
        for_comm: Str [Comm] "its name"
        waker_tid: Int "thread that woke most; null: nobody did, or not known"
        waker_comm: Str [Comm] "its name"
        waker_woken ? AtLeast: Count "how many it woke"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "locks",
    about: "Which locks and other futexes threads waited for, how long, who holds them, and who woke them",
    options: &[TASKS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze locks", "the futexes with most time of waits, pools at rest last"),
        ("analyze locks -p 2214 --kind lock,deadlock --metric max", "locks of one process, the longest waits first"),
    ],
    tables: &[Rows::of("locks", &[All(&LOCKS)]), Rows::of("locks of looks", &[All(&SEEN_LOCKS)])],
    check: |config| {
        let own: Options = config.own()?;
        own.idle.check(config, &[(!own.kind.is_empty(), "--kind")])
    },
    run: AnswerFn::Prints(run),
    of_looks: Some(of_looks),
    ..View::PLAIN
};

/// What rows are ranked by.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum LockMetric {
    /// Time of waits
    #[default]
    Total,
    /// Number of waits
    Waits,
    /// Mean wait
    Avg,
    /// Longest wait
    Max,
}

#[derive(Debug, clap::Args)]
struct Options {
    /// What rows are ranked by
    #[arg(long, value_enum, value_name = "METRIC", default_value_t)]
    metric: LockMetric,

    /// Only waits for these: deadlock, lock, barrier, join, condition, wait, idle
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::name)), hide_possible_values = true)]
    kind: Vec<String>,

    #[command(flatten)]
    rank: Few,

    #[command(flatten)]
    idle: Idle,
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let own: Options = config.own()?;
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    let (tracker, threads, coverage) = waits::tracked(&context.question)?;
    coverage.tell(&mut context.question.loss);
    let Question { loss, scope, book, .. } = &mut context.question;
    loss.keep_counted_of(tape, scope, |call| waits::is_futex(&book.get(call).name));
    let (mut rows, _, cut) = tracker.judge(&threads);
    let notes = notes(tape, cut);
    let short = !context.question.loss.complete() || !notes.is_empty();
    let shown = Shown { threads: &threads, short };
    rows.retain(|row| {
        own.kind.is_empty() || shown.kind(row).is_some_and(|kind| own.kind.iter().any(|one| one == kind))
    });
    let key = |row: &JudgedFutex| (row.kind == Kind::Idle, Reverse(own.metric.of(&row.sum)), row.at);
    rows.sort_by_key(key);
    config.shown.rows(rows.len());
    let folds = own.kind.is_empty() && !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    let (all, mut folded) = (rows.iter().fold(0_u64, |all, row| all.saturating_add(row.sum.ns)), Folded::default());
    rows.retain(|row| {
        let idle = folds && shown.kind(row) == Some(Kind::Idle.name());
        if idle {
            folded.add(row.sum.ns, row.sum.open);
        }
        !idle
    });
    losses::head(&context, losses::AT_LEAST, out)?;
    out.notes(&notes)?;
    let headings = ["total ms", "waits", "avg ms", "max ms", "timeouts", "again", "threads", "woken"];
    let headings = headings.into_iter().fold(Table::default(), Table::number);
    let words = ["kind", "address", "process", "waits for", "woken most by"];
    out.ranking(
        TopRows {
            table: &LOCKS,
            judged: context.judged(),
            headings: words.into_iter().fold(headings, Table::word).leaving(&[
                "again",
                "timeouts",
                "woken",
                "avg ms",
                "threads",
                "woken most by",
                "max ms",
                "kind",
            ]),
            all: rows.len(),
            limit: config.few(own.rank),
        },
        rows.iter(),
        |row| shown.row(row),
        |row| shown.cells(row),
    )?;
    out.text(folded.line(all))?;
    losses::end_of_sums(&context, out)
}

/// Prints what looks say: the locks that threads were found waiting for.
fn of_looks(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let of_waits = [
        (!matches!(own.metric, LockMetric::Total), "--metric with another metric than total"),
        (!own.kind.is_empty(), "--kind"),
        (own.idle.asked().is_some(), "--idle"),
    ];
    stays::refuse(&of_waits, "looks find contended locks only, and not each wait")?;
    stays::locks::run(&mut stays::context(config, tape)?, config.few(own.rank), out)
}

/// What the answer lacks for other reasons than loss.
fn notes(tape: &Tape, cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if losses::stores_some(tape) {
        notes.push("AT LEAST: record stored only some calls".to_owned());
    }
    let left_out = |selection: systape_abi::Selection| {
        let abi = systape_events::calls::native_abi(&tape.session().machine);
        systape_abi::number(abi, "futex").is_some_and(|number| !selection.contains(abi, number))
    };
    if !tape.session().selection.is_empty() && recorded(tape.session()).is_none_or(left_out) {
        notes.push(
            "AT LEAST: record was asked to leave out futex, or which calls were recorded is not known".to_owned(),
        );
    }
    if cut {
        notes.push("AT LEAST: there are more futexes than there is memory for".to_owned());
    }
    notes
}

impl LockMetric {
    fn of(self, sum: &Sum) -> u64 {
        match self {
            Self::Total => sum.ns,
            Self::Waits => sum.waits,
            Self::Avg => mean(sum),
            Self::Max => sum.max,
        }
    }
}

fn mean(sum: &Sum) -> u64 {
    sum.ns / sum.waits.max(1)
}

/// The printed form.
struct Shown<'a> {
    threads: &'a Threads,
    /// Something is missing: numbers are at least.
    short: bool,
}

impl<'a> Shown<'a> {
    /// What the waits are for; None: what is missing may say something else.
    fn kind(&self, row: &JudgedFutex) -> Option<&'static str> {
        (row.kind.is_certain() || !self.short).then(|| row.kind.name())
    }

    /// The thread that is waited for.
    fn waited_for(&self, row: &JudgedFutex) -> Option<&'a Named> {
        self.kind(row).and(row.thread).and_then(|thread| self.threads.named(thread))
    }

    /// Who woke most, and how many.
    fn waker(&self, row: &JudgedFutex) -> Option<(&'a Named, u64)> {
        let (thread, woken) = row.sum.waker()?;
        Some((self.threads.named(thread)?, woken))
    }

    fn row<'r>(&self, judged: &'r JudgedFutex) -> Row<'r> {
        let (sum, short) = (&judged.sum, self.short);
        let (task, times) = (sum.waiters.first().and_then(|thread| self.threads.named(*thread)), short || sum.open);
        let comm = |named: &Named| named.comm.to_vec();
        let mut row = Row::new(&LOCKS);
        row.set("pid", task.map(|task| task.pid)).set("upid", judged.at.upid());
        row.set("comm", task.map(comm)).set("address", judged.at.address).set("kind", self.kind(judged));
        row.bound("waits", sum.waits, short).bound("total_ns", sum.ns, times);
        row.bound("avg_ns", mean(sum), times).bound("max_ns", sum.max, times);
        row.bound("timeouts", sum.timeouts, short).bound("again", sum.again, short);
        row.bound("threads", sum.waiters.len(), short || sum.has_more_waiters());
        row.bound("woken", sum.woken, short);
        let waited_for = self.waited_for(judged);
        row.set("for_tid", waited_for.map(|named| named.tid)).set("for_comm", waited_for.map(comm));
        // of many who woke, what is missing may make another the first
        let waker = self.waker(judged).filter(|_| !short);
        row.set("waker_tid", waker.map(|(named, _)| named.tid)).set("waker_comm", waker.map(|(named, _)| comm(named)));
        row.bound("waker_woken", waker.map(|(_, woken)| woken), short);
        row
    }

    fn cells(&self, row: &JudgedFutex) -> Vec<String> {
        let (sum, short) = (&row.sum, mark::at_least(self.short));
        let times = self.short || sum.open;
        let count = |number: u64| format!("{short}{number}");
        let who = |named: &Named, id: u32| format!("{}[{id}]", escaped(&named.comm));
        let waker = self
            .waker(row)
            .map(|(named, woken)| format!("{}{} ({short}{woken})", mark::about(self.short), who(named, named.tid)));
        let first = sum.waiters.first().and_then(|thread| self.threads.named(*thread));
        vec![
            millis(sum.ns, mark::at_least(times)),
            count(sum.waits),
            millis(mean(sum), mark::about(times)),
            millis(sum.max, mark::at_least(times)),
            count(sum.timeouts),
            count(sum.again),
            format!("{}{}", mark::at_least(self.short || sum.has_more_waiters()), sum.waiters.len()),
            count(sum.woken),
            self.kind(row).unwrap_or("?").to_owned(),
            format!("{:#x}", row.at.address),
            first.map_or_else(|| "?".to_owned(), |named| who(named, named.pid)),
            self.waited_for(row).map_or_else(|| "-".to_owned(), |named| who(named, named.tid)),
            waker.unwrap_or_else(|| if sum.woken > 0 || self.short { "?" } else { "-" }.to_owned()),
        ]
    }
}
