//! State changes of sockets, and what else happens to them: rows of the tables `socket:tcp`, `socket:segment`, `socket:retransmit`
//! and `socket:error`.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::tcp;
use systape_bpf::{NET_ERROR_AFTER, wire};
use systape_format::families::{SOCKET_ERROR, SOCKET_RETRANSMIT, SOCKET_SEGMENT, SOCKET_TCP};
use systape_format::model::{Family, NetState};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;
use crate::descriptors::sockets::end;

const AF_INET6: u16 = libc::AF_INET6 as u16;
const JUST_NOW: u64 = NET_ERROR_AFTER as u64;

/// A socket from its first change on, or since the recording began, until it is closed.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    /// Its number: the tape has no kernel addresses, which would help an attacker.
    number: u64,
    /// 0 = not known: nobody accepted it yet.
    inode: u64,
    /// It was found open at the end.
    at_stop: bool,
}

/// The sockets whose changes are recorded, by address.
#[derive(Debug)]
pub(super) struct TrackedSockets {
    open: FxHashMap<u64, Open>,
    /// The last ones that were closed, with address and time.
    closed: VecDeque<(u64, u64, Open)>,
    last: u64,
    tcp: Arc<TableDef>,
    retransmit: Arc<TableDef>,
    error: Arc<TableDef>,
    segment: Arc<TableDef>,
}

impl Default for TrackedSockets {
    fn default() -> Self {
        let [tcp, retransmit, error, segment] =
            [&SOCKET_TCP, &SOCKET_RETRANSMIT, &SOCKET_ERROR, &SOCKET_SEGMENT].map(|def| Arc::new(def.clone()));
        Self { open: FxHashMap::default(), closed: VecDeque::new(), last: 0, tcp, retransmit, error, segment }
    }
}

impl TrackedSockets {
    /// The number of the socket at `address`; 0 = none of its changes was recorded, or it is closed.
    pub(super) fn find(&self, address: u64) -> u64 {
        self.open.get(&address).map_or(0, |open| open.number)
    }

    /// The number of the socket at `address` at `ts`, when it may just have been closed by an error; 0 = not known.
    fn find_at(&self, address: u64, ts: u64) -> u64 {
        let just = |&&(of, at, _): &&(u64, u64, Open)| of == address && ts.saturating_sub(at) < JUST_NOW;
        match self.find(address) {
            0 => self.closed.iter().find(just).map_or(0, |(_, _, open)| open.number),
            number => number,
        }
    }

    /// A call on a descriptor gave this inode of the socket at `address`.
    pub(super) fn named(&mut self, address: u64, inode: u64) {
        if let Some(open) = self.open.get_mut(&address) {
            open.inode = inode;
        }
    }

    /// The socket at `address`, a new one if none is known.
    fn at(&mut self, address: u64) -> &mut Open {
        const MOST: usize = 1 << 18;
        if self.open.len() > MOST {
            // sockets whose end was lost
            self.open.clear();
        }
        let last = &mut self.last;
        self.open.entry(address).or_insert_with(|| {
            *last += 1;
            Open { number: *last, ..Open::default() }
        })
    }

    /// The socket of a change, which may be its first or its last.
    fn changed(&mut self, n: &wire::Net) -> Open {
        let is_child = n.old_state == tcp::LISTEN && n.new_state != tcp::CLOSE;
        if n.old_state == tcp::CLOSE || is_child {
            // what was there before was closed unseen
            self.open.remove(&n.socket);
        }
        let open = *self.at(n.socket);
        if n.new_state == tcp::CLOSE {
            const MOST: usize = 16;
            self.open.remove(&n.socket);
            self.closed.truncate(MOST - 1);
            self.closed.push_front((n.socket, n.ts, open));
        }
        open
    }
}

impl TrackedSockets {
    /// A socket changed its state. Returns it; None = the change was dropped.
    fn change(&mut self, n: &wire::Net, world: &mut World, rows: &mut Rows) -> Option<Open> {
        let open = self.changed(n);
        if rows.sheds(Family::Net, n.ts) {
            return None;
        }
        let task = (n.hdr.flags & wire::NET_IRQ == 0).then(|| rows.who(&mut world.tasks, &n.who));
        let sender = (n.hdr.flags & wire::NET_SOFTIRQ != 0).then(|| rows.who(&mut world.tasks, &n.who));
        let len = if n.family == AF_INET6 { 16 } else { 4 };
        rows.stored(Family::Net, n.ts);
        rows.builder.push_net(NetState {
            ts: n.ts,
            task,
            sender,
            socket: open.number,
            family: n.family,
            protocol: n.protocol,
            old_state: n.old_state,
            new_state: n.new_state,
            sport: n.sport,
            dport: n.dport,
            saddr: n.saddr[..len].to_vec(),
            daddr: n.daddr[..len].to_vec(),
        });
        Some(open)
    }

    /// A socket changed its state.
    pub(super) fn record(&mut self, n: &wire::Net, world: &mut World, rows: &mut Rows) {
        self.change(n, world, rows);
    }

    /// A connection was closed, or was found in an open file. The walk finds it once for each.
    pub(super) fn tcp(&mut self, t: &wire::Tcp, world: &mut World, rows: &mut Rows) {
        let (n, mut task) = (&t.net, Field::Unknown);
        let (at, open) = match (n.hdr.flags & wire::NET_FOUND != 0, n.hdr.flags & wire::NET_STOP != 0) {
            (false, _) => match self.change(n, world, rows) {
                Some(open) => ("close", open),
                None => return,
            },
            // its beginning is on the tape, or it was found before
            (true, false) if self.find(n.socket) != 0 => return,
            (true, stop) => {
                let open = self.at(n.socket);
                if std::mem::replace(&mut open.at_stop, stop) || rows.shedding.is_all() {
                    return;
                }
                open.inode = t.inode;
                let open = *open;
                task = Field::Task(rows.who(&mut world.tasks, &n.who));
                (if stop { "stop" } else { "start" }, open)
            }
        };
        let (state, [local, remote]) = (tcp::state_name(n.old_state), ends(n));
        let us = |us: u32, part: u64| Field::Number(u64::from(us) * 1000 / part);
        let count = |count: u32| Field::Number(count.into());
        let fields = [
            task,
            Field::Bytes(at.as_bytes()),
            Field::Number(open.number),
            Field::Number(if t.inode == 0 { open.inode } else { t.inode }),
            Field::Bytes(state.as_bytes()),
            text(&local),
            text(&remote),
            Field::Number(t.bytes_sent),
            Field::Number(t.bytes_retrans),
            Field::Number(t.bytes_acked),
            Field::Number(t.bytes_received),
            count(t.segs_out),
            count(t.segs_in),
            count(t.data_segs_out),
            count(t.data_segs_in),
            count(t.retransmits),
            us(t.srtt_us, 8),
            us(t.rttvar_us, 4),
            if t.min_rtt_us == u32::MAX { Field::Number(0) } else { us(t.min_rtt_us, 1) },
            count(t.cwnd),
            count(t.mss),
            Field::Number(u64::from(t.has_fin != 0)),
        ];
        rows.beside(&self.tcp, n.ts, &fields);
    }

    /// A segment came by which something begins or ends.
    pub(super) fn segment(&mut self, s: &wire::Segment, rows: &mut Rows) {
        let number = self.find(s.socket);
        if number == 0 || rows.sheds(Family::Net, s.ts) {
            return;
        }
        let flag = |flag: u16| Field::Number(u64::from(s.hdr.flags & flag != 0));
        let [begins, acks, frees] = [wire::SEGMENT_BEGINS, wire::SEGMENT_ACKS, wire::SEGMENT_FREES].map(flag);
        rows.beside(&self.segment, s.ts, &[Field::Number(number), begins, acks, frees]);
    }

    /// A segment was sent again, or a socket got an error.
    pub(super) fn incident(&mut self, i: &wire::Incident, world: &mut World, rows: &mut Rows) {
        let n = &i.net;
        if rows.sheds(Family::Net, n.ts) {
            return;
        }
        let again = n.hdr.flags & wire::NET_RETRANSMIT != 0;
        let task = (n.hdr.flags & wire::NET_IRQ == 0).then(|| Field::Task(rows.who(&mut world.tasks, &n.who)));
        let (state, [local, remote]) = (tcp::state_name(n.old_state), ends(n));
        let fields = [
            task.unwrap_or(Field::Unknown),
            Field::Number(n.hdr.cpu.into()),
            Field::Number(self.find_at(n.socket, n.ts)),
            Field::Number(i.inode),
            Field::Bytes(state.as_bytes()),
            text(&local),
            text(&remote),
            Field::Number(n.protocol.into()),
            Field::Number(n.error.into()),
        ];
        match again {
            true => rows.beside(&self.retransmit, n.ts, &fields[..7]),
            false => rows.beside(&self.error, n.ts, &fields),
        }
    }
}

/// Both ends as text; empty = it has none.
fn ends(n: &wire::Net) -> [String; 2] {
    [(n.saddr, n.sport), (n.daddr, n.dport)]
        .map(|(address, port)| if port == 0 { String::new() } else { end(n.family, &address, port) })
}

fn text(end: &str) -> Field<'_> {
    if end.is_empty() { Field::Unknown } else { Field::Bytes(end.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(sockets: &mut TrackedSockets, socket: u64, old_state: u8, new_state: u8) -> u64 {
        sockets.changed(&wire::Net { socket, old_state, new_state, ..wire::Net::default() }).number
    }

    #[test]
    fn a_socket_has_its_number_until_it_is_closed() {
        let mut sockets = TrackedSockets::default();
        let (close, sent, open) = (tcp::CLOSE, tcp::SYN_SENT, tcp::ESTABLISHED);
        assert_eq!([number(&mut sockets, 7, close, sent), number(&mut sockets, 8, close, sent)], [1, 2]);
        sockets.named(7, 70);
        assert_eq!(sockets.open[&7].inode, 70);
        assert_eq!([number(&mut sockets, 7, sent, open), number(&mut sockets, 7, open, close)], [1, 1]);
        sockets.named(7, 70);
        assert_eq!(number(&mut sockets, 7, close, sent), 3, "another socket at the same address");
        assert_eq!(sockets.open[&7].inode, 0);
        let numbers = [(7, 0), (8, JUST_NOW), (9, 0)].map(|(address, ts)| sockets.find_at(address, ts));
        assert_eq!(numbers, [3, 2, 0]);
        assert_eq!(number(&mut sockets, 7, sent, close), 3);
        let numbers = [JUST_NOW - 1, JUST_NOW].map(|ts| sockets.find_at(7, ts));
        assert_eq!(numbers, [3, 0], "it was closed at 0");
        assert_eq!(number(&mut sockets, 7, close, sent), 4);
        // the fourth one's end is lost
        assert_eq!(number(&mut sockets, 7, close, sent), 5, "another one");
        assert_eq!(number(&mut sockets, 8, tcp::LISTEN, tcp::SYN_RECV), 6, "so is the second one's");
    }
}
