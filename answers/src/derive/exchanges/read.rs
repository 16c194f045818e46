//! Makes [`Step`]s of a tape: of calls, operations of io_uring and io_submit, names of sockets, changes of their states, ends of processes.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::descriptors::is_accept;
use systape_abi::uapi::AF_UNIX;
use systape_abi::{ArgKind, ContentIo, Selection, is_restart, tcp};
use systape_format::families::{IO_URING_DESCRIPTOR, SOCKET_NAME, SOCKET_SEGMENT};
use systape_format::model::{CallState, Dict, Family, NetState, ProcessKind, Session};
use systape_format::reader::Segment;
use systape_format::sockets;
use systape_format::tables::TableRows;

use super::super::{lost_calls, operations};
use super::ends::{EndAddresses, Listener, NamedSocket};
use super::track::{ByteFlow, Connecting, ExchangeStep, ExchangeTracker, LeftOutEnds, Move, MoveOutcome, SegmentSays};
use super::{Amount, EndSide, Exchange, Mover};
use crate::derive::operations::Operation;
use systape_events::calls::{CallInfo, recorded};
use systape_events::load::{Base, FdPath, Loaded, OpenCalls};
use systape_events::loss::loses;
use systape_events::moved::{Moved, ReceiveTakes, takes};
use systape_events::question::Question;
use systape_events::scan::carry::Rows;
use systape_events::scan::later::{HasTime, Later};
use systape_events::scan::lost::{Lost, MissingKind, gaps};
use systape_events::scan::stream::{self, Machine, Piece, Source};
use systape_events::scan::{Coverage, Scan};

/// `EAGAIN` and `EINPROGRESS`.
const EAGAIN: u16 = 11;
const EINPROGRESS: u16 = 115;

/// Calls by which bytes go through sockets, and connections come and go, on any architecture that a tape may be of.
pub const CALLS: [&str; 22] = [
    "read", "write", "readv", "writev", "preadv2", "pwritev2", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
    "recvmmsg", "sendfile", "splice", "accept", "accept4", "connect", "listen", "close", "send", "recv", "shutdown",
];

/// Calls of [`CALLS`] that `session` says were left out of the recording; None: it is not known which were recorded.
pub fn left_out(session: &Session) -> Option<Vec<&'static str>> {
    let selection: Selection = recorded(session)?;
    let abi = systape_events::calls::native_abi(&session.machine);
    let is_out = |name: &&str| systape_abi::number(abi, name).is_some_and(|number| !selection.contains(abi, number));
    Some(CALLS.into_iter().filter(is_out).collect())
}

/// What is read of a tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftUnread {
    /// What is not in the exchanges.
    pub left_out: LeftOutEnds,
    /// Calls that moved bytes by sockets of which it is not known which they are.
    pub nameless: u64,
}

/// Gives `each` the exchanges of the tape, in the order in which it is known that they are over.
pub fn read(question: &Question<'_>, each: impl FnMut(Exchange) + Send) -> (Coverage, LeftUnread) {
    read_knowing(question, FxHashMap::default(), each)
}

/// Gives `each` the exchanges as [`read`] does, of a tape of which another one says which side some ends are.
pub fn read_knowing(
    question: &Question<'_>,
    known: FxHashMap<EndAddresses, EndSide>,
    each: impl FnMut(Exchange) + Send,
) -> (Coverage, LeftUnread) {
    let tape = question.tape;
    let has = |table: &str| tape.table_defs().values().any(|def| def.name == table);
    let tracker = ExchangeTracker::new(has(&SOCKET_NAME.name), has(&SOCKET_SEGMENT.name)).knowing(known);
    let unseen = gaps(tape, |_, gap| loses(gap, &[Family::Net]));
    let each = with_segments(unseen, each);
    let mut feeder = ExchangeFeeder { tracker, out: Vec::new(), last: 0, nameless: 0, each };
    let of_rings = gaps(tape, |_, gap| loses(gap, &[Family::IoUring]));
    let of_calls = lost_calls::of_calls(tape, &question.book, |info| StreamCall::of(info).is_some());
    let lost = of_calls.into_iter().chain(of_rings).map(|lost| (MissingKind::Calls, lost));
    let coverage = Scan::all(tape).stream(&Steps { question }, lost, &mut feeder);
    let ExchangeFeeder { mut tracker, mut out, last, nameless, mut each } = feeder;
    tracker.finish(last.max(tape.complete_until()), &mut out);
    out.into_iter().for_each(&mut each);
    (coverage, LeftUnread { left_out: tracker.left_out, nameless })
}

/// Passes exchanges on; where segments are missing meanwhile, what became of an answer is not known.
fn with_segments(unseen: Vec<Lost>, mut each: impl FnMut(Exchange) + Send) -> impl FnMut(Exchange) + Send {
    move |mut exchange: Exchange| {
        let acked = exchange.sent_off.and_then(|off| off.acked).unwrap_or(u64::MAX);
        let meanwhile = |lost: &Lost| lost.last >= exchange.begin && lost.first <= acked;
        if unseen.iter().any(meanwhile) {
            exchange.sent_off = None;
        }
        each(exchange);
    }
}

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamCall {
    Moves,
    Accepts,
    Listens,
    Connects,
    Closes,
}

impl StreamCall {
    fn of(info: &CallInfo) -> Option<Self> {
        Some(match info.name.as_str() {
            name if is_accept(name) => Self::Accepts,
            "listen" => Self::Listens,
            "connect" => Self::Connects,
            "close" => Self::Closes,
            _ if info.io.reads().is_some() || info.io.writes().is_some() => Self::Moves,
            _ => return None,
        })
    }
}

/// A step with its time.
#[derive(Debug)]
struct TimedStep {
    ts: u64,
    what: StepOrNameless,
}

#[derive(Debug)]
enum StepOrNameless {
    Step(ExchangeStep),
    /// A call that moved bytes by what may be a connection.
    Nameless,
}

impl HasTime for TimedStep {
    fn key(&self) -> (u64, u8) {
        let order = match &self.what {
            StepOrNameless::Step(ExchangeStep::Gone(_) | ExchangeStep::Listed(..)) => 0,
            StepOrNameless::Step(ExchangeStep::Listens(_) | ExchangeStep::Accepts(_) | ExchangeStep::Connects(_)) => 1,
            StepOrNameless::Step(ExchangeStep::Named(..) | ExchangeStep::Established(_)) => 2,
            StepOrNameless::Step(ExchangeStep::Exits(_)) => 4,
            _ => 3,
        };
        (self.ts, order)
    }
}

/// Reads segments.
struct Steps<'a> {
    question: &'a Question<'a>,
}

impl Source for Steps<'_> {
    type Row = TimedStep;
    type Part = ();
    type Waiting = TimedStep;

    fn read(&self, segment: Segment<'_>, dict: Dict, rows: Rows, piece: &mut Piece<Self>) {
        let book = &self.question.book;
        if rows == Rows::Own {
            self.events(&segment, &dict, piece);
        }
        if segment.info().rows == 0 {
            return;
        }
        let kinds: Vec<Option<StreamCall>> = dict.calls.iter().map(|call| StreamCall::of(&book.get(*call))).collect();
        let follows = |call: &u32| kinds.get(*call as usize).copied().flatten().is_some();
        let mut holes = Vec::new();
        let base = Base::of(segment, Ok(dict), &mut holes, |_, core| core.call.iter().any(follows));
        if let Some(base) = base {
            let range = rows.of(&base.core);
            let wanted: Vec<u32> =
                range.clone().filter(|row| follows(&base.core.call[*row])).map(|row| row as u32).collect();
            let loaded = base.load_rows(wanted.iter().copied(), book, &mut holes);
            self.calls(&loaded, &kinds, wanted.iter().map(|row| *row as usize), piece);
        }
        piece.lacks_calls = !holes.is_empty();
        piece.coverage.holes(holes);
    }

    fn open(&self, open: OpenCalls, piece: &mut Piece<Self>) {
        let open = open.load(&self.question.book);
        let kinds: Vec<Option<StreamCall>> = open.calls.iter().map(|info| StreamCall::of(info)).collect();
        let rows: Range<usize> = 0..open.rows();
        self.calls(&open, &kinds, rows, piece);
    }
}

impl Steps<'_> {
    /// Adds the other events than calls of a segment.
    fn events(&self, segment: &Segment<'_>, dict: &Dict, piece: &mut Piece<Self>) {
        let mut step =
            |ts: u64, step: ExchangeStep| piece.rows.push(TimedStep { ts, what: StepOrNameless::Step(step) });
        match segment.processes(dict) {
            Ok(events) => {
                events.iter().filter(|event| event.kind == ProcessKind::Exit && event.group_dead).for_each(|event| {
                    if let Some(task) = dict.tasks.get(event.task as usize) {
                        step(event.ts, ExchangeStep::Exits(task.upid));
                    }
                })
            }
            Err(_) => piece.lacks_events = true,
        }
        let mut step =
            |ts: u64, step: ExchangeStep| piece.rows.push(TimedStep { ts, what: StepOrNameless::Step(step) });
        // without these it is known less, not wrong
        for change in segment.nets(dict).unwrap_or_default() {
            if let Some(what) = state(&change) {
                step(change.ts, what);
            }
        }
        match segment.tables(dict) {
            Ok(tables) => tables.iter().for_each(|table| self.table(table, dict, &mut piece.rows)),
            Err(_) => piece.lacks_events = true,
        }
    }

    fn table(&self, table: &TableRows, dict: &Dict, out: &mut Vec<TimedStep>) {
        let mut step = |ts: u64, step: ExchangeStep| out.push(TimedStep { ts, what: StepOrNameless::Step(step) });
        if table.def.name == SOCKET_NAME.name {
            names(table, &mut step);
        } else if table.def.name == SOCKET_SEGMENT.name {
            segments(table, &mut step);
        } else if table.def.name == IO_URING_DESCRIPTOR.name {
            accepted_by_rings(table, &mut step);
        } else if operations::TABLES.iter().any(|def| def.name == table.def.name) {
            let mut actors: FxHashMap<u32, Arc<Mover>> = FxHashMap::default();
            operations::rows(table, dict, |operation, task| {
                let actor = || {
                    let task = dict.tasks.get(task as usize)?;
                    let passes = self.question.scope.task(task);
                    Some(Arc::new(Mover { task: task.clone(), passes }))
                };
                let actor = match actors.get(&task) {
                    Some(known) => Some(Arc::clone(known)),
                    None => actor().inspect(|new| _ = actors.insert(task, Arc::clone(new))),
                };
                if let Some(actor) = actor {
                    of_operation(&operation, &actor, &mut step);
                }
            });
        }
    }

    /// Adds these rows of `loaded`.
    fn calls(
        &self,
        loaded: &Loaded,
        kinds: &[Option<StreamCall>],
        rows: impl Iterator<Item = usize>,
        piece: &mut Piece<Self>,
    ) {
        let mut reader = MoveReader {
            loaded,
            question: self.question,
            sockets: FxHashMap::default(),
            actors: FxHashMap::default(),
            out: &mut piece.rows,
        };
        for row in rows {
            if let Some(kind) = kinds[loaded.core.call[row] as usize] {
                reader.row(row, kind);
            }
        }
    }
}

/// What a change of a TCP socket's state says.
fn state(change: &NetState) -> Option<ExchangeStep> {
    match change.new_state {
        tcp::ESTABLISHED if [tcp::SYN_SENT, tcp::SYN_RECV].contains(&change.old_state) => {
            Some(ExchangeStep::Established(change.socket))
        }
        tcp::CLOSE => Some(ExchangeStep::Gone(change.socket)),
        _ => None,
    }
}

/// Rows of `socket:name`: TCP sockets with both addresses.
fn names(table: &TableRows, step: &mut impl FnMut(u64, ExchangeStep)) {
    let columns = ["task", "inode", "socket", "protocol", "local", "remote"].map(|name| table.column(name));
    let [Some(tasks), Some(inodes), Some(numbers), Some(protocols), Some(locals), Some(remotes)] = columns else {
        return;
    };
    let namespaces = table.column("namespace");
    for (row, ts) in table.ts.iter().enumerate() {
        let text = |column: &[u64]| column.get(row).and_then(|value| table.string(*value));
        let (Some(protocol), Some(local), Some(remote)) = (text(protocols), text(locals), text(remotes)) else {
            continue;
        };
        if remote.is_empty() || !protocol.starts_with(b"TCP") {
            continue;
        }
        // tapes of 1.5 from before have no such column
        let namespace = namespaces.and_then(|column| column.get(row)).filter(|number| **number != 0);
        let namespace = namespace.and_then(|number| u32::try_from(*number).ok());
        let suffix = sockets::namespace_suffix(namespace);
        let name = [protocol, b":[", local, b"->", remote, b"]", suffix.as_bytes()].concat();
        let NamedSocket::End(end) = NamedSocket::named(&name) else { continue };
        // without a task it had the name before
        if tasks[row] == 0 {
            step(*ts, ExchangeStep::Listed(end, numbers[row]));
        } else {
            step(*ts, ExchangeStep::Named(end, inodes[row].to_string().into_bytes().into(), numbers[row]));
        }
    }
}

/// Rows of `socket:segment`.
fn segments(table: &TableRows, step: &mut impl FnMut(u64, ExchangeStep)) {
    let columns = ["socket", "begins", "acks", "frees"].map(|name| table.column(name));
    let [Some(sockets), Some(begins), Some(acks), Some(frees)] = columns else { return };
    for (row, ts) in table.ts.iter().enumerate() {
        let [begins, acks, frees] = [begins, acks, frees].map(|column| column[row] != 0);
        step(*ts, ExchangeStep::Segment(sockets[row], SegmentSays { begins, acks, frees }));
    }
}

/// Connections that operations of io_uring accepted.
fn accepted_by_rings(table: &TableRows, step: &mut impl FnMut(u64, ExchangeStep)) {
    let columns = ["op", "file"].map(|name| table.column(name));
    let [Some(ops), Some(files)] = columns else { return };
    for (row, ts) in table.ts.iter().enumerate() {
        if table.string(ops[row]) != Some(b"ACCEPT") {
            continue;
        }
        if let Some(NamedSocket::End(end)) = table.string(files[row]).map(NamedSocket::named)
            && end.unix
        {
            let listener = Listener { at: Arc::clone(&end.path), unix: true, namespace: None };
            step(*ts, ExchangeStep::Accepts(Arc::new(listener)));
        }
    }
}

/// The inode in the name of a socket without addresses: `TCP:[17]`, `UNIX-STREAM:[17]`, and whether it is a UNIX socket; None: it is another one.
fn number(name: &[u8]) -> Option<(&[u8], bool)> {
    let (word, inside) = sockets::split(name)?;
    let unix = word == b"UNIX-STREAM";
    let number = !inside.is_empty() && inside.iter().all(u8::is_ascii_digit);
    (number && (unix || word.starts_with(b"TCP"))).then_some((inside, unix))
}

/// The path in a struct sockaddr_un, as names of sockets have it; empty: there is none.
fn path(sockaddr: &[u8]) -> Vec<u8> {
    match sockaddr.strip_prefix(&AF_UNIX.to_le_bytes()) {
        // the name of an abstract one begins with a NUL
        Some([0, rest @ ..]) => [b"@", rest].concat(),
        Some(path) => path.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
        None => Vec::new(),
    }
}

/// Reads the calls of a segment.
struct MoveReader<'a, 'o> {
    loaded: &'a Loaded,
    question: &'a Question<'a>,
    /// What descriptors' files are, by their number.
    sockets: FxHashMap<u32, NamedSocket>,
    /// Who called, by index of the task.
    actors: FxHashMap<u32, Arc<Mover>>,
    out: &'o mut Vec<TimedStep>,
}

impl MoveReader<'_, '_> {
    fn step(&mut self, ts: u64, step: ExchangeStep) {
        self.out.push(TimedStep { ts, what: StepOrNameless::Step(step) });
    }

    fn actor(&mut self, row: usize) -> Arc<Mover> {
        let index = self.loaded.core.task[row];
        let actor = self.actors.entry(index).or_insert_with(|| {
            let task = self.loaded.task(row);
            Arc::new(Mover { task: task.clone(), passes: self.question.scope.task(task) })
        });
        Arc::clone(actor)
    }

    /// What the descriptor in argument `at` of `row` is.
    fn socket(&mut self, row: usize, at: usize) -> NamedSocket {
        let fds = &self.loaded.fds;
        let column = match self.loaded.call(row).fd_args {
            [Some(first), _] if first == at => &fds.fd,
            [_, Some(second)] if second == at => &fds.fd2,
            _ => return NamedSocket::Unknown,
        };
        match (self.loaded.fd_path(row, at), column.get(row)) {
            (FdPath::Known(name), Some(number)) => {
                self.sockets.entry(*number).or_insert_with(|| NamedSocket::named(name)).clone()
            }
            (FdPath::Known(name), None) => NamedSocket::named(name),
            (FdPath::None, _) => NamedSocket::Other,
            (FdPath::Unknown, _) => NamedSocket::Unknown,
        }
    }

    fn row(&mut self, row: usize, kind: StreamCall) {
        let core = &self.loaded.core;
        let (state, errno) = (core.state[row], core.errno[row]);
        let from = self.loaded.time.start[row];
        let to = from.saturating_add(core.dur[row]);
        let succeeded = errno == 0 && state.returned();
        match kind {
            StreamCall::Moves => self.moves(row, (from, to)),
            StreamCall::Closes => {
                // whatever it returns, the descriptor is closed; and that when it begins
                if let NamedSocket::End(end) = self.socket(row, 0) {
                    let process = self.loaded.task(row).upid;
                    self.step(to, ExchangeStep::Closes(end, process));
                }
            }
            StreamCall::Accepts | StreamCall::Listens => match self.socket(row, 0) {
                NamedSocket::Alone(listener) if succeeded && kind == StreamCall::Accepts => {
                    self.step(to, ExchangeStep::Accepts(listener))
                }
                NamedSocket::Alone(listener) if succeeded || kind == StreamCall::Accepts => {
                    self.step(to, ExchangeStep::Listens(listener))
                }
                _ => {}
            },
            StreamCall::Connects if succeeded || errno == EINPROGRESS => self.connects(row, (from, to), succeeded),
            StreamCall::Connects => {}
        }
    }

    fn connects(&mut self, row: usize, (from, to): (u64, u64), done: bool) {
        let FdPath::Known(name) = self.loaded.fd_path(row, 0) else { return };
        if let NamedSocket::Alone(bound) = NamedSocket::named(name) {
            if let Some(port) = bound.port_key() {
                let connecting = Connecting { inode: port, from, to, done, path: Arc::default(), unix: false };
                self.step(to, ExchangeStep::Connects(Box::new(connecting)));
            }
            return self.step(to, ExchangeStep::NotListening(bound));
        }
        let Some((inode, unix)) = number(name) else { return };
        let address = self.loaded.captured(row).iter().find(|value| value.arg == 1 && value.status.is_whole());
        let path = address.map(|address| path(&address.bytes)).unwrap_or_default().into();
        let connecting = Connecting { inode: inode.into(), from, to, done, path, unix };
        self.step(to, ExchangeStep::Connects(Box::new(connecting)));
    }

    fn moves(&mut self, row: usize, (from, to): (u64, u64)) {
        let info = self.loaded.call(row);
        let ways = [(info.io.reads(), ByteFlow::In), (info.io.writes(), ByteFlow::Out)];
        for (at, flow) in ways.into_iter().filter_map(|(at, flow)| Some((at?, flow))) {
            match self.socket(row, at) {
                NamedSocket::End(end) if self.is_vague(row, flow) => self.step(to, ExchangeStep::Blurs(end)),
                NamedSocket::End(end) => {
                    if let Some(came) = self.came(row, flow) {
                        let who = self.actor(row);
                        self.step(to, ExchangeStep::Moves(Box::new(Move { end, flow, from, came, who })));
                    }
                }
                NamedSocket::Unknown if self.moved_bytes(row) => {
                    self.out.push(TimedStep { ts: to, what: StepOrNameless::Nameless })
                }
                NamedSocket::Unknown | NamedSocket::Alone(_) | NamedSocket::Other => {}
            }
        }
    }

    /// Whether the call of `row` may have moved bytes or not: what it returned, or whether it only looked, cannot be read.
    fn is_vague(&self, row: usize, flow: ByteFlow) -> bool {
        let (core, args) = (&self.loaded.core, self.loaded.args.of(row));
        let (state, succeeded) = (core.state[row], core.errno[row] == 0 && core.state[row].returned());
        let looks = || flow == ByteFlow::In && takes(self.loaded.call(row), state, args) == ReceiveTakes::Unknown;
        succeeded && (self.loaded.args.ret.get(row).is_none() || looks())
    }

    fn moved_bytes(&self, row: usize) -> bool {
        let core = &self.loaded.core;
        core.errno[row] == 0 && core.state[row].returned() && self.loaded.args.ret.get(row).is_none_or(|ret| *ret > 0)
    }

    /// What the call of `row` came to; None: nothing.
    fn came(&self, row: usize, flow: ByteFlow) -> Option<MoveOutcome> {
        let (core, info) = (&self.loaded.core, self.loaded.call(row));
        let (state, errno, args) = (core.state[row], core.errno[row], self.loaded.args.of(row));
        match state {
            CallState::InFlight | CallState::Killed | CallState::NoReturn => return Some(MoveOutcome::Unfinished),
            CallState::CloneChild | CallState::Denied => return None,
            CallState::Complete | CallState::BeganBefore | CallState::LostEnter => {}
        }
        if is_restart(errno) || errno == EAGAIN {
            return None;
        }
        if errno != 0 {
            return Some(MoveOutcome::Failed(errno));
        }
        if flow == ByteFlow::In && takes(info, state, args) == ReceiveTakes::Nothing {
            return None;
        }
        let ret = self.loaded.args.ret.get(row).copied();
        if ret == Some(0) {
            let asked = info.args.iter().position(|arg| matches!(arg.kind, ArgKind::Size));
            let nothing = asked.is_some_and(|at| args.is_some_and(|args| args[at] == 0));
            return (flow == ByteFlow::In && !nothing && !info.io.counts_messages()).then_some(MoveOutcome::Eof);
        }
        let moved = Moved::by(self.loaded, row);
        Some(MoveOutcome::Bytes(Amount { bytes: moved.least(), short: moved.is_short() }))
    }
}

/// What an operation of io_uring or io_submit did.
fn of_operation(operation: &Operation<'_>, who: &Arc<Mover>, step: &mut impl FnMut(u64, ExchangeStep)) {
    let Some(file) = operation.file else { return };
    let to = operation.end;
    let from = operation.dur.map_or(to, |dur| to.saturating_sub(dur));
    match (operation.op, NamedSocket::named(file)) {
        (Some(b"ACCEPT"), NamedSocket::Alone(listener)) => step(to, ExchangeStep::Listens(listener)),
        (Some(b"CONNECT"), _) => {
            let done = operation.error == Some(0);
            if let Some((inode, unix)) =
                number(file).filter(|_| done || operation.error == Some(u64::from(EINPROGRESS)))
            {
                let path = Arc::default();
                let connecting = Connecting { inode: inode.into(), from, to, done, path, unix };
                step(to, ExchangeStep::Connects(Box::new(connecting)));
            }
        }
        (op, NamedSocket::End(end)) => {
            let flow = match operation.io() {
                ContentIo::Read(_) => ByteFlow::In,
                ContentIo::Write(_) => ByteFlow::Out,
                // one of several results, or a splice: which way bytes went is not known
                ContentIo::Other => return step(to, ExchangeStep::Blurs(end)),
                _ if op.is_none() => return step(to, ExchangeStep::Blurs(end)),
                _ => return,
            };
            let came = match (operation.error, operation.result) {
                (None, _) => MoveOutcome::Unfinished,
                (Some(0), Some(0)) if flow == ByteFlow::In => MoveOutcome::Eof,
                (Some(0), Some(0)) => return,
                (Some(0), Some(bytes)) => MoveOutcome::Bytes(Amount { bytes, short: false }),
                (Some(0), None) => MoveOutcome::Bytes(Amount { bytes: 0, short: true }),
                (Some(errno), _) if errno == u64::from(EAGAIN) => return,
                (Some(errno), _) => MoveOutcome::Failed(u16::try_from(errno).unwrap_or(0)),
            };
            step(to, ExchangeStep::Moves(Box::new(Move { end, flow, from, came, who: Arc::clone(who) })));
        }
        _ => {}
    }
}

/// Follows the steps.
struct ExchangeFeeder<F> {
    tracker: ExchangeTracker,
    out: Vec<Exchange>,
    last: u64,
    nameless: u64,
    each: F,
}

impl<F: FnMut(Exchange)> ExchangeFeeder<F> {
    fn add(&mut self, TimedStep { ts, what }: TimedStep) {
        self.last = self.last.max(ts);
        match what {
            StepOrNameless::Step(step) => self.tracker.add(ts, step, &mut self.out),
            StepOrNameless::Nameless => self.nameless += 1,
        }
        self.out.drain(..).for_each(&mut self.each);
    }
}

impl<F: FnMut(Exchange) + Send> Machine<Steps<'_>> for ExchangeFeeder<F> {
    fn push(&mut self, event: stream::Event<'_, Steps<'_>>, later: &mut Later<TimedStep>) -> ControlFlow<()> {
        match event {
            stream::Event::Row(_, at) | stream::Event::Due(at) => self.add(at),
            stream::Event::Early(_, at) => later.push(at),
            stream::Event::Start(checkpoint) => {
                let fds = checkpoint.fd_tables.iter().flat_map(|table| &table.fds);
                for fd in fds {
                    let step = match NamedSocket::named(&fd.path) {
                        NamedSocket::End(end) => ExchangeStep::Listed(end, 0),
                        NamedSocket::Alone(listener) => ExchangeStep::Listens(listener),
                        NamedSocket::Unknown | NamedSocket::Other => continue,
                    };
                    self.add(TimedStep { ts: checkpoint.ts, what: StepOrNameless::Step(step) });
                }
            }
            stream::Event::Lost(MissingKind::Calls, lost) => {
                self.tracker.add(lost.first, ExchangeStep::Lost(lost.last, lost.pid), &mut self.out);
            }
            stream::Event::Checkpoint(_) | stream::Event::Part(()) | stream::Event::Lost(..) | stream::Event::End => {}
        }
        ControlFlow::Continue(())
    }

    fn wants_checkpoint(&self, _losses: bool) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sockets_without_addresses_have_their_number() {
        assert_eq!(number(b"TCP:[17]"), Some((&b"17"[..], false)));
        assert_eq!(number(b"UNIX-STREAM:[18]"), Some((&b"18"[..], true)));
        assert_eq!(
            (number(b"TCP:[1.1.1.1:5]"), number(b"UNIX-STREAM:[18,\"/x\"]"), number(b"UDP:[5]")),
            (None, None, None)
        );
    }

    #[test]
    fn paths_of_addresses_end_at_their_nul() {
        assert_eq!(path(b"\x01\x00/run/x\0\0"), b"/run/x");
        assert_eq!(path(b"\x01\x00\0name"), b"@name");
        assert_eq!((path(b"\x02\x00/run/x"), path(b"\x01")), (Vec::new(), Vec::new()));
    }
}
