//! Rows of the table `block:device`: devices that came during the recording, read when their first I/O is encoded. The session has
//! those that were there.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::families::BLOCK_DEVICE;
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use crate::machine::devices::{Late, dev};

/// Most devices that are read.
const MOST: usize = 1024;

/// A device that came during the recording.
#[derive(Debug, Default)]
struct NewDisk {
    /// None = it is being read, or could not be.
    read: Option<Late>,
    /// Segment that has rows of it; `u32::MAX` = none.
    told: u32,
}

/// Devices that came during the recording, as rows.
#[derive(Debug)]
pub(super) struct RecordedDisks {
    /// Those of the session, as major << 20 | minor; empty = they are not known.
    begun: Vec<u32>,
    late: FxHashMap<u32, NewDisk>,
    def: Arc<TableDef>,
}

impl RecordedDisks {
    /// `begun`: the devices of the session.
    pub(super) fn new(begun: Vec<u32>) -> Self {
        Self { begun, late: FxHashMap::default(), def: Arc::new(BLOCK_DEVICE.clone()) }
    }

    /// An I/O of `dev` ended at `ts`; true = the device is to be read.
    pub(super) fn io(&mut self, dev: u32, ts: u64, rows: &mut Rows) -> bool {
        if self.begun.is_empty() || self.begun.contains(&dev) {
            return false;
        }
        if let Some(disk) = self.late.get_mut(&dev) {
            disk.tell(ts, &self.def, rows);
            return false;
        }
        if self.late.len() >= MOST {
            return false;
        }
        self.late.insert(dev, NewDisk { told: u32::MAX, ..NewDisk::default() });
        true
    }

    /// A device was read, before `ts`.
    pub(super) fn found(&mut self, late: Late, ts: u64, rows: &mut Rows) {
        let Some(disk) = self.late.get_mut(&late.dev) else { return };
        disk.read = Some(late);
        disk.tell(ts, &self.def, rows);
    }
}

impl NewDisk {
    /// Stores its rows, once a segment.
    fn tell(&mut self, ts: u64, def: &Arc<TableDef>, rows: &mut Rows) {
        let Some(late) = self.read.as_ref().filter(|_| self.told != rows.segment) else { return };
        self.told = rows.segment;
        let number = |of: (u32, u32)| Field::Number(dev(of).into());
        // one row of a device that nothing is below
        let below = late.link.lower.iter().map(|lower| number(*lower));
        let below: Vec<_> = if late.link.lower.is_empty() { vec![Field::Number(0)] } else { below.collect() };
        for below in below {
            let fields = [
                Field::Number(late.dev.into()),
                Field::Bytes(&late.name),
                late.link.disk.map_or(Field::Number(0), number),
                Field::Number(late.link.first_sector),
                below,
                Field::Number(late.whole.into()),
            ];
            rows.beside(def, ts, &fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::stacks::WaitingStacks;
    use systape_format::model::{DeviceLink, StackSettings};

    #[test]
    fn a_late_device_has_rows_in_each_segment_with_its_io() {
        let mut rows = Rows::new(0, WaitingStacks::new(StackSettings::default(), 0));
        let mut disks = RecordedDisks::new(vec![8 << 20]);
        let (known, late) = (8 << 20, 7 << 20);
        assert!(!disks.io(known, 1, &mut rows), "the session has it");
        assert!(disks.io(late, 2, &mut rows) && !disks.io(late, 3, &mut rows), "it is read once");
        let link = DeviceLink { dev: (7, 0), lower: vec![(8, 0), (8, 16)], ..DeviceLink::default() };
        disks.found(Late { dev: late, name: b"loop0".to_vec(), link, whole: true }, 4, &mut rows);
        assert!(!disks.io(late, 5, &mut rows));
        assert!(!RecordedDisks::new(Vec::new()).io(late, 6, &mut rows), "what the session has is not known");
        let data = rows.builder.finish(100);
        let [table] = data.tables() else { panic!("{:?}", data.tables()) };
        assert_eq!(table.column("below"), Some(&[8 << 20, 8 << 20 | 16][..]));
        assert_eq!((table.column("device"), table.ts.as_slice()), (Some(&[7 << 20, 7 << 20][..]), &[4, 4][..]));
    }
}
