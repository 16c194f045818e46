//! The events whose stacks a call graph can be of.

use clap::ValueEnum;
use systape_format::model::StackOf;

use super::weight::Metric;

/// What a call graph is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Of {
    /// CPU samples.
    Cpu,
    /// Syscalls, by their caller.
    Syscall,
    /// Time off the CPU, by where the thread left it.
    #[value(name = "offcpu")]
    OffCpu,
    /// Block I/Os, by who queued them.
    Block,
    /// Signals, by their sender.
    Signal,
    /// Wake-ups, by the waker.
    Wakeup,
}

impl Of {
    /// All, the one that is taken if nothing is said first.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Syscall, Self::OffCpu, Self::Block, Self::Signal, Self::Wakeup];

    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Syscall => "syscall",
            Self::OffCpu => "offcpu",
            Self::Block => "block",
            Self::Signal => "signal",
            Self::Wakeup => "wakeup",
        }
    }

    /// Its events, in the plural.
    pub fn words(self) -> &'static str {
        match self {
            Self::Cpu => "CPU samples",
            Self::Syscall => "syscalls",
            Self::OffCpu => "switches off the CPU",
            Self::Block => "block I/Os",
            Self::Signal => "signals",
            Self::Wakeup => "wake-ups",
        }
    }

    /// The events that hold its stacks.
    pub fn events(self) -> StackOf {
        match self {
            Self::Cpu => StackOf::Sample,
            Self::Syscall => StackOf::Syscall,
            Self::OffCpu => StackOf::Switch,
            Self::Block => StackOf::Block,
            Self::Signal => StackOf::Signal,
            Self::Wakeup => StackOf::Wakeup,
        }
    }

    /// What percentages are of if nothing is said.
    pub fn metric(self) -> Metric {
        match self {
            Self::Cpu | Self::OffCpu => Metric::Time,
            Self::Syscall | Self::Block | Self::Signal | Self::Wakeup => Metric::Count,
        }
    }

    /// Whether its events have that.
    pub fn has(self, metric: Metric) -> bool {
        match metric {
            Metric::Count => true,
            Metric::Time => !matches!(self, Self::Signal | Self::Wakeup),
            Metric::Bytes => matches!(self, Self::Syscall | Self::Block),
        }
    }
}
