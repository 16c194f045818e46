//! Waits of clients for answers, for connections, and between attempts to connect; and for the other ends of pipes: who waits, in which call,
//! for whom.
//!
//! A wait in `poll` and the like says nothing about what it is for. What the thread does next does: it reads the answer to what it has sent
//! before. Only a client's own sockets count: a server that waits for the next request is at rest. [`read`] makes plain values of calls,
//! [`Talks`] follows them in order of their ends. Memory is bounded.

pub mod read;
pub mod together;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::Call;

use super::cpu::wider;

/// Shorter waits are left out, ns.
pub(super) const SHORT: u64 = 1_000_000;
/// Most sums.
const SUMS: usize = 1 << 14;
/// Most sockets and threads that are followed.
const FOLLOWED: usize = 1 << 16;
/// Most waits of a thread since it last read or sent.
const WAITS: usize = 8;
/// An answer so long after the second of two writes was held back until a delayed ACK came: 40 ms, and what a busy machine adds.
const DELAYED: std::ops::Range<u64> = 38_000_000..60_000_000;

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// The thread sent on this socket.
    Sends(Arc<[u8]>),
    /// The thread got something from this socket.
    Takes(Arc<[u8]>),
    /// The thread waited for one of several descriptors; true: until its time was up.
    Waits(bool),
    /// The thread slept as it asked.
    Sleeps,
    /// The thread waited for the end of this process, by the number that its caller has for it.
    Reaps(u32),
    /// The thread connected to this address.
    Connects(Arc<[u8]>, Connected),
    /// The thread waited for this pipe to have something, or room.
    Pipe(Arc<[u8]>, Way),
    /// A call on this file failed with this error.
    Fails(Arc<[u8]>, u16),
    /// The thread looked for this file, with this error.
    Misses(Arc<[u8]>, u16),
    /// The thread ended.
    Ends,
}

/// How an attempt to connect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connected {
    /// A connection.
    Yes,
    /// A connection that is under way.
    Later,
    /// No connection, with this error.
    No(u16),
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Something is taken from it.
    In,
    /// Something is given to it.
    Out,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Talker {
    /// Unique in the tape.
    pub key: u64,
    /// Pid of the process.
    pub pid: u32,
    /// Name of the thread.
    pub comm: Arc<[u8]>,
}

/// A call that ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Process of the waits.
    pub who: Talker,
    /// The thread.
    pub thread: u32,
    /// The call.
    pub call: Call,
    /// What it was.
    pub act: Act,
    /// When it began and ended.
    pub span: (u64, u64),
    /// Time of the wait without waits for a CPU, ns.
    pub ns: u64,
}

/// What was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum For {
    /// The answer to what was sent on this socket.
    Answer(Arc<[u8]>),
    /// The other side of a connection to this address to say that it is there.
    Connection(Arc<[u8]>),
    /// The time to try this address or file again, after this error.
    Retry(Arc<[u8]>, u16),
    /// The other end of a pipe.
    Pipe(Arc<[u8]>, Way),
    /// The ACK of the first of several writes to this socket, without which the kernel does not send the last.
    Ack(Arc<[u8]>),
}

/// Who waits, in which call, what for.
type Key = (Talker, Call, For);

/// Waits of one process in one call for one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TalkWait {
    /// How many.
    pub count: u64,
    /// Time in them, ns.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// The first and the last.
    pub span: Option<(u64, u64)>,
    /// Number of waits that were no different in form but were not as long as a delayed ACK makes them.
    pub others: u64,
}

impl TalkWait {
    /// One wait.
    fn once(span: (u64, u64), ns: u64) -> Self {
        Self { count: 1, ns, max: ns, span: Some(span), others: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        (self.ns, self.max) = (self.ns.saturating_add(other.ns), self.max.max(other.max));
        self.span = other.span.map_or(self.span, |(from, to)| wider(self.span, from, to));
    }
}

/// A socket of a client.
#[derive(Debug)]
struct Socket {
    /// When something was sent last.
    sent: u64,
    /// How often since the last answer; 0: it is answered.
    writes: u64,
    /// Whether the process sent first.
    client: bool,
}

/// A wait of a thread, not yet known for what.
#[derive(Debug)]
struct Open {
    call: Call,
    span: (u64, u64),
    ns: u64,
    timed_out: bool,
}

/// An attempt that failed.
#[derive(Debug)]
struct Failed {
    call: Call,
    to: Arc<[u8]>,
    errno: u16,
    since: u64,
    slept: u64,
}

/// What a thread is about.
#[derive(Debug, Default)]
struct ThreadTopic {
    open: Vec<Open>,
    /// The socket it sent on last.
    asked: Option<Arc<[u8]>>,
    connecting: Option<Arc<[u8]>>,
    /// The last attempt, and the last look for a file: who waits for a lock looks for other files meanwhile.
    failed: [Option<Failed>; 2],
    /// What it looks for, and the pauses.
    looks: Option<(Key, TalkWait)>,
}

impl ThreadTopic {
    /// It slept for so long.
    fn pauses(&mut self, ns: u64) {
        self.failed.iter_mut().flatten().for_each(|failed| failed.slept = failed.slept.saturating_add(ns));
    }

    /// It paused before it looks for the same again. Returns what it looked for before, if it went on to something else.
    fn looks_again(&mut self, key: Key, waited: TalkWait) -> Option<(Key, TalkWait)> {
        match &mut self.looks {
            Some((of, all)) if *of == key => {
                all.add(&waited);
                None
            }
            other => other.replace((key, waited)),
        }
    }
}

/// The machine.
#[derive(Debug, Default)]
pub struct Talks {
    /// Waits by process, call and what for.
    pub sums: FxHashMap<Key, TalkWait>,
    /// Time asleep as asked, by pid: it is part of what a server does for its answer, ns.
    pub slept: FxHashMap<u32, u64>,
    /// The last sleep of each process that slept, by pid.
    asleep: FxHashMap<u32, (u64, u64)>,
    sockets: FxHashMap<(u64, Arc<[u8]>), Socket>,
    threads: FxHashMap<u32, ThreadTopic>,
}

impl Talks {
    /// Adds a call.
    pub fn add(&mut self, said: &Said) {
        if self.threads.len() >= FOLLOWED && !self.threads.contains_key(&said.thread) {
            return;
        }
        match &said.act {
            Act::Sends(name) => self.sends(said, name),
            Act::Takes(name) => self.takes(said, name),
            Act::Waits(timed_out) => self.waits(said, *timed_out),
            Act::Sleeps => self.sleeps(said),
            Act::Reaps(child) => self.reaps(said, *child),
            Act::Connects(to, how) => self.connects(said, to, *how),
            Act::Fails(to, errno) => self.fails(said, to, *errno, false),
            Act::Misses(to, errno) => self.fails(said, to, *errno, true),
            Act::Ends => self.ends(said),
            Act::Pipe(name, way) => self.count(said, For::Pipe(Arc::clone(name), *way), said.span, said.ns),
        }
    }

    fn count(&mut self, said: &Said, what: For, span: (u64, u64), ns: u64) {
        self.sum((said.who.clone(), said.call, what), &TalkWait::once(span, ns));
    }

    fn sum(&mut self, key: Key, waited: &TalkWait) {
        if self.sums.len() < SUMS || self.sums.contains_key(&key) {
            self.sums.entry(key).or_default().add(waited);
        }
    }

    /// Counts `open` waits of the thread of `said` from `since` on.
    fn count_open(&mut self, said: &Said, open: Vec<Open>, what: &For, since: u64) {
        for wait in open {
            let (from, to) = (wait.span.0.max(since), wait.span.1);
            let ns = wait.ns.min(to.saturating_sub(from));
            if ns >= SHORT {
                let of = Said { call: wait.call, ..said.clone() };
                self.count(&of, what.clone(), (from, to), ns);
            }
        }
    }

    fn sends(&mut self, said: &Said, name: &Arc<[u8]>) {
        let at = (said.who.key, Arc::clone(name));
        let unanswered = self.sockets.get(&at).filter(|socket| socket.client && socket.writes > 0);
        let since = unanswered.map(|socket| socket.sent);
        let thread = self.threads.entry(said.thread).or_default();
        (thread.asked, thread.connecting) = (Some(Arc::clone(name)), None);
        let open = std::mem::take(&mut thread.open);
        // no answer came in time: it is asked again
        if let Some(since) = since {
            let in_vain = open.into_iter().filter(|wait| wait.timed_out).collect();
            self.count_open(said, in_vain, &For::Answer(Arc::clone(name)), since);
        }
        if self.sockets.len() >= FOLLOWED && !self.sockets.contains_key(&at) {
            self.sockets.retain(|_, socket| socket.writes > 0);
            if self.sockets.len() >= FOLLOWED {
                return;
            }
        }
        let socket = self.sockets.entry(at).or_insert(Socket { sent: 0, writes: 0, client: true });
        (socket.sent, socket.writes) = (said.span.1, socket.writes + 1);
    }

    fn takes(&mut self, said: &Said, name: &Arc<[u8]>) {
        let at = (said.who.key, Arc::clone(name));
        let thread = self.threads.entry(said.thread).or_default();
        let open = std::mem::take(&mut thread.open);
        if thread.asked.as_ref() == Some(name) {
            thread.asked = None;
        }
        let room = self.sockets.len() < FOLLOWED;
        let Some(socket) = self.sockets.get_mut(&at) else {
            // who is asked first is the server
            if room {
                self.sockets.insert(at, Socket { sent: 0, writes: 0, client: false });
            }
            return;
        };
        let (since, writes) = (socket.sent, std::mem::take(&mut socket.writes));
        if !socket.client || writes == 0 {
            return;
        }
        self.acknowledged(said, name, since, writes);
        let answer = For::Answer(Arc::clone(name));
        self.count_open(said, open, &answer, since);
        if said.ns >= SHORT && said.span.0 >= since {
            self.count(said, answer, said.span, said.ns);
        }
    }

    /// An answer came: whether the last of several writes waited for the ACK of the first.
    fn acknowledged(&mut self, said: &Said, name: &Arc<[u8]>, since: u64, writes: u64) {
        let after = said.span.1.saturating_sub(since);
        if writes < 2 || !name.starts_with(b"TCP") {
            return;
        }
        let key = (said.who.clone(), said.call, For::Ack(Arc::clone(name)));
        if DELAYED.contains(&after) {
            self.count(said, key.2, (since, said.span.1), after);
        } else if let Some(sum) = self.sums.get_mut(&key) {
            sum.others += 1;
        }
    }

    fn waits(&mut self, said: &Said, timed_out: bool) {
        let thread = self.threads.entry(said.thread).or_default();
        if timed_out {
            thread.pauses(said.ns);
        }
        if let Some(to) = thread.connecting.take() {
            if said.ns >= SHORT {
                self.count(said, For::Connection(to), said.span, said.ns);
            }
            return;
        }
        if thread.open.len() >= WAITS {
            thread.open.remove(0);
        }
        thread.open.push(Open { call: said.call, span: said.span, ns: said.ns, timed_out });
    }

    fn sleeps(&mut self, said: &Said) {
        if self.slept.len() < FOLLOWED || self.slept.contains_key(&said.who.pid) {
            let slept = self.slept.entry(said.who.pid).or_default();
            *slept = slept.saturating_add(said.ns);
            self.asleep.insert(said.who.pid, said.span);
        }
        self.pauses(said);
    }

    /// A wait for a program whose time is a sleep is one: `sleep 1` of a script.
    fn reaps(&mut self, said: &Said, child: u32) {
        let Some((from, to)) = self.asleep.remove(&child) else { return };
        let asleep = to.min(said.span.1).saturating_sub(from.max(said.span.0));
        if asleep >= (said.span.1 - said.span.0) / 2 {
            self.pauses(said);
        }
    }

    /// A thread slept, maybe after an attempt that failed.
    fn pauses(&mut self, said: &Said) {
        self.threads.entry(said.thread).or_default().pauses(said.ns);
    }

    fn connects(&mut self, said: &Said, to: &Arc<[u8]>, how: Connected) {
        let thread = self.threads.entry(said.thread).or_default();
        thread.connecting = (how == Connected::Later).then(|| Arc::clone(to));
        self.again(said, to, false);
        if let Connected::No(errno) = how {
            self.failed(said, to, errno, false);
        }
    }

    fn fails(&mut self, said: &Said, to: &Arc<[u8]>, errno: u16, looks: bool) {
        self.again(said, to, looks);
        self.failed(said, to, errno, looks);
    }

    /// The thread ended, and with it what it looked for.
    fn ends(&mut self, said: &Said) {
        let looks = self.threads.remove(&said.thread).and_then(|thread| thread.looks);
        looks.into_iter().for_each(|(key, waited)| self.sum(key, &waited));
    }

    /// Counts what threads looked for that had found it long before `ts`, the end: who still looks is at rest as far as anybody knows.
    pub fn finish(&mut self, ts: u64) {
        let all = std::mem::take(&mut self.threads).into_values().filter_map(|thread| thread.looks);
        let found = |waited: &TalkWait| waited.span.is_some_and(|(_, to)| to.saturating_add(2 * waited.max) < ts);
        all.filter(|(_, waited)| found(waited)).for_each(|(key, waited)| self.sum(key, &waited));
    }

    /// Remembers an attempt that failed.
    fn failed(&mut self, said: &Said, to: &Arc<[u8]>, errno: u16, looks: bool) {
        let failed = Failed { call: said.call, to: Arc::clone(to), errno, since: said.span.1, slept: 0 };
        self.threads.entry(said.thread).or_default().failed[usize::from(looks)] = Some(failed);
    }

    /// Counts the time since the attempt before, if this is another one: it is theirs if the thread slept for most of it.
    fn again(&mut self, said: &Said, to: &Arc<[u8]>, looks: bool) {
        let thread = self.threads.entry(said.thread).or_default();
        let same = |failed: &mut Failed| failed.to == *to && failed.call == said.call;
        let Some(failed) = thread.failed[usize::from(looks)].take_if(same) else { return };
        let (span, between) = ((failed.since, said.span.0), said.span.0.saturating_sub(failed.since));
        if failed.slept < SHORT || failed.slept < between / 2 {
            return;
        }
        let (key, waited) =
            ((said.who.clone(), said.call, For::Retry(Arc::clone(to), failed.errno)), TalkWait::once(span, between));
        // who looks for ever waits for nothing
        let ended = if looks { thread.looks_again(key, waited) } else { Some((key, waited)) };
        if let Some((key, waited)) = ended {
            self.sum(key, &waited);
        }
    }
}

#[cfg(test)]
mod tests;
