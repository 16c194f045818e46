//! Wire records: checked for kind and length, then copied out of the ring's bytes.
//!
//! The layouts are those of `src/c/wire.h`, by way of the skeleton; nothing here is stored in a tape.

use std::mem::size_of;
use std::ptr;

use crate::skeleton::types;

pub use types::{
    busy_sum as BusySum, cpu_buffer as CpuBuffer, drop_count as DropCount, ledger_counts as LedgerCounts,
    ledger_key as LedgerKey, sc_desc as CallDesc, wire_ancestor as Ancestor, wire_block as Block,
    wire_capture as Capture, wire_closing as Closing, wire_exec as Exec, wire_exit as Exit, wire_fork as Fork,
    wire_hdr as Header, wire_ident as Ident, wire_net as Net, wire_signal as Signal, wire_snap as Snap,
    wire_stack as Stack, wire_switch as Switch, wire_syscall as Syscall, wire_task as Task, wire_uring as Uring,
    wire_wakeup as Wakeup, wire_who as Who,
};

/// What the kernel side counted of one key; a lock cannot be among the skeleton's types.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LedgerSum {
    /// Of the kernel's own.
    pub lock: u32,
    /// 0.
    pub pad: u32,
    /// Calls and times.
    pub n: LedgerCounts,
    /// Calls by the power of two below their duration.
    pub sizes: [u32; crate::LEDGER_SIZES],
}

/// The same without sizes, of a call on a CPU.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CoarseSum {
    /// Of the kernel's own.
    pub lock: u32,
    /// 0.
    pub pad: u32,
    /// Calls and times.
    pub n: LedgerCounts,
}

/// `Capture::arg` of the name of a returned fd, the first of a pair, or the cwd.
pub const CAPTURE_NAME0: u8 = 8;
/// `Capture::arg` of the name of the second fd of a pair.
pub const CAPTURE_NAME1: u8 = 9;
/// `Snap::nr` of a task that is in no call, or in one that is not known.
pub const SNAP_NO_CALL: u32 = u32::MAX;
/// `Snap::matched` of a task whose fds matter and whose call does not.
pub const SNAP_IDLE: u8 = 3;
/// `Snap::matched` when uid, comm and cgroup must be asked.
pub const SNAP_ASK: u8 = 2;
/// `hdr.flags` of a syscall the user did not select.
pub const UNSELECTED: u16 = 1;
/// `hdr.flags` of a syscall that is kept for fd tracking and counted in the ledger.
pub const IN_LEDGER: u16 = 2;
/// `hdr.flags` of a syscall that ended after the window and is to be counted, unless it was counted as in flight.
pub const FILTERED: u16 = 4;
/// In `hdr.flags` of a [`Task`]: it is a target.
pub const TASK_IS_TARGET: u16 = 0x8000;
/// In `hdr.flags` of a [`Task`]: it, or its process, was asked for by number or command, or nobody need be.
pub const TASK_IS_MARKED: u16 = 0x4000;
/// In `hdr.flags` of a [`Task`]: it is in the cgroup that was asked for, or nobody need be.
pub const TASK_IS_IN_CGROUP: u16 = 0x2000;
/// What the other bits of `hdr.flags` of a [`Task`] are: why the record was sent, or how a fork was made.
pub const TASK_REASON: u16 = 0xff;
/// `hdr.flags` of a [`Task`] record: its comm changed.
pub const TASK_RENAME: u16 = 2;
/// `hdr.flags` of a [`Task`] record: its uid changed.
pub const TASK_CRED: u16 = 3;
/// `hdr.flags` of a [`Task`] record: it moved to another cgroup.
pub const TASK_CGROUP: u16 = 4;
/// `hdr.flags` of a [`Task`] record: every thread of its process moved to its cgroup.
pub const TASK_CGROUP_ALL: u16 = 5;

/// `hdr.flags` of a [`Switch`]: the task before was preempted.
pub const SWITCH_PREEMPTED: u16 = 1;
/// `hdr.flags` of a [`Wakeup`]: of a new task.
pub const WAKEUP_NEW: u16 = 1;
/// `hdr.flags` of a [`Wakeup`]: by an interrupt, the waker is who was interrupted.
pub const WAKEUP_IRQ: u16 = 2;
/// `hdr.flags` of a [`Wakeup`], with [`WAKEUP_IRQ`]: by a network softirq at the end of the waker's own send.
pub const WAKEUP_SOFTIRQ: u16 = 4;
/// `hdr.flags` of a [`Net`] record: in an interrupt.
pub const NET_IRQ: u16 = 1;
/// `hdr.flags` of a [`Net`] record, with [`NET_IRQ`]: in a network softirq at the end of a send of `who`.
pub const NET_SOFTIRQ: u16 = 2;
/// `Signal::kind`: sent.
pub const SIGNAL_GENERATE: u8 = 1;
/// `Signal::kind`: taken.
pub const SIGNAL_DELIVER: u8 = 2;
/// `Block::layer` of a bio.
pub const BLOCK_LAYER_BIO: u8 = 2;

const KIND_SYSCALL: u16 = 1;
const KIND_CLOSING: u16 = 2;
const KIND_TASK: u16 = 3;
const KIND_FORK: u16 = 4;
const KIND_EXEC: u16 = 5;
const KIND_EXIT: u16 = 6;
const KIND_SWITCH: u16 = 7;
const KIND_WAKEUP: u16 = 8;
const KIND_BLOCK: u16 = 9;
const KIND_SIGNAL: u16 = 10;
const KIND_NET: u16 = 11;
const KIND_URING: u16 = 12;
const KIND_STACK: u16 = 13;

/// `hdr.flags` of a [`Stack`]: it is longer than the copy.
pub const STACK_CUT: u16 = 1;
/// `hdr.flags` of a [`Stack`]: of 32-bit code.
pub const STACK_COMPAT: u16 = 2;
/// `hdr.flags` of a [`Stack`]: the kernel could not walk it.
pub const STACK_FAILED: u16 = 4;

/// `hdr.flags` of a [`Stack`]: a sample found the kernel running.
pub const STACK_IN_KERNEL: u16 = 8;
/// `hdr.flags` of a [`Stack`]: in a syscall, so the instruction pointer is behind the instruction that made it.
pub const STACK_IN_CALL: u16 = 16;

/// `hdr.flags` of a sleeper's [`Stack`]: its address space was locked, so its memory was left alone.
pub const STACK_LOCKED: u16 = 32;
/// `hdr.flags` of a sleeper's [`Stack`]: it has a user part that was not read.
pub const STACK_UNREAD: u16 = 64;
/// `hdr.flags` of a sleeper's [`Stack`]: its user part was given up, because copying took too long.
pub const STACK_LATE: u16 = 128;

/// Ancestors a signal's record has room for, of its sender and of its target each.
const MAX_ANCESTORS: usize = 32;

// The C side and this side must agree on every byte.
const _: () = assert!(size_of::<Syscall>() == 144);
const _: () = assert!(size_of::<Exec>() == 144);
const _: () = assert!(size_of::<Closing>() == 72);
const _: () = assert!(size_of::<Task>() == 88);
const _: () = assert!(size_of::<Fork>() == 112);
const _: () = assert!(size_of::<Exit>() == 48);
const _: () = assert!(size_of::<Snap>() == 176);
const _: () = assert!(size_of::<Switch>() == 88);
const _: () = assert!(size_of::<Wakeup>() == 88);
const _: () = assert!(size_of::<Block>() == 144);
const _: () = assert!(size_of::<Signal>() == 320);
const _: () = assert!(size_of::<Ancestor>() == 32);
const _: () = assert!(size_of::<Net>() == 104);
const _: () = assert!(size_of::<Uring>() == 48);
const _: () = assert!(size_of::<Stack>() == 224);
const _: () = assert!(size_of::<CallDesc>() == 24);
const _: () = assert!(size_of::<LedgerKey>() == 40);
const _: () = assert!(size_of::<LedgerSum>() == 312);
const _: () = assert!(size_of::<CoarseSum>() == 56);
const _: () = assert!(size_of::<DropCount>() == 24);

/// A record of a ring.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// A call that ended, with its captured bytes.
    Syscall(Syscall, &'a [u8]),
    /// A call that closes fds was entered.
    Closing(Closing),
    /// Who a task is.
    Task(Task),
    /// A task was made.
    Fork(Fork),
    /// A process became another program: the record, the path, the NUL-separated arguments.
    Exec(Exec, &'a [u8], &'a [u8]),
    /// A task ended.
    Exit(Exit),
    /// A CPU went from one task to another.
    Switch(Switch),
    /// A task was made runnable.
    Wakeup(Wakeup),
    /// A block I/O completed.
    Block(Block),
    /// A signal was sent or taken, or the OOM killer chose a victim.
    Signal(Box<SignalParts<'a>>),
    /// A socket changed its state.
    Net(Net),
    /// An io_uring operation was submitted.
    Uring(Uring),
}

/// A signal's record and what follows it.
#[derive(Clone, Debug)]
pub struct SignalParts<'a> {
    /// The record.
    pub signal: Signal,
    /// Parents of the sender, the nearest first.
    pub sender_ancestors: Vec<Ancestor>,
    /// Parents of the target.
    pub target_ancestors: Vec<Ancestor>,
    /// The sender's arguments, NUL-separated.
    pub argv: &'a [u8],
    /// What the fd argument of the sender's call stands for; see [`name`].
    pub path: &'a [u8],
}

/// A stack's record and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct StackParts<'a> {
    /// The record.
    pub stack: Stack,
    /// Addresses in the kernel, the innermost first; 8 bytes each.
    pub kernel: &'a [u8],
    /// Addresses by frame pointers (8 bytes each), or memory from the stack pointer on; `stack.user` says which.
    pub user: &'a [u8],
}

/// Reads a record of the stack ring.
///
/// # Errors
/// As [`parse`].
pub fn stack(bytes: &[u8]) -> Result<StackParts<'_>, BadRecord> {
    let kind = kind(bytes);
    if kind != KIND_STACK {
        return Err(BadRecord { kind, len: bytes.len(), needed: 0 });
    }
    let (stack, data) = copy::<Stack>(bytes, kind)?;
    let (in_kernel, in_user) = (stack.kernel_bytes as usize, stack.user_bytes as usize);
    let short = BadRecord { kind, len: bytes.len(), needed: size_of::<Stack>() + in_kernel + in_user };
    let (kernel, rest) = data.split_at_checked(in_kernel).ok_or(short)?;
    let user = rest.get(..in_user).ok_or(short)?;
    Ok(StackParts { stack, kernel, user })
}

/// Bytes of the stack record at the beginning of `bytes`, with what follows it; None: it is not all there yet.
///
/// # Errors
/// As [`parse`]: there is another record.
pub fn stack_len(bytes: &[u8]) -> Result<Option<usize>, BadRecord> {
    let kind = kind(bytes);
    if bytes.len() < size_of::<Stack>() {
        return Ok(None);
    }
    if kind != KIND_STACK {
        return Err(BadRecord { kind, len: bytes.len(), needed: 0 });
    }
    let (stack, _) = copy::<Stack>(bytes, kind)?;
    let len = size_of::<Stack>() + stack.kernel_bytes as usize + stack.user_bytes as usize;
    Ok((len <= bytes.len()).then_some(len))
}

/// Bytes that are no record: the kind, the length found and the least length of that kind (0: unknown kind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Kind read, 0 when there were too few bytes for one.
    pub kind: u16,
    /// Bytes there were.
    pub len: usize,
    /// Bytes that kind needs at least.
    pub needed: usize,
}

/// Copies a plain record off the front of `bytes`.
fn copy<T: Copy>(bytes: &[u8], kind: u16) -> Result<(T, &[u8]), BadRecord> {
    let needed = size_of::<T>();
    if bytes.len() < needed {
        return Err(BadRecord { kind, len: bytes.len(), needed });
    }
    // SAFETY: T is one of the skeleton's repr(C) records, made of integers only, so any bytes are a value of it; there
    // are at least size_of::<T>() of them, and read_unaligned asks for no alignment.
    let value = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
    Ok((value, &bytes[needed..]))
}

/// Bytes of a [`Syscall`] in front of its captures, which are left out when there are none.
pub const PLAIN_SYSCALL: usize = std::mem::offset_of!(Syscall, cap);
/// Bytes of a [`Switch`], and of a [`Wakeup`].
pub const SCHED: usize = size_of::<Switch>();

/// Reads the record of a call, with its captured bytes: [`parse`] for what is most of all records.
///
/// # Errors
/// As [`parse`].
#[inline]
pub fn syscall(bytes: &[u8]) -> Result<(Syscall, &[u8]), BadRecord> {
    let bad = |needed| BadRecord { kind: kind(bytes), len: bytes.len(), needed };
    if kind(bytes) != KIND_SYSCALL {
        return Err(bad(0));
    }
    if let Ok(plain) = <&[u8; PLAIN_SYSCALL]>::try_from(bytes) {
        let mut r = Syscall::default();
        // SAFETY: Syscall is repr(C), made of integers only, and PLAIN_SYSCALL is an offset in it: its first bytes may be any.
        unsafe { ptr::copy_nonoverlapping(plain.as_ptr(), (&raw mut r).cast::<u8>(), PLAIN_SYSCALL) };
        return if r.captures == 0 { Ok((r, &[])) } else { Err(bad(size_of::<Syscall>())) };
    }
    let (r, data) = copy::<Syscall>(bytes, KIND_SYSCALL)?;
    let needed: usize = captures(&r).map(|c| usize::from(c.len)).sum();
    if data.len() < needed {
        return Err(bad(size_of::<Syscall>() + needed));
    }
    Ok((r, data))
}

/// Reads one record.
///
/// # Errors
/// [`BadRecord`] when the kind is unknown or the bytes are too few for what the record says of itself.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, BadRecord> {
    let kind = kind(bytes);
    Ok(match kind {
        KIND_SYSCALL => {
            let (r, data) = syscall(bytes)?;
            Record::Syscall(r, data)
        }
        KIND_CLOSING => Record::Closing(copy(bytes, kind)?.0),
        KIND_TASK => Record::Task(copy(bytes, kind)?.0),
        KIND_FORK => Record::Fork(copy(bytes, kind)?.0),
        KIND_EXEC => {
            let (r, data) = copy::<Exec>(bytes, kind)?;
            let (path, argv) = (usize::from(r.path_len), usize::from(r.argv_len));
            if data.len() < path + argv {
                return Err(BadRecord { kind, len: bytes.len(), needed: size_of::<Exec>() + path + argv });
            }
            Record::Exec(r, &data[..path], &data[path..path + argv])
        }
        KIND_EXIT => Record::Exit(copy(bytes, kind)?.0),
        KIND_SWITCH => Record::Switch(copy(bytes, kind)?.0),
        KIND_WAKEUP => Record::Wakeup(copy(bytes, kind)?.0),
        KIND_BLOCK => Record::Block(copy(bytes, kind)?.0),
        KIND_SIGNAL => Record::Signal(Box::new(signal_parts(bytes)?)),
        KIND_NET => Record::Net(copy(bytes, kind)?.0),
        KIND_URING => Record::Uring(copy(bytes, kind)?.0),
        _ => return Err(BadRecord { kind, len: bytes.len(), needed: 0 }),
    })
}

/// A signal's record: with ancestors of either there is room for all of both, then argv and path follow.
fn signal_parts(bytes: &[u8]) -> Result<SignalParts<'_>, BadRecord> {
    let (signal, data) = copy::<Signal>(bytes, KIND_SIGNAL)?;
    let short = |needed| BadRecord { kind: KIND_SIGNAL, len: bytes.len(), needed: size_of::<Signal>() + needed };
    let (argv, path) = (usize::from(signal.argv_len), usize::from(signal.path_len));
    let chains = 2 * MAX_ANCESTORS * size_of::<Ancestor>();
    let counts = [usize::from(signal.sender_ancestors), usize::from(signal.target_ancestors)];
    let with_chains = counts != [0, 0] || argv + path > 0;
    if counts.iter().any(|n| *n > MAX_ANCESTORS) || (with_chains && data.len() < chains + argv + path) {
        return Err(short(chains + argv + path));
    }
    let chain = |from: usize, n: usize| -> Result<Vec<Ancestor>, BadRecord> {
        let mut rest = data.get(from..).unwrap_or(&[]);
        (0..n)
            .map(|_| {
                let (ancestor, tail) = copy::<Ancestor>(rest, KIND_SIGNAL)?;
                rest = tail;
                Ok(ancestor)
            })
            .collect()
    };
    Ok(SignalParts {
        signal,
        sender_ancestors: chain(0, counts[0])?,
        target_ancestors: chain(chains / 2, counts[1])?,
        argv: data.get(chains..chains + argv).unwrap_or(&[]),
        path: data.get(chains + argv..chains + argv + path).unwrap_or(&[]),
    })
}

/// Time by which a record is ordered: end of a call, else when it happened. None for bytes that are no record.
pub fn time(bytes: &[u8]) -> Option<u64> {
    let at = match kind(bytes) {
        KIND_SYSCALL => 40,
        KIND_CLOSING | KIND_TASK | KIND_FORK | KIND_EXEC | KIND_EXIT => 32,
        KIND_SWITCH | KIND_WAKEUP | KIND_BLOCK | KIND_SIGNAL | KIND_NET | KIND_URING => 8,
        _ => return None,
    };
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes)
}

/// The records of an iterator's output, and how many bytes at its end are less than one.
pub fn snaps(bytes: &[u8]) -> (Vec<Snap>, usize) {
    let mut rest = bytes;
    let mut all = Vec::with_capacity(bytes.len() / size_of::<Snap>());
    while let Ok((snap, tail)) = copy::<Snap>(rest, KIND_TASK) {
        all.push(snap);
        rest = tail;
    }
    (all, rest.len())
}

/// The captures of a call that are in use.
pub fn captures(r: &Syscall) -> impl Iterator<Item = &Capture> {
    r.cap.iter().take(usize::from(r.captures))
}

/// A comm without its NULs.
pub fn comm(raw: &[i8; 16]) -> Vec<u8> {
    raw.iter().take_while(|&&c| c != 0).map(|&c| c.cast_unsigned()).collect()
}

fn kind(bytes: &[u8]) -> u16 {
    bytes.first_chunk::<2>().map_or(0, |b| u16::from_ne_bytes(*b))
}

/// Turns a captured name (path.bpf.h) into what /proc/PID/fd would show; None when the kernel side could not tell.
pub fn name(raw: &[u8]) -> Option<Vec<u8>> {
    let (&kind, rest) = raw.split_first()?;
    match kind {
        b'P' | b'D' => {
            let mut out = Vec::with_capacity(rest.len() + 10);
            for part in rest.strip_suffix(&[0]).unwrap_or(rest).rsplit(|&b| b == 0) {
                out.push(b'/');
                out.extend_from_slice(part);
            }
            if kind == b'D' {
                out.extend_from_slice(b" (deleted)");
            }
            Some(out)
        }
        b'p' | b's' => {
            let ino = u64::from_ne_bytes(rest.first_chunk::<8>().copied()?);
            Some(format!("{}:[{ino}]", if kind == b'p' { "pipe" } else { "socket" }).into_bytes())
        }
        b'a' => {
            let text = rest.strip_suffix(&[0]).unwrap_or(rest);
            Some([b"anon_inode:", text].concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_proc() {
        assert_eq!(name(b"Pfile\0dir\0usr\0").unwrap(), b"/usr/dir/file");
        assert_eq!(name(b"P").unwrap(), b"/");
        assert_eq!(name(b"Dx\0tmp\0").unwrap(), b"/tmp/x (deleted)");
        let mut pipe = vec![b'p'];
        pipe.extend(17u64.to_ne_bytes());
        assert_eq!(name(&pipe).unwrap(), b"pipe:[17]");
        assert_eq!(name(b"a[eventfd]\0").unwrap(), b"anon_inode:[eventfd]");
        assert_eq!(name(b"?"), None);
        assert_eq!(name(b""), None);
        assert_eq!(name(b"p12"), None);
    }

    #[test]
    fn short_and_unknown_bytes_are_refused() {
        assert_eq!(parse(&[]).unwrap_err().needed, 0);
        assert_eq!(parse(&[1, 0, 0]).unwrap_err(), BadRecord { kind: 1, len: 3, needed: 144 });
        let mut bytes = vec![0u8; 144];
        bytes[0] = 1;
        assert!(matches!(parse(&bytes), Ok(Record::Syscall(_, []))));
        assert!(matches!(parse(&bytes[..112]), Ok(Record::Syscall(_, []))), "without captures");
        assert!(parse(&bytes[..113]).is_err());
        // one capture of 9 bytes that are not there
        bytes[110] = 1;
        bytes[112 + 2] = 9;
        assert_eq!(parse(&bytes).unwrap_err().needed, 153);
        assert_eq!(parse(&bytes[..112]).unwrap_err().needed, 144);
        bytes[0] = 77;
        assert_eq!(parse(&bytes).unwrap_err().kind, 77);
    }

    #[test]
    fn time_is_read_from_where_the_record_has_it() {
        let mut r = Syscall::default();
        r.hdr.kind = KIND_SYSCALL;
        r.end = 0x1122_3344;
        // SAFETY: a plain record of integers, read as its bytes.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const r).cast::<u8>(), size_of::<Syscall>()) };
        assert_eq!(time(bytes), Some(0x1122_3344));
        let mut t = Task::default();
        t.hdr.kind = KIND_TASK;
        t.ts = 99;
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const t).cast::<u8>(), size_of::<Task>()) };
        assert_eq!(time(bytes), Some(99));
    }
}
