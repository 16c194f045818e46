//! Losses of the programs: counters by cause and CPU, and the processes whose descriptors are unknown because of them.

use std::mem::size_of;
use std::ptr;

use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags};
use systape_bpf::wire::DropCount;
use systape_bpf::{Drop, SystapeSkel};

/// Counters of one cause on one CPU, since they were last read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropDelta {
    /// Cause of the loss.
    pub cause: Drop,
    /// The CPU.
    pub cpu: u32,
    /// Count, first and last time.
    pub count: DropCount,
}

impl DropDelta {
    /// Whether events are missing, rather than left out on purpose or stored without some bytes.
    pub(crate) fn is_loss(&self) -> bool {
        !matches!(self.cause, Drop::NoScratch | Drop::StringFault | Drop::Own)
    }

    /// Whether each of them is a call in the ledger.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self.cause, Drop::Bulk | Drop::State | Drop::Share)
    }
}

/// A process that lost records of changes of its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostState {
    /// 0 = any process.
    pub pid: u32,
    /// When the first of them was lost.
    pub first: u64,
    /// There may have been more until this time.
    pub last: u64,
}

/// Position in the counters.
#[derive(Debug, Default)]
pub(super) struct Drops {
    /// Which half the programs write.
    epoch: u32,
    /// Value of `new_drops` at the last check.
    seen: u64,
    /// Reads of the counters still due.
    looks_due: u32,
}

impl Drops {
    /// Whether there may be counts that [`Self::take`] and [`take_lost_state`] have not returned. Those are system
    /// calls; this is a read of memory. It returns true twice after a new count, which may be in the half that the
    /// first read leaves out.
    pub(crate) fn has_new(&mut self, skel: &SystapeSkel<'_>) -> bool {
        let bss = skel.maps.bss_data.as_deref();
        // SAFETY: as in Programs::open_window; written by the kernel side.
        let now = bss.map_or(0, |bss| unsafe { ptr::read_volatile(&raw const bss.new_drops) });
        if now != std::mem::replace(&mut self.seen, now) {
            self.looks_due = 2;
        }
        let due = self.looks_due > 0;
        self.looks_due = self.looks_due.saturating_sub(1);
        due
    }

    /// The losses since the last call. A half that the programs just left is read one call later, when no program can
    /// still write it.
    pub(crate) fn take(&mut self, skel: &mut SystapeSkel<'_>) -> Result<Vec<DropDelta>> {
        let old = self.epoch ^ 1;
        let mut deltas = Vec::new();
        let zero = vec![vec![0u8; size_of::<DropCount>()]; libbpf_rs::num_possible_cpus()?];
        for cause in Drop::ALL {
            let key = (old * Drop::ALL.len() as u32 + cause as u32).to_ne_bytes();
            let Some(values) = skel.maps.drops.lookup_percpu(&key, MapFlags::ANY)? else { continue };
            let counts: Vec<DropCount> = values.iter().filter_map(|v| drop_count(v)).collect();
            if counts.iter().all(|c| c.count == 0) {
                continue;
            }
            skel.maps.drops.update_percpu(&key, &zero, MapFlags::ANY)?;
            let lost = counts.into_iter().enumerate().filter(|(_, c)| c.count > 0);
            deltas.extend(lost.map(|(cpu, count)| DropDelta { cause, cpu: cpu as u32, count }));
        }
        self.epoch = old;
        if let Some(bss) = skel.maps.bss_data.as_deref_mut() {
            // SAFETY: as in Programs::open_window.
            unsafe { ptr::write_volatile(&raw mut bss.drop_epoch, old) };
        }
        Ok(deltas)
    }
}

/// Processes that lost a state record since the last call.
pub(super) fn take_lost_state(skel: &mut SystapeSkel<'_>) -> Vec<LostState> {
    let map = &skel.maps.lost_state_pids;
    let mut lost: Vec<(u32, u64)> = Vec::new();
    for key in map.keys().collect::<Vec<_>>() {
        let first = map.lookup(&key, MapFlags::ANY).ok().flatten().and_then(|v| v.first_chunk::<8>().copied());
        // an entry has the time of the first loss only; a loss after this makes a new one
        map.delete(&key).ok();
        if let (Some(pid), Some(first)) = (key.first_chunk::<4>(), first) {
            lost.push((u32::from_ne_bytes(*pid), u64::from_ne_bytes(first)));
        }
    }
    if let Some(bss) = skel.maps.bss_data.as_deref_mut() {
        // SAFETY: as in Programs::open_window.
        let first = unsafe { ptr::read_volatile(&raw const bss.lost_state_unknown) };
        if first != 0 {
            // SAFETY: as in Programs::open_window.
            unsafe { ptr::write_volatile(&raw mut bss.lost_state_unknown, 0) };
            lost.push((0, first));
        }
    }
    // all of them lie before this, and so do those that found their process's entry there
    let last = crate::own::clock::monotonic();
    lost.into_iter().map(|(pid, first)| LostState { pid, first, last }).collect()
}

fn drop_count(value: &[u8]) -> Option<DropCount> {
    let field = |i: usize| value.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    Some(DropCount { count: field(0)?, first: field(1)?, last: field(2)? })
}
