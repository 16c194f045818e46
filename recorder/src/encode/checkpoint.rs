//! Checkpoints: tasks, their descriptors and command lines, and the calls they are in.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use systape_bpf::wire::{self, Snap};
use systape_format::model::{Checkpoint, CommandLine, Fd, FdTable, InFlight, RunState};

use super::calls::Calls;
use super::world::World;
use crate::descriptors::names::Name;
use crate::own::clock;
use crate::tasks::{TaskEntry, TaskId};

/// The `source` of the first checkpoint.
pub(super) const SNAPSHOT: &str = "snapshot";

/// What a thread has apart from its process, whose leader and its table `leaders` have, without the open files; None: nothing.
fn apart(id: TaskId, entry: &TaskEntry, leaders: &HashMap<u32, (TaskId, u32)>) -> Option<FdTable> {
    let (leader, files) = *leaders.get(&entry.task.upid)?;
    let own_fds = if entry.files == files || leader == id { 0 } else { FdTable::OWN_FDS };
    let own_cwd = if entry.own_cwd { FdTable::OWN_CWD } else { 0 };
    let cwd = entry.cwd.as_ref().filter(|_| entry.own_cwd).map(|cwd| cwd.bytes.clone()).unwrap_or_default();
    let table = FdTable { thread: entry.task.utid, own: own_fds | own_cwd, cwd, ..FdTable::default() };
    (table.own != 0).then_some(table)
}

/// The full state at `ts`, when `snaps` had the state of each task; `source`: its origin.
pub(super) fn of(world: &mut World, calls: &Calls, ts: u64, snaps: &[Snap], source: &str) -> Checkpoint {
    let mut cp = Checkpoint { ts, clock: clock::sample(), source: source.into(), ..Checkpoint::default() };
    let mut seen_tables = HashSet::new();
    let listed = |(fd, file, cloexec): (i32, Rc<Name>, bool)| {
        let path = file.at(ts, |name| name.bytes.clone());
        Fd { fd, path, cloexec }
    };
    // the command waits until all is ready, and becomes a target with its first event, its exec: what it begins with is known by then
    let first = source == SNAPSHOT;
    let idle: HashSet<_> = snaps.iter().filter(|snap| first && snap.matched == wire::SNAP_IDLE).map(ident).collect();
    let recorded: HashSet<_> =
        world.tasks.alive().filter(|(id, _)| first && world.tasks.is_target(*id)).map(|(_, e)| e.task.upid).collect();
    let leaders: HashMap<u32, (TaskId, u32)> = world
        .tasks
        .alive()
        .filter(|(_, e)| e.task.tid == e.task.pid)
        .map(|(id, e)| (e.task.upid, (id, e.files)))
        .collect();
    let mut users: HashMap<u32, usize> = HashMap::new();
    world.tasks.alive().for_each(|(_, e)| *users.entry(e.files).or_default() += 1);
    for (id, entry) in world.tasks.alive() {
        if !world.tasks.is_target(id) {
            if let Some(cwd) = entry.cwd.as_ref().filter(|_| first && !recorded.contains(&entry.task.upid))
                && seen_tables.insert((entry.task.upid, entry.files))
            {
                let (upid, cwd) = (entry.task.upid, cwd.bytes.clone());
                let mut table = FdTable { upid, cwd, ..FdTable::default() };
                if idle.contains(&(entry.task.tid, entry.task.start_ns)) {
                    let files = world.tasks.files(id);
                    table.complete = files.is_complete();
                    // others are the recorder's own
                    table.fds = files.open().into_iter().filter(|(.., cloexec)| !cloexec).map(listed).collect();
                }
                cp.fd_tables.push(table);
            }
            continue;
        }
        cp.tasks.push(entry.task.clone());
        let files = world.tasks.files(id);
        if let Some(mut table) = apart(id, entry, &leaders) {
            // one of several that share it is not told by what the others do
            if table.own & FdTable::OWN_FDS != 0 && users[&entry.files] == 1 {
                (table.complete, table.fds) = (files.is_complete(), files.open().into_iter().map(listed).collect());
            }
            cp.fd_tables.push(table);
            continue;
        }
        let open = files.open();
        if (open.is_empty() && entry.cwd.is_none()) || !seen_tables.insert((entry.task.upid, entry.files)) {
            continue;
        }
        let fds = open.into_iter().map(listed).collect();
        let cwd = entry.cwd.as_ref().map(|c| c.bytes.clone()).unwrap_or_default();
        let (upid, complete) = (entry.task.upid, files.is_complete());
        cp.fd_tables.push(FdTable { upid, complete, cwd, fds, ..FdTable::default() });
    }
    cp.tasks.extend(world.tasks.above_targets());
    // a process may live on without its first thread
    let mut told = HashSet::new();
    for (_, entry) in world.tasks.alive().filter(|(id, _)| world.tasks.is_target(*id)) {
        if let Some(argv) = entry.argv.as_ref().filter(|_| told.insert(entry.task.upid)) {
            cp.commands.push(CommandLine { upid: entry.task.upid, argv: argv.bytes.clone(), full: argv.full });
        }
    }
    for snap in snaps {
        // a zombie is in the walk, but it does not live
        let known = world.tasks.find(&snap.task.id);
        let Some(id) = known.filter(|id| world.tasks.is_alive(*id) && world.tasks.is_target(*id)) else { continue };
        let utid = world.tasks.get(id).task.utid;
        let (on_cpu, last_run) = (snap.on_cpu != 0, snap.last_run.min(snap.task.ts));
        // events up to `ts` are told before the checkpoint, those until the task was looked at after it
        let seen = snap.task.ts;
        cp.run.push(RunState { utid, state: snap.state, on_cpu, cpu: snap.cpu, last_run, seen });
        if let Some(call) = calls.open_call(snap) {
            cp.in_flight.push(InFlight { utid, ..call });
        }
    }
    cp
}

/// What identifies a task.
fn ident(snap: &Snap) -> (u32, u64) {
    (snap.task.id.tid, snap.task.id.start)
}
