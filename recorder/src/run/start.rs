//! Reads /proc of the processes to record when the recording begins, without waiting for hanging ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use systape_abi::plain;
use systape_bpf::wire::{Snap, comm};

use crate::calls::memory::{Asked, CallMemory, Wanted};
use crate::encode::{Start, UnreadProcess};
use crate::load::FirstDescriptors;
use crate::machine::cgroup_limits;
use crate::machine::environ::EnvironKeys;
use crate::machine::patient::{self, JobProgress, each};
use crate::own::clock;
use crate::tasks::Argv;
use crate::tasks::snapshot::{self, NameBudget, Of, ProcessReading};

/// Longest wait for the limits of cgroups, when everything else was read. They take milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The parts read of a process.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Executable, directory and open files.
    Files,
    /// Arguments, and what the arguments of its calls in flight point to: both wait for its mmap lock, and one thread is enough for that.
    Argv,
    /// Variables of the environment.
    Environ,
}

enum Answer {
    Files(ProcessReading),
    Argv(Option<Arc<Argv>>, Vec<CallMemory>),
    Environ(Vec<u8>),
}

/// Reads the recorded processes of `snaps`, `first` (as in /proc) before all others, with the variables `env` of their
/// environments, with `opens` which files they have open and what their sockets are called, and of their calls in flight what is `wanted`.
pub(crate) fn read(
    snaps: Vec<Snap>,
    first: Option<u32>,
    env: &Arc<EnvironKeys>,
    wanted: Wanted,
    opens: impl FnOnce() -> FirstDescriptors,
) -> Start {
    // soon, because what connections do until then is not known; what calls change meanwhile is left out later
    let opens = opens();
    let pids = processes(&snaps, first);
    let limited = pids.clone();
    let limits = patient::Asked::new("limits", move || cgroup_limits::limits(&limited));
    let (shared, apart) = sharing(&snaps);
    // what may wait for a process's mmap lock comes when everything else is known
    let part = |part: Part| pids.iter().map(move |&(pid, here)| (part, pid, here));
    let threads_here: BTreeSet<u32> = apart.iter().map(|(_, here, _)| *here).collect();
    let of_threads = apart.iter().map(|(pid, here, _)| (Part::Files, *pid, *here));
    let environ = part(Part::Environ).filter(|_| !env.is_empty());
    let calls = wanted.calls(&snaps);
    let jobs: Vec<_> = part(Part::Files).chain(of_threads).chain(part(Part::Argv)).chain(environ).collect();
    let mut threads: BTreeMap<u32, ProcessReading> = BTreeMap::new();
    let room = NameBudget::default();
    let mut processes: BTreeMap<u32, ProcessReading> = BTreeMap::new();
    let mut arguments: BTreeMap<u32, Arc<Argv>> = BTreeMap::new();
    let mut environs: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let asked = jobs.clone();
    let mut memory: Vec<CallMemory> = Vec::new();
    let calls = Arc::new((wanted, calls));
    let unread = each("start", jobs, work(room, Arc::clone(env), calls), |number, answer| {
        let (_, pid, here) = asked[number];
        match answer {
            Answer::Files(process) if threads_here.contains(&here) => {
                drop(threads.insert(here, process));
            }
            Answer::Files(process) => drop(processes.insert(pid, process)),
            Answer::Argv(argv, calls) => {
                argv.map(|argv| arguments.insert(pid, argv));
                memory.extend(calls);
            }
            Answer::Environ(env) => drop(environs.insert(pid, env)),
        }
    });
    let done = clock::monotonic();
    let limits = limits.get(Instant::now() + PATIENCE);
    let unread = unread_parts(&snaps, unread.into_iter().map(|number| (asked[number].0, asked[number].1)));
    for pid in unread.iter().filter(|unread| unread.files).map(|unread| unread.pid) {
        // its arguments may be known
        processes.insert(pid, ProcessReading::unknown(pid, done));
    }
    for (pid, process) in &mut processes {
        process.argv = arguments.remove(pid);
        process.env = environs.remove(pid).unwrap_or_default();
    }
    for (pid, of) in shared {
        if let Some(process) = processes.get_mut(&pid) {
            process.of = of;
        }
    }
    let mut processes: Vec<ProcessReading> = processes.into_values().collect();
    for (pid, here, of) in apart {
        let process = threads.remove(&here).unwrap_or_else(|| ProcessReading::unknown(pid, done));
        processes.push(ProcessReading { of, ..process });
    }
    Start { snaps, processes, opens, memory, limits: limits.unwrap_or_default(), unread, done }
}

/// Each recorded process once, by its ids on the machine and here.
fn processes(snaps: &[Snap], first: Option<u32>) -> Vec<(u32, u32)> {
    let ids = |s: &Snap| (s.task.id.pid, s.task.here_pid);
    let mut pids: Vec<(u32, u32)> = snaps.iter().filter(|s| s.matched != 0).map(ids).collect();
    pids.sort_unstable_by_key(|&(pid, here)| (Some(here) != first, pid, here));
    pids.dedup();
    pids
}

/// Processes that share their open files or directory with another one; and threads that do not share those of their process, the
/// ones with the same by the process, and by the id here of one of them.
type Sharing = (Vec<(u32, Of)>, Vec<(u32, u32, Of)>);

fn sharing(snaps: &[Snap]) -> Sharing {
    // the first process has its directory with kernel threads, which never change it
    let live = || snaps.iter().filter(|s| s.kthread == 0 && s.files != 0 && s.fs != 0);
    let mut main: BTreeMap<u32, &Snap> = BTreeMap::new();
    let mut users: [BTreeMap<u64, BTreeSet<u32>>; 2] = Default::default();
    for snap in live() {
        let id = snap.task.id;
        let first = main.entry(id.pid).or_insert(snap);
        if id.tid == id.pid {
            *first = snap;
        }
        users[0].entry(snap.files).or_default().insert(id.pid);
        users[1].entry(snap.fs).or_default().insert(id.pid);
    }
    let with_others = |snap: &Snap| [users[0][&snap.files].len() > 1, users[1][&snap.fs].len() > 1];
    let shared = main.iter().filter(|(_, snap)| snap.matched != 0).filter_map(|(pid, snap)| {
        let [files, dir] = with_others(snap);
        (files || dir).then(|| (*pid, Of { threads: Vec::new(), files, dir }))
    });
    let mut apart: BTreeMap<(u32, u64, u64), (u32, Of)> = BTreeMap::new();
    for snap in live().filter(|s| s.matched != 0) {
        let id = snap.task.id;
        let (files, dir) = (snap.files != main[&id.pid].files, snap.fs != main[&id.pid].fs);
        if files || dir {
            let of = Of { threads: Vec::new(), files, dir };
            let (_, of) = apart.entry((id.pid, snap.files, snap.fs)).or_insert((snap.task.here_tid, of));
            of.threads.push(id.tid);
        }
    }
    (shared.collect(), apart.into_iter().map(|((pid, ..), (here, of))| (pid, here, of)).collect())
}

/// What is wanted of calls in flight, and these by process as in /proc.
type Calls = Arc<(Wanted, BTreeMap<u32, Vec<Asked>>)>;

fn work(
    room: NameBudget,
    env: Arc<EnvironKeys>,
    calls: Calls,
) -> impl Fn((Part, u32, u32), &JobProgress) -> Answer + Clone + Send + 'static {
    move |(part, pid, here), moved| match part {
        Part::Files => Answer::Files(snapshot::process(pid, here, &room, moved)),
        Part::Argv => {
            let argv = snapshot::argv(here);
            Answer::Argv(argv, calls.1.get(&here).map_or_else(Vec::new, |of| calls.0.read(of, moved)))
        }
        Part::Environ => Answer::Environ(snapshot::environ(here, &env)),
    }
}

/// The missing parts, by process.
fn unread_parts(snaps: &[Snap], parts: impl Iterator<Item = (Part, u32)>) -> Vec<UnreadProcess> {
    let mut missing: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
    // of an environment each task says that it is not known
    for (part, pid) in parts.filter(|(part, _)| !matches!(part, Part::Environ)) {
        let (files, argv) = missing.entry(pid).or_default();
        match part {
            Part::Files => *files = true,
            Part::Argv => *argv = true,
            Part::Environ => {}
        }
    }
    let name = |pid| snaps.iter().find(|s| s.task.id.tid == pid).map(|s| comm(&s.task.comm)).unwrap_or_default();
    missing.into_iter().map(|(pid, (files, argv))| UnreadProcess { pid, comm: name(pid), files, argv }).collect()
}

/// The note about those that could not be read; None = everything was.
pub(crate) fn words(unread: &[UnreadProcess]) -> Option<String> {
    const NAMED: usize = 5;
    let n = unread.len();
    let what: BTreeSet<&str> = unread
        .iter()
        .map(|process| match process {
            UnreadProcess { files: true, argv: true, .. } => "open files and arguments",
            UnreadProcess { files: true, .. } => "open files",
            _ => "arguments",
        })
        .collect();
    let what = match what.len() {
        0 => return None,
        1 => what.into_iter().collect::<String>(),
        _ => "open files or arguments".to_owned(),
    };
    let named =
        |process: &UnreadProcess| format!("pid {} {}", process.pid, plain(&String::from_utf8_lossy(&process.comm)));
    let mut names = unread.iter().take(NAMED).map(named).collect::<Vec<_>>().join(", ");
    if n > NAMED {
        names.push_str(", ...");
    }
    let processes = if n == 1 { "1 process" } else { &format!("{n} processes") };
    Some(format!("{processes} could not be read in time, so {what} from before the start are unknown: {names}"))
}

#[cfg(test)]
mod tests {
    use systape_abi::{Selection, Structs};
    use systape_bpf::wire::{Ident, Task};

    use super::*;

    fn wanted() -> Wanted {
        Wanted { selection: Selection::all(), string_limit: 64, structs: Structs::Waits }
    }

    fn snap(pid: u32, matched: u32) -> Snap {
        let id = Ident { tid: pid, pid, ..Ident::default() };
        let task = Task { id, here_pid: pid, ..Task::default() };
        Snap { task, matched: matched as _, nr: systape_bpf::wire::SNAP_NO_CALL, ..Snap::default() }
    }

    #[test]
    fn the_command_comes_first_and_everybody_once() {
        let snaps = [snap(3, 1), snap(2, 1), snap(9, 1), snap(4, 0), snap(3, 1)];
        assert_eq!(processes(&snaps, Some(9)), [(9, 9), (2, 2), (3, 3)]);
        assert_eq!(processes(&snaps, None), [(2, 2), (3, 3), (9, 9)]);
    }

    #[test]
    fn who_shares_with_whom_is_told_by_the_tables() {
        let of = |tid, pid, (files, fs), matched| {
            let mut snap = snap(pid, matched);
            (snap.task.id.tid, snap.task.here_tid, snap.files, snap.fs) = (tid, tid, files, fs);
            snap
        };
        let kernel = Snap { kthread: 1, ..of(2, 2, (90, 91), 0) };
        let snaps = [
            kernel,
            of(1, 1, (10, 91), 1),
            of(5, 5, (50, 51), 1),
            of(6, 5, (60, 51), 1),
            of(7, 5, (70, 71), 1),
            of(8, 5, (70, 71), 1),
            of(9, 5, (80, 81), 0),
            // its main thread has ended
            of(20, 20, (0, 0), 1),
            of(21, 20, (21, 22), 1),
            // of two that share one is recorded
            of(30, 30, (31, 32), 1),
            of(33, 33, (31, 34), 0),
        ];
        let (shared, apart) = sharing(&snaps);
        assert_eq!(shared, [(30, Of { threads: vec![], files: true, dir: false })]);
        let own = |threads: &[u32], dir| Of { threads: threads.to_vec(), files: true, dir };
        assert_eq!(apart, [(5, 6, own(&[6], false)), (5, 7, own(&[7, 8], true))]);
    }

    #[test]
    fn what_is_there_is_read() {
        let own = std::process::id();
        let start =
            read(vec![snap(own, 1), snap(u32::MAX, 1)], None, &Arc::default(), wanted(), FirstDescriptors::default);
        assert_eq!(start.unread, []);
        let me = start.processes.iter().find(|process| process.pid == own).unwrap();
        assert!(me.argv.is_some() && me.fds.is_some() && me.to <= start.done);
    }

    #[test]
    fn who_could_not_be_read_is_named() {
        let parts = [(Part::Argv, 7), (Part::Files, 8), (Part::Argv, 8)];
        let unread = unread_parts(&[snap(7, 1)], parts.into_iter());
        assert_eq!(words(&[]), None);
        assert_eq!(
            words(&unread[..1]).unwrap(),
            "1 process could not be read in time, so arguments from before the start are unknown: pid 7 "
        );
        assert!(
            words(&unread).unwrap().starts_with("2 processes could not be read in time, so open files or arguments")
        );
    }
}
