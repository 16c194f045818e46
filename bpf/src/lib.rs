//! systape's BPF programs, compiled to a skeleton, and the wire records they send.
//!
//! The only crate that needs clang. C sources are in `src/c`, one file per family of events; [`wire`] checks and copies
//! the records that come out of rings and iterators. Which programs to load, for whom, and what becomes of the records
//! is the recorder's business.

mod skeleton {
    #![allow(clippy::all, missing_docs, unused_qualifications, dead_code, non_camel_case_types, non_snake_case)]
    #![allow(
        clippy::undocumented_unsafe_blocks,
        clippy::use_self,
        clippy::wildcard_imports,
        clippy::uninlined_format_args
    )]
    include!(concat!(env!("OUT_DIR"), "/systape.skel.rs"));
}

pub mod wire;

/// Types of the C side as the skeleton gives them.
pub use skeleton::types;
pub use skeleton::{OpenSystapeSkel, SystapeSkel, SystapeSkelBuilder};

/// Slots of the per-ABI tables of calls; numbers from here on share the last one.
pub const SC_MAX: u32 = 512;
/// Most bulk rings the programs can address; a power of two.
pub const MAX_RINGS: u32 = 64;
/// Scratch slots for long strings.
pub const SLOTS: u32 = 256;
/// Longest string the programs can keep.
pub const STRING_MAX: u32 = 4096;
/// Buckets of a ledger entry's sizes.
pub const LEDGER_SIZES: usize = 64;
/// `CallDesc::min_dur` of a call that is counted and never stored.
pub const LEDGER_ONLY: u64 = u64::MAX;
/// Outcomes a coarse sum tells apart: ok, error, incomplete, and one that does not occur.
pub const COARSE_OUTCOMES: u32 = 4;
/// Coarse sums of a lane.
pub const COARSE_PER_LANE: u32 = 2 * 2 * COARSE_OUTCOMES * SC_MAX;

/// Entries of an epoch and a CPU in ledger_busy (maps.bpf.h).
pub const BUSY_SUMS: u32 = 32;

/// Buffers that each CPU has (maps.bpf.h): one of calls, and one each of switches and wake-ups, which one map holds the records of.
pub const BUFFER_KINDS: u32 = 3;
/// Of these, how many are of the scheduler's events.
pub const SCHED_BUFFERS: u32 = 2;

/// Indices into ledger_words (maps.bpf.h); those of table 1 follow those of table 0.
pub mod ledger_word {
    /// Which table is written.
    pub const EPOCH: u32 = 0;
    /// Entries in use.
    pub const USED: u32 = 1;
    /// Calls in the coarse sums.
    pub const COARSE: u32 = 3;
    /// Keys in the entries of CPUs.
    pub const BUSY: u32 = 5;
}

/// Highest CPU number of `-C`.
pub const MAX_CPUS: u32 = 4096;

/// What the programs do with a call: bits of `sc_desc.flags` (wire.h).
pub mod call_flags {
    /// The user asked for it.
    pub const SELECTED: u8 = 1;
    /// It changes fds, cwd or identity: kept whatever was selected.
    pub const STATE: u8 = 2;
    /// It closes fds: a record at enter as well.
    pub const CLOSING: u8 = 4;
    /// It returns a new fd.
    pub const NEW_FD: u8 = 8;
    /// It fills an int[2] with new fds.
    pub const FD_PAIR: u8 = 16;
    /// It changes the working directory.
    pub const CWD: u8 = 32;
    /// It changes the task's uid.
    pub const CRED: u8 = 64;
    /// It becomes another program.
    pub const EXEC: u8 = 128;
}

/// What to copy for an argument: `sc_desc.cap_kind` (wire.h).
pub mod capture_kind {
    /// A NUL-terminated string.
    pub const STRING: u8 = 1;
    /// A socket address, its length in another argument.
    pub const SOCKADDR_IN: u8 = 2;
    /// A socket address filled at exit, its length behind another argument.
    pub const SOCKADDR_OUT: u8 = 3;
    /// int[2], filled at exit.
    pub const PAIR: u8 = 4;
    /// Pointers to strings.
    pub const ARGV: u8 = 5;
}

/// When the fd flags of a call hold: `sc_desc.only_if` (wire.h).
pub mod condition {
    /// ioctl: FIOCLEX and FIONCLEX.
    pub const CLOEXEC_IOCTL: u8 = 1;
    /// fcntl: F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD.
    pub const DUP_FCNTL: u8 = 2;
    /// i386 socketcall: the calls that return a socket.
    pub const SOCKET_CALL: u8 = 3;
}

/// Bits of an entry of the targets map (wire.h).
pub mod target_bits {
    /// Every thread of this process.
    pub const PID: u32 = 1;
    /// This thread.
    pub const TID: u32 = 2;
    /// Recorded from its next execve on.
    pub const ARMED: u32 = 4;
    /// A process with recorded threads: what the others do to its fds.
    pub const STATE: u32 = 8;
}

/// How user stacks are taken: `stacks_user` (wire.h, enum stack_user).
pub mod stack_user {
    /// Not at all.
    pub const NONE: u8 = 0;
    /// Addresses by frame pointers.
    pub const ADDRESSES: u8 = 1;
    /// A copy of the stack.
    pub const COPY: u8 = 2;
}

/// Most bytes of a stack that can be copied: as many pages as a mask of 64 bits has room for, less the one that is begun in its middle.
pub const STACK_COPY_MAX: u32 = 63 * 4096;

/// Index into the drops map (wire.h, enum drop_cause).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Drop {
    /// Bulk ring full.
    Bulk = 0,
    /// State ring full.
    State = 1,
    /// Process ring and bulk ring full.
    Process = 2,
    /// Per-task state could not be made.
    NoTask = 3,
    /// Scratch pool empty.
    NoScratch = 4,
    /// User memory absent at enter and exit.
    StringFault = 5,
    /// Calls of the recorder itself.
    Own = 6,
    /// Bulk ring full: scheduler events.
    Sched = 7,
    /// Bulk ring full: block I/Os.
    Block = 8,
    /// Table of I/Os in progress full.
    BlockState = 9,
    /// Ring full, or no buffer: signals.
    Signal = 10,
    /// Bulk ring full: signals that come by the thousand and end nobody.
    Everyday = 11,
    /// Bulk ring full: states of sockets.
    Net = 12,
    /// Bulk ring full: io_uring operations.
    Uring = 13,
    /// Ring of stacks full, or no buffer for one.
    Stack = 14,
    /// The same, of a CPU sample.
    Sample = 15,
    /// Bulk ring: the process had filled its share. Counted in the ledger.
    Share = 16,
    /// A call that is not in the ledger either.
    Uncounted = 17,
    /// An I/O ended, and no program was run.
    BlockUnseen = 18,
    /// Table of the targets' sockets full.
    NetState = 19,
}

impl Drop {
    /// All causes, in map order.
    pub const ALL: [Self; 20] = [
        Self::Bulk,
        Self::State,
        Self::Process,
        Self::NoTask,
        Self::NoScratch,
        Self::StringFault,
        Self::Own,
        Self::Sched,
        Self::Block,
        Self::BlockState,
        Self::Signal,
        Self::Everyday,
        Self::Net,
        Self::Uring,
        Self::Stack,
        Self::Sample,
        Self::Share,
        Self::Uncounted,
        Self::BlockUnseen,
        Self::NetState,
    ];
}
