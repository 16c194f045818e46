//! A machine of 16 CPUs on which half a million calls a second are made.
//!
//! A window is made from its number alone, so many can be made at a time. On each CPU one process after the other makes a few dozen
//! calls, none of which overlap; those that wait ([`super::sleepers`]) and those that come and go ([`super::people`]) are beside them.

use anyhow::{Result, bail};
use systape_format::model::{
    Call, CallState, Checkpoint, ClockSample, CommandLine, FD_FIRST, FD_NONE, Fd, FdTable, InFlight, ProcessEvent,
    ProcessKind, SIGNAL_GROUP, Session, SignalEvent, SignalInfo, SignalKind, SyscallRow,
};
use systape_format::segment::FULL_ROWS;
use systape_format::{ByteStatus, Family};

use super::names;
use super::people::{Item, People, Step};
use super::rng::SplitMix;
use super::sleepers::{SynthSleeper, Wait};
use super::window::{Row, SynthWindow};

/// Start of the recording: 1,000 s after boot.
const OPEN: u64 = 1_000_000_000_000;
/// Real time at boot: 2026-01-01.
const BOOT: u64 = 1_767_225_600_000_000_000;
/// ns from one call to the next, on the average.
const STEP: u64 = 2_000;
const CPUS: usize = 16;
/// Processes that are busy in a window: always there, and born.
const BUSY: (usize, usize) = (192, 64);
/// As often the standing processes that are busy change: each has its turn, however long the tape.
const SHIFTS: u64 = 150;
/// Descriptors that calls are made on.
const FDS: std::ops::Range<u32> = 3..10;
/// AT_FDCWD as a register has it.
const CWD: u64 = 0xffff_ff9c;
const ENOENT: u16 = 2;
const EAGAIN: u16 = 11;
const SIGKILL: u32 = 9;

/// How large.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Syscalls.
    pub calls: u64,
    /// Processes, half of which are there from the start.
    pub processes: u32,
    /// Which machine it is; 0: the only one. Others have other processes and calls.
    pub host: u32,
}

/// What a call's first argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// A file, by descriptor.
    File,
    /// A socket, by descriptor.
    Socket,
    /// The working directory; a path follows.
    Path,
    /// An address.
    Address,
}

/// A kind of call: number, share of all in 64ths, first argument, what it fails with and how often in 256.
#[derive(Clone, Copy, Debug)]
struct Kind {
    nr: u32,
    share: usize,
    first: First,
    fails: (u16, u64),
}

const fn kind(nr: u32, share: usize, first: First, errno: u16, often: u64) -> Kind {
    Kind { nr, share, first, fails: (errno, often) }
}

/// read, write, futex, recvfrom, sendto, close, openat, newfstatat, fstat, lseek, mmap, munmap, rt_sigprocmask.
const KINDS: [Kind; 13] = [
    kind(0, 15, First::File, 0, 0),
    kind(1, 11, First::File, 0, 0),
    kind(202, 8, First::Address, EAGAIN, 20),
    kind(45, 7, First::Socket, EAGAIN, 60),
    kind(44, 6, First::Socket, 0, 0),
    kind(3, 3, First::File, 0, 0),
    kind(257, 3, First::Path, ENOENT, 50),
    kind(262, 3, First::Path, ENOENT, 80),
    kind(5, 2, First::File, 0, 0),
    kind(8, 2, First::File, 0, 0),
    kind(9, 1, First::Address, 0, 0),
    kind(11, 1, First::Address, 0, 0),
    kind(14, 2, First::Address, 0, 0),
];
/// Further calls of a window's table, behind those of `KINDS`: clone, execve, exit_group, kill, and the waits.
const OTHERS: [u32; 7] = [56, 59, 231, 62, 232, 230, 7];

/// See the module.
#[derive(Debug)]
pub struct SynthWorld {
    plan: Plan,
    close: u64,
    segments: u64,
    people: People,
    items: Vec<Item>,
    sleepers: Vec<SynthSleeper>,
    durations: Vec<u32>,
    kinds: Vec<u8>,
}

/// A process that is busy in a window.
struct Busy {
    /// Indices into the window's tables.
    task: u32,
    names: [u32; FDS.end as usize],
    process: u32,
}

/// A CPU in a window.
struct Lane {
    busy: Vec<Busy>,
    /// Who runs, and calls it still makes.
    now: usize,
    left: u64,
    /// End of the last call.
    last: u64,
}

const SEED: u64 = 0x7a9e;

/// Where the numbers of a machine begin.
fn seed(host: u32) -> u64 {
    SEED ^ (u64::from(host) << 32)
}

impl SynthWorld {
    /// Lays it out; windows are made when they are asked for.
    ///
    /// # Errors
    /// The sizes make no sense together.
    pub fn new(plan: Plan) -> Result<Self> {
        if plan.processes < 100 || plan.calls / 100 < u64::from(plan.processes) || plan.calls > 100_000_000_000 {
            bail!("a tape has 100 processes or more, 100 calls or more for each, and 100 billion calls at most");
        }
        let close = OPEN + plan.calls * STEP;
        let seed = seed(plan.host);
        let people = People::new(seed, plan.processes, OPEN, close);
        let mut rng = SplitMix::of(seed, 1);
        Ok(Self {
            plan,
            close,
            segments: plan.calls.div_ceil(FULL_ROWS as u64),
            items: people.items(),
            sleepers: people.sleepers().map(|process| SynthSleeper::new(seed, process, OPEN)).collect(),
            people,
            durations: (0..4096).map(|_| rng.log_normal(900.0, 1.1).max(90.0) as u32).collect(),
            kinds: KINDS.iter().zip(0u8..).flat_map(|(kind, at)| std::iter::repeat_n(at, kind.share)).collect(),
        })
    }

    /// Windows there are.
    pub fn windows(&self) -> u64 {
        self.segments
    }

    /// Calls there are.
    pub fn calls(&self) -> u64 {
        self.plan.calls
    }

    /// The end of the recording.
    pub fn close(&self) -> u64 {
        self.close
    }

    /// The middle of the recording, whole seconds from its start.
    pub fn middle(&self) -> u64 {
        (self.close - OPEN) / 2_000_000_000
    }

    /// Calls before window `at`.
    fn calls_before(&self, at: u64) -> u64 {
        (u128::from(self.plan.calls) * u128::from(at) / u128::from(self.segments)) as u64
    }

    /// When window `at` begins.
    pub fn start_of(&self, at: u64) -> u64 {
        OPEN + self.calls_before(at) * STEP
    }

    /// Window `at`.
    pub fn window(&self, at: u64) -> SynthWindow {
        let (start, end) = (self.start_of(at), self.start_of(at + 1));
        let calls = KINDS.iter().map(|kind| kind.nr).chain(OTHERS).map(|nr| Call { abi: 1, nr }).collect();
        let mut window = SynthWindow { start, end, calls, ..SynthWindow::default() };
        self.steps(&mut window);
        self.waits(&mut window, at + 1 == self.segments);
        let rows = self.calls_before(at + 1) - self.calls_before(at);
        self.work(at, rows.saturating_sub(window.rows.len() as u64), &mut window);
        window.rows.sort_by_key(|row| row.row.end);
        window
    }

    /// Births and deaths.
    fn steps(&self, window: &mut SynthWindow) {
        let from = self.items.partition_point(|item| item.ts < window.start);
        let to = self.items.partition_point(|item| item.ts < window.end);
        self.items[from..to].iter().for_each(|item| self.step(*item, window));
    }

    fn step(&self, Item { ts, process, step }: Item, window: &mut SynthWindow) {
        let (people, pid) = (&self.people, People::pid(process));
        let execed = !matches!(step, Step::Fork | Step::Child);
        let mut task = |process: u32, execed: bool| {
            window.tasks.push(people.task(process, execed));
            window.tasks.len() as u32 - 1
        };
        let parent = people.parent(process);
        let mut call = |task: u32, nr: u32, dur: u64, args: &[u64], ret: i64, state: CallState| {
            let call = window.calls.iter().position(|call| call.nr == nr).unwrap_or(0) as u32;
            let mut row = SyscallRow {
                end: ts,
                dur,
                cpu: process % CPUS as u32,
                task,
                call,
                ret,
                state,
                ..SyscallRow::default()
            };
            row.args[..args.len()].copy_from_slice(args);
            window.rows.push(Row { row, path: None });
        };
        let (complete, stack) = (CallState::Complete, 0x7ffd_1000_0000 + u64::from(process));
        match step {
            Step::Fork => {
                let event = ProcessEvent::new(ts, ProcessKind::Fork, task(process, false));
                window.processes.push(ProcessEvent { parent: task(parent, true), ..event });
            }
            Step::Child => call(task(process, false), 56, 0, &[0x0120_0011], 0, CallState::CloneChild),
            Step::Clone => call(task(parent, true), 56, 150_000, &[0x0120_0011], pid.into(), complete),
            Step::Exec => {
                let event = ProcessEvent::new(ts, ProcessKind::Exec, task(process, true));
                let argv = people.argv(process);
                let path = format!("/usr/bin/{}", people.program(process)).into_bytes();
                window.processes.push(ProcessEvent { path, argv_full: argv.len() as u64, argv, ..event });
            }
            Step::Execve => call(task(process, true), 59, 450_000, &[stack, stack + 64, stack + 128], 0, complete),
            Step::Signal => {
                let event = SignalEvent::new(ts, SignalKind::Generate, SIGKILL, task(process, execed));
                let argv = people.argv(0);
                window.signals.push(SignalEvent {
                    info: SignalInfo::Siginfo,
                    flags: SIGNAL_GROUP,
                    sender: Some(task(0, true)),
                    call: window.calls.iter().position(|call| call.nr == 62).map(|at| at as u32),
                    call_args: [pid.into(), SIGKILL.into(), 0, 0],
                    si_pid: People::pid(0),
                    target_ancestors: people.ancestors(process),
                    argv_status: ByteStatus::Whole,
                    argv_full: argv.len() as u64,
                    argv,
                    ..event
                });
            }
            Step::Kill => call(task(0, true), 62, 40_000, &[pid.into(), SIGKILL.into()], 0, complete),
            Step::ExitGroup => call(task(process, true), 231, 0, &[0], 0, CallState::NoReturn),
            Step::Exit(exit_code) => {
                let event = ProcessEvent::new(ts, ProcessKind::Exit, task(process, true));
                window.processes.push(ProcessEvent { exit_code, group_dead: true, ..event });
            }
        }
    }

    /// Long calls that end here; at the end of the recording also those that do not end.
    fn waits(&self, window: &mut SynthWindow, last: bool) {
        for sleeper in &self.sleepers {
            let ended = sleeper.ending(window.start, window.end, OPEN).map(|wait| (wait, CallState::Complete));
            let open = sleeper.at(self.close, OPEN).filter(|_| last);
            let open = open.map(|wait| (Wait { end: self.close, ..wait }, CallState::InFlight));
            let waits: Vec<_> = ended.chain(open).collect();
            if waits.is_empty() {
                continue;
            }
            let task = window.tasks.len() as u32;
            window.tasks.push(self.people.task(sleeper.process, true));
            let call = window.calls.iter().position(|call| call.nr == sleeper.nr).unwrap_or(0) as u32;
            let fd = if sleeper.nr == 232 { FD_FIRST + window.names.len() as u32 } else { FD_NONE };
            if fd != FD_NONE {
                window.names.push(b"anon_inode:[eventpoll]".to_vec());
            }
            for (wait, state) in waits {
                let ret = i64::from(state == CallState::Complete && matches!(sleeper.nr, 7 | 232));
                let (dur, cpu) = (wait.end - wait.start, sleeper.process % CPUS as u32);
                let args = wait_args(sleeper);
                let row =
                    SyscallRow { end: wait.end, dur, cpu, task, call, ret, state, args, fd, ..SyscallRow::default() };
                window.rows.push(Row { row, path: None });
            }
        }
    }

    /// The many short calls.
    fn work(&self, at: u64, rows: u64, window: &mut SynthWindow) {
        let mut lanes = self.lanes(at, window);
        let mut rng = SplitMix::of(seed(self.plan.host) ^ 0x80_77, at);
        let span = window.end - window.start;
        window.rows.reserve(rows as usize);
        for n in 0..rows {
            let bits = rng.next();
            let cpu = (bits % CPUS as u64) as usize;
            let end = window.start + (n * span + (((bits >> 48) * span) >> 16)) / rows;
            let lane = &mut lanes[cpu];
            if lane.left == 0 {
                let (a, b) = (rng.next(), rng.next());
                // some do more than others
                lane.now = ((a % lane.busy.len() as u64).min(b % lane.busy.len() as u64)) as usize;
                lane.left = 8 + (a >> 32) % 48;
            }
            lane.left -= 1;
            let room = end.saturating_sub(lane.last) / 8 * 7;
            let dur = u64::from(self.durations[(bits >> 4) as usize % 4096]).min(room);
            lane.last = end;
            let mut row = self.row(&mut lane.busy[lane.now], bits >> 16, window);
            (row.row.end, row.row.dur, row.row.cpu) = (end, dur, cpu as u32);
            window.rows.push(row);
        }
    }

    /// A call of that process; 32 bits say which.
    fn row(&self, busy: &mut Busy, bits: u64, window: &mut SynthWindow) -> Row {
        let at = self.kinds[bits as usize % 64];
        let kind = KINDS[usize::from(at)];
        let failed = (bits >> 9) % 256 < kind.fails.1;
        let fd = match kind.first {
            First::Socket => 3 + (bits >> 22) % 2,
            _ => 6 + (bits >> 22) % 4,
        } as u32;
        // a program has a buffer for each file, and mostly fills it
        let address = 0x7f00_0000_0000 + (u64::from(busy.process) << 20) + u64::from(fd) * 65_536;
        let full = 64u64 << ((busy.process + fd) % 8);
        let size = if (bits >> 28) & 15 == 0 { (bits >> 17) % full + 1 } else { full };
        let mut row = SyscallRow { task: busy.task, call: at.into(), ..SyscallRow::default() };
        let mut path = None;
        match kind.first {
            First::File | First::Socket => {
                row.fd = FD_FIRST + busy.name(fd, window);
                row.args = [fd.into(), address, size, 0, 0, 0];
                row.ret = match kind.nr {
                    3 | 5 => 0,
                    _ => size as i64,
                };
                match kind.nr {
                    3 => row.args = [fd.into(), 0, 0, 0, 0, 0],
                    5 => row.args[2] = 0,
                    8 => row.args = [fd.into(), size, 0, 0, 0, 0],
                    _ => {}
                }
            }
            First::Path => {
                path = Some(busy.name(fd, window));
                row.args = [CWD, address, if kind.nr == 257 { 0x80000 } else { address + 512 }, 0, 0, 0];
                row.ret = if kind.nr == 257 { fd.into() } else { 0 };
            }
            First::Address => match kind.nr {
                202 => row.args = [address, 129, 1, 0, 0, 0],
                9 => (row.args, row.ret) = ([0, size * 64, 3, 0x22, 0xffff_ffff, 0], address as i64),
                11 => row.args = [address, size * 64, 0, 0, 0, 0],
                _ => row.args = [(bits >> 17) % 3, address, 0, 8, 0, 0],
            },
        }
        if failed {
            (row.errno, row.ret) = (kind.fails.0, 0);
        }
        Row { row, path }
    }

    /// Who is busy on each CPU.
    fn lanes(&self, at: u64, window: &mut SynthWindow) -> Vec<Lane> {
        let mut rng = SplitMix::of(seed(self.plan.host) ^ 0x1a_4e, at / self.segments.div_ceil(SHIFTS));
        let mut busy: Vec<u32> = (0..BUSY.0).map(|_| self.people.standing(rng.next())).collect();
        let living: Vec<u32> = self.people.living(window.start, window.end).collect();
        if !living.is_empty() {
            let mut rng = SplitMix::of(seed(self.plan.host) ^ 0x11_fe, at);
            busy.extend((0..BUSY.1).map(|_| living[rng.below(living.len() as u64) as usize]));
        }
        busy.sort_unstable();
        busy.dedup();
        let mut lanes: Vec<Lane> =
            (0..CPUS).map(|_| Lane { busy: Vec::new(), now: 0, left: 0, last: window.start }).collect();
        for (n, process) in busy.into_iter().enumerate() {
            let task = window.tasks.len() as u32;
            window.tasks.push(self.people.task(process, true));
            lanes[n % CPUS].busy.push(Busy { task, names: [u32::MAX; FDS.end as usize], process });
        }
        lanes
    }

    /// What the tape says of itself.
    pub fn session(&self) -> Session {
        let Plan { calls, processes, host } = self.plan;
        Session {
            clock: clock(OPEN),
            hostname: if host == 0 { b"synthetic".to_vec() } else { format!("synthetic-{host}").into_bytes() },
            kernel_release: "synthetic".into(),
            machine: "x86_64".into(),
            cpus: CPUS as u32,
            page_size: 4096,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            arguments: format!("bench tape --calls {calls} --processes {processes} --host {host}")
                .split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect(),
            target: "system-wide, made up".into(),
            string_limit: 4096,
            window_open: OPEN,
            users: vec![(0, b"root".to_vec())],
            cgroups: (100..150).map(|id| (id, format!("/jobs/{id}").into_bytes())).collect(),
            families: vec![Family::Syscall, Family::Process, Family::Signal],
            ..Session::default()
        }
    }

    /// Everything there is when window `at` begins.
    pub fn checkpoint(&self, at: u64) -> Checkpoint {
        let ts = self.start_of(at);
        let people = &self.people;
        let present = || people.present(ts);
        let table = |process: u32| FdTable {
            upid: process + 1,
            // calls open and close others
            complete: false,
            cwd: b"/".to_vec(),
            fds: (0..FDS.end).map(|fd| open_file(process, fd)).collect(),
            thread: 0,
            own: 0,
        };
        let waiting = |sleeper: &SynthSleeper| {
            let wait = sleeper.at(ts, OPEN)?;
            Some(InFlight {
                utid: sleeper.process + 1,
                call: Call { abi: 1, nr: sleeper.nr },
                start: wait.start,
                args: wait_args(sleeper).to_vec(),
                task_state: b'S',
            })
        };
        let command = |process| {
            let argv = people.argv(process);
            CommandLine { upid: process + 1, full: argv.len() as u64, argv }
        };
        Checkpoint {
            ts,
            clock: clock(ts),
            tasks: present().map(|process| people.task(process, true)).collect(),
            fd_tables: present().map(table).collect(),
            in_flight: self.sleepers.iter().filter_map(waiting).collect(),
            run: Vec::new(),
            commands: present().map(command).collect(),
            source: if at == 0 { "snapshot" } else { "tracked" }.into(),
        }
    }
}

impl Busy {
    /// What its descriptor stands for, as an index into the window's names.
    fn name(&mut self, fd: u32, window: &mut SynthWindow) -> u32 {
        let name = &mut self.names[fd as usize];
        if *name == u32::MAX {
            *name = window.names.len() as u32;
            window.names.push(names::behind(self.process, fd));
        }
        *name
    }
}

fn open_file(process: u32, fd: u32) -> Fd {
    Fd { fd: fd.cast_signed(), path: names::behind(process, fd), cloexec: fd > 2 }
}

fn wait_args(sleeper: &SynthSleeper) -> [u64; 6] {
    let address = 0x7f80_0000_0000 + (u64::from(sleeper.process) << 20);
    match sleeper.nr {
        232 => [10, address, 64, u64::MAX, 0, 0],
        202 => [address, 128, 0, 0, 0, 0],
        230 => [1, 0, address, 0, 0, 0],
        _ => [address, 2, u64::MAX, 0, 0, 0],
    }
}

/// Clocks at `ts`: nothing was ever set, nothing ever slept.
pub(super) fn clock(ts: u64) -> ClockSample {
    ClockSample { monotonic: ts, boottime: ts, realtime: BOOT + ts, width: 100 }
}
