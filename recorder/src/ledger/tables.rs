//! The tables in the kernel.

use std::os::fd::{AsFd, AsRawFd};

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use systape_bpf::wire::{BusySum, CoarseSum, LedgerCounts, LedgerKey, LedgerSum};
use systape_bpf::{BUSY_SUMS, COARSE_OUTCOMES, COARSE_PER_LANE, SC_MAX, ledger_word};
use systape_format::model::{CPU_NONE, CallState, ERRNO_ANY, LedgerReason};

use super::{Key, Sum};
use crate::kernel::native;

/// Elements per read.
const BATCH: u32 = 1024;

/// Both tables, the variable that selects one, and the maps for waiting.
#[derive(Debug)]
pub(crate) struct LedgerTables {
    sums: [MapHandle; 2],
    /// Each CPU's most frequent keys, before the tables; both epochs.
    busy: MapHandle,
    coarse: [MapHandle; 2],
    words: MapHandle,
    /// An array of maps and its first map.
    rings: MapHandle,
    ring: MapHandle,
    /// Each CPU has a lane of coarse sums of its own.
    lane_per_cpu: bool,
    epoch: u32,
}

impl LedgerTables {
    /// `rings` is an array of maps whose first element is `ring`: storing it anew makes the kernel wait until no program
    /// runs that was running then (maybe_wait_bpf_programs, kernel/bpf/syscall.c).
    pub(crate) fn new(
        sums: [MapHandle; 2],
        busy: MapHandle,
        coarse: [MapHandle; 2],
        words: MapHandle,
        rings: MapHandle,
        ring: MapHandle,
        lane_per_cpu: bool,
    ) -> Self {
        Self { sums, busy, coarse, words, rings, ring, lane_per_cpu, epoch: 0 }
    }

    /// Keys that a table has room for.
    pub(crate) fn room(&self) -> u64 {
        self.sums[0].max_entries().into()
    }

    /// Used keys of the current table; calls without room for a key count as keys too.
    pub(crate) fn in_use(&self) -> Result<u64> {
        Ok(self.word(ledger_word::USED + self.epoch)? + self.word(ledger_word::COARSE + self.epoch)?)
    }

    /// Whether nothing was counted since the last [`Self::take`].
    pub(crate) fn is_empty(&self) -> Result<bool> {
        Ok(self.in_use()? == 0 && self.word(ledger_word::BUSY + self.epoch)? == 0)
    }

    /// Switches the programs to the other table, and reads and empties the first one.
    pub(crate) fn take(&mut self) -> Result<Vec<(Key, Sum)>> {
        let (old, new) = (self.epoch, self.epoch ^ 1);
        self.set_word(ledger_word::EPOCH, new.into())?;
        self.epoch = new;
        self.wait_for_programs()?;
        let mut rows = self.sums(old as usize)?;
        if self.word(ledger_word::BUSY + old)? > 0 {
            self.busy(old, &mut rows)?;
            self.set_word(ledger_word::BUSY + old, 0)?;
        }
        if self.word(ledger_word::COARSE + old)? > 0 {
            self.coarse(old as usize, &mut rows)?;
            self.set_word(ledger_word::COARSE + old, 0)?;
        }
        self.set_word(ledger_word::USED + old, 0)?;
        Ok(rows)
    }

    fn wait_for_programs(&self) -> Result<()> {
        let fd = self.ring.as_fd().as_raw_fd();
        self.rings.update(&0u32.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY).context("the ledger: waiting")
    }

    fn sums(&self, table: usize) -> Result<Vec<(Key, Sum)>> {
        let used = self.word(ledger_word::USED + table as u32)? as usize;
        let map = &self.sums[table];
        let mut rows = Vec::with_capacity(used);
        let mut read = 0;
        // a batch may end early where many keys share a bucket: until nothing is left
        while read < used {
            let mut some = false;
            for (key, sum) in map.lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY)? {
                (some, read) = (true, read + 1);
                rows.extend(
                    plain(&key)
                        .as_ref()
                        .and_then(Key::read)
                        .zip(plain::<LedgerSum>(&sum).and_then(|sum| of_counts(&sum.n, &sum.sizes))),
                );
            }
            if !some {
                bail!("the ledger: {read} of {used} entries could be read");
            }
        }
        Ok(rows)
    }

    fn busy(&self, epoch: u32, rows: &mut Vec<(Key, Sum)>) -> Result<()> {
        for index in epoch * BUSY_SUMS..(epoch + 1) * BUSY_SUMS {
            let key = index.to_ne_bytes();
            let Some(values) = self.busy.lookup_percpu(&key, MapFlags::ANY)? else { continue };
            let before = rows.len();
            rows.extend(values.iter().filter_map(|value| {
                let sum: BusySum = plain(value)?;
                Key::read(&sum.key).zip(of_counts(&sum.n, &sum.sizes))
            }));
            if rows.len() > before {
                let zeros: Vec<_> = values.iter().map(|value| vec![0; value.len()]).collect();
                self.busy.update_percpu(&key, &zeros, MapFlags::ANY)?;
            }
        }
        Ok(())
    }

    fn coarse(&self, table: usize, rows: &mut Vec<(Key, Sum)>) -> Result<()> {
        let map = &self.coarse[table];
        let zero = [0; size_of::<CoarseSum>()];
        for index in 0..map.max_entries() {
            let Some(value) = map.lookup(&index.to_ne_bytes(), MapFlags::ANY)? else { continue };
            let Some(sum) = plain::<CoarseSum>(&value).filter(|sum| sum.n.count > 0) else { continue };
            map.update(&index.to_ne_bytes(), &zero, MapFlags::ANY)?;
            let key = coarse_key(index);
            let cpu = if self.lane_per_cpu { key.cpu } else { CPU_NONE };
            rows.push((Key { cpu, ..key }, with_sizes(&sum.n, Vec::new())));
        }
        Ok(())
    }

    fn word(&self, index: u32) -> Result<u64> {
        let value = self.words.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
        let bytes = value.and_then(|value| value.first_chunk::<8>().copied()).context("the ledger: its state")?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn set_word(&self, index: u32, value: u64) -> Result<()> {
        self.words.update(&index.to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY).context("the ledger: its state")
    }
}

/// A value of the kernel's as the programs laid it out.
fn plain<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: T is one of the skeleton's repr(C) structs of integers, so any bytes are a value of it; there are at least
    // size_of::<T>() of them, and read_unaligned asks for no alignment.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Structs of integers.
trait Plain: Copy {}
impl Plain for LedgerKey {}
impl Plain for LedgerSum {}
impl Plain for CoarseSum {}
impl Plain for BusySum {}

fn of_counts(n: &LedgerCounts, sizes: &[u32]) -> Option<Sum> {
    let sizes = sizes.iter().enumerate().filter(|(_, n)| **n > 0).map(|(b, n)| (b as u8, u64::from(*n)));
    // an entry is made before its first call is added
    (n.count > 0).then(|| with_sizes(n, sizes.collect()))
}

fn with_sizes(n: &LedgerCounts, sizes: Vec<(u8, u64)>) -> Sum {
    Sum { count: n.count, sum: n.sum, min: n.min, max: n.max, first: n.first, last: n.last, sizes }
}

/// The meaning of the index of a coarse sum (wire.h, struct coarse_sum).
fn coarse_key(index: u32) -> Key {
    const ERROR: u32 = 1;
    const INCOMPLETE: u32 = 2;
    let (lane, rest) = (index / COARSE_PER_LANE, index % COARSE_PER_LANE);
    let (nr, rest) = (rest % SC_MAX, rest / SC_MAX);
    let (outcome, rest) = (rest % COARSE_OUTCOMES, rest / COARSE_OUTCOMES);
    let (i386, filtered) = (rest % 2 == 1, rest / 2 == 1);
    Key {
        process: None,
        execs: 0,
        uid: u32::MAX,
        cpu: lane,
        call: (if i386 { native::ABI_32 } else { native::ABI } as u8, nr),
        errno: if outcome == ERROR { ERRNO_ANY } else { 0 },
        reason: if filtered { LedgerReason::Filtered } else { LedgerReason::Lost },
        state: if outcome == INCOMPLETE { CallState::NoReturn } else { CallState::Complete },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_bpf::LEDGER_SIZES;

    #[test]
    fn an_index_tells_lane_call_and_outcome() {
        let lost = coarse_key(COARSE_PER_LANE + 7);
        assert_eq!((lost.cpu, lost.call, lost.errno, lost.reason), (1, (1, 7), 0, LedgerReason::Lost));
        let failed = coarse_key(((COARSE_OUTCOMES + 1) * SC_MAX) + 3);
        assert_eq!((failed.cpu, failed.call, failed.errno), (0, (2, 3), ERRNO_ANY));
        let filtered = coarse_key((2 * COARSE_OUTCOMES + 2) * SC_MAX);
        assert_eq!((filtered.reason, filtered.state), (LedgerReason::Filtered, CallState::NoReturn));
    }

    #[test]
    fn sizes_that_occur_are_listed() {
        let mut n = LedgerCounts { count: 2, max: 1000, ..LedgerCounts::default() };
        let mut sizes = [0; LEDGER_SIZES];
        (sizes[9], sizes[63]) = (1, 1);
        assert_eq!(of_counts(&n, &sizes).unwrap().sizes, [(9, 1), (63, 1)]);
        n.count = 0;
        assert_eq!(of_counts(&n, &sizes), None);
    }
}
