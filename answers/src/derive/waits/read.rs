//! Reads what [`super::Tracker`] follows from calls.

use std::ops::{ControlFlow, Range};

use anyhow::Result;
use systape_abi::descriptors::is_accept;
use systape_format::model::{BESIDE, ByteStatus, CallState, Dict};

use super::super::paths::feed::{Reader, Told, Waiting, feed};
use super::super::processes::track::key;
use super::futex::{self, Role};
use super::threads::{Threads, thread};
use super::track::{CallEnd, Event, ThreadAct, Tracker};
use systape_events::load::Loaded;
use systape_events::question::Question;
use systape_events::scan::Coverage;

const EAGAIN: u16 = 11;
const ETIMEDOUT: u16 = 110;
/// A shorter rest of a thread says nothing about what it holds, ns.
const REST: u64 = 1_000_000;

/// Whether a call of this name is followed.
pub fn follows(name: &str) -> bool {
    futex::is_one(name) || rests(name)
}

/// Whether the call `name` waits for somebody to connect, or for one of many events: so servers rest, also with a lock in hand.
fn rests(name: &str) -> bool {
    is_accept(name) || matches!(name, "epoll_wait" | "epoll_pwait" | "epoll_pwait2")
}

/// Whether the call in `state` has a time.
fn is_timed(state: CallState) -> bool {
    !matches!(state, CallState::CloneChild | CallState::Denied | CallState::LostEnter)
}

/// The call of `row` as an event; None: it is not followed. Its time is `ns`.
pub fn wait(segment: &Loaded, row: usize, ns: u64) -> Option<Event> {
    let core = &segment.core;
    let (name, task) = (&segment.call(row).name, segment.task(row));
    let state = core.state[row];
    let (from, errno) = (segment.time.start[row], core.errno[row]);
    let ended = match errno {
        _ if matches!(state, CallState::InFlight | CallState::Killed | CallState::NoReturn) => CallEnd::Never,
        0 => CallEnd::With(segment.args.ret.get(row).and_then(|ret| u64::try_from(*ret).ok()).unwrap_or(0)),
        EAGAIN => CallEnd::Again,
        ETIMEDOUT => CallEnd::TimedOut,
        _ => CallEnd::Failed,
    };
    let doing = if rests(name) {
        if core.dur[row] < REST {
            return None;
        }
        ThreadAct::Rest
    } else {
        let (address, role) = futex::role(name, segment.args.of(row)?)?;
        let names = match role {
            Role::Waits(asks) => {
                let memory = segment.captured(row).iter().find(|value| value.arg == BESIDE);
                // what was read when the call returned is no more what it waited for
                let memory = memory.filter(|value| matches!(value.status, ByteStatus::Whole | ByteStatus::Truncated));
                asks.names(memory.map(|value| value.bytes.as_slice()))
            }
            _ => None,
        };
        ThreadAct::Futex(address, role, names)
    };
    let to = from.saturating_add(core.dur[row]);
    let began_before = state == CallState::BeganBefore;
    Some(Event { process: key(task), thread: thread(task), doing, from, to, ns, ended, began_before })
}

/// The threads that `dict` knows.
pub fn known(dict: &Dict) -> Threads {
    let mut threads = Threads::default();
    dict.tasks.iter().for_each(|task| threads.add(task));
    threads
}

/// The waits for futexes of what is asked, and the threads in them.
///
/// # Errors
/// The tape cannot be read.
pub fn tracked(question: &Question<'_>) -> Result<(Tracker, Threads, Coverage)> {
    let (mut tracker, mut threads) = (Tracker::default(), Threads::default());
    let coverage = feed(question, &Locks { question }, |told| {
        match told {
            Told::Sum(part) => threads.merge(part),
            Told::Row(event, _) => tracker.add(&event),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((tracker, threads, coverage))
}

/// Reads calls that are followed, and nothing else.
#[derive(Debug)]
struct Locks<'a> {
    question: &'a Question<'a>,
}

impl Reader for Locks<'_> {
    type Sum = Threads;
    type Row = Event;

    fn wants(&self, segment: usize) -> bool {
        self.question.scope.may_match(&self.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<Event>>) -> Threads {
        let filter = self.question.scope.segment(&segment.dict, segment.number);
        let follows: Vec<bool> = segment.calls.iter().map(|info| follows(&info.name)).collect();
        for row in range {
            let wanted = follows[segment.core.call[row] as usize] && is_timed(segment.core.state[row]);
            if wanted && filter.core(&segment.core, row) && filter.time(&segment.time, row) {
                let what = wait(segment, row, segment.core.dur[row]);
                waiting.extend(what.map(|what| Waiting { row, what }));
            }
        }
        known(&segment.dict)
    }
}
