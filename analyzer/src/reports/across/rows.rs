//! Rows of `analyze across`.

use std::cmp::Reverse;
use std::fmt::Write as _;

use anyhow::Result;
use indexmap::IndexMap;

use super::side::{ClientKey, TapeSide};
use super::{Pair, joined};
use crate::asked::config::Config;
use systape_answers::derive::across::{ClockBounds, ExchangeSeen};
use systape_answers::derive::exchanges::sums::Spread;
use systape_answers::derive::exchanges::{Exchange, Phases};
use systape_answers::derive::runs::keys::task_text;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::{Table, millis, seconds};
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row for each server of one machine that another one asked, the one with most exchanges first.
    pub(super) ACROSS = "across" {
        client_tape: Str key [Path] "tape of the end that asked, as named"
        client_host: Str [Host] "name of that machine; null: not known"
        server_tape: Str key [Path] "tape of the end that answered"
        server_host: Str [Host] "name of that machine; null: not known"
        server: Str key [Address] "address and port of the server"
        exchanges ? AtLeast: Count "exchanges that are known to be on both tapes"
        client_p50_ns ? OfKnown: Duration "how long they took at the end that asked, as in `requests --client`: half of them no longer; null: no times are known"
        client_p99_ns ? OfKnown: Duration "99 % of them no longer"
        client_max_ns ? AtLeast: Duration "the longest"
        server_p50_ns ? OfKnown: Duration "how long they took at the server, as in `requests`"
        server_p99_ns ? OfKnown: Duration "likewise"
        server_max_ns ? AtLeast: Duration "likewise"
        network_p50_ns ? OfKnown: Duration "by how much an exchange took longer at the end that asked: the way there and back, and until that end read it; the clocks do not matter"
        network_p99_ns ? OfKnown: Duration "likewise"
        network_max_ns ? AtLeast: Duration "likewise"
    }
    /// In JSON, beside these, one row for each two tapes that have connections in common.
    pub(super) CLOCKS = "across_clocks" {
        first_tape: Str key [Path] "one of them"
        second_tape: Str key [Path] "the other one"
        ahead_least_ms ? AtLeast: Real "the clock of the second machine (its time of day at the start of its tape, and CLOCK_MONOTONIC since) is at least so far ahead, ms, negative: behind, when that is known best; null: not known"
        ahead_most_ms ? AtMost: Real "it is at most so far ahead; null: likewise"
        exchanges ? AtLeast: Count "exchanges that are known to be on both tapes"
        connections ? AtLeast: Count "connections that both tapes have"
        unsure ? OfKnown: Count "connections with exchanges of which it is not known which of the other tape they are"
        contradicts: Flag "what is known of the two clocks cannot all be true, so no exchange is known to be on both"
    }
    /// With `--slowest` one row for each of the slowest exchanges that are on two tapes, the slowest first.
    pub(super) SLOWEST_ACROSS = "across_slowest" {
        ts_ns: Time key "when its first write began, since the start of the tape of the end that asked"
        client_tape: Str key [Path] "tape of the end that asked"
        server_tape: Str key [Path] "tape of the end that answered"
        server: Str key [Address] "address and port of the server"
        total_ns: Duration "how long it took at the end that asked"
        there_least_ns ? AtLeast: Duration "time from its first write until the first bytes were at the server, at least"
        there_most_ns ? AtMost: Duration "at most"
        queue_ns: Duration "at the server, as in `requests --slowest`; null: not known"
        receive_ns: Duration "likewise"
        serve_ns: Duration "likewise"
        send_ns: Duration "likewise"
        held_ns: Duration "likewise"
        back_least_ns ? AtLeast: Duration "time from the end of that until the end that asked had read all, at least"
        back_most_ns ? AtMost: Duration "at most"
        network_ns: Duration "both ways together, which is known better than each"
        asked.pid: Int "who asked: process"
        asked.tid: Int "thread"
        asked.comm: Str [Comm] "its name"
        answered.pid: Int "who answered: process"
        answered.tid: Int "thread"
        answered.comm: Str [Comm] "its name"
    }
}

/// An exchange at both ends.
pub(super) struct ExchangeAtBoth {
    /// Times at the end that asked.
    pub client: ExchangeSeen,
    /// Times at the server.
    pub server: ExchangeSeen,
    /// Numbers of their tapes.
    pub sides: (usize, usize),
    /// How far the server's clock is ahead.
    pub ahead: ClockBounds,
    /// Addresses, at the end that asked and at the other.
    pub key: ClientKey,
}

impl ExchangeAtBoth {
    /// How long it took at both ends, ns; None: not known of one.
    fn totals(&self) -> Option<(u64, u64)> {
        self.client.total.zip(self.server.total)
    }

    /// The server's address and port.
    fn server(&self) -> Vec<u8> {
        self.key.1.local().to_vec()
    }
}

/// Exchanges with one server.
#[derive(Default)]
pub(super) struct ServerSums {
    sides: (usize, usize),
    server: Vec<u8>,
    /// How many exchanges there are.
    pub count: u64,
    client: Spread,
    at_server: Spread,
    network: Spread,
}

/// Adds up the exchanges of `pairs` by server.
pub(super) fn sums(pairs: &[Pair]) -> Vec<ServerSums> {
    let mut sums: IndexMap<((usize, usize), Vec<u8>), ServerSums> = IndexMap::new();
    for one in joined(pairs) {
        let (sides, server) = (one.sides, one.server());
        let sum =
            sums.entry((sides, server.clone())).or_insert_with(|| ServerSums { sides, server, ..Default::default() });
        sum.count += 1;
        if let Some((client, at_server)) = one.totals() {
            sum.client.add(client);
            sum.at_server.add(at_server);
            sum.network.add(client.saturating_sub(at_server));
        }
    }
    sums.into_values().collect()
}

/// Median, 99th percentile and the longest; None: there is none.
fn three(spread: &Spread) -> [Option<u64>; 3] {
    let max = spread.quantile(500).map(|_| spread.max);
    [spread.quantile(500), spread.quantile(990), max]
}

impl ServerSums {
    /// Prints the rows.
    pub(super) fn print(config: &Config, sums: &[Self], sides: &[TapeSide], short: bool, out: &mut Out) -> Result<()> {
        config.shown.rows(sums.len());
        let names = ["exchanges", "p50 ms", "p99 ms", "max ms", "server p50", "server p99", "server max"];
        let table = names
            .into_iter()
            .chain(["network p50", "network p99", "network max"])
            .fold(Table::default(), Table::number);
        let table = table.word("who asked").word("who answered").word("server");
        out.ranking(
            TopRows {
                table: &ACROSS,
                judged: Judgement::Touched(short),
                headings: table.leaving(&[
                    "server max",
                    "network max",
                    "max ms",
                    "server p50",
                    "network p50",
                    "p50 ms",
                ]),
                all: sums.len(),
                limit: usize::MAX,
            },
            sums.iter(),
            |sum: &Self| sum.row(sides, short),
            |sum: &Self| sum.cells(sides, short),
        )?;
        Ok(())
    }

    fn row<'r>(&'r self, sides: &'r [TapeSide], short: bool) -> Row<'r> {
        let mut row = Row::new(&ACROSS);
        let [client, server] = [&sides[self.sides.0], &sides[self.sides.1]];
        row.set("client_tape", client.path_bytes()).set("client_host", client.host());
        row.set("server_tape", server.path_bytes()).set("server_host", server.host());
        row.set("server", &self.server).bound("exchanges", self.count, short);
        for (who, spread) in [("client", &self.client), ("server", &self.at_server), ("network", &self.network)] {
            for (word, value) in ["p50", "p99", "max"].into_iter().zip(three(spread)) {
                row.bound(&format!("{who}_{word}_ns"), value, short);
            }
        }
        row
    }

    fn cells(&self, sides: &[TapeSide], short: bool) -> Vec<String> {
        let mut cells = vec![format!("{}{}", mark::at_least(short), self.count)];
        for spread in [&self.client, &self.at_server, &self.network] {
            let leads = [mark::about(short), mark::about(short), mark::at_least(short)];
            let text = |(value, lead): (Option<u64>, &str)| value.map_or_else(|| "-".to_owned(), |ns| millis(ns, lead));
            cells.extend(three(spread).into_iter().zip(leads).map(text));
        }
        cells.extend([sides[self.sides.0].name(), sides[self.sides.1].name()].map(str::to_owned));
        cells.push(escaped(&self.server));
        cells
    }
}

/// How far the second machine's clock is ahead in ms, at least and at most; None: not known.
fn ahead(pair: &Pair, sides: &[TapeSide]) -> Option<[f64; 2]> {
    let found = pair.found.as_ref().ok()?.as_ref()?;
    let days = sides[pair.second].day?.saturating_sub(sides[pair.first].day?);
    let (_, ClockBounds { least, most }) = found.clocks.narrowest();
    Some([least, most].map(|ns| ns.saturating_add(days) as f64 / 1e6))
}

/// The row of two tapes.
pub(super) fn clock_row<'r>(pair: &Pair, sides: &'r [TapeSide], short: bool) -> Row<'r> {
    let found = pair.found.as_ref().ok().and_then(Option::as_ref);
    let bounds = ahead(pair, sides);
    let mut row = Row::new(&CLOCKS);
    row.set("first_tape", sides[pair.first].path_bytes()).set("second_tape", sides[pair.second].path_bytes());
    row.bound("ahead_least_ms", bounds.map(|[least, _]| least), short);
    row.bound("ahead_most_ms", bounds.map(|[_, most]| most), short);
    row.bound("exchanges", found.map_or(0, |found| found.exchanges.len() as u64), short);
    row.bound("connections", pair.connections.len() as u64, short);
    row.bound("unsure", found.map_or(pair.connections.len(), |found| found.unsure) as u64, short);
    row.set("contradicts", pair.found.is_err());
    row
}

/// A sentence about two tapes.
pub(super) fn clock_text(pair: &Pair, sides: &[TapeSide]) -> String {
    let [first, second] = [&sides[pair.first], &sides[pair.second]].map(TapeSide::name);
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let connections = many(pair.connections.len(), "connection");
    let found = match &pair.found {
        Err(_) => {
            return format!(
                "{first}, {second}: what {connections} say of the two clocks cannot all be true: addresses were used twice, or a machine slept"
            );
        }
        Ok(None) => {
            return format!(
                "{first}, {second}: {connections} on both tapes, and none of its exchanges is known to be on both: they began before, and \
                 have no pauses that tell them apart"
            );
        }
        Ok(Some(found)) => found,
    };
    let mut text = match ahead(pair, sides) {
        None => format!("{first}, {second}: the time of day is not on both tapes"),
        Some([least, most]) => {
            let (middle, apart) = ((least + most) / 2.0, (most - least) / 2.0);
            let word = if middle < 0.0 { "behind" } else { "ahead of" };
            format!("the clock of {second} is {:.3} ms {word} {first}, within {apart:.3} ms", middle.abs())
        }
    };
    let _ = write!(text, " ({} of {connections})", many(found.exchanges.len(), "exchange"));
    if found.unsure > 0 {
        let _ = write!(text, "; of {} it is not known which exchanges are on both", many(found.unsure, "connection"));
    }
    text
}

/// One of the slowest.
pub(super) struct SlowAcross {
    /// Times at both ends.
    pub joined: ExchangeAtBoth,
    /// How long it took at both ends, ns.
    totals: (u64, u64),
    /// The exchange at the end that asked, read anew.
    pub client: Option<Exchange>,
    /// The exchange at the server.
    pub server: Option<Exchange>,
}

impl SlowAcross {
    /// The exchange as one of the slowest; None: its times are not known.
    pub(super) fn of(joined: ExchangeAtBoth) -> Option<Self> {
        joined.totals().map(|totals| Self { joined, totals, client: None, server: None })
    }

    fn rank(&self) -> (u64, Reverse<u64>, Reverse<&ClientKey>) {
        (self.totals.0, Reverse(self.joined.client.begin), Reverse(&self.joined.key))
    }

    /// Time on both ways together, ns.
    fn network(&self) -> u64 {
        self.totals.0.saturating_sub(self.totals.1)
    }

    /// Time on the way there, at least and at most.
    fn there(&self) -> [u64; 2] {
        let apart = (self.joined.server.begin as i64).saturating_sub(self.joined.client.begin as i64);
        let ClockBounds { least, most } = self.joined.ahead;
        let network = self.network();
        [most, least].map(|ahead| u64::try_from(apart.saturating_sub(ahead)).unwrap_or(0).min(network))
    }

    /// Time on the way back, likewise.
    fn back(&self) -> [u64; 2] {
        let [least, most] = self.there();
        [self.network() - most, self.network() - least]
    }

    fn phases(&self) -> Option<Phases> {
        self.server.as_ref().and_then(Exchange::phases)
    }

    fn row<'r>(&'r self, sides: &'r [TapeSide], short: bool) -> Row<'r> {
        let one = &self.joined;
        let (client, server, phases) = (&sides[one.sides.0], &sides[one.sides.1], self.phases());
        let mut row = Row::new(&SLOWEST_ACROSS);
        row.set("ts_ns", (one.client.begin as i64).saturating_sub(client.start as i64));
        row.set("client_tape", client.path_bytes()).set("server_tape", server.path_bytes());
        row.set("server", one.server()).set("total_ns", self.totals.0);
        let [least, most] = self.there();
        row.bound("there_least_ns", least, short).bound("there_most_ns", most, short);
        row.set("queue_ns", phases.and_then(|p| p.queued)).set("receive_ns", phases.map(|p| p.asking));
        row.set("serve_ns", phases.map(|p| p.between)).set("send_ns", phases.map(|p| p.answering));
        row.set("held_ns", phases.and_then(|p| p.held));
        let [least, most] = self.back();
        row.bound("back_least_ns", least, short).bound("back_most_ns", most, short);
        row.set("network_ns", self.network());
        for (group, exchange) in [("asked", &self.client), ("answered", &self.server)] {
            match exchange.as_ref().map(|exchange| &exchange.actor().task) {
                Some(task) => {
                    row.part(group, "pid", task.pid).part(group, "tid", task.tid).part(group, "comm", &task.comm);
                }
                None => _ = row.absent(group),
            }
        }
        row
    }

    fn cells(&self, sides: &[TapeSide]) -> Vec<String> {
        let phases = self.phases();
        let one = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, ""));
        let between = |[least, most]: [u64; 2]| {
            if millis(least, "") == millis(most, "") {
                millis(most, "")
            } else {
                format!("{}-{}", millis(least, ""), millis(most, ""))
            }
        };
        let who = |exchange: &Option<Exchange>| {
            exchange.as_ref().map_or_else(|| "-".to_owned(), |exchange| task_text(&exchange.actor().task))
        };
        let (client, server) = (&sides[self.joined.sides.0], &sides[self.joined.sides.1]);
        vec![
            seconds(self.joined.client.begin, client.start),
            millis(self.totals.0, ""),
            between(self.there()),
            one(phases.and_then(|p| p.queued)),
            one(phases.map(|p| p.asking)),
            one(phases.map(|p| p.between)),
            one(phases.map(|p| p.answering)),
            one(phases.and_then(|p| p.held)),
            between(self.back()),
            format!("{}: {}", client.name(), who(&self.client)),
            format!("{}: {}", server.name(), who(&self.server)),
            escaped(&self.joined.server()),
        ]
    }
}

impl PartialEq for SlowAcross {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for SlowAcross {}

impl PartialOrd for SlowAcross {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SlowAcross {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Prints `rows`, of `all` exchanges, which may be more.
pub(super) fn print_slowest(
    rows: &[SlowAcross],
    sides: &[TapeSide],
    (all, short): (u64, bool),
    out: &mut Out,
) -> Result<()> {
    if !out.is_text() {
        out.rows(&SLOWEST_ACROSS, Judgement::Touched(short), rows.iter().map(|slow| slow.row(sides, short)))?;
        return Ok(());
    }
    let names = ["time s", "ms", "there", "queue", "receive", "serve", "send", "held", "back"];
    let table = names.into_iter().fold(Table::default(), Table::number);
    let table = table.word("who asked").word("who answered").word("server");
    let mut table = table.leaving(&["server", "held", "send", "receive", "queue"]);
    rows.iter().for_each(|slow| table.row(slow.cells(sides)));
    table.print(out)?;
    out.text([format!("the slowest {} of {}{all} exchanges", rows.len(), mark::at_least(short))])?;
    Ok(())
}
