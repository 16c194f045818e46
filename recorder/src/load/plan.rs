//! The reaction when the kernel refuses something: optional parts are left out, and the rest is tried again.

use super::refused::Refusal;
use crate::kernel::programs::{self, Part};

/// The part of a program, by its name; what is not listed is essential.
pub(crate) fn part(program: &str) -> Part {
    programs::find(program).map_or(Part::Essential, |program| program.part)
}

/// Reaction to a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AfterRefusal {
    /// Try without this part.
    LeaveOut(Part, String),
    /// Try as on kernels whose tracing programs have no task storage.
    WithoutTaskStorage,
    /// Nothing helps.
    GiveUp,
}

/// Decides what follows a refusal; `task_storage`: the attempt used it.
pub(crate) fn next(refusal: &Refusal, task_storage: bool) -> AfterRefusal {
    let named = refusal.program.as_deref().map(|program| (part(program), program));
    match named {
        _ if task_storage && refusal.of_task_storage => AfterRefusal::WithoutTaskStorage,
        Some((part, program)) if part != Part::Essential => AfterRefusal::LeaveOut(part, program.to_owned()),
        // the programs are others then: some loads are calls of helpers
        _ if task_storage => AfterRefusal::WithoutTaskStorage,
        _ => AfterRefusal::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use systape_format::model::{Family, StackOf};

    use super::*;

    fn refused(program: Option<&str>, of_task_storage: bool) -> Refusal {
        Refusal { program: program.map(str::to_owned), reason: "no".into(), of_task_storage }
    }

    #[test]
    fn parts_of_programs() {
        assert_eq!(part("sys_exit"), Part::Essential);
        assert_eq!(part("task_rename"), Part::Essential);
        assert_eq!(part("walk_tasks"), Part::Essential);
        assert_eq!(part("sched_process_exit"), Part::Essential);
        assert_eq!(part("sched_switch"), Part::Family(Family::Sched));
        assert_eq!(part("walk_files"), Part::Family(Family::Net));
        assert_eq!(part("io_uring_submit_req"), Part::Family(Family::IoUring));
        assert_eq!(part("cpu_sample"), Part::Stacks(StackOf::Sample));
        assert!(matches!(part("check_io"), Part::Alone(_)));
    }

    #[test]
    fn what_is_not_essential_is_left_out() {
        let next = |program, of_task_storage, storage| next(&refused(program, of_task_storage), storage);
        let block = AfterRefusal::LeaveOut(Part::Family(Family::Block), "block_io_start".into());
        assert_eq!(next(Some("block_io_start"), false, true), block);
        assert_eq!(next(Some("block_io_start"), false, false), block);
        // 5.10 and 5.11: whatever comes first is refused for the same reason
        assert_eq!(next(None, true, true), AfterRefusal::WithoutTaskStorage);
        assert_eq!(next(Some("cpu_sample"), true, true), AfterRefusal::WithoutTaskStorage);
        assert_eq!(next(Some("sys_enter"), false, true), AfterRefusal::WithoutTaskStorage);
        assert_eq!(next(Some("sys_enter"), false, false), AfterRefusal::GiveUp);
        assert_eq!(next(None, false, false), AfterRefusal::GiveUp);
    }
}
