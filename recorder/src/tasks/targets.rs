//! Which tasks are targets: the kernel side decides and says so in its records of tasks; this is the tape's form.

use systape_bpf::wire::{self, Task as WireTask};
use systape_format::model::{RecordedFamilies, Task};

use crate::config::RecordConfig;

/// The families recorded of a target, and the conditions for being one.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Families of a target.
    recorded: RecordedFamilies,
    /// Real uid of a target; None = any.
    uid: Option<u32>,
    /// Name of a target; None = any.
    comm: Option<Vec<u8>>,
    /// Every task is one, except the idle tasks and the recorder.
    everyone: bool,
    /// Process of the recorder; 0 = its threads are recorded like others.
    own_pid: u32,
}

impl Targets {
    /// The conditions in `config`; `recorded`: the families of a target. The recorder has the pid `own_pid` on the
    /// machine.
    pub(crate) fn new(config: &RecordConfig, recorded: RecordedFamilies, own_pid: u32) -> Self {
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

    /// Families of a task with a record.
    pub(crate) fn told(&self, task: &WireTask) -> RecordedFamilies {
        self.either(task.hdr.flags & wire::TASK_IS_TARGET != 0)
    }

    /// Families of a task without a record so far.
    pub(crate) fn untold(&self, tid: u32, pid: u32) -> RecordedFamilies {
        self.either(self.everyone && tid != 0 && (self.own_pid == 0 || pid != self.own_pid))
    }

    /// Families of a task with only a selected call: its own record was lost.
    pub(crate) fn called(&self) -> RecordedFamilies {
        self.recorded
    }

    /// Families of a thread whose process was moved to another cgroup, by the other conditions; `leader` is the record of the
    /// move.
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
