//! The filters of a report: one struct that every report shares.
//!
//! [`Filters`] is what was asked, before a tape is open. [`Scope`] is the same bound to one tape: times are its
//! clock's, user names are numbers, cgroups are ids. [`SegmentFilter`] is a scope bound to one segment: tasks and calls are decided
//! once each, so a row costs two table look-ups.

use rustc_hash::FxHashSet;
use systape_abi::{Abi, Effect, Selection};
use systape_format::model::{
    Call, CallState, Core, Dict, LedgerRow, RecordedFamilies, SegmentInfo, Session, Task, Time,
};

use crate::in_cgroup::InCgroup;
use crate::picked::Picked;
use crate::values::clock::{self, Clock};
use crate::values::glob;
use crate::values::timespec::Edge;

/// The filters as typed; empty lists and None let everything pass.
#[derive(Clone, Debug)]
pub struct Filters {
    /// Calls longer than this, ns.
    pub longer_than: Option<u64>,
    /// Calls and events of `-e`.
    pub selection: Selection,
    /// Whether there was a `-e`.
    pub selects: bool,
    /// Only calls that failed.
    pub failure: bool,
    /// Pids of the processes.
    pub pids: Vec<u32>,
    /// And those below them.
    pub tree: bool,
    /// Tids of the threads.
    pub tids: Vec<u32>,
    /// Users, by number or name.
    pub users: Vec<String>,
    /// Names of threads, as globs.
    pub comms: Vec<String>,
    /// Names of threads that are left out, as globs.
    pub not_comms: Vec<String>,
    /// CPUs, sorted.
    pub cpus: Option<Vec<u32>>,
    /// Cgroups, by path or by what they belong to.
    pub cgroups: Vec<InCgroup>,
    /// Files that calls are on, by path, as globs.
    pub paths: Vec<String>,
    /// Not on these.
    pub not_paths: Vec<String>,
    /// When calls began: from, to.
    pub time: (Option<Edge>, Option<Edge>),
}

impl Filters {
    /// A filter of the same times, which everything else passes: for answers about one thread that others have a part in.
    pub fn of_time(&self) -> Self {
        Self { time: self.time, ..Self::none() }
    }

    /// Whether there is a filter on thread names.
    fn names(&self) -> bool {
        !self.comms.is_empty() || !self.not_comms.is_empty()
    }

    /// Whether there is a filter on files.
    #[inline]
    pub fn by_path(&self) -> bool {
        !self.paths.is_empty() || !self.not_paths.is_empty()
    }

    /// Whether there is a filter on threads, processes, users or cgroups.
    pub fn by_task(&self) -> bool {
        let numbers = !self.pids.is_empty() || !self.tids.is_empty();
        let names = !self.users.is_empty() || !self.comms.is_empty() || !self.not_comms.is_empty();
        numbers || names || !self.cgroups.is_empty()
    }

    /// Whether a thread with that name passes.
    fn named(&self, comm: &[u8]) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| glob::matches(glob.as_bytes(), comm));
        (self.comms.is_empty() || any(&self.comms)) && !any(&self.not_comms)
    }
}

/// [`Filters`] bound to one tape.
#[derive(Debug)]
pub struct Scope<'a> {
    filters: &'a Filters,
    /// Processes, and those below them if these are asked for; empty: all.
    pids: FxHashSet<u32>,
    uids: Option<FxHashSet<u32>>,
    cgroup_ids: Option<FxHashSet<u64>>,
    /// The calls that pass `-P`; None: it was not asked, or is not found out yet.
    picked: Option<Picked>,
    /// Calls that began at or after this, CLOCK_MONOTONIC ns.
    pub from: u64,
    /// Calls that began before this.
    pub to: u64,
    /// The tape is a cut of some tasks: what it has of others is there for what it tells of these.
    cut_tasks: bool,
}

/// Why a tape cannot tell what [`Filters`] ask for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// An end of [`Filters::time`] has no place on the tape.
    #[error("--time")]
    Time(#[from] UnplacedTime),
    /// No user has that name.
    #[error(
        "-u {user}: the recorded machine has no such user (it has {}); a number works too, and --unit NAME chooses a unit of systemd",
        known.join(", ")
    )]
    NoUser {
        /// The name that was asked for.
        user: String,
        /// Names of users that there are, a few.
        known: Vec<String>,
    },
    /// No cgroup is what was asked for.
    #[error("{wanted}: {known}")]
    NoCgroup {
        /// What was asked for, as an option.
        wanted: String,
        /// What there is instead, in words.
        known: String,
    },
}

/// Why a time has no place on a tape: it is written in another way, or is of another day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnplacedTime {
    /// The tape does not say what the time was.
    #[error("this tape has no clock sample, so {0} cannot be placed on it; use seconds")]
    NoClock(&'static str),
    /// The tape is of several days, of which not exactly one has this time of day.
    #[error(
        "the tape is of several days and has this time on {}: write the date too, {first} to {last}",
        if *several { "more than one" } else { "none" }
    )]
    WhichDay {
        /// More than one has it; otherwise none.
        several: bool,
        /// The time on the first day, as RFC 3339.
        first: String,
        /// The time on the last day.
        last: String,
    },
}

/// The time of `edge` on the tape of `session`, which ends at `end`: CLOCK_MONOTONIC ns, at the earliest and at the latest.
///
/// # Errors
/// The tape has no clock samples, or several days have this time of day.
pub fn place(edge: Edge, session: &Session, end: u64, clock: &Clock) -> Result<(u64, u64), UnplacedTime> {
    let length = u128::from(end.saturating_sub(session.window_open));
    let ts = match edge {
        Edge::Offset(ns) => session.window_open.saturating_add_signed(ns),
        Edge::Mono(ns) => ns,
        Edge::Part(millionths) => {
            session.window_open.saturating_add((length * u128::from(millionths) / 1_000_000) as u64)
        }
        Edge::Real(ns) => match clock.monotonic(ns) {
            // of a time that is not known, all that may be meant
            Some(both) => return Ok(both),
            None => return Err(UnplacedTime::NoClock("real times")),
        },
        Edge::Daytime(ns) => {
            let real = on_its_day(ns, session.window_open, end, clock)?;
            return place(Edge::Real(real), session, end, clock);
        }
    };
    Ok((ts, ts))
}

/// The time of day `daytime` on the day of a tape from `open` to `end`; where there are several, on the one on which the tape has it.
fn on_its_day(daytime: i64, open: u64, end: u64, clock: &Clock) -> Result<i64, UnplacedTime> {
    let Some((first, last)) = clock.days(open, end) else { return Err(UnplacedTime::NoClock("times of day")) };
    if first == last {
        return Ok(clock::on_day(first, daytime));
    }
    let inside = |real: &i64| clock.monotonic(*real).is_some_and(|(from, to)| to >= open && from <= end);
    // two are enough to be more than one
    let mut days = (first..=last).map(|day| clock::on_day(day, daytime)).filter(inside);
    match (days.next(), days.next()) {
        (Some(real), None) => Ok(real),
        (found, _) => {
            let dated = |day| clock::rfc3339(clock::Real::known(clock::on_day(day, daytime)));
            Err(UnplacedTime::WhichDay { several: found.is_some(), first: dated(first), last: dated(last) })
        }
    }
}

impl<'a> Scope<'a> {
    /// Binds `filters` to the tape of `session`, which ends at `end`; `clock` is called only for real times.
    ///
    /// # Errors
    /// The tape cannot answer them: it does not know the real time, or the users, that they ask for.
    pub fn new(
        filters: &'a Filters,
        session: &Session,
        end: u64,
        clock: impl FnOnce() -> Clock,
    ) -> Result<Self, ScopeError> {
        let real = [filters.time.0, filters.time.1].iter().flatten().any(|edge| edge.needs_clock());
        let clock = if real { clock() } else { Clock::default() };
        let place = |edge: Edge| place(edge, session, end, &clock);
        let from = filters.time.0.map_or(Ok((0, 0)), place)?.0;
        // 100% means to the end, the last event included
        let to = match filters.time.1 {
            None | Some(Edge::Part(1_000_000)) => u64::MAX,
            Some(edge) => place(edge)?.1,
        };
        // of a cut only this is known; what is outside is there for what it tells of it
        let (from, to) = session.cut.map_or((from, to), |cut| (from.max(cut.from), to.min(cut.to)));
        Ok(Self {
            filters,
            pids: filters.pids.iter().copied().collect(),
            uids: uids(filters, session)?,
            cgroup_ids: cgroup_ids(filters, session)?,
            picked: None,
            from,
            to,
            cut_tasks: session.cut_tasks,
        })
    }

    /// The filters as typed.
    #[inline]
    pub fn filters(&self) -> &Filters {
        self.filters
    }

    /// Lets these processes pass, too, from now on.
    #[inline]
    pub fn add_pids(&mut self, pids: Vec<u32>) {
        self.pids.extend(pids);
    }

    /// Lets only these calls pass from now on.
    #[inline]
    pub fn pick(&mut self, picked: Picked) {
        self.picked = Some(picked);
    }

    /// Whether there is a filter on durations, errors or files, so that each row must be tested.
    #[inline]
    pub fn valued(&self) -> bool {
        self.filters.longer_than.is_some() || self.filters.failure || self.picked.is_some()
    }

    /// Whether there is a filter on times: rows of some segments may begin outside.
    #[inline]
    pub fn timed(&self) -> bool {
        self.from > 0 || self.to < u64::MAX
    }

    /// Whether the segment may have a row that passes, by the index.
    pub fn may_match(&self, info: &SegmentInfo) -> bool {
        let f = self.filters;
        if info.rows == 0 || info.end_max < self.from || info.start_min >= self.to {
            return false;
        }
        if self.picked.as_ref().is_some_and(|picked| !picked.may_match(info.segment)) {
            return false;
        }
        // a lower bound of exactly `longer_than` passes too
        if f.longer_than.is_some_and(|ns| info.max_dur < ns) || (f.failure && info.failures == 0) {
            return false;
        }
        if f.selects
            && info
                .calls
                .as_ref()
                .is_some_and(|calls| !calls.iter().any(|c| f.selection.contains(Abi::from_raw(c.abi), c.nr)))
        {
            return false;
        }
        self.may_be_of(info)
    }

    /// Whether the segment may have an event of a process that passes, by the index.
    #[inline]
    pub(crate) fn may_be_of(&self, info: &SegmentInfo) -> bool {
        self.pids.is_empty() || self.pids.iter().any(|pid| info.may_contain_pid(*pid))
    }

    /// Whether the segment's ledger may have calls that pass, by the index. It has neither their durations nor their
    /// outcomes, and rows of unknown processes have no pid.
    #[inline]
    pub fn may_count(&self, info: &SegmentInfo) -> bool {
        let f = self.filters;
        let named = |calls: &Vec<Call>| calls.iter().any(|c| f.selection.contains(Abi::from_raw(c.abi), c.nr));
        // a call that began in time ended after `from`; how long before its end it began is not known here
        info.end_max >= self.from && (!f.selects || info.calls.as_ref().is_none_or(named))
    }

    /// Whether a filter selects single threads: by number or name, which other threads of their process do not share.
    #[inline]
    pub fn by_thread(&self) -> bool {
        !self.filters.tids.is_empty() || self.filters.names()
    }

    /// Whether there is a filter on cgroups.
    #[inline]
    pub fn by_cgroup(&self) -> bool {
        self.cgroup_ids.is_some()
    }

    /// Whether tasks are chosen by what may change while they live.
    #[inline]
    pub fn by_state(&self) -> bool {
        self.filters.names() || self.by_cgroup() || self.uids.is_some()
    }

    /// Whether there is a filter on tasks.
    #[inline]
    pub fn by_task(&self) -> bool {
        self.by_thread() || self.by_cgroup() || self.uids.is_some() || !self.pids.is_empty()
    }

    /// Whether the facts that all threads of a process share pass: its pid and its user.
    #[inline]
    pub fn process(&self, leader: &Task) -> bool {
        let left_out = self.cut_tasks && leader.recorded == RecordedFamilies::NOTHING;
        !left_out
            && (self.pids.is_empty() || self.pids.contains(&leader.pid))
            && self.uids.as_ref().is_none_or(|uids| uids.contains(&leader.uid))
    }

    /// Whether the facts of the thread pass: number and name.
    #[inline]
    pub fn thread(&self, task: &Task) -> bool {
        let f = self.filters;
        (f.tids.is_empty() || f.tids.contains(&task.tid)) && f.named(&task.comm)
    }

    /// Whether the task's cgroup passes.
    #[inline]
    pub fn cgroup(&self, task: &Task) -> bool {
        self.cgroup_ids.as_ref().is_none_or(|ids| ids.contains(&task.cgroup_id))
    }

    /// Whether `task` passes.
    #[inline]
    pub fn task(&self, task: &Task) -> bool {
        self.process(task) && self.thread(task) && self.cgroup(task)
    }

    /// Whether an event of `task` passes. One without a known task passes unless there is a filter on tasks; with `-G`
    /// its own `cgroup` (0 = not known) decides.
    pub fn blamed(&self, task: Option<&Task>, cgroup: u64) -> bool {
        let f = self.filters;
        match task {
            Some(task) => self.task(task),
            None => {
                self.pids.is_empty()
                    && f.tids.is_empty()
                    && self.uids.is_none()
                    && !f.names()
                    && self.cgroup_ids.as_ref().is_none_or(|ids| ids.contains(&cgroup))
            }
        }
    }

    /// Whether an event at `ts` passes `--time`.
    #[inline]
    pub fn at(&self, ts: u64) -> bool {
        ts >= self.from && ts < self.to
    }

    /// Whether calls that a ledger row counts began in `--time`; None: some may have. They ended in [first, last] and took
    /// `min` to `max`.
    pub fn began(&self, row: &LedgerRow) -> Option<bool> {
        let (earliest, latest) = (row.first.saturating_sub(row.max), row.last.saturating_sub(row.min));
        if latest < self.from || earliest >= self.to {
            Some(false)
        } else {
            (earliest >= self.from && latest < self.to).then_some(true)
        }
    }

    /// Whether rows are left out by time, or because the tape is a cut.
    #[inline]
    pub fn narrows(&self) -> bool {
        self.timed() || self.cut_tasks
    }

    /// Whether `call` passes `-e`.
    #[inline]
    pub fn call(&self, call: &Call) -> bool {
        self.filters.selection.contains(Abi::from_raw(call.abi), call.nr)
    }

    /// Decides tasks and calls of the segment with that number; u32::MAX: not a segment, but calls that a checkpoint has open.
    pub fn segment(&self, dict: &Dict, number: u32) -> SegmentFilter<'_> {
        SegmentFilter {
            scope: self,
            picked: self.picked.as_ref().map(|picked| (picked.of(number), picked.all_but)),
            tasks: dict.tasks.iter().map(|t| self.task(t)).collect(),
            calls: dict.calls.iter().map(|c| self.call(c)).collect(),
            timeless: match self.filters.longer_than {
                Some(_) => dict.calls.iter().map(is_exit).collect(),
                None => Vec::new(),
            },
        }
    }
}

/// Whether it is exit or exit_group: they do not return, so that they have no duration.
fn is_exit(call: &Call) -> bool {
    systape_abi::describe(Abi::from_raw(call.abi), call.nr).is_some_and(|desc| desc.effect == Effect::Exit)
}

/// [`Scope`] bound to one segment.
#[derive(Debug)]
pub struct SegmentFilter<'a> {
    scope: &'a Scope<'a>,
    /// The rows that pass `-P`, ascending, or (true) that do not; None: all pass.
    picked: Option<(&'a [u32], bool)>,
    /// Whether it passes, for each task of the segment.
    pub tasks: Vec<bool>,
    /// Whether it passes, for each call of the segment.
    pub calls: Vec<bool>,
    /// Which of them have no duration; filled if there is a filter on that.
    timeless: Vec<bool>,
}

impl SegmentFilter<'_> {
    /// Whether `row` passes everything but time and CPU.
    #[inline]
    pub fn core(&self, core: &Core, row: usize) -> bool {
        self.key(core, row) && self.value(core, row)
    }

    /// Whether every row of `core` passes everything but time and CPU, as far as that can be said without a look at each.
    pub fn core_has_all(&self, core: &Core) -> bool {
        let f = self.scope.filters;
        let all = |passes: &[bool]| passes.iter().all(|passes| *passes);
        let any_value = self.picked.is_none() && f.longer_than.is_none() && !f.failure;
        any_value && core.unselected.is_empty() && all(&self.calls) && all(&self.tasks)
    }

    /// Whether task and call of `row` pass. Calls that a tape before 1.5 kept only to track descriptors do not: they
    /// were not selected, and may be of processes that were not.
    #[inline]
    fn key(&self, core: &Core, row: usize) -> bool {
        self.calls[core.call[row] as usize]
            && self.tasks[core.task[row] as usize]
            && !core.unselected.get(row).copied().unwrap_or(false)
    }

    /// Whether duration, errno and files of `row` pass.
    #[inline]
    pub fn value(&self, core: &Core, row: usize) -> bool {
        let f = self.scope.filters;
        let state = core.state[row];
        if self.picked.is_some_and(|(rows, all_but)| rows.binary_search(&(row as u32)).is_ok() == all_but) {
            return false;
        }
        if let Some(ns) = f.longer_than {
            let passes = match state {
                _ if self.timeless[core.call[row] as usize] => false,
                CallState::Complete => core.dur[row] > ns,
                CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore => {
                    core.dur[row] >= ns
                }
                CallState::CloneChild | CallState::Denied | CallState::LostEnter => false,
            };
            if !passes {
                return false;
            }
        }
        !f.failure || failed(state, core.errno[row])
    }

    /// Whether start and CPU of `row` pass.
    #[inline]
    pub fn time(&self, time: &Time, row: usize) -> bool {
        let start = time.start[row];
        start >= self.scope.from
            && start < self.scope.to
            && self
                .scope
                .filters
                .cpus
                .as_ref()
                .is_none_or(|cpus| time.cpu.get(row).is_some_and(|cpu| cpus.binary_search(cpu).is_ok()))
    }
}

/// `-u` as numbers; names are resolved by the tape's users.
fn uids(filters: &Filters, session: &Session) -> Result<Option<FxHashSet<u32>>, ScopeError> {
    if filters.users.is_empty() {
        return Ok(None);
    }
    let mut uids = FxHashSet::default();
    for user in &filters.users {
        if let Ok(uid) = user.parse() {
            uids.insert(uid);
        } else if let Some((uid, _)) = session.users.iter().find(|(_, name)| name == user.as_bytes()) {
            uids.insert(*uid);
        } else {
            let known = session.users.iter().take(8).map(|(_, name)| String::from_utf8_lossy(name).into_owned());
            return Err(ScopeError::NoUser { user: user.clone(), known: known.collect() });
        }
    }
    Ok(Some(uids))
}

/// `-G`, `--unit`, `--container` and `--pod` as ids.
fn cgroup_ids(filters: &Filters, session: &Session) -> Result<Option<FxHashSet<u64>>, ScopeError> {
    if filters.cgroups.is_empty() {
        return Ok(None);
    }
    let mut ids = FxHashSet::default();
    for wanted in &filters.cgroups {
        let before = ids.len();
        ids.extend(session.cgroups.iter().filter(|(_, path)| wanted.has(path, session)).map(|(id, _)| *id));
        if ids.len() == before {
            return Err(ScopeError::NoCgroup { wanted: wanted.to_string(), known: wanted.known(session) });
        }
    }
    Ok(Some(ids))
}

/// The beginning of a tape's time, which calls may be older than.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapeStart {
    /// When the window was opened, ns of CLOCK_MONOTONIC.
    pub open: u64,
    /// The tape was made of a log: of a call without a duration the start is known, and not the end.
    imported: bool,
}

impl TapeStart {
    /// The beginning of the tape of `session`.
    pub fn of(session: &Session) -> Self {
        Self { open: session.window_open, imported: !session.imported.is_empty() }
    }

    /// Whether the start of a call is its real start; otherwise it began at that time or before.
    pub fn is_known(self, state: CallState, start: u64) -> bool {
        match state {
            // a thread may become a target, or a tape begin, while it is in a call
            CallState::BeganBefore => self.imported && start > self.open,
            CallState::LostEnter | CallState::CloneChild => false,
            // open from before the recording until its end
            CallState::InFlight => start > self.open,
            _ => true,
        }
    }
}

/// Whether a call with this `state` and `errno` failed for its caller.
#[inline]
pub fn failed(state: CallState, errno: u16) -> bool {
    errno != 0 && !systape_abi::is_restart(errno) && state.returned()
}

impl Filters {
    /// Everything passes.
    pub fn none() -> Self {
        Self {
            longer_than: None,
            selection: Selection::all(),
            selects: false,
            failure: false,
            pids: vec![],
            tree: false,
            tids: vec![],
            users: vec![],
            comms: vec![],
            not_comms: vec![],
            cpus: None,
            cgroups: vec![],
            paths: vec![],
            not_paths: vec![],
            time: (None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of each state, 10 ms long.
    fn core() -> (Dict, Core) {
        let state: Vec<_> = (1..=8).filter_map(CallState::from_raw).collect();
        let n = state.len();
        let core =
            Core { call: vec![0; n], task: vec![0; n], dur: vec![10; n], errno: vec![2; n], state, ..Core::default() };
        (Dict { tasks: vec![Task::default()], calls: vec![Default::default()], ..Dict::default() }, core)
    }

    #[test]
    fn a_lower_bound_passes_when_it_reaches_the_limit() {
        let (dict, core) = core();
        let passing = |longer_than| {
            let filters = Filters { longer_than: Some(longer_than), ..Filters::none() };
            let scope = Scope::new(&filters, &Session::default(), 0, Clock::default).unwrap();
            let filter = scope.segment(&dict, 0);
            (0..8).filter(|row| filter.core(&core, *row)).map(|row| core.state[row]).collect::<Vec<_>>()
        };
        let bounds = [CallState::InFlight, CallState::Killed, CallState::NoReturn, CallState::BeganBefore];
        assert_eq!(passing(9), [&[CallState::Complete], &bounds[..]].concat());
        assert_eq!(passing(10), bounds);
        assert_eq!(passing(11), []);
    }

    #[test]
    fn exits_have_no_duration() {
        let (mut dict, core) = core();
        dict.calls[0] = Call { abi: 1, nr: systape_abi::number(Abi::X86_64, "exit_group").unwrap() };
        let filters = Filters { longer_than: Some(1), ..Filters::none() };
        let scope = Scope::new(&filters, &Session::default(), 0, Clock::default).unwrap();
        assert!((0..8).all(|row| !scope.segment(&dict, 0).core(&core, row)));
    }

    #[test]
    fn only_returned_errors_are_failures() {
        let (dict, mut core) = core();
        let filters = Filters { failure: true, ..Filters::none() };
        let scope = Scope::new(&filters, &Session::default(), 0, Clock::default).unwrap();
        let failing = |core: &Core| (0..8).filter(|row| scope.segment(&dict, 0).core(core, *row)).count();
        assert_eq!(failing(&core), 5, "in flight, killed and no-return have no result");
        core.errno.fill(512);
        assert_eq!(failing(&core), 0, "a restart is no failure");
    }

    #[test]
    fn nobody_passes_only_when_nobody_is_asked_for() {
        let session = Session { cgroups: vec![(7, b"/a".to_vec())], ..Session::default() };
        let passes =
            |filters: Filters, cgroup| Scope::new(&filters, &session, 0, Clock::default).unwrap().blamed(None, cgroup);
        assert!(passes(Filters::none(), 0));
        assert!(!passes(Filters { pids: vec![1], ..Filters::none() }, 0));
        assert!(!passes(Filters { comms: vec!["*".into()], ..Filters::none() }, 7));
        assert!(!passes(Filters { not_comms: vec!["a".into()], ..Filters::none() }, 7), "it may be a");
        let grouped = || Filters { cgroups: vec![InCgroup::Path("/a".into())], ..Filters::none() };
        assert!(passes(grouped(), 7));
        assert!(!passes(grouped(), 0));
    }

    #[test]
    fn times_are_placed_on_the_tape() {
        let session = Session { window_open: 1_000, ..Session::default() };
        let place = |text: &str| {
            let filters = Filters { time: crate::values::timespec::range(text).unwrap(), ..Filters::none() };
            let clock = || {
                Clock::new([systape_format::model::ClockSample {
                    monotonic: 1_000,
                    realtime: 5_000_000_000,
                    ..Default::default()
                }])
            };
            Scope::new(&filters, &session, 3_000, clock).map(|scope| (scope.from, scope.to))
        };
        assert_eq!(place("500ns,1us").unwrap(), (1_500, 2_000));
        assert_eq!(place("25%,50%").unwrap(), (1_500, 2_000));
        assert_eq!(place("0%,100%").unwrap(), (1_000, u64::MAX));
        assert_eq!(place(",1970-01-01T00:00:05.000000007Z").unwrap(), (0, 1_007));
        assert_eq!(place("00:00:05,00:00:05.000000007").unwrap(), (1_000, 1_007));
        assert_eq!(place("-500ns,mono:2us").unwrap(), (500, 2_000));
    }

    #[test]
    fn a_time_of_day_is_of_the_day_on_which_the_tape_has_it() {
        const S: u64 = 1_000_000_000;
        let session = Session { window_open: 100 * S, ..Session::default() };
        // from 23:59:50 on, for so many seconds
        let place = |text: &str, length: u64| {
            let clock = Clock::new([systape_format::model::ClockSample {
                monotonic: 100 * S,
                realtime: (3 * 86_400 - 10) * S,
                ..Default::default()
            }]);
            let edge = crate::values::timespec::edge(text).unwrap();
            place(edge, &session, (100 + length) * S, &clock).map(|(first, _)| first / S).map_err(|e| e.to_string())
        };
        assert_eq!(place("23:59:55", 5), Ok(105));
        assert_eq!(place("23:59:55", 60), Ok(105));
        assert_eq!(place("00:00:05", 60), Ok(115));
        let none = place("12:00:00", 60).unwrap_err();
        assert!(
            none.contains("on none: write the date too, 1970-01-03T12:00:00.000000000Z to 1970-01-04T12"),
            "{none}"
        );
        assert!(place("23:59:55", 90_000).unwrap_err().contains("on more than one"));
    }
}
