//! What the arguments of calls in flight point to: strings, addresses, structures, futexes; and what kind of file they wait for.
//!
//! The BPF programs copy such memory when a call is entered. Of calls that began before the recording, and of those that have not
//! ended when it ends, it is read here. Reading another task's memory waits for its process's mmap lock and for pages, so callers do
//! it in a thread that may be left behind ([`crate::machine::patient`]). A thread that has left its call meanwhile has no answer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use systape_abi::{Abi, ArgKind, Selection, Structs, SyscallDesc, describe};
use systape_bpf::values::{byte_status, call_state, capture_arg, snap_match, struct_count, struct_when};
use systape_bpf::wire::{self, Capture, Snap, StructRule, Syscall};

use crate::calls::tables::rules_of;
use crate::calls::waits_in::WaitsIn;
use crate::machine::bounded;
use crate::machine::patient::{JobProgress, each};
use crate::own::clock;

/// Most calls that are read.
const MOST_CALLS: usize = 4096;
/// Most bytes of a string.
const MOST_STRING: usize = 4096;
/// Most bytes of a socket's address or another value whose length an argument says.
const MOST_BYTES: u64 = 128;
/// Most bytes of one call: with as many values as a record holds.
const MOST_VALUE: usize = 4096;
const PAGE: u64 = 4096;
/// Bit of an x32 call's number.
const X32: u32 = 0x4000_0000;

/// What is to be read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The selected calls.
    pub selection: Selection,
    /// Most bytes of a string.
    pub string_limit: u32,
    /// Which structures.
    pub structs: Structs,
}

/// A call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    tid: u32,
    start: u64,
    here_pid: u32,
    here_tid: u32,
    abi: u8,
    nr: u32,
    args: [u64; 6],
    /// It began before the recording, and others may have given the number of its descriptor to another file.
    shares: bool,
}

/// A value: its argument, [`byte_status`], full length (0: not known), bytes.
type Value = (u8, u8, u32, Vec<u8>);

/// What a call's arguments point to.
#[derive(Clone, Debug)]
pub(crate) struct CallMemory {
    asked: Asked,
    /// When it was read: until then the call was in flight.
    read: u64,
    values: Vec<Value>,
    /// What it waits in, if it shares its descriptors.
    waits_in: Option<WaitsIn>,
}

impl Wanted {
    /// The calls of `snaps` with anything to read, by process as in /proc.
    pub(crate) fn calls(&self, snaps: &[Snap]) -> BTreeMap<u32, Vec<Asked>> {
        let mut calls: BTreeMap<u32, Vec<Asked>> = BTreeMap::new();
        let mut users: HashMap<u64, u32> = HashMap::new();
        snaps.iter().for_each(|snap| *users.entry(snap.files).or_default() += 1);
        let in_call = |snap: &&Snap| {
            let recorded = !matches!(snap.matched, snap_match::NO | wire::SNAP_IDLE);
            recorded && snap.nr != wire::SNAP_NO_CALL && snap.task.here_tid != 0
        };
        let selected = |snap: &&Snap| self.selection.contains(Abi::from_raw(snap.abi), snap.nr);
        for snap in snaps.iter().filter(in_call).filter(selected).take(MOST_CALLS) {
            let Snap { abi, nr, args, ref task, .. } = *snap;
            let (here_pid, here_tid) = (task.here_pid, task.here_tid);
            let shares = snap.files != 0 && users[&snap.files] > 1 && snap.call_start == 0 && is_on_one(abi, nr);
            let asked = Asked { tid: task.id.tid, start: task.id.start, here_pid, here_tid, abi, nr, args, shares };
            if asked.shares || !self.places(&asked).is_empty() {
                calls.entry(here_pid).or_default().push(asked);
            }
        }
        calls
    }

    /// Reads those of one process; the threads that left their calls meanwhile have none.
    pub(crate) fn read(&self, calls: &[Asked], moved: &JobProgress) -> Vec<CallMemory> {
        let one = |asked: &Asked| {
            moved.step();
            let places = self.places(asked);
            let memory = if places.is_empty() { None } else { TaskMemory::of(asked) };
            let value = |place| self.value(memory.as_ref()?, place);
            let values: Vec<Value> = places.into_iter().filter_map(value).collect();
            let waits_in = if asked.shares { WaitsIn::read(asked.here_pid, asked.here_tid) } else { None };
            let read = clock::monotonic();
            let any = !values.is_empty() || waits_in.is_some();
            (any && asked.is_in_flight()).then_some(CallMemory { asked: *asked, read, values, waits_in })
        };
        calls.iter().filter_map(one).collect()
    }

    /// All of them, without waiting for those that hang.
    pub(crate) fn read_all(&self, snaps: &[Snap]) -> Vec<CallMemory> {
        let jobs: Vec<Vec<Asked>> = self.calls(snaps).into_values().collect();
        let (own, mut found) = (self.clone(), Vec::new());
        each("calls", jobs, move |calls, moved| own.read(&calls, moved), |_, memory| found.extend(memory));
        found
    }

    fn places(&self, asked: &Asked) -> Vec<Place> {
        let abi = Abi::from_raw(asked.abi);
        let Some(desc) = describe(abi, asked.nr) else { return Vec::new() };
        let ops = desc.struct_ops();
        let op = asked.args[1] & 0x7f;
        let structs = if ops == 0 || (op < 16 && ops >> op & 1 == 1) { self.structs } else { Structs::None };
        let rules = rules_of(desc, abi, structs);
        let strings = desc.args.iter().enumerate().filter_map(|(at, arg)| memory_of(desc, at, arg.kind, &asked.args));
        let pointed = rules.rules.iter().filter_map(|rule| structure(rule, &asked.args));
        strings.chain(pointed).filter(|place| place.address != 0).take(Syscall::default().cap.len()).collect()
    }

    fn value(&self, memory: &TaskMemory, place: Place) -> Option<Value> {
        let Some(len) = place.len else {
            let most = MOST_STRING.min(self.string_limit as usize);
            let (bytes, whole) = string(memory, place.address, most)?;
            let full = if whole { bytes.len() as u32 } else { 0 };
            let status = if whole { byte_status::WHOLE } else { byte_status::TRUNCATED };
            return Some((place.arg, status, full, bytes));
        };
        let mut bytes = vec![0; len.min(place.most) as usize];
        let n = memory.read_at(place.address, &mut bytes);
        let status = if len > place.most { byte_status::TRUNCATED } else { byte_status::WHOLE };
        (n == bytes.len() && n > 0).then_some((place.arg, status, u32::try_from(len).unwrap_or(u32::MAX), bytes))
    }
}

/// Whether the call is on one descriptor.
fn is_on_one(abi: u8, nr: u32) -> bool {
    describe(Abi::from_raw(abi), nr).is_some_and(|desc| matches!(desc.fd_args(), [Some(_), None]))
}

impl Asked {
    /// Whether the thread is in this very call, as far as numbers say.
    fn is_in_flight(&self) -> bool {
        let path = format!("/proc/{}/task/{}/syscall", self.here_pid, self.here_tid);
        let Ok(line) = bounded::lines(path, bounded::LINES) else { return false };
        let mut words = line.split_whitespace();
        let nr = words.next().and_then(|nr| nr.parse::<u32>().ok());
        let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        nr.is_some_and(|nr| nr & !X32 == self.nr & !X32) && words.take(6).map(hex).eq(self.args.map(Some))
    }
}

impl CallMemory {
    /// Whose it is: tid, and when the thread began.
    pub(crate) fn key(&self) -> (u32, u64) {
        (self.asked.tid, self.asked.start)
    }

    /// When it was read.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// Whether it is the call `s`.
    fn is(&self, s: &Syscall) -> bool {
        let Asked { abi, nr, args, .. } = self.asked;
        // one that had ended when it was read was followed by another of the same kind; what is open at the end was looked at since
        let other = s.state != call_state::IN_FLIGHT && s.end < self.read;
        (s.abi, s.nr, s.args) == (abi, nr, args) && !other
    }

    /// Whether the descriptor of the call `s` may have that name, as far as is known.
    pub(crate) fn fits(&self, s: &Syscall, name: &[u8]) -> bool {
        self.waits_in.is_none_or(|kind| !self.is(s) || kind.fits(name))
    }

    /// The call `s` with this memory among its captured values, if it is that call; `data`: the values that it has.
    pub(crate) fn join(&self, s: &Syscall, data: &[u8]) -> Option<(Syscall, Vec<u8>)> {
        if !self.is(s) {
            return None;
        }
        // what the programs have of such a call they read when it returned
        let own = |arg: u8| self.values.iter().any(|(known, ..)| *known == arg);
        let (mut joined, mut bytes, mut fits) = (Syscall { captures: 0, ..*s }, Vec::new(), true);
        for (arg, status, full, value) in &self.values {
            let len = u16::try_from(value.len()).ok()?;
            fits &= add(&mut joined, Capture { arg: *arg, status: *status, len, full: *full });
            bytes.extend_from_slice(value);
        }
        let mut rest = data;
        for capture in wire::captures(s) {
            let (value, behind) = rest.split_at_checked(capture.len.into())?;
            rest = behind;
            if !own(capture.arg) {
                fits &= add(&mut joined, *capture);
                bytes.extend_from_slice(value);
            }
        }
        fits.then_some((joined, bytes))
    }
}

/// Keeps what was read between two looks at all tasks of those that ran neither then nor in between. Others may be in a call of the same
/// kind that points to something else; and without the time when they ran last it is not known.
pub(crate) fn keep_those_asleep(memory: &mut Vec<CallMemory>, before: &[Snap], after: &[Snap]) {
    let asleep = |snap: &&Snap| snap.on_cpu == 0 && snap.state != b'R' && snap.last_run != 0;
    let ran = |snap: &Snap| ((snap.task.id.tid, snap.task.id.start), snap.last_run);
    let since: HashMap<(u32, u64), u64> = before.iter().filter(asleep).map(ran).collect();
    let still: HashSet<(u32, u64)> = after
        .iter()
        .filter(asleep)
        .map(ran)
        .filter(|(task, run)| since.get(task) == Some(run))
        .map(|(task, _)| task)
        .collect();
    memory.retain(|call| still.contains(&call.key()));
}

/// Whether there was room for one more.
fn add(s: &mut Syscall, capture: Capture) -> bool {
    let at = usize::from(s.captures);
    s.cap.get_mut(at).is_some_and(|to| {
        *to = capture;
        s.captures += 1;
        true
    })
}

/// Memory that an argument points to.
#[derive(Clone, Copy, Debug)]
struct Place {
    arg: u8,
    address: u64,
    /// None: to the NUL.
    len: Option<u64>,
    /// Most bytes that are kept.
    most: u64,
}

/// A string, or bytes with a length in another argument.
fn memory_of(desc: &SyscallDesc, at: usize, kind: ArgKind, args: &[u64; 6]) -> Option<Place> {
    let (arg, address) = (at as u8, *args.get(at)?);
    match kind {
        ArgKind::Path | ArgKind::FileName | ArgKind::Str => Some(Place { arg, address, len: None, most: 0 }),
        ArgKind::SockaddrIn { len_arg } | ArgKind::OpenHow { len_arg } | ArgKind::CloneArgs { len_arg } => {
            debug_assert!(usize::from(len_arg) < desc.args.len());
            let len = u64::from(*args.get(usize::from(len_arg))? as u32);
            Some(Place { arg, address, len: Some(len), most: MOST_BYTES })
        }
        _ => None,
    }
}

/// A structure that had its value when the call began.
fn structure(rule: &StructRule, args: &[u64; 6]) -> Option<Place> {
    if rule.when & struct_when::ENTER == 0 {
        return None;
    }
    let (size, most) = (u64::from(rule.size), u64::from(rule.most));
    let address = *args.get(usize::from(rule.arg))?;
    let count = match rule.count {
        struct_count::ONE => 1,
        struct_count::RETURNED => return None,
        struct_count::BITS => (args[0] as u32 as u64).div_ceil(8 * size.max(1)),
        struct_count::TO_PAGE => ((PAGE - address % PAGE) / size.max(1)).min(most),
        at => u64::from(*args.get(usize::from(at))? as u32),
    };
    let arg = if rule.when & struct_when::BESIDE != 0 { capture_arg::CAPTURE_FUTEX } else { rule.arg };
    Some(Place { arg, address, len: Some(count * size), most: (most * size).min(MOST_VALUE as u64) })
}

/// Bytes up to a NUL, at most `most`, and whether that is all.
fn string(memory: &TaskMemory, address: u64, most: usize) -> Option<(Vec<u8>, bool)> {
    let mut out = Vec::new();
    // one more says whether it goes on; page by page, because the next one may not exist
    while out.len() <= most {
        let from = address.checked_add(out.len() as u64)?;
        let step = (PAGE - from % PAGE).min((most + 1 - out.len()) as u64) as usize;
        let mut part = vec![0; step];
        if memory.read_at(from, &mut part) != step {
            return None;
        }
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            out.extend_from_slice(&part[..end]);
            return Some((out, true));
        }
        out.append(&mut part);
    }
    out.truncate(most);
    Some((out, false))
}

/// Memory of a task. Not by process_vm_readv: that waits for the process's mmap lock where no signal ends it, so that `record` could not
/// exit while another process is stuck with the lock held.
struct TaskMemory(File);

impl TaskMemory {
    fn of(asked: &Asked) -> Option<Self> {
        File::open(format!("/proc/{}/task/{}/mem", asked.here_pid, asked.here_tid)).ok().map(Self)
    }

    /// Reads from `address` on; returns how many bytes.
    fn read_at(&self, address: u64, to: &mut [u8]) -> usize {
        // the file's offsets are signed
        if i64::try_from(address).is_err() { 0 } else { self.0.read_at(to, address).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use systape_bpf::wire::{Ident, Task};

    use super::*;

    fn wanted() -> Wanted {
        Wanted { selection: Selection::all(), string_limit: 8, structs: Structs::Waits }
    }

    fn asked(name: &str, args: [u64; 6]) -> Asked {
        let nr = systape_abi::number(Abi::X86_64, name).expect("a call");
        let here_tid = std::process::id();
        Asked { tid: 7, start: 1, here_pid: here_tid, here_tid, abi: Abi::X86_64 as u8, nr, args, shares: false }
    }

    /// What the arguments of a call point to, in this process.
    fn values(name: &str, args: [u64; 6]) -> Vec<Value> {
        let asked = asked(name, args);
        let memory = TaskMemory::of(&asked).expect("its own memory");
        wanted().places(&asked).into_iter().filter_map(|place| wanted().value(&memory, place)).collect()
    }

    #[test]
    fn strings_and_structures_are_read() {
        let (short, long) = (CString::new("/a/b").unwrap(), CString::new("/a/longer/one").unwrap());
        let [short, long] = [&short, &long].map(|text| text.as_ptr().addr() as u64);
        assert_eq!(
            values("renameat2", [0, short, 0, long, 0, 0]),
            [(1, byte_status::WHOLE, 4, b"/a/b".to_vec()), (3, byte_status::TRUNCATED, 0, b"/a/longe".to_vec()),]
        );
        assert_eq!(values("openat", [0, 16, 0, 0, 0, 0]), [], "nothing is there");
        let polled = [3_u32, 1, 4, 1];
        let address = polled.as_ptr().addr() as u64;
        let bytes: Vec<u8> = polled.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(values("poll", [address, 2, 0, 0, 0, 0]), [(0, byte_status::WHOLE, 16, bytes)]);
    }

    #[test]
    fn futexes_are_read_when_they_are_waited_for() {
        let words = [2_u32, 1, 77, 0];
        let address = words.as_ptr().addr() as u64;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let value = (capture_arg::CAPTURE_FUTEX, byte_status::WHOLE, 16, bytes);
        assert_eq!(values("futex", [address, 128, 2, 0, 0, 0]), [value]);
        assert_eq!(values("futex", [address, 129, 1, 0, 0, 0]), [], "a wake");
    }

    #[test]
    fn who_ran_meanwhile_has_no_memory() {
        let snap = |tid, last_run, state| {
            let task = Task { id: Ident { tid, start: 1, ..Ident::default() }, ..Task::default() };
            Snap { task, last_run, state, ..Snap::default() }
        };
        let before = [snap(1, 10, b'S'), snap(2, 10, b'S'), snap(3, 10, b'R'), snap(4, 0, b'S'), snap(5, 10, b'D')];
        let after = [snap(1, 10, b'S'), snap(2, 12, b'S'), snap(3, 10, b'S'), snap(4, 0, b'S')];
        let of = |tid| CallMemory {
            asked: Asked { tid, ..asked("openat", [0; 6]) },
            read: 5,
            values: Vec::new(),
            waits_in: None,
        };
        let mut memory: Vec<CallMemory> = (1..=5).map(of).collect();
        keep_those_asleep(&mut memory, &before, &after);
        assert_eq!(memory.iter().map(|call| call.key().0).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn only_the_call_itself_is_joined() {
        let asked = asked("openat", [1, 2, 3, 4, 5, 6]);
        let values = vec![(1, byte_status::WHOLE, 1, b"x".to_vec())];
        let memory = CallMemory { asked, read: 100, values, waits_in: Some(WaitsIn::Pipe) };
        let call = Syscall { nr: asked.nr, abi: asked.abi, args: asked.args, end: 120, ..Syscall::default() };
        let (joined, data) = memory.join(&call, &[]).expect("the same");
        assert_eq!((joined.captures, joined.cap[0].arg, &data[..]), (1, 1, &b"x"[..]));
        assert!(memory.join(&Syscall { end: 90, ..call }, &[]).is_none(), "it had ended before");
        let mut late = Syscall { captures: 2, ..call };
        late.cap[0] = Capture { arg: 1, status: byte_status::LATE, len: 2, full: 2 };
        late.cap[1] = Capture { arg: 8, status: byte_status::WHOLE, len: 1, full: 1 };
        let (joined, data) = memory.join(&late, b"yyz").expect("the same");
        assert_eq!(
            (joined.captures, joined.cap[1].arg, &data[..]),
            (2, 8, &b"xz"[..]),
            "instead of what was read late"
        );
        assert!(memory.fits(&call, b"pipe:[7]") && !memory.fits(&call, b"/app.log"));
        assert!(memory.fits(&Syscall { nr: 1, ..call }, b"/app.log"), "of another call it says nothing");
        let open = Syscall { end: 90, state: call_state::IN_FLIGHT, ..call };
        assert!(memory.join(&open, &[]).is_some() && memory.join(&Syscall { nr: 1, ..call }, &[]).is_none());
    }
}
