//! Makes [`Said`] of calls, and notes who uses which socket and pipe.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::rest::is_poll;
use systape_abi::sockaddr_text;
use systape_format::model::CallState;

use super::super::super::paths::names::{Name, Numbered, uses};
use super::super::super::processes::track::key;
use super::{Act, Connected, SHORT, Said, Talker, Way};
use crate::derive::waits::{is_sleep, of_client};
use systape_events::calls::CallInfo;
use systape_events::load::Loaded;

/// Most processes that are told apart at one end of a socket or pipe.
const ENDS: usize = 4;
/// Most ends.
const USERS: usize = 1 << 16;

const EINPROGRESS: u16 = 115;
/// Calls that programs make again after a sleep until they succeed.
const TRIES: [&str; 20] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "flock",
    "fcntl",
    "access",
    "faccessat",
    "faccessat2",
];
/// Calls that look whether a file is there.
const LOOKS: [&str; 4] = ["stat", "lstat", "newfstatat", "statx"];

/// What a call may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum TalkCall {
    /// The call takes data.
    Takes,
    /// The call gives data.
    Gives,
    /// The call waits for one of several descriptors.
    Waits,
    /// The call sleeps as asked.
    Sleeps,
    /// The call connects.
    Connects,
    /// The call opens, locks or makes a file, which may fail until somebody else is done.
    Tries,
    /// The call looks for a file.
    Looks,
    /// The thread ends.
    Ends,
    /// The call waits for a child to end.
    Reaps,
}

/// What the call may be; None: nothing that is followed.
pub(in super::super) fn sort(info: &CallInfo) -> Option<TalkCall> {
    Some(match info.name.as_str() {
        name if is_poll(name) => TalkCall::Waits,
        name if is_sleep(name) => TalkCall::Sleeps,
        "connect" => TalkCall::Connects,
        "wait4" => TalkCall::Reaps,
        "exit" | "exit_group" => TalkCall::Ends,
        name if TRIES.contains(&name) => TalkCall::Tries,
        name if LOOKS.contains(&name) => TalkCall::Looks,
        name if info.io.reads().is_some() || name.starts_with("recv") => TalkCall::Takes,
        name if info.io.writes().is_some() || name.starts_with("send") => TalkCall::Gives,
        _ => return None,
    })
}

/// Who is at the ends of sockets and pipes: by name and direction, for sockets always [`Way::Out`].
#[derive(Debug, Default)]
pub struct Users(FxHashMap<(Arc<[u8]>, Way), Vec<Talker>>);

impl Users {
    /// Notes that `who` uses the end.
    fn add(&mut self, name: &Arc<[u8]>, way: Way, who: impl FnOnce() -> Talker, process: u64) {
        let end = (Arc::clone(name), way);
        if self.0.len() >= USERS && !self.0.contains_key(&end) {
            return;
        }
        let known = self.0.entry(end).or_default();
        if known.len() < ENDS && !known.iter().any(|one| one.key == process) {
            known.push(who());
        }
    }

    /// Adds those of a part of the tape.
    pub fn merge(&mut self, part: Self) {
        for ((name, way), processes) in part.0 {
            for who in processes {
                let process = who.key;
                self.add(&name, way, || who, process);
            }
        }
    }

    /// The only process other than `not` that is at that end; None: nobody is known, or there are several.
    pub fn only(&self, name: &[u8], way: Way, not: u64) -> Option<&Talker> {
        let all = self.0.get(&(Arc::from(name), way))?;
        let mut others = all.iter().filter(|who| who.key != not);
        others.next().filter(|_| all.len() < ENDS && others.next().is_none())
    }
}

/// The other end of the socket `name`: `TCP:[a->b]` is that of `TCP:[b->a]`.
pub fn other_end(name: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(name).ok()?;
    let (kind, ends) = name.split_once(":[")?;
    let (one, other) = ends.strip_suffix(']')?.split_once("->")?;
    Some(format!("{kind}:[{other}->{one}]").into_bytes())
}

/// An end of a socket or pipe.
#[derive(Clone, Debug)]
struct End {
    name: Arc<[u8]>,
    /// It is that of a pipe.
    pipe: bool,
    /// What goes by it may be a question of its own, or the answer to one.
    talks: bool,
}

impl End {
    /// That is called `name`; None: that is a file.
    fn of(name: Arc<[u8]>) -> Option<Self> {
        if name.starts_with(b"/") || name.starts_with(b"anon_inode:") {
            return None;
        }
        let (pipe, talks) = (name.starts_with(b"pipe:"), name.starts_with(b"UNIX") || of_client(&name));
        Some(Self { name, pipe, talks })
    }
}

/// Reads the calls of a segment.
#[derive(Debug)]
pub(in super::super) struct CallReader<'a> {
    segment: &'a Loaded,
    /// By kind of call.
    sorts: Vec<Option<TalkCall>>,
    numbered: Numbered<'a>,
    /// By number of the descriptor's file.
    ends: FxHashMap<u32, Option<End>>,
    /// Whom [`Users`] has already.
    seen: FxHashSet<(u32, Way, u64)>,
    names: FxHashMap<Vec<u8>, Arc<[u8]>>,
    comms: FxHashMap<u32, Arc<[u8]>>,
    /// Users of sockets and pipes; see [`Users`].
    pub(in super::super) users: Users,
}

impl<'a> CallReader<'a> {
    /// Prepares reading `segment`.
    pub(in super::super) fn new(segment: &'a Loaded) -> Self {
        let sorts = segment.calls.iter().map(|info| sort(info)).collect();
        let numbered = Numbered::new(segment);
        let (ends, seen, names, comms, users) = Default::default();
        Self { segment, sorts, numbered, ends, seen, names, comms, users }
    }

    /// Whether the call of `row` may say something.
    pub(in super::super) fn follows(&self, row: usize) -> bool {
        self.sorts[self.segment.core.call[row] as usize].is_some()
    }

    /// The call of `row`, whose time is `ns`; None: it says nothing.
    pub(in super::super) fn said(&mut self, row: usize, ns: impl FnOnce() -> u64) -> Option<Said> {
        let segment = self.segment;
        let core = &segment.core;
        let sort = self.sorts[core.call[row] as usize]?;
        let timed = !matches!(core.state[row], CallState::CloneChild | CallState::Denied | CallState::LostEnter);
        if !timed {
            return None;
        }
        let dur = core.dur[row];
        let act = match sort {
            TalkCall::Waits | TalkCall::Sleeps | TalkCall::Reaps if dur < SHORT => return None,
            TalkCall::Waits => Act::Waits(segment.args.ret.get(row) == Some(&0) && core.state[row].returned()),
            TalkCall::Sleeps => Act::Sleeps,
            TalkCall::Reaps => Act::Reaps(u32::try_from(*segment.args.ret.get(row)?).ok()?),
            TalkCall::Connects => self.connects(row)?,
            TalkCall::Tries | TalkCall::Looks if core.errno[row] == 0 || !core.state[row].returned() => return None,
            TalkCall::Tries => Act::Fails(self.named(row)?, core.errno[row]),
            TalkCall::Looks => Act::Misses(self.named(row)?, core.errno[row]),
            TalkCall::Ends => Act::Ends,
            TalkCall::Takes | TalkCall::Gives => self.moves(row, sort)?,
        };
        let start = segment.time.start[row];
        let span = (start, start.saturating_add(dur));
        let (task, call) = (segment.task(row), segment.dict.calls[core.call[row] as usize]);
        let thread = if task.utid == 0 { task.tid } else { task.utid };
        Some(Said { who: self.who(row), thread, call, act, span, ns: ns() })
    }

    fn who(&mut self, row: usize) -> Talker {
        let task = self.segment.task(row);
        let index = self.segment.core.task[row];
        let comm = self.comms.entry(index).or_insert_with(|| Arc::from(&*task.comm));
        Talker { key: key(task), pid: task.pid, comm: Arc::clone(comm) }
    }

    fn connects(&self, row: usize) -> Option<Act> {
        let address = self.segment.captured(row).iter().find(|value| value.arg == 1 && value.status.is_whole())?;
        let how = match self.segment.core.errno[row] {
            _ if !self.segment.core.state[row].returned() => return None,
            0 => Connected::Yes,
            EINPROGRESS => Connected::Later,
            errno => Connected::No(errno),
        };
        Some(Act::Connects(Arc::from(sockaddr_text(&address.bytes).into_bytes()), how))
    }

    /// The file of the call.
    fn named(&mut self, row: usize) -> Option<Arc<[u8]>> {
        let name = match uses(self.segment, row).next()?.name {
            Name::Known(name) => name,
            Name::InCwd(name) => name.into(),
            Name::Unknown | Name::Nothing => return None,
        };
        Some(self.shared(&name))
    }

    fn shared(&mut self, name: &[u8]) -> Arc<[u8]> {
        match self.names.get(name) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.names.entry(name.to_vec()).or_insert_with(|| Arc::from(name))),
        }
    }

    /// The socket or pipe of the call; None: it is on neither.
    fn end(&mut self, row: usize) -> Option<End> {
        let segment = self.segment;
        if let Some(number) = self.numbered.file(row) {
            let of = || End::of(Arc::from(segment.fd_name(number)?));
            return self.ends.entry(number).or_insert_with(of).clone();
        }
        let Name::Known(name) = uses(segment, row).next()?.name else { return None };
        End::of(self.shared(&name))
    }

    /// A call that moves data by a socket or pipe.
    fn moves(&mut self, row: usize, sort: TalkCall) -> Option<Act> {
        let segment = self.segment;
        let End { name, pipe, talks } = self.end(row)?;
        let way = if pipe && sort == TalkCall::Takes { Way::In } else { Way::Out };
        let process = key(segment.task(row));
        let is_new = self.numbered.file(row).is_none_or(|number| self.seen.insert((number, way, process)));
        if is_new {
            let who = self.who(row);
            self.users.add(&name, way, || who, process);
        }
        let core = &segment.core;
        if pipe {
            // a pipeline reads its standard input; workers read their jobs, and shells their children, from other descriptors
            let counts = way == Way::Out || segment.args.of(row).is_some_and(|args| args[0] == 0);
            return (counts && core.dur[row] >= SHORT).then_some(Act::Pipe(name, way));
        }
        // nothing was there, or the call failed: no answer
        let empty = core.errno[row] != 0 || !core.state[row].returned();
        if empty || !talks {
            return None;
        }
        Some(if sort == TalkCall::Takes { Act::Takes(name) } else { Act::Sends(name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_named_the_other_way_round() {
        assert_eq!(other_end(b"UNIX-STREAM:[5->6]"), Some(b"UNIX-STREAM:[6->5]".to_vec()));
        assert_eq!(other_end(b"TCP:[1.1.1.1:5->2.2.2.2:80]"), Some(b"TCP:[2.2.2.2:80->1.1.1.1:5]".to_vec()));
        assert_eq!((other_end(b"socket:[7]"), other_end(b"/x"), other_end(b"UDP:[0.0.0.0:5]")), (None, None, None));
    }

    #[test]
    fn one_process_at_the_other_end_is_named_and_several_are_not() {
        let (mut users, mut part) = (Users::default(), Users::default());
        let name: Arc<[u8]> = Arc::from(&b"pipe:[7]"[..]);
        let who = |key: u64| Talker { key, pid: key as u32, comm: Arc::from(&b"w"[..]) };
        users.add(&name, Way::Out, || who(1), 1);
        part.add(&name, Way::Out, || who(2), 2);
        users.merge(part);
        assert_eq!(users.only(&name, Way::Out, 1).map(|who| who.pid), Some(2));
        assert_eq!((users.only(&name, Way::Out, 9), users.only(&name, Way::In, 1)), (None, None));
    }
}
