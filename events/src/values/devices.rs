//! Block devices of a tape: names, partitions, and layers.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Session;

/// The kernel's dev_t of a whole disk or a partition: major << 20 | minor.
pub type Dev = u32;

/// `dev` of a major and a minor number.
pub fn dev((major, minor): (u32, u32)) -> Dev {
    major << 20 | minor & 0xf_ffff
}

/// Major and minor number of `dev`.
pub fn numbers(dev: Dev) -> (u32, u32) {
    (dev >> 20, dev & 0xf_ffff)
}

/// The devices of a tape.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    names: FxHashMap<Dev, String>,
    /// Disk → (first sector, partition), ascending.
    partitions: FxHashMap<Dev, Vec<(u64, Dev)>>,
    /// Device → disks below it.
    lower: FxHashMap<Dev, Vec<Dev>>,
    /// Those of which not all that is below them is known.
    unsure: FxHashSet<Dev>,
}

impl Devices {
    /// The devices of the tape of `session`.
    pub fn new(session: &Session) -> Self {
        let mut devices = Self::default();
        for (major, minor, name) in &session.devices {
            let mut text = String::new();
            systape_abi::escape(name, &mut text);
            devices.names.insert(dev((*major, *minor)), text);
        }
        let disks: FxHashMap<Dev, Dev> =
            session.device_links.iter().filter_map(|link| Some((dev(link.dev), dev(link.disk?)))).collect();
        for link in &session.device_links {
            if let Some(disk) = link.disk {
                devices.partitions.entry(dev(disk)).or_default().push((link.first_sector, dev(link.dev)));
            }
            let below = link.lower.iter().map(|lower| dev(*lower)).map(|lower| *disks.get(&lower).unwrap_or(&lower));
            // of a partition of a stacked device, the disk's own link tells
            devices.lower.entry(dev(link.dev)).or_default().extend(below);
        }
        devices.partitions.values_mut().for_each(|list| list.sort_unstable());
        devices
    }

    /// Name of `dev`, or its numbers as `8:0`.
    pub fn name(&self, dev: Dev) -> String {
        self.names.get(&dev).cloned().unwrap_or_else(|| {
            let (major, minor) = numbers(dev);
            format!("{major}:{minor}")
        })
    }

    /// Adds these, of which not all that is below them is known.
    pub fn unsure(self, unsure: impl Iterator<Item = Dev>) -> Self {
        Self { unsure: unsure.collect(), ..self }
    }

    /// Whether `dev` came when the devices of the tape had been read, and what is below it is not known.
    pub fn is_late(&self, dev: Dev) -> bool {
        self.unsure.contains(&dev) || (!self.names.is_empty() && !self.names.contains_key(&dev))
    }

    /// The partition of disk `dev` with `sector`: the last one that begins at or before it, because ends are not
    /// recorded. None before the first, and on a disk without partitions.
    pub fn partition(&self, dev: Dev, sector: u64) -> Option<String> {
        let list = self.partitions.get(&dev)?;
        let after = list.partition_point(|(first, _)| *first <= sector);
        list.get(after.checked_sub(1)?).map(|(_, partition)| self.name(*partition))
    }

    /// The devices at any depth below `dev` that are in `present`, ascending: an I/O of `dev` is also an I/O of theirs.
    pub fn below(&self, dev: Dev, present: &FxHashSet<Dev>) -> Vec<Dev> {
        let mut seen = FxHashSet::default();
        let mut open = vec![dev];
        while let Some(at) = open.pop() {
            // a tape may say that a device is below itself
            open.extend(self.lower.get(&at).into_iter().flatten().copied().filter(|lower| seen.insert(*lower)));
        }
        seen.remove(&dev);
        let mut below: Vec<Dev> = seen.intersection(present).copied().collect();
        below.sort_unstable();
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_format::model::DeviceLink;

    fn devices() -> Devices {
        let link = |dev, disk, first_sector, lower: &[(u32, u32)]| DeviceLink {
            dev,
            disk,
            first_sector,
            lower: lower.to_vec(),
        };
        Devices::new(&Session {
            devices: vec![(8, 0, b"sda".to_vec()), (8, 2, b"sda2".to_vec()), (253, 0, b"dm-0".to_vec())],
            device_links: vec![
                link((8, 1), Some((8, 0)), 2048, &[]),
                link((8, 2), Some((8, 0)), 10_000, &[]),
                link((253, 0), None, 0, &[(8, 2)]),
                link((7, 0), None, 0, &[(253, 0)]),
                link((9, 9), None, 0, &[(9, 9)]),
            ],
            ..Session::default()
        })
    }

    #[test]
    fn names_and_partitions() {
        let devices = devices();
        let sda = dev((8, 0));
        assert_eq!((devices.name(sda), devices.name(dev((259, 3)))), ("sda".into(), "259:3".into()));
        let partition = |sector| devices.partition(sda, sector);
        assert_eq!((partition(0), partition(2048), partition(99_999)), (None, Some("8:1".into()), Some("sda2".into())));
        assert_eq!(devices.partition(dev((253, 0)), 5), None);
    }

    #[test]
    fn what_is_below() {
        let devices = devices();
        let (sda, dm, lo, odd) = (dev((8, 0)), dev((253, 0)), dev((7, 0)), dev((9, 9)));
        let present = FxHashSet::from_iter([sda, dm, lo, odd]);
        assert_eq!(devices.below(lo, &present), [sda, dm]);
        assert_eq!(devices.below(dm, &present), [sda]);
        assert!(devices.below(sda, &present).is_empty());
        assert!(devices.below(odd, &present).is_empty());
        assert_eq!(devices.below(lo, &FxHashSet::from_iter([lo, sda])), [sda], "a layer between may be missing");
    }
}
