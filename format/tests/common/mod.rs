//! Tapes made by code, and what reading them must give.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::sync::Arc;

use systape_format::exercise::{Contents, read_segments};
use systape_format::header::HEADER_LEN;
use systape_format::model::Class;
use systape_format::model::{
    Ancestor, Attached, BlockCause, BlockHolds, BlockIo, BlockLayer, CommandLine, Container, DeviceLink, ERRNO_ANY,
    Extent, Frame, Function, Kept, LedgerReason, LedgerRow, LeftOut, Mapping, MappingKind, NetState, Node, OomMemory,
    RecordedFamilies, RunState, Sample, SignalEvent, SignalInfo, SignalKind, Sleeper, StackMode, StackOf,
    StackSettings, StackStatus, Stacks, Switch, Symbol, Symbols, UringOp, Wakeup,
};
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::{Field, TableRows};
use systape_format::{
    ByteStatus, Call, CallState, Captured, Checkpoint, ClockSample, Encoder, End, Family, Fd, FdTable, Gap, GapCause,
    InFlight, ProcessEvent, ProcessKind, SegmentBuilder, SegmentData, Session, SyscallFormat, SyscallRow, Tape, Task,
    Writer,
};

pub const ID: [u8; 16] = *b"tape of a test 1";

pub fn clock(t: u64) -> ClockSample {
    ClockSample { monotonic: t, boottime: t.wrapping_add(1), realtime: t.wrapping_add(2), width: 3 }
}

pub fn session() -> Session {
    Session {
        clock: clock(5),
        boot_id: "b007".to_owned(),
        hostname: b"node\xff7".to_vec(),
        machine_id_hash: 17,
        utc_offset_seconds: -3600,
        kernel_release: "6.18.0".to_owned(),
        kernel_version: "#1".to_owned(),
        machine: "x86_64".to_owned(),
        cpus: 2,
        page_size: 4096,
        tool_version: "0.1.0".to_owned(),
        arguments: vec![b"record".to_vec(), b"-a\xfe".to_vec()],
        target: "system-wide".to_owned(),
        selection: vec![b"!close".to_vec()],
        call_filters: vec![b"--duration 10ms".to_vec()],
        string_limit: 256,
        window_open: 900,
        syscalls: vec![SyscallFormat {
            abi: 1,
            nr: 0,
            name: "read".to_owned(),
            arg_names: vec!["fd".to_owned(), "buf".to_owned()],
            arg_types: vec!["unsigned int".to_owned(), "char *".to_owned()],
        }],
        users: vec![(0, b"root".to_vec())],
        devices: vec![(8, 1, b"sda1".to_vec())],
        device_links: vec![
            DeviceLink { dev: (8, 1), disk: Some((8, 0)), first_sector: 2048, lower: Vec::new() },
            DeviceLink { dev: (253, 0), disk: None, first_sector: 0, lower: vec![(8, 1), (8, 2)] },
        ],
        cgroups: vec![(1, b"/".to_vec())],
        containers: vec![container("4d")],
        cut: Some(systape_format::model::Window { from: 901, to: 5000 }),
        cut_tasks: true,
        imported: "strace".into(),
        recording: vec![7; 16],
        kept: Some(Kept { last: 30, ring_bytes: 1 << 28, full: true, recording_open: 7 }),
        labels: vec![b"host=web3".to_vec(), b"run=7".to_vec()],
        env_keys: vec![b"JOB".to_vec()],
        ring_bytes: 1 << 20,
        notes: vec![b"no kallsyms".to_vec()],
        families: vec![Family::Syscall, Family::Sched, Family::IoUring],
        stacks: StackSettings {
            mode: StackMode::Dwarf,
            copy_limit: 65536,
            on: StackOf::ALL.to_vec(),
            kernel: vec![StackOf::Sample, StackOf::Switch],
            frequency: 99,
            min_dur: 7,
        },
        redacted: Vec::new(),
        cpu_list: vec![0, 3],
        with_self: true,
        needs: true,
        registers_unknown: true,
        extent: Extent::Some,
        preemptible: true,
        left_out: vec![LeftOut {
            family: Family::Block,
            program: "block_io_start".to_owned(),
            reason: "no".to_owned(),
        }],
    }
}

pub fn task(i: u32) -> Task {
    Task {
        tid: 100 + i,
        pid: 100 + i / 2,
        start_ns: 7 * u64::from(i),
        leader_start_ns: 7,
        comm: format!("worker{i}").into_bytes(),
        exe: b"/usr/bin/w\xf0rk".to_vec(),
        uid: 1000,
        cgroup_id: 1,
        utid: i + 1,
        upid: i / 2 + 1,
        ns_tid: 0,
        ns_pid: 0,
        ppid: 1,
        recorded: RecordedFamilies::of(&[Family::Sched, Family::Process]),
        env: if i == 0 { Vec::new() } else { format!("JOB={i}\0").into_bytes() },
    }
}

pub fn container(id: &str) -> Container {
    Container {
        id: id.repeat(32).into_bytes(),
        name: b"web".to_vec(),
        image: b"nginx:1".to_vec(),
        pod: b"web-7".to_vec(),
        namespace: b"prod".to_vec(),
    }
}

pub fn checkpoint(ts: u64) -> Checkpoint {
    Checkpoint {
        ts,
        clock: clock(ts),
        tasks: (0..3).map(task).collect(),
        fd_tables: vec![FdTable {
            upid: 1,
            complete: true,
            cwd: b"/root".to_vec(),
            fds: vec![
                Fd { fd: 0, path: b"/dev/null".to_vec(), cloexec: false },
                Fd { fd: 3, path: b"pipe:[17]".to_vec(), cloexec: true },
            ],
            thread: 3,
            own: 2,
        }],
        in_flight: vec![InFlight {
            utid: 2,
            call: Call { abi: 1, nr: 7 },
            start: 3,
            args: vec![1, 2],
            task_state: b'S',
        }],
        run: vec![RunState { utid: 2, state: b'R', on_cpu: true, cpu: 1, last_run: ts, seen: ts.saturating_add(7) }],
        commands: vec![CommandLine { upid: 1, argv: b"sh\0-c\0\xff".to_vec(), full: 900 }],
        source: "snapshot".to_owned(),
    }
}

pub fn end(t: u64) -> End {
    End {
        clock: clock(t),
        window_close: t,
        reason: "command exited".to_owned(),
        events: vec![(Family::Syscall, 12)],
        lost: vec![(Family::Process, 1)],
        command_exit: -1,
        self_cpu_ns: 5,
        self_peak_rss: 6,
        own_calls: 7,
    }
}

/// Events that are neither calls nor process life.
#[derive(Clone, Debug, Default)]
pub struct Events {
    pub switches: Vec<Switch>,
    pub wakeups: Vec<Wakeup>,
    pub blocks: Vec<BlockIo>,
    pub signals: Vec<SignalEvent>,
    pub nets: Vec<NetState>,
    pub urings: Vec<UringOp>,
    pub samples: Vec<Sample>,
    pub sleepers: Vec<Sleeper>,
    pub ledger: Vec<LedgerRow>,
    pub tables: Vec<TableRow>,
}

/// A row of a table that the tape defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    pub def: Arc<TableDef>,
    pub ts: u64,
    pub values: Vec<Value>,
}

/// One value of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Bytes(Option<Vec<u8>>),
    Task(Option<u32>),
    /// Frames from the innermost outwards, of user code; None = no stack.
    Stack(Option<Vec<Place>>),
}

impl TableRow {
    fn push_to(&self, b: &mut SegmentBuilder) {
        let unread = self.def.unread_column().and_then(|at| self.values.get(at - 1));
        let unread = |at: usize| matches!(unread, Some(Value::Number(bits)) if bits >> at & 1 != 0);
        let field = |value: &'_ Value| match value {
            Value::Number(number) => Field::Number(*number),
            Value::Task(Some(task)) => Field::Task(*task),
            Value::Bytes(None) | Value::Task(None) | Value::Stack(_) => Field::Unknown,
            Value::Bytes(Some(_)) => unreachable!("below"),
        };
        let fields: Vec<Field<'_>> = self
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| match value {
                _ if unread(at) || Some(at + 1) == self.def.unread_column() => Field::Unknown,
                Value::Bytes(Some(bytes)) => Field::Bytes(bytes),
                other => field(other),
            })
            .collect();
        let row = b.push_table_row(&self.def, self.ts, &fields).unwrap();
        if let Some(Value::Stack(Some(user))) = self.values.last() {
            let stack = |of| Stack { of, row, user: user.clone(), kernel: vec![], status: StackStatus::Complete };
            stack(StackOf::Row).push_to(b);
            // of two stacks the first is kept
            Stack { status: StackStatus::Late, user: vec![], ..stack(StackOf::Row) }.push_to(b);
        }
    }

    /// All rows of tables as they were read.
    pub fn all(tables: &[TableRows], stacks: &Stacks) -> Vec<Self> {
        let row = |table: &TableRows, at: usize| {
            let value = |(column, values): (&ColumnDef, &Vec<u64>)| match column.ty {
                Type::Str => Value::Bytes(table.string(values[at]).map(<[u8]>::to_vec)),
                Type::Task => Value::Task(u32::try_from(values[at]).unwrap().checked_sub(1)),
                Type::Stack => Value::Stack(stacks.of_code(values[at]).map(|ends| {
                    assert_eq!((ends.kernel, ends.status), (None, StackStatus::Complete));
                    Stack::places(stacks, ends.user)
                })),
                _ => Value::Number(values[at]),
            };
            let values = table.def.columns.iter().skip(1).zip(&table.columns).map(value).collect();
            Self { def: Arc::clone(&table.def), ts: table.ts[at], values }
        };
        tables.iter().flat_map(|table| (0..table.ts.len()).map(move |at| row(table, at))).collect()
    }
}

/// Two tables that tapes of tests define.
pub fn table_defs() -> [Arc<TableDef>; 2] {
    let column = |name: &'static str, ty, class| ColumnDef::stored(name, ty, class, "of a test");
    let table = |name: &'static str, columns: Vec<ColumnDef>| {
        Arc::new(TableDef { name: name.into(), doc: "of a test".into(), columns: columns.into() })
    };
    [
        table(
            "writeback:written",
            vec![
                column("ts", Type::Time, None),
                column("task", Type::Task, None),
                column("file", Type::Str, Some(Class::Path)),
                column("what", Type::Str, None),
                column("ret", Type::Int, None),
                column("stack", Type::Stack, None),
            ],
        ),
        table(
            "x:y",
            vec![
                column("ts", Type::Time, None),
                column("address", Type::Hex, None),
                column("hot", Type::Flag, None),
                column("unread", Type::Unread, None),
            ],
        ),
    ]
}

impl Events {
    pub fn push_to(&self, b: &mut SegmentBuilder) {
        fn push<T: Clone>(events: &[T], mut push: impl FnMut(T) -> u32) {
            events.iter().enumerate().for_each(|(i, e)| assert_eq!(push(e.clone()), i as u32));
        }
        push(&self.switches, |e| b.push_switch(e));
        push(&self.wakeups, |e| b.push_wakeup(e));
        push(&self.blocks, |e| b.push_block(e));
        push(&self.signals, |e| b.push_signal(e));
        push(&self.samples, |e| b.push_sample(e));
        push(&self.sleepers, |e| b.push_sleeper(e));
        self.nets.iter().for_each(|e| b.push_net(e.clone()));
        self.urings.iter().for_each(|&e| b.push_uring(e));
        self.ledger.iter().for_each(|e| b.push_ledger(e.clone()));
        self.tables.iter().for_each(|row| row.push_to(b));
    }

    /// In the order the tape must have.
    pub fn sorted(mut self) -> Self {
        self.switches.sort_by_key(|e| e.ts);
        self.wakeups.sort_by_key(|e| e.ts);
        self.blocks.sort_by_key(|e| e.complete);
        self.signals.sort_by_key(|e| e.ts);
        self.nets.sort_by_key(|e| e.ts);
        self.urings.sort_by_key(|e| e.ts);
        self.samples.sort_by_key(|e| e.ts);
        self.sleepers.sort_by_key(|e| e.ts);
        self.ledger.sort_by_key(|e| e.first);
        // a table each, in the order in which they were first met
        let place = |def: &Arc<TableDef>| self.tables.iter().position(|row| row.def == *def);
        let mut tables: Vec<(Option<usize>, TableRow)> =
            self.tables.iter().map(|row| (place(&row.def), row.clone())).collect();
        tables.sort_by_key(|(place, row)| (*place, row.ts));
        self.tables = tables.into_iter().map(|(_, row)| row).collect();
        self
    }

    /// Times of the events of a kind that can have stacks.
    pub fn times(&self, of: StackOf) -> Vec<u64> {
        match of {
            StackOf::Syscall => Vec::new(),
            StackOf::Switch => self.switches.iter().map(|e| e.ts).collect(),
            StackOf::Wakeup => self.wakeups.iter().map(|e| e.ts).collect(),
            StackOf::Block => self.blocks.iter().map(|e| e.complete).collect(),
            StackOf::Signal => self.signals.iter().map(|e| e.ts).collect(),
            StackOf::Sample => self.samples.iter().map(|e| e.ts).collect(),
            StackOf::Asleep => self.sleepers.iter().map(|e| e.ts).collect(),
            StackOf::Row => Vec::new(),
        }
    }
}

/// Calls that were counted; without a task neither the error nor the sizes are known.
pub fn counted(first: u64, task: Option<u32>) -> LedgerRow {
    LedgerRow {
        task,
        call: 1,
        reason: if task.is_some() { LedgerReason::Filtered } else { LedgerReason::Lost },
        errno: if task.is_some() { 11 } else { ERRNO_ANY },
        state: CallState::Complete,
        cpu: 1,
        count: 5,
        sum: 900,
        min: 100,
        max: 300,
        first,
        last: first + 30,
        sizes: if task.is_some() { vec![(6, 2), (7, 1), (8, 2)] } else { Vec::new() },
    }
}

/// A few of each kind, of tasks 0 and 1 and calls 0 and 1, some before the window that begins at `start`.
pub fn events(start: u64) -> Events {
    let switch = |ts, cpu, prev, next| Switch {
        ts: start + ts - 10,
        cpu,
        prev,
        next,
        prev_state: 1,
        preempted: prev == 1,
        ..Switch::default()
    };
    let ancestor = |pid| Ancestor { pid, start_ns: 7, comm: b"b\xffsh".to_vec() };
    let deliver = SignalEvent {
        ts: start + 91,
        kind: SignalKind::Deliver,
        sig: 9,
        code: -6,
        errno: 0,
        info: SignalInfo::Siginfo,
        result: 0,
        flags: 160,
        target: 1,
        sender: None,
        call: None,
        call_args: [0; 4],
        call_path: Vec::new(),
        si_pid: 100,
        si_uid: 1000,
        addr: 0,
        ip: 1,
        sender_ancestors: Vec::new(),
        target_ancestors: Vec::new(),
        argv: Vec::new(),
        argv_status: ByteStatus::Whole,
        argv_full: 0,
        oom: OomMemory::default(),
    };
    let generate = SignalEvent {
        ts: start + 90,
        kind: SignalKind::Generate,
        sender: Some(0),
        call: Some(1),
        call_args: [100, 9, 0, u64::MAX],
        call_path: b"/dev/pts/0".to_vec(),
        sender_ancestors: vec![ancestor(2), ancestor(1)],
        target_ancestors: vec![ancestor(1)],
        argv: b"kill\0-9".to_vec(),
        argv_full: 8,
        ..deliver.clone()
    };
    let victim = SignalEvent {
        ts: start + 95,
        kind: SignalKind::OomVictim,
        info: SignalInfo::Unknown,
        oom: OomMemory { total_vm: 1 << 40, anon: 5 << 20, file: 0, shmem: 1 },
        ..deliver.clone()
    };
    let io = BlockIo {
        complete: start + 500,
        queued: start - 100,
        issued: start - 90,
        dev: 8 << 20,
        sector: 1 << 40,
        bytes: 4096,
        flags: 0x8801,
        layer: BlockLayer::Request,
        origin: Some(1),
        cause: BlockCause::Dirtier,
        owner: Some(0),
        cgroup_id: 77,
        inode: 1 << 33,
        holds: BlockHolds::File,
        file: 1 << 40,
        merged: 3,
        ..BlockIo::default()
    };
    let bio = BlockIo { complete: start + 400, queued: start + 300, issued: 0, layer: BlockLayer::Bio, ..io.clone() };
    let state = NetState {
        ts: start + 60,
        task: Some(1),
        sender: None,
        socket: 1,
        family: 2,
        protocol: 6,
        old_state: 7,
        new_state: 2,
        sport: 40000,
        dport: 443,
        saddr: vec![10, 0, 0, 1],
        daddr: vec![0xfe; 16],
    };
    Events {
        switches: vec![switch(20, 0, 0, 1), switch(30, 0, 1, 0), switch(5, 1, 1, 1), switch(25, 1, 0, 1)],
        wakeups: vec![
            Wakeup {
                ts: start + 14,
                cpu: 1,
                waker: Some(0),
                wakee: 1,
                target_cpu: 0,
                new: false,
                softirq: true,
                ..Wakeup::default()
            },
            Wakeup {
                ts: start + 13,
                cpu: 0,
                waker: None,
                wakee: 0,
                target_cpu: 1,
                new: true,
                softirq: false,
                ..Wakeup::default()
            },
        ],
        blocks: vec![io, bio],
        signals: vec![victim, generate, deliver],
        nets: vec![
            NetState { ts: start + 61, task: None, sender: Some(1), old_state: 2, new_state: 1, ..state.clone() },
            state,
        ],
        urings: vec![UringOp { ts: start + 7, task: 1, op: 22 }, UringOp { ts: start + 8, task: 0, op: 255 }],
        ledger: vec![counted(start + 60, Some(1)), counted(start + 20, None)],
        samples: vec![
            Sample { ts: start + 70, cpu: 1, task: 1, kernel: true },
            Sample { ts: start + 40, cpu: 0, task: 0, kernel: false },
        ],
        tables: {
            let [written, other] = table_defs();
            let row = |ts, task, file: Option<&[u8]>, ret: i64| TableRow {
                def: Arc::clone(&written),
                ts: start + ts,
                values: vec![
                    Value::Task(task),
                    Value::Bytes(file.map(<[u8]>::to_vec)),
                    Value::Bytes(Some(b"pages\xff".to_vec())),
                    Value::Number(ret.cast_unsigned()),
                    // one that a call has too, none, one of its own
                    Value::Stack(match ret {
                        0 => Some(user_stack(0x1000)),
                        4096 => None,
                        _ => Some(vec![(mapping(3), 0x77, 1), (mapping(0), 0x2000, 0)]),
                    }),
                ],
            };
            vec![
                row(33, Some(1), Some(b"/srv/x"), -5),
                TableRow {
                    def: other,
                    ts: start + 2,
                    values: vec![Value::Number(u64::MAX), Value::Number(1), Value::Number(0)],
                },
                row(31, None, None, 4096),
                row(32, Some(0), Some(b"/srv/x"), 0),
            ]
        },
        sleepers: vec![
            Sleeper { ts: start + 4, task: 1, state: b'D' },
            Sleeper { ts: start + 3, task: 0, state: b'S' },
        ],
    }
}

/// A frame with where it is, as equal in every segment.
pub type Place = (Mapping, u64, u8);

/// The stack of one event: frames from the innermost outwards, empty = none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub of: StackOf,
    /// Position among the events of that kind as pushed.
    pub row: u32,
    pub user: Vec<Place>,
    pub kernel: Vec<Place>,
    pub status: StackStatus,
}

impl Stack {
    fn push_to(&self, b: &mut SegmentBuilder) {
        let mut leaf = |places: &[Place]| {
            places.iter().rev().fold(None, |parent, (mapping, offset, flags)| {
                let mapping = b.intern_mapping(mapping);
                let frame = b.intern_frame(Frame { mapping, offset: *offset, flags: *flags });
                Some(b.intern_node(Node { parent, frame }))
            })
        };
        let (user, kernel) = (leaf(&self.user), leaf(&self.kernel));
        b.push_stack(Attached { of: self.of, row: self.row, user, kernel, status: self.status });
    }

    fn places(stacks: &Stacks, leaf: Option<u32>) -> Vec<Place> {
        let place = |f: &Frame| (stacks.mappings[f.mapping as usize].clone(), f.offset, f.flags);
        stacks.frames_from(leaf).map(place).collect()
    }

    /// What was read, with frames instead of numbers.
    pub fn all(stacks: &Stacks) -> Vec<Self> {
        let places = |leaf| Self::places(stacks, leaf);
        let one = |a: &Attached| {
            assert_eq!(stacks.of(a.of, a.row), Some(a));
            Self { of: a.of, row: a.row, user: places(a.user), kernel: places(a.kernel), status: a.status }
        };
        stacks.attached.iter().map(one).collect()
    }
}

pub fn mapping(i: u32) -> Mapping {
    match i {
        0 => Mapping { kind: MappingKind::Elf, build_id: vec![7; 20], path: b"/usr/lib/libc.so.6".to_vec(), upid: 0 },
        1 => Mapping { kind: MappingKind::Kernel, build_id: vec![0xff; 20], path: b"[kernel]".to_vec(), upid: 0 },
        2 => Mapping { kind: MappingKind::Jit, build_id: vec![], path: vec![], upid: 3 },
        _ => {
            Mapping { kind: MappingKind::Elf, build_id: vec![], path: format!("/bin/{i}\u{fe}").into_bytes(), upid: 0 }
        }
    }
}

fn user_stack(leaf: u64) -> Vec<Place> {
    vec![(mapping(0), leaf, 1), (mapping(0), 0x2000, 0), (mapping(3), 0x1500, 4)]
}

/// A stack for each kind of event, pushed in no order; two of them share callers.
fn stacks() -> Vec<Stack> {
    let user = user_stack;
    let kernel = || vec![(mapping(1), 0xffff_0000, 1), (mapping(1), 0x10, 0)];
    let stack = |of, row, user, kernel| Stack { of, row, user, kernel, status: StackStatus::Complete };
    vec![
        stack(StackOf::Sample, 0, user(0x9000), kernel()),
        stack(StackOf::Syscall, 2, user(0x1000), vec![]),
        Stack { status: StackStatus::Lost, ..stack(StackOf::Syscall, 0, vec![], vec![]) },
        stack(StackOf::Switch, 2, user(0x1000), kernel()),
        stack(StackOf::Wakeup, 1, vec![(mapping(2), u64::MAX, 2)], vec![]),
        stack(StackOf::Block, 1, vec![], kernel()),
        stack(StackOf::Signal, 1, user(0), vec![]),
        Stack { status: StackStatus::Jit, ..stack(StackOf::Sample, 1, user(0x1000)[1..].to_vec(), vec![]) },
        Stack { status: StackStatus::Locked, ..stack(StackOf::Asleep, 1, vec![], kernel()) },
    ]
}

pub fn symbols() -> Symbols {
    let function = |name: &str, line| Function { name: name.into(), file: b"src/\xff.c".to_vec(), line };
    Symbols {
        mappings: (0..4).map(mapping).collect(),
        symbols: vec![
            Symbol { mapping: 0, offset: 0x1fff, functions: vec![function("inlined", 7), function("main", 0)] },
            Symbol {
                mapping: 0,
                offset: 0x9000,
                functions: vec![Function { name: b"f".to_vec(), ..Function::default() }],
            },
            Symbol { mapping: 1, offset: 0, functions: vec![] },
            Symbol { mapping: 3, offset: u64::MAX, functions: vec![function("main", u32::MAX)] },
        ],
        failures: vec![(2, "code made at run time".to_owned()), (3, "no symbols in it: \u{fc}".to_owned())],
    }
}

/// Groups a segment of the sample has.
pub const GROUPS: usize = 19;

/// What goes into a segment; task, call and fd are indices.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub start: u64,
    pub end: u64,
    pub tasks: Vec<Task>,
    pub calls: Vec<Call>,
    pub names: Vec<Vec<u8>>,
    pub rows: Vec<SyscallRow>,
    /// `row` is the position in `rows`.
    pub captured: Vec<Captured>,
    pub processes: Vec<ProcessEvent>,
    pub events: Events,
    pub stacks: Vec<Stack>,
    pub gaps: Vec<Gap>,
}

impl Window {
    pub fn data(&self) -> SegmentData {
        let mut b = SegmentBuilder::new(self.start);
        for t in &self.tasks {
            b.intern_task(t);
        }
        for &c in &self.calls {
            b.intern_call(c);
        }
        for n in &self.names {
            b.intern_fd_name(n);
        }
        for (i, row) in self.rows.iter().enumerate() {
            assert_eq!(b.push_syscall(row.clone()), i as u32);
        }
        for c in &self.captured {
            b.push_captured(c.row, c.arg, c.status, c.full, &c.bytes);
        }
        for e in &self.processes {
            b.push_process(e.clone());
        }
        self.events.push_to(&mut b);
        self.stacks.iter().for_each(|s| s.push_to(&mut b));
        for &g in &self.gaps {
            b.push_gap(g);
        }
        b.finish(self.end)
    }

    /// Positions in `rows` in the order the tape must have, and how many are carry rows.
    pub fn order(&self) -> (Vec<usize>, usize) {
        let start = |i: &usize| self.rows[*i].end.saturating_sub(self.rows[*i].dur);
        let (mut carry, mut rest): (Vec<usize>, Vec<usize>) = (0..self.rows.len()).partition(|i| start(i) < self.start);
        carry.sort_by_key(|i| (start(i), self.rows[*i].task));
        rest.sort_by_key(|i| self.rows[*i].end);
        let n = carry.len();
        carry.append(&mut rest);
        (carry, n)
    }

    /// The stacks as they must be read: of positions in the tape's order, the first of each event.
    pub fn sorted_stacks(&self) -> Vec<Stack> {
        let position = |of, row: u32| {
            let times = self.events.times(of);
            let mut order: Vec<usize> = (0..times.len()).collect();
            order.sort_by_key(|&i| times[i]);
            let order = if of == StackOf::Syscall { self.order().0 } else { order };
            order.iter().position(|&i| i == row as usize).unwrap() as u32
        };
        let mut stacks: Vec<Stack> =
            self.stacks.iter().map(|s| Stack { row: position(s.of, s.row), ..s.clone() }).collect();
        stacks.sort_by_key(|s| (s.of, s.row));
        stacks.dedup_by_key(|s| (s.of, s.row));
        stacks
    }
}

/// Segment `i` of the sample: 4 rows of two tasks, one that began before the window, everything in it.
pub fn window(i: u64) -> Window {
    let start = 1000 * (i + 1);
    let row = |end: u64, dur: u64, task: u32| SyscallRow {
        end: start + end,
        dur,
        cpu: task,
        task,
        call: task % 2,
        ret: -(i as i64),
        args: [3, end, 0, 0, 0, u64::MAX],
        fd: 2 + task,
        fd2: if task == 0 { 1 } else { 0 },
        ..SyscallRow::default()
    };
    let event = ProcessEvent {
        ts: start + 50,
        kind: ProcessKind::Exec,
        task: 1,
        parent: 1,
        flags: 0,
        exit_code: 0,
        group_dead: false,
        path: b"/bin/ls".to_vec(),
        argv: b"ls\0-l".to_vec(),
        argv_full: 0,
        argv_status: ByteStatus::Whole,
        old_tid: 0,
        comm: Vec::new(),
    };
    Window {
        start,
        end: start + 1000,
        tasks: (0..2).map(task).collect(),
        calls: vec![Call { abi: 1, nr: 0 }, Call { abi: 1, nr: 1 }],
        names: vec![b"/etc/passwd".to_vec(), b"/tmp/\xff".to_vec()],
        rows: vec![
            SyscallRow { errno: 2, ret: 0, ..row(10, 5, 1) },
            row(300, 20, 0),
            SyscallRow { state: CallState::Killed, unselected: true, ..row(200, 400, 1) },
            row(250, 1, 1),
        ],
        captured: vec![
            Captured { row: 1, arg: 1, status: ByteStatus::Whole, full: 0, bytes: b"hello".to_vec() },
            Captured { row: 0, arg: 9, status: ByteStatus::Truncated, full: 99, bytes: b"\0\xff".to_vec() },
            Captured { row: 0, arg: 1, status: ByteStatus::NotResident, full: 0, bytes: Vec::new() },
        ],
        processes: vec![event],
        events: events(start),
        stacks: stacks(),
        gaps: vec![Gap {
            cause: GapCause::RingFull,
            family: Family::Syscall,
            cpu: 1,
            count: 5,
            first: start + 1,
            last: start + 9,
            pid: 0,
            ledger: false,
        }],
    }
}

pub fn encode(windows: &[Window]) -> Vec<u8> {
    tape(ID, windows)
}

/// A tape with a checkpoint before the first and the third window.
pub fn tape(id: [u8; 16], windows: &[Window]) -> Vec<u8> {
    let mut encoder = Encoder::new(3);
    let mut writer = Writer::create(Vec::new(), id, &session()).unwrap();
    for (i, w) in windows.iter().enumerate() {
        if i % 2 == 0 {
            writer.checkpoint(encoder.checkpoint(&checkpoint(w.start)).unwrap()).unwrap();
        }
        writer.segment(encoder.segment(w.data()).unwrap()).unwrap();
        if i % 2 == 0 {
            writer.symbols(encoder.symbols(&symbols()).unwrap()).unwrap();
        }
    }
    let close = windows.last().map_or(1000, |w| w.end);
    writer.finish(&end(close)).unwrap()
}

pub fn sample() -> Vec<u8> {
    encode(&[window(0), window(1), window(2)])
}

/// Each group of a segment as text: equal text, equal content.
pub fn groups(c: &Contents) -> Vec<(&'static str, bool, String)> {
    fn show<T: std::fmt::Debug, E: std::fmt::Debug>(r: Option<&Result<T, E>>) -> (bool, String) {
        (r.is_some_and(Result::is_ok), format!("{r:?}"))
    }
    let all = [
        ("dict", show(Some(&c.dict))),
        ("syscalls.core", show(c.core.as_ref())),
        ("syscalls.time", show(c.time.as_ref())),
        ("syscalls.args", show(c.args.as_ref())),
        ("syscalls.fds", show(c.fds.as_ref())),
        ("syscalls.bytes", show(c.captured.as_ref())),
        ("processes", show(c.processes.as_ref())),
        ("sched", show(c.switches.as_ref())),
        ("wakeups", show(c.wakeups.as_ref())),
        ("blocks", show(c.blocks.as_ref())),
        ("signals", show(c.signals.as_ref())),
        ("net", show(c.nets.as_ref())),
        ("uring", show(c.urings.as_ref())),
        ("tables", show(c.tables.as_ref())),
        ("samples", show(c.samples.as_ref())),
        ("sleepers", show(c.sleepers.as_ref())),
        ("ledger", show(c.ledger.as_ref())),
        ("stacks", show(Some(&c.stacks))),
        ("gaps", show(Some(&c.gaps))),
    ];
    all.into_iter().map(|(name, (ok, text))| (name, ok, text)).collect()
}

/// What a whole tape gives: (segment, group, text).
pub struct Truth(Vec<(u32, &'static str, String)>);

impl Truth {
    pub fn of(bytes: &[u8]) -> Self {
        let tape = Tape::from_bytes(bytes.to_vec()).unwrap();
        let mut all = Vec::new();
        for (info, contents) in tape.segments().iter().zip(read_segments(&tape)) {
            for (name, ok, text) in groups(&contents) {
                assert!(ok, "{name}: {text}");
                all.push((info.segment, name, text));
            }
        }
        Self(all)
    }

    /// Checks that `tape` gives nothing that differs, and says how many groups it gives.
    pub fn check(&self, tape: &Tape, context: &str) -> usize {
        let mut good = 0;
        for (info, contents) in tape.segments().iter().zip(read_segments(tape)) {
            for (name, ok, text) in groups(&contents) {
                let truth = self.0.iter().find(|t| (t.0, t.1) == (info.segment, name));
                let truth = &truth.unwrap_or_else(|| panic!("{context}: segment {} from nowhere", info.segment)).2;
                assert!(!ok || *truth == text, "{context}: {name} of segment {}: {text}, not {truth}", info.segment);
                good += usize::from(ok);
            }
        }
        good
    }
}

/// Offsets of blocks and their ends without padding.
pub fn block_spans(bytes: &[u8]) -> Vec<(usize, usize)> {
    let tape = Tape::from_bytes(bytes.to_vec()).unwrap();
    let span =
        |b: systape_format::BlockInfo| (b.offset as usize, b.offset as usize + HEADER_LEN + b.stored_len as usize);
    tape.blocks().into_iter().map(span).collect()
}

/// Makes the CRC of the header at `at` right again.
pub fn fix_crc(bytes: &mut [u8], at: usize) {
    let crc = crc32c::crc32c(&bytes[at..at + 124]);
    bytes[at + 124..at + 128].copy_from_slice(&crc.to_le_bytes());
}

/// A small generator: tests must repeat.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
