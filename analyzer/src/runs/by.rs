//! What the scheduler reports can add up by.

/// One thing to add up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Name of the thread.
    Comm,
    /// The thread.
    Task,
    /// Its process.
    Process,
    /// What it is in.
    State,
    /// The call it is in.
    Syscall,
    /// What that call is on.
    File,
    /// Its cgroup.
    Cgroup,
    /// Its user.
    User,
    /// The CPU.
    Cpu,
}

impl By {
    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Task => "task",
            Self::Process => "process",
            Self::State => "state",
            Self::Syscall => "syscall",
            Self::File => "file",
            Self::Cgroup => "cgroup",
            Self::User => "user",
            Self::Cpu => "cpu",
        }
    }

    /// Another word for it.
    pub fn alias(self) -> Option<&'static str> {
        match self {
            Self::Task => Some("tid"),
            Self::Process => Some("pid"),
            Self::User => Some("uid"),
            _ => None,
        }
    }
}
