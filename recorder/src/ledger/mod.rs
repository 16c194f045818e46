//! Calls that the BPF side counted instead of sending them.
//!
//! The counts are in two tables; the programs write one. From time to time they are switched to the other. When no
//! program can still write the first one, it is read and emptied. A table that is being written is never emptied,
//! because deleting from it loses calls (measured: 47 to 80 of 2 million).

mod tables;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_channel::Sender;
use systape_bpf::wire::LedgerKey;
use systape_format::model::{CallState, ERRNO_ANY, LedgerReason, size_bucket};

use crate::own::clock;
pub(crate) use tables::LedgerTables;

/// Time between two checks of the table's fill, and while nothing is counted.
const LOOK: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_millis(50);
/// The same of a recording that has no program of calls.
const RARE: Duration = Duration::from_millis(250);
/// A program counts a call within this time of its end, ns.
const SLACK_NS: u64 = 20_000_000;
/// A table is read after this long, or when more than this part of it is in use.
const WINDOW: Duration = Duration::from_secs(1);
const PART_IN_USE: u64 = 4;

/// Process, call, and outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// pid and start of the process; None = not known, the table was full.
    pub process: Option<(u32, u64)>,
    /// Distinguishes the process before and after an exec.
    pub execs: u32,
    /// User of the process at that time.
    pub uid: u32,
    /// CPU of the calls' exits.
    pub cpu: u32,
    /// ABI and number.
    pub call: (u8, u32),
    /// 0 = ok, see `LedgerRow::errno`.
    pub errno: u16,
    /// The reason.
    pub reason: LedgerReason,
    /// How they began and ended.
    pub state: CallState,
}

impl Key {
    fn read(key: &LedgerKey) -> Option<Self> {
        Some(Self {
            process: Some((key.pid, key.leader_start)),
            execs: key.execs,
            uid: key.uid,
            cpu: key.cpu,
            call: (key.abi, key.nr),
            errno: key.err,
            reason: LedgerReason::from_raw(key.reason)?,
            state: CallState::from_raw(key.state)?,
        })
    }
}

/// The sums of the calls of one [`Key`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// How many.
    pub count: u64,
    /// ns of all.
    pub sum: u64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// End of the earliest.
    pub first: u64,
    /// End of the latest.
    pub last: u64,
    /// Sizes of what calls moved, as in `LedgerRow::sizes`.
    pub sizes: Vec<(u8, u64)>,
}

/// The counts up to a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedgerWindow {
    /// Time after which no counted call ended.
    pub until: u64,
    /// The counts.
    pub rows: Vec<(Key, Sum)>,
}

/// Most keys in [`RecorderCounts`]; later calls are counted without a process.
const KEYS: usize = 1 << 16;

/// Calls that this side counts, because only it can decide that.
#[derive(Debug, Default)]
pub(crate) struct RecorderCounts(HashMap<Key, Sum>);

impl RecorderCounts {
    /// Counts a call that ended at `end`.
    pub(crate) fn add(&mut self, mut key: Key, dur: u64, end: u64) {
        if self.0.len() >= KEYS && !self.0.contains_key(&key) {
            let errno = if key.errno == 0 { 0 } else { ERRNO_ANY };
            key = Key { process: None, execs: 0, uid: u32::MAX, errno, ..key };
        }
        let sum = self.0.entry(key).or_insert_with(|| Sum { min: u64::MAX, first: u64::MAX, ..Sum::default() });
        sum.count += 1;
        sum.sum = sum.sum.saturating_add(dur);
        (sum.min, sum.max) = (sum.min.min(dur), sum.max.max(dur));
        (sum.first, sum.last) = (sum.first.min(end), sum.last.max(end));
        let bucket = size_bucket(dur);
        match sum.sizes.binary_search_by_key(&bucket, |(b, _)| *b) {
            Ok(at) => sum.sizes[at].1 += 1,
            Err(at) => sum.sizes.insert(at, (bucket, 1)),
        }
    }

    /// The counts of one process.
    pub(crate) fn take_of(&mut self, process: (u32, u64)) -> Vec<(Key, Sum)> {
        self.0.extract_if(|key, _| key.process == Some(process)).collect()
    }

    /// All of it.
    pub(crate) fn take(&mut self) -> Vec<(Key, Sum)> {
        self.0.drain().collect()
    }
}

/// What others tell the thread that reads the tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Nothing is counted any more.
    pub stop: Arc<AtomicBool>,
    /// A window is wanted now, also one without counts: a tape ends where it does.
    pub now: Arc<AtomicBool>,
    /// No program counts calls.
    pub rare: bool,
}

/// Reads windows until it is told to stop, then the last two. `always`: without pauses, for tests.
///
/// # Errors
/// When the tables cannot be read. A closed channel ends it without an error.
pub(crate) fn run(mut tables: LedgerTables, always: bool, told: &Told, out: &Sender<LedgerWindow>) -> Result<()> {
    let mut since = Instant::now();
    while !told.stop.load(Ordering::Acquire) {
        if told.now.swap(false, Ordering::AcqRel) {
            since = Instant::now();
            if !pass(&mut tables, true, out)? {
                return Ok(());
            }
        }
        let used = tables.in_use()?;
        let due = since.elapsed() >= WINDOW;
        if due && tables.is_empty()? {
            // nothing was counted until now but what a program just may be about to count
            since = Instant::now();
            let until = clock::monotonic().saturating_sub(SLACK_NS);
            // who is busy is told the next time
            out.try_send(LedgerWindow { until, rows: Vec::new() }).ok();
        } else if due || used > tables.room() / PART_IN_USE || always && !tables.is_empty()? {
            since = Instant::now();
            if !pass(&mut tables, false, out)? {
                return Ok(());
            }
        }
        if !always {
            let idle = if told.rare { RARE } else { IDLE };
            thread::sleep(if used == 0 { idle } else { LOOK });
        }
    }
    for _ in 0..2 {
        if !pass(&mut tables, false, out)? {
            break;
        }
    }
    Ok(())
}

/// Reads a window and sends it, one without counts only if it is `wanted`. False when the encoder is gone.
fn pass(tables: &mut LedgerTables, wanted: bool, out: &Sender<LedgerWindow>) -> Result<bool> {
    let rows = tables.take()?;
    let until = clock::monotonic();
    Ok((rows.is_empty() && !wanted) || out.send(LedgerWindow { until, rows }).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up() {
        let key = Key {
            process: None,
            execs: 0,
            uid: 0,
            cpu: 0,
            call: (1, 0),
            errno: 0,
            reason: LedgerReason::Filtered,
            state: CallState::Complete,
        };
        let mut counts = RecorderCounts::default();
        for (dur, end) in [(5, 100), (900, 40), (6, 70)] {
            counts.add(key, dur, end);
        }
        counts.add(Key { cpu: 1, ..key }, 0, 9);
        let mut rows = counts.take();
        rows.sort_by_key(|(key, _)| key.cpu);
        let expected = Sum { count: 3, sum: 911, min: 5, max: 900, first: 40, last: 100, sizes: vec![(2, 2), (9, 1)] };
        assert_eq!(rows[0].1, expected);
        assert_eq!(rows[1].1, Sum { count: 1, first: 9, last: 9, sizes: vec![(0, 1)], ..Sum::default() });
        assert_eq!(counts.take(), []);

        // of as many processes as anybody likes
        let of = |pid| Key { process: Some((pid, 1)), errno: 2, uid: 7, ..key };
        (0..2 * KEYS as u32).for_each(|pid| counts.add(of(pid), 1, 1));
        assert_eq!(counts.take_of((3, 1)).len(), 1);
        assert_eq!(counts.take_of((3, 1)), []);
        let rows = counts.take();
        let nobody = rows.iter().find(|(key, _)| key.process.is_none()).unwrap();
        assert_eq!((rows.len(), nobody.0.errno, nobody.1.count), (KEYS, ERRNO_ANY, KEYS as u64));
    }
}
