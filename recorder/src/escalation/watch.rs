//! Whether what a look found is wrong, by the conditions of `--escalate-on`. Plain values in, plain values out.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::{Abi, display_name};
use systape_bpf::wire::{LookNote, SNAP_NO_CALL, Who};

use super::conditions::{Wrong, WrongCondition};
use crate::triggers::{AtRest, time};

/// Processes that waited for their quota already when the recording began are as they were meant to be.
const SETTLES: u64 = 3_000_000_000;
/// Time over which the part is taken that a process waits for its quota.
const QUOTA_TIME: f64 = 500e6;

/// A stay that the last look found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWait<'a> {
    /// Number of the stay.
    pub serial: u64,
    /// The thread.
    pub note: &'a LookNote,
    /// Name of its file, "" = it has none; None: not read.
    pub file: Option<&'a [u8]>,
    /// Lock that it waits for.
    pub lock: Option<u64>,
    /// How long it had been so when it was first found.
    pub first: u64,
    /// How long it is so.
    pub lasted: u64,
}

/// What was found to be wrong.
#[derive(Clone, Debug)]
pub(crate) struct FoundWrong {
    /// When it was found.
    pub ts: u64,
    /// The thread.
    pub who: Who,
    /// The condition as typed.
    pub condition: String,
    /// What it is, in words.
    pub what: String,
    /// Time in ns, percent, or threads.
    pub value: u64,
}

/// Where threads crowd: the call's ABI and number, and what it is on.
type WaitPlace = (u8, u32, Vec<u8>);

/// The conditions, with what they remember.
#[derive(Debug)]
pub(crate) struct WrongWatch {
    conditions: Vec<WrongCondition>,
    start: u64,
    /// When the look before was.
    before: u64,
    /// Stays that fired, by condition and number.
    fired: FxHashSet<(usize, u64)>,
    /// Part of the time that processes waited for their quota, and whether that has fired.
    throttled: FxHashMap<u32, (f64, bool)>,
    /// Places that fired, until they are half empty.
    crowds: FxHashSet<(usize, WaitPlace)>,
}

impl WrongWatch {
    /// Begins at `start`.
    pub(crate) fn new(conditions: Vec<WrongCondition>, start: u64) -> Self {
        Self {
            conditions,
            start,
            before: start,
            fired: FxHashSet::default(),
            throttled: FxHashMap::default(),
            crowds: FxHashSet::default(),
        }
    }

    /// The first condition that the look of the time `now` fulfils for the first time.
    pub(crate) fn look(&mut self, now: u64, waits: &[OpenWait<'_>]) -> Option<FoundWrong> {
        let mut found = None;
        let conditions = std::mem::take(&mut self.conditions);
        let since = now.saturating_sub(std::mem::replace(&mut self.before, now));
        self.share_quota((since as f64 / QUOTA_TIME).min(1.0), waits);
        let places = places(waits);
        for (number, condition) in conditions.iter().enumerate() {
            let fired = match condition.wrong {
                Wrong::Throttled(percent) => self.throttled(percent, now, waits),
                Wrong::Crowd(most) => self.crowd((number, most), &places, waits),
                wrong => self.longest(number, wrong, waits),
            };
            let fired = fired.map(|(who, what, value)| {
                let condition = condition.text.clone();
                FoundWrong { ts: now, who, condition, what, value }
            });
            found = found.or(fired);
        }
        self.conditions = conditions;
        let open: FxHashSet<u64> = waits.iter().map(|wait| wait.serial).collect();
        self.fired.retain(|(_, serial)| open.contains(serial));
        found
    }

    /// The longest wait that is over its bound for the first time. One that was over it when it was first found is as old as the
    /// recording, or older: it is no news.
    fn longest(&mut self, number: usize, wrong: Wrong, waits: &[OpenWait<'_>]) -> Option<(Who, String, u64)> {
        let mut longest: Option<&OpenWait<'_>> = None;
        for wait in waits {
            let is = match wrong {
                Wrong::Stuck(over) => wait.lasted > over && wait.first <= over && is_stuck(wait),
                Wrong::Uninterruptible(over) => wait.lasted > over && wait.first <= over && wait.note.state == b'D',
                Wrong::Stopped(over) => wait.lasted > over && wait.first <= over && wait.note.state == b'T',
                Wrong::RunQueue(over) => {
                    let queued = wait.note.state == b'R' && wait.note.throttled == 0;
                    wait.lasted > over && wait.first <= over && queued
                }
                Wrong::Throttled(_) | Wrong::Crowd(_) => false,
            };
            let is_new = is && self.fired.insert((number, wait.serial));
            if is_new && longest.is_none_or(|longest| longest.lasted < wait.lasted) {
                longest = Some(wait);
            }
        }
        longest.map(|wait| (wait.note.who, words(wait), wait.lasted))
    }

    /// Adds a look, with this weight, to the part of the time that each process waits for its quota.
    fn share_quota(&mut self, weight: f64, waits: &[OpenWait<'_>]) {
        let now: FxHashSet<u32> =
            waits.iter().filter(|wait| wait.note.throttled != 0).map(|wait| wait.note.who.pid).collect();
        for pid in &now {
            self.throttled.entry(*pid).or_default();
        }
        for (pid, (part, _)) in &mut self.throttled {
            *part += (f64::from(u8::from(now.contains(pid))) - *part) * weight;
        }
        self.throttled.retain(|_, (part, _)| *part > 0.01);
    }

    fn throttled(&mut self, percent: u32, now: u64, waits: &[OpenWait<'_>]) -> Option<(Who, String, u64)> {
        let over = f64::from(percent) / 100.0;
        let settles = now.saturating_sub(self.start) < SETTLES;
        let mut found = None;
        for (pid, (part, fired)) in &mut self.throttled {
            if *part < over / 2.0 {
                *fired = false;
            }
            if *part > over && !std::mem::replace(fired, true) && !settles {
                let value = (*part * 100.0) as u64;
                let wait = waits.iter().find(|wait| wait.note.who.pid == *pid && wait.note.throttled != 0);
                let of = |wait: &OpenWait<'_>| {
                    (wait.note.who, format!("waits for its group's quota for {value} % of the time"), value)
                };
                found = found.or(wait.map(of));
            }
        }
        found
    }

    fn crowd(
        &mut self,
        (number, most): (usize, u32),
        places: &FxHashMap<WaitPlace, (u32, usize)>,
        waits: &[OpenWait<'_>],
    ) -> Option<(Who, String, u64)> {
        let threads = |place: &WaitPlace| places.get(place).map_or(0, |(threads, _)| *threads);
        self.crowds.retain(|(of, place)| *of != number || threads(place) > most / 2);
        let mut found: Option<(u32, usize)> = None;
        for (place, (threads, first)) in places {
            let is_new = *threads > most && self.crowds.insert((number, place.clone()));
            if is_new && found.is_none_or(|(most, _)| most < *threads) {
                found = Some((*threads, *first));
            }
        }
        let (threads, first) = found?;
        let wait = waits.get(first)?;
        Some((wait.note.who, format!("{threads} threads wait: {}", words(wait)), threads.into()))
    }
}

/// Whether the call of a wait is one that ought to return: it waits for no work.
fn is_stuck(wait: &OpenWait<'_>) -> bool {
    let note = wait.note;
    if note.state != b'S' || note.nr == SNAP_NO_CALL {
        return false;
    }
    // a futex that looks note is a contended lock; polls that they note wait for an answer, if for one from elsewhere
    let name = display_name(Abi::from_raw(note.abi), note.nr);
    if name.starts_with("futex") {
        return true;
    }
    let Some(file) = wait.file else { return false };
    if name == "poll" || name == "ppoll" {
        return is_asked(file);
    }
    AtRest::of((note.abi, note.nr), note.state, Some(file).filter(|file| !file.is_empty())) == AtRest::No
}

/// Whether a socket is one on which this side asked: a datagram socket that is connected to a name server.
fn is_asked(file: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(file) else { return false };
    name.starts_with("UDP") && name.strip_suffix("]").is_some_and(|name| name.ends_with(":53"))
}

/// Threads by what they are in, with the place of one of them.
fn places(waits: &[OpenWait<'_>]) -> FxHashMap<WaitPlace, (u32, usize)> {
    let mut places: FxHashMap<WaitPlace, (u32, usize)> = FxHashMap::default();
    for (at, wait) in waits.iter().enumerate() {
        let note = wait.note;
        let on = match wait.lock {
            Some(lock) => format!("{}:{lock}", note.who.pid).into_bytes(),
            None => wait.file.unwrap_or_default().to_vec(),
        };
        let waits = note.state == b'D' || is_stuck(wait);
        if waits && note.nr != SNAP_NO_CALL && !on.is_empty() {
            places.entry((note.abi, note.nr, on)).or_insert((0, at)).0 += 1;
        }
    }
    places
}

/// `futex in flight for 1.02 s`.
fn words(wait: &OpenWait<'_>) -> String {
    let note = wait.note;
    let lasted = time(wait.lasted);
    let call = (note.nr != SNAP_NO_CALL).then(|| display_name(Abi::from_raw(note.abi), note.nr));
    match (note.state, call) {
        (b'R', _) => format!("waits {lasted} for a CPU"),
        (b'T', _) => format!("stopped for {lasted}"),
        (b'D', None) => format!("in D for {lasted}"),
        (b'D', Some(call)) => format!("in D in {call} for {lasted}"),
        (_, call) => format!("{} in flight for {lasted}", call.unwrap_or("?".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditions::parse;
    use super::*;

    const S: u64 = 1_000_000_000;

    fn watch(texts: &[&str]) -> WrongWatch {
        WrongWatch::new(texts.iter().map(|text| parse(text).unwrap()).collect(), 0)
    }

    fn note(tid: u32, state: u8, call: &str) -> LookNote {
        let nr = systape_abi::number(Abi::X86_64, call).unwrap_or(SNAP_NO_CALL);
        let mut note = LookNote { state, nr, abi: Abi::X86_64 as u8, ..LookNote::default() };
        (note.who.tid, note.who.pid) = (tid, tid);
        note
    }

    fn wait<'a>(note: &'a LookNote, file: Option<&'a [u8]>, (first, lasted): (u64, u64)) -> OpenWait<'a> {
        OpenWait { serial: note.who.tid.into(), note, file, lock: None, first, lasted }
    }

    fn what(watch: &mut WrongWatch, now: u64, waits: &[OpenWait<'_>]) -> Option<(u32, String)> {
        watch.look(now, waits).map(|fired| (fired.who.tid, fired.what))
    }

    #[test]
    fn a_long_wait_fires_once_when_it_gets_too_long() {
        let mut watch = watch(&["stuck>1s", "d>1s"]);
        let (fsync, connect) = (note(1, b'D', "fsync"), note(2, b'S', "connect"));
        let at = |one, other| {
            [wait(&fsync, None, (0, one)), wait(&connect, Some(b"TCP:[1.1.1.1:5->2.2.2.2:443]"), (0, other))]
        };
        assert_eq!(what(&mut watch, 9 * S, &at(S, S)), None);
        assert_eq!(what(&mut watch, 9 * S, &at(S, S + 1)), Some((2, "connect in flight for 1.00 s".into())));
        assert_eq!(what(&mut watch, 9 * S, &at(S + 1, 2 * S)), Some((1, "in D in fsync for 1.00 s".into())));
        assert_eq!(what(&mut watch, 9 * S, &at(5 * S, 5 * S)), None, "told already");
        // it is over, and comes again
        assert_eq!(what(&mut watch, 9 * S, &[]), None);
        assert!(what(&mut watch, 9 * S, &at(2 * S, 0)).is_some());
        // one that hangs for days
        let old = [wait(&fsync, None, (900 * S, 950 * S))];
        watch.look(9 * S, &[]);
        assert_eq!(what(&mut watch, 9 * S, &old), None);
    }

    #[test]
    fn who_waits_for_work_is_not_stuck() {
        let mut watch = watch(&["stuck>1s"]);
        let mut fires = |call: &str, file: Option<&[u8]>| {
            let note = note(1, b'S', call);
            watch.look(0, &[]);
            watch.look(9 * S, &[wait(&note, file, (0, 2 * S))]).is_some()
        };
        assert!(!fires("read", Some(b"pipe:[7]")) && !fires("read", Some(b"/dev/pts/0")));
        assert!(!fires("read", Some(b"TCP:[1.1.1.2:80->1.1.1.1:50000]")), "a server");
        assert!(fires("read", Some(b"TCP:[1.1.1.1:50000->1.1.1.2:5432]")), "a client");
        assert!(!fires("read", None), "not read yet");
        assert!(fires("flock", Some(b"/var/lock/x")) && fires("futex", None));
        assert!(fires("poll", Some(b"UDP:[10.0.0.1:4000->10.0.0.2:53]")));
        assert!(!fires("poll", Some(b"UDP:[10.0.0.1:4000->10.0.0.2:514]")) && !fires("poll", Some(b"")));
    }

    #[test]
    fn stops_and_queues() {
        let mut watch = watch(&["stopped>1s", "runq>1s"]);
        let (stopped, queued) = (note(1, b'T', ""), note(2, b'R', ""));
        let throttled = LookNote { throttled: 1, ..note(3, b'R', "") };
        assert_eq!(what(&mut watch, 0, &[wait(&throttled, None, (0, 9 * S))]), None);
        assert_eq!(what(&mut watch, 0, &[wait(&stopped, None, (0, 2 * S))]), Some((1, "stopped for 2.00 s".into())));
        assert_eq!(what(&mut watch, 0, &[wait(&queued, None, (0, 2 * S))]), Some((2, "waits 2.00 s for a CPU".into())));
    }

    #[test]
    fn quotas_are_told_when_they_begin_to_hold() {
        let mut watch = watch(&["throttled>70%"]);
        let mut at = 0;
        let mut look = |is: bool, looks: u32| {
            let note = LookNote { throttled: 1, ..note(5, b'R', "") };
            let waits = [wait(&note, None, (0, 0))];
            let mut fired = 0;
            for _ in 0..looks {
                at += S / 20;
                fired += u32::from(watch.look(at, if is { &waits } else { &[] }).is_some());
            }
            fired
        };
        assert_eq!(look(true, 100), 0, "it was so when the recording began");
        assert_eq!(look(false, 60), 0);
        assert_eq!(look(true, 10), 0);
        assert_eq!(look(true, 10), 1);
        assert_eq!(look(true, 100), 0);
    }

    #[test]
    fn crowds_are_of_one_place() {
        let mut watch = watch(&["crowd>2"]);
        let notes: Vec<LookNote> = (1..=4)
            .map(|tid| LookNote { who: Who { tid, pid: 9, ..Who::default() }, ..note(tid, b'S', "futex") })
            .collect();
        let all = |lock: fn(u64) -> u64| -> Vec<OpenWait<'_>> {
            notes
                .iter()
                .zip(1..)
                .map(|(note, at)| OpenWait { lock: Some(lock(at)), ..wait(note, None, (0, 0)) })
                .collect()
        };
        assert_eq!(what(&mut watch, 0, &all(|at| at)), None, "each waits for a lock of its own");
        let said = what(&mut watch, 0, &all(|_| 0x10)).unwrap().1;
        assert!(said.starts_with("4 threads wait: futex"), "{said}");
        assert_eq!(what(&mut watch, 0, &all(|_| 0x10)), None, "told already");
        watch.look(0, &[]);
        assert!(watch.look(0, &all(|_| 0x10)).is_some());
    }
}
