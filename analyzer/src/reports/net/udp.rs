//! `analyze net --udp`: what each process sent to and received from each peer by UDP, in order of the first calls.

use std::cmp::Reverse;
use std::sync::Arc;

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::number;
use systape_format::model::{CallState, Family};
use systape_format::reader::{Segment, Tape};
use systape_format::redact::PLACEHOLDER;

use crate::asked::config::Config;
use crate::reports::{Context, losses};
use systape_answers::derive::net::udp::{self, Bound, Found, LOCAL, PEER, PROCESS, PROTOCOL, Talk, Way};
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{Judgement, Row, ShownTimes, some, user};
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::{Table, millis};
use systape_answers::values::say::Verdict;
use systape_events::calls;
use systape_events::families;
use systape_events::group::open::Open;
use systape_events::group::value::{Key, Value};
use systape_events::group::{Add as _, Groups};
use systape_events::load::Base;
use systape_events::scan::{Coverage, Scan};
use systape_events::values::order::InOrder as _;
use systape_events::values::spill::Kept;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// With `--udp` one row for each peer of each own end of a UDP socket in each process, in order of the first calls. Only calls that send or receive count.
    pub UDP = "net_udp" {
        first_ns ? AtMost: Time "when the first call began that sent, received or failed; null: not known"
        time: Word "the same as RFC 3339, UTC; null also: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        last_ns ? AtLeast: Time "when the last one returned; null: not known"
        dur_ns ? AtLeast: Duration "between them; null: not known"
        protocol: Word key "`UDP`, `UDPv6`, `UDPLITE`, `UDPLITEv6`"
        laddr: Word key [Address] "address of this end; null: not known"
        lport: Int key [Address] "its port; null: not known"
        raddr: Word key [Address] "address of the other end; null: not known"
        rport: Int key [Address] "its port; null: not known"
        pid: Int key "process"
        upid: Int key "the process, unique in the tape"
        comm: Str [Comm] "name of the thread whose call was the first"
        uid: Int "real user of it; null: not known"
        sent ? AtLeast: Count "messages that it sent, as it gave them to the kernel: one a call, of sendmmsg as many as that returned"
        sent_bytes ? AtLeast: Wide "their bytes"
        received ? AtLeast: Count "messages that it received; a look (MSG_PEEK) or a report of an error (MSG_ERRQUEUE) is none"
        received_bytes ? AtLeast: Wide "their bytes"
        errors ? AtLeast: Count "calls that failed; one that found nothing to do (EAGAIN) is none"
        refused ? AtLeast: Count "of these, those with ECONNREFUSED: nobody listens there"
    }
}

/// Calls that send or receive, on any architecture that a tape may be of.
const CALLS: [&str; 13] = [
    "read", "write", "readv", "writev", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "sendfile",
    "splice", "preadv2",
];

/// What one thread found.
#[derive(Default)]
struct Sums {
    talks: Groups<Talk>,
    /// When sockets got addresses.
    bound: Vec<Bound>,
    /// Calls on what may be a UDP socket, by process.
    doubts: FxHashMap<Value, u64>,
    /// There is no memory for more.
    full: Option<Kept>,
}

impl Sums {
    fn merge(&mut self, mut other: Self) {
        self.talks.merge(&mut other.talks);
        self.bound.append(&mut other.bound);
        self.full = self.full.or(other.full);
        for (process, calls) in other.doubts {
            let sum = self.doubts.entry(process).or_default();
            *sum = sum.saturating_add(calls);
        }
    }
}

/// Prints the answer for `config`.
pub(super) fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    // a socket may have got its address before the time asked for
    let until = context.question.scope.to;
    context.question.loss.add_earlier(tape, &[Family::Syscall], until);
    let (parts, coverage) = Scan::all(tape).fold(Sums::default, |sums, segment, coverage| {
        read(&context, sums, segment, coverage);
    });
    coverage.tell(&mut context.question.loss);
    let mut sums = Sums::default();
    for part in parts {
        sums.merge(part);
        sums.full.map_or(Ok(()), Kept::check)?;
    }
    Shown::new(&context, sums).print(out)?;
    if !out.is_text() {
        losses::tell_filtered(&context, out);
    }
    losses::end_of_sums(&context, out)
}

/// Adds the calls and names of a segment.
fn read(context: &Context<'_>, sums: &mut Sums, segment: &Segment<'_>, coverage: &mut Coverage) {
    // each of these is made again when the names are known
    let mut kept = Kept::new(4);
    if sums.full.is_none() && !kept.add(sums.talks.bytes()) {
        sums.full = Some(kept);
    }
    if sums.full.is_some() {
        return;
    }
    let (scope, book) = (&context.question.scope, &context.question.book);
    let dict = segment.dict();
    if let Ok(dict) = &dict {
        match udp::bound(segment, dict) {
            Ok(bound) => sums.bound.extend(bound.into_iter().filter(|bound| bound.ts < scope.to)),
            Err(error) => coverage.finding(segment, "names of sockets", &error),
        }
    }
    let mut holes = Vec::new();
    let wanted = |call| {
        let io = book.get(call).io;
        io.reads().is_some() || io.writes().is_some()
    };
    let base = Base::of(*segment, dict, &mut holes, |dict, core| {
        let calls: Vec<bool> = dict.calls.iter().map(|call| wanted(*call)).collect();
        core.call.iter().any(|call| calls[*call as usize])
    });
    if let Some(base) = base {
        let segment = base.load(book, &mut holes);
        let passing: Vec<bool> = segment.dict.tasks.iter().map(|task| scope.task(task)).collect();
        for row in 0..segment.rows() {
            let kept = segment.core.unselected.get(row).copied().unwrap_or(false);
            let passes = passing[segment.core.task[row] as usize] && scope.at(segment.time.start[row]);
            if kept || !passes || segment.core.state[row] == CallState::CloneChild {
                continue;
            }
            match udp::found(&segment, row) {
                Some(Found::Talk(key, talk)) => sums.talks.of(&key).add(&talk),
                Some(Found::Doubt(process)) => *sums.doubts.entry(process).or_default() += 1,
                None => {}
            }
        }
    }
    coverage.holes(holes);
}

/// What names say of sockets.
#[derive(Default)]
struct Names {
    /// The own end that a socket without one got.
    first: FxHashMap<u64, Bound>,
    /// Sockets that had an end when the recording began.
    before: FxHashSet<u64>,
    /// The sockets of an own end: protocol and text.
    sockets: FxHashMap<(Vec<u8>, Vec<u8>), FxHashSet<u64>>,
}

impl Names {
    fn new(mut bound: Vec<Bound>) -> Self {
        let mut names = Self::default();
        bound.order_by_key(|bound| Reverse((bound.ts, bound.inode)));
        for bound in bound {
            if bound.before {
                names.before.insert(bound.inode);
            }
            names.sockets.entry((bound.protocol.clone(), bound.local.clone())).or_default().insert(bound.inode);
            // the latest first: the earliest stays
            names.first.insert(bound.inode, bound);
        }
        names
    }

    /// The key with the own end that the socket got by the call or later.
    fn resolve(&self, mut key: Key) -> Key {
        if let Value::Number(inode) = key[LOCAL] {
            let bound = self.first.get(&inode).filter(|bound| !bound.before);
            key[LOCAL] = bound.map_or(Value::Unknown, |bound| Value::Text(Arc::from(&*bound.local)));
        }
        key
    }

    /// Whether the socket of a key may be older than the recording. One without an address had not sent or received.
    fn may_be_older(&self, key: &Key) -> bool {
        let (Value::Text(protocol), Value::Text(local)) = (&key[PROTOCOL], &key[LOCAL]) else { return false };
        let sockets = self.sockets.get(&(protocol.to_vec(), local.to_vec()));
        sockets.is_none_or(|sockets| sockets.iter().any(|inode| self.before.contains(inode)))
    }
}

/// A row.
struct Line {
    key: Key,
    talk: Talk,
    /// What it sent, received and failed in may be more: before the recording, on another descriptor, or in the row of
    /// those whose peer is not known.
    short: [bool; 3],
}

impl Line {
    fn dur(&self) -> Option<u64> {
        Some(self.talk.last?.saturating_sub(self.talk.first?))
    }

    /// Whether there may have been earlier and later calls.
    fn any(&self) -> bool {
        self.short.contains(&true)
    }

    /// Whether messages and bytes of the way with this place in `short` may be more.
    fn is_short(&self, at: usize, way: &Way) -> (bool, bool) {
        (self.short[at] || way.messages_short, self.short[at] || way.bytes_short)
    }
}

/// The printed form.
struct Shown<'a> {
    context: &'a Context<'a>,
    lines: Vec<Line>,
    /// Calls on what may be a UDP socket.
    doubts: u64,
    /// `record` stored only some of the calls.
    partial: Option<String>,
}

impl<'a> Shown<'a> {
    fn new(context: &'a Context<'a>, sums: Sums) -> Self {
        let names = Names::new(sums.bound);
        let mut talks: Groups<Talk> = Groups::default();
        sums.talks.into_sums().for_each(|(key, talk)| talks.of(&names.resolve(key)).add(&talk));
        let partial = partial(context.question.tape);
        let mut open: [Open; 3] = Default::default();
        for (key, talk) in talks.iter() {
            let some = |way: &Way| way.messages > 0 || way.messages_short;
            let more = [some(&talk.sent), some(&talk.received), talk.errors > 0];
            open.iter_mut()
                .zip(more)
                .filter(|(_, more)| *more)
                .for_each(|(open, _)| open.add(&key.key(), false, false));
        }
        let judges = open.map(|open| open.judge(None));
        let line = |(key, talk): (Key, Talk)| {
            let all = names.may_be_older(&key) || sums.doubts.contains_key(&key[PROCESS]) || partial.is_some();
            let short = judges.each_ref().map(|judge| all || judge.short(&key));
            Line { key, talk, short }
        };
        let mut lines: Vec<Line> = talks.into_sums().map(line).filter(|line| passes(context, line)).collect();
        lines.order_by(|a, b| (a.talk.first, &a.key).cmp(&(b.talk.first, &b.key)));
        lines.truncate(context.config.most());
        let doubts = sums.doubts.values().fold(0, |sum: u64, calls| sum.saturating_add(*calls));
        Self { context, lines, doubts, partial }
    }

    fn print(&self, out: &mut Out) -> Result<()> {
        let lost = !self.context.question.loss.complete();
        let notes = self.partial.clone().into_iter().chain((self.doubts > 0).then(|| doubt_text(self.doubts)));
        losses::head(self.context, losses::AT_LEAST, out)?;
        out.notes(notes)?;
        let (times, stamps) = (self.context.times(), self.context.stamps());
        let headings = ["ms", "sent", "bytes", "received", "bytes", "errors"];
        let table = Table::default().number(stamps.heading(TIME).trim());
        let table = headings.into_iter().fold(table, Table::number);
        Ok(out.ranking(
            TopRows {
                table: &UDP,
                judged: Judgement::Touched(lost),
                headings: ["process", "proto", "local address", "remote address"]
                    .into_iter()
                    .fold(table, Table::word)
                    .leaving_at(&[8, 9, 1, 2, 4, 0, 6]),
                all: self.lines.len(),
                limit: usize::MAX,
            },
            self.lines.iter(),
            |line| row(line, &times),
            |line| cells(line, lost, &stamps),
        )?)
    }
}

/// Column of times.
const TIME: Column = Column { name: "time", width: 11, places: 6, right: false };

/// Whether a row passes `--duration` and `--failure`.
fn passes(context: &Context<'_>, line: &Line) -> bool {
    let filters = context.question.scope.filters();
    let long = |ns: u64| line.dur().is_some_and(|dur| dur > ns);
    (!filters.failure || line.talk.errors > 0) && filters.longer_than.is_none_or(long)
}

/// What is said if `record` left out calls that send or receive.
fn partial(tape: &Tape) -> Option<String> {
    let session = tape.session();
    if losses::stores_some(tape) {
        return Some("AT LEAST: record stored only some calls".to_owned());
    }
    let Some(selection) = calls::recorded(session) else {
        return Some("AT LEAST: which calls were recorded is not known".to_owned());
    };
    let abi = calls::native_abi(&session.machine);
    let left_out = |name: &&str| number(abi, name).is_some_and(|number| !selection.contains(abi, number));
    let left_out: Vec<&str> = CALLS.into_iter().filter(|name| left_out(name)).collect();
    (!left_out.is_empty()).then(|| format!("AT LEAST: record was asked to leave out {}", left_out.join(", ")))
}

fn doubt_text(calls: u64) -> String {
    let are = if calls == 1 { "call is" } else { "calls are" };
    format!("AT LEAST: {calls} more {are} in no row: whether on UDP sockets is not known")
}

/// Address and port of an end; both unknown of one that is not known.
fn end(value: &Value) -> (Option<String>, Option<u64>) {
    let Value::Text(text) = value else { return (None, None) };
    let text = String::from_utf8_lossy(text);
    if text.as_bytes() == PLACEHOLDER {
        return (Some(text.into_owned()), None);
    }
    let Some((address, port)) = text.rsplit_once(':') else { return (Some(text.into_owned()), None) };
    let address = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    (Some(address.to_owned()), port.parse().ok())
}

fn row<'a>(line: &'a Line, times: &ShownTimes<'_>) -> Row<'a> {
    let (talk, short) = (&line.talk, line.any());
    let since = |ts: u64| ts.wrapping_sub(times.session.window_open) as i64;
    let mut row = Row::new(&UDP);
    row.bound("first_ns", talk.first.map(since), short || talk.first_before).time("time", talk.first, times);
    row.bound("last_ns", talk.last.map(since), short);
    row.bound("dur_ns", line.dur(), short || talk.first_before);
    row.set("protocol", word(&line.key[PROTOCOL]));
    let ((laddr, lport), (raddr, rport)) = (end(&line.key[LOCAL]), end(&line.key[PEER]));
    row.set("laddr", laddr).set("lport", lport).set("raddr", raddr).set("rport", rport);
    let task = talk.task.as_ref();
    row.set("pid", task.map(|task| task.pid)).set("upid", task.and_then(|task| some(task.upid)));
    row.set("comm", task.map(|task| &task.comm)).set("uid", task.and_then(|task| user(task.uid)));
    let (sent, sent_bytes) = line.is_short(0, &talk.sent);
    row.bound("sent", talk.sent.messages, sent).bound("sent_bytes", talk.sent.bytes, sent_bytes);
    let (received, received_bytes) = line.is_short(1, &talk.received);
    row.bound("received", talk.received.messages, received).bound(
        "received_bytes",
        talk.received.bytes,
        received_bytes,
    );
    row.bound("errors", talk.errors, line.short[2]).bound("refused", talk.refused, line.short[2]);
    row
}

/// A part of a key as text; `?`: not known.
fn word(value: &Value) -> String {
    match value {
        Value::Text(text) => escaped(text),
        _ => "?".to_owned(),
    }
}

fn cells(line: &Line, lost: bool, stamps: &Stamps) -> Vec<String> {
    let talk = &line.talk;
    let count = |n: u64, short: bool| format!("{}{n}", mark::at_least(short || lost));
    let (sent, sent_bytes) = line.is_short(0, &talk.sent);
    let (received, received_bytes) = line.is_short(1, &talk.received);
    let early = line.any() || talk.first_before || lost;
    let time = talk.first.map(|ts| format!("{}{}", mark::at_most(early), stamps.text(TIME, ts).trim()));
    let dur = line.dur().map(|ns| millis(ns, mark::at_least(early)));
    let process = talk.task.as_ref().map(|task| format!("{}[{}]", escaped(&task.comm), task.pid));
    let or = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    vec![
        or(time),
        or(dur),
        count(talk.sent.messages, sent),
        count(talk.sent.bytes, sent_bytes),
        count(talk.received.messages, received),
        count(talk.received.bytes, received_bytes),
        count(talk.errors, line.short[2]),
        or(process),
        word(&line.key[PROTOCOL]),
        word(&line.key[LOCAL]),
        word(&line.key[PEER]),
    ]
}
