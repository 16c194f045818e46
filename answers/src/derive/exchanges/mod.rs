//! Exchanges on connections: what one end asked, and what the other one answered, put together from calls that read and write.
//!
//! At the end that accepted a connection an exchange is from its first read with bytes after a write to its last write before the next
//! read; at the end that connected, from its first write after a read to its last read before the next write. The calls do not know the
//! protocol: requests that are sent at once (pipelining), or side by side in one connection (HTTP/2), are one exchange or several by
//! chance. So they are called exchanges. Of TCP segments say when the first bytes came, how long the last ones were held back, and when
//! the other end had them all.
//!
//! [`ends`] knows the names of ends, [`read`] makes steps of a tape's calls and other events, [`track`] follows them in order of time with
//! bounded memory, whichever threads and processes take part, and by whatever descriptors. [`sums`] adds exchanges up.

pub mod ends;
pub mod read;
pub mod sums;
pub mod track;

use std::sync::Arc;

use systape_format::model::Task;

use self::ends::StreamEnd;

/// Which end of a connection it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EndSide {
    /// The end that accepted.
    Server,
    /// The end that connected.
    Client,
    /// Not known.
    #[default]
    Unknown,
}

/// A thread that reads or writes.
#[derive(Debug)]
pub struct Mover {
    /// The thread.
    pub task: Task,
    /// The thread passes the filters of the question.
    pub passes: bool,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes that are known.
    pub bytes: u64,
    /// There may be more.
    pub short: bool,
}

impl Amount {
    /// Adds another amount.
    pub fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.short |= other.short;
    }
}

/// Why an exchange has no times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutShort {
    /// The beginning may not be on the tape: it was under way when the recording of its connection began.
    Begin,
    /// The exchange was under way at the end of the tape.
    End,
    /// Calls of it may be lost.
    Gap,
    /// Two connections had the same addresses at once, in two network namespaces.
    Mixed,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A call failed with this error.
    Failed(u16),
    /// The end that was asked closed the connection, or its process ended, without a byte; at the client: the connection ended so.
    Unanswered,
}

/// One exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The end of the connection that it was seen at.
    pub end: Arc<StreamEnd>,
    /// Which end that is.
    pub side: EndSide,
    /// When it began, ns: at a server when the first read returned, at a client when the first write began.
    pub begin: u64,
    /// When the last read, or write, before the answer returned.
    pub asked: u64,
    /// When the answer began and ended: at a server from the beginning of the first write, at a client from the return of the first
    /// read; None: there was none.
    pub answer: Option<(u64, u64)>,
    /// What came in.
    pub received: Amount,
    /// What went out.
    pub sent: Amount,
    /// What went wrong; None: nothing that calls say.
    pub trouble: Option<Trouble>,
    /// Why it has no times; None: it has.
    pub cut: Option<CutShort>,
    /// Who made the first call.
    pub first: Arc<Mover>,
    /// Who made the first call of the answer; None: there is none.
    pub second: Option<Arc<Mover>>,
    /// Time to connect, at a client, for the first exchange of a connection, at a server the time until it was accepted; None: it is not the
    /// first, or that is not known.
    pub connect: Option<u64>,
    /// A thread that took part passes the filters.
    pub passes: bool,
    /// Path of the socket that a client connected to; empty: none, or not known.
    pub to: Arc<[u8]>,
    /// When the first bytes of what was asked came, at a server; None: not known, as of a UNIX socket.
    pub arrived: Option<u64>,
    /// When the last write of the answer began, at a server; 0: there was none.
    pub wrote: u64,
    /// What became of the answer, at a server; None: not known.
    pub sent_off: Option<SentOff>,
}

/// What became of what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentOff {
    /// When the last segment of it could leave that was held back; None: none was.
    pub freed: Option<u64>,
    /// When the other end had all of it; None: not known.
    pub acked: Option<u64>,
}

/// How long the parts of an exchange took, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Time from the beginning to the end of what was asked: at a server the client's, at a client its own.
    pub asking: u64,
    /// Time from there to the beginning of the answer.
    pub between: u64,
    /// Time from there to its end.
    pub answering: u64,
    /// Time before all that, from when the first bytes came, at a server; None: not known.
    pub queued: Option<u64>,
    /// Time behind all that, until the last byte could leave, at a server; None: not known.
    pub held: Option<u64>,
    /// Time behind the writes until the other end had all of it, at a server; None: not known. It is no part of the whole.
    pub drain: Option<u64>,
}

impl Phases {
    /// All of them together, as far as known.
    pub fn whole(&self) -> u64 {
        let parts = [self.queued.unwrap_or(0), self.asking, self.between, self.answering, self.held.unwrap_or(0)];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl Exchange {
    /// Times of the exchange; None: they are not known, or there was no answer.
    pub fn phases(&self) -> Option<Phases> {
        let (from, to) = self.answer.filter(|_| self.cut.is_none())?;
        let behind = |ts: u64| ts.saturating_sub(to);
        Some(Phases {
            asking: self.asked.saturating_sub(self.begin),
            between: from.saturating_sub(self.asked),
            answering: to.saturating_sub(from),
            queued: self.arrived.map(|arrived| self.begin.saturating_sub(arrived)),
            held: self.sent_off.map(|off| off.freed.map_or(0, behind)),
            drain: self.sent_off.and_then(|off| off.acked).map(behind),
        })
    }

    /// When it began: at a server when its bytes came, if that is known, else when they were read.
    pub fn since(&self) -> u64 {
        self.arrived.unwrap_or(self.begin)
    }

    /// The thread that answers for it: at a server who wrote the answer first, at a client who asked.
    pub fn actor(&self) -> &Arc<Mover> {
        match self.side {
            EndSide::Client => &self.first,
            _ => self.second.as_ref().unwrap_or(&self.first),
        }
    }

    /// When it ended, as far as known.
    pub fn last(&self) -> u64 {
        self.answer.map_or(self.asked, |(_, to)| to)
    }
}
