//! From rows of the ledger to sums: the group of each row, and whether it passes the filters.
//!
//! A row has a process, a CPU and an outcome, but no threads, single calls, or times inside its window. If only the
//! process is known, the calls go into a row of their own, so that all rows together still have all calls. Calls that
//! might pass a filter are in no row: they are counted apart, and the numbers they could change are "at least".

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::Error;
use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, Call, CallState, Dict, GapCause, LedgerReason, LedgerRow, Session, Task};
use systape_format::reader::{Segment, Tape};

use super::labels::Labels;
use super::plan::{self, Plan};
use super::tally::Tally;
use super::threads::ThreadFacts;
use crate::derive::paths::pick;
use systape_events::calls::{CallBook, CallInfo};
use systape_events::filter::Scope;
use systape_events::filter::failed;
use systape_events::group::Groups;
use systape_events::group::by::GroupKey;
use systape_events::group::open::{self, Open};
use systape_events::group::value::{Key, Value};
use systape_events::loss::{cause_text, span};

/// Why it is not known whether calls pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doubt {
    /// `-t`, `--comm`: it is not known which thread of the process made them.
    Thread,
    /// `-G`: the process was in several cgroups in that time.
    Cgroup,
    /// `--time`: they were made near one of its ends.
    Time,
    /// `--duration`: some took longer, others did not.
    Duration,
    /// Calls whose process is not known.
    Process,
    /// `-C`: their CPU is not known.
    Cpu,
    /// `-P`: their files are not known.
    Path,
}

impl Doubt {
    fn text(self) -> &'static str {
        match self {
            Self::Thread => "by which threads is not known",
            Self::Cgroup => "in which cgroup is not known",
            Self::Time => "whether inside --time is not known",
            Self::Duration => "whether longer than --duration is not known",
            Self::Process => "by which processes is not known",
            Self::Cpu => "on which CPUs is not known",
            Self::Path => "on which files is not known",
        }
    }
}

/// Counted calls with one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    calls: u64,
    first: u64,
    last: u64,
    /// Their CPU; None: several.
    cpu: Option<u32>,
}

impl Told {
    fn merge(&mut self, other: Self) {
        if self.calls == 0 || other.calls == 0 {
            *self = if self.calls == 0 { other } else { *self };
            return;
        }
        self.calls = self.calls.saturating_add(other.calls);
        (self.first, self.last) = (self.first.min(other.first), self.last.max(other.last));
        self.cpu = self.cpu.filter(|cpu| other.cpu == Some(*cpu));
    }
}

/// The ledger's part of a summary.
#[derive(Debug, Default)]
pub(crate) struct LedgerPart {
    /// Sums of the calls that pass.
    groups: Groups<Tally>,
    /// Names of the tasks among their keys.
    labels: Labels,
    /// The calls that pass, by reason of not being stored.
    told: FxHashMap<LedgerReason, Told>,
    /// Calls that might pass: (why it is not known, whether they were lost) → their number.
    doubts: FxHashMap<(Doubt, bool), u64>,
    /// Calls that might belong to other groups, or to none.
    open: Open,
}

/// Context of the decision.
#[derive(Clone, Copy, Debug)]
pub struct RowJudge<'a> {
    /// Filters of the question.
    pub scope: &'a Scope<'a>,
    /// Names of calls.
    pub book: &'a CallBook<'a>,
    /// Keys of the summary.
    pub plan: &'a Plan,
    /// Facts about threads; None: neither filters nor keys need them.
    pub threads: Option<&'a ThreadFacts>,
}

/// Whether the calls of a row pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowPasses {
    /// None of them passes.
    No,
    /// All of them pass.
    Yes,
    /// Not known.
    Maybe(Doubt),
}

/// Facts about threads, if a filter or key needs them and the tape has a ledger.
pub fn threads(tape: &Tape, scope: &Scope<'_>, plan: &Plan) -> Option<ThreadFacts> {
    let asked = scope.by_thread() || scope.by_cgroup() || plan.by_cgroup();
    let any = || (0..tape.segments().len()).any(|at| tape.segment(at).has(BlockKind::Ledger));
    (asked && any()).then(|| ThreadFacts::read(tape, scope))
}

/// A row of the ledger whose calls pass, or might.
#[derive(Debug)]
pub struct Judged<'d> {
    /// The row.
    pub row: LedgerRow,
    /// The call.
    pub info: Arc<CallInfo>,
    /// The process's leader; None: not known.
    pub task: Option<&'d Task>,
    /// Group of the row, as far as the keys are known.
    pub key: Key,
    /// Why it is not known whether they pass; None: they do.
    pub doubt: Option<Doubt>,
    /// (segment, entry) of the task.
    pub place: (u32, u32),
}

/// Whether the segment at `at` counts calls without storing them that might pass.
pub fn counts(tape: &Tape, scope: &Scope<'_>, at: usize) -> bool {
    tape.segment(at).has(BlockKind::Ledger) && scope.may_count(&tape.segments()[at])
}

impl LedgerPart {
    /// Adds the ledger of one segment.
    ///
    /// # Errors
    /// Its ledger cannot be read.
    pub(crate) fn segment(&mut self, segment: &Segment<'_>, dict: &Dict, judge: RowJudge<'_>) -> Result<(), Error> {
        judge.rows(segment, dict, |judged| {
            let Judged { row, info, task, key, doubt, place } = judged;
            match doubt {
                None => {
                    self.told(&row);
                    self.groups.of(&key).add_counted(&row, info.is_exit);
                    if let Some(task) = task {
                        self.labels.add(judge.plan.whose(&key), task, judge.plan, place);
                    }
                }
                Some(doubt) => {
                    let calls = self.doubts.entry((doubt, row.reason.is_loss())).or_default();
                    *calls = calls.saturating_add(row.count);
                }
            }
            self.open.add(&key, doubt.is_some(), row.reason.is_loss());
        })
    }

    fn told(&mut self, row: &LedgerRow) {
        let cpu = Some(row.cpu).filter(|cpu| *cpu != CPU_NONE);
        let told = Told { calls: row.count, first: row.first, last: row.last, cpu };
        self.told.entry(row.reason).or_default().merge(told);
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.groups.merge(&mut other.groups);
        self.labels.merge(&mut other.labels);
        for (reason, told) in other.told {
            self.told.entry(reason).or_default().merge(told);
        }
        for (doubt, calls) in other.doubts {
            let mine = self.doubts.entry(doubt).or_default();
            *mine = mine.saturating_add(calls);
        }
        self.open.merge(other.open);
    }

    /// The sums with the names of their tasks, and the facts found beside them.
    pub(crate) fn knowledge(self, plan: &Plan) -> (Groups<Tally>, Labels, Knowledge) {
        let mut told: Vec<_> = self.told.into_iter().collect();
        told.sort_unstable_by_key(|(reason, _)| *reason);
        let mut doubts: Vec<_> = self.doubts.into_iter().collect();
        doubts.sort_unstable();
        let (rows, groups) = (self.open.judge(None), self.open.judge(plan.place(GroupKey::Syscall)));
        (self.groups, self.labels, Knowledge { told, doubts, rows, groups })
    }
}

impl RowJudge<'_> {
    /// Passes the rows of the ledger of `segment` whose calls pass, or might, to `each`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn rows<'d>(
        &self,
        segment: &Segment<'_>,
        dict: &'d Dict,
        mut each: impl FnMut(Judged<'d>),
    ) -> Result<(), Error> {
        let picks: Vec<bool> = dict.calls.iter().map(|call| self.scope.call(call)).collect();
        for row in segment.ledger(dict)? {
            // what was stored too is counted there; nobody called the child's side of a clone
            let elsewhere = row.reason == LedgerReason::Checked || row.state == CallState::CloneChild;
            let call = dict.calls.get(row.call as usize);
            let Some(call) = call.filter(|_| !elsewhere && picks[row.call as usize]) else { continue };
            let task = row.task.and_then(|task| dict.tasks.get(task as usize));
            let doubt = match self.passes(&row, *call, task, dict.window_end) {
                RowPasses::No => continue,
                RowPasses::Yes => None,
                RowPasses::Maybe(doubt) => Some(doubt),
            };
            let info = self.book.get(*call);
            let (filters, on) = (self.scope.filters(), pick::may_be_on(&info));
            if !filters.paths.is_empty() && !on {
                continue;
            }
            let doubt = doubt.or((filters.by_path() && on).then_some(Doubt::Path));
            let key = self.plan.counted(&row, task, &info, self.cgroup(&row, task, dict.window_end));
            let place = (segment.info().segment, row.task.unwrap_or(0));
            each(Judged { row, info, task, key, doubt, place });
        }
        Ok(())
    }

    /// The cgroup of all calls of `row`, if it is needed.
    fn cgroup(&self, row: &LedgerRow, task: Option<&Task>, window_end: u64) -> Value {
        let (Some(threads), Some(task)) = (self.threads.filter(|_| self.plan.by_cgroup()), task) else {
            return Value::Unknown;
        };
        if !threads.know_moves() {
            return Value::Unknown;
        }
        if threads.moved(task, row.first, window_end) { Value::Several } else { plan::cgroup(task) }
    }

    /// Whether the calls `call` of `row`, of a segment that ends at `window_end`, pass all filters except `-e`.
    fn passes(&self, row: &LedgerRow, call: Call, task: Option<&Task>, window_end: u64) -> RowPasses {
        let filters = self.scope.filters();
        if filters.failure && !failed(row.state, row.errno) {
            return RowPasses::No;
        }
        let cpu = match &filters.cpus {
            Some(_) if row.cpu == CPU_NONE => RowPasses::Maybe(Doubt::Cpu),
            Some(cpus) if cpus.binary_search(&row.cpu).is_err() => RowPasses::No,
            _ => RowPasses::Yes,
        };
        let parts = [self.whose(row, task, window_end), cpu, self.duration(row, call), self.time(row)];
        let doubt = parts.into_iter().find(|part| matches!(part, RowPasses::Maybe(_)));
        if parts.contains(&RowPasses::No) { RowPasses::No } else { doubt.unwrap_or(RowPasses::Yes) }
    }

    fn whose(&self, row: &LedgerRow, task: Option<&Task>, window_end: u64) -> RowPasses {
        let scope = self.scope;
        let Some(task) = task else {
            return if scope.by_task() { RowPasses::Maybe(Doubt::Process) } else { RowPasses::Yes };
        };
        let may = |threads: &ThreadFacts| threads.may_pass(task);
        if !scope.process(task) || (scope.by_thread() && !self.threads.is_none_or(may)) {
            return RowPasses::No;
        }
        let moved = |threads: &ThreadFacts| threads.moved(task, row.first, window_end);
        if scope.by_cgroup() && self.threads.is_none_or(moved) {
            return RowPasses::Maybe(Doubt::Cgroup);
        }
        match scope.cgroup(task) {
            false => RowPasses::No,
            true if scope.by_thread() && !self.threads.is_some_and(|threads| threads.all_pass(task, row.first)) => {
                RowPasses::Maybe(Doubt::Thread)
            }
            true => RowPasses::Yes,
        }
    }

    /// `--duration`, by the rules of stored calls.
    fn duration(&self, row: &LedgerRow, call: Call) -> RowPasses {
        let Some(ns) = self.scope.filters().longer_than else { return RowPasses::Yes };
        let least = match row.state {
            _ if self.book.get(call).is_exit => return RowPasses::No,
            CallState::Complete => ns.saturating_add(1),
            // of these, a lower bound that reaches it
            CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore => ns,
            CallState::CloneChild | CallState::Denied | CallState::LostEnter => return RowPasses::No,
        };
        match (row.min >= least, row.max >= least) {
            (true, _) => RowPasses::Yes,
            (_, false) => RowPasses::No,
            _ => RowPasses::Maybe(Doubt::Duration),
        }
    }

    /// `--time` is about the start of a call.
    fn time(&self, row: &LedgerRow) -> RowPasses {
        match self.scope.began(row) {
            Some(true) => RowPasses::Yes,
            Some(false) => RowPasses::No,
            None => RowPasses::Maybe(Doubt::Time),
        }
    }
}

/// Facts about the calls of the ledger, beside their sums.
#[derive(Debug, Default)]
pub struct Knowledge {
    told: Vec<(LedgerReason, Told)>,
    doubts: Vec<((Doubt, bool), u64)>,
    /// Which rows may be too low.
    rows: open::Judge,
    /// Which groups may be too low, whatever the call.
    groups: open::Judge,
}

impl Knowledge {
    /// Whether lost calls may be missing from all rows.
    pub fn lost(&self) -> bool {
        self.doubts.iter().any(|((_, lost), _)| *lost)
    }

    /// Whether calls may be missing from all rows.
    pub fn missing(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// Whether some rows, and not all, may be too low.
    pub fn differs(&self) -> bool {
        self.rows.any()
    }

    /// Whether the row of this key may be too low.
    pub fn short(&self, key: &[Value]) -> bool {
        self.rows.short(key)
    }

    /// Whether the row of this key may be too low because calls were lost, and not left out by request.
    pub(crate) fn row_lost(&self, key: &[Value]) -> bool {
        self.rows.lost(key)
    }

    /// Whether a group of rows, whatever the call, may be too low.
    pub(crate) fn group_short(&self, key: &[Value]) -> bool {
        self.groups.short(key)
    }

    /// Whether the group of this key may be too low because calls were lost.
    pub fn group_lost(&self, key: &[Value]) -> bool {
        self.groups.lost(key)
    }

    /// The counted calls that were not stored, a line a reason.
    pub fn counted(&self, session: &Session) -> Vec<String> {
        self.told.iter().map(|(reason, told)| told_text(*reason, *told, session)).collect()
    }

    /// The calls that may be missing, a line a reason.
    pub fn doubts(&self) -> Vec<String> {
        let text = |((doubt, _), calls): &((Doubt, bool), u64)| {
            let were = if *calls == 1 { "call was" } else { "calls were" };
            format!("AT LEAST: {calls} more {were} counted, {}", doubt.text())
        };
        self.doubts.iter().map(text).collect()
    }
}

fn told_text(reason: LedgerReason, told: Told, session: &Session) -> String {
    let Told { calls, first, last, cpu } = told;
    let one = calls == 1;
    if reason == LedgerReason::Filtered {
        let (others, are) = if one { ("other", "is") } else { ("others", "are") };
        return format!("record stored only some calls{}: {calls} {others} {are} counted here", options(session));
    }
    let cause = match reason {
        LedgerReason::OverShare => GapCause::OverShare,
        LedgerReason::Behind => GapCause::QueueFull,
        _ => GapCause::RingFull,
    };
    let on = cpu.map_or_else(String::new, |cpu| format!(" on cpu {cpu}"));
    let (calls, are) = if one { ("1 call was", "is") } else { (&*format!("{calls} calls were"), "are") };
    format!("{calls} not stored and {are} counted here ({}, {}{on})", cause_text(cause), span(first, last, session))
}

/// ` (--duration 10ms)`, or nothing when the tape does not say.
pub fn options(session: &Session) -> String {
    if session.call_filters.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    systape_abi::escape(&session.call_filters.join(&b' '), &mut text);
    format!(" ({text})")
}

#[cfg(test)]
mod tests {
    use systape_abi::{Abi, number};

    use super::*;
    use crate::derive::summary::mode::SummaryMode;
    use systape_events::filter::Filters;
    use systape_events::values::clock::Clock;

    /// 4 calls of 10 to 40 ns that ended in [1000, 2000] on CPU 3.
    const ROW: LedgerRow = LedgerRow {
        task: None,
        call: 0,
        reason: LedgerReason::Lost,
        errno: 0,
        state: CallState::Complete,
        cpu: 3,
        count: 4,
        sum: 100,
        min: 10,
        max: 40,
        first: 1_000,
        last: 2_000,
        sizes: Vec::new(),
    };

    fn passes(row: &LedgerRow, change: impl FnOnce(&mut Filters), time: (u64, u64)) -> RowPasses {
        passes_of("read", row, change, time)
    }

    fn passes_of(name: &str, row: &LedgerRow, change: impl FnOnce(&mut Filters), time: (u64, u64)) -> RowPasses {
        let call = Call { abi: 1, nr: number(Abi::X86_64, name).unwrap() };
        let mut filters = Filters::none();
        change(&mut filters);
        let session = Session::default();
        let mut scope = Scope::new(&filters, &session, 0, Clock::default).unwrap();
        (scope.from, scope.to) = time;
        let book = CallBook::new(&session);
        let plan = Plan::mode(SummaryMode::Total);
        RowJudge { scope: &scope, book: &book, plan: &plan, threads: None }.passes(row, call, None, 0)
    }

    const ALWAYS: (u64, u64) = (0, u64::MAX);

    #[test]
    fn edges_inside_a_row_leave_it_open() {
        let time = |from, to| passes(&ROW, |_| (), (from, to));
        // the first call may have begun at 960, the last at 1990
        assert_eq!((time(960, 1_991), time(961, 5_000)), (RowPasses::Yes, RowPasses::Maybe(Doubt::Time)));
        assert_eq!((time(0, 1_990), time(0, 960)), (RowPasses::Maybe(Doubt::Time), RowPasses::No));
        assert_eq!(time(1_991, 9_000), RowPasses::No);
        let duration = |row: &LedgerRow, ns| passes(row, |filters| filters.longer_than = Some(ns), ALWAYS);
        assert_eq!(
            [9, 10, 39, 40].map(|ns| duration(&ROW, ns)),
            [RowPasses::Yes, RowPasses::Maybe(Doubt::Duration), RowPasses::Maybe(Doubt::Duration), RowPasses::No]
        );
        let killed = LedgerRow { state: CallState::Killed, ..ROW };
        assert_eq!(
            [10, 40, 41].map(|ns| duration(&killed, ns)),
            [RowPasses::Yes, RowPasses::Maybe(Doubt::Duration), RowPasses::No]
        );
        assert_eq!(duration(&LedgerRow { state: CallState::Denied, ..ROW }, 1), RowPasses::No);
        // it has none
        let exit = LedgerRow { state: CallState::NoReturn, ..ROW };
        let longer = |filters: &mut Filters| filters.longer_than = Some(1);
        assert_eq!(
            ["read", "exit_group"].map(|name| passes_of(name, &exit, longer, ALWAYS)),
            [RowPasses::Yes, RowPasses::No]
        );
    }

    #[test]
    fn what_nobody_knows_may_pass() {
        let on = |row: &LedgerRow| passes(row, |filters| filters.cpus = Some(vec![3]), ALWAYS);
        assert_eq!(on(&ROW), RowPasses::Yes);
        assert_eq!(on(&LedgerRow { cpu: 2, ..ROW }), RowPasses::No);
        assert_eq!(on(&LedgerRow { cpu: CPU_NONE, ..ROW }), RowPasses::Maybe(Doubt::Cpu));
        assert_eq!(passes(&ROW, |filters| filters.pids = vec![7], ALWAYS), RowPasses::Maybe(Doubt::Process));
        // it cannot pass for another reason
        let failed = |filters: &mut Filters| (filters.pids, filters.failure) = (vec![7], true);
        assert_eq!(passes(&ROW, failed, ALWAYS), RowPasses::No);
        assert_eq!(passes(&LedgerRow { errno: 11, ..ROW }, failed, ALWAYS), RowPasses::Maybe(Doubt::Process));
    }
}
