//! Signals: sender, target, way, and outcome.
//!
//! Two passes over the tape: first all processes and their ends, then the signals, of which only printed ones are kept.

mod follow;
mod party;
pub(super) mod rows;
mod sentence;
mod stacks;
mod text;

use std::cell::RefCell;

use anyhow::{Result, bail};
use systape_format::model::{Family, GapCause, Session};
use systape_format::reader::Tape;

use self::party::Unseen;
use self::stacks::SenderStacks;
use super::Context;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::asked::options::stacks::SymbolPlaces;
use crate::reports::losses;
use systape_answers::derive::processes::{self, Processes};
use systape_answers::derive::signals::track::Passes;
use systape_answers::derive::signals::{EndedTarget, Missing, SignalChoice, SignalLine, Tracker};
use systape_answers::lines::tables as lines;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::render::stamp::Stamps;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::scan::Scan;

/// Input of every form of the report.
struct KillsInput<'a> {
    context: &'a Context<'a>,
    choice: &'a SignalChoice,
    verbose: bool,
    stamps: Stamps,
    processes: &'a Processes,
    records: &'a [SignalLine],
    /// Signals were recorded.
    signals: bool,
    /// Process life was recorded.
    life: bool,
    /// No loss could change the answer.
    whole: bool,
    /// No end of a process is missing, not even after the selected time.
    ends: bool,
    /// Times in which process life is missing.
    unseen: Unseen,
    /// Stacks of senders; None = not recorded, or not requested.
    stacks: Option<RefCell<SenderStacks<'a>>>,
}

impl KillsInput<'_> {
    /// Whether the end of the target would be known.
    fn certain(&self, record: &SignalLine) -> bool {
        let followed = record.outcome.followed || systape_events::question::everyone(self.context.question.tape);
        self.whole && self.ends && self.life && followed
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "kills",
    about: "Who sent which signal to whom, and what came of it",
    options: &[TASKS, &["time", "max_events", "clock", "absolute", "follow"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze kills -v", "both command lines, chains of parents, siginfo"),
        ("analyze kills --signal KILL,TERM --comm=nginx", "only these signals to or from nginx"),
    ],
    tables: &[Rows::of("kills", &[All(&rows::KILLS)]), Rows::json("kills", &[All(&lines::LOSSES)])],
    check,
    reads: |config| config.own::<Options>()?.names.reads(),
    run: AnswerFn::Prints(run),
    follow: Some(|config| {
        let own: Options = config.own()?;
        Ok(Box::new(follow::FollowedKills::new(config, own.signals()?, own.verbose)))
    }),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Only these signals, by name or number: TERM,9,SIGUSR1
    #[arg(long, value_name = "SIGNAL,...", value_delimiter = ',')]
    signal: Vec<String>,

    /// Every signal, not only those that end or stop a process
    #[arg(long)]
    all: bool,

    /// Both command lines, chains of parents, siginfo, the sender's stack
    #[arg(short = 'v', long)]
    verbose: bool,

    #[command(flatten)]
    names: SymbolPlaces,
}

impl Options {
    /// The selected signals.
    fn signals(&self) -> Result<SignalChoice> {
        if self.all && !self.signal.is_empty() {
            bail!("--all and --signal: give one of them");
        }
        let number = |name: &String| match systape_abi::signal_number(name) {
            Some(number) => Ok(number),
            None => bail!("--signal {name}: there is no such signal"),
        };
        let numbers = self.signal.iter().map(number).collect::<Result<Vec<u32>>>()?;
        Ok(match numbers {
            _ if self.all => SignalChoice::All,
            numbers if numbers.is_empty() => SignalChoice::Fatal,
            numbers => SignalChoice::These(numbers),
        })
    }

    /// Whether stacks of senders are printed.
    fn stacks(&self, format: Format) -> bool {
        self.verbose || format != Format::Text
    }
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    if config.format != Format::Text {
        refuse(&[(own.verbose, "-v")], "JSON and CSV have all that is known of a signal")?;
    }
    own.names.check(own.stacks(config.format) && !config.follow)?;
    own.signals().map(drop)
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let choice = own.signals()?;
    let (signals, life) = recorded(tape)?;
    let mut context = Context::about(config, tape, &[Family::Signal, Family::Process])?;
    if !choice.of_everyday() {
        context.question.loss.gaps.retain(|gap| gap.cause != GapCause::Everyday);
    }
    let mut findings = Vec::new();
    let processes = processes::read::read(tape, &mut findings);
    let records = collect(&context, &choice, &processes, &mut findings)?;
    config.shown.rows(records.len());
    context.question.loss.findings.append(&mut findings);
    let names = stacks::names(&own, config.format, tape, out)?;
    if names.is_some() {
        context.question.loss.add_earlier(tape, &[Family::Stack], context.question.scope.to);
    }
    let whole = context.question.loss.complete();
    let stacks = names.as_ref().map(|names| RefCell::new(SenderStacks::new(tape, names)));
    let ends = !processes::read::lost(tape) && tape.end().is_some();
    let loss = &context.question.loss;
    let torn = !loss.findings.is_empty() || !loss.holes.is_empty() || !loss.misses.is_empty();
    let unseen = Unseen { gaps: processes::read::gaps(tape), torn };
    let (context, choice, verbose) = (&context, &choice, own.verbose);
    let (processes, records) = (&processes, &records);
    let stamps = context.stamps_and_wall();
    let story =
        KillsInput { context, choice, verbose, stamps, processes, records, signals, life, whole, ends, unseen, stacks };
    if out.is_text() {
        text::print(&story, out)?;
    } else {
        rows::print(&story, out)?;
    }
    story.stacks.iter().for_each(|stacks| stacks.borrow().findings.iter().for_each(|finding| out.say(finding)));
    let verdict = losses::end(context, out, out.is_text(), losses::pushed(out))?;
    if !out.is_text() {
        missing(tape.session(), choice, (signals, life)).iter().for_each(|line| out.say(line));
    }
    // the end of a process, and what was lost before it, may lie outside of the time asked for
    let unknown = |record: &SignalLine| record.outcome.end.is_none() && record.unseen.is_none() && !ends;
    let doubted = records.iter().any(|record| matches!(record.outcome.cause, EndedTarget::Maybe(_)) || unknown(record));
    Ok(verdict.doubted(doubted))
}

/// Whether signals were recorded, and whether process life was.
fn recorded(tape: &Tape) -> Result<(bool, bool)> {
    let families = &tape.session().families;
    let has = |family| families.contains(&family);
    // tapes of before there were families hold process life
    // and of one whose first block is lost nobody knows
    let (signals, life) =
        (has(Family::Signal) || !tape.session_is_whole(), families.is_empty() || has(Family::Process));
    if !signals && !life {
        bail!("signals and process life were not recorded: record them with --families signal,process");
    }
    Ok((signals, life))
}

/// Which signals pass the filters.
pub(crate) fn passes<'a>(context: &'a Context<'_>) -> Passes<'a> {
    let scope = &context.question.scope;
    Box::new(|sender, target, ts| {
        let who = scope.task(target) || sender.is_some_and(|sender| scope.task(sender));
        who && ts >= scope.from && ts < scope.to
    })
}

/// Facts that the recording left out.
fn missing(session: &Session, choice: &SignalChoice, (signals, life): (bool, bool)) -> Option<String> {
    match (signals, life) {
        (false, _) => Some(match families::why_left_out(session, Family::Signal) {
            Some(why) => format!("signals were not recorded ({why}): who sent them is not known"),
            // by a version before this one
            None if !session.imported.is_empty() => {
                "signals were not imported from the log: who sent them is not known".to_owned()
            }
            None => "signals were not recorded (record --families ...,signal): who sent them is not known".to_owned(),
        }),
        (_, false) => Some(
            "process life was not recorded (record --families ...,process): how processes ended is not known"
                .to_owned(),
        ),
        _ if choice.of_everyday() && session.families.contains(&Family::Look) => Some(
            "beside looks no signals are recorded that end no process (SIGCHLD, handled timers, ...), but SIGCONT"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The passing records, in order of time.
fn collect(
    context: &Context<'_>,
    choice: &SignalChoice,
    processes: &Processes,
    findings: &mut Vec<String>,
) -> Result<Vec<SignalLine>> {
    records(context, Tracker::new(processes, choice, passes(context)), findings)
}

/// What `tracker` makes of the tape's signals, in order of time; what cannot be read is added to `findings`.
pub(crate) fn records(
    context: &Context<'_>,
    tracker: Tracker<'_>,
    findings: &mut Vec<String>,
) -> Result<Vec<SignalLine>> {
    let mut tracker = tracker.hiding_calls(context.question.tape.session().registers_unknown);
    let coverage = Scan::all(context.question.tape).walk(
        "signals",
        |segment, dict| segment.signals(dict),
        |at, dict, events| {
            if !events.is_empty() {
                let calls: Vec<_> = dict.calls.iter().map(|call| context.question.book.get(*call)).collect();
                tracker.segment(at, events, &dict.tasks, &calls);
            }
        },
    );
    let records = tracker.finish(&Missing::of_tape(context.question.tape, coverage.unread()));
    findings.extend(coverage.sentences());
    Ok(records)
}
