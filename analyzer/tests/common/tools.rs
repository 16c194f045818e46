//! A tape with signals that were sent, names that were looked up and a connection that ended, for the reports by the names of tools.

use std::path::Path;
use std::sync::Arc;

use systape_format::SegmentBuilder;
use systape_format::model::{CallState, Class, Family, Gap, NetState, Session};
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::Field;

use super::{OPEN, Row, Tape, US, session, task};

fn kills() -> Vec<Row<'static>> {
    let row = Row { tid: 100, name: "kill", start: 100, dur: 4, args: [102, 15, 0, 0, 0, 0], ..Row::default() };
    vec![
        row.clone(),
        // all processes of a group: a negative number of 32 bits
        Row { tid: 102, start: 200, errno: 1, args: [0xffff_ff9c, 0, 0, 0, 0, 0], ..row.clone() },
        Row { tid: 101, name: "tgkill", start: 300, args: [100, 101, 6, 0, 0, 0], ..row.clone() },
        Row { tid: 101, name: "tkill", start: 400, errno: 3, args: [999, 9, 0, 0, 0, 0], ..row.clone() },
        Row { name: "close", start: 450, args: [3, 0, 0, 0, 0, 0], ..row.clone() },
        Row { start: 500, dur: 500, state: CallState::InFlight, ..row },
    ]
}

/// The table that `record --uprobe` makes.
fn works() -> Arc<TableDef> {
    let column = |name: &'static str, ty| ColumnDef::stored(name, ty, None, "of a test");
    let columns = vec![column("ts", Type::Time), column("task", Type::Task), column("dur", Type::Duration)];
    Arc::new(TableDef { name: "uprobe:app:work".into(), doc: "of a test".into(), columns: columns.into() })
}

/// The table that `record --probe dns` makes.
fn lookups() -> Arc<TableDef> {
    let column = |name: &'static str, ty, class| ColumnDef::stored(name, ty, class, "of a test");
    let columns = vec![
        column("ts", Type::Time, None),
        column("task", Type::Task, None),
        column("cpu", Type::Int, None),
        column("dur_ns", Type::Duration, None),
        column("host", Type::Str, Some(Class::String)),
        column("ret", Type::Int, None),
    ];
    Arc::new(TableDef { name: "dns:getaddrinfo".into(), doc: "of a test".into(), columns: columns.into() })
}

/// A connection of another process with TCP and its end, over IPv6; it was made before the recording.
fn connection(builder: &mut SegmentBuilder) {
    for (us, states) in [(600, (2, 1)), (610, (1, 4)), (620, (4, 5)), (700, (5, 7))] {
        let task = Some(builder.intern_task(&task(102)));
        let address = |last: u8| [&[0; 15][..], &[last]].concat();
        builder.push_net(NetState {
            ts: OPEN + us * US,
            task,
            sender: None,
            socket: 9,
            family: 10,
            protocol: 6,
            old_state: states.0,
            new_state: states.1,
            sport: 40_009,
            dport: 5432,
            saddr: address(1),
            daddr: address(2),
        });
    }
}

/// Writes the tape.
pub fn write(path: &Path, gaps: &[Gap]) {
    let families = vec![Family::Syscall, Family::Process, Family::Net];
    let mut tape = Tape::create_with(path, &Session { families, ..session() });
    let (table, works) = (lookups(), works());
    tape.segment_with(1_000, &kills(), gaps, |builder| {
        connection(builder);
        let known = Field::Bytes(b"db.example.org");
        for (us, tid, cpu, dur, host, ret) in [
            (20, Some(100), 1, Field::Number(1_234_567), known, 0),
            (30, Some(102), 2, Field::Number(5_000_999), Field::Bytes(b"a\x1b\xff"), -2),
            (40, None, 1, Field::Number(999), Field::Unknown, 0),
        ] {
            let task = tid.map_or(Field::Unknown, |tid| Field::Task(builder.intern_task(&task(tid))));
            let ret = Field::Number(i64::from(ret).cast_unsigned());
            let fields = [task, Field::Number(cpu), dur, host, ret];
            builder.push_table_row(&table, OPEN + us * US, &fields).unwrap();
        }
        for (us, tid, dur) in [(50, 100, 3_000), (60, 101, 3_500), (70, 102, 70_000)] {
            let fields = [Field::Task(builder.intern_task(&task(tid))), Field::Number(dur)];
            builder.push_table_row(&works, OPEN + us * US, &fields).unwrap();
        }
    });
    tape.finish();
}
