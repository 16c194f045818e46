//! Rows of the table `block:file`: the files that block I/Os read or write, by number; and of `block:dirtier`: who dirtied them under
//! another name.

use std::sync::Arc;

use systape_bpf::wire;
use systape_format::families::{BLOCK_DIRTIER, BLOCK_FILE};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::recent::Recent;
use super::rows::Rows;
use crate::machine::mounts::Mounts;
use crate::tasks::is_comm;

/// A file.
#[derive(Debug)]
struct File {
    /// Of its name; another means another file or another name.
    tag: u64,
    number: u64,
    dev: u32,
    inode: u64,
    /// None = it has no name, or that was lost.
    path: Option<Vec<u8>>,
    links: u32,
    /// Segment that has a row of it; `u32::MAX` = none.
    told: u32,
}

/// Files that block I/Os read or write, and who dirtied them, as rows.
#[derive(Debug)]
pub(super) struct Files {
    /// By the kernel's address of the inode, which is never stored.
    known: Recent<File>,
    last: u64,
    mounts: Mounts,
    def: Arc<TableDef>,
    dirtier: Arc<TableDef>,
}

impl Default for Files {
    fn default() -> Self {
        let def = Arc::new(BLOCK_FILE.clone());
        let dirtier = Arc::new(BLOCK_DIRTIER.clone());
        Self { known: Recent::default(), last: 0, mounts: Mounts::default(), def, dirtier }
    }
}

impl Files {
    /// A file has this name from now on.
    pub(super) fn name(&mut self, f: &wire::File, name: &[u8]) {
        let path = wire::name(name).map(|name| self.mounts.path(f.dev, &name));
        self.add(f.address, File { tag: f.tag, path, links: f.links, ..self.anew(f.dev, f.inode) });
    }

    fn anew(&self, dev: u32, inode: u64) -> File {
        File { tag: 0, number: self.last + 1, dev, inode, path: None, links: 0, told: u32::MAX }
    }

    fn add(&mut self, address: u64, file: File) {
        self.last = file.number;
        self.known.insert(address, file);
    }

    /// Adds the name with which the owner of `b`, `task`, dirtied the file, unless that is what it is called `now`.
    pub(super) fn dirtied(&self, b: &wire::Block, task: u32, now: &[u8], rows: &mut Rows) {
        if !is_comm(&b.owner.comm, now) {
            let comm = wire::comm(&b.owner.comm);
            let fields = [Field::Task(task), Field::Number(b.dev.into()), Field::Number(b.sector), Field::Bytes(&comm)];
            rows.beside(&self.dirtier, b.complete, &fields);
        }
    }

    /// The number of the file of `b`, whose row is in the segment; 0 = it is of no file.
    pub(super) fn number(&mut self, b: &wire::Block, rows: &mut Rows) -> u64 {
        if b.file == 0 {
            return 0;
        }
        let is_it = |file: &File| (file.tag, file.dev, file.inode) == (b.file_tag, b.file_dev, b.inode);
        if self.known.get(b.file, is_it).is_none() {
            let file = File { tag: b.file_tag, ..self.anew(b.file_dev, b.inode) };
            self.add(b.file, file);
        }
        let Some(file) = self.known.get(b.file, is_it) else { return 0 };
        if file.told != rows.segment {
            file.told = rows.segment;
            let fields = [
                Field::Number(file.number),
                Field::Number(file.dev.into()),
                Field::Number(file.inode),
                file.path.as_deref().map_or(Field::Unknown, Field::Bytes),
                Field::Number(file.links.into()),
            ];
            rows.beside(&self.def, b.complete, &fields);
        }
        file.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::stacks::WaitingStacks;
    use systape_format::model::StackSettings;

    fn io(file: u64, file_tag: u64, inode: u64) -> wire::Block {
        wire::Block { file, file_tag, inode, file_dev: 7, complete: 9, ..wire::Block::default() }
    }

    fn named(address: u64, tag: u64, inode: u64) -> wire::File {
        wire::File { address, tag, inode, dev: 7, links: 1, ..wire::File::default() }
    }

    #[test]
    fn a_file_has_one_row_in_each_segment() {
        let (mut files, mut rows) = (Files::default(), Rows::new(0, WaitingStacks::new(StackSettings::default(), 0)));
        files.name(&named(1, 11, 100), b"Pb\0a\0");
        assert_eq!([io(1, 11, 100), io(1, 11, 100), io(0, 0, 0)].map(|b| files.number(&b, &mut rows)), [1, 1, 0]);
        // the same inode under another name, another file at the same place, one whose name was lost
        files.name(&named(1, 12, 100), b"Pc\0");
        assert_eq!(files.number(&io(1, 12, 100), &mut rows), 2);
        assert_eq!(files.number(&io(1, 13, 101), &mut rows), 3);
        let data = rows.builder.finish(10);
        let [table] = data.tables() else { panic!("{:?}", data.tables()) };
        let column = |name| table.column(name).expect(name).to_vec();
        assert_eq!((column("file"), column("inode")), (vec![1, 2, 3], vec![100, 100, 101]));
        let paths: Vec<_> = column("path").into_iter().map(|code| table.string(code)).collect();
        assert_eq!(paths, [Some(&b"0:7:/a/b"[..]), Some(b"0:7:/c"), None]);
    }
}
