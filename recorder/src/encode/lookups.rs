//! What the encoder asks of /proc while it encodes: processes again whose records were lost, executables of senders of
//! signals. It never reads a file itself, since a process that hangs would keep it, and with it the drain, waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use systape_bpf::wire::Ident;

use crate::clock;
use crate::patient::{Later, Moved};
use crate::snapshot::{self, Process, Room};
use crate::tasks::Argv;

/// How long an executable is waited for. It takes some 20 us, and the record that names the sender is encoded next.
const MOMENT: Duration = Duration::from_millis(10);
/// An executable that was read later than this after it was asked for may be another process's with the same id.
const LATE: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Job {
    /// Executable, directory and open files of a process, by its ids on the machine and here.
    Files(u32, u32, Room),
    /// Its arguments.
    Argv(u32, u32),
    /// The executable of a task alone.
    Exe(Ident, u32, Instant),
}

/// What came.
#[derive(Debug)]
pub(super) enum Answer {
    Files(Process),
    /// With the time when it had been read.
    Argv(u32, Option<Arc<Argv>>, u64),
    /// Of a task; empty = it has none, or it is not readable.
    Exe(Ident, Vec<u8>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lookups {
    reader: Later<Job, Answer>,
    room: Room,
}

impl Default for Lookups {
    fn default() -> Self {
        Self { reader: Later::new("look-up", work), room: Room::default() }
    }
}

fn work(job: Job) -> Answer {
    match job {
        Job::Files(pid, here, room) => Answer::Files(snapshot::process(pid, here, &room, &Moved::default())),
        Job::Argv(pid, here) => Answer::Argv(pid, snapshot::argv(here), clock::monotonic()),
        Job::Exe(id, here, asked) => {
            let exe = snapshot::exe(here);
            Answer::Exe(id, if asked.elapsed() < LATE { exe } else { Vec::new() })
        }
    }
}

impl Lookups {
    /// Asks for everything of a process. False = it will not be answered.
    pub(super) fn process(&mut self, pid: u32, here: u32) -> bool {
        self.reader.ask(Job::Files(pid, here, self.room.clone())) && {
            // without an answer to this the arguments stay what they were
            self.reader.ask(Job::Argv(pid, here));
            true
        }
    }

    /// Asks for an executable. What came within a moment, this answer last if it did.
    pub(super) fn exe(&mut self, id: Ident, here: u32) -> Vec<Answer> {
        let mut came = Vec::new();
        if !self.reader.ask(Job::Exe(id, here, Instant::now())) {
            return came;
        }
        let until = Instant::now() + MOMENT;
        while let Some(answer) = self.reader.wait(until) {
            let wanted = matches!(&answer, Answer::Exe(of, _) if (of.tid, of.start) == (id.tid, id.start));
            came.push(answer);
            if wanted {
                break;
            }
        }
        came
    }

    /// An answer, if one has come.
    pub(super) fn take(&mut self) -> Option<Answer> {
        self.reader.take()
    }

    /// What was read of a process is no longer kept.
    pub(super) fn give_back(&self, process: &Process) {
        self.room.give_back(process);
    }
}
