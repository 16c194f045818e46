//! A tape with UDP sockets: a client of a name server, one that is refused, a server from before the recording, and one that moves
//! several messages with one call.

use std::path::Path;
use std::sync::Arc;

use systape_format::SegmentBuilder;
use systape_format::families::SOCKET_NAME;
use systape_format::model::{ByteStatus, CallState, Family, Gap, Session, StackMode, StackOf, StackSettings};
use systape_format::tables::Field;

use super::{OPEN, Row, Tape, US, session, task};

/// MSG_PEEK, MSG_ERRQUEUE.
const PEEK: u64 = 2;
const ERRQUEUE: u64 = 0x2000;
/// struct sockaddr_in of 10.0.0.53:53 and of 10.0.0.7:5353.
const DNS: [u8; 16] = [2, 0, 0, 53, 10, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 0];
const CLIENT: [u8; 16] = [2, 0, 0x14, 0xe9, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];

const UNBOUND: &str = "UDP:[23571]";
const BOUND: &str = "UDP:[0.0.0.0:40001]";
const REFUSED: &str = "UDP:[127.0.0.1:40002->127.0.0.1:9]";
const SERVER: &str = "UDP:[0.0.0.0:5353]";
const MANY: &str = "UDPv6:[[::1]:40003->[::1]:53]";

/// What the tape says of itself.
pub fn of_tape() -> Session {
    Session {
        families: vec![Family::Syscall, Family::Process, Family::Stack],
        stacks: StackSettings {
            mode: StackMode::FramePointers,
            on: vec![StackOf::Syscall],
            ..StackSettings::default()
        },
        ..session()
    }
}

/// A call on the socket `path` by thread `tid`, 10 µs long.
fn on(tid: u32, path: &'static str, name: &'static str, start: u64, ret: i64) -> Row<'static> {
    Row { tid, name, start, dur: 10, args: [5, 0x7000, 2048, 0, 0, 0], ret, path: Some(path), ..Row::default() }
}

/// The same with the address of the other end.
fn with(address: &'static [u8; 16], row: Row<'static>) -> Row<'static> {
    let args = [row.args[0], row.args[1], row.args[2], row.args[3], 0x7100, 0x7200];
    Row { args, captured: vec![(4, ByteStatus::Whole, 16, address)], ..row }
}

/// The same with flags.
fn flags(flags: u64, mut row: Row<'static>) -> Row<'static> {
    row.args[if row.name == "recvmsg" { 2 } else { 3 }] = flags;
    row
}

fn first() -> Vec<Row<'static>> {
    vec![
        with(&DNS, on(100, UNBOUND, "sendto", 100, 30)),
        flags(PEEK, with(&DNS, on(100, BOUND, "recvfrom", 150, 120))),
        with(&DNS, on(100, BOUND, "recvfrom", 200, 120)),
        on(100, REFUSED, "sendto", 310, 5),
        Row { errno: 111, ..on(100, REFUSED, "recvfrom", 330, 0) },
        Row { errno: 11, ..on(102, SERVER, "recvfrom", 390, 0) },
        with(&CLIENT, on(102, SERVER, "recvfrom", 400, 60)),
        with(&CLIENT, on(102, SERVER, "sendto", 420, 70)),
    ]
}

fn second() -> Vec<Row<'static>> {
    vec![
        on(102, SERVER, "recvmsg", 1_100, 12),
        on(101, MANY, "sendmmsg", 1_200, 3),
        on(101, MANY, "write", 1_220, 100),
        on(101, MANY, "recvmmsg", 1_300, 2),
        flags(ERRQUEUE, on(101, MANY, "recvmsg", 1_320, 40)),
        Row { state: CallState::InFlight, dur: 300, ..on(101, MANY, "read", 1_700, 0) },
    ]
}

/// A row of socket:name; without a thread one of the beginning.
fn name(builder: &mut SegmentBuilder, us: u64, tid: Option<u32>, inode: u64, name: [&str; 3]) {
    let task = tid.map(|tid| builder.intern_task(&task(tid)));
    let [protocol, local, remote] = name.map(|part| Field::Bytes(part.as_bytes()));
    let remote = if remote == Field::Bytes(b"") { Field::Unknown } else { remote };
    let task = task.map_or(Field::Unknown, Field::Task);
    let fields = [task, Field::Number(inode), Field::Number(0), protocol, local, remote, Field::Number(0)];
    builder.push_table_row(&Arc::new(SOCKET_NAME.clone()), OPEN + us * US, &fields).unwrap();
}

/// Writes the tape.
pub fn write(path: &Path, gaps: &[Gap]) {
    write_with(path, &of_tape(), gaps);
}

/// The same of a tape that says other things of itself.
pub fn write_with(path: &Path, session: &Session, gaps: &[Gap]) {
    let mut tape = Tape::create_with(path, session);
    tape.segment_with(1_000, &first(), gaps, |builder| {
        name(builder, 0, None, 50, ["UDP", "0.0.0.0:5353", ""]);
        name(builder, 110, Some(100), 23_571, ["UDP", "0.0.0.0:40001", ""]);
        name(builder, 300, Some(100), 23_580, ["UDP", "127.0.0.1:40002", "127.0.0.1:9"]);
    });
    tape.segment_with(2_000, &second(), &[], |builder| {
        name(builder, 1_150, Some(101), 23_590, ["UDPv6", "[::1]:40003", "[::1]:53"]);
    });
    tape.finish();
}
