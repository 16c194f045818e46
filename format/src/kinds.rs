//! The only list of kinds of block: name, family of the events, meaning of the times, and whether fields have a class.

use crate::model::Family;

/// Meaning of a block's rows; its times follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// A block of no segment.
    Tape,
    /// Tables for the segment's other blocks, without times of their own.
    Names,
    /// Rows of calls; those that began before the window come first.
    Calls,
    /// Events, or values of calls.
    Events,
    /// Events of tables, unknown to older versions, so their times are kept apart from the others'.
    Tables,
    /// Losses, or calls counted instead of stored: they must not hold back a listing by start.
    Losses,
}

/// Facts about a kind.
#[derive(Debug)]
struct Known {
    kind: BlockKind,
    raw: u16,
    name: &'static str,
    rows: Rows,
    /// Some of its fields have a class (schemas/trace.capnp).
    classes: bool,
    family: Option<Family>,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $raw:literal, $name:literal, $rows:ident, $class:ident $(, $family:ident)?;)*) => {
        /// Contents of a block.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum BlockKind {
            $($(#[doc = $doc])+ $kind,)*
            /// A kind unknown to this version; skipped.
            Other(u16),
        }

        impl BlockKind {
            /// Every kind this version knows.
            pub const ALL: &[Self] = &[$(Self::$kind),*];
        }

        const KNOWN: &[Known] = &[$(Known {
            kind: BlockKind::$kind,
            raw: $raw,
            name: $name,
            rows: Rows::$rows,
            classes: kinds!(@ $class),
            family: kinds!(@ $($family)?),
        }),*];
    };
    (@) => { None };
    (@ numbers) => { false };
    (@ classes) => { true };
    (@ $family:ident) => { Some(Family::$family) };
}

// In the order in which a segment has them.
kinds! {
    /// Facts about machine and recording; the first block.
    Session = 1, "session", Tape, classes;
    /// Task and call tables; the first block of a segment.
    Dict = 2, "dict", Names, classes;
    /// Syscalls: call, task, dur, errno, state.
    SyscallsCore = 3, "syscalls.core", Calls, numbers, Syscall;
    /// Syscalls: ends and CPUs.
    SyscallsTime = 4, "syscalls.time", Calls, numbers;
    /// Syscalls: arguments and return values.
    SyscallsArgs = 5, "syscalls.args", Calls, numbers;
    /// Syscalls: captured user memory.
    SyscallsBytes = 6, "syscalls.bytes", Events, classes;
    /// Syscalls: paths behind fd arguments.
    SyscallsFds = 7, "syscalls.fds", Calls, classes;
    /// Process life.
    Processes = 8, "processes", Events, classes, Process;
    /// Losses, with their causes.
    Gaps = 10, "gaps", Losses, numbers;
    /// Switches of the scheduler.
    Sched = 13, "sched", Events, numbers, Sched;
    /// Wake-ups.
    Wakeups = 14, "wakeups", Events, numbers, Sched;
    /// I/O of block devices.
    Blocks = 15, "blocks", Events, numbers, Block;
    /// Signals.
    Signals = 16, "signals", Events, classes, Signal;
    /// Changes of sockets' states.
    Net = 17, "net", Events, classes, Net;
    /// io_uring operations.
    Uring = 22, "uring", Events, numbers, IoUring;
    /// CPU samples.
    Samples = 18, "samples", Events, numbers, Sample;
    /// Stacks of the segment's events.
    Stacks = 19, "stacks", Names, classes, Stack;
    /// Calls that were counted instead of stored.
    Ledger = 20, "ledger", Losses, numbers;
    /// Threads asleep since before the recording.
    Sleepers = 23, "sleepers", Events, numbers, Stack;
    /// Rows of tables that the tape itself defines.
    Tables = 25, "tables", Tables, classes;
    /// Definitions of these tables, and cgroups that appeared; of no segment.
    TableDefs = 24, "tabledefs", Tape, classes;
    /// The full state at one instant; head of a chunk.
    Checkpoint = 9, "checkpoint", Tape, classes;
    /// Names of places in code; of no segment.
    Symbols = 21, "symbols", Tape, classes;
    /// Places of everything.
    Index = 11, "index", Tape, numbers;
    /// Clean end.
    End = 12, "end", Tape, numbers;
}

impl BlockKind {
    fn known(self) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.kind == self)
    }

    /// The kind with that number in headers.
    pub(crate) fn from_raw(raw: u16) -> Self {
        KNOWN.iter().find(|known| known.raw == raw).map_or(Self::Other(raw), |known| known.kind)
    }

    /// Number of the kind in headers.
    pub fn raw(self) -> u16 {
        match self {
            Self::Other(raw) => raw,
            _ => self.known().map_or(0, |known| known.raw),
        }
    }

    /// Name of the kind in messages and docs.
    pub fn name(self) -> &'static str {
        self.known().map_or("unknown kind", |known| known.name)
    }

    /// The family of its rows; None = they are no events, or details of events that are counted without them.
    pub fn family(self) -> Option<Family> {
        self.known()?.family
    }

    /// Meaning of its rows; None = unknown to this version.
    pub(crate) fn rows(self) -> Option<Rows> {
        Some(self.known()?.rows)
    }

    /// Whether a redaction has nothing to take out of it.
    pub fn is_numbers(self) -> bool {
        self.known().is_some_and(|known| !known.classes)
    }

    /// Kinds of column groups and events a segment can have.
    pub fn of_segment() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.rows() != Some(Rows::Tape))
    }

    /// Whether its message has columns, in encodings that grow with the format.
    pub fn has_columns(self) -> bool {
        let lists = matches!(self, Self::Processes | Self::Signals | Self::Net | Self::Gaps | Self::Dict);
        self == Self::Symbols || (!lists && !matches!(self.rows(), None | Some(Rows::Tape)))
    }

    /// Bit of the kind in a header's `groups`; 0 for kinds from 64 on.
    pub(crate) fn group_bit(self) -> u64 {
        1u64.checked_shl(u32::from(self.raw())).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_given_once() {
        let numbers: std::collections::BTreeSet<u16> = BlockKind::ALL.iter().map(|kind| kind.raw()).collect();
        let names: std::collections::BTreeSet<&str> = BlockKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!((numbers.len(), names.len()), (BlockKind::ALL.len(), BlockKind::ALL.len()));
        assert!(BlockKind::ALL.iter().all(|kind| BlockKind::from_raw(kind.raw()) == *kind));
        assert_eq!(BlockKind::from_raw(999), BlockKind::Other(999));
    }
}
