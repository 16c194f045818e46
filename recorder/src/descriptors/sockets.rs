//! What sockets are called, now and a moment ago: `TCP:[10.0.0.1:40002->10.0.0.2:443]`, in the words of `strace -yy`.
//!
//! Plain values in, plain values out. A socket has one name, whatever descriptors it has in whatever processes. It is
//! known by its inode, which is its own for as long as it exists. The kernel side reads its facts when a call returns
//! that may have changed them. A connection that ended keeps its name.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::{Rc, Weak};

use rustc_hash::FxHashMap;
use systape_abi::descriptors::SocketUse;
use systape_bpf::wire;
use systape_format::sockets::namespace_suffix;

use crate::descriptors::names::{Name, Names};

const AF_UNIX: u16 = libc::AF_UNIX as u16;
const AF_INET: u16 = libc::AF_INET as u16;
const AF_INET6: u16 = libc::AF_INET6 as u16;
const AF_NETLINK: u16 = libc::AF_NETLINK as u16;

/// All sockets that a descriptor stands for.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    known: FxHashMap<u64, Weak<Name>>,
    /// With so many, those that are gone are dropped.
    sweep_at: usize,
}

impl Sockets {
    /// The file behind a name of /proc/PID/fd.
    pub(crate) fn file(&mut self, name: &[u8]) -> Rc<Name> {
        match inode_of(name) {
            Some(inode) => self.socket(inode),
            None => Name::new(name.to_vec()),
        }
    }

    /// The socket of an inode, if a descriptor stands for it.
    pub(crate) fn find(&self, inode: u64) -> Option<Rc<Name>> {
        self.known.get(&inode).and_then(Weak::upgrade)
    }

    fn socket(&mut self, inode: u64) -> Rc<Name> {
        self.find(inode).unwrap_or_else(|| self.new_socket(inode))
    }

    fn new_socket(&mut self, inode: u64) -> Rc<Name> {
        const LEAST: usize = 1024;
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, socket| socket.strong_count() > 0);
            self.sweep_at = LEAST.max(2 * self.known.len());
        }
        let socket = Name::socket(format!("socket:[{inode}]").into_bytes());
        self.known.insert(inode, Rc::downgrade(&socket));
        socket
    }

    /// The facts of a socket at `ts`; returns it, and whether it has a new name since.
    pub(crate) fn learn(&mut self, s: &wire::Socket, ts: u64, by: SocketUse) -> (Rc<Name>, bool) {
        let made = matches!(by, SocketUse::Makes | SocketUse::Accepts);
        let socket = if made { self.new_socket(s.inode) } else { self.socket(s.inode) };
        let renamed = socket.names.as_ref().is_some_and(|names| set(names, ts, s, by));
        if by == SocketUse::Accepts && s.family == AF_UNIX && s.peer != 0 {
            self.meet(s, ts);
        }
        (socket, renamed)
    }

    /// `s` was accepted: whoever connected has another end from then on.
    fn meet(&self, s: &wire::Socket, ts: u64) {
        let Some(other) = self.find(s.peer) else { return };
        let Some(names) = &other.names else { return };
        let alone = names.alone.borrow_mut().take();
        if let Some(alone) = alone {
            set(names, ts, &wire::Socket { peer: s.inode, ..*alone }, SocketUse::Names);
        }
    }
}

/// The facts of a socket at `ts`, which a call read that is `by`: a name is not replaced by one that says less if it only uses the
/// socket. Returns whether it has a new name.
fn set(names: &Names, ts: u64, s: &wire::Socket, by: SocketUse) -> bool {
    let (text, ends) = text(s);
    let last = names.last();
    if by == SocketUse::Uses && last.is_some() && ends < names.ends.get() {
        return false;
    }
    names.ends.set(ends);
    *names.alone.borrow_mut() = (s.family == AF_UNIX && s.peer == 0).then(|| Box::new(*s));
    if last.is_some_and(|last| last.bytes == text) {
        return false;
    }
    names.push(ts, Some(Name::new(text)));
    true
}

/// The inode of `socket:[17]`.
fn inode_of(name: &[u8]) -> Option<u64> {
    let number = name.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The parts of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketParts {
    /// The protocol as `strace -yy` has it; `socket` = one it has no word for.
    pub protocol: &'static str,
    /// Address and port it is bound to, of netlink protocol and port; empty = none.
    pub local: String,
    /// What it is connected to.
    pub remote: String,
    /// The path it is bound to, as it is quoted in the name; empty = none.
    pub path: String,
}

/// The parts of the name of a socket with these facts.
pub(crate) fn parts(s: &wire::Socket) -> SocketParts {
    let mut parts = SocketParts { protocol: "socket", ..SocketParts::default() };
    let raw: Vec<u8> = s.proto.iter().map(|c| c.cast_unsigned()).take_while(|c| *c != 0).collect();
    let Some((_, word, has_ends)) = PROTOCOLS.iter().find(|(name, ..)| name.as_bytes() == raw) else { return parts };
    parts.protocol = word;
    let inet = matches!(s.family, AF_INET | AF_INET6);
    if inet && *has_ends && s.sport != 0 {
        parts.local = end(s.family, &s.saddr, s.sport);
        if s.dport != 0 {
            parts.remote = end(s.family, &s.daddr, s.dport);
        }
    } else if s.family == AF_NETLINK && s.portid != 0 {
        if let Some(name) = NETLINK.get(usize::from(s.protocol)).filter(|name| !name.is_empty()) {
            parts.local = format!("{name}:{}", s.portid);
        }
    } else if s.family == AF_UNIX && s.path_len > 0 {
        parts.path = quoted(&s.path[..usize::from(s.path_len).min(s.path.len())]);
    } else if raw == b"UDP-Lite" {
        parts.protocol = "socket";
    }
    parts
}

/// The name of a socket with these facts, and how many of its ends that says: 2 if it has another.
pub(crate) fn text(s: &wire::Socket) -> (Vec<u8>, u8) {
    let SocketParts { protocol, local, remote, path } = parts(s);
    let known = match (s.peer != 0 || !remote.is_empty(), local.is_empty() && path.is_empty()) {
        (true, _) => 2,
        (false, is_number) => u8::from(!is_number),
    };
    let mut ends = local;
    if !remote.is_empty() {
        ends.push_str("->");
        ends.push_str(&remote);
    }
    // those of a number are the same in no other namespace
    let namespace = namespace_suffix(Some(s.namespace).filter(|number| *number != 0 && !ends.is_empty()));
    if ends.is_empty() {
        ends = s.inode.to_string();
        if s.peer != 0 {
            let _ = write!(ends, "->{}", s.peer);
        }
    }
    if !path.is_empty() {
        ends.push(',');
        ends.push_str(&path);
    }
    (format!("{protocol}:[{ends}]{namespace}").into_bytes(), known)
}

/// The kernel's names of protocols, those of `strace -yy`, and whether it says their ends.
const PROTOCOLS: &[(&str, &str, bool)] = &[
    ("TCP", "TCP", true),
    ("TCPv6", "TCPv6", true),
    ("UDP", "UDP", true),
    ("UDPv6", "UDPv6", true),
    ("UDP-Lite", "UDPLITE", true),
    ("UDPLITEv6", "UDPLITEv6", true),
    ("RAW", "RAW", false),
    ("RAWv6", "RAWv6", false),
    ("PING", "PING", false),
    ("PINGv6", "PINGv6", false),
    ("UNIX", "UNIX", true),
    ("UNIX-STREAM", "UNIX-STREAM", true),
    ("NETLINK", "NETLINK", true),
];

/// include/uapi/linux/netlink.h
const NETLINK: &[&str] = &[
    "ROUTE",
    "UNUSED",
    "USERSOCK",
    "FIREWALL",
    "SOCK_DIAG",
    "NFLOG",
    "XFRM",
    "SELINUX",
    "ISCSI",
    "AUDIT",
    "FIB_LOOKUP",
    "CONNECTOR",
    "NETFILTER",
    "IP6_FW",
    "DNRTMSG",
    "KOBJECT_UEVENT",
    "GENERIC",
    "",
    "SCSITRANSPORT",
    "ECRYPTFS",
    "RDMA",
    "CRYPTO",
    "SMC",
];

/// An address and a port as text.
pub(crate) fn end(family: u16, address: &[u8; 16], port: u16) -> String {
    if family == AF_INET6 {
        format!("[{}]:{port}", Ipv6Addr::from(*address))
    } else {
        let [a, b, c, d, ..] = *address;
        format!("{}:{port}", Ipv4Addr::new(a, b, c, d))
    }
}

/// A path as a C string; an abstract one, which begins with NUL, has `@` before it.
fn quoted(path: &[u8]) -> String {
    let (at, path) = match path.split_first() {
        Some((0, name)) => ("@", name),
        _ => ("", path.split(|byte| *byte == 0).next().unwrap_or_default()),
    };
    let mut out = format!("{at}\"");
    for (i, byte) in path.iter().enumerate() {
        let _ = match byte {
            b'"' | b'\\' => write!(out, "\\{}", char::from(*byte)),
            b'\n' => write!(out, "\\n"),
            b'\r' => write!(out, "\\r"),
            b'\t' => write!(out, "\\t"),
            0x0b => write!(out, "\\v"),
            0x0c => write!(out, "\\f"),
            b' '..=b'~' => write!(out, "{}", char::from(*byte)),
            // a digit behind it would be taken for one of the number's
            _ if path.get(i + 1).is_some_and(|next| next.is_ascii_digit()) => write!(out, "\\{byte:03o}"),
            _ => write!(out, "\\{byte:o}"),
        };
    }
    out.push('"');
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Facts of a socket of this protocol, by the kernel's name.
    pub(crate) fn facts(proto: &str, family: u16, inode: u64) -> wire::Socket {
        let mut s = wire::Socket { family, inode, ..wire::Socket::default() };
        for (to, from) in s.proto.iter_mut().zip(proto.bytes()) {
            *to = from.cast_signed();
        }
        s
    }

    fn unix(inode: u64, peer: u64, path: &[u8]) -> wire::Socket {
        let mut s = wire::Socket { peer, path_len: path.len() as u16, ..facts("UNIX-STREAM", AF_UNIX, inode) };
        s.path[..path.len()].copy_from_slice(path);
        s
    }

    fn tcp(inode: u64, sport: u16, dport: u16) -> wire::Socket {
        let mut s = wire::Socket { sport, dport, ..facts("TCP", AF_INET, inode) };
        s.saddr[..4].copy_from_slice(&[10, 0, 0, 1]);
        s.daddr[..4].copy_from_slice(&[10, 0, 0, 2]);
        s
    }

    fn called(s: &wire::Socket) -> String {
        String::from_utf8(text(s).0).unwrap()
    }

    fn at(socket: &Name, ts: u64) -> String {
        let names = socket.names.as_ref().unwrap();
        names.at(ts).map_or_else(|| "?".into(), |name| String::from_utf8(name.bytes.clone()).unwrap())
    }

    #[test]
    fn names_are_those_of_strace() {
        assert_eq!(called(&tcp(7, 0, 0)), "TCP:[7]");
        assert_eq!(called(&tcp(7, 80, 0)), "TCP:[10.0.0.1:80]");
        assert_eq!(called(&tcp(7, 40002, 443)), "TCP:[10.0.0.1:40002->10.0.0.2:443]");
        let elsewhere = wire::Socket { namespace: 4_026_532_280, ..tcp(7, 80, 0) };
        assert_eq!(called(&elsewhere), "TCP:[10.0.0.1:80]@4026532280");
        assert_eq!(called(&wire::Socket { namespace: 4_026_532_280, ..tcp(7, 0, 0) }), "TCP:[7]", "no address");
        let mut six = wire::Socket { sport: 80, dport: 81, ..facts("TCPv6", AF_INET6, 7) };
        six.saddr[15] = 1;
        six.daddr[10..].copy_from_slice(&[255, 255, 127, 0, 0, 1]);
        assert_eq!(called(&six), "TCPv6:[[::1]:80->[::ffff:127.0.0.1]:81]");
        assert_eq!(called(&unix(7, 0, b"")), "UNIX-STREAM:[7]");
        assert_eq!(called(&unix(7, 8, b"/run/x\0")), "UNIX-STREAM:[7->8,\"/run/x\"]");
        assert_eq!(called(&unix(7, 0, b"\0\xff\xfe x'\\\n\x010z")), "UNIX-STREAM:[7,@\"\\377\\376 x'\\\\\\n\\0010z\"]");
        let route = wire::Socket { portid: 3_260_042_633, ..facts("NETLINK", AF_NETLINK, 7) };
        assert_eq!(called(&route), "NETLINK:[ROUTE:3260042633]");
        assert_eq!(called(&facts("NETLINK", AF_NETLINK, 7)), "NETLINK:[7]");
        assert_eq!(called(&wire::Socket { sport: 1, ..facts("RAW", AF_INET, 7) }), "RAW:[7]");
        assert_eq!(called(&wire::Socket { sport: 1, ..facts("UDP-Lite", AF_INET, 7) }), "UDPLITE:[0.0.0.0:1]");
        assert_eq!(called(&facts("UDP-Lite", AF_INET, 7)), "socket:[7]");
        assert_eq!(called(&facts("PACKET", 17, 7)), "socket:[7]");
    }

    #[test]
    fn a_socket_has_one_name_at_a_time() {
        let mut sockets = Sockets::default();
        let (socket, renamed) = sockets.learn(&tcp(7, 0, 0), 10, SocketUse::Makes);
        assert!(renamed);
        sockets.learn(&tcp(7, 40002, 443), 20, SocketUse::Names);
        assert!(Rc::ptr_eq(&socket, &sockets.file(b"socket:[7]")));
        assert_eq!(
            [9, 10, 19, 20].map(|ts| at(&socket, ts)),
            ["?", "TCP:[7]", "TCP:[7]", &called(&tcp(7, 40002, 443))]
        );
        // the other end closed it: it is still that connection
        assert!(!sockets.learn(&tcp(7, 0, 0), 30, SocketUse::Uses).1);
        assert_eq!(at(&socket, 40), "TCP:[10.0.0.1:40002->10.0.0.2:443]");
        sockets.learn(&tcp(7, 0, 0), 50, SocketUse::Names);
        assert_eq!(at(&socket, 50), "TCP:[7]");
        socket.names.as_ref().unwrap().forget(60);
        assert_eq!(at(&socket, 60), "?");
    }

    #[test]
    fn a_number_that_is_used_again_is_another_socket() {
        let mut sockets = Sockets::default();
        let (first, _) = sockets.learn(&tcp(7, 80, 0), 10, SocketUse::Makes);
        let (second, _) = sockets.learn(&tcp(7, 0, 0), 20, SocketUse::Makes);
        assert_eq!((at(&first, 30), at(&second, 30)), ("TCP:[10.0.0.1:80]".into(), "TCP:[7]".into()));
    }

    #[test]
    fn who_connected_has_another_end_once_accepted() {
        let mut sockets = Sockets::default();
        let (client, _) = sockets.learn(&unix(1, 0, b""), 10, SocketUse::Makes);
        sockets.learn(&unix(1, 0, b""), 20, SocketUse::Names);
        sockets.learn(&unix(2, 1, b"/run/x\0"), 30, SocketUse::Accepts);
        assert_eq!((at(&client, 29), at(&client, 30)), ("UNIX-STREAM:[1]".into(), "UNIX-STREAM:[1->2]".into()));
        // it is closed: what it was connected to stays
        let server = sockets.learn(&unix(2, 0, b"/run/x\0"), 40, SocketUse::Uses).0;
        assert_eq!(server.bytes, b"socket:[2]");
        let (server, _) = sockets.learn(&unix(3, 1, b"/run/x\0"), 50, SocketUse::Accepts);
        assert!(!sockets.learn(&unix(3, 0, b"/run/x\0"), 60, SocketUse::Uses).1);
        assert_eq!(at(&server, 60), "UNIX-STREAM:[3->1,\"/run/x\"]");
    }

    #[test]
    fn those_that_are_gone_take_no_room() {
        let mut sockets = Sockets::default();
        for inode in 0..100_000 {
            sockets.file(format!("socket:[{inode}]").as_bytes());
        }
        assert!(sockets.known.len() <= 1024, "{}", sockets.known.len());
        assert!(sockets.find(1).is_none() && inode_of(b"socket:[x]").is_none() && inode_of(b"/a").is_none());
    }
}
