//! What the subject's time went to: every nanosecond of it once, by what its threads did and then by the state they were in.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::derive::critical::Id;
use crate::derive::critical::log::Logged;
use crate::derive::critical::walk::Kind;
use crate::derive::runs::keys::{Place, Words};
use crate::reports::traced::Found;
use crate::reports::traced::cause::Cause;
use crate::table::call_files::NO_FILE;
use crate::values::words::{escaped, span};

/// Threads of one name in one call on one file, or in their own code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    comm: Vec<u8>,
    place: Place,
    file: u32,
}

/// A state, and the name of the other thread that it is about: who had the CPU, who woke it and is not recorded.
type InState = (Cause, Vec<u8>);

/// By name of threads: the functions in which samples of their own code were most often, each with its share: `hot_loop 95%`.
pub(super) type Hottest = FxHashMap<Vec<u8>, Vec<String>>;

/// A line of the first level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Name of the threads.
    pub comm: Vec<u8>,
    /// The call that they were in: `[user]`, `[kernel]`, `?` as in `states`.
    pub call: String,
    /// In words: `its own code`, `fsync of /data/wal`.
    pub doing: String,
    /// Its file; None: none, or not known.
    pub file: Option<Vec<u8>>,
    /// Its time, ns.
    pub ns: u64,
    /// The lines of the second level, most first: a state, the other thread's name, time in ns. Together they are `ns`.
    pub states: Vec<(Cause, Vec<u8>, u64)>,
    /// Where it was on a CPU, of own code: `hot_loop 95%`, `page faults ~60%`; empty: not known.
    pub functions: Vec<String>,
}

/// The budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    /// Its lines, most first. Together they are the subject's time.
    pub lines: Vec<Line>,
    /// The subject's time, ns.
    pub total: u64,
}

impl Budget {
    /// Of the parts of a critical path.
    pub(super) fn of(found: &[Found], threads: &[Logged], words: &Words<'_>) -> Self {
        let name = |id: Id, ts: u64| {
            let task = threads.get(id as usize).and_then(|thread| thread.task_at(ts));
            task.map_or_else(Vec::new, |task| task.comm.clone())
        };
        let mut sums: FxHashMap<Key, FxHashMap<InState, u64>> = FxHashMap::default();
        for found in found {
            let part = &found.part;
            let comm = name(part.thread, part.from);
            let other = match part.kind {
                Kind::Unseen { by } | Kind::TooDeep { by } => name(by, part.from),
                _ => found.behind.map_or_else(Vec::new, |id| name(id, part.from)),
            };
            for (place, file, ns) in doings(found) {
                let of = sums.entry(Key { comm: comm.clone(), place, file }).or_default();
                *of.entry((found.cause, other.clone())).or_default() += ns;
            }
        }
        let mut lines: Vec<Line> = sums
            .into_iter()
            .map(|(key, states)| {
                let mut states: Vec<(Cause, Vec<u8>, u64)> =
                    states.into_iter().map(|((cause, other), ns)| (cause, other, ns)).collect();
                states.sort_by(|a, b| (Reverse(a.2), a.0, &a.1).cmp(&(Reverse(b.2), b.0, &b.1)));
                let ns = states.iter().fold(0, |sum, (.., ns)| sum + ns);
                let file = words.names.name(key.file).map(<[u8]>::to_vec);
                let doing = doing(key.place, file.as_deref(), words);
                let call = words.place(key.place);
                Line { call, doing, file, comm: key.comm, ns, states, functions: Vec::new() }
            })
            .collect();
        lines.sort_by(|a, b| (Reverse(a.ns), &a.comm, &a.doing).cmp(&(Reverse(b.ns), &b.comm, &b.doing)));
        let total = lines.iter().fold(0, |sum, line| sum + line.ns);
        Self { lines, total }
    }

    /// Says where own code was on a CPU.
    pub(super) fn name(&mut self, hottest: &Hottest) {
        for line in self.lines.iter_mut().filter(|line| line.call == USER) {
            line.functions = hottest.get(&line.comm).cloned().unwrap_or_default();
        }
    }

    /// Says that `part` of `whole` of the time on a CPU of these threads' own code is that of page faults.
    pub(super) fn faults(&mut self, comm: &[u8], part: u64, whole: u64) {
        for line in self.lines.iter_mut().filter(|line| line.call == USER && line.comm == comm) {
            let percent = 100.0 * part as f64 / whole.max(1) as f64;
            line.functions.push(format!("page faults ~{percent:.0}%"));
        }
    }
}

/// Own code as [`Words::place`] calls it.
const USER: &str = "[user]";

/// `fsync of /data/wal`.
fn doing(place: Place, file: Option<&[u8]>, words: &Words<'_>) -> String {
    let what = match place {
        Place::User => "its own code".to_owned(),
        Place::Kernel => "work of the kernel".to_owned(),
        Place::Unknown | Place::Any => "not known in what".to_owned(),
        Place::Call(_) => words.place(place),
    };
    file.map_or(what.clone(), |file| format!("{what} of {}", escaped(file)))
}

/// What a part's thread did in it: together the part's time. A sleep is in one call, that of most of it.
fn doings(found: &Found) -> Vec<(Place, u32, u64)> {
    let whole = found.ns();
    if !matches!(found.cause, Cause::Cpu | Cause::Runqueue | Cause::Throttled) {
        let most = found.spent.most();
        return vec![(most.map_or(Place::Unknown, |of| of.place), most.map_or(NO_FILE, |of| of.file), whole)];
    }
    let mut doings: Vec<(Place, u32, u64)> = found.spent.calls.iter().map(|of| (of.place, of.file, of.ns)).collect();
    let known = doings.iter().fold(0, |sum, (.., ns)| sum + ns);
    if known < whole {
        doings.push((Place::Unknown, NO_FILE, whole - known));
    }
    doings
}

impl Line {
    /// `db: fsync of /data/wal: 1.53 s waiting for a CPU (make had it), 80.1 ms for a disk`.
    pub(super) fn text(&self) -> String {
        self.sentence("")
    }

    /// The same with the functions: `db: its own code: 1.53 s on a CPU (in parse 80%)`.
    pub(super) fn text_with_functions(&self) -> String {
        let functions = self.functions.join(", ");
        self.sentence(&if functions.is_empty() { functions } else { format!(" (in {functions})") })
    }

    fn sentence(&self, functions: &str) -> String {
        format!("{}: {}: {}", escaped(&self.comm), self.doing, self.states(functions))
    }

    /// `1.53 s waiting for a CPU (make ran), 80.1 ms for a disk`: states of less than a twentieth are left out, but for the first.
    fn states(&self, functions: &str) -> String {
        let worth = self.states.iter().enumerate().filter(|(at, (.., ns))| *at == 0 || *ns >= self.ns / 20);
        let texts = worth.take(4).map(|(_, (cause, other, ns))| {
            let functions = if *cause == Cause::Cpu { functions } else { "" };
            format!("{} {}{functions}", span(*ns), state(*cause, other))
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// A state in words.
pub(super) fn state(cause: Cause, other: &[u8]) -> String {
    let text = match cause {
        Cause::Cpu => "on a CPU",
        Cause::Runqueue => "waiting for a CPU",
        Cause::Throttled => "throttled, its CPU quota used up",
        Cause::Sleep => "asleep as it asked",
        Cause::Timeout => "until its time-out",
        Cause::Disk => "for a disk",
        Cause::Network => "for a packet",
        Cause::Interrupt => "for a timer or device",
        Cause::Blocked => "not over at the end",
        Cause::Stopped => "stopped",
        Cause::Dead => "ended, not yet waited for",
        Cause::NotRecorded => "for a thread that is not recorded",
        Cause::TooDeep => "for a thread that is not followed",
        Cause::Unknown => "not known",
    };
    match (cause, other) {
        (_, b"") => text.to_owned(),
        (Cause::Runqueue, other) => format!("{text} ({} had it)", escaped(other)),
        (_, other) => format!("{text} ({})", escaped(other)),
    }
}
