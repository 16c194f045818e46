//! `analyze across`: exchanges between machines that were recorded at the same time, each with a tape: how far their clocks are apart, how
//! long the same exchange took at either end, and where it was meanwhile.

mod rows;
mod side;
mod who;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};

use self::rows::{ACROSS, CLOCKS, SLOWEST_ACROSS, ServerSums, SlowAcross};
use self::side::TapeSide;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Own, Rows, View};
use systape_answers::derive::across::{
    ClockBounds, ClocksContradict, SharedConnection, SharedExchange, SharedExchanges, join,
};
use systape_answers::render::out::Out;
use systape_answers::render::row::Judgement;
use systape_answers::values::say::Verdict;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "across",
    about: "Exchanges between machines, of a tape of each: the difference of their clocks, and time on the way",
    operands: Operands::Tapes,
    own: Own::of::<Options>(),
    examples: [
        ("analyze across web.tape db.tape", "how long web waited for db, and how long db and the way took"),
        ("analyze across web.tape db.tape --slowest 10", "the ten slowest exchanges, with both threads"),
    ],
    tables: &[
        Rows::of("across", &[All(&ACROSS)]),
        Rows::json("across", &[All(&CLOCKS)]),
        Rows::of("across --slowest", &[All(&SLOWEST_ACROSS)]),
        Rows::json("across --slowest", &[All(&CLOCKS)]),
    ],
    run: AnswerFn::Many(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// The N slowest exchanges, one by one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slowest: Option<u32>,
}

/// Two tapes, by their numbers, and what they have in common.
struct Pair {
    first: usize,
    second: usize,
    connections: Vec<SharedConnection>,
    /// Addresses of each connection, at the end that asks.
    keys: Vec<side::ClientKey>,
    /// None: no exchange is known to be on both.
    found: Result<Option<SharedExchanges>, ClocksContradict>,
}

/// Prints the answer of `tapes`.
fn run(config: &Config, tapes: &[PathBuf], out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    if tapes.len() < 2 {
        bail!("it compares the tapes of two machines or more: analyze across A.tape B.tape");
    }
    let sides = side::read(config, tapes)?;
    let pairs = pairs(&sides);
    let short = sides.iter().any(|side| side.short);
    if out.is_text() {
        head(&sides, &pairs, out)?;
    }
    match own.slowest {
        Some(most) => slowest(config, &sides, &pairs, (most as usize, short), out)?,
        None if out.is_text() && joined(&pairs).next().is_none() => {}
        None => {
            let mut sums = rows::sums(&pairs);
            sums.sort_by_key(|sum| Reverse(sum.count));
            ServerSums::print(config, &sums, &sides, short, out)?;
        }
    }
    if !out.is_text() {
        let clocks = pairs.iter().map(|pair| rows::clock_row(pair, &sides, short));
        out.rows_beside(&CLOCKS, Judgement::Each, clocks)?;
        sides.iter().flat_map(|side| &side.notes).for_each(|note| out.say(note));
    }
    out.flush()?;
    Ok(Verdict { lost: sides.iter().any(|side| side.lost), bad: false })
}

/// Each two tapes with connections between them.
fn pairs(sides: &[TapeSide]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for first in 0..sides.len() {
        for second in first + 1..sides.len() {
            let mut connections = Vec::new();
            let mut keys = Vec::new();
            for (asks, answers, first_asks) in [(first, second, true), (second, first, false)] {
                for (key, asked) in &sides[asks].clients {
                    let Some(answered) = sides[answers].servers.get(&key.1).filter(|_| is_between(key, sides, answers))
                    else {
                        continue;
                    };
                    let (one, other) = if first_asks { (asked, answered) } else { (answered, asked) };
                    connections.push(SharedConnection { first: one.clone(), second: other.clone(), first_asks });
                    keys.push(key.clone());
                }
            }
            if !connections.is_empty() {
                let found = join(&connections);
                pairs.push(Pair { first, second, connections, keys, found });
            }
        }
    }
    pairs
}

/// Whether the other end of the connection at `key` is on the tape `answers` and on no other.
fn is_between(key: &side::ClientKey, sides: &[TapeSide], answers: usize) -> bool {
    sides.iter().enumerate().all(|(at, side)| at == answers || !side.servers.contains_key(&key.1))
}

/// What is said above a table: the clocks, what is missing.
fn head(sides: &[TapeSide], pairs: &[Pair], out: &mut Out) -> Result<()> {
    out.text(pairs.iter().map(|pair| rows::clock_text(pair, sides)))?;
    if pairs.is_empty() {
        out.text(["no connection is on two of the tapes: other networks, translated addresses (NAT), or other times"])?;
    }
    out.text(sides.iter().flat_map(|side| &side.notes))?;
    out.text([""])?;
    Ok(())
}

/// The clock of the server ahead of that of the client, and the times of an exchange: at the end that asks, and at the other.
fn oriented(pair: &Pair, found: &SharedExchanges, at: &SharedExchange) -> rows::ExchangeAtBoth {
    let connection = &pair.connections[at.connection];
    let (one, other) = (connection.first[at.first], connection.second[at.second]);
    let ClockBounds { least, most } = found.clocks.at(one.begin as i64);
    match connection.first_asks {
        true => rows::ExchangeAtBoth {
            client: one,
            server: other,
            sides: (pair.first, pair.second),
            ahead: ClockBounds { least, most },
            key: pair.keys[at.connection].clone(),
        },
        false => rows::ExchangeAtBoth {
            client: other,
            server: one,
            sides: (pair.second, pair.first),
            ahead: ClockBounds { least: -most, most: -least },
            key: pair.keys[at.connection].clone(),
        },
    }
}

/// The exchanges of all pairs.
fn joined(pairs: &[Pair]) -> impl Iterator<Item = rows::ExchangeAtBoth> {
    pairs.iter().flat_map(|pair| {
        let found = pair.found.as_ref().ok().and_then(Option::as_ref);
        found.into_iter().flat_map(move |found| found.exchanges.iter().map(move |at| oriented(pair, found, at)))
    })
}

/// Prints the slowest, the slowest first.
fn slowest(
    config: &Config,
    sides: &[TapeSide],
    pairs: &[Pair],
    (most, short): (usize, bool),
    out: &mut Out,
) -> Result<()> {
    let mut heap: BinaryHeap<Reverse<SlowAcross>> = BinaryHeap::new();
    let mut all = 0_u64;
    for one in joined(pairs) {
        all += 1;
        let Some(slow) = SlowAcross::of(one) else { continue };
        heap.push(Reverse(slow));
        if heap.len() > most {
            heap.pop();
        }
    }
    let mut rows: Vec<SlowAcross> = heap.into_sorted_vec().into_iter().map(|Reverse(slow)| slow).collect();
    who::find(config, sides, &mut rows)?;
    config.shown.rows(rows.len());
    rows::print_slowest(&rows, sides, (all, short), out)
}
