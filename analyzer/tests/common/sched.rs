//! A tape of two CPUs with scheduler events: threads 100 and 101 of `app`, 102 that is made and ends, a kernel thread, and one that is
//! only known from the checkpoint because it sleeps all the time.

use std::path::Path;

use systape_format::SegmentBuilder;
use systape_format::model::{
    ByteStatus, CallState, Came, Checkpoint, Family, Gap, GapCause, InFlight, ProcessEvent, ProcessKind, RunState,
    Session, Switch, Task, Wakeup,
};

use super::{OPEN, Row, Tape, US, call, gap, session};

/// Length of the recording, µs.
pub const LENGTH: u64 = 2_000;

/// The idle task is 0.
pub fn task(tid: u32) -> Task {
    match tid {
        0 => Task { comm: b"swapper".to_vec(), utid: 900, upid: 900, ..Task::default() },
        200 => Task { comm: b"kworker/0:1".to_vec(), ppid: 2, exe: Vec::new(), ..super::task(200) },
        300 => Task { comm: b"sleeper".to_vec(), exe: b"/bin/sleeper".to_vec(), ..super::task(300) },
        // made in the recording
        102 => Task {
            exe: b"/bin/app".to_vec(),
            start_ns: OPEN + 500 * US,
            leader_start_ns: OPEN + 500 * US,
            ..super::task(102)
        },
        tid => Task { exe: b"/bin/app".to_vec(), ..super::task(tid) },
    }
}

pub fn system_wide() -> Session {
    Session {
        target: "system-wide".into(),
        families: vec![Family::Syscall, Family::Process, Family::Sched],
        cpus: 2,
        ..session()
    }
}

fn start() -> Checkpoint {
    let run = |utid, state, on_cpu, cpu, last_run| RunState { utid, state, on_cpu, cpu, last_run, seen: 0 };
    let futex =
        InFlight { utid: 300, call: call("futex"), start: 0, args: vec![0x7f34, 128, 2, 0, 0, 0], task_state: b'S' };
    Checkpoint {
        ts: OPEN,
        tasks: [100, 101, 200, 300].map(task).to_vec(),
        run: vec![
            run(100, b'R', true, 0, OPEN - 40 * US),
            run(101, b'S', false, 1, OPEN - 900 * US),
            run(200, b'I', false, 0, 0),
            run(300, b'S', false, 1, OPEN - 5_000_000 * US),
        ],
        in_flight: vec![futex],
        source: "snapshot".into(),
        ..Checkpoint::default()
    }
}

/// Pushes scheduler events; times in µs after the start.
struct Sched<'a>(&'a mut SegmentBuilder);

impl Sched<'_> {
    fn switch(&mut self, at: u64, cpu: u32, prev: u32, next: u32, prev_state: u32) {
        self.switch_after(at, cpu, (prev, None), next, prev_state);
    }

    /// `came`: how `prev` got the CPU, if that was not seen.
    fn switch_after(&mut self, at: u64, cpu: u32, (prev, came): (u32, Option<Came>), next: u32, prev_state: u32) {
        let (prev, next) = (self.0.intern_task(&task(prev)), self.0.intern_task(&task(next)));
        self.0.push_switch(Switch {
            ts: OPEN + at * US,
            cpu,
            prev,
            next,
            prev_state,
            preempted: false,
            came,
            ..Switch::default()
        });
    }

    fn wakeup(&mut self, at: u64, cpu: u32, waker: Option<u32>, wakee: u32, new: bool) {
        let waker = waker.map(|waker| self.0.intern_task(&task(waker)));
        let wakee = self.0.intern_task(&task(wakee));
        self.0.push_wakeup(Wakeup {
            ts: OPEN + at * US,
            cpu,
            waker,
            wakee,
            target_cpu: cpu,
            new,
            softirq: false,
            ..Wakeup::default()
        });
    }

    fn process(&mut self, at: u64, kind: ProcessKind, who: u32, parent: u32) {
        let (who, parent) = (self.0.intern_task(&task(who)), self.0.intern_task(&task(parent)));
        self.0.push_process(ProcessEvent { parent, group_dead: true, ..ProcessEvent::new(OPEN + at * US, kind, who) });
    }
}

/// Interruptible, uninterruptible, idle, dead: kernel states of tasks.
const S: u32 = 1;
const D: u32 = 2;
const IDLE: u32 = 0x402;
const DEAD: u32 = 0x80;

fn first(s: &mut Sched<'_>) {
    s.switch(205, 0, 100, 0, S);
    s.wakeup(300, 1, None, 101, false);
    s.switch(310, 1, 0, 101, 0);
    s.process(500, ProcessKind::Fork, 102, 101);
    s.wakeup(505, 1, Some(101), 102, true);
    s.switch(530, 0, 0, 102, 0);
    s.wakeup(590, 1, Some(101), 200, false);
    s.switch(600, 0, 102, 200, 0);
    s.switch(640, 0, 200, 102, IDLE);
    s.switch(660, 1, 101, 0, D);
    s.wakeup(780, 0, None, 100, false);
    s.switch(790, 0, 102, 100, 0);
}

fn second(s: &mut Sched<'_>) {
    s.switch(1_100, 0, 100, 102, S);
    s.process(1_290, ProcessKind::Exit, 102, 102);
    s.switch(1_300, 0, 102, 0, DEAD);
    s.wakeup(1_450, 1, None, 101, false);
    s.switch(1_460, 1, 0, 101, 0);
}

fn rows() -> [Vec<Row<'static>>; 2] {
    let row = |tid, name, start, dur| Row { tid, name, start, dur, ..Row::default() };
    [
        vec![
            Row {
                args: [0xffff_ff9c, 0x5600, 0, 0, 0, 0],
                ret: 3,
                captured: vec![(1, ByteStatus::Whole, 10, b"/etc/hosts")],
                ..row(100, "openat", 50, 10)
            },
            Row {
                state: CallState::BeganBefore,
                args: [0, 0x7f00, 10, 0, 0, 0],
                ret: 10,
                path: Some("pipe:[17]"),
                ..row(101, "read", 0, 400)
            },
            Row { ret: 102, ..row(101, "clone", 480, 40) },
            row(100, "nanosleep", 200, 600),
        ],
        vec![
            Row { args: [3, 0x7f00, 4096, 0, 0, 0], ret: 4096, path: Some("/data/log"), ..row(101, "write", 650, 850) },
            Row {
                state: CallState::InFlight,
                args: [0x7f38, 128, 7, 0, 0, 0],
                ..row(100, "futex", 1_090, LENGTH - 1_090)
            },
        ],
    ]
}

/// 12 scheduler events lost on CPU 1, in 1.2 to 1.4 ms.
pub fn sched_gap() -> Gap {
    Gap { family: Family::Sched, count: 12, first: OPEN + 1_200 * US, last: OPEN + 1_400 * US, ..gap() }
}

/// Writes it; `lost`: with [`sched_gap`].
pub fn tape(path: &Path, lost: bool) {
    let gaps = [sched_gap()];
    tape_with(path, if lost { &gaps } else { &[] });
}

/// Writes it with these gaps.
pub fn tape_with(path: &Path, gaps: &[Gap]) {
    tape_and(path, gaps, |_| {});
}

/// Writes it with these gaps, and more in its second segment.
pub fn tape_and(path: &Path, gaps: &[Gap], more: impl FnOnce(&mut SegmentBuilder)) {
    let mut tape = Tape::create_at(path, &system_wide(), &start());
    let [one, two] = rows();
    tape.segment_with(1_000, &one, &[], |builder| first(&mut Sched(builder)));
    tape.segment_with(LENGTH, &two, gaps, |builder| {
        second(&mut Sched(builder));
        more(builder);
    });
    tape.finish();
}

/// Writes it with two switches on CPU 0 that no program saw: of 200, of which the kernel said when it came (at 1,540 µs), and of 300, of
/// which it did not.
pub fn unseen(path: &Path) {
    let pid = task(300).pid;
    let hidden = Gap { cause: GapCause::Hidden, cpu: 0, count: 1, pid, ..sched_gap() };
    let gap = Gap { first: OPEN + 1_610 * US, last: OPEN + 1_800 * US, ..hidden };
    tape_and(path, &[gap], |builder| {
        let mut s = Sched(builder);
        s.wakeup(1_500, 1, None, 200, false);
        let known = Came { ns: 60 * US, at_most: false };
        s.switch_after(1_600, 0, (200, Some(known)), 0, IDLE);
        s.wakeup(1_700, 1, None, 300, false);
        let since = Came { ns: 190 * US, at_most: true };
        s.switch_after(1_800, 0, (300, Some(since)), 0, S);
    });
}
