//! One process.

use std::sync::Arc;

use systape_format::model::{RecordedFamilies, Task};

use super::ending::{Ending, Exits};

/// A command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Arguments, NUL-separated, without the last NUL; empty = not known.
    pub argv: Vec<u8>,
    /// Whether `args` is complete.
    pub whole: bool,
}

/// A program a process ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Start of this program; 0 = before the recording.
    pub since: u64,
    /// Whether it runs by exec; otherwise since its fork, or since its first record.
    pub exec: bool,
    /// Path passed to exec; empty = not known.
    pub path: Vec<u8>,
    /// Command line.
    pub command: Arc<Command>,
    /// The process right after exec: its name, its user. Only with `exec`.
    pub task: Task,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Newest entry of the process; the leader's if there was one.
    pub task: Task,
    /// When it was forked, CLOCK_MONOTONIC; 0 = not known.
    pub start: u64,
    /// Whether it existed when the recording began.
    pub before: bool,
    /// Index in [`Processes::all`](super::Processes::all) of the process that forked it (if it existed before: of its
    /// parent then); None = not known.
    pub parent: Option<usize>,
    /// pid of that process; 0 = none or not known.
    pub ppid: u32,
    /// The name that the thread which forked it had then; empty = not known.
    pub forked_by: Vec<u8>,
    /// Names that its first thread got, with their times, in order of time; 0: it had that one when the recording began.
    pub(super) names: Vec<(u64, Vec<u8>)>,
    /// Programs, in order of time.
    pub images: Vec<Image>,
    /// Whether its events were recorded, so its end would have been too; false: perhaps it was never a target.
    pub followed: bool,
    pub(super) exits: Exits,
}

impl Process {
    /// Derives that it was a target from a record that only targets have, on tapes whose entries do not say it.
    pub(super) fn derive_followed(&mut self) {
        self.followed |= self.task.recorded == RecordedFamilies::NOT_SAID;
    }

    /// How it ended; None = it did not in the recording, or its end is not known.
    pub fn end(&self) -> Option<Ending> {
        self.exits.end()
    }

    /// Name that it had at `ts`, which is the one of its first thread, and since when; None = not known.
    pub fn name_at(&self, ts: u64) -> Option<(u64, &[u8])> {
        match self.names.partition_point(|(since, _)| *since <= ts).checked_sub(1) {
            Some(at) => Some((self.names[at].0, &self.names[at].1)),
            // it got no other one that was recorded
            None => self.names.is_empty().then_some((0, &self.task.comm)),
        }
    }

    /// Program that it ran at `ts`.
    pub fn image_at(&self, ts: u64) -> Option<&Image> {
        let after = self.images.partition_point(|image| image.since <= ts);
        // before the first exec that was seen, nothing is known
        self.images.get(after.checked_sub(1)?)
    }

    /// Program that it ran last.
    pub fn image(&self) -> Option<&Image> {
        self.images.last()
    }

    /// The command line at `ts`; empty = not known.
    pub fn command_at(&self, ts: u64) -> Option<&Command> {
        self.image_at(ts).map(|image| &*image.command).filter(|command| !command.argv.is_empty())
    }

    /// Lifetime of the process, until `until` if it did not end; None = its start is not known.
    pub fn lived(&self, until: u64) -> Option<u64> {
        let end = self.end().map_or(until, |end| end.ts);
        (self.start != 0).then(|| end.saturating_sub(self.start))
    }
}
