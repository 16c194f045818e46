//! Rows of the table `file:identity`: which file a name stands for, whatever else it is called. Each segment has those of the names in it.

use std::sync::Arc;

use systape_bpf::wire;
use systape_format::families::FILE_IDENTITY;
use systape_format::table::TableDef;
use systape_format::tables::Field;

use crate::descriptors::names::FileKey;

/// What is told of a file: file system, inode, generation, names it has, which says nothing of a directory.
type InodeFacts = (u32, u64, u32, u32);

/// What a segment says so far.
#[derive(Debug)]
pub(super) struct SegmentIdentities {
    pub def: Arc<TableDef>,
    segment: u32,
    /// The file of each of its names.
    told: Vec<Option<InodeFacts>>,
}

impl Default for SegmentIdentities {
    fn default() -> Self {
        Self { def: Arc::new(FILE_IDENTITY.clone()), segment: 0, told: Vec::new() }
    }
}

impl SegmentIdentities {
    /// Whether `segment` has yet to say which file its name `index` stands for; from then on it has.
    pub(super) fn tells(&mut self, segment: u32, index: u32, inode: &wire::Inode) -> bool {
        if self.segment != segment {
            self.told.clear();
            self.segment = segment;
        }
        let at = index as usize;
        if self.told.len() <= at {
            self.told.resize(at + 1, None);
        }
        let links = if u32::from(inode.mode) & libc::S_IFMT == libc::S_IFDIR { 0 } else { inode.links };
        let file = Some((inode.dev, inode.inode, inode.generation, links));
        std::mem::replace(&mut self.told[at], file) != file
    }
}

/// The row that says at `ts` that the file has the name `path`; `fs` is the name of its file system's type.
pub(super) fn fields<'a>(ts: u64, path: &'a [u8], FileKey { since, inode }: &FileKey, fs: &'a [u8]) -> [Field<'a>; 9] {
    [
        Field::Number(ts.saturating_sub(*since)),
        Field::Number(inode.dev.into()),
        Field::Number(inode.inode),
        Field::Number(inode.generation.into()),
        Field::Bytes(path),
        Field::Bytes(fs),
        Field::Number(inode.on_device.into()),
        Field::Number(inode.mode.into()),
        Field::Number(inode.links.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_says_once_which_file_a_name_is() {
        let mut all = SegmentIdentities::default();
        let inode = wire::Inode { inode: 7, dev: 1, links: 1, mode: 0o100_644, ..wire::Inode::default() };
        let other = wire::Inode { inode: 8, ..inode };
        let linked = wire::Inode { links: 2, ..inode };
        let asked =
            [(0, 3, inode), (0, 3, inode), (0, 4, inode), (0, 3, other), (0, 3, inode), (0, 3, linked), (1, 3, linked)];
        let told = asked.map(|(segment, name, inode)| all.tells(segment, name, &inode));
        assert_eq!(told, [true, false, true, true, true, true, true]);
        let directory = |links| wire::Inode { links, mode: 0o040_755, ..inode };
        assert!(all.tells(1, 9, &directory(2)) && !all.tells(1, 9, &directory(3)));
    }
}
