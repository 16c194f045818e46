//! Stays: what looks in a row found unchanged.
//!
//! A thread that left no CPU between two looks was all that time where both found it. So a stay is one row, however many looks
//! fell into it. One that goes on is told now and then, so that no more than half of it is lost with the recorder; rows of one
//! stay have no look in common, and add up.

use rustc_hash::FxHashMap;
use systape_bpf::wire::LookNote;

/// Longest time that the first row of a stay is about; each further one may be about twice the time of the one before, up to the
/// last of these. Threads that wait for hours are many, and make few rows.
const FIRST: u64 = 10_000_000_000;
const LONGEST: u64 = 32 * FIRST;

/// A look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Number of the look.
    pub number: u64,
    /// When the walk was over, ns.
    pub ts: u64,
    /// Time that it stands for.
    pub interval: u64,
}

/// A stay, or the part of one since its last row.
#[derive(Debug)]
pub(crate) struct StayRow<D> {
    /// The thread, as the first look found it.
    pub note: LookNote,
    /// What it waits for; None: not read so far.
    pub detail: Option<D>,
    /// When the row was made.
    pub ts: u64,
    /// The first row of the stay.
    pub begins: bool,
    /// Number of the first look.
    pub look: u64,
    /// Looks of it.
    pub looks: u64,
    /// Time that each stands for.
    pub interval: u64,
    /// Time from the first of them to the last.
    pub seen: u64,
    /// Time from the last of them to `ts`.
    pub ago: u64,
    /// Time that it had been so at the first of them; [`super::UNKNOWN`].
    pub since: u64,
}

/// A stay that goes on.
#[derive(Debug)]
struct OpenStay<D> {
    note: LookNote,
    serial: u64,
    detail: Option<D>,
    begins: bool,
    look: u64,
    looks: u64,
    interval: u64,
    /// Times of the first look of this row and of the last.
    first: u64,
    last: u64,
    /// When the stay was first seen.
    began: u64,
    /// Longest time that this row is about.
    longest: u64,
}

/// A stay that goes on, for others.
#[derive(Debug)]
pub(crate) struct LastingStay<'a, D> {
    /// Number of the stay.
    pub serial: u64,
    /// The thread, as the first look found it.
    pub note: &'a LookNote,
    /// What it waits for; None: not read so far.
    pub detail: Option<&'a D>,
    /// How long it had been so at the first look; 0: not known.
    pub since: u64,
    /// How long it had been so at the last one, as far as is known.
    pub lasted: u64,
}

/// All stays that go on.
#[derive(Debug)]
pub(crate) struct Stays<D> {
    open: FxHashMap<(u32, u64), OpenStay<D>>,
    /// By serial number: whose it is.
    asked: FxHashMap<u64, (u32, u64)>,
    begun: Vec<(u64, LookNote)>,
    serial: u64,
}

impl<D> Default for Stays<D> {
    fn default() -> Self {
        Self { open: FxHashMap::default(), asked: FxHashMap::default(), begun: Vec::new(), serial: 0 }
    }
}

/// Whether two looks found the same stay.
fn is_same(one: &LookNote, other: &LookNote) -> bool {
    (one.switches, one.state, one.nr, one.abi) == (other.switches, other.state, other.nr, other.abi)
}

impl<D: Clone> Stays<D> {
    /// Takes what a look found; returns rows of stays that are over, and of long ones.
    pub(crate) fn look(&mut self, found: Found, notes: &[LookNote]) -> Vec<StayRow<D>> {
        let mut rows = Vec::new();
        for note in notes {
            let key = (note.who.tid, note.who.start);
            match self.open.get_mut(&key) {
                Some(stay) if is_same(&stay.note, note) => {
                    let is_long = found.ts.saturating_sub(stay.first) >= stay.longest;
                    if stay.interval != found.interval || is_long {
                        rows.extend(stay.part(found.ts));
                        stay.go_on(found, is_long);
                    } else {
                        stay.looks += 1;
                        stay.last = found.ts;
                    }
                    continue;
                }
                _ => {}
            }
            if let Some(mut over) = self.open.remove(&key) {
                self.asked.remove(&over.serial);
                rows.extend(over.part(found.ts));
            }
            self.serial += 1;
            self.asked.insert(self.serial, key);
            self.begun.push((self.serial, *note));
            self.open.insert(key, OpenStay::new(*note, self.serial, found));
        }
        let asked = &mut self.asked;
        self.open.retain(|_, stay| {
            let goes_on = stay.last == found.ts;
            if !goes_on {
                asked.remove(&stay.serial);
                rows.extend(stay.part(found.ts));
            }
            goes_on
        });
        rows
    }

    /// Lasting stays: those that the last look found.
    pub(crate) fn open(&self) -> impl Iterator<Item = LastingStay<'_, D>> {
        self.open.values().map(|stay| {
            let since = if stay.note.since == super::UNKNOWN { 0 } else { stay.note.since };
            let lasted = since.saturating_add(stay.last - stay.began);
            LastingStay { serial: stay.serial, note: &stay.note, detail: stay.detail.as_ref(), since, lasted }
        })
    }

    /// The end: rows of all that go on.
    pub(crate) fn end(&mut self, ts: u64) -> Vec<StayRow<D>> {
        self.asked.clear();
        std::mem::take(&mut self.open).into_values().filter_map(|mut stay| stay.part(ts)).collect()
    }

    /// The stays that began with the last look, by serial number.
    pub(crate) fn take_begun(&mut self) -> Vec<(u64, LookNote)> {
        std::mem::take(&mut self.begun)
    }

    /// What the stay of that serial number waits for; nothing if it is over.
    pub(crate) fn set_detail(&mut self, serial: u64, detail: D) {
        if let Some(stay) = self.asked.remove(&serial).and_then(|key| self.open.get_mut(&key)) {
            stay.detail = Some(detail);
        }
    }
}

impl<D: Clone> OpenStay<D> {
    fn new(note: LookNote, serial: u64, found: Found) -> Self {
        let Found { number, ts, interval } = found;
        Self {
            note,
            serial,
            detail: None,
            begins: true,
            look: number,
            looks: 1,
            interval,
            first: ts,
            last: ts,
            began: ts,
            longest: FIRST,
        }
    }

    /// The row of what was seen since the last row; None: nothing.
    fn part(&mut self, ts: u64) -> Option<StayRow<D>> {
        let since = match self.note.since {
            super::UNKNOWN => super::UNKNOWN,
            since => since.saturating_add(self.first - self.began),
        };
        (self.looks > 0).then(|| StayRow {
            note: self.note,
            detail: self.detail.clone(),
            ts,
            begins: self.begins,
            look: self.look,
            looks: self.looks,
            interval: self.interval,
            seen: self.last - self.first,
            ago: ts.saturating_sub(self.last),
            since,
        })
    }

    /// The next row begins with the look `found`; `longer`: it may be about more time than this one.
    fn go_on(&mut self, found: Found, longer: bool) {
        self.begins = false;
        if longer {
            self.longest = (2 * self.longest).min(LONGEST);
        }
        (self.look, self.looks, self.interval) = (found.number, 1, found.interval);
        (self.first, self.last) = (found.ts, found.ts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(tid: u32, switches: u64, nr: u32) -> LookNote {
        let mut note = LookNote { switches, nr, state: b'D', since: 7, ..LookNote::default() };
        (note.who.tid, note.who.start) = (tid, 1);
        note
    }

    fn found(number: u64) -> Found {
        Found { number, ts: 1000 + number * 50, interval: 50 }
    }

    /// Thread, first row, first look, looks, seen, ago, since.
    fn texts(rows: Vec<StayRow<u8>>) -> Vec<(u32, bool, u64, u64, u64, u64, u64)> {
        let text =
            |row: &StayRow<u8>| (row.note.who.tid, row.begins, row.look, row.looks, row.seen, row.ago, row.since);
        rows.iter().map(text).collect()
    }

    #[test]
    fn a_stay_is_one_row_however_many_looks_find_it() {
        let mut stays = Stays::<u8>::default();
        assert!(stays.look(found(0), &[note(1, 5, 0), note(2, 9, 0)]).is_empty());
        assert_eq!(stays.take_begun().len(), 2);
        assert!(stays.look(found(1), &[note(1, 5, 0), note(2, 9, 0)]).is_empty());
        assert!(stays.take_begun().is_empty(), "nothing new");
        // one left a CPU in between, the other is gone
        assert_eq!(
            texts(stays.look(found(2), &[note(1, 6, 0)])),
            [(1, true, 0, 2, 50, 50, 7), (2, true, 0, 2, 50, 50, 7)]
        );
        assert_eq!(texts(stays.end(1200)), [(1, true, 2, 1, 0, 100, 7)]);
        assert!(stays.end(1300).is_empty());
    }

    #[test]
    fn another_call_or_state_or_thread_of_the_number_is_another_stay() {
        let mut stays = Stays::<u8>::default();
        stays.look(found(0), &[note(1, 5, 0)]);
        assert_eq!(stays.look(found(1), &[note(1, 5, 1)]).len(), 1);
        let queued = LookNote { state: b'R', ..note(1, 5, 1) };
        assert_eq!(stays.look(found(2), &[queued]).len(), 1);
        let mut later = queued;
        later.who.start = 2;
        assert_eq!(stays.look(found(3), &[later]).len(), 1);
        assert_eq!(stays.take_begun().len(), 4);
    }

    #[test]
    fn a_long_stay_is_told_in_parts_that_add_up() {
        let mut stays = Stays::<u8>::default();
        let second = |number: u64| Found { number, ts: number * 1_000_000_000, interval: 1_000_000_000 };
        let mut rows = Vec::new();
        for number in 0..1400 {
            rows.extend(stays.look(second(number), &[note(1, 5, 0)]));
            if let Some((serial, _)) = stays.take_begun().pop() {
                stays.set_detail(serial, 3);
            }
        }
        rows.extend(stays.end(1_400_000_000_000));
        assert_eq!(rows.iter().map(|row| row.looks).sum::<u64>(), 1400);
        assert_eq!(rows.iter().filter(|row| row.begins).count(), 1);
        assert_eq!(rows.iter().map(|row| row.look).collect::<Vec<_>>(), [0, 10, 30, 70, 150, 310, 630, 950, 1270]);
        assert!(rows.iter().all(|row| row.detail == Some(3)), "each says what it waits for");
        assert_eq!(rows[1].since, 10_000_000_007);
        // and where the interval changes
        stays.look(second(1430), &[note(2, 5, 0)]);
        let slower = Found { interval: 2_000_000_000, ..second(1432) };
        assert_eq!(texts(stays.look(slower, &[note(2, 5, 0)])), [(2, true, 1430, 1, 0, 2_000_000_000, 7)]);
        assert_eq!(texts(stays.end(1_433_000_000_000)), [(2, false, 1432, 1, 0, 1_000_000_000, 2_000_000_007)]);
    }

    #[test]
    fn who_goes_on_is_told_with_its_time() {
        let mut stays = Stays::<u8>::default();
        stays.look(found(0), &[note(1, 5, 0)]);
        stays.look(found(1), &[note(1, 5, 0), note(2, 6, 0)]);
        let mut open: Vec<_> = stays.open().map(|open| (open.note.who.tid, open.since, open.lasted)).collect();
        open.sort_unstable();
        assert_eq!(open, [(1, 7, 57), (2, 7, 7)]);
    }

    #[test]
    fn what_comes_too_late_is_of_no_other_stay() {
        let mut stays = Stays::<u8>::default();
        stays.look(found(0), &[note(1, 5, 0)]);
        let (serial, _) = stays.take_begun()[0];
        stays.look(found(1), &[note(1, 6, 0)]);
        stays.set_detail(serial, 3);
        assert!(stays.end(1100).iter().all(|row| row.detail.is_none()));
    }
}
