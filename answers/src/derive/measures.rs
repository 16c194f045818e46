//! What tasks did in a time as few sums, whatever their calls: time on CPUs, waiting for one, asleep, I/Os of disks, page faults, programs
//! and processes. They are of time that all threads spend together: two threads spend two seconds in one.

use rustc_hash::FxHashMap;
use systape_format::families::{FAULT_MAJOR, PAGE_FAULT_USER};
use systape_format::model::{Call, Family, Task};
use systape_format::reader::Tape;

use super::block::files::Files;
use super::block::flags::Op;
use super::block::io::Io;
use super::processes;
use super::runs::decode::Needs;
use super::runs::feed::feed;
use super::runs::keys::{Place, all_calls, is_kernel, place};
use super::runs::{Interval, IntervalSink, Slot, State, Thread};
use systape_events::calls::CallBook;
use systape_events::families::in_session;
use systape_events::question::Question;
use systape_events::scan::{Coverage, Scan};

/// What a [`Measure`] is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds of threads.
    Ns,
    /// A number.
    Count,
    /// Number of bytes.
    Bytes,
}

/// One thing that is measured.
#[derive(Debug)]
pub struct Kind {
    /// Name of the measure in JSON.
    pub name: &'static str,
    /// What more of it means, behind "it": `waits 3 s more for a CPU` has `waits` and `for a CPU`.
    pub verb: &'static str,
    /// Words behind `verb` and the number, `for a CPU`.
    pub of: &'static str,
    /// Heading in a table.
    pub heading: &'static str,
    /// Unit of the measure.
    pub unit: Unit,
    /// The events that it is made from.
    pub family: Family,
}

const fn time(name: &'static str, (verb, of): (&'static str, &'static str), heading: &'static str) -> Kind {
    Kind { name, verb, of, heading, unit: Unit::Ns, family: Family::Sched }
}

const fn number(name: &'static str, heading: &'static str, unit: Unit, family: Family) -> Kind {
    Kind { name, verb: "has", of: heading, heading, unit, family }
}

/// Everything that is measured; times come first, and last of them how a thread that has nothing to do spends its time: more of that may be
/// the consequence of anything.
pub const KINDS: [Kind; 21] = [
    time("cpu-user", ("computes", "in its own code"), "on a CPU, own code"),
    time("cpu-calls", ("computes", "in calls"), "on a CPU, in calls"),
    time("cpu-other", ("runs", "on a CPU"), "on a CPU, kernel or unknown"),
    time("cpu-wait", ("waits", "for a CPU"), "waits for a CPU"),
    time("throttled", ("is throttled", "by a quota of CPU time"), "throttled by a quota"),
    time("asleep-disk", ("sleeps", "uninterruptibly (D)"), "asleep (D)"),
    time("stopped", ("is stopped", ""), "stopped or frozen (T, t, F)"),
    time("asleep-calls", ("sleeps", "in calls on files, pipes and sockets"), "asleep in other calls"),
    time("asleep-futex", ("sleeps", "in futex"), "asleep in futex"),
    time("asleep-poll", ("sleeps", "in poll, select and epoll"), "asleep in poll"),
    time("asleep-wait", ("sleeps", "in waits for children and signals"), "asleep in wait"),
    time("asleep-timer", ("sleeps", "as its code asks"), "asleep in nanosleep"),
    time("asleep-unknown", ("sleeps", "in calls that are not known"), "asleep, call not known"),
    number("disk-reads", "reads of disks", Unit::Count, Family::Block),
    number("disk-read-bytes", "bytes read from disks", Unit::Bytes, Family::Block),
    number("disk-writes", "writes to disks", Unit::Count, Family::Block),
    number("disk-write-bytes", "bytes written to disks", Unit::Bytes, Family::Block),
    number("page-faults", "page faults", Unit::Count, Family::Fault),
    number("major-faults", "page faults that read from storage", Unit::Count, Family::Fault),
    number("programs", "programs started", Unit::Count, Family::Process),
    number("exits", "processes ended", Unit::Count, Family::Process),
];

/// The families that measures of `family` are made from.
pub fn inputs(family: Family) -> Vec<Family> {
    match family {
        // who was there, and in which call
        Family::Sched => vec![Family::Sched, Family::Process, Family::Syscall],
        family => vec![family],
    }
}

/// Places in [`KINDS`].
mod at {
    pub(super) const CPU_USER: usize = 0;
    pub(super) const CPU_CALLS: usize = 1;
    pub(super) const CPU_OTHER: usize = 2;
    pub(super) const CPU_WAIT: usize = 3;
    pub(super) const THROTTLED: usize = 4;
    pub(super) const DISK: usize = 5;
    pub(super) const STOPPED: usize = 6;
    pub(super) const CALLS: usize = 7;
    pub(super) const FUTEX: usize = 8;
    pub(super) const POLL: usize = 9;
    pub(super) const CHILDREN: usize = 10;
    pub(super) const TIMER: usize = 11;
    pub(super) const UNKNOWN: usize = 12;
    pub(super) const READS: usize = 13;
    pub(super) const WRITES: usize = 15;
    pub(super) const FAULTS: usize = 17;
    pub(super) const MAJOR: usize = 18;
    pub(super) const PROGRAMS: usize = 19;
    pub(super) const EXITS: usize = 20;
}

/// How much there was of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measure {
    /// The sum, in the kind's unit.
    pub sum: u64,
    /// Number of stretches of time, or of what is counted.
    pub count: u64,
    /// Sum of the squares of the stretches.
    pub squares: f64,
    /// The most that one thread has of it, ns; 0 of what is no time.
    pub most: u64,
}

impl Measure {
    fn add(&mut self, value: u64) {
        self.sum = self.sum.saturating_add(value);
        self.count = self.count.saturating_add(1);
        self.squares += (value as f64).powi(2);
    }
}

/// All measures of a time, in the order of [`KINDS`]; None: its events were not recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures(pub [Option<Measure>; KINDS.len()]);

impl Measures {
    /// Measures of the tasks and the time of `question`; parts that cannot be read are added to its losses.
    pub fn of(question: &mut Question<'_>) -> Self {
        let session = question.tape.session();
        let mut sums = [None; KINDS.len()];
        for (sum, kind) in sums.iter_mut().zip(&KINDS) {
            *sum = in_session(session, kind.family).then(Measure::default);
        }
        let mut measures = Self(sums);
        if in_session(session, Family::Sched) {
            let coverage = measures.states(question);
            coverage.tell(&mut question.loss);
        }
        let coverage = measures.events(question);
        coverage.tell(&mut question.loss);
        if in_session(session, Family::Process) {
            let mut findings = Vec::new();
            measures.lives(question, question.tape, &mut findings);
            question.loss.findings.append(&mut findings);
        }
        measures
    }

    fn add(&mut self, at: usize, value: u64) {
        if let Some(Some(measure)) = self.0.get_mut(at) {
            measure.add(value);
        }
    }

    /// States of threads.
    fn states(&mut self, question: &Question<'_>) -> Coverage {
        let session = question.tape.session();
        let calls = in_session(session, Family::Syscall);
        let sink = StateSums {
            question,
            all_calls: all_calls(session),
            sorts: FxHashMap::default(),
            of_thread: FxHashMap::default(),
            measures: self,
        };
        let fed = feed(question, Needs { calls, ..Needs::default() }, question.scope.to, sink);
        let StateSums { of_thread, measures, .. } = fed.tracker.sink;
        for ((_, at), ns) in of_thread {
            if let Some(Some(measure)) = measures.0.get_mut(at) {
                measure.most = measure.most.max(ns);
            }
        }
        fed.coverage
    }

    /// I/Os of disks, and page faults.
    fn events(&mut self, question: &Question<'_>) -> Coverage {
        let scope = &question.scope;
        Scan::all(question.tape).walk(
            "block I/Os and tables",
            |segment, dict| Ok((segment.blocks(dict)?, segment.tables(dict)?)),
            |_, dict, (ios, tables)| {
                let files = Files::new(&tables, dict);
                for io in ios.iter().map(|io| Io::new(io, dict).with(&files)).filter(|io| io.passes(scope)) {
                    let first = match Op::of_io(io.io) {
                        Op::Read => at::READS,
                        Op::Write | Op::WriteZeroes => at::WRITES,
                        _ => continue,
                    };
                    self.add(first, 1);
                    self.add(first + 1, io.io.bytes.into());
                }
                for table in &tables {
                    let at = match &*table.def.name {
                        name if name == PAGE_FAULT_USER.name => at::FAULTS,
                        name if name == FAULT_MAJOR.name => at::MAJOR,
                        _ => continue,
                    };
                    let Some(tasks) = table.column("task") else { continue };
                    let passes = |(ts, of): (&u64, &u64)| {
                        scope.at(*ts) && dict.task_of(*of).map_or(!scope.by_task(), |task| scope.task(task))
                    };
                    let count = table.ts.iter().zip(tasks).filter(|row| passes(*row)).count();
                    (0..count).for_each(|_| self.add(at, 1));
                }
            },
        )
    }

    /// Programs that were started, and processes that ended.
    fn lives(&mut self, question: &Question<'_>, tape: &Tape, findings: &mut Vec<String>) {
        let scope = &question.scope;
        for process in &processes::read::read(tape, findings).all {
            let started = |image: &&processes::Image| image.exec && scope.at(image.since) && scope.task(&image.task);
            let programs = process.images.iter().filter(started).count();
            (0..programs).for_each(|_| self.add(at::PROGRAMS, 1));
            let ended = process.end().is_some_and(|end| scope.at(end.ts)) && scope.task(&process.task);
            if ended {
                self.add(at::EXITS, 1);
            }
        }
    }
}

/// Adds up states of threads.
struct StateSums<'a> {
    question: &'a Question<'a>,
    all_calls: bool,
    /// Where sleep in a call counts.
    sorts: FxHashMap<Call, usize>,
    /// Time of each thread by kind.
    of_thread: FxHashMap<(u32, usize), u64>,
    measures: &'a mut Measures,
}

/// Where sleep in the call `name` counts.
fn asleep_in(name: &str) -> usize {
    match name {
        name if name.starts_with("futex") => at::FUTEX,
        "poll" | "ppoll" | "select" | "pselect6" => at::POLL,
        name if name.starts_with("epoll_") => at::POLL,
        "nanosleep" | "clock_nanosleep" => at::TIMER,
        "wait4" | "waitid" | "waitpid" | "pause" | "rt_sigsuspend" | "rt_sigtimedwait" | "vfork" => at::CHILDREN,
        _ => at::CALLS,
    }
}

impl StateSums<'_> {
    fn kind(&mut self, task: &Task, interval: &Interval) -> Option<usize> {
        let what = place(&interval.doing, interval.state, is_kernel(task), self.all_calls);
        Some(match (interval.state, what) {
            (State::Running, Place::User) => at::CPU_USER,
            (State::Running, Place::Call(_)) => at::CPU_CALLS,
            (State::Running, _) => at::CPU_OTHER,
            (State::Waiting(_), _) => at::CPU_WAIT,
            (State::Throttled, _) => at::THROTTLED,
            (State::Sleeping(b'D'), _) => at::DISK,
            (State::Sleeping(b'T' | b't' | b'F'), _) => at::STOPPED,
            (State::Sleeping(b'S'), Place::Call(call)) => {
                let book: &CallBook<'_> = &self.question.book;
                *self.sorts.entry(call).or_insert_with(|| asleep_in(&book.get(call).name))
            }
            // a thread of the kernel without work
            (State::Sleeping(b'S'), Place::Kernel) => return None,
            (State::Sleeping(b'S'), _) => at::UNKNOWN,
            _ => return None,
        })
    }
}

impl IntervalSink for StateSums<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.question.scope.task(&thread.task)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let (scope, task) = (&self.question.scope, &threads[slot].task);
        let (from, to) = (interval.from.max(scope.from), interval.to.min(scope.to));
        let cpus = scope.filters().cpus.as_ref();
        if to <= from || !scope.task(task) || cpus.is_some_and(|cpus| cpus.binary_search(&interval.cpu).is_err()) {
            return;
        }
        if let Some(at) = self.kind(task, interval) {
            self.measures.add(at, to - from);
            let of = self.of_thread.entry((if task.utid == 0 { task.tid } else { task.utid }, at)).or_default();
            *of = of.saturating_add(to - from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_their_names() {
        let name = |at: usize| KINDS[at].name;
        let of =
            [at::CPU_USER, at::CPU_WAIT, at::DISK, at::FUTEX, at::TIMER, at::UNKNOWN, at::MAJOR, at::EXITS].map(name);
        let names = ["cpu-user", "cpu-wait", "asleep-disk", "asleep-futex", "asleep-timer", "asleep-unknown"];
        assert_eq!(of[..6], names);
        assert_eq!(of[6..], ["major-faults", "exits"]);
        assert_eq!([at::READS + 1, at::WRITES + 1].map(name), ["disk-read-bytes", "disk-write-bytes"]);
    }

    #[test]
    fn sleep_counts_by_what_is_waited_for() {
        let of = |name: &str| KINDS[asleep_in(name)].name;
        assert_eq!(
            [of("futex_waitv"), of("epoll_pwait2"), of("clock_nanosleep")],
            ["asleep-futex", "asleep-poll", "asleep-timer"]
        );
        assert_eq!([of("waitid"), of("read"), of("flock")], ["asleep-wait", "asleep-calls", "asleep-calls"]);
    }

    #[test]
    fn sums_do_not_wrap() {
        let mut measure = Measure { sum: u64::MAX - 1, ..Measure::default() };
        measure.add(7);
        assert_eq!((measure.sum, measure.count), (u64::MAX, 1));
    }
}
