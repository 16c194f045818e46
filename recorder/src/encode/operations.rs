//! Operations of io_uring and io_submit: their beginnings are paired with their ends by the address of the request, and become rows of the
//! tables `io_uring:complete` and `aio:complete`. A beginning of io_uring is an event of its own too.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::{aio_op_name, iouring_op_name};
use systape_bpf::wire;
use systape_format::families::{AIO_COMPLETE, IO_URING_COMPLETE};
use systape_format::model::{Family, UringOp};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::paths::OpenFilePaths;
use super::rows::Rows;
use super::world::World;

/// Operations that wait for their end at most; of others the end is not paired.
const MOST: usize = 65_536;

/// IORING_OP_CLOSE.
const CLOSE: u8 = 19;

/// An operation that was submitted.
#[derive(Clone, Debug)]
struct SubmittedOperation {
    record: wire::Operation,
    /// Its file, if the beginning tells it.
    file: Option<Vec<u8>>,
}

/// Operations of io_uring that are in flight.
#[derive(Debug)]
pub(super) struct Operations {
    /// By the address and, of a program's memory, the process.
    begun: FxHashMap<(u64, u32), SubmittedOperation>,
    uring: Arc<TableDef>,
    aio: Arc<TableDef>,
}

impl Default for Operations {
    fn default() -> Self {
        let [uring, aio] = [&IO_URING_COMPLETE, &AIO_COMPLETE].map(|def| Arc::new((*def).clone()));
        Self { begun: FxHashMap::default(), uring, aio }
    }
}

/// Whether the record has `flag`.
fn has(w: &wire::Operation, flag: u16) -> bool {
    w.row.hdr.flags & flag != 0
}

impl Operations {
    /// An operation begins or ended.
    pub(super) fn record(
        &mut self,
        w: &wire::Operation,
        paths: &mut OpenFilePaths,
        world: &mut World,
        rows: &mut Rows,
    ) {
        let ts = w.row.ts;
        let (aio, ended) = (has(w, wire::OPERATION_AIO), has(w, wire::OPERATION_ENDED));
        let key = (w.address, if aio { w.row.who.pid } else { 0 });
        let before = self.begun.remove(&key);
        if rows.sheds(Family::IoUring, ts) || has(w, wire::OPERATION_REFUSED) {
            return;
        }
        if ended {
            self.complete((before.as_ref(), Some(w)), ts, paths, world, rows);
            return;
        }
        if !aio {
            let task = rows.who(&mut world.tasks, &w.row.who);
            rows.stored(Family::IoUring, ts);
            rows.builder.push_uring(UringOp { ts, task, op: w.opcode });
        }
        // the end of the one before at this address was not told
        if let Some(before) = before {
            self.complete((Some(&before), None), ts, paths, world, rows);
        }
        // of a kernel that tells no ends either
        if w.address == 0 {
            return;
        }
        // a CLOSE ends what the kernel would name it by
        let closes = !aio && w.opcode == CLOSE && !has(w, wire::OPERATION_FIXED);
        let file = match closes {
            true => {
                let task = world.tasks.meet(&w.row.who);
                let named = world.tasks.files(task).at(ts, w.fd);
                named.map(|name| name.at(ts, |name| name.bytes.clone()))
            }
            false => paths.of(w.file, w.file_tag).map(<[u8]>::to_vec),
        };
        let begun = SubmittedOperation { record: *w, file };
        match self.begun.len() < MOST {
            true => drop(self.begun.insert(key, begun)),
            false => self.complete((Some(&begun), None), ts, paths, world, rows),
        }
    }

    /// The recording is over: what was not told of has not ended, or nobody knows.
    pub(super) fn finish(&mut self, ts: u64, paths: &mut OpenFilePaths, world: &mut World, rows: &mut Rows) {
        let mut open: Vec<SubmittedOperation> = std::mem::take(&mut self.begun).into_values().collect();
        open.sort_unstable_by_key(|one| (one.record.row.ts, one.record.address));
        open.iter().for_each(|one| self.complete((Some(one), None), ts, paths, world, rows));
    }

    /// Stores a row of what is known of an operation: its beginning, its end.
    fn complete(
        &self,
        (begun, ended): (Option<&SubmittedOperation>, Option<&wire::Operation>),
        ts: u64,
        paths: &mut OpenFilePaths,
        world: &mut World,
        rows: &mut Rows,
    ) {
        let Some(known) = begun.map(|begun| &begun.record).or(ended) else { return };
        let told = || begun.map(|begun| &begun.record).into_iter().chain(ended);
        let aio = has(known, wire::OPERATION_AIO);
        // the end of an operation of io_submit does not say what it was
        let named =
            |w: &&wire::Operation| !has(w, wire::OPERATION_NAMELESS) && (!aio || !has(w, wire::OPERATION_ENDED));
        let op = told().find(named).map(|w| if aio { aio_op_name(w.opcode) } else { iouring_op_name(w.opcode) });
        let sized = begun.map(|begun| &begun.record).filter(|w| has(w, wire::OPERATION_SIZED));
        let path = begun.and_then(|begun| begun.file.clone());
        let path = path.or_else(|| ended.and_then(|w| paths.of(w.file, w.file_tag).map(<[u8]>::to_vec)));
        let number = |value: Option<u64>| value.map_or(Field::Unknown, Field::Number);
        let fd = begun.and_then(|begun| u64::try_from(begun.record.fd).ok());
        let ret = ended.map(|w| w.ret);
        let fields = [
            Field::Task(rows.who(&mut world.tasks, &known.row.who)),
            number(ended.and_then(|w| begun.map(|begun| w.row.ts.saturating_sub(begun.record.row.ts)))),
            op.as_deref().map_or(Field::Unknown, |op| Field::Bytes(op.as_bytes())),
            number(fd),
            path.as_deref().map_or(Field::Unknown, Field::Bytes),
            // -1: where the file stands
            number(sized.map(|w| w.offset).filter(|offset| offset.cast_signed() >= 0)),
            number(sized.map(|w| w.asked)),
            number(ret.and_then(|ret| u64::try_from(ret).ok())),
            number(ret.map(|ret| if ret < 0 { ret.unsigned_abs() } else { 0 })),
            Field::Unknown,
        ];
        rows.beside(if aio { &self.aio } else { &self.uring }, ts, &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::stacks::WaitingStacks;
    use crate::tasks::Tasks;
    use crate::tasks::targets::Targets;
    use systape_format::model::StackSettings;
    use systape_format::tables::TableRows;

    const READ: u8 = 22;
    const PREAD: u8 = 0;

    fn at(ts: u64, flags: u16, address: u64, ret: i64) -> wire::Operation {
        let mut w = wire::Operation { address, ret, fd: -1, ..wire::Operation::default() };
        (w.row.ts, w.row.hdr.flags, w.row.who.pid, w.row.who.tid) = (ts, flags, 7, 7);
        w
    }

    fn begins(ts: u64, flags: u16, address: u64, opcode: u8) -> wire::Operation {
        let flags = flags | wire::OPERATION_SIZED;
        wire::Operation { fd: 3, opcode, offset: 4096, asked: 512, file: 70, file_tag: 9, ..at(ts, flags, address, 0) }
    }

    /// The rows of `records`: `op file dur result error` each, `?` for what is not known.
    fn told(records: &[wire::Operation]) -> [Vec<String>; 2] {
        let (mut operations, mut paths) = (Operations::default(), OpenFilePaths::default());
        let mut rows = Rows::new(0, WaitingStacks::new(StackSettings::default(), 0));
        let mut world = World::new(Tasks::new(false, Targets::default()), Arc::default());
        paths.name(&wire::File { address: 70, tag: 9, ..wire::File::default() }, b"Pf\0");
        for record in records {
            operations.record(record, &mut paths, &mut world, &mut rows);
        }
        operations.finish(1000, &mut paths, &mut world, &mut rows);
        let data = rows.builder.finish(1000);
        let lines = |table: &TableRows| -> Vec<String> {
            let text = |row: usize, name: &str| {
                let code = table.column(name).expect("a column")[row];
                table.string(code).map_or("?".to_owned(), |text| String::from_utf8_lossy(text).into_owned())
            };
            let number = |row: usize, name: &str| {
                let column = table.def.columns.iter().position(|column| column.name == name).expect("a column");
                if table.is_unread(row, column) {
                    "?".to_owned()
                } else {
                    table.column(name).expect("a column")[row].to_string()
                }
            };
            let line = |row: usize| {
                let numbers = ["dur", "result", "error"].map(|name| number(row, name));
                format!("{} {} {}", text(row, "op"), text(row, "file"), numbers.join(" "))
            };
            (0..table.column("op").expect("ops").len()).map(line).collect()
        };
        let of = |name: &str| data.tables().iter().find(|table| table.def.name == name).map(lines).unwrap_or_default();
        ["io_uring:complete", "aio:complete"].map(of)
    }

    #[test]
    fn beginnings_and_ends_are_pairs() {
        let (aio, ended) = (wire::OPERATION_AIO, wire::OPERATION_ENDED);
        let [uring, of_aio] = told(&[
            begins(100, 0, 1, READ),
            begins(110, aio, 1, PREAD),
            at(150, ended, 1, 512),
            at(190, aio | ended, 1, -5),
        ]);
        assert_eq!(uring, ["READ /f 50 512 0"]);
        assert_eq!(of_aio, ["PREAD /f 80 ? 5"]);
    }

    #[test]
    fn what_was_not_seen_is_not_known() {
        let (aio, ended) = (wire::OPERATION_AIO, wire::OPERATION_ENDED);
        // begun before the recording; the address used again without an end; open at the end; one of several results
        let last = wire::Operation { opcode: READ, ..at(120, ended, 2, 512) };
        let [uring, of_aio] = told(&[
            last,
            begins(130, 0, 3, READ),
            begins(140, 0, 3, READ),
            at(150, ended | wire::OPERATION_NAMELESS, 0, 9),
            at(160, aio | ended, 4, 512),
        ]);
        assert_eq!(uring, ["READ ? ? 512 0", "READ /f ? ? ?", "? ? ? 9 0", "READ /f ? ? ?"]);
        assert_eq!(of_aio, ["? ? ? 512 0"]);
        // Linux before 5.16 says what begins, and neither where nor how it ends
        assert_eq!(told(&[begins(100, 0, 0, READ), begins(110, 0, 0, READ)]), [[""; 0], [""; 0]]);
    }

    #[test]
    fn what_the_kernel_refused_is_none() {
        let refused = wire::OPERATION_AIO | wire::OPERATION_ENDED | wire::OPERATION_REFUSED;
        assert_eq!(told(&[begins(100, wire::OPERATION_AIO, 1, PREAD), at(110, refused, 1, 0)]), [[""; 0], [""; 0]]);
    }
}
