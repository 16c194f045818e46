//! A tape with futexes: a lock that two threads of one process give on to each other, a condition that another thread signals, a wait whose
//! time was up, a timer, a call that was not to wait, and threads of other processes that wait until the end.

use std::path::Path;

use systape_format::model::{CallState, Gap};

use super::{Row, Tape};

/// FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET with the flags of glibc.
const WAIT: u64 = 0x80;
const WAKE: u64 = 0x81;
const WAIT_BITSET: u64 = 0x189;

const MUTEX: u64 = 0x7f00_0000_1000;
const CONDITION: u64 = 0x7f00_0000_2000;
const TIMER: u64 = 0x7f00_0000_4000;
const OTHER: u64 = 0x5500_0000_3000;

fn futex(tid: u32, (start, dur): (u64, u64), (address, op, value): (u64, u64, u64), ret: i64) -> Row<'static> {
    Row { tid, name: "futex", start, dur, args: [address, op, value, 0, 0, 0], ret, ..Row::default() }
}

/// Writes it.
pub fn write(path: &Path, gaps: &[Gap]) {
    let mut tape = Tape::create(path);
    tape.segment(
        450,
        &[
            futex(100, (100, 50), (MUTEX, WAIT, 2), 0),
            futex(101, (150, 1), (MUTEX, WAKE, 1), 1),
            futex(101, (200, 150), (MUTEX, WAIT, 2), 0),
            futex(100, (349, 1), (MUTEX, WAKE, 1), 1),
            // nobody was there
            futex(100, (360, 1), (MUTEX, WAKE, 1), 0),
            Row { errno: 11, ..futex(101, (400, 1), (MUTEX, WAIT, 2), 0) },
        ],
        &[],
    );
    tape.segment(
        1_100,
        &[
            futex(101, (500, 200), (CONDITION, WAIT_BITSET, 7), 0),
            futex(100, (690, 2), (CONDITION, WAKE, 1), 1),
            Row { errno: 110, ..futex(101, (900, 100), (CONDITION, WAIT_BITSET, 9), 0) },
            Row { errno: 110, ..futex(100, (720, 60), (TIMER, WAIT_BITSET, 9), 0) },
            futex(200, (600, 20), (OTHER, WAIT, 0), 0),
            futex(201, (700, 30), (OTHER, WAIT, 2), 0),
            Row { state: CallState::InFlight, ..futex(202, (710, 290), (OTHER, WAIT, 2), 0) },
        ],
        gaps,
    );
    tape.finish();
}
