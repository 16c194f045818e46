//! `analyze why`: what was slow, and what broke: the first question about a tape.
//!
//! [`collect`] makes the inputs of the rules, these make candidates, and [`measure`] says what each costs and what the subject's time went
//! to, its [`budget`]. A loss marks the findings made from events of its family and process ([`marks`]).

mod budget;
mod collect;
mod faults;
mod frozen;
mod hot;
mod marks;
mod measure;
mod print;
mod rows;
mod sentence;
mod waited_for;
mod when;

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use systape_format::model::{Family, GapCause, Task};
use systape_format::reader::Tape;

use self::marks::LossMarks;
use self::measure::{Before, RankedFinding, Told, measure, unmeasured};
use self::rows::Shown;
use super::stays::full;
use super::{Context, losses};
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use systape_answers::derive::waits::Kind;
use systape_answers::derive::why::finding::{Finding, Severity, Who};
use systape_answers::derive::why::floor::Floor;
use systape_answers::derive::why::rules::{self, RULES, Waits};
use systape_answers::render::out::Out;
use systape_answers::render::rank::Few;
use systape_answers::render::row::Judgement;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::fired::{Fired, fired};
use systape_events::values::timespec;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// First what the subject's time went to (`budget`), then one row for each finding, the worst first: what broke, then by the time it cost,
    /// then what has no known cost.
    pub WHY = "why" {
        kind: Word key "`budget`: a part of the subject's time; `finding`; with `--expand` `member`: one of the things that the finding before it joins"
        level: Int key "of a budget 1: what its threads did, together the subject's time; 2: the states in which they did that, together the row before; null: a finding"
        rule: Word key "name of the rule ([rules](../reading/why.md#rules)); null: a budget"
        class: Word key "`broken`, `time`, or `notice`: what it cost is not known; null: a budget"
        cost_ns ? OfKnown: Duration "of a budget the time; of a finding the wall time that would go away without it; null: not known"
        cost_lo_ns ? OfKnown: Duration "of an estimate by looks its lower bound: in 95 of 100 cases the truth lies between both; null: it is of events"
        cost_hi_ns ? OfKnown: Duration "the most that would go away, where two ways to measure it differ, or the upper bound of an estimate; null: `cost_ns` is the figure"
        cost_is: Word "`saved`: the subject's time that would go away; `rough`: the same, but parts of that time are not known; `at_most`: the time in which somebody was in it; `estimate`: the same, estimated from looks; null: a budget, or no cost"
        subject: Flag "it is of the subject, the command or the tasks that were asked for; false: of others on the machine; null: not known, because something is missing"
        state: Word key "of a budget's level 2: the cause as `path` names it; null: another row"
        pid: Int key "whose time it was; null: of several processes of one name, or of nobody"
        comm: Str key [Comm] "name of the thread or process; null: nobody's"
        processes ? OfKnown: Count "number of processes"
        syscall: Word key "the call; null: none"
        object: Str key [Path] "what it is on: a file, `/dir/*`, a peer, a disk, a program, a lock's address, a signal; null: nothing, or several"
        errno: Word key "name of the error; null: none"
        by_pid: Int "process that held the lock until the longest wait for it ended; null: no lock, or not known"
        by_comm: Str [Comm] "its name"
        count ? OfKnown: Wide "how often; of memory that grew, bytes"
        max_ns ? OfKnown: Duration "the longest; null: no time belongs to it"
        first_ns ? OfKnown: Time "when it began; null: not known"
        last_ns ? OfKnown: Time "when it ended; null: not known"
        functions: Word [Command] "of own code in a budget's level 1, where it was on a CPU: `hot_loop 95%` by CPU samples, `page faults ~60%` by the counts at the process's end; null: another row, none of these, or something is lost"
        text: Word [Command] "the finding as a sentence, with `>=` before figures that may be more"
        command: Word key [Command] "arguments of `analyze` that show it, as a shell takes them, without the tape"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "why",
    about: "What was slow and what broke: findings, the worst first, each with the command that shows it",
    options: &[TASKS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze why", "the first question about any tape"),
        ("analyze why --when", "what began, ended, rose or fell, and when"),
    ],
    tables: &[Rows::of("why", &[All(&WHY)]), Rows::of("why --when", &[All(&when::WHEN)])],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    #[command(flatten)]
    rank: Few,

    /// Leave out what cost less; a bare number is ms [default: 30 ms, or a thousandth of the time if that is more]
    #[arg(long, value_name = "TIME")]
    floor: Option<String>,

    /// Also the files, sockets and the like that a finding joins, most time first
    #[arg(long)]
    expand: bool,

    /// What began, ended, rose or fell, and when: rates and times of calls, memory of processes
    #[arg(long)]
    when: bool,
}

fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    let of_findings = [(own.floor.is_some(), "--floor"), (own.expand, "--expand")];
    if own.when {
        refuse(&of_findings, "it is about findings: --when has changes")?;
    }
    own.floor().map(drop)
}

impl Options {
    fn floor(&self) -> Result<Option<u64>> {
        self.floor.as_ref().map(|text| timespec::duration(text, 1_000_000).context("--floor")).transpose()
    }
}

/// Rule of what a tape was begun for.
const BEGUN: &str = "begun-for";

/// The families that rules judge.
const FAMILIES: [Family; 6] =
    [Family::Syscall, Family::Process, Family::Sched, Family::Block, Family::Signal, Family::Net];

/// All that answers are made of.
struct Answered<'c> {
    context: Context<'c>,
    floor: Floor,
    told: Option<Told>,
    ranked: Vec<RankedFinding>,
    /// Some sums were dropped.
    cut: bool,
    /// Threads waited for locks in memory.
    lock_waits: bool,
    /// Processes died of signals.
    deaths: bool,
}

impl Answered<'_> {
    /// Lines of text beside findings, about.
    fn other_lines(&self) -> usize {
        const ALWAYS: usize = 4;
        let budget = self.told.as_ref().map_or(0, |told| told.budget.lines.len().min(print::budget_lines()) + 2);
        let others = if self.ranked.iter().all(|ranked| ranked.own) { 0 } else { 2 + 2 * print::on_screen() };
        ALWAYS + budget + others
    }

    fn shown(&self, limit: usize, expand: bool) -> Shown<'_> {
        let marks = LossMarks::new(&self.context.question.loss, self.context.question.scope.to);
        Shown { told: self.told.as_ref(), ranked: &self.ranked, cut: self.cut, marks, limit, expand }
    }
}

/// Reads the tape; `floor`: what was asked for.
fn answered<'c>(config: &'c Config, tape: &'c Tape, floor: Option<u64>) -> Result<Answered<'c>> {
    let session = tape.session();
    let has = |family| families::in_session(session, family);
    let mut recorded: Vec<Family> = FAMILIES.into_iter().filter(|family| has(*family)).collect();
    if recorded.is_empty() && tape.session_is_whole() {
        bail!("nothing that 'analyze why' judges was recorded: {}", families::instead(tape, Family::Syscall));
    }
    // look-ups that a probe saw; a tape that lost them all does not know that there were any
    recorded.push(Family::Tracepoint);
    if families::is_of_looks(session) {
        recorded.push(Family::Look);
    }
    if hot::has_samples(tape) {
        recorded.extend([Family::Sample, Family::Stack]);
    }
    let mut context = Context::about(config, tape, &recorded)?;
    // who was there, and in what, follows from what was before the time asked for
    context.question.loss.add_earlier(tape, &recorded, context.question.scope.to);
    context.question.loss.gaps.retain(|gap| gap.cause != GapCause::Everyday);
    let from = context.question.scope.from.max(session.window_open);
    let to = context.question.scope.to.min(tape.complete_until());
    let floor = Floor::of(to.saturating_sub(from), floor);
    let mut collected = collect::collect(&mut context, &recorded, floor, (from, to))?;
    let candidates = rules::judge(&collected.inputs, has);
    // no finding is an answer; that nothing was looked at is not
    config.shown.rows(collected.inputs.len());
    let (barriers, last) = (collected.inputs.barriers(), collected.inputs.last_to_come());
    let before = Before { log: collected.log.take(), candidates, span: (from, to), floor, barriers, last };
    // they are many, and the candidates have what is told of them
    let cut = collected.cut;
    let is_lock = |waits: &Waits| matches!(waits.kind, Kind::Lock | Kind::Deadlock);
    let lock_waits = collected.inputs.futexes.iter().any(is_lock);
    let deaths = !collected.inputs.deaths.is_empty();
    drop(collected);
    let (told, mut ranked) = measure(config, &mut context, before)?;
    if tape.session().kept.is_none() {
        // what looks found wrong before the tape was begun is why it is there
        let begun = fired(tape).into_iter().find(|fired| fired.began).map(begun_for);
        ranked.splice(0..0, begun.map(unmeasured));
    }
    ranked.iter_mut().for_each(|ranked| narrow(&mut ranked.finding, (from, to), session.window_open));
    Ok(Answered { context, floor, told, ranked, cut, lock_waits, deaths })
}

/// The finding that the tape was begun for, by looks beside it.
fn begun_for(fired: Fired) -> Finding {
    let (what, trigger) = (escaped(&fired.what), escaped(&fired.trigger));
    let found = |task: &Task| format!(", thread {}: looks found it, and", task.tid);
    let thread = fired.task.as_ref().map_or_else(|| ":".to_owned(), found);
    Finding {
        rule: BEGUN,
        class: Severity::Notice,
        processes: 1,
        count: 1,
        span: Some((fired.ts, fired.ts)),
        text: format!("{what}{thread} this recording was begun for it ({trigger})"),
        command: fired
            .task
            .as_ref()
            .map_or("states --at 0".to_owned(), |task| format!("states --at 0 -t {}", task.tid)),
        who: fired.task.map_or_else(Who::default, |task| Who { comm: task.comm, pid: Some(task.pid) }),
        ..Finding::default()
    }
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    if own.when {
        return when::run(config, tape, config.few(own.rank), out);
    }
    let answered = answered(config, tape, own.floor()?)?;
    let context = &answered.context;
    let unknown = unknown(context, answered.cut);
    // a finding and its command
    let limit = own.rank.limit_of(config.format, 2, answered.other_lines() + unknown.len());
    let shown = answered.shown(limit, own.expand);
    if out.is_text() {
        shown.print(context, answered.floor, &unknown, out)?;
    } else {
        out.rows(&WHY, Judgement::Touched(false), shown.rows(tape.session().window_open))?;
        out.flush()?;
        unknown.iter().for_each(|text| out.say(text));
    }
    losses::end_of_sums(context, out)
}

/// The beginning of the answer, for who has asked nothing yet.
pub(crate) struct FirstFindings {
    /// The subject's findings as in text, without their times and commands.
    pub lines: Vec<String>,
    /// How many more there are, those of others among them.
    pub more: usize,
    /// What stands in place of findings; empty: there are some.
    pub none: &'static str,
    /// What was lost, in sentences: what turned out while the tape was read too.
    pub lost: Vec<String>,
    /// What the answer cannot hold.
    pub unknown: Vec<String>,
    /// Threads waited for locks in memory.
    pub lock_waits: bool,
    /// Processes died of signals.
    pub deaths: bool,
}

/// The first `most` findings, without options.
///
/// # Errors
/// The tape has nothing to judge.
pub(crate) fn first(config: &Config, tape: &Tape, most: usize) -> Result<FirstFindings> {
    let answered = answered(config, tape, None)?;
    let shown = answered.shown(most, false);
    let (lines, none) = shown.first();
    Ok(FirstFindings {
        more: answered.ranked.len() - lines.len(),
        none: if lines.is_empty() { none } else { "" },
        lines,
        lost: answered.context.question.loss.lines(tape.session(), losses::LOSS_LINES),
        unknown: unknown(&answered.context, answered.cut),
        lock_waits: answered.lock_waits,
        deaths: answered.deaths,
    })
}

/// Adds to the command when it was, if that is less than half of the time that was looked at, `from` to `to`.
fn narrow(finding: &mut Finding, (from, to): (u64, u64), open: u64) {
    // a bit before and behind: ends of what is asked for may be ends of other events
    const ROOM: u64 = 1_000_000;
    let Some((first, last)) = finding.span.filter(|_| finding.class == Severity::Time) else { return };
    let (first, last) = (first.saturating_sub(ROOM).max(open), last.saturating_add(ROOM));
    if last.saturating_sub(first) > to.saturating_sub(from) / 2 {
        return;
    }
    // whole milliseconds, outwards
    let [first, last] = [(first - open) / ROOM, (last.saturating_sub(open)).div_ceil(ROOM)];
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    finding.command.push_str(&format!(" --time {},{}", seconds(first), seconds(last)));
}

/// What the answer cannot hold.
fn unknown(context: &Context<'_>, cut: bool) -> Vec<String> {
    let tape = context.question.tape;
    let session = tape.session();
    let mut lines = Vec::new();
    if families::is_of_looks(session) {
        lines.push(
            "by looks at threads: times are estimates with bounds; what no look fell into is not here".to_owned(),
        );
        lines.extend(full::notes(context));
    }
    let judged = |family: &Family| families::in_session(session, *family) || families::is_of_looks(session);
    for family in FAMILIES.into_iter().filter(|family| !judged(family)) {
        let mut blind: Vec<&str> =
            RULES.iter().filter(|rule| rule.needs.contains(&family)).map(|rule| rule.name).collect();
        if family == Family::Signal {
            blind.push("senders of signals");
        }
        if !blind.is_empty() {
            lines.push(format!("not known: {} ({} was not recorded)", blind.join(", "), family.name()));
        }
    }
    if families::in_session(session, Family::Syscall) {
        if losses::stores_some(tape) {
            lines.push("not known: many short calls (record stored only some calls)".to_owned());
        }
        if !session.selection.is_empty() {
            lines.push("not known: time in calls that record -e did not select".to_owned());
        }
    }
    if !context.question.loss.complete() {
        lines.push("lost events may hide findings".to_owned());
    }
    if cut {
        lines.push("sums beyond the memory for them were dropped: figures are lower bounds".to_owned());
    }
    lines
}
