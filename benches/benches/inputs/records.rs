//! Wire records of syscalls, as the BPF side sends them.

use std::mem::{offset_of, size_of};

use systape_bpf::wire::{self, Syscall};

/// Records of an input.
pub(crate) const ROWS: usize = 64 << 10;

const PATH: &[u8] = b"/srv/data/shard07/part-00911.dat";

/// Records in the order of a ring: call ends, 2 µs apart, the first `offset` ns after time 0. Each `every`th has a path (0: none).
pub(crate) fn ring(rows: usize, offset: u64, every: usize) -> Vec<Vec<u8>> {
    (0..rows).map(|row| record(row, offset, every > 0 && row.is_multiple_of(every))).collect()
}

fn record(row: usize, offset: u64, path: bool) -> Vec<u8> {
    let mut call = Syscall::default();
    call.hdr.kind = 1;
    (call.id.tid, call.id.pid, call.id.start) = (4711, 4711, 1);
    call.end = offset + row as u64 * 2000;
    call.start = call.end.saturating_sub(300);
    (call.ret, call.nr, call.abi, call.state) = (1, row as u32 % 2, 1, 1);
    if path {
        call.captures = 1;
        call.cap[0] = wire::Capture { arg: 1, status: 1, len: PATH.len() as u16, ..wire::Capture::default() };
    }
    // SAFETY: a record of integers without padding, read as its bytes.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const call).cast::<u8>(), size_of::<Syscall>()) };
    if path { [bytes, PATH].concat() } else { bytes[..offset_of!(Syscall, cap)].to_vec() }
}
