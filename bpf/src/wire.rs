//! Wire records: checked for kind and length, then copied out of the ring's bytes.
//!
//! The layouts are those of `src/c/wire.h`, by way of the skeleton; kinds, and where their times are, come from
//! `src/c/events.def.h`. Nothing here is stored in a tape.

use std::mem::{offset_of, size_of};
use std::ptr;

use crate::skeleton::types;
use crate::values::{limit, name_kind, tracepoint};

pub use types::{
    busy_sum as BusySum, call_structs as CallStructs, cpu_buffer as CpuBuffer, drop_count as DropCount,
    filter_step as FilterStep, ledger_counts as LedgerCounts, ledger_key as LedgerKey, look_ask as LookAsk,
    look_detail as LookDetail, look_note as LookNote, look_room as LookRoom, operand as Operand, operands as Operands,
    sc_desc as CallDesc, struct_rule as StructRule, tracepoint_filter as TracepointFilter, wire_ancestor as Ancestor,
    wire_capture as Capture, wire_hdr as Header, wire_ident as Ident, wire_inode as Inode, wire_open as Open,
    wire_row as Row, wire_snap as Snap, wire_socket as Socket, wire_who as Who,
};

pub use crate::values::{
    block_layer::*, capture_arg::*, cgroup_flags::*, fault_flags::*, fault_memory::*, file_flags::*, filter::*,
    lock_flags::*, net_flags::*, operation_flags::*, segment_flags::*, signal_kind::*, snap_call::*, snap_match::*,
    stack_flags::*, stay_flags::*, switch_flags::*, syscall_flags::*, task_flags::*, task_reason::*, wakeup_flags::*,
};

macro_rules! records {
    ($(($kind:ident, $name:ident, $record:ident))*) => {
        pub use types::{$($record as $name),*};

        $(const $kind: u16 = types::wire_kind::$kind.0 as u16;)*
    };
}
kinds!(records);

/// Registers of a [`Stack`]: those with DWARF numbers that a stack is unwound by, and the instruction pointer behind them.
#[cfg(target_arch = "x86_64")]
pub const STACK_REGS: usize = 17;
/// Registers of a [`Stack`]: x0 to x30, sp, and the instruction pointer behind them.
#[cfg(target_arch = "aarch64")]
pub const STACK_REGS: usize = 33;

/// The kind of a [`Stack`].
pub const STACK_KIND: u16 = WIRE_STACK;

/// The kernel side's counts of one key; the skeleton's types cannot have a lock.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LedgerSum {
    /// The kernel's lock.
    pub lock: u32,
    /// Padding, 0.
    pub pad: u32,
    /// Calls and times.
    pub n: LedgerCounts,
    /// Calls by the power of two below their duration.
    pub sizes: [u32; crate::LEDGER_SIZES],
}

/// Sum without sizes, of a call on a CPU.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CoarseSum {
    /// The kernel's lock.
    pub lock: u32,
    /// Padding, 0.
    pub pad: u32,
    /// Calls and times.
    pub n: LedgerCounts,
}

const MAX_ANCESTORS: usize = limit::MAX_ANCESTORS as usize;

// The C side and this side must agree on every byte.
const _: () = assert!(size_of::<Syscall>() == 176);
const _: () = assert!(size_of::<Exec>() == 176);
const _: () = assert!(size_of::<Environ>() == 176);
const _: () = assert!(size_of::<Closing>() == 72);
const _: () = assert!(size_of::<Task>() == 88);
const _: () = assert!(size_of::<Fork>() == 112);
const _: () = assert!(size_of::<Exit>() == 48);
const _: () = assert!(size_of::<Snap>() == 224);
const _: () = assert!(size_of::<Usage>() == 184);
const _: () = assert!(size_of::<Cgroup>() == 176);
const _: () = assert!(size_of::<Switch>() == 104);
const _: () = assert!(size_of::<Wakeup>() == 104);
const _: () = assert!(size_of::<Block>() == 176);
const _: () = assert!(size_of::<File>() == 48);
const _: () = assert!(size_of::<Signal>() == 328);
const _: () = assert!(size_of::<Ancestor>() == 32);
const _: () = assert!(size_of::<Net>() == 104);
const _: () = assert!(size_of::<Tcp>() == 192);
const _: () = assert!(size_of::<Incident>() == 112);
const _: () = assert!(size_of::<Segment>() == 24);
const _: () = assert!(size_of::<Operation>() == 104);
const _: () = assert!(size_of::<Row>() == 48);
const _: () = assert!(size_of::<Fault>() == 104);
const _: () = assert!(size_of::<Lock>() == 64);
const _: () = assert!(size_of::<Socket>() == 200);
const _: () = assert!(size_of::<Inode>() == 40);
const _: () = assert!(size_of::<Open>() == 48);
const _: () = assert!(size_of::<Tracepoint>() == size_of::<Row>());
const _: () = assert!(size_of::<Probe>() == 120);
const _: () = assert!(size_of::<Static>() == 176);
const _: () = assert!(size_of::<Operands>() == 12 * 16);
const _: () = assert!(size_of::<Stack>() == 88 + 8 * STACK_REGS);
const _: () = assert!(size_of::<Stay>() == 168);
const _: () = assert!(size_of::<Escalation>() == 64);
const _: () = assert!(size_of::<LookSums>() == 112);
const _: () = assert!(size_of::<IdleThreads>() == 48);
const _: () = assert!(size_of::<LookNote>() == 112 && size_of::<LookAsk>() == 48);
const _: () = assert!(size_of::<CallDesc>() == 24);
const _: () = assert!(size_of::<CallStructs>() == 4 * size_of::<StructRule>() && size_of::<StructRule>() == 8);
const _: () = assert!(size_of::<TracepointFilter>() == 8 + 16 * 40);
const _: () = assert!(size_of::<LedgerKey>() == 40);
const _: () = assert!(size_of::<LedgerSum>() == 312);
const _: () = assert!(size_of::<CoarseSum>() == 56);
const _: () = assert!(offset_of!(LedgerSum, n) == 8 && offset_of!(LedgerSum, sizes) == 56);
const _: () = assert!(offset_of!(CoarseSum, n) == 8);
const _: () = assert!(size_of::<DropCount>() == 24);

macro_rules! record_enum {
    ($(($kind:ident, $name:ident, $doc:literal))*) => {
        /// A record of a ring.
        #[derive(Clone, Debug)]
        pub enum Record<'a> {
            /// A call that ended, with its captured bytes.
            Syscall(Syscall, &'a [u8]),
            /// An exec: the record, the path, the NUL-separated arguments.
            Exec(Exec, &'a [u8], &'a [u8]),
            /// Looks found a thread in one state: the record, the name of its file, the path of its call.
            Stay(Stay, &'a [u8], &'a [u8]),
            /// Looks found something wrong, and everything is recorded: the record, the condition, what it was, the name of the tape.
            Escalation(Escalation, [&'a [u8]; 3]),
            /// A part of the environment that a program was started with: the record, the bytes.
            Environ(Environ, &'a [u8]),
            /// A cgroup was made: the record, its path.
            Cgroup(Cgroup, &'a [u8]),
            /// A signal was sent or taken, or the OOM killer chose a victim.
            Signal(Box<SignalParts<'a>>),
            /// A file that block I/Os hold, and its name.
            File(File, &'a [u8]),
            /// A function that was asked for was entered or returned, and its strings.
            Probe(Probe, &'a [u8]),
            /// A place of a static probe was reached, and strings of its arguments.
            Static(Static, &'a [u8]),
            /// An event of a tracepoint: the record, the socket of its packet, and the tracepoint's own.
            Tracepoint(Tracepoint, Option<Box<Socket>>, &'a [u8]),
            $(#[doc = $doc] $name($name)),*
        }

        $(impl Fixed for $name {
            const KIND: u16 = $kind;
        })*

        /// Reads a record without trailing data.
        #[inline]
        fn fixed(bytes: &[u8], kind: u16) -> Result<Record<'_>, BadRecord> {
            Ok(match kind {
                $($kind => Record::$name(copy(bytes, kind)?.0),)*
                _ => return Err(BadRecord { kind, len: bytes.len(), needed: 0 }),
            })
        }
    };
}
fixed_kinds!(record_enum);

/// A record that is all of its bytes.
pub trait Fixed: Copy {
    /// Its kind.
    const KIND: u16;
}

/// Reads a record of one kind, without the copies of [`parse`]'s largest; None: there is no whole record of that kind.
#[inline]
pub fn fixed_record<T: Fixed>(bytes: &[u8]) -> Option<T> {
    (kind(bytes) == T::KIND).then(|| copy::<T>(bytes, T::KIND).ok()).flatten().map(|(record, _)| record)
}

/// A signal's record and its trailing data.
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
    /// File of the fd argument of the sender's call; see [`name`].
    pub path: &'a [u8],
}

/// A stack's record and its trailing data.
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
    if kind != WIRE_STACK {
        return Err(BadRecord { kind, len: bytes.len(), needed: 0 });
    }
    let (stack, data) = copy::<Stack>(bytes, kind)?;
    let (in_kernel, in_user) = (stack.kernel_bytes as usize, stack.user_bytes as usize);
    let short = BadRecord { kind, len: bytes.len(), needed: size_of::<Stack>() + in_kernel + in_user };
    let (kernel, rest) = data.split_at_checked(in_kernel).ok_or(short)?;
    let user = rest.get(..in_user).ok_or(short)?;
    Ok(StackParts { stack, kernel, user })
}

/// Bytes of the stack record at the beginning of `bytes`, with its trailing data; None: it is incomplete.
///
/// # Errors
/// As [`parse`]: there is another record.
pub fn stack_len(bytes: &[u8]) -> Result<Option<usize>, BadRecord> {
    let kind = kind(bytes);
    if bytes.len() < size_of::<Stack>() {
        return Ok(None);
    }
    if kind != WIRE_STACK {
        return Err(BadRecord { kind, len: bytes.len(), needed: 0 });
    }
    let (stack, _) = copy::<Stack>(bytes, kind)?;
    let len = size_of::<Stack>() + stack.kernel_bytes as usize + stack.user_bytes as usize;
    Ok((len <= bytes.len()).then_some(len))
}

/// Records and values that the recorder makes or reads itself: integers without padding between them.
pub trait WireValue: Copy {
    /// The bytes of the value.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the types below are repr(C), made of integers only, and what is between them is a field too (wire.h).
        unsafe { std::slice::from_raw_parts(ptr::from_ref(self).cast::<u8>(), size_of::<Self>()) }
    }

    /// Reads one from the front of `bytes`; None: they are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        copy::<Self>(bytes, 0).ok().map(|(value, _)| value)
    }
}

impl WireValue for Stay {}
impl WireValue for Escalation {}
impl WireValue for LookSums {}
impl WireValue for IdleThreads {}
impl WireValue for Stack {}
impl WireValue for LookAsk {}
impl WireValue for LookRoom {}
impl WireValue for LookDetail {}

impl Stay {
    /// The kind of the record, for its head.
    pub const KIND: u16 = WIRE_STAY;
}

impl Escalation {
    /// The kind of the record, for its head.
    pub const KIND: u16 = WIRE_ESCALATION;
}

/// Bytes that are no record: the kind, the length found and the least length of that kind (0: unknown kind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Kind read, 0 when there were too few bytes for one.
    pub kind: u16,
    /// Number of bytes found.
    pub len: usize,
    /// Least bytes of that kind.
    pub needed: usize,
}

/// Copies a plain record off the front of `bytes`.
#[inline]
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
pub const PLAIN_SYSCALL: usize = offset_of!(Syscall, cap);
/// Bytes of a [`Switch`], and of a [`Wakeup`].
pub const SCHED: usize = size_of::<Switch>();

/// Bytes of a [`Lock`].
pub const LOCK: usize = size_of::<Lock>();

/// Reads the record of a call, with its captured bytes: [`parse`] for the most frequent records.
///
/// # Errors
/// As [`parse`].
#[inline]
pub fn syscall(bytes: &[u8]) -> Result<(Syscall, &[u8]), BadRecord> {
    let mut call = Syscall::default();
    let data = syscall_into(bytes, &mut call)?;
    Ok((call, data))
}

/// Reads the record of a call into `call`, without the copies of [`syscall`]; returns its captured bytes. A record without
/// captures leaves `call.cap` as it was.
///
/// # Errors
/// As [`parse`]; `call` may have changed.
#[inline]
pub fn syscall_into<'a>(bytes: &'a [u8], call: &mut Syscall) -> Result<&'a [u8], BadRecord> {
    let bad = |needed| BadRecord { kind: kind(bytes), len: bytes.len(), needed };
    if kind(bytes) != WIRE_SYSCALL {
        return Err(bad(0));
    }
    if let Ok(plain) = <&[u8; PLAIN_SYSCALL]>::try_from(bytes) {
        // SAFETY: Syscall is repr(C), made of integers only, and PLAIN_SYSCALL is an offset in it: its first bytes may be any.
        unsafe { ptr::copy_nonoverlapping(plain.as_ptr(), (&raw mut *call).cast::<u8>(), PLAIN_SYSCALL) };
        return if call.captures == 0 { Ok(&[]) } else { Err(bad(size_of::<Syscall>())) };
    }
    let needed = size_of::<Syscall>();
    let Some((head, data)) = bytes.split_at_checked(needed) else { return Err(bad(needed)) };
    // SAFETY: as above, and there are as many bytes as it has.
    unsafe { ptr::copy_nonoverlapping(head.as_ptr(), (&raw mut *call).cast::<u8>(), needed) };
    let captured: usize = captures(call).map(|c| usize::from(c.len)).sum();
    if data.len() < captured {
        return Err(bad(needed + captured));
    }
    Ok(data)
}

/// Reads one record.
///
/// # Errors
/// [`BadRecord`] when the kind is unknown or the bytes are too few for what the record says of itself.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, BadRecord> {
    let kind = kind(bytes);
    Ok(match kind {
        WIRE_SYSCALL => {
            let (r, data) = syscall(bytes)?;
            Record::Syscall(r, data)
        }
        WIRE_EXEC => {
            let (r, data) = copy::<Exec>(bytes, kind)?;
            let (path, argv) = (usize::from(r.path_len), usize::from(r.argv_len));
            if data.len() < path + argv {
                return Err(BadRecord { kind, len: bytes.len(), needed: size_of::<Exec>() + path + argv });
            }
            Record::Exec(r, &data[..path], &data[path..path + argv])
        }
        WIRE_STAY => {
            let (r, data) = copy::<Stay>(bytes, kind)?;
            let (file, path) = (usize::from(r.file_len), usize::from(r.path_len));
            if data.len() < file + path {
                return Err(BadRecord { kind, len: bytes.len(), needed: size_of::<Stay>() + file + path });
            }
            Record::Stay(r, &data[..file], &data[file..file + path])
        }
        WIRE_ESCALATION => {
            let (r, data) = copy::<Escalation>(bytes, kind)?;
            let lens = [r.condition_len, r.what_len, r.tape_len].map(usize::from);
            let needed = lens.iter().sum::<usize>();
            if data.len() < needed {
                return Err(BadRecord { kind, len: bytes.len(), needed: size_of::<Escalation>() + needed });
            }
            let (condition, rest) = data.split_at(lens[0]);
            let (what, rest) = rest.split_at(lens[1]);
            Record::Escalation(r, [condition, what, &rest[..lens[2]]])
        }
        WIRE_ENVIRON => {
            let (r, data) = copy::<Environ>(bytes, kind)?;
            let len = usize::from(r.len);
            let short = BadRecord { kind, len: bytes.len(), needed: size_of::<Environ>() + len };
            Record::Environ(r, data.get(..len).ok_or(short)?)
        }
        WIRE_CGROUP => {
            let (r, data) = copy::<Cgroup>(bytes, kind)?;
            let len = r.path_len as usize;
            let short = BadRecord { kind, len: bytes.len(), needed: size_of::<Cgroup>() + len };
            Record::Cgroup(r, data.get(..len).ok_or(short)?)
        }
        WIRE_SIGNAL => Record::Signal(Box::new(signal_parts(bytes)?)),
        WIRE_FILE => {
            let (file, name) = copy::<File>(bytes, kind)?;
            Record::File(file, name)
        }
        WIRE_PROBE => {
            let (probe, strings) = copy::<Probe>(bytes, kind)?;
            Record::Probe(probe, strings)
        }
        WIRE_STATIC => {
            let (probe, strings) = copy::<Static>(bytes, kind)?;
            Record::Static(probe, strings)
        }
        WIRE_TRACEPOINT => {
            let (mut event, data) = copy::<Tracepoint>(bytes, kind)?;
            if event.row.hdr.flags & tracepoint::PACKET == 0 {
                return Ok(Record::Tracepoint(event, None, data));
            }
            event.row.hdr.flags &= !tracepoint::PACKET;
            let (socket, data) = copy::<Socket>(data, kind)?;
            Record::Tracepoint(event, Some(Box::new(socket)), data)
        }
        _ => fixed(bytes, kind)?,
    })
}

/// A signal's record: with ancestors of either there is room for all of both, then argv and path follow.
fn signal_parts(bytes: &[u8]) -> Result<SignalParts<'_>, BadRecord> {
    let (signal, data) = copy::<Signal>(bytes, WIRE_SIGNAL)?;
    let short = |needed| BadRecord { kind: WIRE_SIGNAL, len: bytes.len(), needed: size_of::<Signal>() + needed };
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
                let (ancestor, tail) = copy::<Ancestor>(rest, WIRE_SIGNAL)?;
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

macro_rules! times {
    ($(($kind:ident, $record:ident, ($($time:tt)+)))*) => {
        /// Place of the time by which a record is ordered; None for bytes that are no record.
        #[inline]
        fn time_at(kind: u16) -> Option<usize> {
            Some(match kind {
                $($kind => offset_of!(types::$record, $($time)+),)*
                _ => return None,
            })
        }
    };
}
ordered_kinds!(times);

/// Time by which a record is ordered: end of a call, else when it happened. None for bytes that are no record.
#[inline]
pub fn time(bytes: &[u8]) -> Option<u64> {
    let at = time_at(kind(bytes))?;
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes)
}

/// The records of an iterator's output, and the number of bytes of an incomplete one at its end.
pub fn snaps(bytes: &[u8]) -> (Vec<Snap>, usize) {
    let mut rest = bytes;
    let mut all = Vec::with_capacity(bytes.len() / size_of::<Snap>());
    while let Ok((snap, tail)) = copy::<Snap>(rest, WIRE_TASK) {
        all.push(snap);
        rest = tail;
    }
    (all, rest.len())
}

/// The captures of a call that are in use.
#[inline]
pub fn captures(r: &Syscall) -> impl Iterator<Item = &Capture> {
    r.cap.iter().take(usize::from(r.captures))
}

/// The socket of a captured name; None when it is none.
pub fn socket(raw: &[u8]) -> Option<Socket> {
    let (&kind, rest) = raw.split_first()?;
    let path = rest.get(offset_of!(Socket, path)..)?;
    if kind != name_kind::SOCKET || path.len() > size_of::<Socket>() - offset_of!(Socket, path) {
        return None;
    }
    let mut whole = [0; size_of::<Socket>()];
    whole[..rest.len()].copy_from_slice(rest);
    copy::<Socket>(&whole, 0).ok().map(|(socket, _)| socket)
}

/// Type of a file in its mode, and that of sockets: include/uapi/linux/stat.h.
const S_IFMT: u16 = 0o170_000;
const S_IFSOCK: u16 = 0o140_000;

/// The records of the iterator over open files; of sockets with what they are called.
pub fn opens(mut bytes: &[u8]) -> impl Iterator<Item = (Open, Option<Socket>)> {
    std::iter::from_fn(move || {
        let (open, rest) = copy::<Open>(bytes, 0).ok()?;
        bytes = rest;
        if open.inode.mode & S_IFMT != S_IFSOCK {
            return Some((open, None));
        }
        let (socket, rest) = copy::<Socket>(bytes, 0).ok()?;
        bytes = rest;
        Some((open, Some(socket)))
    })
}

/// The file that was captured behind a name; None: there is none.
pub fn inode(bytes: &[u8]) -> Option<Inode> {
    copy::<Inode>(bytes, 0).ok().map(|(inode, _)| inode).filter(|inode| inode.inode != 0)
}

/// A comm without its NULs.
pub fn comm(raw: &[i8; 16]) -> Vec<u8> {
    raw.iter().take_while(|&&c| c != 0).map(|&c| c.cast_unsigned()).collect()
}

#[inline]
fn kind(bytes: &[u8]) -> u16 {
    bytes.first_chunk::<2>().map_or(0, |b| u16::from_ne_bytes(*b))
}

/// Turns a captured name (path.bpf.h) into the form of /proc/PID/fd; None when the kernel side could not read it.
pub fn name(raw: &[u8]) -> Option<Vec<u8>> {
    let (&kind, rest) = raw.split_first()?;
    match kind {
        name_kind::PATH | name_kind::DELETED => {
            let mut out = Vec::with_capacity(rest.len() + 10);
            for part in rest.strip_suffix(&[0]).unwrap_or(rest).rsplit(|&b| b == 0) {
                out.push(b'/');
                out.extend_from_slice(part);
            }
            if kind == name_kind::DELETED {
                out.extend_from_slice(b" (deleted)");
            }
            Some(out)
        }
        name_kind::PIPE | name_kind::SOCKET => {
            let ino = u64::from_ne_bytes(rest.first_chunk::<8>().copied()?);
            Some(format!("{}:[{ino}]", if kind == name_kind::PIPE { "pipe" } else { "socket" }).into_bytes())
        }
        name_kind::ANON => {
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
        let mut short = vec![b's'];
        short.extend(17u64.to_ne_bytes());
        assert!(socket(&short).is_none() && socket(&pipe).is_none());
        short.resize(1 + offset_of!(Socket, path), 0);
        assert_eq!((socket(&short).unwrap().inode, name(&short).unwrap()), (17, b"socket:[17]".to_vec()));
        short.resize(2 + size_of::<Socket>(), 0);
        assert!(socket(&short).is_none());
        assert_eq!(name(b"a[eventfd]\0").unwrap(), b"anon_inode:[eventfd]");
        assert_eq!(name(b"?"), None);
        assert_eq!(name(b""), None);
        assert_eq!(name(b"p12"), None);
    }

    #[test]
    fn short_and_unknown_bytes_are_refused() {
        assert_eq!(parse(&[]).unwrap_err().needed, 0);
        assert_eq!(parse(&[1, 0, 0]).unwrap_err(), BadRecord { kind: 1, len: 3, needed: size_of::<Syscall>() });
        let mut bytes = vec![0u8; size_of::<Syscall>()];
        bytes[0] = 1;
        assert!(matches!(parse(&bytes), Ok(Record::Syscall(_, []))));
        assert!(matches!(parse(&bytes[..112]), Ok(Record::Syscall(_, []))), "without captures");
        assert!(parse(&bytes[..113]).is_err());
        // one capture of 9 bytes that are not there
        bytes[110] = 1;
        bytes[112 + 2] = 9;
        assert_eq!(parse(&bytes).unwrap_err().needed, size_of::<Syscall>() + 9);
        assert_eq!(parse(&bytes[..112]).unwrap_err().needed, size_of::<Syscall>());
        bytes[0] = 77;
        assert_eq!(parse(&bytes).unwrap_err().kind, 77);
    }

    #[test]
    fn a_call_is_read_into_what_held_another() {
        let mut bytes = vec![0u8; size_of::<Syscall>() + 9];
        (bytes[0], bytes[110], bytes[112 + 2]) = (1, 1, 9);
        bytes[size_of::<Syscall>()..].fill(7);
        let mut call = Syscall::default();
        assert_eq!(syscall_into(&bytes, &mut call).unwrap(), [7; 9]);
        assert_eq!(captures(&call).map(|c| c.len).collect::<Vec<_>>(), [9]);
        bytes[110] = 0;
        assert_eq!(syscall_into(&bytes[..PLAIN_SYSCALL], &mut call).unwrap(), [0; 0]);
        assert_eq!(captures(&call).count(), 0, "those of the call before are not its own");
        bytes[0] = 9;
        assert!(syscall_into(&bytes[..PLAIN_SYSCALL], &mut call).is_err());
        assert!(fixed_record::<Switch>(&bytes[..SCHED]).is_some());
        assert!(fixed_record::<Switch>(&bytes[..SCHED - 1]).is_none() && fixed_record::<Wakeup>(&bytes).is_none());
    }

    #[test]
    fn time_is_read_from_where_the_record_has_it() {
        let mut r = Syscall::default();
        r.hdr.kind = WIRE_SYSCALL;
        r.end = 0x1122_3344;
        // SAFETY: a plain record of integers, read as its bytes.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const r).cast::<u8>(), size_of::<Syscall>()) };
        assert_eq!(time(bytes), Some(0x1122_3344));
        let mut t = Task::default();
        t.hdr.kind = WIRE_TASK;
        t.ts = 99;
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const t).cast::<u8>(), size_of::<Task>()) };
        assert_eq!(time(bytes), Some(99));
        // a task within another record
        let mut f = Fork { parent: Ident { start: 1, ..Ident::default() }, ..Fork::default() };
        (f.child.hdr.kind, f.child.ts) = (WIRE_FORK, 7);
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const f).cast::<u8>(), size_of::<Fork>()) };
        assert_eq!(time(bytes), Some(7));
        assert_eq!(time(&bytes[..8]), None, "too short");
        // it comes in a ring of its own
        assert_eq!(time(&[WIRE_STACK.to_ne_bytes(), [0; 2]].concat().repeat(40)), None);
    }

    #[test]
    fn kinds_are_read_as_what_they_are() {
        let mut bytes = vec![0u8; 512];
        for (kind, read) in
            [(WIRE_WAKEUP, "Wakeup"), (WIRE_OPERATION, "Operation"), (WIRE_EXIT, "Exit"), (WIRE_EXEC, "Exec")]
        {
            bytes[..2].copy_from_slice(&kind.to_ne_bytes());
            let record = format!("{:?}", parse(&bytes).unwrap());
            assert!(record.starts_with(&format!("{read}(")), "{record}");
        }
        assert_eq!(parse(&bytes[..20]).unwrap_err().needed, size_of::<Exec>());
    }
}
