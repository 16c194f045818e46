//! `analyze why`: what was slow, and what broke: the first question about a tape.
//!
//! Which figures are wrong by what was lost no rule knows: with any loss before the end of the time looked at, all of them are marked.

mod collect;

use std::io::Write;

use anyhow::{Result, bail};
use systape_format::model::{ERRNO_ANY, Family, GapCause};
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{Own, Rows, Run, TASKS, View};
use crate::derive::why::finding::{Class, Finding};
use crate::derive::why::floor::Floor;
use crate::derive::why::rules::{self, RULES};
use crate::render::cell::Cell;
use crate::render::form::Format;
use crate::render::mark;
use crate::render::rank::{self, Few};
use crate::render::row::Row;
use crate::render::sink;
use crate::render::stamp::{Stamps, TimeBase};
use crate::table::families;
use crate::table::loss::Listed;
use crate::values::num::grouped;
use crate::values::output::{self, line};
use crate::values::say::{Verdict, complain};
use crate::values::timespec;
use crate::values::words::{errno_text, escaped, shell, span};

systape_format::tables! {
    /// One row for each finding, the worst first: what broke, then by the time it cost, then what has no known cost.
    pub WHY = "why" {
        rule: Word "name of the rule ([rules](why.md#rules))"
        class: Word "`broken`, `time`, or `notice`: what it cost is not known"
        cost_ns ? OfKnown: Duration "wall time that would go away without it, never more than from `first_ns` to `last_ns`; null: not known"
        pid: Int "whose time it was; null: of several processes of one name, or of nobody"
        comm: Str [Comm] "name of the thread or process; null: nobody's"
        processes ? OfKnown: Count "number of processes"
        syscall: Word "the call; null: none"
        object: Str [Path] "what it is on: a file, `/dir/*`, a peer, a disk, a program, a lock's address, a signal; null: nothing, or several"
        errno: Word "name of the error; null: none"
        by_pid: Int "process that held the lock until the longest wait for it ended; null: no lock, or not known"
        by_comm: Str [Comm] "its name"
        count ? OfKnown: Wide "how often; of memory that grew, bytes"
        max_ns ? OfKnown: Duration "the longest; null: no time belongs to it"
        first_ns ? OfKnown: Time "when it began; null: not known"
        last_ns ? OfKnown: Time "when it ended; null: not known"
        text: Word [Command] "the finding as a sentence, with `>=` before figures that may be more"
        command: Word [Command] "arguments of `analyze` that show it, as a shell takes them, without the tape"
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
        ("analyze why -p 2214 --time 10,20", "of one process, in ten seconds"),
    ],
    tables: &[Rows::of("why", &[All(&WHY)])],
    check: |config| config.own::<Options>()?.floor().map(drop),
    run: Run::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    #[command(flatten)]
    rank: Few,

    /// Leave out what cost less; a bare number is ms [default: 30 ms, or a thousandth of the time if that is more]
    #[arg(long, value_name = "TIME")]
    floor: Option<String>,
}

impl Options {
    fn floor(&self) -> Result<Option<u64>> {
        self.floor
            .as_ref()
            .map(|text| timespec::duration(text, 1_000_000).map_err(|e| e.context("--floor")))
            .transpose()
    }
}

/// The families that rules judge.
const FAMILIES: [Family; 6] =
    [Family::Syscall, Family::Process, Family::Sched, Family::Block, Family::Signal, Family::Net];

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let own: Options = config.own()?;
    let session = tape.session();
    let has = |family| families::in_session(session, family);
    let recorded: Vec<Family> = FAMILIES.into_iter().filter(|family| has(*family)).collect();
    if recorded.is_empty() && tape.session_is_whole() {
        bail!("nothing that 'analyze why' judges was recorded: {}", families::instead(tape, Family::Syscall));
    }
    let mut context = Context::about(config, tape, &recorded)?;
    // who was there, and in what, follows from what was before the time asked for
    context.question.loss.add_earlier(tape, &recorded, context.question.scope.to);
    context.question.loss.gaps.retain(|gap| gap.cause != GapCause::Everyday);
    let from = context.question.scope.from.max(session.window_open);
    let to = context.question.scope.to.min(tape.complete_until());
    let floor = Floor::of(to.saturating_sub(from), own.floor()?);
    let collected = collect::collect(&mut context, &recorded, floor, (from, to))?;
    let mut found = rules::judge(&collected.inputs, has);
    found.iter_mut().for_each(|finding| narrow(finding, (from, to), session.window_open));
    // no finding is an answer; that nothing was looked at is not
    config.shown.rows(collected.inputs.len());
    let limit = own.rank.limit(config.format);
    let mut out = output::stdout()?;
    let unknown = unknown(&context, &collected);
    match config.format.rows() {
        Some(form) => {
            let lost = !context.question.loss.complete();
            let rows = found.iter().take(limit).map(|finding| row(finding, session.window_open, (collected.cut, lost)));
            sink::print(form, &WHY, context.judged(), rows, &mut out)?;
            out.flush()?;
            unknown.iter().for_each(|text| complain(text));
        }
        None => text(&context, &found, &collected, limit, &unknown, &mut out)?,
    }
    losses::end(&context, &mut out, config.format == Format::Text, Listed::Nothing)
}

/// Adds to the command when it was, if that is less than half of the time that was looked at, `from` to `to`.
fn narrow(finding: &mut Finding, (from, to): (u64, u64), open: u64) {
    // a bit before and behind: ends of what is asked for may be ends of other events
    const ROOM: u64 = 1_000_000;
    let Some((first, last)) = finding.span.filter(|_| finding.class == Class::Time) else { return };
    let (first, last) = (first.saturating_sub(ROOM).max(open), last.saturating_add(ROOM));
    if last.saturating_sub(first) > to.saturating_sub(from) / 2 {
        return;
    }
    // whole milliseconds, outwards
    let [first, last] = [(first - open) / ROOM, (last.saturating_sub(open)).div_ceil(ROOM)];
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    finding.command.push_str(&format!(" --time {},{}", seconds(first), seconds(last)));
}

fn row(finding: &Finding, open: u64, (cut, lost): (bool, bool)) -> Row<'_> {
    let short = finding.short || cut;
    let since = |ts: u64| ts.wrapping_sub(open) as i64;
    let some = |bytes: &'_ [u8]| if bytes.is_empty() { Cell::Null } else { Cell::from(bytes.to_vec()) };
    let mut row = Row::new(&WHY);
    row.set("rule", finding.rule).set("class", finding.class.name());
    row.bound("cost_ns", finding.cost, short);
    row.set("pid", finding.who.pid).set("comm", some(&finding.who.comm));
    row.bound("processes", finding.processes, cut);
    row.set("syscall", Some(finding.call.clone()).filter(|call| !call.is_empty()));
    row.set("object", some(&finding.object));
    row.set("errno", Some(finding.errno).filter(|errno| !matches!(*errno, 0 | ERRNO_ANY)).map(errno_text));
    let by = finding.by.as_ref().filter(|_| !short);
    row.set("by_pid", by.and_then(|who| who.pid)).set("by_comm", by.map(|who| who.comm.clone()));
    row.bound("count", finding.count, cut).bound("max_ns", finding.max, short);
    row.bound("first_ns", finding.span.map(|(first, _)| since(first)), cut);
    row.bound("last_ns", finding.span.map(|(_, last)| since(last)), short);
    row.set("text", sentence(finding, lost || cut)).set("command", finding.command.clone());
    row
}

/// What the answer cannot hold.
fn unknown(context: &Context<'_>, collected: &collect::Collected) -> Vec<String> {
    let tape = context.question.tape;
    let session = tape.session();
    let mut lines = Vec::new();
    for family in FAMILIES.into_iter().filter(|family| !families::in_session(session, *family)) {
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
        lines.push("not known: what events that are lost would show".to_owned());
    }
    if collected.cut {
        lines.push("not known: sums beyond the memory for them; figures are at least".to_owned());
    }
    lines
}

fn text(
    context: &Context<'_>,
    found: &[Finding],
    collected: &collect::Collected,
    limit: usize,
    unknown: &[String],
    out: &mut impl Write,
) -> Result<()> {
    let session = context.question.tape.session();
    let lost = !context.question.loss.complete();
    losses::head(context, "Something is missing: every figure is at least:", out)?;
    let base = if session.clock.monotonic == 0 { TimeBase::Start } else { TimeBase::Wall };
    let stamps = Stamps::new(&[base], context.question.tape);
    let floor = span(collected.inputs.floor.ns);
    if found.is_empty() {
        let what = if lost { "nothing found in what was recorded, which is not all" } else { "no finding" };
        line(out, &format!("{what} (floor: {floor})"))?;
    }
    let tape = tape_word(context.config);
    for (at, finding) in found.iter().take(limit).enumerate() {
        line(out, &one_line(at + 1, finding, lost || collected.cut, &stamps, &tape))?;
    }
    rank::more(found.len(), limit).iter().try_for_each(|text| line(out, text))?;
    unknown.iter().try_for_each(|text| line(out, text))?;
    Ok(())
}

/// The tape's name as a word of a command line; empty: it is the one without a name.
fn tape_word(config: &Config) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let name = config.file.as_os_str().as_bytes();
    if name == b"trace.tape" { String::new() } else { format!(" {}", shell(&[name.to_vec()])) }
}

fn one_line(rank: usize, finding: &Finding, lost: bool, stamps: &Stamps, tape: &str) -> String {
    let short = lost || finding.short;
    let cost = match (finding.class, finding.cost) {
        (Class::Time, Some(ns)) => format!("{}{}", mark::at_least(short), span(ns)),
        (class, _) => class.name().to_owned(),
    };
    let text = sentence(finding, lost);
    let when = match finding.span {
        Some((first, last)) if first == last => format!(", {}", stamps.at(first)),
        Some((first, last)) => format!(", {}", stamps.span(first, last)),
        None => String::new(),
    };
    format!("{rank:>3}.  {cost:>10}  {text}{when}   analyze {}{tape}", finding.command)
}

/// Who, and what it was: without the time.
fn sentence(finding: &Finding, lost: bool) -> String {
    let who = match (&finding.who.comm, finding.who.pid) {
        (comm, _) if comm.is_empty() => String::new(),
        (comm, Some(pid)) => format!("{} {pid}: ", escaped(comm)),
        (comm, None) => {
            let processes = format!("{}{}", mark::at_least(lost), grouped(finding.processes));
            format!("{} ({processes} processes): ", escaped(comm))
        }
    };
    // a name may hold braces: what is put in comes first, once each
    let mut text = who;
    let mut rest = finding.text.as_str();
    for (word, value) in places(finding, lost) {
        if let Some((before, after)) = rest.split_once(word) {
            text.push_str(before);
            text.push_str(&value);
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

/// The figures of a sentence, in the order in which they stand there.
fn places(finding: &Finding, lost: bool) -> Vec<(&'static str, String)> {
    let short = lost || finding.short;
    let value = |word: &'static str| match word {
        "{count}" => format!("{}{}", mark::at_least(lost), grouped(finding.count)),
        "{max}" => format!("{}{}", mark::at_least(short), span(finding.max.unwrap_or(0))),
        _ => mark::at_least(lost).to_owned(),
    };
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for word in ["{count}", "{max}", "{mark}"] {
        found.extend(finding.text.match_indices(word).map(|(at, _)| (at, word)));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, word)| (word, value(word))).collect()
}
