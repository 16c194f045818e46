//! A tape with stacks of every kind of event: whole, cut, lost and missing ones, of user and kernel, with inlined functions, a signal
//! handler, code without names and names that must be escaped.

use std::path::Path;

use systape_format::SegmentBuilder;
use systape_format::model::{
    Attached, BlockCause, BlockIo, ByteStatus, CPU_NONE, Checkpoint, FRAME_EXACT, FRAME_SIGNAL, Family, Frame,
    Function, Gap, GapCause, Mapping, MappingKind, Node, RunState, SIGNAL_GROUP, Sample, Session, SignalEvent,
    SignalInfo, SignalKind, StackMode, StackOf, StackSettings, StackStatus, Switch, Symbol, Symbols, Wakeup,
};

use super::{OPEN, Row, Tape, US, push, session, task};

fn at(us: u64) -> u64 {
    OPEN + us * US
}

/// Where code came from.
pub fn mappings() -> Vec<Mapping> {
    let elf =
        |path: &str, id: u8| Mapping { kind: MappingKind::Elf, build_id: vec![id; 20], path: path.into(), upid: 0 };
    vec![
        elf("/usr/bin/app", 0xa1),
        elf("/usr/lib/libc.so.6", 0xc1),
        Mapping { kind: MappingKind::Kernel, path: b"[kernel]".to_vec(), ..Mapping::default() },
        Mapping { kind: MappingKind::Jit, upid: 1, ..Mapping::default() },
        elf("/opt/stri\x1bpped", 0xd1),
    ]
}

/// Mapping, offset, functions: name, file and line, the innermost inlined one first.
type Named = (u32, u64, &'static [(&'static str, &'static str, u32)]);

/// Places with names.
const NAMES: [Named; 10] = [
    (0, 0x1000, &[("main", "/src/app.c", 20)]),
    (0, 0x2000, &[("load<int>", "/src/load.hpp", 7), ("work", "/src/app.c", 12)]),
    (0, 0x3000, &[("sa\x1bve;all", "", 0)]),
    (0, 0x4000, &[("on_term", "/src/app.c", 40)]),
    (1, 0x100, &[("read", "", 0)]),
    (1, 0x200, &[("fsync", "", 0)]),
    (2, 0x10, &[("entry_SYSCALL_64_after_hwframe", "", 0)]),
    (2, 0x20, &[("ksys_read", "", 0)]),
    (2, 0x30, &[("schedule", "", 0)]),
    (2, 0x40, &[("submit_bio", "", 0)]),
];

/// Mapping and offset.
type Place = (u32, u64);

const MAIN: Place = (0, 0x1000);
const WORK: Place = (0, 0x2000);
const SAVE: Place = (0, 0x3000);
const HANDLER: Place = (0, 0x4000);
const READ: Place = (1, 0x100);
const FSYNC: Place = (1, 0x200);
/// The kernel's return from a handler: no name.
const TRAMPOLINE: Place = (1, 0x300);
const ENTRY: Place = (2, 0x10);
const KSYS_READ: Place = (2, 0x20);
const SCHEDULE: Place = (2, 0x30);
const SUBMIT: Place = (2, 0x40);
const CODE: Place = (3, 0x7f00_1000);
const STRIPPED: Place = (4, 0x1a2b);

/// Interns a stack, outermost frame first; the innermost is where the code was.
pub fn stack(builder: &mut SegmentBuilder, frames: &[Place]) -> Option<u32> {
    let mappings = mappings();
    let mut parent = None;
    for (nth, (mapping, offset)) in frames.iter().enumerate() {
        let leaf = nth + 1 == frames.len();
        let mapping_id = builder.intern_mapping(&mappings[*mapping as usize]);
        let (signal, flags) = ((*mapping, *offset) == TRAMPOLINE, if leaf { FRAME_EXACT } else { 0 });
        let flags = if signal { FRAME_SIGNAL | FRAME_EXACT } else { flags };
        // a return address lies behind the call
        let offset = if flags & FRAME_EXACT == 0 { offset + 1 } else { *offset };
        let frame = builder.intern_frame(Frame { mapping: mapping_id, offset, flags });
        parent = Some(builder.intern_node(Node { parent, frame }));
    }
    parent
}

fn attach(
    builder: &mut SegmentBuilder,
    of: StackOf,
    row: u32,
    (user, kernel): (&[Place], &[Place]),
    status: StackStatus,
) {
    let (user, kernel) = (stack(builder, user), stack(builder, kernel));
    builder.push_stack(Attached { of, row, user, kernel, status });
}

/// What the tape says of itself.
pub fn of_tape() -> Session {
    use Family::{Block, Process, Sched, Signal, Stack, Syscall};
    Session {
        families: vec![Syscall, Process, Sched, Block, Signal, Family::Sample, Stack],
        target: "system-wide".into(),
        stacks: StackSettings {
            mode: StackMode::Dwarf,
            copy_limit: 65_528,
            on: StackOf::ALL.to_vec(),
            kernel: vec![StackOf::Switch, StackOf::Sample, StackOf::Block],
            frequency: 1000,
            min_dur: 0,
        },
        ..session()
    }
}

/// Names of all places but code made at run time, the trampoline and the stripped file.
pub fn symbols() -> Symbols {
    let function =
        |(name, file, line): &(&str, &str, u32)| Function { name: (*name).into(), file: (*file).into(), line: *line };
    let symbol = |(mapping, offset, functions): &Named| Symbol {
        mapping: *mapping,
        offset: *offset,
        functions: functions.iter().map(function).collect(),
    };
    Symbols {
        mappings: mappings(),
        symbols: NAMES.iter().map(symbol).chain([Symbol { mapping: 4, offset: 0x1a2b, functions: vec![] }]).collect(),
        failures: vec![(4, "it has no symbols".into())],
    }
}

/// Writes the tape; reads of `work` are there `times` times as often.
pub fn write(path: &Path, times: u64) {
    write_with(path, times, &of_tape(), &[]);
}

/// The same with gaps, of a tape that says other things of itself.
pub fn write_with(path: &Path, times: u64, of_tape: &Session, gaps: &[Gap]) {
    let run = |tid, on_cpu, state| RunState { utid: tid, state, cpu: 1, on_cpu, ..RunState::default() };
    let checkpoint = Checkpoint {
        ts: OPEN,
        tasks: [100, 101, 102].map(task).into(),
        run: vec![run(100, true, b'R'), run(101, false, b'S'), run(102, false, b'S')],
        source: "snapshot".into(),
        ..Checkpoint::default()
    };
    let mut tape = Tape::create_at(path, of_tape, &checkpoint);
    tape.segment_with(1_000, &[], gaps, |builder| {
        calls(builder, times);
        sched(builder);
        others(builder);
    });
    tape.segment_with(2_000, &[], &[], |builder| {
        let stuck = Row { tid: 101, name: "fsync", start: 900, dur: 700, args: [4, 0, 0, 0, 0, 0], ..Row::default() };
        let row = push(builder, &stuck);
        attach(builder, StackOf::Syscall, row, (&[MAIN, SAVE, FSYNC], &[]), StackStatus::Complete);
        let [app, thread] = [100, 101].map(|tid| builder.intern_task(&task(tid)));
        let back = Switch {
            ts: at(1_500),
            cpu: 1,
            prev: app,
            next: thread,
            prev_state: 0,
            preempted: true,
            ..Switch::default()
        };
        let row = builder.push_switch(back);
        attach(builder, StackOf::Switch, row, (&[MAIN, WORK], &[SCHEDULE]), StackStatus::Complete);
    });
    tape.symbols(&symbols());
    tape.finish();
}

fn calls(builder: &mut SegmentBuilder, times: u64) {
    use StackStatus::{Complete, Cut, Jit, Lost};
    let row = |tid, name, start, dur, ret| Row {
        tid,
        name,
        start,
        dur,
        ret,
        args: [3, 0x7f00, 64, 0, 0, 0],
        ..Row::default()
    };
    let mut add = |row: Row<'_>, user: Option<(&[Place], StackStatus)>| {
        let id = push(builder, &row);
        if let Some((user, status)) = user {
            attach(builder, StackOf::Syscall, id, (user, &[]), status);
        }
    };
    for nth in 0..3 * times {
        add(row(100, "read", 10 + nth, 1, 64), Some((&[MAIN, WORK, READ], Complete)));
    }
    add(row(100, "read", 200, 5, 64), Some((&[MAIN, WORK, READ], Complete)));
    add(row(100, "read", 210, 4, 0), Some((&[MAIN, READ], Complete)));
    add(row(100, "fsync", 220, 20, 0), Some((&[MAIN, SAVE, FSYNC], Complete)));
    add(row(100, "kill", 250, 1, 0), Some((&[MAIN, WORK, TRAMPOLINE, HANDLER], Complete)));
    add(row(101, "read", 300, 8, 32), Some((&[WORK, READ], Cut)));
    add(row(101, "read", 310, 2, 32), Some((&[CODE, READ], Jit)));
    add(Row { errno: 11, ..row(101, "read", 320, 2, 0) }, Some((&[], Lost)));
    add(row(102, "write", 330, 2, 10), Some((&[STRIPPED], Complete)));
    add(row(102, "getpid", 340, 1, 102), None);
}

/// 100 runs, sleeps in read, is woken by 102 and comes back; 101 sleeps from before to the end; 102 comes and goes.
fn sched(builder: &mut SegmentBuilder) {
    let [app, thread, other] = [100, 101, 102].map(|tid| builder.intern_task(&task(tid)));
    let mut switch = |ts, prev, next, prev_state, stack: Option<(&[Place], StackStatus)>| {
        let row = builder.push_switch(Switch {
            ts: at(ts),
            cpu: 1,
            prev,
            next,
            prev_state,
            preempted: false,
            ..Switch::default()
        });
        if let Some((user, status)) = stack {
            attach(builder, StackOf::Switch, row, (user, &[ENTRY, KSYS_READ, SCHEDULE]), status);
        }
    };
    switch(201, app, other, 1, Some((&[MAIN, WORK, READ], StackStatus::Complete)));
    switch(204, other, app, 1, Some((&[], StackStatus::Lost)));
    switch(230, app, other, 2, Some((&[MAIN, SAVE, FSYNC], StackStatus::Complete)));
    switch(238, other, app, 1, None);
    let row = builder.push_wakeup(Wakeup {
        ts: at(203),
        cpu: 1,
        waker: Some(other),
        wakee: app,
        target_cpu: 1,
        new: false,
        softirq: false,
        ..Wakeup::default()
    });
    attach(builder, StackOf::Wakeup, row, (&[STRIPPED], &[]), StackStatus::Complete);
    let row = builder.push_wakeup(Wakeup {
        ts: at(236),
        cpu: 0,
        waker: None,
        wakee: app,
        target_cpu: 1,
        new: false,
        softirq: false,
        ..Wakeup::default()
    });
    attach(builder, StackOf::Wakeup, row, (&[], &[]), StackStatus::Absent);
    builder.push_wakeup(Wakeup {
        ts: at(990),
        cpu: 0,
        waker: Some(app),
        wakee: thread,
        target_cpu: 1,
        new: false,
        softirq: false,
        ..Wakeup::default()
    });
}

fn others(builder: &mut SegmentBuilder) {
    let [app, other] = [100, 102].map(|tid| builder.intern_task(&task(tid)));
    for (nth, kernel) in [true, true, false, false].into_iter().enumerate() {
        let task = if nth == 3 { other } else { app };
        let row = builder.push_sample(Sample { ts: at(100 + nth as u64), cpu: 1, task, kernel });
        match nth {
            3 => attach(builder, StackOf::Sample, row, (&[], &[]), StackStatus::NotResident),
            _ if kernel => {
                let stack: (&[_], &[_]) = (&[MAIN, WORK, READ], &[ENTRY, KSYS_READ]);
                attach(builder, StackOf::Sample, row, stack, StackStatus::Complete);
            }
            _ => attach(builder, StackOf::Sample, row, (&[MAIN, WORK], &[]), StackStatus::Complete),
        }
    }
    let row = builder.push_block(BlockIo {
        complete: at(600),
        queued: at(500),
        issued: at(520),
        dev: 254 << 20,
        sector: 2048,
        bytes: 8192,
        flags: 1,
        owner: Some(app),
        origin: Some(app),
        cause: BlockCause::Direct,
        ..BlockIo::default()
    });
    attach(builder, StackOf::Block, row, (&[MAIN, SAVE, FSYNC], &[ENTRY, SUBMIT]), StackStatus::Complete);
    let kill = builder.intern_call(super::call("kill"));
    let row = builder.push_signal(SignalEvent {
        info: SignalInfo::Siginfo,
        flags: SIGNAL_GROUP,
        sender: Some(app),
        call: Some(kill),
        call_args: [102, 15, 0, 0],
        si_pid: 100,
        si_uid: 1000,
        argv: b"app".to_vec(),
        argv_status: ByteStatus::Whole,
        ..SignalEvent::new(at(250), SignalKind::Generate, 15, other)
    });
    attach(builder, StackOf::Signal, row, (&[MAIN, WORK, TRAMPOLINE, HANDLER], &[]), StackStatus::Complete);
}

/// 7 stacks lost.
pub fn gap() -> Gap {
    Gap {
        cause: GapCause::RingFull,
        family: Family::Stack,
        cpu: CPU_NONE,
        count: 7,
        first: at(319),
        last: at(321),
        pid: 0,
        ledger: false,
    }
}

/// A program that gcc made, with debug information: `files/a`.
pub struct Program {
    /// Of its function `outer`.
    pub offset: u64,
}

/// The build id of [`Program`].
pub const PROGRAM: &str = "0123456789abcdef0123456789abcdef01234567";

impl Program {
    /// It, as a tape of a machine on which it is stripped has it.
    pub fn mapping(&self) -> Mapping {
        let bytes = (0..20).map(|at| u8::from_str_radix(&PROGRAM[2 * at..2 * at + 2], 16).unwrap()).collect();
        Mapping { kind: MappingKind::Elf, build_id: bytes, path: b"/usr/bin/gone".to_vec(), upid: 0 }
    }
}

/// Makes the program; None: there is no C compiler. Its own symbol table says where its functions are.
pub fn program(place: &super::Place) -> Option<Program> {
    let source = "static inline __attribute__((always_inline)) int inner(int x) { volatile int y = x; return y * 3; }\n\
                  __attribute__((noinline)) int outer(int x) { return inner(x) + 1; }\n\
                  int main(int n, char **v) { (void)v; return outer(n); }\n";
    std::fs::write(place.path("a.c"), source).unwrap();
    std::fs::create_dir(place.path("files")).unwrap();
    let run = |command: &str, args: &[&str]| {
        let output = std::process::Command::new(command).args(args).current_dir(place.path("")).output();
        output.ok().filter(|output| output.status.success()).map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let build_id = format!("-Wl,--build-id=0x{PROGRAM}");
    let made = run("cc", &["-g", "-O1", "-no-pie", &build_id, "-Wl,-Ttext-segment=0", "-o", "files/a", "a.c"]);
    let (Some(_), Some(symbols)) = (made, run("nm", &["files/a"])) else {
        eprintln!("SKIPPED: there is no C compiler");
        return None;
    };
    let outer = symbols.lines().find(|line| line.ends_with(" T outer")).unwrap();
    // the file is linked so that an address is an offset
    Some(Program { offset: u64::from_str_radix(outer.split(' ').next().unwrap(), 16).unwrap() })
}

/// A tape with one call whose stack is one frame at `offset` of a file.
pub fn one_frame(path: &Path, mapping: Mapping, offset: u64) {
    let mut session = of_tape();
    session.stacks.on = vec![StackOf::Syscall];
    let mut tape = Tape::create_at(path, &session, &Checkpoint { ts: OPEN, ..Checkpoint::default() });
    let row = Row { tid: 100, name: "getpid", start: 10, dur: 5, ..Row::default() };
    tape.segment_with(1_000, &[row], &[], |builder: &mut SegmentBuilder| {
        let id = builder.intern_mapping(&mapping);
        let frame = builder.intern_frame(Frame { mapping: id, offset, flags: FRAME_EXACT });
        let user = Some(builder.intern_node(Node { parent: None, frame }));
        let status = StackStatus::Complete;
        builder.push_stack(Attached { of: StackOf::Syscall, row: 0, user, kernel: None, status });
    });
    let symbol = Symbol { mapping: 0, offset, functions: Vec::new() };
    tape.symbols(&Symbols { mappings: vec![mapping], symbols: vec![symbol], failures: Vec::new() });
    tape.finish();
}
