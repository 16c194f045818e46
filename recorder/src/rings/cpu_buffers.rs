//! The buffers that the BPF programs fill without a helper: for each CPU one of calls, one of switches and one of
//! wake-ups, in maps that are also mapped into this process.
//!
//! The number of a buffer's records is the only thing that both sides synchronize by: a program stores it behind its record
//! (`bpf/src/c/order.bpf.h`), this side loads it before it reads one ([`SEES`]), and frees room behind its reads ([`FREES`]).
//!
//! `bpf/src/c/maps.bpf.h` (`cpu_buffers`, `buffered_calls`, `buffered_sched`) has the layout. Only one program on that
//! CPU writes a buffer's records and its head, and only this side writes its tail.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use systape_bpf::buffer;
use systape_bpf::wire::{CpuBuffer, PLAIN_SYSCALL, SCHED};

/// How a number of records is loaded: what the program wrote before it is seen.
const SEES: Ordering = Ordering::Acquire;
/// How the number of those that were read is stored: the reads come before it.
const FREES: Ordering = Ordering::Release;

/// Bytes of (or in) a buffer of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferBytes {
    /// Bytes of calls.
    pub calls: u64,
    /// Bytes of switches, and the same size of wake-ups.
    pub sched: u64,
}

impl BufferBytes {
    /// The larger number of each kind.
    pub(crate) fn most(self, other: Self) -> Self {
        Self { calls: self.calls.max(other.calls), sched: self.sched.max(other.sched) }
    }
}

/// Capacity of the buffers in records; powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rooms {
    /// CPUs that have buffers.
    pub cpus: u32,
    /// Records of each buffer of calls.
    pub calls: u32,
    /// Records of each buffer of switches, and of wake-ups.
    pub sched: u32,
}

impl Rooms {
    /// Bytes of one buffer of each kind.
    pub(crate) fn each(&self) -> BufferBytes {
        BufferBytes { calls: u64::from(self.calls) * PLAIN_SYSCALL as u64, sched: u64::from(self.sched) * SCHED as u64 }
    }

    /// Bytes of all buffers.
    pub(crate) fn bytes(&self) -> u64 {
        let BufferBytes { calls, sched } = self.each();
        u64::from(self.cpus) * (calls + sched * OF_SCHED.len() as u64)
    }
}

/// A map with records of each CPU's buffers.
#[derive(Debug)]
struct BufferMap {
    map: MmapRaw,
    /// The kinds of buffers, as they are numbered.
    kinds: Range<usize>,
    /// Bytes of one.
    len: usize,
    /// Of each buffer; a power of two.
    room: usize,
}

/// The buffers of all CPUs.
#[derive(Debug)]
pub(crate) struct CpuBuffers {
    positions: MmapRaw,
    calls: BufferMap,
    sched: BufferMap,
    cpus: usize,
}

const KINDS: usize = buffer::KINDS as usize;
const CALLS: Range<usize> = buffer::CALLS as usize..buffer::SWITCHES as usize;
const OF_SCHED: Range<usize> = buffer::SWITCHES as usize..KINDS;

impl CpuBuffers {
    /// Maps the maps, whose buffers have this capacity.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn map(
        positions: BorrowedFd<'_>,
        calls: BorrowedFd<'_>,
        sched: BorrowedFd<'_>,
        rooms: Rooms,
    ) -> io::Result<Self> {
        let cpus = rooms.cpus as usize;
        let map = |fd: BorrowedFd<'_>, bytes| MmapOptions::new().len(bytes).map_raw(fd.as_raw_fd());
        let records = |fd, kinds: Range<usize>, len, room: u32| {
            let room = room as usize;
            io::Result::Ok(BufferMap { map: map(fd, cpus * kinds.len() * room * len)?, kinds, len, room })
        };
        Ok(Self {
            positions: map(positions, cpus * KINDS * size_of::<CpuBuffer>())?,
            calls: records(calls, CALLS, PLAIN_SYSCALL, rooms.calls)?,
            sched: records(sched, OF_SCHED, SCHED, rooms.sched)?,
            cpus,
        })
    }

    /// Passes all records to `pass`, those of a buffer together: their bytes, and the length of each. Frees their room.
    /// Returns the number of bytes in all buffers, and the most in one of each kind.
    pub(crate) fn drain(&mut self, mut pass: impl FnMut(&[u8], usize)) -> (u64, BufferBytes) {
        let (calls, most_calls) = self.drain_kinds(&self.calls, &mut pass);
        let (sched, most_sched) = self.drain_kinds(&self.sched, &mut pass);
        (calls + sched, BufferBytes { calls: most_calls, sched: most_sched })
    }

    fn drain_kinds(&self, records: &BufferMap, pass: &mut impl FnMut(&[u8], usize)) -> (u64, u64) {
        let (mut all, mut most) = (0, 0);
        let buffers = (0..self.cpus).flat_map(|cpu| records.kinds.clone().map(move |kind| (cpu, kind)));
        for (nth, (cpu, kind)) in buffers.enumerate() {
            let buffer = cpu * KINDS + kind;
            let head = self.position(buffer, std::mem::offset_of!(CpuBuffer, head)).load(SEES);
            let tail_at = self.position(buffer, std::mem::offset_of!(CpuBuffer, tail));
            // only we write it
            let tail = tail_at.load(Ordering::Relaxed);
            // more than there is room for is never written
            let count = head.wrapping_sub(tail).min(records.room as u64);
            if count > 0 {
                let (to_end, rest) = records.get(nth, tail, count as usize);
                [to_end, rest].iter().filter(|part| !part.is_empty()).for_each(|part| pass(part, records.len));
                tail_at.store(head, FREES);
                let bytes = count * records.len as u64;
                all += bytes;
                most = most.max(bytes);
            }
        }
        (all, most)
    }

    fn position(&self, buffer: usize, offset: usize) -> &AtomicU64 {
        debug_assert!(buffer < self.cpus * KINDS);
        // SAFETY: within the mapping, which has a CpuBuffer for each buffer and begins at a page; all use of it is atomic.
        unsafe { AtomicU64::from_ptr(self.positions.as_mut_ptr().add(buffer * size_of::<CpuBuffer>() + offset).cast()) }
    }
}

impl BufferMap {
    /// `count` records of the `nth` buffer in this map, from `position` on: those until its end, and those from its
    /// beginning on. The count is at most `room`.
    fn get(&self, nth: usize, position: u64, count: usize) -> (&[u8], &[u8]) {
        let from = position as usize & (self.room - 1);
        let to_end = count.min(self.room - from);
        let part = |from: usize, count: usize| {
            debug_assert!(from + count <= self.room);
            // SAFETY: within the mapping, which has `room` records for each buffer; the program does not write between tail
            // and head, and drain() moves the tail when nothing refers to the records any more.
            unsafe {
                std::slice::from_raw_parts(self.map.as_ptr().add((nth * self.room + from) * self.len), count * self.len)
            }
        };
        (part(from, to_end), part(0, count - to_end))
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

    /// What stands for the maps.
    struct Maps {
        positions: File,
        calls: File,
        sched: File,
    }

    impl Maps {
        fn new() -> Self {
            let file = |len: usize| {
                let file = tempfile::tempfile().unwrap();
                file.set_len(len as u64).unwrap();
                file
            };
            Self {
                positions: file(CPUS * KINDS * size_of::<CpuBuffer>()),
                calls: file(CPUS * ROOM * PLAIN_SYSCALL),
                sched: file(CPUS * 2 * ROOM * SCHED),
            }
        }

        fn buffers(&self) -> CpuBuffers {
            let rooms = Rooms { cpus: CPUS as u32, calls: ROOM as u32, sched: ROOM as u32 };
            let Self { positions, calls, sched } = self;
            CpuBuffers::map(positions.as_fd(), calls.as_fd(), sched.as_fd(), rooms).unwrap()
        }

        /// Imitates a program, with the layout of maps.bpf.h.
        fn write(&self, cpu: usize, kind: usize, number: u64) -> bool {
            let at = ((cpu * 3 + kind) * size_of::<CpuBuffer>()) as u64;
            let read = |offset: usize| {
                let mut word = [0; 8];
                self.positions.read_exact_at(&mut word, at + offset as u64).unwrap();
                u64::from_ne_bytes(word)
            };
            let head_at = std::mem::offset_of!(CpuBuffer, head);
            let head = read(head_at);
            if head - read(std::mem::offset_of!(CpuBuffer, tail)) == ROOM as u64 {
                return false;
            }
            let (file, nth, len) = match kind {
                0 => (&self.calls, cpu, PLAIN_SYSCALL),
                _ => (&self.sched, cpu * 2 + kind - 1, SCHED),
            };
            let slot = nth * ROOM + head as usize % ROOM;
            let record: Vec<u8> = number.to_ne_bytes().into_iter().cycle().take(len).collect();
            file.write_all_at(&record, (slot * len) as u64).unwrap();
            self.positions.write_all_at(&(head + 1).to_ne_bytes(), at + head_at as u64).unwrap();
            true
        }
    }

    /// The numbers of the records that are there, and how many were in one buffer of calls and of the others at most.
    fn drain(buffers: &mut CpuBuffers) -> (Vec<u64>, [u64; 2]) {
        let (mut seen, mut bytes) = (Vec::new(), 0);
        let (all, most) = buffers.drain(|records, each| {
            for record in records.chunks(each) {
                assert_eq!(record.len(), each);
                assert!(record.chunks(8).all(|word| word == &record[..8]));
                seen.push(u64::from_ne_bytes(*record.first_chunk().unwrap()));
            }
            bytes += records.len() as u64;
        });
        assert_eq!(all, bytes);
        (seen, [most.calls / PLAIN_SYSCALL as u64, most.sched / SCHED as u64])
    }

    #[test]
    fn records_come_out_once_by_cpu_and_make_room() {
        let maps = Maps::new();
        let mut buffers = maps.buffers();
        assert_eq!(drain(&mut buffers), (vec![], [0; 2]));
        let put = |cpu, number| maps.write(cpu, 0, number);
        assert_eq!([1, 2, 3, 4, 5].map(|number| put(2, number)), [true, true, true, true, false]);
        assert_eq!([6, 7].map(|number| put(0, number)), [true, true]);
        assert_eq!(drain(&mut buffers), (vec![6, 7, 1, 2, 3, 4], [4, 0]));
        // around the end, many times
        for round in 0..20 {
            assert_eq!([8, 9, 10].map(|number| put(1, round + number)), [true, true, true]);
            assert_eq!(drain(&mut buffers), (vec![round + 8, round + 9, round + 10], [3, 0]));
        }
        assert_eq!(drain(&mut buffers), (vec![], [0; 2]));
    }

    #[test]
    fn each_kind_has_a_buffer_of_its_own() {
        let maps = Maps::new();
        let mut buffers = maps.buffers();
        for round in 0..5 {
            for (cpu, kind, number) in [(2, 2, 1), (0, 1, 2), (0, 2, 3), (1, 0, 4), (2, 1, 5), (0, 0, 6), (2, 2, 7)] {
                assert!(maps.write(cpu, kind, round * 10 + number));
            }
            let expected = [6, 4, 2, 3, 5, 1, 7].map(|number| round * 10 + number);
            assert_eq!(drain(&mut buffers), (expected.to_vec(), [1, 2]));
        }
        // one that is full leaves the others as they are
        assert_eq!([1, 2, 3, 4, 5].map(|number| maps.write(1, 2, number)), [true, true, true, true, false]);
        assert!(maps.write(1, 1, 6));
        assert_eq!(drain(&mut buffers), (vec![6, 1, 2, 3, 4], [0, 4]));
    }

    /// A buffer of two records as a model, in which a CPU may see what another wrote as late as its memory allows. The program is
    /// the one of emit.bpf.h; it stores the number of its records by `publish`, an exchange on arm64. Its store of a record depends on
    /// the number of those read, which no CPU makes before it knows that number.
    fn model(publish: Ordering) {
        use loom::sync::Arc;
        use loom::sync::atomic::AtomicU64;

        #[derive(Default)]
        struct Shared {
            head: AtomicU64,
            tail: AtomicU64,
            records: [AtomicU64; 2],
        }
        loom::model(move || {
            let shared = Arc::new(Shared::default());
            let theirs = Arc::clone(&shared);
            let program = loom::thread::spawn(move || {
                for _ in 0..3 {
                    let head = theirs.head.load(Ordering::Relaxed);
                    if head - theirs.tail.load(Ordering::Relaxed) < 2 {
                        theirs.records[head as usize % 2].store(head + 1, Ordering::Relaxed);
                        theirs.head.swap(head + 1, publish);
                    }
                }
            });
            for _ in 0..2 {
                let (head, tail) = (shared.head.load(SEES), shared.tail.load(Ordering::Relaxed));
                for at in tail..head {
                    assert_eq!(
                        shared.records[at as usize % 2].load(Ordering::Relaxed),
                        at + 1,
                        "record {at} of {head}"
                    );
                }
                shared.tail.store(head, FREES);
            }
            program.join().unwrap();
        });
    }

    #[test]
    fn a_record_is_whole_where_its_number_is_seen() {
        model(Ordering::AcqRel);
    }

    /// The store as it was for x86 alone: the compiler keeps it behind the record, and CPUs of arm64 do not.
    #[test]
    #[should_panic(expected = "record")]
    fn without_the_exchange_it_is_not() {
        model(Ordering::Relaxed);
    }
}
