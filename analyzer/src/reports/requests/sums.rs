//! Sums of exchanges, by server or by keys.

use anyhow::Result;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use systape_format::model::Call;
use systape_format::table::TableDef;

use super::{KNOWN, WantedExchanges, is_short, notes, peer, server, server_port};
use crate::asked::config::Config;
use crate::reports::{Context, losses};
use systape_answers::derive::exchanges::sums::{ExchangeSums, Spread};
use systape_answers::derive::exchanges::{CutShort, EndSide, Exchange, read};
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::keys::{with_keys, with_parts};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::Rank;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::{Table, millis};
use systape_answers::render::{by, mark};
use systape_events::group::by::GroupKey;
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Ordered, Parts, Spilling};
use systape_events::group::value::{Key, Value};
use systape_events::values::spill::Store;
use systape_events::values::words::{bytes, escaped};

systape_format::tables! {
    /// Without `--by` one row for each server, the one with most exchanges first, with these columns before those below.
    pub SERVER = "requests_server" {
        server: Str key [Address] "`:8080`: the port it listens on, `:8080@4026532280` in another network namespace than that of process 1; with `--client` its address and port; of a UNIX socket its path; null: not known"
        port: Int "its TCP port; null: none"
        comm: Str [Comm] "name of the thread that answered, with `--client` that asked; null: threads of several names did"
    }
    /// Sums of exchanges, seen from the end that accepted the connection. Quantiles are of the exchanges with times, off by at most 1/32.
    pub SERVER_SUMS = "requests_sums" {
        exchanges ? AtLeast: Count "exchanges: from the first read with bytes after a write to the last write before the next read"
        timed ? AtLeast: Count "of these, those whose times are known. Others have no answer, were under way when the recording began or ended, or calls of them may be lost"
        errors ? AtLeast: Count "of these, those of which a call failed (the connection was reset, or closed too early), or that were not answered"
        unanswered ? AtLeast: Count "of the errors, those without a byte of an answer when the server closed the connection or ended"
        rate ? OfKnown: Real "exchanges a second of the time asked for"
        received_bytes ? AtLeast: Wide "bytes that the server read"
        sent_bytes ? AtLeast: Wide "bytes that it wrote"
        p50_ns ? OfKnown: Duration "the whole of it, of TCP from when its bytes came until the last byte of the answer could leave, else between calls: half of the exchanges took no longer; null: none has times"
        p90_ns ? OfKnown: Duration "90 % did"
        p99_ns ? OfKnown: Duration "99 % did"
        max_ns ? AtLeast: Duration "the longest"
        accept_p50_ns ? OfKnown: Duration "from when a connection was established until it was accepted, for the first exchange of each; null: none is known"
        accept_p90_ns ? OfKnown: Duration "likewise"
        accept_p99_ns ? OfKnown: Duration "likewise"
        accept_max_ns ? AtLeast: Duration "likewise"
        queue_p50_ns ? OfKnown: Duration "from when the first bytes came to the return of the first read; null: known of none, as of UNIX sockets"
        queue_p90_ns ? OfKnown: Duration "likewise"
        queue_p99_ns ? OfKnown: Duration "likewise"
        queue_max_ns ? AtLeast: Duration "likewise"
        receive_p50_ns ? OfKnown: Duration "from the first read to the last read before the answer: the client's time; see `p50_ns`"
        receive_p90_ns ? OfKnown: Duration "likewise"
        receive_p99_ns ? OfKnown: Duration "likewise"
        receive_max_ns ? AtLeast: Duration "likewise"
        serve_p50_ns ? OfKnown: Duration "from there to the beginning of the first write: the server's time"
        serve_p90_ns ? OfKnown: Duration "likewise"
        serve_p99_ns ? OfKnown: Duration "likewise"
        serve_max_ns ? AtLeast: Duration "likewise"
        send_p50_ns ? OfKnown: Duration "from there to the return of the last write"
        send_p90_ns ? OfKnown: Duration "likewise"
        send_p99_ns ? OfKnown: Duration "likewise"
        send_max_ns ? AtLeast: Duration "likewise"
        held_p50_ns ? OfKnown: Duration "from there until the kernel could send the last byte (Nagle's algorithm, a full window); null: known of none"
        held_p90_ns ? OfKnown: Duration "likewise"
        held_p99_ns ? OfKnown: Duration "likewise"
        held_max_ns ? AtLeast: Duration "likewise"
        drain_p50_ns ? OfKnown: Duration "from the return of the last write until the other end had acknowledged all of the answer, which it may delay: no part of the whole; null: known of none"
        drain_p90_ns ? OfKnown: Duration "likewise"
        drain_p99_ns ? OfKnown: Duration "likewise"
        drain_max_ns ? AtLeast: Duration "likewise"
    }
    /// Sums of exchanges, seen from the end that connected.
    pub CLIENT_SUMS = "requests_client_sums" {
        exchanges ? AtLeast: Count "exchanges: from the first write after a read to the last read before the next write"
        timed ? AtLeast: Count "of these, those whose times are known, as above"
        errors ? AtLeast: Count "of these, those of which a call failed, or that were not answered"
        unanswered ? AtLeast: Count "of the errors, those without a byte of an answer when the connection ended"
        rate ? OfKnown: Real "exchanges a second of the time asked for"
        received_bytes ? AtLeast: Wide "bytes that the client read"
        sent_bytes ? AtLeast: Wide "bytes that it wrote"
        p50_ns ? OfKnown: Duration "the whole of it without connecting: half of the exchanges took no longer; null: none has times"
        p90_ns ? OfKnown: Duration "90 % did"
        p99_ns ? OfKnown: Duration "99 % did"
        max_ns ? AtLeast: Duration "the longest"
        connect_p50_ns ? OfKnown: Duration "from the call of connect to the connection, for the first exchange of each; null: none is known"
        connect_p90_ns ? OfKnown: Duration "likewise"
        connect_p99_ns ? OfKnown: Duration "likewise"
        connect_max_ns ? AtLeast: Duration "likewise"
        send_p50_ns ? OfKnown: Duration "from the beginning of the first write to the return of the last"
        send_p90_ns ? OfKnown: Duration "likewise"
        send_p99_ns ? OfKnown: Duration "likewise"
        send_max_ns ? AtLeast: Duration "likewise"
        wait_p50_ns ? OfKnown: Duration "from there to the return of the first read with bytes: the server and the network"
        wait_p90_ns ? OfKnown: Duration "likewise"
        wait_p99_ns ? OfKnown: Duration "likewise"
        wait_max_ns ? AtLeast: Duration "likewise"
        receive_p50_ns ? OfKnown: Duration "from there to the return of the last read"
        receive_p90_ns ? OfKnown: Duration "likewise"
        receive_p99_ns ? OfKnown: Duration "likewise"
        receive_max_ns ? AtLeast: Duration "likewise"
    }
}

/// Most servers whose threads' names are kept.
const NAMES: usize = 1 << 16;

/// Keys that are asked for; none: by server.
///
/// # Errors
/// Exchanges do not have such a key.
pub(super) fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    Ok(GroupKey::parse(&config.by, &KNOWN, "'analyze requests'")?)
}

/// What the rows are of.
enum Keyed<'a> {
    Server,
    By(&'a [GroupKey], Box<Plan>),
}

impl Keyed<'_> {
    fn key(&self, exchange: &Exchange, open: u64) -> Key {
        let text = |bytes: Option<Vec<u8>>| bytes.map_or(Value::Unknown, |bytes| Value::Text(bytes.into()));
        let port = server_port(exchange).map_or(Value::None, |port| Value::Number(port.into()));
        match self {
            Self::Server => [text(server(exchange)), port].into_iter().collect(),
            Self::By(_, plan) => {
                let mut key = plan.key(&exchange.actor().task, Call::default());
                // who answered, and when it began, is not known where calls may be missing
                let whole = !matches!(exchange.cut, Some(CutShort::Begin | CutShort::Gap));
                if !whole {
                    key.iter_mut().for_each(|value| *value = Value::Unknown);
                }
                let second = exchange.begin.checked_sub(open).map(|ns| ns / 1_000_000_000).filter(|_| whole);
                let number = |number: Option<u64>| number.map_or(Value::Unknown, Value::Number);
                for (value, by) in key.iter_mut().zip(plan.keys()) {
                    match by {
                        GroupKey::Peer if exchange.end.unix && exchange.side == EndSide::Server => *value = Value::None,
                        GroupKey::Peer => *value = text(peer(exchange)),
                        GroupKey::Port => *value = port.clone(),
                        GroupKey::Second => *value = number(second),
                        GroupKey::Minute => *value = number(second.map(|second| second / 60)),
                        _ => {}
                    }
                }
                key
            }
        }
    }
}

/// Prints the sums.
pub(super) fn run(context: &mut Context<'_>, wanted: &WantedExchanges<'_>, rank: Rank, out: &mut Out) -> Result<()> {
    let tape = context.question.tape;
    let session = tape.session();
    let by = keys(context.config)?;
    let keyed = if by.is_empty() { Keyed::Server } else { Keyed::By(&by, Box::new(Plan::by(&by).naming(session))) };
    let mut sums: Spilling<ExchangeSums> = Spilling::new(Store::of_process(), 1);
    let mut labels = Labels::default();
    let mut comms: FxHashMap<Value, Option<Arc<[u8]>>> = FxHashMap::default();
    let mut nth = 0;
    let (coverage, unread) = read::read(&context.question, |exchange| {
        if !wanted.takes(&exchange) {
            return;
        }
        let key = keyed.key(&exchange, session.window_open);
        sums.groups.of(&key).count(&exchange);
        sums.relieve(1, 0);
        let task = &exchange.actor().task;
        nth += 1;
        match &keyed {
            Keyed::By(_, plan) => labels.add(plan.whose_is(task), task, plan, (nth, 0)),
            Keyed::Server => {
                if comms.len() < NAMES || comms.contains_key(&key[0]) {
                    let known = comms.entry(key[0].clone()).or_insert_with(|| Some(task.comm.as_slice().into()));
                    *known = known.take().filter(|comm| **comm == *task.comm);
                }
            }
        }
    });
    coverage.tell(&mut context.question.loss);
    let short = is_short(context, &unread);
    let parts = Parts::of(vec![sums]);
    let rows = Ordered::new(
        &parts,
        |_: Packed<'_>, sum: &ExchangeSums| Some(sum.count),
        |(one, x), (other, y)| y.count.cmp(&x.count).then_with(|| one.key().cmp(&other.key())),
    );
    context.config.shown.rows(rows.len());
    let span = wanted.to.min(tape.complete_until()).saturating_sub(wanted.from.max(session.window_open));
    let client = wanted.side == EndSide::Client;
    let sums_of = if client { &CLIENT_SUMS } else { &SERVER_SUMS };
    let declared: TableDef = match &keyed {
        Keyed::Server => with_parts(&SERVER, [sums_of]),
        Keyed::By(by, _) => with_keys(by::columns(by), sums_of),
    };
    let shown = ShownServer {
        context,
        keyed: &keyed,
        labels: &labels,
        comms: &comms,
        declared: &declared,
        client,
        short,
        span,
    };
    losses::head(context, losses::AT_LEAST, out)?;
    out.notes(notes(tape, &unread))?;
    out.ranking(
        TopRows {
            table: &declared,
            judged: Judgement::Touched(short),
            headings: shown.headings(),
            all: rows.len(),
            limit: context.config.limit(rank),
        },
        rows.iter().map(|entry| (entry.key().key(), entry.sum.into_owned())),
        |(key, sum): (Key, ExchangeSums)| shown.row(&key, &sum),
        |(key, sum): (Key, ExchangeSums)| shown.cells(&key, &sum),
    )?;
    Ok(())
}

/// The printed form.
struct ShownServer<'a> {
    context: &'a Context<'a>,
    keyed: &'a Keyed<'a>,
    labels: &'a Labels,
    /// Names of the threads of each server.
    comms: &'a FxHashMap<Value, Option<Arc<[u8]>>>,
    declared: &'a TableDef,
    client: bool,
    /// Numbers are lower bounds.
    short: bool,
    /// The time asked for, ns.
    span: u64,
}

impl<'a> ShownServer<'a> {
    fn keys<'k>(&'k self, plan: &'k Plan, key: &'k [Value]) -> RowKeys<'k> {
        let question = &self.context.question;
        let words = KeyWords { session: question.tape.session(), book: &question.book, plan };
        RowKeys { words, values: key, task: self.labels.get(key, plan) }
    }

    fn headings(&self) -> Table {
        let parts: &[&str] = match self.client {
            true => &["send p99", "wait p99", "receive p99"],
            false => &["queue p99", "receive p99", "serve p99", "send p99", "held p99"],
        };
        let times = ["exchanges", "/s", "p50 ms", "p90 ms", "p99 ms", "max ms"];
        let words = times.iter().chain(parts).chain(&["in", "out", "errors", "timed"]);
        let table = words.fold(Table::default(), |table, word| table.number(word));
        let table = match self.keyed {
            Keyed::Server => table.word("comm").word("server"),
            Keyed::By(by, _) => by.iter().fold(table, |table, by| table.word(by.heading())),
        };
        // the first to leave a narrow terminal first
        let leaving: &[&str] = match self.client {
            true => &["in", "out", "receive p99", "/s", "timed", "send p99", "p90 ms", "comm", "wait p99", "max ms"],
            false => &[
                "in",
                "out",
                "send p99",
                "/s",
                "timed",
                "receive p99",
                "p90 ms",
                "held p99",
                "comm",
                "queue p99",
                "serve p99",
                "max ms",
            ],
        };
        table.leaving(leaving)
    }

    fn rate(&self, sum: &ExchangeSums) -> f64 {
        sum.count as f64 * 1e9 / self.span.max(1) as f64
    }

    fn row<'r>(&'r self, key: &[Value], sum: &ExchangeSums) -> Row<'r> {
        let mut row = Row::new(self.declared);
        match self.keyed {
            Keyed::Server => {
                let server = if let Value::Text(text) = &key[0] { Some(text.to_vec()) } else { None };
                let port = if let Value::Number(port) = &key[1] { Some(*port) } else { None };
                let comm = self.comms.get(&key[0]).cloned().flatten();
                row.set("server", server).set("port", port).set("comm", comm.map(|comm| comm.to_vec()));
            }
            Keyed::By(by, plan) => {
                let keys = self.keys(plan, key);
                by::fill(&mut row, by, |by, name| keys.cell(by, name).into_owned());
            }
        }
        let short = self.short;
        row.bound("exchanges", sum.count, short).bound("timed", sum.timed, short);
        row.bound("errors", sum.troubles, short).bound("unanswered", sum.unanswered, short);
        row.bound("rate", self.rate(sum), short);
        row.bound("received_bytes", sum.received.0, short || sum.received.1);
        row.bound("sent_bytes", sum.sent.0, short || sum.sent.1);
        let parts: &[(&str, &Spread)] = match self.client {
            true => &[
                ("connect_", &sum.connect),
                ("send_", &sum.asking),
                ("wait_", &sum.between),
                ("receive_", &sum.answering),
            ],
            false => &[
                ("accept_", &sum.connect),
                ("queue_", &sum.queued),
                ("receive_", &sum.asking),
                ("serve_", &sum.between),
                ("send_", &sum.answering),
                ("held_", &sum.held),
                ("drain_", &sum.drain),
            ],
        };
        for (name, spread) in [("", &sum.whole)].iter().chain(parts) {
            for (word, permille) in [("p50", 500), ("p90", 900), ("p99", 990)] {
                row.bound(&format!("{name}{word}_ns"), spread.quantile(permille), short);
            }
            let max = Some(spread.max).filter(|_| spread.quantile(500).is_some());
            row.bound(&format!("{name}max_ns"), max, short);
        }
        row
    }

    fn cells(&self, key: &[Value], sum: &ExchangeSums) -> Vec<String> {
        let (least, about) = (mark::at_least(self.short), mark::about(self.short));
        let count = |number: u64| format!("{least}{number}");
        let time = |spread: &Spread, permille: u64| {
            spread.quantile(permille).map_or_else(|| "-".to_owned(), |ns| millis(ns, about))
        };
        let max = if sum.whole.quantile(500).is_some() { millis(sum.whole.max, least) } else { "-".to_owned() };
        let size = |(number, some): (u64, bool)| format!("{}{}", mark::at_least(self.short || some), bytes(number));
        let mut cells = vec![count(sum.count), format!("{about}{:.1}", self.rate(sum))];
        cells.extend([500, 900, 990].map(|permille| time(&sum.whole, permille)));
        cells.push(max);
        let parts: &[&Spread] = match self.client {
            true => &[&sum.asking, &sum.between, &sum.answering],
            false => &[&sum.queued, &sum.asking, &sum.between, &sum.answering, &sum.held],
        };
        cells.extend(parts.iter().map(|spread| time(spread, 990)));
        cells.extend([size(sum.received), size(sum.sent), count(sum.troubles), count(sum.timed)]);
        match self.keyed {
            Keyed::Server => {
                let comm = self.comms.get(&key[0]).cloned().flatten();
                cells.push(comm.map_or_else(|| "(several)".to_owned(), |comm| escaped(&comm)));
                cells.push(if let Value::Text(text) = &key[0] { escaped(text) } else { "?".to_owned() });
            }
            Keyed::By(by, plan) => {
                let keys = self.keys(plan, key);
                cells.extend(by.iter().map(|by| keys.text(*by)));
            }
        }
        cells
    }
}
