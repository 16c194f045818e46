//! Measures what findings cost, and what the subject's time went to: one pass over the tape.

use std::collections::BTreeSet;

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Family;

use super::budget::Budget;
use super::{faults, frozen, hot, waited_for};
use crate::asked::config::Config;
use crate::reports::traced::cause::Cause;
use crate::reports::traced::retime::{Lock, Sum, retime};
use crate::reports::traced::{Found, Traced, Way, of_whom, walked};
use crate::reports::{Context, losses};
use systape_answers::derive::cost::pattern::{CausePattern, MOST};
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::log::{Log, Logged};
use systape_answers::derive::runs::keys::{self, Place, Words};
use systape_answers::derive::why::finding::{Finding, Severity, Who, only};
use systape_answers::derive::why::floor::Floor;
use systape_answers::derive::why::rules::LastToCome;
use systape_events::values::words::escaped;

/// What a cost is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CostKind {
    /// The subject's time that would have been saved.
    Saved,
    /// The subject's time that would have been saved, where parts of its time are not known.
    Rough,
    /// The time in which somebody was in it: no more than that is saved.
    AtMost,
    /// The time in which somebody was in it, estimated from looks.
    Seen,
}

impl CostKind {
    /// Word in JSON and CSV.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Rough => "rough",
            Self::AtMost => "at_most",
            Self::Seen => "estimate",
        }
    }
}

/// Who is asked about, and what its time went to.
pub(super) struct Told {
    /// `sh[17] (the command that was recorded)`.
    pub who: String,
    /// Whether it is the one that was asked for or recorded, not one that was taken for it.
    pub sure: bool,
    /// Time of the subject.
    pub span: (u64, u64),
    /// What that went to.
    pub budget: Budget,
}

/// A finding with its cost.
pub(super) struct RankedFinding {
    /// The finding; its cost is the measured one.
    pub finding: Finding,
    /// The most it can cost, if that is another figure, ns.
    pub hi: Option<u64>,
    /// What the cost is; None: there is none.
    pub is: Option<CostKind>,
    /// Whether it is of the subject, or nobody is asked about.
    pub own: bool,
}

/// What is known before the pass.
pub(super) struct Before {
    /// Threads' stretches of time; None: switches were not recorded.
    pub log: Option<Log>,
    /// The candidates.
    pub candidates: Vec<Finding>,
    /// The time looked at.
    pub span: (u64, u64),
    /// The least cost.
    pub floor: Floor,
    /// Futexes that are barriers, by process and address.
    pub barriers: FxHashSet<(u32, Vec<u8>)>,
    /// Who came last to them.
    pub last: Vec<LastToCome>,
}

/// Measures `candidates`.
///
/// # Errors
/// The tape cannot be read.
pub(super) fn measure(
    config: &Config,
    context: &mut Context<'_>,
    before: Before,
) -> Result<(Option<Told>, Vec<RankedFinding>)> {
    let Before { log, candidates, span, floor, barriers, last } = before;
    let Some(log) = log else {
        return Ok((None, candidates.into_iter().map(unmeasured).collect()));
    };
    let found = of_whom(config, context, &log.threads, span);
    let (subject, way) = found.map_or((None, None), |(subject, way)| (Some(subject), Some(way)));
    let walked = walked(context, &log, way.as_ref(), span);
    let hottest = hot::hottest(context, &walked, &log)?;
    let words = Words { session: context.question.tape.session(), book: &context.question.book, names: &walked.names };
    let mut budget = Budget::of(&walked.found, &log.threads, &words);
    budget.name(&hottest);
    // an estimate is of all own code of the process
    let shares = candidates.iter().filter_map(|finding| Some((finding, finding.share?)));
    shares.for_each(|(finding, (part, whole))| budget.faults(&finding.who.comm, part, whole));
    let mut candidates = candidates;
    let mut sleeps = waited_for::find(&walked, &log.threads, &last, floor);
    waited_for::look_for(&mut sleeps, &mut candidates);
    candidates.extend(sleeps);
    let thawed = frozen::find(&walked, &log.threads, floor);
    // these have the group's name as well
    candidates
        .retain(|one| !thawed.iter().any(|with| (with.rule, &with.who, &with.by) == (one.rule, &one.who, &one.by)));
    candidates.extend(thawed);
    if keys::all_calls(context.question.tape.session()) && !losses::stores_some(context.question.tape) {
        let lost = |pid: u32, span| context.question.loss.touches(&[Family::Syscall, Family::Sched], Some(pid), span);
        candidates.extend(faults::find(&walked, &log.threads, floor, |pid, span| !lost(pid, span)));
    }
    let causes: Vec<Vec<CausePattern>> = candidates.iter().map(Finding::patterns).collect();
    // the costliest by their sums are measured
    let measured: Vec<usize> = (0..causes.len()).filter(|at| !causes[*at].is_empty()).take(MOST).collect();
    let patterns: Vec<Vec<CausePattern>> = measured.iter().map(|at| causes[*at].clone()).collect();
    // its holder, who is in no wait for it, may be one of those whose ends are waited for
    let locks = measured.iter().map(|at| Lock::of(&candidates[*at])).collect();
    let measures = retime(context, (&log, &barriers), (way.as_ref(), &walked), (&patterns, locks), span);
    let own = own(&log.threads, way.as_ref());
    let mut sums: Vec<Option<Sum>> = vec![None; causes.len()];
    measured.iter().zip(measures).for_each(|(at, sum)| sums[*at] = Some(sum));
    let of_it = |finding: &Finding| match (&own, finding.who.pid) {
        (None, _) => true,
        (Some(own), Some(pid)) => own.pids.contains(&pid),
        (Some(own), None) => finding.who.comm.is_empty() || own.comms.contains(&finding.who.comm),
    };
    let ranked = candidates.into_iter().zip(sums).filter_map(|(finding, sum)| {
        let own = of_it(&finding);
        if finding.rule == "pipes" && at_work(&finding, &walked, &log.threads) {
            return None;
        }
        let mut ranked = match (sum, finding.class) {
            (Some(sum), Severity::Time) if sum.union > 0 => {
                rank(finding, &sum, way.as_ref().filter(|way| way.ends), own, walked.rough)?
            }
            _ => RankedFinding { own, ..unmeasured(finding) },
        };
        let most = ranked.hi.or(ranked.finding.cost).unwrap_or(0);
        if ranked.is.is_some() && !floor.passes(most) {
            return None;
        }
        if ranked.finding.rule == "cpu-wait" && ranked.own {
            ran_meanwhile(&mut ranked.finding, &walked.found, &log.threads);
        }
        Some(ranked)
    });
    let mut ranked = fold(ranked.collect());
    let middle = |ranked: &RankedFinding| {
        let least = ranked.finding.cost.unwrap_or(0);
        ranked.hi.map_or(least, |hi| least / 2 + hi / 2)
    };
    ranked.sort_by_cached_key(|ranked| {
        (!ranked.own, ranked.finding.class, std::cmp::Reverse(middle(ranked)), ranked.finding.place_in_rank())
    });
    roots_first(&mut ranked, middle);
    let told = subject.zip(way).map(|(subject, way)| Told {
        who: subject.words(&log.threads, way.span),
        sure: subject.sure,
        span: way.span,
        budget,
    });
    Ok((told, ranked))
}

/// Makes one finding of a wait and of the sleeps of those that were waited for, when they cost the same.
fn fold(found: Vec<RankedFinding>) -> Vec<RankedFinding> {
    let (sleeps, mut others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|one| one.finding.rule == waited_for::RULE);
    let mut kept = Vec::new();
    for sleep in sleeps {
        let ns = sleep.finding.cost.unwrap_or(0);
        let same = |other: &&mut RankedFinding| {
            let (wait, sleep) = (&other.finding, &sleep.finding);
            (&wait.who.comm, &wait.call) == (&sleep.who.comm, &sleep.call)
                && wait.cost.is_some_and(|cost| cost.abs_diff(ns) <= cost.max(ns) / 4)
        };
        match others.iter_mut().find(same) {
            Some(wait) => {
                let by = sleep.finding.by.unwrap_or_default();
                let pid = by.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
                wait.finding.text.push_str(&format!("; meanwhile {}{pid} slept", escaped(&by.comm)));
                wait.finding.by.get_or_insert(by);
            }
            None => kept.push(sleep),
        }
    }
    others.extend(kept);
    let special: Vec<(Vec<u8>, String, u64)> =
        others.iter().filter(|one| TALKS.contains(&one.finding.rule)).map(key).collect();
    others.retain(|one| {
        let (comm, call, ns) = key(one);
        let same =
            |other: &(Vec<u8>, String, u64)| (&other.0, &other.1) == (&comm, &call) && other.2.abs_diff(ns) <= ns / 8;
        one.finding.rule != "slow-calls" || !special.iter().any(same)
    });
    others
}

/// Puts a wait for somebody who waited himself most of that time behind that other wait: it only carries it on. Who is to fill a pipe and
/// waits for what he fills it with is not to blame at all.
fn roots_first(ranked: &mut Vec<RankedFinding>, cost: impl Fn(&RankedFinding) -> u64) {
    let mut at = 0;
    while at < ranked.len() {
        let carrier = &ranked[at];
        let behind = root(carrier, &ranked[at + 1..], &cost).map(|root| at + 1 + root);
        if carrier.finding.rule == "pipes" && (behind.is_some() || root(carrier, &ranked[..at], &cost).is_some()) {
            ranked.remove(at);
            continue;
        }
        if let Some(root) = behind {
            ranked[at..=root].rotate_right(1);
        }
        at += 1;
    }
}

/// Which of `others` is what the one at the other end of `carrier` waited for.
fn root(carrier: &RankedFinding, others: &[RankedFinding], cost: impl Fn(&RankedFinding) -> u64) -> Option<usize> {
    let by = carrier.finding.by.as_ref().filter(|_| TALKS.contains(&carrier.finding.rule))?.pid?;
    others.iter().position(|other| {
        let finding = &other.finding;
        (finding.who.pid, other.own) == (Some(by), carrier.own)
            && finding.by.as_ref().is_some_and(|root| root.pid != Some(by))
            && cost(other) > cost(carrier) / 2
    })
}

/// Rules that say more of the calls of one peer than that they are slow.
const TALKS: [&str; 4] = ["answers", "dns", "nagle", "pipes"];

/// Whose time a finding is, in which call, and how much.
fn key(ranked: &RankedFinding) -> (Vec<u8>, String, u64) {
    let finding = &ranked.finding;
    (finding.who.comm.clone(), finding.call.clone(), ranked.hi.or(finding.cost).unwrap_or(0))
}

/// Cost by its rule alone: the sum of times that may overlap, within the time from first to last.
pub(super) fn unmeasured(finding: Finding) -> RankedFinding {
    let kind = if finding.bars.is_some() { CostKind::Seen } else { CostKind::AtMost };
    let is = (finding.class == Severity::Time && finding.cost.is_some()).then_some(kind);
    RankedFinding { hi: finding.bars.map(|(_, high)| high), finding, is, own: true }
}

/// A finding with its measured cost; None: it is the subject's, and costs it nothing.
fn rank(mut finding: Finding, sum: &Sum, ends: Option<&Way>, own: bool, rough: bool) -> Option<RankedFinding> {
    let union = sum.union.min(finding.cost.unwrap_or(u64::MAX).max(sum.union));
    match ends {
        Some(_) if own || sum.cost.ns > 0 => {
            let is = if rough || finding.share.is_some() { CostKind::Rough } else { CostKind::Saved };
            let part = |ns: u64| finding.share.map_or(ns, |(part, whole)| scaled(ns, part, whole));
            let (ns, hi) = (part(sum.cost.ns), sum.cost.hi.map(part));
            finding.cost = Some(ns);
            Some(RankedFinding { finding, hi, is: Some(is), own: true })
        }
        _ => {
            finding.cost = Some(finding.share.map_or(union, |(part, whole)| scaled(union, part, whole)));
            Some(RankedFinding { finding, hi: None, is: Some(CostKind::AtMost), own })
        }
    }
}

/// `ns` times `part` of `whole`.
fn scaled(ns: u64, part: u64, whole: u64) -> u64 {
    (u128::from(ns) * u128::from(part) / u128::from(whole.max(1))) as u64
}

/// The subject's processes and the names of their threads.
struct SubjectProcesses {
    pids: FxHashSet<u32>,
    comms: FxHashSet<Vec<u8>>,
}

/// The process of the subject and all that descend from it; None: nobody is asked about.
fn own(threads: &[Logged], way: Option<&Way>) -> Option<SubjectProcesses> {
    let way = way?;
    let tasks = || threads.iter().filter_map(|thread| thread.tasks.last());
    let first = threads[way.id as usize].tasks.last()?.pid;
    let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for task in tasks() {
        children.entry(task.ppid).or_default().push(task.pid);
    }
    let (mut pids, mut next) = (FxHashSet::default(), vec![first]);
    while let Some(pid) = next.pop() {
        if pids.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    let of_it = threads.iter().filter(|thread| thread.tasks.last().is_some_and(|task| pids.contains(&task.pid)));
    let comms = of_it.flat_map(|thread| &thread.tasks).map(|task| task.comm.clone()).collect();
    Some(SubjectProcesses { pids, comms })
}

/// Makes the finding one of the path's own waits for a CPU, and says who ran there: a fact, and a cause only where one had most of that time.
fn ran_meanwhile(finding: &mut Finding, found: &[Found], threads: &[Logged]) {
    let process = |id: Id, ts: u64| {
        let task = threads.get(id as usize).and_then(|thread| thread.task_at(ts))?;
        Some((task.pid, task.comm.clone()))
    };
    let waits: Vec<&Found> = found.iter().filter(|found| found.cause == Cause::Runqueue).collect();
    let all = waits.iter().fold(0, |sum, found| sum + found.ns());
    if all == 0 {
        return;
    }
    let (mut whose, mut others) = (NameShares::default(), NameShares::default());
    let mut own = 0;
    for wait in &waits {
        let waiter = process(wait.part.thread, wait.part.from);
        match wait.behind.and_then(|id| process(id, wait.part.from)) {
            Some(other) if waiter.as_ref().is_some_and(|(pid, _)| *pid == other.0) => own += wait.ns(),
            Some(other) => others.add(other, wait.ns()),
            None => {}
        }
        if let Some(waiter) = waiter {
            whose.add(waiter, wait.ns());
        }
    }
    if let Some((comm, share)) = whose.most().filter(|(_, share)| share.ns * 5 > all * 4) {
        finding.processes = share.pids.len() as u64;
        let pid = only(&share.pids);
        finding.command = pid.map_or_else(|| "sched latency".to_owned(), |pid| format!("sched latency -p {pid}"));
        finding.who = Who { comm, pid };
        finding.text = "waited {count} times for a CPU, the longest {max}".to_owned();
    }
    finding.count = waits.len() as u64;
    finding.max = waits.iter().map(|found| found.ns()).max();
    finding.span = waits.first().zip(waits.last()).map(|(first, last)| (first.part.from, last.part.to));
    let percent = |ns: u64| 100.0 * ns as f64 / all as f64;
    if own * 2 > all {
        finding.text.push_str(&format!("; its own other threads ran there {:.0}% of that time", percent(own)));
        return;
    }
    if let Some((comm, share)) = others.most().filter(|(_, share)| share.ns * 4 > all) {
        let whose = only(&share.pids).map_or_else(|| " (several processes)".to_owned(), |pid| format!(" {pid}"));
        finding.text.push_str(&format!("; {}{whose} ran there {:.0}% of that time", escaped(&comm), percent(share.ns)));
        if share.ns * 2 > all {
            finding.by = Some(Who { comm, pid: only(&share.pids) });
        }
    }
}

/// Time of processes of one name.
#[derive(Debug, Default)]
struct Share {
    ns: u64,
    pids: BTreeSet<u32>,
}

/// Time by name of processes.
#[derive(Debug, Default)]
struct NameShares(FxHashMap<Vec<u8>, Share>);

impl NameShares {
    fn add(&mut self, (pid, comm): (u32, Vec<u8>), ns: u64) {
        let share = self.0.entry(comm).or_default();
        share.ns += ns;
        share.pids.insert(pid);
    }

    fn most(self) -> Option<(Vec<u8>, Share)> {
        self.0.into_iter().max_by_key(|(comm, share)| (share.ns, std::cmp::Reverse(comm.clone())))
    }
}

/// Most of a wait for a pipe in which the other end may work on a CPU: it does what the pipe is for.
const AT_WORK: u64 = 2;

/// Whether the path's time in the waits of `finding` was mostly work of the other end.
fn at_work(finding: &Finding, walked: &Traced, threads: &[Logged]) -> bool {
    let patterns = finding.patterns();
    let is_wait: Vec<bool> = walked
        .path
        .handovers
        .iter()
        .zip(&walked.waits)
        .map(|(wait, spent)| {
            let task = threads.get(wait.thread as usize).and_then(|thread| thread.task_at(wait.from));
            let Some((task, most)) = task.zip(spent.most()) else { return false };
            let Place::Call(call) = most.place else { return false };
            let (name, file) = (&walked.calls[&call], walked.names.name(most.file));
            patterns.iter().any(|pattern| pattern.threads(task) && pattern.call(name, file))
        })
        .collect();
    let (mut all, mut worked) = (0, 0);
    for found in &walked.found {
        let mut around = found.part.handover;
        while let Some(at) = around.filter(|at| !is_wait[*at as usize]) {
            around = walked.path.handovers[at as usize].within;
        }
        if around.is_some() {
            all += found.ns();
            worked += if matches!(found.cause, Cause::Cpu | Cause::Runqueue) { found.ns() } else { 0 };
        }
    }
    worked * AT_WORK >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pid` waited for `by`.
    fn wait(rule: &'static str, pid: u32, by: u32, ns: u64) -> RankedFinding {
        let who = |pid| Who { comm: b"x".to_vec(), pid: Some(pid) };
        let finding = Finding { rule, who: who(pid), by: Some(who(by)), cost: Some(ns), ..Finding::default() };
        RankedFinding { finding, hi: None, is: Some(CostKind::Saved), own: true }
    }

    fn sorted(mut ranked: Vec<RankedFinding>) -> Vec<u32> {
        roots_first(&mut ranked, |one| one.finding.cost.unwrap_or(0));
        ranked.iter().filter_map(|one| one.finding.who.pid).collect()
    }

    #[test]
    fn who_is_waited_for_in_the_end_stands_before_those_who_wait_for_who_waits() {
        let chain = || vec![wait("answers", 1, 2, 770), wait("cpu-wait", 9, 9, 700), wait("answers", 2, 3, 610)];
        assert_eq!(sorted(chain()), [2, 1, 9]);
        let mut weak = chain();
        weak[2].finding.cost = Some(300);
        assert_eq!(sorted(weak), [1, 9, 2], "most of its time it did something else");
        assert_eq!(sorted(vec![wait("pipes", 1, 2, 900), wait("waited-for", 2, 3, 850)]), [2]);
        assert_eq!(sorted(vec![wait("waited-for", 2, 3, 850), wait("pipes", 1, 2, 800)]), [2]);
        assert_eq!(sorted(vec![wait("pipes", 1, 2, 900), wait("pipes", 2, 2, 850)]), [1, 2]);
    }
}
