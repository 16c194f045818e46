//! A tape with the events that are no syscalls: block I/O on a stack of devices, connections, io_uring, scheduler, signals.

use std::path::Path;
use std::sync::Arc;

use systape_format::SegmentBuilder;
use systape_format::families::BLOCK_FILE;
use systape_format::model::{
    BlockCause, BlockHolds, BlockIo, BlockLayer, ByteStatus, CPU_NONE, DeviceLink, Family, Gap, GapCause, NetState,
    ProcessEvent, ProcessKind, SIGNAL_GROUP, Session, SignalEvent, SignalInfo, SignalKind, Switch, UringOp, Wakeup,
};
use systape_format::tables::Field;

use super::{OPEN, Row, Tape, US, session, task};

/// dev_t of vda.
const VDA: u32 = 254 << 20;
/// dev_t of dm-0, which is made of vda2.
const DM: u32 = 253 << 20;

/// [::2]:443, the other side of socket 3.
const PEER: [u8; 28] = [10, 0, 1, 187, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];

/// Time `us` µs after the tape's start.
fn at(us: u64) -> u64 {
    OPEN + us * US
}

pub fn of_tape() -> Session {
    let device = |major, minor, name: &str| (major, minor, name.as_bytes().to_vec());
    let link =
        |dev, disk, first_sector, lower: &[(u32, u32)]| DeviceLink { dev, disk, first_sector, lower: lower.to_vec() };
    use Family::{Block, IoUring, Net, Process, Sched, Signal, Syscall};
    Session {
        families: vec![Syscall, Process, Sched, Block, Signal, Net, IoUring],
        devices: vec![device(254, 0, "vda"), device(254, 2, "vda2"), device(253, 0, "dm-0")],
        device_links: vec![link((254, 2), Some((254, 0)), 2048, &[]), link((253, 0), None, 0, &[(254, 2)])],
        ..session()
    }
}

/// Writes the tape; `lossy`: with gaps of block and net.
pub fn write(path: &Path, lossy: bool) {
    let mut tape = Tape::create_with(path, &of_tape());
    let row = |tid, name, start| Row { tid, name, start, dur: 5, args: [3, 0, 0, 0, 0, 0], ..Row::default() };
    let gap = |family, count| Gap {
        cause: GapCause::RingFull,
        family,
        cpu: CPU_NONE,
        count,
        first: at(450),
        last: at(460),
        pid: 0,
        ledger: false,
    };
    let gaps = if lossy { vec![gap(Family::Block, 12), gap(Family::Net, 3)] } else { vec![] };
    let accept =
        Row { dur: 150, ret: 4, captured: vec![(1, ByteStatus::Whole, 28, &PEER)], ..row(102, "accept4", 100) };
    tape.segment_with(1_000, &[row(100, "close", 10), accept, row(101, "fsync", 400)], &gaps, |builder| {
        blocks(builder);
        nets(builder);
        sched(builder);
    });
    tape.segment_with(2_000, &[row(100, "close", 1_500)], &[], |builder| {
        later(builder);
        let ring = builder.intern_task(&task(100));
        for ts in [1_100, 1_200, 1_300] {
            builder.push_uring(UringOp { ts: at(ts), task: ring, op: if ts == 1_300 { 3 } else { 22 } });
        }
    });
    tape.finish();
}

/// Blamed directly, on a dirtier, on a cgroup and on nobody; merged, requeued and failed; with and without known times.
fn blocks(builder: &mut SegmentBuilder) {
    let (app, other) = (builder.intern_task(&task(100)), builder.intern_task(&task(102)));
    let io = |complete: u64, flags: u32| BlockIo {
        complete: at(complete),
        queued: at(complete - 100),
        issued: at(complete - 80),
        dev: VDA,
        sector: 2048 + complete,
        bytes: 4096,
        flags,
        ..BlockIo::default()
    };
    let files = Arc::new(BLOCK_FILE.clone());
    for (number, path, links) in [(1, &b"/srv/data/a b"[..], 1), (2, b"/srv/data/two names", 2), (3, b"", 0)] {
        let path = if path.is_empty() { Field::Unknown } else { Field::Bytes(path) };
        let [file, dev, inode, links] = [number, VDA.into(), 76 + number, links].map(Field::Number);
        builder.push_table_row(&files, at(200 + number), &[file, dev, inode, path, links]).unwrap();
    }
    const SYNC: u32 = 1 << 11;
    let (holds, inode) = (BlockHolds::File, 77);
    let of = |file: u64, io| BlockIo { holds, file, inode: inode + file - 1, ..io };
    let direct = |io| BlockIo { owner: Some(app), origin: Some(app), cause: BlockCause::Direct, ..io };
    let (journal, metadata, several) = (BlockHolds::Journal, BlockHolds::Metadata, BlockHolds::Several);
    for io in [
        BlockIo { sector: 8, cgroup_id: 7, ..of(1, direct(io(200, 0))) },
        of(2, direct(BlockIo { dev: DM, issued: 0, layer: BlockLayer::Bio, bytes: 8192, ..io(300, 1 | SYNC) })),
        BlockIo { origin: Some(other), bytes: 8192, merged: 1, holds: several, ..io(310, 1 | SYNC) },
        BlockIo { owner: Some(other), cause: BlockCause::Dirtier, merged: 3, ..of(3, io(400, 1)) },
        BlockIo { cgroup_id: 7, cause: BlockCause::CgroupOwner, requeues: 2, holds: metadata, ..io(500, 1) },
        BlockIo { queued: 0, issued: 0, errno: 5, ..of(1, direct(io(600, 1 << 19))) },
        BlockIo { bytes: 0, holds: journal, ..io(700, 2 | 1 << 18) },
    ] {
        builder.push_block(io);
    }
}

/// The end of what began in the first segment.
fn later(builder: &mut SegmentBuilder) {
    let app = builder.intern_task(&task(101));
    builder.push_block(BlockIo {
        complete: at(1_800),
        queued: at(900),
        issued: at(1_000),
        dev: VDA,
        sector: 10_000_000,
        bytes: 1 << 20,
        flags: 1 | 1 << 17,
        owner: Some(app),
        origin: Some(app),
        cause: BlockCause::Direct,
        ..BlockIo::default()
    });
    push_net(builder, 1_700, 2, (4, 5), None);
    push_net(builder, 1_750, 2, (5, 7), None);
    push_net(builder, 1_900, 5, (1, 8), None);
}

/// A change of socket `socket`: each has its own address.
fn push_net(builder: &mut SegmentBuilder, ts: u64, socket: u64, states: (u8, u8), tid: Option<u32>) {
    let task = tid.map(|tid| builder.intern_task(&task(tid)));
    let v6 = socket == 3;
    let address = |last: u8| if v6 { [&[0; 15][..], &[last]].concat() } else { vec![10, 0, 0, last] };
    builder.push_net(NetState {
        ts: at(ts),
        task,
        sender: None,
        socket,
        family: if v6 { 10 } else { 2 },
        protocol: 6,
        old_state: states.0,
        new_state: states.1,
        sport: if states.1 == 2 || states.1 == 7 { 0 } else { 40_000 + socket as u16 },
        dport: if socket == 1 { 0 } else { 443 },
        saddr: address(1),
        daddr: if socket == 1 { vec![0; 4] } else { address(2) },
    });
}

/// One listens (1), one connects and is closed later (2), one is accepted and stays (3), one is refused (4); 5 was there before.
fn nets(builder: &mut SegmentBuilder) {
    push_net(builder, 100, 1, (7, 10), Some(102));
    push_net(builder, 150, 2, (7, 2), Some(100));
    push_net(builder, 180, 2, (2, 1), None);
    push_net(builder, 190, 3, (10, 3), None);
    push_net(builder, 195, 3, (3, 1), None);
    push_net(builder, 500, 4, (7, 2), Some(101));
    push_net(builder, 540, 4, (2, 7), None);
    push_net(builder, 800, 2, (1, 4), Some(100));
}

fn sched(builder: &mut SegmentBuilder) {
    let [app, thread, other] = [100, 101, 102].map(|tid| builder.intern_task(&task(tid)));
    let switch = |ts, prev, next, prev_state, preempted| Switch {
        ts: at(ts),
        cpu: 1,
        prev,
        next,
        prev_state,
        preempted,
        ..Switch::default()
    };
    builder.push_switch(switch(20, app, other, 1, false));
    builder.push_switch(switch(60, other, app, 0, true));
    builder.push_wakeup(Wakeup {
        ts: at(50),
        cpu: 0,
        waker: None,
        wakee: app,
        target_cpu: 1,
        new: false,
        softirq: false,
        ..Wakeup::default()
    });
    builder.push_wakeup(Wakeup {
        ts: at(70),
        cpu: 1,
        waker: Some(app),
        wakee: thread,
        target_cpu: 2,
        new: true,
        softirq: false,
        ..Wakeup::default()
    });
    builder.push_process(ProcessEvent {
        exit_code: 9,
        group_dead: true,
        ..ProcessEvent::new(at(80), ProcessKind::Exit, other)
    });
    builder.push_signal(SignalEvent {
        info: SignalInfo::Siginfo,
        flags: SIGNAL_GROUP,
        sender: Some(app),
        si_pid: 100,
        si_uid: 1000,
        argv_status: ByteStatus::Whole,
        ..SignalEvent::new(at(75), SignalKind::Generate, 9, other)
    });
}
