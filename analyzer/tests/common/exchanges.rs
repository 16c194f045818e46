//! A tape with exchanges: a server on port 80 with two clients, one of which is on the tape, that uploads slowly, is reset, and asks again
//! on a connection from before the recording; a server on a UNIX socket with its client; and one that is under way at the end.

use std::path::Path;
use std::sync::Arc;

use systape_format::SegmentBuilder;
use systape_format::families::{SOCKET_NAME, SOCKET_SEGMENT};
use systape_format::model::{ByteStatus, CallState, Gap, Switch, Task, Wakeup};
use systape_format::tables::Field;

use super::{OPEN, Row, Tape, US, task};

const LISTENER: &str = "TCP:[0.0.0.0:80]";
const SERVER: &str = "TCP:[10.0.0.1:80->10.0.0.1:5000]";
const CLIENT: &str = "TCP:[10.0.0.1:5000->10.0.0.1:80]";
const AWAY: &str = "TCP:[10.0.0.1:80->10.0.0.9:6000]";
const OLD: &str = "TCP:[10.0.0.1:80->10.0.0.9:6001]";
const UNIX_LISTENER: &str = "UNIX-STREAM:[30,\"/run/app\"]";
const UNIX_SERVER: &str = "UNIX-STREAM:[31->32,\"/run/app\"]";
const UNIX_CLIENT: &str = "UNIX-STREAM:[32->31]";
/// struct sockaddr_un of /run/app.
const ADDRESS: &[u8] = b"\x01\x00/run/app\0";

/// A call on the socket `path` by thread `tid`.
fn on(tid: u32, path: &'static str, name: &'static str, (start, dur): (u64, u64), ret: i64) -> Row<'static> {
    let args = [5, 0x7000, 2048, 0, 0, 0];
    Row { tid, name, start, dur, args, ret, path: Some(path), ..Row::default() }
}

fn first() -> Vec<Row<'static>> {
    vec![
        on(101, OLD, "write", (20, 5), 40),
        on(101, LISTENER, "accept4", (30, 60), 6),
        on(200, "TCP:[21]", "connect", (40, 30), 0),
        // a body in two parts, an answer in two parts, by another thread
        on(200, CLIENT, "write", (100, 5), 300),
        on(101, SERVER, "read", (95, 15), 300),
        on(200, CLIENT, "write", (150, 5), 200),
        on(101, SERVER, "read", (112, 45), 200),
        on(100, SERVER, "writev", (300, 10), 1000),
        on(100, SERVER, "write", (312, 8), 500),
        on(200, CLIENT, "read", (160, 155), 1000),
        on(200, CLIENT, "read", (316, 10), 500),
        on(200, CLIENT, "write", (350, 2), 20),
        on(101, SERVER, "recvfrom", (330, 30), 20),
        on(101, SERVER, "sendto", (380, 4), 30),
        on(200, CLIENT, "read", (355, 30), 30),
        // nothing is there yet
        Row { errno: 11, ..on(101, SERVER, "read", (390, 1), 0) },
        on(101, LISTENER, "accept4", (395, 3), 7),
        on(101, AWAY, "read", (400, 4), 70),
        Row { errno: 104, ..on(101, AWAY, "write", (480, 3), 0) },
        on(101, OLD, "read", (500, 4), 60),
        on(101, OLD, "write", (540, 4), 80),
        on(101, OLD, "read", (550, 4), 0),
    ]
}

fn second() -> Vec<Row<'static>> {
    vec![
        Row {
            captured: vec![(1, ByteStatus::Whole, ADDRESS.len() as u64, ADDRESS)],
            ..on(202, "UNIX-STREAM:[32]", "connect", (600, 5), 0)
        },
        on(202, "UNIX-STREAM:[32]", "write", (610, 3), 9),
        on(102, UNIX_LISTENER, "accept", (560, 60), 8),
        on(102, UNIX_SERVER, "read", (625, 2), 9),
        on(102, UNIX_SERVER, "write", (700, 4), 11),
        on(202, UNIX_CLIENT, "read", (615, 95), 11),
        on(202, UNIX_CLIENT, "write", (750, 2), 9),
        on(102, UNIX_SERVER, "read", (710, 45), 9),
        Row { state: CallState::InFlight, dur: 340, ..on(202, UNIX_CLIENT, "read", (755, 0), 0) },
    ]
}

/// Writes a tape with scheduling: 24 exchanges of one thread, that reads, works and writes; for one of them it sleeps.
pub fn write_served(path: &Path) {
    const LONG: u64 = 12;
    let begin = |at: u64| 100 + 30 * at + if at > LONG { 300 } else { 0 };
    let calls = (0..24).flat_map(|at| {
        let slept = if at == LONG { 300 } else { 0 };
        let read = on(101, AWAY, "read", (begin(at), 2), 10);
        let sleep = Row { path: None, ..on(101, AWAY, "clock_nanosleep", (begin(at) + 4, slept), 0) };
        let write = on(101, AWAY, "write", (begin(at) + slept + 10, 3), 20);
        [Some(read), (slept > 0).then_some(sleep), Some(write)].into_iter().flatten()
    });
    let mut rows = vec![on(101, LISTENER, "accept4", (20, 60), 7)];
    rows.extend(calls);
    let mut tape = Tape::create_with(path, &super::sched::system_wide());
    tape.segment_with(2_000, &rows, &[], |builder| {
        name(builder, 80, 101, (23, 0), ["10.0.0.1:80", "10.0.0.9:6000"]);
        let [idle, server] = [Task { comm: b"swapper".to_vec(), utid: 900, upid: 900, ..Task::default() }, task(101)];
        let (idle, server) = (builder.intern_task(&idle), builder.intern_task(&server));
        let mut switch = |us: u64, prev: u32, next: u32, prev_state: u32| {
            let switch = Switch { ts: OPEN + us * US, cpu: 1, prev, next, prev_state, ..Switch::default() };
            builder.push_switch(switch);
        };
        let slept = begin(LONG) + 5;
        switch(10, idle, server, 0);
        switch(slept, server, idle, 1);
        switch(slept + 297, idle, server, 0);
        let ts = OPEN + (slept + 290) * US;
        builder.push_wakeup(Wakeup { ts, cpu: 1, waker: None, wakee: server, target_cpu: 1, ..Wakeup::default() });
    });
    tape.finish();
}

/// A row of socket:name.
fn name(builder: &mut SegmentBuilder, us: u64, tid: u32, (inode, number): (u64, u64), [local, remote]: [&str; 2]) {
    let task = Field::Task(builder.intern_task(&task(tid)));
    let [protocol, local, remote] = ["TCP", local, remote].map(|part| Field::Bytes(part.as_bytes()));
    let fields = [task, Field::Number(inode), Field::Number(number), protocol, local, remote, Field::Number(0)];
    builder.push_table_row(&Arc::new(SOCKET_NAME.clone()), OPEN + us * US, &fields).unwrap();
}

/// A row of socket:segment: whether it begins, acknowledges all, frees the rest.
fn segment(builder: &mut SegmentBuilder, us: u64, number: u64, says: [bool; 3]) {
    let [begins, acks, frees] = says.map(|says| Field::Number(u64::from(says)));
    let fields = [Field::Number(number), begins, acks, frees];
    builder.push_table_row(&Arc::new(SOCKET_SEGMENT.clone()), OPEN + us * US, &fields).unwrap();
}

/// Writes it.
pub fn write(path: &Path, gaps: &[Gap]) {
    let mut tape = Tape::create(path);
    tape.segment_with(558, &first(), gaps, |builder| {
        name(builder, 70, 200, (21, 0), ["10.0.0.1:5000", "10.0.0.1:80"]);
        name(builder, 90, 101, (22, 3), ["10.0.0.1:80", "10.0.0.1:5000"]);
        // before it was read; the rest of the answer is held back, and arrives; the next one comes late
        segment(builder, 98, 3, [true, false, false]);
        segment(builder, 325, 3, [false, false, true]);
        segment(builder, 326, 3, [false, true, false]);
        segment(builder, 352, 3, [true, false, false]);
        segment(builder, 389, 3, [false, true, false]);
        name(builder, 398, 101, (23, 0), ["10.0.0.1:80", "10.0.0.9:6000"]);
    });
    tape.segment(1_100, &second(), &[]);
    tape.finish();
}
