//! The report without a name: the listing, the summary, or one after the other.

use std::io::Write as _;
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use systape_abi::{EventTerm, Selection, glob_matches};
use systape_format::model::{Family, Session};
use systape_format::reader::Tape;

use super::listing::Lines;
use super::named::TAPES;
use super::{Context, events, listing, losses, measured, summary};
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Fields, Keys, Maybe};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Follows, Own, PATHS, Reads, Rows, Several, TASKS, View};
use crate::asked::options::stacks::Below;
use crate::asked::sort::Sort;
use systape_answers::catalogue::{block, process, sample, signal, socket, switch, uring, wakeup};
use systape_answers::derive::stacks::lines::STACK;
use systape_answers::lines::tables as lines;
use systape_answers::render::by;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::loss::{ListedLoss, family_name};
use systape_events::question::Question;
use systape_events::values::words::escaped;

/// The listing.
pub(crate) static LISTING: View = View {
    name: "",
    about: "Lists calls in order of their start, and other events that -e names",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events", "clock", "absolute", "sort", "follow"]],
    own: Own::of::<listing::Options>(),
    examples: [
        ("analyze --duration 10 -e '!futex' t.tape", "calls longer than 10 ms, futex left out"),
        ("analyze -e file,network --failure", "failed calls on files and sockets"),
    ],
    tables: &[
        Rows::of("", &[All(&lines::CALLS), Maybe(&STACK)]),
        Rows::json(
            "",
            &[
                All(&lines::EVENTS),
                Fields(&switch::SCHED),
                Fields(&wakeup::WAKEUPS),
                Fields(&process::PROCESS_EVENTS),
                Fields(&signal::SIGNALS),
                Fields(&block::BLOCK),
                Fields(&socket::SOCKET_STATES),
                Fields(&uring::IO_URING),
                Fields(&sample::SAMPLES),
                Maybe(&STACK),
            ],
        ),
        Rows::json("", &[All(&lines::LOSSES)]),
    ],
    check,
    reads,
    run: AnswerFn::Prints(|config, tape, out| run(config, tape, ListingParts { listing: true, summary: false }, out)),
    several: Several::Merged,
    follow: Some(|config| Ok(Box::new(FollowedCalls { config: config.clone(), own: config.own()?, noted: false }))),
    ..View::PLAIN
};

/// The listing of a tape that is being written.
struct FollowedCalls {
    /// What is asked; its `max_events` are those that are left.
    config: Config,
    own: listing::Options,
    /// What was not recorded is told.
    noted: bool,
}

impl Follows for FollowedCalls {
    fn add(&mut self, tape: &Tape, out: &mut Out) -> Result<ControlFlow<Verdict, Verdict>> {
        let first = !self.noted && !tape.segments().is_empty();
        if first {
            tell_not_recorded(&self.config, tape, false, out)?;
        }
        let mut context = Context::about(&self.config, tape, &families_of(&self.config, tape, Some(&self.own)))?;
        let left = listing::run_part(&mut context, &self.own, None, out)?;
        if first && context.config.calls {
            losses::tell_filtered(&context, out);
        }
        let verdict = losses::end(&context, out, false, losses::in_listing(out))?;
        (self.noted, self.config.max_events) = (self.noted || first, left);
        Ok(if left == 0 { ControlFlow::Break(verdict) } else { ControlFlow::Continue(verdict) })
    }
}

/// The summary.
pub(crate) static SUMMARY: View = View {
    name: "summary",
    about: "Adds up calls: number, errors and times by thread and syscall (also: analyze -s)",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "summary", "by", "sort"]],
    own: Own::of::<summary::Options>(),
    switches: &["summary", "errno_summary"],
    examples: [
        ("analyze -s --cpu", "calls, errors and times per thread and syscall, and the time on a CPU"),
        ("analyze --errno-summary --summary-mode total", "how often each error was returned"),
    ],
    tables: &[
        Rows::of("--summary", &[Keys(&by::BY), All(&measured::SUMMARY), Maybe(&summary::CPU), Maybe(&summary::ERRNOS)]),
        Rows::json("--summary", &[All(&summary::URING)]),
        Rows::of(
            "--summary of several tapes",
            &[Keys(&TAPES), Keys(&by::BY), All(&measured::SUMMARY), Maybe(&summary::ERRNOS)],
        ),
        Rows::of("--summary -e FAMILY:EVENT", &[Keys(&by::BY), All(&events::EVENTS)]),
    ],
    check: summary::check,
    run: AnswerFn::Prints(|config, tape, out| run(config, tape, ListingParts { listing: false, summary: true }, out)),
    several: Several::AddedBy(summary::many::run),
    ..View::PLAIN
};

/// View of both, the listing and its summary.
pub(crate) static WITH_SUMMARY: View = View {
    name: "with-summary",
    about: "The listing, then the summary (analyze -S)",
    options: &[
        TASKS,
        CALLS,
        PATHS,
        CPUS,
        &["time", "max_events", "clock", "absolute", "summary", "with_summary", "sort"],
    ],
    own: Own::of::<Both>(),
    switches: &["with_summary"],
    examples: [
        ("analyze -S -p 2214", "the calls of a process, then their sums"),
        ("analyze -S --time 1.5,2", "half a second"),
    ],
    check: check_both,
    reads,
    run: AnswerFn::Prints(|config, tape, out| run(config, tape, ListingParts { listing: true, summary: true }, out)),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
#[group(skip)]
struct Both {
    #[command(flatten)]
    listing: listing::Options,
    #[command(flatten)]
    sums: summary::Options,
}

/// Refuses options without effect on a listing.
fn check(config: &Config) -> Result<()> {
    if !config.view.takes("with_summary") && matches!(config.sort, Some(Sort::Sums(_))) {
        bail!("a listing has --sort start and end; sums are sorted by other columns: add -s");
    }
    config.own::<listing::Options>()?.check(config)
}

/// Refuses options without effect on both together.
fn check_both(config: &Config) -> Result<()> {
    if config.format == Format::Csv {
        bail!("-S mixes two tables, which CSV cannot hold: run once with -s and once without");
    }
    check(config)?;
    summary::check(config)
}

fn reads(config: &Config) -> Result<Reads> {
    config.own::<listing::Options>()?.stacks.cut.names.reads()
}

/// The parts to print.
#[derive(Clone, Copy, Debug)]
struct ListingParts {
    listing: bool,
    summary: bool,
}

/// Prints `parts` of the answer for `config`.
fn run(config: &Config, tape: &Tape, parts: ListingParts, out: &mut Out) -> Result<Verdict> {
    let own = parts.listing.then(|| config.own()).transpose()?;
    answer(config, tape, (own.as_ref(), None), parts.summary, |_| (), out)
}

/// The whole answer of a tool: a listing with its `lines`, and `stacks` below them.
pub(super) fn answer_in(config: &Config, tape: &Tape, lines: &Lines, stacks: Below, out: &mut Out) -> Result<Verdict> {
    answer_picked(config, tape, lines, stacks, |_| (), out)
}

/// Answers about the calls that `pick` leaves in the question.
pub(super) fn answer_picked(
    config: &Config,
    tape: &Tape,
    lines: &Lines,
    stacks: Below,
    pick: impl FnOnce(&mut Question<'_>),
    out: &mut Out,
) -> Result<Verdict> {
    let own = listing::Options::with(stacks);
    answer(config, tape, (Some(&own), Some(lines)), false, pick, out)
}

/// Prints a listing, if there are options of one, and a summary, of the calls that `pick` leaves.
fn answer(
    config: &Config,
    tape: &Tape,
    (listing, lines): (Option<&listing::Options>, Option<&Lines>),
    summary: bool,
    pick: impl FnOnce(&mut Question<'_>),
    out: &mut Out,
) -> Result<Verdict> {
    tell_not_recorded(config, tape, summary, out)?;
    let calls = config.calls && families::recorded(tape, Family::Syscall) != Some(false);
    let mut context = Context::about(config, tape, &families_of(config, tape, listing))?;
    pick(&mut context.question);
    if let Some(own) = listing {
        listing::run_with(&mut context, own, lines, out)?;
    }
    // a listing has the events themselves
    let by_task = summary && config.events.tables();
    let told = if summary && config.calls { Some(summary::run(&mut context, out)?) } else { None };
    let events_lost = by_task && events::run(config, tape, out)?;
    out.flush()?;
    if listing.is_some() && calls {
        losses::tell_filtered(&context, out);
    } else if let Some(told) = &told {
        context.question.loss = told.loss.clone();
    }
    // where the answer itself has no line for it
    let silent = !out.is_text() || !summary;
    let listed = if listing.is_some() { losses::in_listing(out) } else { ListedLoss::Nothing };
    let verdict = losses::end(&context, out, !silent, listed)?;
    let doubts = told.iter().filter(|_| silent).flat_map(|told| &told.doubts);
    doubts.for_each(|line| out.say(line));
    Ok(verdict.doubted(events_lost || told.is_some_and(|told| told.lost)))
}

/// The families whose loss could change the answer, a listing if there are options of one.
fn families_of(config: &Config, tape: &Tape, listing: Option<&listing::Options>) -> Vec<Family> {
    let calls = config.calls && families::recorded(tape, Family::Syscall) != Some(false);
    let mut families = if calls { vec![Family::Syscall] } else { Vec::new() };
    families.extend(config.events.families());
    if let Some(own) = listing {
        families.extend(own.stacks.asked().then_some(Family::Stack));
        // where processes are follows from how they came to be
        families.extend((own.show_cwd && !families.contains(&Family::Process)).then_some(Family::Process));
    }
    families
}

/// Reports the selected events that the tape cannot have; fails when it has none of them.
fn tell_not_recorded(config: &Config, tape: &Tape, summary: bool, out: &mut Out) -> Result<()> {
    let mut asked = config.events.families();
    // a term that names none of the tape's is refused
    asked.retain(|family| *family != Family::Tracepoint);
    // a tape that has a family's table has the family, whoever wrote it
    let defines = |family| tape.table_defs().values().any(|def| Family::of_table(&def.name) == family);
    let recorded = |family| families::recorded(tape, family) != Some(false) || defines(family);
    let absent: Vec<Family> = asked.iter().copied().filter(|family| !recorded(*family)).collect();
    for family in &absent {
        if !config.calls && absent.len() == asked.len() {
            families::require(tape, *family, &format!("{} events", family_name(*family)))?;
        }
        out.say(&format!("{} events were not recorded: {}", family_name(*family), families::instead(tape, *family)));
    }
    if config.calls && families::recorded(tape, Family::Syscall) == Some(false) {
        // a summary tells of io_uring's operations too
        let rings = summary && families::recorded(tape, Family::IoUring) == Some(true);
        if !rings && absent.len() == asked.len() {
            families::require(tape, Family::Syscall, "syscalls")?;
        }
        out.say(&format!("syscalls were not recorded: {}", families::instead(tape, Family::Syscall)));
    } else if config.calls
        && let Some(note) = not_selected(&config.filters.selection, tape.session())
    {
        out.say(&note);
    }
    let tables = tape.table_defs().values().map(|def| &*def.name).filter(|name| config.events.has_table(name));
    tables.filter_map(|name| only_some(name, tape.session())).for_each(|note| out.say(&note));
    Ok(())
}

/// That `record` kept only some events of a tracepoint; None = it kept all.
fn only_some(name: &str, session: &Session) -> Option<String> {
    let recorded = systape_events::calls::recorded(session)?;
    let (category, event) = name.split_once(':')?;
    let names =
        |term: &&EventTerm| !term.negated && glob_matches(&term.family, category) && glob_matches(&term.event, event);
    // None: a term that takes all
    let filters: Option<Vec<&str>> =
        recorded.other_events().iter().filter(names).map(|term| term.filter.as_deref()).collect();
    let filters = filters.filter(|filters| !filters.is_empty())?;
    // as typed: quotes do nothing to a terminal
    let filters = escaped(filters.join(" or ").as_bytes()).replace("\\\"", "\"");
    Some(format!("{name}: only events with {filters} were recorded"))
}

/// The calls named by `-e` that `record -e` left out; None = none.
fn not_selected(asked: &Selection, session: &Session) -> Option<String> {
    const NAMED: usize = 8;
    if session.selection.is_empty() {
        return None;
    }
    let recorded = systape_events::calls::recorded(session)?;
    let words: Vec<_> = session.selection.iter().map(|words| String::from_utf8_lossy(words)).collect();
    let abi = systape_events::calls::native_abi(&session.machine);
    let absent = |nr: &u32| asked.positively_names(abi, *nr) && !recorded.contains(abi, *nr);
    let names: Vec<&str> = systape_abi::all(abi).filter(|(nr, _)| absent(nr)).map(|(_, name)| name).collect();
    let more = names.len().saturating_sub(NAMED);
    let list = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{list}{more}: not recorded (record -e {})", words.join(" -e ")))
}
