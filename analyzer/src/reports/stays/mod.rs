//! `analyze stays`: what threads were in, by looks at all of them (`record --sample`): states, calls and files, with how many threads
//! were in them on average, and how far that may be off; or the longest stays one by one.

mod list;
pub(super) mod read;

use std::cmp::Reverse;

use anyhow::Result;
use systape_format::families::{LOOK_IDLE, LOOK_SECOND, LOOK_STAY};
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::idle::{self, Folded};
use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::asked::options::idle::Idle;
use read::{Covered, StaySums};
use systape_answers::derive::presence::{Estimate, Presence};
use systape_answers::derive::summary::plan::Plan;
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by::{self, BY};
use systape_answers::render::cell::Cell;
use systape_answers::render::keys::with_keys;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::Few;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::group::value::{Key, Value};
use systape_events::values::order::InOrder as _;

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns, the one with most threads first. All but `looks` and `stays` are
    /// estimates: what no look fell into has no row.
    pub STAYS = "stays" {
        rest: Flag key "the threads wait for work: in a call that does so whatever it is on, or for data of a pipe, a terminal or a server's socket"
        threads ? OfKnown: Real "threads that were so at once, on average"
        threads_low ? OfKnown: Real "lower bound: in 95 of 100 cases the truth lies between both"
        threads_high ? OfKnown: Real "upper bound, likewise"
        time_ns ? OfKnown: Duration "time of all threads in it together: `threads` times the time that looks cover"
        time_low_ns ? OfKnown: Duration "its lower bound"
        time_high_ns ? OfKnown: Duration "its upper bound"
        looks ? AtLeast: Count "looks, in state RUN samples, that found a thread so"
        stays ? AtLeast: Count "stays that they fell into: without a switch in between; null: not known"
        longest_ns ? AtLeast: Duration "the longest that one of these is known to have been; null: likewise"
    }
}

/// The default keys: those of xcapture and psn.
const DEFAULT: [GroupKey; 3] = [GroupKey::State, GroupKey::Syscall, GroupKey::File];

/// The keys that rows can have.
const KNOWN: [GroupKey; 14] = GroupKey::of_task_and(&[GroupKey::State, GroupKey::Syscall, GroupKey::File]);

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "stays",
    about: "What threads were in, by looks at all of them (record --sample): states, calls, files, with error bars",
    options: &[TASKS, &["time", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze stays --time 10,20", "what threads waited for in ten seconds"),
        ("analyze stays --longest -p 2214", "the longest stays of a process, one by one"),
    ],
    tables: &[Rows::of("stays", &[KeysPart(&BY), All(&STAYS)]), Rows::of("stays --longest", &[All(&list::LONGEST)])],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// The longest stays one by one, instead of sums
    #[arg(long)]
    longest: bool,

    #[command(flatten)]
    rank: Few,

    #[command(flatten)]
    idle: Idle,
}

fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    let keys = GroupKey::parse(&config.by, &KNOWN, "'analyze stays'")?;
    Ok(if keys.is_empty() { DEFAULT.to_vec() } else { keys })
}

fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    keys(config)?;
    if own.longest {
        refuse(&[(!config.by.is_empty(), "--by")], "--longest lists stays one by one")?;
    }
    own.idle.check(config, &[])
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Look, "looks at threads")?;
    let own: Options = config.own()?;
    let by = keys(config)?;
    let mut context = Context::about(config, tape, &[Family::Look, Family::Sample])?;
    let folds = !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    if own.longest {
        return list::run(&mut context, config.few(own.rank), folds, out);
    }
    sums(&mut context, &by, (folds, config.few(own.rank)), out)
}

/// Prints times by `by`. With `folds` threads at rest are one line.
fn sums(context: &mut Context<'_>, by: &[GroupKey], (folds, limit): (bool, usize), out: &mut Out) -> Result<Verdict> {
    let tape = context.question.tape;
    let plan = Plan::by(by).naming(tape.session());
    let (sums, coverage) = StaySums::read(&context.question, &plan);
    coverage.tell(&mut context.question.loss);
    let words = KeyWords { session: tape.session(), book: &context.question.book, plan: &plan };
    let StaySums { groups, labels, covered } = &sums;
    let found: Vec<(Key, bool, &Presence)> = groups
        .iter()
        .filter_map(|(key, sum)| {
            let mut key = key.key();
            let rest = key.pop()? == Value::Number(1);
            Some((key, rest, &sum.0))
        })
        .collect();
    let mut rows: Vec<StayLine<'_>> = found
        .iter()
        .map(|(values, rest, presence)| {
            let keys = RowKeys { words, values, task: labels.get(values, &plan) };
            let running = plan.place(GroupKey::State).is_some_and(|at| values[at] == read::word(read::RUNNING));
            StayLine { keys, rest: *rest, presence, estimate: presence.estimate(), running }
        })
        .collect();
    rows.order_by_key(|line| (line.rest, Reverse(line.presence.nanos()), line.keys.values));
    let all = rows.iter().fold(0_u64, |all, line| all.saturating_add(line.presence.nanos()));
    let mut folded = Folded::default();
    rows.retain(|line| {
        let fold = folds && line.rest;
        if fold {
            folded.add(line.presence.nanos(), false);
        }
        !fold
    });
    let counted = covered.counted(!context.question.scope.by_task());
    losses::head(context, losses::AT_LEAST, out)?;
    out.text([covered.line()])?;
    out.notes(covered.notes(tape))?;
    let declared = with_keys(by::columns(by), &STAYS);
    let headings = ["threads", "from", "to", "time ms", "looks", "stays", "longest ms"];
    let headings = headings.into_iter().fold(Table::default(), Table::number);
    out.ranking(
        TopRows {
            table: &declared,
            judged: context.judged(),
            headings: by.iter().fold(headings, |table, by| table.word(by.heading())).leaving(&[
                "looks",
                "time ms",
                "stays",
                "longest ms",
            ]),
            all: rows.len(),
            limit,
        },
        rows.iter(),
        |line| line.row(&declared, by, covered),
        |line| line.cells(by, covered),
    )?;
    out.text(folded.line(all))?;
    out.text(counted)?;
    losses::end_of_sums(context, out)
}

/// A row.
struct StayLine<'a> {
    keys: RowKeys<'a>,
    rest: bool,
    presence: &'a Presence,
    estimate: Estimate,
    /// It is of samples, which do not say whether two of them found one stay.
    running: bool,
}

impl StayLine<'_> {
    fn row<'r>(&'r self, declared: &'r systape_format::table::TableDef, by: &[GroupKey], covered: &Covered) -> Row<'r> {
        let mut row = Row::new(declared);
        by::fill(&mut row, by, |by, name| match self.keys.cell(by, name) {
            // a word that is no call has no ABI
            Cell::Text(_) if name == "abi" && !self.is_call(by) => Cell::Null,
            cell => cell.into_owned(),
        });
        let Estimate { time, low, high } = self.estimate;
        let ns = |time: f64| time.max(0.0) as u64;
        row.set("rest", self.rest).set("threads", covered.threads(time));
        row.set("threads_low", covered.threads(low)).set("threads_high", covered.threads(high));
        row.set("time_ns", ns(time)).set("time_low_ns", ns(low)).set("time_high_ns", ns(high));
        row.set("looks", self.presence.looks);
        row.set("stays", (!self.running).then_some(self.presence.stays));
        row.set("longest_ns", (!self.running).then_some(self.presence.longest));
        row
    }

    fn is_call(&self, by: GroupKey) -> bool {
        self.keys.words.plan.place(by).is_some_and(|at| matches!(self.keys.values[at], Value::Call(_)))
    }

    fn cells(&self, by: &[GroupKey], covered: &Covered) -> Vec<String> {
        let Estimate { time, low, high } = self.estimate;
        let threads = |time: f64| format!("{:.3}", covered.threads(time));
        let known = |text: String| if self.running { "-".to_owned() } else { text };
        let mut cells = vec![
            threads(time),
            threads(low),
            threads(high),
            millis(time as u64, ""),
            self.presence.looks.to_string(),
            known(self.presence.stays.to_string()),
            known(millis(self.presence.longest, "")),
        ];
        cells.extend(by.iter().map(|by| self.keys.text(*by)));
        cells
    }
}

/// The tables that looks are stored in.
const TABLES: [&systape_format::table::TableDef; 3] = [&LOOK_STAY, &LOOK_SECOND, &LOOK_IDLE];
