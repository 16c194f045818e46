//! What is done when the kernel refuses something: what is not essential is left out, and the rest is tried again.

use systape_format::model::{Family, StackOf};

use super::refused::Refusal;
use crate::skips;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Calls and process life: without them nothing else can be told.
    Essential,
    /// All of a family is left out with it.
    Family(Family),
    /// Stacks of one kind of event, or samples.
    Stacks(StackOf),
    /// It alone; the words are what the recording lacks without it.
    Alone(&'static str),
}

/// The part of a program, by its name.
pub fn part(program: &str) -> Part {
    match program {
        "cpu_sample" => Part::Stacks(StackOf::Sample),
        "sys_exit_stack" => Part::Stacks(StackOf::Syscall),
        "walk_sleepers" => Part::Stacks(StackOf::Asleep),
        "copy_sleepers" => Part::Alone("threads asleep since before the start have kernel frames only"),
        "sys_enter_again" | "sys_exit_again" => Part::Alone("calls are lost where a task is preempted in a program"),
        "walk_ios" => Part::Alone("block I/Os whose end no program sees are not counted"),
        "walk_outsiders" => {
            Part::Alone("calls that processes outside this pid namespace are in at the end are not known")
        }
        "writeback_dirty_folio" | "writeback_dirty_page" => Part::Alone("who wrote what is written back is not known"),
        "mark_victim" | "mark_victim_pid" => {
            Part::Alone("kills for lack of memory are not told from others of the kernel")
        }
        // which sockets are the targets'
        "walk_files" => Part::Family(Family::Net),
        name => match skips::family(name) {
            Some(family) if !matches!(family, Family::Syscall | Family::Process) => Part::Family(family),
            _ => Part::Essential,
        },
    }
}

/// What to do about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try without this part.
    LeaveOut(Part, String),
    /// Try as on kernels whose tracing programs have no task storage.
    WithoutTaskStorage,
    /// Nothing helps.
    GiveUp,
}

/// Decides; `task_storage`: the attempt used it.
pub fn next(refusal: &Refusal, task_storage: bool) -> Next {
    let named = refusal.program.as_deref().map(|program| (part(program), program));
    match named {
        _ if task_storage && refusal.of_task_storage => Next::WithoutTaskStorage,
        Some((part, program)) if part != Part::Essential => Next::LeaveOut(part, program.to_owned()),
        // the programs are others then: some loads are calls of helpers
        _ if task_storage => Next::WithoutTaskStorage,
        _ => Next::GiveUp,
    }
}

#[cfg(test)]
mod tests {
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
        assert!(matches!(part("walk_ios"), Part::Alone(_)));
    }

    #[test]
    fn what_is_not_essential_is_left_out() {
        let next = |program, of_task_storage, storage| next(&refused(program, of_task_storage), storage);
        let block = Next::LeaveOut(Part::Family(Family::Block), "block_io_start".into());
        assert_eq!(next(Some("block_io_start"), false, true), block);
        assert_eq!(next(Some("block_io_start"), false, false), block);
        // 5.10 and 5.11: whatever comes first is refused for the same reason
        assert_eq!(next(None, true, true), Next::WithoutTaskStorage);
        assert_eq!(next(Some("cpu_sample"), true, true), Next::WithoutTaskStorage);
        assert_eq!(next(Some("sys_enter"), false, true), Next::WithoutTaskStorage);
        assert_eq!(next(Some("sys_enter"), false, false), Next::GiveUp);
        assert_eq!(next(None, false, false), Next::GiveUp);
    }
}
