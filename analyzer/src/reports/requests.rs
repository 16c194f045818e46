//! `analyze requests`: exchanges on connections, what one end asked and the other one answered: how many, how long, and the slowest of them.

mod budget;
mod slow;
mod slowest;
mod sums;

use anyhow::{Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;
use systape_format::sockets;

use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys};
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{Config, refuse};
use systape_answers::derive::exchanges::ends::StreamEnd;
use systape_answers::derive::exchanges::read::{LeftUnread, left_out};
use systape_answers::derive::exchanges::{EndSide, Exchange};
use systape_answers::render::by::BY;
use systape_answers::render::out::Out;
use systape_answers::render::rank::Rank;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "requests",
    about: "Exchanges on connections, what was asked and answered: how many, how long, and the slowest ones",
    options: &[TASKS, &["time", "clock", "absolute", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze requests", "how many exchanges each server had, and how long they took"),
        ("analyze requests --port 8080 --slowest 20", "the 20 slowest of the server on that port"),
    ],
    tables: &[
        Rows::of("requests", &[All(&sums::SERVER), All(&sums::SERVER_SUMS)]),
        Rows::of("requests --by", &[Keys(&BY), All(&sums::SERVER_SUMS)]),
        Rows::of("requests --client", &[All(&sums::SERVER), All(&sums::CLIENT_SUMS)]),
        Rows::of("requests --client --by", &[Keys(&BY), All(&sums::CLIENT_SUMS)]),
        Rows::of("requests --slowest", &[All(&slowest::SLOWEST)]),
        Rows::of("requests --slowest --where", &[All(&budget::WHERE)]),
        Rows::json("requests --slowest --where", &[All(&budget::MORE)]),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// Seen from the ends that connected: connect, send, wait, receive
    #[arg(long)]
    client: bool,

    /// Only servers on these TCP ports
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    port: Vec<u16>,

    /// The N slowest exchanges, one by one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slowest: Option<u32>,

    /// With --slowest: where the time of each went, across whom it waited for, and what they have that others have not
    #[arg(long = "where")]
    budget: bool,

    #[command(flatten)]
    rank: Rank,
}

/// Most exchanges whose time is looked into.
const MOST: u32 = 200;

/// Options that exclude each other.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    let by = sums::keys(config)?;
    match own.slowest {
        Some(_) if !by.is_empty() => bail!("--by adds up: leave out --slowest"),
        Some(most) if own.budget && most > MOST => bail!("--where takes at most --slowest {MOST}"),
        Some(_) => refuse(&[(own.rank.given(), "--top")], "--slowest says how many"),
        None if own.budget => bail!("--where is for the slowest: add --slowest N"),
        None => refuse(&config.clock_options(), "sums have no times of the tape"),
    }
}

/// Which exchanges are asked for.
#[derive(Debug)]
struct WantedExchanges<'a> {
    side: EndSide,
    ports: &'a [u16],
    from: u64,
    to: u64,
}

impl WantedExchanges<'_> {
    fn takes(&self, exchange: &Exchange) -> bool {
        exchange.passes
            && exchange.side == self.side
            && (self.from..self.to).contains(&exchange.begin)
            && (self.ports.is_empty() || server_port(exchange).is_some_and(|port| self.ports.contains(&port)))
    }
}

/// The server's port; None: it is a UNIX socket.
fn server_port(exchange: &Exchange) -> Option<u16> {
    match exchange.side {
        EndSide::Client => exchange.end.remote_port(),
        _ => exchange.end.port(),
    }
}

/// The server as a word: `:8080` at the server, with `@` and its network namespace if that is not the one of process 1, `10.0.0.2:5432` at a client, the path of a UNIX socket; None: it has none.
fn server(exchange: &Exchange) -> Option<Vec<u8>> {
    let StreamEnd { local, remote, path, unix, namespace } = &*exchange.end;
    match (exchange.side, unix) {
        (EndSide::Client, true) => Some(exchange.to.to_vec()).filter(|path| !path.is_empty()),
        (EndSide::Client, false) => Some(remote.to_vec()),
        (_, true) => Some(unquoted(path)).filter(|path| !path.is_empty()),
        (_, false) => {
            let mut server =
                sockets::port(local).map_or_else(|| local.to_vec(), |port| format!(":{port}").into_bytes());
            server.extend(sockets::namespace_suffix(*namespace).into_bytes());
            Some(server)
        }
    }
}

/// A path as it is quoted in names of sockets, without its quotes.
fn unquoted(path: &[u8]) -> Vec<u8> {
    let (at, rest) = path.strip_prefix(b"@").map_or((&b""[..], path), |rest| (&b"@"[..], rest));
    let inside = rest.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(rest);
    [at, inside].concat()
}

/// The other end as a word: at a server the client's address without its port, at a client the server.
fn peer(exchange: &Exchange) -> Option<Vec<u8>> {
    match exchange.side {
        EndSide::Client => server(exchange),
        _ if exchange.end.unix => None,
        _ => Some(sockets::address(&exchange.end.remote).to_vec()),
    }
}

/// The families that exchanges are made of.
pub(super) const MADE_OF: [Family; 2] = [Family::Syscall, Family::Net];
/// The same, and those that say where time went.
const FOLLOWED: [Family; 4] = [Family::Sched, Family::Process, Family::Syscall, Family::Net];

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let own: Options = config.own()?;
    let families: &[Family] = if own.budget { &FOLLOWED } else { &MADE_OF };
    let mut context = Context::about(config, tape, families)?;
    let (from, to) = (context.question.scope.from, context.question.scope.to);
    // what an exchange is depends on all calls of its connection, before and after
    context.question.loss.add_earlier(tape, &MADE_OF, to);
    let side = if own.client { EndSide::Client } else { EndSide::Server };
    let wanted = WantedExchanges { side, ports: &own.port, from, to };
    match own.slowest {
        Some(most) => slowest::run(&mut context, &wanted, (most as usize, own.budget), out)?,
        None => sums::run(&mut context, &wanted, own.rank, out)?,
    }
    losses::end_of_sums(&context, out)
}

/// What the answer lacks for other reasons than loss.
pub(super) fn notes(tape: &Tape, unread: &LeftUnread) -> Vec<String> {
    let mut notes = Vec::new();
    if losses::stores_some(tape) {
        notes.push("NOT SURE: record stored only some calls: exchanges may be parts of others".to_owned());
    }
    match left_out(tape.session()) {
        None => notes.push("NOT SURE: which calls were recorded is not known".to_owned()),
        Some(calls) if !calls.is_empty() => {
            notes.push(format!("NOT SURE: record was asked to leave out {}", calls.join(", ")));
        }
        Some(_) => {}
    }
    let count = |number: u64, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let LeftUnread { left_out, nameless } = unread;
    if left_out.sides > 0 {
        let which = count(left_out.sides, "connection is", "connections are");
        notes.push(format!("AT LEAST: {which} left out: which end asks is not known"));
    }
    if left_out.forgotten > 0 {
        let which = count(left_out.forgotten, "connection was", "connections were");
        notes.push(format!("AT LEAST: {which} forgotten: more were open than there is memory for"));
    }
    if left_out.mixed > 0 {
        let which = count(left_out.mixed, "connection has", "connections have");
        notes.push(format!("AT LEAST: {which} the addresses of another one of the same time: no times of them"));
    }
    if *nameless > 0 {
        let which = count(*nameless, "more call is", "more calls are");
        notes.push(format!("AT LEAST: {which} on sockets whose addresses are not known"));
    }
    notes
}

/// Whether counts are lower bounds.
fn is_short(context: &Context<'_>, unread: &LeftUnread) -> bool {
    !context.question.loss.complete() || !notes(context.question.tape, unread).is_empty()
}

/// The keys that exchanges have.
const KNOWN: [GroupKey; 15] =
    GroupKey::of_task_and(&[GroupKey::Peer, GroupKey::Port, GroupKey::Second, GroupKey::Minute]);
