//! The critical path of a thread: why something took so long, across the threads that it waited for.

mod rows;
mod sums;
mod without;

use std::io::{self, Write};

use anyhow::{Result, bail};
use systape_format::model::{Extent, Family};
use systape_format::reader::Tape;

use self::rows::{PATH, Shown};
use self::sums::{PATH_SUMS, Sums};
use self::without::PATH_WITHOUT;
use super::traced::cause::Cause;
use super::traced::subject::{Subject, subject};
use super::traced::{Found, causes, held, path, request, spans};
use super::{Context, losses, scheduling};
use crate::asked::config::view::{AnswerFn, Own, Part as Columns, Rows, View};
use crate::asked::config::{Config, refuse};
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::doing::{Doings, In, Spent};
use systape_answers::derive::critical::log::{Log, Logged};
use systape_answers::derive::critical::walk::{Handover, Path};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::feed;
use systape_answers::derive::runs::keys::{self, Words, task_text};
use systape_answers::render::out::Out;
use systape_answers::render::rank::Few;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::families::in_session;
use systape_events::question::Question;
use systape_events::values::words::span;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "path",
    about: "Why a thread or process took so long: its critical path, across the threads that it waited for",
    options: &[&["pids", "tids", "time", "absolute", "clock"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze path -p 2214", "what the time of a process went to, in whichever process that was"),
        ("analyze path --without fsync", "how long the recorded command would have taken without a cause"),
    ],
    tables: &[
        Rows::of("path", &[Columns::All(&PATH)]),
        Rows::of("path --sums", &[Columns::All(&PATH_SUMS)]),
        Rows::of("path --without", &[Columns::All(&PATH_WITHOUT)]),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Only the sums by cause
    #[arg(long)]
    sums: bool,

    /// How long it would have taken without CAUSE: CALL[,CALL...][:FILE], runqueue, throttled, stopped, sleep, or comm=NAME
    #[arg(long, value_name = "CAUSE")]
    without: Option<String>,

    #[command(flatten)]
    rank: Few,
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    if config.filters.pids.len() + config.filters.tids.len() > 1 {
        bail!("a path is of one thread: give one -t TID or one -p PID");
    }
    let own: Options = config.own()?;
    if own.sums {
        refuse(&config.clock_options(), "sums have no times of the tape")?;
    }
    if let Some(cause) = &own.without {
        refuse(&[(own.sums, "--sums"), (own.rank.given(), "--top")], "--without prints one line")?;
        without::patterns(cause)?;
    }
    Ok(())
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    scheduling::require(tape)?;
    if let Some(cause) = &own.without {
        return without::run(config, tape, cause, out);
    }
    let session = tape.session();
    let calls = in_session(session, Family::Syscall);
    let mut families = vec![Family::Sched, Family::Process];
    if calls {
        families.push(Family::Syscall);
    }
    // whom a thread waited for is not known before: nobody is left out
    let filters = config.filters.of_time();
    let mut context = Context { config, question: Question::new(&filters, tape, &families)? };
    let from = context.question.scope.from.max(session.window_open);
    let to = context.question.scope.to.min(tape.complete_until());
    let needs = Needs { calls, files: false, ..Needs::default() };
    let fed = feed::feed(&context.question, needs, to, Log::new(from));
    let log = fed.tracker.sink;
    let subject = subject(config, tape, &log.threads);
    let (path, parts) = match subject {
        Some(of) => path(&log.threads, of.id, (of.from.max(from), to)),
        None => (Path::default(), Vec::new()),
    };
    let spans = spans(&path, &parts);
    let needs = Needs { files: calls, ..needs };
    let doings = Doings::new(spans, log.ids, keys::all_calls(session));
    let told = feed::feed(&context.question, needs, to, doings);
    let mut spent = told.tracker.sink.spent;
    spent.resize_with(parts.len() + path.handovers.len(), Spent::default);
    let waits = spent.split_off(parts.len());

    scheduling::touched(fed.coverage, fed.unsure_until.max(told.unsure_until), &mut context);
    told.coverage.tell(&mut context.question.loss);
    let words = Words { session, book: &context.question.book, names: &told.names };
    let mut found = merge(causes(parts, spent, tape, &words));
    let ios = request::of(tape, &found, &log.threads);
    found.iter_mut().zip(ios).for_each(|(found, io)| found.io = io);
    let limits = held::back(tape, &found, (&log.threads, &told.names));
    found.iter_mut().zip(limits).for_each(|(found, limit)| found.limit = limit);
    if in_session(session, Family::Block) && found.iter().any(|found| found.cause == Cause::Disk) {
        context.question.loss.add_earlier(tape, &[Family::Block], u64::MAX);
    }
    let sums = Sums::of(&found, &log.threads);
    config.shown.rows(if own.sums { sums.len() } else { found.len() });
    let answer = Answer { threads: &log.threads, path: &path, found: &found, waits: &waits, words, context: &context };
    let limit = config.few(own.rank);
    scheduling::head(&context, out)?;
    const NO_THREAD: &str = "no such thread is recorded in this part of the tape";
    match &subject {
        _ if !out.is_text() && own.sums => out.rows(&PATH_SUMS, context.judged(), sums.rows(&answer, limit))?,
        _ if !out.is_text() => out.rows(&PATH, context.judged(), Shown { answer: &answer, limit }.rows())?,
        Some(subject) => {
            head(&answer, subject, out)?;
            sums.print(&answer, limit, out)?;
            if !own.sums {
                line(out, "")?;
                Shown { answer: &answer, limit }.print(out)?;
            }
            foot(&context, out)?;
        }
        None => {}
    }
    if subject.is_none() {
        out.notes([NO_THREAD])?;
    }
    losses::end_of_sums(&context, out)
}

/// Joins what follows each other and is the same, of a thread of one name.
fn merge(found: impl Iterator<Item = Found>) -> Vec<Found> {
    let place = |found: &Found| found.spent.most().map(|most| (most.place, most.file));
    let mut merged: Vec<Found> = Vec::new();
    for next in found {
        match merged.last_mut() {
            Some(last)
                if (last.part.thread, last.part.kind, last.part.handover)
                    == (next.part.thread, next.part.kind, next.part.handover)
                    && (last.cause, last.behind, last.part.to) == (next.cause, next.behind, next.part.from)
                    && (place(last), last.part.task) == (place(&next), next.part.task) =>
            {
                last.part.to = next.part.to;
                last.spent.merge(next.spent);
            }
            _ => merged.push(next),
        }
    }
    merged
}

/// All that answers are made of.
struct Answer<'a> {
    threads: &'a [Logged],
    path: &'a Path,
    found: &'a [Found],
    /// What the threads of [`Path::handovers`] were in.
    waits: &'a [Spent],
    words: Words<'a>,
    context: &'a Context<'a>,
}

impl Answer<'_> {
    /// `app[12/10]` as it was called at `ts`.
    fn who(&self, id: Id, ts: u64) -> String {
        let task = self.threads.get(id as usize).and_then(|thread| thread.task_at(ts));
        task.map_or_else(|| "?".to_owned(), |task| task_text(task))
    }

    fn total(&self) -> u64 {
        self.found.iter().fold(0, |sum, found| sum + found.ns())
    }

    /// `read pipe:[12]`, `futex`; what a thread waited in.
    fn call(&self, most: Option<&In>) -> String {
        let Some(most) = most else { return "?".to_owned() };
        let name = match most.place {
            keys::Place::User => "a page fault or the like".to_owned(),
            keys::Place::Kernel => "its own work".to_owned(),
            keys::Place::Unknown | keys::Place::Any => "a call that is not known".to_owned(),
            keys::Place::Call(_) => self.words.place(most.place),
        };
        match self.words.names.name(most.file) {
            Some(file) => format!("{name} of {}", self.words.escaped(file)),
            None => name,
        }
    }

    fn handover(&self, at: u32) -> &Handover {
        &self.path.handovers[at as usize]
    }
}

/// Which thread, why this one, and which time.
fn head(answer: &Answer<'_>, subject: &Subject, out: &mut impl Write) -> io::Result<()> {
    let (Some(first), Some(last)) = (answer.found.first(), answer.found.last()) else {
        return line(out, "that thread did not run or wait in this part of the tape");
    };
    let stamps = answer.context.stamps_of_sentences();
    let who = subject.words(answer.threads, (first.part.from, last.part.to));
    let when = stamps.span(first.part.from, last.part.to);
    line(out, &format!("The {} of {who}, {when}, went to:", span(answer.total())))?;
    line(out, "")
}

/// What limits the answer.
fn foot(context: &Context<'_>, out: &mut impl Write) -> io::Result<()> {
    let session = context.question.tape.session();
    if session.extent == Extent::Some {
        line(out, "\nthe tape has only the recorded tasks; what others did is unknown (record -a has all)")?;
    }
    if !in_session(session, Family::Syscall) {
        line(out, "\nno calls were recorded: what threads waited in is unknown (record --families syscall)")?;
    } else if !keys::all_calls(session) || losses::stores_some(context.question.tape) {
        line(out, "\nsome calls are not on the tape: what a thread was in is sometimes unknown")?;
    }
    Ok(())
}
