//! Signals: sender, target, and the sender's call.

use systape_bpf::values::signal_info;
use systape_bpf::wire::{self, SignalParts};
use systape_format::model::{
    Ancestor, ByteStatus, Family, OomMemory, SIGNAL_INTERRUPT, SignalEvent, SignalInfo, SignalKind, StackOf,
};

use super::rows::Rows;
use super::stacks::Event;
use super::world::World;
use crate::tasks::effects;
use crate::tasks::{TaskId, Tasks};

/// A signal was sent or taken, or the OOM killer chose a victim.
pub(super) fn record(parts: &SignalParts<'_>, world: &mut World, rows: &mut Rows) {
    let s = &parts.signal;
    let kind = match s.kind {
        wire::SIGNAL_GENERATE => SignalKind::Generate,
        wire::SIGNAL_DELIVER => SignalKind::Deliver,
        _ => SignalKind::OomVictim,
    };
    let flags = u32::from(s.hdr.flags);
    let target = target(&s.target, world);
    let sender = (s.sender.hdr.kind != 0).then(|| introduced(world, &s.sender, s.argv_at));
    if let Some(sender) = sender.filter(|_| kind == SignalKind::Generate && world.tasks.is_target(target)) {
        // who kills a target is the answer to a question about the target
        let entry = world.tasks.get_mut(sender);
        if !std::mem::replace(&mut entry.sender, true) {
            entry.interned = (u32::MAX, 0);
        }
    }
    if rows.sheds(Family::Signal, s.ts) {
        return;
    }
    let (call, call_path) = call_of(parts, sender, world, rows);
    let caller = sender;
    let (target, sender) = (rows.task(&mut world.tasks, target), sender.map(|id| rows.task(&mut world.tasks, id)));
    let argv = parts.argv.strip_suffix(&[0]).unwrap_or(parts.argv).to_vec();
    rows.stored(Family::Signal, s.ts);
    let row = rows.builder.push_signal(SignalEvent {
        ts: s.ts,
        kind,
        sig: s.sig,
        code: s.code,
        errno: s.err,
        info: info(s.info),
        result: s.result,
        flags,
        target,
        sender,
        call,
        call_args: s.call_args,
        call_path,
        si_pid: s.si_pid,
        si_uid: s.si_uid,
        addr: s.addr,
        ip: s.ip,
        sender_ancestors: ancestors(&parts.sender_ancestors),
        target_ancestors: ancestors(&parts.target_ancestors),
        argv,
        argv_status: ByteStatus::from_raw(s.argv_status).unwrap_or(ByteStatus::NotResident),
        argv_full: s.argv_full,
        oom: OomMemory { total_vm: s.oom[0], anon: s.oom[1], file: s.oom[2], shmem: s.oom[3] },
    });
    // of the everyday ones no stack is taken, as no ancestors are
    let expected = s.kind == wire::SIGNAL_GENERATE && flags & SIGNAL_INTERRUPT == 0 && s.target_ancestors > 0;
    if let Some(caller) = caller.filter(|_| s.kind == wire::SIGNAL_GENERATE) {
        let event = Event { of: StackOf::Signal, row, task: caller, tid: s.sender.id.tid, time: s.ts };
        rows.attach(&world.tasks, event, expected);
    }
}

fn info(wire: u8) -> SignalInfo {
    match wire {
        signal_info::SIGINFO => SignalInfo::Siginfo,
        signal_info::NOINFO => SignalInfo::NoInfo,
        signal_info::PRIV => SignalInfo::Priv,
        _ => SignalInfo::Unknown,
    }
}

/// The sender's call with its index in the segment, and the file of its fd argument; None and empty: no call, or not
/// known.
fn call_of(
    parts: &SignalParts<'_>,
    sender: Option<TaskId>,
    world: &mut World,
    rows: &mut Rows,
) -> (Option<u32>, Vec<u8>) {
    let s = &parts.signal;
    if s.nr == wire::SNAP_NO_CALL || u32::from(s.hdr.flags) & SIGNAL_INTERRUPT != 0 {
        return (None, Vec::new());
    }
    let info = world.call_info(s.abi, s.nr);
    let socket = wire::socket(parts.path).and_then(|socket| world.sockets.find(socket.inode));
    let path = match (wire::name(parts.path), sender) {
        (Some(path), _) => socket.map_or(path, |socket| socket.at(s.ts, |name| name.bytes.clone())),
        (None, Some(sender)) => call_path(&world.tasks, sender, info, s),
        (None, None) => Vec::new(),
    };
    (Some(rows.call(world, s.abi, s.nr, &info)), path)
}

/// Kernels before 6.1 name an OOM victim by its pid only.
fn target(target: &wire::Task, world: &mut World) -> TaskId {
    match target.id.start {
        0 => world.tasks.process(target.id.pid).unwrap_or_else(|| world.tasks.find_or_add(&target.id)),
        _ => introduced(world, target, 0),
    }
}

/// A task that may not be recorded itself; its executable is looked up while the task may still exist, and anew when its arguments are
/// at another place (0: not known), because it executes another program then.
fn introduced(world: &mut World, task: &wire::Task, argv_at: u64) -> TaskId {
    let id = world.tasks.introduce(task);
    let stranger = world.tasks.is_stranger(id);
    let entry = world.tasks.get_mut(id);
    if stranger && argv_at != 0 && std::mem::replace(&mut entry.argv_at, argv_at) != argv_at {
        entry.looked_up = false;
        if !std::mem::take(&mut entry.task.exe).is_empty() {
            entry.interned = (u32::MAX, 0);
        }
    }
    if entry.task.exe.is_empty() && !entry.looked_up {
        (entry.looked_up, entry.argv_at) = (true, argv_at);
        world.look_up_exe(task.id, task.here_pid, argv_at);
    }
    id
}

/// File of the fd argument of the sender's call; empty = it has none, or not known.
fn call_path(tasks: &Tasks, sender: TaskId, info: effects::CallFacts, s: &wire::Signal) -> Vec<u8> {
    let fd = info.fd_args[0].and_then(|arg| s.call_args.get(usize::from(arg))).map(|fd| *fd as i32);
    let Some(fd) = fd.filter(|fd| *fd >= 0) else { return Vec::new() };
    effects::resolve(tasks, sender, &info, s.ts, fd, |name| name.bytes.clone()).unwrap_or_default()
}

fn ancestors(chain: &[wire::Ancestor]) -> Vec<Ancestor> {
    chain.iter().map(|a| Ancestor { pid: a.pid, start_ns: a.start, comm: wire::comm(&a.comm) }).collect()
}
