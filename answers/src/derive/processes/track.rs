//! From events of process life to processes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{Checkpoint, FORK_THREAD, Family, ProcessEvent, ProcessKind, Task};

use super::ending::Ending;
use super::process::{Command, Image, Process};
use systape_events::values::order::InOrder as _;

/// pid of the parent of kernel threads. Lower pids are init and 0, the idle tasks of all CPUs as one process.
const KTHREADD: u32 = 2;

/// Marks keys of tasks without a unique id, whose numbers may have been reused unnoticed.
const BY_NUMBER: u64 = 1 << 63;

/// What identifies the process of `task`.
pub fn key(task: &Task) -> u64 {
    if task.upid == 0 { BY_NUMBER | u64::from(task.pid) } else { u64::from(task.upid) }
}

/// All processes, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Start of the recording.
    window_open: u64,
    /// The processes.
    pub all: Vec<Process>,
    by_key: FxHashMap<u64, usize>,
    /// (pid, start) → index: an ancestor's identity.
    by_start: FxHashMap<(u32, u64), usize>,
}

impl Processes {
    /// An empty list; the recording began at `window_open`.
    pub fn new(window_open: u64) -> Self {
        Self { window_open, ..Self::default() }
    }

    /// The process of `task`, if an event or table has it.
    pub fn get(&self, task: &Task) -> Option<&Process> {
        self.by_key.get(&key(task)).map(|at| &self.all[*at])
    }

    /// The process with this pid and start.
    pub fn by_start(&self, pid: u32, start: u64) -> Option<&Process> {
        self.by_start.get(&(pid, start)).filter(|_| start != 0).map(|at| &self.all[*at])
    }

    /// The processes above `process`: its parent, its parent's parent, …
    pub fn above<'a>(&'a self, process: &'a Process) -> impl Iterator<Item = &'a Process> {
        let up = |process: &&'a Process| process.parent.map(|at| &self.all[at]);
        std::iter::successors(up(&process), up).take(self.all.len())
    }

    /// Adds `task` of a table of the tape: later entries of one thread are newer.
    pub fn see(&mut self, task: &Task) -> usize {
        let at = *self.by_key.entry(key(task)).or_insert(self.all.len());
        if at == self.all.len() {
            let start = task.leader_start_ns;
            self.by_start.entry((task.pid, start)).or_insert(at);
            // the first two may have been made before the clock ran
            let before = (start != 0 && start < self.window_open) || task.pid <= KTHREADD;
            self.all.push(Process { task: task.clone(), start, before, ppid: task.ppid, ..Process::default() });
        }
        let process = &mut self.all[at];
        if process.start == 0 && task.leader_start_ns != 0 {
            // its threads came before anything said when it began
            process.start = task.leader_start_ns;
            process.before |= process.start < self.window_open;
            self.by_start.entry((task.pid, process.start)).or_insert(at);
        }
        let leads = |task: &Task| task.tid == task.pid;
        if (leads(task) || !leads(&process.task)) && process.task != *task {
            process.task = task.clone();
        }
        if !leads(&process.task) {
            // a process is named by its leader; a thread's name is its own
            process.task.comm.clear();
        }
        if let Some(recorded) = task.recorded.has(Family::Process)
            && (leads(task) || !leads(&process.task))
        {
            process.followed = recorded;
        }
        at
    }

    /// Adds everything a checkpoint has; `first`: its tasks existed when the recording began.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint, first: bool) {
        for task in &checkpoint.tasks {
            let at = self.see(task);
            self.all[at].before |= first;
            if first && task.tid == task.pid {
                self.all[at].names.push((0, task.comm.clone()));
            }
        }
        // descriptors and open calls are recorded of targets only: where entries do not say who is one, these do
        let targets = checkpoint.fd_tables.iter().map(|table| u64::from(table.upid));
        let threads: FxHashMap<u32, u64> = checkpoint.tasks.iter().map(|task| (task.utid, key(task))).collect();
        let callers = checkpoint.in_flight.iter().filter_map(|call| threads.get(&call.utid).copied());
        for upid in targets.chain(callers) {
            if let Some(at) = self.by_key.get(&upid) {
                self.all[*at].derive_followed();
            }
        }
        for line in checkpoint.commands.iter().filter(|line| !line.argv.is_empty() && line.upid != 0) {
            let Some(at) = self.by_key.get(&u64::from(line.upid)) else { continue };
            let images = &mut self.all[*at].images;
            // events know better than a table does; where one was lost the table is all there is
            if images.is_empty() {
                let command = Command { argv: line.argv.clone(), whole: line.full <= line.argv.len() as u64 };
                let since = if first { 0 } else { checkpoint.ts };
                images.push(Image { since, command: Arc::new(command), ..Image::default() });
            }
        }
    }

    /// Adds an event, and returns the place of its process; `tasks` are those of its segment. None: it is of none of them.
    pub fn event(&mut self, event: &ProcessEvent, tasks: &[Task]) -> Option<usize> {
        let task = tasks.get(event.task as usize)?;
        let at = self.see(task);
        self.all[at].derive_followed();
        self.name(at, event, task);
        match event.kind {
            ProcessKind::Fork if event.flags & FORK_THREAD == 0 => {
                if let Some(parent) = tasks.get(event.parent as usize) {
                    self.fork(at, event.ts, parent);
                }
            }
            ProcessKind::Exec => self.all[at].images.push(Image {
                since: event.ts,
                exec: true,
                path: event.path.clone(),
                command: Arc::new(Command {
                    argv: if event.argv_status.has_bytes() { event.argv.clone() } else { Vec::new() },
                    whole: event.argv_status.is_whole(),
                }),
                task: task.clone(),
            }),
            ProcessKind::Exit => {
                self.all[at].exits.add(Ending::new(event.ts, event.exit_code, event.flags), event.group_dead);
            }
            ProcessKind::Fork | ProcessKind::Rename | ProcessKind::Cred | ProcessKind::Cgroup | ProcessKind::Target => {
            }
        }
        Some(at)
    }

    /// Notes the name that an event gives the first thread of the process at `at`.
    fn name(&mut self, at: usize, event: &ProcessEvent, task: &Task) {
        let name = match event.kind {
            _ if task.tid != task.pid => return,
            ProcessKind::Fork | ProcessKind::Exec => &task.comm,
            ProcessKind::Rename => &event.comm,
            ProcessKind::Exit | ProcessKind::Cred | ProcessKind::Cgroup | ProcessKind::Target => return,
        };
        self.all[at].names.push((event.ts, name.clone()));
    }

    /// Leaves out the processes that `gone` picks by place and facts: of their children only their pid is known then.
    pub fn forget(&mut self, gone: impl Fn(usize, &Process) -> bool) {
        let mut places = Vec::with_capacity(self.all.len());
        let mut kept = Vec::new();
        for (at, process) in std::mem::take(&mut self.all).into_iter().enumerate() {
            let stays = !gone(at, &process);
            places.push(stays.then_some(kept.len()));
            if stays {
                kept.push(process);
            }
        }
        for process in &mut kept {
            process.parent = process.parent.and_then(|parent| places[parent]);
        }
        self.all = kept;
        let moved = |at: &mut usize| places[*at].inspect(|new| *at = *new).is_some();
        self.by_key.retain(|_, at| moved(at));
        self.by_start.retain(|_, at| moved(at));
    }

    fn fork(&mut self, child: usize, ts: u64, parent: &Task) {
        let (ppid, name) = (parent.pid, parent.comm.clone());
        let parent = self.see(parent);
        // until it execs, a child has the program of its parent
        let image = self.all[parent].image_at(ts).cloned();
        let process = &mut self.all[child];
        process.before = false;
        process.ppid = ppid;
        process.forked_by = name;
        process.parent = Some(parent).filter(|parent| *parent != child);
        if process.start == 0 {
            process.start = ts;
        }
        if process.images.is_empty() {
            process.images.extend(image.map(|image| Image { since: ts, exec: false, task: Task::default(), ..image }));
        }
    }

    /// Orders everything after the last event.
    pub fn finish(mut self) -> Self {
        self.order();
        self
    }

    /// Orders what there is: parents known only by pid, images by time.
    pub fn order(&mut self) {
        let mut by_pid: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (at, process) in self.all.iter().enumerate() {
            by_pid.entry(process.task.pid).or_default().push(at);
        }
        for at in 0..self.all.len() {
            self.all[at].images.order_by_key(|image| image.since);
            self.all[at].names.order_by_key(|(since, _)| *since);
            let process = &self.all[at];
            if process.parent.is_none() {
                // of several processes with that pid, the youngest that can have been there
                let limit = process.start.max(self.window_open);
                let known = by_pid.get(&process.ppid).into_iter().flatten().copied();
                let known = known.filter(|_| process.ppid != 0);
                let older = known.filter(|parent| *parent != at && self.all[*parent].start <= limit);
                self.all[at].parent = older.max_by_key(|parent| self.all[*parent].start);
            }
        }
        self.cut_cycles();
    }

    /// A damaged tape may make a process its own ancestor.
    fn cut_cycles(&mut self) {
        /// Not visited, on the current path upwards, done.
        #[derive(Clone, Copy, PartialEq)]
        enum VisitMark {
            New,
            Path,
            Done,
        }
        let mut marks = vec![VisitMark::New; self.all.len()];
        for from in 0..self.all.len() {
            let (mut path, mut at) = (Vec::new(), from);
            while marks[at] == VisitMark::New {
                marks[at] = VisitMark::Path;
                path.push(at);
                match self.all[at].parent {
                    Some(parent) if marks[parent] == VisitMark::Path => self.all[at].parent = None,
                    Some(parent) => at = parent,
                    None => {}
                }
            }
            for at in path {
                marks[at] = VisitMark::Done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: u64 = 1_000;

    fn task(pid: u32, upid: u32, start: u64, ppid: u32) -> Task {
        let comm = format!("p{pid}").into_bytes();
        Task { tid: pid, pid, upid, utid: upid, start_ns: start, leader_start_ns: start, ppid, comm, ..Task::default() }
    }

    fn event(ts: u64, kind: ProcessKind, task: u32, parent: u32) -> ProcessEvent {
        ProcessEvent { parent, group_dead: kind == ProcessKind::Exit, ..ProcessEvent::new(ts, kind, task) }
    }

    fn exec(ts: u64, task: u32, argv: &[u8]) -> ProcessEvent {
        ProcessEvent { argv: argv.to_vec(), ..event(ts, ProcessKind::Exec, task, task) }
    }

    #[test]
    fn a_story_of_three_generations() {
        let mut all = Processes::new(OPEN);
        let (init, watch) = (task(1, 1, 1, 0), task(10, 2, 500, 1));
        let commands = [systape_format::model::CommandLine { upid: 2, argv: b"watch\0ls".to_vec(), full: 8 }];
        all.checkpoint(
            &Checkpoint { tasks: vec![init, watch.clone()], commands: commands.into(), ..Checkpoint::default() },
            true,
        );
        let tasks = [watch, task(11, 3, 1_100, 10), task(12, 4, 1_200, 11)];
        all.event(&event(1_100, ProcessKind::Fork, 1, 0), &tasks);
        all.event(&exec(1_110, 1, b"sh\0-c\0ls"), &tasks);
        all.event(&event(1_200, ProcessKind::Fork, 2, 1), &tasks);
        all.event(&exec(1_210, 2, b"ls"), &tasks);
        all.event(&ProcessEvent { exit_code: 2 << 8, ..event(1_300, ProcessKind::Exit, 2, 2) }, &tasks);
        let all = all.finish();
        let ls = all.get(&tasks[2]).unwrap();
        assert_eq!((ls.start, ls.ppid, ls.before, ls.lived(9_000)), (1_200, 11, false, Some(100)));
        assert_eq!(ls.end().unwrap().status(), Some(2));
        assert_eq!(ls.command_at(1_205).unwrap().argv, b"sh\0-c\0ls", "before exec it is its parent's program");
        assert_eq!(ls.command_at(1_210).unwrap().argv, b"ls");
        assert_eq!(all.above(ls).map(|p| p.task.pid).collect::<Vec<_>>(), [11, 10, 1]);
        let watch = all.get(&tasks[0]).unwrap();
        assert!(watch.before && watch.end().is_none());
        assert_eq!(watch.command_at(1_000).unwrap().argv, b"watch\0ls");
        assert_eq!(all.by_start(12, 1_200).map(|p| p.task.upid), Some(4));
        assert!(all.by_start(12, 0).is_none(), "an unknown start equals no other");
    }

    #[test]
    fn a_process_has_the_name_of_the_time() {
        let named = |comm: &str| Task { comm: comm.into(), ..task(10, 3, 700, 1) };
        let tasks = [task(1, 1, 0, 0), named("sh"), named("python3"), named("other")];
        let mut all = Processes::new(500);
        // the table has the last name first: only events say when it got which
        [3, 2, 1, 0].iter().for_each(|at: &usize| _ = all.see(&tasks[*at]));
        all.event(&exec(900, 2, b"python3"), &tasks);
        all.event(&event(700, ProcessKind::Fork, 1, 0), &tasks);
        all.event(&ProcessEvent { comm: b"worker".into(), ..event(950, ProcessKind::Rename, 2, 2) }, &tasks);
        let all = all.finish();
        let process = all.get(&tasks[1]).unwrap();
        let at = |ts| process.name_at(ts).map(|(since, name)| (since, std::str::from_utf8(name).unwrap()));
        assert_eq!(
            [699, 700, 899, 900, 949].map(at),
            [None, Some((700, "sh")), Some((700, "sh")), Some((900, "python3")), Some((900, "python3"))]
        );
        assert_eq!(at(2000), Some((950, "worker")));
        // of who got no name in the recording there is one
        assert_eq!(all.get(&tasks[0]).unwrap().name_at(600), Some((0, b"p1".as_slice())));
    }

    #[test]
    fn a_process_whose_start_came_late_is_one() {
        let mut all = Processes::new(OPEN);
        let thread = Task { tid: 31, leader_start_ns: 0, start_ns: 800, ..task(30, 7, 0, 0) };
        all.see(&thread);
        all.see(&task(30, 7, 700, 1));
        assert_eq!(all.all.len(), 1);
        let process = all.by_start(30, 700).unwrap();
        assert_eq!((process.start, process.before, process.task.comm.as_slice()), (700, true, b"p30".as_slice()));
    }

    #[test]
    fn a_pid_used_again_is_another_process() {
        let mut all = Processes::new(OPEN);
        let tasks = [task(1, 1, 1, 0), task(11, 2, 1_100, 1), task(11, 3, 1_500, 1), task(12, 4, 1_550, 11)];
        all.event(&event(1_100, ProcessKind::Fork, 1, 0), &tasks);
        all.event(&event(1_200, ProcessKind::Exit, 1, 1), &tasks);
        all.event(&event(1_500, ProcessKind::Fork, 2, 0), &tasks);
        // its fork was lost: the pid of its parent must do
        all.see(&tasks[3]);
        let all = all.finish();
        assert!(all.get(&tasks[1]).unwrap().end().is_some() && all.get(&tasks[2]).unwrap().end().is_none());
        assert_eq!(all.above(all.get(&tasks[3]).unwrap()).map(|p| p.task.upid).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn who_is_forgotten_is_no_parent_and_the_others_stay_who_they_are() {
        let mut all = Processes::new(OPEN);
        let tasks = [task(1, 1, 1, 0), task(11, 2, 1_100, 1), task(12, 3, 1_200, 11), task(13, 4, 1_300, 12)];
        for (child, ts) in [(1, 1_100), (2, 1_200), (3, 1_300)] {
            all.event(&event(ts, ProcessKind::Fork, child, child - 1), &tasks);
        }
        all.event(&event(1_400, ProcessKind::Exit, 1, 1), &tasks);
        all.forget(|_, process| process.end().is_some());
        assert_eq!(all.all.iter().map(|process| process.task.pid).collect::<Vec<_>>(), [1, 12, 13]);
        let parents: Vec<_> = all.all.iter().map(|process| (process.ppid, process.parent)).collect();
        assert_eq!(parents, [(0, None), (11, None), (12, Some(1))]);
        assert!(all.get(&tasks[1]).is_none() && all.by_start(11, 1_100).is_none());
        assert_eq!(all.by_start(13, 1_300).map(|process| process.task.upid), Some(4));
        assert_eq!(all.see(&tasks[3]), 2);
    }

    #[test]
    fn damage_makes_no_circles() {
        let mut all = Processes::new(OPEN);
        let tasks = [task(5, 1, 1_000, 0), task(6, 2, 1_000, 0), task(7, 3, 1_000, 6)];
        all.event(&event(1_100, ProcessKind::Fork, 0, 1), &tasks);
        all.event(&event(1_100, ProcessKind::Fork, 1, 0), &tasks);
        all.event(&event(1_100, ProcessKind::Fork, 2, 1), &tasks);
        all.event(&event(1_100, ProcessKind::Fork, 9, 1), &tasks);
        let all = all.finish();
        assert!(all.all.iter().all(|process| all.above(process).count() < 3));
    }
}
