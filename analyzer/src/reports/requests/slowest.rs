//! `analyze requests --slowest`: the slowest exchanges one by one, each with what the other end of its connection did, if that is on the tape.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::Family;

use super::budget::{Askers, Budgets};
use super::slow::{Medians, Slow, SlowText, Slowest, TIME};
use super::{WantedExchanges, is_short, notes, peer, server, server_port};
use crate::reports::{Context, losses};
use systape_answers::derive::exchanges::ends::EndAddresses;
use systape_answers::derive::exchanges::{Amount, CutShort, EndSide, Exchange, Trouble, read};
use systape_answers::derive::runs::keys::task_text;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::row::{Row, ShownTimes, some};
use systape_answers::render::stamp::Stamps;
use systape_answers::render::table::{Table, millis};
use systape_events::values::words::{bytes, errno_text, escaped};

systape_format::tables! {
    /// With `--slowest` one row for each of the slowest exchanges, the slowest first; those that were under way at the end are as old as they were then.
    pub SLOWEST = "requests_slowest" {
        ts_ns: Time key "when it began: at a server when its first bytes came, or if that is not known when its first read returned, with `--client` when the first write began"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        total_ns ? AtLeast: Duration "how long it took: until the last byte could leave, or if that is not known to the return of the last write, with `--client` of the last read"
        accept_ns: Duration "at a server: how long the connection was established before it was accepted, before its first exchange; null: another one, not known, or `--client`"
        queue_ns: Duration "at a server: from when the first bytes came to the return of the first read; null: not known, as of a UNIX socket, or `--client`"
        receive_ns: Duration "at a server: to the last read before the answer; with `--client` from the first read to the last; null: not known"
        serve_ns: Duration "at a server: from the last read to the beginning of the answer; null: not known, or `--client`"
        send_ns: Duration "at a server: from there to the return of the last write; with `--client` from the first write to the last; null: not known"
        held_ns: Duration "at a server: from there until the kernel could send the last byte; null: not known, or `--client`"
        drain_ns: Duration "at a server: from the return of the last write until the other end had acknowledged all of the answer; null: not known, or `--client`"
        connect_ns: Duration "with `--client`: how long it took to connect, before the first exchange of a connection; null: another one, or not known"
        wait_ns: Duration "with `--client`: from the last write to the return of the first read; null: not known"
        received_bytes ? AtLeast: Wide "bytes that this end read"
        sent_bytes ? AtLeast: Wide "bytes that it wrote"
        error: Word "name of the error that a call failed with; `unanswered`: the connection ended without an answer; null: none"
        pid: Int "process that answered, with `--client` that asked"
        tid: Int key "thread that wrote first"
        upid: Int "the process, unique in the tape; null: not known"
        utid: Int key "the thread, unique in the tape; null: not known"
        comm: Str [Comm] "its name"
        server: Str [Address] "the server, as in `requests`"
        port: Int "its TCP port; null: none"
        local: Str key [Address] "this end: address and port, of a UNIX socket its inode"
        remote: Str key [Address] "the other end, likewise; empty: not known"
        peer.pid: Int "who had the other end: process; `peer` null: it is not on the tape"
        peer.tid: Int "thread"
        peer.comm: Str [Comm] "its name"
        peer.total_ns ? AtLeast: Duration "how long the exchange took there; null: not known"
        peer.serve_ns: Duration "with `--client`: how long the server served it, as `serve_ns` there; null: not known"
    }
}

/// Prints them.
pub(super) fn run(
    context: &mut Context<'_>,
    wanted: &WantedExchanges<'_>,
    (most, where_it_went): (usize, bool),
    out: &mut Out,
) -> Result<()> {
    let tape = context.question.tape;
    let until = tape.complete_until();
    let mut slowest = Slowest::default();
    let (coverage, unread) = read::read(&context.question, |exchange| {
        if wanted.takes(&exchange) {
            slowest.add(exchange, most, until);
        }
    });
    coverage.tell(&mut context.question.loss);
    let middle = slowest.spread.quantile(500).filter(|_| where_it_went);
    let mut rows: Vec<Slow> = slowest.heap.into_sorted_vec().into_iter().map(|Reverse(slow)| slow).collect();
    let unseen = context.question.loss.touches(&[Family::Net], None, (wanted.from, wanted.to));
    rows.iter_mut().for_each(|slow| slow.unseen = unseen && !slow.exchange.end.unix);
    let mut askers = Askers::default();
    let mut medians = Medians { middle: middle.unwrap_or(0), most, heap: BinaryHeap::new() };
    if !rows.is_empty() {
        join(context, &mut rows, |exchange| {
            if where_it_went {
                askers.add(exchange);
            }
            if middle.is_some() && wanted.takes(exchange) {
                medians.add(exchange);
            }
        });
    }
    let budgets = match where_it_went {
        true => {
            // one of the slowest is none of median length
            let least = rows.iter().map(|slow| slow.ns).min().unwrap_or(0);
            let medians: Vec<Slow> = medians.heap.into_sorted_vec().into_iter().map(|(_, slow)| slow).collect();
            let medians: Vec<Slow> = medians.into_iter().filter(|slow| slow.ns < least).collect();
            Some(Budgets::of(context, (&rows, &medians), slowest.timed, &askers)?)
        }
        false => None,
    };
    context.config.shown.rows(rows.len());
    let short = is_short(context, &unread);
    losses::head(context, losses::AT_LEAST, out)?;
    out.notes(notes(tape, &unread))?;
    if let Some(budgets) = budgets.as_ref().filter(|_| !out.is_text()) {
        return budgets.rows(context, &rows, out);
    }
    if !out.is_text() {
        let times = context.times();
        out.rows(&SLOWEST, context.judged(), rows.iter().map(|slow| row(slow, &times)))?;
        return Ok(());
    }
    let client = wanted.side == EndSide::Client;
    let stamps = context.stamps();
    let parts: &[&str] = match client {
        true => &["connect", "send", "wait", "receive"],
        false => &["queue", "receive", "serve", "send", "held"],
    };
    let mut table = Table::default().number(stamps.heading(TIME).trim()).number("ms");
    table = parts.iter().fold(table, |table, part| table.number(part)).number("in").number("out");
    table = table.word("error").word("thread").word(if client { "server" } else { "client" }).word("other end");
    let mut table = table.leaving(&["in", "out", "connect", "held", "other end", "error"]);
    rows.iter().for_each(|slow| table.row(cells(slow, client, &stamps)));
    table.print(out)?;
    let least = mark::at_least(short);
    let shown = rows.len();
    out.text([format!("the slowest {shown} of {least}{} exchanges", slowest.all)])?;
    if let Some(budgets) = &budgets {
        return budgets.print(&rows, &SlowText { stamps: &stamps }, out);
    }
    if let Some(slow) = rows.first() {
        let tid = slow.exchange.actor().task.tid;
        let (from, to) = around(slow, tape.session().window_open);
        out.text([format!("more of the slowest: analyze path -t {tid} --time {from},{to}")])?;
    }
    Ok(())
}

/// The time of `slow` for `--time`: seconds since `open`, not later than it began and not earlier than it ended.
fn around(slow: &Slow, open: u64) -> (String, String) {
    let at = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let from = slow.exchange.since().saturating_sub(open);
    (at(from / 1000), at(from.saturating_add(slow.ns).div_ceil(1000)))
}

/// Finds the exchanges of the other ends: one more pass, in which `each` is given every exchange.
fn join(context: &Context<'_>, rows: &mut [Slow], mut each: impl FnMut(&Exchange) + Send) {
    let mut asked: FxHashMap<EndAddresses, Vec<usize>> = FxHashMap::default();
    for (at, slow) in rows.iter().enumerate() {
        if let Some(other) = slow.exchange.end.other() {
            asked.entry(other).or_default().push(at);
        }
    }
    // what cannot be read is known from the first pass
    let (_known, _) = read::read(&context.question, |exchange| {
        each(&exchange);
        let Some(places) = asked.get(&exchange.end.key().addresses) else { return };
        for at in places {
            let slow = &mut rows[*at];
            if exchange.side == slow.exchange.side || !answers(&slow.exchange, slow.ns, &exchange) {
                continue;
            }
            slow.meets(&exchange);
        }
    });
}

/// Whether `other`, at the other end, is the same exchange as `one`, which took `ns`: who connected asked first.
fn answers(one: &Exchange, ns: u64, other: &Exchange) -> bool {
    let (client, server) = if one.side == EndSide::Client { (one, other) } else { (other, one) };
    let end = if one.side == EndSide::Client { one.begin.saturating_add(ns) } else { client.last() };
    let asked = client.begin <= server.begin && server.begin <= end;
    // under way at the end of the tape
    let goes_on = client.cut == Some(CutShort::End) && client.answer.is_none() && client.begin <= server.begin;
    (asked || goes_on) && (client.end.namespace == server.end.namespace || carries(client, server))
}

/// Whether what the client sent may be what the server received, and the other way round. Several namespaces may have these addresses.
fn carries(client: &Exchange, server: &Exchange) -> bool {
    let whole = client.phases().is_some() && server.phases().is_some();
    let same = |sent: Amount, received: Amount| sent.short || received.short || sent.bytes == received.bytes;
    !whole || (same(client.sent, server.received) && same(server.sent, client.received))
}

/// What went wrong, as a word.
fn trouble(exchange: &Exchange) -> Option<String> {
    match exchange.trouble? {
        Trouble::Failed(errno) => Some(errno_text(errno)),
        Trouble::Unanswered => Some("unanswered".to_owned()),
    }
}

fn row<'r>(slow: &'r Slow, times: &ShownTimes<'_>) -> Row<'r> {
    let Slow { ns, goes_on, exchange, other, .. } = slow;
    let phases = exchange.phases();
    let client = exchange.side == EndSide::Client;
    let [asking, between, answering] =
        [phases.map(|p| p.asking), phases.map(|p| p.between), phases.map(|p| p.answering)];
    let mut row = Row::new(&SLOWEST);
    row.set("ts_ns", times.since(exchange.since())).time("time", Some(exchange.since()), times);
    row.bound("total_ns", *ns, slow.is_short());
    row.set("accept_ns", exchange.connect.filter(|_| !client));
    row.set("queue_ns", phases.and_then(|p| p.queued)).set("receive_ns", if client { answering } else { asking });
    row.set("serve_ns", between.filter(|_| !client));
    row.set("send_ns", if client { asking } else { answering });
    row.set("held_ns", phases.and_then(|p| p.held)).set("drain_ns", phases.and_then(|p| p.drain));
    row.set("connect_ns", exchange.connect.filter(|_| client)).set("wait_ns", between.filter(|_| client));
    row.bound("received_bytes", exchange.received.bytes, exchange.received.short || *goes_on);
    row.bound("sent_bytes", exchange.sent.bytes, exchange.sent.short || *goes_on);
    row.set("error", trouble(exchange));
    let task = &exchange.actor().task;
    row.set("pid", task.pid).set("tid", task.tid).set("upid", some(task.upid)).set("utid", some(task.utid));
    row.set("comm", &task.comm).set("server", server(exchange)).set("port", server_port(exchange));
    row.set("local", exchange.end.local.to_vec()).set("remote", exchange.end.remote.to_vec());
    match other {
        None => _ = row.absent("peer"),
        Some(other) => {
            let (task, phases) = (&other.actor().task, other.phases());
            row.set("peer_pid", task.pid).set("peer_tid", task.tid).set("peer_comm", &task.comm);
            row.bound("peer_total_ns", phases.map(|phases| phases.whole()), slow.unseen);
            row.set("peer_serve_ns", phases.map(|phases| phases.between).filter(|_| client));
        }
    }
    row
}

fn cells(slow: &Slow, client: bool, stamps: &Stamps) -> Vec<String> {
    let Slow { ns, goes_on, exchange, other, .. } = slow;
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, ""));
    let phases = exchange.phases();
    let mut cells =
        vec![stamps.text(TIME, exchange.since()).trim().to_owned(), millis(*ns, mark::at_least(slow.is_short()))];
    cells.push(time(if client { exchange.connect } else { phases.and_then(|phases| phases.queued) }));
    cells.extend([
        time(phases.map(|phases| phases.asking)),
        time(phases.map(|phases| phases.between)),
        time(phases.map(|phases| phases.answering)),
    ]);
    if !client {
        cells.push(time(phases.and_then(|phases| phases.held)));
    }
    let size = |amount: Amount| format!("{}{}", mark::at_least(amount.short || *goes_on), bytes(amount.bytes));
    cells.extend([size(exchange.received), size(exchange.sent)]);
    cells.push(trouble(exchange).unwrap_or_else(|| "-".to_owned()));
    cells.push(task_text(&exchange.actor().task));
    let peer = if client { server(exchange) } else { peer(exchange) };
    cells.push(peer.map_or_else(|| "-".to_owned(), |peer| escaped(&peer)));
    cells.push(other.as_ref().map_or_else(|| "-".to_owned(), |other| task_text(&other.actor().task)));
    cells
}
