//! `dd bs=1`: one thread, read and write in turn.

use systape_format::model::{Call, FD_FIRST, Family, RecordedFamilies, SyscallRow, Task};
use systape_format::segment::FULL_ROWS;

use super::rng::SplitMix;
use super::window::{Row, SynthWindow};

/// Windows of `rows` calls together, full but for the last.
pub fn dd(rows: usize) -> Vec<SynthWindow> {
    let mut rng = SplitMix::of(1, 0);
    let mut now = 1_000_000_000;
    let mut left = rows;
    let mut windows = Vec::new();
    while left > 0 {
        let n = left.min(FULL_ROWS);
        windows.push(window(&mut rng, &mut now, n));
        left -= n;
    }
    windows
}

fn window(rng: &mut SplitMix, now: &mut u64, rows: usize) -> SynthWindow {
    let start = *now;
    let task = Task {
        tid: 4711,
        pid: 4711,
        start_ns: 900_000_000,
        leader_start_ns: 900_000_000,
        comm: b"dd".to_vec(),
        exe: b"/usr/bin/dd".to_vec(),
        uid: 1000,
        cgroup_id: 77,
        utid: 1,
        upid: 1,
        ns_tid: 4711,
        ns_pid: 4711,
        ppid: 4000,
        recorded: RecordedFamilies::of(&[Family::Syscall, Family::Process]),
        env: Vec::new(),
    };
    let row = |n: usize| {
        let write = n as u32 % 2;
        let dur = 180 + rng.below(40) + if rng.below(100) == 0 { 1 << rng.below(16) } else { 0 };
        *now += dur + 60 + rng.below(20);
        let args = [u64::from(write), 0x5581_2345_6000, 1, 0, 0, 0];
        let row =
            SyscallRow { end: *now, dur, call: write, ret: 1, args, fd: FD_FIRST + write, ..SyscallRow::default() };
        Row { row, path: None }
    };
    let rows = (0..rows).map(row).collect();
    *now += 1;
    SynthWindow {
        start,
        end: *now,
        tasks: vec![task],
        calls: vec![Call { abi: 1, nr: 0 }, Call { abi: 1, nr: 1 }],
        names: vec![b"/dev/zero".to_vec(), b"/dev/null".to_vec()],
        rows,
        ..SynthWindow::default()
    }
}
