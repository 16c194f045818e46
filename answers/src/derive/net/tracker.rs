//! From changes of state to connections. Holds open ones; a closed connection is returned and forgotten.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use systape_abi::tcp;
use systape_abi::uapi::{AF_INET, AF_INET6};
use systape_format::model::{NetState, Task};

use super::accepts::{Accepted, Remote, plain};
use super::connection::{Connection, ConnectionOutcome, Direction};
use super::counts::{At, Named, TcpRow};

/// IPPROTO_TCP.
const TCP: u16 = 6;

/// Open sockets.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    open: FxHashMap<u64, Open>,
    /// Accepted sockets that are open, by their other side.
    by_remote: FxHashMap<Remote, Vec<u64>>,
    /// What a connection did that the next change ends, of which nothing else is known.
    closing: Option<TcpRow>,
}

#[derive(Clone, Debug)]
struct Open {
    connection: Connection,
    /// Which side closed first, once one did.
    closing: Option<ConnectionOutcome>,
    /// Its address in `by_remote`.
    remote: Option<Remote>,
}

impl Tracker {
    /// Takes the next change, in order of time; `task` is the task that ran then. Returns the connection that it ends.
    pub fn change(&mut self, event: &NetState, task: Option<&Task>) -> Option<Connection> {
        // it was closed unseen, and its number is used again
        if event.old_state == tcp::CLOSE
            && let Some(Open { remote: Some(remote), .. }) = self.open.remove(&event.socket)
        {
            self.forget(remote, event.socket);
        }
        let by_remote = &mut self.by_remote;
        let open = self.open.entry(event.socket).or_insert_with(|| {
            let mut open = begin(event, task);
            if open.connection.direction == Direction::Accept {
                let remote = (plain(&event.daddr), event.dport);
                by_remote.entry(remote.clone()).or_default().push(event.socket);
                open.remote = Some(remote);
            }
            open
        });
        let connection = &mut open.connection;
        addresses(connection, event);
        match event.new_state {
            tcp::ESTABLISHED => {
                connection.established.get_or_insert(event.ts);
            }
            // both sides at once: the own close came first here
            tcp::FIN_WAIT1 => open.closing = open.closing.or(Some(ConnectionOutcome::Closed)),
            tcp::CLOSE_WAIT => open.closing = open.closing.or(Some(ConnectionOutcome::ClosedByPeer)),
            _ => {}
        }
        if event.new_state != tcp::CLOSE {
            connection.outcome = ConnectionOutcome::Open(event.new_state);
            return None;
        }
        let Open { mut connection, closing, remote } = self.open.remove(&event.socket)?;
        if let Some(remote) = remote {
            self.forget(remote, event.socket);
        }
        connection.end = Some(event.ts);
        connection.outcome = outcome(event.old_state, closing);
        if let Some(counted) = self.closing.take().filter(|counted| counted.socket == event.socket) {
            (connection.inode, connection.counts) = (counted.inode, Some(counted.counts));
        }
        Some(connection)
    }

    /// Takes a return of accept, in order of time with the changes. If two connections have the same other side (in two
    /// namespaces, or to two local ports), it stays unknown which of them was returned.
    pub fn accepted(&mut self, accepted: &Accepted) {
        let Some([socket]) = self.by_remote.get(&accepted.remote).map(Vec::as_slice) else { return };
        if let Some(open) = self.open.get_mut(socket) {
            open.connection.task.get_or_insert_with(|| accepted.task.clone());
        }
    }

    /// Takes what the kernel counted of a connection, in order of time; if it was closed, before that change.
    pub fn counted(&mut self, counted: &TcpRow) {
        let open = match self.open.entry(counted.socket) {
            Entry::Occupied(open) => open.into_mut(),
            // its first change is the last
            Entry::Vacant(_) if counted.at == At::Close => {
                self.closing = Some(counted.clone());
                return;
            }
            Entry::Vacant(vacant) => vacant.insert(found(counted)),
        };
        let connection = &mut open.connection;
        if counted.inode != 0 {
            connection.inode = counted.inode;
        }
        match counted.at {
            At::Start => connection.before = Some(counted.counts),
            At::Stop | At::Close => connection.counts = Some(counted.counts),
        }
    }

    /// A call named a connection's socket: it is the caller's, if nothing said whose.
    pub fn named(&mut self, named: &Named) {
        let Some(Open { connection, .. }) = self.open.get_mut(&named.socket) else { return };
        connection.inode = named.inode;
        if connection.task.is_none() {
            connection.task.clone_from(&named.task);
        }
    }

    fn forget(&mut self, remote: Remote, socket: u64) {
        if let Entry::Occupied(mut sockets) = self.by_remote.entry(remote) {
            sockets.get_mut().retain(|known| *known != socket);
            if sockets.get().is_empty() {
                sockets.remove();
            }
        }
    }

    /// The open connections, by number of the socket.
    pub fn finish(self) -> Vec<Connection> {
        let mut open: Vec<_> = self.open.into_values().map(|open| open.connection).collect();
        open.sort_unstable_by_key(|connection| connection.socket);
        open
    }
}

/// A connection from before the recording, as it was found.
fn found(counted: &TcpRow) -> Open {
    let [(laddr, lport), (raddr, rport)] = counted.ends.clone();
    let connection = Connection {
        socket: counted.socket,
        task: counted.task.clone(),
        family: if laddr.len() == 16 { AF_INET6 } else { AF_INET },
        protocol: TCP,
        laddr,
        lport,
        raddr,
        rport,
        outcome: counted.state.map_or(ConnectionOutcome::Ended, ConnectionOutcome::Open),
        ..Connection::default()
    };
    Open { connection, closing: None, remote: None }
}

/// A socket whose first record is `event`.
fn begin(event: &NetState, task: Option<&Task>) -> Open {
    let (direction, opener) = match (event.old_state, event.new_state) {
        (tcp::CLOSE, tcp::SYN_SENT) => (Direction::Connect, task),
        (tcp::CLOSE, tcp::LISTEN) => (Direction::Listen, task),
        // who ran when the other side's packet came has nothing to do with it
        (_, tcp::SYN_RECV) | (tcp::NEW_SYN_RECV, _) => (Direction::Accept, None),
        (tcp::LISTEN, _) => (Direction::Listen, None),
        (tcp::SYN_SENT, _) => (Direction::Connect, None),
        (tcp::SYN_RECV, _) => (Direction::Accept, None),
        _ => (Direction::Unknown, None),
    };
    let seen = matches!(event.new_state, tcp::SYN_SENT | tcp::SYN_RECV | tcp::LISTEN);
    let connection = Connection {
        socket: event.socket,
        task: opener.cloned(),
        family: event.family,
        protocol: event.protocol,
        laddr: Vec::new(),
        lport: 0,
        raddr: Vec::new(),
        rport: 0,
        direction,
        start: seen.then_some(event.ts),
        established: None,
        end: None,
        outcome: ConnectionOutcome::Open(event.new_state),
        ..Connection::default()
    };
    Open { connection, closing: None, remote: None }
}

/// Copies the addresses of `event`: a connecting socket gets its own address and port after it went to SYN_SENT, and
/// has none when it is closed.
fn addresses(connection: &mut Connection, event: &NetState) {
    let known = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    if known(&event.saddr) || connection.laddr.is_empty() {
        connection.laddr.clone_from(&event.saddr);
    }
    if known(&event.daddr) || connection.raddr.is_empty() {
        connection.raddr.clone_from(&event.daddr);
    }
    if event.sport != 0 {
        connection.lport = event.sport;
    }
    if event.dport != 0 {
        connection.rport = event.dport;
    }
}

/// How a socket ended that went from `old` to CLOSE.
fn outcome(old: u8, closing: Option<ConnectionOutcome>) -> ConnectionOutcome {
    match (old, closing) {
        (tcp::LISTEN, _) => ConnectionOutcome::Closed,
        (tcp::SYN_SENT | tcp::SYN_RECV | tcp::NEW_SYN_RECV, _) => ConnectionOutcome::Failed,
        // data was open on this side still
        (tcp::ESTABLISHED | tcp::CLOSE_WAIT, _) => ConnectionOutcome::Reset,
        (_, Some(first)) => first,
        (tcp::FIN_WAIT1 | tcp::FIN_WAIT2 | tcp::CLOSING | tcp::TIME_WAIT, None) => ConnectionOutcome::Closed,
        (tcp::LAST_ACK, None) => ConnectionOutcome::ClosedByPeer,
        (_, None) => ConnectionOutcome::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::{ConnectionBounds, Lasted};
    use super::super::counts::TcpCounts;
    use super::*;

    const WINDOW: ConnectionBounds = ConnectionBounds { open: 0, close: 1_000, complete: true, ended: true };

    /// Plays the states of socket 1, one every 10 ns; the first is its initial state.
    fn play(states: &[u8]) -> (Vec<Connection>, Vec<Connection>) {
        let task = Task { pid: 7, ..Task::default() };
        let mut tracker = Tracker::default();
        let mut ended = Vec::new();
        for (at, pair) in states.windows(2).enumerate() {
            let event = NetState {
                ts: 10 * (at as u64 + 1),
                socket: 1,
                old_state: pair[0],
                new_state: pair[1],
                // the port is given after SYN_SENT, and taken away again
                sport: if pair[1] == 2 || pair[1] == 7 { 0 } else { 4000 },
                dport: 80,
                saddr: if pair[1] == 2 { vec![0; 4] } else { vec![10, 0, 0, 1] },
                daddr: vec![10, 0, 0, 2],
                ..NetState::default()
            };
            ended.extend(tracker.change(&event, Some(&task)));
        }
        (ended, tracker.finish())
    }

    fn one(states: &[u8]) -> (Direction, ConnectionOutcome, Option<u32>, Lasted) {
        let (mut ended, open) = play(states);
        ended.extend(open);
        assert_eq!(ended.len(), 1);
        let c = ended.remove(0);
        (c.direction, c.outcome, c.task.as_ref().map(|task| task.pid), c.lasted(WINDOW))
    }

    #[test]
    fn lives_of_sockets() {
        use Direction::{Accept, Connect, Listen, Unknown};
        let exact = Lasted::Exact;
        assert_eq!(one(&[7, 2, 1, 4, 5, 7]), (Connect, ConnectionOutcome::Closed, Some(7), exact(40)));
        assert_eq!(one(&[7, 2, 7]), (Connect, ConnectionOutcome::Failed, Some(7), exact(10)));
        assert_eq!(one(&[10, 3, 1, 8, 9, 7]), (Accept, ConnectionOutcome::ClosedByPeer, None, exact(40)));
        assert_eq!(one(&[7, 2, 1, 7]), (Connect, ConnectionOutcome::Reset, Some(7), exact(20)));
        assert_eq!(one(&[7, 2, 1, 4, 11, 7]), (Connect, ConnectionOutcome::Closed, Some(7), exact(40)));
        assert_eq!(one(&[7, 10]), (Listen, ConnectionOutcome::Open(10), Some(7), Lasted::AtLeast(990)));
        assert_eq!(one(&[1, 8, 9, 7]), (Unknown, ConnectionOutcome::ClosedByPeer, None, Lasted::AtLeast(30)));
        assert_eq!(one(&[5, 7]), (Unknown, ConnectionOutcome::Closed, None, Lasted::AtLeast(10)));
        assert_eq!(one(&[7, 2, 1]), (Connect, ConnectionOutcome::Open(1), Some(7), Lasted::AtLeast(990)));
    }

    #[test]
    fn a_socket_that_was_closed_unseen_begins_anew() {
        let task = |pid| Task { pid, ..Task::default() };
        let change = |ts, old_state, new_state| NetState { ts, socket: 1, old_state, new_state, ..NetState::default() };
        let mut tracker = Tracker::default();
        assert!(tracker.change(&change(10, 7, 2), Some(&task(7))).is_none());
        // its end and the number's next use are in a gap
        assert!(tracker.change(&change(50, 7, 2), Some(&task(8))).is_none());
        let ended = tracker.change(&change(60, 2, 7), None).expect("a connection");
        assert_eq!((ended.start, ended.task.map(|task| task.pid)), (Some(50), Some(8)));
        assert!(tracker.finish().is_empty());
    }

    #[test]
    fn addresses_are_those_of_its_life() {
        let (ended, _) = play(&[7, 2, 1, 4, 5, 7]);
        let c = &ended[0];
        assert_eq!(
            (c.laddr.as_slice(), c.lport, c.raddr.as_slice(), c.rport),
            (&[10, 0, 0, 1][..], 4000, &[10, 0, 0, 2][..], 80)
        );
        assert_eq!((c.start, c.established, c.end), (Some(10), Some(20), Some(50)));
    }

    #[test]
    fn accept_tells_whose_it_is() {
        let event = |socket, old_state, new_state| NetState {
            ts: 5,
            socket,
            old_state,
            new_state,
            sport: 80,
            dport: 4000,
            saddr: vec![0; 4],
            daddr: vec![10, 0, 0, 9],
            ..NetState::default()
        };
        let accepted =
            |port| Accepted { ts: 9, remote: (vec![10, 0, 0, 9], port), task: Task { pid: 3, ..Task::default() } };
        let pid = |connection: Option<Connection>| connection.unwrap().task.map(|task| task.pid);
        let mut tracker = Tracker::default();
        tracker.change(&event(1, 10, 3), None);
        tracker.accepted(&accepted(4001));
        assert_eq!(tracker.open[&1].connection.task, None, "another port");
        tracker.accepted(&accepted(4000));
        assert_eq!(pid(tracker.change(&event(1, 9, 7), None)), Some(3));
        assert!(tracker.by_remote.is_empty());
        // two with the same other side
        tracker.change(&event(2, 10, 3), None);
        tracker.change(&event(3, 10, 3), None);
        tracker.accepted(&accepted(4000));
        assert_eq!(pid(tracker.change(&event(2, 9, 7), None)), None);
        tracker.accepted(&accepted(4000));
        assert_eq!(pid(tracker.change(&event(3, 9, 7), None)), Some(3));
    }

    #[test]
    fn counts_are_those_of_the_recording() {
        let count = |at, bytes_sent| TcpRow {
            ts: 0,
            at,
            socket: 1,
            inode: 70,
            task: Some(Task { pid: 9, ..Task::default() }),
            state: Some(tcp::ESTABLISHED),
            ends: [(vec![10, 0, 0, 1], 80), (vec![10, 0, 0, 2], 4000)],
            counts: TcpCounts { bytes_sent, bytes_retrans: 100, retrans: 2, ..TcpCounts::default() },
        };
        let close = |old_state| NetState { ts: 50, socket: 1, old_state, new_state: tcp::CLOSE, ..NetState::default() };
        let begin =
            NetState { ts: 5, socket: 1, old_state: tcp::CLOSE, new_state: tcp::SYN_SENT, ..NetState::default() };
        let ends = |tracker: &mut Tracker| {
            tracker.counted(&count(At::Close, 1_000));
            tracker.change(&close(tcp::LAST_ACK), None).unwrap()
        };
        // from its beginning on
        let mut tracker = Tracker::default();
        assert!(tracker.change(&begin, None).is_none());
        let connection = ends(&mut tracker);
        let moved = connection.moved().unwrap();
        assert_eq!((moved.sent, moved.retrans, moved.at_least, connection.inode), (900, 2, false, 70));
        // from before the recording
        tracker.counted(&count(At::Start, 400));
        let connection = ends(&mut tracker);
        let moved = connection.moved().unwrap();
        assert_eq!((moved.sent, moved.retrans, moved.at_least), (600, 0, true));
        assert_eq!((connection.rport, connection.task.unwrap().pid, connection.start), (4000, 9, None));
        // the same, and nobody had it open
        let connection = ends(&mut tracker);
        assert_eq!((connection.moved(), connection.counts.unwrap().bytes_sent), (None, 1_000));
        // open at the end, idle all the time
        tracker.counted(&count(At::Start, 400));
        tracker.counted(&count(At::Stop, 400));
        let [connection] = &tracker.finish()[..] else { panic!() };
        assert_eq!(
            (connection.moved().unwrap().sent, connection.outcome),
            (0, ConnectionOutcome::Open(tcp::ESTABLISHED))
        );
    }

    #[test]
    fn a_socket_may_connect_again() {
        let (ended, open) = play(&[7, 2, 7, 2, 1]);
        assert_eq!((ended.len(), open.len()), (1, 1));
        assert_eq!(open[0].start, Some(30));
    }

    #[test]
    fn with_events_missing_a_bound_is_none() {
        let (ended, _) = play(&[1, 8, 9, 7]);
        assert_eq!(ended[0].lasted(ConnectionBounds { complete: false, ..WINDOW }), Lasted::Unknown);
    }
}
