//! Waits for a CPU, time on one and time asleep of each process, as a sink of [`crate::derive::runs`].

use rustc_hash::FxHashMap;
use systape_format::model::Task;

use super::finding::Who;
use crate::derive::processes::track::key;
use crate::derive::runs::keys::is_kernel;
use crate::derive::runs::{Doing, End, Interval, IntervalSink, Slot, State, Thread, Why};
use systape_events::filter::Scope;

/// Shorter waits for a CPU are not subtracted from calls, ns.
const WORTH: u64 = 100_000;
/// Most waits that are kept for that; with more, times of calls hold waits for a CPU.
const KEPT: usize = 1 << 20;
/// Most processes that are told apart; further ones are left out.
const PROCESSES: usize = 1 << 16;

/// What one process did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Newest name of the process.
    pub comm: Vec<u8>,
    /// Pid of the process.
    pub pid: u32,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// Whether it passes the filters.
    pub asked: bool,
    /// Time on a CPU, ns.
    pub ran: u64,
    /// The part of it in no call, ns.
    pub own_code: u64,
    /// Time runnable without a CPU, ns.
    pub waited: u64,
    /// Number of such waits, and the longest, ns.
    pub waits: u64,
    /// Longest of the waits, ns.
    pub max: u64,
    /// First and last of them.
    pub span: Option<(u64, u64)>,
    /// Time in which the CPU quota of its cgroup was used up, ns, how often, the longest, and from when to when.
    pub throttled: u64,
    /// Number of times it was throttled.
    pub throttlings: u64,
    /// Longest time it was throttled, ns.
    pub throttled_max: u64,
    /// Span in which it was throttled.
    pub throttled_span: Option<(u64, u64)>,
    /// Id of its cgroup in that time; 0: not known.
    pub cgroup: u64,
    /// Time of all its threads in uninterruptible sleep, ns.
    pub stuck: u64,
    /// The longest without a break, ns, and when.
    pub stuck_max: u64,
    /// Span of `stuck_max`.
    pub stuck_span: Option<(u64, u64)>,
    /// Time in which signals had stopped it.
    pub stopped: Halt,
    /// Time in which a tracer held it.
    pub traced: Halt,
    /// Time in which the freezer of its control group held it.
    pub frozen: Halt,
}

/// Time in which a process was stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Halt {
    /// How often one of its threads was.
    pub count: u64,
    /// ns in which one or more were: all threads stop together, so that times overlap.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// The first and the last.
    pub span: Option<(u64, u64)>,
    /// One was at the end of the tape, or before its start.
    pub open: bool,
    /// Who ended the longest: let it go on, or killed it; None: not known.
    pub ended_by: Option<Who>,
}

impl Halt {
    /// Adds a stretch of one thread, of a halt that `lasts` so long until its end; ends do not go back.
    fn add(&mut self, (from, to): (u64, u64), lasts: u64, (begins, ends): (bool, bool), waker: Option<&Task>) {
        if lasts > self.max {
            self.ended_by = waker.map(|task| Who { comm: task.comm.clone(), pid: Some(task.pid) });
        }
        let seen = self.span.map_or(0, |(_, last)| last);
        self.ns = self.ns.saturating_add(to.saturating_sub(from.max(seen)));
        self.count += u64::from(begins);
        self.max = self.max.max(lasts);
        self.span = wider(self.span, from, to);
        self.open |= !ends;
    }
}

/// Waits for a CPU by thread, for subtracting them from calls.
#[derive(Debug, Default)]
pub struct Waited {
    by_thread: FxHashMap<u32, Vec<(u64, u64)>>,
    kept: usize,
    /// Some are not kept.
    pub cut: bool,
}

impl Waited {
    fn add(&mut self, utid: u32, from: u64, to: u64) {
        if utid == 0 || to.saturating_sub(from) < WORTH {
            return;
        }
        if self.kept >= KEPT {
            self.cut = true;
            return;
        }
        self.kept += 1;
        self.by_thread.entry(utid).or_default().push((from, to));
    }

    /// The time between `from` and `to` in which the thread waited for a CPU.
    pub fn within(&self, utid: u32, from: u64, to: u64) -> u64 {
        if to.saturating_sub(from) < WORTH {
            return 0;
        }
        let Some(waits) = self.by_thread.get(&utid) else { return 0 };
        let first = waits.partition_point(|(_, end)| *end <= from);
        let inside = waits[first..].iter().take_while(|(begin, _)| *begin < to);
        inside.map(|(begin, end)| end.min(&to).saturating_sub(*begin.max(&from))).sum()
    }
}

/// Who woke threads from long sleeps.
#[derive(Debug, Default)]
pub struct Woken {
    /// By thread: when it was woken, and by whom of `whose`; ascending.
    by_thread: FxHashMap<u32, Vec<(u64, u32)>>,
    whose: Vec<Who>,
    numbers: FxHashMap<u64, u32>,
    kept: usize,
}

/// Shorter sleeps need no waker, ns.
const SLEPT: u64 = 1_000_000;

impl Woken {
    /// Of more than [`KEPT`] the rest has no waker.
    fn add(&mut self, utid: u32, ts: u64, waker: &Task) {
        if utid == 0 || self.kept >= KEPT {
            return;
        }
        self.kept += 1;
        let whose = &mut self.whose;
        let number = *self.numbers.entry(key(waker)).or_insert_with(|| {
            whose.push(Who { comm: waker.comm.clone(), pid: Some(waker.pid) });
            whose.len() as u32 - 1
        });
        self.by_thread.entry(utid).or_default().push((ts, number));
    }

    /// Who woke the thread last from `from` to `to`; None: nobody, an interrupt, or not known.
    pub fn last(&self, utid: u32, from: u64, to: u64) -> Option<&Who> {
        let wakes = self.by_thread.get(&utid)?;
        let (ts, number) = wakes[..wakes.partition_point(|(ts, _)| *ts <= to)].last()?;
        self.whose.get(*number as usize).filter(|_| *ts >= from)
    }
}

/// The sink.
#[derive(Debug)]
pub struct CpuWaitSink<'a> {
    scope: &'a Scope<'a>,
    /// Times on a CPU by process.
    pub ran: FxHashMap<u64, Ran>,
    /// Waits for a CPU; see [`Waited`].
    pub waited: Waited,
    /// Counts of wake-ups; see [`Woken`].
    pub woken: Woken,
    /// How long the state of the last interval of each slot lasts, ns: a call that begins or ends, or is not known, cuts a state into
    /// several intervals.
    lasting: FxHashMap<Slot, u64>,
    /// Processes are left out.
    pub cut: bool,
}

impl<'a> CpuWaitSink<'a> {
    /// Empty, of tasks that pass `scope`.
    pub fn new(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            ran: FxHashMap::default(),
            waited: Waited::default(),
            woken: Woken::default(),
            lasting: FxHashMap::default(),
            cut: false,
        }
    }

    fn process(&mut self, task: &Task) -> Option<&mut Ran> {
        let key = key(task);
        if self.ran.len() >= PROCESSES && !self.ran.contains_key(&key) {
            self.cut = true;
            return None;
        }
        let ran = self.ran.entry(key).or_default();
        if ran.pid == 0 || (task.tid == task.pid && ran.comm != task.comm) {
            (ran.pid, ran.comm, ran.kernel) = (task.pid, task.comm.clone(), is_kernel(task));
            ran.asked |= self.scope.task(task);
        }
        Some(ran)
    }
}

/// The least span with both.
pub fn wider(span: Option<(u64, u64)>, from: u64, to: u64) -> Option<(u64, u64)> {
    let (first, last) = span.unwrap_or((from, to));
    Some((first.min(from), last.max(to)))
}

impl IntervalSink for CpuWaitSink<'_> {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let task = &threads[slot].task;
        let (from, to) = (interval.from.max(self.scope.from), interval.to.min(self.scope.to));
        let waits = matches!(interval.state, State::Waiting(why) if why != Why::Made);
        if to <= from || task.pid == 0 {
            return;
        }
        if let (State::Sleeping(_), End::Woken(Some(waker))) = (interval.state, interval.end)
            && interval.len() >= SLEPT
            && !waker.softirq
        {
            self.woken.add(task.utid, interval.to, &threads[waker.slot].task);
        }
        if waits {
            self.waited.add(task.utid, from, to);
        }
        let begins = !interval.continued;
        let lasts = self.lasting.entry(slot).or_default();
        *lasts = if begins { to - from } else { *lasts + (to - from) };
        let lasts = *lasts;
        if let State::Sleeping(letter @ (b'T' | b't' | b'F')) = interval.state
            && let Some(ran) = self.process(task)
        {
            let halt = match letter {
                b'T' => &mut ran.stopped,
                b't' => &mut ran.traced,
                _ => &mut ran.frozen,
            };
            let ends = !matches!(interval.end, End::Stop | End::Lost);
            let waker =
                if let End::Woken(Some(waker)) = interval.end { Some(&*threads[waker.slot].task) } else { None };
            halt.add((from, to), lasts, (begins, ends), waker);
        }
        let counts = matches!(interval.state, State::Running | State::Throttled | State::Sleeping(b'D'));
        if counts || waits {
            let ns = to - from;
            let Some(ran) = self.process(task) else { return };
            match interval.state {
                State::Running => {
                    ran.ran = ran.ran.saturating_add(ns);
                    ran.own_code += if matches!(interval.doing, Doing::User) { ns } else { 0 };
                }
                State::Throttled => {
                    ran.throttled = ran.throttled.saturating_add(ns);
                    ran.throttlings += u64::from(begins);
                    ran.throttled_max = ran.throttled_max.max(lasts);
                    ran.throttled_span = wider(ran.throttled_span, from, to);
                    ran.cgroup = task.cgroup_id;
                }
                State::Sleeping(_) => {
                    ran.stuck = ran.stuck.saturating_add(ns);
                    if lasts > ran.stuck_max {
                        (ran.stuck_max, ran.stuck_span) = (lasts, Some((to - lasts, to)));
                    }
                }
                _ => {
                    ran.waited = ran.waited.saturating_add(ns);
                    ran.waits += u64::from(begins);
                    ran.max = ran.max.max(lasts);
                    ran.span = wider(ran.span, from, to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_stopped_together_count_once() {
        let mut halt = Halt::default();
        let gdb = Task { pid: 4, comm: b"gdb".to_vec(), ..Task::default() };
        halt.add((10, 50), 40, (true, true), Some(&gdb));
        halt.add((12, 51), 39, (true, true), None);
        halt.add((100, 130), 30, (true, false), None);
        let ended_by = Some(Who { comm: b"gdb".to_vec(), pid: Some(4) });
        let is = Halt { count: 3, ns: 71, max: 40, span: Some((10, 130)), open: true, ended_by };
        assert_eq!(halt, is);
    }

    #[test]
    fn the_last_waker_inside_of_a_call() {
        let waker = |pid: u32| Task { pid, tid: pid, upid: pid, comm: b"w".to_vec(), ..Task::default() };
        let mut woken = Woken::default();
        woken.add(7, 10, &waker(1));
        woken.add(7, 20, &waker(2));
        let last = |from, to| woken.last(7, from, to).and_then(|who| who.pid);
        assert_eq!((last(5, 15), last(5, 20), last(21, 30), last(1, 9)), (Some(1), Some(2), None, None));
    }

    #[test]
    fn waits_inside_of_a_call_are_found() {
        let ms = 1_000_000;
        let mut waited = Waited::default();
        waited.add(7, 10 * ms, 14 * ms);
        waited.add(7, 20 * ms, 21 * ms);
        waited.add(7, 30 * ms, 30 * ms + 1);
        assert_eq!(waited.within(7, 12 * ms, 25 * ms), 3 * ms);
        assert_eq!(waited.within(7, 0, 40 * ms), 5 * ms, "short ones are not kept");
        assert_eq!((waited.within(8, 0, 40 * ms), waited.within(7, 14 * ms, 20 * ms)), (0, 0));
    }
}
