//! Whether what a look found is wrong, by the conditions of `--escalate-on`. Plain values in, plain values out.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::{Abi, display_name};
use systape_bpf::wire::{Escalation, LookNote, SNAP_NO_CALL, Who, WireValue};

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
    /// Whether the file is a TCP socket that connected itself, not one that was accepted; None: not known.
    pub connected: Option<bool>,
    /// Lock that it waits for.
    pub lock: Option<u64>,
    /// Whether the holder of that lock is known.
    pub owned: bool,
    /// How long it had been so when it was first found.
    pub first: u64,
    /// How long it is so.
    pub lasted: u64,
}

/// What was found to be wrong.
#[derive(Clone, Debug, Default)]
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

impl FoundWrong {
    /// A line that says it, without its end.
    pub(crate) fn line(&self) -> String {
        let Self { ts, who, condition, what, value } = self;
        let comm: Vec<u8> = who.comm.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
        // a name may hold what ends a word, or a line
        let plain = |text: &str| text.replace(|c: char| c.is_control(), "?");
        let comm = plain(&String::from_utf8_lossy(&comm));
        let words = [plain(condition), plain(what)].join("\t");
        format!("{ts}\t{}\t{}\t{}\t{value}\t{comm}\t{words}", who.pid, who.tid, who.start)
    }

    /// Reads such a line; None: it is none.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split('\t').collect();
        let [ts, pid, tid, start, value, comm, condition, what] = words[..] else { return None };
        let mut found = Self {
            ts: ts.parse().ok()?,
            value: value.parse().ok()?,
            condition: condition.to_owned(),
            what: what.to_owned(),
            ..Self::default()
        };
        found.who.pid = pid.parse().ok()?;
        found.who.tid = tid.parse().ok()?;
        found.who.start = start.parse().ok()?;
        // the last byte is 0
        let most = found.who.comm.len() - 1;
        found.who.comm.iter_mut().zip(comm.bytes().take(most)).for_each(|(to, byte)| *to = byte.cast_signed());
        Some(found)
    }

    /// The record of it for a tape, at `ts`; `tape`: the one in which everything is, "" = this one.
    pub(crate) fn record(&self, ts: u64, what: &str, tape: &str) -> Vec<u8> {
        let texts = [self.condition.as_bytes(), what.as_bytes(), tape.as_bytes()];
        let [condition_len, what_len, tape_len] = texts.map(|text| text.len() as u16);
        let mut record = Escalation { value: self.value, condition_len, what_len, tape_len, ..Escalation::default() };
        record.row.hdr.kind = Escalation::KIND;
        (record.row.ts, record.row.who) = (ts, self.who);
        [&[record.bytes()], &texts[..]].concat().concat()
    }
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

    /// The first condition that the look of the time `now` fulfils for the first time. Without `takes` nobody could follow: what goes on
    /// then is told when somebody can.
    pub(crate) fn look(&mut self, now: u64, waits: &[OpenWait<'_>], takes: bool) -> Option<FoundWrong> {
        let mut found = None;
        let conditions = std::mem::take(&mut self.conditions);
        let since = now.saturating_sub(std::mem::replace(&mut self.before, now));
        self.share_quota((since as f64 / QUOTA_TIME).min(1.0), waits);
        let places = places(waits);
        for (number, condition) in conditions.iter().enumerate() {
            let fired = match condition.wrong {
                Wrong::Throttled(percent) => self.throttled(percent, now, waits, takes),
                Wrong::Crowd(most) => self.crowd((number, most), &places, waits, takes),
                wrong if takes => self.longest(number, wrong, waits),
                _ => None,
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
                Wrong::Throttled(_) | Wrong::Crowd(_) | Wrong::Pressure => false,
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

    fn throttled(&mut self, percent: u32, now: u64, waits: &[OpenWait<'_>], takes: bool) -> Option<(Who, String, u64)> {
        let over = f64::from(percent) / 100.0;
        let settles = now.saturating_sub(self.start) < SETTLES;
        let mut found = None;
        for (pid, (part, fired)) in &mut self.throttled {
            if *part < over / 2.0 {
                *fired = false;
            }
            // one that held when the recording began is as it was meant to be
            if *part > over && settles {
                *fired = true;
            }
            if *part <= over || !takes || std::mem::replace(fired, true) {
                continue;
            }
            let value = (*part * 100.0) as u64;
            let wait = waits.iter().find(|wait| wait.note.who.pid == *pid && wait.note.throttled != 0);
            let of = |wait: &OpenWait<'_>| {
                (wait.note.who, format!("waits for its group's quota for {value} % of the time"), value)
            };
            found = found.or(wait.map(of));
        }
        found
    }

    fn crowd(
        &mut self,
        (number, most): (usize, u32),
        places: &FxHashMap<WaitPlace, (u32, usize)>,
        waits: &[OpenWait<'_>],
        takes: bool,
    ) -> Option<(Who, String, u64)> {
        let threads = |place: &WaitPlace| places.get(place).map_or(0, |(threads, _)| *threads);
        self.crowds.retain(|(of, place)| *of != number || threads(place) > most / 2);
        let mut found: Option<(u32, usize)> = None;
        for (place, (threads, first)) in places {
            let is_new = takes && *threads > most && self.crowds.insert((number, place.clone()));
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
    // a futex that looks note may be a contended lock; polls that they note wait for an answer, if for one from elsewhere
    let name = display_name(Abi::from_raw(note.abi), note.nr);
    if name.starts_with("futex") {
        return wait.owned || is_lock(note);
    }
    let Some(file) = wait.file else { return false };
    if name == "poll" || name == "ppoll" {
        return is_asked(file);
    }
    let on = Some(file).filter(|file| !file.is_empty());
    match (AtRest::of((note.abi, note.nr), note.state, on), wait.connected) {
        // who takes from a connection waits for an answer if this side made it, whatever the ports are
        (AtRest::Takes, Some(true)) => true,
        (AtRest::No, Some(false)) => !takes(note),
        (rest, _) => rest == AtRest::No,
    }
}

/// Whether a futex is a lock by its operation alone. With FUTEX_WAIT_BITSET also conditions are waited for, and the number of their signals is
/// often that of a contended lock: Rust's and glibc's, where threads rest for work.
fn is_lock(note: &LookNote) -> bool {
    const COMMAND: u64 = 0x7f;
    note.args[1] & COMMAND != libc::FUTEX_WAIT_BITSET as u64
}

/// Whether the call of a wait takes data that somebody else sends.
fn takes(note: &LookNote) -> bool {
    AtRest::of((note.abi, note.nr), note.state, None) == AtRest::Takes
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
        OpenWait { serial: note.who.tid.into(), note, file, connected: None, lock: None, owned: false, first, lasted }
    }

    fn what(watch: &mut WrongWatch, now: u64, waits: &[OpenWait<'_>]) -> Option<(u32, String)> {
        watch.look(now, waits, true).map(|fired| (fired.who.tid, fired.what))
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
        watch.look(9 * S, &[], true);
        assert_eq!(what(&mut watch, 9 * S, &old), None);
    }

    #[test]
    fn who_waits_for_work_is_not_stuck() {
        let mut watch = watch(&["stuck>1s"]);
        let mut fires = |call: &str, file: Option<&[u8]>| {
            let note = note(1, b'S', call);
            watch.look(0, &[], true);
            watch.look(9 * S, &[wait(&note, file, (0, 2 * S))], true).is_some()
        };
        assert!(!fires("read", Some(b"pipe:[7]")) && !fires("read", Some(b"/dev/pts/0")));
        assert!(!fires("read", Some(b"TCP:[1.1.1.2:80->1.1.1.1:50000]")), "a server");
        assert!(fires("read", Some(b"TCP:[1.1.1.1:50000->1.1.1.2:5432]")), "a client");
        assert!(!fires("read", None), "not read yet");
        // which side made the connection is known, and ports say nothing
        let mut of_side = |ports: &str, connected| {
            let (note, file) = (note(1, b'S', "read"), format!("TCP:[1.1.1.1:{ports}]"));
            watch.look(0, &[], true);
            let wait = OpenWait { connected, ..wait(&note, Some(file.as_bytes()), (0, 2 * S)) };
            watch.look(9 * S, &[wait], true).is_some()
        };
        assert!(of_side("40000->1.1.1.2:45000", Some(true)) && of_side("45000->1.1.1.2:40000", Some(true)));
        assert!(!of_side("45000->1.1.1.2:40000", Some(false)) && !of_side("40000->1.1.1.2:45000", Some(false)));
        let mut fires = |call: &str, file: Option<&[u8]>| {
            let note = note(1, b'S', call);
            watch.look(0, &[], true);
            watch.look(9 * S, &[wait(&note, file, (0, 2 * S))], true).is_some()
        };
        assert!(fires("flock", Some(b"/var/lock/x")) && fires("futex", None));
        assert!(fires("poll", Some(b"UDP:[10.0.0.1:4000->10.0.0.2:53]")));
        assert!(!fires("poll", Some(b"UDP:[10.0.0.1:4000->10.0.0.2:514]")) && !fires("poll", Some(b"")));
    }

    #[test]
    fn a_condition_is_no_lock() {
        let mut watch = watch(&["stuck>1s", "crowd>1"]);
        let mut fires = |operation: u64, owned: bool| {
            let mut notes = [note(1, b'S', "futex"), note(2, b'S', "futex")];
            for note in &mut notes {
                (note.who.pid, note.args[1]) = (1, operation);
            }
            let waits =
                notes.each_ref().map(|note| OpenWait { lock: Some(0x10), owned, ..wait(note, None, (0, 2 * S)) });
            watch.look(0, &[], true);
            watch.look(9 * S, &waits, true).is_some()
        };
        // FUTEX_WAIT, FUTEX_LOCK_PI, both private, and FUTEX_WAIT_BITSET
        assert!(fires(0x80, false) && fires(0x86, false) && !fires(0x89, false));
        assert!(fires(0x89, true), "a mutex of glibc with a time-out");
    }

    #[test]
    fn what_goes_on_is_told_when_somebody_can_follow() {
        let mut watch = watch(&["d>1s"]);
        let note = note(1, b'D', "fsync");
        let at = |lasted| [wait(&note, None, (0, lasted))];
        assert!(watch.look(S, &at(2 * S), false).is_none());
        assert!(watch.look(2 * S, &at(3 * S), true).is_some());
        assert!(watch.look(3 * S, &at(4 * S), true).is_none());
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
                fired += u32::from(watch.look(at, if is { &waits } else { &[] }, true).is_some());
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
        watch.look(0, &[], true);
        assert!(watch.look(0, &all(|_| 0x10), true).is_some());
    }
}
