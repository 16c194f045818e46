//! Why a stack ends early, or is missing, in words.

use systape_format::model::StackStatus;

/// How an event's stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackEnding {
    /// The recorder's status.
    Status(StackStatus),
    /// A stack with more frames than are read.
    TooLong,
    /// The call was shorter than the least duration for stacks.
    Short,
    /// Nothing was stored for the event.
    NotStored,
    /// A stack that was stored, and is unreadable.
    Unreadable,
    /// The thread was off the CPU before the recording began.
    Before,
    /// The thread had not been on a CPU yet.
    New,
    /// The thread left the CPU unseen.
    Unseen,
    /// The thread was on a CPU at the time asked for.
    Running,
    /// The thread waited for work, and no such stack is told from others.
    Idle,
}

impl StackEnding {
    /// Name in JSON: `complete`, `frame-pointers`, `too-deep`, …
    pub fn name(self) -> &'static str {
        match self {
            Self::Status(status) => match status {
                StackStatus::Absent => "absent",
                StackStatus::Complete => "complete",
                StackStatus::FramePointers => "frame-pointers",
                StackStatus::TooDeep => "too-deep",
                StackStatus::Cut => "cut",
                StackStatus::NotResident => "not-resident",
                StackStatus::NoUnwindInfo => "no-unwind-info",
                StackStatus::BadMemory => "bad-memory",
                StackStatus::NoFile => "no-file",
                StackStatus::NoMapping => "no-mapping",
                StackStatus::Jit => "jit",
                StackStatus::OtherStack => "other-stack",
                StackStatus::Late => "late",
                StackStatus::Lost => "lost",
                StackStatus::Failed => "failed",
                StackStatus::Unavailable => "unavailable",
                StackStatus::Locked => "locked",
            },
            Self::TooLong => "too-long",
            Self::Short => "short",
            Self::NotStored => "not-stored",
            Self::Unreadable => "unreadable",
            Self::Before => "began-before",
            Self::New => "new",
            Self::Unseen => "unseen",
            Self::Running => "running",
            Self::Idle => "idle",
        }
    }

    /// The reason in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Status(status) => match status {
                StackStatus::Absent => "kernel thread, interrupt, or only the kernel's part was asked for",
                StackStatus::Complete => "complete",
                StackStatus::FramePointers => "as far as frame pointers reach",
                StackStatus::TooDeep => "more frames than are kept",
                StackStatus::Cut => "larger than what was copied of it",
                StackStatus::NotResident => "a page of the stack was not resident",
                StackStatus::NoUnwindInfo => "no unwind information",
                StackStatus::BadMemory => "stack or unwind information makes no sense",
                StackStatus::NoFile => "file could not be opened",
                StackStatus::NoMapping => "nothing known is mapped there",
                StackStatus::Jit => "code made at run time",
                StackStatus::OtherStack => "continues on another stack",
                StackStatus::Late => "recorder was too slow to unwind it",
                StackStatus::Lost => "lost, no buffer or stack ring full",
                StackStatus::Failed => "kernel could not give it",
                StackStatus::Unavailable => "asleep since before the start, and the kernel does not copy its stack",
                StackStatus::Locked => "asleep since before the start, and its memory was locked",
            },
            Self::TooLong => "too many frames",
            Self::Short => "call too short to have one taken",
            Self::NotStored => "none was stored",
            Self::Unreadable => "cannot be read",
            Self::Before => "off the CPU before the recording began",
            Self::New => "new thread, had not run yet",
            Self::Unseen => "leaving the CPU was not seen",
            Self::Running => "on a CPU at that time",
            Self::Idle => "poll, accept, sleep, a pipe, a terminal and the like; --idle lists them",
        }
    }

    /// Whether frames may be missing at the outer end, so that the last one is not the start of the thread. By frame
    /// pointers that is always possible; the head says it once.
    pub fn early(self) -> bool {
        match self {
            Self::Status(status) => !status.is_complete() && status != StackStatus::FramePointers,
            _ => true,
        }
    }

    /// The pseudo frame for missing frames; `empty`: all are missing.
    pub fn mark(self, empty: bool) -> Option<String> {
        match empty {
            _ if self == Self::Idle => Some(format!("[{}]", self.words())),
            true => Some(format!("[no stack: {}]", self.words())),
            false => self.early().then(|| format!("[stack ends: {}]", self.words())),
        }
    }
}
