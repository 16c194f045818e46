//! Which tasks' scheduling is on the tape. A recording of some tasks has the switches to and from them. The task on the
//! other side appears only beside a recorded one, so its state is unknown. The tape says which tasks are recorded at
//! which times ([`Task::recorded`]).

use rustc_hash::FxHashSet;
use systape_format::model::{Extent, Family, Session, Task};
use systape_format::reader::{Segment, Tape};
use systape_format::redact::PLACEHOLDER;

use systape_events::scan::Scan;

/// The threads whose scheduler events are all on the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// All, as far as is known.
    All,
    /// Threads whose entry says so; `everyone`: a thread with such an entry was recorded from the beginning.
    Told {
        /// See [`Extent::Everyone`].
        everyone: bool,
    },
    /// Threads of these numbers (utid), derived from a tape that does not say it.
    These(FxHashSet<u32>),
}

impl Followed {
    /// The targets of `tape`; before 1.5 they are derived from the words of the target and from the calls on the tape.
    pub fn of(tape: &Tape) -> Self {
        let session = tape.session();
        match session.extent {
            Extent::Everyone => Self::Told { everyone: true },
            Extent::Some => Self::Told { everyone: false },
            Extent::NotSaid => derived(tape, &session.target),
        }
    }

    /// Whether `task` is one.
    pub fn has(&self, task: &Task) -> bool {
        match self {
            Self::All => true,
            Self::Told { .. } => task.recorded.has(Family::Sched) == Some(true),
            Self::These(utids) => utids.contains(&task.utid),
        }
    }

    /// Whether a thread may be recorded for only a part of its life: then its state before its first entry is unknown.
    pub(crate) fn may_change(&self) -> bool {
        matches!(self, Self::Told { everyone: false })
    }
}

/// Whether switches of every CPU were recorded.
pub(crate) fn every_cpu(session: &Session) -> bool {
    if session.extent != Extent::NotSaid {
        return session.cpu_list.is_empty();
    }
    let mut own = session.arguments.iter().take_while(|arg| *arg != b"--");
    // the only place that tells of it
    !own.any(|arg| arg.starts_with(b"-C") || arg.starts_with(b"--cpu"))
}

/// The threads that made selected calls, those with process life on a tape of marked tasks, and those named by the
/// target: a thread that only computed has no other mark.
fn derived(tape: &Tape, target: &str) -> Followed {
    if target.is_empty() || target.starts_with("system-wide") {
        return Followed::All;
    }
    let named = Named::parse(target);
    // what cannot be read the report meets again, and tells
    let (parts, _) = Scan::all(tape).fold(FxHashSet::default, |found: &mut FxHashSet<u32>, segment, _| {
        found.extend(of_segment(segment, &named));
    });
    let mut all: FxHashSet<u32> = parts.into_iter().flatten().collect();
    for at in 0..tape.checkpoints() {
        let Ok(checkpoint) = tape.checkpoint(at) else { continue };
        all.extend(checkpoint.tasks.iter().filter(|task| named.has(task)).map(|task| task.utid));
        if at == 0 && all.is_empty() {
            all.extend(checkpoint.in_flight.iter().map(|call| call.utid));
        }
    }
    Followed::These(all)
}

fn of_segment(segment: &Segment<'_>, named: &Named) -> FxHashSet<u32> {
    let mut found = FxHashSet::default();
    let Ok(dict) = segment.dict() else { return found };
    let mut seen = vec![false; dict.tasks.len()];
    if let Ok(core) = segment.core(&dict) {
        let kept_only = |row: usize| core.unselected.get(row).copied().unwrap_or(false);
        let asked = core.task.iter().enumerate().filter(|(row, _)| !kept_only(*row));
        asked.for_each(|(_, task)| seen[*task as usize] = true);
    }
    // with a filter the life of all processes is there
    if !named.filters() {
        for process in segment.processes(&dict).unwrap_or_default() {
            seen[process.task as usize] = true;
        }
    }
    let of_it = dict.tasks.iter().enumerate().filter(|(entry, task)| seen[*entry] || named.has(task));
    found.extend(of_it.map(|(_, task)| task.utid));
    found
}

/// The numbers and names in a target's words: `pid 17,18`, `tid 5`, `uid 1000`, `comm app`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    pids: Vec<u32>,
    tids: Vec<u32>,
    uid: Option<u32>,
    comm: Option<Vec<u8>>,
    cgroup: bool,
}

impl Named {
    fn parse(target: &str) -> Self {
        let mut named = Self::default();
        if target.starts_with("command ") {
            // its words may look like anything
            return named;
        }
        for part in target.split(", ") {
            let numbers = |text: &str| text.split(',').filter_map(|n| n.parse().ok()).collect();
            match part.split_once(' ') {
                Some(("pid", list)) => named.pids = numbers(list),
                Some(("tid", list)) => named.tids = numbers(list),
                Some(("uid", uid)) => named.uid = uid.parse().ok(),
                // all names may read like that
                Some(("comm", comm)) if comm.as_bytes() == PLACEHOLDER => return Self::default(),
                Some(("cgroup", _)) => named.cgroup = true,
                Some(("comm", comm)) => named.comm = Some(comm.as_bytes().to_vec()),
                _ => {}
            }
        }
        named
    }

    /// Whether a task was selected by a property other than its number.
    fn filters(&self) -> bool {
        self.uid.is_some() || self.comm.is_some() || self.cgroup
    }

    /// Whether `task` is one of them. It must match all filters, as in the recording.
    fn has(&self, task: &Task) -> bool {
        let asked = !self.pids.is_empty() || !self.tids.is_empty() || self.uid.is_some() || self.comm.is_some();
        let marked = self.pids.is_empty() && self.tids.is_empty();
        asked
            && (marked || self.pids.contains(&task.pid) || self.tids.contains(&task.tid))
            && self.uid.is_none_or(|uid| uid == task.uid)
            && self.comm.as_ref().is_none_or(|comm| *comm == task.comm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_in_words() {
        let task = |pid, tid, uid| Task { pid, tid, uid, comm: b"app".to_vec(), ..Task::default() };
        let named = Named::parse("pid 17,18, uid 5, comm app");
        assert_eq!((named.pids.as_slice(), named.uid), ([17, 18].as_slice(), Some(5)));
        assert!(named.has(&task(17, 20, 5)));
        assert!(!named.has(&task(19, 20, 5)));
        assert!(!named.has(&task(17, 20, 6)));
        assert_eq!(Named::parse("command sh -c pid 17"), Named::default());
        assert_eq!(Named::parse("pid 17, comm <redacted>"), Named::default());
        assert!(!Named::default().has(&task(1, 1, 0)), "a cgroup names nobody");
    }
}
