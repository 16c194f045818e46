//! What begins a tape of a flight recorder (`--on`): conditions on single events, evaluated in order of time.
//!
//! Plain values in, plain values out: [`crate::encode`] makes an [`Event`] of a record. A call that is counted instead of
//! stored is an event as far as its counts tell.

mod parse;
mod rate;
mod runqueue;

use std::collections::HashSet;

use systape_abi::{Abi, Selection, describe, display_name, errno_name, glob_matches, rest, signal_name};

use crate::kernel::native;

pub use parse::parse;
use rate::Rate;
pub(crate) use runqueue::RunQueue;

/// Calls that are still in flight and fired: so many are remembered.
const MOST_STUCK: usize = 1 << 16;

/// A resource of /proc/pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Tasks wait for a CPU.
    Cpu,
    /// Pressure on memory.
    Memory,
    /// Pressure on storage.
    Io,
}

impl Resource {
    /// Name of the resource, that of the file too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }
}

/// The condition of a trigger; times in ns.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A process died of one of these signals; None = of any.
    Died(Option<Vec<u32>>),
    /// The OOM killer chose a victim.
    Oom,
    /// A call of these that returned after more than this time.
    Slow(Selection, u64),
    /// A call of these that has not returned after this time.
    Stuck(Selection, u64),
    /// More than so many such calls failed with this errno within a second.
    Errno(Selection, u16, u32),
    /// A block I/O took longer than this.
    Io(u64),
    /// A block I/O failed.
    IoError,
    /// A runnable thread waited longer than this for a CPU.
    RunQueue(u64),
    /// A program was started, by a pattern of its path or of its last part.
    Exec(String),
    /// A process ended, by a pattern of its executable or name; true: with another status than 0.
    Exit(String, bool),
    /// A file of this path appeared.
    File(String),
    /// Tasks were stalled for more than this part (percent) of this time.
    Pressure(Resource, u32, u64),
    /// More than so many events were lost within a second.
    Lost(u64),
}

/// A trigger as it was asked for.
#[derive(Clone, Debug)]
pub struct TriggerSpec {
    /// Text as it was typed.
    pub text: String,
    /// The condition.
    pub kind: Kind,
    /// Pattern of the thread's name; None = any.
    pub comm: Option<String>,
    /// Name of the disk; None = any.
    pub disk: Option<String>,
    /// Number of the device, `major << 20 | minor`.
    pub device: Option<u32>,
}

impl TriggerSpec {
    /// A short name for files: `slow-fsync`.
    pub(crate) fn slug(&self) -> String {
        let head = self.text.split(['>', '=']).next().unwrap_or_default().trim_end_matches('!');
        match &self.kind {
            Kind::Errno(_, errno, _) => format!("{head}-{}", errno_name(*errno).unwrap_or("error")),
            Kind::File(path) => format!("file-{}", path.rsplit('/').next().unwrap_or_default()),
            _ => head.to_owned(),
        }
    }
}

/// Whose event it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Of<'a> {
    /// Id of the thread; 0 = not known.
    pub tid: u32,
    /// Name of the thread; empty = not known.
    pub comm: &'a [u8],
    /// Path of the executable; empty = not known.
    pub exe: &'a [u8],
}

/// An event that a trigger may be about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'a> {
    /// A call returned.
    Call {
        /// Return.
        ts: u64,
        /// ns.
        dur: u64,
        /// ABI and number.
        call: (u8, u32),
        /// 0 = it succeeded.
        errno: u16,
    },
    /// Calls were counted.
    Counted {
        /// Ends of the first and the last.
        span: (u64, u64),
        /// How many.
        count: u64,
        /// Duration of the longest.
        longest: u64,
        /// ABI and number.
        call: (u8, u32),
        /// 0 = they succeeded.
        errno: u16,
    },
    /// A call is in flight.
    Open {
        /// When it was looked at.
        ts: u64,
        /// Enter, or the beginning of the recording.
        start: u64,
        /// ABI and number.
        call: (u8, u32),
        /// What it waits for, as far as that shows.
        rest: AtRest,
    },
    /// A process ended with this wait status.
    Exit {
        /// When.
        ts: u64,
        /// As wait(2) has it.
        status: u32,
    },
    /// The OOM killer chose a victim.
    Oom {
        /// When.
        ts: u64,
    },
    /// A program was started.
    Exec {
        /// When.
        ts: u64,
        /// Its path.
        path: &'a [u8],
    },
    /// A block I/O completed.
    Io {
        /// When.
        ts: u64,
        /// Since it was queued, or issued; None = neither is known.
        dur: Option<u64>,
        /// `major << 20 | minor`.
        device: u32,
        /// It failed.
        failed: bool,
    },
    /// A thread came on a CPU.
    Ran {
        /// When.
        ts: u64,
        /// It had been runnable for so long.
        waited: u64,
    },
    /// Events were lost.
    Lost {
        /// When the last was.
        ts: u64,
        /// How many.
        count: u64,
    },
}

/// A trigger fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fire {
    /// Number of the trigger in the order of `--on`.
    pub trigger: usize,
    /// Time when it fired.
    pub ts: u64,
    /// What happened, in words.
    pub what: String,
    /// Value that `record:trigger` shows.
    pub value: u64,
}

#[derive(Clone, Debug)]
struct Trigger {
    spec: TriggerSpec,
    rate: Rate,
    /// Calls in flight that fired: thread and start.
    stuck: HashSet<(u32, u64)>,
    /// It names calls alone that wait for work or for others: those are meant.
    means_waits: bool,
}

/// Whether a call in flight is one that nothing is the matter with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtRest {
    /// No: the call waits for a disk, a file system, a client's connection, or in uninterruptible sleep.
    No,
    /// The call takes data from where somebody else puts it when there is something to do: a pipe, a terminal, a server's socket.
    Takes,
    /// The call waits for work, a signal, a child or the time to pass whatever it is on: futex, poll, wait4.
    Waits,
}

impl AtRest {
    /// Whether this is so for a call of a thread in `state` (as /proc has it) on the file called `on`.
    pub(crate) fn of(call: (u8, u32), state: u8, on: Option<&[u8]>) -> Self {
        let (name, abi) = (call_name(call), Abi::from_raw(call.0));
        let takes = describe(abi, call.1).is_some_and(|desc| rest::takes(&name, desc.io()));
        match state {
            b'D' => Self::No,
            _ if !rest::at_rest(&name, takes, on) => Self::No,
            _ if takes => Self::Takes,
            _ => Self::Waits,
        }
    }
}

/// Whether all `calls` wait for something.
fn mean_waits(calls: &Selection) -> bool {
    let mut selected = systape_abi::all(native::ABI).filter(|(nr, _)| calls.contains(native::ABI, *nr)).peekable();
    selected.peek().is_some() && selected.all(|(_, name)| rest::at_rest(name, false, None))
}

/// The triggers of a recording, with what they remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct Triggers(Vec<Trigger>);

impl Triggers {
    /// Makes the triggers that were asked for.
    pub(crate) fn new(specs: &[TriggerSpec]) -> Self {
        let trigger = |spec: &TriggerSpec| {
            let most = match spec.kind {
                Kind::Errno(_, _, over) => u64::from(over),
                Kind::Lost(over) => over,
                _ => 0,
            };
            let means_waits = matches!(&spec.kind, Kind::Stuck(calls, _) if mean_waits(calls));
            Trigger { spec: spec.clone(), rate: Rate::new(most), stuck: HashSet::new(), means_waits }
        };
        Self(specs.iter().map(trigger).collect())
    }

    /// Whether some look at records.
    pub(crate) fn is_on(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether one looks at calls in flight.
    pub(crate) fn want_open_calls(&self) -> bool {
        self.0.iter().any(|trigger| matches!(trigger.spec.kind, Kind::Stuck(..)))
    }

    /// Whether one looks at waits for a CPU.
    pub(crate) fn want_run_queue(&self) -> bool {
        self.0.iter().any(|trigger| matches!(trigger.spec.kind, Kind::RunQueue(_)))
    }

    /// Whether one looks at returns of this call, by ABI and number.
    pub(crate) fn want_call(&self, call: (u8, u32)) -> bool {
        let wants = |trigger: &Trigger| match &trigger.spec.kind {
            Kind::Slow(calls, _) | Kind::Errno(calls, ..) => selects(calls, call),
            _ => false,
        };
        self.0.iter().any(wants)
    }

    /// Adds those that fire on `event` to `fired`.
    pub(crate) fn event(&mut self, event: &Event<'_>, of: &Of<'_>, fired: &mut Vec<Fire>) {
        for (number, trigger) in self.0.iter_mut().enumerate() {
            if let Some((ts, what, value)) = trigger.fires(event, of) {
                fired.push(Fire { trigger: number, ts, what, value });
            }
        }
    }

    /// All calls in flight were looked at: those that were not among `open` (thread and start) have returned.
    pub(crate) fn looked(&mut self, open: &HashSet<(u32, u64)>) {
        self.0.iter_mut().for_each(|trigger| trigger.stuck.retain(|call| open.contains(call)));
    }
}

fn matches(pattern: &str, bytes: &[u8]) -> bool {
    glob_matches(pattern, &String::from_utf8_lossy(bytes))
}

/// Whether a pattern with a slash matches a path, one without its last part.
fn path_matches(pattern: &str, path: &[u8]) -> bool {
    let last = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    matches(pattern, if pattern.contains('/') { path } else { last })
}

fn selects(calls: &Selection, (abi, nr): (u8, u32)) -> bool {
    calls.contains(Abi::from_raw(abi), nr)
}

fn call_name((abi, nr): (u8, u32)) -> std::borrow::Cow<'static, str> {
    display_name(Abi::from_raw(abi), nr)
}

/// A time of ns with three digits.
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        1_000_000_000..10_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => format!("{:.0} s", ns as f64 / 1e9),
    }
}

impl Trigger {
    /// Time, words and value, if it fires.
    fn fires(&mut self, event: &Event<'_>, of: &Of<'_>) -> Option<(u64, String, u64)> {
        let Self { spec, rate, stuck, means_waits } = self;
        if spec.comm.as_ref().is_some_and(|comm| !matches(comm, of.comm)) {
            return None;
        }
        match (&spec.kind, *event) {
            (Kind::Died(signals), Event::Exit { ts, status }) => {
                let signal = status & 0x7f;
                let named = signals.as_ref().is_none_or(|signals| signals.contains(&signal));
                (signal != 0 && named).then(|| (ts, signal_name(signal).into_owned(), signal.into()))
            }
            (Kind::Oom, Event::Oom { ts }) => Some((ts, "out of memory".into(), 0)),
            (Kind::Slow(calls, over), Event::Call { ts, dur, call, .. }) if dur > *over && selects(calls, call) => {
                Some((ts, format!("{} {}", call_name(call), time(dur)), dur))
            }
            (Kind::Slow(calls, over), Event::Counted { span, longest, call, .. })
                if longest > *over && selects(calls, call) =>
            {
                Some((span.1, format!("{} {} (counted)", call_name(call), time(longest)), longest))
            }
            (Kind::Stuck(calls, over), Event::Open { ts, start, call, rest }) => {
                let open = ts.saturating_sub(start);
                let meant = rest == AtRest::No || rest == AtRest::Waits && *means_waits;
                let is_new = meant && open > *over && selects(calls, call) && stuck.len() < MOST_STUCK;
                (is_new && stuck.insert((of.tid, start)))
                    .then(|| (ts, format!("{} in flight for {}", call_name(call), time(open)), open))
            }
            (Kind::Errno(calls, wanted, _), Event::Call { ts, call, errno, .. })
                if errno == *wanted && selects(calls, call) =>
            {
                Some((ts, failures(call, errno, rate.add((ts, ts), 1)?), rate.over()))
            }
            (Kind::Errno(calls, wanted, _), Event::Counted { span, count, call, errno, .. })
                if errno == *wanted && selects(calls, call) =>
            {
                Some((span.1, failures(call, errno, rate.add(span, count)?), rate.over()))
            }
            (Kind::Io(over), Event::Io { ts, dur: Some(dur), device, .. }) => {
                let asked = spec.device.is_none_or(|of| of == device);
                (asked && dur > *over).then(|| (ts, format!("I/O {}", time(dur)), dur))
            }
            (Kind::IoError, Event::Io { ts, device, failed: true, .. }) => {
                spec.device.is_none_or(|of| of == device).then(|| (ts, "I/O error".into(), 1))
            }
            (Kind::RunQueue(over), Event::Ran { ts, waited }) if waited > *over => {
                Some((ts, format!("waited {} for a CPU", time(waited)), waited))
            }
            (Kind::Exec(pattern), Event::Exec { ts, path }) if path_matches(pattern, path) => {
                Some((ts, "started".into(), 0))
            }
            (Kind::Exit(pattern, failed), Event::Exit { ts, status }) => {
                let of_it = path_matches(pattern, of.exe) || matches(pattern, of.comm);
                let what = match status & 0x7f {
                    0 => format!("ended with status {}", status >> 8 & 0xff),
                    signal => format!("ended by {}", signal_name(signal)),
                };
                (of_it && (!failed || status != 0)).then_some((ts, what, status.into()))
            }
            (Kind::Lost(over), Event::Lost { ts, count }) => {
                let lost = rate.add((ts, ts), count)?;
                Some((ts, format!("{lost} events lost in a second, more than {over}"), lost))
            }
            _ => None,
        }
    }
}

fn failures(call: (u8, u32), errno: u16, count: u64) -> String {
    let error = errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned);
    format!("{} failed {count} times in a second with {error}", call_name(call))
}

#[cfg(test)]
mod tests;
