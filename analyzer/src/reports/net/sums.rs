//! Sums of TCP connections by keys: who sent and received how much, and with whom.

use std::ops::ControlFlow;

use anyhow::Result;
use systape_format::model::{Call, Family};

use super::{Doubts, begin, calls_missing, walk};
use crate::asked::config::Config;
use crate::reports::{Context, losses};
use systape_answers::derive::net::connection::{Connection, ConnectionOutcome, Direction};
use systape_answers::derive::net::words::{address, endpoint, protocol_name};
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::plan::{Plan, RowPart};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank::Rank;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::Table;
use systape_events::group::Add;
use systape_events::group::by::GroupKey;
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Ordered, Parts, Spilling};
use systape_events::group::value::{Key, Value};
use systape_events::loss::Loss;
use systape_events::values::spill::{Store, Stored, put_number, take_u64};
use systape_events::values::words::bytes;

systape_format::tables! {
    /// With `--by` one row for each value of the keys, which stand before these columns, the one with most bytes first. Null of a row whose owner is not known: calls
    /// are missing, and some of its connections may be those of other rows.
    pub SUMS = "net_sums" {
        connections ? AtLeast: Count "connections; one between two processes of the tape counts for each of its ends"
        failed ? AtLeast: Count "of these, those that were never established"
        sent_bytes ? AtLeast: Wide "data that these ends sent in the recording, each byte once"
        received_bytes ? AtLeast: Wide "data that they received"
        retransmits ? AtLeast: Count "segments that they sent again"
        unknown ? AtLeast: Count "connections of which bytes and segments are not known: they are in none of the last three"
    }
}

/// The keys that connections have.
const KNOWN: [GroupKey; 13] = GroupKey::of_task_and(&[GroupKey::Peer, GroupKey::Port]);

/// Keys that are asked for; none: no sums.
///
/// # Errors
/// Connections do not have such a key.
pub(super) fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    Ok(GroupKey::parse(&config.by, &KNOWN, "'analyze net'")?)
}

/// Connections of one key.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    connections: u64,
    failed: u64,
    sent: u64,
    received: u64,
    retrans: u64,
    unknown: u64,
    /// Bytes of one that began before the recording may be missing.
    at_least: bool,
}

impl Sum {
    fn of(connection: &Connection) -> Self {
        let moved = connection.moved();
        let failed = connection.outcome == ConnectionOutcome::Failed;
        Self {
            connections: 1,
            failed: u64::from(failed),
            sent: moved.map_or(0, |moved| moved.sent),
            received: moved.map_or(0, |moved| moved.received),
            retrans: moved.map_or(0, |moved| moved.retrans),
            // what was never established moved nothing
            unknown: u64::from(moved.is_none() && !failed),
            at_least: moved.is_some_and(|moved| moved.at_least),
        }
    }

    fn bytes(&self) -> u128 {
        u128::from(self.sent) + u128::from(self.received)
    }
}

impl Stored for Sum {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { connections, failed, sent, received, retrans, unknown, at_least } = self;
        let numbers = [connections, failed, sent, received, retrans, unknown];
        numbers.into_iter().for_each(|number| put_number((*number).into(), out));
        out.push((*at_least).into());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let [connections, failed, sent, received, retrans, unknown] = [(); 6].map(|()| take_u64(from));
        Some(Self {
            connections: connections?,
            failed: failed?,
            sent: sent?,
            received: received?,
            retrans: retrans?,
            unknown: unknown?,
            at_least: *from.split_off_first()? != 0,
        })
    }

    fn heap(&self) -> usize {
        0
    }
}

impl Add for Sum {
    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.connections, other.connections),
            (&mut self.failed, other.failed),
            (&mut self.sent, other.sent),
            (&mut self.received, other.received),
            (&mut self.retrans, other.retrans),
            (&mut self.unknown, other.unknown),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.at_least |= other.at_least;
    }
}

/// The key of a connection. What it is on is named as its descriptor would be, so that peers are the same as elsewhere.
fn key(connection: &Connection, plan: &Plan) -> Key {
    let unknown = || plan.keys().iter().map(|_| Value::Unknown).collect();
    let mut key: Key = connection.task.as_ref().map_or_else(unknown, |task| plan.key(task, Call::default()));
    let c = connection;
    let name = || {
        let (local, remote) = (endpoint(&c.laddr, c.lport), endpoint(&c.raddr, c.rport));
        let known = address(&c.raddr).is_some() && c.rport != 0;
        known.then(|| format!("{}:[{local}->{remote}]", protocol_name(c.protocol)))
    };
    plan.row(&mut key, RowPart::default(), |_| {
        name().map_or(Value::Unknown, |name| Value::Text(name.into_bytes().into()))
    });
    key
}

/// Prints the sums by the keys `by`.
pub(super) fn print(
    context: &Context<'_>,
    loss: &mut Loss,
    by: &[GroupKey],
    rank: Rank,
    out: &mut Out,
) -> Result<Doubts> {
    let question = &context.question;
    let plan = Plan::by(by).naming(question.tape.session());
    let (mut labels, mut nameless): (_, Sum) = Default::default();
    let mut sums: Spilling<Sum> = Spilling::new(Store::of_process(), 1);
    begin(context, loss);
    // one that was there in the time asked for may be met only later
    loss.add_earlier(question.tape, &[Family::Net], u64::MAX);
    let mut nth = 0;
    let doubts = walk(context, loss, |found, _| {
        nth += 1;
        for connection in found.iter().filter(|connection| connection.direction != Direction::Listen) {
            let key = key(connection, &plan);
            let sum = Sum::of(connection);
            sums.groups.of(&key).add(&sum);
            sums.relieve(1, 0);
            if key.iter().any(|value| !value.is_known()) {
                nameless.add(&sum);
            }
            if let Some(task) = &connection.task {
                Labels::add(&mut labels, plan.whose_is(task), task, &plan, (nth, 0));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let parts = Parts::of(vec![sums]);
    let bytes_of = |_: Packed<'_>, sum: &Sum| Some(u64::try_from(sum.bytes()).unwrap_or(u64::MAX));
    let rows = Ordered::new(&parts, bytes_of, |(one, x), (other, y)| {
        let order = (y.bytes(), y.connections).cmp(&(x.bytes(), x.connections));
        order.then_with(|| one.key().cmp(&other.key()))
    });
    let lost = !loss.complete();
    let words = KeyWords { session: question.tape.session(), book: &question.book, plan: &plan };
    // who accepted some is not known because calls are missing: as many as are not known may be of those who are
    let unsure = doubts.accepted && calls_missing(question.tape);
    let of_task = |by: &GroupKey| ![GroupKey::Peer, GroupKey::Port, GroupKey::Label].contains(by);
    let nobody = |values: &[Value]| plan.keys().iter().zip(values).any(|(by, value)| of_task(by) && !value.is_known());
    losses::head_of(loss, context, losses::AT_LEAST, out)?;
    let declared = with_keys(by::columns(by), &SUMS);
    let headings = ["sent", "received", "connections", "failed", "retr"];
    let headings = headings.into_iter().fold(Table::default(), Table::number);
    out.ranking(
        TopRows {
            table: &declared,
            judged: Judgement::Touched(lost),
            headings: by.iter().fold(headings, |table, by| table.word(by.heading())).leaving(&[
                "retr",
                "failed",
                "connections",
            ]),
            all: rows.len(),
            limit: context.config.limit(rank),
        },
        rows.iter().map(|entry| (entry.key().key(), *entry.sum)),
        |(values, sum): (Key, Sum)| {
            let (short, unsure) = (lost, unsure && nobody(&values));
            let keys = RowKeys { words, values: &values, task: labels.get(&values, &plan) };
            let mut row = Row::new(&declared);
            by::fill(&mut row, by, |by, name| keys.cell(by, name).into_owned());
            let some = short || sum.at_least || sum.unknown > 0;
            let known = |number: u64| (!unsure).then_some(number);
            row.bound("connections", known(sum.connections), short).bound("failed", known(sum.failed), short);
            row.bound("sent_bytes", known(sum.sent), some).bound("received_bytes", known(sum.received), some);
            row.bound("retransmits", known(sum.retrans), some).bound("unknown", known(sum.unknown), short);
            row
        },
        |(values, sum): (Key, Sum)| {
            let (short, unsure) = (lost, unsure && nobody(&values));
            let keys = RowKeys { words, values: &values, task: labels.get(&values, &plan) };
            let lead = |short: bool| if unsure { mark::ABOUT } else { mark::at_least(short) };
            let (some, count) = (lead(short || sum.at_least || sum.unknown > 0), lead(short));
            let mut cells = vec![format!("{some}{}", bytes(sum.sent)), format!("{some}{}", bytes(sum.received))];
            cells.extend([format!("{count}{}", sum.connections), format!("{count}{}", sum.failed)]);
            cells.push(format!("{some}{}", sum.retrans));
            cells.extend(by.iter().map(|by| keys.text(*by)));
            cells
        },
    )?;
    let foot = (nameless.connections > 0 && rows.len() > 1).then(|| nameless_text(&nameless));
    out.text(foot)?;
    Ok(doubts)
}

/// `?: 2 connections, 12.0 KiB, of owners or peers that are not known: other rows may lack them`.
fn nameless_text(sum: &Sum) -> String {
    let s = if sum.connections == 1 { "" } else { "s" };
    let moved = bytes(sum.sent.saturating_add(sum.received));
    let some = mark::at_least(sum.at_least || sum.unknown > 0);
    format!(
        "?: {} connection{s}, {some}{moved}, of owners or peers that are not known: other rows may lack them",
        sum.connections
    )
}
