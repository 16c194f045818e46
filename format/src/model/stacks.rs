//! Stacks of events, and the names behind their frames.
//!
//! A segment's stacks are a tree: a [`Node`] is a [`Frame`] and the node of its caller, so stacks with common callers
//! share nodes. An [`Attached`] joins one event of the segment to its innermost frames. A frame is a place in a
//! [`Mapping`], not a name: names are in [`Symbols`] blocks, which stand anywhere in the tape, and can be looked up
//! later too, by build id and offset.

/// Kind of a [`Mapping`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MappingKind {
    /// No mapping is known; offsets are addresses.
    #[default]
    Unknown = 0,
    /// A file; offsets are file offsets.
    Elf = 1,
    /// The kernel; offsets count from its symbol `_text`, or are 0 when that address is not known.
    Kernel = 2,
    /// A kernel module; offsets count from its load address.
    Module = 3,
    /// The vDSO; offsets count from its first byte.
    Vdso = 4,
    /// Executable memory without a file: code made at run time; offsets are addresses.
    Jit = 5,
    /// A BPF program in the kernel; offsets count from its first byte.
    Bpf = 6,
}

impl MappingKind {
    /// The kind with a tape's number; None for one unknown to this version.
    pub(crate) fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Unknown,
            1 => Self::Elf,
            2 => Self::Kernel,
            3 => Self::Module,
            4 => Self::Vdso,
            5 => Self::Jit,
            6 => Self::Bpf,
            _ => return None,
        })
    }
}

/// A file or other source of code. Two mappings are equal when all fields are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mapping {
    /// Kind of the mapping.
    pub kind: MappingKind,
    /// The build id of the file, kernel or module; empty = none, or not known.
    pub build_id: Vec<u8>,
    /// Path of a file as the process saw it, name of a module or BPF program, `[vdso]`, `[kernel]`; empty = none.
    pub path: Vec<u8>,
    /// Jit and unknown: the process of the address space; else 0.
    pub upid: u32,
}

/// [`Frame::flags`]: the offset is that of the running instruction. Without it, it is a return address: the call lies
/// before it.
pub const FRAME_EXACT: u8 = 1;
/// [`Frame::flags`]: the trampoline that the kernel returns through from a signal handler.
pub const FRAME_SIGNAL: u8 = 2;
/// [`Frame::flags`]: guessed from frame pointers or from instructions of code made at run time, without unwind
/// information.
pub const FRAME_GUESSED: u8 = 4;

/// A place in code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Index into the mappings beside it.
    pub mapping: u32,
    /// Offset, whose origin depends on the [`MappingKind`].
    pub offset: u64,
    /// FRAME_ bits.
    pub flags: u8,
}

impl Frame {
    /// The offset to look up; for a return address it lies inside the call.
    pub fn lookup(&self) -> u64 {
        if self.flags & FRAME_EXACT != 0 { self.offset } else { self.offset.saturating_sub(1) }
    }
}

/// A frame of a stack and its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Index of the caller's node, less than this one's; None = the outermost frame known.
    pub parent: Option<u32>,
    /// Index into the frames.
    pub frame: u32,
}

/// Kind of event of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum StackOf {
    /// A syscall: its caller.
    Syscall = 1,
    /// A switch: of the task that left the CPU.
    Switch = 2,
    /// A wake-up: of the waker.
    Wakeup = 3,
    /// A block I/O: of the task that queued it.
    Block = 4,
    /// A signal: of the sender.
    Signal = 5,
    /// A CPU sample.
    Sample = 6,
    /// A thread that slept when the recording began: a [`Sleeper`].
    Asleep = 7,
    /// A row of a table. Its stack is one of its columns, so no [`Attached`] of a tape has this kind.
    Row = 8,
}

impl StackOf {
    /// All kinds of event with an [`Attached`] in a tape.
    pub const ALL: [Self; 7] =
        [Self::Syscall, Self::Switch, Self::Wakeup, Self::Block, Self::Signal, Self::Sample, Self::Asleep];

    /// The kind with a tape's number; None for one unknown to this version.
    pub fn from_raw(raw: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|of| *of as u8 == raw)
    }
}

/// How far the user part of a stack reaches, and why it ends there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum StackStatus {
    /// No user part: a kernel thread, an interrupt, or only the kernel's part was asked for.
    #[default]
    Absent = 0,
    /// A stack to the outermost frame.
    Complete = 1,
    /// A stack by frame pointers: callers compiled without them may be missing.
    FramePointers = 2,
    /// More frames than are kept.
    TooDeep = 3,
    /// The stack is larger than its copy.
    Cut = 4,
    /// A page of the stack was not resident.
    NotResident = 5,
    /// The file has no unwind information for that place.
    NoUnwindInfo = 6,
    /// The unwind information or the stack makes no sense there.
    BadMemory = 7,
    /// The mapping's file could not be opened, or is no file.
    NoFile = 8,
    /// No mapping is known for the address.
    NoMapping = 9,
    /// Code made at run time.
    Jit = 10,
    /// The rest is on another stack (a signal handler's).
    OtherStack = 11,
    /// The recorder was too slow to unwind it.
    Late = 12,
    /// No buffer, or the stack ring was full.
    Lost = 13,
    /// The kernel could not read it.
    Failed = 14,
    /// No stack of a sleeper: the recorder's kernel cannot copy another task's stack (before 5.18).
    Unavailable = 15,
    /// No stack of a sleeper: its address space was locked, and a read might never have returned.
    Locked = 16,
}

impl StackStatus {
    /// All statuses.
    pub(crate) const ALL: [Self; 17] = [
        Self::Absent,
        Self::Complete,
        Self::FramePointers,
        Self::TooDeep,
        Self::Cut,
        Self::NotResident,
        Self::NoUnwindInfo,
        Self::BadMemory,
        Self::NoFile,
        Self::NoMapping,
        Self::Jit,
        Self::OtherStack,
        Self::Late,
        Self::Lost,
        Self::Failed,
        Self::Unavailable,
        Self::Locked,
    ];

    /// The status with a tape's number; None for one unknown to this version.
    pub fn from_raw(raw: u8) -> Option<Self> {
        Self::ALL.get(usize::from(raw)).copied()
    }

    /// Whether it is unknown to a reader of 1.4.
    pub(crate) fn is_new(self) -> bool {
        self as u8 >= Self::Unavailable as u8
    }

    /// Whether the whole stack was recorded.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Absent | Self::Complete)
    }
}

/// The stack of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Kind of event.
    pub of: StackOf,
    /// When pushed: the event's insertion id. When read: its position among the segment's events of that kind, as the reader gives them.
    pub row: u32,
    /// Node of the innermost user frame; None = none.
    pub user: Option<u32>,
    /// Node of the innermost kernel frame; None = none, or not asked for.
    pub kernel: Option<u32>,
    /// How far the user part reaches.
    pub status: StackStatus,
}

/// A stack of any kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// User part, as [`Attached::user`] has it.
    pub user: Option<u32>,
    /// Kernel part, as [`Attached::kernel`] has it.
    pub kernel: Option<u32>,
    /// Status, as [`Attached::status`] has it.
    pub status: StackStatus,
}

impl From<&Attached> for Ends {
    fn from(a: &Attached) -> Self {
        Self { user: a.user, kernel: a.kernel, status: a.status }
    }
}

/// The stacks of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Where code came from.
    pub mappings: Vec<Mapping>,
    /// Distinct places.
    pub frames: Vec<Frame>,
    /// The tree. Callers of a user node are user nodes, those of a kernel node kernel nodes.
    pub nodes: Vec<Node>,
    /// Sorted by (of, row), at most one for each.
    pub attached: Vec<Attached>,
    /// The distinct stacks: those of `attached` in order of first use, then those that only rows of tables have.
    pub distinct: Vec<Ends>,
}

impl Stacks {
    /// The stack of an event; None = none was stored.
    pub fn of(&self, of: StackOf, row: u32) -> Option<&Attached> {
        let at = self.attached.binary_search_by_key(&(of, row), |a| (a.of, a.row)).ok()?;
        self.attached.get(at)
    }

    /// The stack for `code`, a value of a table's stack column; None = none was stored.
    pub fn of_code(&self, code: u64) -> Option<&Ends> {
        self.distinct.get(usize::try_from(code).ok()?.checked_sub(1)?)
    }

    /// The frames from `leaf` outwards.
    pub fn frames_from(&self, leaf: Option<u32>) -> impl Iterator<Item = &Frame> {
        let mut next = leaf;
        std::iter::from_fn(move || {
            let node = self.nodes.get(next? as usize)?;
            next = node.parent;
            self.frames.get(node.frame as usize)
        })
    }
}

/// A CPU sample: the task on a CPU at a timer's tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time of the tick.
    pub ts: u64,
    /// The CPU.
    pub cpu: u32,
    /// Index into the segment's tasks.
    pub task: u32,
    /// Whether it ran in the kernel.
    pub kernel: bool,
}

/// A thread that was asleep when the recorder read its state, right after the recording began. Its stack is that of its
/// row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sleeper {
    /// Time of the reading.
    pub ts: u64,
    /// Index into the segment's tasks.
    pub task: u32,
    /// Letter of ps(1): S D T t I P; F frozen; 0 = not known.
    pub state: u8,
}

/// A function at a place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name of the function, demangled.
    pub name: Vec<u8>,
    /// Source file; empty = not known.
    pub file: Vec<u8>,
    /// Line in it; 0 = not known.
    pub line: u32,
}

/// The functions at one offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Index into the mappings beside it.
    pub mapping: u32,
    /// Offset as returned by [`Frame::lookup`].
    pub offset: u64,
    /// The innermost inlined function first, the function it was inlined into last. Empty: looked up, without a name.
    pub functions: Vec<Function>,
}

/// A block of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// The mappings of the symbols.
    pub mappings: Vec<Mapping>,
    /// Sorted by (mapping, offset).
    pub symbols: Vec<Symbol>,
    /// Mappings without names: index, and the reason in words.
    pub failures: Vec<(u32, String)>,
}

/// Method of unwinding user stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum StackMode {
    /// Not at all.
    #[default]
    None = 0,
    /// Stacks by frame pointers.
    FramePointers = 1,
    /// Stacks by unwind information, from a copy of the stack.
    Dwarf = 2,
}

/// The stacks that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSettings {
    /// Method of unwinding user stacks.
    pub mode: StackMode,
    /// Most bytes copied of a stack; 0 unless `mode` is Dwarf.
    pub copy_limit: u32,
    /// Kinds of events with stacks; empty = none, or recorded by a version without stacks.
    pub on: Vec<StackOf>,
    /// Events whose kernel part is recorded too.
    pub kernel: Vec<StackOf>,
    /// CPU samples a second on each CPU; 0 = none.
    pub frequency: u32,
    /// Only of calls at least this long, ns; 0 = all.
    pub min_dur: u64,
}
