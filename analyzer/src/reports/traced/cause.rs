//! What a part of the path is put down to: a word for each cause, and a sentence of it.

use rustc_hash::FxHashMap;
use systape_format::model::{CPU_NONE, CallState};
use systape_format::reader::Tape;

use systape_abi::rest::is_poll;
use systape_answers::derive::critical::doing::{In, Spent};
use systape_answers::derive::critical::walk::{Kind, Part};
use systape_answers::derive::runs::keys::{Place, Words};
use systape_answers::derive::runs::{InCall, State};
use systape_answers::derive::waits::{is_sleep, is_storage};
use systape_events::calls::CallBook;
use systape_events::values::order::InOrder as _;

/// A cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Time on a CPU.
    Cpu,
    /// Waiting for a CPU.
    Runqueue,
    /// Runnable, while a cgroup was out of CPU time.
    Throttled,
    /// A sleep that the program asked for.
    Sleep,
    /// A wait whose time was up.
    Timeout,
    /// I/O of a file.
    Disk,
    /// A packet whose sender is not known.
    Network,
    /// Another interrupt.
    Interrupt,
    /// Not over at the end.
    Blocked,
    /// Stopped by a signal or a tracer.
    Stopped,
    /// Dead, and not waited for.
    Dead,
    /// The thread that woke it is not recorded.
    NotRecorded,
    /// The hand-overs are too many.
    TooDeep,
    /// What was written could not be sent yet; of exchanges alone.
    Held,
    /// Nothing is known.
    Unknown,
}

impl Cause {
    /// Word in JSON and CSV.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Runqueue => "runqueue",
            Self::Throttled => "throttled",
            Self::Sleep => "sleep",
            Self::Timeout => "timeout",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Interrupt => "interrupt",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
            Self::Dead => "dead",
            Self::NotRecorded => "not-recorded",
            Self::TooDeep => "too-deep",
            Self::Held => "held",
            Self::Unknown => "unknown",
        }
    }

    /// Cause of `part`, in which its thread spent its time so.
    pub(crate) fn of(part: &Part, spent: &Spent, ends: &TimedOutCalls, words: &Words<'_>) -> Self {
        match part.kind {
            Kind::Runs => Self::Cpu,
            Kind::Waits { .. } => Self::Runqueue,
            Kind::Throttled => Self::Throttled,
            Kind::GoesOn => Self::Blocked,
            Kind::Stopped => Self::Stopped,
            Kind::Ended => Self::Dead,
            Kind::Unseen { .. } => Self::NotRecorded,
            Kind::TooDeep { .. } => Self::TooDeep,
            Kind::Unsaid | Kind::Unknown => Self::Unknown,
            Kind::Interrupt => by_interrupt(part, spent.most(), ends, words),
        }
    }
}

/// Why an interrupt ended a sleep, as far as the call tells.
fn by_interrupt(part: &Part, most: Option<&In>, ends: &TimedOutCalls, words: &Words<'_>) -> Cause {
    let uninterruptible = part.state == State::Sleeping(b'D');
    let Some(In { place: Place::Call(call), file, call: whole, .. }) = most else {
        // a page that is read from its file
        let fault = matches!(most, Some(In { place: Place::User, .. }));
        return if uninterruptible && fault { Cause::Disk } else { Cause::Interrupt };
    };
    let name = &words.book.get(*call).name;
    if is_sleep(name) {
        return Cause::Sleep;
    }
    if whole.as_ref().and_then(|call| call.row).is_some_and(|row| ends.timed_out(row)) {
        return Cause::Timeout;
    }
    let file = words.names.name(*file).unwrap_or_default();
    match () {
        () if is_socket(file) => Cause::Network,
        () if uninterruptible || (is_storage(file) && !can_time_out(name)) => Cause::Disk,
        () => Cause::Interrupt,
    }
}

/// Calls with a limit of time that tell when it is up.
fn can_time_out(name: &str) -> bool {
    is_poll(name) || matches!(name, "futex" | "futex_wait" | "rt_sigtimedwait")
}

/// Whether that is the name of a socket of a network.
fn is_socket(file: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"TCP", b"UDP", b"RAW", b"PING", b"SCTP"];
    names.iter().any(|name| file.starts_with(name)) || file.starts_with(b"socket:")
}

/// Which calls ended because their time was up.
#[derive(Debug, Default)]
pub(crate) struct TimedOutCalls(FxHashMap<(u32, u32), bool>);

/// Errnos that say so: EAGAIN of rt_sigtimedwait, ETIMEDOUT of futex.
const TIMES_UP: [u16; 2] = [11, 110];

impl TimedOutCalls {
    /// Reads which of `calls` ended so.
    pub(crate) fn of(tape: &Tape, book: &CallBook<'_>, calls: impl Iterator<Item = InCall>) -> Self {
        let mut by_segment: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for call in calls.filter(|call| can_time_out(&book.get(call.call).name)) {
            if let Some((segment, row)) = call.row {
                by_segment.entry(segment).or_default().push(row);
            }
        }
        let mut ends = FxHashMap::default();
        for (at, rows) in by_segment {
            let segment = tape.segment(at as usize);
            let Ok(dict) = segment.dict() else { continue };
            let Ok(core) = segment.core(&dict) else { continue };
            let args = segment.args(&core).unwrap_or_default();
            for row in rows {
                let index = row as usize;
                let returned = core.state.get(index).is_some_and(|state| *state == CallState::Complete);
                let errno = core.errno.get(index).copied().unwrap_or(0);
                let none = args.ret.get(index) == Some(&0);
                let name = core.call.get(index).map(|call| book.get(dict.calls[*call as usize]).name.clone());
                let polls = name.is_some_and(|name| !matches!(&*name, "futex" | "futex_wait" | "rt_sigtimedwait"));
                let up = if polls { errno == 0 && none } else { TIMES_UP.contains(&errno) };
                ends.insert((at, row), returned && up);
            }
        }
        Self(ends)
    }

    fn timed_out(&self, row: (u32, u32)) -> bool {
        self.0.get(&row).copied().unwrap_or(false)
    }
}

/// `own code 61 %, write 30 %`: what a thread on a CPU did, most first; calls of less than a tenth are left out.
pub(crate) fn on_cpu(spent: &Spent, ns: u64, words: &Words<'_>) -> String {
    let mut calls: Vec<(String, u64)> = Vec::new();
    for of in &spent.calls {
        let name = match of.place {
            Place::User => "its own code".to_owned(),
            Place::Kernel => "the kernel".to_owned(),
            Place::Unknown | Place::Any => "it is not known what".to_owned(),
            Place::Call(_) => words.place(of.place),
        };
        match calls.iter_mut().find(|(same, _)| *same == name) {
            Some((_, sum)) => *sum += of.ns,
            None => calls.push((name, of.ns)),
        }
    }
    calls.order_by(|(a, one), (b, other)| other.cmp(one).then_with(|| a.cmp(b)));
    let (first, rest) = match calls.split_first() {
        None => return "on a CPU".to_owned(),
        Some((first, rest)) => (first, rest),
    };
    let percent = |part: u64| 100.0 * part as f64 / ns.max(1) as f64;
    if percent(first.1) >= 95.0 {
        return format!("on a CPU, in {}", first.0);
    }
    let more = rest.iter().filter(|(_, ns)| percent(*ns) >= 10.0).take(3);
    let parts: Vec<String> =
        std::iter::once(first).chain(more).map(|(name, ns)| format!("{name} {:.0}%", percent(*ns))).collect();
    format!("on a CPU, in {}", parts.join(", "))
}

/// `CPU 1`, or `a CPU`.
pub(crate) fn cpu_text(kind: Kind) -> String {
    match kind {
        Kind::Waits { cpu } if cpu != CPU_NONE => format!("CPU {cpu}"),
        _ => "a CPU".to_owned(),
    }
}

/// A sleep in `call`, ended by `by` if that is a thread, for a disk held back by `limit`.
pub(crate) fn asleep((cause, limit): (Cause, Option<&str>), call: &str, by: &str) -> String {
    if let Some(limit) = limit {
        return format!("waits for a disk, held back by {limit}: {call}");
    }
    match cause {
        Cause::Sleep => format!("sleeps on purpose: {call}"),
        Cause::Timeout => format!("waits until its time-out: {call}"),
        Cause::Disk => format!("waits for a disk: {call}"),
        Cause::Network => format!("waits for the network (sender unknown): {call}"),
        Cause::Interrupt => format!("waits for a timer or a device: {call}"),
        Cause::Blocked => format!("still waiting at the end of the tape: {call}"),
        Cause::Throttled => "is throttled: the CPU quota of a cgroup is used up".to_owned(),
        Cause::Stopped => "is stopped, by a signal, a tracer or the freezer of its control group".to_owned(),
        Cause::Dead => "has ended; its parent has not collected it yet (zombie)".to_owned(),
        Cause::NotRecorded => format!("waits for {by}, which was not recorded: {call}"),
        Cause::TooDeep => format!("waits for {by}, which waits in a circle or too deep: {call}"),
        Cause::Held => format!("the kernel holds back what was written (Nagle's algorithm, or a full window): {call}"),
        Cause::Unknown | Cause::Cpu | Cause::Runqueue => "unknown (not recorded)".to_owned(),
    }
}
