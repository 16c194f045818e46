//! One connection (or listening socket), as far as the tape has it.

use systape_format::model::Task;

use super::counts::TcpCounts;

/// Which side began it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// This side: its first change was to SYN_SENT.
    Connect,
    /// The other side: its first change was to SYN_RECV.
    Accept,
    /// A socket that waits for connections.
    Listen,
    /// Unknown: the beginning was not recorded.
    #[default]
    Unknown,
}

impl Direction {
    /// Name of the beginning.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Accept => "accept",
            Self::Listen => "listen",
            Self::Unknown => "?",
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionOutcome {
    /// Open until the end of the recording, in this state.
    Open(u8),
    /// Closed, this side first.
    Closed,
    /// Closed, the other side first.
    ClosedByPeer,
    /// Went from an open state straight to CLOSE: a reset was received or sent.
    Reset,
    /// Never established: refused, timed out or given up.
    Failed,
    /// Closed connection; the changes before were not recorded.
    #[default]
    Ended,
}

impl ConnectionOutcome {
    /// Name of the outcome; [`Self::Open`] is `open`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::Closed => "closed",
            Self::ClosedByPeer => "closed-by-peer",
            Self::Reset => "reset",
            Self::Failed => "failed",
            Self::Ended => "ended",
        }
    }
}

/// A connection. Times are ns of CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// The socket's number in the tape.
    pub socket: u64,
    /// The task that opened it: connected, began to listen, or accepted it according to a call. None also if that was
    /// before the recording.
    pub task: Option<Task>,
    /// AF_INET or AF_INET6.
    pub family: u16,
    /// Protocol, a number of IPPROTO_.
    pub protocol: u16,
    /// Local address, 4 or 16 bytes.
    pub laddr: Vec<u8>,
    /// Local port.
    pub lport: u16,
    /// Remote address.
    pub raddr: Vec<u8>,
    /// Remote port.
    pub rport: u16,
    /// Which side began it.
    pub direction: Direction,
    /// Time of the first change; None when that was before the tape's first events.
    pub start: Option<u64>,
    /// When it was established; None: never, or not recorded.
    pub established: Option<u64>,
    /// When it was closed; None: open at the end.
    pub end: Option<u64>,
    /// How it ended.
    pub outcome: ConnectionOutcome,
    /// Inode of its socket; 0 = not known.
    pub inode: u64,
    /// What it had done when the recording began; None: it began later, or it was not seen then.
    pub before: Option<TcpCounts>,
    /// What it had done when it was closed, or when the recording ended; None: not known.
    pub counts: Option<TcpCounts>,
}

/// What a connection did in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionTotals {
    /// Bytes sent, each counted once.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Segments sent again.
    pub retrans: u64,
    /// Whether it began before: what it did until it was first looked at is left out.
    pub at_least: bool,
}

/// How long a connection lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasted {
    /// Exact time, ns.
    Exact(u64),
    /// Lower bound, ns: it began before the recording, or was open at its end.
    AtLeast(u64),
    /// Not known.
    Unknown,
}

/// Bounds for connections whose beginning or end is not recorded.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionBounds {
    /// Start of the recording.
    pub open: u64,
    /// End of what is known.
    pub close: u64,
    /// Nothing is missing: a socket without a recorded beginning existed before, and one without an end is open.
    pub complete: bool,
    /// The recording was not cut off.
    pub ended: bool,
}

impl Connection {
    /// Duration of the connection.
    pub fn lasted(&self, window: ConnectionBounds) -> Lasted {
        match (self.start, self.end) {
            (Some(start), Some(end)) => Lasted::Exact(end.saturating_sub(start)),
            // with events missing it may have been closed long ago, or opened just before its first known change
            _ if !window.complete => Lasted::Unknown,
            (start, end) => {
                let (from, to) = (start.unwrap_or(window.open), end.unwrap_or(window.close));
                Lasted::AtLeast(to.saturating_sub(from))
            }
        }
    }

    /// What it did in the recording; None = not known.
    pub fn moved(&self) -> Option<ConnectionTotals> {
        let counts = self.counts?;
        let before = match (self.start, self.before) {
            (Some(_), _) => TcpCounts::default(),
            (None, Some(before)) => before,
            (None, None) => return None,
        };
        Some(ConnectionTotals {
            sent: counts.sent().saturating_sub(before.sent()),
            received: counts.received().saturating_sub(before.received()),
            retrans: counts.retrans.saturating_sub(before.retrans),
            at_least: self.start.is_none(),
        })
    }

    /// Whether it may have ended without a record.
    pub fn may_have_ended(&self, window: ConnectionBounds) -> bool {
        matches!(self.outcome, ConnectionOutcome::Open(_)) && !(window.complete && window.ended)
    }

    /// Whether it overlaps `from` ≤ t < `to`; an unknown time does not exclude it.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        self.start.is_none_or(|start| start < to) && self.end.is_none_or(|end| end >= from)
    }
}
