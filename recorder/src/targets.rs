//! Which tasks are targets: the kernel side decides and says so in its records of tasks; this is what the tape says of each.

use systape_bpf::wire::{self, Task as WireTask};
use systape_format::model::{RecordedFamilies, Task};

use crate::config::Config;

/// What is recorded of a task that is a target, and what must hold for it to be one.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Families of a target.
    recorded: RecordedFamilies,
    /// Real uid a target has; None = any.
    uid: Option<u32>,
    /// Name a target has; None = any.
    comm: Option<Vec<u8>>,
    /// Every task is one, but for the idle tasks and the recorder.
    everyone: bool,
    /// Process of the recorder; 0 = its threads are recorded like others.
    own_pid: u32,
}

impl Targets {
    /// What `config` asks for; `recorded`: of a target. The recorder has the process id `own_pid` on the machine.
    pub(crate) fn new(config: &Config, recorded: RecordedFamilies, own_pid: u32) -> Self {
        let own_pid = if config.with_self { 0 } else { own_pid };
        Self { recorded, uid: config.uid, comm: config.comm.clone(), everyone: !config.filters_tasks(), own_pid }
    }

    /// All tasks are targets, for tests.
    #[cfg(test)]
    pub(crate) fn everyone(recorded: RecordedFamilies) -> Self {
        Self { recorded, everyone: true, ..Self::default() }
    }

    fn either(&self, target: bool) -> RecordedFamilies {
        if target { self.recorded } else { RecordedFamilies::NOTHING }
    }

    /// Of a task that a record is about.
    pub(crate) fn told(&self, task: &WireTask) -> RecordedFamilies {
        self.either(task.hdr.flags & wire::TASK_IS_TARGET != 0)
    }

    /// Of a task of which no record told yet.
    pub(crate) fn untold(&self, tid: u32, pid: u32) -> RecordedFamilies {
        self.either(self.everyone && tid != 0 && (self.own_pid == 0 || pid != self.own_pid))
    }

    /// Of a task of which only a call came that was asked for: the record that would have told was lost.
    pub(crate) fn called(&self) -> RecordedFamilies {
        self.recorded
    }

    /// Of a thread whose process was moved to another cgroup, by what else must hold of it; `leader` is the record of the move.
    pub(crate) fn moved(&self, task: &Task, marked: bool, leader: &WireTask) -> RecordedFamilies {
        let inside = leader.hdr.flags & wire::TASK_IS_IN_CGROUP != 0;
        let user = self.uid.is_none_or(|uid| uid == task.uid);
        let name = self.comm.as_ref().is_none_or(|comm| *comm == task.comm);
        self.either(
            inside && marked && user && name && task.tid != 0 && (self.own_pid == 0 || task.pid != self.own_pid),
        )
    }
}

#[cfg(test)]
mod tests {
    use systape_format::model::Family;

    use super::*;

    #[test]
    fn threads_go_with_their_process_if_they_are_asked_for() {
        let recorded = RecordedFamilies::of(&[Family::Sched]);
        let targets = Targets { recorded, uid: Some(5), comm: Some(b"app".to_vec()), ..Targets::default() };
        let thread = |uid, comm: &[u8]| Task { tid: 8, pid: 7, uid, comm: comm.to_vec(), ..Task::default() };
        let mut leader = WireTask::default();
        assert_eq!(targets.moved(&thread(5, b"app"), true, &leader), RecordedFamilies::NOTHING, "it left the cgroup");
        leader.hdr.flags = wire::TASK_IS_IN_CGROUP;
        assert_eq!(targets.moved(&thread(5, b"app"), true, &leader), recorded);
        for (thread, marked) in [(thread(6, b"app"), true), (thread(5, b"apt"), true), (thread(5, b"app"), false)] {
            assert_eq!(targets.moved(&thread, marked, &leader), RecordedFamilies::NOTHING, "{thread:?} {marked}");
        }
    }

    #[test]
    fn nobody_told_of_them() {
        let recorded = RecordedFamilies::of(&[Family::Sched]);
        let everyone = Targets { own_pid: 9, ..Targets::everyone(recorded) };
        assert_eq!([everyone.untold(0, 0), everyone.untold(10, 9)], [RecordedFamilies::NOTHING; 2]);
        assert_eq!(everyone.untold(10, 10), recorded);
        assert_eq!(Targets { recorded, ..Targets::default() }.untold(10, 10), RecordedFamilies::NOTHING);
    }
}
