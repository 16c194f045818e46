//! One of the tapes of `analyze across`: its exchanges with other machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rustc_hash::FxHashMap;
use systape_format::model::Family;
use systape_format::reader::Tape;
use systape_format::sockets::address;

use crate::asked::config::Config;
use crate::reports::Context;
use crate::reports::losses::LOSS_LINES;
use crate::reports::requests;
use systape_answers::derive::across::ExchangeSeen;
use systape_answers::derive::exchanges::ends::{EndAddresses, StreamEnd};
use systape_answers::derive::exchanges::{EndSide, read};
use systape_answers::values::open::open;
use systape_events::families;
use systape_events::values::words::escaped;

/// Most exchanges that are kept of all connections of a tape, 80 bytes each.
const MOST: usize = 4 << 20;

/// Addresses at the end that asks, and at the other end.
pub(super) type ClientKey = (EndAddresses, EndAddresses);

/// Ends whose side another tape says.
pub(super) type KnownSides = FxHashMap<EndAddresses, EndSide>;

/// A tape.
pub(super) struct TapeSide {
    /// Path, as named.
    pub path: PathBuf,
    /// Name of the machine.
    host: Vec<u8>,
    /// What it is called in text.
    name: String,
    /// Start of the tape, CLOCK_MONOTONIC ns.
    pub start: u64,
    /// The time of day at 0 of that clock, ns since 1970; None: not on the tape.
    pub day: Option<i64>,
    /// Exchanges that it asked, by the addresses of both ends.
    pub clients: FxHashMap<ClientKey, Vec<ExchangeSeen>>,
    /// Exchanges that it was asked, by the addresses at its end.
    pub servers: FxHashMap<EndAddresses, Vec<ExchangeSeen>>,
    /// Number of connections with bytes both ways of which it is not known which end asks.
    unplaced: u64,
    /// What other tapes say of these.
    pub known: KnownSides,
    /// What is missing.
    pub notes: Vec<String>,
    /// Numbers are lower bounds.
    pub short: bool,
    /// A loss could change the answer.
    pub lost: bool,
}

impl TapeSide {
    /// Reads the tape at `path`; `known`: what others say of its ends.
    fn read(config: &Config, path: &Path, known: KnownSides) -> Result<Self> {
        Self::of(&open(path)?, config, path, known).with_context(|| path.display().to_string())
    }

    fn of(tape: &Tape, config: &Config, path: &Path, known: KnownSides) -> Result<Self> {
        let config = config.of(path);
        families::require(tape, Family::Syscall, "syscalls")?;
        let mut context = Context::about(&config, tape, &requests::MADE_OF)?;
        let (mut clients, mut servers) = (FxHashMap::default(), FxHashMap::default());
        let mut kept = 0_usize;
        let (coverage, unread) = read::read_knowing(&context.question, known.clone(), |exchange| {
            if !goes_out(&exchange.end) || kept >= MOST {
                return;
            }
            kept += 1;
            let seen = ExchangeSeen::of(&exchange);
            let own = exchange.end.key().addresses;
            let of_end: &mut EndExchanges = match (exchange.side, exchange.end.other()) {
                (EndSide::Client, Some(other)) => clients.entry((own, other)).or_default(),
                (EndSide::Server, _) => servers.entry(own).or_default(),
                _ => return,
            };
            of_end.add(seen, exchange.end.namespace);
        });
        if kept >= MOST {
            bail!("it has more than {MOST} exchanges with other machines: 'analyze cut' makes a shorter tape");
        }
        coverage.tell(&mut context.question.loss);
        let whose = escaped(path.as_os_str().as_encoded_bytes());
        let lost = context.question.loss.lines(tape.session(), LOSS_LINES);
        let notes: Vec<String> = lost.into_iter().chain(requests::notes(tape, &unread)).collect();
        let lost = !context.question.loss.complete();
        let session = tape.session();
        let day = (session.clock.monotonic != 0)
            .then(|| (session.clock.realtime as i64).saturating_sub(session.clock.monotonic as i64));
        Ok(Self {
            path: path.to_owned(),
            host: session.hostname.clone(),
            name: String::new(),
            start: session.window_open,
            day,
            clients: clients.into_iter().map(|(key, of_end)| (key, of_end.sorted())).collect(),
            servers: servers.into_iter().map(|(key, of_end)| (key, of_end.sorted())).collect(),
            unplaced: unread.left_out.sides,
            known,
            short: lost || !notes.is_empty(),
            notes: notes.into_iter().map(|note| format!("{whose}: {note}")).collect(),
            lost,
        })
    }

    /// Path of the tape.
    pub(super) fn path_bytes(&self) -> Vec<u8> {
        self.path.as_os_str().as_encoded_bytes().to_vec()
    }

    /// Name of the machine; None: not known.
    pub(super) fn host(&self) -> Option<Vec<u8>> {
        Some(self.host.clone()).filter(|host| !host.is_empty())
    }

    /// What it is called in text.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Reads all of them. Of a connection from before its recording one end does not know whether it asks; the other end may.
pub(super) fn read(config: &Config, tapes: &[PathBuf]) -> Result<Vec<TapeSide>> {
    let first = |path: &PathBuf| TapeSide::read(config, path, KnownSides::default());
    let mut sides = tapes.iter().map(first).collect::<Result<Vec<_>>>()?;
    for at in 0..sides.len() {
        if sides[at].unplaced == 0 {
            continue;
        }
        let mut known = KnownSides::default();
        for (_, other) in sides.iter().enumerate().filter(|(number, _)| *number != at) {
            known.extend(other.servers.keys().map(|end| (end.turned(), EndSide::Client)));
            known.extend(other.clients.keys().map(|(end, _)| (end.turned(), EndSide::Server)));
        }
        if !known.is_empty() {
            sides[at] = TapeSide::read(config, &tapes[at], known)?;
        }
    }
    call(&mut sides);
    Ok(sides)
}

/// Calls each by its machine, or by its file where that is not known or several are of one machine.
fn call(sides: &mut [TapeSide]) {
    let is_one = |host: &[u8], sides: &[TapeSide]| sides.iter().filter(|side| side.host == host).count() == 1;
    for at in 0..sides.len() {
        let of_file = sides[at].host.is_empty() || !is_one(&sides[at].host, sides);
        sides[at].name = if of_file { escaped(&sides[at].path_bytes()) } else { escaped(&sides[at].host) };
    }
}

/// The exchanges of one end.
#[derive(Default)]
struct EndExchanges {
    seen: Vec<ExchangeSeen>,
    /// Network namespace of the first.
    namespace: Option<Option<u32>>,
}

impl EndExchanges {
    fn add(&mut self, mut seen: ExchangeSeen, namespace: Option<u32>) {
        // two connections have the same addresses
        seen.unsure |= *self.namespace.get_or_insert(namespace) != namespace;
        self.seen.push(seen);
    }

    fn sorted(mut self) -> Vec<ExchangeSeen> {
        self.seen.sort_by_key(|seen| seen.begin);
        self.seen
    }
}

/// Whether an end may be one of a connection to another machine.
fn goes_out(end: &StreamEnd) -> bool {
    let own = |at: &Arc<[u8]>| address(at).starts_with(b"127.") || address(at) == b"[::1]";
    !end.unix && !own(&end.local) && !own(&end.remote)
}
