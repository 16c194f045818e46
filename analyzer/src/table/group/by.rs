//! Keys of sums: one list of names for every `--by`.

use anyhow::{Result, bail};

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// Name of the thread.
    Comm,
    /// Its user.
    Uid,
    /// Its cgroup.
    Cgroup,
    /// The container, unit of systemd, pod, or job of a batch system that its cgroup belongs to.
    Container,
    /// See [`Self::Container`].
    Unit,
    /// See [`Self::Container`].
    Pod,
    /// See [`Self::Container`].
    Job,
    /// Variables of the environment with which its program was started.
    Env,
    /// Labels of the tape.
    Label,
    /// The CPU.
    Cpu,
    /// The call.
    Syscall,
    /// The ABI that it is of.
    Abi,
    /// The file of the call.
    File,
    /// The directory that this is in, its extension; if it is a socket, the other end and its port.
    Dir,
    /// See [`Self::Dir`].
    Ext,
    /// See [`Self::Dir`].
    Peer,
    /// See [`Self::Dir`].
    Port,
    /// The error it returned.
    Errno,
    /// The second of the recording in which it began.
    Second,
    /// The minute likewise.
    Minute,
    /// The state of the thread.
    State,
    /// The disk.
    Disk,
    /// How the owner of an I/O is known.
    Cause,
    /// The operation.
    Op,
}

impl By {
    /// Keys that the path of the cgroup tells.
    pub(crate) const OF_CGROUP: [Self; 4] = [Self::Container, Self::Unit, Self::Pod, Self::Job];

    /// Keys that the name of the file tells.
    pub(crate) const OF_FILE: [Self; 4] = [Self::Dir, Self::Ext, Self::Peer, Self::Port];

    /// Keys that the time at which a call began tells.
    pub(crate) const OF_TIME: [Self; 2] = [Self::Second, Self::Minute];

    /// Keys that a task tells, and the tape it is on.
    const OF_TASK: [Self; 11] = [
        Self::Pid,
        Self::Tid,
        Self::Comm,
        Self::Uid,
        Self::Cgroup,
        Self::Container,
        Self::Unit,
        Self::Pod,
        Self::Job,
        Self::Env,
        Self::Label,
    ];

    /// These and `more`; `N` is the number of all.
    pub(crate) const fn of_task_and<const N: usize>(more: &[Self]) -> [Self; N] {
        let (mut all, mut at) = ([Self::Pid; N], 0);
        assert!(N == Self::OF_TASK.len() + more.len(), "all keys have a place");
        while at < N {
            all[at] = if at < Self::OF_TASK.len() { Self::OF_TASK[at] } else { more[at - Self::OF_TASK.len()] };
            at += 1;
        }
        all
    }

    /// Its name as typed, aliases, and its heading in a table.
    const WORDS: [(Self, &'static str, &'static [&'static str], &'static str); 26] = [
        (Self::Pid, "pid", &["process"], "process"),
        (Self::Tid, "tid", &["task", "thread"], "task"),
        (Self::Comm, "comm", &[], "comm"),
        (Self::Uid, "uid", &["user"], "user"),
        (Self::Cgroup, "cgroup", &[], "cgroup"),
        (Self::Container, "container", &[], "container"),
        (Self::Unit, "unit", &[], "unit"),
        (Self::Pod, "pod", &[], "pod"),
        (Self::Job, "job", &[], "job"),
        (Self::Env, "env", &["environ"], "env"),
        (Self::Label, "label", &["labels"], "label"),
        (Self::Cpu, "cpu", &[], "cpu"),
        (Self::Syscall, "syscall", &["call"], "syscall"),
        (Self::Abi, "abi", &["arch"], "abi"),
        (Self::File, "file", &["path"], "file"),
        (Self::Dir, "dir", &["directory"], "dir"),
        (Self::Ext, "ext", &["extension"], "ext"),
        (Self::Peer, "peer", &[], "peer"),
        (Self::Port, "port", &[], "port"),
        (Self::Errno, "errno", &["error"], "errno"),
        (Self::Second, "second", &["seconds"], "second"),
        (Self::Minute, "minute", &["minutes"], "minute"),
        (Self::State, "state", &[], "state"),
        (Self::Disk, "disk", &["dev"], "disk"),
        (Self::Cause, "cause", &[], "cause"),
        (Self::Op, "op", &[], "op"),
    ];

    fn words(self) -> (&'static str, &'static [&'static str], &'static str) {
        let found = Self::WORDS.iter().find(|(by, ..)| *by == self);
        found.map_or(("", &[], ""), |(_, name, aliases, heading)| (name, aliases, heading))
    }

    /// Its name as typed.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its heading in a table.
    pub fn heading(self) -> &'static str {
        self.words().2
    }

    /// The keys named by `words`, each once, out of those of the view.
    ///
    /// # Errors
    /// A word names none of `known`.
    pub fn parse(words: &[String], known: &[Self], view: &str) -> Result<Vec<Self>> {
        let mut keys = Vec::new();
        for word in words {
            let is = |by: &Self| {
                let (name, aliases, _) = by.words();
                name == word || aliases.contains(&word.as_str())
            };
            let Some(by) = known.iter().copied().find(is) else {
                let names: Vec<_> = known.iter().map(|by| by.name()).collect();
                bail!("--by {word}: {view} has {}", names.join(", "))
            };
            if !keys.contains(&by) {
                keys.push(by);
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_in_one_way_everywhere() {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let known = [By::Pid, By::Tid, By::Disk, By::Op];
        assert_eq!(By::parse(&words("disk,op,disk,process,pid"), &known, "x").unwrap(), [By::Disk, By::Op, By::Pid]);
        assert_eq!(By::parse(&words("task,thread"), &known, "x").unwrap(), [By::Tid]);
        let error = By::parse(&words("state"), &known, "'analyze block'").unwrap_err().to_string();
        assert_eq!(error, "--by state: 'analyze block' has pid, tid, disk, op");
        let mut names: Vec<_> =
            By::WORDS.iter().flat_map(|(_, name, aliases, _)| aliases.iter().chain([name])).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a word has one meaning");
    }
}
