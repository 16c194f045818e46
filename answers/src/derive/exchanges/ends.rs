//! The ends of connections, as names of descriptors have them: `TCP:[10.0.0.1:80->10.0.0.7:40002]`, `UNIX-STREAM:[17->18,"/run/x"]`.
//!
//! One end has one name in whatever processes and descriptors it is open. The other end has the same two addresses the other way round,
//! also where one program uses IPv6 sockets for IPv4 addresses.

use std::sync::Arc;

use systape_format::sockets::{self, address, port};

/// What a descriptor is to exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedSocket {
    /// An end of a connection.
    End(Arc<StreamEnd>),
    /// A stream socket without another end: it listens, or is not connected yet.
    Alone(Arc<Listener>),
    /// Perhaps an end of a connection: its name is not known, or hidden.
    Unknown,
    /// Something else: no connection of a stream.
    Other,
}

/// An end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEnd {
    /// Address and port of the end itself, of a UNIX socket its inode.
    pub local: Arc<[u8]>,
    /// Address and port of the other end, or its inode; empty: a UNIX socket that nobody has accepted yet.
    pub remote: Arc<[u8]>,
    /// Path of a UNIX socket, as names quote it: who accepts has that of the listener; empty: it has none.
    pub path: Arc<[u8]>,
    /// The end is a UNIX socket, not one of TCP.
    pub unix: bool,
    /// Network namespace of the addresses; None: that of process 1, or not known; nor has a UNIX socket's inode one.
    pub namespace: Option<u32>,
}

/// A stream socket that has no other end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listener {
    /// Address and port, or the path of a UNIX socket as names quote it.
    pub at: Arc<[u8]>,
    /// The listener is a UNIX socket.
    pub unix: bool,
    /// Network namespace, as of [`StreamEnd::namespace`].
    pub namespace: Option<u32>,
}

impl NamedSocket {
    /// What the descriptor of that name is.
    pub fn named(name: &[u8]) -> Self {
        if name.starts_with(b"<redacted") || name.starts_with(b"socket:[") {
            return Self::Unknown;
        }
        let Some((word, inside)) = sockets::split(name) else { return Self::Other };
        let (local, remote) = sockets::ends(inside);
        let namespace = sockets::namespace(name);
        match (word, remote) {
            (b"TCP" | b"TCPv6", Some(remote)) => {
                let (local, remote) = (plain(local), plain(remote));
                Self::End(Arc::new(StreamEnd { local, remote, path: Arc::default(), unix: false, namespace }))
            }
            // without an address it is its inode's number: it has none yet
            (b"TCP" | b"TCPv6", None) if local.contains(&b':') => {
                Self::Alone(Arc::new(Listener { at: plain(local), unix: false, namespace }))
            }
            (b"UNIX-STREAM", Some(remote)) => {
                let path = path(inside).into();
                Self::End(Arc::new(StreamEnd {
                    local: local.into(),
                    remote: remote.into(),
                    path,
                    unix: true,
                    namespace: None,
                }))
            }
            (b"UNIX-STREAM", None) if !path(inside).is_empty() => {
                Self::Alone(Arc::new(Listener { at: path(inside).into(), unix: true, namespace: None }))
            }
            // connected, but nobody has accepted it yet: it may be written to
            (b"UNIX-STREAM", None) => {
                let (path, remote) = Default::default();
                Self::End(Arc::new(StreamEnd { local: local.into(), remote, path, unix: true, namespace: None }))
            }
            _ => Self::Other,
        }
    }
}

/// The path in what is between the brackets of a UNIX socket's name, in its quotes; empty: there is none.
fn path(inside: &[u8]) -> &[u8] {
    inside.iter().position(|byte| *byte == b',').map_or(&[], |at| &inside[at + 1..])
}

/// An address of IPv4 in one of IPv6 as that of IPv4: `[::ffff:10.0.0.1]:80` is `10.0.0.1:80`.
fn plain(end: &[u8]) -> Arc<[u8]> {
    let mapped = end.strip_prefix(b"[::ffff:").and_then(|rest| {
        let close = rest.iter().position(|byte| *byte == b']')?;
        let (address, port) = (&rest[..close], &rest[close + 1..]);
        address.contains(&b'.').then(|| [address, port].concat())
    });
    mapped.map_or_else(|| end.into(), Arc::from)
}

/// The addresses of an end, of TCP both, of a UNIX socket its inode, because the other end becomes known late.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndAddresses(Arc<[u8]>, Arc<[u8]>);

impl EndAddresses {
    /// Address and port of the end itself, of a UNIX socket its inode.
    pub fn local(&self) -> &[u8] {
        &self.0
    }

    /// Addresses of the other end, of a TCP connection.
    #[must_use]
    pub fn turned(&self) -> Self {
        Self(Arc::clone(&self.1), Arc::clone(&self.0))
    }
}

/// What tells an end from all others: its addresses and their namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndKey {
    /// The addresses.
    pub addresses: EndAddresses,
    /// Network namespace, as of [`StreamEnd::namespace`].
    pub namespace: Option<u32>,
}

impl StreamEnd {
    /// The key of the end.
    pub fn key(&self) -> EndKey {
        let remote = if self.unix { Arc::default() } else { Arc::clone(&self.remote) };
        EndKey { addresses: EndAddresses(Arc::clone(&self.local), remote), namespace: self.namespace }
    }

    /// Addresses of the other end, which may be in another namespace; None: they are not known.
    pub fn other(&self) -> Option<EndAddresses> {
        let local = || if self.unix { Arc::default() } else { Arc::clone(&self.local) };
        (!self.remote.is_empty()).then(|| EndAddresses(Arc::clone(&self.remote), local()))
    }

    /// Port of the end; None: it is a UNIX socket.
    pub fn port(&self) -> Option<u16> {
        if self.unix { None } else { port(&self.local) }
    }

    /// The other end's port.
    pub fn remote_port(&self) -> Option<u16> {
        if self.unix { None } else { port(&self.remote) }
    }
}

/// A port of a namespace, by which a socket is found that had one before it connected; an inode's number is no such word.
fn port_key(end: &[u8], namespace: Option<u32>) -> Option<Arc<[u8]>> {
    Some(format!(":{}{}", port(end)?, sockets::namespace_suffix(namespace)).into_bytes().into())
}

impl StreamEnd {
    /// The port that a socket of TCP had before it was connected, as [`Listener::port_key`] has it; None: it is a UNIX socket.
    pub fn port_key(&self) -> Option<Arc<[u8]>> {
        port_key(&self.local, self.namespace).filter(|_| !self.unix)
    }
}

impl Listener {
    /// The port of a socket of TCP with its namespace; None: it is a UNIX socket.
    pub fn port_key(&self) -> Option<Arc<[u8]>> {
        port_key(&self.at, self.namespace).filter(|_| !self.unix)
    }

    /// Whether a connection to it has `end` at this side.
    pub fn accepts(&self, end: &StreamEnd) -> bool {
        match (self.unix, end.unix) {
            (true, true) => self.at == end.path,
            (false, false) if self.namespace == end.namespace => {
                let any = matches!(address(&self.at), b"0.0.0.0" | b"[::]" | b"*");
                port(&self.at) == port(&end.local) && (any || address(&self.at) == address(&end.local))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(name: &str) -> Arc<StreamEnd> {
        match NamedSocket::named(name.as_bytes()) {
            NamedSocket::End(end) => end,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn alone(name: &str) -> Arc<Listener> {
        match NamedSocket::named(name.as_bytes()) {
            NamedSocket::Alone(listener) => listener,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn both_ends_of_a_connection_find_each_other() {
        let server = end("TCPv6:[[::ffff:127.0.0.1]:8080->[::ffff:127.0.0.1]:40002]");
        let client = end("TCP:[127.0.0.1:40002->127.0.0.1:8080]");
        assert_eq!((server.other(), client.other()), (Some(client.key().addresses), Some(server.key().addresses)));
        assert_eq!((server.port(), server.remote_port()), (Some(8080), Some(40002)));
        let (server, client) = (end("UNIX-STREAM:[17->18,\"/run/a->b\"]"), end("UNIX-STREAM:[18->17]"));
        assert_eq!((server.other(), client.other()), (Some(client.key().addresses), Some(server.key().addresses)));
        let early = end("UNIX-STREAM:[18]");
        assert_eq!((early.key(), early.other()), (client.key(), None), "it is the same before somebody accepts it");
        assert_eq!((&*server.path, server.port()), (&b"\"/run/a->b\""[..], None));
        let elsewhere = end("TCP:[127.0.0.1:40002->127.0.0.1:8080]@4026532280");
        let here = end("TCP:[127.0.0.1:40002->127.0.0.1:8080]");
        assert_eq!((elsewhere.key().addresses, elsewhere.namespace), (here.key().addresses, Some(4_026_532_280)));
        assert_ne!(elsewhere.key(), here.key(), "equal addresses in two namespaces");
        let six = end("TCPv6:[[2001:db8::1]:443->[2001:db8::7]:5]");
        assert_eq!((six.port(), address(&six.local)), (Some(443), &b"[2001:db8::1]"[..]));
    }

    #[test]
    fn a_listener_knows_its_connections() {
        let (any, one) = (alone("TCP:[0.0.0.0:80]"), alone("TCP:[10.0.0.1:80]"));
        let (mine, other) = (end("TCP:[10.0.0.1:80->1.1.1.1:9]"), end("TCP:[10.0.0.2:80->1.1.1.1:9]"));
        assert!(any.accepts(&mine) && any.accepts(&other) && one.accepts(&mine) && !one.accepts(&other));
        assert!(!any.accepts(&end("TCP:[1.1.1.1:9->10.0.0.1:80]")), "a client's end");
        let six = alone("TCPv6:[[::]:80]");
        assert!(six.accepts(&mine) && six.accepts(&end("TCPv6:[[::1]:80->[::1]:7]")));
        let elsewhere = end("TCP:[10.0.0.1:80->1.1.1.1:9]@7");
        assert!(!any.accepts(&elsewhere) && alone("TCP:[0.0.0.0:80]@7").accepts(&elsewhere));
        let unix = alone("UNIX-STREAM:[9,\"/run/x\"]");
        assert!(unix.accepts(&end("UNIX-STREAM:[17->18,\"/run/x\"]")));
        assert!(!unix.accepts(&end("UNIX-STREAM:[18->17]")) && !unix.accepts(&mine));
    }

    #[test]
    fn what_is_no_stream_is_none() {
        for name in ["UDP:[1.1.1.1:5->2.2.2.2:6]", "/tmp/TCP:[1:2->3:4]", "pipe:[7]", "TCP:[17]", "UNIX:[17->18]"] {
            assert_eq!(NamedSocket::named(name.as_bytes()), NamedSocket::Other, "{name}");
        }
        for name in ["socket:[17]", "<redacted>"] {
            assert_eq!(NamedSocket::named(name.as_bytes()), NamedSocket::Unknown, "{name}");
        }
    }
}
