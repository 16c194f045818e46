//! The state at the start: data read of each process, before the first event is processed.

use std::collections::HashSet;

use rustc_hash::FxHashMap;
use systape_abi::Effect;
use systape_abi::descriptors::{SocketUse, pair_of};
use systape_bpf::wire::{self, Ident, Record, Snap, Syscall};
use systape_format::model::{CPU_NONE, Checkpoint, Family, Fd, Gap, GapCause, RunState};

use super::calls::{Calls, new_fds};
use super::names::MOST_AT_START;
use super::rows::{Piece, Rows};
use super::touched::SinceStart;
use super::world::World;
use super::{Start, UnreadProcess, checkpoint};
use crate::rings::order::Order;
use crate::tasks::TaskId;
use crate::tasks::effects::CallFacts;

/// Adds the state at the start. Every record up to `start.done` must have been added.
pub(super) fn begin(
    start: &mut Start,
    window_open: u64,
    order: &mut Order,
    world: &mut World,
    rows: &mut Rows,
    calls: &mut Calls,
) {
    calls.know(std::mem::take(&mut start.memory));
    let calls = &*calls;
    // leaders first: threads find their process's table of files through them, and ids wrap around
    let is_thread = |snap: &&Snap| snap.task.id.tid != snap.task.id.pid;
    let (threads, leaders): (Vec<&Snap>, Vec<&Snap>) = start.snaps.iter().partition(is_thread);
    for snap in leaders.into_iter().chain(threads) {
        world.tasks.learn(&snap.task);
    }
    let WaitingChanges { fds: touched, moved, sockets: renamed } = touched(order, start.done.saturating_add(1));
    let mut members: FxHashMap<u32, Vec<TaskId>> = FxHashMap::default();
    for (id, entry) in world.tasks.alive() {
        members.entry(entry.task.pid).or_default().push(id);
    }
    world.opened = (window_open, std::mem::take(&mut start.opens.files));
    for mut process in std::mem::take(&mut start.processes) {
        // of who moved since the start it is not known whether it was looked at before or after
        process.cwd = process.cwd.filter(|_| !moved.contains(&process.pid));
        let skip = touched.get(&process.pid).map(|since| &since.touched);
        let Some(members) = members.get(&process.pid) else { continue };
        let of = &process.of;
        if !of.threads.is_empty() {
            let its = |id: &&TaskId| of.threads.contains(&world.tasks.get(**id).task.tid);
            let threads: Vec<TaskId> = members.iter().filter(its).copied().collect();
            world.apply_apart(&process, &threads, |fd| skip.is_none_or(|skip| !skip.contains(fd)));
            continue;
        }
        // another process may change it unseen
        if of.dir {
            process.cwd = None;
        }
        if of.files {
            (process.fds, process.cut) = (Some(Vec::new()), true);
        }
        // open before the recording, for all that is known: calls that began before it are resolved too
        world.apply_process(&process, members, 0, |fd| skip.is_none_or(|skip| !skip.contains(fd)));
    }
    world.opened = Default::default();
    // what they were called before what waits is not known
    let known = start.opens.sockets.iter().filter(|socket| !renamed.contains(&socket.inode));
    for socket in known {
        if world.sockets.find(socket.inode).is_some() {
            world.socket(socket, 0, None, SocketUse::Uses);
        }
    }
    world.renamed.truncate(MOST_AT_START);
    world.renamed.iter_mut().for_each(|socket| socket.ts = window_open);
    tell_unread(&start.unread, (window_open, start.done), rows);
    bury(&start.snaps, window_open, order, world, start.done.saturating_add(1));
    let mut checkpoint = checkpoint::of(world, calls, window_open, &start.snaps, checkpoint::SNAPSHOT);
    complete(&mut checkpoint, &touched, world);
    as_of_start(&mut checkpoint, order, world, start.done.saturating_add(1));
    rows.pieces.push(Piece::Checkpoint(Box::new(checkpoint)));
    rows.stacks.chunk_ends();
}

/// Reports the processes that could not be read in time: no event is missing for them.
fn tell_unread(unread: &[UnreadProcess], (first, last): (u64, u64), rows: &mut Rows) {
    /// Most processes that are named.
    const NAMED: usize = 64;
    for files in [true, false] {
        // who misses both is told of once
        let of = |unread: &&UnreadProcess| unread.files == files;
        let family = if files { Family::State } else { Family::Process };
        let gap = |pid, count| Gap {
            cause: GapCause::NotRead,
            family,
            cpu: CPU_NONE,
            count,
            first,
            last,
            pid,
            ledger: false,
        };
        unread.iter().filter(of).take(NAMED).for_each(|process| rows.gap(gap(process.pid, 1)));
        let more = unread.iter().filter(of).skip(NAMED).count() as u64;
        if more > 0 {
            rows.gap(gap(0, more));
        }
    }
}

/// Tasks that ended before the recording and were not reaped yet: they have no exit event.
fn bury(snaps: &[Snap], window_open: u64, order: &mut Order, world: &mut World, until: u64) {
    if snaps.iter().all(|snap| snap.exiting == 0) {
        return;
    }
    let mut told: HashSet<(u32, u64)> = HashSet::new();
    for pending in order.before(until) {
        if let Ok(Record::Exit(e)) = wire::parse(pending.bytes) {
            told.insert((e.id.tid, e.id.start));
        }
    }
    let ended = snaps.iter().map(|snap| (snap.exiting, &snap.task.id));
    for (_, id) in ended.filter(|(exiting, id)| *exiting != 0 && !told.contains(&(id.tid, id.start))) {
        if let Some(task) = world.tasks.find(id) {
            world.tasks.exit(task, window_open);
        }
    }
}

/// What waiting records change.
#[derive(Default)]
struct WaitingChanges {
    /// Descriptors by process.
    fds: FxHashMap<u32, SinceStart>,
    /// Processes that change their current directory.
    moved: HashSet<u32>,
    /// Sockets that are named, and the other ends of those, by inode.
    sockets: HashSet<u64>,
}

/// What records change that wait until `until`.
fn touched(order: &mut Order, until: u64) -> WaitingChanges {
    let WaitingChanges { fds: mut touched, mut moved, mut sockets } = WaitingChanges::default();
    let mut infos: FxHashMap<(u8, u32), CallFacts> = FxHashMap::default();
    for pending in order.before(until) {
        match wire::parse(pending.bytes) {
            Ok(Record::Closing(c)) => {
                let info = infos.entry((c.abi, c.nr)).or_insert_with(|| CallFacts::new(c.abi, c.nr));
                touched.entry(c.id.pid).or_default().entered(info.effect, &c.args);
            }
            // the list is of the new program: what exec closed is not in it
            Ok(Record::Exec(e, ..)) => touched.entry(e.task.id.pid).or_default().unsure = true,
            Ok(Record::Syscall(s, data)) => {
                for name in names(&s, data) {
                    sockets.extend(wire::socket(name).into_iter().flat_map(|socket| [socket.inode, socket.peer]));
                }
                let info = infos.entry((s.abi, s.nr)).or_insert_with(|| CallFacts::new(s.abi, s.nr));
                if s.ret < 0 {
                    if s.ret == i64::from(-libc::EBADF) && info.effect == Effect::Close {
                        touched.entry(s.id.pid).or_default().was_closed(s.args[0] as i32);
                    }
                    continue;
                }
                if matches!(info.effect, Effect::Chdir | Effect::Fchdir | Effect::Chroot | Effect::PivotRoot) {
                    moved.insert(s.id.pid);
                }
                // a pair is the only thing such a call captures before its names
                let fds = new_fds(info, &s, pair_of(data));
                touched.entry(s.id.pid).or_default().touched.made(fds);
            }
            _ => {}
        }
    }
    WaitingChanges { fds: touched, moved, sockets }
}

/// Adds what was open at the start and closed before the lists were read, without a name; where there may have been more, a
/// list says that it is not complete.
fn complete(checkpoint: &mut Checkpoint, touched: &FxHashMap<u32, SinceStart>, world: &World) {
    let pids: FxHashMap<u32, u32> = world.tasks.alive().map(|(_, e)| (e.task.upid, e.task.pid)).collect();
    let threads: FxHashMap<u32, u32> = world.tasks.alive().map(|(_, e)| (e.task.utid, e.task.pid)).collect();
    for table in &mut checkpoint.fd_tables {
        if table.thread != 0 {
            // which thread did it is not noted
            table.complete &= threads.get(&table.thread).is_none_or(|pid| !touched.contains_key(pid));
            continue;
        }
        let Some(since) = pids.get(&table.upid).and_then(|pid| touched.get(pid)) else { continue };
        table.complete &= !since.unsure;
        let unnamed = since.open.iter().map(|fd| Fd { fd: *fd, path: Vec::new(), cloexec: false });
        let known: HashSet<i32> = table.fds.iter().map(|fd| fd.fd).collect();
        table.fds.extend(unnamed.filter(|fd| fd.fd >= 0 && !known.contains(&fd.fd)));
        table.fds.sort_unstable_by_key(|fd| fd.fd);
    }
}

/// The kernel side's names in a call's captured bytes.
fn names<'a>(s: &Syscall, mut data: &'a [u8]) -> Vec<&'a [u8]> {
    let mut names = Vec::new();
    for capture in wire::captures(s) {
        let Some((bytes, rest)) = data.split_at_checked(capture.len.into()) else { break };
        data = rest;
        if matches!(capture.arg, wire::CAPTURE_NAME0 | wire::CAPTURE_NAME1) {
            names.push(bytes);
        }
    }
    names
}

/// The tasks' state was read a little after the start. A task's first event until then decides about the time before
/// it: a woken task slept, a task that leaves a CPU was on it.
fn as_of_start(checkpoint: &mut Checkpoint, order: &mut Order, world: &mut World, until: u64) {
    let mut first: FxHashMap<(u32, u64), RunState> = FxHashMap::default();
    for pending in order.before(until) {
        match wire::parse(pending.bytes) {
            Ok(Record::Switch(s)) => {
                let cpu = s.hdr.cpu;
                let ran = RunState { state: b'R', on_cpu: true, cpu, ..RunState::default() };
                let came = RunState { state: 0, on_cpu: false, ..ran };
                let unseen = s.hdr.flags & wire::SWITCH_UNSEEN != 0;
                first.entry((s.prev.tid, s.prev.start)).or_insert(if unseen { came } else { ran });
                first.entry((s.next.tid, s.next.start)).or_insert(RunState { on_cpu: false, ..ran });
            }
            Ok(Record::Wakeup(w)) if w.hdr.flags & wire::WAKEUP_NEW == 0 => {
                let slept = RunState { state: b'S', cpu: w.target_cpu, ..RunState::default() };
                first.entry((w.wakee.tid, w.wakee.start)).or_insert(slept);
            }
            _ => {}
        }
    }
    let mut by_utid: FxHashMap<u32, RunState> = FxHashMap::default();
    for ((tid, start), state) in first {
        if let Some(id) = world.tasks.find(&Ident { tid, start, ..Ident::default() }) {
            by_utid.insert(world.tasks.get(id).task.utid, state);
        }
    }
    for run in &mut checkpoint.run {
        run.seen = 0;
        let Some(then) = by_utid.get(&run.utid) else { continue };
        let slept = matches!(run.state, b'D' | b'I' | b'T' | b't' | b'F') && then.state == b'S';
        run.state = if slept { run.state } else { then.state };
        (run.on_cpu, run.cpu) = (then.on_cpu, then.cpu);
        // it came on a CPU since
        run.last_run = if run.last_run >= checkpoint.ts { 0 } else { run.last_run };
    }
}
