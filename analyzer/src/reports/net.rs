//! `analyze net`: connections in order of their ends, those that stayed open last; or each change of a socket's state; or
//! what was sent and received by UDP.

pub(super) mod line;
mod sums;
mod udp;

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use systape_format::model::{Dict, Family, NetState, Task};
use systape_format::reader::{Segment, Tape};

use super::timed::Timed;
use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use systape_answers::catalogue::{Observed, Surroundings, socket};
use systape_answers::derive::net::accepts::{self, Accepted};
use systape_answers::derive::net::connection::{Connection, ConnectionBounds, ConnectionOutcome, Direction, Lasted};
use systape_answers::derive::net::counts::{self, At, Named, TcpRow};
use systape_answers::derive::net::tracker::Tracker;
use systape_answers::lines::tables as lines;
use systape_answers::render::by::BY;
use systape_answers::render::columns::Layout;
use systape_answers::render::out::Out;
use systape_answers::render::rank::Rank;
use systape_answers::values::say::Verdict;
use systape_events::calls::CallBook;
use systape_events::families;
use systape_events::loss::{Loss, loses};
use systape_events::scan::{Scan, lost};
use systape_events::values::devices::Devices;
use systape_events::values::order::InOrder as _;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "net",
    about: "Connections: both ends, who, how long; or each change of a socket's state; or UDP by process and peer",
    options: &[TASKS, &["time", "duration", "failure", "max_events", "clock", "absolute", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze net --by user,peer", "who sent and received how much, and with whom"),
        ("analyze net --udp", "UDP: messages and bytes by process, own end and peer"),
    ],
    tables: &[
        Rows::of("net", &[All(&line::NET)]),
        Rows::json("net", &[All(&lines::LOSSES)]),
        Rows::of("net --events", &[All(&socket::SOCKET_STATES)]),
        Rows::json("net --events", &[All(&lines::LOSSES)]),
        Rows::of("net --udp", &[All(&udp::UDP)]),
        Rows::of("net --by", &[Keys(&BY), All(&sums::SUMS)]),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Each change of a socket's state
    #[arg(long = "events")]
    changes: bool,

    /// What each process sent and received by UDP, by own end and peer, as udplife
    #[arg(long)]
    udp: bool,

    #[command(flatten)]
    rank: Rank,
}

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let filters = &config.filters;
    let of_connections = [(filters.longer_than.is_some(), "--duration"), (filters.failure, "--failure")];
    let own: Options = config.own()?;
    match (sums::keys(config)?.is_empty(), own.rank.given()) {
        (true, true) => bail!("--top is for sums: add --by KEY,..."),
        (false, _) if own.changes || own.udp => bail!("--by adds up TCP connections: leave out --events and --udp"),
        (false, _) => {
            refuse(&config.clock_options(), "sums have no time")?;
            refuse(&[(config.max_events != u64::MAX, "--max-events")], "rows of sums: --top N")?;
        }
        _ => {}
    }
    match own {
        Options { changes: true, udp: true, .. } => bail!("--udp: UDP sockets have no states: leave out --events"),
        Options { changes: true, .. } => refuse(&of_connections, "a change of state neither lasts nor fails"),
        Options { changes: false, .. } => Ok(()),
    }
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    if own.udp {
        return udp::run(config, tape, out);
    }
    answer(
        config,
        tape,
        |context, loss, out| match (own.changes, &*sums::keys(config)?) {
            (true, _) => changes(context, loss, out),
            (false, []) => connections(context, loss, None, out),
            (false, keys) => sums::print(context, loss, keys, own.rank, out),
        },
        out,
    )
}

/// The whole answer: connections, text in the columns of `layout`.
pub(super) fn answer_in(config: &Config, tape: &Tape, layout: &'static Layout, out: &mut Out) -> Result<Verdict> {
    answer(config, tape, |context, loss, out| connections(context, loss, Some(layout), out), out)
}

fn answer(
    config: &Config,
    tape: &Tape,
    report: impl FnOnce(&Context<'_>, &mut Loss, &mut Out) -> Result<Doubts>,
    out: &mut Out,
) -> Result<Verdict> {
    families::require(tape, Family::Net, "connections")?;
    let mut context = Context::about(config, tape, &[Family::Net])?;
    let mut loss = context.question.loss.clone();
    let doubts = report(&context, &mut loss, out)?;
    context.question.loss = loss;
    let sums = !config.by.is_empty();
    let verdict = if sums { losses::end_of_sums(&context, out) } else { losses::end_of_list(&context, out) }?;
    let unknown = doubts.accepted && calls_missing(tape);
    if unknown {
        out.say("calls were lost: who accepted some of the connections is not known");
    }
    if doubts.open && !verdict.lost {
        out.say("changes of sockets were lost: whether some of the connections are open is not known");
    }
    Ok(verdict.doubted(doubts.open || unknown))
}

/// Facts about connections that are unknown because of losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// Whether one is open.
    open: bool,
    /// Who accepted one.
    accepted: bool,
}

/// Whether calls are missing anywhere.
fn calls_missing(tape: &Tape) -> bool {
    lost::any(tape, |gap| loses(gap, &[Family::Syscall]))
}

/// Names of the parts of segments in messages.
const CHANGES: &str = "changes of sockets";

/// Input of connections, in order of time.
enum Step {
    Change(NetState),
    Accepted(Accepted),
    Counted(Box<TcpRow>),
    Named(Named),
}

/// What is of one time: a connection's counts belong to the one that its change ends, and the next one's name comes later.
fn place(step: &(u64, Step)) -> (u64, u8) {
    let before = match &step.1 {
        Step::Counted(counted) if counted.at == At::Close => 0,
        Step::Change(_) => 1,
        Step::Counted(_) | Step::Named(_) => 2,
        Step::Accepted(_) => 3,
    };
    (step.0, before)
}

/// The steps of a segment. Without its calls, which may be damaged or not recorded, accepted connections have no task.
fn steps(segment: &Segment<'_>, dict: &Dict, book: &CallBook<'_>) -> Result<Vec<Step>, systape_format::Error> {
    let changes = segment.nets(dict)?;
    let accepts = accepts::read(segment, dict, book).unwrap_or_default();
    let mut steps: Vec<(u64, Step)> = changes.into_iter().map(|change| (change.ts, Step::Change(change))).collect();
    steps.extend(accepts.into_iter().map(|accepted| (accepted.ts, Step::Accepted(accepted))));
    let (counted, named) = counts::read(segment, dict).unwrap_or_default();
    steps.extend(counted.into_iter().map(|counted| (counted.ts, Step::Counted(Box::new(counted)))));
    steps.extend(named.into_iter().map(|named| (named.ts, Step::Named(named))));
    steps.order_by_key(place);
    Ok(steps.into_iter().map(|(_, step)| step).collect())
}

/// The task that ran; None = an interrupt.
fn who<'a>(dict: &'a Dict, event: &NetState) -> Option<&'a Task> {
    event.task.and_then(|task| dict.tasks.get(task as usize))
}

fn changes(context: &Context<'_>, loss: &mut Loss, out: &mut Out) -> Result<Doubts> {
    let (scope, times, stamps) = (&context.question.scope, context.times(), context.stamps());
    let devices = Devices::default();
    let table = (&socket::SOCKET_STATES, None);
    let mut timed = Timed::begin(context, loss, table, || line::changes_header(&stamps), out)?;
    let coverage = Scan::all(context.question.tape).try_walk(
        CHANGES,
        |segment, dict| segment.nets(dict),
        |_, dict, events| {
            let at = Surroundings { times: &times, devices: &devices, dict, files: None };
            for event in &events {
                let observed = Observed { of: &socket::EVENTS, e: event, at };
                let task = observed.event().task;
                if scope.at(event.ts) && scope.blamed(task, 0) {
                    let text = |out: &mut Vec<u8>| line::change(out, event, task, &stamps);
                    timed.event(event.ts, text, || observed.row());
                }
            }
            timed.write()
        },
    )?;
    coverage.tell(loss);
    timed.end()?;
    Ok(Doubts::default())
}

fn connections(
    context: &Context<'_>,
    loss: &mut Loss,
    layout: Option<&'static Layout>,
    out: &mut Out,
) -> Result<Doubts> {
    let (times, stamps) = (context.times(), context.stamps());
    begin(context, loss);
    let mut timed = Timed::begin(context, loss, (&line::NET, layout), || line::header(&stamps), out)?;
    let doubts = walk(context, loss, |found, window| {
        for connection in &found {
            let text = |out: &mut Vec<u8>| line::text(out, connection, window, &stamps);
            let end = connection.end.unwrap_or(u64::MAX);
            timed.event(end, text, || line::row(connection, window, &times));
        }
        Ok(timed.write()?)
    })?;
    timed.end()?;
    Ok(doubts)
}

/// What is lost at any time touches connections of the time asked for: how long one lasted is known from its end.
fn begin(context: &Context<'_>, loss: &mut Loss) {
    loss.add_earlier(context.question.tape, &[Family::Net], u64::MAX);
}

/// Calls `each` with the passing connections that end in each segment, and with those that do not end.
pub(super) fn walk(
    context: &Context<'_>,
    loss: &mut Loss,
    mut each: impl FnMut(Vec<Connection>, ConnectionBounds) -> Result<ControlFlow<()>>,
) -> Result<Doubts> {
    let tape = context.question.tape;
    let mut doubts = Doubts::default();
    let mut window = ConnectionBounds {
        open: tape.session().window_open,
        close: tape.complete_until(),
        complete: nothing_missing(tape),
        ended: tape.end().is_some(),
    };
    let mut passing = |connection: &Connection, window: ConnectionBounds| {
        doubts.accepted |= connection.task.is_none() && connection.direction == Direction::Accept;
        let passes = passes(context, connection, window);
        doubts.open |= passes && connection.may_have_ended(window);
        passes
    };
    let mut tracker = Tracker::default();
    // what a socket did is not only done by the processes asked for
    let read = |segment: &Segment<'_>, dict: &Dict| steps(segment, dict, &context.question.book);
    let mut next = 0;
    let coverage = Scan::all(tape).try_walk(CHANGES, read, |at, dict, steps| {
        // one that cannot be read
        window.complete &= at == next;
        next = at + 1;
        let mut found = Vec::new();
        for step in &steps {
            match step {
                Step::Accepted(accepted) => tracker.accepted(accepted),
                Step::Counted(counted) => tracker.counted(counted),
                Step::Named(named) => tracker.named(named),
                Step::Change(event) => {
                    let ended = tracker.change(event, who(dict, event));
                    found.extend(ended.filter(|connection| passing(connection, window)));
                }
            }
        }
        each(found, window)
    })?;
    window.complete &= coverage.unread().is_empty();
    coverage.tell(loss);
    let open = tracker.finish().into_iter().filter(|connection| passing(connection, window)).collect();
    // what is left does not matter any more
    let _flow = each(open, window)?;
    Ok(doubts)
}

/// Whether a connection passes: filters on tasks apply to the task that opened it, `--time` to the time it was open;
/// `--failure` keeps those that were never established.
fn passes(context: &Context<'_>, connection: &Connection, window: ConnectionBounds) -> bool {
    let (scope, f) = (&context.question.scope, context.question.scope.filters());
    let long = |ns: u64| match connection.lasted(window) {
        Lasted::Exact(lasted) => lasted > ns,
        Lasted::AtLeast(lasted) => lasted >= ns,
        Lasted::Unknown => false,
    };
    connection.overlaps(scope.from, scope.to)
        && (!f.failure || connection.outcome == ConnectionOutcome::Failed)
        && f.longer_than.is_none_or(long)
        && scope.blamed(connection.task.as_ref(), 0)
}

/// Whether no change of a socket is missing anywhere on the tape, also outside the filters.
fn nothing_missing(tape: &Tape) -> bool {
    tape.findings().is_empty() && !lost::any(tape, |gap| loses(gap, &[Family::Net]))
}
