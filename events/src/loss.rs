//! Losses that concern an answer: gaps that the recorder counted, unreadable parts of the tape, a missing end mark.
//!
//! Only losses that could change the answer count: not a gap outside `--time`, or of a process that a filter excludes.
//! Missing strings and the recorder's own calls are no loss of calls; `info` lists them. Calls in the ledger are a loss
//! for a listing, not for a summary. Calls left out by request do not count as lost.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::sync::Arc;

use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, Call, CallState, Family, Gap, GapCause, LedgerRow, Session};
use systape_format::reader::{Miss, Misses, Tape, TapeFault};

use crate::filter::Scope;

/// An unreadable part of the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hole {
    /// Number of its segment.
    pub segment: u32,
    /// Number of missing calls; 0 = only details of calls are missing (arguments, paths).
    pub rows: u32,
    /// First time it may concern.
    pub first: u64,
    /// Last time it may concern.
    pub last: u64,
    /// The error.
    pub why: String,
}

/// Everything that makes an answer "at least".
#[derive(Clone, Debug, Default)]
pub struct Loss {
    /// Gaps of the report's families, by time of the first event.
    pub gaps: Vec<Gap>,
    /// Unreadable parts.
    pub holes: Vec<Hole>,
    /// The recording ended abnormally, and is complete only up to this time.
    pub cut: Option<u64>,
    /// Whether the tape has not ended yet: `record` still writes it.
    pub being_written: bool,
    /// Damage outside of known segments.
    pub findings: Vec<String>,
    /// Requested blocks that could not be read, also those requested after this was gathered. Every block that a report
    /// reads concerns its answer, whatever its family and however the report handles the error.
    pub misses: Arc<Misses>,
    /// Calls that may be on the files that `-P` asks for, and are left out because their path is not known.
    pub unplaced: u64,
    /// Calls that removed or renamed what may be such a file under a name that is not known to be one of it.
    pub aliases: u64,
    /// What has lines of its own in the answer.
    pub listed: ListedLoss,
}

/// Losses that have lines of their own in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedLoss {
    /// No loss has a line.
    #[default]
    Nothing,
    /// Gaps have. Unreadable parts are found while events are read.
    Gaps,
    /// Gaps and unreadable parts have.
    All,
}

impl Loss {
    /// Losses known before any event is read: gap blocks, the end mark, damage found on opening. `families` are those
    /// of the report.
    pub fn gather(tape: &Tape, scope: &Scope<'_>, families: &[Family]) -> Self {
        let of_calls = families.contains(&Family::Syscall);
        let findings = tape.findings().iter().map(finding_text).collect();
        let mut loss = Self { findings, misses: Arc::clone(tape.misses()), ..Self::default() };
        // read only where calls were counted after the time asked for
        let began = OnceCell::new();
        let began = || *began.get_or_init(|| counted_began(tape));
        for at in 0..tape.segments().len() {
            let segment = tape.segment(at);
            let info = segment.info();
            // without any block of calls left not even their number is known, and no report would come by
            if of_calls && info.rows == 0 && segment.missing().contains(&BlockKind::SyscallsCore) {
                let why = "its blocks are missing".to_owned();
                loss.holes.push(Hole {
                    segment: info.segment,
                    rows: u32::MAX,
                    first: info.start_min,
                    last: info.end_max,
                    why,
                });
            }
            if !segment.has(BlockKind::Gaps) {
                continue;
            }
            match segment.gaps() {
                Ok(gaps) => loss.gaps.extend(gaps.into_iter().filter(|gap| touches(gap, scope, families, began))),
                Err(error) => {
                    loss.findings.push(format!("segment {}: what it lost is not known: {error}", info.segment))
                }
            }
        }
        loss.gaps.sort_by_key(|gap| (gap.first, gap.cpu));
        // a part of a longer tape has gaps at its ends whose counts are outside of it
        // and those of one that is followed may have theirs in the next
        let whole = tape.session().cut.is_none() && !tape.is_followed();
        if whole && loss.gaps.iter().any(|gap| gap.ledger) && !has_counts(tape) {
            loss.gaps.iter_mut().for_each(|gap| gap.ledger = false);
        }
        loss.being_written = tape.is_being_written();
        match tape.end() {
            None if tape.is_followed() => {}
            None => loss.cut = Some(tape.complete_until()).filter(|until| scope.to > *until),
            Some(end) => loss.unlocated(end.lost.iter().copied(), scope, families),
        }
        loss.keep_counted_of(tape, scope, |call| scope.call(&call));
        loss
    }

    /// Leaves out gaps of calls that were counted, if none of those that `matters` is among them: the ledger says which
    /// they are. One that cannot be read says nothing.
    pub fn keep_counted_of(&mut self, tape: &Tape, scope: &Scope<'_>, matters: impl Fn(Call) -> bool) {
        if self.gaps.iter().any(|gap| gap.ledger) && !counts(tape, scope, matters) {
            self.gaps.retain(|gap| !gap.ledger);
        }
    }

    /// The end mark may count losses without a gap record, because its block may be damaged.
    fn unlocated(&mut self, lost: impl Iterator<Item = (Family, u64)>, scope: &Scope<'_>, families: &[Family]) {
        // saturating: counts of a tape may be anything, and a sum that wraps to 0 would hide a loss
        let counted =
            lost.filter(|(family, _)| of_families(*family, families)).fold(0_u64, |sum, (_, n)| sum.saturating_add(n));
        let located = self.gaps.iter().fold(0_u64, |sum, gap| sum.saturating_add(gap.count));
        if counted > 0 && located == 0 && !scope.timed() && !narrow(scope) {
            self.findings.push(format!("{counted} events were lost at an unknown time"));
        }
    }

    /// Whether everything the answer depends on could be read. It may become false when more of the tape is read.
    pub fn complete(&self) -> bool {
        self.gaps.is_empty()
            && self.findings.is_empty()
            && self.cut.is_none()
            && self.unplaced == 0
            && self.holes.is_empty()
            && self.misses.is_empty()
    }

    /// Whether nothing is missing but paths: every event is there.
    pub fn is_of_paths(&self) -> bool {
        Self { unplaced: 0, ..self.clone() }.complete()
    }

    /// Whether events of `families` that `pid` (None: any process) had in `from` to `to` may be missing: whether a figure
    /// made from them is "at least". Of unreadable parts whose contents are not known any may be one of them.
    pub fn touches(&self, families: &[Family], pid: Option<u32>, (from, to): (u64, u64)) -> bool {
        let of_gap = |gap: &Gap| {
            // a lost call, or stay, has the time of its end: it may have begun long before
            let began = gap.first <= to || matches!(gap.family, Family::Syscall | Family::Look);
            let when = gap.last == 0 || (began && gap.last >= from);
            let whose = gap.pid == 0 || pid.is_none_or(|pid| pid == gap.pid);
            when && whose && reads(gap, families)
        };
        let of_calls = families.contains(&Family::Syscall);
        let of_hole = |hole: &Hole| of_calls && hole.first <= to && hole.last >= from;
        let of_miss = |miss: &Miss| miss.kind.family().is_none_or(|family| families.contains(&family));
        self.gaps.iter().any(of_gap)
            || self.holes.iter().any(of_hole)
            || !self.findings.is_empty()
            || self.cut.is_some_and(|until| to > until)
            || (of_calls && self.unplaced > 0)
            || self.misses.all().iter().any(of_miss)
    }

    /// Losses that make a sum of calls "at least": the sum includes calls in the ledger, and shows no arguments.
    pub fn of_sums(&self) -> Self {
        let mut loss = self.clone();
        loss.gaps.retain(|gap| !gap.ledger && gap.cause != GapCause::DetailDamaged);
        loss
    }

    /// Adds every gap before `until`, for answers that depend on earlier events, and on events of other CPUs and
    /// processes than selected.
    pub fn add_earlier(&mut self, tape: &Tape, families: &[Family], until: u64) {
        for at in (0..tape.segments().len()).filter(|at| tape.segment(*at).has(BlockKind::Gaps)) {
            let gaps = tape.segment(at).gaps().unwrap_or_default();
            let earlier = gaps.into_iter().filter(|gap| loses(gap, families) && gap.first < until);
            let new: Vec<Gap> = earlier.filter(|gap| !self.gaps.contains(gap)).collect();
            self.gaps.extend(new);
        }
        self.gaps.sort_by_key(|gap| (gap.first, gap.cpu));
    }

    /// Whether a hole or a finding already reports this block.
    fn says(&self, miss: &Miss) -> bool {
        self.holes.iter().any(|hole| hole.rows > 0 && hole.why == miss.why)
            || self.findings.iter().any(|finding| finding.contains(&miss.why))
    }

    /// Lines for the head of a summary or the end of a listing: one per loss, at most `limit` of them and a count of
    /// the rest.
    pub fn lines(&self, session: &Session, limit: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let when = |first, last| span(first, last, session);
        if self.listed == ListedLoss::Nothing {
            lines.extend(self.gaps.iter().map(|gap| gap_text(gap, when)));
        }
        if self.listed != ListedLoss::All {
            lines.extend(self.holes.iter().filter(|hole| hole.rows > 0).map(|hole| hole_text(hole, when)));
        }
        lines.extend(self.findings.iter().map(|finding| format!("DAMAGED: {finding}")));
        self.misses.tell();
        let misses = self.misses.all();
        lines.extend(misses.iter().filter(|miss| !self.says(miss)).map(damage_text));
        if lines.len() > limit {
            let more = lines.len() - limit;
            lines.truncate(limit);
            lines.push(format!("... and {more} more gaps; 'analyze info' counts them"));
        }
        if self.unplaced > 0 {
            let are = if self.unplaced == 1 { "call is" } else { "calls are" };
            lines.push(format!(
                "AT LEAST: {} more {are} left out: their path is not known, and may be one of -P",
                self.unplaced
            ));
        }
        if self.aliases > 0 {
            let calls = if self.aliases == 1 { "removal or renaming" } else { "removals or renamings" };
            let text = "of a file of that name in another directory, which may be the same behind a symbolic link";
            lines.push(format!("{} {calls} {text}", self.aliases));
        }
        lines.extend(self.cut.map(|until| cut_text(until, session, self.being_written)));
        lines
    }
}

/// `DAMAGED: segment 3: …`: the line of what cannot be read.
pub fn damage_text(miss: &Miss) -> String {
    format!("DAMAGED: {}", miss_text(miss))
}

/// `segment 3: its syscalls.time block cannot be read, what it holds is missing here: …`.
pub fn miss_text(miss: &Miss) -> String {
    let Miss { kind, number, why, .. } = miss;
    let what = match kind {
        BlockKind::Checkpoint => format!("the checkpoint of chunk {number}"),
        BlockKind::Symbols => format!("block {number} of names"),
        kind => format!("segment {number}: its {} block", kind.name()),
    };
    format!("{what} cannot be read, what it holds is missing here: {why}")
}

/// `offset 0x4f000: …`.
pub fn finding_text(finding: &TapeFault) -> String {
    format!("offset {:#x}: {}", finding.offset, finding.text)
}

/// Whether a filter selects processes, threads or CPUs.
fn narrow(scope: &Scope<'_>) -> bool {
    let f = scope.filters();
    !f.pids.is_empty() || f.cpus.is_some()
}

/// Calls that change fds are calls; a gap of an unknown family may concern any.
fn of_families(family: Family, families: &[Family]) -> bool {
    match family {
        Family::Unknown => true,
        Family::State => families.contains(&Family::Syscall),
        family => families.contains(&family),
    }
}

/// Whether `gap` means that selected events are missing.
pub fn is_loss(cause: GapCause) -> bool {
    use GapCause::{DetailDamaged, Filtered, LateRecord, NotRead, OwnTraffic, ScratchExhausted, StringFault};
    !matches!(cause, OwnTraffic | StringFault | ScratchExhausted | LateRecord | DetailDamaged | Filtered | NotRead)
}

/// Whether `gap` means that calls are missing from the tape, by loss or by request.
pub(crate) fn leaves_out_calls(gap: &Gap) -> bool {
    loses(gap, &[Family::Syscall]) || (gap.cause == GapCause::Filtered && of_families(gap.family, &[Family::Syscall]))
}

/// Whether `gap` means that events of `families` are missing.
pub fn loses(gap: &Gap, families: &[Family]) -> bool {
    is_loss(gap.cause) && of_families(gap.family, families)
}

/// The earliest possible start of the calls that were counted instead of listed.
fn counted_began(tape: &Tape) -> u64 {
    let of_row = |row: &LedgerRow| match row.state {
        CallState::LostEnter => 0,
        _ => row.first.saturating_sub(row.max),
    };
    let of_segment = |at: usize| {
        let segment = tape.segment(at);
        let rows = segment.dict().and_then(|dict| segment.ledger(&dict));
        rows.map_or(0, |rows| rows.iter().filter(|row| row.reason.is_loss()).map(of_row).min().unwrap_or(u64::MAX))
    };
    let with = (0..tape.segments().len()).filter(|at| tape.segment(*at).has(BlockKind::Ledger));
    with.map(of_segment).min().unwrap_or(0)
}

/// Whether the ledger has as many calls as gaps say that it counts: a tape may end before the counts of its last moments came, and
/// they may be unreadable.
fn has_counts(tape: &Tape) -> bool {
    let segments = (0..tape.segments().len()).map(|at| tape.segment(at));
    let (mut said, mut counted) = (0_u64, 0_u64);
    for segment in segments {
        let gaps = if segment.has(BlockKind::Gaps) { segment.gaps().unwrap_or_default() } else { Vec::new() };
        let of_ledger = gaps.iter().filter(|gap| gap.ledger && is_loss(gap.cause));
        said = of_ledger.fold(said, |sum, gap| sum.saturating_add(gap.count));
        if segment.has(BlockKind::Ledger) {
            let Ok(rows) = segment.dict().and_then(|dict| segment.ledger(&dict)) else { return false };
            let lost = rows.iter().filter(|row| row.reason.is_loss());
            counted = lost.fold(counted, |sum, row| sum.saturating_add(row.count));
        }
    }
    counted >= said
}

/// Whether the ledger may have calls that were left out in the selected time and that `matters`.
fn counts(tape: &Tape, scope: &Scope<'_>, matters: impl Fn(Call) -> bool) -> bool {
    let mut rows = 0;
    let mut in_segment = |at: usize| {
        let segment = tape.segment(at);
        if !segment.has(BlockKind::Ledger) {
            return segment.missing().contains(&BlockKind::Ledger);
        }
        let (Ok(dict), Ok(info)) = (segment.dict(), segment.dict().and_then(|dict| segment.ledger(&dict))) else {
            return true;
        };
        info.iter().filter(|row| row.reason.is_loss()).any(|row| {
            rows += 1;
            let began = if row.state == CallState::LostEnter { 0 } else { row.first.saturating_sub(row.max) };
            let when = row.last >= scope.from && began < scope.to;
            when && dict.calls.get(row.call as usize).is_none_or(|call| matters(*call))
        })
    };
    // no row at all: the gaps are of calls that no ledger has
    (0..tape.segments().len()).any(&mut in_segment) || rows == 0
}

/// Whether `gap` could change what is made from events of `families`.
fn reads(gap: &Gap, families: &[Family]) -> bool {
    let reads = of_families(gap.family, families);
    match gap.cause {
        // no call is missing, but what a line shows of it; sums leave it out
        GapCause::DetailDamaged => reads,
        // who was there scheduler reports know from calls, process life and checkpoints
        GapCause::Damaged => {
            reads || (families.contains(&Family::Sched) && matches!(gap.family, Family::Process | Family::Syscall))
        }
        cause => is_loss(cause) && reads,
    }
}

/// Whether `gap` means that selected events of `families` are missing; `began`: see [`counted_began`].
fn touches(gap: &Gap, scope: &Scope<'_>, families: &[Family], began: impl Fn() -> u64) -> bool {
    let f = scope.filters();
    // a call is missing where it ended; when it had begun is known only if it was counted
    let calls = families.contains(&Family::Syscall) && matches!(gap.family, Family::Syscall | Family::Unknown);
    // so is a stay
    let stays = families.contains(&Family::Look) && matches!(gap.family, Family::Look | Family::Unknown);
    let before = || gap.first < scope.to || stays || (calls && (!gap.ledger || began() < scope.to));
    let when = gap.last == 0 || (gap.last >= scope.from && before());
    // a ring belongs to the CPU of the call's exit, which is the one -C asks for; other losses may have moved
    let cpu = match (&f.cpus, gap.cause) {
        (Some(cpus), GapCause::RingFull | GapCause::OverShare) if gap.cpu != CPU_NONE => {
            cpus.binary_search(&gap.cpu).is_ok()
        }
        _ => true,
    };
    let pid = gap.pid == 0 || f.pids.is_empty() || f.pids.contains(&gap.pid);
    reads(gap, families) && when && cpu && pid
}

/// Every cause.
pub const CAUSES: [GapCause; 22] = [
    GapCause::Unknown,
    GapCause::RingFull,
    GapCause::StateFailed,
    GapCause::ScratchExhausted,
    GapCause::Skipped,
    GapCause::QueueFull,
    GapCause::OwnTraffic,
    GapCause::StringFault,
    GapCause::DiskError,
    GapCause::BadRecord,
    GapCause::LateRecord,
    GapCause::Everyday,
    GapCause::Unexplained,
    GapCause::Damaged,
    GapCause::DetailDamaged,
    GapCause::Filtered,
    GapCause::OverShare,
    GapCause::Hidden,
    GapCause::NotRead,
    GapCause::NotUnderstood,
    GapCause::OtherAbi,
    GapCause::Crowded,
];

/// The cause in a few words.
pub fn cause_text(cause: GapCause) -> &'static str {
    match cause {
        GapCause::Unknown => "for a reason this version does not know",
        GapCause::RingFull => "ring buffer full",
        GapCause::StateFailed => "no room for the state of a task",
        GapCause::ScratchExhausted => "no buffer for strings",
        GapCause::Skipped => "the kernel skipped the BPF program",
        GapCause::QueueFull => "the recorder was behind and its memory full",
        GapCause::OwnTraffic => "calls of the recorder itself, left out on purpose",
        GapCause::StringFault => "string not in memory",
        GapCause::DiskError => "writing the tape failed",
        GapCause::BadRecord => "a record the recorder could not read",
        GapCause::LateRecord => "arrived late, stored in a later segment",
        GapCause::Unexplained => "expected but missing, cause unknown",
        GapCause::Hidden => "the kernel skipped the probe",
        GapCause::NotUnderstood => "lines of the log that were not understood",
        GapCause::OtherAbi => "calls of 32-bit programs on arm64",
        GapCause::Crowded => "more threads at once than a look has room for",
        GapCause::NotRead => "its open files (state) or arguments (process) could not be read in time at the start",
        GapCause::Everyday => "ring buffer full; only signals that end no process (SIGCHLD, handled timers, ...)",
        GapCause::Damaged => "damaged in the tape this one was repaired from",
        GapCause::Filtered => "filtered out (record --duration and the like)",
        GapCause::OverShare => "the process had filled its share of the ring buffer",
        GapCause::DetailDamaged => "times, arguments, strings or paths damaged in the tape this one was repaired from",
    }
}

/// Advice against `cause` for the next recording, on a machine as the session's.
pub fn remedy(cause: GapCause, session: &Session) -> &'static str {
    match cause {
        GapCause::Unknown => "a newer analyze may know it",
        GapCause::RingFull => "try a larger -m, fewer calls (-e, --duration), fewer families or targets",
        GapCause::Everyday => "try a larger -m; nothing is missing unless you ask for these signals",
        GapCause::OverShare => "try a larger -m; or record that process alone, or without its busiest calls (-e)",
        GapCause::StateFailed => {
            "the kernel was out of memory for a task's state: record fewer targets, or free memory"
        }
        GapCause::ScratchExhausted => "no call is missing; a smaller -s needs fewer buffers",
        GapCause::StringFault => "no call is missing; the pointer is there instead",
        GapCause::Skipped if session.preemptible => {
            "a task was preempted inside the program, and others that came to it on that CPU meanwhile were not seen, which this kernel \
             does not prevent: fewer threads that compete for a CPU lose less"
        }
        GapCause::Skipped => "another BPF program or a fault interrupted ours: stop other tracers and record again",
        GapCause::QueueFull => {
            "a larger --buffer, or a disk that does not stall; without a stall: a CPU for the recorder, fewer stacks (a lower -F, no -g)"
        }
        GapCause::DiskError => "write to a disk with room, or bound the tape with --max-size",
        GapCause::BadRecord => "a bug of record: please report it with what 'analyze info' prints",
        GapCause::Hidden => {
            "known for I/O completions on this kernel: ftrace records them, /proc/diskstats has their sums"
        }
        GapCause::Unexplained => "a bug of record, or a kernel that hides events: please report it",
        GapCause::LateRecord => "nothing is missing",
        GapCause::Crowded => "look at fewer threads (-p, -u, -G, --unit); record without --sample has no such limit",
        GapCause::OtherAbi => "record does not know the calls of 32-bit arm programs: strace does",
        GapCause::NotUnderstood => "look at the log around that time; a log of -o FILE has no lines of others in it",
        GapCause::NotRead => {
            "no event is missing; the process hung, or its file system did: see where with states --at 0 --call-graph"
        }
        GapCause::OwnTraffic => "nothing is missing; left out so that recording does not record itself",
        GapCause::Damaged | GapCause::DetailDamaged => "look for an undamaged copy of the tape",
        GapCause::Filtered => {
            "nothing is missing from --summary; leave out --duration, --slow, --failure, --errno to store every call"
        }
    }
}

/// The name of `family` in text and JSON.
pub fn family_name(family: Family) -> &'static str {
    family.name()
}

/// `LOST 47 syscall events on cpu 1, 1.204–1.219 s: ring buffer full`; `TOTALS ONLY …` of calls that the ledger counts.
/// `when` is the text of a time from one instant to another.
pub fn gap_text(gap: &Gap, when: impl Fn(u64, u64) -> String) -> String {
    // two words for two things: one is in no answer, the other in every sum
    let mut text = String::from(match gap.cause {
        GapCause::DetailDamaged => "DAMAGED ",
        GapCause::NotRead => "NOT READ ",
        _ if gap.ledger => "TOTALS ONLY ",
        _ => "LOST ",
    });
    // writing to a String cannot fail
    let _ = match gap.count {
        0 => write!(text, "an unknown number of {} events", family_name(gap.family)),
        count => write!(text, "{count} {} event{}", family_name(gap.family), if count == 1 { "" } else { "s" }),
    };
    if gap.cpu != CPU_NONE {
        let _ = write!(text, " on cpu {}", gap.cpu);
    }
    if gap.pid != 0 {
        let _ = write!(text, " of pid {}", gap.pid);
    }
    let when = if gap.last == 0 { "at an unknown time".to_owned() } else { when(gap.first, gap.last) };
    let _ = write!(text, ", {when}: {}", cause_text(gap.cause));
    text
}

/// `LOST up to 900 syscall events, 1.204–1.219 s: …`.
pub fn hole_text(hole: &Hole, when: impl Fn(u64, u64) -> String) -> String {
    let number = if hole.rows == u32::MAX { "an unknown number of".to_owned() } else { format!("up to {}", hole.rows) };
    format!(
        "LOST {number} syscall events, {}: segment {} cannot be read: {}",
        when(hole.first, hole.last),
        hole.segment,
        hole.why
    )
}

/// Meaning of an abnormal end for every total, or of one that has not come yet.
pub fn cut_text(until: u64, session: &Session, being_written: bool) -> String {
    let until = seconds(until, session);
    match being_written {
        true => format!("The tape is still being written: complete until {until} s, totals are lower bounds"),
        false => format!("The recording ended abnormally: complete until {until} s, totals are lower bounds"),
    }
}

/// `1.204–1.219 s`, since the tape's start.
pub fn span(first: u64, last: u64, session: &Session) -> String {
    if last == 0 {
        return "at an unknown time".to_owned();
    }
    format!("{}–{} s", seconds(first, session), seconds(last, session))
}

/// `ts` in seconds since the tape's start, three decimals.
pub fn seconds(ts: u64, session: &Session) -> String {
    let ns = i128::from(ts) - i128::from(session.window_open);
    let ms = (ns.unsigned_abs() + 500_000) / 1_000_000;
    format!("{}{}.{:03}", if ns < 0 && ms > 0 { "-" } else { "" }, ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let session = Session { window_open: 1_000_000_000, ..Session::default() };
        let mut gap = Gap {
            cause: GapCause::RingFull,
            family: Family::Syscall,
            cpu: 1,
            count: 47,
            first: 2_204_000_000,
            last: 2_218_600_000,
            pid: 0,
            ledger: false,
        };
        let gap_text = |gap: &Gap| gap_text(gap, |first, last| span(first, last, &session));
        assert_eq!(gap_text(&gap), "LOST 47 syscall events on cpu 1, 1.204–1.219 s: ring buffer full");
        gap = Gap { count: 0, cpu: CPU_NONE, pid: 7, last: 0, ..gap };
        assert_eq!(
            gap_text(&gap),
            "LOST an unknown number of syscall events of pid 7, at an unknown time: ring buffer full"
        );
        assert_eq!(seconds(999_000_000, &session), "-0.001");
        gap = Gap { count: 1, pid: 0, last: 2_204_000_000, ledger: true, cause: GapCause::OverShare, ..gap };
        assert_eq!(
            gap_text(&gap),
            "TOTALS ONLY 1 syscall event, 1.204–1.204 s: the process had filled its share of the ring buffer"
        );
    }

    #[test]
    fn a_loss_touches_its_family_owner_and_time() {
        let gap = |family, pid| Gap {
            cause: GapCause::Hidden,
            family,
            cpu: CPU_NONE,
            count: 2,
            first: 50,
            last: 60,
            pid,
            ledger: false,
        };
        let loss = |gap: Gap| Loss { gaps: vec![gap], ..Loss::default() };
        let block = loss(gap(Family::Block, 0));
        assert!(block.touches(&[Family::Block], Some(7), (0, 100)) && block.touches(&[Family::Block], None, (60, 90)));
        assert!(!block.touches(&[Family::Syscall, Family::Sched], None, (0, 100)), "of another family");
        assert!(!block.touches(&[Family::Block], None, (61, 100)) && !block.touches(&[Family::Block], None, (0, 49)));
        let of_seven = loss(gap(Family::Syscall, 7));
        assert!(of_seven.touches(&[Family::Syscall], Some(7), (0, 100)));
        assert!(of_seven.touches(&[Family::Syscall], None, (0, 100)), "it may be anybody");
        assert!(!of_seven.touches(&[Family::Syscall], Some(8), (0, 100)));
        let unknown = loss(gap(Family::Unknown, 0));
        assert!(unknown.touches(&[Family::Net], None, (0, 100)), "any family");
        let cut = Loss { cut: Some(80), ..Loss::default() };
        assert!(cut.touches(&[Family::Net], None, (0, 100)) && !cut.touches(&[Family::Net], None, (0, 80)));
    }

    #[test]
    fn sums_miss_nothing_that_is_counted() {
        let gap = |ledger| Gap {
            cause: GapCause::RingFull,
            family: Family::Syscall,
            cpu: 0,
            count: 1,
            first: 1,
            last: 1,
            pid: 0,
            ledger,
        };
        let loss = |gaps: &[Gap]| Loss { gaps: gaps.to_vec(), ..Loss::default() };
        let counted = loss(&[gap(true)]);
        assert!(!counted.complete() && counted.of_sums().complete());
        assert!(!loss(&[gap(true), gap(false)]).of_sums().complete());
        assert!(!is_loss(GapCause::Filtered) && leaves_out_calls(&Gap { cause: GapCause::Filtered, ..gap(true) }));
    }
}
