//! Tracepoints of packets: the socket that the packet is for, or from, and whose that is.

use systape_bpf::wire;
use systape_format::class::Class;
use systape_format::table::Type;

use super::format::{Kind, Place, TracepointField, Value};
use crate::descriptors::sockets;

/// Those at which the kernel still holds the packet; at others (`net:net_dev_xmit`) its memory may be used for another.
const PACKETS: [&str; 4] = ["net:net_dev_queue", "net:net_dev_start_xmit", "skb:consume_skb", "skb:kfree_skb"];
/// Most fields of varying size beside a packet: the cookie has the packet's places where it would have theirs.
const MAX_LOCATED: usize = 2;

/// Where a record has pointers, in words; 0 = it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// To the packet.
    skb: u8,
    /// To the socket that it was for (Linux 6.11); the packet itself may not have it yet.
    socket: u8,
}

/// Name, type, class and meaning of a column.
pub(super) type Column = (&'static str, Type, Option<Class>, &'static str);

/// What a packet's tracepoint has besides its fields.
pub(super) const COLUMNS: [Column; 7] = [
    (
        "socket",
        Type::Str,
        Some(Class::Address),
        "the socket that the packet is for or from, as descriptors of it are called: UDP:[127.0.0.1:53]; unknown: none, or one without an address",
    ),
    ("local", Type::Str, Some(Class::Address), "address and port of the socket; unknown: none"),
    ("remote", Type::Str, Some(Class::Address), "address and port that the socket is connected to; unknown: none"),
    ("inode", Type::Int, None, "number of the socket, as in socket:[17]; unknown: no program has it open"),
    (
        "owner_pid",
        Type::Int,
        None,
        "the process that made or accepted the socket, or had it open at the start; unknown: not known",
    ),
    ("owner_comm", Type::Str, Some(Class::Comm), "name of that process"),
    ("unread", Type::Unread, None, "which of the numbers are not known"),
];

impl Packet {
    /// Places of a packet in records of the tracepoint called so; None = it is not one of packets, or not as they are known.
    pub(super) fn of(name: &str, fields: &[TracepointField]) -> Option<Self> {
        let located = fields.iter().filter(|field| field.place != Place::Fixed).count();
        if !PACKETS.contains(&name) || located > MAX_LOCATED {
            return None;
        }
        let word = |name: &str| {
            let field = fields.iter().find(|field| field.name == name && field.kind == Kind::Pointer)?;
            u8::try_from(field.offset / 4).ok().filter(|_| field.offset % 4 == 0)
        };
        Some(Self { skb: word("skbaddr")?, socket: word("rx_sk").unwrap_or(0) })
    }

    /// The part of a cookie.
    pub(super) fn cookie(self) -> u64 {
        u64::from(self.skb) << 48 | u64::from(self.socket) << 56
    }
}

/// Values of [`COLUMNS`]; `owner`: pid and name.
pub(crate) fn values(socket: Option<&wire::Socket>, owner: Option<(u32, &[u8])>) -> Vec<Option<Value>> {
    let text = |text: Vec<u8>| (!text.is_empty()).then_some(Value::Text(text));
    let parts = socket.map(sockets::parts).unwrap_or_default();
    // without an end a name is made of the inode
    let is_named = |s: &&wire::Socket| s.inode != 0 || !parts.local.is_empty() || !parts.path.is_empty();
    let name = socket.filter(is_named).map(|socket| sockets::text(socket).0);
    vec![
        name.and_then(text),
        text(parts.local.into_bytes()),
        text(parts.remote.into_bytes()),
        socket.map(|socket| socket.inode).filter(|inode| *inode != 0).map(Value::Number),
        owner.map(|(pid, _)| Value::Number(pid.into())),
        owner.and_then(|(_, comm)| text(comm.to_vec())),
        None,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::format::parse;
    use super::*;
    use crate::descriptors::sockets::tests::facts;

    #[test]
    fn a_packet_has_its_places() {
        let text = "\tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:void * rx_sk;\toffset:24;\tsize:8;\tsigned:0;\n";
        let of = |name, text| Packet::of(name, &parse(text).unwrap());
        assert_eq!(of("skb:kfree_skb", text).map(Packet::cookie), Some(2 << 48 | 6 << 56));
        assert_eq!(of("net:net_dev_xmit", text), None, "the packet may be gone");
        let older = text.split_once("\n").unwrap().0;
        assert_eq!(of("skb:kfree_skb", older), Some(Packet { skb: 2, socket: 0 }));
        assert_eq!(of("skb:kfree_skb", "\tfield:u64 skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n"), None);
    }

    #[test]
    fn a_socket_is_named_or_nothing_is_said() {
        let inet = libc::AF_INET as u16;
        let mut udp = wire::Socket { sport: 53, ..facts("UDP", inet, 17) };
        udp.saddr[..4].copy_from_slice(&[127, 0, 0, 1]);
        let text = |text: &str| Some(Value::Text(text.into()));
        let number = |number| Some(Value::Number(number));
        let owner = Some((7, &b"dns"[..]));
        let expected =
            [text("UDP:[127.0.0.1:53]"), text("127.0.0.1:53"), None, number(17), number(7), text("dns"), None];
        assert_eq!(values(Some(&udp), owner), expected);
        assert_eq!(values(None, None), vec![None; COLUMNS.len()]);
        // closed: nobody's, and without an end
        assert_eq!(values(Some(&facts("UDP", inet, 0)), None), vec![None; COLUMNS.len()]);
        assert_eq!(values(Some(&facts("UDP", inet, 17)), None)[0], text("UDP:[17]"));
    }
}
