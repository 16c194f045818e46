//! Process life: new tasks, fork, exec, changes and exits.

use systape_bpf::wire;
use systape_format::model::{
    ByteStatus, CGROUP_ALL_THREADS, FORK_SHARES_FILES, FORK_SHARES_FS, FORK_THREAD, Family, ProcessEvent, ProcessKind,
    TARGET_RUNNING,
};

use super::rows::Rows;
use super::world::World;
use crate::descriptors::names::FileKey;
use crate::tasks::{Argv as CommandLine, Execed, TaskId, Tasks};

fn store(rows: &mut Rows, ev: ProcessEvent) {
    rows.stored(Family::Process, ev.ts);
    rows.builder.push_process(ev);
}

fn event(world: &mut World, rows: &mut Rows, kind: ProcessKind, ts: u64, task: TaskId) -> ProcessEvent {
    let index = rows.task(&mut world.tasks, task);
    ProcessEvent::new(ts, kind, index)
}

/// Stores an event of `id`, filled by `fill`, if it is a target or the event concerns a target for another reason
/// (`or`): it was one until then, or a target made it. Other tasks' events are not stored.
fn life(
    (world, rows): (&mut World, &mut Rows),
    (kind, ts): (ProcessKind, u64),
    id: TaskId,
    or: bool,
    fill: impl FnOnce(&mut World, &mut Rows, &mut ProcessEvent),
) {
    let of_thread = matches!(kind, ProcessKind::Fork | ProcessKind::Rename);
    if of_thread && rows.without_threads && is_thread(&world.tasks, id) {
        return;
    }
    if (or || world.tasks.is_target(id)) && !rows.sheds(Family::Process, ts) {
        let mut ev = event(world, rows, kind, ts, id);
        fill(world, rows, &mut ev);
        store(rows, ev);
    }
}

/// Whether a task is another thread of its process than the first.
fn is_thread(tasks: &Tasks, id: TaskId) -> bool {
    let task = &tasks.get(id).task;
    task.tid != task.pid
}

/// A task became a target or ceased to be one, without another event for it; `running`: it was on a CPU then.
fn retarget(world: &mut World, rows: &mut Rows, ts: u64, id: TaskId, running: bool) {
    if rows.sheds(Family::Process, ts) {
        return;
    }
    let mut ev = event(world, rows, ProcessKind::Target, ts, id);
    ev.flags = if running { TARGET_RUNNING } else { 0 };
    store(rows, ev);
}

/// A task's first record, or a change of it.
pub(super) fn task(t: &wire::Task, world: &mut World, rows: &mut Rows) {
    let before = world.tasks.find(&t.id);
    let (known, was) = (before.is_some(), before.is_some_and(|id| world.tasks.is_target(id)));
    let id = world.tasks.learn(t);
    match t.hdr.flags & wire::TASK_REASON {
        wire::TASK_RENAME => {
            life((world, rows), (ProcessKind::Rename, t.ts), id, was, |world, _, ev| {
                ev.comm.clone_from(&world.tasks.get(id).task.comm);
            });
        }
        wire::TASK_CRED => {
            life((world, rows), (ProcessKind::Cred, t.ts), id, was, |_, _, _| {});
        }
        reason @ (wire::TASK_CGROUP | wire::TASK_CGROUP_ALL) => {
            let all = reason == wire::TASK_CGROUP_ALL;
            let others = if all { world.tasks.move_process(id, t) } else { Vec::new() };
            life((world, rows), (ProcessKind::Cgroup, t.ts), id, was || !others.is_empty(), |_, _, ev| {
                ev.flags = if all { CGROUP_ALL_THREADS } else { 0 };
            });
            others.into_iter().for_each(|other| retarget(world, rows, t.ts, other, false));
        }
        _ => {
            if known && was != world.tasks.is_target(id) {
                // it sent the record itself
                retarget(world, rows, t.ts, id, true);
            }
            if !known && world.tasks.is_target(id) {
                // no event says that it began: a process of which calls are only counted must be seen to have it
                rows.task(&mut world.tasks, id);
            }
            // its first call came after the start: its files were never told
            if !known && !world.tasks.files(id).is_complete() {
                world.reread(id);
            }
        }
    }
}

/// A task was created.
pub(super) fn fork(f: &wire::Fork, world: &mut World, rows: &mut Rows) {
    let parent = world.tasks.find_or_add(&f.parent);
    let flags = u32::from(f.child.hdr.flags & wire::TASK_REASON);
    let has = |bit| flags & bit != 0;
    let child = world.tasks.fork(&f.child, parent, has(FORK_SHARES_FILES), has(FORK_THREAD), has(FORK_SHARES_FS));
    let by_target = world.tasks.is_target(parent);
    life((world, rows), (ProcessKind::Fork, f.child.ts), child, by_target, |world, rows, ev| {
        ev.parent = rows.task(&mut world.tasks, parent);
        ev.flags = flags;
    });
}

/// A process executed another program.
pub(super) fn exec(e: &wire::Exec, path: &[u8], argv: &[u8], world: &mut World, rows: &mut Rows) {
    let ts = e.task.ts;
    let old = wire::Ident { tid: e.old_tid, ..e.task.id };
    let found = world.tasks.find(&e.task.id);
    let was = found.is_some_and(|id| world.tasks.is_target(id));
    if let Some(leader) = found {
        world.tasks.will_exec(leader, ts);
    }
    if e.old_tid != e.task.id.tid {
        // the thread that called exec: its start time is no longer told, its process is
        let thread = world.tasks.alive().find(|(_, t)| t.task.tid == old.tid && t.task.pid == e.task.id.pid);
        if let Some(thread) = thread.map(|(id, _)| id) {
            world.tasks.rename_ident(thread, &e.task.id);
        }
    } else if found.is_none() {
        world.tasks.find_or_add(&e.task.id);
    }
    let id = world.tasks.learn(&e.task);
    world.tasks.unshare_files(id);
    world.tasks.files_mut(id).exec(ts);
    let argv = argv.strip_suffix(&[0]).unwrap_or(argv);
    let exe = absolute(&world.tasks, id, path);
    let entry = world.tasks.get_mut(id);
    entry.task.exe.clone_from(&exe);
    // the next record has it
    entry.task.env = Vec::new();
    entry.argv = Some(CommandLine::cut(argv, u64::from(e.argv_full)));
    entry.execed = Some(Execed {
        path: path.to_vec(),
        argv: (e.interpreted == 0).then(|| argv.to_vec()),
        argv_status: e.argv_status,
        argv_full: u64::from(e.argv_full),
    });
    entry.interned = (u32::MAX, 0);
    if e.file.inode != 0 && !exe.is_empty() && world.tasks.is_target(id) && !rows.shedding.is_all() {
        rows.executed(&exe, &FileKey { since: ts, inode: e.file });
    }
    life((world, rows), (ProcessKind::Exec, ts), id, was, |world, _, ev| {
        // what it is now is no target's matter if it ceased to be one, as by --comm
        ev.argv_status = ByteStatus::NotResident;
        if world.tasks.is_target(id) {
            ev.path = path.to_vec();
            ev.argv = argv.to_vec();
            ev.argv_full = u64::from(e.argv_full);
            ev.argv_status = ByteStatus::from_raw(e.argv_status).unwrap_or(ev.argv_status);
        }
        ev.old_tid = if e.old_tid == e.task.id.tid { 0 } else { e.old_tid };
    });
}

/// A part of the environment with which the program of the last exec began.
pub(super) fn environ(e: &wire::Environ, bytes: &[u8], world: &mut World) {
    let (keys, parts) = &mut world.environ;
    let Some((block, whole)) = parts.add(e, bytes) else { return };
    let env = keys.kept(&block, whole);
    if let Some(id) = world.tasks.find(&e.id) {
        let entry = world.tasks.get_mut(id);
        entry.task.env = env;
        entry.interned = (u32::MAX, 0);
    }
}

/// A path passed to exec, made absolute if the directory is known; empty = unknown.
fn absolute(tasks: &Tasks, id: TaskId, path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    match &tasks.get(id).cwd {
        Some(cwd) => [cwd.bytes.as_slice(), b"/", path.strip_prefix(b"./").unwrap_or(path)].concat(),
        None => Vec::new(),
    }
}

/// A task ended.
pub(super) fn exit(e: &wire::Exit, world: &mut World, rows: &mut Rows) {
    let id = world.tasks.find_or_add(&e.id);
    let of_process = e.group_dead != 0;
    if of_process || !rows.without_threads || !is_thread(&world.tasks, id) {
        store_exit(e, id, world, rows);
    }
    world.tasks.exit(id, e.ts);
}

fn store_exit(e: &wire::Exit, id: TaskId, world: &mut World, rows: &mut Rows) {
    life((world, rows), (ProcessKind::Exit, e.ts), id, false, |_, _, ev| {
        ev.exit_code = e.exit_code;
        // the seccomp mode it died with
        ev.flags = u32::from(e.hdr.flags);
        ev.group_dead = e.group_dead != 0;
    });
}
