//! Reads of /proc for the encoder during the recording: processes again whose records were lost, executables of senders
//! of signals. The encoder never reads a file itself, because a hanging process would block it, and with it the drain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use systape_bpf::wire::Ident;

use systape_format::model::Container;

use crate::machine::cgroup_limits::{self, Hierarchy, Value};
use crate::machine::containers;
use crate::machine::devices::{self, Late};
use crate::machine::environ::EnvironKeys;
use crate::machine::patient::{JobProgress, LaterJobs};
use crate::machine::system;
use crate::own::clock;
use crate::tasks::Argv;
use crate::tasks::snapshot::{self, NameBudget, ProcessReading};

/// How long to wait for an executable. Reading takes some 20 us, and the record of the sender is encoded next.
const MOMENT: Duration = Duration::from_millis(10);
/// Greatest age of a request for an executable: later the id may be another process's.
const LATE: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Job {
    /// Executable, directory and open files of a process, by its ids on the machine and in this namespace.
    Files(u32, u32, NameBudget),
    /// The arguments of a process, and these variables of its environment.
    Argv(u32, u32, Arc<EnvironKeys>),
    /// The executable of a task alone, if it has its arguments at this place (0: wherever).
    Exe(Ident, u32, u64, Instant),
    /// A container, by its id.
    Container(String),
    /// A block device, by its number.
    Device(u32),
    /// Limits of a cgroup and of those above it, by the number of its hierarchy and its path; None: of all cgroups.
    Limits(Arc<[Hierarchy]>, Option<(u8, Vec<u8>)>),
}

/// A result.
#[derive(Debug)]
pub(super) enum Answer {
    Files(ProcessReading),
    /// Arguments and environment, with the time when they were read.
    Argv(u32, (Option<Arc<Argv>>, Vec<u8>), u64),
    /// Executable of a task with its arguments at this place; empty = it has none, or it is not readable, or no more that of the task then.
    Exe(Ident, u64, Vec<u8>),
    /// What is known of it; None: nothing.
    Container(Option<Container>),
    /// A block device; None: there is none.
    Device(Option<Late>),
    /// Limits of cgroups.
    Limits(Vec<Value>),
}

/// Reads of /proc for the encoder, in threads that may hang.
#[derive(Debug)]
pub(super) struct ProcLookups {
    reader: LaterJobs<Job, Answer>,
    room: NameBudget,
}

impl Default for ProcLookups {
    fn default() -> Self {
        Self { reader: LaterJobs::new("look-up", work), room: NameBudget::default() }
    }
}

fn work(job: Job) -> Answer {
    match job {
        Job::Files(pid, here, room) => Answer::Files(snapshot::process(pid, here, &room, &JobProgress::default())),
        Job::Argv(pid, here, keys) => {
            let read = (snapshot::argv(here), snapshot::environ(here, &keys));
            Answer::Argv(pid, read, clock::monotonic())
        }
        Job::Exe(id, here, argv_at, asked) => {
            let exe = snapshot::exe(here);
            // before or after the read it may have executed another program
            let same = argv_at == 0 || system::argv_at(here) == Some(argv_at);
            Answer::Exe(id, argv_at, if same && asked.elapsed() < LATE { exe } else { Vec::new() })
        }
        Job::Limits(hierarchies, None) => Answer::Limits(cgroup_limits::all(&hierarchies)),
        Job::Limits(hierarchies, Some((number, path))) => {
            Answer::Limits(cgroup_limits::of(&hierarchies, number, &path))
        }
        Job::Device(dev) => Answer::Device(devices::late(dev)),
        Job::Container(id) => Answer::Container(containers::look_up(&id)),
    }
}

impl ProcLookups {
    /// Requests everything of a process, and of its environment `keys`. False = it will not be read.
    pub(super) fn process(&mut self, pid: u32, here: u32, keys: &Arc<EnvironKeys>) -> bool {
        self.reader.ask(Job::Files(pid, here, self.room.clone())) && {
            // without an answer to this the arguments stay what they were
            self.reader.ask(Job::Argv(pid, here, Arc::clone(keys)));
            true
        }
    }

    /// Requests an executable. Returns the results that came within a moment, this one last if it did.
    pub(super) fn exe(&mut self, id: Ident, here: u32, argv_at: u64) -> Vec<Answer> {
        if !self.reader.ask(Job::Exe(id, here, argv_at, Instant::now())) {
            return Vec::new();
        }
        let wanted =
            |answer: &Answer| matches!(answer, Answer::Exe(of, ..) if (of.tid, of.start) == (id.tid, id.start));
        self.until(Instant::now() + MOMENT, wanted)
    }

    /// The results until one that is `wanted`; waits for it until then.
    fn until(&mut self, until: Instant, wanted: impl Fn(&Answer) -> bool) -> Vec<Answer> {
        let mut came = Vec::new();
        while let Some(answer) = self.reader.wait(until) {
            let last = wanted(&answer);
            came.push(answer);
            if last {
                break;
            }
        }
        came
    }

    /// Requests what a block device is called, and what it is made of.
    pub(super) fn device(&mut self, dev: u32) {
        self.reader.ask(Job::Device(dev));
    }

    /// Requests what is known of a container.
    pub(super) fn container(&mut self, id: &str) {
        self.reader.ask(Job::Container(id.to_owned()));
    }

    /// Requests the limits of a cgroup, or of all. False = they will not be read.
    pub(super) fn limits(&mut self, hierarchies: Arc<[Hierarchy]>, of: Option<(u8, Vec<u8>)>) -> bool {
        self.reader.ask(Job::Limits(hierarchies, of))
    }

    /// The results until that of limits; waits for it until then.
    pub(super) fn wait_for_limits(&mut self, until: Instant) -> Vec<Answer> {
        self.until(until, |answer| matches!(answer, Answer::Limits(_)))
    }

    /// A result, if there is one.
    pub(super) fn take(&mut self) -> Option<Answer> {
        self.reader.take()
    }

    /// The result of a process was used up.
    pub(super) fn give_back(&self, process: &ProcessReading) {
        self.room.give_back(process);
    }
}
