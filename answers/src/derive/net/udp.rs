//! What was sent and received through UDP sockets: sums of calls by process, local end and peer.
//!
//! UDP has no connections and its sockets no states. A socket's name says which end is its own and, if it is connected,
//! the other one; of an unconnected one the address in the call's arguments says it. Who the peer of a call without either
//! is (`recvmsg`, `recvmmsg`), is not known.

use std::sync::Arc;

use systape_abi::uapi::{AF_INET, AF_INET6};
use systape_abi::{ArgKind, ContentIo, is_restart};
use systape_format::families::SOCKET_NAME;
use systape_format::model::{ByteStatus, CallState, Dict, Task};
use systape_format::reader::Segment;
use systape_format::redact::PLACEHOLDER;
use systape_format::{Error, sockets};

use super::words::endpoint;
use systape_events::calls::CallInfo;
use systape_events::filter::failed;
use systape_events::group::Add;
use systape_events::group::value::{Key, Value};
use systape_events::load::{FdPath, Loaded};
use systape_events::moved::{ReceiveTakes, moved, takes};

/// `EAGAIN`: nothing is there yet. That is no error.
const EAGAIN: u16 = 11;
/// `ECONNREFUSED`: the peer said that nobody listens.
const ECONNREFUSED: u16 = 111;

/// Places of the parts of a key.
pub const PROCESS: usize = 0;
/// `UDP`, `UDPv6`, …
pub const PROTOCOL: usize = 1;
/// The local end as text; until all names are read the number of a socket that had none.
pub const LOCAL: usize = 2;
/// The other end as text.
pub const PEER: usize = 3;

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// A UDP socket.
    Udp(Name<'a>),
    /// A socket that may be one.
    Unknown,
    /// A socket that is none.
    Other,
}

/// The name of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// `UDP`, `UDPv6`, …
    pub protocol: &'a [u8],
    /// End of the socket itself.
    pub local: LocalEnd<'a>,
    /// What it is connected to.
    pub peer: Option<&'a [u8]>,
}

/// A socket's own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalEnd<'a> {
    /// Address and port.
    End(&'a [u8]),
    /// No name yet: the number of its inode.
    Number(u64),
}

/// What the name of a descriptor says.
pub fn named(name: &[u8]) -> Named<'_> {
    // of a redacted one nothing is known; tapes before 1.5 name each socket by its number
    if name.starts_with(b"<redacted") || name.starts_with(b"socket:[") {
        return Named::Unknown;
    }
    let Some((protocol, inside)) = sockets::split(name).filter(|(word, _)| word.starts_with(b"UDP")) else {
        return Named::Other;
    };
    let number = std::str::from_utf8(inside).ok().and_then(|inside| inside.parse().ok());
    let (local, peer) = sockets::ends(inside);
    Named::Udp(Name { protocol, local: number.map_or(LocalEnd::End(local), LocalEnd::Number), peer })
}

/// Messages and bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Number of messages.
    pub messages: u64,
    /// There may be more.
    pub messages_short: bool,
    /// Bytes of the messages.
    pub bytes: u64,
    /// There may be more.
    pub bytes_short: bool,
}

impl Way {
    fn add(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.messages_short |= other.messages_short;
        self.bytes_short |= other.bytes_short;
    }
}

/// What a process sent to a peer and received from it.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// Whose call was the first; None: of no call yet.
    pub task: Option<Task>,
    /// When the first call began, ns, and whether it may have been before.
    pub first: Option<u64>,
    /// Whether `first` is from before.
    pub first_before: bool,
    /// When the last call returned, ns.
    pub last: Option<u64>,
    /// Messages to the peer.
    pub sent: Way,
    /// Messages from the peer.
    pub received: Way,
    /// Calls that failed; one that found nothing to do (`EAGAIN`) is none.
    pub errors: u64,
    /// Number of these that were refused.
    pub refused: u64,
}

impl Add for Talk {
    fn add(&mut self, other: &Self) {
        let key = |talk: &Self| (talk.first.unwrap_or(u64::MAX), talk.task.as_ref().map(|task| task.tid));
        if self.task.is_none() || key(other) < key(self) {
            self.task.clone_from(&other.task);
        }
        self.first_before |= other.first_before;
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self.sent.add(&other.sent);
        self.received.add(&other.received);
        self.errors = self.errors.saturating_add(other.errors);
        self.refused = self.refused.saturating_add(other.refused);
    }
}

impl Talk {
    /// What a call through the descriptor that it writes to (`sends`) or reads from did; None: it neither sent nor
    /// received nor failed.
    pub fn of(
        info: &CallInfo,
        sends: bool,
        state: CallState,
        errno: u16,
        ret: Option<i64>,
        args: Option<&[u64; 6]>,
    ) -> Option<Self> {
        let mut talk = Self::default();
        if failed(state, errno) {
            if errno == EAGAIN {
                return None;
            }
            (talk.errors, talk.refused) = (1, u64::from(errno == ECONNREFUSED));
            return Some(talk);
        }
        if !state.returned() || is_restart(errno) {
            return None;
        }
        let taken = takes(info, state, args);
        if taken == ReceiveTakes::Nothing {
            return None;
        }
        let moved = moved(info, state, errno, ret, args);
        let messages = match (taken, info.io, ret) {
            (ReceiveTakes::Unknown, ..) | (.., None) => None,
            (_, ContentIo::ReadMessages(_) | ContentIo::WriteMessages(_), Some(count)) => u64::try_from(count).ok(),
            // how many messages it makes of the bytes is the kernel's choice; read of no byte takes none
            (_, ContentIo::Copy { .. }, _) => None,
            (_, _, Some(0)) if !info.name.starts_with("recv") && !info.name.starts_with("send") => None,
            _ => Some(1),
        };
        let way = Way {
            messages: messages.unwrap_or(0),
            messages_short: messages.is_none(),
            bytes: moved.least(),
            bytes_short: moved.is_short(),
        };
        if sends {
            talk.sent = way;
        } else {
            talk.received = way;
        }
        Some(talk)
    }

    /// The same with who called, and when.
    fn by(self, segment: &Loaded, row: usize) -> Self {
        // one that may only have looked is no call of theirs
        let counts = takes(segment.call(row), segment.core.state[row], segment.args.of(row)) != ReceiveTakes::Unknown;
        let start = segment.time.start.get(row).copied().filter(|_| counts || self.errors > 0);
        Self {
            task: Some(segment.task(row).clone()),
            first: start,
            first_before: matches!(segment.core.state[row], CallState::BeganBefore | CallState::LostEnter),
            last: start.map(|start| start.saturating_add(segment.core.dur[row])),
            ..self
        }
    }
}

/// A call that sent or received.
#[derive(Debug)]
pub enum Found {
    /// Through a UDP socket.
    Talk(Key, Box<Talk>),
    /// Through a descriptor that may be one, by this process.
    Doubt(Value),
}

/// What the call of `row` did through a UDP socket, if it may have been one.
pub fn found(segment: &Loaded, row: usize) -> Option<Found> {
    let (info, state, errno) = (segment.call(row), segment.core.state[row], segment.core.errno[row]);
    let mut doubt = false;
    for (at, sends) in [(info.io.writes(), true), (info.io.reads(), false)] {
        match at.map_or(Named::Other, |at| socket(segment, row, at)) {
            Named::Udp(name) => {
                let (args, ret) = (segment.args.of(row), segment.args.ret.get(row).copied());
                let talk = Talk::of(info, sends, state, errno, ret, args)?;
                return Some(Found::Talk(key(segment, row, name), Box::new(talk.by(segment, row))));
            }
            Named::Unknown => doubt = true,
            Named::Other => {}
        }
    }
    let moves = doubt && errno == 0 && state.returned();
    moves.then(|| Found::Doubt(Value::process(segment.task(row))))
}

fn key(segment: &Loaded, row: usize, name: Name<'_>) -> Key {
    let text = |bytes: &[u8]| Value::Text(Arc::from(bytes));
    let local = match name.local {
        LocalEnd::End(end) => text(end),
        LocalEnd::Number(inode) => Value::Number(inode),
    };
    [Value::process(segment.task(row)), text(name.protocol), local, peer(segment, row, name.peer)].into_iter().collect()
}

/// What the descriptor in argument `at` stands for.
fn socket(segment: &Loaded, row: usize, at: usize) -> Named<'_> {
    match segment.fd_path(row, at) {
        FdPath::Known(name) => named(name),
        FdPath::Unknown => Named::Unknown,
        FdPath::None => Named::Other,
    }
}

/// The other end of a call on a socket that is connected to `connected`.
fn peer(segment: &Loaded, row: usize, connected: Option<&[u8]>) -> Value {
    let info = segment.call(row);
    let connected = || connected.map_or(Value::Unknown, |end| Value::Text(end.into()));
    let is_address = |kind| matches!(kind, ArgKind::SockaddrIn { .. } | ArgKind::SockaddrOut { .. });
    let Some(at) = info.args.iter().position(|arg| is_address(arg.kind)) else { return connected() };
    let value = segment.captured(row).iter().find(|value| usize::from(value.arg) == at);
    match value {
        Some(value) if value.status == ByteStatus::Redacted => Value::Text(PLACEHOLDER.into()),
        Some(value) if value.status.is_whole() => match ends(&value.bytes) {
            Some(text) => Value::Text(text.into_bytes().into()),
            None => Value::Unknown,
        },
        Some(_) => Value::Unknown,
        // a receive that failed has no address; neither has a call that was given no place for one
        None => {
            let sends = matches!(info.args[at].kind, ArgKind::SockaddrIn { .. });
            let known = segment.core.state[row] != CallState::LostEnter;
            let null = known && segment.args.of(row).is_some_and(|args| args[at] == 0);
            if null || (!sends && segment.core.errno[row] != 0) { connected() } else { Value::Unknown }
        }
    }
}

/// The address in a struct sockaddr_in or sockaddr_in6, as names of sockets have it.
fn ends(sockaddr: &[u8]) -> Option<String> {
    let family = u16::from_le_bytes(*sockaddr.first_chunk()?);
    let port = u16::from_be_bytes(sockaddr.get(2..4)?.try_into().ok()?);
    let address = match family {
        AF_INET => sockaddr.get(4..8)?,
        AF_INET6 => sockaddr.get(8..24)?,
        _ => return None,
    };
    Some(endpoint(address, port))
}

/// When a socket got an address, or that it had one when the recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// When, ns.
    pub ts: u64,
    /// Inode of the socket.
    pub inode: u64,
    /// `UDP`, `UDPv6`, …
    pub protocol: Vec<u8>,
    /// End of the socket itself.
    pub local: Vec<u8>,
    /// Whether it had it at the beginning.
    pub before: bool,
}

/// The rows about UDP sockets of the table `socket:name`.
///
/// # Errors
/// A block of the segment cannot be read.
pub fn bound(segment: &Segment<'_>, dict: &Dict) -> Result<Vec<Bound>, Error> {
    let mut found = Vec::new();
    for table in segment.tables(dict)?.iter().filter(|table| table.def.name == SOCKET_NAME.name) {
        let number = |column: &str, row: usize| table.column(column)?.get(row).copied();
        let text = |column: &str, row: usize| table.string(number(column, row)?).map(<[u8]>::to_vec);
        found.extend((0..table.ts.len()).filter_map(|row| {
            let protocol = text("protocol", row).filter(|protocol| protocol.starts_with(b"UDP"))?;
            let (ts, inode, local) = (table.ts[row], number("inode", row)?, text("local", row)?);
            Some(Bound { ts, inode, protocol, local, before: number("task", row)? == 0 })
        }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use systape_abi::{Abi, number};
    use systape_format::model::{Call, Session};

    use super::*;
    use systape_events::calls::CallBook;

    #[test]
    fn names_say_both_ends() {
        let udp = |protocol: &'static str, local, peer: Option<&'static str>| {
            Named::Udp(Name { protocol: protocol.as_bytes(), local, peer: peer.map(str::as_bytes) })
        };
        assert_eq!(named(b"UDP:[0.0.0.0:53]"), udp("UDP", LocalEnd::End(b"0.0.0.0:53"), None));
        assert_eq!(named(b"UDP:[1.1.1.1:1->2.2.2.2:2]"), udp("UDP", LocalEnd::End(b"1.1.1.1:1"), Some("2.2.2.2:2")));
        assert_eq!(named(b"UDPv6:[[::1]:1->[::2]:2]"), udp("UDPv6", LocalEnd::End(b"[::1]:1"), Some("[::2]:2")));
        assert_eq!(named(b"UDPLITE:[17]"), udp("UDPLITE", LocalEnd::Number(17), None));
        for other in ["TCP:[1.1.1.1:1]", "/UDP:[1]", "pipe:[1]", "NETLINK:[ROUTE:1]", "UDPX:[1]"] {
            assert_eq!(named(other.as_bytes()), Named::Other, "{other}");
        }
        for unknown in ["socket:[17]", "<redacted>", "<redacted 3>"] {
            assert_eq!(named(unknown.as_bytes()), Named::Unknown, "{unknown}");
        }
    }

    #[test]
    fn addresses_are_written_as_in_names() {
        assert_eq!(ends(&[2, 0, 0, 53, 10, 0, 0, 7, 0]).as_deref(), Some("10.0.0.7:53"));
        let mut six = vec![10, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];
        assert_eq!(ends(&six).as_deref(), Some("[::ffff:127.0.0.1]:53"));
        six.truncate(20);
        assert_eq!((ends(&six), ends(&[1, 0, 47, 97]), ends(&[])), (None, None, None));
    }

    /// What a call with these flags did; sends or receives by its name.
    fn of(name: &str, ret: i64, errno: u16, flags: u64) -> Option<Talk> {
        let session = Session { machine: "x86_64".into(), ..Session::default() };
        let info = CallBook::new(&session).get(Call { abi: 1, nr: number(Abi::X86_64, name).unwrap() });
        let args = if name == "recvmsg" { [3, 0, flags, 0, 0, 0] } else { [3, 0, 9, flags, 0, 0] };
        Talk::of(&info, info.io.writes().is_some(), CallState::Complete, errno, Some(ret), Some(&args))
    }

    fn way(messages: u64, bytes: u64) -> Way {
        Way { messages, bytes, ..Way::default() }
    }

    #[test]
    fn calls_are_messages() {
        let sent = |name: &str, ret| of(name, ret, 0, 0).unwrap().sent;
        let received = |name: &str, ret| of(name, ret, 0, 0).unwrap().received;
        for name in ["sendto", "sendmsg", "write", "writev"] {
            assert_eq!((sent(name, 7), received(name, 7)), (way(1, 7), Way::default()), "{name}");
        }
        for name in ["recvfrom", "recvmsg", "read"] {
            assert_eq!((received(name, 7), sent(name, 7)), (way(1, 7), Way::default()), "{name}");
        }
        assert_eq!((sent("sendto", 0), received("recvfrom", 0)), (way(1, 0), way(1, 0)), "empty ones");
        assert_eq!(received("read", 0), Way { messages_short: true, ..Way::default() }, "empty, or no room for one");
        assert_eq!(sent("sendmmsg", 3), Way { bytes_short: true, ..way(3, 0) });
        assert_eq!(received("recvmmsg", 3), Way { bytes_short: true, ..way(3, 0) });
        assert_eq!(sent("sendfile", 9), Way { messages_short: true, ..way(0, 9) });
    }

    #[test]
    fn what_neither_moves_nor_fails_is_none() {
        assert!(of("recvfrom", 7, 0, 2).is_none() && of("recvmsg", 7, 0, 0x2000).is_none());
        assert!(of("recvfrom", 0, EAGAIN, 0).is_none() && of("recvfrom", 0, 512, 0).is_none());
        let refused = of("sendto", 0, ECONNREFUSED, 0).unwrap();
        assert_eq!((refused.errors, refused.refused, refused.sent), (1, 1, Way::default()));
        // also of one that only looked
        assert_eq!(of("recvfrom", 0, 113, 2).map(|talk| (talk.errors, talk.refused)), Some((1, 0)));
    }

    #[test]
    fn the_first_call_says_whose_it_is() {
        let at = |ts, tid| Talk {
            first: Some(ts),
            last: Some(ts),
            task: Some(Task { tid, ..Task::default() }),
            ..Talk::default()
        };
        let mut talk = Talk::default();
        [at(20, 7), at(10, 9), at(10, 8)].iter().for_each(|other| talk.add(other));
        assert_eq!((talk.first, talk.last, talk.task.map(|task| task.tid)), (Some(10), Some(20), Some(8)));
    }
}
