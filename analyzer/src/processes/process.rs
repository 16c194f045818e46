//! One process.

use std::sync::Arc;

use systape_format::model::{RecordedFamilies, Task};

use super::ending::{Ending, Exits};

/// A command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Arguments, NUL-separated, without the last NUL; empty = not known.
    pub argv: Vec<u8>,
    /// Whether that is all of it.
    pub whole: bool,
}

/// A program a process ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// From when on; 0 = before the recording.
    pub since: u64,
    /// It became this program by exec; otherwise it was so from its fork, or when first seen.
    pub exec: bool,
    /// Path as given to exec; empty = not known.
    pub path: Vec<u8>,
    /// Its command line.
    pub command: Arc<Command>,
    /// The process right after exec: its name, its user. Only with `exec`.
    pub task: Task,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its newest entry; of the leader if one was seen.
    pub task: Task,
    /// When it was made, CLOCK_MONOTONIC; 0 = not known.
    pub start: u64,
    /// It was there when the recording began.
    pub before: bool,
    /// Position in [`Processes::all`](super::Processes::all) of the process that made it (for one that was there before: of its parent
    /// then); None = not known.
    pub parent: Option<usize>,
    /// pid of that process; 0 = none or not known.
    pub ppid: u32,
    /// What it ran, in order of time.
    pub images: Vec<Image>,
    /// What it did was recorded, so its end would have been too; false: perhaps it was never a target.
    pub followed: bool,
    pub(super) exits: Exits,
}

impl Process {
    /// Something of it is there that is kept of targets: so it was one, where entries do not say who is.
    pub(super) fn derive_followed(&mut self) {
        self.followed |= self.task.recorded == RecordedFamilies::NOT_SAID;
    }

    /// How it ended; None = it did not in the recording, or that is not known.
    pub fn end(&self) -> Option<Ending> {
        self.exits.end()
    }

    /// What it ran at `ts`.
    pub fn image_at(&self, ts: u64) -> Option<&Image> {
        let after = self.images.partition_point(|image| image.since <= ts);
        // before the first exec that was seen, nothing is known
        self.images.get(after.checked_sub(1)?)
    }

    /// What it ran last.
    pub fn image(&self) -> Option<&Image> {
        self.images.last()
    }

    /// The command line at `ts`; empty = not known.
    pub fn command_at(&self, ts: u64) -> Option<&Command> {
        self.image_at(ts).map(|image| &*image.command).filter(|command| !command.argv.is_empty())
    }

    /// How long it lived, until `until` if it did not end; None = its start is not known.
    pub fn lived(&self, until: u64) -> Option<u64> {
        let end = self.end().map_or(until, |end| end.ts);
        (self.start != 0).then(|| end.saturating_sub(self.start))
    }
}
