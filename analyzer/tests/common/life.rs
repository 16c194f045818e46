//! A tape of a whole system in which processes start, are signalled in every common way, and end.

use std::path::Path;

use systape_format::SegmentBuilder;
use systape_format::model::{
    Ancestor, ByteStatus, Checkpoint, CommandLine, Family, Gap, OomMemory, ProcessEvent, ProcessKind, RecordedFamilies,
    SIGNAL_BLOCKED, SIGNAL_GROUP, SIGNAL_HANDLED, Session, SignalEvent, SignalInfo, SignalKind, Task,
};

use super::{MS, OPEN, Row, Tape, US, call, session};

/// pid, parent, name, user, arguments; the first were there before.
const PROCESSES: [(u32, u32, &str, u32, &str); 13] = [
    (1, 0, "systemd", 0, "/sbin/init"),
    (800, 1, "sshd", 0, "sshd: /usr/sbin/sshd -D"),
    (4700, 800, "bash", 0, "-bash"),
    (4711, 1, "nginx", 33, "nginx: master process"),
    (4712, 4711, "nginx", 33, "nginx: worker process"),
    (900, 1, "java", 1000, "java\0-Xmx4g\0-jar\0a b.jar"),
    (901, 1, "python3", 1000, "python3\0train.py"),
    (950, 1, "job", 1000, "/opt/job"),
    (4800, 4700, "sh", 0, "sh\0-c\0kill -9 4711"),
    (4720, 4700, "watch", 0, "watch\0-n\x000.1\0condor_q"),
    (4721, 4720, "sh", 0, "sh\0-c\0condor_q"),
    (4722, 4721, "condor_q", 0, "condor_q"),
    (4730, 4700, "a\x1bb", 0, "./a\x1bb"),
];
/// How many of them were there when the recording began.
const BEFORE: usize = 8;

fn at(us: u64) -> u64 {
    OPEN + us * US
}

/// When process `index` began.
fn start(index: usize) -> u64 {
    if index < BEFORE { 1_000_000_000 * (1 + index as u64) } else { at(1_000 * (index - BEFORE) as u64 + 100) }
}

fn task(pid: u32) -> Task {
    let index = PROCESSES.iter().position(|process| process.0 == pid).unwrap();
    let (_, ppid, comm, uid, _) = PROCESSES[index];
    Task {
        tid: pid,
        pid,
        start_ns: start(index),
        leader_start_ns: start(index),
        comm: comm.into(),
        exe: if pid == 950 { b"/opt/job".to_vec() } else { format!("/usr/bin/{comm}").into_bytes() },
        uid,
        cgroup_id: if uid == 33 { 7 } else { 1 },
        utid: index as u32 + 1,
        upid: index as u32 + 1,
        ns_tid: if pid == 950 { 7 } else { pid },
        ns_pid: if pid == 950 { 7 } else { pid },
        ppid,
        recorded: RecordedFamilies::NOT_SAID,
        env: Vec::new(),
    }
}

fn of_tape() -> Session {
    Session {
        target: "system-wide".into(),
        families: vec![Family::Syscall, Family::Process, Family::Signal],
        ..session()
    }
}

/// Writes the tape, with these gaps.
pub fn write(path: &Path, gaps: &[Gap]) {
    let mut tape = Tape::bare(path, &of_tape());
    let there = &PROCESSES[..BEFORE];
    let line = |(index, process): (usize, &(u32, u32, &str, u32, &str))| CommandLine {
        upid: index as u32 + 1,
        argv: process.4.into(),
        full: process.4.len() as u64,
    };
    let checkpoint = Checkpoint {
        ts: OPEN,
        tasks: there.iter().map(|process| task(process.0)).collect(),
        commands: there.iter().enumerate().map(line).collect(),
        source: "snapshot".into(),
        ..Checkpoint::default()
    };
    let encoded = tape.encoder.checkpoint(&checkpoint).unwrap();
    tape.writer.checkpoint(encoded).unwrap();
    let mut builder = SegmentBuilder::new(OPEN);
    failed_exec(&mut builder);
    lives(&mut builder);
    kills(&mut builder);
    ends(&mut builder);
    gaps.iter().for_each(|gap| builder.push_gap(*gap));
    tape.now = at(60_000);
    tape.rows = 1;
    let encoded = tape.encoder.segment(builder.finish(tape.now)).unwrap();
    tape.writer.segment(encoded).unwrap();
    tape.finish();
}

/// condor_q is not in the first directory of its PATH.
fn failed_exec(builder: &mut SegmentBuilder) {
    let row = Row { name: "execve", start: 3_180, dur: 9, errno: 2, ..Row::default() };
    let of_shell = Task { comm: b"sh".to_vec(), exe: b"/usr/bin/sh".to_vec(), ..task(4722) };
    let task = builder.intern_task(&of_shell);
    let call = builder.intern_call(call(row.name));
    let id = builder.push_syscall(systape_format::model::SyscallRow {
        end: at(row.start + row.dur),
        dur: row.dur * US,
        task,
        call,
        errno: row.errno,
        state: row.state,
        ..Default::default()
    });
    builder.push_captured(id, 0, ByteStatus::Whole, 23, b"/usr/local/bin/condor_q");
    builder.push_captured(id, 1, ByteStatus::Whole, 8, b"condor_q");
}

fn life(builder: &mut SegmentBuilder, ts: u64, kind: ProcessKind, pid: u32) -> ProcessEvent {
    let of = builder.intern_task(&task(pid));
    ProcessEvent { group_dead: kind == ProcessKind::Exit, ..ProcessEvent::new(at(ts), kind, of) }
}

/// Forks at 100 µs of their milliseconds, execs 90 µs later.
fn lives(builder: &mut SegmentBuilder) {
    for (index, (pid, ppid, comm, _, argv)) in PROCESSES.iter().enumerate().skip(BEFORE) {
        let ts = 1_000 * (index - BEFORE) as u64 + 100;
        let parent = builder.intern_task(&task(*ppid));
        let fork = life(builder, ts, ProcessKind::Fork, *pid);
        builder.push_process(ProcessEvent { parent, ..fork });
        let exec = life(builder, ts + 90, ProcessKind::Exec, *pid);
        builder.push_process(ProcessEvent {
            path: format!("/usr/bin/{comm}").into(),
            argv: argv.as_bytes().into(),
            ..exec
        });
    }
}

fn signal(builder: &mut SegmentBuilder, ts: u64, sig: u32, sender: u32, target: u32) -> SignalEvent {
    let above = |pid: u32| {
        let parent = |pid: &u32| {
            let up = PROCESSES.iter().find(|process| process.0 == *pid)?.1;
            (up != 0).then_some(up)
        };
        std::iter::successors(parent(&pid), parent)
            .map(|pid| Ancestor { pid, start_ns: task(pid).leader_start_ns, comm: task(pid).comm })
            .collect()
    };
    SignalEvent {
        ts: at(ts),
        kind: SignalKind::Generate,
        sig,
        code: 0,
        errno: 0,
        info: SignalInfo::Siginfo,
        result: 0,
        flags: SIGNAL_GROUP,
        target: builder.intern_task(&task(target)),
        sender: Some(builder.intern_task(&task(sender))),
        call: None,
        call_args: [0; 4],
        call_path: Vec::new(),
        si_pid: sender,
        si_uid: task(sender).uid,
        addr: 0,
        ip: 0,
        sender_ancestors: above(sender),
        target_ancestors: above(target),
        argv: PROCESSES.iter().find(|process| process.0 == sender).unwrap().4.into(),
        argv_status: ByteStatus::Whole,
        argv_full: 0,
        oom: OomMemory::default(),
    }
}

fn kills(builder: &mut SegmentBuilder) {
    let kill = builder.intern_call(call("kill"));
    let one = |pid: u64, sig| (Some(kill), [pid, sig, 0, 0]);
    let send = |builder: &mut SegmentBuilder, signal: SignalEvent, (call, call_args): (Option<u32>, [u64; 4])| {
        builder.push_signal(SignalEvent { call, call_args, ..signal });
    };
    let none = (None, [0; 4]);
    // the murder
    let event = signal(builder, 12_345, 9, 4800, 4711);
    send(builder, event, one(4711, 9));
    // a group
    for (ts, pid) in [(14_000, 4722), (14_003, 4721), (14_006, 4720)] {
        let event = signal(builder, ts, 15, 4700, pid);
        send(builder, event, one(u64::from((-4720_i32) as u32), 15));
    }
    // out of memory
    let event = signal(builder, 20_000, 9, 901, 900);
    send(builder, SignalEvent { info: SignalInfo::Priv, si_pid: 0, ..event }, none);
    let event = signal(builder, 20_041, 0, 901, 900);
    let oom = OomMemory { total_vm: 8 << 30, anon: 4 << 30, file: 3 << 20, shmem: 0 };
    send(builder, SignalEvent { kind: SignalKind::OomVictim, oom, ..event }, none);
    // a handler
    let event = signal(builder, 30_000, 15, 4700, 800);
    send(builder, SignalEvent { flags: SIGNAL_GROUP | SIGNAL_HANDLED, ..event }, one(800, 15));
    let event = signal(builder, 30_020, 15, 4700, 800);
    send(builder, SignalEvent { kind: SignalKind::Deliver, sender: None, ip: 0x5000, ..event }, none);
    // pending, in a container
    let event = signal(builder, 31_000, 15, 4700, 950);
    send(builder, SignalEvent { flags: SIGNAL_GROUP | SIGNAL_BLOCKED, ..event }, one(950, 15));
    // a fault, with a name that must be escaped
    let event = signal(builder, 40_000, 11, 4730, 4730);
    send(builder, SignalEvent { code: 1, flags: 0, addr: 0x10, ip: 0x5600_1234, si_pid: 0, ..event }, none);
    // too late
    let event = signal(builder, 45_000, 9, 4700, 4711);
    send(builder, SignalEvent { result: 1, ..event }, one(4711, 9));
}

fn ends(builder: &mut SegmentBuilder) {
    let list = [
        (12_745, 4711, 9, 0),
        (13_000, 4800, 0, 0),
        (14_100, 4722, 15, 0),
        (14_200, 4721, 15, 0),
        (14_300, 4720, 15, 0),
        (32_000, 900, 9, 0),
        (40_030, 4730, 0x8b, 0),
        // a signal nobody sent
        (50_000, 901, 31, 3),
        (51_000, 4712, 3 << 8, 0),
    ];
    for (ts, pid, exit_code, flags) in list {
        let exit = life(builder, ts, ProcessKind::Exit, pid);
        builder.push_process(ProcessEvent { exit_code, flags, ..exit });
    }
    debug_assert!(at(60_000) - OPEN == 60 * MS);
}
