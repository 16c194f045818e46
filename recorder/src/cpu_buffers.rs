//! The buffers of calls that the BPF programs fill without a helper: one per CPU, in maps that are memory of this process as well.
//!
//! `bpf/src/c/maps.bpf.h` (`cpu_buffers`, `buffered_calls`) has the layout. A CPU's program is the only one that writes its
//! records and its head, and this side the only one that writes its tail.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use systape_bpf::wire::{CpuBuffer, PLAIN_SYSCALL};

/// The buffers of all CPUs.
#[derive(Debug)]
pub struct CpuBuffers {
    positions: MmapRaw,
    records: MmapRaw,
    cpus: usize,
    /// Of each CPU; a power of two.
    room: usize,
}

impl CpuBuffers {
    /// Maps the two maps, of `cpus` buffers for `room` records each; `room` is a power of two.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn map(positions: BorrowedFd<'_>, records: BorrowedFd<'_>, cpus: usize, room: usize) -> io::Result<Self> {
        let map = |fd: BorrowedFd<'_>, bytes| MmapOptions::new().len(bytes).map_raw(fd.as_raw_fd());
        Ok(Self {
            positions: map(positions, cpus * size_of::<CpuBuffer>())?,
            records: map(records, cpus * room * PLAIN_SYSCALL)?,
            cpus,
            room,
        })
    }

    /// Hands every record that is there to `record`, and frees its room. Returns how many bytes there were on all CPUs, and on
    /// one at most.
    pub fn drain(&mut self, mut record: impl FnMut(&[u8])) -> (u64, u64) {
        let (mut all, mut most) = (0, 0);
        for cpu in 0..self.cpus {
            let head = self.position(cpu, std::mem::offset_of!(CpuBuffer, head)).load(Ordering::Acquire);
            let tail_at = self.position(cpu, std::mem::offset_of!(CpuBuffer, tail));
            // only we write it
            let tail = tail_at.load(Ordering::Relaxed);
            // more than there is room for is never written
            let count = head.wrapping_sub(tail).min(self.room as u64);
            (0..count).for_each(|at| record(self.record(cpu, tail.wrapping_add(at))));
            if count > 0 {
                tail_at.store(head, Ordering::Release);
                let bytes = count * PLAIN_SYSCALL as u64;
                all += bytes;
                most = most.max(bytes);
            }
        }
        (all, most)
    }

    fn position(&self, cpu: usize, offset: usize) -> &AtomicU64 {
        debug_assert!(cpu < self.cpus);
        // SAFETY: within the mapping, which has a CpuBuffer for each CPU and begins at a page; all use of it is atomic.
        unsafe { AtomicU64::from_ptr(self.positions.as_mut_ptr().add(cpu * size_of::<CpuBuffer>() + offset).cast()) }
    }

    fn record(&self, cpu: usize, position: u64) -> &[u8] {
        let at = cpu * self.room + (position as usize & (self.room - 1));
        // SAFETY: within the mapping, which has `room` records for each CPU; the program does not write between tail and
        // head, and drain() moves the tail when nothing refers to the record any more.
        unsafe { std::slice::from_raw_parts(self.records.as_ptr().add(at * PLAIN_SYSCALL), PLAIN_SYSCALL) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    const CPUS: usize = 3;
    const ROOM: usize = 4;

    /// What a program does: the files stand for the maps.
    fn write(positions: &File, records: &File, cpu: usize, number: u64) -> bool {
        let at = (cpu * size_of::<CpuBuffer>()) as u64;
        let read = |offset: usize| {
            let mut word = [0; 8];
            positions.read_exact_at(&mut word, at + offset as u64).unwrap();
            u64::from_ne_bytes(word)
        };
        let head_at = std::mem::offset_of!(CpuBuffer, head);
        let head = read(head_at);
        if head - read(std::mem::offset_of!(CpuBuffer, tail)) == ROOM as u64 {
            return false;
        }
        let slot = cpu * ROOM + head as usize % ROOM;
        let record: Vec<u8> = number.to_ne_bytes().into_iter().cycle().take(PLAIN_SYSCALL).collect();
        records.write_all_at(&record, (slot * PLAIN_SYSCALL) as u64).unwrap();
        positions.write_all_at(&(head + 1).to_ne_bytes(), at + head_at as u64).unwrap();
        true
    }

    #[test]
    fn records_come_out_once_by_cpu_and_make_room() {
        let (positions, records) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        positions.set_len((CPUS * size_of::<CpuBuffer>()) as u64).unwrap();
        records.set_len((CPUS * ROOM * PLAIN_SYSCALL) as u64).unwrap();
        let mut buffers = CpuBuffers::map(positions.as_fd(), records.as_fd(), CPUS, ROOM).unwrap();
        let drain = |buffers: &mut CpuBuffers| {
            let mut seen = Vec::new();
            let (all, most) = buffers.drain(|record| {
                assert!(record.chunks(8).all(|word| word == &record[..8]) && record.len() == PLAIN_SYSCALL);
                seen.push(u64::from_ne_bytes(*record.first_chunk().unwrap()));
            });
            assert_eq!(all, (seen.len() * PLAIN_SYSCALL) as u64);
            (seen, most / PLAIN_SYSCALL as u64)
        };
        assert_eq!(drain(&mut buffers), (vec![], 0));
        let put = |cpu, number| write(&positions, &records, cpu, number);
        assert_eq!([1, 2, 3, 4, 5].map(|number| put(2, number)), [true, true, true, true, false]);
        assert_eq!([6, 7].map(|number| put(0, number)), [true, true]);
        assert_eq!(drain(&mut buffers), (vec![6, 7, 1, 2, 3, 4], 4));
        // around the end, many times
        for round in 0..20 {
            assert_eq!([8, 9, 10].map(|number| put(1, round + number)), [true, true, true]);
            assert_eq!(drain(&mut buffers), (vec![round + 8, round + 9, round + 10], 3));
        }
        assert_eq!(drain(&mut buffers), (vec![], 0));
    }
}
