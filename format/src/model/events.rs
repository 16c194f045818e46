//! Kinds of event beside syscalls and process life: scheduler, block I/O, signals, sockets, io_uring.
//!
//! As in [`crate::model`]: plain values, times in ns of CLOCK_MONOTONIC, kernel values raw. Tasks are indices into the
//! segment's [`Dict::tasks`](crate::model::Dict::tasks). The idle task of every CPU is the task with tid 0.

use crate::model::ByteStatus;

/// A CPU switched from one task to another (sched:sched_switch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Time of the event.
    pub ts: u64,
    /// CPU it was on.
    pub cpu: u32,
    /// The task that ran until then.
    pub prev: u32,
    /// The task that runs from then on.
    pub next: u32,
    /// The kernel's state of `prev` (include/linux/sched.h: 0 running, 1 interruptible, 2 uninterruptible, 4 stopped,
    /// 8 traced, 0x10 and 0x20 dead, 0x40 parked, 0x80 dead; 0x400 with 2: idle;
    /// 0x8000 frozen, also with 1 or 2).
    pub prev_state: u32,
    /// `prev` was preempted: it waits for a CPU, whatever `prev_state` says.
    pub preempted: bool,
    /// `prev` waits until the CPU quota of its cgroup lets it run again, not for a CPU. False in older tapes.
    pub throttled: bool,
    /// How long before `ts` the quota let `next` run again, which has waited for a CPU since, ns; 0 = `next` was not throttled, was
    /// until `ts`, or it is not known.
    pub unthrottled_ns: u64,
    /// How `prev` got the CPU, if no program saw that.
    pub came: Option<Came>,
}

/// The time of a switch that no program saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// How long before the next switch of its CPU it was, ns, below 2^63.
    pub ns: u64,
    /// Whether it may have been later: `ns` is since the last switch of the CPU that a program saw.
    pub at_most: bool,
}

impl Switch {
    /// State of `prev` from here on, as a letter of ps(1): R while it only waits for a CPU.
    pub fn prev_letter(&self) -> u8 {
        if self.preempted { b'R' } else { state_letter(self.prev_state) }
    }
}

/// Letter of ps(1) for a kernel task state (fs/proc/array.c): R S D T t X Z P I; F for one that the freezer of a control group holds,
/// which ps(1) shows as D or S.
pub(crate) fn state_letter(state: u32) -> u8 {
    const IDLE: u32 = 0x402;
    const FROZEN: u32 = 0x8000;
    match state {
        s if s & FROZEN != 0 => b'F',
        s if s & IDLE == IDLE => b'I',
        s if s & 1 != 0 => b'S',
        s if s & 2 != 0 => b'D',
        s if s & 4 != 0 => b'T',
        s if s & 8 != 0 => b't',
        s if s & 0x20 != 0 => b'Z',
        s if s & (0x10 | 0x80) != 0 => b'X',
        s if s & 0x40 != 0 => b'P',
        // RT lock wait
        s if s & 0x1000 != 0 => b'D',
        _ => b'R',
    }
}

/// A task was made runnable (sched:sched_waking), or a new one for the first time (sched:sched_wakeup_new).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// Time on the waker's clock, before the wakee is queued.
    pub ts: u64,
    /// The CPU the waker ran on.
    pub cpu: u32,
    /// The waker; None = an interrupt (the interrupted task is not the cause).
    pub waker: Option<u32>,
    /// The task that was woken.
    pub wakee: u32,
    /// The CPU the wakee ran on last (new: where it is queued).
    pub target_cpu: u32,
    /// A new task's first.
    pub new: bool,
    /// A network softirq woke it at the end of a send of `waker`, on the waker's CPU. False if not known: then there is
    /// no waker.
    pub softirq: bool,
    /// The wakee must wait until the CPU quota of its cgroup lets it run. False in older tapes.
    pub throttled: bool,
}

/// Kind of a [`BlockIo`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockLayer {
    /// A request of a device with a request queue.
    #[default]
    Request = 1,
    /// A bio of a device without one (dm, md, zram): the I/O below it is a record of its own.
    Bio = 2,
}

/// How an I/O's owner is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BlockCause {
    /// The owner is not known (metadata, the kernel's read-ahead; before 1.5 the journal).
    #[default]
    Unknown = 0,
    /// The task that submitted it, in its own context.
    Direct = 1,
    /// Written back by the kernel; the last task that dirtied the inode.
    Dirtier = 2,
    /// Written back by the kernel; only the cgroup that owns the pages is known.
    CgroupOwner = 3,
    /// Submitted by this kernel thread (a journal, kswapd), other than a workqueue's worker.
    KernelThread = 4,
    /// A flush of the device's cache: the owner of the first request that waited for it.
    Flush = 5,
}

impl BlockCause {
    /// Whether a reader of format 1.4 refuses it.
    pub(crate) fn is_new(self) -> bool {
        matches!(self, Self::KernelThread | Self::Flush)
    }
}

/// What a block I/O reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BlockHolds {
    /// Not known, or not by this version.
    #[default]
    Unknown = 0,
    /// A file.
    File = 1,
    /// The file system's own data.
    Metadata = 2,
    /// Journal of the file system.
    Journal = 3,
    /// The device itself, which a program opened.
    Device = 4,
    /// Memory of processes.
    Swap = 5,
    /// More than one of these, or more than one file: I/Os that were merged.
    Several = 6,
}

impl BlockHolds {
    /// All values, each at its number.
    pub const ALL: [Self; 7] =
        [Self::Unknown, Self::File, Self::Metadata, Self::Journal, Self::Device, Self::Swap, Self::Several];

    /// The value of a number.
    pub fn from_raw(raw: u8) -> Self {
        Self::ALL.get(usize::from(raw)).copied().unwrap_or_default()
    }
}

/// One I/O of a block device, recorded at its completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockIo {
    /// Time of completion.
    pub complete: u64,
    /// Time at which it entered the block layer; 0 = not known.
    pub queued: u64,
    /// Time at which it (last) went to the device; 0 = not known or never (bio layer).
    pub issued: u64,
    /// The kernel's dev_t: major << 20 | minor, of the whole disk.
    pub dev: u32,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Size in bytes; 0 for a flush.
    pub bytes: u32,
    /// The kernel's cmd_flags: operation in the low 8 bits (0 read, 1 write, 2 flush, 3 discard, 5 secure erase,
    /// 9 write zeroes), REQ_ flags above (include/linux/blk_types.h of the recording kernel).
    pub flags: u32,
    /// 0 = ok, else an errno.
    pub errno: u16,
    /// Number of times it was requeued.
    pub requeues: u16,
    /// Further bios merged into it.
    pub merged: u16,
    /// Request or bio.
    pub layer: BlockLayer,
    /// The task that ran when it entered the block layer; None = not known or an interrupt.
    pub origin: Option<u32>,
    /// How `owner` is known.
    pub cause: BlockCause,
    /// The task that caused it; None with cause unknown and cgroup owner.
    pub owner: Option<u32>,
    /// cgroup v2 id the bio is charged to; 0 = not known.
    pub cgroup_id: u64,
    /// Inode of the file that it reads or writes; 0 = not known. Before 1.5 not of direct I/O.
    pub inode: u64,
    /// What it reads or writes.
    pub holds: BlockHolds,
    /// Number of the file in the rows of its segment's table [`BLOCK_FILE`](crate::families::BLOCK_FILE); 0 = none.
    pub file: u64,
}

/// Passes to the macro `$each` the numbers of a block I/O that a tape has as they are, with what sets and gets their column; first those
/// of every tape, then those that are 0 in older ones.
macro_rules! plain_block_columns {
    ($each:ident $with:tt) => {
        $each! { $with
            [
                dev: u32, init_dev get_dev;
                sector: u64, init_sector get_sector;
                bytes: u32, init_bytes get_bytes;
                flags: u32, init_flags get_flags;
                errno: u16, init_errno get_errno;
                requeues: u16, init_requeues get_requeues;
                merged: u16, init_merged get_merged;
                cgroup_id: u64, init_cgroup_id get_cgroup_id;
                inode: u64, init_inode get_inode;
            ]
            [
                file: u64, init_file get_file;
            ]
        }
    };
}
pub(crate) use plain_block_columns;

/// Kind of a [`SignalEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SignalKind {
    /// A signal was sent (signal:signal_generate).
    Generate = 1,
    /// The target took it (signal:signal_deliver).
    Deliver = 2,
    /// The OOM killer chose the target (oom:mark_victim); it comes *after* the SIGKILL it explains.
    OomVictim = 3,
}

/// The kernel's information on a signal's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SignalInfo {
    /// No information.
    #[default]
    Unknown = 0,
    /// A siginfo: `code`, `si_pid`, `si_uid`, `addr` are valid.
    Siginfo = 1,
    /// SEND_SIG_NOINFO: sent by the kernel on behalf of the current task.
    NoInfo = 2,
    /// SEND_SIG_PRIV: sent by the kernel itself.
    Priv = 3,
}

/// [`SignalEvent::flags`]: in an interrupt, so the current task was only interrupted.
pub const SIGNAL_INTERRUPT: u32 = 1;
/// [`SignalEvent::flags`]: the current task is exiting.
pub const SIGNAL_SENDER_EXITING: u32 = 2;
/// [`SignalEvent::flags`]: the current task is a kernel thread.
pub const SIGNAL_SENDER_KTHREAD: u32 = 4;
/// [`SignalEvent::flags`]: the target thread blocks this signal.
pub const SIGNAL_BLOCKED: u32 = 8;
/// [`SignalEvent::flags`]: the target's disposition is SIG_IGN.
pub const SIGNAL_IGNORED: u32 = 16;
/// [`SignalEvent::flags`]: the target has a handler.
pub const SIGNAL_HANDLED: u32 = 32;
/// [`SignalEvent::flags`]: the target asked for this signal when its parent dies (PR_SET_PDEATHSIG).
pub const SIGNAL_PDEATHSIG: u32 = 64;
/// [`SignalEvent::flags`]: sent to the group, not the thread.
pub const SIGNAL_GROUP: u32 = 128;
/// [`SignalEvent::flags`]: deliver: what the target does about it is not known, so `ip` is none (a log was imported).
pub const SIGNAL_HANDLER_UNKNOWN: u32 = 256;

/// A process above another in the process tree, as it was then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestor {
    /// Pid of the ancestor.
    pub pid: u32,
    /// Start of the ancestor; with `pid` it is the process's identity.
    pub start_ns: u64,
    /// Name of its leader.
    pub comm: Vec<u8>,
}

/// Memory of an OOM victim, bytes. All 0 = not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OomMemory {
    /// Virtual memory.
    pub total_vm: u64,
    /// Resident: anonymous.
    pub anon: u64,
    /// Resident: of files.
    pub file: u64,
    /// Resident: shared memory.
    pub shmem: u64,
}

/// A signal was sent or taken, or the OOM killer chose its victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalEvent {
    /// Time of the event.
    pub ts: u64,
    /// Kind of the event.
    pub kind: SignalKind,
    /// Number of the signal; 0 for an OOM victim.
    pub sig: u32,
    /// Field si_code; only with `info` siginfo.
    pub code: i32,
    /// Field si_errno.
    pub errno: i32,
    /// The kernel's information on the origin.
    pub info: SignalInfo,
    /// Generate: the kernel's enum trace_signal: 0 delivered (queued), 1 ignored, 2 already pending, 3 overflow failed,
    /// 4 info lost.
    pub result: u8,
    /// SIGNAL_ bits.
    pub flags: u32,
    /// The target thread (generate: the one named; any thread of it may take a group signal).
    pub target: u32,
    /// Generate: the task that ran (the sender, unless `flags` and `info` differ). OOM: the task that ran out of
    /// memory. Deliver: None, or the task that an imported log names.
    pub sender: Option<u32>,
    /// Generate: index into [`Dict::calls`](crate::model::Dict::calls): the call `sender` was in.
    pub call: Option<u32>,
    /// First arguments of that call.
    pub call_args: [u64; 4],
    /// Path of that call's fd argument; empty = it has none, or not known.
    pub call_path: Vec<u8>,
    /// si_pid in the target's namespace; 0 = none.
    pub si_pid: u32,
    /// Field si_uid.
    pub si_uid: u32,
    /// si_addr of a fault.
    pub addr: u64,
    /// Fault: the instruction pointer. Deliver: the handler (0 default, 1 ignore).
    pub ip: u64,
    /// Generate by a user's task: its parent, its parent's parent, … up to pid 1; may stop early.
    pub sender_ancestors: Vec<Ancestor>,
    /// Ancestors of the target.
    pub target_ancestors: Vec<Ancestor>,
    /// Generate by a user's task: its arguments, NUL-separated, without the last NUL.
    pub argv: Vec<u8>,
    /// Status of `argv`.
    pub argv_status: ByteStatus,
    /// Full size of the arguments; 0 = not known or not read.
    pub argv_full: u64,
    /// OOM: the victim's memory.
    pub oom: OomMemory,
}

impl SignalEvent {
    /// Signal `sig` to `target`, without information on its origin.
    pub fn new(ts: u64, kind: SignalKind, sig: u32, target: u32) -> Self {
        Self {
            ts,
            kind,
            sig,
            code: 0,
            errno: 0,
            info: SignalInfo::Unknown,
            result: 0,
            flags: 0,
            target,
            sender: None,
            call: None,
            call_args: [0; 4],
            call_path: Vec::new(),
            si_pid: 0,
            si_uid: 0,
            addr: 0,
            ip: 0,
            sender_ancestors: Vec::new(),
            target_ancestors: Vec::new(),
            argv: Vec::new(),
            argv_status: ByteStatus::NotResident,
            argv_full: 0,
            oom: OomMemory::default(),
        }
    }
}

/// A TCP (or DCCP, SCTP) socket changed its state (sock:inet_sock_set_state).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetState {
    /// Time of the change.
    pub ts: u64,
    /// The task that ran; None = an interrupt.
    pub task: Option<u32>,
    /// If the interrupt was a network softirq at the end of a task's own send: that task. None = it was not, or not
    /// known.
    pub sender: Option<u32>,
    /// The socket: unique in the tape, from 1.
    pub socket: u64,
    /// AF_INET or AF_INET6.
    pub family: u16,
    /// Protocol, a number of IPPROTO_.
    pub protocol: u16,
    /// State before (include/net/tcp_states.h: 1 established, 2 syn sent, 7 close, 10 listen, …).
    pub old_state: u8,
    /// State after.
    pub new_state: u8,
    /// Local port.
    pub sport: u16,
    /// Remote port.
    pub dport: u16,
    /// Local address, 4 or 16 bytes.
    pub saddr: Vec<u8>,
    /// Remote address, 4 or 16 bytes.
    pub daddr: Vec<u8>,
}

/// An io_uring operation was submitted: I/O that is no syscall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UringOp {
    /// Time of the event.
    pub ts: u64,
    /// The submitting task; with SQPOLL the kernel thread that polls the ring.
    pub task: u32,
    /// Operation, a number of IORING_OP_.
    pub op: u8,
}

/// State of a task at a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunState {
    /// The thread.
    pub utid: u32,
    /// Letter of ps(1); R is running or waiting for a CPU.
    pub state: u8,
    /// Whether it was on a CPU at that moment.
    pub on_cpu: bool,
    /// The CPU it runs on or ran on last.
    pub cpu: u32,
    /// When it last got a CPU; 0 = not known.
    pub last_run: u64,
    /// When `state` was read; 0 = at the checkpoint's time.
    pub seen: u64,
}

/// A process's command line at a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The process.
    pub upid: u32,
    /// Arguments, NUL-separated, without the last NUL; empty = not known (or a kernel thread).
    pub argv: Vec<u8>,
    /// Full size; more than `argv` when cut.
    pub full: u64,
}

/// A block device and the devices it consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceLink {
    /// major, minor.
    pub dev: (u32, u32),
    /// The disk of a partition; None = no partition.
    pub disk: Option<(u32, u32)>,
    /// First sector of a partition on its disk, in units of 512 bytes.
    pub first_sector: u64,
    /// Devices below it (dm, md: the members; loop: the device of the backing file's file system).
    pub lower: Vec<(u32, u32)>,
}
