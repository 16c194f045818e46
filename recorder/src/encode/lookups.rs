//! Reads of /proc for the encoder during the recording: processes again whose records were lost, executables of senders
//! of signals. The encoder never reads a file itself, because a hanging process would block it, and with it the drain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use systape_bpf::wire::Ident;

use crate::clock;
use crate::patient::{Later, Moved};
use crate::snapshot::{self, Process, Room};
use crate::tasks::Argv;

/// How long to wait for an executable. Reading takes some 20 us, and the record of the sender is encoded next.
const MOMENT: Duration = Duration::from_millis(10);
/// Greatest age of a request for an executable: later the id may be another process's.
const LATE: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Job {
    /// Executable, directory and open files of a process, by its ids on the machine and in this namespace.
    Files(u32, u32, Room),
    /// Its arguments.
    Argv(u32, u32),
    /// The executable of a task alone.
    Exe(Ident, u32, Instant),
}

/// A result.
#[derive(Debug)]
pub(super) enum Answer {
    Files(Process),
    /// With the time when it was read.
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
    /// Requests everything of a process. False = it will not be read.
    pub(super) fn process(&mut self, pid: u32, here: u32) -> bool {
        self.reader.ask(Job::Files(pid, here, self.room.clone())) && {
            // without an answer to this the arguments stay what they were
            self.reader.ask(Job::Argv(pid, here));
            true
        }
    }

    /// Requests an executable. Returns the results that came within a moment, this one last if it did.
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

    /// A result, if there is one.
    pub(super) fn take(&mut self) -> Option<Answer> {
        self.reader.take()
    }

    /// The result of a process was used up.
    pub(super) fn give_back(&self, process: &Process) {
        self.room.give_back(process);
    }
}
