//! The rules: each judges plain values and makes findings.

mod answers;
pub mod command;
mod connects;
mod cpu_wait;
mod deadlock;
mod death;
mod disk_error;
mod dns;
mod failures;
mod fsync;
mod lock;
mod memory;
mod memory_limit;
mod nagle;
mod page_faults;
mod pipes;
mod program_storm;
mod retransmits;
mod retries;
mod seen_hung;
mod seen_queued;
mod seen_waiting;
mod slow_calls;
mod slow_disk;
mod stopped;
mod storm;
mod stuck;
mod throttled;

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use systape_format::model::Family;

use super::cpu::Ran;
use super::disks::Disk;
use super::finding::{Finding, Severity, Who, wall};
use super::floor::Floor;
use super::limits::Limits;
use super::lookups::Lookups;
use super::memory::Grew;
use super::network::Again;
use super::programs::ProgramRuns;
use super::rank::Sum;
use super::talk::together::{Talked, Together};
use crate::derive::waits::{JudgedFutex, Kind, Named, Threads, other_word};
use crate::derive::why::seen::SeenWaits;
use systape_events::values::parallel;

/// Waits for one futex of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Process of the lock.
    pub who: Who,
    /// Address of the lock.
    pub address: u64,
    /// What they are for.
    pub kind: Kind,
    /// The thread that is waited for: a lock's owner; None: not known.
    pub thread: Option<Named>,
    /// Who held a lock without an owner for most of the time in which it was held.
    pub holder: Option<Named>,
    /// Whether its holder never waits for it.
    pub by_outsider: bool,
    /// Whether it is the other word, too, of a condition that has two.
    pub of_two: bool,
    /// How many.
    pub waits: u64,
    /// Time in them, ns.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// When the first began and the last ended.
    pub span: Option<(u64, u64)>,
    /// Threads that waited.
    pub waiters: usize,
    /// Some of the waits had a time-out that passed.
    pub timeouts: u64,
    /// One was open at the end, or began before the start.
    pub open: bool,
}

impl Waits {
    /// Facts of `judged`; None: no thread that waited is known.
    pub fn of(judged: JudgedFutex, threads: &Threads) -> Option<Self> {
        let JudgedFutex { at, sum, kind, thread } = judged;
        let first = threads.named(*sum.waiters.first()?)?;
        Some(Self {
            who: Who { comm: first.comm.to_vec(), pid: Some(first.pid) },
            address: at.address,
            kind,
            holder: sum.holder().filter(|_| thread.is_none()).and_then(|thread| threads.named(thread)).cloned(),
            thread: thread.and_then(|thread| threads.named(thread)).cloned(),
            by_outsider: sum.holder().is_some_and(|thread| !sum.waiters.contains(&thread)),
            of_two: false,
            waits: sum.waits,
            ns: sum.ns,
            max: sum.max,
            span: sum.span,
            waiters: sum.waiters.len(),
            timeouts: sum.timeouts,
            open: sum.open,
        })
    }

    /// Makes one of the two words of each condition that is used as a lock: waits alternate between them. They come in order of
    /// processes and addresses.
    pub fn join_words(waits: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for waits in waits {
            match joined.last_mut() {
                Some(other) if other.is_other_word(&waits) => other.add(waits),
                _ => joined.push(waits),
            }
        }
        joined
    }

    fn is_other_word(&self, other: &Self) -> bool {
        let is_lock = |waits: &Self| waits.kind == Kind::Lock && waits.thread.is_none() && !waits.of_two;
        is_lock(self) && is_lock(other) && self.who.pid == other.who.pid && self.address == other_word(other.address)
    }

    fn add(&mut self, other: Self) {
        self.holder = self.holder.take().filter(|holder| Some(holder) == other.holder.as_ref());
        self.by_outsider &= other.by_outsider;
        self.address = self.address.min(other.address);
        (self.waits, self.ns) = (self.waits + other.waits, self.ns.saturating_add(other.ns));
        (self.max, self.waiters) = (self.max.max(other.max), self.waiters.max(other.waiters));
        self.span = self.span.zip(other.span).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.timeouts += other.timeouts;
        self.open |= other.open;
        self.of_two = true;
    }
}

/// The thread that came last to a barrier more often than others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastToCome {
    /// The thread itself.
    pub thread: Named,
    /// Who waits for it.
    pub who: Who,
    /// The barrier's address.
    pub address: u64,
    /// How often they met there.
    pub rounds: u64,
}

/// A thread of a deadlock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Name of the thread.
    pub comm: Vec<u8>,
    /// Tid of the thread.
    pub tid: u32,
    /// The address of the lock that it waits for; the next thread owns it, of the last the first.
    pub address: u64,
    /// When the wait began.
    pub since: u64,
    /// Time until when it is on the tape.
    pub until: u64,
}

/// Threads of a process that wait for each other for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// The process.
    pub pid: u32,
    /// Threads of the cycle, at least one: then it waits for what it owns itself.
    pub threads: Vec<Stuck>,
}

/// A process that a signal ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Death {
    /// Who died.
    pub who: Who,
    /// Number of the signal.
    pub sig: u32,
    /// Time of the death.
    pub ts: u64,
    /// Who sent it; None: nobody, or not known.
    pub sender: Option<(Vec<u8>, u32)>,
    /// The sender is the parent of who died, or that process itself.
    pub by_family: bool,
    /// Whether the process sent the signal to itself, by a call; of a fault it is no sender.
    pub by_itself: bool,
    /// How it was sent, as `analyze kills` says it.
    pub via: &'static str,
    /// The OOM killer chose it.
    pub oom: bool,
    /// Whether it is not certain that this signal was the one.
    pub maybe: bool,
}

/// What the rules judge.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Time in calls.
    pub calls: Vec<Sum>,
    /// Waits for futexes.
    pub futexes: Vec<Waits>,
    /// Threads that wait for each other.
    pub deadlocks: Vec<Deadlock>,
    /// Waits for other ends of sockets and pipes, and for connections.
    pub talked: Vec<Talked>,
    /// Names that were looked up.
    pub lookups: Vec<Lookups>,
    /// What processes did with CPUs.
    pub ran: Vec<Ran>,
    /// Programs that were started.
    pub programs: Vec<ProgramRuns>,
    /// Processes that died of signals.
    pub deaths: Vec<Death>,
    /// I/Os by disk.
    pub disks: Vec<Disk>,
    /// Segments sent again, by peer.
    pub peers: Vec<(Vec<u8>, Again)>,
    /// Memory of processes.
    pub memory: Vec<Grew>,
    /// Limits of cgroups.
    pub limits: Limits,
    /// Who stopped a process by a signal, by the pid of that.
    pub stopped_by: BTreeMap<u32, Who>,
    /// What looks found threads waiting for.
    pub seen: SeenWaits,
    /// Every call of every process is there, and the whole recording is looked at.
    pub whole: bool,
    /// The least cost of a finding.
    pub floor: Floor,
    /// The time looked at, ns.
    pub length: u64,
}

impl Inputs {
    /// Futexes that are barriers, by process and address.
    pub fn barriers(&self) -> FxHashSet<(u32, Vec<u8>)> {
        let barriers = self.futexes.iter().filter(|waits| waits.kind == Kind::Barrier);
        barriers.filter_map(|waits| Some((waits.who.pid?, format!("{:#x}", waits.address).into_bytes()))).collect()
    }

    /// Who most often came last to barriers, as the others waited.
    pub fn last_to_come(&self) -> Vec<LastToCome> {
        let barriers = self.futexes.iter().filter(|waits| waits.kind == Kind::Barrier);
        let last = |waits: &Waits| {
            let thread = waits.thread.clone()?;
            Some(LastToCome {
                thread,
                who: waits.who.clone(),
                address: waits.address,
                rounds: waits.waits / waits.waiters.max(1) as u64,
            })
        };
        barriers.filter_map(last).collect()
    }

    /// Number of values that pass the filters.
    pub fn len(&self) -> usize {
        let ran = self.ran.iter().filter(|ran| ran.asked).count();
        let others = [
            self.programs.len(),
            self.deaths.len(),
            self.disks.len(),
            self.peers.len(),
            self.memory.len(),
            self.limits.len(),
            self.seen.waits.len(),
            self.seen.queues.len(),
            self.seen.ran.len(),
        ];
        self.calls.len() + self.futexes.len() + ran + others.iter().sum::<usize>()
    }
}

#[cfg(test)]
impl Inputs {
    /// Nothing, in a second.
    pub fn none() -> Self {
        let length = 1_000_000_000;
        let floor = Floor::of(length, None);
        let (calls, futexes, ran, programs, deaths) = Default::default();
        let (disks, peers, memory, deadlocks, talked, lookups, limits) = Default::default();
        let (stopped_by, seen) = Default::default();
        Self {
            deadlocks,
            talked,
            lookups,
            calls,
            futexes,
            ran,
            programs,
            deaths,
            disks,
            peers,
            memory,
            limits,
            stopped_by,
            seen,
            whole: true,
            floor,
            length,
        }
    }
}

/// Whose a line about several waits is: with a pid if it is one process.
fn whose(comm: Vec<u8>, row: &Together) -> Who {
    let pid = if let [pid] = row.pids[..] { Some(pid) } else { None };
    Who { comm, pid }
}

/// What is found of waits of one name, call and object, but for its words.
fn waited(rule: &WhyRule, (comm, call, object): (Vec<u8>, String, Vec<u8>), row: &Together) -> Finding {
    Finding {
        rule: rule.name,
        class: Severity::Time,
        cost: Some(wall(row.waited.ns, row.waited.span)),
        processes: row.pids.len() as u64,
        by: row.other.clone(),
        count: row.waited.count,
        max: Some(row.waited.max),
        span: row.waited.span,
        who: whose(comm, row),
        call,
        object,
        ..Finding::default()
    }
}

/// ` 17`, behind a name.
fn pid(who: &Who) -> String {
    who.pid.map(|pid| format!(" {pid}")).unwrap_or_default()
}

/// One rule.
#[derive(Debug)]
pub struct WhyRule {
    /// Name of the rule, as in JSON.
    pub name: &'static str,
    /// What it finds.
    pub finds: &'static str,
    /// Values from which on it speaks.
    pub limits: &'static str,
    /// The families without which it finds nothing.
    pub needs: &'static [Family],
    /// Function that judges.
    pub judge: fn(&Inputs) -> Vec<Finding>,
}

/// Every rule.
pub const RULES: &[WhyRule] = &[
    deadlock::RULE,
    death::RULE,
    disk_error::RULE,
    slow_calls::RULE,
    fsync::RULE,
    failures::RULE,
    storm::RULE,
    program_storm::RULE,
    lock::RULE,
    throttled::RULE,
    memory_limit::RULE,
    page_faults::RULE,
    answers::RULE,
    dns::RULE,
    connects::RULE,
    retries::RULE,
    pipes::RULE,
    nagle::RULE,
    stopped::RULE,
    cpu_wait::RULE,
    stuck::RULE,
    seen_hung::RULE,
    seen_waiting::RULE,
    seen_queued::RULE,
    slow_disk::RULE,
    retransmits::RULE,
    memory::RULE,
];

/// Findings of all rules whose families `has`, the worst first; of several about the same calls the costliest.
pub fn judge(inputs: &Inputs, has: impl Fn(Family) -> bool) -> Vec<Finding> {
    let rules: Vec<&WhyRule> = RULES.iter().filter(|rule| rule.needs.iter().all(|family| has(*family))).collect();
    let mut found: Vec<Finding> = parallel::map(&rules, |rule| (rule.judge)(inputs)).into_iter().flatten().collect();
    found.sort_by_cached_key(Finding::place);
    let mut kept: Vec<Finding> = Vec::new();
    for finding in found {
        let same = |other: &Finding| {
            !finding.call.is_empty()
                && (&other.who.comm, &other.call, &other.object) == (&finding.who.comm, &finding.call, &finding.object)
        };
        if !kept.iter().any(same) {
            kept.push(finding);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The table of docs/reading/why.md.
    fn page() -> String {
        let mut page = "| rule | finds | from |\n|---|---|---|\n".to_owned();
        for rule in RULES {
            page += &format!("| `{}` | {} | {} |\n", rule.name, rule.finds, rule.limits);
        }
        page
    }

    #[test]
    fn the_page_has_every_rule() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reading/why.md");
        let text = fs::read_to_string(&file).unwrap();
        let (before, rest) = text.split_once("<!-- rules -->\n").expect("the mark");
        let (is, after) = rest.split_once("<!-- end of rules -->").expect("the other mark");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, format!("{before}<!-- rules -->\n{}<!-- end of rules -->{after}", page())).unwrap();
        } else {
            assert_eq!(is, page(), "docs/reading/why.md: UPDATE_GOLDEN=1 writes it");
        }
        let names: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len(), "names differ");
    }

    #[test]
    fn nothing_is_no_finding() {
        assert_eq!(judge(&Inputs::none(), |_| true), []);
    }
}
