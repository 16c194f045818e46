//! State changes of sockets.

use rustc_hash::FxHashMap;
use systape_bpf::wire;
use systape_format::model::{Family, NetState};

use super::rows::Rows;
use super::world::World;

const AF_INET6: u16 = libc::AF_INET6 as u16;
const TCP_CLOSE: u8 = 7;

/// Numbers for sockets: the tape has no kernel addresses, which would help an attacker.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    open: FxHashMap<u64, u64>,
    last: u64,
}

impl Sockets {
    /// The number of the socket at `address`; 0 = none of its changes was recorded, or it is closed.
    pub(super) fn find(&self, address: u64) -> u64 {
        self.open.get(&address).copied().unwrap_or(0)
    }

    /// The number of the socket at `address`, until it is closed.
    fn number(&mut self, address: u64, closes: bool) -> u64 {
        const MOST: usize = 1 << 16;
        if self.open.len() > MOST {
            // sockets whose end was lost
            self.open.clear();
        }
        let last = &mut self.last;
        let number = *self.open.entry(address).or_insert_with(|| {
            *last += 1;
            *last
        });
        if closes {
            self.open.remove(&address);
        }
        number
    }
}

impl Sockets {
    /// A socket changed its state.
    pub(super) fn record(&mut self, n: &wire::Net, world: &mut World, rows: &mut Rows) {
        let socket = self.number(n.socket, n.new_state == TCP_CLOSE);
        if rows.sheds(Family::Net, n.ts) {
            return;
        }
        let task = (n.hdr.flags & wire::NET_IRQ == 0).then(|| rows.who(&mut world.tasks, &n.who));
        let sender = (n.hdr.flags & wire::NET_SOFTIRQ != 0).then(|| rows.who(&mut world.tasks, &n.who));
        let len = if n.family == AF_INET6 { 16 } else { 4 };
        rows.stored(Family::Net, n.ts);
        rows.builder.push_net(NetState {
            ts: n.ts,
            task,
            sender,
            socket,
            family: n.family,
            protocol: n.protocol,
            old_state: n.old_state,
            new_state: n.new_state,
            sport: n.sport,
            dport: n.dport,
            saddr: n.saddr[..len].to_vec(),
            daddr: n.daddr[..len].to_vec(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_its_number_until_it_is_closed() {
        let mut sockets = Sockets::default();
        assert_eq!([sockets.number(7, false), sockets.number(8, false), sockets.number(7, true)], [1, 2, 1]);
        assert_eq!(sockets.number(7, false), 3, "another socket at the same address");
    }
}
