//! How many bytes a call moved: every report that adds up bytes asks here.
//!
//! Most calls return it. recvmmsg and sendmmsg return a number of messages instead, and what a receive with MSG_PEEK or
//! MSG_ERRQUEUE returns is no data taken from the socket: it is counted by the call that takes it. With MSG_TRUNC a receive returns how
//! long the message was, of which it copied no more than it had room for.

use systape_abi::ArgKind;
use systape_format::model::CallState;

use crate::calls::CallInfo;
use crate::load::Loaded;

/// A receive with it leaves the data on the socket.
const MSG_PEEK: u64 = 0x2;
/// A receive with it returns the whole length of what it cut.
const MSG_TRUNC: u64 = 0x20;
/// A receive with it takes a report of an error, with the packet that caused it.
const MSG_ERRQUEUE: u64 = 0x2000;

/// Bytes that a call moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// This many; 0 also if the call failed, did not return, or moves none.
    Exactly(u64),
    /// More bytes than these, or as many: how many more is not on the tape.
    AtLeast(u64),
}

impl Moved {
    /// The bytes that are known.
    #[inline]
    pub fn least(self) -> u64 {
        match self {
            Self::Exactly(bytes) | Self::AtLeast(bytes) => bytes,
        }
    }

    /// Whether there may be more.
    #[inline]
    pub fn is_short(self) -> bool {
        matches!(self, Self::AtLeast(_))
    }

    /// What the call of `row` moved.
    #[inline]
    pub fn by(segment: &Loaded, row: usize) -> Self {
        let (core, args) = (&segment.core, &segment.args);
        let ret = args.ret.get(row).copied();
        moved(segment.call(row), core.state[row], core.errno[row], ret, args.of(row))
    }
}

/// What a call moved that returned `ret`; None: what it returned, or its arguments, cannot be read.
pub fn moved(info: &CallInfo, state: CallState, errno: u16, ret: Option<i64>, args: Option<&[u64; 6]>) -> Moved {
    if !info.io.moves_bytes() || errno != 0 || !state.returned() {
        return Moved::Exactly(0);
    }
    match (takes(info, state, args), ret) {
        (ReceiveTakes::Nothing, _) => Moved::Exactly(0),
        (ReceiveTakes::Unknown, _) | (_, None) => Moved::AtLeast(0),
        // no message, no byte
        (ReceiveTakes::Data, Some(messages)) if info.io.counts_messages() && messages > 0 => Moved::AtLeast(0),
        (ReceiveTakes::Data, Some(bytes)) if !info.io.counts_messages() => {
            let bytes = u64::try_from(bytes).unwrap_or(0);
            match room(info, state, args) {
                Room::Returned => Moved::Exactly(bytes),
                Room::UpTo(most) => Moved::Exactly(bytes.min(most)),
                Room::Unknown if bytes == 0 => Moved::Exactly(0),
                Room::Unknown => Moved::AtLeast(0),
            }
        }
        (ReceiveTakes::Data, Some(_)) => Moved::Exactly(0),
    }
}

/// Whether a receive takes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveTakes {
    /// Data is taken, or it is no receive.
    Data,
    /// No data is taken: it only looks, or takes a report of an error.
    Nothing,
    /// Flags of the call that are not known.
    Unknown,
}

/// Whether a call that succeeded took data, if it is a receive.
pub fn takes(info: &CallInfo, state: CallState, args: Option<&[u64; 6]>) -> ReceiveTakes {
    let Some(at) = flags_of_receive(info) else { return ReceiveTakes::Data };
    match args.map(|args| args[at]) {
        // without the enter they are not known
        _ if state == CallState::LostEnter => ReceiveTakes::Unknown,
        None => ReceiveTakes::Unknown,
        Some(flags) if flags & (MSG_PEEK | MSG_ERRQUEUE) != 0 => ReceiveTakes::Nothing,
        Some(_) => ReceiveTakes::Data,
    }
}

/// What a call could move.
enum Room {
    /// What it returned.
    Returned,
    /// A number of bytes at most.
    UpTo(u64),
    /// A part of that.
    Unknown,
}

/// That of a call which took data.
fn room(info: &CallInfo, state: CallState, args: Option<&[u64; 6]>) -> Room {
    match (flags_of_receive(info), args) {
        (Some(at), Some(args)) if state != CallState::LostEnter && args[at] & MSG_TRUNC != 0 => {
            let size = info.args.iter().take(at).position(|arg| matches!(arg.kind, ArgKind::Size));
            size.map_or(Room::Unknown, |size| Room::UpTo(args[size]))
        }
        _ => Room::Returned,
    }
}

/// The argument with the flags of a receive; None: it is none.
fn flags_of_receive(info: &CallInfo) -> Option<usize> {
    info.io.reads()?;
    info.args.iter().take(6).position(|arg| matches!(arg.kind, ArgKind::Flags(flags) if flags.prefix == "MSG_"))
}

#[cfg(test)]
mod tests {
    use systape_abi::{Abi, number};
    use systape_format::model::{Call, Session};

    use super::*;
    use crate::calls::CallBook;

    /// What a call moved that returned `ret` and whose fourth (of recvmsg: third) argument is `flags`.
    fn of(name: &str, state: CallState, ret: Option<i64>, flags: Option<u64>) -> Moved {
        let session = Session { machine: "x86_64".into(), ..Session::default() };
        let call = Call { abi: 1, nr: number(Abi::X86_64, name).unwrap() };
        let args = flags.map(|flags| if name == "recvmsg" { [3, 0, flags, 0, 0, 0] } else { [3, 0, 9, flags, 0, 0] });
        moved(&CallBook::new(&session).get(call), state, 0, ret, args.as_ref())
    }

    #[test]
    fn calls_that_take_data_return_its_size() {
        use CallState::{BeganBefore, Complete, InFlight, Killed};
        for name in ["read", "write", "recvfrom", "sendto", "recvmsg", "sendmsg", "sendfile", "splice"] {
            for state in [Complete, BeganBefore] {
                // MSG_PEEK is one only of a receive
                let other = if name.starts_with("recv") { 0x40 } else { 2 };
                assert_eq!(of(name, state, Some(7), Some(other)), Moved::Exactly(7), "{name} {state:?}");
            }
            assert_eq!(of(name, Complete, None, Some(0)), Moved::AtLeast(0), "{name}");
            assert_eq!(of(name, InFlight, None, Some(0)), Moved::Exactly(0), "{name}");
            assert_eq!(of(name, Killed, None, Some(0)), Moved::Exactly(0), "{name}");
        }
        assert_eq!(of("close", Complete, Some(7), Some(0)), Moved::Exactly(0));
    }

    #[test]
    fn looking_at_data_takes_none() {
        for name in ["recvfrom", "recvmsg", "recvmmsg"] {
            for flags in [MSG_PEEK, MSG_ERRQUEUE, MSG_PEEK | 0x40, 0xffff_0000_0000_2000] {
                assert_eq!(of(name, CallState::Complete, Some(7), Some(flags)), Moved::Exactly(0), "{name} {flags:#x}");
            }
            // whether it only looked is not known
            assert_eq!(of(name, CallState::Complete, Some(7), None), Moved::AtLeast(0), "{name}");
            assert_eq!(of(name, CallState::LostEnter, Some(7), Some(0)), Moved::AtLeast(0), "{name}");
        }
        assert_eq!(of("read", CallState::LostEnter, Some(7), None), Moved::Exactly(7));
    }

    #[test]
    fn what_a_receive_cut_it_did_not_move() {
        // room for 9 bytes; a message header says nothing of it
        assert_eq!(of("recvfrom", CallState::Complete, Some(1000), Some(MSG_TRUNC)), Moved::Exactly(9));
        assert_eq!(of("recvfrom", CallState::Complete, Some(7), Some(MSG_TRUNC)), Moved::Exactly(7));
        assert_eq!(of("recvmsg", CallState::Complete, Some(1000), Some(MSG_TRUNC)), Moved::AtLeast(0));
        assert_eq!(of("recvmsg", CallState::Complete, Some(0), Some(MSG_TRUNC)), Moved::Exactly(0));
        assert_eq!(of("recvfrom", CallState::Complete, Some(1000), Some(MSG_TRUNC | MSG_PEEK)), Moved::Exactly(0));
    }

    #[test]
    fn a_number_of_messages_is_none_of_bytes() {
        for name in ["recvmmsg", "sendmmsg"] {
            assert_eq!(of(name, CallState::Complete, Some(7), Some(0)), Moved::AtLeast(0), "{name}");
            assert_eq!(of(name, CallState::Complete, Some(0), Some(0)), Moved::Exactly(0), "{name}");
        }
    }

    #[test]
    fn an_error_moves_nothing() {
        let session = Session { machine: "x86_64".into(), ..Session::default() };
        let read = CallBook::new(&session).get(Call { abi: 1, nr: 0 });
        assert_eq!(moved(&read, CallState::Complete, 11, None, None), Moved::Exactly(0));
    }
}
