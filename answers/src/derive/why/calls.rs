//! Time in calls by process, call and file, and calls on futexes in their order: the shared input of the rules about calls.
//!
//! Calls that wait for work are left out, and waits for a CPU are subtracted where they are known. Memory is bounded: when there are more
//! sums than [`SUMS`], the smaller half is dropped, and the answer says so.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::{is_restart, sockaddr_text};
use systape_format::model::{Call, CallState, Task};

use super::cpu::{Waited, Woken, wider};
use super::finding::Who;
use super::talk::Said;
use super::talk::read::{CallReader, Users};
use crate::derive::paths::feed::{Reader, Waiting};
use crate::derive::paths::names::{Name, Numbered, uses};
use crate::derive::processes::track::key;
use crate::derive::waits::{self, Event, Threads};
use systape_events::calls::CallInfo;
use systape_events::load::Loaded;
use systape_events::question::Question;

/// A call is slow from this on, ns ...
const SLOW: u64 = 2_000_000;
/// ... and this for each byte that it moved: 50 MB/s.
const SLOW_BYTE: u64 = 20;
/// Most sums that are kept.
const SUMS: usize = 1 << 17;
/// `clone` with it waits until the child runs another program.
const CLONE_VFORK: u64 = 0x4000;

/// What a call is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// No object.
    None,
    /// Not known.
    Unknown,
    /// A path, or the name of a socket.
    Named(Arc<[u8]>),
}

/// The key of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The process.
    pub process: u64,
    /// Pid of the process.
    pub pid: u32,
    /// Name of the thread.
    pub comm: Arc<[u8]>,
    /// The call.
    pub call: Call,
    /// The error; 0: none.
    pub errno: u16,
    /// What it is on.
    pub object: Object,
}

impl Hash for Key {
    /// Without the name: a process has few.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.process, self.call, self.errno, &self.object).hash(state);
    }
}

/// Time of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTime {
    /// How many.
    pub calls: u64,
    /// Time in them, ns.
    pub ns: u64,
    /// Part of `calls`: slow ones, and the time in them.
    pub slow: u64,
    /// Time of the calls that `slow` counts, ns.
    pub slow_ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// What they moved.
    pub bytes: u64,
    /// When the first began and the last ended.
    pub span: Option<(u64, u64)>,
    /// Span of slow ones.
    pub slow_span: Option<(u64, u64)>,
    /// One was open at the end, or began before the start: times are lower bounds.
    pub open: bool,
    /// Facts about locks of files: how long the longest wait was whose end is known, ns, and who ended it by giving the lock up.
    pub by: Option<Box<(u64, Who)>>,
}

impl CallTime {
    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.ns, other.ns),
            (&mut self.slow, other.slow),
            (&mut self.slow_ns, other.slow_ns),
            (&mut self.bytes, other.bytes),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.max = self.max.max(other.max);
        for (span, other) in [(&mut self.span, other.span), (&mut self.slow_span, other.slow_span)] {
            if let Some((first, last)) = other {
                *span = wider(*span, first, last);
            }
        }
        self.open |= other.open;
        if other.by.as_ref().map(|by| by.0) > self.by.as_ref().map(|by| by.0) {
            self.by.clone_from(&other.by);
        }
    }
}

/// The sums.
#[derive(Debug, Default)]
pub struct Sums {
    /// Times of calls.
    pub calls: FxHashMap<Key, CallTime>,
    /// The threads that made them.
    pub threads: Threads,
    /// Who is at the ends of sockets and pipes.
    pub users: Users,
    /// Some were dropped: each of the others may lack what was dropped before.
    pub cut: bool,
}

/// What was read in a segment.
#[derive(Debug)]
pub struct Read {
    /// Sums of calls; there may be several of one key.
    calls: Vec<(Key, CallTime)>,
    threads: Threads,
    users: Users,
}

impl Sums {
    /// Adds a sum of calls.
    pub fn add(&mut self, key: Key, work: &CallTime) {
        self.calls.entry(key).or_default().add(work);
        if self.calls.len() > SUMS {
            self.cut = true;
            drop_half(&mut self.calls, |work| work.ns);
        }
    }

    /// Adds those of a segment.
    pub fn merge(&mut self, part: Read) {
        part.calls.into_iter().for_each(|(key, work)| self.add(key, &work));
        self.threads.merge(part.threads);
        self.users.merge(part.users);
    }
}

/// Keeps the half of `sums` with most time.
fn drop_half<K: Eq + Hash, V>(sums: &mut FxHashMap<K, V>, ns: impl Fn(&V) -> u64) {
    let mut times: Vec<u64> = sums.values().map(&ns).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    let mut room = middle;
    sums.retain(|_, sum| {
        let keeps = ns(sum) > median || (ns(sum) == median && room > 0);
        room -= usize::from(keeps && room > 0);
        keeps
    });
}

/// What waits for its turn: calls are told in order of their ends. Small, as it is moved several times until then.
#[derive(Debug)]
pub enum InTurn {
    /// A call on a file in the current directory.
    Relative(Box<Relative>),
    /// A call on a futex, or a rest of a server.
    Wait(Event),
    /// A call on a socket or pipe, or one that waits.
    Said(Box<Said>),
}

/// A call on a file in the current directory.
#[derive(Debug)]
pub struct Relative {
    /// Key of the call, without the file.
    pub key: Key,
    /// The file.
    pub name: Vec<u8>,
    /// What it adds.
    pub work: CallTime,
}

/// Reads calls.
pub struct Calls<'a> {
    /// What is asked.
    pub question: &'a Question<'a>,
    /// Waits for a CPU.
    pub waited: &'a Waited,
    /// Ends of sleeps.
    pub woken: &'a Woken,
}

/// What a call is on.
enum CallTarget<'a> {
    /// The object with this number.
    Object(u32),
    /// A file in the current directory.
    InCwd(&'a [u8]),
}

/// What a call counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CallSort {
    /// The call waits for work.
    Skip,
    /// The call waits for a futex, wakes who does, or rests as servers do.
    Follow,
    /// The call makes data durable: its time is that of the storage.
    Durable,
    /// The call connects.
    Connect,
    /// The call takes data.
    Takes,
    /// The call gives data.
    Gives,
    /// Anything else.
    Plain,
}

fn sort(info: &CallInfo) -> CallSort {
    match info.name.as_str() {
        name if waits::follows(name) => CallSort::Follow,
        // which of them waits for its child is in memory that is not on the tape
        "clone3" => CallSort::Skip,
        _ if info.is_exit => CallSort::Skip,
        name if is_durable(name) => CallSort::Durable,
        "connect" => CallSort::Connect,
        name if waits::at_rest(name, false, None) => CallSort::Skip,
        name if waits::takes(name, info.io) => CallSort::Takes,
        _ if info.io.writes().is_some() => CallSort::Gives,
        _ => CallSort::Plain,
    }
}

/// Whether the call `name` makes data durable.
pub(crate) fn is_durable(name: &str) -> bool {
    matches!(name, "fsync" | "fdatasync" | "sync" | "syncfs" | "sync_file_range" | "msync")
}

/// Whether the call `name` takes locks of files.
pub(crate) fn takes_lock(name: &str) -> bool {
    matches!(name, "flock" | "fcntl" | "fcntl64")
}

impl Reader for Calls<'_> {
    type Sum = Read;
    type Row = InTurn;

    fn wants(&self, segment: usize) -> bool {
        self.question.scope.may_match(&self.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<InTurn>>) -> Read {
        let filter = self.question.scope.segment(&segment.dict, segment.number);
        let mut part = Part {
            reader: self,
            segment,
            objects: vec![Object::None, Object::Unknown],
            numbers: FxHashMap::default(),
            numbered: Numbered::new(segment),
            fds: FxHashMap::default(),
            sums: FxHashMap::default(),
            comms: FxHashMap::default(),
        };
        let mut talk = CallReader::new(segment);
        let sorts: Vec<CallSort> = segment.calls.iter().map(|info| sort(info)).collect();
        for row in range {
            let sort = sorts[segment.core.call[row] as usize];
            if talk.follows(row) && filter.core(&segment.core, row) && filter.time(&segment.time, row) {
                let what = talk.said(row, || part.time(row).0).map(|said| InTurn::Said(Box::new(said)));
                waiting.extend(what.map(|what| Waiting { row, what }));
            }
            let state = segment.core.state[row];
            let timed = !matches!(state, CallState::CloneChild | CallState::Denied | CallState::LostEnter);
            if sort != CallSort::Skip && timed && filter.core(&segment.core, row) && filter.time(&segment.time, row) {
                part.call(row, sort, waiting);
            }
        }
        let threads = waits::known(&segment.dict);
        Read { calls: part.sums(), threads, users: talk.users }
    }
}

/// Indices of nothing and of what is not known.
const NOTHING: u32 = 0;
/// See [`NOTHING`].
const UNKNOWN: u32 = 1;

/// Sums of a segment by its own numbers.
struct Part<'a> {
    reader: &'a Calls<'a>,
    segment: &'a Loaded,
    objects: Vec<Object>,
    numbers: FxHashMap<Cow<'a, [u8]>, u32>,
    numbered: Numbered<'a>,
    /// By the number of the descriptor's file and what the call counts as; None: it does not count.
    fds: FxHashMap<(u32, CallSort), Option<u32>>,
    /// By task, call, error and object.
    sums: FxHashMap<(u32, u32, u16, u32), CallTime>,
    comms: FxHashMap<u32, Arc<[u8]>>,
}

impl<'a> Part<'a> {
    fn call(&mut self, row: usize, sort: CallSort, waiting: &mut Vec<Waiting<InTurn>>) {
        if sort == CallSort::Follow {
            let what = waits::wait(self.segment, row, self.time(row).0);
            waiting.extend(what.map(|what| Waiting { row, what: InTurn::Wait(what) }));
            return;
        }
        let segment = self.segment;
        if sort == CallSort::Plain && segment.call(row).name == "clone" {
            let flags = segment.args.of(row).map_or(CLONE_VFORK, |args| args[0]);
            if flags & CLONE_VFORK != 0 {
                return;
            }
        }
        let object = match sort {
            CallSort::Connect => self.peer(row),
            _ => match self.on(row, sort) {
                None => return,
                Some(CallTarget::Object(number)) => number,
                Some(CallTarget::InCwd(name)) => {
                    let (key, work) = (self.key(row), self.work(row, sort));
                    let what = InTurn::Relative(Box::new(Relative { key, name: name.to_vec(), work }));
                    waiting.push(Waiting { row, what });
                    return;
                }
            },
        };
        let core = &segment.core;
        let work = self.work(row, sort);
        self.sums.entry((core.task[row], core.call[row], self.errno(row), object)).or_default().add(&work);
    }

    /// What the call of `row` is on; None: it does not count.
    fn on(&mut self, row: usize, sort: CallSort) -> Option<CallTarget<'a>> {
        let segment = self.segment;
        let on = match self.numbered.file(row).and_then(|number| Some((number, segment.fd_name(number)?))) {
            Some((number, name)) => match self.fds.get(&(number, sort)) {
                Some(known) => *known,
                None => {
                    let object = worth(sort, name).then(|| self.number(name.into()));
                    self.fds.insert((number, sort), object);
                    object
                }
            },
            None => match uses(segment, row).next().map(|on| on.name) {
                None | Some(Name::Nothing) => Some(NOTHING),
                Some(Name::Unknown) => (!matches!(sort, CallSort::Takes | CallSort::Gives)).then_some(UNKNOWN),
                Some(Name::Known(name)) => worth(sort, &name).then(|| self.number(name)),
                Some(Name::InCwd(name)) => return Some(CallTarget::InCwd(name)),
            },
        };
        on.map(CallTarget::Object)
    }

    /// The other end of a connection that is made.
    fn peer(&mut self, row: usize) -> u32 {
        let segment = self.segment;
        let address = segment.captured(row).iter().find(|value| value.arg == 1 && value.status.is_whole());
        match address {
            Some(address) => self.number(sockaddr_text(&address.bytes).into_bytes().into()),
            None => UNKNOWN,
        }
    }

    fn number(&mut self, name: Cow<'a, [u8]>) -> u32 {
        let objects = &mut self.objects;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            objects.push(Object::Named(Arc::from(&**name)));
            objects.len() as u32 - 1
        })
    }

    fn errno(&self, row: usize) -> u16 {
        let errno = self.segment.core.errno[row];
        if is_restart(errno) { 0 } else { errno }
    }

    fn comm(&mut self, task: u32) -> Arc<[u8]> {
        let segment = self.segment;
        Arc::clone(self.comms.entry(task).or_insert_with(|| Arc::from(&*segment.dict.tasks[task as usize].comm)))
    }

    fn key(&mut self, row: usize) -> Key {
        let index = self.segment.core.task[row];
        let task = &self.segment.dict.tasks[index as usize];
        let call = self.segment.dict.calls[self.segment.core.call[row] as usize];
        let (process, pid) = (key(task), task.pid);
        Key { process, pid, comm: self.comm(index), call, errno: self.errno(row), object: Object::Unknown }
    }

    /// Time of the call of `row` without waits for a CPU, and whether it is a lower bound.
    fn time(&self, row: usize) -> (u64, (u64, u64), bool) {
        let (from, dur) = (self.segment.time.start[row], self.segment.core.dur[row]);
        let to = from.saturating_add(dur);
        let waited = self.reader.waited.within(self.segment.task(row).utid, from, to);
        let open = matches!(
            self.segment.core.state[row],
            CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore
        );
        (dur.saturating_sub(waited), (from, to), open)
    }

    fn work(&self, row: usize, sort: CallSort) -> CallTime {
        let (ns, span, open) = self.time(row);
        let core = &self.segment.core;
        let moves = core.errno[row] == 0 && core.state[row].returned() && self.segment.call(row).io.moves_bytes();
        let ret = self.segment.args.ret.get(row).copied().filter(|_| moves);
        let bytes = ret.and_then(|ret| u64::try_from(ret).ok()).unwrap_or(0);
        let limit = if sort == CallSort::Durable { 0 } else { SLOW.saturating_add(bytes.saturating_mul(SLOW_BYTE)) };
        let slow = ns >= limit;
        let locks =
            slow && core.errno[row] == 0 && core.state[row].returned() && takes_lock(&self.segment.call(row).name);
        let woken = || self.reader.woken.last(self.segment.task(row).utid, span.0, span.1);
        CallTime {
            calls: 1,
            ns,
            slow: slow.into(),
            slow_ns: if slow { ns } else { 0 },
            max: ns,
            bytes,
            span: Some(span),
            slow_span: slow.then_some(span),
            open,
            by: locks.then(woken).flatten().map(|who| Box::new((ns, who.clone()))),
        }
    }

    fn sums(mut self) -> Vec<(Key, CallTime)> {
        let sums = std::mem::take(&mut self.sums).into_iter();
        sums.map(|((index, call, errno, object), work)| {
            let task: &Task = &self.segment.dict.tasks[index as usize];
            let (process, pid, comm) = (key(task), task.pid, self.comm(index));
            let (call, object) = (self.segment.dict.calls[call as usize], self.objects[object as usize].clone());
            (Key { process, pid, comm, call, errno, object }, work)
        })
        .collect()
    }
}

/// Whether time of a call on `name` is worth counting: not that of who waits for somebody to send something.
fn worth(sort: CallSort, name: &[u8]) -> bool {
    let path = name.starts_with(b"/");
    let socket = !path && !name.starts_with(b"pipe:") && !name.starts_with(b"anon_inode:");
    match sort {
        CallSort::Takes => !waits::at_rest("read", true, Some(name)),
        CallSort::Gives if path => waits::is_storage(name),
        CallSort::Gives => socket,
        // what an ioctl of a device waits for only its driver knows
        _ => path && !name.starts_with(b"/dev/") || waits::is_storage(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Key {
        let object = Object::Named(Arc::from(name.as_bytes()));
        let (comm, call) = (Arc::from(&b"app"[..]), Call { abi: 1, nr: 0 });
        Key { process: 1, pid: 1, comm, call, errno: 0, object }
    }

    #[test]
    fn reads_of_who_waits_for_work_are_not_counted() {
        let worth = |sort, name: &str| worth(sort, name.as_bytes());
        assert!(worth(CallSort::Takes, "/data/x") && worth(CallSort::Takes, "TCP:[1.1.1.1:50000->1.1.1.2:80]"));
        assert!(!worth(CallSort::Takes, "/dev/pts/0") && !worth(CallSort::Takes, "TCP:[1.1.1.2:80->1.1.1.1:50000]"));
        assert!(!worth(CallSort::Takes, "pipe:[9]") && !worth(CallSort::Gives, "pipe:[9]"));
        assert!(!worth(CallSort::Takes, "anon_inode:[eventfd]") && worth(CallSort::Durable, "/data/x"));
    }

    #[test]
    fn memory_is_bounded_and_what_cost_most_stays() {
        let mut sums = Sums::default();
        sums.add(named("/slow"), &CallTime { calls: 1, ns: 1_000_000_000, ..CallTime::default() });
        for at in 0..SUMS + 10 {
            sums.add(named(&format!("/{at}")), &CallTime { calls: 1, ns: 5, ..CallTime::default() });
        }
        assert!(sums.cut && sums.calls.len() <= SUMS, "{}", sums.calls.len());
        assert_eq!(sums.calls[&named("/slow")].ns, 1_000_000_000);
    }
}
