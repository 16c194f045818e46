//! The reports.

/// What is asked of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Calls, one a line, a summary, or both.
    Calls,
    /// What the tape holds and lacks.
    Info,
    /// Whether every byte of it is sound.
    Check,
    /// A clean copy of what is whole of it.
    Repair,
    /// The same, without what tells of people and machines.
    Redact,
    /// Block I/Os: one a line, histograms, or sums by who caused them.
    Block,
    /// Programs that were started, with arguments, failures and ends; or the tree of processes.
    Exec,
    /// Who sent which signal to whom, how, and what came of it.
    Kills,
    /// Connections: both ends, who, how long.
    Net,
    /// Time off CPU by task, state, call and file; who woke whom.
    Offcpu,
    /// How long runnable tasks waited for a CPU.
    Runqlat,
    /// The scheduler as perf sched shows it: timehist and latency.
    Sched,
    /// What every thread was doing: time by state, call and file; or the picture of one instant.
    States,
    /// Stacks added up: who called what, by count, time or bytes.
    Callgraph,
    /// Two summaries side by side.
    Diff,
}

impl Report {
    /// Whether it writes a tape, the second file.
    pub fn makes_a_copy(self) -> bool {
        matches!(self, Self::Repair | Self::Redact)
    }
}
