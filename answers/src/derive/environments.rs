//! The environments with which programs were started, from tasks and execs in the order of a tape.
//!
//! A task's entry has the variables of its program. The event of an exec comes before they are known: the next entry of the process
//! has them.

use rustc_hash::FxHashMap;
use systape_format::model::{Family, ProcessEvent, ProcessKind, Task};

/// A program that was started.
#[derive(Clone, Debug)]
pub struct StartedProgram {
    /// Time of the start; None: before the tape.
    pub since: Option<u64>,
    /// The process as it was then.
    pub task: Task,
    /// Path that was passed to exec; empty: not known.
    pub path: Vec<u8>,
    /// As [`Task::env`]: empty: not known.
    env: Vec<u8>,
}

/// A variable of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable<'a> {
    /// Name of the variable; None: it was taken out of the tape.
    pub name: Option<&'a [u8]>,
    /// Value of the variable; None: whether it was set is not known.
    pub value: Option<&'a [u8]>,
}

/// All programs, in order of time.
#[derive(Debug, Default)]
pub struct StartedPrograms {
    /// The programs.
    pub all: Vec<StartedProgram>,
    /// The last one of each process.
    of_process: FxHashMap<u32, usize>,
}

impl StartedPrograms {
    /// Adds the tasks that were there when the tape began.
    pub fn begin(&mut self, tasks: &[Task]) {
        for task in tasks.iter().filter(|task| task.upid != 0) {
            if task.recorded.has(Family::Process) != Some(false) && !self.of_process.contains_key(&task.upid) {
                self.start(task, None, Vec::new());
            }
        }
        self.add(tasks, &[]);
    }

    fn start(&mut self, task: &Task, since: Option<u64>, path: Vec<u8>) {
        self.of_process.insert(task.upid, self.all.len());
        self.all.push(StartedProgram { since, task: task.clone(), path, env: Vec::new() });
    }

    /// Adds the tasks of a segment, and the events that are about them.
    pub fn add(&mut self, tasks: &[Task], events: &[ProcessEvent]) {
        let execs = events.iter().filter(|event| event.kind == ProcessKind::Exec);
        let execs: FxHashMap<u32, &ProcessEvent> = execs.map(|event| (event.task, event)).collect();
        for (at, task) in tasks.iter().enumerate().filter(|(_, task)| task.upid != 0) {
            // of who was forked since, the program is its parent's
            if let Some(exec) = execs.get(&(at as u32)) {
                self.start(task, Some(exec.ts), exec.path.clone());
            }
            if let Some(program) = self.of_process.get(&task.upid).map(|at| &mut self.all[*at])
                && program.env.is_empty()
            {
                program.env.clone_from(&task.env);
            }
        }
    }
}

impl StartedProgram {
    /// Whether anything is known of its environment.
    pub fn is_known(&self) -> bool {
        !self.env.is_empty()
    }

    /// Kept variables that were set, or may have been.
    pub fn variables(&self) -> impl Iterator<Item = Variable<'_>> {
        self.env.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(|entry| {
            match entry.iter().position(|byte| *byte == b'=') {
                _ if entry.starts_with(b"<redacted") => Variable { name: None, value: Some(entry) },
                Some(at) => Variable { name: Some(&entry[..at]), value: Some(&entry[at + 1..]) },
                None => Variable { name: Some(entry), value: None },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(upid: u32, env: &str) -> Task {
        Task { tid: upid, pid: upid, upid, env: env.into(), ..Task::default() }
    }

    fn exec(ts: u64, at: u32) -> ProcessEvent {
        ProcessEvent::new(ts, ProcessKind::Exec, at)
    }

    fn text(programs: &StartedPrograms) -> Vec<String> {
        let one = |program: &StartedProgram| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let all = program.variables().map(|v| format!("{:?}={:?}", v.name.map(text), v.value.map(text)));
            format!("{:?} {} {}", program.since, program.is_known(), all.collect::<Vec<_>>().join(" "))
        };
        programs.all.iter().map(one).collect()
    }

    #[test]
    fn the_entry_behind_an_exec_has_its_variables() {
        let mut programs = StartedPrograms::default();
        programs.begin(&[task(1, "A=1\0")]);
        // forked since: no program of its own before its exec
        let tasks = [task(2, "A=1\0"), task(2, ""), task(2, "A=2\0B\0"), task(1, "A=1\0")];
        programs.add(&tasks, &[exec(130, 1)]);
        programs.add(&[task(2, ""), task(2, "\0")], &[exec(140, 0)]);
        assert_eq!(
            text(&programs),
            [
                r#"None true Some("A")=Some("1")"#,
                r#"Some(130) true Some("A")=Some("2") Some("B")=None"#,
                "Some(140) true "
            ]
        );
    }

    #[test]
    fn not_known_and_taken_out() {
        let mut programs = StartedPrograms::default();
        programs.begin(&[task(1, ""), task(2, "<redacted>")]);
        assert_eq!(text(&programs), ["None false ", r#"None true None=Some("<redacted>")"#]);
    }
}
