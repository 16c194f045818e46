//! From steps in order of time to exchanges. Holds open connections; memory is bounded.
//!
//! A connection is known by its end's name, so it does not matter which thread, process or descriptor a call used. An exchange is given
//! back when the next one of its connection is over its beginning, when the connection is gone, or at the end: a write of an answer may
//! return after the next read.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ends::{EndAddresses, EndKey, Listener, StreamEnd};
use super::{Amount, CutShort, EndSide, Exchange, Mover, SentOff, Trouble};
use systape_format::sockets::port;

/// Most connections that are followed at once.
const CONNECTIONS: usize = 1 << 17;
/// Most listening sockets, and other things of which only a few are expected.
const KNOWN: usize = 1 << 17;

/// With as many network namespaces an end is looked for in its own only.
const NAMESPACES: usize = 1 << 10;

/// Errors after which a connection moves nothing any more.
const BROKEN: [u16; 11] = [32, 100, 101, 102, 103, 104, 107, 108, 110, 111, 113];

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteFlow {
    /// Bytes are read.
    In,
    /// Bytes are written.
    Out,
}

/// What a call that reads or writes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// Number of bytes, one at least.
    Bytes(Amount),
    /// The other end has closed: there is nothing to read any more.
    Eof,
    /// The call failed with this error.
    Failed(u16),
    /// The call had not returned at the end of the tape, or never did.
    Unfinished,
}

/// A call that reads or writes at an end of a connection.
#[derive(Clone, Debug)]
pub struct Move {
    /// The end.
    pub end: Arc<StreamEnd>,
    /// Which way.
    pub flow: ByteFlow,
    /// When the call began, ns.
    pub from: u64,
    /// What it came to.
    pub came: MoveOutcome,
    /// Who called.
    pub who: Arc<Mover>,
}

/// An attempt to connect that did not fail.
#[derive(Clone, Debug)]
pub struct Connecting {
    /// Inode of the socket; of one that had a port before, [`Listener::port_key`].
    pub inode: Arc<[u8]>,
    /// When the call began, ns.
    pub from: u64,
    /// When it returned, ns.
    pub to: u64,
    /// The call returned a connection; else that was under way.
    pub done: bool,
    /// Path of the UNIX socket that it connected to; empty: it is one of TCP, or that is not known.
    pub path: Arc<[u8]>,
    /// The socket is one of UNIX.
    pub unix: bool,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum ExchangeStep {
    /// A call that reads or writes.
    Moves(Box<Move>),
    /// A socket listens.
    Listens(Arc<Listener>),
    /// A socket that has an address connects: it does not listen.
    NotListening(Arc<Listener>),
    /// Bytes may have gone through an end, and it is not known which way.
    Blurs(Arc<StreamEnd>),
    /// A listening socket gave a connection.
    Accepts(Arc<Listener>),
    /// A socket connects.
    Connects(Box<Connecting>),
    /// A TCP socket has both addresses from now on: end, inode, its number in changes of state (0: not known).
    Named(Arc<StreamEnd>, Arc<[u8]>, u64),
    /// An end was there when the recording began, with its number (0: not known).
    Listed(Arc<StreamEnd>, u64),
    /// A segment came to a TCP connection, by its number.
    Segment(u64, SegmentSays),
    /// A TCP connection is established, at the end that asked for it or at the other one, by its number.
    Established(u64),
    /// A TCP connection is gone, by its number.
    Gone(u64),
    /// A process closed a descriptor of an end.
    Closes(Arc<StreamEnd>, u32),
    /// A process ended.
    Exits(u32),
    /// Calls of the process with this pid (0: any) are missing until then.
    Lost(u64, u32),
}

/// What a segment says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentSays {
    /// The first bytes came since all before were read, and something was sent.
    pub begins: bool,
    /// All that was written has arrived.
    pub acks: bool,
    /// What was held back could leave.
    pub frees: bool,
}

/// A loss of calls.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    count: u32,
    /// Time of the last.
    until: u64,
}

impl Losses {
    fn add(&mut self, until: u64) {
        self.count += 1;
        self.until = self.until.max(until);
    }
}

/// One end.
#[derive(Debug)]
struct ConnectionEnd {
    end: Arc<StreamEnd>,
    side: EndSide,
    /// How many listeners were known when its side was looked for.
    looked: usize,
    /// The next byte begins an exchange, or goes on with what is known.
    sure: bool,
    /// The beginning of the connection is on the tape.
    new: bool,
    current: Option<Exchange>,
    /// The one before, which a write may still belong to.
    held: Option<Exchange>,
    /// The process that moved bytes last, and when.
    last: (u32, u32, u64),
    /// The process that closed a descriptor of it last.
    closed: Option<u32>,
    /// Losses of anybody's calls, and of the last process's, that were taken note of.
    losses: (u32, u32),
    /// Two connections have this name.
    mixed: bool,
    inode: Arc<[u8]>,
    /// Number of the socket in changes of state; None: it has none; 0: it is gone.
    socket: Option<u64>,
    /// How the client connected: when it began, and how long it took; at the server how long nobody accepted the connection.
    connect: Option<(u64, Option<u64>)>,
    to: Arc<[u8]>,
    /// Bytes went in and out, while it was not known which end it is.
    unplaced: [bool; 2],
    /// When the first bytes came that were not read then.
    arrived: Option<u64>,
    /// When all that was written had arrived last, and when something held back could leave last; 0: never.
    acked: u64,
    freed: u64,
    /// Its segments are on the tape.
    follows: bool,
}

/// What is not in the exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOutEnds {
    /// Connections on which bytes went both ways, and whose side is not known.
    pub sides: u64,
    /// Connections that were forgotten because there were too many.
    pub forgotten: u64,
    /// Connections that had the addresses of another one at the same time.
    pub mixed: u64,
}

/// The machine.
#[derive(Debug, Default)]
pub struct ExchangeTracker {
    open: FxHashMap<EndKey, ConnectionEnd>,
    listeners: FxHashMap<Option<u16>, Vec<Arc<Listener>>>,
    /// How many.
    listening: usize,
    /// When connections were accepted that are not yet seen, by listener.
    accepted: FxHashMap<Arc<Listener>, VecDeque<u64>>,
    /// How many.
    accepting: usize,
    /// Ends that were there at the beginning, with their numbers; 0: not known.
    listed: FxHashMap<EndKey, u64>,
    /// Attempts to connect of sockets that have no addresses yet, by inode.
    connecting: FxHashMap<Arc<[u8]>, Connecting>,
    /// TCP ends by inode that may have been connected by a call that comes later.
    unsure: FxHashMap<Arc<[u8]>, EndKey>,
    /// Open TCP ends by their numbers.
    sockets: FxHashMap<u64, EndKey>,
    /// When sockets whose addresses come later were established.
    established: FxHashMap<u64, u64>,
    /// When bytes came to connections that nobody has accepted yet.
    early: FxHashMap<u64, u64>,
    /// Sides of ends that are known beforehand.
    known: FxHashMap<EndAddresses, EndSide>,
    /// Segments of connections are on the tape.
    segments: bool,
    dead: FxHashSet<u32>,
    losses: Losses,
    losses_of: FxHashMap<u32, Losses>,
    /// Network namespaces that ends were in, up to [`NAMESPACES`].
    namespaces: Vec<Option<u32>>,
    /// Sockets of TCP are named when they get their addresses.
    names: bool,
    /// What is left out.
    pub left_out: LeftOutEnds,
}

impl ExchangeTracker {
    /// Nothing yet; `names`: the tape says when sockets of TCP get their addresses; `segments`: and what their segments say.
    pub fn new(names: bool, segments: bool) -> Self {
        Self { names, segments, ..Self::default() }
    }

    /// The tracker of a tape of which another one says which side some ends are.
    pub fn knowing(self, known: FxHashMap<EndAddresses, EndSide>) -> Self {
        Self { known, ..self }
    }

    /// Takes the next step, at `ts`; what is over goes to `out`.
    pub fn add(&mut self, ts: u64, step: ExchangeStep, out: &mut Vec<Exchange>) {
        match step {
            ExchangeStep::Moves(moved) => self.moves(ts, *moved, out),
            ExchangeStep::Listens(listener) => self.listens(listener),
            ExchangeStep::NotListening(bound) => {
                if let Some(of) = self.listeners.get_mut(&port_of(&bound)) {
                    of.retain(|listener| *listener != bound);
                }
            }
            ExchangeStep::Blurs(end) => {
                let key = end.key();
                if !self.open.contains_key(&key) {
                    self.make_room(ts, out);
                    // what comes next is not the first
                    self.accepted(&end, &key);
                    let new = self.new_connection(&end);
                    self.open.insert(key.clone(), new);
                }
                if let Some(connection) = self.open.get_mut(&key) {
                    connection.blurs();
                }
            }
            ExchangeStep::Accepts(listener) => {
                self.listens(Arc::clone(&listener));
                if (listener.unix || !self.names) && self.accepting < KNOWN {
                    self.accepting += 1;
                    self.accepted.entry(listener).or_default().push_back(ts);
                }
            }
            ExchangeStep::Connects(connecting) => self.connects(ts, *connecting, out),
            ExchangeStep::Named(end, inode, socket) => self.named(ts, end, inode, socket, out),
            ExchangeStep::Listed(end, socket) => {
                if self.listed.len() < KNOWN {
                    let number = self.listed.entry(end.key()).or_default();
                    *number = socket.max(*number);
                }
                if socket != 0 && self.sockets.len() < KNOWN {
                    self.sockets.insert(socket, end.key());
                }
            }
            ExchangeStep::Segment(socket, says) => self.segment(ts, socket, says),
            ExchangeStep::Established(socket) => self.is_established(ts, socket),
            ExchangeStep::Gone(socket) => {
                self.established.remove(&socket);
                self.early.remove(&socket);
                if let Some(key) = self.sockets.remove(&socket)
                    && let Some(connection) = self.open.get_mut(&key)
                {
                    connection.socket = Some(0);
                }
            }
            ExchangeStep::Closes(end, process) => {
                if let Some(connection) = self.open.get_mut(&end.key()) {
                    connection.closed = Some(process);
                }
            }
            ExchangeStep::Exits(process) => {
                if self.dead.len() < KNOWN {
                    self.dead.insert(process);
                }
            }
            ExchangeStep::Lost(until, 0) => self.losses.add(until),
            ExchangeStep::Lost(until, pid) => self.losses_of.entry(pid).or_default().add(until),
        }
    }

    /// Gives back what is left at `ts`, the end.
    pub fn finish(&mut self, ts: u64, out: &mut Vec<Exchange>) {
        for (_, connection) in std::mem::take(&mut self.open) {
            self.end(connection, ts, out);
        }
    }

    fn listens(&mut self, listener: Arc<Listener>) {
        let of = self.listeners.entry(port_of(&listener)).or_default();
        if self.listening < KNOWN && !of.contains(&listener) {
            of.push(listener);
            self.listening += 1;
        }
    }

    /// The listener that this end was accepted from.
    fn listener(&self, end: &StreamEnd) -> Option<&Arc<Listener>> {
        self.listeners.get(&end.port())?.iter().find(|listener| listener.accepts(end))
    }

    /// A new connection of which nothing but its end is known.
    fn new_connection(&mut self, end: &Arc<StreamEnd>) -> ConnectionEnd {
        if self.namespaces.len() < NAMESPACES && !self.namespaces.contains(&end.namespace) {
            self.namespaces.push(end.namespace);
        }
        let side = match self.listener(end) {
            Some(_) => EndSide::Server,
            // who connects has no path, as a rule
            None if end.unix && !end.path.is_empty() => EndSide::Server,
            None => self.known.get(&end.key().addresses).copied().unwrap_or_default(),
        };
        ConnectionEnd {
            end: Arc::clone(end),
            side,
            looked: self.listening,
            sure: false,
            new: false,
            current: None,
            held: None,
            last: (0, 0, 0),
            closed: None,
            losses: (self.losses.count, 0),
            mixed: false,
            inode: Arc::default(),
            socket: None,
            connect: None,
            to: Arc::default(),
            unplaced: [false; 2],
            arrived: None,
            acked: 0,
            freed: 0,
            follows: self.segments,
        }
    }

    fn segment(&mut self, ts: u64, socket: u64, says: SegmentSays) {
        match self.sockets.get(&socket).and_then(|key| self.open.get_mut(key)) {
            Some(connection) => connection.segment(ts, says),
            None if says.begins && self.early.len() < KNOWN => _ = self.early.insert(socket, ts),
            None => {}
        }
    }

    fn connects(&mut self, ts: u64, connecting: Connecting, out: &mut Vec<Exchange>) {
        let took = connecting.done.then(|| ts.saturating_sub(connecting.from));
        if connecting.unix {
            let end = StreamEnd {
                local: Arc::clone(&connecting.inode),
                remote: Arc::default(),
                path: Arc::default(),
                unix: true,
                namespace: None,
            };
            let end = Arc::new(end);
            let mut new = self.new_connection(&end);
            (new.side, new.connect) = (EndSide::Client, Some((connecting.from, took)));
            (new.sure, new.new, new.to, new.last.2) = (true, true, connecting.path, ts);
            self.put(ts, new, out);
            return;
        }
        // its addresses came before the call returned
        if let Some(key) = self.unsure.remove(&connecting.inode) {
            if let Some(connection) = self.open.get_mut(&key) {
                connection.side = EndSide::Client;
                connection.connect = Some((connecting.from, took));
            }
            return;
        }
        if self.connecting.len() < KNOWN {
            self.connecting.insert(Arc::clone(&connecting.inode), connecting);
        }
    }

    fn named(&mut self, ts: u64, end: Arc<StreamEnd>, inode: Arc<[u8]>, socket: u64, out: &mut Vec<Exchange>) {
        let key = end.key();
        if self.open.get(&key).is_some_and(|known| known.inode == inode) {
            return;
        }
        let mut new = self.new_connection(&end);
        (new.sure, new.new, new.inode, new.last.2) = (true, true, Arc::clone(&inode), ts);
        new.socket = Some(socket).filter(|socket| *socket != 0);
        new.arrived = self.early.remove(&socket);
        let mut connecting = self.connecting.remove(&inode);
        if connecting.is_none()
            && let Some(port) = end.port_key()
        {
            // of a port that was left without a connection long ago this is another socket
            connecting = self.connecting.remove(&port).filter(|connecting| connecting.to == ts);
        }
        match connecting {
            Some(connecting) => {
                let done = connecting.done.then_some(ts);
                let done = done.or_else(|| self.established.remove(&socket));
                new.side = EndSide::Client;
                new.connect = Some((connecting.from, done.map(|at| at.saturating_sub(connecting.from))));
            }
            None if new.side == EndSide::Server => {
                new.connect = self.established.remove(&socket).map(|at| (at, Some(ts.saturating_sub(at))));
            }
            None if new.side == EndSide::Unknown && self.unsure.len() < KNOWN => {
                self.unsure.insert(inode, key.clone());
            }
            None => {}
        }
        // one with these addresses that was never closed: it is in another network namespace
        new.mixed = self.open.get(&key).is_some_and(|known| known.socket.is_some_and(|known| known != 0));
        self.left_out.mixed += u64::from(new.mixed);
        if socket != 0 && self.sockets.len() < KNOWN {
            self.sockets.insert(socket, key);
        }
        self.put(ts, new, out);
    }

    fn is_established(&mut self, ts: u64, socket: u64) {
        let connection = self.sockets.get(&socket).and_then(|key| self.open.get_mut(key));
        match connection {
            Some(ConnectionEnd { connect: Some((from, took @ None)), .. }) => *took = Some(ts.saturating_sub(*from)),
            Some(_) => {}
            None if self.established.len() < KNOWN => _ = self.established.insert(socket, ts),
            None => {}
        }
    }

    /// Puts a new connection in the place of what had its name.
    fn put(&mut self, ts: u64, new: ConnectionEnd, out: &mut Vec<Exchange>) {
        self.make_room(ts, out);
        let mixed = new.mixed;
        if let Some(mut old) = self.open.insert(new.end.key(), new) {
            old.mixed |= mixed;
            self.end(old, ts, out);
        }
    }

    /// Has room for one more: connections that are closed or were used longest ago go.
    fn make_room(&mut self, ts: u64, out: &mut Vec<Exchange>) {
        if self.open.len() < CONNECTIONS {
            return;
        }
        let is_gone = |connection: &ConnectionEnd, dead: &FxHashSet<u32>| {
            let (_, process, _) = connection.last;
            connection.closed == Some(process) || dead.contains(&process)
        };
        let gone: Vec<EndKey> =
            self.open.iter().filter(|(_, one)| is_gone(one, &self.dead)).map(|(key, _)| key.clone()).collect();
        let mut going = gone;
        if self.open.len() - going.len() > CONNECTIONS / 4 * 3 {
            let mut times: Vec<u64> = self.open.values().map(|one| one.last.2).collect();
            let (_, limit, _) = times.select_nth_unstable(CONNECTIONS / 4);
            let limit = *limit;
            let old = self.open.iter().filter(|(_, one)| one.last.2 <= limit && !is_gone(one, &self.dead));
            let old: Vec<EndKey> = old.map(|(key, _)| key.clone()).collect();
            self.left_out.forgotten += old.len() as u64;
            going.extend(old);
        }
        for key in going {
            if let Some(connection) = self.open.remove(&key) {
                connection.socket.map(|socket| self.sockets.remove(&socket));
                self.unsure.remove(&connection.inode);
                self.end(connection, ts, out);
            }
        }
    }

    /// Whether calls on it may be missing since it was last looked at, and takes note of losses that are over at `ts`.
    fn lost(&self, connection: &mut ConnectionEnd, pid: u32, (from, ts): (u64, u64)) -> bool {
        if self.losses.count == 0 && self.losses_of.is_empty() {
            return false;
        }
        let of = |pid: u32| self.losses_of.get(&pid).copied().unwrap_or_default();
        let (last, own) = (of(connection.last.0), of(pid));
        let (known, known_own) = connection.losses;
        let same = pid == connection.last.0;
        // of a process that is new here all losses count since the connection was seen last
        let news = self.losses.count > known
            || last.count > known_own
            || (!same && own.count > 0 && own.until >= connection.last.2);
        let until = self.losses.until.max(own.until).max(last.until);
        connection.losses = match ts > until {
            true => (self.losses.count, own.count),
            // more may be missing behind this
            false => (known.min(self.losses.count.saturating_sub(1)), if same { known_own } else { 0 }),
        };
        let any = self.losses.count > 0 || own.count > 0 || last.count > 0;
        news || (any && from <= until)
    }

    fn moves(&mut self, ts: u64, moved: Move, out: &mut Vec<Exchange>) {
        let key = moved.end.key();
        let mut since = moved.from;
        let mut connection = match self.open.remove(&key) {
            Some(connection) => connection,
            None => {
                self.make_room(ts, out);
                let mut new = self.new_connection(&moved.end);
                if let Some(accepted) = self.accepted(&moved.end, &key) {
                    (new.sure, new.new, new.last.2) = (true, true, accepted);
                    since = since.min(accepted);
                } else if let Some(socket) = self.listed.get(&key).copied().filter(|socket| *socket != 0) {
                    (new.socket, new.arrived) = (Some(socket), self.early.remove(&socket));
                }
                new
            }
        };
        // the other end of a UNIX socket becomes known late
        if connection.end.remote.is_empty() && !moved.end.remote.is_empty() {
            connection.end = Arc::clone(&moved.end);
        }
        let task = &moved.who.task;
        if self.lost(&mut connection, task.pid, (since, ts)) {
            connection.blurs();
        }
        self.find_side(&mut connection);
        connection.last = (task.pid, task.upid, ts);
        connection.moves(ts, &moved, out);
        self.open.insert(key, connection);
    }

    /// When the end was given by its listener, at the earliest, if nothing was seen of it yet; None: it was there before.
    fn accepted(&mut self, end: &StreamEnd, key: &EndKey) -> Option<u64> {
        if self.accepting == 0 || self.listed.contains_key(key) {
            return None;
        }
        let listener = Arc::clone(self.listener(end)?);
        let at = self.accepted.get_mut(&listener)?.pop_front()?;
        self.accepting -= 1;
        Some(at)
    }

    /// Finds out which end it is, if that is not known yet.
    fn find_side(&self, connection: &mut ConnectionEnd) {
        if connection.side != EndSide::Unknown {
            return;
        }
        if connection.looked < self.listening {
            connection.looked = self.listening;
            if self.listener(&connection.end).is_some() {
                connection.side = EndSide::Server;
            }
        }
        if connection.side == EndSide::Unknown
            && self.other(&connection.end).is_some_and(|other| other.side == EndSide::Server)
        {
            connection.side = EndSide::Client;
        }
        if connection.side != EndSide::Unknown && connection.unplaced != [false; 2] {
            connection.sure = false;
        }
    }

    /// The other end: in the same namespace, else the only one in another.
    fn other(&self, end: &StreamEnd) -> Option<&ConnectionEnd> {
        let addresses = end.other()?;
        let in_one = |namespace| self.open.get(&EndKey { addresses: addresses.clone(), namespace });
        if let Some(other) = in_one(end.namespace) {
            return Some(other);
        }
        if self.namespaces.len() == NAMESPACES {
            return None;
        }
        let mut others = self.namespaces.iter().filter(|one| **one != end.namespace).filter_map(|one| in_one(*one));
        others.next().filter(|_| others.next().is_none())
    }

    /// Gives back what a connection still has.
    fn end(&mut self, mut connection: ConnectionEnd, ts: u64, out: &mut Vec<Exchange>) {
        if connection.side == EndSide::Unknown {
            self.left_out.sides += u64::from(connection.unplaced == [true; 2]);
            return;
        }
        let (pid, process, _) = connection.last;
        let span = (ts.min(connection.last.2), ts);
        let lost = self.lost(&mut connection, pid, span);
        let closed = connection.closed == Some(process) || self.dead.contains(&process);
        let gone = connection.socket.map_or(closed, |socket| socket == 0);
        connection.finish(lost, gone, out);
    }
}

/// The port that a listener has; None: it is a UNIX socket.
fn port_of(listener: &Listener) -> Option<u16> {
    if listener.unix { None } else { port(&listener.at) }
}

impl ConnectionEnd {
    /// Takes a segment.
    fn segment(&mut self, ts: u64, says: SegmentSays) {
        // the kernel says that what came before was read
        if says.begins {
            self.arrived = Some(ts);
        }
        if says.acks {
            self.acked = ts;
        }
        if says.frees {
            self.freed = ts;
        }
    }

    /// Takes down what became of the answer of the current exchange: nothing more is written for it.
    fn sent_off(&mut self) {
        let followed = self.socket.is_some() && self.follows && self.side == EndSide::Server;
        let Some(current) = self.current.as_mut().filter(|current| followed && current.wrote != 0) else { return };
        let behind = |ts: u64| (ts >= current.wrote).then_some(ts);
        current.sent_off = Some(SentOff { freed: behind(self.freed), acked: behind(self.acked) });
    }

    /// Calls may be missing: what was under way has no times, and where the next exchange begins is not known.
    fn blurs(&mut self) {
        self.sure = false;
        self.current.iter_mut().for_each(|exchange| exchange.cut = exchange.cut.or(Some(CutShort::Gap)));
    }

    /// Takes a call.
    fn moves(&mut self, ts: u64, moved: &Move, out: &mut Vec<Exchange>) {
        if self.side == EndSide::Unknown {
            if matches!(moved.came, MoveOutcome::Bytes(_)) {
                self.unplaced[usize::from(moved.flow == ByteFlow::Out)] = true;
            }
            return;
        }
        let asks = (moved.flow == ByteFlow::In) == (self.side == EndSide::Server);
        match moved.came {
            MoveOutcome::Bytes(amount) if asks => self.asks(ts, moved, amount, out),
            MoveOutcome::Bytes(amount) => self.answers(ts, moved, amount),
            MoveOutcome::Eof if !asks && self.is_waiting() => self.fails(ts, Trouble::Unanswered, out),
            // a write is of the exchange; what a read says behind an answer may be of the next one
            MoveOutcome::Failed(errno)
                if BROKEN.contains(&errno) && (moved.flow == ByteFlow::Out || self.is_waiting()) =>
            {
                self.fails(ts, Trouble::Failed(errno), out);
            }
            MoveOutcome::Unfinished if moved.flow == ByteFlow::Out => {
                if let Some(current) = &mut self.current {
                    current.cut = current.cut.or(Some(CutShort::End));
                }
            }
            MoveOutcome::Eof | MoveOutcome::Failed(_) | MoveOutcome::Unfinished => {}
        }
    }

    /// Whether something was asked and not answered.
    fn is_waiting(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.answer.is_none())
    }

    /// Bytes that ask.
    fn asks(&mut self, ts: u64, moved: &Move, amount: Amount, out: &mut Vec<Exchange>) {
        // the connection was closed, and this is another one with its name
        if self.is_waiting() && self.closed.take().is_some_and(|process| process == moved.who.task.upid) {
            self.fails(ts, Trouble::Unanswered, out);
        }
        self.closed = None;
        let answered = self.current.as_ref().is_none_or(|current| current.answer.is_some());
        if answered {
            self.step(out);
            // what follows an answer begins; after a loss nobody knows
            let cut = (!self.sure).then_some(CutShort::Begin);
            let mut new = self.begin(ts, moved, cut);
            new.arrived = self.arrived.filter(|_| self.side == EndSide::Server);
            self.current = Some(new);
        }
        self.arrived = None;
        let Some(current) = &mut self.current else { return };
        current.asked = current.asked.max(ts);
        current.passes |= moved.who.passes;
        match moved.flow {
            ByteFlow::In => current.received.add(amount),
            ByteFlow::Out => current.sent.add(amount),
        }
    }

    /// Bytes that answer.
    fn answers(&mut self, ts: u64, moved: &Move, amount: Amount) {
        self.closed = None;
        let add = |exchange: &mut Exchange| {
            let from = if moved.flow == ByteFlow::Out { moved.from.max(exchange.asked) } else { ts };
            let (began, ended) = exchange.answer.unwrap_or((from, ts));
            exchange.answer = Some((began, ended.max(ts)));
            exchange.second.get_or_insert_with(|| Arc::clone(&moved.who));
            exchange.passes |= moved.who.passes;
            match moved.flow {
                ByteFlow::In => exchange.received.add(amount),
                ByteFlow::Out => {
                    exchange.sent.add(amount);
                    exchange.wrote = exchange.wrote.max(moved.from);
                    // what was taken down came before this write
                    exchange.sent_off = None;
                }
            }
        };
        match (&mut self.current, &mut self.held) {
            // it began before the next was read
            (Some(current), Some(held)) if moved.flow == ByteFlow::Out && moved.from < current.begin => add(held),
            (Some(current), _) => add(current),
            // who speaks first greets; of a connection that was there before it is an answer whose beginning is not known
            (None, _) if self.sure || self.new => {}
            (None, _) => {
                let mut exchange = self.begin(ts, moved, Some(CutShort::Begin));
                add(&mut exchange);
                self.current = Some(exchange);
            }
        }
        // what is asked next begins an exchange
        self.sure = true;
    }

    fn begin(&mut self, ts: u64, moved: &Move, cut: Option<CutShort>) -> Exchange {
        let begin = if moved.flow == ByteFlow::Out { moved.from } else { ts };
        Exchange {
            end: Arc::clone(&self.end),
            side: self.side,
            begin,
            asked: begin,
            answer: None,
            received: Amount::default(),
            sent: Amount::default(),
            trouble: None,
            cut: cut.or(self.mixed.then_some(CutShort::Mixed)),
            first: Arc::clone(&moved.who),
            second: None,
            connect: self.connect.take().and_then(|(_, took)| took),
            passes: moved.who.passes,
            to: Arc::clone(&self.to),
            arrived: None,
            wrote: 0,
            sent_off: None,
        }
    }

    /// The exchange goes wrong and is over.
    fn fails(&mut self, ts: u64, trouble: Trouble, out: &mut Vec<Exchange>) {
        let Some(current) = &mut self.current else { return };
        // an answer may be lost
        if trouble != Trouble::Unanswered || current.cut != Some(CutShort::Gap) {
            current.trouble = Some(trouble);
        }
        if let Some((_, ended)) = &mut current.answer {
            *ended = (*ended).max(ts);
        }
        self.step(out);
        self.sure = true;
    }

    /// The current exchange is over.
    fn step(&mut self, out: &mut Vec<Exchange>) {
        self.sent_off();
        if let Some(mut current) = self.current.take() {
            current.end = Arc::clone(&self.end);
            out.extend(self.held.replace(current));
        }
    }

    /// Nothing follows any more; `lost`: as far as known; `gone`: who used it has closed it, or ended.
    fn finish(mut self, lost: bool, gone: bool, out: &mut Vec<Exchange>) {
        self.sent_off();
        if let Some(current) = &mut self.current {
            current.end = Arc::clone(&self.end);
            if self.mixed {
                current.cut = current.cut.or(Some(CutShort::Mixed));
            }
            match (lost, current.answer) {
                (true, _) => current.cut = current.cut.or(Some(CutShort::Gap)),
                (false, None) if gone => current.trouble = Some(Trouble::Unanswered),
                (false, None) => current.cut = current.cut.or(Some(CutShort::End)),
                (false, Some(_)) => {}
            }
        }
        out.extend(self.held.take());
        out.extend(self.current.take());
    }
}

#[cfg(test)]
mod tests;
