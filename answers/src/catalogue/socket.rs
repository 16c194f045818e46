//! Changes of sockets' states.

use systape_abi::tcp;
use systape_format::model::{NetState, Task};

use super::{Observed, catalogue};
use crate::derive::net::words::{address, protocol_name};
use crate::render::row::TaskColumn;
use systape_events::values::clock::{Real, rfc3339};
use systape_events::values::words::NET_SOFTIRQ;

catalogue! {
    /// One row for each change of a TCP socket's state (sock:inet_sock_set_state), also of `net --events`.
    pub SOCKET_STATES = "socket_states" of NetState {
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample" = |o| o.real(o.e.ts).map(rfc3339);
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known" = |o| o.real(o.e.ts).and_then(Real::uncertain);
        socket: Wide key "the socket, unique in the tape" = |o| o.e.socket;
        old_state: Word key "its state before" = |o| tcp::state_name(o.e.old_state);
        new_state: Word key "its state after" = |o| tcp::state_name(o.e.new_state);
        lport: Int [Address] "port of this end; null: none yet" = |o| known(o.e.sport);
        rport: Int [Address] "port of the other end; null: none yet" = |o| known(o.e.dport);
        protocol: Word "`TCP DCCP SCTP`, or a number" = |o| protocol_name(o.e.protocol);
        laddr: Word [Address] "address of this end; null: not known" = |o| address(&o.e.saddr);
        raddr: Word [Address] "address of the other end; null: not known" = |o| address(&o.e.daddr);
        via: Word "`net-softirq`: the thread sent on this machine what the change came from; null: it did not, or that is not known" = |o| via(o);
        _: Task "process that ran; null with the next five: an interrupt" = |o| whose(o);
        uid: Int "real user; null: not known" = |o| TaskColumn::Uid.cell(whose(o));
    }
    family Net, blocks [Net], stacks None;
    read |segment, dict| segment.nets(dict);
    when |e| (e.ts, None);
    whose |o| [whose(o), None];
    kind |_e| 0;
    0 => "sock:inet_sock_set_state" []:
        socket, oldstate = old_state, newstate = new_state, sport = lport, dport = rport |o| Some(o.e.dport.to_string()),
        protocol, saddr = laddr, daddr = raddr, via |o| via(o).map(str::to_owned);
}

/// The task that ran, or the sender of the packet.
fn whose<'a>(o: Observed<'a, NetState>) -> Option<&'a Task> {
    o.e.task.or(o.e.sender).and_then(|task| o.task(task))
}

fn via(o: Observed<'_, NetState>) -> Option<&'static str> {
    o.e.sender.map(|_| NET_SOFTIRQ)
}

/// A port; 0 is no port of a connection or a listener: it has none yet, or it was taken out.
fn known(port: u16) -> Option<u16> {
    Some(port).filter(|port| *port != 0)
}
