//! Wire records of threads that work through files, as the BPF side sends them.

use std::mem::{offset_of, size_of};

use systape_bpf::wire::{CAPTURE_NAME0, Capture, Closing, Ident, Switch, Syscall, Wakeup, Who};

/// The kinds of records, as `bpf/src/c/events.def.h` numbers them.
mod kind {
    pub(super) const SYSCALL: u16 = 1;
    pub(super) const CLOSING: u16 = 2;
    pub(super) const SWITCH: u16 = 9;
    pub(super) const WAKEUP: u16 = 10;
}

/// x86-64.
const ABI: u8 = 1;
const FIRST_TID: u32 = 4711;
const THREADS: usize = 6;
const FILES: usize = 2000;

/// Events for each time that a thread works on a file: 7 calls, a wake-up and a switch.
pub(crate) const PER_FILE: usize = 9;

/// Switches between two tasks, 2 µs apart.
pub(crate) fn switches(rows: usize) -> Vec<Vec<u8>> {
    (0..rows).map(|row| switch(row as u64 * 2000, FIRST_TID + row as u32 % 2, FIRST_TID + 1 - row as u32 % 2)).collect()
}

/// [`PER_FILE`] events for each of `times`, in the rings of two CPUs, in that of calls that change descriptors, and in those
/// of wake-ups and switches. A thread looks at a file, opens it, reads it, writes what it read, closes it, and another
/// thread has the CPU.
pub(crate) fn files(times: usize) -> [Vec<Vec<u8>>; 5] {
    let [mut calls, mut other_calls, mut state, mut wakeups, mut switches] = [const { Vec::new() }; 5];
    for at in 0..times {
        let (tid, file) = (FIRST_TID + (at % THREADS) as u32, at % FILES);
        let path = format!("/srv/data/shard{:02}/part-{file:05}.dat", file % 40);
        // the leaf first
        let name = format!("Ppart-{file:05}.dat\0shard{:02}\0data\0srv\0", file % 40);
        let mut ts = 1000 + at as u64 * 20_000;
        let mut next = |nr: u32, arg: u64| {
            ts += 1500;
            call(tid, at as u32 % 2, ts, nr, arg)
        };
        let bulk = if at % 2 == 0 { &mut calls } else { &mut other_calls };
        bulk.push(with_captures(next(262, 100), &[(1, path.as_bytes())]));
        let opened = Syscall { ret: 3, ..next(257, 100) };
        state.push(with_captures(opened, &[(1, path.as_bytes()), (CAPTURE_NAME0, name.as_bytes())]));
        bulk.extend([(5, 3), (0, 3), (0, 3), (1, 1)].map(|(nr, fd)| with_captures(next(nr, fd), &[])));
        let close = next(3, 3);
        state.push(closing(&close));
        state.push(with_captures(close, &[]));
        let other = FIRST_TID + ((at + 1) % THREADS) as u32;
        wakeups.push(wakeup(ts + 200, tid, other));
        switches.push(switch(ts + 500, tid, other));
    }
    [calls, other_calls, state, wakeups, switches]
}

fn call(tid: u32, cpu: u32, end: u64, nr: u32, arg: u64) -> Syscall {
    let id = Ident { tid, pid: tid, start: 1, leader_start: 1 };
    let mut call = Syscall { id, end, start: end - 300, nr, abi: ABI, state: 1, ..Syscall::default() };
    (call.hdr.kind, call.hdr.cpu, call.args[0]) = (kind::SYSCALL, cpu, arg);
    call
}

fn with_captures(mut call: Syscall, captures: &[(u8, &[u8])]) -> Vec<u8> {
    call.captures = captures.len() as u8;
    for (to, (arg, data)) in call.cap.iter_mut().zip(captures) {
        let len = data.len() as u16;
        *to = Capture { arg: *arg, status: 1, len, full: len.into() };
    }
    let head = if captures.is_empty() { offset_of!(Syscall, cap) } else { size_of::<Syscall>() };
    let mut record = bytes(&call)[..head].to_vec();
    captures.iter().for_each(|(_, data)| record.extend_from_slice(data));
    record
}

/// That `close` was entered.
fn closing(close: &Syscall) -> Vec<u8> {
    let Syscall { id, start: ts, nr, abi, args, .. } = *close;
    let mut closing = Closing { id, ts, nr, abi, args: [args[0], 0, 0], ..Closing::default() };
    closing.hdr.kind = kind::CLOSING;
    bytes(&closing).to_vec()
}

fn who(tid: u32) -> Who {
    let mut who = Who { tid, pid: tid, start: 1, ..Who::default() };
    who.comm.iter_mut().zip(b"worker").for_each(|(to, &c)| *to = c.cast_signed());
    who
}

fn switch(ts: u64, prev: u32, next: u32) -> Vec<u8> {
    let mut switch = Switch { ts, prev: who(prev), next: who(next), ..Switch::default() };
    switch.hdr.kind = kind::SWITCH;
    bytes(&switch).to_vec()
}

fn wakeup(ts: u64, waker: u32, wakee: u32) -> Vec<u8> {
    let mut wakeup = Wakeup { ts, waker: who(waker), wakee: who(wakee), ..Wakeup::default() };
    wakeup.hdr.kind = kind::WAKEUP;
    bytes(&wakeup).to_vec()
}

/// Records of integers without padding.
trait Plain {}
impl Plain for Syscall {}
impl Plain for Closing {}
impl Plain for Switch {}
impl Plain for Wakeup {}

fn bytes<T: Plain>(record: &T) -> &[u8] {
    // SAFETY: integers without padding, read as their bytes.
    unsafe { std::slice::from_raw_parts((&raw const *record).cast::<u8>(), size_of::<T>()) }
}
