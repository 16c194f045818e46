//! Sums of I/Os by keys and disk. Memory grows with the number of both, not with I/Os.
//!
//! The disks below a stacked device (dm, md, loop) do its I/Os once more. Only the end shows which disks had I/Os, so
//! sums are kept by disk and merged then.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Session, Task};

use super::by::{Part, part};
use super::flags::Op;
use super::io::Io;
use crate::render::loghist::LogHist;
use systape_events::group::by::GroupKey;
use systape_events::group::of_cgroup::OfCgroup;
use systape_events::values::devices::{Dev, Devices};
use systape_events::values::order::InOrder as _;

/// What a histogram has buckets of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistogramOf {
    /// How long the device took, µs.
    #[default]
    Latency,
    /// Time on the device and in the queue, µs.
    Whole,
    /// Size, KiB, rounded down.
    Size,
}

impl HistogramOf {
    /// Of `io`; None: not known, and of what has no data no size.
    fn of(self, io: &Io<'_>) -> Option<u64> {
        match self {
            Self::Latency => io.latency().map(|ns| ns / 1000),
            Self::Whole => io.whole().map(|ns| ns / 1000),
            Self::Size => Some(u64::from(io.io.bytes)).filter(|bytes| *bytes > 0).map(|bytes| bytes / 1024),
        }
    }

    /// Unit in text, as bcc's tools have it.
    pub fn unit(self) -> &'static str {
        if self == Self::Size { "Kbytes" } else { "usecs" }
    }
}

/// Sum of the I/Os of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub ios: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Number of requeues.
    pub requeues: u64,
    /// I/Os with a known latency, to which the rest applies.
    pub timed: u64,
    /// Sum of latencies, ns.
    pub total: u128,
    /// Greatest, ns.
    pub max: u64,
    /// Values of the measure.
    pub hist: LogHist,
    /// Owner of the I/Os, with its newest name.
    pub owner: Option<Task>,
}

impl Sum {
    fn add(&mut self, io: &Io<'_>, measure: HistogramOf) {
        self.ios += 1;
        match Op::of_io(io.io) {
            Op::Read => self.read += u64::from(io.io.bytes),
            Op::Write => self.written += u64::from(io.io.bytes),
            _ => {}
        }
        self.errors += u64::from(io.io.errno != 0);
        self.requeues += u64::from(io.io.requeues);
        if let Some(ns) = io.latency() {
            self.timed += 1;
            self.total += u128::from(ns);
            self.max = self.max.max(ns);
        }
        measure.of(io).into_iter().for_each(|value| self.hist.add(value));
        if let Some(owner) = io.owner
            && self.owner.as_ref().is_none_or(|known| known.comm != owner.comm)
        {
            self.owner = Some(owner.clone());
        }
    }

    fn merge(&mut self, other: &Self) {
        self.ios += other.ios;
        self.read += other.read;
        self.written += other.written;
        self.errors += other.errors;
        self.requeues += other.requeues;
        self.timed += other.timed;
        self.total += other.total;
        self.max = self.max.max(other.max);
        self.hist.merge(&other.hist);
        if self.owner.is_none() {
            self.owner.clone_from(&other.owner);
        }
    }

    /// Name of the owner; empty without one.
    pub fn comm(&self) -> &[u8] {
        self.owner.as_ref().map_or(&[], |task| &task.comm)
    }

    /// Average latency, ns; None without a known one.
    pub fn avg(&self) -> Option<u64> {
        (self.timed > 0).then(|| u64::try_from(self.total / u128::from(self.timed)).unwrap_or(u64::MAX))
    }

    /// Sum of the latencies, ns.
    pub fn total_ns(&self) -> u64 {
        u64::try_from(self.total).unwrap_or(u64::MAX)
    }
}

/// Sums so far.
#[derive(Clone, Debug)]
pub struct Sums {
    keys: Vec<GroupKey>,
    measure: HistogramOf,
    of_cgroup: OfCgroup,
    sums: FxHashMap<(Dev, Vec<Part>), Sum>,
}

/// All sums, and the devices they leave out.
#[derive(Clone, Debug, Default)]
pub struct BlockSums {
    /// Values of the keys, their sum, and whether `all` includes it, None: perhaps twice; most time first.
    pub rows: Vec<(Vec<Part>, Sum, Option<bool>)>,
    /// Everything, each I/O once: on the lowest layer.
    pub all: Sum,
    /// Stacked devices that `all` leaves out: device, its I/Os, disks below it.
    pub stacked: Vec<(Dev, u64, Vec<Dev>)>,
    /// Devices that came while it was recorded: their I/Os are in `all`, and perhaps those that they became as well.
    pub late: Vec<Dev>,
    /// Names for the values of keys.
    pub of_cgroup: OfCgroup,
}

impl Sums {
    /// Empty sums by `keys`, with histograms of `measure`; `session` tells what cgroups are called.
    pub fn new(keys: Vec<GroupKey>, measure: HistogramOf, session: &Session) -> Self {
        Self { of_cgroup: OfCgroup::of(session, &keys), keys, measure, sums: FxHashMap::default() }
    }

    /// Counts `io` once.
    pub fn add(&mut self, io: &Io<'_>) {
        let parts = self.keys.iter().map(|key| part(*key, io, &self.of_cgroup)).collect();
        self.sums.entry((io.io.dev, parts)).or_default().add(io, self.measure);
    }

    /// Merges disks. If `disk` is a key, a stacked device keeps its row and is left out of the total; else its I/Os are
    /// in no row.
    pub fn fold(self, devices: &Devices) -> BlockSums {
        let present: FxHashSet<Dev> = self.sums.keys().map(|(dev, _)| *dev).collect();
        let below: FxHashMap<Dev, Vec<Dev>> = present.iter().map(|dev| (*dev, devices.below(*dev, &present))).collect();
        let by_disk = self.keys.contains(&GroupKey::Disk);
        // above what is not there nothing can be
        let mut late: Vec<Dev> =
            present.iter().copied().filter(|dev| present.len() > 1 && devices.is_late(*dev)).collect();
        late.sort_unstable();
        let mut rows: FxHashMap<Vec<Part>, (Sum, Option<bool>)> = FxHashMap::default();
        let mut folded = BlockSums { of_cgroup: self.of_cgroup, ..BlockSums::default() };
        let mut stacked: FxHashMap<Dev, u64> = FxHashMap::default();
        // in one order, so that the name that stays is always the same
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for ((dev, parts), sum) in sums {
            let counted = below[&dev].is_empty();
            if counted {
                folded.all.merge(&sum);
            } else {
                *stacked.entry(dev).or_default() += sum.ios;
            }
            if counted || by_disk {
                let known = (!late.contains(&dev)).then_some(counted);
                let row = rows.entry(parts).or_insert_with(|| (Sum::default(), known));
                row.0.merge(&sum);
                row.1 = row.1.and(known);
            }
        }
        folded.all.owner = None;
        folded.late = late;
        folded.rows = rows.into_iter().map(|(parts, (sum, counted))| (parts, sum, counted)).collect();
        folded
            .rows
            .order_by(|(a_parts, a, _), (b_parts, b, _)| (b.total, b.ios, a_parts).cmp(&(a.total, a.ios, b_parts)));
        folded.stacked = stacked.into_iter().map(|(dev, ios)| (dev, ios, below[&dev].clone())).collect();
        folded.stacked.sort_unstable();
        folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_events::values::devices::dev;
    use systape_format::model::{BlockIo, DeviceLink, Dict, Session, Task};

    fn fold(keys: &[GroupKey]) -> BlockSums {
        let (sda, dm) = (dev((8, 0)), dev((253, 0)));
        let link = DeviceLink { dev: (253, 0), lower: vec![(8, 0)], ..DeviceLink::default() };
        let devices = Devices::new(&Session { device_links: vec![link], ..Session::default() });
        let dict =
            Dict { tasks: vec![Task { pid: 5, tid: 6, comm: b"dd".to_vec(), ..Task::default() }], ..Dict::default() };
        let io = |dev, flags, owner, issued, errno| BlockIo {
            complete: 10_000,
            issued,
            dev,
            bytes: 4096,
            flags,
            owner,
            errno,
            requeues: 1,
            ..BlockIo::default()
        };
        let mut sums = Sums::new(keys.to_vec(), HistogramOf::Latency, &Session::default());
        for io in [
            io(dm, 1, Some(0), 1_000, 0),
            io(sda, 1, None, 4_000, 0),
            io(sda, 0, Some(0), 0, 5),
            io(sda, 2, Some(0), 9_000, 0),
        ] {
            sums.add(&Io::new(&io, &dict));
        }
        sums.fold(&devices)
    }

    #[test]
    fn a_stacked_device_is_not_summed() {
        let folded = fold(&[GroupKey::Disk]);
        let rows: Vec<_> = folded.rows.iter().map(|(_, sum, counted)| (sum.ios, sum.total, *counted)).collect();
        assert_eq!(rows, [(1, 9_000, Some(false)), (3, 7_000, Some(true))]);
        assert!(folded.late.is_empty());
        let all = &folded.all;
        assert_eq!((all.ios, all.read, all.written, all.errors, all.requeues), (3, 4096, 4096, 1, 3));
        assert_eq!((all.timed, all.total, all.avg(), all.max), (2, 7_000, Some(3_500), 6_000));
        assert_eq!(folded.stacked, [(dev((253, 0)), 1, vec![dev((8, 0))])]);
    }

    #[test]
    fn a_device_that_came_later_may_be_counted_twice() {
        let devices = Devices::new(&Session { devices: vec![(8, 0, b"sda".to_vec())], ..Session::default() });
        let of = |numbers: &[(u32, u32)], key| {
            let mut sums = Sums::new(vec![key], HistogramOf::Latency, &Session::default());
            for number in numbers {
                let io = BlockIo { complete: 1, dev: dev(*number), bytes: 512, ..BlockIo::default() };
                sums.add(&Io::new(&io, &Dict::default()));
            }
            let folded = sums.fold(&devices);
            (folded.rows.iter().map(|(_, sum, counted)| (sum.ios, *counted)).collect::<Vec<_>>(), folded.late)
        };
        let late = vec![dev((7, 0))];
        assert_eq!(of(&[(7, 0), (7, 0), (8, 0)], GroupKey::Disk), (vec![(2, None), (1, Some(true))], late.clone()));
        assert_eq!(of(&[(8, 0), (7, 0)], GroupKey::Comm), (vec![(2, None)], late));
        // there is nothing that it could be on
        assert_eq!(of(&[(7, 0)], GroupKey::Disk), (vec![(1, Some(true))], vec![]));
    }

    #[test]
    fn by_task_each_io_is_counted_once() {
        let folded = fold(&[GroupKey::Pid]);
        let rows: Vec<_> = folded.rows.iter().map(|(parts, sum, _)| (parts[0].clone(), sum.ios)).collect();
        assert_eq!(rows, [(Part::Task(None), 1), (Part::Task(Some((0, 5))), 2)]);
        assert_eq!(folded.rows[1].1.comm(), b"dd");
    }
}
