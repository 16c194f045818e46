//! Keys of sums: one list of names for every `--by`.

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKey {
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// Name of the thread.
    Comm,
    /// User of the task.
    Uid,
    /// Cgroup of the task.
    Cgroup,
    /// The container, unit of systemd, pod, or job of a batch system that its cgroup belongs to.
    Container,
    /// Unit of systemd, found as [`Self::Container`] is.
    Unit,
    /// Pod, found as [`Self::Container`] is.
    Pod,
    /// Job, found as [`Self::Container`] is.
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
    /// Ending of the file, found as [`Self::Dir`] is.
    Ext,
    /// Other end, found as [`Self::Dir`] is.
    Peer,
    /// Port, found as [`Self::Dir`] is.
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

/// Words for a key that sums of events have not, but those of stacks.
const STACKS: [&str; 5] = ["stack", "stacks", "ustack", "kstack", "callchain"];

/// Why a word names no key of a view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The word asks for stacks, which are no key.
    #[error("--by {0}: 'analyze callgraph' adds up stacks, of calls with --of syscall")]
    Stacks(String),
    /// Several words have no commas between them.
    #[error("--by '{word}': keys are separated by commas: --by {keys}")]
    Several {
        /// What was typed.
        word: String,
        /// The same with commas.
        keys: String,
    },
    /// The view has no such key.
    #[error(
        "--by {word}: {}{view} has {}",
        meant.map(|name| format!("did you mean '{name}'? ")).unwrap_or_default(),
        known.join(", ")
    )]
    Unknown {
        /// What was typed.
        word: String,
        /// The key that it may be meant to be.
        meant: Option<&'static str>,
        /// The view, as a subject.
        view: String,
        /// All keys that the view has.
        known: Vec<&'static str>,
    },
}

impl GroupKey {
    /// Keys that the path of the cgroup tells.
    pub const OF_CGROUP: [Self; 4] = [Self::Container, Self::Unit, Self::Pod, Self::Job];

    /// Keys that the name of the file tells.
    pub const OF_FILE: [Self; 4] = [Self::Dir, Self::Ext, Self::Peer, Self::Port];

    /// Keys that the time at which a call began tells.
    pub const OF_TIME: [Self; 2] = [Self::Second, Self::Minute];

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

    /// Keys of tasks and `more`; `N` is the number of all.
    pub const fn of_task_and<const N: usize>(more: &[Self]) -> [Self; N] {
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

    /// Words that others have for a key, and its name.
    const OTHERS: &systape_abi::Habits = &[
        (&["name", "command", "cmd", "program", "exe", "app", "process-name", "procname"], "comm"),
        (&["event", "function", "operation"], "syscall"),
        (&["filename", "fname"], "file"),
        (&["folder"], "dir"),
        (&["device"], "disk"),
        (&["namespace"], "pod"),
        (&["service"], "unit"),
        (&["docker"], "container"),
        (&["remote", "addr", "ip"], "peer"),
        (&["result"], "errno"),
        (&["time"], "second"),
    ];

    /// The name of the key that is meant by `word`, which names none: another word for it, or several.
    pub fn meant(word: &str) -> Option<&'static str> {
        let many = [("ies", "y"), ("es", ""), ("s", "")];
        let ones = many.iter().filter_map(|(many, one)| Some(format!("{}{one}", word.strip_suffix(many)?)));
        let mut ones = std::iter::once(word.to_owned()).chain(ones);
        ones.find_map(|word| {
            let own = Self::WORDS.iter().find(|(_, name, others, _)| *name == word || others.contains(&&*word));
            own.map(|(_, name, ..)| *name).or_else(|| systape_abi::instead_of(Self::OTHERS, &word))
        })
    }

    fn words(self) -> (&'static str, &'static [&'static str], &'static str) {
        let found = Self::WORDS.iter().find(|(by, ..)| *by == self);
        found.map_or(("", &[], ""), |(_, name, aliases, heading)| (name, aliases, heading))
    }

    /// Name of the key as typed.
    #[inline]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Heading of the key in a table.
    #[inline]
    pub fn heading(self) -> &'static str {
        self.words().2
    }

    /// The keys named by `words`, each once, out of those of the view.
    ///
    /// # Errors
    /// A word names none of `known`.
    pub fn parse(words: &[String], known: &[Self], view: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for word in words {
            let word = word.trim();
            let is = |by: &Self| {
                let (name, aliases, _) = by.words();
                name == word || aliases.contains(&word)
            };
            let Some(by) = known.iter().copied().find(is) else {
                if STACKS.contains(&word) {
                    return Err(KeyError::Stacks(word.to_owned()));
                }
                let known: Vec<_> = known.iter().map(|by| by.name()).collect();
                let parts: Vec<_> = word.split(['/', ';', '+', ':', ' ']).filter(|part| !part.is_empty()).collect();
                if parts.len() > 1 {
                    return Err(KeyError::Several { word: word.to_owned(), keys: parts.join(",") });
                }
                let meant = Self::meant(word).filter(|name| known.contains(name));
                let meant = meant.or_else(|| systape_abi::nearest(word, known.iter().copied()).first().copied());
                return Err(KeyError::Unknown { word: word.to_owned(), meant, view: view.to_owned(), known });
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
        let known = [GroupKey::Pid, GroupKey::Tid, GroupKey::Disk, GroupKey::Op];
        assert_eq!(
            GroupKey::parse(&words("disk,op,disk,process,pid"), &known, "x").unwrap(),
            [GroupKey::Disk, GroupKey::Op, GroupKey::Pid]
        );
        assert_eq!(GroupKey::parse(&words("task,thread"), &known, "x").unwrap(), [GroupKey::Tid]);
        let error = |word: &str| GroupKey::parse(&words(word), &known, "'analyze block'").unwrap_err().to_string();
        assert_eq!(error("state"), "--by state: 'analyze block' has pid, tid, disk, op");
        assert_eq!(error("device"), "--by device: did you mean 'disk'? 'analyze block' has pid, tid, disk, op");
        assert!(error("processes").contains("did you mean 'pid'?") && error("dsik").contains("did you mean 'disk'?"));
        assert!(error("pid/op").ends_with("--by pid,op"), "{}", error("pid/op"));
        assert_eq!(GroupKey::parse(&words("pid, op"), &known, "x").unwrap(), [GroupKey::Pid, GroupKey::Op]);
        let mut names: Vec<_> =
            GroupKey::WORDS.iter().flat_map(|(_, name, aliases, _)| aliases.iter().chain([name])).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a word has one meaning");
    }
}
