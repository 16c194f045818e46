//! Values of keys, which identify a row of a table of sums.

use std::sync::Arc;

use smallvec::SmallVec;
use systape_format::model::{Call, Task};

/// The value of one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// No value: no file, no error.
    None,
    /// A number.
    Number(u64),
    /// A process or a thread: its number that is unique in the tape, or 0 and its pid or tid.
    Task(u32, u32),
    /// A syscall.
    Call(Call),
    /// A name.
    Text(Arc<[u8]>),
    /// Several values in the meantime, and it is not known which.
    Several,
    /// Not known.
    Unknown,
}

/// The values of all keys, in their order. Most questions have at most three: a thread has a process too.
pub type Key = SmallVec<[Value; 3]>;

impl Value {
    /// Whether it is known.
    #[inline]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Several | Self::Unknown)
    }

    /// The process of `task`.
    #[inline]
    pub fn process(task: &Task) -> Self {
        if task.upid == 0 { Self::Task(0, task.pid) } else { Self::Task(task.upid, 0) }
    }

    /// The thread `task`.
    #[inline]
    pub fn thread(task: &Task) -> Self {
        if task.utid == 0 { Self::Task(0, task.tid) } else { Self::Task(task.utid, 0) }
    }
}
