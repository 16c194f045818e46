//! The plain values of a tape: [`crate::writer`] takes them and [`crate::reader`] returns them.
//!
//! Nothing here knows about blocks, columns or Cap'n Proto. Times are nanoseconds of the recorded machine's
//! CLOCK_MONOTONIC unless a field says otherwise; kernel values (numbers of calls, errnos, flags) are raw integers.

use std::collections::HashMap;

mod bloom;
mod cut;
mod events;
mod ledger;
mod stacks;

pub use crate::class::Class;
pub use crate::families::Family;
pub use cut::{MAX_PATH, MAX_VALUE};
pub use events::*;
pub use ledger::*;
pub use stacks::*;

pub(crate) use bloom::{pid_bloom, pid_in_bloom};
pub(crate) use cut::cut_mapping;

/// `uid` of a task whose user is not known.
pub const UID_UNKNOWN: u32 = u32::MAX;
/// `Gap::cpu` of a gap that is not tied to one CPU.
pub const CPU_NONE: u32 = u32::MAX;
/// Errno values from here to [`RESTART_LAST`] are restarts: the kernel repeats or interrupts the call, invisibly to the
/// caller.
pub(crate) const RESTART_FIRST: u16 = 512;
/// Last of the values that begin with [`RESTART_FIRST`].
pub(crate) const RESTART_LAST: u16 = 516;

/// Whether an errno is an error: not 0 and not a restart. 515 lies among the restarts and is ENOIOCTLCMD.
pub(crate) fn is_failure(errno: u16) -> bool {
    errno != 0 && (!(RESTART_FIRST..=RESTART_LAST).contains(&errno) || errno == 515)
}

/// Three clocks read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSample {
    /// CLOCK_MONOTONIC, ns.
    pub monotonic: u64,
    /// CLOCK_BOOTTIME, ns.
    pub boottime: u64,
    /// CLOCK_REALTIME, ns since 1970.
    pub realtime: u64,
    /// ns between the first and the last read: the sample's uncertainty.
    pub width: u64,
}

/// Facts about machine and recording: the first block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Clocks at the start.
    pub clock: ClockSample,
    /// Id of the boot, from /proc/sys/kernel/random/boot_id.
    pub boot_id: String,
    /// Host name; bytes as the kernel has them.
    pub hostname: Vec<u8>,
    /// xxh3 of /etc/machine-id; 0 when not known.
    pub machine_id_hash: u64,
    /// Offset of local time from UTC at the start.
    pub utc_offset_seconds: i32,
    /// uname -r.
    pub kernel_release: String,
    /// uname -v.
    pub kernel_version: String,
    /// uname -m.
    pub machine: String,
    /// Possible CPUs.
    pub cpus: u32,
    /// Bytes in a page.
    pub page_size: u32,
    /// Version of `record`.
    pub tool_version: String,
    /// `record`'s own command line.
    pub arguments: Vec<Vec<u8>>,
    /// The target in words.
    pub target: String,
    /// The `-e` expressions; empty = everything.
    pub selection: Vec<Vec<u8>>,
    /// Bytes kept of a path or string.
    pub string_limit: u32,
    /// Start of the recording: `ts_ns` in reports counts from here.
    pub window_open: u64,
    /// Names of calls and arguments from the recording kernel; empty when it had none.
    pub syscalls: Vec<SyscallFormat>,
    /// uid → name.
    pub users: Vec<(u32, Vec<u8>)>,
    /// (major, minor, name).
    pub devices: Vec<(u32, u32, Vec<u8>)>,
    /// Layers of the block devices.
    pub device_links: Vec<DeviceLink>,
    /// cgroup v2 id → path.
    pub cgroups: Vec<(u64, Vec<u8>)>,
    /// What is known of containers that cgroups are named after.
    pub containers: Vec<Container>,
    /// Memory of all rings together.
    pub ring_bytes: u64,
    /// What this recording could not do, and why.
    pub notes: Vec<Vec<u8>>,
    /// Recorded families; empty = an older tape (syscalls and process life).
    pub families: Vec<Family>,
    /// Stacks that were asked for.
    pub stacks: StackSettings,
    /// Options that stored some calls and counted the rest in the ledger, e.g. `--duration 10ms`.
    pub call_filters: Vec<Vec<u8>>,
    /// Classes that were taken out, ascending; empty = none.
    pub redacted: Vec<Class>,
    /// Only events on these CPUs were recorded; empty = all CPUs.
    pub cpu_list: Vec<u32>,
    /// The recorder's own threads are recorded like others, all but their calls.
    pub with_self: bool,
    /// Calls say what they needed ([`NEEDS`]), if families sched and block are recorded; false = they do not.
    pub needs: bool,
    /// Which tasks' events are recorded.
    pub extent: Extent,
    /// Tracing programs may be preempted on that kernel, so it skips some runs (gap cause [`GapCause::Skipped`]); false
    /// = no, or not known.
    pub preemptible: bool,
    /// Families that were asked for and could not be recorded; none of them is among [`Session::families`].
    pub left_out: Vec<LeftOut>,
    /// The registers with which tasks entered the kernel could not be read. So a missing call means nothing for a task
    /// without an earlier event or for the sender of a signal, and there are no user stacks.
    pub registers_unknown: bool,
    /// Labels of the tape, `KEY=VALUE` each.
    pub labels: Vec<Vec<u8>>,
    /// Names of the environment variables that were kept, see [`Task::env`].
    pub env_keys: Vec<Vec<u8>>,
    /// What the recorder kept in memory until the tape was begun; None = it was written from the start.
    pub kept: Option<Kept>,
    /// A tape cut out of a longer one: the time that reports are about. Rows outside are there for what they tell of
    /// it: states, names, ends. None = no cut.
    pub cut: Option<Window>,
    /// The cut has the events of some tasks: those with [`Task::recorded`]. Rows of others are there for what they tell of
    /// these.
    pub cut_tasks: bool,
    /// Id that is the same in all tapes of one recording, 16 bytes; empty = the tape's id.
    pub recording: Vec<u8>,
    /// Name of the program that wrote the text from which the tape was made, e.g. `strace`; empty = it was recorded.
    pub imported: String,
}

/// How much of the past a recorder kept in memory, from which a tape was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The time asked for, ns; 0 = only the size bounds it, or nothing was to be kept.
    pub last: u64,
    /// The size asked for, bytes.
    pub ring_bytes: u64,
    /// The size, not the time, decided how much there was.
    pub full: bool,
    /// When the recorder itself began.
    pub recording_open: u64,
}

/// A stretch of time, CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First moment of the window.
    pub from: u64,
    /// End of the window, which is not in it; never 0. u64::MAX = the end of the recording, with its last event.
    pub to: u64,
}

impl Window {
    /// Whether `ts` is in it.
    pub fn has(&self, ts: u64) -> bool {
        ts >= self.from && ts < self.to
    }
}

/// What the files of a container runtime say of a container; empty = they do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// Id of the container, as in the paths of cgroups: 64 hexadecimal digits.
    pub id: Vec<u8>,
    /// Name of the container.
    pub name: Vec<u8>,
    /// Image of the container.
    pub image: Vec<u8>,
    /// Name of its pod (Kubernetes).
    pub pod: Vec<u8>,
    /// Namespace of its pod.
    pub namespace: Vec<u8>,
}

/// What appeared since the recording began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appeared {
    /// Cgroups: id, path.
    pub cgroups: Vec<(u64, Vec<u8>)>,
    /// Containers that appeared.
    pub containers: Vec<Container>,
}

impl Appeared {
    /// Whether nothing did.
    pub fn is_empty(&self) -> bool {
        self.cgroups.is_empty() && self.containers.is_empty()
    }
}

impl Session {
    /// The path of cgroup `id`; None when the tape does not have it.
    pub fn cgroup_path(&self, id: u64) -> Option<&[u8]> {
        if id == 0 {
            return None;
        }
        self.cgroups.iter().find(|(known, _)| *known == id).map(|(_, path)| path.as_slice())
    }
}

/// A family that was asked for and could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The family.
    pub family: Family,
    /// The BPF program that the kernel refused; empty = another obstacle.
    pub program: String,
    /// The kernel's message, or the obstacle; may be empty.
    pub reason: String,
}

impl LeftOut {
    /// The reason in words.
    pub fn why(&self) -> String {
        match (self.program.is_empty(), self.reason.is_empty()) {
            (true, _) => self.reason.clone(),
            (false, true) => format!("the kernel refused the program {}", self.program),
            (false, false) => format!("the kernel refused the program {}: {}", self.program, self.reason),
        }
    }
}

/// Which tasks' events a tape has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Not known: in tapes before 1.5 only the words of [`Session::target`] say it.
    #[default]
    NotSaid,
    /// All tasks except the idle tasks and, without [`Session::with_self`], the recorder's.
    Everyone,
    /// Tasks with [`Task::recorded`].
    Some,
}

/// Name and arguments of one syscall as the recording kernel's tracefs gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyscallFormat {
    /// ABI, see systape-abi (1 = x86_64).
    pub abi: u8,
    /// Number of the call.
    pub nr: u32,
    /// Name, e.g. `openat`.
    pub name: String,
    /// Argument names, e.g. `dfd`.
    pub arg_names: Vec<String>,
    /// C types, e.g. `const char *`.
    pub arg_types: Vec<String>,
}

/// A thread in the task table of a segment or checkpoint. One thread has several entries, with the same `utid`, when
/// its comm, exe, uid, cgroup or environment changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Thread id (kernel pid).
    pub tid: u32,
    /// Process id (kernel tgid).
    pub pid: u32,
    /// Thread's start; 0 = not known.
    pub start_ns: u64,
    /// Process's start; 0 = not known.
    pub leader_start_ns: u64,
    /// Name of the thread, up to 15 bytes.
    pub comm: Vec<u8>,
    /// Path of the executable; empty = not known.
    pub exe: Vec<u8>,
    /// Real uid; [`UID_UNKNOWN`] = not known.
    pub uid: u32,
    /// cgroup v2 id; 0 = not known.
    pub cgroup_id: u64,
    /// Thread, unique in the tape, from 1.
    pub utid: u32,
    /// Process, unique in the tape, from 1.
    pub upid: u32,
    /// tid in the task's own pid namespace; 0 = not known.
    pub ns_tid: u32,
    /// pid in the task's own pid namespace; 0 = not known.
    pub ns_pid: u32,
    /// Parent process; 0 = none or not known.
    pub ppid: u32,
    /// The families recorded of it, from the event with this entry on.
    pub recorded: RecordedFamilies,
    /// Which of [`Session::env_keys`] its program was started with: `KEY=VALUE`, a lone `KEY` for an unknown one, each
    /// with a NUL behind it. One NUL: none was set. Empty: not known, or not asked for.
    pub env: Vec<u8>,
}

/// The families of which every event that happens to a task is recorded. A task outside the target has none, even if
/// recorded events mention it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordedFamilies(u32);

impl RecordedFamilies {
    /// Not known (tapes before 1.5).
    pub const NOT_SAID: Self = Self(0);
    /// No family.
    pub const NOTHING: Self = Self(1);

    /// The set of these families.
    pub fn of(families: &[Family]) -> Self {
        Self(families.iter().fold(Self::NOTHING.0, |bits, family| bits | 1 << (*family as u32)))
    }

    /// Whether everything of `family` is recorded; None = not known.
    pub fn has(self, family: Family) -> Option<bool> {
        (self.0 & 1 != 0).then_some(self.0 >> (family as u32) & 1 != 0)
    }

    /// Whether anything is recorded, so whether the task is a target; false if not known.
    pub fn anything(self) -> bool {
        self.0 > Self::NOTHING.0
    }

    /// Bits as stored: bit 0 says that the others are valid, bit n stands for family n.
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// Reads what [`Self::raw`] gave. Families unknown to this version are kept.
    pub fn from_raw(raw: u32) -> Self {
        Self(if raw & 1 == 0 { 0 } else { raw })
    }
}

/// Number of a syscall with the ABI it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// ABI, see systape-abi.
    pub abi: u8,
    /// Number in that ABI.
    pub nr: u32,
}

/// How a call began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CallState {
    /// Entered and returned inside the recording.
    #[default]
    Complete = 1,
    /// Still open when the recording ended: `dur` is a lower bound, no return value.
    InFlight = 2,
    /// The task was killed inside it: no return value.
    Killed = 3,
    /// exit, exit_group, and calls open at the task's exit.
    NoReturn = 4,
    /// Ended in the recording, began before it: `dur` is a lower bound.
    BeganBefore = 5,
    /// The child's return from fork or clone: an exit without an enter.
    CloneChild = 6,
    /// Refused by seccomp or ptrace before it was entered: no duration.
    Denied = 7,
    /// A call whose enter was not recorded: no duration.
    LostEnter = 8,
}

impl CallState {
    /// The state with a tape's number; None for one unknown to this version.
    pub fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Complete,
            2 => Self::InFlight,
            3 => Self::Killed,
            4 => Self::NoReturn,
            5 => Self::BeganBefore,
            6 => Self::CloneChild,
            7 => Self::Denied,
            8 => Self::LostEnter,
            _ => return None,
        })
    }

    /// Whether the call came back with a return value.
    pub fn returned(self) -> bool {
        matches!(self, Self::Complete | Self::BeganBefore | Self::CloneChild | Self::Denied | Self::LostEnter)
    }
}

/// Status of captured bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ByteStatus {
    /// The whole value.
    Whole = 1,
    /// Stored bytes are the head of a longer value.
    Truncated = 2,
    /// The page was absent at enter and at exit.
    NotResident = 3,
    /// The whole value, read at exit.
    Late = 4,
    /// The head of the value, read at exit.
    LateTruncated = 5,
    /// The recorder's scratch pool was exhausted.
    NoBuffer = 6,
    /// Taken out on purpose; the stored bytes are [`PLACEHOLDER`](crate::redact::PLACEHOLDER).
    Redacted = 7,
}

impl ByteStatus {
    /// The status with a tape's number; None for one unknown to this version.
    pub fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Whole,
            2 => Self::Truncated,
            3 => Self::NotResident,
            4 => Self::Late,
            5 => Self::LateTruncated,
            6 => Self::NoBuffer,
            7 => Self::Redacted,
            _ => return None,
        })
    }

    /// Whether the stored bytes are the whole value.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Whole | Self::Late)
    }

    /// Whether there are bytes: of the value, or a word in its place.
    pub fn has_bytes(self) -> bool {
        matches!(self, Self::Whole | Self::Late | Self::Truncated | Self::LateTruncated | Self::Redacted)
    }
}

/// `fd` column value: the call has no fd argument, or a negative one.
pub const FD_NONE: u32 = 0;
/// `fd` column value: the file of the fd is not known.
pub const FD_UNKNOWN: u32 = 1;
/// `fd` column value `i + FD_FIRST` means `fd_names[i]`.
pub const FD_FIRST: u32 = 2;

/// Bit of [`Captured::arg`]: the argument's value after the call, beside the one before.
pub const SECOND_VALUE: u8 = 8;
/// [`Captured::arg`] of what is no argument's value: the 16 bytes at the futex that a call waits for, or those up to the end of their page,
/// as they were when the wait began.
pub const BESIDE: u8 = 6;

/// [`Captured::arg`] of what is no argument's value: what the call needed besides the CPU, one byte of [`FETCHED`] and [`SLEPT`]. A call
/// that needed neither has none.
pub const NEEDS: u8 = 7;
/// Bit of [`NEEDS`]: in its time its thread had something read from a block device, read-ahead included.
pub const FETCHED: u8 = 1;
/// Bit of [`NEEDS`], of a call that reads from a descriptor: in its time its thread slept.
pub const SLEPT: u8 = 2;

/// One captured value of user memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Row of the segment.
    pub row: u32,
    /// Argument 0..5, plus [`SECOND_VALUE`] of one that the kernel overwrote; or [`BESIDE`], [`NEEDS`].
    pub arg: u8,
    /// Status of the bytes.
    pub status: ByteStatus,
    /// Full size of the value; 0 = not known.
    pub full: u64,
    /// The bytes stored, without a terminating NUL for strings.
    pub bytes: Vec<u8>,
}

/// Kind of a [`ProcessEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ProcessKind {
    /// A task was created.
    Fork = 1,
    /// A process executed another program.
    Exec = 2,
    /// A task ended.
    Exit = 3,
    /// A task changed its comm.
    Rename = 4,
    /// A task changed its uid.
    Cred = 5,
    /// A task moved to another cgroup; `flags` has [`CGROUP_ALL_THREADS`] when its whole process did.
    Cgroup = 6,
    /// A task became a target or ceased to be one, without an event of another kind: its entry's `recorded` is valid
    /// from here on.
    Target = 7,
}

/// `ProcessEvent::flags` of a move: all threads of the process.
pub const CGROUP_ALL_THREADS: u32 = 1;

/// `ProcessEvent::flags` of [`ProcessKind::Target`]: the task was on a CPU then.
pub const TARGET_RUNNING: u32 = 1;

/// `ProcessEvent::flags` of a fork: a thread of the same process.
pub const FORK_THREAD: u32 = 1;
/// `ProcessEvent::flags` of a fork: both use one fd table.
pub const FORK_SHARES_FILES: u32 = 2;
/// `ProcessEvent::flags` of a fork: both use one cwd and root.
pub const FORK_SHARES_FS: u32 = 4;

/// One event of process life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEvent {
    /// Time of the event.
    pub ts: u64,
    /// Kind of the event.
    pub kind: ProcessKind,
    /// Index into the segment's tasks: the task of the event (fork: the child).
    pub task: u32,
    /// Fork: index of the task that forked; else as `task`.
    pub parent: u32,
    /// Fork: FORK_ bits.
    pub flags: u32,
    /// Exit: the kernel's exit_code (status in bits 8..15, signal in 0..6, 0x80 core dumped).
    pub exit_code: u32,
    /// Exit: the last thread of its process.
    pub group_dead: bool,
    /// Exec: the path passed to exec.
    pub path: Vec<u8>,
    /// Exec: arguments, NUL-separated, without the last NUL.
    pub argv: Vec<u8>,
    /// Exec: full size of the arguments; 0 = not known.
    pub argv_full: u64,
    /// Exec: status of `argv`.
    pub argv_status: ByteStatus,
    /// Exec by a thread other than the leader: its tid before, else 0.
    pub old_tid: u32,
    /// Rename: the new name.
    pub comm: Vec<u8>,
}

impl ProcessEvent {
    /// An event of `task` with only a kind and a time.
    pub fn new(ts: u64, kind: ProcessKind, task: u32) -> Self {
        Self {
            ts,
            kind,
            task,
            parent: task,
            flags: 0,
            exit_code: 0,
            group_dead: false,
            path: Vec::new(),
            argv: Vec::new(),
            argv_full: 0,
            argv_status: ByteStatus::Whole,
            old_tid: 0,
            comm: Vec::new(),
        }
    }
}

/// Why events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum GapCause {
    /// A cause unknown to this version.
    Unknown = 0,
    /// Ring buffer full.
    RingFull = 1,
    /// Per-task state could not be allocated.
    StateFailed = 2,
    /// No scratch buffer for strings.
    ScratchExhausted = 3,
    /// The kernel skipped the program.
    Skipped = 4,
    /// The recorder's own queue was full.
    QueueFull = 5,
    /// Calls of the recorder itself, left out on purpose.
    OwnTraffic = 6,
    /// User memory was not resident at enter nor at exit.
    StringFault = 7,
    /// Writing failed.
    DiskError = 8,
    /// A wire record the recorder could not read.
    BadRecord = 9,
    /// Arrived after its segment was closed; stored in a later one.
    LateRecord = 10,
    /// Ring buffer full, of frequent signals that end no process (SIGCHLD, handled timers).
    Everyday = 11,
    /// Expected but missing, cause unknown.
    Unexplained = 12,
    /// A block of the original of this repaired tape was lost or unreadable.
    Damaged = 13,
    /// A block of this kind that has only times, arguments, strings or paths: the calls are still counted.
    DetailDamaged = 14,
    /// Counted instead of stored, by an option of record.
    Filtered = 15,
    /// A process had filled its share of the ring.
    OverShare = 16,
    /// The kernel ran no BPF program when it happened.
    Hidden = 17,
    /// No event is missing: /proc of a process that existed at the start was not read in time. Family
    /// [`Family::State`]: its executable, directory and open files, [`Family::Process`]: its arguments.
    NotRead = 18,
    /// Lines of an imported log ([`Session::imported`]) that were not understood, perhaps calls.
    NotUnderstood = 19,
    /// Calls of 32-bit programs on arm64, which are not recorded.
    OtherAbi = 20,
    /// Threads that a look had no room for.
    Crowded = 21,
}

impl GapCause {
    /// Name of the cause in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::RingFull => "ring-full",
            Self::StateFailed => "state-failed",
            Self::ScratchExhausted => "scratch-exhausted",
            Self::Skipped => "skipped",
            Self::QueueFull => "queue-full",
            Self::OwnTraffic => "own-traffic",
            Self::StringFault => "string-fault",
            Self::DiskError => "disk-error",
            Self::BadRecord => "bad-record",
            Self::LateRecord => "late-record",
            Self::Everyday => "everyday",
            Self::Unexplained => "unexplained",
            Self::Damaged => "damaged",
            Self::DetailDamaged => "detail-damaged",
            Self::Filtered => "filtered",
            Self::OverShare => "over-share",
            Self::Hidden => "hidden",
            Self::NotRead => "not-read",
            Self::NotUnderstood => "not-understood",
            Self::OtherAbi => "other-abi",
            Self::Crowded => "crowded",
        }
    }
}

/// Events that are missing, or were left out: their number, kind, time and cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The cause.
    pub cause: GapCause,
    /// The family of the events.
    pub family: Family,
    /// The CPU; [`CPU_NONE`] = not tied to one.
    pub cpu: u32,
    /// Number of events; 0 = not known, so every total it touches is "at least".
    pub count: u64,
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
    /// The process; 0 = not known.
    pub pid: u32,
    /// The ledger has these calls: with it counts, errors and times are complete.
    pub ledger: bool,
}

/// A fd of a [`FdTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fd {
    /// Number of the descriptor.
    pub fd: i32,
    /// Path, or `pipe:[17]`, `anon_inode:[eventfd]` as /proc/PID/fd shows it; of a socket its name, `TCP:[10.0.0.1:80]`; empty =
    /// not known, nor is `cloexec`.
    pub path: Vec<u8>,
    /// Closed by exec.
    pub cloexec: bool,
}

/// A process's open files and cwd at a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdTable {
    /// The process.
    pub upid: u32,
    /// Whether `fds` has every open fd.
    pub complete: bool,
    /// Current directory; empty = not known.
    pub cwd: Vec<u8>,
    /// Open fds in ascending order.
    pub fds: Vec<Fd>,
    /// The thread (utid) whose it is alone; 0 = it is its process's. `upid` is 0 then.
    pub thread: u32,
    /// Bits of what such a thread does not share with its process.
    pub own: u8,
}

impl Dict {
    /// The task for `code`, a value of a task column of a table; None = none, or not known.
    pub fn task_of(&self, code: u64) -> Option<&Task> {
        self.tasks.get(usize::try_from(code).ok()?.checked_sub(1)?)
    }
}

impl Checkpoint {
    /// Threads that do not share what the bit `own` of [`FdTable::own`] stands for, with their tables.
    pub fn apart(&self, own: u8) -> impl Iterator<Item = (&Task, &FdTable)> {
        let tables = self.fd_tables.iter().filter(move |table| table.own & own != 0);
        let mut tasks: Option<HashMap<u32, &Task>> = None;
        tables.filter_map(move |table| {
            let tasks = tasks.get_or_insert_with(|| self.tasks.iter().map(|task| (task.utid, task)).collect());
            Some((*tasks.get(&table.thread)?, table))
        })
    }
}

impl FdTable {
    /// Bit of `own`: the open fds.
    pub const OWN_FDS: u8 = 1;
    /// Bit of `own`: the current directory.
    pub const OWN_CWD: u8 = 2;
}

/// A call that is open at a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The thread.
    pub utid: u32,
    /// The call.
    pub call: Call,
    /// When it began; 0 = before the recording.
    pub start: u64,
    /// Arguments of the call.
    pub args: Vec<u64>,
    /// Letter of ps(1); 0 = not known.
    pub task_state: u8,
}

/// The full state at one instant: the head of a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// The instant.
    pub ts: u64,
    /// Clocks then.
    pub clock: ClockSample,
    /// Tasks alive.
    pub tasks: Vec<Task>,
    /// Open files.
    pub fd_tables: Vec<FdTable>,
    /// Open calls.
    pub in_flight: Vec<InFlight>,
    /// State of each task, also of kernel threads. Empty = not recorded.
    pub run: Vec<RunState>,
    /// Command lines of processes.
    pub commands: Vec<CommandLine>,
    /// "snapshot" (read from the system) or "tracked".
    pub source: String,
}

/// How a recording ended: the last block of a clean tape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// Clocks at the end.
    pub clock: ClockSample,
    /// End of the recording.
    pub window_close: u64,
    /// The reason in words.
    pub reason: String,
    /// Events stored, by kind.
    pub events: Vec<(Family, u64)>,
    /// Events lost, by kind.
    pub lost: Vec<(Family, u64)>,
    /// Wait status of the command; -1 = no command.
    pub command_exit: i32,
    /// The recorder's own CPU time, ns.
    pub self_cpu_ns: u64,
    /// The recorder's own peak memory, bytes.
    pub self_peak_rss: u64,
    /// Syscalls of the recorder itself, not recorded.
    pub own_calls: u64,
}

/// Exit status that a shell shows for a wait status such as [`End::command_exit`]: the program's own, or 128 + the
/// signal that ended it. None for a negative one: there was no command, or it had not ended.
pub fn shell_status(wait: i32) -> Option<u8> {
    match (wait, wait & 0x7f) {
        (..0, _) => None,
        (_, 0) => Some((wait >> 8 & 0xff) as u8),
        (_, signal) => Some(128 + signal as u8),
    }
}

/// The task and call tables of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dict {
    /// Tasks, in order of first use.
    pub tasks: Vec<Task>,
    /// Distinct calls, in order of first use.
    pub calls: Vec<Call>,
    /// The segment holds calls that ended in [window_start, window_end), late records excepted.
    pub window_start: u64,
    /// End of the window that `window_start` begins.
    pub window_end: u64,
}

/// One call with all its values, from the recorder to a [`crate::segment::SegmentBuilder`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyscallRow {
    /// When it returned (or, without a return, when BPF noticed its end).
    pub end: u64,
    /// Duration, ns; a lower bound unless `state` is complete.
    pub dur: u64,
    /// CPU of its exit.
    pub cpu: u32,
    /// Index into the segment's tasks.
    pub task: u32,
    /// Index into the segment's calls.
    pub call: u32,
    /// Return value; 0 when `errno` is not 0 or there was none.
    pub ret: i64,
    /// 0 = ok; else the errno, or a restart.
    pub errno: u16,
    /// How it began and ended.
    pub state: CallState,
    /// Not selected by record's `-e`, kept for fd tracking (before 1.5).
    pub unselected: bool,
    /// Arguments of the call; those the call does not have are 0.
    pub args: [u64; 6],
    /// Bit n: argument n is not known, see [`Args::unknown`].
    pub unknown: u8,
    /// File of the first fd argument: [`FD_NONE`], [`FD_UNKNOWN`], or an index into the segment's fd names.
    pub fd: u32,
    /// File of the second fd argument. Of a call that opens or removes a file, which has none, that file, as the kernel names it; older
    /// tapes have [`FD_NONE`].
    pub fd2: u32,
}

/// Columns of a segment that a summary needs. All of one length, the segment's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// Rows that began before the segment's window; they come first, sorted by start. The rest is sorted by end.
    pub carry_rows: usize,
    /// Index into [`Dict::calls`].
    pub call: Vec<u32>,
    /// Index into [`Dict::tasks`].
    pub task: Vec<u32>,
    /// Durations, ns; lower bounds unless the state is complete.
    pub dur: Vec<u64>,
    /// Errno of each row; 0 = ok.
    pub errno: Vec<u16>,
    /// State of each row; an unknown state refuses the block.
    pub state: Vec<CallState>,
    /// Rows not selected by record's `-e`, kept for fd tracking (before 1.5). Empty = none.
    pub unselected: Vec<bool>,
}

/// When and where each row ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Start of the call.
    pub start: Vec<u64>,
    /// CPU of its exit; empty = not recorded.
    pub cpu: Vec<u32>,
}

/// Return values and arguments in row order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// Return values, as [`SyscallRow::ret`] has them.
    pub ret: Vec<i64>,
    /// Arguments, as [`SyscallRow::args`] has them.
    pub args: Vec<[u64; 6]>,
    /// Bits of arguments that are not known: bit n of argument n. Their values are [`NO_MATTER`], or 0. Empty = all are known.
    pub unknown: Vec<u8>,
}

/// Value of an argument that is not known, where that changes nothing: it is a pointer that is not null, or the kernel does not
/// read it.
pub const NO_MATTER: u64 = u64::MAX;

impl Args {
    /// The arguments of `row`, to derive something from. None: they were not recorded, or one that matters is not known.
    #[inline]
    pub fn of(&self, row: usize) -> Option<&[u64; 6]> {
        let args = self.args.get(row)?;
        let unknown = self.unknown.get(row).copied().unwrap_or(0);
        let matters = |(at, value): (usize, &u64)| unknown >> at & 1 != 0 && *value != NO_MATTER;
        (unknown == 0 || !args.iter().enumerate().any(matters)).then_some(args)
    }

    /// Whether the value of argument `at` of `row` is not known.
    #[inline]
    pub fn is_unknown(&self, row: usize, at: usize) -> bool {
        self.unknown.get(row).is_some_and(|bits| at < 8 && bits >> at & 1 != 0)
    }
}

/// Files of the fd arguments of each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fds {
    /// [`FD_NONE`], [`FD_UNKNOWN`], or `FD_FIRST + index into names`.
    pub fd: Vec<u32>,
    /// Files of the second fd argument; empty = no row has one.
    pub fd2: Vec<u32>,
    /// Paths of files.
    pub names: Vec<Vec<u8>>,
}

/// Facts about a segment in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Number of its chunk.
    pub chunk: u32,
    /// Rows of syscalls.
    pub rows: u32,
    /// Number of carry rows, as [`Core::carry_rows`] has it.
    pub carry_rows: u32,
    /// Least start among carry rows; 0 = there are none.
    pub carry_start_min: u64,
    /// Least start of a call or block I/O, or ts of another event if that is less; of a segment of gaps alone, their least
    /// `first`.
    pub start_min: u64,
    /// Least end of a call or block I/O, ts of another event, or `first` of a gap.
    pub end_min: u64,
    /// Greatest end of a call or block I/O, ts of another event, or `last` of a gap.
    pub end_max: u64,
    /// Longest call; u64::MAX = not known (recovered without index).
    pub max_dur: u64,
    /// Distinct calls, ascending; None = not known.
    pub calls: Option<Vec<Call>>,
    /// Distinct pids of its tasks and gaps, ascending; None = not known or too many to list.
    pub pids: Option<Vec<u32>>,
    /// Bloom filter of the pids when there are more than 64; see [`Self::may_contain_pid`].
    pub pid_bloom: Option<Box<[u8; 256]>>,
    /// Rows with an errno below [`RESTART_FIRST`], 0 excepted; u32::MAX = not known.
    pub failures: u32,
    /// Least ts of the rows of tables; 0 = none. The fields above do not cover these rows, because older versions do
    /// not know them.
    pub table_start_min: u64,
    /// Greatest ts of these rows.
    pub table_end_max: u64,
}

impl SegmentInfo {
    /// Whether it may have something that happened at `from` or later and before `to`, rows of tables included.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        let of_tables = self.table_end_max != 0 && self.table_end_max >= from && self.table_start_min < to;
        of_tables || (self.end_max >= from && self.start_min < to)
    }

    /// Whether the segment may have anything of process `pid`. False is certain; true is not. Gaps without a pid
    /// concern every process and are not considered here.
    pub fn may_contain_pid(&self, pid: u32) -> bool {
        match (&self.pids, &self.pid_bloom) {
            (Some(pids), _) => pids.contains(&pid),
            (None, Some(bloom)) => pid_in_bloom(bloom, pid),
            (None, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shell_status;

    #[test]
    fn statuses_are_the_shells() {
        assert_eq!(shell_status(0), Some(0));
        assert_eq!(shell_status(3 << 8), Some(3));
        assert_eq!(shell_status(9), Some(137));
        assert_eq!(shell_status(11 | 0x80), Some(139));
        assert_eq!(shell_status(-1), None);
    }
}
