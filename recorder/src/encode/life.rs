//! Process life: tasks that appear, fork, exec, change and end.

use systape_bpf::wire;
use systape_format::model::{
    ByteStatus, CGROUP_ALL_THREADS, FORK_SHARES_FILES, FORK_SHARES_FS, FORK_THREAD, Family, ProcessEvent, ProcessKind,
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

    pub(super) fn task(&mut self, t: &wire::Task) {
        let known = self.tasks.find(&t.id).is_some();
        let id = self.tasks.learn(t);
        match t.hdr.flags {
            wire::TASK_RENAME => {
                let mut ev = self.event(ProcessKind::Rename, t.ts, id);
                ev.comm.clone_from(&self.tasks.get(id).task.comm);
                self.process_event(ev);
            }
            wire::TASK_CRED => {
                let ev = self.event(ProcessKind::Cred, t.ts, id);
                self.process_event(ev);
            }
            wire::TASK_CGROUP | wire::TASK_CGROUP_ALL => {
                let all = t.hdr.flags == wire::TASK_CGROUP_ALL;
                if all {
                    self.tasks.move_process(id, t.cgroup_id);
                }
                let mut ev = self.event(ProcessKind::Cgroup, t.ts, id);
                ev.flags = if all { CGROUP_ALL_THREADS } else { 0 };
                self.process_event(ev);
            }
            // its first call came after the start: its files were never told
            _ if !known && !self.tasks.files(id).is_complete() => self.reread(id),
            _ => {}
        }
    }

    pub(super) fn fork(&mut self, f: &wire::Fork) {
        let parent = self.tasks.find_or_add(&f.parent);
        let flags = u32::from(f.child.hdr.flags);
        let has = |bit| flags & bit != 0;
        let child = self.tasks.fork(&f.child, parent, has(FORK_SHARES_FILES), has(FORK_THREAD), has(FORK_SHARES_FS));
        let mut ev = self.event(ProcessKind::Fork, f.child.ts, child);
        ev.parent = self.interned_task(parent);
        ev.flags = flags;
        self.process_event(ev);
    }

    pub(super) fn exec(&mut self, e: &wire::Exec, path: &[u8], argv: &[u8]) {
        let ts = e.task.ts;
        let old = wire::Ident { tid: e.old_tid, ..e.task.id };
        let found = self.tasks.find(&e.task.id);
        if let Some(leader) = found {
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
        let mut ev = self.event(ProcessKind::Exec, ts, id);
        ev.path = path.to_vec();
        ev.argv = argv.to_vec();
        ev.argv_full = u64::from(e.argv_full);
        ev.argv_status = ByteStatus::from_raw(e.argv_status).unwrap_or(ByteStatus::NotResident);
        ev.old_tid = if e.old_tid == e.task.id.tid { 0 } else { e.old_tid };
        self.process_event(ev);
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
        let mut ev = self.event(ProcessKind::Exit, e.ts, id);
        ev.exit_code = e.exit_code;
        // the seccomp mode it died with
        ev.flags = u32::from(e.hdr.flags);
        ev.group_dead = e.group_dead != 0;
        self.process_event(ev);
        self.tasks.exit(id, e.ts);
    }
}
