//! Files that block I/Os read or write.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use systape_format::Error;
use systape_format::families::{BLOCK_DIRTIER, BLOCK_FILE};
use systape_format::model::{BlockCause, BlockHolds, BlockIo, Dict, Task};
use systape_format::reader::Segment;
use systape_format::tables::TableRows;

use systape_events::values::devices::numbers;
use systape_events::values::words::escaped;

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// File system, as the kernel's dev_t.
    pub dev: u32,
    /// Inode of the file there.
    pub inode: u64,
    /// Path of the file; None: not known.
    pub path: Option<Vec<u8>>,
    /// Names it has; 0: not known.
    pub links: u64,
}

/// What tables say of a segment's block I/Os.
#[derive(Debug, Default)]
pub struct Files {
    /// Files, by number.
    files: FxHashMap<u64, File>,
    /// Who dirtied what is written, as it was called then; by end, device and sector.
    dirtiers: FxHashMap<(u64, u32, u64), Task>,
}

impl Files {
    /// Whether there may be something about one of these I/Os.
    fn may_have(ios: &[BlockIo]) -> bool {
        ios.iter().any(|io| io.file != 0 || io.cause == BlockCause::Dirtier)
    }

    /// What the tables of a segment say of its I/Os `ios`.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn read(segment: &Segment<'_>, dict: &Dict, ios: &[BlockIo]) -> Result<Self, Error> {
        match Self::may_have(ios) {
            true => Ok(Self::new(&segment.tables(dict)?, dict)),
            false => Ok(Self::default()),
        }
    }

    /// What these tables say, of the segment of `dict`.
    pub fn new(tables: &[TableRows], dict: &Dict) -> Self {
        let mut files = FxHashMap::default();
        for table in tables.iter().filter(|table| table.def.name == BLOCK_FILE.name) {
            let column = |name: &str| table.column(name).unwrap_or_default();
            let [number, dev, inode, path, links] = ["file", "device", "inode", "path", "links"].map(column);
            let at = |column: &[u64], row: usize| column.get(row).copied().unwrap_or(0);
            for (row, number) in number.iter().enumerate() {
                let dev = u32::try_from(at(dev, row)).unwrap_or(0);
                let path = table.string(at(path, row)).map(<[u8]>::to_vec);
                files.insert(*number, File { dev, inode: at(inode, row), path, links: at(links, row) });
            }
        }
        let mut dirtiers = FxHashMap::default();
        for table in tables.iter().filter(|table| table.def.name == BLOCK_DIRTIER.name) {
            let columns = ["task", "device", "sector", "comm"].map(|name| table.column(name));
            let [Some(tasks), Some(devices), Some(sectors), Some(comms)] = columns else { continue };
            for (row, ts) in table.ts.iter().enumerate() {
                let (task, comm) = (dict.task_of(tasks[row]), table.string(comms[row]));
                let (Some(task), Some(comm), Ok(dev)) = (task, comm, u32::try_from(devices[row])) else { continue };
                dirtiers.insert((*ts, dev, sectors[row]), Task { comm: comm.to_vec(), ..task.clone() });
            }
        }
        Self { files, dirtiers }
    }

    /// Who dirtied what `io` writes, if it had another name then.
    pub fn dirtier(&self, io: &BlockIo) -> Option<&Task> {
        self.dirtiers.get(&(io.complete, io.dev, io.sector)).filter(|_| io.cause == BlockCause::Dirtier)
    }

    /// The file of `io`; None: it has none, or it is not known.
    pub fn of(&self, io: &BlockIo) -> Option<&File> {
        self.files.get(&io.file)
    }
}

/// What an I/O reads or writes, as a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoTarget {
    /// This path; whether the file has others.
    Path(Vec<u8>, bool),
    /// A file without a known path: its file system and inode.
    Inode(u32, u64),
    /// Something else.
    Other(BlockHolds),
    /// Nothing: a flush of the cache.
    Nothing,
}

impl IoTarget {
    /// What `io` reads or writes, whose file is `file`.
    pub fn new(io: &BlockIo, file: Option<&File>) -> Self {
        match file {
            Some(File { path: Some(path), links, .. }) => Self::Path(path.clone(), *links > 1),
            Some(file) => Self::Inode(file.dev, file.inode),
            None if io.holds == BlockHolds::File && io.inode != 0 => Self::Inode(0, io.inode),
            None if io.bytes == 0 => Self::Nothing,
            None => Self::Other(io.holds),
        }
    }

    /// The path, with `+` if it is one of several; `8:16 inode 12`; `[metadata]` and the like; `?`; `-` for nothing.
    pub fn text(&self) -> String {
        match self {
            Self::Path(path, several) => {
                let mut text = escaped(path);
                let _ = write!(text, "{}", if *several { "+" } else { "" });
                text
            }
            Self::Inode(0, inode) => format!("inode {inode}"),
            Self::Inode(dev, inode) => {
                let (major, minor) = numbers(*dev);
                format!("{major}:{minor} inode {inode}")
            }
            Self::Nothing => "-".to_owned(),
            Self::Other(BlockHolds::Unknown) => "?".to_owned(),
            Self::Other(holds) => format!("[{}]", holds_name(*holds)),
        }
    }
}

/// The name of `holds` in JSON.
pub fn holds_name(holds: BlockHolds) -> &'static str {
    match holds {
        BlockHolds::Unknown => "unknown",
        BlockHolds::File => "file",
        BlockHolds::Metadata => "metadata",
        BlockHolds::Journal => "journal",
        BlockHolds::Device => "device",
        BlockHolds::Swap => "swap",
        BlockHolds::Several => "several",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dirtied_is_found_by_the_io() {
        use systape_format::SegmentBuilder;
        use systape_format::tables::Field;

        let mut builder = SegmentBuilder::new(0);
        let task = builder.intern_task(&Task { tid: 7, pid: 7, comm: b"now".to_vec(), ..Task::default() });
        let fields = [Field::Task(task), Field::Number(8 << 20), Field::Number(64), Field::Bytes(b"then")];
        builder.push_table_row(&BLOCK_DIRTIER.clone().into(), 100, &fields).unwrap();
        let data = builder.finish(200);
        let dict =
            Dict { tasks: vec![Task { tid: 7, pid: 7, comm: b"now".to_vec(), ..Task::default() }], ..Dict::default() };
        let files = Files::new(data.tables(), &dict);
        let io = BlockIo { complete: 100, dev: 8 << 20, sector: 64, cause: BlockCause::Dirtier, ..BlockIo::default() };
        assert!(Files::may_have(std::slice::from_ref(&io)));
        assert_eq!(files.dirtier(&io).map(|task| (task.pid, &*task.comm)), Some((7, &b"then"[..])));
        for other in [
            BlockIo { sector: 72, ..io },
            BlockIo { complete: 101, ..io },
            BlockIo { dev: 9 << 20, ..io },
            BlockIo { cause: BlockCause::Direct, ..io },
        ] {
            assert_eq!(files.dirtier(&other), None);
        }
    }

    #[test]
    fn what_is_known_is_said() {
        let io = |holds, inode| BlockIo { holds, inode, bytes: 512, ..BlockIo::default() };
        let file = |path: Option<&str>, links| File { dev: 8 << 20 | 16, inode: 7, path: path.map(Into::into), links };
        let says = |io: &BlockIo, file: Option<&File>| IoTarget::new(io, file).text();
        let of_file = io(BlockHolds::File, 7);
        assert_eq!(says(&of_file, Some(&file(Some("/a\nb"), 1))), "/a\\nb");
        assert_eq!(says(&of_file, Some(&file(Some("/a"), 2))), "/a+");
        assert_eq!(says(&of_file, Some(&file(None, 1))), "8:16 inode 7");
        assert_eq!(says(&of_file, None), "inode 7");
        assert_eq!(says(&io(BlockHolds::Journal, 0), None), "[journal]");
        assert_eq!(says(&io(BlockHolds::Unknown, 0), None), "?");
        assert_eq!(says(&BlockIo::default(), None), "-");
    }
}
