//! `analyze locks`: which futexes threads waited for, how long, and who woke them; by process and address.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{Own, Rows, Run, TASKS, View};
use crate::derive::futexes;
use crate::derive::locks::{Calls, Lock, Locks, Waits};
use crate::derive::paths::feed::{Told, feed};
use crate::render::mark;
use crate::render::rank::{self, Few};
use crate::render::row::{Row, some};
use crate::render::sink;
use crate::render::table::{Table, millis};
use crate::table::calls::recorded;
use crate::table::families;
use crate::table::loss::Listed;
use crate::table::question::Question;
use crate::values::output::{self, line};
use crate::values::say::{Verdict, complain};
use crate::values::words::escaped;

systape_format::tables! {
    /// One row for each futex of a process that a thread waited for, the one with most of the metric first.
    pub LOCKS = "locks" {
        pid: Int "process"
        upid: Int "the process, unique in the tape; null: not known"
        comm: Str [Comm] "name of the thread that waited first"
        address: Hex "address of the futex in the process"
        kind: Word "`lock`: threads that waited woke others too, or a wait says that it is for a lock; `wait`: neither, as of conditions, joins, semaphores; null: not known"
        waits ? AtLeast: Count "waits; calls that found the value changed are none"
        total_ns ? AtLeast: Duration "time in them, of all threads together"
        avg_ns ? OfKnown: Duration "the mean"
        max_ns ? AtLeast: Duration "the longest"
        timeouts ? AtLeast: Count "of the waits, those whose time was up"
        again ? AtLeast: Count "calls that were not to wait, because the value had changed (EAGAIN)"
        threads ? AtLeast: Count "threads that waited"
        woken ? AtLeast: Count "threads that calls on it woke, or moved to another futex"
        waker_tid: Int "thread that woke most; null: nobody did, or not known"
        waker_comm: Str [Comm] "its name"
        waker_woken ? AtLeast: Count "how many it woke"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "locks",
    about: "Which locks and other futexes threads waited for, how long, and who woke them",
    options: &[TASKS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze locks", "the futexes with most time of waits"),
        ("analyze locks -p 2214 --metric max", "of one process, the longest waits first"),
    ],
    tables: &[Rows::of("locks", &[All(&LOCKS)])],
    run: Run::Prints(run),
    ..View::PLAIN
};

/// What rows are ranked by.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Metric {
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
    metric: Metric,

    #[command(flatten)]
    rank: Few,
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let own: Options = config.own()?;
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    let mut locks = Locks::default();
    let coverage = feed(&context.question, &Calls { question: &context.question }, |told| {
        if let Told::Sum(part) = told {
            locks.merge(part);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    coverage.tell(&mut context.question.loss);
    let Question { loss, scope, book, .. } = &mut context.question;
    loss.keep_counted_of(tape, scope, |call| futexes::is_one(&book.get(call).name));
    let mut rows: Vec<(Lock, Waits)> = locks.sums.into_iter().filter(|(_, waits)| waits.futex.waits > 0).collect();
    rows.sort_by(|(a, one), (b, other)| (Reverse(own.metric.of(one)), a).cmp(&(Reverse(own.metric.of(other)), b)));
    config.shown.rows(rows.len());
    let notes = notes(tape, locks.cut);
    let short = !context.question.loss.complete() || !notes.is_empty();
    let shown = Shown { rows: &rows, limit: own.rank.limit(config.format), short };
    let mut out = output::stdout()?;
    match config.format.rows() {
        Some(form) => {
            let lines = rows.iter().take(shown.limit).map(|(lock, waits)| shown.row(lock, waits));
            sink::print(form, &LOCKS, context.judged(), lines, &mut out)?;
            notes.iter().for_each(|note| complain(note));
        }
        None => {
            losses::head(&context, "At least, because something is missing:", &mut out)?;
            notes.iter().try_for_each(|note| line(&mut out, note))?;
            shown.table().print(&mut out)?;
            rank::more(rows.len(), shown.limit).iter().try_for_each(|text| line(&mut out, text))?;
        }
    }
    losses::end(&context, &mut out, config.format.rows().is_none(), Listed::Nothing)
}

/// What the answer lacks for other reasons than loss.
fn notes(tape: &Tape, cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if losses::stores_some(tape) {
        notes.push("AT LEAST: record stored only some calls".to_owned());
    }
    let left_out = |selection: systape_abi::Selection| {
        let abi =
            if tape.session().machine == "aarch64" { systape_abi::Abi::Aarch64 } else { systape_abi::Abi::X86_64 };
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

impl Metric {
    fn of(self, waits: &Waits) -> u64 {
        match self {
            Self::Total => waits.futex.ns,
            Self::Waits => waits.futex.waits,
            Self::Avg => mean(waits),
            Self::Max => waits.futex.max,
        }
    }
}

fn mean(waits: &Waits) -> u64 {
    waits.futex.ns / waits.futex.waits.max(1)
}

/// The printed form.
struct Shown<'a> {
    rows: &'a [(Lock, Waits)],
    limit: usize,
    /// Something is missing: numbers are at least.
    short: bool,
}

impl Shown<'_> {
    /// `lock` or `wait`; None: what is missing may say that it is a lock.
    fn kind(&self, waits: &Waits) -> Option<&'static str> {
        let known = if self.short { None } else { Some("wait") };
        if waits.futex.is_lock() { Some("lock") } else { known }
    }

    fn row<'r>(&self, lock: &Lock, waits: &'r Waits) -> Row<'r> {
        let (futex, short) = (&waits.futex, self.short);
        let (task, times) = (waits.whose.as_ref().map(|(_, task)| task), short || futex.open);
        let mut row = Row::new(&LOCKS);
        row.set("pid", task.map(|task| task.pid)).set("upid", task.and_then(|task| some(task.upid)));
        row.set("comm", task.map(|task| &task.comm)).set("address", lock.address).set("kind", self.kind(waits));
        row.bound("waits", futex.waits, short).bound("total_ns", futex.ns, times);
        row.bound("avg_ns", mean(waits), times).bound("max_ns", futex.max, times);
        row.bound("timeouts", waits.timeouts, short).bound("again", waits.again, short);
        row.bound("threads", futex.waiters.len(), short || futex.has_more_waiters());
        row.bound("woken", waits.woken, short);
        // of many who woke, what is missing may make another the first
        let waker = waits.waker().filter(|_| !short);
        row.set("waker_tid", waker.map(|((tid, _), _)| *tid))
            .set("waker_comm", waker.map(|((_, comm), _)| comm.to_vec()));
        row.bound("waker_woken", waker.map(|(_, woken)| woken), short);
        row
    }

    fn table(&self) -> Table {
        let headings = ["total ms", "waits", "avg ms", "max ms", "timeouts", "again", "threads", "woken"];
        let table = headings.into_iter().fold(Table::default(), Table::number);
        let mut table = ["kind", "address", "process", "woken most by"].into_iter().fold(table, Table::word);
        for (lock, waits) in self.rows.iter().take(self.limit) {
            let (futex, short) = (&waits.futex, mark::at_least(self.short));
            let times = self.short || futex.open;
            let count = |number: u64| format!("{short}{number}");
            let who = |comm: &[u8], id: u32| format!("{}[{id}]", escaped(comm));
            let waker = waits
                .waker()
                .map(|((tid, comm), woken)| format!("{}{} ({short}{woken})", mark::about(self.short), who(comm, *tid)));
            let many = futex.waiters.len() as u64;
            table.row(vec![
                millis(futex.ns, mark::at_least(times)),
                count(futex.waits),
                millis(mean(waits), mark::about(times)),
                millis(futex.max, mark::at_least(times)),
                count(waits.timeouts),
                count(waits.again),
                format!("{}{many}", mark::at_least(self.short || futex.has_more_waiters())),
                count(waits.woken),
                self.kind(waits).unwrap_or("?").to_owned(),
                format!("{:#x}", lock.address),
                waits.whose.as_ref().map_or_else(|| "?".to_owned(), |(_, task)| who(&task.comm, task.pid)),
                waker.unwrap_or_else(|| if waits.woken > 0 || self.short { "?" } else { "-" }.to_owned()),
            ]);
        }
        table
    }
}
