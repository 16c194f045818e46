//! Process life: tasks that appear, fork, exec, change and end.

use systape_bpf::wire;
use systape_format::model::{
    ByteStatus, CGROUP_ALL_THREADS, FORK_SHARES_FILES, FORK_SHARES_FS, FORK_THREAD, Family, ProcessEvent, ProcessKind,
    TARGET_RUNNING,
};

use super::Encoder;
use crate::tasks::{Argv as CommandLine, Execed, TaskId};

impl Encoder {
    fn process_event(&mut self, ev: ProcessEvent) {
        self.stored(Family::Process, ev.ts);
        self.builder.push_process(ev);
    }

    fn event(&mut self, kind: ProcessKind, ts: u64, task: TaskId) -> ProcessEvent {
        let index = self.interned_task(task);
        ProcessEvent::new(ts, kind, index)
    }

    /// Stores an event about `id`, filled by `fill`, if it is a target or is a target's matter for another reason (`or`): it was one until
    /// then, or one made it. Of others the tape has none.
    fn life(
        &mut self,
        (kind, ts): (ProcessKind, u64),
        id: TaskId,
        or: bool,
        fill: impl FnOnce(&mut Self, &mut ProcessEvent),
    ) {
        if (or || self.tasks.is_target(id)) && !self.sheds(Family::Process, ts) {
            let mut ev = self.event(kind, ts, id);
            fill(self, &mut ev);
            self.process_event(ev);
        }
    }

    /// That a task became a target or is none any more, where nothing else tells; `running`: it was on a CPU then.
    fn retarget(&mut self, ts: u64, id: TaskId, running: bool) {
        if self.sheds(Family::Process, ts) {
            return;
        }
        let mut ev = self.event(ProcessKind::Target, ts, id);
        ev.flags = if running { TARGET_RUNNING } else { 0 };
        self.process_event(ev);
    }

    pub(super) fn task(&mut self, t: &wire::Task) {
        let before = self.tasks.find(&t.id);
        let (known, was) = (before.is_some(), before.is_some_and(|id| self.tasks.is_target(id)));
        let id = self.tasks.learn(t);
        match t.hdr.flags & wire::TASK_REASON {
            wire::TASK_RENAME => {
                self.life((ProcessKind::Rename, t.ts), id, was, |own, ev| {
                    ev.comm.clone_from(&own.tasks.get(id).task.comm);
                });
            }
            wire::TASK_CRED => {
                self.life((ProcessKind::Cred, t.ts), id, was, |_, _| {});
            }
            reason @ (wire::TASK_CGROUP | wire::TASK_CGROUP_ALL) => {
                let all = reason == wire::TASK_CGROUP_ALL;
                let others = if all { self.tasks.move_process(id, t) } else { Vec::new() };
                self.life((ProcessKind::Cgroup, t.ts), id, was || !others.is_empty(), |_, ev| {
                    ev.flags = if all { CGROUP_ALL_THREADS } else { 0 };
                });
                others.into_iter().for_each(|other| self.retarget(t.ts, other, false));
            }
            _ => {
                if known && was != self.tasks.is_target(id) {
                    // it sent the record itself
                    self.retarget(t.ts, id, true);
                }
                // its first call came after the start: its files were never told
                if !known && !self.tasks.files(id).is_complete() {
                    self.reread(id);
                }
            }
        }
    }

    pub(super) fn fork(&mut self, f: &wire::Fork) {
        let parent = self.tasks.find_or_add(&f.parent);
        let flags = u32::from(f.child.hdr.flags & wire::TASK_REASON);
        let has = |bit| flags & bit != 0;
        let child = self.tasks.fork(&f.child, parent, has(FORK_SHARES_FILES), has(FORK_THREAD), has(FORK_SHARES_FS));
        let by_target = self.tasks.is_target(parent);
        self.life((ProcessKind::Fork, f.child.ts), child, by_target, |own, ev| {
            ev.parent = own.interned_task(parent);
            ev.flags = flags;
        });
    }

    pub(super) fn exec(&mut self, e: &wire::Exec, path: &[u8], argv: &[u8]) {
        let ts = e.task.ts;
        let old = wire::Ident { tid: e.old_tid, ..e.task.id };
        let found = self.tasks.find(&e.task.id);
        let was = found.is_some_and(|id| self.tasks.is_target(id));
        if let Some(leader) = found {
            self.counted_of((e.task.id.pid, e.task.id.leader_start));
            self.tasks.will_exec(leader, ts);
        }
        if e.old_tid != e.task.id.tid {
            // the thread that called exec: its start time is no longer told, its process is
            let thread = self.tasks.alive().find(|(_, t)| t.task.tid == old.tid && t.task.pid == e.task.id.pid);
            if let Some(thread) = thread.map(|(id, _)| id) {
                self.tasks.rename_ident(thread, &e.task.id);
            }
        } else if found.is_none() {
            self.tasks.find_or_add(&e.task.id);
        }
        let id = self.tasks.learn(&e.task);
        self.tasks.unshare_files(id);
        self.tasks.files_mut(id).exec(ts);
        let argv = argv.strip_suffix(&[0]).unwrap_or(argv);
        let exe = self.absolute(id, path);
        let entry = self.tasks.get_mut(id);
        entry.task.exe = exe;
        entry.argv = Some(CommandLine::cut(argv, u64::from(e.argv_full)));
        entry.execed = Some(Execed {
            path: path.to_vec(),
            argv: (e.interpreted == 0).then(|| argv.to_vec()),
            argv_status: e.argv_status,
            argv_full: u64::from(e.argv_full),
        });
        entry.interned = (u32::MAX, 0);
        self.life((ProcessKind::Exec, ts), id, was, |own, ev| {
            // what it is now is no target's matter if it ceased to be one, as by --comm
            ev.argv_status = ByteStatus::NotResident;
            if own.tasks.is_target(id) {
                ev.path = path.to_vec();
                ev.argv = argv.to_vec();
                ev.argv_full = u64::from(e.argv_full);
                ev.argv_status = ByteStatus::from_raw(e.argv_status).unwrap_or(ev.argv_status);
            }
            ev.old_tid = if e.old_tid == e.task.id.tid { 0 } else { e.old_tid };
        });
    }

    /// A path as given to exec, made absolute where the directory is known; empty = unknown.
    fn absolute(&self, id: TaskId, path: &[u8]) -> Vec<u8> {
        if path.starts_with(b"/") {
            return path.to_vec();
        }
        match &self.tasks.get(id).cwd {
            Some(cwd) => [cwd.bytes.as_slice(), b"/", path.strip_prefix(b"./").unwrap_or(path)].concat(),
            None => Vec::new(),
        }
    }

    pub(super) fn exit(&mut self, e: &wire::Exit) {
        let id = self.tasks.find_or_add(&e.id);
        self.life((ProcessKind::Exit, e.ts), id, false, |_, ev| {
            ev.exit_code = e.exit_code;
            // the seccomp mode it died with
            ev.flags = u32::from(e.hdr.flags);
            ev.group_dead = e.group_dead != 0;
        });
        self.tasks.exit(id, e.ts);
    }
}
