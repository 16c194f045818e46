//! Operations of io_uring and io_submit: rows of the tables `io_uring:complete` and `aio:complete`, as what they did with files.

use systape_abi::ContentIo;
use systape_format::families::{AIO_COMPLETE, IO_URING_COMPLETE};
use systape_format::model::{Call, Dict, Task};
use systape_format::reader::Tape;
use systape_format::table::TableDef;
use systape_format::tables::TableRows;

use super::paths::pick;
use systape_events::picked::Is;
use systape_events::question::Question;
use systape_events::scan::{Coverage, Scan};

/// An operation that is over, or of which the end was not seen.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Who submitted it; None: not known.
    pub task: Option<&'a Task>,
    /// The operation, as in `READV`; None: not known.
    pub op: Option<&'a [u8]>,
    /// The file that it was done on; None: not known, or it has none.
    pub file: Option<&'a [u8]>,
    /// When the program was told, CLOCK_MONOTONIC ns.
    pub end: u64,
    /// How long it took, ns; None: it was submitted unseen, or its end was not seen.
    pub dur: Option<u64>,
    /// What it returned; None: it failed, or its end was not seen.
    pub result: Option<u64>,
    /// The error's number, 0: none; None: its end was not seen.
    pub error: Option<u64>,
}

impl Operation<'_> {
    /// What it does with the contents of its file. Its argument has no number: it is always the first.
    pub fn io(&self) -> ContentIo {
        match self.op.unwrap_or_default() {
            b"READ" | b"READV" | b"READ_FIXED" | b"READV_FIXED" | b"READ_MULTISHOT" | b"RECV" | b"RECVMSG"
            | b"RECV_ZC" | b"PREAD" | b"PREADV" => ContentIo::Read(0),
            b"WRITE" | b"WRITEV" | b"WRITE_FIXED" | b"WRITEV_FIXED" | b"SEND" | b"SENDMSG" | b"SEND_ZC"
            | b"SENDMSG_ZC" | b"PWRITE" | b"PWRITEV" => ContentIo::Write(0),
            b"OPENAT" | b"OPENAT2" => ContentIo::Open,
            b"SPLICE" | b"TEE" => ContentIo::Other,
            _ => ContentIo::None,
        }
    }
}

/// The tables.
pub(crate) const TABLES: [&TableDef; 2] = [&IO_URING_COMPLETE, &AIO_COMPLETE];

/// Whether the tape has what operations did. Older ones have not, those of kernels before 5.19 not that of io_uring.
fn has_any(tape: &Tape) -> bool {
    tape.table_defs().values().any(|def| TABLES.iter().any(|table| table.name == def.name))
}

/// Whether operations were submitted, and what they did is not on the tape.
pub fn unseen(question: &Question<'_>) -> bool {
    let submits = |call: &Call| matches!(&*question.book.get(*call).name, "io_uring_enter" | "io_submit");
    let submitted = || question.tape.segments().iter().flat_map(|info| info.calls.iter().flatten()).any(submits);
    !has_any(question.tape) && submitted()
}

/// Gives `each` the operations that pass the filters of `question`, or may ([`Is::Maybe`]), as the file is not known that `-P` asks for;
/// with the segment and the number of the task in it. None of them passes a selection of calls.
pub fn read(question: &Question<'_>, mut each: impl FnMut(Operation<'_>, Is, (usize, u32))) -> Coverage {
    let defs: &[&TableDef] = if question.scope.filters().selects || !has_any(question.tape) { &[] } else { &TABLES };
    Scan::tables(question.tape, ("operations of io_uring and io_submit", defs), |at, dict, table| {
        rows(table, dict, |operation, task| {
            let passes = passes(question, &operation);
            if passes != Is::Not {
                each(operation, passes, (at, task));
            }
        });
    })
}

/// Gives each row, with the index of its task.
pub(crate) fn rows(table: &TableRows, dict: &Dict, mut each: impl FnMut(Operation<'_>, u32)) {
    let columns = ["task", "op", "file", "dur", "result", "error"].map(|name| table.column(name));
    let [Some(tasks), Some(ops), Some(files), Some(durs), Some(results), Some(errors)] = columns else { return };
    let place = |name: &str| table.def.columns.iter().position(|column| column.name == name);
    let places = ["dur", "result", "error"].map(place);
    for (row, end) in table.ts.iter().enumerate() {
        let known =
            |at: usize, value: u64| Some(value).filter(|_| places[at].is_some_and(|at| !table.is_unread(row, at)));
        let task = tasks[row];
        let operation = Operation {
            task: dict.task_of(task),
            op: table.string(ops[row]),
            file: table.string(files[row]),
            end: *end,
            dur: known(0, durs[row]),
            result: known(1, results[row]),
            error: known(2, errors[row]),
        };
        each(operation, u32::try_from(task.saturating_sub(1)).unwrap_or(0));
    }
}

/// Whether it passes the filters on tasks, times, errors, durations and files.
fn passes(question: &Question<'_>, operation: &Operation<'_>) -> Is {
    let (scope, filters) = (&question.scope, question.scope.filters());
    let began = operation.dur.map_or(operation.end, |dur| operation.end.saturating_sub(dur));
    let others = scope.at(began)
        && scope.blamed(operation.task, 0)
        && filters.cpus.is_none()
        && (!filters.failure || operation.error.is_some_and(|error| error > 0))
        && filters.longer_than.is_none_or(|least| operation.dur.is_some_and(|dur| dur > least));
    if others { pick::named(filters, operation.file) } else { Is::Not }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_bytes_is_told() {
        let io = |op: &'static str| {
            let op = Some(op.as_bytes());
            Operation { task: None, op, file: None, end: 0, dur: None, result: None, error: None }.io()
        };
        assert_eq!(
            ["READV", "PWRITE", "OPENAT", "FSYNC"].map(io),
            [ContentIo::Read(0), ContentIo::Write(0), ContentIo::Open, ContentIo::None]
        );
        // every name of the kernel's that reads or writes is one of these
        for op in 0..=62 {
            let name = systape_abi::iouring_op_name(op);
            let moves = ["READ", "WRITE", "SEND", "RECV"].iter().any(|word| name.starts_with(word));
            let told = Operation {
                op: Some(name.as_bytes()),
                task: None,
                file: None,
                end: 0,
                dur: None,
                result: None,
                error: None,
            };
            assert_eq!(matches!(told.io(), ContentIo::Read(_) | ContentIo::Write(_)), moves, "{name}");
        }
    }
}
