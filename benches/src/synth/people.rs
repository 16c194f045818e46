//! Who lives on the made-up machine, and when: init, supervisors that fork, processes that wait, processes that are there all the time,
//! and as many again that are born and mostly die.

use systape_format::model::{Ancestor, Family, RecordedFamilies, Task};

use super::names;
use super::rng::SplitMix;

/// Parents of everybody else.
const SUPERVISORS: u32 = 16;
/// One in so many of the born is killed.
const KILLED: u32 = 40;

/// What happens to the born, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Event.
    Fork,
    /// The child's side of its parent's call.
    Child,
    /// The parent's call returns.
    Clone,
    /// Event.
    Exec,
    /// The call returns.
    Execve,
    /// Signal from init.
    Signal,
    /// init's call returns.
    Kill,
    /// The last call.
    ExitGroup,
    /// Event, with that code.
    Exit(u32),
}

/// A step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// When.
    pub ts: u64,
    /// Whose.
    pub process: u32,
    /// What.
    pub step: Step,
}

/// Everybody. Process numbers go from 0 (init) up: supervisors, sleepers, standing ones, born ones.
#[derive(Clone, Debug)]
pub(super) struct People {
    open: u64,
    sleepers: u32,
    standing: u32,
    /// (birth, death) of the born, by birth.
    lives: Vec<(u64, u64)>,
}

impl People {
    /// So many, in a recording of `[open, close)`.
    pub(super) fn new(seed: u64, processes: u32, open: u64, close: u64) -> Self {
        let sleepers = (processes / 40).max(1);
        let standing = processes / 2 - sleepers - SUPERVISORS - 1;
        let born = processes - processes / 2;
        let span = (close - open) as f64;
        let shortest = (span / 100.0).min(20e6);
        let life = |j: u32| {
            let mut rng = SplitMix::of(seed ^ 0xb0_4e, j.into());
            let birth = span * (0.01 + 0.97 * (f64::from(j) + 0.8 * rng.unit()) / f64::from(born));
            // as many live for 20 to 40 ms as for 1 to 2 s
            let death = birth + shortest * (span / 5.0 / shortest).powf(rng.unit());
            let death = if death < 0.995 * span { open + death as u64 } else { u64::MAX };
            (open + birth as u64, death)
        };
        Self { open, sleepers, standing, lives: (0..born).map(life).collect() }
    }

    /// Those that wait.
    pub(super) fn sleepers(&self) -> impl Iterator<Item = u32> {
        (1 + SUPERVISORS..).take(self.sleepers as usize)
    }

    fn first_standing(&self) -> u32 {
        1 + SUPERVISORS + self.sleepers
    }

    fn first_born(&self) -> u32 {
        self.first_standing() + self.standing
    }

    /// The standing one with a number from any range.
    pub(super) fn standing(&self, number: u64) -> u32 {
        self.first_standing() + (number % u64::from(self.standing)) as u32
    }

    /// Those of the born that live from before `from` until after `to`, exec and exit left out.
    pub(super) fn living(&self, from: u64, to: u64) -> impl Iterator<Item = u32> {
        const MARGIN: u64 = 1_000_000;
        let born = self.lives.partition_point(|(birth, _)| birth + MARGIN <= from);
        let lives = self.lives[..born].iter().enumerate();
        lives.filter(move |(_, (_, death))| *death - MARGIN >= to).map(|(j, _)| self.first_born() + j as u32)
    }

    /// Everybody who is there at `ts`.
    pub(super) fn present(&self, ts: u64) -> impl Iterator<Item = u32> {
        let born = self.lives.iter().take_while(move |(birth, _)| *birth <= ts).enumerate();
        let born = born.filter(move |(_, (_, death))| *death > ts).map(|(j, _)| self.first_born() + j as u32);
        (0..self.first_born()).chain(born)
    }

    /// All steps, by time.
    pub(super) fn items(&self) -> Vec<Item> {
        let mut items = Vec::with_capacity(self.lives.len() * 9);
        for (j, (birth, death)) in self.lives.iter().copied().enumerate() {
            let process = self.first_born() + j as u32;
            let mut step = |ts, step| items.push(Item { ts, process, step });
            step(birth, Step::Fork);
            step(birth + 40_000, Step::Child);
            step(birth + 60_000, Step::Clone);
            step(birth + 500_000, Step::Exec);
            step(birth + 600_000, Step::Execve);
            if death == u64::MAX {
                continue;
            }
            if j as u32 % KILLED == KILLED / 2 {
                step(death - 30_000, Step::Signal);
                step(death - 10_000, Step::Kill);
                step(death + 50_000, Step::Exit(9));
            } else {
                step(death, Step::ExitGroup);
                step(death + 50_000, Step::Exit(u32::from(j % 9 == 0) << 8));
            }
        }
        items.sort_unstable();
        items
    }

    /// The parent's number.
    pub(super) fn parent(&self, process: u32) -> u32 {
        if process > SUPERVISORS { 1 + process % SUPERVISORS } else { 0 }
    }

    /// Its id, never used again.
    pub(super) fn pid(process: u32) -> u32 {
        if process == 0 { 1 } else { 1000 + process }
    }

    fn start(&self, process: u32) -> u64 {
        match process.checked_sub(self.first_born()) {
            Some(j) => self.lives[j as usize].0,
            // before the recording, init first
            None => self.open / 2 + u64::from(process) * 1_000_000,
        }
    }

    /// Its command line, NUL-separated.
    pub(super) fn argv(&self, process: u32) -> Vec<u8> {
        format!("{}\0--job\0{process}", self.program(process)).into_bytes()
    }

    /// Name of its program.
    pub(super) fn program(&self, process: u32) -> &'static str {
        match process {
            0 => "systemd",
            1..=SUPERVISORS => "supervisor",
            _ => names::program(process),
        }
    }

    /// As tables have it; `execed`: it has its own program, not that of its parent.
    pub(super) fn task(&self, process: u32, execed: bool) -> Task {
        let pid = Self::pid(process);
        let start = self.start(process);
        let program = self.program(if execed { process } else { self.parent(process) });
        Task {
            tid: pid,
            pid,
            start_ns: start,
            leader_start_ns: start,
            comm: program.as_bytes().to_vec(),
            exe: format!("/usr/bin/{program}").into_bytes(),
            uid: if process <= SUPERVISORS { 0 } else { 1000 + process % 7 },
            cgroup_id: if process == 0 { 1 } else { 100 + u64::from(process % 50) },
            utid: process + 1,
            upid: process + 1,
            ns_tid: pid,
            ns_pid: pid,
            ppid: if process == 0 { 0 } else { Self::pid(self.parent(process)) },
            recorded: RecordedFamilies::of(&[Family::Syscall, Family::Process]),
            env: Vec::new(),
        }
    }

    /// Its parent, its parent's parent, …
    pub(super) fn ancestors(&self, process: u32) -> Vec<Ancestor> {
        let up = |&process: &u32| (process > 0).then(|| self.parent(process));
        std::iter::successors(up(&process), up)
            .map(|above| Ancestor {
                pid: Self::pid(above),
                start_ns: self.start(above),
                comm: self.program(above).as_bytes().to_vec(),
            })
            .collect()
    }
}
