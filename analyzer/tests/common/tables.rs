//! A tape that defines tables of its own.

use std::path::Path;
use std::sync::Arc;

use systape_format::model::Class;
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::Field;

use super::{Row, Tape, US, task};

/// `exceptions:page_fault_user` and `writeback:writeback_written`.
fn definitions() -> [Arc<TableDef>; 2] {
    let column = |name: &'static str, ty, class| ColumnDef::stored(name, ty, class, "of a test");
    let table = |name: &'static str, columns: Vec<ColumnDef>| {
        Arc::new(TableDef { name: name.into(), doc: "of a test".into(), columns: columns.into() })
    };
    let (ts, whose) = (|| column("ts", Type::Time, None), || column("task", Type::Task, None));
    [
        table(
            "exceptions:page_fault_user",
            vec![ts(), whose(), column("address", Type::Hex, None), column("error_code", Type::Int, None)],
        ),
        table(
            "writeback:writeback_written",
            vec![
                ts(),
                whose(),
                column("name", Type::Str, Some(Class::Path)),
                column("nr_pages", Type::Count, None),
                column("sb_dev", Type::Wide, None),
                column("range_cyclic", Type::Flag, None),
                column("reason", Type::Int, None),
            ],
        ),
    ]
}

/// Writes it: a call, two faults of one thread, one of nobody, and two rows about writeback, one of them before the call.
pub fn write(path: &Path) {
    let mut tape = Tape::create(path);
    let call = Row { tid: 100, name: "close", start: 50, dur: 10, args: [3, 0, 0, 0, 0, 0], ..Row::default() };
    let [fault, written] = definitions();
    let at = |us: u64| super::OPEN + us * US;
    tape.segment_with(1_000, &[call], &[], |builder| {
        let app = builder.intern_task(&task(100));
        let fields = |address, code: i64| [Field::Number(address), Field::Number(code.cast_unsigned())];
        for (us, whose, [address, code]) in [
            (70, Field::Task(app), fields(0x7f00_dead_b000, 4)),
            (60, Field::Task(app), fields(0, -1)),
            (90, Field::Unknown, fields(u64::MAX, 6)),
        ] {
            builder.push_table_row(&fault, at(us), &[whose, address, code]).unwrap();
        }
        for (us, name) in [(20, Field::Bytes(b"vda\x1b[1m")), (80, Field::Unknown)] {
            let numbers = [Field::Number(1024), Field::Number(u64::MAX), Field::Number(1), Field::Number(3)];
            let [pages, dev, cyclic, reason] = numbers;
            builder.push_table_row(&written, at(us), &[Field::Task(app), name, pages, dev, cyclic, reason]).unwrap();
        }
    });
    tape.finish();
}
