//! Data that waits in memory: records for the encoder, and encoded pieces for the writer. A disk may stall for minutes.
//! Memory has a bound, so the longer a stall lasts, the more is counted instead of stored, the least valuable first.
//!
//! Records beyond the bound stay in the rings. When the rings are full, the programs count by the same priorities,
//! which costs less than counting here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Records may use this part of the bound, of a small one twice that: while they have no room the rings fill.
const RECORDS_PART: u64 = 8;
const RECORDS_LEAST: u64 = 8 << 20;
/// How often the drain checks for room.
const LOOK: Duration = Duration::from_millis(1);

/// Level of counting instead of storing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shed {
    /// No events.
    #[default]
    Nothing,
    /// Calls that succeeded and did not take long.
    FastCalls,
    /// Also switches, wake-ups, samples, io_uring operations and rows of tables.
    Switches,
    /// Everything: there is no room.
    All,
}

impl Shed {
    /// The level for `used` bytes of `room`.
    fn at(used: u64, room: u64) -> Self {
        match used.saturating_mul(4) / room.max(1) {
            0 | 1 => Self::Nothing,
            2 => Self::FastCalls,
            3 => Self::Switches,
            _ => Self::All,
        }
    }
}

/// Bytes of both.
#[derive(Debug)]
pub(crate) struct Backlog {
    room: u64,
    records: AtomicU64,
    pieces: AtomicU64,
    /// The encoder is gone.
    closed: AtomicBool,
}

impl Backlog {
    /// Empty, with room for `room` bytes.
    pub(crate) fn new(room: u64) -> Self {
        Self { room, records: AtomicU64::new(0), pieces: AtomicU64::new(0), closed: AtomicBool::new(false) }
    }

    /// A part of the bound, for what waits beside: at least and at most so many bytes.
    pub(crate) fn part(&self, part: u64, [least, most]: [usize; 2]) -> usize {
        usize::try_from(self.room / part).map_or(most, |bytes| bytes.clamp(least, most))
    }

    fn records_room(&self) -> u64 {
        (self.room / RECORDS_PART).max(RECORDS_LEAST.min(self.room / RECORDS_PART * 2))
    }

    /// Adds records. Waits for room as long as the encoder takes some; meanwhile the rings fill, and the programs
    /// count.
    pub(crate) fn add_records(&self, bytes: usize) {
        while self.records.load(Ordering::Relaxed) >= self.records_room() && !self.closed.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        self.records.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The encoder took records.
    pub(crate) fn take_records(&self, bytes: usize) {
        self.records.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Adds a piece without waiting: with [`Shed::All`] almost none come.
    pub(crate) fn add_piece(&self, bytes: u64) {
        self.pieces.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A piece was written.
    pub(crate) fn take_piece(&self, bytes: u64) {
        self.pieces.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of waiting pieces.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    /// Whether so many records wait that the encoder must take nothing else.
    pub(crate) fn is_pressed(&self) -> bool {
        self.records.load(Ordering::Relaxed) >= self.records_room() / 4 * 3
    }

    /// The encoder is gone.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The current level.
    pub(crate) fn shed(&self) -> Shed {
        Shed::at(self.pieces(), self.room - self.records_room())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_more_waits_the_more_is_shed() {
        // a quarter is for records
        let backlog = Backlog::new(800);
        let pieces = |bytes| {
            backlog.add_piece(bytes);
            let shed = backlog.shed();
            backlog.take_piece(bytes);
            shed
        };
        assert_eq!(
            [0, 299, 300, 450, 600, 9_000].map(pieces),
            [Shed::Nothing, Shed::Nothing, Shed::FastCalls, Shed::Switches, Shed::All, Shed::All]
        );
        backlog.add_records(160);
        assert_eq!((backlog.shed(), backlog.is_pressed()), (Shed::Nothing, true), "the rings have room");
        assert_eq!(Backlog::new(0).shed(), Shed::Nothing);
        assert_eq!([16, 32, 64, 256].map(|mib| Backlog::new(mib << 20).records_room() >> 20), [4, 8, 8, 32]);
        assert_eq!([[10, 70], [10, 700], [500, 700]].map(|bounds| backlog.part(2, bounds)), [70, 400, 500]);
    }

    #[test]
    fn records_wait_for_room_and_for_nobody_who_is_gone() {
        let backlog = Arc::new(Backlog::new(800));
        backlog.add_records(200);
        let other = Arc::clone(&backlog);
        let waits = thread::spawn(move || other.add_records(7));
        thread::sleep(Duration::from_millis(20));
        assert!(!waits.is_finished());
        backlog.take_records(200);
        waits.join().unwrap();
        backlog.add_records(200);
        backlog.close();
        backlog.add_records(1);
        assert_eq!(backlog.records.load(Ordering::Relaxed), 208);
    }
}
