//! Started programs, with arguments, failures and ends, as execsnoop shows them; or the tree of processes.

pub(super) mod ends;
mod follow;
pub(super) mod listing;
pub(super) mod rows;
pub(super) mod tree;

use anyhow::{Result, bail};
use systape_abi::{Abi, Effect, Selection};
use systape_format::model::{Family, Session};
use systape_format::reader::Tape;

use self::ends::AskedEnds;
use self::listing::Layout;
use self::rows::After;
use super::Context;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use crate::reports::losses::{self, LOSS_LINES};
use systape_answers::derive::lost_calls::has_effect;
use systape_answers::derive::processes::interpreters::Interpreters;
use systape_answers::derive::processes::usage::Usages;
use systape_answers::derive::processes::{self, Ending, Processes};
use systape_answers::derive::signals::via;
use systape_answers::derive::summary::ledger::options;
use systape_answers::render::out::Out;
use systape_answers::render::row::ShownTimes;
use systape_answers::render::stamp::Stamps;
use systape_answers::values::say::Verdict;
use systape_events::calls;
use systape_events::families::in_session;

/// What is printed.
pub(in crate::reports) enum Form {
    /// Attempts to start a program; `failures`: those that failed too; `ends`: only programs that ended so.
    List { layout: &'static Layout, failures: bool, ends: Option<AskedEnds> },
    /// The tree of processes; `all`: with kernel threads.
    Tree { all: bool },
}

/// Input of every form of both reports.
pub(in crate::reports) struct ExecInput<'a> {
    context: &'a Context<'a>,
    /// Kernel threads are in the tree too.
    kernel_threads: bool,
    processes: &'a Processes,
    usages: &'a Usages,
    times: ShownTimes<'a>,
    pub stamps: Stamps,
    /// The time up to which lifetimes are known.
    until: u64,
    /// No loss could change the answer.
    whole: bool,
    /// No end of a process is missing, not even after the selected time or after the tape.
    ends: bool,
    /// A process without a known end lived on, at least until `until`.
    lives: bool,
    /// Rows come as things happen: a program that ends has a second one, at the time of its end.
    live: bool,
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "exec",
    about: "Programs that were started, with arguments, failures and ends; or the tree of processes",
    options: &[TASKS, &["time", "max_events", "clock", "absolute", "failure", "follow"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze exec --exit '!=0'", "programs that failed, or died by a signal"),
        ("analyze exec --tree --comm=watch", "who started what, how it ended, below watch"),
    ],
    tables: &[Rows::of("exec", &[All(&listing::EXEC)]), Rows::of("exec --tree", &[All(&tree::TREE)])],
    check,
    run: AnswerFn::Prints(run),
    follow: Some(|config| Ok(Box::new(follow::FollowedExecs::new(config, config.own::<Options>()?.ends()?)))),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// With --tree: kernel threads too
    #[arg(long)]
    all: bool,

    /// Programs that ended so: 0, 1,2, TERM, signal (any); '!=0': in any other way
    #[arg(long, value_name = "END", allow_hyphen_values = true)]
    exit: Option<String>,
}

impl Options {
    fn ends(&self) -> Result<Option<AskedEnds>> {
        self.exit.as_deref().map(AskedEnds::parse).transpose()
    }
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    let exit = own.ends()?.is_some();
    let failure = config.filters.failure;
    if config.tree {
        let of_list = [(failure, "--failure"), (exit, "--exit")];
        return refuse(&of_list, "the tree has processes, not attempts to run a program");
    }
    refuse(&[(exit && failure, "--exit")], "an attempt that failed (--failure) has no end")?;
    refuse(&[(own.all, "--all")], "kernel threads are shown in the tree (--tree)")
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let ends = own.ends()?;
    let list = || Form::List { layout: &listing::LAYOUT, failures: ends.is_none(), ends };
    answer(config, tape, if config.tree { Form::Tree { all: own.all } } else { list() }, out)
}

/// The whole answer of a report in this form.
pub(in crate::reports) fn answer(config: &Config, tape: &Tape, form: Form, out: &mut Out) -> Result<Verdict> {
    require(tape)?;
    let (tree, all, failures) = match &form {
        Form::Tree { all } => (true, *all, false),
        Form::List { failures, .. } => (false, false, *failures),
    };
    let mut context = Context::about(config, tape, families(failures))?;
    let mut findings = Vec::new();
    let processes = processes::read::read(tape, &mut findings);
    let mut rows = if tree { Vec::new() } else { rows::collect(&mut context, &processes, failures) };
    let mut usages = Usages::default();
    if rows.iter().any(|row| matches!(row.after, After::End(_))) {
        let (read, coverage) = Usages::read(tape);
        usages = read;
        coverage.tell(&mut context.question.loss);
    }
    if rows.iter().any(|row| row.errno != 0) {
        let (read, coverage) = Interpreters::read(tape);
        rows.iter_mut().for_each(|row| row.asked = read.of(row.task.tid, row.failed_at).cloned());
        coverage.tell(&mut context.question.loss);
    }
    context.question.loss.findings.append(&mut findings);
    // of calls only attempts are listed
    context
        .question
        .loss
        .keep_counted_of(tape, &context.question.scope, |call| has_effect(call, |e| e == Effect::Exec));
    if tree {
        // a process that is shown may have begun, and become what it is, before the time asked for
        context.question.loss.add_earlier(tape, &[Family::Process], context.question.scope.to);
    }
    let until = tape.complete_until();
    let whole = context.question.loss.complete();
    let times = context.times();
    let lost = processes::read::lost(tape);
    let ends = whole && !lost && tape.end().is_some();
    let loss = &context.question.loss;
    let lives = !lost && loss.findings.is_empty() && loss.holes.is_empty() && loss.misses.is_empty();
    let stamps = match &form {
        Form::List { layout, .. } if !layout.always_timed => Stamps::new(config.base().as_slice(), tape),
        _ => context.stamps_and_wall(),
    };
    // how a process ended, and whether, may have been lost outside of the time asked for
    let open = |row: &&rows::Row| row.errno == 0 && matches!(row.after, After::Open | After::Lost);
    let mut doubted = !ends && rows.iter().any(|row| open(&row));
    let mut left_out = 0;
    if let Form::List { ends: Some(asked), .. } = &form {
        left_out = if ends { 0 } else { rows.iter().filter(open).count() };
        rows.retain(|row| matches!(row.after, After::End(end) if asked.has(&end)));
    }
    let story = ExecInput {
        context: &context,
        kernel_threads: all,
        processes: &processes,
        usages: &usages,
        times,
        stamps,
        until,
        whole: whole && left_out == 0,
        ends,
        lives,
        live: false,
    };
    doubted |= tree && !ends && tree::open(&story);
    let notes = notes(&context, failures);
    out.text(context.question.loss.lines(tape.session(), LOSS_LINES))?;
    out.text(notes.iter().map(|note| format!("NOT RECORDED: {note}")))?;
    if left_out > 0 {
        let s = if left_out == 1 { "" } else { "s" };
        out.notes([format!("AT LEAST: {left_out} program{s} more may have ended so: how is not known")])?;
    }
    match form {
        Form::Tree { .. } => tree::print(&story, out)?,
        Form::List { layout, .. } => listing::print(&story, layout, &rows, out)?,
    }
    let verdict = losses::end_of_sums(&context, out)?;
    if !out.is_text() {
        notes.iter().for_each(|line| out.say(line));
    }
    Ok(verdict.doubted(doubted))
}

/// Refuses a tape without process life.
fn require(tape: &Tape) -> Result<()> {
    if !in_session(tape.session(), Family::Process) {
        bail!("process life was not recorded: record it with --families process");
    }
    Ok(())
}

/// The families whose loss could change the answer: attempts that failed are calls.
fn families(failures: bool) -> &'static [Family] {
    if failures { &[Family::Process, Family::Syscall] } else { &[Family::Process] }
}

/// What was not recorded of attempts.
fn notes(context: &Context<'_>, failures: bool) -> Vec<String> {
    let tape = context.question.tape;
    let mut notes = Vec::new();
    if failures && !in_session(tape.session(), Family::Syscall) {
        let why = "calls were not recorded (record --families ...,syscall): attempts that failed are missing";
        notes.push(why.to_owned());
    } else if failures
        && !calls::recorded(tape.session()).is_some_and(|selection| has_execs(&selection, tape.session()))
    {
        let why =
            "calls were recorded with -e: attempts that failed are missing unless it selected execve and execveat";
        notes.push(why.to_owned());
    }
    if failures && losses::stores_some(tape) {
        let options = options(tape.session());
        notes.push(format!("record stored only some calls{options}: other attempts that failed are missing"));
    }
    notes
}

/// Whether all calls that start a program are among these.
fn has_execs(selection: &Selection, session: &Session) -> bool {
    let has = |abi: Abi, name| systape_abi::number(abi, name).is_none_or(|nr| selection.contains(abi, nr));
    let native = calls::native_abi(&session.machine);
    let abis: &[Abi] = if native == Abi::X86_64 { &[Abi::X86_64, Abi::I386] } else { &[native] };
    abis.iter().all(|&abi| has(abi, "execve") && has(abi, "execveat"))
}

impl ExecInput<'_> {
    /// The exit column: status or signal; `-` alive at the end, `?` not known.
    fn exit_text(&self, end: Option<&Ending>, followed: bool) -> String {
        match end {
            Some(end) => match (end.signal(), end.status()) {
                (Some(sig), _) => format!("{}{}", via::name(sig), if end.core_dumped() { " core" } else { "" }),
                (_, status) => status.unwrap_or(0).to_string(),
            },
            None if followed && self.ends => "-".to_owned(),
            None => "?".to_owned(),
        }
    }
}
