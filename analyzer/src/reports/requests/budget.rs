//! `analyze requests --slowest N --where`: where the time of each of the slowest exchanges went, across the threads that were waited for, and what
//! they have that exchanges of median length have not.

use std::collections::BTreeMap;

use anyhow::Result;
use systape_format::model::Family;

use rustc_hash::{FxHashMap, FxHashSet};

use super::slow::{Slow, SlowText};
use super::{FOLLOWED, server, server_port};
use crate::reports::traced::cause::{Cause, asleep};
use crate::reports::traced::{Found, causes, path_before_birth, spans};
use crate::reports::{Context, scheduling};
use systape_abi::rest::is_poll;
use systape_answers::derive::critical::doing::{Doings, Spent};
use systape_answers::derive::critical::log::{Log, Logged};
use systape_answers::derive::critical::walk::{Handover, Part, Path};
use systape_answers::derive::exchanges::read::CALLS;
use systape_answers::derive::exchanges::{EndSide, Exchange};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::feed;
use systape_answers::derive::runs::keys::{self, Place, Words};
use systape_answers::derive::waits::is_storage;
use systape_answers::render::out::Out;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis, share};
use systape_events::call_files::NO_FILE;
use systape_events::families::in_session;
use systape_events::filter::Filters;
use systape_events::question::Question;
use systape_events::values::words::escaped;
use systape_format::sockets::{self, address, port};

systape_format::tables! {
    /// With `--where` one row for each cause of the time of each of the slowest exchanges, as `path` finds them; together they are its time.
    pub WHERE = "requests_where" {
        rank: Int "1: the slowest exchange"
        ts_ns: Time key "when the exchange began"
        exchange_ns ? AtLeast: Duration "how long it took"
        total_ns ? OfKnown: Duration "time of the cause"
        share ? OfKnown: Real "part of the exchange, 0 to 1"
        comm: Str key [Comm] "name of the thread whose time it is: who answers, or whom it waited for"
        cause: Word key "as of `path`; held: the kernel could not send what was written yet (Nagle's algorithm, a full window)"
        syscall: Word key "the call; `[user]`, `[kernel]`, `?` as in `states`; empty: it waited for a CPU"
        file: Str key [Path] "what the call is on, without the ports of clients; empty: on none, or on a CPU; null: not known"
        other_comm: Str key [Comm] "name of the thread that had the CPU meanwhile, or that woke it and is not followed; of `disk` the kernel thread that waited for it on behalf of the call; of `timeout` the one that it waited for when it waited again at once; of `unknown` the client that asked something else; empty: nobody, or not known"
    }
    /// Behind them one row for each cause of which the slowest have more than exchanges of median length, that with most first.
    pub MORE = "requests_more" {
        more_ns ? OfKnown: Duration "how much more of it the slowest have, on average"
        slow_ns ? OfKnown: Duration "the mean of the slowest"
        median_ns ? OfKnown: Duration "the mean of those of median length"
        slow ? OfKnown: Count "how many of the slowest have some of it"
        of_slow ? OfKnown: Count "how many these are"
        of_median ? OfKnown: Count "how many of median length are compared"
        comm: Str key [Comm] "as above"
        cause: Word key "as of `path`"
        syscall: Word key "likewise"
        file: Str key [Path] "likewise"
        other_comm: Str key [Comm] "likewise"
    }
}

/// Most causes of one exchange in text.
const LINES: usize = 6;
/// Fewer exchanges with times are not compared: whatever a few of them have is chance.
const ENOUGH: usize = 20;

/// A cause of threads of one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CauseKey {
    comm: Vec<u8>,
    cause: Cause,
    syscall: String,
    /// What the call is on; None: not known; empty: none.
    file: Option<Vec<u8>>,
    other: Vec<u8>,
}

/// Time by cause.
type TimeByCause = BTreeMap<CauseKey, u64>;

/// The name of a connection without the port of its client, which differs in every connection; an end of a UNIX socket without its numbers.
/// `serves`: whether that is the port of a server. Where that does not tell, a client's port is the higher one.
fn general(name: &[u8], serves: impl Fn(u16) -> bool) -> Vec<u8> {
    let Some((word, inside)) = sockets::split(name) else { return name.to_vec() };
    let (local, Some(remote)) = sockets::ends(inside) else { return name.to_vec() };
    if !word.starts_with(b"TCP") {
        let path = inside.iter().position(|byte| *byte == b',').map_or(&b""[..], |at| &inside[at..]);
        return [word, b":[*->*", path, b"]"].concat();
    }
    let is_server = |end: &[u8]| port(end).is_some_and(&serves);
    let (mine, other) = match (is_server(remote), is_server(local), port(local) > port(remote)) {
        (true, false, _) | (true, true, true) | (false, false, true) => {
            ([address(local), b":*"].concat(), remote.to_vec())
        }
        _ => (local.to_vec(), [address(remote), b":*"].concat()),
    };
    [word, b":[", &mine, b"->", &other, b"]"].concat()
}

/// How long a thread may be on a CPU between two waits that are for one thing, ns.
const BETWEEN: u64 = 1_000_000;

/// Of waits whose time was up who is waited for in the one that the thread began at once behind them, or again behind that: a lock that is
/// tried for a few ms at a time (Python's, and many condition variables) is one wait, at last for whoever gives it up. None: nobody, or it is
/// no such wait.
fn at_last(found: &[Found], path: &Path) -> Vec<Option<u32>> {
    let mut wakers: Vec<Option<u32>> = vec![None; found.len()];
    for at in (0..found.len()).rev().filter(|at| found[*at].cause == Cause::Timeout) {
        let thread = found[at].part.thread;
        let works = |after: &&Found| matches!(after.cause, Cause::Cpu | Cause::Runqueue) && after.part.thread == thread;
        let between = found[at + 1..].iter().take_while(works);
        let worked = between.clone().filter(|part| part.cause == Cause::Cpu).map(Found::ns).sum::<u64>();
        let next = at + 1 + between.count();
        if worked > BETWEEN || next == found.len() {
            continue;
        }
        let after = &found[next];
        let around = |handover: &Option<u32>| path.handovers.get((*handover)? as usize);
        let mut waits = std::iter::successors(around(&after.part.handover), |wait| around(&wait.within));
        let own = after.part.thread == thread;
        if own || waits.any(|wait| wait.thread == thread && wait.from == after.part.from) {
            let goes_on = if after.cause == Cause::Timeout { wakers[next] } else { None };
            wakers[at] = goes_on.or((!own).then_some(after.part.thread));
        }
    }
    wakers
}

/// The wait of a program's thread around a part of a kernel thread that waits for a device on its behalf, as the cause of that thread: the
/// call is the program's, and the disk is what is behind it. None: it is no such part, or the call is on no file of a disk.
fn on_behalf(
    found: &Found,
    (path, waits): (&Path, &[Spent]),
    threads: &[Logged],
    words: &Words<'_>,
) -> Option<CauseKey> {
    let task = |id: u32, at: u64| threads.get(id as usize).and_then(|thread| thread.task_at(at));
    let worker = task(found.part.thread, found.part.from).filter(|task| keys::is_kernel(task))?;
    let around = |handover: Option<u32>| Some((handover?, path.handovers.get(handover? as usize)?));
    let mut outwards = std::iter::successors(around(found.part.handover), |(_, wait)| around(wait.within));
    let (number, wait, of) = outwards.find_map(|(number, wait)| {
        let of = task(wait.thread, wait.from).filter(|task| !keys::is_kernel(task))?;
        Some((number, wait, of))
    })?;
    let most = waits.get(number as usize)?.most()?;
    let file = words.names.name(most.file).filter(|file| is_storage(file))?;
    (found.cause == Cause::Interrupt && !wait.made).then(|| CauseKey {
        comm: of.comm.clone(),
        cause: Cause::Disk,
        syscall: words.place(most.place),
        file: Some(file.to_vec()),
        other: worker.comm.clone(),
    })
}

/// Adds the time of what was found; `at_last`: who was waited for in the wait that followed.
fn add(
    times: &mut TimeByCause,
    (found, at_last): (&Found, Option<u32>),
    threads: &[Logged],
    words: &Words<'_>,
    askers: &Askers,
) {
    let comm = |id: u32| {
        let task = threads.get(id as usize).and_then(|thread| thread.task_at(found.part.from));
        task.map_or_else(Vec::new, |task| task.comm.clone())
    };
    let key = |place: Option<Place>, file: Option<u32>| CauseKey {
        comm: comm(found.part.thread),
        cause: found.cause,
        syscall: place.map_or_else(String::new, |place| words.place(place)),
        file: match file {
            None | Some(NO_FILE) => Some(Vec::new()),
            Some(file) => words.names.name(file).map(|name| general(name, |port| askers.serves(port))),
        },
        other: found.other().or(at_last).map_or_else(Vec::new, comm),
    };
    let mut put = |key: CauseKey, ns: u64| {
        if ns > 0 {
            *times.entry(key).or_default() += ns;
        }
    };
    match found.cause {
        Cause::Cpu => {
            let known: u64 = found.spent.calls.iter().map(|of| of.ns).sum();
            found.spent.calls.iter().for_each(|of| put(key(Some(of.place), None), of.ns));
            put(key(Some(Place::Unknown), None), found.ns().saturating_sub(known));
        }
        Cause::Runqueue => put(key(None, None), found.ns()),
        _ => {
            let most = found.spent.most();
            put(key(Some(most.map_or(Place::Unknown, |most| most.place)), most.map(|most| most.file)), found.ns());
        }
    }
}

/// Which process asks which: a server that waits for whoever asks next does not wait for that client on behalf of another one.
#[derive(Debug, Default)]
pub(super) struct Askers {
    /// Processes at the servers' ends, and those at the clients' ends, by port, or path of the UNIX socket.
    ends: FxHashMap<Vec<u8>, [FxHashSet<u32>; 2]>,
}

/// Most processes at one end that are told apart.
const PROCESSES: usize = 1 << 12;

impl Askers {
    /// Notes who took part in an exchange.
    pub(super) fn add(&mut self, exchange: &Exchange) {
        let Some(name) = server_port(exchange).map(|port| port.to_string().into_bytes()).or_else(|| server(exchange))
        else {
            return;
        };
        if self.ends.len() >= PROCESSES && !self.ends.contains_key(&name) {
            return;
        }
        let ends = &mut self.ends.entry(name).or_default()[usize::from(exchange.side == EndSide::Client)];
        for mover in [Some(&exchange.first), exchange.second.as_ref()].into_iter().flatten() {
            if ends.len() < PROCESSES {
                ends.insert(mover.task.upid);
            }
        }
    }

    /// Whether a server with exchanges has this port.
    fn serves(&self, port: u16) -> bool {
        self.ends.contains_key(port.to_string().as_bytes())
    }

    /// Whether the process `client` asks the process `server`.
    fn asks(&self, client: u32, server: u32) -> bool {
        self.ends.values().any(|[servers, clients]| servers.contains(&server) && clients.contains(&client))
    }
}

/// Calls that take what was asked of the kernel before: a question may be among it.
const TAKES_COMPLETIONS: [&str; 3] = ["io_uring_enter", "io_getevents", "io_pgetevents"];

/// Whether a thread may have waited in `spent` for a question: a lock, a child or a clock asks nothing.
fn may_be_asked(spent: Option<&Spent>, words: &Words<'_>) -> bool {
    match spent.and_then(Spent::most).map(|most| most.place) {
        Some(Place::Call(call)) => {
            let name = &*words.book.get(call).name;
            CALLS.contains(&name) || is_poll(name) || TAKES_COMPLETIONS.contains(&name)
        }
        _ => true,
    }
}

/// The waits of `path` that ended because a client asked, while the answer to `exchange` was not what was waited for: who waited and who
/// asked, by number of the wait. While a body comes, and while the client reads the answer, it is waited for.
fn idle(
    (path, spent): (&Path, &[Spent]),
    exchange: &Exchange,
    askers: &Askers,
    threads: &[Logged],
    words: &Words<'_>,
) -> FxHashMap<u32, Handover> {
    let upid = |id: u32| threads.get(id as usize).and_then(|thread| thread.tasks.last()).map_or(0, |task| task.upid);
    let of_client = |wait: &Handover| {
        let own = wait.within.is_none() && exchange.side == EndSide::Server;
        let (asked, answered) = (exchange.asked, exchange.answer.map_or(u64::MAX, |(from, _)| from));
        own && (wait.to <= asked || wait.from >= answered)
    };
    let waits = (0..)
        .zip(&path.handovers)
        .filter(|(_, wait)| !wait.made && !of_client(wait) && askers.asks(upid(wait.by), upid(wait.thread)))
        .filter(|(number, _)| may_be_asked(spent.get(*number as usize), words));
    waits.map(|(number, wait)| (number, *wait)).collect()
}

/// The outermost wait around `part` that is one of `idle`.
fn within(part: &Part, path: &Path, idle: &FxHashMap<u32, Handover>) -> Option<Handover> {
    let mut found = None;
    let mut next = part.handover;
    while let Some(at) = next {
        found = idle.get(&at).copied().or(found);
        next = path.handovers.get(at as usize).and_then(|wait| wait.within);
    }
    found
}

/// How long the kernel held the end of the answer back, ns; None: that is not known.
fn held(exchange: &Exchange) -> Option<u64> {
    exchange.phases()?.held
}

/// Where the time of `exchanges` went, of each with how long it took: two passes over the tape.
fn times(context: &mut Context<'_>, exchanges: &[(&Exchange, u64)], askers: &Askers) -> Result<Vec<TimeByCause>> {
    let tape = context.question.tape;
    let session = tape.session();
    let calls = in_session(session, Family::Syscall);
    // while the kernel holds the answer back, the thread does something else already
    let own = |(exchange, ns): &(&Exchange, u64)| ns.saturating_sub(held(exchange).unwrap_or(0));
    let spans_of = |one: &(&Exchange, u64)| (one.0.since(), one.0.since().saturating_add(own(one)));
    let from = exchanges.iter().map(|one| spans_of(one).0).min().unwrap_or(0);
    let to = exchanges.iter().map(|one| spans_of(one).1).max().unwrap_or(0).min(tape.complete_until());
    // whom a thread waited for is not known before: nobody is left out
    let filters = Filters::none();
    let question = Question::new(&filters, tape, &FOLLOWED)?;
    let needs = Needs { calls, files: false, ..Needs::default() };
    let fed = feed::feed(&question, needs, to, Log::new(from));
    let log = fed.tracker.sink;
    let mut paths = Vec::new();
    let (mut asked, mut number) = (Vec::new(), 0);
    for one in exchanges {
        let id = log.ids.known(&one.0.actor().task);
        let (way, parts) = id.map(|id| path_before_birth(&log.threads, id, spans_of(one))).unwrap_or_default();
        asked.extend(spans(&way, &parts).into_iter().map(|mut span| {
            span.number += number;
            span
        }));
        number += (parts.len() + way.handovers.len()) as u32;
        paths.push((one.0, way, parts));
    }
    let doings = Doings::new(asked, log.ids, keys::all_calls(session));
    let told = feed::feed(&question, Needs { files: calls, ..needs }, to, doings);
    let mut spent = told.tracker.sink.spent.into_iter();
    let words = Words { session, book: &question.book, names: &told.names };
    let mut all = Vec::new();
    for (exchange, way, parts) in paths {
        let mut of: Vec<Spent> = spent.by_ref().take(parts.len()).collect();
        of.resize_with(parts.len(), Spent::default);
        let mut waits: Vec<Spent> = spent.by_ref().take(way.handovers.len()).collect();
        waits.resize_with(way.handovers.len(), Spent::default);
        let idle = idle((&way, &waits), exchange, askers, &log.threads, &words);
        let idles: Vec<_> = parts.iter().map(|(part, _)| within(part, &way, &idle)).collect();
        let mut times = TimeByCause::new();
        let found: Vec<Found> = causes(parts, of, tape, &words).collect();
        let wakers = at_last(&found, &way);
        for ((found, at_last), idle) in found.into_iter().zip(wakers).zip(idles) {
            let key = match idle {
                None => on_behalf(&found, (&way, &waits), &log.threads, &words),
                Some(wait) => {
                    let comm = |id: u32| {
                        log.threads[id as usize].task_at(wait.from).map_or_else(Vec::new, |task| task.comm.clone())
                    };
                    let (comm, other) = (comm(wait.thread), comm(wait.by));
                    Some(CauseKey { comm, cause: Cause::Unknown, syscall: String::new(), file: None, other })
                }
            };
            match key {
                Some(key) => *times.entry(key).or_default() += found.ns(),
                None => add(&mut times, (&found, at_last), &log.threads, &words, askers),
            }
        }
        if let Some(held) = held(exchange).filter(|held| *held > 0) {
            let key = CauseKey {
                comm: exchange.actor().task.comm.clone(),
                cause: Cause::Held,
                syscall: String::new(),
                file: Some([b"TCP:[", &*exchange.end.local, b"->", address(&exchange.end.remote), b":*]"].concat()),
                other: Vec::new(),
            };
            *times.entry(key).or_default() += held;
        }
        all.push(times);
    }
    // of who is not asked about, too
    if question.loss.touches(&FOLLOWED, None, (from, to)) {
        context.question.loss.add_earlier(tape, &FOLLOWED, to);
    }
    let unsure = fed.unsure_until.max(told.unsure_until);
    scheduling::touched(fed.coverage, unsure, context);
    told.coverage.tell(&mut context.question.loss);
    Ok(all)
}

/// A cause of which the slowest have more.
struct More {
    key: CauseKey,
    slow: u64,
    median: u64,
    /// How many of the slowest have some.
    have: usize,
}

impl More {
    fn ns(&self) -> u64 {
        self.slow - self.median
    }
}

/// Causes of which `slow` have more on average than `median`, that with most first; less than a hundredth of the difference is none.
fn more(slow: &[TimeByCause], median: &[TimeByCause]) -> Vec<More> {
    let mean = |all: &[TimeByCause], key: &CauseKey| {
        let sum = all.iter().filter_map(|times| times.get(key)).fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        sum / all.len().max(1) as u64
    };
    let keys: std::collections::BTreeSet<&CauseKey> = slow.iter().flat_map(BTreeMap::keys).collect();
    let row = |key: &CauseKey| {
        let have = slow.iter().filter(|times| times.contains_key(key)).count();
        More { key: key.clone(), slow: mean(slow, key), median: mean(median, key), have }
    };
    let mut rows: Vec<More> = keys.into_iter().map(row).filter(|row| row.slow > row.median).collect();
    let all = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.ns()));
    rows.retain(|row| row.ns() >= all / 100);
    rows.sort_by(|one, other| other.ns().cmp(&one.ns()).then_with(|| one.key.cmp(&other.key)));
    rows
}

/// What it was, in words.
fn what(key: &CauseKey) -> String {
    let file = key.file.as_deref().map(escaped).unwrap_or_else(|| "?".to_owned());
    let call = match (&*key.syscall, file.is_empty()) {
        (call, true) => call.to_owned(),
        (call, false) => format!("{call} of {file}"),
    };
    match key.cause {
        Cause::Cpu if key.syscall == "[user]" => "on a CPU, in its own code".to_owned(),
        Cause::Cpu if key.syscall == "[kernel]" => "on a CPU, in the kernel".to_owned(),
        Cause::Cpu => format!("on a CPU, in {call}"),
        Cause::Runqueue if key.other.is_empty() => "waits for a CPU".to_owned(),
        Cause::Runqueue => format!("waits for a CPU, which {} had", escaped(&key.other)),
        Cause::Timeout if !key.other.is_empty() => {
            format!("waits until its time-out, again and again, at last for {}: {call}", escaped(&key.other))
        }
        Cause::Disk if !key.other.is_empty() => format!("waits for a disk, by way of {}: {call}", escaped(&key.other)),
        Cause::Held => asleep((key.cause, None), &file, ""),
        Cause::Unknown if !key.other.is_empty() => {
            format!("not known: it waited until {} asked something else", escaped(&key.other))
        }
        cause => asleep((cause, None), &call, &if key.other.is_empty() { "?".to_owned() } else { escaped(&key.other) }),
    }
}

fn fill(row: &mut Row<'_>, key: &CauseKey) {
    row.set("comm", key.comm.clone()).set("cause", key.cause.word()).set("syscall", key.syscall.clone());
    row.set("file", key.file.clone()).set("other_comm", key.other.clone());
}

/// Where the time of the exchanges went.
pub(super) struct Budgets {
    slow: Vec<TimeByCause>,
    more: Vec<More>,
    /// How many of median length are compared.
    medians: usize,
    /// Why nothing is compared; empty: it is.
    silent: String,
}

impl Budgets {
    /// Looks into the slowest and `median`: as many of median length, of `timed` with times.
    pub(super) fn of(
        context: &mut Context<'_>,
        (slow, median): (&[Slow], &[Slow]),
        timed: u64,
        askers: &Askers,
    ) -> Result<Self> {
        scheduling::require(context.question.tape)?;
        let all: Vec<(&Exchange, u64)> = slow.iter().chain(median).map(|slow| (&slow.exchange, slow.ns)).collect();
        let mut times = times(context, &all, askers)?;
        let medians = times.split_off(slow.len());
        let silent = match timed {
            // a cause of which something is missing would not be among them
            _ if !context.question.loss.complete() => {
                "events are missing: what the slowest have that others have not is not compared".to_owned()
            }
            _ if (timed as usize) < ENOUGH => {
                format!("too few exchanges have times ({timed}) to say what the slowest have that others have not")
            }
            _ if medians.is_empty() => "none of median length is shorter than these: nothing to compare".to_owned(),
            _ => String::new(),
        };
        let more = if silent.is_empty() { more(&times, &medians) } else { Vec::new() };
        Ok(Self { slow: times, more, medians: medians.len(), silent })
    }

    /// Hands over the rows.
    pub(super) fn rows(&self, context: &Context<'_>, slow: &[Slow], out: &mut Out) -> Result<()> {
        let open = context.question.tape.session().window_open;
        let rows = slow.iter().zip(&self.slow).enumerate().flat_map(|(at, (slow, times))| {
            sorted(times).into_iter().map(move |(key, ns)| {
                let mut row = Row::new(&WHERE);
                row.set("rank", at + 1).set("ts_ns", slow.exchange.since().wrapping_sub(open) as i64);
                row.bound("exchange_ns", slow.ns, slow.is_short());
                row.set("total_ns", ns).set("share", ns as f64 / slow.ns.max(1) as f64);
                fill(&mut row, key);
                row
            })
        });
        out.rows(&WHERE, context.judged(), rows)?;
        let rows = self.more.iter().map(|more| {
            let mut row = Row::new(&MORE);
            row.set("more_ns", more.ns()).set("slow_ns", more.slow).set("median_ns", more.median);
            row.set("slow", more.have).set("of_slow", self.slow.len()).set("of_median", self.medians);
            fill(&mut row, &more.key);
            row
        });
        out.rows_beside(&MORE, context.judged(), rows)?;
        if !self.silent.is_empty() {
            out.notes([&self.silent])?;
        }
        Ok(())
    }

    /// Prints them as text.
    pub(super) fn print(&self, slow: &[Slow], text: &SlowText<'_>, out: &mut Out) -> Result<()> {
        for (slow, times) in slow.iter().zip(&self.slow) {
            out.text([String::new(), text.head(slow)])?;
            let mut table = Table::default().number("ms").number("share").word("who").prose("what");
            let sorted = sorted(times);
            for (key, ns) in sorted.iter().take(LINES) {
                table.row(vec![millis(*ns, ""), share(*ns, slow.ns), escaped(&key.comm), what(key)]);
            }
            table.print(out)?;
            let rest = sorted.iter().skip(LINES).fold(0_u64, |sum, (_, ns)| sum.saturating_add(*ns));
            let left = slow.ns.saturating_sub(sorted.iter().fold(0, |sum, (_, ns)| sum + ns));
            if rest > 0 {
                out.text([format!("and {} ms in {} more", millis(rest, ""), sorted.len() - LINES)])?;
            }
            if left > 0 {
                out.text([format!("{} ms are not known", millis(left, ""))])?;
            }
        }
        if !self.silent.is_empty() {
            out.text([String::new(), self.silent.clone()])?;
            return Ok(());
        }
        let (slowest, medians) = (self.slow.len(), self.medians);
        let head =
            format!("what the slowest ({slowest}) have that those of median length ({medians}) have not, on average:");
        out.text([String::new(), head])?;
        let mut table = Table::default().number("more ms").number("slow ms").number("median ms").number("have it");
        table = table.word("who").prose("what").leaving(&["median ms", "slow ms"]);
        for more in self.more.iter().take(10) {
            table.row(vec![
                millis(more.ns(), ""),
                millis(more.slow, ""),
                millis(more.median, ""),
                format!("{}/{slowest}", more.have),
                escaped(&more.key.comm),
                what(&more.key),
            ]);
        }
        table.print(out)?;
        Ok(())
    }
}

/// Causes, that with most time first.
fn sorted(times: &TimeByCause) -> Vec<(&CauseKey, u64)> {
    let mut sorted: Vec<(&CauseKey, u64)> = times.iter().map(|(key, ns)| (key, *ns)).collect();
    sorted.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_answers::derive::critical::walk::Kind;
    use systape_answers::derive::runs::State;

    #[test]
    fn connections_to_one_server_are_one_cause() {
        let text = |name: &str| String::from_utf8(general(name.as_bytes(), |port| port == 50_000)).unwrap();
        assert_eq!(text("TCP:[10.0.0.7:40002->10.0.0.1:80]"), "TCP:[10.0.0.7:*->10.0.0.1:80]");
        assert_eq!(text("TCP:[10.0.0.1:80->10.0.0.7:40002]"), "TCP:[10.0.0.1:80->10.0.0.7:*]");
        // a server's port may be the higher one
        assert_eq!(text("TCP:[10.0.0.7:40002->10.0.0.1:50000]"), "TCP:[10.0.0.7:*->10.0.0.1:50000]");
        assert_eq!(text("TCP:[10.0.0.1:50000->10.0.0.7:40002]"), "TCP:[10.0.0.1:50000->10.0.0.7:*]");
        assert_eq!(text("UNIX-STREAM:[17->18,\"/run/x\"]"), "UNIX-STREAM:[*->*,\"/run/x\"]");
        assert_eq!((text("/srv/a"), text("TCP:[10.0.0.1:80]")), ("/srv/a".into(), "TCP:[10.0.0.1:80]".into()));
    }

    /// What was found of a thread for 10 ns from `from` on.
    fn found(thread: u32, from: u64, cause: Cause, handover: Option<u32>) -> Found {
        let kind = if cause == Cause::Cpu { Kind::Runs } else { Kind::Interrupt };
        let part = Part { thread, from, to: from + 10, kind, state: State::Running, task: 0, handover };
        Found { part, behind: None, cause, spent: Spent::default(), io: None, limit: None }
    }

    #[test]
    fn waits_for_a_time_that_follow_each_other_are_for_whom_the_last_is_for() {
        let wait = |thread, from, by| Handover {
            thread,
            from,
            to: from + 10,
            by,
            softirq: false,
            made: false,
            series: false,
            within: None,
            depth: 1,
        };
        let path = Path { parts: Vec::new(), handovers: vec![wait(7, 40, 9)] };
        let series = [
            found(7, 0, Cause::Timeout, None),
            found(7, 10, Cause::Cpu, None),
            found(7, 20, Cause::Timeout, None),
            found(7, 30, Cause::Cpu, None),
            found(9, 40, Cause::Cpu, Some(0)),
            found(7, 50, Cause::Timeout, None),
        ];
        assert_eq!(at_last(&series, &path), [Some(9), None, Some(9), None, None, None]);
        // that one waits so itself
        let chain = [
            found(7, 0, Cause::Timeout, None),
            found(8, 10, Cause::Timeout, Some(0)),
            found(9, 20, Cause::Cpu, Some(1)),
        ];
        let within = Handover { within: Some(0), ..wait(8, 20, 9) };
        let deeper = Path { parts: Vec::new(), handovers: vec![Handover { to: 30, ..wait(7, 10, 8) }, within] };
        assert_eq!(at_last(&chain, &deeper), [Some(9), Some(9), None]);
        // who works in between waits for something else then
        let mut works = series;
        works[3].part.to += BETWEEN;
        assert_eq!(at_last(&works, &path), [None; 6]);
        // what comes next is another thread's wait
        let other = [found(7, 0, Cause::Timeout, None), found(9, 40, Cause::Cpu, Some(0))];
        assert_eq!(at_last(&other, &Path { parts: Vec::new(), handovers: vec![wait(8, 40, 9)] }), [None; 2]);
    }

    fn key(comm: &str, syscall: &str) -> CauseKey {
        let (comm, syscall) = (comm.as_bytes().to_vec(), syscall.to_owned());
        CauseKey { comm, cause: Cause::Disk, syscall, file: None, other: Vec::new() }
    }

    #[test]
    fn what_both_have_is_not_what_the_slowest_have_more_of() {
        let (common, rare, own) = (key("app", "read"), key("db", "fsync"), key("app", "[user]"));
        let slow = [
            TimeByCause::from([(common.clone(), 100), (rare.clone(), 900)]),
            TimeByCause::from([(common.clone(), 100), (rare.clone(), 700), (own.clone(), 100)]),
        ];
        let median = [TimeByCause::from([(common.clone(), 120), (own.clone(), 30)])];
        let rows = more(&slow, &median);
        let told: Vec<_> = rows.iter().map(|row| (&row.key, row.ns(), row.slow, row.median, row.have)).collect();
        assert_eq!(told, [(&rare, 800, 800, 0, 2), (&own, 20, 50, 30, 1)]);
    }
}
