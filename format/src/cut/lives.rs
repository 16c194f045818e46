//! Which processes matter for a stretch of time: those that were there, and those above them.

use std::collections::{HashMap, HashSet};

use crate::model::{Checkpoint, FORK_THREAD, ProcessEvent, ProcessKind, Task, Window};

/// What is known of a process.
#[derive(Debug)]
struct Life {
    /// 0 = before the recording, or not known.
    born: u64,
    /// u64::MAX = it lives, or not known.
    died: u64,
    /// A segment of the window mentions it.
    mentioned: bool,
    /// One of its tasks is chosen.
    chosen: bool,
    parent: Option<u32>,
    uids: Vec<u32>,
    cgroups: Vec<u64>,
    /// The last entry of its leader: position of the segment, index.
    leader: Option<(usize, u32)>,
}

/// Processes by [`Task::upid`].
#[derive(Debug, Default)]
pub(super) struct Lives {
    all: HashMap<u32, Life>,
    /// Those that matter, after [`Self::settle`].
    matter: HashSet<u32>,
    users: HashSet<u32>,
    cgroups: HashSet<u64>,
}

impl Lives {
    /// Adds an entry of a table of tasks; `inside`: of a segment of the window.
    fn see(&mut self, task: &Task, chosen: bool, inside: bool) {
        let new = || Life {
            born: 0,
            died: u64::MAX,
            mentioned: false,
            chosen: false,
            parent: None,
            uids: Vec::new(),
            cgroups: Vec::new(),
            leader: None,
        };
        let life = self.all.entry(task.upid).or_insert_with(new);
        life.mentioned |= inside;
        life.chosen |= chosen;
        if !life.uids.contains(&task.uid) {
            life.uids.push(task.uid);
        }
        if !life.cgroups.contains(&task.cgroup_id) {
            life.cgroups.push(task.cgroup_id);
        }
    }

    /// Adds the table of the segment at position `at`.
    pub(super) fn table(&mut self, at: usize, tasks: &[Task], chosen: impl Fn(&Task) -> bool, inside: bool) {
        for (entry, task) in tasks.iter().enumerate() {
            self.see(task, chosen(task), inside);
            if let Some(life) = self.all.get_mut(&task.upid).filter(|_| task.tid == task.pid) {
                life.leader = Some((at, entry as u32));
            }
        }
    }

    /// Adds the tasks of the first checkpoint.
    pub(super) fn checkpoint(&mut self, checkpoint: &Checkpoint, chosen: impl Fn(&Task) -> bool) {
        let by_pid: HashMap<u32, u32> = checkpoint.tasks.iter().map(|task| (task.pid, task.upid)).collect();
        for task in &checkpoint.tasks {
            self.see(task, chosen(task), false);
            let parent = by_pid.get(&task.ppid).copied().filter(|_| task.ppid != 0);
            if let Some(life) = self.all.get_mut(&task.upid) {
                life.parent = life.parent.or(parent);
            }
        }
    }

    /// Adds an event, whose tasks were seen.
    pub(super) fn event(&mut self, event: &ProcessEvent, tasks: &[Task]) {
        let Some(life) = tasks.get(event.task as usize).and_then(|task| self.all.get_mut(&task.upid)) else { return };
        match event.kind {
            ProcessKind::Fork if event.flags & FORK_THREAD == 0 => {
                life.born = event.ts;
                life.parent = tasks.get(event.parent as usize).map(|parent| parent.upid);
            }
            ProcessKind::Exit if event.group_dead => life.died = event.ts,
            _ => {}
        }
    }

    /// Decides which processes matter; only [`Self::mention`] adds more.
    pub(super) fn settle(&mut self, window: Window) {
        let there = |life: &Life| life.mentioned || (life.born < window.to && life.died >= window.from);
        let inside: Vec<(u32, bool)> =
            self.all.iter().filter(|(_, life)| there(life)).map(|(upid, life)| (*upid, life.chosen)).collect();
        for (upid, chosen) in inside {
            if chosen {
                self.mention(upid);
            } else {
                self.name(upid);
            }
        }
    }

    /// A row that stays names this process: it matters, with those above it.
    pub(super) fn mention(&mut self, upid: u32) {
        let mut next = Some(upid);
        while let Some(upid) = next.filter(|upid| self.matter.insert(*upid)) {
            self.name(upid);
            next = self.all.get(&upid).and_then(|life| life.parent);
        }
    }

    fn name(&mut self, upid: u32) {
        if let Some(life) = self.all.get(&upid) {
            self.users.extend(&life.uids);
            self.cgroups.extend(&life.cgroups);
        }
    }

    /// Whether it ended before `ts`.
    pub(super) fn died_before(&self, upid: u32, ts: u64) -> bool {
        self.all.get(&upid).is_some_and(|life| life.died < ts)
    }

    /// The last entries of the leaders of those that matter, by position of the segment and index.
    pub(super) fn leaders(&self) -> Vec<(usize, u32)> {
        let mut leaders: Vec<_> =
            self.matter.iter().filter_map(|upid| self.all.get(upid).and_then(|life| life.leader)).collect();
        leaders.sort_unstable();
        leaders
    }

    /// Whether the process of `task` matters; one without an identity may.
    pub(super) fn matters(&self, task: &Task) -> bool {
        task.upid == 0 || self.matter.contains(&task.upid)
    }

    /// Whether a process matters, by its number.
    pub(super) fn upid_matters(&self, upid: u32) -> bool {
        upid == 0 || self.matter.contains(&upid)
    }

    /// Processes that ended in the window.
    pub(super) fn ended(&self, window: Window) -> impl Iterator<Item = u32> {
        self.all.iter().filter(move |(_, life)| window.has(life.died)).map(|(upid, _)| *upid)
    }

    /// Users that tasks of the window have.
    pub(super) fn users(&self) -> &HashSet<u32> {
        &self.users
    }

    /// Cgroups of the processes.
    pub(super) fn cgroups(&self) -> &HashSet<u64> {
        &self.cgroups
    }
}
