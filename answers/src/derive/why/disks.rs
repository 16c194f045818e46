//! Slow and failed I/Os by disk.

use std::collections::BTreeMap;

use super::cpu::wider;
use crate::derive::block::io::Io;
use systape_events::values::devices::Dev;

/// An I/O is slow from this on, ns: a disk that turns needs 10 to 15 ms.
const SLOW: u64 = 20_000_000;

/// I/Os of one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Name of the disk.
    pub name: String,
    /// How many.
    pub ios: u64,
    /// Number of I/Os that failed.
    pub errors: u64,
    /// The last error.
    pub errno: u16,
    /// Span of the errors.
    pub errors_span: Option<(u64, u64)>,
    /// Slow ones, the time of these, the longest, ns, and when.
    pub slow: u64,
    /// Time of the I/Os that `slow` counts, ns.
    pub slow_ns: u64,
    /// Longest of the slow ones, ns.
    pub max: u64,
    /// Span of the slow ones.
    pub slow_span: Option<(u64, u64)>,
    /// The owners of slow and failed ones: name, pid and number.
    pub owners: BTreeMap<(Vec<u8>, u32), u64>,
}

/// Most owners that are told apart.
const OWNERS: usize = 256;

impl Disk {
    /// Adds `io`.
    pub fn add(&mut self, io: &Io<'_>) {
        self.ios += 1;
        let latency = io.latency().unwrap_or(0);
        let to = io.io.complete;
        let (failed, slow) = (io.io.errno != 0, latency >= SLOW);
        if failed {
            self.errors += 1;
            self.errno = io.io.errno;
            self.errors_span = wider(self.errors_span, to.saturating_sub(latency), to);
        }
        if slow {
            (self.slow, self.slow_ns) = (self.slow + 1, self.slow_ns.saturating_add(latency));
            self.max = self.max.max(latency);
            self.slow_span = wider(self.slow_span, to.saturating_sub(latency), to);
        }
        if let Some(owner) = io.owner.filter(|_| failed || slow) {
            let key = (owner.comm.clone(), owner.pid);
            if self.owners.len() < OWNERS || self.owners.contains_key(&key) {
                *self.owners.entry(key).or_default() += 1;
            }
        }
    }

    /// Who has most of the slow and failed ones.
    pub fn owner(&self) -> Option<&(Vec<u8>, u32)> {
        self.owners.iter().max_by_key(|(owner, ios)| (**ios, std::cmp::Reverse(*owner))).map(|(owner, _)| owner)
    }
}

/// Disks by their number.
pub type Disks = BTreeMap<Dev, Disk>;
